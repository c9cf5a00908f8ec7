"""An Optimizer that follows an Optuna study: finished trials as outcomes, running trials as pending points."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from gpmi._support import checks
from gpmi._support.logger import logger
from gpmi.integrations.optuna.coordination import published, seconds_since
from gpmi.integrations.optuna.goals import StudyGoals
from gpmi.integrations.optuna.reports import last_values
from gpmi.integrations.optuna.search_space import SearchSpace
from gpmi.optimizer import Optimizer
from gpmi.trials import Max, Outcome, Trial

# Of a trial whose point the policy chose:
PREDICTIONS = ("origin", "mu", "sd", "phi", "gamma_hat", "explored", "policy_notes")
# A running trial is presumed dead after LONGEST times the duration of the longest completed trial, and not before LEAST
# seconds. It then no longer repels other points, but may still deliver its value. Our choices.
LONGEST, LEAST = 10.0, 60.0


class Follower:
    """An Optimizer kept up to date with the trials of a study."""

    def __init__(self, search_space: SearchSpace, optimizer: Optimizer, goals: StudyGoals) -> None:
        self.search_space = search_space
        self.optimizer = optimizer
        self.goals = goals
        self._completed = [Completed(isinstance(goal, Max)) for goal in goals.goals.objectives.values()]
        self._pending: dict[int, tuple[int, bytes]] = {}  # Optuna's number -> our number and the coordinates
        self._ended: set[int] = set()
        self._longest = 0.0  # seconds, of the completed trials

    def fits(self, search_space: SearchSpace, goals: StudyGoals) -> bool:
        """Whether a study still has this search space and these goals."""
        return self.search_space is search_space and self.goals == goals

    def lacks(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """Return the finished trials not taken over yet, in the order in which they finished."""
        new = [trial for trial in trials if trial.state.is_finished() and trial.number not in self._ended]
        return sorted(new, key=lambda trial: (_time(trial.datetime_complete) or 0.0, trial.number))

    def follow(self, trials: Sequence[FrozenTrial], stale_after: float | None, but: int) -> None:
        """Take over everything new in the study; of the running trials, skip number `but`."""
        taken_over: list[Trial] = []
        for trial in self.lacks(trials):
            self._ended.add(trial.number)
            outcome, point = self._outcome(trial), self._point(trial)
            number, row = self._pending.pop(trial.number, (None, b""))
            if number is not None and outcome is not None and point is not None and self._row(point) == row:
                self._take_over(taken_over)
                self._settle(number, outcome)
                continue
            if number is not None:
                self.optimizer.forget(number)
            if outcome is not None and point is not None:
                taken_over.append(self._finished(trial, point, outcome, len(taken_over)))
        self._take_over(taken_over)
        for trial in trials:
            if trial.state == TrialState.RUNNING and trial.number != but:
                self._follow_running(trial, stale_after)

    def ask(self, number: int, values: Mapping[str, Any]) -> Trial:
        """Choose the point of trial `number`, with the parameters in `values` fixed, and mark it pending.

        Asking again returns the same point: the storage may have refused it the first time.
        """
        if number in self._pending:
            return next(trial for trial in self.optimizer.pending if trial.number == self._pending[number][0])
        fixed, point = self.search_space.fixed(values), self.search_space.point(values)
        if point is not None:
            return self._add_pending(number, Trial(number, point, None, "pending", "user"))
        self.optimizer.ask(fixed=fixed or None)
        trial = self.optimizer.pending[-1]
        assert isinstance(trial.x, Mapping)
        evaluated = self.search_space.point(self.search_space.params(trial.x))  # a large integer is rounded
        self._pending[number] = trial.number, self._row(trial.x if evaluated is None else evaluated)
        return trial

    def forget(self, number: int) -> None:
        """Withdraw the pending point of a trial."""
        if number in self._pending:
            self.optimizer.forget(self._pending.pop(number)[0])

    # Internals

    def _point(self, trial: FrozenTrial) -> dict[str, Any] | None:
        """Return the trial's point: its parameters, and the published values of those it has not asked for yet."""
        payload = published(trial.system_attrs) or {"x": {}}
        return self.search_space.point({**self.search_space.external(payload["x"]), **trial.params})

    def _row(self, point: Any) -> bytes:
        return self.search_space.space.encode(point).tobytes()

    def _follow_running(self, trial: FrozenTrial, stale_after: float | None) -> None:
        limit = max(LEAST, LONGEST * self._longest) if self._longest else math.inf
        stale = seconds_since(trial.datetime_start) > (limit if stale_after is None else stale_after)
        if trial.number in self._pending:
            if stale:
                self.optimizer.forget(self._pending.pop(trial.number)[0])
        elif not stale and (point := self._point(trial)) is not None:
            self._add_pending(trial.number, Trial(trial.number, point, None, "pending", **_predictions(trial)))

    def _add_pending(self, number: int, trial: Trial) -> Trial:
        self.optimizer.replay([trial])
        added = self.optimizer.pending[-1]
        self._pending[number] = added.number, self._row(added.x)
        return added

    def _settle(self, number: int, outcome: Outcome) -> None:
        self.optimizer.record(number, outcome.checked())

    def _take_over(self, trials: list[Trial]) -> None:
        if trials:
            self.optimizer.replay(trials)
            trials.clear()

    def _finished(self, trial: FrozenTrial, point: dict[str, Any], outcome: Outcome, order: int) -> Trial:
        ended = _time(trial.datetime_complete)
        return Trial(trial.number, point, order=order, ended=ended, **vars(outcome), **_predictions(trial))

    def _outcome(self, trial: FrozenTrial) -> Outcome | None:
        """Return what a finished trial teaches; None if it cannot be used."""
        if trial.state == TrialState.FAIL:
            return Outcome("failed", why="failed")
        values = trial.values  # for a pruned trial with one objective the last value it reported, if any
        if values is None and trial.state == TrialState.PRUNED:
            values = last_values(trial)
        if values is None or len(values) != len(self._completed) or not all(abs(y) <= checks.LARGEST for y in values):
            return Outcome("failed", why=f"{trial.state.name.lower()}, its {self.goals.shown(values)}")
        if trial.state == TrialState.PRUNED:
            values = [completed.not_better(y) for y, completed in zip(values, self._completed, strict=True)]
        else:
            for y, completed in zip(values, self._completed, strict=True):
                completed.add(y)
            self._longest = max(self._longest, (trial.duration.total_seconds() if trial.duration else 0.0))
        return self._measured(trial, values)

    def _measured(self, trial: FrozenTrial, values: Sequence[float]) -> Outcome | None:
        """Return the values of a trial with its constraints; None if it cannot be used."""
        measured = self.goals.measured(trial.constraints)
        is_whole = trial.state == TrialState.COMPLETE or all(name in measured for name in self.goals.constraints)
        if is_whole and all(abs(value) <= checks.LARGEST for value in measured.values()):
            return self.goals.outcome(values, measured)
        if any(value > checks.LARGEST for value in measured.values()):
            return Outcome("failed", why="a constraint is infinite")
        if trial.state == TrialState.PRUNED:
            return Outcome("failed", why="pruned before its constraints were known")
        logger.warning("trial %d is left out: it has no finite constraints %s", trial.number, sorted(measured))
        return None


class Completed:
    """The values of an objective in the completed trials."""

    def __init__(self, maximised: bool) -> None:
        self._maximised = maximised
        self._values: list[float] = []  # sorted

    def add(self, value: float) -> None:
        insort(self._values, value)

    def not_better(self, value: float) -> float:
        """Clip the value of a pruned trial to lie between the median and the worst completed value.

        It was pruned because it was bad. The value it reported may be off by any amount.
        """
        if not self._values:
            return value
        middle, low, high = median(self._values), self._values[0], self._values[-1]
        return min(max(value, low), middle) if self._maximised else max(min(value, high), middle)


def _predictions(trial: FrozenTrial) -> dict[str, Any]:
    """Return the predictions that were made for a trial when its point was chosen."""
    payload = published(trial.system_attrs) or {}
    asked = _time(trial.datetime_start) if "origin" in payload else None
    predictions = {name: payload[name] for name in PREDICTIONS if name in payload}
    # Earlier versions wrote the notes of a policy one by one.
    if notes := {name: payload[name] for name in ("charge", "zeta") if name in payload}:
        predictions["policy_notes"] = notes
    return {"origin": "user", "asked": asked, **predictions}


def _time(moment: Any) -> float | None:
    return None if moment is None else float(moment.timestamp())
