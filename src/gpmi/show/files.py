"""Whether a result can be written, asked before the time for it is spent."""

import tempfile
from pathlib import Path


def why_unwritable(folder: Path) -> str | None:
    """Why no file can be made in the folder, or None if one can. A file without a name is made and removed."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return error.strerror or str(error)
