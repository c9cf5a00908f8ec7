"""Draws of where evaluations succeed: which point is the best that works depends on what works."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Mask, Numbers
from gpmi.gp.approximate.success import SuccessProbability
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.paths import Paths, PathSampler


class Region(NamedTuple):
    """Draws of the part of the space that works, one for each drawn function.

    A draw consists of a path of the Gaussian process behind each requirement. A point works in it if every path is on
    the right side of its limit there: then the point succeeds more often than not.
    """

    chance: SuccessProbability
    paths: tuple[Paths, ...]  # one for each requirement

    @staticmethod
    @one_blas_thread
    def drawn(chance: SuccessProbability, z: Array, size: int, rng: np.random.Generator) -> Region:
        """Draw `size` regions, exactly at the points z (K, d), elsewhere by random features. O(size (n + K)^2 + K^3)"""
        samplers = (PathSampler.of(requirement.posterior, z) for requirement in chance.requirements)
        return Region(chance, tuple(sampler.paths(size, rng, rough=True) for sampler in samplers))

    def part(self, numbers: Numbers) -> Region:
        """Return the draws with these numbers."""
        return self._replace(paths=tuple(paths.part(numbers) for paths in self.paths))

    def everywhere(self, z: Array) -> Mask:
        """Return which of the points z (m, d) work in each draw, (m, size)."""
        pairs = zip(self.chance.requirements, self.paths, strict=True)
        works: Mask = np.all([requirement.holds(paths.everywhere(z)) for requirement, paths in pairs], axis=0)
        return works

    def __call__(self, z: Array, which: Numbers) -> Mask:
        """Return whether z_i works in draw which[i], (m,)."""
        pairs = zip(self.chance.requirements, self.paths, strict=True)
        works: Mask = np.all([requirement.holds(paths.at(z, which)) for requirement, paths in pairs], axis=0)
        return works
