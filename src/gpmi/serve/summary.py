"""The card "What is known" on the page of a study: best result, point to use, advice. Also the pictures below it."""

from __future__ import annotations

import numpy as np

from gpmi._support.text import VALUE, round_to_sd, rounded, shortened
from gpmi._support.types import Point
from gpmi.analysis.ledger import HEADING
from gpmi.serve.live_updates import LiveUpdates
from gpmi.serve.model_worker import STATISTICS, StudySummary
from gpmi.serve.parameter_fields import format_point
from gpmi.serve.session import Session, StudySnapshot
from gpmi.serve.trial_table import front_numbers
from gpmi.storage.serialization import point_to_json
from gpmi.trials import Trial
from gpmi.trials.goal_summary import superlative
from gpmi.trials.goals import Objective
from gpmi.views.html import Section
from gpmi.views.html.markup import Child, Markup, sentence, tag

LUCK = "A single measurement: part of it may be luck."


def summary_card(session: Session, snapshot: StudySnapshot, live: LiveUpdates, at: str) -> Markup:
    parts: list[Child] = []
    if session.has_front:
        parts += _best_of_each(session, snapshot, live, at)
    elif snapshot.best is None:
        parts.append(tag("p", "Nothing has been measured yet.", class_="empty"))
    else:
        best, result = snapshot.best, session.result
        label = "" if best.label is None else f", row {best.label}"
        name = "result" if result.name is None else shortened(result.name, VALUE)
        unit = tag("span", f" {result.unit}", class_="unit") if result.unit else None
        parts += [
            tag("p", f"{'Largest' if session.goal == 'max' else 'Smallest'} {name} so far", class_="muted over"),
            tag("p", rounded(best.y), unit, class_="big"),
            tag("p", tag("a", f"trial {best.number}", href=f"{at}/trial/{best.number}"), label, class_="muted"),
            tag("p", LUCK, class_="muted") if _may_be_luck(session, live, best) else None,
            _coordinates(session, best.x),
        ]
    parts.append(_model_summary(session, live, snapshot.best))
    parts.append(tag("p", tally(snapshot), class_="tally", id="tally"))
    if snapshot.budget is not None:
        done = str(min(snapshot.done, snapshot.budget))
        parts.append(tag("progress", value=done, max=str(snapshot.budget), aria_labelledby="tally"))
    inner = tag("div", parts, id="known", data_live=True)
    return tag(
        "aside", tag("h2", "What is known", id="known-title"), inner, class_="card known", aria_labelledby="known-title"
    )


def tally(snapshot: StudySnapshot) -> str:
    """Return how many experiments are done, waiting and left of those that were planned, as one line."""
    counts = {status: sum(trial.status == status for trial in snapshot.trials) for status in ("failed", "stopped")}
    counts["incomplete"] = len(snapshot.missing)
    among = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    done, waiting = f"{snapshot.done} done" + (f" ({among})" if among else ""), len(snapshot.pending)
    words = [done, *([f"{waiting} waiting"] if waiting or snapshot.budget is None else [])]
    if snapshot.budget is None:
        return ", ".join(words)
    if snapshot.done + waiting > snapshot.budget:
        return f"{', '.join(words)}, {snapshot.budget} were planned"
    return f"{', '.join(words)}, {snapshot.unplanned} left of {snapshot.budget} planned"


def _may_be_luck(session: Session, live: LiveUpdates, best: Trial) -> bool:
    """Whether the best result is better than what is expected at the point to use, with its error bar."""
    if live.summary is None or live.summary[0] < live.state["seq"] or best.repeats > 1 or best.y is None:
        return False
    believed = live.summary[1].believed
    if believed is None:
        return False
    return best.y > believed[2] if session.goal == "max" else best.y < believed[0]


