"""Changes of a study as they happen: the numbers of its log as server-sent events, and what is computed in between.

One task for each study that somebody watches looks at the log twice a second. What is known is computed when there is
something new, one computation at a time, and kept with the number of the log that it belongs to.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from anyio import CapacityLimiter, to_thread

from gpmi.serve.model_worker import Known
from gpmi.serve.session import Desk
from gpmi.storage.errors import StudyError
from gpmi.views.html import Section

EVERY = 0.5  # seconds between two looks at the log; our choice
QUIET = 15.0  # seconds after which a sign of life is sent, so that nothing in between ends the connection
MOST = 100  # watchers of one study, at most: each is an open connection. Our choice
logger = logging.getLogger("gpmi")


class TooMany(Exception):
    """Nobody more can watch this study now."""


class Live:
    """What happens in one study, told to everybody who watches it."""

    def __init__(self, desk: Desk, ending: Callable[[], bool]) -> None:
        self.desk, self.ending = desk, ending
        self.known: tuple[int, Known] | None = None  # with the number of the log when it began to be computed
        self.pictures: tuple[int, list[Section]] | None = None
        self.trouble: str | None = None  # why what is known could not be computed
        self._watchers: set[asyncio.Event] = set()
        self._seq = -1
        self._looking: asyncio.Task[None] | None = None
        self._computing: asyncio.Task[None] | None = None
        self._rest_until = 0.0
        self._looks = CapacityLimiter(1)  # of its own, so that requests that wait for a suggestion hold up no look

    @property
    def state(self) -> dict[str, Any]:
        """What a page compares with what it shows."""
        return {
            "seq": self._seq,
            "known": -1 if self.known is None else self.known[0],
            "pictures": -1 if self.pictures is None else self.pictures[0],
        }

    def saw(self, seq: int) -> None:
        """Somebody has read the log up to this number; those who watch are told."""
        if seq > self._seq:
            self._seq = seq
            self._notify()

    def up_to_date(self) -> bool:
        """Begin to compute what is known, unless that is being done or there is nothing new; whether it is known.

        It costs the caller nothing. After each computation there is a pause as long as it took, so that those who
        evaluate on the same machine keep at least half of it.
        """
        if self.pictures is None or self.pictures[0] < self._seq:
            idle = self._computing is None or self._computing.done()
            if idle and time.monotonic() >= self._rest_until:
                self._computing = asyncio.create_task(self._compute())
        return self.known is not None and self.known[0] >= self._seq

    async def _compute(self) -> None:
        begin = time.monotonic()
        await self._computed()
        now = time.monotonic()
        self._rest_until = now + (now - begin)

    async def _computed(self) -> None:
        try:
            seq = await to_thread.run_sync(self.desk.seq, limiter=self._looks)
        except StudyError as error:  # the next look begins again
            logger.warning("study %s: %s", self.desk.name, error)
            return
        self.saw(seq)
        for name in ("known", "pictures"):
            have = getattr(self, name)
            if self.desk.closed or (have is not None and have[0] >= seq):
                continue
            try:
                found = await to_thread.run_sync(self.desk.thinker.read, name, self.desk.reader)
            except Exception as error:  # what was measured must be shown, whatever a model says
                logger.warning("study %s: %s could not be computed: %s", self.desk.name, name, error)
                self.trouble = f"{type(error).__name__}: {error}"
                found = Known(0, why="see below") if name == "known" else []
            else:
                self.trouble = None if name == "known" else self.trouble
            setattr(self, name, (seq, found))
            self._notify()

    async def _look(self) -> None:
        while self._watchers and not self.ending():
            try:
                seq = await to_thread.run_sync(self.desk.seq, limiter=self._looks)
            except StudyError as error:
                logger.warning("study %s: %s", self.desk.name, error)
            else:
                if seq != self._seq:
                    self._seq = seq
                    self._notify()
                self.up_to_date()
            await asyncio.sleep(EVERY)
        self._notify()

    def admit(self) -> None:
        """Refuse one watcher more than there may be."""
        if len(self._watchers) >= MOST:
            raise TooMany

    def _notify(self) -> None:
        for watcher in self._watchers:
            watcher.set()

    async def events(self) -> AsyncIterator[str]:
        """The state, now and after each change, as server-sent events."""
        async for state in self._states():
            yield ": quiet\n\n" if state is None else f"id: {state['seq']}\ndata: {json.dumps(state)}\n\n"

    async def _states(self) -> AsyncIterator[dict[str, Any] | None]:
        changed, sent = asyncio.Event(), None
        self._watchers.add(changed)
        try:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
            while not self.ending():
                if self._seq >= 0 and self.state != sent:
                    sent = self.state
                    yield sent
                try:
                    await asyncio.wait_for(changed.wait(), QUIET)
                except TimeoutError:
                    yield None
                changed.clear()
        finally:
            self._watchers.discard(changed)

    async def entries(self, after: int) -> AsyncIterator[str]:
        """Each entry of the log with a number above `after`, in order, as it comes: for programs."""
        async for _ in self._states():
            for entry in await to_thread.run_sync(self.desk.entries, after):
                after = entry.seq
                said = {"seq": entry.seq, "kind": entry.kind, "time": entry.time, "said": entry.content}
                yield f"id: {entry.seq}\nevent: {entry.kind}\ndata: {json.dumps(said)}\n\n"
