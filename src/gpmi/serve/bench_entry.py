"""What people enter beside a result: the values they really used, a note, the names of files, and their own name.

The fields of a trial are in a fold of its row. Values that were not changed are those of the suggestion, to the last
digit; changed ones are stored as they were typed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from gpmi._support import refusals
from gpmi._support.types import Point
from gpmi.serve.page_layout import hidden, labelled, select
from gpmi.serve.parameter_fields import INACTIVE, ParameterField
from gpmi.serve.session import Session
from gpmi.space import Parameters
from gpmi.storage import MAX_FILES, MAX_TEXT, MAX_WHO, Annotation
from gpmi.trials import Trial
from gpmi.views.html.markup import Child, Markup, tag

WHO = "who"  # the field and the cookie with the name of the person
REMEMBERED = 365 * 24 * 3600  # seconds that a browser remembers the name; our choice
_INDEX = re.compile("[0-9]{1,4}")
_FIELD = re.compile(r"(?:used-([0-9]{1,9})-[0-9]{1,4}|(?:was|note|files|why)-([0-9]{1,9}))")


@dataclass(frozen=True)
class BenchEntry:
    """What was entered beside the result of one trial."""

    used: Mapping[int, str] = field(default_factory=dict)  # what was typed, by the index of the parameter
    was: Mapping[int, str] = field(default_factory=dict)  # what the page had shown: others may have moved the trial
    text: str = ""
    files: tuple[str, ...] = ()
    who: str = ""

    @staticmethod
    def of(data: Mapping[str, str], number: int) -> BenchEntry:
        """Read the fields of a trial."""
        prefix = f"used-{number}-"
        mine = {name: text for name, text in data.items() if _FIELD.fullmatch(name)}
        used = {int(name[len(prefix) :]): text for name, text in mine.items() if name.startswith(prefix)}
        shown = data.get(f"was-{number}", "").split("\t")
        was = {
            int(index): text for index, _, text in (part.partition(":") for part in shown) if _INDEX.fullmatch(index)
        }
        files = re.split(r"[,;\n]", data.get(f"files-{number}", ""))
        names = tuple(name.strip() for name in files if name.strip())
        return BenchEntry(used, was, data.get(f"note-{number}", "").strip(), names, data.get(WHO, "").strip())

    def check(self, number: int) -> None:
        """Refuse a name, a note or files that cannot be stored, before anything else is."""
        if self.who or self.text or self.files:
            Annotation.checked(number, self.text, self.who, self.files)

    @property
    def has_remark(self) -> bool:
        return bool(self.text or self.files)


def typed_beside(data: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a form that are about what was entered beside results."""
    return {name: text for name, text in data.items() if _FIELD.fullmatch(name)}


def numbers_beside(data: Mapping[str, str]) -> list[int]:
    """Return the trials that have such fields, in their order."""
    matches = (_FIELD.fullmatch(name) for name in data)
    return list(dict.fromkeys(int(match[1] or match[2]) for match in matches if match is not None))


# The values that were used


def used_point(session: Session, trial: Trial, entry: BenchEntry) -> Point | None:
    """Return the point that was used; None if it is the point of the trial. Raise a ValueError in words."""
    changed: dict[int, Any] = {}
    for index, typed in entry.used.items():
        if index >= len(session.fields) or not session.fields[index].varies:
            continue
        parameter = session.fields[index]
        now = entry.was.get(index, parameter.shown(trial.x))
        if typed.strip() == now or (now == INACTIVE and not typed.strip()):
            continue
        if not typed.strip():
            raise ValueError(f"{parameter.name} is empty; give the value that was used, or {now} as suggested")
        changed[index] = parameter.parse(typed)
    if not changed:
        return None
    for index in _summed_with(session, changed):  # as displayed, so that a person can make the sum fit
        parameter = session.fields[index]
        if index not in changed and parameter.of(trial.x) is not None:
            changed[index] = parameter.parse(parameter.shown(trial.x))
    values = {part.key: changed.get(i, part.of(trial.x)) for i, part in enumerate(session.fields)}
    _check_sums(session, values)
    named = isinstance(session.fields[0].key, str)
    point: Any = {key: value for key, value in values.items() if value is not None} if named else list(values.values())
    canonical = session.space.canonical(point)
    is_same = session.space.encode(canonical).tobytes() == session.space.encode(trial.x).tobytes()
    return None if is_same else canonical


def _sums(session: Session) -> list[tuple[str, Any, float, float]]:
    """Return the linear constraints: text, coefficients by parameter, lower and upper bound."""
    linear = session.space.constraints.linear if isinstance(session.space, Parameters) else ()
    return [(rule.text, np.asarray(rule.coefficients), float(rule.lower), float(rule.upper)) for rule in linear]


def _summed_with(session: Session, changed: Mapping[int, Any]) -> list[int]:
    """Return the parameters that share a sum of a fixed value with one that was changed."""
    summed: set[int] = set()
    for _, coefficients, lower, upper in _sums(session):
        members = set(np.flatnonzero(coefficients).tolist())
        if lower == upper and members & changed.keys():
            summed |= members
    return sorted(summed)


