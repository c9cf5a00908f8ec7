"""One evaluation of f: in a subprocess if it has a timeout, with its value or failure recorded.

Where f is a generator, its process waits after each value that it yields for the answer whether to go on.
"""

from __future__ import annotations

import math
import os
import signal
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpmi._support import processes
from gpmi._support.checks import ONE_VALUE, has_several, shown
from gpmi._support.fork_rng import split_generators
from gpmi._support.interrupts import uninterrupted
from gpmi._support.refusals import reworded
from gpmi._support.study_files import make_read_only
from gpmi._support.text import error_message
from gpmi.optimizer import Optimizer
from gpmi.run.channel import ResultChannel, ResultSender
from gpmi.trials import Trial
from gpmi.trials.goals import Goals

TICK = 0.5  # polling interval in seconds for the end of a process; our choice
SHORT_TICK = 0.02  # the same for a process that has closed its pipe, so that nothing announces its end; our choice
ARRIVAL = 1.0  # seconds after the timeout in which a message that has begun may be completed; our choice
LINGER = 0.1  # seconds in which a process that has sent its value may end by itself; our choice
KILLED = 1.0  # seconds in which a killed process is waited for; our choice
CLEAN_UP = 10.0  # seconds in which a generator that was told to stop may clean up; our choice
YIELDED = b'["yielded"'  # how the message of a value on the way begins
LEARN_FROM_FAILURES = 'pass on_failure="learn" to record failures and continue'
NO_VALUE = 'return nan for a failed evaluation and pass on_failure="learn"'
LEARNED = (
    'on_failure="learn" is for exceptions, nan, infinities and timeouts: raise or return nan where there is no value'
)


class Failure(NamedTuple):
    """An evaluation without a value."""

    why: str
    remedy: str = ""  # of a mistake that every evaluation would make; a run that has no value yet ends with it


class Measured(NamedTuple):
    """A value with its error bar and measured constraints.

    f may return this instead of a number; see `Optimizer.tell` for the fields.
    """

    y: float | Mapping[str, float]  # a dict of outputs in a run with goals; noise_var is then one, too, or one number
    noise_var: float | Mapping[str, float] = 0.0
    constraints: tuple[float, ...] = ()


# What f returns: a value, or in a space with steps a generator of (step, value).
Evaluated: TypeAlias = float | Measured | Iterator[tuple[int, float]]


class NoNumber(NamedTuple):
    """The repr of a non-number returned by f in a subprocess: a bug in f, not a failed trial."""

    text: str
    has_several: bool  # values

    def __repr__(self) -> str:
        return self.text


class Drained(NamedTuple):
    """A curve as a whole: what a generator yielded, and why it failed if it did."""

    items: tuple[Any, ...]
    error: str | None = None


class CurveEnd(NamedTuple):
    """The end of a generator in a subprocess: it has returned, or was stopped and has cleaned up."""


class TimedOut(TimeoutError):
    """An evaluation took too long, and its process was killed."""


class RaisedInProcess(RuntimeError):
    """f raised an exception in a subprocess."""


class WorkerDied(RaisedInProcess):
    """The process of f ended without a result."""


