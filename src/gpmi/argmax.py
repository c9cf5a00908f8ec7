"""The best point of a space under a policy: exact on finite sets, screen and polish elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpmi.linalg import Array, Mask
from gpmi.policies import Mean, Policy, State
from gpmi.posterior import Draw, Event, Posterior, Rows
from gpmi.space import Parameters, Space
from gpmi.tracking import Tracked, chunks, first_best, lazy_argmax, mean_in_chunks, moments_in_chunks

SCREEN = 512  # low-discrepancy points of the screen
STARTS = 6  # points polished in lockstep: little dearer than one
JOINT = 2048  # points at which a joint draw is made: O(JOINT^3)
_NEIGHBOURS = 64  # points of the screen close to the best known ones
_ROUNDS = 60  # evaluations of all starts together
_GIVE_UP = 1e-6  # a step shorter than this, in widths of the box, is no step
_TOLERANCE = 1e-6  # a gain smaller than this, in ranges of the screen's scores, is no gain
_LENGTHS = np.array([[1.0], [0.3], [0.09]])  # the steps tried at once, in units of the one BFGS proposes
_SHORTER = 0.027  # the next steps where none of them was good
_SAME_PEAK = 0.02  # starts closer than this, in widths of the box, climb the same peak
_TINY = 1e-300
_NO_STATE = State(1, 0.0, 0.0, 0.0, 0.0, 1, 0, None)  # for policies that do not look at it

Gradient: TypeAlias = Callable[[Rows], Array]  # the gradients at the rows asked for


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
    """A policy's score as a function of the point; sign is -1 where the user minimises.

    Where there are `members`, models of the same observations under other priors, it is the mean of their scores.
    """

    posterior: Posterior
    policy: Policy
    state: State
    sign: float
    members: tuple[Objective, ...] = ()

    def index(self, mu: Array, var: Array) -> Array:
        """The score where the posterior has mean mu and variance var."""
        score = self.policy.score(self.sign * mu, var, self.state)
        bad = np.flatnonzero(np.isnan(score))
        if len(bad):
            raise ValueError(
                f"{self.policy!r} gave the score nan where mu is {mu[bad[0]]:g} and var is {var[bad[0]]:g}; "
                "phi must be a number for every var >= 0, 0 included"
            )
        return score

    def __call__(self, z: Array) -> Array:
        """The score at z (m, d). O(n^2 m) for each member."""
        if self.members:
            return _mean([member(z) for member in self.members])
        return self.index(*self.posterior(z))

    def at(self, tracked: Tracked) -> Array:
        """The score at the points whose moments are kept up to date."""
        return self(tracked.z) if self.members else self.index(tracked.mu, tracked.var)

    def with_gradient(self, z: Array) -> tuple[Array, Gradient]:
        """The score at z (m, d) and its gradients by z, (k, d), at those rows of z that are asked for.

        This is the one chain rule that serves every kernel and policy.
        """
        if self.members:
            scores, gradients = zip(*(member.with_gradient(z) for member in self.members), strict=True)
            return _mean(scores), lambda rows: _mean([gradient(rows) for gradient in gradients])
        mu, var, pull = self.posterior.with_pullback(z)
        score, by_mu, by_var = self.policy.with_derivatives(self.sign * mu, var, self.state)
        return score, lambda rows: pull(rows, self.sign * by_mu[rows], by_var[rows])

    def found(self, row: Array, number: int | None = None, events: tuple[Event, ...] = ()) -> Found:
        mu, var = self.posterior(row[None])
        if self.members:  # the moments of the mixture
            moments = [member.posterior(row[None]) for member in self.members]
            mu = _mean([m for m, _ in moments])
            var = _mean([v + (m - mu) ** 2 for m, v in moments])
        if self.policy.joint:
            score = float("nan")
        else:
            score = float((self(row[None]) if self.members else self.index(mu, var))[0])
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
        return _drawn_row(_any_member(objective, rng), rows, excluded, rng), None
    if objective.members:
        score = np.concatenate([objective(rows[part]) for part in chunks(len(rows), posterior.n)])
        number = first_best(score, excluded)
        return objective.found(rows[number], number), None
    if tracked is None and policy.grows_with_var:
        number, bound = lazy_argmax(posterior, rows, objective.index, bound, excluded)
        return objective.found(rows[number], number), bound
    mu, var = (tracked.mu, tracked.var) if tracked is not None else moments_in_chunks(posterior, rows)
    score = objective.index(mu, var)
    number = first_best(score, excluded)
    return Found(rows[number], float(mu[number]), float(var[number]), float(score[number]), number), None


def best_mean(
    posterior: Posterior,
    members: Sequence[
        Posterior
    ],  # the same observations under other priors, whose means are averaged where there are any
    space: Space,
    sign: float,
    screen: Tracked | None,  # of the posterior, where the points cannot be enumerated
    rng: np.random.Generator,
) -> Array:
    """The point (d,) with the largest sign * posterior mean, told or not; of equals the first on a finite set."""
    if space.rows is not None:
        mean = _mean([mean_in_chunks(member, space.rows) for member in members or (posterior,)])
        row: Array = space.rows[first_best(sign * mean)]
        return row
    assert isinstance(space, Parameters) and screen is not None
    objective = Objective(posterior, Mean(), _NO_STATE, sign)
    objective = replace(objective, members=tuple(replace(objective, posterior=member) for member in members))
    return best_point(objective, space, screen, best_observed(posterior, sign), rng).row


def screen_of(space: Space, seed: int) -> Array:
    """SCREEN points spread over a space that cannot be enumerated, the same for the same seed."""
    assert isinstance(space, Parameters)
    return space.from_unit(sobol(space.unit_dim, SCREEN.bit_length() - 1, (seed, 1)))


def best_observed(posterior: Posterior, sign: float, count: int = 3) -> Array:
    """The observed points with the largest sign * posterior mean, best first, (count, d)."""
    if posterior.n == 0:
        return np.empty((0, posterior.x.shape[1]))
    return posterior.x[np.argsort(-sign * posterior.mu_at_observed, kind="stable")[:count]]


def _mean(values: Sequence[Array]) -> Array:
    """The mean of a few arrays of the same shape."""
    return np.asarray(np.mean(values, axis=0))


def _any_member(objective: Objective, rng: np.random.Generator) -> Objective:
    """The objective of one member: a joint draw of f is a draw of its prior first."""
    return objective.members[int(rng.integers(len(objective.members)))] if objective.members else objective


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
    visited: Array | None = None,  # (k, d): points that may not be chosen
) -> Found:
    """The best point found by a screen, then by polishing the best of it in lockstep with gradients.

    Integers and choices are moved along exactly: for the polished reals every level of one parameter after the other
    is scored, and the reals are polished again, until nothing improves.
    """
    if objective.policy.joint:
        return _drawn_point(_any_member(objective, rng), space, screen.z, known, rng, visited)
    z = np.concatenate([screen.z, _neighbours(space, known, rng), known])
    score = np.concatenate([objective.at(screen), objective(z[len(screen.z) :])])
    starts = z[_apart(space, z, score)]
    finite = score[np.isfinite(score)]
    tolerance = _TOLERANCE * float(np.ptp(finite)) if len(finite) else 0.0
    points, scores = _polish(objective, space, starts, tolerance)
    discrete = [j for j, p in enumerate(space.parameters) if p.levels is not None]
    for _ in range(10 if discrete else 0):
        moved, improved = _best_levels(objective, space, discrete, points, scores)
        better = improved > scores + tolerance
        if not better.any():
            break
        points[better], scores[better] = _polish(objective, space, moved[better], tolerance)
    return _best_of(objective, np.concatenate([points, z]), np.concatenate([scores, score]), visited)


def _best_of(objective: Objective, points: Array, scores: Array, visited: Array | None) -> Found:
    """The best of the points that were looked at, without those visited unless there are no others."""
    if visited is None or len(visited) == 0:
        return objective.found(points[first_best(scores)])
    seen = (points[:, None] == visited).all(axis=2).any(axis=1)
    if seen.all():
        event = Event("repeat", f"all {len(points)} points that were looked at had been asked before")
        return objective.found(points[first_best(scores)], events=(event,))
    return objective.found(points[first_best(scores, seen)])


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
    near = np.clip(centre + step[:, space.groups] * space.span, space.lo, space.hi)
    if space.combinations > 1:
        fresh = space.from_unit(rng.random((_NEIGHBOURS, d)))
        swaps = moves & (rng.random((_NEIGHBOURS, d)) < 0.3)
        for j, (p, column) in enumerate(zip(space.parameters, space.columns, strict=True)):
            if p.levels is not None:
                near[:, column] = np.where(swaps[:, j : j + 1], fresh[:, column], centre[:, column])
    return near


def _apart(space: Parameters, z: Array, score: Array) -> Array:
    """The numbers of up to STARTS points, best first, no two of them within a twentieth of the box's diagonal."""
    order = np.argsort(-score, kind="stable")[: 20 * STARTS]
    unit = (z[order] - space.lo) / space.span
    left = np.ones(len(order), dtype=bool)
    chosen: list[int] = []
    while len(chosen) < STARTS and left.any():
        first = int(np.argmax(left))
        chosen.append(int(order[first]))
        left &= ((unit - unit[first]) ** 2).sum(axis=1) > 0.05**2 * z.shape[1]
    return np.array(chosen)


