"""K as a function of the unknowns where options have descriptors (`gpmi.space.features`).

The default kernel sees, beside the coordinates, each descriptor as one more coordinate with its own lengthscale. The
squared distance of two options is then 2 / l^2 for being different options, plus a term for each descriptor. The fit
decides between names and numbers: what does not matter gets a long lengthscale.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from gpmi._support.types import Array, Numbers
from gpmi.gp.kernels import Kernel, Mapped
from gpmi.model.fitting.covariance import Pairs, PairValues, PairwiseMatern
from gpmi.model.fitting.unknowns import Unknowns
from gpmi.space.features import FeatureColumns

# Added to the prior mean of log lengthscales. For K descriptors of a choice it is log(K) / 2 + _DESCRIPTOR, so that K
# of them together say no more than one. For the options themselves it is _LABELS: what descriptors explain needs no
# names. Chosen among about ten pairs on the development tables of docs/benchmarks/features.md, with an earlier choice
# of columns and before names had every second query; not compared again.
_DESCRIPTOR, _LABELS = 0.7, 1.4


class PairwiseFeatures:
    """`PairwiseMatern` of the coordinates and the descriptors: q = (log variance, log lengthscales, log noise).

    The lengthscales of the parameters come first, then those of the descriptors.
    """

    def __init__(self, x: Array, span: Array, groups: tuple[int, ...], scale: float, features: FeatureColumns) -> None:
        self._x, self._span, self._groups, self._scale, self._features = x, span, groups, scale, features
        count, parameters = features.matrix.shape[1], max(groups) + 1
        self._inner = PairwiseMatern(
            np.concatenate([x, x @ features.matrix], axis=1),
            np.concatenate([span, np.ones(count)]),
            (*groups, *range(parameters, parameters + count)),
            scale,
        )
        self.pairs: Pairs = self._inner.pairs
        self.unknowns = _unknowns(features.owners, parameters)

    def __call__(self, q: Array) -> PairValues:
        """O(n^2 (p + K))."""
        return self._inner(q)

    def kernel(self, q: Array) -> Kernel:
        """Return the kernel at q, in the user's units."""
        return Mapped(self._inner.kernel(q), self._features.matrix)

    def q_of(self, kernel: Kernel, noise: float) -> Array:
        """Return the q of such a kernel, and of a noise in units of the variance of y."""
        assert isinstance(kernel, Mapped)
        return self._inner.q_of(kernel.base, noise)

    def restricted(self, rows: Numbers) -> PairwiseFeatures:
        """Return the same function of q at some of the points."""
        return PairwiseFeatures(self._x[rows], self._span, self._groups, self._scale, self._features)


@lru_cache(maxsize=4)
def _unknowns(owners: tuple[int, ...], parameters: int) -> Unknowns:
    """Return the unknowns: those of the default kernel, with the priors of options and descriptors moved."""
    plain = Unknowns.of([1.0, *[None] * (parameters + len(owners))], parameters)
    described, counts = np.unique(owners, return_counts=True)
    centre = plain.centre.copy()
    centre[1 + described] += _LABELS
    centre[1 + parameters : -1] += _DESCRIPTOR + 0.5 * np.log(counts[np.searchsorted(described, owners)])
    return replace(plain, centre=centre)
