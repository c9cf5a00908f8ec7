"""Trials to and from tables: CSV, JSON Lines, Parquet and pandas. Both ways, to the last digit.

A table has a row for each trial: its number, a column for each parameter (x0, x1, ... where points are arrays), and the
other fields of `Trial`. A parameter with the name of a field gets the prefix "x.". In a run with goals the columns of
the outputs follow those of the parameters (`OutputColumns`). A table from another source needs only the parameters and
y, or outputs: its values count as told without being asked.

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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from gpmi._support import checks
from gpmi._support.folders import writable_folder
from gpmi._support.refusals import RefusedValue
from gpmi._support.types import Point
from gpmi.space import Choice, Parameters, Space, frozen
from gpmi.trials.dataframe import OutputColumns, Printable, names_of, output_series
from gpmi.trials.goals import Goals
from gpmi.trials.named_goals import given_goals
from gpmi.trials.outcomes import OUTPUTS, Outcome
from gpmi.trials.outputs import Outputs
from gpmi.trials.replay import checked_trials
from gpmi.trials.trial import ABOUT_FIDELITY, ABOUT_OUTPUTS, Status, Trial, fields_of_type
from gpmi.trials.value_goal import MAXIMISE

if TYPE_CHECKING:
    from pandas import DataFrame

FIELDS = tuple(
    field.name for field in fields(Trial) if field.name not in ("number", "x", *ABOUT_OUTPUTS, *ABOUT_FIDELITY)
)
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
        _replace(path, _frame(run, texts=True).to_parquet)
    else:
        text = text_of(run, ".csv" if path.suffix == ".csv" else ".jsonl")
        _replace(path, lambda file: Path(file).write_text(text, encoding="utf-8", newline=""))


def text_of(run: Printable, suffix: Literal[".csv", ".jsonl"]) -> str:
    """Return the text that `write_trials` writes to a file with this suffix."""
    head, rows = _table(run)
    if suffix == ".csv":
        return _csv(head, rows)
    always = ("number", *titles_of(run.space))
    present = [{name: row.get(name) for name in head if row.get(name) is not None or name in always} for row in rows]
    return "".join(json.dumps(row) + "\n" for row in present)


def read_trials(path: str | Path, space: Any, goals: Mapping[str, Any] | None = None) -> tuple[Trial, ...]:
    """Read the trials of a file that `write_trials` or another program wrote, with points of this space.

    They are for `Optimizer.replay`, `Optimizer.tell_all` or `maximize(earlier=...)`. For a run with goals give its
    `goals`: they say which columns are outputs and which limits hold.
    """
    path, space, outputs = _checked_path(path), Space.of(space), given_goals(goals)
    if path.suffix == ".parquet":
        pandas = _pandas("Parquet")
        return _from_frame(pandas.read_parquet(path), space, outputs, str(path), texts=True)
    with path.open(encoding="utf-8", newline="") as file:
        if path.suffix == ".jsonl":
            return _trials(_json_lines(file, path), space, outputs, str(path))
        reader = csv.DictReader(file, strict=True)
        titles = {*titles_of(space), *output_columns(outputs, space)}
        rows = [
            (reader.line_num, {name: _of_cell(text) for name, text in row.items()}, row)
            for row in _rows(reader, titles)
        ]
    return _trials([(line, _as_text(row, cells, space)) for line, row, cells in rows], space, outputs, str(path))


def to_frame(run: Printable) -> DataFrame:
    """Return the trials as a pandas DataFrame with all fields as they are; times are seconds since 1970."""
    return _frame(run, texts=False)


def from_frame(table: DataFrame, space: Any, goals: Mapping[str, Any] | None = None) -> tuple[Trial, ...]:
    """Read the trials of a DataFrame: from `to_frame`, from `Result.to_dataframe`, or from another source.

    In the second, no parameter may have the name of a field of `Trial`, or `label` where candidates have labels. A run
    with goals needs its `goals`, as for `read_trials`.
    """
    return _from_frame(table, Space.of(space), given_goals(goals), "the table", texts=False)


def check_target(path: str | Path) -> None:
    """Refuse a path that trials cannot be written to, before a run spends time on them."""
    target = _checked_path(path)
    if target.suffix == ".parquet":
        _pandas("Parquet")
    writable_folder("path", target, target.parent)


def _checked_path(path: str | Path) -> Path:
    file = Path(path)
    if file.suffix not in SUFFIXES:
        raise ValueError(f"path is {str(path)!r}; give a file that ends in {', '.join(SUFFIXES)}")
    return file


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


def fields_in(space: Space) -> tuple[str, ...]:
    """Return the fields of `Trial` that have a column: `trust` and `curve` only where there is a fidelity."""
    return FIELDS if space.fidelity is None else (*FIELDS, *ABOUT_FIDELITY)


def output_columns(goals: Goals, space: Space) -> OutputColumns:
    """Return the columns of the outputs beside those of a space."""
    return OutputColumns.of(goals, titles_of(space), fidelity=space.fidelity is not None)


def titles_of(space: Space) -> dict[str, str]:
    """Return the column of each parameter with the name of the parameter."""
    taken = {"number", *fields_in(space)}
    return {f"x.{name}" if name in taken or name.startswith("x.") else name: name for name in names_of(space)}


def _table(run: Printable) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the columns of a run's table, and its rows. Some columns of outputs may be missing in a row."""
    goals, titles = run.goals, titles_of(run.space)
    rows = [row_of(trial, run.space, goals) for trial in run.all_trials()]
    return ["number", *titles, *output_columns(goals, run.space).used(rows), *fields_in(run.space)], rows


