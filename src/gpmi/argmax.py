"""The best point of a space under a policy: exact on finite sets, screen and polish elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpmi.linalg import Array, Mask
from gpmi.policies import Policy, State
from gpmi.posterior import Draw, Event, Posterior
from gpmi.space import Parameters
from gpmi.tracking import Tracked, first_best, lazy_argmax, moments_in_chunks

SCREEN = 1024  # low-discrepancy points of the screen
STARTS = 8  # points polished in lockstep: little dearer than one
JOINT = 2048  # points at which a joint draw is made: O(JOINT^3)
_NEIGHBOURS = 128  # points of the screen close to the best known ones
_ROUNDS = 60  # evaluations of all starts together
_GIVE_UP = 1e-7  # a step shorter than this, in widths of the box, is no step
_TINY = 1e-300


@dataclass(frozen=True)
class Found:
    """The point that was chosen and what the model says of it."""

    row: Array  # (d,)
    mu: float
    var: float
    score: float
    number: int | None = None  # its row on a finite set
    events: tuple[Event, ...] = ()


@dataclass(frozen=True)
class Objective:
    """A policy's score as a function of the point; sign is -1 where the user minimises."""

    posterior: Posterior
    policy: Policy
    state: State
    sign: float

    def index(self, mu: Array, var: Array) -> Array:
        return self.policy.score(self.sign * mu, var, self.state)

    def __call__(self, z: Array) -> Array:
        """The score at z (m, d). O(n^2 m)."""
        return self.index(*self.posterior(z))

    def with_gradient(self, z: Array) -> tuple[Array, Array]:
        """The score at z (m, d) and its gradient by z: the one chain rule that serves every kernel and policy."""
        mu, var, mu_gradient, var_gradient = self.posterior.moments(z)
        by_mu, by_var = self.policy.derivatives(self.sign * mu, var, self.state)
        return self.index(mu, var), (self.sign * by_mu)[:, None] * mu_gradient + by_var[:, None] * var_gradient

    def found(self, row: Array, number: int | None = None, events: tuple[Event, ...] = ()) -> Found:
        mu, var = self.posterior(row[None])
        score = float("nan") if self.policy.joint else float(self.index(mu, var)[0])
        return Found(row, float(mu[0]), float(var[0]), score, number, events)


def best_row(
    objective: Objective,
    rows: Array,  # (m, d)
    excluded: Mask | None,  # (m,)
    tracked: Tracked | None,
    bound: Array | None,
    rng: np.random.Generator,
) -> tuple[Found, Array | None]:
    """The exact argmax on a finite set, a tie going to the lowest row; and variance bounds for the next lazy search.

    `tracked` holds the moments if they are kept up to date. Otherwise variances are lazy if the policy allows it.
    """
    posterior, policy = objective.posterior, objective.policy
    if policy.joint:
        return _drawn_row(objective, rows, excluded, rng), None
    if tracked is None and policy.grows_with_var:
        number, bound = lazy_argmax(posterior, rows, objective.index, bound, excluded)
        return objective.found(rows[number], number), bound
    mu, var = (tracked.mu, tracked.var) if tracked is not None else moments_in_chunks(posterior, rows)
    score = objective.index(mu, var)
    if excluded is not None:
        score = np.where(excluded, -np.inf, score)
    number = first_best(score)
    return Found(rows[number], float(mu[number]), float(var[number]), float(score[number]), number), None


def _drawn_row(objective: Objective, rows: Array, excluded: Mask | None, rng: np.random.Generator) -> Found:
    """The argmax of one joint draw over the rows, or over JOINT random ones where there are more."""
    numbers = np.arange(len(rows)) if excluded is None else np.flatnonzero(~excluded)
    events: tuple[Event, ...] = ()
    if len(numbers) > JOINT:
        total, numbers = len(numbers), np.sort(rng.choice(numbers, JOINT, replace=False))
        events = (Event("reduced search", f"the joint draw was made at {JOINT} random rows of {total}"),)
    draw = objective.posterior.sample(rows[numbers], rng)[0]
    number = int(numbers[first_best(objective.sign * draw)])
    return objective.found(rows[number], number, events)


def best_point(
    objective: Objective,
    space: Parameters,
    screen: Tracked,  # of the posterior, at points of the space
    known: Array,  # (k, d): good points to look around, best first
    rng: np.random.Generator,
    visited: Array | None = None,  # (k, d): points that may not be chosen, on a space without Reals
) -> Found:
    """The best point found by a screen, then by polishing the best of it in lockstep with gradients.

    Integers and choices are moved along exactly: for the polished reals every level of one parameter after the other
    is scored, and the reals are polished again, until nothing improves.
    """
    if objective.policy.joint:
        return _drawn_point(objective, space, screen.z, known, rng)
    z = np.concatenate([screen.z, _neighbours(space, known, rng), known])
    score = np.concatenate([objective.index(screen.mu, screen.var), objective(z[len(screen.z) :])])
    starts = z[_apart(space, z, score)]
    points, scores = _polish(objective, space, starts)
    discrete = [j for j, p in enumerate(space.parameters) if p.levels is not None]
    for _ in range(10 if discrete else 0):
        moved, improved = _best_levels(objective, space, discrete, points, scores)
        better = improved > scores + 1e-9 * np.abs(scores)
        if not better.any():
            break
        points[better], scores[better] = _polish(objective, space, moved[better])
    points, scores = np.concatenate([points, z]), np.concatenate([scores, score])
    if visited is not None and len(visited):
        fresh = ~(points[:, None] == visited).all(axis=2).any(axis=1)
        if fresh.any():
            points, scores = points[fresh], scores[fresh]
    return objective.found(points[first_best(scores)])