def _best_of_each(session: Session, snapshot: StudySnapshot, live: LiveUpdates, at: str) -> list[Child]:
    """Return the number of trials on the front, and the best trial in each objective."""
    told = [trial for trial in snapshot.trials if trial.status == "told"]
    if not told:
        return [tag("p", "Nothing has been measured yet.", class_="empty")]
    count = len(front_numbers(session, snapshot, live))
    what = "best trade-off" if len(session.goals.objectives) > 1 else "best experiment"
    parts: list[Child] = [
        tag("p", f"{count or 'No'} {what}{'s' if count != 1 else ''} so far", class_="count-of-front")
    ]
    accepted = [trial for trial in told if trial.feasible and not session.goals.refuses(trial.outputs)]
    rows = []
    for output in session.outputs:
        goal = output.goal
        if not isinstance(goal, Objective):
            continue
        values = [(trial, value) for trial in accepted if (value := output.value(trial)) is not None]
        found: Child = "–"
        if values:
            oriented = goal.oriented(np.array([value for _, value in values]))
            best = values[int(np.argmax(oriented))][0]
            link = tag("a", f"trial {best.number}", href=f"{at}/trial/{best.number}")
            found = [tag("strong", output.format(best)), ", ", link]
        rows.append(tag("div", tag("dt", f"{superlative(goal)} {output.title}"), tag("dd", found)))
    parts += [tag("h3", "The best of each"), tag("dl", rows)]
    if len(accepted) < sum(trial.feasible for trial in told):
        parts.append(tag("p", "Only experiments with values that you would accept count.", class_="muted"))
    if session.goals.limits and not any(trial.feasible for trial in told):
        limits = ", ".join(session.goals.limits)
        parts.append(tag("p", f"No experiment is known to keep all limits yet: {limits}.", class_="muted"))
    return parts


def _coordinates(session: Session, x: Point) -> Markup:
    items = [
        tag("div", tag("dt", one.name), tag("dd", f"{text} {one.unit}".strip()))
        for one, text in format_point(session.fields, x)
    ]
    return tag("dl", items)


def _model_summary(session: Session, live: LiveUpdates, best: Trial | None) -> Child:
    """Return what the model says, as far as it has been computed."""
    if live.summary is None:
        return tag("p", "Working out what the results mean …", class_="muted working")
    seq, now = live.summary
    parts: list[Child] = []
    if seq < live.state["seq"]:  # comes first: what follows may rest on a result that was corrected since
        text = "Working out what the latest results mean … Until then, the summary below is out of date."
        parts.append(tag("p", text, class_="muted working"))
    if now.recommended is not None and now.t:
        same = best is not None and now.recommended == point_to_json(session.space, best.x)
        parts += [
            tag("h3", "The point to use"),
            tag("p", "What should work best, judged from all results.", class_="muted"),
            tag("p", "The same point.") if same else _coordinates(session, now.recommended),
            tag("p", "Expected there: ", tag("strong", expected(now.believed, session.result.unit)), id="expected")
            if now.believed is not None
            else None,
        ]
    decision = now.facts.decision
    kind = decision.advice.what.replace(" ", "-")  # a class of report.css
    parts += [tag("h3", HEADING), tag("p", decision.text, class_=f"advice {kind}", id="answer")]
    if live.problem:
        parts.append(tag("p", f"The model could not be computed: {live.problem}", class_="problem"))
    return parts


def expected(believed: tuple[float, float, float], unit: str = "") -> str:
    """Return what is expected at a point, with its standard deviation."""
    low, middle, high = believed
    sd = 0.5 * abs(high - low)
    return f"{round_to_sd(middle, sd)} ± {round_to_sd(sd, sd)} {unit}".strip()


def _statistics(now: StudySummary) -> list[Child]:
    """Return the reason for the answer, the numbers behind it, and those for statisticians."""
    facts = now.facts
    lines = [f"{name}: {text}" for name, text in (*facts.numbers, *facts.statistics)]
    return [tag("p", line) for line in (sentence(facts.decision.why), *lines)]


def pictures(live: LiveUpdates) -> Markup:
    """Return the pictures, each in a fold, and all that only statisticians need in one fold below them."""
    if live.pictures is None:
        return tag("div", tag("p", "Pictures are being drawn …", class_="muted working"), id="pictures", data_live=True)
    plain = [_folded(one) for one in live.pictures[1] if one.id not in STATISTICS]
    others = [_section(one) for one in live.pictures[1] if one.id in STATISTICS]
    numbers = [] if live.summary is None else _statistics(live.summary[1])
    inside = tag("div", numbers, class_="card") if numbers else None
    fold = tag("details", tag("summary", "For statisticians"), inside, others, id="statistics", class_="card fold")
    return tag("div", plain, fold if numbers or others else None, id="pictures", data_live=True)


def _folded(one: Section) -> Markup:
    """Return a section in a fold, which the script closes where there is little room."""
    return tag(
        "details",
        tag("summary", tag("h2", one.title)),
        Markup(one.html),
        id=one.id,
        open=True,
        class_="card fold picture",
    )


def _section(one: Section) -> Markup:
    return tag("section", tag("h2", one.title, id=f"{one.id}-title"), Markup(one.html), id=one.id,
               aria_labelledby=f"{one.id}-title")  # fmt: skip
