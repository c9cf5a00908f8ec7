"""Studies: runs that outlive their processes, on any number of machines. `gpmi.study` opens one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Unpack, overload

from gpmi._support import checks
from gpmi._support.checks import with_name_hints
from gpmi._support.text import Line
from gpmi._support.types import Event, Point
from gpmi.analysis.front import CONFIDENCE, Chosen, FrontAnalysis
from gpmi.analysis.ledger import Ledger
from gpmi.analysis.ledger.front_ledger import FrontLedger
from gpmi.analysis.ledger.options import OptionSummary
from gpmi.model.sources import SourceSummary
from gpmi.optimizer import Optimizer
from gpmi.optimizer.batches import BatchRule
from gpmi.policies import Aim
from gpmi.run.evaluation import Evaluated
from gpmi.run.loop import run_optimizer
from gpmi.run.options import RunOptions, RunSettings, StudyOptions, with_options
from gpmi.run.result import Result
from gpmi.run.sources import opened_sources
from gpmi.space import SpaceExhausted
from gpmi.storage.annotations import Annotation
from gpmi.storage.entries import StoredEntry
from gpmi.storage.opening import LEASE, PATIENCE, open_study
from gpmi.storage.study_log import Fixed, checked_lease
from gpmi.storage.study_optimizer import StudyOptimizer
from gpmi.storage.tables import Lease
from gpmi.storage.verification import Verification, verify
from gpmi.trials import Details, Outcome, Trial, names_a_trial
from gpmi.trials.dataframe import Printable


class Study(Printable):
    """A run in a database: everything that was asked and told is an entry of its log. Made by `gpmi.study`.

    Any number of processes may work on it, each with its own Study; threads may share one. What was told survives
    a kill of any process and of the database. Everything that is read is up to date.
    """

    def __init__(self, optimizer: StudyOptimizer) -> None:
        self.optimizer = optimizer
        self._log = optimizer.log
        self.name = optimizer.log.name
        self.space, self.goal, self.goals = optimizer.space, optimizer.goal, optimizer.goals

    # Asking and telling

    @overload
    def ask(self, n: None = None, *, fixed: Fixed = None, lease: float | None = None) -> Trial: ...
    @overload
    def ask(
        self,
        n: int,
        *,
        fixed: Fixed = None,
        lease: float | None = None,
        same: Sequence[Any] | None = None,
        apart: Mapping[Any, float] | None = None,
    ) -> list[Trial]: ...
    def ask(
        self,
        n: int | None = None,
        *,
        fixed: Fixed = None,
        lease: float | None = None,
        same: Sequence[Any] | None = None,
        apart: Mapping[Any, float] | None = None,
    ) -> Trial | list[Trial]:
        """Return the next trial to evaluate, or n of them; fewer if the space has no more. `trial.x` is the point.

        `fixed` are coordinates that the user sets, as for `Optimizer.ask`. A trial with the same fixed
        coordinates whose worker has died, or whose lease has ended, comes first. `lease` is in seconds (database
        clock); the default is the study's. The lease is renewed while this process lives and the study is open. With
        lease=math.inf it lasts until the trial is told, failed or forgotten: for points that people evaluate.
        `same` and `apart` are as for `Optimizer.ask`; such a batch is new, and takes no trial that was left behind.
        """
        count = 1 if n is None else checks.whole("n", n, 1)
        seconds = None if lease is None else checked_lease(lease)
        asked: list[Trial] = []
        try:
            if same is not None or apart is not None:
                self.optimizer.next_batch(BatchRule.of(self.space, n, fixed, same, apart), seconds, asked)
                return asked
            for _ in range(count):
                self.optimizer.next_trial(fixed, seconds, asked)
        except SpaceExhausted:
            if not asked:
                raise
        except BaseException:  # the caller does not get them
            self._log.release_leases([trial.number for trial in asked])
            raise
        return asked[0] if n is None else asked

    def tell(self, x: Trial | int | Point, y: float | Mapping[str, float], **details: Unpack[Details]) -> Trial:
        """Record the value y of x: a Trial or its number, even if another worker evaluated it or its lease has expired.

        It is durable when the call returns: in the database or, if that is unreachable, in the outbox, which is
        delivered on the next call or open. The outbox is a folder of files on this machine. The same value of the same
        trial counts once. If the trial already has another value from another process, y becomes a new trial at the
        same point. A second, different value from the same process is refused.

        If x is a point, y becomes a new trial that was not suggested. `noise_var`, `repeats` and `constraints` are as
        for `Optimizer.tell`.
        """
        return self.optimizer.record(x, self.optimizer.outcome_of(y, **details))

    def fail(self, x: Trial | int, why: str | None = None) -> Trial:
        """Record that the evaluation of a trial failed, and why. It is stored as safely as a value.

        A trial that has a value or some of its outputs cannot fail as well. But if this process was handed the trial
        and others have told it meanwhile, the failure is noted in the log and changes nothing.
        """
        if not names_a_trial(x):
            raise TypeError(f"x is {checks.shown(x)}; give a Trial or its number")
        return self.optimizer.record(x, Outcome.failure(why))

    def reject(self, x: Trial | int | Point, why: str | None = None) -> Trial:
        """Record that a pending trial, or another point, will not be evaluated, and why, as `Optimizer.reject`."""
        return self.optimizer.record(x, Outcome.rejection(why))

    def move(self, trial: Trial | int, x: Point) -> Trial:
        """Record that a pending trial is evaluated at x, as `Optimizer.move`. `suggested` has the point before."""
        return self.optimizer.move(trial, x)

    def annotate(
        self,
        trial: Trial | int,
        text: str = "",
        *,
        who: str | None = None,
        files: Sequence[str] = (),
        did: str | None = None,
    ) -> Annotation:
        """Write a remark beside a trial: a text, who wrote it, and the names of files that belong to the trial.

        No suggestion depends on it. `did` is what the person has just done, as the kind of an entry of the log:
        "told", "corrected", "moved", ... The same remark twice in a row is stored once.
        """
        if not names_a_trial(trial):
            raise TypeError(f"trial is {checks.shown(trial)}; give a Trial or its number")
        number = trial.number if isinstance(trial, Trial) else int(trial)
        return self._log.store_annotation(Annotation.checked(number, text, who, files, did))

    def annotations(self, trial: Trial | int) -> tuple[Annotation, ...]:
        """Return the remarks about a trial, in their order."""
        number = trial.number if isinstance(trial, Trial) else int(trial)
        return self.refresh().log.annotations.get(number, ())

    def suggested(self, trial: Trial | int) -> Point | None:
        """Return the point that was suggested for a trial that was moved since; None if it was not moved."""
        number = trial.number if isinstance(trial, Trial) else int(trial)
        return self.refresh().log.suggested.get(number)

    def correct(self, trial: Trial | int, y: float | Mapping[str, float], **details: Unpack[Details]) -> Trial:
        """Replace the value of a trial, as `Optimizer.correct`."""
        return self.optimizer.correct(trial, y, **details)

    def retract(self, trial: Trial | int) -> Trial:
        """Take back the outcome of a trial, as `Optimizer.retract`."""
        return self.optimizer.retract(trial)

    def confirm(self, trial: Trial | int) -> Trial:
        """Say that the value of a trial is right although it does not fit the others, as `Optimizer.confirm`."""
        return self.optimizer.confirm(trial)

    def forget(self, trial: Trial | int) -> None:
        """Withdraw a pending trial, as if it had never been asked. A late value is stored as an observation."""
        self.optimizer.forget(trial)

    def set_budget(self, budget: int) -> None:
        """Set the total budget; earlier suggestions stay as they are."""
        self.optimizer.set_budget(budget)

    # Reading

    def refresh(self) -> StudyOptimizer:
        """Return the optimizer, brought up to date. Values that wait for the database are delivered first."""
        self.optimizer.refresh()
        return self.optimizer

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
    def front(self) -> tuple[Trial, ...]:
        """The trials that no other trial beats in every objective, as `Optimizer.front`."""
        return self.refresh().front

    def choose(
        self,
        where: Mapping[str, Any] | None = None,
        confidence: float = CONFIDENCE,
        *,
        fixed: Any = None,
        **objective: str,
    ) -> Chosen:
        """Return the best predicted point that meets conditions, as `Optimizer.choose`."""
        return self.refresh().choose(where, confidence, fixed=fixed, **objective)

    @property
    def front_analysis(self) -> FrontAnalysis:
        """What is known of the goals, as `Optimizer.front_analysis`."""
        return self.refresh().front_analysis

    @property
    def options(self) -> tuple[OptionSummary, ...]:
        """What is known of each option of each choice; see `Optimizer.options`."""
        return self.ledger.options

    @property
    def ledger(self) -> Ledger | FrontLedger:
        """The results so far and how sure they are, as `Optimizer.ledger`."""
        return self.refresh().ledger

    @property
    def budget(self) -> int | None:
        """The total budget, in evaluations; None if there is none."""
        return self.refresh().budget

    @property
    def earlier(self) -> tuple[SourceSummary, ...]:
        """What this study makes of each earlier one, as `Optimizer.earlier`."""
        return self.refresh().earlier

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything the library did in this process that was not asked for, as `Optimizer.events`."""
        return self.refresh().events

    @property
    def seed(self) -> int:
        """The seed of all suggestions."""
        return self.optimizer.seed

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of this process about the log and its database."""
        return tuple(self._log.warnings)

    @property
    def worker(self) -> str:
        """The name of this process in the log."""
        return self._log.worker

    @property
    def identity(self) -> str:
        """The identity of the study, wherever its database is: the checksum of its first entry."""
        return self._log.identity

    @property
    def seq(self) -> int:
        """The number of the last entry that this process has replayed; -1 before the first."""
        return self._log.seq

    def log(self, after: int = -1) -> tuple[StoredEntry, ...]:
        """Return all entries of the log with a number above `after`, in order."""
        return self._log.stored_entries(after)

    def leases(self) -> dict[int, Lease]:
        """Return the leases of trials that are being evaluated: by whom, and until when."""
        return self._log.leases()

    def recommend(self, *, fixed: Fixed = None) -> Point:
        """Return the point with the best posterior mean, as `Optimizer.recommend`."""
        return self.refresh().recommend(fixed=fixed)

    def result(self, *, no_model: str | None = None) -> Result:
        """Return the result so far, as `maximize` does.

        The recommended point and the ledger need a model, which takes as long as a suggestion. If `no_model` says why
        you do without, they are None, and an event has the reason.
        """
        optimizer = self.refresh()
        spent = optimizer.budget is not None and optimizer.evaluated >= optimizer.budget
        left = "it has no budget" if optimizer.budget is None else f"its budget of {optimizer.budget} is not used up"
        return Result.of(optimizer, "budget" if spent else f"not known; {left}", no_model=no_model)

    @overload
    def report(self, path: str | os.PathLike[str], *, title: str | None = None) -> Path: ...
    @overload
    def report(self, trial: Trial | int, step: int, y: float | Mapping[str, float]) -> Literal["continue", "stop"]: ...
    def report(  # type: ignore[misc]  # the first argument has two names
        self,
        trial: Any = None,
        step: Any = None,
        y: Any = None,
        *,
        path: str | os.PathLike[str] | None = None,
        title: str | None = None,
    ) -> Path | Literal["continue", "stop"]:
        """Record a value of a curve, or write an HTML report.

        `report(trial, step, y)` records a value y of a trial at a step of its fidelity, as `Optimizer.report`, and
        returns whether to go on: "continue" or "stop". The value, and the decision to stop, are durable when the call
        returns. If the database is unreachable, the value goes to the outbox, as with `tell`, and the answer is
        "continue". The same value of the same step counts once, and another one is refused.

        A trial whose worker died keeps the values of its curve. The next worker starts over: what it reports for these
        steps changes nothing, even if its values are others, and the answer is "continue". Its later steps continue the
        curve. A value that comes after the trial has ended, or from a worker that has lost the trial to another one, is
        stored without effect, and the answer is "stop".

        `report(path)` writes a report of the current state to one HTML file (docs/report.md), and returns its path.
        """
        if step is None and y is None:
            from gpmi.views.html import write  # only needed here

            return write(self, trial if path is None else path, title)
        if not names_a_trial(trial) or path is not None or title is not None:
            raise TypeError(f"trial is {checks.shown(trial)}; give report(trial, step, y), or report(path) for a page")
        return self.optimizer.report(trial, step, y)

    def verify(self) -> Verification:
        """Check the numbers and checksums of the log, and compute each suggestion again; name what does not agree.

        It costs as much as all suggestions cost when they were made. On another processor, or with another version of
        gpmi, NumPy, SciPy or BLAS, the last digits of a suggestion may differ. The study records these, so `verdict`
        is "equal", "equal up to rounding on another platform" or "different"; only the last one is false.
        """
        entries, damage, description = self._log.inspect()
        return verify(entries, description, damage)

    # Running

    @with_name_hints
    @with_options(RunOptions, RunSettings)
    def optimize(
        self,
        f: Callable[[Any], Evaluated],
        **options: Unpack[RunOptions],
    ) -> Result:
        """Evaluate f at one trial after another, until the study has `budget` outcomes, its own budget by default.

        Several processes, on several machines, may do so at the same time: each works on other trials, and they stop
        together. When one dies, another evaluates its trials. The other arguments, and what happens if f raises or
        Ctrl-C is pressed, are as with `maximize`; the trial is then offered again.
        """
        if (budget := options.get("budget")) is not None:
            self.set_budget(budget)
        options["budget"] = self.budget
        return run_optimizer(self.optimizer, f, **options)

    def close(self) -> None:
        """Release this process's pending trials to other workers, then close."""
        self._log.close()

    def __enter__(self) -> Study:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Display

    def all_trials(self) -> tuple[Trial, ...]:
        return self.trials

    def summary_lines(self) -> list[Line]:
        return [("study", self.name), *self.refresh().summary_lines()]


