"""Pools that evaluate several points at the same time: processes of our own, or any executor.

A pool identifies a point by the number of its trial, because two points may be equal. It returns evaluations in the
order in which they finished. `wait` may be interrupted at any moment: it takes no result, so none is lost.
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
from gpmi.run.evaluation import TICK, Evaluation, Failure, TimedOut, WorkerDied, drained, evaluator, wait_for_news

MOST_WORKERS = 10_000  # evaluations at the same time; our choice


class Finished(NamedTuple):
    """The end of an evaluation: what f returned, an exception, or a worker that died."""

    number: int  # of its trial
    answer: Any = None
    error: BaseException | None = None
    # "all": all workers died together, so the culprit is unknown. "timeout": it took too long and was killed.
    lost: Literal["one", "all", "timeout"] | None = None


class Yielded(NamedTuple):
    """What a generator has yielded in an evaluation. It waits for `Pool.answer`."""

    number: int  # of its trial
    item: Any


class Pool(ABC):
    """Evaluates up to `size` points at the same time."""

    size: int

    @abstractmethod
    def start(self, number: int, x: Point) -> None:
        """Start to evaluate a point."""

    @abstractmethod
    def wait(self, seconds: float | None = None) -> None:
        """Wait until an evaluation has finished, or for this many seconds."""

    @abstractmethod
    def take(self) -> Finished | Yielded | None:
        """Return the first evaluation that has finished or yielded and was not taken yet; None if there is none."""

    def answer(self, number: int, *, goes_on: bool) -> None:
        """Say whether an evaluation that has yielded goes on. One that does not may clean up before it finishes."""
        raise NotImplementedError

    def abandon(self, number: int) -> None:
        """Kill an evaluation that has yielded something of no use."""
        raise NotImplementedError

    @abstractmethod
    def close(self) -> None:
        """Cancel or end all evaluations, as far as that is possible."""


class ProcessPool(Pool):
    """Runs each evaluation in a subprocess. Where the system can fork, f may be any function."""

    def __init__(self, f: Callable[[Any], Any], size: int, *, learns: bool, timeout: float | None) -> None:
        self.size = size
        self._f, self._learns, self._timeout = f, learns, timeout
        self._running: dict[int, Evaluation] = {}
        self._over: deque[int] = deque()  # numbers of running trials that have finished, in that order

    def start(self, number: int, x: Point) -> None:
        evaluation = Evaluation(self._f, x, self._timeout)
        evaluation.start()
        self._running[number] = evaluation

    def wait(self, seconds: float | None = None) -> None:
        end = math.inf if seconds is None else time.monotonic() + seconds
        while not self._poll() and (now := time.monotonic()) < end:
            wait_for_news(self._running.values(), min(TICK, end - now))

    def _poll(self) -> bool:
        """Return whether some are over. Those that finished between two polls are ordered by their numbers."""
        self._over.extend(n for n, evaluation in self._running.items() if n not in self._over and evaluation.is_over)
        return bool(self._over)

    def take(self) -> Finished | Yielded | None:
        if not self._poll():
            return None
        number = self._over.popleft()
        if (item := self._running[number].yielded()) is not None:
            return Yielded(number, item[0])
        evaluation = self._running.pop(number)
        try:
            return Finished(number, evaluation.result())
        except WorkerDied as error:
            return Finished(number, error=error, lost="one")
        except TimedOut as error:
            return Finished(number, error=error, lost="timeout")
        except Exception as error:
            return Finished(number, Failure(str(error))) if self._learns else Finished(number, error=error)

    def answer(self, number: int, *, goes_on: bool) -> None:
        self._running[number].answer(goes_on=goes_on)

    def abandon(self, number: int) -> None:
        self._running.pop(number).end()

    def close(self) -> None:
        while self._running:
            self._running.popitem()[1].end()


class ExecutorPool(Pool):
    """Evaluates by an executor of `concurrent.futures`, or anything with its `submit`: Dask, MPI, loky and others.

    Given an executor factory, it replaces a broken executor, whose worker died.
    """

    def __init__(
        self,
        f: Callable[[Any], Any],
        executor: Any,
        size: int,
        *,
        learns: bool,
        timeout: float | None,
        retries: int = 0,
    ) -> None:
        self.size = size
        self._call = evaluator(partial(drained, f), learns=learns, timeout=timeout, retries=retries)
        self._make: Callable[[], Any] | None = None if hasattr(executor, "submit") else executor
        self._executor = _checked(executor()) if self._make is not None else executor
        self._futures: dict[int, tuple[Future[Any], Any]] = {}  # each with its executor
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
        """Note that a future is done. Executors call this in any thread."""
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

    def take(self) -> Finished | Yielded | None:
        if not self._finished:
            return None
        number = self._finished.popleft()
        future, executor = self._futures.pop(number)
        try:
            error = future.exception(0)
        except CancelledError as cancelled:
            return Finished(number, error=cancelled, lost="one")
        if isinstance(error, BrokenExecutor):
            self._replace(executor, error)
            return Finished(number, error=error, lost="all")
        if error is not None and _is_lost_by_dask(error):
            return Finished(number, error=error, lost="one")
        return Finished(number, None if error else future.result(0), error)

    def _replace(self, broken: Any, error: BaseException) -> None:
        """Replace a broken executor by a new one; raise the error if there is no executor factory."""
        if self._make is None:
            error.add_note(
                "gpmi: this executor is broken; pass an executor factory, lambda: Executor(...), to have it replaced"
            )
            raise error
        if broken is self._executor:
            broken.shutdown(wait=False)
            self._executor = _checked(self._make())

    def close(self) -> None:
        for future, _ in self._futures.values():
            future.cancel()
        if self._make is not None:
            with suppress(Exception):  # the run is over and its values are in the log
                self._executor.shutdown(wait=not self._futures, cancel_futures=True)


def _is_lost_by_dask(error: BaseException) -> bool:
    """Return whether Dask has given up a task whose workers died. Dask itself is not imported for this."""
    return type(error).__name__ == "KilledWorker" and type(error).__module__.startswith("distributed")


def _checked(executor: Any) -> Any:
    if not hasattr(executor, "submit"):
        raise TypeError(f"executor() returned {checks.shown(executor)}; it must return an executor, with `submit`")
    return executor


class PoolSettings(NamedTuple):
    """How many evaluations run at the same time, and in which executor; in processes if it is None."""

    size: int
    executor: Executor | Callable[[], Executor] | None = None

    def open(self, f: Callable[[Any], Any], *, learns: bool, timeout: float | None, retries: int = 0) -> Pool:
        """Open the pool. An executor itself repeats what took too long or crashed, `retries` times."""
        if self.executor is None:
            return ProcessPool(f, self.size, learns=learns, timeout=timeout)
        return ExecutorPool(f, self.executor, self.size, learns=learns, timeout=timeout, retries=retries)


def pool_settings(workers: Any, executor: Any, in_flight: Any) -> PoolSettings | None:
    """Validate these arguments of a run; return None if it evaluates one point after the other."""
    if executor is None:
        if in_flight is not None:
            raise TypeError(f"in_flight is {checks.shown(in_flight)}, but there is no executor; give workers instead")
        return None if workers is None else PoolSettings(checks.whole("workers", workers, 1, MOST_WORKERS))
    if workers is not None:
        raise TypeError(f"workers is {checks.shown(workers)}, but there is an executor; give in_flight instead")
    if not hasattr(executor, "submit") and not callable(executor):
        raise TypeError(
            f"executor is {checks.shown(executor)}; give an executor of concurrent.futures, or an executor factory"
        )
    if in_flight is None:
        raise TypeError("in_flight is None; with an executor give the number of points to evaluate at the same time")
    return PoolSettings(checks.whole("in_flight", in_flight, 1, MOST_WORKERS), executor)
