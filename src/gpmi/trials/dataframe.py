"""The trials of a run as a table: all of them as a pandas DataFrame, the best of them for a notebook.

It knows the space but neither the optimizer nor the run, so that both may use it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from gpmi._support.checks import shown
from gpmi._support.text import Line, aligned, coordinate, html_lines, html_table, rounded, shortened
from gpmi._support.types import Point
from gpmi.space import Space
from gpmi.trials import Trial

if TYPE_CHECKING:
    from pandas import DataFrame

NUMBERS = ("mu", "sd", "phi", "gamma_hat")  # what was said of a trial when it was chosen,
OUTCOMES = ("surprise", "information")  # and what became of it
KNOWN = ("noise_var", "repeats", "y_before", "constraints", "why")  # what was said of the value itself, or of a failure
COLUMNS = ("y", "status", "origin", *NUMBERS, "explored", *OUTCOMES, "asked", "ended", *KNOWN)  # after the parameters
SOMETIMES = ("label", "fixed")  # after these, where a trial has one

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
        """One row for each trial: its parameters, y, status, origin, what was predicted, times. Needs pandas."""
        return frame(self.all_trials(), self.space)

    def __repr__(self) -> str:
        return aligned(self.summary_lines())

    def _repr_html_(self) -> str:
        return notebook(self.summary_lines(), self.all_trials(), self.space, self.goal)


def trials_given(name: str, given: Any) -> list[Any]:
    """What a user gives as trials or observations, as a list; a Result or an Optimizer stands for its trials."""
    try:
        return list(given.all_trials() if isinstance(given, Printable) else given)
    except TypeError:
        raise TypeError(f"{name} is {shown(given)}; give a list, or the trials of a run, result.trials") from None


def frame(trials: Iterable[Trial], space: Space) -> DataFrame:
    """One row for each trial, with its number as index.

    First a column for each parameter, named as in the space; x0, x1, ... where points are arrays. A parameter with the
    name of another column gets the prefix "x.". Then COLUMNS, missing where a trial has no such value; `asked` and
    `ended` are times in UTC. Last come those of SOMETIMES that a trial has: the label of its row, what was given.
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_dataframe needs pandas: pip install pandas") from error
    trials = list(trials)

    def column(name: str) -> list[Any]:
        return [getattr(trial, name) for trial in trials]

    def floats(name: str) -> Any:
        return pandas.Series(column(name), dtype="float64")

    values = [_values(trial.x, space) for trial in trials]
    some = [name for name in SOMETIMES if any(value is not None for value in column(name))]
    columns = {name: _uniform([row[j] for row in values]) for j, name in enumerate(_titles(space, (*COLUMNS, *some)))}
    columns["y"] = floats("y")
    columns |= {name: pandas.Series(column(name), dtype="str") for name in ("status", "origin")}
    columns |= {name: floats(name) for name in NUMBERS}
    columns["explored"] = pandas.Series(column("explored"), dtype="boolean")
    columns |= {name: floats(name) for name in OUTCOMES}
    for name in ("asked", "ended"):  # seconds since the epoch; the dtype would else depend on the values
        columns[name] = pandas.to_datetime(floats(name), unit="s", utc=True).astype("datetime64[ns, UTC]")
    columns["noise_var"], columns["repeats"] = floats("noise_var"), pandas.Series(column("repeats"), dtype="int64")
    columns["y_before"] = floats("y_before")
    columns |= {name: pandas.Series(column(name), dtype="object") for name in ("constraints", "why")}
    columns |= {name: pandas.Series(column(name), dtype="object") for name in some}
    table = pandas.DataFrame(columns)
    table.index = pandas.Index(column("number"), dtype="int64", name="trial")
    return table


def notebook(lines: Sequence[Line], trials: Iterable[Trial], space: Space, goal: Literal["max", "min"]) -> str:
    """HTML with the lines and, below them, the BEST trials that have a value, best first."""
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
            *("" if said is None else rounded(said) for said in (getattr(trial, name) for name in ("mu", "sd"))),
            trial.origin,
        ]
        for trial in best
    ]
    return f"<div>{html_lines(lines)}{html_table(head, rows) if rows else ''}</div>"


def listing(trials: Iterable[Trial], space: Space) -> str:
    """A line of text for each trial below a line of titles, in columns: every parameter, y, and how it ended."""
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
    """The names of the parameters: x0, x1, ... where points are arrays."""
    return [f"x{j}" for j in range(space.dim)] if space.names is None else list(space.names)


def _titles(space: Space, others: Sequence[str]) -> list[str]:
    """The names of the parameters' columns, different from each other and from the others."""
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
    """The coordinates of a point, in the order of `names_of`; None for a parameter that is inactive."""
    return list(x.tolist()) if space.names is None else [x.get(name) for name in space.names]


def _uniform(values: list[Any]) -> Any:
    """A column of the values as they are: pandas may convert them only if they are of one plain type."""
    import pandas

    kinds = {type(value) for value in values}
    plain = len(kinds) == 1 and kinds <= {bool, int, float, str}
    return pandas.Series(values) if plain else pandas.Series(values, dtype=object)
