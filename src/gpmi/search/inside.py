"""The climb of `gpmi.search.climb` where constraints or conditions make the space less than a box.

It runs in the variables s of `constraints.region`, in which linear constraints are linear. A step is Newton's within
the faces that the gradient presses against, and ends at the next face. What a function refuses counts as no gain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from gpmi._support.types import Array, Numbers
from gpmi.gp.linalg import eigen
from gpmi.search.climb import DIFFERENCE, GIVE_UP, RADIUS, ROUNDS, SAME_PEAK
from gpmi.search.objective import Objective
from gpmi.space import Parameters, Polytope

# Points (k, d) and, for each, the number (k,) of the point it was made from -> values (k,)
Values: TypeAlias = Callable[[Array, Numbers], Array]
Levels: TypeAlias = Callable[[Array, Array], Array]  # all levels (k, w) and the present one (w,) -> those to try

TOGETHER = 4096  # points, about, whose values are computed together
TOUCHING = 1e-10  # a face closer than this, in widths of the cube, is one that a point lies on: far above rounding
_TINY = 1e-300  # keeps a quotient finite where numerator and denominator are 0


@dataclass
class _Climber:
    """One start on its way."""

    polytope: Polytope
    numbers: Array  # (p,), the level numbers of the start, those of the reals apart
    s: Array  # (q,)
    value: float
    gradient: Array  # (q,), by s
    hessian: Array  # (q, q)
    unit: Array  # (q,), the s over which the score changes
    radius: float = RADIUS
    moving: bool = True


def polished_inside(objective: Objective, space: Parameters, starts: Array, tolerance: float) -> tuple[Array, Array]:
    """Climb from every start (k, d), which is inside, over the reals; the points reached and the scores there."""
    region, reach = space.feasible_set, objective.posterior.kernel.reach(space.dim)
    if not len(region.reals):
        return starts.copy(), objective(starts)
    numbers = space.layout.level_numbers(starts)
    s, polytopes = region.s_of(numbers), [region.polytope_around(row) for row in numbers]
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
            _settle(climbers[i], steps[i], ends[k], (float(values[k]), gradients[k], hessians[k], units[k]))
    points = space.layout.from_levels(region.with_s(numbers, np.array([c.s for c in climbers])))
    points = space.last_inside(starts, points)
    return points, objective(points)


def _steps(climbers: list[_Climber], tolerance: float, scale: Array) -> dict[int, Array]:
    """The next step of each climber that still moves; those that come too late or too close to the best one stop.

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


def _settle(climber: _Climber, step: Array, end: Array, there: tuple[float, Array, Array, Array]) -> None:
    """Take the step if it gained; otherwise make the trust region smaller."""
    value, gradient, hessian, unit = there
    if value >= climber.value + 1e-4 * float(step @ climber.gradient):  # Armijo's condition; never true for nan
        climber.s, climber.value, climber.gradient, climber.hessian, climber.unit = end, value, gradient, hessian, unit
        climber.radius *= 2.0
    else:
        climber.radius = 0.25 * min(climber.radius, float(np.abs(step / climber.unit).max()))


