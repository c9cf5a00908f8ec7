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
from gpmi.serve.bench_entry import WHO, BenchEntry, numbers_beside, remember_name, typed_beside, used_point
from gpmi.serve.cell_parsing import ParsedCell, parse_cell, parse_column, parse_table
from gpmi.serve.conflict_page import TITLE, ConflictingInput, conflict_body
from gpmi.serve.form_words import in_form_words
from gpmi.serve.front_page import ChoiceInput, choice_of
from gpmi.serve.output_fields import Cell, measurement_of, outputs_of, typed_cells
from gpmi.serve.page_layout import full_page, message_page, notices, resend_page
from gpmi.serve.pages import show_study, show_trial, study_links, token_page, trial_number
from gpmi.serve.security import MAX_UPLOAD, secrets_equal
from gpmi.serve.session import Conflict, NoSuchTrial, Session
from gpmi.serve.study_form import field_of, typed_results, typed_study
from gpmi.serve.study_page import InvalidInput
from gpmi.serve.trial_page import InvalidForm
from gpmi.space import SpaceExhausted
from gpmi.storage.errors import StudyError
from gpmi.trials import Trial

MAX_FIELDS = 5000  # of a form: a thousand trials have a result and a reason each; our choice
MAX_NOTES = 10  # shown after a form was saved; our choice
# What can happen to a trial other than a result, and how the next page reports it.
ACTIONS = {"fail": "failed", "reject": "was skipped", "forget": "was withdrawn", "retract": "was retracted"}
# Of the results table; the value is the number of the trial.
DEEDS = {"fail": "failed", "reject": "rejected", "forget": "forgotten", "retract": "retracted"}  # as the log has them
BUTTONS = (*ACTIONS, "again", "correct", "add", "leave")
FormData = Mapping[str, str]
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
            await run_in_threadpool(state.catalogue.write_back)
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
    cells = typed_cells(data, session.outputs)
    order = [int(one) for one in data.get("order", "").split(",") if re.fullmatch(r"[0-9]{1,9}", one)]
    try:
        pasted = await _pasted(session, data.get("pasted", ""), order)
        for cell, text in pasted.items():
            if text.strip() and cells.get(cell, "").strip() not in ("", text.strip()):
                raise ValueError(f"Trial {cell[0]} has one result typed and another one pasted; clear one of them")
    except ValueError as error:
        rejected = InvalidInput(cells, pasted=data["pasted"], paste_problem=f"{error}.", beside=typed_beside(data))
        return await show_study(request, session, rejected, 400)
    cells |= {cell: text for cell, text in pasted.items() if text.strip()}
    pressed = {name: int(data[name]) for name in BUTTONS if re.fullmatch(r"[0-9]{1,9}", data.get(name, ""))}
    submission = Submission(session, data)
    for number in dict.fromkeys([*(number for number, _ in cells), *numbers_beside(data)]):
        if number not in (pressed.get("leave"), pressed.get("retract")):
            typed = {index: text for (one, index), text in cells.items() if one == number}
            meaning = next((name for name in ("again", "correct", "add") if number == pressed.get(name)), "tell")
            await submission.save_row(number, typed, meaning)
    for action in ACTIONS:
        if action in pressed:
            await submission.apply(action, pressed[action], data.get(f"why-{pressed[action]}", ""))
    return await _answer(request, session, submission)


async def _pasted(session: Session, text: str, order: list[int]) -> dict[Cell, str]:
    """Return the cells of pasted columns."""
    if not text.strip():
        return {}
    if session.goals is None:
        return {(number, 0): cell for number, cell in parse_column(text, order).items()}
    snapshot = await run_in_threadpool(session.snapshot)
    known = [*order, *(trial.number for trial in snapshot.incomplete if trial.number not in order)]
    return parse_table(text, known, list(session.goals))


async def _answer(request: Request, session: Session, submission: Submission) -> Response:
    """Return the next page: the study, or the page that shows again what could not be saved."""
    messages = await run_in_threadpool(submission.messages)
    rejected = InvalidInput(
        cells=submission.rejected,
        problems=submission.problems,
        beside=submission.unsaved_beside,
        beside_problems=submission.beside_problems,
        who=submission.data.get(WHO),
    )
    if submission.conflicts:
        body = conflict_body(request, session, submission.conflicts, rejected)
        return full_page(request, TITLE, notices(messages), body, links=study_links(session), status=409)
    if submission.problems or submission.beside_problems:
        return await show_study(request, session, rejected, 400, messages)
    return _redirect(request, session, messages)


