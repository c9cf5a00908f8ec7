"""Escapes: when the last queries taught nothing, the next point is chosen without the model, far from the others.

A model learned from a few points may be sure of something wrong. It may conclude that every support vector machine
with an rbf kernel is bad, because the three that were tried had a bad gamma. Or it may conclude that f varies slowly
everywhere, because it does so around the maximum, where most of the points are. Such a model queries one point of a
plateau or a hill after the other, and no score computed from it leads away. A point far from all others does.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from gpmi._support.types import Mask, Point
from gpmi.model.model import Model
from gpmi.model.orientation import Orientation
from gpmi.optimizer.exclusions import and_unsafe, around_rejected
from gpmi.policies.policy import LOG_SAFE
from gpmi.policies.risk import Risk
from gpmi.search.screen import farthest
from gpmi.search.subspaces import Subspace
from gpmi.space import Space
from gpmi.trials import Log, Trial

# Chosen on a support vector machine's parameters (docs/notes/escape.md); 0.01 and 0.001 are our choice.
WASTED = 2  # queries in a row that taught nothing, before an escape
# In units of the distance from the median of the values that the policy did not choose to the best value:
LITTLE = 0.01  # a point where f has a smaller sd teaches nothing
GAIN = 0.001  # a smaller improvement does not count
# On a box of numbers, chosen on the hills of benchmarks/hills.py; the others in standard deviations of the noise:
BELOW_NOISE = 0.5  # with a smaller sd, f is known as well as from four measurements at the point
# With more parameters, no escape: one point found no hill in six dimensions, and little in four (docs/notes/escape.md).
FEW_PARAMETERS = 3
NEAR_BEST = 0.1  # in units of that distance: a query that is predicted to be lower does not look for the best point
LUCK = 2.0  # a smaller improvement may be noise
# The notes of a trial whose prediction the bounds of y have changed: the prediction without them.
UNBOUNDED_MU, UNBOUNDED_SD = "unbounded_mu", "unbounded_sd"


def escape_point(model: Model, log: Log, subspace: Subspace, orientation: Orientation, risk: Risk) -> Point | None:
    """Return the point to escape to; None if there was something to learn lately, or if no new point is left."""
    space = subspace.space
    kind = escape_kind(model, log, space, orientation)
    if kind is None:
        return None
    # No score weighs the farthest point by its success probability, so it is bounded here: a failure shows no hill.
    unsafe = LOG_SAFE if risk.used_up else None
    barred = and_unsafe(
        model.chance, space, around_rejected(space, log), risk.log_far if kind == "farthest" else unsafe
    )
    if kind == "design":
        return subspace.design.first_free(log.asked_places, barred)
    row = farthest(space, model.setting.seed, np.array(list(log.rows.values())), barred)
    return None if row is None else space.decode(row)


def escape_kind(model: Model, log: Log, space: Space, orientation: Orientation) -> Literal["design", "farthest"] | None:
    """Return where an escape leads, if one is due: to the next point of the design, or to the farthest point.

    Where parameters have options it is the next point of the design. On a box of at most FEW_PARAMETERS numbers it is
    the point farthest from all trials, if the prior is learned and y is not transformed: for values with long tails,
    such as penalties, the spread does not tell which differences are small. On a finite set there is no escape: no row
    is asked twice, so a run leaves a plateau when it is used up, and a far point costs more. The ablation is in
    docs/benchmarks/hills.md.
    """
    if space.rows is not None:
        return None
    if has_options(space):
        return "design" if last_wasted(taught_nothing(log, space, orientation)) else None
    if model.setting.priors.is_fixed or model.warp.bends or not is_small(space):
        return None
    return "farthest" if is_escape_due(taught_nothing(log, space, orientation, model.posterior.noise_var)) else None


def taught_nothing(log: Log, space: Space, orientation: Orientation, noise_var: float | None = None) -> Mask:
    """Return which trials taught nothing and brought no better value, (n,). O(n).

    A trial taught nothing if f was known there before, or if its value only equals the best one, as on a plateau, which
    has more points than a run. f is known where its sd is small compared with the spread of the values so far. With a
    noise_var, an sd that is small compared with the noise of the value also suffices, but f must have been predicted
    near the best value: an escape may lead to a known point, and that must not trigger another escape. Values that
    violate a constraint, or that were told under other fixed coordinates, do not count.
    """
    trials = [log[number] for number, row in log.rows.items() if space.contains(row)]
    y = np.array([orientation.value(t.y) if t.y is not None and t.feasible else -np.inf for t in trials])
    told: Mask = np.isfinite(y)
    if not told.any():
        return told
    by_policy = np.array([t.origin == "policy" for t in trials])
    # The policy's values are near the best one, so the median of the others counts; that of all values if it is lower.
    scale = float(y.max() - min(np.median(y[which]) for which in (told & ~by_policy, told) if which.any()))
    noise_sd = np.sqrt([0.0 if noise_var is None else noise_var / t.repeats + t.noise_var for t in trials])
    little, gain = np.maximum(LITTLE * scale, BELOW_NOISE * noise_sd), np.maximum(GAIN * scale, LUCK * noise_sd)
    near = np.inf if noise_var is None else NEAR_BEST * scale + gain
    best = np.concatenate([[-np.inf], np.maximum.accumulate(y)[:-1]])  # before each trial
    means, deviations = (_predicted(trials, *names) for names in (("mu", UNBOUNDED_MU), ("sd", UNBOUNDED_SD)))
    mu = np.array([-np.inf if predicted is None else orientation.value(predicted) for predicted in means])
    was_known = (np.array([np.inf if predicted is None else predicted for predicted in deviations]) <= little) & (
        mu >= best - near
    )
    as_good = told & (y >= best - GAIN * scale)  # on a plateau: accuracies are often equal
    asked = by_policy & np.array([t.status in ("pending", "told") for t in trials])
    result: Mask = asked & (was_known | as_good) & (y <= best + gain)
    return result


def _predicted(trials: list[Trial], name: str, unbounded: str) -> list[float | None]:
    """Return what was predicted for trials, without the bounds of y."""
    return [(trial.policy_notes or {}).get(unbounded, getattr(trial, name)) for trial in trials]


def last_wasted(idle: Mask) -> bool:
    """Whether the last WASTED trials taught nothing, given which trials did, (n,)."""
    return len(idle) > WASTED and bool(idle[-WASTED:].all())


def is_escape_due(idle: Mask) -> bool:
    """Whether to explore the farthest point next, given which trials taught nothing, (n,).

    The first escapes come after WASTED such trials in a row, the k-th after k of them. So among t trials there are
    about sqrt(2 t) escapes: their cost per query vanishes, and they never end. A trial counts as an escape if one was
    due and it taught something, judged by the values and the noise known now.
    """
    far, in_a_row = 0, 0
    for nothing in idle.tolist():
        far += not nothing and in_a_row >= max(WASTED, far)
        in_a_row = in_a_row + 1 if nothing else 0
    return in_a_row >= max(WASTED, far)


def has_options(space: Space) -> bool:
    """Whether a parameter has several coordinates: a choice, an angle, or a parameter under a condition."""
    return len(set(space.groups)) < len(space.groups)


def is_small(space: Space) -> bool:
    """Whether at most FEW_PARAMETERS parameters are free, so that a point far from all others may well be on a hill."""
    return len(set(space.groups)) - len(space.fixed_coordinates) <= FEW_PARAMETERS
