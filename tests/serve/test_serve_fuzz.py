"""Random hostile requests to a running `gpmi serve`: each is answered, and no value is lost, changed or invented.

A case is a conversation. A server of its own, with a copy of a study, gets the bytes of EACH requests through a socket.
Most requests have one or two things wrong, so that they get as far as possible. After each one the trials are compared
with those before: a trial may change only if the request was lawful and says its number, and a value appears only if
the request says it.
"""

from __future__ import annotations

import json
import logging
import random
import re
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus, unquote, unquote_plus, urlsplit

import numpy as np
import pytest
from fuzzing import play
from laboratory import Page, running_server
from waiting import LIMIT

import gpmi
from gpmi.serve.security import MAX_BODY
from gpmi.space import Candidates
from gpmi.storage.opening import names_in

EACH = 20  # requests of a conversation
TOKEN = "a-token-of-the-tests"
EVIL = "<script>alert(1)</script>"
FORM = "application/x-www-form-urlencoded"
LARGE_BODY = 2**16  # bytes that may be unread when a request is refused; the network may then drop the answer
SECRET_PATHS = (str(Path(gpmi.__file__).parent), sys.prefix, "site-packages")


class Prepared(NamedTuple):
    """A database with studies, and how a client writes their points."""

    names: tuple[str, ...]
    space: Any
    point: str  # in JSON
    fixed: str
    keys: tuple[str, ...]  # of the parameters, in forms
    options: dict[str, Any]
    values: int = 3  # that it has


PREPARED = (
    Prepared(
        ("default",),
        {"a": gpmi.Real(0.0, 1.0, unit=EVIL[:20]), "n": gpmi.Int(1, 9), EVIL: ["x", "ü"]},
        f'{{"a": 0.25, "n": 3, "{EVIL}": "x"}}',
        '{"a": 0.5}',
        ("a", "n", EVIL),
        {"constraints": ["a + n <= 9.5"], "budget": 20},
    ),
    Prepared(("ü / ..",), [(0.0, 1.0), (0.001, 1.0)], "[0.5, 0.125]", '{"0": 0.5}', ("0", "1"), {"goal": "min"}, 20),
    Prepared(
        ("first", "second"),
        Candidates.from_columns({"v": [0.5 * i for i in range(14)], "w": [0, 1] * 7}),
        '{"v": 1.5, "w": 1}',
        '{"w": 1}',
        ("v", "w"),
        {},
    ),
)


# What a request consists of. In each pair of lists the first one is right and the second one wrong.

