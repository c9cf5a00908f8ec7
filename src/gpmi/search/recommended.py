"""The point to use, given what is believed: the best posterior mean, or the best point that has worked."""

from __future__ import annotations

import numpy as np

from gpmi._support.types import Array, Mask
from gpmi.gp.approximate.success import SuccessProbability
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import first_best
from gpmi.policies.policy import SAFE
from gpmi.search.box import best_mean
from gpmi.space import Space

# Two values, or two means, that differ by less than this are equal. Relative to them; means also relative to the prior
# sd, if that is larger. It is some thousand times the rounding of a float. Our choice, not tuned.
ROUNDING = 1e-12


def recommended(
    posterior: Posterior,
    members: tuple[Posterior, ...],  # the same under other priors; where there are any, their means are averaged
    space: Space,  # the whole space, or a part of it with given coordinates
    seed: int,
    chance: SuccessProbability | None,
    proven: Mask,  # which rows of the posterior are at points that have worked
) -> Array:
    """The coordinates (d,) of the point of the space with the best posterior mean, told or not.

    With a `chance` of success it is the best told point that is proven. If there is none: in the whole space the told
    point most likely to succeed; in a part, where perhaps no point was told, the best mean among those that succeed
    with a probability of at least SAFE, and if none is found, the point most likely to succeed.
    """
    here = np.array([not space.fixed_coordinates or space.contains(row) for row in posterior.x], dtype=bool)
    if chance is None or posterior.n == 0:
        return _told_if_equal(best_mean(posterior, members, space, seed), posterior, members, here)
    if (proven & here).any():
        worth = np.where(proven & here, mean_at_told(posterior, members), -np.inf)
    elif space.fixed_coordinates:
        return best_mean(posterior, members, space, seed, chance, SAFE)
    else:
        worth = chance.log(posterior.x)
    row: Array = posterior.x[first_best(worth)]
    return row


def _told_if_equal(found: Array, posterior: Posterior, members: tuple[Posterior, ...], here: Mask) -> Array:
    """The best told point among those `here` where all values are equal and no mean is larger than there; or `found`.

    With one value or equal ones and a learned prior the mean is the same everywhere, and any point would do.
    """
    y = posterior.observed
    if not here.any() or np.ptp(y) > ROUNDING * np.abs(y).max():
        return found
    told = np.where(here, mean_at_told(posterior, members), -np.inf)
    best = float(np.mean([member.mu(found[None])[0] for member in members or (posterior,)]))
    size = max(abs(best), float(np.sqrt(posterior.kernel.diagonal(found[None])[0])))
    row: Array = posterior.x[first_best(told)]
    return row if best <= told.max() + ROUNDING * size else found


def mean_at_told(posterior: Posterior, members: tuple[Posterior, ...]) -> Array:
    """The posterior mean at each told point, averaged over the members where there are any, (n,). O(n) for each."""
    mu: Array = np.mean([member.mu_at_observed for member in members or (posterior,)], axis=0)
    return mu
