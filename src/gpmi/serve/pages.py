"""The pages of the server (GET). None of them changes anything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from gpmi.serve import new_study
from gpmi.serve.app_state import state_of
from gpmi.serve.best_so_far import best_so_far
from gpmi.serve.front_page import ChoiceInput
from gpmi.serve.live_updates import TooManyWatchers
from gpmi.serve.page_layout import full_page, hidden, labelled, message_page, nothing_saved, notices, refusal_notice
from gpmi.serve.print_sheet import PLATES, sheet_body, sheet_csv
from gpmi.serve.security import UNBUFFERED
from gpmi.serve.session import NoSuchTrial, Session
from gpmi.serve.study_page import InvalidInput, study_body
from gpmi.serve.trial_page import InvalidForm, allowed_actions, trial_body
from gpmi.serve.trial_table import matches, trials_table
from gpmi.storage import StudyError
from gpmi.trials import files
from gpmi.views.html.markup import Child, tag
from gpmi.views.html.report import POLICY as REPORT_POLICY

PAGE_SIZE = 50  # trials on one page; our choice
MAX_SEARCH = 200  # characters; our choice
STATUSES = {
    "told": "results",
    "pending": "waiting",
    "stopped": "stopped",
    "failed": "failed",
    "rejected": "skipped",
    "retracted": "retracted",
}
Endpoint = Callable[[Request], Awaitable[Response]]


def with_session(endpoint: Callable[[Request, Session], Awaitable[Response]]) -> Endpoint:
    """Wrap a page about the study in its address: open the session, and show errors as pages."""

    @wraps(endpoint)
    async def wrapped(request: Request) -> Response:
        try:
            session = await state_of(request).session(request.path_params["slug"])
            return await endpoint(request, session)
        except (LookupError, NoSuchTrial) as error:
            return message_page(request, f"{error.args[0]}.", title="Not found", status=404)
        except (StudyError, TooManyWatchers) as error:
            return message_page(request, f"{error}.", title="Not now", status=503)

    return wrapped


def study_links(session: Session) -> list[tuple[str, str]]:
    """Return the navigation of a study."""
    at = f"/study/{session.slug}"
    return [(at, "Notebook"), (f"{at}/trials", "Trials"), (f"{at}/report", "Report")]


async def show_study(
    request: Request,
    session: Session,
    rejected: InvalidInput | None = None,
    status: int = 200,
    messages: Sequence[str] = (),
) -> HTMLResponse:
    """Return the page of a study, with messages about what was done and with input that could not be saved."""
    live = state_of(request).live(session)
    snapshot = await run_in_threadpool(session.snapshot)
    live.note_seq(snapshot.seq)
    live.up_to_date()
    state = live.state
    choice: ChoiceInput | None = state_of(request).choices.get(request.query_params.get("chosen"))
    if choice is not None and choice.slug != session.slug:
        choice = None
    return full_page(
        request,
        session.title,
        tag("p", _goal(session), " ", tag("span", id="live", class_="live", role="status"), class_="muted under"),
        refusal_notice(None if rejected is None else rejected.refusal),
        notices([*_messages(request), *messages]),
        study_body(request, session, snapshot, live, rejected or InvalidInput(), choice),
        links=study_links(session),
        status=status,
        data_events=f"/study/{session.slug}/events",
        data_seq=str(snapshot.seq),
        data_known=str(state["known"]),
        data_pictures=str(state["pictures"]),
    )


def _goal(session: Session) -> str:
    """Return what the study looks for, in a sentence."""
    wishes = [output.wish for output in session.outputs]
    return f"Goal{'s' if len(wishes) > 1 else ''}: {'; '.join(wishes)}."


def _messages(request: Request) -> list[str]:
    """Return the messages that a form left for this page."""
    messages: dict[str, list[str]] = state_of(request).messages.get(request.query_params.get("said")) or {}
    return messages.get("done", [])


@with_session
async def study(request: Request, session: Session) -> Response:
    return await show_study(request, session)


@with_session
async def events(request: Request, session: Session) -> Response:
    live = state_of(request).live(session)
    live.check_capacity()
    return StreamingResponse(live.events(), media_type="text/event-stream", headers=UNBUFFERED)


@with_session
async def trials(request: Request, session: Session) -> Response:
    live = state_of(request).live(session)
    snapshot = await run_in_threadpool(session.snapshot)
    best = best_so_far(session, snapshot, live)
    computed = best.follow()
    status = request.query_params.get("status", "")
    sought = request.query_params.get("q", "")[:MAX_SEARCH]
    words = sought.casefold().split()
    listed = [trial for trial in snapshot.trials if status not in STATUSES or trial.status == status][::-1]
    if words:
        listed = [trial for trial in listed if matches(session, snapshot, trial, words)]
    query = f"&{urlencode({'q': sought})}" if words else ""
    last = max(1, -(-len(listed) // PAGE_SIZE))
    asked = request.query_params.get("page", "1")
    number = min(max(1, int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 9 else 1), last)
    at = f"/study/{session.slug}"
    shown = listed[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]
    filters = [
        tag(
            "a",
            "all",
            href=f"{at}/trials{query.replace('&', '?', 1)}",
            aria_current=None if status in STATUSES else "true",
        )
    ]
    for key in session.evaluations.statuses:
        here = f"{at}/trials?status={key}{query}"
        filters.append(tag("a", STATUSES[key], href=here, aria_current="true" if status == key else None))
    rest = query + (f"&status={status}" if status in STATUSES else "")
    turns = [
        tag("a", text, href=f"{at}/trials?page={to}{rest}")
        for text, to in (("Newer", number - 1), ("Older", number + 1))
        if 1 <= to <= last
    ]
    count = f"{len(listed)} trial{'s' if len(listed) != 1 else ''}" + (f", page {number} of {last}" if last > 1 else "")
    table: Child = (
        trials_table(session, shown, best.marks, "Trials, the newest first", snapshot=snapshot, signed=True)
        if shown
        else tag("p", "There are no such trials.", class_="empty")
    )
    return full_page(
        request,
        f"Trials of {session.title}",
        tag(
            "form",
            labelled(
                "Search",
                tag("input", type="search", name="q", value=sought, id="q"),
                "A name, a note, a file, a number: all words must be there.",
            ),
            hidden("status", status) if status in STATUSES else None,
            tag("button", "Search", class_="second"),
            method="get",
            action=f"{at}/trials",
            class_="search",
            role="search",
        ),
        tag("p", [[link, " "] for link in filters], class_="filters"),
        tag("div", tag("p", count, class_="muted"), table, id="trials", data_live=True, class_="card"),
        tag("p", [[link, " "] for link in turns], class_="filters"),
        tag("p", tag("a", "Download all as CSV", href=f"{at}/trials.csv")),
        links=study_links(session),
        data_events=f"{at}/events",
        data_seq=str(snapshot.seq),
        data_known=computed,
    )


@with_session
async def trial(request: Request, session: Session) -> Response:
    return await show_trial(request, session, trial_number(request))


def trial_number(request: Request) -> int:
    """Return the number of the trial in the address. Starlette's own `{number:int}` raises on thousands of digits."""
    text: str = request.path_params["number"]
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise HTTPException(404, "There is no such page.")
    return int(text)


