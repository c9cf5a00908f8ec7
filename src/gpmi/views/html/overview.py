"""The sections in words: what was found, what to do next, and about this run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from gpmi._support.text import shortened
from gpmi.analysis.ledger import HEADING, QUESTION
from gpmi.views.findings import NamedPoint, Number, Sentence
from gpmi.views.html.markup import Child, Markup, cell, copy_button, exact, joined, sentence, simple_table, tag
from gpmi.views.run_view import RunView

ADVICE = {"stop": "You can stop", "go on": "Go on", "distrust": "Do not trust the model"}
# How many trials of each status, in words; a rejected point was not evaluated.
STATUSES = {
    "told": "with a value",
    "stopped": "stopped early",
    "failed": "failed",
    "pending": "without a result yet",
    "retracted": "retracted",
}
NAME = 40  # characters of the name of an output, at most


class Advised(NamedTuple):
    """What to do next, and why."""

    what: str
    why: str  # a sentence
    kind: str  # a class of the style sheet

    def __str__(self) -> str:
        return f"{self.what}. {self.why}"


# What was found


def found(run: RunView) -> Markup:
    """Return what was found, in words and as a table of the coordinates of its points."""
    finding = run.finding
    return joined(
        tag("p", _outcomes(run), run.fidelity.counted(len(run.told)), _end_of_run(run)),
        tag("p", *_marked(finding.lead), class_="lead") if finding.lead else None,
        *(tag("p", *_marked(words)) for words in finding.before),
        _points(run, finding.points) if finding.points else None,
        *(tag("p", *_marked(words)) for words in finding.after),
    )


def _marked(words: Sentence) -> list[Child]:
    """Return a sentence with its numbers emphasised."""
    parts = (words,) if isinstance(words, str) else words
    return [tag("strong", part) if isinstance(part, Number) else part for part in parts]


def _outcomes(run: RunView) -> str:
    """Return how many evaluations there are, and how they ended."""
    counts = run.counts
    count, rejected = len(run.trials) - counts["rejected"], counts["rejected"]
    outcomes = [f"{counts[status]} {words}" for status, words in STATUSES.items() if counts[status]]
    text = f"{count} evaluation{'s' * (count != 1)}"
    if count > 1 and len(outcomes) == 1:
        text += f", all {outcomes[0].partition(' ')[2]}"
    elif outcomes:
        text += f": {', '.join(outcomes)}" if count > 1 else f", {outcomes[0].partition(' ')[2]}"
    return f"{text}{f'; {rejected} more rejected' if rejected else ''}."


def _end_of_run(run: RunView) -> str:
    if run.reason is not None:
        return f" The run stopped: {run.reason}."
    return "" if run.budget is None else f" The budget is {run.budget}."


def _points(run: RunView, points: Sequence[NamedPoint]) -> Markup:
    """Return points side by side, a row for each output and each parameter, and a button that copies each point."""
    columns = [run.values(point.x) for point in points]
    outputs = [
        [tag("th", shortened(name, NAME), scope="row"), *(cell(point.outputs.get(name), "strong") for point in points)]
        for name in run.goals.named
    ]
    rows = [
        [tag("th", name, scope="row"), *(cell(column[j]) for column in columns)] for j, name in enumerate(run.titles)
    ]
    buttons = []
    for point, column in zip(points, columns, strict=True):
        text = "\n".join(f"{name}\t{exact(value)}" for name, value in zip(run.names, column, strict=True))
        buttons.append(copy_button(f"Copy {point.button}", text))
    head = ["" if outputs else "parameter", *(point.title for point in points)]
    table = simple_table("The points, parameter by parameter", head, outputs + rows)
    return joined(table, tag("p", buttons, class_="tools js"))


# What to do next


def advised(run: RunView) -> Advised:
    """Return the advice of the ledger, or what to do where there is none."""
    if run.ledger is not None and run.ledger.n:
        advice = run.ledger.advice
        return Advised(ADVICE[advice.what], sentence(advice.why), advice.what.replace(" ", "-"))
    if run.all_failed:
        return Advised("Find out why evaluations fail", run.all_failed, "distrust")
    return Advised(ADVICE["go on"], "There is no model yet; a value is needed first.", "go-on")


def advice(run: RunView) -> Markup:
    """Return the advice of the ledger, the numbers behind it, and those for statisticians."""
    if run.ledger is None or not run.ledger.n:
        return _advice_line(run)
    facts = run.ledger.facts()
    return joined(
        _advice_line(run),
        _lines(HEADING, facts.numbers or [(QUESTION, facts.decision.short)]),
        tag(
            "details",
            tag("summary", "For statisticians"),
            tag("p", run.meaning),
            _lines("What the ledger knows", facts.statistics),
        ),
    )


def _lines(title: str, lines: Sequence[tuple[str, str]]) -> Markup:
    rows = [[tag("th", name, scope="row"), tag("td", text, class_="words")] for name, text in lines]
    return simple_table(title, ["quantity", "value"], rows)


def _advice_line(run: RunView) -> Markup:
    """Return the advice in one paragraph."""
    advice = advised(run)
    return tag("p", tag("strong", f"{advice.what}. "), advice.why, class_=f"advice {advice.kind}")


# About this run


def about(run: RunView) -> Markup:
    """Return the goal, the seed, the space, the model and the events of the run."""
    rows = [run.purposes, ("seed", str(run.seed)), ("space", repr(run.space))]
    rows += [("earlier studies", "\n".join(run.earlier))] if run.earlier else []
    rows += [(view.model_title, repr(view.model)) for view in run.each_output if view.model is not None]
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
