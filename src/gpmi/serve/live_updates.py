"""Changes of a study as they happen, as server-sent events, and the summary and pictures computed in between.

One task for each study that somebody watches polls the log twice a second. The summary and the pictures are computed
when there is something new, one at a time. They are cached with the number of the log entry they belong to.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from anyio import CapacityLimiter, to_thread

from gpmi.analysis.ledger import unsaid
from gpmi.serve.model_worker import StudySummary
from gpmi.serve.session import Session
from gpmi.storage import StudyError
from gpmi.views.html import Section

POLL_INTERVAL = 0.5  # polling interval of the log, in seconds; our choice
KEEPALIVE = 15.0  # seconds of silence after which a comment is sent, so that no proxy closes the connection
MAX_WATCHERS = 100  # of one study: each is an open connection; our choice
logger = logging.getLogger("gpmi")


class TooManyWatchers(Exception):
    """Nobody else can watch this study now."""

    def __init__(self) -> None:
        super().__init__("Too many pages watch this study; close one and try again")


class LiveUpdates:
    """The changes of one study, sent to everybody who watches it."""

    def __init__(self, session: Session, stopping: Callable[[], bool]) -> None:
        self.session, self.stopping = session, stopping
        # Each with the number of the last log entry when its computation began.
        self.summary: tuple[int, StudySummary] | None = None
        self.pictures: tuple[int, list[Section]] | None = None
        self.problem: str | None = None  # why the summary could not be computed
        self._watchers: set[asyncio.Event] = set()
        self._seq = -1
        self._polling: asyncio.Task[None] | None = None
        self._computing: asyncio.Task[None] | None = None
        self._rest_until = 0.0
        self._poll_limiter = CapacityLimiter(1)  # its own thread, so that requests waiting for a model do not delay it

    @property
    def state(self) -> dict[str, Any]:
        """The numbers that a page compares with those of what it shows."""
        return {
            "seq": self._seq,
            "known": -1 if self.summary is None else self.summary[0],
            "pictures": -1 if self.pictures is None else self.pictures[0],
        }

    def note_seq(self, seq: int) -> None:
        """Note that the log has reached this number, and notify the watchers if that is new."""
        if seq > self._seq:
            self._seq = seq
            self._notify()

    def up_to_date(self) -> bool:
        """Start computing summary and pictures if they are outdated; return whether the summary is current.

        It costs the caller nothing. Each computation is followed by a pause as long as itself, so that programs on the
        same machine keep at least half of it.
        """
        if self.pictures is None or self.pictures[0] < self._seq:
            idle = self._computing is None or self._computing.done()
            if idle and time.monotonic() >= self._rest_until:
                self._computing = asyncio.create_task(self._compute())
        return self.summary is not None and self.summary[0] >= self._seq

    async def _compute(self) -> None:
        begin = time.monotonic()
        await self._compute_outdated()
        now = time.monotonic()
        self._rest_until = now + (now - begin)

    async def _compute_outdated(self) -> None:
        try:
            seq = await to_thread.run_sync(self.session.seq, limiter=self._poll_limiter)
        except StudyError as error:  # the next poll tries again
            logger.warning("study %s: %s", self.session.name, error)
            return
        self.note_seq(seq)
        for name in ("summary", "pictures"):
            cached = getattr(self, name)
            if self.session.closed or (cached is not None and cached[0] >= seq):
                continue
            try:
                computed = await to_thread.run_sync(self.session.model_worker.read, name, self.session.reader)
            except Exception as error:  # the measurements must be shown even if the model fails
                logger.warning("study %s: %s could not be computed: %s", self.session.name, name, error)
                self.problem = f"{type(error).__name__}: {error}"
                computed = (
                    StudySummary(0, unsaid("The results could not be worked out: see below.", "see below"))
                    if name == "summary"
                    else []
                )
            else:
                self.problem = None if name == "summary" else self.problem
            setattr(self, name, (seq, computed))
            self._notify()

    async def _poll(self) -> None:
        while self._watchers and not self.stopping():
            try:
                seq = await to_thread.run_sync(self.session.seq, limiter=self._poll_limiter)
            except StudyError as error:
                logger.warning("study %s: %s", self.session.name, error)
            else:
                if seq != self._seq:
                    self._seq = seq
                    self._notify()
                self.up_to_date()
            await asyncio.sleep(POLL_INTERVAL)
        self._notify()

    def check_capacity(self) -> None:
        """Raise `TooManyWatchers` if nobody else can watch."""
        if len(self._watchers) >= MAX_WATCHERS:
            raise TooManyWatchers

    def _notify(self) -> None:
        for watcher in self._watchers:
            watcher.set()

    async def events(self) -> AsyncIterator[str]:
        """Yield the state, now and after each change, as server-sent events: for pages."""
        async for state in self._states():
            yield ": quiet\n\n" if state is None else f"id: {state['seq']}\ndata: {json.dumps(state)}\n\n"

    async def _states(self) -> AsyncIterator[dict[str, Any] | None]:
        changed, sent = asyncio.Event(), None
        self._watchers.add(changed)
        try:
            if self._polling is None or self._polling.done():
                self._polling = asyncio.create_task(self._poll())
            while not self.stopping():
                if self._seq >= 0 and self.state != sent:
                    sent = self.state
                    yield sent
                try:
                    await asyncio.wait_for(changed.wait(), KEEPALIVE)
                except TimeoutError:
                    yield None
                changed.clear()
        finally:
            self._watchers.discard(changed)

    async def entries(self, after: int) -> AsyncIterator[str]:
        """Yield each entry of the log whose number is above `after`, in order, as it arrives: for programs."""
        async for _ in self._states():
            for entry in await to_thread.run_sync(self.session.entries, after):
                after = entry.seq
                payload = {"seq": entry.seq, "kind": entry.kind, "time": entry.time, "said": entry.content}
                yield f"id: {entry.seq}\nevent: {entry.kind}\ndata: {json.dumps(payload)}\n\n"
