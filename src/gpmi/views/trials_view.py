"""The trials of a run and its parameters, as figures and reports show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpmi._support.text import shortened
from gpmi._support.types import Array, Event, Mask, Point
from gpmi.analysis import FrontAnalysis
from gpmi.analysis.ledger import RunLedger
from gpmi.space import Axis, Mixture, Parameters, Space, axes_of, mixtures_of
from gpmi.trials import Goals, Trial, names_of
from gpmi.trials.goal_summary import at_target
from gpmi.views.fidelities import NoFidelity, fidelity_of

REASON = 200  # characters of the reason for failures, at most


@dataclass(frozen=True, eq=False, kw_only=True)
class TrialsView:
    """The state of a run at one moment."""

    trials: tuple[Trial, ...]
    ledger: RunLedger | None  # None if nothing was told, or if the model failed
    goals: Goals
    space: Space
    seed: int
    events: tuple[Event, ...]
    analysis: FrontAnalysis | None = None  # of a run with goals; None if the model failed
    reason: str | None = None  # why the run stopped
    budget: int | None = None
    name: str | None = None  # of a study
    identity: str | None = None  # of a study, wherever its database is
    called: str = ""  # what the result is called if its user did not name it; f and y by default
    earlier: tuple[str, ...] = ()  # what was made of each earlier study, a line each

    # Trials

    @cached_property
    def told(self) -> tuple[Trial, ...]:
        """The trials with a value, in the order in which the values came; of any output if the result is a front.

        Where there is a fidelity, those at its target.
        """
        return tuple(sorted(filter(self._has_value, self.trials), key=lambda trial: trial.order or 0))

    @cached_property
    def ended(self) -> tuple[Trial, ...]:
        """The trials that are not pending, in the order in which they were suggested."""
        return tuple(trial for trial in self.trials if trial.status != "pending")

    @cached_property
    def numbered(self) -> list[tuple[int, Trial]]:
        """The trials with a value, each with its place t = 1, 2, ... among those that have ended."""
        return [(t, trial) for t, trial in enumerate(self.ended, 1) if self._has_value(trial)]

    def _has_value(self, trial: Trial) -> bool:
        return trial.status == "told" and trial.number in self._at_target

    @cached_property
    def _at_target(self) -> frozenset[int]:
        return frozenset(trial.number for trial in at_target(self.trials, self.space))

    @cached_property
    def counts(self) -> Counter[str]:
        """The number of trials of each status."""
        return Counter(trial.status for trial in self.trials)

    @cached_property
    def all_failed(self) -> str:
        """That every evaluation has failed, and the most frequent reason, as a sentence; empty if it is otherwise."""
        reasons = Counter(trial.why or "no reason given" for trial in self.trials if trial.status == "failed")
        if not reasons or any(trial.status in ("told", "stopped") or trial.curve for trial in self.trials):
            return ""
        (why, times), count = reasons.most_common(1)[0], self.counts["failed"]
        every = "The only evaluation failed" if count == 1 else f"All {count} evaluations failed"
        most = "" if times == count else f"{times} times "
        return f"{every}: {most}{shortened(why, REASON)}."

    # Parameters

    @cached_property
    def fidelity(self) -> NoFidelity:
        """What the fidelity of the space is to figures and reports."""
        return fidelity_of(self.space)

    @cached_property
    def names(self) -> list[str]:
        """The names of the parameters; x0, x1, ... if points are arrays."""
        return names_of(self.space)

    @cached_property
    def titles(self) -> list[str]:
        """The names with their units."""
        units = {axis.name: axis.title for axis in self.axes(2)}
        units |= self.fidelity.titles
        return [units.get(name, name) for name in self.names]

    def shown_values(self, trial: Trial) -> list[Any]:
        """Return the coordinates of a trial for a table. Where the fidelity has steps, it is the one that it reached.

        None stands for an inactive parameter, and for a trial that has reported no step.
        """
        reached = self.fidelity.reached(trial)
        return [reached.get(name, value) for name, value in zip(self.names, self.values(trial.x), strict=True)]

    def values(self, x: Point) -> list[Any]:
        """Return the coordinates of a point in the order of the names; None for an inactive parameter."""
        return [x.get(name) for name in self.names] if isinstance(x, Mapping) else np.asarray(x).tolist()

    @cached_property
    def rows(self) -> Array:
        """The coordinates of `told`, (n, d)."""
        return np.array([self.space.encode(trial.x) for trial in self.told]).reshape(len(self.told), self.space.dim)

    def axes(self, points: int) -> list[Axis]:
        """Return the parameters that vary, as axes with at most `points` settings."""
        return axes_of(self.space, points)

    @cached_property
    def mixtures(self) -> tuple[Mixture, ...]:
        """The parameters whose sum is fixed."""
        return mixtures_of(self.space)

    def mixture_of(self, axis: Axis) -> Mixture | None:
        """Return the mixture that a parameter belongs to; None if it can change alone."""
        return next((mixture for mixture in self.mixtures if axis.columns.start in mixture.columns), None)

    def along(self, axis: Axis, row: Array) -> Array:
        """Return points (k, d) through row (d,) in which a parameter takes each of its settings.

        The others stay, except in a mixture: there the other components share the rest in proportion.
        """
        mixture = self.mixture_of(axis)
        return axis.along(row) if mixture is None else mixture.moved(row, axis.columns.start, axis.settings[:, 0])

    def inside(self, rows: Array) -> Mask:
        """Return which points (m, d) are within the ranges of the parameters and satisfy the known constraints."""
        if not isinstance(self.space, Parameters):
            return np.ones(len(rows), dtype=bool)
        near = 1e-9 * self.space.span
        within: Mask = np.all((rows >= self.space.lo - near) & (rows <= self.space.hi + near), axis=1)
        return within & self.space.feasible_set.contains(rows)
