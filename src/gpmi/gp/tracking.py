"""mu and var of successive posteriors at a fixed set of points, without computing them anew.

`Tracked` keeps V = L^-1 k(x, z) and adds one row of it per observation. Where V would not fit in memory, or was
lost with the prior it belonged to, `lazy_argmax` finds the same best point from few fresh variances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from gpmi.gp.posterior import Posterior
from gpmi.types import Array, Mask

TRACKED_BYTES = 2**31  # what V may take: 200 observations on a million points
TIE = 1e-10  # scores this close, in units of their range, are equal: rounding must not choose the point
_BLOCK_ROWS = 32
_CHUNK_VALUES = 2**22  # kernel values computed at once: 32 MiB

Index = Callable[[Array, Array], Array]  # (mu, var) -> score, point by point


@dataclass(slots=True)
class _Block:
    """Consecutive rows of V, written once, in order, and shared between versions."""

    v: Array  # (rows, m)
    x: Array  # (rows, d), the observed point each row belongs to
    used: int


@dataclass(frozen=True, eq=False)
class Tracked:
    """mu and var of `posterior` at z (m, d). Immutable; `follow` gives those of a longer posterior."""

    z: Array  # (m, d)
    posterior: Posterior
    mu: Array  # (m,)
    var: Array  # (m,)
    _blocks: tuple[_Block, ...]

    @staticmethod
    def fits(n: int, m: int) -> bool:
        """Whether V for n observations and m points is within TRACKED_BYTES."""
        return 8 * n * m <= TRACKED_BYTES

    @staticmethod
    def start(posterior: Posterior, z: Array) -> Tracked:
        """The moments of any posterior, computed at once. O(n^2 m)."""
        n, m = posterior.n, len(z)
        mu, var = np.full(m, posterior.mean), posterior.kernel.diagonal(z)
        if n == 0:
            return Tracked(z, posterior, mu, var, ())
        v = np.empty((n, m))
        for part in chunks(m, n):
            v[:, part] = posterior.whiten(z[part])
        var -= np.einsum("ij,ij->j", v, v)
        return Tracked(z, posterior, mu + posterior.whitened @ v, np.maximum(var, 0.0), (_Block(v, posterior.x, n),))

    def extends_to(self, posterior: Posterior) -> bool:
        """Whether `posterior` has the same prior and begins with the same observed points."""
        mine, n = self.posterior, self.posterior.n
        return (
            posterior.kernel is mine.kernel
            and posterior.noise_var == mine.noise_var
            and posterior.mean == mine.mean
            and posterior.n >= n
            and np.array_equal(posterior.x[:n].ravel(), mine.x.ravel())
            and np.array_equal(posterior.whitened[:n], mine.whitened)
        )

    def follow(self, posterior: Posterior) -> Tracked:
        """The moments of a posterior that extends this one (`extends_to`). O(n m) per added observation.

        Row s of V is (k(x_s, z) - L_s,<s V_<s) / L_ss; it adds whitened_s V_s to mu and takes V_s^2 from var.
        """
        mu, var, blocks = self.mu.copy(), self.var.copy(), self._blocks
        for s in range(self.posterior.n, posterior.n):
            blocks, v = _with_row(blocks, s, posterior, self.z)
            mu += posterior.whitened[s] * v
            var -= v * v
        return Tracked(self.z, posterior, mu, np.maximum(var, 0.0, out=var), blocks)


def _with_row(blocks: tuple[_Block, ...], s: int, posterior: Posterior, z: Array) -> tuple[tuple[_Block, ...], Array]:
    """The blocks with row s of V behind the first s rows, and that row."""
    filled = s - sum(len(block.v) for block in blocks[:-1])  # rows of the last block that are ours
    if not blocks or filled == len(blocks[-1].v):
        blocks = (*blocks, _empty_block(posterior, len(z)))
        filled = 0
    last = blocks[-1]
    if last.used > filled:
        if np.array_equal(last.x[filled], posterior.x[s]):
            return blocks, last.v[filled]  # the row of a pending point that has been told
        last = _empty_block(posterior, len(z))  # another version went another way: leave it its block
        last.v[:filled], last.x[:filled] = blocks[-1].v[:filled], blocks[-1].x[:filled]
        blocks = (*blocks[:-1], last)
    row = posterior.factor.row(s)
    v = posterior.kernel(posterior.x[s : s + 1], z)[0]
    begin = 0
    for block in blocks:
        rows = min(len(block.v), s - begin)
        v -= row[begin : begin + rows] @ block.v[:rows]
        begin += rows
    v /= row[-1]
    last.v[filled], last.x[filled], last.used = v, posterior.x[s], filled + 1
    return blocks, v


def _empty_block(posterior: Posterior, m: int) -> _Block:
    return _Block(np.empty((_BLOCK_ROWS, m)), np.empty((_BLOCK_ROWS, posterior.x.shape[1])), 0)


def moments_in_chunks(posterior: Posterior, z: Array) -> tuple[Array, Array]:
    """mu and var at z (m, d), the direct way, in pieces that fit in memory. O(n^2 m)."""
    mu, var = np.empty(len(z)), np.empty(len(z))
    for part in chunks(len(z), posterior.n):
        mu[part], var[part] = posterior(z[part])
    return mu, var


def mean_in_chunks(posterior: Posterior, z: Array) -> Array:
    """mu alone at z (m, d), in pieces that fit in memory. O(n m)."""
    mu = np.empty(len(z))
    for part in chunks(len(z), posterior.n):
        mu[part] = posterior.mu(z[part])
    return mu


def first_best(score: Array, excluded: Mask | None = None) -> int:
    """The argmax of a score over what is not excluded; of scores equal up to rounding the first."""
    if excluded is not None:
        allowed = np.flatnonzero(~excluded)
        return int(allowed[first_best(score[allowed])])
    best = float(score.max())
    if not np.isfinite(best):
        return int(np.argmax(score))
    return int(np.argmax(score >= best - _rounding(score, best)))


def _rounding(score: Array, best: float) -> float:
    """How far below the best score counts as a tie: TIE of the range of scores, and a few units in the last place."""
    lowest = float(np.min(score, initial=best, where=np.isfinite(score)))
    return TIE * (best - lowest) + 4.0 * float(np.spacing(abs(best)))


def lazy_argmax(
    posterior: Posterior, z: Array, index: Index, bound: Array | None = None, excluded: Mask | None = None
) -> tuple[int, Array]:
    """The argmax over z of an index that grows with var, and upper bounds of the variances for the next call.

    Stale variances are upper bounds, so a point whose stale index is below a fresh one cannot be the argmax. Only
    the others are refreshed, best first, in doubling portions. `bound` comes from an earlier call with the same
    prior and a subset of the observations; without it, the variance given the one most telling observation bounds
    the posterior's. O(n m) for the means, O(n^2) for each variance refreshed.
    """
    m = len(z)
    mu = np.empty(m)
    bound = np.full(m, np.inf) if bound is None else bound.copy()
    for part in chunks(m, posterior.n):
        mu[part], one = _mean_and_bound(posterior, z[part])
        bound[part] = np.minimum(bound[part], one)
    score = index(mu, bound)
    fresh = np.zeros(m, dtype=bool)
    allowed = np.ones(m, dtype=bool) if excluded is None else ~excluded
    best, portion = -np.inf, 32
    while True:
        threshold = best - _rounding(score, best) if np.isfinite(best) else best
        stale = np.flatnonzero(allowed & ~fresh & (score >= threshold))
        if len(stale) == 0:
            return first_best(score, ~(allowed & fresh)), bound
        if len(stale) > portion:
            stale = stale[np.argpartition(-score[stale], portion)[:portion]]
        for part in chunks(len(stale), posterior.n):
            bound[stale[part]] = posterior(z[stale[part]])[1]
        score[stale] = index(mu[stale], bound[stale])
        fresh[stale] = True
        best = max(best, float(score[stale].max()))
        portion *= 2


def _mean_and_bound(posterior: Posterior, z: Array) -> tuple[Array, Array]:
    """mu, and min_j k(z, z) - k(z, x_j)^2 / C_jj >= var. O(n m)."""
    prior = posterior.kernel.diagonal(z)
    if posterior.n == 0:
        return np.full(len(z), posterior.mean), prior
    k = posterior.kernel(z, posterior.x)
    mu = posterior.mean + k @ posterior.weights
    noisy = posterior.kernel.diagonal(posterior.x) + posterior.noise_var + posterior.jitter
    np.square(k, out=k)
    k /= noisy
    # The direct formula rounds: give the bound the last digits, so that it stays one.
    return mu, prior * (1.0 + 1e-12) - k.max(axis=1)


def chunks(m: int, n: int) -> Iterator[slice]:
    """Slices of range(m) for which an (n, slice) matrix has at most _CHUNK_VALUES values."""
    step = max(1, _CHUNK_VALUES // max(n, 1))
    for begin in range(0, m, step):
        yield slice(begin, min(begin + step, m))
