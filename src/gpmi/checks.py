"""Numbers that come in through the public door: accepted, or refused with the argument, the value and the remedy."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np


def number(name: str, value: Any, remedy: str = "give one finite number") -> float:
    """A finite float from a real number of any type, not from a bool, a string or an array."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} is {value!r}; {remedy}")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise ValueError(f"{name} is {value!r}; {remedy}")
    return result


def positive(name: str, value: Any) -> float:
    """A finite number above 0."""
    result = number(name, value, remedy := "give one positive, finite number")
    if result <= 0.0:
        raise ValueError(f"{name} is {value!r}; {remedy}")
    return result


def variance(name: str, value: Any) -> float:
    """A finite number, 0 or larger."""
    result = number(name, value, remedy := "it is a variance: give one finite number, 0 or larger")
    if result < 0.0:
        raise ValueError(f"{name} is {value!r}; {remedy}")
    return result


def whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} is {value!r}; give a whole number")
    if value < least:
        raise ValueError(f"{name} is {value}; give a whole number of at least {least}")
    return int(value)
