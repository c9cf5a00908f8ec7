"""The sections in words: what was found, what to do next, and about this run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gpmi._support.text import rough, round_to_sd, rounded, shortened
from gpmi._support.types import Point
from gpmi.analysis.ledger import HEADING, QUESTION, Ledger, share_missing
from gpmi.analysis.ledger.front_ledger import FrontLedger
from gpmi.trials.goal_summary import superlative
from gpmi.views.front_view import purpose
from gpmi.views.html.markup import Child, Markup, cell, copy_button, exact, joined, sentence, simple_table, tag
from gpmi.views.html.tradeoffs import compared
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
WHY = 200  # characters of the reason for failures, at most
NAME = 40  # characters of the name of an output, at most


class Advised(NamedTuple):
    """What to do next, and why."""

    what: str
    why: str
    kind: str  # a class of the style sheet

    def __str__(self) -> str:
        return f"{self.what}. {sentence(self.why)}"


class NamedPoint(NamedTuple):
    """A point with what was measured there, or is expected there, if anything is known."""

    title: str
    x: Point | None
    outputs: Mapping[str, float] | Mapping[str, str]
    short: str = ""  # the title on a button


# What was found


def found(run: RunView) -> Markup:
    """Return the best and the recommended point, in words and as a table of their coordinates."""
    best = run.best
    parts = [tag("p", _outcomes(run), _reached(run), _end_of_run(run))]
    if run.has_front:
        return joined(*parts, *_found_front(run))
    if best is None:
        rules = "constraints" if not run.goals.named else "limits"
        why = f"There is no value that satisfies its {rules}." if run.told else "There is no value yet."
        failed = _all_failed(run)
        return joined(*parts, tag("p", why if failed is None else sentence(failed)))
    largest = "largest" if run.goal == "max" else "smallest"
    feasible = " feasible" if best.constraints or (run.goals.limits) else ""
    label = "" if best.label is None else f", row {best.label}"
    parts += [
        tag(
            "p",
            f"The {largest}{feasible} {'value' if run.output is None else run.output} observed is ",
            tag("strong", rounded(best.y)),
            f", trial {best.number}{label}.",
            class_="lead",
        )
    ]
    points = [NamedPoint("best observed", best.x, dict(best.outputs))]
    if run.ledger is not None:
        same = _exact_point(run, best.x) == _exact_point(run, run.recommended)
        which = "the same point" if same else "the point where the model's mean is best"
        parts += [tag("p", f"If {run.value_name} is noisy, use {which}. ", *_believed(run, run.ledger))]
        points += [] if same else [NamedPoint("recommended", run.recommended, _expected(run))]
    else:
        parts += [tag("p", "There is no model of these values, so no point is recommended.")]
    return joined(*parts, _points(run, points))


def _found_front(run: RunView) -> list[Markup]:
    """Return how large the front is, its ends and its middle as recipes side by side, and how much it covers."""
    goals, ledger = run.goals, run.front_ledger
    if not run.front:
        what = "has all objectives, keeps all limits and is acceptable" if run.told else "has a value"
        return [tag("p", sentence(_all_failed(run) or f"no trial {what} yet"))]
    count, told = len(run.front), len(run.told)
    are = "1 is" if count == 1 else f"{count} are"
    elsewhere = "no other trial is better in one objective without being worse in another"
    lead = f"Of {told} trials, {are} on the front: {elsewhere}."
    if len(goals.objectives) == 1:
        (name,), best = goals.objectives, run.front[0]
        lead = (
            f"Trial {best.number} is the closest to the target of {name}: {rounded(best.outputs[name])}.{compared(run)}"
        )
    parts = [tag("p", lead, class_="lead"), _points(run, _corners(run))]
    if ledger is not None and ledger.reference is not None and len(goals.objectives) > 1:
        parts.append(_covered(ledger))
    return parts


def _corners(run: RunView) -> list[NamedPoint]:
    """Return the best trial on the front for each objective, and the one in the middle."""
    named: dict[int, list[str]] = {}
    for name, goal in run.objectives.items():
        values = [float(goal.oriented(np.asarray(trial.outputs[name]))) for trial in run.front]
        best = run.front[int(np.argmax(values))]
        named.setdefault(best.number, []).append(f"{superlative(goal)} {shortened(name, NAME)}")
    if run.middle is not None and len(run.front) > 2:
        named.setdefault(run.middle.number, []).append("in the middle")
    by_number = {trial.number: trial for trial in run.front}
    return [
        NamedPoint(f"{', '.join(words)} (trial {number})", one.x, dict(one.outputs), f"trial {number}")
        for number, words in named.items()
        for one in [by_number[number]]
    ]


def _covered(ledger: FrontLedger) -> Markup:
    """Return how much the front covers and how much is still to be had, in words."""
    assert ledger.reference is not None
    worst = " and ".join(f"{shortened(name, NAME)} {rounded(value)}" for name, value in ledger.reference.items())
    volume = tag("strong", rough(ledger.hypervolume, 4))
    text = ["The hypervolume of the front is ", volume, f": how much it covers, counted from {worst}. "]
    if ledger.missing.known:
        text.append(f"Missing is {share_missing(ledger.missing.share()[1])}.")
    else:
        text.append(f"How much is still to be had is {ledger.missing.how}.")
    return tag("p", text)


def _believed(run: RunView, ledger: Ledger) -> list[Child]:
    """Return what f is at the recommended point, as far as it is known."""
    if run.believed is None:
        return [f"What {run.function_name} is there is {ledger.unknown}."]
    low, middle, high = run.believed
    least, median, most = (round_to_sd(value, 0.5 * abs(high - low)) for value in (low, middle, high))
    return [
        f"There {run.function_name} is believed to be ",
        tag("strong", median),
        f", {least} to {most} at one standard deviation.",
    ]


def _expected(run: RunView) -> dict[str, str]:
    """Return what is expected at the recommended point, by output; nothing while it is unknown, or without goals."""
    if not run.goals.named or run.goals.single is None or run.believed is None:
        return {}
    low, middle, high = run.believed
    sd = 0.5 * abs(high - low)
    return {run.goals.single: f"{round_to_sd(middle, sd)} ± {round_to_sd(sd, sd)} expected"}


def _exact_point(run: RunView, x: Point) -> list[str]:
    return [exact(value) for value in run.values(x)]


def _outcomes(run: RunView) -> str:
    """Return how many evaluations there are, and how they ended."""
    counts = run.counts
    count, rejected = len(run.trials) - counts["rejected"], counts["rejected"]
    found = [f"{counts[status]} {words}" for status, words in STATUSES.items() if counts[status]]
    text = f"{count} evaluation{'s' * (count != 1)}"
    if count > 1 and len(found) == 1:
        text += f", all {found[0].partition(' ')[2]}"
    elif found:
        text += f": {', '.join(found)}" if count > 1 else f", {found[0].partition(' ')[2]}"
    return f"{text}{f'; {rejected} more rejected' if rejected else ''}."


def _all_failed(run: RunView) -> str | None:
    """Return that every evaluation has failed, and the most frequent reason; None if it is otherwise."""
    reasons = Counter(trial.why or "no reason given" for trial in run.trials if trial.status == "failed")
    if not reasons or any(trial.status in ("told", "stopped") or trial.curve for trial in run.trials):
        return None
    (why, times), count = reasons.most_common(1)[0], run.counts["failed"]
    every = "The only evaluation failed" if count == 1 else f"All {count} evaluations failed"
    most = "" if times == count else f"{times} times "
    return f"{every}: {most}{shortened(why, WHY)}"


def _reached(run: RunView) -> str:
    """Return how many values are at the target of the fidelity; nothing if there is none."""
    fidelity = run.space.fidelity
    if fidelity is None:
        return ""
    where = f"{fidelity.name} {fidelity.fidelity.target}"
    return f" {len(run.told)} values are at {where}, and only these count below."


def _end_of_run(run: RunView) -> str:
    if run.reason is not None:
        return f" The run stopped: {run.reason}."
    return "" if run.budget is None else f" The budget is {run.budget}."


def _points(run: RunView, points: Sequence[NamedPoint]) -> Markup:
    """Return points side by side, a row for each output and each parameter, and a button that copies each point."""
    columns = [run.values(one.x) for one in points]
    rows = [
        [tag("th", shortened(name, NAME), scope="row"), *(cell(one.outputs.get(name), "strong") for one in points)]
        for name in run.goals.named
    ]
    rows += [
        [tag("th", name, scope="row"), *(cell(column[j]) for column in columns)] for j, name in enumerate(run.titles)
    ]
    buttons = []
    for one in points:
        text = "\n".join(f"{name}\t{exact(value)}" for name, value in zip(run.names, run.values(one.x), strict=True))
        buttons.append(copy_button(f"Copy {one.short or f'the {one.title} point'}", text))
    head = ["parameter" if not run.goals.named else "", *(one.title for one in points)]
    return joined(simple_table("The points, parameter by parameter", head, rows), tag("p", buttons, class_="tools js"))


# What to do next


def advised(run: RunView) -> Advised:
    """Return the advice of the ledger, or what to do where there is none."""
    ledger = run.front_ledger or run.ledger
    if ledger is not None and ledger.n:
        advice = ledger.advice
        return Advised(ADVICE[advice.what], advice.why, advice.what.replace(" ", "-"))
    failed = _all_failed(run)
    if failed is not None:
        return Advised("Find out why evaluations fail", failed, "distrust")
    return Advised(ADVICE["go on"], "there is no model yet; a value is needed first", "go-on")


def advice(run: RunView) -> Markup:
    """Return the advice of the ledger, the numbers behind it, and those for statisticians."""
    ledger = run.front_ledger or run.ledger
    if ledger is None or not ledger.n:
        return _advice_line(run)
    facts, f = ledger.facts(), run.function_name
    defined = f"max {f} - {f}(recommended)" if run.goal == "max" else f"{f}(recommended) - min {f}"
    meaning = f"The simple regret is how much the recommended point falls short of the optimum: {defined}."
    if run.has_front:
        meaning = "The hypervolume is the volume of what the front dominates, from the reference on: "
        meaning += "the more, the better."
    return joined(
        _advice_line(run),
        _lines(HEADING, facts.numbers or [(QUESTION, facts.decision.short)]),
        tag(
            "details",
            tag("summary", "For statisticians"),
            tag("p", meaning),
            _lines("What the ledger knows", facts.statistics),
        ),
    )


def _lines(title: str, lines: Sequence[tuple[str, str]]) -> Markup:
    rows = [[tag("th", name, scope="row"), tag("td", text, class_="words")] for name, text in lines]
    return simple_table(title, ["quantity", "value"], rows)


def _advice_line(run: RunView) -> Markup:
    """Return the advice in one paragraph."""
    said = advised(run)
    return tag("p", tag("strong", f"{said.what}. "), sentence(said.why), class_=f"advice {said.kind}")


# About this run


def about(run: RunView) -> Markup:
    """Return the goal, the seed, the space, the model and the events of the run."""
    goals = [["goal", "the largest value" if run.goal == "max" else "the smallest value"]]
    if run.goals.named:
        goals = [["goals", "\n".join(f"{name}: {purpose(goal)}" for name, goal in run.goals.items())]]
    rows = [*goals, ["seed", str(run.seed)], ["space", repr(run.space)]]
    rows += [["earlier studies", "\n".join(run.earlier)]] if run.earlier else []
    for view in run.each_output:
        if view.model is not None:
            rows.append(["model" if not run.goals.named else f"model of {view.output}", repr(view.model)])
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