@with_name_hints
@with_options(StudyOptions, Optimizer)
def study(
    address: str | os.PathLike[str],
    name: str | None = None,
    *,
    space: Any = None,
    goal: Literal["max", "min"] | None = None,
    aim: Aim | None = None,
    seed: int | None = None,
    budget: int | None = None,
    lease: float = LEASE,
    patience: float = PATIENCE,
    **options: Unpack[StudyOptions],
) -> Study:
    """Open a study, or create it if there is none with this name and `space` is given.

    Parameters
    ----------
    address : the path of an SQLite file, or postgresql://user:password@host/database for many machines.
    name : which of the studies in the database; "default" if it is left out, or the only one if the database has just
        one study and `space` is left out, too.
    space, goal, aim, seed : as for `Optimizer`, and so are all its other arguments. The study stores them: a later
        opening may leave them out, and must not contradict them. Functions and classes of your own cannot be stored and
        are refused.
    budget : the total number of evaluations; a later opening may replace it.
    earlier : studies of related functions by name, as for `Optimizer`; a path is that of a study's database. Their
        values are stored with this study, which needs them no longer.
    lease : lease duration: after this many seconds without a heartbeat the trial is reassigned.
    patience : retry timeout for an unreachable database, in seconds. Then `ask` raises a `StudyError`, and `tell`
        stores the value in a file on this machine, from which it is delivered later.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, study(f"{folder}/run.db", space=[(0.0, 1.0)], seed=0) as s:
    ...     trial = s.ask()
    ...     _ = s.tell(trial, -((trial.x[0] - 0.3) ** 2))
    ...     s.verify().agrees
    True
    """
    given: dict[str, Any] = {"goal": goal, "aim": aim, "seed": seed, "budget": budget, **options}
    if "earlier" in given:
        given["earlier"] = opened_sources(given["earlier"])
    return Study(open_study(address, name, space, given, lease=lease, patience=patience))
