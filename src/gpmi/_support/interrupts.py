"""Ctrl-C at a moment when nothing is lost.

Python runs signal handlers when a function begins, at the end of a loop's body, and after a call of a C function. A
KeyboardInterrupt can be raised at any of these places: between the return of f and the log, in the middle of a repair,
inside a library that is filling a table. Here the key is noted at once and acted on where that is safe.

No handler runs between storing an attribute and the instruction before or after it, or during the lookup of a dict's
item. Steps that must not be separated are therefore written as one of these, not as a call.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any


class Interrupts:
    """The state of Ctrl-C during `defer_interrupts`.

    A press is finally passed to the previously installed handler, which usually raises KeyboardInterrupt. `number` is
    the signal: SIGINT, which is Ctrl-C, or one that asks this process to end.
    """

    def __init__(self, before: Callable[[int, FrameType | None], Any], number: int = signal.SIGINT) -> None:
        self.presses_needed: int | None = None  # to act at once; None: always deferred
        self._before, self._number = before, number
        self._pressed = 0  # presses that were not acted on
        self._exit_signal: int | None = None  # the signal that has asked this process to end
        self._process = os.getpid()

    def on_press(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal."""
        if number != signal.SIGINT:
            self._end_child(number)
        self._pressed += 1
        if self.presses_needed is not None:
            self.act(self.presses_needed, frame)

    def act(self, presses: int = 1, frame: FrameType | None = None) -> None:
        """Act now on deferred presses, if there were at least `presses`."""
        self.exit_if_asked()
        if self._pressed >= presses:
            times, self._pressed = self._pressed, 0
            for _ in range(times):  # a handler of the user may count them
                self._before(self._number, frame)

    def on_exit_signal(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal that asks this process to end: end as soon as nothing can be lost."""
        self._end_child(number)
        self._exit_signal = number
        if self.presses_needed is not None:
            self.exit_if_asked()

    def _end_child(self, number: int) -> None:
        """End a forked child that has not installed its own handler yet, as the signal asks."""
        if os.getpid() != self._process:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def exit_if_asked(self) -> None:
        """Raise a SystemExit, with the exit code that shells give to the signal, if a signal has asked for it."""
        if self._exit_signal is not None:
            raise SystemExit(128 + self._exit_signal)

    def clear(self) -> None:
        """Forget the presses that were deferred."""
        self._pressed = 0


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer Ctrl-C, SIGTERM and SIGHUP during a `with` block; their handlers run after it.

    Ctrl-C is forgotten if the block raises. Signals whose handlers are not written in Python are left alone.
    """
    with _deferred("SIGINT"), _deferred("SIGTERM"), _deferred("SIGHUP"):
        yield


@contextmanager
def _deferred(name: str) -> Iterator[None]:
    """Defer one signal, unless the system does not have it."""
    number = getattr(signal, name, None)
    before = None if number is None else signal.getsignal(number)
    if number is None or not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts = Interrupts(before, number)
    try:
        with suppress(ValueError):  # the main thread of a sub-interpreter
            signal.signal(number, interrupts.on_press)
        yield
    except BaseException:
        if number == signal.SIGINT:
            interrupts.clear()
        raise
    finally:
        if signal.getsignal(number) == interrupts.on_press:  # unless the block has installed another handler
            signal.signal(number, before)
        interrupts.presses_needed = 1  # a handler that the block has left behind may still pass the signal on to this
        interrupts.act()
