"""The search of a run. It keeps, from query to query, what makes the next query cheaper."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from gpmi._support.types import Array, Mask, Numbers
from gpmi.gp.approximate.success import SuccessProbability
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import Tracked, first_best, moments_in_chunks
from gpmi.policies import State
from gpmi.policies.batch import LowerBound
from gpmi.search.box import best_point, drawn_point
from gpmi.search.finite import best_row, drawn_row
from gpmi.search.objective import Found, Objective
from gpmi.search.relevant import Relevant, confined
from gpmi.search.screens import Barriers, best_known, screen_of
from gpmi.space import Parameters, Space, SpaceExhausted

LAZY = 20  # products that a value of the kernel costs: a square root, an exponential and a few sums; measured roughly
FEW = 256  # with no more observations than this tracking begins at once: 256^2 products a row are cheap


class Search:
    """The argmax of a policy's score over a space, for the posteriors of a run, one after the other.

    Its memory changes the cost, never the result. It holds the moments at the candidates or at the screen, which one
    more observation extends; upper bounds of variances; and the rows that may not be asked.
    """

    def __init__(self, space: Space, seed: int, *, repeats: bool) -> None:
        self._space, self._seed, self._repeats = space, seed, repeats
        self._anchor: Posterior | None = None  # where the moments and bounds below start from
        self._tracked: Tracked | None = None  # of the values told
        self._extended: Tracked | None = None  # of the objective's posterior
        self._bound: Array | None = None
        self._lazy_searches = 0  # since the prior changed, where tracking was possible
        self._nugget = 0.0  # of the posterior that the bounds belong to
        self._numbers: dict[int, Numbers] = {}  # of the rows at the point of a trial
        self._relevant: Relevant | None = None  # the region that was needed last

    def best(
        self,
        objective: Objective,
        told: Posterior,  # given the values told; the objective's posterior extends it by pending points
        anchor: Posterior,  # given the values that the prior was learned from; `told` extends it
        taken: Mapping[int, Array],  # the trials whose points may not be asked again: number -> coordinates
        rng: np.random.Generator,
        normals: np.random.Generator,  # for draws of f
        barred: Barriers | None = None,  # where nothing may be asked; on a finite set its unsafe points alone count
        region: Relevant | None = None,  # outside of which nothing is looked for, unless nothing else is left
    ) -> Found:
        """The best point under the objective. Exact on a finite set, where a tie goes to the lowest row.

        O(n m) for m candidates, or for m points of the screen; O(n^2 m) after a change of the prior.
        """
        self._start_from(anchor)
        if self._space.rows is None:
            return self._best_point(objective, told, taken, rng, normals, barred, region)
        return self._best_row(objective, told, taken, rng, normals, barred, region)

    def relevant(
        self,
        told: Posterior,
        anchor: Posterior,
        weight: float,
        rng: np.random.Generator,
        chance: SuccessProbability | None,
    ) -> Relevant:
        """Where mu + 2 weight sd is at least the largest mu - weight sd, given the values told. Costs as `best`.

        The largest lower bound is that of the points that probably succeed, if there are any. On a box it is the
        largest that is found.
        """
        known = self._relevant
        if known is not None and known.told is told and known.width == 2.0 * weight and known.chance is chance:
            return known
        policy, rows = LowerBound(weight), self._space.rows
        if rows is not None:
            mu, var = self.moments(told, anchor) or moments_in_chunks(told, rows)
            lower = policy.score(mu, var, State())
            unlikely = None if chance is None else ~chance.likely(rows)
            number = first_best(lower, None if unlikely is None or unlikely.all() else unlikely)
            inside: Mask = mu + 2.0 * weight * np.sqrt(var) >= lower[number]
            self._relevant = Relevant(told, 2.0 * weight, float(lower[number]), rows[number], inside, chance)
        else:
            plain = Objective(told, policy, State())
            likely = plain if chance is None else confined(plain, chance.likely)
            found = self.best(likely, told, anchor, {}, rng, rng)
            level = float(plain(found.row[None])[0])  # also where no point that is likely to succeed was found
            self._relevant = Relevant(told, 2.0 * weight, level, found.row, chance=chance)
        return self._relevant

    def moments(self, told: Posterior, anchor: Posterior) -> tuple[Array, Array] | None:
        """mu and var of `told` at all candidates, (m,) each; None if there are too many to keep them.

        O(n m) where those of the query before are kept, else O(n^2 m).
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
        """Forget what belongs to another prior."""
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
        region: Relevant | None,
    ) -> Found:
        space = self._space
        assert isinstance(space, Parameters)
        visited = np.array(list(taken.values())) if taken else None
        known = best_known(told, space).reshape(-1, space.dim)
        if region is not None:
            objective, known = confined(objective, region.holds), np.concatenate([region.at[None], known])
        if objective.policy.joint:
            return drawn_point(objective, space, self._screen, known, rng, normals, visited, barred)
        # Where C was singular the last digits would depend on when that was noticed, and so would a replay.
        plain = objective.posterior.nugget == 0.0
        tracked = self._follow(self._screen, told, objective.posterior) if plain else None
        scores = objective(self._screen) if tracked is None else objective.at(tracked)
        return best_point(objective, space, self._screen, scores, known, rng, visited, barred)

    def _best_row(
        self,
        objective: Objective,
        told: Posterior,
        taken: Mapping[int, Array],
        rng: np.random.Generator,
        normals: np.random.Generator,
        barred: Barriers | None,
        region: Relevant | None,
    ) -> Found:
        rows, posterior, policy = self._space.rows, objective.posterior, objective.policy
        assert rows is not None and self._anchor is not None
        excluded = self._excluded(rows, taken)
        if barred is not None and barred.unsafe is not None:
            safe = barred.unsafe(rows) if excluded is None else excluded | barred.unsafe(rows)
            excluded = excluded if safe.all() else safe
        if region is not None and region.rows is not None:
            outside: Mask = ~region.rows if excluded is None else ~region.rows | excluded
            excluded = excluded if outside.all() else outside
        if policy.joint:
            return drawn_row(objective, rows, excluded, rng, normals)
        tracked = None
        # Right after a fit no row is tracked yet, and the prior may change again soon: a lazy search is cheaper.
        prior_is_new = 0 < self._anchor.n == told.n
        if not Tracked.fits(posterior.n, len(rows)):
            self._tracked = self._extended = None
        elif posterior.nugget == 0.0 and not (
            objective.members
            or objective.chance is not None
            or (policy.grows_with_var and (prior_is_new or self._lazy_is_cheaper(told)))
        ):
            tracked = self._follow(rows, told, posterior)
        if posterior.nugget != self._nugget:  # with more noise variances are larger: old ones bound them no longer
            self._bound, self._nugget = None, posterior.nugget
        found, bound = best_row(objective, rows, excluded, tracked, self._bound)
        if bound is not None and posterior is told:
            self._bound = bound
        return found

    def _lazy_is_cheaper(self, told: Posterior) -> bool:
        """Whether a lazy search costs less than to begin tracking, as after many values came at once.

        To begin costs O(n^2 m), a lazy search n m values of the kernel, each about as much as LAZY products. So the
        search is lazy until that has cost as much as tracking would have.
        """
        if self._tracked is not None or told.n <= FEW:
            return False
        self._lazy_searches += 1
        return self._lazy_searches * LAZY <= told.n

    @cached_property
    def _screen(self) -> Array:
        return screen_of(self._space, self._seed)

    def _follow(self, z: Array, told: Posterior, posterior: Posterior) -> Tracked:
        """The moments of `posterior` at z, computed from the remembered moments given the values told."""
        assert self._anchor is not None
        at_once = self._space.rows is not None  # there the last digits do not decide: see `contenders`
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

    def _excluded(self, rows: Array, taken: Mapping[int, Array]) -> Mask | None:
        """Which rows are at the point of a trial in `taken`. O(m), and again for each trial that is new there."""
        if not taken:
            return None
        excluded = np.zeros(len(rows), dtype=bool)
        for number, row in taken.items():
            if number not in self._numbers:
                self._numbers[number] = self._space.row_numbers(row)
            excluded[self._numbers[number]] = True
        if excluded.all():
            raise SpaceExhausted(
                f"all {len(rows)} candidates have been asked, told, failed or rejected; there is none left to offer"
                + ("" if self._repeats else " (repeats=True allows asking again)")
            )
        return excluded
