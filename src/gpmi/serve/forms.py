"""What is sent by forms. Each is taken once, and what cannot be taken is shown again with what is wrong."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from gpmi.serve import new_space, new_study
from gpmi.serve.layout import again, message, notices, page, room_of
from gpmi.serve.notebook import Typed
from gpmi.serve.numbers import Cell, cell, column
from gpmi.serve.pages import ask_for_token, links, show, show_trial
from gpmi.serve.security import UPLOAD, same
from gpmi.serve.session import Conflict, Desk, NoSuchTrial
from gpmi.serve.trial_page import Clash, Wrong, clashes
from gpmi.space import SpaceExhausted
from gpmi.storage.errors import StudyError
from gpmi.trials import Trial

FIELDS = 5000  # of a form, at most: a thousand trials have a result and a reason each. Our choice
# The words that may be said of a trial beside its result, and how they are told afterwards.
WORDS = {"fail": "has failed", "reject": "was set aside", "forget": "was put back", "retract": "was taken back"}
BUTTONS = (*WORDS, "again", "correct", "leave")  # of the table of results; each carries the number of its trial
Said = Mapping[str, str]
Handler = Callable[[Request, Said], Awaitable[Response]]


def posted(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """A form of our own pages, read and checked; a second click leads to where the first one led."""

    @wraps(handler)
    async def wrapped(request: Request) -> Response:
        said, fields = await _read(request)
        room = room_of(request)
        if not same(said.get("csrf", ""), room.guard.secret):
            if not _is_our_page(request):
                return PlainTextResponse("the form is not one of this server's pages", 403)
            words = "The server was started anew since the page was opened. Look at what you sent, and send it again."
            return again(request, fields, words, 403)
        once = said.get("once", "")
        async with room.turn(once):
            led = room.done.get(once)
            if led is not None:
                return RedirectResponse(led, 303)
            try:
                answer = await handler(request, said)
            except (LookupError, NoSuchTrial) as error:
                return message(request, f"{error.args[0]}.", title="Not found", status=404)
            except StudyError as error:
                words = f"{error}. Send it again in a moment; what is saved already counts once."
                return again(request, fields, words, 503)
            if once and answer.status_code == 303:
                room.done.put(once, answer.headers["location"])
            return answer

    return wrapped


def _is_our_page(request: Request) -> bool:
    """Whether a browser says that the request comes from a page of this server; the guard has refused all others."""
    return "origin" in request.headers or request.headers.get("sec-fetch-site") == "same-origin"


async def _read(request: Request) -> tuple[dict[str, str], list[tuple[str, str]]]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/x-www-form-urlencoded", "multipart/form-data"):
        raise HTTPException(415, "send a form")
    try:
        form = await request.form(max_files=1, max_fields=FIELDS, max_part_size=UPLOAD)
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


def _to(request: Request, desk: Desk, done: list[str], path: str = "") -> Response:
    """Go to a page of a study, which says what was done."""
    key = room_of(request).messages.keep({"done": done})
    return RedirectResponse(f"/study/{desk.slug}{path}?said={key}", 303)


async def _desk(request: Request) -> Desk:
    return await room_of(request).desk(request.path_params["slug"])


# A study


@posted
async def ask(request: Request, said: Said) -> Response:
    desk = await _desk(request)
    try:
        typed = said.get("n", "1").strip()
        if not re.fullmatch(r"[0-9]{1,4}", typed):
            raise ValueError(f"the number of experiments is {typed[:40]!r}; give a whole number")
        fixed = {
            field.key: field.read(said[f"given-{field.key}"])
            for field in desk.fields
            if said.get(f"given-{field.key}", "").strip()
        }
        trials = await run_in_threadpool(desk.ask, int(typed), fixed or None)
    except SpaceExhausted:
        return await show(request, desk, Typed(asked=said, ask_problem="Every candidate has been suggested."), 400)
    except (ValueError, TypeError) as error:
        return await show(request, desk, Typed(asked=said, ask_problem=f"{error}."), 400)
    few = f"Only {len(trials)} were left." if len(trials) < int(typed) else ""
    return _to(request, desk, [few] if few else [])


@posted
async def results(request: Request, said: Said) -> Response:
    """Results of any number of trials, typed or pasted; and perhaps that one of them failed."""
    desk = await _desk(request)
    cells = {int(key[2:]): value for key, value in said.items() if re.fullmatch(r"y-[0-9]{1,9}", key)}
    order = [int(one) for one in said.get("order", "").split(",") if re.fullmatch(r"[0-9]{1,9}", one)]
    try:
        pasted = column(said.get("pasted", ""), order) if said.get("pasted", "").strip() else {}
        for number, words in pasted.items():
            if words.strip() and cells.get(number, "").strip() not in ("", words.strip()):
                raise ValueError(
                    f"trial {number} has a result that was typed and another one that was pasted; empty one"
                )
    except ValueError as error:
        return await show(request, desk, Typed(cells=cells, pasted=said["pasted"], paste_problem=f"{error}."), 400)
    cells |= {number: words for number, words in pasted.items() if words.strip()}
    chosen = {word: int(said[word]) for word in BUTTONS if re.fullmatch(r"[0-9]{1,9}", said.get(word, ""))}
    outcome = Outcomes(desk)
    for number, words in cells.items():
        if number not in (chosen.get("leave"), chosen.get("retract")):
            meant = next((word for word in ("again", "correct") if number == chosen.get(word)), "tell")
            await outcome.take(number, words, meant)
    for word in WORDS:
        if word in chosen:
            await outcome.word(chosen[word], word, said.get(f"why-{chosen[word]}", ""))
    return await _ended(request, desk, outcome)


async def _ended(request: Request, desk: Desk, outcome: Outcomes) -> Response:
    """The page after results were taken, or the one that keeps what was not."""
    done = await run_in_threadpool(outcome.in_words)
    typed = Typed(cells=outcome.typed, problems=outcome.problems)
    if outcome.clashes:
        body = clashes(request, desk, outcome.clashes, typed)
        return page(request, "Somebody was faster", notices(done), body, links=links(desk), status=409)
    if outcome.problems:
        return await show(request, desk, typed, 400, done)
    return _to(request, desk, done)


class Outcomes:
    """What became of the cells of a form: saved, wrong, or answered by somebody else meanwhile."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.saved: list[Trial] = []
        self.notes: list[str] = []
        self.typed: dict[int, str] = {}
        self.problems: dict[int, str] = {}
        self.clashes: list[Clash] = []

    async def take(self, number: int, words: str, meant: str = "tell") -> None:
        """Save one cell; one that is empty says nothing. It may be meant as a correction, or as measured again."""
        try:
            read = cell(words)
            if read.empty:
                return
            self.saved.append(await run_in_threadpool(_say, self.desk, number, read, meant))
            self.notes += [read.note] if read.note else []
        except Conflict as conflict:
            self.clashes.append(Clash.of(conflict, words))
        except (ValueError, TypeError, NoSuchTrial) as error:
            self.typed[number], self.problems[number] = words, f"{error}."

    async def word(self, number: int, word: str, why: str) -> None:
        """That a trial failed, cannot be done, or is put back."""
        more = (why.strip() or None,) if word == "fail" else ()
        try:
            await run_in_threadpool(getattr(self.desk, word), number, *more)
            self.notes.append(f"Trial {number} {WORDS[word]}")
        except Conflict as conflict:
            self.clashes.append(Clash(conflict, word=word, why=why.strip()))
        except (ValueError, TypeError, NoSuchTrial) as error:
            self.problems[number] = f"{error}."

    def in_words(self) -> list[str]:
        failed = sum(trial.status == "failed" for trial in self.saved)
        counts = {"result": len(self.saved) - failed, "failure": failed}
        kinds = [f"{count} {kind}{'s' if count != 1 else ''}" for kind, count in counts.items() if count]
        said = [f"{' and '.join(kinds)} saved."] if kinds else []
        if any(not self.desk.is_stored(trial) for trial in self.saved[:1]):
            said.append("The database does not answer: they are kept in a file, and delivered as soon as it does.")
        return said + [f"{note}." for note in self.notes[:10]]


