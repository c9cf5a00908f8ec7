"""The exact hypervolume of a few hundred points, for judging runs. It shares no code with the library.

All objectives are minimised. The hypervolume of a set is the volume of what it dominates inside the box below the
reference point.
"""

from __future__ import annotations

import numpy as np

from .functions import Array


def nondominated(values: Array) -> Array:  # (n, m)
    """Return which rows no other row dominates, as a mask (n,). Of equal rows the first one stays."""
    n = len(values)
    order = np.lexsort(values.T[::-1])
    keep = np.ones(n, dtype=bool)
    front = np.empty_like(values)
    size = 0
    for i in order:  # whatever dominates row i comes before it
        if size and (front[:size] <= values[i]).all(axis=1).any():
            keep[i] = False
        else:
            front[size] = values[i]
            size += 1
    return keep


def hypervolume(values: Array, reference: Array) -> float:  # (n, m), (m,)
    """Return the volume that the rows dominate below the reference point.

    Two objectives are a staircase. More are cut along the last one into slabs: the front of the rows below a slab,
    without its last objective, times the slab's height. The cost is O(n^2 log n) for m = 3, times n for m = 4.
    """
    values = np.asarray(values, dtype=float)
    values = values[(values < reference).all(axis=1)]
    if not len(values):
        return 0.0
    values = values[nondominated(values)]
    return _volume(values, np.asarray(reference, dtype=float))


def _volume(values: Array, reference: Array) -> float:
    """Return the hypervolume of rows that are all below the reference."""
    m = values.shape[1]
    if m == 1:
        return float(reference[0] - values.min())
    if m == 2:
        return _area(values[np.argsort(values[:, 0], kind="stable")], reference)
    values = values[np.argsort(values[:, -1], kind="stable")]
    heights = np.diff(np.append(values[:, -1], reference[-1]))
    if m == 3:
        return _slabs(values, heights, reference)
    total = 0.0
    front = np.empty((0, m - 1))
    volume = 0.0
    for row, height in zip(values[:, :-1], heights, strict=True):
        if not (front <= row).all(axis=1).any():
            front = np.vstack([front[~(row <= front).all(axis=1)], row])
            volume = _volume(front, reference[:-1])
        total += volume * height
    return total


def _area(values: Array, reference: Array) -> float:
    """Return the area below rows that are sorted by their first objective."""
    steps = np.minimum.accumulate(values[:, 1])
    widths = np.diff(np.append(values[:, 0], reference[0]))
    return float(np.sum(widths * (reference[1] - steps)))


def _slabs(values: Array, heights: Array, reference: Array) -> float:
    """Return the volume of rows with three objectives, sorted by the last, where each slab has a staircase.

    A new row adds to the area of the staircase what it dominates alone. Rows of the staircase that it dominates go.
    """
    xs, ys = [-np.inf, float(reference[0])], [float(reference[1]), -np.inf]  # the staircase, from left to right
    area = total = 0.0
    for (x, y), height in zip(values[:, :2].tolist(), heights.tolist(), strict=True):
        left = int(np.searchsorted(xs, x, side="right")) - 1  # the last step that begins at or before x
        if ys[left] > y:
            end = left + 1
            here, level = x, ys[left]
            while True:
                area += (xs[end] - here) * (level - y)
                if ys[end] <= y:
                    break
                here, level = xs[end], ys[end]
                end += 1
            begin = left if xs[left] == x else left + 1
            xs[begin:end], ys[begin:end] = [x], [y]
        total += area * height
    return total
