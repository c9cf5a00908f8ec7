"""Filled contours and cells of a grid, as the text of SVG paths, one for each level."""

from __future__ import annotations

import numpy as np

from gpmi._support.types import Array, Mask, Numbers


def filled(x: Array, y: Array, values: Array, levels: Array) -> dict[int, str]:
    """For each level the region with values at least as large, to be painted one over the other, the lowest first.

    values (a, b) are those at the places x (a,), y (b,), in pixels; nan where there is nothing. Between the points of
    the grid a value is interpolated along the edges of a cell. O(a b) for each level, most of it in NumPy.
    """
    paths = {}
    corners = np.stack([values[:-1, :-1], values[1:, :-1], values[1:, 1:], values[:-1, 1:]])  # round each cell
    there: Mask = np.all(np.isfinite(corners), axis=0)
    for number, level in enumerate(levels.tolist()):
        above: Mask = (corners >= level) if number else np.ones(corners.shape, dtype=bool)
        whole: Mask = np.all(above, axis=0) & there
        some: Mask = np.any(above, axis=0) & ~whole & there
        parts = [_rectangles(x, y, whole)]
        parts += [_piece(x, y, int(i), int(j), corners[:, i, j], level) for i, j in np.argwhere(some)]
        if text := "".join(parts):
            paths[number] = text
    return paths


def _rectangles(x: Array, y: Array, cells: Mask) -> str:
    """Cells of the grid as rectangles, those side by side in one."""
    parts = []
    for i, column in enumerate(cells):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], column, [False]]).astype(int)))
        for begin, end in edges.reshape(-1, 2):
            parts.append(_box(x[i], y[begin], x[i + 1], y[end]))
    return "".join(parts)


def _piece(x: Array, y: Array, i: int, j: int, corners: Array, level: float) -> str:
    """The part of one cell in which the value is at least the level."""
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


def cells(x: Array, y: Array, levels: Numbers, there: Mask) -> dict[int, str]:
    """For each level (a, b) the cells that have it, between the borders x (a + 1,), y (b + 1,)."""
    return {int(level): _rectangles(x, y, (levels == level) & there) for level in np.unique(levels[there])}


def _box(x0: float, y0: float, x1: float, y1: float) -> str:
    return f"M{_short(x0)},{_short(y0)}H{_short(x1)}V{_short(y1)}H{_short(x0)}z"


def _short(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")
