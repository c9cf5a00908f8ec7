"""What may be queried: a product of parameters (`product.py`) or a table of candidates (`candidates.py`).

A point has two forms. The user writes an array, a dict or a row of a table. The kernel sees a row of d coordinates
(`parameters.py`). `encode` turns the first into the second, and `decode` turns it back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array, Event, Numbers, Point
from gpmi.space.features import FeatureColumns
from gpmi.space.fidelity import FidelityColumn
from gpmi.space.row_index import RowIndex
from gpmi.space.steps import Settable

# Scale of a Choice relative to a number, in `Space.units`. Chosen from 1, 2.5 and 4 on the development tables of
# docs/benchmarks/tables.md with choices, naval_propulsion and cifar10, ten seeds. Scored by the better rows still
# unfound after 100 evaluations, relative to random search: 0.24, 0.07 and 0.06.
OPTION_UNIT = 4.0


class SpaceExhausted(Exception):
    """Every candidate has been offered once and repeats=False."""


class Space(ABC):
    """A set of points. `Space.of` builds one from what a user writes."""

    names: tuple[str, ...] | None  # of the parameters, where a point is a dict; None where it is an array

    @staticmethod
    def of(spec: Any, *, features: Mapping[str, Any] | None = None) -> Space:
        """Build a box from a list of (lo, hi), a named space from a dict, a finite set from an array or DataFrame.

        With a DataFrame, `features` are numbers that describe the values of some of its columns, by the name of the
        column: {"ligand": a DataFrame whose index has the ligands, or a dict by ligand}, as for `Choice`.
        """
        if features is not None and not (hasattr(spec, "columns") and hasattr(spec, "iloc")):
            raise TypeError(
                f"features belongs to the columns of a DataFrame, but space is {checks.shown(spec)}; "
                "give the features to the parameter, gpmi.Choice([...], features=...)"
            )
        if isinstance(spec, Space):
            return spec
        for kind in Space.__subclasses__():
            space = kind.from_spec(spec, features)
            if space is not None:
                return space
        raise TypeError(
            f"space is {checks.shown(spec)}; give a list of (lo, hi), a dict of parameters, "
            "or candidates as an array or DataFrame"
        )

    @staticmethod
    @abstractmethod
    def from_spec(spec: Any, features: Mapping[str, Any] | None = None) -> Space | None:
        """Build a space of this kind from what a user wrote; None if it describes another kind.

        `features` are the descriptors of the columns of a table.
        """

    @abstractmethod
    def constrained(self, constraints: Any) -> Space:
        """Return the part of the space that satisfies constraints: one, a list of them, or None.

        A constraint is a text such as "a + b <= 1", (A, lb, ub) or scipy.optimize.LinearConstraint, `Forbidden`, or a
        function feasible(point) -> bool. If no point is left, a ValueError names those that cannot hold together.
        """

    @abstractmethod
    def with_fixed(self, fixed: Any) -> Space:
        """Return the part of the space in which these parameters, by name or number, have these values.

        Its points have the same coordinates as in the whole space. Raise a ValueError or TypeError if a value is not
        one of its parameter, or if no point is left.
        """

    @abstractmethod
    def fixed_values(self) -> dict[Any, Any]:
        """Return the fixed values by name or number, in canonical form; empty for the whole space."""

    @property
    @abstractmethod
    def fixed_coordinates(self) -> tuple[tuple[int, bytes], ...]:
        """The number of each fixed parameter, with the bytes of its coordinates; empty for the whole space."""

    @property
    @abstractmethod
    def columns(self) -> tuple[slice, ...]:
        """The columns of each parameter among the coordinates; a constant has none."""

    @abstractmethod
    def contains(self, row: Array) -> bool:
        """Whether a point (d,) of the whole space is in this part of it, made by `with_fixed`."""

    @property
    def events(self) -> tuple[Event, ...]:
        """Changes to the space that the user did not ask for."""
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
        """The units of the lengthscales when looking for the best point, (d,).

        They are the span, and OPTION_UNIT times the span for a choice, which has a coordinate for each option. Two
        options are sqrt 2 spans apart, two numbers a third of a span on average. In the same unit, a value at one
        option would say next to nothing about the others while data are few.
        """
        several = np.array([self.groups.count(group) > 1 for group in self.groups], dtype=bool)
        return np.where(several, OPTION_UNIT * self.span, self.span)

    @property
    @abstractmethod
    def groups(self) -> tuple[int, ...]:
        """The number of the parameter that each coordinate belongs to, (d,)."""

    @property
    def features(self) -> FeatureColumns | None:
        """The descriptors of options, as functions of the coordinates; None if no choice has any."""
        return None

    @property
    def fidelity(self) -> FidelityColumn | None:
        """The parameter that says how exactly f is measured; None if there is none."""
        return None

    @property
    def curve_fidelity(self) -> FidelityColumn | None:
        """The fidelity, if it has steps: then an evaluation may report a curve, and be stopped. None if it has not."""
        return self.fidelity if self.fidelity is not None and self.fidelity.fidelity.has_steps else None

    @cached_property
    def target(self) -> Space:
        """The points at the target of the fidelity: all points if there is none."""
        return self.with_fixed(self.target_values) if self.target_values else self

    @cached_property
    def target_values(self) -> Mapping[str, Any]:
        """The target of the fidelity by its name; empty if there is none."""
        return {} if self.fidelity is None else {self.fidelity.name: self.fidelity.fidelity.target}

    def check_at_target(self, fixed: Any) -> None:
        """Refuse fixed coordinates with the fidelity: results are at its target."""
        for name, target in self.target_values.items():
            if isinstance(fixed, Mapping) and name in fixed:
                raise ValueError(f"fixed has {name!r}, but results are at {target!r}; leave it out")

    @property
    def parameter_count(self) -> int:
        """The number of parameters that are optimised: those that vary, without a fidelity."""
        return len(set(self.groups)) - len(self.target_values)

    @property
    def support_count(self) -> int:
        """How many supports an initial design shows, where constraints count parameters; 0 if there are too many."""
        return 0

    @property
    def counts_parameters(self) -> bool:
        """Whether constraints count parameters of a space that cannot be enumerated."""
        return False

    @property
    @abstractmethod
    def rows(self) -> Array | None:
        """All points, (m, d), if the space is searched point by point; otherwise None."""

    @property
    @abstractmethod
    def extent(self) -> tuple[int, int]:
        """The number of points, or of settings of the discrete parameters, and the number of continuous coordinates."""

    def row_numbers(self, row: Array) -> Numbers:
        """Return which of `rows` have these coordinates, ascending. O(d log m) after the first call, O(m d)."""
        return np.empty(0, dtype=np.intp) if self._index is None else self._index.find(row)

    @cached_property
    def _index(self) -> RowIndex | None:
        return None if self.rows is None else RowIndex.of(self.rows)

    def with_ranks(self) -> Space:
        """Return the same points, with ranks as coordinates where a column of candidates is a grid (`Candidates`)."""
        return self

    @property
    def is_stepped(self) -> bool:
        """Whether a Real that is not fixed has a step: what is suggested is at its settings."""
        return False

    def settable(self, row: Array, taken: Container[bytes] = ()) -> Settable:
        """Return the nearest point (d,) that instruments can set and that keeps the constraints; see `steps.py`."""
        return Settable(row, True)

    @property
    @abstractmethod
    def rounding(self) -> Array:
        """How far apart two encodings of one point may be, (d,): the last digit of a real, 0 otherwise."""

    @abstractmethod
    def encode(self, point: Point) -> Array:
        """Return the coordinates (d,) of a user's point. Raise ValueError or TypeError if it is not in the space."""

    @abstractmethod
    def canonical(self, point: Point) -> Point:
        """Return a copy of a user's point in the library's form: an array of floats, or a dict of plain values."""

    @abstractmethod
    def decode(self, row: Array) -> Point:
        """Return the user's point at these coordinates."""
