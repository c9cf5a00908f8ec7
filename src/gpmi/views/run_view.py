"""A run as figures and reports see it: a Result, an Optimizer or a Study, read once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from gpmi._support.text import without_password
from gpmi._support.types import Array, Event, Mask, Point
from gpmi.analysis.importance import Importances, importances
from gpmi.analysis.ledger import Ledger
from gpmi.analysis.ledger.history import regret_history
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import mean_in_chunks, moments_in_chunks
from gpmi.model.fitting.warp import IDENTITY, Warp
from gpmi.model.model import Model
from gpmi.space import Parameters, Space
from gpmi.space.axes import Axis, axes_of
from gpmi.trials import Trial
from gpmi.trials.dataframe import names_of

# Our choices, for figures and reports alike.
MAX_LINES = 300  # trials in parallel coordinates: the best, and an even selection of the others
TOP_TRIALS = 10  # the best trials, which are emphasised there
WIDE_RANGE = 100.0  # a trace that spans this factor gets a logarithmic scale


class RegretHistory(NamedTuple):
    """The simple regret after t values, at some moments of a run, (k,) each."""

    t: Array
    low: Array  # the ends of the 95 % interval
    median: Array
    high: Array
    floor: float | None  # where a logarithmic scale begins, because it has no 0; None if a linear scale is enough


@dataclass(frozen=True, eq=False)
class RunView:
    """The state of a run at one moment. Everything that needs the model is computed when it is first read."""

    trials: tuple[Trial, ...]
    ledger: Ledger | None  # None if nothing was told, or if the model failed
    goal: Literal["max", "min"]
    space: Space
    seed: int
    events: tuple[Event, ...]
    reason: str | None = None  # why the run stopped
    budget: int | None = None
    name: str | None = None  # of a study
    identity: str | None = None  # of a study, wherever its database is

    @staticmethod
    def of(source: Any) -> RunView:
        """Read a Result, an Optimizer or a Study. Raise a TypeError for anything else."""
        if isinstance(source, RunView):
            return source
        try:
            trials, ledger = tuple(source.trials), source.ledger
            needed: dict[str, Any] = {
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
        optional: dict[str, Any] = {key: getattr(source, key, None) for key in ("reason", "budget", "identity")}
        return RunView(trials, ledger, **needed, **optional, name=None if name is None else without_password(str(name)))

    # Trials

    @cached_property
    def told(self) -> tuple[Trial, ...]:
        """The trials with a value, in the order in which the values came."""
        found = [trial for trial in self.trials if trial.status == "told"]
        return tuple(sorted(found, key=lambda trial: trial.order or 0))

    @cached_property
    def ended(self) -> tuple[Trial, ...]:
        """The trials that are not pending, in the order in which they were suggested."""
        return tuple(trial for trial in self.trials if trial.status != "pending")

    @cached_property
    def numbered(self) -> list[tuple[int, Trial]]:
        """The trials with a value, each with its place t = 1, 2, ... among those that have ended."""
        return [(t, trial) for t, trial in enumerate(self.ended, 1) if trial.status == "told"]

    @cached_property
    def counts(self) -> Counter[str]:
        """The number of trials of each status."""
        return Counter(trial.status for trial in self.trials)

    @cached_property
    def best(self) -> Trial | None:
        """The feasible trial with the best value."""
        sign = 1.0 if self.goal == "max" else -1.0
        return max((t for t in self.told if t.feasible), key=lambda t: sign * (t.y or 0.0), default=None)

    @cached_property
    def names(self) -> list[str]:
        """The names of the parameters; x0, x1, ... if points are arrays."""
        return names_of(self.space)

    @cached_property
    def titles(self) -> list[str]:
        """The names with their units."""
        units = {axis.name: axis.title for axis in self.axes(2)}
        return [units.get(name, name) for name in self.names]

    def values(self, x: Point) -> list[Any]:
        """Return the coordinates of a point in the order of the names; None for an inactive parameter."""
        return [x.get(name) for name in self.names] if isinstance(x, Mapping) else np.asarray(x).tolist()

    # Axes

    def axes(self, points: int) -> list[Axis]:
        """Return the parameters that vary, as axes with at most `points` settings."""
        return axes_of(self.space, points)

    def axes_by_importance(self, points: int) -> list[Axis]:
        """Return the same axes, the most important one first."""
        axes = self.axes(points)
        if self.importances is None:
            return axes
        order = np.argsort([-one.total for one in self.importances], kind="stable")
        return [axes[i] for i in order]

    def active_axes(self, points: int) -> list[Axis]:
        """Return the same axes, without those that are inactive at the recommended point; none without a model."""
        row = self.recommended_row
        if row is None:
            return []
        return [axis for axis in self.axes_by_importance(points) if np.isfinite(axis.positions(row[None])[0])]

    def inside(self, rows: Array) -> Mask:
        """Return which points (m, d) satisfy the known constraints."""
        return (
            self.space.feasible_set.contains(rows)
            if isinstance(self.space, Parameters)
            else np.ones(len(rows), dtype=bool)
        )

    @cached_property
    def rows(self) -> Array:
        """The coordinates of `told`, (n, d)."""
        return np.array([self.space.encode(trial.x) for trial in self.told]).reshape(len(self.told), self.space.dim)

    # The model

    @property
    def model(self) -> Model | None:
        """The model after all values, oriented so that larger is better."""
        return None if self.ledger is None else self.ledger.model

    @cached_property
    def posterior(self) -> Posterior | None:
        """The posterior of warp(y)."""
        return None if self.ledger is None else self.ledger.orientation.posterior(self.ledger.model.posterior)

    @cached_property
    def warp(self) -> Warp:
        """The transformation of y under the posterior; the identity without a model."""
        return IDENTITY if self.ledger is None else self.ledger.orientation.warp(self.ledger.model.warp)

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
        """Return the posterior mean at points (m, d), (m,), in units of y. Needs a model."""
        assert self.posterior is not None
        return self.warp.inverse(mean_in_chunks(self.posterior, rows))

    def bounds(self, rows: Array) -> Array:
        """Return mu - sd, mu and mu + sd at points (m, d), (3, m), in units of y. Needs a model."""
        assert self.posterior is not None
        return bounds_of(self.posterior, rows, self.warp)

    @cached_property
    def believed(self) -> tuple[float, float, float] | None:
        """The quantiles of f at the recommended point at -1, 0 and 1 sd, in units of y; None while it is unknown."""
        if self.ledger is None or self.ledger.unknown is not None:
            return None
        from scipy.special import ndtr

        ledger, levels = self.ledger, ndtr(np.array([-1.0, 0.0, 1.0]))
        found = ledger.model.to_units_of_y(ledger.belief.quantiles(ledger.model.recommended, levels))
        low, middle, high = np.sort(ledger.orientation.values(found)).tolist()
        return low, middle, high

    @cached_property
    def importances(self) -> Importances | None:
        """The Sobol indices; None while they are unknown."""
        return None if self.ledger is None or self.ledger.unknown is not None else importances(self)

    @cached_property
    def regret_history(self) -> RegretHistory | None:
        """The simple regret at some moments of the run; None while it is unknown."""
        found = () if self.ledger is None else regret_history(self.ledger)
        if not found:
            return None
        low, high = np.array([regret.interval() for regret in found]).T
        median = np.array([np.median(regret.simple) for regret in found])
        positive = high[high > 0.0]
        wide = len(positive) > 0 and positive.max() > WIDE_RANGE * positive.min()
        floor = 0.1 * float(positive.min()) if wide else None
        return RegretHistory(np.array([float(regret.t) for regret in found]), low, median, high, floor)


def bounds_of(posterior: Posterior, rows: Array, warp: Warp = IDENTITY) -> Array:
    """Return mu - sd, mu and mu + sd at points (m, d), (3, m), in units of y. O(n^2 m) for n observations."""
    mu, var = moments_in_chunks(posterior, rows)
    sd = np.sqrt(var)
    return warp.inverse(np.array([mu - sd, mu, mu + sd]))
