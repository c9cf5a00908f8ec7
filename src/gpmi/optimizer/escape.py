"""When a run has nothing left to learn where it looks.

A model that was learned from a few points may be sure of what is wrong: that every support vector machine with an rbf
kernel is bad, because the three that were tried had a bad gamma; or that f varies slowly everywhere, because it does
around a maximum where most of the points are. Such a model asks one point after the other of a plateau or of a hill,
and no index computed from it looks elsewhere. A point far from all others does.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from gpmi._support.types import Mask
from gpmi.model.model import Model
from gpmi.model.orientation import Orientation
from gpmi.space import Space
from gpmi.trials import Log

# Chosen by probes on a support vector machine's parameters (docs/policy.md); 0.01 and 0.001 are our choice.
WASTED = 2  # queries in a row with nothing to learn, and the next one is from elsewhere
# In units of the distance from the median of the values that the policy did not choose to the best value:
LITTLE = 0.01  # with a smaller sd of f there was nothing to learn at a point
GAIN = 0.001  # an improvement by less than that is none
# On a box of numbers, chosen on the hills of benchmarks/hills.py; the others in standard deviations of the noise:
BELOW_NOISE = 0.5  # with a smaller sd of f a point is known as well as four values of its own would make it known
FEW = 3  # parameters, at most: one point found no hill in six dimensions, and little in four (docs/policy.md)
NEAR_BEST = 0.1  # in units of that distance: where f is expected to be lower, the run does not look for its best point
LUCK = 2.0  # an improvement by less than that may be noise


def where_else(model: Model, log: Log, space: Space, orientation: Orientation) -> Literal["design", "farthest"] | None:
    """Which point is to come next, if nothing is left to learn where the run looks: of the design, or the farthest.

    Where parameters have options it is the next one of the design. On a box of a FEW numbers it is the one farthest
    from all trials, if the prior is learned and y is not transformed: where values have long tails, as penalties have,
    their spread does not say what is little. On a finite set no row is asked twice, so a run leaves a plateau when it
    is used up, and a point from elsewhere costs more there. docs/benchmarks/hills.md has the ablation.
    """
    if space.rows is not None:
        return None
    if has_options(space):
        return "design" if are_wasted(taught_nothing(log, space, orientation)) else None
    if model.setting.priors.is_fixed or model.warp.bends or not is_small(space):
        return None
    return "farthest" if is_due(taught_nothing(log, space, orientation, model.posterior.noise_var)) else None


def taught_nothing(log: Log, space: Space, orientation: Orientation, noise_var: float | None = None) -> Mask:
    """Whether there was nothing to learn from each trial, and it brought no better value, (n,). O(n).

    That is where f was known before, and where the value is the best one again: a plateau has more points than a run.
    Known is what the model is sure of, compared with the values so far. With a noise_var, also compared with the noise
    of this value, and only where f was expected to be near the best value: a point from elsewhere may be known, too,
    but that is no reason for the next one. Values that break a constraint, or that were told under other given
    coordinates, are not to be had, and do not count.
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


def are_wasted(idle: Mask) -> bool:
    """Whether the last WASTED trials taught nothing."""
    return len(idle) > WASTED and bool(idle[-WASTED:].all())


def is_due(idle: Mask) -> bool:
    """Whether the next trial is to be far from all others, by which trials taught nothing, (n,).

    It is after WASTED of these in a row, and later after as many as trials were far from all others so far. So among t
    trials there are about sqrt(2 t) of them: what they cost for each query vanishes, and the looking never ends.
    A far trial is one that was due and taught something, in the light of what is known of f and of the noise now.
    """
    far, in_a_row = 0, 0
    for nothing in idle.tolist():
        far += not nothing and in_a_row >= max(WASTED, far)
        in_a_row = in_a_row + 1 if nothing else 0
    return in_a_row >= max(WASTED, far)


def has_options(space: Space) -> bool:
    """Whether a parameter has several coordinates: it is a choice, or it is there under a condition."""
    return len(set(space.groups)) < len(space.groups)


def is_small(space: Space) -> bool:
    """Whether so FEW parameters are not given that a point far from all others may well be on a hill."""
    return len(set(space.groups)) - len(space.fixed_coordinates) <= FEW
