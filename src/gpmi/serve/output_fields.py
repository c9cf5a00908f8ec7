"""What an experiment measures, as people and programs give and read it: its outputs, or its one result.

`outputs_of` decides once, when a study is opened. A study without goals has one output, y, which its user does not
name: people read "result", and programs send y. Everything else loops over the outputs.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, overload

from gpmi._support import checks
from gpmi._support.text import VALUE, rounded, shortened
from gpmi.serve.cell_parsing import ParsedCell, parse_cell, parse_column, parse_table
from gpmi.trials import (
    OPEN,
    OUTPUTS,
    AtLeast,
    AtMost,
    Goal,
    Goals,
    Match,
    Max,
    Min,
    Outputs,
    Trial,
    Units,
    ValueBounds,
    Y,
)
from gpmi.views.trial_notes import note

ON_FRONT = "on the front"  # what a table notes at a trial
Cell = tuple[int, int]  # the number of a trial and the index of an output
_CELL = re.compile(r"y-([0-9]{1,9})(-[0-9]{1,3})?")


@dataclass(frozen=True)
class OutputField:
    """One output of an experiment."""

    index: int
    name: str
    goal: Goal = None
    unit: str = ""
    bounds: ValueBounds = OPEN  # what it can be at all

    placeholder: ClassVar[str | None] = None  # of its cell in the table of waiting trials
    required: ClassVar[bool] = False  # whether a form about one trial needs it

    @property
    def heading(self) -> str:
        """What it is called at the head of a column."""
        return shortened(self.name, VALUE)

    @property
    def noun(self) -> str:
        """What it is called in a sentence."""
        return self.heading

    @property
    def title(self) -> str:
        return self._with_unit(self.heading)

    @property
    def phrase(self) -> str:
        """What it is called in a sentence, with its unit."""
        return self._with_unit(self.noun)

    def _with_unit(self, text: str) -> str:
        return f"{text} ({self.unit})" if self.unit else text

    @property
    def subject(self) -> str:
        """What a sentence about its value begins with."""
        return self.name

    @property
    def prefix(self) -> str:
        """What tells a message about it from those about other outputs."""
        return f"{self.title}: "

    @property
    def suffix(self) -> str:
        """The end of the name of its control in a form."""
        return f"-{self.index}"

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
                return f"the largest {self.phrase}" + ("" if least is None else f", {rounded(least)} or more")
            case Min():
                most = self.goal.at_most
                return f"the smallest {self.phrase}" + ("" if most is None else f", {rounded(most)} or less")
        return f"{self.phrase} {self.limit or 'is only watched'}"

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
        return "watched"

    @property
    def is_objective(self) -> bool:
        """Whether it is made large, made small, or matched to a target."""
        return isinstance(self.goal, Max | Min | Match)

    @property
    def is_limit(self) -> bool:
        return isinstance(self.goal, AtLeast | AtMost)

    @property
    def is_watched(self) -> bool:
        """Whether it is neither an objective nor a limit."""
        return self.goal is None

    def control(self, number: int) -> str:
        """Return the name of its control for a trial."""
        return f"y-{number}{self.suffix}"

    def label(self, number: int) -> str:
        """Return what a screen reader calls its control for a trial."""
        return f"{self.title} of trial {number}"

    @property
    def typed_again(self) -> str:
        """What its control is called where two people entered the same trial."""
        return f"You typed for {self.title}"

    def hint(self, value: str | None) -> str | None:
        """Return what its control shows while it is empty, in a form about one trial; `value` is what it has."""
        return f"now {value}" if value else None

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

    def warning(self, trial: Trial) -> str | None:
        """Return what to check in a value that was saved although it cannot be; None if it can be."""
        y = self.value(trial)
        return None if y is None or self.bounds.contains(y) else self.bounds.warning(trial.number, self.subject, y)

    def value(self, trial: Trial) -> float | None:
        """Return what was measured; None if it is missing."""
        return trial.values.get(self.name)

    def noise_var(self, trial: Trial) -> float:
        return trial.noise_of(self.name)[0]

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


@dataclass(frozen=True)
class ResultField(OutputField):
    """The output that its user does not name: the result. No message has to tell it from others."""

    placeholder: ClassVar[str | None] = "e.g. 4.1"
    required: ClassVar[bool] = True

    @property
    def heading(self) -> str:
        return "Result"

    @property
    def noun(self) -> str:
        return "result"

    @property
    def subject(self) -> str:
        return "the result"

    @property
    def prefix(self) -> str:
        return ""

    @property
    def suffix(self) -> str:
        return ""

    @property
    def typed_again(self) -> str:
        return "You typed"

    def hint(self, value: str | None) -> str | None:
        return "e.g. 4.1 ± 0.2"


# All outputs of an experiment


@dataclass(frozen=True)
class Results(Sequence[OutputField], ABC):
    """The outputs of an experiment, in their order."""

    goals: Goals
    fields: tuple[OutputField, ...]

    @overload
    def __getitem__(self, index: int) -> OutputField: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[OutputField, ...]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)

    @property
    def objectives(self) -> tuple[OutputField, ...]:
        """The outputs that are optimised."""
        return tuple(output for output in self if output.is_objective)

    @property
    def limits(self) -> tuple[OutputField, ...]:
        """The outputs with a limit."""
        return tuple(output for output in self if output.is_limit)

    @property
    def can_be_unacceptable(self) -> bool:
        """Whether a trial can have results that nobody accepts."""
        return self.goals.has_limits

    def lacking(self, trial: Trial) -> list[OutputField]:
        """Return the outputs that a trial with results does not have."""
        return [] if trial.status != "told" else [output for output in self if output.value(trial) is None]

    def is_measured(self, trial: Trial) -> bool:
        """Whether a trial has results that say what the best point is."""
        return trial.status == "told" and all(name in trial.values for name in self.goals.required)

    @abstractmethod
    def values(self, y: Any) -> dict[str, float]:
        """Return a measurement, as `Study.tell` takes it, by output."""

    @abstractmethod
    def measurement(self, values: Mapping[str, float]) -> Any:
        """Return values by output as a measurement, as `Study.tell` takes it."""

    @abstractmethod
    def completed(self, trial: Trial, values: Mapping[str, float]) -> Trial:
        """Return a trial that was told values, with those that it does not have yet.

        While the database is unreachable, a late output is in a file.
        """

    @abstractmethod
    def stated(self, values: Mapping[str, float]) -> str:
        """Return values by output in words."""

    # What is known of a trial

    @abstractmethod
    def notes(self, trial: Trial, mark: str = "") -> str:
        """Return what else is known about a trial, in words: its mark, broken limits, and what it was before."""

    # What was typed

    def typed_cells(self, data: Mapping[str, str]) -> dict[Cell, str]:
        """Return what a form has for each trial and output. Other fields are ignored."""
        by_suffix, cells = {output.suffix: output for output in self}, dict[Cell, str]()
        for name, text in data.items():
            match = _CELL.fullmatch(name)
            output = None if match is None else by_suffix.get(match[2] or "")
            if match is not None and output is not None and output.control(int(match[1])) == name:
                cells[int(match[1]), output.index] = text
        return cells

    def read(self, cells: Mapping[int, ParsedCell]) -> tuple[Any, dict[str, Any]]:
        """Return y and its error bars, as `Study.tell` takes them, from cells by the index of their output.

        The error bars are left out where none was typed.
        """
        y = {self[index].name: cell.y for index, cell in cells.items() if cell.y is not None}
        if len(y) < len(cells) or not cells:
            raise ValueError("There is no number; give the result")
        bars = {self[index].name: cell.noise_var for index, cell in cells.items() if cell.noise_var}
        return self.measurement(y), {"noise_var": self.measurement(bars)} if bars else {}

    @abstractmethod
    def pasted(self, text: str, order: Sequence[int], incomplete: Iterable[Trial]) -> dict[Cell, str]:
        """Return the cells of pasted columns, for the trials in `order` and then those that lack outputs."""

    @abstractmethod
    def columns(self, names: Sequence[str]) -> dict[int, str]:
        """Return the column of known results of each output, by its index. Raise a ValueError if it is unclear."""

    # Programs

    @abstractmethod
    def goals_json(self) -> dict[str, Any]:
        """Return what the JSON of a study has about its goals."""

    @abstractmethod
    def trial_json(self, trial: Trial) -> dict[str, Any]:
        """Return what the JSON of a trial has about its outputs, beside y."""

    @abstractmethod
    def measured_json(self, y: Any) -> dict[str, Any]:
        """Return a measurement as it is called in JSON."""

    @abstractmethod
    def read_json(self, body: Mapping[str, Any]) -> Any:
        """Return the measurement in a JSON object. Raise a ValueError if it has none, or one of another kind."""

    @abstractmethod
    def checked_goals(self) -> Goals:
        """Return the goals of a study whose trials have a front; refuse one with a result that is not named."""


class OneResult(Results):
    """One result, which its user does not name."""

    def values(self, y: Any) -> dict[str, float]:
        return {Y: y}

    def measurement(self, values: Mapping[str, float]) -> Any:
        return values[Y]

    def completed(self, trial: Trial, values: Mapping[str, float]) -> Trial:
        return trial

    def stated(self, values: Mapping[str, float]) -> str:
        return rounded(values[Y])

    def notes(self, trial: Trial, mark: str = "") -> str:
        return note(trial, bars=False)

    def pasted(self, text: str, order: Sequence[int], incomplete: Iterable[Trial]) -> dict[Cell, str]:
        return {(number, 0): cell for number, cell in parse_column(text, order, self[0].unit).items()}

    def columns(self, names: Sequence[str]) -> dict[int, str]:
        if len(names) > 1:
            raise ValueError("Only one column can hold results; leave out the others, or choose several outputs")
        return dict(enumerate(names))

    def goals_json(self) -> dict[str, Any]:
        return {}

    def trial_json(self, trial: Trial) -> dict[str, Any]:
        return {}

    def measured_json(self, y: Any) -> dict[str, Any]:
        return {"y": y}

    def read_json(self, body: Mapping[str, Any]) -> Any:
        if "outputs" in body:
            raise ValueError(f"outputs is {checks.shown(body['outputs'])}, but the study has no goals; give y")
        if "y" not in body:
            raise ValueError("y is missing; give it")
        return checks.number("y", body["y"])

    def checked_goals(self) -> Goals:
        raise ValueError("the study has no goals, so it has no front; /api/best and /api/recommend are about its y")


class NamedOutputs(Results):
    """Outputs that the user named. They may come one by one."""

    def values(self, y: Any) -> dict[str, float]:
        return dict(y)

    def measurement(self, values: Mapping[str, float]) -> Any:
        return dict(values)

    def completed(self, trial: Trial, values: Mapping[str, float]) -> Trial:
        return replace(trial, outputs=Outputs({**trial.outputs, **values}))

    def stated(self, values: Mapping[str, float]) -> str:
        return " and ".join(f"{name} {rounded(y)}" for name, y in values.items())

    def notes(self, trial: Trial, mark: str = "") -> str:
        plain = replace(trial, unmet=(), y_before=None, constraints=())  # these are said by output
        before = {} if trial.outputs_before is None else trial.outputs_before
        changed = {name: y for name, y in before.items() if trial.outputs.get(name) != y}
        was = ", ".join(f"{shortened(name, VALUE)} {rounded(y)}" for name, y in changed.items())
        notes = [mark, *(output.problem(trial) for output in broken(self, trial)), f"was {was}" if was else ""]
        return "; ".join(text for text in (*notes, note(plain, bars=False)) if text)

    def pasted(self, text: str, order: Sequence[int], incomplete: Iterable[Trial]) -> dict[Cell, str]:
        numbers = [*order, *(trial.number for trial in incomplete if trial.number not in order)]
        return parse_table(text, numbers, list(self.goals), [output.unit for output in self])

    def columns(self, names: Sequence[str]) -> dict[int, str]:
        index = {output.name.casefold(): output.index for output in self}
        for name in names:
            if name.casefold() not in index:
                titles = ", ".join(output.title for output in self)
                raise ValueError(
                    f"The column {shortened(name, VALUE)!r} has known results, but no output has this name; the "
                    f"outputs are {titles}"
                )
        if len({name.casefold() for name in names}) < len(names):
            raise ValueError("Two columns have known results of the same output; leave out one of them")
        return {index[name.casefold()]: name for name in names}

    def goals_json(self) -> dict[str, Any]:
        return {"goals": self.goals.to_json()}

    def trial_json(self, trial: Trial) -> dict[str, Any]:
        before = None if trial.outputs_before is None else dict(trial.outputs_before)
        return {
            **{name: dict(getattr(trial, name)) for name in OUTPUTS},
            **{"outputs_before": before, "unmet": list(trial.unmet)},
            "missing": [name for name in self.goals if name not in trial.outputs],
        }

    def measured_json(self, y: Any) -> dict[str, Any]:
        return {"outputs": dict(y)}

    def read_json(self, body: Mapping[str, Any]) -> Any:
        if "y" in body or "outputs" not in body:
            given = f"y is {checks.shown(body['y'])}" if "y" in body else "outputs is missing"
            raise ValueError(f"{given}; the study has goals, so give outputs, an object with {', '.join(self.goals)}")
        return self.goals.checked(body["outputs"])

    def checked_goals(self) -> Goals:
        return self.goals


def broken(outputs: Iterable[OutputField], trial: Trial) -> list[OutputField]:
    """Return the outputs that break their limit in a trial with results."""
    return [output for output in outputs if trial.status == "told" and output.is_broken(trial)]


def outputs_of(goals: Goals, units: Units | None = None, bounds: Mapping[str, ValueBounds] | None = None) -> Results:
    """Return what an experiment measures."""
    units, bounds = units or {}, bounds or {}
    results, field = (NamedOutputs, OutputField) if goals.named else (OneResult, ResultField)
    about = ((name, goal, units.get(name, ""), bounds.get(name, OPEN)) for name, goal in goals.items())
    return results(goals, tuple(field(index, *each) for index, each in enumerate(about)))
