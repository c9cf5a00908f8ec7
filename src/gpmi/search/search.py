"""The search of a run: caches from query to query that make the next query cheaper.

On a finite set every row is scored (`finite_search`), elsewhere a screen of points from which the best ones climb
(`screened_search`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.approximate.success import SuccessProbability
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import Tracked
from gpmi.search.barriers import Barriers
from gpmi.search.joint import JointObjective
from gpmi.search.objective import Objective, SearchResult
from gpmi.search.relevant_region import RelevantRegion


class Search(ABC):
    """Find the argmax of a policy's score over a space, for the posteriors of a run, one after the other.

    Its caches change the cost, never the result. They hold the moments at the candidates or at the screen, which one
    more observation extends; upper bounds of variances; and the rows that may not be asked.
    """

    _at_once: ClassVar[bool]  # whether many observations may be added together: then the last digits differ

    def __init__(self) -> None:
        self._anchor: Posterior | None = None  # from which the moments and bounds below start
        self._tracked: Tracked | None = None  # of the values told
        self._extended: Tracked | None = None  # of the objective's posterior
        self._relevant: RelevantRegion | None = None  # the region that was needed last

    @abstractmethod
    def best(
        self,
        objective: Objective,
        told: Posterior,  # given the values told; the objective's posterior adds the pending points
        anchor: Posterior,  # given the values that the prior was learned from; `told` extends it
        taken: Mapping[int, Array],  # the trials whose points may not be asked again: number -> coordinates
        rng: np.random.Generator,
        normals: np.random.Generator,  # for draws of f
        barred: Barriers | None = None,  # where nothing may be asked; on finite sets only `barred.unsafe` is used
        region: RelevantRegion | None = None,  # to which the search is confined, unless nothing is left in it
    ) -> SearchResult:
        """Return the best point under the objective. Exact on a finite set, where a tie goes to the lowest row.

        O(n m) for m candidates, or for m points of the screen; O(n^2 m) after a change of the prior.
        """

    @abstractmethod
    def best_joint(
        self,
        objective: JointObjective,
        good: Array,  # (k, d): good points to look around
        taken: Mapping[int, Array],
        rng: np.random.Generator,
        barred: Barriers | None = None,
    ) -> SearchResult:
        """Return the best point under a score of several objectives. Exact on a finite set of m rows: O(n^2 m)."""

    def relevant(
        self,
        told: Posterior,
        anchor: Posterior,
        weight: float,
        rng: np.random.Generator,
        chance: SuccessProbability | None,
    ) -> RelevantRegion:
        """Return the region {mu + 2 w sd >= max(mu - w sd)} with w = `weight`, given the values told.

        Same cost as `best`. The largest lower bound is taken over the points that probably succeed, if there are any.
        On a box it is the largest one found.
        """
        cached = self._relevant
        if cached is not None and cached.told is told and cached.width == 2.0 * weight and cached.chance is chance:
            return cached
        self._relevant = self._relevant_region(told, anchor, weight, rng, chance)
        return self._relevant

    @abstractmethod
    def _relevant_region(
        self,
        told: Posterior,
        anchor: Posterior,
        weight: float,
        rng: np.random.Generator,
        chance: SuccessProbability | None,
    ) -> RelevantRegion:
        """Compute what `relevant` returns."""

    def _start_from(self, anchor: Posterior) -> None:
        """Clear the caches if they belong to another prior."""
        if anchor is not self._anchor:
            self._anchor, self._tracked, self._extended = anchor, None, None

    def _follow(self, z: Array, told: Posterior, posterior: Posterior) -> Tracked:
        """Return the moments of `posterior` at z, computed from the cached moments given the values told."""
        assert self._anchor is not None
        base = self._tracked
        if base is None or base.z is not z or not base.extends_to(told):
            base = Tracked.start(self._anchor, z)
        self._tracked = base.follow(told, at_once=self._at_once)
        if posterior is told:
            self._extended = self._tracked
            return self._tracked
        extended = self._extended  # by the pending trials of the last query
        if extended is None or extended.z is not z or not extended.extends_to(posterior):
            extended = self._tracked
        self._extended = extended.follow(posterior, at_once=self._at_once)
        return self._extended
