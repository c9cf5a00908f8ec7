"""The trials of an earlier run, taken over into a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, get_args

from gpmi._support import checks
from gpmi._support.checks import checked_noise, checked_value
from gpmi._support.types import Array
from gpmi.trials import Log, Origin, Status, Trial
from gpmi.trials.outcomes import checked_constraints, checked_why

SAID = (  # kept when a run is replayed
    *("mu", "sd", "phi", "gamma_hat", "explored", "charge", "zeta", "surprise", "information", "asked", "fixed"),
)


def take_over(log: Log, trials: Sequence[Trial], rows: Sequence[Array]) -> None:
    """Add the trials of an earlier run with their predictions, then their outcomes in the order of that run.

    An empty log keeps their numbers. A value that was corrected comes with its first value, and the correction after
    all outcomes, as do retractions.
    """
    keeps = len(log.entries) == 0 and len({trial.number for trial in trials}) == len(trials)
    numbers = []
    for trial, row in zip(trials, rows, strict=True):
        said = {name: getattr(trial, name) for name in SAID}
        numbers.append(log.add(trial.x, row, trial.origin, number=trial.number if keeps else None, **said).number)
    settled = [i for i, trial in enumerate(trials) if trial.status != "pending"]
    for i in sorted(settled, key=lambda i: (trials[i].order is None, trials[i].order or 0, i)):
        trial = trials[i]
        names = ("noise_var", "repeats", "constraints", "why")
        first = trial.y if trial.y_before is None else trial.y_before
        more = {name: getattr(trial, name) for name in names}
        log.settle(numbers[i], first, trial.ended, rejected=trial.status == "rejected", **more)
    for i in settled:
        trial = trials[i]
        if trial.status == "retracted":
            log.retract(numbers[i])
        elif trial.y is not None and trial.y_before is not None:
            log.correct(numbers[i], trial.y, trial.noise_var, trial.repeats, trial.constraints)


def checked_trials(trials: Iterable[Any], count: int | None) -> list[Trial]:
    """The trials of another run; with every value `count` constraints, or as many as with the first of them."""
    checked = [_checked(trial) for trial in trials]
    for trial in checked:
        if trial.status == "told":
            count = len(checked_constraints(trial.constraints, count))
    return checked


def _checked(trial: Any) -> Trial:
    """A trial of another run: what the log goes by is checked, but its point; what a model said is taken as it is."""
    if not isinstance(trial, Trial):
        raise TypeError(f"trials has {trial!r}; give the trials of a Result or an Optimizer")
    checks.whole("number", trial.number, 0)
    checks.one_of("status", trial.status, get_args(Status))
    checks.one_of("origin", trial.origin, get_args(Origin))
    if trial.order is not None:
        checks.whole("order", trial.order, 0)
    noise_var, repeats = checked_noise(trial.noise_var, trial.repeats)
    before = None if trial.y_before is None else checked_value(trial.y_before)
    y = checked_value(trial.y) if trial.status == "told" else None
    more: dict[str, Any] = {
        "constraints": checked_constraints(trial.constraints, None),
        "why": checked_why(trial.why),
    }
    return replace(trial, y=y, noise_var=noise_var, repeats=repeats, y_before=before, **more)
