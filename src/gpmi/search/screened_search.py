"""The search of a space that cannot be enumerated: a screen of points, whose moments are kept, and a climb."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.approximate.success import SuccessProbability
from gpmi.gp.posterior import Posterior
from gpmi.policies import State
from gpmi.policies.batch import LowerBound
from gpmi.search.barriers import Barriers
from gpmi.search.drawn_point import drawn_point
from gpmi.search.joint import JointObjective
from gpmi.search.multistart import best_point
from gpmi.search.neighbours import best_observed_in
from gpmi.search.objective import Objective, SearchResult
from gpmi.search.relevant_region import RelevantRegion, confine
from gpmi.search.screen import screen_of
from gpmi.search.search import Search
from gpmi.space import Parameters


class ScreenedSearch(Search):
    """Find the best point of a space that cannot be enumerated."""

    _at_once = False

    def __init__(self, space: Parameters, seed: int) -> None:
        super().__init__()
        self._space, self._seed = space, seed

    def best(
        self,
        objective: Objective,
        told: Posterior,
        anchor: Posterior,
        taken: Mapping[int, Array],
        rng: np.random.Generator,
        normals: np.random.Generator,
        barred: Barriers | None = None,
        region: RelevantRegion | None = None,
    ) -> SearchResult:
        self._start_from(anchor)
        space = self._space
        visited = np.array(list(taken.values())) if taken else None
        best = best_observed_in(told, space)
        if region is not None:
            objective, best = confine(objective, region.holds), np.concatenate([region.at[None], best])
        if objective.policy.joint:
            return drawn_point(objective, space, self._screen, best, rng, normals, visited, barred)
        # If a nugget was added (C singular), tracked moments differ in the last digits and a replay would diverge.
        plain = objective.posterior.nugget == 0.0
        tracked = self._follow(self._screen, told, objective.posterior) if plain else None
        scores = objective(self._screen) if tracked is None else objective.at_tracked(tracked)
        return best_point(objective, space, self._screen, scores, best, rng, visited, barred)

    def best_joint(
        self,
        objective: JointObjective,
        good: Array,
        taken: Mapping[int, Array],
        rng: np.random.Generator,
        barred: Barriers | None = None,
    ) -> SearchResult:
        visited = np.array(list(taken.values())) if taken else None
        screened = objective(self._screen)
        return best_point(objective, self._space, self._screen, screened, good, rng, visited, barred)

    def _relevant_region(
        self,
        told: Posterior,
        anchor: Posterior,
        weight: float,
        rng: np.random.Generator,
        chance: SuccessProbability | None,
    ) -> RelevantRegion:
        plain = Objective(told, LowerBound(weight), State())
        likely = plain if chance is None else confine(plain, chance.likely)
        result = self.best(likely, told, anchor, {}, rng, rng)
        level = float(plain(result.row[None])[0])  # finite even if no point that probably succeeds was found
        return RelevantRegion(told, 2.0 * weight, level, result.row, chance=chance)

    @cached_property
    def _screen(self) -> Array:
        return screen_of(self._space, self._seed)
