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
from gpmi.serve.output_fields import Results, outputs_of
from gpmi.serve.page_layout import form, full_page, hidden, labelled, notices, select
from gpmi.serve.study_form import (
    AIMS,
    GOALS,
    KINDS,
    MAX_NAME,
    MAX_OUTPUTS,
    MAX_PARAMETERS,
    NUMBERS,
    PURPOSES,
    output_rows,
)
from gpmi.space import Candidates
from gpmi.trials import MAXIMISE
from gpmi.views.html.markup import Markup, sentence, tag

# Our choices.
ROWS = 6  # parameters that can be filled in without JavaScript; with it there may be more
PREVIEW = 5  # rows of a table that are shown before its study is created
MAX_CANDIDATES = 100_000  # every query looks at all of them
OUTPUT_ROWS = 4  # outputs that can be filled in without JavaScript; with it there may be more

USES = (("use", "vary it"), ("label", "it names the rows"), ("result", "known results"), ("skip", "leave it out"))
FIDELITY = (
    "if there are cheaper measurements, give them as options with their costs, the one that counts last, such as "
    "“coarse: 1, fine: 60”. If an experiment passes steps and may be stopped on the way, give the first and the last "
    "step as “From” and “To”."
)
ONE_RESULT = outputs_of(MAXIMISE)


@dataclass(frozen=True)
class UploadedTable:
    """A table of candidates, as it was read."""

    columns: dict[str, list[Any]]
    rows: list[int]  # the row of each candidate in the spreadsheet, where the names are row 1
    notes: list[str]


# Pages


def new_study_page(
    request: Request, typed: Mapping[str, str], problem: str = "", status: int = 200, at: str = ""
) -> HTMLResponse:
    """Return the page that creates a study, with what was typed before. A problem is also said at its field."""
    named = [int(key[5:]) for key in typed if re.fullmatch(r"name-[0-9]{1,3}", key) and typed[key]]
    rows, filled = max(ROWS, max(named, default=0) + 2), Filled(typed, problem, at)
    lead = "Describe what can be varied. gpmi then suggests experiments, and you enter their results."
    return full_page(
        request,
        "A new study",
        tag("p", lead, class_="lead"),
        notices([sentence(problem)] if problem else [], "wrong"),
        tag(
            "div", _parameters_form(request, filled, min(rows, MAX_PARAMETERS)), _upload_form(request),
            class_="cards wide",
        ),
        status=status,
    )  # fmt: skip


@dataclass(frozen=True)
class Filled:
    """What was typed into a form, and what is wrong with one of its fields."""

    typed: Mapping[str, str]
    problem: str = ""
    at: str = ""  # the name of the field

    def get(self, name: str, default: str = "") -> str:
        return self.typed.get(name, default)

    def marks(self, name: str) -> dict[str, Any]:
        """Return the attributes of a control: whether it is wrong, and where that is said."""
        return {"aria_invalid": "true", "aria_describedby": "wrong-here"} if self.problem and name == self.at else {}

    def words(self, *names: str) -> Markup | None:
        """Return what is wrong, if it is with one of these fields."""
        if not self.problem or self.at not in names:
            return None
        return tag("span", sentence(self.problem), class_="problem", id="wrong-here")

    def text(self, name: str, **attributes: Any) -> Markup:
        """Return a control for a line of text."""
        return tag("input", type="text", name=name, value=self.get(name), **self.marks(name), **attributes)

    def area(self, name: str, **attributes: Any) -> Markup:
        """Return a control for several lines of text."""
        return tag("textarea", self.get(name), name=name, **self.marks(name), **attributes)

    def tick(self, name: str, **attributes: Any) -> Markup:
        """Return a box to tick."""
        checked = self.get(name) == "on" or None
        return tag("input", type="checkbox", name=name, value="on", checked=checked, **self.marks(name), **attributes)

    def list(self, name: str, options: Sequence[tuple[str, str]], usual: str, **attributes: Any) -> Markup:
        """Return a list to choose from."""
        return select(name, options, self.get(name, usual), **self.marks(name), **attributes)


