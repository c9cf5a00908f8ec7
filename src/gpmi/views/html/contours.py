"""Two parameters at a time: maps of the model over the most important pairs, through the recommended point."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np

from gpmi._support.text import distinct_numbers, round_to_sd
from gpmi._support.types import Array, Mask, Numbers
from gpmi.space import Axis
from gpmi.views.html.markup import Markup, joined, tag
from gpmi.views.html.outputs import with_headings
from gpmi.views.html.svg import Chart, Scale, figure, key, margin, picture, ringed, star, text
from gpmi.views.pictures.levels import colours_of, levels_of
from gpmi.views.pictures.picture import Ruler
from gpmi.views.run_view import OutputView, RunView

# Our choices.
GRID = 33  # points along each side of a map
MAX_PARAMETERS, MAX_OF_SEVERAL = 4, 3  # the pairs of the most important parameters are drawn; of several outputs
MANY = 200  # with more queries the dots are smaller, and those on one pixel become one
WIDTH, HEIGHT = 320.0, 270.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 10.0, 8.0, 42.0

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
    marks = [
        (ringed(np.array([16.0]), np.array([8.0]), 3.0), "where values were observed"),
        (star(16.0, 8.0, "star-on-map"), views[0].centre_name),
    ]
    return joined(
        tag("p", lead, fewer, outside if count > 2 else ""),
        key(*marks),
        with_headings([(view, _maps(view, planes)) for view, planes in planes_by_view]),
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


def _maps(run: OutputView, planes: list[Plane]) -> Markup:
    """Return the maps of one output and the colours of their levels."""
    levels = levels_of(np.concatenate([values[np.isfinite(values)] for _, _, values in planes]))
    levels = np.unique(run.possible.clip(levels))
    colours = colours_of(run, levels)
    drawn = [_map(run, a, b, values, levels, colours) for a, b, values in planes]
    return joined(colour_bar(levels, colours), tag("div", drawn, class_="figures"))


def _map(run: OutputView, a: Axis, b: Axis, values: Array, levels: Array, colours: Sequence[str]) -> Markup:
    y_scale = Scale.of(Ruler.of(b), HEIGHT - BOTTOM, TOP)
    chart = Chart(Scale.of(Ruler.of(a), margin(y_scale, LEFT), WIDTH - RIGHT), y_scale, WIDTH, HEIGHT)
    chart.axes(a.title, b.title, x_ticks=5, y_ticks=5)
    row = run.recommended_row
    assert row is not None
    if a.discrete or b.discrete:
        x, y = (scale(axis.edges) for scale, axis in ((chart.x, a), (chart.y, b)))
        paths = cell_paths(x, y, np.searchsorted(levels[1:-1], values, side="right"), np.isfinite(values))
    else:
        rows = [axis.along(row) for axis in (a, b)]
        paths = contour_paths(chart.x(a.positions(rows[0])), chart.y(b.positions(rows[1])), values, levels[:-1])
    for level, path in paths.items():
        chart.add(tag("path", d=path, fill=colours[level]))
    x, y = chart.x(a.positions(run.rows)), chart.y(b.positions(run.rows))
    places = np.unique(np.round(np.stack([x, y], axis=1) * (1.0 if len(x) > MANY else 10.0)), axis=0)
    x, y = places.T / (1.0 if len(x) > MANY else 10.0)
    chart.add(ringed(x, y, 2.0 if len(x) <= MANY else 1.2))
    here = float(chart.x(a.positions(row[None]))[0]), float(chart.y(b.positions(row[None]))[0])
    chart.add(star(*here, "star-on-map"))
    lo, hi, f = float(np.nanmin(values)), float(np.nanmax(values)), run.function_name
    desc = f"{f} is believed to lie between {round_to_sd(lo, hi - lo)} and {round_to_sd(hi, hi - lo)} here."
    return figure(chart.svg(f"{f} over {a.name} and {b.name}", desc))


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


# Paths: the text of one SVG path for each level


def contour_paths(x: Array, y: Array, values: Array, levels: Array) -> dict[int, str]:
    """Return, for each level, the region of values at or above it. Paint them in order, the lowest first.

    values (a, b) are at the places x (a,), y (b,) in pixels; nan where there is no value. Between the points of the
    grid a value is interpolated along the edges of a cell. O(a b) for each level, most of it in NumPy.
    """
    paths = {}
    corners = np.stack([values[:-1, :-1], values[1:, :-1], values[1:, 1:], values[:-1, 1:]])  # round each cell
    present: Mask = np.all(np.isfinite(corners), axis=0)
    for number, level in enumerate(levels.tolist()):
        above: Mask = (corners >= level) if number else np.ones(corners.shape, dtype=bool)
        whole: Mask = np.all(above, axis=0) & present
        partly: Mask = np.any(above, axis=0) & ~whole & present
        parts = [_rectangles(x, y, whole)]
        parts += [_cell_part(x, y, int(i), int(j), corners[:, i, j], level) for i, j in np.argwhere(partly)]
        if path := "".join(parts):
            paths[number] = path
    return paths


def cell_paths(x: Array, y: Array, levels: Numbers, present: Mask) -> dict[int, str]:
    """Return, for each level, the cells that have it. levels (a, b); x (a + 1,) and y (b + 1,) are the borders."""
    return {int(level): _rectangles(x, y, (levels == level) & present) for level in np.unique(levels[present])}


def _cell_part(x: Array, y: Array, i: int, j: int, corners: Array, level: float) -> str:
    """Return the part of one cell in which the value is at least the level."""
    places = ((x[i], y[j]), (x[i + 1], y[j]), (x[i + 1], y[j + 1]), (x[i], y[j + 1]))
    points = []
    for k in range(4):
        here, there = float(corners[k]), float(corners[(k + 1) % 4])
        (x0, y0), (x1, y1) = places[k], places[(k + 1) % 4]
        if here >= level:
            points.append((x0, y0))
        if (here >= level) != (there >= level):
            share = (level - here) / (there - here)
            points.append((x0 + share * (x1 - x0), y0 + share * (y1 - y0)))
    return "M" + "L".join(f"{_short(a)},{_short(b)}" for a, b in points) + "z"


def _rectangles(x: Array, y: Array, cells: Mask) -> str:
    """Return cells of the grid as rectangles; adjacent cells of a column become one."""
    parts = []
    for i, column in enumerate(cells):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], column, [False]]).astype(int)))
        for begin, end in edges.reshape(-1, 2):
            parts.append(f"M{_short(x[i])},{_short(y[begin])}H{_short(x[i + 1])}V{_short(y[end])}H{_short(x[i])}z")
    return "".join(parts)


def _short(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")