class EvaluationFailed(RaisedInProcess):
    """What a generator raises to end as a failure, with its reason and perhaps a remedy."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)  # what pickle gives back
        self.failure = failure

    def __str__(self) -> str:
        return self.failure.why


class RepairNeeded(ValueError):
    """No trial has a value yet, and every evaluation would probably make the same mistake. The trial stays pending."""


def evaluator(
    f: Callable[[Any], Any], *, learns: bool, timeout: float | None, retries: int = 0
) -> Callable[[Any], Any]:
    """Return f as a run calls it: with the timeout, if there is one; with `learns`, exceptions become a Failure.

    With a timeout, an evaluation that takes too long or crashes is repeated `retries` times.

    The value of f is passed on unchecked. `record` looks at it later, so that Ctrl-C cannot lose a value here.
    """
    timed = f if timeout is None else partial(_timed, f, timeout, retries)
    return partial(_catch, timed) if learns else timed


def _timed(f: Callable[[Any], Any], timeout: float, retries: int, x: Any) -> Any:
    return in_process(f, timeout, x, retries)


def drained(f: Callable[[Any], Any], x: Any) -> Any:
    """Return f(x), with all that it yields if it is a generator: for a place from which no question can be asked."""
    answer = f(x)
    if not isinstance(answer, Generator):
        return answer
    items: list[Any] = []
    try:
        items.extend(answer)
    except Exception as error:
        if not items:
            raise
        return Drained(tuple(items), f"{type(error).__name__}: {error_message(error)}")
    return Drained(tuple(items))


def _catch(f: Callable[[Any], Any], x: Any) -> Any:
    try:
        return f(x)
    except Exception as error:
        return failure_from(error)


def failure_from(error: Exception) -> Failure:
    """Return the failure that an exception of f stands for."""
    if isinstance(error, EvaluationFailed):
        return error.failure
    if isinstance(error, TimedOut | RaisedInProcess):
        return Failure(str(error))
    return Failure(f"{type(error).__name__}: {error_message(error)}")


def failure_of(y: Any) -> Failure | None:
    """Return the failure that an answer of f stands for: a Failure, nan or an infinity. None for any other answer."""
    if isinstance(y, Failure):
        return y
    return None if (text := not_finite(y)) is None else Failure(f"f returned {text}")


def not_finite(y: Any) -> str | None:
    """Return the first number of an answer that is nan or an infinity, with the name of its output; None without."""
    answer = y.y if isinstance(y, Measured) else y
    for name, output in answer.items() if isinstance(answer, Mapping) else [(None, answer)]:
        number = number_of(output)
        if number is not None and not math.isfinite(number):
            return str(number) if name is None else f"{number} for {name}"
    return None


def record(optimizer: Optimizer, trial: Trial, answer: Any, *, learns: bool) -> Trial:
    """Record what f returned. With `learns`, a failure is that of the trial; otherwise it raises an exception.

    A failure with a remedy raises `RepairNeeded` while no trial has a value. The trial stays pending.
    """
    failure = failure_of(answer) if learns else None
    if failure is not None:
        if failure.remedy and not _has_value(optimizer):
            raise RepairNeeded(f"{failure.why}\n{failure.remedy}")
        return optimizer.fail(trial, failure.why)
    try:
        if isinstance(answer, Failure):
            raise ValueError(answer.why)
        if isinstance(answer, Measured):
            return optimizer.tell(trial, **answer._asdict())
        return optimizer.tell(trial, answer)
    except (TypeError, ValueError) as error:
        wrong = _mistake(answer, error, learns, optimizer.goals)
        raise reworded(error, f"f returned {shown(answer)} at x = {trial.x!r}; {wrong}") from error


def _has_value(optimizer: Optimizer) -> bool:
    """Whether a trial has a value, also one of other processes."""
    if (refresh := getattr(optimizer, "refresh", None)) is not None:  # that of a study
        refresh()
    return any(trial.y is not None or trial.outputs or trial.curve for trial in optimizer.trials)


def _mistake(answer: Any, error: Exception, learns: bool, goals: Goals) -> str:
    """Say what is wrong with a refused answer, and the remedy."""
    if isinstance(answer, Failure):
        return f"{error}; {LEARN_FROM_FAILURES}"
    y = answer.y if isinstance(answer, Measured) else answer
    if isinstance(y, Mapping):
        return str(error) if failure_of(answer) is None else f"{error}; {LEARN_FROM_FAILURES}"
    expected = f"a dict of outputs, {goals.example}" if goals.named else _number_instead_of(y)
    value = number_of(y)
    if value is not None and math.isfinite(value):
        return f"it must return {expected}" if expected else str(error)
    if value is not None:
        return f"it must return {expected}; {LEARN_FROM_FAILURES}"
    why = "; a function without a return statement returns None" if y is None else ""
    return f"it must return {expected}{why}; {LEARNED if learns else NO_VALUE}"


def _number_instead_of(y: Any) -> str:
    """Return what to return instead of y where that is one number, as text; nothing if it is one."""
    value = number_of(y)
    if value is not None and math.isfinite(value):
        return ""
    if isinstance(y, np.ndarray) and y.size == 1:
        return "one finite number, not an array: return y.item()"
    if isinstance(y, list | tuple) and len(y) == 1:
        return "one finite number, not a list: return y[0]"
    if y.has_several if isinstance(y, NoNumber) else has_several(y):
        return ONE_VALUE.removeprefix("give ")
    return "one finite number"


class Evaluation:
    """f(x) in a subprocess. Where the system can fork, nothing is copied, and f may be any function.

    `timeout` counts seconds from `start`; None for no limit.
    """

    def __init__(self, f: Callable[[Any], Any], x: Any, timeout: float | None) -> None:
        import multiprocessing  # only where it is needed

        methods = multiprocessing.get_all_start_methods()
        context: Any = multiprocessing.get_context("fork" if "fork" in methods else None)
        self._channel = ResultChannel(context, forks="fork" in methods)
        seed_generators = split_generators(f) if "fork" in methods else None
        self._process = context.Process(target=_evaluate_and_send, args=(f, x, self._channel.sender, seed_generators))
        self._timeout = timeout
        self._deadline: float | None = None
        self._asked = 0.0  # when a value was taken whose answer is due
        self._is_stopped = False

    def start(self) -> None:
        """Start the process. Ctrl-C acts afterwards, because exceptions in the callbacks of a fork are discarded."""
        with uninterrupted():
            self._start()

    def _start(self) -> None:
        self._deadline = None if self._timeout is None else time.monotonic() + self._timeout
        with warnings.catch_warnings():  # about forking a process with threads: those of BLAS can cope
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process.start()
        self._channel.close_sender()

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the timeout, with a little more once its message has begun; None if there is no limit."""
        if self._deadline is None:
            return None
        end = self._deadline + (ARRIVAL if self._channel.has_begun else 0.0)
        return max(0.0, end - time.monotonic())

    @property
    def is_over(self) -> bool:
        """Whether there is a result: a value, an exception, a dead process or a timeout. This never blocks."""
        ended = _has_ended(self._process)  # first, because its message is complete by then
        return self._channel.message() is not None or ended or self.seconds_left == 0.0

    def wait(self) -> None:
        """Wait until it is over."""
        while not self.is_over:
            wait_for_news([self], TICK)

    def yielded(self) -> tuple[Any] | None:
        """Take what a generator has yielded and return it in a tuple; None if there is nothing. An answer is due."""
        message = self._channel.message()
        if message is None or not message.startswith(YIELDED):
            return None
        self._channel.take()
        self._asked = time.monotonic()
        return (_decode(message),)

    def answer(self, *, goes_on: bool) -> None:
        """Say whether a generator goes on. The time that this took does not count for its timeout."""
        now = time.monotonic()
        if self._deadline is not None:
            self._deadline += now - self._asked
        if not goes_on:
            self._is_stopped = True
            self._deadline = min(self._deadline or math.inf, now + CLEAN_UP)
        self._channel.answer(goes_on=goes_on)

    def result(self) -> Any:
        """Return what f returned, or raise `TimedOut`, `WorkerDied` or `RaisedInProcess`. The process is ended.

        A generator that was stopped has its values already, so neither its death nor a timeout is an error.
        """
        ended, message, exit_code = False, None, None
        try:
            ended = _has_ended(self._process)
            message = self._channel.message()
            if message is not None and message.startswith(YIELDED):  # it came after the timeout
                message = None
        finally:
            exit_code = self.end(LINGER if message is not None else 0.0)
        if message is not None:
            return _decode(message)
        if self._is_stopped:
            return CurveEnd()
        if ended:
            raise WorkerDied(f"the process of f ended with exit code {exit_code}")
        raise TimedOut(f"timeout: f took longer than {self._timeout:g} s")

    def end(self, seconds: float = 0.0) -> int | None:
        """Kill the process and all that it has started, unless it ends in this many seconds. Return its exit code."""
        if self._process is None:
            return None
        process, self._process = self._process, None
        exit_code = None if process.pid is None else _end(process, seconds)  # without a number it was not started
        self._channel.close()
        return exit_code

    @property
    def pipe(self) -> Any:
        """The pipe by which news arrives; None once f has closed it."""
        return self._channel.pipe if self._channel.is_open else None


