"""One parameter of a space: a number, a whole number, or a choice. Its values <-> the kernel's coordinates.

A Real or an Int is one coordinate: its value, or the natural logarithm of it with log=True. A Choice of k options is k
coordinates: 1 for the option that is taken and 0 for the others; with ordered=True it is one, the option's position.

Every parameter offers the same. The level number of a value is its place among all values, from 0:

    width                the number of its coordinates
    count                the number of its values; None for a Real, which has infinitely many
    ends                 the smallest and the largest value of each coordinate, (2, width)
    at(u)                the coordinates (m, width) at u (m,) in [0, 1], where equal parts of [0, 1] count the same
    level(numbers)       the coordinates (m, width) of the values with these level numbers (m,)
    number(rows)         the level numbers (m,) of coordinates (m, width); for a Real its coordinate
    tried(row)           levels (k, width) that a search tries from coordinates (width,): all of them, or some of many
    encode(name, value)  the coordinates of a user's value, which is refused if it is not a value of the parameter
    decode(row)          the value at coordinates (width,); for a number the nearest value
    canonical(value)     a user's value as a plain Python value
    when                 the condition under which there is such a parameter at all; `gpmi.space.conditions.conditions`
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cached_property
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np

from gpmi._support import checks
from gpmi._support.text import shortened
from gpmi._support.types import Array, Numbers
from gpmi.space.options import equal, key, same

LARGEST = 2**53  # the largest whole number up to which floating point tells neighbours apart
# The logarithms of neighbours must differ, too: those of 10^12 and 10^12 + 1 are 280 floats apart. Our choice.
_LARGEST_LOG = 10**12
_MOST_LEVELS = 10**7  # up to so many levels of an Int are held in one array, here of 80 MB; our choice
_SPREAD = 256  # of more levels those are tried that are spread evenly, and some near the present one; not tuned
MOST_OPTIONS = 1000  # each option is a coordinate of the kernel: 8,000 candidates then take 64 MB; our choice
UNIT = 20  # characters of a unit, at most: it stands beside every value; our choice
_NARROWEST, _WIDEST = 1e-100, 1e100  # kernels square distances; such squares do not under- or overflow


class _Stored:
    """A pickle or a copy holds the fields alone: what is cached can be large, and is made again when it is needed."""

    def __getstate__(self) -> dict[str, Any]:
        assert isinstance(self, Real | Int | Choice)
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __repr__(self) -> str:
        """The fields; those that must be named are left out where they are as by default."""
        assert isinstance(self, Real | Int | Choice)
        shown = [f for f in fields(self) if not f.kw_only or getattr(self, f.name) != f.default]
        return f"{type(self).__name__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in shown)})"


# Logarithms are those of `math`: the last digit of numpy.log depends on the processor and on how an array lies in
# memory, so the end of an interval would not always be the coordinate of its value.


@dataclass(frozen=True, repr=False)
class Real(_Stored):
    """A number in [lo, hi]; with log=True its order of magnitude matters rather than its value.

    With `when` it is there only under a condition: when={"kernel": "rbf"}, or a list of such values. `unit` is for
    people: pages and pictures show it, nothing is computed from it.
    """

    lo: float
    hi: float
    log: bool = False
    when: Mapping[str, Any] | None = field(default=None, kw_only=True)
    unit: str = field(default="", kw_only=True, compare=False)

    def __post_init__(self) -> None:
        _check_when(self)
        _check_unit(self)
        _check_interval(self, "a finite number")
        object.__setattr__(self, "lo", float(self.lo))
        object.__setattr__(self, "hi", float(self.hi))

    width = 1
    count = None
    levels = None

    @cached_property
    def _ends(self) -> tuple[float, float]:
        return (math.log(self.lo), math.log(self.hi)) if self.log else (self.lo, self.hi)

    @property
    def ends(self) -> Array:
        return np.array(self._ends)[:, None]

    def at(self, u: Array) -> Array:
        lo, hi = self.ends
        result: Array = np.clip(lo + u[:, None] * (hi - lo), lo, hi)
        return result

    def level(self, numbers: Array | Numbers) -> Array:
        return np.asarray(numbers, dtype=float)[:, None]

    def number(self, rows: Array) -> Array:
        return rows[:, 0]

    def tried(self, row: Array) -> Array:
        return row[None]

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        number = checks.number(name, value)
        if not self.lo <= number <= self.hi:
            told = checks.shown(value)
            raise ValueError(f"{name} is {told}, outside [{self.lo}, {self.hi}]; give a value inside")
        return (math.log(number) if self.log else number + 0.0,)

    def decode(self, row: Array) -> float:
        at, (lo, hi) = float(row[0]), self._ends
        if at <= lo or at >= hi:  # exp(log(hi)) may round to another number than hi
            return self.lo if at <= lo else self.hi
        value = float(np.exp(row[0])) if self.log else at
        return min(max(value, self.lo), self.hi)

    def canonical(self, value: Any) -> float:
        return float(value) + 0.0  # -0.0 is 0.0


@dataclass(frozen=True, repr=False)
class Int(_Stored):
    """A whole number in lo, lo + step, ..., up to hi; with `when` under a condition and with a `unit`, as `Real`."""

    lo: int
    hi: int
    log: bool = False
    step: int = field(default=1, kw_only=True)
    when: Mapping[str, Any] | None = field(default=None, kw_only=True)
    unit: str = field(default="", kw_only=True, compare=False)

    def __post_init__(self) -> None:
        for end in ("lo", "hi"):
            if not isinstance(getattr(self, end), Integral):
                raise TypeError(f"{end} of Int is {checks.shown(getattr(self, end))}; give a whole number")
        _check_when(self)
        _check_unit(self)
        _check_interval(self, "a whole number")
        object.__setattr__(self, "step", checks.whole("step of Int", self.step, 1))
        object.__setattr__(self, "lo", int(self.lo))
        object.__setattr__(self, "hi", int(self.hi))
        if self.step > self.hi - self.lo:
            raise ValueError(f"step of Int is {self.step}, but hi - lo is {self.hi - self.lo}; give a smaller step")
        object.__setattr__(self, "hi", self.lo + (self.count - 1) * self.step)
        if max(-self.lo, self.hi) > (_LARGEST_LOG if self.log else LARGEST):
            raise ValueError(f"Int({self.lo}, {self.hi}) has too large values; use Real and round in f")

    width = 1

    @property
    def count(self) -> int:
        return (self.hi - self.lo) // self.step + 1

    @cached_property
    def levels(self) -> Array:
        """All values as coordinates, (count, 1)."""
        levels = np.arange(self.lo, self.hi + 1, self.step, dtype=float)
        if self.log:
            levels = np.fromiter(map(math.log, range(self.lo, self.hi + 1, self.step)), float, len(levels))
        levels.flags.writeable = False
        return levels[:, None]

    @property
    def ends(self) -> Array:
        return np.array([[math.log(end) if self.log else float(end)] for end in (self.lo, self.hi)])

    def at(self, u: Array) -> Array:
        if not self.log:
            return self.level(np.minimum((u * self.count).astype(np.intp), self.count - 1))
        half = 0.5 * self.step  # a value stands for the interval around it, so that equal parts of log x count the same
        lo, hi = math.log(max(self.lo - half, 0.5 * self.lo)), math.log(self.hi + half)
        return self.level(self._number_of(np.exp(lo + u * (hi - lo))))

    def level(self, numbers: Array | Numbers) -> Array:
        values = self.lo + self.step * np.asarray(numbers, dtype=float)
        return np.array([math.log(v) for v in values])[:, None] if self.log else values[:, None]

    def number(self, rows: Array) -> Array:
        return self._number_of(np.exp(rows[:, 0]) if self.log else rows[:, 0])

    def _number_of(self, values: Array) -> Array:
        return np.clip(np.round((values - self.lo) / self.step), 0, self.count - 1)

    def tried(self, row: Array) -> Array:
        if self.count <= _MOST_LEVELS:
            return self.levels
        here, jumps = self.number(row[None]), 2.0 ** np.arange(int(math.log2(self.count)) + 1)
        spread = self.number(self.at(np.linspace(0.0, 1.0, _SPREAD)))
        numbers = np.concatenate([spread, here, here + jumps, here - jumps])
        return self.level(np.unique(np.clip(numbers, 0, self.count - 1)))

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        number = checks.number(name, value, "give a whole number")
        if number != round(number):
            raise ValueError(f"{name} is {checks.shown(value)}; it must be a whole number")
        exact = int(value) if isinstance(value, Integral) else int(number)
        if not self.lo <= exact <= self.hi:
            told = checks.shown(value)
            raise ValueError(f"{name} is {told}, outside {self.lo}..{self.hi}; give a value inside")
        if (exact - self.lo) % self.step:
            told = checks.shown(value)
            raise ValueError(
                f"{name} is {told}, not {self.lo} plus a multiple of {self.step}; tell points of the space"
            )
        return (math.log(number) if self.log else number + 0.0,)

    def decode(self, row: Array) -> int:
        value = math.exp(row[0]) if self.log else row[0]
        if self.step > 1:
            value = self.lo + round((value - self.lo) / self.step) * self.step
        return min(max(round(value), self.lo), self.hi)

    def canonical(self, value: Any) -> int:
        return int(value)


@dataclass(frozen=True, repr=False)
class Choice(_Stored):
    """One of several options: words, numbers or any objects, such as functions or estimators.

    With ordered=True neighbours in the list are alike and all steps are equal, as in Choice([16, 32, 64, 128],
    ordered=True); otherwise any two options differ by the same. With `when` it is there under a condition, as `Real`.

    Options go by their position and come back as the very objects. A user's value stands for the option that it is, or
    else for the one that it equals. No option may be given twice. Values that can be hashed, lists, dicts, sets and
    arrays are given twice if they are equal; other objects may be equal, because they are told apart by what they are.
    """

    options: tuple[Any, ...]
    ordered: bool = field(default=False, kw_only=True)
    when: Mapping[str, Any] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _check_when(self)
        object.__setattr__(self, "ordered", checks.flag("ordered of Choice", self.ordered))
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
        return 1 if self.ordered else len(self.options)

    @property
    def count(self) -> int:
        return len(self.options)

    @cached_property
    def levels(self) -> Array:
        """All options as coordinates, (count, width)."""
        levels = np.arange(float(self.count))[:, None] if self.ordered else np.eye(self.count)
        levels.flags.writeable = False
        return levels

    @property
    def ends(self) -> Array:
        if self.ordered:
            return np.array([[0.0], [self.count - 1.0]])
        return np.repeat([[0.0], [1.0]], self.width, axis=1)

    def at(self, u: Array) -> Array:
        return self.level(np.minimum((u * self.count).astype(np.intp), self.count - 1))

    def level(self, numbers: Array | Numbers) -> Array:
        return np.asarray(self.levels[np.asarray(numbers, dtype=np.intp)])

    def number(self, rows: Array) -> Array:
        place = np.clip(np.round(rows[:, 0]), 0, self.count - 1) if self.ordered else np.argmax(rows, axis=1)
        return np.asarray(place, dtype=float)

    def tried(self, row: Array) -> Array:
        return self.levels

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        number = self.find(value)
        if number is not None:
            return tuple(self.levels[number].tolist())
        remedy = f"it must be one of {checks.shown(list(self.options))}"
        if several := self._equal(value):
            remedy = f"it equals the options {several}: give the very object that is meant"
        raise ValueError(f"{name} is {checks.shown(value)}; {remedy}")

    def decode(self, row: Array) -> Any:
        return self.options[int(self.number(row[None])[0])]

    def canonical(self, value: Any) -> Any:
        number = self.find(value)
        return None if number is None else self.options[number]


Parameter: TypeAlias = Real | Int | Choice


def _check_when(p: Parameter) -> None:
    """Refuse a condition that is not a dict of names and values."""
    if p.when is None:
        return
    name = type(p).__name__
    if not isinstance(p.when, Mapping) or not all(isinstance(parent, str) for parent in p.when):
        told = checks.shown(p.when)
        raise TypeError(
            f"when of {name} is {told}; give a dict such as {{'kernel': 'rbf'}} or {{'kernel': ['a', 'b']}}"
        )
    if not p.when:
        raise ValueError(f"when of {name} is empty; leave it out, or name a parameter and its values")
    object.__setattr__(p, "when", dict(p.when))


def _check_unit(p: Real | Int) -> None:
    if not isinstance(p.unit, str):
        raise TypeError(
            f"unit of {type(p).__name__} is {checks.shown(p.unit)}; give a text such as '°C', or leave it out"
        )
    object.__setattr__(p, "unit", shortened(p.unit, UNIT))


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
