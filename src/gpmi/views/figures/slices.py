"""One parameter at a time: the model as a curve with its deviation, through the recommended point."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpmi._support.types import Array
from gpmi.model.fitting.warp import Warp
from gpmi.space import Space
from gpmi.space.axes import Axis
from gpmi.views.figures.axes import axes_of, label_axis, value_label
from gpmi.views.figures.style import BLACK, BLUE, GREY, LIGHT, star
from gpmi.views.front_view import measured_levels
from gpmi.views.run_view import OutputView

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Function: TypeAlias = Callable[[Any], float]  # of one point, in the form of the space
MEAN = r"posterior mean $\mu$"


def draw_curve(
    ax: Axes, axis: Axis, rows: Array, bounds: Array, true: tuple[Function, Space] | None, centre: str = MEAN
) -> None:
    """Draw mu, mu +- sd and f along an axis, at the points rows (m, d).

    `bounds` (3, m) are mu - sd, mu and mu + sd there, in units of y; `centre` is the name of the middle one.
    """
    at = axis.positions(rows)
    low, mu, high = bounds
    if axis.discrete:
        error = np.stack([mu - low, high - mu])
        ax.errorbar(at, mu, error, fmt="none", color=LIGHT, elinewidth=7.0, label=r"$\mu \pm \sigma$")
        ax.plot(at, mu, "o", color=BLUE, markersize=4.5, label=centre)
    else:
        ax.fill_between(at, low, high, color=LIGHT, linewidth=0.0, label=r"$\mu \pm \sigma$")
        ax.plot(at, mu, color=BLUE, linewidth=1.6, label=centre)
    if true is not None:
        form = {"linestyle": "none", "marker": "_"} if axis.discrete else {"linestyle": (0, (4, 2))}
        ax.plot(at, values_of(*true, rows), color=BLACK, linewidth=1.0, label="$f$", **form)
    ax.grid(True)
    label_axis(ax, axis)


def draw_observations(ax: Axes, at: Array, y: Array) -> None:
    """Draw the values y (m,) observed at the positions `at` (m,) as crosses."""
    how: dict[str, Any] = {"color": BLUE, "markersize": 6.0, "markeredgewidth": 1.4, "zorder": 3, "clip_on": False}
    ax.plot(at, y, "x", label="observations", **how)


def draw_slices(panels: list[Axes], run: OutputView, f: Function | None, *, legend: bool = True) -> None:
    """Draw a curve through the recommended point for each parameter, all on the same scale of y.

    With a single parameter the observations are drawn. With several, an observation does not lie in the slice, so only
    its place on the axis is marked, at the bottom. Dashed lines are limits and what is acceptable of an output.
    """
    row = run.recommended_row
    assert row is not None
    queries = np.array([run.space.encode(trial.x) for _, trial in run.numbered])
    alone = len(panels) == 1
    for i, (ax, axis) in enumerate(zip(panels, axes_of(run.space), strict=True)):
        rows, bounds = run.along(axis, row), run.bounds(run.along(axis, row))
        if run.mixture_of(axis) is not None:  # the other components cannot be negative
            bounds[:, ~run.inside(rows)] = np.nan
        draw_curve(ax, axis, rows, bounds, None if f is None else (f, run.space), centre_of(run.warp))
        at = axis.positions(queries)
        if alone:
            draw_observations(ax, at, np.array([trial.y for _, trial in run.numbered]))
        else:
            ax.plot(
                at, np.zeros(len(at)), "|", color=BLUE, alpha=0.5, transform=ax.get_xaxis_transform(), markersize=9.0
            )
        ax.plot(axis.positions(row[None]), run.mean(row[None]), "*", **star(), label=run.centre_name)
        if i:
            ax.sharey(panels[0])
        cell = ax.get_subplotspec()
        first = cell is not None and cell.is_first_col()
        ax.tick_params(labelleft=first)
        ax.set_ylabel(value_label(run) if first else "")
    draw_levels(panels, run)
    if not legend:
        return
    figure = panels[0].get_figure()
    assert figure is not None
    figure.legend(*panels[0].get_legend_handles_labels(), ncols=5, loc="outside upper left")


def draw_levels(panels: list[Axes], run: OutputView) -> None:
    """Draw the limit of an output, or what is acceptable and its target, unless that is far from all that is drawn."""
    lo, hi = panels[0].get_ylim()
    for value, what in measured_levels(run.goals[run.key]):
        if 2.0 * lo - hi <= value <= 2.0 * hi - lo:
            for ax in panels:
                form = "solid" if what == "target" else (0, (5, 3))
                ax.axhline(value, color=GREY, linewidth=0.9, linestyle=form, zorder=1.2)


def centre_of(warp: Warp) -> str:
    """Return the name of the middle of a band: the inverse of a warp maps the mean to the median."""
    return "posterior median" if warp.bends else MEAN


def values_of(f: Function, space: Space, rows: Array) -> Array:
    """Return f at the points with coordinates rows (m, d)."""
    if not callable(f):
        raise TypeError(f"f is {f!r}; give a function of one point, or leave it out")
    values = np.array([np.asarray(f(space.decode(row)), dtype=float).item() for row in rows])
    if not np.all(np.isfinite(values)):
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"f returned {values[bad]} at x = {space.decode(rows[bad])!r}; leave f out of the figure")
    return values