class Submission:
    """What became of the cells of one form: saved, rejected, or in conflict with what somebody else entered."""

    def __init__(self, session: Session, data: FormData) -> None:
        self.session, self.data = session, data
        self.beside_problems: dict[int, str] = {}
        self.saved: list[Trial] = []
        self.notes: list[str] = []
        self.rejected: dict[Cell, str] = {}
        self.problems: dict[Cell, str] = {}
        self.conflicts: list[ConflictingInput] = []

    async def save_row(self, number: int, typed: Mapping[int, str], meaning: str = "tell") -> None:
        """Save what was typed for a trial, by the index of the output. Empty cells are skipped.

        The meaning is "tell", "correct", "again" (measured again) or "add" (only outputs that the trial lacks).
        """
        cells: dict[int, ParsedCell] = {}
        for index, text in typed.items():
            try:
                cell = parse_cell(text)
            except ValueError as error:
                self._reject(number, {index: text}, error)
            else:
                cells |= {} if cell.empty else {index: cell}
        if not cells and any(one == number for one, _ in self.rejected):
            return  # what is beside the result is saved with it
        entry = BenchEntry.of(self.data, number)
        try:
            entry.check(number)
            used = await run_in_threadpool(_used, self.session, number, entry)
            if not cells:
                await run_in_threadpool(self._save_beside, number, entry, used)
                return
        except Conflict as conflict:
            self.conflicts.append(ConflictingInput(conflict, beside=self._typed_beside(number)))
            return
        except (ValueError, TypeError, NoSuchTrial) as error:
            self.rejected |= {(number, index): typed[index] for index in cells}
            self.beside_problems[number] = _problem(error)
            return
        try:
            saved = await run_in_threadpool(_save, self.session, number, cells, meaning, entry, used)
        except Conflict as conflict:
            entered = {index: typed[index] for index in cells}
            beside = self._typed_beside(number)
            self.conflicts.append(ConflictingInput.of(conflict, entered, self.session.outputs, beside))
        except (ValueError, TypeError, NoSuchTrial) as error:
            self._reject(number, {index: typed[index] for index in cells}, error)
        else:
            self.saved.append(saved)
            self.notes += [cell.note for cell in cells.values() if cell.note]

    def _save_beside(self, number: int, entry: BenchEntry, used: Any) -> None:
        """Save what was entered beside a result that is still to come."""
        if entry.has_remark:  # first, because it is also true of a trial that has ended meanwhile
            self.session.annotate(number, entry.text, who=entry.who, files=entry.files)
            self.notes.append(f"The note on trial {number} was saved")
        if used is not None:
            self.session.move(number, used)
            _sign(self.session, number, "moved", self.data)
            self.notes.append(f"Trial {number} is done with other values than suggested")

    def _typed_beside(self, number: int) -> dict[str, str]:
        return {
            name: text for name, text in typed_beside(self.data).items() if numbers_beside({name: text}) == [number]
        }

    @property
    def unsaved_beside(self) -> dict[str, str]:
        """What was typed beside results that could not be saved, to be shown again."""
        numbers = {*self.beside_problems, *(number for number, _ in self.problems)}
        return {name: text for number in numbers for name, text in self._typed_beside(number).items()}

    def _reject(self, number: int, typed: Mapping[int, str], error: Exception) -> None:
        """Keep cells that could not be saved, with the reason at the first one."""
        self.rejected |= {(number, index): text for index, text in typed.items()}
        self.problems[number, min(typed)] = f"{error}."

    async def apply(self, action: str, number: int, why: str) -> None:
        """Apply one of the ACTIONS to a trial."""
        more = (why.strip() or None,) if action in ("fail", "reject") else ()
        try:
            await run_in_threadpool(getattr(self.session, action), number, *more)
            await run_in_threadpool(_sign, self.session, number, DEEDS[action], self.data)
            self.notes.append(f"Trial {number} {ACTIONS[action]}")
        except Conflict as conflict:
            self.conflicts.append(ConflictingInput(conflict, action=action, why=why.strip()))
        except (ValueError, TypeError, NoSuchTrial) as error:
            self.problems[number, 0] = f"{error}."

    def messages(self) -> list[str]:
        failed = sum(trial.status == "failed" for trial in self.saved)
        counts = {"result": len(self.saved) - failed, "failure": failed}
        kinds = [_counted(count, kind) for kind, count in counts.items() if count]
        messages = [f"{' and '.join(kinds)} saved."] if kinds else []
        if any(not self.session.is_stored(trial) for trial in self.saved[:1]):
            messages.append("The database is unreachable. The results are in a file and will be delivered later.")
        messages += [f"{note}." for note in self.notes[:MAX_NOTES]]
        return messages + [text for trial in self.saved for text in _warnings(self.session, trial)]


def _problem(error: Exception) -> str:
    """Return what is wrong with a form, as a sentence."""
    return f"{in_form_words(str(error))}."


def _warnings(session: Session, trial: Trial) -> list[str]:
    """Return what to check in a result that was saved, as messages."""
    return [f"Please check: {text}." for text in session.warnings(trial)]