def _neighbours(space: Parameters, known: Array, rng: np.random.Generator, width: float | None = None) -> Array:
    """Points around the known ones, often moved in few coordinates only.

    Their distances are about `width` of the box, or anything from a tenth to a thousandth of it.
    """
    if len(known) == 0:
        return np.empty((0, space.dim))
    centre = known[rng.integers(len(known), size=_NEIGHBOURS)]
    d = len(space.parameters)
    widths = 10.0 ** rng.uniform(-3.0, -1.0, (_NEIGHBOURS, 1)) if width is None else np.full((_NEIGHBOURS, 1), width)
    moves = rng.random((_NEIGHBOURS, d)) < np.maximum(rng.random((_NEIGHBOURS, 1)), 2.0 / d)
    step = rng.standard_normal((_NEIGHBOURS, d)) * widths * moves
    fresh = space.from_unit(rng.random((_NEIGHBOURS, d)))
    near = centre.copy()
    for j, (p, column) in enumerate(zip(space.parameters, space.columns, strict=True)):
        if p.levels is None:
            near[:, column] += step[:, j : j + 1] * (space.hi - space.lo)[column]
        else:
            swap = moves[:, j] & (rng.random(_NEIGHBOURS) < 0.3)
            near[swap, column] = fresh[swap, column]
    return np.clip(near, space.lo, space.hi)


def _apart(space: Parameters, z: Array, score: Array) -> Array:
    """The numbers of up to STARTS points, best first, no two of them within a twentieth of the box's diagonal."""
    unit = (z - space.lo) / space.span
    radius2 = 0.05**2 * z.shape[1]
    chosen: list[int] = []
    for i in np.argsort(-score, kind="stable")[: 32 * STARTS]:
        if all(float(((unit[i] - unit[j]) ** 2).sum()) > radius2 for j in chosen):
            chosen.append(int(i))
            if len(chosen) == STARTS:
                break
    return np.array(chosen)


def _polish(objective: Objective, space: Parameters, starts: Array) -> tuple[Array, Array]:
    """Climb from every start over the continuous coordinates, the others held."""
    free = np.concatenate([np.full(p.width, p.levels is None) for p in space.parameters])
    if not free.any():
        return starts.copy(), objective(starts)
    lo, width = space.lo[free], space.span[free]

    def unit_objective(u: Array, which: NDArray[np.intp]) -> tuple[Array, Array]:
        z = starts[which].copy()
        z[:, free] = lo + u * width
        value, gradient = objective.with_gradient(z)
        return value, gradient[:, free] * width

    u, value = climb(unit_objective, (starts[:, free] - lo) / width)
    points = starts.copy()
    points[:, free] = np.clip(lo + u * width, lo, space.hi[free])
    return points, value


def climb(
    f: Callable[[Array, NDArray[np.intp]], tuple[Array, Array]],
    u: Array,  # (s, d) in the unit cube
) -> tuple[Array, Array]:
    """Local maxima of f in the unit cube, from all starts in lockstep: projected BFGS with a backtracking line search.

    f maps points (k, d) and the numbers (k,) of the starts they belong to to values (k,) and gradients (k, d).
    Each round evaluates f once, at one point for every start still moving: a trial step that is accepted starts the
    next one, a rejected one is shortened. Coordinates held at a bound by their gradient are left out of the step.
    """
    s, d = u.shape
    u = np.clip(u, 0.0, 1.0)
    value, gradient = f(u, np.arange(s))
    curvature = np.zeros((s, d, d))  # approximations of -(d^2 f)^-1; 0 stands for "not known yet"
    direction, length = _ascent(u, gradient, curvature), np.ones(s)
    active = np.ones(s, dtype=bool)
    for _ in range(_ROUNDS):
        step = np.clip(u + length[:, None] * direction, 0.0, 1.0) - u
        active &= np.abs(step).max(axis=1) > _GIVE_UP
        at = np.flatnonzero(active)
        if len(at) == 0:
            break
        trial_value, trial_gradient = f(u[at] + step[at], at)
        gain = np.einsum("ij,ij->i", gradient[at], step[at])
        accepted = trial_value >= value[at] + 1e-4 * gain  # Armijo's rule; False for nan
        length[at[~accepted]] *= 0.35
        at, trial_value, trial_gradient = at[accepted], trial_value[accepted], trial_gradient[accepted]
        curvature[at] = _bfgs(curvature[at], step[at], gradient[at] - trial_gradient)
        active[at] = trial_value - value[at] > 1e-10 * np.abs(value[at])
        u[at] += step[at]
        value[at], gradient[at], length[at] = trial_value, trial_gradient, 1.0
        direction[at] = _ascent(u[at], trial_gradient, curvature[at])
    return u, value


