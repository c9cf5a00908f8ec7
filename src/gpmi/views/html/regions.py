"""The regions of the levels of a map, each as the text of one SVG path."""

from __future__ import annotations

import numpy as np

from gpmi._support.types import Array, Mask, Numbers


def contour_paths(x: Array, y: Array, values: Array, levels: Array) -> dict[int, str]:
    """Return, for each level, the region of values at or above it. Paint them in order, the lowest first.

    values (a, b) are at the places x (a,), y (b,) in pixels; nan where there is no value. Between the points of the
    grid a value is interpolated along the edges of a cell. O(a b) for each level, most of it in NumPy.
    """
    paths = {}
    corners = np.stack([values[:-1, :-1], values[1:, :-1], values[1:, 1:], values[:-1, 1:]])  # round each cell
    present: Mask = np.all(np.isfinite(corners), axis=0)
    for number, level in enumerate(levels.tolist()):
        above: Mask = (corners >= level) if number else np.ones(corners.shape, dtype=bool)
        whole: Mask = np.all(above, axis=0) & present
        partly: Mask = np.any(above, axis=0) & ~whole & present
        parts = [_rectangles(x, y, whole)]
        parts += [_cell_part(x, y, int(i), int(j), corners[:, i, j], level) for i, j in np.argwhere(partly)]
        if path := "".join(parts):
            paths[number] = path
    return paths


def cell_paths(x: Array, y: Array, levels: Numbers, present: Mask) -> dict[int, str]:
    """Return, for each level, the cells that have it. levels (a, b); x (a + 1,) and y (b + 1,) are the borders."""
    return {int(level): _rectangles(x, y, (levels == level) & present) for level in np.unique(levels[present])}


def _cell_part(x: Array, y: Array, i: int, j: int, corners: Array, level: float) -> str:
    """Return the part of one cell in which the value is at least the level."""
    places = ((x[i], y[j]), (x[i + 1], y[j]), (x[i + 1], y[j + 1]), (x[i], y[j + 1]))
    points = []
    for k in range(4):
        here, there = float(corners[k]), float(corners[(k + 1) % 4])
        (x0, y0), (x1, y1) = places[k], places[(k + 1) % 4]
        if here >= level:
            points.append((x0, y0))
        if (here >= level) != (there >= level):
            share = (level - here) / (there - here)
            points.append((x0 + share * (x1 - x0), y0 + share * (y1 - y0)))
    return "M" + "L".join(f"{_short(a)},{_short(b)}" for a, b in points) + "z"


def _rectangles(x: Array, y: Array, cells: Mask) -> str:
    """Return cells of the grid as rectangles; adjacent cells of a column become one."""
    parts = []
    for i, column in enumerate(cells):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], column, [False]]).astype(int)))
        for begin, end in edges.reshape(-1, 2):
            parts.append(f"M{_short(x[i])},{_short(y[begin])}H{_short(x[i + 1])}V{_short(y[end])}H{_short(x[i])}z")
    return "".join(parts)


def _short(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")
