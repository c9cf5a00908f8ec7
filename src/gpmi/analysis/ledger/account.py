"""What is known about a run, how certain it is, and what more evaluations are worth.

The ledger is computed from the model and from what the trials noted when they were chosen and told. It stores nothing
of its own and changes nothing. The regret needs joint draws of f, which are made when it is first read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gpmi._support import checks
from gpmi._support.text import Line, aligned, ledger_lines, not_covered, tally
from gpmi._support.types import Array, Event, Observations
from gpmi.analysis.ledger.averaged import FIRST, Foreseen, Values, inflation
from gpmi.analysis.ledger.calibration import Calibration, judge
from gpmi.analysis.ledger.contexts import Asked
from gpmi.analysis.ledger.maxima import most_likely_better, spread_of_difference
from gpmi.analysis.ledger.regret import Regret, drawn, repeats, unknown
from gpmi.analysis.ledger.steps import Step
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import moments_in_chunks
from gpmi.model.model import Model, ModelSetting
from gpmi.model.orientation import Orientation
from gpmi.policies import EI, LogEI, State
from gpmi.search.box import best_point
from gpmi.search.objective import Objective
from gpmi.search.screens import best_observed, screen_of
from gpmi.space import Parameters, Space
from gpmi.trials import Trial
from gpmi.trials.outcomes import Outcomes

# The lock-in alarm. Our choices, not tuned one by one. Together they find 84 of 85 lock-ins of GP-MI on 50 arms and
# raise no alarm in 100 runs of GP-UCB (docs/benchmarks/ledger.md).
REPEATS = 10  # the policy repeats itself if at least this many of its last queries were at one place
SAME = 1e-3  # two points closer than this, in widths of the space, are at one place
MISSED = 0.25  # a repetition is a lock-in if the regret exceeds the noise with at least this probability,
CERTAIN = 0.002  # or if the model is over-confident at this error: 25 looks then have an error of 5 % together

RESOLVED = 1e-4  # prior sd: a smaller regret is not resolved. Ten times the error of a drawn value, see `gpmi.gp.paths`
_PART = 4  # one of so many draws of the prior is looked at before the others: our choice
_CLEARLY = 2.5  # times the probability that is allowed is clearly too much: 64 draws estimate 0.05 with an sd of 0.03
CLOSEST = 1000  # candidates whose improvement is computed in units of y, where y is transformed: our limit of cost


class LockIn(NamedTuple):
    """The run repeats one point, although a better one may exist."""

    since: int  # the step of the first of the repeated queries
    probability: float  # of a simple regret above the standard deviation of the noise
    reason: str


@dataclass(frozen=True, eq=False)
class Memory:
    """Results that the ledgers of one run share, so that the next ledger does not compute them again."""

    regrets: dict[Any, Regret]  # by the number of values, of outcomes if some are failures, and what is given
    past: dict[int, Step]  # the steps before the last, by t: threads may fill it at the same time
    foreseen: Foreseen = field(default_factory=Foreseen)


@dataclass(frozen=True, eq=False, repr=False)
class Ledger:
    """The account of a run after n values: `steps`, `regret(t)`, `calibration`, `lock_in`, `improvement`."""

    trials: tuple[Trial, ...]  # those told, in the order in which they were told
    observed: Observations  # their values with coordinates and noise
    outcomes: Outcomes | None  # what is known of failures and constraints, if anything is
    failures: tuple[Trial, ...]  # those that failed
    noted: tuple[tuple[int, Event], ...]  # events, each with the number of values that had been told
    orientation: Orientation
    setting: ModelSetting
    known: tuple[Model | None, ...]  # models of the same run after fewer values: `Model.after` extends them
    memory: Memory

    @property
    def n(self) -> int:
        """The number of values told."""
        return len(self.trials)

    @property
    def space(self) -> Space:
        """What may be queried."""
        return self.setting.space

    @cached_property
    def y(self) -> Array:
        """The values told, (n,)."""
        return self.observed.y.copy()

    @cached_property
    def values(self) -> Array:
        """The values told, oriented so that larger is better, (n,)."""
        return self.orientation.values(self.y)

    @cached_property
    def _oriented(self) -> Observations:
        return replace(self.observed, y=self.values)

    @cached_property
    def _off_trend(self) -> Array:
        """The values, oriented, minus a known mean, (n,)."""
        return self.setting.detrended(self._oriented).y

    @cached_property
    def rows(self) -> Array:
        """Their coordinates, (n, d)."""
        return self.observed.x.reshape(self.n, self.space.dim)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """One step for each value told. O(1) for each that was not read before."""
        past = self.memory.past
        for t in range(1, self.n):
            if t not in past:
                past[t] = self._step(t)
        return (*(past[t] for t in range(1, self.n)), self._step(self.n)) if self.n else ()

    def _step(self, t: int) -> Step:
        return Step.of(t, self.trials[t - 1], tuple(event for told, event in self.noted if max(1, told) == t))

    # The model

    @cached_property
    @one_blas_thread
    def model(self) -> Model:
        """The model after all values told, oriented so that larger is better."""
        return Model.after(self.setting, self._oriented, *self.known).with_outcomes(self.outcomes)

    @one_blas_thread
    def model_after(self, t: int) -> Model:
        """The model after the first t values."""
        if not self.n:
            raise ValueError("no value has been told, so there is no model; tell one first")
        if not 1 <= t <= self.n:
            raise ValueError(f"t is {t}, but {self.n} values have been told; give a number between 1 and that")
        if t == self.n:
            return self.model
        return Model.after(self.setting, self._oriented.first(t)).with_outcomes(self._outcomes_after(t))

    def _outcomes_after(self, t: int) -> Outcomes | None:
        """What was known of failures and constraints after the first t values; after all of them, what is now."""
        return None if self.outcomes is None else self.outcomes.after(t)

    # How far from the best

    @one_blas_thread
    def regret(self, t: int | None = None, *, fixed: Mapping[Any, Any] | None = None) -> Regret:
        """Joint draws of the regrets after the first t values (all by default), under what was believed at that moment.

        These are draws of max f over the space, of f at the point recommended at that moment, and of f at the policy's
        queries. A query for which coordinates were given is measured against max f with the same
        (`contexts`). With `fixed` the regret is that of the points with these coordinates: of the one that
        `recommend(fixed=...)` returns, and of the queries for which just these were given.

        `maxima` says what they cost and what is approximate. A learned prior is averaged over
        (`averaged`); one value, or values that are all equal, do not say how much f varies, and then the
        regret is not known. The random numbers come from (seed, t), so a second reading gives the same draws, and
        reading changes no suggestion.
        """
        t = self.n if t is None else checks.whole("t", t, 1)
        part = self.space.with_fixed(fixed) if fixed else self.space
        outcomes, regrets = self._outcomes_after(min(t, self.n)), self.memory.regrets
        key = t, 0 if outcomes is None else len(outcomes.x), part.fixed_coordinates
        if key not in regrets:
            model = self.model_after(t)
            rng = np.random.default_rng([self.setting.seed, t, 0, 1])  # no suggestion draws from it
            if self._says_nothing(t):
                regrets[key] = unknown(model, part)
            else:
                asked, mixture, normals = self._asked(t), self._mixture(model, t), self.orientation.normals(rng)
                own = [one.at for one in asked if one.space.fixed_coordinates == part.fixed_coordinates]
                queries = own[0] if own else self.rows[:0]
                several = (
                    asked if not part.fixed_coordinates and any(one.space.fixed_coordinates for one in asked) else ()
                )
                regrets[key] = drawn(model, mixture, queries, normals, within=part, asked=several)
        return regrets[key]

    def _asked(self, t: int) -> list[Asked]:
        """The policy's queries among the first t values, by the coordinates that were given for them."""
        found: dict[Any, tuple[Space, list[int]]] = {}
        for i, trial in enumerate(self.trials[:t]):
            if trial.origin == "policy":
                part = self.space.with_fixed(trial.fixed) if trial.fixed else self.space
                found.setdefault(part.fixed_coordinates, (part, []))[1].append(i)
        return [Asked(part, self.rows[:t][numbers]) for part, numbers in found.values()]

    def _says_nothing(self, t: int) -> bool:
        """Whether the prior is learned and the first t values do not say how much f varies."""
        return not self.setting.priors.is_fixed and bool(np.ptp(self._off_trend[:t]) == 0.0)

    @property
    def _averages(self) -> bool:
        """Whether the prior is averaged over: it is learned, and the noise is normal."""
        return not (self.setting.priors.is_fixed or self.setting.priors.student_noise)

    def _mixture(self, model: Model, t: int) -> tuple[Posterior, ...]:
        """The posteriors with equal weights whose mixture is believed after t values, given the model of that time."""
        if not self._averages:
            return model.mixture
        values = Values(self.setting, self._oriented.first(t), model.warp)
        foreseen = self.memory.foreseen
        priors = foreseen.drawn(values)
        return values.posteriors(priors, t, inflation(foreseen(values), len(priors)))

    @one_blas_thread
    def is_below(self, eps: float, level: float = 0.95) -> bool:
        """Whether it is certified, after all values, that the simple regret is at most eps with probability `level`.

        Never under a verdict "over-confident" or "too early to say". P(regret > eps) >= P(f(x) - f(recommended) > eps)
        for every x. So if one point has too large a probability the answer is no, and no draws are made. Where draws
        are costly a part of them is made next, and the rest only if these do not clearly say no.
        """
        level, model = checks.probability("level", level), self.model
        if self._says_nothing(self.n):
            return False
        z = self.space.rows if self.space.rows is not None else screen_of(self.space, self.setting.seed)
        if model.chance is not None:
            z = np.concatenate([z[model.allowed(z)], model.recommended[None]])
        straight = not model.warp.bends
        if straight and most_likely_better((model.posterior,), z, model.recommended, eps) > 1.0 - level:
            return False
        if self.doubt is not None:
            return False
        if not self.setting.priors.is_fixed or self.space.rows is None:
            mixture, allowed = self._mixture(model, self.n)[::_PART], _CLEARLY * (1.0 - level)
            if straight and most_likely_better(mixture, z, model.recommended, eps) > allowed:
                return False
            rng = np.random.default_rng([self.setting.seed, self.n, 0, 5])
            part = drawn(model, mixture, self.rows[:0], self.orientation.normals(rng), parts=_PART)
            if 1.0 - part.probability_below(eps) > allowed:
                return False
        return self.regret().probability_below(eps) >= level

    # Whether the confidence was deserved

    @cached_property
    def calibration(self) -> Calibration:
        """The residuals of the values told and a verdict on them. `left_out` costs O(n^3) when it is read.

        With a given prior the residuals are the surprises of the steps, O(n). A learned prior is averaged over, as in
        the interval that the verdict is about: `Foreseen` says what that costs, once for each value.
        """
        return Calibration(self._residuals(), self._posterior)

    @one_blas_thread
    def _residuals(self) -> Array:
        if not self._averages:
            return np.array([trial.surprise for trial in self.trials if trial.surprise is not None])
        if self.n <= FIRST or self._says_nothing(self.n):
            return np.empty(0)
        values = Values(self.setting, self._oriented, self.model.warp)
        return self.orientation.values(self.memory.foreseen(values))

    @property
    def doubt(self) -> str | None:
        """Why the model's confidence certifies nothing, in words; None if it may. No stopping rule overrules it."""
        verdict = self.calibration.verdict
        if verdict in ("over-confident", "too early to say"):
            return f"{verdict}: {self.calibration.reason}"
        return None

    def _posterior(self) -> Posterior:
        return self.orientation.posterior(self.model.posterior)

    @cached_property
    def lock_in(self) -> LockIn | None:
        """An alarm if the run repeats one point although a better one may exist; otherwise None.

        The run repeats itself if the policy's last REPEATS queries were at the same place. A better point may exist if
        the simple regret exceeds `floor` with a probability of at least MISSED, or if the model cannot be trusted: its
        residuals are over-confident at an error of CERTAIN. Draws are made only if the run repeats itself.
        """
        chosen = np.array([t for t, trial in enumerate(self.trials) if trial.origin == "policy"], dtype=int)
        count = repeats(self.rows[chosen] / self.space.span, SAME)
        if count < REPEATS:
            return None
        since = int(chosen[-count]) + 1
        missed = 1.0 - self.regret().probability_below(self.floor)
        repeated = f"the last {count} queries were at one place"
        if missed >= MISSED:
            more = f"more than the noise, {self.floor:.3g}, is to be had with probability {missed:.0%}"
            return LockIn(since, missed, f"{repeated}, but {more}")
        verdict, reason = judge(self.calibration.ahead, CERTAIN)
        if verdict == "over-confident":
            return LockIn(since, missed, f"{repeated}, but the model is over-confident: {reason}")
        return None

    # What going on is worth

    @cached_property
    def noise_sd(self) -> float:
        """The standard deviation of the noise in units of y. Where y is transformed, that at the recommended point."""
        return self._in_units_of_y(math.sqrt(self.model.posterior.noise_var))

    @cached_property
    def floor(self) -> float:
        """The smallest regret that counts: the sd of the noise, or the resolution of the draws if that is larger."""
        (var,) = self.model.posterior.kernel.diagonal(self.model.recommended[None])
        return max(self.noise_sd, self._in_units_of_y(RESOLVED * math.sqrt(var)))

    def _in_units_of_y(self, sd: float) -> float:
        """A standard deviation at the recommended point, in units of y."""
        model = self.model
        if not model.warp.bends:
            return sd
        return model.in_units_of_y(float(model.posterior.mu(model.recommended)[0]), sd)[1]

    @cached_property
    @one_blas_thread
    def improvement(self) -> float:
        """max over x of E[(f(x) - f(recommended))^+] in units of y, from their joint law.

        This is the most that moving to another point can be expected to bring; it is 0 at the recommended point itself.
        On a finite set of m points it costs O(n^2 m). On a box x is found as the policy LogEI finds it. Where y is
        transformed, f(recommended) is replaced by its median, and the expectation is computed in units of y at the
        CLOSEST points with the largest improvement in units of the transformed y.
        """
        posterior, warp, row = self.model.posterior, self.model.warp, self.model.recommended
        best = float(posterior.mu(row)[0])
        state = State(noise_var=posterior.noise_var, best_observed=best, best_mean=best)
        z = self.space.rows if self.space.rows is not None else self._most_promising(posterior, state)
        if self.model.chance is not None:  # in the feasible part; where that is empty nothing is to be had
            z = np.concatenate([z[self.model.allowed(z)], row[None]])
        mu, var = moments_in_chunks(posterior, z)
        if not warp.bends:
            return float(EI("mean").score(mu, spread_of_difference(posterior, z, row), state).max())
        from scipy.special import ndtri

        top = np.argsort(-EI("mean").score(mu, var, state))[:CLOSEST]
        quantiles = ndtri((np.arange(200) + 0.5) / 200)
        values = warp.inverse(mu[top, None] + np.sqrt(var[top, None]) * quantiles)
        gains = np.maximum(values - warp.inverse(np.array([best])), 0.0)
        return float(gains.mean(axis=1).max())

    def _most_promising(self, posterior: Posterior, state: State) -> Array:
        """The point with the largest expected improvement, (1, d)."""
        assert isinstance(self.space, Parameters)
        screen = screen_of(self.space, self.setting.seed)
        objective = Objective(posterior, LogEI("mean"), state, chance=self.model.chance)
        rng = np.random.default_rng([self.setting.seed, self.n, 0, 2])
        known = best_observed(posterior)
        return best_point(objective, self.space, screen, objective(screen), known, rng).row[None]

    # What people read

    def __repr__(self) -> str:
        """The lines that need no draws of the regret, so it is cheap. `print(ledger)` shows all lines."""
        return aligned(self._lines())

    def _lines(self) -> list[Line]:
        chosen = [step.choice for step in self.steps if step.choice is not None]
        information = sum(step.information or 0.0 for step in self.steps)
        verdict = f"{self.calibration.verdict}: {self.calibration.reason}"
        lines = ledger_lines(self.n, len(chosen), chosen.count("explored"), information, verdict)
        return lines if self.outcomes is None else [*lines, ("failures", self._setbacks())]

    @property
    def infeasible(self) -> int:
        """How many of the values told came with a constraint that was broken."""
        return sum(not trial.feasible for trial in self.trials)

    def _setbacks(self) -> str:
        """How many trials failed, and why, and how many broke a constraint."""
        reasons = tally(trial.why for trial in self.failures if trial.why)
        failed = f"{len(self.failures)} failed" + (f" ({reasons})" if reasons != "none" else "")
        return f"{failed}, {self.infeasible} infeasible"

    def __str__(self) -> str:
        if not self.n:
            return "no value has been told"
        values, information, calibration, *setbacks = self._lines()
        simple, cumulative = self.regret().in_words
        lock_in = self.lock_in
        return aligned(
            [
                values,
                information,
                ("simple regret", simple),
                *([] if self.setting.priors.is_fixed else [not_covered(failures=bool(self.failures))]),
                ("cumulative", cumulative),
                ("one more", f"is expected to bring at most {self.improvement:.3g}; the noise is {self.noise_sd:.3g}"),
                calibration,
                ("lock-in", "none" if lock_in is None else lock_in.reason),
                *setbacks,
            ]
        )
