"""The log of a study, replayed in memory from its stored entries. Replay needs neither a database nor a model.

It costs O(1) for most entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast, get_args

from gpmi._support import checks
from gpmi._support.types import Array, FrozenPoint, Point
from gpmi.optimizer.curves import checked_step, is_next_step
from gpmi.space import Space, frozen
from gpmi.storage.annotations import Annotation
from gpmi.storage.entries import StoredEntry
from gpmi.storage.errors import StudyError
from gpmi.storage.serialization import point_from_json, point_to_json
from gpmi.storage.stored_outcomes import outcome_from_json, stored_fields
from gpmi.trials import Log, Origin, Outcome, Trial
from gpmi.trials.corrections import confirmable, correct, correctable, retract, retractable
from gpmi.trials.goals import Goals
from gpmi.trials.outcomes import details_of
from gpmi.trials.trial import ENDED, PREDICTIONS, fields_of_type, is_doubts
from gpmi.trials.value_goal import MAXIMISE

LATEST = 253402300800.0  # the end of the year 9999, in seconds since 1970: later times have no date
FLAGS = fields_of_type("bool")


class ReplayedLog(Log):
    """A log whose trials come from stored entries."""

    def __init__(self, space: Space, budget: int | None, goals: Goals = MAXIMISE) -> None:
        self.space, self._first_budget = space, budget
        super().__init__(budget, goals, space.fidelity)

    def _clear(self) -> None:
        super()._clear()
        self.budget = self._first_budget
        self.grants: dict[int, StoredEntry] = {}  # the entry with which each trial was last handed out
        self.platform: Any = None  # of the last suggestion, or of the creation before the first; None if not recorded
        self.forgotten: dict[int, Point] = {}  # the points of forgotten trials, which may still get a value
        self.annotations: dict[int, tuple[Annotation, ...]] = {}  # by the number of the trial, in their order
        self._inherited: dict[int, int] = {}  # the last step of the curve of each trial when it was handed out again

    # Reading

    @property
    def evaluated(self) -> int:
        """How many trials that were asked have a value, were stopped or failed. O(n).

        The budget of a study counts these alone, so imported values do not use it up.
        """
        return sum(not self.is_imported(trial) and trial.status in ENDED for trial in self._trials.values())

    @property
    def horizon(self) -> int | None:
        """How many outcomes there will be in all, imported ones included; None without a budget. O(n)."""
        imported = sum(self.is_imported(trial) for trial in self._trials.values())
        return None if self.budget is None else self.budget + imported

    def is_pending(self, number: int) -> bool:
        return number in self._pending

    def point_of(self, number: int) -> Point | None:
        """Return the point of any trial, even of a forgotten one; None if there never was one with this number."""
        trial = self._trials.get(number)
        return self.forgotten.get(number) if trial is None else trial.x

    def at(self, number: int) -> Trial:
        """Return a trial by its number; a forgotten one as retracted."""
        point = self.forgotten.get(number)
        return self._trials[number] if point is None else Trial(number, point, None, "retracted", "user")

    # Writing

    def add(self, x: Point, row: Array, origin: Origin, **fields: Any) -> Trial:
        """Add a trial. Round-trip the point through JSON first, so that all processes compute the same coordinates."""
        return self._add_stored(point_to_json(self.space, x), origin, **fields)

    def _add_stored(self, x: Any, origin: Origin, **fields: Any) -> Trial:
        point = self.space.canonical(point_from_json(x))
        return super().add(frozen(point), self.space.encode(point), origin, **fields)

    def move(self, number: int, x: Point, row: Array, when: float | None = None) -> Trial:
        """Set the point of a pending trial. Round-trip it through JSON first, as `add` does."""
        point = self.space.canonical(point_from_json(point_to_json(self.space, x)))
        return super().move(number, frozen(point), self.space.encode(point), when)

    def annotate(self, annotation: Annotation) -> None:
        """Add an annotation to its trial, which may be forgotten."""
        number = annotation.number
        if self.point_of(number) is None:
            raise ValueError(f"trial is {number}: there is no such trial; the study has {self.next_number}")
        self.annotations[number] = (*self.annotations.get(number, ()), annotation)

    def forget(self, number: int, when: float | None = None) -> Trial:
        trial = super().forget(number, when)
        self.forgotten[number] = trial.x
        return trial

    def hand_on(self, number: int, entry: StoredEntry) -> None:
        """Note that a pending trial is handed out again, by this entry. The values of its curve so far stay."""
        self.grants[number] = entry
        curve = self._trials[number].curve
        self._inherited[number] = curve[-1].step if curve else 0

    # Replay

    def replay(self, entry: StoredEntry) -> None:
        """Repeat in memory what a stored entry records."""
        try:
            self._replay(entry, entry.content)
        except StudyError:
            raise
        except Exception as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else error
            raise StudyError(
                f"entry {entry.seq} of the log ({entry.kind}) cannot be replayed, so it was changed by hand, or "
                f"written by another version of gpmi: {reason}"
            ) from error

    def _replay(self, entry: StoredEntry, content: Mapping[str, Any]) -> None:
        """Repeat an entry with the checks of the call that wrote it: a checksum does not make its content sensible."""
        when = _checked_time(entry.time)
        self.platform = content.get("platform", self.platform)
        if entry.kind == "created":
            return
        if entry.kind == "budget":
            self.budget = checks.whole("budget", content["budget"], 1)
            return
        number = checks.whole("number", content["number"], 0)
        match entry.kind:
            case "asked":
                origin = checks.one_of("origin", content["origin"], get_args(Origin))
                fields = {"asked": when, "fixed": self._fixed(content), **_predictions(content)}
                self._add_numbered(entry, number, content["x"], cast(Origin, origin), **fields)
                self.grants[number] = entry
            case "leased":
                self.hand_on(self.pending_number(number), entry)
            case "moved":
                point = self.space.canonical(point_from_json(content["x"]))
                self.move(number, point, self.space.encode(point), when)
            case "noted":
                self.annotate(Annotation.from_json(content, when))
            case "reported":
                self._replay_report(entry, number, content)
            case "told" | "stopped" | "failed" | "rejected":
                outcome = outcome_from_json(entry.kind, content)
                if entry.kind == "stopped" and self.space.curve_fidelity is None:
                    raise ValueError("the space has no steps at which a trial could be stopped")
                if not content.get("late"):  # a failure that came after another outcome changes nothing
                    self._replay_outcome(entry, number, outcome, content)
            case "forgotten":
                self.forget(self.pending_number(number), when)
            case "corrected":
                changed = stored_fields(content)
                self.goals.check(Outcome("told", **changed), None)
                outcome = Outcome("told", **details_of(correctable(self, number))).corrected(**changed)
                self.check(outcome, number)
                correct(self, number, outcome, when)
            case "confirmed":
                self.confirm(confirmable(self, number).number, when)
            case "retracted":
                retract(self, retractable(self, number).number, when)
            case _:
                raise ValueError(f"this gpmi does not know the kind {checks.shown(entry.kind)}")

    def _replay_report(self, entry: StoredEntry, number: int, content: Mapping[str, Any]) -> None:
        """Repeat a value of a curve, and the stop that was decided with it."""
        value = {name: content[name] for name in ("y", "outputs") if name in content}
        outcome, step = outcome_from_json("told", value), checked_step(self, number, content["step"])
        self.goals.check(outcome, None)
        if content.get("late"):  # it came after the trial had ended, or from a worker that had lost it
            return
        number = self.pending_number(number)
        assert self.fidelity is not None
        if step == self.last_step(number) or not is_next_step(self[number], step, outcome):
            raise ValueError(f"step is {step}, which is not a next step of trial {number} before its target")
        self.report(number, step, outcome, entry.time)
        if "stopped" in content:
            self.settle(number, Outcome.stop(content["stopped"]), entry.time)

    def _replay_outcome(self, entry: StoredEntry, number: int, outcome: Outcome, content: Mapping[str, Any]) -> None:
        if "x" in content:  # nobody had asked for it
            self._add_numbered(entry, number, content["x"], "user")
        self.check(outcome)
        number, revision = self.open_number(number, outcome), self.revision
        self.settle(number, outcome, entry.time)
        if outcome.status == "told" and revision == self.revision:
            self.note(number, **_predictions(content))
        self.doubt(self._doubts(content))

    def _doubts(self, content: Mapping[str, Any]) -> dict[int, dict[str, str]]:
        """Return what was decided with a value about values that do not fit, by trial and output."""
        doubts = {int(number): texts for number, texts in content.get("doubts", {}).items()}
        for number, texts in doubts.items():
            if not is_doubts(texts) or not texts.keys() <= confirmable(self, number).values.keys():
                raise TypeError(f"doubts has {checks.shown(texts)}; give a text for outputs of trial {number}")
        return doubts

    def _add_numbered(self, entry: StoredEntry, number: int, x: Any, origin: Origin, **fields: Any) -> None:
        """Add a trial with the number of its entry, which is unused. Each trial has an entry, so numbers are small."""
        if self.point_of(number) is not None or number >= max(entry.seq, 1):
            raise ValueError(f"number is {number}; the next trial has the number {self.next_number}")
        self._add_stored(x, origin, number=number, when=entry.time, **fields)

    def _fixed(self, content: Mapping[str, Any]) -> FrozenPoint | None:
        """Return the fixed coordinates of an ask as a trial has them."""
        fixed = fixed_in(content)
        part = None if not fixed else self.space.with_fixed(fixed)
        return FrozenPoint(part.fixed_values()) if part is not None and part.fixed_coordinates else None


def fixed_in(content: Mapping[str, Any]) -> dict[Any, Any] | None:
    """Return the fixed coordinates of a stored ask, by name or number."""
    return dict(content["fixed"]) if "fixed" in content else None


def _predictions(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored predictions. A number under any other name is a note of the policy."""
    stored = content["said"]
    predictions = {name: _prediction(name, value) for name, value in stored.items() if name in PREDICTIONS}
    notes = {
        name: value for name, value in stored.items() if name not in predictions and isinstance(value, int | float)
    }
    return {**predictions, "policy_notes": FrozenPoint(notes)} if notes else predictions


def _prediction(name: str, value: Any) -> float | bool:
    """Return a prediction. It may be infinite: a value without noise has infinite information."""
    if name in FLAGS:
        return checks.flag(name, value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} is {checks.shown(value)}; give a number")
    return float(value)


def _checked_time(time: float) -> float:
    """Refuse a time that has no date."""
    if not 0.0 <= time < LATEST:
        raise ValueError(f"time is {time!r}; give seconds since 1970")
    return time
