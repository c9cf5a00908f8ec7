"""One evaluation of f: in a process that can be ended, if it may take too long, and why it has no value."""

from __future__ import annotations

import math
import os
import signal
import time
import warnings
from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from gpmi.checks import shown


class Failure(NamedTuple):
    """An evaluation without a value."""

    why: str


class TimedOut(TimeoutError):
    """An evaluation took too long, and its process was ended."""


class RaisedInProcess(RuntimeError):
    """f raised in a process of its own, or the process ended without a word."""


def guarded(f: Callable[[Any], Any], *, learn: bool, timeout: float | None) -> Callable[[Any], Any]:
    """f as a run calls it: under a limit of time, if there is one, and with a Failure for an exception, if it `learn`s.

    What f returns is passed on as it is; `failure_of` looks at it later, so that no value can be lost to Ctrl-C here.
    """
    timed = f if timeout is None else partial(in_process, f, timeout)
    return partial(_caught, timed) if learn else timed


def _caught(f: Callable[[Any], Any], x: Any) -> Any:
    try:
        return f(x)
    except (TimedOut, RaisedInProcess) as error:
        return Failure(str(error))
    except Exception as error:
        return Failure(f"{type(error).__name__}: {_text(error)}")


def failure_of(y: Any) -> Failure | None:
    """The failure that a returned value stands for: itself, or that of nan or an infinity; None for any other value."""
    if isinstance(y, Failure):
        return y
    value = _number(y)
    return None if value is None or math.isfinite(value) else Failure(f"f returned {value}")


def in_process(f: Callable[[Any], Any], timeout: float, x: Any) -> Any:
    """f(x), computed in a process that is ended after `timeout` seconds. Where the system can fork, nothing is copied.

    The process and those that it has started are killed also when this one is interrupted. A process that takes itself
    down, as a simulation may, is an exception here.
    """
    import json
    import multiprocessing  # both only where they are needed

    methods = multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("fork" if "fork" in methods else None)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_report, args=(f, x, sender))
    with warnings.catch_warnings():  # that a process with threads is forked: those of BLAS know how to
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    sender.close()
    try:
        if not _answered(receiver, timeout):
            raise TimedOut(f"time-out: f took longer than {timeout:g} s")
        try:
            kind, text = json.loads(receiver.recv_bytes())
        except EOFError:
            process.join()
            raise RaisedInProcess(f"the process of f ended with exit code {process.exitcode}") from None
    finally:
        _end(process)
        receiver.close()
    if kind == "value":
        return float.fromhex(text)
    if kind == "other":
        raise TypeError(f"f returned {text}; it must return one finite number")
    raise RaisedInProcess(text)


def _answered(receiver: Any, timeout: float) -> bool:
    """Whether something comes within `timeout` seconds. A system can wait for 24 days at a time, hence the hours."""
    end = time.monotonic() + timeout
    while not receiver.poll(min(3600.0, max(0.0, end - time.monotonic()))):
        if time.monotonic() >= end:
            return False
    return True


def _report(f: Callable[[Any], Any], x: Any, sender: Any) -> None:
    """In the process: evaluate, and say what came of it."""
    import json

    if hasattr(os, "setsid"):
        os.setsid()  # a group of its own, which can be ended with all that f has started; Ctrl-C does not reach it
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        y = f(x)
        value = _number(y)
        said = ("other", shown(y)) if value is None else ("value", value.hex())
    except BaseException as error:
        said = ("raised", f"{type(error).__name__}: {_text(error)}")
    sender.send_bytes(json.dumps(said).encode())
    sender.close()


def _end(process: Any) -> None:
    """End a process with all that it has started; one that is finished is only waited for."""
    process.join(0.0 if process.exitcode is None else None)
    if process.exitcode is None:
        process.join(0.1)  # one that has sent its value needs a moment to leave
    if process.exitcode is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (AttributeError, ProcessLookupError, PermissionError):  # no groups here, or it has none of its own yet
            process.kill()
    process.join()
    process.close()


def _number(y: Any) -> float | None:
    """y as a float, nan and infinities included; None if it is no number."""
    plain = y.item() if isinstance(y, np.ndarray) and y.ndim == 0 else y
    if isinstance(plain, bool | np.bool_) or not isinstance(plain, Real):
        return None
    try:
        return float(plain)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        return None


def _text(error: BaseException) -> str:
    """What an exception says, if it can say it."""
    try:
        return str(error)
    except BaseException:
        return "it cannot say what"
