"""What may be queried: a product of parameters or a table of candidates.

A point has two forms. The user's is an array, a dict or a row of a table. The kernel's is a row of d coordinates
(`gpmi.space.parameters`). `encode` goes from the first to the second, `decode` back.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpmi import checks
from gpmi.space.conversion import array_table, box_parameters, frame_columns, labels_of, named_parameters, values_of
from gpmi.space.index import RowIndex
from gpmi.space.parameters import Choice, Parameter, Real
from gpmi.text import shortened
from gpmi.types import Array, FrozenPoint, Numbers, Point

# A column of a DataFrame with no more different numbers than this is a grid. Those of docs/benchmarks/tables.md have
# up to 10 numbers; in the columns of its observed tables with more than 40, ranks do harm.
GRID = 20
ENUMERATED = 20_000  # a discrete space with no more points than this is searched point by point: our choice, not tuned


class SpaceExhausted(Exception):
    """Every candidate has been offered once and repeats=False."""


class Space(ABC):
    """A set of points. `Space.of` makes one from what a user writes."""

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
            f"space is {checks.shown(spec)}; give a list of (lo, hi), a dict of parameters, "
            "or candidates as an array or DataFrame"
        )

    @property
    @abstractmethod
    def lo(self) -> Array:
        """The smallest value of each coordinate, (d,)."""

    @property
    @abstractmethod
    def hi(self) -> Array:
        """The largest value of each coordinate, (d,)."""

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
    def groups(self) -> tuple[int, ...]:
        """The number of the parameter that each coordinate belongs to, (d,)."""

    @property
    @abstractmethod
    def rows(self) -> Array | None:
        """All points as an (m, d) array if the space is searched point by point, otherwise None."""

    @property
    @abstractmethod
    def extent(self) -> tuple[int, int]:
        """The number of points, or of settings of the discrete parameters; and the number of continuous coordinates."""

    def numbers(self, row: Array) -> Numbers:
        """Which of `rows` have these coordinates, ascending. O(d log m) after the first call, O(m d)."""
        return np.empty(0, dtype=np.intp) if self._index is None else self._index.find(row)

    @cached_property
    def _index(self) -> RowIndex | None:
        return None if self.rows is None else RowIndex.of(self.rows)

    def evened(self) -> Space:
        """The same points, with evenly spaced coordinates where a column of candidates is a grid (`Candidates`)."""
        return self

    def copy(self, point: Point) -> Point:
        """A point that the user may change; an option of a Choice is the very object that was given."""
        return np.array(point) if isinstance(point, np.ndarray) else dict(point)

    def frozen(self, point: Point) -> Point:
        """A copy that nobody can change."""
        if not isinstance(point, np.ndarray):
            return FrozenPoint(point)
        copy = np.array(point)
        copy.flags.writeable = False
        return copy

    @property
    @abstractmethod
    def rounding(self) -> Array:
        """How far apart two encodings of one point may be, (d,): the last digit of a real, 0 otherwise."""

    @abstractmethod
    def encode(self, point: Point) -> Array:
        """The coordinates (d,) of a user's point; a ValueError or TypeError if it is not a point of the space."""

    @abstractmethod
    def canonical(self, point: Point) -> Point:
        """A user's point in the form the library hands out: arrays of floats, dicts of plain Python values; a copy."""

    @abstractmethod
    def decode(self, row: Array) -> Point:
        """The user's point at these coordinates."""


@dataclass(frozen=True, eq=False, repr=False)
class Parameters(Space):
    """A product of parameters: a box (names is None, a point is an array) or a named space (a point is a dict)."""

    parameters: tuple[Parameter, ...]
    names: tuple[str, ...] | None

    @staticmethod
    def box(bounds: Sequence[Any]) -> Parameters:
        """[lo_1, hi_1] x ... x [lo_d, hi_d]."""
        return Parameters(box_parameters(bounds), None)

    @staticmethod
    def named(spec: Mapping[Any, Any]) -> Parameters:
        """The product of the parameters of a dict."""
        parameters = named_parameters(spec)
        return Parameters(tuple(parameters.values()), tuple(parameters))

    def __repr__(self) -> str:
        names = self.names or [f"x[{i}]" for i in range(len(self.parameters))]
        parts = [f"{name}: {parameter!r}" for name, parameter in zip(names, self.parameters, strict=True)]
        return shortened(f"<Space of {len(parts)} parameters, {', '.join(parts)}>")

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
    def rounding(self) -> Array:
        largest = np.maximum(np.abs(self.lo), np.abs(self.hi))
        free = np.concatenate([np.full(p.width, p.levels is None) for p in self.parameters])
        return np.where(free, 2.0 * np.spacing(np.maximum(largest, 1.0 if self._any_log else 0.0)), 0.0)

    @property
    def _any_log(self) -> bool:
        """Whether a coordinate is a logarithm, whose error does not vanish where it is 0."""
        return any(isinstance(p, Real) and p.log for p in self.parameters)

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
        """p, the number of parameters: the dimension of the unit cube of `from_unit`."""
        return len(self.parameters)

    def from_unit(self, u: Array) -> Array:
        """Coordinates (m, d) of points u (m, p) of the unit cube, one u for each parameter: for designs and screens."""
        parts = []
        for p, column in zip(self.parameters, u.T, strict=True):
            if p.levels is None:
                lo, hi = p.ends
                parts.append(np.clip(lo + column[:, None] * (hi - lo), lo, hi))
            else:
                k = len(p.levels)
                parts.append(p.levels[np.minimum((column * k).astype(int), k - 1)])
        return np.concatenate(parts, axis=1)

    def encode(self, point: Point) -> Array:
        count = len(self.parameters)
        coordinates: list[float] = []
        for label, parameter, value in zip(
            labels_of(self.names, count), self.parameters, values_of(point, self.names, count), strict=True
        ):
            coordinates.extend(parameter.encode(label, value))
        return np.array(coordinates)

    def canonical(self, point: Point) -> Point:
        self.encode(point)  # refuses what is not a point
        values = values_of(point, self.names, len(self.parameters))
        return self._point([p.canonical(value) for p, value in zip(self.parameters, values, strict=True)])

    def decode(self, row: Array) -> Point:
        return self._point([p.decode(row[column]) for p, column in zip(self.parameters, self.columns, strict=True)])

    def _point(self, values: list[Any]) -> Point:
        return np.array(values) if self.names is None else dict(zip(self.names, values, strict=True))


