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
from contextlib import suppress
from dataclasses import dataclass, fields
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


class _Stored:
    """A pickle or a copy holds the fields alone: what is cached can be large, and is made again when it is needed."""

    def __getstate__(self) -> dict[str, Any]:
        assert isinstance(self, Real | Int | Choice)
        return {field.name: getattr(self, field.name) for field in fields(self)}


# Logarithms are those of `math`: the last digit of numpy.log depends on the processor and on how an array lies in
# memory, so the end of an interval would not always be the coordinate of its value.


@dataclass(frozen=True)
class Real(_Stored):
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
        ends = (self.lo, self.hi)
        return np.array([[math.log(end) if self.log else end] for end in ends])

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        number = checks.number(name, value)
        if not self.lo <= number <= self.hi:
            told = checks.shown(value)
            raise ValueError(f"{name} is {told}, outside [{self.lo}, {self.hi}]; tell points of the space only")
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
class Int(_Stored):
    """A whole number in lo, lo + 1, ..., hi."""

    lo: int
    hi: int
    log: bool = False

    def __post_init__(self) -> None:
        for end in ("lo", "hi"):
            if not isinstance(getattr(self, end), Integral):
                raise TypeError(f"{end} of Int is {checks.shown(getattr(self, end))}; give a whole number")
        _check_interval(self, "a whole number")
        object.__setattr__(self, "lo", int(self.lo))
        object.__setattr__(self, "hi", int(self.hi))
        if self.hi - self.lo >= _MOST_LEVELS or max(-self.lo, self.hi) > (_LARGEST_LOG if self.log else LARGEST):
            raise ValueError(f"Int({self.lo}, {self.hi}) has too many or too large values; use Real and round in f")

    width = 1

    @cached_property
    def levels(self) -> Array:
        levels = np.arange(self.lo, self.hi + 1, dtype=float)
        if self.log:
            levels = np.fromiter(map(math.log, range(self.lo, self.hi + 1)), float, len(levels))
        levels.flags.writeable = False
        return levels[:, None]

    @property
    def ends(self) -> Array:
        return self.levels[[0, -1]]

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        number = checks.number(name, value, "give a whole number")
        if number != round(number):
            raise ValueError(f"{name} is {checks.shown(value)}; it must be a whole number")
        if not self.lo <= (int(value) if isinstance(value, Integral) else number) <= self.hi:
            told = checks.shown(value)
            raise ValueError(f"{name} is {told}, outside {self.lo}..{self.hi}; tell points of the space only")
        return (math.log(number) if self.log else number + 0.0,)

    def decode(self, row: Array) -> int:
        return min(max(round(math.exp(row[0]) if self.log else row[0]), self.lo), self.hi)

    def canonical(self, value: Any) -> int:
        return int(value)


@dataclass(frozen=True)
class Choice(_Stored):
    """One of several options without order: words, numbers or any objects, such as functions or estimators.

    Options go by their position and come back as the very objects. A user's value stands for the option that it is, or
    else for the one that it equals. No option may be given twice. Values that can be hashed, lists, dicts, sets and
    arrays are given twice if they are equal; other objects may be equal, because they are told apart by what they are.
    """

    options: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.options, list | tuple):
            raise TypeError(f"options is {checks.shown(self.options)}; give a list of options")
        options = tuple(self.options)
        if len(options) == 0:
            raise ValueError("options is empty; give at least one option")
        if len(options) > MOST_OPTIONS:
            raise ValueError(
                f"options has {len(options)} options, of which a model would learn nothing; give at most "
                f"{MOST_OPTIONS}, or numbers that describe them"
            )
        object.__setattr__(self, "options", options)
        for i, option in enumerate(options):
            if self._repeats(i):
                raise ValueError(f"options has {checks.shown(option)} twice; give each option once")

    @cached_property
    def _numbers(self) -> dict[tuple[bool, Any], int]:
        """The number of each option that can be hashed, for a fast `find`."""
        numbers: dict[tuple[bool, Any], int] = {}
        for i, option in enumerate(self.options):
            with suppress(Exception):  # a list, a tuple that holds one, an object of the user
                numbers.setdefault(key(option), i)
        return numbers

    def _by_hash(self, value: Any) -> int | None:
        """The number of the option that equals a value; None if there is none, or the value cannot be hashed."""
        with suppress(Exception):
            number = self._numbers.get(key(value))
            if number is not None and same(self.options[number], value):
                return number
        return None

    def _repeats(self, i: int) -> bool:
        """Whether option i was given before."""
        option = self.options[i]
        number = self._by_hash(option)
        if number is not None and equal(option, option):
            return number < i
        by_value = number is not None or isinstance(option, list | dict | set | np.ndarray)
        return any(other is option or (by_value and same(other, option)) for other in self.options[:i])

    def find(self, value: Any) -> int | None:
        """The number of the option that is this very object, or else of the only one that equals it."""
        for i, option in enumerate(self.options):
            if option is value:
                return i
        number = self._by_hash(value)
        if number is not None:
            return number
        numbers = self._equal(value)
        return numbers[0] if len(numbers) == 1 else None

    def _equal(self, value: Any) -> list[int]:
        return [i for i, option in enumerate(self.options) if same(option, value)]

    @property
    def width(self) -> int:
        return len(self.options)

    @cached_property
    def levels(self) -> Array:
        levels = np.eye(self.width)
        levels.flags.writeable = False
        return levels

    @property
    def ends(self) -> Array:
        return np.repeat([[0.0], [1.0]], self.width, axis=1)

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        number = self.find(value)
        if number is not None:
            return tuple(self.levels[number].tolist())
        remedy = f"it must be one of {checks.shown(list(self.options))}"
        if several := self._equal(value):
            remedy = f"it equals the options {several}: give the very object that is meant"
        raise ValueError(f"{name} is {checks.shown(value)}; {remedy}")

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
