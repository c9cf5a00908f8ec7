"""The best point of a space that cannot be enumerated: score a screen of points, then climb from the best of them."""

from __future__ import annotations

import math

import numpy as np

from gpmi._support.sobol import far_apart
from gpmi._support.types import Array, Event, Numbers
from gpmi.gp.tracking import first_best
from gpmi.search.barriers import Barriers, are_among
from gpmi.search.climb import climb
from gpmi.search.constrained_climb import best_supports, climb_inside
from gpmi.search.coordinate_ascent import _some_levels, best_levels
from gpmi.search.joint import JointObjective
from gpmi.search.neighbours import neighbours
from gpmi.search.objective import Objective, SearchResult
from gpmi.space import Parameters

# Our choices, not tuned.
STARTS = 6  # points climbed in lockstep. A round of six costs 2.0, 2.9, 3.4 times one at n = 100, 300, 1,000 (d = 6)
APART = 0.05  # no two starts are closer than this, in diagonals of the box
TOLERANCE = 1e-6  # a gain smaller than this, relative to the range of the screen's scores, counts as none
RANGE = 100.0  # the range of the screen's scores counts as at most this many times that of the starts' scores
GROUPED = 256  # observations above which gradients near a point are made from its own: 0.6 of a climb's cost


def best_point(
    objective: Objective | JointObjective,
    space: Parameters,
    screen: Array,  # (m, d), points of the space
    screened: Array,  # (m,), the scores there
    good: Array,  # (k, d): good points to look around, best first
    rng: np.random.Generator,
    visited: Array | None = None,  # (k, d): points that may not be chosen
    barred: Barriers | None = None,  # boxes in which no point may be chosen
) -> SearchResult:
    """Return the best point found by a multi-start climb from the best points of a screen.

    Integers and choices are searched by coordinate ascent. One parameter after the other is set to its best level with
    the others unchanged, then the reals are climbed again, until nothing improves. Where constraints count parameters,
    so are the supports: which of the parameters are on.
    """
    z = np.concatenate([screen, neighbours(space, good, rng), good])
    score = np.concatenate([screened, objective(z[len(screen) :])])
    held = np.zeros(len(z), dtype=bool) if barred is None else barred.holds(z)
    if barred is not None and barred.unsafe is not None and held.all():
        held = barred.holds(z, core=True)
    allowed = np.where(held, -np.inf, score) if held.any() else score
    order = _best_first(allowed, 20 * STARTS)
    chosen = order[far_apart((z[order] - space.lo) / space.span, np.arange(len(order)), APART, STARTS)]
    starts = z[chosen]
    tolerance = _tolerance(score, score[chosen])
    points, scores = _climb_all(objective, space, starts, tolerance)
    for _ in range(10 if space.discrete_settings > 1 or space.constraints.counts else 0):
        moved, improved = best_levels(lambda z, _: objective(z), space, points, scores, _some_levels)
        if space.constraints.counts:
            moved, improved = best_supports(lambda z, _: objective(z), space, moved, improved)
        better = improved > scores + tolerance
        if not better.any():
            break
        points[better], scores[better] = _climb_all(objective, space, moved[better], tolerance)
    every, value = np.concatenate([points, z]), np.concatenate([scores, score])
    return best_of(objective, space, every, value, visited, barred)


def _best_first(scores: Array, count: int) -> Numbers:
    """Return the numbers of the `count` largest scores, the largest first and equals in their order."""
    if len(scores) > count:
        among = np.flatnonzero(scores >= np.partition(scores, -count)[-count])
        return among[np.argsort(-scores[among], kind="stable")[:count]]
    return np.argsort(-scores, kind="stable")


def _tolerance(screened: Array, starts: Array) -> float:
    """Return the smallest gain worth a step: TOLERANCE times the range of the screen's scores.

    If that range is more than RANGE times that of the starts, it comes from points that do not matter: log EI is -1e299
    where f is certain.
    """
    all_of_it, best_of_it = _range(screened), _range(starts)
    return 0.0 if all_of_it is None or best_of_it is None else TOLERANCE * min(all_of_it, RANGE * best_of_it)


def _range(scores: Array) -> float | None:
    """Return the range of the finite scores; None if there are none."""
    low, high = float(scores.min()), float(scores.max())
    if math.isfinite(low) and math.isfinite(high):
        return high - low
    finite = scores[np.isfinite(scores)]
    return _range(finite) if len(finite) else None


def _climb_all(
    objective: Objective | JointObjective, space: Parameters, starts: Array, tolerance: float
) -> tuple[Array, Array]:
    """Climb from every start over the continuous coordinates, the others unchanged."""
    if not space.is_straight:
        return climb_inside(objective, space, starts, tolerance)
    is_free = space.continuous
    if not is_free.any():
        return starts.copy(), objective(starts)
    some_discrete = not is_free.all()
    free = is_free if some_discrete else slice(None)  # a view is cheaper than a copy
    lo, width = space.lo[free], space.span[free]
    reach = objective.reach(space.dim)[free] / width
    size = 1 + len(lo) if objective.posterior.n > GROUPED else 1  # a climb evaluates points in groups of d + 1

    def unit_objective(u: Array, which: Numbers) -> tuple[Array, Array]:
        z = lo + u * width
        if some_discrete:
            climbed, z = z, starts[which.repeat(len(z) // len(which))]
            z[:, free] = climbed
        value, gradient = objective.with_gradient(z, size)
        return value, gradient[:, free] * width

    u, value = climb(unit_objective, (starts[:, free] - lo) / width, np.minimum(reach, 1.0), tolerance)
    points = starts.copy()
    points[:, free] = np.clip(lo + u * width, lo, space.hi[free])
    return points, value


def best_of(
    objective: Objective | JointObjective,
    space: Parameters,
    points: Array,  # (m, d)
    scores: Array,  # (m,)
    visited: Array | None,
    barred: Barriers | None,
) -> SearchResult:
    """Return the best of the scored points. One that is visited or barred is chosen only if there are no others."""
    if visited is None and barred is None:
        return objective.result_at(points[first_best(scores)])
    seen = np.zeros(len(points), dtype=bool) if visited is None else are_among(points, visited, space.rounding)
    gone = seen if barred is None else seen | barred.holds(points)
    if barred is not None and gone.all():
        gone = seen | barred.holds(points, core=True)
    if gone.all():
        what = "asked before" if barred is None else "asked before or rejected"
        event = Event("repeat", f"all {len(points)} points that were looked at had been {what}")
        return objective.result_at(points[first_best(scores)], events=(event,))
    return objective.result_at(points[first_best(scores, gone if gone.any() else None)])
