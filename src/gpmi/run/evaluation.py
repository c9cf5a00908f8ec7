"""One evaluation of f: in a process that can be ended, if it may take too long, why it has no value, and the tell."""

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

from gpmi._support import processes
from gpmi._support.checks import shown
from gpmi._support.fork_rng import parted
from gpmi._support.interrupts import uninterrupted
from gpmi.optimizer import Optimizer
from gpmi.trials import Trial

TICK = 0.5  # seconds between two looks at whether a process is still there; our choice
SWITCH = 'with on_failure="learn" an evaluation without a value is a failed trial, and the run goes on'
NO_VALUE = 'where there is no value return nan, and give on_failure="learn"'
LEARNED = (
    'on_failure="learn" is for exceptions, nan, infinities and time-outs: raise or return nan where there is no value'
)


class Failure(NamedTuple):
    """An evaluation without a value."""

    why: str


class Measured(NamedTuple):
    """A value with what was measured beside it, which f may return instead of a number: as in `Optimizer.tell`."""

    y: float
    noise_var: float = 0.0
    constraints: tuple[float, ...] = ()


class NoNumber(NamedTuple):
    """What f returned in a process of its own, as it prints, where that is no number: a mistake of f and no failure."""

    said: str

    def __repr__(self) -> str:
        return self.said


class TimedOut(TimeoutError):
    """An evaluation took too long, and its process was ended."""


class RaisedInProcess(RuntimeError):
    """f raised in a process of its own, or the process ended without a word."""


class Died(RaisedInProcess):
    """The process ended without a word."""


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
    value = _number(y.y if isinstance(y, Measured) else y)
    return None if value is None or math.isfinite(value) else Failure(f"f returned {value}")


def tell(optimizer: Optimizer, trial: Trial, answer: Any, *, learns: bool) -> Trial:
    """Tell what f returned. With `learns`, a failure is one of the trial; otherwise it is an exception."""
    failure = failure_of(answer) if learns else None
    if failure is not None:
        return optimizer.fail(trial, failure.why)
    try:
        if isinstance(answer, Failure):
            raise ValueError(answer.why)
        if isinstance(answer, Measured):
            return optimizer.tell(trial, answer.y, noise_var=answer.noise_var, constraints=answer.constraints)
        return optimizer.tell(trial, answer)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError  # a subclass may want other arguments
        raise kind(f"f returned {shown(answer)} at x = {trial.x!r}; {_mistake(answer, error, learns)}") from error


def _mistake(answer: Any, error: Exception, learns: bool) -> str:
    """What is wrong with a value that was refused, said once, and the remedy."""
    if isinstance(answer, Failure):
        return f"{error}; {SWITCH}"
    y = answer.y if isinstance(answer, Measured) else answer
    value, wrong = _number(y), "it must return one finite number"
    if value is not None:
        return str(error) if math.isfinite(value) else f"{wrong}; {SWITCH}"
    if y is None:
        wrong += ", and None is what a function without a return gives"
    elif isinstance(y, np.ndarray) and y.size == 1:
        wrong += ", not an array: y.item() takes it out"
    elif isinstance(y, list | tuple) and len(y) == 1:
        wrong += ", not a list: y[0] takes it out"
    elif isinstance(y, list | tuple):
        wrong += ", or gpmi.Measured(y, constraints=[...]) where constraints are measured beside it"
    return f"{wrong}; {LEARNED if learns else NO_VALUE}"


