"""The door between the user's y and the model's: inside, larger is always better.

Minimising f is maximising -f. The sign is turned once, where a value comes in, and back where a number, a posterior or
a warp goes out; nothing in between knows the goal. Turning a sign is exact, so nothing is lost on the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gpmi.gp.posterior import Posterior
from gpmi.prior.warp import Warp
from gpmi.types import Array

Goal = Literal["max", "min"]


class MirroredNormals(np.random.Generator):
    """The generator with the same state, whose standard normal numbers are the negatives."""

    def standard_normal(self, *args: Any, **kwargs: Any) -> Any:
        return -super().standard_normal(*args, **kwargs)


@dataclass(frozen=True)
class Orientation:
    """How y is turned so that larger is better; turning twice changes nothing, so the same methods lead in and out."""

    goal: Goal

    @property
    def mirrors(self) -> bool:
        """Whether the sign is turned at all."""
        return self.goal == "min"

    def value(self, y: float) -> float:
        """y with its sign turned, or as it is."""
        return 0.0 - y if self.mirrors else y  # 0.0 - y is never -0.0

    def values(self, y: Array) -> Array:
        """The same for an array."""
        return 0.0 - y if self.mirrors else y  # 0.0 - y is never -0.0

    def posterior(self, posterior: Posterior) -> Posterior:
        """The posterior of -f, or of f."""
        return posterior.mirrored() if self.mirrors else posterior

    def warp(self, warp: Warp) -> Warp:
        """The transformation of -y that is the mirror image of that of y, or that of y."""
        return warp.mirrored() if self.mirrors else warp

    def normals(self, rng: np.random.Generator) -> np.random.Generator:
        """`rng` for draws of f: a draw of -f is the mirror image of what the same numbers give for f."""
        return MirroredNormals(rng.bit_generator) if self.mirrors else rng
