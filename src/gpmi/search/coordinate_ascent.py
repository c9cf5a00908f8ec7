"""Coordinate ascent: one discrete parameter after the other is set to its best level."""

from __future__ import annotations

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.tracking import first_best
from gpmi.search.constrained_climb import LevelsToTry, Values, best_levels_inside
from gpmi.space import Parameters

MOST_LEVELS = 512  # a discrete parameter with more levels is tried at some of them: as many as the screen has points


def best_levels(
    f: Values,
    space: Parameters,
    points: Array,  # (s, d)
    values: Array,  # (s,), f there
    choose: LevelsToTry,
) -> tuple[Array, Array]:
    """Set one discrete parameter after the other to its best level. Return the points reached and f there."""
    if not space.plain:
        return best_levels_inside(f, space, points, values, choose)
    points, values = points.copy(), values.copy()
    for encoding, columns in zip(space.encodings, space.columns, strict=True):
        if encoding.count is None or encoding.width == 0:
            continue
        for i in range(len(points)):
            levels = choose(encoding.levels_to_try(points[i, columns]), points[i, columns])
            trial = np.repeat(points[i : i + 1], len(levels), axis=0)
            trial[:, columns] = levels
            trial_values = f(trial, np.full(len(trial), i))
            k = first_best(trial_values)
            if trial_values[k] > values[i]:
                points[i], values[i] = trial[k], trial_values[k]
    return points, values


def _some_levels(levels: Array, here: Array) -> Array:
    """Return all levels, up to MOST_LEVELS. Of more: 256 spread evenly, `here`, and those 1, 2, 4, ... steps away."""
    k, width = levels.shape
    if k <= MOST_LEVELS or width > 2:  # options of a choice have no order
        return levels
    at = int(np.searchsorted(levels[:, -1], here[-1]))
    jumps = 2 ** np.arange(int(np.log2(k)) + 1)
    picks = np.concatenate([np.linspace(0, k - 1, 256).astype(int), [at], at + jumps, at - jumps])
    result: Array = levels[np.unique(np.clip(picks, 0, k - 1))]
    return result
