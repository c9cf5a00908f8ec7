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

FORM = "give the smallest and the largest value that it can have, such as (0, 100), with None for a side that is open"


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
            raise TypeError(f"{name} is {checks.shown(given)}; {FORM}{_box_hint(given)}")
        lo, hi = (_side(name, given, side, open_) for side, open_ in zip(given, (-math.inf, math.inf), strict=True))
        if not lo < hi:
            sentence = f"{name} is {checks.shown(given)}, which has no room; {FORM}"
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


def _side(name: str, given: Any, side: Any, open_: float) -> float:
    if side is None or (isinstance(side, float) and side == open_):
        return open_
    value = checks.number(name, side, FORM) if not hasattr(side, "__len__") else None
    if value is None:
        raise TypeError(f"{name} is {checks.shown(given)}; {FORM}{_box_hint(given)}")
    if abs(value) > checks.LARGEST:
        raise ValueError(f"{name} is {checks.shown(given)}, too large to square; give values below {checks.LARGEST:g}")
    return value


def _box_hint(given: Any) -> str:
    """Say where the limits of parameters are given: other libraries call them bounds."""
    try:
        pairs = len(given) > 0 and all(len(pair) == 2 and not isinstance(pair, str) for pair in given)
    except TypeError:
        return ""
    return "; the limits of the parameters are space=" if pairs else ""
