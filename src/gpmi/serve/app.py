"""The application: its addresses, and what answers them."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from gpmi.serve import api, forms, pages
from gpmi.serve.catalogue import Shelf
from gpmi.serve.layout import message
from gpmi.serve.room import Room
from gpmi.serve.security import Guard, Guarded
from gpmi.views.html import SCRIPT, STYLE

# Found by their names in this table, so that no address leads to another file.
STATIC: dict[str, tuple[str, str]] = {
    "lab.css": (files("gpmi.serve").joinpath("static/lab.css").read_text(encoding="utf-8"), "text/css"),
    "lab.js": (files("gpmi.serve").joinpath("static/lab.js").read_text(encoding="utf-8"), "text/javascript"),
    "report.css": (STYLE, "text/css"),
    "report.js": (SCRIPT, "text/javascript"),
}


async def static(request: Request) -> Response:
    found = STATIC.get(request.path_params["name"])
    if found is None:
        raise HTTPException(404)
    return Response(found[0], media_type=found[1], headers={"cache-control": "no-cache"})


async def refused(request: Request, error: Exception) -> Response:
    """What is wrong with a request, in words."""
    assert isinstance(error, HTTPException)
    if request.url.path.startswith(("/static/", "/api/")) or request.method not in ("GET", "HEAD"):
        return PlainTextResponse(error.detail, error.status_code)
    return message(request, error.detail, status=error.status_code)


def application(shelf: Shelf, guard: Guard, ending: Callable[[], bool] = lambda: False) -> ASGIApp:
    """The whole, behind its guard."""
    app = Starlette(
        routes=[Route("/static/{name}", static), *api.ROUTES, *forms.ROUTES, *pages.ROUTES],
        exception_handlers={HTTPException: refused},
    )
    app.state.room = Room(shelf, guard, ending)
    return Guarded(app, guard)
