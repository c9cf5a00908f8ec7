"""The distribution of max f under a posterior, jointly with f at some points: a regret is their difference.

On a finite set f is drawn jointly at every point that may hold the maximum. On a box it is drawn jointly at the points
of a screen; each draw is then continued to a function on the whole box (a path), which is climbed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpmi._support.types import Array, Mask
from gpmi.analysis.ledger.region import Region
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.paths import FEATURES, Paths, PathSampler, has_features
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import chunks, moments_in_chunks
from gpmi.policies.policy import TINY
from gpmi.search.coordinate_ascent import best_levels
from gpmi.search.finite import JOINT
from gpmi.search.screen import spread_over
from gpmi.space import Parameters, Space

REACH = 5.0  # f is assumed to lie within this many sd of mu; the error is below 3e-7, see `most_plausible`

# Our choices, not tuned. They limit the cost; the coverage that results is in docs/benchmarks/ledger.md.
_GROUPS = 4  # independent sets of random features: only a quarter of the paths share the error of one set
_FEW_PATHS = 16  # with fewer paths in each set one set is enough: the paths of other priors have their own sets
_FEW = 128  # candidates that are always drawn jointly
_JOINT, _JOINT_WIDE = 512, 128  # points of the screen drawn jointly; in wide spaces they are far from everything else
_SOME = 640  # points of the screen used if there are few paths: those most likely to exceed the largest mean
_WIDE = 4  # from this many parameters on a maximum is hard to find: a larger screen, more climbs
_SCREEN, _SCREEN_WIDE = 9, 11  # log2 of the number of points of the screen
_STARTS, _STARTS_WIDE = 3, 8  # points from which a path is climbed
_CELLS = 64  # cells of points, so that starts are not all on one peak
_ROUNDS_ALL = 3  # steps of all climbs of a path
_ROUNDS_BEST_OF = 2  # climbs of a path that continue after that
_ROUNDS = 9  # for this many steps; a rough maximum is enough
_LEVELS = 64  # levels of one discrete parameter that are tried, at most


class Maxima(NamedTuple):
    """Joint draws of max f and of f at some points."""

    best: Array  # (size,), max of f over the space
    where: Array  # (size, d), a point at which f has it
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
    region: Region | None = None,  # `size` draws of it
) -> Maxima:
    """Draw max f over the space and f at `at`, jointly, `size` times.

    With a `region` a point counts for the maximum of a draw of f only if it works in the draw of the region with the
    same number. The first of `at` always counts.

    On a finite set of m points, K of which may hold the maximum, it costs O(n^2 m + n K^2 + K^3 + size K^2). On a box K
    is at most 512, and each round of the climb adds O(size (n + K)).
    """
    if space.rows is None:
        return _on_a_box(posterior, space, at, size, rng, seed, region)
    rows = space.rows
    numbers = plausible_in(posterior, rows, at[:1], region)
    how = f"joint draws at the {len(numbers)} candidates that may hold the maximum"
    if len(numbers) > JOINT:
        numbers = numbers[:JOINT]
        how = f"joint draws at the {JOINT} candidates most likely to beat the best mean; a lower bound"
    limit = JOINT if not has_features(posterior.kernel) else max(4 * size, _FEW)
    if len(numbers) <= limit:
        z = np.concatenate([at, rows[numbers]])
        draws = posterior.sample(z, rng, size)
        return Maxima(*_largest(_counted(draws.T, z, region), z), draws[:, : len(at)], how)
    joint, rest = rows[numbers[:limit]], rows[numbers[limit:]]
    how = f"{how}, those beyond {limit} by {FEATURES} random features"
    sampler = PathSampler.of(posterior, np.concatenate([at, joint]))
    paths = sampler.paths(size, rng, rough=True)
    values, z = np.concatenate([paths.values, paths.everywhere(rest)]), np.concatenate([paths.z, rest])
    return Maxima(*_largest(_counted(values, z, region), z), paths.values[: len(at)].T, how)


def _largest(values: Array, z: Array) -> tuple[Array, Array]:
    """Return the largest of the values (m, size) at z (m, d) in each column, and the points where they are."""
    top = values.argmax(axis=0)
    return values[top, np.arange(values.shape[1])], z[top]


def _on_a_box(
    posterior: Posterior,
    space: Space,
    at: Array,
    size: int,
    rng: np.random.Generator,
    seed: int,
    region: Region | None,
) -> Maxima:
    """Draw paths through `at` and the most plausible points of a screen, and climb them."""
    assert isinstance(space, Parameters)
    wide = space.unit_dim >= _WIDE
    screen = spread_over(space, _SCREEN_WIDE if wide else _SCREEN, (seed, 1))
    few = size < _GROUPS * _FEW_PATHS  # the paths of one of many posteriors
    screen = screen[plausible_in(posterior, screen, at[:1], region)[: _SOME if few else None]]
    limit = min(2 * size, _JOINT_WIDE if wide else _JOINT) if has_features(posterior.kernel) else _JOINT
    sampler = PathSampler.of(posterior, np.concatenate([at, screen[:limit]]))
    rough = few or _is_uncertain_between(sampler, space, seed)
    groups = _GROUPS if rough and not few else 1
    count = FEATURES // 2 if few else FEATURES
    ends, values, each = [], [], -(-size // groups)
    for group in range(groups):
        paths = sampler.paths(each, rng, rough=rough, count=count)
        part = None if region is None else region.part((group * each + np.arange(each)) % size)
        ends.append(_maxima(paths, space, screen[limit:], _STARTS_WIDE if wide else _STARTS, part))
        values.append(paths.values[: len(at)].T)
    best, where = (np.concatenate([end[i] for end in ends])[:size] for i in (0, 1))
    between = f"{count} random features" if rough else "their conditional mean"
    how = f"posterior paths through {len(sampler.z)} points, continued by {between} and climbed; a lower bound"
    return Maxima(best, where, np.concatenate(values)[:size], how)


def _is_uncertain_between(sampler: PathSampler, space: Parameters, seed: int) -> bool:
    """Return whether f is uncertain between the sampler's points, at one of 128 probes that may hold the maximum."""
    probes = spread_over(space, 7, (seed, 2))
    return sampler.is_uncertain_at(probes[most_plausible(sampler.posterior, probes)])


