"""New studies: the pages that describe one, and the space and the goals read from them.

A study starts from parameters that are filled in, or from a table of candidates that is uploaded.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse

from gpmi._support.text import VALUE, shortened
from gpmi.serve.cell_parsing import ParsedCell, parse_cell, parse_number
from gpmi.serve.output_fields import OutputField, outputs_of
from gpmi.serve.page_layout import form, full_page, hidden, labelled, notices, select
from gpmi.space import Candidates, Choice, Fidelity, Int, Real
from gpmi.trials.goals import AtLeast, AtMost, Goal, Goals, Match, Max, Min, Objective
from gpmi.views.html.markup import Markup, tag

# Our choices.
ROWS = 6  # parameters that can be filled in without JavaScript; with it there may be more
PREVIEW = 5  # rows of a table that are shown before its study is created
MAX_PARAMETERS = 100  # or columns of a table
MAX_CANDIDATES = 100_000  # every query looks at all of them
MAX_BUDGET = 10**6
OUTPUT_ROWS = 4  # outputs that can be filled in without JavaScript; with it there may be more
MAX_OUTPUTS = 20
MAX_NAME = 80  # characters of the name of an output

KINDS = (
    *(("number", "number"), ("whole", "whole number"), ("choice", "one of a list")),
    ("fidelity", "how exactly it is measured"),
)
SEVERAL = "several outputs"
GOALS = (("max", "the largest result"), ("min", "the smallest result"), ("goals", SEVERAL))
PURPOSES = (
    *(("max", "make it large"), ("min", "make it small"), ("match", "match a target")),
    *(("least", "must be at least"), ("most", "must be at most"), ("watch", "only watch it")),
)
# What the number of an output means, by its purpose.
NUMBERS = {
    **{"max": "The worst you would still accept", "min": "The worst you would still accept"},
    **{"match": "The target", "least": "The limit", "most": "The limit", "watch": "No number is needed"},
}
AIMS = (("find", "the best point"), ("earn", "every experiment"))
USES = (("use", "vary it"), ("label", "it names the rows"), ("result", "known results"), ("skip", "leave it out"))
FIDELITY = (
    "if there are cheaper measurements, give them as options with their costs, the one that counts last, such as "
    "“coarse: 1, fine: 60”. If an experiment passes steps and may be stopped on the way, give the first and the last "
    "step as “From” and “To”."
)
ONE_RESULT = outputs_of(None)


@dataclass(frozen=True)
class UploadedTable:
    """A table of candidates, as it was read."""

    columns: dict[str, list[Any]]
    rows: list[int]  # the row of each candidate in the spreadsheet, where the names are row 1
    notes: list[str]


# Pages


def new_study_page(request: Request, typed: Mapping[str, str], problem: str = "", status: int = 200) -> HTMLResponse:
    """Return the page that creates a study, with what was typed before."""
    filled = [int(key[5:]) for key in typed if re.fullmatch(r"name-[0-9]{1,3}", key) and typed[key]]
    rows = max(ROWS, max(filled, default=0) + 2)
    lead = "Describe what can be varied. gpmi then suggests experiments, and you enter their results."
    return full_page(
        request,
        "A new study",
        tag("p", lead, class_="lead"),
        notices([problem] if problem else [], "wrong"),
        tag(
            "div", _parameters_form(request, typed, min(rows, MAX_PARAMETERS)), _upload_form(request),
            class_="cards wide",
        ),
        status=status,
    )  # fmt: skip


def _common_fields(typed: Mapping[str, str]) -> Markup:
    name = tag("input", type="text", name="study", value=typed.get("study", ""), required=True, maxlength="80",
               placeholder="e.g. yield of the coupling")  # fmt: skip
    budget = tag("input", type="text", name="budget", value=typed.get("budget", ""), inputmode="numeric",
                 placeholder="if you know")  # fmt: skip
    return tag(
        "div",
        labelled("Name of the study", name),
        labelled("What are you looking for?", select("goal", GOALS, typed.get("goal", "max"))),
        labelled("What counts?", select("aim", AIMS, typed.get("aim", "find"))),
        labelled("How many experiments?", budget),
        class_="grid",
    )


def _goals_fields(typed: Mapping[str, str]) -> Markup:
    """Return the rows of the outputs. They are shown if several outputs were chosen (lab.css)."""
    filled = _output_rows(typed)
    rows = min(MAX_OUTPUTS, max(OUTPUT_ROWS, max(filled, default=0) + 2))
    top = tag("tr", [tag("th", title, scope="col") for title in ("Output", "What is it for?", "Number", "Within ±")])
    body = [_output_row(typed, i) for i in range(rows)]
    caption = tag("caption", "Outputs; rows without a name are ignored", class_="unseen")
    table = tag("table", caption, tag("thead", top), tag("tbody", body), class_="sheet", id="outputs")
    why = (
        "For each output that you make large or small, give ",
        tag("strong", "the worst you would still accept"),
        ". It is worth more than any rule: no experiment is spent on trade-offs that you could not use, such as a "
        "yield of 3 % because it is so cheap. Leave it empty if you cannot say.",
    )
    return tag(
        "fieldset",
        tag("legend", "What does an experiment measure?"),
        tag("p", "Results of an experiment may come one by one, such as a purity that is measured a day later."),
        table,
        tag("p", *why),
        tag("p", tag("button", "Add an output", type="button", class_="second", id="add-output", hidden=True)),
        class_="goals shown" if filled else "goals",
        id="goals",
    )


def _output_row(typed: Mapping[str, str], i: int) -> Markup:
    examples = {
        **{0: ("yield", "max", "60"), 1: ("cost", "min", "12")},
        **{2: ("purity", "least", "0.95"), 3: ("colour", "watch", "")},
    }
    example, usual, number = examples.get(i, ("", "max", ""))

    def box(key: str, label: str, placeholder: str, **more: Any) -> Markup:
        return tag("input", type="text", name=f"output-{key}-{i}", value=typed.get(f"output-{key}-{i}", ""),
                   aria_label=f"{label} of output {i + 1}", placeholder=placeholder or " ", **more)  # fmt: skip

    kind = select(f"output-kind-{i}", PURPOSES, typed.get(f"output-kind-{i}", usual),
                  aria_label=f"Purpose of output {i + 1}")  # fmt: skip
    hints = [tag("small", text, class_=f"for-{kind}") for kind, text in NUMBERS.items()]
    explained = "Worst acceptable value, limit or target"
    return tag(
        "tr",
        tag("td", box("name", "Name", f"e.g. {example}" if example else "", maxlength=str(MAX_NAME)),
            data_label="Output"),
        tag("td", kind, data_label="Purpose"),
        tag("td", tag("span", hints, class_="hints", aria_hidden="true"),
            box("number", explained, f"e.g. {number}" if number else "", inputmode="text"), class_="number-of-goal"),
        tag("td", box("within", "Accepted distance from the target", ""), data_label="Within ±", class_="within"),
    )  # fmt: skip


def _output_rows(typed: Mapping[str, str]) -> list[int]:
    """Return the rows of outputs in which something was typed."""
    pattern = r"output-(?:name|number|within)-(0|[1-9][0-9]?)"
    found = {int(key[1]) for name, text in typed.items() if (key := re.fullmatch(pattern, name)) and text.strip()}
    return sorted(found)


def _parameters_form(request: Request, typed: Mapping[str, str], rows: int) -> Markup:
    titles = ["Name", "Kind", "From", "To", "Unit", "Options", "Log scale"]
    top = tag("tr", [tag("th", title, scope="col") for title in titles])
    body = [_parameter_row(typed, i) for i in range(rows)]
    caption = tag("caption", "Parameters; rows without a name are ignored", class_="unseen")
    table = tag("table", caption, tag("thead", top), tag("tbody", body), class_="sheet", id="parameters")
    return tag(
        "section",
        tag("h2", "Fill in parameters", id="parameters-title"),
        form(
            request,
            "/new/parameters",
            _common_fields(typed),
            _goals_fields(typed),
            tag("h3", "What can be varied?"),
            table,
            tag("p", tag("button", "Add a row", type="button", class_="second", id="add-row", hidden=True)),
            tag("p", tag("strong", "How exactly it is measured: "), FIDELITY, class_="muted"),
            tag("p", tag("button", "Create the study", class_="main")),
        ),
        class_="card",
        aria_labelledby="parameters-title",
    )


def _parameter_row(typed: Mapping[str, str], i: int) -> Markup:
    examples = {0: ("temperature", "20", "90", "°C", ""), 1: ("catalyst", "", "", "", "Pd, Ni, Cu")}
    name, lo, hi, unit, listed = examples.get(i, ("", "", "", "", ""))

    def box(key: str, title: str, placeholder: str, hint: str = "") -> Markup:
        field = f"{key}-{i}"
        control = tag(
            "input", type="text", name=field, value=typed.get(field, ""), aria_label=f"{title} of parameter {i + 1}",
            placeholder=f"e.g. {placeholder}" if placeholder else None,
        )  # fmt: skip
        return tag("td", control, data_label=title + hint)

    kind = select(f"kind-{i}", KINDS, typed.get(f"kind-{i}", "choice" if i == 1 and not typed else "number"),
                  aria_label=f"Kind of parameter {i + 1}")  # fmt: skip
    log = tag("input", type="checkbox", name=f"log-{i}", value="on", checked=typed.get(f"log-{i}") == "on" or None,
              aria_label=f"Logarithmic scale of parameter {i + 1}")  # fmt: skip
    return tag(
        "tr",
        box("name", "Name", name),
        tag("td", kind, data_label="Kind"),
        box("lo", "From", lo),
        box("hi", "To", hi),
        box("unit", "Unit", unit),
        box("options", "Options", listed, ", separated by commas"),
        tag("td", log, data_label="Log scale"),
    )


def _upload_form(request: Request) -> Markup:
    file = tag("input", type="file", name="table", accept=".csv,.tsv,.txt,text/csv", required=True)
    text = (
        "If only certain combinations can be tried, save them as a CSV file: one row for each combination, one column "
        "for each property, and the names of the columns in the first line."
    )
    return tag(
        "section",
        tag("h2", "Upload candidates", id="upload-title"),
        tag("p", text),
        form(
            request,
            "/new/table",
            labelled("CSV file", file),
            tag("p", tag("button", "Preview it", class_="main")),
            enctype="multipart/form-data",
        ),
        class_="card",
        aria_labelledby="upload-title",
    )


def table_page(
    request: Request, key: str, table: UploadedTable, typed: Mapping[str, str], problem: str = "", status: int = 200
) -> HTMLResponse:
    """Return the page that shows how a table was read, before its study is created."""
    rows = [_column_row(i, name, values, typed) for i, (name, values) in enumerate(table.columns.items())]
    top = tag("tr", [tag("th", title, scope="col") for title in ("Column", "Read as", "First rows", "Use")])
    caption = tag("caption", "The columns of the table", class_="unseen")
    inner = form(
        request,
        "/new/candidates",
        hidden("key", key),
        _common_fields(typed),
        _goals_fields(typed),
        tag("table", caption, tag("thead", top), tag("tbody", rows), class_="sheet"),
        tag("p", tag("button", "Create the study", class_="main")),
    )
    return full_page(
        request,
        f"{len(table.rows):,} candidates",
        notices([problem] if problem else [], "wrong"),
        notices(table.notes),
        tag("section", inner, class_="card"),
        status=status,
    )


def _column_row(i: int, name: str, values: Sequence[Any], typed: Mapping[str, str]) -> Markup:
    """Return one column of the table: how it was read, its first values, and what to do with it."""
    is_text, distinct = any(isinstance(value, str) for value in values), len(set(values))
    guess = "label" if i == 0 and is_text and distinct == len(values) > 2 else "use"
    if None in values or "" in values:  # a candidate needs a value for every parameter
        guess = "skip" if is_text else "result"
    numbers = [value for value in values if value is not None and not is_text]
    span = f"{min(numbers):g} to {max(numbers):g}" if numbers else "none"
    first = ", ".join(shortened("–" if one is None else str(one), VALUE) for one in values[:PREVIEW])
    use = select(f"use-{i}", USES, typed.get(f"use-{i}", guess), aria_label=f"What to do with {name}")
    return tag(
        "tr",
        tag("th", name, scope="row", data_label="Column"),
        tag("td", f"{distinct} different words" if is_text else f"numbers, {span}", data_label="Read as"),
        tag("td", first, ", …" if len(values) > PREVIEW else "", data_label="First rows"),
        tag("td", use, data_label="Use"),
    )


# Parameters that were filled in


def options_of(typed: Mapping[str, str]) -> dict[str, Any]:
    """Return goal or goals, aim and budget of the new study."""
    if typed.get("goal") not in dict(GOALS) or typed.get("aim") not in dict(AIMS):
        raise ValueError("The goal, or what counts, is missing; choose one of the list")
    goals = goals_of(typed)
    options: dict[str, Any] = {"goal": typed["goal"]} if goals is None else {"goals": goals}
    options["aim"] = typed["aim"]
    if typed.get("budget", "").strip():
        value, _ = parse_number(typed["budget"])
        if value != round(value) or not 1 <= value <= MAX_BUDGET:
            raise ValueError(
                f"The number of experiments is {typed['budget'].strip()}; give a whole number from 1 to "
                f"{MAX_BUDGET:,}, or leave it empty"
            )
        options["budget"] = int(value)
    return options


def goals_of(typed: Mapping[str, str]) -> Goals | None:
    """Return the goals that were filled in; None if there is one result. A ValueError names the output."""
    rows = _output_rows(typed)
    if typed.get("goal") != "goals":
        if rows:
            chosen = dict(GOALS).get(typed.get("goal", ""), "one result")
            raise ValueError(f"Outputs are filled in, but “{chosen}” is chosen; choose “{SEVERAL}”, or clear them")
        return None
    goals: dict[str, Goal] = {}
    for i in rows[:MAX_OUTPUTS]:
        name = typed.get(f"output-name-{i}", "").strip()
        if not name:
            raise ValueError(f"Output {i + 1} has no name; give it one, or clear its row")
        if len(name) > MAX_NAME:
            raise ValueError(f"The name of output {i + 1} has {len(name)} characters; give at most {MAX_NAME}")
        if name in goals:
            raise ValueError(f"There are two outputs {shortened(name, VALUE)!r}; give each its own name")
        try:
            goals[name] = _goal_of(typed, i)
        except (ValueError, TypeError) as error:
            raise ValueError(f"Output {shortened(name, VALUE)!r}: {error}") from None
    if not goals:
        raise ValueError("There is no output; give the name of at least one")
    if not any(isinstance(goal, Objective) for goal in goals.values()):
        raise ValueError("No output is made large, made small or matched to a target; choose that for one at least")
    return Goals.of(goals)


def _goal_of(typed: Mapping[str, str], i: int) -> Goal:
    kind, texts = (
        typed.get(f"output-kind-{i}", ""),
        [typed.get(f"output-{one}-{i}", "") for one in ("number", "within")],
    )
    number, within = (parse_number(text)[0] if text.strip() else None for text in texts)
    if within is not None and kind != "match":
        raise ValueError("it has a distance, but no target; clear the distance, or choose “match a target”")
    if number is None and kind in ("match", "least", "most"):
        raise ValueError(f"{NUMBERS[kind].lower()} is empty; give a number")
    match kind:
        case "max":
            return Max(number)
        case "min":
            return Min(number)
        case "match":
            if within is None:
                raise ValueError("the distance from the target that you would accept is empty; give a number")
            return Match(number or 0.0, within)
        case "least":
            return AtLeast(number or 0.0)
        case "most":
            return AtMost(number or 0.0)
        case "watch":
            if number is not None:
                raise ValueError("it is only watched, but has a number; clear the number, or say what it is for")
            return None
    raise ValueError("what it is for is missing; choose one of the list")


def space_of(typed: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters that were filled in. A ValueError names the one that cannot be used."""
    space: dict[str, Any] = {}
    rows = sorted(int(key[5:]) for key in typed if re.fullmatch(r"name-(?:0|[1-9][0-9]{0,2})", key))
    for i in rows[:MAX_PARAMETERS]:
        name = typed[f"name-{i}"].strip()
        if not name:
            if any(typed.get(f"{key}-{i}", "").strip() for key in ("lo", "hi", "options")):
                raise ValueError(f"Parameter {i + 1} has no name; give it one, or clear its row")
            continue
        if name in space:
            raise ValueError(f"There are two parameters {shortened(name, VALUE)!r}; give each its own name")
        try:
            space[name] = _parameter_of(typed, i)
        except (ValueError, TypeError) as error:
            raise ValueError(f"Parameter {shortened(name, VALUE)!r}: {error}") from None
    if not space:
        raise ValueError("There is no parameter; give at least one with a name")
    return space


