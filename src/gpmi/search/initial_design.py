"""The initial design of a run: Sobol points, or rows in random order, that show the options of choices early."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpmi._support.sobol import sobol
from gpmi._support.types import Array, Point
from gpmi.search.barriers import Barriers
from gpmi.space import Parameters, Space

# Our choices, not tuned.
SMALL_CHOICE = 5  # a choice with at most this many options is small: a design of a few points can show them all
PORTION = 64  # points of a design inside constraints that are made together
DOUBLINGS = 10  # how often a design is made twice as long, to find a point that is not barred
COVERING_ROWS = 1000  # the first rows, among which those that show new options are looked for


def design_of(space: Space, seed: int, count: int, *, cover: bool = False) -> Array:
    """Return at least `count` rows for the initial design, or all rows of a smaller set.

    A larger count only appends rows. On a product they are Sobol points. With `cover` the options of each unordered
    choice take turns: of k options the first k points show all. On a finite set the options of small choices come
    first. If constraints leave so little that points are hard to find, there may be fewer. Where parameters have steps,
    the points are at their settings, and several may be the same.
    """
    rows = _design_of(space, seed, count, cover=cover)
    return np.array([space.settable(row).row for row in rows]) if space.is_stepped else rows


def _design_of(space: Space, seed: int, count: int, *, cover: bool) -> Array:
    if space.rows is not None:
        order = np.random.default_rng(seed).permutation(len(space.rows))
        return covering(space.rows[order], space.groups) if cover else space.rows[order]
    assert isinstance(space, Parameters)
    if space.plain:
        u = sobol(space.unit_dim, max(4, count.bit_length()), (seed, 0))
        return space.from_unit(_options_in_turn(space, u, (seed, 3)) if cover else u)
    portions = range(-(-count // PORTION))
    return np.concatenate([*_middles(space, seed), *(_portion(space, seed, i) for i in portions)])


def _middles(space: Parameters, seed: int) -> list[Array]:
    """Return the middles of the supports, in random order, where constraints count parameters and few are left."""
    if not space.constraints.counts or not len(space.feasible_set.supports.few):
        return []
    middles = space.feasible_set.middles(_portion(space, seed, 0))
    return [middles[np.random.default_rng([seed, 6]).permutation(len(middles))]]


def _portion(space: Parameters, seed: int, i: int) -> Array:
    """Return PORTION points of a design inside constraints, or fewer."""

    def points(log2: int) -> Array:
        return space.from_unit(_options_in_turn(space, sobol(space.unit_dim, log2, (seed, 0, i)), (seed, 3, i)))

    return space.feasible_set.spread(points, PORTION, np.random.default_rng([seed, 4, i]))


def _options_in_turn(space: Parameters, u: Array, seed: tuple[int, ...]) -> Array:
    """Return points u (m, p) of the unit cube in which each option of an unordered choice comes once, then again.

    The order is random, and another one in each turn.
    """
    for j, parameter in enumerate(space.parameters):
        k = parameter.count or 0
        if not parameter.ordered and k > 1:
            rng = np.random.default_rng([*seed, j])
            turns = np.concatenate([rng.permutation(k) for _ in range(-(-len(u) // k))])
            u = u.copy()
            u[:, j] = (turns[: len(u)] + 0.5) / k
    return u


def covering(rows: Array, groups: tuple[int, ...]) -> Array:
    """Return the rows (m, d), beginning with those that show an option of a small choice for the first time.

    The next row is always the first of those that show the most new options. It is taken from the first COVERING_ROWS
    rows. When these have no option to add, the others follow in their order.
    """
    widths = np.bincount(groups)[list(groups)]
    shown = rows[:COVERING_ROWS, (widths > 1) & (widths <= SMALL_CHOICE)] > 0.0
    front: list[int] = []
    while shown.any():
        front.append(int(np.argmax(shown.sum(axis=1))))
        shown = shown & ~shown[front[-1]]
    return np.concatenate([rows[front], np.delete(rows, front, axis=0)])


class InitialDesign:
    """The points of the initial design, one after the other. They are cached, because finding them takes a while.

    With `cover` they show the options of choices early (`design_of`).
    """

    def __init__(self, space: Space, seed: int, *, cover: bool = False) -> None:
        self._space, self._seed, self._cover = space, seed, cover
        self._points: list[tuple[Point, bytes]] = []  # with the bytes of their coordinates
        self._rows = np.empty((0, space.dim))  # the coordinates of these points, and of more to come

    def first_free(self, taken: Mapping[bytes, int], barred: Barriers | None = None) -> Point | None:
        """Return the first point whose coordinates are neither in `taken` nor barred; None if there is none.

        With fixed coordinates, the points before the k-th are tried last, k being the size of `taken`: there are trials
        with other fixed coordinates, and their free coordinates should differ.
        """
        if self._space.fixed_coordinates:
            return self._first_free_from_the_kth(taken, barred)
        for k in range(DOUBLINGS):
            x = self._first_free_of(taken, barred, len(taken) + 1 + (2**k if k else 0))
            done = barred is None and not self._space.is_stepped  # then the first points have one that is free
            if x is not None or done or self._space.rows is not None:
                return x
        return None

    def _first_free_from_the_kth(self, taken: Mapping[bytes, int], barred: Barriers | None) -> Point | None:
        for k in range(DOUBLINGS):
            count = len(taken) + 2**k
            rows = design_of(self._space, self._seed, count, cover=self._cover)
            begin = len(taken) % len(rows)
            for row in np.concatenate([rows[begin:], rows[:begin]]):
                x = self._space.decode(row)
                coordinates = self._space.encode(x)
                if coordinates.tobytes() not in taken and (barred is None or not barred.holds(coordinates[None])[0]):
                    return x
            if self._space.rows is not None or not len(rows):
                break
        return None

    def _first_free_of(self, taken: Mapping[bytes, int], barred: Barriers | None, count: int) -> Point | None:
        """Return the first free point among at least `count` points of the design."""

        def is_free(coordinates: bytes) -> bool:
            return coordinates not in taken and (
                barred is None or not barred.holds(np.frombuffer(coordinates)[None])[0]
            )

        for x, coordinates in self._points:
            if is_free(coordinates):
                return x
        if len(self._rows) < count and (self._space.rows is None or len(self._rows) == 0):
            self._rows = design_of(self._space, self._seed, count, cover=self._cover)
        for row in self._rows[len(self._points) :]:
            x = self._space.decode(row)
            self._points.append((x, self._space.encode(x).tobytes()))
            if is_free(self._points[-1][1]):
                return x
        return None
