"""The Optimizer of a study: an Optimizer that writes to a StudyLog and gets its trials from it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from functools import partial
from typing import Any

from gpmi._support import checks
from gpmi._support.types import Array, FrozenPoint
from gpmi.gp.linalg import one_blas_thread
from gpmi.optimizer import Optimizer
from gpmi.optimizer.batches import BatchRule, Suggest
from gpmi.optimizer.strategy import Comparison
from gpmi.search.subspaces import Subspace
from gpmi.storage.serialization import arguments
from gpmi.storage.study_log import Fixed, NoTrial, StudyLog
from gpmi.trials import Outcome, Printable, Trial

# With more values, a process that has made no suggestion yet skips the surprise of a value rather than fit a prior just
# for it. A fit on 256 values takes about a tenth of a second, while others wait for the lock.
MOST_FITTED = 256


class StudyOptimizer(Optimizer):
    """The optimizer of a study. It knows the log as of its last call; `refresh` brings it up to date."""

    def __init__(self, description: Mapping[str, Any], make_log: Callable[..., StudyLog]) -> None:
        super().__init__(**arguments(description))
        self.log = make_log(space=self.space, budget=self.budget, goals=self.goals)
        self._log = self.log

    def refresh(self) -> None:
        """Replay the entries of other processes."""
        self.log.refresh(self._settle)

    def replay(self, trials: Iterable[Trial] | Printable) -> Optimizer:
        """Refuse the trials of another run: a study has its own."""
        raise ValueError("trials cannot be replayed into a study; tell their values with tell_all")

    def set_budget(self, budget: int) -> None:
        """Set the total budget, unless it is that already."""
        new = checks.whole("budget", budget, 1)
        self.refresh()
        if self.budget != new:
            self.log.set_budget(new)

    def next_batch(self, rule: BatchRule, lease: float | None, handed: list[Trial]) -> None:
        """Append the trials of a batch with a rule to `handed`; trials that others have left behind are not taken."""

        def hand_out(subspace: Subspace, suggest: Suggest) -> Trial:
            self._hand_out(subspace, handed, lease=lease, suggest=suggest)
            return handed[-1]

        with self.log.lock:
            self.ask_batch(rule, hand_out)

    def next_trial(self, fixed: Fixed, lease: float | None, handed: list[Trial]) -> None:
        """Append the next trial for this worker to `handed`. `lease` is in seconds; None uses the study's default."""
        with self.log.lock:
            self._hand_out(self._subspaces.with_fixed(fixed), handed, lease=lease)

    def turns(self, budget: int | None) -> Generator[Trial | None, None, None]:
        """Yield the trials that this worker is to evaluate, until the study has `budget` outcomes.

        Yield None while every remaining trial is in progress; if its worker dies, a trial is yielded again. Trials
        without an outcome are released when the loop ends.
        """
        handed: list[Trial] = []
        try:
            while (trial := self._hand_out(self._subspaces.whole, handed, budget=budget)) != "used up":
                if isinstance(trial, Trial):
                    self.log.in_loops.add(trial.number)
                yield trial if isinstance(trial, Trial) else None
        finally:
            self.log.release_leases([trial.number for trial in handed])

    def _next_trial(self, subspace: Subspace, suggest: Suggest | None = None) -> Trial:
        handed: list[Trial] = []
        try:
            self._hand_out(subspace, handed, suggest=suggest)
            return handed[0]
        except BaseException:  # the caller does not get it
            self.log.release_leases([trial.number for trial in handed])
            raise

    def _hand_out(
        self,
        subspace: Subspace,
        handed: list[Trial],
        *,
        budget: int | None = None,
        lease: float | None = None,
        suggest: Suggest | None = None,
    ) -> Trial | NoTrial:
        """Deliver the outbox, update a slow model before the lock is taken, and get the next trial."""
        with self.log.lock:
            self.log.deliver_waiting(self._settle)
            if self.log.is_slow:
                self.refresh()
                with one_blas_thread:
                    self._strategy.update(self.log)
            fixed = subspace.fixed if suggest is None else FrozenPoint({None: None})  # no trial has that
            return self.log.hand_out(
                fixed, partial(self._add_suggestion, subspace, suggest), handed, budget=budget, lease=lease
            )

    def _prediction(self, row: Array, outcome: Outcome) -> Comparison | None:
        needs_fit = not self._strategy.is_fitted and len(self._log.told) > MOST_FITTED
        return None if needs_fit else super()._prediction(row, outcome)
