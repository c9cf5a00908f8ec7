"""One evaluation by running a program: parameters go in, a value or the reason of a failure comes out."""

from gpmi.cli.command.answers import Reading
from gpmi.cli.command.command import Command

__all__ = ["Command", "Reading"]
