"""Studies, servers and clients for the tests of `gpmi serve`."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import gpmi

starlette = pytest.importorskip("starlette.testclient")

from gpmi.serve import Guard, Shelf, application  # noqa: E402

BASE = "http://127.0.0.1:8470"
SPACE = {"temperature": gpmi.Real(20.0, 90.0, unit="°C"), "catalyst": ["A", "B"]}


def made(folder: Path, name: str = "default", space: Any = None, **options: Any) -> str:
    """The path of a new study."""
    path = str(folder / "lab.db")
    gpmi.study(path, name, space=SPACE if space is None else space, seed=0, **options).close()
    return path


@contextmanager
def browsing(address: str, guard: Guard | None = None) -> Iterator[Any]:
    """A client of a server of the studies there."""
    shelf = Shelf(address)
    with starlette.TestClient(application(shelf, guard or Guard()), base_url=BASE, follow_redirects=False) as client:
        yield client
    shelf.close()


@contextmanager
def serving(address: str, token: str | None = None) -> Iterator[str]:
    """The address of a server in a thread."""
    import uvicorn

    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    shelf, servers = Shelf(address), list[uvicorn.Server]()
    app = application(shelf, Guard("127.0.0.1", token, port), ending=lambda: servers[0].should_exit)
    servers.append(uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none")))
    thread = threading.Thread(target=servers[0].run, args=([sock],))
    thread.start()
    try:
        while not servers[0].started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{port}"
    finally:
        servers[0].should_exit = True
        thread.join(10)
        sock.close()
        shelf.close()
        assert not thread.is_alive()


# What a browser without scripts makes of a page


@dataclass
class Form:
    """A form with what stands in its fields."""

    action: str
    fields: dict[str, str] = field(default_factory=dict)
    buttons: list[tuple[str, str]] = field(default_factory=list)


class Page(HTMLParser):
    """The forms and the words of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.words = ""
        self._select: str | None = None
        self._area: str | None = None
        self._inside = False
        self.feed(html)

    def form(self, ending: str) -> Form:
        """The form that is sent to an address with this ending."""
        return next(form for form in self.forms if form.action.endswith(ending))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(Form(given["action"]))
            self._inside = True
        if not self._inside or "name" not in given:
            if tag == "option" and self._select and ("selected" in given or self._select not in self.forms[-1].fields):
                self.forms[-1].fields[self._select] = given["value"]
            return
        form = self.forms[-1]
        if tag == "button":
            form.buttons.append((given["name"], given.get("value", "")))
        elif tag == "select":
            self._select = given["name"]
        elif tag == "textarea":
            self._area = given["name"]
            form.fields[self._area] = ""
        elif given.get("type") != "checkbox" or "checked" in given:
            form.fields[given["name"]] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._inside = False
        elif tag == "select":
            self._select = None
        elif tag == "textarea":
            self._area = None

    def handle_data(self, data: str) -> None:
        self.words += data
        if self._area is not None:
            self.forms[-1].fields[self._area] += data


def send(client: Any, page: Any, ending: str, files: Any = None, **typed: str) -> Any:
    """Fill in a form of a page and send it; names with a hyphen are written with two underscores."""
    form = Page(page.text).form(ending)
    named = {name.replace("__", "-"): value for name, value in typed.items()}
    data = {**form.fields, **named}
    return client.post(form.action, data=data, files=files, headers={"origin": BASE})


def followed(client: Any, answer: Any) -> Any:
    """The page that a form leads to."""
    assert answer.status_code == 303, Page(answer.text).words
    return client.get(answer.headers["location"])
