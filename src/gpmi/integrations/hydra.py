"""Hydra: the work of the sweeper. Hydra finds it through `hydra_plugins.gpmi_sweeper`. Needs hydra-core.

python app.py --multirun hydra/sweeper=gpmi hydra.sweeper.n_trials=30 'x=interval(0,1)' 'rate=tag(log,interval(1e-4,1))'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

try:
    from hydra.core.override_parser.types import Override, RangeSweep
    from hydra.core.utils import JobReturn
except ImportError as error:
    raise ImportError("this needs Hydra: pip install hydra-core") from error

from gpmi._support import checks
from gpmi.optimizer import Optimizer
from gpmi.space import Choice, Int, Real, SpaceExhausted

Launch = Callable[[list[list[str]], int], Sequence[JobReturn]]  # of the overrides of jobs, and the number of the first


def parameters_of(overrides: Sequence[Override]) -> tuple[dict[str, Any], list[str]]:
    """Return the swept parameters, and the other overrides as written.

    interval(0, 1) is a real number, int(interval(1, 8)) and range(1, 9) are integers, choice(a, b) and a,b are options,
    and a range of floats is a list of levels. tag(log, ...) gives a logarithmic scale.
    """
    space: dict[str, Any] = {}
    rest: list[str] = []
    for override in overrides:
        if override.is_sweep_override():
            space[override.get_key_element()] = _parameter(override)
        else:
            rest.append(override.input_line)
    return space, rest


def _parameter(override: Override) -> Any:
    sweep: Any = override.value()
    log = "log" in sweep.tags
    if override.is_interval_sweep():
        kind: Any = Int if isinstance(sweep.start, int) and isinstance(sweep.end, int) else Real
        return kind(sweep.start, sweep.end, log)
    if isinstance(sweep, RangeSweep) and isinstance(sweep.range(), range) and len(sweep.range()) > 1:
        values = sweep.range()
        return Int(min(values), max(values), log, step=abs(values.step))
    ordered = isinstance(sweep, RangeSweep) or "ordered" in sweep.tags
    return Choice(tuple(override.sweep_string_iterator()), ordered=ordered)


def sweep(optimizer: Optimizer, launch: Launch, rest: list[str], n_trials: int, n_jobs: int) -> None:
    """Ask, launch and tell, `n_jobs` at a time: Hydra's launchers wait for all jobs of a call.

    A job that fails, or does not return a finite number, is recorded as a failure.
    """
    optimizer.goals.check_unnamed("a job of Hydra")
    while (done := len(optimizer.trials)) < n_trials:
        try:
            points = optimizer.ask(min(n_jobs, n_trials - done))
        except SpaceExhausted:
            break
        trials = optimizer.pending
        jobs = [[*rest, *(f"{name}={value}" for name, value in point.items())] for point in points]
        for trial, job in zip(trials, launch(jobs, done), strict=True):
            y, why = _value(job)
            _ = optimizer.fail(trial, why=why) if y is None else optimizer.tell(trial, y)
    if optimizer.best is None:
        raise ValueError("no job has returned a finite number; the task function must return the value")


def _value(job: JobReturn) -> tuple[float | None, str | None]:
    """Return the value of a job, or the reason why it has none."""
    try:
        returned = job.return_value  # raises the job's exception, and reports it on stderr
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"
    try:
        return checks.checked_value(returned), None
    except (TypeError, ValueError):
        return None, f"the job returned {checks.shown(returned)}"
