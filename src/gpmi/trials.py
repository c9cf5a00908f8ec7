"""The log of a run: which points were asked or told, the outcome of each, and in which order. It knows no model."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias, TypeGuard, get_args

import numpy as np

from gpmi import checks
from gpmi.text import trial_line
from gpmi.types import Array, Mask, Point

Status: TypeAlias = Literal["pending", "told", "failed"]
Origin: TypeAlias = Literal["design", "policy", "user"]
Happened: TypeAlias = Literal["added", "told", "failed", "forgotten"]

LARGEST = 1e100  # the largest |y|: y^2 = 1e200 leaves room for sums and products below the largest float, 1.8e308


@dataclass(frozen=True, eq=False, repr=False)
class Trial:
    """One point: where it came from, what was predicted for it, and its outcome."""

    number: int
    x: Point
    y: float | None
    status: Status
    origin: Origin  # asked as part of the initial design, asked by the policy, or told without being asked
    order: int | None = None  # the place of its outcome among all outcomes, from 0; None while it is pending
    # f(x) as predicted when the policy chose x, or when y was told if the policy did not choose it. In units of y:
    # where y was transformed mu is the median, and sd half the width of the central 68 %.
    mu: float | None = None
    sd: float | None = None
    # Of the policy's choice, in units of the transformed y; None where the policy did not choose:
    phi: float | None = None  # phi_t(x_t), for policies of the form mu + phi
    gamma_hat: float | None = None  # the gamma_hat that phi_t was computed with
    explored: bool | None = None  # whether mu was more than one sd of the noise below the best mean at a told point
    # Of the guard of aim="earn" (`gpmi.policies.guard`), in units of y; None where there is no guard:
    charge: float | None = None  # what the account was charged for this query
    zeta: float | None = None  # the weight with which the guard chose it; None where it let the policy choose
    # Under the model of the policy's last choice, extended by the values told since:
    surprise: float | None = None  # (y - mu) / sqrt(var + noise_var)
    information: float | None = None  # what y tells about f, log(1 + var / noise_var) / 2, in nats
    asked: float | None = None  # the time when it was asked, in seconds since 1970; None if it was told without asking
    ended: float | None = None  # the time when its outcome came in

    @property
    def label(self) -> Any:
        """The label of the row of the DataFrame of candidates that x is; None in other spaces."""
        return getattr(self.x, "label", None)

    def __repr__(self) -> str:
        return trial_line(self.number, self.x, self.y, self.status, self.origin)


class Entry(NamedTuple):
    """One entry of the log: what happened to which trial, and when."""

    what: Happened
    number: int  # of the trial
    when: float  # seconds since 1970


class Log:
    """The trials of a run and what happened to them, in order.

    A trial is identified by its number. A number is never used again, not even after its point was forgotten.
    """

    def __init__(self) -> None:
        self._trials: dict[int, Trial] = {}
        self._rows: dict[int, Array] = {}
        self._entries: list[Entry] = []
        self._next_number = 0
        # The numbers of the trials by status, each in the order in which they got that status.
        self._pending: dict[int, None] = {}
        self._told: list[int] = []
        self._failed: list[int] = []
        self._told_rows: list[Array] = []
        self._told_values: list[float] = []
        self._unchosen = 0
        self._given = 0
        self._pending_at: dict[bytes, list[int]] = {}  # the pending trials by their coordinates
        self._places: Counter[bytes] = Counter()  # how many trials there are at each point

    # What is read

    def __getitem__(self, number: int) -> Trial:
        return self._trials[number]

    def __len__(self) -> int:
        return len(self._trials)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every trial, pending ones included, in the order in which they appeared."""
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
    def rows(self) -> Mapping[int, Array]:
        """The coordinates (d,) of each trial, by number."""
        return MappingProxyType(self._rows)

    @property
    def places(self) -> Mapping[bytes, int]:
        """How many trials there are at each point, by the bytes of its coordinates."""
        return self._places

    @property
    def told_rows(self) -> Sequence[Array]:
        """The coordinates of the values told, in the order in which they came."""
        return self._told_rows

    @property
    def told_values(self) -> Array:
        """The values told, in the order in which they came, (n,)."""
        return np.array(self._told_values)

    def chosen(self, numbers: Iterable[int]) -> Mask:
        """Which of these trials the policy chose, (k,)."""
        return np.array([self._trials[number].origin == "policy" for number in numbers], dtype=bool)

    @property
    def unchosen(self) -> int:
        """How many trials the policy did not choose."""
        return self._unchosen

    @property
    def given(self) -> int:
        """How many points were told before the first was asked."""
        return self._given

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
            known = self._trials.get(number)
            state = "there is no such trial" if known is None else f"it is {known.status}"
            others = f"give one of {self.pending[:10]}" if self._pending else "no trial is"
            raise ValueError(f"x is trial {number}, which is not pending: {state}; {others}")
        return number

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
        self._pending[trial.number] = None
        self._pending_at.setdefault(row.tobytes(), []).append(trial.number)
        self._places[row.tobytes()] += 1
        self._next_number = max(self._next_number, number + 1)
        self._unchosen += origin != "policy"
        self._given += origin == "user" and self._given == len(self._trials) - 1
        self._entries.append(Entry("added", trial.number, trial.asked or now))
        return trial

    def settle(self, number: int, y: float | None, ended: float | None = None) -> Trial:
        """Record the outcome of a pending trial: its value y, or None if it failed; `ended` is now by default."""
        ended, order = time.time() if ended is None else ended, len(self._told) + len(self._failed)
        status: Literal["told", "failed"] = "failed" if y is None else "told"
        trial = replace(self._trials[number], status=status, y=y, order=order, ended=ended)
        self._trials[number] = trial
        self._no_longer_pending(number)
        if y is None:
            self._failed.append(number)
        else:
            self._told.append(number)
            self._told_rows.append(self._rows[number])
            self._told_values.append(y)
        self._entries.append(Entry(status, number, ended))
        return trial

    def note(self, number: int, **said: Any) -> Trial:
        """Fill further fields of a trial."""
        self._trials[number] = replace(self._trials[number], **said)
        return self._trials[number]

    def forget(self, number: int) -> None:
        """Drop a pending trial, as if it had never been asked."""
        self._unchosen -= self._trials[number].origin != "policy"
        self._no_longer_pending(number)
        place = self._rows[number].tobytes()
        self._places[place] -= 1
        if not self._places[place]:
            del self._places[place]
        del self._trials[number], self._rows[number]
        self._entries.append(Entry("forgotten", number, time.time()))

    def _no_longer_pending(self, number: int) -> None:
        del self._pending[number]
        at = self._rows[number].tobytes()
        self._pending_at[at].remove(number)
        if not self._pending_at[at]:
            del self._pending_at[at]