def _parameter_of(typed: Mapping[str, str], i: int) -> Any:
    kind, unit = typed.get(f"kind-{i}", "number"), typed.get(f"unit-{i}", "").strip()
    if kind == "choice":
        options = [option.strip() for option in re.split(r"[,;\n]", typed.get(f"options-{i}", "")) if option.strip()]
        if len(options) < 2:
            raise ValueError("give at least two options, separated by commas")
        return Choice(tuple(options))
    if kind == "fidelity" and typed.get(f"log-{i}") == "on":
        raise ValueError("its steps have no logarithmic scale; clear the box, or choose another kind")
    if kind == "fidelity" and typed.get(f"options-{i}", "").strip():
        if any(typed.get(f"{end}-{i}", "").strip() for end in ("lo", "hi")):
            raise ValueError("it has options and steps; clear the options, or clear “From” and “To”")
        return Fidelity(_levels_of(typed[f"options-{i}"]), unit=unit)
    ends = []
    for end, title in (("lo", "From"), ("hi", "To")):
        text = typed.get(f"{end}-{i}", "").strip()
        if not text and kind == "fidelity":
            raise ValueError(f"“{title}” is empty; give the first and the last step, or levels as options")
        if not text:
            raise ValueError(f"“{title}” is empty; give the smallest and the largest value")
        ends.append(parse_number(text)[0])
    log = typed.get(f"log-{i}") == "on"
    if kind in ("whole", "fidelity"):
        if any(end != round(end) for end in ends):
            other = "number" if kind == "whole" else "one of a list"
            raise ValueError(f"give whole numbers, or choose the kind “{other}”")
        if kind == "fidelity":
            return Fidelity(int(ends[0]), int(ends[1]), unit=unit)
        return Int(int(ends[0]), int(ends[1]), log, unit=unit)
    return Real(ends[0], ends[1], log, unit=unit)


