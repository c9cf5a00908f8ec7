"""Points at which a search begins: the screen of a space, the best observed points and their neighbours."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gpmi._support.sobol import sobol
from gpmi._support.types import Array
from gpmi.gp.posterior import Posterior
from gpmi.search.barriers import Barriers
from gpmi.space import Parameters, Space

# Our choices, not tuned.
SCREEN = 512  # points of the screen, a power of 2 for Sobol. After a new prior they cost about 20 ms at n = 1,000
NEIGHBOURS = 64  # further points, close to the best observed ones
BEST_OBSERVED = 3  # how many of the best observed points get neighbours: more than one, because a value may be lucky
PROGRAMS = 16  # neighbours, at most, whose discrete parameters an integer program makes feasible
SWAPS = 0.3  # the share of neighbours with another support, where constraints count parameters; as for a random level
SAME_POINT = 1e-6  # two points at most this far apart, in widths of the space, are one: far above rounding


def screen_of(space: Space, seed: int) -> Array:
    """Return SCREEN points spread over a space that cannot be enumerated, the same for the same seed."""
    return spread_over(space, SCREEN.bit_length() - 1, (seed, 1))


def spread_over(space: Space, log2: int, seed: tuple[int, ...]) -> Array:
    """Return 2^log2 points spread over a space that cannot be enumerated; fewer if constraints leave very little."""
    assert isinstance(space, Parameters)
    if space.plain:
        return space.from_unit(sobol(space.unit_dim, log2, seed))
    return _spread_inside(space, log2, seed)


@lru_cache(maxsize=8)  # points inside constraints take longer to find
def _spread_inside(space: Parameters, log2: int, seed: tuple[int, ...]) -> Array:
    rng = np.random.default_rng(seed)
    points = space.feasible_set.spread(lambda log2: space.from_unit(sobol(space.unit_dim, log2, seed)), 2**log2, rng)
    points.flags.writeable = False
    return points


def farthest(space: Space, seed: int, taken: Array, barred: Barriers | None = None) -> Array | None:
    """Return the point (d,) of the screen farthest from the points taken (n, d) and from the walls.

    None if all that are not barred are taken, up to rounding.

    Distances are in widths of the space. A wall of a Real counts as a point at twice its distance, as if there were
    points beyond it. Otherwise one corner after the other would be chosen. O(n d) for each point of the screen.
    """
    assert isinstance(space, Parameters)
    rows = screen_of(space, seed)
    lo = space.lo if space.plain else rows.min(axis=0)  # constraints have walls and a span of their own
    if barred is not None:
        rows = rows[~barred.holds(rows)]
    if len(rows) == 0:
        return None
    unit, others = (rows - lo) / space.span, (taken - lo) / space.span
    squares = (unit**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2.0 * unit @ others.T
    has_walls = space.continuous & (np.ptp(rows, axis=0) > 0.0)  # without fixed coordinates
    for j in space.feasible_set.supports.counted if space.constraints.counts else ():
        has_walls[space.columns[j]] = False  # most of these are 0, by the constraints
    inside = unit[:, has_walls]
    walls = np.minimum(inside, 1.0 - inside).min(axis=1, initial=np.inf)
    apart = squares.min(axis=1)
    # A point on a wall has distance 0: better than a point that is taken, -1.
    apart = np.where(apart > SAME_POINT**2, np.minimum(apart, 4.0 * walls**2), -1.0)
    best = int(np.argmax(apart))
    return None if apart[best] < 0.0 else rows[best]


def best_observed(posterior: Posterior) -> Array:
    """Return the observed points with the largest posterior means, best first, (BEST_OBSERVED, d) or fewer."""
    if posterior.n == 0:
        return np.empty((0, posterior.x.shape[1]))
    return posterior.x[np.argsort(-posterior.mu_at_observed, kind="stable")[:BEST_OBSERVED]]


def best_observed_in(posterior: Posterior, space: Parameters) -> Array:
    """Return the best observed points of a space.

    With fixed coordinates, observed points are moved to these, and those with the largest posterior means there are
    returned.
    """
    if not space.fixed_coordinates:
        return best_observed(posterior).reshape(-1, space.dim)  # a prior may not know the dimension
    z = space.move_to_fixed(posterior.x.reshape(-1, space.dim))
    return z[np.argsort(-posterior.mu(z), kind="stable")[:BEST_OBSERVED]] if len(z) else z


def neighbours(space: Parameters, centres: Array, rng: np.random.Generator, width: float | None = None) -> Array:
    """Return NEIGHBOURS points around the centres (k, d), each moved in a random subset of the coordinates.

    The sd of a move is `width`, in widths of the box, or by default a random number between 0.001 and 0.1. A discrete
    parameter that moves takes a random level with probability 0.3. These numbers are our choice, not tuned.
    """
    if len(centres) == 0:
        return np.empty((0, space.dim))
    if not space.is_straight:
        return _neighbours_inside(space, centres, rng, width)
    centre = centres[rng.integers(len(centres), size=NEIGHBOURS)]
    d = len(space.parameters)
    widths = 10.0 ** rng.uniform(-3.0, -1.0, (NEIGHBOURS, 1)) if width is None else np.full((NEIGHBOURS, 1), width)
    moves = rng.random((NEIGHBOURS, d)) < np.maximum(rng.random((NEIGHBOURS, 1)), 2.0 / d)
    step = rng.standard_normal((NEIGHBOURS, d)) * widths * moves
    near = centre + step[:, space.groups] * space.span
    near = np.minimum(np.maximum(near, space.lo), space.hi)
    if space.discrete_settings > 1:
        fresh = space.from_unit(rng.random((NEIGHBOURS, d)))
        swaps = moves & (rng.random((NEIGHBOURS, d)) < 0.3)
        for j, (encoding, columns) in enumerate(zip(space.encodings, space.columns, strict=True)):
            if encoding.count is not None:
                near[:, columns] = np.where(swaps[:, j : j + 1], fresh[:, columns], centre[:, columns])
    return space.move_to_fixed(near)


def _neighbours_inside(space: Parameters, centres: Array, rng: np.random.Generator, width: float | None) -> Array:
    """Return neighbours where there are constraints or conditions, or parameters that go round."""
    feasible, layout, p = space.feasible_set, space.layout, len(space.parameters)
    centre = centres[rng.integers(len(centres), size=NEIGHBOURS)]
    widths = 10.0 ** rng.uniform(-3.0, -1.0, (NEIGHBOURS, 1)) if width is None else np.full((NEIGHBOURS, 1), width)
    moves = rng.random((NEIGHBOURS, p)) < np.maximum(rng.random((NEIGHBOURS, 1)), 2.0 / p)
    numbers, fresh = layout.level_numbers(centre), layout.level_numbers(layout.from_unit(rng.random((NEIGHBOURS, p))))
    step = rng.standard_normal((NEIGHBOURS, p)) * widths * moves
    s = np.clip(feasible.s_of(numbers) + step[:, feasible.reals] * space.scale, 0.0, 1.0)
    swaps = moves & (rng.random((NEIGHBOURS, p)) < 0.3)
    swaps[:, feasible.reals] = False
    swaps |= ~layout.active(numbers)  # a parameter that becomes active has no value to start from
    s = np.where(swaps[:, feasible.reals], feasible.s_of(fresh), s)
    target = feasible.with_s(np.where(swaps, fresh, numbers), s)
    if space.constraints.counts:
        supports = feasible.supports
        target = supports.with_support(target, supports.on(numbers), rng)
        target = supports.swap(target, SWAPS, rng)
    return space.last_inside(centre, layout.from_levels(feasible.feasible_settings(target, PROGRAMS)))
