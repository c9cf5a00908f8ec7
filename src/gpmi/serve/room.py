"""What all requests share: the studies, the guard, who watches, and what was said to people between two pages."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakValueDictionary

from starlette.concurrency import run_in_threadpool

from gpmi.serve.catalogue import Shelf
from gpmi.serve.live import Live
from gpmi.serve.security import Guard
from gpmi.serve.session import Desk

REMEMBERED = 1000  # messages and forms that are remembered: our choice


class Shortly:
    """Values by keys that nobody can guess; the oldest are forgotten."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most, self._values = most, OrderedDict[str, Any]()

    def keep(self, value: Any) -> str:
        key = secrets.token_urlsafe(12)
        self.put(key, value)
        return key

    def put(self, key: str, value: Any) -> None:
        self._values[key] = value
        while len(self._values) > self._most:
            self._values.popitem(last=False)

    def get(self, key: str | None) -> Any:
        return None if key is None else self._values.get(key)


class Room:
    """One for each server."""

    def __init__(self, shelf: Shelf, guard: Guard, ending: Callable[[], bool] = lambda: False) -> None:
        self.shelf, self.guard, self.ending = shelf, guard, ending
        self.messages = Shortly()  # what the next page says
        self.done = Shortly()  # where forms that were sent before have led: a second click changes nothing
        self.tables = Shortly(20)  # uploaded tables until their study is made
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._live: dict[str, Live] = {}

    @asynccontextmanager
    async def turn(self, once: str) -> AsyncIterator[None]:
        """Forms with the same mark are handled one after the other, so that the second finds where the first led."""
        own = asyncio.Lock()
        lock = self._turns.setdefault(once, own) if once else own
        async with lock:
            yield

    async def desk(self, slug: str) -> Desk:
        """The study that is called so; a LookupError if there is none."""
        found = await run_in_threadpool(self.shelf.desk, slug)
        if found is None:
            raise LookupError(f"there is no study {slug!r} here")
        return found

    async def desk_named(self, slug: str | None) -> Desk:
        """The same; without a name it is the only study that there is."""
        if slug is not None:
            return await self.desk(slug)
        books = await run_in_threadpool(self.shelf.books)
        if len(books) == 1:
            return await self.desk(books[0].slug)
        known = ", ".join(book.slug for book in books[:20])
        raise LookupError(
            f"there are {len(books)} studies; name one by ?study=..., of: {known}" if books else "there is no study yet"
        )

    def live(self, desk: Desk) -> Live:
        if desk.slug not in self._live:
            self._live[desk.slug] = Live(desk, self.ending)
        return self._live[desk.slug]
