"""What may be queried. The two kinds of spaces are a product of parameters and a table of candidates.

A point has two forms. The user's is an array, a dict or a row of a table. The kernel's is a row of d coordinates
(`gpmi.space.parameters`). `encode` goes from the first to the second, `decode` back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array, Event, FrozenPoint, LabelledPoint, Numbers, Point
from gpmi.space.index import RowIndex

# Chosen out of 1, 2.5 and 4 on the development tables of docs/benchmarks/tables.md with choices, naval_propulsion and
# cifar10, ten seeds: better rows left after 100 evaluations, as a share of random search's: 0.24, 0.07 and 0.06.
OPTIONS = 4.0


class SpaceExhausted(Exception):
    """Every candidate has been offered once and repeats=False."""


class Space(ABC):
    """A set of points. `Space.of` makes one from what a user writes."""

    names: tuple[str, ...] | None  # of the parameters, where a point is a dict; None where it is an array

    @staticmethod
    def of(spec: Any) -> Space:
        """A box from a list of (lo, hi), a named space from a dict, a finite set from an array or DataFrame."""
        if isinstance(spec, Space):
            return spec
        for kind in Space.__subclasses__():
            space = kind.meant_by(spec)
            if space is not None:
                return space
        raise TypeError(
            f"space is {checks.shown(spec)}; give a list of (lo, hi), a dict of parameters, "
            "or candidates as an array or DataFrame"
        )

    @staticmethod
    @abstractmethod
    def meant_by(spec: Any) -> Space | None:
        """The space of this kind that a user means by `spec`; None if one of another kind is meant."""

    @abstractmethod
    def constrained(self, constraints: Any) -> Space:
        """The part of the space that keeps to constraints: one, or a list of them; None stands for none.

        A constraint is a text such as "a + b <= 1", (A, lb, ub) or scipy.optimize.LinearConstraint, `Forbidden`, or a
        function feasible(point) -> bool. If they leave nothing, a ValueError names those that cannot hold together.
        """

    @abstractmethod
    def given(self, fixed: Any) -> Space:
        """The part of the space in which these parameters have these values, by name or number; same coordinates.

        A ValueError or TypeError if they are no values of theirs, or if no point is left.
        """

    @abstractmethod
    def values_given(self) -> dict[Any, Any]:
        """What is given in a space made by `given`, as points of the library have it; empty in others."""

    @property
    @abstractmethod
    def pins(self) -> tuple[tuple[int, bytes], ...]:
        """The numbers of the parameters that are given, each with the bytes of its coordinates."""

    @property
    @abstractmethod
    def columns(self) -> tuple[slice, ...]:
        """The coordinates of each parameter; a constant has none."""

    @abstractmethod
    def has(self, row: Array) -> bool:
        """Whether a point (d,) of the whole space is in this part of it, made by `given`."""

    @property
    def events(self) -> tuple[Event, ...]:
        """What was done to the space that the user did not ask for."""
        return ()

    @property
    @abstractmethod
    def lo(self) -> Array:
        """The smallest value of each coordinate, (d,)."""

    @property
    @abstractmethod
    def hi(self) -> Array:
        """The largest value of each coordinate, (d,)."""

    @cached_property
    def dim(self) -> int:
        """d, the number of the kernel's coordinates."""
        return len(self.lo)

    @property
    def span(self) -> Array:
        """hi - lo, (d,), 1 where a coordinate does not vary."""
        span = self.hi - self.lo
        return np.where(span > 0.0, span, 1.0)

    @property
    def units(self) -> Array:
        """The units of the lengthscales for who looks for the best point, (d,).

        It is the span; OPTIONS times that for a parameter with several coordinates, the options of a choice. Two of its
        values are sqrt 2 spans apart, and two numbers a third of a span on average. In the same unit, what is learned
        of one option would say next to nothing of the others as long as data are few.
        """
        several = np.array([self.groups.count(group) > 1 for group in self.groups], dtype=bool)
        return np.where(several, OPTIONS * self.span, self.span)

    @property
    @abstractmethod
    def groups(self) -> tuple[int, ...]:
        """The number of the parameter that each coordinate belongs to, (d,)."""

    @property
    @abstractmethod
    def rows(self) -> Array | None:
        """All points as an (m, d) array if the space is searched point by point, otherwise None."""

    @property
    @abstractmethod
    def extent(self) -> tuple[int, int]:
        """The number of points, or of settings of the discrete parameters; and the number of continuous coordinates."""

    def numbers(self, row: Array) -> Numbers:
        """Which of `rows` have these coordinates, ascending. O(d log m) after the first call, O(m d)."""
        return np.empty(0, dtype=np.intp) if self._index is None else self._index.find(row)

    @cached_property
    def _index(self) -> RowIndex | None:
        return None if self.rows is None else RowIndex.of(self.rows)

    def evened(self) -> Space:
        """The same points, with evenly spaced coordinates where a column of candidates is a grid (`Candidates`)."""
        return self

    def copy(self, point: Point) -> Point:
        """A point that the user may change; an option of a Choice is the very object that was given."""
        if isinstance(point, np.ndarray):
            return np.array(point)
        label = getattr(point, "label", None)
        return dict(point) if label is None else LabelledPoint(point, label)

    def frozen(self, point: Point) -> Point:
        """A copy that nobody can change."""
        if not isinstance(point, np.ndarray):
            return FrozenPoint(point, getattr(point, "label", None))
        copy = np.array(point)
        copy.flags.writeable = False
        return copy

    @property
    @abstractmethod
    def rounding(self) -> Array:
        """How far apart two encodings of one point may be, (d,): the last digit of a real, 0 otherwise."""

    @abstractmethod
    def encode(self, point: Point) -> Array:
        """The coordinates (d,) of a user's point; a ValueError or TypeError if it is not a point of the space."""

    @abstractmethod
    def canonical(self, point: Point) -> Point:
        """A user's point in the form the library hands out: arrays of floats, dicts of plain Python values; a copy."""

    @abstractmethod
    def decode(self, row: Array) -> Point:
        """The user's point at these coordinates."""
