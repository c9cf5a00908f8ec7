"""The model after n values: the prior and the posterior, as one frozen object that is extended value by value.

y is oriented so that larger is better (`gpmi.orientation`). "Units of y" are those before the warp.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpmi.gp.posterior import Posterior
from gpmi.gp.trend import Trend
from gpmi.policies import Policy, State
from gpmi.policies.promises import Promises, account
from gpmi.prior.data import MERGE_FROM, merges, warped
from gpmi.prior.fit import Prior
from gpmi.prior.schedule import BULK, Priors
from gpmi.prior.warp import Warp
from gpmi.search.box import best_mean
from gpmi.search.objective import Objective
from gpmi.space import Space
from gpmi.text import aligned, rounded
from gpmi.trials import Log
from gpmi.types import Array, Mask, Observations

# Where values are merged, the rows that have come since are merged as well when there are this many of them, or a
# quarter of the others if that is more: then merging costs O(m^2) a value. Our choice, not tuned.
LOOSE, LOOSE_SHARE = 16, 0.25


@dataclass(frozen=True, eq=False)
class Setting:
    """What a model depends on besides the values: the space, the schedule of priors, the seed, what is known."""

    space: Space
    priors: Priors
    seed: int
    trend: Trend | None = None  # a known mean of y, oriented so that larger is better
    given: int = 0  # how many values were told before the first point was asked, if they are many: see `Priors`

    def after(self, given: int) -> Setting:
        """The same, with this number of values told before the first point was asked."""
        return self if given < BULK else replace(self, given=given)

    def anew(self) -> Setting:
        """The same, with nothing learned: for other values."""
        return replace(self, priors=self.priors.anew())

    def off_trend(self, observed: Observations) -> Observations:
        """The observations minus the known mean: what the prior is learned from. O(n) evaluations of the mean."""
        known = replace(observed, x=observed.x.reshape(len(observed), self.space.dim))
        if self.trend is None or len(observed) == 0:
            return known
        return replace(known, y=known.y - self.trend(known.x))


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """The prior in use with n values, and the posterior given them.

    The prior is learned from the first values (`Priors.point`). These enter the posterior together, the others one by
    one in the order of `tell`. So the same values in the same order give the same model to the last bit, whether they
    were told one by one or replayed.

    Where a run repeats itself much, values at equal points are merged (`gpmi.prior.data.merges`): the first ones
    together, and the others whenever LOOSE of them have come. That is a function of the values, too, and changes
    nothing but rounding.
    """

    setting: Setting
    prior: Prior
    begin: int  # the number of values that entered the posterior together
    anchor: Posterior  # of warp(y), given those, or the values that were merged last
    posterior: Posterior  # of warp(y), given all values; it extends the anchor
    members: tuple[Posterior, ...] = ()  # with fit="mcmc": `posterior` under each draw of the prior

    @staticmethod
    def after(setting: Setting, observed: Observations, *known: Model | None) -> Model:
        """The model after these values, oriented so that larger is better.

        `known` are models after some of the first of these values. The longest that has the right prior is extended,
        in O(n^2) for each further value. If there is none the prior is learned, in O(n^3).
        """
        begin, n = setting.priors.begin(observed), len(observed)
        usable = [model for model in known if model is not None and model.begin == begin and model.n <= n]
        longest = max(usable, key=lambda model: model.n, default=None)
        return (longest or Model._learned(setting, observed.first(begin))).extended(observed)

    @staticmethod
    def _learned(setting: Setting, observed: Observations) -> Model:
        """The model whose prior is learned from all of these values."""
        n, trend = len(observed), setting.trend
        known = setting.off_trend(observed)
        prior = setting.priors(setting.priors.point(n), known, known_mean=trend is not None, given=setting.given)
        modelled = warped(replace(observed, x=known.x), prior.warp)
        posterior = conditioned(prior.posterior(trend), modelled)
        members = tuple(conditioned(sample.posterior(trend), modelled) for sample in prior.samples)
        return Model(setting, prior, n, posterior, posterior, members)

    def extended(self, observed: Observations) -> Model:
        """The model after these values, the first n of which it has already, under the same prior. O(n^2) a value."""
        anchor, posterior, members = self.anchor, self.posterior, self.members
        for s in range(self.n, len(observed)):
            if _is_crowded(posterior, observed, s):
                anchor = posterior = posterior.compacted()
                members = tuple(member.compacted() for member in members)
            one = warped(observed.part(s, s + 1), self.prior.warp)
            posterior = posterior.condition(one.x[0], one.y, noise_of(one, posterior.noise_var))
            members = tuple(member.condition(one.x[0], one.y, noise_of(one, member.noise_var)) for member in members)
        return (
            self if posterior is self.posterior else replace(self, anchor=anchor, posterior=posterior, members=members)
        )

    def __repr__(self) -> str:
        learned = self.setting.priors.point(self.n)
        lines = [
            ("values", f"{self.n}, the prior learned from {learned}" if learned else f"{self.n}"),
            ("kernel", repr(self.prior.kernel)),
            ("noise_var", rounded(self.prior.noise_var)),
            ("mean", rounded(self.prior.mean)),
            ("of", str(self.warp)),
        ]
        return aligned([*lines, ("draws", f"{len(self.members)} of the prior")] if self.members else lines)

    @property
    def n(self) -> int:
        """The number of values."""
        return self.posterior.count

    @property
    def warp(self) -> Warp:
        """The transformation of y that the posterior is about."""
        return self.prior.warp

    @property
    def mixture(self) -> tuple[Posterior, ...]:
        """The posteriors with equal weights whose mixture is the model's belief: the members, or the one posterior."""
        return self.members or (self.posterior,)

    @cached_property
    def recommended(self) -> Array:
        """The coordinates (d,) of the point of the space with the best posterior mean, observed or not.

        O(n m) on a finite set of m points, a multi-start climb elsewhere. Computed once.
        """
        return best_mean(self.posterior, self.members, self.setting.space, self.setting.seed)

    def recommended_in(self, space: Space) -> Array:
        """The same for a part of the space with given coordinates. Computed once for each."""
        if space is self.setting.space:
            return self.recommended
        if space not in self._recommended_in:
            self._recommended_in[space] = best_mean(self.posterior, self.members, space, self.setting.seed)
        return self._recommended_in[space]

    @cached_property
    def _recommended_in(self) -> dict[Space, Array]:
        return {}

    def in_units_of_y(self, mu: float, sd: float) -> tuple[float, float]:
        """The median and half the width of the central 68 % of y, where warp(y) ~ N(mu, sd^2)."""
        if not self.warp.bends:
            return mu, sd
        low, mid, high = self.warp.inverse(np.array([mu - sd, mu, mu + sd])).tolist()
        return mid, 0.5 * (high - low)

    def foreseen(self) -> tuple[float, float, float]:
        """mu and var at the last point as predicted just before its value, and the standardised residual. O(n)."""
        mu, var, _, surprise = (float(part[-1]) for part in self.posterior.ahead)
        return mu, var, surprise


