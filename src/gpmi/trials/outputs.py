"""Numbers by output: what one evaluation measured, and how such numbers are validated."""

from __future__ import annotations

from typing import Any, NoReturn

from gpmi._support import checks
from gpmi._support.checks import LARGEST
from gpmi._support.types import FrozenPoint

Y = "y"  # the output that its user does not name


class Outputs(FrozenPoint):
    """Numbers by output, such as what one evaluation measured: a read-only dict."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("the outputs of a trial cannot be changed; correct the trial, or change a copy, dict(outputs)")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse


NONE = Outputs()  # no outputs


def checked_output(name: str, value: Any) -> float:
    """Return one measured output as a finite number that is small enough to square."""
    return small_number(
        name, value, "give one finite number, leave out an output that was not measured, or call fail(x)"
    )


def small_number(name: str, value: Any, remedy: str = "give one finite number") -> float:
    """Return a finite number that is small enough to square."""
    result = checks.number(str(name), value, remedy)
    if abs(result) > LARGEST:
        raise ValueError(f"{name} is {value!r}, too large to square; give values below {LARGEST:g}, in other units")
    return result
