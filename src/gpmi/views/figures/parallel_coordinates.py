"""All parameters together: each trial is a line through its coordinates and its value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpmi._support.text import shortened
from gpmi._support.types import Array
from gpmi.space.axes import Axis
from gpmi.views.figures.style import BLACK, VERMILION, without_math
from gpmi.views.run_view import MAX_LINES, TOP_TRIALS, RunView

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_parallel(ax: Axes, run: RunView, axes: Sequence[Axis]) -> None:
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
    ax.set(xlim=(-0.1, x[-1] + 0.5), ylim=(-0.08, 1.02), yticks=[])
    names = [*(shortened(axis.name, 14) for axis in axes), "$y$"]
    ax.set_xticks(x, names, rotation=0 if len(x) <= 8 else 45, ha="center" if len(x) <= 8 else "right")
    ax.tick_params(axis="x", length=0.0)
    ticks = [_ticks(axis) for axis in axes] + [[(0.0, f"{lo:.3g}"), (1.0, f"{hi:.3g}")]]
    for i, marks in enumerate(ticks):
        ax.axvline(float(i), color=BLACK, linewidth=0.8, ymin=0.08 / 1.1, ymax=1.08 / 1.1)
        for share, label in marks:
            box = {"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 0.8}
            ax.text(i + 0.04, share, without_math(shortened(label, 12)), fontsize=7.0, va="center", bbox=box)
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    ax.set_title(f"Each trial is a line; the {'largest' if run.goal == 'max' else 'smallest'} $y$ is vermilion")


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