def wait_for_news(evaluations: Iterable[Evaluation], seconds: float) -> None:
    """Wait until one of the evaluations may be over, at most for this many seconds.

    Exit codes must be polled, because a surviving grandchild keeps a pipe open, and f may have closed its own.
    """
    from multiprocessing.connection import wait

    pipes = []
    for evaluation in evaluations:
        left = evaluation.seconds_left
        seconds = seconds if left is None else min(seconds, left)
        if evaluation.pipe is None:
            seconds = min(seconds, SHORT_TICK)
        else:
            pipes.append(evaluation.pipe)
    if pipes:
        wait(pipes, max(0.0, seconds))
    else:
        time.sleep(max(0.0, seconds))


def in_process(f: Callable[[Any], Any], timeout: float, x: Any, retries: int = 0) -> Any:
    """Return f(x), computed in a process that is killed after `timeout` seconds; a RemoteGenerator if f is a generator.

    The process and all that it has started are also killed when this process is interrupted. A process that crashes, as
    a simulation may, raises `WorkerDied` here. After a timeout or a crash it is repeated `retries` times, and the last
    of several errors says which attempt it was.
    """
    generator = RemoteGenerator(partial(Evaluation, f, x, timeout), retries)
    try:
        answer = generator.advance()
        if isinstance(answer, CurveEnd):
            return iter_nothing()
        if not generator.is_waiting:
            return answer
        generator.put_back(answer)
        return generator
    finally:
        if not generator.is_waiting:
            generator.abandon()


