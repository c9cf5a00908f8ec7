"""What is believed in a run: the model of everything told, and that of each moment at which a value came in."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from threading import RLock
from typing import Concatenate, ParamSpec, TypeVar

from gpmi._support.types import Array, Event, Observations
from gpmi.analysis.ledger.account import Memory
from gpmi.model.model import Extensions, Model, Setting, information_of
from gpmi.model.orientation import Orientation
from gpmi.trials import Log, Trial

Self = TypeVar("Self", bound="Believing")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

# One line for each outcome at INFO, one for each event at WARNING. Without a handler of the user's nothing is written.
logger = logging.getLogger("gpmi")
logger.addHandler(logging.NullHandler())


def locked(method: Callable[Concatenate[Self, Arguments], Result]) -> Callable[Concatenate[Self, Arguments], Result]:
    """The method under the lock of its object: threads that share it wait for each other."""

    @wraps(method)
    def alone(self: Self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with self._lock:
            return method(self, *args, **kwargs)

    return alone  # type: ignore[return-value]  # mypy misses that self comes first in both


class Believing:
    """The part of an Optimizer that knows the log and what follows from it."""

    def __init__(self, setting: Setting, orientation: Orientation) -> None:
        self._lock = RLock()
        self._orientation = orientation
        self._log = Log()
        self._events: dict[Event, int] = {}  # in order, with the number of values told when each first occurred
        self._believe_anew(setting)

    def _believe_anew(self, setting: Setting) -> None:
        """Drop what was derived from values that are no longer those of the log."""
        self._setting = setting
        self._extensions = Extensions()
        self._memory = Memory({}, {})  # what was read of the ledger, for the next one
        self._model: Model | None = None  # after the values told when it was last needed
        self._foresight: Model | None = None  # that of the policy's last choice, extended by the values told since

    def _values(self) -> Array:
        """The values told, oriented, (n,)."""
        return self._orientation.values(self._log.observed.y)

    def _observed(self) -> Observations:
        """The values told, oriented, with their coordinates and noise."""
        observed = self._log.observed
        return replace(observed, y=self._orientation.values(observed.y)) if self._orientation.mirrors else observed

    def _believe(self) -> Model:
        """The model after everything told."""
        setting = self._setting.after(self._log.given)
        model = Model.after(setting, self._observed(), self._foresight, self._model)
        self._model = model = model.given(self._log.outcomes)
        self._note(*model.prior.events)
        if model.warp.bends:
            self._note(Event("transformed", f"the model is that of {self._orientation.warp(model.warp)}"))
        self._note(*model.posterior.events, *model.events)
        return model

    def _foreseeing(self) -> Model | None:
        """The model to compare the next value with; None with a learned prior before the policy's first choice."""
        log = self._log
        if not (self._setting.priors.given or (log.unchosen < len(log) and log.told)):
            return None
        with suppress(Exception):  # a value is recorded whatever the model says; the next `ask` raises what is wrong
            if self._foresight is None:
                return self._believe()
            return self._foresight.extended(self._observed())
        return None

    def _compare(self, trial: Trial, before: Model) -> Trial:
        """Note how the value just told compares with what was foreseen. O(n^2), of which the next `ask` is relieved."""
        observed = self._observed()
        try:
            model = before.extended(observed)
        except Exception:  # as above
            return trial
        self._foresight = model
        mu, var, surprise = model.foreseen(before, observed)
        said: dict[str, float] = {}
        if trial.mu is None:
            median, said["sd"] = model.in_units_of_y(mu, math.sqrt(var))
            said["mu"] = self._orientation.value(median)
        said["surprise"] = self._orientation.value(surprise)
        said["information"] = information_of(var, float(model.posterior.noise[-1]))
        return self._log.note(trial.number, **said)

    def _note(self, *events: Event) -> None:
        for event in events:
            if event not in self._events:
                self._events[event] = len(self._log.told)
                logger.warning("%s: %s", event.kind, event.message)
