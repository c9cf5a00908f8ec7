"""Which observations a fit looks at, and in which units."""

from __future__ import annotations

import numpy as np

from gpmi.types import Array, Numbers

# Observations that a fit looks at, at most: an evaluation is O(n^3), and 256 of them take about 2 ms. Our choice: the
# cost per suggestion stays below that of the posterior, and more observations hardly move the hyper-parameters.
FIT_POINTS = 256


def subset(y: Array, size: int) -> Numbers:
    """The numbers of at most `size` observations: all, or some spread evenly over the run, with the best and worst."""
    if len(y) <= size:
        return np.arange(len(y))
    spread = np.linspace(0, len(y) - 1, size - 2).round().astype(int)
    rows: Numbers = np.unique(np.concatenate([spread, [np.argmax(y), np.argmin(y)]]))
    return rows


def standardised(y: Array) -> tuple[float, float, Array]:
    """The mean of y, its standard deviation, and y in units of these."""
    location, scale = (float(y.mean()), float(y.std())) if len(y) else (0.0, 1.0)
    if not scale > max(1e-12 * abs(location), 1e-150):  # no spread but rounding, or none whose square is a number
        return location, 1.0, np.zeros_like(y)
    return location, scale, (y - location) / scale
