"""The part of a product that satisfies the constraints: which points, steps inside it, points spread over it.

For each setting of the discrete parameters the linear constraints leave a polytope of the reals. Its variables s are
the values of the reals, scaled to [0, 1]. For a real with log=True that a constraint is about, s is the scaled value,
too, because the constraint is linear in the value and not in its logarithm. For other reals with log=True, s is the
scaled logarithm.

Where counts say how many parameters are on, the reals that are off belong to the setting: the polytope is that of the
others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gpmi._support.types import Array, Mask, Numbers, Point
from gpmi.space.conditions.arc import OnArc
from gpmi.space.constraints.constraints import FEASIBILITY_TOLERANCE, Constraints, minimal_conflict
from gpmi.space.constraints.counts import counts_hold
from gpmi.space.constraints.level_ranges import level_ranges
from gpmi.space.constraints.nearest_setting import LEAST_ON, NearestSetting
from gpmi.space.constraints.polytope import THIN, Polytope
from gpmi.space.constraints.supports import Supports
from gpmi.space.layout import Layout

# Our limits of the cost, not tuned.
_REMEMBERED = 4096  # polytopes, one for each setting of the discrete parameters
_TRIES = 2**15  # points that are tried where constraints are functions; 0.1 s at 3 microseconds each
# Stop rejection sampling after this many tries if under a tenth of the points were found; sample the polytopes instead.
_HOPELESS = 2**11
_SETTINGS = 64  # settings of the discrete parameters that are found by integer programs, for one set of points
_GROWTH = 8  # rounds that add points around those already found
_HALVINGS = 12  # of a step that a function refuses; after these the point stays
_REPAIRED = 32  # infeasible points that are moved inside, of all that are tried together
_FLOORS = (LEAST_ON, 1e-6, 0.0)  # of parameters that must be on, in their widths; the first that leaves a point
_NOTHING = 1e-13  # a counted parameter below this, in widths, is off: a step that ends at 0 may be wrong by rounding

# log2 -> 2^log2 points (., d) spread over the product; nested: a longer list extends a shorter one
Targets = Callable[[int], Array]


@dataclass(frozen=True, eq=False)
class FeasibleSet:
    """The points of a product that satisfy the constraints; all of its points if there are none."""

    layout: Layout
    constraints: Constraints
    _polytopes: dict[bytes, Polytope | None] = field(default_factory=dict)  # by the constraints on the reals
    _by_setting: dict[bytes, Polytope | None] = field(default_factory=dict)  # by the setting: faster to look up

    # The reals, scaled to s

    @cached_property
    def reals(self) -> Numbers:
        """The numbers of the parameters that are Real, (q,)."""
        return np.array([j for j, p in enumerate(self.layout.parameters) if p.count is None], dtype=np.intp)

    @cached_property
    def by_value(self) -> Mask:
        """Which of the reals have s scaled from their values and not from their coordinates, (q,)."""
        constraints, p = self.constraints, len(self.layout.parameters)
        used = np.any(constraints.used, axis=0) if constraints.linear else np.zeros(p, bool)
        logs = np.array([getattr(self.layout.parameters[j], "log", False) for j in self.reals], dtype=bool)
        result: Mask = used[self.reals] & logs
        return result

    @cached_property
    def low(self) -> Array:
        """The value, or the coordinate, at s = 0, (q,)."""
        return self._limits[:, 0]

    @cached_property
    def width(self) -> Array:
        """How much larger the value, or the coordinate, is at s = 1, (q,)."""
        return self._limits[:, 1] - self._limits[:, 0]

    @cached_property
    def _limits(self) -> Array:
        limits = []
        for j, by_value in zip(self.reals, self.by_value, strict=True):
            p = self.layout.parameters[j]
            limits.append(p.limits if by_value else p.ends[:, 0])
        return np.array(limits).reshape(-1, 2)

    @cached_property
    def _circular(self) -> Numbers:
        """The places of those that go round among the reals."""
        return np.flatnonzero([self.layout.parameters[j].circular for j in self.reals])

    def s_of(self, numbers: Array, around: Array | None = None) -> Array:
        """Return s (m, q) at level numbers (m, p), which for a Real are its coordinate.

        What goes round has its s = 1/2 at the point itself, or at other level numbers `around`, (m, p): no step that is
        at most half a turn meets an end.
        """
        c = numbers[:, self.reals]
        t = np.where(self.by_value, np.exp(np.where(self.by_value, c, 0.0)), c)
        s = np.clip((t - self.low) / self.width, 0.0, 1.0)
        if len(self._circular):
            middle = numbers if around is None else around
            turns = ((c - middle[:, self.reals]) / self.width)[:, self._circular]
            s[:, self._circular] = np.clip(0.5 + turns - np.round(turns), 0.0, 1.0)
        return s

    def with_s(self, numbers: Array, s: Array) -> Array:
        """Return the level numbers (m, p) with the reals at s (m, q); what goes round turns by s - 1/2 from there."""
        t = np.clip(self.low + s * self.width, self.low, self.low + self.width)
        c = np.where(self.by_value, np.log(np.where(self.by_value, t, 1.0)), t)
        if len(self._circular):
            turned = numbers[:, self.reals] - self.low + (s - 0.5) * self.width
            c[:, self._circular] = (self.low + np.mod(turned, self.width))[:, self._circular]
        new = numbers.copy()
        new[:, self.reals] = np.clip(c, self._ends[:, 0], self._ends[:, 1])
        if len(self._switched):
            off = (numbers[:, self._switched] == 0.0) | (s[:, self._switched_s] < _NOTHING)
            new[:, self._switched] = np.where(off, 0.0, new[:, self._switched])
        return new

    @cached_property
    def supports(self) -> Supports:
        """Which of the counted parameters may be on together."""
        return self.nearest_setting.supports

    @cached_property
    def _switched(self) -> Numbers:
        """The numbers of the reals that are counted."""
        return self.supports.reals if self.constraints.counts else np.empty(0, dtype=np.intp)

    @cached_property
    def _switched_s(self) -> Numbers:
        """Their places among the reals."""
        return np.searchsorted(self.reals, self._switched)

    def _setting(self, numbers: Array) -> Array:
        """Return what a polytope depends on at level numbers (m, p): discrete parameters, and which reals are off."""
        discrete = numbers[:, list(self.nearest_setting.discrete)]
        if not len(self._switched):
            return discrete
        return np.concatenate([discrete, numbers[:, self._switched] == 0.0], axis=1)

    @cached_property
    def _discrete(self) -> Numbers:
        """The numbers of the parameters that are not Real."""
        return np.setdiff1d(np.arange(len(self.layout.encodings)), self.reals)

    @cached_property
    def _ends(self) -> Array:
        """The smallest and the largest coordinate of each real, (q, 2)."""
        return np.array([self.layout.parameters[j].ends[:, 0] for j in self.reals]).reshape(-1, 2)

    def slopes(self, z: Array) -> Array:
        """Return the derivative of each real coordinate, on its line or arc, with respect to its s, (m, d)."""
        numbers = self.layout.level_numbers(z)
        active = self.layout.active(numbers)
        result = np.zeros(z.shape)
        for i, j in enumerate(self.reals):
            encoding, column = self.layout.encodings[j], self.layout.columns[j]
            speed = self.width[i] / np.exp(numbers[:, j]) if self.by_value[i] else np.full(len(z), self.width[i])
            if isinstance(encoding, OnArc):
                way = np.stack([-z[:, column.stop - 1], z[:, column.start]], axis=1)  # at right angles to the radius
                result[:, column] = (speed * encoding.speed)[:, None] * way * active[:, j : j + 1]
            else:
                result[:, column] = speed[:, None]
        return result

    # Inside or not

    def contains(self, z: Array) -> Mask:
        """Return which points (m, d) of the product satisfy the constraints."""
        if not self.constraints.texts:
            return np.ones(len(z), dtype=bool)
        numbers = self.layout.level_numbers(z)
        active = self.layout.active(numbers)
        excess = self.constraints.excess(self.layout.values(numbers), active)
        good: Mask = np.all(excess <= FEASIBILITY_TOLERANCE * self.constraints.sizes, axis=1)
        good &= ~self.constraints.forbidden_at(numbers, active).any(axis=1)
        if self.constraints.counts:
            good &= counts_hold(self.constraints.counts, self.layout.values(numbers)).all(axis=1)
        if self.constraints.functions:
            which = np.flatnonzero(good)
            points = self.layout.decode_all(z[which])
            good[which] = [self.constraints.functions_allow(point, copied) for point in points]
        return good

    def polytope(self, numbers: Array) -> Polytope | None:
        """Return the reals that the linear constraints leave where the discrete parameters have level numbers (p,).

        None if they leave nothing.
        """
        setting = self._setting(numbers[None])[0].tobytes()
        if setting not in self._by_setting:
            if len(self._by_setting) >= _REMEMBERED:
                self._by_setting.clear()
            self._by_setting[setting] = self._polytope(numbers)
        return self._by_setting[setting]

    def _polytope(self, numbers: Array) -> Polytope | None:
        """Build the polytope of a setting. Settings with the same constraints on the reals share one."""
        counts, on = self.constraints.counts, np.ones(len(self.reals), dtype=bool)
        if counts:
            if not self.supports.allowed(self.supports.on(numbers[None]))[0]:
                return None
            on[self._switched_s] = numbers[self._switched] != 0.0
        active = self.layout.active(numbers[None])[0]
        at_zero = self.with_s(numbers[None], np.zeros((1, len(self.reals))))
        # What the discrete parameters contribute to each inequality; one with an inactive parameter does not apply.
        shift = np.zeros(len(self.constraints.linear))
        holds = np.ones(len(self.constraints.linear), dtype=bool)
        matrix = np.zeros((len(self.constraints.linear), len(self.reals)))
        if self.constraints.linear:
            shift = self.constraints.matrix @ self.layout.values(at_zero)[0]
            holds = ~(self.constraints.used @ ~active)
            matrix = self.constraints.matrix[:, self.reals] * self.width * on
        lower, upper = self.constraints.lower, self.constraints.upper
        about_reals = matrix.any(axis=1)
        others = holds & ~about_reals
        if np.any((lower - shift)[others] > THIN) or np.any((upper - shift)[others] < -THIN):
            return None
        holds &= about_reals
        key = shift[holds].tobytes() + holds.tobytes() + (on.tobytes() if counts else b"")
        if key not in self._polytopes:
            if len(self._polytopes) >= _REMEMBERED:
                self._polytopes.clear()
            rows = matrix[holds], (lower - shift)[holds], (upper - shift)[holds]
            self._polytopes[key] = self._of_support(*rows, on) if counts else Polytope.of(*rows)
        return self._polytopes[key]

    def _of_support(self, matrix: Array, lower: Array, upper: Array, on: Mask) -> Polytope | None:
        """Return the polytope where only some of the reals, (q,), are on; None if it is empty.

        Those that a count needs have a floor above 0.
        """
        floors = np.zeros(len(on), dtype=bool)
        floors[self._switched_s] = self.supports.needed[np.isin(self.supports.counted, self._switched)]
        rows = np.eye(len(on))[floors & on]
        polytope = None
        for floor in _FLOORS if len(rows) else (0.0,):
            below, above = np.full(len(rows), floor), np.full(len(rows), np.inf)
            polytope = Polytope.of(
                np.concatenate([matrix, rows])[:, on], np.append(lower, below), np.append(upper, above)
            )
            if polytope is not None:
                return polytope.embedded(on)
        return None

    def polytope_around(self, numbers: Array) -> Polytope:
        """Return the polytope around a point of the space, (p,) level numbers. It is not empty."""
        polytope = self.polytope(numbers)
        assert polytope is not None, "a point of the space is in a polytope"
        return polytope

    # Steps that stay inside

    def last_inside(self, z: Array, new: Array) -> Array:
        """Return the last points inside on the lines from z, inside, to `new`, all (m, d).

        A step that changes the discrete parameters goes to the point nearest to `new` with the new setting. If there is
        none, it keeps the old setting.
        """
        old, numbers = self.layout.level_numbers(z), self.layout.level_numbers(self.layout.normalise(new))
        start, s = self.s_of(old, around=numbers), self.s_of(numbers)
        moved = np.any(numbers[:, self._discrete] != old[:, self._discrete], axis=1)
        if len(self._switched):
            moved |= np.any((numbers[:, self._switched] == 0.0) != (old[:, self._switched] == 0.0), axis=1)
        back = moved & self.constraints.forbidden_at(numbers, self.layout.active(numbers)).any(axis=1)
        groups = self._by_polytope(numbers)
        for polytope, members in groups:
            if polytope is None:
                back[members] = True
        if back.any():
            numbers[np.ix_(back, self._discrete)] = old[np.ix_(back, self._discrete)]
            if len(self._switched):
                numbers[np.ix_(back, self._switched)] = old[np.ix_(back, self._switched)]
            groups = self._by_polytope(numbers)
        start[moved & ~back] = s[moved & ~back]
        for polytope, members in groups:
            if polytope is not None:
                start[members] = polytope.pull_inside(start[members])  # a told point may be outside by rounding
                s[members] = polytope.last_inside(start[members], s[members])
        result = self.layout.from_levels(self.with_s(numbers, s))
        if self.constraints.counts:  # what must be on may have become 0, where its floor is 0
            wrong = ~self.supports.allowed(self.supports.on(self.layout.level_numbers(result)))
            result[wrong] = z[wrong]
        return self._halve_refused(z, numbers, start, s, result)

    def _one(self, numbers: Array) -> tuple[Array, Mask]:
        return numbers[None], self.layout.active(numbers[None])

    def _halve_refused(self, z: Array, numbers: Array, start: Array, s: Array, result: Array) -> Array:
        """Halve the steps that a function refuses until they are inside; after _HALVINGS stay at z."""
        if not self.constraints.functions:
            return result
        for i in np.flatnonzero(~self.contains(result)):
            for k in range(1, _HALVINGS + 1):
                part = start[i : i + 1] + 0.5**k * (s[i : i + 1] - start[i : i + 1])
                result[i] = self.layout.from_levels(self.with_s(numbers[i : i + 1], part))[0]
                if k == _HALVINGS:
                    result[i] = z[i]
                elif self.contains(result[i : i + 1])[0]:
                    break
        return result

    def _by_polytope(self, numbers: Array) -> list[tuple[Polytope | None, Numbers]]:
        """Group the points with level numbers (m, p) by their polytopes."""
        settings = self._setting(numbers)
        if not settings.shape[1]:
            return [(self.polytope(numbers[0]), np.arange(len(numbers)))] if len(numbers) else []
        _, first, which = np.unique(settings, axis=0, return_index=True, return_inverse=True)
        which = which.reshape(-1)
        return [(self.polytope(numbers[i]), np.flatnonzero(which == k)) for k, i in enumerate(first)]

    def repair(self, z: Array, proposed: Array) -> tuple[Array, Mask]:
        """Repair proposals made from feasible points z, both (k, d); return them with a feasibility mask.

        Inactive parameters are reset. Some of the points outside are moved inside, if their discrete parameters allow.
        """
        proposed = self.layout.normalise(proposed)
        good = self.contains(proposed)
        outside = np.flatnonzero(~good)
        if not self.constraints.linear or not len(outside):
            return proposed, good
        repaired = outside[np.unique(np.linspace(0, len(outside) - 1, _REPAIRED).round().astype(int))]
        moved = self.last_inside(z[repaired], np.clip(proposed[repaired], *self.layout.ends))
        discrete = ~self.layout.continuous
        same = np.all(moved[:, discrete] == proposed[repaired][:, discrete], axis=1)
        proposed[repaired], good[repaired] = moved, same & self.contains(moved)
        return proposed, good

    # Points spread over it

    def spread(self, targets: Targets, count: int, rng: np.random.Generator) -> Array:
        """Return at most `count` points (., d) inside: the first targets inside, and others if these are too few."""
        points = np.empty((0, self.layout.ends.shape[1]))
        done, log2 = 0, max(4, (count - 1).bit_length())
        while 2**log2 <= _TRIES:
            fresh = self._switch(targets(log2)[done:], rng)
            points = np.concatenate([points, fresh[self.contains(fresh)]])
            done, log2 = 2**log2, log2 + 1
            if len(points) >= count:
                return points[:count]
            if self.constraints.linear and done >= _HOPELESS and len(points) < max(1, count // 10):
                break
        if self.constraints.linear or self.constraints.forbidden or self.constraints.counts:
            for _ in range(_GROWTH):
                fresh = self._sample_near(targets((count - 1).bit_length())[:count], rng)
                points = np.concatenate([points, fresh[self.contains(fresh)]])
                if len(points) >= count or not self.constraints.functions:
                    break
        return self._grow(points, count, rng)[:count]

    def _switch(self, z: Array, rng: np.random.Generator) -> Array:
        """Return points (m, d) with random supports, where counts allow only some."""
        if not self.constraints.counts:
            return z
        return self.layout.from_levels(self.supports.draw(self.layout.level_numbers(z), rng))

    def _sample_near(self, targets: Array, rng: np.random.Generator) -> Array:
        """Return a point for each target (m, d), with its setting or one near it, and random reals."""
        numbers = self.layout.level_numbers(targets)
        if self.constraints.counts:
            numbers = self.supports.draw(numbers, rng, _SETTINGS)
        numbers = self.feasible_settings(numbers, _SETTINGS)
        density = self._log_density if self.by_value.any() else None  # None: uniform in s
        parts = []
        for polytope, members in self._by_polytope(numbers):
            if polytope is not None:
                s = polytope.sample(len(members), rng, density)
                parts.append((members, self.layout.from_levels(self.with_s(numbers[members], s))))
        z_of_all = np.full((len(numbers), targets.shape[1]), np.nan)
        for members, z in parts:
            z_of_all[members] = z
        complete: Array = z_of_all[~np.isnan(z_of_all).any(axis=1)]
        return complete

    def feasible_settings(self, numbers: Array, most: int) -> Array:
        """Return level numbers (m, p) with the discrete parameters changed so that the constraints can hold.

        At most `most` settings are found by integer programs. If more are needed, feasible ones are used again.
        """
        numbers = self._scale_into_ranges(numbers)
        settings_here = self._setting(numbers)
        if not settings_here.shape[1]:
            return numbers
        columns = np.array([*self.nearest_setting.discrete, *self._switched], dtype=np.intp)
        _, first, inverse = np.unique(settings_here, axis=0, return_index=True, return_inverse=True)
        s, programs = self.s_of(numbers), 0
        possible: list[Array] = []
        settings: dict[int, Array | None] = {}
        for k in np.argsort(first, kind="stable").tolist():
            setting = numbers[first[k]]
            free = (
                self.polytope(setting) is not None and not self.constraints.forbidden_at(*self._one(setting))[0].any()
            )
            if not free and programs >= most:
                settings[k] = possible[k % len(possible)] if possible else None
                continue
            programs += not free
            settings[k] = setting if free else self.nearest_setting.find(setting, s[first[k]])
            possible += [] if settings[k] is None else [settings[k]]  # type: ignore[list-item]
        for i, k in enumerate(inverse.reshape(-1).tolist()):
            chosen = settings[k]
            if chosen is not None:
                kept = numbers[i, self._switched]
                numbers[i, columns] = chosen[columns]
                if len(self._switched):  # a real that stays on keeps its number
                    both = (kept != 0.0) & (chosen[self._switched] != 0.0)
                    numbers[i, self._switched] = np.where(both, kept, chosen[self._switched])
        return numbers

    def _scale_into_ranges(self, numbers: Array) -> Array:
        """Rescale out-of-range level numbers (m, p) into `ranges`; clipping would pile them up at the ends."""
        first, last = self.ranges.T
        counts = np.array([encoding.count or 1 for encoding in self.layout.encodings])
        moved = first + np.floor((numbers + 0.5) / counts * (last - first + 1.0))
        outside = (numbers < first) | (numbers > last)
        result: Array = np.where(outside & (last - first + 1.0 < counts), np.clip(moved, first, last), numbers)
        return result

    @cached_property
    def ranges(self) -> Array:
        """The first and the last level number of each discrete parameter that may be feasible, (p, 2)."""
        return level_ranges(self.layout, self.constraints)

    @cached_property
    def nearest_setting(self) -> NearestSetting:
        """The integer program that finds settings of the discrete parameters."""
        return NearestSetting(self.layout, self.constraints, self.reals, self.low, self.width)

    def _log_density(self, s: Array) -> Array:
        """Return the log density at s (..., q) of points that are uniform in the coordinates."""
        value = np.maximum(self.low + s * self.width, self.low)[..., self.by_value]
        density: Array = -np.log(value).sum(axis=-1)
        return density

    def _grow(self, points: Array, count: int, rng: np.random.Generator) -> Array:
        """Add points around those already found, if functions leave too few."""
        for _ in range(_GROWTH if self.constraints.functions and len(points) else 0):
            if len(points) >= count:
                break
            numbers = self.layout.level_numbers(points[rng.integers(len(points), size=count)])
            wide = 10.0 ** rng.uniform(-3.0, -0.5, (count, 1))
            s = self.s_of(numbers) + wide * rng.standard_normal((count, len(self.reals)))
            near = self.layout.from_levels(self.with_s(numbers, np.clip(s, 0.0, 1.0)))
            points = np.concatenate([points, near[self.contains(near)]])
        return points

    def middles(self, z: Array) -> Array:
        """Return the middles (k, d) of the few largest supports, each otherwise like a point of z (m, d), in turn."""
        few = self.supports.few
        numbers = self.layout.level_numbers(z[np.arange(len(few)) % len(z)])
        numbers = self.supports.in_the_middle(numbers, few)
        s = self.s_of(numbers)
        for polytope, members in self._by_polytope(numbers):
            if polytope is not None:
                s[members] = polytope.pull_inside(s[members])
        points = self.layout.from_levels(self.with_s(numbers, s))
        return points[self.contains(points)]

    # Nothing left

    def conflict(self, targets: Targets) -> list[int]:
        """Return a minimal conflicting subset of the constraints, by number; empty if all can hold together.

        Functions count as unable to hold if none of _TRIES points satisfies them.
        """
        if self.contains(targets(10)).any():
            return []
        together = self._linear_conflict()
        if not together and not len(self.spread(targets, 1, np.random.default_rng(0))):
            count = len(self.constraints.texts)
            together = list(range(count - len(self.constraints.functions), count))  # the functions are the last ones
        return together

    def conflict_among(self, z: Array) -> list[int]:
        """Return the numbers of constraints that hold together at none of the points (m, d) of a finite product."""
        numbers = self.layout.level_numbers(z)
        points = self.layout.decode_all(z) if self.constraints.functions else []
        satisfied = self.constraints.satisfied(
            self.layout.values(numbers), numbers, points, FEASIBILITY_TOLERANCE, copied, self.layout.active(numbers)
        )
        return self.constraints.conflict_in(satisfied)

    def _linear_conflict(self) -> list[int]:
        """Return the numbers of linear constraints, combinations and counts that cannot hold together."""
        rows, combinations = len(self.constraints.linear), len(self.constraints.forbidden)

        def is_empty(subset: list[int]) -> bool:
            linear = [r for r in subset if r < rows]
            forbidden = [k - rows for k in subset if rows <= k < rows + combinations]
            return not self._can_hold(linear, forbidden, [k - rows - combinations for k in subset])

        everything = list(range(rows + combinations + len(self.constraints.counts)))
        return minimal_conflict(len(everything), is_empty) if is_empty(everything) else []

    def _can_hold(self, linear: list[int], forbidden: list[int], counts: list[int]) -> bool:
        """Whether some of the linear constraints, combinations and counts (negative ones are none) hold together."""
        subset = Constraints(
            tuple(self.constraints.linear[r] for r in linear),
            self.constraints.sizes[linear],
            tuple(self.constraints.forbidden[k] for k in forbidden),
            (),
            tuple(self.constraints.counts[k] for k in counts if k >= 0),
        )
        left = FeasibleSet(self.layout, subset)
        middle = self.layout.level_numbers(self.layout.from_unit(np.full((1, len(self.layout.encodings)), 0.5)))[0]
        decides = left.nearest_setting.discrete or subset.counts
        setting = left.nearest_setting.find(middle, np.full(len(self.reals), 0.5)) if decides else middle
        return setting is not None and left.polytope(setting) is not None


def copied(point: Point) -> Point:
    """Return a copy of a point that a user's function may change."""
    return np.array(point) if isinstance(point, np.ndarray) else dict(point)
