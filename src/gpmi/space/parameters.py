"""The parameters that a user writes: a number, a whole number, or a choice.

A Real or an Int has one coordinate: its value, or the natural logarithm of it with log=True. A Choice of k options has
k coordinates: 1 for the chosen option and 0 for the others. With ordered=True it has one, the option's position.

All of them implement `gpmi.space.encoding.Encoding`, which documents their methods.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from decimal import Decimal
from functools import cached_property
from numbers import Integral
from typing import Any, Self, TypeAlias

import numpy as np

from gpmi._support import checks
from gpmi._support.refusals import RefusedValue
from gpmi._support.text import shortened
from gpmi._support.types import Array, Numbers
from gpmi.space.domain import NumberRange, Options
from gpmi.space.features import Features
from gpmi.space.options import equal_options, option_key, same_option

LARGEST = 2**53  # floating point distinguishes all whole numbers up to this one
# The logarithms of neighbours must differ, too: those of 10^12 and 10^12 + 1 are 280 floats apart. Our choice.
_LARGEST_LOG = 10**12
_MOST_LEVELS = 10**7  # an Int with up to this many levels holds them in one array, here of 80 MB; our choice
_SPREAD = 256  # evenly spread levels that are tried of an Int with more, besides some near the present one; not tuned
MOST_OPTIONS = 1000  # each option is a coordinate of the kernel: 8,000 candidates then take 64 MB; our choice
UNIT = 20  # the longest unit, in characters, because it stands beside every value; our choice
_FINEST = 1e-9  # of the interval: a finer step is none; our choice
_SNAP = 1e-6  # of a step: a value closer to a setting is that setting, up to rounding; our choice
ON_STEP = 1e-9  # of a step: closer to a setting is on it; our choice
_NARROWEST, _WIDEST = 1e-100, 1e100  # kernels square distances; such squares do not under- or overflow


@dataclass(frozen=True, repr=False)
class FieldsOnly:
    """Pickle, copy and show the dataclass fields only. Cached arrays can be large and are rebuilt on demand."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __repr__(self) -> str:
        """Show the fields, without keyword-only ones that have their default value."""
        shown = [f for f in fields(self) if not f.kw_only or getattr(self, f.name) != f.default]
        return f"{type(self).__name__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in shown)})"

    def to_json(self) -> dict[str, Any]:
        """Return the fields for a study. What is shown only (compare=False) is left out at its default."""
        values = {field.name: (getattr(self, field.name), field) for field in fields(self)}
        return {name: value for name, (value, field) in values.items() if field.compare or value != field.default}

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Self:
        """Return the parameter whose fields `to_json` wrote."""
        return cls(**written)


# Logarithms come from `math`. The last digit of numpy.log depends on the processor and on the memory layout of the
# array, so the coordinate of a value at the end of the interval would not always be the end of the coordinates.


class Continuous(FieldsOnly):
    """A number with infinitely many values. Its level number is its coordinate."""

    step: float | None

    width, count, ordered, circular, choice = 1, None, True, False, None

    @property
    def domain(self) -> NumberRange:
        raise NotImplementedError

    @property
    def ends(self) -> Array:
        raise NotImplementedError

    def from_unit(self, u: Array) -> Array:
        lo, hi = self.ends
        result: Array = np.clip(lo + u[:, None] * (hi - lo), lo, hi)
        return result

    def from_levels(self, numbers: Array | Numbers) -> Array:
        return np.asarray(numbers, dtype=float)[:, None]

    def level_numbers(self, rows: Array) -> Array:
        return rows[:, 0]

    def levels_to_try(self, row: Array) -> Array:
        return row[None]

    def grid(self, points: int) -> Array:
        lo, hi = self.ends[:, 0]
        return np.linspace(lo, hi, points)[:, None]

    def place(self, value: float) -> float:
        """Return how many steps a value is above the smallest one."""
        assert self.step is not None
        return (value - self.domain.lo) / self.step

    def setting(self, number: int) -> float:
        """Return lo + number * step in decimal arithmetic: 0.3, and not 0.30000000000000004."""
        assert self.step is not None
        lo, hi = self.domain.lo, self.domain.hi
        value = float(Decimal(repr(lo)) + number * Decimal(repr(self.step)))
        return value if self.circular else min(max(value, lo), hi)

    def settings_near(self, value: float, sides: int) -> list[float]:
        """Return the settings around a value, at most `sides` below it and above it."""
        place, last = self.place(value), math.floor(self.place(self.domain.hi) + ON_STEP)
        near = round(place)
        below, above = (near, near) if abs(place - near) < ON_STEP else (math.floor(place), math.floor(place) + 1)
        first, end = below - sides + 1, above + sides
        numbers = range(first, end) if self.circular else range(max(0, min(first, last)), min(last + 1, end))
        return [self.setting(number) for number in numbers]

    def nearest(self, number: float) -> float:
        if self.step is None:
            return number
        return min(self.settings_near(number, 1), key=lambda setting: abs(setting - number))


