"""Convert between the user's y and the model's y: in the model, larger is always better.

Minimising f is maximising -f. The sign changes once, where a value enters, and changes back where a number, a posterior
or a warp leaves. Nothing in between knows the goal. A change of sign is exact in floating point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.posterior import Posterior
from gpmi.gp.trend import Trend
from gpmi.model.fitting.warp import Warp
from gpmi.trials.value_bounds import ValueBounds

Goal = Literal["max", "min"]


class MirroredNormals(np.random.Generator):
    """A generator on the same bit generator whose standard normal numbers have the opposite sign."""

    def standard_normal(self, *args: Any, **kwargs: Any) -> Any:
        return -super().standard_normal(*args, **kwargs)


@dataclass(frozen=True)
class Orientation:
    """Changes the sign of y if the goal is "min". It is its own inverse, so the same methods serve both directions."""

    goal: Goal

    @property
    def mirrors(self) -> bool:
        """Whether the sign is changed."""
        return self.goal == "min"

    def value(self, y: float) -> float:
        """Return -y for "min", y for "max"."""
        return 0.0 - y if self.mirrors else y  # 0.0 - y is never -0.0

    def values(self, y: Array) -> Array:
        """Return -y for "min", y for "max", for an array."""
        return 0.0 - y if self.mirrors else y  # 0.0 - y is never -0.0

    def posterior(self, posterior: Posterior) -> Posterior:
        """Return the posterior of -f for "min", of f for "max"."""
        return posterior.mirrored() if self.mirrors else posterior

    def trend(self, trend: Trend | None) -> Trend | None:
        """Return the known mean of -f for "min", of f for "max"."""
        return trend.mirrored() if self.mirrors and trend is not None else trend

    def warp(self, warp: Warp) -> Warp:
        """Return the transformation y -> -W(-y) for "min", W for "max"."""
        return warp.mirrored() if self.mirrors else warp

    def bounds(self, bounds: ValueBounds) -> ValueBounds:
        """Return the bounds of -y for "min", of y for "max"."""
        return bounds.mirrored() if self.mirrors else bounds

    def normals(self, rng: np.random.Generator) -> np.random.Generator:
        """Return the generator for draws of f. For "min", a draw of -f is minus the draw of f from the same random
        numbers.
        """
        return MirroredNormals(rng.bit_generator) if self.mirrors else rng
