"""The page of a study: what to try next and a table to type results into, what is known, and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from starlette.requests import Request

from gpmi.serve.fields import Field, values_in_words
from gpmi.serve.layout import form, hidden, labelled, notices, select
from gpmi.serve.live import Live
from gpmi.serve.session import BATCH, Desk, Look
from gpmi.serve.summary import known, pictures
from gpmi.serve.trial_table import recent
from gpmi.trials import Trial
from gpmi.views.html.markup import Child, Markup, joined, tag

SHOWN = 200  # points that wait for a result on one page, at most; our choice


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
        tag(
            "div",
            next_to_try(request, desk, look, typed, at),
            known(desk, look, live, at),
            recent(desk, look, at),
            class_="columns",
        ),
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
    shown = {trial.number for trial in waiting}
    elsewhere = [
        f"{words} You typed: {typed.cells[number]}" if number in typed.cells else words
        for number, words in typed.problems.items()
        if number not in shown
    ]
    nothing = tag("p", "Nothing waits for a result. Ask for the next experiments below.", class_="empty")
    return tag(
        "section",
        tag("h2", "Next to try", id="next-title"),
        notices(elsewhere, "wrong"),
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
