"""The gradients of a prior's mean and variance, where these are not constant."""

from __future__ import annotations

from gpmi._support.types import Array
from gpmi.gp.kernels import Kernel
from gpmi.gp.trend import PriorMean


def with_prior_gradient(
    kernel: Kernel, trend: PriorMean | None, z: Array, gradient: Array, by_mu: Array, by_var: Array
) -> Array:
    """Add to a gradient at z (m, d) the terms of the prior mean and variance, where these are not constant."""
    if kernel.constant_variance is None:
        gradient = gradient + by_var[:, None] * kernel.diagonal_gradient(z)
    return gradient if trend is None else gradient + by_mu[:, None] * trend.gradient(z)