def most_plausible(posterior: Posterior, z: Array) -> NDArray[np.intp]:
    """Return the rows of z (m, d) that may hold the maximum of f over z, the most likely ones first.

    They are sorted by the probability of exceeding the largest mean. A point whose mu + REACH sd is below the mu -
    REACH sd of another one is left out. The sd of the difference of the two values is at most the sum of their sd, so
    the first exceeds the second with a probability below 3e-7.
    """
    if len(z) == 0:  # nothing of the screen is inside narrow constraints
        return np.empty(0, dtype=np.intp)
    mu, var = moments_in_chunks(posterior, z)
    sd = np.sqrt(var)
    may: Mask = mu + REACH * sd >= np.max(mu - REACH * sd)
    numbers = np.flatnonzero(may)
    with np.errstate(over="ignore"):  # a point that is known and not the best has no chance
        chance = (mu[numbers] - mu.max()) / np.maximum(sd[numbers], TINY)
    return numbers[np.argsort(-chance, kind="stable")]


def plausible_in(posterior: Posterior, z: Array, first: Array, region: Region | None) -> NDArray[np.intp]:
    """Return the rows of z (m, d) that may hold the maximum over a region, the most likely ones first.

    They are compared with `first` (1, d) only, the one point that works in every draw. A point that works with a
    probability below 3e-7 is left out.
    """
    if region is None or len(z) == 0:
        return most_plausible(posterior, z)
    from scipy.special import log_ndtr

    (mu, var), works = moments_in_chunks(posterior, z), region.chance.works.log(z)
    (best,), (spread,) = posterior(first)
    may = (mu + REACH * np.sqrt(var) >= best - REACH * np.sqrt(spread)) & (works >= log_ndtr(-REACH))
    numbers = np.flatnonzero(may)
    with np.errstate(over="ignore"):  # a point that is known and not the best has no chance
        chance = log_ndtr((mu[numbers] - best) / np.maximum(np.sqrt(var[numbers]), TINY))
    return numbers[np.argsort(-(chance + works[numbers]), kind="stable")]


def most_likely_better(
    mixture: Sequence[Posterior], z: Array, row: Array, by: float, works: Array | None = None
) -> float:
    """Return the max over z (m, d) of P(f(z) - f(row) > by), a lower bound of P(regret at row > by).

    If z_i works with probability works_i (m,) only, that is multiplied. The posteriors have equal weights. O(n^2 m) for
    each posterior.
    """
    from scipy.special import ndtr

    total = np.zeros(len(z))
    for posterior in mixture:
        gap = (moments_in_chunks(posterior, z)[0] - posterior.mu(row)[0]) - by
        spread = spread_of_difference(posterior, z, row)
        # If f(z) and f(row) are the same value, their means differ by rounding only, which is below 1e-12 prior sd.
        surely = gap > 1e-12 * np.sqrt(posterior.kernel.diagonal(z))
        total += np.where(spread == 0.0, surely, ndtr(gap / np.sqrt(np.maximum(spread, TINY))))
    return float((total if works is None else works * total).max()) / len(mixture)


def spread_of_difference(posterior: Posterior, z: Array, row: Array) -> Array:
    """Return Var[f(z_i) - f(row)] at z (m, d), and 0 if it is no more than rounding (1e-12 of k). (m,), O(n^2 m)."""
    spread = np.empty(len(z))
    (var_row,) = posterior(row[None])[1]
    for part in chunks(len(z), posterior.n):
        var = posterior(z[part])[1] + var_row - 2.0 * posterior.covariance(z[part], row[None])[:, 0]
        spread[part] = np.where(var <= 1e-12 * posterior.kernel.diagonal(z[part]), 0.0, var)
    return spread


# Maxima of functions drawn from a posterior


