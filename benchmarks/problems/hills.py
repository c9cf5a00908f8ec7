"""Sums of two or three Gaussian hills at random places of the unit cube, the highest maximum well above the next."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from .functions import Array

APART = 0.1  # the highest maximum is above the next by this much, at least


@dataclass(frozen=True, eq=False)
class Hills:
    """f(x) = sum_i height_i exp(-|x - centre_i|^2 / (2 width_i^2)) on the unit cube."""

    centres: Array  # (k, d)
    heights: Array  # (k,)
    widths: Array  # (k,)

    def __call__(self, x: Array) -> float:
        return float(self._parts(x).sum())

    def _parts(self, x: Array) -> Array:
        squares = ((np.asarray(x) - self.centres) ** 2).sum(axis=1)
        return self.heights * np.exp(-0.5 * squares / self.widths**2)

    def climbed(self, x: Array) -> float:
        """Return the height of the maximum that a climb from x leads to, by the short steps of mean shift."""
        for _ in range(500):
            weights = self._parts(x) / self.widths**2
            x = weights @ self.centres / weights.sum()
        return self(x)

    def maxima(self) -> list[float]:
        """Return the heights of the maxima, the highest first. Those that differ by less than 0.001 count as one.

        The maxima lie among the centres, so the climbs begin there.
        """
        heights = sorted((self.climbed(x) for x in self.centres), reverse=True)
        return [height for i, height in enumerate(heights) if i == 0 or heights[i - 1] - height > 1e-3]


@cache
def hills(seed: int) -> tuple[Hills, float]:
    """Return a function, in 1, 2 or 3 dimensions by turns, and its maximum."""
    rng, d, k = np.random.default_rng([seed, 12]), 1 + seed % 3, 2 + seed // 3 % 2
    while True:
        heights = np.concatenate([[1.0], rng.uniform(0.6, 0.9, k - 1)])
        f = Hills(rng.uniform(0.1, 0.9, (k, d)), heights, rng.uniform(0.12, 0.35, k))
        maxima = f.maxima()
        if len(maxima) > 1 and maxima[0] - maxima[1] >= APART:
            return f, maxima[0]
