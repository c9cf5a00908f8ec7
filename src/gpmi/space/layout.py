"""The coordinates of a product: which belong to which parameter, and the points and values at them.

Where parameters have conditions, `conditions.conditional_layout` says which of them are active.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from gpmi._support.types import Array, Mask, Point
from gpmi.space.conditions.arc import OnArc, encoding_of
from gpmi.space.conditions.conditions import ParentCondition, active_parameters, conditions_of
from gpmi.space.encoding import Encoding
from gpmi.space.fidelity import Fidelity
from gpmi.space.fixed import Constant, FixedParameter
from gpmi.space.parameters import Parameter
from gpmi.space.points import labels_of, values_of
from gpmi.space.real import Real


@dataclass(frozen=True, eq=False)
class Layout:
    """The coordinates (d,) of p parameters, one parameter after the other."""

    conditional: ClassVar[bool] = False  # whether some parameter has a condition

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
        return np.concatenate(parts, axis=1)

    def level_numbers(self, z: Array) -> Array:
        """Return the level number of each parameter, (m, p), at coordinates (m, d). For a Real it is its coordinate."""
        pairs = zip(self.encodings, self.columns, strict=True)
        return np.stack([encoding.level_numbers(z[:, columns]) for encoding, columns in pairs], axis=1)

    def active(self, numbers: Array) -> Mask:
        """Return which parameters are active, (m, p), at level numbers (m, p)."""
        return active_parameters(self.conditions, numbers)

    def from_levels(self, numbers: Array) -> Array:
        """Return the coordinates (m, d) of level numbers (m, p)."""
        parts = [encoding.from_levels(column) for encoding, column in zip(self.encodings, numbers.T, strict=True)]
        return np.concatenate(parts, axis=1)

    def normalise(self, z: Array) -> Array:
        """Return a copy of points (m, d). Under conditions inactive parameters are set to 0."""
        return z.copy()

    def values(self, numbers: Array) -> Array:
        """Return the values (m, p) in the user's units at level numbers (m, p); 0 for values that are not numbers."""
        pairs = zip(self.parameters, numbers.T, strict=True)
        return np.stack([parameter.values(column) for parameter, column in pairs], axis=1)

    # One point, as a user writes it

    def encode(self, point: Point) -> Array:
        """Return the coordinates (d,) of a user's point. Raise if it is not a point of the space."""
        return np.array([number for coordinates in self._encode(point) for number in coordinates])

    def _encode(self, point: Point) -> list[tuple[float, ...]]:
        """Return the coordinates of each parameter."""
        values = values_of(point, self.names, len(self.encodings))
        labelled = zip(self.encodings, self.labels, values, strict=True)
        return [encoding.encode(label, value) for encoding, label, value in labelled]

    def canonical(self, point: Point) -> Point:
        """Return a user's point in plain Python values. Raise if it is not a point of the space."""
        self._encode(point)
        values = values_of(point, self.names, len(self.encodings))
        return self._point([encoding.canonical(value) for encoding, value in zip(self.encodings, values, strict=True)])

    def decode(self, row: Array) -> Point:
        """Return the user's point at coordinates (d,)."""
        return self.decode_all(row[None])[0]

    def decode_all(self, z: Array) -> list[Point]:
        """Return the user's points at coordinates (m, d)."""
        pairs = list(zip(self.encodings, self.columns, strict=True))
        return [self._point([encoding.decode(row[columns]) for encoding, columns in pairs]) for row in z]

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

    def move_to_fixed(self, z: Array) -> Array:
        """Return points (m, d) of the whole space with fixed parameters at their values."""
        z = z.copy()
        for encoding, columns in zip(self.encodings, self.columns, strict=True):
            if isinstance(encoding, FixedParameter):
                z[:, columns] = encoding.row
        return z
