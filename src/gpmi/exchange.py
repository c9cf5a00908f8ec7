"""Trials in files and tables: the public names of `gpmi.trials.files`."""

from gpmi.trials.files import from_frame, read_trials, to_frame, write_trials

__all__ = ["from_frame", "read_trials", "to_frame", "write_trials"]
