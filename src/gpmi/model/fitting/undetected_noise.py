"""Whether noise may hide where a fit found none: noise may explain the values as well as a rougher f without any."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Observations
from gpmi.model.fitting.criterion import Criterion
from gpmi.model.fitting.descent import ROUNDS, DescentPoint, minimum_in_box, start
from gpmi.model.fitting.fit import Prior
from gpmi.model.fitting.prior_draws import DrawingProblem
from gpmi.model.fitting.schedule import PriorSchedule
from gpmi.model.fitting.unknowns import LOG_NOISE

# Shares of the variance of y: noise below the first counts as none, and it is compared with noise of at least the
# second. Our choices; docs/benchmarks/noise.md counts how often there is doubt, with noise and without.
LITTLE, MUCH = 0.01, 0.05


class UndetectedNoise(NamedTuple):
    """Noise that may exist although the fit found none."""

    share: float  # the most probable noise of MUCH or more, as a share of the variance of warp(y)
    nats: float  # by which the evidence of almost no noise exceeds the evidence of this noise


def undetected_noise(priors: PriorSchedule, observed: Observations, near: Prior) -> UndetectedNoise | None:
    """Return the noise that may exist although the prior `near`, learned from these values, has almost none.

    None if it has some, if some noise is given, and if the kernel is given or the noise has heavy tails. It compares
    the largest evidence with noise of at least MUCH and with noise of at most LITTLE, both without the prior of the
    noise. That prior favours exact values by up to 6 nats, so a fit takes noisy values for exact ones unless the
    evidence clearly contradicts. Three descents, each some evaluations of O(n^3).
    """
    if not priors.learns_kernel or priors.student_noise:
        return None
    problem = DrawingProblem.of(priors.setting_of(near), observed, near.warp)
    criterion, unknowns, q = problem.criterion, problem.criterion.unknowns, problem.q_of(near)
    if priors.noise_var is not None or observed.noise_var.any() or q[-1] > math.log(LITTLE):
        return None
    exact = _peak(criterion, [q], float(unknowns.lo[-1]), math.log(LITTLE))
    noisy = _peak(criterion, [unknowns.noisy, q], math.log(MUCH), float(unknowns.hi[-1]))
    nats = (noisy.loss - _penalty(noisy.q)) - (exact.loss - _penalty(exact.q))
    return UndetectedNoise(criterion.noise(noisy.q), nats)


def _peak(criterion: Criterion, starts: list[Array], low: float, high: float) -> DescentPoint:
    """Return the smallest loss that descents find where the logarithm of the noise is between low and high."""
    lo, hi = criterion.unknowns.lo.copy(), criterion.unknowns.hi.copy()
    lo[-1], hi[-1] = low, high
    begins = [start(criterion, np.clip(q, lo, hi)) for q in starts]
    return min((minimum_in_box(criterion.loss, begin, lo, hi, ROUNDS) for begin in begins), key=lambda peak: peak.loss)


def _penalty(q: Array) -> float:
    """Return -log of the prior of the noise at q, without constants."""
    return 0.5 * float((q[-1] - LOG_NOISE[0]) / LOG_NOISE[1]) ** 2