def _ascent(u: Array, gradient: Array, curvature: Array) -> Array:
    """Directions of ascent, (s, d), that do not press against the bounds; steepest while the curvature is unknown."""
    held = ((u <= 0.0) & (gradient < 0.0)) | ((u >= 1.0) & (gradient > 0.0))
    g = np.where(held, 0.0, gradient)
    direction = np.where(held, 0.0, np.einsum("ijk,ik->ij", curvature, g))
    uphill = np.einsum("ij,ij->i", direction, g) > 1e-12 * _norm(direction) * _norm(g)
    steepest = g * (0.1 / np.maximum(np.abs(g).max(axis=1, keepdims=True), _TINY))
    direction = np.where(uphill[:, None], direction, steepest)
    result: Array = direction * np.minimum(1.0, 0.5 / np.maximum(np.abs(direction).max(axis=1, keepdims=True), _TINY))
    return result


def _bfgs(curvature: Array, step: Array, drop: Array) -> Array:
    """The inverses of the negative Hessians, (s, d, d), after steps that lowered the gradients by `drop`.

    Where the function is not concave along the step the old approximation stays, so all remain positive definite.
    """
    product = np.einsum("ij,ij->i", step, drop)
    concave = product > 1e-10 * _norm(step) * _norm(drop)
    product = np.where(concave, product, 1.0)[:, None, None]
    unit = np.eye(step.shape[1])
    known = np.einsum("ijj->i", curvature)[:, None, None] > 0.0
    first = unit * (product / np.maximum(np.einsum("ij,ij->i", drop, drop), _TINY)[:, None, None])
    before = np.where(known, curvature, first)
    left = unit - step[:, :, None] * drop[:, None, :] / product
    updated = left @ before @ left.transpose(0, 2, 1) + step[:, :, None] * step[:, None, :] / product
    return np.where(concave[:, None, None], updated, curvature)


def _norm(v: Array) -> Array:
    result: Array = np.sqrt(np.einsum("ij,ij->i", v, v))
    return result


def _best_levels(
    objective: Objective, space: Parameters, discrete: list[int], points: Array, scores: Array
) -> tuple[Array, Array]:
    """Each point with each discrete parameter in turn at its best level, the rest held; and the scores."""
    points, scores = points.copy(), scores.copy()
    for j in discrete:
        levels, column = space.parameters[j].levels, space.columns[j]
        if levels is None:
            continue
        for i in range(len(points)):
            options = levels if len(levels) <= 512 else _some_levels(levels, points[i, column])
            trial = np.repeat(points[i : i + 1], len(options), axis=0)
            trial[:, column] = options
            trial_scores = objective(trial)
            k = first_best(trial_scores)
            if trial_scores[k] > scores[i]:
                points[i], scores[i] = trial[k], trial_scores[k]
    return points, scores


def _some_levels(levels: Array, here: Array) -> Array:
    """Of very many levels of a whole number: 256 spread evenly, and those 1, 2, 4, ... steps from here."""
    k = len(levels)
    at = int(np.argmin(np.abs(levels[:, 0] - here[0])))
    jumps = 2 ** np.arange(int(np.log2(k)) + 1)
    picks = np.concatenate([np.linspace(0, k - 1, 256).astype(int), [at], at + jumps, at - jumps])
    result: Array = levels[np.unique(np.clip(picks, 0, k - 1))]
    return result


def _drawn_point(
    objective: Objective, space: Parameters, screen: Array, known: Array, rng: np.random.Generator
) -> Found:
    """The argmax of one draw of f, evaluated at the screen and then ever closer around its best point."""
    draw = Draw(objective.posterior, rng)
    z = np.concatenate([screen, _neighbours(space, known, rng)])
    value = objective.sign * draw(z)
    for width in (3e-2, 1e-2, 3e-3, 1e-3):
        near = _neighbours(space, z[[first_best(value)]], rng, width)
        z, value = np.concatenate([z, near]), np.append(value, objective.sign * draw(near))
    return objective.found(z[first_best(value)])


@lru_cache(maxsize=16)
def sobol(p: int, log2: int, seed: tuple[int, ...]) -> Array:
    """2^log2 scrambled Sobol points of the unit cube of p dimensions; fewer of the same seed are the first of them."""
    from scipy.stats.qmc import Sobol  # slow to import: not before it is needed

    return np.asarray(Sobol(p, scramble=True, rng=np.random.default_rng(seed)).random_base2(log2))
