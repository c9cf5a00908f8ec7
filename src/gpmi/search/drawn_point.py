"""The argmax of one draw of f in a box: the point that a policy of the kind of Thompson's asks."""

from __future__ import annotations

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.paths import Draw
from gpmi.gp.tracking import first_best
from gpmi.search.barriers import Barriers
from gpmi.search.multistart import best_of
from gpmi.search.neighbours import neighbours
from gpmi.search.objective import Objective, SearchResult
from gpmi.space import Parameters

WIDTHS = (3e-2, 1e-2, 3e-3, 1e-3)  # widths of the neighbourhoods in which a draw is refined, in widths of the box


def drawn_point(
    objective: Objective,
    space: Parameters,
    screen: Array,  # (m, d)
    good: Array,  # (k, d)
    rng: np.random.Generator,
    normals: np.random.Generator,  # for the draw of f
    visited: Array | None = None,  # (k, d)
    barred: Barriers | None = None,
) -> SearchResult:
    """Return the argmax of one draw of f: on the screen, then in ever smaller neighbourhoods of the best point."""
    objective = objective.random_member(rng)
    draw = Draw(objective.posterior, normals)
    z = np.concatenate([screen, neighbours(space, good, rng)])
    value = draw(z)
    for width in WIDTHS:
        near = neighbours(space, z[[first_best(objective.weighed(value, z))]], rng, width)
        z, value = np.concatenate([z, near]), np.append(value, draw(near))
    return best_of(objective, space, z, objective.weighed(value, z), visited, barred)
