"""Studies, servers and clients for the tests of `gpmi serve`."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from waiting import LIMIT, wait_until

import gpmi

starlette = pytest.importorskip("starlette.testclient")

from gpmi.serve import AccessRules, Catalogue, application  # noqa: E402

BASE = "http://127.0.0.1:8470"
SPACE = {"temperature": gpmi.Real(20.0, 90.0, unit="°C"), "catalyst": ["A", "B"]}


def create_study(folder: Path, name: str = "default", space: Any = None, **options: Any) -> str:
    """Create a study and return its path."""
    path = str(folder / "lab.db")
    gpmi.study(path, name, space=SPACE if space is None else space, seed=0, **options).close()
    return path


@contextmanager
def client_for(address: str, rules: AccessRules | None = None) -> Iterator[Any]:
    """Yield a test client of the application, for the studies at an address."""
    catalogue = Catalogue(address)
    app = application(catalogue, rules or AccessRules())
    with starlette.TestClient(app, base_url=BASE, follow_redirects=False) as client:
        yield client
    catalogue.close()


@contextmanager
def running_server(address: str, token: str | None = None) -> Iterator[str]:
    """Run a server in a thread and yield its URL."""
    import uvicorn

    from gpmi.serve.server import config_of

    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    catalogue, servers = Catalogue(address), list[uvicorn.Server]()
    app = application(catalogue, AccessRules("127.0.0.1", token, port), stopping=lambda: servers[0].should_exit)
    servers.append(uvicorn.Server(config_of(app)))
    thread = threading.Thread(target=servers[0].run, args=([sock],))
    thread.start()
    try:
        wait_until(lambda: servers[0].started)
        yield f"http://127.0.0.1:{port}"
    finally:
        servers[0].should_exit = True
        thread.join(LIMIT)
        sock.close()
        catalogue.close()
        assert not thread.is_alive()


# A browser without scripts


@dataclass
class Form:
    """A form with the values of its fields."""

    action: str
    fields: dict[str, str] = field(default_factory=dict)
    buttons: list[tuple[str, str]] = field(default_factory=list)


class Page(HTMLParser):
    """The forms and the text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.text = ""
        self._select: str | None = None
        self._area: str | None = None
        self._inside = False
        self.feed(html)

    def form(self, ending: str) -> Form:
        """Return the form whose address ends like this."""
        return next(form for form in self.forms if form.action.endswith(ending))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(Form(attributes["action"]))
            self._inside = True
        if not self._inside or "name" not in attributes:
            if tag == "option" and self._select:
                fields = self.forms[-1].fields
                if "selected" in attributes or self._select not in fields:
                    fields[self._select] = attributes["value"]
            return
        form = self.forms[-1]
        if tag == "button":
            form.buttons.append((attributes["name"], attributes.get("value", "")))
        elif tag == "select":
            self._select = attributes["name"]
        elif tag == "textarea":
            self._area = attributes["name"]
            form.fields[self._area] = ""
        elif attributes.get("type") != "checkbox" or "checked" in attributes:
            form.fields[attributes["name"]] = attributes.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._inside = False
        elif tag == "select":
            self._select = None
        elif tag == "textarea":
            self._area = None

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._area is not None:
            self.forms[-1].fields[self._area] += data


def send(client: Any, page: Any, ending: str, files: Any = None, **typed: str) -> Any:
    """Fill in a form of a page and send it. Write a hyphen in a name as two underscores."""
    form = Page(page.text).form(ending)
    named = {name.replace("__", "-"): value for name, value in typed.items()}
    data = {**form.fields, **named}
    return client.post(form.action, data=data, files=files, headers={"origin": BASE})


def follow(client: Any, answer: Any) -> Any:
    """Return the page that a form leads to."""
    assert answer.status_code == 303, text_of(answer)
    return client.get(answer.headers["location"])


def text_of(answer: Any) -> str:
    """Return the text of a page, without its markup."""
    return Page(answer.text).text
