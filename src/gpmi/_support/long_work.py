"""Ctrl-C and the end of the process during work that takes long: noted at once, acted on where nothing is lost.

`gpmi._support.interrupts` has the state of the key, and defers it for the length of a `with` block.
"""

from __future__ import annotations

import signal
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any, TypeVar

from gpmi._support.interrupts import Interrupts

Value = TypeVar("Value")


def with_safe_exit(work: Callable[[Interrupts], Value]) -> Callable[[Interrupts], Value]:
    """Wrap `work` so that SIGTERM and SIGHUP raise SystemExit at a safe point, where nothing is lost.

    For work that starts processes: without it they would go on, and their values would be lost. Handlers that the user
    has installed for these signals are left alone.
    """

    def wrapped(interrupts: Interrupts) -> Value:
        if threading.current_thread() is not threading.main_thread():
            return work(interrupts)
        numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
        ours = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
        try:
            with suppress(ValueError):  # the main thread of a sub-interpreter
                for number in ours:
                    signal.signal(number, interrupts.on_exit_signal)
            result = work(interrupts)
        finally:
            for number in ours:
                if signal.getsignal(number) == interrupts.on_exit_signal:
                    signal.signal(number, signal.SIG_DFL)
        interrupts.exit_if_asked()
        return result

    return wrapped


def defer_interrupts(work: Callable[[Interrupts], Value]) -> Value:
    """Return work(interrupts). Ctrl-C is deferred meanwhile, except as `presses_needed` and `act` allow.

    This needs the main thread and a SIGINT handler written in Python; otherwise `work` is simply called. Presses that
    are still deferred in the end are forgotten.
    """
    before = signal.getsignal(signal.SIGINT)
    interrupts = Interrupts(before if callable(before) else _nothing)
    if not (callable(before) and threading.current_thread() is threading.main_thread()):
        return work(interrupts)
    restore = lazy_call(partial(signal.signal, signal.SIGINT), before)
    try:
        signal.signal(signal.SIGINT, interrupts.on_press)
    except ValueError:  # the main thread of a sub-interpreter
        return work(interrupts)
    try:
        return work(interrupts)
    finally:
        if signal.getsignal(signal.SIGINT) == interrupts.on_press:  # unless `work` has installed another handler
            restore[0]  # no handler runs from here to the caller's next call: the result cannot be lost
        interrupts.presses_needed = 1  # a handler that `work` has left behind may still pass the key on to this one


def lazy_call(f: Callable[[Any], Any], x: Any) -> dict[int, Any]:
    """Return an empty dict d. The first lookup of `d[0]` calls f(x) and stores the result.

    No signal handler runs between the return of f and the dict, because no Python instruction lies between them.
    """
    return defaultdict(partial(f, x))


def _nothing(number: int, frame: FrameType | None) -> None:
    pass
