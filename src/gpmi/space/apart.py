"""Points that keep a distance from each other."""

from __future__ import annotations

import numpy as np

from gpmi.types import Array, Numbers


def far_apart(
    unit: Array,  # (m, d), in the unit cube
    order: Numbers,  # (k,), numbers of points
    distance: float,  # in diagonals of the cube
    most: int | None = None,
) -> Numbers:
    """The numbers of at most `most` points, taken in the given order, no two of them within `distance`. O(m d) each."""
    points = unit[order]
    left = np.ones(len(order), dtype=bool)
    chosen: list[int] = []
    while left.any() and (most is None or len(chosen) < most):
        first = int(np.argmax(left))
        chosen.append(int(order[first]))
        left &= ((points - points[first]) ** 2).sum(axis=1) > distance**2 * unit.shape[1]
    return np.array(chosen, dtype=np.intp)
