"""Ask for a point, tell its value: the one object of the library that changes.

A suggestion is a function of the seed, of what was told and of what is pending, and of nothing else. So the prior in
use is a function of how many values there are, values enter the posterior in the order in which they were told, and
random numbers are drawn afresh from (seed, told, pending) for every suggestion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from itertools import count
from threading import RLock
from typing import Any, Concatenate, Literal, ParamSpec, TypeAlias, TypeVar, overload

import numpy as np

from gpmi._support import checks
from gpmi._support.checks import checked_noise, checked_value
from gpmi._support.interrupts import uninterrupted
from gpmi._support.logger import logger
from gpmi._support.text import Line, best_lines, event_summary
from gpmi._support.types import Array, Event, Observations, Point
from gpmi.analysis.ledger.account import Ledger, Memory
from gpmi.gp.kernels import Kernel
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.posterior import Posterior
from gpmi.model.fitting.schedule import PriorSchedule
from gpmi.model.fitting.warp import IDENTITY, Warp
from gpmi.model.model import Model, ModelSetting, PendingPosteriors, information_of
from gpmi.model.orientation import Goal, Orientation
from gpmi.optimizer.defaults import Defaults, has_bound
from gpmi.optimizer.suggestion import (
    Suggestion,
    default_n_init,
    from_design,
    from_policy,
    from_start,
    prior_mean,
    starting_points,
)
from gpmi.policies import Aim, Policy
from gpmi.policies.policy import checked_policy
from gpmi.search.places import Place, Places
from gpmi.space import Space, SpaceExhausted
from gpmi.trials import Log, Origin, Trial, names_a_trial
from gpmi.trials.dataframe import Printable, trials_given
from gpmi.trials.outcomes import checked_constraints, checked_why
from gpmi.trials.replay import checked_trials, take_over

Observation: TypeAlias = tuple[Point, float, float, int, tuple[float, ...]]  # x, y, noise_var, repeats, constraints
Self = TypeVar("Self", bound="Optimizer")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


def locked(method: Callable[Concatenate[Self, Arguments], Result]) -> Callable[Concatenate[Self, Arguments], Result]:
    """Run the method under the lock of its object, so that threads which share it take turns."""

    @wraps(method)
    def alone(self: Self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with self._lock:
            return method(self, *args, **kwargs)

    return alone  # type: ignore[return-value]  # mypy misses that self comes first in both


class Optimizer(Printable):
    """Finds the maximum (goal="max") or minimum (goal="min") of a noisy function, point by point.

    Threads may share an Optimizer: each call is made alone, so the log is that of some order of the calls. To pickle or
    copy it, wait until no other thread uses it.

    Parameters
    ----------
    space : a list of (lo, hi), a dict of named parameters, or candidates as an array or DataFrame (`Space.of`).
    policy : how the next point is chosen; None for the policy of `aim`. A given policy overrides the aim.
    aim : what counts: the best point when the budget ends ("find"), or every evaluation ("earn"). `opt.defaults` says
        what an aim or a policy decides besides: of the initial design and of the model.
    kernel, noise_var : the prior. With both given the model is exactly the paper's: mean 0, coordinates and y as they
        are, nothing learned. What is None is learned from what is told: kernel=None, noise_var=None, or a
        hyper-parameter of a kernel, as in `kernels.Matern(nu=1.5, lengthscale=None)`.
    fit : how what is None is learned: the most probable values given the observations ("map"), those that best predict
        each observation from the others ("loo"), or by averaging the policy's score over draws of what they might be
        ("mcmc", several times the cost; `posterior` is then that of the most probable values).
    n_init : the size of the initial design, counting points told before the first `ask`. By default 0 with a given
        prior, and otherwise a few points more than there are parameters.
    budget : how many evaluations there will be in all; a hint to the policy, not a limit.
    mean : a function of a point that is known to be near f, its prior mean: the model is that of f minus it. Then y is
        not transformed. It must be quick, as it is evaluated at every point that is looked at, and also be a number at
        points of the box that break a constraint.
    x0 : points to ask first, one or a list of them. They count as part of the initial design.
    repeats : whether a point of a finite set may be asked again. Under aim="find" it is only where f is noisy, or where
        no other point is left.
    seed : a non-negative whole number; None draws one, kept in `seed`.
    constraints : texts such as "a + b <= 1", (A, lb, ub), `Forbidden`, functions feasible(point) -> bool, or a list.
    noise : the law of the noise. "student" has heavy tails, Student's t with 4 degrees of freedom, so that outliers
        count little; noise_var is then its squared scale, half of its variance. A value costs O(n_obs^3).

    Examples
    --------
    >>> opt = Optimizer([(0.0, 1.0)], seed=0)
    >>> for _ in range(12):
    ...     x = opt.ask()
    ...     _ = opt.tell(x, -(x[0] - 0.3) ** 2)
    >>> abs(float(opt.recommend()[0]) - 0.3) < 0.01
    True
    """

    @checks.with_name_hints
    def __init__(
        self,
        space: Any,
        policy: Policy | None = None,
        *,
        aim: Aim = "find",
        kernel: Kernel | None = None,
        noise_var: float | None = None,
        fit: Literal["map", "loo", "mcmc"] = "map",
        n_init: int | None = None,
        budget: int | None = None,
        repeats: bool = True,
        seed: int | None = None,
        goal: Goal = "max",
        mean: Callable[[Any], float] | None = None,
        x0: Any = None,
        constraints: Any = None,
        noise: Literal["normal", "student"] = "normal",
    ) -> None:
        made = Space.of(space).constrained(constraints)
        bounded = has_bound(made, kernel, noise_var, repeats)
        self.defaults = Defaults.of(aim if policy is None else checked_policy(policy), kernel, bounded=bounded)
        defaults = self.defaults
        self.space = made = made.with_ranks() if defaults.rank_columns else made
        self.policy = defaults.policy
        self.budget = None if budget is None else checks.whole("budget", budget, 1)
        drawn = int(np.random.SeedSequence().generate_state(1)[0])
        self.seed = drawn if seed is None else checks.whole("seed", seed, 0, checks.LARGEST_SEED)
        checks.one_of("goal", goal, ("max", "min"))
        self.goal = goal
        self.repeats = checks.flag("repeats", repeats)
        soften = defaults.compress_losses and made.rows is not None
        units = made.units if defaults.widen_choices else made.span
        where: dict[str, Any] = {"span": units, "groups": made.groups, "seed": self.seed}
        priors = PriorSchedule(kernel, noise_var, fit, **where, soften=soften, noise=noise)
        self.n_init = (
            default_n_init(self.space, priors, self.budget) if n_init is None else checks.whole("n_init", n_init, 0)
        )

        trend = prior_mean(mean, self.space)
        self._lock = RLock()
        self._orientation = Orientation(goal)
        self._log = Log()
        self._events: dict[Event, int] = {}  # in order, with the number of values told when each first occurred
        self._believe_anew(ModelSetting(self.space, priors, self.seed, self._orientation.trend(trend)))
        self._start = starting_points(x0, self.space)
        self._places = Places(self.space, self.seed, repeats=self.repeats, cover=defaults.show_options)
        self._note(*self.space.events)

    # What the user does

    @overload
    def ask(self, n: None = None, *, fixed: Mapping[Any, Any] | None = None) -> Point: ...
    @overload
    def ask(self, n: int, *, fixed: Mapping[Any, Any] | None = None) -> list[Point]: ...
    def ask(self, n: int | None = None, *, fixed: Mapping[Any, Any] | None = None) -> Point | list[Point]:
        """The next point to evaluate, or a list of n to evaluate at the same time; pending until told.

        `fixed` are coordinates that are given and not chosen, {"temperature": 21.5}, or {index: value} where points
        are arrays: the policy chooses the others. The list is shorter where fewer points are left (repeats=False). With
        n_obs observations a point costs O(n_obs^2) on average, plus O(n_obs m) on a finite set of m points.
        """
        with self._lock:
            place = self._places.given(fixed)
            return self._ask_one(place) if n is None else self._ask_several(checks.whole("n", n, 1), place)

    @property
    def evaluated(self) -> int:
        """How many outcomes count in the budget: values and failures. O(n)."""
        return sum(trial.status in ("told", "failed") for trial in self._log.trials)

    def turns(self, budget: int | None) -> Generator[Trial | None, None, None]:
        """The trials that a loop is to evaluate, one after the other: `budget` of them, or without end for None.

        None in their place, which no Optimizer gives by itself: there may be one later.
        """
        for _ in count() if budget is None else range(budget):
            with self._lock:
                self.ask()
                trial = self._log[self._log.pending[-1]]
            yield trial

    @locked
    def tell(
        self,
        x: Point | Trial | int,
        y: float,
        *,
        noise_var: float = 0.0,
        repeats: int = 1,
        constraints: Sequence[float] | None = None,
    ) -> Trial:
        """Record the value y observed at x: a pending point, or any other point of the space. Order is free.

        x may also be a pending trial or its number, which tells two pending trials at equal points apart; by a point
        the one that was asked first is meant.

        y = f(x) + noise of variance s / repeats + noise_var, where s is the noise variance of the optimizer, given or
        learned, which a single evaluation has. So y is the mean of `repeats` evaluations, and `noise_var` is the square
        of an error bar that comes on top of the common noise. Where the error bars are the whole noise, give the
        optimizer noise_var=0.

        `constraints` were measured beside y: the point is feasible where all of them are <= 0. Each is modelled by a
        Gaussian process of its own, with a learned prior, and what a policy expects is multiplied by the probability
        that all hold. With every value there must be the same number of them.
        """
        number = self._pending_number(x) if names_a_trial(x) else self._meant(x)
        value, noise = checked_value(y), checked_noise(noise_var, repeats)
        limits = checked_constraints(constraints, self._log.count_of_constraints())
        with one_blas_thread:
            return self._tell(x, number, value, *noise, limits)

    @locked
    def fail(self, x: Point | Trial | int, why: str | None = None) -> Trial:
        """Record that the evaluation of a pending point, given as itself, as its trial or by its number, failed.

        The probability of success is then learned from what was told and what failed, and what a policy expects is
        multiplied by it: the region is avoided, not forbidden. On a finite set the row is not asked again. `why` is
        kept in the trial.
        """
        number, reason = self._pending_number(x), checked_why(why)
        failed: Trial = uninterrupted(lambda: self._log.settle(number, None, why=reason))
        return self._said(failed)

    @locked
    def forget(self, x: Point | Trial | int) -> None:
        """Give back a pending point, given as itself, as its trial or by its number, as if it had never been asked."""
        number = self._pending_number(x)
        uninterrupted(lambda: self._log.forget(number))

    # What the user says of trials that have an outcome, and of points that will not be evaluated

    @locked
    def correct(
        self,
        trial: Trial | int,
        y: float,
        *,
        noise_var: float | None = None,
        repeats: int | None = None,
        constraints: Sequence[float] | None = None,
    ) -> Trial:
        """Replace the value of a trial by y: everything is then as if y had been told at first.

        The trial, given as itself or by its number, was told, failed or retracted. noise_var, repeats and constraints
        stay what they were unless they are given. The model is computed anew, and with it the prior: O(n^3). What was
        said of trials when they were chosen (`mu`, `sd`, `phi`, `gamma_hat`) stays in the log: it is what was believed
        then. The `surprise` and `information` of this trial become None; `y_before` keeps the first value that it
        had. Points that are pending stay so: only the next `ask` knows y.
        """
        remedy = "give a trial that was told, failed or retracted; a pending one is told"
        number = self._log.number_with(trial, ("told", "failed", "retracted"), remedy)
        self._require_here(trial, number)
        old, value = self._log[number], checked_value(y)
        noise = checked_noise(
            old.noise_var if noise_var is None else noise_var, old.repeats if repeats is None else repeats
        )
        limits = checked_constraints(
            old.constraints if constraints is None else constraints, self._log.count_of_constraints(number)
        )

        def record() -> Trial:
            corrected = self._log.correct(number, value, *noise, limits)
            self._believe_anew(self._setting.cleared())
            return corrected

        return self._said(uninterrupted(record))

    @locked
    def retract(self, trial: Trial | int) -> Trial:
        """Take back the outcome of a trial that was told, failed or rejected: everything is as if it had not been.

        The trial stays in the log with the status "retracted" and its value in `y_before`, but counts for nothing: the
        point may be asked again. What was said of other trials stays, as with `correct`.
        """
        remedy = "give a trial that was told, failed or rejected; a pending one is forgotten"
        number = self._log.number_with(trial, ("told", "failed", "rejected"), remedy)
        self._require_here(trial, number)

        def record() -> Trial:
            retracted = self._log.retract(number)
            self._believe_anew(self._setting.cleared())
            return retracted

        return self._said(uninterrupted(record))

    @locked
    def reject(self, x: Point | Trial | int) -> Trial:
        """Record that x will not or cannot be evaluated: a pending point, or any other point of the space.

        On a finite set the row is not offered again. Elsewhere no point is offered within a thousandth of the width of
        the space in every coordinate, and none within 5 % of it before 5 more values have been told. It is no failure:
        the model learns nothing from it. `retract` takes it back.
        """
        number = self._pending_number(x) if names_a_trial(x) else self._meant(x)

        def record() -> Trial:
            known = self._add(self.space.canonical(x), "user").number if number is None else number
            return self._log.settle(known, None, rejected=True)

        return self._said(uninterrupted(record))

    @locked
    def tell_all(self, observations: Iterable[Any] | Printable, *, noise_var: float = 0.0) -> list[Trial]:
        """Tell values that are known already, as those of an earlier run: each as by `tell`, in their order.

        An observation is (x, y), (x, y, noise_var), or a Trial, of which those with a value count, with their own
        noise_var, repeats and constraints; a Result stands for its trials. The argument noise_var is added to that of
        each one: how far that run may be off. Nothing is told if one of them is refused.
        """
        with one_blas_thread:
            return [self._tell(one[0], self._meant(one[0]), *one[1:]) for one in self._known(observations, noise_var)]

    @locked
    def recommend(self, *, fixed: Mapping[Any, Any] | None = None) -> Point:
        """The point of the space with the best posterior mean, told or not: what to use when y is noisy.

        Where that is the same everywhere, after one value or while all are equal, it is a told point. Once a trial has
        failed or constraints were measured it is one of the points that were told a value, that succeed with a
        probability of at least 1/2 and at which no constraint was broken. If there is none, it is the told point most
        likely to succeed, and an event says so.

        With `fixed`, as in `ask`, it is the best of the points with these coordinates, told or not. Once a trial has
        failed or constraints were measured, it is the best told one that has worked as above; if none has, the best of
        those that succeed with a probability of at least 0.95, told or not, or else the point most likely to succeed.
        """
        space, model = self._places.given(fixed).space, self.model
        if model is None:
            raise ValueError("nothing has been told yet, so there is no point to recommend; tell a value first")
        with one_blas_thread:
            row = model.recommended_in(space)
            if not (model.allowed(row[None]) if space.fixed_coordinates else model.proven).any():
                self._note(Event("nothing feasible", "no point told so far probably succeeds and is feasible"))
            return space.decode(row)

    @locked
    def replay(self, trials: Iterable[Trial] | Printable) -> Optimizer:
        """Take over the trials of an earlier run, or its Result, with outcomes, origins and order; returns self.

        With the same seed and arguments the next `ask` is what that run would have asked next. Values told to pending
        trials afterwards are compared with the model of now.
        """
        checked = checked_trials(trials_given("trials", trials), self._log.count_of_constraints())
        fixed = [self._places.given(trial.fixed).fixed for trial in checked]
        frozen = [self.space.freeze(self.space.canonical(trial.x)) for trial in checked]
        placed = [replace(t, x=x, fixed=given) for t, x, given in zip(checked, frozen, fixed, strict=True)]
        rows = [self.space.encode(trial.x) for trial in placed]
        uninterrupted(lambda: take_over(self._log, placed, rows))
        return self

    # What the user reads

    @property
    @locked
    def trials(self) -> tuple[Trial, ...]:
        """Every point asked, told or rejected so far, in the order in which they appeared."""
        return self._log.trials

    @property
    @locked
    def pending(self) -> tuple[Trial, ...]:
        """The points asked but not yet told."""
        return tuple(self._log[number] for number in self._log.pending)

    @property
    @locked
    def best(self) -> Trial | None:
        """The trial with the best observed value, the first of equals; None before the first.

        One at which a constraint was broken does not count.
        """
        told, values = self._log.told, self._values()
        if self._log.count_of_constraints():
            values = np.where([self._log[number].feasible for number in told], values, -np.inf)
        return None if not told or values.max() == -np.inf else self._log[told[int(np.argmax(values))]]

    @property
    @locked
    def model(self) -> Model | None:
        """What is believed after everything told, oriented so that larger is better; None before the first value.

        Learns the prior if values have come in since it was last needed and the schedule says so: O(n^3) then, and
        O(n^2) for each new value.
        """
        if not self._log.told:
            return None
        with one_blas_thread:
            return self._believe()

    @property
    @locked
    def posterior(self) -> Posterior | None:
        """The posterior of `warp(y)` given everything told, in the coordinates of `space.encode`; costs as `model`."""
        model = self.model
        return None if model is None else self._orientation.posterior(model.posterior)

    @property
    @locked
    def warp(self) -> Warp:
        """The transformation of y that the posterior is about, usually none; `warp.inverse` turns back to y.

        It is learned with the prior where the evidence is clear, and never used with a given kernel or noise_var.
        """
        model = self.model
        return IDENTITY if model is None else self._orientation.warp(model.warp)

    @property
    @locked
    def events(self) -> tuple[Event, ...]:
        """Everything the library did that was not asked for: repairs, rejected fits, reduced searches."""
        return tuple(self._events)

    @property
    @locked
    def ledger(self) -> Ledger:
        """What is known and how sure it is: predictions and outcomes, the regret, calibration, lock-in.

        It is that of the values told so far, and changes no suggestion. O(n) until something is read that needs draws.
        """
        return Ledger(
            trials=tuple(self._log[number] for number in self._log.told),
            observed=self._log.observed,
            outcomes=self._log.outcomes,
            failures=tuple(self._log[number] for number in self._log.failed),
            noted=tuple((told, event) for event, told in self._events.items()),
            orientation=self._orientation,
            setting=self._setting.with_preloaded(self._log.given),
            known=(self._foresight, self._model),
            memory=self._memory,
        )

    def all_trials(self) -> tuple[Trial, ...]:
        return self.trials

    @locked
    def summary_lines(self) -> list[Line]:
        best, log = self.best, self._log
        retracted = sum(trial.status == "retracted" for trial in log.trials)
        others = [("rejected", len(log.rejected)), ("retracted", retracted)]
        outcomes = f"{len(log.told)} told, {len(log.pending)} pending, {len(log.failed)} failed"
        outcomes += "".join(f", {count} {name}" for name, count in others if count)
        x, y = (None, None) if best is None else (best.x, best.y)
        return [
            *best_lines(self.goal, x, y, measured=bool(log.count_of_constraints())),
            ("trials", outcomes if self.budget is None else f"{outcomes}; budget {self.budget}"),
            ("policy", repr(self.policy)),
            ("defaults", str(self.defaults)),
            ("seed", str(self.seed)),
            ("events", event_summary([(event.kind, event.message) for event in self._events])),
        ]

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=RLock())

    # What is believed

    def _believe_anew(self, setting: ModelSetting) -> None:
        """Drop what was derived from values that are no longer those of the log."""
        self._setting = setting
        self._extensions = PendingPosteriors()
        self._memory = Memory({}, {})  # what was read of the ledger, for the next one
        self._model: Model | None = None  # after the values told when it was last needed
        self._foresight: Model | None = None  # that of the policy's last choice, extended by the values told since

    def _values(self) -> Array:
        """The values told, oriented, (n,)."""
        return self._orientation.values(self._log.observed.y)

    def _observed(self) -> Observations:
        """The values told, oriented, with their coordinates and noise."""
        observed = self._log.observed
        return replace(observed, y=self._orientation.values(observed.y)) if self._orientation.mirrors else observed

    def _believe(self) -> Model:
        """The model after everything told."""
        setting = self._setting.with_preloaded(self._log.given)
        model = Model.after(setting, self._observed(), self._foresight, self._model)
        self._model = model = model.with_outcomes(self._log.outcomes)
        self._note(*model.prior.events)
        if model.warp.bends:
            self._note(Event("transformed", f"the model is that of {self._orientation.warp(model.warp)}"))
        self._note(*model.posterior.events, *model.events)
        return model

    def _foreseeing(self) -> Model | None:
        """The model to compare the next value with; None with a learned prior before the policy's first choice."""
        log = self._log
        if not (self._setting.priors.is_fixed or (log.unchosen < len(log) and log.told)):
            return None
        with suppress(Exception):  # a value is recorded whatever the model says; the next `ask` raises what is wrong
            if self._foresight is None:
                return self._believe()
            return self._foresight.extended(self._observed())
        return None

    def _compare(self, trial: Trial, before: Model) -> Trial:
        """Note how the value just told compares with what was foreseen. O(n^2), of which the next `ask` is relieved."""
        observed = self._observed()
        try:
            model = before.extended(observed)
        except Exception:  # as above
            return trial
        self._foresight = model
        mu, var, surprise = model.prediction_of_last(before, observed)
        said: dict[str, float] = {}
        if trial.mu is None:
            median, said["sd"] = model.in_units_of_y(mu, math.sqrt(var))
            said["mu"] = self._orientation.value(median)
        said["surprise"] = self._orientation.value(surprise)
        said["information"] = information_of(var, float(model.posterior.noise[-1]))
        return self._log.note(trial.number, **said)

    def _note(self, *events: Event) -> None:
        for event in events:
            if event not in self._events:
                self._events[event] = len(self._log.told)
                logger.warning("%s: %s", event.kind, event.message)

    # How an outcome is recorded

    def _tell(
        self,
        x: Point,
        number: int | None,
        y: float,
        noise_var: float,
        repeats: int,
        constraints: tuple[float, ...] = (),
    ) -> Trial:
        """Record a checked value of the pending trial with this number, or of a new one at x."""

        def record() -> Trial:
            told = self._add(self.space.canonical(x), "user").number if number is None else number
            return self._log.settle(told, y, noise_var=noise_var, repeats=repeats, constraints=constraints)

        before = self._foreseeing()
        trial: Trial = uninterrupted(record)
        return self._said(trial if before is None else self._compare(trial, before))

    def _add(self, x: Point, origin: Origin, **said: Any) -> Trial:
        """A new pending trial at x, with what the model says of it."""
        return self._log.add(self.space.freeze(x), self.space.encode(x), origin, **said)

    def _said(self, trial: Trial) -> Trial:
        logger.info("%r", trial)
        return trial

    def _meant(self, x: Point) -> int | None:
        """The pending trial that is meant by a point, if any."""
        return self._log.find_pending(self.space.encode(x), self.space.rounding)

    def _pending_number(self, x: Point | Trial | int) -> int:
        if not names_a_trial(x):
            number = self._meant(x)
            if number is None:
                raise ValueError(f"x is {x!r}, which is not pending; only points that were asked and not yet told are")
            return number
        number = self._log.pending_number(x)
        self._require_here(x, number)
        return number

    def _require_here(self, x: Trial | int, number: int) -> None:
        """Refuse a trial of another run that has the number of one of this run."""
        if isinstance(x, Trial) and not np.array_equal(self.space.encode(x.x), self._log.row(number)):
            raise ValueError(f"x is {x!r}, but trial {number} of this run is at another point; give one of its trials")

    def _known(self, observations: Iterable[Any] | Printable, noise_var: float) -> list[Observation]:
        """Observations as `tell_all` takes them, all checked before one is told."""
        extra, _ = checked_noise(noise_var, 1)
        given = trials_given("observations", observations)
        count, checked = self._log.count_of_constraints(), []
        for one in given:
            if not isinstance(one, Trial) or one.status == "told":
                checked.append(self._checked(one, extra, count))
                count = len(checked[-1][-1])
        return checked

    def _checked(self, observation: Any, extra: float, count: int | None) -> Observation:
        """An observation as `_tell` takes it; it has `count` constraints."""
        limits: tuple[float, ...] = ()
        if isinstance(observation, Trial):
            x, y, own, repeats = observation.x, observation.y, observation.noise_var, observation.repeats
            limits = observation.constraints
        elif isinstance(observation, tuple | list) and len(observation) in (2, 3):
            (x, y), own, repeats = observation[:2], observation[2] if len(observation) == 3 else 0.0, 1
        else:
            what = checks.shown(observation)
            raise TypeError(f"observations has {what}; give (x, y), (x, y, noise_var) or a Trial")
        noise, repeats = checked_noise(own, repeats)
        limits = checked_constraints(limits, count)
        return self.space.canonical(x), checked_value(y), checked_noise(noise + extra, 1)[0], repeats, limits

    # How a suggestion is made

    def _ask_several(self, n: int, place: Place) -> list[Point]:
        points: list[Point] = []
        for _ in range(n):
            try:
                points.append(self._ask_one(place))
            except SpaceExhausted:
                if not points:
                    raise
                break
        return points

    def _ask_one(self, place: Place) -> Point:
        with one_blas_thread:
            log = self._log
            first = from_start(self._start, place.space, log) or from_design(place, self._setting, log, self.n_init)
            next_one = first or self._chosen(place)
        fields = next_one.fields if place.fixed is None else {**next_one.fields, "fixed": place.fixed}
        trial: Trial = uninterrupted(lambda: self._add(next_one.x, next_one.origin, **fields))
        return self.space.copy(trial.x)

    def _budget_of_all(self) -> int | None:
        """How many values there will be in all, those that nobody asked for included: the budget counts them here."""
        return self.budget

    def _chosen(self, place: Place) -> Suggestion:
        self._foresight = model = self._believe()
        limits: dict[str, Any] = {"budget": self._budget_of_all(), "repeats": self.repeats}
        chosen = from_policy(model, self.policy, self._log, place, self._extensions, self._orientation, **limits)
        self._note(*chosen.events)
        return chosen