def _say(desk: Desk, number: int, read: Cell, meant: str) -> Trial:
    """Save what a cell says of a trial: its outcome, one more measurement (again), or a correction."""
    if read.failed and meant == "tell":
        return desk.fail(number, read.why)
    if read.y is None:
        raise ValueError("there is no number; give the result")
    if meant == "correct":
        return desk.correct(number, read.y, **({"noise_var": read.noise_var} if read.noise_var else {}))
    return desk.tell(number, read.y, noise_var=read.noise_var, again=meant == "again")


@posted
async def observe(request: Request, said: Said) -> Response:
    """A measurement that nobody asked for."""
    desk = await _desk(request)
    try:
        point = {}
        for field in desk.fields:
            typed = said.get(f"own-{field.key}", "").strip()
            if field.kind == "constant":
                point[field.key] = field.options[0]
            elif typed:
                point[field.key] = field.read(typed)
        read = cell(said.get("own-result", ""))
        y = read.y
        if y is None:
            raise ValueError("there is no result; give a number")
        x: Any = point if isinstance(desk.fields[0].key, str) else [point.get(j) for j in range(len(desk.fields))]
        trial = await run_in_threadpool(lambda: desk.observe(x, y, noise_var=read.noise_var))
    except (ValueError, TypeError) as error:
        return await show(request, desk, Typed(own=said, own_problem=f"{error}."), 400)
    return _to(request, desk, [f"Added as trial {trial.number}.", *([f"{read.note}."] if read.note else [])])


