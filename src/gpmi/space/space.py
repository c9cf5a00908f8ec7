"""What may be queried, and how a point looks to the user and to the kernel.

The user's point is an array, a dict or a row of a table. The kernel's is a row of d coordinates "as given": a Real
or an Int by its value (its natural logarithm with log=True), a Choice by one 0/1 coordinate per option.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from numbers import Real as RealNumber
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpmi import checks
from gpmi.types import Array, Point

ENUMERATED = 20_000  # a space of at most so many points is searched point by point


class SpaceExhausted(Exception):
    """Every candidate has been offered once and repeats=False."""


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
        """The interval in the kernel's coordinates, (2, 1)."""
        ends = np.array([[self.lo], [self.hi]])
        return np.log(ends) if self.log else ends

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        number = checks.number(name, value)
        if not self.lo <= number <= self.hi:
            raise ValueError(f"{name} is {value!r}, outside [{self.lo}, {self.hi}]; tell points of the space only")
        return (math.log(number) if self.log else number + 0.0,)

    def decode(self, row: Array) -> float:
        lo, hi = self.ends[:, 0]
        if row[0] <= lo or row[0] >= hi:  # exactly the ends, whatever exp(log(.)) rounds to
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
        if self.hi - self.lo >= 10**7 or max(-self.lo, self.hi) > (10**12 if self.log else 2**53):
            raise ValueError(f"Int({self.lo}, {self.hi}) has too many or too large values; use Real and round in f")

    width = 1

    @cached_property
    def levels(self) -> Array:
        """All values in the kernel's coordinates, (k, 1)."""
        values = np.arange(self.lo, self.hi + 1, dtype=float)[:, None]
        return np.log(values) if self.log else values

    @property
    def ends(self) -> Array:
        return self.levels[[0, -1]]

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        number = checks.number(name, value, "give a whole number")
        if number != round(number):
            raise ValueError(f"{name} is {value!r}; it must be a whole number")
        if not self.lo <= number <= self.hi:
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
        for option in options:
            if not _same(option, option):
                raise ValueError(f"options has {option!r}, which does not equal itself; give another word for it")
        for i, option in enumerate(options):
            if self.find(option) != i:
                raise ValueError(f"options has {option!r} twice; give each option once")
        object.__setattr__(self, "options", options)

    @cached_property
    def _numbers(self) -> dict[tuple[bool, Any], int]:
        """The first number of each option that can be hashed; True and 1 are two options."""
        numbers: dict[tuple[bool, Any], int] = {}
        for i, option in enumerate(self.options):
            if isinstance(option, Hashable):
                with suppress(TypeError):  # a tuple that holds a list
                    numbers.setdefault(_key(option), i)
        return numbers

    def find(self, value: Any) -> int | None:
        """The number of the first option equal to value."""
        with suppress(TypeError):
            number = self._numbers.get(_key(value))
            if number is not None and _same(self.options[number], value):
                return number
        return next((i for i, option in enumerate(self.options) if _same(option, value)), None)

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


class Space(ABC):
    """A set of points. `Space.of` makes one from what a user writes."""

    @property
    @abstractmethod
    def lo(self) -> Array:
        """The smallest value of each coordinate, (d,)."""

    @property
    @abstractmethod
    def hi(self) -> Array:
        """The largest value of each coordinate, (d,)."""

    @property
    @abstractmethod
    def groups(self) -> tuple[int, ...]:
        """The parameter that each coordinate belongs to, (d,)."""

    @staticmethod
    def of(spec: Any) -> Space:
        """A box from a list of (lo, hi), a named space from a dict, a finite set from an array or DataFrame."""
        if isinstance(spec, Space):
            return spec
        if isinstance(spec, Mapping):
            return Parameters.named(spec)
        if isinstance(spec, np.ndarray):
            return Candidates.from_array(spec)
        if hasattr(spec, "columns") and hasattr(spec, "iloc"):
            return Candidates.from_frame(spec)
        if isinstance(spec, Sequence) and not isinstance(spec, str):
            return Parameters.box(spec)
        raise TypeError(
            f"space is {spec!r}; give a list of (lo, hi), a dict of parameters, or candidates as an array or DataFrame"
        )

    @property
    def dim(self) -> int:
        """d, the number of the kernel's coordinates."""
        return len(self.lo)

    @property
    def span(self) -> Array:
        """hi - lo, (d,), 1 where a coordinate does not vary."""
        span = self.hi - self.lo
        return np.where(span > 0.0, span, 1.0)

    @property
    @abstractmethod
    def rows(self) -> Array | None:
        """All points as an (m, d) array where there are finitely many and not too many; otherwise None."""

    @property
    @abstractmethod
    def extent(self) -> tuple[int, int]:
        """The number of points, or of settings of the discrete parameters, and that of the continuous coordinates."""

    def numbers(self, row: Array) -> NDArray[np.intp]:
        """The numbers of those of `rows` that have these coordinates, on a finite set. O(m)."""
        if self.rows is None:
            return np.empty(0, dtype=np.intp)
        near = np.flatnonzero(self.rows[:, 0] == row[0])
        return near[np.all(self.rows[near] == row, axis=1)]

    @abstractmethod
    def encode(self, point: Point) -> Array:
        """The coordinates (d,) of a user's point; a ValueError or TypeError if it is not a point of the space."""

    @abstractmethod
    def canonical(self, point: Point) -> Point:
        """A user's point in the form the library hands out: arrays of floats, dicts of plain Python values; a copy."""

    @abstractmethod
    def decode(self, row: Array) -> Point:
        """The user's point at these coordinates."""


