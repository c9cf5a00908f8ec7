"""An Optimizer that follows the learning curves of an Optuna study, and judges the trial that asks.

Optuna's steps start at 0 and ours at 1, so step s of a study is step s + 1 here. Of a curve only those few values are
taken over that the model uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from gpmi.integrations.optuna.goals import StudyGoals
from gpmi.integrations.optuna.reports import Values, is_usable, reports_of
from gpmi.integrations.optuna.search_space import SearchSpace
from gpmi.optimizer import Optimizer
from gpmi.space import Fidelity
from gpmi.trials import Outcome, Report, Trial

# The trials in the model: when there are MOST, it starts again with the BEST completed ones and the LATEST of the rest.
# A trial has up to four values in the model, whose cost grows with their square. Our choices.
MOST, BEST, LATEST = 400, 100, 200


def target_of(step: int) -> int:
    """Return our step for a step of Optuna."""
    return step + 1


class CurveFollower:
    """An Optimizer kept up to date with the trials of a study and their curves."""

    def __init__(
        self,
        search_space: SearchSpace,
        optimizer: Optimizer,
        name: str,
        max_step: int,
        goals: StudyGoals,
    ) -> None:
        self.search_space = search_space
        self.max_step = max_step  # of Optuna
        self.goals = goals
        self._optimizer = optimizer
        self._name = name  # of the fidelity
        fidelity = optimizer.space.fidelity
        assert fidelity is not None
        self._fidelity: Fidelity = fidelity.fidelity
        self._ended: set[int] = set()  # finished trials that were looked at, taken over or not
        self._numbers: dict[int, int] = {}  # Optuna's number -> ours, of trials that were judged and run
        self._rows: dict[int, bytes] = {}  # Optuna's number -> the coordinates when they were judged
        self._reported: dict[int, int] = {}  # Optuna's number -> the last of our steps that the model has
        self._answers: dict[int, bool] = {}  # Optuna's number -> the last answer
        self._count = 0  # trials taken over
        self.has_reached = False  # whether a trial has reached the target

    @property
    def is_full(self) -> bool:
        """Whether the model has too many trials and should start again with some of them."""
        return self._count >= MOST

    def fits(self, search_space: SearchSpace, max_step: int, goals: StudyGoals) -> bool:
        """Whether a study still has this search space, last step and goals."""
        return self.search_space is search_space and self.max_step == max_step and self.goals == goals

    # Finished trials

    def lacks(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """Return the finished trials that were not looked at yet, in the order of their numbers."""
        return [trial for trial in trials if trial.state.is_finished() and trial.number not in self._ended]

    def follow(self, trials: Sequence[FrozenTrial]) -> None:
        """Take over the trials that have finished since."""
        new = self.lacks(trials)
        self._ended.update(trial.number for trial in new)
        batch, order = list[Trial](), 0
        for trial in self._selected(new):
            finished = self._finished(trial, order)
            order += 1 + (0 if finished is None else len(finished.curve))
            if finished is None or self._settles(trial, finished):
                continue
            batch.append(finished)
        if batch:
            self._optimizer.replay(batch)
            self._count += len(batch)
        for trial in new:
            for by_number in (self._numbers, self._rows, self._reported, self._answers):
                by_number.pop(trial.number, None)

    def _selected(self, new: list[FrozenTrial]) -> list[FrozenTrial]:
        """Return the trials to take over: all of them, or the best and the latest if there are too many."""
        if len(new) <= BEST + LATEST:
            return new
        early, late = new[:-LATEST], new[-LATEST:]
        completed = [trial for trial in early if self._value(trial) is not None]
        kept = {trial.number for trial in sorted(completed, key=self._rank)[:BEST]}
        return [trial for trial in early if trial.number in kept] + late

    def _rank(self, trial: FrozenTrial) -> float:
        """Return a number that is smaller for better trials."""
        return self.goals.rank(trial.values, trial.number)

    def _value(self, trial: FrozenTrial) -> Values | None:
        """Return the value at the target, if the trial reached it and all its constraints hold."""
        if trial.state != TrialState.COMPLETE or trial.values is None or not is_usable(tuple(trial.values)):
            return None
        return tuple(trial.values) if all(value <= 0.0 for value in trial.constraints.values()) else None

    def _finished(self, trial: FrozenTrial, order: int) -> Trial | None:
        """Return a finished trial as ours: with its value, or as stopped on the way; None if it teaches nothing."""
        point, value = self._point(trial), self._value(trial)
        entering = enumerate(self._entering(reports_of(trial), 0))
        curve = tuple(Report(step, self.goals.report(values), order + i) for i, (step, values) in entering)
        if point is None or (value is None and not curve):
            return None
        origin: Any = "user" if self._count == 0 else "design"  # the first of them were there before the first question
        outcome = Outcome("stopped") if value is None else self.goals.outcome(value, {})
        self.has_reached |= value is not None
        return Trial(trial.number, point, origin=origin, order=order + len(curve), curve=curve, **vars(outcome))

    def _settles(self, trial: FrozenTrial, finished: Trial) -> bool:
        """Whether the trial was judged while it ran, at the same point; then give it its outcome."""
        if trial.number not in self._numbers:
            return False
        number, row = self._numbers[trial.number], self._rows[trial.number]
        is_pending = any(pending.number == number for pending in self._optimizer.pending)
        if self._row(finished.x) != row:  # it got further parameters after it was judged
            if is_pending:
                self._optimizer.forget(number)
            return False
        for step, y, _ in finished.curve:
            if step > self._reported.get(trial.number, 0):
                self._optimizer.report(number, step, y)
        if finished.status == "told":
            outcome = Outcome("told", finished.y, outputs=finished.outputs).checked()
            self._optimizer.record(number, outcome)
        elif is_pending:
            self._optimizer.record(number, Outcome.stop("it ended before the last step"))
        return True

    # The trial that is judged

    def is_due(self, number: int, step: int) -> bool:
        """Whether a step of a trial says something new to the model: it is the first at or after a rung."""
        before, now = self._reported.get(number, 0), target_of(step)
        return now < target_of(self.max_step) and any(before < rung <= now for rung in self._fidelity.rungs)

    def answer(self, number: int) -> bool:
        """Return the last answer to a trial."""
        return self._answers.get(number, False)

    def begin(self, trial: FrozenTrial) -> bool:
        """Add a running trial to the model, if it is not there; return whether its parameters fit."""
        if trial.number in self._numbers:
            return True
        point = self._point(trial)
        if point is None:
            return False
        self._optimizer.replay([Trial(trial.number, point, None, "pending", "design")])
        self._numbers[trial.number] = self._optimizer.pending[-1].number
        self._rows[trial.number] = self._row(point)
        self._count += 1
        return True

    def judge(self, number: int, reports: Mapping[int, Values]) -> bool:
        """Return whether to prune a trial, by the values it has reported."""
        for step, values in self._entering(reports, self._reported.get(number, 0)):
            answer = self._optimizer.report(self._numbers[number], step, self.goals.report(values))
            self._reported[number], self._answers[number] = step, answer == "stop"
        return self.answer(number)

    # Internals

    def _entering(self, reports: Mapping[int, Values], before: int) -> list[tuple[int, Values]]:
        """Return the reports that enter the model, by our step: the first after each rung, and after `before`."""
        entering = []
        for step, values in reports.items():
            ours = target_of(step)
            crosses = any(before < rung <= ours for rung in self._fidelity.rungs)
            if crosses and ours < target_of(self.max_step) and is_usable(values):
                entering.append((ours, values))
                before = ours
        return entering

    def _point(self, trial: FrozenTrial) -> dict[str, Any] | None:
        point = self.search_space.point(trial.params)
        return None if point is None else {**point, self._name: self._fidelity.target}

    def _row(self, point: Any) -> bytes:
        return np.asarray(self._optimizer.space.encode(point)).tobytes()
