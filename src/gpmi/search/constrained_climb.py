"""The climb of `gpmi.search.climb` where constraints, conditions or circles make the space less than a box.

It runs in the variables s of `space.constraints.feasible_set`, in which linear constraints are linear. A step is
Newton's within the faces that the gradient presses against, and ends at the next face. A point that a function refuses
counts as no gain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from gpmi._support.types import Array, Numbers
from gpmi.gp.linalg import eigen
from gpmi.policies.policy import TINY
from gpmi.search.climb import DIFFERENCE, GIVE_UP, RADIUS, ROUNDS, SAME_PEAK
from gpmi.search.joint import JointObjective
from gpmi.search.objective import Objective
from gpmi.space import Parameters, Polytope

# Points (k, d) and, for each, the number (k,) of the point it was made from -> values (k,)
Values: TypeAlias = Callable[[Array, Numbers], Array]
LevelsToTry: TypeAlias = Callable[[Array, Array], Array]  # levels (k, w) and the present one (w,) -> those to try

LEVELS_TOGETHER = 4096  # points, about, whose values are computed together
TOUCHING = 1e-10  # a point closer to a face than this, in widths of the cube, lies on it: far above rounding


@dataclass
class _Climber:
    """The state of one start."""

    polytope: Polytope
    numbers: Array  # (p,), the level numbers of the start; those of the reals do not count
    s: Array  # (q,)
    value: float
    gradient: Array  # (q,), by s
    hessian: Array  # (q, q), by s
    unit: Array  # (q,), the distances in s over which the score changes
    radius: float = RADIUS
    moving: bool = True


def climb_inside(
    objective: Objective | JointObjective, space: Parameters, starts: Array, tolerance: float
) -> tuple[Array, Array]:
    """Climb over the reals from every start (k, d), inside. Return the points reached and the scores there."""
    feasible, reach = space.feasible_set, objective.reach(space.dim)
    if not len(feasible.reals):
        return starts.copy(), objective(starts)
    numbers = space.layout.level_numbers(starts)
    s, polytopes = feasible.s_of(numbers), [feasible.polytope_around(row) for row in numbers]
    s = np.array([p.pull_inside(row[None])[0] for p, row in zip(polytopes, s, strict=True)])
    expansion = _Expansion(objective, space, numbers, reach)
    values, *others = expansion(s, np.arange(len(s)))
    climbers = [_Climber(*each) for each in zip(polytopes, numbers, s, values.tolist(), *others, strict=True)]
    for _ in range(ROUNDS):
        steps = _steps(climbers, tolerance, space.scale)
        if not steps:
            break
        which = np.array(list(steps))
        ends = np.array([climbers[i].s + steps[i] for i in which])
        values, gradients, hessians, units = expansion(ends, which)
        for k, i in enumerate(which):
            _accept_or_shrink(climbers[i], steps[i], ends[k], (float(values[k]), gradients[k], hessians[k], units[k]))
    points = space.layout.from_levels(feasible.with_s(numbers, np.array([c.s for c in climbers])))
    points = space.last_inside(starts, points)
    return points, objective(points)


def _steps(climbers: list[_Climber], tolerance: float, scale: Array) -> dict[int, Array]:
    """Return the next step of each climber that still moves. Those that cannot overtake the best or come close stop.

    Lengths are in units of `scale` (q,).
    """
    leader = max(range(len(climbers)), key=lambda i: climbers[i].value)
    best, steps = climbers[leader], {}
    for i, climber in enumerate(climbers):
        if not climber.moving:
            continue
        step = _step(climber)
        promise = float(step @ climber.gradient)
        apart = float(np.abs((climber.s - best.s) / scale).max())
        rival = climber.value + promise > best.value and (
            apart > SAME_PEAK or not np.array_equal(climber.numbers, best.numbers)
        )
        climber.moving = promise > tolerance and np.abs(step / scale).max() > GIVE_UP and (rival or i == leader)
        if climber.moving:
            steps[i] = step
    return steps


def _accept_or_shrink(climber: _Climber, step: Array, end: Array, there: tuple[float, Array, Array, Array]) -> None:
    """Take the step if it gained; otherwise shrink the trust region."""
    value, gradient, hessian, unit = there
    if value >= climber.value + 1e-4 * float(step @ climber.gradient):  # Armijo's condition; never true for nan
        climber.s, climber.value, climber.gradient, climber.hessian, climber.unit = end, value, gradient, hessian, unit
        climber.radius *= 2.0
    else:
        climber.radius = 0.25 * min(climber.radius, float(np.abs(step / climber.unit).max()))


@dataclass(frozen=True)
class _Expansion:
    """The expansion of the score around points, by s."""

    objective: Objective | JointObjective
    space: Parameters
    numbers: Array  # (k, p), of the starts
    reach: Array  # (d,)

    def __call__(self, s: Array, which: Numbers) -> tuple[Array, Array, Array, Array]:
        """Return values (m,), gradients (m, q), Hessians (m, q, q) and units (m, q) at s (m, q).

        The points belong to the starts `which` (m,). The Hessians are differences of gradients. The value is -inf where
        a function refuses the point.
        """
        space, (m, q) = self.space, s.shape
        z = space.layout.from_levels(space.feasible_set.with_s(self.numbers[which], s))
        slopes = space.feasible_set.slopes(z)
        speed = np.stack([np.sqrt((slopes[:, c] ** 2).sum(axis=1)) for c in self._columns], axis=1)  # of z by s
        width = np.array([space.span[c].max() for c in self._columns])
        reach = np.array([self.reach[c].max() for c in self._columns])
        with np.errstate(divide="ignore"):
            unit = np.where(speed > 0.0, np.minimum(reach / speed, 1.0), 1.0)
            difference = np.minimum(np.where(speed > 0.0, width / speed, 1.0), 1.0) * DIFFERENCE
        difference = np.where(s < 0.5, difference, -difference)
        points = s[:, None] + difference[:, None] * np.eye(q + 1, q, -1)
        starts = self.numbers[which.repeat(q + 1)]
        near = space.layout.from_levels(space.feasible_set.with_s(starts, points.reshape(-1, q)))
        value, by_z = self.objective.with_gradient(near)
        by_z = np.where(np.isfinite(by_z), by_z, 0.0) * space.feasible_set.slopes(near)
        gradient = np.stack([by_z[:, c].sum(axis=1) for c in self._columns], axis=1).reshape(m, q + 1, q)
        hessian = (gradient[:, 1:] - gradient[:, :1]) / difference[:, :, None]
        values = value[:: q + 1]
        if space.constraints.functions:
            values = np.where(space.feasible_set.contains(z), values, -np.inf)
        return values, gradient[:, 0], 0.5 * (hessian + hessian.transpose(0, 2, 1)), unit

    @property
    def _columns(self) -> list[slice]:
        return [self.space.columns[j] for j in self.space.feasible_set.reals]


def _step(climber: _Climber) -> Array:
    """Return the step (q,) towards the maximum of the quadratic expansion in the trust region, up to the next face.

    The gradient presses against some of the faces that the point lies on: those with a positive share in the part of
    the gradient that leads outwards. The step runs within these faces, by Newton's method as in `gpmi.search.climb`. If
    it would leave through another face that the point lies on, it follows the projected gradient instead.
    """
    polytope, unit = climber.polytope, climber.unit
    room = np.maximum(polytope.bounds - polytope.rows @ climber.s, 0.0)
    touching = room <= TOUCHING
    slope = unit * climber.gradient
    free = _orthonormal(polytope.basis / unit[:, None])  # directions in which the polytope extends, in units of reach
    faces = polytope.rows[touching] * unit @ free
    projected, pressed = _projected(free.T @ slope, faces)
    inner = _null_space(faces[pressed], free.shape[1])
    curved = free.T @ (climber.hessian * unit[:, None] * unit) @ free
    way = inner @ _newton(inner.T @ projected, inner.T @ curved @ inner, climber.radius)
    if np.any(faces @ way > 1e-12 * np.abs(way).max(initial=0.0)):
        power = 2.0 ** max(math.frexp(float(np.abs(projected).max()))[1] - 1, 0)  # squares could overflow
        part = projected / power
        along = float(part @ part) ** 0.5
        bend = abs(float(part @ curved @ part)) / max(along**2, TINY)
        way = projected / max(bend, power * along / climber.radius, TINY)
    step = unit * (free @ way)
    approach = polytope.rows @ step
    leaves = (approach > 1e-14 * np.abs(step).max(initial=0.0)) & ~touching
    share = np.min(room[leaves] / approach[leaves], initial=1.0)
    result: Array = step * share
    return result


def _newton(slope: Array, hessian: Array, radius: float) -> Array:
    """Return the step of length slope / |curvature| along each eigenvector, at most the radius."""
    if not len(slope):
        return slope
    curvature, vectors = eigen(hessian[None])
    along = slope @ vectors[0]
    result: Array = vectors[0] @ (along / np.maximum(np.abs(curvature[0]), np.abs(along) / radius + TINY))
    return result


def _projected(slope: Array, faces: Array) -> tuple[Array, Numbers]:
    """Return the slope (k,) projected onto the directions that leave no face (f, k), and the faces it presses against.

    min |slope - faces^T pressure| over pressures >= 0: the remainder is the nearest direction that leaves no face.
    """
    if not len(faces) or not len(slope):
        return slope, np.empty(0, dtype=np.intp)
    from scipy.optimize import nnls  # slow to import

    pressure, _ = nnls(faces.T, slope)
    return slope - faces.T @ pressure, np.flatnonzero(pressure > 0.0)


def _orthonormal(vectors: Array) -> Array:
    """Return an orthonormal basis (q, k) of the span of k independent vectors (q, k)."""
    return np.linalg.qr(vectors)[0] if vectors.shape[1] else vectors


def _null_space(rows: Array, k: int) -> Array:
    """Return an orthonormal basis (k, .) of the orthogonal complement of the rows (f, k)."""
    if not len(rows) or k == 0:
        return np.eye(k)
    _, s, vt = np.linalg.svd(rows)
    rank = int((s > 1e-10 * s[0]).sum()) if len(s) else 0
    result: Array = vt[rank:].T
    return result


def best_levels_inside(
    f: Values, space: Parameters, points: Array, values: Array, choose: LevelsToTry
) -> tuple[Array, Array]:
    """Do as `multistart.best_levels` where a level may be infeasible, or change which parameters are active."""
    points, values = points.copy(), values.copy()
    for j, (encoding, columns) in enumerate(zip(space.encodings, space.columns, strict=True)):
        if encoding.count is None or encoding.width == 0:
            continue
        active = np.flatnonzero(space.layout.active(space.layout.level_numbers(points))[:, j])
        levels = {int(i): choose(encoding.levels_to_try(points[i, columns]), points[i, columns]) for i in active}
        for portion in _portions(levels):
            which = np.concatenate([np.full(len(levels[i]), i) for i in portion])
            trial = points[which]
            trial[:, columns] = np.concatenate([levels[i] for i in portion])
            trial, good = space.feasible_set.repair(points[which], trial)
            trial, which = trial[good], which[good]
            trial_values = f(trial, which)
            for k in np.argsort(trial_values, kind="stable"):  # the best of a point is taken last
                if trial_values[k] > values[which[k]]:
                    points[which[k]], values[which[k]] = trial[k], trial_values[k]
    return points, values


def best_supports(f: Values, space: Parameters, points: Array, values: Array) -> tuple[Array, Array]:
    """Change the support of each point (s, d) by the best move, if one gains. Return the points reached and f there."""
    points, values = points.copy(), values.copy()
    feasible, layout = space.feasible_set, space.layout
    moves = [layout.from_levels(feasible.supports.moves(row)) for row in layout.level_numbers(points)]
    which = np.repeat(np.arange(len(points)), [len(rows) for rows in moves])
    trial, good = feasible.repair(points[which], np.concatenate(moves))
    trial, which = trial[good], which[good]
    trial_values = f(trial, which)
    for k in np.argsort(trial_values, kind="stable"):  # the best of a point is taken last
        if trial_values[k] > values[which[k]]:
            points[which[k]], values[which[k]] = trial[k], trial_values[k]
    return points, values


def _portions(levels: dict[int, Array]) -> list[list[int]]:
    """Return the points that are tried together: about LEVELS_TOGETHER levels."""
    portions: list[list[int]] = []
    size = LEVELS_TOGETHER
    for i, rows in levels.items():
        if size + len(rows) > LEVELS_TOGETHER:
            portions.append([])
            size = 0
        portions[-1].append(i)
        size += len(rows)
    return portions
