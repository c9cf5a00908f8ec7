"""What all requests of a server share: the studies, the access rules, live updates, and messages between two pages."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakValueDictionary

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from gpmi.serve.catalogue import Catalogue
from gpmi.serve.live_updates import LiveUpdates
from gpmi.serve.security import AccessRules
from gpmi.serve.session import Session

CACHE_SIZE = 1000  # messages, and forms that were sent; our choice
UPLOAD_CACHE_SIZE = 20  # uploaded tables whose study is not created yet; our choice


class RecentValues:
    """A cache of values under keys that nobody can guess. The oldest values are dropped."""

    def __init__(self, size: int = CACHE_SIZE) -> None:
        self._size, self._values = size, OrderedDict[str, Any]()

    def add(self, value: Any) -> str:
        """Store a value and return its new key."""
        key = secrets.token_urlsafe(12)
        self.put(key, value)
        return key

    def put(self, key: str, value: Any) -> None:
        self._values[key] = value
        while len(self._values) > self._size:
            self._values.popitem(last=False)

    def get(self, key: str | None) -> Any:
        return None if key is None else self._values.get(key)


class AppState:
    """The shared state of one server."""

    def __init__(self, catalogue: Catalogue, access: AccessRules, stopping: Callable[[], bool] = lambda: False) -> None:
        self.catalogue, self.access, self.stopping = catalogue, access, stopping
        self.messages = RecentValues()  # shown once on the next page
        self.redirects = RecentValues()  # by idempotency key: a duplicate submission gets the first one's redirect
        self.choices = RecentValues()  # points that were chosen on the page of a study
        self.uploads = RecentValues(UPLOAD_CACHE_SIZE)  # tables of candidates
        self._form_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._live: dict[str, LiveUpdates] = {}

    @asynccontextmanager
    async def form_lock(self, once: str) -> AsyncIterator[None]:
        """Handle forms with the same idempotency key one after the other, so that the second finds the redirect."""
        new = asyncio.Lock()
        lock = self._form_locks.setdefault(once, new) if once else new
        async with lock:
            yield

    async def session(self, slug: str) -> Session:
        """Return the session of a study. Raise a LookupError if there is no such study."""
        session = await run_in_threadpool(self.catalogue.session, slug)
        if session is None:
            raise LookupError(f"There is no study {slug!r} here")
        return session

    async def session_or_only(self, slug: str | None) -> Session:
        """Return the session of a study; without a slug, that of the only study."""
        if slug is not None:
            return await self.session(slug)
        studies = await run_in_threadpool(self.catalogue.studies)
        if len(studies) == 1:
            return await self.session(studies[0].slug)
        if not studies:
            raise LookupError("There is no study yet; create one")
        slugs = ", ".join(study.slug for study in studies[:20])
        raise LookupError(f"There are {len(studies)} studies; name one with ?study=..., for example: {slugs}")

    def live(self, session: Session) -> LiveUpdates:
        if session.slug not in self._live:
            self._live[session.slug] = LiveUpdates(session, self.stopping)
        return self._live[session.slug]


def state_of(request: Request) -> AppState:
    """Return the shared state of the server that received a request."""
    state: AppState = request.app.state.app_state
    return state
