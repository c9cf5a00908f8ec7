"""Points of which no two are close."""

from __future__ import annotations

import numpy as np

from gpmi.types import Array, Numbers


def far_apart(unit: Array, order: Numbers, distance: float, most: int | None = None) -> Numbers:
    """Row numbers of `unit`, taken greedily in the given order: a row is kept if no kept one is close to it.

    unit (m, d) has coordinates in the unit cube; close means within `distance` times the cube's diagonal, sqrt(d). At
    most `most` rows are kept. O(k d) for each row kept, with k = len(order).
    """
    points = unit[order]
    left = np.ones(len(order), dtype=bool)
    kept: list[int] = []
    while (most is None or len(kept) < most) and left.any():
        first = int(np.argmax(left))
        kept.append(first)
        left &= ((points - points[first]) ** 2).sum(axis=1) > distance**2 * unit.shape[1]
    return order[np.array(kept, dtype=np.intp)]
