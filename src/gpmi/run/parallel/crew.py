"""Who evaluates several points at the same time: processes of our own, or any executor.

A crew is given points with the numbers of their trials, because two of them may be equal, and gives back what became of
them in the order in which they finished. `wait` may be interrupted anywhere: nothing is taken there, nothing is lost.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import suppress
from functools import partial
from threading import Event
from typing import Any, Literal, NamedTuple

from gpmi._support import checks
from gpmi._support.types import Point
from gpmi.run.evaluation import TICK, Died, Evaluation, Failure, guarded

MOST = 10_000  # evaluations at the same time; our choice


class Done(NamedTuple):
    """What became of an evaluation: an answer of f, an exception, or nothing because its worker died."""

    number: int  # of its trial
    answer: Any = None
    error: BaseException | None = None
    lost: Literal["one", "all"] | None = None  # "all": with all others at work, so nobody knows which was to blame


class Crew(ABC):
    """Evaluates points at the same time, at most `size` of them."""

    size: int

    @abstractmethod
    def start(self, number: int, x: Point) -> None:
        """Begin to evaluate a point."""

    @abstractmethod
    def wait(self, seconds: float | None = None) -> None:
        """Until there is something to take, or for so many seconds."""

    @abstractmethod
    def take(self) -> Done | None:
        """The first of those that are finished and were not taken yet; None if there is none."""

    @abstractmethod
    def close(self) -> None:
        """End what can be ended."""


class Processes(Crew):
    """Each evaluation in a process of its own, which is forked where the system can: f may be any function."""

    def __init__(self, f: Callable[[Any], Any], size: int, *, learns: bool, timeout: float | None) -> None:
        self.size = size
        self._f, self._learns, self._timeout = f, learns, timeout
        self._running: dict[int, Evaluation] = {}
        self._over: deque[int] = deque()  # of the running ones, in the order in which they finished

    def start(self, number: int, x: Point) -> None:
        evaluation = Evaluation(self._f, x, self._timeout)
        evaluation.begin()
        self._running[number] = evaluation

    def wait(self, seconds: float | None = None) -> None:
        from multiprocessing.connection import wait

        end = math.inf if seconds is None else time.monotonic() + seconds
        while not self._look() and (now := time.monotonic()) < end:
            left = [s for one in self._running.values() if (s := one.seconds_left) is not None]
            wait([one.receiver for one in self._running.values()], min(TICK, end - now, *left))

    def _look(self) -> bool:
        """Whether some are over. Those that finished between two looks are taken in the order of their numbers."""
        self._over.extend(n for n, one in self._running.items() if n not in self._over and one.is_over)
        return bool(self._over)

    def take(self) -> Done | None:
        if not self._look():
            return None
        number = self._over.popleft()
        evaluation = self._running.pop(number)
        try:
            return Done(number, evaluation.result())
        except Died as error:
            return Done(number, error=error, lost="one")
        except Exception as error:
            return Done(number, Failure(str(error))) if self._learns else Done(number, error=error)

    def close(self) -> None:
        while self._running:
            self._running.popitem()[1].end()


class Pool(Crew):
    """Evaluations by an executor of `concurrent.futures`, or what has its `submit`: Dask, MPI, loky and others.

    With a function that makes executors, one that is broken by the death of a worker is replaced.
    """

    def __init__(
        self, f: Callable[[Any], Any], executor: Any, size: int, *, learns: bool, timeout: float | None
    ) -> None:
        self.size = size
        self._call = guarded(f, learn=learns, timeout=timeout)
        self._make: Callable[[], Any] | None = None if hasattr(executor, "submit") else executor
        self._executor = _checked(executor()) if self._make is not None else executor
        self._futures: dict[int, tuple[Future[Any], Any]] = {}  # with the executor of each
        self._finished: deque[int] = deque()
        self._news = Event()

    def start(self, number: int, x: Point) -> None:
        try:
            future = self._executor.submit(self._call, x)
        except BrokenExecutor as error:
            self._replace(self._executor, error)
            future = self._executor.submit(self._call, x)
        self._futures[number] = future, self._executor
        future.add_done_callback(partial(self._finish, number))

    def _finish(self, number: int, future: Any) -> None:
        """Called in some thread when a future is done."""
        self._finished.append(number)
        self._news.set()

    def wait(self, seconds: float | None = None) -> None:
        end = None if seconds is None else time.monotonic() + seconds
        while not self._finished:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0.0:
                return
            self._news.wait(left)
            self._news.clear()

    def take(self) -> Done | None:
        if not self._finished:
            return None
        number = self._finished.popleft()
        future, executor = self._futures.pop(number)
        try:
            error = future.exception(0)
        except CancelledError as cancelled:
            return Done(number, error=cancelled, lost="one")
        if isinstance(error, BrokenExecutor):
            self._replace(executor, error)
            return Done(number, error=error, lost="all")
        if error is not None and _is_lost_by_dask(error):
            return Done(number, error=error, lost="one")
        return Done(number, None if error else future.result(0), error)

    def _replace(self, broken: Any, error: BaseException) -> None:
        """A new executor in the place of a broken one; the exception is raised on if there is nothing to make it."""
        if self._make is None:
            error.add_note("gpmi: this executor cannot go on; give a function that makes one, lambda: Executor(...)")
            raise error
        if broken is self._executor:
            broken.shutdown(wait=False)
            self._executor = _checked(self._make())

    def close(self) -> None:
        for future, _ in self._futures.values():
            future.cancel()
        if self._make is not None:
            with suppress(Exception):  # the run is over, and what was evaluated is kept
                self._executor.shutdown(wait=not self._futures, cancel_futures=True)


def _is_lost_by_dask(error: BaseException) -> bool:
    """Whether Dask has given up a task whose workers died. Its classes are not imported for this."""
    return type(error).__name__ == "KilledWorker" and type(error).__module__.startswith("distributed")


def _checked(executor: Any) -> Any:
    if not hasattr(executor, "submit"):
        raise TypeError(f"executor() returned {checks.shown(executor)}; it must return an executor, with `submit`")
    return executor


class Staff(NamedTuple):
    """Who is to evaluate: processes if there is no executor."""

    size: int
    executor: Executor | Callable[[], Executor] | None = None

    def crew(self, f: Callable[[Any], Any], *, learns: bool, timeout: float | None) -> Crew:
        if self.executor is None:
            return Processes(f, self.size, learns=learns, timeout=timeout)
        return Pool(f, self.executor, self.size, learns=learns, timeout=timeout)


def staff_of(workers: Any, executor: Any, in_flight: Any) -> Staff | None:
    """Who evaluates, from the arguments of a run; None if it makes one evaluation after the other."""
    if executor is None:
        if in_flight is not None:
            raise TypeError(f"in_flight is {checks.shown(in_flight)}, but there is no executor; give workers instead")
        return None if workers is None else Staff(checks.whole("workers", workers, 1, MOST))
    if workers is not None:
        raise TypeError(f"workers is {checks.shown(workers)}, but there is an executor; give in_flight instead")
    if not hasattr(executor, "submit") and not callable(executor):
        raise TypeError(f"executor is {checks.shown(executor)}; give one of concurrent.futures, or what makes one")
    if in_flight is None:
        raise TypeError("in_flight is None; with an executor give the number of points to evaluate at the same time")
    return Staff(checks.whole("in_flight", in_flight, 1, MOST), executor)