def _polish(objective: Objective, space: Parameters, starts: Array, tolerance: float) -> tuple[Array, Array]:
    """Climb from every start over the continuous coordinates, the others held."""
    is_free = np.concatenate([np.full(p.width, p.levels is None) for p in space.parameters])
    if not is_free.any():
        return starts.copy(), objective(starts)
    free = slice(None) if is_free.all() else is_free  # a view is cheaper than a copy
    lo, width = space.lo[free], space.span[free]
    reach = objective.posterior.kernel.reach(space.dim)[free] / width

    def unit_objective(u: Array, which: NDArray[np.intp]) -> tuple[Array, Gradient]:
        z = starts[which]
        z[:, free] = lo + u * width
        value, gradient = objective.with_gradient(z)
        return value, lambda rows: gradient(rows)[:, free] * width

    u, value = climb(unit_objective, (starts[:, free] - lo) / width, np.minimum(reach, 1.0) ** 2, tolerance)
    points = starts.copy()
    points[:, free] = np.clip(lo + u * width, lo, space.hi[free])
    return points, value


def climb(
    f: Callable[[Array, NDArray[np.intp]], tuple[Array, Gradient]],
    u: Array,  # (s, d) in the unit cube
    metric: Array,  # (d,), the guess at the relative curvature: the squared distances over which f changes
    tolerance: float = 0.0,  # gains below it are not worth a step
) -> tuple[Array, Array]:
    """Local maxima of f in the unit cube, from all starts in lockstep: projected BFGS with a backtracking line search.

    f maps points (k, d) and the numbers (k,) of the starts they belong to to values (k,), and to a function that gives
    the gradients at some of them. Each round evaluates f once, for every start still moving at steps of several
    lengths, because more points cost little more than one: the best acceptable one is taken. Coordinates held at a
    bound by their gradient do not move. A start that comes close to the best one is dropped. It ends when the best one
    has come to rest and none of the others would overtake it by a gain like its last.
    """
    u = np.clip(u, 0.0, 1.0)
    at = np.arange(len(u))  # the starts still moving; the arrays below are theirs
    value, gradients = f(u, at)
    gradient = gradients(at)
    best_u, best_value = u.copy(), value.copy()  # where each start has come to
    curvature = np.tile(np.diag(metric), (len(u), 1, 1))  # approximations of -(d^2 f)^-1, up to a factor at first
    direction = _ascent(u, gradient, curvature)
    direction *= 0.1 / (np.abs(direction).max(axis=1, keepdims=True) + _TINY)
    fresh = np.ones(len(u), dtype=bool)  # which starts have not met any curvature yet
    gain = np.full(len(u), np.inf)  # what the last accepted step brought
    for _ in range(_ROUNDS):
        steps = u[:, None] + _LENGTHS * direction[:, None]  # (s, lengths, d)
        np.minimum(np.maximum(steps, 0.0, out=steps), 1.0, out=steps)
        steps -= u[:, None]
        slopes = (steps @ gradient[:, :, None])[:, :, 0]  # about twice what a full step promises, near a maximum
        leader = best_value.argmax()
        leading = at == leader
        moving = (np.abs(u - best_u[leader]).max(axis=1) > _SAME_PEAK) | leading
        moving &= (np.abs(steps[:, 0]).max(axis=1) > _GIVE_UP) & (slopes[:, 0] > tolerance)
        if not moving.all():
            at, u, value, gradient, gain = at[moving], u[moving], value[moving], gradient[moving], gain[moving]
            curvature, direction, fresh = curvature[moving], direction[moving], fresh[moving]
            steps, slopes, leading = steps[moving], slopes[moving], leading[moving]
        if len(at) == 0 or (not leading.any() and (value + gain < best_value[leader] + tolerance).all()):
            break
        shape = steps.shape
        new_value, gradients = f((u[:, None] + steps).reshape(-1, shape[2]), at.repeat(shape[1]))
        new_value = new_value.reshape(shape[:2])
        # Of the lengths that pass Armijo's rule the best; nan never passes.
        passed = np.where(new_value >= value[:, None] + 1e-4 * slopes, new_value, -np.inf)
        chosen = passed.argmax(axis=1) + shape[1] * np.arange(len(at))
        reached = passed.ravel()[chosen]
        accepted = reached > -np.inf
        which = accepted[:, None]
        step = np.where(which, steps.reshape(-1, shape[2])[chosen], 0.0)
        new_gradient = np.where(which, gradients(chosen), gradient)
        curvature, fresh = _bfgs(curvature, step, gradient - new_gradient, fresh)
        gain = np.where(accepted, reached - value, gain)
        u, value, gradient = u + step, np.where(accepted, reached, value), new_gradient
        direction = np.where(which, _ascent(u, gradient, curvature), _SHORTER * direction)
        best_u[at], best_value[at] = u, value
    return best_u, best_value


