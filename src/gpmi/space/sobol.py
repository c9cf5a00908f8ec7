"""Points that fill the unit cube evenly: for designs, screens and random features."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gpmi.types import Array


@lru_cache(maxsize=16)
def sobol(p: int, log2: int, seed: tuple[int, ...]) -> Array:
    """2^log2 scrambled Sobol points of the unit cube of p dimensions.

    With the same seed a smaller log2 gives the first of the same points.
    """
    from scipy.stats.qmc import Sobol  # slow to import: not before it is needed

    return np.asarray(Sobol(p, scramble=True, rng=np.random.default_rng(seed)).random_base2(log2))