@posted
async def trial(request: Request, said: Said) -> Response:
    """What is said of one trial on its own page."""
    desk, number, word = await _desk(request), int(request.path_params["number"]), said.get("word", "")
    typed = said.get("y", "")
    try:
        note = await run_in_threadpool(_word, desk, number, word, said)
    except Conflict as conflict:
        clash = Clash(conflict, word=word, why=said.get("why", "")) if word in WORDS else Clash.of(conflict, typed)
        body = clashes(request, desk, [clash], Typed())
        return page(request, "Somebody was faster", body, links=links(desk), status=409)
    except (ValueError, TypeError) as error:
        return await show_trial(request, desk, number, Wrong(word, typed, f"{error}."), 400)
    return _to(request, desk, note, path="" if word == "forget" else f"/trial/{number}")


def _word(desk: Desk, number: int, word: str, said: Said) -> list[str]:
    """Do what a form about one trial says; what was done, in words."""
    match word:
        case "tell" | "correct" | "again":
            read = cell(said.get("y", ""))
            saved = _say(desk, number, read, word)
            if saved.status == "failed":
                return ["It has failed."]
            done = "It is corrected." if word == "correct" else "Saved."
            done = done if saved.number == number else f"Saved as trial {saved.number}."
            return [done, *([f"{read.note}."] if read.note else [])]
        case "fail":
            desk.fail(number, said.get("why", "").strip() or None)
        case "reject":
            desk.reject(number)
        case "retract":
            desk.retract(number)
        case "forget":
            desk.forget(number)
        case _:
            raise ValueError("nothing was chosen; press one of the buttons")
    return [{"fail": "It has failed.", "reject": "It is set aside."}.get(word, "Done.")]


# New studies


@posted
async def new_parameters(request: Request, said: Said) -> Response:
    try:
        space, options = new_space.space_of(said), new_space.options_of(said)
        book = await run_in_threadpool(lambda: room_of(request).shelf.make(said.get("study", ""), space, **options))
    except (ValueError, TypeError) as error:
        return new_study.show(request, said, f"{error}.", 400)
    desk = await room_of(request).desk(book.slug)
    return _to(request, desk, _made())


@posted
async def new_table(request: Request, said: Said) -> Response:
    raw: bytes = getattr(request.state, "file", b"")
    try:
        if not raw.strip():
            raise ValueError("no file was chosen, or it is empty")
        table = await run_in_threadpool(new_space.read_table, raw)
    except ValueError as error:
        return new_study.show(request, {}, f"{error}.", 400)
    return new_study.show_table(request, room_of(request).tables.keep(table), table, {})


@posted
async def new_candidates(request: Request, said: Said) -> Response:
    key = said.get("key", "")
    table = room_of(request).tables.get(key)
    if table is None:
        return new_study.show(request, said, "The table is no longer here; choose the file again.", 400)
    try:
        space, known = await run_in_threadpool(new_space.candidates_of, table, said)
        options = new_space.options_of(said)
        book = await run_in_threadpool(lambda: room_of(request).shelf.make(said.get("study", ""), space, **options))
    except (ValueError, TypeError) as error:
        return new_study.show_table(request, key, table, said, f"{error}.", 400)
    desk = await room_of(request).desk(book.slug)
    values = [(x, read.y, read.noise_var) for x, read in known if read.y is not None]
    if values:
        await run_in_threadpool(desk.writer.optimizer.tell_all, values)
    return _to(request, desk, _made(len(values), len(known) - len(values)))


def _made(known: int = 0, failed: int = 0) -> list[str]:
    said = ["The study is made."] + ([f"{known} known results were taken over."] if known else [])
    return said + ([f"Rows that failed were not, and may be suggested: {failed}."] if failed else [])


async def enter(request: Request) -> Response:
    """The token, once; the browser keeps it from then on."""
    said, _ = await _read(request)
    guard = room_of(request).guard
    if guard.token is None:
        return RedirectResponse("/", 303)
    if not same(said.get("token", "").strip(), guard.token):
        return ask_for_token(request, "That is not the token.")
    return guard.admit(RedirectResponse("/", 303))


ROUTES = [
    Route("/enter", enter, methods=["POST"]),
    Route("/new/parameters", new_parameters, methods=["POST"]),
    Route("/new/table", new_table, methods=["POST"]),
    Route("/new/candidates", new_candidates, methods=["POST"]),
    Route("/study/{slug}/ask", ask, methods=["POST"]),
    Route("/study/{slug}/results", results, methods=["POST"]),
    Route("/study/{slug}/observe", observe, methods=["POST"]),
    Route("/study/{slug}/trial/{number:int}", trial, methods=["POST"]),
]