@dataclass(frozen=True, eq=False)
class Parameters(Space):
    """A product of parameters: a box (names is None, a point is an array) or a named space (a point is a dict)."""

    parameters: tuple[Parameter, ...]
    names: tuple[str, ...] | None

    @staticmethod
    def box(bounds: Sequence[Any]) -> Parameters:
        if len(bounds) == 0:
            raise ValueError("space is empty; give at least one pair (lo, hi)")
        return Parameters(tuple(_real(f"bounds[{i}]", pair) for i, pair in enumerate(bounds)), None)

    @staticmethod
    def named(spec: Mapping[Any, Any]) -> Parameters:
        if len(spec) == 0:
            raise ValueError("space is an empty dict; give at least one parameter")
        names = tuple(spec)
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"parameter name {name!r} is not a string; name parameters by strings")
        return Parameters(tuple(_parameter(name, value) for name, value in spec.items()), names)

    @cached_property
    def _ends(self) -> Array:
        return np.concatenate([p.ends for p in self.parameters], axis=1)

    @property
    def lo(self) -> Array:
        result: Array = self._ends[0]
        return result

    @property
    def hi(self) -> Array:
        result: Array = self._ends[1]
        return result

    @cached_property
    def groups(self) -> tuple[int, ...]:
        return tuple(i for i, p in enumerate(self.parameters) for _ in range(p.width))

    @cached_property
    def columns(self) -> tuple[slice, ...]:
        """The coordinates of each parameter."""
        ends = np.cumsum([p.width for p in self.parameters])
        return tuple(slice(int(end) - p.width, int(end)) for end, p in zip(ends, self.parameters, strict=True))

    @cached_property
    def combinations(self) -> int:
        """The number of settings of the parameters that are not Real."""
        return math.prod(len(p.levels) for p in self.parameters if p.levels is not None)

    @cached_property
    def rows(self) -> Array | None:
        if any(p.levels is None for p in self.parameters) or self.combinations > ENUMERATED:
            return None
        sizes = [len(p.levels) for p in self.parameters if p.levels is not None]
        picks = np.indices(sizes).reshape(len(sizes), -1)
        return np.concatenate(
            [p.levels[i] for p, i in zip(self.parameters, picks, strict=True) if p.levels is not None], axis=1
        )

    @cached_property
    def extent(self) -> tuple[int, int]:
        return self.combinations, sum(p.levels is None for p in self.parameters)

    @property
    def unit_dim(self) -> int:
        """p, the number of parameters: what `from_unit` takes."""
        return len(self.parameters)

    def from_unit(self, u: Array) -> Array:
        """Coordinates (m, d) of points u (m, p) of the unit cube, one u per parameter: for designs and screens."""
        parts = []
        for p, column in zip(self.parameters, u.T, strict=True):
            if p.levels is None:
                lo, hi = p.ends
                parts.append(np.clip(lo + column[:, None] * (hi - lo), lo, hi))
            else:
                k = len(p.levels)
                parts.append(p.levels[np.minimum((column * k).astype(int), k - 1)])
        return np.concatenate(parts, axis=1)

    def canonical(self, point: Point) -> Point:
        self.encode(point)
        values = point if self.names is None else [point[name] for name in self.names]
        plain = [p.canonical(value) for p, value in zip(self.parameters, values, strict=True)]
        return np.array(plain) if self.names is None else dict(zip(self.names, plain, strict=True))

    def encode(self, point: Point) -> Array:
        if self.names is None:
            values, labels = _sequence(point, len(self.parameters)), [f"x[{i}]" for i in range(len(self.parameters))]
        else:
            _check_keys(point, self.names)
            values, labels = [point[name] for name in self.names], list(self.names)
        coordinates: list[float] = []
        for label, parameter, value in zip(labels, self.parameters, values, strict=True):
            coordinates.extend(parameter.encode(label, value))
        return np.array(coordinates)

    def decode(self, row: Array) -> Point:
        values = [p.decode(row[column]) for p, column in zip(self.parameters, self.columns, strict=True)]
        return np.array(values) if self.names is None else dict(zip(self.names, values, strict=True))


