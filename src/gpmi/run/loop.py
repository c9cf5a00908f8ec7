"""maximize and minimize: the loop around an Optimizer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, Literal, NamedTuple, TypeAlias

from gpmi._support.checks import of_one_point, one_of, one_point, positive, shown, whole, with_name_hints
from gpmi._support.interrupts import Interrupts, ending, held, holding
from gpmi._support.text import rounded
from gpmi._support.types import Event
from gpmi.gp.kernels import Kernel
from gpmi.optimizer import Optimizer
from gpmi.policies import Aim, Policy
from gpmi.run.evaluation import SWITCH, Measured, guarded, tell
from gpmi.run.parallel import LATER, Flight, Staff, fly, next_of, pauses, staff_of
from gpmi.run.result import Result, words_of
from gpmi.run.stopping import Rule, Stop, checked_rule, checked_stop
from gpmi.trials import Trial
from gpmi.trials.dataframe import trials_given

OnFailure: TypeAlias = Literal["raise", "learn"]
Show: TypeAlias = Callable[[Trial], None]


@with_name_hints
def maximize(
    f: Callable[[Any], float | Measured],
    space: Any,
    *,
    budget: int | None = None,
    stop: Rule | None = None,
    aim: Aim = "find",
    policy: Policy | None = None,
    kernel: Kernel | None = None,
    noise_var: float | None = None,
    fit: Literal["map", "loo", "mcmc"] = "map",
    n_init: int | None = None,
    repeats: bool = True,
    seed: int | None = None,
    mean: Callable[[Any], float] | None = None,
    x0: Any = None,
    earlier: Iterable[Any] = (),
    noise: Literal["normal", "student"] = "normal",
    on_failure: OnFailure = "raise",
    timeout: float | None = None,
    workers: int | None = None,
    executor: Any = None,
    in_flight: int | None = None,
    retries: int = 1,
    on_trial: Callable[[Trial, Optimizer], Any] | None = None,
    progress: bool = False,
    constraints: Any = None,
    study: str | PathLike[str] | None = None,
) -> Result:
    """Evaluate f at `budget` points of the space, chosen one after the other, to find its maximum.

    f takes one point in the form of the space and returns a number. What counts is the best point at the end
    (aim="find") or every evaluation (aim="earn"). `stop` is a rule of `gpmi.run.stopping` that may end
    the run earlier, or at all if there is no budget; `reason` then says which. The other arguments are those of
    `Optimizer`; `progress=True` shows on stderr how the run goes on (needs the extra `cli`).

    `earlier` are values that are known already, told before the first evaluation as by `Optimizer.tell_all`: (x, y) or
    (x, y, noise_var), or the trials of an earlier run. They do not count in the budget. `on_trial(trial, optimizer)` is
    called after each evaluation. It may read, tell, correct or reject; what it returns is ignored, and what it raises
    ends the run like an exception of f. The logger "gpmi" of the standard module `logging` gets a line for each trial
    at INFO and for each event at WARNING.

    With `study`, a file or a database, everything is kept there (`gpmi.study`), and the same call goes on where it was,
    after a crash, too; the budget counts all. Processes that make the call at the same time share the work.

    If f raises, or returns something that is not a finite number, the exception is raised on with everything
    evaluated so far in its attribute `result`. With on_failure="learn" an exception, nan, an infinity or a time-out is
    a failed trial with its reason in `Trial.why`, it counts in the budget, the run goes on, and the region is avoided
    (`Optimizer.fail`). With `timeout` each evaluation runs in a process of its own, which is ended after so many
    seconds; where the system cannot fork, f must be one that can be pickled. Ctrl-C ends the run and returns the result
    so far; while a point is being chosen it must be pressed twice to act at once. f may also return `gpmi.Measured`, a
    value with its error bar and constraints.

    With `workers` so many points are evaluated at the same time, each in a process of its own; or `in_flight` points by
    an `executor`, which has `submit` as in `concurrent.futures`, or a function that makes one. Values are told in the
    order in which they arrive, and the run is a function of that order. A point whose worker died is evaluated again,
    at most `retries` times. When a rule stops the run, evaluations that have begun are waited for: docs/parallel.md.

    Examples
    --------
    >>> r = maximize(lambda x: -(x[0] - 0.3) ** 2, [(0.0, 1.0)], budget=15, seed=0)
    >>> abs(float(r.x[0]) - 0.3) < 0.01, r.reason
    (True, 'budget')
    """
    job = Job(
        f, _needed(budget, stop), stop, on_trial, progress, _learns(on_failure), _seconds(timeout),
        staff_of(workers, executor, in_flight), whole("retries", retries, 0),
    )  # fmt: skip
    make = partial(
        Optimizer, space, policy, aim=aim, kernel=kernel, noise_var=noise_var, fit=fit, n_init=n_init,
        repeats=repeats, seed=seed, goal="max", mean=mean, x0=x0, constraints=constraints, noise=noise,
    )  # fmt: skip
    return holding(job.safe(partial(_run, job, make, earlier, study)))


@with_name_hints
def minimize(
    f: Callable[[Any], float | Measured],
    space: Any,
    *,
    budget: int | None = None,
    stop: Rule | None = None,
    aim: Aim = "find",
    policy: Policy | None = None,
    kernel: Kernel | None = None,
    noise_var: float | None = None,
    fit: Literal["map", "loo", "mcmc"] = "map",
    n_init: int | None = None,
    repeats: bool = True,
    seed: int | None = None,
    mean: Callable[[Any], float] | None = None,
    x0: Any = None,
    earlier: Iterable[Any] = (),
    noise: Literal["normal", "student"] = "normal",
    on_failure: OnFailure = "raise",
    timeout: float | None = None,
    workers: int | None = None,
    executor: Any = None,
    in_flight: int | None = None,
    retries: int = 1,
    on_trial: Callable[[Trial, Optimizer], Any] | None = None,
    progress: bool = False,
    constraints: Any = None,
    study: str | PathLike[str] | None = None,
) -> Result:
    """As `maximize`, for the minimum; y keeps its sign."""
    job = Job(
        f, _needed(budget, stop), stop, on_trial, progress, _learns(on_failure), _seconds(timeout),
        staff_of(workers, executor, in_flight), whole("retries", retries, 0),
    )  # fmt: skip
    make = partial(
        Optimizer, space, policy, aim=aim, kernel=kernel, noise_var=noise_var, fit=fit, n_init=n_init,
        repeats=repeats, seed=seed, goal="min", mean=mean, x0=x0, constraints=constraints, noise=noise,
    )  # fmt: skip
    return holding(job.safe(partial(_run, job, make, earlier, study)))


def _needed(budget: int | None, stop: Rule | None) -> int | None:
    if stop is not None:
        checked_rule(stop)
    elif budget is None:
        raise TypeError("budget is None; give the number of times f may be evaluated, or a rule to stop by")
    return budget


def _learns(on_failure: Any) -> bool:
    return one_of("on_failure", on_failure, ("raise", "learn")) == "learn"


def _seconds(timeout: Any) -> float | None:
    return None if timeout is None else positive("timeout", timeout)


def _with_known(budget: Any, known: list[Any]) -> Any:
    """The budget of the optimizer, which counts all values; what is no whole number is left to its checks."""
    told = sum(not isinstance(one, Trial) or one.status == "told" for one in known)
    return budget + told if told and isinstance(budget, int) and not isinstance(budget, bool) and budget > 0 else budget


class Job(NamedTuple):
    """What a run does besides choosing points."""

    f: Callable[[Any], float | Measured]
    budget: int | None
    stop: Rule | None
    on_trial: Callable[[Trial, Optimizer], Any] | None
    progress: bool
    learns: bool = False  # from failures
    timeout: float | None = None  # seconds of an evaluation
    staff: Staff | None = None  # who evaluates several points at the same time
    retries: int = 1  # how often a point whose worker died is evaluated again

    def safe(self, run: Callable[[Interrupts], Result]) -> Callable[[Interrupts], Result]:
        """A run that does not leave evaluations behind when its process is asked to end, if it starts any."""
        return run if self.staff is None and self.timeout is None else ending(run)

    def evaluation(self) -> Callable[[Any], Any]:
        """f as it is called."""
        return guarded(self.f, learn=self.learns, timeout=self.timeout)


def _run(job: Job, make: partial[Optimizer], earlier: Any, study: Any, interrupts: Interrupts) -> Result:
    """A run from its beginning, with the arguments refused that are wrong. A key waits until the optimizer is made."""
    known = trials_given("earlier", earlier)
    budget = _with_known(job.budget, known)
    if study is None:
        return _begun(job, make(budget=budget), known, interrupts)
    from gpmi.storage.opening import opened_for_run  # needs SQLAlchemy

    with opened_for_run(study, *make.args, budget=job.budget, **make.keywords) as optimizer:
        return _begun(job, optimizer, known, interrupts)


def _begun(job: Job, optimizer: Optimizer, known: list[Any], interrupts: Interrupts) -> Result:
    of_one_point(job.f, optimizer.space.names, optimizer.space.dim)
    if job.on_trial is not None and not callable(job.on_trial):
        raise TypeError(f"on_trial is {shown(job.on_trial)}; give a function of a trial and the optimizer")
    if known:
        optimizer.tell_all(known)
    return _guarded(job, optimizer, interrupts)


def drive(
    optimizer: Optimizer,
    f: Callable[[Any], float | Measured],
    *,
    budget: int | None,
    stop: Rule | None,
    on_failure: OnFailure,
    timeout: float | None,
    workers: int | None,
    executor: Any,
    in_flight: int | None,
    retries: int,
    on_trial: Callable[[Trial, Optimizer], Any] | None,
    progress: bool,
) -> Result:
    """As `maximize`, with an optimizer that exists."""
    job = Job(
        f, _needed(budget, stop), stop, on_trial, progress, _learns(on_failure), _seconds(timeout),
        staff_of(workers, executor, in_flight), whole("retries", retries, 0),
    )  # fmt: skip
    return holding(job.safe(partial(_begun, job, optimizer, [])))


def _guarded(job: Job, optimizer: Optimizer, interrupts: Interrupts) -> Result:
    """The run and what it found, whatever happens: an exception that leaves here carries the result so far.

    Ctrl-C acts in f, elsewhere if it is pressed twice, and never between f and the log.
    """
    before = optimizer.evaluated
    try:
        try:
            interrupts.patience = 2
            end = _shown(job, optimizer, interrupts)
            if end.reason == "budget" and optimizer.evaluated == before:
                end = Stop(end.reason, (_used_up(before, optimizer.best),))
        finally:
            interrupts.patience = None
    except KeyboardInterrupt:
        end = Stop("interrupted")
    except BaseException as error:
        _attach(error, _closed(optimizer, Stop(f"error: {words_of(error)}"), interrupts), job.learns)
        raise
    return _closed(optimizer, end, interrupts)


def _shown(job: Job, optimizer: Optimizer, interrupts: Interrupts) -> Stop:
    """The loop with a display, or without. No exception passes through the display, which might write to it."""
    if not job.progress:
        return _loop(job, optimizer, _ignore, _ignore, interrupts)
    display = _display(optimizer)
    report = display.__enter__()
    try:
        return _loop(job, optimizer, getattr(report, "begin", _ignore), report, interrupts)
    finally:
        interrupts.patience = 2  # a terminal may refuse to be written to for ever
        display.__exit__(None, None, None)


def _loop(job: Job, optimizer: Optimizer, show: Show, report: Show, interrupts: Interrupts) -> Stop:
    """Ask, evaluate, tell, until there is a reason to stop. What begins and what has an outcome is shown."""
    begin = time.perf_counter()

    def after(trial: Trial) -> Stop | None:
        report(trial)
        if job.on_trial is not None:
            interrupts.act()
            job.on_trial(trial, optimizer)
        if job.stop is None:
            return None
        interrupts.act()
        return checked_stop(job.stop, job.stop.stop(optimizer, time.perf_counter() - begin))

    with closing(optimizer.turns(job.budget)) as asked:
        if job.staff is not None:
            crew = job.staff.crew(job.f, learns=job.learns, timeout=job.timeout)
            return fly(Flight(optimizer, crew, show, after, interrupts, job.learns, job.retries), asked)
        end, waits = None, pauses()
        while end is None:
            interrupts.act()
            following = next_of(asked)
            if following is LATER:
                time.sleep(next(waits))
            elif isinstance(following, Stop):
                return following
            else:
                waits = pauses()
                show(following)
                end = after(_evaluate(job, following, optimizer, interrupts))
        return end


def _evaluate(job: Job, trial: Trial, optimizer: Optimizer, interrupts: Interrupts) -> Trial:
    """One evaluation; f gets a copy of the point, so that it may change it. Once f has returned, y is told."""
    values = held(job.evaluation(), optimizer.space.copy(trial.x))
    try:
        try:
            interrupts.patience = 1
            interrupts.act()
            values[0]
        finally:
            interrupts.patience = None  # stored before any key can act again; see `gpmi._support.interrupts`
    finally:
        if values:
            told = tell(optimizer, trial, values[0], learns=job.learns)
    interrupts.patience = 2
    return told


def _closed(optimizer: Optimizer, end: Stop, interrupts: Interrupts) -> Result:
    """The result of a run; Ctrl-C leaves out what the model would have to say."""
    interrupts.drop()
    try:
        try:
            interrupts.patience = 1
            result = Result.of(optimizer, end.reason)
        finally:
            interrupts.patience = None
    except BaseException as error:
        result = Result.of(optimizer, end.reason, model=False)
        if not isinstance(error, KeyboardInterrupt):
            _attach(error, result)
            raise
    return replace(result, events=result.events + end.events)


def _used_up(evaluated: int, best: Trial | None) -> Event:
    """That nothing was left to do, so that f was not called: the study has all evaluations of its budget."""
    found = "" if best is None else f"; the best is {rounded(best.y)}"
    return Event("budget used up", f"the study has its {evaluated} evaluations, a larger budget goes on{found}")


def _attach(error: BaseException, result: Result, learns: bool = True) -> None:
    """Let the exception carry the result, past any rule of its class about attributes."""
    own: dict[str, Any] = vars(BaseException)["__dict__"].__get__(error)  # the class may hide its instances' dict
    own["result"] = result
    with suppress(Exception):
        object.__setattr__(error, "result", result)  # a slot of that name in its class hides what is in the dict
    notes = own.get("__notes__")
    if notes is None or type(notes) is list:  # what else somebody has put there is left alone
        note = f"gpmi: {len(result.trials)} evaluations are kept in the exception's attribute `result`"
        if not result.trials:
            what = one_point(result.space.names, result.space.dim)
            note = f"gpmi: nothing was evaluated before; f is called with {what}"
        note += "" if learns or "on_failure" in words_of(error) else f"; {SWITCH}"
        own["__notes__"] = [*(notes or ()), note]


def _ignore(trial: Trial) -> None:
    pass


def _display(optimizer: Optimizer) -> Any:
    from gpmi.run.progress import live  # needs rich

    return live(optimizer)
