"""`Optimizer`: ask for a point, tell its value. The only public object that changes.

A suggestion is a function of the seed, the outcomes and the pending trials, and of nothing else. Hence the prior in use
depends only on the number of values, values enter the posterior in the order in which they were told, and each
suggestion seeds its random numbers with (seed, number told, number pending or failed).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, Literal, overload

import numpy as np

from gpmi._support import checks
from gpmi._support.interrupts import uninterrupted
from gpmi._support.logger import logger
from gpmi._support.text import Line, event_summary, percent
from gpmi._support.types import Array, Event, Observations, Point
from gpmi.analysis.descriptors import DescriptorShares, descriptor_shares
from gpmi.analysis.front import CONFIDENCE, Chosen, FrontAnalysis, FrontCache
from gpmi.analysis.ledger.front_ledger import FrontLedger
from gpmi.analysis.ledger.ledger import Ledger, LedgerCache
from gpmi.gp.approximate.success import SuccessProbability
from gpmi.gp.kernels import Kernel
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.posterior import Posterior
from gpmi.model.fitting.schedule import PriorSchedule
from gpmi.model.fitting.warp import IDENTITY, Warp
from gpmi.model.model import Model, ModelSetting, PendingPosteriors, information_of
from gpmi.model.orientation import Goal, Orientation
from gpmi.model.outputs import OutputModel, OutputModels, orientation_of
from gpmi.model.sources import SourceSummary
from gpmi.optimizer.batches import Batch, BatchRule, Suggest
from gpmi.optimizer.costs import has_room
from gpmi.optimizer.curves import (
    HARDLY,
    checked_step,
    is_at_rung,
    is_next_step,
    probability_to_join_front,
    probability_to_win,
    rivals_of,
)
from gpmi.optimizer.defaults import Defaults, has_bound
from gpmi.optimizer.duplicates import is_near
from gpmi.optimizer.earlier import EarlierStudies
from gpmi.optimizer.escape import UNBOUNDED_MU, UNBOUNDED_SD
from gpmi.optimizer.levels import (
    IGNORED,
    RivalModel,
    at_best_level,
    from_level_design,
    gain_of_outputs,
    level_column,
    trust,
)
from gpmi.optimizer.locking import locked
from gpmi.optimizer.objectives import (
    check_options_for_several,
    check_single_objective,
    from_objectives,
    given_kernel,
    goals_of,
    of_single_output,
    output_prior,
    policy_for,
)
from gpmi.optimizer.observations import given_observations
from gpmi.optimizer.open_trials import open_at, open_number, own_number, pending_number, pending_trial
from gpmi.optimizer.suggestion import (
    Suggestion,
    default_n_init,
    from_design,
    from_policy,
    from_start,
    predicted_fields,
    prior_mean,
    starting_points,
    starts_of,
)
from gpmi.optimizer.summary import trial_lines
from gpmi.policies import Aim, Policy
from gpmi.policies.objectives import JointPolicy
from gpmi.policies.policy import checked_policy
from gpmi.search.subspaces import Subspace, Subspaces
from gpmi.space import Space, SpaceExhausted
from gpmi.trials import Log, Origin, Outcome, Trial, names_a_trial
from gpmi.trials.dataframe import Printable, trials_given
from gpmi.trials.log import TrialOrPoint
from gpmi.trials.outcomes import details_of
from gpmi.trials.target import at_target, values_at_target
from gpmi.trials.trial import checked_trials
from gpmi.trials.units import checked_units
from gpmi.trials.value_bounds import OPEN, ValueBounds, checked_bounds, outside


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
        made = Space.of(space).constrained(constraints)
        self.goals = goals_of(goals, goal, made)
        self.bounds, self.units = checked_bounds(bounds, self.goals), checked_units(units, self.goals)
        goal = self.goals.direction
        own, own_noise = of_single_output(self.goals, kernel, noise_var)
        chosen, bounded = aim if policy is None else checked_policy(policy), has_bound(made, own, own_noise, repeats)
        self.defaults = defaults = Defaults.of(chosen, given_kernel(self.goals, kernel), bounded=bounded)
        self.space = made = made.with_ranks() if defaults.rank_columns else made
        self.policy = policy_for(self.goals, aim, policy, defaults.policy)
        if self._is_several:  # the model of an objective is not bent: the front has values of all sizes
            self.defaults = defaults = replace(defaults, policy=self.policy, short_design=False, compress_losses=False)
        self._log = Log(None if budget is None else checks.whole("budget", budget, 1), self.goals, made.fidelity)
        drawn = int(np.random.SeedSequence().generate_state(1)[0])
        self.seed = drawn if seed is None else checks.whole("seed", seed, 0, checks.LARGEST_SEED)
        self.goal = goal
        self.repeats = checks.flag("repeats", repeats)
        soften = defaults.compress_losses and made.target.rows is not None
        units = made.units if defaults.widen_choices else made.span
        where: dict[str, Any] = {"span": units, "groups": made.groups, "seed": self.seed, "features": made.features}
        if self._is_several:
            check_options_for_several(fit, mean)
        levels = level_column(made, kernel)
        self._earlier = EarlierStudies(earlier, made, self.goals, where)
        self._earlier.check(kernel, mean, noise)
        sources = None if self.goals.single is None else self._earlier.rows(self.goals.single)
        known: dict[str, Any] = {"soften": soften, "noise": noise, "levels": levels, "sources": sources}
        priors = PriorSchedule(own, own_noise, fit, **where, **known)
        usual = default_n_init(self.space, priors, self.budget, len(self._earlier.best), short=defaults.short_design)
        self.n_init = usual if n_init is None else checks.whole("n_init", n_init, 0)
        trend = prior_mean(mean, self.space)
        self._orientation = Orientation(goal)
        self._alone = (
            None if levels is None else PriorSchedule(own, own_noise, fit, **where, soften=soften, noise=noise)
        )
        takes_turns = made.features is not None and own is None and levels is None and not self._earlier.studies
        by_name = {**where, "soften": soften, "noise": noise, "features": None}
        self._by_name = PriorSchedule(own, own_noise, fit, **by_name) if takes_turns else None
        self._prior_options = {"kernel": kernel, "noise_var": noise_var, "fit": fit, "noise": noise, **where}
        self._levels = levels
        self._events: dict[Event, int] = {}  # in order, with the number of values when each first occurred
        self._outputs = OutputModels(self.goals, self._output_setting)
        self._outputs.check_settings()
        self._alone_outputs: OutputModels | None = None  # of the target alone, where the fidelity has levels
        if self._is_several and levels is not None:
            self._alone_outputs = OutputModels(self.goals, partial(self._output_setting, alone=True))
        own_bounds = self._orientation.bounds(self._bounds_of(self.goals.single))
        mean_of_y = self._orientation.trend(trend)
        self._reset_model(ModelSetting(self.space, priors, self.seed, mean_of_y, bounds=own_bounds))
        self._start = (*starting_points(x0, self.space), *starts_of(self._earlier.best, self.space, self.n_init))
        self._subspaces = Subspaces(self.space, self.seed, repeats=self.repeats, cover=defaults.show_options)
        self._note(*self.space.events, *self._earlier.events)
        if made.features is not None and given_kernel(self.goals, kernel) is not None:
            self._note(Event("descriptors", "a kernel is given, which does not use the descriptors of options"))

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
            if (rule := BatchRule.of(self.space, n, fixed, same, apart)) is not None:
                return [self.space.copy(trial.x) for trial in self.ask_batch(rule, self._next_trial)]
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

        y = f(x) + noise of variance s / repeats + noise_var, where s is the noise variance of a single evaluation,
        given or learned. So y is the mean of `repeats` evaluations, and `noise_var` is the square of an error bar that
        comes on top of the common noise. If the error bars are the whole noise, give the optimizer noise_var=0.

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
        if not is_at_rung(trial, self._log):
            return None
        row = self._log.row(trial.number)
        if self._log.fidelity is None or not self._log.fidelity.is_target(row):  # the user fixed its last step
            return None
        others = [number for number in self._log.stopped if number != trial.number]
        if is_near(row, self.space, [self._log.rows[number] for number in others]):
            return None  # one was stopped here, and the policy still wants to know: another stop would teach nothing
        rivals = rivals_of(self._log, self._subspaces.with_fixed(trial.fixed).space)
        with one_blas_thread:
            if self._is_several:
                self._drop_outdated()
                models, seed = self._outputs.objectives(self._log), (self.seed, len(self._log.told), trial.number)
                chance = probability_to_join_front(models, self.goals, row, rivals, seed)
            else:
                chance = probability_to_win(self._current_model(), row, rivals)
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
        by `tell`. The argument noise_var is added to that of each observation: the variance of the earlier run's
        possible error. If one is refused, nothing is told. In a run with goals, y is a dict of outputs, and noise_var
        may be one as well. The y of a run without goals stands for a single objective.
        """
        with self._log.lock:
            known = given_observations(observations, noise_var, self._log, self.space)
            told = self._log.deliver_all(known, self._settle, self._open_at)
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

        def move() -> Trial:
            return self._log.move(pending_number(trial, self.space, self._log), self.space.freeze(to), row)

        moved = self._log.change(move)
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
        value: Any = y

        def correct() -> Trial:
            old = self._log.correctable(trial)
            number = own_number(trial, old.number, self.space, self._log)
            before = Outcome("told", **details_of(old))
            outcome = self.goals.corrected(before, value, **given)
            self._log.check(outcome, number)
            return self._log.correct(number, outcome)

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
            number = self._log.retractable(trial).number
            return self._log.retract(own_number(trial, number, self.space, self._log))

        retracted = self._log.change(retract)
        logger.info("%r", retracted)
        return retracted

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
            row = model.recommended_in(space)
            if not (model.allowed(row[None]) if space.fixed_coordinates else model.proven).any():
                self._note(Event("nothing feasible", "no point told so far probably succeeds and is feasible"))
            return space.decode(row)

    @locked
    def replay(self, trials: Iterable[Trial] | Printable) -> Optimizer:
        """Take over the trials of an earlier run, or its Result, with outcomes, origins and order; return self.

        With the same seed and arguments, the next `ask` returns what that run would have asked next. Later values of
        pending trials are compared with the current model.
        """
        known = checked_trials(trials_given("trials", trials), self._log.count_of_constraints())
        checked = [self._log.adopted(trial) for trial in known]
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
        if self._is_several:
            return None
        reached = [number for number in self._log.reached if self._log[number].feasible]
        values = [self._orientation.value(self._log[number].y or 0.0) for number in reached]
        return self._log[reached[int(np.argmax(values))]] if reached else None

    @property
    @locked
    def spent(self) -> float:
        """The cost of all evaluations so far by the fidelity of the space, of running ones too; 0 without one. O(n)."""
        return self._log.spent

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
        if not self._log.told or self._is_several:
            return None
        with one_blas_thread:
            return self._current_model()

    @property
    @locked
    def models(self) -> Mapping[str, OutputModel]:
        """The model of each output with a value, in a run with goals. Reading it updates it, as for `model`."""
        self.goals.check_named("there is one model: read opt.model")
        self._drop_outdated()
        with one_blas_thread:
            return self._outputs.all(self._log)

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
        below = set(self._log.told).difference(self._log.reached)  # the target of the fidelity
        trials = (trial for trial in self._log.trials if trial.status not in ("pending", "stopped"))
        ended = tuple(trial for trial in trials if trial.number not in below)
        models = self.models  # first: it drops what is outdated
        return FrontAnalysis(self.goals, self.space.target, self.seed, ended, models, self._chance(), self._front_cache)

    @property
    @locked
    def posterior(self) -> Posterior | None:
        """The posterior of `warp(y)` given all values, in the coordinates of `space.encode`; costs as `model`."""
        model = self.model
        return None if model is None else self._orientation.posterior(model.posterior)

    @property
    @locked
    def warp(self) -> Warp:
        """The transformation of y that the posterior describes, usually none; `warp.inverse` returns to y.

        It is learned with the prior if the evidence is clear, and never used with a given kernel or noise_var.
        """
        model = self.model
        return IDENTITY if model is None else self._orientation.warp(model.warp)

    @property
    @locked
    def earlier(self) -> tuple[SourceSummary, ...]:
        """What this study makes of each earlier one, by the last model: its correlation, or why it is ignored.

        With several objectives there is a summary for each of them.
        """
        if self._is_several:
            return self._earlier.summaries(self._outputs.last())
        return self._earlier.summaries({self.goals.single or "": self._model})

    @property
    @locked
    def events(self) -> tuple[Event, ...]:
        """Everything the library did unasked: repairs, rejected fits, reduced searches."""
        self._note_outside(trial for trial in self._log.trials if trial.status == "told")
        return tuple(self._events)

    @property
    @locked
    def ledger(self) -> Ledger | FrontLedger:
        """What is known and how certain it is: predictions and outcomes, the regret, calibration, lock-in.

        It covers the values told so far, and reading it changes no suggestion. O(n); parts that need posterior draws
        cost more when they are read. With several objectives it is a `FrontLedger`: the hypervolume, what is missing.
        """
        self._drop_outdated()
        if self._is_several:
            return FrontLedger(self.front_analysis, self.n_init)
        return Ledger(
            trials=tuple(self._log[number] for number in self._log.reached),
            **values_at_target(self._log),
            outcomes=self._log.outcomes,
            failures=tuple(self._log[number] for number in self._log.failed),
            events=tuple((told, event) for event, told in self._events.items()),
            orientation=self._orientation,
            setting=self._setting.with_preloaded(self._log.told_before_asking),
            earlier=(self._model_at_choice, self._model),
            cache=self._ledger_cache,
        )

    @property
    def descriptor_shares(self) -> tuple[DescriptorShares, ...]:
        """Which descriptors of options matter, by the kernel in use; empty before the first value and for outputs."""
        known = self.space.features is not None and not self._is_several and bool(self._log.told)
        posterior = self.posterior if known else None
        return () if posterior is None else descriptor_shares(self.space, posterior.kernel)

    def all_trials(self) -> tuple[Trial, ...]:
        return self.trials

    @locked
    def summary_lines(self) -> list[Line]:
        return [
            *trial_lines(self._log, self.best, self.shown_front()),
            ("policy", repr(self.policy)),
            ("defaults", str(self.defaults)),
            *[("descriptors", str(one)) for one in self.descriptor_shares],
            ("seed", str(self.seed)),
            *(("earlier", str(one)) for one in self.earlier),
            ("events", event_summary([(event.kind, event.message) for event in self._events])),
        ]

    @locked
    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    # The model

    def _reset_model(self, setting: ModelSetting) -> None:
        """Drop everything learned, and start from this setting."""
        self._revision, self._late = self._log.revision, self._log.late  # of the values behind the following
        self._setting = setting
        self._pending_posteriors = PendingPosteriors()
        self._ledger_cache = LedgerCache({}, {})  # draws read from the last ledger, for the next one
        self._front_cache = FrontCache()  # the same for runs with goals
        self._model: Model | None = None  # after the values told when it was last used
        self._target, self._named = self._rival(self._alone), self._rival(self._by_name)
        # Behind the policy's last choice, plus the values told since; `surprise` is measured against it.
        self._model_at_choice: Model | None = None

    def _rival(self, priors: PriorSchedule | None) -> RivalModel | None:
        if priors is None:
            return None
        return RivalModel(replace(self._setting, priors=priors.cleared()), self._orientation)

    def _drop_outdated(self) -> None:
        """Drop everything derived from values that were corrected or retracted since."""
        if self._revision != self._log.revision:
            self._reset_model(self._setting.cleared())
        elif self._late != self._log.late:
            self._late, self._front_cache = self._log.late, FrontCache()

    def _output_setting(self, name: str, *, alone: bool = False) -> ModelSetting:
        levels = None if alone else self._levels
        options = {**self._prior_options, "levels": levels, "sources": self._earlier.rows(name)}
        bounds = orientation_of(self.goals[name]).bounds(self._bounds_of(name))
        return ModelSetting(self.space, output_prior(self.goals, name, **options), self.seed, bounds=bounds)

    def _bounds_of(self, name: str | None) -> ValueBounds:
        return self.bounds.get(name or "", OPEN)

    def _note_outside(self, trials: Iterable[Trial]) -> None:
        """Note each value of these trials that is outside the bounds: it counts as it is. O(n)."""
        for trial in trials if self.bounds else ():
            for text in self.outside_bounds(trial):
                self._note(Event("outside the bounds", text))

    def outside_bounds(self, trial: Trial) -> list[str]:
        """Return a sentence about each value of a trial that is outside its bounds."""
        return [
            outside(trial.number, name, value, self._bounds_of(name))
            for name, value in trial.values.items()
            if not self._bounds_of(name).contains(value)
        ]

    @property
    def _is_several(self) -> bool:
        """Whether there are several objectives, or a target, and hence no single y."""
        return self.goals.single is None

    def _values(self) -> Array:
        """Return the values, oriented, (n,)."""
        return self._orientation.values(self._log.observed.y)

    def _observed(self) -> Observations:
        """Return the values, oriented, with their coordinates and noise."""
        observed = self._log.observed
        return replace(observed, y=self._orientation.values(observed.y)) if self._orientation.mirrors else observed

    def _current_model(self) -> Model:
        """Return the model after all values."""
        self._drop_outdated()
        setting = self._setting.with_preloaded(self._log.told_before_asking)
        model = Model.after(setting, self._observed(), self._model_at_choice, self._model)
        self._model = model = model.with_outcomes(self._log.outcomes)
        self._note(*model.prior.events)
        if model.warp.bends:
            self._note(Event("transformed", f"the model is that of {self._orientation.warp(model.warp)}"))
        self._note(*model.posterior.events, *model.events)
        return model

    def _model_before_value(self) -> Model | None:
        """Return the model to compare the next value with; None if a learned prior has not been used yet."""
        self._drop_outdated()
        log = self._log
        if self._is_several or not (self._setting.priors.is_fixed or (log.unchosen < len(log) and log.told)):
            return None
        with suppress(Exception):  # the value must be recorded even if the model fails; the next `ask` raises the error
            if self._model_at_choice is None:
                return self._current_model()
            return self._model_at_choice.extended(self._observed())
        return None

    def _compare(self, trial: Trial, before: Model) -> Trial:
        """Store how the new value compares with its prediction. O(n^2), work that the next `ask` then need not do."""
        observed = self._observed()
        try:
            model = before.extended(observed)
        except Exception:  # as above
            return trial
        self._model_at_choice = model
        mu, var, surprise = model.prediction_of_last(before, observed)
        fields: dict[str, float] = {}
        if trial.mu is None:
            median, fields["sd"] = model.stated(mu, math.sqrt(var))
            fields["mu"] = self._orientation.value(median)
        fields["surprise"] = self._orientation.value(surprise)
        if self._target is not None and (gained := self._target.gain(before, trial, self._log)) is not None:
            fields["trust"] = gained
        fields["information"] = information_of(var, float(model.posterior.noise[-1]))
        return self._log.note(trial.number, **fields)

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
        with one_blas_thread:
            self._log.check(outcome)
            has_y = outcome.y is not None or self.goals.single in outcome.outputs
            is_late = number is not None and self._log[number].status == "told"  # then y is not the last value
            before = self._model_before_value() if has_y and not is_late else None
            gained = None if is_late else self._gain_of_outputs(number, point, outcome)
            with uninterrupted():
                trial = self._log.settle(self._add(point, "user").number if number is None else number, outcome)
            self._note_outside([trial])
            if gained is not None:
                trial = self._log.note(trial.number, trust=gained)
            return trial if before is None else self._compare(trial, before)

    def _gain_of_outputs(self, number: int | None, point: Point | None, outcome: Outcome) -> float | None:
        """Return how much better the models of all levels predict the outputs of a new value at the target."""
        alone, fidelity = self._alone_outputs, self._log.fidelity
        if alone is None or fidelity is None or outcome.status != "told":
            return None
        row = self._log.row(number) if number is not None else self.space.encode(point)
        if not fidelity.is_target(row) or len(self._log.reached) < 2:
            return None
        self._drop_outdated()
        with suppress(Exception):  # the value is recorded even if a model fails; the next `ask` raises the error
            joint, own = self._outputs.objectives(self._log), alone.objectives(at_target(self._log))
            return gain_of_outputs(joint, own, row, outcome)
        return None

    def _add(self, x: Point, origin: Origin, **fields: Any) -> Trial:
        """Add a pending trial at x."""
        return self._log.add(self.space.freeze(x), self.space.encode(x), origin, **fields)

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
        return self.space.copy(self._next_trial(subspace).x)

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
        if (fidelity := self._log.fidelity) is not None and fidelity.name in (subspace.fixed or ()):
            suggestion = suggestion._replace(x={**suggestion.x, **(subspace.fixed or {})})
        with uninterrupted():
            return self._add(suggestion.x, suggestion.origin, **suggestion.fields, **fixed)

    def _compute_suggestion(self, subspace: Subspace, *, new: bool = False) -> Suggestion:
        """Compute the next point: a starting point, one of the initial design, or the policy's choice.

        With `new`, the policy chooses none that has a trial.
        """
        self._drop_outdated()
        log = self._log
        if len(log.told) >= self.n_init and (missing := ", ".join(log.unmeasured)) and log.told:
            self._note(Event("no value", f"{missing} has no value yet, so points are spread over the space; tell some"))
        with one_blas_thread:
            return (
                from_start(self._start, subspace, log)
                or self._design_suggestion(subspace)
                or self._settable(self._policy_suggestion(subspace, self.repeats and not new), subspace.space)
            )

    def _settable(self, found: Suggestion, space: Space) -> Suggestion:
        """Return the suggestion at settings that instruments have, where parameters have steps."""
        if not space.has_steps:
            return found
        row = self.space.encode(found.x)
        rejected = {self._log.row(number).tobytes() for number in self._log.rejected}
        near, is_found = space.settable(row, rejected.union(self._log.places))
        if near.tobytes() in rejected:  # rather a repetition than a rejected point
            near, is_found = space.settable(row, rejected)
        if near.tobytes() in rejected:
            self._note(Event("rejected again", f"all settings near {found.x} were rejected; one of them was asked"))
        if not is_found:
            self._note(Event("no setting", f"no settings near {found.x} keep the constraints; check the steps"))
        if np.array_equal(near, row):
            return found
        if near.tobytes() in self._log.places:
            self._note(Event("repeat", "all settings near a suggestion have trials, so one of them was asked again"))
        fields, model = dict(found.fields), self._model_at_choice
        if fields.get("mu") is not None and model is not None:
            (mu,), (var,) = self._pending_posteriors.extend(0, model.posterior, self._log)(near[None])
            notes = {k: v for k, v in (fields["policy_notes"] or {}).items() if k not in (UNBOUNDED_MU, UNBOUNDED_SD)}
            fields |= predicted_fields(model, self._orientation, float(mu), float(var), notes)
        return found._replace(x=self.space.decode(near), fields=fields)

    def _design_suggestion(self, subspace: Subspace) -> Suggestion | None:
        if level_column(self.space) is not None:
            return from_level_design(subspace, self.space, self._log, self.n_init)
        return from_design(subspace, self._setting, self._log, self.n_init)

    def _policy_suggestion(self, subspace: Subspace, repeats: bool) -> Suggestion:
        limits: dict[str, Any] = {"budget": self._log.horizon, "repeats": repeats}
        if self._is_several:
            return self._joint_suggestion(subspace, limits)
        if self._target is not None:
            chosen = self._level_suggestion(self._target, subspace, limits)
        else:
            self._model_at_choice = model = self._current_model()
            pending, orientation = self._pending_posteriors, self._orientation
            if self._named is not None and len(self._log) % 2:
                # Descriptors may mislead, and the evidence is a poor judge of that: every second query does without.
                model, pending = self._named.after(self._log), PendingPosteriors()
            chosen = from_policy(model, self.policy, self._log, subspace, pending, orientation, **limits)
        self._note(*chosen.events)
        return chosen

    def _level_suggestion(self, target: RivalModel, subspace: Subspace, limits: dict[str, Any]) -> Suggestion:
        """Return the policy's choice where the fidelity has levels: a point, and the level at which to measure it."""
        log, orientation = self._log, self._orientation
        self._model_at_choice = model = self._current_model()
        if trust(log) < 0.0:
            self._note(IGNORED)
            part = at_target(log)
            return from_design(subspace, self._setting, part, self.n_init, anew=True) or from_policy(
                target.after(part), self.policy, part, subspace, PendingPosteriors(), orientation, **limits
            )
        chosen = from_policy(model, self.policy, log, subspace, self._pending_posteriors, orientation, **limits)
        return at_best_level(chosen, [self._pending_posteriors.extend(0, model.posterior, log)], log, self.space)

    def _chance(self) -> SuccessProbability | None:
        """Return the probability that an evaluation succeeds and keeps all limits; None if nothing speaks to it."""
        setting, outcomes = self._setting.with_preloaded(self._log.told_before_asking), self._log.outcomes
        return None if outcomes is None else setting.feasibility.chance(outcomes, setting.preloaded)

    def _joint_suggestion(self, subspace: Subspace, limits: dict[str, Any]) -> Suggestion:
        """Return the policy's choice for several objectives."""
        assert isinstance(self.policy, JointPolicy)
        log, chance = self._log, self._chance()
        models, alone = self._outputs.objectives(log), self._alone_outputs
        if self._earlier.studies:
            self._note(*(event for one in models.values() for event in one.model.prior.events))
        if alone is not None and trust(log) < 0.0:
            self._note(IGNORED)
            log = at_target(log)
            models = alone.objectives(log)
        chosen = from_objectives(models, self.goals, self.policy, log, subspace, chance, self.seed, **limits)
        self._note(*chosen.events)
        if alone is None or log is not self._log:
            return chosen
        pending, known = [log.rows[number] for number in log.pending], [models[name] for name in self.goals.objectives]
        posteriors = [
            one.model.posterior.anticipate(np.array(pending)) if pending else one.model.posterior for one in known
        ]
        return at_best_level(chosen, posteriors, log, self.space)
