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
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

import numpy as np

from gpmi._support import checks
from gpmi._support.checks import checked_noise
from gpmi._support.interrupts import uninterrupted
from gpmi._support.logger import logger
from gpmi._support.text import Line, best_lines, event_summary
from gpmi._support.types import Array, Event, Observations, Point
from gpmi.analysis.ledger.ledger import Ledger, LedgerCache
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
from gpmi.search.subspaces import Subspace, Subspaces
from gpmi.space import Space, SpaceExhausted
from gpmi.trials import Log, Origin, Outcome, Trial, names_a_trial
from gpmi.trials.dataframe import Printable, trials_given
from gpmi.trials.log import Target
from gpmi.trials.outcomes import check_count, details_of
from gpmi.trials.trial import checked_trials

Self = TypeVar("Self", bound="Optimizer")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


def locked(method: Callable[Concatenate[Self, Arguments], Result]) -> Callable[Concatenate[Self, Arguments], Result]:
    """Run the method under the lock of the log, so that threads which share an optimizer take turns."""

    @wraps(method)
    def alone(self: Self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with self._log.lock:
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
        self._log = Log(None if budget is None else checks.whole("budget", budget, 1))
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
        self._orientation = Orientation(goal)
        self._events: dict[Event, int] = {}  # in order, with the number of values told when each first occurred
        self._believe_anew(ModelSetting(self.space, priors, self.seed, self._orientation.trend(trend)))
        self._start = starting_points(x0, self.space)
        self._subspaces = Subspaces(self.space, self.seed, repeats=self.repeats, cover=defaults.show_options)
        self._note(*self.space.events)

    # What the user does

    @overload
    def ask(self, n: None = None, *, fixed: Mapping[Any, Any] | None = None) -> Point: ...
    @overload
    def ask(self, n: int, *, fixed: Mapping[Any, Any] | None = None) -> list[Point]: ...
    def ask(self, n: int | None = None, *, fixed: Mapping[Any, Any] | None = None) -> Point | list[Point]:
        """The next point to evaluate, or a list of n to evaluate at the same time; pending until told.

        `fixed` are coordinates that you set, {"temperature": 21.5}, or {index: value} where points are arrays. The
        policy chooses the others. The list is shorter where fewer points are left (repeats=False). With
        n_obs observations a point costs O(n_obs^2) on average, plus O(n_obs m) on a finite set of m points.
        """
        with self._log.lock:
            subspace = self._subspaces.with_fixed(fixed)
            return self._ask_one(subspace) if n is None else self._ask_several(checks.whole("n", n, 1), subspace)

    @property
    def budget(self) -> int | None:
        """How many evaluations there will be in all; None if that was not given."""
        return self._log.budget

    @property
    def evaluated(self) -> int:
        """How many outcomes count in the budget: values and failures. O(n)."""
        return self._log.evaluated

    def turns(self, budget: int | None) -> Generator[Trial | None, None, None]:
        """The trials that a loop is to evaluate, one after the other: `budget` of them, or without end for None.

        None in their place, which no Optimizer gives by itself: there may be one later.
        """
        for _ in count() if budget is None else range(budget):
            yield self._next_trial(self._subspaces.whole)

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
        outcome = Outcome.value(y, noise_var=noise_var, repeats=repeats, constraints=constraints)
        return self.record(self._pending_at(x), outcome)

    @locked
    def fail(self, x: Point | Trial | int, why: str | None = None) -> Trial:
        """Record that the evaluation of a pending point, given as itself, as its trial or by its number, failed.

        The probability of success is then learned from what was told and what failed, and what a policy expects is
        multiplied by it: the region is avoided, not forbidden. On a finite set the row is not asked again. `why` is
        kept in the trial.
        """
        return self.record(self._pending_trial(x), Outcome.failure(why))

    @locked
    def reject(self, x: Point | Trial | int) -> Trial:
        """Record that x will not or cannot be evaluated: a pending point, or any other point of the space.

        On a finite set the row is not offered again. Elsewhere no point is offered within a thousandth of the width of
        the space in every coordinate, and none within 5 % of it before 5 more values have been told. It is no failure:
        the model learns nothing from it. `retract` takes it back.
        """
        return self.record(self._pending_at(x), Outcome.rejection())

    def record(self, target: Target, outcome: Outcome) -> Trial:
        """Record the outcome of a pending trial, given as itself or by its number, or of a new trial at a point.

        Every outcome comes through here. `tell` and `reject` first look up the pending trial that a point means.
        """
        with self._log.lock:
            trial = self._log.deliver(target, outcome, self._settle)
        logger.info("%r", trial)
        return trial

    def tell_all(self, observations: Iterable[Any] | Printable, *, noise_var: float = 0.0) -> list[Trial]:
        """Tell values that are known already, as those of an earlier run: each as by `tell`, in their order.

        An observation is (x, y), (x, y, noise_var), or a Trial, of which those with a value count, with their own
        noise_var, repeats and constraints; a Result stands for its trials. The argument noise_var is added to that of
        each one: how far that run may be off. Nothing is told if one of them is refused.
        """
        with self._log.lock:
            told = self._log.deliver_all(self._observations(observations, noise_var), self._settle, self._pending_at)
        for trial in told:
            logger.info("%r", trial)
        return told

    @locked
    def forget(self, x: Point | Trial | int) -> None:
        """Give back a pending point, given as itself, as its trial or by its number, as if it had never been asked."""
        self._log.change(lambda: self._log.forget(self._pending_number(x)))

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
        given: Any = {"noise_var": noise_var, "repeats": repeats, "constraints": constraints}

        def correct() -> Trial:
            old = self._log.correctable(trial)
            number = self._own_number(trial, old.number)
            outcome = Outcome("told", **details_of(old)).corrected(y, **given)
            check_count(outcome.constraints, self._log.count_of_constraints(number))
            return self._log.correct(number, outcome)

        corrected = self._log.change(correct)
        logger.info("%r", corrected)
        return corrected

    @locked
    def retract(self, trial: Trial | int) -> Trial:
        """Take back the outcome of a trial that was told, failed or rejected: everything is as if it had not been.

        The trial stays in the log with the status "retracted" and its value in `y_before`, but counts for nothing: the
        point may be asked again. What was said of other trials stays, as with `correct`.
        """

        def retract() -> Trial:
            return self._log.retract(self._own_number(trial, self._log.retractable(trial).number))

        retracted = self._log.change(retract)
        logger.info("%r", retracted)
        return retracted

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
        space, model = self._subspaces.with_fixed(fixed).space, self.model
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
        fixed = [self._subspaces.with_fixed(trial.fixed).fixed for trial in checked]
        frozen = [self.space.freeze(self.space.canonical(trial.x)) for trial in checked]
        placed = [replace(t, x=x, fixed=given) for t, x, given in zip(checked, frozen, fixed, strict=True)]
        rows = [self.space.encode(trial.x) for trial in placed]
        with uninterrupted():
            self._log.take_over(placed, rows)
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
        self._drop_outdated()
        return Ledger(
            trials=tuple(self._log[number] for number in self._log.told),
            observed=self._log.observed,
            outcomes=self._log.outcomes,
            failures=tuple(self._log[number] for number in self._log.failed),
            events=tuple((told, event) for event, told in self._events.items()),
            orientation=self._orientation,
            setting=self._setting.with_preloaded(self._log.told_before_asking),
            earlier=(self._foresight, self._model),
            cache=self._memory,
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

    @locked
    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    # What is believed

    def _drop_outdated(self) -> None:
        """Drop everything that was derived from values which were corrected or retracted since."""
        if self._revision != self._log.revision:
            self._believe_anew(self._setting.cleared())

    def _believe_anew(self, setting: ModelSetting) -> None:
        """Start from a prior with nothing learned."""
        self._revision = self._log.revision  # of the values that the following were derived from
        self._setting = setting
        self._extensions = PendingPosteriors()
        self._memory = LedgerCache({}, {})  # what was read of the ledger, for the next one
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
        self._drop_outdated()
        setting = self._setting.with_preloaded(self._log.told_before_asking)
        model = Model.after(setting, self._observed(), self._foresight, self._model)
        self._model = model = model.with_outcomes(self._log.outcomes)
        self._note(*model.prior.events)
        if model.warp.bends:
            self._note(Event("transformed", f"the model is that of {self._orientation.warp(model.warp)}"))
        self._note(*model.posterior.events, *model.events)
        return model

    def _foreseeing(self) -> Model | None:
        """The model to compare the next value with; None with a learned prior before the policy's first choice."""
        self._drop_outdated()
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

    def _settle(self, target: Target, outcome: Outcome) -> Trial:
        """Record the outcome of a pending trial or of a new trial at a point, and compare a value with the model."""
        number = self._pending_number(target) if names_a_trial(target) else None
        point = self.space.canonical(target) if number is None else None
        with one_blas_thread:
            before = None
            if outcome.status == "told":
                check_count(outcome.constraints, self._log.count_of_constraints())
                before = self._foreseeing()
            with uninterrupted():
                trial = self._log.settle(self._add(point, "user").number if number is None else number, outcome)
            return trial if before is None else self._compare(trial, before)

    def _add(self, x: Point, origin: Origin, **fields: Any) -> Trial:
        """Add a pending trial at x."""
        return self._log.add(self.space.freeze(x), self.space.encode(x), origin, **fields)

    def _pending_at(self, x: Target) -> Target:
        """Return the number of the pending trial that a point means, if there is one; otherwise x."""
        if names_a_trial(x):
            return x
        number = self._log.find_pending(self.space.encode(x), self.space.rounding)
        return x if number is None else number

    def _pending_trial(self, x: Target) -> Trial | int:
        """Return a trial, or the number of the pending trial that a point means; refuse any other point."""
        found = self._pending_at(x)
        if not names_a_trial(found):
            raise ValueError(f"x is {x!r}, which is not pending; only points that were asked and not yet told are")
        return found

    def _pending_number(self, x: Target) -> int:
        """Return the number of a pending trial; refuse one of another run."""
        trial = self._pending_trial(x)
        return self._own_number(trial, self._log.pending_number(trial))

    def _own_number(self, trial: Trial | int, number: int) -> int:
        """Refuse a trial of another run that has the number of one of this run; return the number."""
        if isinstance(trial, Trial) and not np.array_equal(self.space.encode(trial.x), self._log.row(number)):
            problem = f"trial {number} of this run is at another point; give one of its trials"
            raise ValueError(f"x is {trial!r}, but {problem}")
        return number

    def _observations(self, observations: Iterable[Any] | Printable, noise_var: float) -> list[tuple[Point, Outcome]]:
        """Validate all observations of `tell_all` before one is told."""
        extra, _ = checked_noise(noise_var, 1)
        count, checked = self._log.count_of_constraints(), []
        for one in trials_given("observations", observations):
            if not isinstance(one, Trial) or one.status == "told":
                x, outcome = self._observation(one)
                count = check_count(outcome.constraints, count)
                more = checked_noise(outcome.noise_var + extra, 1)[0]
                checked.append((self.space.canonical(x), replace(outcome, noise_var=more)))
        return checked

    def _observation(self, one: Any) -> tuple[Point, Outcome]:
        """Validate the value of an observation of `tell_all`."""
        if isinstance(one, Trial):
            return one.x, Outcome("told", one.y, **details_of(one)).checked()
        if isinstance(one, tuple | list) and len(one) in (2, 3):
            return one[0], Outcome.value(one[1], noise_var=one[2] if len(one) == 3 else 0.0)
        raise TypeError(f"observations has {checks.shown(one)}; give (x, y), (x, y, noise_var) or a Trial")

    # How a suggestion is made

    def _ask_several(self, n: int, subspace: Subspace) -> list[Point]:
        points: list[Point] = []
        for _ in range(n):
            try:
                points.append(self._ask_one(subspace))
            except SpaceExhausted:
                if not points:
                    raise
                break
        return points

    def _ask_one(self, subspace: Subspace) -> Point:
        return self.space.copy(self._next_trial(subspace).x)

    @locked
    def _next_trial(self, subspace: Subspace) -> Trial:
        """Return the next trial, which is pending from now on."""
        return self._suggest(subspace)

    def _suggest(self, subspace: Subspace) -> Trial:
        """Add the next suggestion to the log."""
        suggestion = self._suggestion(subspace)
        fixed = {} if subspace.fixed is None else {"fixed": subspace.fixed}
        with uninterrupted():
            return self._add(suggestion.x, suggestion.origin, **suggestion.fields, **fixed)

    def _suggestion(self, subspace: Subspace) -> Suggestion:
        """Compute the next point: a starting point, one of the initial design, or the policy's choice."""
        self._drop_outdated()
        log = self._log
        with one_blas_thread:
            first = from_start(self._start, subspace.space, log) or from_design(
                subspace, self._setting, log, self.n_init
            )
            return first or self._chosen(subspace)

    def _chosen(self, subspace: Subspace) -> Suggestion:
        self._foresight = model = self._believe()
        limits: dict[str, Any] = {"budget": self._log.horizon, "repeats": self.repeats}
        chosen = from_policy(model, self.policy, self._log, subspace, self._extensions, self._orientation, **limits)
        self._note(*chosen.events)
        return chosen
