"""The server process: it listens, prints its address, and closes everything at Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import webbrowser
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from gpmi.serve.app import application
from gpmi.serve.catalogue import Catalogue
from gpmi.serve.security import ANY_HOST, LOCAL_HOSTS, AccessRules

DEFAULT_PORT = 8470  # tried first if no port is given; then any free one
SHUTDOWN_TIMEOUT = 2  # seconds for requests in progress when the server shuts down; our choice
HEAD_TIMEOUT = 30.0  # seconds for the head of a request, from the connection or its first byte; our choice
BODY_TIMEOUT = 120.0  # seconds for the body: a table of 20 MB at 1.4 Mbit/s; our choice
MAX_CONNECTIONS = 300  # more are told to come back (503); twice as many are closed. A browser has six; our choice


def listen(host: str, port: int | None) -> socket.socket:
    """Open a listening socket. Without a port it is DEFAULT_PORT, or any free one if that is taken."""
    try:
        family = socket.getaddrinfo(host or None, port or 0, type=socket.SOCK_STREAM)[0][0]
    except socket.gaierror as error:
        raise ValueError(
            f"host is {host!r}, which has no known address ({error.strerror}); give another host"
        ) from None
    for candidate in [DEFAULT_PORT, 0] if port is None else [port]:
        # asyncio sets TCP_NODELAY only if the protocol is named. Without it an answer may wait 40 ms for an ACK.
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, candidate))
            sock.listen(128)
            return sock
        except OSError as error:
            sock.close()
            if candidate != DEFAULT_PORT or port is not None:
                raise ValueError(f"{host}:{candidate} is not free ({error.strerror}); give another --port") from None
    raise AssertionError  # port 0 is always free


def url_of(host: str, port: int, token: str | None, public_url: str | None = None) -> str:
    """Return the URL to open in a browser."""
    query = f"?token={token}" if token else ""
    if public_url is not None:
        return f"{public_url}/{query}"
    name = "127.0.0.1" if host in LOCAL_HOSTS else socket.gethostname() if host in ANY_HOST else host
    name = f"[{name}]" if ":" in name else name
    return f"http://{name}:{port}/{query}"


class TimedProtocol(H11Protocol):
    """uvicorn's protocol, with a deadline for each request and a limit of open connections.

    uvicorn closes idle connections, but would wait for ever for the rest of a request that has begun.
    """

    _receiving: Any = None  # the state of h11 that the running deadline is about
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > 2 * MAX_CONNECTIONS:
            transport.abort()
        else:
            self._set_deadline()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._set_deadline()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._deadline is not None:
            self._deadline.cancel()

    def _set_deadline(self) -> None:
        """Start a deadline when the head or the body of a request begins. Data that follows does not move it."""
        state = self.conn.their_state
        if state is self._receiving and self._deadline is not None:
            return
        if self._deadline is not None:
            self._deadline.cancel()
        self._receiving = state
        seconds = {h11.IDLE: HEAD_TIMEOUT, h11.SEND_BODY: BODY_TIMEOUT}.get(state)
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)


class Server(uvicorn.Server):
    """A uvicorn server that calls `on_ready` once it accepts connections."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], Any]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()


def config_of(app: ASGIApp) -> uvicorn.Config:
    """Return uvicorn's settings for the application."""
    return uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=SHUTDOWN_TIMEOUT,
        lifespan="off", h11_max_incomplete_event_size=64 * 1024, ws="none", http=TimedProtocol,
        limit_concurrency=MAX_CONNECTIONS,
    )  # fmt: skip


def run(
    address: str,
    *,
    name: str | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
    token: str | None = None,
    public_url: str | None = None,
    browser: bool = False,
    say: Callable[[str], Any] = print,
) -> None:
    """Serve the studies at an address until Ctrl-C. `say` receives the URL once the server is ready."""
    catalogue = Catalogue(address, name)
    studies = catalogue.studies()
    if name is not None and not studies:
        raise ValueError(f"there is no study {name!r} in {catalogue.display_address!r}; leave out --name to see all")
    access = AccessRules.of(host, 0, token, public_url)
    sock = listen(host, port)
    actual_port = int(sock.getsockname()[1])
    access = replace(access, port=actual_port)
    url = url_of(host, actual_port, access.token, access.public_url)
    if len(studies) == 1:
        catalogue.session(studies[0].slug)  # opened now, so that the first page is as fast as the next

    def on_ready() -> None:
        say(url)
        if browser:
            webbrowser.open(url)

    servers: list[Server] = []
    app = application(catalogue, access, stopping=lambda: bool(servers and servers[0].should_exit))
    servers.append(Server(config_of(app), on_ready))
    try:
        with contextlib.suppress(KeyboardInterrupt):
            servers[0].run([sock])
    finally:
        sock.close()
        catalogue.close()
