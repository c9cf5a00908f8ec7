"""The best observed points of a space, and points near them: where a search looks closer."""

from __future__ import annotations

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.posterior import Posterior
from gpmi.search.constrained_neighbours import neighbours_inside
from gpmi.space import Parameters

NEIGHBOURS = 64  # further points, close to the best observed ones
BEST_OBSERVED = 3  # how many of the best observed points get neighbours: more than one, because a value may be lucky


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
    centre = centres[rng.integers(len(centres), size=NEIGHBOURS)]
    if not space.is_straight:
        return neighbours_inside(space, centre, rng, width)
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
