"""The command line `gpmi`. Thin: it reads the arguments and calls the library."""

from gpmi.cli.commands import app, main

__all__ = ["app", "main"]
