"""`study.toml`: what to optimise, by which program, and when to stop."""

from gpmi.studyfile.example import EXAMPLE
from gpmi.studyfile.running import check_program, open_study, run_study, worker_of
from gpmi.studyfile.studyfile import StudyFile, read_study
from gpmi.studyfile.table import StudyFileError

__all__ = [
    "EXAMPLE",
    "StudyFile",
    "StudyFileError",
    "check_program",
    "open_study",
    "read_study",
    "run_study",
    "worker_of",
]
