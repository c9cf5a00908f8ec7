"""One parameter at a time: the model through the recommended point, with its standard deviation and the queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from gpmi._support.text import round_to_sd, rounded
from gpmi._support.types import Array
from gpmi.space.axes import Axis
from gpmi.views.front_view import measured_levels
from gpmi.views.html.markup import Markup, joined, tag
from gpmi.views.html.outputs import with_headings
from gpmi.views.html.svg import Chart, Scale, band, dots, figure, fitted, key, line, margin, polyline, scale_of, star
from gpmi.views.run_view import OutputView, RunView

POINTS = 61  # of a curve; our choice
MAX_SLICES = 12  # the most important parameters are drawn; our choice
WIDTH, HEIGHT = 320.0, 210.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 10.0, 8.0, 40.0

Curve: TypeAlias = tuple[Axis, Array, Array]  # an axis, points (m, d) along it, and mu - sd, mu, mu + sd (3, m) there


def slices(run: RunView) -> Markup | None:
    """Return mu and mu +- sd along each parameter through the recommended point; of each output of a run with goals."""
    views = [view for view in run.each_output if view.recommended_row is not None and view.active_axes(POINTS)]
    if not views:
        return None
    found = [(view, curves) for view in views if (curves := _curves(view))]
    if not found:
        return tag("p", "The constraints allow no parameter of the recommended point to change alone.")
    parts = [(view, _figures(view, curves)) for view, curves in found]
    return joined(*_lead(run, views), with_headings(parts))


def _lead(run: RunView, views: Sequence[OutputView]) -> tuple[Markup, Markup]:
    """Return what the pictures show, and the meaning of their marks."""
    count, what = len(views[0].active_axes(POINTS)), run.subject
    text = f"How {what} changes with one parameter while the others stay at {views[0].centre} (the star). "
    text += "The curves hold at these other settings; at others they may differ."
    mixed = " and ".join(", ".join(one.names) for one in run.mixtures)
    text += f" When one of {mixed} rises, the others of the mixture fall in proportion." if mixed else ""
    more = f" The {MAX_SLICES} most important parameters of {count} are drawn." if count > MAX_SLICES else ""
    marks = [
        (line(2, 8, 30, 8, "mean"), "what the model believes"),
        (tag("rect", x=0, y=0, width=32, height=16, class_="area"), "where it probably lies (two in three)"),
        (line(16, 2, 16, 14, "rug"), "where values were observed"),
        (star(16.0, 8.0), views[0].centre_name),
    ]
    if any(_levels(view) for view in views):
        marks.append((line(2, 8, 30, 8, "reference"), "a limit, a target, or the worst that is acceptable"))
    return tag("p", text, more), key(*marks)


def _curves(run: OutputView) -> list[Curve]:
    """Return mu and mu +- sd along the most important parameters, where the constraints allow them to change alone."""
    row, curves = run.recommended_row, []
    assert row is not None
    for axis in run.active_axes(POINTS)[:MAX_SLICES]:
        rows = run.along(axis, row)
        inside = run.inside(rows)
        bounds = np.full((3, len(rows)), np.nan)
        if inside.any():
            bounds[:, inside] = run.bounds(rows[inside])
            curves.append((axis, rows, bounds))
    return curves


def _figures(run: OutputView, curves: list[Curve]) -> Markup:
    """Return the curves of one output, in units of y, all on one scale."""
    alone = len(run.active_axes(POINTS)) == 1
    observed = [trial.y or 0.0 for trial in run.told] if alone else []
    values = np.concatenate([*(bounds.ravel() for _, _, bounds in curves), observed, _levels(run)])
    y = fitted(values, HEIGHT - BOTTOM, TOP, wide=np.inf)
    drawn = [_slice(run, y, alone, *curve) for curve in curves]
    return tag("div", drawn, class_="figures small" if len(run.goals) > 1 else "figures")


def _levels(run: OutputView) -> list[float]:
    """Return the limit of an output, or what is acceptable and its target, unless that is far from all its values."""
    y = np.array([trial.y for trial in run.told], dtype=float)
    if not len(y):
        return []
    reach = float(np.ptp(y))
    return [value for value, _ in measured_levels(run.goals[run.key]) if y.min() - reach <= value <= y.max() + reach]


def _slice(run: OutputView, y: Scale, alone: bool, axis: Axis, rows: Array, bounds: Array) -> Markup:
    low, mu, high = bounds
    chart = Chart(scale_of(axis, margin(y, LEFT), WIDTH - RIGHT), y, WIDTH, HEIGHT)
    f = run.function_name
    chart.axes(axis.title, f, x_ticks=5, y_ticks=4)
    for level in y(_levels(run)).tolist():
        chart.add(line(chart.x.begin, level, chart.x.end, level, "reference"))
    x = chart.x(axis.positions(rows))
    if axis.discrete:
        for at, bottom, top in np.stack([x, y(low), y(high)], axis=1)[np.isfinite(mu)].tolist():
            chart.add(tag("rect", x=at - 4.0, y=top, width=8, height=max(0.5, bottom - top), class_="area"))
        chart.add(dots(x, y(mu), "point", 3.0))
    else:
        chart.add(band(x, y(low), y(high)), polyline(x, y(mu), "mean"))
    queries = chart.x(axis.positions(run.rows))
    if alone:
        chart.add(dots(queries, y([trial.y or 0.0 for trial in run.told]), "observed", 2.5))
    else:
        places = np.unique(np.round(queries[np.isfinite(queries)], 1))
        chart.add(*(line(at, HEIGHT - BOTTOM - 7, at, HEIGHT - BOTTOM, "rug") for at in places.tolist()))
    row = run.recommended_row
    assert row is not None
    here = float(axis.positions(row[None])[0])
    chart.add(star(float(chart.x(here)), float(y(run.mean(row[None])[0]))))
    value = axis.labels[int(here)] if axis.labels is not None and np.isfinite(here) else rounded(here)
    lo, hi = float(np.nanmin(mu)), float(np.nanmax(mu))
    ends = " and ".join(round_to_sd(end, hi - lo) for end in (lo, hi))
    span = f"{f} is believed to lie between {ends} along it, at these other settings"
    return figure(
        chart.svg(
            f"{f} along {axis.name}",
            f"{span}; {'the recommended value' if not run.goals.named else run.centre_name} is {value}.",
        )
    )
