"""One evaluation of f: in a process of its own if it has a timeout, with its value or failure recorded."""

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
from gpmi._support.fork_rng import split_generators
from gpmi._support.interrupts import uninterrupted
from gpmi._support.text import error_message
from gpmi.optimizer import Optimizer
from gpmi.trials import Trial

TICK = 0.5  # seconds between two looks at whether a process still runs; our choice
LEARN_FROM_FAILURES = 'with on_failure="learn" an evaluation without a value is a failed trial, and the run continues'
NO_VALUE = 'where there is no value return nan, and give on_failure="learn"'
LEARNED = (
    'on_failure="learn" is for exceptions, nan, infinities and timeouts: raise or return nan where there is no value'
)


class Failure(NamedTuple):
    """An evaluation without a value."""

    why: str


class Measured(NamedTuple):
    """A value with its error bar and measured constraints. f may return it in place of a number: `Optimizer.tell`."""

    y: float
    noise_var: float = 0.0
    constraints: tuple[float, ...] = ()


class NoNumber(NamedTuple):
    """What f returned in a process of its own, as text, if it is not a number: a mistake in f, not a failure."""

    text: str

    def __repr__(self) -> str:
        return self.text


class TimedOut(TimeoutError):
    """An evaluation took too long, and its process was killed."""


class RaisedInProcess(RuntimeError):
    """f raised an exception in a process of its own."""


class WorkerDied(RaisedInProcess):
    """The process of f ended without a result."""


def evaluator(f: Callable[[Any], Any], *, learns: bool, timeout: float | None) -> Callable[[Any], Any]:
    """Return f as a run calls it: with the timeout, if there is one; with `learns`, exceptions become a Failure.

    The value of f is passed on unchecked. `record` looks at it later, so that Ctrl-C cannot lose a value here.
    """
    timed = f if timeout is None else partial(in_process, f, timeout)
    return partial(_catch, timed) if learns else timed


def _catch(f: Callable[[Any], Any], x: Any) -> Any:
    try:
        return f(x)
    except (TimedOut, RaisedInProcess) as error:
        return Failure(str(error))
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error_message(error)}")


def failure_of(y: Any) -> Failure | None:
    """Return the failure that an answer of f stands for: a Failure, nan or an infinity. None for any other answer."""
    if isinstance(y, Failure):
        return y
    value = _number(y.y if isinstance(y, Measured) else y)
    return None if value is None or math.isfinite(value) else Failure(f"f returned {value}")


def record(optimizer: Optimizer, trial: Trial, answer: Any, *, learns: bool) -> Trial:
    """Record what f returned. With `learns`, a failure is that of the trial; otherwise it raises an exception."""
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
        kind = TypeError if isinstance(error, TypeError) else ValueError  # a subclass may need other arguments
        raise kind(f"f returned {shown(answer)} at x = {trial.x!r}; {_mistake(answer, error, learns)}") from error


def _mistake(answer: Any, error: Exception, learns: bool) -> str:
    """Say what is wrong with a refused answer, and the remedy."""
    if isinstance(answer, Failure):
        return f"{error}; {LEARN_FROM_FAILURES}"
    y = answer.y if isinstance(answer, Measured) else answer
    value, wrong = _number(y), "it must return one finite number"
    if value is not None:
        return str(error) if math.isfinite(value) else f"{wrong}; {LEARN_FROM_FAILURES}"
    if y is None:
        wrong += "; a function without a return statement returns None"
    elif isinstance(y, np.ndarray) and y.size == 1:
        wrong += ", not an array: return y.item()"
    elif isinstance(y, list | tuple) and len(y) == 1:
        wrong += ", not a list: return y[0]"
    elif isinstance(y, list | tuple):
        wrong += ", or gpmi.Measured(y, constraints=[...]) if constraints are measured with it"
    return f"{wrong}; {LEARNED if learns else NO_VALUE}"