METHODS = ("GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW", "post", "PROPFIND")
PAGES = (
    *("/", "/new", "/enter", "/static/lab.css", "/static/report.js", "/study/{slug}", "/study/{slug}/events"),
    *("/study/{slug}/trials", "/study/{slug}/trials.csv", "/study/{slug}/report", "/study/{slug}/trial/{number}"),
    *("/api/study", "/api/studies", "/api/trials", "/api/best", "/api/recommend", "/api/known", "/api/events"),
    *("/api/openapi.json", "/api/nothing", "/nothing"),
)
CALLS = {
    "ask": ("n", "fixed"),
    "tell": ("number", "x", "y", "noise_var", "repeats", "constraints", "again"),
    "fail": ("number", "why"),
    "correct": ("number", "y", "noise_var", "repeats", "constraints"),
    "retract": ("number",),
    "reject": ("number",),
    "forget": ("number",),
}
FORMS = (
    *("/study/{slug}/results", "/study/{slug}/results", "/study/{slug}/observe", "/study/{slug}/ask"),
    *("/study/{slug}/results", "/study/{slug}/observe", "/study/{slug}/trial/{number}", "/study/{slug}/trial/{number}"),
    *("/study/{slug}/trial/{number}", "/new/parameters", "/new/table", "/new/candidates", "/enter"),
)
ACTIONS = ("tell", "correct", "again", "fail", "reject", "forget", "retract", "leave", "", "drop table")
QUERIES = ("study", "fixed", "offset", "limit", "status", "page", "said", "after", "token", "", "%00")
JSON_TYPES = (("application/json", "Application/JSON; charset=utf-8"), ("text/plain", FORM, "application/jsonx", ""))
FORM_TYPES = ((FORM, f"{FORM}; charset=UTF-8"), ("text/plain", "application/json", "", f"{FORM}; charset=utf-7"))
PARTS_TYPES = (
    ("multipart/form-data; boundary=b", "multipart/form-data; charset=utf-8; boundary=b"),
    ("multipart/form-data", "multipart/form-data; boundary=b; charset=unicode_escape", "multipart/mixed; boundary=b",
     "multipart/form-data; boundary=" + "b" * 300, 'multipart/form-data; boundary="'),
)  # fmt: skip
WRONG_HOSTS = ("evil.example", "127.0.0.1.evil.example", "192.168.1.7", "", "[", "a b", "[::1", "127.0.0.1@evil", "ÿ")
WRONG_ORIGINS = ("https://evil.example", "null", "http://[", "http://127.0.0.1:9", "", "ÿ", "x" * 9000)
ODD_HEADERS = (
    *("Expect: 100-continue", "Upgrade: websocket\r\nSec-WebSocket-Key: x", 'Cookie: =;;;\\"; gpmi-1=\xff', "X: \xff"),
    *("Last-Event-ID: 3", "Last-Event-ID: -1", "Last-Event-ID: ²", "Referer: javascript:alert(1)", "Range: bytes=0-1"),
    *("Accept-Encoding: gzip;q=x", "X-Forwarded-Host: evil.example", "X-HTTP-Method-Override: PUT", "If-None-Match: *"),
    *("Content-Encoding: gzip", "Authorization: Basic \xff", "Accept-Language: " + "x" * 5000, "Forwarded: x"),
    "\r\n".join(f"X-{i}: y" for i in range(150)),
)
EXTREME = ("0", "-0.0", "1e100", "-1e100", "5e-324", "1e-200", "123456789.125", "1e16", "0.30000000000000004")
NASTY_JSON = (
    *("null", "true", "NaN", "-Infinity", "1e999", "-1e308", "1e100", "1e101", "-0.0", "5e-324", "9" * 400, "9" * 5000),
    *("18446744073709551616", "-1", "1.5", "1.0", "1e0", "[]", "{}", "[1]", "[1, 2]", "[" * 5000, '{"a":' * 3000),
    *('""', '"1"', '"\\ud800"', '"\\u0000"', f'"{EVIL}"', '"' + "x" * 9000 + '"', '{"a": NaN}', '{"a": [1]}'),
    *('{"\\ud800": 1}', "[null]", "[[0.5]]", "[true, false]", '{"a": "0.5", "n": 3}', "01", ".5", "'1'", "// 1"),
    *('{"0": 1e400, "1": 2}', "[1e308, 1e308]", '{"w": {}}', '{"w": null, "v": null}', '{"a": 0.5, "a": 0.75}'),
    *("\ufeff1", '{"n": 1e300}', '{"n": 9223372036854775808}', '{"v": 1e-400}', "[1e400, -1e400]"),
)
NASTY_TEXT = (
    *("", " ", "-", "0", "-0", "1", "2", "1e999", "1e100", "1e101", "-1e300", "5e-324", "nan", "inf", "٣", "²", "1,5"),
    *("1,234", "1.234,5", "1 234", "−3", "4.1 ± 0.2", "4.1 ± 1e200", "4 ± -1", "1 ± 2 ± 3", "failed", "true", "[]"),
    *(f"failed: {EVIL}", "x" * 5000, "9" * 5000, "9" * 200_000, "1" * 290, "\0", "\r\n", "\t", "\ufeff", "\ud800", "é"),
    *("../../etc/passwd", "%s%n", "${7*7}", "' OR 1=1 --", EVIL, '"><img src=x onerror=alert(1)>', "a" * 90, "\u202e"),
    *("1\t2", "0\t1\n1\t2", "1\n2\n3", "9007199254740993", "1e15", "0.1e-3", "choice", "whole", "number", "on", "max"),
    "=cmd|' /C calc'!A0",
)
NASTY_PATHS = (
    *("..", "%2e%2e", "%00", "%ff%fe", "%C3%BC", "%F0%9F%92%A9", "a" * 5000, "default%2f..", "%252e", "~", "*", ";x"),
    *("%", "-1", "9" * 30, "9" * 4301, "%D9%A3", "01", "1.5", "0x1", "1e1", "nan", "%0d%0aX:%20y", "%5c..%5c", "con"),
    *("{slug}", "", "//"),
)
TABLES = (
    *("v,w\n1,2\n2,3\n", "v;w\n1,5;a\n2,5;b\n", "name,v,result\na,1,0.5\nb,2,\nc,3,failed\n", "v\n1\n1\n", "v\n1\n"),
    *("v,v\n1,2\n3,4\n", "v\n1e308\n-1e308\n", f"v\n{'9' * 400}\n1\n", 'v,"w\n1,2\n', "v,w\n1\n2,3\n", "\0"),
    *(f"{EVIL},=cmd\n1,2\n3,4\n", "v\n5e-324\n0\n", "v\n\ud800\n1\n", ",".join("abc" * 40) + "\n1\n2\n"),
    *("v,result\n1,1e100\n2,-1e100\n3,1 ± 1e200\n", "a,b\n" + "\n".join(f"{i},{i % 3}" for i in range(300))),
)


