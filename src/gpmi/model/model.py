"""The model after n values: the prior and the posterior, as one frozen object that is extended value by value.

y is oriented so that larger is better (`gpmi.model.orientation`). "Units of y" are those before the warp.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpmi._support.text import aligned, rounded
from gpmi._support.types import Array, Event, Mask, Observations
from gpmi.gp.approximate.student import normal_score
from gpmi.gp.approximate.success import SuccessProbability
from gpmi.gp.posterior import Posterior
from gpmi.gp.trend import Trend
from gpmi.model.feasibility import Feasibility
from gpmi.model.fitting.data import MERGE_FROM, merges, warped
from gpmi.model.fitting.fit import Prior
from gpmi.model.fitting.heavy import sites_of
from gpmi.model.fitting.schedule import BULK, Priors
from gpmi.model.fitting.warp import Warp
from gpmi.policies import Policy, State
from gpmi.policies.promises import Promises, account
from gpmi.policies.risk import LATELY, Risk, risk_of
from gpmi.search.box import best_mean
from gpmi.search.objective import Objective
from gpmi.search.recommended import recommended
from gpmi.space import Space
from gpmi.trials import Log
from gpmi.trials.outcomes import Outcomes

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
        if given < BULK:
            return self
        later = replace(self, given=given)
        vars(later)["feasibility"] = self.feasibility  # what was learned stays
        return later

    @cached_property
    def feasibility(self) -> Feasibility:
        """What is learned of failures and constraints."""
        return Feasibility(self.space.span, self.space.groups, self.seed)

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

    Where a run repeats itself much, values at equal points are merged (`fitting.data.merges`): the first ones
    together, and the others whenever LOOSE of them have come. That is a function of the values, too, and changes
    nothing but rounding.
    """

    setting: Setting
    prior: Prior
    begin: int  # the number of values that entered the posterior together
    anchor: Posterior  # of warp(y), given those, or the values that were merged last
    posterior: Posterior  # of warp(y), given all values; it extends the anchor
    members: tuple[Posterior, ...] = ()  # with fit="mcmc": `posterior` under each draw of the prior
    outcomes: Outcomes | None = None  # where a trial has failed or constraints were measured
    events: tuple[Event, ...] = ()  # of expectation propagation

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
        if setting.priors.heavy:
            return _robust(setting, prior, n, replace(observed, x=known.x))
        modelled = warped(replace(observed, x=known.x), prior.warp)
        posterior = conditioned(prior.posterior(trend), modelled)
        members = tuple(conditioned(sample.posterior(trend), modelled) for sample in prior.samples)
        return Model(setting, prior, n, posterior, posterior, members)

    def extended(self, observed: Observations) -> Model:
        """The model after these values, the first n of which it has already, under the same prior. O(n^2) a value.

        Where the noise has heavy tails it is O(n^3).
        """
        anchor, posterior, members = self.anchor, self.posterior, self.members
        if self.setting.priors.heavy and len(observed) > self.n:  # a new value changes what the others are worth
            return _robust(self.setting, self.prior, self.begin, observed)
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

    def given(self, outcomes: Outcomes | None) -> Model:
        """The same model with what is known of failures and constraints; `self` if that is nothing new."""
        known = self.outcomes
        if outcomes is None or (known is not None and len(known.x) == len(outcomes.x)):
            return self
        return replace(self, outcomes=outcomes)

    @cached_property
    def chance(self) -> SuccessProbability | None:
        """The probability of success at each point; None where nothing failed and no constraint was measured."""
        setting = self.setting
        return None if self.outcomes is None else setting.feasibility.chance(self.outcomes, setting.given)

    @cached_property
    def proven(self) -> Mask:
        """Which rows of the posterior are at points that succeed with p >= 1/2, and where no constraint was broken."""
        rows = self.posterior.x
        if self.chance is None or self.outcomes is None or len(rows) == 0:
            return np.ones(len(rows), dtype=bool)
        return self.chance.likely(rows) & self.outcomes.feasible_at(rows)

    @cached_property
    def recommended(self) -> Array:
        """The coordinates (d,) of the point of the space with the best posterior mean, observed or not.

        O(n m) on a finite set of m points, a multi-start climb elsewhere. Computed once. Where all values told are
        equal and the mean is nowhere larger than at a told point, it is that one.

        Where trials have failed or constraints were measured it is a point that was told a value and is `proven`: a
        better mean elsewhere may lie where nothing works. If no point is proven, it is the told one with the largest
        probability of success.
        """
        return self._recommended_of(self.setting.space)

    def _recommended_of(self, space: Space) -> Array:
        return recommended(self.posterior, self.members, space, self.setting.seed, self.chance, self.proven)

    def allowed(self, z: Array) -> Mask:
        """Which of the points z (m, d) probably succeed; all where nothing failed and no constraint was measured."""
        return np.ones(len(z), dtype=bool) if self.chance is None else self.chance.likely(z)

    def recommended_in(self, space: Space) -> Array:
        """The same in a part of the space with given coordinates. Computed once for each.

        Where trials have failed or constraints were measured it is the best of the told points of this part that are
        `proven`. If there is none, it is the point with the best mean among those that succeed with a probability of at
        least SAFE, told or not, and if none is found, the point most likely to succeed.
        """
        if not space.pins:
            return self.recommended
        if space.pins not in self._recommended_in:
            self._recommended_in[space.pins] = self._recommended_of(space)
        return self._recommended_in[space.pins]

    def best_in(self, space: Space) -> Array:
        """The point with the best mean of a part of the space with given coordinates: what a policy compares with.

        Where trials have failed or constraints were measured, it is the best of those that probably succeed, told or
        not, or the point most likely to. Computed once for each.
        """
        if space.pins not in self._best_in:
            found = best_mean(self.posterior, self.members, space, self.setting.seed, self.chance)
            self._best_in[space.pins] = found
        return self._best_in[space.pins]

    @cached_property
    def _recommended_in(self) -> dict[tuple[tuple[int, bytes], ...], Array]:
        return {}

    @cached_property
    def _best_in(self) -> dict[tuple[tuple[int, bytes], ...], Array]:
        return {}

    def in_units_of_y(self, mu: float, sd: float) -> tuple[float, float]:
        """The median and half the width of the central 68 % of y, where warp(y) ~ N(mu, sd^2)."""
        if not self.warp.bends:
            return mu, sd
        low, mid, high = self.warp.inverse(np.array([mu - sd, mu, mu + sd])).tolist()
        return mid, 0.5 * (high - low)

    def foreseen(self, before: Model, observed: Observations) -> tuple[float, float, float]:
        """mu and var at the last of the values as predicted by `before`, and the standardised residual. O(n).

        Where the noise has heavy tails the residual is the quantile of the normal law with the same probability.
        """
        if self.setting.priors.heavy:
            last = observed.part(len(observed) - 1, len(observed))
            (mu,), (var,) = before.posterior(last.x)
            scale2 = float((before.prior.noise_var / last.repeats + last.noise_var)[0])
            return float(mu), float(var), normal_score(float(last.y[0] - mu), float(var), scale2)
        mu, var, _, surprise = (float(part[-1]) for part in self.posterior.ahead)
        return mu, var, surprise


