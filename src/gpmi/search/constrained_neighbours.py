"""Points near others where there are constraints or conditions, or parameters that go round."""

from __future__ import annotations

import numpy as np

from gpmi._support.types import Array
from gpmi.space import Parameters

PROGRAMS = 16  # neighbours, at most, whose discrete parameters an integer program makes feasible
SWAPS = 0.3  # the share of neighbours with another support, where constraints count parameters; as for a random level


def neighbours_inside(space: Parameters, centre: Array, rng: np.random.Generator, width: float | None) -> Array:
    """Return a neighbour of each centre (k, d), as `neighbours` does elsewhere."""
    feasible, layout, p, k = space.feasible_set, space.layout, len(space.parameters), len(centre)
    widths = 10.0 ** rng.uniform(-3.0, -1.0, (k, 1)) if width is None else np.full((k, 1), width)
    moves = rng.random((k, p)) < np.maximum(rng.random((k, 1)), 2.0 / p)
    numbers, fresh = layout.level_numbers(centre), layout.level_numbers(layout.from_unit(rng.random((k, p))))
    step = rng.standard_normal((k, p)) * widths * moves
    s = np.clip(feasible.s_of(numbers) + step[:, feasible.reals] * space.scale, 0.0, 1.0)
    swaps = moves & (rng.random((k, p)) < 0.3)
    swaps[:, feasible.reals] = False
    swaps |= ~layout.active(numbers)  # a parameter that becomes active has no value to start from
    s = np.where(swaps[:, feasible.reals], feasible.s_of(fresh), s)
    target = feasible.with_s(np.where(swaps, fresh, numbers), s)
    if space.constraints.counts:
        supports = feasible.supports
        target = supports.with_support(target, supports.on(numbers), rng)
        target = supports.swap(target, SWAPS, rng)
    return space.last_inside(centre, layout.from_levels(feasible.feasible_settings(target, PROGRAMS)))
