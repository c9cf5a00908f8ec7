"""The models of the outputs of a run with goals: one Gaussian process for each output, with its own rows and prior."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Observations
from gpmi.gp.posterior import Posterior
from gpmi.model.model import Model, ModelSetting
from gpmi.model.orientation import Orientation
from gpmi.trials import Log
from gpmi.trials.goal_kinds import AtMost, Goal, Match, Min
from gpmi.trials.goals import Goals

EXACT = 1e-3  # prior sd: a told value that is more certain counts as exact. Our choice


class Prediction(NamedTuple):
    """What the model says about an output at a point: its median and half the width of the central 68 %.

    If a part of these is outside the bounds of the output, it is the middle and half the width of the rest.
    """

    mean: float
    sd: float


@dataclass(frozen=True, eq=False)
class OutputModel:
    """The model of one output after its values."""

    name: str
    goal: Goal
    model: Model  # oriented: larger is better, or as measured if the goal has no direction
    observed: Observations  # its values, as measured
    numbers: tuple[int, ...]  # of the trials behind its rows

    @property
    def orientation(self) -> Orientation:
        """How y is turned into the model's y."""
        return orientation_of(self.goal)

    def predict(self, z: Array) -> list[Prediction]:
        """Return the predictions at z (m, d), in the units of the output."""
        mu, var = self.model.posterior(z)
        both = (self.model.stated(float(m), float(v) ** 0.5) for m, v in zip(mu, var, strict=True))
        return [Prediction(self.orientation.value(median), sd) for median, sd in both]


def orientation_of(goal: Goal) -> Orientation:
    """Return how an output is oriented: larger is better, or as measured if the goal has no direction."""
    return Orientation("min" if isinstance(goal, Min | AtMost) else "max")


class OutputModels:
    """The models of all outputs, extended value by value. The log decides what they are; the cache only saves time."""

    def __init__(self, goals: Goals, setting: Callable[[str], ModelSetting]) -> None:
        self._goals = goals
        self._setting = setting  # of the model of each output
        self._last: dict[str, _Cached] = {}

    def check_settings(self) -> None:
        """Make the settings of all outputs once, which refuses what is not allowed."""
        for name in self._goals:
            self._setting(name)

    def of(self, name: str, log: Log) -> OutputModel:
        """Return the model of an output after all its values in the log, of which there may be none.

        It extends the last one, unless a value in between was corrected, retracted or told late.
        """
        numbers, observed = log.observed_output(name)
        first, last = _told_before_asking(log, name), self._last.get(name)
        if last is None or last.first != first or not begins_with(observed, last.observed):
            last = _Cached(self._setting(name), first)
        oriented = replace(observed, y=orientation_of(self._goals[name]).values(observed.y))
        model = Model.after(last.setting.with_preloaded(first), oriented, last.model)
        self._last[name] = replace(last, observed=observed, model=model)
        return OutputModel(name, self._goals[name], model, observed, tuple(numbers))

    def surprises(self, name: str, log: Log) -> tuple[ModelSetting, list[int], list[float]]:
        """Return the trials behind the values of an output, and how far each value was from its prediction, in sd.

        Each is predicted from those before it, under the prior before the last one.
        """
        numbers, observed = log.observed_output(name)
        first, last, n = _told_before_asking(log, name), self._last.get(name), len(numbers)
        if last is None or last.first != first or not begins_with(observed.first(n - 1), last.observed):
            last = _Cached(self._setting(name), first)
        oriented = replace(observed, y=orientation_of(self._goals[name]).values(observed.y))
        before = Model.after(last.setting.with_preloaded(first), oriented.first(n - 1), last.model)
        self._last[name] = replace(last, observed=observed.first(n - 1), model=before)
        return last.setting, numbers, before.extended(oriented).posterior.ahead.surprise.tolist()

    def all(self, log: Log) -> Mapping[str, OutputModel]:
        """Return the models of all outputs with at least one value."""
        models = ((name, self.of(name, log)) for name in self._goals)
        return {name: output for name, output in models if output.numbers}

    def last(self) -> dict[str, Model | None]:
        """Return the models that were used last."""
        return {name: output.model for name, output in self._last.items()}

    def objectives(self, log: Log) -> Mapping[str, OutputModel]:
        """Return the models of all objectives; before the first value of an objective, its prior."""
        return {name: self.of(name, log) for name in self._goals.objectives}


@dataclass(frozen=True, eq=False)
class _Cached:
    """The last model of an output, and what it was made from."""

    setting: ModelSetting
    first: int  # values before the first suggestion
    observed: Observations = field(default_factory=lambda: Observations.of(np.empty((0, 0)), np.empty(0)))
    model: Model | None = None


def begins_with(observed: Observations, earlier: Observations) -> bool:
    """Whether the observations are the earlier ones and possibly more. O(n)."""
    n = len(earlier)
    if n > len(observed):
        return False
    pairs = ((getattr(observed, name)[:n], getattr(earlier, name)) for name in ("y", "noise_var", "repeats"))
    return n == 0 or (np.array_equal(observed.x[:n], earlier.x) and all(np.array_equal(a, b) for a, b in pairs))


def is_exact(posterior: Posterior, x: Array) -> bool:
    """Whether f is known at every point of x (n, d), up to EXACT of its prior sd."""
    _, var = posterior(x)
    return bool(np.all(var <= EXACT**2 * posterior.kernel.diagonal(x)))


def targets_of(goals: Goals) -> tuple[float | None, ...]:
    """Return the target of each objective that has one; None for the others."""
    return tuple(goal.target if isinstance(goal, Match) else None for goal in goals.objectives.values())


def signs_of(goals: Goals) -> list[float]:
    """Return the sign of each objective: its output is sign times the model's y."""
    return [-1.0 if orientation_of(goal).mirrors else 1.0 for goal in goals.objectives.values()]


def objective_values(goal: Goal, y: Array) -> Array:
    """Return the objective at values y of the model, which are oriented already: only a target changes them."""
    return -np.abs(y - goal.target) if isinstance(goal, Match) else y


def _told_before_asking(log: Log, name: str) -> int:
    """Return how many values of an output were told before the first point was asked."""
    return sum(name in trial.values for trial in log.told_first())
