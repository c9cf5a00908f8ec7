"""What trials cost, where the space has a fidelity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpmi._support.types import Array
from gpmi.space import FidelityColumn
from gpmi.trials.trial import Trial

ENDED = ("told", "stopped", "failed")  # the statuses of trials that count in the budget


def cost_of(trial: Trial, row: Array, found: FidelityColumn) -> float:
    """Return the cost of a trial so far: of its level once it has ended, or of the steps that it reported."""
    fidelity = found.fidelity
    if trial.status in ("rejected", "retracted"):
        return 0.0
    if fidelity.has_steps:
        return fidelity.cost_of(trial.curve[-1].step) if trial.curve else 0.0
    if trial.status == "pending":
        return 0.0
    if fidelity.learns_costs:
        return max(0.0, trial.ended - trial.asked) if trial.ended and trial.asked else 0.0
    return fidelity.cost_of(found.of(row))


def costs_of_levels(trials: Iterable[Trial], rows: Mapping[int, Array], found: FidelityColumn) -> list[float]:
    """Return the cost of each level: as given, or learned as the mean time of its evaluations. O(n).

    A level without an evaluation takes the time of the nearest one that has some; without any, each costs 1.
    """
    fidelity = found.fidelity
    if not fidelity.learns_costs:
        return [fidelity.cost_of(label) for label in fidelity.labels]
    times: list[list[float]] = [[] for _ in fidelity.labels]
    for trial in trials:
        if trial.status in ENDED and (cost := cost_of(trial, rows[trial.number], found)) > 0.0:
            times[fidelity.labels.index(found.of(rows[trial.number]))].append(cost)
    known = [i for i, some in enumerate(times) if some]
    if not known:
        return [1.0] * len(times)
    means = {i: sum(times[i]) / len(times[i]) for i in known}
    return [means[min(known, key=lambda i: (abs(i - j), -i))] for j in range(len(times))]
