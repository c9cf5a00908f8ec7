"""Points at which a search begins: the initial design, the screen of a space, neighbours of good points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gpmi._support.sobol import sobol
from gpmi._support.types import Array, Mask, Point
from gpmi.gp.posterior import Posterior
from gpmi.space import Choice, Parameters, Space

# Our choices, not tuned.
SCREEN = 512  # points of the screen, a power of 2 for Sobol. After a new prior they cost about 20 ms at n = 1,000
NEIGHBOURS = 64  # further points, close to the best known ones
KNOWN = 3  # how many of the best observed points get neighbours: more than one, because a value may be lucky
OPTIONS = 5  # a choice with no more options than this is small: a design of a few points can show them all
PORTION = 64  # points of a design inside constraints that are made together
PROGRAMS = 16  # neighbours, at most, whose discrete parameters are set by a program so that constraints can hold
TRIES = 10  # times that a design is made twice as long, to find a point that is not barred
TAKEN = 1e-6  # a point as close as this to another, in widths of the space, is that point: far above rounding
AMONG = 1000  # rows among which those are looked for that show new options


def design_of(space: Space, seed: int, count: int, *, cover: bool = False) -> Array:
    """At least `count` rows for the initial design, or all of a smaller set. A larger count only appends rows.

    On a product they are Sobol points. With `cover` the options of each choice without order take turns in them: of k
    options the first k points show all; on a finite set the options of small choices come first. Where constraints
    leave so little that points are hard to find, there may be fewer.
    """
    if space.rows is not None:
        order = np.random.default_rng(seed).permutation(len(space.rows))
        return covering(space.rows[order], space.groups) if cover else space.rows[order]
    assert isinstance(space, Parameters)
    if space.plain:
        u = sobol(space.unit_dim, max(4, count.bit_length()), (seed, 0))
        return space.from_unit(_in_turn(space, u, (seed, 3)) if cover else u)
    portions = range(-(-count // PORTION))
    return np.concatenate([_portion(space, seed, i) for i in portions])


def _portion(space: Parameters, seed: int, i: int) -> Array:
    """PORTION points of a design inside constraints, or fewer."""

    def points(log2: int) -> Array:
        return space.from_unit(_in_turn(space, sobol(space.unit_dim, log2, (seed, 0, i)), (seed, 3, i)))

    return space.feasible_set.spread(points, PORTION, np.random.default_rng([seed, 4, i]))


def _in_turn(space: Parameters, u: Array, seed: tuple[int, ...]) -> Array:
    """Points u (m, p) of the unit cube, those of the choices without order replaced: each option once, then again.

    The order is random, and another one in each turn.
    """
    for j, parameter in enumerate(space.parameters):
        if isinstance(parameter, Choice) and not parameter.ordered and parameter.count > 1:
            rng, k = np.random.default_rng([*seed, j]), parameter.count
            turns = np.concatenate([rng.permutation(k) for _ in range(-(-len(u) // k))])
            u = u.copy()
            u[:, j] = (turns[: len(u)] + 0.5) / k
    return u


def covering(rows: Array, groups: tuple[int, ...]) -> Array:
    """The rows (m, d), those in front that show an option of a small choice for the first time.

    Again and again the row comes next that shows the most options not seen so far, the first of equals. It is taken
    from the first AMONG rows; when these have no option to add, the others follow in their order.
    """
    widths = np.bincount(groups)[list(groups)]
    shown = rows[:AMONG, (widths > 1) & (widths <= OPTIONS)] > 0.0
    front: list[int] = []
    while shown.any():
        front.append(int(np.argmax(shown.sum(axis=1))))
        shown = shown & ~shown[front[-1]]
    return np.concatenate([rows[front], np.delete(rows, front, axis=0)])


class Barriers(NamedTuple):
    """Boxes around k points in which nothing may be asked, and smaller ones in which nothing may be asked ever."""

    at: Array  # (k, d)
    within: Array  # (k, d), half the widths of the boxes
    core: Array  # (k, d), and of the smaller ones
    unsafe: Callable[[Array], Mask] | None = None  # other points that are to be left alone while there are others

    def holds(self, points: Array, *, core: bool = False) -> Mask:
        """Which of the points (m, d) lie in a box. O(m k d)."""
        close = np.abs(points[:, None] - self.at) <= (self.core if core else self.within)
        inside: Mask = np.any(np.all(close, axis=2), axis=1)
        return inside if self.unsafe is None or core else inside | self.unsafe(points)


class Design:
    """The points of the initial design, one after the other. It remembers them, because finding them takes a while.

    With `cover` it shows the options of choices early (`design_of`).
    """

    def __init__(self, space: Space, seed: int, *, cover: bool = False) -> None:
        self._space, self._seed, self._cover = space, seed, cover
        self._known: list[tuple[Point, bytes]] = []  # the points, each with the bytes of its coordinates
        self._rows = np.empty((0, space.dim))  # the coordinates of these points, and of more to come

    def first_outside(self, taken: Mapping[bytes, int], barred: Barriers | None = None) -> Point | None:
        """The first point whose coordinates are not in `taken` and not barred; None if the space has too few points.

        Where coordinates are given, the points before the k-th are tried last, k being the size of `taken`: there are
        trials under other coordinates, and the rest of their coordinates shall differ.
        """
        if self._space.fixed_coordinates:
            return self._later_first(taken, barred)
        for k in range(TRIES):
            x = self._first_known(taken, barred, len(taken) + 1 + (2**k if k else 0))
            if x is not None or barred is None or self._space.rows is not None:
                return x
        return None

    def _later_first(self, taken: Mapping[bytes, int], barred: Barriers | None) -> Point | None:
        for k in range(TRIES):
            count = len(taken) + 2**k
            rows = design_of(self._space, self._seed, count, cover=self._cover)
            begin = len(taken) % len(rows)
            for row in np.concatenate([rows[begin:], rows[:begin]]):
                x = self._space.decode(row)
                place = self._space.encode(x)
                if place.tobytes() not in taken and (barred is None or not barred.holds(place[None])[0]):
                    return x
            if self._space.rows is not None or not len(rows):
                break
        return None

    def _first_known(self, taken: Mapping[bytes, int], barred: Barriers | None, count: int) -> Point | None:
        """The same among at least `count` points of the design."""

        def is_free(place: bytes) -> bool:
            return place not in taken and (barred is None or not barred.holds(np.frombuffer(place)[None])[0])

        for x, place in self._known:
            if is_free(place):
                return x
        if len(self._rows) < count and (self._space.rows is None or len(self._rows) == 0):
            self._rows = design_of(self._space, self._seed, count, cover=self._cover)
        for row in self._rows[len(self._known) :]:
            x = self._space.decode(row)
            self._known.append((x, self._space.encode(x).tobytes()))
            if is_free(self._known[-1][1]):
                return x
        return None


def screen_of(space: Space, seed: int) -> Array:
    """SCREEN points spread over a space that cannot be enumerated, the same for the same seed."""
    return spread_over(space, SCREEN.bit_length() - 1, (seed, 1))


def farthest(space: Space, seed: int, taken: Array, barred: Barriers | None = None) -> Array | None:
    """The point (d,) of the screen farthest from the points taken (n, d) and from the walls.

    None if all that are not barred are taken, up to rounding.

    Distances are in widths of the space. A wall of a Real counts as a point at twice its distance, as if there were
    points on its other side: otherwise it would be one corner after the other. O(n d) for each point of the screen.
    """
    assert isinstance(space, Parameters)
    rows = screen_of(space, seed)
    lo = space.lo if space.plain else rows.min(axis=0)  # constraints have walls of their own, and a span of their own
    if barred is not None:
        rows = rows[~barred.holds(rows)]
    if len(rows) == 0:
        return None
    unit, others = (rows - lo) / space.span, (taken - lo) / space.span
    squares = (unit**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2.0 * unit @ others.T
    inside = unit[:, space.continuous & (np.ptp(rows, axis=0) > 0.0)]  # not where coordinates are given
    walls = np.minimum(inside, 1.0 - inside).min(axis=1, initial=np.inf)
    apart = squares.min(axis=1)
    apart = np.where(apart > TAKEN**2, np.minimum(apart, 4.0 * walls**2), -1.0)  # what is on a wall is at least new
    best = int(np.argmax(apart))
    return None if apart[best] < 0.0 else rows[best]


def spread_over(space: Space, log2: int, seed: tuple[int, ...]) -> Array:
    """2^log2 points spread over a space that cannot be enumerated; fewer where constraints leave very little."""
    assert isinstance(space, Parameters)
    if space.plain:
        return space.from_unit(sobol(space.unit_dim, log2, seed))
    return _spread_inside(space, log2, seed)


@lru_cache(maxsize=8)  # points inside constraints take longer to find
def _spread_inside(space: Parameters, log2: int, seed: tuple[int, ...]) -> Array:
    rng = np.random.default_rng(seed)
    found = space.feasible_set.spread(lambda log2: space.from_unit(sobol(space.unit_dim, log2, seed)), 2**log2, rng)
    found.flags.writeable = False
    return found


def best_observed(posterior: Posterior) -> Array:
    """The observed points with the largest posterior means, best first, (KNOWN, d) or fewer."""
    if posterior.n == 0:
        return np.empty((0, posterior.x.shape[1]))
    return posterior.x[np.argsort(-posterior.mu_at_observed, kind="stable")[:KNOWN]]


def best_known(posterior: Posterior, space: Parameters) -> Array:
    """The same; where coordinates are given, the observed points with these, and the largest posterior means there."""
    if not space.fixed_coordinates:
        return best_observed(posterior)
    z = space.move_to_fixed(posterior.x.reshape(-1, space.dim))
    return z[np.argsort(-posterior.mu(z), kind="stable")[:KNOWN]] if len(z) else z


def neighbours(space: Parameters, known: Array, rng: np.random.Generator, width: float | None = None) -> Array:
    """NEIGHBOURS points around the known ones (k, d), each moved in a random subset of the coordinates.

    The sd of a move is `width`, in widths of the box; if it is None, a random number between 0.001 and 0.1. A discrete
    parameter that moves takes a random level with probability 0.3. These numbers are our choice, not tuned.
    """
    if len(known) == 0:
        return np.empty((0, space.dim))
    if not space.plain:
        return _neighbours_inside(space, known, rng, width)
    centre = known[rng.integers(len(known), size=NEIGHBOURS)]
    d = len(space.parameters)
    widths = 10.0 ** rng.uniform(-3.0, -1.0, (NEIGHBOURS, 1)) if width is None else np.full((NEIGHBOURS, 1), width)
    moves = rng.random((NEIGHBOURS, d)) < np.maximum(rng.random((NEIGHBOURS, 1)), 2.0 / d)
    step = rng.standard_normal((NEIGHBOURS, d)) * widths * moves
    near = centre + step[:, space.groups] * space.span
    near = np.minimum(np.maximum(near, space.lo), space.hi)
    if space.discrete_settings > 1:
        fresh = space.from_unit(rng.random((NEIGHBOURS, d)))
        swaps = moves & (rng.random((NEIGHBOURS, d)) < 0.3)
        for j, (part, column) in enumerate(zip(space.encodings, space.columns, strict=True)):
            if part.count is not None:
                near[:, column] = np.where(swaps[:, j : j + 1], fresh[:, column], centre[:, column])
    return space.move_to_fixed(near)


def _neighbours_inside(space: Parameters, known: Array, rng: np.random.Generator, width: float | None) -> Array:
    """The same where constraints or conditions make the space less than a product."""
    region, layout, p = space.feasible_set, space.layout, len(space.parameters)
    centre = known[rng.integers(len(known), size=NEIGHBOURS)]
    widths = 10.0 ** rng.uniform(-3.0, -1.0, (NEIGHBOURS, 1)) if width is None else np.full((NEIGHBOURS, 1), width)
    moves = rng.random((NEIGHBOURS, p)) < np.maximum(rng.random((NEIGHBOURS, 1)), 2.0 / p)
    numbers, fresh = layout.level_numbers(centre), layout.level_numbers(layout.from_unit(rng.random((NEIGHBOURS, p))))
    step = rng.standard_normal((NEIGHBOURS, p)) * widths * moves
    s = np.clip(region.s_of(numbers) + step[:, region.reals] * space.scale, 0.0, 1.0)
    swaps = moves & (rng.random((NEIGHBOURS, p)) < 0.3)
    swaps[:, region.reals] = False
    swaps |= ~layout.active(numbers)  # what becomes active has no value to start from
    s = np.where(swaps[:, region.reals], region.s_of(fresh), s)
    target = region.with_s(np.where(swaps, fresh, numbers), s)
    return space.last_inside(centre, layout.from_levels(region.feasible_settings(target, PROGRAMS)))
