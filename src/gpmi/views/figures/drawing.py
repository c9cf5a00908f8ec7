"""Draws a picture into axes of Matplotlib. `style` has the colours."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpmi.views.figures.style import AREAS, GREY, LINES, POINTS, colour_bar, without_math
from gpmi.views.pictures.picture import (
    Band,
    Bundle,
    Hints,
    Level,
    Line,
    Map,
    Mark,
    Note,
    Outline,
    Picture,
    Points,
    Ruler,
    Side,
    Spans,
    Stripe,
    Texts,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(ax: Axes, picture: Picture) -> None:
    """Draw the marks of a picture and its axes. Labels are for a legend, which the caller adds."""
    labels = set[str]()
    for order, mark in enumerate(picture.marks):
        once = replace(mark, label="") if mark.label in labels else mark
        _draw_mark(ax, _at_edge(once, picture), 2.0 + 0.001 * order)
        labels.add(mark.label)
    set_axis(ax, picture.x, "x")
    set_axis(ax, picture.y, "y")
    ax.grid(not picture.bare)
    if picture.bare:
        ax.set_yticks([])
        ax.tick_params(axis="x", length=0.0)
        ax.spines[["left", "bottom"]].set_visible(False)


def set_axis(ax: Axes, ruler: Ruler, side: Side) -> None:
    """Set the title, the scale and the ticks of an axis."""
    from matplotlib.ticker import MaxNLocator

    change = ax.set_xlabel, ax.set_xscale, ax.set_xlim, ax.xaxis
    label, scale, limits, ticks = change if side == "x" else (ax.set_ylabel, ax.set_yscale, ax.set_ylim, ax.yaxis)
    label(without_math(ruler.title))
    if ruler.log:
        scale("log")
    limits(ruler.lo, ruler.hi)
    if ruler.named:
        ticks.set_ticks([value for value, _ in ruler.named], [without_math(name) for _, name in ruler.named])
    elif ruler.whole and not ruler.log:
        ticks.set_major_locator(MaxNLocator(6, integer=True))
    elif np.isfinite(ruler.least):
        numbers = np.asarray(MaxNLocator(6).tick_values(ruler.least, ruler.hi)).tolist()
        ticks.set_ticks([number for number in numbers if ruler.least <= number <= ruler.hi])


def _at_edge(mark: Mark, picture: Picture) -> Mark:
    """Return points with those beyond the axes at their edge."""
    if not isinstance(mark, Points):
        return mark
    x, y = (np.clip(at, side.lo, side.hi) for at, side in ((mark.x, picture.x), (mark.y, picture.y)))
    return replace(mark, x=x, y=y)


def _draw_mark(ax: Axes, mark: Mark, order: float) -> None:
    from matplotlib.collections import LineCollection

    label = without_math(mark.label) or None
    match mark:
        case Line():
            form = "steps-post" if mark.steps else "default"
            ax.plot(mark.x, mark.y, drawstyle=form, label=label, zorder=order, **LINES[mark.look])
        case Bundle():
            lines = [np.column_stack([mark.x, y]) for y in mark.y]
            ax.add_collection(LineCollection(lines, label=label, zorder=order, **LINES[mark.look]), autolim=False)
        case Texts():
            box = {"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 0.8}
            for x, y, text in zip(mark.x.tolist(), mark.y.tolist(), mark.texts, strict=True):
                ax.text(x + 0.04, y, without_math(text), fontsize=7.0, va="center", bbox=box, zorder=order)
        case Band():
            look: dict[str, Any] = {"label": label, "zorder": order, "linewidth": 0.0, **AREAS[mark.look]}
            ax.fill_between(mark.x, mark.low, mark.high, step="post" if mark.steps else None, **look)
        case Outline():
            ax.fill(mark.x, mark.y, label=label, zorder=order, linewidth=0.0, **AREAS[mark.look])
        case Points():
            ax.plot(mark.x, mark.y, **{"linestyle": "none", "label": label, "zorder": order, **POINTS[mark.look]})
        case Level(side="x"):
            ax.axvline(mark.at, label=label, zorder=order, **LINES[mark.look])
        case Level():
            ax.axhline(mark.at, label=label, zorder=order, **LINES[mark.look])
        case Stripe(side="x"):
            ax.axvspan(mark.low, mark.high, label=label, zorder=0.0, linewidth=0.0, **AREAS[mark.look])
        case Stripe():
            ax.axhspan(mark.low, mark.high, label=label, zorder=0.0, linewidth=0.0, **AREAS[mark.look])
        case Spans():
            _draw_spans(ax, mark, label, order)
        case Map():
            _draw_map(ax, mark)
        case Hints():
            pass  # a figure cannot be pointed at
        case Note():
            ax.text(0.5, 0.5, mark.text, color=GREY, ha="center", transform=ax.transAxes)


def _draw_map(ax: Axes, mark: Map) -> None:
    """Draw filled contours or cells, with their colour bar."""
    from matplotlib.colors import BoundaryNorm, ListedColormap

    levels = mark.levels
    how: dict[str, Any] = {"norm": BoundaryNorm(levels, len(levels) - 1), "cmap": ListedColormap(mark.colours)}
    if mark.has_cells:
        drawn: Any = ax.pcolormesh(mark.x, mark.y, mark.values.T, rasterized=True, **how)
    else:
        drawn = ax.contourf(mark.x, mark.y, mark.values.T, levels=levels, **how)
    colour_bar(ax, drawn, ticks=levels[:: -max(1, len(levels) // 6)], spacing="uniform")


def _draw_spans(ax: Axes, mark: Spans, label: str | None, order: float) -> None:
    """Draw bars if they have a width, otherwise lines as thick as the look is."""
    if mark.width:
        (ax.barh if mark.lie else ax.bar)(
            mark.at, mark.high - mark.low, mark.width, mark.low, label=label, zorder=order, **AREAS[mark.look]
        )
        return
    middle, half = 0.5 * (mark.low + mark.high), 0.5 * np.abs(mark.high - mark.low)
    places: dict[str, Any] = (
        {"x": middle, "y": mark.at, "xerr": half} if mark.lie else {"x": mark.at, "y": middle, "yerr": half}
    )
    look = LINES[mark.look]
    ax.errorbar(**places, fmt="none", ecolor=look["color"], elinewidth=look["linewidth"], label=label, zorder=order)
