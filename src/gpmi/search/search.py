"""The search of a run. It keeps, from query to query, what makes the next query cheaper."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import Tracked
from gpmi.search.box import best_point, drawn_point
from gpmi.search.finite import best_row, drawn_row
from gpmi.search.objective import Found, Objective
from gpmi.search.screens import best_observed, screen_of
from gpmi.space import Parameters, Space, SpaceExhausted
from gpmi.types import Array, Mask


class Search:
    """The argmax of a policy's score over a space, for the posteriors of a run, one after the other.

    Its memory changes the cost, never the result. It holds the moments at the candidates or at the screen, which one
    more observation extends; upper bounds of variances; and the rows that may not be asked.
    """

    def __init__(self, space: Space, seed: int, *, repeats: bool) -> None:
        self._space, self._seed, self._repeats = space, seed, repeats
        self._anchor: Posterior | None = None  # the moments and bounds below belong to posteriors that extend it
        self._tracked: Tracked | None = None
        self._bound: Array | None = None
        self._seen: tuple[set[int], Mask | None] = set(), None

    def best(
        self,
        objective: Objective,
        told: Posterior,  # given the values told; the objective's posterior extends it by failed and pending points
        anchor: Posterior,  # given the values that the prior was learned from; `told` extends it
        taken: Mapping[int, Array],  # the trials whose points may not be asked again: number -> coordinates
        rng: np.random.Generator,
        normals: np.random.Generator,  # for draws of f
    ) -> Found:
        """The best point under the objective. Exact on a finite set, where a tie goes to the lowest row.

        O(n m) for m candidates, or for m points of the screen; O(n^2 m) after a change of the prior.
        """
        if anchor is not self._anchor:
            self._anchor, self._tracked, self._bound = anchor, None, None
        if self._space.rows is None:
            return self._best_point(objective, told, taken, rng, normals)
        return self._best_row(objective, told, taken, rng, normals)

    def _best_point(
        self,
        objective: Objective,
        told: Posterior,
        taken: Mapping[int, Array],
        rng: np.random.Generator,
        normals: np.random.Generator,
    ) -> Found:
        space = self._space
        assert isinstance(space, Parameters)
        visited = None if self._repeats else np.array(list(taken.values()))
        known = best_observed(told).reshape(-1, space.dim)
        if objective.policy.joint:
            return drawn_point(objective, space, self._screen, known, rng, normals, visited)
        scores = objective.at(self._follow(self._screen, told, objective.posterior))
        return best_point(objective, space, self._screen, scores, known, rng, visited)

    def _best_row(
        self,
        objective: Objective,
        told: Posterior,
        taken: Mapping[int, Array],
        rng: np.random.Generator,
        normals: np.random.Generator,
    ) -> Found:
        rows, posterior, policy = self._space.rows, objective.posterior, objective.policy
        assert rows is not None and self._anchor is not None
        excluded = self._excluded(rows, taken)
        if policy.joint:
            return drawn_row(objective, rows, excluded, rng, normals)
        tracked = None
        # Right after a fit no row is tracked yet, and the prior may change again soon: a lazy search is cheaper.
        prior_is_new = 0 < self._anchor.n == told.n
        if not Tracked.fits(posterior.n, len(rows)):
            self._tracked = None
        elif not (objective.members or (prior_is_new and policy.grows_with_var)):
            tracked = self._follow(rows, told, posterior)
        found, bound = best_row(objective, rows, excluded, tracked, self._bound)
        if bound is not None and posterior is told:
            self._bound = bound
        return found

    @cached_property
    def _screen(self) -> Array:
        return screen_of(self._space, self._seed)

    def _follow(self, z: Array, told: Posterior, posterior: Posterior) -> Tracked:
        """The moments of `posterior` at z, computed from the remembered moments given the values told."""
        assert self._anchor is not None
        base = self._tracked
        if base is None or base.z is not z or not base.extends_to(told):
            base = Tracked.start(self._anchor, z)
        self._tracked = base.follow(told)
        return self._tracked.follow(posterior)

    def _excluded(self, rows: Array, taken: Mapping[int, Array]) -> Mask | None:
        """Which rows are at the point of a trial in `taken`. O(m) for each trial that is new there."""
        if not taken:
            return None
        gone = set(taken)
        seen, excluded = self._seen
        if excluded is None or not seen <= gone:  # a point was given back
            seen, excluded = set(), np.zeros(len(rows), dtype=bool)
        for number in gone - seen:
            excluded[self._space.numbers(taken[number])] = True
        self._seen = gone, excluded
        if excluded.all():
            raise SpaceExhausted(
                f"all {len(rows)} candidates have been asked, told or failed; there is none left to offer"
                + ("" if self._repeats else " (repeats=True allows asking again)")
            )
        return excluded
