"""The page after two people entered the same trial: the second one decides what the two entries mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request

from gpmi.serve.cell_parsing import parse_cell
from gpmi.serve.page_layout import form, hidden, labelled
from gpmi.serve.session import Conflict, Session
from gpmi.serve.study_page import InvalidInput
from gpmi.views.html.markup import Markup, joined, tag

TITLE = "Someone else was faster"
ENTERED = {"fail": "it failed", "reject": "it cannot be done", "forget": "withdraw it", "retract": "retract it"}


@dataclass(frozen=True)
class ConflictingInput:
    """An entry for a trial that has another outcome by now: a result as it was typed, or an action."""

    conflict: Conflict
    typed: str = ""
    action: str = ""
    why: str = ""

    @staticmethod
    def of(conflict: Conflict, typed: str) -> ConflictingInput:
        cell = parse_cell(typed)
        if cell.failed:
            return ConflictingInput(conflict, action="fail", why=cell.why or "")
        return ConflictingInput(conflict, typed)


def conflict_body(
    request: Request, session: Session, conflicts: Sequence[ConflictingInput], rejected: InvalidInput
) -> Markup:
    """Return one form with all conflicts, and with the cells that could not be read.

    It is one form so that no click loses what was typed elsewhere: a button decides one conflict and saves the cells.
    """
    cells = [
        _rejected_cell(number, problem, rejected.cells.get(number, "")) for number, problem in rejected.problems.items()
    ]
    return form(
        request,
        f"/study/{session.slug}/results",
        tag("button", "Save results", class_="unseen", tabindex="-1"),  # the button that Enter presses: decides nothing
        [_conflict_card(one) for one in conflicts],
        [cells, tag("p", tag("button", "Save results", class_="main"))] if cells else None,
        autocomplete="off",
    )


def _conflict_card(entry: ConflictingInput) -> Markup:
    trial = entry.conflict.trial
    has_outcome, name, choices = trial.status in ("told", "failed"), f"y-{trial.number}", dict[str, str]()
    if entry.typed:
        entered = labelled("You typed", tag("input", type="text", name=name, value=entry.typed, id=name))
        choices["again"] = "Keep both: it was measured twice" if has_outcome else "Add it: it was measured"
        choices |= {"correct": "Replace it with what I typed"} if has_outcome else {}
    else:
        why = f": {entry.why}" if entry.why else ""
        # A failure is sent along, so that it is asked about again if another conflict is decided first.
        along = hidden(name, f"failed{why}") if entry.action == "fail" else None
        entered = joined(tag("p", f"You entered: {ENTERED[entry.action]}{why}. Nothing was changed."), along)
        choices |= {"retract": "Retract its value"} if entry.action == "fail" and trial.status == "told" else {}
    choices["leave"] = "Leave it as it is"
    buttons = [tag("button", text, name=one, value=str(trial.number), class_="second") for one, text in choices.items()]
    heading = tag("h2", str(entry.conflict))
    return tag("section", heading, entered, tag("div", buttons, class_="together"), class_="card")


def _rejected_cell(number: int, problem: str, typed: str) -> Markup:
    """Return a cell that could not be read, with what was typed."""
    name = f"y-{number}"
    control = tag("input", type="text", name=name, value=typed, id=name, aria_invalid="true")
    return tag(
        "section", tag("p", problem, class_="problem"), labelled(f"Result of trial {number}", control), class_="card"
    )
