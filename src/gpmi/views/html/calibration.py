"""Can the model be believed? What it predicted before each value, and the value that came."""

from __future__ import annotations

import numpy as np

from gpmi._support.text import rounded
from gpmi._support.types import Array
from gpmi.views.html.markup import Markup, joined, sentence, simple_table, tag
from gpmi.views.html.outputs import with_headings
from gpmi.views.html.svg import Chart, Scale, dots, figure, line
from gpmi.views.run_view import RunView

WIDTH, HEIGHT = 320.0, 230.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 10.0, 8.0, 42.0

VERDICTS = {
    "fine": "The model's confidence was justified: the values fell where it predicted.",
    "over-confident": "The model was too sure of itself: values fell farther from its predictions than it allowed for. "
    "Do not trust its intervals.",
    "under-confident": "The model was too cautious: values fell closer to its predictions than it expected.",
    "too early to say": "There are too few predictions to judge the model.",
}


def calibration(run: RunView) -> Markup | None:
    """Return the verdict, the residuals in their order, and how many fell into their intervals; for each output."""
    parts = [(view, html) for view in run.each_output if (html := _one(view)) is not None]
    return with_headings(parts) if parts else None


def _one(run: RunView) -> Markup | None:
    if run.ledger is None:
        return None
    judged = run.ledger.calibration
    verdict = tag("p", tag("strong", sentence(judged.verdict), " "), VERDICTS[judged.verdict])
    reason = tag("p", f"Evidence: {judged.reason}.", class_="muted")
    z = judged.ahead
    if not len(z):
        return joined(verdict, reason)
    rows = [
        [tag("th", f"{level:.0%}", scope="row"), tag("td", f"{share:.0%}")] for level, share in judged.coverage.items()
    ]
    table = simple_table(
        "How many values fell into the intervals", ["of the values should be inside", "were inside"], rows
    )
    if run.output is not None:
        return joined(verdict, reason, tag("div", _residuals(z), _quantiles(z), table, class_="figures"))
    return joined(verdict, reason, tag("div", _residuals(z), _quantiles(z), class_="figures"), table)


def _residuals(z: Array) -> Markup:
    reach = max(3.0, float(np.abs(z).max()) * 1.05)
    chart = Chart(
        Scale(0.5, len(z) + 0.5, LEFT, WIDTH - RIGHT, whole=True),
        Scale(-reach, reach, HEIGHT - BOTTOM, TOP),
        WIDTH,
        HEIGHT,
    )
    for width in (1.96, 0.674):  # the central 95 % and 50 % of N(0, 1)
        top, bottom = float(chart.y(width)), float(chart.y(-width))
        chart.add(
            tag("rect", x=LEFT, y=top, width=WIDTH - LEFT - RIGHT, height=bottom - top, class_="area", opacity=0.5)
        )
    chart.axes("prediction", "residual / sd", y_ticks=6)
    chart.add(dots(chart.x(np.arange(1.0, len(z) + 1.0)), chart.y(z), "point"))
    desc = f"{len(z)} residuals; their root mean square is {rounded(float(np.sqrt(np.mean(z**2))))} and should be 1."
    return figure(
        chart.svg("Residuals of the predictions", desc),
        "How far each value fell from its prediction, in standard deviations. Half of them should be in the inner "
        "band, 95 % in the outer one.",
    )


def _quantiles(z: Array) -> Markup:
    from scipy.special import ndtri

    ordered, n = np.sort(z), len(z)
    expected = ndtri((np.arange(n) + 0.5) / n)
    reach = max(2.5, float(np.abs(ordered).max()) * 1.05, float(expected[-1]) * 1.05)
    chart = Chart(Scale(-reach, reach, LEFT, WIDTH - RIGHT), Scale(-reach, reach, HEIGHT - BOTTOM, TOP), WIDTH, HEIGHT)
    chart.axes("expected", "observed", y_ticks=6)
    chart.add(line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, TOP, "reference"))
    chart.add(dots(chart.x(expected), chart.y(ordered), "point"))
    desc = "Ordered residuals against those of a correct model; they should follow the diagonal."
    return figure(
        chart.svg("Observed and expected residuals", desc),
        "The residuals in ascending order, against those of a correct model. Steeper than the diagonal means "
        "over-confident.",
    )
