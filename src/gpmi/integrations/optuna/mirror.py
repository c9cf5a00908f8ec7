"""An Optuna study as an Optimizer: what its trials say, and the points of those that are running."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from gpmi._support.checks import LARGEST
from gpmi._support.logger import logger
from gpmi.integrations.optuna.domain import Domain
from gpmi.integrations.optuna.published import published, seconds_since
from gpmi.optimizer import Optimizer
from gpmi.trials import Outcome, Trial

SAID = ("origin", "mu", "sd", "phi", "gamma_hat", "explored", "charge", "zeta")  # what a policy said of its choice
# A running trial is taken for dead when it has lasted so many times as long as the longest that has completed, and at
# least a minute. Our choices: it then pushes no point away any more, and may still come back with its value.
LONGEST, LEAST = 10.0, 60.0


class Mirror:
    """An Optimizer that knows what the trials of a study say, extended by what is new."""

    def __init__(self, domain: Domain, optimizer: Optimizer, limits: tuple[str, ...]) -> None:
        self.domain = domain
        self.optimizer = optimizer
        self.limits = limits  # the names of the constraints that come with the values
        self._pending: dict[int, tuple[int, bytes]] = {}  # by Optuna's number: ours, and the coordinates
        self._ended: set[int] = set()
        self._values: list[float] = []  # those of completed trials, sorted
        self._longest = 0.0  # seconds that a completed trial has taken

    def lacks(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """The finished trials that it does not know yet, in the order in which they finished."""
        new = [trial for trial in trials if trial.state.is_finished() and trial.number not in self._ended]
        return sorted(new, key=lambda trial: (_time(trial.datetime_complete) or 0.0, trial.number))

    def follow(self, trials: Sequence[FrozenTrial], stale_after: float | None, but: int) -> None:
        """Learn what the study says since it was last read; of running trials, all `but` one."""
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

    def ask(self, number: int, given: Mapping[str, Any]) -> Trial:
        """The point of trial `number`, where the values of some parameters may be given; pending from now on.

        It is the same one if it was asked before: the storage may have refused to take it then.
        """
        if number in self._pending:
            return next(trial for trial in self.optimizer.pending if trial.number == self._pending[number][0])
        fixed, point = self.domain.given(given), self.domain.point(given)
        if point is not None:
            return self._add_pending(number, Trial(number, point, None, "pending", "user"))
        self.optimizer.ask(fixed=fixed or None)
        trial = self.optimizer.pending[-1]
        assert isinstance(trial.x, Mapping)
        evaluated = self.domain.point(self.domain.params(trial.x))  # a large integer is rounded
        self._pending[number] = trial.number, self._row(trial.x if evaluated is None else evaluated)
        return trial

    def forget(self, number: int) -> None:
        """Give back the point of a trial that was asked for it."""
        if number in self._pending:
            self.optimizer.forget(self._pending.pop(number)[0])

    # How it is done

    def _point(self, trial: FrozenTrial) -> dict[str, Any] | None:
        """Its parameters; those that it has not asked for yet as they were published."""
        said = published(trial.system_attrs) or {"x": {}}
        return self.domain.point({**self.domain.external(said["x"]), **trial.params})

    def _row(self, point: Any) -> bytes:
        return self.domain.space.encode(point).tobytes()

    def _follow_running(self, trial: FrozenTrial, stale_after: float | None) -> None:
        limit = max(LEAST, LONGEST * self._longest) if self._longest else math.inf
        stale = seconds_since(trial.datetime_start) > (limit if stale_after is None else stale_after)
        if trial.number in self._pending:
            if stale:
                self.optimizer.forget(self._pending.pop(trial.number)[0])
        elif not stale and (point := self._point(trial)) is not None:
            self._add_pending(trial.number, Trial(trial.number, point, None, "pending", **_said(trial)))

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
        return Trial(trial.number, point, order=order, ended=ended, **vars(outcome), **_said(trial))

    def _outcome(self, trial: FrozenTrial) -> Outcome | None:
        """What a finished trial teaches; None if that cannot be said."""
        if trial.state == TrialState.FAIL:
            return Outcome("failed", why="failed")
        value = trial.value  # of a pruned trial the last one that it reported; None if it reported none
        if value is None or not abs(value) <= LARGEST:
            return Outcome("failed", why=f"{trial.state.name.lower()}, its value is {value}")
        if trial.state == TrialState.PRUNED:
            value = self._not_better(value)
        else:
            insort(self._values, value)
            self._longest = max(self._longest, (trial.duration.total_seconds() if trial.duration else 0.0))
        return self._constrained(trial, value)

    def _not_better(self, value: float) -> float:
        """The value of a pruned trial: between the median and the worst of those that had completed when it ended.

        It was pruned because it was bad. What it had reported by then may be off by any amount.
        """
        if not self._values:
            return value
        middle, low, high = median(self._values), self._values[0], self._values[-1]
        return min(max(value, low), middle) if self.optimizer.goal == "max" else max(min(value, high), middle)

    def _constrained(self, trial: FrozenTrial, y: float) -> Outcome | None:
        found = trial.constraints
        values = tuple(found.get(name, math.nan) for name in self.limits)
        if all(abs(value) <= LARGEST for value in values):
            return Outcome("told", y, constraints=values)
        if any(value > LARGEST for value in values):
            return Outcome("failed", why="a constraint is infinite")
        if trial.state == TrialState.PRUNED:
            return Outcome("failed", why="pruned before its constraints were known")
        logger.warning("trial %d is left out: it has no finite constraints %s", trial.number, list(self.limits))
        return None


def limits_of(trials: Iterable[FrozenTrial]) -> tuple[str, ...]:
    """The names of the constraints of the last completed trial that has any."""
    names: tuple[str, ...] = ()
    for trial in trials:
        if trial.state == TrialState.COMPLETE and (found := trial.constraints):
            names = tuple(sorted(found))
    return names


def _said(trial: FrozenTrial) -> dict[str, Any]:
    """What the policy said of its choice when it was made."""
    said = published(trial.system_attrs) or {}
    asked = _time(trial.datetime_start) if "origin" in said else None
    return {"origin": "user", "asked": asked, **{name: said[name] for name in SAID if name in said}}


def _time(moment: Any) -> float | None:
    return None if moment is None else float(moment.timestamp())
