"""Escapes: when the last queries taught nothing, the next point is chosen without the model, far from the others.

A model learned from a few points may be sure of something wrong. It may hold that every support vector machine with an
rbf kernel is bad, because the three that were tried had a bad gamma. Or it may hold that f varies slowly everywhere,
because it does around the maximum where most of the points are. Such a model asks one point of a plateau or a hill
after the other, and no score computed from it leads away. A point far from all others does.
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
from gpmi.trials import Log

# Chosen by probes on a support vector machine's parameters (docs/policy.md); 0.01 and 0.001 are our choice.
WASTED = 2  # queries in a row that taught nothing, before an escape
# In units of the distance from the median of the values that the policy did not choose to the best value:
LITTLE = 0.01  # with a smaller sd of f there was nothing to learn at a point
GAIN = 0.001  # a smaller improvement is none
# On a box of numbers, chosen on the hills of benchmarks/hills.py; the others in standard deviations of the noise:
BELOW_NOISE = 0.5  # with a smaller sd, f is known as well as by four values of its own
FEW_PARAMETERS = (
    3  # parameters, at most: one point found no hill in six dimensions, and little in four (docs/policy.md)
)
NEAR_BEST = 0.1  # in units of that distance: where f is expected to be lower, the run does not look for its best point
LUCK = 2.0  # a smaller improvement may be noise


def escape_point(model: Model, log: Log, subspace: Subspace, orientation: Orientation, risk: Risk) -> Point | None:
    """Return the point to escape to; None if there was something to learn lately, or if no new point is left."""
    space = subspace.space
    kind = escape_kind(model, log, space, orientation)
    if kind is None:
        return None
    # No policy weighs the farthest point by its chance of success, and where f has no value there is no hill to find.
    unsafe = LOG_SAFE if risk.used_up else None
    barred = and_unsafe(model, around_rejected(space, log), risk.log_far if kind == "farthest" else unsafe)
    if kind == "design":
        return subspace.design.first_free(log.places, barred)
    row = farthest(space, model.setting.seed, np.array(list(log.rows.values())), barred)
    return None if row is None else space.decode(row)


def escape_kind(model: Model, log: Log, space: Space, orientation: Orientation) -> Literal["design", "farthest"] | None:
    """Return where an escape leads, if one is due: to the next point of the design, or to the farthest point.

    Where parameters have options it is the next point of the design. On a box of at most FEW_PARAMETERS numbers it is
    the point farthest from all trials, if the prior is learned and y is not transformed: the spread of values with long
    tails, as penalties have, does not say what is little. On a finite set there is no escape: no row is asked twice, so
    a run leaves a plateau when it is used up, and a far point costs more. docs/benchmarks/hills.md has the ablation.
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

    A trial taught nothing if f was known there before, or if its value is the best one again: a plateau has more points
    than a run. f is known where its sd is small next to the spread of the values so far. With a noise_var, an sd small
    next to the noise of the value will do, but f must have been expected to be near the best value: an escape may lead
    to a known point, which is no reason for another escape. Values that break a constraint, or that were told under
    other fixed coordinates, do not count.
    """
    trials = [log[number] for number, row in log.rows.items() if space.contains(row)]
    y = np.array([orientation.value(t.y) if t.y is not None and t.feasible else -np.inf for t in trials])
    told: Mask = np.isfinite(y)
    if not told.any():
        return told
    by_policy = np.array([t.origin == "policy" for t in trials])
    # The policy's values are near the best one. But if all others are, what the policy saw tells how f varies.
    scale = float(y.max() - min(np.median(y[some]) for some in (told & ~by_policy, told) if some.any()))
    noise_sd = np.sqrt([0.0 if noise_var is None else noise_var / t.repeats + t.noise_var for t in trials])
    little, gain = np.maximum(LITTLE * scale, BELOW_NOISE * noise_sd), np.maximum(GAIN * scale, LUCK * noise_sd)
    near = np.inf if noise_var is None else NEAR_BEST * scale + gain
    best = np.concatenate([[-np.inf], np.maximum.accumulate(y)[:-1]])  # before each trial
    mu = np.array([-np.inf if t.mu is None else orientation.value(t.mu) for t in trials])
    known = (np.array([np.inf if t.sd is None else t.sd for t in trials]) <= little) & (mu >= best - near)
    as_good = told & (y >= best - GAIN * scale)  # on a plateau: accuracies are often equal
    asked = by_policy & np.array([t.status in ("pending", "told") for t in trials])
    result: Mask = asked & (known | as_good) & (y <= best + gain)
    return result


def last_wasted(idle: Mask) -> bool:
    """Whether the last WASTED trials taught nothing, given which trials did, (n,)."""
    return len(idle) > WASTED and bool(idle[-WASTED:].all())


def is_escape_due(idle: Mask) -> bool:
    """Whether to explore the farthest point next, given which trials taught nothing, (n,).

    The first escapes come after WASTED such trials in a row, the k-th after k of them. So among t trials there are
    about sqrt(2 t) escapes: their cost per query vanishes, and they never end. A trial counts as an escape if one was
    due and it taught something, judged by the f and the noise known now.
    """
    far, in_a_row = 0, 0
    for nothing in idle.tolist():
        far += not nothing and in_a_row >= max(WASTED, far)
        in_a_row = in_a_row + 1 if nothing else 0
    return in_a_row >= max(WASTED, far)


def has_options(space: Space) -> bool:
    """Whether a parameter has several coordinates: a choice, or a parameter under a condition."""
    return len(set(space.groups)) < len(space.groups)


def is_small(space: Space) -> bool:
    """Whether at most FEW_PARAMETERS parameters are free, so that a point far from all others may well be on a hill."""
    return len(set(space.groups)) - len(space.fixed_coordinates) <= FEW_PARAMETERS