def _used(session: Session, number: int, entry: BenchEntry) -> Any:
    """Return the point that was used, if it is another one than that of the trial."""
    return used_point(session, session.trial_or_withdrawn(number), entry) if entry.used else None


def _sign(session: Session, number: int, did: str, data: FormData) -> None:
    """Store who did something, if a name was given."""
    if who := data.get(WHO, "").strip():
        session.annotate(number, who=who, did=did)


def _save(
    session: Session,
    number: int,
    cells: Mapping[int, ParsedCell],
    meaning: str,
    entry: BenchEntry | None = None,
    used: Any = None,
) -> Trial:
    """Save cells as the outcome of a trial, as a correction, as one more measurement (again), or if it lacks them.

    `used` is the point that was used, if it is not that of the trial.
    """
    saved = _save_cells(session, number, cells, meaning, used)
    if entry is not None and (entry.who or entry.has_remark):
        did = "failed" if saved.status == "failed" else "corrected" if meaning == "correct" else "told"
        session.annotate(saved.number, entry.text, who=entry.who, files=entry.files, did=did)
    return saved


def _save_cells(session: Session, number: int, cells: Mapping[int, ParsedCell], meaning: str, used: Any) -> Trial:
    failures = [cell for cell in cells.values() if cell.failed]
    if failures and len(failures) < len(cells):
        raise ValueError("There is a failure beside a result; leave a cell empty if only this output is missing")
    if used is not None and meaning == "again":
        y, bars = measurement_of(session.outputs, cells)
        return session.observe(used, y, **bars)
    if used is not None:
        if meaning != "tell":
            raise ValueError(f"Trial {number} has a result at other values; keep both, because it was measured twice")
        if not failures:
            session.check(*measurement_of(session.outputs, cells))  # before the trial is moved
        session.move(number, used)
    if failures and meaning == "tell":
        return session.fail(number, failures[0].why)
    if meaning == "add":
        known = session.trial(number)
        cells = {index: cell for index, cell in cells.items() if session.outputs[index].value(known) is None}
    y, bars = measurement_of(session.outputs, cells)
    if meaning == "correct":
        return session.correct(number, y, **bars)
    return session.tell(number, y, **bars, again=meaning == "again")


def _parsed(session: Session, data: FormData, prefix: str) -> dict[int, ParsedCell]:
    """Return the cells of a form about one experiment that are not empty, by the index of the output."""
    cells: dict[int, ParsedCell] = {}
    for output in session.outputs:
        try:
            cell = parse_cell(data.get(f"{prefix}{output.suffix}", ""))
        except ValueError as error:
            raise ValueError(str(error) if output.name is None else f"{output.title}: {error}") from None
        cells |= {} if cell.empty else {output.index: cell}
    return cells


@form_handler
async def add_measurement(request: Request, data: FormData) -> Response:
    """Save a measurement at a point that was not suggested."""
    session = await _session(request)
    try:
        point = {}
        for field in session.fields:
            typed = data.get(f"own-{field.key}", "").strip()
            if not field.varies:
                point[field.key] = field.options[0]
            elif typed:
                point[field.key] = field.parse(typed)
        cells = _parsed(session, data, "own-result")
        if not cells or any(cell.y is None for cell in cells.values()):
            raise ValueError("There is no result; give a number")
        y, bars = measurement_of(session.outputs, cells)
        named = isinstance(session.fields[0].key, str)
        x: Any = point if named else [point.get(j) for j in range(len(session.fields))]
        trial = await run_in_threadpool(lambda: session.observe(x, y, **bars))
        await run_in_threadpool(_sign, session, trial.number, "told", data)
    except (ValueError, TypeError) as error:
        return await show_study(request, session, InvalidInput(own=data, own_problem=_problem(error)), 400)
    notes = [f"{cell.note}." for cell in cells.values() if cell.note]
    return _redirect(request, session, [f"Added as trial {trial.number}.", *notes, *_warnings(session, trial)])


@form_handler
async def update_trial(request: Request, data: FormData) -> Response:
    """Handle a form on the page of one trial."""
    session, number, action = await _session(request), trial_number(request), data.get("word", "")
    typed = {one.index: data.get(f"y{one.suffix}", "") for one in session.outputs}
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
        rejected = InvalidForm(action, typed, _problem(error), step, {**typed_beside(data), "why": data.get("why", "")})
        return await show_trial(request, session, number, rejected, 400)
    return _redirect(request, session, messages, path="" if action == "forget" else f"/trial/{number}")


