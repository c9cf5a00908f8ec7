"""The cards of a study with goals: the best trade-offs with pictures and sliders, and the choice of one point.

The pictures are those of the report (`gpmi.views.html.front`). Without JavaScript they are plain, and the table below
them has the recipes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from starlette.requests import Request

from gpmi._support.checks import LARGEST
from gpmi._support.text import percent, round_to_sd
from gpmi.analysis.ledger.front_ledger import FrontBands
from gpmi.serve.cell_parsing import parse_number
from gpmi.serve.live_updates import LiveUpdates
from gpmi.serve.model_worker import ChosenPoint, StudySummary
from gpmi.serve.output_fields import OutputField
from gpmi.serve.page_layout import form, hidden, labelled, select
from gpmi.serve.parameter_fields import format_point
from gpmi.serve.session import Session, StudySnapshot
from gpmi.serve.trial_table import current_front, front_numbers, notes_of, trials_table
from gpmi.trials import Trial
from gpmi.trials.goal_summary import along_front, at_target
from gpmi.trials.goals import AtLeast, AtMost, Match, Max, Min, Objective
from gpmi.views.front_view import complete
from gpmi.views.html.front import Recipe, trade_offs
from gpmi.views.html.markup import Child, Markup, joined, sentence, tag

MAX_ROWS = 50  # of the table of the front; our choice
CONFIDENCES = (("0.5", "50 %"), ("0.8", "80 %"), ("0.9", "90 %"), ("0.95", "95 %"), ("0.99", "99 %"))
DIRECTIONS = (("min", "the smallest"), ("max", "the largest"), ("match", "the best match of"))
CONDITIONS = (("least", "at least"), ("most", "at most"))


# The front


def front_card(session: Session, snapshot: StudySnapshot, live: LiveUpdates, at: str) -> Markup:
    """Return the card with the front: pictures, sliders, and the recipes of its points as a table."""
    objectives = [one for one in session.outputs if one.name in session.goals.objectives]
    known = complete(at_target(snapshot.trials, session.space), session.goals)
    inner: Child
    if known:
        inner = _front(session, snapshot, live, at, objectives, known)
    else:
        names = " and ".join(one.title for one in objectives)
        inner = tag("p", f"They appear here once an experiment has a result for {names}.", class_="empty")
    title = "The best trade-offs so far" if len(objectives) > 1 else "The best experiments so far"
    return tag(
        "section", tag("h2", title, id="front-title"), tag("div", inner, id="front", data_live="front"),
        class_="card front", aria_labelledby="front-title",
    )  # fmt: skip


def _front(
    session: Session,
    snapshot: StudySnapshot,
    live: LiveUpdates,
    at: str,
    objectives: Sequence[OutputField],
    known: Sequence[Trial],
) -> Markup:
    numbers, now = front_numbers(session, snapshot, live), current_front(snapshot, live)
    front = along_front([trial for trial in known if trial.number in numbers], session.goals)
    drawn = None
    if len(objectives) > 1:
        drawn = trade_offs(
            session.goals,
            known,
            numbers,
            lambda trial: _recipe(session, trial, at, on_front=trial.number in numbers),
            bands=lambda x, y: None if now is None else _bands(now, x, y),
            middle=None if now is None else now.middle,
            link=lambda trial: f"{at}/trial/{trial.number}",
        )
    working = None
    if live.state["known"] < snapshot.seq:
        working = tag("p", "Working out what the latest results mean …", class_="muted working")
    return joined(working, _words(session, front, objectives), drawn, _recipes(session, front, at))


def _words(session: Session, front: Sequence[Trial], objectives: Sequence[OutputField]) -> Markup:
    """Return what the front is, in a sentence."""
    if not front:
        limits = " and keeps the limits" if session.goals.limits else ""
        return tag("p", f"No experiment is acceptable in everything{limits} yet.")
    names = " and ".join(one.title for one in objectives)
    if len(objectives) == 1:
        text = f"The closest to the goal of {names}."
    elif len(front) == 1:
        others = "all others that you would accept" if session.goals.has_limits else "all others"
        text = f"One experiment is at least as good as {others} in {names}."
    else:
        text = f"These {len(front)} experiments are the front: no other one beats one of them in "
        text += f"both {names}." if len(objectives) == 2 else f"all of {names}."
    return tag("p", text)


def _bands(now: StudySummary, x: str, y: str) -> FrontBands | None:
    """Return where the front of two objectives lies; None if it is not known."""
    found = now.bands.get((x, y))
    if found is None:
        return None
    low, median, high = (np.array(one) for one in found)
    return FrontBands((x, y), low, median, high)


def _recipe(session: Session, trial: Trial, at: str, *, on_front: bool) -> Recipe:
    """Return a trial as its card and its tooltip show it."""
    return Recipe(
        f"Trial {trial.number}" + ("" if trial.label is None else f", row {trial.label}"),
        [(one.title, one.format_or_missing(trial)) for one in session.outputs],
        [(one.name, f"{text} {one.unit}".strip()) for one, text in format_point(session.fields, trial.x)],
        notes_of(session.outputs, trial, on_front=on_front),
        f"{at}/trial/{trial.number}",
    )


def _recipes(session: Session, front: Sequence[Trial], at: str) -> Child:
    if not front:
        return None
    more = tag("p", f"The table has {MAX_ROWS} of {len(front)}.", class_="muted") if len(front) > MAX_ROWS else None
    return joined(trials_table(session, front[:MAX_ROWS], (), at, "The front, with its recipes", "front-"), more)


# The choice of one point


@dataclass(frozen=True)
class ChoiceInput:
    """What was typed into the form that chooses a point, and what was found."""

    typed: Mapping[str, str]
    found: ChosenPoint | None = None
    slug: str = ""  # of the study
    problem: str = ""


def choice_of(session: Session, data: Mapping[str, str]) -> tuple[str, str, dict[str, str], float]:
    """Return the output, "max" or "min", the conditions and the confidence of a form. A ValueError names the field."""
    named = {str(one.index): one for one in session.outputs if one.name is not None}
    output, direction = named.get(data.get("choose-output", "")), data.get("choose-direction", "")
    confidence = data.get("choose-confidence", "0.9")
    if output is None or direction not in dict(DIRECTIONS) or confidence not in dict(CONFIDENCES):
        raise ValueError("Nothing was chosen; choose an output, smallest or largest, and how sure it must be")
    where: dict[str, str] = {}
    for one in named.values():
        typed, condition = data.get(f"choose-value-{one.index}", ""), data.get(f"choose-condition-{one.index}", "least")
        if not typed.strip():
            continue
        try:
            value, _ = parse_number(typed)
        except ValueError as error:
            raise ValueError(f"{one.title}: {error}") from None
        if abs(value) > LARGEST:
            raise ValueError(f"{one.title}: {typed.strip()!r} is too large; give a value below {LARGEST:g}")
        where[str(one.name)] = f"{'<=' if condition == 'most' else '>='} {value!r}"
    return str(output.name), direction, where, float(confidence)


def choice_card(
    request: Request, session: Session, snapshot: StudySnapshot, choice: ChoiceInput | None, at: str
) -> Markup | None:
    """Return the card that finds the best predicted point under conditions; None while it would be of no use."""
    if len(session.outputs) < 2 or not any(trial.outputs for trial in snapshot.trials):
        return None
    typed = {} if choice is None else choice.typed
    problem = choice.problem if choice is not None else ""
    lead = "The model looks at all recipes that could be tried, measured or not."
    return tag(
        "section",
        tag("h2", "Find a recipe", id="choice-title"),
        tag("p", lead, class_="muted"),
        tag("p", problem, class_="problem", role="alert") if problem else None,
        form(request, f"{at}/choose", _choice_fields(session, typed), data_busy="Looking for it …", id="choose"),
        _found(request, session, choice, at) if choice is not None and choice.found is not None else None,
        class_="card",
        id="choice",
        aria_labelledby="choice-title",
    )


def _choice_fields(session: Session, typed: Mapping[str, str]) -> Markup:
    objectives = [one for one in session.outputs if isinstance(one.goal, Objective)]
    first = next((one for one in objectives if isinstance(one.goal, Min)), objectives[0])
    direction = "min" if isinstance(first.goal, Min) else "max" if isinstance(first.goal, Max) else "match"
    targets = any(isinstance(one.goal, Match) for one in objectives)
    directions = [one for one in DIRECTIONS if targets or one[0] != "match"]
    outputs = [(str(one.index), one.title) for one in session.outputs]
    limits = [f"{one.title} {one.limit}" for one in session.outputs if isinstance(one.goal, AtLeast | AtMost)]
    conditions = []
    for one in session.outputs:
        usual = "most" if isinstance(one.goal, Min | AtMost) else "least"
        name = f"choose-condition-{one.index}"
        value = tag("input", type="text", name=f"choose-value-{one.index}", inputmode="text",
                    value=typed.get(f"choose-value-{one.index}", ""), placeholder="any",
                    aria_label=f"Condition on {one.title}, a number")  # fmt: skip
        kind = select(name, CONDITIONS, typed.get(name, usual), aria_label=f"At least or at most, for {one.title}")
        conditions.append(tag("div", tag("span", one.title, class_="strong"), kind, value, class_="condition"))
    confidence = select("choose-confidence", CONFIDENCES, typed.get("choose-confidence", "0.9"))
    return joined(
        tag(
            "div",
            tag("span", "I want", class_="strong"),
            select("choose-direction", directions, typed.get("choose-direction", direction),
                   aria_label="Smallest or largest"),
            select("choose-output", outputs, typed.get("choose-output", str(first.index)), aria_label="Output"),
            class_="together wish",
        ),
        tag("fieldset", tag("legend", "with"), conditions, class_="conditions"),
        tag("p", f"In any case {', '.join(limits)}.", class_="muted") if limits else None,
        tag(
            "div",
            labelled("How sure must that be?", confidence, class_="field short"),
            tag("button", "Find it", class_="main"),
            class_="together",
        ),
    )  # fmt: skip


def _found(request: Request, session: Session, choice: ChoiceInput, at: str) -> Markup:
    """Return the point that was found, with what is predicted there."""
    found = choice.found
    assert found is not None
    recipe = [
        tag("div", tag("dt", one.name), tag("dd", f"{text} {one.unit}".strip()))
        for one, text in format_point(session.fields, found.x)
    ]
    expected = []
    for one in session.outputs:
        if one.name in found.outputs:
            mean, sd = found.outputs[str(one.name)]
            words = f"{round_to_sd(mean, sd)} ± {round_to_sd(sd, sd)}"
            expected.append(tag("div", tag("dt", one.title), tag("dd", words)))
    sure = f"All conditions and limits hold with a probability of {percent(found.probability)}."
    sure += "" if found.note is None else f" {sentence(found.note)}"
    measured: Child = None
    if found.trial is not None:
        link = tag("a", f"trial {found.trial}", href=f"{at}/trial/{found.trial}")
        measured = tag("p", "It has been measured: ", link, ".")
    plan = form(
        request,
        f"{at}/plan",
        hidden("chosen", request.query_params.get("chosen", "")),
        tag("button", "Try it next" if found.trial is None else "Measure it again", class_="second"),
        data_busy="Adding it …",
    )
    return tag(
        "div",
        tag(
            "div",
            tag("div", tag("h3", "The recipe"), tag("dl", recipe)),
            tag("div", tag("h3", "What to expect"), tag("dl", expected)),
            class_="cards",
        ),
        tag("p", sure, class_="advice" if found.note is None else "advice distrust"),
        measured,
        plan,
        class_="found",
        role="status",
    )
