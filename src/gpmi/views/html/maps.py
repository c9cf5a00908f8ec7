"""Two parameters at a time: the model over the most important pairs, through the recommended point."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from gpmi._support.text import distinct_numbers, round_to_sd
from gpmi._support.types import Array
from gpmi.space.axes import Axis
from gpmi.views.html.contour import cells, filled
from gpmi.views.html.markup import Markup, joined, tag
from gpmi.views.html.subject import Subject
from gpmi.views.html.svg import Chart, figure, key, margin, picture, ringed, scale_of, star, text

# Our choices.
GRID = 33  # points along each side
MOST = 4  # parameters whose pairs are drawn
# Five colours from dark to bright, told apart by all eyes and in grey; those between are interpolated.
COLOURS = np.array([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]], dtype=float)
LEVELS = 10
MANY = 200  # of more queries than this the dots are smaller, and those on one pixel are one
WIDTH, HEIGHT = 320.0, 270.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 10.0, 8.0, 42.0


def contours(subject: Subject) -> Markup | None:
    """The posterior mean over pairs of parameters, the others as recommended, with the queries."""
    axes, row = subject.active_axes(GRID), subject.recommended_row
    if row is None:
        return None
    sheets = []
    for a, b in combinations(axes[:MOST], 2):
        rows = np.concatenate([b.along(one) for one in a.along(row)])
        values = np.where(subject.inside(rows), subject.mean(rows), np.nan)
        if np.isfinite(values).any():  # constraints may leave nothing of a plane
            sheets.append((a, b, values.reshape(len(a.settings), len(b.settings))))
    if not sheets:
        return None
    levels = _levels(np.concatenate([values[np.isfinite(values)] for _, _, values in sheets]))
    drawn = [_map(subject, a, b, values, levels) for a, b, values in sheets]
    words = "What the model believes of f over pairs of parameters, while the others stay at the recommended point."
    more = f" The {MOST} most important parameters of {len(axes)} are drawn." if len(axes) > MOST else ""
    far = " Of more than two parameters, a value was in general not told in the plane that is drawn."
    marks = [
        (ringed(np.array([16.0]), np.array([8.0]), 3.0), "where values were told"),
        (star(16.0, 8.0, "star-on-map"), "recommended"),
    ]
    bar = _bar(levels, best_is_large=subject.goal == "max")
    return joined(
        tag("p", words, more, far if len(axes) > 2 else ""), key(*marks), bar, tag("div", drawn, class_="figures")
    )


def _map(subject: Subject, a: Axis, b: Axis, values: Array, levels: Array) -> Markup:
    y_scale = scale_of(b, HEIGHT - BOTTOM, TOP)
    chart = Chart(scale_of(a, margin(y_scale, LEFT), WIDTH - RIGHT), y_scale, WIDTH, HEIGHT)
    best_is_large = subject.goal == "max"
    chart.axes(a.title, b.title, x_ticks=5, y_ticks=5)
    row = subject.recommended_row
    assert row is not None
    if a.discrete or b.discrete:
        x, y = (scale(axis.edges) for scale, axis in ((chart.x, a), (chart.y, b)))
        paths = cells(x, y, np.searchsorted(levels[1:-1], values, side="right"), np.isfinite(values))
    else:
        rows = [axis.along(row) for axis in (a, b)]
        paths = filled(chart.x(a.positions(rows[0])), chart.y(b.positions(rows[1])), values, levels[:-1])
    for level, path in paths.items():
        chart.add(tag("path", d=path, fill=_colour(level, len(levels) - 1, best_is_large)))
    x, y = chart.x(a.positions(subject.rows)), chart.y(b.positions(subject.rows))
    places = np.unique(np.round(np.stack([x, y], axis=1) * (1.0 if len(x) > MANY else 10.0)), axis=0)
    x, y = places.T / (1.0 if len(x) > MANY else 10.0)
    chart.add(ringed(x, y, 2.0 if len(x) <= MANY else 1.2))
    here = float(chart.x(a.positions(row[None]))[0]), float(chart.y(b.positions(row[None]))[0])
    chart.add(star(*here, "star-on-map"))
    lo, hi = float(np.nanmin(values)), float(np.nanmax(values))
    desc = f"f is believed to lie between {round_to_sd(lo, hi - lo)} and {round_to_sd(hi, hi - lo)} here."
    return figure(chart.svg(f"f over {a.name} and {b.name}", desc))


def _levels(values: Array) -> Array:
    """LEVELS + 1 ascending borders; equal shares of the area at half of them, so that any function shows its shape."""
    lo, hi = float(values.min()), float(values.max())
    if hi - lo <= 1e-9 * max(abs(lo), abs(hi), 1e-300):
        return np.array([lo - 0.5, hi + 0.5])
    even, shares = np.linspace(lo, hi, LEVELS + 1), np.quantile(values, np.linspace(0.0, 1.0, LEVELS + 1))
    return np.unique(0.5 * (even + shares))


def _colour(level: int, count: int, best_is_large: bool) -> str:
    """The colour of a level; the best is bright."""
    share = level / max(1, count - 1)
    share = share if best_is_large else 1.0 - share
    at = np.arange(float(len(COLOURS)))
    red, green, blue = (round(float(np.interp(share * at[-1], at, channel))) for channel in COLOURS.T)
    return f"#{red:02x}{green:02x}{blue:02x}"


def _bar(levels: Array, *, best_is_large: bool) -> Markup:
    """The colours and the values at their borders."""
    count, width = len(levels) - 1, 36.0
    parts = []
    for i in range(count):
        x = 30.0 + width * i
        fill = _colour(i, count, best_is_large)
        parts.append(tag("rect", x=x, y=2, width=width, height=14, fill=fill))
    step = -(-(count + 1) // 6)
    borders = distinct_numbers(levels.tolist())
    for i in range(0, count + 1, step):
        parts.append(text(30.0 + width * i, 30.0, borders[i], "tick", "middle"))
    total = 60.0 + width * count
    return picture(total, 36.0, "Colours", f"From {borders[0]} to {borders[-1]}.", parts)
