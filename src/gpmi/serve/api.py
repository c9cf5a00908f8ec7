"""The JSON API of a study, for programs. `gpmi.serve.openapi` describes it.

An outcome goes to a trial by its number. The same outcome sent twice counts once. A different one for the same trial is
refused with status 409 and the trial as it is. The caller then decides: correct it, or send it as one more observation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from gpmi._support import checks, refusals
from gpmi._support.types import Point
from gpmi.analysis import CONFIDENCE
from gpmi.serve.app_state import state_of
from gpmi.serve.live_updates import TooManyWatchers
from gpmi.serve.model_worker import ChosenPoint
from gpmi.serve.openapi import FLOAT_FIELDS, STATUSES, description
from gpmi.serve.security import UNBUFFERED
from gpmi.serve.session import MAX_BATCH, Conflict, NoSuchTrial, Session
from gpmi.space import Space, SpaceExhausted
from gpmi.storage import StudyError, point_to_json
from gpmi.trials import Details, Trial

MAX_PAGE = 1000  # trials in one answer; our choice
DETAILS = tuple(Details.__annotations__)  # what may accompany a value
Endpoint = Callable[[Request], Awaitable[Response]]


# Reading and writing JSON


def _code_of(error: Exception) -> dict[str, Any]:
    """Return the code of an error, for programs, and its values; nothing if it has no code."""
    if not isinstance(error, refusals.Refused) or not error.code:
        return {}
    return {"code": error.code, "values": error.values}


def trial_to_json(session: Session, trial: Trial) -> dict[str, Any]:
    """Return a trial as JSON, with its outputs if the study has goals. A number that is not known or finite is null."""
    payload: dict[str, Any] = {
        "number": trial.number,
        "x": point_to_json(session.space, trial.x),
        "label": _label(trial),
        "y": trial.y,
        "status": trial.status,
        "origin": trial.origin,
        "repeats": trial.repeats,
        "constraints": list(trial.constraints),
        "why": trial.why,
        "doubt": trial.doubt,
        "fixed": None if trial.fixed is None else {str(key): value for key, value in trial.fixed.items()},
    }
    suggested = session.reader.optimizer.log.suggested.get(trial.number)
    payload["suggested"] = None if suggested is None else point_to_json(session.space, suggested)
    payload["notes"] = [
        {"text": note.text, "who": note.who, "files": list(note.files), "did": note.did, "time": note.time}
        for note in session.reader.optimizer.log.annotations.get(trial.number, ())
    ]
    for name in FLOAT_FIELDS:
        value = getattr(trial, name)
        payload[name] = value if value is not None and math.isfinite(value) else None
    return {
        **payload,
        **session.outputs.trial_json(trial),
        **session.evaluations.trial_json(trial, session.outputs),
    }


def _label(trial: Trial) -> Any:
    return trial.label if trial.label is None or isinstance(trial.label, str | int | float) else str(trial.label)


async def body_of(request: Request, *allowed: str, required: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the JSON object of a request. Any other name than the allowed ones is refused."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "send JSON, with the header Content-Type: application/json")
    try:
        body = json.loads((await request.body()) or b"{}", parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is not JSON: {str(error)[:200]}") from None
    if not isinstance(body, dict):
        raise HTTPException(400, f"the body is {checks.shown(body)}; send a JSON object")
    for name in body:
        if name not in allowed:
            raise HTTPException(400, f"the name {checks.shown(name)} is unknown; the names are {', '.join(allowed)}")
    for name in required:
        if body.get(name) is None:
            raise HTTPException(400, f"{name} is missing; give it")
    return {name: value for name, value in body.items() if value is not None}


def _refuse_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number")


def whole(name: str, value: Any, least: int = 0) -> int:
    """Check a whole number of a JSON body. 1.0 is one; true is not."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} is {checks.shown(value)}; give a whole number")
    return checks.whole(name, value, least)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name} is {checks.shown(value)}; give true or false")
    return value


