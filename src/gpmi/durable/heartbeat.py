"""A thread that renews the leases of a worker as long as its process lives."""

from __future__ import annotations

import logging
import math
import os
import threading
from typing import Any

from gpmi.durable.database import Database
from gpmi.durable.errors import StudyError

logger = logging.getLogger("gpmi")


class Heartbeat:
    """The trials that this worker works on. They are renewed three times in the time of a lease."""

    def __init__(self, url: Any, study: int, lease: float) -> None:
        self._url, self._study, self._lease = url, study, lease
        self._held: dict[int, int] = {}  # trial -> the entry with which it was handed out
        self._lock = threading.Lock()
        self._process = 0
        self._end = threading.Event()

    def add(self, number: int, granted: int) -> None:
        """Renew this one from now on."""
        with self._lock:
            if self._process != os.getpid():  # a child of fork has none of the threads of its parent, nor its trials
                self._held, self._process, self._end = {}, os.getpid(), threading.Event()
                if not math.isinf(self._lease):
                    threading.Thread(target=self._beat, args=(self._end,), name="gpmi heartbeat", daemon=True).start()
            self._held[number] = granted

    def remove(self, number: int) -> None:
        with self._lock:
            self._held.pop(number, None)

    def stop(self) -> dict[int, int]:
        """End the thread; what it renewed until now."""
        with self._lock:
            held = self._held if self._process == os.getpid() else {}
            self._held, self._process = {}, 0
            self._end.set()
            return held

    def _beat(self, end: threading.Event) -> None:
        database = Database(self._url)
        while not end.wait(self._lease / 3.0):
            with self._lock:
                held = dict(self._held)
            if held:
                try:
                    with database.writing() as transaction:
                        until = transaction.now() + self._lease
                        for number, granted in held.items():
                            transaction.renew(self._study, number, granted, until)
                except StudyError as error:  # the next beat may succeed; if none does, the trials are offered to others
                    logger.warning("the leases of this worker could not be renewed: %s", error)
        database.close()
