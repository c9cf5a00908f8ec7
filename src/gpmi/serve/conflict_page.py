"""The page after two people entered the same trial: the second one decides what the two entries mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from starlette.requests import Request

from gpmi.serve.bench_entry import WHO, used_words
from gpmi.serve.output_fields import OutputField
from gpmi.serve.page_layout import form, hidden, labelled
from gpmi.serve.session import Conflict, Session
from gpmi.serve.study_page import InvalidInput
from gpmi.serve.trial_table import format_moment
from gpmi.trials import Trial
from gpmi.views.html.markup import Markup, joined, tag

TITLE = "Already entered"
FIRST = {  # what the other person did, by the kind of the entry
    **{"told": "entered {values} for trial {number}", "corrected": "corrected trial {number} to {values}"},
    **{"failed": "said that trial {number} failed", "rejected": "skipped trial {number}"},
    **{"forgotten": "withdrew trial {number}", "retracted": "retracted the result of trial {number}"},
    **{"confirmed": "confirmed the result of trial {number}"},
}
ENTERED = {
    **{"fail": "it failed", "reject": "it cannot be done", "forget": "withdraw it", "retract": "retract it"},
    **{"confirm": "it is right"},
}


@dataclass(frozen=True)
class ConflictingInput:
    """An entry for a trial that has another outcome by now: a result as it was typed, or an action."""

    conflict: Conflict
    typed: Mapping[int, str] = field(default_factory=dict)  # by the index of the output
    action: str = ""
    why: str = ""
    beside: Mapping[str, str] = field(default_factory=dict)  # what was typed beside the result, sent along

    @staticmethod
    def of(
        conflict: Conflict,
        typed: Mapping[int, str],
        outputs: Sequence[OutputField],
        beside: Mapping[str, str] | None = None,
    ) -> ConflictingInput:
        cells = {output.index: output.parse(typed.get(output.index, "")) for output in outputs}
        failed = next((cell for cell in cells.values() if cell.failed), None)
        if failed is not None:
            return ConflictingInput(conflict, action="fail", why=failed.why or "", beside=beside or {})
        entered = {index: typed[index] for index, cell in cells.items() if not cell.empty}
        return ConflictingInput(conflict, entered, beside=beside or {})


def conflict_body(
    request: Request, session: Session, conflicts: Sequence[ConflictingInput], rejected: InvalidInput
) -> Markup:
    """Return one form with all conflicts, and with the cells that could not be read.

    It is one form so that no click loses what was typed elsewhere: a button decides one conflict and saves the cells.
    """
    shown = dict.fromkeys([*rejected.problems, *rejected.cells])
    cells = [_rejected_cell(session.outputs[index], number, rejected) for number, index in shown]
    return form(
        request,
        f"/study/{session.slug}/results",
        tag("button", "Save results", class_="unseen", tabindex="-1"),  # the button that Enter presses: decides nothing
        [_conflict_card(entry, session) for entry in conflicts],
        [cells, tag("p", tag("button", "Save results", class_="main"))] if cells else None,
        [hidden(name, text) for name, text in rejected.beside.items()],
        hidden(WHO, rejected.who or ""),
        autocomplete="off",
    )


def _first_entry(session: Session, trial: Trial) -> str | None:
    """Return who entered what about a trial, and when; None if nobody left a name."""
    corrected = trial.y_before is not None or trial.outputs_before is not None
    deeds = {"told": ("corrected",) if corrected else ("told",), "retracted": ("forgotten", "retracted")}
    signed = [
        remark
        for remark in session.annotations(trial.number)
        if remark.who and remark.did in deeds.get(trial.status, (trial.status,))
    ]
    if not signed:
        return None
    last = signed[-1]
    measured = [output for output in session.outputs if output.value(trial) is not None]
    shown = " and ".join(f"{output.format(trial)} {output.unit}".strip() for output in measured)
    what = FIRST[last.did].format(number=trial.number, values=shown or "a result")
    why = f": {trial.why}" if trial.why and trial.status == "failed" else ""
    return f"{last.who} {what} {format_moment(last.time)}{why}"


def _conflict_card(entry: ConflictingInput, session: Session) -> Markup:
    trial, outputs = entry.conflict.trial, session.outputs
    has_outcome, choices = trial.status in ("told", "failed"), dict[str, str]()
    if entry.typed:
        controls = {outputs[index]: text for index, text in entry.typed.items()}
        entered = joined(*(_typed_again(output, trial.number, text) for output, text in controls.items()))
        choices["again"] = "Keep both: it was measured twice" if has_outcome else "Add it: it was measured"
        choices |= {"correct": "Replace it with what I typed"} if has_outcome else {}
        if trial.status == "told" and (lacking := [output.title for output in controls if output.value(trial) is None]):
            choices["add"] = f"Keep it, and add only {' and '.join(lacking)}"
    elif not entry.action:
        entered = tag("p", f"You entered other values: {', '.join(used_words(entry.beside))}. Nothing was changed.")
    else:
        why = f": {entry.why}" if entry.why else ""
        # A failure is sent along, so that it is asked about again if another conflict is decided first.
        along = hidden(outputs[0].control(trial.number), f"failed{why}") if entry.action == "fail" else None
        entered = joined(tag("p", f"You entered: {ENTERED[entry.action]}{why}. Nothing was changed."), along)
        choices |= {"retract": "Retract its value"} if entry.action == "fail" and trial.status == "told" else {}
    choices["leave"] = "Leave it as it is"
    number = str(trial.number)
    buttons = [tag("button", text, name=choice, value=number, class_="second") for choice, text in choices.items()]
    heading = tag("h2", _first_entry(session, trial) or str(entry.conflict))
    beside = [hidden(name, text) for name, text in entry.beside.items()]
    used = used_words(entry.beside) if entry.typed else []
    values = tag("p", f"With other values: {', '.join(used)}.", class_="muted") if used else None
    return tag("section", heading, entered, values, beside, tag("div", buttons, class_="together"), class_="card")


def _typed_again(output: OutputField, number: int, text: str) -> Markup:
    name = output.control(number)
    return labelled(output.typed_again, tag("input", type="text", name=name, value=text, id=name))


def _rejected_cell(output: OutputField, number: int, rejected: InvalidInput) -> Markup:
    """Return a cell that could not be saved, with what was typed."""
    name, problem = output.control(number), rejected.problems.get((number, output.index))
    typed = rejected.cells.get((number, output.index), "")
    control = tag("input", type="text", name=name, value=typed, id=name, aria_invalid="true" if problem else None)
    cell = number, output.index
    asked = hidden(f"sure-{name}", rejected.questioned[cell]) if cell in rejected.questioned else None
    message = tag("p", problem, class_="problem") if problem else None
    return tag("section", message, asked, labelled(output.label(number), control), class_="card")
