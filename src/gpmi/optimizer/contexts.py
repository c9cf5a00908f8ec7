"""How fixed coordinates change what a policy sees: the value to beat, and how much of a gain carries over."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpmi.gp.posterior import Posterior
from gpmi.model.model import Model
from gpmi.policies.expected_gain import log_h
from gpmi.policies.policy import TINY
from gpmi.search.objective import Objective
from gpmi.space import Space
from gpmi.trials import Log

AWAY = 2.0  # sd from the best mean to a point worth exploring under fixed coordinates: our choice, not tuned


def with_best_here(objective: Objective, model: Model, space: Space) -> Objective:
    """Return the objective with the best posterior mean under the fixed coordinates as the best value so far.

    A value told under other coordinates is out of reach now.
    """
    row = model.recommendation.best_mean_in(space)[None]

    def here(part: Objective, told: Posterior) -> Objective:
        best = float(told.mu(row)[0])
        return replace(part, state=replace(part.state, best_mean=best, best_observed=best))

    members = tuple(here(part, told) for part, told in zip(objective.members, model.members, strict=True))
    return replace(here(objective, model.posterior), members=members)


def discounted(objective: Objective, model: Model, space: Space, log: Log) -> Objective:
    """Return the objective with the share of a gain that carries over to other coordinates (`State.alike`)."""
    if not space.fixed_coordinates:
        return objective
    alike = share_of_gain(model, space, log)
    members = tuple(replace(part, state=replace(part.state, alike=alike)) for part in objective.members)
    return replace(objective, state=replace(objective.state, alike=alike), members=members)


def share_of_gain(model: Model, space: Space, log: Log) -> float:
    """Return the share of a gain here that carries over to the fixed coordinates of the trials, on average. O(n d).

    r is the prior correlation of f at the best point here and at the same point with the coordinates of a trial: what
    is learned here moves f there r times as much. A point AWAY sd below the best has the expected improvement h(AWAY)
    sd, h(z) = pdf(z) - z (1 - cdf(z)). The share r h(AWAY / r) / h(AWAY) of it carries over.
    """
    if not log.rows:
        return 1.0
    here, kernel = model.recommendation.best_mean_in(space)[None], model.posterior.kernel
    fixed = np.zeros(here.shape[1], dtype=bool)
    for j, _ in space.fixed_coordinates:
        fixed[space.columns[j]] = True
    there = np.where(fixed, np.array(list(log.rows.values())), here)
    variances = np.concatenate([kernel.diagonal(here), kernel.diagonal(there)])
    unit = np.ldexp(1.0, np.frexp(variances.max())[1])  # a power of two: the product cannot overflow, no bit changes
    size = np.sqrt((variances[:1] / unit) * (variances[1:] / unit)) * unit
    r = np.divide(kernel(here, there)[0], size, out=np.ones_like(size), where=size > 0.0).clip(TINY, 1.0)
    return float(np.mean(r * np.exp(log_h(-AWAY / r) - log_h(np.full_like(r, -AWAY)))))
