"""The argument `bounds` of a run, by output: what each of its values can be at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpmi._support import checks
from gpmi._support.refusals import RefusedValue
from gpmi.trials.goal_kinds import AtLeast, AtMost, Goal, Match, Max, Min
from gpmi.trials.goals import Goals
from gpmi.trials.outputs import Y
from gpmi.trials.value_bounds import FORM, ValueBounds


def checked_bounds(given: Any, goals: Goals) -> dict[str, ValueBounds]:
    """Return the argument `bounds` of a run, validated, by output: it is a pair, or a dict in a run with goals."""
    if given is None:
        return {}
    if not goals.named:
        if isinstance(given, Mapping):
            raise TypeError(f"bounds is {checks.shown(given)}, by output, but the run has no goals; {FORM}")
        return {Y: ValueBounds.of("bounds", given)}
    if not isinstance(given, Mapping):
        name = next(iter(goals))
        raise TypeError(
            f"bounds is {checks.shown(given)}, but the run has goals; give bounds by output, {{{name!r}: (0, 100)}}"
        )
    checked = {goals.checked_name(name): ValueBounds.of(f"bounds[{name!r}]", pair) for name, pair in given.items()}
    for name, bounds in checked.items():
        for value in _stated(goals[name]):
            if not bounds.contains(value):
                sentence = f"bounds[{name!r}] is {bounds}, but its goal is {goals[name]}"
                sentence += ", which no value can meet or miss; correct one of them"
                low, high = bounds.to_json()
                raise RefusedValue(sentence, "goal-outside-bounds", name=name, low=low, high=high)
    return {name: checked[name] for name in goals if name in checked}


def _stated(goal: Goal) -> list[float]:
    """Return the values that a goal names, which must be possible ones."""
    match goal:
        case Match(target=value) | AtLeast(value=value) | AtMost(value=value):
            return [value]
        case Max(at_least=float(value)) | Min(at_most=float(value)):
            return [value]
    return []
