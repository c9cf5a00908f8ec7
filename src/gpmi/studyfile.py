"""Study files: the public door to `gpmi.cli.studyfile`."""

from gpmi.cli.studyfile import (
    EXAMPLE,
    StudyFile,
    StudyFileError,
    check_program,
    open_study,
    read_study,
    run_study,
    worker_of,
)

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
