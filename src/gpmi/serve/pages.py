"""The pages that can be looked at. None of them changes anything."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from gpmi.serve import new_study
from gpmi.serve.layout import labelled, message, notices, page, room_of
from gpmi.serve.live import TooMany
from gpmi.serve.notebook import Typed, notebook
from gpmi.serve.session import Desk, NoSuchTrial
from gpmi.serve.trial_page import Wrong, trial_sheet
from gpmi.serve.trial_table import trials_table
from gpmi.storage.errors import StudyError
from gpmi.trials.files import text_of
from gpmi.views.html import SCRIPT, STYLE
from gpmi.views.html.markup import Child, tag

ROWS = 50  # trials on one page; our choice
STATUSES = {
    "told": "results",
    "pending": "waiting",
    "failed": "failed",
    "rejected": "set aside",
    "retracted": "taken back",
}
Endpoint = Callable[[Request], Awaitable[Response]]


def about_a_study(endpoint: Callable[[Request, Desk], Awaitable[Response]]) -> Endpoint:
    """A page about the study that its address names; what is wrong is said on a page."""

    @wraps(endpoint)
    async def wrapped(request: Request) -> Response:
        try:
            desk = await room_of(request).desk(request.path_params["slug"])
            return await endpoint(request, desk)
        except (LookupError, NoSuchTrial) as error:
            return message(request, f"{error.args[0]}.", title="Not found", status=404)
        except (StudyError, TooMany) as error:
            return message(request, str(error) or "Too many watch this study.", title="Not now", status=503)

    return wrapped


def links(desk: Desk) -> list[tuple[str, str]]:
    at = f"/study/{desk.slug}"
    return [(at, "Notebook"), (f"{at}/trials", "Trials"), (f"{at}/report", "Report")]


async def show(
    request: Request, desk: Desk, typed: Typed | None = None, status: int = 200, done: Sequence[str] = ()
) -> HTMLResponse:
    """The page of a study, perhaps with what was done, and with what was typed and could not be taken."""
    room = room_of(request)
    live = room.live(desk)
    look = await run_in_threadpool(desk.look)
    live.saw(look.seq)
    live.up_to_date()
    said: dict[str, list[str]] = room.messages.get(request.query_params.get("said")) or {}
    goal = "The largest result is looked for." if desk.goal == "max" else "The smallest result is looked for."
    state = live.state
    return page(
        request,
        desk.title,
        tag("p", goal, " ", tag("span", id="live", class_="live", role="status"), class_="muted under"),
        notices([*said.get("done", ()), *done]),
        notebook(request, desk, look, live, typed or Typed()),
        links=links(desk),
        status=status,
        data_events=f"/study/{desk.slug}/events",
        data_seq=str(look.seq),
        data_known=str(state["known"]),
        data_pictures=str(state["pictures"]),
    )


@about_a_study
async def study(request: Request, desk: Desk) -> Response:
    return await show(request, desk)


@about_a_study
async def events(request: Request, desk: Desk) -> Response:
    live = room_of(request).live(desk)
    live.admit()
    return StreamingResponse(live.events(), media_type="text/event-stream")


@about_a_study
async def trials(request: Request, desk: Desk) -> Response:
    look = await run_in_threadpool(desk.look)
    status = request.query_params.get("status", "")
    found = [trial for trial in look.trials if status not in STATUSES or trial.status == status][::-1]
    last = max(1, -(-len(found) // ROWS))
    given = request.query_params.get("page", "1")
    number = min(max(1, int(given) if given.isascii() and given.isdecimal() and len(given) < 9 else 1), last)
    at = f"/study/{desk.slug}"
    shown = found[(number - 1) * ROWS : number * ROWS]
    filters = [tag("a", "all", href=f"{at}/trials", aria_current=None if status in STATUSES else "true")]
    for one, words in STATUSES.items():
        here = f"{at}/trials?status={one}"
        filters.append(tag("a", words, href=here, aria_current="true" if status == one else None))
    more = f"&status={status}" if status in STATUSES else ""
    turns = [
        tag("a", words, href=f"{at}/trials?page={to}{more}")
        for words, to in (("Newer", number - 1), ("Older", number + 1))
        if 1 <= to <= last
    ]
    count = f"{len(found)} trials" + (f", page {number} of {last}" if last > 1 else "")
    table: Child = (
        trials_table(desk, shown, look.best, at, "Trials, the newest first")
        if shown
        else tag("p", "There are none.", class_="empty")
    )
    return page(
        request,
        f"Trials of {desk.title}",
        tag("p", [[one, " "] for one in filters], class_="filters"),
        tag("div", tag("p", count, class_="muted"), table, id="trials", data_live=True, class_="card"),
        tag("p", [[one, " "] for one in turns], class_="filters"),
        tag("p", tag("a", "Download all as CSV", href=f"{at}/trials.csv")),
        links=links(desk),
        data_events=f"{at}/events",
        data_seq=str(look.seq),
    )


@about_a_study
async def trial(request: Request, desk: Desk) -> Response:
    return await show_trial(request, desk, request.path_params["number"])


async def show_trial(
    request: Request, desk: Desk, number: int, wrong: Wrong | None = None, status: int = 200
) -> Response:
    one = await run_in_threadpool(desk.trial, number)
    said = room_of(request).messages.get(request.query_params.get("said")) or {}
    return page(
        request,
        f"Trial {number} of {desk.title}",
        notices(said.get("done", ())),
        trial_sheet(request, desk, one, wrong),
        links=links(desk),
        status=status,
    )


@about_a_study
async def csv(request: Request, desk: Desk) -> Response:
    text = await run_in_threadpool(text_of, desk.reader, ".csv")
    headers = {"content-disposition": f'attachment; filename="{desk.slug}.csv"'}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


@about_a_study
async def report(request: Request, desk: Desk) -> Response:
    """The report, which has its style and its script inside: those alone are allowed, by their hashes."""
    html = await run_in_threadpool(desk.thinker.read, "report", desk.reader, f"Report of {desk.title}")
    style, script = (
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in (STYLE, SCRIPT)
    )
    policy = f"default-src 'none'; style-src {style}; script-src {script}; base-uri 'none'; frame-ancestors 'none'"
    return HTMLResponse(html, headers={"content-security-policy": policy})


async def home(request: Request) -> Response:
    """The only study; or all of them; or the page that makes the first one."""
    try:
        books = await run_in_threadpool(room_of(request).shelf.books)
    except StudyError as error:
        return message(request, str(error), title="Not now", status=503)
    wrong = list(room_of(request).shelf.unreadable)
    if not books and not wrong:
        return RedirectResponse("/new", 303)
    if len(books) == 1 and not wrong and request.headers.get("referer") is None:
        return RedirectResponse(f"/study/{books[0].slug}", 303)
    items = [tag("li", tag("a", book.title, href=f"/study/{book.slug}")) for book in books]
    return page(
        request,
        "Studies",
        tag("p", f"In {room_of(request).shelf.shown}.", class_="muted"),
        notices((f"{one}." for one in wrong), "wrong"),
        tag("ul", items, class_="books card") if items else None,
        tag("p", tag("a", "Begin a new study", href="/new", class_="button")),
    )


async def new(request: Request) -> Response:
    return new_study.show(request, {})


async def enter(request: Request) -> Response:
    """Where the token is asked for."""
    return ask_for_token(request)


def ask_for_token(request: Request, problem: str = "", status: int = 401) -> HTMLResponse:
    control = tag("input", type="password", name="token", autocomplete="current-password", required=True)
    inner = tag(  # not `form`: who has no token is not told the secret of our forms
        "form", labelled("Token", control, "It was printed where the server was started."),
        tag("p", tag("button", "Enter", class_="main")), method="post", action="/enter", class_="card",
    )  # fmt: skip
    return page(request, "Who is there?", notices([problem] if problem else [], "wrong"), inner, status=status)


async def nowhere(request: Request) -> Response:
    raise HTTPException(404, "There is no such page.")


ROUTES = [
    Route("/", home),
    Route("/new", new),
    Route("/enter", enter),
    Route("/study/{slug}", study),
    Route("/study/{slug}/events", events),
    Route("/study/{slug}/trials", trials),
    Route("/study/{slug}/trials.csv", csv),
    Route("/study/{slug}/report", report),
    Route("/study/{slug}/trial/{number:int}", trial),
    Route("/{rest:path}", nowhere),
]
