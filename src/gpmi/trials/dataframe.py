"""The trials of a run as a table: all of them as a pandas DataFrame, the best of them for a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from gpmi._support.checks import shown
from gpmi._support.text import NAME, Line, aligned, columns, coordinate, html_lines, html_table, rounded, shortened
from gpmi._support.types import Point
from gpmi.space import Space
from gpmi.trials.goal_summary import along_front, at_target, broken_limits, missing_outputs, told_front
from gpmi.trials.goals import Goals
from gpmi.trials.trial import ABOUT_FIDELITY, ABOUT_OUTPUTS, Trial, fields_of_type
from gpmi.trials.value_goal import MAXIMISE

if TYPE_CHECKING:
    from pandas import DataFrame

LEFT_OUT = (
    "number",
    "x",
    "order",
    "charge",
    "zeta",
    "fixed",
    "doubts",
    *ABOUT_OUTPUTS,
    *ABOUT_FIDELITY,
)  # the fields of a trial without a separate column, or with one only in a run with a fidelity
COLUMNS = tuple(field.name for field in fields(Trial) if field.name not in LEFT_OUT)  # after the parameters
OPTIONAL = ("label", "fixed", "doubts")  # after these, if a trial has one
TIMES = ("asked", "ended")
TYPES = {  # of pandas, by the type of the field; anything else is an object
    **dict.fromkeys(fields_of_type("float"), "float64"),
    **dict.fromkeys(fields_of_type("int"), "int64"),
    **dict.fromkeys(fields_of_type("bool"), "boolean"),
    **dict.fromkeys(fields_of_type("Status", "Origin"), "str"),
}

BEST, WIDE = 5, 8  # rows and parameters of the table in a notebook, at most; our choice, not tuned
FRONT = 8  # rows of a front in a notebook, at most; our choice, not tuned
# The columns about an output after its own: how their names end, and the field of `Trial`.
DETAILS = {"noise_var": "output_noise_var", "repeats": "output_repeats", "before": "outputs_before"}


class Printable(ABC):
    """A run at a prompt: lines of text, a table in a notebook, a DataFrame. Base of optimizer, study and result."""

    goal: Literal["max", "min"]
    goals: Goals  # of the outputs
    space: Space

    @abstractmethod
    def summary_lines(self) -> list[Line]:
        """Return the lines of the summary: a name and a text each."""

    @abstractmethod
    def all_trials(self) -> tuple[Trial, ...]:
        """Return the trials that a table shows."""

    def to_dataframe(self) -> DataFrame:
        """Return one row for each trial: its parameters, outputs, y, status, prediction, times. Needs pandas."""
        return frame(self.all_trials(), self.space, self.goals)

    def shown_front(self) -> tuple[Trial, ...]:
        """Return the front of several objectives for a summary: by the values told, which needs no model."""
        goals = self.goals
        return () if goals.single is not None else told_front(self.all_trials(), goals, self.space)

    def __repr__(self) -> str:
        return aligned(self.summary_lines())

    def _repr_html_(self) -> str:
        goals, lines = self.goals, self.summary_lines()
        if goals.single is None:
            return front_notebook(lines, self.shown_front(), self.space, goals)
        return notebook(lines, self.all_trials(), self.space, self.goal, goals)


@dataclass(frozen=True)
class OutputColumns:
    """The columns of the outputs in a table, none in a run without goals.

    An output has a column with its name. If a parameter or a field of `Trial` has that name, or it begins with "out.",
    it gets the prefix "out.". Further columns exist only where a trial needs them: "yield noise_var", "yield repeats",
    "yield before" (the first value of a corrected trial), and "unmet".
    """

    values: Mapping[str, str]  # the column of each output
    details: Mapping[tuple[str, str], str]  # the column of each field in DETAILS and output
    unmet: str = "unmet"

    @staticmethod
    def of(goals: Goals, parameters: Iterable[str], *, fidelity: bool = False) -> OutputColumns:
        """Return the columns beside those of the parameters. They do not depend on the order of the goals."""
        names, left_out = {*parameters}, () if fidelity else ABOUT_FIDELITY
        others = (field.name for field in fields(Trial) if field.name not in left_out)
        taken = {"number", "trial", "label", *names, *others}
        titles = {name: _free(f"out.{name}" if name.startswith("out.") else name, taken) for name in goals.named}
        taken |= {*titles.values()}
        details: dict[tuple[str, str], str] = {}
        for name in sorted(goals.named):
            for ending, field in DETAILS.items():
                details[field, name] = title = _free(f"{titles[name]} {ending}", taken)
                taken.add(title)
        ordered = {(field, name): details[field, name] for name in goals.named for field in DETAILS.values()}
        return OutputColumns(titles, ordered, _free("unmet", (taken - {"unmet"}) | names))

    def __iter__(self) -> Iterator[str]:
        """Yield all columns, each output followed by its details."""
        for name, title in self.values.items():
            yield title
            yield from (self.details[field, name] for field in DETAILS.values())
        if self.values:
            yield self.unmet

    def row(self, trial: Trial) -> dict[str, Any]:
        """Return the cells of a trial: every output, and the other columns where it needs them."""
        cells: dict[str, Any] = {title: trial.outputs.get(name) for name, title in self.values.items()}
        for (field, name), title in self.details.items():
            if name in (given := getattr(trial, field) or {}):
                cells[title] = given[name]
        return cells | ({self.unmet: list(trial.unmet)} if self.values and trial.unmet else {})

    def used(self, rows: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return the columns that a table of these rows has."""
        there = {*self.values.values(), *(title for row in rows for title in row)}
        return [title for title in self if title in there]

    def fields(self, row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the fields of `Trial` about outputs that a row has, except `unmet`, which follows from the goals."""
        by_field: dict[str, dict[str, Any]] = {"outputs": {}, **{field: {} for field in DETAILS.values()}}
        places = {("outputs", name): title for name, title in self.values.items()}
        for (field, name), title in (places | dict(self.details)).items():
            if row.get(title) is not None:
                by_field[field][name] = row[title]
        return by_field


def _free(name: str, taken: Iterable[str]) -> str:
    """Return a name for a column, with the prefix "out." as often as needed."""
    while name in taken:
        name = f"out.{name}"
    return name


def trials_given(name: str, given: Any) -> list[Any]:
    """Return the trials or observations that a user gives as a list; a Result or an Optimizer stands for its trials."""
    try:
        return list(given.all_trials() if isinstance(given, Printable) else given)
    except TypeError:
        raise TypeError(f"{name} is {shown(given)}; give a list, or the trials of a run, result.trials") from None


def frame(trials: Iterable[Trial], space: Space, goals: Goals = MAXIMISE) -> DataFrame:
    """Return one row for each trial, with its number as index.

    First a column for each parameter, named as in the space; x0, x1, ... where points are arrays. A parameter with the
    name of another column gets the prefix "x.". With goals, the columns of the outputs follow (`OutputColumns`). Then
    COLUMNS, missing where a trial has no value for them; `asked` and `ended` are times in UTC. Last come the label of
    the candidate and the fixed coordinates, if a trial has them, and `trust` and `curve` if the space has a fidelity.
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_dataframe needs pandas: pip install pandas") from error
    trials = list(trials)

    def column(name: str) -> Any:
        values = [getattr(trial, name) for trial in trials]
        series = pandas.Series(values, dtype=TYPES.get(name, "object"))
        if name in TIMES:  # seconds since 1970; without astype the dtype would depend on the values
            return pandas.to_datetime(series, unit="s", utc=True).astype("datetime64[ns, UTC]")
        return series

    values = [_values(trial.x, space) for trial in trials]
    optional = [name for name in OPTIONAL if any(getattr(trial, name) is not None for trial in trials)]
    optional += ABOUT_FIDELITY if space.fidelity is not None else ()
    cells = {name: _uniform([row[j] for row in values]) for j, name in enumerate(_titles(space, (*COLUMNS, *optional)))}
    outputs = OutputColumns.of(goals, cells, fidelity=space.fidelity is not None)
    cells |= output_series(outputs, [outputs.row(trial) for trial in trials])
    table = pandas.DataFrame(cells | {name: column(name) for name in (*COLUMNS, *optional)})
    table.index = pandas.Index([trial.number for trial in trials], dtype="int64", name="trial")
    return table


def output_series(outputs: OutputColumns, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the columns of the outputs for a DataFrame, given the cells of each trial."""
    import pandas

    whole = {title for (field, _), title in outputs.details.items() if field == "output_repeats"}
    kinds = {outputs.unmet: "object", **dict.fromkeys(whole, "Int64")}
    return {
        title: pandas.Series([row.get(title) for row in rows], dtype=kinds.get(title, "float64"))
        for title in outputs.used(rows)
    }


def notebook(
    lines: Sequence[Line],
    trials: Iterable[Trial],
    space: Space,
    goal: Literal["max", "min"],
    goals: Goals = MAXIMISE,
) -> str:
    """Return HTML with the lines and, below them, the BEST trials with a value, best first."""
    sign = 1.0 if goal == "max" else -1.0
    trials = at_target(trials, space)
    told = [(sign * trial.y, trial) for trial in trials if trial.y is not None and trial.feasible]
    best = [trial for _, trial in sorted(told, key=lambda pair: -pair[0])[:BEST]]
    head, rows = _recipes(best, space)
    head += [*_output_heads(goals), "mu", "sd", "origin"]
    for trial, row in zip(best, rows, strict=True):
        row += _output_cells(trial, goals)
        row += [_number(trial.mu), _number(trial.sd), trial.origin]
    return f"<div>{html_lines(lines)}{html_table(head, rows) if rows else ''}</div>"


def front_notebook(lines: Sequence[Line], front: Sequence[Trial], space: Space, goals: Goals) -> str:
    """Return HTML with the lines and, below them, the front: all of it, or FRONT trials spread over it."""
    shown = along_front(front, goals, FRONT)
    head, rows = _recipes(shown, space)
    outputs = _measured(shown, goals)
    head += [*(shortened(name, NAME) for name in outputs), "origin"]
    for trial, row in zip(shown, rows, strict=True):
        row += [*(_number(trial.outputs.get(name)) for name in outputs), trial.origin]
    if len(shown) < len(front):
        lines = [*lines, ("shown", f"{len(shown)} of the {len(front)} trials on the front, spread over it")]
    return f"<div>{html_lines(lines)}{html_table(head, rows) if rows else ''}</div>"


def _recipes(trials: Sequence[Trial], space: Space) -> tuple[list[str], list[list[str]]]:
    """Return the head and the first cells of the rows: the number of each trial and at most WIDE parameters."""
    names = names_of(space)
    left_out = [f"{len(names) - WIDE} more"] if len(names) > WIDE else []
    head = ["trial", *(shortened(name, NAME) for name in names[:WIDE]), *left_out]
    values = [[coordinate(value) for value in _values(trial.x, space)[:WIDE]] for trial in trials]
    return head, [
        [str(trial.number), *cells, *("..." for _ in left_out)] for trial, cells in zip(trials, values, strict=True)
    ]


def _output_heads(goals: Goals) -> list[str]:
    return [shortened(name, NAME) for name in goals]


def _output_cells(trial: Trial, goals: Goals) -> list[str]:
    """Return the outputs of a trial; one that was not measured is empty."""
    return [_number(trial.values.get(name)) for name in goals]


def _measured(trials: Sequence[Trial], goals: Goals) -> list[str]:
    """Return the outputs that at least one of the trials has."""
    return [name for name in goals if any(name in trial.outputs for trial in trials)]


def _number(value: float | None) -> str:
    return "" if value is None else rounded(value)


def listing(trials: Iterable[Trial], space: Space, goals: Goals = MAXIMISE) -> str:
    """Return a table as text, one line for each trial: every parameter, y or the outputs, and how it ended."""
    trials, rows = list(trials), [["trial", "status", *_output_heads(goals), *names_of(space), "why"]]
    waiting = missing_outputs(trials, goals)
    for trial in trials:
        values = ["" if value is None else coordinate(value) for value in _values(trial.x, space)]
        why = " ".join((trial.why or trial.doubt or "").split())
        state = _state(trial, waiting=trial.number in waiting)
        rows.append([str(trial.number), state, *_output_cells(trial, goals), *values, why])
    return columns(rows)


def front_listing(front: Iterable[Trial], space: Space, goals: Goals) -> str:
    """Return the front as a table of text, from the best in the first objective to the worst."""
    shown = along_front(front, goals)
    outputs = _measured(shown, goals)
    rows = [["trial", *(shortened(name, NAME) for name in outputs), *names_of(space)]]
    for trial in shown:
        values = ["" if value is None else coordinate(value) for value in _values(trial.x, space)]
        rows.append([str(trial.number), *(_number(trial.outputs.get(name)) for name in outputs), *values])
    return columns(rows)


def _state(trial: Trial, *, waiting: bool) -> str:
    """Return the status of a trial for a person: also whether it is infeasible, or waiting for an output.

    A trial on the way to the target of its fidelity has the step that it reached.
    """
    if trial.curve and trial.status in ("pending", "stopped"):
        return f"{trial.status} at {trial.curve[-1].step}"
    if trial.status != "told":
        return trial.status
    if trial.doubt is not None:
        return "doubtful"
    breaks = broken_limits(trial) or any(value > 0.0 for value in trial.constraints)
    return "infeasible" if breaks else "waiting" if waiting else "told"


def names_of(space: Space) -> list[str]:
    """Return the names of the parameters: x0, x1, ... where points are arrays."""
    return [f"x{j}" for j in range(space.dim)] if space.names is None else list(space.names)


def _titles(space: Space, others: Sequence[str]) -> list[str]:
    """Return distinct names for the columns of the parameters, different from the other columns."""
    names = names_of(space)
    taken = {*others, *names}
    for j, name in enumerate(names):
        if name in others:
            while name in taken:
                name = f"x.{name}"
            names[j] = name
            taken.add(name)
    return names


def _values(x: Point, space: Space) -> list[Any]:
    """Return the coordinates of a point, in the order of `names_of`; None for an inactive parameter."""
    return list(x.tolist()) if space.names is None else [x.get(name) for name in space.names]


def _uniform(values: list[Any]) -> Any:
    """Return a column of the values as they are: pandas may convert them only if they have one plain type."""
    import pandas

    kinds = {type(value) for value in values}
    plain = len(kinds) == 1 and kinds <= {bool, int, float, str}
    return pandas.Series(values) if plain else pandas.Series(values, dtype=object)
