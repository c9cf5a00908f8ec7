"""All parameters together: each trial is a line through its coordinates and its value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpmi._support.text import shortened
from gpmi._support.types import Array
from gpmi.space import Axis
from gpmi.views.figures.axes import value_label
from gpmi.views.figures.style import BLACK, BLUE, LIGHT, VERMILION, without_math
from gpmi.views.front_run import FrontView
from gpmi.views.run_view import MAX_LINES, TOP_TRIALS, OutputView

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_parallel(ax: Axes, run: OutputView, axes: Sequence[Axis]) -> None:
    """Draw each trial as a line through its parameters and its value; the better the value, the darker."""
    from matplotlib.collections import LineCollection

    y = np.array([trial.y or 0.0 for trial in run.told])
    shares = [_share(axis, run.rows) for axis in axes]
    lo, hi = float(y.min()), float(y.max())
    shares.append((y - lo) / (hi - lo) if hi > lo else np.full(len(y), 0.5))
    places = np.stack(shares, axis=1)
    places = np.where(np.isfinite(places), places, -0.06)  # an inactive parameter: below its axis
    sign = 1.0 if run.goal == "max" else -1.0
    order = np.argsort(np.where([trial.feasible for trial in run.told], sign * y, -np.inf), kind="stable")
    order = np.concatenate([order[:-TOP_TRIALS][:: -(-len(order) // MAX_LINES)], order[-TOP_TRIALS:]])
    x = np.arange(float(places.shape[1]))
    lines = [np.column_stack([x, places[i]]) for i in order]
    ranks = np.linspace(0.15, 1.0, len(order))
    ax.add_collection(LineCollection(lines, cmap="Blues", array=ranks, linewidths=0.9, clim=(0.0, 1.0), clip_on=False))
    ax.plot(x, places[order[-1]], color=VERMILION, linewidth=2.0, label="the best", clip_on=False)
    ticks = [_ticks(axis) for axis in axes] + [[(0.0, f"{lo:.3g}"), (1.0, f"{hi:.3g}")]]
    y_name = value_label(run)
    _draw_axes(ax, [*(shortened(axis.name, 14) for axis in axes), y_name], ticks)
    ax.set_title(f"Each trial is a line; the {'largest' if run.goal == 'max' else 'smallest'} {y_name} is vermilion")


def draw_parallel_front(ax: Axes, run: FrontView, axes: Sequence[Axis]) -> None:
    """Draw each trial as a line through its parameters and its outputs; those on the front are blue.

    A line has a gap at an output that is missing. The vermilion one is the trial in the middle of the front.
    """
    from matplotlib.collections import LineCollection

    told, front = run.told, {trial.number for trial in run.front}
    shares = [_share(axis, run.rows) for axis in axes]
    shares = [np.where(np.isfinite(share), share, -0.06) for share in shares]  # an inactive parameter: below its axis
    ticks = [_ticks(axis) for axis in axes]
    names = list(run.goals.named)
    for name in names:
        y = np.array([trial.outputs.get(name, np.nan) for trial in told])
        lo, hi = (float(np.nanmin(y)), float(np.nanmax(y))) if np.isfinite(y).any() else (0.0, 0.0)
        shares.append((y - lo) / (hi - lo) if hi > lo else np.where(np.isfinite(y), 0.5, np.nan))
        ticks.append([(0.0, f"{lo:.3g}"), (1.0, f"{hi:.3g}")])
    places = np.stack(shares, axis=1)
    x = np.arange(float(places.shape[1]))
    others = [i for i, trial in enumerate(told) if trial.number not in front]
    chosen = [i for i, trial in enumerate(told) if trial.number in front]
    others = others[:: -(-len(others) // MAX_LINES)] if others else []
    for some, colour, width, label in ((others, LIGHT, 0.8, "other trials"), (chosen, BLUE, 1.1, "on the front")):
        lines = [np.column_stack([x, places[i]]) for i in some]
        ax.add_collection(LineCollection(lines, colors=colour, linewidths=width, label=label, clip_on=False))
    middle = None if run.middle is None else run.middle.number
    for i in (i for i, trial in enumerate(told) if trial.number == middle and len(front) > 1):
        ax.plot(x, places[i], color=VERMILION, linewidth=2.0, label=f"trial {middle}", clip_on=False)
    columns = [*(shortened(axis.name, 14) for axis in axes), *(without_math(shortened(name, 14)) for name in names)]
    _draw_axes(ax, columns, ticks)
    ax.axvline(len(axes) - 0.5, color=BLACK, linewidth=0.8, linestyle=(0, (1, 3)))  # between parameters and outputs
    also = f", trial {middle} is vermilion" if middle is not None and len(front) > 1 else ""
    ax.set_title(f"Each trial is a line; those on the front are blue{also}")


def _draw_axes(ax: Axes, names: list[str], ticks: Sequence[list[tuple[float, str]]]) -> None:
    """Draw a vertical axis for each name, with its ticks."""
    x = np.arange(float(len(names)))
    ax.set(xlim=(-0.1, x[-1] + 0.5), ylim=(-0.08, 1.02), yticks=[])
    ax.set_xticks(x, names, rotation=0 if len(x) <= 8 else 45, ha="center" if len(x) <= 8 else "right")
    ax.tick_params(axis="x", length=0.0)
    for i, marks in enumerate(ticks):
        ax.axvline(float(i), color=BLACK, linewidth=0.8, ymin=0.08 / 1.1, ymax=1.08 / 1.1)
        for share, label in marks:
            box = {"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 0.8}
            ax.text(i + 0.04, share, without_math(shortened(label, 12)), fontsize=7.0, va="center", bbox=box)
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)


def _share(axis: Axis, rows: Array) -> Array:
    """Return where points lie along an axis, from 0 to 1."""
    lo, hi = axis.limits
    at = axis.positions(rows)
    if axis.log:
        lo, hi, at = float(np.log(lo)), float(np.log(hi)), np.log(at)
    share: Array = (at - lo) / (hi - lo)
    return share


def _ticks(axis: Axis) -> list[tuple[float, str]]:
    """Return the smallest and the largest value of an axis, or some of its options, with their places."""
    rows = np.zeros((len(axis.settings), axis.columns.stop))
    rows[:, axis.columns] = axis.settings
    shares = _share(axis, rows)
    if axis.labels is not None:
        some = range(0, len(axis.labels), -(-len(axis.labels) // 6))
        return [(float(shares[i]), axis.labels[i]) for i in some]
    at = axis.positions(rows)
    return [(float(shares[i]), f"{at[i]:.3g}") for i in (0, -1)]
