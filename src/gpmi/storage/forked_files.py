"""Make the files of studies read-only in forked processes, which inherit every open file of their parent.

A function that is evaluated in a forked process may write into files that are not its own: two bytes into each are
enough to destroy a database. No connection is used in a process other than the one that opened it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from weakref import WeakKeyDictionary

_owners: WeakKeyDictionary[object, Path] = WeakKeyDictionary()  # the files that this process has open, by their owner


def protect(owner: object, path: Path) -> None:
    """Make the database at `path` read-only in processes forked from now on, until `release(owner)`."""
    _owners[owner] = path


def release(owner: object) -> None:
    _owners.pop(owner, None)


def _reopen_read_only() -> None:
    """Replace each descriptor of a database by one that can only be read. Locks stay with the parent process."""
    files = {}
    for path in set(_owners.values()):
        for name in (path.name, f"{path.name}-wal", f"{path.name}-shm", f"{path.name}-journal"):
            with suppress(OSError):
                file = path.with_name(name)
                status = file.stat()
                files[status.st_dev, status.st_ino] = file
    if not files:
        return
    for number in [int(name) for name in os.listdir("/dev/fd") if name.isdigit()]:
        with suppress(OSError):
            status = os.fstat(number)
            found = files.get((status.st_dev, status.st_ino))
            if found is not None:
                readable = os.open(found, os.O_RDONLY)
                os.dup2(readable, number, inheritable=False)
                os.close(readable)


def _after_fork() -> None:
    with suppress(OSError):  # a system that does not list descriptors as files
        _reopen_read_only()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
