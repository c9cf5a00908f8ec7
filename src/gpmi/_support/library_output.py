"""Discard the text that a C library prints to standard output.

HiGHS 1.12, which SciPy 1.17 contains, calls printf when it repairs a solution, whatever its options say. Such text
would precede the JSON of a command or be mixed with the output of a user's program.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import NamedTuple

from gpmi._support.interrupts import uninterrupted

_LOST = 4096  # bytes that the stream accepts; it refuses further ones, and printf then writes nothing
_lock = Lock()
_callers = 0  # running calls that discard; the last one restores the stream
_original: int | None = None


class _Streams(NamedTuple):
    """The variable `stdout` of the C library, and a stream in memory to put there."""

    stdout: ctypes.c_void_p
    memory: int


@cache
def _streams() -> _Streams | None:
    """Return the streams; None if the C library has no such variable, or one that is constant, as in musl."""
    try:
        libc = ctypes.CDLL(None)
        name = "stdout" if hasattr(libc, "gnu_get_libc_version") else "__stdoutp"  # of glibc, or of macOS
        stdout = ctypes.c_void_p.in_dll(libc, name)
        libc.fmemopen.restype, libc.fmemopen.argtypes = (
            ctypes.c_void_p,
            [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p],
        )
        memory = libc.fmemopen(None, _LOST, b"w")
    except (AttributeError, OSError, TypeError, ValueError):  # TypeError: Windows has no CDLL(None)
        return None
    return _Streams(stdout, memory) if memory else None


@contextmanager
def c_output_discarded() -> Iterator[None]:
    """Discard what C code prints while the block runs.

    Python writes to descriptor 1 directly, without the streams of C. The descriptor is not touched, so the output of
    other threads and of processes that they start meanwhile is not affected. Ctrl-C acts after the block.
    """
    global _callers, _original
    streams = _streams()
    if streams is None:
        yield
        return
    with uninterrupted():  # C code cannot be interrupted anyway, and the stream must be restored
        with _lock:
            if not _callers:
                _original, streams.stdout.value = streams.stdout.value, streams.memory
            _callers += 1
        try:
            yield
        finally:
            with _lock:
                _callers -= 1
                if not _callers:
                    streams.stdout.value = _original


def _restore_in_child() -> None:
    """Restore the stream in a forked process: the thread that would do so exists only in the parent."""
    global _lock, _callers
    streams = _streams() if _callers else None
    if streams is not None:
        streams.stdout.value = _original
    _lock, _callers = Lock(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restore_in_child)
