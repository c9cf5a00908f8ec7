"""The trials of a run as a table: all of them as a pandas DataFrame, the best of them for a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

from gpmi._support.checks import shown
from gpmi._support.text import Line, aligned, coordinate, html_lines, html_table, rounded, shortened
from gpmi._support.types import Point
from gpmi.space import Space
from gpmi.trials import Trial
from gpmi.trials.trial import ABOUT_OUTPUTS, fields_of_type

if TYPE_CHECKING:
    from pandas import DataFrame

LEFT_OUT = (
    "number",
    "x",
    "order",
    "charge",
    "zeta",
    "fixed",
    *ABOUT_OUTPUTS,
)  # the fields of a trial without a separate column
COLUMNS = tuple(field.name for field in fields(Trial) if field.name not in LEFT_OUT)  # after the parameters
OPTIONAL = ("label", "fixed")  # after these, if a trial has one
TIMES = ("asked", "ended")
TYPES = {  # of pandas, by the type of the field; anything else is an object
    **dict.fromkeys(fields_of_type("float"), "float64"),
    **dict.fromkeys(fields_of_type("int"), "int64"),
    **dict.fromkeys(fields_of_type("bool"), "boolean"),
    **dict.fromkeys(fields_of_type("Status", "Origin"), "str"),
}

BEST, WIDE = 5, 8  # rows and parameters of the table in a notebook, at most; our choice, not tuned


class Printable(ABC):
    """A run at a prompt: lines of text, a table in a notebook, a DataFrame. Base of optimizer, study and result."""

    goal: Literal["max", "min"]
    space: Space

    @abstractmethod
    def summary_lines(self) -> list[Line]:
        """Return the lines of the summary: a name and a text each."""

    @abstractmethod
    def all_trials(self) -> tuple[Trial, ...]:
        """Return the trials that a table shows."""

    def to_dataframe(self) -> DataFrame:
        """Return one row for each trial: its parameters, y, status, origin, prediction, times. Needs pandas."""
        return frame(self.all_trials(), self.space)

    def __repr__(self) -> str:
        return aligned(self.summary_lines())

    def _repr_html_(self) -> str:
        return notebook(self.summary_lines(), self.all_trials(), self.space, self.goal)


def trials_given(name: str, given: Any) -> list[Any]:
    """Return the trials or observations that a user gives as a list; a Result or an Optimizer stands for its trials."""
    try:
        return list(given.all_trials() if isinstance(given, Printable) else given)
    except TypeError:
        raise TypeError(f"{name} is {shown(given)}; give a list, or the trials of a run, result.trials") from None


def frame(trials: Iterable[Trial], space: Space) -> DataFrame:
    """Return one row for each trial, with its number as index.

    First a column for each parameter, named as in the space; x0, x1, ... where points are arrays. A parameter with the
    name of another column gets the prefix "x.". Then COLUMNS, missing where a trial has no value for them; `asked` and
    `ended` are times in UTC. Last come the label of the candidate and the fixed coordinates, if a trial has them.
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
    some = [name for name in OPTIONAL if any(getattr(trial, name) is not None for trial in trials)]
    columns = {name: _uniform([row[j] for row in values]) for j, name in enumerate(_titles(space, (*COLUMNS, *some)))}
    table = pandas.DataFrame(columns | {name: column(name) for name in (*COLUMNS, *some)})
    table.index = pandas.Index([trial.number for trial in trials], dtype="int64", name="trial")
    return table


def notebook(lines: Sequence[Line], trials: Iterable[Trial], space: Space, goal: Literal["max", "min"]) -> str:
    """Return HTML with the lines and, below them, the BEST trials with a value, best first."""
    sign = 1.0 if goal == "max" else -1.0
    told = [(sign * trial.y, trial) for trial in trials if trial.y is not None and trial.feasible]
    best = [trial for _, trial in sorted(told, key=lambda pair: -pair[0])[:BEST]]
    names = names_of(space)
    more = [f"{len(names) - WIDE} more"] if len(names) > WIDE else []
    head = ["trial", *(shortened(name, 30) for name in names[:WIDE]), *more, "y", "mu", "sd", "origin"]
    rows = [
        [
            str(trial.number),
            *(coordinate(value) for value in _values(trial.x, space)[:WIDE]),
            *("..." for _ in more),
            rounded(trial.y),
            *("" if value is None else rounded(value) for value in (trial.mu, trial.sd)),
            trial.origin,
        ]
        for trial in best
    ]
    return f"<div>{html_lines(lines)}{html_table(head, rows) if rows else ''}</div>"


def listing(trials: Iterable[Trial], space: Space) -> str:
    """Return a table as text, one line for each trial: every parameter, y, and how it ended."""
    rows = [["trial", "status", "y", *names_of(space), "why"]]
    for trial in trials:
        status = trial.status if trial.feasible or trial.y is None else "infeasible"
        values = ["" if value is None else coordinate(value) for value in _values(trial.x, space)]
        y = "" if trial.y is None else rounded(trial.y)
        rows.append([str(trial.number), status, y, *values, " ".join((trial.why or "").split())])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


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