@dataclass(frozen=True, repr=False)
class Real(Continuous):
    """A number in [lo, hi]. With log=True its order of magnitude matters, not its value.

    With a `step` it can be set to lo, lo + step, ... only, as by an instrument: what is suggested or recommended is one
    of these, and any other number in the interval may be told.

    With `when` it exists only under a condition: when={"kernel": "rbf"}, or with a list of values. `unit` is a label
    for people: pages and figures show it, and nothing is computed from it.
    """

    lo: float
    hi: float
    log: bool = False
    step: float | None = field(default=None, kw_only=True)
    when: Mapping[str, Any] | None = field(default=None, kw_only=True)
    unit: str = field(default="", kw_only=True, compare=False)

    def __post_init__(self) -> None:
        _check_when(self)
        check_unit(self)
        _check_interval(self, "a finite number")
        object.__setattr__(self, "lo", float(self.lo))
        object.__setattr__(self, "hi", float(self.hi))
        if self.step is not None:
            step = checks.positive("step of Real", self.step)
            if step > (width := self.hi - self.lo):
                sentence = f"step of Real is {step:g}, but hi - lo is {width:g}; give a smaller step"
                raise RefusedValue(sentence, "step-too-large", step=step, range=width)
            if step < _FINEST * (self.hi - self.lo):
                raise ValueError(f"step of Real is {step:g}, too fine for [{self.lo:g}, {self.hi:g}]; leave it out")
            object.__setattr__(self, "step", step)

    @property
    def domain(self) -> NumberRange:
        return NumberRange(self.lo, self.hi, self.log, self.step)

    @property
    def limits(self) -> tuple[float, float]:
        return self.lo, self.hi

    @cached_property
    def _ends(self) -> tuple[float, float]:
        return (math.log(self.lo), math.log(self.hi)) if self.log else (self.lo, self.hi)

    @property
    def ends(self) -> Array:
        return np.array(self._ends)[:, None]

    def values(self, numbers: Array) -> Array:
        return np.clip(np.exp(numbers), self.lo, self.hi) if self.log else numbers

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        number = checks.number(name, value)
        if not self.lo <= number <= self.hi:
            sentence = f"{name} is {checks.shown(value)}, outside [{self.lo}, {self.hi}]; give a value inside"
            raise RefusedValue(sentence, "outside", name=name, value=value, low=self.lo, high=self.hi)
        return (math.log(number) if self.log else number + 0.0,)

    def decode(self, row: Array) -> float:
        at, (lo, hi) = float(row[0]), self._ends
        if at <= lo or at >= hi:  # exp(log(hi)) may round to another number than hi
            return self.lo if at <= lo else self.hi
        value = min(max(float(np.exp(row[0])) if self.log else at, self.lo), self.hi)
        if self.step is None or abs((place := self.place(value)) - round(place)) > _SNAP:
            return value
        return self.setting(round(place))  # exp(log(19)) may round to another number than 19

    def canonical(self, value: Any) -> float:
        return float(value) + 0.0  # -0.0 is 0.0

    def to_json(self) -> dict[str, Any]:
        values = super().to_json()
        if self.step is None:  # so that versions without steps read it
            del values["step"]
        return values

    @classmethod
    def from_plain(cls, label: str, value: Any, **others: Any) -> Self:
        return cls(*_checked_ends(label, value), **others)


