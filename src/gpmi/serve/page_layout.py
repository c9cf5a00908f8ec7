"""The frame of every page: head, navigation, messages, and forms that only our own pages can send."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse

from gpmi.serve.app_state import state_of
from gpmi.views.html.markup import Child, Markup, joined, tag

HEAD = Markup(
    '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    '<link rel="icon" href="data:,"><link rel="stylesheet" href="/static/report.css">'
    '<link rel="stylesheet" href="/static/lab.css">'
    '<script src="/static/report.js" defer></script><script src="/static/lab.js" defer></script>'
)


def full_page(
    request: Request,
    title: str,
    *body: Child,
    links: Sequence[tuple[str, str]] = (),
    status: int = 200,
    **data: Any,
) -> HTMLResponse:
    """Return a whole page. `links` are (address, text) pairs of the navigation; `data` are attributes of the body."""
    here = request.url.path
    items = [
        tag("li", tag("a", text, href=to, aria_current="page" if to == here else None))
        for to, text in [*links, ("/", "All studies"), ("/new", "New study")]
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


def message_page(
    request: Request, text: str, *below: Child, title: str = "Not done", status: int = 400
) -> HTMLResponse:
    """Return a page with one message."""
    back = tag("p", tag("a", "Back to the studies", href="/"))
    return full_page(request, title, tag("p", text, class_="lead"), *below, back, status=status)


def resend_page(request: Request, fields: Iterable[tuple[str, str]], reason: str, status: int) -> HTMLResponse:
    """Return a page with a form that could not be saved, ready to be sent again, so that nothing typed is lost."""
    typed = [(name, value) for name, value in fields if name not in ("csrf", "once")]
    rows = [tag("tr", tag("th", name, scope="row"), tag("td", value)) for name, value in typed if value.strip()]
    body = joined(
        tag("p", reason, class_="lead"),
        tag("table", tag("caption", "What you sent", class_="unseen"), tag("tbody", rows)) if rows else None,
        form(
            request,
            request.url.path,
            [hidden(name, value) for name, value in typed],
            tag("p", tag("button", "Send again", class_="main")),
        ),
    )
    return full_page(request, "Not saved yet", body, status=status)


def form(request: Request, action: str, *children: Child, **attributes: Any) -> Markup:
    """Return a form with the server's secret and an idempotency key, so that it is handled once."""
    secret = [hidden("csrf", state_of(request).access.form_secret), hidden("once", secrets.token_urlsafe(12))]
    return tag("form", *secret, *children, method="post", action=action, **attributes)


def hidden(name: str, value: str) -> Markup:
    return tag("input", type="hidden", name=name, value=value)


def labelled(label: Child, control: Markup, hint: str | None = None, class_: str = "field") -> Markup:
    """Return a control with its label above and an optional hint below."""
    return tag("label", tag("span", label), control, tag("small", hint) if hint else None, class_=class_)


def select(name: str, options: Iterable[tuple[str, str]], chosen: str = "", **attributes: Any) -> Markup:
    inner = [tag("option", text, value=value, selected=value == chosen) for value, text in options]
    return tag("select", inner, name=name, **attributes)


def notices(texts: Iterable[str], kind: str = "done") -> Markup | None:
    """Return the messages at the top of a page; `kind` is "done" or "wrong"."""
    lines = [tag("p", text) for text in texts]
    return tag("div", lines, class_=f"notice {kind}", role="alert" if kind == "wrong" else "status") if lines else None


@dataclass(frozen=True)
class Refusal:
    """What was not saved, and where on the page it is shown again."""

    text: str
    at: str = ""  # the id of the field, or of what is around it


def nothing_saved(problem: str, at: str = "", done: str = "saved") -> Refusal:
    """Return the refusal of a whole form; the problem is a sentence."""
    first, space, rest = problem.partition(" ")
    plain = first.lower() if first in _OPENINGS else first
    return Refusal(f"Nothing was {done}: {plain}{space}{rest}", at)


_OPENINGS = ("A", "Every", "It", "Line", "No", "Only", "The", "There", "These", "Trial")  # of our own sentences


def refusal_notice(refusal: Refusal | None) -> Markup | None:
    """Return the message at the top of a page that shows again what was not saved, with a link to it."""
    if refusal is None:
        return None
    link = [" ", tag("a", "Go there", href=f"#{refusal.at}")] if refusal.at else None
    return tag("div", tag("p", refusal.text, link), class_="notice wrong", role="alert")
