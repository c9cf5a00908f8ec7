"""A table of past experiments: candidates, the values measured at each, and the order in which they were done."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from gpmi._support import checks
from gpmi._support.name_hints import similar_name
from gpmi._support.types import Array, Event, Numbers
from gpmi.space import Candidates

FEWEST = 5  # different rows; below that there is nothing to save. Our choice
# Cells without a value. Case matters: "Na" is sodium, and "none" may be an option.
MISSING_CELLS = frozenset({"", "nan", "NaN", "NA", "N/A", "#N/A"})
TEXT_FILES, SHEETS = (".csv", ".tsv", ".txt"), (".xlsx", ".xls", ".ods")
SEPARATORS = ",;\t"


@dataclass(frozen=True, eq=False)
class PastExperiments:
    """The different rows of a table, with the values measured at each."""

    value: str  # the name of the column with the values
    space: Candidates  # the n different rows; the label of a row is its number
    values: tuple[Array, ...]  # of each row: one value, or several replicates
    order: Numbers  # the row of each experiment, in the order of the table
    events: tuple[Event, ...]  # what was left out, or looks like a mistake

    @property
    def truth(self) -> Array:
        """The mean of the values of each row, (n,)."""
        return np.array([float(np.mean(values)) for values in self.values])

    @staticmethod
    def of(table: Any, value: str, ignore: Sequence[str] = ()) -> PastExperiments:
        """Read a table: the path of a file, a DataFrame, or a dict of columns. All other columns are parameters."""
        columns = table_columns(table)
        y = columns.get(_existing("value", value, columns))
        assert y is not None
        left_out = _ignored(ignore, value, columns)
        parameters = {name: column for name, column in columns.items() if name != value and name not in left_out}
        if not parameters:
            raise ValueError(f"there is no column beside {value!r}; the other columns are the parameters, so keep some")
        numbers = _numbers(value, y)
        events = list[Event]()
        kept = _complete(parameters, value, numbers, events)
        parameters = {name: [column[i] for i in kept] for name, column in parameters.items()}
        _check_names(parameters, ignore, events)
        parameters = _that_vary(parameters, events)
        return _grouped(parameters, value, numbers[kept], tuple(events))


# Columns


def table_columns(table: Any) -> dict[str, list[Any]]:
    """Return the columns of a table as plain values, None where one is missing."""
    if isinstance(table, str | PathLike):
        return _read(Path(table))
    if hasattr(table, "columns") and hasattr(table, "iloc"):
        return _of_frame(table)
    if not isinstance(table, Mapping):
        remedy = "give the path of a file, a DataFrame, or a dict of columns"
        raise TypeError(f"table is {checks.shown(table)}; {remedy}")
    columns = {str(name): [_plain(cell) for cell in column] for name, column in table.items()}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns of table have {lengths} values; give the same number in each")
    return columns


def _of_frame(frame: Any) -> dict[str, list[Any]]:
    names = [str(name) for name in frame.columns]
    _check_titles(names)
    return {name: [_plain(cell) for cell in frame.iloc[:, j].tolist()] for j, name in enumerate(names)}


def _read(path: Path) -> dict[str, list[Any]]:
    """Read a file; the first line has the names of the columns."""
    suffix = path.suffix.lower()
    if suffix in TEXT_FILES:
        return _read_text(path)
    if suffix not in (*SHEETS, ".parquet"):
        endings = ", ".join((*TEXT_FILES, *SHEETS, ".parquet"))
        raise ValueError(f"table is {str(path)!r}; give a file that ends in {endings}")
    try:
        import pandas

        frame = pandas.read_parquet(path) if suffix == ".parquet" else pandas.read_excel(path)
    except ImportError as error:
        packages = {".parquet": "pandas pyarrow", ".ods": "pandas odfpy", ".xls": "pandas xlrd"}
        remedy = f"pip install {packages.get(suffix, 'pandas openpyxl')}, or save the table as CSV"
        raise ImportError(f"table is {str(path)!r}, which needs other packages: {remedy}") from error
    except OSError:
        raise
    except Exception as error:  # of whatever package reads the format
        raise ValueError(f"table is {str(path)!r}, which cannot be read ({error}); save it as CSV") from error
    return _of_frame(frame)


def _read_text(path: Path) -> dict[str, list[Any]]:
    """Read a text file with commas, semicolons or tabs between cells, and with the latter also decimal commas."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"table is {str(path)!r}, which is not UTF-8; save it as CSV in UTF-8") from None
    head = text.partition("\n")[0]
    separator = max(SEPARATORS, key=head.count)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except csv.Error as error:
        raise ValueError(f"table is {str(path)!r}, which is not CSV ({error}); fix the file") from None
    if not rows:
        raise ValueError(f"table is {str(path)!r}, which is empty; its first line has the names of the columns")
    while rows[0] and not any(row[-1].strip() for row in rows if len(row) == len(rows[0])):
        width = len(rows[0])
        rows = [row[:-1] if len(row) == width else row for row in rows]  # an empty column of a spreadsheet
    names = [name.strip() for name in rows[0]]
    _check_titles(names)
    body = [(line, cells) for line, cells in enumerate(rows[1:], start=2) if any(cell.strip() for cell in cells)]
    for line, cells in body:
        if len(cells) != len(names):
            count = f"{len(cells)} cells, but the first has {len(names)}"
            raise ValueError(f"row {line} of {str(path)!r} has {count}; fix the row, or save the table again")
    columns = {name: [cells[j].strip() for _, cells in body] for j, name in enumerate(names)}
    return {name: _of_cells(cells, decimal_comma=separator != ",") for name, cells in columns.items()}


