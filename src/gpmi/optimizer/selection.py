"""The searches that a policy may use to choose one suggestion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpmi._support.types import Array
from gpmi.model.model import Model
from gpmi.model.orientation import Orientation
from gpmi.optimizer.audit import audit_of
from gpmi.optimizer.contexts import discounted
from gpmi.optimizer.duplicates import is_duplicate, is_near
from gpmi.optimizer.escape import escape_point
from gpmi.optimizer.exclusions import around_pending
from gpmi.optimizer.repeats import is_noisy
from gpmi.optimizer.supports import other_support
from gpmi.optimizer.untried_options import rows_with_untried_options
from gpmi.policies import Explore, Mean, Policy, Selected, State
from gpmi.policies.improvement import LogEI
from gpmi.policies.policy import Audit
from gpmi.policies.risk import Risk
from gpmi.search.barriers import Barriers
from gpmi.search.objective import Objective, SearchResult
from gpmi.search.recommendation import mean_at_told
from gpmi.search.relevant_region import RelevantRegion
from gpmi.search.subspaces import Subspace
from gpmi.space import SpaceExhausted
from gpmi.trials import Log

REGION = 2  # stream id of the relevant region


@dataclass(frozen=True, eq=False)
class Selection:
    """The model and the log at one suggestion, and the searches for it: what a policy gets as its `PointSearch`.

    One stream of random numbers runs through all searches of a suggestion.
    """

    model: Model
    log: Log
    subspace: Subspace
    orientation: Orientation
    objective: Objective  # conditioned on the values told and the pending points
    rng: np.random.Generator
    barred: Barriers | None  # where no point of a box may be asked
    repeats: bool
    risk: Risk

    # What a policy reads

    @property
    def state(self) -> State:
        return self.objective.state

    @property
    def batch_state(self) -> State:
        size, dim = self.model.setting.space.extent
        ended = self.log.chosen([*self.log.told, *self.log.failed])
        return State(t=int(ended.sum()) + 1, size=size, dim=dim)

    @property
    def budget(self) -> int | None:
        horizon = self.state.horizon
        return None if horizon is None else horizon + self.log.unchosen

    @property
    def pending_phi(self) -> Sequence[float | None]:
        log, space = self.log, self.subspace.space
        return [log[n].phi for n in log.pending if log[n].origin == "policy" and space.contains(log.rows[n])]

    def is_duplicate(self, point: Selected) -> bool:
        return is_duplicate(point.row, self.subspace.space, self.log)

    def is_near_pending(self, point: Selected) -> bool:
        return is_near(point.row, self.subspace.space, [self.log.rows[number] for number in self.log.pending])

    # What a policy selects

    def best(self, policy: Policy, *, discount: bool = False) -> Selected:
        objective = self.objective
        if discount and self.subspace.fixed is not None:
            objective = discounted(objective, self.model, self.subspace.space, self.log)
        return self._best(objective.with_policy(policy), self._failed if self.repeats else self.log.rows)

    def best_new(
        self, policy: Policy, *, region: RelevantRegion | None = None, barred: Barriers | None = None
    ) -> Selected:
        objective = self.objective.with_policy(policy)
        noisy = self.repeats and is_noisy(self.model.setting.priors.noise_var, self.log)
        try:
            return self._best(objective, self._failed if noisy else self.log.rows, region, barred)
        except SpaceExhausted:
            if not self.repeats:
                raise
            return self._best(objective, self._failed, region, barred)

    def best_mean(self) -> Selected | None:
        space, log, model = self.subspace.space, self.log, self.model
        row = model.recommendation.best_mean_in(space)  # once for all points of a batch
        rejected = any(np.array_equal(row, log.row(number)) for number in log.rejected)
        if rejected or (self.barred is not None and self.barred.holds(row[None])[0]) or row.tobytes() in log.places:
            return None
        # The best mean is often at the edge of the feasible region, where half of the queries fail.
        if model.chance is not None and model.chance.log(row[None])[0] < self.state.log_enough:
            return None
        objective = self.objective.with_policy(Mean())
        point = _selected(objective.policy, objective.result_at(row))
        return None if point.mu <= self._best_told() else point

    def explore_relevant(self, weight: float) -> Selected:
        model = self.model
        rng = np.random.default_rng([model.setting.seed, model.n, REGION])
        region = self.subspace.search.relevant(model.posterior, model.anchor, weight, rng, model.chance)
        return self.best_new(Explore(), region=region)

    def explore_apart(self) -> Selected | None:
        if self.subspace.space.rows is not None:
            return None
        return self.best_new(Explore(), barred=around_pending(self.subspace.space, self.log, self.barred))

    def escape(self) -> Selected | None:
        space = self.subspace.space
        other = other_support(self.log, space, self.orientation, self.barred) if space.counts_parameters else None
        if other is not None:
            best = float(self.model.warp(np.array([other.best]))[0])
            state = replace(self.state, best_mean=best, best_observed=best)
            here = replace(self.objective, state=state, policy=LogEI("mean"), members=())
            return self._best(here, self.log.rows, barred=other.barred)
        x = escape_point(self.model, self.log, self.subspace, self.orientation, self.risk)
        if x is None:
            return None
        objective = self.objective.with_policy(Explore())
        return _selected(objective.policy, objective.result_at(self.subspace.space.encode(x)), x)

    def try_option(self, policy: Policy) -> Selected | None:
        model, space = self.model, self.subspace.space
        if model.setting.priors.is_fixed or model.prior.sources is not None:  # an earlier study may have tried it
            return None
        inside = rows_with_untried_options(space, self.log)
        if inside is None or space.rows is None:
            return None
        region = RelevantRegion(model.posterior, 0.0, 0.0, space.rows[int(np.argmax(inside))], inside)
        point = self.best_new(policy, region=region)
        # Where all such rows are rejected, failed or unsafe, the search was not confined to them.
        return point if inside[space.row_numbers(point.row)].any() else None

    def audit(self) -> Audit | None:
        return audit_of(self.model, self.log, self.subspace, self.objective)

    # How it searches

    def _best(
        self,
        objective: Objective,
        taken: Mapping[int, Array],  # the trials whose points may not be asked again, by number
        region: RelevantRegion | None = None,
        barred: Barriers | None = None,  # instead of self.barred
    ) -> Selected:
        log, model, search = self.log, self.model, self.subspace.search
        if log.rejected and self.subspace.space.rows is not None:
            taken = {**taken, **{number: log.row(number) for number in log.rejected}}
        normals, barred = self.orientation.normals(self.rng), self.barred if barred is None else barred
        result = search.best(objective, model.posterior, model.anchor, taken, self.rng, normals, barred, region)
        return _selected(objective.policy, result)

    def _best_told(self) -> float:
        """Return the best posterior mean at a proven told point of the subspace; -inf if there is none. O(n)."""
        model, space = self.model, self.subspace.space
        if not model.posterior.n:
            return -np.inf
        here = model.recommendation.proven & np.array(
            [not space.fixed_coordinates or space.contains(row) for row in model.posterior.x]
        )
        return float(np.max(mean_at_told(model.posterior, model.members), initial=-np.inf, where=here))

    @cached_property
    def _failed(self) -> Mapping[int, Array]:
        """The trials whose rows are never asked again: on a finite set, those that failed."""
        if self.subspace.space.rows is None:
            return {}
        return {number: self.log.rows[number] for number in self.log.failed}


def _selected(policy: Policy, result: SearchResult, x: object = None) -> Selected:
    return Selected(policy, result.row, result.mu, result.var, result.score, result.events, x=x)
