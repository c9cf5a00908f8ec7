"""The front of several objectives, the volume that it dominates, and the boxes of what it does not dominate.

All objectives are maximised: the caller orients. y dominates z if y >= z in every coordinate and y > z in one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpmi._support.types import Array, Mask, Numbers


@dataclass(frozen=True, eq=False)
class Boxes:
    """Disjoint boxes prod_j [lower_j, upper_j). `boxes_above` makes them; every one is unbounded in coordinate 1."""

    lower: Array  # (b, m)
    upper: Array  # (b, m), inf where a box has no end

    def __len__(self) -> int:
        return len(self.lower)


def non_dominated(z: Array) -> Mask:  # (n, m) -> (n,)
    """z_i is on the front iff no z_j >= z_i in all coordinates with z_j > z_i in one.

    Rows that are equal do not dominate each other: all of them are kept, or none. O(n log n) for m <= 2, otherwise
    O(m n^2) time and O(n^2) bytes.
    """
    n, m = z.shape
    if n == 0:
        return np.zeros(0, dtype=bool)
    if m == 1:
        best: Mask = z[:, 0] == z[:, 0].max()
        return best
    if m == 2:
        return _non_dominated_2d(z[:, 0], z[:, 1])
    at_least = np.ones((n, n), dtype=bool)  # z_i >= z_j in every coordinate
    for column in z.T:
        at_least &= column[:, None] >= column
    dominated: Mask = np.any(at_least & ~at_least.T, axis=0)
    return ~dominated


def _non_dominated_2d(first: Array, second: Array) -> Mask:
    """Sort by the first coordinate, then the second, both downwards: only an earlier point can dominate a later one.

    Among points with the same first coordinate those with the largest second one remain, if it is larger than the
    second coordinate of every point before them.
    """
    order = np.lexsort((-second, -first))
    x, y, place = first[order], second[order], np.arange(len(order))
    begins = np.append(True, x[1:] != x[:-1])
    leader = np.maximum.accumulate(np.where(begins, place, 0))  # the first point with the same first coordinate
    highest = np.maximum.accumulate(y)
    front = np.empty(len(order), dtype=bool)
    front[order] = (y == y[leader]) & ((leader == 0) | (y[leader] > highest[leader - 1]))
    return front


def hypervolume(z: Array, reference: Array) -> float:  # (n, m), (m,)
    """The volume of {y : reference <= y <= z_i for some i}. Points not above the reference everywhere add nothing.

    Along coordinate 1 the dominated points end where a box of `boxes_above` begins, so it is the sum over the boxes of
    (lower_1 - reference_1) prod_{j > 1} (upper_j - lower_j). Exact: terms are only added. Cost: that of `boxes_above`.
    """
    boxes = boxes_above(z, reference)
    depth = boxes.lower[:, 0] - reference[0]
    under = depth > 0.0  # the others have nothing below them, and some have no end
    return float(depth[under] @ np.prod(boxes.upper[under, 1:] - boxes.lower[under, 1:], axis=1))


def boxes_above(front: Array, reference: Array) -> Boxes:  # (n, m), (m,)
    """Partition {y >= reference : no z_i >= y} into boxes that are unbounded in coordinate 1.

    There are 1 box for m = 1 and n + 1 for m = 2, n being the number of distinct points on the front. For m >= 3 there
    is a box for every local bound (`_local_bounds`), O(n^floor(m / 2)): at most 2 n + 1 for m = 3. Points that are
    dominated, equal, or not above the reference in every coordinate change nothing.
    """
    front = front[np.all(front > reference, axis=1)]
    front = np.unique(front[non_dominated(front)], axis=0)
    n, m = front.shape
    if m == 1:
        lower = front if n else reference[None]
        return Boxes(lower, np.full((1, 1), np.inf))
    if m == 2:  # the staircase: from step to step, coordinate 1 falls and coordinate 2 rises
        steps = front[::-1]
        lower = np.column_stack([np.append(steps[:, 0], reference[0]), np.append(reference[1], steps[:, 1])])
        return Boxes(lower, np.column_stack([np.full(n + 1, np.inf), np.append(steps[:, 1], np.inf)]))
    # Ranks instead of values break ties: whatever the order of equal values, a box that is wrong is empty.
    front = front[np.argsort(-front[:, -1], kind="stable")]
    order = np.argsort(front, axis=0, kind="stable")
    order[:, -1] = np.arange(n)[::-1]
    rank = np.empty((n, m), dtype=np.intp)
    np.put_along_axis(rank, order, np.arange(1, n + 1)[:, None], axis=0)
    values = np.vstack([reference, np.take_along_axis(front, order, axis=0), np.full(m, np.inf)])
    begin, end = _local_bounds(rank)
    lower, upper = np.take_along_axis(values, begin.T, axis=0), np.take_along_axis(values, end.T, axis=0)
    solid = np.all(lower < upper, axis=1)
    return Boxes(lower[solid], upper[solid])


def _local_bounds(rank: Numbers) -> tuple[Numbers, Numbers]:
    """Return the lower and upper corners, (m, b), of the boxes above n points whose coordinates are ranks 1, ..., n.

    In every coordinate the ranks are all different, 0 is the reference and n + 1 is infinity; the last one falls from
    point to point. Klamroth, Lacour and Vanderpooten 2015: the points that no z dominates lie above one of the local
    bounds u, and u_j is the j-th coordinate of its defining point z^j. At first u = 0, with dummies as defining points.
    A new point p replaces every u < p by the u with u_j := p_j and z^j := p, for each j with p_j < z^k_j for all
    k != j. Lacour, Klamroth and Fonseca 2017: the boxes prod_j [u_j, min_{k < j} z^k_j) are a partition.

    As the last coordinate falls, the bound with u_m := p_m is final: no later point is above it. O(n b m).
    """
    n, m = rank.shape
    infinity = n + 1
    dummies = np.full((m, m), infinity)
    np.fill_diagonal(dummies, 0)
    points = np.vstack([rank, dummies])  # (n + m, m)
    capacity, count = 4 * (n + 1), 1
    bound = np.zeros((m, capacity), dtype=np.intp)  # bound[j] = points[defining[j], j]
    defining = np.empty((m, capacity), dtype=np.intp)  # rows of `points`
    defining[:, 0] = np.arange(n, n + m)
    axes = np.arange(m)
    for number, p in enumerate(rank):
        below = np.flatnonzero(np.logical_and.reduce(bound[:, :count] < p[:, None], axis=0))
        z = points[defining[:, below]]  # (m, len(below), m)
        z[axes, :, axes] = infinity
        parent, j = np.nonzero(p[:-1] < np.minimum.reduce(z, axis=0)[:, :-1])
        new, parent = np.arange(count, count + len(j)), below[parent]
        count += len(j)
        while count > capacity:
            bound, defining = np.hstack([bound, bound]), np.hstack([defining, defining])
            capacity *= 2
        bound[:, new], defining[:, new] = bound[:, parent], defining[:, parent]
        bound[j, new], defining[j, new] = p[j], number
        bound[-1, below], defining[-1, below] = p[-1], number
    upper = np.full((m, count), infinity)
    for i in range(1, m):
        upper[i] = points[defining[:i, :count], i].min(axis=0)
    return bound[:, :count], upper