def row_of(trial: Trial, space: Space, goals: Goals = MAXIMISE) -> dict[str, Any]:
    """Return a trial as a row of plain values, by column."""
    x = dict(zip(names_of(space), trial.x.tolist(), strict=True)) if space.names is None else trial.x
    row: dict[str, Any] = {"number": trial.number}
    for title, name in titles_of(space).items():
        row[title] = value = x.get(name)
        if not (value is None or isinstance(value, str | int | float)):
            remedy = "a file holds strings, numbers, True, False and None; give such options"
            raise TypeError(f"{name} is {checks.shown(value)} in trial {trial.number}; {remedy}")
    row |= output_columns(goals, space).row(trial)
    row |= {name: getattr(trial, name) for name in fields_in(space)}
    row["constraints"] = list(trial.constraints) or None
    if "curve" in fields_in(space):
        row["curve"] = [
            [step, dict(y) if isinstance(y, Mapping) else y, order] for step, y, order in trial.curve
        ] or None
    for name in ("fixed", "policy_notes", "doubts"):
        row[name] = None if row[name] is None else dict(row[name])
    return row


def _trials(
    rows: Iterable[tuple[int, Mapping[str, Any]]], space: Space, goals: Goals, source: str
) -> tuple[Trial, ...]:
    """Return the trials of rows, which come with their line numbers."""
    trials = list[Trial]()
    for line, row in rows:
        try:
            trials.append(trial_of(row, space, len(trials), goals))
        except (TypeError, ValueError) as error:
            raise RefusedValue(f"{source}:{line}: {error}").like(error, line=line) from error
    return tuple(trials)


def trial_of(row: Mapping[str, Any], space: Space, place: int, goals: Goals = MAXIMISE) -> Trial:
    """Return the trial of a row; its number is `place` unless the row has one."""
    titles = titles_of(space)
    outputs = output_columns(goals, space)
    for title in row:
        if title not in titles and title != "number" and title not in (*fields_in(space), *FORMER_NOTES, *outputs):
            allowed = ", ".join([*titles, *(outputs.values.values() or ["y"])])
            what = "is neither a parameter nor an output" if goals.named else "is not a parameter"
            raise ValueError(f"there is a column {checks.shown(title)}, which {what}; give {allowed}")
    missing = [title for title in titles if title not in row]
    if missing and isinstance(space, Parameters) and all(p.when is None for p in space.parameters):
        raise ValueError(f"there is no column {missing[0]!r}; give one for each parameter")
    given = {name: value for name in fields_in(space) if (value := row.get(name)) is not None}
    notes = {name: value for name in FORMER_NOTES if name not in titles and (value := row.get(name)) is not None}
    given |= {"policy_notes": notes} if notes else {}
    if space.names is None and isinstance(
        given.get("fixed"), Mapping
    ):  # JSON turns the numbers of coordinates into texts
        given["fixed"] = {int(key) if str(key).isdecimal() else key: value for key, value in given["fixed"].items()}
    if outputs.values:
        given |= _output_fields(row, given, outputs, goals)
    y = given.pop("y", None)
    given = {"status": "pending" if y is None else "told", "origin": "user", **given}
    number = row.get("number")
    values = {name: row.get(title) for title, name in titles.items()}
    trial = Trial(place if number is None else number, _point(values, space), y, **given)
    return checked_trials([trial], None)[0]


