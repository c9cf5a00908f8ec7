"""The criterion of a fit: the evidence log p(y | q) of the unknowns q, or how well they predict each y from the others.

The loss is -(criterion + log p(q)), without constants. y is standardised; the mean of f is constant and unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpmi.gp.kernels import Kernel
from gpmi.gp.linalg import Inverted, invert, whiten
from gpmi.prior.covariance import EXACT, Covariance, PairPullback, PairwiseMatern, filled
from gpmi.prior.data import subset
from gpmi.prior.unknowns import DEFAULT, Unknowns
from gpmi.types import Array

NO_FIT = 1e100  # stands for an infinite loss, where C is not positive definite
_MEAN_SD = 1.0  # the constant mean has the prior N(0, 1), in standard deviations of y; our choice, not tuned


def leave_one_out(precision: Array, y: Array) -> tuple[float, Array]:
    """-sum_i log p(y_i | the other y) - n/2 log 2 pi for y ~ N(0, C), and twice its derivative by C. O(n^3).

    With P = C^-1 and w = P y, y_i given the others is N(y_i - w_i / P_ii, 1 / P_ii), so the sum is
    1/2 sum_i (w_i^2 / P_ii - log P_ii), and dP = -P dC P (Rasmussen and Williams, 5.10 to 5.13).
    """
    weights, diagonal = precision @ y, precision.diagonal().copy()
    ratio = weights / diagonal
    u = precision @ ratio
    by_c = (precision * ((1.0 + weights * ratio) / diagonal)) @ precision
    cross = np.multiply.outer(u, weights)
    by_c -= cross
    by_c -= cross.T
    return 0.5 * float(weights @ ratio - np.log(diagonal).sum()), by_c


class _Solved(NamedTuple):
    """C at one q, inverted."""

    inverted: Inverted  # of C, with b = (y, 1)
    mean: float
    noise: float
    pull: PairPullback


class Criterion:
    """The loss at q for standardised y (n,), by the evidence or by leave-one-out. Noise that is None is learned."""

    def __init__(self, covariance: Covariance, y: Array, noise: float | None, loo: bool) -> None:
        self.covariance, self.y, self._noise, self._loo = covariance, y, noise, loo
        self.unknowns: Unknowns = covariance.unknowns
        n = len(y)
        self._b = np.stack([y, np.ones(n)], axis=1)
        self._c = np.empty((n, n))  # overwritten by every evaluation, as in PairwiseMatern

    def on_at_most(self, size: int) -> Criterion:
        """The same function of q for at most `size` of the observations."""
        if len(self.y) <= size:
            return self
        rows = subset(self.y, size)
        return Criterion(self.covariance.restricted(rows), self.y[rows], self._noise, self._loo)

    def noise(self, q: Array) -> float:
        """The noise at q, or the one that is given."""
        return float(np.exp(q)[-1]) if self._noise is None else self._noise

    def mean(self, q: Array) -> float:
        """The most probable constant mean given q."""
        solved = self._solve(q) if len(self.y) else None
        return 0.0 if solved is None else solved.mean

    def misfit(self, q: Array) -> float:
        """The mean square of the whitened y, or of each y given the others (loo): 1 in the mean if it is true."""
        solved = self._solve(q) if len(self.y) else None
        if solved is None:
            return 0.0
        if self._loo:
            precision = self._precision(solved)
            return float(np.mean((precision @ self.y) ** 2 / precision.diagonal()))
        weights = solved.inverted.solution @ np.array([1.0, -solved.mean])
        return float(weights @ (self.y - solved.mean)) / len(self.y)

    def loss(self, q: Array) -> tuple[float, Array]:
        """-(criterion + log p(q)) and its gradient. O(n^3 + n^2 p)."""
        solved = self._solve(q)
        if solved is None:
            return NO_FIT, np.zeros_like(q)
        value, by_pair, by_diagonal = self._minus_loo(solved) if self._loo else self._minus_evidence(solved)
        off = (q - self.unknowns.centre) / self.unknowns.width
        gradient = off / self.unknowns.width
        if self._noise is None:
            gradient[-1] += 0.5 * solved.noise * float(by_diagonal.sum())
        solved.pull(by_pair, by_diagonal, gradient)
        return value + 0.5 * float(off @ off), gradient

    def surprisal(self, q: Array) -> float:
        """-log p(y, q) without constants, the mean integrated out; the evidence in any case. O(n^3), no gradient.

        With m ~ N(0, s^2) and its most probable value m' it is the loss of the evidence at m' plus half the logarithm
        of the precision of m given y, 1^T C^-1 1 + s^-2.
        """
        self._fill(q)
        whitened = whiten(self._c, self._b)
        if whitened is None:
            return NO_FIT
        (by_y, by_one), logdet = whitened.columns.T, whitened.logdet
        precision = float(by_one @ by_one) + _MEAN_SD**-2
        fit = float(by_y @ by_y) - float(by_y @ by_one) ** 2 / precision
        off = (q - self.unknowns.centre) / self.unknowns.width
        return 0.5 * (fit + logdet + math.log(precision) + float(off @ off))

    def _fill(self, q: Array) -> tuple[float, PairPullback]:
        """Write C at q into its place; returns the noise and the pullback."""
        values, n = self.covariance(q), len(self.y)
        noise = math.exp(q[-1]) if self._noise is None else self._noise
        flat = self._c.reshape(-1)
        flat[self.covariance.pairs.at] = values.by_pair
        flat[:: n + 1] = values.diagonal + noise
        return noise, values.pull

    def _solve(self, q: Array) -> _Solved | None:
        noise, pull = self._fill(q)
        inverted = invert(self._c, self._b)
        if inverted is None:
            return None
        by_y, by_one = inverted.solution.sum(axis=0)  # 1^T C^-1 y and 1^T C^-1 1
        return _Solved(inverted, float(by_y / (by_one + _MEAN_SD**-2)), noise, pull)

    def _minus_evidence(self, solved: _Solved) -> tuple[float, Array, Array]:
        """-log p(y | q) - n/2 log 2 pi, maximised over the mean m, and 2 d / d C by pair and diagonal.

        With m ~ N(0, _MEAN_SD^2) it is 1/2 (r^T C^-1 r + log det C + m^2 / _MEAN_SD^2), r = y - m, whose derivative
        by C is 1/2 (C^-1 - w w^T) with w = C^-1 r.
        """
        inverse, solution, logdet = solved.inverted
        pairs = self.covariance.pairs
        weights = solution[:, 0] - solved.mean * solution[:, 1]
        fit = float(weights @ (self.y - solved.mean))
        by_pair = np.take(inverse, pairs.at, out=pairs.scratch, mode="clip")
        by_pair -= weights[pairs.i] * weights[pairs.j]
        return 0.5 * (fit + logdet + (solved.mean / _MEAN_SD) ** 2), by_pair, inverse.diagonal() - weights * weights

    def _minus_loo(self, solved: _Solved) -> tuple[float, Array, Array]:
        """-sum_i log p(y_i | the other y, q) - n/2 log 2 pi, and 2 d / d C by pair and diagonal."""
        value, by_c = leave_one_out(self._precision(solved), self.y)
        return value, by_c.ravel()[self.covariance.pairs.at], by_c.diagonal()

    def _precision(self, solved: _Solved) -> Array:
        """The inverse of C + _MEAN_SD^2 1 1^T, the covariance of y without the mean given: Sherman and Morrison."""
        lower, solution, _ = solved.inverted
        pairs, ones = self.covariance.pairs, solution[:, 1]
        precision = pairs.matrix(lower.ravel()[pairs.at], lower.diagonal())
        precision -= np.multiply.outer(ones / (_MEAN_SD**-2 + float(ones.sum())), ones)
        return precision


@dataclass(frozen=True, eq=False)
class Setting:
    """What is to be learned, on which space, and by which criterion."""

    template: Kernel  # what is None is learned
    noise_var: float | None
    span: Array  # (d,), the width of the space
    groups: tuple[int, ...]  # (d,), the parameter of each coordinate; the coordinates of one share a lengthscale
    loo: bool = False  # the leave-one-out predictive likelihood in place of the marginal likelihood

    @property
    def all_unknown(self) -> bool:
        """Whether nothing of the prior is given. Only then may y be transformed."""
        return self.noise_var is None and bool(np.isnan(self.template.theta).all())

    def criterion(self, x: Array, y: Array, scale: float) -> Criterion:
        """The criterion at x (n, d), in the user's coordinates, for standardised y (n,), whose sd was `scale`."""
        template = self.template.for_dim(x.shape[1])
        covariance: Covariance
        if template == DEFAULT.for_dim(x.shape[1]):
            covariance = PairwiseMatern(x, self.span, self.groups, scale)
        else:
            covariance = filled(template, x, self.span, self.groups, scale)
        noise = None if self.noise_var is None else max(self.noise_var / scale**2, EXACT)
        return Criterion(covariance, y, noise, self.loo)
