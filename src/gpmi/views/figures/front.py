"""The front of several objectives: trials, staircase and where the model believes it to be. And its hypervolume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpmi._support.text import rough, shortened
from gpmi.trials.goal_summary import at_target
from gpmi.trials.goals import Goal
from gpmi.views.figures.drawing import draw
from gpmi.views.figures.style import BLUE, GREY, LIGHT, PALE, POINTS, legend_above, without_math
from gpmi.views.front_run import FrontView
from gpmi.views.front_view import (
    KINDS,
    Kind,
    better,
    complete,
    kind_of,
    shown_values,
    sign_of,
    staircase,
    stated,
    title_of,
)
from gpmi.views.pictures.convergence import hypervolume

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = 40  # characters of the name of an output, at most; our choice
MARKS: dict[Kind, dict[str, Any]] = {
    "broken": {"marker": "x", "color": PALE, "markersize": 4.5, "zorder": 2},
    "waiting": {"marker": "o", "color": PALE, "markerfacecolor": "white", "markersize": 4.5, "zorder": 2},
    "beaten": {"marker": "o", "color": GREY, "markersize": 3.5, "zorder": 2.5},
    "front": {"marker": "o", "color": BLUE, "markeredgecolor": "white", "markersize": 7.0, "zorder": 4},
}


def draw_front(ax: Axes, run: FrontView, x: str, y: str) -> None:
    """Draw two objectives of all trials; with these two alone also the staircase of the front.

    The band is where the front of the two objectives lies, with probability 90 %. Dashed lines are the worst values
    that were stated as acceptable. A star is the trial through which slices and maps go.
    """
    goals = (run.objectives[x], run.objectives[y])
    trials, front = complete(at_target(run.trials, run.space), run.goals), {trial.number for trial in run.front}
    places = np.stack([shown_values(trials, name, goal) for name, goal in zip((x, y), goals, strict=True)], axis=1)
    kinds = np.array([kind_of(trial, front) for trial in trials])
    bands = run.front_bands(x, y)
    if bands is not None:
        border = np.concatenate([bands.low, bands.high[::-1]])
        what = "the model's front" if len(run.objectives) == 2 else "front of these two"
        ax.fill(*border.T, color=LIGHT, linewidth=0.0, label=f"{what}, {100.0 * bands.level:.0f} %", zorder=1)
        ax.plot(*bands.median.T, color=BLUE, linewidth=0.9, linestyle=(0, (4, 2)), label="its median", zorder=1.5)
    for kind, how in MARKS.items():
        chosen = kinds == kind
        if chosen.any():
            ax.plot(*places[chosen].T, linestyle="none", label=KINDS[kind], **how)
    on_front = places[kinds == "front"]
    worst = [stated(goal) for goal in goals]
    if len(run.objectives) == 2 and len(on_front):
        reference = None if None in worst else np.array(worst, dtype=float)
        corners = staircase(on_front, np.array([sign_of(goal) for goal in goals]), reference)
        ax.plot(*corners.T, color=BLUE, linewidth=1.4, alpha=0.7, zorder=3)
    _draw_stated(ax, worst)
    if run.middle is not None and len(on_front) > 1:
        at = [shown_values([run.middle], name, goal) for name, goal in zip((x, y), goals, strict=True)]
        ax.plot(*at, **POINTS["star"], label=f"trial {run.middle.number}")
    ax.set_xlabel(f"{_label(x, goals[0])} ({better(goals[0])})")
    ax.set_ylabel(f"{_label(y, goals[1])} ({better(goals[1])})")
    ax.grid(True)


def _label(name: str, goal: Goal) -> str:
    return without_math(shortened(title_of(name, goal), NAME))


def _draw_stated(ax: Axes, worst: list[float | None]) -> None:
    """Draw the worst acceptable values as dashed lines, where they are not far away from all that is drawn."""
    limits = ax.get_xlim(), ax.get_ylim()
    label: str | None = "worst acceptable"
    for (lo, hi), value, across in zip(limits, worst, (ax.axvline, ax.axhline), strict=True):
        if value is not None and 2.0 * lo - hi <= value <= 2.0 * hi - lo:
            across(value, color=GREY, linewidth=0.9, linestyle=(0, (5, 3)), label=label, zorder=1.2)
            label = None


def draw_hypervolume(ax: Axes, run: FrontView, *, legend: bool = True) -> None:
    """Draw the hypervolume after each trial with all objectives, and how much is still to be had."""
    ledger = run.ledger
    assert ledger is not None
    draw(ax, hypervolume(ledger))
    of = "the possible hypervolume" if legend else "it"
    share = f"At most {rough(100.0 * ledger.missing.share()[1], 2)} % of {of} is missing"
    ax.set_title(share if ledger.missing.known else "What is missing is not known yet", pad=20.0 if legend else None)
    if legend:
        legend_above(ax)
