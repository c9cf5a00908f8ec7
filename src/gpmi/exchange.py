"""Trials in files and tables: the public names of `gpmi.trials.files`."""

from typing import TYPE_CHECKING

from gpmi._support.name_hints import missing_attribute
from gpmi.trials.files import from_frame, read_trials, to_frame, write_trials

__all__ = ["from_frame", "read_trials", "to_frame", "write_trials"]

if not TYPE_CHECKING:
    __getattr__ = missing_attribute(__name__, __all__)