def _counted(values: Array, z: Array, region: Region | None) -> Array:
    """Return the drawn values (m, size) at z (m, d), -inf where z does not work in a draw. The first always counts."""
    if region is None:
        return values
    works = region.everywhere(z)
    works[0] = True
    return np.where(works, values, -np.inf)


def _maxima(paths: Paths, space: Parameters, points: Array, starts: int, region: Region | None) -> tuple[Array, Array]:
    """Climb each path from points of z and of `points` (m, d) where it is high.

    Return the largest values found, (size,), and where they are, (size, d).

    The points are divided into _CELLS cells by the nearest of as many centres. The best point of each cell is a
    candidate for a start, so that not all starts are on one peak. After a few rounds only the best climbs continue.
    """
    z = np.concatenate([paths.z, points])
    values = np.concatenate([paths.values, paths.everywhere(points)]) if len(points) else paths.values  # (K + m, size)
    values = _counted(values, z, region)

    def along(z: Array, which: NDArray[np.intp]) -> Array:
        on_path = paths(z, which)[0]
        return on_path if region is None else np.where(region(z, which), on_path, -np.inf)

    first = _starts(values, (z - space.lo) / space.span, starts)  # (starts, size)
    count, size = first.shape
    which = np.tile(np.arange(size), count)
    at, value = _climb(paths, space, z[first.ravel()], which, _ROUNDS_ALL, region)
    top = np.argsort(-value.reshape(count, size), axis=0, kind="stable")[:_ROUNDS_BEST_OF]
    kept = (top * size + np.arange(size)).ravel()
    at, value = _climb(paths, space, at[kept], which[kept], _ROUNDS, region)
    ends, heights = [at.reshape(-1, size, space.dim)], [value.reshape(-1, size)]
    if space.discrete_settings > 1:
        last = value.reshape(-1, size).argmax(axis=0) * size + np.arange(size)
        moved, _ = best_levels(along, space, at[last], value[last], _spread_levels)
        at, value = _climb(paths, space, moved, np.arange(size), _ROUNDS, region)
        ends, heights = [*ends, at[None]], [*heights, value[None]]
    best, where = _largest(values, z)
    reached, every = np.concatenate(heights), np.arange(size)
    top = reached.argmax(axis=0)
    higher = reached[top, every] > best
    where = np.where(higher[:, None], np.concatenate(ends)[top, every], where)
    return np.where(higher, reached[top, every], best), where


def _starts(values: Array, unit: Array, starts: int) -> NDArray[np.intp]:
    """Return for each path, in columns of values (K, size), numbers of points in different cells: (starts, size).

    `unit` (K, d) are the points in the unit cube. The best point of the best cell comes first.
    """
    centres = unit[np.linspace(0, len(unit) - 1, min(len(unit), _CELLS)).round().astype(int)]
    cell = ((centres**2).sum(axis=1) - 2.0 * (unit @ centres.T)).argmin(axis=1)  # the nearest centre
    order = np.argsort(cell, kind="stable")
    begins = np.flatnonzero(np.diff(cell[order], prepend=-1))
    best = np.maximum.reduceat(values[order], begins, axis=0)  # (cells, size)
    top = np.argsort(-best, axis=0, kind="stable")[:starts]
    inside = [order[a:b] for a, b in zip(begins, [*begins[1:], len(order)], strict=True)]
    candidates = np.stack([rows[values[rows].argmax(axis=0)] for rows in inside])  # (cells, size)
    picked: NDArray[np.intp] = np.take_along_axis(candidates, top, axis=0)
    return picked


def _climb(
    paths: Paths, space: Parameters, z: Array, which: NDArray[np.intp], rounds: int, region: Region | None
) -> tuple[Array, Array]:
    """Climb towards local maxima over the continuous coordinates: path which[i] from z_i, all of them in lockstep.

    The steps are projected gradient steps in units of the kernel's reach. Their length comes from the last two
    gradients (Barzilai and Borwein 1988). A step that does not improve is rejected, and the next one is a quarter as
    long. This is not the climb of `gpmi.search`, which would need d + 1 points for each of the hundreds of paths;
    `search/climb.py` compares the two.
    """
    metric = np.where(space.continuous, np.minimum(paths.posterior.kernel.reach(space.dim), space.span) ** 2, 0.0)
    value, gradient = paths(z, which)
    if region is not None:
        value = np.where(region(z, which), value, -np.inf)
    length = 0.1 / np.maximum(np.sqrt((metric * gradient**2).sum(axis=1)), TINY)  # the first step: a tenth of reach
    for _ in range(rounds):
        with np.errstate(over="ignore", invalid="ignore"):  # a step that overflows ends at the bounds
            new = space.last_inside(z, z + (length[:, None] * metric) * gradient)
        new_value, new_gradient = paths(new, which)
        better = new_value > value
        if region is not None and better.any():
            better[better] = region(new[better], which[better])
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
    """Return at most _LEVELS of the levels, spread evenly, the first and the last included."""
    count = len(levels)
    picked: Array = levels[np.unique(np.linspace(0, count - 1, min(count, _LEVELS)).round().astype(int))]
    return picked
