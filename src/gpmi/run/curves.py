"""Curves: f is a generator that yields (step, value) on its way to the target of the fidelity, and may be stopped.

Every value is recorded before the generator goes on. The same rules hold for a generator in this process, in a process
of its own, and for a curve that an executor returns as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from gpmi._support.checks import shown
from gpmi._support.interrupts import Interrupts
from gpmi._support.logger import logger
from gpmi._support.long_work import lazy_call
from gpmi._support.text import error_message
from gpmi._support.types import Event
from gpmi.optimizer import Optimizer
from gpmi.run.evaluation import (
    LEARN_FROM_FAILURES,
    Drained,
    Failure,
    Measured,
    NoNumber,
    RaisedInProcess,
    RemoteGenerator,
    failure_from,
    not_finite,
    number_of,
    record,
)
from gpmi.trials import Outcome, Trial
from gpmi.trials.trial import ENDED

PAIR = "yield a step and its value, such as (1, 0.5)"
NOT_STOPPED = Event(
    "not stopped", "an executor gives no way back to f, so every curve ran to its end; workers= can stop them"
)


class EndOfCurve(NamedTuple):
    """The end of a generator."""


class BadCurve(Exception):
    """What a generator yielded is of no use; `kind` is the error to raise unless the run learns from failures."""

    def __init__(self, kind: type[Exception], what: str, problem: str) -> None:
        super().__init__(f"{what}: {problem}")
        self.kind, self.what, self.problem = kind, what, problem


class Curves:
    """Records what generators yield, and says when they are to stop.

    `cost` is what all evaluations of the run may cost; None without a limit. `show` is called with each trial that has
    a new value.
    """

    def __init__(
        self, optimizer: Optimizer, *, learns: bool, cost: float | None, show: Callable[[Trial], None]
    ) -> None:
        self._optimizer, self._learns, self._cost, self._show = optimizer, learns, cost, show
        self._known: dict[int, int] = {}  # the last step of each trial when its evaluation began
        self._last: dict[int, Any] = {}  # the last step that was yielded since

    # Which trials begin

    def has_room(self, trial: Trial | None = None) -> bool:
        """Whether a trial may begin before the cost is spent, or any trial for None."""
        return self._cost is None or self._optimizer.has_room(self._cost, trial)

    def begin(self, trial: Trial) -> None:
        """Note that a generator begins. What it yields for steps that the trial has already changes nothing."""
        if self._optimizer.space.curve_fidelity is None:
            remedy = 'give it a fidelity such as "epoch": gpmi.Fidelity(1, 52), or return one value'
            raise ValueError(f"f is a generator, but the space has no steps; {remedy}")
        current = self._current(trial)
        self._known[trial.number] = current.curve[-1].step if current is not None and current.curve else 0
        self._last.pop(trial.number, None)

    def forget(self, trial: Trial) -> None:
        """Note that an evaluation begins, perhaps again after its worker died. f may be a generator."""
        self._known.pop(trial.number, None)

    # What a generator yields

    def report(self, trial: Trial, item: Any) -> bool:
        """Record what a generator has yielded; return whether it goes on. Raise BadCurve if it is of no use."""
        if trial.number not in self._known:
            self.begin(trial)
        what = f"f yielded {shown(item)}"
        if not isinstance(item, tuple | list) or isinstance(item, NoNumber) or len(item) != 2:
            raise BadCurve(TypeError, what, PAIR)
        step, y = item
        if not isinstance(y, Mapping | Measured | Failure) and number_of(y) is None:
            raise BadCurve(TypeError, what, "the value of a step must be one finite number, or a dict of outputs")
        if isinstance(y, Failure):
            raise BadCurve(ValueError, what, y.why)
        if (wrong := not_finite(y)) is not None:
            raise BadCurve(ValueError, what, f"the value is {wrong}")
        is_whole = isinstance(step, int | np.integer) and not isinstance(step, bool)
        last = self._last.get(trial.number)
        if is_whole and last is not None and 0 < step <= last:
            raise BadCurve(ValueError, what, f"step {last} came before; report each step once, in order")
        if is_whole and 0 < step <= self._known[trial.number]:
            self._last[trial.number] = step
            return True
        try:
            goes_on = self._recorded(trial, step, y)
        except (TypeError, ValueError) as error:
            current = self._current(trial)
            if current is not None and current.status in ("pending", "stopped"):
                raise BadCurve(TypeError if isinstance(error, TypeError) else ValueError, what, str(error)) from error
            logger.warning("trial %d has ended, so %s is not recorded: %s", trial.number, shown(item), error)
            return False
        self._last[trial.number] = step
        if goes_on and self._cost is not None:
            goes_on = self._optimizer.has_room(self._cost, trial)
            if not goes_on:
                self._optimizer.record(trial, Outcome.stop("the cost is spent"))
        current = self._current(trial)
        if current is not None:
            self._show(current)
        return goes_on

    def _recorded(self, trial: Trial, step: Any, y: Any) -> bool:
        if not isinstance(y, Measured):
            return self._optimizer.report(trial, step, y) == "continue"
        if step == self._last_step:
            record(self._optimizer, trial, y, learns=False)
            return False
        if y.constraints or y.noise_var:
            raise TypeError("only the value at the target may have constraints and a noise_var; yield (step, y)")
        return self._optimizer.report(trial, step, y.y) == "continue"

    @property
    def _last_step(self) -> int:
        fidelity = self._optimizer.space.curve_fidelity
        assert fidelity is not None
        return int(fidelity.fidelity.target)

    def end(self, trial: Trial) -> Trial | None:
        """Record that a generator has ended by itself. None if the trial is now that of another worker."""
        current = self._current(trial)
        if current is not None and current.status == "pending":
            if trial.number not in self._last:
                raise BadCurve(ValueError, "f is a generator that yielded nothing", PAIR)
            why = f"ended at step {self._last[trial.number]} of {self._last_step}"
            remedy = f"yield step {self._last_step}, or give a fidelity that ends earlier"
            self._optimizer.add_events(Event("ended early", f"f {why}, so it has no value at the target; {remedy}"))
            return self._optimizer.record(trial, Outcome.stop(why))
        return self.ended(trial)

    def ended(self, trial: Trial) -> Trial | None:
        """Return a trial if it has an outcome."""
        current = self._current(trial)
        return None if current is None or current.status not in ENDED else current

    def fail(self, trial: Trial, bad: BadCurve) -> Trial:
        """Record a curve that is of no use as a failure, or raise its error."""
        if self._learns:
            return self._optimizer.fail(trial, str(bad))
        raise bad.kind(f"{bad.what} at x = {trial.x!r}; {bad.problem}; {LEARN_FROM_FAILURES}") from bad

    def _current(self, trial: Trial) -> Trial | None:
        return next((stored for stored in reversed(self._optimizer.trials) if stored.number == trial.number), None)

    # Whole curves

    def record_all(self, trial: Trial, curve: Drained) -> Trial | None:
        """Record a curve that an executor has returned. Nothing could be stopped, so all its values are recorded."""
        self._optimizer.add_events(NOT_STOPPED)
        try:
            self.begin(trial)
            for item in curve.items:
                self.report(trial, item)
            if curve.error is None:
                return self.end(trial)
        except BadCurve as bad:
            return self.fail(trial, bad)
        if self._learns:
            return self._optimizer.fail(trial, curve.error)
        raise RaisedInProcess(curve.error)

    def follow(self, generator: Generator[Any, Any, Any], trial: Trial, interrupts: Interrupts) -> Trial | None:
        """Record what a generator yields until it ends or is to stop. Close it then, so that f can clean up.

        Ctrl-C acts while f runs. What was yielded before is recorded, and the trial stays pending.
        """
        attempt = 0
        try:
            self.begin(trial)
            while True:
                item = self._next(generator, trial, interrupts)
                if isinstance(generator, RemoteGenerator) and generator.attempt != attempt:
                    attempt = generator.attempt
                    self.begin(trial)  # f has started over
                if isinstance(item, EndOfCurve):
                    return self.end(trial)
                if isinstance(item, Failure):
                    return record(self._optimizer, trial, item, learns=True)
                if not self.report(trial, item):
                    break
        except BadCurve as bad:
            _abandon(generator)
            return self.fail(trial, bad)
        except BaseException:
            _abandon(generator)
            raise
        interrupts.presses_needed = 1
        try:
            generator.close()
        except Exception as error:
            self.note_cleanup(trial, error)
        finally:
            interrupts.presses_needed = None
        return self.ended(trial)

    def _next(self, generator: Generator[Any, Any, Any], trial: Trial, interrupts: Interrupts) -> Any:
        item = lazy_call(self._advance if self._learns else _advance, generator)
        try:
            try:
                interrupts.presses_needed = 1
                interrupts.act()
                return item[0]
            finally:
                interrupts.presses_needed = None
        except BaseException:
            if item and not isinstance(item[0], EndOfCurve | Failure):  # Ctrl-C came just after it
                with suppress(BadCurve):
                    self.report(trial, item[0])
            raise

    def _advance(self, generator: Generator[Any, Any, Any]) -> Any:
        try:
            return _advance(generator)
        except Exception as error:
            return failure_from(error)

    def note_cleanup(self, trial: Trial, error: Exception) -> None:
        """Note that f raised when it was stopped; raise the error unless the run learns from failures."""
        if not self._learns:
            raise error
        text = f"f raised {type(error).__name__} when trial {trial.number} was stopped: {error_message(error)}"
        self._optimizer.add_events(Event("clean-up failed", text))


def _advance(generator: Generator[Any, Any, Any]) -> Any:
    try:
        return next(generator)
    except StopIteration as end:
        if end.value is not None:
            raise BadCurve(TypeError, f"f is a generator that returned {shown(end.value)}", PAIR) from None
        return EndOfCurve()


def _abandon(generator: Generator[Any, Any, Any]) -> None:
    """End a generator whose values are no longer wanted."""
    try:
        if isinstance(generator, RemoteGenerator):
            generator.abandon()
        else:
            generator.close()
    except Exception as error:
        logger.warning("f raised when it was ended: %s", error_message(error))
