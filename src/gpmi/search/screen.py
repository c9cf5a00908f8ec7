"""Points spread over a space at which a search begins, and the one of them that is farthest from the trials."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gpmi._support.sobol import sobol
from gpmi._support.types import Array
from gpmi.search.barriers import Barriers
from gpmi.space import Parameters, Space

# Our choices, not tuned.
SCREEN = 512  # points of the screen, a power of 2 for Sobol. After a new prior they cost about 20 ms at n = 1,000
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
