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
from gpmi.gp.merging import compacted, condition_merged
from gpmi.gp.posterior import Posterior
from gpmi.gp.trend import Trend
from gpmi.model.feasibility import Feasibility
from gpmi.model.fitting.data import MERGE_FROM, merges, warped
from gpmi.model.fitting.fit import Prior
from gpmi.model.fitting.schedule import BULK, PriorSchedule
from gpmi.model.fitting.student_prior import student_sites
from gpmi.model.fitting.warp import Warp
from gpmi.model.recommendation import Recommendation
from gpmi.policies import Policy, State
from gpmi.policies.promises import Promises, account
from gpmi.policies.risk import LATELY, Risk, risk_of
from gpmi.search.objective import Objective
from gpmi.space import Space
from gpmi.trials import Log
from gpmi.trials.feasibility import Outcomes
from gpmi.trials.value_bounds import OPEN, ValueBounds

# Once values are merged, merge again after max(16, a quarter of the merged rows) new rows. Then merging costs O(m^2) a
# value. Our choice, not tuned.
UNMERGED, UNMERGED_SHARE = 16, 0.25


@dataclass(frozen=True, eq=False)
class ModelSetting:
    """The inputs of a model besides the values: the space, the schedule of priors, the seed, a known mean."""

    space: Space
    priors: PriorSchedule
    seed: int
    trend: Trend | None = None  # a known mean of y, oriented so that larger is better
    preloaded: int = 0  # the number of values before the first suggestion, if there are many: see `PriorSchedule`
    bounds: ValueBounds = OPEN  # of y, oriented; they limit what is stated, and no suggestion

    def with_preloaded(self, count: int) -> ModelSetting:
        """Return the same setting with this number of values before the first suggestion."""
        if count < BULK:
            return self
        later = replace(self, preloaded=count)
        vars(later)["feasibility"] = self.feasibility  # reuse what it has learned
        return later

    @cached_property
    def feasibility(self) -> Feasibility:
        """What failures and constraints have taught."""
        return Feasibility(self.space.span, self.space.groups, self.seed)

    def cleared(self) -> ModelSetting:
        """Return a copy with nothing learned, for other values."""
        return replace(self, priors=self.priors.cleared())

    def detrended(self, observed: Observations) -> Observations:
        """Subtract the known mean from the observations: the prior is learned from the rest. Evaluates the mean O(n)
        times.
        """
        shaped = replace(observed, x=observed.x.reshape(len(observed), self.space.dim))
        if self.trend is None or len(observed) == 0:
            return shaped
        return replace(shaped, y=shaped.y - self.trend(shaped.x))


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """The prior in use with n values, and the posterior given them.

    The prior is learned from the first values (`PriorSchedule.fit_size`). These enter the posterior together, the
    others one by one in the order of `tell`. So the same values in the same order give the same model to the last bit,
    whether they arrived one by one or in a replay.

    In a run with many repeats, values at equal points are merged (`fitting.data.merges`): the first ones together,
    later ones whenever UNMERGED of them have come. This too depends on the values alone, and it changes nothing but
    rounding.
    """

    setting: ModelSetting
    prior: Prior
    begin: int  # the number of values that entered the posterior together
    anchor: Posterior  # of warp(y), given those values, or given all values at the last merge
    posterior: Posterior  # of warp(y), given all values; it extends the anchor
    members: tuple[Posterior, ...] = ()  # with fit="mcmc": `posterior` under each draw of the prior
    outcomes: Outcomes | None = None  # None unless a trial has failed or constraints were measured
    events: tuple[Event, ...] = ()  # of expectation propagation

    @staticmethod
    def after(setting: ModelSetting, observed: Observations, *earlier: Model | None) -> Model:
        """Return the model after these values, oriented so that larger is better.

        `earlier` are models after some of the first of these values. The longest one with the right prior is extended,
        in O(n^2) for each further value. If there is none, the prior is learned, in O(n^3).
        """
        begin, n = setting.priors.begin(observed), len(observed)
        usable = [model for model in earlier if model is not None and model.begin == begin and model.n <= n]
        longest = max(usable, key=lambda model: model.n, default=None)
        return (longest or Model._learned(setting, observed.first(begin))).extended(observed)

    @staticmethod
    def _learned(setting: ModelSetting, observed: Observations) -> Model:
        """Return the model whose prior is learned from all of these values."""
        n, trend, priors = len(observed), setting.trend, setting.priors
        detrended = setting.detrended(observed)
        prior = priors(priors.fit_size(n), detrended, known_mean=trend is not None, preloaded=setting.preloaded)
        if priors.student_noise:
            return _with_student_noise(setting, prior, n, replace(observed, x=detrended.x))
        modelled = warped(replace(observed, x=detrended.x), prior.warp)
        posterior = conditioned(prior.posterior(trend), modelled)
        members = tuple(conditioned(sample.posterior(trend), modelled) for sample in prior.samples)
        return Model(setting, prior, n, posterior, posterior, members)

    def extended(self, observed: Observations) -> Model:
        """Return the model after these values under the same prior; `self` already includes the first n.

        O(n^2) a value, O(n^3) with heavy-tailed noise.
        """
        anchor, posterior, members = self.anchor, self.posterior, self.members
        if self.setting.priors.student_noise and len(observed) > self.n:  # a new value changes the weight of the others
            return _with_student_noise(self.setting, self.prior, self.begin, observed)
        for s in range(self.n, len(observed)):
            if _needs_merging(posterior, observed, s):
                anchor = posterior = compacted(posterior)
                members = tuple(compacted(member) for member in members)
            value = warped(observed.part(s, s + 1), self.prior.warp)
            posterior = posterior.condition(value.x[0], value.y, noise_variances(value, posterior.noise_var))
            members = tuple(
                member.condition(value.x[0], value.y, noise_variances(value, member.noise_var)) for member in members
            )
        return (
            self if posterior is self.posterior else replace(self, anchor=anchor, posterior=posterior, members=members)
        )

    def __repr__(self) -> str:
        learned = self.setting.priors.fit_size(self.n)
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
        """The transformation of y: the posterior is the one of warp(y)."""
        return self.prior.warp

    @property
    def mixture(self) -> tuple[Posterior, ...]:
        """The posteriors whose mixture with equal weights is the model's belief: the members, or the one posterior."""
        return self.members or (self.posterior,)

    def with_outcomes(self, outcomes: Outcomes | None) -> Model:
        """Return the same model with the failures and constraints of these outcomes; `self` if they are not new."""
        current = self.outcomes
        if outcomes is None or (current is not None and current.size == outcomes.size):
            return self
        return replace(self, outcomes=outcomes)

    @cached_property
    def chance(self) -> SuccessProbability | None:
        """The probability of success at each point; None if no trial failed and no constraint was measured."""
        setting = self.setting
        return None if self.outcomes is None else setting.feasibility.chance(self.outcomes, setting.preloaded)

    def allowed(self, z: Array) -> Mask:
        """Return which of the points z (m, d) probably succeed; all if none failed and no constraint was measured."""
        return np.ones(len(z), dtype=bool) if self.chance is None else self.chance.likely(z)

    @cached_property
    def recommendation(self) -> Recommendation:
        """The best points by the posterior mean, each searched for when it is first read."""
        space, seed = self.setting.space, self.setting.seed
        return Recommendation(space, seed, self.posterior, self.members, self.chance, self.outcomes)

    def to_units_of_y(self, z: Array) -> Array:
        """Return y at z = warp(y), for statements, within the bounds of y.

        Beyond the observed values the inverse is continued as a line: a logarithm fits the values that there are, and
        continued beyond them, its inverse would grow exponentially.
        """
        return self.setting.bounds.clip(self._unwarped(z))

    def _unwarped(self, z: Array) -> Array:
        if not self.warp.bends or not self.posterior.n:
            return z
        low, high = float(self.posterior.y.min()), float(self.posterior.y.max())
        inside = np.clip(z, low, high)
        ends = self.warp.inverse(np.array([low, high]))
        slopes = np.exp(-self.warp.log_slope(ends))
        below, above = np.minimum(z - low, 0.0), np.maximum(z - high, 0.0)
        y: Array = self.warp.inverse(inside) + below * slopes[0] + above * slopes[1]
        return y

    def in_units_of_y(self, mu: float, sd: float) -> tuple[float, float]:
        """Return the median and half the width of the central 68 % of y, where warp(y) ~ N(mu, sd^2)."""
        if not self.warp.bends:
            return mu, sd
        low, mid, high = self.warp.inverse(np.array([mu - sd, mu, mu + sd])).tolist()
        return mid, 0.5 * (high - low)

    def stated(self, mu: float, sd: float) -> tuple[float, float]:
        """Return the same as a statement about f: the middle and half the width of the part within the bounds of y."""
        mid, half = self.in_units_of_y(mu, sd)
        ends = mid - half, mid + half
        low, high = self.setting.bounds.clip(np.array(ends)).tolist()
        return (mid, half) if (low, high) == ends else (0.5 * (low + high), 0.5 * (high - low))

    def prediction_of_last(self, before: Model, observed: Observations) -> tuple[float, float, float]:
        """Return mu and var at the last value as predicted by `before`, and the standardised residual. O(n).

        With heavy-tailed noise the residual is the normal quantile of the same probability.
        """
        if self.setting.priors.student_noise:
            last = observed.part(len(observed) - 1, len(observed))
            (mu,), (var,) = before.posterior(last.x)
            scale2 = float((before.prior.noise_var / last.repeats + last.noise_var)[0])
            return float(mu), float(var), normal_score(float(last.y[0] - mu), float(var), scale2)
        mu, var, _, surprise = (float(part[-1]) for part in self.posterior.ahead)
        return mu, var, surprise


