"""A hundred hostile requests to `gpmi serve`: all refused, nothing executed, nothing lost."""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from html.parser import HTMLParser
from typing import Any

import httpx2
import pytest
from laboratory import BASE, Page, client_for, running_server, send
from waiting import LIMIT

import gpmi
from gpmi.serve import AccessRules, Catalogue, application, server
from gpmi.serve.security import MAX_BODY

TOKEN = "a-token-of-the-tests"
FORM = "application/x-www-form-urlencoded"
EVIL = "<script>alert(1)</script>"
POSTS = ("/api/ask", "/api/tell", "/api/fail", "/study/default/ask", "/study/default/results", "/new/parameters")
PAGES = ("/study/default", "/study/default/trials", "/study/default/report", "/new", "/api/trials", "/api/study")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("hostile") / "lab.db")
    with gpmi.study(path, space={"a": (0.0, 1.0)}, seed=0) as study:
        study.tell(study.ask(), 1.0)
        study.ask(lease=float("inf"))
    return path


def client_of(path: str, token: str | None) -> Iterator[Any]:
    with client_for(path, AccessRules(token=token, port=8470)) as client:
        yield client


@pytest.fixture(scope="module")
def local(path: str) -> Iterator[Any]:
    """A server for this machine, without a token."""
    yield from client_of(path, None)


@pytest.fixture(scope="module")
def open_to_all(path: str) -> Iterator[Any]:
    """A server with a token."""
    yield from client_of(path, TOKEN)


def stored_log(path: str) -> Any:
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT * FROM gpmi_events ORDER BY study, seq").fetchall()


@pytest.fixture
def unchanged(path: str) -> Iterator[None]:
    """Check that the log in the database does not change."""
    before = stored_log(path)
    yield
    assert stored_log(path) == before


def sent(client: Any, post: str, **headers: str) -> Any:
    """Send what one of our pages would send."""
    if post.startswith("/api/"):
        body = {"/api/ask": {}, "/api/tell": {"number": 1, "y": 1.0}, "/api/fail": {"number": 1}}[post]
        return client.post(post, content=json.dumps(body), headers={"content-type": "application/json", **headers})
    return client.post(post, content="n=1&y-1=3.5&study=x", headers={"content-type": FORM, **headers})


# Cross-site requests

FOREIGN = {
    "origin": {"origin": "https://evil.example"},
    "null": {"origin": "null"},
    "no-address": {"origin": "http://["},
    "other-port": {"origin": "http://127.0.0.1:9999"},
    "similar": {"origin": "http://127.0.0.1:8470.evil.example"},
    "cross-site": {"sec-fetch-site": "cross-site"},
    "same-site": {"sec-fetch-site": "same-site"},
}


@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("kind", FOREIGN)
def test_requests_from_another_site_are_refused(local: Any, unchanged: None, post: str, kind: str) -> None:
    answer = sent(local, post, **FOREIGN[kind])
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("post", [one for one in POSTS if not one.startswith("/api/")])
@pytest.mark.parametrize("csrf", ["", "x", "é", "A" * 43])
def test_a_form_without_the_secret_is_refused(local: Any, unchanged: None, post: str, csrf: str) -> None:
    content = f"n=1&y-1=3.5&csrf={csrf}".encode()
    assert local.post(post, content=content, headers={"content-type": FORM}).status_code == 403


@pytest.mark.parametrize("kind", ["text/plain", FORM, "multipart/form-data; boundary=x", ""])
def test_json_needs_its_content_type(local: Any, unchanged: None, kind: str) -> None:
    """A form of another site can send these content types without a preflight request, but not JSON."""
    answer = local.post("/api/tell", content=b'{"number": 1, "y": 1.0}', headers={"content-type": kind})
    assert answer.status_code == 415


