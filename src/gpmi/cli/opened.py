"""The study that a command is about, by its path, its address, or its study file."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from gpmi._support import text
from gpmi.cli.messages import INTERRUPTED, one_line

if TYPE_CHECKING:
    from gpmi.run.study import Study


@contextmanager
def mistakes() -> Iterator[None]:
    """Whatever may be wrong with a study, its file or what was given gets one line; Ctrl-C the code of a shell."""
    from gpmi.storage.errors import StudyError

    with one_line(StudyError, ValueError, TypeError, ImportError, OSError, remedy="give another path"):
        try:
            yield
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None


@contextmanager
def opened(address: str, name: str | None, *, make: bool = False) -> Iterator["Study"]:
    """The study, open while the block runs. With `make` a study file makes it, if it has to."""
    with mistakes(), _found(address, name, make) as study:
        yield study


def _found(address: str, name: str | None, make: bool) -> "Study":
    from gpmi.cli.studyfile import open_study, read_study
    from gpmi.run.study import study

    if address.endswith(".toml"):
        file = read_study(address)
        file = file if name is None else replace(file, name=name)
        if make:
            return open_study(file)
        address, name = file.database, file.name
    return study(address, chosen(address, name))


def chosen(address: str, name: str | None) -> str:
    """The name of a study that there is: the one that was given, or the only one."""
    from gpmi.storage.opening import names_in

    names, shown = names_in(address), text.without_password(address)
    known = ", ".join(map(repr, names))
    if not names:
        raise ValueError(f"there is no study in {shown!r}; give its path or address; `gpmi run study.toml` makes one")
    if name is None and len(names) > 1:
        raise ValueError(f"there are {len(names)} studies in {shown!r}; give --name with one of them: {known}")
    if name is not None and name not in names:
        raise ValueError(f"there is no study {name!r} in {shown!r}; it has {known}")
    return names[0] if name is None else name
