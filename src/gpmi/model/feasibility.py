"""Where an evaluation succeeds and is allowed: a probability, learned from failures and from measured constraints."""

from __future__ import annotations

from copy import copy

import numpy as np

from gpmi._support.types import Array, Event, Mask, Numbers, Observations
from gpmi.gp.approximate.success import Requirement, SuccessProbability
from gpmi.gp.merging import condition_merged
from gpmi.model.fitting.classifier_prior import ClassifierPrior, fit_classifier
from gpmi.model.fitting.data import warped
from gpmi.model.fitting.schedule import PriorSchedule, fit_size
from gpmi.trials.feasibility import Outcomes

# The largest number of outcomes that the classifier of failures uses: the latest ones, half of them failures if there
# are enough. Expectation propagation then takes about a second. Our choice, not tuned.
MOST_OUTCOMES = 400


class Feasibility:
    """The probability of success in a run, after each of its outcomes.

    - If a trial has failed: a Gaussian process classifier of successes and failures, by expectation propagation
      (`gpmi.gp.approximate.ep`). Its kernel maximises the evidence (`gpmi.model.fitting.classifier_prior`).
    - For each constraint measured along with y: a Gaussian process with a learned prior, as for y, and the probability
      that the constraint is <= 0.

    All are assumed independent, so the probability is their product. The kernels are learned from the first outcomes,
    as many as `fit_size` says, so they are a function of the log alone.
    """

    def __init__(self, span: Array, groups: tuple[int, ...], seed: int) -> None:
        self._span, self._groups, self._seed = span, groups, seed
        self._classes: dict[int, ClassifierPrior] = {}
        self._priors: dict[int, PriorSchedule] = {}  # by the number of the constraint
        self._last: tuple[tuple[int, ...], SuccessProbability] | None = None  # the numbers of outcomes, and the result

    def cleared(self) -> Feasibility:
        """Return a copy with nothing learned, for other outcomes."""
        fresh = copy(self)
        fresh._classes, fresh._priors, fresh._last = {}, {}, None
        return fresh

    def chance(self, outcomes: Outcomes, preloaded: int = 0) -> SuccessProbability | None:
        """Return the probability of success after these outcomes; None if no limit has been measured yet. O(n^3).

        `preloaded` counts the values that existed before the first suggestion, if there are many: see `PriorSchedule`.
        """
        n, last = outcomes.size, self._last  # a copy: several threads may read ledgers of the same run
        if last is None or last[0] != n:
            requirements, events = self._failures(outcomes)
            self._last = last = n, SuccessProbability((*requirements, *self._limits(outcomes, preloaded)), events)
        return last[1] if last[1].requirements else None

    def _failures(self, outcomes: Outcomes) -> tuple[list[Requirement], tuple[Event, ...]]:
        """Return the requirement that an evaluation does not fail, and events; empty if none has failed."""
        x, success = outcomes.x, outcomes.success
        if success.all():
            return [], ()
        p, events = fit_size(len(x)), tuple[Event, ...]()
        if success[:p].all():  # no failure among the first p: learn the kernel from all outcomes
            p = len(x)
        if p not in self._classes:
            self._classes[p] = fit_classifier(x[:p], success[:p], self._span, self._groups)
        if len(x) > MOST_OUTCOMES:
            rows = _latest(outcomes.failed, MOST_OUTCOMES)
            x, success = x[rows], success[rows]
            events = (Event("subset", f"the probability of success was learned from at most {MOST_OUTCOMES} outcomes"),)
        classes = self._classes[p]
        sites = classes.sites(x, success)
        posterior = sites.posterior(classes.kernel, x, classes.mean)
        return [Requirement(posterior)], (*events, *sites.events)

    def _limits(self, outcomes: Outcomes, preloaded: int) -> list[Requirement]:
        """Return the requirements that each of the constraints is at most 0."""
        limits, requirements = outcomes.limits, []
        if limits is None:
            columns = np.ascontiguousarray(outcomes.constraints.T)
            limits = tuple(Observations.of(outcomes.told, column) for column in columns)
        for i, observed in enumerate(limits):
            if len(observed) == 0:
                continue
            seed = self._seed + 1 + i  # used only by draws of the prior, which do not happen here
            fresh = PriorSchedule(None, None, "map", span=self._span, groups=self._groups, seed=seed)
            priors = self._priors.setdefault(i, fresh)
            prior = priors(priors.fit_size(len(observed)), observed, preloaded=preloaded)
            modelled = warped(observed, prior.warp)
            noise = None if observed.plain else prior.noise_var / modelled.repeats + modelled.noise_var
            posterior = condition_merged(prior.posterior(), modelled.x, modelled.y, noise)
            limit = float(prior.warp(np.zeros(1))[0])
            requirements.append(Requirement(posterior, limit, -1.0, 0.0))
        return requirements


def _latest(failed: Mask, size: int) -> Numbers:
    """Return the numbers of the last `size` outcomes: half of them failures, or more of one kind if the other has
    fewer.
    """
    bad, good = np.flatnonzero(failed), np.flatnonzero(~failed)
    failures = min(len(bad), max(size // 2, size - len(good)))
    return np.sort(np.concatenate([bad[len(bad) - failures :], good[len(good) - (size - failures) :]]))
