"""New studies: parameters that are filled in, or a table of candidates that is uploaded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse

from gpmi._support.text import VALUE, shortened
from gpmi.serve.layout import form, hidden, labelled, notices, page, select
from gpmi.serve.new_space import AIMS, GOALS, MOST, Uploaded
from gpmi.views.html.markup import Markup, tag

ROWS = 6  # parameters that can be filled in without a script; with one there may be more
KINDS = (("number", "number"), ("whole", "whole number"), ("choice", "one of a list"))
PREVIEW = 5  # rows of a table that are shown before its study is made


def show(request: Request, said: Mapping[str, str], problem: str = "", status: int = 200) -> HTMLResponse:
    """The page on which studies are begun, with what was typed before."""
    filled = [int(key[5:]) for key in said if re.fullmatch(r"name-[0-9]{1,3}", key) and said[key]]
    rows = max(ROWS, max(filled, default=0) + 2)
    return page(
        request,
        "A new study",
        tag("p", "Say what can be varied. Then experiments are suggested, and you enter their results.", class_="lead"),
        notices([problem] if problem else [], "wrong"),
        tag("div", _parameters(request, said, min(rows, MOST)), _upload(request, said), class_="cards wide"),
        status=status,
    )


def _common(said: Mapping[str, str]) -> Markup:
    name = tag("input", type="text", name="study", value=said.get("study", ""), required=True, maxlength="80",
               placeholder="e.g. yield of the coupling")  # fmt: skip
    budget = tag("input", type="text", name="budget", value=said.get("budget", ""), inputmode="numeric",
                 placeholder="if you know")  # fmt: skip
    return tag(
        "div",
        labelled("Name of the study", name),
        labelled("What is looked for?", select("goal", GOALS, said.get("goal", "max"))),
        labelled("What counts?", select("aim", AIMS, said.get("aim", "find"))),
        labelled("How many experiments?", budget),
        class_="grid",
    )


def _parameters(request: Request, said: Mapping[str, str], rows: int) -> Markup:
    head = ["Name", "Kind", "From", "To", "Unit", "Options", "Log scale"]
    top = tag("tr", [tag("th", words, scope="col") for words in head])
    body = [_parameter(said, i) for i in range(rows)]
    caption = tag("caption", "Parameters; rows without a name are left out", class_="unseen")
    table = tag("table", caption, tag("thead", top), tag("tbody", body), class_="sheet", id="parameters")
    return tag(
        "section",
        tag("h2", "Fill in parameters", id="parameters-title"),
        form(
            request,
            "/new/parameters",
            _common(said),
            table,
            tag("p", tag("button", "Add a row", type="button", class_="second", id="add-row", hidden=True)),
            tag("p", tag("button", "Begin the study", class_="main")),
        ),
        class_="card",
        aria_labelledby="parameters-title",
    )


def _parameter(said: Mapping[str, str], i: int) -> Markup:
    examples = {0: ("temperature", "20", "90", "°C", ""), 1: ("catalyst", "", "", "", "Pd, Ni, Cu")}
    name, lo, hi, unit, listed = examples.get(i, ("", "", "", "", ""))

    def box(key: str, words: str, placeholder: str) -> Markup:
        field = f"{key}-{i}"
        control = tag(
            "input", type="text", name=field, value=said.get(field, ""), aria_label=f"{words} of parameter {i + 1}",
            placeholder=f"e.g. {placeholder}" if placeholder else None,
        )  # fmt: skip
        return tag("td", control, data_label=words)

    kind = select(f"kind-{i}", KINDS, said.get(f"kind-{i}", "choice" if i == 1 and not said else "number"),
                  aria_label=f"Kind of parameter {i + 1}")  # fmt: skip
    log = tag("input", type="checkbox", name=f"log-{i}", value="on", checked=said.get(f"log-{i}") == "on" or None,
              aria_label=f"Logarithmic scale of parameter {i + 1}")  # fmt: skip
    return tag(
        "tr",
        box("name", "Name", name),
        tag("td", kind, data_label="Kind"),
        box("lo", "From", lo),
        box("hi", "To", hi),
        box("unit", "Unit", unit),
        box("options", "Options, with commas", listed),
        tag("td", log, data_label="Log scale"),
    )


def _upload(request: Request, said: Mapping[str, str]) -> Markup:
    file = tag("input", type="file", name="table", accept=".csv,.tsv,.txt,text/csv", required=True)
    words = (
        "If only certain combinations can be tried, save them as a CSV file: a row for each, a column for each "
        "property, names in the first line."
    )
    return tag(
        "section",
        tag("h2", "Upload candidates", id="upload-title"),
        tag("p", words),
        form(
            request,
            "/new/table",
            labelled("CSV file", file),
            tag("p", tag("button", "Look at it", class_="main")),
            enctype="multipart/form-data",
        ),
        class_="card",
        aria_labelledby="upload-title",
    )


def show_table(
    request: Request, key: str, table: Uploaded, said: Mapping[str, str], problem: str = "", status: int = 200
) -> HTMLResponse:
    """A table as it was read, to be agreed with before its study is made."""
    names = list(table.columns)
    count = len(next(iter(table.columns.values())))
    uses = []
    for i, name in enumerate(names):
        values = table.columns[name]
        words = _is_words(values)
        different = len(set(values))
        guess = "label" if i == 0 and words and different == count and count > 2 else "use"
        if None in values or "" in values:  # no candidate can be without a value
            guess = "skip" if words else "result"
        chosen = said.get(f"use-{i}", guess)
        use = (
            ("use", "vary it"),
            ("label", "it names the rows"),
            ("result", "known results"),
            ("skip", "leave it out"),
        )
        kind = f"{different} different words" if words else f"numbers, {_ends(values)}"
        first = ", ".join(shortened("–" if one is None else str(one), VALUE) for one in values[:PREVIEW])
        uses.append(
            tag(
                "tr",
                tag("th", name, scope="row", data_label="Column"),
                tag("td", kind, data_label="Read as"),
                tag("td", first, ", …" if count > PREVIEW else "", data_label="First rows"),
                tag("td", select(f"use-{i}", use, chosen, aria_label=f"What to do with {name}"), data_label="Use"),
            )
        )
    top = tag("tr", [tag("th", words, scope="col") for words in ("Column", "Read as", "First rows", "Use")])
    caption = tag("caption", "The columns of the table", class_="unseen")
    inner = form(
        request,
        "/new/candidates",
        hidden("key", key),
        _common(said),
        tag("table", caption, tag("thead", top), tag("tbody", uses), class_="sheet"),
        tag("p", tag("button", "Begin the study", class_="main")),
    )
    return page(
        request,
        f"{count:,} candidates",
        notices([problem] if problem else [], "wrong"),
        notices(table.notes),
        tag("section", inner, class_="card"),
        status=status,
    )


def _is_words(values: Sequence[Any]) -> bool:
    return any(isinstance(value, str) for value in values)


def _ends(values: Sequence[Any]) -> str:
    known = [value for value in values if value is not None]
    return f"{min(known):g} to {max(known):g}" if known else "none"