def _measurement(session: Session, body: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return y, or the outputs of a study with goals, and what accompanies it. All is checked.

    In JSON a whole number may be written as 1.0.
    """
    details = {name: body[name] for name in DETAILS if name in body}
    if "repeats" in details:
        details["repeats"] = whole("repeats", details["repeats"], 1)
    y = session.outputs.read_json(body)
    session.check(y, details)
    return y, details


def _point(space: Space, x: Any) -> Point:
    """Return the point that a JSON value describes."""
    if isinstance(x, dict) or (isinstance(x, list) and all(isinstance(value, int | float) for value in x)):
        return space.canonical(x)
    raise ValueError(f"x is {checks.shown(x)}; give an object of parameters, or a list of numbers")


def fixed_of(session: Session, fixed: Any) -> dict[Any, Any] | None:
    """Return the fixed coordinates of a JSON object. If points are lists, its keys are "0", "1", ..."""
    if fixed is None:
        return None
    if not isinstance(fixed, dict):
        raise ValueError(f"fixed is {checks.shown(fixed)}; give an object such as {{'temperature': 21.5}}")
    keys = {str(field.key): field.key for field in session.fields}
    return {keys.get(key, key): value for key, value in fixed.items()} or None


def _query_number(request: Request, name: str, default: int, most: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise ValueError(f"{name} is {checks.shown(text)}; give a whole number, 0 or larger")
    return min(int(text), most)


# Errors


def json_endpoint(endpoint: Callable[[Request, Session], Awaitable[Any]]) -> Endpoint:
    """Wrap an endpoint about one study: send what it returns as JSON, and an error as one sentence with its status."""

    @wraps(endpoint)
    async def wrapped(request: Request) -> Response:
        try:
            session = await state_of(request).session_or_only(request.query_params.get("study"))
            answer = await endpoint(request, session)
        except HTTPException as error:
            return JSONResponse({"error": error.detail}, error.status_code)
        except Conflict as error:
            return JSONResponse({"error": str(error), "trial": trial_to_json(session, error.trial)}, 409)
        except (NoSuchTrial, LookupError) as error:
            return JSONResponse({"error": str(error.args[0] if error.args else error)}, 404)
        except SpaceExhausted:
            return JSONResponse({"error": "every point of the space has been suggested"}, 410)
        except (ValueError, TypeError, OverflowError) as error:
            return JSONResponse({"error": str(error), **_code_of(error)}, 400)
        except (StudyError, TooManyWatchers) as error:
            return JSONResponse({"error": str(error)}, 503, {"retry-after": "5"})
        if request.method == "POST":
            await run_in_threadpool(session.write_back)
        return answer if isinstance(answer, Response) else JSONResponse(answer)

    return wrapped


async def _stored(session: Session, trial: Trial) -> Response:
    """Return a trial that got an outcome, with status 202 if the outcome is in a file and will be delivered later."""
    stored = await run_in_threadpool(session.is_stored, trial)
    return JSONResponse({"trial": trial_to_json(session, trial)}, 200 if stored else 202)


# Writing


@json_endpoint
async def ask(request: Request, session: Session) -> Any:
    body = await body_of(request, "n", "fixed")
    n, fixed = whole("n", body.get("n", 1), 1), fixed_of(session, body.get("fixed"))
    trials = await run_in_threadpool(session.ask, n, fixed)
    return {"trials": [trial_to_json(session, trial) for trial in trials]}


@json_endpoint
async def tell(request: Request, session: Session) -> Any:
    body = await body_of(request, "number", "x", "y", "outputs", *DETAILS, "again")
    if ("number" in body) == ("x" in body):
        raise ValueError("give either the number of a trial, or a point as x")
    y, details = _measurement(session, body)
    if "x" in body:
        point = _point(session.space, body["x"])
        return await _stored(session, await run_in_threadpool(session.observe, point, y, **details))
    number, again = whole("number", body["number"]), _flag("again", body.get("again", False))
    return await _stored(session, await run_in_threadpool(lambda: session.tell(number, y, again=again, **details)))


@json_endpoint
async def report(request: Request, session: Session) -> Any:
    """Record a value on the way to the target of a fidelity. Say whether to go on."""
    body = await body_of(request, "number", "step", "y", "outputs", required=("number", "step"))
    number, step = whole("number", body["number"]), whole("step", body["step"], 1)
    y, _ = _measurement(session, body)
    answer, trial = await run_in_threadpool(session.report, number, step, y)
    stored = step in [reported.step for reported in trial.curve]  # otherwise it is in a file, because of the database
    return JSONResponse({"answer": answer, "trial": trial_to_json(session, trial)}, 200 if stored else 202)


@json_endpoint
async def fail(request: Request, session: Session) -> Any:
    body = await body_of(request, "number", "why", required=("number",))
    return await _stored(
        session, await run_in_threadpool(session.fail, whole("number", body["number"]), body.get("why"))
    )


@json_endpoint
async def correct(request: Request, session: Session) -> Any:
    body = await body_of(request, "number", "y", "outputs", *DETAILS, required=("number",))
    number, (y, details) = whole("number", body["number"]), _measurement(session, body)
    return {"trial": trial_to_json(session, await run_in_threadpool(session.correct, number, y, **details))}


@json_endpoint
async def retract(request: Request, session: Session) -> Any:
    body = await body_of(request, "number", required=("number",))
    return {"trial": trial_to_json(session, await run_in_threadpool(session.retract, whole("number", body["number"])))}


@json_endpoint
async def reject(request: Request, session: Session) -> Any:
    body = await body_of(request, "number", "why", required=("number",))
    rejected = await run_in_threadpool(session.reject, whole("number", body["number"]), body.get("why"))
    return {"trial": trial_to_json(session, rejected)}


@json_endpoint
async def confirm(request: Request, session: Session) -> Any:
    """Say that a value which does not fit the others is right."""
    body = await body_of(request, "number", required=("number",))
    return {"trial": trial_to_json(session, await run_in_threadpool(session.confirm, whole("number", body["number"])))}


@json_endpoint
async def move(request: Request, session: Session) -> Any:
    """Record that a pending trial is done at another point than suggested."""
    body = await body_of(request, "number", "x", required=("number", "x"))
    number, point = whole("number", body["number"]), _point(session.space, body["x"])
    await run_in_threadpool(session.move, number, point)
    return {"trial": trial_to_json(session, await run_in_threadpool(session.trial, number))}


@json_endpoint
async def annotate(request: Request, session: Session) -> Any:
    """Write a note beside a trial."""
    body = await body_of(request, "number", "text", "who", "files", required=("number",))
    number = whole("number", body["number"])
    await run_in_threadpool(session.trial, number)  # 404 if there is none
    beside = {name: body[name] for name in ("who", "files") if name in body}
    await run_in_threadpool(lambda: session.annotate(number, body.get("text", ""), **beside))
    return {"trial": trial_to_json(session, await run_in_threadpool(session.trial, number))}


@json_endpoint
async def choose(request: Request, session: Session) -> Any:
    """Return the best predicted point under conditions. It changes nothing, but its arguments need a body."""
    body = await body_of(request, "output", "direction", "where", "confidence", required=("output", "direction"))
    goals = session.outputs.checked_goals()
    where = body.get("where", {})
    if not isinstance(where, dict):
        raise ValueError(f"where is {checks.shown(where)}; give an object such as {{'yield': '>= 70'}}")
    if not isinstance(body["output"], str):
        raise ValueError(f"output is {checks.shown(body['output'])}; give the name of one: {', '.join(goals)}")
    output, direction = goals.checked_name(body["output"]), body["direction"]
    if direction not in ("max", "min", "match"):
        raise ValueError(f"direction is {checks.shown(direction)}; give 'max', 'min', or 'match' for a target")
    confidence = checks.probability("confidence", body.get("confidence", CONFIDENCE))
    chosen = await run_in_threadpool(session.choose, output, direction, where, confidence)
    trial = None if chosen.trial is None else await run_in_threadpool(session.trial, chosen.trial)
    return {
        **_predicted(session, chosen),
        "trial": None if trial is None else trial_to_json(session, trial),
        "note": chosen.note,
        "untried": None if chosen.untried is None else _predicted(session, chosen.untried),
    }


def _predicted(session: Session, chosen: ChosenPoint) -> dict[str, Any]:
    """Return a chosen point with what is predicted there."""
    return {
        "x": point_to_json(session.space, chosen.x),
        "outputs": {name: {"mean": mean, "sd": sd} for name, (mean, sd) in chosen.outputs.items()},
        "probability": chosen.probability,
    }


@json_endpoint
async def forget(request: Request, session: Session) -> Any:
    body = await body_of(request, "number", required=("number",))
    number = whole("number", body["number"])
    await run_in_threadpool(session.forget, number)
    return {"number": number}


# Reading


@json_endpoint
async def about(request: Request, session: Session) -> Any:
    snapshot = await run_in_threadpool(session.snapshot)
    counts = {status: sum(trial.status == status for trial in snapshot.trials) for status in STATUSES}
    shown = ("name", "kind", "unit", "lo", "hi", "log")
    parameters = [
        {**{name: getattr(field, name) for name in shown}, "options": list(map(_plain, field.options))}
        for field in session.fields
    ]
    return {
        **{
            "study": session.slug,
            "name": session.name,
            "title": session.title,
            "goal": session.goal,
            "budget": snapshot.budget,
        },
        **session.outputs.goals_json(),
        **session.evaluations.study_json(),
        **{"parameters": parameters, "trials": counts, "seq": snapshot.seq},
    }


def _plain(option: Any) -> Any:
    return option if option is None or isinstance(option, str | bool | int | float) else str(option)


@json_endpoint
async def trials(request: Request, session: Session) -> Any:
    offset = _query_number(request, "offset", 0, 10**15)
    limit = _query_number(request, "limit", 100, MAX_PAGE)
    status = request.query_params.get("status")
    if status is not None and status not in STATUSES:
        raise ValueError(f"status is {checks.shown(status)}; give one of {', '.join(STATUSES)}")
    snapshot = await run_in_threadpool(session.snapshot)
    listed = [trial for trial in snapshot.trials if status is None or trial.status == status]
    return {
        **{"seq": snapshot.seq, "total": len(listed), "offset": offset},
        "trials": [trial_to_json(session, trial) for trial in listed[offset : offset + limit]],
    }


@json_endpoint
async def best(request: Request, session: Session) -> Any:
    snapshot = await run_in_threadpool(session.snapshot)
    return {
        "seq": snapshot.seq,
        "trial": None if snapshot.best is None else trial_to_json(session, snapshot.best),
    }


@json_endpoint
async def front(request: Request, session: Session) -> Any:
    session.outputs.checked_goals()
    seq = await run_in_threadpool(session.seq)
    trials_on_front = await run_in_threadpool(session.front)
    return {"seq": seq, "trials": [trial_to_json(session, trial) for trial in trials_on_front]}


@json_endpoint
async def recommend(request: Request, session: Session) -> Any:
    text = request.query_params.get("fixed")
    try:
        fixed = fixed_of(session, None if text is None else json.loads(text, parse_constant=_refuse_constant))
    except (json.JSONDecodeError, RecursionError):
        raise ValueError(f"fixed is {checks.shown(text)}; give a JSON object") from None
    point = await run_in_threadpool(session.recommend, fixed)
    return {"x": None if point is None else point_to_json(session.space, point)}


@json_endpoint
async def summary(request: Request, session: Session) -> Any:
    """Return the summary, as far as it has been computed; `now` says whether it is up to date."""
    live = state_of(request).live(session)
    live.note_seq(await run_in_threadpool(session.seq))
    now = live.up_to_date()
    computed = None if live.summary is None else live.summary[1].to_json()
    return {"now": now, "seq": live.state["known"], "known": computed}


@json_endpoint
async def events(request: Request, session: Session) -> Any:
    last = request.headers.get("last-event-id", "")
    start = int(last) if last.isascii() and last.isdecimal() and len(last) < 16 else None
    if start is None:
        start = _query_number(request, "after", 0, 10**15) if "after" in request.query_params else -1
    live = state_of(request).live(session)
    live.check_capacity()
    return StreamingResponse(live.entries(start), media_type="text/event-stream", headers=UNBUFFERED)


async def studies(request: Request) -> Response:
    try:
        listed = await run_in_threadpool(state_of(request).catalogue.studies)
    except StudyError as error:
        return JSONResponse({"error": str(error)}, 503)
    return JSONResponse({"studies": [{"study": each.slug, "name": each.name, "title": each.title} for each in listed]})


async def openapi(request: Request) -> Response:
    needs_token = state_of(request).access.token is not None
    return JSONResponse(description(token=needs_token, batch=MAX_BATCH, page=MAX_PAGE))


async def not_found(request: Request) -> Response:
    return JSONResponse({"error": "there is no such address; /api/openapi.json lists them all"}, 404)


GET_ENDPOINTS: dict[str, Endpoint] = {
    **{"study": about, "studies": studies, "trials": trials, "best": best, "recommend": recommend, "known": summary},
    **{"front": front, "events": events, "openapi.json": openapi},
}
POST_ENDPOINTS: dict[str, Endpoint] = {
    **{"ask": ask, "tell": tell, "fail": fail, "correct": correct, "retract": retract, "reject": reject},
    **{"report": report, "forget": forget, "choose": choose, "move": move, "annotate": annotate, "confirm": confirm},
}
ROUTES = [
    *(Route(f"/api/{name}", endpoint, methods=["GET"]) for name, endpoint in GET_ENDPOINTS.items()),
    *(Route(f"/api/{name}", endpoint, methods=["POST"]) for name, endpoint in POST_ENDPOINTS.items()),
    Route("/api/{rest:path}", not_found, methods=["GET", "POST"]),
]
