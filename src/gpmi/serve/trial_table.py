"""Tables of trials: the latest results on the page of a study, and the list of all trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from gpmi._support.text import rounded
from gpmi.serve.bench_entry import people, remark_words
from gpmi.serve.output_fields import OutputField, broken
from gpmi.serve.parameter_fields import format_point, format_step
from gpmi.serve.session import Session, StudySnapshot
from gpmi.storage import Annotation
from gpmi.trials import Trial
from gpmi.views.html.markup import Child, Markup, joined, scrollable, tag

RECENT = 8  # outcomes on the page of a study; our choice


def recent_results(session: Session, snapshot: StudySnapshot, marks: Mapping[int, str]) -> Markup:
    """Return the latest outcomes; `marks` are those of `trials_table`."""
    ended = sorted((trial for trial in snapshot.trials if trial.order is not None), key=lambda trial: trial.order or 0)
    last, at = ended[-RECENT:][::-1], f"/study/{session.slug}"
    body: Child = (
        joined(
            trials_table(session, last, marks, "The latest results", snapshot=snapshot),
            tag("p", tag("a", all_of(len(snapshot.trials)), href=f"{at}/trials")),
        )
        if last
        else tag("p", "None yet.", class_="muted")
    )
    return tag(
        "section", tag("h2", "Latest results", id="recent-title"), tag("div", body, id="recent", data_live=True),
        class_="card recent", aria_labelledby="recent-title",
    )  # fmt: skip


def all_of(count: int) -> str:
    """Return the words of the link to the list of trials."""
    return f"All {count} trials" if count != 1 else "The only trial"


def trials_table(
    session: Session,
    trials: Sequence[Trial],
    marks: Mapping[int, str],
    caption: str,
    anchor: str = "",
    snapshot: StudySnapshot | None = None,
    *,
    signed: bool = False,
) -> Markup:
    """Return trials as a table; `anchor` is the beginning of the ids of the rows.

    The trials whose numbers are in `marks` are highlighted, and what stands there is noted. With a snapshot, the table
    has the notes of people; `signed` adds a column that says who did something, and when.
    """
    remarks, outputs = {} if snapshot is None else snapshot.annotations, session.outputs
    by = signed and any(people(remarks.get(trial.number, ())) for trial in trials)
    settings = [field for field in session.fields if field.varies]
    steps = [field for field in session.fields if field.kind == "steps"]
    labels = any(trial.label is not None for trial in trials)
    head = [
        "Trial",
        *(["Row"] if labels else []),
        *(column.title for column in (*settings, *steps, *outputs)),
        *(["By"] if by else []),
        "Note",
    ]
    top = tag("tr", [tag("th", title, scope="col") for title in head])
    rows = []
    for trial in trials:
        link = tag("a", f"#{trial.number}", href=f"/study/{session.slug}/trial/{trial.number}")
        cells = [tag("td", text, data_label=field.title) for field, text in format_point(session.fields, trial.x)]
        cells += [tag("td", format_step(field, trial), data_label=field.title) for field in steps]
        notes = [outputs.notes(trial, marks.get(trial.number, ""))]
        notes += [] if snapshot is None else [beside_words(session, snapshot, trial)]
        is_broken = bool(broken(outputs, trial))
        row = tag(
            "tr",
            tag("th", link, scope="row", data_label="Trial"),
            tag("td", str(trial.label), data_label="Row") if labels else None,
            *cells,
            *_output_cells(outputs, trial),
            tag("td", _signed(remarks.get(trial.number, ()), trial), data_label="By") if by else None,
            tag("td", "; ".join(text for text in notes if text), data_label="Note"),
            class_="best" if trial.number in marks else "unmet" if is_broken else trial.status,
            id=f"{anchor}{trial.number}" if anchor else None,
        )
        rows.append(row)
    table = tag(
        "table", tag("caption", caption, class_="unseen"), tag("thead", top), tag("tbody", rows), class_="trials list"
    )
    return scrollable(caption, table)


def _signed(remarks: tuple[Annotation, ...], trial: Trial) -> str:
    """Return who did something about a trial, and when it ended."""
    names = people(remarks)
    return names if trial.ended is None or not names else f"{names}, {format_time(trial.ended)}"


def format_time(when: float) -> str:
    """Return a time as people write it, in the time zone of the server."""
    return datetime.fromtimestamp(when).astimezone().strftime("%d %b %H:%M")


def format_moment(when: float) -> str:
    """Return a time at the end of a sentence: at 16:19, or on 17 Nov at 16:19 if that was not today."""
    then, today = datetime.fromtimestamp(when).astimezone(), datetime.now().astimezone().date()
    return then.strftime("at %H:%M" if then.date() == today else "on %d %b at %H:%M")


def beside_words(session: Session, snapshot: StudySnapshot, trial: Trial) -> str:
    """Return the values that were suggested, if others were used, and what people wrote."""
    suggested, notes = snapshot.suggested.get(trial.number), []
    if suggested is not None:
        changed = [field for field in session.fields if field.of(suggested) != field.of(trial.x)]
        notes.append("suggested: " + ", ".join(f"{field.name} {field.shown(suggested)}" for field in changed))
    notes.append(remark_words(snapshot.annotations.get(trial.number, ())))
    return "; ".join(text for text in notes if text)


def matches(session: Session, snapshot: StudySnapshot, trial: Trial, words: Sequence[str]) -> bool:
    """Whether all words, in lower case, are somewhere in what the table says about a trial."""
    point = [f"{field.name} {text}" for field, text in format_point(session.fields, trial.x)]
    outputs = [f"{output.title} {output.format(trial) or ''}" for output in session.outputs]
    signed = _signed(snapshot.annotations.get(trial.number, ()), trial)
    parts = [f"#{trial.number}", str(trial.label or ""), trial.status, format_result(trial), *point, *outputs]
    parts += [session.outputs.notes(trial), beside_words(session, snapshot, trial), signed]
    text = " ".join(parts).casefold()
    return all(word in text for word in words)


def _output_cells(outputs: Sequence[OutputField], trial: Trial) -> list[Markup]:
    """Return a cell for each output; one for all of them if there is none."""
    if not trial.outputs:
        span = None if len(outputs) == 1 else str(len(outputs))
        return [tag("td", format_result(trial), data_label="Result", class_="strong", colspan=span)]
    return [
        tag("td", output.format(trial) or tag("span", output.format_or_missing(trial), class_="muted"),
            data_label=output.title, class_="strong broken" if output.is_broken(trial) else "strong")
        for output in outputs
    ]  # fmt: skip


def format_result(trial: Trial) -> str:
    """Return the value of a trial with its error bar, or the status of a trial without a value."""
    if trial.curve and trial.status in ("pending", "stopped"):
        step, why = trial.curve[-1].step, (trial.why or "").partition(":")[0]
        return f"running, at step {step}" if trial.status == "pending" else _with(f"stopped at step {step}", why)
    if trial.y is None or trial.status == "retracted":
        words = {"pending": "waiting", "stopped": "stopped", "failed": "failed", "rejected": "skipped"}
        return words.get(trial.status, "retracted")
    bars = f" ± {rounded(trial.noise_var**0.5)}" if trial.noise_var else ""
    return rounded(trial.y) + bars


def _with(text: str, why: str) -> str:
    return f"{text}: {why}" if why else text
