"""The best of finitely many points: the exact argmax. A tie goes to the lowest row."""

from __future__ import annotations

import numpy as np

from gpmi._support.types import Array, Event, Mask
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import (
    RoundingError,
    Tracked,
    argmax_of_contenders,
    chunks,
    contenders,
    first_best,
    lazy_argmax,
    moments_in_blocks,
    moments_in_chunks,
)
from gpmi.search.objective import Found, Objective

JOINT = 2048  # points of one joint draw, at most. It costs O(JOINT^3), about half a second: our limit for one ask


def best_row(
    objective: Objective,
    rows: Array,  # (m, d)
    excluded: Mask | None,  # (m,)
    tracked: Tracked | None,
    bound: Array | None,
) -> tuple[Found, Array | None]:
    """The exact argmax on a finite set, and upper bounds of the variances for the next lazy search, if it was lazy.

    `tracked` has the moments at all rows, if they are kept up to date. Otherwise variances are computed only where an
    old one, which is an upper bound, leaves open whether the row is the best; that needs a score that grows with var.
    """
    posterior, policy = objective.posterior, objective.policy
    if objective.members or objective.chance is not None:
        score = np.concatenate([objective(rows[part]) for part in chunks(len(rows), posterior.n)])
        number = first_best(score, excluded)
        return objective.found(rows[number], number), None
    if tracked is None and policy.grows_with_var:
        number, bound = lazy_argmax(posterior, rows, objective.index, bound, excluded)
        return _found_row(objective, rows, number), bound
    mu, var = (tracked.mu, tracked.var) if tracked is not None else moments_in_chunks(posterior, rows)
    numbers = contenders(objective.index, mu, var, RoundingError.of(posterior, rows), excluded, policy.grows_with_var)
    return _found_row(objective, rows, argmax_of_contenders(posterior, rows, objective.index, numbers)), None


def _found_row(objective: Objective, rows: Array, number: int) -> Found:
    """What is known of a row: the same to the last bit, whichever way it was found."""
    mu, var = moments_in_blocks(objective.posterior, rows, np.array([number]))
    return Found(rows[number], float(mu[0]), float(var[0]), float(objective.index(mu, var)[0]), number)


def drawn_row(
    objective: Objective,
    rows: Array,  # (m, d)
    excluded: Mask | None,  # (m,)
    rng: np.random.Generator,
    normals: np.random.Generator,  # for the draw of f
) -> Found:
    """The argmax of one joint draw of f over the rows, or over JOINT random ones where there are more."""
    objective = objective.any_member(rng)
    posterior: Posterior = objective.posterior
    numbers = np.arange(len(rows)) if excluded is None else np.flatnonzero(~excluded)
    events: tuple[Event, ...] = ()
    if len(numbers) > JOINT:
        total, numbers = len(numbers), np.sort(rng.choice(numbers, JOINT, replace=False))
        events = (Event("reduced search", f"the joint draw was made at {JOINT} random rows of {total}"),)
    draw = objective.weighed(posterior.sample(rows[numbers], normals)[0], rows[numbers])
    number = int(numbers[first_best(draw)])
    return objective.found(rows[number], number, events)


def drawn_maximum(
    posterior: Posterior, rows: Array, mu: Array, var: Array, size: int, rng: np.random.Generator
) -> float | None:
    """The mean of `size` draws of max f over the rows (m, d), whose moments are mu and var; None beyond JOINT rows.

    Rows that are 6 sd below what another one reaches 6 sd below its mean are left out: they exceed it with a
    probability below 1e-9. O(n K^2 + K^3 + size K^2) for the K others.
    """
    sd = np.sqrt(var)
    numbers = np.flatnonzero(mu + 6.0 * sd >= np.max(mu - 6.0 * sd))
    if len(numbers) > JOINT:
        return None
    return float(posterior.sample(rows[numbers], rng, size).max(axis=1).mean())
