"""The guard of aim="earn": a bound on the expected regret for every T, with and without a horizon.

The guarded policy chooses as long as an account allows it; otherwise a random upper confidence bound does. Every query
is charged to the account. With t queries, this one included, the account allows the policy's point if

    sum of charges <= kappa sqrt(H_t C_1 I_t),

where I_t is the information of the t points. A query of the policy is charged an upper bound of its expected regret,
E_t[max f] - mu_t(x_t), and adds beta = 2 + 2 log(|D| / 2) to H_t. A query of the guard is charged sqrt(zeta_t)
sd_t(x_t) and adds zeta_t. Then E[R_T] <= max(1, kappa) sqrt(C_1 beta T gamma_T) + 0.02 sqrt(v): docs/proofs.md has the
proof. A kappa below 1 would make the guard act more often and prove no more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np

from gpmi._support.types import Array, Event
from gpmi.policies.normal import pdf
from gpmi.policies.policy import (
    TINY,
    Audit,
    Delegating,
    Guarantee,
    PointSearch,
    Policy,
    Selected,
    State,
    checked_policy,
)
from gpmi.policies.reinvest import Reinvest

# With 1 the bound would be that of the guard's own policy. But then it acts, and nearly triples the regret, on
# Mackey-Glass, whose values are far below what the model hopes for; with 2 it acts nowhere: docs/benchmarks/guard.md.
KAPPA = 2.0
DRAWS = 512  # of max f, where the bound without draws does not decide; the proof has their error. The ledger's number
_SURE = 8.0  # sd: a normal variable exceeds its mean by more with a probability below 1e-15, the rounding
# The expected number of values above the level may differ from 1 by this much; the bound then is 0.001 sd too large at
# most, for m points that are alike. Most searches take four or five steps.
_COUNT_ERROR, _STEPS = 0.05, 12


class Account(NamedTuple):
    """The account of the queries so far."""

    charged: float = 0.0  # the sum of the charges
    weight: float = 0.0  # H: beta for each query of the policy, zeta for each one of the guard
    learned: float = 0.0  # C_1 I
    queries: int = 0

    @staticmethod
    def of(audit: Audit, size: int) -> Account:
        """Return the account that the notes of the earlier queries add up to, on |D| = `size` points. O(n)."""
        charges = [notes["charge"] for notes in audit.notes]
        weights = [notes.get("zeta") or beta(size) for notes in audit.notes]
        total = float(learned(audit.query_var, audit.query_noise, audit.prior_var).sum())
        return Account(sum(charges), sum(weights), total, len(charges))

    def allows(self, charge: float, weight: float, learned: float) -> bool:
        """Whether one more query may be charged this much, if it adds `weight` to H and `learned` to C_1 I."""
        budget = KAPPA * math.sqrt((self.weight + weight) * (self.learned + learned))
        return self.charged + charge <= budget


@dataclass(frozen=True)
class Guarded(Delegating):
    """The point of `policy` while the account of its expected regret allows it, otherwise that of a random GP-UCB.

    aim="earn" chooses it where its bound is proven: on a finite set with kernel and noise_var > 0 given, and with
    repeats. On other problems an Optimizer refuses it. `Trial.policy_notes` stores the notes of `policy`, the charge of
    a query ("charge") and, where the guard chose, its weight ("zeta"). docs/benchmarks/guard.md says how often that
    happens.
    """

    policy: Policy = field(default_factory=Reinvest)

    guarantee: ClassVar[Guarantee] = Guarantee(
        True,
        "E[R_T] <= 2 sqrt(C_1 beta T gamma_T) + 0.02 sqrt(v) for every T, beta = 2 + 2 log(|D| / 2).",
        "finite set, kernel and noise_var > 0 given, f drawn from the prior, normal noise, one query at a time",
        "this project, docs/proofs.md",
    )

    def __post_init__(self) -> None:
        checked_policy(self.policy)

    @property
    def scorer(self) -> Policy:
        return self.policy

    def choose(self, search: PointSearch) -> Selected:
        point, audit, size = self.policy.choose(search), search.audit(), search.state.size
        if audit is None:
            event = Event("no guard", f"{size} candidates are too many for the guard of the bound")
            return replace(point, events=(*point.events, event))
        account = Account.of(audit, size)
        gain = float(learned(np.array([point.var]), search.state.noise_var, audit.prior_var)[0])
        charge = max(mean_of_maximum(audit.mu, audit.var) - point.mu, 0.0)
        if not account.allows(charge, beta(size), gain):
            charge = min(charge, _charge_by_draws(point, audit, account))
        if account.allows(charge, beta(size), gain):
            return replace(point, notes={**point.notes, "charge": charge})
        return self._override(point, search, draw_zeta(size, audit.rng))

    def _override(self, refused: Selected, search: PointSearch, zeta: float) -> Selected:
        """Choose the point of the random GP-UCB. The notes of the policy are kept: its later queries may use them."""
        point = search.best(RandomUCB(zeta))
        name = type(self.policy).__name__
        event = Event("guard", f"{name} had used up what its bound allows; the guard chose a query")
        notes = {**refused.notes, "charge": point.score - point.mu, "zeta": zeta}
        return replace(point, events=(*refused.events, *point.events, event), notes=notes)


def _charge_by_draws(point: Selected, audit: Audit, account: Account) -> float:
    """Return an upper bound of the expected regret at the point, by draws of max f; inf if it cannot be drawn."""
    drawn = audit.drawn_maximum(DRAWS)
    if drawn is None:
        return math.inf
    error = error_of_draws(math.sqrt(float(audit.var.max())), account.queries + 1)
    return max(drawn + error - point.mu, 0.0)


def beta(size: int) -> float:
    """Return 2 + 2 log(|D| / 2), the mean of zeta, for |D| = `size` >= 2 points."""
    return 2.0 + 2.0 * math.log(size / 2.0)


def draw_zeta(size: int, rng: np.random.Generator) -> float:
    """Draw zeta with P(zeta > u) = min(1, |D| / 2 exp(-u / 2)), for |D| = `size` >= 2 (Takeno et al. 2023)."""
    return 2.0 * math.log(size / 2.0) + float(rng.exponential(2.0))


def learned(var: Array, noise_var: Array | float, prior_var: float) -> Array:
    """Return C_1 times the information of points with the variances var (n,), each before its own value: at least var.

    C_1 = 2 v / log(1 + v / noise_var), where v = `prior_var` bounds every variance of the prior. Where the noise
    differs from value to value, so does C_1.
    """
    result: Array = prior_var * np.log1p(var / noise_var) / np.log1p(prior_var / noise_var)
    return result


def mean_of_maximum(mu: Array, var: Array) -> float:
    """Return an upper bound of E[max f], where f(x_i) ~ N(mu_i, var_i) with any correlations. O(m).

    For every level c, max f <= c + sum_i (f(x_i) - c)^+, whose mean has a closed form. The best c is where the
    probabilities of f(x_i) > c sum to 1. It need not be met exactly, because any c gives a bound.
    """
    from scipy.special import ndtr

    sd = np.sqrt(np.maximum(var, TINY))
    low = float(np.max(mu - _SURE * sd))
    above = mu + _SURE * sd >= low  # the others add less than the rounding at any c >= low
    mu, sd = mu[above], sd[above]
    if len(mu) == 1:
        return float(mu[0])
    level = _level(mu, sd, low, float(np.max(mu + _SURE * sd)))
    z = (mu - level) / sd
    return level + float(np.sum(sd * (pdf(z) + z * ndtr(z))))


def _level(mu: Array, sd: Array, low: float, high: float) -> float:
    """Return a level between low and high that about one of the f(x_i) ~ N(mu_i, sd_i^2) is expected to exceed.

    It takes secants of the normal quantile of the mean probability, which is linear in the level if all x_i are alike.
    Where a secant leads out of the remaining interval, it halves the interval.
    """
    from scipy.special import ndtr, ndtri

    target, level, slope = float(ndtri(1.0 / len(mu))), float(mu.max()), -1.0 / float(sd.max())
    before: tuple[float, float] | None = None
    for _ in range(_STEPS):
        count = float(ndtr((mu - level) / sd).sum())
        if abs(count - 1.0) < _COUNT_ERROR:
            break
        low, high = (level, high) if count > 1.0 else (low, level)
        quantile = float(ndtri(count / len(mu)))
        if before is not None and before[1] != quantile:
            slope = (quantile - before[1]) / (level - before[0])
        before = level, quantile
        level += (target - quantile) / slope if slope < 0.0 else np.inf
        if not low < level < high:  # also where it is not a number
            level = 0.5 * (low + high)
    return level


def error_of_draws(sd: float, t: int) -> float:
    """Return the margin to add to the mean of DRAWS draws of max f for an upper bound, up to a small mean error.

    The mean of N draws is below its expectation by more than e with a probability of at most exp(-N e^2 / (2 sd^2)),
    where sd is the largest standard deviation of f(x) (Borell, Tsirelson, Ibragimov, Sudakov). The result is the e for
    which this probability is 1 / (t + 1)^2.
    """
    return sd * math.sqrt(4.0 * math.log(t + 1.0) / DRAWS)


@dataclass(frozen=True)
class RandomUCB(Policy):
    """phi = sqrt(zeta var) with a zeta drawn anew for every query: IRGP-UCB, the policy of the guard's own queries."""

    zeta: float

    guarantee: ClassVar[Guarantee] = Guarantee(
        True,
        "E[R_T] <= sqrt(C_1 beta T gamma_T), beta = 2 + 2 log(|D| / 2), if zeta is drawn anew for every query.",
        "f drawn from the GP prior, kernel and noise_var > 0 known, finite set",
        "Takeno, Inatsu, Karasuyama 2023",
    )
    grows_with_var: ClassVar[bool] = True

    def phi(self, var: Array, state: State) -> Array:
        return np.sqrt(self.zeta * var)

    def slope(self, var: Array, state: State) -> Array:
        return np.sqrt(self.zeta / np.maximum(var, TINY)) / 2.0
