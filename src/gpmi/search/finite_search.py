"""The search of a finite set: every row is scored, with the moments of all rows tracked or a few of them computed."""

from __future__ import annotations

from collections.abc import Mapping

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
from gpmi.search.objective import Objective, SearchResult
from gpmi.search.relevant_region import RelevantRegion
from gpmi.search.search import Search
from gpmi.space import Space, SpaceExhausted

KERNEL_COST = 20  # of one kernel value, in products: a square root, an exponential and a few sums; measured roughly
TRACKED_AT_ONCE = 256  # up to this n start tracking immediately (n^2 per row is cheap)


class FiniteSearch(Search):
    """Find the best row of a finite set."""

    _at_once = True  # the last digits do not matter: see `contenders`

    def __init__(self, space: Space, rows: Array, *, repeats: bool) -> None:
        super().__init__()
        self._space, self._rows, self._repeats = space, rows, repeats
        self._bound: Array | None = None
        self._lazy_searches = 0  # since the prior changed, while tracking was possible
        self._nugget = 0.0  # of the posterior that the bounds belong to
        self._numbers: dict[int, Numbers] = {}  # trial number -> candidate rows at its point

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
        rows, posterior, policy = self._rows, objective.posterior, objective.policy
        excluded = self._excluded(rows, taken)
        excluded = self._not_unsafe(excluded, rows, barred)
        if region is not None and region.rows is not None:
            outside: Mask = ~region.rows if excluded is None else ~region.rows | excluded
            excluded = excluded if outside.all() else outside
        if policy.joint:
            return drawn_row(objective, rows, excluded, rng, normals)
        tracked = None
        # Right after a fit no row is tracked, and the prior may change again soon: a lazy search is cheaper.
        prior_is_new = 0 < anchor.n == told.n
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

    def best_joint(
        self,
        objective: JointObjective,
        good: Array,
        taken: Mapping[int, Array],
        rng: np.random.Generator,
        barred: Barriers | None = None,
    ) -> SearchResult:
        rows = self._rows
        score = np.concatenate([objective(rows[part]) for part in chunks(len(rows), objective.posterior.n)])
        number = first_best(score, self._not_unsafe(self._excluded(rows, taken), rows, barred))
        return objective.result_at(rows[number], number)

    def _relevant_region(
        self,
        told: Posterior,
        anchor: Posterior,
        weight: float,
        rng: np.random.Generator,
        chance: SuccessProbability | None,
    ) -> RelevantRegion:
        policy, rows = LowerBound(weight), self._rows
        mu, var = self.moments(told, anchor) or moments_in_chunks(told, rows)
        lower = policy.score(mu, var, State())
        unlikely = None if chance is None else ~chance.likely(rows)
        number = first_best(lower, None if unlikely is None or unlikely.all() else unlikely)
        inside: Mask = mu + 2.0 * weight * np.sqrt(var) >= lower[number]
        return RelevantRegion(told, 2.0 * weight, float(lower[number]), rows[number], inside, chance)

    def moments(self, told: Posterior, anchor: Posterior) -> tuple[Array, Array] | None:
        """Return mu and var of `told` at all candidates, (m,) each; None if there are too many to track.

        O(n m) if those of the previous query are cached, else O(n^2 m).
        """
        rows = self._rows
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
            self._bound, self._lazy_searches = None, 0
        super()._start_from(anchor)

    def _lazy_is_cheaper(self, told: Posterior) -> bool:
        """Whether a lazy search costs less than beginning to track, for example after many values came at once.

        To begin costs O(n^2 m); a lazy search costs n m kernel values, each about KERNEL_COST products. So searches are
        lazy until they have cost as much as tracking would have.
        """
        if self._tracked is not None or told.n <= TRACKED_AT_ONCE:
            return False
        self._lazy_searches += 1
        return self._lazy_searches * KERNEL_COST <= told.n

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
