"""Mixtures of three components: the posterior mean over a triangle, whose corners have all of one component."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpmi._support.text import rounded
from gpmi.space import Triangle, grid_of
from gpmi.views.figures.contours import centre_of
from gpmi.views.figures.style import BLACK, POINTS, colour_bar, without_math
from gpmi.views.pictures.levels import colours_of, levels_of
from gpmi.views.run_view import OutputView

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIDES = 60  # small triangles along a side; our choice
CORNERS = np.array([[0.5, np.sqrt(3.0) / 2.0], [0.0, 0.0], [1.0, 0.0]])


def draw_ternary(ax: Axes, run: OutputView, triangle: Triangle) -> None:
    """Draw mu over three components, everything else as recommended, with the queries and the recommended point."""
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.tri import Triangulation

    row = run.recommended_row
    assert row is not None
    weights, small = grid_of(SIDES)
    rows = triangle.rows(row, weights)
    inside = run.inside(rows)
    small = small[inside[small].all(axis=1)]
    if len(small):
        values = np.where(inside, run.mean(rows), np.nan)
        present = values[inside]
        levels = np.unique(run.possible.clip(levels_of(present)))
        colours = ListedColormap(colours_of(run, levels))
        fill: dict[str, Any] = {"levels": levels, "cmap": colours, "norm": BoundaryNorm(levels, len(levels) - 1)}
        filled = np.where(inside, values, float(present.mean()))  # no triangle has the others
        x, y = (weights @ CORNERS).T
        drawn = ax.tricontourf(Triangulation(x, y, small), filled, **fill)
        colour_bar(ax, drawn, ticks=levels[:: -max(1, len(levels) // 6)], spacing="uniform")
    ax.plot(*CORNERS[[0, 1, 2, 0]].T, color=BLACK, linewidth=0.8)
    told = triangle.weights(np.array([run.space.encode(trial.x) for _, trial in run.numbered])) @ CORNERS
    ax.plot(
        *told.T, "o", markerfacecolor="white", markeredgecolor=BLACK, markersize=4.0, linestyle="none", clip_on=False
    )
    ax.plot(*(triangle.weights(row[None]) @ CORNERS).T, **POINTS["star"])
    ends = zip(triangle.names, triangle.highs, CORNERS, ((0, 6), (-4, -14), (4, -14)), strict=True)
    for name, value, place, shift in ends:
        text = f"{without_math(name)} {rounded(float(value))}"
        ax.annotate(text, tuple(place), shift, textcoords="offset points", ha="center", annotation_clip=False)
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.set_title(without_math(run.short_name) or centre_of(run.warp).capitalize(), pad=18.0)