@dataclass(frozen=True, repr=False)
class Int(FieldsOnly):
    """A whole number in lo, lo + step, ..., up to hi. `log`, `when` and `unit` are as for `Real`."""

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
        check_unit(self)
        _check_interval(self, "a whole number")
        object.__setattr__(self, "step", checks.whole("step of Int", self.step, 1))
        object.__setattr__(self, "lo", int(self.lo))
        object.__setattr__(self, "hi", int(self.hi))
        if self.step > (width := self.hi - self.lo):
            sentence = f"step of Int is {self.step}, but hi - lo is {width}; give a smaller step"
            raise RefusedValue(sentence, "step-too-large", step=self.step, range=width)
        object.__setattr__(self, "hi", self.lo + (self.count - 1) * self.step)
        if max(-self.lo, self.hi) > (_LARGEST_LOG if self.log else LARGEST):
            raise ValueError(f"Int({self.lo}, {self.hi}) has too large values; use Real and round in f")

    width, ordered, circular, choice = 1, True, False, None

    @property
    def domain(self) -> NumberRange:
        return NumberRange(self.lo, self.hi, self.log, self.step, whole=True)

    @property
    def limits(self) -> tuple[float, float]:
        return float(self.lo), float(self.hi)

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

    def from_unit(self, u: Array) -> Array:
        if not self.log:
            return self.from_levels(np.minimum((u * self.count).astype(np.intp), self.count - 1))
        half = 0.5 * self.step  # a value stands for the interval around it, so equal parts of log x have equal weight
        lo, hi = math.log(max(self.lo - half, 0.5 * self.lo)), math.log(self.hi + half)
        return self.from_levels(self._number_of(np.exp(lo + u * (hi - lo))))

    def from_levels(self, numbers: Array | Numbers) -> Array:
        values = self.lo + self.step * np.asarray(numbers, dtype=float)
        return np.array([math.log(v) for v in values])[:, None] if self.log else values[:, None]

    def level_numbers(self, rows: Array) -> Array:
        return self._number_of(np.exp(rows[:, 0]) if self.log else rows[:, 0])

    def values(self, numbers: Array) -> Array:
        return self.lo + self.step * numbers

    def _number_of(self, values: Array) -> Array:
        return np.clip(np.round((values - self.lo) / self.step), 0, self.count - 1)

    def levels_to_try(self, row: Array) -> Array:
        if self.count <= _MOST_LEVELS:
            return self.levels
        here, jumps = self.level_numbers(row[None]), 2.0 ** np.arange(int(math.log2(self.count)) + 1)
        spread = self.level_numbers(self.from_unit(np.linspace(0.0, 1.0, _SPREAD)))
        numbers = np.concatenate([spread, here, here + jumps, here - jumps])
        return self.from_levels(np.unique(np.clip(numbers, 0, self.count - 1)))

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        number = checks.number(name, value, "give a whole number")
        if number != round(number):
            sentence = f"{name} is {checks.shown(value)}; it must be a whole number"
            raise RefusedValue(sentence, "not-whole", name=name, value=value)
        exact = int(value) if isinstance(value, Integral) else int(number)
        if not self.lo <= exact <= self.hi:
            sentence = f"{name} is {checks.shown(value)}, outside {self.lo}..{self.hi}; give a value inside"
            raise RefusedValue(sentence, "outside", name=name, value=value, low=self.lo, high=self.hi)
        if (exact - self.lo) % self.step:
            wanted = f"{self.lo} plus a multiple of {self.step}"
            sentence = f"{name} is {checks.shown(value)}, not {wanted}; tell points of the space"
            raise RefusedValue(sentence, "between-steps", name=name, value=value, low=self.lo, step=self.step)
        return (math.log(number) if self.log else number + 0.0,)

    def decode(self, row: Array) -> int:
        value = math.exp(row[0]) if self.log else row[0]
        if self.step > 1:
            value = self.lo + round((value - self.lo) / self.step) * self.step
        return min(max(round(value), self.lo), self.hi)

    def canonical(self, value: Any) -> int:
        return int(value)

    def nearest(self, number: float) -> int:
        return round(number)

    def grid(self, points: int) -> Array:
        values = np.unique(self.levels_to_try(self.ends[0]), axis=0)
        return thinned(values, points)

    @classmethod
    def from_plain(cls, label: str, value: Any, **others: Any) -> Self:
        return cls(*_checked_ends(label, value), **others)


