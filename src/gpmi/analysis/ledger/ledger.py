"""The ledger: what is known about a run, how certain it is, and what more evaluations are worth.

It is computed from the model and from what the trials recorded when they were chosen and told. It stores nothing of its
own and changes nothing. The regret needs joint draws of f, which are made when it is first read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from gpmi._support import checks
from gpmi._support.text import aligned, rough, tally
from gpmi._support.types import Array, Event, Observations, Point
from gpmi.analysis.ledger import facts
from gpmi.analysis.ledger.belief import Belief, PriorDraws, averages, believed, draw_priors_of
from gpmi.analysis.ledger.calibration import ENOUGH, OVER_CONFIDENT, Calibration, judge
from gpmi.analysis.ledger.contexts import ContextQueries
from gpmi.analysis.ledger.facts import Caveat, Fact, LockIn, RunLedger
from gpmi.analysis.ledger.gain import MOST as MOST_MORE
from gpmi.analysis.ledger.gain import Gain, draw_gain, expected_improvement
from gpmi.analysis.ledger.maxima import most_likely_better
from gpmi.analysis.ledger.options import OptionSummary, longest_idle, scarcest, summaries
from gpmi.analysis.ledger.regret import Regret, draw_regret, trailing_repeats, unknown_regret
from gpmi.analysis.ledger.steps import Step
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.posterior import Posterior
from gpmi.model.fitting.undetected_noise import UndetectedNoise, undetected_noise
from gpmi.model.model import Model, ModelSetting
from gpmi.model.orientation import Orientation
from gpmi.search.screen import screen_of
from gpmi.space import Space
from gpmi.trials import Trial
from gpmi.trials.feasibility import Outcomes

# The lock-in warning. Our choices, not tuned one by one. Together they find 84 of 85 lock-ins of GP-MI on 50 arms and
# give no warning in 100 runs of GP-UCB (docs/benchmarks/ledger.md).
REPEATS = 10  # the policy repeats itself if at least this many of its last queries were at one point
SAME = 1e-3  # two points closer than this, in widths of the space, count as one
MISSED = 0.25  # a repetition is a lock-in if the regret exceeds the noise with at least this probability,
CERTAIN = 0.002  # or if the model is too sure of itself at this error: 25 looks together then have an error of 5 %

RESOLVED = 1e-4  # prior sd: a smaller regret is not resolved. Ten times the error of a drawn value, see `gpmi.gp.paths`
# A smaller gain does not count, even without noise: this share of the distance from the mean of the values to the best.
# The range would be that of one very bad value. Our choice.
SMALLEST = 0.01
# A better point that is missed counts from this share of the smallest gain: noise hides a smaller gain from ten more
# evaluations, but it counts at every later use of the point (docs/benchmarks/can_stop.md).
NEAR = 0.25
_PART = 4  # every fourth draw of the prior is examined before the others: our choice
_CLEARLY = 2.5  # times the allowed probability is clearly too much: 64 draws estimate 0.05 with an sd of 0.03
# With a learned prior nothing is claimed before NEEDED values for each parameter and one more parameter: with fewer the
# interval covers too seldom (docs/benchmarks/belief.md).
NEEDED = 3


@dataclass(frozen=True, eq=False)
class LedgerCache:
    """Results that the ledgers of one run share, so that the next ledger does not recompute them."""

    regrets: dict[Any, Regret]  # by the number of values, of outcomes if some failed, and the fixed coordinates
    steps: dict[int, Step]  # the steps before the last, by t: several threads may fill it at the same time
    draws: dict[int, PriorDraws] = field(default_factory=dict)  # by the number of values


def needed_values(space: Space) -> int:
    """Return the number of values before which a learned prior on a space supports no interval."""
    enough = NEEDED * (space.parameter_count + 1)
    rows = space.target.rows
    return enough if rows is None else min(enough, max(2, len(rows)))


@dataclass(frozen=True, eq=False, repr=False)
class Ledger(RunLedger):
    """The ledger of a run after n values: `steps`, `regret(t)`, `calibration`, `lock_in`, `improvement`."""

    trials: tuple[Trial, ...]  # those with values, in the order in which the values came
    observed: Observations  # their values with coordinates and noise
    outcomes: Outcomes | None  # failures and measured constraints, if there are any
    failures: tuple[Trial, ...]  # those that failed
    events: tuple[tuple[int, Event], ...]  # each with the number of values at that time
    orientation: Orientation
    setting: ModelSetting
    earlier: tuple[Model | None, ...]  # models of the same run after fewer values, for `Model.after` to extend
    cache: LedgerCache
    open_noise: bool = False  # whether the belief takes noise for as likely as none (`LOG_OPEN_NOISE`)
    # Where the space has a fidelity, `trials` and `observed` are those at its target. Models know all values:
    evidence: Observations | None = None
    ends: tuple[int, ...] = ()  # for each value at the target, how many of all values there were with it
    doubtful: tuple[Trial, ...] = ()  # those with a value that does not fit the others
    nothing: ClassVar[str] = "no value has been told"

    @property
    def n(self) -> int:
        """The number of values."""
        return len(self.trials)

    @property
    def space(self) -> Space:
        """The space of the run."""
        return self.setting.space

    @cached_property
    def y(self) -> Array:
        """The values, (n,)."""
        return self.observed.y.copy()

    @cached_property
    def values(self) -> Array:
        """The values, oriented so that larger is better, (n,)."""
        return self.orientation.values(self.y)

    @cached_property
    def _oriented(self) -> Observations:
        """All values that models know, oriented."""
        evidence = self.observed if self.evidence is None else self.evidence
        return replace(evidence, y=self.values if evidence is self.observed else self.orientation.values(evidence.y))

    def _known_after(self, t: int) -> int:
        """Return how many values models know after the first t at the target."""
        return t if self.evidence is None else self.ends[t - 1]

    def _part(self, fixed: Mapping[Any, Any] | None) -> Space:
        """Return the part of the space that a question is about: at the target, with these fixed coordinates."""
        self.space.check_at_target(fixed)
        return self.space.target.with_fixed(fixed) if fixed else self.space.target

    @cached_property
    def _detrended(self) -> Array:
        """The oriented values minus a known mean, (n,)."""
        return self.setting.detrended(replace(self.observed, y=self.values)).y

    @cached_property
    def rows(self) -> Array:
        """Their coordinates, (n, d)."""
        return self.observed.x.reshape(self.n, self.space.dim)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """One step for each value. O(1) for each step that was not read before."""
        past = self.cache.steps
        for t in range(1, self.n):
            if t not in past:
                past[t] = self._step(t)
        return (*(past[t] for t in range(1, self.n)), self._step(self.n)) if self.n else ()

    def _step(self, t: int) -> Step:
        return Step.of(t, self.trials[t - 1], tuple(event for told, event in self.events if max(1, told) == t))

    # The model

    @cached_property
    @one_blas_thread
    def model(self) -> Model:
        """The model after all values, oriented so that larger is better."""
        return Model.after(self.setting, self._oriented, *self.earlier).with_outcomes(self.outcomes)

    @one_blas_thread
    def model_after(self, t: int) -> Model:
        """Return the model after the first t values."""
        if not self.n:
            raise ValueError("no value has been told, so there is no model; tell one first")
        if not 1 <= t <= self.n:
            raise ValueError(f"t is {t}, but {self.n} values have been told; give a number between 1 and that")
        if t == self.n:
            return self.model
        evidence = self._oriented.first(self._known_after(t))
        return Model.after(self.setting, evidence).with_outcomes(self._outcomes_after(t))

    def _outcomes_after(self, t: int) -> Outcomes | None:
        """Return the failures and constraints after the first t values; after all of them, the present ones."""
        if self.outcomes is None or (self.evidence is not None and t >= self.n):
            return self.outcomes
        fidelity = self.space.fidelity
        with_levels = fidelity is not None and not fidelity.fidelity.has_steps  # then every value is that of a trial
        return self.outcomes.up_to(self._known_after(t) if with_levels else t)

    # How far from the best

    @one_blas_thread
    def regret(self, t: int | None = None, *, fixed: Mapping[Any, Any] | None = None) -> Regret:
        """Return joint draws of the regrets after the first t values (all by default), under the model of that moment.

        These are draws of max f over the space, of f at the point recommended at that moment, and of f at the policy's
        queries. A query with fixed coordinates is compared with max f under the same coordinates (`contexts`). With
        `fixed` the regret is that of the points with these coordinates: of the point that `recommend(fixed=...)`
        returns, and of the queries with exactly these fixed.

        `maxima` states the cost and the approximations. A learned prior is averaged over (`belief`). Before
        `needed` values, or while all are equal, the regret is unknown. The random numbers come from (seed, t), so a
        second reading gives the same draws, and reading changes no suggestion.
        """
        t = self.n if t is None else checks.whole("t", t, 1)
        part = self._part(fixed)
        outcomes, regrets = self._outcomes_after(min(t, self.n)), self.cache.regrets
        key = t, () if outcomes is None else outcomes.size, part.fixed_coordinates
        if key not in regrets:
            model = self.model_after(t)
            rng = np.random.default_rng([self.setting.seed, t, 0, 1])  # no suggestion draws from it
            if (why := self._too_little(t)) is not None:
                regrets[key] = unknown_regret(model, part, why)
            else:
                queries, belief = self._queries_by_context(t), self.belief if t == self.n else self._belief(model)
                rows = [context.at for context in queries if context.space.fixed_coordinates == part.fixed_coordinates]
                whole = self.space.target.fixed_coordinates
                has_contexts = any(context.space.fixed_coordinates != whole for context in queries)
                regrets[key] = draw_regret(
                    model,
                    belief.posteriors,
                    rows[0] if rows else self.rows[:0],
                    self.orientation.normals(rng),
                    within=part,
                    contexts=queries if has_contexts and part.fixed_coordinates == whole else (),
                )
            regrets[key] = replace(regrets[key], t=t)
        return regrets[key]

    def _queries_by_context(self, t: int) -> list[ContextQueries]:
        """Return the policy's queries among the first t values, grouped by their fixed coordinates."""
        contexts: dict[Any, tuple[Space, list[int]]] = {}
        for i, trial in enumerate(self.trials[:t]):
            if trial.origin == "policy":
                part = self._part(trial.fixed)
                contexts.setdefault(part.fixed_coordinates, (part, []))[1].append(i)
        return [ContextQueries(part, self.rows[:t][numbers]) for part, numbers in contexts.values()]

    @property
    def needed(self) -> int:
        """The number of values before which a learned prior supports no interval and no advice to stop."""
        if self.setting.priors.is_fixed:
            return 1
        return needed_values(self.space)

    @property
    def enough(self) -> int:
        """How many values it takes to answer: what the interval needs, and what the check of the model needs.

        With a learned prior, n values have n - 1 residuals.
        """
        return self.needed if self.setting.priors.is_fixed else max(self.needed, ENOUGH + 1)

    @property
    def lacking(self) -> int:
        """How many more values it takes to answer; 0 if not their number is what is wrong."""
        return self.enough - self.n if self.n < self.needed else 0

    @property
    def unknown(self) -> str | None:
        """Why the values support no interval yet, as text; None if they do."""
        return self._too_little(self.n)

    def _too_little(self, t: int) -> str | None:
        """Return why the first t values support no interval; None if they do."""
        if t < self.needed:
            return f"not known yet: it takes {self.needed} values to say, and there are {t}"
        if not self.setting.priors.is_fixed and bool(np.ptp(self._detrended[:t]) == 0.0):
            return "not known yet: all values are equal, so they do not show how much f varies"
        return None

    @cached_property
    @one_blas_thread
    def belief(self) -> Belief:
        """What is known about f after all values, oriented so that larger is better: every number here comes from it.

        With a fixed prior it is the model's posterior, and the residuals are those recorded when the values came. A
        learned prior is averaged over, which costs about 30 suggestions.
        """
        return self._belief(self.model)

    def _belief(self, model: Model) -> Belief:
        """Return the belief after the values of a model, the first n of this run."""
        if not averages(model):
            first = self.trials if self.evidence is not None else self.trials[: model.n]
            surprises = [trial.surprise for trial in first if trial.surprise is not None]
            return Belief(model.mixture, self.orientation.values(np.array(surprises)))
        observed, draws = self._oriented.first(model.n), self.cache.draws
        if model.n not in draws:
            draws[model.n] = draw_priors_of(model, observed, open_noise=self.open_noise)
        return believed(model, observed, draws[model.n])

    @one_blas_thread
    def is_below(self, eps: float, level: float = 0.95, *, fixed: Mapping[Any, Any] | None = None) -> bool:
        """Return whether the values certify that the simple regret is at most eps with probability `level`.

        Never if there is a `doubt`. P(regret > eps) >= P(f(x) - f(recommended) > eps) P(x works) for every x. So if
        that is too large for one point, the answer is no, and no draws are made. Where draws are costly, a part of them
        is made next, and the rest only if the part does not clearly say no.
        """
        level, model = checks.probability("level", level), self.model
        if self._too_little(self.n) is not None:
            return False
        part = self._part(fixed)
        recommended = model.recommendation.row_in(part)
        z = part.rows if part.rows is not None else screen_of(part, self.setting.seed)
        works = None if model.chance is None else model.chance.works(z)
        straight = not (model.warp.bends or model.setting.bounds.limited)
        if straight and most_likely_better((model.posterior,), z, recommended, eps, works) > 1.0 - level:
            return False
        if self.doubt is not None:
            return False
        if not self.setting.priors.is_fixed or part.rows is None:
            posteriors, allowed = self.belief.posteriors[::_PART], _CLEARLY * (1.0 - level)
            if straight and most_likely_better(posteriors, z, recommended, eps, works) > allowed:
                return False
            rng = np.random.default_rng([self.setting.seed, self.n, 0, 5])
            drawn = draw_regret(
                model, posteriors, self.rows[:0], self.orientation.normals(rng), parts=_PART, within=part
            )
            if 1.0 - drawn.probability_below(eps) > allowed:
                return False
        return self.regret(fixed=fixed).probability_below(eps) >= level

    # Whether the confidence is justified

    @cached_property
    def calibration(self) -> Calibration:
        """The residuals of the values and a verdict on them. `left_out` costs O(n^3) when it is read.

        With a fixed prior the residuals are the surprises of the steps, O(n). With a learned prior they are those of
        the belief, which the verdict is about.
        """
        question = facts.questions(self.doubtful) or None
        if averages(self.model) and self._too_little(self.n) is not None:
            return Calibration(np.empty(0), self._posterior, question)
        return Calibration(self.orientation.values(self.belief.residuals), self._posterior, question)

    @property
    def calibrations(self) -> Mapping[str, Calibration]:
        """The calibration, as that of the output without a name."""
        return {"": self.calibration}

    def _posterior(self) -> Posterior:
        return self.orientation.posterior(self.model.posterior)

    def chance_of_better(self) -> float:
        """Return the probability that a point is better than the recommended one by what counts; 0 if not known."""
        if not self.n or not self.regret().known:
            return 0.0
        return 1.0 - self.regret().probability_below(self.smallest_gain)

    @cached_property
    def lock_in(self) -> LockIn | None:
        """A warning if the run repeats one point although a better one may exist; otherwise None.

        The run repeats itself if the policy's last REPEATS queries were at the same point. A better point may exist in
        two cases: if the simple regret exceeds `floor` with a probability of at least MISSED, or if the model cannot be
        trusted, because its residuals are too large at an error of CERTAIN. Draws are made only if the run repeats
        itself.
        """
        chosen = np.array([t for t, trial in enumerate(self.trials) if trial.origin == "policy"], dtype=int)
        count = trailing_repeats(self.rows[chosen] / self.space.span, SAME)
        if count < REPEATS:
            return None
        since = int(chosen[-count]) + 1
        missed = 1.0 - self.regret().probability_below(self.floor)
        repeated = f"the last {count} queries were at one point"
        if missed >= MISSED:
            gain = f"a gain above the noise, {self.floor:.3g}, is possible with probability {missed:.0%}"
            return LockIn(since, missed, f"{repeated}, but {gain}")
        verdict, reason = judge(self.calibration.ahead, CERTAIN)
        if verdict == OVER_CONFIDENT:
            return LockIn(since, missed, f"{repeated}, but the model is {verdict}: {reason}")
        return None

    # What is known of each option

    @cached_property
    @one_blas_thread
    def options(self) -> tuple[OptionSummary, ...]:
        """What is known of each option of each choice: its best setting, its values, its chance to hold the best.

        O(n m) for each option on a finite set of m points, a multi-start climb elsewhere.
        """
        where = self.regret().where if self.unknown is None else None
        return tuple(summaries(self.space, self.rows, where, self._at_best))

    @property
    def scarcest(self) -> OptionSummary | None:
        """The option with the fewest values; None without a choice."""
        return scarcest(self.space, self.rows)

    @property
    def longest_idle(self) -> int:
        """How many values came after the last one of the option that was tried least lately; 0 without a choice."""
        return longest_idle(self.space, self.rows)

    def _at_best(self, part: Space) -> tuple[Point, float, float]:
        row = self.model.recommendation.row_in(part)
        low, middle, high = self.believed_at(row)
        return self.space.decode(row), middle, 0.5 * (high - low)

    def believed_at(self, row: Array) -> tuple[float, float, float]:
        """Return the quantiles of f at a point (d,) at -1, 0 and 1 standard deviations, in units of y."""
        from scipy.special import ndtr

        quantiles = self.model.to_units_of_y(self.belief.quantiles(row, ndtr(np.array([-1.0, 0.0, 1.0]))))
        low, middle, high = np.sort(self.orientation.values(quantiles)).tolist()
        return low, middle, high

    # What further evaluations are worth

    @cached_property
    def noise_sd(self) -> float:
        """The standard deviation of the noise in units of y. If y is transformed, the one at the recommended point."""
        is_known = self._too_little(self.n) is None
        return self._in_units_of_y(math.sqrt(self.belief.noise_var if is_known else self.model.posterior.noise_var))

    @cached_property
    def floor(self) -> float:
        """The smallest regret that counts: the sd of the noise, or the resolution of the draws if that is larger."""
        (var,) = self.model.posterior.kernel.diagonal(self.model.recommendation.row[None])
        return max(self.noise_sd, self._in_units_of_y(RESOLVED * math.sqrt(var)))

    @property
    def smallest_gain(self) -> float:
        """The smallest gain that counts: the sd of the noise, or 1 % of the way from the mean value to the best one."""
        return max(self.noise_sd, self._small)

    @property
    def _small(self) -> float:
        """1 % of the way from the mean value to the best one."""
        values = self.values[[trial.feasible for trial in self.trials]] if self.infeasible else self.values
        return SMALLEST * float(values.max() - values.mean()) if len(values) else 0.0

    @property
    def _is_noisy(self) -> bool:
        """Whether the noise hides gains that would count without it."""
        return self.noise_sd > self._small

    def _in_units_of_y(self, sd: float) -> float:
        """Convert a standard deviation at the recommended point to units of y."""
        model = self.model
        if not model.warp.bends:
            return sd
        return model.in_units_of_y(float(model.posterior.mu(model.recommendation.row)[0]), sd)[1]

    @property
    def gain_unit(self) -> float:
        """The size of a gain that a user states as 1: 1 in units of y."""
        return 1.0

    @property
    def draws_are_cheap(self) -> bool:
        """Whether draws cost less than a suggestion: those of a given prior on a finite set."""
        return self.setting.priors.is_fixed and self.space.rows is not None

    def stagnates(self, evaluations: int) -> bool:
        """Return whether this many last values brought no new best value. Infeasible values are never the best."""
        values = np.where([trial.feasible for trial in self.trials], self.values, -np.inf)
        return self.n > 0 and self.n - 1 - int(np.argmax(values)) >= evaluations

    @one_blas_thread
    def undetected_noise(self) -> UndetectedNoise | None:
        """Return the noise that may exist although the model has none (`undetected_noise`); None if it has some."""
        detrended = self.setting.detrended(replace(self.observed, y=self.values))
        return undetected_noise(self.setting.priors, detrended, self.model.prior)

    @one_blas_thread
    def gain(self, evaluations: int = 10, *, fixed: Mapping[Any, Any] | None = None) -> Gain:
        """Return draws of what this many further evaluations would add to f at the recommended point (`draw_gain`).

        With `fixed` both the recommended point and the evaluations have these coordinates.
        """
        evaluations = checks.whole("evaluations", evaluations, 1, MOST_MORE)
        regret = self.regret(fixed=fixed)
        if not regret.known:
            return Gain(evaluations, np.empty(0))
        part = self._part(fixed)
        key = evaluations, part.fixed_coordinates
        if key not in self._gains:
            rng = np.random.default_rng([self.setting.seed, self.n, evaluations, 2])  # no suggestion draws from it
            normals, row = self.orientation.normals(rng), self.model.recommendation.row_in(part)
            drawn = draw_gain(self.model, self.belief, row, regret.where, evaluations, normals)
            self._gains[key] = replace(drawn, is_damped=self._is_noisy and not self.setting.priors.is_fixed)
        return self._gains[key]

    @cached_property
    def _gains(self) -> dict[Any, Gain]:
        return {}

    @cached_property
    def improvement(self) -> float:
        """max over x of E[(f(x) - f(recommended))^+] in units of y: the largest expected gain of moving elsewhere.

        On a box x is one of the maxima of the drawn functions. Where trials fail the gain is weighted by the
        probability that x works. Infinite if there are too few values to say.
        """
        regret = self.regret()
        if not regret.known:
            return math.inf
        rows = self.space.target.rows
        z = regret.where if rows is None else rows
        return expected_improvement(self.model, self.belief, z)

    # Words

    def amount(self, size: float) -> str:
        """Return a gain that a user states, as text."""
        return f"{size:g}"

    @property
    def least_gain(self) -> str:
        """The smallest gain that counts, as text."""
        return rough(self.smallest_gain, 2)

    def improvement_in_words(self, unit: str) -> str:
        """Return what a gain that counts does, as text for people, in the unit of the result."""
        noise_var = self.setting.priors.noise_var
        given = None if noise_var is None else noise_var**0.5
        return facts.improvement(self.smallest_gain, self.noise_sd, given, unit)

    def caveat(self, unit: str = "") -> Caveat:
        """Return what the advice to stop does not exclude: a better point that takes longer to find."""
        least = NEAR * self.smallest_gain
        missed = 1.0 - self.regret().probability_below(least)
        return facts.better_point(missed, least, self.regret().interval()[1], unit)

    def run_facts(self) -> list[Fact]:
        """Return how many values there are."""
        choices = [step.choice for step in self.steps if step.choice is not None]
        return [facts.values(self.n, len(choices), choices.count("explored"))]

    def missing_fact(self) -> Fact:
        """Return how far the best possible value may be."""
        return facts.distance(*self.regret().interval())

    def noise_fact(self) -> Fact:
        """Return the noise, and how sure it is."""
        low, high = (self._in_units_of_y(math.sqrt(var)) for var in self.belief.noise_vars)
        return facts.noise(self.noise_sd, (low, high))

    def other_facts(self) -> list[Fact]:
        """Return the regrets, what the values say about f, and whether to trust the model."""
        regrets = []
        if self.unknown is None:
            regret, learned = self.regret(), not self.setting.priors.is_fixed
            limits = regret.interval() if regret.known else None
            regrets = facts.regrets(limits, *regret.in_words, learned=learned)
        reason = None if self.lock_in is None else self.lock_in.reason
        return [*regrets, *self._model_facts(), facts.lock_in(reason)]

    def _model_facts(self) -> list[Fact]:
        """Return what needs no draws of the regret."""
        information = facts.information(sum(step.information or 0.0 for step in self.steps))
        reasons = tally(trial.why for trial in self.failures if trial.why)
        failures = facts.failures(len(self.failures), reasons, self.infeasible)
        return [information, *facts.calibrations(self), *([failures] if self.outcomes is not None else [])]

    @property
    def infeasible(self) -> int:
        """How many of the values came with a broken constraint."""
        return sum(trial.is_infeasible for trial in self.trials)

    def __repr__(self) -> str:
        """Return the statistics that need no draws of the regret. `print(ledger)` says whether to stop."""
        return aligned([(fact.title, fact.statistics) for fact in (*self.run_facts(), *self._model_facts())])


def of_value(ledger: RunLedger, refusal: str) -> Ledger:
    """Return the ledger of a single value; that of several objectives raises a ValueError with this text."""
    if not isinstance(ledger, Ledger):
        raise ValueError(refusal)
    return ledger
