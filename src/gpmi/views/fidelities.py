"""What a fidelity is to figures and reports: levels that are measured, or the steps of a curve. A run may have none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpmi._support.text import rounded
from gpmi._support.types import Array
from gpmi.space import FidelityColumn, Space
from gpmi.trials import Trial, exactness_of


class Expense(NamedTuple):
    """A part of the cost of a trial."""

    order: int  # its place among all outcomes
    cost: float
    trial: Trial
    is_last: bool  # whether the trial ended there


@dataclass(frozen=True)
class NoFidelity:
    """A run without a fidelity: it has no curves, and all measurements are alike."""

    name: str = ""
    title: str = ""  # the name with its unit
    titles: tuple[tuple[str, str], ...] = ()  # the title, by the name
    target: Any = None  # the level or step whose values count
    ends: tuple[float, float] = (0.0, 0.0)  # the first step and the last
    row_names: tuple[str, ...] = ()  # what measurements are told apart by
    prices: tuple[tuple[str, ...], ...] = ()  # the cells of a table with a row for each of these, beside their number
    head: tuple[str, ...] = ()  # the head of this table
    cost_name: str = ""  # what the cost is called on an axis

    def check(self, *, has_curves: bool) -> None:
        """Raise a ValueError if there is nothing to draw; with `has_curves`, no curve."""
        raise ValueError('the space of source has no fidelity; it takes one such as "epoch": gpmi.Fidelity(1, 52)')

    def counted(self, values: int) -> str:
        """Return how many values count, as a sentence after another one; empty if all do."""
        return ""

    def at(self, row: Array, value: Any) -> Array:
        """Return the point with coordinates row (d,) at another level or step."""
        return row

    def reached(self, trial: Trial) -> dict[str, Any]:
        """Return how far a trial came, by the name, if that is not what was suggested."""
        return {}

    def row_of(self, trial: Trial) -> int:
        """Return the number of a measurement in `row_names`."""
        return 0

    def expenses(self, trial: Trial, row: Array) -> list[Expense]:
        """Return what a trial with the coordinates row (d,) cost."""
        return []


@dataclass(frozen=True, kw_only=True)
class FidelityLevels(NoFidelity):
    """A fidelity with levels: a trial is measured at one of them."""

    column: FidelityColumn

    @staticmethod
    def of(column: FidelityColumn) -> FidelityLevels:
        """Return the levels of a parameter."""
        levels = column.fidelity
        names = tuple(map(str, levels.labels))
        costs = ("" if levels.learns_costs else rounded(levels.cost_of(label)) for label in levels.labels)
        return FidelityLevels(
            **_named(column),
            row_names=names,
            prices=tuple(zip(names, costs, strict=True)),
            head=(column.name, "cost of one", "times"),
            cost_name="time spent, in seconds" if levels.learns_costs else "cost spent",
        )

    def check(self, *, has_curves: bool) -> None:
        """Raise a ValueError if curves are to be drawn."""
        if has_curves:
            raise ValueError(f"{self.name} has levels, so there are no curves; draw cost(run)")

    def counted(self, values: int) -> str:
        """Return how many values are at the target."""
        return f" {values} values are at {self.name} {self.target}, and only these count below."

    def at(self, row: Array, value: Any) -> Array:
        """Return the point with coordinates row (d,) at another level or step."""
        return self.column.at(row, value)

    def row_of(self, trial: Trial) -> int:
        """Return the number of the level of a trial."""
        return self.column.fidelity.labels.index(trial.x[self.name])

    def expenses(self, trial: Trial, row: Array) -> list[Expense]:
        """Return the cost of a trial, which is that of its level once it has ended."""
        if trial.order is None or trial.status in ("rejected", "retracted"):
            return []
        return [Expense(trial.order, exactness_of(self.column).cost_of(trial, row), trial, True)]


@dataclass(frozen=True, kw_only=True)
class FidelitySteps(FidelityLevels):
    """A fidelity with steps: a trial reports values on its way to the last one."""

    @staticmethod
    def of(column: FidelityColumn) -> FidelitySteps:
        """Return the steps of a parameter."""
        names = "not to the end", "to the end"
        first, last = column.fidelity.labels
        return FidelitySteps(
            **_named(column),
            ends=(float(first), float(last)),
            row_names=names,
            prices=tuple((name,) for name in names),
            head=("trials", "times"),
            cost_name=f"cost spent, in steps of {column.name}" if column.fidelity.cost is None else "cost spent",
        )

    def check(self, *, has_curves: bool) -> None:
        """Do nothing: there are curves and costs."""

    def reached(self, trial: Trial) -> dict[str, Any]:
        """Return the last step that a trial reported; None if it reported none."""
        return {self.name: trial.curve[-1].step if trial.curve else None}

    def row_of(self, trial: Trial) -> int:
        """Return 1 if a trial reached the last step, else 0."""
        return int(trial.status == "told" and trial.x[self.name] == self.target)

    def expenses(self, trial: Trial, row: Array) -> list[Expense]:
        """Return the cost of each step that a trial reported, and its end."""
        if trial.status in ("rejected", "retracted"):
            return []
        totals = [0.0, *(self.column.fidelity.cost_of(report.step) for report in trial.curve)]
        costs = zip(trial.curve, np.diff(totals).tolist(), strict=True)
        end = [] if trial.order is None else [Expense(trial.order, 0.0, trial, True)]
        return [Expense(report.order, cost, trial, False) for report, cost in costs] + end


def fidelity_of(space: Space) -> NoFidelity:
    """Return what the fidelity of a space is to figures and reports."""
    if space.fidelity is None:
        return NoFidelity()
    return (FidelitySteps if space.fidelity.fidelity.has_steps else FidelityLevels).of(space.fidelity)


def _named(column: FidelityColumn) -> dict[str, Any]:
    """Return the fields that levels and steps have in common."""
    title = f"{column.name} ({column.fidelity.unit})" if column.fidelity.unit else column.name
    names = {"name": column.name, "title": title, "titles": ((column.name, title),)}
    return {**names, "column": column, "target": column.fidelity.target}
