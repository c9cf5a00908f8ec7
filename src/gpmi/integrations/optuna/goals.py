"""The goals of an Optuna study: what its values and constraints are in a run, and back.

The values of a study with several objectives, and its constraints, are outputs with a goal each (`StudyGoals`). The
value of a study with one objective is y, and its constraints have no names in the run (`StudyValue`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from gpmi._support import checks
from gpmi.trials import AtMost, Goal, Goals, Match, Max, Min, NamedGoals, Outcome, Outputs, Trial, ValueGoal

Numbers = Mapping[str, float]  # outputs by name, or constraints of Optuna by name: feasible where they are <= 0
Reference = tuple[float | None, ...]  # the worst acceptable value of each objective; None where none was stated


@dataclass(frozen=True)
class StudyGoals:
    """The goals of a study: its objectives in the order of its values, and its constraints."""

    goals: Goals
    limits: tuple[tuple[str, str], ...]  # a constraint of Optuna, and the output that has its limit

    @classmethod
    def of(
        cls,
        directions: Sequence[StudyDirection],
        constraints: Iterable[str],
        parameters: Iterable[str],
        names: Sequence[str] | None = None,
        reference: Reference | None = None,
    ) -> StudyGoals:
        """Return an objective for each direction and a limit of 0 for each constraint.

        The objectives have the names that the study gives them, or else "0", "1", ..., and the constraints their own.
        A name that is already taken, such as that of a parameter, gets a prefix.
        """
        taken, given = set(parameters), dict[str, Goal]()
        worst = reference or (None,) * len(directions)
        for i, (direction, limit) in enumerate(zip(directions, worst, strict=True)):
            name = _free(str(i) if names is None else str(names[i]), "objective", {*taken, *given})
            given[name] = Max(limit) if direction == StudyDirection.MAXIMIZE else Min(limit)
        limits = dict[str, str]()
        for constraint in constraints:
            limits[constraint] = name = _free(constraint, "constraint", {*taken, *given})
            given[name] = AtMost(0.0)
        return cls(NamedGoals.of(given), tuple(limits.items()))

    @property
    def constraints(self) -> tuple[str, ...]:
        """The names of the constraints in Optuna."""
        return tuple(constraint for constraint, _ in self.limits)

    # From Optuna

    @staticmethod
    def constraints_in(trials: Iterable[FrozenTrial]) -> tuple[str, ...]:
        """Return the names of the constraints of the last completed trial that has any, and finite ones only."""
        return _last_constraints(trials, _are_finite)

    def measured(self, constraints: Numbers) -> Numbers:
        """Return the constraints that count: all that were measured with a value."""
        return constraints

    def outcome(self, values: Sequence[float], constraints: Numbers) -> Outcome:
        """Return the values and constraints of a trial of Optuna as an outcome."""
        return Outcome("told", outputs=Outputs(self.outputs(values, constraints)))

    def report(self, values: Sequence[float]) -> Any:
        """Return the values of a trial at a step."""
        return self.outputs(values, {})

    def row(
        self,
        values: Sequence[float],
        constraints: Numbers,
        carried: Mapping[str, float],
        columns: Mapping[str, str],
    ) -> dict[str, Any]:
        """Return the values and constraints of a trial of Optuna as cells of a table, whose columns are by output.

        `carried` are the outputs that it was exported with.
        """
        outputs = {**carried, **self.outputs(values, constraints)}
        return {columns[name]: value for name, value in outputs.items()}

    def is_outdated(self, carried: Numbers, finished: bool) -> bool:
        """Whether a trial exported with these outputs was evaluated since, or lacked them without goals."""
        return not carried or (finished and values_of(self.goals, carried) is None)

    def rank(self, values: Sequence[float], number: int) -> float:
        """Return a number that is smaller for better trials; with several objectives the trials keep their order."""
        return -float(number)

    def shown(self, values: Sequence[float] | None) -> str:
        """Return the values of a trial as a message names them."""
        return f"values are {values}"

    def outputs(self, values: Sequence[float], constraints: Numbers) -> dict[str, float]:
        """Return the outputs that a trial of Optuna has measured; a constraint may be missing."""
        outputs = dict[str, float]()
        for (name, goal), value in zip(self.goals.objectives.items(), values, strict=True):
            if isinstance(goal, Match):
                raise ValueError(f"its {name} is not known, only that it is {value} away from {goal.target}")
            outputs[name] = float(value)
        for constraint, name in self.limits:
            if constraint in constraints:
                limit = self.goals.limits[name]
                outputs[name] = limit.value + limit.sign * float(constraints[constraint])
        return outputs

    # To Optuna

    def described(self) -> list[dict[str, Any]] | None:
        """Return what a study carries to say these goals; None if its directions do."""
        return self.goals.to_json()

    def result(self, trial: Trial) -> dict[str, Any]:
        """Return the state of a told trial, its values and its constraints, as Optuna has them."""
        values, constraints = values_of(self.goals, trial.outputs), constraints_of(self.goals, trial.outputs)
        state = TrialState.RUNNING if values is None else TrialState.COMPLETE
        return {"state": state, "values": values, "constraints": constraints}


@dataclass(frozen=True)
class StudyValue(StudyGoals):
    """The goal of a study with one objective. Its constraints come with every value, in the order of their names."""

    @classmethod
    def of(
        cls,
        directions: Sequence[StudyDirection],
        constraints: Iterable[str],
        parameters: Iterable[str],
        names: Sequence[str] | None = None,
        reference: Reference | None = None,
    ) -> StudyGoals:
        """Return the goal of the value. The names of a study do not matter."""
        (direction,) = directions
        goal = ValueGoal.to("max" if direction == StudyDirection.MAXIMIZE else "min")
        return cls(goal, tuple((name, name) for name in constraints))

    @staticmethod
    def constraints_in(trials: Iterable[FrozenTrial]) -> tuple[str, ...]:
        """Return the names of the constraints of the last completed trial that has any."""
        return _last_constraints(trials, bool)

    def measured(self, constraints: Numbers) -> Numbers:
        """Return the constraints that count: those that come with every value, nan where they are missing."""
        return {name: constraints.get(name, math.nan) for name in self.constraints}

    def outcome(self, values: Sequence[float], constraints: Numbers) -> Outcome:
        """Return the value and the constraints of a trial of Optuna as an outcome."""
        return Outcome("told", values[0], constraints=tuple(constraints.values()))

    def report(self, values: Sequence[float]) -> Any:
        """Return the value of a trial at a step."""
        return values[0]

    def row(
        self,
        values: Sequence[float],
        constraints: Numbers,
        carried: Mapping[str, float],
        columns: Mapping[str, str],
    ) -> dict[str, Any]:
        """Return the value and the constraints of a trial of Optuna as cells of a table."""
        return {"y": values[0], "constraints": list(constraints.values()) or None}

    def is_outdated(self, carried: Numbers, finished: bool) -> bool:
        """Whether a trial exported with its value was evaluated since: never."""
        return False

    def rank(self, values: Sequence[float], number: int) -> float:
        """Return a number that is smaller for better trials."""
        (goal,) = self.goals.objectives.values()
        return -float(goal.oriented(np.asarray(values[0])))

    def shown(self, values: Sequence[float] | None) -> str:
        """Return the value of a trial as a message names it."""
        return f"value is {values and values[0]}"

    def described(self) -> list[dict[str, Any]] | None:
        """Return nothing: the direction of a study says its goal."""
        return None

    def result(self, trial: Trial) -> dict[str, Any]:
        """Return the state of a told trial, its value and its constraints, as Optuna has them."""
        constraints = {str(i): value for i, value in enumerate(trial.constraints)}
        return {"state": TrialState.COMPLETE, "values": [trial.y], "constraints": constraints}


def kind_of(directions: Sequence[StudyDirection]) -> type[StudyGoals]:
    """Return the kind of goals of a study with these directions."""
    return StudyValue if len(directions) == 1 else StudyGoals


def run_goals(goals: Goals) -> StudyGoals:
    """Return the goals of a run for a study whose constraints have the names of the outputs."""
    kind = StudyGoals if goals.named else StudyValue
    return kind(goals, tuple((name, name) for name in goals.limits))


def directions_of(goals: Goals) -> list[StudyDirection]:
    """Return the directions of a study with these objectives; the distance from a target is minimised."""
    return [
        StudyDirection.MAXIMIZE if goal.larger_is_better else StudyDirection.MINIMIZE
        for goal in goals.objectives.values()
    ]


def values_of(goals: Goals, outputs: Numbers) -> list[float] | None:
    """Return the values of a trial of Optuna with these outputs; None if an objective is not measured yet."""
    objectives = goals.objectives
    if not outputs.keys() >= objectives.keys():
        return None
    return [
        abs(outputs[name] - goal.target) if isinstance(goal, Match) else outputs[name]
        for name, goal in objectives.items()
    ]


def constraints_of(goals: Goals, outputs: Numbers) -> dict[str, float]:
    """Return the constraints of a trial of Optuna with these outputs: feasible where they are <= 0."""
    measured = ((name, limit) for name, limit in goals.limits.items() if name in outputs)
    return {name: limit.sign * (outputs[name] - limit.value) for name, limit in measured}


def checked_reference(given: Any) -> Reference | None:
    """Return the reference point that a user gives, validated."""
    if given is None:
        return None
    remedy = "give the worst value that you would accept of each objective, in their order, or None where it is open"
    shape = checks.shape(given)
    if shape is None or len(shape) != 1:
        raise TypeError(f"reference_point is {checks.shown(given)}; {remedy}")
    if len(given) < 2:
        raise ValueError(f"reference_point is {checks.shown(given)}, for fewer than two objectives; {remedy}")
    reference = tuple(
        None if worst is None else checks.number(f"reference_point[{i}]", worst, remedy)
        for i, worst in enumerate(given)
    )
    if any(worst is not None and abs(worst) > checks.LARGEST for worst in reference):
        raise ValueError(
            f"reference_point is {checks.shown(given)}; give values below {checks.LARGEST:g}, in other units"
        )
    return reference


def _are_finite(constraints: Numbers) -> bool:
    """Whether there are constraints, all of them finite."""
    return bool(constraints) and all(abs(value) <= checks.LARGEST for value in constraints.values())


def _last_constraints(trials: Iterable[FrozenTrial], count: Callable[[Numbers], bool]) -> tuple[str, ...]:
    """Return the names of the constraints of the last completed trial whose constraints count."""
    names: tuple[str, ...] = ()
    for trial in trials:
        if trial.state == TrialState.COMPLETE and count(trial.constraints):
            names = tuple(sorted(trial.constraints))
    return names


def _free(name: str, prefix: str, taken: set[str]) -> str:
    """Return the name, with the prefix as often as it takes to differ from all that are taken."""
    while name in taken or not name.strip():
        name = f"{prefix} {name}".strip()
    return name
