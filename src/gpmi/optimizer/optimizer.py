"""`Optimizer`: ask for a point, tell its value. The only public object that changes.

A suggestion is a function of the seed, the outcomes and the pending trials, and of nothing else. Three rules see to it.
The number of values decides from how many of the first ones the prior is learned. Values enter the posterior in the
order in which they were told. Each suggestion seeds its random numbers with (seed, number told, number pending or
failed).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Literal, overload

from gpmi._support import checks
from gpmi._support.interrupts import uninterrupted
from gpmi._support.logger import logger
from gpmi._support.text import Line, event_summary, percent
from gpmi._support.types import Array, Event, Point
from gpmi.analysis.descriptors import DescriptorShares, descriptor_shares
from gpmi.analysis.front import CONFIDENCE, Chosen, FrontAnalysis
from gpmi.analysis.ledger.front_ledger import FrontLedger
from gpmi.analysis.ledger.ledger import Ledger
from gpmi.analysis.ledger.options import OptionSummary
from gpmi.gp.kernels import Kernel
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.posterior import Posterior
from gpmi.model.fitting.warp import IDENTITY, Warp
from gpmi.model.model import Model
from gpmi.model.orientation import Goal
from gpmi.model.outputs import OutputModel
from gpmi.model.sources import SourceSummary
from gpmi.optimizer.arguments import Arguments, check_single_objective
from gpmi.optimizer.batches import Batch, BatchRule, Suggest
from gpmi.optimizer.costs import has_room
from gpmi.optimizer.curves import HARDLY, checked_step, is_next_step, may_stop, points_at_target
from gpmi.optimizer.doubts import doubt_events
from gpmi.optimizer.levels import from_level_design
from gpmi.optimizer.locking import locked
from gpmi.optimizer.observations import given_observations, given_trials
from gpmi.optimizer.open_trials import open_at, open_number, own_number
from gpmi.optimizer.pending_trials import pending_number, pending_trial
from gpmi.optimizer.settings import at_settings
from gpmi.optimizer.several import SeveralObjectives
from gpmi.optimizer.single import SingleScore
from gpmi.optimizer.strategy import Comparison, Note, Strategy
from gpmi.optimizer.suggestion import Suggestion, from_design, from_start
from gpmi.optimizer.summary import trial_lines
from gpmi.policies import Aim, Policy
from gpmi.search.subspaces import Subspace, Subspaces
from gpmi.space import SpaceExhausted, copied, frozen
from gpmi.trials import Log, Origin, Outcome, Trial, corrections, names_a_trial
from gpmi.trials.costs import spent
from gpmi.trials.dataframe import Printable
from gpmi.trials.log import TrialOrPoint
from gpmi.trials.outcomes import details_of
from gpmi.trials.replay import take_over
from gpmi.trials.value_bounds import outside_bounds


class Optimizer(Printable):
    """Find the maximum (goal="max") or minimum (goal="min") of a noisy function, point by point.

    Threads may share an Optimizer: its calls are serialised. Pickle or copy it only while no other thread uses it.

    Parameters
    ----------
    space : a list of (lo, hi), a dict of named parameters, or candidates as an array or DataFrame (`Space.of`).
    policy : how the next point is chosen; None for the policy of `aim`. A given policy overrides the aim.
    aim : what counts: the best point when the budget ends ("find"), or every evaluation ("earn"). `opt.defaults` lists
        what else the aim or the policy sets in the initial design and the model.
    kernel, noise_var : the prior. With both given the model is exactly the paper's: mean 0, coordinates and y as they
        are, nothing learned. Anything that is None is learned from the values: kernel=None, noise_var=None, or a
        hyper-parameter of a kernel, as in `kernels.Matern(nu=1.5, lengthscale=None)`. In a run with goals each may be a
        dict by output; given as they are, they are those of every objective.
    fit : how it is learned: as the most probable hyper-parameters ("map"), as those that best predict each observation
        from the others ("loo"), or by averaging the policy's score over draws from their posterior ("mcmc", several
        times the cost; `posterior` then uses the most probable ones).
    n_init : the size of the initial design, counting points told before the first `ask`. By default 0 with a given
        prior, and otherwise a few points more than there are parameters; with aim="find" on a finite set at most 5.
    budget : the number of evaluations in all; a hint to the policy, not a limit.
    mean : a function of a point that approximates f, used as the prior mean: the model describes f - mean, and y is not
        transformed. It must be quick, because the search evaluates it often, and return a finite number everywhere in
        the box, even where constraints are broken.
    x0 : points to ask first, one or a list of them. They count as part of the initial design.
    repeats : whether a point of a finite set may be asked again. With aim="find" a point is repeated only if f is noisy
        or no other point is left.
    seed : a non-negative whole number; None draws one, kept in `seed`.
    constraints : strings such as "a + b <= 1", (A, lb, ub), `Forbidden`, functions feasible(point) -> bool, or a list.
    earlier : earlier studies by name, {"last year": study}: a Study, a Result, trials, a DataFrame or a list of (x, y).
        Each is a function that is related to this one, with its own mean and scale, and a correlation that is learned
        and may be negative. A source that makes predictions worse is ignored, and an event says so. Its values are not
        trials of this study. With sources the initial design is shorter, and begins with their best points.
    noise : the distribution of the noise. "student" has heavy tails, Student's t with 4 degrees of freedom, so that
        outliers count little; noise_var is then its squared scale, half of its variance. A value costs O(n_obs^3).
    bounds : the smallest and the largest value that y can have at all, such as (0, 100) for a yield in %, with None for
        a side that is open; in a run with goals a dict by output. What is stated about f stays within them:
        predictions, intervals, what is still to be gained, pictures. A value outside counts as it is, and an event says
        so. Suggestions are the same with and without bounds.
    units : a label for people, such as "%", for the values; in a run with goals a dict by output.

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
        kernel: Kernel | Mapping[str, Kernel | None] | None = None,
        noise_var: float | Mapping[str, float | None] | None = None,
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
        goals: Mapping[str, Any] | None = None,
        bounds: Any = None,
        units: Any = None,
        earlier: Mapping[str, Any] | None = None,
    ) -> None:
        self._arguments = given = Arguments.of(
            space,
            policy,
            aim=aim,
            kernel=kernel,
            noise_var=noise_var,
            fit=fit,
            n_init=n_init,
            budget=budget,
            repeats=repeats,
            seed=seed,
            goal=goal,
            mean=mean,
            x0=x0,
            constraints=constraints,
            noise=noise,
            goals=goals,
            bounds=bounds,
            units=units,
            earlier=earlier,
        )
        self.space, self.goals, self.goal = given.space, given.goals, given.goals.direction
        self.bounds, self.units = given.bounds, given.units
        self.policy, self.defaults = given.policy, given.defaults
        self.seed, self.n_init, self.repeats = given.seed, given.n_init, given.repeats
        self._log = Log(given.budget, given.goals, given.space.fidelity)
        self._start = given.start
        self._events: dict[Event, int] = {}  # in order, with the number of values when each first occurred
        self._strategy = strategy_of(given, self._note)
        cover = given.defaults.show_options
        self._subspaces = Subspaces(given.space, given.seed, repeats=given.repeats, cover=cover)
        self._note(*given.events)

    # What the user does

    @overload
    def ask(self, n: None = None, *, fixed: Mapping[Any, Any] | None = None) -> Point: ...
    @overload
    def ask(
        self,
        n: int,
        *,
        fixed: Mapping[Any, Any] | None = None,
        same: Sequence[Any] | None = None,
        apart: Mapping[Any, float] | None = None,
    ) -> list[Point]: ...
    def ask(
        self,
        n: int | None = None,
        *,
        fixed: Mapping[Any, Any] | None = None,
        same: Sequence[Any] | None = None,
        apart: Mapping[Any, float] | None = None,
    ) -> Point | list[Point]:
        """Return the next point to evaluate, or a list of n to evaluate at the same time; pending until told.

        `fixed` are coordinates that you set, {"temperature": 21.5}, or {index: value} where points are arrays. The
        policy chooses the others. The list is shorter if fewer points are left (repeats=False). With n_obs observations
        a point costs O(n_obs^2) on average, plus O(n_obs m) on a finite set of m points.

        All n points have the same value of each parameter in `same`, a list such as ["temperature"]: the policy chooses
        it with the first point. Any two of them differ by at least `apart`, {"temperature": 5}. With one of these no
        point is in the batch twice.
        """
        with self._log.lock:
            if same is not None or apart is not None:
                rule = BatchRule.of(self.space, n, fixed, same, apart)
                return [copied(trial.x) for trial in self.ask_batch(rule, self._next_trial)]
            subspace = self._subspaces.with_fixed(fixed)
            return self._ask_one(subspace) if n is None else self._ask_several(checks.whole("n", n, 1), subspace)

    def ask_batch(self, rule: BatchRule, hand_out: Callable[[Subspace, Suggest], Trial]) -> list[Trial]:
        """Return the trials of a batch with a rule; fewer, with an event, if no more different points are left."""
        batch = Batch(rule, self._subspaces.with_fixed, self._compute_suggestion, self.seed)
        try:
            batch.ask(hand_out)
        except SpaceExhausted as error:
            if not batch.trials:
                raise
            self._note(Event("short batch", f"{len(batch.trials)} of {rule.n} points were found: {error}"))
        except BaseException:  # the caller does not get them
            for trial in batch.trials:
                self.forget(trial)
            raise
        return batch.trials

    @property
    def budget(self) -> int | None:
        """The number of evaluations in all, if it was given."""
        return self._log.budget

    @property
    def evaluated(self) -> int:
        """The number of outcomes that count in the budget: values and failures. O(n)."""
        return self._log.evaluated

    @property
    def has_reached_target(self) -> bool:
        """Whether a value was told at the target of the fidelity; any value if there is none."""
        return bool(self._log.reached)

    def turns(self, budget: int | None) -> Generator[Trial | None, None, None]:
        """Yield the trials for a loop to evaluate: `budget` of them, or without end for None.

        The optimizer of a study may yield None: no trial is free now, try again later.
        """
        for _ in count() if budget is None else range(budget):
            yield self._next_trial(self._subspaces.whole)

    @checks.with_name_hints
    @locked
    def tell(
        self,
        x: Point | Trial | int,
        y: float | Mapping[str, float],
        *,
        noise_var: float | Mapping[str, float] = 0.0,
        repeats: int | Mapping[str, int] = 1,
        constraints: Sequence[float] | None = None,
    ) -> Trial:
        """Record the value y observed at x: a pending point, or any other point of the space. Order is free.

        In a run with goals, y is a dict of outputs, and noise_var and repeats may be dicts as well. Outputs may come
        one by one: tell the others to the same trial, or to its point.

        x may also be a pending trial or its number: use it if two pending trials are at the same point. A bare point
        means the one asked first.

        y is the mean of `repeats` evaluations. Its noise has the variance s / repeats + noise_var: s is that of a
        single evaluation, which the optimizer was given or learns, and `noise_var` here is the square of an error bar
        that comes on top. If error bars are the whole noise, s is 0: Optimizer(..., noise_var=0).

        `constraints` are measured with y: the point is feasible if all of them are <= 0. Each is modelled by its own
        Gaussian process with a learned prior, and a policy's expected gain is multiplied by the probability that all
        hold. Every value must come with the same number of constraints.
        """
        outcome = self.outcome_of(y, noise_var=noise_var, repeats=repeats, constraints=constraints)
        return self.record(self._open_at(x, outcome), outcome)

    @locked
    def report(
        self, trial: Trial | int | Point, step: int, y: float | Mapping[str, float]
    ) -> Literal["continue", "stop"]:
        """Record a value y of a pending trial at a step of its fidelity; return whether to go on to the target.

        "stop" means that the value at the target will hardly exceed the best one. The trial then has the status
        "stopped", and what it reported counts for the model. It may go on all the same: report its next steps. The last
        step is the target: y there is the value of the trial, as by `tell`, and the answer is "stop".

        Only a few values of a curve enter the model: at an eighth, a quarter and half of the steps, and the last. At
        these the answer costs an update of the model, at others next to nothing.
        """
        target = pending_trial(trial, self.space, self._log)
        outcome, number = self.outcome_of(y), checked_step(self._log, target, step)
        if number == self._log.last_step(target):
            self.record(target, outcome)
            return "stop"
        reported = self._log.deliver_report(target, number, outcome, self._report, self._settle)
        logger.info("%r", reported.trial)
        return "continue" if reported.goes_on else "stop"

    def _report(self, target: Trial | int, step: int, outcome: Outcome) -> Trial:
        """Record a value of a curve, and stop the trial if it will hardly win. A repeated value changes nothing."""
        number = pending_number(target, self.space, self._log)
        if not is_next_step(self._log[number], step, outcome):
            return self._log[number]
        with uninterrupted():
            trial = self._log.report(number, step, outcome)
        why = self._reason_to_stop(trial)
        return trial if why is None else self._log.settle(number, Outcome.stop(why))

    def _reason_to_stop(self, trial: Trial) -> str | None:
        if not may_stop(trial, self._log, self.space):
            return None
        rivals = points_at_target(self._log, self._subspaces.with_fixed(trial.fixed).space)
        with one_blas_thread:
            chance = self._strategy.chance_to_matter(self._log, trial, rivals)
        return None if chance >= HARDLY else f"will hardly win: probability {percent(chance)}"

    def outcome_of(self, y: Any, **details: Any) -> Outcome:
        """Return a value, or the outputs of a run with goals, as a validated outcome."""
        return self.goals.outcome(y, **details)

    @locked
    def fail(self, x: Point | Trial | int, why: str | None = None) -> Trial:
        """Record that the evaluation of a pending point failed. x is the point, its trial or its number.

        The probability of success is learned from values and failures, and a policy's expected gain is multiplied by
        it: the region is avoided, not forbidden. On a finite set the row is not asked again. The trial keeps `why`.
        """
        return self.record(pending_trial(x, self.space, self._log), Outcome.failure(why))

    @locked
    def reject(self, x: Point | Trial | int, why: str | None = None) -> Trial:
        """Record that x will not or cannot be evaluated: a pending point, or any other point of the space.

        On a finite set the row is not offered again. Elsewhere no point is offered within a thousandth of the width of
        the space in every coordinate, and none within 5 % of it before 5 more values have been told. A rejection is not
        a failure: the model learns nothing from it. `retract` takes it back. `why` is the reason, for people.
        """
        rejection = Outcome.rejection(why)
        return self.record(self._open_at(x, rejection), rejection)

    def record(self, target: TrialOrPoint, outcome: Outcome) -> Trial:
        """Record the outcome of a pending trial, or of a new trial at a point.

        Every outcome comes through here. `tell` and `reject` first look up the pending trial at a point.
        """
        with self._log.lock:
            trial = self._log.deliver(target, outcome, self._settle)
        logger.info("%r", trial)
        return trial

    def tell_all(
        self, observations: Iterable[Any] | Printable, *, noise_var: float | Mapping[str, float] = 0.0
    ) -> list[Trial]:
        """Tell known values, such as those of an earlier run, in their order.

        An observation is (x, y), (x, y, noise_var) or a Trial with its own noise_var, repeats and constraints; trials
        without a value are skipped. A Result stands for its trials. A value at a pending point is told to its trial, as
        by `tell`. The argument noise_var is added to that of each observation: how far the earlier run may be off, as
        a variance. If an observation is refused, none is told. In a run with goals, y is a dict of outputs, and
        noise_var may be a dict, too; with a single objective, y may also be its number, as from a run without goals.
        """
        with self._log.lock:
            checked = given_observations(observations, noise_var, self._log, self.space)
            told = self._log.deliver_all(checked, self._settle, self._open_at)
        for trial in told:
            logger.info("%r", trial)
        return told

    @locked
    def forget(self, x: Point | Trial | int) -> None:
        """Withdraw a pending point, as if it had never been asked. x is the point, its trial or its number."""
        self._log.change(lambda: self._log.forget(pending_number(x, self.space, self._log)))

    @locked
    def move(self, trial: Point | Trial | int, x: Point) -> Trial:
        """Record that a pending trial is evaluated at x, and not at the point that was suggested.

        The trial keeps its number, and counts as a point that the user chose: predictions for the other point are void.
        """
        to = self.space.canonical(x)
        row = self.space.encode(to)
        moved = self._log.change(lambda: self._log.move(pending_number(trial, self.space, self._log), frozen(to), row))
        logger.info("%r", moved)
        return moved

    @checks.with_name_hints
    @locked
    def correct(
        self,
        trial: Trial | int,
        y: float | Mapping[str, float],
        *,
        noise_var: float | Mapping[str, float] | None = None,
        repeats: int | Mapping[str, int] | None = None,
        constraints: Sequence[float] | None = None,
    ) -> Trial:
        """Replace the value of a trial by y, as if y had been told originally. Outputs that y leaves out stay.

        The trial, or its number, must have been told, failed or retracted. noise_var, repeats and constraints keep
        their values unless given. The model and its prior are computed again: O(n^3). Predictions stored with trials
        (`mu`, `sd`, `phi`, `gamma_hat`) stay as they were made. The `surprise` and `information` of this trial become
        None, and `y_before` keeps its first value. Pending points stay pending; only later asks use y.
        """
        given: Any = {"noise_var": noise_var, "repeats": repeats, "constraints": constraints}

        def correct() -> Trial:
            old = corrections.correctable(self._log, trial)
            number = own_number(trial, old.number, self.space, self._log)
            before = Outcome("told", **details_of(old))
            outcome = self.goals.corrected(before, y, **given)
            self._log.check(outcome, number)
            return corrections.correct(self._log, number, outcome)

        corrected = self._log.change(correct)
        logger.info("%r", corrected)
        return corrected

    @locked
    def retract(self, trial: Trial | int) -> Trial:
        """Take back the outcome of a trial that was told, stopped, failed or rejected, as if it had never come.

        The trial stays in the log with the status "retracted" and its value in `y_before`, but no longer counts: the
        point may be asked again. Predictions stored with other trials stay, as with `correct`.
        """

        def retract() -> Trial:
            number = corrections.retractable(self._log, trial).number
            return corrections.retract(self._log, own_number(trial, number, self.space, self._log))

        retracted = self._log.change(retract)
        logger.info("%r", retracted)
        return retracted

    @locked
    def confirm(self, trial: Trial | int) -> Trial:
        """Say that the value of a trial is right, although it does not fit the others (`Trial.doubt`).

        It then counts as it is, and is never doubtful again. A value that is wrong is corrected or retracted instead.
        The trial, or its number, must have been told. In a run with goals all values that it has are right.
        """

        def confirm() -> Trial:
            number = corrections.confirmable(self._log, trial).number
            return self._log.confirm(own_number(trial, number, self.space, self._log))

        confirmed = self._log.change(confirm)
        logger.info("%r", confirmed)
        return confirmed

    @locked
    def recommend(self, *, fixed: Mapping[Any, Any] | None = None) -> Point:
        """Return the point with the best posterior mean: the one to use when y is noisy.

        - Without failures and measured constraints, it is the best point of the space, told or not. If the mean is the
          same everywhere, after one value or while all are equal, it is a told point.
        - Otherwise it is the best told point that works: no constraint was broken there, and the probability of success
          is at least 1/2. If there is none, it is the told point most likely to succeed, and an event says so.
        - With `fixed`, as in `ask`, only points with these coordinates count. If failures or constraints are involved
          and no such told point works, it is the best point that succeeds with a probability of at least 0.95, told or
          not, or else the point most likely to succeed.
        """
        check_single_objective(self.goals)
        self.space.check_at_target(fixed)
        space, model = self._subspaces.with_fixed(fixed).space, self.model
        if model is None:
            raise ValueError("nothing has been told yet, so there is no point to recommend; tell a value first")
        with one_blas_thread:
            row = model.recommendation.row_in(space)
            if not (model.allowed(row[None]) if space.fixed_coordinates else model.recommendation.proven).any():
                self._note(Event("nothing feasible", "no point told so far probably succeeds and is feasible"))
            return space.decode(row)

    @locked
    def replay(self, trials: Iterable[Trial] | Printable) -> Optimizer:
        """Take over the trials of an earlier run, or its Result, with outcomes, origins and order; return self.

        With the same seed and arguments, the next `ask` returns what that run would have asked next. Later values of
        pending trials are compared with the current model.
        """
        given = given_trials(trials, self._log, self.space, self._subspaces)
        rows = [self.space.encode(trial.x) for trial in given]
        with uninterrupted():
            take_over(self._log, given, rows)
        return self

    # What the user reads

    @property
    @locked
    def trials(self) -> tuple[Trial, ...]:
        """Every trial so far, in the order in which they appeared."""
        return self._log.trials

    @property
    @locked
    def pending(self) -> tuple[Trial, ...]:
        """The trials without an outcome."""
        return tuple(self._log[number] for number in self._log.pending)

    @property
    @locked
    def best(self) -> Trial | None:
        """The trial with the best observed value, the first of equals; None before the first.

        Trials that broke a constraint do not count. Several objectives have no best trial but a `front`: None.
        """
        return self._strategy.best(self._log)

    @property
    @locked
    def spent(self) -> float:
        """The cost of all evaluations so far by the fidelity of the space, of running ones too; 0 without one. O(n)."""
        return spent(self._log)

    @locked
    def has_room(self, cost: float, trial: Trial | None = None) -> bool:
        """Whether a pending trial may begin or go on by a step before `cost` is spent, or any trial for None. O(n)."""
        return has_room(self._log, cost, trial)

    def add_events(self, *events: Event) -> None:
        """Add events of the run, or of the opening of a study."""
        self._note(*events)

    @property
    @locked
    def model(self) -> Model | None:
        """The model after all values, oriented so that larger is better; None before the first value.

        None also if there are several objectives: `models` has the model of each output.
        Reading it updates it: O(n^2) for each new value, and O(n^3) if the schedule asks for a new fit.
        """
        with one_blas_thread:
            return self._strategy.model(self._log) if self._log.told else None

    @property
    @locked
    def models(self) -> Mapping[str, OutputModel]:
        """The model of each output with a value, in a run with goals. Reading it updates it, as for `model`."""
        self.goals.check_named("there is one model: read opt.model")
        with one_blas_thread:
            return self._strategy.models(self._log)

    @property
    @locked
    def front(self) -> tuple[Trial, ...]:
        """The trials that no other trial beats in every objective, in a run with goals; see `FrontAnalysis.front`."""
        return self.front_analysis.front

    def choose(
        self,
        where: Mapping[str, Any] | None = None,
        confidence: float = CONFIDENCE,
        *,
        fixed: Any = None,
        **objective: str,
    ) -> Chosen:
        """Return the best predicted point that meets conditions, in a run with goals; see `FrontAnalysis.choose`."""
        return self.front_analysis.choose(where, confidence, fixed=fixed, **objective)

    @property
    @locked
    def front_analysis(self) -> FrontAnalysis:
        """What is known of the goals: the front, and the choice of a point from it."""
        self.goals.check_named("it has no front")
        with one_blas_thread:
            return self._strategy.front_analysis(self._log)

    @property
    @locked
    def posterior(self) -> Posterior | None:
        """The posterior of `warp(y)` given all values, in the coordinates of `space.encode`; costs as `model`."""
        model = self.model
        return None if model is None else self._arguments.orientation.posterior(model.posterior)

    @property
    @locked
    def warp(self) -> Warp:
        """The transformation of y that the posterior describes, usually none; `warp.inverse` returns to y.

        It is learned with the prior if the evidence is clear, and never used with a given kernel or noise_var.
        """
        model = self.model
        return IDENTITY if model is None else self._arguments.orientation.warp(model.warp)

    @property
    @locked
    def earlier(self) -> tuple[SourceSummary, ...]:
        """What this study makes of each earlier one, by the last model: its correlation, or why it is ignored.

        With several objectives there is a summary for each of them.
        """
        return self._strategy.earlier()

    @property
    @locked
    def events(self) -> tuple[Event, ...]:
        """Everything the library did unasked: repairs, rejected fits, reduced searches."""
        self._note(*outside_bounds(self.bounds, (t for t in self._log.trials if t.status == "told")))
        self._note(*doubt_events(self._log))
        return tuple(self._events)

    @property
    @locked
    def ledger(self) -> Ledger | FrontLedger:
        """What is known and how certain it is: predictions and outcomes, the regret, calibration, lock-in.

        It covers the values told so far, and reading it changes no suggestion. O(n); parts that need posterior draws
        cost more when they are read. With several objectives it is a `FrontLedger`: the hypervolume, what is missing.
        """
        return self._strategy.ledger(self._log, self._events, self.n_init)

    @property
    def options(self) -> tuple[OptionSummary, ...]:
        """What is known of each option of each choice: its best setting, its values, its chance to hold the best.

        With several objectives there is a summary for each of them.
        """
        return self.ledger.options

    @property
    def descriptor_shares(self) -> tuple[DescriptorShares, ...]:
        """Which descriptors of options matter, by the kernel in use; empty before the first value and for outputs."""
        posterior = None if self.space.features is None else self.posterior
        return () if posterior is None else descriptor_shares(self.space, posterior.kernel)

    def all_trials(self) -> tuple[Trial, ...]:
        return self.trials

    @locked
    def summary_lines(self) -> list[Line]:
        return [
            *trial_lines(self._log, self.best, self.shown_front()),
            ("policy", repr(self.policy)),
            ("defaults", str(self.defaults)),
            *[("descriptors", str(summary)) for summary in self.descriptor_shares],
            ("seed", str(self.seed)),
            *(("earlier", str(summary)) for summary in self.earlier),
            ("events", event_summary([(event.kind, event.message) for event in self._events])),
        ]

    @locked
    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    # Events

    def _note(self, *events: Event) -> None:
        for event in events:
            if event not in self._events:
                self._events[event] = len(self._log.told)
                logger.warning("%s: %s", event.kind, event.message)

    # How an outcome is recorded

    def _settle(self, target: TrialOrPoint, outcome: Outcome) -> Trial:
        """Record the outcome of a pending trial or of a new trial at a point, and compare a value with the model."""
        number = open_number(target, outcome, self.space, self._log) if names_a_trial(target) else None
        point = self.space.canonical(target) if number is None else None
        row = self._log.row(number) if number is not None else self.space.encode(point)
        with one_blas_thread:
            self._log.check(outcome)
            is_late = number is not None and self._log[number].status == "told"  # then y is not the last value
            comparison = None if is_late else self._prediction(row, outcome)
            with uninterrupted():
                trial = self._log.settle(self._add(point, "user").number if number is None else number, outcome)
            self._note(*outside_bounds(self.bounds, [trial]))
            fields = {} if comparison is None else comparison(self._log, trial)
            trial = self._log.note(trial.number, **fields) if fields else trial
            return self._judged(trial, outcome)

    def _judged(self, trial: Trial, outcome: Outcome) -> Trial:
        """Record which values are doubtful now that a trial was told an outcome, and return the trial."""
        names = (outcome.outputs or trial.values) if outcome.status == "told" else ()
        try:
            doubts = self._strategy.doubts(self._log, trial, tuple(names))
        except Exception as error:  # the value must be recorded even if a model fails
            self._note(Event("not judged", f"trial {trial.number} was not compared with the others: {error}"))
            return trial
        with uninterrupted():
            self._log.doubt(doubts)
        self._note(*doubt_events(self._log))
        return self._log[trial.number]

    def _prediction(self, row: Array, outcome: Outcome) -> Comparison | None:
        """Return how to compare a value with what is predicted before it is recorded, if it can be compared."""
        return self._strategy.prediction(self._log, row, outcome)

    def _add(self, x: Point, origin: Origin, **fields: Any) -> Trial:
        """Add a pending trial at x."""
        return self._log.add(frozen(x), self.space.encode(x), origin, **fields)

    def _open_at(self, x: TrialOrPoint, outcome: Outcome) -> TrialOrPoint:
        """Return the number of the trial at a point that can take the outcome, if there is one; otherwise x."""
        return open_at(x, outcome, self.space, self._log)

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
        return copied(self._next_trial(subspace).x)

    @locked
    def _next_trial(self, subspace: Subspace, suggest: Suggest | None = None) -> Trial:
        """Add the next trial to the log, pending, and return it."""
        return self._add_suggestion(subspace, suggest)

    def _add_suggestion(self, subspace: Subspace, suggest: Suggest | None = None) -> Trial:
        """Compute the next suggestion and add it to the log. In a batch with a rule, suggest() computes it."""
        if suggest is None:
            suggestion = self._compute_suggestion(subspace)
        else:
            subspace, suggestion = suggest(subspace)
        fixed = {} if subspace.fixed is None else {"fixed": subspace.fixed}
        if (
            subspace.fixed is not None and self.space.target_values.keys() & subspace.fixed.keys()
        ):  # it is searched at the target
            suggestion = suggestion._replace(x={**suggestion.x, **subspace.fixed})
        with uninterrupted():
            return self._add(suggestion.x, suggestion.origin, **suggestion.fields, **fixed)

    def _compute_suggestion(self, subspace: Subspace, *, new: bool = False) -> Suggestion:
        """Compute the next point: a starting point, one of the initial design, or the policy's choice.

        With `new`, the policy chooses none that has a trial.
        """
        log = self._log
        self._strategy.refresh(log)
        if len(log.told) >= self.n_init and (missing := ", ".join(log.unmeasured)) and log.told:
            self._note(Event("no value", f"{missing} has no value yet, so points are spread over the space; tell some"))
        with one_blas_thread:
            return (
                from_start(self._start, subspace, log)
                or self._design_suggestion(subspace)
                or self._chosen(subspace, self.repeats and not new)
            )

    def _chosen(self, subspace: Subspace, repeats: bool) -> Suggestion:
        """Return the policy's choice; where parameters have steps, at settings that instruments have."""
        choice = self._choice(subspace, repeats)
        if not subspace.space.is_stepped:
            return choice
        set_to, events = at_settings(choice, self._log, subspace.space, self._strategy.predicted)
        self._note(*events)
        return set_to

    def _choice(self, subspace: Subspace, repeats: bool) -> Suggestion:
        return self._strategy.choose(self._log, subspace, repeats=repeats)

    def _design_suggestion(self, subspace: Subspace) -> Suggestion | None:
        if self._arguments.levels is not None:
            return from_level_design(subspace, self.space, self._log, self.n_init)
        return from_design(subspace, self._strategy.setting(self._log), self._log, self.n_init)


def strategy_of(arguments: Arguments, note: Note) -> Strategy:
    """Return the strategy of a run with these arguments."""
    return (SeveralObjectives if arguments.goals.single is None else SingleScore)(arguments, note)