@pytest.mark.parametrize(
    "name", ["evil.example", "evil.example:8470", "127.0.0.1.evil.example", "192.168.1.7", "", "[", "a b"]
)
def test_a_host_that_is_not_ours_is_refused(local: Any, unchanged: None, name: str) -> None:
    assert local.get("/study/default", headers={"host": name}).status_code == 421


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST:1", "127.0.0.1:9000", "[::1]:8470"])
def test_the_names_of_this_machine_are_accepted(local: Any, name: str) -> None:
    assert local.get("/study/default", headers={"host": name}).status_code == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(local: Any, unchanged: None, method: str) -> None:
    answer = local.request(method, "/api/tell", headers={"origin": "https://evil.example"})
    assert answer.status_code == 405 and "access-control-allow-methods" not in answer.headers


# Tokens

WRONG = {
    "none": {},
    "wrong": {"authorization": "Bearer a-token-of-the-test"},
    "longer": {"authorization": f"Bearer {TOKEN}s"},
    "kind": {"authorization": f"Basic {TOKEN}"},
    "empty": {"authorization": "Bearer "},
    "cookie": {"cookie": f"gpmi-8470={TOKEN}"},
    "bytes": {"authorization": "Bearer ÿ".encode("latin-1")},
    "mad-cookie": {"cookie": 'gpmi-8470="; =;;; \\'},
}


@pytest.mark.parametrize("address", ["/study/default", "/api/trials", "/api/ask"])
@pytest.mark.parametrize("kind", WRONG)
def test_without_the_token_nothing_is_shown_or_changed(
    open_to_all: Any, unchanged: None, address: str, kind: str
) -> None:
    headers = {**WRONG[kind], "content-type": "application/json"}
    act = open_to_all.post if address == "/api/ask" else open_to_all.get
    answer = act(address, headers=headers)
    if address.startswith("/api/"):
        assert answer.status_code == 401 and "Bearer" in answer.headers["www-authenticate"]
    else:
        assert answer.status_code == 303 and answer.headers["location"] == "/enter"
    assert TOKEN not in answer.text


def test_the_token_is_accepted_as_header_in_the_address_and_by_form(path: str) -> None:
    for client in client_of(path, TOKEN):
        assert client.get("/api/study", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
        wrong = client.get("/?token=a-token-of-nobody")
        assert wrong.status_code == 303 and "set-cookie" not in wrong.headers
        assert client.post("/enter", data={"token": "wrong"}).status_code == 401
        entered = client.get(f"/%2fevil.example/?token={TOKEN}&page=2")
        assert entered.status_code == 303 and entered.headers["location"] == "/evil.example/?page=2"
        cookie = entered.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=lax" in cookie and TOKEN not in cookie
        assert client.get("/study/default").status_code == 200  # with the cookie
        client.cookies.clear()
        assert client.post("/enter", data={"token": TOKEN}).status_code == 303
        assert client.get("/api/study").status_code == 200


def test_without_the_token_the_secret_of_the_forms_is_not_revealed(path: str) -> None:
    rules = AccessRules(token=TOKEN, port=8470)
    with client_for(path, rules) as client:
        for answer in (client.get("/enter"), client.post("/enter", data={"token": "wrong"})):
            assert answer.status_code == 401 and 'name="token"' in answer.text and rules.form_secret not in answer.text


def test_a_very_long_number_is_refused_at_once(local: Any, unchanged: None) -> None:
    form = Page(local.get("/study/default").text).form("/observe")
    answer = local.post(form.action, data={**form.fields, "own-a": "1" * 500_000 + "x"}, headers={"origin": BASE})
    assert answer.status_code == 400 and "too long" in answer.text  # it once took hours


def test_a_server_for_other_machines_has_a_token() -> None:
    assert AccessRules.of("127.0.0.1", 1, None).token is None
    assert len(AccessRules.of("0.0.0.0", 1, None).token or "") >= 32
    with pytest.raises(ValueError, match="at least 12"):
        AccessRules.of("0.0.0.0", 1, "short")
    everywhere = AccessRules.of("0.0.0.0", 1, None)
    assert everywhere.is_own_host("192.168.1.7:80") and not everywhere.is_own_host("evil.example")


# A proxy in front


def test_behind_a_proxy_visitors_need_the_token_and_the_name_of_the_proxy_is_ours(path: str) -> None:
    rules = AccessRules.of("127.0.0.1", 8470, None, "https://Lab.example.org/")
    assert rules.public_url == "https://lab.example.org" and len(rules.token or "") >= 32
    assert rules.is_own_host("lab.example.org") and rules.is_own_host("127.0.0.1:8470")
    assert not rules.is_own_host("lab.example.org.evil.example")
    assert server.url_of("127.0.0.1", 8470, "x", rules.public_url) == "https://lab.example.org/?token=x"
    through = {"host": "lab.example.org", "authorization": f"Bearer {rules.token}"}
    with client_for(path, rules) as client:
        assert client.get("/api/study", headers={"host": "lab.example.org"}).status_code == 401
        assert client.get("/api/study", headers=through).status_code == 200
        assert sent(client, "/api/ask", **through, origin="https://evil.example").status_code == 403
        assert sent(client, "/api/ask", **through, origin="https://lab.example.org").status_code == 200
        entered = client.get(f"/?token={rules.token}", headers={"host": "lab.example.org"}, follow_redirects=False)
        assert entered.status_code == 303 and "secure" in entered.headers["set-cookie"].lower()


@pytest.mark.parametrize(
    "url", ["lab.example.org", "https://", "ftp://lab.example.org", "https://lab.example.org/gpmi", ""]
)
def test_a_public_url_that_is_no_bare_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="without a path"):
        AccessRules.of("127.0.0.1", 1, None, url)