@dataclass(frozen=True)
class _Expansion:
    """The score around points, by s."""

    objective: Objective
    space: Parameters
    numbers: Array  # (k, p), of the starts
    reach: Array  # (d,)

    def __call__(self, s: Array, which: Numbers) -> tuple[Array, Array, Array, Array]:
        """Values (m,), gradients (m, q), Hessians (m, q, q) and units (m, q) at s (m, q); the starts are `which` (m,).

        The Hessians are differences of gradients. The value is -inf where a function refuses the point.
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
    """The step (q,) towards the maximum of the quadratic expansion inside the trust region, up to the next face.

    The gradient presses against some of the faces that the point lies on: those with a positive share in the part of
    the gradient that leads outwards. The step runs within them, by Newton's method as in `gpmi.search.climb`; if it
    would leave by another face that the point lies on, it follows the projected gradient instead.
    """
    polytope, unit = climber.polytope, climber.unit
    room = np.maximum(polytope.bounds - polytope.rows @ climber.s, 0.0)
    touching = room <= TOUCHING
    slope = unit * climber.gradient
    free = _orthonormal(polytope.basis / unit[:, None])  # directions with room, in units of reach
    faces = polytope.rows[touching] * unit @ free
    projected, pressed = _projected(free.T @ slope, faces)
    inner = _null_space(faces[pressed], free.shape[1])
    curved = free.T @ (climber.hessian * unit[:, None] * unit) @ free
    way = inner @ _newton(inner.T @ projected, inner.T @ curved @ inner, climber.radius)
    if np.any(faces @ way > 1e-12 * np.abs(way).max(initial=0.0)):
        along = float(projected @ projected) ** 0.5
        bend = abs(float(projected @ curved @ projected)) / max(along**2, _TINY)
        way = projected / max(bend, along / climber.radius, _TINY)
    step = unit * (free @ way)
    approach = polytope.rows @ step
    leaves = (approach > 1e-14 * np.abs(step).max(initial=0.0)) & ~touching
    part = np.min(room[leaves] / approach[leaves], initial=1.0)
    result: Array = step * part
    return result


def _newton(slope: Array, hessian: Array, radius: float) -> Array:
    """The step that is slope / |curvature| along each eigenvector, at most the radius."""
    if not len(slope):
        return slope
    curvature, vectors = eigen(hessian[None])
    along = slope @ vectors[0]
    result: Array = vectors[0] @ (along / np.maximum(np.abs(curvature[0]), np.abs(along) / radius + _TINY))
    return result


def _projected(slope: Array, faces: Array) -> tuple[Array, Numbers]:
    """The slope (k,) without what leads out of the faces (f, k), and the numbers of the faces that it presses against.

    min |slope - faces^T pressure| over pressures >= 0: what remains is the nearest direction that leaves none of them.
    """
    if not len(faces) or not len(slope):
        return slope, np.empty(0, dtype=np.intp)
    from scipy.optimize import nnls  # slow to import: not before it is needed

    pressure, _ = nnls(faces.T, slope)
    return slope - faces.T @ pressure, np.flatnonzero(pressure > 0.0)


def _orthonormal(vectors: Array) -> Array:
    """An orthonormal basis (q, k) of the span of k independent vectors (q, k)."""
    return np.linalg.qr(vectors)[0] if vectors.shape[1] else vectors


def _null_space(rows: Array, k: int) -> Array:
    """An orthonormal basis (k, .) of what is at right angles to the rows (f, k)."""
    if not len(rows) or k == 0:
        return np.eye(k)
    _, s, vt = np.linalg.svd(rows)
    rank = int((s > 1e-10 * s[0]).sum()) if len(s) else 0
    result: Array = vt[rank:].T
    return result


def best_levels_inside(
    f: Values, space: Parameters, points: Array, values: Array, levels: Levels
) -> tuple[Array, Array]:
    """`gpmi.search.box.best_levels` where a level may be outside, or make other parameters active or inactive."""
    points, values = points.copy(), values.copy()
    for j, (part, column) in enumerate(zip(space.encodings, space.columns, strict=True)):
        if part.count is None or part.width == 0:
            continue
        there = np.flatnonzero(space.layout.active(space.layout.level_numbers(points))[:, j])
        options = {int(i): levels(part.levels_to_try(points[i, column]), points[i, column]) for i in there}
        for some in _portions(options):
            which = np.concatenate([np.full(len(options[i]), i) for i in some])
            trial = points[which]
            trial[:, column] = np.concatenate([options[i] for i in some])
            trial, good = space.feasible_set.repair(points[which], trial)
            trial, which = trial[good], which[good]
            trial_values = f(trial, which)
            for k in np.argsort(trial_values, kind="stable"):  # the best of a point is taken last
                if trial_values[k] > values[which[k]]:
                    points[which[k]], values[which[k]] = trial[k], trial_values[k]
    return points, values


def _portions(options: dict[int, Array]) -> list[list[int]]:
    """The points that are tried together: TOGETHER levels, about."""
    portions: list[list[int]] = []
    size = TOGETHER
    for i, some in options.items():
        if size + len(some) > TOGETHER:
            portions.append([])
            size = 0
        portions[-1].append(i)
        size += len(some)
    return portions
