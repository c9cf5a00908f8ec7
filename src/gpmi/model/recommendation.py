"""The best points by the posterior mean of a model: the one to use, and those that policies compare with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpmi._support.types import Array, Mask
from gpmi.gp.approximate.success import SuccessProbability
from gpmi.gp.posterior import Posterior
from gpmi.search.recommendation import best_mean, recommended_row
from gpmi.space import Space
from gpmi.trials.feasibility import Outcomes


@dataclass(frozen=True, eq=False)
class Recommendation:
    """What a model recommends in a space, and in its parts with fixed coordinates. Each is computed once."""

    space: Space
    seed: int
    posterior: Posterior
    members: tuple[Posterior, ...]  # the same under other priors; their means are averaged
    chance: SuccessProbability | None  # of success; None if no trial failed and no constraint was measured
    outcomes: Outcomes | None

    @cached_property
    def proven(self) -> Mask:
        """Which rows of the posterior are at points that succeed with p >= 1/2 and have broken no constraint."""
        rows = self.posterior.x
        if self.chance is None or self.outcomes is None or len(rows) == 0:
            return np.ones(len(rows), dtype=bool)
        return self.chance.likely(rows) & self.outcomes.feasible_at(rows)

    @cached_property
    def row(self) -> Array:
        """The coordinates (d,) of the point of the space with the best posterior mean at the target, observed or not.

        O(n m) on a finite set of m points, a multi-start climb elsewhere. If all values are equal and the mean is
        nowhere larger than at an observed point, it is that point.

        If trials have failed or constraints were measured, it is a `proven` observed point: a better mean elsewhere may
        lie where evaluations fail. If no point is proven, it is the observed point with the largest probability of
        success.
        """
        return self._row_in(self.space.target)

    def _row_in(self, space: Space) -> Array:
        row = recommended_row(self.posterior, self.members, space, self.seed, self.chance, self.proven)
        return space.settable(row).row

    def row_in(self, space: Space) -> Array:
        """Return the recommended point of a part of the space with fixed coordinates.

        If trials have failed or constraints were measured, it is the best `proven` observed point of this part. If
        there is none, it is the point with the best mean among those that succeed with a probability of at least SAFE,
        observed or not. If none is found, it is the point most likely to succeed.
        """
        if not space.fixed_coordinates:
            return self.row
        if space.fixed_coordinates not in self._rows:
            self._rows[space.fixed_coordinates] = self._row_in(space)
        return self._rows[space.fixed_coordinates]

    def best_mean_in(self, space: Space) -> Array:
        """Return the point with the best mean in a part of the space with fixed coordinates, observed or not.

        Policies use it as their incumbent. If trials have failed or constraints were measured, it is the best point
        that probably succeeds, or else the one most likely to succeed.
        """
        if space.fixed_coordinates not in self._best_means:
            row = best_mean(self.posterior, self.members, space, self.seed, self.chance)
            self._best_means[space.fixed_coordinates] = row
        return self._best_means[space.fixed_coordinates]

    @cached_property
    def _rows(self) -> dict[tuple[tuple[int, bytes], ...], Array]:
        return {}

    @cached_property
    def _best_means(self) -> dict[tuple[tuple[int, bytes], ...], Array]:
        return {}
