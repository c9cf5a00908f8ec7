"""A known mean function: f = trend + g, where g is a Gaussian process with a constant mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from gpmi._support.types import Array

STEP = 1e-5  # of the width of a coordinate: near the cube root of 1e-16, where central differences are most exact
MOST_CACHED = 2**17  # cached values, at most: our choice, about 20 MB


class PriorMean(Protocol):
    """A known mean function of the coordinates."""

    def mirrored(self) -> PriorMean:
        """Return minus this function."""
        ...

    def __call__(self, z: Array) -> Array:
        """Return the values at z (m, d), (m,)."""
        ...

    def gradient(self, z: Array) -> Array:
        """Return the gradients at z (m, d), (m, d)."""
        ...


@dataclass(frozen=True, eq=False)
class Trend:
    """A function of the coordinates with cached values, and its gradient by central differences."""

    f: Callable[[Array], float] = field(repr=False)  # coordinates (d,) -> value
    lo: Array = field(repr=False)  # (d,), the bounds of the coordinates: f is not evaluated outside them
    hi: Array = field(repr=False)
    sign: float = 1.0
    cache: dict[bytes, float] = field(default_factory=dict, repr=False)

    def mirrored(self) -> Trend:
        """Return the trend -f."""
        return replace(self, sign=-self.sign)

    def __call__(self, z: Array) -> Array:
        """Return the values at z (m, d). Calls f once for each point that is not in the cache."""
        values = np.empty(len(z))
        for i, row in enumerate(np.ascontiguousarray(z)):
            key = row.tobytes()
            value = self.cache.get(key)
            if value is None:
                value = self.f(row)
                if len(self.cache) >= MOST_CACHED:
                    self.cache.clear()
                self.cache[key] = value
            values[i] = value
        return self.sign * values

    def gradient(self, z: Array) -> Array:
        """Return d trend / dz at z (m, d), (m, d); at a bound from one side. Calls f 2 m d times."""
        step = STEP * (self.hi - self.lo)
        gradient = np.zeros(z.shape)
        for j in np.flatnonzero(step > 0.0).tolist():
            above, below = z.copy(), z.copy()
            above[:, j] = np.minimum(z[:, j] + step[j], self.hi[j])
            below[:, j] = np.maximum(z[:, j] - step[j], self.lo[j])
            gradient[:, j] = (self(above) - self(below)) / (above[:, j] - below[:, j])
        return gradient
