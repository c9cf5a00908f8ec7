"""Which parameters matter: the Sobol indices as bars and as a table."""

from __future__ import annotations

import numpy as np

from gpmi._support.text import round_to_sd, shortened
from gpmi.analysis.descriptors import descriptor_shares
from gpmi.analysis.importance import Importance, Importances
from gpmi.views.html.markup import Markup, exact, joined, simple_table, tag
from gpmi.views.html.outputs import with_headings
from gpmi.views.html.svg import LETTER, Chart, Scale, figure, key, line
from gpmi.views.run_view import RunView

ROW, WIDTH = 32.0, 440.0
SHOWN_DESCRIPTORS = 8  # descriptors in a table; our choice
SMALLEST_SD = 0.01  # of an index when it is rounded: a certain index has three decimals


def importance(run: RunView) -> Markup | None:
    """Return the first-order and total index of each parameter, the most important one first; for each output."""
    parts = [(view, html) for view in run.each_output if (html := _one(view)) is not None]
    if not parts:
        return None
    notes = [found.note for view in run.each_output if (found := view.importances) is not None and len(found)]
    if not notes:
        return with_headings(parts)
    what = "f" if not run.goals.named else "an output"
    return joined(
        tag(
            "p",
            f"The share of the variation of {what} that each parameter accounts for, ",
            notes[0],
            ": on its own (first-order Sobol index), and on its own or together with others (total index).",
        ),
        with_headings(parts),
        tag(
            "p",
            "Many functions fit the values. An index is the median over these functions. A wide interval says that the "
            "values do not show yet how much the parameter matters.",
            class_="muted",
        ),
    )


def _one(run: RunView) -> Markup | None:
    """Return the indices of one output as bars and as a table; why they are unknown if they are."""
    if run.ledger is None:
        return None
    found = run.importances
    if found is None:
        return tag("p", f"Which parameters matter is {run.ledger.unknown}.")
    if not len(found):
        return None
    of = "" if run.output is None else f" for {shortened(run.output, 40)}"
    table = simple_table(
        f"Sobol indices{of}",
        ["parameter", "alone", "95 %", "together", "95 %"],
        [_row(one) for one in found.ranked],
    )
    bars = _bars(found, f"Which parameters matter{of}")
    if run.output is None:
        return joined(bars, table, *_descriptors(run))
    return joined(tag("div", bars, table, class_="figures large"), *_descriptors(run))


def _descriptors(run: RunView) -> list[Markup]:
    """Return which descriptors matter, for each choice that has some."""
    if run.posterior is None:
        return []
    parts = []
    for one in descriptor_shares(run.space, run.posterior.kernel):
        rows = [(name, share) for name, share in one.shares[:SHOWN_DESCRIPTORS]]
        others = 1.0 - one.label - sum(share for _, share in rows)
        rows += [("other descriptors", others)] if len(one.shares) > SHOWN_DESCRIPTORS else []
        rows.append(("the option itself, whatever its descriptors", one.label))
        parts += [
            tag("p", f"What makes two options of {one.parameter} different for the model, as far as the values tell:"),
            simple_table(
                f"Descriptors of {one.parameter}",
                ["descriptor", "share"],
                [
                    [tag("th", name, scope="row"), tag("td", f"{share:.0%}", data_v=exact(share))]
                    for name, share in rows
                ],
            ),
        ]
    return parts


def _row(one: Importance) -> list[Markup]:
    row = [tag("th", one.name, scope="row")]
    for value, (low, high) in ((one.first, one.first_interval), (one.total, one.total_interval)):
        index, least, most = (round_to_sd(v, max(0.25 * (high - low), SMALLEST_SD)) for v in (value, low, high))
        row += [tag("td", index, data_v=exact(value)), tag("td", f"{least} to {most}")]
    return row


def _bars(found: Importances, title: str) -> Markup:
    ranked = found.ranked
    longest = max(len(shortened(one.name, 20)) for one in ranked)
    left = min(150.0, 14.0 + LETTER * 1.12 * longest)
    height = ROW * len(ranked) + 34.0
    chart = Chart(Scale(0.0, 1.0, left, WIDTH - 16.0), Scale(0.0, 1.0, height - 26.0, 6.0), WIDTH, height)
    for value, label in chart.x.ticks(5):
        at = float(chart.x(value))
        chart.add(line(at, 6.0, at, height - 26.0, "grid"))
        chart.add(tag("text", label, x=at, y=height - 10.0, class_="tick", text_anchor="middle"))
    for i, one in enumerate(ranked):
        top = 8.0 + ROW * i
        chart.add(tag("text", shortened(one.name, 20), x=left - 8.0, y=top + 17.0, text_anchor="end"))
        both = ((one.total, one.total_interval, "bar-light", 1.0), (one.first, one.first_interval, "bar", 14.0))
        for value, interval, class_, down in both:
            x0, x1 = float(chart.x(0.0)), float(chart.x(value))
            chart.add(tag("rect", x=x0, y=top + down, width=max(x1 - x0, 0.5), height=11.0, class_=class_))
            low, high = (float(at) for at in chart.x(np.array(interval)))
            middle = top + down + 5.5
            chart.add(line(low, middle, high, middle, "whisker"))
            chart.add(
                line(low, middle - 3, low, middle + 3, "whisker"), line(high, middle - 3, high, middle + 3, "whisker")
            )
    desc = "; ".join(f"{one.name}: {one.first:.2f} alone, {one.total:.2f} together" for one in ranked[:8])
    marks = [
        (tag("rect", x=2, y=3, width=28, height=10, class_="bar-light"), "together with others (total)"),
        (tag("rect", x=2, y=3, width=28, height=10, class_="bar"), "alone (first order)"),
        (line(2, 8, 30, 8, "whisker"), "95 % interval"),
    ]
    return figure(chart.svg(title, desc), key(*marks))
