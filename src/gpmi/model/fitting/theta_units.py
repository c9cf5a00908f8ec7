"""The units of the hyper-parameters of a template: from the width of the space and the variance of y."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.kernels import Kernel, Linear, Product, Stationary, Sum

_LARGEST_LOG_UNIT = 600.0  # exp(600) and exp(-600) are normal floats, even times exp(6), the bound of a variance


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
