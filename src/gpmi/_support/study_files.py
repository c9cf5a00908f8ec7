"""Make the files of studies read-only in the process of an evaluation, which inherits every open file of the run.

A function that is evaluated in a forked process may write into files that are not its own: two bytes into each are
enough to destroy a database. Processes that the user forks are left alone: there a study may be opened anew, and SQLite
then shares the file of its index with the connection that was inherited.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from weakref import WeakKeyDictionary

_owners: WeakKeyDictionary[object, Path] = WeakKeyDictionary()  # the files that this process has open, by their owner


def protect(owner: object, path: Path) -> None:
    """Make the database at `path` read-only in evaluations that are started from now on, until `release(owner)`."""
    _owners[owner] = path


def release(owner: object) -> None:
    _owners.pop(owner, None)


def make_read_only() -> None:
    """Replace each descriptor of a database by one that can only be read. Locks stay with the parent process.

    It does nothing on a system that does not list descriptors as files.
    """
    files = {}
    for path in set(_owners.values()):
        for name in (path.name, f"{path.name}-wal", f"{path.name}-shm", f"{path.name}-journal"):
            with suppress(OSError):
                file = path.with_name(name)
                status = file.stat()
                files[status.st_dev, status.st_ino] = file
    if not files:
        return
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir("/dev/fd")
    for number in [int(name) for name in names if name.isdigit()]:
        with suppress(OSError):
            status = os.fstat(number)
            study_file = files.get((status.st_dev, status.st_ino))
            if study_file is not None:
                readable = os.open(study_file, os.O_RDONLY)
                os.dup2(readable, number, inheritable=False)
                os.close(readable)
