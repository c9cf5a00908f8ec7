"""The score of a point for several objectives, with its gradient: the counterpart of `search.objective`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpmi._support.types import Array, Event
from gpmi.gp.approximate.success import SuccessProbability
from gpmi.gp.ensemble import Ensemble
from gpmi.gp.posterior import Posterior
from gpmi.policies.objectives import JointPolicy, JointScore
from gpmi.policies.policy import State
from gpmi.search.objective import SearchResult


@dataclass(frozen=True, eq=False)
class JointObjective:
    """A score of the moments of several outputs, as a function of the point.

    With a `chance` of success p, the score is weighed by it (`Policy.weighed`).
    """

    outputs: tuple[Ensemble, ...]  # of the objectives, in their order
    score: JointScore
    policy: JointPolicy
    state: State
    chance: SuccessProbability | None = None

    @property
    def posterior(self) -> Posterior:
        """The posterior of the first objective. All have about the same number of rows."""
        return self.outputs[0].posterior

    def reach(self, d: int) -> Array:
        """Return the distance along each of d coordinates over which some objective changes much, (d,)."""
        reach: Array = np.min([output.posterior.kernel.reach(d) for output in self.outputs], axis=0)
        return reach

    def moments(self, z: Array) -> tuple[Array, Array]:
        """Return mu (S, k, m) and var (1, k, m) of the k objectives at z (m, d)."""
        size, moments = self.score.size, [output(z) for output in self.outputs]
        mu = np.stack([np.broadcast_to(mu, (size, len(z))) for mu, _ in moments], axis=1)
        return mu, np.stack([var for _, var in moments])[None]

    def __call__(self, z: Array) -> Array:
        """Return the score at z (m, d). O(n^2 m) for each objective."""
        value = self.score(*self.moments(z))
        if self.chance is None:
            return value
        return self.policy.weighed(value, self.chance.log(z), self.state)[0]

    def with_gradient(self, z: Array, size: int = 1) -> tuple[Array, Array]:
        """Return the score at z (m, d) and its gradient by z, (m, d). `size` is that of stencils, and unused."""
        moments, draws = [output.with_pullback(z) for output in self.outputs], self.score.size
        mu = np.stack([np.broadcast_to(mu, (draws, len(z))) for mu, _, _ in moments], axis=1)
        var = np.stack([var for _, var, _ in moments])[None]
        value, by_mu, by_var = self.score.with_derivatives(mu, var)
        gradient = np.zeros_like(z)
        with np.errstate(over="ignore", invalid="ignore"):
            for i, (mean, _, pull) in enumerate(moments):
                by_mean = by_mu[:, i] if len(mean) == draws else by_mu[:, i].sum(axis=0, keepdims=True)
                gradient += pull(by_mean, by_var[:, i].sum(axis=0))
            if self.chance is None:
                return value, gradient
            log_p, slope = self.chance.log_with_gradient(z)
            value, by_value, by_log_p = self.policy.weighed(value, log_p, self.state)
            return value, by_value[:, None] * gradient + by_log_p[:, None] * slope

    def result_at(self, row: Array, number: int | None = None, events: tuple[Event, ...] = ()) -> SearchResult:
        """Return the score at coordinates (d,), and the moments of the first objective."""
        mu, var = self.moments(row[None])
        return SearchResult(row, float(mu[0, 0, 0]), float(var[0, 0, 0]), float(self(row[None])[0]), number, events)
