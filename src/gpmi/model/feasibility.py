"""Where an evaluation succeeds and is allowed: a probability, learned from failures and from measured constraints."""

from __future__ import annotations

from copy import copy

import numpy as np

from gpmi._support.types import Array, Event, Mask, Numbers, Observations
from gpmi.gp.approximate.success import Requirement, SuccessProbability
from gpmi.model.fitting.classes import Classes, fit_classes
from gpmi.model.fitting.schedule import Priors, fit_point
from gpmi.trials.outcomes import Outcomes

# Outcomes that the classifier of failures knows, at most, half of them failures where there are so many: the last ones.
# Expectation propagation then takes about a second. Our choice, not tuned.
KNOWN = 400


class Feasibility:
    """The probability of success of a run, after each of its outcomes.

    - If a trial has failed: a Gaussian process classifier of told and failed trials, by expectation propagation
      (`gpmi.gp.approximate.ep`); its kernel is learned by its evidence (`gpmi.model.fitting.classes`).
    - For each constraint measured beside y: a Gaussian process with a learned prior as y has it, and the probability
      that it is <= 0.

    All are taken to be independent, so the probability is their product. The kernels are learned from the first
    outcomes, as many as `fit_point` says, so they are a function of the log alone.
    """

    def __init__(self, span: Array, groups: tuple[int, ...], seed: int) -> None:
        self._span, self._groups, self._seed = span, groups, seed
        self._classes: dict[int, Classes] = {}
        self._priors: dict[int, Priors] = {}  # by the number of the constraint
        self._last: tuple[int, SuccessProbability] | None = None  # the number of outcomes, and what followed from them

    def anew(self) -> Feasibility:
        """The same, with nothing learned: for other outcomes."""
        fresh = copy(self)
        fresh._classes, fresh._priors, fresh._last = {}, {}, None
        return fresh

    def chance(self, outcomes: Outcomes, given: int = 0) -> SuccessProbability:
        """The probability of success after these outcomes. O(n^3).

        `given` values were told before the first point was asked, if they are many: see `Priors`.
        """
        n, last = len(outcomes.x), self._last  # threads may read ledgers of the same run
        if last is None or last[0] != n:
            conditions, events = self._failures(outcomes)
            self._last = last = n, SuccessProbability((*conditions, *self._limits(outcomes, given)), events)
        return last[1]

    def _failures(self, outcomes: Outcomes) -> tuple[list[Requirement], tuple[Event, ...]]:
        """That an evaluation does not fail; nothing if none has failed."""
        x, success = outcomes.x, outcomes.success
        if success.all():
            return [], ()
        p, events = fit_point(len(x)), tuple[Event, ...]()
        if success[:p].all():  # the first failure came later: the kernel is that of one more failure
            p = len(x)
        if p not in self._classes:
            self._classes[p] = fit_classes(x[:p], success[:p], self._span, self._groups)
        if len(x) > KNOWN:
            rows = _latest(outcomes.failed, KNOWN)
            x, success = x[rows], success[rows]
            events = (Event("subset", f"the probability of success was learned from at most {KNOWN} outcomes"),)
        classes = self._classes[p]
        sites = classes.sites(x, success)
        posterior = sites.posterior(classes.kernel, x, classes.mean)
        return [Requirement(posterior)], (*events, *sites.events)

    def _limits(self, outcomes: Outcomes, given: int) -> list[Requirement]:
        """That each of the constraints is at most 0."""
        x, constraints = outcomes.told, outcomes.constraints
        conditions = []
        for i, values in enumerate(constraints.T):
            if len(values) == 0:
                continue
            seed = self._seed + 1 + i  # only draws of the prior would need it
            fresh = Priors(None, None, "map", span=self._span, groups=self._groups, seed=seed)
            priors = self._priors.setdefault(i, fresh)
            observed = Observations.of(x, np.ascontiguousarray(values))
            prior = priors(priors.point(len(values)), observed, given=given)
            posterior = prior.posterior().condition_merged(x, prior.warp(observed.y))
            limit = float(prior.warp(np.zeros(1))[0])
            conditions.append(Requirement(posterior, limit, -1.0, 0.0))
        return conditions


def _latest(failed: Mask, size: int) -> Numbers:
    """The numbers of the last `size` outcomes: half of them failures, or more of one kind where the other has fewer."""
    bad, good = np.flatnonzero(failed), np.flatnonzero(~failed)
    failures = min(len(bad), max(size // 2, size - len(good)))
    return np.sort(np.concatenate([bad[len(bad) - failures :], good[len(good) - (size - failures) :]]))