@dataclass(frozen=True, eq=False, repr=False)
class Candidates(Space):
    """A finite set of points: the rows of an array (a point is an array) or of a DataFrame (a point is a dict).

    Equal rows are one point, whose number is that of the first of them.
    """

    table: Any  # the user's rows: an array (m, d), or a tuple of dicts
    encoded: Array  # (m, d)
    choices: tuple[Choice | None, ...]  # per column of the table; None for a column of numbers
    names: tuple[str, ...] | None
    grids: tuple[Array | None, ...]  # per column: the numbers whose ranks are the coordinates; None for other columns

    @staticmethod
    def from_array(array: NDArray[Any]) -> Candidates:
        """The rows of a 2-D array of numbers."""
        table = array_table(array)
        return Candidates(table, table, (None,) * table.shape[1], None, (None,) * table.shape[1])

    @staticmethod
    def from_frame(frame: Any) -> Candidates:
        """The rows of a pandas DataFrame, whose columns may hold numbers, strings or bools."""
        columns = frame_columns(frame)
        names, choices = tuple(columns), tuple(column.choice for column in columns.values())
        rows = zip(*(column.values for column in columns.values()), strict=True)
        table = tuple(dict(zip(names, row, strict=True)) for row in rows)
        encoded = np.zeros((len(table), sum(map(_width, choices))))
        at = 0  # the first coordinate of a column
        for _, choice, numbers in columns.values():
            if choice is None:
                encoded[:, at] = numbers
            else:
                encoded[np.arange(len(table)), at + numbers] = 1.0
            at += _width(choice)
        encoded.flags.writeable = False
        return Candidates(table, encoded, choices, names, (None,) * len(choices))

    def evened(self) -> Candidates:
        """The same points; in a column of a DataFrame with at most GRID different numbers the coordinate is the rank.

        Who lists a few values of a parameter chooses them so that each step matters: 1e-5, 1e-4, ..., 1, or 16, 32, 64.
        As they are, the small ones would be one point to the kernel. An array keeps its coordinates, in which its user
        may ask the posterior.
        """
        if self.names is None:
            return self
        encoded, grids, at = self.encoded.copy(), list(self.grids), 0
        for j, choice in enumerate(self.choices):
            if choice is None and self.grids[j] is None:
                levels, ranks = np.unique(self.encoded[:, at], return_inverse=True)
                if len(levels) <= GRID:
                    encoded[:, at], grids[j] = ranks, levels
            at += _width(choice)
        encoded.flags.writeable = False
        return replace(self, encoded=encoded, grids=tuple(grids))

    def __repr__(self) -> str:
        names = "" if self.names is None else ", " + ", ".join(self.names)
        return shortened(f"<Space of {len(self.encoded)} candidates, {len(self.choices)} columns{names}>")

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
        return tuple(j for j, choice in enumerate(self.choices) for _ in range(_width(choice)))

    @property
    def extent(self) -> tuple[int, int]:
        return len(self.encoded), 0

    @property
    def rounding(self) -> Array:
        return np.zeros(self.dim)

    def encode(self, point: Point) -> Array:
        count = len(self.choices)
        values = values_of(point, self.names, count)
        row = _coordinates(labels_of(self.names, count), self.choices, self.grids, values)
        if len(self.numbers(row)) == 0:
            told = checks.shown(point)
            raise ValueError(f"x is {told}, which is not among the candidates; tell rows of the candidates only")
        return row

    def canonical(self, point: Point) -> Point:
        return self.decode(self.encode(point))

    def decode(self, row: Array) -> Point:
        number = self.numbers(row)[0]
        return np.array(self.table[number]) if self.names is None else dict(self.table[number])


def _width(choice: Choice | None) -> int:
    """The number of coordinates of a column."""
    return 1 if choice is None else choice.width


def _coordinates(
    labels: Iterable[str], choices: Iterable[Choice | None], grids: Iterable[Array | None], values: Iterable[Any]
) -> Array:
    """The coordinates (d,) of one row of a table; a choice of None stands for a number. nan for one not in its grid."""
    coordinates: list[float] = []
    for label, choice, grid, value in zip(labels, choices, grids, values, strict=True):
        if choice is not None:
            coordinates.extend(choice.encode(label, value))
        else:
            number = checks.number(label, value) + 0.0  # -0.0 is 0.0
            coordinates.append(number if grid is None else _rank(grid, number))
    return np.array(coordinates)


def _rank(grid: Array, number: float) -> float:
    """The place of a number in the grid, nan if it is not in it."""
    place = int(np.searchsorted(grid, number))
    return float(place) if place < len(grid) and grid[place] == number else math.nan
