"""How the run went: the values, the best so far, and the interval of the regret."""

from __future__ import annotations

import numpy as np

from gpmi._support.text import interval, rounded
from gpmi._support.types import Array
from gpmi.analysis.ledger.history import regret_history
from gpmi.views.html.markup import Markup, tag
from gpmi.views.html.subject import Subject
from gpmi.views.html.svg import Chart, Scale, band, crosses, dots, figure, fitted, key, line, margin, polyline, steps

WIDTH, HEIGHT = 440.0, 230.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 12.0, 8.0, 42.0


def convergence(subject: Subject) -> Markup | None:
    """The values in their order, and how far the recommended point may be from the optimum after each."""
    if not subject.told:
        return None
    return tag("div", _values(subject), _regret(subject), class_="figures large")


def _chart(last: int, y: Scale) -> Chart:
    return Chart(Scale(0.5, max(2, last) + 0.5, margin(y, LEFT), WIDTH - RIGHT, whole=True), y, WIDTH, HEIGHT)


def _values(subject: Subject) -> Markup:
    told = subject.told
    t, y = np.arange(1.0, len(told) + 1.0), np.array([trial.y for trial in told])
    counted = np.array([trial.feasible for trial in told])
    better = np.maximum if subject.goal == "max" else np.minimum
    worst = -np.inf if subject.goal == "max" else np.inf
    best = better.accumulate(np.where(counted, y, worst))
    shown = np.isfinite(best)
    chart = _chart(len(told), _clear_of_outliers(y, best[shown]))
    chart.axes("values told, in their order", "y")
    x, at = chart.x(t), chart.y(y)
    first = next((i for i, trial in enumerate(told) if trial.origin == "policy"), len(told))
    if first:
        left = float(chart.x.begin)
        width = float(chart.x(first + 0.5)) - left
        chart.parts.insert(0, tag("rect", x=left, y=TOP, width=width, height=HEIGHT - TOP - BOTTOM, class_="design"))
    chart.add(dots(x[counted], at[counted], "observed", 2.2), crosses(x[~counted], at[~counted], "failed", 2.5))
    if shown.any():
        chart.add(steps(x[shown], chart.y(best[shown]), "mean"))
    word = "largest" if subject.goal == "max" else "smallest"
    found = f"It is {rounded(float(best[-1]))} after {len(told)} values." if shown.any() else "None is feasible yet."
    marks = [
        (dots(np.array([16.0]), np.array([8.0]), "observed", 3.0), "a value"),
        (line(2, 8, 30, 8, "mean"), f"the {word} so far"),
    ]
    marks += (
        [(crosses(np.array([16.0]), np.array([8.0]), "failed"), "breaks a constraint")] if not counted.all() else []
    )
    marks += [(tag("rect", x=0, y=0, width=32, height=16, class_="design"), "before the policy chose")] if first else []
    title = f"The {word} value so far"
    return figure(
        chart.svg(title, f"Values in the order in which they were told. {found}"), title, ". ", found, key(*marks)
    )


def _clear_of_outliers(y: Array, best: Array) -> Scale:
    """A scale for the values on which the best so far can be read, whatever a few bad values are."""
    low, high = np.quantile(y, [0.02, 0.98])
    kept = y[(y >= low - 1.5 * (high - low)) & (y <= high + 1.5 * (high - low))]
    return fitted(np.concatenate([kept, best[-1:]]), HEIGHT - BOTTOM, TOP, wide=np.inf)


def _regret(subject: Subject) -> Markup:
    """The interval of the simple regret at some moments of the run."""
    found = () if subject.ledger is None else regret_history(subject.ledger)
    if not found:
        return tag("p", "How far the recommended point may be from the optimum is not known yet.")
    t = np.array([float(regret.t) for regret in found])
    low, high = np.array([regret.interval() for regret in found]).T
    middle = np.array([np.median(regret.simple) for regret in found])
    positive = high[high > 0.0]
    log = len(positive) > 0 and positive.max() > 100.0 * positive.min()
    if log:
        floor = 0.1 * float(positive.min())  # a logarithmic scale has no 0
        y = Scale(floor, 1.3 * float(high.max()), HEIGHT - BOTTOM, TOP, log=True)
    else:
        y = fitted(high, HEIGHT - BOTTOM, TOP, zero=True)
    chart = _chart(max(subject.ledger.n if subject.ledger else 0, 2), y)
    chart.axes("values told, in their order", "regret")
    x = chart.x(t)
    chart.add(band(x, y(low), y(high)), polyline(x, y(middle), "mean"), dots(x, y(middle), "point"))
    if len(found) == 1:
        chart.add(line(float(x[0]), float(y(low)[0]), float(x[0]), float(y(high)[0]), "whisker"))
    words = f"After {int(t[-1])} values it is {interval(low[-1], high[-1], middle[-1])}."
    marks = [
        (tag("rect", x=0, y=0, width=32, height=16, class_="area"), "95 % interval"),
        (line(2, 8, 30, 8, "mean"), "median"),
    ]
    title = "How far the recommended point may be from the optimum"
    return figure(
        chart.svg(title, f"The simple regret as believed at each moment. {words}"), title, ". ", words, key(*marks)
    )
