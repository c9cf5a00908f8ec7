"""Update mu and var of successive posteriors at a fixed set of points, instead of recomputing them.

`Tracked` stores V = L^-1 k(x, z) and adds one row for each observation. Where V does not fit in memory, or the prior
has changed, `lazy_search.lazy_argmax` finds the same best point and computes only a few of the variances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from gpmi._support.types import Array, Mask
from gpmi.gp.linalg import solve_lower
from gpmi.gp.posterior import Posterior

TRACKED_BYTES = 2**31  # memory that V may take, 2 GiB: 268 observations on a million points; our choice
TIE = 4.0  # scores at most this many units in the last place below the best tie with it: a few roundings
AT_ONCE = 32  # more new rows than this are computed together, by matrices; our choice, not tuned
_BLOCK_ROWS = 32  # rows of V allocated together; our choice, not tuned
_CHUNK_VALUES = 2**22  # kernel values computed at once, 32 MiB; our choice, not tuned

ScoreFunction = Callable[[Array, Array], Array]  # (mu, var) -> score of each point


@dataclass(slots=True)
class _Block:
    """Consecutive rows of V, each written once, in order, and shared between versions of `Tracked`."""

    v: Array  # (rows, m)
    x: Array  # (rows, d), the observed point of each row
    noise: Array  # (rows,), and its noise variance
    used: int


@dataclass(frozen=True, eq=False)
class Tracked:
    """mu and var of `posterior` at z (m, d). Immutable; `follow` returns those of a longer posterior."""

    z: Array  # (m, d)
    posterior: Posterior
    mu: Array  # (m,)
    var: Array  # (m,)
    _blocks: tuple[_Block, ...]

    @staticmethod
    def fits(n: int, m: int) -> bool:
        """Return whether V for n observations and m points takes at most TRACKED_BYTES."""
        return 8 * n * m <= TRACKED_BYTES

    @staticmethod
    def start(posterior: Posterior, z: Array) -> Tracked:
        """Compute the moments of any posterior from scratch. O(n^2 m)."""
        n, m = posterior.n, len(z)
        mu, var = posterior.prior_mean(z), posterior.kernel.diagonal(z)
        if n == 0:
            return Tracked(z, posterior, mu, var, ())
        v = np.empty((n, m))
        for part in chunks(m, n):
            v[:, part] = posterior.whiten(z[part])
        var -= np.einsum("ij,ij->j", v, v)
        block = _Block(v, posterior.x, posterior.noise, n)
        return Tracked(z, posterior, mu + posterior.whitened @ v, np.maximum(var, 0.0), (block,))

    def extends_to(self, posterior: Posterior) -> bool:
        """Return whether `posterior` has the same prior and begins with the same observed points."""
        mine, n = self.posterior, self.posterior.n
        return (
            posterior.kernel is mine.kernel
            and posterior.noise_var == mine.noise_var
            and posterior.mean == mine.mean
            and posterior.trend is mine.trend
            and posterior.nugget == mine.nugget
            and posterior.n >= n
            and np.array_equal(posterior.x[:n].ravel(), mine.x.ravel())
            and np.array_equal(posterior.noise[:n], mine.noise)
            and np.array_equal(posterior.whitened[:n], mine.whitened)
        )

    def follow(self, posterior: Posterior, *, at_once: bool = False) -> Tracked:
        """Return the moments of a posterior that extends this one (`extends_to`). O(n m) per added observation.

        With `at_once` many observations are added by matrix products. That is faster, but then the last digits depend
        on how many they are.

        Row s of V is (k(x_s, z) - L_s,<s V_<s) / L_ss. It adds whitened_s V_s to mu and subtracts V_s^2 from var.
        """
        mu, var, blocks = self.mu.copy(), self.var.copy(), self._blocks
        begin = self.posterior.n
        if at_once and posterior.n - begin > AT_ONCE:
            blocks, v = _with_rows(blocks, begin, posterior, self.z)
            mu += posterior.whitened[begin:] @ v
            var -= np.einsum("ij,ij->j", v, v)
            begin = posterior.n
        for s in range(begin, posterior.n):
            blocks, v = _with_row(blocks, s, posterior, self.z)
            mu += posterior.whitened[s] * v
            var -= v * v
        return Tracked(self.z, posterior, mu, np.maximum(var, 0.0, out=var), blocks)


def _with_row(blocks: tuple[_Block, ...], s: int, posterior: Posterior, z: Array) -> tuple[tuple[_Block, ...], Array]:
    """Return the blocks with row s of V appended to the first s rows, and that row."""
    filled = s - sum(len(block.v) for block in blocks[:-1])  # our rows in the last block
    if not blocks or filled == len(blocks[-1].v):
        blocks = (*blocks, _empty_block(posterior, len(z)))
        filled = 0
    last = blocks[-1]
    if last.used > filled:
        if np.array_equal(last.x[filled], posterior.x[s]) and last.noise[filled] == posterior.noise[s]:
            return blocks, last.v[filled]  # already computed, for instance while the point was pending
        last = _empty_block(posterior, len(z))  # another version has written here: copy our rows to a new block
        for ours, theirs in ((last.v, blocks[-1].v), (last.x, blocks[-1].x), (last.noise, blocks[-1].noise)):
            ours[:filled] = theirs[:filled]
        blocks = (*blocks[:-1], last)
    above = [*(block.v for block in blocks[:-1]), last.v[:filled]]
    v = next_row(posterior.kernel(posterior.x[s : s + 1], z)[0], posterior.factor.row(s), above)
    last.v[filled], last.x[filled], last.noise[filled] = v, posterior.x[s], posterior.noise[s]
    last.used = filled + 1
    return blocks, v


def _with_rows(
    blocks: tuple[_Block, ...], begin: int, posterior: Posterior, z: Array
) -> tuple[tuple[_Block, ...], Array]:
    """Return the blocks with all rows of V from `begin` on appended, and those rows. O(n^2 m), by matrix products."""
    filled: list[_Block] = []
    start = 0
    for block in blocks:  # cut the last one after our rows, so that another can follow
        rows = min(len(block.v), begin - start)
        filled += [_Block(block.v[:rows], block.x[:rows], block.noise[:rows], rows)] if rows else []
        start += rows
    lower, x = posterior.factor.rows(begin), posterior.x[begin:]
    v = np.empty((len(x), len(z)))
    for part in chunks(len(z), posterior.n):
        right, start = posterior.kernel(x, z[part]), 0
        for block in filled:
            right -= lower[:, start : start + len(block.v)] @ block.v[:, part]
            start += len(block.v)
        v[:, part] = solve_lower(lower[:, begin:], right)
    return (*filled, _Block(v, x, posterior.noise[begin:], len(x))), v


def next_row(covariance: Array, lower: Array, above: Iterable[Array]) -> Array:
    """Return row s of V = L^-1 cov[observed, f(z)], that is (covariance - L_s,<s V_<s) / L_ss. (m,), O(s m).

    covariance (m,) is cov[observation s, f(z)] and is overwritten; lower (s + 1,) is row s of L; `above` holds the s
    rows of V before this one, in one or several blocks.
    """
    v, begin = covariance, 0
    for block in above:
        v -= lower[begin : begin + len(block)] @ block
        begin += len(block)
    v /= lower[-1]
    return v


def _empty_block(posterior: Posterior, m: int) -> _Block:
    points = np.empty((_BLOCK_ROWS, posterior.x.shape[1]))
    return _Block(np.empty((_BLOCK_ROWS, m)), points, np.empty(_BLOCK_ROWS), 0)


def moments_in_chunks(posterior: Posterior, z: Array) -> tuple[Array, Array]:
    """Compute mu and var at z (m, d) directly, in pieces that fit in memory. O(n^2 m)."""
    mu, var = np.empty(len(z)), np.empty(len(z))
    for part in chunks(len(z), posterior.n):
        mu[part], var[part] = posterior(z[part])
    return mu, var


def mean_in_chunks(posterior: Posterior, z: Array) -> Array:
    """Compute mu at z (m, d), in pieces that fit in memory. O(n m)."""
    mu = np.empty(len(z))
    for part in chunks(len(z), posterior.n):
        mu[part] = posterior.mu(z[part])
    return mu


def first_best(score: Array, excluded: Mask | None = None) -> int:
    """Return the first point, excluded ones aside, whose score is the largest up to rounding."""
    if excluded is not None:
        allowed = np.flatnonzero(~excluded)
        return int(allowed[first_best(score[allowed])])
    best = float(score.max())
    if not np.isfinite(best):
        return int(np.argmax(score))
    return int(np.argmax(score >= best - TIE * float(np.spacing(abs(best)))))


def chunks(m: int, n: int) -> Iterator[slice]:
    """Yield slices of range(m) for which an (n, slice) matrix has at most _CHUNK_VALUES values."""
    step = max(1, _CHUNK_VALUES // max(n, 1))
    for begin in range(0, m, step):
        yield slice(begin, min(begin + step, m))
