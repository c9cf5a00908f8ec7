"""Which parameters matter: the Sobol indices as bars and as a table."""

from __future__ import annotations

from dataclasses import replace

from gpmi._support.text import round_to_sd
from gpmi.analysis import Importance, descriptor_shares
from gpmi.views.html.markup import Markup, exact, joined, simple_table, tag
from gpmi.views.html.outputs import with_headings
from gpmi.views.html.svg import LARGE, drawn
from gpmi.views.pictures.importance import importances
from gpmi.views.run_view import OutputView, RunView

ROW = 32.0  # the height of the bars of a parameter, in pixels
SHOWN_DESCRIPTORS = 8  # descriptors in a table; our choice
SMALLEST_SD = 0.01  # of an index when it is rounded: a certain index has three decimals


def importance(run: RunView) -> Markup | None:
    """Return the first-order and total index of each parameter, the most important one first; for each output."""
    parts = [(view, html) for view in run.each_output if (html := _indices(view)) is not None]
    if not parts:
        return None
    notes = [indices.note for view in run.each_output if (indices := view.importances) is not None and len(indices)]
    if not notes:
        return with_headings(parts)
    return joined(
        tag(
            "p",
            f"The share of the variation of {run.subject} that each parameter accounts for, ",
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


def _indices(run: OutputView) -> Markup | None:
    """Return the indices of one output as bars and as a table; why they are unknown if they are."""
    if run.ledger is None:
        return None
    indices = run.importances
    if indices is None:
        return tag("p", f"Which parameters matter is {run.ledger.unknown}.")
    if not len(indices):
        return None
    of = f" for {run.short_name}" if run.given_name else ""
    table = simple_table(
        f"Sobol indices{of}",
        ["parameter", "alone", "95 %", "together", "95 %"],
        [_row(parameter) for parameter in indices.ranked],
    )
    bars = drawn(importances(run, indices), replace(LARGE, height=ROW * len(indices) + LARGE.top + LARGE.bottom))
    return joined(tag("div", bars, table, class_="figures large"), *_descriptors(run))


def _descriptors(run: OutputView) -> list[Markup]:
    """Return which descriptors matter, for each choice that has some."""
    if run.posterior is None:
        return []
    parts = []
    for choice in descriptor_shares(run.space, run.posterior.kernel):
        rows = [(name, share) for name, share in choice.shares[:SHOWN_DESCRIPTORS]]
        others = 1.0 - choice.label - sum(share for _, share in rows)
        rows += [("other descriptors", others)] if len(choice.shares) > SHOWN_DESCRIPTORS else []
        rows.append(("the option itself, whatever its descriptors", choice.label))
        words = f"What makes two options of {choice.parameter} different for the model, as far as the values tell:"
        parts += [
            tag("p", words),
            simple_table(
                f"Descriptors of {choice.parameter}",
                ["descriptor", "share"],
                [
                    [tag("th", name, scope="row"), tag("td", f"{share:.0%}", data_v=exact(share))]
                    for name, share in rows
                ],
            ),
        ]
    return parts


def _row(parameter: Importance) -> list[Markup]:
    row = [tag("th", parameter.name, scope="row")]
    for value, (low, high) in (
        (parameter.first, parameter.first_interval),
        (parameter.total, parameter.total_interval),
    ):
        index, least, most = (round_to_sd(v, max(0.25 * (high - low), SMALLEST_SD)) for v in (value, low, high))
        row += [tag("td", index, data_v=exact(value)), tag("td", f"{least} to {most}")]
    return row
