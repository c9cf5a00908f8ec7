"""Threads that share an optimizer take turns."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from gpmi.trials import Log


class HasLog(Protocol):
    """Something with a log, whose lock is that of everything derived from it."""

    _log: Log


Owner = TypeVar("Owner", bound=HasLog)
Returned = TypeVar("Returned")
Arguments = ParamSpec("Arguments")


def locked(
    method: Callable[Concatenate[Owner, Arguments], Returned],
) -> Callable[Concatenate[Owner, Arguments], Returned]:
    """Run the method under the lock of the log, so that threads which share an optimizer take turns."""

    @wraps(method)
    def alone(self: Any, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        with self._log.lock:
            return method(self, *args, **kwargs)

    return alone  # type: ignore[return-value]  # mypy misses that self comes first in both
