"""The values and constraints of an Optuna study as named outputs, each with its goal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optuna.study import StudyDirection

from gpmi._support import checks
from gpmi._support.checks import LARGEST
from gpmi.trials.goals import AtMost, Goal, Goals, Match, Max, Min

Reference = tuple[float | None, ...]  # the worst acceptable value of each objective; None where none was stated


@dataclass(frozen=True)
class StudyGoals:
    """The goals of a study: its objectives in the order of its values, and its constraints."""

    goals: Goals
    limits: tuple[tuple[str, str], ...]  # a constraint of Optuna, and the output that has its limit

    @staticmethod
    def of(
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
        return StudyGoals(Goals.of(given), tuple(limits.items()))

    @staticmethod
    def named(goals: Goals) -> StudyGoals:
        """Return these goals for a study whose constraints have the names of the outputs."""
        return StudyGoals(goals, tuple((name, name) for name in goals.limits))

    def outputs(self, values: Sequence[float], constraints: Mapping[str, float]) -> dict[str, float]:
        """Return the outputs that a trial of Optuna has measured; a constraint may be missing."""
        found = dict[str, float]()
        for (name, goal), value in zip(self.goals.objectives.items(), values, strict=True):
            if isinstance(goal, Match):
                raise ValueError(f"its {name} is not known, only that it is {value} away from {goal.target}")
            found[name] = float(value)
        for constraint, name in self.limits:
            if constraint in constraints:
                limit = self.goals.limits[name]
                found[name] = limit.value + limit.sign * float(constraints[constraint])
        return found


def directions_of(goals: Goals) -> list[StudyDirection]:
    """Return the directions of a study with these objectives; the distance from a target is minimised."""
    return [
        StudyDirection.MAXIMIZE if isinstance(goal, Max) else StudyDirection.MINIMIZE
        for goal in goals.objectives.values()
    ]


def values_of(goals: Goals, outputs: Mapping[str, float]) -> list[float] | None:
    """Return the values of a trial of Optuna with these outputs; None if an objective is not measured yet."""
    if any(name not in outputs for name in goals.objectives):
        return None
    return [
        abs(outputs[name] - goal.target) if isinstance(goal, Match) else outputs[name]
        for name, goal in goals.objectives.items()
    ]


def constraints_of(goals: Goals, outputs: Mapping[str, float]) -> dict[str, float]:
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
    found = tuple(
        None if one is None else checks.number(f"reference_point[{i}]", one, remedy) for i, one in enumerate(given)
    )
    if any(one is not None and abs(one) > LARGEST for one in found):
        raise ValueError(f"reference_point is {checks.shown(given)}; give values below {LARGEST:g}, in other units")
    return found


def _free(name: str, prefix: str, taken: set[str]) -> str:
    """Return the name, with the prefix as often as it takes to differ from all that are taken."""
    while name in taken or not name.strip():
        name = f"{prefix} {name}".strip()
    return name
