"""The errors of a study's database. Their messages say what is wrong and what to do."""

from __future__ import annotations


class StudyError(Exception):
    """The database of a study cannot be used: the message says why and what to do. Nothing is half-written."""


class OtherSettings(ValueError):
    """The study has other settings than those given. `difference` says which, without the remedy."""

    def __init__(self, sentence: str, difference: str = "") -> None:
        super().__init__(sentence)
        self.difference = difference


class Unavailable(StudyError):
    """The database did not answer, or another process held its lock: this may pass by itself."""


class Busy(Unavailable):
    """Other processes hold the lock of the study, several in turn or one for long."""
