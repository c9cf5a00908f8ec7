"""A finite set of points: the rows of an array or of a DataFrame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpmi._support import checks
from gpmi._support.refusals import reworded
from gpmi._support.text import shortened
from gpmi._support.types import Array, Event, LabelledPoint, Mask, Point
from gpmi.space.choice import Choice
from gpmi.space.constraints.constraints import (
    NO_CONSTRAINTS,
    TOLD_TOLERANCE,
    Constraints,
    column_operand,
    parameter_operand,
    read_constraints,
)
from gpmi.space.features import FeatureColumns
from gpmi.space.fixed_values import fixed_by_number
from gpmi.space.points import as_point, copied, labels_of, values_of
from gpmi.space.space import Space
from gpmi.space.tables import Column, array_table, frame_columns, named_columns

# A column of a DataFrame with at most this many different numbers is a grid. Grids of docs/benchmarks/tables.md
# have up to 10 numbers; in its observed tables, ranks hurt for columns with more than 40 distinct numbers.
GRID = 20


@dataclass(frozen=True, eq=False, repr=False)
class Candidates(Space):
    """A finite set of points: the rows of an array (a point is an array) or of a DataFrame (a point is a dict).

    Equal rows are one point, numbered like the first of them. The point of a DataFrame's row has the row's label, from
    the DataFrame's index, as its attribute `label`.
    """

    table: Any  # the user's rows: an array (m, d), or a tuple of dicts with labels
    encoded: Array  # (m, d)
    choices: tuple[Choice | None, ...]  # per column of the table; None for a column of numbers
    names: tuple[str, ...] | None
    grids: tuple[Array | None, ...]  # per column: the numbers whose ranks are the coordinates; None for other columns
    constraints: Constraints = NO_CONSTRAINTS  # which all rows satisfy
    dropped: int = 0  # the number of rows that broke one
    fixed: Mapping[Any, Any] = field(default_factory=dict)  # fixed values, by name or number of the column

    @staticmethod
    def from_spec(spec: Any, features: Mapping[str, Any] | None = None) -> Candidates | None:
        if isinstance(spec, np.ndarray):
            return Candidates.from_array(spec)
        if hasattr(spec, "columns") and hasattr(spec, "iloc"):
            return Candidates.from_frame(spec, features)
        return None

    @staticmethod
    def from_array(array: NDArray[Any]) -> Candidates:
        """Return the rows of a 2-D array of numbers."""
        table = array_table(array)
        return Candidates(table, table, (None,) * table.shape[1], None, (None,) * table.shape[1])

    @staticmethod
    def from_frame(frame: Any, features: Mapping[str, Any] | None = None) -> Candidates:
        """Return the rows of a pandas DataFrame, whose columns may hold numbers, strings or bools.

        `features` are the descriptors of the options of some columns, as for a `Choice`.
        """
        return Candidates._from_read(frame_columns(frame, features), frame.index.tolist())

    @staticmethod
    def from_columns(
        columns: Mapping[str, Sequence[Any]],
        labels: Sequence[Any] | None = None,
        features: Mapping[str, Any] | None = None,
    ) -> Candidates:
        """Return the rows of a table given by its columns, as for a DataFrame. By default the labels are 0, 1, ..."""
        read = named_columns(columns, features)
        count = len(next(iter(read.values())).values)
        return Candidates._from_read(read, list(range(count)) if labels is None else list(labels))

    @staticmethod
    def _from_read(columns: Mapping[str, Column], labels: list[Any]) -> Candidates:
        names, choices = tuple(columns), tuple(column.choice for column in columns.values())
        rows = zip(*(column.values for column in columns.values()), strict=True)
        table = tuple(
            LabelledPoint(zip(names, row, strict=True), label) for row, label in zip(rows, labels, strict=True)
        )
        encoded = np.zeros((len(table), sum(map(_width, choices))))
        at = 0  # the first coordinate of the column
        for _, choice, numbers in columns.values():
            if choice is None:
                encoded[:, at] = numbers
            else:
                encoded[np.arange(len(table)), at + numbers] = 1.0
            at += _width(choice)
        encoded.flags.writeable = False
        return Candidates(table, encoded, choices, names, (None,) * len(choices))

    def with_ranks(self) -> Candidates:
        """Return the same points, with ranks as coordinates in columns of a DataFrame with at most GRID numbers.

        Users list a few values of a parameter so that each step matters: 1e-5, 1e-4, ..., 1, or 16, 32, 64. Taken as
        coordinates, the small ones would be one point to the kernel. An array keeps its coordinates, because its user
        may query the posterior in them.
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
        fewer = f", {self.dropped} more break a constraint" if self.dropped else ""
        return shortened(f"<Space of {len(self.encoded)} candidates{fewer}, {len(self.choices)} columns{names}>")

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

    @cached_property
    def features(self) -> FeatureColumns | None:
        described = [None if choice is None else choice.features for choice in self.choices]
        return FeatureColumns.of(zip(self.columns, described, strict=True), self.groups)

    @property
    def extent(self) -> tuple[int, int]:
        return len(self.encoded), 0

    @property
    def rounding(self) -> Array:
        return np.zeros(self.dim)

    def encode(self, point: Point) -> Array:
        count = len(self.choices)
        labels, values = labels_of(self.names, count), values_of(point, self.names, count)
        row = _coordinates(labels, self.choices, self.grids, values)
        if len(self.row_numbers(row)) == 0:
            if self.constraints.texts:
                numbers = _coordinates(labels, self.choices, (None,) * count, values)[None]  # no ranks
                active = np.ones(count, dtype=bool)
                self.constraints.check(point, self._values(numbers)[0], self._codes(numbers)[0], active, as_point)
            text = checks.shown(point)
            raise ValueError(f"x is {text}, which is not among the candidates; tell rows of the candidates only")
        return row

    def canonical(self, point: Point) -> Point:
        return self.decode(self.encode(point))

    def decode(self, row: Array) -> Point:
        return copied(self.table[self.row_numbers(row)[0]])

    # Fixed coordinates

    def with_fixed(self, fixed: Any) -> Candidates:
        count = len(self.choices)
        labels, by_number = labels_of(self.names, count), fixed_by_number(fixed, self.names, count)
        left = np.ones(len(self.encoded), dtype=bool)
        for j, value in by_number.items():
            try:
                row = _coordinates(labels[j : j + 1], self.choices[j : j + 1], self.grids[j : j + 1], [value])
            except (TypeError, ValueError) as error:
                raise reworded(error, f"fixed: {error}") from None
            here: Mask = np.all(self.encoded[:, self.columns[j]] == row, axis=1)
            if not here.any():
                raise ValueError(
                    f"fixed: {labels[j]} is {checks.shown(value)}, which no candidate has{self._nearest(j, value)}"
                )
            left &= here
        if not left.any():
            raise ValueError(f"fixed is {checks.shown(dict(fixed))}; no candidate has these values together")
        part = self._only(left)
        first: Any = part.table[0]
        if self.names:
            values: dict[Any, Any] = {self.names[j]: first[self.names[j]] for j in by_number}
        else:
            values = {j: float(first[j]) for j in by_number}
        return replace(part, fixed=values)

    def _only(self, left: Mask) -> Candidates:
        """Return the part with these rows (m,)."""
        encoded = self.encoded[left]
        encoded.flags.writeable = False
        return replace(self, table=tuple(compress(self.table, left)) if self.names else encoded, encoded=encoded)

    def _nearest(self, j: int, value: Any) -> str:
        """Return the value of a column of numbers that is nearest to another one, in words."""
        if self.choices[j] is not None:
            return ""
        column, grid = self.encoded[:, self.columns[j]].ravel(), self.grids[j]
        numbers = column if grid is None else grid
        return f"; the nearest value is {numbers[np.abs(numbers - float(value)).argmin()]:g}"

    def fixed_values(self) -> dict[Any, Any]:
        return dict(self.fixed)

    @property
    def fixed_coordinates(self) -> tuple[tuple[int, bytes], ...]:
        numbers = [j if self.names is None else self.names.index(j) for j in self.fixed]
        return tuple((j, self.encoded[0, self.columns[j]].tobytes()) for j in numbers)

    def contains(self, row: Array) -> bool:
        return len(self.row_numbers(row)) > 0

    # Constraints

    @property
    def events(self) -> tuple[Event, ...]:
        total, events = len(self.encoded) + self.dropped, []
        if self.dropped:
            events.append(Event("dropped candidates", f"{self.dropped} of {total} candidates break a constraint"))
        if self._index is not None and (repeated := self._index.count_repeated()):
            text = f"{repeated} of {len(self.encoded)} rows equal an earlier row and count as one point with it"
            events.append(Event("duplicate candidates", text))
        for name, choice in zip(self.names or (), self.choices, strict=False):
            if choice is not None and choice.features is not None:
                events += choice.features.event(name)
        return tuple(events)

    def constrained(self, constraints: Any) -> Candidates:
        """Return the rows that satisfy the constraints. `dropped` says how many did not."""
        if constraints is None:
            return self
        names = self.names or tuple(f"x{j}" for j in range(len(self.choices)))
        operands = [
            column_operand(name, self.encoded[:, columns]) if choice is None else parameter_operand(name, choice)
            for name, choice, columns in zip(names, self.choices, self.columns, strict=True)
        ]
        read = read_constraints(constraints, operands)
        values, codes = self._values(self.encoded), self._codes(self.encoded)
        satisfied = read.satisfied(values, codes, self.table, TOLD_TOLERANCE, copied)
        left: Mask = np.all(satisfied, axis=1)
        if not left.any():
            raise read.conflict(read.conflict_in(satisfied), "no candidate is left")
        return replace(self._only(left), constraints=read, dropped=self.dropped + int((~left).sum()))

    @cached_property
    def columns(self) -> tuple[slice, ...]:
        ends = np.cumsum([_width(choice) for choice in self.choices])
        return tuple(slice(int(end) - _width(choice), int(end)) for end, choice in zip(ends, self.choices, strict=True))

    def _codes(self, rows: Array) -> Array:
        """Return the number, or the position of the option, in each column at coordinates (m, d)."""
        pairs = zip(self.choices, self.columns, strict=True)
        codes = [rows[:, c.start] if choice is None else choice.level_numbers(rows[:, c]) for choice, c in pairs]
        return np.stack(codes, axis=1)

    def _values(self, rows: Array) -> Array:
        """Return the numbers of each column at coordinates (m, d), 0 where they are words."""
        codes = self._codes(rows)
        for j, choice in enumerate(self.choices):
            if choice is not None:
                codes[:, j] = choice.values(codes[:, j])
        return codes


def _width(choice: Choice | None) -> int:
    """Return the number of coordinates of a column."""
    return 1 if choice is None else choice.width


def _coordinates(
    labels: Iterable[str], choices: Iterable[Choice | None], grids: Iterable[Array | None], values: Iterable[Any]
) -> Array:
    """Return the coordinates (d,) of one row of a table. A choice of None means a number; nan if not in its grid."""
    coordinates: list[float] = []
    for label, choice, grid, value in zip(labels, choices, grids, values, strict=True):
        if choice is not None:
            coordinates.extend(choice.encode(label, value))
        else:
            number = checks.number(label, value) + 0.0  # -0.0 is 0.0
            coordinates.append(number if grid is None else _rank(grid, number))
    return np.array(coordinates)


def _rank(grid: Array, number: float) -> float:
    """Return the position of a number in the grid, nan if it is not in it."""
    position = int(np.searchsorted(grid, number))
    return float(position) if position < len(grid) and grid[position] == number else math.nan
