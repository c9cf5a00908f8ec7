"""The forms of the pages (POST). Each is handled once; input that cannot be saved is shown again with what is wrong.

The main one is `save_results`, which enters the results of a study.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any

from python_multipart.multipart import parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from gpmi.serve import new_study
from gpmi.serve.app_state import state_of
from gpmi.serve.bench_entry import WHO, BenchEntry, numbers_beside, remember_name, typed_beside
from gpmi.serve.conflict_page import TITLE, ConflictingInput, conflict_body
from gpmi.serve.front_page import ChoiceInput, choice_of
from gpmi.serve.output_fields import Cell, outputs_of
from gpmi.serve.page_layout import Refusal, full_page, message_page, nothing_saved, notices, resend_page
from gpmi.serve.pages import show_study, show_trial, study_links, token_page, trial_number
from gpmi.serve.refusal_words import in_form_words
from gpmi.serve.security import MAX_UPLOAD, secrets_equal
from gpmi.serve.session import Conflict, NoSuchTrial, Session
from gpmi.serve.study_form import field_of, typed_results, typed_study
from gpmi.serve.study_page import InvalidInput, remember_count, unused_column
from gpmi.serve.submission import (
    ACTIONS,
    DEEDS,
    Doubt,
    FormData,
    Submission,
    counted,
    parsed,
    problem_of,
    question,
    save,
    sign,
    used_by,
    warnings_of,
)
from gpmi.serve.trial_page import BUTTONS as TRIAL_BUTTONS
from gpmi.serve.trial_page import InvalidForm
from gpmi.space import SpaceExhausted
from gpmi.storage import StudyError

MAX_FIELDS = 8000  # of a form: a thousand trials with a result, its hidden field and a reason each; our choice
# Of the results table; the value is the number of the trial.
BUTTONS = (*ACTIONS, "again", "correct", "add", "leave")
Handler = Callable[[Request, FormData], Awaitable[Response]]


def form_handler(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """Wrap the handler of a form: read it, check that it is one of our own, and handle it once.

    A duplicate submission gets the first one's redirect.
    """

    @wraps(handler)
    async def wrapped(request: Request) -> Response:
        data, fields = await _read(request)
        state = state_of(request)
        if not secrets_equal(data.get("csrf", ""), state.access.form_secret):
            if not _is_from_our_page(request):
                return PlainTextResponse("the form does not come from a page of this server", 403)
            reason = "The server was restarted after the page was opened. Check what you sent, then send it again."
            return resend_page(request, fields, reason, 403)
        once = data.get("once", "")
        async with state.form_lock(once):
            redirect = state.redirects.get(once)
            if redirect is not None:
                return RedirectResponse(redirect, 303)
            try:
                answer = await handler(request, data)
            except (LookupError, NoSuchTrial) as error:
                return message_page(request, f"{error.args[0]}.", title="Not found", status=404)
            except StudyError as error:
                reason = f"{error}. Send it again in a moment; anything already saved counts once."
                return resend_page(request, fields, reason, 503)
            if "slug" in request.path_params:
                await run_in_threadpool((await _session(request)).write_back)
            remember_name(answer, data)
            if once and answer.status_code == 303:
                state.redirects.put(once, answer.headers["location"])
            return answer

    return wrapped


def _is_from_our_page(request: Request) -> bool:
    """Whether a page of this server sent the request; other origins were already refused by `security`."""
    return "origin" in request.headers or request.headers.get("sec-fetch-site") == "same-origin"


async def _read(request: Request) -> tuple[dict[str, str], list[tuple[str, str]]]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/x-www-form-urlencoded", "multipart/form-data"):
        raise HTTPException(415, "send a form")
    charset = parse_options_header(request.headers["content-type"])[1].get(b"charset", b"utf-8")
    if charset.lower() not in (b"utf-8", b"utf8", b"us-ascii"):  # Python has codecs that return lone surrogates
        raise HTTPException(415, "send the form in UTF-8")
    try:
        form = await request.form(max_files=1, max_fields=MAX_FIELDS, max_part_size=MAX_UPLOAD)
    except (UnicodeDecodeError, KeyError, ValueError) as error:
        raise HTTPException(400, "the form cannot be read") from error
    fields: list[tuple[str, str]] = []
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            request.state.file = await value.read()
            await value.close()
        else:
            fields.append((name, value))
    return dict(fields), fields


def _redirect(request: Request, session: Session, messages: list[str], path: str = "") -> Response:
    """Go to a page of a study, which shows the messages."""
    key = state_of(request).messages.add({"done": messages})
    return RedirectResponse(f"/study/{session.slug}{path}?said={key}", 303)


async def _session(request: Request) -> Session:
    return await state_of(request).session(request.path_params["slug"])


# Results


@form_handler
async def save_results(request: Request, data: FormData) -> Response:
    """Save the results of any number of trials, typed or pasted, and perhaps an action for one of them."""
    session = await _session(request)
    cells = session.outputs.typed_cells(data)
    order = [int(number) for number in data.get("order", "").split(",") if re.fullmatch(r"[0-9]{1,9}", number)]
    unused = ""  # why the pasted column was left out: what was typed is saved without it
    try:
        pasted = await _pasted(session, data.get("pasted", ""), order)
        for cell, text in pasted.items():
            if text.strip() and cells.get(cell, "").strip() not in ("", text.strip()):
                raise ValueError(f"Trial {cell[0]} has one result typed and another one pasted")
        cells |= {cell: text for cell, text in pasted.items() if text.strip()}
    except ValueError as error:
        if not any(text.strip() for text in [*cells.values(), *(data.get(name, "") for name in BUTTONS)]):
            rejected = InvalidInput(
                pasted=data["pasted"],
                paste_problem=f"{error}.",
                beside=typed_beside(data),
                refusal=nothing_saved(f"{error}.", "pasted"),
            )
            return await show_study(request, session, rejected, 400)
        unused = f"{error}."
    pressed = {name: int(data[name]) for name in BUTTONS if re.fullmatch(r"[0-9]{1,9}", data.get(name, ""))}
    submission = Submission(session, data)
    for number in dict.fromkeys([*(number for number, _ in cells), *numbers_beside(data)]):
        if number not in (pressed.get("leave"), pressed.get("retract")):
            typed = {index: text for (trial, index), text in cells.items() if trial == number}
            meaning = next((name for name in ("again", "correct", "add") if number == pressed.get(name)), "tell")
            await submission.save_row(number, typed, meaning)
    for action in ACTIONS:
        if action in pressed:
            await submission.apply(action, pressed[action], data.get(f"why-{pressed[action]}", ""))
    return await _answer(request, session, submission, unused)


async def _pasted(session: Session, text: str, order: list[int]) -> dict[Cell, str]:
    """Return the cells of pasted columns."""
    if not text.strip():
        return {}
    snapshot = await run_in_threadpool(session.snapshot)
    return session.outputs.pasted(text, order, snapshot.incomplete)


async def _answer(request: Request, session: Session, submission: Submission, unused: str) -> Response:
    """Return the next page: the study, or the page that shows again what could not be saved."""
    messages, refusal = await run_in_threadpool(submission.messages), submission.refusal()
    if unused and refusal is None:
        refusal = Refusal(f"What was pasted was not used: {unused} What was typed into the cells was saved.", "unused")
    rejected = InvalidInput(
        questioned=submission.questioned,
        unused=submission.data.get("pasted", "") if unused else "",
        paste_problem=unused,
        refusal=refusal,
        cells=submission.rejected,
        problems=submission.problems,
        beside=submission.unsaved_beside,
        beside_problems=submission.beside_problems,
        who=submission.data.get(WHO),
    )
    if submission.conflicts:
        body = conflict_body(request, session, submission.conflicts, rejected)
        saved = [f"{submission.counts} saved."] if submission.counts and submission.refusal() is not None else []
        said = [notices([*saved, *messages]), unused_column(rejected)]
        return full_page(request, TITLE, said, body, links=study_links(session), status=409)
    if refusal is not None:
        return await show_study(request, session, rejected, 400, messages)
    return _redirect(request, session, messages)


@form_handler
async def add_measurement(request: Request, data: FormData) -> Response:
    """Save a measurement at a point that was not suggested."""
    session, at = await _session(request), "own"
    try:
        point = {}
        for field in session.fields:
            typed = data.get(f"own-{field.key}", "").strip()
            if not field.varies:
                point[field.key] = field.options[0]
            elif typed:
                at = f"own-{field.key}"
                point[field.key] = field.parse(typed)
        at = f"own-result{session.outputs[0].suffix}"
        cells = parsed(session, data, "own-result")
        if not cells or any(cell.y is None for cell in cells.values()):
            raise ValueError("There is no result; give a number")
        question(session, cells, data, "own-result", "“Add it”")
        at = "own"
        y, bars = session.outputs.read(cells)
        named = isinstance(session.fields[0].key, str)
        x: Any = point if named else [point.get(j) for j in range(len(session.fields))]
        trial = await run_in_threadpool(lambda: session.observe(x, y, **bars))
        await run_in_threadpool(sign, session, trial.number, "told", data)
    except (ValueError, TypeError) as error:
        problem, questioned = problem_of(error), error.questioned if isinstance(error, Doubt) else {}
        refusal = nothing_saved(problem, at)
        rejected = InvalidInput(added=data, added_problem=problem, added_questioned=questioned, refusal=refusal)
        return await show_study(request, session, rejected, 400)
    notes = [f"{cell.note}." for cell in cells.values() if cell.note]
    return _redirect(request, session, [f"Added as trial {trial.number}.", *notes, *warnings_of(session, trial)])


@form_handler
async def update_trial(request: Request, data: FormData) -> Response:
    """Handle a form on the page of one trial."""
    session, number, action = await _session(request), trial_number(request), data.get("word", "")
    typed = {output.index: data.get(f"y{output.suffix}", "") for output in session.outputs}
    try:
        messages = await run_in_threadpool(_update, session, number, action, data)
    except Conflict as conflict:
        is_action, beside = action in ACTIONS, typed_beside(data)
        entry = (
            ConflictingInput(conflict, action=action, why=data.get("why", ""))
            if is_action
            else ConflictingInput.of(conflict, typed, session.outputs, beside)
        )
        body = conflict_body(request, session, [entry], InvalidInput(who=data.get(WHO)))
        return full_page(request, TITLE, body, links=study_links(session), status=409)
    except (ValueError, TypeError) as error:
        step = data.get("step", "") if action == "report" else ""
        questioned = error.questioned if isinstance(error, Doubt) else {}
        beside = {**typed_beside(data), "why": data.get("why", "")}
        rejected = InvalidForm(action, typed, problem_of(error), step, beside, questioned)
        return await show_trial(request, session, number, rejected, 400)
    return _redirect(request, session, messages, path="" if action == "forget" else f"/trial/{number}")


def _update(session: Session, number: int, action: str, data: FormData) -> list[str]:
    """Do what a form about one trial asks for. Return the messages for the next page."""
    match action:
        case "tell" | "correct" | "again":
            cells, entry = parsed(session, data, "y"), BenchEntry.of(data, number)
            entry.check(number)
            question(session, cells, data, "y", f"“{TRIAL_BUTTONS[action]}”")
            used = used_by(session, number, entry) if action == "tell" else None
            saved = save(session, number, cells, action, entry, used)
            if saved.status == "failed":
                return [f"Trial {number} failed."]
            done = "Corrected." if action == "correct" else "Saved."
            done = done if saved.number == number else f"Saved as trial {saved.number}."
            notes = [f"{cell.note}." for cell in cells.values() if cell.note]
            return [done, *notes, *warnings_of(session, saved)]
        case "report":
            return _report(session, number, data)
        case "fail":
            session.fail(number, data.get("why", "").strip() or None)
        case "reject":
            session.reject(number, data.get("why", "").strip() or None)
        case "note":
            entry = BenchEntry.of(data, number)
            if not entry.has_remark:
                raise ValueError("There is no note and no file; write one of them")
            session.annotate(number, entry.text, who=entry.who, files=entry.files)
            return ["The note was saved."]
        case "retract":
            session.retract(number)
        case "confirm":
            session.confirm(number)
        case "forget":
            session.forget(number)
        case _:
            raise ValueError("No action was chosen; press one of the buttons")
    sign(session, number, DEEDS[action], data)
    return [f"Trial {number} {ACTIONS[action]}."]


def _report(session: Session, number: int, data: FormData) -> list[str]:
    """Save a value on the way to the target of a fidelity. Return the messages for the next page."""
    typed = data.get("step", "").strip()
    if not re.fullmatch(r"[0-9]{1,9}", typed):
        raise ValueError(f"The step is {typed[:40]!r}; give a whole number")
    cells = parsed(session, data, "y")
    if not cells or any(cell.y is None for cell in cells.values()):
        raise ValueError("There is no value at this step; give a number")
    y, bars = session.outputs.read(cells)
    if bars.get("noise_var"):
        raise ValueError("A value on the way has no error bar; give the number alone")
    try:
        answer, trial = session.report(number, int(typed), y)
    except Conflict as conflict:
        raise ValueError(f"{conflict}; nothing was changed") from None
    advice = "Go on." if answer == "continue" else "Saved as its result." if trial.status == "told" else "Stop here."
    why = f" It {trial.why}." if trial.status == "stopped" and trial.why else ""
    return [f"Step {int(typed)} saved. {advice}{why}", *(f"{cell.note}." for cell in cells.values() if cell.note)]


# Suggestions


@form_handler
async def ask_for_suggestions(request: Request, data: FormData) -> Response:
    session = await _session(request)
    try:
        typed = data.get("n", "1").strip()
        if not re.fullmatch(r"[0-9]{1,4}", typed):
            raise ValueError(f"The number of experiments is {typed[:40]!r}; give a whole number")
        fixed = {
            field.key: field.parse(data[f"given-{field.key}"])
            for field in session.fields
            if data.get(f"given-{field.key}", "").strip()
        }
        trials = await run_in_threadpool(session.ask, int(typed), fixed or None)
    except SpaceExhausted:
        return await _not_asked(request, session, data, "Every candidate has been suggested already.")
    except (ValueError, TypeError) as error:
        return await _not_asked(request, session, data, problem_of(error))
    few = f"Only {len(trials)} were left." if len(trials) < int(typed) else ""
    answer = _redirect(request, session, [few] if few else [])
    remember_count(answer, int(typed))
    return answer


async def _not_asked(request: Request, session: Session, data: FormData, problem: str) -> Response:
    refusal = nothing_saved(problem, "ask", "suggested")
    return await show_study(request, session, InvalidInput(asked=data, ask_problem=problem, refusal=refusal), 400)


# The choice of a point


@form_handler
async def choose_point(request: Request, data: FormData) -> Response:
    """Look for the best predicted point under conditions, and show it on the page of the study."""
    session = await _session(request)
    typed = {name: text for name, text in data.items() if name.startswith("choose-")}
    try:
        output, direction, where, confidence = choice_of(session, data)
        chosen = await run_in_threadpool(session.choose, output, direction, where, confidence)
    except (ValueError, TypeError) as error:
        refusal = nothing_saved(problem_of(error), "choice", "found")
        rejected = InvalidInput(choice=ChoiceInput(typed, problem=problem_of(error)), refusal=refusal)
        return await show_study(request, session, rejected, 400)
    key = state_of(request).choices.add(ChoiceInput(typed, chosen, session.slug))
    return RedirectResponse(f"/study/{session.slug}?chosen={key}#choice", 303)


@form_handler
async def plan_trial(request: Request, data: FormData) -> Response:
    """Add a pending trial at the point that was chosen."""
    session, choice = await _session(request), state_of(request).choices.get(data.get("chosen"))
    if choice is None or choice.point is None or choice.slug != session.slug:
        problem = "The chosen point is no longer available; choose it again."
        refusal = nothing_saved(problem, "choice", "added")
        return await show_study(
            request, session, InvalidInput(choice=ChoiceInput({}, problem=problem), refusal=refusal), 400
        )
    try:
        untried = choice.point.untried if data.get("untried") else None
        trial = await run_in_threadpool(session.plan, (untried or choice.point).x)
    except (ValueError, TypeError, SpaceExhausted) as error:
        problem = f"It cannot be added: {problem_of(error)}"
        refusal = nothing_saved(problem_of(error), "choice", "added")
        rejected = InvalidInput(choice=ChoiceInput(choice.typed, problem=problem), refusal=refusal)
        return await show_study(request, session, rejected, 400)
    return _redirect(request, session, [f"Trial {trial.number} is at the chosen point. Enter its results below."])


# New studies


@form_handler
async def create_from_parameters(request: Request, data: FormData) -> Response:
    try:
        table = typed_study(data)
        session = await _create(request, data, dict(table.parameters), table.options)
    except (ValueError, TypeError) as error:
        return new_study.new_study_page(request, data, in_form_words(error), 400, field_of(error))
    return _redirect(request, session, _created())


@form_handler
async def upload_table(request: Request, data: FormData) -> Response:
    raw: bytes = getattr(request.state, "file", b"")
    try:
        if not raw.strip():
            raise ValueError("No file was chosen, or it is empty; choose a CSV file")
        table = await run_in_threadpool(new_study.read_table, raw)
    except ValueError as error:
        return new_study.new_study_page(request, {}, str(error), 400)
    return new_study.table_page(request, state_of(request).uploads.add(table), table, {})


@form_handler
async def create_from_table(request: Request, data: FormData) -> Response:
    key = data.get("key", "")
    table = state_of(request).uploads.get(key)
    if table is None:
        problem = "The uploaded table is no longer available; choose the file again"
        return new_study.new_study_page(request, data, problem, 400)
    try:
        results = typed_results(data)
        outputs = outputs_of(results.goals)
        space, outcomes = await run_in_threadpool(new_study.candidates_of, table, data, outputs)
        session = await _create(request, data, space, results.options)
    except (ValueError, TypeError) as error:
        return new_study.table_page(request, key, table, data, in_form_words(error), 400, field_of(error))
    measured = [(x, {i: cell for i, cell in cells.items() if cell.y is not None}) for x, cells in outcomes]
    values = [(x, *outputs.read(cells)) for x, cells in measured if cells]
    if values:
        told = [(x, y, bars.get("noise_var", 0.0)) for x, y, bars in values]
        await run_in_threadpool(session.writer.optimizer.tell_all, told)
    return _redirect(request, session, _created(len(values), len(outcomes) - len(values)))


async def _create(request: Request, data: FormData, space: Any, options: Mapping[str, Any]) -> Session:
    state = state_of(request)
    created = await run_in_threadpool(lambda: state.catalogue.create(data.get("study", ""), space, **options))
    return await state.session(created.slug)


def _created(results: int = 0, failures: int = 0) -> list[str]:
    messages = ["The study was created."] + ([f"{counted(results, 'known result')} imported."] if results else [])
    left_out = f"{counted(failures, 'failed row')} not imported: they can still be suggested."
    return messages + ([left_out] if failures else [])


async def enter_token(request: Request) -> Response:
    """Check the token that was typed and store it in the browser."""
    data, _ = await _read(request)
    access = state_of(request).access
    if access.token is None:
        return RedirectResponse("/", 303)
    if not secrets_equal(data.get("token", "").strip(), access.token):
        return token_page(request, "That is not the token.")
    return access.set_cookie(RedirectResponse("/", 303))


ROUTES = [
    Route("/enter", enter_token, methods=["POST"]),
    Route("/new/parameters", create_from_parameters, methods=["POST"]),
    Route("/new/table", upload_table, methods=["POST"]),
    Route("/new/candidates", create_from_table, methods=["POST"]),
    Route("/study/{slug}/ask", ask_for_suggestions, methods=["POST"]),
    Route("/study/{slug}/results", save_results, methods=["POST"]),
    Route("/study/{slug}/observe", add_measurement, methods=["POST"]),
    Route("/study/{slug}/choose", choose_point, methods=["POST"]),
    Route("/study/{slug}/plan", plan_trial, methods=["POST"]),
    Route("/study/{slug}/trial/{number}", update_trial, methods=["POST"]),
]
