"""The kernel of a function that is measured at several levels, or related to others; the last one counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpmi._support.types import Array, Numbers
from gpmi.gp.kernels.base import Kernel, Pullback


@dataclass(frozen=True)
class Levels(Kernel):
    """k((x, l), (z, m)) = B_lm k(x, z) + C_lm for levels l, m = 0, ..., L - 1, numbered by one coordinate.

    The levels are a chain: f_l = a_l f_(l-1) + a new function, where each function has the kernel k up to its size. So
    B_lm = s_l s_m r_(l+1) ... r_m for l < m, with the sizes s_l and the correlations r_l in (-1, 1) of neighbours; the
    last size is 1. C is diagonal: each level but the last has an unknown constant added, N(0, offset).

    With `star` they are functions of earlier studies, each related to the last one alone: f_l = s_l (r_l f_(L-1) + a
    new function). So r_l is the correlation with the last one, and B_lm = s_l s_m r_l r_m for l != m, with r_(L-1) = 1.

    `base` is k. It takes all coordinates, and must not depend on that of the level.
    """

    base: Kernel
    column: int  # the coordinate of the level
    sizes: tuple[float, ...]  # s_0, ..., s_(L-2)
    correlations: tuple[float, ...]  # r_1, ..., r_(L-1)
    offset: float
    star: bool = False

    def levels(self, x: Array) -> Numbers:
        """Return the levels (n,) of points (n, d)."""
        return np.asarray(np.round(x[:, self.column]), dtype=np.intp)

    @cached_property
    def coupling(self) -> Array:
        """B, (L, L)."""
        sizes = np.array([*self.sizes, 1.0])
        correlations = star_correlations if self.star else chain_correlations
        coupling: Array = np.multiply.outer(sizes, sizes) * correlations(np.array(self.correlations))
        return coupling

    @cached_property
    def _constants(self) -> Array:
        count = len(self.sizes) + 1
        return np.diag(np.r_[np.full(count - 1, self.offset), 0.0])

    def __call__(self, x: Array, z: Array) -> Array:
        at = np.ix_(self.levels(x), self.levels(z))
        return self.coupling[at] * self.base(x, z) + self._constants[at]

    def diagonal(self, x: Array) -> Array:
        levels = self.levels(x)
        result: Array = self.coupling[levels, levels] * self.base.diagonal(x) + self._constants[levels, levels]
        return result

    def diagonal_gradient(self, x: Array) -> Array:
        levels = self.levels(x)
        result: Array = self.coupling[levels, levels][:, None] * self.base.diagonal_gradient(x)
        return result

    def with_input_pullback(self, x: Array, z: Array) -> tuple[Array, Pullback]:
        at = np.ix_(self.levels(x), self.levels(z))
        k, pull = self.base.with_input_pullback(x, z)
        coupling = self.coupling[at]
        return coupling * k + self._constants[at], lambda w: pull(coupling * w)

    def with_theta_pullback(self, x: Array) -> tuple[Array, Pullback]:
        levels = self.levels(x)
        at = np.ix_(levels, levels)
        k, pull = self.base.with_theta_pullback(x)
        coupling = self.coupling[at]

        def pulled(w: Array) -> Array:
            by_theta = self.coupling_gradient(sums_by_level(w * k, levels, len(self.coupling)))
            by_offset = self.offset * float(np.trace(sums_by_level(w, levels, len(self.coupling))[:-1, :-1]))
            return np.concatenate([pull(coupling * w), by_theta, [by_offset]])

        return coupling * k + self._constants[at], pulled

    def coupling_gradient(self, by_coupling: Array) -> Array:
        """Return the derivatives by log sizes and artanh of the correlations, given those by B, (L, L)."""
        weighted = by_coupling * self.coupling
        by_sizes = (weighted.sum(axis=0) + weighted.sum(axis=1))[:-1]
        by_correlations = []
        for i, r in enumerate(self.correlations):  # between the levels i and i + 1
            across = self._without(i)
            if self.star:
                across[i, i] = 0.0
                sums = (by_coupling * across)[i].sum() + (by_coupling * across)[:, i].sum()
                by_correlations.append((1.0 - r * r) * float(sums))
                continue
            sums = (by_coupling * across)[: i + 1, i + 1 :].sum() + (by_coupling * across)[i + 1 :, : i + 1].sum()
            by_correlations.append((1.0 - r * r) * float(sums))
        return np.concatenate([by_sizes, by_correlations])

    def _without(self, i: int) -> Array:
        """Return B with r_i replaced by 1: its derivative by r_i, for the pairs of levels that depend on it."""
        others = tuple(1.0 if j == i else r for j, r in enumerate(self.correlations))
        return replace(self, correlations=others).coupling

    @property
    def theta(self) -> Array:
        with np.errstate(divide="ignore"):
            coupling = [*np.log(self.sizes), *np.arctanh(self.correlations), np.log(self.offset)]
        return np.concatenate([self.base.theta, coupling])

    def with_theta(self, theta: Array) -> Kernel:
        count = len(self.sizes)
        p = len(theta) - 2 * count - 1
        return replace(
            self,
            base=self.base.with_theta(theta[:p]),
            sizes=tuple(np.exp(theta[p : p + count]).tolist()),
            correlations=tuple(np.tanh(theta[p + count : p + 2 * count]).tolist()),
            offset=float(np.exp(theta[-1])),
        )

    @property
    def dim(self) -> int | None:
        return self.base.dim

    def reach(self, d: int) -> Array:
        reach = self.base.reach(d).copy()
        reach[self.column] = np.inf
        return reach


def chain_correlations(r: Array) -> Array:
    """Return the correlations (L, L) of the levels of a chain, given those of neighbours (L - 1,)."""
    count = len(r) + 1
    correlations = np.eye(count)
    for i in range(count):
        for j in range(i + 1, count):
            correlations[i, j] = correlations[j, i] = correlations[i, j - 1] * r[j - 1]
    return correlations


def star_correlations(r: Array) -> Array:
    """Return the correlations (L, L) of functions that are related by the last one, given those with it (L - 1,)."""
    whole = np.append(r, 1.0)
    correlations: Array = np.multiply.outer(whole, whole)
    correlations[np.diag_indices(len(whole))] = 1.0
    return correlations


def sums_by_level(w: Array, levels: Numbers, count: int) -> Array:
    """Return the sums of w (n, n) over the pairs of each two levels, (count, count)."""
    sums = np.zeros((count, count))
    np.add.at(sums, (levels[:, None], levels[None, :]), w)
    return sums
