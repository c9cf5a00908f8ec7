"""Where the next point comes from: the user's starting points, the initial design, then the policy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gpmi._support.sobol import far_apart
from gpmi._support.types import Array, Event, FrozenPoint, Point
from gpmi.model.model import Model, ModelSetting, PendingPosteriors, objective, risk_now
from gpmi.model.orientation import Orientation
from gpmi.optimizer.contexts import with_best_here
from gpmi.optimizer.escape import UNBOUNDED_MU, UNBOUNDED_SD
from gpmi.optimizer.exclusions import and_unsafe, around_rejected
from gpmi.optimizer.selection import Selection
from gpmi.policies import Policy, Selected
from gpmi.policies.policy import LOG_SAFE
from gpmi.policies.risk import Risk
from gpmi.search.subspaces import Subspace
from gpmi.space import Space
from gpmi.trials import Log, Origin

APART = 0.02  # trials closer than this, in diagonals of the space, count as one place; our choice, not tuned


class Suggestion(NamedTuple):
    """A point to ask, with what the model predicts there."""

    x: Point
    origin: Origin
    fields: Mapping[str, Any] = MappingProxyType({})  # of its Trial
    events: tuple[Event, ...] = ()


def from_start(start: tuple[tuple[Point, Array], ...], subspace: Subspace, log: Log) -> Suggestion | None:
    """Return the first of the user's starting points without a trial that is not rejected; None if there is none.

    With fixed coordinates, the point must have them. A starting point may be below the target of a fidelity.
    """
    space, fidelity = subspace.space, subspace.space.fidelity
    barred, asked = around_rejected(space, log) if start else None, log.asked_places
    for x, row in start:
        at = row if fidelity is None else fidelity.at(row, fidelity.fidelity.target)
        if space.fixed_coordinates and not space.contains(at):
            continue
        if row.tobytes() not in asked and (barred is None or not barred.holds(row[None], core=True)[0]):
            return Suggestion(x, "design")
    return None


def from_design(
    subspace: Subspace, setting: ModelSetting, log: Log, n_init: int, *, anew: bool = False
) -> Suggestion | None:
    """Return the next point of the initial design that is not in the log; None when the design is complete.

    Complete once n_init distinct places have trials, or the policy has chosen a point. With a learned prior it is never
    complete before the first value of every objective. Points close to each other are one place: six points in one
    corner do not make a design. `anew` also completes a design after the policy has chosen.
    """
    blind = not setting.priors.is_fixed and (not log.told or bool(log.unmeasured))
    if not blind and ((log.unchosen < len(log) and not anew) or _count_places(setting.space, log, n_init) >= n_init):
        return None
    x = subspace.design.first_free(log.asked_places, around_rejected(subspace.space, log))
    return None if x is None else Suggestion(x, "design")


def _count_places(space: Space, log: Log, most: int) -> int:
    """Count the distinct places with a trial, up to `most`: trials within APART of each other are one place."""
    if len(log) < most or most == 0:
        return len(log)
    unit = (np.array(list(log.rows.values())) - space.lo) / space.span
    return len(far_apart(unit, np.arange(len(unit)), APART, most))


def from_policy(
    model: Model,
    policy: Policy,
    log: Log,
    subspace: Subspace,
    pending: PendingPosteriors,
    orientation: Orientation,
    *,
    budget: int | None,
    repeats: bool,
) -> Suggestion:
    """Return the policy's choice, given the model after everything told and the pending trials of the log."""
    setting, space = model.setting, subspace.space
    horizon = None if budget is None else max(1, budget - log.unchosen)
    rng = np.random.default_rng([setting.seed, model.n, len(log.failed) + len(log.pending)])
    risk = Risk() if model.outcomes is None else risk_now(log, horizon)
    barred = around_rejected(space, log) if space.rows is None else None
    barred = and_unsafe(model.chance, space, barred, LOG_SAFE if risk.used_up else None)
    scored = objective(model, policy, log, horizon, pending)
    if space.fixed_coordinates:
        scored = with_best_here(scored, model, space)
    search = Selection(model, log, subspace, orientation, scored, rng, barred, repeats, risk)
    return _suggestion(policy.choose(search), search)


def _suggestion(point: Selected, search: Selection) -> Suggestion:
    """Return the point with what the model predicts there, in units of y."""
    model, state, posterior = search.model, search.state, search.objective.posterior
    predicted = predicted_fields(model, search.orientation, point.mu, point.var, point.notes)
    below = state.best_mean - point.mu  # the best mean at a told point
    fields = {
        **predicted,
        "phi": point.score - point.mu if point.policy.additive else None,
        "gamma_hat": state.gamma_hat,
        "explored": not search.log.told or below > math.sqrt(posterior.noise_var),
    }
    events = (*posterior.events, *point.events, *(() if model.chance is None else model.chance.events))
    x = search.subspace.space.decode(point.row) if point.x is None else point.x
    return Suggestion(x, "policy", fields, events)


def predicted_fields(
    model: Model, orientation: Orientation, mu: float, var: float, notes: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """Return the fields of a Trial that state the prediction at its point, and the notes of the policy."""
    free, (middle, sd) = model.in_units_of_y(mu, math.sqrt(var)), model.stated(mu, math.sqrt(var))
    kept = dict(notes or {})
    if (middle, sd) != free:  # an escape judges by the prediction without bounds
        kept |= {UNBOUNDED_MU: orientation.value(free[0]), UNBOUNDED_SD: free[1]}
    return {"mu": orientation.value(middle), "sd": sd, "policy_notes": FrozenPoint(kept) if kept else None}
