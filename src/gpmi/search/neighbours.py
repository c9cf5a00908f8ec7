"""The best observed points of a space, and points near them: where a search looks closer."""

from __future__ import annotations

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.posterior import Posterior
from gpmi.space import Parameters

NEIGHBOURS = 64  # further points, close to the best observed ones
BEST_OBSERVED = 3  # how many of the best observed points get neighbours: more than one, because a value may be lucky
PROGRAMS = 16  # neighbours, at most, whose discrete parameters an integer program makes feasible
SWAPS = 0.3  # the share of neighbours with another support, where constraints count parameters; as for a random level


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
