"""A run with a fidelity: the best value against what was spent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpmi.views.fidelity_view import spending
from gpmi.views.figures.axes import value_label
from gpmi.views.figures.style import BLUE, GREY, LIGHT, without_math
from gpmi.views.run_view import OutputView

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS = 0.3  # the part of a picture of the cost that the marks of the levels take at most; our choice
ROW = 0.065  # the part for each of them; our choice


def draw_cost(ax: Axes, run: OutputView) -> None:
    """Draw the best value at the target against what was spent, and below it a mark for each measurement by level."""
    trace, names = spending(run), run.fidelity.row_names
    there = np.isfinite(trace.y)
    last = float(trace.spent[-1])
    ax.plot(trace.spent[there], trace.y[there], ".", color=GREY, markersize=5.0, label="at the target")
    present = np.isfinite(trace.best)
    ax.step(
        np.append(trace.spent[present], last), np.append(trace.best[present], trace.best[-1]), where="post", color=BLUE,
        linewidth=1.6, label=f"{run.extreme} so far",
    )  # fmt: skip
    part = min(ROWS, ROW * (len(names) + 1))
    low, high = ax.get_ylim()
    ax.set_ylim(low - (high - low) * part / (1.0 - part), high)
    ax.set_xlim(0.0, 1.02 * last)
    ax.axhline(low, color=LIGHT, linewidth=0.8)
    places = part * (np.arange(len(names)) + 0.6) / (len(names) + 0.2)
    for i, (name, at) in enumerate(zip(names, places.tolist(), strict=True)):
        colour = BLUE if i == len(names) - 1 else GREY
        spent = trace.spent[trace.row == i]
        ax.plot(spent, np.full(len(spent), at), "|", color=colour, markersize=6.0, markeredgewidth=1.2,
                transform=ax.get_xaxis_transform())  # fmt: skip
        if len(names) <= ROWS / ROW + 1.0 or i in (0, len(names) - 1):
            ax.text(1.01, at, without_math(name), color=colour, fontsize=8.0, va="center", transform=ax.transAxes)
    ax.set_xlabel(without_math(run.fidelity.cost_name))
    ax.set_ylabel(value_label(run))
    ticks = [tick for tick in ax.get_yticks() if low <= tick <= high]
    ax.set_yticks(ticks)
    ax.grid(True)
