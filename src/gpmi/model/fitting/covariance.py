"""K = k(x, x) as a function of the unknowns q, with its derivatives, for the default kernel.

Other kernels are in `template_covariance`.

Everything is in units of the standard deviation of y, and stored by pairs i > j, because K is symmetric.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from gpmi._support.types import Array, Numbers
from gpmi.gp.kernels import Kernel, Matern
from gpmi.model.fitting.unknowns import Unknowns

# (by_pair, by_diagonal, gradient): takes 2 d loss / d K in the first two and adds d loss / d q to the third, except the
# entry of the noise. May overwrite by_pair.
PairPullback: TypeAlias = Callable[[Array, Array, Array], None]

# The smallest noise that a fit assumes, relative to the variance of y, or to k(x, x). Repeated observations without
# noise make C singular. The posterior repairs this row by row, a fit by this constant. Our choice: rounding is about
# 1e-15 of k(x, x), so a pivot of 1e-10 still has about five correct digits.
EXACT = 1e-10


LEAST = 1e-300  # exact observations of large y may have a noise that underflows to 0, which has no logarithm


class Pairs:
    """The pairs (i, j), i > j, of n observations."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.i, self.j, self.at = _indices(n)
        # A buffer for values by pair that one step writes and the next reads. A single buffer stays in the cache; at n
        # = 256 it saved a quarter of an evaluation.
        self.scratch = np.empty(len(self.at))

    def matrix(self, by_pair: Array, diagonal: Array) -> Array:
        """Return the symmetric matrix with these entries."""
        full = np.zeros((self.n, self.n))
        full.reshape(-1)[self.at] = by_pair
        full += full.T
        full.reshape(-1)[:: self.n + 1] = diagonal
        return full


@lru_cache(maxsize=4)  # a fit, and the choice of a warp before it, need several for the same n
def _indices(n: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return the pairs i > j below n, and their positions in an (n, n) matrix."""
    i, j = np.tril_indices(n, -1)
    return i, j, i * n + j


class PairValues(NamedTuple):
    """K at one q."""

    by_pair: Array  # k(x_i, x_j)
    diagonal: Array | float  # k(x_i, x_i)
    pull: PairPullback


class Covariance(Protocol):
    """The interface of a kernel with unknown hyper-parameters at n points, for a criterion."""

    pairs: Pairs
    unknowns: Unknowns

    def __call__(self, q: Array) -> PairValues: ...
    def kernel(self, q: Array) -> Kernel:
        """Return the kernel at q, in the user's units."""
        ...

    def q_of(self, kernel: Kernel, noise: float) -> Array:
        """Return the q of a kernel that `kernel` returned, and of a noise in units of the variance of y."""
        ...

    def restricted(self, rows: Numbers) -> Covariance:
        """Return the same function of q at some of the points."""
        ...


class PairwiseMatern:
    """The default kernel, Matern-5/2 with everything unknown: q = (log variance, log lengthscales, log noise).

    The squared differences of all pairs are computed once for each lengthscale. Then an evaluation takes one
    exponential for each pair, and a derivative one product with the squares. An evaluation overwrites the values of the
    last one: allocating new memory each time would cost as much as the exponentials.
    """

    def __init__(self, x: Array, span: Array, groups: tuple[int, ...], scale: float) -> None:
        self._x, self._span, self._groups, self._scale = x, span, np.asarray(groups), scale
        parameters = max(groups) + 1
        self._firsts = [groups.index(group) for group in range(parameters)]
        self.unknowns = _unknowns_of_matern(parameters)
        self.pairs = pairs = Pairs(len(x))
        unit = x / span
        self._squares = np.zeros((parameters, len(pairs.at)))
        for k, group in enumerate(groups):
            self._squares[group] += (unit[pairs.i, k] - unit[pairs.j, k]) ** 2
        self._k, self._fall = np.empty((2, len(pairs.at)))

    def __call__(self, q: Array) -> PairValues:
        """O(n^2 p)."""
        variance, weight = math.exp(q[0]), np.exp(-2.0 * q[1:-1])  # weight is 1 / l^2
        k, fall, s = self._k, self._fall, self.pairs.scratch  # fall is -2 d k / d r^2
        np.matmul(5.0 * weight, self._squares, out=s)  # k = v (1 + s + s^2 / 3) exp(-s), s^2 = 5 r^2
        np.multiply(s, 1.0 / 3.0, out=k)
        np.sqrt(s, out=s)
        np.negative(s, out=fall)
        np.exp(fall, out=fall)
        fall *= variance
        s += 1.0
        k += s
        k *= fall
        fall *= s
        fall *= 5.0 / 3.0

        def pull(by_pair: Array, by_diagonal: Array, gradient: Array) -> None:
            gradient[0] += float(by_pair @ k) + 0.5 * variance * float(by_diagonal.sum())
            by_pair *= fall  # d k / d log l = fall (x - z)^2 / l^2
            gradient[1:-1] += weight * (self._squares @ by_pair)

        return PairValues(k, variance, pull)

    def kernel(self, q: Array) -> Kernel:
        """Return the kernel at q, in the user's units."""
        values = np.exp(q)
        lengthscale = values[1:-1][self._groups] * self._span
        return Matern(nu=2.5, lengthscale=lengthscale, variance=float(values[0]) * self._scale**2)

    def q_of(self, kernel: Kernel, noise: float) -> Array:
        """Return the q of such a kernel, and of a noise in units of the variance of y."""
        variance, *lengthscales = np.exp(kernel.theta)
        unit = (np.array(lengthscales) / self._span)[self._firsts]
        q: Array = np.log([variance / self._scale**2, *unit, max(noise, LEAST)])
        return q

    def restricted(self, rows: Numbers) -> PairwiseMatern:
        """Return the same function of q at some of the points."""
        return PairwiseMatern(self._x[rows], self._span, tuple(self._groups), self._scale)


@lru_cache(maxsize=4)
def _unknowns_of_matern(parameters: int) -> Unknowns:
    return Unknowns.of([1.0, *[None] * parameters], parameters)
