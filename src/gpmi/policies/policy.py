"""The interface of a policy: it scores points by mu, var and the state of the run, and chooses the next one.

A policy sees no kernel, no space and no posterior. It returns a score and the derivatives of the score by mu and by
var; `gpmi.search` turns these into gradients by the chain rule. Policies always maximise.

Most policies only score, and choose the point with the best score. A policy with more rules overrides `choose`, and
reaches the model and the log through the few operations of a `PointSearch`.

A custom phi::

    class Optimism(gpmi.Policy):
        def phi(self, var, state):
            return 2.0 * np.sqrt(var)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from gpmi._support.types import Array, Event, Point
from gpmi.policies.promises import NONE, Promises

OF_FAILURE = "it is a probability of failure: give a number between 0 and 1"  # the remedy for a wrong delta
SAFE = 0.95  # no caution is needed where a query succeeds with this probability
LOG_SAFE = float(np.log(SAFE))
TINY = 1e-300  # keeps a quotient finite where its denominator, such as a variance, is 0


@dataclass(frozen=True)
class State:
    """The state of a run, which a policy sees besides mu and var. Values are oriented so that larger is better."""

    t: int = 1  # the number of this query among those the policy chose, from 1
    gamma_hat: float = 0.0  # sum of sigma_s^2(x_s) over the policy's earlier queries, pending ones included
    noise_var: float = 0.0
    best_observed: float = 0.0  # the largest y told; the prior mean before the first
    best_mean: float = 0.0  # the largest posterior mean at a told point; the prior mean before the first
    size: int = 1  # |D|: the number of candidates; on a mixed space that of settings of the discrete parameters
    dim: int = 0  # the number of continuous coordinates, 0 on a finite set
    horizon: int | None = None  # T, the number of queries the policy may choose in all, if the user gave a budget
    alike: float = 1.0  # share of a gain that carries over to queries with other fixed coordinates; 1 if none are fixed
    promises: Promises = NONE  # the gains that the policy's earlier queries promised, and those that came
    # Exponent of the extra penalty on gains where the success probability is below exp(log_enough).
    caution: float = 0.0
    log_enough: float = LOG_SAFE


@dataclass(frozen=True)
class Guarantee:
    """What is proven about a policy's regret and under which assumptions; or that nothing is proven, and why."""

    proven: bool
    statement: str
    assumptions: str
    reference: str

    def __str__(self) -> str:
        verdict = "Proven" if self.proven else "Nothing is proven"
        return f"{verdict}: {self.statement} ({self.assumptions}; {self.reference})"


@dataclass(frozen=True, eq=False)
class Selected:
    """A point that a search selected, with the prediction there."""

    policy: Policy  # whose score is the best there
    row: Array  # (d,), its coordinates
    mu: float
    var: float
    score: float
    events: tuple[Event, ...] = ()
    notes: Mapping[str, float] = field(default_factory=dict)  # what the policy stores in the trial for later queries
    x: Point | None = None  # the point itself, where decoding `row` could change its last digit


@dataclass(frozen=True, eq=False)
class Audit:
    """The data by which `gpmi.policies.guard` judges a query, on a finite set with a given prior."""

    mu: Array  # (m,), given the values told, at the candidates that probably succeed
    var: Array  # (m,)
    prior_var: float  # the largest variance of the prior
    notes: Sequence[Mapping[str, float]]  # of the earlier queries with notes: told, then unobserved, then failed
    query_var: Array  # (k,), the variances of f at those told or unobserved, each before its own value
    query_noise: Array  # (k,), the variances of their noise
    rng: np.random.Generator  # a separate stream
    drawn_maximum: Callable[[int], float | None]  # mean of this many draws of max f; None for too many candidates


class PointSearch(Protocol):
    """What a policy may use to choose the next point. `gpmi.optimizer.selection` implements it for each suggestion."""

    @property
    def state(self) -> State:
        """The state of the run."""

    @property
    def batch_state(self) -> State:
        """The t, size and dim with which the first pending point was chosen."""

    @property
    def budget(self) -> int | None:
        """The total number of trials, including those that the policy does not choose."""

    @property
    def pending_phi(self) -> Sequence[float | None]:
        """phi of each pending point that the policy chose; None where its score was not of the form mu + phi.

        With fixed coordinates, only the pending points that have them count.
        """

    def best(self, policy: Policy, *, discount: bool = False) -> Selected:
        """Select the point with the best score. With `discount`, `State.alike` is computed for fixed coordinates."""

    def best_new(self, policy: Policy) -> Selected:
        """Select the point with the best score. Without noise, skip points with a trial while others are left."""

    def best_mean(self) -> Selected | None:
        """Select the point with the best posterior mean; None if it may not be asked, or if a told point is as good."""

    def explore_relevant(self, weight: float) -> Selected:
        """Select the point with the largest variance where the maximum may be, given bounds `weight` sd wide."""

    def explore_apart(self) -> Selected | None:
        """Select the point with the largest variance that is not near a pending one; None on a finite set."""

    def try_option(self, policy: Policy) -> Selected | None:
        """Select the row with the best score of those with an option that no trial has; None if there is none.

        None on a box, with a given prior, and where an earlier study is of use; options with descriptors do not count.
        """

    def escape(self) -> Selected | None:
        """Select a point far from the others, chosen without the model, if the last queries taught nothing."""

    def audit(self) -> Audit | None:
        """Return the data by which a query is judged; None for too many candidates. Raise a ValueError on a box."""

    def is_duplicate(self, point: Selected) -> bool:
        """Whether a trial, pending or not, is at this point: in the same row, or within a thousandth of the box."""

    def is_near_pending(self, point: Selected) -> bool:
        """Whether a pending trial is at this point, as for `is_duplicate`."""


