"""How the run went: the values, the best so far, and the interval of the regret."""

from __future__ import annotations

import numpy as np

from gpmi._support.text import interval, rounded
from gpmi._support.types import Array
from gpmi.views.html.markup import Markup, tag
from gpmi.views.html.svg import Chart, Scale, band, crosses, dots, figure, fitted, key, line, margin, polyline, steps
from gpmi.views.run_view import RunView

WIDTH, HEIGHT = 440.0, 230.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 12.0, 8.0, 42.0


def convergence(run: RunView) -> Markup | None:
    """Return the values in their order, and how far the recommended point may be from the optimum after each."""
    if not run.told:
        return None
    return tag("div", _values(run), _regret(run), class_="figures large")


def _chart(last: int, y: Scale) -> Chart:
    return Chart(Scale(0.5, max(2, last) + 0.5, margin(y, LEFT), WIDTH - RIGHT, whole=True), y, WIDTH, HEIGHT)


def _values(run: RunView) -> Markup:
    told = run.told
    t, y = np.arange(1.0, len(told) + 1.0), np.array([trial.y for trial in told])
    feasible = np.array([trial.feasible for trial in told])
    better = np.maximum if run.goal == "max" else np.minimum
    worst = -np.inf if run.goal == "max" else np.inf
    best = better.accumulate(np.where(feasible, y, worst))
    has_best = np.isfinite(best)
    chart = _chart(len(told), _scale_without_outliers(y, best[has_best]))
    chart.axes("values in order", "y")
    x, at = chart.x(t), chart.y(y)
    first = next((i for i, trial in enumerate(told) if trial.origin == "policy"), len(told))
    if first:
        left = float(chart.x.begin)
        width = float(chart.x(first + 0.5)) - left
        chart.parts.insert(0, tag("rect", x=left, y=TOP, width=width, height=HEIGHT - TOP - BOTTOM, class_="design"))
    chart.add(dots(x[feasible], at[feasible], "observed", 2.2), crosses(x[~feasible], at[~feasible], "failed", 2.5))
    if has_best.any():
        chart.add(steps(x[has_best], chart.y(best[has_best]), "mean"))
    largest = "largest" if run.goal == "max" else "smallest"
    count = f"{len(told)} value{'s' if len(told) > 1 else ''}"
    after = f"It is {rounded(float(best[-1]))} after {count}." if has_best.any() else "None is feasible yet."
    marks = [
        (dots(np.array([16.0]), np.array([8.0]), "observed", 3.0), "a value"),
        (line(2, 8, 30, 8, "mean"), f"the {largest} so far"),
    ]
    marks += (
        [(crosses(np.array([16.0]), np.array([8.0]), "failed"), "violates a constraint")] if not feasible.all() else []
    )
    marks += [(tag("rect", x=0, y=0, width=32, height=16, class_="design"), "before the policy chose")] if first else []
    title = f"The {largest} value so far"
    return figure(chart.svg(title, f"Values in the order in which they came. {after}"), title, ". ", after, key(*marks))


def _scale_without_outliers(y: Array, best: Array) -> Scale:
    """Return a scale on which the best so far can be read, however bad a few values are."""
    low, high = np.quantile(y, [0.02, 0.98])
    inner = y[(y >= low - 1.5 * (high - low)) & (y <= high + 1.5 * (high - low))]
    return fitted(np.concatenate([inner, best[-1:]]), HEIGHT - BOTTOM, TOP, wide=np.inf)


def _regret(run: RunView) -> Markup:
    """Return the interval of the simple regret at some moments of the run."""
    found = run.regret_history
    if found is None:
        return tag("p", "How far the recommended point may be from the optimum is not known yet.")
    if found.floor is not None:
        y = Scale(found.floor, 1.3 * float(found.high.max()), HEIGHT - BOTTOM, TOP, log=True)
    else:
        y = fitted(found.high, HEIGHT - BOTTOM, TOP, zero=True)
    chart = _chart(max(run.ledger.n if run.ledger else 0, 2), y)
    chart.axes("values in order", "regret")
    x, low, median, high = chart.x(found.t), y(found.low), y(found.median), y(found.high)
    chart.add(band(x, low, high), polyline(x, median, "mean"), dots(x, median, "point"))
    if len(x) == 1:
        chart.add(line(float(x[0]), float(low[0]), float(x[0]), float(high[0]), "whisker"))
    now = f"After {int(found.t[-1])} values it is {interval(found.low[-1], found.high[-1], found.median[-1])}."
    marks = [
        (tag("rect", x=0, y=0, width=32, height=16, class_="area"), "95 % interval"),
        (line(2, 8, 30, 8, "mean"), "median"),
    ]
    title = "How far the recommended point may be from the optimum"
    return figure(
        chart.svg(title, f"The simple regret, as believed at each moment. {now}"), title, ". ", now, key(*marks)
    )