def _with_student_noise(setting: ModelSetting, prior: Prior, begin: int, observed: Observations) -> Model:
    """Return the model with Student's t noise, conditioned on EP sites instead of the values. O(n^3) a round."""
    start = prior.posterior(setting.trend)
    if len(observed) == 0:
        return Model(setting, prior, begin, start, start)
    sites = student_sites(prior, observed, setting.trend)
    posterior = start.condition(observed.x, sites.value, sites.noise)
    return Model(setting, prior, begin, posterior, posterior, events=sites.events)


# The policy's score


class PendingPosteriors:
    """Posteriors of the observed values, extended by pending trials; cached from one query to the next.

    A query that differs from the last by one more pending trial costs one extension, not one for each pending trial.
    """

    def __init__(self) -> None:
        self._last: dict[int, tuple[Posterior, list[int], Posterior]] = {}

    def extend(self, member: int, told: Posterior, log: Log) -> Posterior:
        """Extend the posterior `told`, the member-th of its model, by the pending trials of the log.

        A pending point counts as observed with its posterior mean. mu stays, and var falls around the point, which
        pushes the next query away. O(n^2) for each trial.
        """
        steps = log.unobserved
        start, done, posterior = self._last.get(member, (None, [], told))
        if start is not told or done != steps[: len(done)]:
            done, posterior = [], told
        for number in steps[len(done) :]:
            posterior = posterior.anticipate(log.rows[number])
        self._last[member] = told, steps, posterior
        return posterior


