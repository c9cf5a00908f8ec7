"""A thread that renews the leases of a worker while its process lives."""

from __future__ import annotations

import math
import os
import threading
import time
from typing import Any, NamedTuple

from gpmi._support.logger import logger
from gpmi.storage.database import Database
from gpmi.storage.errors import StudyError

RENEWALS = 3.0  # of each lease, before it ends: two of them may be late or fail; our choice


class HeldLease(NamedTuple):
    """The lease of a trial that this worker evaluates."""

    granted: int  # the entry that handed it out
    lease: float  # seconds


class Heartbeat:
    """The leases of this worker. All leases are renewed RENEWALS times in the shortest one."""

    def __init__(self, url: Any, study: int) -> None:
        self._url, self._study = url, study
        self._held: dict[int, HeldLease] = {}
        self._lock = threading.Lock()
        self._process = 0
        self._news = threading.Event()  # wakes the thread: a shorter lease, or the end

    def add(self, number: int, granted: int, lease: float) -> None:
        """Renew a lease from now on, each time by `lease` seconds; one without end needs no renewal."""
        if math.isinf(lease):
            return
        with self._lock:
            if self._process != os.getpid():  # a forked child has neither the threads nor the trials of its parent
                self._held, self._process, self._news = {}, os.getpid(), threading.Event()
                threading.Thread(target=self._beat, args=(self._news,), name="gpmi heartbeat", daemon=True).start()
            self._held[number] = HeldLease(granted, lease)
            self._news.set()

    def remove(self, number: int) -> None:
        with self._lock:
            self._held.pop(number, None)

    def stop(self) -> dict[int, int]:
        """End the thread and return the leases that it renewed, with the entries that handed out the trials."""
        with self._lock:
            held = self._held if self._process == os.getpid() else {}
            self._held, self._process = {}, 0
            self._news.set()
            return {number: lease.granted for number, lease in held.items()}

    def _beat(self, news: threading.Event) -> None:
        """Renew all leases, again and again, until `stop`."""
        database, last = Database(self._url), time.monotonic()
        while True:
            with self._lock:
                if self._news is not news or not self._process:
                    break
                news.clear()
                shortest = min((held.lease for held in self._held.values()), default=math.inf)
            left = last + shortest / RENEWALS - time.monotonic()
            if left > 0.0 and news.wait(None if math.isinf(left) else left):
                continue  # there may be a shorter lease now
            with self._lock:
                held = dict(self._held)
            last = time.monotonic()
            if held:
                self._renew(database, held)
        database.close()

    def _renew(self, database: Database, held: dict[int, HeldLease]) -> None:
        try:
            with database.writing() as transaction:
                now = transaction.now()
                for number, lease in held.items():
                    transaction.renew(self._study, number, lease.granted, now + lease.lease)
        except StudyError as error:  # the next one may succeed; if none does, others get the trials
            logger.warning("the leases of this worker could not be renewed: %s", error)
