"""A queue before the lock of a file: who waits longest comes next.

SQLite lets who waits look again every tenth of a second, and whoever looks first when the lock is free has it: with
many processes some never do. The lock of a second file, which the system hands on in order, decides who looks. It is a
courtesy, not a safeguard: who has waited long enough, or has no such lock, goes to the lock itself.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover  # not on this system
    fcntl = None  # type: ignore[assignment]


@contextmanager
def queued(path: Path | None, seconds: float) -> Iterator[None]:
    """One process after the other, in the order in which they came; nobody waits longer than `seconds`."""
    turn = None if path is None or fcntl is None else _Turn.at(path)
    if turn is None:
        yield
        return
    turn.wait(seconds)
    try:
        yield
    finally:
        turn.end()


class _Turn:
    """One place in the queue."""

    def __init__(self, file: int) -> None:
        self._file, self._lock = file, threading.Lock()
        self._came, self._left = threading.Event(), False

    @staticmethod
    def at(path: Path) -> _Turn | None:
        with suppress(OSError):  # a folder that cannot be written to
            return _Turn(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666))
        return None

    def wait(self, seconds: float) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._came.set()
        except OSError:  # only a thread can wait for it and be left behind
            threading.Thread(target=self._wait, name="gpmi queue", daemon=True).start()
            self._came.wait(seconds)

    def _wait(self) -> None:
        with suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_EX)
        with self._lock:
            self._came.set()
            if self._left:
                self._close()

    def end(self) -> None:
        with self._lock:
            self._left = True
            if self._came.is_set():
                self._close()

    def _close(self) -> None:
        with suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_UN)  # also where a child process has a copy of the file
        with suppress(OSError):
            os.close(self._file)
