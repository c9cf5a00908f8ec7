"""Parts of a log: at the target of its fidelity, or with some of its trials."""

from __future__ import annotations

from collections.abc import Collection
from copy import copy
from typing import Any

from gpmi._support.types import Observations
from gpmi.trials.log import Log


def at_target(log: Log) -> Log:
    """Return the same log with the trials at the target alone. O(n)."""
    return with_trials(log, set(log.exactness.reached([*log._rows], log._rows)))


def without_last(log: Log) -> Log:
    """Return the same log without the trial whose value was told last. O(n)."""
    return with_trials(log, log._trials.keys() - {log.told[-1]})


def with_trials(log: Log, numbers: Collection[int]) -> Log:
    """Return the same log with the trials of these numbers alone. O(n)."""
    part = copy(log)
    part._trials = {number: trial for number, trial in log._trials.items() if number in numbers}
    part._derive()
    part.revision = log.revision
    return part


def values_at_target(log: Log) -> dict[str, Any]:
    """Return the values at the target, and where they are among all values, as arguments of a ledger. O(n)."""
    observed = log.observed
    if log.fidelity is None:
        return {"observed": observed}
    last = {number: i for i, number in enumerate(log.observed_numbers)}  # of several values of a trial, y
    at = [last[number] for number in log.reached]
    x, numbers = observed.x[at], (observed.y[at], observed.noise_var[at], observed.repeats[at])
    return {"observed": Observations.of(x, *numbers), "evidence": observed, "ends": tuple(i + 1 for i in at)}
