"""The coordinates of a product whose parameters have conditions: inactive parameters are absent, at coordinates 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from gpmi._support import checks
from gpmi._support.refusals import RefusedValue
from gpmi._support.types import Array, Point
from gpmi.space.conditions.conditions import condition_text
from gpmi.space.layout import Layout
from gpmi.space.points import as_point


class ConditionalLayout(Layout):
    """A layout in which some parameter has a condition. A point is a dict of the parameters that are active."""

    conditional: ClassVar[bool] = True

    # Many points at a time

    def from_unit(self, u: Array) -> Array:
        """Return the coordinates (m, d) of points u (m, p) of the unit cube, inactive parameters at 0."""
        return self.normalise(super().from_unit(u))

    def from_levels(self, numbers: Array) -> Array:
        """Return the coordinates (m, d) of level numbers (m, p), inactive parameters at 0."""
        z = super().from_levels(numbers)
        for j, off in enumerate(~self.active(numbers).T):
            z[off, self.columns[j]] = 0.0
        return z

    def normalise(self, z: Array) -> Array:
        """Return points (m, d) with inactive parameters at 0, and newly active ones set to mid-range."""
        z = z.copy()
        active = self.active(self.level_numbers(z))
        for j, (encoding, columns) in enumerate(zip(self.encodings, self.columns, strict=True)):
            if self.conditions[j]:
                absent = ~np.any(z[:, columns] != 0.0, axis=1)
                z[absent, columns] = encoding.from_unit(np.array([0.5]))[0]
                z[~active[:, j], columns] = 0.0
        return z

    def move_to_fixed(self, z: Array) -> Array:
        """Return points (m, d) with fixed parameters at their values, and newly active ones in the middle."""
        return self.normalise(super().move_to_fixed(z))

    # One point, as a user writes it

    def _encode(self, point: Point) -> list[tuple[float, ...]]:
        """Return the coordinates of each parameter. Inactive parameters must be absent; they are 0."""
        assert self.names is not None
        values, names = as_point(point), self.names
        if not isinstance(values, Mapping):
            raise TypeError(f"x is {checks.shown(point)}; a point of this space is a dict with keys of {list(names)}")
        if extra := [key for key in values if key not in names]:
            sentence = f"x has wrong keys (unknown {extra}); it needs those of {list(names)} that are active"
            raise RefusedValue(sentence, "wrong-keys", missing=[], unknown=extra)
        coordinates: dict[int, tuple[float, ...]] = {}
        while len(coordinates) < len(names):
            for j, name in enumerate(names):
                if j not in coordinates and all(c.parent in coordinates for c in self.conditions[j]):
                    coordinates[j] = self._encode_one(j, name, values, coordinates)
        return [coordinates[j] for j in range(len(names))]

    def _encode_one(
        self, j: int, name: str, values: Mapping[str, Any], coordinates: Mapping[int, tuple[float, ...]]
    ) -> tuple[float, ...]:
        """Return the coordinates of a parameter. `coordinates` has those of the parameters that it depends on."""
        assert self.names is not None
        active = all(
            self.names[c.parent] in values
            and int(self.encodings[c.parent].level_numbers(np.array([coordinates[c.parent]]))[0]) in c.numbers
            for c in self.conditions[j]
        )
        if active and name not in values:
            sentence = f"x has wrong keys (missing {[name]}); it is {checks.shown(dict(values))}"
            raise RefusedValue(sentence, "wrong-keys", missing=[name], unknown=[])
        if not active and name in values:
            condition = condition_text(self.parameters[j].when)
            sentence = f"x has {name!r}, which is inactive unless {condition}; leave it out"
            raise RefusedValue(sentence, "inactive", name=name, condition=self.parameters[j].when)
        return self.encodings[j].encode(name, values[name]) if active else (0.0,) * self.encodings[j].width

    def canonical(self, point: Point) -> Point:
        """Return a user's point in plain Python values. Raise if it is not a point of the space."""
        self._encode(point)
        assert self.names is not None
        values = as_point(point)
        named = zip(self.names, self.encodings, strict=True)
        return {name: encoding.canonical(values[name]) for name, encoding in named if name in values}

    def decode_all(self, z: Array) -> list[Point]:
        """Return the user's points at coordinates (m, d): the parameters that are active there."""
        assert self.names is not None
        active = self.active(self.level_numbers(z))
        named = list(zip(self.names, self.encodings, self.columns, strict=True))
        return [
            {name: encoding.decode(row[c]) for (name, encoding, c), is_on in zip(named, here, strict=True) if is_on}
            for row, here in zip(z, active, strict=True)
        ]


def layout_of(parameters: Layout) -> Layout:
    """Return the layout for parameters laid out one after the other: another one if some of them have conditions."""
    return ConditionalLayout(parameters.parameters, parameters.names) if any(parameters.conditions) else parameters
