"""Trials that are measured at the levels of a fidelity: which of them are at the target, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gpmi._support.types import Array
from gpmi.space import FidelityColumn
from gpmi.trials.exactness import Exactness
from gpmi.trials.trial import ENDED, Trial


class AtLevels(Exactness):
    """Each trial is one evaluation at one level."""

    def __init__(self, column: FidelityColumn) -> None:
        self._column, self._fidelity = column, column.fidelity

    def is_target(self, row: Array) -> bool:
        return self._column.is_target(row)

    def reached(self, told: Sequence[int], rows: Mapping[int, Array]) -> Sequence[int]:
        return [number for number in told if self.is_target(rows[number])]

    def cost_of(self, trial: Trial, row: Array) -> float:
        """Return the cost of the level of a trial, once it has ended."""
        if trial.status in ("pending", "rejected", "retracted"):
            return 0.0
        if self._fidelity.learns_costs:
            return max(0.0, trial.ended - trial.asked) if trial.ended and trial.asked else 0.0
        return self._fidelity.cost_of(self._column.of(row))

    def costs_of_levels(self, trials: Iterable[Trial], rows: Mapping[int, Array]) -> list[float]:
        """Return the cost of each level: as given, or learned as the mean time of its evaluations. O(n).

        A level without an evaluation takes the time of the nearest one that has some; without any, each costs 1.
        """
        labels = self._fidelity.labels
        if not self._fidelity.learns_costs:
            return [self._fidelity.cost_of(label) for label in labels]
        times: list[list[float]] = [[] for _ in labels]
        for trial in trials:
            if trial.status in ENDED and (cost := self.cost_of(trial, rows[trial.number])) > 0.0:
                times[labels.index(self._column.of(rows[trial.number]))].append(cost)
        timed = [i for i, times_of_level in enumerate(times) if times_of_level]
        if not timed:
            return [1.0] * len(times)
        means = {i: sum(times[i]) / len(times[i]) for i in timed}
        return [means[min(timed, key=lambda i: (abs(i - j), -i))] for j in range(len(times))]

    def next_costs(
        self, trials: Mapping[int, Trial], rows: Mapping[int, Array], pending: Iterable[int]
    ) -> tuple[float, dict[int, float]]:
        """Return the cost of the cheapest level, and that of each pending trial; costs to be learned are 0 at first."""
        if self._fidelity.learns_costs and not any(self.cost_of(trials[number], row) for number, row in rows.items()):
            return 0.0, {}
        costs = self.costs_of_levels(trials.values(), rows)
        labels = self._fidelity.labels
        return min(costs), {number: costs[labels.index(self._column.of(rows[number]))] for number in pending}
