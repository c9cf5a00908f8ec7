"""The page of a study: a table to enter results, a form to ask for suggestions, the summary and the pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from starlette.requests import Request

from gpmi.serve.live_updates import LiveUpdates
from gpmi.serve.page_layout import form, hidden, labelled, notices, select
from gpmi.serve.parameter_fields import ParameterField, format_point
from gpmi.serve.session import MAX_BATCH, Session, StudySnapshot
from gpmi.serve.summary import pictures, summary_card
from gpmi.serve.trial_table import recent_results
from gpmi.trials import Trial
from gpmi.views.html.markup import Child, Markup, joined, tag

MAX_ROWS = 200  # trials waiting for a result that one page shows; our choice
MAX_NAMED = 20  # running trials that are listed by number; our choice


@dataclass(frozen=True)
class InvalidInput:
    """Input that could not be saved. It is shown again where it was typed, with what is wrong."""

    cells: Mapping[int, str] = field(default_factory=dict)  # by the number of the trial
    problems: Mapping[int, str] = field(default_factory=dict)
    pasted: str = ""
    paste_problem: str = ""
    asked: Mapping[str, str] = field(default_factory=dict)
    ask_problem: str = ""
    own: Mapping[str, str] = field(default_factory=dict)
    own_problem: str = ""


def study_body(
    request: Request, session: Session, snapshot: StudySnapshot, live: LiveUpdates, rejected: InvalidInput
) -> Markup:
    """Return everything below the heading."""
    at = f"/study/{session.slug}"
    return joined(
        tag(
            "div",
            next_to_try(request, session, snapshot, rejected, at),
            summary_card(session, snapshot, live, at),
            recent_results(session, snapshot, at),
            class_="columns",
        ),
        pictures(live),
    )


# Results


def next_to_try(request: Request, session: Session, snapshot: StudySnapshot, rejected: InvalidInput, at: str) -> Markup:
    """Return the table of waiting trials with a cell for each result, and the forms below it."""
    waiting = snapshot.waiting[:MAX_ROWS]
    table = form(
        request,
        f"{at}/results",
        hidden("order", ",".join(str(trial.number) for trial in waiting)),
        tag("button", "Save results", class_="unseen", tabindex="-1"),  # the button that Enter presses
        _table(session, waiting, rejected),
        _paste_box(rejected, len(waiting)) if len(waiting) > 1 else None,
        tag("p", tag("button", "Save results", class_="main")),
        id="results",
        autocomplete="off",
    )
    shown = {trial.number for trial in waiting}
    without_row = [
        f"{problem} You typed: {rejected.cells[number]}" if number in rejected.cells else problem
        for number, problem in rejected.problems.items()
        if number not in shown
    ]
    nothing = tag("p", "No experiment is waiting for a result. Ask for suggestions below.", class_="empty")
    return tag(
        "section",
        tag("h2", "Next to try", id="next-title"),
        notices(without_row, "wrong"),
        tag("div", table if waiting else nothing, id="waiting", data_live="rows"),
        _ask_form(request, session, snapshot, rejected, at, first=not waiting),
        tag("div", _running(snapshot), id="running", data_live=True),
        _own_measurement(request, session, rejected, at),
        class_="card next",
        aria_labelledby="next-title",
    )


def _table(session: Session, waiting: Sequence[Trial], rejected: InvalidInput) -> Markup:
    shown = [one for one in session.fields if one.kind != "constant"]
    labels = any(trial.label is not None for trial in waiting)
    head = ["Trial", *(["Row"] if labels else []), *(one.title for one in shown), "Result"]
    top = tag("tr", [tag("th", title, scope="col") for title in head])
    body = [_row(session, trial, labels, rejected) for trial in waiting]
    caption = tag("caption", "Experiments to do, with a cell for each result", class_="unseen")
    return tag("table", caption, tag("thead", top), tag("tbody", body), class_="sheet")


def _row(session: Session, trial: Trial, labels: bool, rejected: InvalidInput) -> Markup:
    number = trial.number
    problem = rejected.problems.get(number)
    control = tag(
        "input",
        type="text",
        id=f"y-{number}",
        name=f"y-{number}",
        value=rejected.cells.get(number, ""),
        inputmode="text",
        aria_label=f"Result of trial {number}",
        aria_invalid="true" if problem else None,
        aria_describedby=f"problem-{number}" if problem else None,
        placeholder="e.g. 4.1",
        class_="result",
    )
    fixed = set(trial.fixed or ())
    cells = [
        tag(
            "td",
            tag("span", text, tag("small", " fixed", class_="fixed") if one.key in fixed else None),
            data_label=one.title,
        )
        for one, text in format_point(session.fields, trial.x)
    ]
    message = tag("p", problem, id=f"problem-{number}", class_="problem") if problem else None
    return tag(
        "tr",
        tag("th", f"#{number}", scope="row", data_label="Trial"),
        tag("td", str(trial.label), data_label="Row") if labels else None,
        *cells,
        tag("td", control, message, _no_result(number), data_label="Result", class_="entry"),
        id=f"row-{number}",
        data_number=str(number),
    )


def _no_result(number: int) -> Markup:
    """Return the buttons for a trial that has no result."""
    n = str(number)
    return tag(
        "details",
        tag("summary", "No result?", aria_label=f"No result of trial {number}?"),
        labelled("Reason, if it failed", tag("input", type="text", name=f"why-{n}", maxlength="200")),
        tag("p", tag("button", "It failed", name="fail", value=n), " similar experiments are avoided from now on"),
        tag("p", tag("button", "Cannot be done", name="reject", value=n), " it is not suggested again"),
        tag("p", tag("button", "Withdraw", name="forget", value=n), " as if it had never been suggested"),
        class_="more",
    )


def _paste_box(rejected: InvalidInput, count: int) -> Markup:
    area = tag(
        "textarea", rejected.pasted, name="pasted", id="pasted", rows="5", placeholder="4.1\n3,8\nfailed: pump stopped"
    )
    return tag(
        "details",
        tag("summary", "Paste a column from a spreadsheet"),
        tag("p", rejected.paste_problem, class_="problem", role="alert") if rejected.paste_problem else None,
        labelled(
            f"One result per line, from the first row to the last ({count} rows)",
            area,
            "Leave a line empty if there is no result yet. Write “failed” and a reason for a failure. With two "
            "columns, the first is the number of the trial.",
        ),
        open=bool(rejected.paste_problem) or None,
        class_="more",
    )


# Suggestions


def _ask_form(
    request: Request, session: Session, snapshot: StudySnapshot, rejected: InvalidInput, at: str, *, first: bool
) -> Markup:
    typed = rejected.asked
    count = tag(
        "input", type="number", name="n", value=typed.get("n", "1"), min="1", max=str(MAX_BATCH), id="n", required=True
    )
    controls = [_control(one, "given", typed) for one in session.fields if one.kind != "constant"]
    left = None if snapshot.budget is None else max(0, snapshot.budget - len(snapshot.trials))
    plan = f"{left} of the {snapshot.budget} planned experiments are left."
    return form(
        request,
        f"{at}/ask",
        tag("p", rejected.ask_problem, class_="problem", role="alert") if rejected.ask_problem else None,
        tag(
            "div",
            labelled("How many?", count, class_="field short"),
            tag("button", "Suggest experiments" if first else "Suggest more", class_="main" if first else "second"),
            class_="together",
        ),
        tag("p", plan, class_="muted") if left is not None else None,
        tag(
            "details",
            tag("summary", "Is anything fixed today?"),
            tag(
                "p",
                "Fill in what you cannot choose, such as today's temperature. Everything else is chosen to suit it.",
                class_="muted",
            ),
            tag("div", controls, class_="grid"),
            open=any(key.startswith("given-") and value for key, value in typed.items()) or None,
            class_="more",
        ),
        id="ask",
        data_busy="Computing …",
    )


def _control(one: ParameterField, prefix: str, typed: Mapping[str, str]) -> Markup:
    """Return the control for the value of a parameter."""
    name = f"{prefix}-{one.key}"
    value = typed.get(name, "")
    if one.kind == "choice":
        options = [("", "–"), *((str(option), str(option)) for option in one.options)]
        return labelled(one.title, select(name, options, value))
    hint = None if one.lo is None or one.hi is None else f"{one.format(one.lo)} to {one.format(one.hi)}"
    return labelled(one.title, tag("input", type="text", name=name, value=value, inputmode="text"), hint)


def _running(snapshot: StudySnapshot) -> Child:
    running = snapshot.running
    if not running:
        return None
    more = "" if len(running) <= MAX_NAMED else ", …"
    numbers = ", ".join(f"#{trial.number}" for trial in running[:MAX_NAMED]) + more
    subject = "experiment is" if len(running) == 1 else "experiments are"
    return tag("p", f"{len(running)} {subject} being run by programs: {numbers}.", class_="muted")


def _own_measurement(request: Request, session: Session, rejected: InvalidInput, at: str) -> Markup:
    typed = rejected.own
    controls = [_control(one, "own", typed) for one in session.fields if one.kind != "constant"]
    result = tag("input", type="text", name="own-result", value=typed.get("own-result", ""))
    return tag(
        "details",
        tag("summary", "Add a measurement of your own"),
        tag("p", rejected.own_problem, class_="problem", role="alert") if rejected.own_problem else None,
        form(
            request,
            f"{at}/observe",
            tag("p", "For an experiment that was not suggested.", class_="muted"),
            tag("div", controls, labelled("Result", result), class_="grid"),
            tag("p", tag("button", "Add it", class_="second")),
        ),
        open=bool(rejected.own_problem) or None,
        class_="more",
    )
