"""What all commands share: exit codes, errors in one line, and opening a study."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gpmi._support import text
from gpmi._support.logger import logger

if TYPE_CHECKING:
    from gpmi.run.study import Study

MISTAKE = 1  # an argument or a file cannot be used; typer itself exits with 2 for a wrong option
NOTHING = 3  # the arguments are right, but there is no value, no point left, or no agreement
INTERRUPTED = 130  # what shells report after Ctrl-C


@contextmanager
def one_line_errors(*expected: type[Exception], remedy: str = "fix that, or give another --out") -> Iterator[None]:
    """Report expected errors in one line, without a traceback, and exit."""
    try:
        yield
    except expected as error:
        message = " ".join(str(error).split())
        if isinstance(error, OSError) and error.filename is not None:
            message = f"{error.filename!r} cannot be used ({error.strerror}); {remedy}"
        typer.echo(f"gpmi: {message}", err=True)
        raise typer.Exit(MISTAKE) from None


class _RetryMessages(logging.Handler):
    """Print that a database is unreachable and tried again, so that nobody waits without knowing why."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.funcName == "retried":
            typer.echo(f"gpmi: {record.getMessage()}", err=True)


@contextmanager
def _retry_messages() -> Iterator[None]:
    handler = _RetryMessages(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


@contextmanager
def study_errors() -> Iterator[None]:
    """Report errors about a study, its file or an argument in one line; exit after Ctrl-C as shells do."""
    from gpmi.storage import StudyError

    with (
        _retry_messages(),
        one_line_errors(StudyError, ValueError, TypeError, ImportError, OSError, remedy="give another path"),
    ):
        try:
            yield
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None


def note(message: str) -> None:
    """Print a message for a person. A script, which has no terminal, does not get it."""
    if sys.stderr.isatty():
        typer.echo(f"gpmi: {message}", err=True)


@contextmanager
def open_for_command(address: str, name: str | None, *, make: bool = False) -> Iterator["Study"]:
    """Open a study by its path, its address or its study file. With `make`, a study file creates a missing study."""
    with study_errors(), _find(address, name, make) as study:
        yield study


def _find(address: str, name: str | None, make: bool) -> "Study":
    from gpmi.cli.studyfile import open_study, read_study
    from gpmi.run.study import study

    if address.endswith(".toml"):
        file = read_study(address)
        file = file if name is None else replace(file, name=name)
        if make:
            return open_study(file)
        address, name = file.database, file.name
    return study(address, existing_name(address, name))


def study_of_file(path: str, name: str | None) -> tuple[str, str]:
    """Return the address and the name of the study of a study file, which is created if it does not exist."""
    from gpmi.cli.studyfile import open_study, read_study

    file = read_study(path)
    file = file if name is None else replace(file, name=name)
    open_study(file).close()
    return file.database, file.name


def existing_name(address: str, name: str | None) -> str:
    """Return the name of an existing study: this one, or the only one if `name` is None."""
    from gpmi.storage.opening import names_in

    names, shown = names_in(address), text.without_password(address)
    listed = ", ".join(map(repr, names))
    if not names:
        file = Path(address).with_suffix(".toml") if "://" not in address else None
        if file is not None and file.is_file():
            raise ValueError(f"there is no study in {shown!r}; give its study file, {str(file)!r}")
        raise ValueError(f"there is no study in {shown!r}; give its path or address; `gpmi run study.toml` makes one")
    if name is None and len(names) > 1:
        raise ValueError(f"there are {len(names)} studies in {shown!r}; give --name with one of them: {listed}")
    if name is not None and name not in names:
        raise ValueError(f"there is no study {name!r} in {shown!r}; it has {listed}")
    return names[0] if name is None else name
