"""Where the next point comes from: the initial design while it lasts, then the policy."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gpmi.model import Model, Setting, objective
from gpmi.orientation import Orientation
from gpmi.policies import Policy
from gpmi.search.screens import design_of
from gpmi.search.search import Search
from gpmi.trials import Log, Origin
from gpmi.types import Event, Point


class Suggestion(NamedTuple):
    """A point to ask, with what the model says of it."""

    x: Point
    origin: Origin
    said: dict[str, Any]  # fields of a Trial
    events: tuple[Event, ...]


def from_design(setting: Setting, log: Log, n_init: int) -> Suggestion | None:
    """The next point of the initial design that is not in the log; None when the design is complete.

    It is complete after n_init trials, or once the policy has chosen; but a prior that is learned needs a value first.
    """
    blind = not setting.priors.given and not log.told
    complete = len(log) >= n_init or log.unchosen < len(log)
    if complete and not blind:
        return None
    space, taken = setting.space, {row.tobytes() for row in log.rows.values()}
    for row in design_of(space, setting.seed, len(taken) + 1):
        x = space.decode(row)
        if space.encode(x).tobytes() not in taken:
            return Suggestion(x, "design", {}, ())
    return None  # a finite set smaller than its design


def by_policy(
    model: Model,
    policy: Policy,
    log: Log,
    search: Search,
    orientation: Orientation,
    *,
    budget: int | None,
    repeats: bool,
) -> Suggestion:
    """The policy's choice, given the model after everything told and the failed and pending trials of the log."""
    setting = model.setting
    horizon = None if budget is None else max(1, budget - log.unchosen)
    scored = objective(model, policy, log, horizon)
    rng = np.random.default_rng([setting.seed, model.n, len(log.failed) + len(log.pending)])
    taken = {number: log.rows[number] for number in log.failed} if repeats else log.rows
    found = search.best(scored, model.posterior, model.anchor, taken, rng, orientation.normals(rng))
    mu, sd = model.in_units_of_y(found.mu, math.sqrt(found.var))
    below = scored.state.best_mean - found.mu  # the best mean at a told point
    said = {
        "mu": orientation.value(mu),
        "sd": sd,
        "phi": found.score - found.mu if policy.additive else None,
        "gamma_hat": scored.state.gamma_hat,
        "explored": not log.told or below > math.sqrt(scored.posterior.noise_var),
    }
    return Suggestion(setting.space.decode(found.row), "policy", said, (*scored.posterior.events, *found.events))
