"""Ctrl-C at a moment at which nothing is lost.

Python raises KeyboardInterrupt between any two instructions: between the return of f and the log, in the middle of a
repair, inside a library that is filling a table. Here the key is noticed at once, and acted on where that is safe.
"""

from __future__ import annotations

import signal
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import FrameType, TracebackType
from typing import Any


class Interrupts:
    """While the block runs, Ctrl-C is held back, except inside `released` and at `check`.

    Where Python runs signal handlers, that is in the main thread, and where SIGINT has a Python handler. The handler
    that was there before decides what happens in the end, by default a KeyboardInterrupt.
    """

    def __init__(self) -> None:
        self._before: Any = None
        self._patience: int | None = None  # how many times the key must be pressed for it to act at once
        self._pressed = 0  # times that were not acted on

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if callable(before):
                self._before = before
                signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _press(self, number: int, frame: FrameType | None) -> None:
        self._pressed += 1
        if self._patience is not None and self._pressed >= self._patience:
            self._act(frame)

    def _act(self, frame: FrameType | None) -> None:
        self._pressed, self._patience = 0, None  # before the handler raises: a second key finds everything held back
        self._before(signal.SIGINT, frame)

    def released(self, patience: int = 1) -> Released:
        """Act at once inside the block, when the key has been pressed `patience` times."""
        return Released(self, patience)

    def wait_for(self, patience: int | None) -> None:
        """Act when the key has been pressed `patience` times; None: hold it back."""
        self._patience = patience
        if patience is not None and self._pressed >= patience:
            self._act(None)

    def check(self) -> None:
        """Act now on a key that was held back."""
        if self._pressed:
            self._act(None)

    def drop(self) -> None:
        """Forget the keys that were held back: the run is ending anyway."""
        self._pressed = 0


@dataclass(frozen=True)
class Released:
    """See `Interrupts.released`. Not made by contextlib, which writes to exceptions that pass: some are frozen."""

    interrupts: Interrupts
    patience: int

    def __enter__(self) -> None:
        self.interrupts.wait_for(self.patience)

    def __exit__(self, *exception: object) -> None:
        self.interrupts.wait_for(None)


def uninterrupted(work: Callable[[], Any]) -> Any:
    """The result of `work`, which Ctrl-C does not interrupt: it acts afterwards."""
    with Interrupts() as interrupts:
        result = work()
    interrupts.check()
    return result


def held(f: Callable[[Any], Any], x: Any) -> dict[int, Any]:
    """An empty dict d in which `d[0]` calls f(x) and keeps what it returns.

    Ctrl-C cannot come between the return of f and the dict, because no instruction of Python lies between them.
    """
    return defaultdict(partial(f, x))
