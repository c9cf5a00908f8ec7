"""Low-discrepancy points of the unit cube."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gpmi.types import Array


@lru_cache(maxsize=16)
def sobol(p: int, log2: int, seed: tuple[int, ...]) -> Array:
    """2^log2 scrambled Sobol points of the unit cube of p dimensions; fewer of the same seed are the first of them."""
    from scipy.stats.qmc import Sobol  # slow to import: not before it is needed

    return np.asarray(Sobol(p, scramble=True, rng=np.random.default_rng(seed)).random_base2(log2))
