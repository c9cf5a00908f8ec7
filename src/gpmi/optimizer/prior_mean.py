"""A user's function of a point as the prior mean: a function of coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpmi._support import checks
from gpmi._support.types import Array
from gpmi.gp.trend import Trend
from gpmi.space import Space


@dataclass(frozen=True)
class AtCoordinates:
    """A user's function of a point, as a function of coordinates (d,)."""

    mean: Callable[[Any], float]
    space: Space

    def __call__(self, row: Array) -> float:
        x = self.space.decode(row)
        return checks.number(
            "mean(x)", self.mean(x), f"mean must return one finite number, as at x = {checks.shown(x)}"
        )


def prior_mean(mean: Any, space: Space) -> Trend | None:
    """Validate the user's prior mean and return it as a function of coordinates."""
    if mean is None:
        return None
    if not callable(mean):
        raise TypeError(f"mean is {checks.shown(mean)}; give a function of one point that returns a number")
    return Trend(AtCoordinates(mean, space), space.lo, space.hi)