async def show_trial(
    request: Request, session: Session, number: int, rejected: InvalidForm | None = None, status: int = 200
) -> Response:
    """Return the page of a trial, with input that could not be saved."""
    shown = await run_in_threadpool(session.trial, number)
    refusal = None
    if rejected is not None:
        has_form = rejected.action in allowed_actions(session, shown)
        refusal = nothing_saved(rejected.problem, f"{rejected.action}-title" if has_form else "")
    return full_page(
        request,
        f"Trial {number} of {session.title}",
        refusal_notice(refusal),
        notices(_messages(request)),
        trial_body(request, session, shown, rejected),
        links=study_links(session),
        status=status,
    )


@with_session
async def csv(request: Request, session: Session) -> Response:
    text = await run_in_threadpool(files.text_of, session.reader, ".csv")
    headers = {"content-disposition": f'attachment; filename="{session.slug}.csv"'}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


@with_session
async def sheet(request: Request, session: Session) -> Response:
    """Return the experiments that are waiting, as a sheet for the bench."""
    snapshot = await run_in_threadpool(session.snapshot)
    plate = request.query_params.get("plate", "")
    plate = plate if plate in PLATES else ""
    body = sheet_body(session, snapshot, plate)
    return full_page(request, f"To do: {session.title}", body, links=study_links(session), class_="sheet-page")


