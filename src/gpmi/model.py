"""What is believed after n values: one frozen value, made from the log and extended by one value at a time.

Values are oriented so that larger is better (`gpmi.orientation`); "units of y" means that y, before the warp.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpmi.gp.posterior import Posterior
from gpmi.policies import Policy, State
from gpmi.policies.promises import Promises, account
from gpmi.prior.fit import Prior
from gpmi.prior.schedule import Priors
from gpmi.prior.warp import Warp
from gpmi.search.box import best_mean
from gpmi.search.objective import Objective
from gpmi.space import Space
from gpmi.trials import Log
from gpmi.types import Array, Event, Mask


@dataclass(frozen=True, eq=False)
class Setting:
    """What a model depends on besides the values: the space, the rule for the prior, the seed."""

    space: Space
    priors: Priors
    seed: int


@dataclass(frozen=True, eq=False)
class Model:
    """The prior in use with n values, and the posterior given them.

    The prior is learned from the first `anchor.n` values (`Priors.point`). Those enter the posterior together, the
    others one by one, so the same values give the same model to the last bit, however they came.
    """

    setting: Setting
    prior: Prior
    anchor: Posterior  # given the values that the prior was learned from
    posterior: Posterior  # given all of them; that of warp(y)
    members: tuple[Posterior, ...] = ()  # the same under draws of the prior, with fit="mcmc"

    @staticmethod
    def after(setting: Setting, rows: Sequence[Array], y: Array, *known: Model | None) -> Model:
        """The model after the values y (n,) at `rows`, n coordinates (d,) each.

        `known` are models after the first of these values. One with the right prior is extended, at O(n^2) a value;
        without one the prior is learned, at O(n^3).
        """
        point = setting.priors.point(len(rows))
        usable = [model for model in known if model is not None and model.anchor.n == point and model.n <= len(rows)]
        longest = max(usable, key=lambda model: model.n, default=None)
        return (longest or Model._learned(setting, rows[:point], y[:point])).extended(rows, y)

    @staticmethod
    def _learned(setting: Setting, rows: Sequence[Array], y: Array) -> Model:
        """The model whose prior is learned from all these values."""
        x = np.array(rows).reshape(len(rows), setting.space.dim)
        prior = setting.priors(len(rows), x, y)
        start, z = prior.posterior(), prior.warp(y)
        posterior = start.condition(x, z) if len(rows) else start
        members = tuple(sample.posterior().condition(x, z) for sample in prior.samples)
        return Model(setting, prior, posterior, posterior, members)

    def extended(self, rows: Sequence[Array], y: Array) -> Model:
        """The model after these values, of which the first n are known, under the same prior. O(n^2) for each other."""
        posterior, members = self.posterior, self.members
        for s in range(self.n, len(rows)):
            z = self.prior.warp(y[s : s + 1])
            posterior = posterior.condition(rows[s], z)
            members = tuple(member.condition(rows[s], z) for member in members)
        return self if posterior is self.posterior else replace(self, posterior=posterior, members=members)

    @property
    def n(self) -> int:
        """The number of values."""
        return self.posterior.n

    @property
    def warp(self) -> Warp:
        """The transformation of y that the posterior is about."""
        return self.prior.warp

    @property
    def mixture(self) -> tuple[Posterior, ...]:
        """The posteriors that share what is believed equally: the members, or the one posterior."""
        return self.members or (self.posterior,)

    @property
    def events(self) -> tuple[Event, ...]:
        """What the library did to make this model that was not asked for."""
        return (*self.prior.events, *self.posterior.events)

    @cached_property
    def recommended(self) -> Array:
        """The coordinates (d,) of the point of the space with the best posterior mean, observed or not.

        O(n m) on a finite set of m points, a multi-start climb elsewhere. Computed once.
        """
        return best_mean(self.posterior, self.members, self.setting.space, self.setting.seed)

    def in_units_of_y(self, mu: float, sd: float) -> tuple[float, float]:
        """The median of N(mu, sd^2) after the inverse of the warp, and half the width of its central 68 %."""
        if not self.warp.bends:
            return mu, sd
        low, mid, high = self.warp.inverse(np.array([mu - sd, mu, mu + sd])).tolist()
        return mid, 0.5 * (high - low)

    def foreseen(self) -> tuple[float, float, float]:
        """mu_s, sigma_s^2 and the standardised residual of the last value, as predicted just before it. O(n)."""
        posterior, s = self.posterior, self.n - 1
        surprise = float(posterior.whitened[s])
        mu = float(posterior.y[s]) - float(posterior.factor.diagonal[s]) * surprise
        return mu, float(posterior.predictive_var[s]), surprise


# What a policy is asked


class Extensions:
    """Posteriors of the values told, extended by failed and pending trials; remembered from one query to the next.

    A query that differs from the last by one more pending trial costs one extension, not as many as are pending.
    """

    def __init__(self) -> None:
        self._last: dict[int, tuple[Posterior, list[tuple[int, float | None]], Posterior]] = {}

    def extend(self, member: int, told: Posterior, log: Log) -> Posterior:
        """The posterior `told`, the member-th of its model, given failed trials at its worst value and pending ones.

        A pending point is taken as observed at its own mean: mu stays, var falls. O(n^2) for each trial.
        """
        worst = float(told.y.min()) if told.n else told.mean
        steps: list[tuple[int, float | None]] = [(number, worst) for number in log.failed]
        steps += [(number, None) for number in log.pending]
        start, done, posterior = self._last.get(member, (None, [], told))
        if start is not told or done != steps[: len(done)]:
            done, posterior = [], told
        for number, value in steps[len(done) :]:
            row = log.rows[number]
            posterior = posterior.anticipate(row) if value is None else posterior.condition(row, np.array([value]))
        self._last[member] = told, steps, posterior
        return posterior


def objective(
    model: Model, policy: Policy, log: Log, horizon: int | None, extensions: Extensions | None = None
) -> Objective:
    """The policy's score given the values told, failed trials at the worst of them, and pending trials."""
    extensions = extensions or Extensions()

    def of(member: int, told: Posterior) -> Objective:
        posterior = extensions.extend(member, told, log)
        return Objective(posterior, policy, _state(model.setting.space, told, posterior, log, horizon))

    members = tuple(of(i, member) for i, member in enumerate(model.members, 1))
    return replace(of(0, model.posterior), members=members)


