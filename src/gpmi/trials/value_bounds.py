"""Bounds of a value: what it can be at all, such as 0 to 100 for a yield in %.

The model is a Gaussian process g, which knows no bounds. What is stated about f is stated about f = clip(g): draws,
quantiles and bands are clipped where they leave the model (`Model.to_units_of_y`). Clipping is increasing, so quantiles
stay quantiles. Suggestions come from g and do not depend on bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from gpmi._support.text import rounded
from gpmi._support.types import Array, Event
from gpmi.trials.trial import Trial


@dataclass(frozen=True)
class ValueBounds:
    """The smallest and the largest possible value; infinite where a side is open."""

    lo: float = -math.inf
    hi: float = math.inf

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

    def contains(self, y: float) -> bool:
        """Whether a value is within the bounds."""
        return self.lo <= y <= self.hi

    def warning(self, number: int, name: str, value: float) -> str:
        """Return what to know of a value of a trial outside these bounds."""
        remedy = "it counts as measured, and what is stated stays within them; correct the trial if it is a mistake"
        return f"{name} of trial {number} is {rounded(value)}, outside its bounds, {self}; {remedy}"

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


def outside_bounds(bounds: Mapping[str, ValueBounds], trials: Iterable[Trial]) -> list[Event]:
    """Return an event for each value of trials that is outside the bounds of its output. O(n)"""
    values = [(trial.number, *item) for trial in trials if bounds for item in trial.values.items()]
    outside = [(n, name, y) for n, name, y in values if not bounds.get(name, OPEN).contains(y)]
    return [Event("outside the bounds", bounds[name].warning(n, name, y)) for n, name, y in outside]
