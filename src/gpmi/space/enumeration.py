"""All points of a discrete product."""

from __future__ import annotations

import math

import numpy as np

from gpmi._support.types import Array
from gpmi.space.layout import Layout


def size_of(ranges: Array) -> int:
    """Return how many points there are with a level of each parameter in its range, the first and the last, (p, 2)."""
    return math.prod(_counts(ranges))


def enumerated(layout: Layout, ranges: Array) -> Array:
    """Return the coordinates (m, d) of these points, feasible or not; of equal ones the first."""
    counts = _counts(ranges)
    numbers = np.indices(counts).reshape(len(counts), -1) + ranges[:, :1].astype(np.intp)
    parts = [encoding.from_levels(i) for encoding, i in zip(layout.encodings, numbers, strict=True)]
    rows = np.concatenate(parts, axis=1)
    if not layout.conditional:
        return rows
    _, unique = np.unique(layout.normalise(rows), axis=0, return_index=True)
    return layout.normalise(rows)[np.sort(unique)]


def _counts(ranges: Array) -> list[int]:
    first, last = ranges.T
    return [int(count) for count in last - first + 1.0]
