"""The log of a study as an Optimizer: each entry is played, in order, and what was not yet asked can be proposed.

Playing computes no model, so it costs O(1) for most entries. A proposal depends on the seed and on what was played.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from gpmi._support.types import Point
from gpmi.gp.linalg import one_blas_thread
from gpmi.model.model import Model
from gpmi.optimizer import Optimizer
from gpmi.storage.entries import Entry
from gpmi.storage.errors import StudyError
from gpmi.storage.serialization import arguments, plain, point_from_json, point_to_json
from gpmi.trials import Trial

CORE = {  # the fields of a trial that the log has under its own names; the others are what a model said
    *("number", "x", "y", "status", "origin", "order", "asked", "ended", "noise_var", "repeats", "y_before"),
    *("constraints", "why", "fixed"),
}
SAID = tuple(field.name for field in fields(Trial) if field.name not in CORE)
# With more values told, a process that has proposed nothing yet does not learn a prior only to say how surprising a
# value is: a fit on 256 takes about a tenth of a second, while others wait for the lock.
FEW = 256


class Mirror(Optimizer):
    """An Optimizer whose trials are those of a log."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        self._description = description
        super().__init__(**arguments(description))
        self.next_number = 0
        self.granted: dict[int, Entry] = {}  # the entry with which each trial was last handed out
        self.forgotten: dict[int, Point] = {}

    def reset(self) -> None:
        """Forget everything that was played."""
        lock = self._lock
        Mirror.__init__(self, self._description)
        self._lock = lock

    # What can be read of it

    def at(self, number: int) -> Trial:
        return self._log[number]

    def is_pending(self, number: int) -> bool:
        return number in self._log.rows and self._log[number].status == "pending"

    def point_of(self, number: int) -> Point | None:
        """The point of any trial there ever was; None if there was none with this number."""
        if number in self.forgotten:
            return self.forgotten[number]
        return self._log[number].x if 0 <= number < self.next_number else None

    @property
    def evaluated(self) -> int:
        """How many of the points that were asked have an outcome; what was retracted or rejected has none. O(n).

        The budget of a study counts these alone, so that values which are imported on the way leave it as it is.
        """
        return sum(trial.origin != "user" and trial.status in ("told", "failed") for trial in self._log.trials)

    def _budget_of_all(self) -> int | None:
        given = sum(trial.origin == "user" for trial in self._log.trials)
        return None if self.budget is None else self.budget + given

    # What is new

    def context(self, fixed: Any) -> Mapping[Any, Any] | None:
        """The coordinates that are given, checked, as a trial has them; None if all are chosen."""
        return self._places.given(fixed).fixed

    def propose(self, fixed: Any = None) -> dict[str, Any]:
        """What the next entry says if a point is asked for; nothing is changed but what is remembered of the model."""
        with self._lock:
            super().ask(fixed=fixed)
            trial = self._log[self._log.pending[-1]]
            super().forget(trial.number)
        return {
            **{"number": self.next_number, "x": point_to_json(self.space, trial.x), "origin": trial.origin},
            **({} if trial.fixed is None else {"fixed": [[key, plain("fixed", v)] for key, v in trial.fixed.items()]}),
            **{"said": _said(trial), "by": own_version()},
        }

    def foretell(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """Play a value that is told just now, and return what the model says of it."""
        more = {name: said[name] for name in ("noise_var", "repeats", "constraints") if said.get(name)}
        with self._lock:
            return _said(super().tell(self._placed(said), said["y"], **more))

    def ended(self, number: int, when: float) -> None:
        """Note when the outcome of a trial came, by the clock of the database."""
        self._log.note(number, ended=when)

    def _foreseeing(self) -> Model | None:
        if self._foresight is None and len(self._log.told) > FEW:
            return None
        return super()._foreseeing()

    # What is in the log

    def play(self, entry: Entry) -> None:
        """Take over what an entry says."""
        try:
            self.do(entry)
        except StudyError:
            raise
        except Exception as error:
            raise StudyError(
                f"entry {entry.seq} of the log ({entry.kind}) cannot be replayed, so it was changed by hand, or "
                f"written by another version of gpmi: {error}"
            ) from error

    def do(self, entry: Entry) -> None:
        """As `play`, for an entry that somebody wants to write just now: what is wrong with it is said as it is."""
        with self._lock, one_blas_thread:
            getattr(self, f"play_{entry.kind}")(entry.said, entry)

    def play_created(self, said: dict[str, Any], entry: Entry) -> None:
        pass

    def play_budget(self, said: dict[str, Any], entry: Entry) -> None:
        self.budget = int(said["budget"])

    def play_asked(self, said: dict[str, Any], entry: Entry) -> None:
        given = {"fixed": self.context(given_in(said)), "asked": entry.time}
        number = self._added(said["number"], said["x"], said["origin"], **given, **_known(said["said"]))
        self.granted[number] = entry

    def play_leased(self, said: dict[str, Any], entry: Entry) -> None:
        self.granted[said["number"]] = entry

    def play_told(self, said: dict[str, Any], entry: Entry) -> None:
        number = self._placed(said)
        more: dict[str, Any] = {"noise_var": said.get("noise_var", 0.0), "repeats": said.get("repeats", 1)}
        if said.get("constraints"):
            more["constraints"] = tuple(said["constraints"])
        self._log.settle(number, said["y"], entry.time, **more)
        self._log.note(number, **_known(said["said"]))

    def play_failed(self, said: dict[str, Any], entry: Entry) -> None:
        if not said.get("late"):
            number = self._placed(said)
            super().fail(number, **({"why": said["why"]} if said.get("why") else {}))
            self._log.note(number, ended=entry.time)

    def play_rejected(self, said: dict[str, Any], entry: Entry) -> None:
        super().reject(self._placed(said))

    def play_forgotten(self, said: dict[str, Any], entry: Entry) -> None:
        number = said["number"]
        x = self.point_of(number)
        super().forget(number)
        self.forgotten[number] = x

    def play_corrected(self, said: dict[str, Any], entry: Entry) -> None:
        given = {name: said[name] for name in ("noise_var", "repeats", "constraints") if said.get(name) is not None}
        super().correct(said["number"], said["y"], **given)

    def play_retracted(self, said: dict[str, Any], entry: Entry) -> None:
        super().retract(said["number"])

    def _placed(self, said: Mapping[str, Any]) -> int:
        """The number of the pending trial that is meant, or of a new one if the entry brings its point."""
        number = int(said["number"])
        return self._added(number, said["x"], "user") if "x" in said else number

    def _added(self, number: int, x: Any, origin: Any, **said: Any) -> int:
        point = self.space.canonical(point_from_json(x))
        self._log.add(self.space.freeze(point), self.space.encode(point), origin, number=number, **said)
        self.next_number = max(self.next_number, number + 1)
        return number


def given_in(said: Mapping[str, Any]) -> dict[Any, Any] | None:
    """The coordinates that were given when a trial was asked, by name or number."""
    return {key: value for key, value in said["fixed"]} if "fixed" in said else None


def _said(trial: Trial) -> dict[str, Any]:
    """What a model said of a trial."""
    values = {name: getattr(trial, name) for name in SAID}
    return {name: plain(name, value) for name, value in values.items() if value is not None}


def _known(said: Mapping[str, Any]) -> dict[str, Any]:
    """The part of it that this version knows; a later one may say more."""
    return {name: value for name, value in said.items() if name in SAID}


@lru_cache
def own_version() -> str:
    """Which gpmi this is: a suggestion can be computed again by the one that made it."""
    with suppress(PackageNotFoundError):
        return f"gpmi {version('gpmi')}"
    return "gpmi"