def test_a_proxy_is_told_to_pass_events_on_at_once(path: str) -> None:
    with running_server(path) as url, httpx2.stream("GET", f"{url}/api/events", timeout=LIMIT) as events:
        assert events.headers["x-accel-buffering"] == "no"


# Large and broken bodies


@pytest.mark.parametrize("post", POSTS)
def test_a_large_body_is_refused(local: Any, unchanged: None, post: str) -> None:
    kind = "application/json" if post.startswith("/api/") else FORM
    answer = local.post(post, content=b"x" * (MAX_BODY + 1), headers={"content-type": kind})
    assert answer.status_code == 413


@pytest.mark.parametrize("post", POSTS)
def test_a_large_body_without_a_length_is_refused(local: Any, unchanged: None, post: str) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(20):
            yield b"y-1=1&" * (MAX_BODY // 100)

    kind = "application/json" if post.startswith("/api/") else FORM
    assert local.post(post, content=endless(), headers={"content-type": kind}).status_code == 413


@pytest.mark.parametrize("size", ["-1", "many", "99999999999999999999"])
def test_an_invalid_length_is_refused(local: Any, unchanged: None, size: str) -> None:
    answer = local.post(
        "/api/tell", content=b"{}", headers={"content-length": size, "content-type": "application/json"}
    )
    assert answer.status_code == 413


BROKEN = {
    "no-boundary": ("multipart/form-data", b"--x\r\n\r\n"),
    "cut-off": ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="csrf"\r\n\r\nab'),
    "no-name": ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data\r\n\r\nab\r\n--x--\r\n"),
    "no-header": ("multipart/form-data; boundary=x", b"--x\r\n\r\nab\r\n--x--\r\n"),
    "other-boundary": ("multipart/form-data; boundary=x", b"--y\r\n\r\nab\r\n--y--\r\n"),
    "charset": (
        "multipart/form-data; boundary=x; charset=nonsense",
        b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n--x--\r\n',
    ),
    "binary": (FORM, bytes(range(256))),
    "many-fields": (FORM, b"&".join(b"y-%d=1" % i for i in range(20_000))),
}


@pytest.mark.parametrize("post", ["/new/table", "/study/default/results"])
@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_form_is_refused(local: Any, unchanged: None, post: str, kind: str) -> None:
    header, body = BROKEN[kind]
    assert local.post(post, content=body, headers={"content-type": header}).status_code in (400, 403, 415)


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"1",
        b'"x"',
        b"NaN",
        b'{"number": 1, "y": NaN}',
        b'{"number": 1, "y": 1e999}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_broken_json_is_refused(local: Any, unchanged: None, body: bytes) -> None:
    answer = local.post("/api/tell", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400 and answer.json()["error"]


# Path traversal


@pytest.mark.parametrize(
    "address",
    [
        "/static/../app.py",
        "/static/..%2f..%2fapp.py",
        "/static/%2e%2e/%2e%2e/etc/passwd",
        "/static//etc/passwd",
        "/static/lab.css%00.py",
        "/study/..%2flab.db",
        "/study/%2e%2e/trials",
        "/study/default%00",
        "/study/default/trial/999999999999999999999",
        "/study/default/trial/-1",
        "/api/../static/lab.css/x",
        "/%ff%fe",
    ],
)
def test_no_address_leads_to_another_file(local: Any, unchanged: None, address: str) -> None:
    answer = local.get(address)
    assert answer.status_code == 404
    assert "root:" not in answer.text and "import " not in answer.text


@pytest.mark.parametrize("number", ["9" * 4301, "٣", "1.0", "+1", " 1"])
def test_a_trial_number_that_our_pages_do_not_write_is_not_found(local: Any, unchanged: None, number: str) -> None:
    """Python refuses to read more than 4,300 digits, which was once an error of the server."""
    address = f"/study/default/trial/{number}"
    assert local.get(address).status_code == 404
    form = Page(local.get("/study/default/trial/1").text).forms[0]
    assert local.post(address, data=form.fields, headers={"origin": BASE}).status_code == 404


# Scripts in names, notes and values


class Elements(HTMLParser):
    """The scripts and event handlers of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script" and not dict(attrs).get("src", "").startswith("/static/"):  # type: ignore[union-attr]
            self.found.append(tag)
        links = ("href", "src", "action", "formaction")
        bad = [name for name, value in attrs if name in links and "script:" in (value or "")]
        self.found += bad + [name for name, _ in attrs if name.startswith("on")]
        self.found += [tag] if tag in ("iframe", "object", "embed", "base") else []


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A study whose names, options, units and reasons are scripts."""
    path = str(tmp_path_factory.mktemp("poison") / f"{EVIL.replace('/', '')}.db")
    evil = '"><img src=x onerror=alert(1)>'
    space = {EVIL: gpmi.Real(0.0, 1.0, unit=evil[:20]), evil: [EVIL, "javascript:alert(1)"]}
    with gpmi.study(path, EVIL, space=space, seed=0) as study:
        for y in (1.0, 2.0, 3.0):
            study.tell(study.ask(), y)
        study.fail(study.ask(), why=EVIL + evil)
        study.ask(2, lease=float("inf"))
    yield from client_of(path, None)


@pytest.mark.parametrize("page", ["", "/trials", "/trial/0", "/trial/3", "/report"])
def test_user_text_never_becomes_markup(poisoned: Any, page: str) -> None:
    slug = poisoned.get("/api/studies").json()["studies"][0]["study"]
    answer = poisoned.get(f"/study/{slug}{page}")
    assert answer.status_code == 200
    found = Elements()
    found.feed(answer.text)
    assert found.found == ([] if page != "/report" else ["script"])  # the report has its own script
    assert "alert" in answer.text  # it is shown, as text
    assert "'unsafe" not in answer.headers["content-security-policy"]


@pytest.mark.parametrize("address", PAGES)
def test_every_answer_has_the_security_headers(local: Any, address: str) -> None:
    headers = local.get(address).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "same-origin"


# Bodies and connections


@pytest.mark.parametrize("charset", ["unicode_escape", "utf-7", "utf-16", "idna", "rot13", "no-such-codec", "latin-1"])
def test_a_form_in_another_encoding_is_refused(local: Any, unchanged: None, charset: str) -> None:
    part = b'--b\r\ncontent-disposition: form-data; name="csrf"\r\n\r\n\\ud800\r\n--b--\r\n'
    headers = {"content-type": f"multipart/form-data; boundary=b; charset={charset}", "origin": BASE}
    answer = local.post("/study/default/results", content=part, headers=headers)
    assert answer.status_code == 415 and "UTF-8" in answer.text


@pytest.mark.parametrize("row", ["٣", "03", "-1", "1e1", "²"])
def test_a_row_with_a_number_that_our_pages_do_not_write_is_ignored(local: Any, unchanged: None, row: str) -> None:
    answer = send(local, local.get("/new"), "/new/parameters", **{f"name__{row}": "a", "study": "digits"})
    assert answer.status_code == 400 and "There is no parameter" in answer.text


@pytest.mark.parametrize("path_", ["/study/default/results", "/api/tell", "/enter"])
def test_a_client_that_leaves_within_a_body_is_no_error(path: str, unchanged: None, path_: str) -> None:
    catalogue = Catalogue(path)
    app = application(catalogue, AccessRules())
    kind = "application/json" if path_.startswith("/api/") else FORM
    headers = [(b"host", b"127.0.0.1"), (b"content-type", kind.encode()), (b"content-length", b"100")]
    scope = {"type": "http", "method": "POST", "path": path_, "raw_path": path_.encode(), "query_string": b""}
    scope |= {"headers": headers, "http_version": "1.1", "scheme": "http", "server": ("127.0.0.1", 1), "root_path": ""}
    messages = [{"type": "http.request", "body": b"n=", "more_body": True}, {"type": "http.disconnect"}]

    async def receive() -> Any:
        return messages.pop(0)

    async def ignore(message: Any) -> None:
        pass

    asyncio.run(app(scope, receive, ignore))  # raises nothing
    catalogue.close()
    assert not messages


POST = b"POST /api/tell HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"
REFUSED = POST.replace(b"127.0.0.1", b"evil.example")  # answered before its body is there


@pytest.mark.parametrize("drip", [False, True])
@pytest.mark.parametrize(
    "begin", [b"", b"GET / HTTP/1.1\r\nhost:", POST, REFUSED], ids=["none", "head", "body", "refused"]
)
def test_a_request_that_never_ends_is_closed(
    path: str, monkeypatch: pytest.MonkeyPatch, begin: bytes, drip: bool
) -> None:
    monkeypatch.setattr(server, "HEAD_TIMEOUT", 0.5)
    monkeypatch.setattr(server, "BODY_TIMEOUT", 0.5)
    with running_server(path) as url:
        port = int(url.rpartition(":")[2])
        with closing(socket.create_connection(("127.0.0.1", port))) as half:
            half.sendall(begin)
            half.settimeout(0.1 if drip else 120.0)
            limit = time.monotonic() + 120.0
            while True:
                assert time.monotonic() < limit, "the connection stays open"
                try:
                    if drip:
                        half.sendall(b"x")
                    if half.recv(4096) == b"":
                        break
                except TimeoutError:
                    continue
                except OSError:
                    break


def test_the_number_of_connections_is_limited(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 3)
    get = b"GET /api/study HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
    with running_server(path) as url:
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        open_ = [socket.create_connection(address, timeout=120.0) for _ in range(3)]
        open_[0].sendall(get)  # accepted in order, so all three are connected when it is answered
        with closing(socket.create_connection(address, timeout=120.0)) as one:
            one.sendall(get)
            assert b" 503 " in one.recv(4096)
        more = [socket.create_connection(address, timeout=120.0) for _ in range(9)]
        with suppress(ConnectionError):
            assert more[-1].recv(1) == b""  # closed without a word
        for each in [*open_, *more]:
            each.close()
        answer = b""
        limit = time.monotonic() + 120.0
        while b" 200 " not in answer:
            assert time.monotonic() < limit
            with closing(socket.create_connection(address, timeout=120.0)) as one:
                one.sendall(get)
                answer = one.recv(4096)
