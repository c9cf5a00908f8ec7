"""The point that a policy chooses, and the rules of `Find` for points that are known or pending."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array
from gpmi.model.model import Model
from gpmi.model.orientation import Orientation
from gpmi.optimizer.duplicates import SAME, is_known, is_near, is_noisy, is_repetition
from gpmi.policies import GPUCBPE, Explore, Find, Mean, Policy, State
from gpmi.search.barriers import Barriers
from gpmi.search.objective import Objective, SearchResult
from gpmi.search.recommendation import mean_at_told
from gpmi.search.relevant_region import RelevantRegion
from gpmi.search.subspaces import Subspace
from gpmi.space import SpaceExhausted
from gpmi.trials import Log

REGION = 2  # tells the random numbers of the relevant region from those of the search
BESIDE = GPUCBPE(scale=0.2)  # its region is where aim="find" explores while points are pending: the scale of Find.last

# In this share of the budget, the last, one point of a batch is the one with the best mean. Chosen among 0.1, 0.2, 0.35
# and 1 by a probe that `benchmarks/batches.py --part late` repeats, on functions that are not on its page; the first
# three differ little.
LATE = 0.2


class Choice(NamedTuple):
    """The point that a policy chose, with the objective it is best for."""

    policy: Policy
    scored: Objective
    found: SearchResult


@dataclass(frozen=True, eq=False)
class Chooser:
    """What is known at the moment of one suggestion, and the searches for it. The random numbers go on with each."""

    model: Model
    log: Log
    place: Subspace
    orientation: Orientation
    seen: Objective  # given the values told and the pending points
    rng: np.random.Generator
    barred: Barriers | None  # where nothing may be asked, on a box
    repeats: bool

    def best(
        self,
        policy: Policy,
        *,
        taken: Mapping[int, Array] | None = None,  # the trials whose points may not be asked again
        region: RelevantRegion | None = None,
        barred: Barriers | None = None,  # in place of those of the moment
    ) -> Choice:
        """The best point; of a finite set one that has not failed, and was not asked before if nothing is repeated."""
        scored, space = self.seen.with_policy(policy), self.place.space
        taken = (self._failed if self.repeats else self.log.rows) if taken is None else taken
        if self.log.rejected and space.rows is not None:
            taken = {**taken, **{number: self.log.row(number) for number in self.log.rejected}}
        told, anchor, normals = self.model.posterior, self.model.anchor, self.orientation.normals(self.rng)
        barred = self.barred if barred is None else barred
        found = self.place.search.best(scored, told, anchor, taken, self.rng, normals, barred, region)
        return Choice(policy, scored, found)

    def unknown(self, policy: Policy, region: RelevantRegion | None = None, barred: Barriers | None = None) -> Choice:
        """The best point; without noise, the best of those without a trial as long as there are any."""
        noisy = self.repeats and is_noisy(self.model.setting.priors.noise_var, self.log)
        try:
            return self.best(policy, taken=self._failed if noisy else self.log.rows, region=region, barred=barred)
        except SpaceExhausted:
            if not self.repeats:
                raise
            return self.best(policy, taken=self._failed, region=region, barred=barred)

    def explored(self, policy: GPUCBPE) -> Choice:
        """The point of the relevant region that is known least."""
        return self.unknown(Explore(), relevant(policy, self.model, self.log, self.place))

    def found(self, policy: Find) -> Choice:
        """The choice of `Find`."""
        space, log = self.place.space, self.log
        if (sure := self._surest()) is not None:
            return sure
        choice = self.best(policy.first)
        if not is_known(choice.found.row, space, log):
            return choice
        if not self._is_beside(choice):
            choice = self.unknown(policy.then)
        repeated = is_known(choice.found.row, space, log) and is_repetition(space, log)
        if repeated or self._is_beside(choice):
            choice = self.unknown(policy.last)
        if self._is_beside(choice):
            choice = self.explored(BESIDE)
        if self._is_beside(choice) and space.rows is None:  # the region is no larger than a place
            choice = self.unknown(Explore(), barred=self._apart())
        return choice

    def _surest(self) -> Choice | None:
        """The best posterior mean, near the end of a budget, while points of the policy are pending, but none like it.

        None where it is no better than at a told point with these coordinates, where a point is pending, where none may
        be asked, or where it is less likely to succeed than the policy's queries have to be now.
        """
        space, log, state = self.place.space, self.log, self.seen.state
        if state.horizon is None or not 0 <= state.horizon - state.t < LATE * (state.horizon + log.unchosen):
            return None
        pending = [log[n] for n in log.pending if log[n].origin == "policy" and space.contains(log.rows[n])]
        if not pending or any(trial.phi == 0.0 for trial in pending):
            return None
        row = self.model.best_in(space)  # once for all points of a batch
        rejected = any(np.array_equal(row, log.row(number)) for number in log.rejected)
        if rejected or (self.barred is not None and self.barred.holds(row[None])[0]) or row.tobytes() in log.places:
            return None
        chance = self.model.chance  # the best mean is often at the edge of what works, where half of the queries fail
        if chance is not None and chance.log(row[None])[0] < state.log_enough:
            return None
        scored = self.seen.with_policy(Mean())
        choice = Choice(scored.policy, scored, scored.result_at(row))
        return None if self._is_beside(choice) or choice.found.mu <= self._best_told() else choice

    def _best_told(self) -> float:
        """The best mean at a told point of the space that works, -inf without one. O(n)."""
        model, space = self.model, self.place.space
        if not model.posterior.n:
            return -np.inf
        here = model.proven & np.array(
            [not space.fixed_coordinates or space.contains(row) for row in model.posterior.x]
        )
        return float(np.max(mean_at_told(model.posterior, model.members), initial=-np.inf, where=here))

    @property
    def _failed(self) -> dict[int, Array]:
        """The trials whose rows are not asked again: on a finite set those that failed."""
        if self.place.space.rows is None:
            return {}
        return {number: self.log.rows[number] for number in self.log.failed}

    @property
    def _pending(self) -> list[Array]:
        return [self.log.rows[number] for number in self.log.pending]

    def _is_beside(self, choice: Choice) -> bool:
        """Whether the point is at the place of a pending one."""
        return is_near(choice.found.row, self.place.space, self._pending)

    def _apart(self) -> Barriers:
        """The barriers of the moment, and around each pending point one of its place, or at least of itself."""
        space, at = self.place.space, np.array(self._pending)
        core = space.rounding + np.zeros_like(at)
        within = np.maximum(SAME * space.span, core)
        if (old := self.barred) is None:
            return Barriers(at, within, core)
        old_boxes, boxes = (old.at, old.within, old.core), (at, within, core)
        at, within, core = (np.concatenate(pair) for pair in zip(old_boxes, boxes, strict=True))
        return Barriers(at, within, core, old.unsafe)


def relevant(policy: GPUCBPE, model: Model, log: Log, place: Subspace) -> RelevantRegion:
    """The region in which the points of a batch after the first explore, the same for all of them."""
    size, dim = model.setting.space.extent
    state = State(t=int(log.chosen([*log.told, *log.failed]).sum()) + 1, size=size, dim=dim)
    rng = np.random.default_rng([model.setting.seed, model.n, REGION])
    return place.search.relevant(model.posterior, model.anchor, policy.weight(state), rng, model.chance)
