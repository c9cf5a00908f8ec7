"""A queue before the lock of a file: who waits longest comes next.

SQLite lets who waits look again every tenth of a second, and whoever looks first when the lock is free has it: with
many processes some never do. The locks of two more files decide who looks. They are a courtesy, not a safeguard: who
has waited long enough, or has no such locks, goes to the lock itself.
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
    """One process after the other, about in the order in which they came; nobody waits much longer than `seconds`.

    `path` is the file that they want to write to. Who is next holds the lock of `path`-next while it waits for that of
    `path`-turn. So who has just had a turn cannot take the next one before those who wait have a chance to.
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


def cleared(path: Path | None) -> None:
    """Remove the files of the queue if nobody is in it.

    Who comes just now may get a turn together with another one; the lock of `path` itself then decides.
    """
    if path is None or fcntl is None:
        return
    held: list[int] = []
    with suppress(OSError):  # there is no such file, it cannot be written to, or somebody has its lock
        for file in _files(path):
            held.append(os.open(file, os.O_RDWR | os.O_CLOEXEC))
            fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        for file in _files(path):
            file.unlink()
    for one in held:
        os.close(one)


def _files(path: Path) -> tuple[Path, Path]:
    return path.with_name(f"{path.name}-next"), path.with_name(f"{path.name}-turn")


class _Turn:
    """A place in the queue for the lock of a file; without a file, none."""

    def __init__(self, file: int | None, seconds: float) -> None:
        self._file, self._seconds, self._lock = file, seconds, threading.Lock()
        self._came, self._waits, self._left = threading.Event(), False, False

    @staticmethod
    def at(path: Path, seconds: float) -> _Turn:
        with suppress(OSError):  # a folder that cannot be written to
            return _Turn(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), seconds)
        return _Turn(None, seconds)

    def wait(self) -> None:
        if self._file is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._came.set()
        except OSError:  # only a thread can wait for it and be left behind
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
        """Give the lock to the next one, now or, if it was not waited for, when it comes."""
        with self._lock:
            left, self._left = self._left, True
            if self._file is not None and not left and (self._came.is_set() or not self._waits):
                self._close()

    def _close(self) -> None:
        assert self._file is not None
        with suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_UN)  # also where a child process has a copy of the file
        with suppress(OSError):
            os.close(self._file)
