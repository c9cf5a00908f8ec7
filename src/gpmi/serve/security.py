"""Access control: host, origin, size and token of a request are checked before anything else sees it.

A page of another site can make a browser send requests to this server. Three checks prevent harm:

1. The Host header must name this server. Otherwise a foreign domain that resolves to this address could read the
   answers (DNS rebinding).
2. A request that changes something must come from one of our own pages.
3. A form must contain the secret that only our own pages have (`AccessRules.form_secret`, checked by
   `gpmi.serve.forms`).

If the server listens to other machines, every request needs a token.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
ANY_HOST = frozenset({"0.0.0.0", "::", ""})  # the server listens on all interfaces
MAX_BODY = 2**20  # bytes of a request: a thousand results take 20 kB; our choice
MAX_UPLOAD = 20 * 2**20  # bytes of a table of candidates: a million rows of two numbers; our choice
MIN_TOKEN_LENGTH = 12  # characters of a token that the user chooses; our choice
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}
UNBUFFERED = {"x-accel-buffering": "no"}  # of a stream of events: tells nginx to pass each one on at once


@dataclass(frozen=True)
class AccessRules:
    """What a request needs to be let in."""

    host: str = "127.0.0.1"  # the address that the server listens on
    token: str | None = None  # None if only this machine can connect
    port: int = 0  # part of the cookie's name, because all ports of a host share their cookies
    form_secret: str = field(default_factory=lambda: secrets.token_urlsafe(32))  # in every form of our pages
    public_url: str | None = None  # where visitors find a proxy in front of the server, without a path

    @staticmethod
    def of(host: str, port: int, token: str | None, public_url: str | None = None) -> AccessRules:
        """Make the rules for a host. If other machines can connect and no token is given, one is generated."""
        if public_url is not None:
            public_url = _checked_public_url(public_url)
        if token is not None and len(token) < MIN_TOKEN_LENGTH:
            raise ValueError(
                f"the token has {len(token)} characters; give at least {MIN_TOKEN_LENGTH}, or leave it out to get one"
            )
        if token is None and (host not in LOCAL_HOSTS or public_url is not None):
            token = secrets.token_urlsafe(24)
        return AccessRules(host, token, port, public_url=public_url)

    @property
    def cookie_name(self) -> str:
        return f"gpmi-{self.port}"

    @property
    def cookie_value(self) -> str:
        """A hash of the token, so that the cookie does not reveal it."""
        return hmac.new((self.token or "").encode(), b"gpmi cookie", hashlib.sha256).hexdigest()

    def is_own_host(self, header: str) -> bool:
        """Whether a Host header names this server. Unknown domain names do not, whatever they resolve to."""
        name = _host_and_netloc(f"//{header}")[0]
        if not name:
            return False
        if name in LOCAL_HOSTS or name == self.host.lower():
            return True
        if self.public_url is not None and name == _host_and_netloc(self.public_url)[0]:
            return True
        if self.host not in ANY_HOST:
            return False
        try:  # a numeric address needs no DNS, so nobody can redirect it
            ipaddress.ip_address(name)
            return True
        except ValueError:
            return name in {socket.gethostname().lower(), socket.getfqdn().lower()}

    def has_token(self, headers: Headers) -> bool:
        """Whether a request has the token, in the header Authorization or as a cookie."""
        if self.token is None:
            return True
        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and secrets_equal(credentials.strip(), self.token):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self.cookie_name)
        except CookieError:
            return False
        return cookie is not None and secrets_equal(cookie.value, self.cookie_value)

    def set_cookie(self, response: Response) -> Response:
        """Store the token in the browser, out of reach of scripts and of other sites."""
        secure = self.public_url is not None and self.public_url.startswith("https:")
        response.set_cookie(self.cookie_name, self.cookie_value, httponly=True, secure=secure, samesite="lax", path="/")
        return response


def _checked_public_url(url: str) -> str:
    """Return the URL of a proxy without the slash at its end, or raise if it is not one."""
    host, netloc = _host_and_netloc(url)
    bare = url.lower().rstrip("/")
    if not host or "@" in netloc or bare not in (f"http://{netloc}", f"https://{netloc}"):
        raise ValueError(
            f"public_url is {url!r}; give the address that visitors type, without a path, such as https://lab.example.org"
        )
    return bare


def secrets_equal(first: str, second: str) -> bool:
    """Compare two secrets in a time that does not depend on where they differ."""
    return hmac.compare_digest(first.encode(), second.encode())


class AccessMiddleware:
    """Lets through the requests that the rules allow, and adds the security headers to every answer."""

    def __init__(self, app: ASGIApp, rules: AccessRules) -> None:
        self.app, self.rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        limit = MAX_UPLOAD if scope["path"] == "/new/table" else MAX_BODY
        refusal = self._refusal(scope, Headers(scope=scope), limit)
        if refusal is not None:
            await refusal(scope, receive, with_headers)
        else:
            with suppress(ClientDisconnect):  # nobody reads the answer, and this is not an error of ours to log
                await self.app(scope, _limited(receive, limit), with_headers)

    def _refusal(self, scope: Scope, headers: Headers, limit: int) -> Response | None:
        """Return the answer to a request that is refused; None if it is let in."""
        api, safe = scope["path"].startswith("/api/"), scope["method"] in ("GET", "HEAD")
        if not self.rules.is_own_host(headers.get("host", "")):
            return _refuse(421, "the Host header names another server", api)
        if not safe and scope["method"] != "POST":
            return _refuse(405, "only GET and POST are allowed", api)
        if not safe and _is_foreign(headers):
            return _refuse(403, "the request comes from a page of another site", api)
        size = headers.get("content-length", "0")
        if not re.fullmatch(r"[0-9]{1,18}", size) or int(size) > limit:
            return _refuse(413, f"the request is larger than {limit // 2**20} MB", api)
        if safe and self.rules.token is not None and not api:
            redirect = self._token_in_address(scope)
            if redirect is not None:
                return redirect
        if scope["path"].startswith("/static/") or scope["path"] == "/enter" or self.rules.has_token(headers):
            return None
        if api:
            return JSONResponse(
                {"error": "the token is missing or wrong; send it as the header Authorization: Bearer TOKEN"},
                401, {"www-authenticate": "Bearer"},
            )  # fmt: skip
        return RedirectResponse("/enter", 303) if safe else _refuse(401, "the token is missing or wrong", api)

    def _token_in_address(self, scope: Scope) -> Response | None:
        """Answer ?token=... with a cookie and a redirect to the same address without the token."""
        query = parse_qsl(scope["query_string"].decode("latin-1"))
        tokens = [value for name, value in query if name == "token"]
        if not tokens or not secrets_equal(tokens[0], self.rules.token or ""):
            return None
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        path = "/" + scope["path"].lstrip("/")  # never //host
        return self.rules.set_cookie(RedirectResponse(path + (f"?{rest}" if rest else ""), 303))


def _is_foreign(headers: Headers) -> bool:
    """Whether the browser says that a request comes from another site. Programs send neither header."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return True
    origin = headers.get("origin")
    return origin is not None and _host_and_netloc(origin)[1] != headers.get("host", "").lower()


def _host_and_netloc(address: str) -> tuple[str, str]:
    """Return the host of an address, and the host with its port; empty strings if it is not an address."""
    try:
        parts = urlsplit(address)
        return parts.hostname or "", parts.netloc.lower()
    except ValueError:
        return "", ""


def _refuse(status: int, reason: str, api: bool) -> Response:
    return JSONResponse({"error": reason}, status) if api else PlainTextResponse(reason, status)


def _limited(receive: Receive, limit: int) -> Receive:
    """Receive at most `limit` bytes, whatever the request claims as its length."""
    received = 0

    async def counted() -> Any:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit:
            raise HTTPException(413, f"the request is larger than {limit // 2**20} MB")
        return message

    return counted
