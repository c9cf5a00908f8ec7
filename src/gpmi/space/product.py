"""A product of parameters: a box, or a named space. With constraints, the part of the product that satisfies them."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gpmi._support import checks
from gpmi._support.refusals import RefusedValue
from gpmi._support.sobol import sobol
from gpmi._support.text import shortened
from gpmi._support.types import Array, Event, Mask, Point
from gpmi.space.conditions.arc import OnArc
from gpmi.space.conditions.conditional_layout import layout_of
from gpmi.space.constraints.constraints import (
    NO_CONSTRAINTS,
    Constraints,
    parameter_operand,
    read_constraints,
)
from gpmi.space.constraints.feasible_set import FeasibleSet
from gpmi.space.conversion import box_parameters, named_parameters, two_option_events
from gpmi.space.encoding import Encoding
from gpmi.space.enumeration import enumerated, size_of
from gpmi.space.features import FeatureColumns
from gpmi.space.fidelity import Fidelity, FidelityColumn, find_fidelity
from gpmi.space.fixed import Constant, FixedParameter
from gpmi.space.fixed_values import fix, fixed_by_number
from gpmi.space.layout import Layout
from gpmi.space.parameters import Parameter
from gpmi.space.space import Space
from gpmi.space.steps import Settable, settable, settings_around, stepped

ENUMERATED = 20_000  # a discrete space with at most this many points is searched point by point: our choice, not tuned
_EXTENT_POINTS = 128  # points from which the width of the feasible set is estimated; our choice, not tuned


@dataclass(frozen=True, eq=False, repr=False)
class Parameters(Space):
    """A product of parameters: a box (names is None, a point is an array) or a named space (a point is a dict)."""

    parameters: tuple[Parameter | Fidelity | Constant | FixedParameter, ...]
    names: tuple[str, ...] | None
    constraints: Constraints = NO_CONSTRAINTS
    events: tuple[Event, ...] = ()  # where the user may have meant something else

    @staticmethod
    def from_spec(spec: Any, features: Mapping[str, Any] | None = None) -> Parameters | None:
        if isinstance(spec, Mapping):
            return Parameters.named(spec)
        if isinstance(spec, Sequence) and not isinstance(spec, str):
            return Parameters.box(spec)
        return None

    @staticmethod
    def box(bounds: Sequence[Any]) -> Parameters:
        """Return [lo_1, hi_1] x ... x [lo_d, hi_d]."""
        return Parameters(box_parameters(bounds), None)

    @staticmethod
    def named(spec: Mapping[Any, Any]) -> Parameters:
        """Return the product of the parameters of a dict."""
        parameters = named_parameters(spec)
        described = [(name, part.choice.features) for name, part in parameters.items() if part.choice is not None]
        left_out = [event for name, features in described if features is not None for event in features.event(name)]
        events = (*two_option_events(spec), *left_out)
        return Parameters(tuple(parameters.values()), tuple(parameters), events=events)

    def __post_init__(self) -> None:
        fidelity = self.fidelity  # raises if there are several
        above = [condition.parent for conditions in self.layout.conditions for condition in conditions]  # or raises
        if fidelity is not None:
            fidelity.check_conditions({self.columns[parent].start for parent in above})

    def __repr__(self) -> str:
        names = self.names or [f"x[{i}]" for i in range(len(self.parameters))]
        parts = [f"{name}: {parameter!r}" for name, parameter in zip(names, self.parameters, strict=True)]
        constraints = f", with {', '.join(self.constraints.texts)}" if self.constraints.texts else ""
        return shortened(f"<Space of {len(parts)} parameters, {', '.join(parts)}{constraints}>")

    # Coordinates

    @cached_property
    def layout(self) -> Layout:
        """Which coordinates belong to which parameter."""
        return layout_of(Layout(self.parameters, self.names))

    @property
    def encodings(self) -> tuple[Encoding, ...]:
        """The encoding of each parameter: the parameter itself, or an arc for a number under a condition."""
        return self.layout.encodings

    @property
    def columns(self) -> tuple[slice, ...]:
        return self.layout.columns

    @cached_property
    def features(self) -> FeatureColumns | None:
        inner = [part.inner if isinstance(part, FixedParameter) else part for part in self.encodings]
        described = [None if part.choice is None else part.choice.features for part in inner]
        return FeatureColumns.of(zip(self.columns, described, strict=True), self.groups)

    @property
    def lo(self) -> Array:
        result: Array = self.layout.ends[0]
        return result

    @property
    def hi(self) -> Array:
        result: Array = self.layout.ends[1]
        return result

    @cached_property
    def span(self) -> Array:
        """hi - lo, (d,). Where constraints leave less than half of that, about the width that they leave."""
        full = np.where(self.hi > self.lo, self.hi - self.lo, 1.0)
        if not self.constraints.texts:
            return full
        points = self.rows
        if points is None:
            points = self.feasible_set.spread(self._sobol_points, _EXTENT_POINTS, np.random.default_rng(0))
        width = np.ptp(points, axis=0)
        alone = np.concatenate([np.full(encoding.width, encoding.width == 1) for encoding in self.encodings])
        result: Array = np.where(alone & (width > 0.0) & (width < 0.5 * full), width, full)
        return result

    @property
    def units(self) -> Array:
        """The units of the lengthscales, (d,).

        As in `Space.units`, except for numbers on an arc. The arc of a condition keeps distances comparable: the unit
        is the span. On a circle it is the circumference, as for a Real that is as long as the circle.
        """
        widths = [encoding.width for encoding in self.encodings]
        on_arc = np.repeat([isinstance(encoding, OnArc) for encoding in self.encodings], widths)
        on_circle = np.repeat([encoding.circular for encoding in self.encodings], widths)
        result: Array = np.where(on_circle, math.pi * self.span, np.where(on_arc, self.span, super().units))
        return result

    @cached_property
    def scale(self) -> Array:
        """The span of each Real in widths of its interval, (q,): less than 1 where constraints leave little of it."""
        widths = self.span / np.where(self.hi > self.lo, self.hi - self.lo, 1.0)
        return np.array([widths[self.columns[j]].max() for j in self.feasible_set.reals])

    @property
    def rounding(self) -> Array:
        return self.layout.rounding

    @property
    def groups(self) -> tuple[int, ...]:
        return self.layout.groups

    @property
    def continuous(self) -> Mask:
        """Which coordinates are those of a Real, (d,)."""
        return self.layout.continuous

    @cached_property
    def fidelity(self) -> FidelityColumn | None:
        return find_fidelity(self.parameters, self.names, self.columns)

    @cached_property
    def discrete_settings(self) -> int:
        """The number of settings of the parameters that are not Real."""
        return math.prod(encoding.count for encoding in self.encodings if encoding.count is not None)

    @cached_property
    def rows(self) -> Array | None:
        if any(encoding.count is None for encoding in self.encodings) or size_of(self.feasible_set.ranges) > ENUMERATED:
            return None
        rows = self._all_rows
        return rows[self.feasible_set.contains(rows)] if self.constraints.texts else rows

    @cached_property
    def _all_rows(self) -> Array:
        """All points of a discrete product within `FeasibleSet.ranges`, feasible or not."""
        return enumerated(self.layout, self.feasible_set.ranges)

    @cached_property
    def extent(self) -> tuple[int, int]:
        if self.rows is not None:
            return len(self.rows), 0
        return self.discrete_settings, sum(encoding.count is None for encoding in self.encodings)

    @property
    def unit_dim(self) -> int:
        """p, the number of parameters: the dimension of the unit cube of `from_unit`."""
        return len(self.parameters)

    def from_unit(self, u: Array) -> Array:
        """Return coordinates (m, d) of points u (m, p) of the unit cube, one u for each parameter.

        Constraints are ignored.
        """
        return self.layout.from_unit(u)

    def settable(self, row: Array, taken: Container[bytes] = ()) -> Settable:
        return settable(self.feasible_set, self._filled, row, taken) if self.is_stepped else Settable(row, True)

    def settings_around(self, row: Array) -> Array:
        """Return points (m, d) around a point that instruments can set, the nearest first; none without steps."""
        return settings_around(self.feasible_set, self._filled, row) if self.is_stepped else np.empty((0, len(row)))

    def _filled(self, fixed: Mapping[Any, Any], row: Array) -> Array | None:
        """Return a point (d,), moved to the part of the space with fixed values; None if that is empty."""
        try:
            part = self.with_fixed(fixed)
        except ValueError:
            return None
        return np.asarray(part.last_inside(row[None], row[None])[0])

    @cached_property
    def is_stepped(self) -> bool:
        return bool(stepped(self.layout))

    # One point

    def encode(self, point: Point) -> Array:
        row = self.layout.encode(point)
        if self.constraints.texts:
            numbers = self.layout.level_numbers(row[None])
            values, active = self.layout.values(numbers)[0], self.layout.active(numbers)[0]
            self.constraints.check(point, values, numbers[0], active, self.layout.canonical)
        return row

    def canonical(self, point: Point) -> Point:
        return self.layout.canonical(point)

    def decode(self, row: Array) -> Point:
        return self.layout.decode(row)

    # Constraints

    @property
    def plain(self) -> bool:
        """Whether there are no constraints and no conditions: the space is the whole product."""
        return not (self.constraints.texts or self.layout.conditional)

    @cached_property
    def is_straight(self) -> bool:
        """Whether it is the whole product and no parameter goes round: each continuous coordinate moves by itself."""
        return self.plain and not any(encoding.circular for encoding in self.encodings)

    @cached_property
    def feasible_set(self) -> FeasibleSet:
        """The part of the product that satisfies the constraints."""
        return FeasibleSet(self.layout, self.constraints)

    @property
    def support_count(self) -> int:
        return len(self.feasible_set.supports.few) if self.counts_parameters else 0

    @property
    def counts_parameters(self) -> bool:
        return bool(self.constraints.counts) and self.rows is None

    def last_inside(self, z: Array, new: Array) -> Array:
        """Return the last points of the space on the lines from its points z to `new`, all (m, d).

        Without constraints this is `new`, clipped to the bounds.
        """
        with np.errstate(invalid="ignore"):
            clipped = np.clip(new, self.lo, self.hi)
        return clipped if self.is_straight else self.feasible_set.last_inside(z, clipped)

    def constrained(self, constraints: Any) -> Parameters:
        if constraints is None:
            return self
        names = self.names or tuple(f"x{i}" for i in range(len(self.parameters)))
        operands = [parameter_operand(name, parameter) for name, parameter in zip(names, self.parameters, strict=True)]
        space = replace(self, constraints=self.constraints.joined_with(read_constraints(constraints, operands)))
        if (conflict := space._conflict()) is not None:
            raise conflict
        return space

    def _conflict(self) -> RefusedValue | None:
        """Return the error that names the constraints that cannot hold together; None if a point is left."""
        if not self.constraints.texts:
            return None
        if self.rows is None:
            together = self.feasible_set.conflict(self._sobol_points)
        else:
            together = [] if len(self.rows) else self.feasible_set.conflict_among(self._all_rows)
        return self.constraints.conflict(together, "they leave no point") if together else None

    def _sobol_points(self, log2: int) -> Array:
        return self.from_unit(sobol(self.unit_dim, log2, (0,)))

    # Fixed coordinates

    def with_fixed(self, fixed: Any) -> Parameters:
        parts = fix(self.layout, fixed_by_number(fixed, self.names, len(self.parameters)))
        parameters = tuple(parts.get(j, parameter) for j, parameter in enumerate(self.parameters))
        others = self.constraints.with_fixed(
            {j: fixed_part for j, fixed_part in parts.items() if isinstance(fixed_part, FixedParameter)}
        )
        part = replace(self, parameters=parameters, constraints=others)
        if (conflict := part._conflict()) is not None:
            sentence = f"fixed is {checks.shown(dict(fixed))}, which leaves no point: {conflict}"
            raise RefusedValue(sentence, "fixed-leaves-nothing", **conflict.values)
        return part

    def fixed_values(self) -> dict[Any, Any]:
        pairs = enumerate(self.parameters)
        return {self.names[j] if self.names else j: p.value for j, p in pairs if isinstance(p, FixedParameter)}

    @cached_property
    def fixed_coordinates(self) -> tuple[tuple[int, bytes], ...]:
        pairs = enumerate(self.encodings)
        return tuple((j, encoding.row.tobytes()) for j, encoding in pairs if isinstance(encoding, FixedParameter))

    def contains(self, row: Array) -> bool:
        return all(row[self.columns[j]].tobytes() == coordinates for j, coordinates in self.fixed_coordinates)

    def move_to_fixed(self, z: Array) -> Array:
        """Set the fixed coordinates of points (m, d) of the whole space. Return those that satisfy the constraints."""
        if not self.fixed_coordinates:
            return z
        moved = self.layout.move_to_fixed(z)
        result: Array = moved[self.feasible_set.contains(moved)]
        return result
