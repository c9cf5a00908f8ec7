"""Batches with a rule: points that share settings, or that keep a distance from each other in a setting.

Every point is still a suggestion with fixed coordinates, so a trial needs no further record: the first point of the
batch says what is shared, and the others are asked with that fixed. A point too near to another one is asked again,
with the coordinate fixed at the nearest value that leaves room for the rest of the batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array, Point
from gpmi.optimizer.suggestion import Suggestion
from gpmi.search.initial_design import design_of
from gpmi.search.subspaces import Subspace
from gpmi.space import Candidates, NumberRange, Options, Parameters, Space, SpaceExhausted
from gpmi.trials import Trial

WithFixed: TypeAlias = Callable[[dict[Any, Any]], Subspace]
Suggest: TypeAlias = Callable[[Subspace], tuple[Subspace, Suggestion]]  # -> with what is fixed, and the point


class Compute(Protocol):
    """Compute the next suggestion in a part of the space; with `new`, the policy chooses no point that has a trial."""

    def __call__(self, subspace: Subspace, *, new: bool = False) -> Suggestion: ...


_ROUNDING = 1e-9  # of a distance: points may be nearer by this part of it
_TRIED = 64  # values of a coordinate that are tried where constraints leave only some; our limit


@dataclass(frozen=True, eq=False)
class Distance:
    """The values of a parameter that a batch may take, at least `least` apart."""

    key: str | int
    least: float
    lo: float
    hi: float
    values: Array | None = None  # (k,), sorted, if they are not evenly spaced

    @staticmethod
    def of(space: Space, key: str | int, least: float) -> Distance:
        """Return the distance of a parameter. Raise if its values are not numbers that are always there."""
        j = _number_of(space, key, "apart")
        least = checks.positive(f"apart[{key!r}]", least)
        if isinstance(space, Candidates):
            column = np.array([row[key if space.names else j] for row in space.table], dtype=object)
            if not all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in column):
                raise TypeError(f"apart names {key!r}, whose values are not numbers; name a parameter of numbers")
            return Distance._listed(key, least, np.unique(column.astype(float)))
        assert isinstance(space, Parameters)
        parameter = space.parameters[j]
        domain, is_fidelity = parameter.domain, space.fidelity is not None and key == space.fidelity.name
        if parameter.when is not None:
            raise ValueError(f"apart names {key!r}, which is there only under a condition; name another parameter")
        if parameter.circular:
            raise ValueError(f"apart names {key!r}, an angle, which goes round; name another parameter")
        if isinstance(domain, NumberRange):
            lo, hi = float(domain.lo), float(parameter.nearest(domain.hi))
            if domain.step is None:
                return Distance(key, least, lo, hi)
            steps = max(math.ceil(least / domain.step - _ROUNDING), 1)
            return Distance(key, steps * domain.step * (1.0 if domain.whole else 1.0 - _ROUNDING), lo, hi)
        if isinstance(domain, Options) and parameter.limits is not None and not is_fidelity:
            return Distance._listed(key, least, np.sort(np.array(domain.values, dtype=float)))
        raise TypeError(f"apart names {key!r}, whose values are not numbers that vary; name a parameter of numbers")

    @staticmethod
    def _listed(key: str | int, least: float, values: Array) -> Distance:
        return Distance(key, least * (1.0 - _ROUNDING), float(values[0]), float(values[-1]), values)

    def capacity(self, taken: Sequence[float]) -> int:
        """Return how many more values fit beside those taken."""
        if self.values is None:
            return sum(math.floor((b - a) / self.least + _ROUNDING) + 1 for a, b in self._gaps(taken))
        free = [v for v in self.values.tolist() if all(abs(v - t) >= self.least for t in taken)]
        count, last = 0, -math.inf
        for v in free:
            if v - last >= self.least:
                count, last = count + 1, v
        return count

    def _gaps(self, taken: Sequence[float]) -> list[tuple[float, float]]:
        """Return the intervals of values that are free."""
        edges = sorted(taken)
        first = [self.lo, *(min(_at_least(t, self.least), self.hi + self.least) for t in edges)]
        last = [*(max(_at_least(t, -self.least), self.lo - self.least) for t in edges), self.hi]
        gaps = [(max(a, self.lo), min(b, self.hi)) for a, b in zip(first, last, strict=True)]
        return [(a, max(a, b)) for a, b in gaps if a <= b + _ROUNDING * self.least and a <= self.hi]

    def allowed(self, value: float, taken: Sequence[float], others: int) -> Iterator[float]:
        """Yield the values that leave room for `more` others, the nearest to a value first."""
        if self.values is not None:
            tried = [v for v in self.values.tolist() if all(abs(v - t) >= self.least for t in taken)]
        else:
            tried = [value] if any(a <= value <= b for a, b in self._gaps(taken)) else []
            for a, b in self._gaps(taken):
                steps = range(min(math.floor((b - a) / self.least + _ROUNDING), others) + 1)
                tried += [min(a + k * self.least, b) for k in steps] + [max(b - k * self.least, a) for k in steps]
        for v in sorted(dict.fromkeys(tried), key=lambda v: (abs(v - value), v)):
            if self.capacity([*taken, v]) >= others:
                yield v

    def text(self) -> str:
        """Return the range of the values."""
        return f"{self.key!r} goes from {self.lo:g} to {self.hi:g}"


@dataclass(frozen=True, eq=False)
class BatchRule:
    """What the n points of a batch must have in common, and in what they must differ. None of them is asked twice."""

    space: Space
    n: int
    fixed: Mapping[Any, Any]
    same: tuple[str | int, ...]
    apart: tuple[Distance, ...]

    @staticmethod
    def of(space: Space, n: int | None, fixed: Any, same: Any, apart: Any) -> BatchRule:
        """Return the rule of a batch. Raise if it cannot hold."""
        if n is None:
            raise ValueError(
                "same and apart are about the points of a batch; give n, as in ask(8, same=['temperature'])"
            )
        n = checks.whole("n", n, 1)
        space.with_fixed(fixed or {})  # raises if it is wrong
        names = _checked_same(space, same, fixed or {})
        if apart is not None and not isinstance(apart, Mapping):
            raise TypeError(f"apart is {checks.shown(apart)}; give a dict of distances, as in {{'temperature': 5}}")
        distances = tuple(Distance.of(space, key, least) for key, least in (apart or {}).items())
        for distance in distances:
            if distance.key in names or distance.key in (fixed or {}):
                where = "same" if distance.key in names else "fixed"
                raise ValueError(f"apart names {distance.key!r}, which is also in {where}; leave it out of one of them")
            if (most := distance.capacity([])) < n:
                raise ValueError(
                    f"apart is {checks.shown(dict(apart or {}))}, but n is {n}: only {most} points fit, since "
                    f"{distance.text()}; ask for at most {most}, or give a smaller distance"
                )
        return BatchRule(space, n, dict(fixed or {}), names, distances)

    def next_fixed(self, points: Sequence[Point]) -> dict[Any, Any]:
        """Return what is fixed for the next point, after these points of the batch."""
        if not points:
            return dict(self.fixed)
        first = points[0]
        shared = [key for key in self.same if self.space.names is None or key in first]
        return {**self.fixed, **{key: first[key] for key in shared}}

    def moved(self, x: Point, points: Sequence[Point]) -> dict[Any, Any] | None:
        """Return coordinates to fix so that a point keeps its distances; None if it does already."""
        moved: dict[Any, Any] = {}
        for distance in self.apart:
            taken = [float(p[distance.key]) for p in points]
            value = float(x[distance.key])
            for v in self._possible(distance, value, taken, self.n - len(points) - 1, moved, points):
                if v != value or moved:
                    moved[distance.key] = v
                break
            else:
                raise ValueError(
                    f"apart names {distance.key!r}, but only {len(points)} of {self.n} points were found that keep the "
                    f"distance and the constraints; ask for fewer, or give a smaller distance"
                )
        return moved or None

    def _possible(
        self,
        distance: Distance,
        value: float,
        taken: Sequence[float],
        others: int,
        moved: Mapping[Any, Any],
        points: Any,
    ) -> Iterator[Any]:
        """Yield the values of a coordinate that the space allows, the nearest first."""
        before = self.next_fixed(points)
        for k, v in enumerate(distance.allowed(value, taken, others)):
            if k >= _TRIED:
                return
            if v == value and not moved:
                yield value
                continue
            exact = _own_value(self.space, distance.key, v)
            try:
                self.space.with_fixed({**before, **moved, distance.key: exact})
            except ValueError:
                continue
            yield exact

    def repeats(self, x: Point, points: Sequence[Point]) -> bool:
        """Whether a point is already in the batch."""
        row = self.space.encode(x).tobytes()
        return any(self.space.encode(p).tobytes() == row for p in points)

    def whole_point(self, x: Point) -> dict[Any, Any]:
        """Return all coordinates of a point, to be fixed."""
        pairs = x.items() if self.space.names else enumerate(np.asarray(x).tolist())
        return {key: value for key, value in pairs if key not in self.space.target_values}


def _at_least(value: float, way: float) -> float:
    """Return value + way, or the next number, so that the difference is not smaller by rounding."""
    end = value + way
    while abs(end - value) < abs(way):
        end = math.nextafter(end, math.copysign(math.inf, way))
    return end


class Batch:
    """A batch with a rule, while it is asked for, trial by trial."""

    def __init__(self, rule: BatchRule, with_fixed: WithFixed, compute: Compute, seed: int) -> None:
        self._rule, self._with_fixed, self._compute, self._seed = rule, with_fixed, compute, seed
        self.trials: list[Trial] = []

    def ask(self, hand_out: Callable[[Subspace, Suggest], Trial]) -> None:
        """Add the trials. hand_out(subspace, suggest) adds one to the log; suggest() says which point it is."""
        subspace = self._with_fixed(self._rule.next_fixed([]))
        for k in range(self._rule.n):
            if k == 1:
                subspace = self._with_fixed(self._rule.next_fixed(self._points()))
            self.trials.append(hand_out(subspace, self._next))

    def _points(self) -> list[Point]:
        return [trial.x for trial in self.trials]

    def _next(self, subspace: Subspace) -> tuple[Subspace, Suggestion]:
        """Return the next suggestion, and the part of the space with what is fixed for it."""
        points, suggestion = self._points(), self._compute(subspace)
        if (moved := self._rule.moved(suggestion.x, points)) is not None:
            subspace = self._with_fixed({**(subspace.fixed or {}), **moved})
            suggestion = self._compute(subspace)
        if not self._rule.repeats(suggestion.x, points):
            return subspace, suggestion
        whole = self._with_fixed(self._rule.whole_point(self._another(points, subspace)))
        return whole, self._compute(whole)

    def _another(self, points: list[Point], subspace: Subspace) -> Point:
        """Return the policy's choice of a point without a trial, or else the next of a design that is not in the batch.

        Raise SpaceExhausted if there is none.
        """
        with suppress(SpaceExhausted):
            point = self._compute(subspace, new=True).x
            if not self._rule.repeats(point, points):
                return point
        for row in design_of(subspace.space, self._seed, 2 * len(points) + 1):
            x = subspace.space.decode(row)
            if not self._rule.repeats(x, points):
                return x
        raise SpaceExhausted(f"only {len(points)} different points have these settings; the batch has all of them")


def _checked_same(space: Space, same: Any, fixed: Mapping[Any, Any]) -> tuple[str | int, ...]:
    """Validate the names of `same`, and that what they depend on is shared as well."""
    if same is None:
        return ()
    listed = [same] if isinstance(same, str | int) else same
    if not isinstance(listed, list | tuple | set | frozenset) or not listed:
        raise TypeError(f"same is {checks.shown(same)}; give a list of parameters, as in ['temperature']")
    names = tuple(dict.fromkeys(listed))
    numbers = {_number_of(space, key, "same") for key in names}
    shared = numbers | {_number_of(space, key, "fixed") for key in fixed}
    if isinstance(space, Parameters):
        for j in numbers:
            for condition in space.layout.conditions[j]:
                if condition.parent not in shared:
                    name, parent = space.layout.labels[j], space.layout.labels[condition.parent]
                    raise ValueError(f"same names {name!r}, which depends on {parent!r}; name that as well")
    return names


def _number_of(space: Space, key: Any, argument: str) -> int:
    """Return the number of a parameter; raise if there is none of this name."""
    count = len(space.columns)
    if space.names is not None:
        if key not in space.names:
            raise ValueError(
                f"{argument} names {checks.shown(key)}, which is not a parameter; there are {list(space.names)}"
            )
        return space.names.index(key)
    if isinstance(key, bool) or not isinstance(key, int | np.integer) or not 0 <= key < count:
        raise ValueError(f"{argument} names {checks.shown(key)}; give the numbers of coordinates, 0 to {count - 1}")
    return int(key)


def _own_value(space: Space, key: Any, value: float) -> Any:
    """Return a number as a value of its parameter: a whole number, an option, or the number itself."""
    if isinstance(space, Candidates):
        return value
    assert isinstance(space, Parameters)
    return space.parameters[_number_of(space, key, "apart")].nearest(value)
