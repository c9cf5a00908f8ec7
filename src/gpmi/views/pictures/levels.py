"""The levels of a map and their colours."""

from __future__ import annotations

import numpy as np

from gpmi._support.types import Array
from gpmi.trials.goal_kinds import Match
from gpmi.views.run_view import OutputView

LEVELS = 12  # our choice
# Five colours from dark to bright, distinguishable by colour-blind readers and in grey; others are interpolated.
COLOURS = np.array([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]], dtype=float)


def levels_of(values: Array) -> Array:
    """Return ascending borders of at most LEVELS levels, halfway between equal steps of value and equal shares of them.

    The shares make the shape of any function visible, however skewed its values are. Borders have two or three digits.
    """
    lo, hi = float(values.min()), float(values.max())
    size = max(abs(lo), abs(hi))
    if hi - lo <= 1e-9 * size:  # constant, up to rounding
        return np.array([lo, hi]) + np.array([-0.5, 0.5]) * (size or 1.0)
    distinct = np.unique(values)
    shares = np.linspace(0.0, 1.0, LEVELS + 1)[1:-1]
    inner = 0.5 * (lo + (hi - lo) * shares + np.quantile(values, shares))
    if len(distinct) <= LEVELS:
        inner = (distinct[1:] + distinct[:-1]) / 2.0
    step = 10.0 ** np.floor(np.log10((hi - lo) / 100.0))
    return np.unique([np.floor(lo / step) * step, *np.round(inner / step) * step, np.ceil(hi / step) * step])


def colours_of(run: OutputView, levels: Array) -> list[str]:
    """Return the colour of each level; the best is bright: the largest, the smallest, or the closest to a target."""
    goal = run.goals[run.key]
    share = np.arange(float(len(levels) - 1)) / max(1, len(levels) - 2)
    if isinstance(goal, Match):
        away = np.abs(0.5 * (levels[1:] + levels[:-1]) - goal.target)
        share = 1.0 - (away - away.min()) / (float(np.ptp(away)) or 1.0)
    elif run.goal == "min":
        share = 1.0 - share
    at = np.arange(float(len(COLOURS)))
    mixed = np.stack([np.interp(share * at[-1], at, channel) for channel in COLOURS.T], axis=1)
    return ["#" + "".join(f"{round(part):02x}" for part in colour) for colour in mixed.tolist()]
