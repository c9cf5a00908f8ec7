"""The cards of a study with goals: the best trade-offs as pictures with sliders, and the choice of one point.

Without JavaScript the pictures are plain, and a table below them has the recipes. The script adds the sliders, and
shows the recipe behind a point that has the focus.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from starlette.requests import Request

from gpmi._support.text import percent, round_to_sd, rounded
from gpmi._support.types import Array
from gpmi.serve.cell_parsing import parse_number
from gpmi.serve.live_updates import LiveUpdates
from gpmi.serve.model_worker import Choice
from gpmi.serve.output_fields import OutputField
from gpmi.serve.page_layout import form, hidden, labelled, select
from gpmi.serve.parameter_fields import format_point
from gpmi.serve.session import Session, StudySnapshot
from gpmi.serve.trial_table import front_numbers, notes_of, trials_table
from gpmi.trials import Trial
from gpmi.trials.goals import AtLeast, AtMost, Match, Max, Min, Objective
from gpmi.views.html.markup import Child, Markup, joined, sentence, short_number, tag
from gpmi.views.html.svg import Chart, Scale, figure, fitted, key, line, margin

# Our choices.
MAX_POINTS = 200  # trials beside the front that are drawn: the latest ones
MAX_ROWS = 50  # of the table of the front
MAX_PICTURES = 6  # pairs of objectives: all of four objectives
STEPS = 200  # of a slider
CONFIDENCES = (("0.5", "50 %"), ("0.8", "80 %"), ("0.9", "90 %"), ("0.95", "95 %"), ("0.99", "99 %"))
DIRECTIONS = (("min", "the smallest"), ("max", "the largest"), ("match", "the best match of"))
CONDITIONS = (("least", "at least"), ("most", "at most"))
WIDTH, HEIGHT = 460.0, 330.0  # of a picture
LEFT, RIGHT, TOP, BOTTOM = 62.0, 16.0, 12.0, 44.0
MARKS = {
    **{"front": "on the front", "other": "beaten by another one"},
    **{"unmet": "breaks a limit", "unknown": "a limit is not measured yet"},
}


# The front


def front_card(session: Session, snapshot: StudySnapshot, live: LiveUpdates, at: str) -> Markup:
    """Return the card with the front: pictures, sliders, and the recipes of its points as a table."""
    assert session.goals is not None
    objectives = [one for one in session.outputs if one.name in session.goals.objectives]
    complete = [
        trial
        for trial in snapshot.trials
        if trial.status == "told" and all(one.value(trial) is not None for one in objectives)
    ]
    inner: Child
    if complete:
        inner = _front(session, snapshot, live, at, objectives, complete)
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
    complete: Sequence[Trial],
) -> Markup:
    numbers = front_numbers(session, snapshot, live)
    front = [trial for trial in complete if trial.number in numbers]
    others = [trial for trial in complete if trial.number not in numbers][-MAX_POINTS:]
    working = None
    if live.state["known"] < live.state["seq"]:
        working = tag("p", "Working out what the latest results mean …", class_="muted working")
    pairs = list(combinations(objectives, 2))[:MAX_PICTURES]
    pictures = [_picture(x, y, front, others, objectives, at) for x, y in pairs]
    legend = _legend(objectives, front, others) if pairs else None
    goal = objectives[0].goal
    assert isinstance(goal, Objective)
    front.sort(key=lambda trial: -float(goal.oriented(np.asarray(objectives[0].value(trial)))))
    return joined(
        working,
        _words(session, front, objectives),
        _sliders(objectives, front) if front else None,
        legend,
        tag(
            "div",
            pictures,
            _recipe_box() if pairs else None,
            class_="tradeoff" if len(pairs) == 1 else "tradeoff figures large",
            data_recipes=json.dumps({str(t.number): _recipe(session, t, at, numbers) for t in (*front, *others)}),
        ),
        _recipes(session, front, at),
    )


def _words(session: Session, front: Sequence[Trial], objectives: Sequence[OutputField]) -> Markup:
    """Return what the front is, in a sentence."""
    assert session.goals is not None
    if not front:
        limits = " and keeps the limits" if session.goals.limits else ""
        return tag("p", f"No experiment is acceptable in everything{limits} yet.")
    names = " and ".join(one.title for one in objectives)
    if len(objectives) == 1:
        text = f"The closest to the goal of {names}."
    elif len(front) == 1:
        text = f"One experiment is at least as good as all others in {names}."
    else:
        text = f"These {len(front)} experiments are the front: no other one beats one of them in both {names}."
        text = text if len(objectives) == 2 else text.replace(" in both ", " in all of ")
    return tag("p", text)


def _picture(
    x: OutputField,
    y: OutputField,
    front: Sequence[Trial],
    others: Sequence[Trial],
    objectives: Sequence[OutputField],
    at: str,
) -> Markup:
    """Return two objectives as a picture. Each point is a link, to its row in the table or to its page."""
    # The front is drawn on top; the Tab key goes from left to right.
    trials = [*others, *sorted(front, key=lambda trial: _value(x, trial))]
    numbers = {trial.number for trial in front}
    vertical = _scale(y, trials, HEIGHT - BOTTOM, TOP)
    horizontal = _scale(x, trials, margin(vertical, LEFT), WIDTH - RIGHT)
    chart = Chart(horizontal, vertical, WIDTH, HEIGHT)
    chart.axes(f"{x.title}, {_better(x)}", f"{y.title}, {_better(y)}")
    for output, scale in ((x, horizontal), (y, vertical)):
        for value, class_ in _references(output):
            if scale.lo <= value <= scale.hi:
                place = float(scale(value))
                ends = (place, TOP, place, HEIGHT - BOTTOM) if scale is horizontal else None
                chart.add(line(*(ends or (horizontal.begin, place, horizontal.end, place)), class_))
    chart.add(_staircase(chart, x, y, front, objectives))
    for trial in trials:
        kind = _kind(trial, trial.number in numbers)
        chart.add(_point(chart, x, y, trial, kind, objectives, at))
    title = f"{x.title} and {y.title}"
    desc = f"{len(front)} experiments on the front and {len(others)} others. The table below has the same numbers."
    drawn = tag(  # not `picture`, whose role hides the links from screen readers
        "svg",
        tag("title", title),
        tag("desc", desc),
        joined(*chart.parts),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {short_number(WIDTH)} {short_number(HEIGHT)}",
        role="group",
        aria_label=title,
        class_="chart",
    )
    return figure(drawn)


def _legend(objectives: Sequence[OutputField], front: Sequence[Trial], others: Sequence[Trial]) -> Markup:
    """Return what the marks of the pictures mean."""
    kinds = {*("front" for _ in front), *(_kind(trial, False) for trial in others)}
    marks = [(_mark(kind, 16.0, 8.0), meaning) for kind, meaning in MARKS.items() if kind in kinds]
    if any(_references(one) for one in objectives):
        marks.append((line(2, 8, 30, 8, "reference"), "the worst that you accept"))
    return key(*marks)


def _scale(output: OutputField, trials: Sequence[Trial], begin: float, end: float) -> Scale:
    """Return a scale for an objective that shows what is acceptable, too, unless that is far away."""
    values = np.array([output.value(trial) for trial in trials], dtype=float)
    wide = float(np.ptp(values)) or abs(float(values[0])) or 1.0
    near = [one for one, _ in _references(output) if values.min() - wide <= one <= values.max() + wide]
    return fitted(np.concatenate([values, np.array(near, dtype=float)]), begin, end)


def _references(output: OutputField) -> list[tuple[float, str]]:
    """Return the lines of an objective: the worst acceptable value, and a target."""
    match output.goal:
        case Max(at_least=float(worst)) | Min(at_most=float(worst)):
            return [(worst, "reference")]
        case Match(target, within) if within is not None:
            return [(target, "thin"), (target - within, "reference"), (target + within, "reference")]
    return []


def _better(output: OutputField) -> str:
    match output.goal:
        case Max():
            return "large is better"
        case Min():
            return "small is better"
        case Match():
            return f"{rounded(output.goal.target)} is best"
    return ""


def _kind(trial: Trial, on_front: bool) -> str:
    if on_front:
        return "front"
    if trial.feasible:
        return "other"
    return "unmet" if any(name in trial.outputs for name in trial.unmet) else "unknown"


def _staircase(
    chart: Chart, x: OutputField, y: OutputField, front: Sequence[Trial], objectives: Sequence[OutputField]
) -> Markup:
    """Return the line below which everything is beaten by a point of the front, for two objectives."""
    if len(objectives) != 2 or any(isinstance(one.goal, Match) for one in (x, y)) or len(front) < 2:
        return Markup("")
    places = sorted(((_value(x, trial), _value(y, trial)) for trial in front), reverse=isinstance(x.goal, Max))
    corners = [places[0]]
    for a, b in places[1:]:
        corners += [(a, corners[-1][1]), (a, b)]
    across = np.array(corners)
    points = " ".join(
        f"{short_number(round(float(a), 1))},{short_number(round(float(b), 1))}"
        for a, b in zip(chart.x(across[:, 0]), chart.y(across[:, 1]), strict=True)
    )
    return tag("polyline", points=points, class_="stairs")


def _value(output: OutputField, trial: Trial) -> float:
    value = output.value(trial)
    assert value is not None
    return value


def _point(
    chart: Chart,
    x: OutputField,
    y: OutputField,
    trial: Trial,
    kind: str,
    objectives: Sequence[OutputField],
    at: str,
) -> Markup:
    """Return a point as a link. Those on the front are in the order of the Tab key."""
    place = float(chart.x(_value(x, trial))), float(chart.y(_value(y, trial)))
    name = f"Trial {trial.number}: " + ", ".join(f"{one.title} {one.format(trial)}" for one in objectives)
    on_front = kind == "front"
    return tag(
        "a",
        tag("title", name),
        tag("circle", cx=place[0], cy=place[1], r=12.0 if on_front else 7.0, class_="target"),
        _mark(kind, *place),
        href=f"#front-{trial.number}" if on_front else f"{at}/trial/{trial.number}",
        aria_label=name,
        tabindex=None if on_front else "-1",
        class_=f"point-link {kind}",
        data_number=str(trial.number),
        data_values=" ".join(repr(_value(one, trial)) for one in objectives),
    )


def _mark(kind: str, x: float, y: float) -> Markup:
    if kind == "unmet":
        return tag("path", d=f"M{x - 3.5:.1f},{y - 3.5:.1f}l7,7m0,-7l-7,7", class_="mark unmet")
    return tag("circle", cx=x, cy=y, r={"front": 6.0, "other": 3.5}.get(kind, 4.0), class_=f"mark {kind}")


def _sliders(objectives: Sequence[OutputField], front: Sequence[Trial]) -> Markup:
    """Return a slider for each objective, over its values on the front. The script fades what they exclude."""
    controls = []
    for i, output in enumerate(objectives):
        goal, values = output.goal, np.array([_value(output, trial) for trial in front])
        sense, before, after = ("most", "at most", "") if isinstance(goal, Min) else ("least", "at least", "")
        if isinstance(goal, Match):
            sense, before, after = "within", "within", f" of {rounded(goal.target)}"
            values = np.abs(values - goal.target)
        controls.append(_slider(i, output, sense, (before, after), values))
    text = f"{len(front)} of {len(front)} {'is' if len(front) == 1 else 'are'} left."
    return tag(
        "fieldset",
        tag("legend", "What do you need at least?" if len(objectives) > 1 else "How close must it be?"),
        tag("div", controls, class_="sliders"),
        tag("p", text, class_="left muted", role="status"),
        class_="tools js",
    )


def _slider(i: int, output: OutputField, sense: str, words: tuple[str, str], values: Array) -> Markup:
    lo, hi = float(values.min()), float(values.max())
    start = 0 if sense == "least" else STEPS
    target = repr(output.goal.target) if isinstance(output.goal, Match) else None
    control = tag(
        "input", type="range", min="0", max=str(STEPS), value=str(start), data_start=str(start), data_index=str(i),
        data_lo=repr(lo), data_hi=repr(hi), data_sense=sense, data_target=target, class_="slider", id=f"slider-{i}",
        disabled=lo == hi,
    )  # fmt: skip
    shown = tag("output", "–", for_=f"slider-{i}")
    return tag("label", tag("span", f"{output.title} {words[0]} ", shown, words[1]), control, class_="field")


def _recipe_box() -> Markup:
    """Return the place where the script shows the recipe behind a point."""
    hint = "Click a point, or move to it with the Tab and arrow keys, to see its recipe."
    return tag("div", tag("p", hint, class_="muted"), class_="recipe js", role="status", aria_label="Recipe")


def _recipe(session: Session, trial: Trial, at: str, front: Collection[int]) -> dict[str, object]:
    """Return a trial as the script shows it."""
    return {
        "title": f"Trial {trial.number}" + ("" if trial.label is None else f", row {trial.label}"),
        "href": f"{at}/trial/{trial.number}",
        "note": notes_of(session.outputs, trial, on_front=trial.number in front),
        "x": [[one.name, f"{text} {one.unit}".strip()] for one, text in format_point(session.fields, trial.x)],
        "outputs": [[one.title, one.format_or_missing(trial)] for one in session.outputs],
    }


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
    found: Choice | None = None
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
    limits = [f"{one.title} {one.purpose}" for one in session.outputs if isinstance(one.goal, AtLeast | AtMost)]
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