def _common_fields(filled: Filled) -> Markup:
    name = filled.text("study", required=True, maxlength="80", placeholder="e.g. coupling in March")
    budget = filled.text("budget", inputmode="numeric", placeholder="if you know")
    return tag(
        "div",
        labelled("Name of the study", name),
        labelled("What are you looking for?", filled.list("goal", GOALS, "max")),
        labelled("What counts?", filled.list("aim", AIMS, "find")),
        labelled("How many experiments?", budget),
        filled.words("study", "goal", "aim", "budget"),
        class_="grid",
    )


def _result_fields(filled: Filled) -> Markup:
    """Return the fields of a single result. They are hidden if several outputs were chosen (lab.css)."""
    keys = ("name", "unit", "low", "high", "error")
    shown = any(filled.get(f"result-{key}") for key in keys)
    return tag(
        "fieldset",
        tag("legend", "What is measured?"),
        tag(
            "div",
            labelled(
                "Name of the result", filled.text("result-name", maxlength=str(MAX_NAME), placeholder="e.g. yield")
            ),
            labelled("Unit", filled.text("result-unit", placeholder="e.g. %")),
            labelled("It is never below", filled.text("result-low", placeholder="e.g. 0")),
            labelled("It is never above", filled.text("result-high", placeholder="e.g. 100")),
            labelled("Error bar ± of one result", filled.text("result-error", placeholder="if you know")),
            class_="grid narrow",
        ),
        filled.words(*(f"result-{key}" for key in keys)),
        tag("p", "All of these may stay empty.", class_="muted"),
        class_="single shown" if shown else "single",
    )


def _goals_fields(filled: Filled) -> Markup:
    """Return the rows of the outputs. They are shown if several outputs were chosen (lab.css)."""
    rows_filled = output_rows(filled.typed)
    rows = min(MAX_OUTPUTS, max(OUTPUT_ROWS, max(rows_filled, default=0) + 2))
    titles = ("Output", "What is it for?", "Number", "Within ±", "Unit", "Never below", "Never above", "Error bar ±")
    top = tag("tr", [tag("th", title, scope="col") for title in titles])
    body = [_output_row(filled, i) for i in range(rows)]
    caption = tag("caption", "Outputs; rows without a name are ignored", class_="unseen")
    table = tag("table", caption, tag("thead", top), tag("tbody", body), class_="sheet", id="outputs")
    why = (
        "For each output that you make large or small, give ",
        tag("strong", "the worst you would still accept"),
        ". It is worth more than any rule: no experiment is spent on trade-offs that you could not use, such as a "
        "yield of 3 % because it is so cheap. Leave it empty if you cannot say.",
    )
    bounds = (
        "“Never below” and “Never above” are what is possible at all, such as 0 and 100 for a yield in %: nothing that "
        "is predicted leaves them. “Error bar” is the standard error of a single result, if you know it."
    )
    return tag(
        "fieldset",
        tag("legend", "What does an experiment measure?"),
        tag("p", "Results of an experiment may come one by one, such as a purity that is measured a day later."),
        table,
        tag("p", *why),
        tag("p", bounds, class_="muted"),
        tag("p", tag("button", "Add an output", type="button", class_="second", id="add-output", hidden=True)),
        class_="goals shown" if rows_filled else "goals",
        id="goals",
    )


def _output_row(filled: Filled, i: int) -> Markup:
    examples = {
        **{0: ("yield", "max", "60", "%"), 1: ("cost", "min", "12", "€")},
        **{2: ("purity", "least", "0.95", ""), 3: ("colour", "watch", "", "")},
    }
    example, usual, number, unit = examples.get(i, ("", "max", "", ""))

    def box(key: str, label: str, placeholder: str, **attributes: Any) -> Markup:
        placeholder = f"e.g. {placeholder}" if placeholder else " "
        return filled.text(
            f"output-{key}-{i}", aria_label=f"{label} of output {i + 1}", placeholder=placeholder, **attributes
        )

    kind = filled.list(f"output-kind-{i}", PURPOSES, usual, aria_label=f"Purpose of output {i + 1}")
    hints = [tag("small", text, class_=f"for-{kind}") for kind, text in NUMBERS.items()]
    fields = [f"output-{key}-{i}" for key in ("name", "kind", "number", "within", "unit", "low", "high", "error")]
    low, high = ("0", "100") if i == 0 else ("", "")
    return tag(
        "tr",
        tag("td", box("name", "Name", example, maxlength=str(MAX_NAME)), filled.words(*fields), data_label="Output"),
        tag("td", kind, data_label="Purpose"),
        tag("td", tag("span", hints, class_="hints", aria_hidden="true"),
            box("number", "Worst acceptable value, limit or target", number, inputmode="text"),
            class_="number-of-goal"),
        tag("td", box("within", "Accepted distance from the target", ""), data_label="Within ±", class_="within"),
        tag("td", box("unit", "Unit", unit), data_label="Unit"),
        tag("td", box("low", "Smallest possible value", low), data_label="Never below"),
        tag("td", box("high", "Largest possible value", high), data_label="Never above"),
        tag("td", box("error", "Error bar", ""), data_label="Error bar ±"),
    )  # fmt: skip


