"""The coordinates of a product: which belong to which parameter, which parameters are active, and their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpmi._support import checks
from gpmi._support.refusals import RefusedValue, reworded
from gpmi._support.types import Array, Mask, Point
from gpmi.space.conditions.arc import OnArc, encoding_of
from gpmi.space.conditions.conditions import ParentCondition, active_parameters, condition_text, conditions_of
from gpmi.space.encoding import Encoding
from gpmi.space.fidelity import Fidelity
from gpmi.space.fixed import Constant, FixedParameter
from gpmi.space.parameters import Parameter
from gpmi.space.points import as_point, labels_of, values_of
from gpmi.space.real import Real


@dataclass(frozen=True, eq=False)
class Layout:
    """The coordinates (d,) of p parameters, one parameter after the other."""

    parameters: tuple[Parameter | Fidelity | Constant | FixedParameter, ...]
    names: tuple[str, ...] | None

    @cached_property
    def encodings(self) -> tuple[Encoding, ...]:
        """The encoding of each parameter: the parameter itself; an arc under a condition, a circle for an angle."""
        return tuple(map(encoding_of, self.parameters))

    @cached_property
    def conditions(self) -> tuple[tuple[ParentCondition, ...], ...]:
        """The conditions of each parameter."""
        return conditions_of(self.names, self.parameters)

    @cached_property
    def conditional(self) -> bool:
        """Whether some parameter has a condition."""
        return any(self.conditions)

    @cached_property
    def columns(self) -> tuple[slice, ...]:
        """The coordinates of each parameter."""
        ends = np.cumsum([encoding.width for encoding in self.encodings])
        pairs = zip(ends, self.encodings, strict=True)
        return tuple(slice(int(end) - encoding.width, int(end)) for end, encoding in pairs)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The parameters in messages: their names, or x[0], x[1], ..."""
        return tuple(labels_of(self.names, len(self.encodings)))

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """The number of the parameter that each coordinate belongs to, constants not counted, (d,)."""
        varying = [encoding for encoding in self.encodings if encoding.width > 0]
        return tuple(i for i, encoding in enumerate(varying) for _ in range(encoding.width))

    @cached_property
    def ends(self) -> Array:
        """The smallest and the largest value of each coordinate, (2, d)."""
        return np.concatenate([encoding.ends for encoding in self.encodings], axis=1)

    @cached_property
    def continuous(self) -> Mask:
        """Which coordinates are those of a Real, (d,)."""
        return np.concatenate([np.full(encoding.width, encoding.count is None) for encoding in self.encodings])

    # Many points at a time

    def from_unit(self, u: Array) -> Array:
        """Return the coordinates (m, d) of points u (m, p) of the unit cube, one u for each parameter."""
        parts = [encoding.from_unit(column) for encoding, column in zip(self.encodings, u.T, strict=True)]
        z = np.concatenate(parts, axis=1)
        return self.normalise(z) if self.conditional else z

    def level_numbers(self, z: Array) -> Array:
        """Return the level number of each parameter, (m, p), at coordinates (m, d). For a Real it is its coordinate."""
        pairs = zip(self.encodings, self.columns, strict=True)
        return np.stack([encoding.level_numbers(z[:, columns]) for encoding, columns in pairs], axis=1)

    def active(self, numbers: Array) -> Mask:
        """Return which parameters are active, (m, p), at level numbers (m, p)."""
        return active_parameters(self.conditions, numbers)

    def from_levels(self, numbers: Array) -> Array:
        """Return the coordinates (m, d) of level numbers (m, p). Inactive parameters have coordinates 0."""
        parts = [encoding.from_levels(column) for encoding, column in zip(self.encodings, numbers.T, strict=True)]
        z = np.concatenate(parts, axis=1)
        if self.conditional:
            for j, off in enumerate(~self.active(numbers).T):
                z[off, self.columns[j]] = 0.0
        return z

    def normalise(self, z: Array) -> Array:
        """Return points (m, d) with inactive parameters at 0, and newly active ones set to mid-range."""
        z = z.copy()
        if not self.conditional:
            return z
        active = self.active(self.level_numbers(z))
        for j, (encoding, columns) in enumerate(zip(self.encodings, self.columns, strict=True)):
            if self.conditions[j]:
                absent = ~np.any(z[:, columns] != 0.0, axis=1)
                z[absent, columns] = encoding.from_unit(np.array([0.5]))[0]
                z[~active[:, j], columns] = 0.0
        return z

    def values(self, numbers: Array) -> Array:
        """Return the values (m, p) in the user's units at level numbers (m, p); 0 for values that are not numbers."""
        pairs = zip(self.parameters, numbers.T, strict=True)
        return np.stack([parameter.values(column) for parameter, column in pairs], axis=1)

    # One point, as a user writes it

    def encode(self, point: Point) -> Array:
        """Return the coordinates (d,) of a user's point. Raise if it is not a point of the space."""
        return np.array([number for coordinates in self._encode(point) for number in coordinates])

    def _encode(self, point: Point) -> list[tuple[float, ...]]:
        """Return the coordinates of each parameter. Inactive parameters must be absent; they are 0."""
        if not self.conditional:
            values = values_of(point, self.names, len(self.encodings))
            labelled = zip(self.encodings, self.labels, values, strict=True)
            return [encoding.encode(label, value) for encoding, label, value in labelled]
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
        """Return the coordinates of one parameter. `coordinates` has those of its parents."""
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
        if not self.conditional:
            values = values_of(point, self.names, len(self.encodings))
            pairs = zip(self.encodings, values, strict=True)
            return self._point([encoding.canonical(value) for encoding, value in pairs])
        assert self.names is not None
        values = as_point(point)
        named = zip(self.names, self.encodings, strict=True)
        return {name: encoding.canonical(values[name]) for name, encoding in named if name in values}

    def decode(self, row: Array) -> Point:
        """Return the user's point at coordinates (d,)."""
        return self.decode_all(row[None])[0]

    def decode_all(self, z: Array) -> list[Point]:
        """Return the user's points at coordinates (m, d)."""
        if not self.conditional:
            pairs = list(zip(self.encodings, self.columns, strict=True))
            return [self._point([encoding.decode(row[columns]) for encoding, columns in pairs]) for row in z]
        assert self.names is not None
        active = self.active(self.level_numbers(z))
        named = list(zip(self.names, self.encodings, self.columns, strict=True))
        return [
            {name: encoding.decode(row[c]) for (name, encoding, c), is_on in zip(named, here, strict=True) if is_on}
            for row, here in zip(z, active, strict=True)
        ]

    def _point(self, values: list[Any]) -> Point:
        return np.array(values) if self.names is None else dict(zip(self.names, values, strict=True))

    @cached_property
    def rounding(self) -> Array:
        """How far apart two encodings of one point may be, (d,): the last digit of a real, 0 otherwise."""
        digits = []
        for encoding, columns in zip(self.encodings, self.columns, strict=True):
            lo, hi = self.ends[:, columns]
            digit = 2.0 * np.spacing(np.maximum(np.maximum(np.abs(lo), np.abs(hi)), 1.0 if self._any_log else 0.0))
            if isinstance(encoding, OnArc):
                digit = digit + np.full(2, encoding.speed * np.spacing(np.abs(encoding.inner.ends).max()))
            digits.append(np.where(encoding.count is None, digit, 0.0))
        return np.concatenate(digits)

    @property
    def _any_log(self) -> bool:
        """Whether a coordinate is a logarithm, whose error does not vanish where it is 0."""
        return any(isinstance(p, Real) and p.log for p in self.parameters)

    # Fixed coordinates

    def fix(self, values: Mapping[int, Any]) -> dict[int, FixedParameter | Constant]:
        """Return the parameters with these numbers, each fixed at its value.

        Raise if a value is not one of the parameter, or if the parameter is not always active. A parameter under a
        condition can be fixed only together with the parameters that it depends on, at values that make it active.
        """
        parts: dict[int, FixedParameter | Constant] = {}
        for j, value in values.items():
            encoding = self.encodings[j]
            assert not isinstance(encoding, FixedParameter)
            try:
                row = np.array(encoding.encode(self.labels[j], value))
            except (TypeError, ValueError) as error:
                raise reworded(error, f"fixed: {error}") from None
            if isinstance(encoding, Constant):
                parts[j] = encoding
            else:
                parts[j] = FixedParameter(encoding, encoding.canonical(value), row)
        for j in parts:
            if not all(self._holds(condition, parts.get(condition.parent)) for condition in self.conditions[j]):
                text = condition_text(self.parameters[j].when)
                sentence = f"fixed has {self.labels[j]!r}, which is active only where {text}; fix that as well"
                raise RefusedValue(sentence, "fixed-inactive", name=self.labels[j], condition=self.parameters[j].when)
        return parts

    def _holds(self, condition: ParentCondition, fixed: FixedParameter | Constant | None) -> bool:
        """Whether a condition holds at every point where its parent is fixed like this."""
        if isinstance(self.encodings[condition.parent], Constant):
            return 0 in condition.numbers
        return isinstance(fixed, FixedParameter) and fixed.level in condition.numbers

    def move_to_fixed(self, z: Array) -> Array:
        """Return points (m, d) of the whole space with fixed parameters at their values.

        Parameters that become active are put in the middle.
        """
        z = z.copy()
        for encoding, columns in zip(self.encodings, self.columns, strict=True):
            if isinstance(encoding, FixedParameter):
                z[:, columns] = encoding.row
        return self.normalise(z) if self.conditional else z
