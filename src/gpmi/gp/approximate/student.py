"""Student's t as the distribution of the noise: the farther a value is from all others, the less it counts.

y_i = f(x_i) + e_i, e_i / scale_i ~ t with NU degrees of freedom. It is a mixture of normals: given w_i ~ Gamma(NU /
2, NU / 2), e_i ~ N(0, scale_i^2 / w_i). So the integrals of expectation propagation are Gaussian ones averaged over w.
They are right however many peaks the integrand has.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.approximate.ep import Likelihood, Tilted

NU = 4.0  # degrees of freedom: the usual choice for unknown heavy tails, in Lange, Little and Taylor 1989 for instance

_FARTHEST = 1e60  # scales: a residual beyond it counts as this far away, because its square might overflow; our choice


@cache
def _mixture() -> tuple[Array, Array]:
    """Return weights w and the logarithms of their probabilities: the trapezoid rule in log w, (N,) each.

    The integrand is analytic and falls fast on both sides, so steps of 1/4 leave an error below 1e-9 (tests). The range
    covers residuals up to 1e8 scales.
    """
    u = np.arange(-40.0, 5.0, 0.25)
    log_density = 0.5 * NU * (math.log(0.5 * NU) + u) - 0.5 * NU * np.exp(u) - math.lgamma(0.5 * NU)
    return np.exp(u), log_density + math.log(0.25)


def student(y: Array, scale2: Array) -> Likelihood:
    """Return the likelihood of values y (n,) whose noise has the squared scales scale2 (n,). O(180 n) a call."""
    w, log_p = _mixture()
    noise = scale2[:, None] / w  # (n, N)
    most = _FARTHEST * np.sqrt(scale2)

    def tilted(mean: Array, var: Array) -> Tilted:
        total = var[:, None] + noise
        off = np.clip(y - mean, -most, most)[:, None]
        log = log_p - 0.5 * (np.log(2.0 * np.pi * total) + off**2 / total)
        top = log.max(axis=1, keepdims=True)
        share = np.exp(log - top)
        z = share.sum(axis=1)
        share /= z[:, None]
        gain = var[:, None] / total
        moved = np.einsum("ij,ij->i", share, gain) * off[:, 0]
        spread = np.einsum("ij,ij->i", share, gain * noise + (gain * off - moved[:, None]) ** 2)
        return Tilted(np.log(z) + top[:, 0], mean + moved, spread)

    return tilted


def log_student(off: Array, scale2: Array) -> Array:
    """Return log p(off) for noise of squared scale scale2."""
    most = _FARTHEST * np.sqrt(scale2)
    off = np.clip(off, -most, most)
    constant = math.lgamma(0.5 * (NU + 1.0)) - math.lgamma(0.5 * NU) - 0.5 * math.log(math.pi * NU)
    density: Array = constant - 0.5 * np.log(scale2) - 0.5 * (NU + 1.0) * np.log1p(off**2 / (NU * scale2))
    return density


def normal_score(off: float, var: float, scale2: float) -> float:
    """Return z with P(standard normal <= z) = P(y - mu <= off), where y - mu = N(0, var) + noise.

    It expresses a residual in normal units. P is averaged over w on the smaller tail, so that its logarithm is accurate
    for outliers as well.
    """
    from scipy.special import log_ndtr, logsumexp, ndtri_exp

    w, log_p = _mixture()
    scale2 = scale2 if var + scale2 > 0.0 else 1.0  # where f is certain, any noise will do, as in `Posterior`
    tail = float(logsumexp(log_p + log_ndtr(-abs(off) / np.sqrt(var + scale2 / w))))
    return math.copysign(-float(ndtri_exp(min(tail, math.log(0.5)))), off)
