"""Trials as rows of a table to look at."""

from __future__ import annotations

from collections.abc import Sequence

from gpmi._support.text import rounded
from gpmi.serve.fields import values_in_words
from gpmi.serve.session import Desk, Look
from gpmi.trials import Trial
from gpmi.views.html.markup import Child, Markup, joined, tag
from gpmi.views.html.tables import note

RECENT = 8  # outcomes on the page of a study; our choice


def recent(desk: Desk, look: Look, at: str) -> Markup:
    ended = sorted((trial for trial in look.trials if trial.order is not None), key=lambda one: one.order or 0)
    last = ended[-RECENT:][::-1]
    body: Child = (
        joined(
            trials_table(desk, last, look.best, at, "The last results"),
            tag("p", tag("a", f"All {len(look.trials)} trials", href=f"{at}/trials")),
        )
        if last
        else tag("p", "None yet.", class_="muted")
    )
    return tag(
        "section", tag("h2", "Last results", id="recent-title"), tag("div", body, id="recent", data_live=True),
        class_="card recent", aria_labelledby="recent-title",
    )  # fmt: skip


def trials_table(desk: Desk, trials: Sequence[Trial], best: Trial | None, at: str, caption: str) -> Markup:
    shown = [one for one in desk.fields if one.kind != "constant"]
    labels = any(trial.label is not None for trial in trials)
    head = ["Trial", *(["Row"] if labels else []), *(one.title for one in shown), "Result", "Note"]
    top = tag("tr", [tag("th", words, scope="col") for words in head])
    rows = []
    for trial in trials:
        link = tag("a", f"#{trial.number}", href=f"{at}/trial/{trial.number}")
        cells = [tag("td", words, data_label=one.title) for one, words in values_in_words(desk.fields, trial.x)]
        row = tag(
            "tr",
            tag("th", link, scope="row", data_label="Trial"),
            tag("td", str(trial.label), data_label="Row") if labels else None,
            *cells,
            tag("td", result_in_words(trial), data_label="Result", class_="strong"),
            tag("td", note(trial, bars=False), data_label="Note"),
            class_="best" if best is not None and trial.number == best.number else trial.status,
        )
        rows.append(row)
    table = tag(
        "table", tag("caption", caption, class_="unseen"), tag("thead", top), tag("tbody", rows), class_="trials list"
    )
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


def result_in_words(trial: Trial) -> str:
    if trial.y is None or trial.status == "retracted":
        return {"pending": "waits", "failed": "failed", "rejected": "set aside"}.get(trial.status, "taken back")
    bars = f" ± {rounded(trial.noise_var**0.5)}" if trial.noise_var else ""
    return rounded(trial.y) + bars