class Sent(NamedTuple):
    """A request, and what the checks need to know about it."""

    data: bytes
    target: str
    said: str  # its target and its body as text, to look for numbers
    lawful: bool  # it may change something
    whole: bool  # it is complete, so it must be answered
    fields: dict[str, str] | None = None  # of a form that was sent as it was made
    json: Any = None  # the body of a call that was sent as it was made


class Answer(NamedTuple):
    """What came back: a status of 0 if nothing did."""

    status: int
    headers: dict[str, str]
    body: bytes


class Client:
    """Makes random requests for one server."""

    def __init__(self, rng: np.random.Generator, url: str, prepared: Prepared, token: str | None) -> None:
        self.rng, self.prepared, self.token = rng, prepared, token
        self.host = urlsplit(url).netloc
        self.address = ("127.0.0.1", int(self.host.rpartition(":")[2]))
        self.slugs: list[str] = []
        self.secret = ""  # of the forms
        self.key = ""  # of the last table that was uploaded
        self.once: set[str] = set()  # the keys of the forms that were sent
        self.last: Sent | None = None

    # Chance

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def number(self) -> str:
        """Return the number of a trial, most likely one that exists."""
        return str(self.rng.integers(0, self.prepared.values + 11 if self.chance(0.9) else 10**6))

    def value(self) -> str:
        """Return a value that can be told, sometimes an extreme one."""
        return f"{self.rng.normal():.6g}" if self.chance(0.9) else self.pick(EXTREME)

    def mutated(self, data: bytes) -> bytes:
        """Change some bytes."""
        changed = bytearray(data)
        for _ in range(int(self.rng.integers(1, 4))):
            place = int(self.rng.integers(len(changed) + 1))
            end = place + self.pick((0, 1, 3, 20))
            again = bytes(changed[place:end]) * 3
            changed[place:end] = self.pick((b"", b"\0", b"\xff", b"%", b"&", b'"', b"{", b"\r\n", b"--b", again))
        return bytes(changed)

    # Requests

    def request(self) -> Sent:
        """Return a random request: a page, a call, a form, or the last request once more."""
        kind = self.rng.random()
        if kind < 0.05 and self.last is not None:
            return self.last
        if kind < 0.3:
            self.last = self.page()
        elif kind < 0.6:
            self.last = self.call()
        else:
            self.last = self.form()
        return self.last

    def page(self) -> Sent:
        method = "GET" if self.chance(0.8) else self.pick((*METHODS, "POST"))
        body = b"" if self.chance(0.9) else self.rng.bytes(50)
        return self.complete(method, self.target(self.pick(PAGES)), "", body, lawful=False)

    def target(self, template: str) -> str:
        """Return the address of a route, sometimes with another part in it and a query."""
        slug = self.pick(self.slugs) if self.chance(0.95) else self.pick(NASTY_PATHS)
        number = self.number() if self.chance(0.9) else self.pick(NASTY_PATHS)
        path = template.replace("{slug}", slug).replace("{number}", number)
        if self.chance(0.05):
            parts = path.split("/")
            parts[int(self.rng.integers(len(parts)))] = self.pick(NASTY_PATHS)
            path = "/".join(parts)
        query = [("study", self.pick(self.slugs))] if path.startswith("/api/") and self.chance(0.9) else []
        while self.chance(0.2):
            text = self.pick((self.number(), self.prepared.fixed, *NASTY_TEXT, *NASTY_JSON, *self.slugs, "told", TOKEN))
            query.append((self.pick(QUERIES), quote(text[:3000], errors="surrogatepass")))
        return path + ("?" if query else "") + "&".join(f"{name}={text}" for name, text in query)

    def call(self) -> Sent:
        """Return a call of the API."""
        name = self.pick(tuple(CALLS))
        right = {
            **{"n": "2", "fixed": self.prepared.fixed, "number": self.number(), "x": self.prepared.point},
            **{"y": self.value(), "noise_var": self.pick(("0.25", "0", "1e-300", "1e200")), "constraints": "[]"},
            **{"repeats": self.pick(("2", "1.0", "9" * 18)), "again": "true", "why": '"spilt"'},
        }
        wanted = [one for one in CALLS[name] if one in ("number", "y") or self.chance(0.25)]
        if name == "tell" and "x" in wanted and self.chance(0.8):
            wanted.remove("number")
        if self.chance(0.1):
            wanted.append(self.pick((*right, "__proto__", "\\ud800", "")))  # unknown, or twice
        if wanted and self.chance(0.1):
            wanted.pop(int(self.rng.integers(len(wanted))))
        pairs = [(one, self.pick(NASTY_JSON) if self.chance(0.15) else right.get(one, "1")) for one in wanted]
        text = "{" + ", ".join(f'"{one}": {value}' for one, value in pairs) + "}"
        if self.chance(0.03):
            text = self.pick(NASTY_JSON)
        body = text.encode(self.pick(("utf-16", "utf-32", "latin-1")) if self.chance(0.05) else "utf-8", "replace")
        if self.chance(0.08):
            body = self.mutated(body)
        right_kind = self.chance(0.93)
        sent = self.complete(
            "POST" if self.chance(0.95) else self.pick(METHODS),
            self.target(f"/api/{name}"), self.pick(JSON_TYPES[not right_kind]), body, lawful=right_kind,
        )  # fmt: skip
        with suppress(ValueError, RecursionError):
            sent = sent._replace(json=json.loads(body))
        return sent

    def form(self) -> Sent:
        """Return a form, as fields or as parts."""
        route = self.pick(FORMS)
        fields = [(name, self.pick(NASTY_TEXT) if self.chance(0.12) else text) for name, text in self.fields(route)]
        secret = self.secret if self.chance(0.93) else self.pick(("", "x", self.secret[:-1], self.secret + "x", "é"))
        once = self.pick(tuple(sorted(self.once))) if self.once and self.chance(0.05) else f"{self.rng.integers(2**40)}"
        fields += [("csrf", secret), ("once", once)]
        if self.chance(0.1):
            fields.append((self.pick(fields)[0], self.pick(NASTY_TEXT)))  # twice
        if self.chance(0.05):
            fields.pop(int(self.rng.integers(len(fields))))
        in_parts = route == "/new/table" or self.chance(0.2)
        body = self.parts(fields, route == "/new/table") if in_parts else encoded(fields)
        right_kind, as_made = self.chance(0.95), self.chance(0.9)
        sent = self.complete(
            "POST" if self.chance(0.95) else self.pick(METHODS),
            self.target(route), self.pick((PARTS_TYPES if in_parts else FORM_TYPES)[not right_kind]),
            body if as_made else self.mutated(body), lawful=right_kind and secret == self.secret,
        )  # fmt: skip
        if not as_made or in_parts or dict(fields).get("once") in self.once:
            return sent
        self.once.add(once)
        return sent._replace(fields=dict(fields))

    def fields(self, route: str) -> Iterator[tuple[str, str]]:
        """Yield the fields that a page sends to a route, some of them left out."""
        last = route.rpartition("/")[2]
        if last == "results":
            numbers = [self.number() for _ in range(int(self.rng.integers(0, 4)))]
            yield "order", ",".join(numbers)
            if self.chance(0.2):
                title, first = self.pick(("", "yield\n", "trial\tyield\n")), self.pick(("", "{}\t", "#{}\t"))
                yield "pasted", title + "\n".join(first.format(one) + self.value() for one in numbers)
            else:
                yield from ((f"y-{one}", self.value() if self.chance(0.8) else "failed: spilt") for one in numbers)
            if self.chance(0.4):
                yield self.pick(ACTIONS), self.number()
                yield f"why-{self.number()}", "spilt"
        elif last in ("observe", "ask"):
            prefix = "own" if last == "observe" else "given"
            for key, text in zip(self.prepared.keys, ("0.5", "1", "x"), strict=False):
                if last == "observe" or self.chance(0.3):
                    yield f"{prefix}-{key}", text
            yield ("own-result", self.value()) if last == "observe" else ("n", str(self.rng.integers(1, 4)))
        elif last == "{number}":
            yield from (("word", self.pick(ACTIONS)), ("y", self.value()), ("why", "spilt"))
        elif last == "parameters":
            yield from self.common_fields()
            for i in range(int(self.rng.integers(1, 4))):
                kind = self.pick(("number", "whole", "choice"))
                yield from ((f"name-{i}", f"p{i}"), (f"kind-{i}", kind), (f"lo-{i}", "1"), (f"hi-{i}", "9"))
                yield from ((f"unit-{i}", "ml"), (f"options-{i}", "a, b"), *([(f"log-{i}", "on")] * self.chance(0.3)))
        elif last == "candidates":
            yield from self.common_fields()
            yield "key", self.key
            for i, usual in enumerate(self.pick((("label", "use", "result"), ("use", "result"), ("use", "use")))):
                yield f"use-{i}", usual if self.chance(0.8) else self.pick(("use", "label", "result", "skip"))
        elif last == "enter":
            yield "token", self.pick((TOKEN, "wrong"))

    def common_fields(self) -> Iterator[tuple[str, str]]:
        yield from (("study", f"s{self.rng.integers(5)}"), ("goal", self.pick(("max", "min"))))
        yield from (("aim", self.pick(("find", "earn"))), ("budget", self.pick(("", "10"))))

    def parts(self, fields: Sequence[tuple[str, str]], with_table: bool) -> bytes:
        """Return the fields as a body of several parts, sometimes broken."""
        ends = b"\r\n" if self.chance(0.97) else b"\n"
        lines = []
        for name, text in fields:
            quoted = name.replace('"', "%22") if self.chance(0.97) else name + '"; filename="x'
            lines += [b"--b", f'Content-Disposition: form-data; name="{quoted}"'.encode(), b""]
            lines.append(text.encode(errors="surrogatepass"))
        if with_table and self.chance(0.95):
            table = self.pick(TABLES).encode(self.pick(("utf-8", "utf-8-sig", "utf-16", "latin-1")), "replace")
            name = self.pick(("t.csv", "../../t.csv", EVIL, "", "x" * 3000)).encode()
            lines += [b"--b", b'Content-Disposition: form-data; name="table"; filename="' + name + b'"']
            lines += [b"Content-Type: text/csv", b"", table]
        return ends.join([*lines, b"--b--" if self.chance(0.97) else b"--b", b""])

    # Bytes

    def complete(self, method: str, target: str, kind: str, body: bytes, *, lawful: bool) -> Sent:
        """Return the bytes of a request, sometimes with wrong headers."""
        host = self.pick((self.host, self.host, f"localhost:{self.address[1]}"))
        right_host, right_origin, right_token = (self.chance(0.97) for _ in range(3))
        headers = [f"Host: {host if right_host else self.pick(WRONG_HOSTS)}"] * (2 if self.chance(0.01) else 1)
        if not right_origin:
            headers.append(self.pick([f"Origin: {one}" for one in WRONG_ORIGINS] + ["Sec-Fetch-Site: cross-site"]))
        elif self.chance(0.5):
            headers.append(f"Origin: http://{host}")
        if self.token is not None:
            sent = self.token if right_token else self.pick(("", "wrong", "\xff", self.token[:-1]))
            headers.append(f"Authorization: Bearer {sent}")
        if kind:
            headers.append(f"Content-Type: {kind}")
        while self.chance(0.1):
            headers.append(self.pick(ODD_HEADERS))
        if self.chance(0.01):
            body = b" " * (MAX_BODY + 1)
        said, length, whole = body, len(body), True
        if self.chance(0.05) and body:  # in chunks
            headers.append("Transfer-Encoding: chunked")
            cut = int(self.rng.integers(1, len(body) + 1))
            chunks = [body[:cut], *([body[cut:]] if cut < len(body) else [])]
            body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
            if self.chance(0.8):
                body += b"0\r\n\r\n"
            else:
                whole = False
        elif body or self.chance(0.2):
            if self.chance(0.06):
                wrong = self.pick((length + 10, max(0, length - 3), "-1", "many", "9" * 20, "9" * 5000, f"{length}, 0"))
                whole = isinstance(wrong, str) or wrong <= length
                said = body[:wrong] if isinstance(wrong, int) else b""
                headers.append(f"Content-Length: {wrong}")
            else:
                headers.append(f"Content-Length: {length}")
        version = "HTTP/1.1" if self.chance(0.98) else self.pick(("HTTP/1.0", "HTTP/9.9", "HTTP/x", ""))
        headers = [headers[i] for i in self.rng.permutation(len(headers))]
        lines = "\r\n".join([f"{method} {target} {version}", *headers, "Connection: close", "", ""])
        lawful = lawful and method == "POST" and right_host and right_origin and whole
        lawful = lawful and (right_token or self.token is None)
        return Sent(lines.encode("latin-1") + body, target, f"{unquote(target)}\n{text_of(said)}", lawful, whole)


