"""The model of one output, as figures and reports show it: in units of y."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array
from gpmi.analysis import Importances, importances
from gpmi.analysis.ledger import Ledger, regret_history
from gpmi.gp import Posterior, mean_in_chunks, moments_in_chunks
from gpmi.model import IDENTITY, Model, Warp
from gpmi.space import Axis, Triangle
from gpmi.trials import OPEN, ValueBounds
from gpmi.views.trials_view import TrialsView

WIDE_RANGE = 100.0  # a trace that spans this factor gets a logarithmic scale; our choice


class RegretHistory(NamedTuple):
    """The simple regret after t values, at some moments of a run, (k,) each."""

    t: Array
    low: Array  # the ends of the 95 % interval
    median: Array
    high: Array
    floor: float | None  # where a logarithmic scale begins, because it has no 0; None if a linear scale is enough


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelView(TrialsView):
    """What the model of one output believes, and where it is drawn."""

    ledger: Ledger | None

    @property
    @abstractmethod
    def recommended_row(self) -> Array | None:
        """The coordinates (d,) of the point that slices and maps go through; None while there is none."""

    @property
    @abstractmethod
    def totals(self) -> Array | None:
        """How much each parameter that varies matters, (p,): its total Sobol index; None while it is unknown."""

    # Parameters

    def axes_by_importance(self, points: int) -> list[Axis]:
        """Return the parameters that vary, as axes with at most `points` settings, the most important one first."""
        axes, totals = self.axes(points), self.totals
        return axes if totals is None else [axes[i] for i in np.argsort(-totals, kind="stable")]

    def active_axes(self, points: int) -> list[Axis]:
        """Return the same axes, without those that are inactive at the recommended point; none without a model."""
        row = self.recommended_row
        if row is None:
            return []
        return [axis for axis in self.axes_by_importance(points) if np.isfinite(axis.positions(row[None])[0])]

    @cached_property
    def triangles(self) -> tuple[Triangle, ...]:
        """The three most important components of each mixture that has as many, through the recommended point."""
        row, triangles = self.recommended_row, list[Triangle]()
        for mixture in self.mixtures:
            if row is None or len(mixture.columns) < 3:
                continue
            order = [axis.columns.start for axis in self.axes_by_importance(2) if axis.columns.start in mixture.columns]
            members = sorted(mixture.columns.index(column) for column in order[:3])
            total = float(sum(row[mixture.columns[i]] for i in members))
            if len(members) == 3 and total > sum(mixture.lows[i] for i in members) + 1e-9:
                triangles.append(Triangle(mixture, (members[0], members[1], members[2]), total))
        return tuple(triangles)

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

    def mean(self, rows: Array) -> Array:
        """Return the posterior mean at points (m, d), (m,), in units of y. Needs a model."""
        assert self.posterior is not None
        return self.possible.clip(self.warp.inverse(mean_in_chunks(self.posterior, rows)))

    def bounds(self, rows: Array, width: float = 1.0) -> Array:
        """Return mu - sd, mu and mu + sd at points (m, d), (3, m), in units of y. Needs a model.

        `width` is another number of standard deviations.
        """
        assert self.posterior is not None
        return self.possible.clip(bounds_of(self.posterior, rows, self.warp, width))

    @property
    def possible(self) -> ValueBounds:
        """The bounds of y: what is drawn of the model stays within them."""
        return OPEN if self.ledger is None else self.ledger.orientation.bounds(self.ledger.setting.bounds)

    @cached_property
    def believed(self) -> tuple[float, float, float] | None:
        """The quantiles of f at the recommended point at -1, 0 and 1 sd, in units of y; None while it is unknown."""
        if self.ledger is None or self.ledger.unknown is not None:
            return None
        from scipy.special import ndtr

        ledger, levels = self.ledger, ndtr(np.array([-1.0, 0.0, 1.0]))
        quantiles = ledger.model.to_units_of_y(ledger.belief.quantiles(ledger.model.recommendation.row, levels))
        low, middle, high = np.sort(ledger.orientation.values(quantiles)).tolist()
        return low, middle, high

    @cached_property
    def importances(self) -> Importances | None:
        """The Sobol indices; None while they are unknown."""
        return None if self.ledger is None or self.ledger.unknown is not None else importances(self)

    @cached_property
    def regret_history(self) -> RegretHistory | None:
        """The simple regret at some moments of the run; None while it is unknown."""
        regrets = () if self.ledger is None else regret_history(self.ledger)
        if not regrets:
            return None
        low, high = np.array([regret.interval() for regret in regrets]).T
        median = np.array([np.median(regret.simple) for regret in regrets])
        positive = high[high > 0.0]
        wide = len(positive) > 0 and positive.max() > WIDE_RANGE * positive.min()
        floor = 0.1 * float(positive.min()) if wide else None
        return RegretHistory(np.array([float(regret.t) for regret in regrets]), low, median, high, floor)


def bounds_of(posterior: Posterior, rows: Array, warp: Warp = IDENTITY, width: float = 1.0) -> Array:
    """Return mu - sd, mu and mu + sd at points (m, d), (3, m), in units of y. O(n^2 m) for n observations.

    `width` is another number of standard deviations.
    """
    mu, var = moments_in_chunks(posterior, rows)
    sd = width * np.sqrt(var)
    return warp.inverse(np.array([mu - sd, mu, mu + sd]))
