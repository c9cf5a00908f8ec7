"""Whether another measurement fits into what is left of a cost, beside those that are under way."""

from __future__ import annotations

from gpmi.trials import Log, Trial

ROUNDING = 1e-9  # of a cost: what a sum of costs may be off


def has_room(log: Log, cost: float, trial: Trial | None = None) -> bool:
    """Whether a pending trial may begin before `cost` is spent, or any trial for None. O(n).

    Where the fidelity has steps, the next one must fit. Where it has levels, that of the trial must fit, or the
    cheapest one. So must the next step, or the level, of all other trials that are pending. Costs that are learned
    count once there are some.
    """
    assert log.fidelity is not None
    fidelity, own = log.fidelity.fidelity, None if trial is None else trial.number
    if fidelity.has_steps:
        next_steps = {number: _cost_of_next_step(log, number) for number in log.pending}
        needed = fidelity.cost_of(fidelity.levels) if own is None else next_steps.pop(own, 0.0)
        return needed + sum(next_steps.values()) <= _left(log, cost)
    if fidelity.learns_costs and not log.spent:
        return True
    costs = log.costs_of_levels()
    levels = {number: costs[fidelity.labels.index(log.fidelity.of(log.row(number)))] for number in log.pending}
    needed = min(costs) if own is None else levels.pop(own, 0.0)
    return needed + sum(levels.values()) <= _left(log, cost)


def _cost_of_next_step(log: Log, number: int) -> float:
    """Return the cost of the step after the last one that a trial has reported, or of the first step."""
    assert log.fidelity is not None
    fidelity, curve = log.fidelity.fidelity, log[number].curve
    if not curve:
        return fidelity.cost_of(fidelity.levels)
    return fidelity.cost_of(curve[-1].step + 1) - fidelity.cost_of(curve[-1].step)


def _left(log: Log, cost: float) -> float:
    return cost - log.spent + ROUNDING * cost
