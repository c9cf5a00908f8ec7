"""How the command line says what went wrong: one line, and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

MISTAKE = 1  # something that was given cannot be used; 2 is that of a wrong option
NOTHING = 3  # what was given is right, but there is no value, no point, or no agreement
INTERRUPTED = 130  # as a shell says it of Ctrl-C


@contextmanager
def one_line(*expected: type[Exception], remedy: str = "mend that, or give another --out") -> Iterator[None]:
    """A mistake of the user gets one line, not a traceback."""
    import typer

    try:
        yield
    except expected as error:
        words = " ".join(str(error).split())
        if isinstance(error, OSError) and error.filename is not None:
            words = f"{error.filename!r} cannot be used ({error.strerror}); {remedy}"
        typer.echo(f"gpmi: {words}", err=True)
        raise typer.Exit(MISTAKE) from None


def remark(words: str) -> None:
    """What a person may want to know, and a script does not: nothing where there is no terminal."""
    import typer

    if sys.stderr.isatty():
        typer.echo(f"gpmi: {words}", err=True)