def _check_sums(session: Session, values: Mapping[Any, Any]) -> None:
    numbers = [values[parameter.key] for parameter in session.fields]
    for text, coefficients, lower, upper in _sums(session):
        members = np.flatnonzero(coefficients).tolist()
        if any(not isinstance(numbers[j], int | float) for j in members):
            continue
        total = sum(float(coefficients[j]) * float(numbers[j]) for j in members)
        off = max(lower - total, total - upper)
        if off > 1e-9 * max(1.0, abs(total)):
            sentence = f"the constraint {text!r} is broken by {off:.3g}; give values that satisfy it"
            raise refusals.RefusedValue(sentence, "breaks-constraint", constraint=text, by=off)


def used_words(typed: Mapping[str, str]) -> list[str]:
    """Return the values that were changed on the page of a trial, as they were typed."""
    texts = []
    for number in numbers_beside(typed):
        entry = BenchEntry.of(typed, number)
        texts += [text for index, text in entry.used.items() if text.strip() != entry.was.get(index, text.strip())]
    return texts


# The fold in a row


def can_be_moved(trial: Trial) -> bool:
    """Whether other values than those of the trial can be entered."""
    return trial.status == "pending" and not trial.curve


def entry_fold(
    session: Session, trial: Trial, typed: Mapping[str, str], problem: str | None = None, *, in_row: bool = False
) -> Markup:
    """Return the fields of a trial, folded unless something was typed that could not be saved.

    With `in_row`, the cells of its row have the fields for the values that were used, visible while the fold is open.
    """
    number = trial.number
    controls: list[Child] = []
    if can_be_moved(trial):
        varied = [(i, part) for i, part in enumerate(session.fields) if part.varies]
        inputs = [] if in_row else [labelled(part.title, used_control(part, trial, i, typed)) for i, part in varied]
        was = "\t".join(f"{i}:{part.shown(trial.x)}" for i, part in varied)
        inputs.append(hidden(f"was-{number}", typed.get(f"was-{number}", was)))
        text = (
            "Change the values of the experiment to those that you really used."
            if in_row
            else "What did you really use?"
        )
        controls = [tag("p", text, class_="muted"), tag("div", inputs, class_="grid used")]
    name, files = f"note-{number}", f"files-{number}"
    note = tag("textarea", typed.get(name, ""), name=name, id=name, rows="2", maxlength=str(MAX_TEXT))
    attached = tag("input", type="text", name=files, id=files, value=typed.get(files, ""), placeholder="nmr_12.pdf")
    hint = f"Names alone, separated by commas; at most {MAX_FILES}. The files stay where they are."
    described = f"problem-used-{number}"
    return tag(
        "details",
        tag("summary", "Other values or a note" if controls else "Add a note",
            aria_label=f"{'Other values or a note' if controls else 'Note'} for trial {number}"),
        tag("p", problem, id=described, class_="problem", role="alert") if problem else None,
        *controls,
        labelled("Note", note),
        labelled("Files that belong to it", attached, hint),
        open=bool(problem) or None,
        class_="more beside",
    )  # fmt: skip


def used_control(parameter: ParameterField, trial: Trial, index: int, typed: Mapping[str, str]) -> Markup:
    """Return the control for the value of a parameter that was used, filled with the suggestion."""
    name, now = f"used-{trial.number}-{index}", parameter.shown(trial.x)
    value, label = typed.get(name, now), f"{parameter.title} that was used in trial {trial.number}"
    if parameter.kind == "choice":
        options = [(str(option), str(option)) for option in parameter.options]
        options = options if any(text == now for text, _ in options) else [("", INACTIVE), *options]
        return select(name, options, value, data_suggested=now, aria_label=label, class_="used")
    limits = (
        None
        if parameter.lo is None or parameter.hi is None
        else f"{parameter.format(parameter.lo)} to {parameter.format(parameter.hi)}"
    )
    return tag("input", type="text", name=name, value=value, inputmode="decimal", data_suggested=now, title=limits,
               aria_label=label, class_="used")  # fmt: skip


# The name of the person


def who_field(request: Request, typed: str | None = None) -> Markup:
    """Return the field for the name of the person, filled with the one that the browser remembers."""
    value = remembered_name(request) if typed is None else typed
    control = tag("input", type="text", name=WHO, id=WHO, value=value, maxlength=str(MAX_WHO), autocomplete="name",
                  data_suggested=value)  # fmt: skip
    return labelled("Your name", control, "Kept with what you enter, so that others know whom to ask.")


def remembered_name(request: Request) -> str:
    return unquote(request.cookies.get(f"gpmi_{WHO}", ""))[:MAX_WHO]


def remember_name(response: Response, data: Mapping[str, str]) -> None:
    """Let the browser remember the name that was typed."""
    if WHO in data:
        name = " ".join(data[WHO].split())[:MAX_WHO]
        response.set_cookie(f"gpmi_{WHO}", quote(name), max_age=REMEMBERED, httponly=True, samesite="lax")


def remark_words(remarks: tuple[Annotation, ...]) -> str:
    """Return notes and files as text for a table."""
    notes = [joined_words(remark) for remark in remarks if remark.text or remark.files]
    return "; ".join(notes)


def joined_words(remark: Annotation) -> str:
    """Return one remark as text: who, the note, and the files."""
    files = f"[{', '.join(remark.files)}]" if remark.files else ""
    text = " ".join(part for part in (" ".join(remark.text.split()), files) if part)
    return f"{remark.who}: {text}" if remark.who else text


def people(remarks: tuple[Annotation, ...]) -> str:
    """Return who did something about a trial, each person once."""
    return ", ".join(dict.fromkeys(remark.who for remark in remarks if remark.who))
