"""Two parameters at a time: maps of the model over the most important pairs, through the recommended point."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations
from typing import TypeAlias

import numpy as np

from gpmi._support.text import distinct_numbers
from gpmi._support.types import Array
from gpmi.space import Axis
from gpmi.views.html.markup import Markup, joined, tag
from gpmi.views.html.outputs import with_headings
from gpmi.views.html.svg import Size, drawn, legend_of, picture, text
from gpmi.views.pictures.levels import colours_of, levels_of
from gpmi.views.pictures.maps import map_of
from gpmi.views.pictures.picture import Picture
from gpmi.views.run_view import OutputView, RunView

# Our choices.
GRID = 33  # points along each side of a map
MAX_PARAMETERS, MAX_OF_SEVERAL = 4, 3  # the pairs of the most important parameters are drawn; of several outputs
SIZE = Size(320.0, 270.0, left=64.0)

Plane: TypeAlias = tuple[Axis, Axis, Array]  # two axes and the mean over them, nan where a constraint forbids a point


def contours(run: RunView) -> Markup | None:
    """Return the posterior mean over pairs of parameters, the others as recommended, with the queries.

    A run with goals has the maps of each output.
    """
    views = [view for view in run.each_output if view.recommended_row is not None]
    most = MAX_PARAMETERS if len(views) == 1 else MAX_OF_SEVERAL
    planes_by_view = [(view, planes) for view in views if (planes := _planes(view, most))]
    if not planes_by_view:
        return None
    count = len(planes_by_view[0][0].active_axes(GRID))
    lead = f"What the model believes about {run.subject} over pairs of parameters, "
    lead += f"while the others stay at {views[0].centre}."
    fewer = f" The {most} most important parameters of {count} are drawn." if count > most else ""
    outside = " With more than two parameters, most values were not observed in the plane that is drawn."
    maps_by_view = [(view, *_maps(view, planes)) for view, planes in planes_by_view]
    return joined(
        tag("p", lead, fewer, outside if count > 2 else ""),
        legend_of(*chain(*(maps for _, _, maps in maps_by_view))),
        with_headings([(view, _figures(view, levels, maps)) for view, levels, maps in maps_by_view]),
    )


def _planes(run: OutputView, most: int) -> list[Plane]:
    row, planes = run.recommended_row, []
    assert row is not None
    for a, b in combinations(run.active_axes(GRID)[:most], 2):
        shared = run.mixture_of(a)
        if shared is not None and shared == run.mixture_of(b):
            continue  # a triangle shows them
        rows = np.concatenate([run.along(b, place) for place in run.along(a, row)])
        values = np.where(run.inside(rows), run.mean(rows), np.nan)
        if np.isfinite(values).any():  # constraints may forbid a whole plane
            planes.append((a, b, values.reshape(len(a.settings), len(b.settings))))
    return planes


def _maps(run: OutputView, planes: list[Plane]) -> tuple[Array, list[Picture]]:
    """Return the levels of one output, and its maps."""
    levels = levels_of(np.concatenate([values[np.isfinite(values)] for _, _, values in planes]))
    levels = np.unique(run.possible.clip(levels))
    return levels, [map_of(run, *plane, levels) for plane in planes]


def _figures(run: OutputView, levels: Array, maps: list[Picture]) -> Markup:
    """Return the colours of the levels of one output, and its maps."""
    figures = [drawn(picture, SIZE, legend=False) for picture in maps]
    return joined(colour_bar(levels, colours_of(run, levels)), tag("div", figures, class_="figures"))


# Levels and colours


def colour_bar(levels: Array, colours: Sequence[str]) -> Markup:
    """Return the colours and the values at their borders."""
    count, width = len(levels) - 1, 36.0
    parts = [
        tag("rect", x=30.0 + width * i, y=2, width=width, height=14, fill=colour) for i, colour in enumerate(colours)
    ]
    step = -(-(count + 1) // 6)
    borders = distinct_numbers(levels.tolist())
    for i in range(0, count + 1, step):
        parts.append(text(30.0 + width * i, 30.0, borders[i], "tick", "middle"))
    total = 60.0 + width * count
    return picture(total, 36.0, "Colours", f"From {borders[0]} to {borders[-1]}.", parts, "chart colour-bar")
