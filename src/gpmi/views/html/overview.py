"""The sections in words: what was found, what to do next, and about this run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpmi._support.text import not_covered, round_to_sd, rounded
from gpmi._support.types import Point
from gpmi.analysis.ledger import Ledger
from gpmi.views.html.markup import Child, Markup, cell, copy_button, exact, joined, sentence, simple_table, tag
from gpmi.views.run_view import RunView

ADVICE = {"stop": "You can stop", "go on": "Go on", "distrust": "Do not trust the model"}
STATUSES = ("told", "pending", "failed", "rejected", "retracted")


# What was found


def found(run: RunView) -> Markup:
    """Return the best and the recommended point, in words and as a table of their coordinates."""
    best, counts = run.best, run.counts
    outcomes = ", ".join(f"{counts[status]} {status}" for status in STATUSES if counts[status])
    parts = [tag("p", f"{len(run.trials)} trials: {outcomes or 'none so far'}.", _end_of_run(run))]
    if best is None:
        why = "There is no value that satisfies its constraints." if run.told else "There is no value yet."
        return joined(*parts, tag("p", why))
    largest = "largest" if run.goal == "max" else "smallest"
    feasible = " feasible" if best.constraints else ""
    label = "" if best.label is None else f", row {best.label}"
    parts += [
        tag(
            "p",
            f"The {largest}{feasible} value observed is ",
            tag("strong", rounded(best.y)),
            f", trial {best.number}{label}.",
            class_="lead",
        )
    ]
    points: list[tuple[str, Point]] = [("best observed", best.x)]
    if run.ledger is not None:
        same = _exact_point(run, best.x) == _exact_point(run, run.recommended)
        which = "the same point" if same else "the point with the best posterior mean"
        parts += [tag("p", f"If y is noisy, use {which}. ", *_believed(run, run.ledger))]
        points += [] if same else [("recommended", run.recommended)]
    else:
        parts += [tag("p", "There is no model of these values, so no point is recommended.")]
    return joined(*parts, _points(run, points))


def _believed(run: RunView, ledger: Ledger) -> list[Child]:
    """Return what f is at the recommended point, as far as it is known."""
    if run.believed is None:
        return [f"What f is there is {ledger.unknown}."]
    low, middle, high = run.believed
    least, median, most = (round_to_sd(value, 0.5 * abs(high - low)) for value in (low, middle, high))
    return ["There f is believed to be ", tag("strong", median), f", {least} to {most} at one standard deviation."]


def _exact_point(run: RunView, x: Point) -> list[str]:
    return [exact(value) for value in run.values(x)]


def _end_of_run(run: RunView) -> str:
    if run.reason is not None:
        return f" The run stopped: {run.reason}."
    return "" if run.budget is None else f" The budget is {run.budget}."


def _points(run: RunView, points: Sequence[tuple[str, Point]]) -> Markup:
    """Return the coordinates of points, a row for each parameter, and a button that copies each point."""
    columns = [run.values(x) for _, x in points]
    rows = [
        [tag("th", name, scope="row"), *(cell(column[j]) for column in columns)] for j, name in enumerate(run.titles)
    ]
    buttons = []
    for title, x in points:
        text = "\n".join(f"{name}\t{exact(value)}" for name, value in zip(run.names, run.values(x), strict=True))
        buttons.append(copy_button(f"Copy the {title} point", text))
    head = ["parameter", *(title for title, _ in points)]
    return joined(simple_table("The points, parameter by parameter", head, rows), tag("p", buttons, class_="tools js"))


# What to do next


def advice(run: RunView) -> Markup:
    """Return the advice of the ledger and the numbers behind it."""
    if run.ledger is None:
        return advice_line("go on", "there is no model yet; tell a value first")
    ledger, advised = run.ledger, run.ledger.advice
    regret, lock_in = ledger.regret(), ledger.lock_in
    statistics = [
        ("simple regret", regret.in_words[0]),
        *([] if ledger.setting.priors.is_fixed else [not_covered()]),
        ("calibration", f"{ledger.calibration.verdict}: {ledger.calibration.reason}"),
        ("lock-in", "none" if lock_in is None else lock_in.reason),
    ]
    defined = "max f - f(recommended)." if run.goal == "max" else "f(recommended) - min f."
    return joined(
        advice_line(advised.what, advised.why),
        _lines("Can I stop?", ledger.answer()[1:] or ledger.answer()),  # the advice above is the first line
        tag(
            "details",
            tag("summary", "For statisticians"),
            tag("p", f"The simple regret is how much the recommended point falls short of the optimum: {defined}"),
            _lines("What the ledger knows", statistics),
        ),
    )


def _lines(title: str, lines: Sequence[tuple[str, str]]) -> Markup:
    rows = [[tag("th", name, scope="row"), tag("td", text, class_="words")] for name, text in lines]
    return simple_table(title, ["quantity", "value"], rows)


def advice_line(what: str, why: str) -> Markup:
    """Return the advice in one paragraph: "stop", "go on" or "distrust", and why."""
    return tag("p", tag("strong", f"{ADVICE[what]}. "), sentence(why), class_=f"advice {what.replace(' ', '-')}")


# About this run


def about(run: RunView) -> Markup:
    """Return the goal, the seed, the space, the model and the events of the run."""
    rows = [
        ["goal", "the largest value" if run.goal == "max" else "the smallest value"],
        ["seed", str(run.seed)],
        ["space", repr(run.space)],
    ]
    if run.model is not None:
        rows.append(["model", repr(run.model)])
    cells = [[tag("th", name, scope="row"), tag("td", text, class_="words lines")] for name, text in rows]
    parts = [simple_table("The run", ["", ""], cells)]
    if run.events:
        counted = Counter((event.kind, event.message) for event in run.events)
        lines = [
            [tag("td", kind), tag("td", message, class_="words"), cell(times)]
            for (kind, message), times in counted.items()
        ]
        parts.append(tag("h3", "What the library did on its own"))
        parts.append(simple_table("Events", ["kind", "what", "times"], lines))
    return joined(*parts)
