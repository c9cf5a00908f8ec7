"""Study files (`study.toml`): what to optimise, with which program, and when to stop."""

from gpmi.cli.studyfile.example import EXAMPLE
from gpmi.cli.studyfile.runner import check_program, open_study, run_study, worker_of
from gpmi.cli.studyfile.studyfile import StudyFile, read_study
from gpmi.cli.studyfile.toml_table import StudyFileError

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