@with_session
async def sheet_as_csv(request: Request, session: Session) -> Response:
    snapshot = await run_in_threadpool(session.snapshot)
    text = sheet_csv(snapshot, request.query_params.get("plate", ""))
    headers = {"content-disposition": f'attachment; filename="{session.slug}-to-do.csv"'}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


@with_session
async def report(request: Request, session: Session) -> Response:
    """Return the report. Its policy allows the style and the script inside it, by their hashes, and nothing else."""
    html = await run_in_threadpool(session.model_worker.read, "report", session.reader, f"Report of {session.title}")
    policy = f"{REPORT_POLICY}; frame-ancestors 'none'"
    return HTMLResponse(html, headers={"content-security-policy": policy})


async def home(request: Request) -> Response:
    """Go to the only study, list all studies, or go to the page that creates the first one."""
    catalogue = state_of(request).catalogue
    try:
        studies = await run_in_threadpool(catalogue.studies)
    except StudyError as error:
        return message_page(request, f"{error}.", title="Not now", status=503)
    unreadable = list(catalogue.unreadable)
    if not studies and not unreadable:
        return RedirectResponse("/new", 303)
    if len(studies) == 1 and not unreadable and request.headers.get("referer") is None:
        return RedirectResponse(f"/study/{studies[0].slug}", 303)
    items = [tag("li", tag("a", each.title, href=f"/study/{each.slug}")) for each in studies]
    return full_page(
        request,
        "Studies",
        tag("p", f"In {catalogue.display_address}.", class_="muted"),
        notices((f"{problem}." for problem in unreadable), "wrong"),
        tag("ul", items, class_="studies card") if items else None,
        tag("p", tag("a", "Create a new study", href="/new", class_="button")),
    )


async def new(request: Request) -> Response:
    return new_study.new_study_page(request, {})


async def enter(request: Request) -> Response:
    """Return the page that asks for the token."""
    return token_page(request)


def token_page(request: Request, problem: str = "", status: int = 401) -> HTMLResponse:
    control = tag("input", type="password", name="token", autocomplete="current-password", required=True)
    inner = tag(  # not `form`, which contains the secret of our forms
        "form", labelled("Token", control, "The server printed it when it was started."),
        tag("p", tag("button", "Enter", class_="main")), method="post", action="/enter", class_="card",
    )  # fmt: skip
    return full_page(request, "Access token", notices([problem] if problem else [], "wrong"), inner, status=status)


async def not_found(request: Request) -> Response:
    raise HTTPException(404, "There is no such page.")


ROUTES = [
    Route("/", home),
    Route("/new", new),
    Route("/enter", enter),
    Route("/study/{slug}", study),
    Route("/study/{slug}/events", events),
    Route("/study/{slug}/trials", trials),
    Route("/study/{slug}/trials.csv", csv),
    Route("/study/{slug}/sheet", sheet),
    Route("/study/{slug}/sheet.csv", sheet_as_csv),
    Route("/study/{slug}/report", report),
    Route("/study/{slug}/trial/{number}", trial),
    Route("/{rest:path}", not_found),
]
