"""A policy's score as a function of the point, with its gradient: one chain rule for every kernel and policy."""

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
class Found:
    """The point that was chosen and what the model says of it."""

    row: Array  # (d,)
    mu: float
    var: float
    score: float
    number: int | None = None  # its row on a finite set
    events: tuple[Event, ...] = ()


@dataclass(frozen=True)
class Objective:
    """A policy's score as a function of the point.

    If there are `members`, objectives of the same observations under draws of the prior, it is the mean of their
    scores. If there is a `chance` of success p, the score is weighed by it (`Policy.weighed`).
    """

    posterior: Posterior
    policy: Policy
    state: State
    members: tuple[Objective, ...] = ()
    chance: SuccessProbability | None = None

    def index(self, mu: Array, var: Array) -> Array:
        """The score where the posterior has mean mu and variance var."""
        score = self.policy.score(mu, var, self.state)
        if (missing := np.isnan(score)).any():
            bad = int(missing.argmax())
            raise ValueError(
                f"{self.policy!r} gave the score nan where mu is {mu[bad]:g} and var is {var[bad]:g}; "
                "phi must be a number for every var >= 0, 0 included"
            )
        return score

    def __call__(self, z: Array) -> Array:
        """The score at z (m, d). O(n^2 m) for each member."""
        if self.members:
            return mean([member(z) for member in self.members])
        return self.weighed(self.index(*self.posterior(z)), z)

    def weighed(self, score: Array, z: Array) -> Array:
        """The score (m,) at z (m, d) weighed by the chance of success there."""
        if self.chance is None:
            return score
        return self.policy.weighed(score, self.chance.log(z), self.state)[0]

    def at(self, tracked: Tracked) -> Array:
        """The score at the points whose moments are kept up to date."""
        return self(tracked.z) if self.members else self.weighed(self.index(tracked.mu, tracked.var), tracked.z)

    def with_gradient(self, z: Array, size: int = 1) -> tuple[Array, Array]:
        """The score at z (m, d) and its gradient by z, (m, d).

        With a `size` above 1 the points come in stencils of that size: see `with_pullback_on_stencils`.
        """
        if self.members:
            scores, gradients = zip(*(member.with_gradient(z, size) for member in self.members), strict=True)
            return mean(scores), mean(gradients)
        posterior = self.posterior
        mu, var, pull = posterior.with_pullback(z) if size == 1 else with_pullback_on_stencils(posterior, z, size)
        score, by_mu, by_var = self.policy.with_derivatives(mu, var, self.state)
        with np.errstate(over="ignore", invalid="ignore"):  # log EI has derivatives of 1e299 at points that are known
            if self.chance is None:
                return score, pull(by_mu, by_var)
            log_p, slope = self.chance.log_with_gradient(z)
            value, by_score, by_log_p = self.policy.weighed(score, log_p, self.state)
            return value, by_score[:, None] * pull(by_mu, by_var) + by_log_p[:, None] * slope

    def found(self, row: Array, number: int | None = None, events: tuple[Event, ...] = ()) -> Found:
        """The moments and the score at the point with coordinates `row`; it is not weighed by a chance."""
        mu, var = self.posterior(row[None])
        if self.members:  # the moments of the mixture
            moments = [member.posterior(row[None]) for member in self.members]
            mu = mean([m for m, _ in moments])
            var = mean([v + (m - mu) ** 2 for m, v in moments])
        if self.policy.joint:
            score = float("nan")
        else:
            plain = [member.index(*member.posterior(row[None])) for member in self.members]
            score = float((mean(plain) if self.members else self.index(mu, var))[0])
        return Found(row, float(mu[0]), float(var[0]), score, number, events)

    def under(self, policy: Policy) -> Objective:
        """The same for another policy."""
        members = tuple(member.under(policy) for member in self.members)
        return self if policy is self.policy else replace(self, policy=policy, members=members)

    def any_member(self, rng: np.random.Generator) -> Objective:
        """The objective of a random member: to draw f from a mixture, first draw the prior, then f."""
        return self.members[int(rng.integers(len(self.members)))] if self.members else self


def mean(values: Sequence[Array]) -> Array:
    """The mean of a few arrays of the same shape."""
    return np.asarray(np.mean(values, axis=0))
