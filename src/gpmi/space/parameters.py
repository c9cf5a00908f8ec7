"""One parameter of a space: a number, a whole number, or a choice. Its values <-> the kernel's coordinates.

A Real or an Int is one coordinate: its value, or the natural logarithm of it with log=True. A Choice of k options is k
coordinates: 1 for the option that is taken and 0 for the others.

Every parameter offers the same:

    width                the number of its coordinates
    levels               all its values as coordinates, (k, width); None for a Real, which has infinitely many
    ends                 the smallest and the largest value of each coordinate, (2, width)
    encode(name, value)  the coordinates of a user's value, which is refused if it is not a value of the parameter
    decode(row)          the value at coordinates (width,); for a number the nearest value
    canonical(value)     a user's value as a plain Python value
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np

from gpmi import checks
from gpmi.types import Array

LARGEST = 2**53  # the largest whole number up to which floating point tells neighbours apart
# The logarithms of neighbours must differ, too: those of 10^12 and 10^12 + 1 are 280 floats apart. Our choice.
_LARGEST_LOG = 10**12
_MOST_LEVELS = 10**7  # all levels of an Int are held in one array, here of 80 MB; our choice
MOST_OPTIONS = 1000  # each option is a coordinate of the kernel: 8,000 candidates then take 64 MB; our choice
_NARROWEST, _WIDEST = 1e-100, 1e100  # kernels square distances; such squares do not under- or overflow


@dataclass(frozen=True)
class Real:
    """A number in [lo, hi]; with log=True its order of magnitude matters rather than its value."""

    lo: float
    hi: float
    log: bool = False

    def __post_init__(self) -> None:
        _check_interval(self, "a finite number")
        object.__setattr__(self, "lo", float(self.lo))
        object.__setattr__(self, "hi", float(self.hi))

    width = 1
    levels = None

    @property
    def ends(self) -> Array:
        ends = np.array([[self.lo], [self.hi]])
        return np.log(ends) if self.log else ends

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        number = checks.number(name, value)
        if not self.lo <= number <= self.hi:
            raise ValueError(f"{name} is {value!r}, outside [{self.lo}, {self.hi}]; tell points of the space only")
        return (math.log(number) if self.log else number + 0.0,)

    def decode(self, row: Array) -> float:
        lo, hi = self.ends[:, 0]
        if row[0] <= lo or row[0] >= hi:  # exp(log(hi)) may round to another number than hi
            return self.lo if row[0] <= lo else self.hi
        value = float(np.exp(row[0])) if self.log else float(row[0])
        return min(max(value, self.lo), self.hi)

    def canonical(self, value: Any) -> float:
        return float(value) + 0.0  # -0.0 is 0.0


@dataclass(frozen=True)
class Int:
    """A whole number in lo, lo + 1, ..., hi."""

    lo: int
    hi: int
    log: bool = False

    def __post_init__(self) -> None:
        for end in ("lo", "hi"):
            if not isinstance(getattr(self, end), Integral):
                raise TypeError(f"{end} of Int is {getattr(self, end)!r}; give a whole number")
        _check_interval(self, "a whole number")
        object.__setattr__(self, "lo", int(self.lo))
        object.__setattr__(self, "hi", int(self.hi))
        if self.hi - self.lo >= _MOST_LEVELS or max(-self.lo, self.hi) > (_LARGEST_LOG if self.log else LARGEST):
            raise ValueError(f"Int({self.lo}, {self.hi}) has too many or too large values; use Real and round in f")

    width = 1

    @cached_property
    def levels(self) -> Array:
        values = np.arange(self.lo, self.hi + 1, dtype=float)[:, None]
        return np.log(values) if self.log else values

    @property
    def ends(self) -> Array:
        return self.levels[[0, -1]]

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        number = checks.number(name, value, "give a whole number")
        if number != round(number):
            raise ValueError(f"{name} is {value!r}; it must be a whole number")
        if not self.lo <= (int(value) if isinstance(value, Integral) else number) <= self.hi:
            raise ValueError(f"{name} is {value!r}, outside {self.lo}..{self.hi}; tell points of the space only")
        return (math.log(number) if self.log else number + 0.0,)

    def decode(self, row: Array) -> int:
        return min(max(round(math.exp(row[0]) if self.log else row[0]), self.lo), self.hi)

    def canonical(self, value: Any) -> int:
        return int(value)


@dataclass(frozen=True)
class Choice:
    """One of several options without order."""

    options: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.options, list | tuple):
            raise TypeError(f"options is {self.options!r}; give a list of options")
        options = tuple(self.options)
        if len(options) == 0:
            raise ValueError("options is empty; give at least one option")
        if len(options) > MOST_OPTIONS:
            raise ValueError(
                f"options has {len(options)} options, of which a model would learn nothing; give at most "
                f"{MOST_OPTIONS}, or numbers that describe them"
            )
        for option in options:
            if not same(option, option):
                raise ValueError(f"options has {option!r}, which does not equal itself; give another word for it")
        for i, option in enumerate(options):
            if self.find(option) != i:
                raise ValueError(f"options has {option!r} twice; give each option once")
        object.__setattr__(self, "options", options)

    @cached_property
    def _numbers(self) -> dict[tuple[bool, Any], int]:
        """The number of each option that can be hashed, for a fast `find`."""
        numbers: dict[tuple[bool, Any], int] = {}
        for i, option in enumerate(self.options):
            if isinstance(option, Hashable):
                with suppress(TypeError):  # a tuple that holds a list
                    numbers.setdefault(key(option), i)
        return numbers

    def find(self, value: Any) -> int | None:
        """The number of the first option equal to value (`same`); None if there is none."""
        with suppress(TypeError):
            number = self._numbers.get(key(value))
            if number is not None and same(self.options[number], value):
                return number
        return next((i for i, option in enumerate(self.options) if same(option, value)), None)

    @property
    def width(self) -> int:
        return len(self.options)

    @property
    def levels(self) -> Array:
        return np.eye(self.width)

    @property
    def ends(self) -> Array:
        return np.repeat([[0.0], [1.0]], self.width, axis=1)

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        number = self.find(value)
        if number is not None:
            return tuple(float(number == j) for j in range(self.width))
        raise ValueError(f"{name} is {value!r}; it must be one of {list(self.options)!r}")

    def decode(self, row: Array) -> Any:
        return self.options[int(np.argmax(row))]

    def canonical(self, value: Any) -> Any:
        number = self.find(value)
        return None if number is None else self.options[number]


Parameter: TypeAlias = Real | Int | Choice


def _check_interval(p: Real | Int, words: str) -> None:
    """Refuse bounds that are not finite, not in order, or too wide or narrow for the kernel; log becomes a bool."""
    name = type(p).__name__
    lo, hi = (checks.number(f"{end} of {name}", getattr(p, end), f"give {words}") for end in ("lo", "hi"))
    object.__setattr__(p, "log", checks.flag(f"log of {name}", p.log))
    if not lo < hi:
        raise ValueError(f"{name} has lo = {p.lo} and hi = {p.hi}; lo must be smaller than hi")
    if not (p.log or _NARROWEST < hi - lo < _WIDEST):
        raise ValueError(f"{name}({p.lo}, {p.hi}) is too wide or too narrow to be squared; give other units")
    if p.log and lo <= 0:
        raise ValueError(f"{name} has log=True and lo = {p.lo}; a logarithmic parameter needs lo > 0")
    if p.log and not math.log(lo) < math.log(hi):
        raise ValueError(f"{name} has log=True and lo = {p.lo}, hi = {p.hi} with equal logarithms; widen the bounds")


def key(option: Any) -> tuple[bool, Any]:
    """An option as the key of a dict, in which True and 1 must be two options."""
    return isinstance(option, bool | np.bool_), option


def same(a: Any, b: Any) -> bool:
    """Equality of options: True is not 1, arrays are equal as a whole, and what cannot be compared is not equal."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and np.array_equal(a, b)
    try:
        with np.errstate(all="ignore"):  # comparing numbers of different precision may warn
            return isinstance(a, bool | np.bool_) == isinstance(b, bool | np.bool_) and bool(a == b)
    except (TypeError, ValueError, OverflowError):
        return False