def _parameters_form(request: Request, filled: Filled, rows: int) -> Markup:
    titles = ["Name", "Kind", "From", "To", "In steps of", "Unit", "Options", "Log scale", "Part of a mixture"]
    top = tag("tr", [tag("th", title, scope="col") for title in titles])
    body = [_parameter_row(filled, i) for i in range(rows)]
    caption = tag("caption", "Parameters; rows without a name are ignored", class_="unseen")
    table = tag("table", caption, tag("thead", top), tag("tbody", body), class_="sheet", id="parameters")
    steps = "what the instrument can set, such as 0.5 °C. Suggestions are rounded to it; other values can be entered."
    return tag(
        "section",
        tag("h2", "Fill in parameters", id="parameters-title"),
        form(
            request,
            "/new/parameters",
            _common_fields(filled),
            _result_fields(filled),
            _goals_fields(filled),
            tag("h3", "What can be varied?"),
            table,
            tag("p", tag("button", "Add a row", type="button", class_="second", id="add-row", hidden=True)),
            tag("p", tag("strong", "In steps of: "), steps, class_="muted"),
            tag("p", tag("strong", "How exactly it is measured: "), FIDELITY, class_="muted"),
            _rules_fields(filled),
            tag("p", tag("button", "Create the study", class_="main")),
        ),
        class_="card",
        aria_labelledby="parameters-title",
    )


def _parameter_row(filled: Filled, i: int) -> Markup:
    examples = {0: ("temperature", "20", "90", "0.5", "°C", ""), 1: ("catalyst", "", "", "", "", "Pd, Ni, Cu")}
    name, lo, hi, step, unit, listed = examples.get(i, ("", "", "", "", "", ""))
    keys = ("name", "kind", "lo", "hi", "step", "unit", "options", "log", "part")

    def box(key: str, title: str, placeholder: str, class_: str | None = None, hint: str = "") -> Markup:
        control = filled.text(f"{key}-{i}", aria_label=f"{title} of parameter {i + 1}",
                              placeholder=f"e.g. {placeholder}" if placeholder else None)  # fmt: skip
        words = filled.words(*(f"{part}-{i}" for part in keys)) if key == "name" else None
        return tag("td", control, words, data_label=title + hint, class_=class_)

    def tick(key: str, title: str, label: str) -> Markup:
        control = filled.tick(f"{key}-{i}", aria_label=f"{label} of parameter {i + 1}")
        return tag("td", control, data_label=title, class_=f"numeric {key}")

    usual = "choice" if i == 1 and not filled.typed else "number"
    kind = filled.list(f"kind-{i}", KINDS, usual, aria_label=f"Kind of parameter {i + 1}")
    return tag(
        "tr",
        box("name", "Name", name),
        tag("td", kind, data_label="Kind"),
        box("lo", "From", lo, "ends"),
        box("hi", "To", hi, "ends"),
        box("step", "In steps of", step, "numeric"),
        box("unit", "Unit", unit, "ends"),
        box("options", "Options", listed, "listed", ", separated by commas"),
        tick("log", "Log scale", "Logarithmic scale"),
        tick("part", "Part of a mixture", "Part of a mixture: row"),
    )