def encoded(fields: Sequence[tuple[str, str]]) -> bytes:
    pairs = ((quote_plus(name), quote_plus(text, errors="surrogatepass")) for name, text in fields)
    return "&".join(f"{name}={text}" for name, text in pairs).encode()


def text_of(body: bytes) -> str:
    """Return a body as text, read in every way that a server may read it."""
    raw = body.decode("utf-8", "replace")
    return f"{raw}\n{unquote_plus(raw)}\n{body.decode(json.detect_encoding(body), 'replace')}"


def exchange(address: tuple[str, int], sent: Sent) -> Answer:
    """Send a request and return its answer. Of a stream of events only the head is read."""
    received = b""
    with closing(socket.create_connection(address, timeout=LIMIT)) as connection:
        try:
            connection.sendall(sent.data)
            if not sent.whole:
                with suppress(OSError):  # the server may have closed the connection
                    connection.shutdown(socket.SHUT_WR)
            while more := connection.recv(2**16):
                received += more
                while received.startswith(b"HTTP/1.1 100") and b"\r\n\r\n" in received:
                    received = received.partition(b"\r\n\r\n")[2]
                head, end, _ = received.partition(b"\r\n\r\n")
                if end and b"text/event-stream" in head:
                    break
        except ConnectionError:
            assert received or not sent.whole or len(sent.data) > LARGE_BODY, "the connection was reset"
    head, _, body = received.partition(b"\r\n\r\n")
    if not head:
        return Answer(0, {}, b"")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Answer(int(first.split()[1]), headers, body)


