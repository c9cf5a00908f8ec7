"""One open study, read and written by any number of people at the same time.

A session has two connections. One reads and never waits for a suggestion; the other one writes. All methods block, so
they are called from threads.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from gpmi._support.text import rounded
from gpmi._support.types import Point
from gpmi.run.study import Study, study
from gpmi.serve.evaluations import Evaluations, evaluations_of
from gpmi.serve.model_worker import ChosenPoint, ModelWorker
from gpmi.serve.output_fields import Results, outputs_of
from gpmi.serve.parameter_fields import ParameterField, fields_of
from gpmi.space import Space
from gpmi.storage import Annotation, StoredEntry, StudyError
from gpmi.trials import Goals, Trial
from gpmi.trials.goal_summary import missing_outputs

DATABASE_TIMEOUT = 10.0  # retry timeout for an unreachable database, in seconds, while a person waits; our choice
OPEN = ("pending", "stopped")  # the statuses of trials that can take a result: one that was stopped may go on
WRITE_BACKS = 4  # attempts to bring a saved change into the file: 0.15 s at most; our choice
MAX_BATCH = 100  # points in one request; our choice


class Conflict(Exception):
    """The trial already has a different outcome. Nothing was changed."""

    def __init__(self, trial: Trial, reason: str | None = None) -> None:
        super().__init__(f"Trial {trial.number} {reason or describe_outcome(trial)}")
        self.trial = trial


class NoSuchTrial(Exception):
    """There is no trial with this number."""


@dataclass(frozen=True)
class StudySnapshot:
    """What the log of a study holds at one moment."""

    seq: int  # the number of its last entry
    trials: tuple[Trial, ...]
    best: Trial | None
    budget: int | None
    programs: frozenset[int]  # the numbers of pending trials that programs evaluate
    outputs: Results
    missing: Mapping[int, tuple[str, ...]]  # the objectives and limits that trials with results wait for, by number
    annotations: Mapping[int, tuple[Annotation, ...]] = field(default_factory=dict)  # by the number of the trial
    suggested: Mapping[int, Point] = field(default_factory=dict)  # of trials that were done otherwise

    @property
    def done(self) -> int:
        """The number of experiments that count as done. Those that were skipped do not."""
        return sum(trial.status in ("told", "stopped", "failed") for trial in self.trials)

    @property
    def unplanned(self) -> int | None:
        """How many of the planned experiments are neither done nor waiting; None without a plan."""
        return None if self.budget is None else max(0, self.budget - self.done - len(self.pending))

    @property
    def incomplete(self) -> tuple[Trial, ...]:
        """The trials that were told some of their outputs and lack others, also those that nobody waits for."""
        return tuple(trial for trial in self.trials if self.outputs.lacking(trial))

    @property
    def pending(self) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.trials if trial.status == "pending")

    @property
    def waiting(self) -> tuple[Trial, ...]:
        """The pending trials that people evaluate."""
        return tuple(trial for trial in self.pending if trial.number not in self.programs)

    @property
    def running(self) -> tuple[Trial, ...]:
        """The pending trials that programs evaluate."""
        return tuple(trial for trial in self.pending if trial.number in self.programs)


class Session:
    """A study that is open for reading. The connection for writing is opened when it is first needed."""

    def __init__(self, address: str, name: str, title: str, slug: str) -> None:
        self.address, self.name, self.title, self.slug = address, name, title, slug
        self.reader = study(address, name, patience=DATABASE_TIMEOUT)
        self.closed = False
        self._opening = threading.Lock()
        self._telling = threading.RLock()  # between reading which values a trial has and adding others
        self._writer: Study | None = None
        self.model_worker = ModelWorker(address, name)

    @property
    def space(self) -> Space:
        return self.reader.space

    @property
    def goal(self) -> Literal["max", "min"]:
        return self.reader.goal

    @property
    def goals(self) -> Goals:
        """The goals of the outputs."""
        return self.reader.optimizer.goals

    @cached_property
    def outputs(self) -> Results:
        """What an experiment measures."""
        optimizer = self.reader.optimizer
        return outputs_of(self.goals, optimizer.units, optimizer.bounds)

    @cached_property
    def evaluations(self) -> Evaluations:
        """How far experiments go."""
        return evaluations_of(self.space)

    @cached_property
    def fields(self) -> tuple[ParameterField, ...]:
        return fields_of(self.space)

    @property
    def writer(self) -> Study:
        with self._opening:
            if self._writer is None:
                self._writer = study(self.address, self.name, patience=DATABASE_TIMEOUT)
            return self._writer

    # Reading

    def seq(self) -> int:
        """Return the number of the last entry of the log. Costs a short query."""
        self.reader.refresh()
        return self.reader.seq

    def snapshot(self) -> StudySnapshot:
        """Return what the log holds now. O(n)."""
        optimizer = self.reader.refresh()
        seq = self.reader.seq
        trials = optimizer.trials
        programs = frozenset(number for number, lease in self.reader.leases().items() if lease.expires)
        missing = missing_outputs(trials, self.goals)
        beside = dict(optimizer.log.annotations), dict(optimizer.log.suggested)
        return StudySnapshot(seq, trials, optimizer.best, optimizer.budget, programs, self.outputs, missing, *beside)

    def annotations(self, number: int) -> tuple[Annotation, ...]:
        """Return the remarks about a trial."""
        return self.reader.annotations(number)

    def trial(self, number: int) -> Trial:
        """Return a trial by its number."""
        log = self.reader.refresh().log
        if number in log.forgotten:
            raise NoSuchTrial(f"Trial {number} was withdrawn, so it cannot take a result")
        if not 0 <= number < log.next_number:
            raise NoSuchTrial(f"There is no trial {number}; the study has {log.next_number} so far")
        return log.at(number)

    def entries(self, after: int) -> tuple[StoredEntry, ...]:
        """Return the entries of the log whose number is above `after`."""
        return self.reader.log(after)

    def recommend(self, fixed: Mapping[Any, Any] | None = None) -> Point | None:
        """Return the point to use; None before the first value."""
        if not any(map(self.outputs.is_measured, self.reader.trials)):
            return None
        if self.model_worker.is_large(self.reader):
            return self.model_worker.recommend(fixed)
        return self.reader.recommend(fixed=fixed or None)

    def front(self) -> list[Trial]:
        """Return the trials on the front of a study with goals."""
        numbers: list[int] = self.model_worker.read("front", self.reader)
        return [self.trial(number) for number in numbers]

    def choose(self, output: str, direction: str, where: Mapping[str, Any], confidence: float) -> ChosenPoint:
        """Return the best predicted point that meets conditions, in a study with goals."""
        chosen: ChosenPoint = self.model_worker.read("choose", self.reader, output, direction, dict(where), confidence)
        return chosen

    # Writing

    def ask(self, n: int = 1, fixed: Mapping[Any, Any] | None = None) -> list[Trial]:
        """Suggest the next points. Their leases never expire, because people take as long as they need."""
        if not 1 <= n <= MAX_BATCH:
            raise ValueError(f"{n} points were requested; ask for 1 to {MAX_BATCH}")
        if self.model_worker.is_large(self.reader):
            numbers = self.model_worker.ask(n, fixed)
            return [self.trial(number) for number in numbers]
        return self.writer.ask(n, fixed=fixed or None, lease=math.inf)

    def plan(self, x: Point) -> Trial:
        """Add a pending trial at a point: one with all coordinates fixed."""
        varied = [field for field in self.fields if field.varies and field.of(x) is not None]
        return self.ask(1, {field.key: field.of(x) for field in varied})[0]

    def move(self, number: int, x: Point) -> Trial:
        """Record that a pending trial is done at another point than suggested."""
        current = self.trial_or_withdrawn(number)
        if current.status != "pending":
            raise Conflict(current, self._withdrawn(number))
        try:
            return self.writer.move(number, x)
        except ValueError:
            current = self.trial_or_withdrawn(number)
            if current.status != "pending":  # somebody was faster
                raise Conflict(current, self._withdrawn(number)) from None
            raise

    def annotate(
        self, number: int, text: str = "", *, who: str | None = None, files: Sequence[str] = (), did: str | None = None
    ) -> Annotation:
        """Write a remark beside a trial."""
        return self.writer.annotate(number, text, who=who, files=files, did=did)

    def tell(
        self,
        number: int,
        y: float | Mapping[str, float],
        *,
        noise_var: float | Mapping[str, float] = 0.0,
        repeats: int = 1,
        constraints: Sequence[float] | None = None,
        again: bool = False,
    ) -> Trial:
        """Record the value of a trial, once. The same value again changes nothing; a different one is a `Conflict`.

        Outputs that the trial lacks are added to it. With `again`, a value for a trial that already has one, or was
        withdrawn, is one more observation at its point.
        """
        details: dict[str, Any] = {"noise_var": noise_var, "repeats": repeats, "constraints": constraints}
        self.check(y, details)
        with self._telling:
            trial = self.trial_or_withdrawn(number)
            if again and trial.status not in OPEN:
                return self.writer.tell(trial.x, y, **details)
            values = self._new_values(trial, y)
            if not values:
                return trial
            if isinstance(noise_var, Mapping):
                details["noise_var"] = {name: bar for name, bar in noise_var.items() if name in values}
            try:
                told = self.writer.tell(number, self.outputs.measurement(values), **details)
            except ValueError:  # somebody was faster, or the value cannot be used
                current = self.trial_or_withdrawn(number)
                if (current.status, current.values) == (trial.status, trial.values):
                    raise
                given: dict[str, Any] = {"noise_var": noise_var, "repeats": repeats, "constraints": constraints}
                return self.tell(number, y, **given, again=again)
        return self.outputs.completed(told, values) if told.number == number else told

    def _new_values(self, trial: Trial, y: float | Mapping[str, float]) -> dict[str, float]:
        """Return the values that a trial lacks, by output. Refuse other values than those that it has."""
        values = self.outputs.values(y)
        same = {name for name, value in values.items() if trial.values.get(name) == value}
        other = trial.values.keys() & values.keys() - same
        if trial.status not in (*OPEN, "told") or other:
            raise Conflict(trial, self._withdrawn(trial.number))
        return {name: value for name, value in values.items() if name not in same}

    def _withdrawn(self, number: int) -> str | None:
        return "was withdrawn" if number in self.reader.optimizer.log.forgotten else None

    def trial_or_withdrawn(self, number: int) -> Trial:
        """Return a trial by its number; for a withdrawn one, a retracted trial at its point."""
        x = self.reader.refresh().log.forgotten.get(number)
        return self.trial(number) if x is None else Trial(number, x, None, "retracted", "user")

    def check(self, y: float | Mapping[str, float], details: Mapping[str, Any]) -> None:
        """Refuse a value that cannot be recorded."""
        self.reader.optimizer.outcome_of(y, **details)

    def warnings(self, trial: Trial) -> list[str]:
        """Return what to check in a result that was saved: values outside their bounds, or far from the others."""
        warnings = [*(output.warning(trial) for output in self.outputs), trial.doubt]
        return [text for text in warnings if text is not None] if trial.status == "told" else []

    def observe(self, x: Point, y: float | Mapping[str, float], **details: Any) -> Trial:
        """Record a value at a point that was not suggested."""
        return self.writer.tell(x, y, **details)

    def report(
        self, number: int, step: int, y: float | Mapping[str, float]
    ) -> tuple[Literal["continue", "stop"], Trial]:
        """Record a value of a trial on the way to the target of its fidelity, once; return whether to go on.

        Another value of the same step, or a value of a trial that has ended, is a `Conflict`.
        """
        current = self.trial(number)
        for reported in current.curve:
            if reported.step == step:
                if reported.values != self.outputs.values(y):
                    raise Conflict(current, f"already has {self.outputs.stated(reported.values)} at step {step}")
                return ("continue" if current.status == "pending" else "stop"), current
        if current.status not in OPEN:
            raise Conflict(current)
        answer = self.writer.report(number, step, y)
        return answer, self.trial(number)

    def fail(self, number: int, why: str | None = None) -> Trial:
        """Record that a trial failed, and why."""
        current = self.trial(number)
        if current.status == "failed":
            return current
        if current.status != "pending":
            raise Conflict(current)
        return self.writer.fail(number, why)

    def correct(self, number: int, y: float | Mapping[str, float], **details: Any) -> Trial:
        """Replace the outcome of a trial that was told, failed or retracted. What y and the details leave out stays."""
        current, values = self.trial(number), self.outputs.values(y)
        same = bool(values) and all(current.values.get(name) == value for name, value in values.items())
        if current.status == "told" and same and not any(value is not None for value in details.values()):
            return current
        if current.status in (*OPEN, "rejected"):
            raise Conflict(current)
        return self.writer.correct(number, y, **details)

    def confirm(self, number: int) -> Trial:
        """Say that the value of a trial is right, although it does not fit the others."""
        current = self.trial(number)
        if current.status != "told":
            raise Conflict(current)
        return self.writer.confirm(number)

    def retract(self, number: int) -> Trial:
        """Retract the outcome of a trial. The trial stays in the log."""
        current = self.trial(number)
        if current.status in OPEN:
            raise Conflict(current)
        return current if current.status == "retracted" else self.writer.retract(number)

    def reject(self, number: int, why: str | None = None) -> Trial:
        """Record that a trial will not be evaluated, and why."""
        current = self.trial(number)
        if current.status == "rejected":
            return current
        if current.status != "pending":
            raise Conflict(current)
        return self.writer.reject(number, why)

    def forget(self, number: int) -> None:
        """Withdraw a pending trial, as if it had never been suggested."""
        current = self.trial(number)
        if current.status != "pending":
            raise Conflict(current)
        self.writer.forget(number)

    def write_back(self) -> None:
        """Bring everything that was saved into the database file itself, so that people can copy the file.

        Someone who reads an older moment delays it; reading takes milliseconds, so it is tried a few times.
        """
        for attempt in range(WRITE_BACKS):
            if attempt:
                time.sleep(0.01 * 2**attempt)
            if self.closed or self.reader.optimizer.log.write_back():
                return

    def is_stored(self, trial: Trial) -> bool:
        """Whether the outcome is in the database. If not, it is in the outbox, a file that is delivered later."""
        try:
            stored = self.trial(trial.number)
            return stored.status == trial.status and stored.outputs.items() >= trial.outputs.items()
        except (StudyError, NoSuchTrial):
            return False

    def close(self) -> None:
        self.closed = True
        self.model_worker.close()
        self.reader.close()
        if self._writer is not None:
            self._writer.close()


def describe_outcome(trial: Trial) -> str:
    """Return what happened to a trial, as the end of a sentence that begins with it."""
    match trial.status:
        case "told":
            if trial.outputs:
                return f"already has {' and '.join(f'{name} {rounded(y)}' for name, y in trial.outputs.items())}"
            return f"already has the value {trial.y!r}"
        case "failed":
            return f"has already failed{f': {trial.why}' if trial.why else ''}"
        case "stopped":
            at = f" at step {trial.curve[-1].step}" if trial.curve else ""
            return f"was stopped{at}{f': {trial.why}' if trial.why else ''}"
        case "rejected":
            return f"was skipped, so it will not be evaluated{f': {trial.why}' if trial.why else ''}"
        case "retracted":
            return "had a value that was retracted"
    return "is still waiting for its result"
