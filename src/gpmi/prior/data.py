"""Which observations a fit looks at, and in which units."""

from __future__ import annotations

import numpy as np

from gpmi.types import Array, Numbers

# The largest number of observations that a fit uses. An evaluation of its loss costs O(n^3), about 2 ms with 256.
# Our choice, not tuned.
FIT_POINTS = 256


def subset(y: Array, size: int) -> Numbers:
    """The numbers of at most `size` observations: all, or the largest, the smallest and others spread over the run."""
    if len(y) <= size:
        return np.arange(len(y))
    spread = np.linspace(0, len(y) - 1, size - 2).round().astype(int)
    rows: Numbers = np.unique(np.concatenate([spread, [np.argmax(y), np.argmin(y)]]))
    return rows


def standardised(y: Array) -> tuple[float, float, Array]:
    """The mean of y, its standard deviation, and y in units of these."""
    location, scale = (float(y.mean()), float(y.std())) if len(y) else (0.0, 1.0)
    if not scale > max(1e-12 * abs(location), 1e-150):  # the spread is only rounding, or its square would underflow
        return location, 1.0, np.zeros_like(y)
    return location, scale, (y - location) / scale
