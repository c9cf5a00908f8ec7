"""One study as the server uses it: what is read, and what is said, by any number of people at the same time.

It has two connections. One reads, and never waits for a suggestion; the other one writes. Everything here blocks, so
it is called from threads.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from gpmi._support.types import Point
from gpmi.run.study import Study, study
from gpmi.serve.fields import Field, fields_of
from gpmi.serve.model_worker import Thinker
from gpmi.space import Space
from gpmi.storage.entries import StoredEntry
from gpmi.storage.errors import StudyError
from gpmi.storage.tables import NEVER, Lease
from gpmi.trials import Trial

PATIENCE = 10.0  # seconds for which a person waits for a database that does not answer; our choice
BATCH = 100  # points in one request, at most; our choice


class Conflict(Exception):
    """A trial has an outcome already, another one than was said now. Nothing was changed."""

    def __init__(self, trial: Trial, words: str | None = None) -> None:
        super().__init__(f"trial {trial.number} {words or outcome(trial)}")
        self.trial = trial


class NoSuchTrial(Exception):
    """There is no trial with this number."""


@dataclass(frozen=True)
class Look:
    """What is in the log at one moment."""

    seq: int  # the number of its last entry
    trials: tuple[Trial, ...]
    best: Trial | None
    budget: int | None
    leases: Mapping[int, Lease]

    @property
    def pending(self) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.trials if trial.status == "pending")

    @property
    def waiting(self) -> tuple[Trial, ...]:
        """What people evaluate: it was handed out without a limit of time, or to nobody who is known."""
        return tuple(trial for trial in self.pending if not self._is_with_a_worker(trial))

    @property
    def running(self) -> tuple[Trial, ...]:
        """What programs evaluate."""
        return tuple(trial for trial in self.pending if self._is_with_a_worker(trial))

    def _is_with_a_worker(self, trial: Trial) -> bool:
        lease = self.leases.get(trial.number)
        return lease is not None and lease.until < NEVER

    @property
    def told(self) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.trials if trial.status == "told")

    def at(self, number: int) -> Trial | None:
        return next((trial for trial in self.trials if trial.number == number), None)


class Desk:
    """A study, open for reading; for writing once somebody says something."""

    def __init__(self, address: str, name: str, title: str, slug: str) -> None:
        self.address, self.name, self.title, self.slug = address, name, title, slug
        self.reader = study(address, name, patience=PATIENCE)
        self.closed = False
        self._making = threading.Lock()
        self._writer: Study | None = None
        self.thinker = Thinker(address, name)

    @property
    def space(self) -> Space:
        return self.reader.space

    @property
    def goal(self) -> Literal["max", "min"]:
        return self.reader.goal

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return fields_of(self.space)

    @property
    def writer(self) -> Study:
        with self._making:
            if self._writer is None:
                self._writer = study(self.address, self.name, patience=PATIENCE)
            return self._writer

    # What is read

    def seq(self) -> int:
        """The number of the last entry of the log. A short query."""
        self.reader.refresh()
        return self.reader.seq

    def look(self) -> Look:
        """What is in the log now. O(n)."""
        optimizer = self.reader.refresh()
        seq = self.reader.seq
        return Look(seq, optimizer.trials, optimizer.best, optimizer.budget, self.reader.leases())

    def trial(self, number: int) -> Trial:
        """A trial by its number."""
        log = self.reader.refresh().log
        if number in log.forgotten:
            raise NoSuchTrial(f"trial {number} was put back; there is nothing to say of it")
        if not 0 <= number < log.next_number:
            raise NoSuchTrial(f"there is no trial {number}; the study has {log.next_number}")
        return log.at(number)

    def entries(self, after: int) -> tuple[StoredEntry, ...]:
        """The entries of the log with a number above `after`."""
        return self.reader.log(after)

    # What is said

    def ask(self, n: int = 1, fixed: Mapping[Any, Any] | None = None) -> list[Trial]:
        """The next points to try, which are somebody's without a limit of time."""
        if not 1 <= n <= BATCH:
            raise ValueError(f"{n} points were asked for; ask for 1 to {BATCH}")
        if self.thinker.is_large(self.reader):
            numbers = self.thinker.ask(n, fixed)
            return [self.trial(number) for number in numbers]
        return self.writer.ask(n, fixed=fixed or None, lease=math.inf)

    def tell(
        self,
        number: int,
        y: float,
        *,
        noise_var: float = 0.0,
        repeats: int = 1,
        constraints: Sequence[float] | None = None,
        again: bool = False,
    ) -> Trial:
        """The value of a trial, once: the same value again changes nothing, another one is a `Conflict`.

        With `again` the value of a trial that has one, or that was put back, is one more observation at its point.
        """
        more: dict[str, Any] = {"noise_var": noise_var, "repeats": repeats, "constraints": constraints}
        known = self._ever(number)
        if known.status == "pending":
            try:
                return self.writer.tell(number, y, **more)
            except ValueError:
                known = self._ever(number)  # somebody was faster, or the value cannot be used
                if known.status == "pending":
                    raise
        if again:
            return self.writer.tell(known.x, y, **more)
        if known.status == "told" and known.y == y:
            return known
        raise Conflict(known, "was put back" if number in self.reader.optimizer.log.forgotten else None)

    def _ever(self, number: int) -> Trial:
        """A trial by its number; one that was put back has its point and is retracted."""
        x = self.reader.refresh().log.forgotten.get(number)
        return self.trial(number) if x is None else Trial(number, x, None, "retracted", "user")

    def recommend(self, fixed: Mapping[Any, Any] | None = None) -> Point | None:
        """The point to use; None before the first value."""
        if not any(trial.status == "told" for trial in self.reader.trials):
            return None
        if self.thinker.is_large(self.reader):
            return self.thinker.recommend(fixed)
        return self.reader.recommend(fixed=fixed or None)

    def observe(self, x: Point, y: float, **more: Any) -> Trial:
        """A value at a point that nobody asked for."""
        return self.writer.tell(x, y, **more)

    def fail(self, number: int, why: str | None = None) -> Trial:
        """A trial has no value, and why."""
        known = self.trial(number)
        if known.status == "failed":
            return known
        if known.status != "pending":
            raise Conflict(known)
        return self.writer.fail(number, why)

    def correct(self, number: int, y: float, **more: Any) -> Trial:
        """Another value for a trial that was told, failed or retracted."""
        known = self.trial(number)
        if known.status == "told" and known.y == y and not any(value is not None for value in more.values()):
            return known
        if known.status in ("pending", "rejected"):
            raise Conflict(known)
        return self.writer.correct(number, y, **more)

    def retract(self, number: int) -> Trial:
        known = self.trial(number)
        if known.status == "pending":
            raise Conflict(known)
        return known if known.status == "retracted" else self.writer.retract(number)

    def reject(self, number: int) -> Trial:
        """A trial will not or cannot be evaluated."""
        known = self.trial(number)
        if known.status == "rejected":
            return known
        if known.status != "pending":
            raise Conflict(known)
        return self.writer.reject(number)

    def forget(self, number: int) -> None:
        """Put back a trial that nobody will evaluate, as if it had not been asked."""
        known = self.trial(number)
        if known.status != "pending":
            raise Conflict(known)
        self.writer.forget(number)

    def is_stored(self, trial: Trial) -> bool:
        """Whether an answer is in the database, and not in a file beside it that waits for the database."""
        try:
            return self.trial(trial.number).status == trial.status
        except (StudyError, NoSuchTrial):
            return False

    def close(self) -> None:
        self.closed = True
        self.thinker.close()
        self.reader.close()
        if self._writer is not None:
            self._writer.close()


def outcome(trial: Trial) -> str:
    """What happened to a trial, in words."""
    match trial.status:
        case "told":
            return f"has the value {trial.y!r} already"
        case "failed":
            return f"has failed already{f': {trial.why}' if trial.why else ''}"
        case "rejected":
            return "was set aside: it is not to be evaluated"
        case "retracted":
            return "had a value that was taken back"
    return "waits for its result"