# What must hold


@contextmanager
def no_error_is_logged() -> Iterator[None]:
    """Fail if the server logs an exception, or that a model could not be computed."""
    records: list[logging.LogRecord] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    handler = Handler(logging.WARNING)
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "asyncio", "gpmi")]
    for one in loggers:
        one.addHandler(handler)
    try:
        yield
    finally:
        for one in loggers:
            one.removeHandler(handler)
    bad = [  # other warnings are events of a study, such as duplicate candidates
        record
        for record in records
        if record.exc_info or record.levelno >= logging.ERROR or "could not be computed" in record.getMessage()
    ]
    assert not bad, "\n".join(logging.Formatter().format(record) for record in bad)


def check_answer(sent: Sent, answer: Answer, folder: Path) -> None:
    """Check that an answer is there and tells nothing about the inside of the server."""
    if not sent.whole and answer.status == 0:
        return
    assert 200 <= answer.status < 500, answer
    length = answer.headers.get("content-length")
    if length is not None and not sent.data.startswith(b"HEAD") and answer.status != 304:
        assert len(answer.body) == int(length), "the answer was cut off"
    assert b"Traceback" not in answer.body and b"<script>alert" not in (
        answer.body if "html" in answer.headers.get("content-type", "") else b""
    )
    for inside in SECRET_PATHS:
        assert inside.encode() not in answer.body, inside
    if urlsplit(sent.target).path != "/":  # this page says where the studies are
        assert str(folder).encode() not in answer.body