@dataclass(frozen=True, repr=False)
class Choice(FieldsOnly):
    """One of several options: words, numbers or any objects, such as functions or estimators.

    With ordered=True neighbours in the list are alike and all steps are equal, as in Choice([16, 32, 64, 128],
    ordered=True). Otherwise any two options differ equally. `when` is as for `Real`.

    `features` are numbers that describe the options, such as boiling points: a dict by option, {"THF": {"bp": 66,
    "logP": 0.5}, ...} or {"THF": [66, 0.5], ...}, a DataFrame whose index has the options, or a list of rows in the
    order of the options. Options with similar numbers are then expected to give similar values, as far as the results
    agree. `features.kept` names the descriptors that a model uses: constant ones, and those that others explain, are
    left out.

    Options are identified by their position, and points hold the objects themselves. A value is matched to an
    option by identity, then by equality. Duplicates are refused. Hashable values, lists, dicts, sets and arrays are
    duplicates if equal, other objects only if identical.
    """

    options: tuple[Any, ...]
    ordered: bool = field(default=False, kw_only=True)
    when: Mapping[str, Any] | None = field(default=None, kw_only=True)
    features: Any = field(default=None, kw_only=True)  # `Features` after construction, or None

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
                f"options has {len(options)} options, too many for a model to learn anything; give at most "
                f"{MOST_OPTIONS}, or numbers that describe them"
            )
        object.__setattr__(self, "options", options)
        for i, option in enumerate(options):
            if self._repeats(i):
                raise ValueError(f"options has {checks.shown(option)} twice; give each option once")
        if self.features is not None:
            if self.ordered:
                raise ValueError("Choice has ordered=True and features; leave out one of them")
            object.__setattr__(self, "features", Features.of(self.features, options))

    @cached_property
    def _numbers(self) -> dict[tuple[bool, Any], int]:
        """The position of each hashable option, for a fast `find`."""
        numbers: dict[tuple[bool, Any], int] = {}
        for i, option in enumerate(self.options):
            with suppress(Exception):  # a list, a tuple that holds one, an object of the user's
                numbers.setdefault(option_key(option), i)
        return numbers

    def _by_hash(self, value: Any) -> int | None:
        """Return the position of the option that equals a value; None if no option does or it cannot be hashed."""
        with suppress(Exception):
            number = self._numbers.get(option_key(value))
            if number is not None and same_option(self.options[number], value):
                return number
        return None

    def _repeats(self, i: int) -> bool:
        """Whether option i repeats an earlier one."""
        option = self.options[i]
        number = self._by_hash(option)
        if number is not None and equal_options(option, option):
            return number < i
        by_value = number is not None or isinstance(option, list | dict | set | np.ndarray)
        return any(other is option or (by_value and same_option(other, option)) for other in self.options[:i])

    def find(self, value: Any) -> int | None:
        """Return the position of the option that is this very object, or else of the only one that equals it."""
        for i, option in enumerate(self.options):
            if option is value:
                return i
        number = self._by_hash(value)
        if number is not None:
            return number
        numbers = self._equal(value)
        return numbers[0] if len(numbers) == 1 else None

    def _equal(self, value: Any) -> list[int]:
        return [i for i, option in enumerate(self.options) if same_option(option, value)]

    unit, circular = "", False

    @property
    def choice(self) -> Choice:
        return self

    @property
    def domain(self) -> Options:
        return Options(self.options)

    @property
    def width(self) -> int:
        return 1 if self.ordered else len(self.options)

    @property
    def count(self) -> int:
        return len(self.options)

    @cached_property
    def limits(self) -> tuple[float, float] | None:
        return (float(min(self.options)), float(max(self.options))) if all(map(is_number, self.options)) else None

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

    def from_unit(self, u: Array) -> Array:
        return self.from_levels(np.minimum((u * self.count).astype(np.intp), self.count - 1))

    def from_levels(self, numbers: Array | Numbers) -> Array:
        return np.asarray(self.levels[np.asarray(numbers, dtype=np.intp)])

    def level_numbers(self, rows: Array) -> Array:
        place = np.clip(np.round(rows[:, 0]), 0, self.count - 1) if self.ordered else np.argmax(rows, axis=1)
        return np.asarray(place, dtype=float)

    def values(self, numbers: Array) -> Array:
        if self.limits is None:
            return np.zeros(len(numbers))
        return np.array(self.options, dtype=float)[numbers.astype(np.intp)]

    def levels_to_try(self, row: Array) -> Array:
        return self.levels

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        number = self.find(value)
        if number is not None:
            return tuple(self.levels[number].tolist())
        if several := self._equal(value):
            remedy = f"it equals the options at {several}: give the very object that you mean"
            raise ValueError(f"{name} is {checks.shown(value)}; {remedy}")
        sentence = f"{name} is {checks.shown(value)}; it must be one of {checks.shown(list(self.options))}"
        raise RefusedValue(sentence, "unknown-option", name=name, value=value, options=self.options)

    def decode(self, row: Array) -> Any:
        return self.options[int(self.level_numbers(row[None])[0])]

    def canonical(self, value: Any) -> Any:
        number = self.find(value)
        return None if number is None else self.options[number]

    def nearest(self, number: float) -> Any:
        return min(self.options, key=lambda option: abs(float(option) - number))

    def grid(self, points: int) -> Array:
        return self.levels

    def to_json(self) -> dict[str, Any]:
        values = super().to_json()
        del values["features"]  # a study without descriptors is written as before there were any
        return values if self.features is None else {**values, "features": self.features.to_json()}

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Self:
        features = written.get("features")
        return cls(**{**written, "features": None if features is None else Features.from_json(features)})

    @classmethod
    def from_plain(cls, label: str, value: Any, **others: Any) -> Self:
        return cls(tuple(_checked_list(label, value)), **others)


