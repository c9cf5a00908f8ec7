"""The description of the API as OpenAPI 3.1, from which tools generate clients and tests."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any, get_args

from gpmi._support import refusals
from gpmi.trials import Origin, Status

JSON = "application/json"
POINT: dict[str, Any] = {
    "description": "an object of parameters, or a list of numbers if the parameters have no names",
    "oneOf": [{"type": "object"}, {"type": "array", "items": {"type": "number"}}],
}
NUMBER: dict[str, Any] = {"type": "integer", "minimum": 0, "description": "the number of the trial"}
NULLABLE = {"type": ["number", "null"]}
FLOAT_FIELDS = ("noise_var", "mu", "sd", "surprise", "asked", "ended", "y_before")  # of a trial, besides y
STATUSES: tuple[str, ...] = get_args(Status)
BY_OUTPUT: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "number"}}
NAMES = {"type": "array", "items": {"type": "string"}}
REPORTED: dict[str, Any] = {  # a step on the way to the target of a fidelity
    "type": "object",
    "required": ["step"],
    "properties": {"step": {"type": "integer", "minimum": 1}, "y": {"type": "number"}, "outputs": BY_OUTPUT},
}
TRIAL: dict[str, Any] = {
    "type": "object",
    "required": ["number", "x", "y", "status", "origin"],
    "properties": {
        "number": NUMBER,
        "x": POINT,
        "label": {"type": ["string", "number", "null"], "description": "the name of the candidate's row"},
        "y": NULLABLE,
        "status": {"enum": list(STATUSES)},
        "origin": {"enum": list(get_args(Origin))},
        "repeats": {"type": "integer"},
        "constraints": {"type": "array", "items": {"type": "number"}},
        "doubt": {"type": ["string", "null"], "description": "why its value does not fit the others; null if it does"},
        "why": {"type": ["string", "null"], "description": "why the trial failed, was stopped or was rejected"},
        "fixed": {"type": ["object", "null"], "description": "the coordinates that were fixed when it was suggested"},
        "suggested": {"description": "the point that was suggested, if the trial was done at another one; else null"},
        "notes": {"type": "array", "items": {"type": "object"}, "description": "who did and wrote what, and when"},
        **dict.fromkeys(FLOAT_FIELDS, NULLABLE),
        "outputs": {**BY_OUTPUT, "description": "what was measured so far, in a study with goals"},
        "output_noise_var": {**BY_OUTPUT, "description": "as noise_var, for outputs that have one"},
        "output_repeats": {**BY_OUTPUT, "description": "as repeats, for outputs that are means"},
        "outputs_before": {"type": ["object", "null"], "description": "the first outputs, if they were corrected"},
        "unmet": {**NAMES, "description": "the outputs that break their limit, or whose limit is not measured yet"},
        "missing": {**NAMES, "description": "the outputs that are not measured yet"},
        "curve": {"type": "array", "items": REPORTED, "description": "the steps reported so far, if there are steps"},
    },
}
MEASURED: dict[str, Any] = {
    "y": {"type": "number", "description": "the value"},
    "noise_var": {
        "oneOf": [{"type": "number", "minimum": 0}, BY_OUTPUT],
        "description": "the known variance of the error of y; in a study with goals, of all outputs or by output",
    },
    "repeats": {"type": "integer", "minimum": 1, "description": "evaluations that y averages"},
    "constraints": {
        **{"type": "array", "items": {"type": "number"}},
        "description": "constraints measured together with y; one is satisfied if it is <= 0",
    },
}
NOTE: dict[str, Any] = {
    "text": {"type": "string"},
    "who": {"type": "string"},
    "files": {"type": "array", "items": {"type": "string"}, "description": "names alone"},
}
# In place of y in a study with goals.
OUTPUTS = {**BY_OUTPUT, "description": "measured outputs by name; others may follow in another request"}
VALUE_OR_OUTPUTS = {"oneOf": [{"required": [name]} for name in ("y", "outputs")]}
FIXED = {"type": "object", "description": "fixed coordinates: parameters with their values"}
CHOICE: dict[str, Any] = {
    "output": {"type": "string", "description": "the output to optimise"},
    "direction": {"enum": ["max", "min", "match"], "description": "match: the closest to the target of the output"},
    "where": {
        "type": "object",
        "additionalProperties": {"type": ["string", "array"]},
        "description": "conditions by output, such as '>= 70', '<= 3' or [60, 80]; the limits hold as well",
    },
    "confidence": {"type": "number", "description": "the probability with which all of them must hold; 0.9 by default"},
}
PREDICTION = {"type": "object", "properties": {"mean": {"type": "number"}, "sd": {"type": "number"}}}
STUDY = {
    **{"name": "study", "in": "query", "required": False, "schema": {"type": "string"}},
    "description": "the study, as /api/studies names it; required if there are several",
}
ONE_TRIAL: dict[str, Any] = {
    "type": "object",
    "required": ["trial"],
    "properties": {"trial": {"$ref": "#/components/schemas/Trial"}},
}
TRIALS = {"type": "array", "items": {"$ref": "#/components/schemas/Trial"}}
TRIAL_OR_NULL = {"oneOf": [{"$ref": "#/components/schemas/Trial"}, {"type": "null"}]}
PREDICTED: dict[str, Any] = {
    "x": POINT,
    "outputs": {"type": "object", "additionalProperties": PREDICTION, "description": "what is predicted there"},
    "probability": {"type": "number", "description": "that all conditions and limits hold"},
}
CHOSEN: dict[str, Any] = {
    "type": "object",
    "required": ["x", "outputs", "probability", "trial"],
    "properties": {
        **PREDICTED,
        "trial": {**TRIAL_OR_NULL, "description": "the trial at this point, if there is one"},
        "note": {"type": ["string", "null"], "description": "what to know before acting on it"},
        "untried": {
            "oneOf": [{"type": "object", "required": list(PREDICTED), "properties": PREDICTED}, {"type": "null"}],
            "description": "the point that meets the conditions most likely, if that is not likely enough",
        },
    },
}
ERROR: dict[str, Any] = {
    "error": {"type": "string", "description": "what is wrong, and the remedy"},
    "code": {
        "type": "string",
        "description": f"why an argument was refused, if it has a code: {', '.join(refusals.CODES)}; others may follow",
    },
    "values": {"type": "object", "description": "what the code is about, such as name, value, low and high"},
}
# The errors that every request may get, by status.
ERRORS = {
    "400": "an argument cannot be used",
    "401": "the token is missing or wrong",
    "403": "the request comes from another site",
    "404": "there is no such study or trial",
    "503": "the database is unreachable",
}


def description(*, token: bool, batch: int, page: int) -> dict[str, Any]:
    """Return the whole description.

    `token` says whether a token is required, `batch` how many points and `page` how many trials one request may get.
    """
    try:
        gpmi_version = version("gpmi")
    except PackageNotFoundError:
        gpmi_version = "0"
    return {
        "openapi": "3.1.0",
        "info": {
            **{
                "title": "gpmi",
                "version": gpmi_version,
                "license": {"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
            },
            "description": "Ask for points of a study and tell their values. The same value sent twice counts once.",
        },
        "paths": {**_post_paths(batch), **_get_paths(page)},
        "components": {
            "schemas": {"Trial": TRIAL, "Error": _object(ERROR, "error")},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}] if token else [],
    }


def _post_paths(batch: int) -> dict[str, Any]:
    number = _object({"number": NUMBER}, "number")
    again = {"type": "boolean", "default": False}
    told = {**MEASURED, "outputs": OUTPUTS, "number": NUMBER, "x": POINT, "again": again}
    step = {"type": "integer", "minimum": 1}
    reported = {"number": NUMBER, "step": step, "y": MEASURED["y"], "outputs": OUTPUTS}
    n = {"type": "integer", "minimum": 1, "maximum": batch, "default": 1}
    trials = _object({"trials": TRIALS}, "trials")
    conflict = {"409": "the trial already has a different outcome; nothing was changed"}
    later = {"202": "saved in a file, because the database is unreachable; it is delivered later"}
    return {
        "/api/ask": _post(
            "Suggest the next points. They are pending until they are told, failed, rejected or forgotten.",
            _object({"n": n, "fixed": FIXED}), trials, {"410": "every point has been suggested"},
        ),
        "/api/tell": _post(
            "Record the value of a trial, by its number, or of a point. The same value twice counts once. A different "
            "one is refused with 409; with again=true it is one more observation at the same point. In a study with "
            "goals, send outputs instead of y, also those that come later.",
            {
                **_object(told),
                "allOf": [{"oneOf": [{"required": [name]} for name in ("number", "x")]}, VALUE_OR_OUTPUTS],
            },
            ONE_TRIAL, {**conflict, **later},
        ),
        "/api/report": _post(
            "Record a value of a trial at a step of its fidelity, on the way to the last one, and return whether to go "
            "on or to stop. The value at the last step is that of the trial. The same value twice counts once.",
            {**_object(reported, "number", "step"), **VALUE_OR_OUTPUTS},
            _object({"answer": {"enum": ["continue", "stop"]}, **ONE_TRIAL["properties"]}, "answer", "trial"),
            {**conflict, **later},
        ),
        "/api/fail": _post(
            "Record that a trial failed.", _object({"number": NUMBER, "why": {"type": "string"}}, "number"), ONE_TRIAL,
            {**conflict, **later},
        ),
        "/api/correct": _post(
            "Replace the outcome of a trial that was told, failed or retracted. Outputs that are left out stay.",
            {**_object({**MEASURED, "outputs": OUTPUTS, "number": NUMBER}, "number"), **VALUE_OR_OUTPUTS}, ONE_TRIAL,
            conflict,
        ),
        "/api/confirm": _post(
            "Say that the value of a trial is right, although it does not fit the others.", number, ONE_TRIAL, conflict
        ),
        "/api/retract": _post("Retract the outcome of a trial.", number, ONE_TRIAL, conflict),
        "/api/reject": _post(
            "Record that a trial will not be evaluated, and why.",
            _object({"number": NUMBER, "why": {"type": "string"}}, "number"), ONE_TRIAL, conflict,
        ),
        "/api/move": _post(
            "Record that a pending trial is done at another point than suggested. It keeps its number.",
            _object({"number": NUMBER, "x": POINT}, "number", "x"), ONE_TRIAL, conflict,
        ),
        "/api/annotate": _post(
            "Write a note beside a trial: a text, who wrote it, and the names of files. No suggestion depends on it.",
            _object({"number": NUMBER, **NOTE}, "number"), ONE_TRIAL, {},
        ),
        "/api/forget": _post("Withdraw a pending trial, as if it had never been suggested.", number, number, conflict),
        "/api/choose": _post(
            "Return the point with the best predicted output among those that meet conditions, in a study with goals.",
            _object(CHOICE, "output", "direction"), CHOSEN, {},
        ),
    }  # fmt: skip


def _get_paths(page: int) -> dict[str, Any]:
    seq = {"type": "integer", "description": "the number of the last entry of the log"}
    studies = {"type": "array", "items": _object({name: {"type": "string"} for name in ("study", "name", "title")})}
    whole = {"type": "integer", "minimum": 0}
    window = [
        _query("offset", {**whole, "default": 0}),
        _query("limit", {**whole, "maximum": page, "default": 100}),
        _query("status", TRIAL["properties"]["status"]),
    ]
    best = _object({"seq": seq, "trial": TRIAL_OR_NULL})
    return {
        "/api/studies": _get("List the studies.", _object({"studies": studies}, "studies"), about=None),
        "/api/study": _get("Describe a study: its goals, budget, parameters, trials by status.", {"type": "object"}),
        "/api/trials": _get(
            "List the trials, in the order in which they were created.",
            _object({"seq": seq, "total": whole, "trials": TRIALS}), *window,
        ),
        "/api/best": _get(
            "Return the trial with the best value; null before the first value, or with several objectives.", best
        ),
        "/api/front": _get(
            "Return the trials that no other trial beats in every objective, in a study with goals.",
            _object({"seq": seq, "trials": TRIALS}, "trials"),
        ),
        "/api/recommend": _get(
            "Return the point that the model recommends; null before the first value.",
            _object({"x": {"oneOf": [*POINT["oneOf"], {"type": "null"}]}}),
            _query("fixed", {"type": "string", "description": "a JSON object of fixed coordinates"}),
        ),
        "/api/known": _get(
            "Return what the model says: the point to use, whether to stop, and the facts behind it, once computed.",
            _object({"now": {"type": "boolean"}, "seq": seq, "known": {"type": ["object", "null"]}}),
        ),
        "/api/events": _get(
            "Stream the entries of the log as server-sent events, from the number after `after` or the header "
            "Last-Event-ID on.",
            {"type": "string"}, _query("after", whole), kind="text/event-stream",
        ),
        "/api/openapi.json": _get("Return this description.", {"type": "object"}, about=None),
    }  # fmt: skip


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    named = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **named}


def _query(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema}


def _post(summary: str, body: dict[str, Any], answer: dict[str, Any], refusals: dict[str, str]) -> dict[str, Any]:
    strict = {**body, "additionalProperties": False}
    errors = {**refusals, "413": "the request is too large", "415": "the request is not JSON"}
    return {
        "post": {
            "summary": summary,
            "parameters": [STUDY],
            "requestBody": {"required": True, "content": {JSON: {"schema": strict}}},
            "responses": _responses(answer, errors),
        }
    }


def _get(
    summary: str, answer: dict[str, Any], *parameters: dict[str, Any], about: Any = STUDY, kind: str = JSON
) -> dict[str, Any]:
    every = ([] if about is None else [about]) + list(parameters)
    return {"get": {"summary": summary, "parameters": every, "responses": _responses(answer, {}, kind)}}


def _responses(answer: dict[str, Any], refusals: dict[str, str], kind: str = JSON) -> dict[str, Any]:
    error = {"$ref": "#/components/schemas/Error"}
    responses: dict[str, Any] = {"200": {"description": "done", "content": {kind: {"schema": answer}}}}
    for status, text in {**ERRORS, **refusals}.items():
        schema = answer if status.startswith("2") else {"allOf": [error, ONE_TRIAL]} if status == "409" else error
        responses[status] = {"description": text, "content": {JSON: {"schema": schema}}}
    return responses
