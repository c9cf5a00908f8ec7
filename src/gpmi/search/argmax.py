"""The best point of a space under a policy: exact on finite sets, screen and polish elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpmi.gp.linalg import eigen
from gpmi.gp.paths import Draw
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import Tracked, chunks, first_best, lazy_argmax, mean_in_chunks, moments_in_chunks
from gpmi.policies.phi import Mean, Policy, State
from gpmi.space.sobol import sobol
from gpmi.space.space import Parameters, Space
from gpmi.types import Array, Event, Mask

SCREEN = 512  # low-discrepancy points of the screen
STARTS = 6  # points polished in lockstep: little dearer than one
JOINT = 2048  # points at which a joint draw is made: O(JOINT^3)
_NEIGHBOURS = 64  # points of the screen close to the best known ones
_ROUNDS = 60  # evaluations of all starts together
_GIVE_UP = 1e-6  # a step shorter than this, in widths of the box, is no step
_TOLERANCE = 1e-6  # a gain smaller than this, in ranges of the screen's scores, is no gain
_RADIUS = 0.125  # how far the first step may go, in units of reach; with 0.5 a third more points are evaluated
_DIFFERENCE = 1e-5  # between the gradients that make a Hessian, in widths of the box
_SAME_PEAK = 0.02  # starts closer than this, in widths of the box, climb the same peak
_TINY = 1e-300
_NO_STATE = State(1, 0.0, 0.0, 0.0, 0.0, 1, 0, None)  # for policies that do not look at it

# Points (k, d) and the numbers (k,) of the starts they belong to -> values (k,) and gradients (k, d)
Differentiable: TypeAlias = Callable[[Array, NDArray[np.intp]], tuple[Array, Array]]


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

    def with_gradient(self, z: Array) -> tuple[Array, Array]:
        """The score at z (m, d) and its gradient by z, (m, d): one chain rule for every kernel and policy."""
        if self.members:
            scores, gradients = zip(*(member.with_gradient(z) for member in self.members), strict=True)
            return _mean(scores), _mean(gradients)
        mu, var, pull = self.posterior.with_pullback(z)
        score, by_mu, by_var = self.policy.with_derivatives(self.sign * mu, var, self.state)
        return score, pull(self.sign * by_mu, by_var)

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
    members: Sequence[Posterior],  # the same under other priors, whose means are averaged where there are any
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

    def unit_objective(u: Array, which: NDArray[np.intp]) -> tuple[Array, Array]:
        z = starts[which]
        z[:, free] = lo + u * width
        value, gradient = objective.with_gradient(z)
        return value, gradient[:, free] * width

    u, value = climb(unit_objective, (starts[:, free] - lo) / width, np.minimum(reach, 1.0), tolerance)
    points = starts.copy()
    points[:, free] = np.clip(lo + u * width, lo, space.hi[free])
    return points, value


def climb(
    f: Differentiable,
    u: Array,  # (s, d) in the unit cube
    reach: Array,  # (d,), the distances over which f changes
    tolerance: float = 0.0,  # gains below it are not worth a step
) -> tuple[Array, Array]:
    """Local maxima of f in the unit cube, from all starts in lockstep: Newton's method within a region of trust.

    Each round evaluates f once, for every start still moving at the d + 1 points that its expansion takes, because many
    points cost little more than one. A step that does not gain is taken back and tried shorter. A start that comes
    close to the best one, or does not promise to overtake it, is dropped.
    """
    u = np.clip(u, 0.0, 1.0)
    at = np.arange(len(u))  # the starts still moving; the arrays below are theirs
    value, gradient, hessian = _expansion(f, u, at)
    best_u, best_value = u.copy(), value.copy()  # where each start has come to
    radius = np.full(len(u), _RADIUS)
    for _ in range(_ROUNDS):
        step = _newton(u, gradient, hessian, reach, radius)
        promise = (step * gradient).sum(axis=1)  # about twice what the step brings, near a maximum
        leader = best_value.argmax()
        rival = (value + promise > best_value[leader]) & (np.abs(u - best_u[leader]).max(axis=1) > _SAME_PEAK)
        moving = (promise > tolerance) & (np.abs(step).max(axis=1) > _GIVE_UP) & (rival | (at == leader))
        if not moving.all():
            at, u, value, gradient, hessian = at[moving], u[moving], value[moving], gradient[moving], hessian[moving]
            radius, step, promise = radius[moving], step[moving], promise[moving]
        if len(at) == 0:
            break
        new_value, new_gradient, new_hessian = _expansion(f, u + step, at)
        gained = new_value >= value + 1e-4 * promise  # Armijo; never where it is nan
        radius = np.where(gained, 2.0 * radius, 0.25 * np.minimum(radius, np.abs(step / reach).max(axis=1)))
        value = np.where(gained, new_value, value)
        u = np.where(gained[:, None], u + step, u)
        gradient = np.where(gained[:, None], new_gradient, gradient)
        hessian = np.where(gained[:, None, None], new_hessian, hessian)
        best_u[at], best_value[at] = u, value
    return best_u, best_value


def _expansion(f: Differentiable, u: Array, which: NDArray[np.intp]) -> tuple[Array, Array, Array]:
    """The values (s,), gradients (s, d) and Hessians (s, d, d) of f at u, these by differences of gradients."""
    s, d = u.shape
    difference = np.where(u < 0.5, _DIFFERENCE, -_DIFFERENCE)  # inwards
    points = u[:, None] + difference[:, None] * np.eye(d + 1, d, -1)  # (s, d + 1, d): u, then a coordinate moved
    value, gradient = f(points.reshape(-1, d), which.repeat(d + 1))
    # What is not finite, as the slope of sd where it is 0, leads nowhere.
    gradient = np.where(np.isfinite(gradient), gradient, 0.0).reshape(s, d + 1, d)
    hessian = (gradient[:, 1:] - gradient[:, :1]) / difference[:, :, None]
    return value[:: d + 1], gradient[:, 0], 0.5 * (hessian + hessian.transpose(0, 2, 1))


def _newton(u: Array, gradient: Array, hessian: Array, reach: Array, radius: Array) -> Array:
    """Steps (s, d) towards the maxima of the expansions, as far as these are trusted.

    In units of reach and along each eigenvector of the Hessian, a step is slope / |curvature| long, at most the radius:
    uphill where f is not concave, too. Coordinates held at a bound by their gradient do not move.
    """
    unit = np.where(np.where(gradient < 0.0, u <= 0.0, u >= 1.0), 0.0, reach)
    curvature, vectors = eigen(hessian * unit[:, :, None] * unit[:, None])
    slope = ((unit * gradient)[:, None] @ vectors)[:, 0]
    along = slope / np.maximum(np.abs(curvature), np.abs(slope) / radius[:, None] + _TINY)
    end: Array = np.clip(u + unit * (vectors @ along[:, :, None])[:, :, 0], 0.0, 1.0)
    return end - u


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