def iter_nothing() -> Generator[Any, None, None]:
    """Return a generator that yields nothing."""
    yield from ()


class RemoteGenerator(Generator[Any, None, None]):
    """What f yields in a subprocess, as a generator of this process. f starts over after a timeout or a crash."""

    def __init__(self, start: Callable[[], Evaluation], retries: int) -> None:
        self._make, self._retries = start, retries
        self._evaluation: Evaluation | None = None
        self._first: list[Any] = []  # what was put back
        self.attempt = 0
        self.is_waiting = False  # for an answer

    def advance(self) -> Any:
        """Wait for what f yields or returns next. `is_waiting` says which it was."""
        if self._evaluation is not None and self.is_waiting:
            self.is_waiting = False
            self._evaluation.answer(goes_on=True)
        while True:
            try:
                if self._evaluation is None:
                    self._evaluation = self._make()
                    self._evaluation.start()
                self._evaluation.wait()
                if (item := self._evaluation.yielded()) is not None:
                    self.is_waiting = True
                    return item[0]
                return self._evaluation.result()
            except (TimedOut, WorkerDied) as error:
                self.abandon()
                self.attempt += 1
                if self.attempt > self._retries:
                    raise error if self.attempt == 1 else type(error)(f"{error} (attempt {self.attempt})") from None

    def put_back(self, item: Any) -> None:
        """Let the next item be this one, which `advance` has returned."""
        self._first.append(item)

    def __next__(self) -> Any:
        if self._first:
            return self._first.pop()
        item = self.advance()
        if not self.is_waiting:
            self.abandon()
            raise StopIteration
        return item

    def send(self, value: None) -> Any:
        return next(self)

    def throw(self, *error: Any) -> Any:
        self.abandon()
        raise error[0]

    def close(self) -> None:
        """Tell f to stop, and wait until it has cleaned up."""
        evaluation, self.is_waiting = self._evaluation, False
        if evaluation is None:
            return
        try:
            evaluation.answer(goes_on=False)
            evaluation.wait()
            evaluation.result()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Kill the process."""
        evaluation, self._evaluation, self.is_waiting = self._evaluation, None, False
        if evaluation is not None:
            evaluation.end()


def _evaluate_and_send(
    f: Callable[[Any], Any], x: Any, sender: ResultSender, seed_generators: Callable[[], None] | None
) -> None:
    """Evaluate in the new process and send the result."""
    import json

    sender.open()
    if hasattr(os, "setsid"):
        os.setsid()  # its own group, which Ctrl-C does not reach and which can be killed as a whole
    processes.adopt_orphans()
    make_read_only()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    try:
        if seed_generators is not None:
            seed_generators()
        answer = f(x)
        message = _send_all(answer, sender) if isinstance(answer, Generator) else _encode(answer)
    except EvaluationFailed as error:
        message = _encode(error.failure)
    except BaseException as error:
        message = ("raised", f"{type(error).__name__}: {error_message(error)}")
    sender.send(json.dumps(message).encode())
    if sender.is_mine:  # not a child that f has forked and that has returned, too
        processes.terminate_descendants()


def _send_all(generator: Generator[Any, Any, Any], sender: ResultSender) -> tuple[str, Any]:
    """Send what a generator yields, and wait for an answer after each value. Return the message of its end."""
    import json

    for item in generator:
        sender.send(json.dumps(("yielded", _encode_item(item))).encode())
        if not sender.answer():
            generator.close()
            break
    return "end", None


def _encode_item(item: Any) -> tuple[str, Any]:
    """Encode what a generator yielded: a step and its value, or anything else by its repr."""
    if not isinstance(item, tuple | list) or len(item) != 2:
        return "other", (shown(item), has_several(item))
    step, value = item
    is_whole = isinstance(step, int | np.integer) and not isinstance(step, bool)
    return "pair", (int(step) if is_whole else [shown(step), False], _encode(value))


def _decode_item(kind: str, content: Any) -> Any:
    if kind == "other":
        return NoNumber(*content)
    step, value = content
    return (NoNumber(*step) if isinstance(step, list) else step, _decode_value(*value))


def _decode(message: bytes) -> Any:
    """Return what f returned or yielded, or raise what it raised."""
    import json

    try:
        kind, content = json.loads(message)
    except ValueError:  # f has written into the middle of a long message
        raise RaisedInProcess("the result of f cannot be read: f wrote into the pipe of its process") from None
    if kind == "yielded":
        return _decode_item(*content)
    if kind == "end":
        return CurveEnd()
    if kind == "drained":
        return Drained(tuple(_decode_item(*item) for item in content[0]), content[1])
    return _decode_value(kind, content)


def _decode_value(kind: str, content: Any) -> Any:
    if kind == "value":
        return float.fromhex(content)
    if kind == "measured":
        y, noise_var, *constraints = map(float.fromhex, content)
        return Measured(y, noise_var, tuple(constraints))
    if kind == "outputs":
        values, variances = ({name: _decode_number(number) for name, number in part.items()} for part in content[:2])
        return Measured(values, variances, tuple(map(_decode_number, content[2]))) if variances else values
    if kind == "failure":
        return Failure(*content)
    if kind == "other":
        return NoNumber(*content)
    raise RaisedInProcess(content)


def _encode(y: Any) -> tuple[str, Any]:
    """Encode what f returned for JSON without loss: floats as hexadecimal text."""
    if isinstance(y, Failure):
        return "failure", tuple(y)
    if isinstance(y, Drained):
        return "drained", ([_encode_item(item) for item in y.items], y.error)
    if (outputs := _outputs(y)) is not None:
        return "outputs", outputs
    if isinstance(y, Measured):
        numbers = [number_of(number) for number in (y.y, y.noise_var, *y.constraints)]
        return (
            ("other", (shown(y), False))
            if None in numbers
            else ("measured", [number.hex() for number in numbers if number is not None])
        )
    value = number_of(y)
    return ("other", (shown(y), has_several(y))) if value is None else ("value", value.hex())


def _outputs(y: Any) -> tuple[dict[str, Any], dict[str, Any], list[Any]] | None:
    """Return outputs, their noise variances and constraints for JSON; None if y is not a dict by name."""
    values, variances, constraints = y if isinstance(y, Measured) else (y, {}, ())
    if not isinstance(values, Mapping):
        return None
    variances = variances if isinstance(variances, Mapping) else dict.fromkeys(values, variances)
    if not all(isinstance(name, str) for name in (*values, *variances)):
        return None
    encoded = [{str(name): _encode_number(number) for name, number in part.items()} for part in (values, variances)]
    return encoded[0], encoded[1], [_encode_number(number) for number in constraints]


def _encode_number(value: Any) -> Any:
    """Return hexadecimal text, or a list with the repr of what is not a number."""
    number = number_of(value)
    return [shown(value), has_several(value)] if number is None else number.hex()


def _decode_number(encoded: Any) -> Any:
    return NoNumber(*encoded) if isinstance(encoded, list) else float.fromhex(encoded)


def _has_ended(process: Any) -> bool:
    """Return whether a process has ended. Where possible it is not reaped yet, so that its number is not reused."""
    if process.pid is None:
        return False
    state = processes.state_of_child(process.pid)
    return process.exitcode is not None if state is None else state != "running"


def _end(process: Any, seconds: float) -> int | None:
    """Kill a process and its group, and all that it has started if it has not ended after this many seconds.

    `Process.join` is of no use: if f has closed the pipe that announces the end of its process, it waits without limit.
    """
    _wait_for_end(process, seconds)
    state = processes.state_of_child(process.pid)
    if os.name != "posix":
        process.kill()
    elif state == "ended":  # not reaped: no other group can have its number
        processes.signal_group(process.pid, signal.SIGKILL)
    elif state == "running" or (state is None and process.exitcode is None):
        processes.kill_tree(process.pid)
    _wait_for_end(process, KILLED)
    exit_code: int | None = process.exitcode
    with suppress(ValueError):  # it was reaped by somebody else, or hangs in the system
        process.close()
    return exit_code


def _wait_for_end(process: Any, seconds: float) -> None:
    """Wait until a process has ended, at most for this many seconds."""
    end, delay = time.monotonic() + seconds, 0.0005
    while not _has_ended(process) and time.monotonic() < end:
        time.sleep(delay)
        delay = min(2.0 * delay, SHORT_TICK)


def number_of(y: Any) -> float | None:
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
