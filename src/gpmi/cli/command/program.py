"""Run one program under limits: of its time and of its output. All that it started ends with it.

All output is read, so that a program never waits for a reader, and only its last part is kept. A program is started in
its own process group, which Ctrl-C at the terminal does not reach and which is ended as a whole. A process that
leaves the group is found by a mark in its environment, where the system shows environments (Linux).
"""

from __future__ import annotations

import math
import os
import selectors
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

from gpmi._support import interrupts, processes

# Our choices, not tuned.
TAIL = 64 * 1024  # bytes of each output that are kept: some hundred lines
CHUNK = 64 * 1024  # bytes read at a time: the capacity of a pipe on Linux
LONGEST = 1024  # bytes of a line that may be a step and its value
TICK = 0.05  # polling interval in seconds for the end of the process, while it writes nothing
GRACE = 3.0  # seconds between SIGTERM and SIGKILL, for the process to clean up
DRAIN = 1.0  # seconds for which other processes may hold the output open after the program itself has ended
MARK = "GPMI_EVALUATION"  # the environment variable that marks the processes of one evaluation


class Ended(NamedTuple):
    """How a process ended, and the last part of what it wrote."""

    code: int  # the exit code; -n if signal n ended it
    timed_out: bool
    output: bytes
    errors: bytes
    cut: bool  # whether the beginning of the output was dropped


class Tail:
    """Keeps the last TAIL bytes of a stream, with at most twice as many in memory."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.cut = False

    def add(self, data: bytes) -> None:
        self._data += data
        if len(self._data) > 2 * TAIL:
            self._shorten()

    def _shorten(self) -> None:
        self.cut = True
        del self._data[:-TAIL]

    @property
    def all(self) -> bytes:
        if len(self._data) > TAIL:
            self._shorten()
        return bytes(self._data)


class Lines(Tail):
    """Keeps the end of a stream as well, and its complete lines until they are taken.

    A line of more than LONGEST bytes is not kept here: no number is that long.
    """

    def __init__(self) -> None:
        super().__init__()
        self._line = bytearray()  # the beginning of a line
        self._complete: list[bytes] = []

    def add(self, data: bytes) -> None:
        super().add(data)
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._extend(end)
            self.end_line()
        self._extend(rest)

    def _extend(self, part: bytes) -> None:
        self._line += part[: LONGEST + 1 - len(self._line)]

    def end_line(self) -> None:
        """Complete the last line, if it has begun."""
        if 0 < len(self._line) <= LONGEST:
            self._complete.append(bytes(self._line))
        self._line.clear()

    def take(self) -> list[bytes]:
        """Return the lines that were completed since, without their ends."""
        taken, self._complete = self._complete, []
        return taken


class Cancelled(Exception):
    """The evaluation was cancelled, and its process was ended."""


Process: TypeAlias = subprocess.Popen[bytes]
Readers: TypeAlias = dict[IO[bytes], Tail]


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float | None,
    cancelled: Callable[[], bool],
) -> Ended:
    """Run a program to its end, or for `timeout` seconds. An OSError or ValueError means that it cannot be started.

    Whatever happens, Ctrl-C included, its process group is ended before this function returns or raises.
    """
    running = Running(Tail())
    try:
        running.start(argv, cwd, env, timeout)
        for _ in running.follow(cancelled):
            pass
    finally:
        running.end()
    return running.ended


def lines(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float | None,
    cancelled: Callable[[], bool],
) -> Generator[list[bytes], None, Ended]:
    """Run a program as `run` does, and yield the lines of its output while it runs, some at a time.

    When the generator is closed, the process group is ended as by a timeout.
    """
    output = Lines()
    running = Running(output)
    try:
        running.start(argv, cwd, env, timeout)
        for _ in running.follow(cancelled):
            if taken := output.take():
                yield taken
    finally:
        running.end()
    output.end_line()
    if taken := output.take():
        yield taken
    return running.ended


class Running:
    """A program that runs, with its process group and its output."""

    def __init__(self, output: Tail) -> None:
        self._mark = uuid.uuid4().hex
        self._output, self._errors = output, Tail()
        self._process: Process | None = None
        self._readers: Readers = {}
        self._deadline = math.inf
        self._in_time = False
        self._clean = False  # whether it has ended in time and no other process holds its output open

    def start(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], timeout: float | None) -> None:
        self._deadline = math.inf if timeout is None else time.monotonic() + timeout
        with interrupts.uninterrupted():  # a KeyboardInterrupt inside Popen would leave the process behind
            self._process = process = subprocess.Popen(
                list(argv),
                cwd=cwd,
                env={**env, MARK: self._mark},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                bufsize=0,
            )
            assert process.stdout is not None and process.stderr is not None
            self._readers |= {process.stdout: self._output, process.stderr: self._errors}

    def follow(self, cancelled: Callable[[], bool]) -> Iterator[None]:
        """Read the output to the end, or until the deadline; yield now and then."""
        assert self._process is not None
        self._in_time = yield from _follow(self._process, self._readers, self._deadline, cancelled)
        self._clean = self._in_time and not self._readers

    def end(self) -> None:
        """End the process group, if the program was started."""
        if self._process is not None:
            with self._process:  # closes its pipes
                _end(self._process, self._readers, self._mark, everything=not self._clean)

    @property
    def ended(self) -> Ended:
        """How it ended."""
        assert self._process is not None
        return Ended(self._process.returncode, not self._in_time, self._output.all, self._errors.all, self._output.cut)


def _follow(
    process: Process, readers: Readers, deadline: float, cancelled: Callable[[], bool]
) -> Generator[None, None, bool]:
    """Read the output of a process until it has ended. Return False if it has not ended by the deadline.

    Outputs that are closed are removed from `readers`. One that outlives the process stays there. Yield after reading.
    """
    ended: float | None = None
    with selectors.DefaultSelector() as selector:
        for pipe in readers:
            selector.register(pipe, selectors.EVENT_READ)
        while True:
            now = time.monotonic()
            if ended is None and _has_ended(process):
                ended = now
            if ended is not None and (not readers or now > ended + DRAIN):
                return True
            if ended is None and now > deadline:
                return False
            if cancelled():
                raise Cancelled
            if not readers:
                time.sleep(TICK)
            for key, _ in selector.select(TICK) if readers else ():
                ready: Any = key.fileobj
                data = os.read(ready.fileno(), CHUNK)
                if data:
                    readers[ready].add(data)
                else:
                    selector.unregister(ready)
                    del readers[ready]
            yield


def _has_ended(process: Process) -> bool:
    """Return whether a process has ended. Where possible it is not reaped yet, so that its number is not reused."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end(process: Process, readers: Readers, mark: str, *, everything: bool) -> None:
    """End a process and its group, with time to clean up. With `everything`, end processes outside the group, too."""
    try:
        if not _has_ended(process):
            processes.signal_group(process.pid, signal.SIGTERM)
            for _ in _follow(process, readers, time.monotonic() + GRACE, lambda: False):
                pass
    finally:
        if everything and process.returncode is None:  # not reaped: no other process can have its number
            processes.kill_tree(process.pid, f"{MARK}={mark}")
        else:
            processes.signal_group(process.pid, signal.SIGKILL)
        process.wait()
