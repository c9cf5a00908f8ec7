"""The model along one parameter: a curve with its deviation, and one such slice for each parameter of a space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.posterior import Posterior
from gpmi.model.fitting.warp import IDENTITY, Warp
from gpmi.space import Space
from gpmi.space.axes import Axis
from gpmi.views.figures.axes import axes_of, label
from gpmi.views.figures.source import Function, Snapshot, band, centre, model_of, told, values_of
from gpmi.views.figures.style import BLACK, BLUE, LIGHT, star

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_curve(
    ax: Axes,
    posterior: Posterior,
    axis: Axis,
    row: Array,
    true: tuple[Function, Space] | None,
    warp: Warp = IDENTITY,
) -> None:
    """Draw mu, mu +- sd and f along an axis through the point with coordinates row (d,), in units of y."""
    rows = axis.along(row)
    at = axis.positions(rows)
    low, mu, high = band(posterior, rows, warp)
    if axis.discrete:
        error = np.stack([mu - low, high - mu])
        ax.errorbar(at, mu, error, fmt="none", color=LIGHT, elinewidth=7.0, label=r"$\mu \pm \sigma$")
        ax.plot(at, mu, "o", color=BLUE, markersize=4.5, label=centre(warp))
    else:
        ax.fill_between(at, low, high, color=LIGHT, linewidth=0.0, label=r"$\mu \pm \sigma$")
        ax.plot(at, mu, color=BLUE, linewidth=1.6, label=centre(warp))
    if true is not None:
        form = {"linestyle": "none", "marker": "_"} if axis.discrete else {"linestyle": (0, (4, 2))}
        ax.plot(at, values_of(*true, rows), color=BLACK, linewidth=1.0, label="$f$", **form)
    ax.grid(True)
    label(ax, axis)


def draw_observations(ax: Axes, at: Array, y: Array) -> None:
    """Draw the values y (m,) observed at the positions `at` (m,) as crosses."""
    how: dict[str, Any] = {"color": BLUE, "markersize": 6.0, "markeredgewidth": 1.4, "zorder": 3, "clip_on": False}
    ax.plot(at, y, "x", label="observations", **how)


def draw_slices(panels: list[Axes], snapshot: Snapshot, f: Function | None) -> None:
    """Draw a curve through the recommended point for each parameter, all on the same scale of y.

    A single parameter shows the observations. With more of them an observation does not lie in the slice: only its
    place on the axis is marked, at the bottom.
    """
    posterior, row = model_of(snapshot)
    trials = told(snapshot.trials)
    queries = np.array([snapshot.space.encode(trial.x) for _, trial in trials])
    alone = len(panels) == 1
    for i, (ax, axis) in enumerate(zip(panels, axes_of(snapshot.space), strict=True)):
        draw_curve(ax, posterior, axis, row, None if f is None else (f, snapshot.space), snapshot.warp)
        at = axis.positions(queries)
        if alone:
            draw_observations(ax, at, np.array([trial.y for _, trial in trials]))
        else:
            ax.plot(
                at, np.zeros(len(at)), "|", color=BLUE, alpha=0.5, transform=ax.get_xaxis_transform(), markersize=9.0
            )
        ax.plot(axis.positions(row[None]), snapshot.warp.inverse(posterior.mu(row)), "*", **star(), label="recommended")
        if i:
            ax.sharey(panels[0])
        cell = ax.get_subplotspec()
        first = cell is not None and cell.is_first_col()
        ax.tick_params(labelleft=first)
        ax.set_ylabel("$y$" if first else "")
    figure = panels[0].get_figure()
    assert figure is not None
    figure.legend(*panels[0].get_legend_handles_labels(), ncols=5, loc="outside upper left")
