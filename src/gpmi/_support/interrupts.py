"""Ctrl-C at a moment at which nothing is lost.

Python handles a signal when a function begins, at the end of a loop's body, and after a call of a function written in
C; a KeyboardInterrupt can come up at any of these places: between the return of f and the log, in the middle of a
repair, inside a library that is filling a table. Here the key is noticed at once, and acted on where that is safe.

Nothing is handled between storing an attribute and the instruction before or after it, nor while an item of a dict is
looked up. What must not be torn apart is therefore written as one of these, not as a call.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any, TypeVar

Value = TypeVar("Value")


class Interrupts:
    """The key while `holding` runs. What was to happen before decides what happens: usually a KeyboardInterrupt."""

    def __init__(self, before: Callable[[int, FrameType | None], Any]) -> None:
        self.patience: int | None = None  # how often the key must be pressed to act at once; None: it is held back
        self._before = before
        self._pressed = 0  # times that were not acted on
        self._ending: int | None = None  # the signal that has asked this process to end
        self._process = os.getpid()

    def press(self, number: int, frame: FrameType | None) -> None:
        """The handler of the signal."""
        self._pressed += 1
        if self.patience is not None:
            self.act(self.patience, frame)

    def act(self, patience: int = 1, frame: FrameType | None = None) -> None:
        """Act now on a key that was held back, if it was pressed `patience` times."""
        self.leave()
        if self._pressed >= patience:
            times, self._pressed = self._pressed, 0
            for _ in range(times):  # a handler of the user's may count them
                self._before(signal.SIGINT, frame)

    def end(self, number: int, frame: FrameType | None) -> None:
        """The handler of a signal that asks this process to end: it does so as soon as nothing can be lost."""
        if os.getpid() != self._process:  # a child of fork that has not said what it does with the signal
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self._ending = number
        if self.patience is not None:
            self.leave()

    def leave(self) -> None:
        """End this process, with the exit code that shells give to the signal, if one has asked for it."""
        if self._ending is not None:
            raise SystemExit(128 + self._ending)

    def drop(self) -> None:
        """Forget the keys that were held back."""
        self._pressed = 0


def ending(work: Callable[[Interrupts], Value]) -> Callable[[Interrupts], Value]:
    """`work`, during which SIGTERM, or the end of the terminal, is a SystemExit at a moment at which nothing is lost.

    For work that has started processes: they would go on without anybody to read their values. What the user has said
    to do with these signals is left alone.
    """

    def then(interrupts: Interrupts) -> Value:
        if threading.current_thread() is not threading.main_thread():
            return work(interrupts)
        numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
        ours = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
        try:
            with suppress(ValueError):  # the main thread of another interpreter than the first
                for number in ours:
                    signal.signal(number, interrupts.end)
            result = work(interrupts)
        finally:
            for number in ours:
                if signal.getsignal(number) == interrupts.end:
                    signal.signal(number, signal.SIG_DFL)
        interrupts.leave()
        return result

    return then


def holding(work: Callable[[Interrupts], Value]) -> Value:
    """work(interrupts), during which Ctrl-C is held back, except as `interrupts.patience` and `act` say.

    That is where Python handles signals, in the main thread, and where SIGINT has a handler in Python; elsewhere the
    work is done as it is. Keys that are still held back in the end are forgotten.
    """
    before = signal.getsignal(signal.SIGINT)
    interrupts = Interrupts(before if callable(before) else _nothing)
    if not (callable(before) and threading.current_thread() is threading.main_thread()):
        return work(interrupts)
    restore = held(partial(signal.signal, signal.SIGINT), before)
    try:
        signal.signal(signal.SIGINT, interrupts.press)
    except ValueError:  # the main thread of another interpreter than the first
        return work(interrupts)
    try:
        return work(interrupts)
    finally:
        if signal.getsignal(signal.SIGINT) == interrupts.press:  # unless the work has put its own in place
            restore[0]  # no signal is handled from here to the caller's next call: the result cannot be lost
        interrupts.patience = 1  # a handler that the work has left behind may still pass the key on to this one


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer Ctrl-C during a `with` block; it acts after the block, unless the block raises."""
    before = signal.getsignal(signal.SIGINT)
    interrupts = Interrupts(before if callable(before) else _nothing)
    if callable(before) and threading.current_thread() is threading.main_thread():
        with suppress(ValueError):  # the main thread of another interpreter than the first
            signal.signal(signal.SIGINT, interrupts.press)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) == interrupts.press:  # unless the block has put its own in place
            signal.signal(signal.SIGINT, before)
        interrupts.patience = 1  # a handler that the block has left behind may still pass the key on to this one
    interrupts.act()


def held(f: Callable[[Any], Any], x: Any) -> dict[int, Any]:
    """An empty dict d in which `d[0]` calls f(x) and keeps what it returns.

    No signal is handled between the return of f and the dict, because no instruction of Python lies between them.
    """
    return defaultdict(partial(f, x))


def _nothing(number: int, frame: FrameType | None) -> None:
    pass
