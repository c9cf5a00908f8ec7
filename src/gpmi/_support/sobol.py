"""Points in the unit cube: Sobol points, which fill it evenly, and subsets that keep a minimum distance."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gpmi._support.interrupts import uninterrupted
from gpmi._support.types import Array, Numbers


@lru_cache(maxsize=16)
def sobol(p: int, log2: int, seed: tuple[int, ...]) -> Array:
    """Return 2^log2 scrambled Sobol points in the unit cube of p dimensions.

    With the same seed, a smaller log2 gives the first of these points.
    """
    with uninterrupted():
        return _sobol(p, log2, seed)


def _sobol(p: int, log2: int, seed: tuple[int, ...]) -> Array:
    """Compute the points. Ctrl-C in the first draw of a process would leave SciPy's direction table half filled."""
    from scipy.stats.qmc import Sobol  # slow to import, so only when it is needed

    return np.asarray(Sobol(p, scramble=True, rng=np.random.default_rng(seed)).random_base2(log2))


def far_apart(
    unit: Array,  # (m, d), in the unit cube
    order: Numbers,  # (k,), indices of points
    distance: float,  # in units of the cube's diagonal
    most: int | None = None,
) -> Numbers:
    """Return indices of at most `most` points, taken in this order, no two within `distance`. O(m d) for each point."""
    points = unit[order]
    left = np.ones(len(order), dtype=bool)
    chosen: list[int] = []
    far = distance**2 * unit.shape[1]
    while (most is None or len(chosen) < most) and len(left) and left[first := int(left.argmax())]:
        chosen.append(int(order[first]))
        left &= ((points - points[first]) ** 2).sum(axis=1) > far
    return np.array(chosen, dtype=np.intp)
