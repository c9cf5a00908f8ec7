"""The best point of many, with only a few of the variances computed; and ties between scores that are rounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Mask, Numbers
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import ScoreFunction, chunks, first_best, moments_in_chunks

CLOSE = 1e-9  # relative tolerance on mu and var; `moments_in_blocks` resolves closer ties
OF_TREND = 1e-14  # a known mean function adds this part of its value to the error of mu: about fifty roundings
BLOCK, MANY = 16, 20_000  # points of a block in `moments_in_blocks`; above MANY points a block is larger: our choice
_PORTION = 32  # scores that a lazy search computes first; each further portion is twice as large; our choice, not tuned


class RoundingError(NamedTuple):
    """Bounds on how far mu and var at m points may differ between two ways of computing them, (m,) each.

    var = k(z, z) - v . v is rounded relative to k(z, z), however small it is itself. mu = mean + v . whitened is
    rounded relative to the size of the whitened values.
    """

    mu: Array
    var: Array

    @staticmethod
    def of(posterior: Posterior, z: Array) -> RoundingError:
        """Return CLOSE of these sizes: far above any rounding."""
        prior = posterior.kernel.diagonal(z)
        largest = float(np.abs(posterior.whitened).max(initial=0.0)) * np.sqrt(posterior.n)
        mu = CLOSE * largest * np.sqrt(prior)
        if posterior.trend is not None:
            mu += OF_TREND * np.abs(posterior.prior_mean(z))
        return RoundingError(mu, CLOSE * prior)

    def upper(self, index: ScoreFunction, mu: Array, var: Array, grows: bool = True) -> Array:
        """Return upper bounds (m,) of the scores; `grows` says that the index grows with var."""
        high = index(mu + self.mu, var + self.var)
        return high if grows else np.maximum(high, index(mu + self.mu, np.maximum(var - self.var, 0.0)))

    def lower(self, index: ScoreFunction, mu: Array, var: Array, at: int) -> float:
        """Return a lower bound of the score of point number `at`."""
        ends = np.maximum(var[at] + self.var[at] * np.array([-1.0, 1.0]), 0.0)
        return float(index(np.full(2, mu[at] - self.mu[at]), ends).min())


def contenders(
    index: ScoreFunction, mu: Array, var: Array, blur: RoundingError, excluded: Mask | None, grows: bool
) -> Numbers:
    """Return the points, excluded ones aside, whose score may be the largest, as mu and var (m,) are rounded."""
    upper = blur.upper(index, mu, var, grows)
    if excluded is None:
        best = int(np.argmax(upper))
        return np.flatnonzero(upper >= min(blur.lower(index, mu, var, best), float(upper[best])))
    places = np.flatnonzero(~excluded)
    best = int(places[np.argmax(upper[places])])
    return places[upper[places] >= min(blur.lower(index, mu, var, best), float(upper[best]))]


def moments_in_blocks(posterior: Posterior, z: Array, numbers: Numbers) -> tuple[Array, Array]:
    """Compute mu and var at the points of z (m, d) with these numbers (k,): bit for bit the same in every selection.

    The rounding of BLAS depends on how many points it gets. So points are evaluated with their neighbours in z, in
    blocks that are the same for every call: BLOCK points, or four times as many if z has more than MANY. O(n^2) for
    each point of a block.
    """
    if posterior.n == 0:  # nothing is summed
        return posterior(z[numbers])
    size = BLOCK if len(z) <= MANY else 4 * BLOCK
    blocks, which = np.unique(numbers // size, return_inverse=True)
    mu, var = np.empty((len(blocks), size)), np.empty((len(blocks), size))
    for i, block in enumerate(blocks):
        part = z[block * size : (block + 1) * size]
        mu[i, : len(part)], var[i, : len(part)] = posterior(part)
    return mu[which, numbers % size], var[which, numbers % size]


def lazy_argmax(
    posterior: Posterior, z: Array, index: ScoreFunction, bound: Array | None = None, excluded: Mask | None = None
) -> tuple[int, Array]:
    """Return the argmax over z of an index that grows with var, and upper bounds of the variances for the next call.

    Variances only fall as observations are added. So `bound`, returned by an earlier call with the same prior and a
    subset of the observations, bounds them from above. So does the variance given any single observation, of which the
    smallest is taken. O(n m) for the means, O(n^2) for each variance computed (`search_lazily`).
    """
    m = len(z)
    mu = np.empty(m)
    bound = np.full(m, np.inf) if bound is None else bound.copy()
    for part in chunks(m, posterior.n):
        mu[part], from_one_value = _mean_and_bound(posterior, z[part])
        bound[part] = np.minimum(bound[part], from_one_value)
    blur = RoundingError.of(posterior, z)
    upper = blur.upper(index, mu, bound)
    allowed = np.ones(m, dtype=bool) if excluded is None else ~excluded
    stale = allowed.copy()

    def refresh(numbers: Numbers) -> Array:
        bound[numbers] = moments_in_chunks(posterior, z[numbers])[1]
        return index(mu[numbers] + blur.mu[numbers], bound[numbers] + blur.var[numbers])

    def threshold(best: float) -> float:
        fresh = np.flatnonzero(allowed & ~stale)
        return blur.lower(index, mu, bound, int(fresh[np.argmax(upper[fresh])]))

    search_lazily(upper, stale, refresh, threshold)
    numbers = contenders(index, mu, bound, blur, ~allowed | stale, True)
    return argmax_of_contenders(posterior, z, index, numbers), bound


def argmax_of_contenders(posterior: Posterior, z: Array, index: ScoreFunction, numbers: Numbers) -> int:
    """Return the argmax over the points of z with these numbers, the first of equals. How they were found does not
    matter.
    """
    if len(numbers) == 1:
        return int(numbers[0])
    return int(numbers[first_best(index(*moments_in_blocks(posterior, z, numbers)))])


def search_lazily(
    score: Array,  # (m,), upper bounds of the scores; overwritten with the scores that are computed
    stale: Mask,  # (m,), points whose score may be computed; overwritten: those left were not worth computing
    refresh: Callable[[Numbers], Array],  # numbers of k points -> their scores, (k,)
    threshold: Callable[[float], float],  # the best score -> the lowest score that ties with it
) -> float:
    """Return the best score, computing only those whose upper bound reaches it (Minoux 1978).

    The highest bounds come first, in portions of doubling size, until no remaining bound reaches the best score.
    """
    best, portion = -np.inf, _PORTION
    while True:
        reach = threshold(best) if np.isfinite(best) else best
        numbers = np.flatnonzero(stale & (score >= reach))
        if len(numbers) == 0:
            return best
        if len(numbers) > portion:
            numbers = numbers[np.argpartition(-score[numbers], portion)[:portion]]
        score[numbers] = refresh(numbers)
        stale[numbers] = False
        best = max(best, float(score[numbers].max()))
        portion *= 2


def _mean_and_bound(posterior: Posterior, z: Array) -> tuple[Array, Array]:
    """Return mu, and min_j k(z, z) - k(z, x_j)^2 / C_jj >= var. O(n m)."""
    prior = posterior.kernel.diagonal(z)
    if posterior.n == 0:
        return posterior.prior_mean(z), prior
    k = posterior.kernel(z, posterior.x)
    mu = posterior.mu(z) if posterior.nugget > 0.0 else posterior.prior_mean(z) + k @ posterior.weights
    noisy = posterior.kernel.diagonal(posterior.x) + posterior.noise + posterior.jitter
    k /= np.sqrt(noisy)  # before squaring: k^2 may overflow
    np.square(k, out=k)
    # Both this and the posterior's own variance are rounded; 1e-12 of the prior variance keeps it an upper bound.
    return mu, prior * (1.0 + 1e-12) - k.max(axis=1)
