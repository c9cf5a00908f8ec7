"""What is unknown in a prior, the noise variance included: units, prior and bounds of each unknown.

The unknowns are q = (one logarithm for each hyper-parameter that is None, the logarithm of the noise variance), in
units of the space and of the standard deviation of y. Each has a normal prior and is limited to an interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.kernels import Kernel, Linear, Matern, Product, Stationary, Sum

DEFAULT = Matern(nu=2.5, lengthscale=None, variance=None)  # the meaning of kernel=None

# Normal priors of the logarithms, (mean, sd).
# For p parameters log(p) / 2 is added to the mean of a lengthscale. So lengthscales grow with sqrt(p), like the
# distance between two typical points of the cube. The mean is the mode of LogNormal(sqrt 2 + log(p) / 2, sqrt 3) of
# Hvarfner et al. 2024. Their sd is sqrt 3; 1 is our choice, not tuned: with ten observations a single lengthscale then
# does not move far from the others.
_LOG_LENGTHSCALE = (np.sqrt(2.0) - 3.0, 1.0)
# The variance of f equals the variance of y, up to a factor of about e. Our choice, not tuned.
_LOG_VARIANCE = (0.0, 1.0)
# The noise may be anything from rounding (1e-8 is 2.3 sd below the mean) to all of y. Our choice, not tuned.
LOG_NOISE = (np.log(1e-5), 3.0)
# The same for statements about several outputs. They are about told points and points close to them, where noise that
# is taken for none makes them too certain. Noise of 10 % of the sd of y or more is as likely as less. Chosen among
# (1e-5, 3), (1e-4, 5), (1e-3, 4), (1e-2, 3) and (3e-2, 2) on development draws with noise of 0, 5 and 20 %, where 90 %
# statements held in 96, 93 and 86 % of cases, with (1e-3, 4) in 96, 90 and 77 % (docs/benchmarks/front_knowledge.md).
LOG_OPEN_NOISE = (np.log(1e-2), 3.0)

# Bounds of the logarithms. Our choice, not tuned: wide enough to leave the decision to the priors and the data, narrow
# enough to keep C invertible.
_BOUNDS_VARIANCE = (-6.0, 6.0)
_BOUNDS_LENGTHSCALE = (np.log(5e-3), np.log(1e3))
BOUNDS_NOISE = (np.log(1e-8), np.log(2.0))

# The contribution of one observation to the second derivatives of the loss by the logarithms of the variances, of the
# lengthscales (all together) and of the noise. Our guess: the search starts with this Hessian and corrects it.
_CURVATURE = (0.3, 0.3, 0.03)

_NOISY = math.log(0.05)  # the second start of a fit has noise of 5 % of the variance of y; our choice, not tuned

_LARGEST_LOG_UNIT = 600.0  # exp(600) and exp(-600) are normal floats, even times exp(6), the bound of a variance


@dataclass(frozen=True, eq=False)
class Unknowns:
    """q (p + 1,), the noise last: its prior N(centre, diag(width^2)), its bounds, and a guess of the curvature."""

    centre: Array
    width: Array
    lo: Array
    hi: Array
    curvature: Array  # the rough contribution of one observation to the second derivatives of the loss

    @staticmethod
    def of(shares: list[float | None], parameters: int) -> Unknowns:
        """Return the unknowns of a kernel on a space with this number of parameters.

        `shares` has an entry for each unknown: None for a lengthscale, and for a variance its share. The share is 1
        unless the variance belongs to a factor of a product (see `theta_units`).
        """
        lengthscales = max(1, shares.count(None))
        variances = max(1, len(shares) - shares.count(None))
        log_l = (_LOG_LENGTHSCALE[0] + 0.5 * np.log(parameters), _LOG_LENGTHSCALE[1])
        rows = [
            (*log_l, *_BOUNDS_LENGTHSCALE, _CURVATURE[1] / lengthscales)
            if share is None
            else (
                _LOG_VARIANCE[0],
                _LOG_VARIANCE[1] * share,
                _BOUNDS_VARIANCE[0] * share,
                _BOUNDS_VARIANCE[1] * share,
                _CURVATURE[0] / variances,
            )
            for share in shares
        ]
        columns = np.array([*rows, (*LOG_NOISE, *BOUNDS_NOISE, _CURVATURE[2])]).T
        return Unknowns(*(np.ascontiguousarray(column) for column in columns))

    def with_open_noise(self) -> Unknowns:
        """Return the same unknowns with the prior LOG_OPEN_NOISE of the noise."""
        centre, width = self.centre.copy(), self.width.copy()
        centre[-1], width[-1] = LOG_OPEN_NOISE
        return replace(self, centre=centre, width=width)

    @property
    def noisy(self) -> Array:
        """The centre of the prior, but with much noise."""
        q = self.centre.copy()
        q[-1] = _NOISY
        return q


class ThetaUnit(NamedTuple):
    """The unit of an entry of theta: if it is unknown, theta_i = log_unit + an entry of q."""

    coordinate: int | None  # the coordinate of a lengthscale; None for a variance
    log_unit: float
    share: float  # the prior and the bounds of a variance are narrower by this factor


def theta_units(kernel: Kernel, x: Array, span: Array, log_target: float, share: float = 1.0) -> list[ThetaUnit]:
    """Return the units of theta for a kernel whose expected variance at the points x (n, d) is exp(log_target).

    The unit of a lengthscale is the width of the space. The unit of a variance is the value at which the kernel has the
    target variance, averaged over x. In a sum, each term has the same target. In a product with one unknown variance,
    the target of its factor is divided by the variance of the other factor. In a product of two unknown variances, the
    target of each factor is the root, and the width of its prior is multiplied by 1 / sqrt(2). Then the logarithm of
    the product has the same prior as the logarithm of a single variance.
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
        return theta_units(kernel.first, x, span, *first) + theta_units(kernel.second, x, span, *second)
    variance = ThetaUnit(None, _clipped(log_target), share)
    if isinstance(kernel, Stationary):
        lengths = [ThetaUnit(k, math.log(span[k]), 1.0) for k in range(len(kernel.theta) - 1)]
        return [variance, *lengths]
    if isinstance(kernel, Linear):
        return [ThetaUnit(None, _clipped(log_target - _log_mean_variance(Linear(), x)), share)]
    return [variance] * len(kernel.theta)  # the user's own kernel class, of which nothing is learned


def has_free_variance(kernel: Kernel) -> bool:
    """Return whether the variance of the kernel at a point is learned, at least in part."""
    if isinstance(kernel, Sum | Product):
        return has_free_variance(kernel.first) or has_free_variance(kernel.second)
    return isinstance(kernel, Stationary | Linear) and kernel.variance is None


def _log_mean_variance(kernel: Kernel, x: Array) -> float:
    """Return the log of the mean of k(x_i, x_i), which depends on no lengthscale; 0 if that mean is not positive and
    finite.
    """
    mean = float(kernel.filled(np.zeros(len(kernel.theta))).diagonal(x).mean()) if len(x) else 0.0
    return math.log(mean) if 0.0 < mean < math.inf else 0.0


def _clipped(log_unit: float) -> float:
    return min(max(log_unit, -_LARGEST_LOG_UNIT), _LARGEST_LOG_UNIT)
