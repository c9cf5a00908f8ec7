"""The noise alone: noise_var is learned under a kernel that is given.

`fit` learns it together with the kernel.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Event
from gpmi.gp.kernels import Kernel
from gpmi.gp.linalg import eigen, invert
from gpmi.model.fitting.data import FIT_POINTS, FitData
from gpmi.model.fitting.fit import Prior, subset_event
from gpmi.model.fitting.row_noise import RowNoise
from gpmi.model.fitting.unknowns import BOUNDS_NOISE, LOG_NOISE

_FAR = 16.0  # skip noise variances this many nats (a factor of 1e7) less probable than the best


class NoiseDensity(NamedTuple):
    """-log p(noise_var | y) without constants, at noise_var = unit * exp(log_noise)."""

    log_noise: Array  # (400,)
    loss: Array  # (400,), infinite where it was skipped because it is far above the smallest
    unit: float


def noise_density(x: Array, y: Array, kernel: Kernel, noises: RowNoise | None = None) -> NoiseDensity:
    """Return the density of noise_var given y, under a fixed kernel with mean 0. O(n^3): one eigendecomposition.

    If rows have their own error bars, it takes one factorisation for each noise_var tried.
    """
    data = FitData(x, y, noises).at_most(FIT_POINTS)
    x, y, noises = data.x, data.y, data.noises
    mean = float(kernel.diagonal(x).mean()) if len(y) else 0.0
    unit = mean if mean * np.exp(BOUNDS_NOISE[0]) >= np.finfo(float).tiny else 1.0  # a smaller noise_var divides to nan
    log_noise = np.linspace(*BOUNDS_NOISE, 400)  # steps of 5 %
    penalty = 0.5 * ((log_noise - LOG_NOISE[0]) / LOG_NOISE[1]) ** 2
    s = unit * np.exp(log_noise)
    if noises is not None and noises.error.any():
        return NoiseDensity(log_noise, _loss_with_error_bars(kernel(x, x), y, noises, s, penalty), unit)
    # With rows of noise s / w_i, K is scaled by w: sqrt(w) K sqrt(w) = Q diag(values) Q^T, so each s costs O(n).
    root = np.ones(len(y)) if noises is None else np.sqrt(noises.repeats * noises.values)
    values, vectors = eigen(kernel(x, x) * root * root[:, None])
    rotated = (vectors.T @ (y * root)) ** 2
    total = np.maximum(values, 0.0)[:, None] + s  # an eigenvalue below 0 is rounding
    loss = 0.5 * (rotated[:, None] / total + np.log(total)).sum(axis=0) + penalty
    if noises is not None:
        loss += [noises.minus_log_within(each)[0] for each in s.tolist()]
    return NoiseDensity(log_noise, loss, unit)


def fit_noise(x: Array, y: Array, kernel: Kernel, noises: RowNoise | None = None) -> Prior:
    """Learn the most probable noise_var under a fixed kernel, with mean 0. The cost is that of `noise_density`."""
    events = subset_event(y)
    log_noise, loss, unit = noise_density(x, y, kernel, noises)
    best = int(np.argmin(loss))
    noise_var = unit * float(np.exp(log_noise[best]))
    if best == len(log_noise) - 1 and len(y):
        clipped = f"noise_var was limited to {noise_var:.3g}: y varies more than this kernel can explain; scale y or k"
        events = (*events, Event("clipped", clipped))
    return Prior(kernel, noise_var, events=events)


def _loss_with_error_bars(k: Array, y: Array, noises: RowNoise, s: Array, penalty: Array) -> Array:
    """Return the loss at the noise variances s for rows with error bars: first at every tenth, then where it is small.

    Grid cells whose two ends are both _FAR above the minimum are skipped (inf).
    """

    def loss(number: int) -> float:
        c = k + np.diag(noises.of_rows(float(s[number])))
        solved = invert(c, y[:, None])
        if solved is None:
            return math.inf
        fitted = 0.5 * (float(y @ solved.solution[:, 0]) + solved.logdet)
        return fitted + noises.minus_log_within(float(s[number]))[0] + float(penalty[number])

    losses = np.full(len(s), np.inf)
    rough = [*range(0, len(s) - 1, 10), len(s) - 1]
    losses[rough] = [loss(number) for number in rough]
    near = losses[rough] <= losses.min() + _FAR
    for i in np.flatnonzero(near[:-1] | near[1:]).tolist():
        between = range(rough[i] + 1, rough[i + 1])
        losses[between] = [loss(number) for number in between]
    return losses
