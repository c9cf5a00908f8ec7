"""Several posteriors that differ in their observed values alone, such as draws of f at the points told.

They share the points, the noise and hence the factor, so S of them cost hardly more than one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.posterior import Posterior
from gpmi.gp.prior_gradient import with_prior_gradient

EnsemblePullback: TypeAlias = Callable[[Array, Array], Array]


@dataclass(frozen=True, eq=False)
class Ensemble:
    """S posteriors of one process, each given other values at the same points."""

    posterior: Posterior  # its points, noise and factor count, and its values if there are no others
    y: Array | None = None  # (S, n), the values of each; None for those of `posterior` alone

    @property
    def size(self) -> int:
        """S, the number of posteriors."""
        return 1 if self.y is None else len(self.y)

    @cached_property
    def _whitened(self) -> Array:
        """L^-1 (y_s - mean) for every s, (S, n). O(S n^2)."""
        posterior = self.posterior
        if self.y is None:
            return posterior.whitened[None]
        with one_blas_thread:
            return posterior.factor.solve((self.y - posterior.prior_mean(posterior.x)).T).T

    @cached_property
    def _weights(self) -> Array:
        """C^-1 (y_s - mean) for every s, (S, n). O(S n^2)."""
        with one_blas_thread:
            return self.posterior.factor.solve_transposed(self._whitened.T).T

    @one_blas_thread
    def __call__(self, z: Array) -> tuple[Array, Array]:
        """Return mu (S, m) and var (m,), which all of them share, at z (m, d). O(n^2 m + S n m)."""
        posterior = self.posterior
        if posterior.n == 0:
            return posterior.prior_mean(z)[None].repeat(self.size, axis=0), posterior.kernel.diagonal(z)
        v = posterior.whiten(z)
        _, var = posterior.moments_from(z, v)
        return posterior.prior_mean(z) + self._whitened @ v, var

    @one_blas_thread
    def with_pullback(self, z: Array) -> tuple[Array, Array, EnsemblePullback]:
        """Return mu (S, m) and var (m,) at z (m, d), and a map to gradients by z.

        The map takes a (S, m) and b (m,) to sum_s a_si d mu_s(z_i)/dz_i + b_i d var(z_i)/dz_i, (m, d). Cost as for
        `Posterior.with_pullback`, whatever S is.
        """
        posterior = self.posterior
        steeper = partial(with_prior_gradient, posterior.kernel, posterior.trend, z)
        if posterior.n == 0:
            mean = posterior.prior_mean(z)[None].repeat(self.size, axis=0)
            zero = np.zeros_like(z)
            return mean, posterior.kernel.diagonal(z), lambda a, b: steeper(zero, a.sum(axis=0), b)
        k, pull = posterior.kernel.with_input_pullback(z, posterior.x)  # (m, n)
        v = posterior.factor.solve(k.T)
        _, var = posterior.moments_from(z, v)

        def gradient(by_mu: Array, by_var: Array) -> Array:
            smoother = posterior.factor.solve_transposed(v).T
            weights = by_mu.T @ self._weights
            weights -= (2.0 * by_var)[:, None] * smoother
            return steeper(pull(weights), by_mu.sum(axis=0), by_var)

        return posterior.prior_mean(z) + self._whitened @ v, var, gradient