def _ascent(u: Array, gradient: Array, curvature: Array) -> Array:
    """Directions of ascent, (s, d), that do not press against the bounds, at most half the cube long."""
    held = np.where(gradient < 0.0, u <= 0.0, u >= 1.0)
    if held.any():
        gradient = np.where(held, 0.0, gradient)
        direction: Array = np.where(held, 0.0, (curvature @ gradient[:, :, None])[:, :, 0])
    else:
        direction = (curvature @ gradient[:, :, None])[:, :, 0]
    direction /= np.maximum(1.0, 2.0 * np.abs(direction).max(axis=1, keepdims=True))
    return direction


def _bfgs(curvature: Array, step: Array, drop: Array, fresh: Mask) -> tuple[Array, Mask]:
    """The inverses H of the negative Hessians, (s, d, d), after steps that lowered the gradients by `drop`.

    H' = H + s a^T + a s^T with a = (1 + d.H d / p) / (2 p) s - H d / p and p = s.d > 0, the first time after H was
    scaled by p / d.H d. Where the function is not concave along the step H stays, so all remain positive definite;
    while no step has been concave (`fresh`) H is only doubled, so that the steps grow. A step of 0 changes nothing.
    """
    p = (step * drop).sum(axis=1)
    lengths = (step * step).sum(axis=1)
    concave = p > 1e-10 * np.sqrt((drop * drop).sum(axis=1) * lengths)
    hd = (curvature @ drop[:, :, None])[:, :, 0]
    dhd = (drop * hd).sum(axis=1)
    if fresh.any():
        longer = np.where(lengths > 0.0, 2.0, 1.0)
        scale = np.where(fresh, np.where(concave, p / np.maximum(dhd, _TINY), longer), 1.0)
        curvature, hd, dhd = scale[:, None, None] * curvature, scale[:, None] * hd, scale * dhd
        fresh = fresh & ~concave
    over_p = np.divide(1.0, p, out=np.zeros_like(p), where=concave)
    a = (0.5 * over_p * (1.0 + dhd * over_p))[:, None] * step - over_p[:, None] * hd
    half = step[:, :, None] * a[:, None, :]
    return curvature + half + half.transpose(0, 2, 1), fresh


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
    at = int(np.searchsorted(levels[:, 0], here[0]))
    jumps = 2 ** np.arange(int(np.log2(k)) + 1)
    picks = np.concatenate([np.linspace(0, k - 1, 256).astype(int), [at], at + jumps, at - jumps])
    result: Array = levels[np.unique(np.clip(picks, 0, k - 1))]
    return result


def _drawn_point(
    objective: Objective,
    space: Parameters,
    screen: Array,
    known: Array,
    rng: np.random.Generator,
    visited: Array | None,
) -> Found:
    """The argmax of one draw of f, evaluated at the screen and then ever closer around its best point."""
    draw = Draw(objective.posterior, rng)
    z = np.concatenate([screen, _neighbours(space, known, rng)])
    value = objective.sign * draw(z)
    for width in (3e-2, 1e-2, 3e-3, 1e-3):
        near = _neighbours(space, z[[first_best(value)]], rng, width)
        z, value = np.concatenate([z, near]), np.append(value, objective.sign * draw(near))
    return _best_of(objective, z, value, visited)


@lru_cache(maxsize=16)
def sobol(p: int, log2: int, seed: tuple[int, ...]) -> Array:
    """2^log2 scrambled Sobol points of the unit cube of p dimensions; fewer of the same seed are the first of them."""
    from scipy.stats.qmc import Sobol  # slow to import: not before it is needed

    return np.asarray(Sobol(p, scramble=True, rng=np.random.default_rng(seed)).random_base2(log2))