def _levels_of(typed: str) -> list[Any]:
    """Return the levels of a fidelity: texts, or pairs of a text and a cost where costs are given.

    Semicolons or lines separate them where there are any, so that a cost may have a decimal comma.
    """
    levels: list[Any] = []
    for part in re.split(r"[;\n]" if re.search(r"[;\n]", typed.strip()) else ",", typed):
        name, colon, cost = part.strip().rpartition(":")
        if not part.strip():
            continue
        if colon and not name.strip():
            raise ValueError(f"the cost {shortened(cost.strip(), VALUE)!r} has no level; write it as “coarse: 1”")
        if colon and not cost.strip():
            raise ValueError(f"the level {shortened(name.strip(), VALUE)!r} has no cost after its colon; give a number")
        levels.append((name.strip(), parse_number(cost)[0]) if colon else part.strip())
    return levels


# Candidates that were uploaded


def read_table(raw: bytes) -> UploadedTable:
    """Read a CSV file. A column is numbers if all its cells are, otherwise text. A ValueError names the line."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    if "\0" in text:
        raise ValueError("The file is not a text file; save the table as CSV")
    separator = max(",;\t", key=text.partition("\n")[0].count)
    try:
        lines = enumerate(csv.reader(io.StringIO(text), delimiter=separator), 1)
        filled = {i: row for i, row in lines if any(cell.strip() for cell in row)}
    except csv.Error as error:
        raise ValueError(f"The file cannot be read as a table: {error}") from None
    at, rows = list(filled), list(filled.values())
    if len(rows) < 3:
        raise ValueError("The table has fewer than two rows below its names; give at least two candidates")
    names = [name.strip() for name in rows[0]]
    if len(names) > MAX_PARAMETERS or len(rows) - 1 > MAX_CANDIDATES:
        raise ValueError(
            f"The table has {len(names)} columns and {len(rows) - 1} rows; at most {MAX_PARAMETERS} columns and "
            f"{MAX_CANDIDATES:,} rows are possible"
        )
    for name in names:
        if not name or names.count(name) > 1:
            raise ValueError(f"The column name {name!r} is empty or used twice; give each column its own name")
    for i, row in zip(at[1:], rows[1:], strict=True):
        if len(row) != len(names):
            raise ValueError(f"Row {i} has {len(row)} cells, but there are {len(names)} columns; fix the file")
    notes: list[str] = []
    columns = {
        name: _read_column(name, [row[j].strip() for row in rows[1:]], decimal_comma=separator != ",", notes=notes)
        for j, name in enumerate(names)
    }
    return UploadedTable(columns, at[1:], notes)


def _read_column(name: str, cells: list[str], *, decimal_comma: bool, notes: list[str]) -> list[Any]:
    filled = [cell for cell in cells if cell]
    try:
        if not decimal_comma and any("," in cell for cell in filled):
            raise ValueError
        read = {cell: parse_number(cell) for cell in dict.fromkeys(filled)}
    except ValueError:
        return list(cells)
    if not filled:
        raise ValueError(f"The column {shortened(name, VALUE)!r} is empty; remove it from the file")
    if any(note for _, note in read.values()):
        example = next(note for _, note in read.values() if note)
        notes.append(f"This is how the numbers in {shortened(name, VALUE)} were read: {example}.")
    whole = all(
        value == round(value) and abs(value) < 2**53 and re.fullmatch(r"[+-]?[0-9]+", cell)
        for cell, (value, _) in read.items()
    )
    return [None if not cell else int(read[cell][0]) if whole else read[cell][0] for cell in cells]


def candidates_of(
    table: UploadedTable, typed: Mapping[str, str], outputs: Sequence[OutputField] = ONE_RESULT
) -> tuple[Candidates, list[tuple[dict[str, Any], dict[int, ParsedCell]]]]:
    """Return the candidates of a table and the results it contains, by the use chosen for each column.

    The results of a row are by the index of the output.
    """
    uses = {name: typed.get(f"use-{i}", "use") for i, name in enumerate(table.columns)}
    varied = {name: table.columns[name] for name, use in uses.items() if use == "use"}
    labels = [name for name, use in uses.items() if use == "label"]
    results = _result_columns([name for name, use in uses.items() if use == "result"], outputs)
    if not varied:
        raise ValueError("No column is varied; choose “vary it” for at least one")
    if len(labels) > 1:
        raise ValueError("Only one column can name the rows; leave out the others")
    for name, values in varied.items():
        for row, value in zip(table.rows, values, strict=True):
            if value is None or value == "":
                raise ValueError(
                    f"The column {shortened(name, VALUE)!r} is empty in row {row} of the file; fill it in, or choose "
                    "“leave it out”"
                )
    space = Candidates.from_columns(varied, table.columns[labels[0]] if labels else table.rows)
    outcomes: list[tuple[dict[str, Any], dict[int, ParsedCell]]] = []
    for i in range(len(table.rows)):
        read = {index: _read_result(table.columns[name][i]) for index, name in results.items()}
        cells = {index: cell for index, cell in read.items() if not cell.empty}
        if cells:
            outcomes.append(({name: values[i] for name, values in varied.items()}, cells))
    return space, outcomes


def _result_columns(names: Sequence[str], outputs: Sequence[OutputField]) -> dict[int, str]:
    """Return the column of known results of each output, by its index."""
    if outputs[0].name is None:
        if len(names) > 1:
            raise ValueError("Only one column can hold results; leave out the others, or choose several outputs")
        return dict(enumerate(names))
    index = {str(one.name).casefold(): one.index for one in outputs}
    for name in names:
        if name.casefold() not in index:
            known = ", ".join(one.title for one in outputs)
            raise ValueError(
                f"The column {shortened(name, VALUE)!r} has known results, but no output has this name; the outputs "
                f"are {known}"
            )
    if len({name.casefold() for name in names}) < len(names):
        raise ValueError("Two columns have known results of the same output; leave out one of them")
    return {index[name.casefold()]: name for name in names}


def _read_result(value: Any) -> ParsedCell:
    is_text = value is None or isinstance(value, str)
    return parse_cell(value or "") if is_text else ParsedCell(float(value))
