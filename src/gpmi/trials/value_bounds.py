"""Bounds of a value: what it can be at all, such as 0 to 100 for a yield in %.

The model is a Gaussian process g, which knows no bounds. What is stated about f is stated about f = clip(g): draws,
quantiles and bands are clipped where they leave the model (`Model.to_units_of_y`). Clipping is increasing, so quantiles
stay quantiles. Suggestions come from g and do not depend on bounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpmi._support import checks
from gpmi._support.refusals import RefusedValue
from gpmi._support.text import rounded
from gpmi._support.types import Array
from gpmi.trials.goals import AtLeast, AtMost, Goal, Goals, Match, Max, Min
from gpmi.trials.outputs import Y

_FORM = "give the smallest and the largest value that it can have, such as (0, 100), with None for a side that is open"


@dataclass(frozen=True)
class ValueBounds:
    """The smallest and the largest possible value; infinite where a side is open."""

    lo: float = -math.inf
    hi: float = math.inf

    @staticmethod
    def of(name: str, given: Any) -> ValueBounds:
        """Return the bounds that a user gives as a pair, validated."""
        if isinstance(given, ValueBounds):
            return given
        if isinstance(given, str | Mapping) or not hasattr(given, "__len__") or len(given) != 2:
            raise TypeError(f"{name} is {checks.shown(given)}; {_FORM}{_box_hint(given)}")
        lo, hi = (_side(name, given, side, open_) for side, open_ in zip(given, (-math.inf, math.inf), strict=True))
        if not lo < hi:
            sentence = f"{name} is {checks.shown(given)}, which has no room; {_FORM}"
            raise RefusedValue(sentence, "empty-bounds", name=name, low=lo, high=hi)
        if lo == -math.inf and hi == math.inf:
            raise ValueError(f"{name} is {checks.shown(given)}, open on both sides; give one side, or leave it out")
        return ValueBounds(lo, hi)

    @property
    def limited(self) -> bool:
        """Whether a side is not open."""
        return self.lo > -math.inf or self.hi < math.inf

    def clip(self, y: Array) -> Array:
        """Return the values, moved to the nearest bound where they are outside."""
        return np.clip(y, self.lo, self.hi) if self.limited else y

    def mirrored(self) -> ValueBounds:
        """Return the bounds of -y."""
        return ValueBounds(0.0 - self.hi, 0.0 - self.lo) if self.limited else self

    def warning(self, number: int, name: str, value: float) -> str:
        """Return what to know of a value of a trial outside these bounds."""
        remedy = "it counts as measured, and what is stated stays within them; correct the trial if it is a mistake"
        return f"{name} of trial {number} is {rounded(value)}, outside its bounds, {self}; {remedy}"

    def contains(self, y: float) -> bool:
        """Whether a value is within the bounds."""
        return self.lo <= y <= self.hi

    def to_json(self) -> list[float | None]:
        """Return the bounds as a study stores them: None for an open side."""
        return [None if math.isinf(side) else side for side in (self.lo, self.hi)]

    def __str__(self) -> str:
        if math.isinf(self.hi):
            return f"at least {rounded(self.lo)}"
        if math.isinf(self.lo):
            return f"at most {rounded(self.hi)}"
        return f"{rounded(self.lo)} to {rounded(self.hi)}"


OPEN = ValueBounds()


def checked_bounds(given: Any, goals: Goals) -> dict[str, ValueBounds]:
    """Return the argument `bounds` of a run, validated, by output: it is a pair, or a dict in a run with goals."""
    if given is None:
        return {}
    if not goals.named:
        if isinstance(given, Mapping):
            raise TypeError(f"bounds is {checks.shown(given)}, by output, but the run has no goals; {_FORM}")
        return {Y: ValueBounds.of("bounds", given)}
    if not isinstance(given, Mapping):
        name = next(iter(goals))
        raise TypeError(
            f"bounds is {checks.shown(given)}, but the run has goals; give bounds by output, {{{name!r}: (0, 100)}}"
        )
    made = {goals.checked_name(name): ValueBounds.of(f"bounds[{name!r}]", one) for name, one in given.items()}
    for name, bounds in made.items():
        for value in _stated(goals[name]):
            if not bounds.contains(value):
                sentence = f"bounds[{name!r}] is {bounds}, but its goal is {goals[name]}"
                sentence += ", which no value can meet or miss; correct one of them"
                low, high = bounds.to_json()
                raise RefusedValue(sentence, "goal-outside-bounds", name=name, low=low, high=high)
    return {name: made[name] for name in goals if name in made}


def _stated(goal: Goal) -> list[float]:
    """Return the values that a goal names, which must be possible ones."""
    match goal:
        case Match(target=value) | AtLeast(value=value) | AtMost(value=value):
            return [value]
        case Max(at_least=float(value)) | Min(at_most=float(value)):
            return [value]
    return []


def _side(name: str, given: Any, side: Any, open_: float) -> float:
    if side is None or (isinstance(side, float) and side == open_):
        return open_
    value = checks.number(name, side, _FORM) if not hasattr(side, "__len__") else None
    if value is None:
        raise TypeError(f"{name} is {checks.shown(given)}; {_FORM}{_box_hint(given)}")
    if abs(value) > checks.LARGEST:
        raise ValueError(f"{name} is {checks.shown(given)}, too large to square; give values below {checks.LARGEST:g}")
    return value


def _box_hint(given: Any) -> str:
    """Say where the limits of parameters are given: other libraries call them bounds."""
    try:
        pairs = len(given) > 0 and all(len(one) == 2 and not isinstance(one, str) for one in given)
    except TypeError:
        return ""
    return "; the limits of the parameters are space=" if pairs else ""