def _check_titles(names: Sequence[str]) -> None:
    for name in names:
        if not name:
            raise ValueError("a column of the table has no name; give each one in the first line")
        if names.count(name) > 1:
            raise ValueError(f"the table has two columns {name!r}; rename one of them")


def _of_cells(cells: Sequence[str], *, decimal_comma: bool) -> list[Any]:
    """Return a column of text as numbers, if all cells are, or else as words."""
    there = [cell for cell in cells if cell not in MISSING_CELLS]
    for convert in (_number_in, lambda cell: _number_in(cell.replace(",", "."))) if decimal_comma else (_number_in,):
        if there and all(convert(cell) is not None for cell in there):
            return [None if cell in MISSING_CELLS else convert(cell) for cell in cells]
    return [None if cell in MISSING_CELLS else cell for cell in cells]


def _number_in(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def _plain(value: Any) -> Any:
    """Return a value of a table as a plain one, None if it is missing."""
    if isinstance(value, np.generic):
        value = value.item()
    missing = value is None or type(value).__name__ in ("NAType", "NaTType")
    if missing or (isinstance(value, float) and math.isnan(value)) or (isinstance(value, str) and not value.strip()):
        return None
    return value if isinstance(value, str | Real) else str(value)  # a date is a word


# Checks


def _existing(argument: str, name: Any, columns: Mapping[str, Any]) -> str:
    if isinstance(name, str) and name in columns:
        return name
    near = similar_name(name, list(columns)) if isinstance(name, str) else None
    there = f"there are {', '.join(map(repr, columns))}" if columns else "it has no columns"
    hint = f"did you mean {near!r}?" if near else there
    raise ValueError(f"{argument} is {checks.shown(name)}, but the table has no such column; {hint}")


def _ignored(ignore: Any, value: str, columns: Mapping[str, Any]) -> set[str]:
    """Return the columns to leave out: names, or patterns such as "*_smiles"."""
    if isinstance(ignore, str) or not isinstance(ignore, Sequence):
        raise TypeError(f"ignore is {checks.shown(ignore)}; give a list of columns")
    ignored = set[str]()
    for name in ignore:
        matches = {name} if name in columns else {title for title in columns if fnmatchcase(title, str(name))}
        ignored |= matches or {_existing("ignore", name, columns)}
    if value in ignored:
        raise ValueError(f"ignore has {value!r}, which is the column of the values; keep it")
    return ignored


def _numbers(name: str, column: Sequence[Any]) -> Array:
    """Return the values as numbers, nan where one is missing."""
    remedy = "give numbers, and leave a cell empty where nothing was measured"
    words = [(row, cell) for row, cell in enumerate(column, start=1) if isinstance(cell, bool | str)]
    if words:  # one word makes a column of text; name that word, not the numbers before it
        row, cell = next((pair for pair in words if _number_in(str(pair[1])) is None), words[0])
        raise ValueError(f"value is {name!r}, a column that has {checks.shown(cell)} in row {row}; {remedy}")
    for row, cell in enumerate(column, start=1):
        if cell is not None and not abs(float(cell)) <= checks.LARGEST:
            raise ValueError(f"value is {name!r}, a column that has {cell} in row {row}; {remedy}")
    return np.array([math.nan if cell is None else float(cell) for cell in column])


def _complete(parameters: Mapping[str, Sequence[Any]], value: str, numbers: Array, events: list[Event]) -> list[int]:
    """Return the experiments that have a value and all parameters, and count the others."""
    without = {name: {i for i, cell in enumerate(column) if cell is None} for name, column in parameters.items()}
    without[value] = set(np.flatnonzero(np.isnan(numbers)).tolist())
    dropped = set[int]().union(*without.values())
    if dropped:
        parts = ", ".join(f"{len(rows)} in {name}" for name, rows in without.items() if rows)
        text = f"{len(dropped)} of {len(numbers)} rows have a cell without a value and are left out ({parts})"
        events.append(Event("dropped rows", text))
    return [i for i in range(len(numbers)) if i not in dropped]


def _check_names(parameters: Mapping[str, Sequence[Any]], ignore: Sequence[str], events: list[Event]) -> None:
    """Refuse a column that names the experiments, and note one that counts them."""
    for name, column in parameters.items():
        count, words = len(column), any(not isinstance(cell, Real) for cell in column)
        if count < FEWEST or len(set(column)) < count:
            continue
        remedy = f"--ignore {_in_shell(name)} leaves it out (in Python ignore={[*ignore, name]!r})"
        if words:
            what = f"column {name!r} has {count} different words in {count} rows"
            raise ValueError(f"{what}, so it names them and a model learns nothing from it; {remedy}")
        if math.isfinite(column[0]) and all(
            cell == first for cell, first in zip(column, range(int(column[0]), int(column[0]) + count), strict=True)
        ):
            events.append(Event("counted rows", f"column {name!r} counts the rows; if it is no parameter, {remedy}"))


def _in_shell(name: str) -> str:
    from shlex import quote

    return quote(name)


def _that_vary(parameters: dict[str, list[Any]], events: list[Event]) -> dict[str, list[Any]]:
    """Leave out columns with one value, and columns of words that only rename an earlier one."""
    varying, codes = dict[str, list[Any]](), dict[tuple[int, ...], str]()
    for name, column in parameters.items():
        position: dict[Any, int] = {}
        code = tuple(position.setdefault(cell, len(position)) for cell in column)
        if len(position) == 1:
            events.append(Event("same everywhere", f"column {name!r} has one value in all rows and is left out"))
        elif code in codes and all(isinstance(cell, str) for cell in column):
            text = f"column {name!r} tells the same as {codes[code]!r} in other words and is left out"
            events.append(Event("same column", text))
        else:
            varying[name] = column
            if all(isinstance(cell, str) for cell in column):
                codes[code] = name
    return varying


def _grouped(parameters: Mapping[str, list[Any]], value: str, y: Array, events: tuple[Event, ...]) -> PastExperiments:
    """Group equal rows; their values are replicates."""
    position: dict[tuple[Any, ...], int] = {}
    rows = list(zip(*parameters.values(), strict=True))
    order = np.array([position.setdefault(row, len(position)) for row in rows], dtype=np.intp)
    if len(position) < FEWEST:
        what = f"the table has {len(position)} different rows with a value"
        raise ValueError(f"{what}, too few to compare orders; give at least {FEWEST}")
    if np.all(y == y[0]):
        raise ValueError(f"value is {value!r}, a column that is {y[0]:g} in all rows; give one that varies")
    distinct = {name: [row[j] for row in position] for j, name in enumerate(parameters)}
    ends = np.cumsum(np.bincount(order))[:-1]
    values = tuple(np.split(y[np.argsort(order, kind="stable")], ends))
    repeats = len(order) - len(position)
    if repeats:
        text = f"{repeats} of {len(order)} rows repeat an earlier one; the truth of a row is the mean of its values"
        events = (*events, Event("replicates", text))
    experiments = PastExperiments(value, Candidates.from_columns(distinct), values, order, events)
    if np.ptp(experiments.truth) == 0.0:
        raise ValueError(f"value is {value!r}, whose mean is the same in all different rows; give one that varies")
    return experiments
