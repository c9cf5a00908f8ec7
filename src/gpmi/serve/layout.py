"""What all pages share: the head, the way to other pages, messages, and forms that only our own pages can make."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse

from gpmi.serve.room import Room
from gpmi.views.html.markup import Child, Markup, joined, tag

HEAD = Markup(
    '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    '<link rel="icon" href="data:,"><link rel="stylesheet" href="/static/report.css">'
    '<link rel="stylesheet" href="/static/lab.css">'
    '<script src="/static/report.js" defer></script><script src="/static/lab.js" defer></script>'
)


def room_of(request: Request) -> Room:
    room: Room = request.app.state.room
    return room


def page(
    request: Request,
    title: str,
    *body: Child,
    links: Sequence[tuple[str, str]] = (),
    status: int = 200,
    **data: Any,
) -> HTMLResponse:
    """A whole page. `links` lead to others, as (address, words); `data` are attributes of the body."""
    here = request.url.path
    items = [
        tag("li", tag("a", words, href=to, aria_current="page" if to == here else None))
        for to, words in [*links, ("/", "All studies"), ("/new", "New study")]
    ]
    head = tag("head", HEAD, tag("title", f"{title} · gpmi"))
    top = tag(
        "header",
        tag("a", "gpmi", href="/", class_="brand"),
        tag("nav", tag("ul", items), aria_label="Pages"),
        class_="top",
    )
    content = tag("body", top, tag("main", tag("h1", title), *body), **data)
    return HTMLResponse("<!DOCTYPE html>\n" + tag("html", head, content, lang="en"), status)


def message(request: Request, words: str, *more: Child, title: str = "Not done", status: int = 400) -> HTMLResponse:
    """A page that says one thing."""
    back = tag("p", tag("a", "Back to the studies", href="/"))
    return page(request, title, tag("p", words, class_="lead"), *more, back, status=status)


def form(request: Request, action: str, *children: Child, **attributes: Any) -> Markup:
    """A form that is sent once: with the secret of this server, and a mark of its own against a second click."""
    marks = [hidden("csrf", room_of(request).guard.secret), hidden("once", secrets.token_urlsafe(12))]
    return tag("form", *marks, *children, method="post", action=action, **attributes)


def hidden(name: str, value: str) -> Markup:
    return tag("input", type="hidden", name=name, value=value)


def labelled(words: Child, control: Markup, hint: str | None = None, class_: str = "field") -> Markup:
    """A control with its label, and perhaps a remark below it."""
    return tag("label", tag("span", words), control, tag("small", hint) if hint else None, class_=class_)


def select(name: str, options: Iterable[tuple[str, str]], chosen: str = "", **more: Any) -> Markup:
    inner = [tag("option", words, value=value, selected=value == chosen) for value, words in options]
    return tag("select", inner, name=name, **more)


def notices(words: Iterable[str], kind: str = "done") -> Markup | None:
    """Messages at the top of a page."""
    said = [tag("p", one) for one in words]
    return tag("div", said, class_=f"notice {kind}", role="alert" if kind == "wrong" else "status") if said else None


def again(request: Request, fields: Iterable[tuple[str, str]], words: str, status: int) -> HTMLResponse:
    """What was sent and not taken, to be sent again: nothing that was typed is lost."""
    kept = [(name, value) for name, value in fields if name not in ("csrf", "once")]
    rows = [tag("tr", tag("th", name, scope="row"), tag("td", value)) for name, value in kept if value.strip()]
    whole = joined(
        tag("p", words, class_="lead"),
        tag("table", tag("caption", "What you sent", class_="unseen"), tag("tbody", rows)) if rows else None,
        form(
            request,
            request.url.path,
            [hidden(name, value) for name, value in kept],
            tag("p", tag("button", "Send again", class_="main")),
        ),
    )
    return page(request, "Not saved yet", whole, status=status)
