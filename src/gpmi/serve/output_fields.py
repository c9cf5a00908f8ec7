"""How people see what an experiment measures: the outputs of a study with goals, or its one result.

A study without goals has a single `OutputField` without a name. Forms and tables treat both kinds of studies alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpmi._support.text import VALUE, rounded, shortened
from gpmi.serve.cell_parsing import ParsedCell, parse_cell
from gpmi.trials import Trial
from gpmi.trials.goals import AtLeast, AtMost, Goal, Goals, Match, Max, Min
from gpmi.trials.outputs import Y
from gpmi.trials.units import Units
from gpmi.trials.value_bounds import OPEN, ValueBounds

Cell = tuple[int, int]  # the number of a trial and the index of an output
_CELL = re.compile(r"y-([0-9]{1,9})(?:-([0-9]{1,3}))?")


@dataclass(frozen=True)
class OutputField:
    """One output of an experiment."""

    index: int
    name: str | None  # None: the result of a study without goals
    goal: Goal = None
    unit: str = ""
    bounds: ValueBounds = OPEN  # what it can be at all

    @property
    def title(self) -> str:
        name = "Result" if self.name is None else shortened(self.name, VALUE)
        return f"{name} ({self.unit})" if self.unit else name

    @property
    def suffix(self) -> str:
        """The end of the name of its control in a form."""
        return "" if self.name is None else f"-{self.index}"

    @property
    def limit(self) -> str:
        """Its limit or target, in a few words; empty if it has none."""
        match self.goal:
            case Match():
                return f"match {rounded(self.goal.target)} ± {rounded(self.goal.within)}"
            case AtLeast():
                return f"at least {rounded(self.goal.value)}"
            case AtMost():
                return f"at most {rounded(self.goal.value)}"
        return ""

    @property
    def wish(self) -> str:
        """What is looked for, in a few words that begin or end with its name."""
        match self.goal:
            case Max():
                least = self.goal.at_least
                return f"the largest {self.title}" + ("" if least is None else f", {rounded(least)} or more")
            case Min():
                most = self.goal.at_most
                return f"the smallest {self.title}" + ("" if most is None else f", {rounded(most)} or less")
        return f"{self.title} {self.limit or 'is only watched'}"

    @property
    def short_purpose(self) -> str:
        """What is accepted, for the head of a narrow column; what is wished for is not said where results are typed."""
        match self.goal:
            case Max():
                return "" if self.goal.at_least is None else f"accepted: ≥ {rounded(self.goal.at_least)}"
            case Min():
                return "" if self.goal.at_most is None else f"accepted: ≤ {rounded(self.goal.at_most)}"
            case Match():
                return f"{rounded(self.goal.target)} ± {rounded(self.goal.within)}"
            case AtLeast():
                return f"≥ {rounded(self.goal.value)}"
            case AtMost():
                return f"≤ {rounded(self.goal.value)}"
        return "" if self.name is None else "watched"

    @property
    def is_watched(self) -> bool:
        """Whether it is neither an objective nor a limit."""
        return self.name is not None and self.goal is None

    def control(self, number: int) -> str:
        """Return the name of its control for a trial."""
        return f"y-{number}{self.suffix}"

    def label(self, number: int) -> str:
        """Return what a screen reader calls its control for a trial."""
        return f"{self.title} of trial {number}"

    def parse(self, typed: str) -> ParsedCell:
        """Read what was typed into its cell. Raise a ValueError that says how to write it instead."""
        return parse_cell(typed, self.unit)

    def doubt(self, y: float | None) -> str | None:
        """Return what is wrong with a value that cannot be, as a sentence without its end; None if it can be."""
        if y is None or self.bounds.contains(y):
            return None
        is_above = y > self.bounds.hi
        limit = self.bounds.hi if is_above else self.bounds.lo
        words = "above {}, the largest" if is_above else "below {}, the smallest"
        return f"{rounded(y)} is {words.format(rounded(limit))} value you said is possible"

    def value(self, trial: Trial) -> float | None:
        """Return what was measured; None if it is missing."""
        return trial.values.get(self.name or Y)

    def noise_var(self, trial: Trial) -> float:
        return trial.noise_of(self.name or Y)[0]

    def format(self, trial: Trial) -> str | None:
        """Return what was measured with its error bar; None if it is missing."""
        y, noise_var = self.value(trial), self.noise_var(trial)
        return None if y is None else rounded(y) + (f" ± {rounded(noise_var**0.5)}" if noise_var else "")

    def format_or_missing(self, trial: Trial) -> str:
        """Return what was measured, or that it is still missing. Nobody waits for what is only watched."""
        return self.format(trial) or ("–" if self.is_watched else "missing")

    def is_broken(self, trial: Trial) -> bool:
        """Whether it was measured and breaks its limit."""
        return self.name in trial.unmet and self.value(trial) is not None

    def problem(self, trial: Trial) -> str:
        """Return how it breaks its limit, in words."""
        above = isinstance(self.goal, AtMost)
        assert isinstance(self.goal, AtLeast | AtMost)
        return f"{self.title} is {'above' if above else 'below'} {rounded(self.goal.value)}"


def outputs_of(
    goals: Goals, units: Units | None = None, bounds: Mapping[str, ValueBounds] | None = None
) -> tuple[OutputField, ...]:
    """Return the outputs of a study, in their order."""
    units, bounds, names = units or {}, bounds or {}, goals.named
    return tuple(
        OutputField(i, name if name in names else None, goal, units.get(name, ""), bounds.get(name, OPEN))
        for i, (name, goal) in enumerate(goals.items())
    )


def lacking_outputs(outputs: Sequence[OutputField], trial: Trial) -> list[OutputField]:
    """Return the outputs that a trial with results does not have."""
    return [] if trial.status != "told" else [one for one in outputs if one.value(trial) is None]


# What was typed


def typed_cells(data: Mapping[str, str], outputs: Sequence[OutputField]) -> dict[Cell, str]:
    """Return what a form has for each trial and output. Other fields are ignored."""
    cells: dict[Cell, str] = {}
    for name, text in data.items():
        found = _CELL.fullmatch(name)
        if found is None or (found[2] is None) != (outputs[0].name is None) or int(found[2] or 0) >= len(outputs):
            continue
        output = outputs[int(found[2] or 0)]
        if output.control(int(found[1])) == name or found[2] is None:
            cells[int(found[1]), output.index] = text
    return cells


def measurement_of(outputs: Sequence[OutputField], cells: Mapping[int, ParsedCell]) -> tuple[Any, dict[str, Any]]:
    """Return y and its error bars, as `Study.tell` takes them, from cells by the index of their output.

    The error bars are left out where none was typed.
    """
    if any(cell.y is None for cell in cells.values()) or not cells:
        raise ValueError("There is no number; give the result")
    if outputs[0].name is None:
        cell = cells[0]
        return cell.y, {"noise_var": cell.noise_var} if cell.noise_var else {}
    y = {str(outputs[i].name): cell.y for i, cell in cells.items()}
    bars = {str(outputs[i].name): cell.noise_var for i, cell in cells.items() if cell.noise_var}
    return y, {"noise_var": bars} if bars else {}