def _robust(setting: Setting, prior: Prior, begin: int, observed: Observations) -> Model:
    """The model whose noise is Student's t: its posterior is given sites, not the values. O(n^3) a round."""
    start = prior.posterior(setting.trend)
    if len(observed) == 0:
        return Model(setting, prior, begin, start, start)
    sites = sites_of(prior, observed, setting.trend)
    posterior = start.condition(observed.x, sites.value, sites.noise)
    return Model(setting, prior, begin, posterior, posterior, events=sites.events)


# What a policy is asked


class Extensions:
    """Posteriors of the values told, extended by pending trials; remembered from one query to the next.

    A query that differs from the last by one more pending trial costs one extension, not as many as are pending.
    """

    def __init__(self) -> None:
        self._last: dict[int, tuple[Posterior, list[int], Posterior]] = {}

    def extend(self, member: int, told: Posterior, log: Log) -> Posterior:
        """The posterior `told`, the member-th of its model, given the pending trials.

        A pending point counts as observed with its posterior mean: mu stays as it is, and var falls around the point,
        which pushes the next query away. O(n^2) for each trial.
        """
        steps = log.pending
        start, done, posterior = self._last.get(member, (None, [], told))
        if start is not told or done != steps[: len(done)]:
            done, posterior = [], told
        for number in steps[len(done) :]:
            posterior = posterior.anticipate(log.rows[number])
        self._last[member] = told, steps, posterior
        return posterior


def objective(
    model: Model, policy: Policy, log: Log, horizon: int | None, extensions: Extensions | None = None
) -> Objective:
    """The policy's score, with pending trials taken into account (`Extensions`), and weighed by the chance of success.

    What has failed is in the chance alone: no value of f is made up for it.
    """
    extensions = extensions or Extensions()

    def of(member: int, told: Posterior) -> Objective:
        posterior = extensions.extend(member, told, log)
        return Objective(posterior, policy, _state(model, told, posterior, log, horizon), chance=model.chance)

    whole = of(0, model.posterior)
    members = tuple(of(i, member) for i, member in enumerate(model.members, 1))
    return replace(whole, members=members) if members else whole


def _state(model: Model, told: Posterior, posterior: Posterior, log: Log, horizon: int | None) -> State:
    """The state for a policy: `told` is given the values told, `posterior` also pending trials.

    The best values are those of points that work. Where there is none so far, the worst take their place: then any
    point that works is an improvement.
    """
    chosen = log.chosen([*log.told, *log.pending])
    size, dim = model.setting.space.extent
    observed, means = (told.observed, told.mu_at_observed) if told.n else (np.empty(0), np.empty(0))
    if model.outcomes is not None and told.n:
        feasible, proven = model.outcomes.feasible, model.proven
        observed = observed[feasible] if feasible.any() else observed.min(keepdims=True)
        means = means[proven] if proven.any() else means.min(keepdims=True)
    risk = Risk() if model.outcomes is None else risk_now(log, horizon)
    if model.setting.priors.heavy:  # the largest of these values may be an outlier
        observed = means
    return State(
        t=int(chosen.sum() + log.chosen(log.failed).sum()) + 1,
        gamma_hat=float(posterior.predictive_var[chosen].sum()),
        noise_var=posterior.noise_var,
        best_observed=float(np.max(observed)) if told.n else posterior.mean,
        best_mean=float(np.max(means)) if told.n else posterior.mean,
        size=size,
        dim=dim,
        horizon=horizon,
        promises=promises(told, chosen[: told.count]),
        caution=risk.caution,
        log_enough=risk.log_enough,
    )


def risk_now(log: Log, horizon: int | None) -> Risk:
    """The risk of a failure that the policy's next query may take; `horizon` is the number of its queries in all."""
    failed, ended = log.failed_lately(LATELY)
    return risk_of(failed, ended, None if horizon is None else max(1, horizon - (len(log) - log.unchosen)))


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
