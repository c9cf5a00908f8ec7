"""Ask for a point, tell its value: the one object of the library that changes.

A suggestion is a function of the seed, of what was told and of what is pending, and of nothing else. So the prior in
use is a function of how many values there are, values enter the posterior in the order in which they were told, and
random numbers are drawn afresh from (seed, told, pending) for every suggestion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from threading import RLock
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

import numpy as np

from gpmi import checks
from gpmi.frame import Shown
from gpmi.gp.kernels import Kernel
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.posterior import Posterior
from gpmi.interrupts import uninterrupted
from gpmi.ledger.account import Ledger, Memory
from gpmi.model import Extensions, Model, Setting, information_of
from gpmi.orientation import Goal, Orientation
from gpmi.policies import Aim, Policy, of_aim
from gpmi.policies.policy import checked_policy
from gpmi.prior.schedule import Priors
from gpmi.prior.warp import IDENTITY, Warp
from gpmi.search.screens import Design
from gpmi.search.search import Search
from gpmi.space import Space, SpaceExhausted
from gpmi.suggestion import Suggestion, by_policy, default_n_init, from_design
from gpmi.text import Line, best_lines, tally
from gpmi.trials import Log, Origin, Trial, checked_trial, checked_value, names_a_trial, take_over
from gpmi.types import Array, Event, Point

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


def locked(
    method: Callable[Concatenate[Optimizer, Arguments], Result],
) -> Callable[Concatenate[Optimizer, Arguments], Result]:
    """The method of an Optimizer under its lock: threads that share it wait for each other."""

    @wraps(method)
    def alone(self: Optimizer, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with self._lock:
            return method(self, *args, **kwargs)

    return alone  # type: ignore[return-value]  # mypy misses that self comes first in both


class Optimizer(Shown):
    """Finds the maximum (goal="max") or minimum (goal="min") of a noisy function, point by point.

    Parameters
    ----------
    space : a list of (lo, hi), a dict of named parameters, or candidates as an array or DataFrame (`Space.of`).
    policy : how the next point is chosen; None for that of `aim`.
    aim : what counts: the best point when the budget ends ("find"), or every evaluation ("earn"). A policy that is
        given overrides it.
    kernel, noise_var : the prior. With both given the model is exactly the paper's: mean 0, coordinates and y as they
        are, nothing learned. What is None is learned from what is told: kernel=None, noise_var=None, or a
        hyper-parameter of a kernel, as in `kernels.Matern(nu=1.5, lengthscale=None)`.
    fit : how what is None is learned: the most probable values given the observations ("map"), those that best predict
        each observation from the others ("loo"), or by averaging the policy's score over draws of what they might be
        ("mcmc", several times the cost; `posterior` is then that of the most probable values).
    n_init : the size of the initial design, counting points told before the first `ask`. By default 0 with a given
        prior, and otherwise a few points more than there are parameters.
    budget : how many evaluations there will be in all; a hint to the policy, not a limit.
    repeats : whether a point of a finite set may be asked again. Under aim="find" it is only where f is noisy, or where
        no other point is left.
    seed : a non-negative whole number; None draws one, kept in `seed`.
    constraints : texts such as "a + b <= 1", (A, lb, ub), `Forbidden`, functions feasible(point) -> bool, or a list.

    Threads may share an Optimizer: each call is made alone, so the log is that of some order of the calls. To pickle or
    copy it, wait until no other thread uses it.

    Examples
    --------
    >>> opt = Optimizer([(0.0, 1.0)], seed=0)
    >>> for _ in range(12):
    ...     x = opt.ask()
    ...     _ = opt.tell(x, -(x[0] - 0.3) ** 2)
    >>> abs(float(opt.recommend()[0]) - 0.3) < 0.01
    True
    """

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
        constraints: Any = None,
    ) -> None:
        made, finding = Space.of(space).constrained(constraints), policy is None and aim == "find" and kernel is None
        self.space = made = made.evened() if finding else made  # how finite sets are modelled depends on the aim
        self.policy = of_aim(aim) if policy is None else checked_policy(policy)
        self.budget = None if budget is None else checks.whole("budget", budget, 1)
        drawn = int(np.random.SeedSequence().generate_state(1)[0])
        self.seed = drawn if seed is None else checks.whole("seed", seed, 0, checks.LARGEST_SEED)
        checks.one_of("goal", goal, ("max", "min"))
        self.goal = goal
        self.repeats = checks.flag("repeats", repeats)
        soften = finding and made.rows is not None
        priors = Priors(kernel, noise_var, fit, span=made.span, groups=made.groups, seed=self.seed, soften=soften)
        self.n_init = (
            default_n_init(self.space, priors, self.budget) if n_init is None else checks.whole("n_init", n_init, 0)
        )

        self._lock = RLock()
        self._orientation = Orientation(goal)
        self._setting = Setting(self.space, priors, self.seed)
        self._log = Log()
        self._search = Search(self.space, self.seed, repeats=self.repeats)
        self._design = Design(self.space, self.seed, cover=policy is None and aim == "find")
        self._extensions = Extensions()
        self._events = dict.fromkeys(self.space.events, 0)  # in order, with the number of values told at the first time
        self._memory = Memory({}, {})  # what was read of the ledger, for the next one
        self._model: Model | None = None  # after the values told when it was last needed
        self._foresight: Model | None = None  # that of the policy's last choice, extended by the values told since

    # What the user does

    @overload
    def ask(self) -> Point: ...
    @overload
    def ask(self, n: int) -> list[Point]: ...
    def ask(self, n: int | None = None) -> Point | list[Point]:
        """The next point to evaluate, or a list of n to evaluate at the same time; pending until told.

        The list is shorter where fewer points are left (repeats=False). With n_obs observations a point costs
        O(n_obs^2) on average, plus O(n_obs m) on a finite set of m points.
        """
        with self._lock:
            return self._ask_one() if n is None else self._ask_several(checks.whole("n", n, 1))

    @locked
    def tell(self, x: Point | Trial | int, y: float) -> Trial:
        """Record the value y observed at x: a pending point, or any other point of the space. Order is free.

        x may also be a pending trial or its number, which tells two pending trials at equal points apart; by a point
        the one that was asked first is meant.
        """
        number: int | None
        if names_a_trial(x):
            number, value = self._pending_number(x), checked_value(y)
        else:
            row, value = self.space.encode(x), checked_value(y)
            number = self._log.find_pending(row, self.space.rounding)

        def record() -> Trial:
            told = self._add(self.space.canonical(x), "user").number if number is None else number
            return self._log.settle(told, value)

        with one_blas_thread:
            before = self._foreseeing()
            trial: Trial = uninterrupted(record)
            return trial if before is None else self._compare(trial, before)

    @locked
    def fail(self, x: Point | Trial | int) -> Trial:
        """Record that the evaluation of a pending point, given as itself, as its trial or by its number, failed.

        The point is then modelled as if it had returned the worst value told, and is not asked again on a finite set.
        """
        number = self._pending_number(x)
        failed: Trial = uninterrupted(lambda: self._log.settle(number, None))
        return failed

    @locked
    def forget(self, x: Point | Trial | int) -> None:
        """Give back a pending point, given as itself, as its trial or by its number, as if it had never been asked."""
        number = self._pending_number(x)
        uninterrupted(lambda: self._log.forget(number))

    @locked
    def recommend(self) -> Point:
        """The point of the space with the best posterior mean, told or not: what to use when y is noisy.

        Failed points count for nothing here: the mean is that of the values told.
        """
        model = self.model
        if model is None:
            raise ValueError("nothing has been told yet, so there is no point to recommend; tell a value first")
        with one_blas_thread:
            return self.space.decode(model.recommended)

    @locked
    def replay(self, trials: Iterable[Trial]) -> Optimizer:
        """Take over the trials of an earlier run, with their outcomes, origins and order; returns self.

        With the same seed and arguments the next `ask` is what that run would have asked next. Values told to pending
        trials afterwards are compared with the model of now.
        """
        checked = [checked_trial(trial) for trial in trials]
        placed = [replace(trial, x=self.space.frozen(self.space.canonical(trial.x))) for trial in checked]
        rows = [self.space.encode(trial.x) for trial in placed]
        uninterrupted(lambda: take_over(self._log, placed, rows))
        return self

    # What the user reads

    @property
    @locked
    def trials(self) -> tuple[Trial, ...]:
        """Every point asked or told so far, pending ones included, in the order in which they appeared."""
        return self._log.trials

    @property
    @locked
    def pending(self) -> tuple[Trial, ...]:
        """The points asked but not yet told."""
        return tuple(self._log[number] for number in self._log.pending)

    @property
    @locked
    def best(self) -> Trial | None:
        """The trial with the best observed value, the first of equals; None before the first."""
        if not self._log.told:
            return None
        return self._log[self._log.told[int(np.argmax(self._values()))]]

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
            points=tuple(self._log.told_rows),
            noted=tuple((told, event) for event, told in self._events.items()),
            orientation=self._orientation,
            setting=self._setting.after(self._log.given),
            known=(self._foresight, self._model),
            memory=self._memory,
        )

    def all_trials(self) -> tuple[Trial, ...]:
        return self.trials

    @locked
    def told_in_words(self) -> list[Line]:
        best, log = self.best, self._log
        outcomes = f"{len(log.told)} told, {len(log.pending)} pending, {len(log.failed)} failed"
        return [
            *best_lines(self.goal, None if best is None else best.x, None if best is None else best.y),
            ("trials", outcomes if self.budget is None else f"{outcomes}; budget {self.budget}"),
            ("policy", repr(self.policy)),
            ("seed", str(self.seed)),
            ("events", tally(event.kind for event in self._events)),
        ]

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=RLock())

    # How a suggestion is made

    def _ask_several(self, n: int) -> list[Point]:
        points: list[Point] = []
        for _ in range(n):
            try:
                points.append(self._ask_one())
            except SpaceExhausted:
                if not points:
                    raise
                break
        return points

    def _ask_one(self) -> Point:
        with one_blas_thread:
            next_one = from_design(self._design, self._setting, self._log, self.n_init) or self._chosen()
        trial: Trial = uninterrupted(lambda: self._add(next_one.x, next_one.origin, **next_one.said))
        return self.space.copy(trial.x)

    def _chosen(self) -> Suggestion:
        self._foresight = model = self._believe()
        limits: dict[str, Any] = {"budget": self.budget, "repeats": self.repeats}
        chosen = by_policy(model, self.policy, self._log, self._search, self._extensions, self._orientation, **limits)
        self._note(*chosen.events)
        return chosen

    def _add(self, x: Point, origin: Origin, **said: Any) -> Trial:
        """A new pending trial at x, with what the model says of it."""
        return self._log.add(self.space.frozen(x), self.space.encode(x), origin, **said)

    # What is believed

    def _values(self) -> Array:
        """The values told, oriented, (n,)."""
        return self._orientation.values(self._log.told_values)

    def _believe(self) -> Model:
        """The model after everything told."""
        known, setting = (self._foresight, self._model), self._setting.after(self._log.given)
        self._model = model = Model.after(setting, self._log.told_rows, self._values(), *known)
        self._note(*model.prior.events)
        if model.warp.bends:
            self._note(Event("transformed", f"the model is that of {self._orientation.warp(model.warp)}"))
        self._note(*model.posterior.events)
        return model

    def _foreseeing(self) -> Model | None:
        """The model to compare the next value with; None with a learned prior before the policy's first choice."""
        log = self._log
        if not (self._setting.priors.given or (log.unchosen < len(log) and log.told)):
            return None
        with suppress(Exception):  # a value is recorded whatever the model says; the next `ask` raises what is wrong
            if self._foresight is None:
                return self._believe()
            return self._foresight.extended(log.told_rows, self._values())
        return None

    def _compare(self, trial: Trial, before: Model) -> Trial:
        """Note how the value just told compares with what was foreseen. O(n^2), of which the next `ask` is relieved."""
        try:
            model = before.extended(self._log.told_rows, self._values())
        except Exception:  # as above
            return trial
        self._foresight = model
        mu, var, surprise = model.foreseen()
        said: dict[str, float] = {}
        if trial.mu is None:
            median, said["sd"] = model.in_units_of_y(mu, math.sqrt(var))
            said["mu"] = self._orientation.value(median)
        said["surprise"] = self._orientation.value(surprise)
        said["information"] = information_of(var, model.posterior.noise_var)
        return self._log.note(trial.number, **said)

    def _note(self, *events: Event) -> None:
        for event in events:
            self._events.setdefault(event, len(self._log.told))

    def _pending_number(self, x: Point | Trial | int) -> int:
        if not names_a_trial(x):
            number = self._log.find_pending(self.space.encode(x), self.space.rounding)
            if number is None:
                raise ValueError(f"x is {x!r}, which is not pending; only points that were asked and not yet told are")
            return number
        number = self._log.pending_number(x)
        if isinstance(x, Trial) and not np.array_equal(self.space.encode(x.x), self._log.rows[number]):
            raise ValueError(f"x is {x!r}, but trial {number} of this run is at another point; give one of its trials")
        return number