Parameter: TypeAlias = Real | Int | Choice


def is_number(option: Any) -> bool:
    """Whether an option is a number that a linear constraint may use."""
    return isinstance(option, int | float | np.integer | np.floating) and not isinstance(option, bool)


def thinned(values: Array, most: int) -> Array:
    """Return at most `most` of the ascending values (k, 1), evenly spread, with both ends."""
    if len(values) <= most:
        return values
    wanted = np.linspace(values[0, 0], values[-1, 0], most)
    return np.take(values, np.unique(np.searchsorted(values[:, 0], wanted).clip(0, len(values) - 1)), axis=0)


def _checked_list(label: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{label} is {checks.shown(value)}; give a list")
    return value


def _checked_ends(label: str, value: Any) -> list[Any]:
    if len(_checked_list(label, value)) != 2:
        raise ValueError(f"{label} is {checks.shown(value)}; give the smallest and the largest value, [lo, hi]")
    return list(value)


def _check_when(p: Parameter) -> None:
    """Raise unless the condition is a dict of names and values."""
    if p.when is None:
        return
    name = type(p).__name__
    if not isinstance(p.when, Mapping) or not all(isinstance(parent, str) for parent in p.when):
        remedy = "give a dict such as {'kernel': 'rbf'} or {'kernel': ['a', 'b']}"
        raise TypeError(f"when of {name} is {checks.shown(p.when)}; {remedy}")
    if not p.when:
        raise ValueError(f"when of {name} is empty; leave it out, or name a parameter and its values")
    object.__setattr__(p, "when", dict(p.when))


def check_unit(p: Any) -> None:
    """Raise unless the unit is a string. Shorten it."""
    if not isinstance(p.unit, str):
        raise TypeError(
            f"unit of {type(p).__name__} is {checks.shown(p.unit)}; give a string such as '°C', or leave it out"
        )
    object.__setattr__(p, "unit", shortened(p.unit, UNIT))


def _check_interval(p: Real | Int, words: str) -> None:
    """Raise if the bounds are not finite, not in order, or too wide or narrow for the kernel. Make log a bool."""
    name = type(p).__name__
    lo, hi = (checks.number(f"{end} of {name}", getattr(p, end), f"give {words}") for end in ("lo", "hi"))
    object.__setattr__(p, "log", checks.flag(f"log of {name}", p.log))
    if not lo < hi:
        sentence = f"{name} has lo = {p.lo} and hi = {p.hi}; lo must be smaller than hi"
        raise RefusedValue(sentence, "ends-in-wrong-order", low=p.lo, high=p.hi)
    if not (p.log or _NARROWEST < hi - lo < _WIDEST):
        sentence = f"{name}({p.lo}, {p.hi}) is too wide or too narrow to be squared; give other units"
        raise RefusedValue(sentence, "extreme-range", low=p.lo, high=p.hi)
    if p.log and lo <= 0:
        sentence = f"{name} has log=True and lo = {p.lo}; a logarithmic parameter needs lo > 0"
        raise RefusedValue(sentence, "log-of-nonpositive", low=p.lo)
    if p.log and not math.log(lo) < math.log(hi):
        raise ValueError(f"{name} has log=True and lo = {p.lo}, hi = {p.hi} with equal logarithms; widen the bounds")
