"""The web application: its routes, its static files, and pages for errors."""

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
from gpmi.serve.app_state import AppState
from gpmi.serve.catalogue import Catalogue
from gpmi.serve.page_layout import message_page
from gpmi.serve.security import AccessMiddleware, AccessRules
from gpmi.views.html import SCRIPT, STYLE

# Static files are looked up by name in this table, so no address can lead to another file.
STATIC: dict[str, tuple[str, str]] = {
    "lab.css": (files("gpmi.serve").joinpath("static/lab.css").read_text(encoding="utf-8"), "text/css"),
    "lab.js": (files("gpmi.serve").joinpath("static/lab.js").read_text(encoding="utf-8"), "text/javascript"),
    "report.css": (STYLE, "text/css"),
    "report.js": (SCRIPT, "text/javascript"),
}


async def static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC:
        raise HTTPException(404)
    text, media_type = STATIC[name]
    return Response(text, media_type=media_type, headers={"cache-control": "no-cache"})


async def show_error(request: Request, error: Exception) -> Response:
    """Answer a failed request: with a page where a person reads it, with plain text elsewhere."""
    assert isinstance(error, HTTPException)
    if request.url.path.startswith(("/static/", "/api/")) or request.method not in ("GET", "HEAD"):
        return PlainTextResponse(error.detail, error.status_code)
    return message_page(request, error.detail, status=error.status_code)


def application(catalogue: Catalogue, access: AccessRules, stopping: Callable[[], bool] = lambda: False) -> ASGIApp:
    """Build the application. `stopping` says whether the server is shutting down, which ends the event streams."""
    app = Starlette(
        routes=[Route("/static/{name}", static), *api.ROUTES, *forms.ROUTES, *pages.ROUTES],
        exception_handlers={HTTPException: show_error},
    )
    app.state.app_state = AppState(catalogue, access, stopping)
    return AccessMiddleware(app, access)