def _rules_fields(filled: Filled) -> Markup:
    """Return what must hold between parameters: a mixture, rules as text, and what is rarely needed."""
    rules = filled.area("rules", rows="3", placeholder="A + 2*B <= 0.8\ncount(A, B, C > 0) <= 2")
    forbidden = filled.area("forbidden", rows="2", placeholder="solvent = water, base = NaH")
    conditions = filled.area("conditions", rows="2", placeholder="ligand only if metal = Pd, Ni")
    example = "solvent, boiling point, polarity\nTHF, 66, 0.21\nDMF, 153, 0.39"
    features = filled.area("features", rows="3", placeholder=example)
    seed = filled.text("seed", inputmode="numeric", placeholder="drawn at random")
    rare = ("forbidden", "conditions", "seed")
    return tag(
        "fieldset",
        tag("legend", "What must hold?"),
        tag("p", "Tick the parts of a mixture in the table above. Leave all this empty if everything can be combined."),
        tag(
            "div",
            labelled("The parts of the mixture sum to", filled.text("mixture-sum", placeholder="1")),
            labelled("Parts used, at most", filled.text("mixture-most", placeholder="all")),
            class_="grid narrow",
        ),
        filled.words("mixture-sum", "mixture-most"),
        labelled(
            "Other rules, one in a line",
            rules,
            "Sums and limits with =, <= and >=, such as A + 2*B <= 0.8. “count(A, B, C > 0) <= 2” is at most 2 of 3.",
        ),
        filled.words("rules"),
        labelled(
            "Numbers that describe the options of a list, as a table",
            features,
            "Copy it from a spreadsheet: the name of the list in the first cell, its options below, and a column for "
            "each number. An empty line begins the table of another list.",
        ),
        filled.words("features"),
        tag(
            "details",
            tag("summary", "Combinations that must not occur, conditions, seed"),
            labelled("Combinations that must not occur, one in a line", forbidden),
            filled.words("forbidden"),
            labelled("Parameters that exist only sometimes, one in a line", conditions),
            filled.words("conditions"),
            labelled("Seed: the same seed and the same results give the same suggestions", seed),
            filled.words("seed"),
            class_="more",
            open=any(filled.get(name).strip() for name in rare) or None,
        ),
        class_="rules",
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
    request: Request,
    key: str,
    table: UploadedTable,
    typed: Mapping[str, str],
    problem: str = "",
    status: int = 200,
    at: str = "",
) -> HTMLResponse:
    """Return the page that shows how a table was read, before its study is created."""
    filled = Filled(typed, problem, at)
    rows = [_column_row(i, name, values, typed) for i, (name, values) in enumerate(table.columns.items())]
    top = tag("tr", [tag("th", title, scope="col") for title in ("Column", "Read as", "First rows", "Use")])
    caption = tag("caption", "The columns of the table", class_="unseen")
    inner = form(
        request,
        "/new/candidates",
        hidden("key", key),
        _common_fields(filled),
        _result_fields(filled),
        _goals_fields(filled),
        tag("table", caption, tag("thead", top), tag("tbody", rows), class_="sheet"),
        tag("p", tag("button", "Create the study", class_="main")),
    )
    return full_page(
        request,
        f"{len(table.rows):,} candidates",
        notices([sentence(problem)] if problem else [], "wrong"),
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
    first = ", ".join(shortened("–" if value is None else str(value), VALUE) for value in values[:PREVIEW])
    use = select(f"use-{i}", USES, typed.get(f"use-{i}", guess), aria_label=f"What to do with {name}")
    return tag(
        "tr",
        tag("th", name, scope="row", data_label="Column"),
        tag("td", f"{distinct} different words" if is_text else f"numbers, {span}", data_label="Read as"),
        tag("td", first, ", …" if len(values) > PREVIEW else "", data_label="First rows"),
        tag("td", use, data_label="Use"),
    )


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
    table: UploadedTable, typed: Mapping[str, str], outputs: Results = ONE_RESULT
) -> tuple[Candidates, list[tuple[dict[str, Any], dict[int, ParsedCell]]]]:
    """Return the candidates of a table and the results it contains, by the use chosen for each column.

    The results of a row are by the index of the output.
    """
    uses = {name: typed.get(f"use-{i}", "use") for i, name in enumerate(table.columns)}
    varied = {name: table.columns[name] for name, use in uses.items() if use == "use"}
    labels = [name for name, use in uses.items() if use == "label"]
    results = outputs.columns([name for name, use in uses.items() if use == "result"])
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


def _read_result(value: Any) -> ParsedCell:
    is_text = value is None or isinstance(value, str)
    return parse_cell(value or "") if is_text else ParsedCell(float(value))
