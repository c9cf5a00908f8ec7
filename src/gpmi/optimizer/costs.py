"""Whether another measurement fits into what is left of a cost, beside those that are under way."""

from __future__ import annotations

from gpmi.trials import Log, Trial
from gpmi.trials.costs import next_costs, spent

ROUNDING = 1e-9  # of a cost: what a sum of costs may be off


def has_room(log: Log, cost: float, trial: Trial | None = None) -> bool:
    """Whether a pending trial may begin before `cost` is spent, or any trial for None. O(n).

    Where the fidelity has steps, the next one must fit. Where it has levels, that of the trial must fit, or the
    cheapest one. So must the next step, or the level, of all other trials that are pending. Costs that are learned
    count once there are some.
    """
    least, upcoming = next_costs(log)
    needed = least if trial is None else upcoming.pop(trial.number, 0.0)
    return needed + sum(upcoming.values()) <= _left(log, cost)


def _left(log: Log, cost: float) -> float:
    return cost - spent(log) + ROUNDING * cost
