"""Earlier studies that are named by the path of their database."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpmi._support.checks import shown


def opened_sources(earlier: Any) -> Any:
    """Return the sources of `earlier`, with the trials of a study in place of the path of its database.

    Anything else is returned as it is.
    """
    if not isinstance(earlier, Mapping):
        return earlier
    is_path = {name: isinstance(source, str | os.PathLike) for name, source in earlier.items()}
    return {name: _trials(name, source) if is_path[name] else source for name, source in earlier.items()}


def _trials(name: str, address: str | os.PathLike[str]) -> Any:
    """Read the trials of the only study of a database. Nothing is created there."""
    from gpmi.storage.opening import DEFAULT_NAME, names_in, open_study  # needs SQLAlchemy

    where = f"earlier[{name!r}]"
    if "://" not in str(address) and not Path(address).is_file():
        remedy = "give the path of a study's database, a study, or a list of (x, y)"
        raise ValueError(f"{where} is {shown(address)}, and there is no such file; {remedy}")
    names = names_in(address)
    if len(names) > 1 and DEFAULT_NAME not in names:
        listed = ", ".join(map(repr, names))
        raise ValueError(f"{where} has the studies {listed}; give one of them, gpmi.study({str(address)!r}, name)")
    optimizer = open_study(address, None, None, {})
    try:
        return optimizer.trials
    finally:
        optimizer.log.close()
