"""The coordinates of a number under a condition, and of one that goes round.

An inactive parameter has no value, so it must not separate two points. An active value must be as far from "inactive"
as any other. Coordinates with these properties: a number lies on an arc of 60 degrees around the origin, and "inactive"
is the origin. The ends of the interval are then at distance 1 from each other, and every value is at distance 1 from
the origin. An option of a Choice is a unit vector as always, and "inactive" is the origin there, too.

A number that begins again after its period lies on the whole circle, with or without a condition: its ends are one
point, and the distance of two values depends on the angle between them alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpmi._support.types import Array, Numbers
from gpmi.space.choice import Choice
from gpmi.space.domain import Domain
from gpmi.space.encoding import Encoding
from gpmi.space.fidelity import Fidelity
from gpmi.space.fixed import Constant, FixedParameter
from gpmi.space.parameters import Parameter

ARC = math.pi / 3.0  # the chord of this arc is as long as its radius


@dataclass(frozen=True)
class OnArc:
    """A parameter of one coordinate c in [lo, hi]: the point of an arc, or of the circle, at the angle of c."""

    inner: Parameter

    width = 2

    @property
    def count(self) -> int | None:
        return self.inner.count

    @property
    def when(self) -> Mapping[str, Any] | None:
        return self.inner.when

    @property
    def domain(self) -> Domain:
        return self.inner.domain

    @property
    def unit(self) -> str:
        return self.inner.unit

    @property
    def ordered(self) -> bool:
        return self.inner.ordered

    @property
    def circular(self) -> bool:
        return self.inner.circular

    @property
    def choice(self) -> Choice | None:
        return self.inner.choice

    @property
    def ends(self) -> Array:
        if self.circular:
            return np.array([[-1.0, -1.0], [1.0, 1.0]])
        return np.array([[0.0, -0.5], [1.0, 0.5]])  # widths of 1 for both, so that distances are those of the plane

    @property
    def limits(self) -> tuple[float, float] | None:
        return self.inner.limits

    @cached_property
    def _line(self) -> tuple[float, float]:
        """The middle of c, and the width of its interval divided by that of the arc."""
        lo, hi = self.inner.ends[:, 0].tolist()
        return 0.5 * lo + 0.5 * hi, (hi - lo) / (2.0 * math.pi if self.circular else ARC) if hi > lo else 1.0

    def bend(self, rows: Array) -> Array:
        """Return the coordinates (m, 2) of c (m, 1)."""
        middle, scale = self._line
        angle = (rows[:, 0] - middle) / scale
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)

    def straighten(self, rows: Array) -> Array:
        """Return c (m, 1) at coordinates (m, 2), which need not lie on the arc."""
        middle, scale = self._line
        lo, hi = self.inner.ends[:, 0]
        return np.clip(middle + scale * np.arctan2(rows[:, 1], rows[:, 0]), lo, hi)[:, None]

    @property
    def speed(self) -> float:
        """How far the point moves on the arc when c moves by 1."""
        return 1.0 / self._line[1]

    def from_unit(self, u: Array) -> Array:
        return self.bend(self.inner.from_unit(u))

    def from_levels(self, numbers: Array | Numbers) -> Array:
        return self.bend(self.inner.from_levels(numbers))

    def level_numbers(self, rows: Array) -> Array:
        return self.inner.level_numbers(self.straighten(rows))

    def values(self, numbers: Array) -> Array:
        return self.inner.values(numbers)

    def levels_to_try(self, row: Array) -> Array:
        return self.bend(self.inner.levels_to_try(self.straighten(row[None])[0]))

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        middle, scale = self._line
        angle = (self.inner.encode(name, value)[0] - middle) / scale
        return math.cos(angle), math.sin(angle)

    def decode(self, row: Array) -> Any:
        return self.inner.decode(self.straighten(row[None])[0])

    def canonical(self, value: Any) -> Any:
        return self.inner.canonical(value)

    def nearest(self, number: float) -> Any:
        return self.inner.nearest(number)

    def grid(self, points: int) -> Array:
        return self.bend(self.inner.grid(points))


def encoding_of(parameter: Parameter | Fidelity | Constant | FixedParameter) -> Encoding:
    """Return the encoding of a parameter: its own, or an arc if it has one coordinate and a condition or goes round."""
    if isinstance(parameter, Fidelity | Constant | FixedParameter) or parameter.width != 1:
        return parameter
    if parameter.when is None and not parameter.circular:
        return parameter
    if isinstance(parameter, Choice) and not parameter.ordered:  # one option
        return parameter
    return OnArc(parameter)
