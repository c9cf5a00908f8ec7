"""The log of a run: every trial, its outcome, and everything that happened, in order. It knows no model.

`Log` keeps a run in memory. `gpmi.storage.study_log.StudyLog` is the same log with a database behind it. An Optimizer
writes through `deliver`, `deliver_all` and `change`, and does not know which of the two it has.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import takewhile
from threading import RLock
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from gpmi._support.interrupts import uninterrupted
from gpmi._support.types import Array, FrozenPoint, GrowingObservations, Mask, Observations, Point
from gpmi.space import FidelityColumn
from gpmi.trials.curves import InSteps
from gpmi.trials.doubts import counted, first_doubts
from gpmi.trials.entries import Entry, EntryKind, Reported
from gpmi.trials.exactness import Exactness
from gpmi.trials.feasibility import Outcomes
from gpmi.trials.goals import Goals
from gpmi.trials.levels import AtLevels
from gpmi.trials.lookup import find_trial
from gpmi.trials.outcomes import Outcome, details_of
from gpmi.trials.output_rows import observed_of
from gpmi.trials.trial import ENDED, PREDICTIONS, Origin, Report, Trial, value_of
from gpmi.trials.value_goal import MAXIMISE

TrialOrPoint: TypeAlias = Point | Trial | int  # a trial, given as itself or by its number, or a point
Settle: TypeAlias = Callable[[TrialOrPoint, Outcome], Trial]  # how an Optimizer records an outcome
Reporter: TypeAlias = Callable[[Trial | int, int, Outcome], Trial]  # how an Optimizer records a value of a curve
# The trial at a point that can take an outcome, or else the point.
FindOpen: TypeAlias = Callable[[TrialOrPoint, Outcome], TrialOrPoint]


def exactness_of(fidelity: FidelityColumn | None) -> Exactness:
    """Return how exactly trials are measured in a space with this fidelity."""
    if fidelity is None:
        return Exactness()
    return InSteps(fidelity) if fidelity.fidelity.has_steps else AtLevels(fidelity)


class Log:
    """The trials of a run and everything that happened to them, in order.

    A number is never used twice, even after its point was forgotten. A trial counts if it is pending, told or failed. A
    rejected or retracted trial stays in the log, and no model sees it.
    """

    def __init__(
        self, budget: int | None = None, goals: Goals = MAXIMISE, fidelity: FidelityColumn | None = None
    ) -> None:
        self.budget = budget  # how many evaluations there will be in all
        self.goals = goals  # of the outputs
        self.fidelity = fidelity  # of the space; None if every measurement is as exact as it can be
        self.exactness = exactness_of(fidelity)
        self.revision = 0  # rises when a value changes or vanishes: what was derived from the values is then void
        self.late = 0  # rises when an output came late, even if it is only watched
        self.lock = RLock()  # of the log and of everything derived from it
        self._clear()

    def _clear(self) -> None:
        """Drop all trials."""
        self._trials: dict[int, Trial] = {}
        self._rows: dict[int, Array] = {}  # of all trials
        self._entries: list[Entry] = []
        self.suggested: dict[int, Point] = {}  # what was suggested for trials that were moved
        self._left: dict[int, list[bytes]] = {}  # the coordinates of the points from which they were moved
        self._next_number = 0
        self._outcomes = 0  # how many there have been, reports included
        self._derive()

    def _derive(self) -> None:
        """Compute everything that follows from the trials. O(n)."""
        self.revision += 1
        # The numbers of the trials by status, each in the order in which they got that status.
        self._pending: dict[int, None] = {}
        self._told: list[int] = []
        self._awaiting: list[int] = []  # told other outputs, but not the one of the single objective
        self._stopped: list[int] = []
        self._failed: list[int] = []
        self._rejected: list[int] = []
        self._counted: dict[int, Array] = {}  # the rows of the trials that count
        self._observed = GrowingObservations()
        self._observed_numbers: list[int] = []  # the trial of each of these
        self._chosen: set[int] = set()  # the trials that count and that the policy chose
        self._pending_at: dict[bytes, list[int]] = {}  # the pending trials by their coordinates
        self._places: Counter[bytes] = Counter()  # how many trials count at each point
        self.set_aside = first_doubts(
            self._trials.values()
        )  # the trial whose value of an output no model knows, by output
        vars(self).pop("told_before_asking", None)
        for trial in self._trials.values():
            self._list(trial)
        ended = [trial for trial in self._trials.values() if trial.status not in ("pending", "retracted")]
        changes: list[tuple[int, Trial, int | None]] = [(trial.order or 0, trial, None) for trial in ended]
        for trial in self._trials.values():
            if trial.status not in ("retracted", "rejected"):
                changes += [(report.order, trial, i) for i, report in enumerate(trial.curve)]
        for _, trial, place in sorted(changes, key=lambda change: (change[0], change[2] is None)):
            if place is None:
                self._list_outcome(trial)
            else:
                self._list_report(trial, place)

    def _list(self, trial: Trial) -> None:
        """Add a trial to the lists that do not depend on the order of the outcomes."""
        if trial.status in ("rejected", "retracted"):
            return
        row = self._rows[trial.number]
        self._counted[trial.number] = row
        self._places[row.tobytes()] += 1
        if trial.origin == "policy":
            self._chosen.add(trial.number)
        if trial.status == "pending":
            self._pending[trial.number] = None
            self._pending_at.setdefault(row.tobytes(), []).append(trial.number)

    def _list_outcome(self, trial: Trial) -> None:
        """Append a trial to the list of its kind of outcome."""
        if trial.status == "failed":
            self._failed.append(trial.number)
        elif trial.status == "stopped":
            self._stopped.append(trial.number)
        elif trial.status == "rejected":
            self._rejected.append(trial.number)
        elif any(name not in counted(trial, self.set_aside) for name in self.goals.required):
            self._awaiting.append(trial.number)
        else:
            self._told.append(trial.number)
            if trial.y is not None:
                self._observed.append(self._rows[trial.number], trial.y, trial.noise_var, trial.repeats)
                self._observed_numbers.append(trial.number)
            if trial.origin == "user":
                vars(self).pop("told_before_asking", None)

    def _list_report(self, trial: Trial, place: int) -> None:
        """Append a value of a curve to the observations, if it is one of the few that enter the model."""
        report = trial.curve[place]
        if not self.enters(trial, place):
            return
        for name in self.goals.required:
            if name in report.values:
                row = self.exactness.at_step(self._rows[trial.number], report.step)
                self._observed.append(row, report.values[name], 0.0, 1)
                self._observed_numbers.append(trial.number)

    def enters(self, trial: Trial, place: int) -> bool:
        """Whether a value of a curve enters the model."""
        return self.exactness.enters(trial, self._rows[trial.number], place)

    def last_step(self, trial: Trial | int) -> int:
        """The step at which a trial ends: the target, unless the user fixed another one."""
        return self.exactness.last_step(self._rows.get(trial.number if isinstance(trial, Trial) else int(trial)))

    # Reading

    def __getitem__(self, number: int) -> Trial:
        return self._trials[number]

    def get(self, number: int) -> Trial | None:
        """Return the trial with this number, if there is one."""
        return self._trials.get(number)

    def __len__(self) -> int:
        """The number of trials that count."""
        return len(self._counted)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every trial, including pending, rejected and retracted ones, in the order in which they appeared."""
        return tuple(self._trials.values())

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Everything that happened, in order."""
        return tuple(self._entries)

    @property
    def next_number(self) -> int:
        """The number of the next trial."""
        return self._next_number

    @property
    def evaluated(self) -> int:
        """How many outcomes count in the budget: values, stops and failures. O(n)."""
        return sum(trial.status in ENDED for trial in self._trials.values())

    @property
    def horizon(self) -> int | None:
        """The total number of outcomes; None without a budget. Overridden for studies, which add imported values."""
        return self.budget

    @property
    def pending(self) -> list[int]:
        """The numbers of the trials without an outcome, in the order in which they were asked."""
        return list(self._pending)

    @property
    def told(self) -> Sequence[int]:
        """The numbers of the trials with a value, in the order of the values.

        With goals, it is the value of the single objective, or any output if there are several objectives.
        """
        return self._told

    @property
    def awaiting(self) -> Sequence[int]:
        """The numbers of the trials that were told other outputs, but not yet the one of the single objective."""
        return self._awaiting

    @property
    def unobserved(self) -> list[int]:
        """The numbers of the trials whose y is still to come: those that are pending, then those that await it."""
        return [*self._pending, *self._awaiting]

    @property
    def unmeasured(self) -> list[str]:
        """The objectives without any value. O(n)."""
        measured = {name for trial in self._trials.values() if trial.status == "told" for name in trial.values}
        return [name for name in self.goals.objectives if name not in measured]

    def observed_output(self, name: str, *, all_values: bool = False) -> tuple[list[int], Observations]:
        """Return the trials with a value of this output, in the order of their outcomes, and these values. O(n).

        A value that is set aside is among them only with `all_values`.
        """
        aside, trials = None if all_values else self.set_aside.get(name), self._trials.items()
        rows = (row for number, trial in trials for row in self.exactness.values_of(name, trial, self._rows[number]))
        return observed_of(row for row in rows if row.number != aside or row.order != self[row.number].order)

    @property
    def observed_numbers(self) -> Sequence[int]:
        """The trial behind each of the `observed` values. Without a fidelity these are the `told` ones with a y."""
        return self._observed_numbers

    @property
    def reached(self) -> Sequence[int]:
        """The numbers of the `told` trials at the target of the fidelity: all of them if there is none."""
        return self.exactness.reached(self._told, self._rows)

    @property
    def stopped(self) -> Sequence[int]:
        """The numbers of the trials that were stopped on the way to the target, in the order of their stops."""
        return self._stopped

    @property
    def failed(self) -> Sequence[int]:
        """The numbers of the failed trials, in the order of their failures."""
        return self._failed

    @property
    def rejected(self) -> Sequence[int]:
        """The numbers of the rejected trials, in the order of their rejections."""
        return self._rejected

    def told_since(self, number: int) -> int:
        """How many values were told after the outcome of this trial."""
        order = self._trials[number].order
        assert order is not None
        return len(self._told) - bisect_left(self._told, order, key=lambda told: self._trials[told].order or 0)

    @property
    def rows(self) -> Mapping[int, Array]:
        """The coordinates (d,) of each trial that counts, by number."""
        return MappingProxyType(self._counted)

    def row(self, number: int) -> Array:
        """The coordinates (d,) of any trial."""
        return self._rows[number]

    @property
    def places(self) -> Mapping[bytes, int]:
        """How many trials count at each point, by the bytes of its coordinates."""
        return self._places

    @property
    def asked_places(self) -> Mapping[bytes, int]:
        """`places`, and the points from which trials were moved: a design does not ask for them again."""
        left = {place: 1 for number, places in self._left.items() if number in self._trials for place in places}
        return {**left, **self._places} if left else self._places

    @property
    def observed(self) -> Observations:
        """The values with their coordinates and noise, in order. O(1)."""
        return self._observed.all

    @property
    def outcomes(self) -> Outcomes | None:
        """All values and failures with their constraints; None without any failure or constraint. O(n)."""
        named = self.goals.limits
        if not self._failed and not (self._told and (named or self.count_of_constraints())):
            return None
        told, failed = [self._trials[number] for number in self._told], set(self._failed)
        ended = sorted([*self._told, *self._failed], key=lambda number: self._trials[number].order or 0)
        x = np.array([self._rows[number] for number in ended])
        is_failed = np.array([number in failed for number in ended], dtype=bool)
        if named:
            measured = [[counted(trial, self.set_aside).get(name, np.nan) for trial in told] for name in named]
            excess = [
                goal.excess(np.array(values_of_limit))
                for goal, values_of_limit in zip(named.values(), measured, strict=True)
            ]
            rows = [(goal, *self.observed_output(name)) for name, goal in named.items()]
            limits = tuple(replace(observed, y=goal.excess(observed.y)) for goal, _, observed in rows)
            counts = tuple(np.searchsorted(self._orders(of), self._orders(self._told), "right") for _, of, _ in rows)
            return Outcomes(x, is_failed, np.array(excess).T.reshape(len(told), len(named)), limits, counts)
        values = np.array([trial.constraints for trial in told]).reshape(len(told), -1 if told else 0)
        return Outcomes(x, is_failed, values)

    def _orders(self, numbers: Sequence[int]) -> list[int]:
        return [self._trials[number].order or 0 for number in numbers]

    def failed_lately(self, count: int) -> tuple[int, int]:
        """Of the policy's last `count` trials with an outcome: how many failed, and how many there are. O(n)."""
        if not self._failed:
            return 0, 0
        ended = [trial for trial in self._trials.values() if trial.status in ("told", "failed")]
        last = sorted((t for t in ended if t.origin == "policy"), key=lambda trial: trial.order or 0)[-count:]
        return sum(trial.status == "failed" for trial in last), len(last)

    def count_of_constraints(self, excluding: int | None = None) -> int | None:
        """How many constraints come with each value, not counting trial `excluding`; None before the first value."""
        told = next((number for number in self._told if number != excluding), None)
        return None if told is None else len(self._trials[told].constraints)

    def chosen(self, numbers: Iterable[int]) -> Mask:
        """Which of these trials, all of which count, the policy chose. (k,)"""
        return np.fromiter(map(self._chosen.__contains__, numbers), dtype=bool)

    @property
    def unchosen(self) -> int:
        """How many trials that count were not chosen by the policy."""
        return len(self._counted) - len(self._chosen)

    @cached_property
    def told_before_asking(self) -> int:
        """How many values were told before the first point was asked. O(1) for each, once."""
        return sum(all(name in trial.values for name in self.goals.required) for trial in self.told_first())

    def told_first(self) -> Iterator[Trial]:
        """Yield the trials that were told before the first point was asked."""
        first = takewhile(self.is_imported, self._trials.values())
        return (trial for trial in first if trial.status == "told")

    def is_imported(self, trial: Trial) -> bool:
        """Whether a trial was told without being asked."""
        return trial.origin == "user" and trial.number not in self.suggested

    def find_pending(self, row: Array, rounding: Array) -> int | None:
        """Return the first pending trial at these coordinates, or else the only one within `rounding` (d,) of them."""
        exact = self._pending_at.get(row.tobytes())
        if exact:
            return exact[0]
        return find_trial(list(self._pending), self._rows, row, rounding)

    def find_open(self, row: Array, rounding: Array, outcome: Outcome) -> int | None:
        """Return the trial at these coordinates that can take the outcome: pending, or told without its outputs."""
        number = self.find_pending(row, rounding)
        if number is not None or not outcome.outputs:
            return number
        lacking = [number for number in self._trials if self.lacks(number, outcome)]
        return find_trial(lacking, self._rows, row, rounding)

    def pending_number(self, trial: Trial | int) -> int:
        """Return the number of a pending trial; raise a ValueError if it is not pending in this log.

        A trial that was stopped may go on, so it counts as pending here.
        """
        number = trial.number if isinstance(trial, Trial) else int(trial)
        if number not in self._pending and number not in self._stopped:
            others = f"give one of {self.pending[:10]}" if self._pending else "none is; correct replaces a value"
            raise ValueError(f"x is trial {number}, which is not pending: {self.state_of(number)}; {others}")
        return number

    def open_number(self, trial: Trial | int, outcome: Outcome) -> int:
        """Return the number of a trial that can take this outcome: pending, or told without the outputs in it."""
        number = trial.number if isinstance(trial, Trial) else int(trial)
        told = self._trials.get(number)
        if not outcome.outputs or told is None or told.status != "told":
            return self.pending_number(trial)
        if not self.lacks(number, outcome):
            measured = ", ".join(name for name in outcome.outputs if name in told.outputs)
            raise ValueError(f"x is trial {number}, which has its {measured} already; correct replaces a value")
        return number

    def lacks(self, number: int, outcome: Outcome) -> bool:
        """Whether a trial was told some outputs, and none of those in the outcome."""
        trial = self._trials[number]
        return trial.status == "told" and bool(outcome.outputs) and trial.outputs.keys().isdisjoint(outcome.outputs)

    def check(self, outcome: Outcome, excluding: int | None = None) -> None:
        """Raise unless a value fits those before: the same number of constraints, or outputs that have goals.

        `excluding` is a trial whose value it replaces.
        """
        if outcome.status == "told":
            self.goals.check(outcome, self.count_of_constraints(excluding))

    def state_of(self, number: int) -> str:
        """Say what became of the trial with this number."""
        trial = self._trials.get(number)
        return "there is no such trial" if trial is None else f"it is {trial.status}"

    # Writing, as an Optimizer does it. In memory a change needs no transaction and no delivery.

    def deliver(self, target: TrialOrPoint, outcome: Outcome, settle: Settle) -> Trial:
        """Record the outcome of a trial, or of a new trial at a point, by settle(target, outcome)."""
        return settle(target, outcome)

    def deliver_all(self, observations: Sequence[tuple[Point, Outcome]], settle: Settle, find: FindOpen) -> list[Trial]:
        """Record outcomes at points, each of the trial that find(point, outcome) returns or of a new one."""
        return [settle(find(x, outcome), outcome) for x, outcome in observations]

    def deliver_report(
        self, target: Trial | int, step: int, outcome: Outcome, record: Reporter, settle: Settle
    ) -> Reported:
        """Record a value of a curve, by record(trial, step, outcome); `settle` is for outcomes that wait."""
        trial = record(target, step, outcome)
        return Reported(trial, trial.status == "pending")

    def change(self, act: Callable[[], Trial]) -> Trial:
        """Record what act() does to one trial, as a whole or not at all."""
        with uninterrupted():
            return act()

    # Entries

    def add(
        self,
        x: Point,
        row: Array,
        origin: Origin,
        *,
        number: int | None = None,
        when: float | None = None,
        **fields: Any,
    ) -> Trial:
        """Add a pending trial at x with the coordinates `row`; `fields` are further fields of `Trial`.

        Its number is the next one, unless an unused one is given; `when` is now by default.
        """
        now = self._now() if when is None else when
        asked = {"asked": None if origin == "user" else now}
        number = self._next_number if number is None else number
        trial = Trial(number, x, None, "pending", origin, **{**asked, **fields})
        self._trials[trial.number], self._rows[trial.number] = trial, row
        self._list(trial)
        self._next_number = max(self._next_number, number + 1)
        self._entries.append(Entry("added", trial.number, trial.asked or now))
        return trial

    def settle(self, number: int, outcome: Outcome, ended: float | None = None) -> Trial:
        """Record the outcome of a pending trial; `ended` is now by default.

        A trial that was told some of its outputs gets others. They count from the place of its first outcome, so that
        the model is a function of the trials. O(n)
        """
        ended = self._now() if ended is None else ended
        before = self._trials[number]
        if before.status == "stopped":
            before = self._resume(number)
        if before.status == "told":
            merged = Outcome("told", **details_of(before)).with_outputs(outcome)
            trial = self._ended(replace(before, **{**vars(merged), **self.goals.derived(merged)}))
            self._trials[number] = trial
            self._entries.append(Entry("told", number, ended, outcome))
            self.late += 1
            if any(self.goals[name] is not None for name in outcome.outputs):
                self._derive()  # but no suggestion follows from an output that is only watched
            return trial
        trial = replace(before, **{**vars(outcome), **self.goals.derived(outcome)}, order=self._outcomes, ended=ended)
        trial = self._ended(trial)
        self._outcomes += 1
        self._trials[number] = trial
        self._entries.append(Entry(outcome.status, number, ended, outcome))
        self._no_longer_pending(number)
        if outcome.status == "rejected":
            self._no_longer_counted(number)
        self._list_outcome(trial)
        if outcome.status == "rejected" and trial.curve:
            self._derive()
        return trial

    def report(self, number: int, step: int, outcome: Outcome, when: float | None = None) -> Trial:
        """Record a value of a pending trial on the way to the target. A trial that was stopped goes on."""
        before = self._trials[number]
        if before.status == "stopped":
            before = self._resume(number)
        report = Report(step, value_of(outcome), self._outcomes)
        self._outcomes += 1
        self._trials[number] = trial = replace(before, curve=(*before.curve, report))
        self._entries.append(Entry("reported", number, self._now() if when is None else when, outcome, step))
        self._list_report(trial, len(trial.curve) - 1)
        return trial

    def _resume(self, number: int) -> Trial:
        """Make a stopped trial pending again. O(n)."""
        self._trials[number] = trial = replace(self._trials[number], status="pending", order=None, ended=None, why=None)
        self._derive()
        return trial

    def _ended(self, trial: Trial) -> Trial:
        return self.exactness.ended(trial, self._rows[trial.number])

    def replace(
        self, trial: Trial, kind: EntryKind, when: float | None = None, outcome: Outcome | None = None
    ) -> Trial:
        """Put a trial in place of the one with its number, and derive everything again. O(n)"""
        self._trials[trial.number] = trial
        self._entries.append(Entry(kind, trial.number, self._now() if when is None else when, outcome))
        self._derive()
        return trial

    def note(self, number: int, **fields: Any) -> Trial:
        """Fill further fields of a trial."""
        trial = self._trials[number] = replace(self._trials[number], **fields)
        return trial

    def forget(self, number: int, when: float | None = None) -> Trial:
        """Drop a pending trial, as if it had never been asked, and return it."""
        if number not in self._pending:
            raise ValueError(f"trial {number} was stopped, so it cannot be withdrawn; retract takes its curve back")
        self._no_longer_pending(number)
        self._no_longer_counted(number)
        trial = self._trials.pop(number)
        del self._rows[number]
        if trial.curve:
            self._derive()
        vars(self).pop("told_before_asking", None)
        self._entries.append(Entry("forgotten", number, self._now() if when is None else when))
        return trial

    def move(self, number: int, x: Point, row: Array, when: float | None = None) -> Trial:
        """Set the point of a pending trial to one that the user chose. Predictions for the other are void. O(n)"""
        if number not in self._pending or self._trials[number].curve:
            state = "it has values on the way" if number in self._pending else self.state_of(number)
            remedy = "retract or reject it, and tell the value at the point that was used"
            raise ValueError(f"trial is {number}, which cannot be moved: {state}; {remedy}")
        old = self._trials[number]
        self.suggested.setdefault(number, old.x)
        self._left.setdefault(number, []).append(self._rows[number].tobytes())
        chosen: dict[str, Any] = {"origin": "user", "fixed": None, **dict.fromkeys(PREDICTIONS)}
        self._rows[number] = row
        return self.replace(replace(old, x=x, **chosen), "moved", when)

    def confirm(self, number: int, when: float | None = None) -> Trial:
        """Record that the values of a trial are right: none is doubtful, now or later. O(n) if one was."""
        self.note_doubts({number: dict.fromkeys(self._trials[number].values, "")})
        self._entries.append(Entry("confirmed", number, self._now() if when is None else when))
        return self._trials[number]

    def doubt(self, doubts: Mapping[int, Mapping[str, str]]) -> None:
        """Record with the last outcome which values do not fit the others: all doubts of each of these trials."""
        if doubts:
            self._entries[-1] = self._entries[-1]._replace(doubts=doubts)
            self.note_doubts(doubts)

    def note_doubts(self, doubts: Mapping[int, Mapping[str, str]]) -> None:
        """Fill the doubts of trials. O(n) if another value is set aside now."""
        for number, texts in doubts.items():
            self._trials[number] = replace(self._trials[number], doubts=FrozenPoint(texts) if texts else None)
        if first_doubts(self._trials.values()) != self.set_aside:
            self._derive()

    def _now(self) -> float:
        return time.time()

    def _no_longer_pending(self, number: int) -> None:
        del self._pending[number]
        at = self._rows[number].tobytes()
        self._pending_at[at].remove(number)
        if not self._pending_at[at]:
            del self._pending_at[at]

    def _no_longer_counted(self, number: int) -> None:
        self._chosen.discard(number)
        place = self._counted.pop(number).tobytes()
        self._places[place] -= 1
        if not self._places[place]:
            del self._places[place]

    # Copies

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, lock=RLock())
