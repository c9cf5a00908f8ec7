"""Where the parameters of a product lie among the coordinates, which of them are active, and what their values are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array, Mask, Point
from gpmi.space.conditions.conditions import (
    Condition,
    Constant,
    OnArc,
    Part,
    Pinned,
    activity,
    conditions_of,
    mentioned,
    part_of,
)
from gpmi.space.conversion import as_point, labels_of, values_of
from gpmi.space.parameters import Choice, Int, Parameter, Real


@dataclass(frozen=True, eq=False)
class Layout:
    """The coordinates (d,) of p parameters, one after the other."""

    parameters: tuple[Parameter | Constant | Pinned, ...]
    names: tuple[str, ...] | None

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What the coordinates of each parameter are."""
        return tuple(map(part_of, self.parameters))

    @cached_property
    def conditions(self) -> tuple[tuple[Condition, ...], ...]:
        """The conditions of each parameter."""
        return conditions_of(self.names, self.parameters)

    @cached_property
    def conditional(self) -> bool:
        """Whether a parameter has a condition."""
        return any(self.conditions)

    @cached_property
    def columns(self) -> tuple[slice, ...]:
        """The coordinates of each parameter."""
        ends = np.cumsum([part.width for part in self.parts])
        return tuple(slice(int(end) - part.width, int(end)) for end, part in zip(ends, self.parts, strict=True))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What messages call the parameters: their names, or x[0], x[1], ..."""
        return tuple(labels_of(self.names, len(self.parts)))

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """The number of the parameter that each coordinate belongs to, constants not counted, (d,)."""
        varying = [part for part in self.parts if part.width > 0]
        return tuple(i for i, part in enumerate(varying) for _ in range(part.width))

    @cached_property
    def ends(self) -> Array:
        """The smallest and the largest value of each coordinate, (2, d)."""
        return np.concatenate([part.ends for part in self.parts], axis=1)

    # Many points at a time

    def at(self, u: Array) -> Array:
        """The coordinates (m, d) of points u (m, p) of the unit cube, one u for each parameter."""
        z = np.concatenate([part.at(column) for part, column in zip(self.parts, u.T, strict=True)], axis=1)
        return self.normal(z) if self.conditional else z

    def numbers(self, z: Array) -> Array:
        """The level number of each parameter, for a Real its own coordinate, (m, p), at coordinates (m, d)."""
        columns = [part.number(z[:, c]) for part, c in zip(self.parts, self.columns, strict=True)]
        return np.stack(columns, axis=1)

    def active(self, numbers: Array) -> Mask:
        """Which parameters are active, (m, p), at level numbers (m, p)."""
        return activity(self.conditions, numbers)

    def coordinates(self, numbers: Array) -> Array:
        """The coordinates (m, d) of level numbers (m, p); those of inactive parameters are 0."""
        z = np.concatenate([part.level(column) for part, column in zip(self.parts, numbers.T, strict=True)], axis=1)
        if self.conditional:
            for j, off in enumerate(~self.active(numbers).T):
                z[off, self.columns[j]] = 0.0
        return z

    def normal(self, z: Array) -> Array:
        """Points (m, d) with inactive parameters at coordinates 0, and those that have become active in the middle."""
        z = z.copy()
        if not self.conditional:
            return z
        active = self.active(self.numbers(z))
        for j, (part, column) in enumerate(zip(self.parts, self.columns, strict=True)):
            if self.conditions[j]:
                absent = ~np.any(z[:, column] != 0.0, axis=1)
                z[absent, column] = part.at(np.array([0.5]))[0]
                z[~active[:, j], column] = 0.0
        return z

    def values(self, numbers: Array) -> Array:
        """The parameters' values in the user's units at level numbers (m, p), both (m, p); 0 for what is no number."""
        columns = []
        for parameter, column in zip(self.parameters, numbers.T, strict=True):
            match parameter:
                case Real():
                    values = np.clip(np.exp(column), parameter.lo, parameter.hi) if parameter.log else column
                case Int():
                    values = parameter.lo + parameter.step * column
                case Choice() if numeric(parameter):
                    values = np.array(parameter.options, dtype=float)[column.astype(np.intp)]
                case Constant() if numeric(parameter):
                    values = np.full(len(column), float(parameter.value))
                case _:
                    values = np.zeros(len(column))
            columns.append(values)
        return np.stack(columns, axis=1)

    # One point, as a user writes it

    def encode(self, point: Point) -> Array:
        """The coordinates (d,) of a user's point, which is refused if it is not one."""
        return np.array([number for coordinates in self._encoded(point) for number in coordinates])

    def _encoded(self, point: Point) -> list[tuple[float, ...]]:
        """The coordinates of each parameter; inactive ones must be absent, and are 0."""
        if not self.conditional:
            values = values_of(point, self.names, len(self.parts))
            labelled = zip(self.parts, self.labels, values, strict=True)
            return [part.encode(label, value) for part, label, value in labelled]
        assert self.names is not None
        given, names = as_point(point), self.names
        if not isinstance(given, Mapping):
            raise TypeError(f"x is {checks.shown(point)}; a point of this space is a dict with keys of {list(names)}")
        if extra := [key for key in given if key not in names]:
            raise ValueError(f"x has wrong keys (unknown {extra}); it needs those of {list(names)} that are active")
        found: dict[int, tuple[float, ...]] = {}
        while len(found) < len(names):
            for j, name in enumerate(names):
                if j not in found and all(c.parent in found for c in self.conditions[j]):
                    found[j] = self._encoded_one(j, name, given, found)
        return [found[j] for j in range(len(names))]

    def _encoded_one(
        self, j: int, name: str, given: Mapping[str, Any], found: Mapping[int, tuple[float, ...]]
    ) -> tuple[float, ...]:
        """The coordinates of one parameter, given those that it depends on."""
        assert self.names is not None
        part = self.parts[j]
        active = all(
            self.names[c.parent] in given
            and int(self.parts[c.parent].number(np.array([found[c.parent]]))[0]) in c.numbers
            for c in self.conditions[j]
        )
        if active and name not in given:
            raise ValueError(f"x has wrong keys (missing {[name]}); it is {checks.shown(dict(given))}")
        if not active and name in given:
            condition = mentioned(self.parameters[j].when)
            raise ValueError(f"x has {name!r}, which is inactive unless {condition}; leave it out")
        return part.encode(name, given[name]) if active else (0.0,) * part.width

    def canonical(self, point: Point) -> Point:
        """A user's point in plain Python values; refused if it is not one."""
        self._encoded(point)
        if not self.conditional:
            values = values_of(point, self.names, len(self.parts))
            return self._point([part.canonical(value) for part, value in zip(self.parts, values, strict=True)])
        assert self.names is not None
        given = as_point(point)
        pairs = zip(self.names, self.parts, strict=True)
        return {name: part.canonical(given[name]) for name, part in pairs if name in given}

    def decode(self, row: Array) -> Point:
        """The user's point at these coordinates (d,)."""
        return self.decoded(row[None])[0]

    def decoded(self, z: Array) -> list[Point]:
        """The user's points at coordinates (m, d)."""
        if not self.conditional:
            places = list(zip(self.parts, self.columns, strict=True))
            return [self._point([part.decode(row[c]) for part, c in places]) for row in z]
        assert self.names is not None
        parts, active = list(zip(self.names, self.parts, self.columns, strict=True)), self.active(self.numbers(z))
        return [
            {name: part.decode(row[c]) for (name, part, c), there in zip(parts, here, strict=True) if there}
            for row, here in zip(z, active, strict=True)
        ]

    def _point(self, values: list[Any]) -> Point:
        return np.array(values) if self.names is None else dict(zip(self.names, values, strict=True))

    @cached_property
    def rounding(self) -> Array:
        """How far apart two encodings of one point may be, (d,): the last digit of a real, 0 otherwise."""
        parts = []
        for part, column in zip(self.parts, self.columns, strict=True):
            lo, hi = self.ends[:, column]
            digit = 2.0 * np.spacing(np.maximum(np.maximum(np.abs(lo), np.abs(hi)), 1.0 if self._any_log else 0.0))
            if isinstance(part, OnArc):
                digit = digit + np.full(2, part.bend * np.spacing(np.abs(part.inner.ends).max()))
            parts.append(np.where(part.count is None, digit, 0.0))
        return np.concatenate(parts)

    @property
    def _any_log(self) -> bool:
        """Whether a coordinate is a logarithm, whose error does not vanish where it is 0."""
        return any(isinstance(p, Real) and p.log for p in self.parameters)


def numeric(parameter: Parameter | Constant | Pinned) -> bool:
    """Whether the values of a parameter are numbers, which a linear constraint may be about."""
    assert not isinstance(parameter, Pinned), "no constraint is made anew where values are given"
    if isinstance(parameter, Real | Int):
        return True
    values = parameter.options if isinstance(parameter, Choice) else (parameter.value,)
    return all(isinstance(v, int | float | np.integer | np.floating) and not isinstance(v, bool) for v in values)
