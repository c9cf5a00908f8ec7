"""Parameters with a single value: constants, and parameters whose value is fixed by the user for some queries.

`ask(fixed={"temperature": 21.5})` searches the part of the space with these coordinates. The part has the coordinates
of the whole space, so the same kernel and posterior serve both. In it, each fixed parameter is a `FixedParameter`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array, Numbers
from gpmi.space.choice import is_number
from gpmi.space.domain import Single
from gpmi.space.encoding import Encoding
from gpmi.space.fields import FieldsOnly
from gpmi.space.options import same_option


@dataclass(frozen=True, repr=False)
class Constant(FieldsOnly):
    """A value that never varies: it is part of every point and has no coordinate."""

    value: Any

    width, count, when, unit, ordered, circular, choice = 0, 1, None, "", True, False, None

    @property
    def domain(self) -> Single:
        return Single(self.value)

    @property
    def ends(self) -> Array:
        return np.empty((2, 0))

    @property
    def limits(self) -> tuple[float, float] | None:
        return (float(self.value), float(self.value)) if is_number(self.value) else None

    def from_unit(self, u: Array) -> Array:
        return np.empty((len(u), 0))

    def from_levels(self, numbers: Array | Numbers) -> Array:
        return np.empty((len(numbers), 0))

    def level_numbers(self, rows: Array) -> Array:
        return np.zeros(len(rows))

    def values(self, numbers: Array) -> Array:
        return np.full(len(numbers), float(self.value) if is_number(self.value) else 0.0)

    def levels_to_try(self, row: Array) -> Array:
        return row[None]

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        if not same_option(self.value, value):
            raise ValueError(f"{name} is {checks.shown(value)}; it is constant, {checks.shown(self.value)}")
        return ()

    def decode(self, row: Array) -> Any:
        return self.value

    def canonical(self, value: Any) -> Any:
        return self.value

    def nearest(self, number: float) -> Any:
        return self.value

    def grid(self, points: int) -> Array:
        return np.empty((1, 0))


@dataclass(frozen=True, eq=False)
class FixedParameter:
    """A parameter whose value is fixed for some queries: one point, with the coordinates it has in the whole space.

    Its level number is that of the parameter itself, so conditions that mention it need no change. It has no `limits`
    and no `values`: its share of a linear constraint is part of the constraint's bounds (`Constraints.with_fixed`).
    """

    inner: Encoding
    value: Any  # in canonical form
    row: Array  # (width,), its coordinates

    count, limits, ordered, circular, choice = 1, None, True, False, None

    @property
    def domain(self) -> Single:
        return Single(self.value)

    @property
    def unit(self) -> str:
        return self.inner.unit

    @property
    def width(self) -> int:
        return self.inner.width

    @property
    def when(self) -> Mapping[str, Any] | None:
        return self.inner.when

    @property
    def ends(self) -> Array:
        return self.inner.ends

    @property
    def level(self) -> int:
        """The level number of the fixed value of a discrete parameter."""
        return int(self.level_numbers(self.row[None])[0])

    def from_unit(self, u: Array) -> Array:
        return np.tile(self.row, (len(u), 1))

    def from_levels(self, numbers: Array | Numbers) -> Array:
        return np.tile(self.row, (len(numbers), 1))

    def level_numbers(self, rows: Array) -> Array:
        return self.inner.level_numbers(rows)

    def values(self, numbers: Array) -> Array:
        return np.zeros(len(numbers))

    def levels_to_try(self, row: Array) -> Array:
        return self.row[None]

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        return self.inner.encode(name, value)

    def decode(self, row: Array) -> Any:
        return self.value

    def canonical(self, value: Any) -> Any:
        return self.inner.canonical(value)

    def nearest(self, number: float) -> Any:
        return self.value

    def grid(self, points: int) -> Array:
        return self.row[None]
