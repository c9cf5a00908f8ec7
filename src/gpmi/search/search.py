"""The search of a run: caches from query to query that make the next query cheaper."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from gpmi._support.types import Array, Mask, Numbers
from gpmi.gp.approximate.success import SuccessProbability
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import Tracked, chunks, first_best, moments_in_chunks
from gpmi.policies import State
from gpmi.policies.batch import LowerBound
from gpmi.search.barriers import Barriers
from gpmi.search.finite import best_row, drawn_row
from gpmi.search.joint import JointObjective
from gpmi.search.multistart import best_point, drawn_point
from gpmi.search.objective import Objective, SearchResult
from gpmi.search.relevant_region import RelevantRegion, confine
from gpmi.search.screen import best_observed_in, screen_of
from gpmi.space import Parameters, Space, SpaceExhausted

KERNEL_COST = 20  # of one kernel value, in products: a square root, an exponential and a few sums; measured roughly
TRACKED_AT_ONCE = 256  # up to this n start tracking immediately (n^2 per row is cheap)


class Search:
    """Find the argmax of a policy's score over a space, for the posteriors of a run, one after the other.

    Its caches change the cost, never the result. They hold the moments at the candidates or at the screen, which one
    more observation extends; upper bounds of variances; and the rows that may not be asked.
    """

    def __init__(self, space: Space, seed: int, *, repeats: bool) -> None:
        self._space, self._seed, self._repeats = space, seed, repeats
        self._anchor: Posterior | None = None  # from which the moments and bounds below start
        self._tracked: Tracked | None = None  # of the values told
        self._extended: Tracked | None = None  # of the objective's posterior
        self._bound: Array | None = None
        self._lazy_searches = 0  # since the prior changed, while tracking was possible
        self._nugget = 0.0  # of the posterior that the bounds belong to
        self._numbers: dict[int, Numbers] = {}  # trial number -> candidate rows at its point
        self._relevant: RelevantRegion | None = None  # the region that was needed last

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
        self._start_from(anchor)
        if self._space.rows is None:
            return self._best_point(objective, told, taken, rng, normals, barred, region)
        return self._best_row(objective, told, taken, rng, normals, barred, region)

    def best_joint(
        self,
        objective: JointObjective,
        good: Array,  # (k, d): good points to look around
        taken: Mapping[int, Array],
        rng: np.random.Generator,
        barred: Barriers | None = None,
    ) -> SearchResult:
        """Return the best point under a score of several objectives. Exact on a finite set of m rows: O(n^2 m)."""
        space, rows = self._space, self._space.rows
        if rows is None:
            assert isinstance(space, Parameters)
            visited = np.array(list(taken.values())) if taken else None
            return best_point(objective, space, self._screen, objective(self._screen), good, rng, visited, barred)
        score = np.concatenate([objective(rows[part]) for part in chunks(len(rows), objective.posterior.n)])
        number = first_best(score, self._not_unsafe(self._excluded(rows, taken), rows, barred))
        return objective.result_at(rows[number], number)

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
        policy, rows = LowerBound(weight), self._space.rows
        if rows is not None:
            mu, var = self.moments(told, anchor) or moments_in_chunks(told, rows)
            lower = policy.score(mu, var, State())
            unlikely = None if chance is None else ~chance.likely(rows)
            number = first_best(lower, None if unlikely is None or unlikely.all() else unlikely)
            inside: Mask = mu + 2.0 * weight * np.sqrt(var) >= lower[number]
            self._relevant = RelevantRegion(told, 2.0 * weight, float(lower[number]), rows[number], inside, chance)
        else:
            plain = Objective(told, policy, State())
            likely = plain if chance is None else confine(plain, chance.likely)
            result = self.best(likely, told, anchor, {}, rng, rng)
            level = float(plain(result.row[None])[0])  # finite even if no point that probably succeeds was found
            self._relevant = RelevantRegion(told, 2.0 * weight, level, result.row, chance=chance)
        return self._relevant

    def moments(self, told: Posterior, anchor: Posterior) -> tuple[Array, Array] | None:
        """Return mu and var of `told` at all candidates, (m,) each; None if there are too many to track.

        O(n m) if those of the previous query are cached, else O(n^2 m).
        """
        rows = self._space.rows
        assert rows is not None
        self._start_from(anchor)
        if not Tracked.fits(told.n, len(rows)):
            return None
        if told.nugget != 0.0:
            return moments_in_chunks(told, rows)
        tracked = self._follow(rows, told, told)
        return tracked.mu, tracked.var

    def _start_from(self, anchor: Posterior) -> None:
        """Clear the caches if they belong to another prior."""
        if anchor is not self._anchor:
            self._anchor, self._tracked, self._extended, self._bound = anchor, None, None, None
            self._lazy_searches = 0

    def _best_point(
        self,
        objective: Objective,
        told: Posterior,
        taken: Mapping[int, Array],
        rng: np.random.Generator,
        normals: np.random.Generator,
        barred: Barriers | None,
        region: RelevantRegion | None,
    ) -> SearchResult:
        space = self._space
        assert isinstance(space, Parameters)
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

    def _best_row(
        self,
        objective: Objective,
        told: Posterior,
        taken: Mapping[int, Array],
        rng: np.random.Generator,
        normals: np.random.Generator,
        barred: Barriers | None,
        region: RelevantRegion | None,
    ) -> SearchResult:
        rows, posterior, policy = self._space.rows, objective.posterior, objective.policy
        assert rows is not None and self._anchor is not None
        excluded = self._excluded(rows, taken)
        excluded = self._not_unsafe(excluded, rows, barred)
        if region is not None and region.rows is not None:
            outside: Mask = ~region.rows if excluded is None else ~region.rows | excluded
            excluded = excluded if outside.all() else outside
        if policy.joint:
            return drawn_row(objective, rows, excluded, rng, normals)
        tracked = None
        # Right after a fit no row is tracked, and the prior may change again soon: a lazy search is cheaper.
        prior_is_new = 0 < self._anchor.n == told.n
        if not Tracked.fits(posterior.n, len(rows)):
            self._tracked = self._extended = None
        elif posterior.nugget == 0.0 and not (
            objective.members
            or objective.chance is not None
            or (policy.grows_with_var and (prior_is_new or self._lazy_is_cheaper(told)))
        ):
            tracked = self._follow(rows, told, posterior)
        if posterior.nugget != self._nugget:  # more noise makes variances larger, so the old ones are no bounds
            self._bound, self._nugget = None, posterior.nugget
        result, bound = best_row(objective, rows, excluded, tracked, self._bound)
        if bound is not None and posterior is told:
            self._bound = bound
        return result

    def _lazy_is_cheaper(self, told: Posterior) -> bool:
        """Whether a lazy search costs less than beginning to track, for example after many values came at once.

        To begin costs O(n^2 m); a lazy search costs n m kernel values, each about KERNEL_COST products. So searches are
        lazy until they have cost as much as tracking would have.
        """
        if self._tracked is not None or told.n <= TRACKED_AT_ONCE:
            return False
        self._lazy_searches += 1
        return self._lazy_searches * KERNEL_COST <= told.n

    @cached_property
    def _screen(self) -> Array:
        return screen_of(self._space, self._seed)

    def _follow(self, z: Array, told: Posterior, posterior: Posterior) -> Tracked:
        """Return the moments of `posterior` at z, computed from the cached moments given the values told."""
        assert self._anchor is not None
        at_once = self._space.rows is not None  # there the last digits do not matter: see `contenders`
        base = self._tracked
        if base is None or base.z is not z or not base.extends_to(told):
            base = Tracked.start(self._anchor, z)
        self._tracked = base.follow(told, at_once=at_once)
        if posterior is told:
            self._extended = self._tracked
            return self._tracked
        extended = self._extended  # by the pending trials of the last query
        if extended is None or extended.z is not z or not extended.extends_to(posterior):
            extended = self._tracked
        self._extended = extended.follow(posterior, at_once=at_once)
        return self._extended

    @staticmethod
    def _not_unsafe(excluded: Mask | None, rows: Array, barred: Barriers | None) -> Mask | None:
        """Exclude also the rows that are unsafe, unless none is left."""
        if barred is None or barred.unsafe is None:
            return excluded
        unsafe: Mask = barred.unsafe(rows) if excluded is None else excluded | barred.unsafe(rows)
        return excluded if unsafe.all() else unsafe

    def _excluded(self, rows: Array, taken: Mapping[int, Array]) -> Mask | None:
        """Return which rows are at the point of a trial in `taken`. O(m), and again for each new trial in it."""
        if not taken:
            return None
        excluded = np.zeros(len(rows), dtype=bool)
        for number, row in taken.items():
            if number not in self._numbers:
                self._numbers[number] = self._space.row_numbers(row)
            excluded[self._numbers[number]] = True
        if excluded.all():
            raise SpaceExhausted(
                f"all {len(rows)} candidates have been asked, told, failed or rejected; none is left to offer"
                + ("" if self._repeats else " (repeats=True allows asking again)")
            )
        return excluded
