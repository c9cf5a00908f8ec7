"""Trials to and from tables: CSV, JSON Lines, Parquet and pandas. Both ways, to the last digit.

A table has a row for each trial: its number, a column for each parameter (x0, x1, ... where points are arrays), and the
other fields of `Trial`. A parameter with the name of a field gets the prefix "x.". A table from another source needs
only the parameters and y: its values count as told without being asked.

In a text file a cell is JSON, or else plain text: relu, 0.1, true, "1" for the text 1. An empty cell has no value.
In a CSV file a text that a spreadsheet would execute as a formula is JSON, too: "=1+1" with its quotation marks.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gpmi._support import checks
from gpmi._support.types import Point
from gpmi.space import Choice, Parameters, Space
from gpmi.trials import Trial
from gpmi.trials.dataframe import Printable, names_of
from gpmi.trials.trial import ABOUT_OUTPUTS, checked_trials, fields_of_type

if TYPE_CHECKING:
    from pandas import DataFrame

FIELDS = tuple(field.name for field in fields(Trial) if field.name not in ("number", "x", *ABOUT_OUTPUTS))
WHOLE = fields_of_type("int")
FLAGS = fields_of_type("bool")
TEXTS = fields_of_type("Status", "Origin", "str")
NUMBERS = fields_of_type("float")
FORMER_NOTES = ("charge", "zeta")  # columns of earlier versions, which policy_notes has now
SUFFIXES = (".csv", ".jsonl", ".parquet")
# Texts that spreadsheets may take for formulas. In some languages a semicolon begins a new cell.
_FORMULA = re.compile(r"(?:^|;)\s*[-=+@＝＋－＠]")


# Files


def write_trials(run: Printable, path: str | Path) -> None:
    """Write the trials of a Result or an Optimizer to a .csv, .jsonl or .parquet file.

    The file is written completely or not at all. Options of a Choice must be texts, numbers, True, False or None.
    """
    path = _checked_path(path)
    if path.suffix == ".parquet":
        rows = [row_of(trial, run.space) for trial in run.all_trials()]
        _replace(path, _frame(rows, run.space, texts=True).to_parquet)
    else:
        text = text_of(run, ".csv" if path.suffix == ".csv" else ".jsonl")
        _replace(path, lambda file: Path(file).write_text(text, encoding="utf-8", newline=""))


def text_of(run: Printable, suffix: Literal[".csv", ".jsonl"]) -> str:
    """Return the text that `write_trials` writes to a file with this suffix."""
    rows = [row_of(trial, run.space) for trial in run.all_trials()]
    head = ["number", *titles_of(run.space), *FIELDS]
    if suffix == ".csv":
        return _csv(head, rows)
    present = [{name: row[name] for name in head if row[name] is not None or name not in FIELDS} for row in rows]
    return "".join(json.dumps(row) + "\n" for row in present)


def read_trials(path: str | Path, space: Any) -> tuple[Trial, ...]:
    """Read the trials of a file that `write_trials` or another program wrote, with points of this space.

    They are for `Optimizer.replay`, `Optimizer.tell_all` or `maximize(earlier=...)`.
    """
    path, space = _checked_path(path), Space.of(space)
    if path.suffix == ".parquet":
        pandas = _pandas("Parquet")
        return _from_frame(pandas.read_parquet(path), space, str(path), texts=True)
    with path.open(encoding="utf-8", newline="") as file:
        if path.suffix == ".jsonl":
            return _trials(_json_lines(file, path), space, str(path))
        reader = csv.DictReader(file, strict=True)
        rows = [
            (reader.line_num, {name: _of_cell(text) for name, text in row.items()}, row) for row in _rows(reader, space)
        ]
    return _trials([(line, _as_text(row, cells, space)) for line, row, cells in rows], space, str(path))


def to_frame(run: Printable) -> DataFrame:
    """Return the trials as a pandas DataFrame with all fields as they are; times are seconds since 1970."""
    return _frame([row_of(trial, run.space) for trial in run.all_trials()], run.space, texts=False)


def from_frame(table: DataFrame, space: Any) -> tuple[Trial, ...]:
    """Read the trials of a DataFrame: from `to_frame`, from `Result.to_dataframe`, or from another source.

    In the second, no parameter may have the name of a field of `Trial`, or `label` where candidates have labels.
    """
    return _from_frame(table, Space.of(space), "the table", texts=False)


def check_target(path: str | Path) -> None:
    """Refuse a path that trials cannot be written to, before a run spends time on them."""
    found = _checked_path(path)
    if found.suffix == ".parquet":
        _pandas("Parquet")
    checks.writable_folder("path", found, found.parent)


def _checked_path(path: str | Path) -> Path:
    found = Path(path)
    if found.suffix not in SUFFIXES:
        raise ValueError(f"path is {str(path)!r}; give a file that ends in {', '.join(SUFFIXES)}")
    return found


def _replace(path: Path, write: Callable[[str], Any]) -> None:
    """Write a temporary file in the same folder, and rename it when it is complete."""
    number, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(number)
    try:
        write(draft)
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise


# Rows


def titles_of(space: Space) -> dict[str, str]:
    """Return the column of each parameter with the name of the parameter."""
    taken = {"number", *FIELDS}
    return {f"x.{name}" if name in taken or name.startswith("x.") else name: name for name in names_of(space)}


def row_of(trial: Trial, space: Space) -> dict[str, Any]:
    """Return a trial as a row of plain values, by column."""
    x = dict(zip(names_of(space), trial.x.tolist(), strict=True)) if space.names is None else trial.x
    row: dict[str, Any] = {"number": trial.number}
    for title, name in titles_of(space).items():
        row[title] = value = x.get(name)
        if not (value is None or isinstance(value, str | int | float)):
            remedy = "a file holds strings, numbers, True, False and None; give such options"
            raise TypeError(f"{name} is {checks.shown(value)} in trial {trial.number}; {remedy}")
    row |= {name: getattr(trial, name) for name in FIELDS}
    row["constraints"] = list(trial.constraints) or None
    for name in ("fixed", "policy_notes"):
        row[name] = None if row[name] is None else dict(row[name])
    return row


def _trials(rows: Iterable[tuple[int, Mapping[str, Any]]], space: Space, source: str) -> tuple[Trial, ...]:
    """Return the trials of rows, which come with their line numbers."""
    found = list[Trial]()
    for line, row in rows:
        try:
            found.append(trial_of(row, space, len(found)))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{source}:{line}: {error}") from error
    return tuple(found)


def trial_of(row: Mapping[str, Any], space: Space, place: int) -> Trial:
    """Return the trial of a row; its number is `place` unless the row has one."""
    titles = titles_of(space)
    for title in row:
        if title not in titles and title != "number" and title not in (*FIELDS, *FORMER_NOTES):
            known = ", ".join([*titles, "y"])
            raise ValueError(f"there is a column {checks.shown(title)}, which is not a parameter; give {known}")
    missing = [title for title in titles if title not in row]
    if missing and isinstance(space, Parameters) and all(p.when is None for p in space.parameters):
        raise ValueError(f"there is no column {missing[0]!r}; give one for each parameter")
    given = {name: value for name in FIELDS if (value := row.get(name)) is not None}
    notes = {name: value for name in FORMER_NOTES if name not in titles and (value := row.get(name)) is not None}
    given |= {"policy_notes": notes} if notes else {}
    if space.names is None and isinstance(
        given.get("fixed"), Mapping
    ):  # JSON turns the numbers of coordinates into texts
        given["fixed"] = {int(key) if str(key).isdecimal() else key: value for key, value in given["fixed"].items()}
    y = given.pop("y", None)
    given = {"status": "pending" if y is None else "told", "origin": "user", **given}
    number = row.get("number")
    values = {name: row.get(title) for title, name in titles.items()}
    trial = Trial(place if number is None else number, _point(values, space), y, **given)
    return checked_trials([trial], None)[0]


def _point(values: Mapping[str, Any], space: Space) -> Point:
    """Return a point of the space; a parameter without a value is inactive."""
    if space.names is None:
        point: Any = list(values.values())
    else:
        options = [_options(space, j) for j in range(len(space.names))]
        none = [choice is not None and choice.find(None) is not None for choice in options]
        there = zip(values.items(), none, strict=True)
        point = {name: value for (name, value), is_option in there if value is not None or is_option}
    space.encode(point)  # refuses anything that is not a point of the space
    return space.freeze(space.canonical(point))


def _options(space: Space, j: int) -> Choice | None:
    """Return the options of parameter j; None if it has none."""
    found = space.parameters[j] if isinstance(space, Parameters) else space.choices[j]  # type: ignore[attr-defined]
    return found if isinstance(found, Choice) else None


# Texts


def _cell(value: Any) -> str:
    """Return a value as a cell of a text file."""
    if value is None:
        return ""
    if isinstance(value, str):
        plain = value.isprintable() and value == value.strip() and not _FORMULA.search(value)
        return value if plain and _of_cell(value) == value else _quoted(value)
    return _quoted(value)


def _quoted(value: Any) -> str:
    """Return JSON that no spreadsheet splits at a semicolon."""
    return json.dumps(value).replace(";", "\\u003b")


def _of_cell(text: str | None) -> Any:
    """Return the value of a cell: JSON, or else its text."""
    if not text:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _title(name: str) -> str:
    """Return the name of a column for a CSV file, in quotation marks where a spreadsheet might execute it."""
    return _quoted(name) if name.startswith('"') or _FORMULA.search(name) else name


def _of_title(text: str, space: Space) -> str:
    """Return the name of a column from its title in a CSV file."""
    name = _of_cell(text) if text.startswith('"') and text not in titles_of(space) else text
    return name if isinstance(name, str) else text


def _csv(head: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_title(name) for name in head])
    writer.writerows([_cell(row[name]) for name in head] for row in rows)
    return text.getvalue()


def _rows(reader: csv.DictReader[str], space: Space) -> Iterable[dict[str, str | None]]:
    """Yield the rows of a CSV file, each with as many cells as the head."""
    try:
        reader.fieldnames = [_of_title(name, space) for name in reader.fieldnames or ()]
        for row in reader:
            if None in row or None in row.values():
                raise ValueError(f"line {reader.line_num} has more or fewer cells than the first; fix the file")
            yield dict(row)
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num} is not CSV ({error}); fix the file") from None


def _as_text(row: dict[str, Any], cells: Mapping[str, str | None], space: Space) -> dict[str, Any]:
    """Return the row with the text of a cell where that is an option, or its column is one of texts."""
    for j, title in enumerate(titles_of(space)):
        options = _options(space, j)
        if title in row and options is not None and options.find(row[title]) is None:
            row[title] = cells[title] if options.find(cells[title]) is not None else row[title]
    for title in TEXTS:
        if title in row and row[title] is not None and not isinstance(row[title], str):
            row[title] = cells[title]
    return row


def _json_lines(file: Iterable[str], path: Path) -> Iterable[tuple[int, Mapping[str, Any]]]:
    for line, text in enumerate(file, start=1):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except (ValueError, RecursionError):
            raise ValueError(f"{path}:{line}: it is not JSON; was the file cut off? Fix or remove the line") from None
        if not isinstance(row, dict):
            raise ValueError(f"{path}:{line}: it is {checks.shown(row)}; give a JSON object for each trial")
        yield line, row


# pandas


def _pandas(what: str) -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError(f"{what} needs pandas, and Parquet pyarrow: pip install pandas pyarrow") from error
    return pandas


def _frame(rows: Sequence[Mapping[str, Any]], space: Space, *, texts: bool) -> Any:
    """Return a DataFrame; with `texts`, for Parquet, columns other than numbers become cells of text."""
    pandas = _pandas("a DataFrame" if not texts else "Parquet")
    titles, columns = titles_of(space), dict[str, Any]()
    for name in ("number", *titles, *FIELDS):
        values = [row[name] for row in rows]
        if name in WHOLE:
            columns[name] = pandas.Series(values, dtype="Int64")
        elif name in FLAGS:
            columns[name] = pandas.Series(values, dtype="boolean")
        elif name in NUMBERS and name not in titles:
            columns[name] = pandas.Series(values, dtype="float64")
        elif {type(value) for value in values} in ({float}, {int}):
            columns[name] = pandas.Series(values)
        else:
            cells = [None if value is None else _cell(value) for value in values] if texts else values
            columns[name] = pandas.Series(cells, dtype=object)
    return pandas.DataFrame(columns)


def _from_frame(table: Any, space: Space, source: str, *, texts: bool) -> tuple[Trial, ...]:
    if table.index.name == "trial" and "number" not in table.columns:  # of `to_dataframe`
        table = table.rename_axis("number").reset_index()
        if "label" in table.columns and "label" not in titles_of(space):  # the point has it
            table = table.drop(columns="label")
    rows = []
    for place, values in enumerate(table.itertuples(index=False, name=None)):
        given = {str(name): _native(value) for name, value in zip(table.columns, values, strict=True)}
        if texts:
            read = {name: _of_cell(v) if isinstance(v, str) else v for name, v in given.items()}
            cells = {name: v if isinstance(v, str) else None for name, v in given.items()}
            given = _as_text(read, cells, space)
        rows.append((place, given))
    return _trials(rows, space, source)


def _native(value: Any) -> Any:
    """Return a value of a DataFrame as a plain one: None if it is missing, seconds since 1970 for a time."""
    if isinstance(value, list | tuple | str) or value is None:
        return value
    if hasattr(value, "tolist"):
        value = value.tolist()
    if type(value).__name__ in ("NAType", "NaTType") or value != value:
        return None
    return value.timestamp() if hasattr(value, "timestamp") else value
