"""What of a kernel is unknown, in which units it is counted, and its prior.

The unknowns are q = (one logarithm for each hyper-parameter that is None, the logarithm of the noise), in units of
the space and of the standard deviation of y. Each has a normal prior and stays in a box.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpmi.gp.kernels import Kernel, Linear, Matern, Product, Stationary, Sum
from gpmi.types import Array

DEFAULT = Matern(nu=2.5, lengthscale=None, variance=None)  # what kernel=None stands for

# Normal priors on the logarithms, (mean, sd).
# The mean of a lengthscale's grows with sqrt(number of parameters): then the distance between two typical points stays
# a few lengthscales in every dimension. It is the mode of LogNormal(sqrt 2 + log(p) / 2, sqrt 3) of Hvarfner et al.
# 2024; sd 1 in place of their sqrt 3 is our choice: with ten observations single lengthscales do not run away.
_LOG_LENGTHSCALE = (np.sqrt(2.0) - 3.0, 1.0)
# The variance is around that of y, up to a factor of about e. Our choice, not tuned.
_LOG_VARIANCE = (0.0, 1.0)
# The noise may be anything from rounding (1e-8 is two sd below the centre) to all there is. Our choice, not tuned.
LOG_NOISE = (np.log(1e-5), 3.0)

# Boxes. Our choice, not tuned: so wide that the priors and the data decide, so narrow that C stays invertible.
_BOUNDS_VARIANCE = (-6.0, 6.0)
_BOUNDS_LENGTHSCALE = (np.log(5e-3), np.log(1e3))
BOUNDS_NOISE = (np.log(1e-8), np.log(2.0))

# What an observation adds to the second derivative of the loss by the logarithms of the variance, of the lengthscales
# (in all) and of the noise. Rough: it is the first guess of a Hessian that the search then corrects.
_TOLD = (0.3, 0.3, 0.03)

_NOISY = math.log(0.05)  # the second start explains y with 5 % of noise; our choice, not tuned

_LARGEST_LOG_UNIT = 600.0  # exp of this, and of its negative, are normal numbers with room for six more


@dataclass(frozen=True, eq=False)
class Unknowns:
    """q, of length p + 1, the noise last: its prior N(centre, diag(width^2)), its box, and a guess of the curvature."""

    centre: Array
    width: Array
    lo: Array
    hi: Array
    told: Array  # what an observation adds to the second derivatives of the loss, roughly

    @staticmethod
    def of(shares: list[float | None], parameters: int) -> Unknowns:
        """The unknowns of a kernel on a space with this number of parameters.

        One entry for each: None for a lengthscale, and for a variance its share, 1 unless it is one of the factors of
        a product (see `places`).
        """
        lengthscales = max(1, shares.count(None))
        variances = max(1, len(shares) - shares.count(None))
        log_l = (_LOG_LENGTHSCALE[0] + 0.5 * np.log(parameters), _LOG_LENGTHSCALE[1])
        rows = [
            (*log_l, *_BOUNDS_LENGTHSCALE, _TOLD[1] / lengthscales)
            if share is None
            else (
                _LOG_VARIANCE[0],
                _LOG_VARIANCE[1] * share,
                _BOUNDS_VARIANCE[0] * share,
                _BOUNDS_VARIANCE[1] * share,
                _TOLD[0] / variances,
            )
            for share in shares
        ]
        columns = np.array([*rows, (*LOG_NOISE, *BOUNDS_NOISE, _TOLD[2])]).T
        return Unknowns(*(np.ascontiguousarray(column) for column in columns))

    @property
    def noisy(self) -> Array:
        """The centre of the prior, with much noise."""
        q = self.centre.copy()
        q[-1] = _NOISY
        return q


class Place(NamedTuple):
    """An entry of theta: if it is unknown, theta_i = log_unit + an entry of q."""

    coordinate: int | None  # whose lengthscale it is; None for a variance
    log_unit: float
    share: float  # a variance's prior and box are narrower by this factor


def places(kernel: Kernel, x: Array, span: Array, log_target: float, share: float = 1.0) -> list[Place]:
    """The units of theta for a kernel that shall have about the variance exp(log_target) at the points x (n, d).

    A lengthscale is counted in units of the space. A variance is counted such that at 1 the kernel has the variance
    wanted, in the mean over x. Each term of a sum is asked for that variance. Of a product, a factor whose variance is
    given is divided out; two factors with unknown variances are asked for the root of it each, and each gets
    1 / sqrt(2) of the prior's width, so that the logarithm of their product has the prior of a single variance.
    """
    if isinstance(kernel, Sum | Product):
        targets = [(log_target, share)] * 2
        if isinstance(kernel, Product):
            free = [has_free_variance(factor) for factor in (kernel.first, kernel.second)]
            if all(free):
                targets = [(0.5 * log_target, share * math.sqrt(0.5))] * 2
            elif any(free):
                targets = [
                    (log_target - _log_mean_variance(other, x), share) for other in (kernel.second, kernel.first)
                ]
        first, second = targets
        return places(kernel.first, x, span, *first) + places(kernel.second, x, span, *second)
    variance = Place(None, _clipped(log_target), share)
    if isinstance(kernel, Stationary):
        lengths = [Place(k, math.log(span[k]), 1.0) for k in range(len(kernel.theta) - 1)]
        return [variance, *lengths]
    if isinstance(kernel, Linear):
        return [Place(None, _clipped(log_target - _log_mean_variance(Linear(), x)), share)]
    return [variance] * len(kernel.theta)  # a kernel of the user's, with nothing to learn


def has_free_variance(kernel: Kernel) -> bool:
    """Whether the variance of the kernel at a point is learned, at least in part."""
    if isinstance(kernel, Sum | Product):
        return has_free_variance(kernel.first) or has_free_variance(kernel.second)
    return isinstance(kernel, Stationary | Linear) and kernel.variance is None


def _log_mean_variance(kernel: Kernel, x: Array) -> float:
    """log of the mean of k(x_i, x_i), which no lengthscale changes; 0 where it is no positive number."""
    mean = float(kernel.filled(np.zeros(len(kernel.theta))).diagonal(x).mean()) if len(x) else 0.0
    return math.log(mean) if 0.0 < mean < math.inf else 0.0


def _clipped(log_unit: float) -> float:
    return min(max(log_unit, -_LARGEST_LOG_UNIT), _LARGEST_LOG_UNIT)
