"""The values of a parameter as plain data, for what writes them in other words: a form, a distribution, an axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class NumberRange:
    """The numbers from lo to hi, or those at lo, lo + step, ..."""

    lo: float
    hi: float
    log: bool = False  # the order of magnitude matters
    step: float | None = None
    whole: bool = False  # whole numbers, with a whole step


@dataclass(frozen=True)
class Options:
    """The values of a list."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Steps:
    """The steps of a fidelity, passed one after the other."""

    first: int
    last: int


@dataclass(frozen=True)
class Single:
    """A value that never varies."""

    value: Any


Domain: TypeAlias = NumberRange | Options | Steps | Single
