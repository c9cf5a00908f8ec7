"""When two options of a Choice are the same."""

from __future__ import annotations

from typing import Any

import numpy as np


def option_key(option: Any) -> tuple[bool, Any]:
    """Return a dict key for an option. True and 1 get different keys."""
    return isinstance(option, bool | np.bool_), option


def same_option(a: Any, b: Any) -> bool:
    """Whether two options are the same: one object, two NaN, or equal."""
    if a is b:
        return True
    return equal_options(a, b) or (isinstance(a, float) and isinstance(b, float) and a != a and b != b)


def equal_options(a: Any, b: Any) -> bool:
    """Whether two options are equal. True is not 1, arrays are compared as a whole; incomparable ones are unequal."""
    try:
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            return type(a) is type(b) and np.array_equal(a, b)
        with np.errstate(all="ignore"):  # comparing numbers of different precision may warn
            return isinstance(a, bool | np.bool_) == isinstance(b, bool | np.bool_) and bool(a == b)
    except Exception:  # the user's objects may raise anything
        return False
