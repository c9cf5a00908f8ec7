"""Whether another measurement fits into what is left of a cost."""

from __future__ import annotations

from gpmi.trials import Log, Trial

ROUNDING = 1e-9  # of a cost: what a sum of costs may be off


def has_room(log: Log, cost: float, trial: Trial | None = None) -> bool:
    """Whether a trial may start before `cost` is spent, or any trial for None. O(n).

    Where the fidelity has steps, the first one must fit. Where it has levels, that of the trial must fit, or the
    cheapest one, beside all other trials that are pending. Costs that are learned count once there are some.
    """
    assert log.fidelity is not None
    fidelity, left = log.fidelity.fidelity, _left(log, cost)
    if fidelity.has_steps:
        return fidelity.cost_of(fidelity.levels) <= left
    if fidelity.learns_costs and not log.spent:
        return True
    costs, own = log.costs_of_levels(), None if trial is None else trial.number
    levels = {number: fidelity.labels.index(log.fidelity.of(log.row(number))) for number in log.pending}
    committed = sum(costs[level] for number, level in levels.items() if number != own)
    return (min(costs) if own is None else costs[levels[own]]) + committed <= left


def next_step_fits(log: Log, cost: float, trial: Trial) -> bool:
    """Whether a curve may go on by one step before `cost` is spent. O(n)."""
    assert log.fidelity is not None
    fidelity = log.fidelity.fidelity
    step = trial.curve[-1].step if trial.curve else 0
    return fidelity.cost_of(step + 1) - fidelity.cost_of(step) <= _left(log, cost)


def _left(log: Log, cost: float) -> float:
    return cost - log.spent + ROUNDING * cost
