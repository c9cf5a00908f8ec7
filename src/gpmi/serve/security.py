"""Who may talk to the server, and how much they may say: checked before anything else sees a request.

A page of another site can make a browser send requests here, so (1) the Host header must be a name of this server, or
a name that is made to point here could read the answers; (2) what changes something must come from our own pages; (3)
a form must have the secret that only our own pages contain (`Guard.secret`, checked by `gpmi.serve.forms`). Where
others than this machine are listened to, everything needs a token.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import socket
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
ANYWHERE = frozenset({"0.0.0.0", "::", ""})
BODY = 2**20  # bytes of a request, at most: a thousand results are 20 kB. Our choice
UPLOAD = 20 * 2**20  # of a table of candidates: a million rows of two numbers. Our choice
SHORTEST = 12  # characters of a token that somebody chooses; our choice
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Guard:
    """What is required of a request."""

    host: str = "127.0.0.1"  # what the server listens on
    token: str | None = None  # None where only this machine is listened to
    port: int = 0  # cookies are shared by all ports of a host, so the name of ours has it
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32))  # in every form of our pages

    @staticmethod
    def of(host: str, port: int, token: str | None) -> Guard:
        """A guard with a token wherever one is needed; one is made if none is given."""
        if token is not None and len(token) < SHORTEST:
            raise ValueError(f"the token has {len(token)} characters; give at least {SHORTEST}, or none to get one")
        if token is None and host not in LOCAL:
            token = secrets.token_urlsafe(24)
        return Guard(host, token, port)

    @property
    def cookie(self) -> str:
        return f"gpmi-{self.port}"

    @property
    def pass_(self) -> str:
        """What the cookie holds: made from the token, which it does not reveal."""
        return hmac.new((self.token or "").encode(), b"gpmi cookie", hashlib.sha256).hexdigest()

    def knows_host(self, given: str) -> bool:
        """Whether a Host header names this server. A name that somebody else controls does not."""
        name = _split(f"//{given}")[0]
        if not name:
            return False
        if name in LOCAL or name == self.host.lower():
            return True
        if self.host not in ANYWHERE:
            return False
        try:  # a browser that was given a number asks for that number: nobody can point it elsewhere
            ipaddress.ip_address(name)
            return True
        except ValueError:
            return name in {socket.gethostname().lower(), socket.getfqdn().lower()}

    def admits(self, headers: Headers) -> bool:
        """Whether the request has the token, in its header or as a cookie."""
        if self.token is None:
            return True
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and same(given.strip(), self.token):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return cookie is not None and same(cookie.value, self.pass_)

    def admit(self, response: Response) -> Response:
        """Let the browser keep the token, out of reach of scripts and of other sites."""
        response.set_cookie(self.cookie, self.pass_, httponly=True, samesite="lax", path="/")
        return response


def same(given: str, known: str) -> bool:
    """Whether two secrets are equal, in a time that does not tell how much of them is."""
    return hmac.compare_digest(given.encode(), known.encode())


class Guarded:
    """The application behind its guard."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self.app, self.guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    own.setdefault(name, value)
            await send(message)

        limit = UPLOAD if scope["path"] == "/new/table" else BODY
        answer = self._refusal(scope, Headers(scope=scope), limit)
        if answer is not None:
            await answer(scope, receive, with_headers)
        else:
            await self.app(scope, _limited(receive, limit), with_headers)

    def _refusal(self, scope: Scope, headers: Headers, limit: int) -> Response | None:
        """The answer to a request that is not let in; None if it is."""
        api, safe = scope["path"].startswith("/api/"), scope["method"] in ("GET", "HEAD")
        if not self.guard.knows_host(headers.get("host", "")):
            return _no(421, "this server is not the one that the request names", api)
        if not safe and scope["method"] != "POST":
            return _no(405, "only GET and POST are known", api)
        if not safe and _is_foreign(headers):
            return _no(403, "the request comes from a page of another site", api)
        size = headers.get("content-length", "0")
        if not size.isdecimal() or int(size) > limit:
            return _no(413, f"the request is larger than {limit // 2**20} MB", api)
        if safe and self.guard.token is not None and not api:
            entered = self._entered(scope)
            if entered is not None:
                return entered
        if scope["path"].startswith("/static/") or scope["path"] == "/enter" or self.guard.admits(headers):
            return None
        if api:
            return JSONResponse(
                {"error": "the token is missing or wrong; send it as the header Authorization: Bearer TOKEN"},
                401, {"www-authenticate": "Bearer"},
            )  # fmt: skip
        return RedirectResponse("/enter", 303) if safe else _no(401, "the token is missing or wrong", api)

    def _entered(self, scope: Scope) -> Response | None:
        """The answer to ?token=...: the same address without it, and a cookie."""
        query = parse_qsl(scope["query_string"].decode("latin-1"))
        given = [value for name, value in query if name == "token"]
        if not given or not same(given[0], self.guard.token or ""):
            return None
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        path = "/" + scope["path"].lstrip("/")  # never //host
        return self.guard.admit(RedirectResponse(path + (f"?{rest}" if rest else ""), 303))


def _is_foreign(headers: Headers) -> bool:
    """Whether a browser says that a request was made by another site. Programs that are no browser say nothing."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return True
    origin = headers.get("origin")
    return origin is not None and _split(origin)[1] != headers.get("host", "").lower()


def _split(address: str) -> tuple[str, str]:
    """The host of an address, and the host with its port; nothing where it is no address."""
    try:
        parts = urlsplit(address)
        return parts.hostname or "", parts.netloc.lower()
    except ValueError:
        return "", ""


def _no(status: int, words: str, api: bool) -> Response:
    return JSONResponse({"error": words}, status) if api else PlainTextResponse(words, status)


def _limited(receive: Receive, limit: int) -> Receive:
    """Receive at most `limit` bytes, whatever the request said of its length."""
    got = 0

    async def counted() -> Any:
        nonlocal got
        message = await receive()
        got += len(message.get("body", b""))
        if got > limit:
            raise HTTPException(413, f"the request is larger than {limit // 2**20} MB")
        return message

    return counted