class Evaluation:
    """f(x) in a process of its own, once it was begun. Where the system can fork, nothing is copied, and f may be any
    function.

    `timeout` counts from the beginning; None for no limit.
    """

    def __init__(self, f: Callable[[Any], Any], x: Any, timeout: float | None) -> None:
        import multiprocessing  # only where it is needed

        methods = multiprocessing.get_all_start_methods()
        context: Any = multiprocessing.get_context("fork" if "fork" in methods else None)
        self.receiver, self._sender = context.Pipe(duplex=False)
        part = parted(f) if "fork" in methods else None
        self._process = context.Process(target=_report, args=(f, x, self._sender, part))
        self._timeout = timeout
        self._deadline: float | None = None

    def begin(self) -> None:
        """Start the process. Ctrl-C acts afterwards: what is raised in the callbacks of a fork is thrown away."""
        with uninterrupted():
            self._begin()

    def _begin(self) -> None:
        with warnings.catch_warnings():  # that a process with threads is forked: those of BLAS know how to
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process.start()
        self._sender.close()
        self._deadline = None if self._timeout is None else time.monotonic() + self._timeout

    @property
    def seconds_left(self) -> float | None:
        """Until it takes too long; None if it has no limit."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    @property
    def is_over(self) -> bool:
        """Whether it has a result: a value, an exception, an end without a word, or no time left."""
        return self.seconds_left == 0.0 or self._process.exitcode is not None or bool(self.receiver.poll(0))

    def wait(self) -> None:
        """Until it is over. A process that another one has outlived does not close the pipe: so it is looked at."""
        while not self.is_over:
            left = self.seconds_left
            self.receiver.poll(TICK if left is None else min(left, TICK))

    def result(self) -> Any:
        """What f returned, or an exception: `TimedOut`, `Died`, `RaisedInProcess`. The process is ended."""
        import json

        try:
            if not self.receiver.poll(0):
                if self._process.exitcode is None:
                    raise TimedOut(f"time-out: f took longer than {self._timeout:g} s")
                raise Died(f"the process of f ended with exit code {self._process.exitcode}")
            try:
                kind, said = json.loads(self.receiver.recv_bytes())
            except EOFError:
                self._process.join()
                raise Died(f"the process of f ended with exit code {self._process.exitcode}") from None
        finally:
            self.end()
        if kind == "value":
            return float.fromhex(said)
        if kind == "measured":
            y, noise_var, *constraints = map(float.fromhex, said)
            return Measured(y, noise_var, tuple(constraints))
        if kind == "failure":
            return Failure(said)
        if kind == "other":
            return NoNumber(said)
        raise RaisedInProcess(said)

    def end(self) -> None:
        """End the process with all that it has started; one that is finished is only waited for."""
        if self._process is not None:
            process, self._process = self._process, None
            if process.pid is not None:  # it was begun
                _end(process)
            self._sender.close()
            self.receiver.close()


def in_process(f: Callable[[Any], Any], timeout: float, x: Any) -> Any:
    """f(x), computed in a process that is ended after `timeout` seconds.

    The process and those that it has started are killed also when this one is interrupted. A process that takes itself
    down, as a simulation may, is an exception here.
    """
    evaluation = Evaluation(f, x, timeout)
    try:
        evaluation.begin()
        evaluation.wait()
        return evaluation.result()
    finally:
        evaluation.end()


def _report(f: Callable[[Any], Any], x: Any, sender: Any, part: Callable[[], None] | None) -> None:
    """In the process: evaluate, and say what came of it."""
    import json

    if hasattr(os, "setsid"):
        os.setsid()  # a group of its own, which can be ended with all that f has started; Ctrl-C does not reach it
    processes.adopt()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    try:
        if part is not None:
            part()
        said = _said(f(x))
    except BaseException as error:
        said = ("raised", f"{type(error).__name__}: {_text(error)}")
    sender.send_bytes(json.dumps(said).encode())
    sender.close()


def _said(y: Any) -> tuple[str, Any]:
    """What f returned, as JSON can say it without a loss."""
    if isinstance(y, Failure):
        return "failure", y.why
    if isinstance(y, Measured):
        numbers = [_number(one) for one in (y.y, y.noise_var, *y.constraints)]
        return (
            ("other", shown(y)) if None in numbers else ("measured", [one.hex() for one in numbers if one is not None])
        )
    value = _number(y)
    return ("other", shown(y)) if value is None else ("value", value.hex())


def _end(process: Any) -> None:
    """End a process with all that it has started; one that is finished is only waited for."""
    process.join(0.0 if process.exitcode is None else None)
    if process.exitcode is None:
        process.join(0.1)  # one that has sent its value needs a moment to leave
    if process.exitcode is None:
        if os.name == "posix":
            processes.end(process.pid)
        else:
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
