"""Deliveries that wait for the database, in files on the worker's machine: one file each."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from gpmi.storage.errors import StudyError
from gpmi.storage.serialization import text_of


class Outbox:
    """Queued deliveries to one study, shared by all processes on this machine that use the same folder.

    File names contain the identity of the study, so they are found even after its folder was moved. The folder is next
    to the study's file, or the working directory for PostgreSQL, with the system temp directory as fallback. A folder
    of another user, or one that others may write to, is not used.
    """

    def __init__(self, identity: str, file: Path | None) -> None:
        self._key = hashlib.sha256(identity.encode()).hexdigest()[:12]
        near = Path.cwd() / "gpmi-spool" if file is None else file.with_name(file.name + ".spool")
        self._file = file
        self._folders = (near, Path(tempfile.gettempdir()) / f"gpmi-{_user()}.spool")

    def keep(self, delivery: dict[str, Any]) -> Path:
        """Write a delivery to a file that survives a power failure, and return its path.

        The name depends on the whole delivery: two values of one trial have the same token, and both must be kept.
        """
        text = text_of(delivery)
        name = f"{self._key}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
        reasons = []
        for folder in self._folders:
            try:
                folder.mkdir(mode=0o700, exist_ok=True)
                if not self._trusts(folder):
                    raise OSError(f"{folder} belongs to another user, or others may write to it")
                return _written(folder / name, text)
            except OSError as error:
                reasons.append(str(error))
        raise StudyError(
            f"the database is unreachable, and no file can be written either ({'; '.join(reasons)}): "
            f"save this value and call tell() again later: {text}"
        )

    def save_missing(self, entries: list[dict[str, Any]]) -> Path | None:
        """Save entries that are no longer in the log as lines of JSON; return the file, None if none can be written."""
        name, text = f"{self._key}-{uuid.uuid4().hex[:8]}.gone", "".join(f"{text_of(entry)}\n" for entry in entries)
        for folder in self._folders:
            with suppress(OSError):
                folder.mkdir(mode=0o700, exist_ok=True)
                if self._trusts(folder):
                    return _written(folder / name, text)
        return None

    def __iter__(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Yield the waiting deliveries, the oldest first; unreadable files are left alone."""
        paths: list[Path] = []
        for folder in self._folders:
            with suppress(OSError):
                paths += folder.glob(f"{self._key}-*.json") if self._trusts(folder) else ()
        for path in sorted(paths, key=_age):
            with suppress(OSError, ValueError):
                yield path, json.loads(path.read_text(encoding="utf-8"))

    def _trusts(self, folder: Path) -> bool:
        """Whether only this user, or the owner of the study, may write to a folder."""
        if not hasattr(os, "getuid"):
            return True
        status, owners = folder.lstat(), {_user()}
        if self._file is not None and folder == self._folders[0]:
            with suppress(OSError):
                owners.add(self._file.stat().st_uid)
        return stat.S_ISDIR(status.st_mode) and status.st_uid in owners and not status.st_mode & 0o022

    def remove(self, path: Path) -> None:
        """Remove a delivery that is in the database now."""
        with suppress(OSError):
            path.unlink()
            path.parent.rmdir()  # if it is empty

    def set_aside(self, path: Path) -> Path:
        """Rename a delivery that the study refuses, so that it is not tried again."""
        aside = path.with_suffix(".refused")
        with suppress(OSError):
            path.rename(aside)
        return aside


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _written(path: Path, text: str) -> Path:
    draft = path.with_suffix(f".{os.getpid()}.draft")
    try:
        with open(draft, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:  # a full disk may take the name and not the content
        with suppress(OSError):
            draft.unlink(missing_ok=True)
            path.parent.rmdir()  # if it is empty
        raise
    with suppress(OSError):  # not every system can open a folder
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    return path
