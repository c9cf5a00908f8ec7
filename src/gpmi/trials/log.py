"""The log of a run: which points were asked or told, the outcome of each, and in which order. It knows no model."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import takewhile
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array, GrowingObservations, Mask, Observations, Point
from gpmi.trials.outcomes import Outcomes
from gpmi.trials.trial import Origin, Outcome, Status, Trial, names_a_trial

Happened: TypeAlias = Literal["added", "told", "failed", "rejected", "forgotten", "corrected", "retracted"]


class Entry(NamedTuple):
    """One entry of the log: what happened to which trial, and when."""

    what: Happened
    number: int  # of the trial
    when: float  # seconds since 1970
    y: float | None = None  # the value that was told, or that another one was corrected to
    noise_var: float = 0.0
    repeats: int = 1
    constraints: tuple[float, ...] = ()
    why: str | None = None  # it failed


class Log:
    """The trials of a run and what happened to them, in order.

    A number is never used again, not even after its point was forgotten. A trial stands if it is pending, told or
    failed. One that was rejected or retracted is kept, and counts for no model.
    """

    def __init__(self) -> None:
        self._trials: dict[int, Trial] = {}
        self._rows: dict[int, Array] = {}  # of all trials
        self._entries: list[Entry] = []
        self._next_number = 0
        self._outcomes = 0  # how many there have been
        self._derive()

    def _derive(self) -> None:
        """What follows from the trials. O(n)."""
        # The numbers of the trials by status, each in the order in which they got that status.
        self._pending: dict[int, None] = {}
        self._told: list[int] = []
        self._failed: list[int] = []
        self._rejected: list[int] = []
        self._standing: dict[int, Array] = {}  # the rows of the trials that stand
        self._observed = GrowingObservations()
        self._chosen: set[int] = set()  # the trials that stand and that the policy chose
        self._pending_at: dict[bytes, list[int]] = {}  # the pending trials by their coordinates
        self._places: Counter[bytes] = Counter()  # how many trials stand at each point
        vars(self).pop("given", None)
        for trial in self._trials.values():
            self._list(trial)
        ended = [trial for trial in self._trials.values() if trial.status not in ("pending", "retracted")]
        for trial in sorted(ended, key=lambda trial: trial.order or 0):
            self._list_outcome(trial)

    def _list(self, trial: Trial) -> None:
        """Enter a trial in the lists that do not depend on the order of the outcomes."""
        if trial.status in ("rejected", "retracted"):
            return
        row = self._rows[trial.number]
        self._standing[trial.number] = row
        self._places[row.tobytes()] += 1
        if trial.origin == "policy":
            self._chosen.add(trial.number)
        if trial.status == "pending":
            self._pending[trial.number] = None
            self._pending_at.setdefault(row.tobytes(), []).append(trial.number)

    def _list_outcome(self, trial: Trial) -> None:
        """Enter a trial in the list of its outcome, behind those that came before."""
        if trial.status == "failed":
            self._failed.append(trial.number)
        elif trial.status == "rejected":
            self._rejected.append(trial.number)
        elif trial.y is not None:
            self._told.append(trial.number)
            self._observed.append(self._rows[trial.number], trial.y, trial.noise_var, trial.repeats)
            if trial.origin == "user":
                vars(self).pop("given", None)

    # What is read

    def __getitem__(self, number: int) -> Trial:
        return self._trials[number]

    def __len__(self) -> int:
        """The number of trials that stand."""
        return len(self._standing)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every trial, pending, rejected and retracted ones included, in the order in which they appeared."""
        return tuple(self._trials.values())

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Everything that happened, in order."""
        return tuple(self._entries)

    @property
    def pending(self) -> list[int]:
        """The numbers of the trials without an outcome, in the order in which they were asked."""
        return list(self._pending)

    @property
    def told(self) -> Sequence[int]:
        """The numbers of the trials with a value, in the order in which the values came."""
        return self._told

    @property
    def failed(self) -> Sequence[int]:
        """The numbers of the trials that failed, in the order in which they failed."""
        return self._failed

    @property
    def rejected(self) -> Sequence[int]:
        """The numbers of the trials that were rejected, in the order in which they were."""
        return self._rejected

    def told_since(self, number: int) -> int:
        """How many values were told after the outcome of this trial."""
        order = self._trials[number].order
        assert order is not None
        return len(self._told) - bisect_left(self._told, order, key=lambda told: self._trials[told].order or 0)

    @property
    def rows(self) -> Mapping[int, Array]:
        """The coordinates (d,) of each trial that stands, by number."""
        return MappingProxyType(self._standing)

    def row(self, number: int) -> Array:
        """The coordinates (d,) of any trial."""
        return self._rows[number]

    @property
    def places(self) -> Mapping[bytes, int]:
        """How many trials stand at each point, by the bytes of its coordinates."""
        return self._places

    @property
    def told_rows(self) -> Sequence[Array]:
        """The coordinates of the values told, in the order in which they came."""
        return [self._rows[number] for number in self._told]

    @property
    def observed(self) -> Observations:
        """The values told with their coordinates and noise, in the order in which they came. O(1)."""
        return self._observed.all

    @property
    def outcomes(self) -> Outcomes | None:
        """What is known of failures and constraints; None if nothing failed and none was measured. O(n)."""
        if not self._failed and not self.count_of_constraints():
            return None
        limits, failed = [self._trials[number].constraints for number in self._told], set(self._failed)
        ended = sorted([*self._told, *self._failed], key=lambda number: self._trials[number].order or 0)
        x = np.array([self._rows[number] for number in ended])
        values = np.array(limits).reshape(len(limits), -1 if limits else 0)
        return Outcomes(x, np.array([number in failed for number in ended], dtype=bool), values)

    def failed_lately(self, count: int) -> tuple[int, int]:
        """How many of the policy's last `count` trials with an outcome failed, and how many these are. O(n)."""
        if not self._failed:
            return 0, 0
        ended = [trial for trial in self._trials.values() if trial.status in ("told", "failed")]
        last = sorted((t for t in ended if t.origin == "policy"), key=lambda trial: trial.order or 0)[-count:]
        return sum(trial.status == "failed" for trial in last), len(last)

    def count_of_constraints(self, but: int | None = None) -> int | None:
        """How many constraints come with each value; None before the first, the trial `but` left out."""
        told = next((number for number in self._told if number != but), None)
        return None if told is None else len(self._trials[told].constraints)

    def chosen(self, numbers: Iterable[int]) -> Mask:
        """Which of these trials, all of which stand, the policy chose. (k,)"""
        return np.fromiter(map(self._chosen.__contains__, numbers), dtype=bool)

    @property
    def unchosen(self) -> int:
        """How many trials that stand the policy did not choose."""
        return len(self._standing) - len(self._chosen)

    @cached_property
    def given(self) -> int:
        """How many values that stand were told before the first point was asked. O(1) for each, once."""
        first = takewhile(lambda trial: trial.origin == "user", self._trials.values())
        return sum(trial.status == "told" for trial in first)

    def find_pending(self, row: Array, rounding: Array) -> int | None:
        """The first pending trial at these coordinates, or else the only one within `rounding` (d,) of them."""
        exact = self._pending_at.get(row.tobytes())
        if exact:
            return exact[0]
        if not self._pending or not rounding.any():
            return None
        numbers = list(self._pending)
        apart = np.abs(np.array([self._rows[number] for number in numbers]) - row)
        close = np.flatnonzero(np.all(apart <= rounding, axis=1))
        return numbers[int(close[0])] if len(close) == 1 else None

    def pending_number(self, trial: Trial | int) -> int:
        """The number of a pending trial; a ValueError if it is not pending in this log."""
        number = trial.number if isinstance(trial, Trial) else int(trial)
        if number not in self._pending:
            others = f"give one of {self.pending[:10]}" if self._pending else "none is; correct replaces a value"
            raise ValueError(f"x is trial {number}, which is not pending: {self._state(number)}; {others}")
        return number

    def number_with(self, trial: Any, statuses: Sequence[Status], remedy: str) -> int:
        """The number of a trial, given as itself or by its number, that has one of these statuses."""
        if not names_a_trial(trial):
            raise TypeError(f"trial is {checks.shown(trial)}; give a Trial or its number")
        number = trial.number if isinstance(trial, Trial) else int(trial)
        if number not in self._trials or self._trials[number].status not in statuses:
            raise ValueError(f"trial is {number}: {self._state(number)}; {remedy}")
        return number

    def _state(self, number: int) -> str:
        known = self._trials.get(number)
        return "there is no such trial" if known is None else f"it is {known.status}"

    # What happens

    def add(self, x: Point, row: Array, origin: Origin, *, number: int | None = None, **said: Any) -> Trial:
        """Add a pending trial at x, whose coordinates are `row`; `said` are fields of `Trial` that the model fills.

        Its number is the next one, unless it brings one that was not used before.
        """
        now = time.time()
        asked = {"asked": None if origin == "user" else now}
        number = self._next_number if number is None else number
        trial = Trial(number, x, None, "pending", origin, **{**asked, **said})
        self._trials[trial.number], self._rows[trial.number] = trial, row
        self._list(trial)
        self._next_number = max(self._next_number, number + 1)
        self._entries.append(Entry("added", trial.number, trial.asked or now))
        return trial

    def settle(
        self, number: int, y: float | None, ended: float | None = None, *, rejected: bool = False, **more: Any
    ) -> Trial:
        """Record the outcome of a pending trial: its value y, or None if it failed or the point was rejected.

        `ended` is now by default; `more` are noise_var, repeats and constraints of y, or why it failed.
        """
        status: Outcome = "told" if y is not None else "rejected" if rejected else "failed"
        ended = time.time() if ended is None else ended
        said: dict[str, Any] = {"status": status, "y": y, "order": self._outcomes, "ended": ended}
        trial = replace(self._trials[number], **said, **more)
        self._outcomes += 1
        self._trials[number] = trial
        self._entries.append(Entry(status, number, ended, y, *_details(trial)))
        self._no_longer_pending(number)
        if rejected:
            self._no_longer_standing(number)
        self._list_outcome(trial)
        return trial

    def correct(
        self, number: int, y: float, noise_var: float, repeats: int, constraints: tuple[float, ...] = ()
    ) -> Trial:
        """Give a trial with an outcome the value y, at its place in the order of the outcomes. O(n).

        What was predicted for it stays; how its old value compared with that is dropped.
        """
        said: dict[str, Any] = {"y": y, "status": "told", "noise_var": noise_var, "repeats": repeats}
        self._trials[number] = trial = replace(self._outdated(number), **said, constraints=constraints, why=None)
        self._entries.append(Entry("corrected", number, time.time(), y, *_details(trial)))
        self._derive()
        return self._trials[number]

    def retract(self, number: int) -> Trial:
        """Take back the outcome of a trial: it counts for nothing any more. O(n)."""
        self._trials[number] = replace(self._outdated(number), y=None, status="retracted")
        self._entries.append(Entry("retracted", number, time.time()))
        self._derive()
        return self._trials[number]

    def _outdated(self, number: int) -> Trial:
        old = self._trials[number]
        before = old.y if old.y_before is None else old.y_before
        return replace(old, y_before=before, surprise=None, information=None)

    def note(self, number: int, **said: Any) -> Trial:
        """Fill further fields of a trial."""
        trial = self._trials[number] = replace(self._trials[number], **said)
        return trial

    def forget(self, number: int) -> None:
        """Drop a pending trial, as if it had never been asked."""
        self._no_longer_pending(number)
        self._no_longer_standing(number)
        del self._trials[number], self._rows[number]
        vars(self).pop("given", None)
        self._entries.append(Entry("forgotten", number, time.time()))

    def _no_longer_pending(self, number: int) -> None:
        del self._pending[number]
        at = self._rows[number].tobytes()
        self._pending_at[at].remove(number)
        if not self._pending_at[at]:
            del self._pending_at[at]

    def _no_longer_standing(self, number: int) -> None:
        self._chosen.discard(number)
        place = self._standing.pop(number).tobytes()
        self._places[place] -= 1
        if not self._places[place]:
            del self._places[place]


def _details(trial: Trial) -> tuple[float, int, tuple[float, ...], str | None]:
    return trial.noise_var, trial.repeats, trial.constraints, trial.why
