"""Mixtures of three components: the model over a triangle, whose corners have all of one component."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpmi._support.text import round_to_sd, rounded, shortened
from gpmi._support.types import Array
from gpmi.space import Triangle, grid_of
from gpmi.views.html.contours import colour_bar
from gpmi.views.html.markup import Markup, joined, tag
from gpmi.views.html.outputs import with_headings
from gpmi.views.html.svg import figure, key, line, picture, points_of, ringed, star, text
from gpmi.views.pictures.levels import colours_of, levels_of
from gpmi.views.run_view import OutputView, RunView

SIDES = 24  # small triangles along a side; our choice
WIDTH, HEIGHT = 360.0, 330.0
SIDE = 270.0  # of the triangle, in pixels
TOP, NAME = 34.0, 24  # above the triangle; characters of a name
GRID = (0.25, 0.5, 0.75)  # where grid lines are drawn
_CORNERS = np.array([[0.5, 0.0], [0.0, 1.0], [1.0, 1.0]]) * [SIDE, SIDE * np.sqrt(3.0) / 2.0]
_CORNERS += [(WIDTH - SIDE) / 2.0, TOP]


def mixture(run: RunView) -> Markup | None:
    """Return the posterior mean over each mixture with three components or more, for each output."""
    views = [view for view in run.each_output if view.recommended_row is not None]
    views = [view for view in views if view.triangles]
    if not views:
        return None
    lead = f"What the model believes about {run.subject} for each mixture. In a corner there is as much as possible of "
    lead += f"one component; on the opposite side, as little as possible. Everything else stays at {views[0].centre}."
    marks = [
        (ringed(np.array([16.0]), np.array([8.0]), 3.0), "where values were observed"),
        (star(16.0, 8.0, "star-on-map"), views[0].centre_name),
    ]
    parts = [(view, joined(*(_map(view, triangle) for triangle in view.triangles))) for view in views]
    return joined(tag("p", lead), key(*marks), with_headings(parts))


def _map(run: OutputView, triangle: Triangle) -> Markup:
    row = run.recommended_row
    assert row is not None
    weights, small = grid_of(SIDES)
    rows = triangle.rows(row, weights)
    inside = run.inside(rows)
    if not inside.any():
        return Markup("")
    values = np.where(inside, run.mean(rows), np.nan)
    levels = np.unique(run.possible.clip(levels_of(values[inside])))
    colours = colours_of(run, levels)
    places = weights @ _CORNERS
    parts = [tag("polygon", points=points_of(*_CORNERS.T), class_="frame")]
    parts += triangle_paths(places, small, values, levels, colours)
    parts += _grid()
    told = triangle.weights(run.rows) @ _CORNERS
    parts.append(ringed(told[:, 0], told[:, 1], 2.2))
    here = triangle.weights(row[None])[0] @ _CORNERS
    parts.append(star(float(here[0]), float(here[1]), "star-on-map"))
    parts += _names(triangle)
    lo, hi, f = float(np.nanmin(values)), float(np.nanmax(values)), run.function_name
    title = f"{f} over {', '.join(triangle.names)}"
    desc = f"{f} is believed to lie between {round_to_sd(lo, hi - lo)} and {round_to_sd(hi, hi - lo)} here."
    drawn = figure(picture(WIDTH, HEIGHT, title, desc, parts))
    return joined(colour_bar(levels, colours), tag("div", drawn, class_="figures ternary"))


def triangle_paths(places: Array, small: Array, values: Array, levels: Array, colours: Sequence[str]) -> list[Markup]:
    """Return the regions of each level over small triangles (k, 3), each painted above the lower ones.

    A value is interpolated along the edges of a triangle. One without a value at a corner is left out.
    """
    paths: list[list[str]] = [[] for _ in colours]
    borders = levels[1:-1]
    for triangle in small:
        y, at = values[triangle], places[triangle]
        if not np.all(np.isfinite(y)):
            continue
        first, last = (int(np.searchsorted(borders, end, side="right")) for end in (y.min(), y.max()))
        paths[first].append(_path(at))
        for level in range(first + 1, last + 1):
            paths[level].append(_path(part_above(at, y, float(borders[level - 1]))))
    return [
        tag("path", d="".join(path), fill=colour, stroke=colour, stroke_width=0.7)
        for path, colour in zip(paths, colours, strict=True)
        if path
    ]


def part_above(at: Array, values: Array, level: float) -> Array:
    """Return the corners (m, 2) of the part of a triangle in which the interpolated value is at least the level."""
    points = []
    for k in range(3):
        here, there = float(values[k]), float(values[(k + 1) % 3])
        if here >= level:
            points.append(at[k])
        if (here >= level) != (there >= level):
            points.append(at[k] + (level - here) / (there - here) * (at[(k + 1) % 3] - at[k]))
    return np.array(points)


def _path(points: Array) -> str:
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points.tolist()) + "z"


def _grid() -> list[Markup]:
    """Return lines on which a component has a quarter, a half and three quarters of its range."""
    lines = []
    for k in range(3):
        start, other = _CORNERS[(k + 1) % 3], _CORNERS[(k + 2) % 3]
        for share in GRID:
            a, b = (share * _CORNERS[k] + (1.0 - share) * end for end in (start, other))
            lines.append(line(a[0], a[1], b[0], b[1], "on-map-grid"))
    return lines


def _names(triangle: Triangle) -> list[Markup]:
    """Return the name of each component at its corner, with its value there."""
    shifts, anchors = ((0.0, -16.0), (-22.0, 18.0), (22.0, 18.0)), ("middle", "start", "end")
    names = []
    for k, name in enumerate(triangle.names):
        x, y = _CORNERS[k] + shifts[k]
        value = rounded(float(triangle.highs[k]))
        names.append(text(float(x), float(y), f"{shortened(name, NAME)} {value}", "corner", anchors[k]))
    return names
