"""K as a function of the unknowns where f is measured at several levels, or related to others (`kernels.levels`)."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Numbers
from gpmi.gp.kernels import Kernel, Levels, Mapped, Matern
from gpmi.model.fitting.covariance import Pairs, PairValues, PairwiseMatern
from gpmi.model.fitting.feature_covariance import PairwiseFeatures
from gpmi.model.fitting.unknowns import Unknowns
from gpmi.space.features import FeatureColumns

# Normal priors of the logarithm of a level's size and of artanh of a correlation, (mean, sd), and their bounds. A
# coarse level is expected to be of the same size, and to agree in tendency: the correlation is 0.46 to 0.96 within one
# sd, and below 0 in one case of eight. Our choice, not tuned.
_LOG_SIZE, _BOUNDS_SIZE = (0.0, 1.0), (-4.0, 4.0)
_CORRELATION, _BOUNDS_CORRELATION = (1.2, 1.0), (-5.0, 5.0)
# The same for an earlier study: the correlation is 0.76 to 0.9999 within one sd, and below 0 in one case of fifteen. A
# fit starts on both sides of 0. Chosen among (1.2, 1), (2, 1), (2, 1.5) and (3, 2) on the development problems of
# docs/benchmarks/transfer.md: a narrower one needs more values to believe in a source that is right.
_SOURCE_CORRELATION = (3.0, 2.0)
_CURVATURE = 0.1  # as in `unknowns`: our guess

_OFFSET = 1.0  # the prior variance of a level's unknown constant, in units of the variance of y; our choice
_FAR = 1e30  # a lengthscale along which nothing changes


class LevelColumn(NamedTuple):
    """Which coordinate is the level, and how many levels there are."""

    column: int
    levels: int
    star: bool = False  # whether the levels are functions of earlier studies, each related to the last one alone


class PairwiseLevels:
    """`PairwiseMatern` times the coupling of the levels, all unknown.

    q = (log variance at the target, log lengthscales, log sizes of the other levels, artanh of the correlations of
    neighbours, log noise).
    """

    def __init__(
        self,
        x: Array,
        span: Array,
        groups: tuple[int, ...],
        scale: float,
        levels: LevelColumn,
        features: FeatureColumns | None = None,
    ) -> None:
        self._x, self._span, self._groups, self._scale, self._levels = x, span, groups, scale, levels
        self._features = features
        column, self._own = levels.column, groups[levels.column]
        others = tuple(g - (g > self._own) for k, g in enumerate(groups) if k != column)
        points, widths = np.delete(x, column, axis=1), np.delete(span, column)
        self._inner: PairwiseMatern | PairwiseFeatures
        if features is None:
            self._inner = PairwiseMatern(points, widths, others, scale)
        else:
            self._inner = PairwiseFeatures(points, widths, others, scale, features.without(column, self._own))
        self.pairs: Pairs = self._inner.pairs
        self._at = np.asarray(np.round(x[:, column]), dtype=np.intp)
        self._of_pairs = self._at[self.pairs.i], self._at[self.pairs.j]
        self._flat = self._of_pairs[0] * levels.levels + self._of_pairs[1]
        correlation = _SOURCE_CORRELATION if levels.star else _CORRELATION
        self.unknowns = _unknowns(self._inner.unknowns, levels.levels - 1, correlation)

    def _levels_at(self, q: Array, base: Kernel, offset: float) -> Levels:
        k = self._levels.levels - 1
        sizes, correlations = np.exp(q[-1 - 2 * k : -1 - k]).tolist(), np.tanh(q[-1 - k : -1]).tolist()
        return Levels(base, self._levels.column, tuple(sizes), tuple(correlations), offset, self._levels.star)

    def __call__(self, q: Array) -> PairValues:
        """O(n^2 p)."""
        added = 2 * (self._levels.levels - 1)
        q_inner = np.append(q[: -1 - added], q[-1])
        inner, kernel = self._inner(q_inner), self._levels_at(q, Matern(), _OFFSET)
        coupling, count = kernel.coupling, self._levels.levels
        by_pair, at = coupling[self._of_pairs], self._at
        constant = np.where(at == count - 1, 0.0, _OFFSET)
        values = by_pair * inner.by_pair
        values += np.where(self._of_pairs[0] == self._of_pairs[1], constant[self.pairs.i], 0.0)
        diagonal = coupling[at, at] * inner.diagonal + constant

        def pull(weights: Array, by_diagonal: Array, gradient: Array) -> None:
            by_pairs = np.bincount(self._flat, weights * inner.by_pair, count * count).astype(float)
            summed: Array = by_pairs.reshape(count, count) + np.diag(
                np.bincount(at, 0.5 * by_diagonal * inner.diagonal, count)
            )
            gradient[-1 - added : -1] += kernel.coupling_gradient(summed)
            part = np.zeros(len(q_inner))
            inner.pull(weights * by_pair, by_diagonal * coupling[at, at], part)
            gradient[: -1 - added] += part[:-1]

        return PairValues(values, diagonal, pull)

    def kernel(self, q: Array) -> Kernel:
        """Return the kernel at q, in the user's units."""
        added = 2 * (self._levels.levels - 1)
        base = self._inner.kernel(np.append(q[: -1 - added], q[-1]))
        matern = base.base if isinstance(base, Mapped) else base
        assert isinstance(matern, Matern)
        scales = np.insert(np.asarray(matern.lengthscale), self._levels.column, _FAR)
        full: Kernel = replace(matern, lengthscale=scales)
        if self._features is not None:
            full = Mapped(full, self._features.matrix)
        return self._levels_at(q, full, _OFFSET * self._scale**2)

    def q_of(self, kernel: Kernel, noise: float) -> Array:
        """Return the q of such a kernel, and of a noise in units of the variance of y."""
        assert isinstance(kernel, Levels)
        matern = kernel.base.base if isinstance(kernel.base, Mapped) else kernel.base
        assert isinstance(matern, Matern)
        part: Kernel = replace(matern, lengthscale=np.delete(np.asarray(matern.lengthscale), self._levels.column))
        if isinstance(kernel.base, Mapped):
            part = Mapped(part, np.delete(kernel.base.matrix, self._levels.column, axis=0))
        q_inner = self._inner.q_of(part, noise)
        return np.concatenate([q_inner[:-1], np.log(kernel.sizes), np.arctanh(kernel.correlations), q_inner[-1:]])

    def restricted(self, rows: Numbers) -> PairwiseLevels:
        """Return the same function of q at some of the points."""
        return PairwiseLevels(self._x[rows], self._span, self._groups, self._scale, self._levels, self._features)


def _unknowns(inner: Unknowns, count: int, correlation: tuple[float, float]) -> Unknowns:
    """Return the unknowns of the inner kernel with those of the levels, before the noise."""

    def joined(base: Array, size: float, related: float) -> Array:
        return np.concatenate([base[:-1], np.full(count, size), np.full(count, related), base[-1:]])

    return Unknowns(
        joined(inner.centre, _LOG_SIZE[0], correlation[0]),
        joined(inner.width, _LOG_SIZE[1], correlation[1]),
        joined(inner.lo, _BOUNDS_SIZE[0], _BOUNDS_CORRELATION[0]),
        joined(inner.hi, _BOUNDS_SIZE[1], _BOUNDS_CORRELATION[1]),
        joined(inner.curvature, _CURVATURE, _CURVATURE),
    )
