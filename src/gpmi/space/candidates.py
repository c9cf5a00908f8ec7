"""A finite set of points: the rows of an array or of a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpmi import checks
from gpmi.space.conditions import level_numbers
from gpmi.space.constraints import TOLD, Codes, Field, Rules, minimal, nothing_left, rules_of
from gpmi.space.conversion import array_table, as_point, frame_columns, labels_of, values_of
from gpmi.space.layout import numeric
from gpmi.space.parameters import Choice
from gpmi.space.space import Space
from gpmi.text import shortened
from gpmi.types import Array, Event, LabelledPoint, Mask, Point


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
    rules: Rules | None = None  # that the rows keep to
    dropped: int = 0  # the number of rows that broke one

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
        return Candidates(table, table, (None,) * table.shape[1], None)

    @staticmethod
    def from_frame(frame: Any) -> Candidates:
        """The rows of a pandas DataFrame, whose columns may hold numbers, strings or bools."""
        columns = frame_columns(frame)
        names, choices = tuple(columns), tuple(column.choice for column in columns.values())
        rows = zip(*(column.values for column in columns.values()), strict=True)
        labels = frame.index.tolist()
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
        return Candidates(table, encoded, choices, names)

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
        row = _coordinates(labels_of(self.names, count), self.choices, values_of(point, self.names, count))
        if len(self.numbers(row)) == 0:
            told = checks.shown(point)
            if self.rules is not None:
                values, codes = self._values(row[None]), self._codes(row[None])
                self.rules.check(point, values[0], codes[0], np.ones(count, dtype=bool), lambda x: as_point(point))
            raise ValueError(f"x is {told}, which is not among the candidates; tell rows of the candidates only")
        return row

    def canonical(self, point: Point) -> Point:
        return self.decode(self.encode(point))

    def decode(self, row: Array) -> Point:
        number = self.numbers(row)[0]
        return self.copy(self.table[number])

    # Constraints

    @property
    def events(self) -> tuple[Event, ...]:
        if not self.dropped:
            return ()
        total = len(self.encoded) + self.dropped
        return (Event("dropped candidates", f"{self.dropped} of {total} candidates break a constraint"),)

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
    def _columns(self) -> tuple[slice, ...]:
        ends = np.cumsum([_width(choice) for choice in self.choices])
        return tuple(slice(int(end) - _width(choice), int(end)) for end, choice in zip(ends, self.choices, strict=True))

    def _codes(self, rows: Array) -> Array:
        """The numbers, or the numbers of the options, of each column at coordinates (m, d)."""
        columns = zip(self.choices, self._columns, strict=True)
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
        choice, column = self.choices[j], self.encoded[:, self._columns[j]]
        if choice is not None:
            largest = max(abs(float(option)) for option in choice.options) if numeric(choice) else None
            return Field(
                name, largest, lambda label, value: frozenset(map(float, level_numbers(label, name, choice, value)))
            )

        def codes(label: str, value: Any) -> Codes:
            values = value if isinstance(value, list | tuple | set | frozenset | range) else [value]
            return frozenset(checks.number(f"{name} of {label}", one) for one in values)

        return Field(name, float(np.abs(column).max()), codes)


def _codes_of_options(name: str, choice: Choice, label: str, value: Any) -> Codes:
    return frozenset(map(float, level_numbers(label, name, choice, value)))


def _width(choice: Choice | None) -> int:
    """The number of coordinates of a column."""
    return 1 if choice is None else choice.width


def _coordinates(labels: Iterable[str], choices: Iterable[Choice | None], values: Iterable[Any]) -> Array:
    """The coordinates (d,) of one row of a table; a choice of None stands for a number."""
    coordinates: list[float] = []
    for label, choice, value in zip(labels, choices, values, strict=True):
        if choice is None:
            coordinates.append(checks.number(label, value) + 0.0)  # -0.0 is 0.0
        else:
            coordinates.extend(choice.encode(label, value))
    return np.array(coordinates)