def _output_fields(
    row: Mapping[str, Any], given: Mapping[str, Any], columns: OutputColumns, goals: Goals
) -> dict[str, Any]:
    """Return the fields of a trial that follow from its outputs. Where there is a single objective, y may stand for it.

    `given` has the fields of the row that are not about outputs.
    """
    given_outputs, single, y = columns.fields(row), goals.single, given.get("y")
    outputs = given_outputs["outputs"]
    wanted = ", ".join(columns.values.values())
    if given.get("constraints"):
        raise ValueError(f"constraints is {checks.shown(given['constraints'])}, but there are goals; give {wanted}")
    if single is not None and y is not None:
        if outputs.setdefault(single, y) != y:
            title = columns.values[single]
            raise ValueError(f"y is {checks.shown(y)}, but {title} is {checks.shown(outputs[single])}; leave out y")
    elif y is not None:
        raise ValueError(f"y is {checks.shown(y)}, but there are several objectives; give {wanted}")
    status = given.get("status", "told" if outputs else "pending")
    first = Outputs(given_outputs["outputs_before"]) if given_outputs["outputs_before"] else None
    if status != "told":
        if outputs and status in get_args(Status):
            raise ValueError(f"status is {checks.shown(status)}, but {next(iter(outputs))} has a value; remove one")
        about = {
            name: Outputs(given_outputs[name]) for name in OUTPUTS if given_outputs[name]
        }  # a retracted trial has error bars
        return {"status": status, "outputs_before": first, **about}
    for name, usual in (("noise_var", 0.0), ("repeats", 1)):
        if single in outputs:  # the fields of y are those of its output
            given_outputs[f"output_{name}"].setdefault(single, given.get(name, usual))
        elif given.get(name, usual) != usual:
            titles = ", ".join(columns.details[f"output_{name}", output] for output in goals)
            raise ValueError(f"{name} is {checks.shown(given[name])}, but it belongs to y; give {titles}")
    if not outputs:
        raise ValueError(f"status is 'told', but no output has a value; give at least one of {wanted}")
    measured: Any = {name: Outputs(given_outputs[name]) for name in OUTPUTS}
    outcome = Outcome("told", **measured).checked()
    about = {name: getattr(outcome, name) for name in OUTPUTS}
    return {"status": status, "outputs_before": first, **about, **goals.derived(outcome)}


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
    return frozen(space.canonical(point))


def _options(space: Space, j: int) -> Choice | None:
    """Return the options of parameter j; None if it has none."""
    return space.parameters[j].choice if isinstance(space, Parameters) else space.choices[j]  # type: ignore[attr-defined]


# Texts


def _cell(value: Any) -> str:
    """Return a value as a cell of a text file."""
    if value is None:
        return ""
    if isinstance(value, str):
        plain = value.isprintable() and value == value.strip() and not _FORMULA.search(value)
        return value if plain and _of_cell(value) == value else _quoted(value)
    return _quoted(value)


def guarded_cell(value: Any) -> str:
    """Return a value as a cell of a table for people: a text that a spreadsheet might execute is in quotation marks."""
    text = value if isinstance(value, str) else str(value) if isinstance(value, bool | int | float) else _quoted(value)
    return _quoted(text) if isinstance(value, str) and (_FORMULA.search(text) or not text.isprintable()) else text


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


def _of_title(text: str, titles: Collection[str]) -> str:
    """Return the name of a column from its title in a CSV file."""
    name = _of_cell(text) if text.startswith('"') and text not in titles else text
    return name if isinstance(name, str) else text


def _csv(head: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_title(name) for name in head])
    writer.writerows([_cell(row.get(name)) for name in head] for row in rows)
    return text.getvalue()


def _rows(reader: csv.DictReader[str], titles: Collection[str]) -> Iterable[dict[str, str | None]]:
    """Yield the rows of a CSV file, each with as many cells as the head."""
    try:
        reader.fieldnames = [_of_title(name, titles) for name in reader.fieldnames or ()]
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


def _frame(run: Printable, *, texts: bool) -> Any:
    """Return a DataFrame; with `texts`, for Parquet, columns other than numbers become cells of text."""
    pandas = _pandas("a DataFrame" if not texts else "Parquet")
    titles, columns = titles_of(run.space), dict[str, Any]()
    outputs = output_columns(run.goals, run.space)
    head, rows = _table(run)
    about_outputs = output_series(outputs, rows)
    for name in head:
        values = [row.get(name) for row in rows]
        if name in about_outputs and name != outputs.unmet:
            columns[name] = about_outputs[name]
        elif name in WHOLE:
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


def _from_frame(table: Any, space: Space, goals: Goals, source: str, *, texts: bool) -> tuple[Trial, ...]:
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
    return _trials(rows, space, goals, source)


def _native(value: Any) -> Any:
    """Return a value of a DataFrame as a plain one: None if it is missing, seconds since 1970 for a time."""
    if isinstance(value, list | tuple | str) or value is None:
        return value
    if hasattr(value, "tolist"):
        value = value.tolist()
    if type(value).__name__ in ("NAType", "NaTType") or value != value:
        return None
    return value.timestamp() if hasattr(value, "timestamp") else value