def _state(space: Space, told: Posterior, posterior: Posterior, log: Log, horizon: int | None) -> State:
    """What a policy may know, for a posterior of the values told that is extended by failed and pending trials."""
    chosen = log.chosen([*log.told, *log.failed, *log.pending])
    size, dim = space.extent
    return State(
        t=int(chosen.sum()) + 1,
        gamma_hat=float(posterior.predictive_var[chosen].sum()),
        noise_var=posterior.noise_var,
        best_observed=float(np.max(told.y)) if told.n else posterior.mean,
        best_mean=float(np.max(told.mu_at_observed)) if told.n else posterior.mean,
        size=size,
        dim=dim,
        horizon=horizon,
        promises=promises(told, chosen[: told.n]),
    )


def promises(posterior: Posterior, counted: Mask) -> Promises:
    """The promises of the observations in the mask `counted` (n,), and what was kept of them. O(n).

    The pivots of the factor in query order and the whitened values hold every one-step-ahead prediction.
    """
    pivot, surprise = posterior.factor.diagonal, posterior.whitened
    return account(posterior.y - pivot * surprise, posterior.predictive_var, pivot, surprise, counted)


def information_of(var: float, noise_var: float) -> float:
    """What a value with this predictive variance tells about f, log(1 + var / noise_var) / 2 nats."""
    return 0.5 * math.log1p(var / noise_var) if noise_var > 0.0 else math.inf
