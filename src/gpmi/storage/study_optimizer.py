"""An Optimizer whose every word is kept in a study: what works on an Optimizer works on a study."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import Any, overload

from gpmi._support.interrupts import uninterrupted
from gpmi._support.types import Event, Point
from gpmi.storage.replayed import Mirror
from gpmi.storage.study_log import Fixed, Record
from gpmi.trials import Trial, names_a_trial
from gpmi.trials.dataframe import Printable


class Kept(Mirror):
    """The optimizer of a study. It has what was in the log when it was last used; `Study` looks before each answer."""

    record: Record

    def __init__(self, description: Mapping[str, Any]) -> None:
        super().__init__(description)

    def remark(self, *events: Event) -> None:
        """Keep what happened when the study was opened, for whoever reads the events."""
        self._note(*events)

    @overload
    def ask(self, n: None = None, *, fixed: Fixed = None) -> Point: ...
    @overload
    def ask(self, n: int, *, fixed: Fixed = None) -> list[Point]: ...
    def ask(self, n: int | None = None, *, fixed: Fixed = None) -> Point | list[Point]:
        """As `Optimizer.ask`; the points may be those of workers that died."""
        trials = self.record.ask(1 if n is None else n, fixed=fixed)
        points = [self.space.copy(trial.x) for trial in trials]
        return points[0] if n is None else points

    def tell(self, x: Point | Trial | int, y: float, **more: Any) -> Trial:
        """As `Optimizer.tell`, and as safe as `Study.tell`."""
        return self.record.tell(self._named(x), y, **more)

    def fail(self, x: Point | Trial | int, why: str | None = None) -> Trial:
        """As `Optimizer.fail`."""
        number: Any = self._named(x)
        return self.record.fail(number, why)

    def forget(self, x: Point | Trial | int) -> None:
        """As `Optimizer.forget`."""
        number: Any = self._named(x)
        self.record.forget(number)

    def correct(self, trial: Trial | int, y: float, **more: Any) -> Trial:
        """As `Optimizer.correct`."""
        return self.record.correct(trial, y, **more)

    def retract(self, trial: Trial | int) -> Trial:
        """As `Optimizer.retract`."""
        return self.record.retract(trial)

    def reject(self, x: Point | Trial | int) -> Trial:
        """As `Optimizer.reject`."""
        return self.record.reject(self._named(x))

    def tell_all(self, observations: Iterable[Any] | Printable, *, noise_var: float = 0.0) -> list[Trial]:
        """As `Optimizer.tell_all`; a list that was told before, as at the beginning of this run, is told once."""
        return self.record.tell_first(self._known(observations, noise_var))

    def replay(self, trials: Iterable[Trial] | Printable) -> Any:
        """A study has its own trials."""
        raise ValueError("trials cannot be replayed into a study; tell their values with tell_all")

    def turns(self, budget: int | None) -> Generator[Trial | None, None, None]:
        """The trials that this worker is to evaluate, one after the other, until the study has `budget` outcomes.

        None where all that is left is being evaluated, by others or for this loop: a worker may die. What has no
        outcome when the loop ends is given back.
        """
        handed: list[int] = []
        try:
            while (turn := self.record.turn(budget)) is not False:
                if isinstance(turn, Trial):
                    handed.append(turn.number)
                    self.record.in_loops.add(turn.number)
                yield turn if isinstance(turn, Trial) else None
        finally:
            uninterrupted(lambda: self.record.give_back(handed))

    def _named(self, x: Point | Trial | int) -> Point | Trial | int:
        """A pending trial by its number, if a point means one."""
        if names_a_trial(x):
            return x
        number = self._meant(x)
        return x if number is None else number
