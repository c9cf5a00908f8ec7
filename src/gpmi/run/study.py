"""Studies: runs that outlive their processes, on any number of machines. `gpmi.study` opens one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Unpack

from gpmi._support.checks import with_name_hints
from gpmi._support.text import Line
from gpmi._support.types import Event, Point
from gpmi.analysis.ledger import Ledger
from gpmi.policies import Aim
from gpmi.run.evaluation import Measured
from gpmi.run.loop import run_optimizer
from gpmi.run.options import RunOptions, RunSettings, with_options
from gpmi.run.result import Result
from gpmi.storage.opening import LEASE, PATIENCE, opened
from gpmi.storage.study_log import Fixed, Record
from gpmi.storage.verification import Verification, verified
from gpmi.trials import Trial
from gpmi.trials.dataframe import Printable


class Study(Record, Printable):
    """A run in a database: everything that was asked and told is an entry of its log. Made by `gpmi.study`.

    Any number of processes may work on it, each with a Study of its own. What was told survives a kill of any of them,
    and of the database. All that is read is that of the moment.
    """

    # What is read

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every trial, in the order in which they appeared."""
        return self.refresh().trials

    @property
    def pending(self) -> tuple[Trial, ...]:
        """The trials without an outcome."""
        return self.refresh().pending

    @property
    def best(self) -> Trial | None:
        """The trial with the best observed value; None before the first."""
        return self.refresh().best

    @property
    def ledger(self) -> Ledger:
        """What is known and how sure it is, as `Optimizer.ledger`."""
        return self.refresh().ledger

    @property
    def budget(self) -> int | None:
        """How many evaluations there will be in all."""
        return self.refresh().budget

    @property
    def events(self) -> tuple[Event, ...]:
        """What the library did in this process that was not asked for, as `Optimizer.events`."""
        return self.refresh().events

    @property
    def seed(self) -> int:
        return self.optimizer.seed

    def recommend(self, *, fixed: Fixed = None) -> Point:
        """The point with the best posterior mean, as `Optimizer.recommend`."""
        return self.refresh().recommend(fixed=fixed)

    def result(self) -> Result:
        """What was found so far, as `maximize` returns it."""
        optimizer = self.refresh()
        spent = optimizer.budget is not None and optimizer.evaluated >= optimizer.budget
        return Result.of(optimizer, "budget" if spent else "not ended")

    def report(self, path: str | os.PathLike[str], *, title: str | None = None) -> Path:
        """Write a report of the moment to an HTML file that needs nothing else (docs/report.md), return its path."""
        from gpmi.views.html import write  # only who writes one needs it

        return write(self, path, title)

    def verify(self) -> Verification:
        """Check the numbers and checksums of the log, and compute each suggestion again: what does not agree is named.

        It costs what all suggestions cost when they were made. On another processor, or with another version of gpmi or
        NumPy, the last digits of a suggestion may differ.
        """
        entries, damage, description = self.inspected()
        return verified(entries, description, damage)

    # What is done

    @with_name_hints
    @with_options(RunOptions, RunSettings)
    def optimize(
        self,
        f: Callable[[Any], float | Measured],
        **options: Unpack[RunOptions],
    ) -> Result:
        """Evaluate f at one trial after the other, until the study has `budget` outcomes, its own by default.

        Several processes, on several machines, may do so at the same time: each works on other trials, and they stop
        together. When one dies, another evaluates its trials. The other arguments, and what happens if f raises or
        Ctrl-C is pressed, are as with `maximize`; the trial is then offered again.
        """
        if (budget := options.get("budget")) is not None:
            self.set_budget(budget)
        options["budget"] = self.budget
        return run_optimizer(self.optimizer, f, **options)

    def __enter__(self) -> Study:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # What is shown

    def all_trials(self) -> tuple[Trial, ...]:
        return self.trials

    def summary_lines(self) -> list[Line]:
        return [("study", self.name), *self.refresh().summary_lines()]


def study(
    address: str | os.PathLike[str],
    name: str = "default",
    *,
    space: Any = None,
    goal: Literal["max", "min"] | None = None,
    aim: Aim | None = None,
    seed: int | None = None,
    budget: int | None = None,
    lease: float = LEASE,
    patience: float = PATIENCE,
    **options: Any,
) -> Study:
    """Open a study, or make it if there is none with this name and `space` is given.

    Parameters
    ----------
    address : the path of an SQLite file, or postgresql://user:password@host/database for many machines.
    name : which of the studies in the database.
    space, goal, aim, seed, options : as of `Optimizer`. They are kept in the study: whoever opens it later may leave
        them out, and must not contradict them. Functions and own classes cannot be kept and are refused.
    budget : how many evaluations there will be in all; another one given later takes the place of the first.
    lease : after so many seconds without a sign of life from its worker a trial is offered to another one.
    patience : for so many seconds a database that does not answer is asked again. Then `ask` raises a `StudyError`, and
        `tell` keeps the value in a file beside the worker, from which it is delivered later.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, study(f"{folder}/run.db", space=[(0.0, 1.0)], seed=0) as s:
    ...     trial = s.ask()
    ...     _ = s.tell(trial, -((trial.x[0] - 0.3) ** 2))
    ...     s.verify().agrees
    True
    """
    given = {"goal": goal, "aim": aim, "seed": seed, "budget": budget, **options}
    made = opened(address, name, space, given, lease=lease, patience=patience, kind=Study)
    assert isinstance(made, Study)
    return made