@dataclass(frozen=True, eq=False)
class Candidates(Space):
    """A finite set of points: the rows of an array (a point is an array) or of a DataFrame (a point is a dict).

    Equal rows are one point, whose number is that of the first of them.
    """

    table: Any  # the user's rows: an array (m, d), or a tuple of dicts
    encoded: Array  # (m, d)
    choices: tuple[Choice | None, ...]  # per column of the table; None for a column of numbers
    names: tuple[str, ...] | None

    @staticmethod
    def from_array(array: NDArray[Any]) -> Candidates:
        if array.ndim != 2:
            hint = "; reshape(-1, 1) makes a column of it" if array.ndim == 1 else ""
            raise ValueError(f"candidates have shape {array.shape}; give shape (m, d), one candidate per row{hint}")
        if array.size == 0:
            raise ValueError(f"candidates have shape {array.shape}; give at least one candidate and one coordinate")
        if np.ma.isMaskedArray(array):
            raise TypeError("candidates is a masked array; leave out what is masked and give an ordinary array")
        if array.dtype.kind in "iu" and np.abs(array, dtype=float).max(initial=0.0) > 2**53:
            raise ValueError("candidates have whole numbers above 2**53, which floating point cannot tell apart")
        if array.dtype.kind not in "fiu":
            raise TypeError(f"candidates have dtype {array.dtype}; give numbers, or a DataFrame for mixed columns")
        table = np.array(array, dtype=float) + 0.0  # -0.0 is 0.0
        for j, column in enumerate(table.T):
            _check_column(f"column {j} of the candidates", column)
        table.flags.writeable = False
        return Candidates(table, table, (None,) * table.shape[1], None)

    @staticmethod
    def from_frame(frame: Any) -> Candidates:
        names = tuple(frame.columns)
        if len(frame) == 0 or len(names) == 0:
            raise ValueError(f"candidates have shape {frame.shape}; give at least one row and one column")
        for i, name in enumerate(names):
            if not isinstance(name, str):
                raise TypeError(f"column name {name!r} is not a string; name columns by strings")
            if name in names[:i]:
                raise ValueError(f"column {name!r} stands twice in the DataFrame; parameter names must differ")
        values = [frame[name].tolist() for name in names]
        choices = [_column_choice(name, column) for name, column in zip(names, values, strict=True)]
        table = tuple(dict(zip(names, row, strict=True)) for row in zip(*values, strict=True))
        space = Candidates(table, np.empty((0, 0)), tuple(choices), names)
        return replace(space, encoded=np.array([space._coordinates(point.values()) for point in table]))

    @property
    def rows(self) -> Array:
        return self.encoded

    @cached_property
    def lo(self) -> Array:
        result: Array = np.min(self.encoded, axis=0)
        return result

    @cached_property
    def hi(self) -> Array:
        result: Array = np.max(self.encoded, axis=0)
        return result

    @cached_property
    def groups(self) -> tuple[int, ...]:
        return tuple(j for j, choice in enumerate(self.choices) for _ in range(1 if choice is None else choice.width))

    @property
    def extent(self) -> tuple[int, int]:
        return len(self.encoded), 0

    def _coordinates(self, values: Iterable[Any]) -> Array:
        labels = self.names or [f"x[{j}]" for j in range(len(self.choices))]
        coordinates: list[float] = []
        for label, choice, value in zip(labels, self.choices, values, strict=True):
            if choice is None:
                coordinates.append(checks.number(label, value))
            else:
                coordinates.extend(choice.encode(label, value))
        return np.array(coordinates)

    def encode(self, point: Point) -> Array:
        if self.names is None:
            values = _sequence(point, len(self.choices))
        else:
            _check_keys(point, self.names)
            values = [point[name] for name in self.names]
        row = self._coordinates(values)
        if len(self.numbers(row)) == 0:
            raise ValueError(f"x is {point!r}, which is not among the candidates; tell rows of the candidates only")
        return row

    def decode(self, row: Array) -> Point:
        number = self.numbers(row)[0]
        return np.array(self.table[number]) if self.names is None else dict(self.table[number])

    def canonical(self, point: Point) -> Point:
        return self.decode(self.encode(point))


