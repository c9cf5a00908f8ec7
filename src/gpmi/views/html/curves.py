"""The curves of a run whose fidelity has steps: each over its steps, and where it was believed to go on to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from gpmi._support.text import rounded, shortened
from gpmi._support.types import Array
from gpmi.space import Space
from gpmi.trials import Trial
from gpmi.trials.goals import MAXIMISE
from gpmi.views.fidelity_view import (
    KINDS,
    DrawnCurve,
    Kind,
    continued,
    curves_of,
    drawn_curves,
    stop_reasons,
)
from gpmi.views.html.markup import Markup, cell, joined, simple_table, tag
from gpmi.views.html.outputs import with_headings
from gpmi.views.html.svg import Chart, Scale, band, crosses, dots, figure, fitted, key, line, margin, polyline
from gpmi.views.run_view import OutputView, RunView

WIDTH, HEIGHT = 440.0, 260.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 14.0, 8.0, 42.0
SMALL = 320.0, 180.0  # the picture of one curve
MAX_REASONS = 20  # that are listed, the most frequent first; our choice
LINES: dict[Kind, str] = {
    "finished": "thin",
    "short": "thin",
    "stopped": "faint",
    "running": "whisker",
    "failed": "failed",
}


def curves(run: RunView) -> Markup | None:
    """Return the curves, why trials were stopped, and how many; None if the fidelity has no steps."""
    parts = [(view, _chart(view)) for view in run.focus if curves_of(view)]
    if not parts:
        return None
    counts = Counter(curve.kind for curve in curves_of(parts[0][0]))
    words = ", ".join(f"{counts[kind]} {text}" for kind, text in KINDS.items() if counts[kind])
    lead = f"Each line is a trial over {run.fidelity.name}: {words}."
    reasons = stop_reasons(run)
    rows = [[tag("td", why, class_="words"), cell(count)] for why, count in reasons[:MAX_REASONS]]
    table = simple_table("Why trials were stopped", ["why they were stopped", "times"], rows) if rows else None
    return joined(tag("p", lead), with_headings(parts), table)


def _chart(run: OutputView) -> Markup:
    """Return the curves of one output."""
    curves = drawn_curves(run)
    ahead = continued(run, curves)
    best = None if run.best is None else run.best.number
    chart = _frame(run, curves, [end for _, way in ahead for end in (way.low, way.high)], (WIDTH, HEIGHT))
    for _, way in ahead:
        chart.add(tag("g", band(chart.x(way.steps), chart.y(way.low), chart.y(way.high)), opacity=0.35))
    for _, way in ahead:
        chart.add(polyline(chart.x(way.steps), chart.y(way.middle), "reference"))
    for curve in sorted(curves, key=lambda curve: (curve.kind == "running", curve.trial.number == best)):
        chart.add(*_drawn(chart, curve, is_best=curve.trial.number == best))
    kinds = [kind for kind in KINDS if any(curve.kind == kind for curve in curves)]
    marks = [(joined(line(2, 8, 24, 8, LINES[kind]), _end(26.0, 8.0, kind)), KINDS[kind]) for kind in kinds]
    if best is not None:
        marks.append((line(2, 8, 30, 8, "recommended"), f"the best, trial {best}"))
    if ahead:
        marks.append((line(2, 8, 30, 8, "reference"), "what the model predicts"))
        marks.append((tag("rect", x=0, y=0, width=32, height=16, class_="area", opacity=0.6), "80 % of the prediction"))
    total = len(curves_of(run))
    fewer = f" {len(curves)} of {total} are drawn." if len(curves) < total else ""
    said = "No trial has reached the last step yet." if run.best is None else f"The best ends at {rounded(run.best.y)}."
    name = shortened(run.given_name, 40) or "y"
    title = f"The curves of {name}"
    return figure(chart.svg(title, said + fewer), said, fewer, key(*marks))


def _frame(run: OutputView, curves: list[DrawnCurve], others: list[Array], size: tuple[float, float]) -> Chart:
    """Return an empty chart whose scales fit curves and other values."""
    y = fitted(np.concatenate([*(curve.y for curve in curves), *others]), size[1] - BOTTOM, TOP, wide=np.inf)
    first, last = run.fidelity.ends
    chart = Chart(Scale(first, last, margin(y, LEFT), size[0] - RIGHT, whole=True), y, *size)
    chart.axes(run.fidelity.title, shortened(run.given_name, 40) or "y")
    return chart


def _drawn(chart: Chart, curve: DrawnCurve, *, is_best: bool) -> list[Markup]:
    """Return a curve and the mark at its end."""
    x, y = chart.x(curve.steps), chart.y(curve.y)
    return [
        polyline(x, y, "recommended" if is_best else LINES[curve.kind]),
        _end(float(x[-1]), float(y[-1]), curve.kind),
    ]


def _end(x: float, y: float, kind: Kind) -> Markup:
    """Return the mark at the end of a curve: a dot, a cross if it was stopped or failed."""
    at = np.array([x]), np.array([y])
    match kind:
        case "finished":
            return dots(*at, "point")
        case "running":
            return tag("polygon", points=f"{x - 3:.1f},{y - 4:.1f} {x + 4:.1f},{y:.1f} {x - 3:.1f},{y + 4:.1f}",
                       class_="bar")  # fmt: skip
        case "short":
            return line(x, y - 4.0, x, y + 4.0, "mean")
        case "stopped":
            return crosses(*at, "whisker", 2.5)
    return crosses(*at, "failed", 3.0)


def trial_curve(space: Space, trial: Trial, outputs: Sequence[str | None]) -> Markup | None:
    """Return the curve of one trial as a small picture for each output that it reported; None without a curve.

    It needs no model. An output without a name is y.
    """
    drawn = []
    for name in outputs:
        run = OutputView(
            trials=(trial,), ledger=None, goals=MAXIMISE, space=space, seed=0, events=(), key=name or "y", goal="max"
        )
        for curve in curves_of(run):
            chart = _frame(run, [curve], [], SMALL)
            chart.add(polyline(chart.x(curve.steps), chart.y(curve.y), "mean"))
            chart.add(_end(float(chart.x(curve.steps[-1])), float(chart.y(curve.y[-1])), curve.kind))
            step, y = curve.end
            said = f"{rounded(y)} at step {int(step)}, {KINDS[curve.kind]}."
            drawn.append(figure(chart.svg(f"The curve of trial {trial.number}", said), said))
    return tag("div", drawn, class_="figures") if drawn else None
