"""The sheet for the bench: the experiments that are waiting, with blank fields for their results, or as a plate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpmi.serve.page_layout import select
from gpmi.serve.parameter_fields import format_point
from gpmi.serve.session import Session, StudySnapshot
from gpmi.serve.trial_table import beside_words
from gpmi.trials import Trial
from gpmi.trials.plate import Plate, plate
from gpmi.views.html.markup import Child, Markup, joined, scrollable, tag

PLATES = {"24": (4, 6), "96": (8, 12), "384": (16, 24)}  # rows and columns, by the number of wells


def sheet_body(session: Session, snapshot: StudySnapshot, wells: str) -> Markup:
    """Return everything below the heading: a table to write into, or plates with `wells` wells."""
    trials = snapshot.waiting
    if not trials:
        return tag("p", "No experiment is waiting for a result, so there is nothing to print.", class_="empty")
    fits = [name for name in PLATES if len(trials) > 1]
    choices = [("", "as a list"), *((name, f"as plates of {name} wells") for name in fits)]
    csv = f"/study/{session.slug}/sheet.csv" + (f"?plate={wells}" if wells else "")
    tools = tag(
        "form",
        select("plate", choices, wells, id="plate", aria_label="How to print"),
        tag("button", "Show", class_="second"),
        tag("button", "Print", type="button", class_="main js", data_print="yes"),
        tag("a", "Download as CSV", href=csv),
        method="get",
        class_="together tools screen",
    )
    drawn: Child = (
        [_plate(session, each) for each in plates_of(trials, wells)] if wells else _list(session, snapshot, trials)
    )
    blank = tag("span", class_="blank")
    return joined(tools, drawn, tag("p", "Done by: ", blank, " Date: ", blank, class_="signature"))


def plates_of(trials: Sequence[Trial], wells: str) -> list[Plate]:
    """Return the trials on as many plates as they need."""
    rows, columns = PLATES[wells]
    size = rows * columns
    return [plate(list(trials[i : i + size]), rows, columns) for i in range(0, len(trials), size)]


def sheet_csv(snapshot: StudySnapshot, wells: str) -> str:
    """Return the experiments that are waiting as CSV, with all digits; the wells of plates of 96 unless given."""
    plates = plates_of(snapshot.waiting, wells if wells in PLATES else "96") if snapshot.waiting else []
    texts = [each.csv_text() for each in plates]
    return texts[0] + "".join(text.partition("\n")[2] for text in texts[1:]) if texts else ""


def _list(session: Session, snapshot: StudySnapshot, trials: Sequence[Trial]) -> Markup:
    labels = any(trial.label is not None for trial in trials)
    shown = [field.title for field in session.fields if field.varies]
    head = ["Trial", *(["Row"] if labels else []), *shown, *(output.title for output in session.outputs), "Note"]
    rows = []
    for trial in trials:
        cells = [tag("td", text) for _, text in format_point(session.fields, trial.x)]
        blanks = [tag("td", class_="blank") for _ in session.outputs]
        label = [tag("td", str(trial.label))] if labels else []
        note = tag("td", beside_words(session, snapshot, trial), class_="blank wide")
        rows.append(tag("tr", tag("th", f"#{trial.number}", scope="row"), *label, *cells, *blanks, note))
    top = tag("tr", [tag("th", title, scope="col") for title in head])
    caption = "Experiments to do, with blank fields for their results"
    table = tag(
        "table", tag("caption", caption, class_="unseen"), tag("thead", top), tag("tbody", rows), class_="print-sheet"
    )
    return scrollable(caption, table)


def _plate(session: Session, wells: Plate) -> Markup:
    """Return a plate as it lies on the bench."""
    fields = {field.name: field for field in session.fields}

    def shown(settings: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
        x: Any = {field.key: {**wells.shared, **settings}.get(name) for name, field in fields.items()}
        return [f"{name} {fields[name].shown(x) if name in fields else value}" for name, value in values.items()]

    trials = dict(zip(wells.wells, zip(wells.numbers or (), wells.own, strict=True), strict=True))
    used = -(-len(wells) // wells.columns)
    names = [well.rstrip("0123456789") for well in wells.wells[:: wells.columns]]
    head = tag("tr", tag("td"), [tag("th", str(c + 1), scope="col") for c in range(wells.columns)])
    rows = []
    for r in range(used):
        line = [tag("th", names[r], scope="row")]
        for c in range(wells.columns):
            inside: list[Markup] = []
            if (well := f"{names[r]}{c + 1}") in trials:
                number, settings = trials[well]
                inside = [tag("b", f"#{number}"), *(tag("div", text) for text in shown(settings, settings))]
            line.append(tag("td", inside))
        rows.append(tag("tr", line))
    shared = ", ".join(shown({}, wells.shared))
    caption = tag("caption", f"All wells: {shared}" if shared else f"{len(wells)} wells")
    table = tag("table", caption, tag("thead", head), tag("tbody", rows), class_="print-plate")
    return scrollable("A plate", table)
