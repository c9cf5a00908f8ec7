"""What is known about a run, how sure it is, and what going on is worth.

The ledger is read off what the trials noted when they were chosen and told, and off the posterior; it stores nothing
of its own and changes nothing. Intervals of the regret need joint draws of f: they are made when they are read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from gpmi import checks
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import Tracked, moments_in_chunks
from gpmi.ledger.calibration import Calibration, judge
from gpmi.ledger.maxima import draw_maxima, most_likely_better, spread_of_difference
from gpmi.policies.phi import EI, LogEI, State
from gpmi.prior.schedule import Priors
from gpmi.prior.warp import Warp
from gpmi.search.argmax import Objective, best_mean, best_observed, best_point, screen_of
from gpmi.space.space import Parameters, Space
from gpmi.types import Array, Event, Point

if TYPE_CHECKING:
    from gpmi.optimizer import Origin, Trial

Choice: TypeAlias = Literal["explored", "exploited"]

DRAWS = 512  # of max f: the probability of an interval of level 0.95 is then right to 0.01, one sd
PATHS = 256  # where the points cannot be enumerated: to 0.014
REPEATS = 10  # so many queries of the policy at the same place are a repetition
SAME = 1e-3  # what is closer than this, in widths of the space, is the same place
_CLOSEST = 1000  # points whose improvement is led back to y where it is transformed
_CERTAIN = 0.002  # the error of the test for over-confidence that makes a repetition a lock-in
RESOLVED = 1e-4  # prior sd: ten times the error that keeps draws at close points from being singular (gpmi.maxima)
MISSED = 0.25  # the probability of a regret above the noise from which a repetition is a lock-in


@dataclass(frozen=True, eq=False)
class Step:
    """One value told, in the order in which they came: t = 1, 2, ...

    What the model said is None where it was not in use yet: with a learned prior, before the policy's first choice.
    """

    t: int
    x: Point
    y: float
    origin: Origin
    mu: float | None  # what f(x) was expected to be: see Trial
    sd: float | None
    phi: float | None
    gamma_hat: float | None
    information: float | None  # nats that y told about f
    surprise: float | None  # (y - mu) / sqrt(var + noise_var)
    choice: Choice | None  # None where the policy did not choose; it explored if mu was a noise sd below the best mean
    events: tuple[Event, ...]  # what the library did that was not asked for, from y on until the next value

    @staticmethod
    def of(t: int, trial: Trial, events: tuple[Event, ...]) -> Step:
        """What a told trial says."""
        assert trial.y is not None
        choice: Choice | None = None if trial.explored is None else "explored" if trial.explored else "exploited"
        said = (trial.mu, trial.sd, trial.phi, trial.gamma_hat, trial.information, trial.surprise)
        return Step(t, trial.x, trial.y, trial.origin, *said, choice, events)


class Interval(NamedTuple):
    """A credible interval."""

    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Regret:
    """Joint draws of the regrets of a run, in units of y, from the posterior of f after t values."""

    t: int
    recommended: Point
    simple: Array  # (DRAWS or PATHS,), max f - f(recommended)
    cumulative: Array  # the same, sum over the policy's queries x_s of max f - f(x_s)
    how: str  # how max f was drawn, and what is approximate about it

    def interval(self, level: float = 0.95) -> Interval:
        """A credible interval for the simple regret: `credible_interval`."""
        return credible_interval(self.simple, level)

    def probability_below(self, eps: float) -> float:
        """The probability that the simple regret is at most eps."""
        return float(np.mean(self.simple <= eps))


def credible_interval(draws: Array, level: float) -> Interval:
    """The shorter of [0, q(level)] and the equal-tailed [q((1 - level) / 2), q((1 + level) / 2)], for a quantity >= 0.

    Both hold the quantity with probability `level` given the data, so whichever the data choose does. The second is the
    shorter one while the draws are far from 0, the first where 0 is possible or even likely: on a finite set the
    recommended point may well be the best one, and an interval that cuts off 2.5 % at 0 would then be wrong.
    """
    tail = 0.5 * (1.0 - checked_level(level))
    low, one_sided, high = np.quantile(draws, [tail, level, 1.0 - tail]).tolist()
    return Interval(low, high) if high - low < one_sided else Interval(0.0, one_sided)


class LockIn(NamedTuple):
    """The run repeats itself although more may be had."""

    since: int  # the step of the first of the repeated queries
    probability: float  # of a simple regret above the standard deviation of the noise
    reason: str


@dataclass(frozen=True, eq=False)
class Ledger:
    """The account of a run after n values: `steps`, `regret(t)`, `calibration`, `lock_in`, `improvement`."""

    trials: tuple[Trial, ...] = field(repr=False)  # those told, in the order in which they were told
    points: tuple[Array, ...] = field(repr=False)  # their coordinates, (d,) each
    noted: tuple[tuple[int, Event], ...] = field(repr=False)  # events, with the number of values told by then
    space: Space = field(repr=False)
    sign: float = field(repr=False)  # -1 where f is minimised
    seed: int
    priors: Priors = field(repr=False)
    _regrets: dict[int, Regret] = field(repr=False)  # those read so far, shared with the other ledgers of the run
    _past: list[Step] = field(repr=False)  # the steps before the last, as far as they were read, shared as well

    @property
    def n(self) -> int:
        """The number of values told."""
        return len(self.trials)

    @cached_property
    def y(self) -> Array:
        """The values told, (n,)."""
        return np.array([trial.y for trial in self.trials], dtype=float)

    @cached_property
    def rows(self) -> Array:
        """Their coordinates, (n, d)."""
        return np.array(self.points).reshape(self.n, self.space.dim)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """What was known at each value told. Little for each step not read before."""
        for t in range(len(self._past) + 1, self.n):
            self._past.append(self._step(t))
        return (*self._past[: self.n - 1], self._step(self.n)) if self.n else ()

    def _step(self, t: int) -> Step:
        return Step.of(t, self.trials[t - 1], tuple(event for told, event in self.noted if max(1, told) == t))

    # How far from the best

    @one_blas_thread
    def regret(self, t: int | None = None) -> Regret:
        """The joint law of the regrets after the first t values (all of them by default), under the model of then.

        Joint draws of max f over the space, of f at the point recommended then and at the policy's queries; see
        `gpmi.maxima` for what it costs and what is approximate. Random numbers come from (seed, t), so that reading
        it twice gives the same, and no suggestion is changed by it.
        """
        t = self.n if t is None else checks.whole("t", t, 1)
        if t not in self._regrets:
            self._regrets[t] = self._drawn(self._model(t))
        return self._regrets[t]

    @one_blas_thread
    def is_below(self, eps: float, level: float = 0.95) -> bool:
        """Whether the simple regret is at most eps with probability `level`, after all values told.

        Draws are made only where no single point settles it: P(regret > eps) >= P(f(x) - f(recommended) > eps).
        """
        level, model = checked_level(level), self._present
        if not model.warp.bends and not model.members:
            z = self.space.rows if self.space.rows is not None else screen_of(self.space, self.seed)
            if most_likely_better(model.posterior, z, model.row, eps, self.sign) > 1.0 - level:
                return False
        return self.regret().probability_below(eps) >= level

    def _drawn(self, model: _Model) -> Regret:
        t = model.posterior.n
        chosen = np.array([trial.origin == "policy" for trial in self.trials[:t]], dtype=bool)
        at = np.concatenate([model.row[None], self.rows[:t][chosen]])
        members = model.members or [model.posterior]
        rng = np.random.default_rng([self.seed, t, 0, 1])  # no suggestion draws from it
        size = -(-(DRAWS if self.space.rows is not None else PATHS) // len(members))
        parts = [draw_maxima(member, self.space, at, self.sign, size, rng, self.seed) for member in members]
        best = model.warp.inverse(self.sign * np.concatenate([part.best for part in parts]))
        values = model.warp.inverse(np.concatenate([part.at for part in parts]))
        gaps = np.maximum(self.sign * (best[:, None] - values), 0.0)
        how = parts[0].how + (f"; under {len(members)} draws of the prior" if model.members else "")
        return Regret(t, self.space.decode(model.row), gaps[:, 0], gaps[:, 1:].sum(axis=1), how)

    # Whether the confidence was deserved

    @cached_property
    def calibration(self) -> Calibration:
        """The residuals of the values told and a verdict on them. O(n); those with a value left out O(n^3)."""
        ahead = [trial.surprise for trial in self.trials if trial.surprise is not None]
        return Calibration(np.array(ahead), self._posterior)

    def _posterior(self) -> Posterior:
        return self._present.posterior

    @cached_property
    def lock_in(self) -> LockIn | None:
        """Whether the run repeats itself although its own model says that more may be had, or cannot be trusted.

        It repeats itself if the policy's last REPEATS queries were at the same place. More may be had if the simple
        regret exceeds the noise (`floor`) with a probability of at least MISSED; the model cannot be
        trusted if its residuals are over-confident with an error of _CERTAIN: the test may be made after every step.
        Draws are made only if the run repeats itself.
        """
        chosen = np.array([t for t, trial in enumerate(self.trials) if trial.origin == "policy"], dtype=int)
        queries = self.rows[chosen] / self.space.span
        away = np.flatnonzero(np.abs(queries - queries[-1:]).max(axis=1, initial=0.0) > SAME)
        count = len(queries) - (int(away[-1]) + 1 if len(away) else 0)
        if count < REPEATS:
            return None
        since = int(chosen[-count]) + 1
        missed = 1.0 - self.regret().probability_below(self.floor)
        repeated = f"the last {count} queries were at one place"
        if missed >= MISSED:
            more = f"more than the noise, {self.floor:.3g}, is to be had with probability {missed:.0%}"
            return LockIn(since, missed, f"{repeated}, but {more}")
        verdict, reason = judge(self.calibration.ahead, _CERTAIN)
        if verdict == "over-confident":
            return LockIn(since, missed, f"{repeated}, but the model is over-confident: {reason}")
        return None

    # What going on is worth

    @cached_property
    def noise_sd(self) -> float:
        """The standard deviation of the noise in units of y: at the recommended point, where y is transformed."""
        return self._in_units_of_y(math.sqrt(self._present.posterior.noise_var))

    @cached_property
    def floor(self) -> float:
        """The regret below which nothing can be told: the sd of the noise, or what draws of max f resolve if larger."""
        model = self._present
        (var,) = model.posterior.kernel.diagonal(model.row[None])
        return max(self.noise_sd, self._in_units_of_y(RESOLVED * math.sqrt(var)))

    def _in_units_of_y(self, sd: float) -> float:
        model = self._present
        if not model.warp.bends:
            return sd
        mu = float(model.posterior.mu(model.row)[0])
        low, high = model.warp.inverse(np.array([mu - sd, mu + sd])).tolist()
        return 0.5 * float(high - low)

    @cached_property
    def improvement(self) -> float:
        """max over x of E[(f(x) - f(recommended))^+] in units of y, from their joint law.

        The most that another point can be expected to bring; to measure the recommended one again brings nothing. On a
        finite set of m points O(n^2 m); where they cannot be enumerated x is found as the policy EI finds it. Where y
        is transformed f(recommended) is taken for its median, and the expectation after the inverse, at the points
        that are best before it.
        """
        posterior, _, warp, row = self._present
        best = float(posterior.mu(row)[0])
        state = State(1, 0.0, posterior.noise_var, self.sign * best, self.sign * best, 1, 0, None)
        z = self.space.rows
        with one_blas_thread:
            if z is None:
                screen = Tracked.start(posterior, screen_of(self.space, self.seed))
                objective = Objective(posterior, LogEI("mean"), state, self.sign)
                rng = np.random.default_rng([self.seed, self.n, 0, 2])
                assert isinstance(self.space, Parameters)
                z = best_point(objective, self.space, screen, best_observed(posterior, self.sign), rng).row[None]
            mu, var = moments_in_chunks(posterior, z)
        if not warp.bends:
            return float(EI("mean").score(self.sign * mu, spread_of_difference(posterior, z, row), state).max())
        from scipy.special import ndtri

        top = np.argsort(-EI("mean").score(self.sign * mu, var, state))[:_CLOSEST]
        quantiles = ndtri((np.arange(200) + 0.5) / 200)
        values = warp.inverse(mu[top, None] + np.sqrt(var[top, None]) * quantiles)
        gains = np.maximum(self.sign * (values - warp.inverse(np.array([best]))), 0.0)
        return float(gains.mean(axis=1).max())

    # The model

    @cached_property
    def _present(self) -> _Model:
        return self._model(self.n)

    @one_blas_thread
    def _model(self, t: int) -> _Model:
        """The model in use with t values, and the point it recommends."""
        if not 1 <= t <= self.n:
            raise ValueError(f"t is {t}, but {self.n} values have been told; give a number between 1 and that")
        if t == self.n and "_present" in self.__dict__:
            return self._present
        prior = self.priors(self.priors.point(t), self.rows, self.y)
        z = prior.warp(self.y[:t])
        posterior = prior.posterior().condition(self.rows[:t], z)
        members = [one.posterior().condition(self.rows[:t], z) for one in prior.samples]
        screen = None if self.space.rows is not None else Tracked.start(posterior, screen_of(self.space, self.seed))
        rng = np.random.default_rng([self.seed, t, 0])  # what `recommend` draws from
        return _Model(posterior, members, prior.warp, best_mean(posterior, members, self.space, self.sign, screen, rng))

    def __str__(self) -> str:
        if not self.n:
            return "no value has been told"
        chosen = [step.choice for step in self.steps if step.choice is not None]
        told = sum(step.information or 0.0 for step in self.steps)
        regret, lock_in = self.regret(), self.lock_in
        (low, high), (least, most) = regret.interval(), credible_interval(regret.cumulative, 0.95)
        lines = [
            ("values", f"{self.n}, of which the policy chose {len(chosen)}: {chosen.count('explored')} to explore"),
            ("information", f"{told:.4g} nats"),
            ("simple regret", f"{low:.3g} to {high:.3g} with probability 95 %, median {np.median(regret.simple):.3g}"),
            ("cumulative", f"{least:.3g} to {most:.3g}, median {np.median(regret.cumulative):.3g}"),
            ("one more", f"is expected to bring at most {self.improvement:.3g}; the noise is {self.noise_sd:.3g}"),
            ("calibration", f"{self.calibration.verdict}: {self.calibration.reason}"),
            ("lock-in", "none" if lock_in is None else lock_in.reason),
        ]
        return "\n".join(f"{name:<15}{text}" for name, text in lines)


class _Model(NamedTuple):
    """What was believed after some of the values."""

    posterior: Posterior
    members: list[Posterior]  # the same under draws of the prior
    warp: Warp
    row: Array  # (d,), the recommended point


def checked_level(level: float) -> float:
    """A probability other than 0 and 1."""
    remedy = "it is a probability: give a number between 0 and 1"
    if not 0.0 < checks.number("level", level, remedy) < 1.0:
        raise ValueError(f"level is {level!r}; {remedy}")
    return float(level)
