"""What a run with a fidelity cost: the best value at the target against what was spent."""

from __future__ import annotations

import numpy as np

from gpmi._support.text import rounded, shortened
from gpmi.views.fidelity_view import CostTrace, spending
from gpmi.views.html.markup import Markup, cell, joined, simple_table, tag
from gpmi.views.html.svg import Chart, Scale, dots, figure, fitted, key, line, margin, steps, text
from gpmi.views.run_view import OutputView, RunView

WIDTH, PLOT, ROW = 440.0, 200.0, 15.0  # the height of the chart, and of a row of marks below it
LEFT, RIGHT, TOP, BOTTOM = 62.0, 12.0, 8.0, 42.0


def cost(run: RunView) -> Markup | None:
    """Return the best value against the cost, and how often each level was measured; None without a fidelity."""
    whole, fidelity = spending(run), run.fidelity
    if not len(whole.spent):
        return None
    counts = [int((whole.row == i).sum()) for i in range(len(fidelity.row_names))]
    rows = [
        [tag("th", name, scope="row"), *(tag("td", price) for price in prices), cell(count)]
        for (name, *prices), count in zip(fidelity.prices, counts, strict=True)
    ]
    traces = [(view, spending(view)) for view in run.objective_views if view.told]
    lead = f"{fidelity.cost_name.capitalize()}: {rounded(float(whole.spent[-1]))} for {len(whole.spent)} trials."
    return joined(
        tag("p", lead),
        tag("div", [_chart(view, trace) for view, trace in traces], class_="figures large") if traces else None,
        simple_table("What was measured", fidelity.head, rows[::-1]),
    )


def _chart(run: OutputView, trace: CostTrace) -> Markup:
    names = run.fidelity.row_names
    height = PLOT + ROW * len(names) + BOTTOM
    there, present = np.isfinite(trace.y), np.isfinite(trace.best)
    y = fitted(trace.y[there], PLOT - 6.0, TOP, wide=np.inf)
    last = float(trace.spent[-1]) or 1.0
    rows = Scale(0.0, 1.0, height - BOTTOM, TOP, named=((0.0, ""),))  # the frame goes round values and marks
    left = max(margin(y, LEFT), 14.0 + 6.2 * max(len(shortened(name, 14)) for name in names))
    chart = Chart(Scale(0.0, 1.02 * last, left, WIDTH - RIGHT), rows, WIDTH, height)
    for value, label in y.ticks(5):
        place = float(y(value))
        chart.add(line(left, place, WIDTH - RIGHT, place, "grid"), text(left - 5, place + 4, label, "tick", "end"))
    name = shortened(run.given_name, 40) or "y"
    chart.axes(run.fidelity.cost_name, "" if len(names) > 1 and left > 80 else name)
    chart.add(line(left, PLOT, WIDTH - RIGHT, PLOT, "grid"))
    x = chart.x(trace.spent)
    for i, row in enumerate(names[::-1]):
        at = PLOT + ROW * (i + 0.5)
        places = x[trace.row == len(names) - 1 - i]
        marks = "".join(f"M{place:.1f},{at - 4:.1f}v8" for place in places.tolist())
        chart.add(text(left - 5, at + 4, shortened(row, 14), "tick", "end"))
        chart.add(tag("path", d=marks, class_="thin" if i == 0 else "observed") if marks else Markup(""))
    chart.add(dots(x[there], y(trace.y[there]), "observed", 2.2))
    if present.any():
        end = np.append(x[present], float(chart.x(last)))
        chart.add(steps(end, y(np.append(trace.best[present], trace.best[-1])), "mean"))
    now = f"The {run.extreme} {name} is {rounded(float(trace.best[-1]))}." if present.any() else "None is feasible yet."
    entries = [
        (dots(np.array([16.0]), np.array([8.0]), "observed", 3.0), "a value at the target"),
        (line(2, 8, 30, 8, "mean"), f"the {run.extreme} so far"),
        (joined(line(10, 3, 10, 13, "thin"), line(22, 3, 22, 13, "observed")), "a measurement, by level"),
    ]
    title = f"The {run.extreme} {name} at the target, by what was spent"
    return figure(chart.svg(title, now), title, ". ", now, key(*entries))
