"""Points of the unit cube: some that fill it evenly, and some that keep a distance from each other."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gpmi._support.interrupts import uninterrupted
from gpmi._support.types import Array, Numbers


@lru_cache(maxsize=16)
def sobol(p: int, log2: int, seed: tuple[int, ...]) -> Array:
    """2^log2 scrambled Sobol points of the unit cube of p dimensions.

    With the same seed a smaller log2 gives the first of the same points.
    """
    with uninterrupted():
        return _sobol(p, log2, seed)


def _sobol(p: int, log2: int, seed: tuple[int, ...]) -> Array:
    """The same. An interrupt in the first draw of a process would leave SciPy's table of directions half filled."""
    from scipy.stats.qmc import Sobol  # slow to import: not before it is needed

    return np.asarray(Sobol(p, scramble=True, rng=np.random.default_rng(seed)).random_base2(log2))


def far_apart(
    unit: Array,  # (m, d), in the unit cube
    order: Numbers,  # (k,), numbers of points
    distance: float,  # in diagonals of the cube
    most: int | None = None,
) -> Numbers:
    """The numbers of at most `most` points, taken in the given order, no two of them within `distance`. O(m d) each."""
    points = unit[order]
    left = np.ones(len(order), dtype=bool)
    chosen: list[int] = []
    far = distance**2 * unit.shape[1]
    while (most is None or len(chosen) < most) and len(left) and left[first := int(left.argmax())]:
        chosen.append(int(order[first]))
        left &= ((points - points[first]) ** 2).sum(axis=1) > far
    return np.array(chosen, dtype=np.intp)
