"""What becomes of a form with results: saved, refused with a reason, or in conflict with what somebody else entered.

A value that cannot be, because it is outside the bounds of its output, is questioned first: it is shown again, and a
hidden field remembers it. If it comes a second time, unchanged, it is saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool

from gpmi.serve.bench_entry import WHO, BenchEntry, numbers_beside, typed_beside, used_point
from gpmi.serve.cell_parsing import ParsedCell
from gpmi.serve.conflict_page import ConflictingInput
from gpmi.serve.output_fields import Cell
from gpmi.serve.page_layout import Refusal, nothing_saved
from gpmi.serve.refusal_words import in_form_words
from gpmi.serve.session import Conflict, NoSuchTrial, Session
from gpmi.trials import Trial

FormData = Mapping[str, str]
FAILURE_BESIDE = "There is a failure beside a result; leave a cell empty if only this output is missing"
MAX_NOTES = 10  # shown after a form was saved; our choice
# What can happen to a trial other than a result, and how the next page reports it.
ACTIONS = {
    **{"fail": "failed", "reject": "was skipped", "forget": "was withdrawn", "retract": "was retracted"},
    **{"confirm": "was confirmed"},
}
DEEDS = {  # as the log has them
    "fail": "failed",
    "reject": "rejected",
    "forget": "forgotten",
    "retract": "retracted",
    "confirm": "confirmed",
}


class Doubt(ValueError):
    """A form about one experiment has values that cannot be. They are saved if they come again, unchanged."""

    def __init__(self, text: str, questioned: Mapping[int, str]) -> None:
        super().__init__(text)
        self.questioned = questioned  # what was typed, by the index of the output


def question(session: Session, cells: Mapping[int, ParsedCell], data: FormData, prefix: str, button: str) -> None:
    """Raise a `Doubt` about values of a form that cannot be, unless they come for the second time.

    `prefix` is the beginning of the names of its controls; the hidden fields are called the same, after "sure-".
    """
    doubts, questioned = list[str](), dict[int, str]()
    for index, cell in cells.items():
        output = session.outputs[index]
        name = f"{prefix}{output.suffix}"
        typed, doubt = data.get(name, "").strip(), output.doubt(cell.y)
        if doubt and typed != data.get(f"sure-{name}", "").strip():
            doubts.append(doubt if len(cells) == 1 else f"{output.title}: {doubt}")
            questioned[index] = typed
    if doubts:
        values = " and ".join(questioned.values())
        correct, are = ("Correct it", "it really is") if len(doubts) == 1 else ("Correct them", "they really are")
        text = f"{'; '.join(doubts)}. {correct}; or press {button} again if {are} {values}"
        raise Doubt(text, questioned)


class Submission:
    """What became of the cells of one form: saved, rejected, or in conflict with what somebody else entered."""

    def __init__(self, session: Session, data: FormData) -> None:
        self.session, self.data = session, data
        self.questioned: dict[Cell, str] = {}  # values that cannot be, unless they come again
        self.beside_problems: dict[int, str] = {}
        self.saved: list[Trial] = []
        self.notes: list[str] = []
        self.rejected: dict[Cell, str] = {}
        self.problems: dict[Cell, str] = {}
        self.conflicts: list[ConflictingInput] = []

    async def save_row(self, number: int, typed: Mapping[int, str], meaning: str = "tell") -> None:
        """Save what was typed for a trial, by the index of the output. Empty cells are skipped.

        The meaning is "tell", "correct", "again" (measured again) or "add" (only outputs that the trial lacks).
        """
        cells: dict[int, ParsedCell] = {}
        for index, text in typed.items():
            try:
                cell = self.session.outputs[index].parse(text)
                impossible = meaning == "tell" and self.session.outputs[index].doubt(cell.y) is not None
                if impossible and await run_in_threadpool(self._has_cell, number, index):
                    name = self.session.outputs[index].control(number)
                    question(self.session, {index: cell}, {**self.data, name: text}, f"y-{number}", "“Save results”")
            except Doubt as doubt:
                self.questioned[number, index] = text
                self._reject(number, {index: text}, doubt)
            except ValueError as error:
                self._reject(number, {index: text}, error)
            else:
                cells |= {} if cell.empty else {index: cell}
        refused = any(trial == number for trial, _ in self.rejected)
        if refused and any(cell.failed for cell in cells.values()):
            self._reject(number, {index: typed[index] for index in cells}, ValueError(FAILURE_BESIDE))
            return
        if not cells and refused:
            return  # what is beside the result is saved with it
        entry = BenchEntry.of(self.data, number)
        try:
            entry.check(number)
            used = await run_in_threadpool(used_by, self.session, number, entry)
            if not cells:
                await run_in_threadpool(self._save_beside, number, entry, used)
                return
        except Conflict as conflict:
            self.conflicts.append(ConflictingInput(conflict, beside=self._typed_beside(number)))
            return
        except (ValueError, TypeError, NoSuchTrial) as error:
            self.rejected |= {(number, index): typed[index] for index in cells}
            self.beside_problems[number] = problem_of(error)
            return
        try:
            saved = await run_in_threadpool(save, self.session, number, cells, meaning, entry, used)
        except Conflict as conflict:
            entered = {index: typed[index] for index in cells}
            beside = self._typed_beside(number)
            self.conflicts.append(ConflictingInput.of(conflict, entered, self.session.outputs, beside))
        except (ValueError, TypeError, NoSuchTrial) as error:
            self._reject(number, {index: typed[index] for index in cells}, error)
        else:
            self.saved.append(saved)
            self.notes += [cell.note for cell in cells.values() if cell.note]

    def _has_cell(self, number: int, index: int) -> bool:
        """Whether the page has a cell for an output of a trial, in which a value can be questioned."""
        try:
            trial = self.session.trial_or_withdrawn(number)
        except NoSuchTrial:
            return False
        return trial.status == "pending" or (
            trial.status == "told" and self.session.outputs[index].value(trial) is None
        )

    def _save_beside(self, number: int, entry: BenchEntry, used: Any) -> None:
        """Save what was entered beside a result that is still to come."""
        if entry.has_remark:  # first, because it is also true of a trial that has ended meanwhile
            self.session.annotate(number, entry.text, who=entry.who, files=entry.files)
            self.notes.append(f"The note on trial {number} was saved")
        if used is not None:
            self.session.move(number, used)
            sign(self.session, number, "moved", self.data)
            self.notes.append(f"Trial {number} is done with other values than suggested")

    def _typed_beside(self, number: int) -> dict[str, str]:
        return {
            name: text for name, text in typed_beside(self.data).items() if numbers_beside({name: text}) == [number]
        }

    @property
    def unsaved_beside(self) -> dict[str, str]:
        """What was typed beside results that could not be saved, to be shown again."""
        numbers = {*self.beside_problems, *(number for number, _ in self.problems)}
        return {name: text for number in numbers for name, text in self._typed_beside(number).items()}

    def _reject(self, number: int, typed: Mapping[int, str], error: Exception) -> None:
        """Keep cells that could not be saved, with the reason at the first one."""
        self.rejected |= {(number, index): text for index, text in typed.items()}
        self.problems[number, min(typed)] = problem_of(error)

    async def apply(self, action: str, number: int, why: str) -> None:
        """Apply one of the ACTIONS to a trial."""
        reason = (why.strip() or None,) if action in ("fail", "reject") else ()
        try:
            await run_in_threadpool(getattr(self.session, action), number, *reason)
            await run_in_threadpool(sign, self.session, number, DEEDS[action], self.data)
            self.notes.append(f"Trial {number} {ACTIONS[action]}")
        except Conflict as conflict:
            self.conflicts.append(ConflictingInput(conflict, action=action, why=why.strip()))
        except (ValueError, TypeError, NoSuchTrial) as error:
            self.problems[number, 0] = problem_of(error)

    @property
    def counts(self) -> str:
        """How many results and failures were saved, in words; empty if there are none."""
        failed = sum(trial.status == "failed" for trial in self.saved)
        counts = {"result": len(self.saved) - failed, "failure": failed}
        return " and ".join(counted(count, kind) for kind, count in counts.items() if count)

    def refusal(self) -> Refusal | None:
        """Return what was not saved, with the first cell or row that shows it again; None if all was saved."""
        first = {number: self.session.outputs[index].control(number) for number, index in reversed(self.problems)}
        places = {**{number: f"row-{number}" for number in self.beside_problems}, **first}
        if not places:
            return None
        numbers = sorted(places)
        at, texts = places[numbers[0]], [*self.problems.values(), *self.beside_problems.values()]
        rest = ", …" if len(numbers) > MAX_NOTES else ""
        which = f"trial{'s' if len(numbers) > 1 else ''} {listed(list(map(str, numbers[:MAX_NOTES])))}{rest}"
        if self.counts:
            return Refusal(f"{self.counts} saved, {len(numbers)} not: {which}.", at)
        if self.notes:
            return Refusal(f"{counted(len(numbers), 'result')} not saved: {which}.", at)
        return nothing_saved(texts[0], at) if len(texts) == 1 else Refusal(f"Nothing was saved: see {which}.", at)

    def messages(self) -> list[str]:
        """Return what was saved. `refusal` counts it if something else was not saved."""
        messages = [f"{self.counts} saved."] if self.counts and self.refusal() is None else []
        if any(not self.session.is_stored(trial) for trial in self.saved[:1]):
            messages.append("The database is unreachable. The results are in a file and will be delivered later.")
        messages += [f"{note}." for note in self.notes[:MAX_NOTES]]
        return messages + [text for trial in self.saved for text in warnings_of(self.session, trial)]


def problem_of(error: Exception) -> str:
    """Return what is wrong with a form, as a sentence."""
    return f"{in_form_words(error)}."


def warnings_of(session: Session, trial: Trial) -> list[str]:
    """Return what to check in a result that was saved, as messages."""
    return [f"Please check: {text}." for text in session.warnings(trial)]


def used_by(session: Session, number: int, entry: BenchEntry) -> Any:
    """Return the point that was used, if it is another one than that of the trial."""
    return used_point(session, session.trial_or_withdrawn(number), entry) if entry.used else None


def sign(session: Session, number: int, did: str, data: FormData) -> None:
    """Store who did something, if a name was given."""
    if who := data.get(WHO, "").strip():
        session.annotate(number, who=who, did=did)


def save(
    session: Session,
    number: int,
    cells: Mapping[int, ParsedCell],
    meaning: str,
    entry: BenchEntry | None = None,
    used: Any = None,
) -> Trial:
    """Save cells as the outcome of a trial, as a correction, as one more measurement (again), or if it lacks them.

    `used` is the point that was used, if it is not that of the trial.
    """
    saved = _save_cells(session, number, cells, meaning, used)
    if entry is not None and (entry.who or entry.has_remark):
        did = "failed" if saved.status == "failed" else "corrected" if meaning == "correct" else "told"
        session.annotate(saved.number, entry.text, who=entry.who, files=entry.files, did=did)
    return saved


def _save_cells(session: Session, number: int, cells: Mapping[int, ParsedCell], meaning: str, used: Any) -> Trial:
    failures = [cell for cell in cells.values() if cell.failed]
    if failures and len(failures) < len(cells):
        raise ValueError(FAILURE_BESIDE)
    if used is not None and meaning == "again":
        y, bars = session.outputs.read(cells)
        return session.observe(used, y, **bars)
    if used is not None:
        if meaning != "tell":
            raise ValueError(f"Trial {number} has a result at other values; keep both, because it was measured twice")
        if not failures:
            session.check(*session.outputs.read(cells))  # before the trial is moved
        session.move(number, used)
    if failures and meaning == "tell":
        return session.fail(number, failures[0].why)
    if meaning == "add":
        trial = session.trial(number)
        cells = {index: cell for index, cell in cells.items() if session.outputs[index].value(trial) is None}
    y, bars = session.outputs.read(cells)
    if meaning == "correct":
        return session.correct(number, y, **bars)
    return session.tell(number, y, **bars, again=meaning == "again")


def parsed(session: Session, data: FormData, prefix: str) -> dict[int, ParsedCell]:
    """Return the cells of a form about one experiment that are not empty, by the index of the output."""
    cells: dict[int, ParsedCell] = {}
    for output in session.outputs:
        try:
            cell = output.parse(data.get(f"{prefix}{output.suffix}", ""))
        except ValueError as error:
            raise ValueError(f"{output.prefix}{error}") from None
        cells |= {} if cell.empty else {output.index: cell}
    return cells


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count != 1 else ''}"


def listed(words: list[str]) -> str:
    """Return words as a list that is read aloud: 3, 5 and 8."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
