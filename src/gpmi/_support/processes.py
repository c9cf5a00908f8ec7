"""What a process has started, found and ended, also what has left its process group. Linux; elsewhere the group alone.

A process that `adopts` gets the orphans among its descendants as children, where they would go to the first process of
the system. So all that it has started stays below it in the table of processes, and can be found there.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

ROUNDS = 5  # how often descendants are looked for: they may start others meanwhile; our choice
ADOPT = 36  # PR_SET_CHILD_SUBREAPER of Linux


def adopt() -> None:
    """Let this process be the parent of the orphans among its descendants, where the system knows that."""
    with suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(ADOPT, 1, 0, 0, 0)


def numbers() -> list[int]:
    """The processes that there are; none where the system does not show them as files."""
    with suppress(OSError):
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return []


def descendants(process: int) -> list[int]:
    """The processes below one in the table, those that have ended left out."""
    children: dict[int, list[int]] = {}
    for number in numbers():
        with suppress(OSError, ValueError, IndexError):
            state, parent = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[:2]
            if state not in "ZX":
                children.setdefault(int(parent), []).append(number)
    found, below = list[int](), [process]
    while below:
        following = children.get(below.pop(), [])
        found += following
        below += following
    return found


def end(process: int) -> None:
    """Kill a process, its group, and all that it has started. It is stopped first, so that it starts nothing more."""
    _signal(process, signal.SIGSTOP)
    for _ in range(ROUNDS):
        found = descendants(process)
        for number in found:
            _signal(number, signal.SIGKILL)
        if not found:
            break
    with suppress(AttributeError, ProcessLookupError, PermissionError):  # no groups here, or it has none of its own yet
        os.killpg(process, signal.SIGKILL)
    _signal(process, signal.SIGKILL)


def _signal(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(process, number)
