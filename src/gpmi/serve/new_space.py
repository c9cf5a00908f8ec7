"""The space of a new study, from parameters that were filled in or a table of candidates that was uploaded."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpmi._support.text import VALUE, shortened
from gpmi.serve.numbers import Cell, cell, number
from gpmi.space import Candidates, Choice, Int, Real

MOST = 100  # parameters or columns, at most; our choice
MOST_ROWS = 100_000  # candidates, at most: each query looks at all of them. Our choice
GOALS = (("max", "the largest result"), ("min", "the smallest result"))
AIMS = (("find", "find the best point; only the end counts"), ("earn", "every experiment should be good"))


@dataclass(frozen=True)
class Uploaded:
    """A table of candidates, as it was read."""

    columns: dict[str, list[Any]]
    rows: list[int]  # where each candidate is, as a spreadsheet counts: the names are in row 1
    notes: list[str]


# What was filled in


def options_of(said: Mapping[str, str]) -> dict[str, Any]:
    """Goal, aim and budget of a new study."""
    if said.get("goal") not in dict(GOALS) or said.get("aim") not in dict(AIMS):
        raise ValueError("what is looked for, or what counts, is missing; choose one of the list")
    options: dict[str, Any] = {"goal": said["goal"], "aim": said["aim"]}
    if said.get("budget", "").strip():
        value, _ = number(said["budget"])
        if value != round(value) or not 1 <= value <= 10**6:
            raise ValueError(
                f"the number of experiments is {said['budget'].strip()}; give a whole number, or leave it out"
            )
        options["budget"] = int(value)
    return options


def space_of(said: Mapping[str, str]) -> dict[str, Any]:
    """The parameters of the form; a ValueError names the one that cannot be used."""
    space: dict[str, Any] = {}
    rows = sorted(int(key[5:]) for key in said if re.fullmatch(r"name-\d{1,3}", key))
    for i in rows[:MOST]:
        name = said[f"name-{i}"].strip()
        filled = any(said.get(f"{key}-{i}", "").strip() for key in ("lo", "hi", "options"))
        if not name:
            if filled:
                raise ValueError(f"parameter {i + 1} has no name; give it one, or empty its row")
            continue
        if name in space:
            raise ValueError(f"there are two parameters {shortened(name, VALUE)!r}; names must differ")
        try:
            space[name] = _one(said, i)
        except (ValueError, TypeError) as error:
            raise ValueError(f"parameter {shortened(name, VALUE)!r}: {error}") from None
    if not space:
        raise ValueError("there is no parameter; give at least one with a name")
    return space


def _one(said: Mapping[str, str], i: int) -> Any:
    kind, unit = said.get(f"kind-{i}", "number"), said.get(f"unit-{i}", "").strip()
    if kind == "choice":
        words = [word.strip() for word in re.split(r"[,;\n]", said.get(f"options-{i}", "")) if word.strip()]
        if len(words) < 2:
            raise ValueError("give at least two options, with commas between them")
        return Choice(tuple(words))
    ends = []
    for end, title in (("lo", "from"), ("hi", "to")):
        typed = said.get(f"{end}-{i}", "").strip()
        if not typed:
            raise ValueError(f"“{title}” is empty; give the smallest and the largest value")
        ends.append(number(typed)[0])
    log = said.get(f"log-{i}") == "on"
    if kind == "whole":
        if any(end != round(end) for end in ends):
            raise ValueError("give whole numbers, or choose the kind “number”")
        return Int(int(ends[0]), int(ends[1]), log, unit=unit)
    return Real(ends[0], ends[1], log, unit=unit)


# What was uploaded


def read_table(raw: bytes) -> Uploaded:
    """The columns of a CSV file: numbers where all cells are, words elsewhere; a ValueError names the line."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    if "\0" in text:
        raise ValueError("the file is no text; save the table as CSV")
    first = text.partition("\n")[0]
    comma = max(",;\t", key=first.count)
    try:
        lines = enumerate(csv.reader(io.StringIO(text), delimiter=comma), 1)
        filled = {i: row for i, row in lines if any(cell.strip() for cell in row)}
    except csv.Error as error:
        raise ValueError(f"the file cannot be read as a table: {error}") from None
    at, rows = list(filled), list(filled.values())
    if len(rows) < 3:
        raise ValueError("the table has fewer than two rows below its names; give at least two candidates")
    names = [name.strip() for name in rows[0]]
    if len(names) > MOST or len(rows) - 1 > MOST_ROWS:
        raise ValueError(
            f"the table has {len(names)} columns and {len(rows) - 1} rows; {MOST} and {MOST_ROWS:,} may be"
        )
    for name in names:
        if not name or names.count(name) > 1:
            raise ValueError(f"a column is called {name!r}, once or several times; give each a name of its own")
    for i, row in zip(at[1:], rows[1:], strict=True):
        if len(row) != len(names):
            raise ValueError(f"row {i} has {len(row)} cells, but there are {len(names)} columns; mend the file")
    notes: list[str] = []
    columns = {
        name: _column(name, [row[j].strip() for row in rows[1:]], decimal_comma=comma != ",", notes=notes)
        for j, name in enumerate(names)
    }
    return Uploaded(columns, at[1:], notes)


def _column(name: str, cells: list[str], *, decimal_comma: bool, notes: list[str]) -> list[Any]:
    filled = [one for one in cells if one]
    try:
        if not decimal_comma and any("," in one for one in filled):
            raise ValueError
        read = {one: number(one) for one in dict.fromkeys(filled)}
    except ValueError:
        return list(cells)
    if not filled:
        raise ValueError(f"the column {shortened(name, VALUE)!r} is empty; leave it out of the file")
    if any(note for _, note in read.values()):
        notes.append(
            f"In {shortened(name, VALUE)} numbers were read like this: {next(n for _, n in read.values() if n)}."
        )
    whole = all(
        value == round(value) and abs(value) < 2**53 and re.fullmatch(r"[+-]?\d+", one)
        for one, (value, _) in read.items()
    )
    return [None if not one else int(read[one][0]) if whole else read[one][0] for one in cells]


def candidates_of(table: Uploaded, said: Mapping[str, str]) -> tuple[Candidates, list[tuple[dict[str, Any], Cell]]]:
    """The candidates of a table, by what is to be done with each column, and results that are known already."""
    uses = {name: said.get(f"use-{i}", "use") for i, name in enumerate(table.columns)}
    varied = {name: table.columns[name] for name, use in uses.items() if use == "use"}
    labels = [name for name, use in uses.items() if use == "label"]
    results = [name for name, use in uses.items() if use == "result"]
    if not varied:
        raise ValueError("no column is varied; choose “vary it” for at least one")
    if len(labels) > 1 or len(results) > 1:
        raise ValueError("only one column can name the rows, and only one can hold results; leave out the others")
    for name, values in varied.items():
        for row, value in zip(table.rows, values, strict=True):
            if value is None or value == "":
                raise ValueError(
                    f"{shortened(name, VALUE)!r} is empty in row {row} of the file; fill it in, or leave it out"
                )
    space = Candidates.from_columns(varied, table.columns[labels[0]] if labels else table.rows)
    known: list[tuple[dict[str, Any], Cell]] = []
    for i, value in enumerate(table.columns[results[0]] if results else ()):
        read = cell(value or "") if value is None or isinstance(value, str) else Cell(float(value))
        if not read.empty:
            known.append(({name: values[i] for name, values in varied.items()}, read))
    return space, known
