"""A study file, run: its settings are those of a study, its program is the function."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any

from gpmi._support import checks
from gpmi.cli.command.templates import placeholders
from gpmi.cli.studyfile.studyfile import MOST_WORKERS, StudyFile
from gpmi.cli.studyfile.table import StudyFileError
from gpmi.run.result import Result

if TYPE_CHECKING:
    from gpmi.run.study import Study


def open_study(file: StudyFile) -> Study:
    """The study of a file, made if there is none yet. One that was made with other settings is refused."""
    from gpmi.run.study import study  # needs SQLAlchemy

    return study(
        file.database,
        file.name,
        space=dict(file.parameters),
        goal=file.goal,
        aim=file.aim,
        seed=file.seed,
        budget=file.budget,
        constraints=list(file.constraints),
    )


def run_study(file: StudyFile, kept: Study, *, progress: bool = False) -> Result:
    """Run a study to its end, which is also reached by what other processes do for it.

    After Ctrl-C the programs that still run are ended, and the result so far is returned. A study that is at its end
    stays as it is. A thread for each worker waits for its program.
    """
    end = file.stop.stop(kept.optimizer, 0.0) if file.stop is not None and kept.trials else None
    if end is not None:
        result = Result.of(kept.optimizer, end.reason)
        return replace(result, events=result.events + end.events)
    over = Event()
    evaluate: Any = partial(file.command, cancelled=over.is_set)  # it may also return a Failure
    with ThreadPoolExecutor(file.workers) as pool:
        try:
            return kept.optimize(
                evaluate,
                stop=file.stop,
                executor=pool,
                in_flight=file.workers,
                on_failure="learn",
                progress=progress,
            )
        finally:
            over.set()


def worker_of(file: StudyFile, address: str, name: str, workers: int | None = None) -> StudyFile:
    """A file for one more worker of a study that exists: its program, with the budget and the seed of the study."""
    from gpmi.run.study import study

    own = file.workers if workers is None else checks.whole("workers", workers, 1, MOST_WORKERS)
    with study(address, name) as kept:
        budget = file.budget if kept.budget is None else None
    return replace(file, database=address, name=name, workers=own, budget=budget, seed=None)


def check_program(file: StudyFile) -> None:
    """Refuse a program that is not there, before anything is evaluated. One named by a parameter is not looked for."""
    if os.name != "posix":
        raise StudyFileError(f"{file.path}: programs run in process groups of POSIX, which this system has not")
    run = file.command.run
    program = run[0] if not isinstance(run, str) else "/bin/sh"
    if not isinstance(program, str) or placeholders(program):
        return
    # absolute: Path(".") / "./train" is "train", which would be looked for in PATH and not in the folder
    found = str(file.command.cwd.absolute() / program) if "/" in program else program
    if shutil.which(found) is None:
        raise StudyFileError(f"{file.path}: command.run: there is no program {program!r} to run; give its path")
