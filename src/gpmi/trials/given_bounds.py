"""Bounds of a value as users give them: a pair, with None for a side that is open."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gpmi._support import checks
from gpmi._support.refusals import RefusedValue
from gpmi.trials.value_bounds import ValueBounds

FORM = "give the smallest and the largest value that it can have, such as (0, 100), with None for a side that is open"


def given_bounds(name: str, given: Any) -> ValueBounds:
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
