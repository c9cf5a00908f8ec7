"""The server process: listens, says where, and ends at Ctrl-C with everything closed."""

from __future__ import annotations

import contextlib
import socket
import webbrowser
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import uvicorn

from gpmi.serve.app import application
from gpmi.serve.catalogue import Shelf
from gpmi.serve.security import ANYWHERE, LOCAL, Guard

PORT = 8470  # the first that is tried if none is given; any that is free after that
ENDING = 2  # seconds for requests that are being answered when the server is to end; our choice


def listening(host: str, port: int | None) -> socket.socket:
    """A socket that listens; on PORT, or another one that is free, if none is given."""
    try:
        family = socket.getaddrinfo(host or None, port or 0, type=socket.SOCK_STREAM)[0][0]
    except socket.gaierror as error:
        raise ValueError(f"host is {host!r}, which no address is known for ({error.strerror}); give another") from None
    for one in [PORT, 0] if port is None else [port]:
        # asyncio sends at once only where the protocol is named; elsewhere an answer may wait 40 ms for a receipt.
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, one))
            sock.listen(128)
            return sock
        except OSError as error:
            sock.close()
            if one != PORT or port is not None:
                raise ValueError(f"{host}:{one} is not free ({error.strerror}); give another --port") from None
    raise AssertionError  # port 0 always is free


def address_of(host: str, port: int, token: str | None) -> str:
    """What to open in a browser."""
    named = "127.0.0.1" if host in LOCAL else socket.gethostname() if host in ANYWHERE else host
    shown = f"[{named}]" if ":" in named else named
    return f"http://{shown}:{port}/" + (f"?token={token}" if token else "")


class Server(uvicorn.Server):
    """A uvicorn that reports when it is ready."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], Any]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()


def run(
    address: str,
    *,
    name: str | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
    token: str | None = None,
    browser: bool = False,
    say: Callable[[str], Any] = print,
) -> None:
    """Serve the studies at an address until Ctrl-C."""
    shelf = Shelf(address, name)
    books = shelf.books()
    if name is not None and not books:
        raise ValueError(f"there is no study {name!r} in {shelf.shown!r}; leave out --name to see what there is")
    guard = Guard.of(host, 0, token)
    sock = listening(host, port)
    actual = int(sock.getsockname()[1])
    guard = replace(guard, port=actual)
    url = address_of(host, actual, guard.token)
    if len(books) == 1:
        shelf.desk(books[0].slug)  # so that the first page is as fast as the next

    def ready() -> None:
        say(url)
        if browser:
            webbrowser.open(url)

    servers: list[Server] = []
    app = application(shelf, guard, ending=lambda: bool(servers and servers[0].should_exit))
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=ENDING,
        lifespan="off", h11_max_incomplete_event_size=64 * 1024, ws="none",
    )  # fmt: skip
    servers.append(Server(config, ready))
    try:
        with contextlib.suppress(KeyboardInterrupt):
            servers[0].run([sock])
    finally:
        sock.close()
        shelf.close()
