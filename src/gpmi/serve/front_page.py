"""The cards of a study with goals: the best trade-offs with pictures and sliders, and the choice of one point.

The pictures are those of the report (`gpmi.views.html.front`). Without JavaScript they are plain, and the table below
them has the recipes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from starlette.requests import Request

from gpmi._support import checks
from gpmi._support.text import percent, round_to_sd
from gpmi.analysis import FrontBands
from gpmi.serve.cell_parsing import parse_number
from gpmi.serve.model_worker import ChosenPoint, StudySummary
from gpmi.serve.output_fields import ON_FRONT, Results
from gpmi.serve.page_layout import form, hidden, labelled, select
from gpmi.serve.parameter_fields import format_point
from gpmi.serve.session import Session, StudySnapshot
from gpmi.serve.trial_table import trials_table
from gpmi.trials import AtMost, Match, Max, Min, Trial
from gpmi.trials.goal_summary import along_front, at_target
from gpmi.views.front_view import complete
from gpmi.views.html.front import Recipe, trade_offs
from gpmi.views.html.markup import Child, Markup, joined, sentence, tag

MAX_ROWS = 50  # of the table of the front; our choice
CONFIDENCES = (("0.5", "50 %"), ("0.8", "80 %"), ("0.9", "90 %"), ("0.95", "95 %"), ("0.99", "99 %"))
DIRECTIONS = (("min", "the smallest"), ("max", "the largest"), ("match", "the best match of"))
CONDITIONS = (("least", "at least"), ("most", "at most"))


# The front


def front_card(
    session: Session,
    snapshot: StudySnapshot,
    front: Collection[int],
    model: StudySummary | None,
    *,
    is_old: bool,
) -> Markup:
    """Return the card with the front: pictures, sliders, and the recipes of its points as a table.

    `front` are the numbers of its trials, and `model` what is known of them; `is_old` if that is being computed.
    """
    objectives = session.outputs.objectives
    measured = complete(at_target(snapshot.trials, session.space), session.goals)
    title = "The best trade-offs so far" if len(objectives) > 1 else "The best experiments so far"
    if measured:
        working = tag("p", "Working out what the latest results mean …", class_="muted working") if is_old else None
        inner = joined(working, _front(session, front, model, measured))
    else:
        titles = " and ".join(output.title for output in objectives)
        inner = tag("p", f"They appear here once an experiment has a result for {titles}.", class_="empty")
    return tag(
        "section", tag("h2", title, id="front-title"), tag("div", inner, id="front", data_live="front"),
        class_="card front", aria_labelledby="front-title",
    )  # fmt: skip


def _front(session: Session, numbers: Collection[int], model: StudySummary | None, measured: Sequence[Trial]) -> Markup:
    """Return the front among the trials that have all objectives, in words, as pictures and as a table."""
    front = along_front([trial for trial in measured if trial.number in numbers], session.goals)
    drawn = None
    if len(session.outputs.objectives) > 1:
        drawn = trade_offs(
            session.goals,
            measured,
            numbers,
            lambda trial: _recipe(session, trial, ON_FRONT if trial.number in numbers else ""),
            bands=lambda x, y: None if model is None else _bands(model, x, y),
            middle=None if model is None else model.middle,
            link=lambda trial: _address(session, trial),
        )
    return joined(_words(session.outputs, front), drawn, _recipes(session, front))


def _address(session: Session, trial: Trial) -> str:
    return f"/study/{session.slug}/trial/{trial.number}"


def _words(outputs: Results, front: Sequence[Trial]) -> Markup:
    """Return what the front is, in a sentence."""
    if not front:
        limits = " and keeps the limits" if outputs.limits else ""
        return tag("p", f"No experiment is acceptable in everything{limits} yet.")
    titles = " and ".join(output.title for output in outputs.objectives)
    if len(outputs.objectives) == 1:
        text = f"The closest to the goal of {titles}."
    elif len(front) == 1:
        others = "all others that you would accept" if outputs.can_be_unacceptable else "all others"
        text = f"One experiment is at least as good as {others} in {titles}."
    else:
        text = f"These {len(front)} experiments are the front: no other one beats one of them in "
        text += f"both {titles}." if len(outputs.objectives) == 2 else f"all of {titles}."
    return tag("p", text)


def _bands(model: StudySummary, x: str, y: str) -> FrontBands | None:
    """Return where the front of two objectives lies; None if it is not known."""
    band = model.bands.get((x, y))
    if band is None:
        return None
    low, median, high = map(np.array, band)
    return FrontBands((x, y), low, median, high)


def _recipe(session: Session, trial: Trial, mark: str) -> Recipe:
    """Return a trial as its card and its tooltip show it."""
    return Recipe(
        f"Trial {trial.number}" + ("" if trial.label is None else f", row {trial.label}"),
        [(output.title, output.format_or_missing(trial)) for output in session.outputs],
        [(field.name, f"{text} {field.unit}".strip()) for field, text in format_point(session.fields, trial.x)],
        session.outputs.notes(trial, mark),
        _address(session, trial),
    )


def _recipes(session: Session, front: Sequence[Trial]) -> Child:
    if not front:
        return None
    rest = tag("p", f"The table has {MAX_ROWS} of {len(front)}.", class_="muted") if len(front) > MAX_ROWS else None
    return joined(trials_table(session, front[:MAX_ROWS], {}, "The front, with its recipes", "front-"), rest)


# The choice of one point


@dataclass(frozen=True)
class ChoiceInput:
    """What was typed into the form that chooses a point, and the point that was chosen."""

    typed: Mapping[str, str]
    point: ChosenPoint | None = None
    slug: str = ""  # of the study
    problem: str = ""


def choice_of(session: Session, data: Mapping[str, str]) -> tuple[str, str, dict[str, str], float]:
    """Return the output, "max" or "min", the conditions and the confidence of a form. A ValueError names the field."""
    outputs = {str(output.index): output for output in session.outputs}
    output, direction = outputs.get(data.get("choose-output", "")), data.get("choose-direction", "")
    confidence = data.get("choose-confidence", "0.9")
    if output is None or direction not in dict(DIRECTIONS) or confidence not in dict(CONFIDENCES):
        raise ValueError("Nothing was chosen; choose an output, smallest or largest, and how sure it must be")
    where: dict[str, str] = {}
    for name, part in outputs.items():
        typed, condition = data.get(f"choose-value-{name}", ""), data.get(f"choose-condition-{name}", "least")
        if not typed.strip():
            continue
        try:
            value, _ = parse_number(typed)
        except ValueError as error:
            raise ValueError(f"{part.title}: {error}") from None
        if abs(value) > checks.LARGEST:
            raise ValueError(f"{part.title}: {typed.strip()!r} is too large; give a value below {checks.LARGEST:g}")
        where[part.name] = f"{'<=' if condition == 'most' else '>='} {value!r}"
    return output.name, direction, where, float(confidence)


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
        _chosen(request, session, choice.point, at) if choice is not None and choice.point is not None else None,
        class_="card",
        id="choice",
        aria_labelledby="choice-title",
    )


def _choice_fields(session: Session, typed: Mapping[str, str]) -> Markup:
    outputs = session.outputs
    first = next((output for output in outputs.objectives if isinstance(output.goal, Min)), outputs.objectives[0])
    direction = "min" if isinstance(first.goal, Min) else "max" if isinstance(first.goal, Max) else "match"
    has_targets = any(isinstance(output.goal, Match) for output in outputs)
    directions = [(key, text) for key, text in DIRECTIONS if has_targets or key != "match"]
    titles = [(str(output.index), output.title) for output in outputs]
    limits = [f"{output.title} {output.limit}" for output in outputs.limits]
    conditions = []
    for output in outputs:
        usual = "most" if isinstance(output.goal, Min | AtMost) else "least"
        name = f"choose-condition-{output.index}"
        value = tag("input", type="text", name=f"choose-value-{output.index}", inputmode="text",
                    value=typed.get(f"choose-value-{output.index}", ""), placeholder="any",
                    aria_label=f"Condition on {output.title}, a number")  # fmt: skip
        kind = select(name, CONDITIONS, typed.get(name, usual), aria_label=f"At least or at most, for {output.title}")
        conditions.append(tag("div", tag("span", output.title, class_="strong"), kind, value, class_="condition"))
    confidence = select("choose-confidence", CONFIDENCES, typed.get("choose-confidence", "0.9"))
    return joined(
        tag(
            "div",
            tag("span", "I want", class_="strong"),
            select("choose-direction", directions, typed.get("choose-direction", direction),
                   aria_label="Smallest or largest"),
            select("choose-output", titles, typed.get("choose-output", str(first.index)), aria_label="Output"),
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


def _chosen(request: Request, session: Session, chosen: ChosenPoint, at: str) -> Markup:
    """Return the point that was chosen, with what is predicted there, and the untried one beside it."""
    parts = [_offer(request, session, chosen, at)]
    if chosen.untried is not None:
        parts.append(tag("h3", "Not tried yet, and more likely to hold"))
        parts.append(_offer(request, session, chosen.untried, at, untried=True))
    return tag("div", parts, class_="found", role="status")


def _offer(request: Request, session: Session, chosen: ChosenPoint, at: str, *, untried: bool = False) -> Markup:
    """Return a recipe, what to expect of it, how sure that is, and a button to try it."""
    recipe = [
        tag("div", tag("dt", field.name), tag("dd", f"{text} {field.unit}".strip()))
        for field, text in format_point(session.fields, chosen.x)
    ]
    expected = []
    for output in session.outputs:
        if output.name in chosen.outputs:
            mean, sd = chosen.outputs[output.name]
            words = f"{round_to_sd(mean, sd)} ± {round_to_sd(sd, sd)}"
            expected.append(tag("div", tag("dt", output.title), tag("dd", words)))
    sure = f"All conditions and limits hold with a probability of {percent(chosen.probability)}."
    sure += "" if chosen.note is None else f" {sentence(chosen.note)}"
    measured: Child = None
    if chosen.trial is not None:
        link = tag("a", f"trial {chosen.trial}", href=f"{at}/trial/{chosen.trial}")
        measured = tag("p", "It has been measured: ", link, ".")
    plan = form(
        request,
        f"{at}/plan",
        hidden("chosen", request.query_params.get("chosen", "")),
        hidden("untried", "yes" if untried else ""),
        tag("button", "Try it next" if chosen.trial is None else "Measure it again", class_="second"),
        data_busy="Adding it …",
    )
    cards = tag(
        "div",
        tag("div", tag("h3", "The recipe"), tag("dl", recipe)),
        tag("div", tag("h3", "What to expect"), tag("dl", expected)),
        class_="cards",
    )
    kind = "advice" if chosen.note is None and not untried else "advice distrust"
    return joined(cards, tag("p", sure, class_=kind), measured, plan)
