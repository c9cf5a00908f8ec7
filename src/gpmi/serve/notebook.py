"""The page of a study: what to try next and a table to type results into, what is known, and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request

from gpmi.report.markup import Child, Markup, joined, tag
from gpmi.serve.desk import BATCH, Desk, Look
from gpmi.serve.fields import Field, values_in_words
from gpmi.serve.layout import form, hidden, labelled, select
from gpmi.serve.live import Live
from gpmi.text import rounded
from gpmi.trials import Trial
from gpmi.types import Point

RECENT = 8  # outcomes on the page of a study; our choice
SHOWN = 200  # points that wait for a result on one page, at most; our choice
HEADS = {"stop": "You may stop", "go on": "Go on", "distrust": "Do not trust the model yet"}


@dataclass(frozen=True)
class Typed:
    """What was typed and could not be taken, shown again where it was typed."""

    cells: Mapping[int, str] = field(default_factory=dict)  # by the number of the trial
    problems: Mapping[int, str] = field(default_factory=dict)
    pasted: str = ""
    paste_problem: str = ""
    asked: Mapping[str, str] = field(default_factory=dict)
    ask_problem: str = ""
    own: Mapping[str, str] = field(default_factory=dict)
    own_problem: str = ""


def notebook(request: Request, desk: Desk, look: Look, live: Live, typed: Typed) -> Markup:
    """Everything below the heading."""
    at = f"/study/{desk.slug}"
    return joined(
        tag("div", next_to_try(request, desk, look, typed, at), known(desk, look, live, at), class_="columns"),
        recent(desk, look, at),
        pictures(live),
    )


# What to try


def next_to_try(request: Request, desk: Desk, look: Look, typed: Typed, at: str) -> Markup:
    waiting = look.waiting[:SHOWN]
    table = form(
        request,
        f"{at}/results",
        hidden("order", ",".join(str(trial.number) for trial in waiting)),
        tag("button", "Save results", class_="unseen", tabindex="-1"),  # what Enter means
        _table(desk, waiting, typed),
        _paste(typed, len(waiting)) if len(waiting) > 1 else None,
        tag("p", tag("button", "Save results", class_="main")),
        id="results",
        autocomplete="off",
    )
    nothing = tag("p", "Nothing waits for a result. Ask for the next experiments below.", class_="empty")
    return tag(
        "section",
        tag("h2", "Next to try", id="next-title"),
        tag("div", table if waiting else nothing, id="waiting", data_live="rows"),
        _asking(request, desk, look, typed, at, first=not waiting),
        tag("div", _with_programs(desk, look), id="running", data_live=True),
        _own(request, desk, typed, at),
        class_="card next",
        aria_labelledby="next-title",
    )


def _table(desk: Desk, waiting: Sequence[Trial], typed: Typed) -> Markup:
    shown = [one for one in desk.fields if one.kind != "constant"]
    labels = any(trial.label is not None for trial in waiting)
    head = ["Trial", *(["Row"] if labels else []), *(one.title for one in shown), "Result"]
    top = tag("tr", [tag("th", words, scope="col") for words in head])
    body = [_row(desk, trial, labels, typed) for trial in waiting]
    caption = tag("caption", "Experiments to do, with a place for each result", class_="unseen")
    return tag("table", caption, tag("thead", top), tag("tbody", body), class_="sheet")


def _row(desk: Desk, trial: Trial, labels: bool, typed: Typed) -> Markup:
    number = trial.number
    problem = typed.problems.get(number)
    control = tag(
        "input",
        type="text",
        id=f"y-{number}",
        name=f"y-{number}",
        value=typed.cells.get(number, ""),
        inputmode="text",
        aria_label=f"Result of trial {number}",
        aria_invalid="true" if problem else None,
        aria_describedby=f"problem-{number}" if problem else None,
        placeholder="e.g. 4.1",
        class_="result",
    )
    given = set(trial.fixed or ())
    cells = [
        tag("td", words, tag("small", " given", class_="given") if one.key in given else None, data_label=one.title)
        for one, words in values_in_words(desk.fields, trial.x)
    ]
    trouble = tag("p", problem, id=f"problem-{number}", class_="problem") if problem else None
    return tag(
        "tr",
        tag("th", f"#{number}", scope="row", data_label="Trial"),
        tag("td", str(trial.label), data_label="Row") if labels else None,
        *cells,
        tag("td", control, trouble, _no_result(number), data_label="Result", class_="entry"),
        id=f"row-{number}",
        data_number=str(number),
    )


def _no_result(number: int) -> Markup:
    """What else may be said of a trial."""
    n = str(number)
    return tag(
        "details",
        tag("summary", "No result?", aria_label=f"No result of trial {number}?"),
        labelled("Reason, if it failed", tag("input", type="text", name=f"why-{n}", maxlength="200")),
        tag("p", tag("button", "It failed", name="fail", value=n), " the region is avoided from now on"),
        tag("p", tag("button", "Cannot be done", name="reject", value=n), " it is not offered again"),
        tag("p", tag("button", "Put back", name="forget", value=n), " as if it had not been asked"),
        class_="more",
    )


def _paste(typed: Typed, count: int) -> Markup:
    area = tag(
        "textarea", typed.pasted, name="pasted", id="pasted", rows="5", placeholder="4.1\n3,8\nfailed: pump stopped"
    )
    return tag(
        "details",
        tag("summary", "Paste a column from a spreadsheet"),
        tag("p", typed.paste_problem, class_="problem", role="alert") if typed.paste_problem else None,
        labelled(
            f"One result in each line, from the first row to the last ({count} rows)",
            area,
            "An empty line is no result yet; “failed” with a reason is a failure. Two columns are a trial and its "
            "result.",
        ),
        open=bool(typed.paste_problem) or None,
        class_="more",
    )


def _asking(request: Request, desk: Desk, look: Look, typed: Typed, at: str, *, first: bool) -> Markup:
    said = typed.asked
    count = tag(
        "input", type="number", name="n", value=said.get("n", "1"), min="1", max=str(BATCH), id="n", required=True
    )
    given = [_control(one, "given", said) for one in desk.fields if one.kind != "constant"]
    left = None if look.budget is None else max(0, look.budget - len(look.trials))
    words = "Suggest experiments" if first else "Suggest more"
    return form(
        request,
        f"{at}/ask",
        tag("p", typed.ask_problem, class_="problem", role="alert") if typed.ask_problem else None,
        tag(
            "div",
            labelled("How many?", count, class_="field short"),
            tag("button", words, class_="main" if first else "second"),
            class_="together",
        ),
        tag("p", f"{left} left of the {look.budget} that were planned.", class_="muted") if left is not None else None,
        tag(
            "details",
            tag("summary", "Is something given today?"),
            tag(
                "p",
                "Fill in what you cannot choose, such as today's temperature. The rest is chosen for it.",
                class_="muted",
            ),
            tag("div", given, class_="grid"),
            open=any(key.startswith("given-") and value for key, value in said.items()) or None,
            class_="more",
        ),
        id="ask",
        data_busy="Thinking …",
    )


def _control(one: Field, kind: str, said: Mapping[str, str]) -> Markup:
    """Where the value of a parameter is typed or chosen."""
    name = f"{kind}-{one.key}"
    chosen = said.get(name, "")
    if one.kind == "choice":
        options = [("", "–"), *((str(option), str(option)) for option in one.options)]
        return labelled(one.title, select(name, options, chosen))
    hint = None if one.lo is None or one.hi is None else f"{one.shown(one.lo)} to {one.shown(one.hi)}"
    return labelled(one.title, tag("input", type="text", name=name, value=chosen, inputmode="text"), hint)


def _with_programs(desk: Desk, look: Look) -> Child:
    running = look.running
    if not running:
        return None
    more = "" if len(running) <= 20 else ", …"
    names = ", ".join(f"#{trial.number}" for trial in running[:20]) + more
    word = "experiment is" if len(running) == 1 else "experiments are"
    return tag("p", f"{len(running)} {word} with programs just now: {names}.", class_="muted")


def _own(request: Request, desk: Desk, typed: Typed, at: str) -> Markup:
    said = typed.own
    fields = [_control(one, "own", said) for one in desk.fields if one.kind != "constant"]
    result = tag("input", type="text", name="own-result", value=said.get("own-result", ""))
    return tag(
        "details",
        tag("summary", "Add a measurement of your own"),
        tag("p", typed.own_problem, class_="problem", role="alert") if typed.own_problem else None,
        form(
            request,
            f"{at}/observe",
            tag("p", "Something that was measured without being suggested.", class_="muted"),
            tag("div", fields, labelled("Result", result), class_="grid"),
            tag("p", tag("button", "Add it", class_="second")),
        ),
        open=bool(typed.own_problem) or None,
        class_="more",
    )


# What is known


def known(desk: Desk, look: Look, live: Live, at: str) -> Markup:
    counts = {status: sum(trial.status == status for trial in look.trials) for status in ("told", "failed", "pending")}
    word = "Largest" if desk.goal == "max" else "Smallest"
    parts: list[Child] = []
    if look.best is None:
        parts.append(tag("p", "Nothing has been measured yet.", class_="empty"))
    else:
        best = look.best
        label = "" if best.label is None else f", row {best.label}"
        parts += [
            tag("p", f"{word} result so far", class_="muted over"),
            tag("p", rounded(best.y), class_="big"),
            tag("p", tag("a", f"trial {best.number}", href=f"{at}/trial/{best.number}"), label, class_="muted"),
            _point(desk, best.x),
        ]
    parts.append(_believed(desk, live))
    done = counts["told"] + counts["failed"]
    tally = [f"{counts['told']} results", f"{counts['pending']} waiting"]
    tally += [f"{counts['failed']} failed"] if counts["failed"] else []
    parts.append(tag("p", " · ".join(tally), class_="tally"))
    if look.budget is not None:
        parts.append(
            tag(
                "label",
                tag("span", f"{done} of {look.budget} planned"),
                tag("progress", value=str(min(done, look.budget)), max=str(look.budget)),
                class_="field",
            )
        )
    inner = tag("div", parts, id="known", data_live=True)
    return tag(
        "aside", tag("h2", "What is known", id="known-title"), inner, class_="card known", aria_labelledby="known-title"
    )


def _point(desk: Desk, x: Point) -> Markup:
    items = [
        tag("div", tag("dt", one.name), tag("dd", f"{words} {one.unit}".strip()))
        for one, words in values_in_words(desk.fields, x)
    ]
    return tag("dl", items)


def _believed(desk: Desk, live: Live) -> Child:
    """What the model says, as far as it has been computed."""
    if live.known is None:
        return tag("p", "Working out what this tells …", class_="muted working")
    seq, now = live.known
    parts: list[Child] = []
    if now.recommended is not None and now.believed is not None:
        low, middle, high = now.believed
        parts += [
            tag("h3", "The point to use"),
            _point(desk, now.recommended),
            tag("p", f"There {rounded(middle)} is expected, {rounded(min(low, high))} to {rounded(max(low, high))}."),
        ]
    if now.interval is not None and now.t > 1:
        bound = tag("strong", f"{now.interval[1]:.3g}")
        parts.append(
            tag(
                "p",
                "It falls short of the best there is by at most ",
                bound,
                ", with probability 95 %, as far as the model can know.",
            )
        )
    elif now.regret and now.t:
        parts.append(tag("p", f"How far that is from the best there is: {now.regret}."))
    sentence = now.why[:1].upper() + now.why[1:] + "."
    parts.append(
        tag("p", tag("strong", f"{HEADS[now.advice]}. "), sentence, class_=f"advice {now.advice.replace(' ', '-')}")
    )
    if live.trouble:
        parts.append(tag("p", f"The model could not be computed: {live.trouble}", class_="problem"))
    if seq < live.state["seq"]:
        parts.append(tag("p", "Working out what the last results tell …", class_="muted working"))
    return parts


# What came in


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
        class_="card", aria_labelledby="recent-title",
    )  # fmt: skip


def trials_table(desk: Desk, trials: Sequence[Trial], best: Trial | None, at: str, caption: str) -> Markup:
    shown = [one for one in desk.fields if one.kind != "constant"]
    labels = any(trial.label is not None for trial in trials)
    head = ["Trial", *(["Row"] if labels else []), *(one.title for one in shown), "Result", "Note"]
    top = tag("tr", [tag("th", words, scope="col") for words in head])
    rows = []
    for trial in trials:
        link = tag("a", f"#{trial.number}", href=f"{at}/trial/{trial.number}")
        cells = [
            tag("td", words, data_label=one.title, class_="number" if one.kind != "choice" else None)
            for one, words in values_in_words(desk.fields, trial.x)
        ]
        row = tag(
            "tr",
            tag("th", link, scope="row", data_label="Trial"),
            tag("td", str(trial.label), data_label="Row") if labels else None,
            *cells,
            tag("td", result_in_words(trial), data_label="Result", class_="number strong"),
            tag("td", note_of(trial), data_label="Note"),
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


def note_of(trial: Trial) -> str:
    notes = [trial.why or ""]
    if trial.y_before is not None:
        notes.append(f"was {rounded(trial.y_before)}")
    if trial.status == "told" and not trial.feasible:
        notes.append("breaks a constraint")
    if trial.repeats != 1:
        notes.append(f"mean of {trial.repeats}")
    if trial.fixed:
        notes.append("given: " + ", ".join(f"{_named(key)} = {_short(value)}" for key, value in trial.fixed.items()))
    return "; ".join(note for note in notes if note)


def _named(key: Any) -> str:
    return key if isinstance(key, str) else f"x{key}"


def _short(value: Any) -> str:
    return rounded(value) if isinstance(value, float) else str(value)


def pictures(live: Live) -> Markup:
    if live.pictures is None:
        inner: Child = tag("p", "Pictures are being drawn …", class_="muted working")
    else:
        inner = [
            tag("section", tag("h2", one.title, id=f"{one.id}-title"), Markup(one.html), id=one.id, class_="card",
                aria_labelledby=f"{one.id}-title")
            for one in live.pictures[1]
        ]  # fmt: skip
    return tag("div", inner, id="pictures", data_live=True)
