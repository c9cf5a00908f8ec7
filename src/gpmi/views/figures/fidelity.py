"""A run with a fidelity: its curves over the steps, and the best value against what was spent."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gpmi.views.fidelity_view import (
    KINDS,
    Kind,
    continued,
    curves_of,
    drawn_curves,
    spending,
    stop_reasons,
)
from gpmi.views.figures.axes import value_label
from gpmi.views.figures.style import BLUE, GREY, LIGHT, VERMILION, without_math
from gpmi.views.run_view import OutputView

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GREEN = "#009E73"  # of the palette of Okabe and Ito
HOW: dict[Kind, tuple[str, str]] = {  # the colour and the mark at the end of a curve
    "finished": (BLUE, "o"),
    "short": (BLUE, "|"),
    "stopped": (GREY, "x"),
    "running": (GREEN, ">"),
    "failed": (VERMILION, "s"),
}
ROWS = 0.3  # the part of a picture of the cost that the marks of the levels take at most; our choice
ROW = 0.065  # the part for each of them; our choice


def draw_curves(ax: Axes, run: OutputView) -> None:
    """Draw every curve over its steps, and where those that have not reached the target are believed to go on to."""
    curves, counts = drawn_curves(run), Counter(curve.kind for curve in curves_of(run))
    best = None if run.best is None else run.best.number
    for kind, (colour, mark) in HOW.items():
        others = [curve for curve in curves if curve.kind == kind and curve.trial.number != best]
        for curve in others:
            ax.plot(curve.steps, curve.y, color=colour, linewidth=0.9, alpha=0.75, zorder=2)
        if counts[kind]:
            ends = np.array([curve.end for curve in curves if curve.kind == kind]).reshape(-1, 2)
            how: dict[str, Any] = {"color": colour, "markersize": 4.5, "markeredgewidth": 1.3, "clip_on": False}
            name = f"{_kind_words(run, kind)} ({counts[kind]})"
            ax.plot(*ends.T, mark, linestyle="none", zorder=3, label=name, **how)
    for curve in curves:
        if curve.trial.number == best:
            ax.plot(curve.steps, curve.y, color=VERMILION, linewidth=2.4, zorder=2.5, label=run.best_title)
    lines: dict[str, Any] = {"linewidth": 0.9, "linestyle": (0, (3, 2)), "zorder": 1.5}
    names: tuple[str | None, str | None] = "predicted", "80 % of the prediction"
    for curve, ahead in continued(run, curves):
        ax.plot(ahead.steps, ahead.middle, color=HOW[curve.kind][0], label=names[0], **lines)
        ax.fill_between(ahead.steps, ahead.low, ahead.high, color=LIGHT, alpha=0.45, linewidth=0.0, label=names[1])
        names = None, None
    first, last = run.fidelity.ends
    margin = 0.02 * (last - first)
    ax.set(xlabel=without_math(run.fidelity.title), xlim=(first - margin, last + margin))
    ax.set_ylabel(value_label(run))
    ax.grid(True)


def _kind_words(run: OutputView, kind: Kind) -> str:
    """Return what a mark means: for stopped curves also why, if they have one reason in common."""
    reasons = stop_reasons(run)
    if kind != "stopped" or len(reasons) != 1 or reasons[0][0] == "no reason given":
        return KINDS[kind]
    return without_math(f"stopped: {reasons[0][0]}")


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