def _update(session: Session, number: int, action: str, data: FormData) -> list[str]:
    """Do what a form about one trial asks for. Return the messages for the next page."""
    match action:
        case "tell" | "correct" | "again":
            cells, entry = _parsed(session, data, "y"), BenchEntry.of(data, number)
            entry.check(number)
            used = _used(session, number, entry) if action == "tell" else None
            saved = _save(session, number, cells, action, entry, used)
            if saved.status == "failed":
                return [f"Trial {number} failed."]
            done = "Corrected." if action == "correct" else "Saved."
            done = done if saved.number == number else f"Saved as trial {saved.number}."
            notes = [f"{cell.note}." for cell in cells.values() if cell.note]
            return [done, *notes, *_warnings(session, saved)]
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
        case "forget":
            session.forget(number)
        case _:
            raise ValueError("No action was chosen; press one of the buttons")
    _sign(session, number, DEEDS[action], data)
    return [f"Trial {number} {ACTIONS[action]}."]


def _report(session: Session, number: int, data: FormData) -> list[str]:
    """Save a value on the way to the target of a fidelity. Return the messages for the next page."""
    typed = data.get("step", "").strip()
    if not re.fullmatch(r"[0-9]{1,9}", typed):
        raise ValueError(f"The step is {typed[:40]!r}; give a whole number")
    cells = _parsed(session, data, "y")
    if not cells or any(cell.y is None for cell in cells.values()):
        raise ValueError("There is no value at this step; give a number")
    y, bars = measurement_of(session.outputs, cells)
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
        problem = "Every candidate has been suggested already."
        return await show_study(request, session, InvalidInput(asked=data, ask_problem=problem), 400)
    except (ValueError, TypeError) as error:
        return await show_study(request, session, InvalidInput(asked=data, ask_problem=_problem(error)), 400)
    few = f"Only {len(trials)} were left." if len(trials) < int(typed) else ""
    return _redirect(request, session, [few] if few else [])


# The choice of a point


@form_handler
async def choose_point(request: Request, data: FormData) -> Response:
    """Look for the best predicted point under conditions, and show it on the page of the study."""
    session = await _session(request)
    typed = {name: text for name, text in data.items() if name.startswith("choose-")}
    try:
        output, direction, where, confidence = choice_of(session, data)
        found = await run_in_threadpool(session.choose, output, direction, where, confidence)
    except (ValueError, TypeError) as error:
        rejected = InvalidInput(choice=ChoiceInput(typed, problem=f"{error}."))
        return await show_study(request, session, rejected, 400)
    key = state_of(request).choices.add(ChoiceInput(typed, found, session.slug))
    return RedirectResponse(f"/study/{session.slug}?chosen={key}#choice", 303)


@form_handler
async def plan_trial(request: Request, data: FormData) -> Response:
    """Add a pending trial at the point that was chosen."""
    session, choice = await _session(request), state_of(request).choices.get(data.get("chosen"))
    if choice is None or choice.found is None or choice.slug != session.slug:
        problem = "The chosen point is no longer available; choose it again."
        return await show_study(request, session, InvalidInput(choice=ChoiceInput({}, problem=problem)), 400)
    try:
        trial = await run_in_threadpool(session.plan, choice.found.x)
    except (ValueError, TypeError, SpaceExhausted) as error:
        rejected = InvalidInput(choice=ChoiceInput(choice.typed, problem=f"It cannot be added: {_problem(error)}"))
        return await show_study(request, session, rejected, 400)
    return _redirect(request, session, [f"Trial {trial.number} is at the chosen point. Enter its results below."])


# New studies


@form_handler
async def create_from_parameters(request: Request, data: FormData) -> Response:
    try:
        table = typed_study(data)
        session = await _create(request, data, dict(table.parameters), table.options)
    except (ValueError, TypeError) as error:
        return new_study.new_study_page(request, data, in_form_words(str(error)), 400, field_of(error))
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
        return new_study.table_page(request, key, table, data, in_form_words(str(error)), 400, field_of(error))
    known = [(x, {i: cell for i, cell in cells.items() if cell.y is not None}) for x, cells in outcomes]
    values = [(x, *measurement_of(outputs, cells)) for x, cells in known if cells]
    if values:
        told = [(x, y, bars.get("noise_var", 0.0)) for x, y, bars in values]
        await run_in_threadpool(session.writer.optimizer.tell_all, told)
    return _redirect(request, session, _created(len(values), len(outcomes) - len(values)))


async def _create(request: Request, data: FormData, space: Any, options: Mapping[str, Any]) -> Session:
    state = state_of(request)
    created = await run_in_threadpool(lambda: state.catalogue.create(data.get("study", ""), space, **options))
    return await state.session(created.slug)


def _created(results: int = 0, failures: int = 0) -> list[str]:
    messages = ["The study was created."] + ([f"{_counted(results, 'known result')} imported."] if results else [])
    left_out = f"{_counted(failures, 'failed row')} not imported: they can still be suggested."
    return messages + ([left_out] if failures else [])


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count != 1 else ''}"


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
