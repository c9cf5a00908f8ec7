"""When two options of a choice are one."""

from __future__ import annotations

from typing import Any

import numpy as np


def key(option: Any) -> tuple[bool, Any]:
    """An option as the key of a dict, in which True and 1 must be two options."""
    return isinstance(option, bool | np.bool_), option


def same(a: Any, b: Any) -> bool:
    """Whether two options are one: the same object, two NaN, or `equal`."""
    if a is b:
        return True
    return equal(a, b) or (isinstance(a, float) and isinstance(b, float) and a != a and b != b)


def equal(a: Any, b: Any) -> bool:
    """Equality of options: True is not 1, arrays are equal as a whole, and what cannot be compared is not equal."""
    try:
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            return type(a) is type(b) and np.array_equal(a, b)
        with np.errstate(all="ignore"):  # comparing numbers of different precision may warn
            return isinstance(a, bool | np.bool_) == isinstance(b, bool | np.bool_) and bool(a == b)
    except Exception:  # objects of the user may raise what they like
        return False
