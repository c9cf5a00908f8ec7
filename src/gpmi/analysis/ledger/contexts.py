"""The regret of queries with fixed coordinates: each is compared with the best point with the same coordinates.

f is drawn jointly for all of them. With many different contexts, a climb for each would take long. Instead the maximum
is searched at points spread over that part of the space, and close to the best of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array
from gpmi.analysis.ledger.maxima import plausible_in
from gpmi.analysis.ledger.region import Region
from gpmi.gp.paths import PathSampler
from gpmi.gp.posterior import Posterior
from gpmi.search.neighbours import neighbours
from gpmi.search.screen import spread_over
from gpmi.space import Parameters, Space

# Our choices, not tuned: they limit the cost. A `PathSampler` of K points costs O(K^3).
_POINTS = 64  # at which the maximum of a context is searched; on a box as many more around the best
_SCREEN = 9  # log2 of the number of points from which those are taken
_JOINT = 256  # of all these points, this many are drawn exactly, in addition to the queries

HOW = "queries with fixed coordinates against the largest of about 100 points with the same; a lower bound"


class ContextQueries(NamedTuple):
    """Queries that were chosen among the points of one part of the space."""

    space: Space
    at: Array  # (k, d)


def draw_gaps(
    posterior: Posterior,
    asked: Sequence[ContextQueries],
    size: int,
    rng: np.random.Generator,
    seed: int,
    region: Region | None,
) -> tuple[Array, Array]:
    """Draw f jointly `size` times at all queries, and for each the maximum of f under its coordinates: (size, Q) both.

    O(n^2 m + K^3 + size m (n + K)) for m points in all, of which K are drawn exactly.
    """
    points = [_candidates(posterior, queries, rng, seed, region) for queries in asked]
    at = np.concatenate([queries.at for queries in asked])
    first = max(1, _JOINT // len(asked))  # of each part
    joint = np.concatenate([at, *(z[:first] for z in points)])
    paths = PathSampler.of(posterior, joint).paths(size, rng, rough=True)
    values, rest = paths.values[: len(at)], paths.values[len(at) :]
    best, k, j = [], 0, 0
    for queries, z in zip(asked, points, strict=True):
        at_queries, near = values[k : k + len(queries.at)], rest[j : j + len(z[:first])]
        everywhere = np.concatenate([at_queries, near, paths.everywhere(z[first:])])
        if region is not None:
            everywhere = np.where(region.everywhere(np.concatenate([queries.at, z])), everywhere, -np.inf)
        top = np.where(np.isneginf(everywhere).all(axis=0), at_queries.max(axis=0), everywhere.max(axis=0))
        best.append(np.tile(top, (len(queries.at), 1)))
        k, j = k + len(queries.at), j + len(z[:first])
    return np.concatenate(best).T, values.T


def _candidates(
    posterior: Posterior, queries: ContextQueries, rng: np.random.Generator, seed: int, region: Region | None
) -> Array:
    """Return points (., d) that may hold the maximum under the coordinates of a query, the most likely ones first."""
    space = queries.space
    z = space.rows if space.rows is not None else spread_over(space, _SCREEN, (seed, 1))
    best = queries.at[posterior.mu(queries.at).argmax()]
    z = z[plausible_in(posterior, z, best[None], region)[:_POINTS]]
    if space.rows is not None or not len(z):
        return z
    assert isinstance(space, Parameters)
    near = neighbours(space, z[np.argsort(-posterior.mu(z), kind="stable")[:1]], rng)
    return np.concatenate([z[:1], near, z[1:]])
