"""No test depends on how fast the machine is: it waits for a condition, or moves a clock of its own."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

LIMIT = 300.0  # seconds to wait for something that comes at once on a quiet machine
FOR_EVER = 600.0  # seconds: a sleep that never ends, or the limit of something that must not be ended
HOUR = 3600.0


def wait_until(condition: Callable[[], Any], seconds: float = LIMIT) -> None:
    """Wait until a condition holds; fail after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"nothing came in {seconds:g} seconds"
        time.sleep(0.01)


def is_running(process: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def lines(path: Path) -> list[str]:
    """Return the whole lines of a file that another process may be writing."""
    return path.read_text().split("\n")[:-1] if path.exists() else []


def press_when(condition: Callable[[], Any]) -> None:
    """Send SIGINT to this process as soon as a condition holds."""

    def press() -> None:
        wait_until(condition)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()


class Clock:
    """A clock that a test moves, in the place of the module `time`; sleeping moves it, too."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def time(self) -> float:
        return time.time()


def leap(monkeypatch: pytest.MonkeyPatch, module: Any, count: Callable[[], int]) -> None:
    """Let the clock of a module leap by an hour whenever count() grows by one.

    Evaluations that hang say so, in a file that is counted, and are then out of time on any machine. Others have
    FOR_EVER. So the timeout must count from before the process is started.
    """
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + HOUR * count(), sleep=time.sleep)
    monkeypatch.setattr(module, "time", clock)
