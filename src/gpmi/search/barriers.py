"""Where nothing may be asked: boxes around rejected and pending points, and points that probably fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Mask


class Barriers(NamedTuple):
    """Boxes around k points in which nothing may be asked, and smaller ones, the cores, that are never asked."""

    at: Array  # (k, d)
    within: Array  # (k, d), half the widths of the boxes
    core: Array  # (k, d), half the widths of the cores
    unsafe: Callable[[Array], Mask] | None = None  # other points to avoid as long as some are left

    def holds(self, points: Array, *, core: bool = False) -> Mask:
        """Return which of the points (m, d) lie in a box, or in a core. O(m k d)."""
        close = np.abs(points[:, None] - self.at) <= (self.core if core else self.within)
        inside: Mask = np.any(np.all(close, axis=2), axis=1)
        return inside if self.unsafe is None or core else inside | self.unsafe(points)


def are_among(points: Array, visited: Array, rounding: Array) -> Mask:
    """Return which of the points (m, d) are within `rounding` (d,) of one of `visited` (k, d).

    Only pairs that agree in the first coordinate are compared in the others, and nearly all differ there already.
    O((m + k) log k), and O(d) for each of these pairs.
    """
    order = np.argsort(visited[:, 0])
    first, margin = visited[order, 0], 2.0 * rounding[0]  # twice as wide, because the sums below are rounded
    begin = np.searchsorted(first, points[:, 0] - margin)
    end = np.searchsorted(first, points[:, 0] + margin, side="right")
    count = end - begin
    which = np.repeat(np.arange(len(points)), count)
    at = order[np.arange(len(which)) - np.repeat(np.cumsum(count) - end, count)]
    among = np.zeros(len(points), dtype=bool)
    among[which[np.all(np.abs(points[which] - visited[at]) <= rounding, axis=1)]] = True
    return among
