"""The prior of f given values of other functions: a Gaussian process again, with another mean and kernel.

The functions are numbered by a coordinate after those of f (`gpmi.gp.kernels.Levels`). Values of f itself are added
later, by a `Posterior` with this prior. So the others take part in every prediction, and are no observations of f.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.kernels import Kernel, Pullback
from gpmi.gp.posterior import Posterior

_CACHED = 2**23  # numbers in the cached columns, at most: 64 MB. With 256 values, 32,000 candidates fit. Our choice


@dataclass(frozen=True, eq=False)
class Conditioned:
    """The posterior of all functions given values of the others, and the number of f."""

    posterior: Posterior  # with one coordinate more than f
    number: float  # of f, in the last coordinate
    _cache: dict[bytes, Array] = field(default_factory=dict, repr=False)

    def at(self, z: Array) -> Array:
        """Return the points z (m, d) as points of f in the coordinates of the posterior."""
        return np.column_stack([z, np.full(len(z), self.number)])

    def columns(self, z: Array) -> Array:
        """Return V = L^-1 k(x, z) (n, m) of the posterior at points z of f. O(n^2 m); the last ones are cached."""
        key = z.tobytes()
        columns = self._cache.pop(key, None)
        if columns is None:
            columns = self.posterior.whiten(self.at(z))
            room = _CACHED - columns.size
            for oldest in list(self._cache):
                if sum(cached.size for cached in list(self._cache.values())) <= room:
                    break
                self._cache.pop(oldest, None)
            if room < 0:
                return columns
        self._cache[key] = columns  # last: the one that was used last is dropped last
        return columns

    def __reduce__(self) -> tuple[type[Conditioned], tuple[Posterior, float]]:
        return Conditioned, (self.posterior, self.number)  # a copy needs no cache

    @cached_property
    def kernel(self) -> ConditionedKernel:
        """The covariance of f."""
        return ConditionedKernel(self)

    @cached_property
    def mean(self) -> ConditionedMean:
        """The mean of f."""
        return ConditionedMean(self)


@dataclass(frozen=True, eq=False)
class ConditionedMean:
    """The mean of f given values of other functions."""

    given: Conditioned
    sign: float = 1.0

    def mirrored(self) -> ConditionedMean:
        return replace(self, sign=-self.sign)

    def __call__(self, z: Array) -> Array:
        posterior = self.given.posterior
        values: Array = self.sign * (posterior.mean + posterior.whitened @ self.given.columns(z))
        return values

    def gradient(self, z: Array) -> Array:
        posterior = self.given.posterior
        _, pull = posterior.kernel.with_input_pullback(self.given.at(z), posterior.x)
        return pull(np.tile(self.sign * posterior.weights, (len(z), 1)))[:, :-1]


@dataclass(frozen=True, eq=False)
class ConditionedKernel(Kernel):
    """k(x, z) - k(x, X) C^-1 k(X, z): the covariance of f given values at X of other functions. Nothing to learn."""

    given: Conditioned

    def __repr__(self) -> str:
        return f"{self.given.posterior.kernel!r} given {self.given.posterior.n} values of others"

    def __call__(self, x: Array, z: Array) -> Array:
        given = self.given
        return given.posterior.kernel(given.at(x), given.at(z)) - given.columns(x).T @ given.columns(z)

    def diagonal(self, x: Array) -> Array:
        v = self.given.columns(x)
        var: Array = self.given.posterior.kernel.diagonal(self.given.at(x)) - np.einsum("ij,ij->j", v, v)
        return np.maximum(var, 0.0)

    def diagonal_gradient(self, x: Array) -> Array:
        _, _, pull = self.given.posterior.with_pullback(self.given.at(x))
        return pull(np.zeros(len(x)), np.ones(len(x)))[:, :-1]

    def with_input_pullback(self, x: Array, z: Array) -> tuple[Array, Pullback]:
        given, posterior = self.given, self.given.posterior
        k, pull_k = posterior.kernel.with_input_pullback(given.at(x), given.at(z))
        to_data, pull_data = posterior.kernel.with_input_pullback(given.at(x), posterior.x)
        w = given.columns(z)

        def pulled(weights: Array) -> Array:
            smoother = posterior.factor.solve_transposed(w)  # C^-1 k(X, z), (n, m)
            return (pull_k(weights) - pull_data(weights @ smoother.T))[:, :-1]

        return k - posterior.factor.solve(to_data.T).T @ w, pulled

    def with_theta_pullback(self, x: Array) -> tuple[Array, Pullback]:
        return self(x, x), lambda w: np.empty(0)

    @property
    def theta(self) -> Array:
        return np.empty(0)

    def with_theta(self, theta: Array) -> Kernel:
        return self

    @property
    def dim(self) -> int | None:
        return len(self.given.posterior.x[0]) - 1

    def reach(self, d: int) -> Array:
        return self.given.posterior.kernel.reach(d + 1)[:-1]