Trials = dict[tuple[str, int], Any]  # by study and number


def check_changes(sent: Sent, answer: Answer, before: Trials, after: Trials) -> None:
    """Check that only the trials changed that the request names, and only to values that it says."""
    changed = [key for key in before.keys() | after.keys() if repr(before.get(key)) != repr(after.get(key))]
    refused = answer.status >= 400 and not (answer.status in (400, 409) and "/results" in sent.target)
    assert not changed or (sent.lawful and not refused), changed
    numbers = numbers_in(sent.said)
    for key in changed:
        assert key not in before or key[1] in numbers, ("a trial that the request does not name", key)
        if key not in after:
            assert before[key].status == "pending", ("a value was lost", before[key])
        elif after[key].y is not None and (key not in before or after[key].y != before[key].y):
            assert after[key].y in numbers, ("a value that the request does not say", after[key])


def check_told(sent: Sent, answer: Answer, after: Trials) -> None:
    """Check that the values of a request that was accepted are in the study."""
    path = unquote(urlsplit(sent.target).path)
    if path.startswith("/api/") and answer.status in (200, 202) and sent.lawful:
        shown = json.loads(answer.body).get("trial")
        if shown is not None:
            mine = [one for (_, number), one in after.items() if number == shown["number"]]
            assert shown["status"] in [one.status for one in mine], (shown, mine)
            if "y" in (sent.json or {}):
                assert shown["y"] == float(sent.json["y"]) and shown["y"] in [one.y for one in mine], (shown, mine)
    if sent.fields is not None and answer.status == 303 and sent.lawful and path.startswith("/study/"):
        left = {sent.fields.get(one) for one in ("leave", "retract")}
        cells = [sent.fields[one] for one in sent.fields if re.fullmatch(r"y-[0-9]{1,9}", one) and one[2:] not in left]
        if path.endswith("/observe"):
            cells = [sent.fields["own-result"]]
        elif "/trial/" in path and sent.fields["word"] in ("tell", "correct", "again"):
            cells = [sent.fields["y"]]
        for cell in cells:
            if re.fullmatch(r"-?[0-9]+\.?[0-9]*(e[+-]?[0-9]+)?", cell):
                assert float(cell) in [one.y for one in after.values()], ("a value was lost", cell)


