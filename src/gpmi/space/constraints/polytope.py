"""A polytope in the unit cube: whether it is empty, its centre, steps that end at its faces, random points.

Linear programs find the centre and the corners, with an error of about 1e-10. All points that are asked are then made
by steps from the centre that stop at the first face, so they are inside up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from gpmi._support.library_output import c_output_discarded
from gpmi._support.types import Array, Mask

# If no point of the polytope is further than this from a face, in widths of the cube, that face is an equality. It is
# ten times the tolerance of the linear programs, so that they can decide it.
THIN = 1e-9
_LP_TOLERANCE = 1e-10  # the smallest that HiGHS accepts
_PARALLEL = 1e-14  # a unit step that approaches a face by less than this runs along it, up to rounding
# Rounds of hit and run. On a simplex of 8 components the largest error of a variance is 21 % after 64 rounds and 8 %
# after 128, of which 6 are the error of 3,072 points.
_SAMPLING_ROUNDS = 128
_ANY_DIRECTION = 0.2  # the share of steps in a random direction, so that none is missed; our choice, not tuned
_CELLS = 24  # into which a chord is divided where the density is not constant; our choice, not tuned

LogDensity: TypeAlias = Callable[[Array], Array]  # points (..., q) -> logarithms of a density (...)


@dataclass(frozen=True, eq=False)
class Polytope:
    """{s in the unit cube of q dimensions: rows s <= bounds, and s - centre in the span of `basis`}."""

    rows: Array  # (r, q), the unit normals of the faces, those of the cube included
    bounds: Array  # (r,)
    centre: Array  # (q,)
    basis: Array  # (q, k), orthonormal: the directions in which the polytope extends

    @staticmethod
    def of(matrix: Array, lower: Array, upper: Array) -> Polytope | None:
        """Return {s in the unit cube: lower <= matrix s <= upper}; None if it is empty. A few linear programs."""
        q = matrix.shape[1]
        lengths = np.sqrt((matrix**2).sum(axis=1))
        empty_rows = lengths == 0.0
        if np.any((lower > THIN) & empty_rows) or np.any((upper < -THIN) & empty_rows):
            return None
        unit, low, high = (a[~empty_rows] for a in (matrix, lower, upper))
        scale = lengths[~empty_rows]
        unit, low, high = unit / scale[:, None], low / scale, high / scale
        fixed = low == high
        above, below = np.isfinite(high) & ~fixed, np.isfinite(low) & ~fixed
        rows = np.concatenate([unit[above], -unit[below], np.eye(q), -np.eye(q)])
        bounds = np.concatenate([high[above], -low[below], np.ones(q), np.zeros(q)])
        equal, at = unit[fixed], high[fixed]
        if q == 0:
            return Polytope(rows, bounds, np.zeros(0), np.zeros((0, 0)))
        while True:
            deepest = _deepest(rows, bounds, equal, at)
            if deepest is None or deepest.depth < -THIN:
                return None
            if deepest.depth > THIN or not deepest.pressed.any():
                return _around(rows, bounds, equal, at, deepest.point)
            tight = deepest.pressed  # equal at the point found, because faces that press from two sides need not meet
            equal, at = np.concatenate([equal, rows[tight]]), np.concatenate([at, rows[tight] @ deepest.point])
            rows, bounds = rows[~tight], bounds[~tight]

    def embedded(self, on: Mask) -> Polytope:
        """Return the polytope in a larger cube, where its dimensions are those that are on, (q,), and the others 0."""
        places = np.flatnonzero(on)
        rows, centre = np.zeros((len(self.rows), len(on))), np.zeros(len(on))
        basis = np.zeros((len(on), self.basis.shape[1]))
        rows[:, places], centre[places], basis[places] = self.rows, self.centre, self.basis
        return replace(self, rows=rows, centre=centre, basis=basis)

    def last_inside(self, start: Array, end: Array) -> Array:
        """Return the last points inside on the lines from start to end, all (m, q). O(m r q).

        The lines are projected onto the span of `basis`; start must be inside.
        """
        step = (end - start) @ self.basis @ self.basis.T
        length = np.sqrt((step**2).sum(axis=1))[:, None]
        approach = step @ self.rows.T
        room = np.maximum(self.bounds - start @ self.rows.T, 0.0)
        share = np.divide(room, approach, out=np.ones_like(room), where=approach > _PARALLEL * length)
        part = np.minimum(1.0, share.min(axis=1, initial=1.0))
        result: Array = np.clip(start + part[:, None] * step, 0.0, 1.0)
        return result

    def pull_inside(self, points: Array) -> Array:
        """Move points (m, q) of the cube towards the centre until they are inside; those inside stay. O(m r q)."""
        return self.last_inside(np.broadcast_to(self.centre, points.shape), points)

    def sample(self, count: int, rng: np.random.Generator, log_density: LogDensity | None = None) -> Array:
        """Draw points (count, q) by hit and run, uniformly or with a density. O(rounds count r q) and 2 k programs.

        The cube needs neither: it is what constraints on discrete parameters alone leave.

        Many chains run at the same time. The direction of a step is the difference of two other chains. These are
        spread like the polytope itself, so a thin one is as easy as a cube.
        """
        k = self.basis.shape[1]
        if k == 0:
            return np.repeat(self.centre[None], count, axis=0)
        if log_density is None and self.basis.shape[0] == k and len(self.rows) == 2 * k:  # the cube
            return rng.random((count, k))
        n = 2 * max((count + 1) // 2, 4 * (k + 1))
        corners = self.pull_inside(self._corners())
        x = rng.dirichlet(np.ones(len(corners)), n) @ corners
        x = self.pull_inside(x)
        halves = np.arange(n) < n // 2
        for _ in range(_SAMPLING_ROUNDS):
            for half in (halves, ~halves):
                x[half] = self._hit_and_run(x[half], x[~half], rng, log_density)
        x = self.pull_inside(x)
        return x[rng.permutation(n)[:count]]

    def _corners(self) -> Array:
        """Return the furthest points in both directions of each column of `basis`, (2 k, q)."""
        corners = []
        for direction in np.concatenate([self.basis.T, -self.basis.T]):
            reach = self.basis.T @ direction
            solution = _solve(-reach, self.rows @ self.basis, self.bounds - self.rows @ self.centre, None, None)
            corners.append(self.centre if solution.x is None else self.centre + self.basis @ solution.x)
        return np.array(corners)

    def _hit_and_run(self, x: Array, others: Array, rng: np.random.Generator, log_density: LogDensity | None) -> Array:
        """Make one step of hit and run from each x (n, q)."""
        n = len(x)
        a, b = rng.integers(len(others), size=(2, n))
        way = (others[a] - others[b]) @ self.basis @ self.basis.T  # rounding would lead out, more with each round
        length = np.sqrt((way**2).sum(axis=1))
        anywhere = (rng.random(n) < _ANY_DIRECTION) | (length < 1e-12)
        way[anywhere] = rng.standard_normal((int(anywhere.sum()), self.basis.shape[1])) @ self.basis.T
        way /= np.sqrt((way**2).sum(axis=1))[:, None]
        approach = way @ self.rows.T
        room = np.maximum(self.bounds - x @ self.rows.T, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = room / approach
        most = np.where(approach > _PARALLEL, share, np.inf).min(axis=1)
        least = np.where(approach < -_PARALLEL, share, -np.inf).max(axis=1)
        result: Array = x + _draw_on_chord(x, way, least, most, rng, log_density)[:, None] * way
        return result


def _draw_on_chord(
    x: Array, way: Array, least: Array, most: Array, rng: np.random.Generator, log_density: LogDensity | None
) -> Array:
    """Draw t (n,) on each chord x + t way, least <= t <= most.

    A density is taken as constant in each of _CELLS cells, narrow ones at the ends, where logarithms change most.
    """
    if log_density is None:
        return least + rng.random(len(x)) * (most - least)
    edges = 1.0 / (1.0 + np.exp(-np.linspace(-14.0, 14.0, _CELLS + 1)))  # from 1e-6 to 1 - 1e-6
    edges[[0, -1]] = 0.0, 1.0
    inner, width = edges[:-1] + rng.random((len(x), _CELLS)) * np.diff(edges), np.diff(edges)
    t = least[:, None] + inner * (most - least)[:, None]
    weight = log_density(x[:, None] + t[:, :, None] * way[:, None]) + np.log(width)
    pick = np.argmax(weight + rng.gumbel(size=weight.shape), axis=1)  # with probability proportional to exp(weight)
    picked: Array = t[np.arange(len(x)), pick]
    return picked


@dataclass(frozen=True, eq=False)
class _Deepest:
    """The point furthest from all faces."""

    point: Array  # (q,)
    depth: float  # its distance from the nearest face; negative if there is no point inside
    pressed: Any  # (r,), the faces that stop it from being further away


def _deepest(rows: Array, bounds: Array, equal: Array, at: Array) -> _Deepest | None:
    """Return the Chebyshev centre: the largest r with rows s + r <= bounds and equal s = at."""
    r, q = rows.shape
    cost = np.append(np.zeros(q), -1.0)
    fixed = np.column_stack([equal, np.zeros(len(equal))]) if len(equal) else None
    solution = _solve(cost, np.column_stack([rows, np.ones(r)]), bounds, fixed, at if len(equal) else None)
    if solution.x is None:
        return None
    return _Deepest(solution.x[:q], float(solution.x[q]), -solution.ineqlin.marginals > 1e-9)


def _solve(cost: Array, rows: Array, bounds: Array, equal: Array | None, at: Array | None) -> Any:
    """Minimise cost x subject to rows x <= bounds and equal x = at. `x` of the answer is None if infeasible."""
    from scipy.optimize import linprog  # slow to import

    options = {"primal_feasibility_tolerance": _LP_TOLERANCE, "dual_feasibility_tolerance": _LP_TOLERANCE}
    # Solutions lie within the cube, so these wider limits change nothing. Without faces they keep the program bounded.
    limits = (-2.0 * len(cost), 2.0 * len(cost))
    with c_output_discarded():
        return linprog(cost, rows, bounds, equal, at, bounds=limits, method="highs", options=options)


def _around(rows: Array, bounds: Array, equal: Array, at: Array, point: Array) -> Polytope | None:
    """Return the polytope with these faces around a point, after moving the point onto the equalities."""
    q = len(point)
    basis = np.eye(q)
    if len(equal):
        u, s, vt = np.linalg.svd(equal)
        rank = int((s > 1e-10 * s.max(initial=0.0)).sum())
        point = point - vt[:rank].T @ ((u[:, :rank].T @ (equal @ point - at)) / s[:rank])
        if np.max(np.abs(equal @ point - at)) > 2.0 * THIN:
            return None
        basis = vt[rank:].T
    return Polytope(rows, bounds, point, basis)
