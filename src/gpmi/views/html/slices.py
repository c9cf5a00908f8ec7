"""One parameter at a time: the model through the recommended point, with its standard deviation and the queries."""

from __future__ import annotations

import numpy as np

from gpmi._support.text import round_to_sd, rounded
from gpmi._support.types import Array
from gpmi.space.axes import Axis
from gpmi.views.html.markup import Markup, joined, tag
from gpmi.views.html.svg import Chart, Scale, band, dots, figure, fitted, key, line, margin, polyline, scale_of, star
from gpmi.views.run_view import RunView

POINTS = 61  # of a curve; our choice
MAX_SLICES = 12  # the most important parameters are drawn; our choice
WIDTH, HEIGHT = 320.0, 210.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 10.0, 8.0, 40.0


def slices(run: RunView) -> Markup | None:
    """Return mu and mu +- sd along each parameter through the recommended point, in units of y, all on one scale."""
    axes, row = run.active_axes(POINTS), run.recommended_row
    if row is None or not axes:
        return None
    curves = []
    for axis in axes[:MAX_SLICES]:
        rows = axis.along(row)
        inside = run.inside(rows)
        bounds = np.full((3, len(rows)), np.nan)
        if inside.any():
            bounds[:, inside] = run.bounds(rows[inside])
            curves.append((axis, rows, bounds))
    if not curves:
        return tag("p", "The constraints allow no parameter of the recommended point to change alone.")
    values = np.concatenate([bounds.ravel() for _, _, bounds in curves])
    alone = len(axes) == 1
    if alone:
        values = np.concatenate([values, [trial.y or 0.0 for trial in run.told]])
    y = fitted(values, HEIGHT - BOTTOM, TOP, wide=np.inf)
    drawn = [_slice(run, y, alone, *curve) for curve in curves]
    text = "How f changes with one parameter while the others stay at the recommended point (the star)."
    more = f" The {MAX_SLICES} most important parameters of {len(axes)} are drawn." if len(axes) > MAX_SLICES else ""
    marks = [
        (line(2, 8, 30, 8, "mean"), "what the model believes"),
        (tag("rect", x=0, y=0, width=32, height=16, class_="area"), "one standard deviation"),
        (line(16, 2, 16, 14, "rug"), "where values were observed"),
        (star(16.0, 8.0), "recommended"),
    ]
    return joined(tag("p", text, more), key(*marks), tag("div", drawn, class_="figures"))


def _slice(run: RunView, y: Scale, alone: bool, axis: Axis, rows: Array, bounds: Array) -> Markup:
    low, mu, high = bounds
    chart = Chart(scale_of(axis, margin(y, LEFT), WIDTH - RIGHT), y, WIDTH, HEIGHT)
    chart.axes(axis.title, "f", x_ticks=5, y_ticks=4)
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
    span = f"f is believed to lie between {round_to_sd(lo, hi - lo)} and {round_to_sd(hi, hi - lo)} along it"
    return figure(chart.svg(f"f along {axis.name}", f"{span}; the recommended value is {value}."))
