"""Run a study file: its settings become those of a study, its program the objective function."""

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
from gpmi.cli.studyfile.studyfile import StudyFile
from gpmi.cli.studyfile.toml_table import StudyFileError
from gpmi.run import MOST_WORKERS, Result

if TYPE_CHECKING:
    from gpmi.run.study import Study


def open_study(file: StudyFile) -> Study:
    """Open the study of a file, or create it. A study that was created with other settings is refused."""
    from gpmi.run.study import study  # needs SQLAlchemy
    from gpmi.storage import OtherSettings

    try:
        opened = study(file.database, file.name, space=dict(file.parameters), **file.options)
    except OtherSettings as error:
        raise StudyFileError(f"{file.path}: {error.difference}; {_remedy(file)}") from None
    not_in_file = {*opened.optimizer.goals.named} - {*file.goals.named}
    if not_in_file:
        opened.close()
        raise StudyFileError(
            f"{file.path}: the study {file.name!r} has the goals {opened.optimizer.goals}, and the file has none; give "
            "it a table [goals], or another name"
        )
    return opened


def _remedy(file: StudyFile) -> str:
    """Say what to do about a file that no longer fits to its study."""
    from gpmi.storage.opening import names_in

    undo = f"undo this change to continue the study {file.name!r}"
    if "://" in file.database or len(names_in(file.database)) > 1:
        return f'{undo}, or set name = "..." in the file to begin another one'
    old = os.path.relpath(file.database, file.path.parent)
    other = f'{undo}, or set database = "..." in the file to begin another one'
    return f'{other}; to take its values along, add the table [earlier] with before = "{old}"'


def run_study(file: StudyFile, study: Study, *, progress: bool = False) -> Result:
    """Run a study to its end. Outcomes of other processes count, too.

    After Ctrl-C the running programs are ended, and the result so far is returned. A study that has already ended is
    not changed. A thread for each worker waits for its program.
    """
    end = file.stop.stop(study.optimizer, 0.0) if file.stop is not None and study.trials else None
    if end is not None:
        result = Result.of(study.optimizer, end.reason)
        return replace(result, events=result.events + end.events)
    over = Event()
    assert file.command is not None  # `check_program`
    evaluate: Any = partial(file.command, cancelled=over.is_set)  # it may also return a Failure, or a generator
    limit: dict[str, Any] = {} if file.cost is None else {"cost": file.cost}
    with ThreadPoolExecutor(file.workers) as pool:
        try:
            return study.optimize(
                evaluate,
                stop=file.stop,
                on_failure="learn",
                progress=progress,
                **limit,
                **_workers(file, pool),
            )
        finally:
            over.set()


def _workers(file: StudyFile, pool: ThreadPoolExecutor) -> dict[str, Any]:
    """Return where evaluations run: in threads, unless they can be stopped by what they report.

    An executor gives no way back to an evaluation. So a program that reports steps is followed by a process of its own,
    which ends it, also when this process is ended by a signal.
    """
    assert file.command is not None
    if file.command.steps is None:
        return {"executor": pool, "in_flight": file.workers}
    return {"workers": file.workers}


def worker_of(file: StudyFile, address: str, name: str, workers: int | None = None) -> StudyFile:
    """Return the file for one more worker of an existing study: the same program, with the study's budget and seed."""
    from gpmi.run.study import study

    count = file.workers if workers is None else checks.whole("workers", workers, 1, MOST_WORKERS)
    with study(address, name) as existing:
        budget = file.budget if existing.budget is None else None
    return replace(file, database=address, name=name, workers=count, budget=budget, seed=None)


def check_program(file: StudyFile) -> None:
    """Refuse a missing program before anything is evaluated. A program that a parameter names is not checked."""
    if os.name != "posix":
        raise StudyFileError(f"{file.path}: programs need the process groups of POSIX, which this system lacks")
    if file.command is None:
        raise StudyFileError(
            f"{file.path}: there is no table [command] with a program to run; give one, or evaluate by hand, with "
            f"`gpmi ask` or `gpmi serve`"
        )
    run = file.command.run
    program = run[0] if not isinstance(run, str) else "/bin/sh"
    if not isinstance(program, str) or placeholders(program):
        return
    # absolute, because Path(".") / "./train" is "train", which would be searched in PATH and not in the folder
    path = str(file.command.cwd.absolute() / program) if "/" in program else program
    if shutil.which(path) is None:
        raise StudyFileError(f"{file.path}: command.run: there is no program {program!r} to run; give its path")
