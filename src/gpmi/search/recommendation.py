"""The recommended point: the best posterior mean, or the best point that has worked."""

from __future__ import annotations

from functools import partial

import numpy as np

from gpmi._support.types import Array, Mask
from gpmi.gp.approximate.success import LIKELY, SuccessProbability
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import first_best, mean_in_chunks
from gpmi.policies import Mean, State
from gpmi.policies.policy import SAFE
from gpmi.search.multistart import best_point
from gpmi.search.neighbours import best_observed_in
from gpmi.search.objective import Objective, mean_of
from gpmi.search.relevant_region import confine
from gpmi.search.screen import screen_of
from gpmi.space import Parameters, Space

# Two values, or two means, that differ by less than this are equal. It is relative to the values, and for means to the
# prior sd if that is larger. It is some thousand times the rounding of a float. Our choice, not tuned.
ROUNDING = 1e-12


def recommended_row(
    posterior: Posterior,
    members: tuple[Posterior, ...],  # the same under other priors; if there are any, their means are averaged
    space: Space,  # the whole space, or a part of it with fixed coordinates
    seed: int,
    chance: SuccessProbability | None,
    proven: Mask,  # which rows of the posterior are at points that have worked
) -> Array:
    """Return the point (d,) of the space with the best posterior mean, told or not.

    With a `chance` of success it is the best told point that is proven. If there is none in the whole space, it is the
    told point most likely to succeed. In a part, where perhaps no point was told, it is the best mean among the points
    that succeed with a probability of at least SAFE, and if none is found, the point most likely to succeed.
    """
    here = np.array([not space.fixed_coordinates or space.contains(row) for row in posterior.x], dtype=bool)
    if chance is None or posterior.n == 0:
        return _told_if_equal(best_mean(posterior, members, space, seed), posterior, members, here)
    if (proven & here).any():
        value = np.where(proven & here, mean_at_told(posterior, members), -np.inf)
    elif space.fixed_coordinates:
        return best_mean(posterior, members, space, seed, chance, SAFE)
    else:
        value = chance.log(posterior.x)
    row: Array = posterior.x[first_best(value)]
    return row


def _told_if_equal(best_row: Array, posterior: Posterior, members: tuple[Posterior, ...], here: Mask) -> Array:
    """Return the best told point `here` if all values are equal and no mean is larger than there; else `best_row`.

    With one value, or equal ones, and a learned prior the mean is the same everywhere, so any point would be the best.
    """
    y = posterior.observed
    if not here.any() or np.ptp(y) > ROUNDING * np.abs(y).max():
        return best_row
    told = np.where(here, mean_at_told(posterior, members), -np.inf)
    best = float(np.mean([member.mu(best_row[None])[0] for member in members or (posterior,)]))
    size = max(abs(best), float(np.sqrt(posterior.kernel.diagonal(best_row[None])[0])))
    row: Array = posterior.x[first_best(told)]
    return row if best <= told.max() + ROUNDING * size else best_row


def mean_at_told(posterior: Posterior, members: tuple[Posterior, ...]) -> Array:
    """Return the posterior mean at each told point, (n,), averaged over the members if there are any. O(n) for each."""
    mu: Array = np.mean([member.mu_at_observed for member in members or (posterior,)], axis=0)
    return mu


def best_mean(
    posterior: Posterior,
    members: tuple[Posterior, ...],  # the same under other priors; if there are any, their means are averaged
    space: Space,
    seed: int,
    chance: SuccessProbability | None = None,
    least: float = LIKELY,
) -> Array:
    """Return the point (d,) with the largest posterior mean, told or not. On a finite set a tie goes to the lowest row.

    With a `chance` of success, only points that succeed with a probability of at least `least` count. If none is found,
    it is the point most likely to succeed.
    """
    if space.rows is not None:
        means = mean_of([mean_in_chunks(member, space.rows) for member in members or (posterior,)])
        if chance is not None:
            likely = chance.likely(space.rows, least)
            means = np.where(likely, means, -np.inf) if likely.any() else chance.log(space.rows)
        row: Array = space.rows[first_best(means)]
        return row
    assert isinstance(space, Parameters)
    screen, rng = screen_of(space, seed), np.random.default_rng([seed, posterior.n, 0])
    parts = tuple(Objective(member, Mean(), State()) for member in members)
    screened = mean_of([member.mu(screen) for member in members or (posterior,)])
    objective, good = Objective(posterior, Mean(), State(), parts), best_observed_in(posterior, space)
    if chance is None:
        return best_point(objective, space, screen, screened, good, rng).row
    screened = np.where(chance.likely(screen, least), screened, -np.inf)
    inside = partial(chance.likely, least=least)
    row = best_point(confine(objective, inside), space, screen, screened, good, rng).row
    if inside(row[None])[0]:
        return row
    z = np.concatenate([screen, good])
    most_likely: Array = z[first_best(chance.log(z))]
    return most_likely