def names_a_trial(x: Any) -> TypeGuard[Trial | int]:
    """Whether x is a trial or the number of one, and not a point."""
    return isinstance(x, Trial | int | np.integer) and not isinstance(x, bool | np.timedelta64)


SAID = (  # kept when a run is replayed
    *("mu", "sd", "phi", "gamma_hat", "explored", "charge", "zeta", "surprise", "information", "asked"),
)


def take_over(log: Log, trials: Sequence[Trial], rows: Sequence[Array]) -> None:
    """Add the trials of an earlier run with their predictions, then their outcomes in the order of that run.

    An empty log keeps their numbers.
    """
    keeps = len(log.entries) == 0 and len({trial.number for trial in trials}) == len(trials)
    numbers = []
    for trial, row in zip(trials, rows, strict=True):
        said = {name: getattr(trial, name) for name in SAID}
        numbers.append(log.add(trial.x, row, trial.origin, number=trial.number if keeps else None, **said).number)
    settled = [i for i, trial in enumerate(trials) if trial.status != "pending"]
    for i in sorted(settled, key=lambda i: (trials[i].order is None, trials[i].order or 0, i)):
        log.settle(numbers[i], trials[i].y, trials[i].ended)


def checked_trial(trial: Any) -> Trial:
    """A trial of another run: what the log goes by is checked, but its point; what a model said is taken as it is."""
    if not isinstance(trial, Trial):
        raise TypeError(f"trials has {trial!r}; give the trials of a Result or an Optimizer")
    checks.whole("number", trial.number, 0)
    checks.one_of("status", trial.status, get_args(Status))
    checks.one_of("origin", trial.origin, get_args(Origin))
    if trial.order is not None:
        checks.whole("order", trial.order, 0)
    return replace(trial, y=checked_value(trial.y) if trial.status == "told" else None)


def checked_value(y: Any) -> float:
    """y as a finite number that is small enough to be squared."""
    value = checks.number("y", y, "give one finite number, or call fail(x) for an evaluation that has none")
    if abs(value) > LARGEST:
        raise ValueError(f"y is {y!r}, too large to be squared; give values below {LARGEST:g}, in other units")
    return value
