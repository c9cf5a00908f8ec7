"""Rows of a fit with noise of their own: values with error bars, and means of several values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Numbers, Observations
from gpmi.gp.replicates import places_of

# In units of the variance of y: a row with a larger variance of its own tells nothing. A fit takes powers of variances,
# which must not overflow. Our choice: no measurement comes near it.
MOST_OWN = 1e60
_FAINT = 1e-150  # a largest weight below this may underflow in products


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


def merged_rows(observed: Observations) -> tuple[Array, Array, RowNoise]:
    """Return x, y and the noise of values with those at equal points merged. O(n).

    Values are merged here only if their noise has the same variance whatever the common noise is. Then their mean and
    the sum `within` are sufficient for f and for the common noise.
    """
    x, y = observed.x, observed.y
    kinds = places_of(np.column_stack([x, observed.noise_var, observed.repeats]))
    m = int(kinds.max()) + 1
    first = np.zeros(m, dtype=np.intp)
    first[kinds[::-1]] = np.arange(len(y))[::-1]
    count = np.bincount(kinds, minlength=m).astype(float)
    off = y - y[first][kinds]
    mean = np.bincount(kinds, off, m) / count
    within: Array = np.bincount(kinds, (off - mean[kinds]) ** 2, m).astype(float)
    noises = RowNoise(observed.repeats[first], observed.noise_var[first], count, within)
    return x[first], y[first] + mean, noises


def weighted_units(y: Array, noises: RowNoise) -> tuple[float, float]:
    """Return the mean of the values behind rows y (n,) and their standard deviation.

    Wider error bars give a value less weight: with the variance o of its error it has the weight u / (u + o). u is the
    variance of the half of the values with the smallest o. So an uninformative value does not set the units.
    """
    weight = noises.values
    if noises.error.any():
        trusted = noises.error <= np.median(np.repeat(noises.error, noises.values.astype(int)))
        u = _moments(y, noises, weight * trusted)[1] or 1.0
        weight = weight * (u / (u + noises.error))
        if weight.max(initial=0.0) < _FAINT:  # all error bars are far above the spread of y: compare them
            weight = noises.values * (noises.error.min() / noises.error)
    location, var = _moments(y, noises, weight) if len(y) else (0.0, 1.0)
    return location, float(np.sqrt(var))


def in_units(y: Array, noises: RowNoise, scale: float) -> tuple[Array, RowNoise]:
    """Return rows y (n,) whose mean is 0, and their noise, in units of scale. Rows that tell nothing become 0."""
    most = MOST_OWN * scale**2
    if (noises.error > most).any():
        y, noises = np.where(noises.error > most, 0.0, y), noises._replace(error=np.minimum(noises.error, most))
    return y / scale, noises.in_units(scale)


def _moments(y: Array, noises: RowNoise, weight: Array) -> tuple[float, float]:
    """Return the mean and the variance of the values behind the rows, with weights (n,) of the rows."""
    total = float(weight.sum())
    mean = float(weight @ y) / total
    spread = weight @ (y - mean) ** 2 + (weight / noises.values) @ noises.within
    return mean, float(spread) / total