class Policy:
    """x_t = argmax mu_t + phi_t. Subclass it and define `phi`; `slope` is optional.

    Set `grows_with_var = True` if phi never decreases in var: large finite sets are then searched with lazy variances.
    """

    guarantee: ClassVar[Guarantee] = Guarantee(False, "the policy does not say.", "none", "none")
    grows_with_var: ClassVar[bool] = False
    additive: ClassVar[bool] = True  # False: the score is not of the form mu + phi
    joint: ClassVar[bool] = False  # True: the policy maximises a joint draw of f instead of a score
    logarithmic: ClassVar[bool] = False  # True: the score is the logarithm of what is expected

    def choose(self, search: PointSearch) -> Selected:
        """Choose the next point: by default the one with the best score."""
        return search.best(self)

    def phi(self, var: Array, state: State) -> Array:
        """Return the exploration bonus at points with posterior variance var, element by element."""
        raise NotImplementedError(f"{type(self).__name__} must define phi(self, var, state)")

    def slope(self, var: Array, state: State) -> Array:
        """Return d phi / d var by central differences; a policy may override it. The step, 1e-5, is near eps^(1/3)."""
        low, high = var * (1.0 - 1e-5), var * (1.0 + 1e-5) + TINY
        return (self.phi(high, state) - self.phi(low, state)) / (high - low)

    def score(self, mu: Array, var: Array, state: State) -> Array:
        """Return the score to maximise."""
        return mu + self.phi(var, state)

    def with_derivatives(self, mu: Array, var: Array, state: State) -> tuple[Array, Array, Array]:
        """Return the score, d score / d mu and d score / d var."""
        return self.score(mu, var, state), np.ones_like(mu), self.slope(var, state)

    def weighed(self, score: Array, log_p: Array, state: State) -> tuple[Array, Array, Array]:
        """Return the score weighed by the probability of success p, and its derivatives by score and by log p. (m,)

        An expected gain is multiplied by w = p min(1, p / enough)^c, c = state.caution; its logarithm grows by log w.
        Other scores are turned into a gain by subtracting a level: the best posterior mean if the score is mu + phi or
        a draw of f, otherwise 0. A score below the level is pushed further down, to twice its distance from the level
        as w -> 0, so that failures are avoided there as well.
        """
        short = np.minimum(log_p - state.log_enough, 0.0)
        log_w, slope = log_p + state.caution * short, np.where(short < 0.0, 1.0 + state.caution, 1.0)
        if self.logarithmic:
            return score + log_w, np.ones_like(score), slope
        level = state.best_mean if self.additive or self.joint else 0.0
        w, gain = np.exp(log_w), score - level
        factor = np.where(gain > 0.0, w, 2.0 - w)
        return level + factor * gain, factor, np.where(gain > 0.0, w, -w) * slope * gain


class Delegating(Policy):
    """A policy with its own `choose`, whose score, phi and derivatives are those of another policy."""

    @property
    def scorer(self) -> Policy:
        """The policy that scores."""
        raise NotImplementedError

    @property
    def grows_with_var(self) -> bool:  # type: ignore[override]
        return self.scorer.grows_with_var

    @property
    def additive(self) -> bool:  # type: ignore[override]
        return self.scorer.additive

    @property
    def joint(self) -> bool:  # type: ignore[override]
        return self.scorer.joint

    @property
    def logarithmic(self) -> bool:  # type: ignore[override]
        return self.scorer.logarithmic

    def phi(self, var: Array, state: State) -> Array:
        return self.scorer.phi(var, state)

    def slope(self, var: Array, state: State) -> Array:
        return self.scorer.slope(var, state)

    def score(self, mu: Array, var: Array, state: State) -> Array:
        return self.scorer.score(mu, var, state)

    def with_derivatives(self, mu: Array, var: Array, state: State) -> tuple[Array, Array, Array]:
        return self.scorer.with_derivatives(mu, var, state)


def checked_policy(policy: Any) -> Policy:
    """Return the policy, and refuse a class or anything else."""
    if isinstance(policy, type) and issubclass(policy, Policy):
        raise TypeError(f"policy is the class {policy.__name__}; give an instance, {policy.__name__}()")
    if not isinstance(policy, Policy):
        raise TypeError(f"policy is {policy!r}; give a policy such as gpmi.GPMI(), or None")
    return policy
