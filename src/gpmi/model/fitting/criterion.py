"""What a fit optimises: the evidence log p(y | q) of the unknowns q. `leave_one_out` has the other criterion.

The loss is -(criterion + log p(q)), without constants. y is standardised; the mean of f is constant and unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.kernels import Kernel
from gpmi.gp.linalg import Inverted, invert, whiten
from gpmi.model.fitting.covariance import EXACT, Covariance, PairPullback, PairwiseMatern
from gpmi.model.fitting.data import subset
from gpmi.model.fitting.feature_covariance import PairwiseFeatures
from gpmi.model.fitting.level_covariance import LevelColumn, PairwiseLevels
from gpmi.model.fitting.row_noise import RowNoise
from gpmi.model.fitting.source_rows import SourceRows
from gpmi.model.fitting.template_covariance import template_covariance
from gpmi.model.fitting.unknowns import DEFAULT, Unknowns
from gpmi.space.features import FeatureColumns

NO_FIT = 1e100  # stands for an infinite loss, where C is not positive definite
MEAN_SD = 1.0  # the constant mean has the prior N(0, 1), in standard deviations of y; our choice, not tuned


class Solved(NamedTuple):
    """C at one q, inverted."""

    inverted: Inverted  # of C, with b = (y, 1)
    mean: float
    noise: float
    pull: PairPullback


class Criterion:
    """The loss at q for standardised y (n,), by the evidence. The noise is learned if it is None.

    With `noises` a row may have its own noise, or be the mean of several values; the loss is that of all values.
    """

    def __init__(self, covariance: Covariance, y: Array, noise: float | None, noises: RowNoise | None = None) -> None:
        self.covariance, self.y, self._noise, self._noises = covariance, y, noise, noises
        self.unknowns: Unknowns = covariance.unknowns
        n = len(y)
        self._b = np.stack([y, np.ones(n)], axis=1)
        self._c = np.empty((n, n))  # overwritten by every evaluation, as in PairwiseMatern
        self._entries, self._diagonal = self._c.reshape(-1), self._c.reshape(-1)[:: n + 1]  # views of it
        self._last: tuple[bytes, Solved | None] | None = None  # the last q and its result

    def on_at_most(self, size: int) -> Criterion:
        """Return the same function of q for at most `size` of the observations."""
        if len(self.y) <= size:
            return self
        rows = subset(self.y, size)
        noises = None if self._noises is None else self._noises.at(rows)
        return type(self)(self.covariance.restricted(rows), self.y[rows], self._noise, noises)

    @property
    def values(self) -> int:
        """The number of values behind the rows."""
        return len(self.y) if self._noises is None else int(self._noises.values.sum())

    def noise(self, q: Array) -> float:
        """Return the noise variance at q, or the fixed one."""
        return float(np.exp(q)[-1]) if self._noise is None else self._noise

    def mean(self, q: Array) -> float:
        """Return the most probable constant mean given q."""
        solved = self.solve(q) if len(self.y) else None
        return 0.0 if solved is None else solved.mean

    def misfit(self, q: Array) -> float:
        """Return the mean square of the standardised residuals. Its expectation is 1 if q is true."""
        solved = self.solve(q) if len(self.y) else None
        return 0.0 if solved is None else self._mean_square(solved)

    def _mean_square(self, solved: Solved) -> float:
        """Return the mean square of the whitened y."""
        weights = solved.inverted.solution @ np.array([1.0, -solved.mean])
        within = 0.0 if self._noises is None else float((self._noises.within / self._noises.each(solved.noise)).sum())
        return (float(weights @ (self.y - solved.mean)) + within) / self.values

    def loss(self, q: Array) -> tuple[float, Array]:
        """Return -(criterion + log p(q)) and its gradient. O(n^3 + n^2 p)."""
        solved = self.solve(q)
        if solved is None:
            return NO_FIT, np.zeros_like(q)
        value, by_pair, by_diagonal, by_noise = self._minus_criterion(solved)
        off = (q - self.unknowns.centre) / self.unknowns.width
        gradient = off / self.unknowns.width
        if self._noise is None:
            gradient[-1] += by_noise
        solved.pull(by_pair, by_diagonal, gradient)
        return value + 0.5 * float(off @ off), gradient

    def surprisal(self, q: Array) -> float:
        """Return -log p(y, q) without constants, the mean integrated out. O(n^3), no gradient.

        It is the evidence, whatever the criterion is. With m ~ N(0, s^2) and its most probable value m', it is the loss
        of the evidence at m' plus half the logarithm of the precision of m given y, 1^T C^-1 1 + s^-2.
        """
        noise, _ = self._fill(q)
        whitened = whiten(self._c, self._b)
        if whitened is None:
            return NO_FIT
        (by_y, by_one), logdet = whitened.columns.T, whitened.logdet
        precision = float(by_one @ by_one) + MEAN_SD**-2
        fit = float(by_y @ by_y) - float(by_y @ by_one) ** 2 / precision
        off = (q - self.unknowns.centre) / self.unknowns.width
        within = 0.0 if self._noises is None else self._noises.minus_log_within(noise)[0]
        return 0.5 * (fit + logdet + math.log(precision) + float(off @ off)) + within

    def _fill(self, q: Array) -> tuple[float, PairPullback]:
        """Write C at q into its buffer; return the noise and the pullback."""
        self._last = None
        values = self.covariance(q)
        noise = math.exp(q[-1]) if self._noise is None else self._noise
        self._entries[self.covariance.pairs.at] = values.by_pair
        self._diagonal[:] = values.diagonal + (noise if self._noises is None else self._noises.of_rows(noise))
        return noise, values.pull

    def solve(self, q: Array) -> Solved | None:
        """Return C at q, inverted; None where it is not positive definite. Cached, because the mean is read after a
        descent.
        """
        key = q.tobytes()
        if self._last is None or self._last[0] != key:
            noise, pull = self._fill(q)
            inverted, solved = invert(self._c, self._b), None
            if inverted is not None:
                by_y, by_one = inverted.solution.sum(axis=0).tolist()  # 1^T C^-1 y and 1^T C^-1 1
                solved = Solved(inverted, by_y / (by_one + MEAN_SD**-2), noise, pull)
            self._last = key, solved
        return self._last[1]

    def _minus_criterion(self, solved: Solved) -> tuple[float, Array, Array, float]:
        """Return -log p(y | q) - n/2 log 2 pi, maximised over the mean m, and its derivatives.

        These are 2 d / d C by pair and diagonal, and d / d log noise. With m ~ N(0, MEAN_SD^2) the value is 1/2 (r^T
        C^-1 r + log det C + m^2 / MEAN_SD^2), r = y - m. Its derivative by C is 1/2 (C^-1 - w w^T) with w = C^-1 r.
        """
        inverse, solution, logdet = solved.inverted
        pairs = self.covariance.pairs
        weights = solution[:, 0] - solved.mean * solution[:, 1]
        fit = float(weights @ (self.y - solved.mean))
        by_pair = np.take(inverse, pairs.at, out=pairs.scratch, mode="clip")
        by_pair -= weights[pairs.i] * weights[pairs.j]
        value, by_diagonal = (
            0.5 * (fit + logdet + (solved.mean / MEAN_SD) ** 2),
            inverse.diagonal() - weights * weights,
        )
        if self._noises is None:
            return value, by_pair, by_diagonal, 0.5 * solved.noise * float(by_diagonal.sum())
        within, slope = self._noises.minus_log_within(solved.noise)
        by_noise = slope + 0.5 * float(by_diagonal @ self._noises.slope_of_rows(solved.noise))
        return value + within, by_pair, by_diagonal, by_noise


@dataclass(frozen=True, eq=False)
class FitSetting:
    """The unknowns of a fit, the space, and the criterion."""

    template: Kernel  # hyper-parameters that are None are learned
    noise_var: float | None  # None if it is learned
    span: Array  # (d,), the width of the space
    groups: tuple[int, ...]  # (d,), the parameter of each coordinate; coordinates of one parameter share a lengthscale
    kind: type[Criterion] = Criterion  # what is maximised: the marginal likelihood, or that of `LeaveOneOut`
    levels: LevelColumn | None = None  # of a fidelity with levels; None for any other space
    features: FeatureColumns | None = None  # of options with descriptors; None if there are none
    sources: SourceRows | None = None  # the values of earlier studies, to whose functions f is related

    @property
    def all_unknown(self) -> bool:
        """Whether no part of the prior is fixed. Only then may y be transformed."""
        return self.noise_var is None and bool(np.isnan(self.template.theta).all())

    @property
    def by_evidence(self) -> FitSetting:
        """The same with the marginal likelihood as the criterion."""
        return replace(self, kind=Criterion)

    @cached_property
    def _is_default(self) -> bool:
        d = len(self.span)
        return self.template.for_dim(d) == DEFAULT.for_dim(d)

    def criterion(self, x: Array, y: Array, scale: float, noises: RowNoise | None = None) -> Criterion:
        """Return the criterion at x (n, d), in the user's coordinates, for standardised y (n,) whose sd was `scale`."""
        covariance: Covariance
        if self.sources is not None:
            rows, y, noises = self.sources.for_fit().with_rows(x, y, noises)
            span, groups = np.append(self.span, 1.0), (*self.groups, max(self.groups) + 1)
            features = None if self.features is None else self.features.with_column()
            covariance = PairwiseLevels(rows, span, groups, scale, self.sources.column, features)
        elif self.levels is not None:
            covariance = PairwiseLevels(x, self.span, self.groups, scale, self.levels, self.features)
        elif self._is_default and self.features is not None:
            covariance = PairwiseFeatures(x, self.span, self.groups, scale, self.features)
        elif self._is_default:
            covariance = PairwiseMatern(x, self.span, self.groups, scale)
        else:
            covariance = template_covariance(self.template.for_dim(x.shape[1]), x, self.span, self.groups, scale)
        noise = None if self.noise_var is None else max(self.noise_var / scale**2, EXACT)
        return self.kind(covariance, y, noise, noises)
