"""Merge values at the same point into one row without losing anything: their weighted mean is sufficient for f.

For values y_j = f(x) + N(0, v_j) at one x, with 1 / v = sum_j 1 / v_j and m = v sum_j y_j / v_j,

    prod_j N(y_j; f(x), v_j) = N(m; f(x), v) W,
    log W = -1/2 (sum_j log v_j - log v + sum_j (y_j - m)^2 / v_j + (k - 1) log 2 pi),

where W does not depend on f. So the posterior of f given m with noise variance v equals the one given all k values. The
evidence differs by log W, which matters where the noise is learned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Numbers
from gpmi.gp.kernels import Kernel
from gpmi.gp.linalg import NUGGET, SINGULAR


class OneStepAhead(NamedTuple):
    """One-step-ahead predictions: f(x_s) was N(mu_s, var_s) and y_s was N(mu_s, pivot_s^2), given all values before."""

    mu: Array  # (n,)
    var: Array  # (n,)
    pivot: Array  # (n,)
    surprise: Array  # (n,), (y_s - mu_s) / pivot_s

    def mirrored(self) -> OneStepAhead:
        """Return the predictions of -y."""
        return OneStepAhead(-self.mu, self.var, self.pivot, -self.surprise)

    def then(self, other: OneStepAhead) -> OneStepAhead:
        """Return these predictions followed by those of further values."""
        return OneStepAhead(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


class MergedRows(NamedTuple):
    """Rows of merged values, one for each point, in the order in which the points first appear."""

    x: Array  # (m, d)
    y: Array  # (m,), the weighted means
    noise: Array  # (m,), their noise variances
    place: Numbers  # (n,), the row of each value
    log_within: float  # log W


def places_of(x: Array) -> Numbers:
    """Return the number of the place of each point of x (n, d). Places are numbered as they first appear. O(n)."""
    index: dict[bytes, int] = {}
    return np.array([index.setdefault(row.tobytes(), len(index)) for row in np.ascontiguousarray(x)], dtype=np.intp)


def merge(x: Array, y: Array, noise: Array) -> MergedRows:
    """Merge the values y (n,) at x (n, d), with noise variances `noise` (n,), at equal points. O(n).

    A value without noise makes noisy values at the same point irrelevant. Several values without noise are averaged.
    """
    place = places_of(x)
    m = int(place.max(initial=-1)) + 1
    first = np.zeros(m, dtype=np.intp)
    first[place[::-1]] = np.arange(len(place))[::-1]
    least = np.full(m, np.inf)
    np.minimum.at(least, place, noise)
    exact = noise == least[place]
    weight = np.divide(least[place], noise, out=np.ones(len(y)), where=~exact)  # 1 / v_j, the largest being 1
    total = np.bincount(place, weight, m)
    off = y - y[first][place]  # so the mean of equal values is exactly that value
    mean = y[first] + np.bincount(place, weight * off, m) / total
    v = least / total
    noisy = least[place] > 0.0
    terms = np.zeros(len(y))
    np.log(2.0 * np.pi * noise, out=terms, where=noisy)
    terms += np.divide((y - mean[place]) ** 2, noise, out=np.zeros(len(y)), where=noisy)
    whole = v > 0.0
    within = -0.5 * (float(terms.sum()) - float(np.log(2.0 * np.pi * v[whole]).sum()))
    return MergedRows(x[first], mean, v, place, within)


@dataclass(frozen=True, eq=False)
class ObservationSequence:
    """The values behind merged rows, in the order in which they were observed, and the prior of f at these rows."""

    kernel: Kernel
    mean: Array  # (m,), the prior mean at x
    x: Array  # (m, d)
    place: Numbers  # (n,)
    noise: Array  # (n,)

    def mirrored(self) -> ObservationSequence:
        """Return the sequence of -y."""
        return replace(self, mean=-self.mean)

    def ahead(self, y: Array) -> OneStepAhead:
        """Predict each of the values y (n,) from those before it. O(m^2) for each value.

        The joint distribution of f at the m points is conditioned on one value after the other. Let c be the
        covariances with f(x_i) and s = c_i its variance. A value with noise variance v then subtracts c c^T / (s + v)
        from the covariance.
        """
        n = len(y)
        mu, var, pivot, surprise = np.empty((4, n))
        mean, cov = self.mean.copy(), self.kernel(self.x, self.x)
        prior = cov.diagonal().copy()
        for t, (i, v, value) in enumerate(zip(self.place.tolist(), self.noise.tolist(), y.tolist(), strict=True)):
            column = cov[i].copy()  # cov stays symmetric to the last bit
            s = max(float(column[i]), 0.0)
            if s + v < SINGULAR * (float(prior[i]) + v) or s + v == 0.0:  # f(x) is known there
                s, v = 0.0, v + (NUGGET * float(prior[i]) or 1.0)
            mu[t], var[t], pivot[t] = mean[i], s, np.sqrt(s + v)
            surprise[t] = (value - mean[i]) / pivot[t]
            if s > 0.0:
                column /= pivot[t]
                mean += column * surprise[t]
                cov -= column[:, None] * column
        return OneStepAhead(mu, var, pivot, surprise)


@dataclass(frozen=True, eq=False)
class Replicates:
    """The values y that the first `rows` rows of a posterior stand for, some of them at equal points."""

    rows: int
    y: Array  # (n,), in the order in which they were observed
    noise: Array  # (n,), their noise variances
    log_within: float
    source: OneStepAhead | ObservationSequence  # their one-step-ahead predictions, or how to compute them

    @cached_property
    def ahead(self) -> OneStepAhead:
        """The one-step-ahead predictions of the values, in the order in which they were observed. Computed once."""
        return self.source if isinstance(self.source, OneStepAhead) else self.source.ahead(self.y)

    def mirrored(self) -> Replicates:
        """Return the replicates of -y."""
        return replace(self, y=-self.y, source=self.source.mirrored())
