"""The data of a fit: which observations it uses, in which units, and with which noise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpmi._support.types import Array, Numbers, Observations
from gpmi.model.fitting.row_noise import RowNoise, in_units, merged_rows, weighted_units
from gpmi.model.fitting.warp import Warp

# The largest number of observations that a fit uses. An evaluation of its loss costs O(n^3), about 2 ms with 256. Our
# choice, not tuned.
FIT_POINTS = 256

# From this many observations on, replicates are merged if they are at no more than half as many points; fewer are cheap
# without merging. Our choice; it does not affect runs that hardly repeat points.
MERGE_FROM, MERGE_SHARE = 128, 0.5


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


@dataclass(frozen=True, eq=False)
class FitData:
    """The rows that a fit uses. `noises` is None if each row is one value with the common noise alone."""

    x: Array  # (n, d)
    y: Array  # (n,)
    noises: RowNoise | None = None

    @staticmethod
    def of(observed: Observations) -> FitData:
        """Return all values, those at equal points merged if there are many (`merges`). O(n)."""
        x, y = observed.x, observed.y
        if not merges(observed):
            if observed.plain:
                return FitData(x, y)
            return FitData(x, y, RowNoise(observed.repeats, observed.noise_var, np.ones(len(y)), np.zeros(len(y))))
        return FitData(*merged_rows(observed))

    def at_most(self, size: int) -> FitData:
        """Return at most `size` of the rows."""
        rows = subset(self.y, size)
        return FitData(self.x[rows], self.y[rows], None if self.noises is None else self.noises.at(rows))

    def standardised(self) -> tuple[float, float, FitData]:
        """Return the mean of the values, their standard deviation, and the rows in these units."""
        if self.noises is None:
            location, scale, z = standardised(self.y)
            return location, scale, FitData(self.x, z)
        location, scale = weighted_units(self.y, self.noises)
        if not is_spread(scale, location):
            within = np.zeros(len(self.y))
            return location, 1.0, FitData(self.x, np.zeros_like(self.y), self.noises._replace(within=within))
        return location, scale, FitData(self.x, *in_units(self.y - location, self.noises, scale))


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
