"""The best of finitely many points: the exact argmax. A tie goes to the lowest row number."""

from __future__ import annotations

import numpy as np

from gpmi._support.types import Array, Event, Mask
from gpmi.gp.lazy_search import RoundingError, argmax_of_contenders, contenders, lazy_argmax, moments_in_blocks
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import Tracked, chunks, first_best, moments_in_chunks
from gpmi.search.objective import Objective, SearchResult

JOINT = 2048  # the most points of one joint draw. It costs O(JOINT^3), about half a second: our limit for one ask


def best_row(
    objective: Objective,
    rows: Array,  # (m, d)
    excluded: Mask | None,  # (m,)
    tracked: Tracked | None,
    bound: Array | None,
) -> tuple[SearchResult, Array | None]:
    """Return the exact argmax, and after a lazy search upper bounds of the variances for the next one.

    `tracked` has the moments at all rows, if they are tracked. Otherwise the search is lazy if the score grows with
    var: an old variance is an upper bound, and a new one is computed only where the bound leaves open whether the row
    is the best.
    """
    posterior, policy = objective.posterior, objective.policy
    if objective.members or objective.chance is not None:
        score = np.concatenate([objective(rows[part]) for part in chunks(len(rows), posterior.n)])
        number = first_best(score, excluded)
        return objective.result_at(rows[number], number), None
    if tracked is None and policy.grows_with_var:
        number, bound = lazy_argmax(posterior, rows, objective.score, bound, excluded)
        return _result_at_row(objective, rows, number), bound
    mu, var = (tracked.mu, tracked.var) if tracked is not None else moments_in_chunks(posterior, rows)
    numbers = contenders(objective.score, mu, var, RoundingError.of(posterior, rows), excluded, policy.grows_with_var)
    return _result_at_row(objective, rows, argmax_of_contenders(posterior, rows, objective.score, numbers)), None


def _result_at_row(objective: Objective, rows: Array, number: int) -> SearchResult:
    """Return the moments and the score at a row, the same to the last bit whichever way it was found."""
    mu, var = moments_in_blocks(objective.posterior, rows, np.array([number]))
    return SearchResult(rows[number], float(mu[0]), float(var[0]), float(objective.score(mu, var)[0]), number)


def drawn_row(
    objective: Objective,
    rows: Array,  # (m, d)
    excluded: Mask | None,  # (m,)
    rng: np.random.Generator,
    normals: np.random.Generator,  # for the draw of f
) -> SearchResult:
    """Return the argmax of one joint draw of f over the rows, or over JOINT random rows if there are more."""
    objective = objective.random_member(rng)
    posterior: Posterior = objective.posterior
    numbers = np.arange(len(rows)) if excluded is None else np.flatnonzero(~excluded)
    events: tuple[Event, ...] = ()
    if len(numbers) > JOINT:
        total, numbers = len(numbers), np.sort(rng.choice(numbers, JOINT, replace=False))
        events = (Event("reduced search", f"the joint draw was made at {JOINT} random rows of {total}"),)
    draw = objective.weighed(posterior.sample(rows[numbers], normals)[0], rows[numbers])
    number = int(numbers[first_best(draw)])
    return objective.result_at(rows[number], number, events)


def drawn_maximum(
    posterior: Posterior, rows: Array, mu: Array, var: Array, size: int, rng: np.random.Generator
) -> float | None:
    """Return the mean of `size` draws of max f over the rows (m, d) with moments mu and var; None beyond JOINT rows.

    A row is left out if its mean plus 6 sd is below the mean minus 6 sd of another one: it exceeds that one with a
    probability below 1e-9. O(n K^2 + K^3 + size K^2) for the K others.
    """
    sd = np.sqrt(var)
    numbers = np.flatnonzero(mu + 6.0 * sd >= np.max(mu - 6.0 * sd))
    if len(numbers) > JOINT:
        return None
    return float(posterior.sample(rows[numbers], rng, size).max(axis=1).mean())