# What a policy is asked


class Extensions:
    """Posteriors of the values told, extended by failed and pending trials; remembered from one query to the next.

    A query that differs from the last by one more pending trial costs one extension, not as many as are pending.
    """

    def __init__(self) -> None:
        self._last: dict[int, tuple[Posterior, list[tuple[int, float | None]], Posterior]] = {}

    def extend(self, member: int, told: Posterior, log: Log) -> Posterior:
        """The posterior `told`, the member-th of its model, given failed trials at its worst value and pending ones.

        A pending point counts as observed with its posterior mean: mu stays as it is, and var falls around the point,
        which pushes the next query away. O(n^2) for each trial.
        """
        worst = float(told.observed.min()) if told.n else told.mean
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
    """The policy's score, with failed and pending trials taken into account (`Extensions`)."""
    extensions = extensions or Extensions()

    def of(member: int, told: Posterior) -> Objective:
        posterior = extensions.extend(member, told, log)
        return Objective(posterior, policy, _state(model.setting.space, told, posterior, log, horizon))

    members = tuple(of(i, member) for i, member in enumerate(model.members, 1))
    return replace(of(0, model.posterior), members=members)


def _state(space: Space, told: Posterior, posterior: Posterior, log: Log, horizon: int | None) -> State:
    """The state for a policy: `told` is given the values told, `posterior` also failed and pending trials."""
    chosen = log.chosen([*log.told, *log.failed, *log.pending])
    size, dim = space.extent
    return State(
        t=int(chosen.sum()) + 1,
        gamma_hat=float(posterior.predictive_var[chosen].sum()),
        noise_var=posterior.noise_var,
        best_observed=float(np.max(told.observed)) if told.n else posterior.mean,
        best_mean=float(np.max(told.mu_at_observed)) if told.n else posterior.mean,
        size=size,
        dim=dim,
        horizon=horizon,
        promises=promises(told, chosen[: told.count]),
    )


def promises(posterior: Posterior, counted: Mask) -> Promises:
    """The account of promises of the observations in the mask `counted` (n,), read off the posterior. O(n).

    With the pivots L_ss in query order and w = L^-1 (y - m), y_s was predicted as N(y_s - L_ss w_s, L_ss^2).
    """
    return account(*posterior.ahead, counted)


def _is_crowded(posterior: Posterior, observed: Observations, n: int) -> bool:
    """Whether the rows at equal points are to be merged before the next of the observations than the first n."""
    merged = posterior.replicates
    if merged is None:
        return n >= MERGE_FROM and merges(observed.first(n))
    return posterior.n - merged.rows >= max(LOOSE, LOOSE_SHARE * merged.rows)


def noise_of(observed: Observations, common: float) -> Array | None:
    """The variance of the noise of each value, (n,): common / repeats plus its own; None if all have the common one."""
    return None if observed.plain else common / observed.repeats + observed.noise_var


def conditioned(start: Posterior, observed: Observations, factor: float = 1.0) -> Posterior:
    """The posterior `start`, without observations, given these. Values at equal points are merged if there are many.

    `factor` multiplies the variances that the values have of their own; that of `start` is taken as it is.
    """
    if len(observed) == 0:
        return start
    scaled = observed if factor == 1.0 else replace(observed, noise_var=factor * observed.noise_var)
    condition = start.condition_merged if merges(observed) else start.condition
    return condition(observed.x, observed.y, noise_of(scaled, start.noise_var))


def information_of(var: float, noise_var: float) -> float:
    """What a value tells about f where f had the variance var before it: log(1 + var / noise_var) / 2 nats."""
    return 0.5 * math.log1p(var / noise_var) if noise_var > 0.0 else math.inf
