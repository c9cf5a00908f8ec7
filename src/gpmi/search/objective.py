"""A policy's score as a function of the point, with its gradient: one chain rule for all kernels and policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpmi._support.types import Array, Event
from gpmi.gp.approximate.success import SuccessProbability
from gpmi.gp.finite_differences import with_pullback_on_stencils
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import Tracked
from gpmi.policies import Policy, State


@dataclass(frozen=True)
class SearchResult:
    """The point that a search chose, and the posterior moments and the score there."""

    row: Array  # (d,)
    mu: float
    var: float
    score: float
    number: int | None = None  # its row number on a finite set
    events: tuple[Event, ...] = ()


@dataclass(frozen=True)
class Objective:
    """A policy's score as a function of the point.

    With `members`, objectives for the same observations under draws of the prior, it is the mean of their scores. With
    a `chance` of success p, the score is weighed by it (`Policy.weighed`).
    """

    posterior: Posterior
    policy: Policy
    state: State
    members: tuple[Objective, ...] = ()
    chance: SuccessProbability | None = None

    def score(self, mu: Array, var: Array) -> Array:
        """Return the score where the posterior has mean mu and variance var."""
        score = self.policy.score(mu, var, self.state)
        if (missing := np.isnan(score)).any():
            bad = int(missing.argmax())
            raise ValueError(
                f"{self.policy!r} gave the score nan where mu is {mu[bad]:g} and var is {var[bad]:g}; "
                "phi must be a number for every var >= 0, 0 included"
            )
        return score

    def __call__(self, z: Array) -> Array:
        """Return the score at z (m, d). O(n^2 m) for each member."""
        if self.members:
            return mean_of([member(z) for member in self.members])
        return self.weighed(self.score(*self.posterior(z)), z)

    def weighed(self, score: Array, z: Array) -> Array:
        """Return the score (m,) at z (m, d), weighed by the chance of success there."""
        if self.chance is None:
            return score
        return self.policy.weighed(score, self.chance.log(z), self.state)[0]

    def at_tracked(self, tracked: Tracked) -> Array:
        """Return the score at points whose moments are tracked."""
        return self(tracked.z) if self.members else self.weighed(self.score(tracked.mu, tracked.var), tracked.z)

    def with_gradient(self, z: Array, size: int = 1) -> tuple[Array, Array]:
        """Return the score at z (m, d) and its gradient by z, (m, d).

        With a `size` above 1 the points come in stencils of that size (`with_pullback_on_stencils`).
        """
        if self.members:
            scores, gradients = zip(*(member.with_gradient(z, size) for member in self.members), strict=True)
            return mean_of(scores), mean_of(gradients)
        posterior = self.posterior
        mu, var, pull = posterior.with_pullback(z) if size == 1 else with_pullback_on_stencils(posterior, z, size)
        score, by_mu, by_var = self.policy.with_derivatives(mu, var, self.state)
        with np.errstate(over="ignore", invalid="ignore"):  # log EI has derivatives of 1e299 where f is certain
            if self.chance is None:
                return score, pull(by_mu, by_var)
            log_p, slope = self.chance.log_with_gradient(z)
            value, by_score, by_log_p = self.policy.weighed(score, log_p, self.state)
            return value, by_score[:, None] * pull(by_mu, by_var) + by_log_p[:, None] * slope

    def result_at(self, row: Array, number: int | None = None, events: tuple[Event, ...] = ()) -> SearchResult:
        """Return the moments and the score at coordinates (d,). The score is not weighed by a chance."""
        mu, var = self.posterior(row[None])
        if self.members:  # the moments of the mixture
            moments = [member.posterior(row[None]) for member in self.members]
            mu = mean_of([m for m, _ in moments])
            var = mean_of([v + (m - mu) ** 2 for m, v in moments])
        if self.policy.joint:
            score = float("nan")
        else:
            plain = [member.score(*member.posterior(row[None])) for member in self.members]
            score = float((mean_of(plain) if self.members else self.score(mu, var))[0])
        return SearchResult(row, float(mu[0]), float(var[0]), score, number, events)

    def reach(self, d: int) -> Array:
        """Return the distance along each of d coordinates over which f changes much, (d,)."""
        return self.posterior.kernel.reach(d)

    def with_policy(self, policy: Policy) -> Objective:
        """Return the objective of another policy."""
        members = tuple(member.with_policy(policy) for member in self.members)
        return self if policy is self.policy else replace(self, policy=policy, members=members)

    def random_member(self, rng: np.random.Generator) -> Objective:
        """Return the objective of a random member: to draw f from a mixture, first draw the prior, then f."""
        return self.members[int(rng.integers(len(self.members)))] if self.members else self


def mean_of(values: Sequence[Array]) -> Array:
    """Return the mean of a few arrays of the same shape."""
    return np.asarray(np.mean(values, axis=0))