def objective(
    model: Model, policy: Policy, log: Log, horizon: int | None, extensions: PendingPosteriors | None = None
) -> Objective:
    """Return the policy's score, with pending trials taken into account and weighted by the probability of success.

    Failures affect the probability of success only: no value of f is invented for them.
    """
    extensions = extensions or PendingPosteriors()

    def of(member: int, told: Posterior) -> Objective:
        posterior = extensions.extend(member, told, log)
        return Objective(posterior, policy, _state(model, told, posterior, log, horizon), chance=model.chance)

    whole = of(0, model.posterior)
    members = tuple(of(i, member) for i, member in enumerate(model.members, 1))
    return replace(whole, members=members) if members else whole


def _state(model: Model, told: Posterior, posterior: Posterior, log: Log, horizon: int | None) -> State:
    """Return the state for a policy. `told` conditions on observed values; `posterior` also on pending trials.

    The best values are those of points that succeed. If there are none yet, the worst values take their place: then any
    point that succeeds is an improvement.
    """
    numbers = [*log.observed_numbers, *log.unobserved]
    chosen = log.chosen(numbers)
    size, dim = model.setting.space.extent
    observed, means = (told.observed, told.mu_at_observed) if told.n else (np.empty(0), np.empty(0))
    if model.outcomes is not None and told.n:
        feasible = np.array([log[number].feasible for number in log.observed_numbers])  # a trial may have several
        proven = model.recommendation.proven
        observed = observed[feasible] if feasible.any() else observed.min(keepdims=True)
        means = means[proven] if proven.any() else means.min(keepdims=True)
    risk = Risk() if model.outcomes is None else risk_now(log, horizon)
    if model.setting.priors.student_noise:  # the largest value may be an outlier
        observed = means
    return State(
        t=int(log.chosen(dict.fromkeys(numbers)).sum() + log.chosen(log.failed).sum()) + 1,
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
    """Return the risk of failure that the policy's next query may take; `horizon` is the number of all its queries."""
    failed, ended = log.failed_lately(LATELY)
    return risk_of(failed, ended, None if horizon is None else max(1, horizon - (len(log) - log.unchosen)))


def promises(posterior: Posterior, counted: Mask) -> Promises:
    """Return how much gain the observations in the mask `counted` (n,) were predicted to bring and did bring. O(n).

    With the pivots L_ss in query order and w = L^-1 (y - m), y_s was predicted as N(y_s - L_ss w_s, L_ss^2).
    """
    return account(*posterior.ahead, counted)


def _needs_merging(posterior: Posterior, observed: Observations, n: int) -> bool:
    """Return whether to merge the rows at equal points before adding observation n."""
    merged = posterior.replicates
    if merged is None:
        return n >= MERGE_FROM and merges(observed.first(n))
    return posterior.n - merged.rows >= max(UNMERGED, UNMERGED_SHARE * merged.rows)


def noise_variances(observed: Observations, common: float) -> Array | None:
    """Return the noise variance of each value, (n,): common / repeats plus its own; None if all have the common one."""
    return None if observed.plain else common / observed.repeats + observed.noise_var


def conditioned(start: Posterior, observed: Observations, factor: float = 1.0) -> Posterior:
    """Return the posterior `start`, which has no observations, given these. Many values at equal points are merged.

    `factor` multiplies the values' own noise variances; the variance of `start` is used as it is.
    """
    if len(observed) == 0:
        return start
    scaled = observed if factor == 1.0 else replace(observed, noise_var=factor * observed.noise_var)
    noise_var = noise_variances(scaled, start.noise_var)
    if merges(observed):
        return condition_merged(start, observed.x, observed.y, noise_var)
    return start.condition(observed.x, observed.y, noise_var)


def information_of(var: float, noise_var: float) -> float:
    """Return the information of a value about f in nats: log(1 + var / noise_var) / 2, var being f's variance before
    it.
    """
    return 0.5 * math.log1p(var / noise_var) if noise_var > 0.0 else math.inf
