"""Find and kill the processes that a process has started, including those that left its process group.

On Linux descendants are found in /proc. An orphan is reparented to PID 1, and is then found only by a mark in its
environment, unless one of its ancestors has called `adopt_orphans`. Elsewhere only the group is killed.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Literal

ROUNDS = 5  # how often processes are looked for, because they may start others meanwhile; our choice
PR_SET_CHILD_SUBREAPER = 36  # the option of Linux's prctl


def adopt_orphans() -> None:
    """Make this process the parent of the orphans among its descendants, where the system can do that."""
    with suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def available_cores() -> int:
    """The number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def end_with_the_parent() -> None:
    """End this worker when its parent was killed; it would wait for work for ever."""
    import multiprocessing
    import threading

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def descendants(process: int) -> list[int]:
    """The running descendants of this process."""
    children: dict[int, list[int]] = {}
    for number in _process_ids():
        with suppress(OSError, ValueError, IndexError):
            state, parent = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[:2]
            if state not in "ZX":
                children.setdefault(int(parent), []).append(number)
    processes, below = list[int](), [process]
    while below:
        next_ones = children.get(below.pop(), [])
        processes += next_ones
        below += next_ones
    return processes


def state_of_child(process: int) -> Literal["running", "ended", "reaped"] | None:
    """The state of a child of this process, which is not reaped here. None where the system cannot say."""
    if not hasattr(os, "waitid"):
        return None
    try:
        ended = os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return "reaped"
    return "running" if ended is None else "ended"


def terminate_descendants() -> None:
    """Send SIGTERM to all processes below this one.

    They may clean up. Python's own helper that removes shared memory ignores the signal and ends by itself.
    """
    before: set[int] = set()
    for _ in range(ROUNDS):
        processes = set(descendants(os.getpid())) - before
        for number in processes:
            _signal(number, signal.SIGTERM)
        if not processes:
            break
        before |= processes


def kill_tree(process: int, mark: str | None = None) -> None:
    """Kill a process, its group and all that it has started. It is stopped first, so that it starts nothing more.

    With a `mark`, "NAME=value", processes that were started with this variable in their environment are killed, too.
    """
    _signal(process, signal.SIGSTOP)
    for _ in range(ROUNDS):
        processes = descendants(process) + ([] if mark is None else _marked(mark))
        for number in processes:
            _signal(number, signal.SIGKILL)
        if not processes:
            break
    signal_group(process, signal.SIGKILL)
    _signal(process, signal.SIGKILL)


def signal_group(process: int, number: signal.Signals) -> None:
    """Send a signal to the process group that this process leads, if there is one."""
    with suppress(AttributeError, ProcessLookupError, PermissionError):  # the system may have no groups
        os.killpg(process, number)


def _process_ids() -> list[int]:
    """All processes; none where the system does not show them as files."""
    with suppress(OSError):
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return []


def _marked(mark: str) -> list[int]:
    return [number for number in _process_ids() if mark.encode() in _environment(number)]


def _environment(process: int) -> list[bytes]:
    """The variables that a process was started with; none where they cannot be read, or it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    return []


def _signal(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(process, number)
