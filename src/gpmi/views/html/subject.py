"""What a report is about: a Result, an Optimizer or a Study, read once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from gpmi._support.text import without_password
from gpmi._support.types import Array, Event, Mask, Point
from gpmi.analysis.importance import Importances, importances
from gpmi.analysis.ledger import Ledger
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import mean_in_chunks, moments_in_chunks
from gpmi.model.fitting.warp import Warp
from gpmi.model.model import Model
from gpmi.space import Parameters, Space
from gpmi.space.axes import Axis, axes_of
from gpmi.trials import Trial
from gpmi.trials.dataframe import names_of


@dataclass(frozen=True, eq=False)
class Subject:
    """A run as a report sees it. All that a model says is computed when it is first read."""

    trials: tuple[Trial, ...]
    ledger: Ledger | None  # None where nothing was told, or the model failed
    goal: Literal["max", "min"]
    space: Space
    seed: int
    events: tuple[Event, ...]
    reason: str | None = None  # why the run stopped
    budget: int | None = None
    name: str | None = None  # of a study

    @staticmethod
    def of(source: Any) -> Subject:
        """What a Result, an Optimizer or a Study holds; a TypeError for anything else."""
        if isinstance(source, Subject):
            return source
        try:
            trials, ledger = tuple(source.trials), source.ledger
            fixed: dict[str, Any] = {
                "goal": source.goal,
                "space": source.space,
                "seed": source.seed,
                "events": tuple(source.events),
            }
        except AttributeError:
            raise TypeError(f"source is {source!r}; give a Result, an Optimizer or a Study") from None
        if ledger is not None and not ledger.n:
            ledger = None
        name = getattr(source, "name", None)
        more: dict[str, Any] = {"reason": getattr(source, "reason", None), "budget": getattr(source, "budget", None)}
        return Subject(trials, ledger, **fixed, **more, name=None if name is None else without_password(str(name)))

    # Trials

    @cached_property
    def told(self) -> tuple[Trial, ...]:
        """The trials with a value, in the order in which the values came."""
        found = [trial for trial in self.trials if trial.status == "told"]
        return tuple(sorted(found, key=lambda trial: trial.order or 0))

    @cached_property
    def counts(self) -> Counter[str]:
        """How many trials there are of each status."""
        return Counter(trial.status for trial in self.trials)

    @cached_property
    def best(self) -> Trial | None:
        """The trial with the best value; one that broke a constraint does not count."""
        sign = 1.0 if self.goal == "max" else -1.0
        return max((t for t in self.told if t.feasible), key=lambda t: sign * (t.y or 0.0), default=None)

    @cached_property
    def names(self) -> list[str]:
        """The names of the parameters: x0, x1, ... where points are arrays."""
        return names_of(self.space)

    @cached_property
    def titles(self) -> list[str]:
        """The names with their units, where they have one."""
        units = {axis.name: axis.title for axis in self.axes(2)}
        return [units.get(name, name) for name in self.names]

    def values(self, x: Point) -> list[Any]:
        """The coordinates of a point in the order of the names; None for a parameter that is inactive."""
        return [x.get(name) for name in self.names] if isinstance(x, Mapping) else np.asarray(x).tolist()

    # Pictures

    def axes(self, points: int) -> list[Axis]:
        """The parameters that vary, as axes with at most so many settings."""
        return axes_of(self.space, points)

    def axes_by_importance(self, points: int) -> list[Axis]:
        """The same, the most important first."""
        axes = self.axes(points)
        if self.importances is None:
            return axes
        order = np.argsort([-one.total for one in self.importances], kind="stable")
        return [axes[i] for i in order]

    def active_axes(self, points: int) -> list[Axis]:
        """The same without those that the recommended point does not have; none where nothing is recommended."""
        row = self.recommended_row
        if row is None:
            return []
        return [axis for axis in self.axes_by_importance(points) if np.isfinite(axis.positions(row[None])[0])]

    def inside(self, rows: Array) -> Mask:
        """Which points (m, d) keep to the constraints that are known."""
        return (
            self.space.feasible_set.contains(rows)
            if isinstance(self.space, Parameters)
            else np.ones(len(rows), dtype=bool)
        )

    @cached_property
    def rows(self) -> Array:
        """The coordinates of the trials told, (n, d), in the order in which the values came."""
        return np.array([self.space.encode(trial.x) for trial in self.told]).reshape(len(self.told), self.space.dim)

    @cached_property
    def importances(self) -> Importances | None:
        """The Sobol indices; None without a model."""
        return None if self.ledger is None else importances(self)

    # The model

    @property
    def model(self) -> Model | None:
        """The model after all values told, oriented so that larger is better."""
        return None if self.ledger is None else self.ledger.model

    @cached_property
    def posterior(self) -> Posterior | None:
        """The posterior of warp(y)."""
        return None if self.ledger is None else self.ledger.orientation.posterior(self.ledger.model.posterior)

    @cached_property
    def warp(self) -> Warp | None:
        """The transformation of y that the posterior is about."""
        return None if self.ledger is None else self.ledger.orientation.warp(self.ledger.model.warp)

    @cached_property
    def recommended_row(self) -> Array | None:
        """The coordinates (d,) of the point with the best posterior mean."""
        return None if self.ledger is None else self.ledger.model.recommended

    @cached_property
    def recommended(self) -> Point | None:
        """The point with the best posterior mean."""
        row = self.recommended_row
        return None if row is None else self.space.decode(row)

    def mean(self, rows: Array) -> Array:
        """What is believed of f at points (m, d), (m,), in units of y; there must be a model."""
        posterior, warp = self.posterior, self.warp
        assert posterior is not None and warp is not None
        return warp.inverse(mean_in_chunks(posterior, rows))

    def bounds(self, rows: Array) -> Array:
        """mu - sd, mu and mu + sd at points (m, d), (3, m), in units of y; there must be a model."""
        posterior, warp = self.posterior, self.warp
        assert posterior is not None and warp is not None
        mu, var = moments_in_chunks(posterior, rows)
        return warp.inverse(np.array([mu - np.sqrt(var), mu, mu + np.sqrt(var)]))

    @cached_property
    def believed(self) -> tuple[float, float, float] | None:
        """mu - sd, mu and mu + sd at the recommended point, in units of y."""
        if self.recommended_row is None:
            return None
        low, middle, high = self.bounds(self.recommended_row[None])[:, 0].tolist()
        return low, middle, high
