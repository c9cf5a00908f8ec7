"""The criterion of `fit="loo"`: how well the unknowns predict each y from the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array
from gpmi.model.fitting.criterion import MEAN_SD, Criterion, Solved
from gpmi.model.fitting.row_noise import RowNoise


def leave_one_out(precision: Array, y: Array) -> tuple[float, Array]:
    """Return -sum_i log p(y_i | the other y) - n/2 log 2 pi for y ~ N(0, C), and twice its derivative by C. O(n^3).

    With P = C^-1 and w = P y, y_i given the others is N(y_i - w_i / P_ii, 1 / P_ii). So the sum is 1/2 sum_i (w_i^2 /
    P_ii - log P_ii), and dP = -P dC P (Rasmussen and Williams, 5.10 to 5.13).
    """
    weights, diagonal = precision @ y, precision.diagonal().copy()
    ratio = weights / diagonal
    u = precision @ ratio
    by_c = (precision * ((1.0 + weights * ratio) / diagonal)) @ precision
    cross = np.multiply.outer(u, weights)
    by_c -= cross
    by_c -= cross.T
    return 0.5 * float(weights @ ratio - np.log(diagonal).sum()), by_c


class LeftOut(NamedTuple):
    """The results of `leave_one_out_of_values`."""

    value: float
    by_c: Array  # (n, n), twice the derivative by C
    by_v: Array  # (n,), the derivative by the noise variance of each value, without the part through C
    misfit: float  # the mean square of the standardised residuals


def leave_one_out_of_values(precision: Array, y: Array, noises: RowNoise, s: float) -> LeftOut:
    """Do what `leave_one_out` does for the values behind the rows: each is left out alone. O(n^3).

    P and w = P y belong to the rows. Take a row with k values of noise variance v each. In the model of all values,
    value j has the weight w_j = (y_j - y) / v + w / k and the precision p = (1 - 1 / k) / v + P_ii / k^2. So the row
    adds 1/2 ((within / v^2 + w^2 / k) / p - k log p) to the sum.
    """
    k, v, weights = noises.values, noises.each(s), precision @ y
    p = (1.0 - 1.0 / k) / v + precision.diagonal() / k**2
    squares = noises.within / v**2 + weights**2 / k
    by_p = -0.5 * (squares / p + k) / p
    ratio = weights / (k * p)  # d / d w
    u = precision @ ratio
    by_c = (precision * (-2.0 * by_p / k**2)) @ precision
    cross = np.multiply.outer(u, weights)
    by_c -= cross
    by_c -= cross.T
    by_v = -noises.within / (v**3 * p) - by_p * (1.0 - 1.0 / k) / v**2
    value = 0.5 * float((squares / p - k * np.log(p)).sum())
    return LeftOut(value, by_c, by_v, float((squares / p).sum() / k.sum()))


class LeaveOneOut(Criterion):
    """The loss at q for standardised y (n,), by leave-one-out."""

    def _mean_square(self, solved: Solved) -> float:
        """Return the mean square of the standardised residuals of each y given the others."""
        precision = precision_of(self, solved)
        if self._noises is not None:
            return leave_one_out_of_values(precision, self.y, self._noises, solved.noise).misfit
        return float(np.mean((precision @ self.y) ** 2 / precision.diagonal()))

    def _minus_criterion(self, solved: Solved) -> tuple[float, Array, Array, float]:
        """Return -sum_i log p(y_i | the other y, q) - n/2 log 2 pi, 2 d / d C by pair and diagonal, d / d log noise."""
        precision = precision_of(self, solved)
        if self._noises is None:
            value, by_c = leave_one_out(precision, self.y)
            by_noise = 0.5 * solved.noise * float(by_c.diagonal().sum())
        else:
            value, by_c, by_v, _ = leave_one_out_of_values(precision, self.y, self._noises, solved.noise)
            by_noise = float(by_v @ (solved.noise / self._noises.repeats))
            by_noise += 0.5 * float(by_c.diagonal() @ self._noises.slope_of_rows(solved.noise))
        return value, by_c.ravel()[self.covariance.pairs.at], by_c.diagonal(), by_noise


def precision_of(criterion: Criterion, solved: Solved) -> Array:
    """Return the inverse of C + MEAN_SD^2 1 1^T, the covariance of y if the mean is unknown (Sherman and Morrison)."""
    lower, solution, _ = solved.inverted
    pairs, ones = criterion.covariance.pairs, solution[:, 1]
    precision = pairs.matrix(lower.ravel()[pairs.at], lower.diagonal())
    precision -= np.multiply.outer(ones / (MEAN_SD**-2 + float(ones.sum())), ones)
    return precision


def log_predictive(criterion: Criterion, q: Array) -> Array:
    """Return log p(row | the other rows) for each row, (n,); -inf where C is not positive definite. O(n^3)."""
    solved = criterion.solve(q)
    if solved is None:
        return np.full(len(criterion.y), -np.inf)
    precision = precision_of(criterion, solved)
    diagonal = precision.diagonal()
    log: Array = 0.5 * (np.log(diagonal / (2.0 * np.pi)) - (precision @ criterion.y) ** 2 / diagonal)
    return log
