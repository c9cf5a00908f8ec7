"""A product of parameters: a box, or a named space; with constraints, the part of it that keeps to them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gpmi._support import checks
from gpmi._support.sobol import sobol
from gpmi._support.text import shortened
from gpmi._support.types import Array, Event, Mask, Point
from gpmi.space.conditions.conditions import Constant, OnArc, Part, Pinned, level_numbers
from gpmi.space.constraints.constraints import EXACT, Codes, Field, Rules, minimal, name_of, nothing_left, rules_of
from gpmi.space.constraints.region import Region, copied
from gpmi.space.conversion import box_parameters, named_parameters, read_as_choices
from gpmi.space.fixed import moved_to, numbers_given, pinned, rules_left
from gpmi.space.layout import Layout, numeric
from gpmi.space.parameters import Parameter
from gpmi.space.space import Space

ENUMERATED = 20_000  # a discrete space with no more points than this is searched point by point: our choice, not tuned
_MOVED = 32  # points outside of which one is made that is inside, of all that are tried together; our limit
_EXTENT = 128  # points from which the width of what constraints leave is taken; our choice, not tuned
_NO_RULES = Rules((), np.zeros(0), (), ())


@dataclass(frozen=True, eq=False, repr=False)
class Parameters(Space):
    """A product of parameters: a box (names is None, a point is an array) or a named space (a point is a dict)."""

    parameters: tuple[Parameter | Constant | Pinned, ...]
    names: tuple[str, ...] | None
    rules: Rules = _NO_RULES
    events: tuple[Event, ...] = ()  # how what was written was read, where it may have meant something else

    @staticmethod
    def meant_by(spec: Any) -> Parameters | None:
        if isinstance(spec, Mapping):
            return Parameters.named(spec)
        if isinstance(spec, Sequence) and not isinstance(spec, str):
            return Parameters.box(spec)
        return None

    @staticmethod
    def box(bounds: Sequence[Any]) -> Parameters:
        """[lo_1, hi_1] x ... x [lo_d, hi_d]."""
        return Parameters(box_parameters(bounds), None)

    @staticmethod
    def named(spec: Mapping[Any, Any]) -> Parameters:
        """The product of the parameters of a dict."""
        parameters = named_parameters(spec)
        return Parameters(tuple(parameters.values()), tuple(parameters), events=read_as_choices(spec))

    def __post_init__(self) -> None:
        _ = self.layout.conditions  # refuses wrong ones

    def __repr__(self) -> str:
        names = self.names or [f"x[{i}]" for i in range(len(self.parameters))]
        parts = [f"{name}: {parameter!r}" for name, parameter in zip(names, self.parameters, strict=True)]
        rules = f", with {', '.join(self.rules.texts)}" if self.rules.texts else ""
        return shortened(f"<Space of {len(parts)} parameters, {', '.join(parts)}{rules}>")

    # Where the parameters are

    @cached_property
    def layout(self) -> Layout:
        """Where the parameters lie among the coordinates."""
        return Layout(self.parameters, self.names)

    @property
    def parts(self) -> tuple[Part, ...]:
        """What the coordinates of each parameter are."""
        return self.layout.parts

    @property
    def columns(self) -> tuple[slice, ...]:
        """The coordinates of each parameter."""
        return self.layout.columns

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
        """hi - lo, (d,); where constraints leave less than half of that, the width of what they leave, about."""
        full = np.where(self.hi > self.lo, self.hi - self.lo, 1.0)
        if not self.rules.texts:
            return full
        found = self.rows
        if found is None:
            found = self.region.spread(self._targets, _EXTENT, np.random.default_rng(0))
        width = np.ptp(found, axis=0)
        alone = np.concatenate([np.full(part.width, part.width == 1) for part in self.parts])
        result: Array = np.where(alone & (width > 0.0) & (width < 0.5 * full), width, full)
        return result

    @property
    def units(self) -> Array:
        """As of every space; the span for a number under a condition, whose values are as far apart as any number's."""
        on_arc = np.concatenate([np.full(part.width, isinstance(part, OnArc)) for part in self.parts])
        result: Array = np.where(on_arc, self.span, super().units)
        return result

    @cached_property
    def scale(self) -> Array:
        """The span of each Real in widths of its interval, (q,): less than 1 where constraints leave little of it."""
        widths = self.span / np.where(self.hi > self.lo, self.hi - self.lo, 1.0)
        return np.array([widths[self.columns[j]].max() for j in self.region.reals])

    @property
    def rounding(self) -> Array:
        return self.layout.rounding

    @property
    def groups(self) -> tuple[int, ...]:
        return self.layout.groups

    @cached_property
    def free(self) -> Mask:
        """Which coordinates are those of a Real, (d,)."""
        return np.concatenate([np.full(part.width, part.count is None) for part in self.parts])

    @cached_property
    def combinations(self) -> int:
        """The number of settings of the parameters that are not Real."""
        return math.prod(part.count for part in self.parts if part.count is not None)

    @cached_property
    def rows(self) -> Array | None:
        if any(part.count is None for part in self.parts) or math.prod(self._sizes) > ENUMERATED:
            return None
        return self._all_rows[self.region.inside(self._all_rows)] if self.rules.texts else self._all_rows

    @property
    def _sizes(self) -> list[int]:
        """The number of levels of each parameter within `Region.ranges`."""
        first, last = self.region.ranges.T
        return [int(count) for count in last - first + 1.0]

    @cached_property
    def _all_rows(self) -> Array:
        """All points of a discrete space within `Region.ranges`, those that break a constraint included."""
        picks = np.indices(self._sizes).reshape(len(self._sizes), -1) + self.region.ranges[:, :1].astype(np.intp)
        rows = np.concatenate([part.level(i) for part, i in zip(self.parts, picks, strict=True)], axis=1)
        if not self.layout.conditional:
            return rows
        _, first = np.unique(self.layout.normal(rows), axis=0, return_index=True)
        return self.layout.normal(rows)[np.sort(first)]

    @cached_property
    def extent(self) -> tuple[int, int]:
        if self.rows is not None:
            return len(self.rows), 0
        return self.combinations, sum(part.count is None for part in self.parts)

    @property
    def unit_dim(self) -> int:
        """p, the number of parameters: the dimension of the unit cube of `from_unit`."""
        return len(self.parameters)

    def from_unit(self, u: Array) -> Array:
        """Coordinates (m, d) of points u (m, p) of the unit cube, one u for each parameter, constraints apart."""
        return self.layout.at(u)

    # One point

    def encode(self, point: Point) -> Array:
        row = self.layout.encode(point)
        if self.rules.texts:
            numbers = self.layout.numbers(row[None])
            values, active = self.layout.values(numbers)[0], self.layout.active(numbers)[0]
            self.rules.check(point, values, numbers[0], active, lambda _: self.layout.canonical(point))
        return row

    def canonical(self, point: Point) -> Point:
        return self.layout.canonical(point)

    def decode(self, row: Array) -> Point:
        return self.layout.decode(row)

    # Constraints

    @property
    def plain(self) -> bool:
        """Whether all of the product belongs to the space, and every point has all parameters."""
        return not (self.rules.texts or self.layout.conditional)

    @cached_property
    def region(self) -> Region:
        """The part of the product that keeps to the constraints."""
        return Region(self.layout, self.rules)

    def inside(self, z: Array) -> Mask:
        """Which points (m, d) of the product belong to the space."""
        return self.region.inside(z) if self.rules.texts else np.ones(len(z), dtype=bool)

    def stepped(self, z: Array, new: Array) -> Array:
        """Where steps from points z of the space to `new`, both (m, d), end: at the last point of the space on the way.

        In a product that is `new` within the bounds.
        """
        with np.errstate(invalid="ignore"):
            clipped = np.clip(new, self.lo, self.hi)
        return clipped if self.plain else self.region.stepped(z, clipped)

    def kept(self, z: Array, trial: Array) -> tuple[Array, Mask]:
        """The points `trial`, made from points z of the space, both (k, d), and which of them belong to it.

        Inactive parameters are set as they must be. Some of those outside are moved inside, where that is possible
        without giving up their discrete parameters.
        """
        trial = self.layout.normal(trial)
        good = self.inside(trial)
        outside = np.flatnonzero(~good)
        if not self.rules.rows or not len(outside):
            return trial, good
        some = outside[np.unique(np.linspace(0, len(outside) - 1, _MOVED).round().astype(int))]
        moved = self.stepped(z[some], trial[some])
        same = np.all(moved[:, ~self.free] == trial[some][:, ~self.free], axis=1)
        trial[some], good[some] = moved, same & self.inside(moved)
        return trial, good

    def constrained(self, constraints: Any) -> Parameters:
        if constraints is None:
            return self
        names = self.names or tuple(f"x{i}" for i in range(len(self.parameters)))
        fields = [_field(name, parameter) for name, parameter in zip(names, self.parameters, strict=True)]
        more = rules_of(constraints, fields)
        rules = Rules(
            self.rules.rows + more.rows,
            np.concatenate([self.rules.sizes, more.sizes]),
            self.rules.forbidden + more.forbidden,
            self.rules.feasible + more.feasible,
        )
        space = replace(self, rules=rules)
        space.refuse_if_empty()
        return space

    # Given coordinates

    def given(self, fixed: Any) -> Parameters:
        found = pinned(self.layout, numbers_given(fixed, self.names, len(self.parameters)))
        parameters = tuple(found.get(j, parameter) for j, parameter in enumerate(self.parameters))
        part = replace(self, parameters=parameters, rules=rules_left(self.rules, self.layout, found))
        try:
            part.refuse_if_empty()
        except ValueError as error:
            raise ValueError(f"fixed is {checks.shown(dict(fixed))}, with which no point is left: {error}") from None
        return part

    def values_given(self) -> dict[Any, Any]:
        """What is given here, by name or by number."""
        pairs = enumerate(self.parameters)
        return {self.names[j] if self.names else j: p.value for j, p in pairs if isinstance(p, Pinned)}

    @cached_property
    def pins(self) -> tuple[tuple[int, bytes], ...]:
        return tuple((j, part.row.tobytes()) for j, part in enumerate(self.parts) if isinstance(part, Pinned))

    def has(self, row: Array) -> bool:
        return all(row[self.columns[j]].tobytes() == place for j, place in self.pins)

    def brought(self, z: Array) -> Array:
        """Points (m, d) of a space of which this is the part with given coordinates, with these; those inside."""
        if not self.pins:
            return z
        moved = moved_to(z, self.layout)
        result: Array = moved[self.inside(moved)]
        return result

    def refuse_if_empty(self) -> None:
        """A ValueError that names the constraints that cannot hold together, if there are such."""
        if not self.rules.texts:
            return
        if self.rows is not None:
            together = [] if len(self.rows) else self._conflict_of_rows()
        elif self.inside(self._targets(10)).any():
            return
        else:
            together = self.region.conflict()
            if not together and not len(self.region.spread(self._targets, 1, np.random.default_rng(0))):
                together = [name_of(function) for function in self.rules.feasible]
        if together:
            raise ValueError(nothing_left(together, "they leave no point"))

    def _targets(self, log2: int) -> Array:
        return self.from_unit(sobol(self.unit_dim, log2, (0,)))

    def _conflict_of_rows(self) -> list[str]:
        """Constraints that cannot hold together on a finite set."""
        rules, z = self.rules, self._all_rows
        numbers = self.layout.numbers(z)
        active = self.layout.active(numbers)
        linear = rules.excess(self.layout.values(numbers), active) <= EXACT * rules.sizes
        points = [self.decode(row) for row in z] if rules.feasible else []
        own = [[Rules((), np.zeros(0), (), (f,)).allows(x, copied) for x in points] for f in rules.feasible]
        kept = np.column_stack([linear, ~rules.combined(numbers, active), *map(np.array, own)])
        return [rules.texts[i] for i in minimal(kept.shape[1], lambda some: not kept[:, some].all(axis=1).any())]


def _field(name: str, parameter: Parameter | Constant | Pinned) -> Field:
    """What a constraint may say of a parameter."""

    def codes(label: str, value: Any) -> Codes:
        return frozenset(map(float, level_numbers(label, name, parameter, value)))

    largest = None
    if numeric(parameter):
        assert not isinstance(parameter, Pinned)
        if isinstance(parameter, Constant):
            largest = abs(float(parameter.value))
        elif hasattr(parameter, "options"):
            largest = max(abs(float(option)) for option in parameter.options)
        else:
            largest = max(abs(parameter.lo), abs(parameter.hi))
    return Field(name, largest, codes)
