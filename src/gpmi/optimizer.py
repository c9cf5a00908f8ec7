"""Ask for a point, tell its value: the one object of the library that changes.

A suggestion is a function of the seed, of what was told and of what is pending, and of nothing else. So the prior in
use is a function of how many observations there are, observations enter the posterior one by one in the order in
which they were told, and random numbers are drawn afresh from (seed, told, pending) for every suggestion.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args, overload

import numpy as np

from gpmi import checks
from gpmi.gp.kernels import Kernel
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import Tracked
from gpmi.ledger.account import Ledger, Regret, Step
from gpmi.policies.phi import Policy, Reinvest, State
from gpmi.policies.promises import promises
from gpmi.prior.schedule import Priors
from gpmi.prior.warp import IDENTITY, Warp
from gpmi.search.argmax import Found, Objective, best_mean, best_observed, best_point, best_row, screen_of, sobol
from gpmi.space.space import Parameters, Space, SpaceExhausted
from gpmi.types import Array, Event, Mask, Point

Status = Literal["pending", "told", "failed"]
Origin = Literal["design", "policy", "user"]

_LARGEST = 1e100


@dataclass(frozen=True, eq=False)
class Trial:
    """One point: where it came from, what was predicted when it was chosen, and what became of it."""

    number: int
    x: Point
    y: float | None
    status: Status
    origin: Origin  # asked as part of the initial design, asked by the policy, or told without being asked
    order: int | None = None  # when its outcome came in, among all outcomes
    mu: float | None = None  # the posterior mean at x when the policy chose it; the median where y was transformed
    sd: float | None = None  # the posterior standard deviation of f there, or half the width of its central 68 %
    phi: float | None = None  # phi_t(x_t), for policies of the form mu + phi, in the units of the transformed y
    gamma_hat: float | None = None  # gamma_hat_{t-1}, in the square of these
    explored: bool | None = None  # whether mu was more than a noise sd short of the best mean at a told point
    surprise: float | None = None  # (y - mu) / sqrt(var + noise_var), under the model just before y was told
    information: float | None = None  # what y told about f in nats, log(1 + var / noise_var) / 2, under that model


class Optimizer:
    """Finds the maximum (goal="max") or minimum (goal="min") of a noisy function, point by point.

    Parameters
    ----------
    space : a list of (lo, hi), a dict of named parameters, or candidates as an array or DataFrame (`Space.of`).
    policy : how the next point is chosen; None for the library's own choice.
    kernel, noise_var : the prior. With both given the model is exactly the paper's: mean 0, coordinates and y as they
        are, nothing learned. What is None is learned from what is told.
    fit : how what is None is learned: the most probable values given the observations ("map"), those that best predict
        each observation from the others ("loo"), or by averaging the policy's score over draws of what they might be
        ("mcmc", several times as dear; `posterior` is then that of the most probable values).
    n_init : the size of the initial design, counting points told before the first `ask`. By default 0 with a given
        prior, and otherwise a few points more than there are parameters.
    budget : how many evaluations there will be in all; a hint to the policy, not a limit.
    repeats : whether a point of a finite set may be asked again.
    seed : a non-negative whole number; None draws one, kept in `seed`.

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
        kernel: Kernel | None = None,
        noise_var: float | None = None,
        fit: Literal["map", "loo", "mcmc"] = "map",
        n_init: int | None = None,
        budget: int | None = None,
        repeats: bool = True,
        seed: int | None = None,
        goal: Literal["max", "min"] = "max",
    ) -> None:
        self.space = Space.of(space)
        self.policy = _checked_policy(policy)
        self.budget = None if budget is None else checks.whole("budget", budget, 1)
        self.seed = (
            int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else checks.whole("seed", seed, 0)
        )
        checks.one_of("goal", goal, ("max", "min"))
        self.goal = goal
        self.repeats = checks.flag("repeats", repeats)
        self._priors = Priors(
            kernel, noise_var, fit, span=self.space.span, groups=self.space.groups, seed=self.seed, sign=self._sign
        )
        self.n_init = self._default_n_init() if n_init is None else checks.whole("n_init", n_init, 0)

        self._trials: dict[int, Trial] = {}
        self._rows: dict[int, Array] = {}  # the coordinates of each trial
        self._next_number = 0
        self._in_use = False  # whether the policy has ever chosen a point
        # The numbers of the trials by what became of them, each in the order in which that happened.
        self._pending: dict[int, None] = {}
        self._told: list[int] = []
        self._failed: list[int] = []
        self._events: dict[Event, int] = {}  # in order, with the number of values told when each first occurred
        # Derived from the above, kept because it is dear: see _update.
        self._anchor: Posterior | None = None  # the posterior at the last fit
        self._posterior: Posterior | None = None  # given everything told
        self._members: list[Posterior] = []  # the same under draws of the prior, with fit="mcmc"
        self._warp = IDENTITY  # what the posterior is a posterior of
        self._tracked: Tracked | None = None
        self._bound: Array | None = None
        self._seen: tuple[set[int], Mask | None] = set(), None
        # What was read of the ledger, kept for the next one.
        self._regrets: dict[int, Regret] = {}
        self._past: list[Step] = []

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
        if n is None:
            return self._ask_one()
        points: list[Point] = []
        for _ in range(checks.whole("n", n, 1)):
            try:
                points.append(self._ask_one())
            except SpaceExhausted:
                if not points:
                    raise
                break
        return points

    def tell(self, x: Point, y: float) -> Trial:
        """Record the value y observed at x: a pending point, or any other point of the space. Order is free."""
        row, value = self.space.encode(x), _checked_value(y)
        number = self._find_pending(row)
        if number is None:
            number = self._add(self.space.canonical(x), "user").number
        with one_blas_thread:
            foreseen = self._foreseen()
            self._settle(number, "told", value)
            if foreseen:
                self._compare(number)
        return self._trials[number]

    def fail(self, x: Point) -> Trial:
        """Record that the evaluation of the pending point x failed.

        The point is then modelled as if it had returned the worst value told, and is not asked again on a finite set.
        """
        return self._settle(self._pending_number(x), "failed", None)

    def forget(self, x: Point) -> None:
        """Give back the pending point x, as if it had never been asked."""
        number = self._pending_number(x)
        del self._trials[number], self._rows[number], self._pending[number]

    def recommend(self) -> Point:
        """The point of the space with the best posterior mean, told or not: what to use when y is noisy.

        Failed points count for nothing here: the mean is that of the values told.
        """
        if not self._told:
            raise ValueError("nothing has been told yet, so there is no point to recommend; tell a value first")
        with one_blas_thread:
            posterior = self._update()
            screen = None if self.space.rows is not None else self._follow(self._screen, posterior, posterior)
            rng = self._rng(posterior, [])
            return self.space.decode(best_mean(posterior, self._members, self.space, self._sign, screen, rng))

    def replay(self, trials: Iterable[Trial]) -> Optimizer:
        """Take over the trials of an earlier run, with their outcomes, origins and order; returns self.

        With the same seed and arguments the next `ask` is what that run would have asked next.
        """
        trials = [self._checked_trial(trial) for trial in trials]
        numbers = [self._take_over(trial) for trial in trials]
        settled = [i for i, trial in enumerate(trials) if trial.status != "pending"]
        for i in sorted(settled, key=lambda i: (trials[i].order is None, trials[i].order or 0, i)):
            self._settle(numbers[i], trials[i].status, trials[i].y)
        return self

    def _checked_trial(self, trial: Any) -> Trial:
        """A trial of another run as one of ours."""
        if not isinstance(trial, Trial):
            raise TypeError(f"trials has {trial!r}; give the trials of a Result or an Optimizer")
        checks.one_of("status", trial.status, get_args(Status))
        checks.one_of("origin", trial.origin, get_args(Origin))
        if trial.order is not None:
            checks.whole("order", trial.order, 0)
        y = _checked_value(trial.y) if trial.status == "told" else None
        return replace(trial, x=self.space.canonical(trial.x), y=y)

    # What the user reads

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every point asked or told so far, pending ones included, in the order in which they appeared."""
        return tuple(self._trials.values())

    @property
    def pending(self) -> tuple[Trial, ...]:
        """The points asked but not yet told."""
        return tuple(self._trials[number] for number in self._pending)

    @property
    def best(self) -> Trial | None:
        """The trial with the best observed value, the first of equals; None before the first."""
        told = [self._trials[number] for number in self._told]
        return max(told, key=lambda trial: self._sign * _value(trial), default=None)

    @property
    def posterior(self) -> Posterior | None:
        """The posterior given everything told, in the coordinates of `space.encode`; it is that of `warp(y)`."""
        if not self._told:
            return None
        with one_blas_thread:
            return self._update()

    @property
    def warp(self) -> Warp:
        """The transformation of y that the posterior is about, usually none: `warp.inverse` leads back.

        It is learned with the prior where the evidence is clear, and never used with a given kernel or noise_var.
        """
        _ = self.posterior
        return self._warp

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything the library did that was not asked for: repairs, rejected fits, reduced searches."""
        return tuple(self._events)

    @property
    def ledger(self) -> Ledger:
        """What is known and how sure it is: predictions and outcomes, the regret, calibration, lock-in.

        It is that of the values told so far, and changes no suggestion. Costs O(n) until something dear is read.
        """
        return Ledger(
            trials=tuple(self._trials[number] for number in self._told),
            points=tuple(self._rows[number] for number in self._told),
            noted=tuple((told, event) for event, told in self._events.items()),
            space=self.space,
            sign=self._sign,
            seed=self.seed,
            priors=self._priors,
            _regrets=self._regrets,
            _past=self._past,
        )

    # Trials

    @property
    def _sign(self) -> float:
        return 1.0 if self.goal == "max" else -1.0

    def _add(self, x: Point, origin: Origin, **said: Any) -> Trial:
        """A new pending trial at x, with what the model says of it."""
        if isinstance(x, np.ndarray):
            x.flags.writeable = False
        trial = Trial(self._next_number, x, None, "pending", origin, **said)
        self._trials[trial.number], self._rows[trial.number] = trial, self.space.encode(x)
        self._pending[trial.number] = None
        self._next_number += 1
        self._in_use |= origin == "policy"
        return trial

    def _take_over(self, trial: Trial) -> int:
        """The number of a new pending trial with the point and the predictions of an earlier one."""
        said = ("mu", "sd", "phi", "gamma_hat", "explored", "surprise", "information")
        return self._add(trial.x, trial.origin, **{name: getattr(trial, name) for name in said}).number

    def _settle(self, number: int, status: Status, y: float | None) -> Trial:
        trial = replace(self._trials[number], status=status, y=y, order=len(self._told) + len(self._failed))
        self._trials[number] = trial
        del self._pending[number]
        (self._told if status == "told" else self._failed).append(number)
        return trial

    def _find_pending(self, row: Array) -> int | None:
        """The pending trial at these coordinates, or the only one within rounding to six digits of them."""
        distances = {
            number: float(np.abs((self._rows[number] - row) / self.space.span).max()) for number in self._pending
        }
        for tolerance in (0.0, 1e-6):
            close = [number for number, distance in distances.items() if distance <= tolerance]
            if close and (tolerance == 0.0 or len(close) == 1):
                return close[0]
        return None

    def _pending_number(self, x: Point) -> int:
        number = self._find_pending(self.space.encode(x))
        if number is None:
            raise ValueError(f"x is {x!r}, which is not pending; only points that were asked and not yet told are")
        return number

    # The suggestion

    def _default_n_init(self) -> int:
        if self._priors.given:
            return 0
        n_init = min(10, len(set(self.space.groups)) + 3)
        return n_init if self.budget is None else max(1, min(n_init, self.budget // 3))

    def _ask_one(self) -> Point:
        with one_blas_thread:
            trial = self._designed() or self._chosen()
        return deepcopy(trial.x)  # the user may do with it what he likes

    def _designed(self) -> Trial | None:
        """The next point of the initial design, while it is incomplete."""
        trials = self._trials.values()
        blind = not self._priors.given and not self._told
        complete = len(trials) >= self.n_init or any(trial.origin == "policy" for trial in trials)
        if complete and not blind:
            return None
        taken = {row.tobytes() for row in self._rows.values()}
        for row in self._design_rows(len(taken) + 1):
            x = self.space.decode(row)
            if self.space.encode(x).tobytes() not in taken:
                return self._add(x, "design")
        return None  # a finite set smaller than its design

    def _design_rows(self, count: int) -> Array:
        """Rows of the design, at least `count` of them where there are so many: always the same, for any count."""
        rows = self.space.rows
        if rows is not None:
            order = np.random.default_rng(self.seed).permutation(len(rows))
            return rows[order]
        assert isinstance(self.space, Parameters)
        return self.space.from_unit(sobol(self.space.unit_dim, max(4, count.bit_length()), (self.seed, 0)))

    def _chosen(self) -> Trial:
        """The policy's choice."""
        told = self._update()
        failed, pending = self._failed, list(self._pending)
        objective = self._objective(self.policy, told, failed, pending)
        posterior, state = objective.posterior, objective.state
        found = self._search(objective, told, failed + pending)
        self._note(*posterior.events, *found.events)
        short = state.best_mean - self._sign * found.mu  # of the best mean at a told point
        return self._add(
            self.space.decode(found.row),
            "policy",
            **self._in_units_of_y(found.mu, found.var),
            phi=found.score - self._sign * found.mu if self.policy.additive else None,
            gamma_hat=state.gamma_hat,
            explored=not self._told or short > math.sqrt(posterior.noise_var),
        )

    def _objective(self, policy: Policy, told: Posterior, failed: list[int], pending: list[int]) -> Objective:
        """The policy's score given everything told, the failed trials at the worst value, and the pending ones."""

        def of(told: Posterior) -> Objective:
            posterior = told
            if failed:
                worst = self._sign * float((self._sign * told.y).min()) if told.n else told.mean
                for number in failed:
                    posterior = posterior.condition(self._rows[number], np.array([worst]))
            for number in pending:
                posterior = posterior.anticipate(self._rows[number])
            return Objective(posterior, policy, self._state(told, posterior, failed + pending), self._sign)

        return replace(of(told), members=tuple(of(member) for member in self._members))

    def _in_units_of_y(self, mu: float, var: float) -> dict[str, float]:
        """The median of f(x) and half the width of its central 68 %: mu and sd where there is no transformation."""
        sd = math.sqrt(var)
        low, mid, high = self._warp.inverse(np.array([mu - sd, mu, mu + sd])).tolist()
        return {"mu": mid, "sd": 0.5 * (high - low) if self._warp.bends else sd}

    def _state(self, base: Posterior, posterior: Posterior, others: list[int]) -> State:
        """The state for a posterior of the told trials, `base`, followed by those of `others`."""
        told = self._told
        chosen = np.array([self._trials[number].origin == "policy" for number in told + others], dtype=bool)
        best_observed = best_mean = self._sign * posterior.mean
        if told:
            best_observed = float(np.max(self._sign * base.y))
            best_mean = float(np.max(self._sign * base.mu_at_observed))
        size, dim = self.space.extent
        initial = len(self._trials) - sum(trial.origin == "policy" for trial in self._trials.values())
        return State(
            t=int(chosen.sum()) + 1,
            gamma_hat=float(posterior.predictive_var[chosen].sum()),
            noise_var=posterior.noise_var,
            best_observed=best_observed,
            best_mean=best_mean,
            size=size,
            dim=dim,
            horizon=None if self.budget is None else max(1, self.budget - initial),
            promises=promises(base, chosen[: len(told)], self._sign),
        )

    def _search(self, objective: Objective, told: Posterior, others: list[int]) -> Found:
        """The argmax of the objective, whose posterior extends `told` by the trials of `others`."""
        posterior, rows = objective.posterior, self.space.rows
        if rows is None:
            visited = None if self.repeats else np.array(list(self._rows.values()))
            return self._search_box(objective, told, others, visited)
        assert self._anchor is not None
        excluded = self._excluded(rows)
        tracked = None
        prior_is_new = 0 < self._anchor.n == told.n  # rows of V are worth computing when the prior will stay
        if not Tracked.fits(posterior.n, len(rows)):
            self._tracked = None
        elif not (objective.members or objective.policy.joint or (prior_is_new and objective.policy.grows_with_var)):
            tracked = self._follow(rows, told, posterior)
        found, bound = best_row(objective, rows, excluded, tracked, self._bound, self._rng(told, others))
        if bound is not None and posterior is told:
            self._bound = bound
        return found

    def _search_box(self, objective: Objective, told: Posterior, others: list[int], visited: Array | None) -> Found:
        """The same where the points cannot be enumerated; `visited` may not be chosen."""
        assert isinstance(self.space, Parameters)
        known = best_observed(told, self._sign).reshape(-1, self.space.dim)
        screen = self._follow(self._screen, told, objective.posterior)
        return best_point(objective, self.space, screen, known, self._rng(told, others), visited)

    def _rng(self, told: Posterior, others: list[int]) -> np.random.Generator:
        """Random numbers for one suggestion."""
        return np.random.default_rng([self.seed, told.n, len(others)])

    @cached_property
    def _screen(self) -> Array:
        """Points spread over the space, where the moments are kept up to date for the screen of the argmax."""
        return screen_of(self.space, self.seed)

    def _excluded(self, rows: Array) -> Mask | None:
        """Which rows may not be asked: failed ones, and with repeats=False all that were asked or told."""
        if self.repeats and not self._failed:
            return None
        gone = {n for n, trial in self._trials.items() if not self.repeats or trial.status == "failed"}
        seen, excluded = self._seen
        if excluded is None or not seen <= gone:  # a point was forgotten
            seen, excluded = set(), np.zeros(len(rows), dtype=bool)
        for number in gone - seen:
            excluded[self.space.numbers(self._rows[number])] = True
        self._seen = gone, excluded
        if excluded.all():
            raise SpaceExhausted(
                f"all {len(rows)} candidates have been asked, told or failed; there is none left to offer"
                + ("" if self.repeats else " (repeats=True allows asking again)")
            )
        return excluded

    # The model

    def _update(self) -> Posterior:
        """The posterior given everything told, under the prior that belongs to that many observations."""
        p = self._priors.point(len(self._told))
        if self._posterior is None or self._anchor is None or self._anchor.n != p:
            x = np.array([self._rows[number] for number in self._told[:p]]).reshape(p, self.space.dim)
            y = np.array([_value(self._trials[number]) for number in self._told[:p]])
            prior = self._priors(p, x, y)
            anchor, self._warp = prior.posterior(), prior.warp
            self._anchor = self._posterior = anchor.condition(x, self._warp(y)) if p else anchor
            self._members = [one.posterior().condition(x, self._warp(y)) for one in prior.samples]
            self._tracked = self._bound = None
            self._note(*prior.events)
        posterior = self._catch_up()
        self._note(*posterior.events)
        return posterior

    def _catch_up(self) -> Posterior:
        """The posterior given everything told, under the prior of the last update."""
        assert self._posterior is not None
        for number in self._told[self._posterior.n :]:
            z = self._warp(np.array([_value(self._trials[number])]))
            self._posterior = self._posterior.condition(self._rows[number], z)
            self._members = [member.condition(self._rows[number], z) for member in self._members]
        return self._posterior

    def _foreseen(self) -> bool:
        """Whether there is a model to compare the next value with, given everything told before.

        With a prior that is learned there is none before the policy's first choice.
        """
        if not (self._priors.given or (self._in_use and self._told)):
            return False
        with suppress(Exception):  # no value is lost for the model's sake; the next `ask` says what is wrong
            _ = self._update() if self._posterior is None else self._catch_up()
            return True
        return False

    def _compare(self, number: int) -> None:
        """Note how the value just told compares with what was foreseen. O(n^2), of which the next `ask` is relieved."""
        posterior = None
        with suppress(Exception):
            posterior = self._catch_up()
        if posterior is None:
            return
        s = posterior.n - 1
        pivot, var = float(posterior.factor.diagonal[s]), float(posterior.predictive_var[s])
        trial, noise_var = self._trials[number], posterior.noise_var
        if trial.mu is None:
            said = self._in_units_of_y(float(posterior.y[s]) - pivot * float(posterior.whitened[s]), var)
            trial = replace(trial, mu=said["mu"], sd=said["sd"])
        self._trials[number] = replace(
            trial,
            surprise=float(posterior.whitened[s]),
            information=0.5 * math.log1p(var / noise_var) if noise_var > 0.0 else math.inf,
        )

    def _note(self, *events: Event) -> None:
        for event in events:
            self._events.setdefault(event, len(self._told))

    def _follow(self, z: Array, told: Posterior, posterior: Posterior) -> Tracked:
        """The moments of `posterior` at z, from those kept for the told observations."""
        assert self._anchor is not None
        base = self._tracked
        if base is None or base.z is not z or not base.extends_to(told):
            base = Tracked.start(self._anchor, z)
        self._tracked = base.follow(told)
        return self._tracked.follow(posterior)


def _value(trial: Trial) -> float:
    """y of a told trial."""
    assert trial.y is not None
    return trial.y


def _checked_value(y: Any) -> float:
    value = checks.number("y", y, "give one finite number, or call fail(x) for an evaluation that has none")
    if abs(value) > _LARGEST:
        raise ValueError(f"y is {y!r}, too large to be squared; give values below {_LARGEST:g}, in other units")
    return value


def _checked_policy(policy: Any) -> Policy:
    if policy is None:
        return Reinvest()
    if isinstance(policy, type) and issubclass(policy, Policy):
        raise TypeError(f"policy is the class {policy.__name__}; give an instance, {policy.__name__}()")
    if not isinstance(policy, Policy):
        raise TypeError(f"policy is {policy!r}; give a policy such as gpmi.GPMI(), or None")
    return policy
