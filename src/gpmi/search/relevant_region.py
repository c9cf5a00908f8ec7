"""The region where the maximum of f may be, and an objective that confines a search to a region."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpmi._support.types import Array, Mask
from gpmi.gp.approximate.success import SuccessProbability
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import Tracked
from gpmi.search.objective import Objective


@dataclass(frozen=True, eq=False)
class RelevantRegion:
    """The points at which f may be as large as its largest lower bound: mu + width sd >= level."""

    told: Posterior
    width: float
    level: float  # the largest lower bound of f
    at: Array  # (d,), the point that has it, inside the region
    rows: Mask | None = None  # (m,), which candidates are inside, on a finite set
    chance: SuccessProbability | None = None  # of success: lower bounds count only where a trial probably succeeds

    def holds(self, z: Array) -> Mask:
        """Return which points (m, d) are inside. O(n^2 m)."""
        mu, var = self.told(z)
        inside: Mask = mu + self.width * np.sqrt(var) >= self.level
        return inside


@dataclass(frozen=True)
class ConfinedObjective(Objective):
    """A score that is -inf outside of a region, so that a climb ends at its border."""

    inside: Callable[[Array], Mask] | None = None  # which points (m, d) are in the region

    def __call__(self, z: Array) -> Array:
        return self._confine(z, super().__call__(z))

    def at_tracked(self, tracked: Tracked) -> Array:
        return self._confine(tracked.z, super().at_tracked(tracked))

    def with_gradient(self, z: Array, size: int = 1) -> tuple[Array, Array]:
        score, gradient = super().with_gradient(z, size)
        return self._confine(z, score), gradient

    def _confine(self, z: Array, score: Array) -> Array:
        return score if self.inside is None or not len(z) else np.where(self.inside(z), score, -np.inf)


def confine(objective: Objective, inside: Callable[[Array], Mask]) -> ConfinedObjective:
    """Return the objective confined to a region."""
    parts = objective.posterior, objective.policy, objective.state, objective.members, objective.chance
    return ConfinedObjective(*parts, inside)
