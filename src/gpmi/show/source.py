"""What a picture is drawn from: a result, its trials, its posterior in units of y, the values of a known function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import moments_in_chunks
from gpmi.optimizer import Optimizer
from gpmi.prior.warp import Warp
from gpmi.result import Result
from gpmi.space import Space
from gpmi.trials import Trial
from gpmi.types import Array

Function: TypeAlias = Callable[[Any], float]  # of one point, in the form of the space


def checked_result(source: Any) -> Result:
    """The result to draw: the source itself, or the result so far of an Optimizer or a Study."""
    if isinstance(source, Optimizer):
        source = Result.of(source, "running")
    elif hasattr(source, "refresh") and hasattr(source, "result"):  # a Study; its module needs SQLAlchemy
        source = source.result()
    if not isinstance(source, Result):
        raise TypeError(f"source is {source!r}; give what maximize returned, an Optimizer or a Study")
    if source.posterior is None:
        raise ValueError("source has no observation, so there is nothing to draw; evaluate at least one point")
    return source


def model_of(result: Result) -> tuple[Posterior, Array]:
    """The posterior and the coordinates (d,) of the recommended point."""
    assert result.posterior is not None
    return result.posterior, result.space.encode(result.recommended)


def told(result: Result) -> list[tuple[int, Trial]]:
    """The trials with a value, each with its place t = 1, 2, ... in the run."""
    return [(t, trial) for t, trial in enumerate(result.trials, 1) if trial.status == "told"]


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
