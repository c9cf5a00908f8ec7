"""A fair order for the writers of an SQLite file.

SQLite waiters poll every 100 ms, so under contention some starve. Two file locks make the order fair. They
only add fairness. After the timeout, or without file locks, SQLite's own lock still guarantees correctness.
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
def fair_lock(path: Path | None, seconds: float) -> Iterator[None]:
    """Let processes write to `path` one after the other, roughly in order; none waits much longer than `seconds`.

    The next process in line holds the lock of `path`-next while it waits for that of `path`-turn. So a process that has
    just finished cannot write again before the one that waits.
    """
    if path is None or fcntl is None:
        yield
        return
    following, turn = (_Turn.at(file, seconds) for file in _files(path))
    try:
        following.wait()
        turn.wait()
        following.end()
        yield
    finally:
        following.end()
        turn.end()


def remove_lock_files(path: Path | None) -> None:
    """Remove the two files if no process uses them.

    A process that arrives at this moment may get its turn together with another; SQLite's own lock then decides.
    """
    if path is None or fcntl is None:
        return
    held: list[int] = []
    with suppress(OSError):  # the file does not exist, cannot be written to, or is locked
        for file in _files(path):
            held.append(os.open(file, os.O_RDWR | os.O_CLOEXEC))
            fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        for file in _files(path):
            file.unlink()
    for descriptor in held:
        os.close(descriptor)


def _files(path: Path) -> tuple[Path, Path]:
    return path.with_name(f"{path.name}-next"), path.with_name(f"{path.name}-turn")


class _Turn:
    """A place in the queue for the lock of one file; without a file there is no queue."""

    def __init__(self, file: int | None, seconds: float) -> None:
        self._file, self._seconds, self._lock = file, seconds, threading.Lock()
        self._came, self._waits, self._left = threading.Event(), False, False

    @staticmethod
    def at(path: Path, seconds: float) -> _Turn:
        with suppress(OSError):  # the folder cannot be written to
            return _Turn(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), seconds)
        return _Turn(None, seconds)

    def wait(self) -> None:
        if self._file is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._came.set()
        except OSError:  # flock has no timeout, so a daemon thread waits and may be abandoned
            self._waits = True
            threading.Thread(target=self._wait, name="gpmi queue", daemon=True).start()
            self._came.wait(self._seconds)

    def _wait(self) -> None:
        with suppress(OSError):
            fcntl.flock(self._file or 0, fcntl.LOCK_EX)
        with self._lock:
            self._came.set()
            if self._left:
                self._close()

    def end(self) -> None:
        """Release the lock now, or as soon as the abandoned thread gets it."""
        with self._lock:
            left, self._left = self._left, True
            if self._file is not None and not left and (self._came.is_set() or not self._waits):
                self._close()

    def _close(self) -> None:
        assert self._file is not None
        with suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_UN)  # even if a child process has a copy of the descriptor
        with suppress(OSError):
            os.close(self._file)
