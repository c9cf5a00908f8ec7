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
from gpmi._support.text import shortened
from gpmi._support.types import Array, Event, LabelledPoint, Mask, Point
from gpmi.space.conditions.conditions import level_numbers
from gpmi.space.constraints.constraints import TOLD, Codes, Field, Rules, minimal, nothing_left, rules_of
from gpmi.space.conversion import Column, array_table, as_point, frame_columns, labels_of, named_columns, values_of
from gpmi.space.fixed import numbers_given
from gpmi.space.layout import numeric
from gpmi.space.parameters import Choice
from gpmi.space.space import Space

# A column of a DataFrame with no more different numbers than this is a grid. Those of docs/benchmarks/tables.md have
# up to 10 numbers; in the columns of its observed tables with more than 40, ranks do harm.
GRID = 20


@dataclass(frozen=True, eq=False, repr=False)
class Candidates(Space):
    """A finite set of points: the rows of an array (a point is an array) or of a DataFrame (a point is a dict).

    Equal rows are one point, whose number is that of the first of them. The point of a DataFrame's row has the label of
    the row, from the DataFrame's index, as its attribute `label`.
    """

    table: Any  # the user's rows: an array (m, d), or a tuple of dicts with labels
    encoded: Array  # (m, d)
    choices: tuple[Choice | None, ...]  # per column of the table; None for a column of numbers
    names: tuple[str, ...] | None
    grids: tuple[Array | None, ...]  # per column: the numbers whose ranks are the coordinates; None for other columns
    rules: Rules | None = None  # that the rows keep to
    dropped: int = 0  # the number of rows that broke one
    fixed: Mapping[Any, Any] = field(default_factory=dict)  # what is given, by name or number of the column

    @staticmethod
    def meant_by(spec: Any) -> Candidates | None:
        if isinstance(spec, np.ndarray):
            return Candidates.from_array(spec)
        if hasattr(spec, "columns") and hasattr(spec, "iloc"):
            return Candidates.from_frame(spec)
        return None

    @staticmethod
    def from_array(array: NDArray[Any]) -> Candidates:
        """The rows of a 2-D array of numbers."""
        table = array_table(array)
        return Candidates(table, table, (None,) * table.shape[1], None, (None,) * table.shape[1])

    @staticmethod
    def from_frame(frame: Any) -> Candidates:
        """The rows of a pandas DataFrame, whose columns may hold numbers, strings or bools."""
        return Candidates._of(frame_columns(frame), frame.index.tolist())

    @staticmethod
    def from_columns(columns: Mapping[str, Sequence[Any]], labels: Sequence[Any] | None = None) -> Candidates:
        """The rows of a table given by its columns, as those of a DataFrame; labels are 0, 1, ... unless given."""
        read = named_columns(columns)
        count = len(next(iter(read.values())).values)
        return Candidates._of(read, list(range(count)) if labels is None else list(labels))

    @staticmethod
    def _of(columns: Mapping[str, Column], labels: list[Any]) -> Candidates:
        names, choices = tuple(columns), tuple(column.choice for column in columns.values())
        rows = zip(*(column.values for column in columns.values()), strict=True)
        table = tuple(
            LabelledPoint(zip(names, row, strict=True), label) for row, label in zip(rows, labels, strict=True)
        )
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
        if len(self.numbers(row)) == 0:
            told = checks.shown(point)
            if self.rules is not None:
                plain = _coordinates(labels, self.choices, (None,) * count, values)[None]  # ranks are for the kernel
                self.rules.check(
                    point,
                    self._values(plain)[0],
                    self._codes(plain)[0],
                    np.ones(count, dtype=bool),
                    lambda x: as_point(point),
                )
            raise ValueError(f"x is {told}, which is not among the candidates; tell rows of the candidates only")
        return row

    def canonical(self, point: Point) -> Point:
        return self.decode(self.encode(point))

    def decode(self, row: Array) -> Point:
        number = self.numbers(row)[0]
        return self.copy(self.table[number])

    # Given coordinates

    def given(self, fixed: Any) -> Candidates:
        labels = labels_of(self.names, len(self.choices))
        kept, given = np.ones(len(self.encoded), dtype=bool), numbers_given(fixed, self.names, len(self.choices))
        for j, value in given.items():
            try:
                row = _coordinates(labels[j : j + 1], self.choices[j : j + 1], self.grids[j : j + 1], [value])
            except (TypeError, ValueError) as error:
                raise type(error)(f"fixed: {error}") from None
            here: Mask = np.all(self.encoded[:, self.columns[j]] == row, axis=1)
            if not here.any():
                raise ValueError(
                    f"fixed: {labels[j]} is {checks.shown(value)}, which no candidate has{self._near(j, value)}"
                )
            kept &= here
        if not kept.any():
            raise ValueError(f"fixed is {checks.shown(dict(fixed))}; no candidate has these values together")
        table = self.table[kept] if self.names is None else tuple(compress(self.table, kept))
        encoded = self.encoded[kept]
        encoded.flags.writeable = False
        first: Any = table[0]
        values = (
            {self.names[j]: first[self.names[j]] for j in given} if self.names else {j: float(first[j]) for j in given}
        )
        return replace(self, table=table, encoded=encoded, fixed=values)

    def _near(self, j: int, value: Any) -> str:
        """The value of a column of numbers that is nearest to another one, in words."""
        if self.choices[j] is not None:
            return ""
        column, grid = self.encoded[:, self.columns[j]].ravel(), self.grids[j]
        numbers = column if grid is None else grid
        return f"; the nearest value is {numbers[np.abs(numbers - float(value)).argmin()]:g}"

    def values_given(self) -> dict[Any, Any]:
        return dict(self.fixed)

    @property
    def pins(self) -> tuple[tuple[int, bytes], ...]:
        numbers = [j if self.names is None else self.names.index(j) for j in self.fixed]
        return tuple((j, self.encoded[0, self.columns[j]].tobytes()) for j in numbers)

    def has(self, row: Array) -> bool:
        return len(self.numbers(row)) > 0

    # Constraints

    @property
    def events(self) -> tuple[Event, ...]:
        total, found = len(self.encoded) + self.dropped, []
        if self.dropped:
            found.append(Event("dropped candidates", f"{self.dropped} of {total} candidates break a constraint"))
        if self._index is not None and (repeated := self._index.repeated()):
            words = (
                f"{repeated} of {len(self.encoded)} rows are equal to one before them and count as one point with it"
            )
            found.append(Event("duplicate candidates", words))
        return tuple(found)

    def constrained(self, constraints: Any) -> Candidates:
        """The rows that keep to the constraints; the others are dropped, and `dropped` says how many."""
        if constraints is None:
            return self
        names = self.names or tuple(f"x{j}" for j in range(len(self.choices)))
        rules = rules_of(constraints, [self._field(name, j) for j, name in enumerate(names)])
        linear = rules.excess(self._values(self.encoded)) <= TOLD * rules.sizes
        own = [[Rules((), np.zeros(0), (), (f,)).allows(x, self.copy) for x in self.table] for f in rules.feasible]
        keeps = np.column_stack([linear, ~rules.combined(self._codes(self.encoded)), *map(np.array, own)])
        kept: Mask = np.all(keeps, axis=1)
        if not kept.any():
            together = minimal(keeps.shape[1], lambda some: not keeps[:, some].all(axis=1).any())
            raise ValueError(nothing_left([rules.texts[i] for i in together], "no candidate is left"))
        table = self.table[kept] if self.names is None else tuple(compress(self.table, kept))
        encoded = self.encoded[kept]
        encoded.flags.writeable = False
        return replace(
            self, table=encoded if self.names is None else table, encoded=encoded, rules=rules,
            dropped=self.dropped + int((~kept).sum()),
        )  # fmt: skip

    @cached_property
    def columns(self) -> tuple[slice, ...]:
        ends = np.cumsum([_width(choice) for choice in self.choices])
        return tuple(slice(int(end) - _width(choice), int(end)) for end, choice in zip(ends, self.choices, strict=True))

    def _codes(self, rows: Array) -> Array:
        """The numbers, or the numbers of the options, of each column at coordinates (m, d)."""
        columns = zip(self.choices, self.columns, strict=True)
        return np.stack([rows[:, c.start] if choice is None else choice.number(rows[:, c]) for choice, c in columns], 1)

    def _values(self, rows: Array) -> Array:
        """The numbers of each column at coordinates (m, d), 0 where they are words."""
        codes = self._codes(rows)
        for j, choice in enumerate(self.choices):
            if choice is not None:
                codes[:, j] = np.array(choice.options, dtype=float)[codes[:, j].astype(int)] if numeric(choice) else 0.0
        return codes

    def _field(self, name: str, j: int) -> Field:
        """What a constraint may say of a column."""
        choice, column = self.choices[j], self.encoded[:, self.columns[j]]
        if choice is not None:
            largest = max(abs(float(option)) for option in choice.options) if numeric(choice) else None
            return Field(
                name, largest, lambda label, value: frozenset(map(float, level_numbers(label, name, choice, value)))
            )

        def codes(label: str, value: Any) -> Codes:
            values = value if isinstance(value, list | tuple | set | frozenset | range) else [value]
            return frozenset(checks.number(f"{name} of {label}", one) for one in values)

        return Field(name, float(np.abs(column).max()), codes)


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
