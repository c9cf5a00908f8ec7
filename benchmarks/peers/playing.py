"""How a tool is run: ask and tell until the budget is spent, in a process of its own with a limit on its CPU time."""

from __future__ import annotations

import multiprocessing
import resource
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

import harness
from problems.functions import Point

from . import optimisers
from .optimisers import Peer

LIMIT = 15 * 60  # seconds of CPU for a run: a busy machine fails no run


def play(
    peer: Peer, observe: Callable[[Point], float], evaluations: int, told: tuple[Sequence[Point], Sequence[float]]
) -> tuple[float, str]:
    """Ask for so many points and tell their values; return the CPU seconds of ask and tell, and "done" or the reason.

    `told` are points and values to begin with, or two empty lists.
    """
    cpu, left = 0.0, evaluations
    try:
        while True:
            start = time.process_time()
            if told[0]:
                peer.tell(*told)
            x = peer.ask() if left else None
            cpu += time.process_time() - start
            if x is None:
                return cpu, "done"
            told, left = ([x], [observe(x)]), left - 1
    except Exception as error:
        return cpu, f"failed: {type(error).__name__}: {error}".replace("\n", " ")[:200]


def in_turn(runs: Sequence[Any], store: Callable[[Any], None], fail: Callable[[Any, str], None]) -> None:
    """Play runs, which are tuples with a `tool`, one after another, each in a process of its own.

    `store` plays a run and stores its row; `fail` stores the reason why a process ended without a row.
    """
    for run in runs:
        begin = time.monotonic()
        optimisers.make(run.tool, [(0.0, 1.0)], 0)  # imports its library here, not in every process
        ended = alone(store, run)
        if ended != "done":
            fail(run, ended)
        seconds = time.monotonic() - begin
        harness.say(f"{time.strftime('%H:%M:%S')} {', '.join(map(str, run))}: {ended}, {seconds:.0f} s")


def alone(work: Callable[..., None], *arguments: Any) -> str:
    """Do the work in a forked process and return "done", or why it ended: libraries imported before are there."""
    process = multiprocessing.get_context("fork").Process(target=_limited, args=(work, *arguments))
    process.start()
    process.join()
    if process.exitcode == -signal.SIGXCPU:
        return f"failed: more than {LIMIT} s"
    return "done" if process.exitcode == 0 else f"failed: exit code {process.exitcode}"


def _limited(work: Callable[..., None], *arguments: Any) -> None:
    used = int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (used + LIMIT, used + 2 * LIMIT))
    work(*arguments)
