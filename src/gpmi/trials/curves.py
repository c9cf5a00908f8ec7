"""Trials that are measured step by step: their curves, which of the values enter the model, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from gpmi._support.types import Array
from gpmi.space import FidelityColumn
from gpmi.trials.exactness import Exactness
from gpmi.trials.output_rows import OutputRow
from gpmi.trials.trial import ENDED, Report, Trial


class InSteps(Exactness):
    """Each trial is one evaluation that passes through steps and reports values on the way."""

    def __init__(self, column: FidelityColumn) -> None:
        self._column, self._fidelity = column, column.fidelity

    def is_target(self, row: Array) -> bool:
        return self._column.is_target(row)

    def reached(self, told: Sequence[int], rows: Mapping[int, Array]) -> Sequence[int]:
        return [number for number in told if self.is_target(rows[number])]

    def cost_of(self, trial: Trial, row: Array) -> float:
        """Return the cost of the steps that a trial has reported; an outcome without a report took the first one."""
        if trial.status in ("rejected", "retracted"):
            return 0.0
        if trial.curve:
            return self._fidelity.cost_of(trial.curve[-1].step)
        return self._cost_of_first_step if trial.status in ENDED else 0.0

    @property
    def _cost_of_first_step(self) -> float:
        return self._fidelity.cost_of(self._fidelity.levels)

    def next_costs(
        self, trials: Mapping[int, Trial], rows: Mapping[int, Array], pending: Iterable[int]
    ) -> tuple[float, dict[int, float]]:
        """Return the cost of the first step, and that of the next step of each pending trial."""
        return self._cost_of_first_step, {number: self._cost_of_next_step(trials[number]) for number in pending}

    def _cost_of_next_step(self, trial: Trial) -> float:
        """Return the cost of the step after the last one that a trial has reported, or of the first step."""
        if not trial.curve or trial.curve[-1].step < self._fidelity.levels:
            return self._cost_of_first_step
        last = trial.curve[-1].step
        return self._fidelity.cost_of(last + 1) - self._fidelity.cost_of(last)

    def check_steps(self) -> None:
        """Allow values on the way."""

    def check_curve(self, trial: Trial) -> None:
        """Take any curve."""

    def last_step(self, row: Array | None) -> int:
        """Return the step at which a trial ends: the target, unless the user fixed another one."""
        assert self._fidelity.last is not None
        return self._fidelity.last if row is None else int(self._column.of(row))

    def enters(self, trial: Trial, row: Array, place: int) -> bool:
        """Whether a value of a curve enters the model: the first at or after each rung. The last, y, enters anyway."""
        step, before = trial.curve[place].step, trial.curve[place - 1].step if place else 0
        return step != self.last_step(row) and any(before < rung <= step for rung in self._fidelity.rungs)

    def at_step(self, row: Array, step: int) -> Array:
        return self._column.at(row, step)

    def ended(self, trial: Trial, row: Array) -> Trial:
        """Return a trial whose curve ends with its value at the target."""
        if trial.status != "told":
            return trial
        last = self.last_step(row)
        assert trial.order is not None
        curve = tuple(report for report in trial.curve if report.step != last)
        y: float | Mapping[str, float] = trial.outputs or trial.y or 0.0
        return replace(trial, curve=(*curve, Report(last, y, trial.order)))

    def values_of(self, name: str, trial: Trial, row: Array) -> Iterator[OutputRow]:
        for place, report in enumerate(trial.curve if trial.status not in ("retracted", "rejected") else ()):
            if name in report.values and self.enters(trial, row, place):
                yield OutputRow(report.order, trial.number, self.at_step(row, report.step), report.values[name])
        yield from super().values_of(name, trial, row)
