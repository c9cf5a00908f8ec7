"""One parameter at a time: the model through the recommended point, with its deviation and the queries."""

from __future__ import annotations

import numpy as np

from gpmi.axes import Axis
from gpmi.gp.tracking import moments_in_chunks
from gpmi.report.markup import Markup, joined, tag
from gpmi.report.subject import Subject
from gpmi.report.svg import Chart, Scale, band, dots, figure, fitted, key, line, polyline, scale_of, star
from gpmi.text import rounded
from gpmi.types import Array

POINTS = 61  # of a curve; our choice
MOST = 12  # parameters that are drawn, the most important ones; our choice
WIDTH, HEIGHT = 320.0, 210.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 10.0, 8.0, 40.0


def slices(subject: Subject) -> Markup | None:
    """mu and mu +- sd along each parameter through the recommended point, in units of y, all on one scale."""
    posterior, row, warp = subject.posterior, subject.recommended_row, subject.warp
    if posterior is None or row is None or warp is None:
        return None
    axes = subject.active_axes(POINTS)
    if not axes:
        return None
    curves = []
    for axis in axes[:MOST]:
        rows = axis.along(row)
        rows = rows[subject.inside(rows)]
        mu, var = moments_in_chunks(posterior, rows)
        sd = np.sqrt(var)
        curves.append((axis, rows, warp.inverse(mu - sd), warp.inverse(mu), warp.inverse(mu + sd)))
    values = np.concatenate([np.concatenate([low, high]) for _, _, low, _, high in curves])
    alone = len(axes) == 1
    if alone:
        values = np.concatenate([values, [trial.y or 0.0 for trial in subject.told]])
    y = fitted(values, HEIGHT - BOTTOM, TOP, wide=np.inf)
    drawn = [_slice(subject, y, alone, *curve) for curve in curves]
    words = "How f changes with one parameter while the others stay at the recommended point (the star)."
    more = f" The {MOST} most important parameters of {len(axes)} are drawn." if len(axes) > MOST else ""
    marks = [
        (line(2, 8, 30, 8, "mean"), "what the model believes"),
        (tag("rect", x=0, y=0, width=32, height=16, class_="area"), "one standard deviation"),
        (line(16, 2, 16, 14, "rug"), "where values were told"),
        (star(16.0, 8.0), "recommended"),
    ]
    return joined(tag("p", words, more), key(*marks), tag("div", drawn, class_="figures"))


def _slice(
    subject: Subject, y: Scale, alone: bool, axis: Axis, rows: Array, low: Array, mu: Array, high: Array
) -> Markup:
    chart = Chart(scale_of(axis, LEFT, WIDTH - RIGHT), y, WIDTH, HEIGHT)
    chart.axes(axis.title, "f", x_ticks=5, y_ticks=4)
    x = chart.x(axis.positions(rows))
    if axis.discrete:
        for at, bottom, top in zip(x, y(low), y(high), strict=True):
            chart.add(
                tag("rect", x=float(at) - 4, y=float(top), width=8, height=max(0.5, float(bottom - top)), class_="area")
            )
        chart.add(dots(x, y(mu), "point", 3.0))
    else:
        chart.add(band(x, y(low), y(high)), polyline(x, y(mu), "mean"))
    queries = chart.x(axis.positions(subject.rows))
    if alone:
        chart.add(dots(queries, y([trial.y or 0.0 for trial in subject.told]), "observed", 2.5))
    else:
        places = np.unique(np.round(queries[np.isfinite(queries)], 1))
        chart.add(*(line(at, HEIGHT - BOTTOM - 7, at, HEIGHT - BOTTOM, "rug") for at in places.tolist()))
    row = subject.recommended_row
    assert row is not None and subject.believed is not None
    here = float(axis.positions(row[None])[0])
    chart.add(star(float(chart.x(here)), float(y(subject.believed[1]))))
    at = axis.labels[int(here)] if axis.labels is not None and np.isfinite(here) else rounded(here)
    span = f"f is believed to lie between {rounded(float(mu.min()))} and {rounded(float(mu.max()))} along it"
    return figure(chart.svg(f"f along {axis.name}", f"{span}; the recommended value is {at}."))
