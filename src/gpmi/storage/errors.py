"""What can be wrong with the database of a study, in words that a person can act on."""

from __future__ import annotations


class StudyError(Exception):
    """The database of a study cannot be used as it is: the message says why and what to do. Nothing is half-written."""


class Unavailable(StudyError):
    """The database did not answer, or somebody else held its lock: this may pass without anybody doing anything."""


class Busy(Unavailable):
    """Others hold the lock of the study, one after the other or one for long."""