class Evaluation:
    """f(x) in a process of its own. Where the system can fork, nothing is copied, and f may be any function.

    `timeout` counts seconds from `start`; None for no limit.
    """

    def __init__(self, f: Callable[[Any], Any], x: Any, timeout: float | None) -> None:
        import multiprocessing  # only where it is needed

        methods = multiprocessing.get_all_start_methods()
        context: Any = multiprocessing.get_context("fork" if "fork" in methods else None)
        self.receiver, self._sender = context.Pipe(duplex=False)
        seed_generators = split_generators(f) if "fork" in methods else None
        self._process = context.Process(target=_evaluate_and_send, args=(f, x, self._sender, seed_generators))
        self._timeout = timeout
        self._deadline: float | None = None

    def start(self) -> None:
        """Start the process. Ctrl-C acts afterwards, because exceptions in the callbacks of a fork are discarded."""
        with uninterrupted():
            self._start()

    def _start(self) -> None:
        with warnings.catch_warnings():  # about forking a process with threads: those of BLAS can cope
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process.start()
        self._sender.close()
        self._deadline = None if self._timeout is None else time.monotonic() + self._timeout

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the timeout; None if there is no limit."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    @property
    def is_over(self) -> bool:
        """Whether there is a result: a value, an exception, a dead process or a timeout."""
        return self.seconds_left == 0.0 or self._process.exitcode is not None or bool(self.receiver.poll(0))

    def wait(self) -> None:
        """Wait until it is over. The exit code is polled, because a surviving grandchild would keep the pipe open."""
        while not self.is_over:
            left = self.seconds_left
            self.receiver.poll(TICK if left is None else min(left, TICK))

    def result(self) -> Any:
        """Return what f returned, or raise `TimedOut`, `WorkerDied` or `RaisedInProcess`. The process is ended."""
        import json

        try:
            if not self.receiver.poll(0):
                if self._process.exitcode is None:
                    raise TimedOut(f"timeout: f took longer than {self._timeout:g} s")
                raise WorkerDied(f"the process of f ended with exit code {self._process.exitcode}")
            try:
                kind, content = json.loads(self.receiver.recv_bytes())
            except EOFError:
                self._process.join()
                raise WorkerDied(f"the process of f ended with exit code {self._process.exitcode}") from None
        finally:
            self.end()
        if kind == "value":
            return float.fromhex(content)
        if kind == "measured":
            y, noise_var, *constraints = map(float.fromhex, content)
            return Measured(y, noise_var, tuple(constraints))
        if kind == "failure":
            return Failure(content)
        if kind == "other":
            return NoNumber(content)
        raise RaisedInProcess(content)

    def end(self) -> None:
        """Kill the process and all that it has started; only wait for one that has finished."""
        if self._process is not None:
            process, self._process = self._process, None
            if process.pid is not None:  # it was started
                _end(process)
            self._sender.close()
            self.receiver.close()


def in_process(f: Callable[[Any], Any], timeout: float, x: Any) -> Any:
    """Return f(x), computed in a process that is killed after `timeout` seconds.

    The process and all that it has started are also killed when this process is interrupted. A process that crashes, as
    a simulation may, raises `WorkerDied` here.
    """
    evaluation = Evaluation(f, x, timeout)
    try:
        evaluation.start()
        evaluation.wait()
        return evaluation.result()
    finally:
        evaluation.end()


def _evaluate_and_send(
    f: Callable[[Any], Any], x: Any, sender: Any, seed_generators: Callable[[], None] | None
) -> None:
    """Evaluate in the new process and send the result through the pipe."""
    import json

    if hasattr(os, "setsid"):
        os.setsid()  # a group of its own, which Ctrl-C does not reach and which can be killed as a whole
    processes.adopt_orphans()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    try:
        if seed_generators is not None:
            seed_generators()
        message = _encode(f(x))
    except BaseException as error:
        message = ("raised", f"{type(error).__name__}: {error_message(error)}")
    sender.send_bytes(json.dumps(message).encode())
    sender.close()


def _encode(y: Any) -> tuple[str, Any]:
    """Encode what f returned for JSON without loss: floats as hexadecimal text."""
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
    """Kill a process and all that it has started; only wait for one that has finished."""
    process.join(0.0 if process.exitcode is None else None)
    if process.exitcode is None:
        process.join(0.1)  # after sending its value it needs a moment to exit
    if process.exitcode is None:
        if os.name == "posix":
            processes.kill_tree(process.pid)
        else:
            process.kill()
    process.join()
    process.close()


def _number(y: Any) -> float | None:
    """Return y as a float, nan and infinities included; None if it is not a number."""
    plain = y.item() if isinstance(y, np.ndarray) and y.ndim == 0 else y
    if isinstance(plain, bool | np.bool_) or not isinstance(plain, Real):
        return None
    try:
        return float(plain)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        return None
