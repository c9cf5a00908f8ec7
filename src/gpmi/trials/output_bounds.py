"""The argument `bounds` of a run, by output: what each of its values can be at all."""

from __future__ import annotations

from typing import Any

from gpmi._support.refusals import RefusedValue
from gpmi.trials.by_output import by_output
from gpmi.trials.given_bounds import FORM, given_bounds
from gpmi.trials.goal_kinds import AtLeast, AtMost, Goal, Match, Max, Min
from gpmi.trials.goals import Goals
from gpmi.trials.value_bounds import ValueBounds


def checked_bounds(given: Any, goals: Goals) -> dict[str, ValueBounds]:
    """Return the argument `bounds` of a run, validated, by output: it is a pair, or a dict in a run with goals."""
    checked = by_output("bounds", given, goals, given_bounds, form=FORM, example="(0, 100)")
    for name, bounds in checked.items():
        for value in _stated(goals[name]):
            if not bounds.contains(value):
                sentence = f"bounds[{name!r}] is {bounds}, but its goal is {goals[name]}"
                sentence += ", which no value can meet or miss; correct one of them"
                low, high = bounds.to_json()
                raise RefusedValue(sentence, "goal-outside-bounds", name=name, low=low, high=high)
    return checked


def _stated(goal: Goal) -> list[float]:
    """Return the values that a goal names, which must be possible ones."""
    match goal:
        case Match(target=value) | AtLeast(value=value) | AtMost(value=value):
            return [value]
        case Max(at_least=float(value)) | Min(at_most=float(value)):
            return [value]
    return []
