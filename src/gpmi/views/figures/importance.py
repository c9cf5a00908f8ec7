"""Which parameters matter: their Sobol indices, and how f depends on each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpmi._support.text import shortened
from gpmi.analysis.importance import Importance, Importances
from gpmi.space.axes import Axis
from gpmi.views.figures.axes import label_axis
from gpmi.views.figures.style import BLACK, BLUE, LIGHT
from gpmi.views.run_view import RunView

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_importances(ax: Axes, found: Importances, axes: list[Axis], f: str = "$f$") -> None:
    """Draw the total and the first-order index of each parameter with their intervals, the largest on top."""
    names = {id(one): axis.name for one, axis in zip(found, axes, strict=True)}
    ranked = found.ranked
    at = np.arange(len(ranked), dtype=float)
    for shift, colour, which in ((-0.2, LIGHT, "total"), (0.2, BLUE, "first order")):
        values = [one.total if which == "total" else one.first for one in ranked]
        ends = np.array([one.total_interval if which == "total" else one.first_interval for one in ranked])
        ax.barh(at + shift, values, 0.38, color=colour, edgecolor=BLUE, linewidth=0.6, label=which)
        ax.hlines(at + shift, ends[:, 0], ends[:, 1], color=BLACK, linewidth=1.0)
    ax.set_yticks(at, [shortened(names[id(one)], 24) for one in ranked])
    ax.set_ylim(len(ranked) - 0.5, -0.5)
    ax.set(xlim=(0.0, 1.0), xlabel=f"share of the variance of {f} (line: 95 %)")
    ax.legend(ncols=2, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)
    ax.grid(True, axis="x")


def draw_dependence(ax: Axes, run: RunView, one: Importance, axis: Axis) -> None:
    """Draw E[f | x_i] with its 95 % interval, and where the queries were."""
    rows = np.zeros((len(one.settings), run.space.dim))
    rows[:, axis.columns] = one.settings
    at, (low, high) = axis.positions(rows), one.effect_interval.T
    if axis.discrete:
        ax.vlines(at, low, high, color=LIGHT, linewidth=7.0, label="95 % interval")
        ax.plot(at, one.effect, "o", color=BLUE, markersize=4.5, label="mean over the others")
    else:
        order = np.argsort(at)
        ax.fill_between(at[order], low[order], high[order], color=LIGHT, linewidth=0.0, label="95 % interval")
        ax.plot(at[order], one.effect[order], color=BLUE, linewidth=1.6, label="mean over the others")
    queries = axis.positions(run.rows)
    how: dict[str, Any] = {"color": BLUE, "alpha": 0.5, "transform": ax.get_xaxis_transform(), "markersize": 9.0}
    ax.plot(queries, np.zeros(len(queries)), "|", **how)
    ax.grid(True)
    label_axis(ax, axis)
