"""A study file, run: its program is the function, its settings are the arguments."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import Any

from gpmi.command.templates import placeholders
from gpmi.result import Result
from gpmi.run import maximize, minimize
from gpmi.studyfile.studyfile import StudyFile
from gpmi.studyfile.table import StudyFileError


def run_study(study: StudyFile, *, progress: bool = False) -> Result:
    """Run a study to its end. After Ctrl-C the programs that still run are ended, and the result so far is returned.

    The one place at which a study file meets the library. A thread for each worker waits for its program.
    """
    over = Event()
    evaluate: Any = partial(study.command, cancelled=over.is_set)  # it may also return a Failure
    optimize = maximize if study.goal == "max" else minimize
    with ThreadPoolExecutor(study.workers) as pool:
        try:
            return optimize(
                evaluate,
                dict(study.parameters),
                budget=study.budget,
                stop=study.stop,
                aim=study.aim,
                seed=study.seed,
                constraints=list(study.constraints) or None,
                executor=pool,
                in_flight=study.workers,
                on_failure="learn",
                progress=progress,
            )
        finally:
            over.set()


def check_program(study: StudyFile) -> None:
    """Refuse a program that is not there, before anything is evaluated. One named by a parameter is not looked for."""
    if os.name != "posix":
        raise StudyFileError(f"{study.path}: programs run in process groups of POSIX, which this system has not")
    run = study.command.run
    program = run[0] if not isinstance(run, str) else "/bin/sh"
    if not isinstance(program, str) or placeholders(program):
        return
    found = str(study.command.cwd / program) if "/" in program else program
    if shutil.which(found) is None:
        raise StudyFileError(f"{study.path}: command.run: there is no program {program!r} to run; give its path")
