"""What every kind of parameter offers: the translation between its values and the kernel's coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from gpmi._support.types import Array, Numbers
from gpmi.space.choice import Choice
from gpmi.space.domain import Domain


class Encoding(Protocol):
    """The coordinates of one parameter.

    The level number of a value is its position among all values, counted from 0. For a Real it is the coordinate.
    """

    @property
    def width(self) -> int:
        """The number of coordinates."""

    @property
    def count(self) -> int | None:
        """The number of values; None for a Real, which has infinitely many."""

    @property
    def domain(self) -> Domain:
        """The values as plain data."""

    @property
    def unit(self) -> str:
        """A label for people; empty if the values have no unit."""

    @property
    def ordered(self) -> bool:
        """Whether neighbours among the values are alike; False for the options of a choice without an order."""

    @property
    def circular(self) -> bool:
        """Whether a continuous parameter begins again where it ends, so that it lies on a circle."""

    @property
    def choice(self) -> Choice | None:
        """The values as options; None if they are not a list."""

    @property
    def when(self) -> Mapping[str, Any] | None:
        """The condition under which the parameter is active (`gpmi.space.conditions`); None if it always is."""

    @property
    def ends(self) -> Array:
        """The smallest and the largest value of each coordinate, (2, width)."""

    @property
    def limits(self) -> tuple[float, float] | None:
        """The smallest and the largest value in the user's units; None if the values are not numbers."""

    def from_unit(self, u: Array) -> Array:
        """Return the coordinates (m, width) at u (m,) in [0, 1]; equal parts of [0, 1] have equal weight."""

    def from_levels(self, numbers: Array | Numbers) -> Array:
        """Return the coordinates (m, width) of the values with these level numbers (m,)."""

    def level_numbers(self, rows: Array) -> Array:
        """Return the level numbers (m,) at coordinates (m, width)."""

    def values(self, numbers: Array) -> Array:
        """Return the values (m,) in the user's units at level numbers (m,); 0 if the values are not numbers."""

    def levels_to_try(self, row: Array) -> Array:
        """Return levels (k, width) for a search that stands at coordinates (width,): all levels, or some of many."""

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        """Return the coordinates of a user's value. Raise if it is not a value of the parameter."""

    def decode(self, row: Array) -> Any:
        """Return the value at coordinates (width,); for a number the nearest value."""

    def canonical(self, value: Any) -> Any:
        """Return a user's value as a plain Python value."""

    def nearest(self, number: float) -> Any:
        """Return the value nearest to a number, where the values are numbers."""

    def grid(self, points: int) -> Array:
        """Return the coordinates (k, width) of the values that a figure draws, about as many as `points`."""
