"""Evaluations by a program: the public door to `gpmi.cli.command`."""

from gpmi.cli.command import Command, Reading

__all__ = ["Command", "Reading"]
