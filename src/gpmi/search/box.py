"""The best point of a space that cannot be enumerated: score a screen of points, then climb from the best of them."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from gpmi._support.sobol import far_apart
from gpmi._support.types import Array, Event, Mask, Numbers
from gpmi.gp.approximate.success import LIKELY, SuccessProbability
from gpmi.gp.paths import Draw
from gpmi.gp.posterior import Posterior
from gpmi.gp.tracking import first_best, mean_in_chunks
from gpmi.policies import Mean, State
from gpmi.search.climb import climb
from gpmi.search.inside import Levels, Values, best_levels_inside, polished_inside
from gpmi.search.objective import Found, Objective, mean
from gpmi.search.relevant import confined
from gpmi.search.screens import Barriers, best_known, neighbours, screen_of
from gpmi.space import Parameters, Space

# Our choices, not tuned.
STARTS = 6  # points climbed in lockstep. A round of six costs 2.0, 2.9, 3.4 times one at n = 100, 300, 1,000 (d = 6)
APART = 0.05  # no two starts are closer than this, in diagonals of the box
TOLERANCE = 1e-6  # a gain smaller than this, relative to the range of the screen's scores, counts as none
RANGE = 100.0  # that range is taken for no more than this many times the range of the starts' scores
MOST_LEVELS = 512  # a discrete parameter with more levels is not tried at all of them: as many as the screen has points
MANY = 256  # with more observations than this gradients beside a point are made from its own: 0.6 of a climb's cost
WIDTHS = (3e-2, 1e-2, 3e-3, 1e-3)  # widths of the neighbourhoods, in widths of the box, in which a draw is refined


def best_point(
    objective: Objective,
    space: Parameters,
    screen: Array,  # (m, d), points of the space
    screened: Array,  # (m,), the scores there
    known: Array,  # (k, d): good points to look around, best first
    rng: np.random.Generator,
    visited: Array | None = None,  # (k, d): points that may not be chosen
    barred: Barriers | None = None,  # boxes in which no point may be chosen
) -> Found:
    """The best point found by a multi-start climb from the best points of a screen.

    Integers and choices are searched by coordinate ascent: one parameter after the other is set to its best level with
    everything else fixed, then the reals are climbed again, until nothing improves.
    """
    z = np.concatenate([screen, neighbours(space, known, rng), known])
    score = np.concatenate([screened, objective(z[len(screen) :])])
    held = np.zeros(len(z), dtype=bool) if barred is None else barred.holds(z)
    if barred is not None and barred.unsafe is not None and held.all():
        held = barred.holds(z, core=True)
    worth = np.where(held, -np.inf, score) if held.any() else score
    order = _best_first(worth, 20 * STARTS)
    chosen = order[far_apart((z[order] - space.lo) / space.span, np.arange(len(order)), APART, STARTS)]
    starts = z[chosen]
    tolerance = _tolerance(score, score[chosen])
    points, scores = _polish(objective, space, starts, tolerance)
    for _ in range(10 if space.discrete_settings > 1 else 0):
        moved, improved = best_levels(lambda z, _: objective(z), space, points, scores, _some_levels)
        better = improved > scores + tolerance
        if not better.any():
            break
        points[better], scores[better] = _polish(objective, space, moved[better], tolerance)
    every, value = np.concatenate([points, z]), np.concatenate([scores, score])
    return _best_of(objective, space, every, value, visited, barred)


def drawn_point(
    objective: Objective,
    space: Parameters,
    screen: Array,  # (m, d)
    known: Array,  # (k, d)
    rng: np.random.Generator,
    normals: np.random.Generator,  # for the draw of f
    visited: Array | None = None,  # (k, d)
    barred: Barriers | None = None,
) -> Found:
    """The argmax of one draw of f, found at the screen and then in ever smaller neighbourhoods of its best point."""
    objective = objective.any_member(rng)
    draw = Draw(objective.posterior, normals)
    z = np.concatenate([screen, neighbours(space, known, rng)])
    value = draw(z)
    for width in WIDTHS:
        near = neighbours(space, z[[first_best(objective.weighed(value, z))]], rng, width)
        z, value = np.concatenate([z, near]), np.append(value, draw(near))
    return _best_of(objective, space, z, objective.weighed(value, z), visited, barred)


def best_mean(
    posterior: Posterior,
    members: tuple[Posterior, ...],  # the same under other priors; where there are any, their means are averaged
    space: Space,
    seed: int,
    chance: SuccessProbability | None = None,
    least: float = LIKELY,
) -> Array:
    """The point (d,) with the largest posterior mean, observed or not. On a finite set a tie goes to the lowest row.

    With a `chance` of success it is one that succeeds with a probability of at least `least`. If none is found, the one
    most likely to succeed.
    """
    if space.rows is not None:
        means = mean([mean_in_chunks(member, space.rows) for member in members or (posterior,)])
        if chance is not None:
            likely = chance.likely(space.rows, least)
            means = np.where(likely, means, -np.inf) if likely.any() else chance.log(space.rows)
        row: Array = space.rows[first_best(means)]
        return row
    assert isinstance(space, Parameters)
    screen, rng = screen_of(space, seed), np.random.default_rng([seed, posterior.n, 0])
    parts = tuple(Objective(member, Mean(), State()) for member in members)
    screened = mean([member.mu(screen) for member in members or (posterior,)])
    objective, known = Objective(posterior, Mean(), State(), parts), best_known(posterior, space)
    if chance is None:
        return best_point(objective, space, screen, screened, known, rng).row
    screened = np.where(chance.likely(screen, least), screened, -np.inf)
    inside = partial(chance.likely, least=least)
    row = best_point(confined(objective, inside), space, screen, screened, known, rng).row
    if inside(row[None])[0]:
        return row
    z = np.concatenate([screen, known])
    most_likely: Array = z[first_best(chance.log(z))]
    return most_likely


def best_levels(
    f: Values,
    space: Parameters,
    points: Array,  # (s, d)
    values: Array,  # (s,), f there
    levels: Levels,
) -> tuple[Array, Array]:
    """The points with one discrete parameter after the other set to its best level, the rest fixed; and f there."""
    if not space.plain:
        return best_levels_inside(f, space, points, values, levels)
    points, values = points.copy(), values.copy()
    for part, column in zip(space.encodings, space.columns, strict=True):
        if part.count is None or part.width == 0:
            continue
        for i in range(len(points)):
            options = levels(part.levels_to_try(points[i, column]), points[i, column])
            trial = np.repeat(points[i : i + 1], len(options), axis=0)
            trial[:, column] = options
            trial_values = f(trial, np.full(len(trial), i))
            k = first_best(trial_values)
            if trial_values[k] > values[i]:
                points[i], values[i] = trial[k], trial_values[k]
    return points, values


def _some_levels(levels: Array, here: Array) -> Array:
    """All levels up to MOST_LEVELS. Of more: 256 spread evenly, `here`, and those 1, 2, 4, ... steps away from it."""
    k, width = levels.shape
    if k <= MOST_LEVELS or width > 2:  # the options of a choice have no order
        return levels
    at = int(np.searchsorted(levels[:, -1], here[-1]))
    jumps = 2 ** np.arange(int(np.log2(k)) + 1)
    picks = np.concatenate([np.linspace(0, k - 1, 256).astype(int), [at], at + jumps, at - jumps])
    result: Array = levels[np.unique(np.clip(picks, 0, k - 1))]
    return result


def _best_first(worth: Array, count: int) -> Numbers:
    """The numbers of the `count` largest, the largest first and equals in their order."""
    if len(worth) > count:
        among = np.flatnonzero(worth >= np.partition(worth, -count)[-count])
        return among[np.argsort(-worth[among], kind="stable")[:count]]
    return np.argsort(-worth, kind="stable")


def _tolerance(screened: Array, starts: Array) -> float:
    """The smallest gain worth a step: TOLERANCE of the range of the scores of the screen.

    Where that range is more than RANGE times that of the starts, it is made by points that do not matter: log EI is
    -1e299 at a point that is known exactly.
    """
    all_of_it, best_of_it = _range(screened), _range(starts)
    return 0.0 if all_of_it is None or best_of_it is None else TOLERANCE * min(all_of_it, RANGE * best_of_it)


def _range(scores: Array) -> float | None:
    """The range of those that are finite; None if there are none."""
    low, high = float(scores.min()), float(scores.max())
    if math.isfinite(low) and math.isfinite(high):
        return high - low
    finite = scores[np.isfinite(scores)]
    return _range(finite) if len(finite) else None


def _polish(objective: Objective, space: Parameters, starts: Array, tolerance: float) -> tuple[Array, Array]:
    """Climb from every start over the continuous coordinates, the others fixed."""
    if not space.plain:
        return polished_inside(objective, space, starts, tolerance)
    is_free = space.continuous
    if not is_free.any():
        return starts.copy(), objective(starts)
    some_fixed = not is_free.all()
    free = is_free if some_fixed else slice(None)  # a view is cheaper than a copy
    lo, width = space.lo[free], space.span[free]
    reach = objective.posterior.kernel.reach(space.dim)[free] / width
    size = 1 + len(lo) if objective.posterior.n > MANY else 1  # a climb asks for points in groups of d + 1

    def unit_objective(u: Array, which: Numbers) -> tuple[Array, Array]:
        z = lo + u * width
        if some_fixed:
            climbed, z = z, starts[which.repeat(len(z) // len(which))]
            z[:, free] = climbed
        value, gradient = objective.with_gradient(z, size)
        return value, gradient[:, free] * width

    u, value = climb(unit_objective, (starts[:, free] - lo) / width, np.minimum(reach, 1.0), tolerance)
    points = starts.copy()
    points[:, free] = np.clip(lo + u * width, lo, space.hi[free])
    return points, value


def _best_of(
    objective: Objective,
    space: Parameters,
    points: Array,  # (m, d)
    scores: Array,  # (m,)
    visited: Array | None,
    barred: Barriers | None,
) -> Found:
    """The best of the points that were scored; one that was visited before or is barred only if there are no others."""
    if visited is None and barred is None:
        return objective.found(points[first_best(scores)])
    seen = np.zeros(len(points), dtype=bool) if visited is None else are_among(points, visited, space.rounding)
    gone = seen if barred is None else seen | barred.holds(points)
    if barred is not None and gone.all():
        gone = seen | barred.holds(points, core=True)
    if gone.all():
        what = "asked before" if barred is None else "asked before or rejected"
        event = Event("repeat", f"all {len(points)} points that were looked at had been {what}")
        return objective.found(points[first_best(scores)], events=(event,))
    return objective.found(points[first_best(scores, gone if gone.any() else None)])


def are_among(points: Array, visited: Array, rounding: Array) -> Mask:
    """Which of the points (m, d) are within `rounding` (d,) of one of `visited` (k, d). O((m + k) log k) and the pairs.

    Only pairs that agree in the first coordinate are compared in the others, and nearly all differ there already.
    """
    order = np.argsort(visited[:, 0])
    first, margin = visited[order, 0], 2.0 * rounding[0]  # twice as wide, because the sums below are rounded
    begin = np.searchsorted(first, points[:, 0] - margin)
    end = np.searchsorted(first, points[:, 0] + margin, side="right")
    count = end - begin
    which = np.repeat(np.arange(len(points)), count)
    at = order[np.arange(len(which)) - np.repeat(np.cumsum(count) - end, count)]
    among = np.zeros(len(points), dtype=bool)
    among[which[np.all(np.abs(points[which] - visited[at]) <= rounding, axis=1)]] = True
    return among
