"""The page of one trial: all digits of its point, and what can be said of it now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.requests import Request

from gpmi._support.text import round_to_sd
from gpmi.serve.layout import form, hidden, labelled, notices
from gpmi.serve.notebook import Typed
from gpmi.serve.numbers import cell
from gpmi.serve.session import Conflict, Desk
from gpmi.serve.trial_table import result_in_words
from gpmi.trials import Trial
from gpmi.views.html.markup import Child, Markup, joined, tag
from gpmi.views.html.tables import exact, note

ORIGINS = {"design": "the first design", "policy": "the model", "user": "somebody who measured it without being asked"}


SAID = {"fail": "it failed", "reject": "it cannot be done", "forget": "put it back", "retract": "take it back"}


@dataclass(frozen=True)
class Wrong:
    """What was typed into a form about one trial and could not be taken."""

    word: str  # which form it was
    typed: str
    problem: str


def trial_sheet(request: Request, desk: Desk, trial: Trial, wrong: Wrong | None = None) -> Markup:
    """What is known of a trial, and forms for what may happen to it."""
    rows: list[tuple[str, str]] = [("Result", result_in_words(trial))]
    notes = note(trial, bars=False)
    rows += [("Note", notes)] if notes else []
    rows += [("Row", str(trial.label))] if trial.label is not None else []
    rows += [(one.title, exact(one.of(trial.x))) for one in desk.fields]
    rows.append(("Suggested by", ORIGINS[trial.origin]))
    if trial.mu is not None and trial.sd is not None:
        rows.append(("Expected before", f"{round_to_sd(trial.mu, trial.sd)} ± {round_to_sd(trial.sd, trial.sd)}"))
    rows += [(words, _time(when)) for words, when in (("Asked", trial.asked), ("Ended", trial.ended)) if when]
    body = [tag("tr", tag("th", name, scope="row"), tag("td", words)) for name, words in rows]
    caption = tag("caption", f"Trial {trial.number}", class_="unseen")
    return joined(
        tag("section", tag("table", caption, tag("tbody", body), class_="facts"), class_="card"),
        _words(request, desk, trial, wrong),
    )


def _time(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _words(request: Request, desk: Desk, trial: Trial, wrong: Wrong | None) -> Markup:
    """What may be said of a trial, by what has happened to it."""
    able = {
        "pending": ("tell", "fail", "reject", "forget"),
        "told": ("correct", "again", "retract"),
        "failed": ("correct", "retract"),
        "rejected": ("retract",),
        "retracted": ("correct",),
    }[trial.status]
    action = f"/study/{desk.slug}/trial/{trial.number}"

    def value(word: str) -> Markup:
        typed = wrong.typed if wrong is not None and wrong.word == word else ""
        hint = "e.g. 4.1 ± 0.2"
        return labelled("Result", tag("input", type="text", name="y", value=typed, required=True, placeholder=hint))

    reason = labelled("Reason", tag("input", type="text", name="why", maxlength="200"))
    forms: dict[str, tuple[str, str, Child]] = {
        "tell": ("Enter its result", "Save", value("tell")),
        "fail": ("It failed", "It failed", reason),
        "reject": ("It cannot be done", "Set it aside", tag("p", "It is not offered again.", class_="muted")),
        "forget": ("It was not tried", "Put it back", tag("p", "As if it had not been asked.", class_="muted")),
        "correct": ("The result is wrong", "Correct it", value("correct")),
        "again": ("It was measured again", "Add the second measurement", value("again")),
        "retract": ("It should not count", "Take it back", tag("p", "The trial stays in the list.", class_="muted")),
    }
    cards = []
    for word in able:
        title, button, inside = forms[word]
        head = tag("h2", title, id=f"{word}-title")
        trouble = tag("p", wrong.problem, class_="problem", role="alert") if wrong and wrong.word == word else None
        press = tag("p", tag("button", button, class_="second"))
        sent = form(request, action, hidden("word", word), trouble, inside, press)
        cards.append(tag("section", head, sent, class_="card", aria_labelledby=f"{word}-title"))
    homeless = [wrong.problem] if wrong is not None and wrong.word not in able else []
    return joined(notices(homeless, "wrong"), tag("div", cards, class_="cards"))


@dataclass(frozen=True)
class Clash:
    """What was said of a trial that has another outcome meanwhile: a result as it was typed, or another word."""

    conflict: Conflict
    typed: str = ""
    word: str = ""
    why: str = ""

    @staticmethod
    def of(conflict: Conflict, typed: str) -> Clash:
        read = cell(typed)
        return Clash(conflict, word="fail", why=read.why or "") if read.failed else Clash(conflict, typed)


def clashes(request: Request, desk: Desk, found: Sequence[Clash], typed: Typed) -> Markup:
    """What people decide, because somebody else was faster. All is one form, so that nothing typed is lost by a click.

    Whoever presses a button decides one case, and saves the cells that could not be read as they stand now.
    """
    wrong = [_wrong(number, words, typed.cells.get(number, "")) for number, words in typed.problems.items()]
    return form(
        request,
        f"/study/{desk.slug}/results",
        tag("button", "Save results", class_="unseen", tabindex="-1"),  # what Enter means: nothing is decided
        [_clash(clash) for clash in found],
        [wrong, tag("p", tag("button", "Save results", class_="main"))] if wrong else None,
        autocomplete="off",
    )


def _clash(clash: Clash) -> Markup:
    trial, words = clash.conflict.trial, str(clash.conflict)
    there, name, able = trial.status in ("told", "failed"), f"y-{trial.number}", dict[str, str]()
    if clash.typed:
        said = labelled("You typed", tag("input", type="text", name=name, value=clash.typed, id=name))
        able["again"] = "Keep both: it was measured twice" if there else "Add it: it was measured"
        able |= {"correct": "Correct it to what I typed"} if there else {}
    else:
        why = f": {clash.why}" if clash.why else ""
        again = hidden(name, f"failed{why}") if clash.word == "fail" else None  # said again, if another case is decided
        said = joined(tag("p", f"You said: {SAID[clash.word]}{why}. Nothing was changed."), again)
        able |= {"retract": "Take its value back"} if clash.word == "fail" and trial.status == "told" else {}
    able["leave"] = "Leave it as it is"
    buttons = [tag("button", text, name=one, value=str(trial.number), class_="second") for one, text in able.items()]
    head = tag("h2", f"{words[:1].upper()}{words[1:]}")
    return tag("section", head, said, tag("div", buttons, class_="together"), class_="card")


def _wrong(number: int, problem: str, typed: str) -> Markup:
    """A cell that could not be read, with what was typed."""
    name = f"y-{number}"
    control = tag("input", type="text", name=name, value=typed, id=name, aria_invalid="true")
    return tag(
        "section", tag("p", problem, class_="problem"), labelled(f"Result of trial {number}", control), class_="card"
    )
