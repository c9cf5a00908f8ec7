"""The part of a log at the target of its fidelity."""

from __future__ import annotations

from copy import copy
from typing import Any

from gpmi._support.types import Observations
from gpmi.trials.log import Log


def at_target(log: Log) -> Log:
    """Return the same log with the trials at the target alone. O(n)."""
    found = log.fidelity
    assert found is not None
    return _with_trials(log, {number for number, row in log._rows.items() if found.is_target(row)})


def without_last(log: Log) -> Log:
    """Return the same log without the trial whose value was told last. O(n)."""
    return _with_trials(log, log._trials.keys() - {log.told[-1]})


def _with_trials(log: Log, numbers: set[int]) -> Log:
    part = copy(log)
    part._trials = {number: trial for number, trial in log._trials.items() if number in numbers}
    part._derive()
    part.revision = log.revision
    return part


def values_at_target(log: Log) -> dict[str, Any]:
    """Return the values at the target, and where they are among all values, as arguments of a ledger. O(n)."""
    known = log.observed
    if log.fidelity is None:
        return {"observed": known}
    last = {number: i for i, number in enumerate(log.observed_numbers)}  # of several values of a trial, y
    at = [last[number] for number in log.reached]
    x, numbers = known.x[at], (known.y[at], known.noise_var[at], known.repeats[at])
    return {"observed": Observations.of(x, *numbers), "evidence": known, "ends": tuple(i + 1 for i in at)}
