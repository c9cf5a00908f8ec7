"""The description of the API in the format OpenAPI 3.1, from which tools make clients and tests."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

JSON = "application/json"
POINT: dict[str, Any] = {
    "description": "an object of parameters, or a list of numbers where they have no names",
    "oneOf": [{"type": "object"}, {"type": "array", "items": {"type": "number"}}],
}
NUMBER: dict[str, Any] = {"type": "integer", "minimum": 0, "description": "the number of the trial"}
NULLABLE = {"type": ["number", "null"]}
TRIAL: dict[str, Any] = {
    "type": "object",
    "required": ["number", "x", "y", "status", "origin"],
    "properties": {
        "number": NUMBER,
        "x": POINT,
        "label": {"type": ["string", "number", "null"], "description": "of the row of the candidates"},
        "y": NULLABLE,
        "status": {"enum": ["pending", "told", "failed", "rejected", "retracted"]},
        "origin": {"enum": ["design", "policy", "user"]},
        "repeats": {"type": "integer"},
        "constraints": {"type": "array", "items": {"type": "number"}},
        "why": {"type": ["string", "null"], "description": "why it failed"},
        "fixed": {"type": ["object", "null"], "description": "what was given when it was asked"},
        **{name: NULLABLE for name in ("noise_var", "mu", "sd", "surprise", "asked", "ended", "y_before")},
    },
}
MEASURED: dict[str, Any] = {
    "y": {"type": "number", "description": "the value"},
    "noise_var": {"type": "number", "minimum": 0, "description": "the known variance of its error"},
    "repeats": {"type": "integer", "minimum": 1, "description": "of how many evaluations it is the mean"},
    "constraints": {"type": "array", "items": {"type": "number"}, "description": "measured beside it, kept where <= 0"},
}
FIXED = {"type": "object", "description": "parameters that are given today, with their values"}
STUDY = {
    **{"name": "study", "in": "query", "required": False, "schema": {"type": "string"}},
    "description": "which study, as /api/studies names it; needed where there are several",
}
ONE = {"type": "object", "required": ["trial"], "properties": {"trial": {"$ref": "#/components/schemas/Trial"}}}
SEVERAL = {"type": "array", "items": {"$ref": "#/components/schemas/Trial"}}
# What may go wrong, by status; each request about a study may meet these.
ERRORS = {
    "400": "something that was given cannot be used",
    "401": "the token is missing or wrong",
    "403": "the request comes from another site",
    "404": "there is no such study or trial",
    "503": "the database does not answer",
}


def description(*, token: bool, batch: int, page: int) -> dict[str, Any]:
    """The whole description. `token` says whether one is needed; a request asks for `batch` points at most."""
    try:
        own = version("gpmi")
    except PackageNotFoundError:
        own = "0"
    return {
        "openapi": "3.1.0",
        "info": {
            **{"title": "gpmi", "version": own, "license": {"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"}},
            "description": "Ask for points of a study and tell their values. The same answer twice counts once.",
        },
        "paths": {**_saying(batch), **_reading(page)},
        "components": {
            "schemas": {"Trial": TRIAL, "Error": _object({"error": {"type": "string"}}, "error")},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}] if token else [],
    }


def _saying(batch: int) -> dict[str, Any]:
    number = _object({"number": NUMBER}, "number")
    told = {**MEASURED, "number": NUMBER, "x": POINT, "again": {"type": "boolean", "default": False}}
    n = {"type": "integer", "minimum": 1, "maximum": batch, "default": 1}
    trials = _object({"trials": SEVERAL}, "trials")
    conflict = {"409": "the trial has another outcome already; nothing was changed"}
    later = {"202": "kept in a file, because the database does not answer; delivered later"}
    return {
        "/api/ask": _post(
            "The next points to try, yours until they are told, failed, rejected or forgotten.",
            _object({"n": n, "fixed": FIXED}), trials, {"410": "no point is left"},
        ),
        "/api/tell": _post(
            "The value of a trial, by its number, or of a point. The same value twice counts once; another one is "
            "refused with 409, or with again=true is one more observation at the same point.",
            {**_object(told, "y"), "oneOf": [{"required": [name]} for name in ("number", "x")]}, ONE,
            {**conflict, **later},
        ),
        "/api/fail": _post(
            "A trial has no value.", _object({"number": NUMBER, "why": {"type": "string"}}, "number"), ONE,
            {**conflict, **later},
        ),
        "/api/correct": _post(
            "Another value for a trial that was told, failed or retracted.",
            _object({**MEASURED, "number": NUMBER}, "number", "y"), ONE, conflict,
        ),
        "/api/retract": _post("Take back the outcome of a trial.", number, ONE, conflict),
        "/api/reject": _post("A trial will not be evaluated.", number, ONE, conflict),
        "/api/forget": _post("Put a trial back, as if it had not been asked.", number, number, conflict),
    }  # fmt: skip


def _reading(page: int) -> dict[str, Any]:
    seq = {"type": "integer", "description": "the number of the last entry of the log"}
    studies = {"type": "array", "items": _object({name: {"type": "string"} for name in ("study", "name", "title")})}
    whole = {"type": "integer", "minimum": 0}
    window = [
        _query("offset", {**whole, "default": 0}),
        _query("limit", {**whole, "maximum": page, "default": 100}),
        _query("status", TRIAL["properties"]["status"]),
    ]
    best = _object({"seq": seq, "trial": {"oneOf": [{"$ref": "#/components/schemas/Trial"}, {"type": "null"}]}})
    return {
        "/api/studies": _get("The studies that there are.", _object({"studies": studies}, "studies"), about=None),
        "/api/study": _get("What a study is about.", {"type": "object"}),
        "/api/trials": _get(
            "The trials in the order in which they appeared.", _object({"seq": seq, "total": whole, "trials": SEVERAL}),
            *window,
        ),
        "/api/best": _get("The trial with the best value; null before the first.", best),
        "/api/recommend": _get(
            "The point to use, by the model; null before the first value.",
            _object({"x": {"oneOf": [*POINT["oneOf"], {"type": "null"}]}}),
            _query("fixed", {"type": "string", "description": "a JSON object of what is given"}),
        ),
        "/api/known": _get(
            "What is known and what is advised, as far as it has been computed.",
            _object({"now": {"type": "boolean"}, "seq": seq, "known": {"type": ["object", "null"]}}),
        ),
        "/api/events": _get(
            "The entries of the log as server-sent events, those after `after` or the header Last-Event-ID first.",
            {"type": "string"}, _query("after", whole), kind="text/event-stream",
        ),
        "/api/openapi.json": _get("This description.", {"type": "object"}, about=None),
    }  # fmt: skip


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    named = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **named}


def _query(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema}


def _post(summary: str, body: dict[str, Any], answer: dict[str, Any], more: dict[str, str]) -> dict[str, Any]:
    strict = {**body, "additionalProperties": False}
    said = {**more, "413": "the request is too large", "415": "the request is not JSON"}
    return {
        "post": {
            "summary": summary,
            "parameters": [STUDY],
            "requestBody": {"required": True, "content": {JSON: {"schema": strict}}},
            "responses": _responses(answer, said),
        }
    }


def _get(
    summary: str, answer: dict[str, Any], *parameters: dict[str, Any], about: Any = STUDY, kind: str = JSON
) -> dict[str, Any]:
    every = ([] if about is None else [about]) + list(parameters)
    return {"get": {"summary": summary, "parameters": every, "responses": _responses(answer, {}, kind)}}


def _responses(answer: dict[str, Any], more: dict[str, str], kind: str = JSON) -> dict[str, Any]:
    wrong = {"$ref": "#/components/schemas/Error"}
    found: dict[str, Any] = {"200": {"description": "done", "content": {kind: {"schema": answer}}}}
    for status, words in {**ERRORS, **more}.items():
        schema = answer if status.startswith("2") else {"allOf": [wrong, ONE]} if status == "409" else wrong
        found[status] = {"description": words, "content": {JSON: {"schema": schema}}}
    return found
