"""Whether f can be called with one point, by its signature."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from gpmi._support.checks import shown


def check_objective(f: Any, names: Sequence[str] | None, count: int) -> None:
    """Refuse an f that cannot be called with one point: a dict with these names, or an array of shape (count,).

    The signature of f itself counts, not that of a function it wraps. A function without a signature passes.
    """
    if not callable(f):
        raise TypeError(f"f is {shown(f)}; give a function of one point")
    try:
        signature = inspect.signature(f, follow_wrapped=False)
    except (TypeError, ValueError):
        return
    if _takes(signature, 1):
        return
    apart = _takes(signature, *range(count)) if names is None else _takes(signature, **dict.fromkeys(names))
    remedy = "give a function of one argument, the point"
    if apart:
        remedy = f"give lambda p: f({'*p' if names is None else '**p'})"
    raise TypeError(f"f takes {signature}, but it is called with {expected_point(names, count)}; {remedy}")


def expected_point(names: Sequence[str] | None, count: int) -> str:
    """Describe the argument that f is called with."""
    return f"one point, an array of shape ({count},)" if names is None else f"one point, a dict of {', '.join(names)}"


def _takes(signature: inspect.Signature, /, *args: Any, **kwargs: Any) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True
