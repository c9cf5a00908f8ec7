"""The page of one trial: its point with all digits, its outcome, and forms to change it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from starlette.requests import Request

from gpmi._support.text import round_to_sd
from gpmi.serve.bench_entry import WHO, entry_fold, remembered_name
from gpmi.serve.page_layout import form, hidden, labelled
from gpmi.serve.parameter_fields import format_step
from gpmi.serve.session import Session
from gpmi.serve.study_page import ACCIDENT, FAILED
from gpmi.serve.trial_table import format_result
from gpmi.trials import Trial
from gpmi.views.html.curves import trial_curve
from gpmi.views.html.markup import Child, Markup, exact, joined, tag

ORIGINS = {"design": "the initial design", "policy": "the model", "user": "Not suggested; entered by a user"}
ACTIONS = {  # by the status of a trial
    "pending": ("tell", "report", "fail", "reject", "forget"),
    "stopped": ("tell", "report", "retract"),
    "told": ("correct", "again", "retract"),
    "failed": ("correct", "retract"),
    "rejected": ("retract",),
    "retracted": ("correct",),
}
BUTTONS = {"tell": "Save", "correct": "Correct it", "again": "Add the second measurement"}
TELL = {"pending": "Enter its result", "stopped": "It went on to the end: enter its result"}


@dataclass(frozen=True)
class InvalidForm:
    """What was typed into a form about one trial and could not be saved."""

    action: str  # which form it was
    typed: Mapping[int, str]  # by the index of the output
    problem: str
    step: str = ""  # typed for a step of a fidelity
    beside: Mapping[str, str] = field(default_factory=dict)  # a note, files, other values, and the reason ("why")
    questioned: Mapping[int, str] = field(default_factory=dict)  # results that are saved if they come again, unchanged


def trial_body(request: Request, session: Session, trial: Trial, rejected: InvalidForm | None = None) -> Markup:
    """Return everything below the heading."""
    rows: list[tuple[str, Child]] = []
    if trial.outputs:
        for output in session.outputs:
            limit = tag("small", f" {output.limit}", class_="muted") if output.limit else None
            rows.append((output.title, [tag("strong", output.format_or_missing(trial)), limit]))
    else:
        rows.append(("Result", format_result(trial)))
    notes = session.outputs.notes(trial)
    rows += [("Note", notes)] if notes else []
    rows += [("Row", str(trial.label))] if trial.label is not None else []
    for part in session.fields:
        rows.append((part.title, format_step(part, trial) if part.kind == "steps" else exact(part.of(trial.x))))
    suggested = session.reader.suggested(trial.number)
    rows.append(("Suggested by", ORIGINS[trial.origin] if suggested is None else "gpmi, and then done otherwise"))
    if trial.mu is not None and trial.sd is not None:
        rows.append(("Prediction", f"{round_to_sd(trial.mu, trial.sd)} ± {round_to_sd(trial.sd, trial.sd)}"))
    if suggested is not None:
        changed = [field for field in session.fields if field.of(suggested) != field.of(trial.x)]
        texts = [f"{field.title} {exact(field.of(suggested))}" for field in changed]
        rows.append(("Was suggested", ", ".join(texts)))
    rows += [(title, _time(when)) for title, when in (("Suggested", trial.asked), ("Ended", trial.ended)) if when]
    body = [tag("tr", tag("th", name, scope="row"), tag("td", text)) for name, text in rows]
    caption = tag("caption", f"Trial {trial.number}", class_="unseen")
    drawn = trial_curve(session.space, trial, [output.name for output in session.outputs])
    heading = tag("h2", "Its curve", id="curve-title")
    return joined(
        tag("section", tag("table", caption, tag("tbody", body), class_="facts"), class_="card"),
        tag("section", heading, drawn, class_="card", aria_labelledby="curve-title") if drawn is not None else None,
        _remarks(session, trial),
        _action_forms(request, session, trial, rejected),
    )


DID = {  # what a person did, by the kind of the entry
    **{"told": "entered a result", "corrected": "corrected it", "failed": "said that it failed"},
    **{"rejected": "skipped it", "forgotten": "withdrew it", "retracted": "retracted it"},
    **{"moved": "used other values", "reported": "entered a step"},
    **{"confirmed": "said that it is right"},
}


def _remarks(session: Session, trial: Trial) -> Markup | None:
    """Return who did and wrote what about a trial, and when."""
    items = []
    for remark in session.annotations(trial.number):
        files = f" Files: {', '.join(remark.files)}." if remark.files else ""
        who = " ".join(part for part in (remark.who or "Somebody", DID.get(remark.did, "wrote")) if part)
        text = tag("p", remark.text + files, class_="words lines") if remark.text or files else None
        items.append(tag("li", tag("strong", who), tag("span", f" {_time(remark.time)}", class_="muted"), text))
    heading = tag("h2", "Who did what", id="remarks-title")
    return tag("section", heading, tag("ul", items, class_="remarks"), class_="card",
               aria_labelledby="remarks-title") if items else None  # fmt: skip


def _time(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%d %H:%M UTC")


def allowed_actions(session: Session, trial: Trial) -> tuple[str, ...]:
    """Return the actions that have a form: those that the status of the trial allows."""
    allowed = (*ACTIONS[trial.status], "note")
    allowed = ("tell", *allowed) if session.outputs.lacking(trial) else allowed
    allowed = allowed if trial.doubt is None else ("confirm", *allowed)
    steps = any(field.kind == "steps" for field in session.fields)
    return tuple(action for action in allowed if action != "report" or steps)


def _action_forms(request: Request, session: Session, trial: Trial, rejected: InvalidForm | None) -> Markup:
    """Return a form for each action that the status of the trial allows."""
    missing, allowed = session.outputs.lacking(trial), allowed_actions(session, trial)
    steps = [field for field in session.fields if field.kind == "steps"]
    address = f"/study/{session.slug}/trial/{trial.number}"

    def value(action: str) -> Markup:
        mine = rejected if rejected is not None and rejected.action == action else None
        typed, questioned = ({}, {}) if mine is None else (mine.typed, mine.questioned)
        controls = []
        shown = list(session.outputs)
        if trial.status == "told" and action in ("tell", "correct"):
            shown = missing if action == "tell" else [output for output in shown if output not in missing]
        for output in shown:
            hint = output.hint(output.format(trial) if action == "correct" else None)
            control = tag("input", type="text", name=f"y{output.suffix}", value=typed.get(output.index, ""),
                          required=output.required, placeholder=hint)  # fmt: skip
            controls.append(labelled(output.title, control))
            if output.index in questioned:
                controls.append(hidden(f"sure-y{output.suffix}", questioned[output.index]))
        optional = any(not output.required for output in shown)
        rest = tag("p", "Fill in what changes; the rest stays as it is.", class_="muted")
        return joined(rest if optional and action == "correct" else None, *controls)

    def step() -> Markup:
        name, (lo, hi) = steps[0].title, (steps[0].lo or 1, steps[0].hi or 1)
        control = tag("input", type="text", name="step", value=rejected.step if rejected else "", inputmode="numeric",
                      required=True)  # fmt: skip
        return labelled(name, control, f"{lo} to {hi}, after the steps before")

    def beside(action: str) -> Mapping[str, str]:
        return rejected.beside if rejected is not None and rejected.action == action else {}

    def reason(action: str) -> Markup:
        typed = beside(action).get("why", "")
        return labelled("Reason", tag("input", type="text", name="why", value=typed, maxlength="200"))

    def fold(action: str) -> Markup:
        return entry_fold(session, trial, beside(action))

    number = trial.number
    note = [
        labelled("Note", tag("textarea", beside("note").get(f"note-{number}", ""), name=f"note-{number}", rows="3")),
        labelled("Files that belong to it", tag("input", type="text", name=f"files-{number}",
                 value=beside("note").get(f"files-{number}", "")), "Names alone, separated by commas."),
    ]  # fmt: skip
    forms: dict[str, tuple[str, str, Child]] = {
        "tell": (TELL.get(trial.status, "Enter what is missing"), BUTTONS["tell"], [value("tell"), fold("tell")]),
        "note": ("A note", "Save the note", note),
        **({"report": ("It is on its way", "Save this step", [step(), value("report")])} if steps else {}),
        "fail": ("It failed", FAILED, [reason("fail"), tag("p", ACCIDENT, class_="muted")]),
        "reject": (
            "It will not be done",
            "Skip it",
            [reason("reject"), tag("p", "It is not suggested again.", class_="muted")],
        ),
        "forget": ("It was not tried", "Withdraw it", tag("p", "As if it had never been suggested.", class_="muted")),
        "confirm": ("Is the result right?", "Yes, it is right", tag("p", trial.doubt)),
        "correct": ("The result is wrong", BUTTONS["correct"], value("correct")),
        "again": ("It was measured again", BUTTONS["again"], value("again")),
        "retract": ("It should not count", "Retract it", tag("p", "The trial stays in the list.", class_="muted")),
    }
    cards = []
    for action in allowed:
        title, button, inside = forms[action]
        heading = tag("h2", title, id=f"{action}-title")
        wrong = rejected is not None and rejected.action == action
        problem = tag("p", rejected.problem, class_="problem", role="alert") if rejected and wrong else None
        submit = tag("p", tag("button", button, class_="second"))
        named = hidden(WHO, remembered_name(request))
        inner = form(request, address, hidden("word", action), named, problem, inside, submit)
        cards.append(tag("section", heading, inner, class_="card", aria_labelledby=f"{action}-title"))
    return tag("div", cards, class_="cards")
