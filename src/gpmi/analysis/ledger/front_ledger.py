"""The ledger of a run with several objectives: its hypervolume, how much is still to be had, and whether to stop.

The hypervolume is the volume of what the front dominates above a reference that does not move, so numbers of one run
can be compared. Everything else comes from drawn fronts (`front_draws`), under draws of the learned priors (`belief`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array
from gpmi.analysis.conditions import WIDER
from gpmi.analysis.front import FrontAnalysis
from gpmi.analysis.ledger import facts
from gpmi.analysis.ledger.calibration import ENOUGH, Calibration
from gpmi.analysis.ledger.facts import Caveat, Fact, RunLedger
from gpmi.analysis.ledger.front_draws import DRAWS, FrontDraws, FrontProblem, Rays, Sides
from gpmi.analysis.ledger.front_gain import draw_front_gain
from gpmi.analysis.ledger.gain import MOST as MOST_MORE
from gpmi.analysis.ledger.gain import Gain
from gpmi.analysis.ledger.ledger import Ledger, needed_values
from gpmi.analysis.ledger.options import OptionSummary, scarcest
from gpmi.analysis.ledger.regret import Interval
from gpmi.gp.posterior import Posterior
from gpmi.policies.front import hypervolume, non_dominated
from gpmi.policies.objectives import MOST_EXACT
from gpmi.space import Space
from gpmi.trials import Trial
from gpmi.trials.goal_kinds import Match, Max, Objective
from gpmi.trials.goals import Goals
from gpmi.trials.value_bounds import OPEN

FIRST = 4  # trials behind a reference that was not stated, at least; our choice
MARGIN = 0.1  # of their range, below the worst of them: the field's usual margin
SMALLEST = 0.01  # a gain of less than this share of the hypervolume does not count; our choice
MANY_RAYS = 1024  # behind the hypervolume of more than MOST_EXACT objectives; our choice
LEVEL = 0.9  # of the bands


@dataclass(frozen=True, eq=False, repr=False)
class Missing:
    """Draws of the hypervolume that is still to be had: that of the drawn front minus that of our own front."""

    draws: Array  # (S,), in units of hypervolume; (0,) if it is not known
    possible: Array  # (S,), the hypervolume of the drawn front
    how: str  # how it was drawn; if it is not known, why
    wider: float = 1.0  # the factor of the distance from the median to a bound
    most: float = math.inf  # what is missing if the front is as good as the bounds of the outputs allow

    @property
    def known(self) -> bool:
        """Whether there are enough values to say."""
        return len(self.draws) > 0

    @property
    def median(self) -> float:
        """The median; nan if it is not known."""
        return float(np.median(self.draws)) if self.known else math.nan

    def interval(self, level: float = 0.95) -> Interval:
        """Return the credible interval [0, q(level)]; [0, inf] if it is not known."""
        level = checks.probability("level", level)
        return Interval(0.0, min(self._bound(self.draws, level), self.most) if self.known else math.inf)

    def share(self, level: float = 0.95) -> Interval:
        """Return the interval [0, q(level)] of what is missing as a share of all that can be had; [0, 1] if unknown."""
        level = checks.probability("level", level)
        if not self.known:
            return Interval(0.0, 1.0)
        shares = self.draws / np.where(self.possible > 0.0, self.possible, 1.0)
        return Interval(0.0, min(self._bound(shares, level), 1.0))

    def _bound(self, draws: Array, level: float) -> float:
        middle, bound = np.quantile(draws, [0.5, level]).tolist()
        return float(middle + self.wider * (bound - middle))

    def __repr__(self) -> str:
        if not self.known:
            return f"Missing({self.how})"
        return f"Missing({facts.volume_missing(self.interval()[1], self.median)})"


@dataclass(frozen=True, eq=False)
class FrontBands:
    """Where the front of two objectives lies: its crossings with rays from the reference, and how uncertain they are.

    With probability `level` a ray crosses the true front between its points in `low` and `high`. Points are in the
    units of the outputs; the objective of a target is the distance from it.
    """

    names: tuple[str, str]
    low: Array  # (W, 2)
    median: Array  # (W, 2)
    high: Array  # (W, 2)
    level: float = LEVEL


@dataclass(frozen=True, eq=False, repr=False)
class FrontLedger(RunLedger):
    """The ledger of a run with several objectives: `hypervolume`, `history`, `missing`, `gain`, `front_bands`."""

    analysis: FrontAnalysis
    n_init: int  # the size of the initial design
    nothing: ClassVar[str] = "no trial has all objectives yet"

    @property
    def goals(self) -> Goals:
        """The goals of the run."""
        return self.analysis.goals

    @property
    def space(self) -> Space:
        """The space of the run."""
        return self.analysis.space

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials with a value of every objective, in the order of their outcomes."""
        return self.analysis.complete

    @property
    def doubtful(self) -> tuple[Trial, ...]:
        """The trials with a value that does not fit the others, and that nobody has answered for yet."""
        return tuple(trial for trial in self.analysis.trials if trial.doubt is not None)

    @property
    def n(self) -> int:
        """The number of these trials."""
        return len(self.trials)

    @property
    def front(self) -> tuple[Trial, ...]:
        """The trials that no other trial beats in every objective (`FrontAnalysis.front`)."""
        return self.analysis.front

    @property
    def outputs(self) -> Mapping[str, Ledger]:
        """The ledger of each output with a value, as if it were the only one."""
        return self.analysis.outputs

    # The hypervolume so far

    @cached_property
    def reference(self) -> Mapping[str, float] | None:
        """The reference by objective, in units of the output, or as a distance from a target; None if not known yet.

        It is what was stated as acceptable. Where nothing was, it is below the worst value of the first trials by 10 %
        of their range: as many trials as the initial design has. It stays, unless one of these is corrected, or one of
        its outputs comes late.
        """
        oriented = self._reference
        if oriented is None:
            return None
        return dict(zip(self.goals.objectives, self._shown(oriented[None])[0].tolist(), strict=True))

    @cached_property
    def _reference(self) -> Array | None:
        """The same, oriented so that larger is better, (k,)."""
        stated = [goal.reference for goal in self.goals.objectives.values()]
        if None not in stated:
            return np.array(stated, dtype=float)
        first = self.trials[: self._first]
        if len(first) < self._first:
            return None
        told = [[trial.outputs[name] for name in self.goals.objectives] for trial in first]
        values = np.stack([g.oriented(y) for (_, g), y in zip(self._objectives, np.array(told).T, strict=True)], axis=1)
        worst = np.maximum(values.min(axis=0) - MARGIN * np.ptp(values, axis=0), self._extremes[0])
        return np.array([low if limit is None else limit for limit, low in zip(stated, worst.tolist(), strict=True)])

    @cached_property
    def _extremes(self) -> tuple[Array, Array]:
        """The worst and the best possible value of each objective, oriented, (k,) both; infinite without bounds."""
        worst, best = [], []
        for name, goal in self._objectives:
            model = self.analysis.models.get(name)
            bounds = OPEN if model is None else model.model.setting.bounds
            if isinstance(goal, Match):
                worst.append(-max(goal.target - bounds.lo, bounds.hi - goal.target))
                best.append(0.0 if bounds.limited else np.inf)
            else:
                worst.append(bounds.lo)
                best.append(bounds.hi)
        return np.array(worst), np.array(best)

    @property
    def _first(self) -> int:
        return max(self.n_init, FIRST)

    @property
    def _objectives(self) -> list[tuple[str, Objective]]:
        return list(self.goals.objectives.items())

    @property
    def reference_words(self) -> str:
        """Where the reference comes from, as a sentence."""
        free = [name for name, goal in self._objectives if goal.reference is None]
        if not free:
            return "the reference is what the goals state as acceptable"
        goal = self.goals[free[0]]
        example = f"gpmi.{'Max(at_least' if isinstance(goal, Max) else 'Min(at_most'}=...)"
        worst = f"10 % beyond the worst of the first {self._first} trials"
        return f"the reference of {', '.join(free)} is {worst}; {example} states what you would still accept"

    @cached_property
    def hypervolume(self) -> float:
        """The hypervolume of the front; under noise of its posterior means. nan while the reference is not known."""
        return float(self.history[-1]) if self.n else math.nan

    @cached_property
    def history(self) -> Array:
        """The hypervolume after each of `trials`, (n,); nan while the reference is not known.

        All of it is computed with the values as they are known now: under noise, posterior means given all values.
        """
        if self._reference is None:
            return np.full(self.n, np.nan)
        trials, values = self.analysis.known
        at = {trial.number: i for i, trial in enumerate(trials)}
        volumes, front, volume = np.zeros(self.n), np.empty((0, len(self._reference))), 0.0
        for t, trial in enumerate(self.trials):
            i = at.get(trial.number)  # None for an infeasible trial, and for a repeat
            if i is not None and np.all(values[i] > self._reference) and not np.any(np.all(front >= values[i], axis=1)):
                front = np.concatenate([front, values[i : i + 1]])
                front = front[non_dominated(front)]
                volume = self._volume(front)
            volumes[t] = volume
        return volumes

    def _volume(self, front: Array) -> float:
        assert self._reference is not None
        if front.shape[1] <= MOST_EXACT:
            return hypervolume(front, self._reference)
        rays = Rays.of(self._reference, np.ptp(np.concatenate([front, self._reference[None]]), axis=0), MANY_RAYS)
        return float(rays.volume(rays.heights(front)))

    def _shown(self, values: Array) -> Array:
        """Return objectives (n, k) as a user reads them: values of the outputs, or distances from a target."""
        signs = np.array([1.0 if goal.larger_is_better else -1.0 for _, goal in self._objectives])
        result: Array = signs * values + 0.0  # + 0.0: no minus before a zero
        return result

    # What is still to be had

    @property
    def needed(self) -> int:
        """The number of values before which learned priors support no interval and no advice to stop."""
        needed = [self.outputs[name].needed for name in self._used if name in self.outputs]
        return max([*needed, 1 if self._is_stated else self._first])

    @property
    def _is_stated(self) -> bool:
        return all(goal.reference is not None for _, goal in self._objectives)

    @property
    def _used(self) -> list[str]:
        """The outputs behind every statement: objectives and limits."""
        return [*self.goals.objectives, *self.goals.limits]

    @property
    def lacking(self) -> int:
        """How many more results it takes to answer; 0 if not their number is what is wrong.

        An output without any value needs as many as the others.
        """
        ledgers = [self.outputs[name] for name in self._used if name in self.outputs]
        if not ledgers:  # no output has a model that would say whether its prior is learned: it usually is
            return max(self.needed, needed_values(self.space), ENOUGH + 1)
        missing = [ledger.lacking for ledger in ledgers]
        if len(ledgers) < len(self._used):
            missing.append(max(ledger.enough for ledger in ledgers))
        return max(missing) or max(0, self.needed - self.n)

    @cached_property
    def unknown(self) -> str | None:
        """Why the values support no statement yet, as text; None if they do."""
        for name in self._used:
            if name not in self.outputs:
                return f"not known yet: {name} has no value"
            if (why := self.outputs[name].unknown) is not None:
                return f"{why} ({name})"
        if self._reference is None:
            return f"not known yet: it takes {self._first} trials with all objectives to say, and there are {self.n}"
        return None

    @cached_property
    def missing(self) -> Missing:
        """Draws of the hypervolume that is still to be had, under the drawn fronts."""
        if self.unknown is not None:
            return Missing(np.empty(0), np.empty(0), self.unknown)
        drawn = self._draws
        assert self._reference is not None
        room = self._extremes[1] - self._reference
        most = max(float(np.prod(room)) - self.hypervolume, 0.0) if np.isfinite(room).all() else math.inf
        return Missing(drawn.missing, drawn.possible, drawn.how, self._wider, most)

    @property
    def _wider(self) -> float:
        """The factor of intervals: with a learned prior they are wider (`conditions.WIDER`)."""
        fixed = [self.analysis.models[name].model.setting.priors.is_fixed for name in self._used]
        return 1.0 if all(fixed) else WIDER

    @property
    def _draws(self) -> FrontDraws:
        """The drawn fronts after all values."""
        return self._drawn(self._problem, tuple(self.goals.objectives))

    def _drawn(self, problem: FrontProblem, names: tuple[str, ...]) -> FrontDraws:
        key = ("fronts", *self._state, names)
        if key not in self.analysis.cache.draws:
            rng = np.random.default_rng([self.analysis.seed, self.n, 0, 11])  # no suggestion draws from it
            self.analysis.cache.draws[key] = problem.draw(DRAWS, rng)
        draws: FrontDraws = self.analysis.cache.draws[key]
        return draws

    @property
    def _state(self) -> tuple[int, ...]:
        """What the draws depend on: the numbers of values of all outputs, and of outcomes."""
        return len(self.analysis.trials), *(len(output.numbers) for output in self.analysis.models.values())

    @cached_property
    def _problem(self) -> FrontProblem:
        return self._problem_of(tuple(self.goals.objectives))

    def _problem_of(self, names: tuple[str, ...]) -> FrontProblem:
        """Return the problem of drawing the front of some objectives, where the others are as good as stated."""
        assert self._reference is not None
        analysis, used = self.analysis, self._used
        mixtures: list[tuple[Posterior, ...]] = [self.outputs[name].belief.posteriors for name in used]
        central = [analysis.models[name].model.posterior for name in used]
        scales = [float(np.sqrt(posterior.kernel.diagonal(posterior.x[:1])[0])) for posterior in central]
        reference = dict(zip(self.goals.objectives, self._reference.tolist(), strict=True))
        span = dict(zip(self.goals.objectives, self._span.tolist(), strict=True))
        sides: list[tuple[int, float, float, float, int]] = []  # function, sign, offset, unit, objective
        for number, name in enumerate(used):
            goal: Any = self.goals[name]
            if name in names:
                objective, unit, low = names.index(name), span[name], reference[name]
            else:
                objective, unit, low = -1, scales[number], goal.reference
            if low is None:
                continue
            if isinstance(goal, Match):
                sides += [(number, sign, -sign * goal.target - low, unit, objective) for sign in (1.0, -1.0)]
            else:
                sides.append((number, 1.0, -low, unit, objective))
        for requirement in () if analysis.success is None else analysis.success.requirements:
            mixtures.append((requirement.posterior,))
            central.append(requirement.posterior)
            sides.append((len(central) - 1, requirement.sign, -requirement.sign * requirement.limit, 1.0, -1))
        columns = [np.array(column) for column in zip(*sides, strict=True)]
        best = dict(zip(self.goals.objectives, self._extremes[1].tolist(), strict=True))
        rays = Rays.of(
            np.array([reference[name] for name in names]),
            np.array([span[name] for name in names]),
            best=np.array([best[name] for name in names]),
        )
        front = np.array([self.space.encode(trial.x) for trial in self.front]).reshape(-1, self.space.dim)
        return FrontProblem(
            tuple(mixtures), tuple(central), Sides(*columns), rays, self.space, front,
            analysis.seed,
        )  # fmt: skip

    @cached_property
    def _span(self) -> Array:
        """The unit of each objective, (k,): from the reference to the best value known, or the range of the values."""
        assert self._reference is not None
        values = self.analysis.values_at(list(self.trials), np.array([self.space.encode(t.x) for t in self.trials]))
        span = np.maximum(values.max(axis=0) - self._reference, np.ptp(values, axis=0))
        return np.where(span > 0.0, span, 1.0)

    def front_bands(self, first: str | None = None, second: str | None = None) -> FrontBands | None:
        """Return where the front of two objectives lies, by default the first two; None while it is not known.

        With three or more objectives it is the front of these two alone, where the others are at least acceptable.
        """
        names = list(self.goals.objectives)
        if len(names) < 2:
            raise ValueError(f"{names[0]} is the only objective, so there is no front; read missing")
        first = names[0] if first is None else self._objective(first)
        second = next(name for name in names if name != first) if second is None else self._objective(second)
        if first == second:
            raise ValueError(f"first and second are both {first!r}; give two objectives of {', '.join(names)}")
        if self.unknown is not None:
            return None
        pair = (first, second)
        drawn = self._drawn(self._problem_of(pair), pair) if len(names) > 2 or pair != tuple(names) else self._draws
        tail = 0.5 * (1.0 - LEVEL)
        quantiles = np.quantile(drawn.heights, [tail, 0.5, 1.0 - tail], axis=0)
        quantiles = np.clip(quantiles[1] + self._wider * (quantiles - quantiles[1]), 0.0, drawn.rays.ends)
        objectives = [self.goals.objectives[name] for name in pair]
        signs = np.array([1.0 if goal.larger_is_better else -1.0 for goal in objectives])
        low, median, high = (signs * drawn.rays.points(heights) + 0.0 for heights in quantiles)
        return FrontBands(pair, low, median, high)

    def _objective(self, name: Any) -> str:
        return self.goals.checked_objective(name)

    # What is known of each option

    @property
    def options(self) -> tuple[OptionSummary, ...]:
        """What is known of each option of each choice, for each objective with a value that has a best: no target."""
        directed = [name for name, goal in self._objectives if not isinstance(goal, Match)]
        ledgers = {name: self.outputs[name] for name in directed if name in self.outputs}
        return tuple(replace(summary, output=name) for name, each in ledgers.items() for summary in each.options)

    @property
    def scarcest(self) -> OptionSummary | None:
        """The option with the fewest trials that have all objectives; None without a choice."""
        rows = np.array([self.space.encode(trial.x) for trial in self.trials]).reshape(-1, self.space.dim)
        return scarcest(self.space, rows)

    # What further evaluations are worth

    @property
    def smallest_gain(self) -> float:
        """The smallest gain that counts: 1 % of the hypervolume so far."""
        return SMALLEST * self.hypervolume

    @property
    def gain_unit(self) -> float:
        """The size of a gain that a user states as 1: the hypervolume so far."""
        return self.hypervolume

    def stagnates(self, evaluations: int) -> bool:
        """Return whether this many last trials did not increase the hypervolume; not while it is not known."""
        return self.n > evaluations and bool(self.history[-1] <= self.history[-1 - evaluations])

    def gain(self, evaluations: int = 10) -> Gain:
        """Return draws of what this many further evaluations would add to the hypervolume (`draw_front_gain`)."""
        evaluations = checks.whole("evaluations", evaluations, 1, MOST_MORE)
        if self.unknown is not None:
            return Gain(evaluations, np.empty(0))
        key = ("gain", *self._state, evaluations)
        if key not in self.analysis.cache.draws:
            rng = np.random.default_rng([self.analysis.seed, self.n, evaluations, 12])  # no suggestion draws from it
            self.analysis.cache.draws[key] = draw_front_gain(self._problem, self._draws, evaluations, rng)
        gain: Gain = self.analysis.cache.draws[key]
        return gain

    # Whether the confidence is justified

    @property
    def calibrations(self) -> Mapping[str, Calibration]:
        """The calibration of each objective and limit with a value."""
        return {name: self.outputs[name].calibration for name in self._used if name in self.outputs}

    @property
    def watched(self) -> Mapping[str, Calibration]:
        """The calibration of each output that is only watched."""
        return {name: ledger.calibration for name, ledger in self.outputs.items() if name not in self._used}

    @property
    def accepted(self) -> bool:
        """Whether there is a front: trials that keep all limits and are acceptable in every objective."""
        return bool(self.front)

    # Words

    def amount(self, size: float) -> str:
        """Return a gain that a user states, a share of the hypervolume so far, as text."""
        return f"{100.0 * size:g} % of the hypervolume"

    @property
    def least_gain(self) -> str:
        """The smallest gain that counts, as text."""
        return self.amount(SMALLEST)

    def improvement_in_words(self, unit: str) -> str:
        """Return what a gain that counts does, as text for people."""
        return "improve the best trade-offs noticeably"

    def caveat(self, unit: str = "") -> Caveat:
        """Return what the advice to stop does not exclude: a better front that takes longer to find."""
        return facts.better_front(self.missing.share()[1])

    def run_facts(self) -> list[Fact]:
        """Return how many trials there are, and how much their front covers."""
        failed = sum(trial.status == "failed" for trial in self.analysis.trials)
        infeasible = sum(trial.is_infeasible for trial in self.trials)
        size = facts.trials(self.n, len(self.front), failed, infeasible)
        return [size, facts.covered(self.hypervolume, self.reference)]

    def missing_fact(self) -> Fact:
        """Return how much of what is possible may be missing."""
        return facts.missing(self.missing.share()[1], self.missing.interval()[1], self.missing.median)

    def noise_fact(self) -> Fact:
        """Return the noise of each output."""
        return facts.noises({name: ledger.noise_sd for name, ledger in self.outputs.items()})

    def other_facts(self) -> list[Fact]:
        """Return how the front was drawn, where its hypervolume begins, and whether to trust the models."""
        drawn = [Fact("drawn as", statistics=self.missing.how), facts.NOT_COVERED] if self.missing.known else []
        reference = Fact("reference", self.reference, statistics=self.reference_words)
        return [*drawn, reference, *facts.calibrations(self)]
