"""Between the user's y and the model's y: in the model, larger is always better.

To minimise f is to maximise -f. The sign is changed once, where a value comes in, and changed back where a number, a
posterior or a warp goes out. Nothing in between knows the goal. A change of sign is exact in floating point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.posterior import Posterior
from gpmi.gp.trend import Trend
from gpmi.model.fitting.warp import Warp

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
        """-y, or y."""
        return 0.0 - y if self.mirrors else y  # 0.0 - y is never -0.0

    def values(self, y: Array) -> Array:
        """-y, or y, for an array."""
        return 0.0 - y if self.mirrors else y  # 0.0 - y is never -0.0

    def posterior(self, posterior: Posterior) -> Posterior:
        """The posterior of -f, or that of f."""
        return posterior.mirrored() if self.mirrors else posterior

    def trend(self, trend: Trend | None) -> Trend | None:
        """The known mean of -f, or that of f."""
        return trend.mirrored() if self.mirrors and trend is not None else trend

    def warp(self, warp: Warp) -> Warp:
        """The transformation y -> -W(-y), or W."""
        return warp.mirrored() if self.mirrors else warp

    def normals(self, rng: np.random.Generator) -> np.random.Generator:
        """The generator for draws of f: with the goal "min" a draw of -f is minus what the same numbers give for f."""
        return MirroredNormals(rng.bit_generator) if self.mirrors else rng
