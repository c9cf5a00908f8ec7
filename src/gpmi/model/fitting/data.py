"""The data of a fit: which observations it uses, in which units, and with which noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Numbers, Observations
from gpmi.gp.replicates import places_of
from gpmi.model.fitting.warp import Warp

# The largest number of observations that a fit uses. An evaluation of its loss costs O(n^3), about 2 ms with 256. Our
# choice, not tuned.
FIT_POINTS = 256

# From this many observations on, replicates are merged if they are at no more than half as many points; fewer are cheap
# without merging. Our choice; it does not affect runs that hardly repeat points.
MERGE_FROM, MERGE_SHARE = 128, 0.5

# In units of the variance of y: a row with a larger variance of its own tells nothing. A fit takes powers of variances,
# which must not overflow. Our choice: no measurement comes near it.
MOST_OWN = 1e60
_FAINT = 1e-150  # a largest weight below this may underflow in products


def merges(observed: Observations) -> bool:
    """Return whether values at equal points are merged: if the first 128, 256, 512, ... are at half as many points.

    Once the values of a run are merged, they stay merged when more come. O(log n).
    """
    n = MERGE_FROM
    while n <= len(observed):
        if observed.places[n - 1] <= MERGE_SHARE * n:
            return True
        n *= 2
    return False


def warped(observed: Observations, warp: Warp) -> Observations:
    """Return the observations of warp(y). Their own variances are multiplied by the squared slope at y. O(n)."""
    if not warp.bends:
        return observed
    noise_var = observed.noise_var if observed.plain else observed.noise_var * np.exp(2.0 * warp.log_slope(observed.y))
    return replace(observed, y=warp(observed.y), noise_var=noise_var)


class RowNoise(NamedTuple):
    """The noise of n rows, given a common noise variance s. Row i is the mean of values_i values, all at one point.

    Each of these values has the noise variance v_i = s / repeats_i + error_i. `within` is the sum of their squared
    differences from their mean.
    """

    repeats: Array  # (n,)
    error: Array  # (n,), the variance of the error stated for it
    values: Array  # (n,)
    within: Array  # (n,)

    def each(self, s: float) -> Array:
        """Return v (n,), the noise variance of each value."""
        return s / self.repeats + self.error

    def of_rows(self, s: float) -> Array:
        """Return v / values (n,), the noise variance of each row."""
        return self.each(s) / self.values

    def slope_of_rows(self, s: float) -> Array:
        """Return the derivative of `of_rows` by log s, (n,)."""
        return s / (self.repeats * self.values)

    def at(self, rows: Numbers) -> RowNoise:
        """Return the noise of some of the rows."""
        return RowNoise(*(part[rows] for part in self))

    def in_units(self, scale: float) -> RowNoise:
        """Return the same noise in units of scale."""
        return self._replace(error=self.error / scale**2, within=self.within / scale**2)

    def minus_log_within(self, s: float) -> tuple[float, float]:
        """Return -log p(the values given their means), without constants, and its derivative by log s.

        It is 1/2 sum_i ((values_i - 1) log v_i + within_i / v_i).
        """
        v, freedom = self.each(s), self.values - 1.0
        slope = s / self.repeats * (freedom - self.within / v) / v
        return 0.5 * float((freedom * np.log(v) + self.within / v).sum()), 0.5 * float(slope.sum())


@dataclass(frozen=True, eq=False)
class FitData:
    """The rows that a fit uses. `noises` is None if each row is one value with the common noise alone."""

    x: Array  # (n, d)
    y: Array  # (n,)
    noises: RowNoise | None = None

    @staticmethod
    def of(observed: Observations) -> FitData:
        """Return all values, those at equal points merged if there are many (`merges`). O(n).

        Values are merged here only if their noise has the same variance whatever the common noise is. Then their mean
        and the sum `within` are sufficient for f and for the common noise.
        """
        x, y = observed.x, observed.y
        if not merges(observed):
            if observed.plain:
                return FitData(x, y)
            return FitData(x, y, RowNoise(observed.repeats, observed.noise_var, np.ones(len(y)), np.zeros(len(y))))
        kinds = places_of(np.column_stack([x, observed.noise_var, observed.repeats]))
        m = int(kinds.max()) + 1
        first = np.zeros(m, dtype=np.intp)
        first[kinds[::-1]] = np.arange(len(y))[::-1]
        count = np.bincount(kinds, minlength=m).astype(float)
        off = y - y[first][kinds]
        mean = np.bincount(kinds, off, m) / count
        within: Array = np.bincount(kinds, (off - mean[kinds]) ** 2, m).astype(float)
        noises = RowNoise(observed.repeats[first], observed.noise_var[first], count, within)
        return FitData(x[first], y[first] + mean, noises)

    def at_most(self, size: int) -> FitData:
        """Return at most `size` of the rows."""
        rows = subset(self.y, size)
        return FitData(self.x[rows], self.y[rows], None if self.noises is None else self.noises.at(rows))

    def standardised(self) -> tuple[float, float, FitData]:
        """Return the mean of the values, their standard deviation, and the rows in these units.

        Wider error bars give a value less weight: with the variance o of its error it has the weight u / (u + o). u is
        the variance of the half of the values with the smallest o. So an uninformative value does not set the units.
        """
        if self.noises is None:
            location, scale, z = standardised(self.y)
            return location, scale, FitData(self.x, z)
        noises, weight = self.noises, self.noises.values
        if noises.error.any():
            trusted = noises.error <= np.median(np.repeat(noises.error, noises.values.astype(int)))
            u = self._moments(weight * trusted)[1] or 1.0
            weight = weight * (u / (u + noises.error))
            if weight.max(initial=0.0) < _FAINT:  # all error bars are far above the spread of y: compare them
                weight = noises.values * (noises.error.min() / noises.error)
        location, var = self._moments(weight) if len(self.y) else (0.0, 1.0)
        scale = float(np.sqrt(var))
        if not is_spread(scale, location):
            return location, 1.0, FitData(self.x, np.zeros_like(self.y), noises._replace(within=np.zeros(len(self.y))))
        y, most = self.y - location, MOST_OWN * scale**2
        if (noises.error > most).any():
            y, noises = np.where(noises.error > most, 0.0, y), noises._replace(error=np.minimum(noises.error, most))
        return location, scale, FitData(self.x, y / scale, noises.in_units(scale))

    def _moments(self, weight: Array) -> tuple[float, float]:
        """Return the mean and the variance of the values behind the rows, with weights (n,) of the rows."""
        assert self.noises is not None
        total = float(weight.sum())
        mean = float(weight @ self.y) / total
        spread = weight @ (self.y - mean) ** 2 + (weight / self.noises.values) @ self.noises.within
        return mean, float(spread) / total


def subset(y: Array, size: int) -> Numbers:
    """Return the numbers of at most `size` observations: all, or the largest, the smallest and others spread over the
    run.
    """
    if len(y) <= size:
        return np.arange(len(y))
    spread = np.linspace(0, len(y) - 1, size - 2).round().astype(int)
    rows: Numbers = np.unique(np.concatenate([spread, [np.argmax(y), np.argmin(y)]]))
    return rows


def standardised(y: Array) -> tuple[float, float, Array]:
    """Return the mean of y, its standard deviation, and y in these units."""
    location, scale = (float(y.mean()), float(y.std())) if len(y) else (0.0, 1.0)
    if not is_spread(scale, location):
        return location, 1.0, np.zeros_like(y)
    return location, scale, (y - location) / scale


def is_spread(scale: float, location: float) -> bool:
    """Return whether values differ by more than rounding, and by enough that the square does not underflow."""
    return scale > max(1e-12 * abs(location), 1e-150)
