"""Tables of trials: the latest results on the page of a study, and the list of all trials."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from gpmi._support.text import VALUE, rounded, shortened
from gpmi.serve.bench_entry import people, remark_words
from gpmi.serve.live_updates import LiveUpdates
from gpmi.serve.model_worker import StudySummary
from gpmi.serve.output_fields import OutputField
from gpmi.serve.parameter_fields import format_point, format_step
from gpmi.serve.session import Session, StudySnapshot
from gpmi.storage.annotations import Annotation
from gpmi.trials import Trial
from gpmi.trials.goal_summary import told_front
from gpmi.views.html.markup import Child, Markup, joined, scrollable, tag
from gpmi.views.html.trials import note

RECENT = 8  # outcomes on the page of a study; our choice


def recent_results(session: Session, snapshot: StudySnapshot, live: LiveUpdates, at: str) -> Markup:
    ended = sorted((trial for trial in snapshot.trials if trial.order is not None), key=lambda one: one.order or 0)
    last = ended[-RECENT:][::-1]
    body: Child = (
        joined(
            trials_table(
                session, last, distinguished(session, snapshot, live), at, "The latest results", snapshot=snapshot
            ),
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


def distinguished(session: Session, snapshot: StudySnapshot, live: LiveUpdates) -> Collection[int]:
    """Return the numbers of the trials that are marked: the best one, or the front."""
    if session.has_front:
        return front_numbers(session, snapshot, live)
    return () if snapshot.best is None else (snapshot.best.number,)


def front_numbers(session: Session, snapshot: StudySnapshot, live: LiveUpdates) -> Collection[int]:
    """Return the numbers of the trials on the front: that of the model, or of the values told while it is computed."""
    now = current_front(snapshot, live)
    if now is not None and now.front is not None:
        return now.front
    return {trial.number for trial in told_front(snapshot.trials, session.goals, session.space)}


def current_front(snapshot: StudySnapshot, live: LiveUpdates) -> StudySummary | None:
    """Return the summary with the front of the model; None if it is not computed for the trials that are shown."""
    if live.summary is None or live.summary[0] < snapshot.seq or live.summary[1].front is None:
        return None
    return live.summary[1]


def trials_table(
    session: Session,
    trials: Sequence[Trial],
    marked: Collection[int],
    at: str,
    caption: str,
    anchor: str = "",
    snapshot: StudySnapshot | None = None,
    *,
    signed: bool = False,
) -> Markup:
    """Return trials as a table. Those in `marked` are highlighted; `anchor` is the beginning of the ids of the rows.

    With a snapshot, the table has the notes of people; `signed` adds a column that says who did something, and when.
    """
    remarks = {} if snapshot is None else snapshot.annotations
    by = signed and any(people(remarks.get(trial.number, ())) for trial in trials)
    shown = [one for one in session.fields if one.varies]
    steps = [one for one in session.fields if one.kind == "steps"]
    labels = any(trial.label is not None for trial in trials)
    titles = [one.title for one in session.outputs]
    head = [
        "Trial",
        *(["Row"] if labels else []),
        *(one.title for one in (*shown, *steps)),
        *titles,
        *(["By"] if by else []),
        "Note",
    ]
    top = tag("tr", [tag("th", title, scope="col") for title in head])
    rows = []
    for trial in trials:
        link = tag("a", f"#{trial.number}", href=f"{at}/trial/{trial.number}")
        cells = [tag("td", text, data_label=one.title) for one, text in format_point(session.fields, trial.x)]
        cells += [tag("td", format_step(one, trial), data_label=one.title) for one in steps]
        is_marked, own = trial.number in marked, remarks.get(trial.number, ())
        words = notes_of(session.outputs, trial, on_front=is_marked and session.has_front)
        also = "" if snapshot is None else beside_words(session, snapshot, trial)
        row = tag(
            "tr",
            tag("th", link, scope="row", data_label="Trial"),
            tag("td", str(trial.label), data_label="Row") if labels else None,
            *cells,
            *_output_cells(session.outputs, trial),
            tag("td", _signed(own, trial), data_label="By") if by else None,
            tag("td", "; ".join(one for one in (words, also) if one), data_label="Note"),
            class_="best" if is_marked else "unmet" if _broken(session.outputs, trial) else trial.status,
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
        changed = [one for one in session.fields if one.of(suggested) != one.of(trial.x)]
        notes.append("suggested: " + ", ".join(f"{one.name} {one.shown(suggested)}" for one in changed))
    notes.append(remark_words(snapshot.annotations.get(trial.number, ())))
    return "; ".join(one for one in notes if one)


def matches(session: Session, snapshot: StudySnapshot, trial: Trial, words: Sequence[str]) -> bool:
    """Whether all words, in lower case, are somewhere in what the table says about a trial."""
    point = [f"{one.name} {text}" for one, text in format_point(session.fields, trial.x)]
    outputs = [f"{one.title} {one.format(trial) or ''}" for one in session.outputs]
    own = snapshot.annotations.get(trial.number, ())
    parts = [f"#{trial.number}", str(trial.label or ""), trial.status, format_result(trial), *point, *outputs]
    parts += [notes_of(session.outputs, trial), beside_words(session, snapshot, trial), _signed(own, trial)]
    text = " ".join(parts).casefold()
    return all(word in text for word in words)


def _output_cells(outputs: Sequence[OutputField], trial: Trial) -> list[Markup]:
    """Return a cell for each output; one for all of them if there is none."""
    if not trial.outputs:
        span = None if len(outputs) == 1 else str(len(outputs))
        return [tag("td", format_result(trial), data_label="Result", class_="strong", colspan=span)]
    return [
        tag("td", one.format(trial) or tag("span", one.format_or_missing(trial), class_="muted"), data_label=one.title,
            class_="strong broken" if one.is_broken(trial) else "strong")
        for one in outputs
    ]  # fmt: skip


def _broken(outputs: Sequence[OutputField], trial: Trial) -> list[OutputField]:
    return [one for one in outputs if trial.status == "told" and one.is_broken(trial)]


def notes_of(outputs: Sequence[OutputField], trial: Trial, *, on_front: bool = False) -> str:
    """Return what else is known about a trial, in words: the front, broken limits, and what it was before."""
    if outputs[0].name is None:
        return note(trial, bars=False)
    own = replace(trial, unmet=(), y_before=None, constraints=())  # what `note` says of runs without goals
    before = {} if trial.outputs_before is None else trial.outputs_before
    changed = {name: y for name, y in before.items() if trial.outputs.get(name) != y}
    notes = ["on the front" if on_front else "", *(one.problem(trial) for one in _broken(outputs, trial))]
    notes.append("was " + ", ".join(f"{shortened(name, VALUE)} {rounded(y)}" for name, y in changed.items()))
    return "; ".join(one for one in (*notes, note(own, bars=False)) if one and one != "was ")


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
