"""The models of the outputs of a run with goals: one Gaussian process for each output, with its own rows and prior."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.posterior import Posterior
from gpmi.model.model import Model, ModelSetting
from gpmi.model.orientation import Orientation
from gpmi.trials import Log
from gpmi.trials.goals import AtMost, Goal, Goals, Match, Min

EXACT = 1e-3  # prior sd: a told value that is more certain counts as exact. Our choice


class Prediction(NamedTuple):
    """What the model says about an output at a point: its median and half the width of the central 68 %."""

    mean: float
    sd: float


@dataclass(frozen=True, eq=False)
class OutputModel:
    """The model of one output after its values."""

    name: str
    goal: Goal
    model: Model  # oriented: larger is better, or as measured if the goal has no direction
    numbers: tuple[int, ...]  # of the trials behind its rows

    @property
    def orientation(self) -> Orientation:
        """How y is turned into the model's y."""
        return orientation_of(self.goal)

    def predict(self, z: Array) -> list[Prediction]:
        """Return the predictions at z (m, d), in the units of the output."""
        mu, var = self.model.posterior(z)
        both = (self.model.in_units_of_y(float(m), float(v) ** 0.5) for m, v in zip(mu, var, strict=True))
        return [Prediction(self.orientation.value(median), sd) for median, sd in both]


def orientation_of(goal: Goal) -> Orientation:
    """Return how an output is oriented: larger is better, or as measured if the goal has no direction."""
    return Orientation("min" if isinstance(goal, Min | AtMost) else "max")


class OutputModels:
    """The models of all outputs, extended value by value. The log decides what they are; the cache only saves time."""

    def __init__(self, goals: Goals, setting: Callable[[str], ModelSetting]) -> None:
        self._goals = goals
        self._setting = setting  # of the model of each output
        self._settings: dict[str, ModelSetting] = {}
        self._last: dict[str, OutputModel] = {}

    def of(self, name: str, log: Log) -> OutputModel | None:
        """Return the model of an output after all its values in the log; None before the first.

        The values must continue those of the last call. After a correction, make a new object.
        """
        numbers, observed = log.observed_output(name)
        if not numbers:
            return None
        last = self._last.get(name)
        if last is not None and last.numbers == tuple(numbers):
            return last
        goal = self._goals[name]
        setting = self._settings.setdefault(name, self._setting(name)).with_preloaded(log.told_before_asking)
        oriented = replace(observed, y=orientation_of(goal).values(observed.y))
        model = Model.after(setting, oriented, None if last is None else last.model)
        self._last[name] = found = OutputModel(name, goal, model, tuple(numbers))
        return found

    def all(self, log: Log) -> Mapping[str, OutputModel]:
        """Return the models of all outputs with at least one value."""
        found = ((name, self.of(name, log)) for name in self._goals)
        return {name: model for name, model in found if model is not None}


def is_exact(posterior: Posterior, x: Array) -> bool:
    """Whether f is known at every point of x (n, d), up to EXACT of its prior sd."""
    _, var = posterior(x)
    return bool(np.all(var <= EXACT**2 * posterior.kernel.diagonal(x)))


def targets_of(goals: Goals) -> tuple[float | None, ...]:
    """Return the target of each objective that has one; None for the others."""
    return tuple(goal.target if isinstance(goal, Match) else None for goal in goals.objectives.values())


def objective_values(goal: Goal, y: Array) -> Array:
    """Return the objective at values y of the model, which are oriented already: only a target changes them."""
    return -np.abs(y - goal.target) if isinstance(goal, Match) else y
