"""The probability that a point succeeds: Gaussian processes must lie on the right side of a limit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpmi._support.types import Array, Event, Mask
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import chunks

LIKELY = 0.5  # a point with a smaller probability of success probably fails
_LEAST = 1e-12  # of k(x, x): the smallest variance used as a divisor, far above rounding


@dataclass(frozen=True, eq=False)
class Requirement:
    """sign (g(x) - limit) >= N(0, spread) for a Gaussian process g.

    It holds with probability cdf(sign (mu - limit) / sqrt(var + spread)). A classifier has spread 1. A measured
    constraint, which either holds or does not, has spread 0.
    """

    posterior: Posterior
    limit: float = 0.0
    sign: float = 1.0
    spread: float = 1.0

    def _standardised(self, mu: Array, var: Array) -> tuple[Array, Array]:
        total = np.maximum(var + self.spread, _LEAST * float(self.posterior.kernel.diagonal(self.posterior.x[:1])[0]))
        return self.sign * (mu - self.limit) / np.sqrt(total), total

    def holds(self, g: Array) -> Mask:
        """Return for values of g whether the requirement holds more often than not."""
        holds: Mask = self.sign * (g - self.limit) >= 0.0
        return holds

    def log(self, z: Array) -> Array:
        """Return the logarithm of the probability at z (m, d). O(n^2 m)."""
        from scipy.special import log_ndtr

        result: Array = log_ndtr(self._standardised(*self.posterior(z))[0])
        return result

    def log_with_gradient(self, z: Array) -> tuple[Array, Array]:
        """Return the same and its gradient by z, (m, d)."""
        from scipy.special import log_ndtr

        mu, var, pull = self.posterior.with_pullback(z)
        at, total = self._standardised(mu, var)
        log: Array = log_ndtr(at)
        slope = np.exp(-0.5 * at * at - 0.5 * np.log(2.0 * np.pi) - log)  # d log cdf / d at
        by_var = np.where(var + self.spread >= total, -0.5 * slope * at / total, 0.0)
        return log, pull(self.sign * slope / np.sqrt(total), by_var)


@dataclass(frozen=True, eq=False)
class SuccessProbability:
    """The probability p(x) that all requirements hold at x, assuming that they are independent."""

    requirements: tuple[Requirement, ...]
    events: tuple[Event, ...] = ()

    @one_blas_thread
    def log(self, z: Array) -> Array:
        """Return log p at z (m, d). O(n^2 m) for each requirement."""
        total = np.zeros(len(z))
        for requirement in self.requirements:
            for part in chunks(len(z), requirement.posterior.n):
                total[part] += requirement.log(z[part])
        return total

    def __call__(self, z: Array) -> Array:
        """Return p at z (m, d)."""
        p: Array = np.exp(self.log(z))
        return p

    @cached_property
    def works(self) -> SuccessProbability:
        """The probability that a point succeeds more often than not: p without the chance in each evaluation."""
        return SuccessProbability(tuple(replace(requirement, spread=0.0) for requirement in self.requirements))

    def draw(self, z: Array, rng: np.random.Generator, size: int) -> Mask:
        """Draw jointly which of the points z (m, d) succeed more often than not, (size, m). O(n^2 m + m^3)"""
        draws = [requirement.holds(requirement.posterior.sample(z, rng, size)) for requirement in self.requirements]
        works: Mask = np.all(draws, axis=0)
        return works

    def likely(self, z: Array, least: float = LIKELY) -> Mask:
        """Return which of the points z (m, d) succeed with a probability of at least `least`."""
        likely: Mask = self.log(z) >= np.log(least)
        return likely

    @one_blas_thread
    def log_with_gradient(self, z: Array) -> tuple[Array, Array]:
        """Return log p at z (m, d) and its gradient by z, (m, d)."""
        parts = [requirement.log_with_gradient(z) for requirement in self.requirements]
        return np.sum([log for log, _ in parts], axis=0), np.sum([gradient for _, gradient in parts], axis=0)
