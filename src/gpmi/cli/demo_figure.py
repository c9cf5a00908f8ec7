"""The picture of the demonstration, for readers who have never heard of a Gaussian process: titles are sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpmi._support.types import Array
from gpmi.cli.demo_function import Function
from gpmi.policies import log_h
from gpmi.run import Result
from gpmi.views.figures.contours import MapPlane, draw_queries, shades
from gpmi.views.figures.style import (
    BLACK,
    BLUE,
    GREY,
    LIGHT,
    POINTS,
    VERMILION,
    legend_above,
    new_figure,
    style,
)
from gpmi.views.pictures.levels import colours_of, levels_of
from gpmi.views.pictures.slices import values_of
from gpmi.views.reading import view_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WORDS_OF_FRONT = ("the front so far", "still to be had, 95 %", "its median")
NEAR = 0.1  # a value this close to the maximum counts as found: 1/9000 of the range of f; our choice


def found_after(result: Result, function: Function) -> int | None:
    """Return the number of evaluations after which the best value was NEAR the maximum; None if it never was.

    Values are those of the function, without noise.
    """
    return next(
        (t for t, trial in view_of(result).numbered if function.maximum - function.f(trial.x) < NEAR),
        None,
    )


def story(result: Result, function: Function) -> Figure:
    """Draw a function of two parameters, the queries, the model at the end, its uncertainty, and the best value."""
    with style():
        figure = new_figure(13.6, 6.4)
        grid = figure.add_gridspec(2, 4)
        maps = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 3)]
        _draw_maps([figure.add_subplot(grid[place]) for place in maps], result, function)
        best = figure.add_subplot(grid[1, :3])
        after = found_after(result, function)
        gap = function.maximum - max(function.f(trial.x) for _, trial in view_of(result).numbered)
        ending = f"{gap:.3g} below the maximum" if after is None else f"the maximum, after {after} evaluations"
        _draw_best(best, result, f"5. The best so far: {ending}", function)
        best.axhline(function.maximum, color=VERMILION, linewidth=1.0, linestyle=(0, (4, 2)), label="the maximum")
        best.set_ylim(top=function.maximum + 0.06 * (function.maximum - best.get_ylim()[0]))
        legend_above(best)
    return figure


def _draw_maps(panels: list[Axes], result: Result, function: Function) -> None:
    from matplotlib.ticker import MaxNLocator

    (run,) = view_of(result).focus
    recommended = run.recommended_row
    assert recommended is not None
    plane = MapPlane.of(run)
    low, mu, high = run.bounds(plane.rows)
    true = values_of(function.f, result.space, plane.rows)
    levels = levels_of(np.concatenate([true, mu]))
    hidden, queries, believed, unsure, promising = panels
    plane.fill(hidden, true, levels, colours_of(run, levels), "1. A function, hidden from gpmi")
    hidden.plot(*function.argmax, "o", markersize=11.0, markerfacecolor="none", markeredgecolor=BLACK)
    plane.lines(queries, true, levels)
    count = len(result.trials)
    title = f"2. Where it looked: {count} evaluation{'s'[: count != 1]}"
    draw_queries(queries, run, plane, title, "early \N{RIGHTWARDS ARROW} late")
    plane.fill(believed, mu, levels, colours_of(run, levels), "3. What it believes at the end")
    sd = 0.5 * (high - low)
    steps = np.array(MaxNLocator(7).tick_values(0.0, float(sd.max()) or 1.0))
    plane.fill(unsure, sd, steps, shades("Greys", steps), "4. How unsure it still is, \N{PLUS-MINUS SIGN}")
    gain = _gain_of_one_more(mu, sd, float(run.bounds(recommended[None])[1][0]))
    steps = np.array(MaxNLocator(5).tick_values(0.0, max(float(gain.max()), NEAR)))
    plane.fill(promising, gain, steps, shades("Greens", steps), f"6. One more would bring at most {gain.max():.2g}")
    for ax in (believed, unsure, promising):
        ax.plot(*plane.positions(recommended[None]), **POINTS["star"])
    _label(hidden, function.argmax, "the maximum")
    at_best = tuple(float(at[0]) for at in plane.positions(recommended[None]))
    _label(believed, at_best, "its best guess" if found_after(result, function) is None else "found")


def _gain_of_one_more(mu: Array, sd: Array, best: float) -> Array:
    """Return the expected gain E max(f - best, 0) of one more value at points with f ~ N(mu, sd^2), (m,)."""
    z = np.divide(mu - best, sd, out=np.zeros_like(mu), where=sd > 0.0)
    return np.where(sd > 0.0, sd * np.exp(log_h(z)), np.maximum(mu - best, 0.0))


def picture_of_front(result: Result) -> Figure:
    """Draw what was measured in two objectives, where the front is, and how it grew."""
    from gpmi.views.figures import plots

    figure, left, right = _two_panels()
    plots.front(result, ax=left)
    plots.hypervolume(result, ax=right)
    _entitle(left, "1. What was measured, and what no other beats")
    _entitle(right, "2. How the front grew")
    with style():
        right.set_ylabel("what the front covers: yield \N{MULTIPLICATION SIGN} cost")
        right.set_xlabel("evaluation")
        drawn = right.get_legend_handles_labels()[0]
        right.legend(drawn, WORDS_OF_FRONT[: len(drawn)], loc="lower right")
    return figure


def picture_of_curves(result: Result) -> Figure:
    """Draw the trainings, and the best value against what was spent."""
    from gpmi.views.figures import plots

    figure, left, right = _two_panels()
    plots.curves(result, ax=left)
    plots.cost(result, ax=right)
    _entitle(left, "1. Trainings that would hardly win were stopped")
    _entitle(right, "2. The best value against what was spent")
    return figure


def _two_panels() -> tuple[Figure, Axes, Axes]:
    with style():
        figure = new_figure(10.8, 4.4)
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    return figure, left, right


def _entitle(ax: Axes, title: str) -> None:
    """Replace the title of a panel."""
    with style():
        ax.set_title("", loc="center")
        ax.set_title(title, loc="left")


def _label(ax: Axes, at: tuple[float, ...], words: str) -> None:
    """Write a label next to a point of a map, towards its middle."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    inward = (12.0 if at[0] < (left + right) / 2.0 else -12.0, 9.0 if at[1] < (bottom + top) / 2.0 else -15.0)
    ax.annotate(
        words, (at[0], at[1]), inward, textcoords="offset points", ha="left" if inward[0] > 0.0 else "right",
        color=BLACK, bbox={"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "none", "alpha": 0.8},
    )  # fmt: skip


def _draw_best(ax: Axes, result: Result, title: str, function: Function) -> None:
    """Draw each value and the best so far. The axis starts near the first value; lower ones are marked at its edge.

    The best so far is the best value of the function, without noise.
    """
    from matplotlib.ticker import MaxNLocator

    t, y = np.array([(t, trial.y) for t, trial in view_of(result).numbered], dtype=float).T
    true = np.array([function.f(trial.x) for _, trial in view_of(result).numbered])
    best: Array = np.maximum.accumulate(true)
    first = next((t for t, trial in view_of(result).numbered if trial.origin == "policy"), len(result.trials) + 1)
    floor = float(best[0] - 0.05 * (np.ptp(best) or 1.0))
    if first > 1:
        ax.axvspan(0.5, first - 0.5, color=LIGHT, alpha=0.45, linewidth=0.0, zorder=0, label="first: spread out")
    ax.plot(t[y >= floor], y[y >= floor], ".", color=GREY, markersize=5.0, label="each evaluation")
    if np.any(y < floor):
        ax.plot(
            t[y < floor],
            np.full(np.sum(y < floor), floor),
            "v",
            color=GREY,
            markersize=4.0,
            clip_on=False,
            label="below the axis",
        )
    ax.step(t, best, where="post", color=BLUE, linewidth=1.8, label="the best so far")
    ax.set_title(title, pad=22.0)
    ax.set(xlabel="evaluation", xlim=(0.5, max(2, len(result.trials)) + 0.5))
    ax.set_ylim(bottom=floor)
    ax.xaxis.set_major_locator(MaxNLocator(10, integer=True))
    ax.grid(True)
