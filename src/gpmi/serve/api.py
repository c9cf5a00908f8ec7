"""The JSON API: the words of a study for programs. `gpmi.serve.openapi` describes it.

Answers go by the number of a trial. The same answer twice counts once; another one for the same trial is refused with
status 409 and the trial as it is, so that the caller decides: correct it, or give it as one more observation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import wraps
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from gpmi._support import checks
from gpmi._support.types import Point
from gpmi.serve.live import TooMany
from gpmi.serve.openapi import description
from gpmi.serve.room import Room
from gpmi.serve.session import BATCH, Conflict, Desk, NoSuchTrial
from gpmi.space import Space, SpaceExhausted
from gpmi.storage.errors import StudyError
from gpmi.storage.serialization import point_to_json
from gpmi.trials import Trial

PAGE = 1000  # trials in one answer, at most; our choice
NUMBERS = ("noise_var", "mu", "sd", "surprise", "asked", "ended", "y_before")
STATUSES = ("pending", "told", "failed", "rejected", "retracted")
Endpoint = Callable[[Request], Awaitable[Response]]


# Values


def trial_to_json(space: Space, trial: Trial) -> dict[str, Any]:
    """A trial as JSON has it. What is not a finite number is null."""
    said: dict[str, Any] = {
        "number": trial.number,
        "x": point_to_json(space, trial.x),
        "label": _label(trial),
        "y": trial.y,
        "status": trial.status,
        "origin": trial.origin,
        "repeats": trial.repeats,
        "constraints": list(trial.constraints),
        "why": trial.why,
        "fixed": None if trial.fixed is None else {str(key): value for key, value in trial.fixed.items()},
    }
    for name in NUMBERS:
        value = getattr(trial, name)
        said[name] = value if value is not None and math.isfinite(value) else None
    return said


def _label(trial: Trial) -> Any:
    return trial.label if trial.label is None or isinstance(trial.label, str | int | float) else str(trial.label)


async def body_of(request: Request, *known: str, needed: tuple[str, ...] = ()) -> dict[str, Any]:
    """The JSON object of a request, in which only these names may stand."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "send JSON, with the header Content-Type: application/json")
    try:
        said = json.loads((await request.body()) or b"{}", parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is no JSON: {str(error)[:200]}") from None
    if not isinstance(said, dict):
        raise HTTPException(400, f"the body is {checks.shown(said)}; send a JSON object")
    for name in said:
        if name not in known:
            raise HTTPException(400, f"there is no {checks.shown(name)} here; give some of {', '.join(known)}")
    for name in needed:
        if said.get(name) is None:
            raise HTTPException(400, f"{name} is missing")
    return {name: value for name, value in said.items() if value is not None}


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def whole(name: str, value: Any, least: int = 0) -> int:
    """A whole number of a JSON body, in which 1.0 is one, and true is none."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} is {checks.shown(value)}; give a whole number")
    return checks.whole(name, value, least)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name} is {checks.shown(value)}; give true or false")
    return value


def _measured(said: dict[str, Any]) -> dict[str, Any]:
    """What may be said of a value besides itself."""
    more: dict[str, Any] = {}
    if "noise_var" in said:
        more["noise_var"] = checks.number("noise_var", said["noise_var"])
    if "repeats" in said:
        more["repeats"] = whole("repeats", said["repeats"], 1)
    if "constraints" in said:
        if not isinstance(said["constraints"], list):
            raise ValueError(f"constraints is {checks.shown(said['constraints'])}; give a list of numbers")
        more["constraints"] = [checks.number("constraints", one) for one in said["constraints"]]
    return more


def _point(space: Space, said: Any) -> Point:
    """A point as JSON has it."""
    if isinstance(said, dict) or (isinstance(said, list) and all(isinstance(one, int | float) for one in said)):
        return space.canonical(said)
    raise ValueError(f"x is {checks.shown(said)}; give an object of parameters, or a list of numbers")


def fixed_of(desk: Desk, said: Any) -> dict[Any, Any] | None:
    """Coordinates that are given: an object, whose keys are numbers in texts where points are lists."""
    if said is None:
        return None
    if not isinstance(said, dict):
        raise ValueError(f"fixed is {checks.shown(said)}; give an object such as {{'temperature': 21.5}}")
    names = {str(field.key): field.key for field in desk.fields}
    return {names.get(key, key): value for key, value in said.items()} or None


def _query_number(request: Request, name: str, default: int, most: int) -> int:
    given = request.query_params.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdecimal() and len(given) < 16):
        raise ValueError(f"{name} is {checks.shown(given)}; give a whole number from 0")
    return min(int(given), most)


# Errors


def answered(endpoint: Callable[[Request, Desk], Awaitable[Any]]) -> Endpoint:
    """An endpoint about one study: what it returns as JSON, and what is wrong in one sentence with its status."""

    @wraps(endpoint)
    async def wrapped(request: Request) -> Response:
        try:
            room: Room = request.app.state.room
            desk = await room.desk_named(request.query_params.get("study"))
            said = await endpoint(request, desk)
        except HTTPException as error:
            return JSONResponse({"error": error.detail}, error.status_code)
        except Conflict as error:
            return JSONResponse({"error": str(error), "trial": trial_to_json(desk.space, error.trial)}, 409)
        except (NoSuchTrial, LookupError) as error:
            return JSONResponse({"error": str(error.args[0] if error.args else error)}, 404)
        except SpaceExhausted:
            return JSONResponse({"error": "every point of the space has been asked"}, 410)
        except (ValueError, TypeError, OverflowError) as error:
            return JSONResponse({"error": str(error)}, 400)
        except (StudyError, TooMany) as error:
            words = str(error) or "too many watch this study"
            return JSONResponse({"error": words}, 503, {"retry-after": "5"})
        return said if isinstance(said, Response) else JSONResponse(said)

    return wrapped


async def _kept(desk: Desk, trial: Trial) -> Response:
    """A trial that was told, with status 202 if its value waits in a file for the database."""
    stored = await run_in_threadpool(desk.is_stored, trial)
    return JSONResponse({"trial": trial_to_json(desk.space, trial)}, 200 if stored else 202)


# Saying


@answered
async def ask(request: Request, desk: Desk) -> Any:
    said = await body_of(request, "n", "fixed")
    n, fixed = whole("n", said.get("n", 1), 1), fixed_of(desk, said.get("fixed"))
    trials = await run_in_threadpool(desk.ask, n, fixed)
    return {"trials": [trial_to_json(desk.space, trial) for trial in trials]}


@answered
async def tell(request: Request, desk: Desk) -> Any:
    said = await body_of(request, "number", "x", "y", "noise_var", "repeats", "constraints", "again", needed=("y",))
    if ("number" in said) == ("x" in said):
        raise ValueError("give the number of a trial, or a point as x: one of them")
    y, more = checks.number("y", said["y"]), _measured(said)
    if "x" in said:
        point = _point(desk.space, said["x"])
        return await _kept(desk, await run_in_threadpool(desk.observe, point, y, **more))
    number, again = whole("number", said["number"]), _flag("again", said.get("again", False))
    return await _kept(desk, await run_in_threadpool(lambda: desk.tell(number, y, again=again, **more)))


@answered
async def fail(request: Request, desk: Desk) -> Any:
    said = await body_of(request, "number", "why", needed=("number",))
    return await _kept(desk, await run_in_threadpool(desk.fail, whole("number", said["number"]), said.get("why")))


@answered
async def correct(request: Request, desk: Desk) -> Any:
    said = await body_of(request, "number", "y", "noise_var", "repeats", "constraints", needed=("number", "y"))
    number, y, more = whole("number", said["number"]), checks.number("y", said["y"]), _measured(said)
    return {"trial": trial_to_json(desk.space, await run_in_threadpool(desk.correct, number, y, **more))}


@answered
async def retract(request: Request, desk: Desk) -> Any:
    said = await body_of(request, "number", needed=("number",))
    return {"trial": trial_to_json(desk.space, await run_in_threadpool(desk.retract, whole("number", said["number"])))}


@answered
async def reject(request: Request, desk: Desk) -> Any:
    said = await body_of(request, "number", needed=("number",))
    return {"trial": trial_to_json(desk.space, await run_in_threadpool(desk.reject, whole("number", said["number"])))}


@answered
async def forget(request: Request, desk: Desk) -> Any:
    said = await body_of(request, "number", needed=("number",))
    number = whole("number", said["number"])
    await run_in_threadpool(desk.forget, number)
    return {"number": number}


# Reading


@answered
async def about(request: Request, desk: Desk) -> Any:
    look = await run_in_threadpool(desk.look)
    counts = {status: sum(trial.status == status for trial in look.trials) for status in STATUSES}
    shown = ("name", "kind", "unit", "lo", "hi", "log")
    parameters = [
        {**{name: getattr(field, name) for name in shown}, "options": list(map(_plain, field.options))}
        for field in desk.fields
    ]
    return {
        **{"study": desk.slug, "name": desk.name, "title": desk.title, "goal": desk.goal, "budget": look.budget},
        **{"parameters": parameters, "trials": counts, "seq": look.seq},
    }


def _plain(option: Any) -> Any:
    return option if option is None or isinstance(option, str | bool | int | float) else str(option)


@answered
async def trials(request: Request, desk: Desk) -> Any:
    offset = _query_number(request, "offset", 0, 10**15)
    limit = _query_number(request, "limit", 100, PAGE)
    status = request.query_params.get("status")
    if status is not None and status not in STATUSES:
        raise ValueError(f"status is {checks.shown(status)}; give one of {', '.join(STATUSES)}")
    look = await run_in_threadpool(desk.look)
    found = [trial for trial in look.trials if status is None or trial.status == status]
    return {
        **{"seq": look.seq, "total": len(found), "offset": offset},
        "trials": [trial_to_json(desk.space, trial) for trial in found[offset : offset + limit]],
    }


@answered
async def best(request: Request, desk: Desk) -> Any:
    look = await run_in_threadpool(desk.look)
    return {"seq": look.seq, "trial": None if look.best is None else trial_to_json(desk.space, look.best)}


@answered
async def recommend(request: Request, desk: Desk) -> Any:
    given = request.query_params.get("fixed")
    try:
        fixed = fixed_of(desk, None if given is None else json.loads(given, parse_constant=_no_number))
    except (json.JSONDecodeError, RecursionError):
        raise ValueError(f"fixed is {checks.shown(given)}; give a JSON object") from None
    point = await run_in_threadpool(desk.recommend, fixed)
    return {"x": None if point is None else point_to_json(desk.space, point)}


@answered
async def known(request: Request, desk: Desk) -> Any:
    """What is known, as far as that is computed; `now` says whether it is that of now."""
    live = request.app.state.room.live(desk)
    live.saw(await run_in_threadpool(desk.seq))
    now = live.up_to_date()
    return {"now": now, "seq": live.state["known"], "known": None if live.known is None else asdict(live.known[1])}


@answered
async def events(request: Request, desk: Desk) -> Any:
    last = request.headers.get("last-event-id", "")
    start = int(last) if last.isascii() and last.isdecimal() and len(last) < 16 else None
    if start is None:
        start = _query_number(request, "after", 0, 10**15) if "after" in request.query_params else -1
    live = request.app.state.room.live(desk)
    live.admit()
    return StreamingResponse(live.entries(start), media_type="text/event-stream")


async def studies(request: Request) -> Response:
    room: Room = request.app.state.room
    try:
        books = await run_in_threadpool(room.shelf.books)
    except StudyError as error:
        return JSONResponse({"error": str(error)}, 503)
    return JSONResponse({"studies": [{"study": one.slug, "name": one.name, "title": one.title} for one in books]})


async def openapi(request: Request) -> Response:
    return JSONResponse(description(token=request.app.state.room.guard.token is not None, batch=BATCH, page=PAGE))


async def nowhere(request: Request) -> Response:
    return JSONResponse({"error": "there is no such address; /api/openapi.json has them all"}, 404)


READING: dict[str, Endpoint] = {
    **{"study": about, "studies": studies, "trials": trials, "best": best, "recommend": recommend, "known": known},
    **{"events": events, "openapi.json": openapi},
}
SAYING: dict[str, Endpoint] = {
    **{"ask": ask, "tell": tell, "fail": fail, "correct": correct, "retract": retract, "reject": reject},
    **{"forget": forget},
}
ROUTES = [
    *(Route(f"/api/{name}", endpoint, methods=["GET"]) for name, endpoint in READING.items()),
    *(Route(f"/api/{name}", endpoint, methods=["POST"]) for name, endpoint in SAYING.items()),
    Route("/api/{rest:path}", nowhere, methods=["GET", "POST"]),
]
