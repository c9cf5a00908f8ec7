"""The command line `gpmi`: it reads the arguments and calls the library."""

from gpmi.cli.app import app, main

__all__ = ["app", "main"]
