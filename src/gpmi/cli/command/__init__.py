"""Programs as objective functions: parameters go in, a value or the reason of a failure comes out."""

from gpmi.cli.command.command import Command, ProgramFailed
from gpmi.cli.command.reading import Reading

__all__ = ["Command", "ProgramFailed", "Reading"]
