"""Tables of trials: the latest results on the page of a study, and the list of all trials."""

from __future__ import annotations

from collections.abc import Sequence

from gpmi._support.text import rounded
from gpmi.serve.parameter_fields import format_point
from gpmi.serve.session import Session, StudySnapshot
from gpmi.trials import Trial
from gpmi.views.html.markup import Child, Markup, joined, scrollable, tag
from gpmi.views.html.trials import note

RECENT = 8  # outcomes on the page of a study; our choice


def recent_results(session: Session, snapshot: StudySnapshot, at: str) -> Markup:
    ended = sorted((trial for trial in snapshot.trials if trial.order is not None), key=lambda one: one.order or 0)
    last = ended[-RECENT:][::-1]
    body: Child = (
        joined(
            trials_table(session, last, snapshot.best, at, "The latest results"),
            tag("p", tag("a", f"All {len(snapshot.trials)} trials", href=f"{at}/trials")),
        )
        if last
        else tag("p", "None yet.", class_="muted")
    )
    return tag(
        "section", tag("h2", "Latest results", id="recent-title"), tag("div", body, id="recent", data_live=True),
        class_="card recent", aria_labelledby="recent-title",
    )  # fmt: skip


def trials_table(session: Session, trials: Sequence[Trial], best: Trial | None, at: str, caption: str) -> Markup:
    shown = [one for one in session.fields if one.kind != "constant"]
    labels = any(trial.label is not None for trial in trials)
    head = ["Trial", *(["Row"] if labels else []), *(one.title for one in shown), "Result", "Note"]
    top = tag("tr", [tag("th", title, scope="col") for title in head])
    rows = []
    for trial in trials:
        link = tag("a", f"#{trial.number}", href=f"{at}/trial/{trial.number}")
        cells = [tag("td", text, data_label=one.title) for one, text in format_point(session.fields, trial.x)]
        row = tag(
            "tr",
            tag("th", link, scope="row", data_label="Trial"),
            tag("td", str(trial.label), data_label="Row") if labels else None,
            *cells,
            tag("td", format_result(trial), data_label="Result", class_="strong"),
            tag("td", note(trial, bars=False), data_label="Note"),
            class_="best" if best is not None and trial.number == best.number else trial.status,
        )
        rows.append(row)
    table = tag(
        "table", tag("caption", caption, class_="unseen"), tag("thead", top), tag("tbody", rows), class_="trials list"
    )
    return scrollable(caption, table)


def format_result(trial: Trial) -> str:
    """Return the value of a trial with its error bar, or the status of a trial without a value."""
    if trial.y is None or trial.status == "retracted":
        return {"pending": "waiting", "failed": "failed", "rejected": "rejected"}.get(trial.status, "retracted")
    bars = f" ± {rounded(trial.noise_var**0.5)}" if trial.noise_var else ""
    return rounded(trial.y) + bars
