"""The page of a study: a table to enter results, a form to ask for suggestions, the summary, front and pictures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from gpmi.serve.bench_entry import REMEMBERED, can_be_moved, entry_fold, remembered_name, used_control, who_field
from gpmi.serve.front_page import ChoiceInput, choice_card, front_card
from gpmi.serve.live_updates import LiveUpdates
from gpmi.serve.output_fields import Cell, OutputField
from gpmi.serve.page_layout import Refusal, form, hidden, labelled, notices, select
from gpmi.serve.parameter_fields import ParameterField
from gpmi.serve.session import MAX_BATCH, Session, StudySnapshot
from gpmi.serve.summary import pictures, summary_card
from gpmi.serve.trial_table import recent_results
from gpmi.trials import Trial
from gpmi.views.html.markup import Child, Markup, joined, scrollable, tag

MAX_ROWS = 200  # trials waiting for a result that one page shows; our choice
MAX_CELLS = 2400  # fields of these trials; with those that lack outputs below MAX_FIELDS of a form; our choice
BESIDE = 3  # fields of a row besides its outputs and parameters: a note, files, and a reason
SHOWN = 2  # trials that a narrow page shows at first; lab.css has the same number; our choice
MAX_COLUMNS = 9  # of a table that does not scroll; our choice
LETTER, PADDING = 9.0, 13.0  # pixels of a letter and between columns; measured once in Chromium
BESIDE_KNOWN = 800.0  # pixels that a table has beside "What is known" on a page of 1280; a wider one goes above it
COUNT = "gpmi_n"  # the cookie with the number of suggestions that were asked for last
FAILED = "It failed because of these settings"
ACCIDENT = "A mishap, such as a broken beaker, tells nothing about the settings: withdraw it, or let it wait."
MAX_NAMED = 20  # running trials that are listed by number; our choice


@dataclass(frozen=True)
class InvalidInput:
    """Input that could not be saved. It is shown again where it was typed, with what is wrong."""

    cells: Mapping[Cell, str] = field(default_factory=dict)  # by the number of the trial and the index of the output
    problems: Mapping[Cell, str] = field(default_factory=dict)
    questioned: Mapping[Cell, str] = field(default_factory=dict)  # saved if they come again, unchanged
    pasted: str = ""
    unused: str = ""  # pasted and left out, because it did not fit
    paste_problem: str = ""
    asked: Mapping[str, str] = field(default_factory=dict)
    ask_problem: str = ""
    own: Mapping[str, str] = field(default_factory=dict)
    own_problem: str = ""
    own_questioned: Mapping[int, str] = field(default_factory=dict)  # by the index of the output
    choice: ChoiceInput | None = None
    beside: Mapping[str, str] = field(default_factory=dict)  # the fields of `bench_entry`
    beside_problems: Mapping[int, str] = field(default_factory=dict)  # by the number of the trial
    who: str | None = None
    refusal: Refusal | None = None  # what the top of the page says


def study_body(
    request: Request,
    session: Session,
    snapshot: StudySnapshot,
    live: LiveUpdates,
    rejected: InvalidInput,
    choice: ChoiceInput | None = None,
) -> Markup:
    """Return everything below the heading."""
    at, shown = f"/study/{session.slug}", rejected.choice or choice
    front = front_card(session, snapshot, live, at) if session.has_front else None
    recipe = choice_card(request, session, snapshot, shown, at) if session.goals.named else None
    return joined(
        tag(
            "div",
            next_to_try(request, session, snapshot, rejected, at),
            summary_card(session, snapshot, live, at),
            recent_results(session, snapshot, live, at),
            class_="columns wide" if table_width(session) > BESIDE_KNOWN else "columns",
        ),
        _fold("front", "The best trade-offs so far", front),
        _fold("recipe", "Find a recipe", recipe, keep=shown is not None),
        pictures(live),
    )


def table_width(session: Session) -> float:
    """Return about how wide the table of waiting trials is, in pixels: what cannot be wrapped in its columns."""
    width = 50.0 + (144.0 if session.goals.named else 0.0)
    for one in (each for each in session.fields if each.varies):
        values = one.options or tuple(end for end in (one.lo, one.hi) if end is not None)
        value = max((len(word) for option in values for word in one.format(option).split()), default=0)
        width += PADDING + LETTER * max(value, *map(len, one.title.split()))
    return width + sum(PADDING + max(104.0, LETTER * max(map(len, one.title.split()))) for one in session.outputs)


def _fold(name: str, title: str, card: Markup | None, *, keep: bool = False) -> Markup | None:
    """Return a card in a fold, which the script closes where there is little room, unless it has an answer to show."""
    if not card:
        return None
    return tag(
        "details",
        tag("summary", title),
        card,
        id=f"{name}-fold",
        open=True,
        data_keep="yes" if keep else None,
        class_="card fold picture around",
    )


# Results


def next_to_try(request: Request, session: Session, snapshot: StudySnapshot, rejected: InvalidInput, at: str) -> Markup:
    """Return the table of waiting trials with a cell for each result, and the forms below it."""
    most = min(MAX_ROWS, max(1, MAX_CELLS // (len(session.outputs) + len(session.fields) + BESIDE)))
    waiting, incomplete = snapshot.waiting[:most], snapshot.incomplete[::-1][:most]
    nothing = tag("p", "No experiment is waiting for a result. Ask for suggestions below.", class_="empty")
    if not session.goals.named:
        paste = _paste_box(session, rejected, len(waiting)) if len(waiting) > 1 or rejected.paste_problem else None
        table = _results_form(request, at, rejected, _waiting_table(session, snapshot, waiting, rejected), paste)
        tables = tag("div", table if waiting else nothing, id="waiting", data_live="rows")
    else:  # one form, so that saving one table does not lose what was typed into the other one
        first = _waiting_table(session, snapshot, waiting, rejected) if waiting else nothing
        tables = _results_form(
            request,
            at,
            rejected,
            tag("div", first, id="waiting", data_live="rows"),
            tag("div", _incomplete_table(session, snapshot, incomplete, rejected), id="incomplete", data_live="rows"),
            _paste_box(session, rejected, len(waiting)) if waiting or incomplete or rejected.paste_problem else None,
        )
    shown = {trial.number for trial in (*waiting, *incomplete)}
    without_row = [
        f"{problem} You typed: {typed}" if (typed := _typed(rejected, number)) else problem
        for (number, _), problem in rejected.problems.items()
        if number not in shown
    ]
    without_row += [
        f"{problem} You typed: {_typed_beside(rejected, number)}"
        for number, problem in rejected.beside_problems.items()
        if number not in shown
    ]
    return tag(
        "section",
        tag("h2", "Next to try", id="next-title"),
        notices(without_row, "wrong"),
        tables,
        _ask_form(request, session, rejected, at, first=not waiting),
        tag("div", _running(snapshot), id="running", data_live=True),
        _own_measurement(request, session, rejected, at),
        class_="card next",
        aria_labelledby="next-title",
    )


def _typed(rejected: InvalidInput, number: int) -> str:
    return ", ".join(text for (one, _), text in rejected.cells.items() if one == number)


def _typed_beside(rejected: InvalidInput, number: int) -> str:
    mine = (text for name, text in rejected.beside.items() if str(number) in name.split("-") and text.strip())
    return ", ".join([*mine, _typed(rejected, number)])


def _results_form(request: Request, at: str, rejected: InvalidInput, *tables: Child) -> Markup:
    return form(
        request,
        f"{at}/results",
        tag("button", "Save results", class_="unseen", tabindex="-1"),  # the button that Enter presses
        *tables,
        tag("div", who_field(request, rejected.who), class_="who"),
        tag("p", tag("button", "Save results", class_="main"), class_="save"),
        id="results",
        autocomplete="off",
    )


def _waiting_table(
    session: Session, snapshot: StudySnapshot, waiting: Sequence[Trial], rejected: InvalidInput
) -> Markup:
    steps = [tag("p", f"The result is the value at {one.name} {one.options[0]}.", class_="muted")
             for one in session.fields if one.kind == "steps"]  # fmt: skip
    return joined(
        hidden("order", ",".join(str(trial.number) for trial in waiting)),
        *steps,
        _table(session, snapshot, waiting, rejected, "Experiments to do, with a cell for each result"),
        tag("button", f"Show all {len(waiting)} experiments", type="button", class_="second narrow", data_all="waiting")
        if len(waiting) > SHOWN
        else None,
        tag("p", tag("a", "Print these experiments", href=f"/study/{session.slug}/sheet"), class_="print"),
    )


def _incomplete_table(
    session: Session, snapshot: StudySnapshot, incomplete: Sequence[Trial], rejected: InvalidInput
) -> Child:
    """Return the trials that lack outputs, with a cell for each of these. Those that nobody waits for are folded."""
    needed = [trial for trial in incomplete if trial.number in snapshot.missing]
    others = [trial for trial in incomplete if trial.number not in snapshot.missing]
    parts: list[Child] = []
    if needed:
        names = {name for trial in needed for name in snapshot.missing[trial.number]}
        text = f"Still missing: {', '.join(one.title for one in session.outputs if one.name in names)}"
        parts += [tag("h3", text), _table(session, snapshot, needed, rejected, "Experiments that lack a result")]
    if others:
        table = _table(session, snapshot, others, rejected, "Experiments that may get more outputs")
        typed = any(number == trial.number for trial in others for number, _ in rejected.cells)
        text = f"Add outputs that nobody waits for ({len(others)} experiment{'s' if len(others) > 1 else ''})"
        parts.append(tag("details", tag("summary", text), table, open=typed or None, class_="more"))
    return parts


def _table(
    session: Session, snapshot: StudySnapshot, trials: Sequence[Trial], rejected: InvalidInput, caption: str
) -> Markup:
    shown = [one for one in session.fields if one.varies]
    labels = any(trial.label is not None for trial in trials)
    head: list[Child] = ["Trial", *(["Row"] if labels else []), *(one.title for one in shown)]
    head += [_output_head(one) for one in session.outputs]
    head += [tag("span", "Anything else", class_="unseen")] if session.goals.named else []
    top = tag("tr", [tag("th", title, scope="col") for title in head])
    body = [_row(session, snapshot, trial, labels, rejected) for trial in trials]
    inner = tag("caption", caption, class_="unseen"), tag("thead", top), tag("tbody", body)
    table = tag("table", *inner, class_="sheet" if not session.goals.named else "sheet several")
    return table if len(head) <= MAX_COLUMNS else scrollable(caption, table)


def _output_head(output: OutputField) -> Child:
    words = output.short_purpose
    return joined(output.title, tag("small", f" {words}", class_="goal")) if words else output.title


def _row(session: Session, snapshot: StudySnapshot, trial: Trial, labels: bool, rejected: InvalidInput) -> Markup:
    number, outputs = trial.number, session.outputs
    fixed, suggested = set(trial.fixed or ()), snapshot.suggested.get(number)
    cells, movable = [], can_be_moved(trial)
    for index, one in enumerate(session.fields):
        if not one.varies:
            continue
        text = one.shown(trial.x)
        was = text if suggested is None else one.shown(suggested)
        notes = ["fixed"] if one.key in fixed else [f"suggested {was}"] if was != text else []
        value = tag("span", text, [tag("small", f" {note}", class_="fixed") for note in notes])
        control = used_control(one, trial, index, rejected.beside) if movable else None
        cells.append(tag("td", value, control, data_label=one.title, class_="setting"))
    pending = trial.status == "pending"
    fold = entry_fold(session, trial, rejected.beside, rejected.beside_problems.get(number), in_row=True)
    entries = [
        _entry(one, number, rejected, [fold, _no_result(number, rejected)] if one.name is None else None)
        if one.value(trial) is None
        else tag("td", one.format(trial), data_label=one.title, class_="told-value")
        for one in outputs
    ]
    if session.goals.named:
        link = tag("a", "Change it", href=f"/study/{session.slug}/trial/{number}", aria_label=f"Change trial {number}")
        entries.append(tag("td", fold, _no_result(number, rejected) if pending else link, class_="other"))
    return tag(
        "tr",
        tag("th", f"#{number}", scope="row", data_label="Trial"),
        tag("td", str(trial.label), data_label="Row") if labels else None,
        *cells,
        *entries,
        id=f"row-{number}",
        data_number=str(number),
    )


def _entry(output: OutputField, number: int, rejected: InvalidInput, more: Child) -> Markup:
    """Return the cell to type an output into."""
    name, cell = output.control(number), (number, output.index)
    problem, described = rejected.problems.get(cell), f"problem-{number}{output.suffix}"
    control = tag(
        "input",
        type="text",
        id=name,
        name=name,
        value=rejected.cells.get(cell, ""),
        inputmode="decimal",
        enterkeyhint="done",
        aria_label=output.label(number),
        aria_invalid="true" if problem else None,
        aria_describedby=described if problem else None,
        placeholder="e.g. 4.1" if output.name is None else None,
        data_output=str(output.index),
        class_="result",
    )
    message = tag("p", problem, id=described, class_="problem") if problem else None
    asked = hidden(f"sure-{name}", rejected.questioned[cell]) if cell in rejected.questioned else None
    return tag("td", control, asked, message, more, data_label=output.title, class_="entry")


def _no_result(number: int, rejected: InvalidInput) -> Markup:
    """Return the buttons for a trial that has no result."""
    n, why = str(number), rejected.beside.get(f"why-{number}", "")
    return tag(
        "details",
        tag("summary", "No result?", aria_label=f"No result of trial {number}?"),
        labelled("Reason", tag("input", type="text", name=f"why-{n}", value=why, maxlength="200")),
        tag("p", tag("button", FAILED, name="fail", value=n), " similar settings are avoided from now on"),
        tag("p", tag("button", "Skip it", name="reject", value=n), " it will not be done, and is not suggested again"),
        tag("p", tag("button", "Withdraw", name="forget", value=n), " as if it had never been suggested"),
        tag("p", ACCIDENT),
        open=bool(why) or None,
        class_="more",
    )


def unused_column(rejected: InvalidInput, *, reason: bool = True) -> Markup | None:
    """Return what was pasted and left out, perhaps with the reason; None if there is nothing."""
    if not rejected.unused:
        return None
    return tag(
        "div",
        tag("p", rejected.paste_problem, class_="problem", role="alert") if reason else None,
        tag("p", "This was pasted and not used. Paste it again if you need it.", class_="muted"),
        tag("pre", rejected.unused),
        id="unused",
    )


def _paste_box(session: Session, rejected: InvalidInput, count: int) -> Markup:
    if not session.goals.named:
        title, example = "Paste a column from a spreadsheet", "4.1\n3,8\nfailed: pump stopped"
        label = f"One result per line, from the first row to the last ({count} rows)"
        hint = (
            "Leave a line empty if there is no result yet. Write “failed” and a reason for a failure. With two "
            "columns, the first is the number of the trial."
        )
    else:
        title, last = "Paste columns from a spreadsheet", session.outputs[-1].title
        example = f"trial\t{last}\n7\t0.97\n8\t0.95"
        label = f"One experiment per line. The columns: {', '.join(one.title for one in session.outputs)}"
        hint = (
            "The lines are in the order of “Next to try”. Only some outputs, or trials in another order: write the "
            f"names of the columns in the first line, such as “trial” and “{last}”."
        )
    area = tag("textarea", rejected.pasted, name="pasted", id="pasted", rows="5", placeholder=example)
    return tag(
        "details",
        tag("summary", title),
        tag("p", rejected.paste_problem, class_="problem", role="alert") if rejected.paste_problem else None,
        labelled(label, area, hint),
        unused_column(rejected, reason=False),
        open=bool(rejected.paste_problem) or None,
        class_="more",
    )


# Suggestions


def remembered_count(request: Request) -> str:
    """Return how many suggestions the browser asked for last."""
    typed = request.cookies.get(COUNT, "")
    return typed if re.fullmatch("[1-9][0-9]{0,2}", typed) and int(typed) <= MAX_BATCH else "1"


def remember_count(response: Response, count: int) -> None:
    response.set_cookie(COUNT, str(count), max_age=REMEMBERED, httponly=True, samesite="lax")


def _ask_form(request: Request, session: Session, rejected: InvalidInput, at: str, *, first: bool) -> Markup:
    typed = rejected.asked
    count = tag("input", type="number", name="n", value=typed.get("n", remembered_count(request)), min="1",
                max=str(MAX_BATCH), id="n", required=True)  # fmt: skip
    controls = [_control(one, "given", typed) for one in session.fields if one.varies]
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


def _control(one: ParameterField, prefix: str, typed: Mapping[str, str], wrong: str = "") -> Markup:
    """Return the control for the value of a parameter; `wrong` is the name of a control to correct."""
    name = f"{prefix}-{one.key}"
    value, invalid = typed.get(name, ""), "true" if name == wrong else None
    if one.kind == "choice":
        options = [("", "–"), *((str(option), str(option)) for option in one.options)]
        return labelled(one.title, select(name, options, value, id=name, aria_invalid=invalid))
    hint = None if one.lo is None or one.hi is None else f"{one.format(one.lo)} to {one.format(one.hi)}"
    control = tag("input", type="text", name=name, id=name, value=value, inputmode="text", aria_invalid=invalid)
    return labelled(one.title, control, hint)


def _running(snapshot: StudySnapshot) -> Child:
    running = snapshot.running
    if not running:
        return None
    more = "" if len(running) <= MAX_NAMED else ", …"
    numbers = ", ".join(f"#{trial.number}" for trial in running[:MAX_NAMED]) + more
    subject = "experiment is" if len(running) == 1 else "experiments are"
    return tag("p", f"{len(running)} {subject} being run by programs: {numbers}.", class_="muted")


def _own_measurement(request: Request, session: Session, rejected: InvalidInput, at: str) -> Markup:
    typed, wrong = rejected.own, rejected.refusal.at if rejected.own_problem and rejected.refusal else ""
    controls = [_control(one, "own", typed, wrong) for one in session.fields if one.varies]
    names = {one: f"own-result{one.suffix}" for one in session.outputs}
    results: list[Markup] = []
    for one, name in names.items():
        invalid = "true" if name == wrong or one.index in rejected.own_questioned else None
        control = tag("input", type="text", name=name, id=name, value=typed.get(name, ""), aria_invalid=invalid)
        results.append(labelled(one.title, control))
    asked = [hidden(f"sure-{names[session.outputs[i]]}", text) for i, text in rejected.own_questioned.items()]
    return tag(
        "details",
        tag("summary", "Add a measurement of your own"),
        tag("p", rejected.own_problem, class_="problem", role="alert") if rejected.own_problem else None,
        form(
            request,
            f"{at}/observe",
            hidden("who", remembered_name(request)),
            asked,
            tag("p", "For an experiment that was not suggested.", class_="muted"),
            tag("div", controls, results, class_="grid"),
            tag("p", tag("button", "Add it", class_="second")),
        ),
        open=bool(rejected.own_problem) or None,
        id="own",
        class_="more",
    )
