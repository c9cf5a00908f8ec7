"""How the run went: the values, the best so far, and the interval of the regret."""

from __future__ import annotations

import numpy as np

from gpmi._support.text import rough, rounded, shortened
from gpmi._support.types import Array
from gpmi.analysis.ledger import interval, share_missing
from gpmi.analysis.ledger.front_ledger import FrontLedger
from gpmi.views.front_view import stated, title_of
from gpmi.views.html.markup import Markup, tag
from gpmi.views.html.svg import Chart, Scale, band, crosses, dots, figure, fitted, key, line, margin, polyline, steps
from gpmi.views.run_view import RunView

WIDTH, HEIGHT = 440.0, 230.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 12.0, 8.0, 42.0
NAME = 40  # characters of the name of an output, at most


def convergence(run: RunView) -> Markup | None:
    """Return the values in their order, and how far the recommended point may be from the optimum after each.

    With several objectives it is the hypervolume of the front, and the values of each output.
    """
    if not run.told:
        return None
    if run.has_front:
        views = [run.of_objective(name) if name in run.objectives else run.of_output(name) for name in run.output_names]
        several = run.front_ledger is not None and len(run.objectives) > 1
        volume = _hypervolume(run.front_ledger) if several and run.front_ledger is not None else None
        return tag("div", volume, [_values(view) for view in views], class_="figures large")
    return tag("div", _values(run), _regret(run), class_="figures large")


def progress(run: RunView) -> Markup | None:
    """Return the values in their order alone, of each output."""
    if not run.told:
        return None
    views = [run]
    if run.has_front:
        views = [run.of_objective(name) if name in run.objectives else run.of_output(name) for name in run.output_names]
    return tag("div", [_values(view) for view in views], class_="figures large")


def _chart(last: int, y: Scale) -> Chart:
    return Chart(Scale(0.5, max(2, last) + 0.5, margin(y, LEFT), WIDTH - RIGHT, whole=True), y, WIDTH, HEIGHT)


def _values(run: RunView) -> Markup:
    told = run.told
    t, y = np.arange(1.0, len(told) + 1.0), np.array([trial.y for trial in told])
    feasible = np.array([trial.feasible for trial in told])
    better = np.maximum if run.goal == "max" else np.minimum
    worst = -np.inf if run.goal == "max" else np.inf
    best = better.accumulate(np.where(feasible, y, worst))
    goal = None if not run.goals.named or run.output is None else run.goals[run.output]
    name = run.value_name if run.output is None else shortened(title_of(run.output, goal), NAME)
    is_objective = not run.goals.named or run.output in run.objectives
    has_best = np.isfinite(best) if is_objective else np.zeros(len(best), dtype=bool)
    scale = _scale_without_outliers(y, best[has_best][-1:])
    level = stated(goal)
    if level is not None and 2.0 * scale.lo - scale.hi <= level <= 2.0 * scale.hi - scale.lo:
        scale = _scale_without_outliers(y, np.append(best[has_best][-1:], level))
    else:
        level = None
    chart = _chart(len(told), scale)
    chart.axes("values in order", name)
    if level is not None:
        chart.add(line(chart.x.begin, float(scale(level)), chart.x.end, float(scale(level)), "reference"))
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
    marks = [(dots(np.array([16.0]), np.array([8.0]), "observed", 3.0), "a value")]
    marks += [(line(2, 8, 30, 8, "mean"), f"the {largest} so far")] if is_objective else []
    violates = "violates a constraint" if not run.goals.named else "a limit does not hold, or is not measured yet"
    marks += [(crosses(np.array([16.0]), np.array([8.0]), "failed"), violates)] if not feasible.all() else []
    what = "the worst that is acceptable" if is_objective else "the limit"
    marks += [(line(2, 8, 30, 8, "reference"), what)] if level is not None else []
    marks += [(tag("rect", x=0, y=0, width=32, height=16, class_="design"), "before the model chose")] if first else []
    if not is_objective:
        title = f"The values of {name}"
        return figure(chart.svg(title, f"{count} in the order in which they came."), title, key(*marks))
    title = f"The {largest} {'value' if run.output is None else name} so far"
    return figure(chart.svg(title, f"Values in the order in which they came. {after}"), title, ". ", after, key(*marks))


def _hypervolume(ledger: FrontLedger) -> Markup:
    """Return the hypervolume after each trial with all objectives, and how much is still to be had."""
    if ledger.reference is None or not ledger.n:
        text = "How much the front covers is not known yet"
        return tag(
            "p", f"{text}: it takes {ledger.needed} trials with all objectives to say, and there are {ledger.n}."
        )
    now, missing = ledger.hypervolume, ledger.missing
    high = now + missing.interval()[1] if missing.known else now
    y = fitted(np.array([*ledger.history, high]), HEIGHT - BOTTOM, TOP, zero=True, wide=np.inf)
    chart = _chart(ledger.n, y)
    chart.axes("trials with all objectives", "hypervolume")
    marks = [(line(2, 8, 30, 8, "mean"), "the hypervolume of the front")]
    text = f"It is {rough(now, 4)} after {ledger.n} trials. "
    if missing.known:
        top, bottom, middle = (float(y(value)) for value in (high, now, now + missing.median))
        chart.add(tag("rect", x=chart.x.begin, y=top, width=chart.x.end - chart.x.begin, height=bottom - top,
                      class_="area"))  # fmt: skip
        chart.add(line(chart.x.begin, middle, chart.x.end, middle, "front-median"))
        marks.append((tag("rect", x=0, y=0, width=32, height=16, class_="area"), "still to be had, 95 % interval"))
        marks.append((line(2, 8, 30, 8, "front-median"), "its median"))
        text += f"Missing is {share_missing(missing.share()[1])}."
    else:
        text += f"How much is missing is {missing.how}."
    chart.add(steps(chart.x(np.arange(1.0, ledger.n + 1.0)), y(ledger.history), "mean"))
    title = "How much the front covers (hypervolume)"
    return figure(chart.svg(title, text), title, ". ", text, key(*marks))


def _scale_without_outliers(y: Array, best: Array) -> Scale:
    """Return a scale on which the best so far can be read, however bad a few values are."""
    low, high = np.quantile(y, [0.02, 0.98])
    inner = y[(y >= low - 1.5 * (high - low)) & (y <= high + 1.5 * (high - low))]
    return fitted(np.concatenate([inner, best]), HEIGHT - BOTTOM, TOP, wide=np.inf)


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
