"""The page of one trial: all digits of its point, and what can be said of it now."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.requests import Request

from gpmi.report.markup import Child, Markup, joined, tag
from gpmi.report.tables import exact
from gpmi.serve.desk import Conflict, Desk
from gpmi.serve.layout import form, hidden, labelled
from gpmi.serve.rows import note_of, result_in_words
from gpmi.text import rounded
from gpmi.trials import Trial

ORIGINS = {"design": "the first design", "policy": "the model", "user": "somebody who measured it without being asked"}


def trial_sheet(request: Request, desk: Desk, trial: Trial, typed: str = "") -> Markup:
    """What is known of a trial, and forms for what may happen to it."""
    rows: list[tuple[str, str]] = [("Result", result_in_words(trial))]
    rows += [("Note", note_of(trial))] if note_of(trial) else []
    rows += [("Row", str(trial.label))] if trial.label is not None else []
    rows += [(one.title, exact(one.of(trial.x))) for one in desk.fields]
    rows.append(("Suggested by", ORIGINS[trial.origin]))
    if trial.mu is not None and trial.sd is not None:
        rows.append(("Expected before", f"{rounded(trial.mu)} ± {rounded(trial.sd)}"))
    rows += [(words, _time(when)) for words, when in (("Asked", trial.asked), ("Ended", trial.ended)) if when]
    body = [tag("tr", tag("th", name, scope="row"), tag("td", words)) for name, words in rows]
    caption = tag("caption", f"Trial {trial.number}", class_="unseen")
    return joined(
        tag("section", tag("table", caption, tag("tbody", body), class_="facts"), class_="card"),
        _words(request, desk, trial, typed),
    )


def _time(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _words(request: Request, desk: Desk, trial: Trial, typed: str) -> Markup:
    """What may be said of a trial, by what has happened to it."""
    able = {
        "pending": ("tell", "fail", "reject", "forget"),
        "told": ("correct", "again", "retract"),
        "failed": ("correct", "retract"),
        "rejected": ("retract",),
        "retracted": ("correct",),
    }[trial.status]
    action = f"/study/{desk.slug}/trial/{trial.number}"
    value = labelled(
        "Result", tag("input", type="text", name="y", value=typed, required=True, placeholder="e.g. 4.1 ± 0.2")
    )
    reason = labelled("Reason", tag("input", type="text", name="why", maxlength="200"))
    forms: dict[str, tuple[str, str, Child]] = {
        "tell": ("Enter its result", "Save", value),
        "fail": ("It failed", "It failed", reason),
        "reject": ("It cannot be done", "Set it aside", tag("p", "It is not offered again.", class_="muted")),
        "forget": ("It was not tried", "Put it back", tag("p", "As if it had not been asked.", class_="muted")),
        "correct": ("The result is wrong", "Correct it", value),
        "again": ("It was measured again", "Add the second measurement", value),
        "retract": ("It should not count", "Take it back", tag("p", "The trial stays in the list.", class_="muted")),
    }
    cards = []
    for word in able:
        title, button, inside = forms[word]
        head = tag("h2", title, id=f"{word}-title")
        sent = form(request, action, hidden("word", word), inside, tag("p", tag("button", button, class_="second")))
        cards.append(tag("section", head, sent, class_="card", aria_labelledby=f"{word}-title"))
    return tag("div", cards, class_="cards")


def conflicts(request: Request, desk: Desk, found: list[tuple[Conflict, str]], kept: list[str]) -> Markup:
    """What was typed for trials that have another outcome meanwhile: people decide what it means."""
    parts: list[Child] = [tag("p", words) for words in kept]
    for conflict, typed in found:
        trial = conflict.trial
        action, at = f"/study/{desk.slug}/trial/{trial.number}", f"y-{trial.number}"
        buttons = [
            tag("button", "Keep both: it was measured twice", name="word", value="again", class_="second"),
            tag("button", "Correct it to what I typed", name="word", value="correct", class_="second"),
        ]
        if trial.status != "told":
            buttons = buttons[: 1 if trial.status == "rejected" else 2]
        inner = form(
            request,
            action,
            labelled("You typed", tag("input", type="text", name="y", value=typed, id=at)),
            tag("p", [[button, " "] for button in buttons]),
        )
        head = tag("h2", f"{str(conflict)[:1].upper()}{str(conflict)[1:]}")
        parts.append(tag("section", head, inner, class_="card"))
    parts.append(tag("p", tag("a", "Leave it as it is", href=f"/study/{desk.slug}")))
    return joined(*parts)
