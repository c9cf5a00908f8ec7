"""The distribution of max f under a posterior, jointly with f at some points: a regret is the difference of the two.

On a finite set f is drawn jointly at every point that may hold the maximum. On a box it is drawn jointly at the points
of a screen; each draw is then continued to a function on the whole box (a path), which is climbed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpmi.cube import sobol
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.paths import FEATURES, Frame, Paths
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import chunks, moments_in_chunks
from gpmi.search.box import best_levels
from gpmi.search.finite import JOINT
from gpmi.search.screens import screen_of
from gpmi.space import Parameters, Space
from gpmi.types import Array, Mask

REACH = 5.0  # sd above and below mu within which f is taken to lie; the error is below 3e-7, see `_most_plausible`

# Our choices, not tuned. They limit the cost; the coverage that results is in docs/benchmarks/ledger.md.
_GROUPS = 4  # independent sets of random features: the error of one set is shared by a quarter of the paths only
_STARTS = 2  # points from which a path with random features is climbed
_APART = 0.1  # the least distance between two starts of a path, in diagonals of the space
_ROUNDS = 12  # steps of a climb; a rough maximum is enough
_LEVELS = 64  # levels of one discrete parameter that are tried, at most

_TINY = 1e-300  # keeps a quotient finite where its denominator is 0


class Maxima(NamedTuple):
    """Joint draws."""

    best: Array  # (size,), max of f over the space
    at: Array  # (size, k), f at the points asked for
    how: str  # what was drawn, and what is approximate about it


@one_blas_thread
def draw_maxima(
    posterior: Posterior,
    space: Space,
    at: Array,  # (k, d), points of the space
    size: int,
    rng: np.random.Generator,
    seed: int = 0,  # of the screen
    allowed: Callable[[Array], Mask] | None = None,  # which of some points (m, d) count
) -> Maxima:
    """`size` joint draws of max f over the space and of f at `at`; over its allowed points, and the first of `at`.

    On a finite set of m points, K of which may hold the maximum, it costs O(n^2 m + n K^2 + K^3 + size K^2). On a box
    m and K are those of the screen, and each round of the climb adds O(size (n + K)).
    """
    if space.rows is not None:
        rows = space.rows if allowed is None else space.rows[allowed(space.rows)]
        numbers = _most_plausible(posterior, rows) if len(rows) else np.empty(0, dtype=np.intp)
        how = f"joint draws at the {len(numbers)} candidates that may hold the maximum"
        if len(numbers) > JOINT:
            numbers = numbers[:JOINT]
            how = f"joint draws at the {JOINT} candidates most likely to beat the best mean; a lower bound"
        z = np.concatenate([at, rows[numbers]])
        draws = posterior.sample(z, rng, size)
        return Maxima(draws[:, _counted(z, allowed)].max(axis=1), draws[:, : len(at)], how)
    assert isinstance(space, Parameters)
    screen = screen_of(space, seed)
    frame = Frame.of(posterior, np.concatenate([at, screen[_most_plausible(posterior, screen)]]))
    probes = space.from_unit(sobol(space.unit_dim, 7, (seed, 2)))
    probes = probes[_most_plausible(posterior, probes)]
    groups = _GROUPS if frame.leaves_open(probes) else 1
    best, values = [], []
    for _ in range(groups):
        paths = frame.paths(-(-size // groups), rng, rough=groups > 1)
        best.append(_maxima(paths, space, allowed))
        values.append(paths.values[: len(at)].T)
    between = f"{_GROUPS} sets of {FEATURES} random features" if groups > 1 else "their conditional mean"
    how = f"posterior paths through {len(frame.z)} points, continued by {between} and climbed; a lower bound"
    return Maxima(np.concatenate(best)[:size], np.concatenate(values)[:size], how)


def _most_plausible(posterior: Posterior, z: Array) -> NDArray[np.intp]:
    """The rows of z (m, d) that may hold the maximum of f over z; those most likely to exceed the largest mean first.

    A point whose mu + REACH sd is below the mu - REACH sd of another one is left out. The sd of the difference of the
    two values is at most the sum of their sd, so the first exceeds the second with a probability below 3e-7.
    """
    mu, var = moments_in_chunks(posterior, z)
    sd = np.sqrt(var)
    may: Mask = mu + REACH * sd >= np.max(mu - REACH * sd)
    numbers = np.flatnonzero(may)
    with np.errstate(over="ignore"):  # a point that is known and not the best has no chance
        chance = (mu[numbers] - mu.max()) / np.maximum(sd[numbers], _TINY)
    return numbers[np.argsort(-chance, kind="stable")]


def most_likely_better(posterior: Posterior, z: Array, row: Array, by: float) -> float:
    """max over z (m, d) of P(f(z) - f(row) > by), which is a lower bound of P(regret at row > by). O(n^2 m)."""
    from scipy.special import ndtr

    gap = (moments_in_chunks(posterior, z)[0] - posterior.mu(row)[0]) - by
    spread = spread_of_difference(posterior, z, row)
    # Where f(z) and f(row) are the same value, their means differ by rounding only: 1e-12 prior sd is more than that.
    surely = gap > 1e-12 * np.sqrt(posterior.kernel.diagonal(z))
    p = np.where(spread == 0.0, surely, ndtr(gap / np.sqrt(np.maximum(spread, _TINY))))
    return float(p.max())


def spread_of_difference(posterior: Posterior, z: Array, row: Array) -> Array:
    """Var[f(z_i) - f(row)] at z (m, d), and 0 where it is no more than rounding (1e-12 of k). (m,), O(n^2 m)."""
    spread = np.empty(len(z))
    (var_row,) = posterior(row[None])[1]
    for part in chunks(len(z), posterior.n):
        var = posterior(z[part])[1] + var_row - 2.0 * posterior.covariance(z[part], row[None])[:, 0]
        spread[part] = np.where(var <= 1e-12 * posterior.kernel.diagonal(z[part]), 0.0, var)
    return spread


# Maxima of functions drawn from a posterior


def _counted(z: Array, allowed: Callable[[Array], Mask] | None) -> Mask:
    """Which of the points z (m, d) count for the maximum: those that are allowed, and the first."""
    counted = np.ones(len(z), dtype=bool)
    if allowed is not None:
        counted[1:] = allowed(z[1:])
    return counted


def _maxima(paths: Paths, space: Parameters, allowed: Callable[[Array], Mask] | None = None) -> Array:
    """The largest value found on each path, by climbs from the points of z where the path is highest. (size,)"""
    values = paths.values.copy()  # (K, size)
    values[~_counted(paths.z, allowed)] = -np.inf
    size = values.shape[1]
    best: Array = values.max(axis=0)
    unit = (paths.z - space.lo) / space.span
    starts = 1 if paths.features is None else _STARTS
    for _ in range(starts):
        first = values.argmax(axis=0)
        z, value = _climb(paths, space, paths.z[first], allowed)
        if space.combinations > 1:

            def along(z: Array, which: NDArray[np.intp]) -> Array:
                on_path = paths(z, which)[0]
                return on_path if allowed is None else np.where(allowed(z), on_path, -np.inf)

            moved, _ = best_levels(along, space, z, value, _spread_levels)
            z, value = _climb(paths, space, moved, allowed)
        best = np.maximum(best, value)
        for s in range(size if starts > 1 else 0):  # the next start shall not climb the same peak again
            near = ((unit - unit[first[s]]) ** 2).sum(axis=1) <= _APART**2 * unit.shape[1]
            values[near, s] = -np.inf
    return best


def _climb(
    paths: Paths, space: Parameters, z: Array, allowed: Callable[[Array], Mask] | None = None
) -> tuple[Array, Array]:
    """Local maxima of the paths over the continuous coordinates, path s from z_s, all of them in lockstep.

    Projected gradient steps in units of the kernel's reach. Their length comes from the last two gradients (Barzilai
    and Borwein 1988). A step that does not improve is not taken, and the next one is a quarter as long. This is not
    the climb of `gpmi.search`, which would need d + 1 points for each of the hundreds of paths; `search/climb.py`
    compares the two.
    """
    free = np.concatenate([np.full(p.width, p.levels is None) for p in space.parameters])
    metric = np.where(free, np.minimum(paths.posterior.kernel.reach(space.dim), space.span) ** 2, 0.0)
    which = np.arange(len(z))
    value, gradient = paths(z, which)
    length = 0.1 / np.maximum(np.sqrt((metric * gradient**2).sum(axis=1)), _TINY)  # the first step: a tenth of reach
    for _ in range(_ROUNDS):
        with np.errstate(over="ignore", invalid="ignore"):  # a step that overflows ends at the bounds
            new = np.clip(z + (length[:, None] * metric) * gradient, space.lo, space.hi)
        new_value, new_gradient = paths(new, which)
        better = new_value > value if allowed is None else (new_value > value) & allowed(new)
        step = new - z
        curvature = (step * (gradient - new_gradient)).sum(axis=1)
        squared = np.divide(step**2, metric, out=np.zeros_like(step), where=metric > 0.0).sum(axis=1)
        bent = better & (curvature > 0.0)
        length = np.where(better, 2.0 * length, 0.25 * length)
        length = np.where(bent, squared / np.where(bent, curvature, 1.0), length)
        z, gradient = np.where(better[:, None], new, z), np.where(better[:, None], new_gradient, gradient)
        value = np.where(better, new_value, value)
    return z, value


def _spread_levels(levels: Array, here: Array) -> Array:
    """At most _LEVELS of the levels, spread evenly, the first and the last included."""
    count = len(levels)
    picked: Array = levels[np.unique(np.linspace(0, count - 1, min(count, _LEVELS)).round().astype(int))]
    return picked
