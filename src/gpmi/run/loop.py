"""maximize and minimize: the loop around an Optimizer."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, Literal, TypeAlias, Unpack

from gpmi._support.checks import with_name_hints
from gpmi._support.interrupts import Interrupts
from gpmi._support.long_work import defer_interrupts, lazy_call, with_safe_exit
from gpmi._support.text import error_message, rounded
from gpmi._support.types import Event
from gpmi.optimizer import Optimizer
from gpmi.run.curves import Curves
from gpmi.run.evaluation import LEARN_FROM_FAILURES, Evaluated, Measured, RemoteGenerator, evaluator, record
from gpmi.run.options import OPTIMIZER_DEFAULTS, MaximizeOptions, RunOptions, RunSettings, with_options
from gpmi.run.parallel import WAIT, ParallelLoop, next_trial, polling_delays
from gpmi.run.result import Result
from gpmi.run.signature import check_objective, expected_point
from gpmi.run.sources import opened_sources
from gpmi.run.stopping import Stop, checked_stop
from gpmi.space import copied
from gpmi.trials import Trial
from gpmi.trials.dataframe import trials_given
from gpmi.trials.goal_kinds import Max, Min  # noqa: F401  # of an example
from gpmi.trials.named_goals import NamedGoals

Show: TypeAlias = Callable[[Trial], None]
NOTHING_AT_TARGET = Event(
    "nothing at the target", "the cost was spent before a value at the target was measured; give a larger cost"
)


def _start(
    f: Callable[[Any], Any],
    space: Any,
    goal: Literal["max", "min"],
    *,
    earlier: Iterable[Any] | Mapping[str, Any] = (),
    study: str | PathLike[str] | None = None,
    **options: Any,
) -> Result:
    """Validate the arguments, build the optimizer and run it. Ctrl-C is deferred until the optimizer exists."""
    settings = RunSettings(f, **{name: options.pop(name) for name in RunOptions.__annotations__ if name in options})
    if isinstance(earlier, Mapping):
        options["earlier"], earlier = opened_sources(earlier), ()
    build = partial(Optimizer, space, goal=goal, **{**OPTIMIZER_DEFAULTS, **options})
    return _deferring(settings, partial(_build_and_run, settings, build, earlier, study))


@with_name_hints
@with_options(MaximizeOptions, RunSettings, Optimizer, _start)
def maximize(f: Callable[[Any], Evaluated], space: Any, **options: Unpack[MaximizeOptions]) -> Result:
    """Find the maximum of f over the space by evaluating it at points that are chosen one after the other.

    If f raises, or returns something that is not a finite number, the exception propagates. It carries everything
    evaluated so far in its attribute `result`. Ctrl-C ends the run and returns the result so far. While a point is
    being chosen, the first Ctrl-C waits; press twice to stop immediately. The logger "gpmi" of the standard module
    `logging` gets a line for each trial at INFO and for each event at WARNING.

    Parameters
    ----------
    f : a function of one point, in the form of the space. It returns a number, or `gpmi.Measured`: a value with its
        error bar and constraints. Where the space has a fidelity with steps, f may be a generator that yields (step,
        value) on its way. Each value is recorded before f goes on. An evaluation that will hardly win is stopped: f's
        generator is closed, and the trial has the status "stopped". The value at the last step is that of the trial.
    space : a list of (lo, hi), a dict of named parameters, or candidates as an array or DataFrame (`Space.of`).
    budget : how many evaluations there will be. It may be None if there is a stopping rule.
    cost : what all evaluations may cost, by the fidelity of the space; with or without a budget. The run ends when it
        is spent: a curve is stopped there, and where the fidelity has levels the run ends as soon as the next
        measurement costs more than is left. A function that returns its value at once is not stopped. The same call on
        a study continues from what was spent.
    stop : a rule of `gpmi.stopping` that may end the run; `Result.reason` then names it. Evaluations that have started
        are awaited.
    on_failure : how to treat an exception, nan, an infinity or a timeout. "raise" ends the run. "learn" records a
        failed trial with its reason in `Trial.why`. It counts in the budget; the run continues and avoids the region
        (`Optimizer.fail`).
    timeout : seconds after which an evaluation is killed. Each one then runs in a subprocess; where the system cannot
        fork, f must be picklable.
    workers : how many points to evaluate at the same time, each in a subprocess. Values are told in the order in which
        they arrive, and the run is a function of that order (docs/parallel.md).
    executor, in_flight : instead of workers, an object with `submit` as in `concurrent.futures`, or a factory that
        makes one; and how many points it evaluates at the same time.
    retries : how often a point whose evaluation took too long or whose worker died is evaluated again, before it counts
        as a failure. If it is not given, a timeout is final, and with workers the point of one that died is repeated
        once.
    on_trial : a function of (trial, optimizer) that is called after each evaluation. It may read, tell, correct or
        reject. Its return value is ignored, and an exception in it ends the run like one in f.
    progress : whether to show on stderr how the run proceeds (needs the extra `cli`).
    aim : what counts: the best point at the end ("find") or every evaluation ("earn").
    policy, kernel, noise_var, fit, n_init, repeats, seed, mean, x0, constraints, noise, bounds, units : as in
        `Optimizer`.
    earlier : values of the same function from before, told first as by `Optimizer.tell_all`: (x, y), (x, y, noise_var),
        or the trials of an earlier run. They do not count in the budget. A dict, {"last year": study}, names studies of
        related functions instead, as for `Optimizer`; a path is that of a study's database.
    study : a file or a database in which everything is stored (`gpmi.study`). The same call continues the run later,
        also after a crash, and the budget counts all evaluations. Processes that make the same call at the same time
        share the work.

    Examples
    --------
    >>> r = maximize(lambda x: -(x[0] - 0.3) ** 2, [(0.0, 1.0)], budget=15, seed=0)
    >>> abs(float(r.x[0]) - 0.3) < 0.01, r.reason
    (True, 'budget')
    """
    return _start(f, space, "max", **options)


@with_name_hints
@with_options(MaximizeOptions, RunSettings, Optimizer, _start)
def minimize(f: Callable[[Any], Evaluated], space: Any, **options: Unpack[MaximizeOptions]) -> Result:
    """Find the minimum of f. The arguments are those of `maximize`, and y keeps its sign."""
    return _start(f, space, "min", **options)


@with_name_hints
@with_options(MaximizeOptions, RunSettings, Optimizer, _start)
def optimize(
    f: Callable[[Any], Mapping[str, float] | Measured | Iterator[tuple[int, Mapping[str, float]]]],
    space: Any,
    *,
    goals: Mapping[str, Any],
    **options: Unpack[MaximizeOptions],
) -> Result:
    """Optimise several outputs of f. The other arguments are those of `maximize`.

    Parameters
    ----------
    f : a function of one point that returns a dict of outputs, or `gpmi.Measured` with a dict and error bars.
    goals : what each output is for: "max", "min", `gpmi.Max(at_least=...)`, `gpmi.Min(at_most=...)`,
        `gpmi.Match(target, within=...)`, the limits `gpmi.AtLeast(value)` and `gpmi.AtMost(value)`, or None for an
        output that is only watched. State the worst value that you would accept of each objective: it decides which
        part of the front is explored.

    Examples
    --------
    >>> goals = {"far": Max(at_least=0.0), "cost": Min(at_most=1.0)}
    >>> r = optimize(lambda x: {"far": x[0], "cost": x[0] ** 2}, [(0.0, 1.0)], goals=goals, budget=12, seed=0)
    >>> len(r.front) > 5, round(float(r.choose(cost="min", where={"far": ">= 0.5"}).x[0]), 2)
    (True, 0.5)
    """
    return _start(f, space, "max", goals=NamedGoals.of(goals), **options)


def run_optimizer(optimizer: Optimizer, f: Callable[[Any], Evaluated], **options: Unpack[RunOptions]) -> Result:
    """Run an existing optimizer, with the arguments of `maximize` that are about the run."""
    settings = RunSettings(f, **options)
    return _deferring(settings, partial(_run, settings, optimizer, []))


def _deferring(settings: RunSettings, run: Callable[[Interrupts], Result]) -> Result:
    """Run with Ctrl-C deferred. If the run starts processes, SIGTERM does not leave them behind."""
    return defer_interrupts(with_safe_exit(run) if settings.starts_processes else run)


def _build_and_run(
    settings: RunSettings, build: partial[Optimizer], earlier: Any, study: Any, interrupts: Interrupts
) -> Result:
    values = trials_given("earlier", earlier)
    if study is None:
        return _run(settings, build(budget=_total_budget(settings.budget, values)), values, interrupts)
    from gpmi.storage.opening import opened_for_run  # needs SQLAlchemy

    with opened_for_run(study, *build.args, budget=settings.budget, **build.keywords) as optimizer:
        return _run(settings, optimizer, values, interrupts)


def _total_budget(budget: Any, earlier: list[Any]) -> Any:
    """Add the earlier values to the budget, because the optimizer counts all values.

    An invalid budget is passed on for the optimizer to reject.
    """
    told = sum(not isinstance(value, Trial) or value.status == "told" for value in earlier)
    return budget + told if told and isinstance(budget, int) and not isinstance(budget, bool) and budget > 0 else budget


def _run(settings: RunSettings, optimizer: Optimizer, earlier: list[Any], interrupts: Interrupts) -> Result:
    """Run the optimizer and return what was found. An exception that leaves here carries the result so far.

    Ctrl-C interrupts f at once, other code after two presses, and is always deferred between f's return and the log.
    """
    check_objective(settings.f, optimizer.space.names, optimizer.space.dim)
    if settings.cost is not None and optimizer.space.fidelity is None:
        remedy = 'give it a fidelity such as "epoch": gpmi.Fidelity(1, 52), or a budget, which counts evaluations'
        raise ValueError(f"cost is {settings.cost:g}, but the space has no fidelity; {remedy}")
    if earlier:
        optimizer.tell_all(earlier)
    before = optimizer.evaluated
    try:
        try:
            interrupts.presses_needed = 2
            end = _loop_with_display(settings, optimizer, interrupts)
            if end.reason == "cost" and optimizer.evaluated > before and not optimizer.has_reached_target:
                end = Stop(end.reason, (*end.events, NOTHING_AT_TARGET))
            if end.reason == "budget" and optimizer.evaluated == before:
                end = Stop(end.reason, (_budget_used_up(before, optimizer.best),))
            elif end.reason == "cost" and optimizer.evaluated == before:
                end = Stop(end.reason, (_cost_used_up(optimizer, settings.cost or 0.0),))
        finally:
            interrupts.presses_needed = None
    except KeyboardInterrupt:
        end = Stop("interrupted")
    except BaseException as error:
        result = _result(optimizer, Stop(f"error: {error_message(error)}"), interrupts)
        _attach(error, result, settings.learns)
        raise
    return _result(optimizer, end, interrupts)


def _loop_with_display(settings: RunSettings, optimizer: Optimizer, interrupts: Interrupts) -> Stop:
    """Run the loop, with a display if requested.

    The display's `__exit__` never sees exceptions, since it might alter them.
    """
    if not settings.progress:
        return _loop(settings, optimizer, _ignore, _ignore, _ignore, interrupts)
    display = _display(optimizer)
    report = display.__enter__()
    try:
        begin, step = getattr(report, "begin", _ignore), getattr(report, "step", _ignore)
        return _loop(settings, optimizer, begin, step, report, interrupts)
    finally:
        interrupts.presses_needed = 2  # a terminal may block for ever
        display.__exit__(None, None, None)


def _loop(
    settings: RunSettings,
    optimizer: Optimizer,
    show_start: Show,
    show_step: Show,
    show_outcome: Show,
    interrupts: Interrupts,
) -> Stop:
    """Ask, evaluate and tell until there is a reason to stop."""
    begin = time.perf_counter()
    curves = Curves(optimizer, learns=settings.learns, cost=settings.cost, show=show_step)

    def on_outcome(trial: Trial) -> Stop | None:
        show_outcome(trial)
        if settings.on_trial is not None:
            interrupts.act()
            settings.on_trial(trial, optimizer)
        if settings.stop is None:
            return None
        interrupts.act()
        return checked_stop(settings.stop, settings.stop.stop(optimizer, time.perf_counter() - begin))

    with closing(optimizer.turns(settings.budget)) as queue:
        if settings.pool is not None:
            pool = settings.pool.open(
                settings.f, learns=settings.learns, timeout=settings.timeout, retries=settings.retries
            )
            loop = ParallelLoop(
                optimizer,
                pool,
                show_start,
                on_outcome,
                interrupts,
                curves,
                settings.learns,
                retries=settings.death_retries,
                timeout_retries=settings.retries,
            )
            return loop.run(queue)
        end, delays = None, polling_delays()
        while end is None:
            interrupts.act()
            trial = next_trial(queue, curves)
            if trial is WAIT:
                time.sleep(next(delays))
            elif isinstance(trial, Stop):
                return trial
            else:
                delays = polling_delays()
                show_start(trial)
                recorded = _evaluate(settings, trial, optimizer, curves, interrupts)
                end = None if recorded is None else on_outcome(recorded)
        return end


def _evaluate(
    settings: RunSettings, trial: Trial, optimizer: Optimizer, curves: Curves, interrupts: Interrupts
) -> Trial | None:
    """Evaluate f at a copy of the point, which f may change. Once f has returned, its value is told.

    If f is a generator, its values are recorded one by one. None if another worker has taken over the trial.
    """
    recorded: Trial | None
    call = evaluator(settings.f, learns=settings.learns, timeout=settings.timeout, retries=settings.retries)
    answer = lazy_call(call, copied(trial.x))
    try:
        try:
            interrupts.presses_needed = 1
            interrupts.act()
            answer[0]
        finally:
            interrupts.presses_needed = None  # the answer is recorded before another Ctrl-C can interrupt
    except BaseException:
        if answer and isinstance(answer[0], RemoteGenerator):
            answer[0].abandon()
        raise
    finally:
        if answer and not isinstance(answer[0], Generator):
            recorded = record(optimizer, trial, answer[0], learns=settings.learns)
    if isinstance(answer[0], Generator):
        recorded = curves.follow(answer[0], trial, interrupts)
    interrupts.presses_needed = 2
    return recorded


def _result(optimizer: Optimizer, end: Stop, interrupts: Interrupts) -> Result:
    """Return the result of a run. Ctrl-C leaves out what needs the model."""
    interrupts.clear()
    try:
        try:
            interrupts.presses_needed = 1
            result = Result.of(optimizer, end.reason)
        finally:
            interrupts.presses_needed = None
    except BaseException as error:
        result = Result.of(optimizer, end.reason, no_model="the run was interrupted")
        if not isinstance(error, KeyboardInterrupt):
            _attach(error, result)
            raise
    return replace(result, events=result.events + end.events)


def _budget_used_up(evaluated: int, best: Trial | None) -> Event:
    """The event of a study that already has all evaluations of its budget, so that f was not called."""
    result = "" if best is None else f"; the best is {rounded(best.y)}"
    return Event("budget used up", f"the study has its {evaluated} evaluations; a larger budget continues it{result}")


def _cost_used_up(optimizer: Optimizer, cost: float) -> Event:
    """The event of a run in which nothing was evaluated, because nothing fits into the cost."""
    spent = f"{rounded(optimizer.spent)} of {rounded(cost)} is spent, and the next evaluation costs more than is left"
    return Event("cost used up", f"{spent}; a larger cost continues the run")


def _attach(error: BaseException, result: Result, learns: bool = True) -> None:
    """Let the exception carry the result, whatever its class says about attributes."""
    attributes: dict[str, Any] = vars(BaseException)["__dict__"].__get__(
        error
    )  # the class may hide its instances' dict
    attributes["result"] = result
    with suppress(Exception):
        object.__setattr__(error, "result", result)  # a slot of that name in its class hides the entry in the dict
    notes = attributes.get("__notes__")
    if notes is None or type(notes) is list:  # anything else there is left alone
        note = f"gpmi: the attribute `result` of this exception has {len(result.trials)} evaluations"
        if not result.trials:
            point = expected_point(result.space.names, result.space.dim)
            note = f"gpmi: nothing was evaluated before this; f is called with {point}"
        note += "" if learns or "on_failure" in error_message(error) else f"; {LEARN_FROM_FAILURES}"
        attributes["__notes__"] = [*(notes or ()), note]


def _ignore(trial: Trial) -> None:
    pass


def _display(optimizer: Optimizer) -> Any:
    from gpmi.run.progress import live  # needs rich

    return live(optimizer)
