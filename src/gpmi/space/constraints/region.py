"""The part of a product of parameters that constraints leave: what is inside, ways inside, points all over it.

For each setting of the discrete parameters the linear constraints leave a polytope of the reals. Its variables s are
the values of the reals in widths of their intervals, and so are those of a real with log=True that a constraint is
about, because the constraint is linear in the value and not in its logarithm. The s of other reals with log=True is
their logarithm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gpmi._support.types import Array, Mask, Numbers, Point
from gpmi.space.conditions.conditions import OnArc
from gpmi.space.constraints.constraints import EXACT, Rules, minimal
from gpmi.space.constraints.polytope import LogDensity, Polytope
from gpmi.space.constraints.program import Program
from gpmi.space.constraints.ranges import level_ranges
from gpmi.space.layout import Layout
from gpmi.space.parameters import Real

# Our limits of the cost, not tuned.
_REMEMBERED = 4096  # polytopes, one for each setting of the discrete parameters
_TRIES = 2**15  # points that are tried for constraints that are functions; they cost 0.1 s at 3 microseconds each
_HOPELESS = 2**11  # after so many tries without a tenth of what is wanted, points are made from the polytopes
_SETTINGS = 64  # settings of the discrete parameters that are looked for by programs, for one set of points
_GROWTH = 8  # rounds in which points that were found are joined by others around them
_BACK = 12  # how often a step that a function refuses is halved: then it is no step

Targets = Callable[[int], Array]  # log2 -> 2^log2 points (., d) all over the product; more of them begin with the same


@dataclass(frozen=True, eq=False)
class Region:
    """The points of a product that keep to the rules; without rules all of them."""

    layout: Layout
    rules: Rules
    _polytopes: dict[bytes, Polytope | None] = field(default_factory=dict)
    _by_setting: dict[bytes, Polytope | None] = field(default_factory=dict)  # the same, found without a look at rules

    # The reals, in units of s

    @cached_property
    def reals(self) -> Numbers:
        """The numbers of the parameters that are Real, (q,)."""
        return np.array([j for j, p in enumerate(self.layout.parameters) if isinstance(p, Real)], dtype=np.intp)

    @cached_property
    def by_value(self) -> Mask:
        """Which of them are counted by their values and not by their coordinates, (q,)."""
        used = np.any(self.rules.used, axis=0) if self.rules.rows else np.zeros(len(self.layout.parts), bool)
        logs = np.array([getattr(self.layout.parameters[j], "log", False) for j in self.reals], dtype=bool)
        result: Mask = used[self.reals] & logs
        return result

    @cached_property
    def low(self) -> Array:
        """The value, or the coordinate, at s = 0, (q,)."""
        return self._limits[:, 0]

    @cached_property
    def width(self) -> Array:
        """How much larger it is at s = 1, (q,)."""
        return self._limits[:, 1] - self._limits[:, 0]

    @cached_property
    def _limits(self) -> Array:
        limits = []
        for j, by_value in zip(self.reals, self.by_value, strict=True):
            p = self.layout.parameters[j]
            assert isinstance(p, Real)
            limits.append([p.lo, p.hi] if by_value else p.ends[:, 0])
        return np.array(limits).reshape(-1, 2)

    def s_of(self, numbers: Array) -> Array:
        """s (m, q) at level numbers (m, p), which for a Real are its coordinate."""
        c = numbers[:, self.reals]
        t = np.where(self.by_value, np.exp(np.where(self.by_value, c, 0.0)), c)
        return np.clip((t - self.low) / self.width, 0.0, 1.0)

    def with_s(self, numbers: Array, s: Array) -> Array:
        """The level numbers (m, p) with the reals at s (m, q)."""
        t = np.clip(self.low + s * self.width, self.low, self.low + self.width)
        c = np.where(self.by_value, np.log(np.where(self.by_value, t, 1.0)), t)
        numbers = numbers.copy()
        numbers[:, self.reals] = np.clip(c, self._ends[:, 0], self._ends[:, 1])
        return numbers

    @cached_property
    def _discrete(self) -> Numbers:
        """The numbers of the other parameters."""
        return np.setdiff1d(np.arange(len(self.layout.parts)), self.reals)

    @cached_property
    def _ends(self) -> Array:
        """The smallest and the largest coordinate of each real, (q, 2)."""
        return np.array([self.layout.parameters[j].ends[:, 0] for j in self.reals]).reshape(-1, 2)

    def slopes(self, z: Array) -> Array:
        """How far the coordinates (m, d) of the reals move on their line or arc when their s moves by 1, (m, d)."""
        numbers = self.layout.numbers(z)
        active = self.layout.active(numbers)
        result = np.zeros(z.shape)
        for i, j in enumerate(self.reals):
            part, column = self.layout.parts[j], self.layout.columns[j]
            speed = self.width[i] / np.exp(numbers[:, j]) if self.by_value[i] else np.full(len(z), self.width[i])
            if isinstance(part, OnArc):
                way = np.stack([-z[:, column.stop - 1], z[:, column.start]], axis=1)  # at right angles to the radius
                result[:, column] = (speed * part.bend)[:, None] * way * active[:, j : j + 1]
            else:
                result[:, column] = speed[:, None]
        return result

    # Inside or not

    def inside(self, z: Array, tolerance: float = EXACT) -> Mask:
        """Which points (m, d) keep to the rules."""
        good = self._allowed(self.layout.numbers(z), tolerance)
        if self.rules.feasible:
            numbers = np.flatnonzero(good)
            good[numbers] = [self.rules.allows(point, copied) for point in self.layout.decoded(z[numbers])]
        return good

    def _allowed(self, numbers: Array, tolerance: float = EXACT) -> Mask:
        """The same for linear constraints and combinations alone, at level numbers (m, p)."""
        active = self.layout.active(numbers)
        excess = self.rules.excess(self.layout.values(numbers), active)
        result: Mask = np.all(excess <= tolerance * self.rules.sizes, axis=1)
        return result & ~self.rules.combined(numbers, active).any(axis=1)

    def polytope(self, numbers: Array) -> Polytope | None:
        """The reals that the linear constraints leave where the discrete parameters have the level numbers (p,)."""
        setting = numbers[list(self.program.discrete)].tobytes()
        if setting not in self._by_setting:
            if len(self._by_setting) >= _REMEMBERED:
                self._by_setting.clear()
            self._by_setting[setting] = self._polytope(numbers)
        return self._by_setting[setting]

    def _polytope(self, numbers: Array) -> Polytope | None:
        """The same; settings with the same constraints on the reals share one."""
        active = self.layout.active(numbers[None])[0]
        at_zero = self.with_s(numbers[None], np.zeros((1, len(self.reals))))
        # The part of each row that the discrete parameters contribute; a row without its parameters says nothing.
        shift = np.zeros(len(self.rules.rows))
        holds = np.ones(len(self.rules.rows), dtype=bool)
        matrix = np.zeros((len(self.rules.rows), len(self.reals)))
        if self.rules.rows:
            shift = self.rules.matrix @ self.layout.values(at_zero)[0]
            holds = ~(self.rules.used @ ~active)
            matrix = self.rules.matrix[:, self.reals] * self.width
        key = shift[holds].tobytes() + holds.tobytes()
        if key not in self._polytopes:
            lower, upper = self.rules.lower, self.rules.upper
            if len(self._polytopes) >= _REMEMBERED:
                self._polytopes.clear()
            self._polytopes[key] = Polytope.of(matrix[holds], (lower - shift)[holds], (upper - shift)[holds])
        return self._polytopes[key]

    def polytope_around(self, numbers: Array) -> Polytope:
        """The polytope of a point of the space, which is not empty."""
        polytope = self.polytope(numbers)
        assert polytope is not None, "a point of the space is in a polytope"
        return polytope

    # Ways that stay inside

    def stepped(self, z: Array, new: Array) -> Array:
        """For each step from z, inside, to `new`, both (m, d), where it ends: at the last point inside on the way.

        A step that changes the discrete parameters goes to the point nearest to `new` with the new ones, or if there is
        none stays with the old ones.
        """
        old, numbers = self.layout.numbers(z), self.layout.numbers(self.layout.normal(new))
        start, s = self.s_of(old), self.s_of(numbers)
        moved = np.any(numbers[:, self._discrete] != old[:, self._discrete], axis=1)
        back = moved & self.rules.combined(numbers, self.layout.active(numbers)).any(axis=1)
        groups = self._by_polytope(numbers)
        for polytope, members in groups:
            if polytope is None:
                back[members] = True
        if back.any():
            numbers[np.ix_(back, self._discrete)] = old[np.ix_(back, self._discrete)]
            groups = self._by_polytope(numbers)
        start[moved & ~back] = s[moved & ~back]
        for polytope, members in groups:
            if polytope is not None:
                start[members] = polytope.pulled(start[members])  # what a user told may be outside by rounding
                s[members] = polytope.shot(start[members], s[members])
        result = self.layout.coordinates(self.with_s(numbers, s))
        return self._backed(z, numbers, start, s, result)

    def _one(self, numbers: Array) -> tuple[Array, Mask]:
        return numbers[None], self.layout.active(numbers[None])

    def _backed(self, z: Array, numbers: Array, start: Array, s: Array, result: Array) -> Array:
        """Steps that a function refuses are halved until they are inside, or are not made."""
        if not self.rules.feasible:
            return result
        for i in np.flatnonzero(~self.inside(result)):
            for k in range(1, _BACK + 1):
                part = start[i : i + 1] + 0.5**k * (s[i : i + 1] - start[i : i + 1])
                result[i] = self.layout.coordinates(self.with_s(numbers[i : i + 1], part))[0]
                if k == _BACK:
                    result[i] = z[i]
                elif self.inside(result[i : i + 1])[0]:
                    break
        return result

    def _by_polytope(self, numbers: Array) -> list[tuple[Polytope | None, Numbers]]:
        """The points with level numbers (m, p) by the polytopes of their discrete parameters."""
        if not self.program.discrete:
            return [(self.polytope(numbers[0]), np.arange(len(numbers)))] if len(numbers) else []
        settings = numbers[:, list(self.program.discrete)]
        _, first, which = np.unique(settings, axis=0, return_index=True, return_inverse=True)
        which = which.reshape(-1)
        return [(self.polytope(numbers[i]), np.flatnonzero(which == k)) for k, i in enumerate(first)]

    # Points all over it

    def spread(self, targets: Targets, count: int, rng: np.random.Generator) -> Array:
        """At most `count` points (., d) inside, the first of the targets if enough of them are; fewer if few are."""
        found = np.empty((0, self.layout.ends.shape[1]))
        done, log2 = 0, max(4, (count - 1).bit_length())
        while 2**log2 <= _TRIES:
            fresh = targets(log2)[done:]
            found = np.concatenate([found, fresh[self.inside(fresh)]])
            done, log2 = 2**log2, log2 + 1
            if len(found) >= count:
                return found[:count]
            if self.rules.rows and done >= _HOPELESS and len(found) < max(1, count // 10):
                break
        if self.rules.rows or self.rules.forbidden:
            for _ in range(_GROWTH):
                fresh = self._made(targets((count - 1).bit_length())[:count], rng)
                found = np.concatenate([found, fresh[self.inside(fresh)]])
                if len(found) >= count or not self.rules.feasible:
                    break
        return self._grown(found, count, rng)[:count]

    def _made(self, targets: Array, rng: np.random.Generator) -> Array:
        """A point for each target (m, d), with its discrete parameters or others near to it; reals at random."""
        numbers = self.settled(self.layout.numbers(targets), _SETTINGS)
        parts = []
        for polytope, members in self._by_polytope(numbers):
            if polytope is not None:
                s = polytope.sample(len(members), rng, self._log_density)
                parts.append((members, self.layout.coordinates(self.with_s(numbers[members], s))))
        made = np.full((len(numbers), targets.shape[1]), np.nan)
        for members, z in parts:
            made[members] = z
        complete: Array = made[~np.isnan(made).any(axis=1)]
        return complete

    def settled(self, numbers: Array, most: int) -> Array:
        """Level numbers (m, p) with the discrete parameters set so that the constraints can hold.

        At most `most` settings are found by programs; where more are needed, those are taken that are possible.
        """
        numbers = self._squeezed(numbers)
        if not self.program.discrete:
            return numbers
        columns = np.array(self.program.discrete)
        _, first, inverse = np.unique(numbers[:, columns], axis=0, return_index=True, return_inverse=True)
        s, programs = self.s_of(numbers), 0
        possible: list[Array] = []
        settings: dict[int, Array | None] = {}
        for k in np.argsort(first, kind="stable").tolist():
            own = numbers[first[k]]
            free = self.polytope(own) is not None and not self.rules.combined(*self._one(own))[0].any()
            if not free and programs >= most:
                settings[k] = possible[k % len(possible)] if possible else None
                continue
            programs += not free
            settings[k] = own if free else self.program.nearest(own, s[first[k]])
            possible += [] if settings[k] is None else [settings[k]]  # type: ignore[list-item]
        for i, k in enumerate(inverse.reshape(-1).tolist()):
            chosen = settings[k]
            if chosen is not None:
                numbers[i, columns] = chosen[columns]
        return numbers

    def _squeezed(self, numbers: Array) -> Array:
        """Level numbers (m, p), those outside of `ranges` moved inside: in proportion, or all would be at an end."""
        first, last = self.ranges.T
        counts = np.array([part.count or 1 for part in self.layout.parts])
        moved = first + np.floor((numbers + 0.5) / counts * (last - first + 1.0))
        outside = (numbers < first) | (numbers > last)
        result: Array = np.where(outside & (last - first + 1.0 < counts), np.clip(moved, first, last), numbers)
        return result

    @cached_property
    def ranges(self) -> Array:
        """The first and the last level number of each discrete parameter that the constraints leave, (p, 2)."""
        return level_ranges(self.layout, self.rules)

    @cached_property
    def program(self) -> Program:
        """What finds settings of the discrete parameters."""
        return Program(self.layout, self.rules, self.reals, self.low, self.width)

    @cached_property
    def _log_density(self) -> LogDensity | None:
        """The density of s that is uniform in the coordinates; None where that is uniform in s."""
        if not self.by_value.any():
            return None
        low, width, logs = self.low, self.width, self.by_value
        return lambda s: -np.log(np.maximum(low + s * width, low)[..., logs]).sum(axis=-1)

    def _grown(self, found: Array, count: int, rng: np.random.Generator) -> Array:
        """Where functions leave little, points around those that were found are added."""
        for _ in range(_GROWTH if self.rules.feasible and len(found) else 0):
            if len(found) >= count:
                break
            numbers = self.layout.numbers(found[rng.integers(len(found), size=count)])
            wide = 10.0 ** rng.uniform(-3.0, -0.5, (count, 1))
            s = self.s_of(numbers) + wide * rng.standard_normal((count, len(self.reals)))
            near = self.layout.coordinates(self.with_s(numbers, np.clip(s, 0.0, 1.0)))
            found = np.concatenate([found, near[self.inside(near)]])
        return found

    # Nothing left

    def conflict(self) -> list[str]:
        """Linear constraints and combinations that cannot hold together, in words, none too many; empty if they can."""
        rows, combinations = len(self.rules.rows), len(self.rules.forbidden)

        def is_empty(kept: list[int]) -> bool:
            some = [r for r in kept if r < rows], [k - rows for k in kept if k >= rows]
            return not self._possible(*some)

        everything = list(range(rows + combinations))
        return [self.rules.texts[i] for i in minimal(len(everything), is_empty)] if is_empty(everything) else []

    def _possible(self, rows: list[int], forbidden: list[int]) -> bool:
        """Whether some of the linear constraints and combinations can hold together."""
        rules = Rules(
            tuple(self.rules.rows[r] for r in rows),
            self.rules.sizes[rows],
            tuple(self.rules.forbidden[k] for k in forbidden),
            (),
        )
        region = Region(self.layout, rules)
        middle = self.layout.numbers(self.layout.at(np.full((1, len(self.layout.parts)), 0.5)))[0]
        setting = region.program.nearest(middle, np.full(len(self.reals), 0.5)) if region.program.discrete else middle
        return setting is not None and region.polytope(setting) is not None


def copied(point: Point) -> Point:
    """A point that a function of the user may change."""
    return np.array(point) if isinstance(point, np.ndarray) else dict(point)