def numbers_in(text: str) -> set[float]:
    """Return all numbers that a text can mean, with decimal points or commas."""
    found: set[float] = set()
    plain = text.replace("−", "-")
    for one in (plain, plain.replace(",", "."), plain.replace(".", "").replace(",", "."), re.sub("[ ,'’]", "", plain)):
        for match in re.findall(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", one):
            found |= {float(match), abs(float(match))}
        found |= {float(match) for match in re.findall(r"[0-9]+", one)}
    return found


# The studies


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Databases whose studies have trials of every status."""
    found = []
    for i, prepared in enumerate(PREPARED):
        path = tmp_path_factory.mktemp("prepared") / f"{i}.db"
        for name in prepared.names:
            with gpmi.study(path, name, space=prepared.space, seed=i, **prepared.options) as study:
                for y in np.random.default_rng(0).normal(size=prepared.values):
                    study.tell(study.ask(), float(y))
                study.fail(study.ask(), why=EVIL)
                study.reject(study.ask())
                study.retract(study.tell(study.ask(), 7.0).number)
                study.forget(study.ask())
                study.ask(3, lease=float("inf"))
                study.ask(lease=1e6)
        found.append(path.read_bytes())
    return found


def play_conversation(rng: np.random.Generator, database: bytes, prepared: Prepared, folder: Path) -> list[str]:
    """Send EACH requests to a new server, check each answer, and return what became of them."""
    path, token = folder / "lab.db", TOKEN if rng.random() < 0.3 else None
    path.write_bytes(database)
    kinds = []
    with ExitStack() as stack:
        url = stack.enter_context(running_server(str(path), token))
        stack.enter_context(no_error_is_logged())
        readers = {name: stack.enter_context(gpmi.study(path, name)) for name in prepared.names}

        def trials() -> Trials:
            return {(name, one.number): one for name, reader in readers.items() for one in reader.refresh().trials}

        client = Client(rng, url, prepared, token)
        hello = f"Host: {client.host}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
        for target in ("/api/studies", "/new"):
            data = f"GET {target} HTTP/1.1\r\n{hello}".encode()
            answer = exchange(client.address, Sent(data, target, "", lawful=False, whole=True))
            if target == "/new":
                client.secret = Page(answer.body.decode()).forms[0].fields["csrf"]
            else:
                client.slugs = [one["study"] for one in json.loads(answer.body)["studies"]]
        before = trials()
        for i in range(EACH):
            sent = client.request()
            try:
                answer = exchange(client.address, sent)
                check_answer(sent, answer, folder)
                after = trials()
                check_changes(sent, answer, before, after)
                check_told(sent, answer, after)
            except Exception as error:
                raise AssertionError(f"request {i}: {sent.data[:1500]!r}\n{sent.lawful=}\n{error!r}") from error
            if uploaded := re.search(rb'name="key" value="([^"]+)"', answer.body):
                client.key = uploaded[1].decode()
            kinds.append("not answered" if answer.status == 0 else f"{answer.status // 100}xx")
            before = after
    for name in names_in(str(path)):
        with gpmi.study(path, name) as study:
            assert study.verify() and not study.warnings, (name, study.verify(), study.warnings)
    return kinds


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_every_hostile_request_is_answered_and_no_value_is_lost(databases: list[bytes], tmp_path: Path) -> None:
    def case(rng: random.Random) -> list[str]:
        number = rng.randrange(len(PREPARED))
        folder = tmp_path / f"{rng.getrandbits(64):x}"
        folder.mkdir()
        numbers = np.random.default_rng(rng.getrandbits(64))
        return play_conversation(numbers, databases[number], PREPARED[number], folder)

    play("hostile requests", "GPMI_REQUESTS", 5 * EACH, case, each=EACH)
