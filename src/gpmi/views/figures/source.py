"""What a picture is drawn from: the state of a run, its posterior in units of y, the values of a known function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from gpmi._support.types import Array, Point
from gpmi.analysis.ledger import Ledger
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import moments_in_chunks
from gpmi.model.fitting.warp import Warp
from gpmi.space import Space
from gpmi.trials import Trial

Function: TypeAlias = Callable[[Any], float]  # of one point, in the form of the space


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The parts of a run that figures show, at one moment."""

    trials: tuple[Trial, ...]  # every evaluation, in order; none is pending
    space: Space
    goal: Literal["max", "min"]
    posterior: Posterior  # of warp(y)
    warp: Warp
    recommended: Point
    ledger: Ledger | None

    @staticmethod
    def of(source: Any) -> Snapshot:
        """Read a Result, an Optimizer or a Study; raise a TypeError for anything else."""
        try:
            trials, space, goal, ledger = source.trials, source.space, source.goal, source.ledger
            run = source.refresh() if hasattr(source, "refresh") else source  # a Study keeps an Optimizer
            posterior, warp = run.posterior, run.warp
        except AttributeError:
            raise TypeError(f"source is {source!r}; give what maximize returned, an Optimizer or a Study") from None
        if posterior is None:
            raise ValueError("source has no observation, so there is nothing to draw; evaluate at least one point")
        recommended = run.recommended if hasattr(run, "recommended") else run.recommend()
        ended = tuple(trial for trial in trials if trial.status != "pending")
        return Snapshot(ended, space, goal, posterior, warp, recommended, ledger)


def model_of(snapshot: Snapshot) -> tuple[Posterior, Array]:
    """The posterior and the coordinates (d,) of the recommended point."""
    return snapshot.posterior, snapshot.space.encode(snapshot.recommended)


def told(trials: Sequence[Trial]) -> list[tuple[int, Trial]]:
    """The trials with a value, each with its place t = 1, 2, ... in the run."""
    return [(t, trial) for t, trial in enumerate(trials, 1) if trial.status == "told"]


def band(posterior: Posterior, rows: Array, warp: Warp) -> tuple[Array, Array, Array]:
    """mu - sd, mu and mu + sd at the points rows (m, d), in units of y. O(n^2 m) for n observations."""
    mu, var = moments_in_chunks(posterior, rows)
    sd = np.sqrt(var)
    return warp.inverse(mu - sd), warp.inverse(mu), warp.inverse(mu + sd)


def centre(warp: Warp) -> str:
    """What the middle of a band is: the inverse of a warp maps the mean to the median."""
    return "posterior median" if warp.bends else r"posterior mean $\mu$"


def values_of(f: Function, space: Space, rows: Array) -> Array:
    """f at the points with coordinates rows (m, d)."""
    if not callable(f):
        raise TypeError(f"f is {f!r}; give a function of one point, or leave it out")
    values = np.array([np.asarray(f(space.decode(row)), dtype=float).item() for row in rows])
    if not np.all(np.isfinite(values)):
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"f returned {values[bad]} at x = {space.decode(rows[bad])!r}; leave f out of the picture")
    return values
