"""What the trials of a log cost, by the fidelity of its space."""

from __future__ import annotations

from gpmi._support.types import Array
from gpmi.trials.log import Log


def spent(log: Log) -> float:
    """Return the cost of all evaluations so far, those on their way included; 0 without a fidelity. O(n)."""
    return sum(log.exactness.cost_of(trial, log.row(trial.number)) for trial in log.trials)


def costs_of_levels(log: Log) -> list[float]:
    """Return the cost of each level: as given, or the mean time of its evaluations. O(n)."""
    return log.exactness.costs_of_levels(log.trials, _rows(log))


def next_costs(log: Log) -> tuple[float, dict[int, float]]:
    """Return the least cost of a further trial, and that of what is next in each pending trial, by number. O(n)."""
    trials = {trial.number: trial for trial in log.trials}
    return log.exactness.next_costs(trials, _rows(log), log.pending)


def _rows(log: Log) -> dict[int, Array]:
    return {trial.number: log.row(trial.number) for trial in log.trials}