def _real(label: str, pair: Any) -> Real:
    if isinstance(pair, Real):
        return pair
    pair_like = isinstance(pair, list | tuple) or (isinstance(pair, np.ndarray) and pair.ndim == 1)
    if pair_like and len(pair) == 2:
        try:
            return Real(pair[0], pair[1])
        except (TypeError, ValueError) as error:
            raise type(error)(f"{label}: {error}") from None
    raise TypeError(f"{label} is {pair!r}; give a pair (lo, hi), or a dict for parameters of other kinds")


def _parameter(name: str, value: Any) -> Parameter:
    """Real, Int and Choice stand for themselves, a tuple (lo, hi) for Real, a list for Choice."""
    if isinstance(value, Real | Int | Choice):
        return value
    if isinstance(value, tuple):
        if any(isinstance(end, str) for end in value):
            raise TypeError(f"parameter {name!r} is {value!r}; give a list for options, a tuple (lo, hi) for a number")
        return _real(f"parameter {name!r}", value)
    if isinstance(value, list):
        try:
            return Choice(tuple(value))
        except (TypeError, ValueError) as error:
            raise type(error)(f"parameter {name!r}: {error}") from None
    raise TypeError(f"parameter {name!r} is {value!r}; give Real, Int, a tuple (lo, hi), or a list of options")


def _check_interval(p: Real | Int, words: str) -> None:
    name = type(p).__name__
    lo, hi = (checks.number(f"{end} of {name}", getattr(p, end), f"give {words}") for end in ("lo", "hi"))
    object.__setattr__(p, "log", checks.flag(f"log of {name}", p.log))
    if not lo < hi:
        raise ValueError(f"{name} has lo = {p.lo} and hi = {p.hi}; lo must be smaller than hi")
    if not (p.log or 1e-100 < hi - lo < 1e100):
        raise ValueError(f"{name}({p.lo}, {p.hi}) is too wide or too narrow to be squared; give other units")
    if p.log and lo <= 0:
        raise ValueError(f"{name} has log=True and lo = {p.lo}; a logarithmic parameter needs lo > 0")
    if p.log and not math.log(lo) < math.log(hi):
        raise ValueError(f"{name} has log=True and lo = {p.lo}, hi = {p.hi} with equal logarithms; widen the bounds")


def _sequence(point: Any, d: int) -> list[Any]:
    """The coordinates of a point that must be an array of shape (d,)."""
    if checks.shape(point) != (d,):
        raise ValueError(f"x is {point!r}; a point of this space is an array of shape ({d},)")
    return list(point)


def _key(option: Any) -> tuple[bool, Any]:
    """What tells options apart in a dict."""
    return isinstance(option, bool | np.bool_), option


def _same(a: Any, b: Any) -> bool:
    """Equality of options: True is not 1, arrays are equal as a whole, and what cannot be compared is not equal."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and np.array_equal(a, b)
    try:
        with np.errstate(all="ignore"):  # numbers of different precision
            return isinstance(a, bool | np.bool_) == isinstance(b, bool | np.bool_) and bool(a == b)
    except (TypeError, ValueError, OverflowError):
        return False


def _check_keys(point: Any, names: tuple[str, ...]) -> None:
    if not isinstance(point, Mapping):
        raise TypeError(f"x is {point!r}; a point of this space is a dict with the keys {list(names)}")
    missing, extra = [k for k in names if k not in point], [k for k in point if k not in names]
    if missing or extra:
        raise ValueError(f"x has wrong keys (missing {missing}, unknown {extra}); it needs exactly {list(names)}")


def _column_choice(name: str, column: list[Any]) -> Choice | None:
    """What a column of a DataFrame is: None for numbers, otherwise the choice between its values."""
    label = f"column {name!r} of the candidates"
    if all(isinstance(v, RealNumber) and not isinstance(v, bool) for v in column):
        try:
            _check_column(label, np.array(column, dtype=float))
        except OverflowError:
            raise ValueError(f"{label} has a number too large for floating point; give it in other units") from None
        return None
    try:
        options = dict.fromkeys(_key(value) for value in column)
    except TypeError:
        raise TypeError(f"{label} has values such as {column[0]!r}; give numbers, strings or bools") from None
    for row, value in enumerate(column):
        if not _same(value, value):
            raise ValueError(f"{label} is {value!r} in row {row}; leave out candidates with missing values")
    return Choice(tuple(value for _, value in options))


def _check_column(label: str, column: Array) -> None:
    if not np.all(np.isfinite(column)):
        row = int(np.flatnonzero(~np.isfinite(column))[0])
        raise ValueError(f"{label} is {column[row]} in row {row}; leave out candidates that are not finite")
