"""Folders that files are written to."""

from __future__ import annotations

import tempfile
from pathlib import Path


def writable_folder(name: str, value: Path, folder: Path) -> None:
    """Make `folder` if it does not exist. Refuse the argument `value` if no file can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(
            f"{name} is {str(value)!r}, but {str(folder)!r} cannot be written to ({reason}); give another"
        ) from error
