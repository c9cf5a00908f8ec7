"""`study.toml`: what to optimise, by which program, and when to stop."""

from gpmi.studyfile.example import EXAMPLE
from gpmi.studyfile.studyfile import StudyFile, read_study
from gpmi.studyfile.table import StudyFileError

__all__ = ["EXAMPLE", "StudyFile", "StudyFileError", "read_study"]
