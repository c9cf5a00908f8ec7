"""When a run has nothing left to learn where it looks.

A model that was learned from a few points may be sure of what is wrong: that every support vector machine with an rbf
kernel is bad, because the three that were tried had a bad gamma; or that f varies slowly everywhere, because it does
around a maximum where most of the points are. Such a model asks one point after the other of a plateau or of a hill,
and no index computed from it looks elsewhere. A point far from all others does.
"""

from __future__ import annotations

import numpy as np

from gpmi.orientation import Orientation
from gpmi.space import Space
from gpmi.trials import Log

# Chosen by probes on a support vector machine's parameters (docs/policy.md); 0.01 and 0.001 are our choice.
WASTED = 2  # queries in a row with nothing to learn, and the next one is that of the design
# In units of the distance from the median of the values that the policy did not choose to the best value:
LITTLE = 0.01  # with a smaller sd of f there was nothing to learn at a point
GAIN = 0.001  # an improvement by less than that is none
# On a box of numbers, chosen on the hills of benchmarks/hills.py; the others in standard deviations of the noise:
BELOW_NOISE = 0.5  # with a smaller sd of f a point is known as well as four values of its own would make it known
FEW = 3  # parameters, at most: one point found no hill in six dimensions, and little in four (docs/policy.md)
NEAR_BEST = 0.1  # in units of that distance: where f is expected to be lower, the run does not look for its best point
LUCK = 2.0  # an improvement by less than that may be noise


def nothing_learned(log: Log, space: Space, orientation: Orientation, noise_sd: float = 0.0) -> bool:
    """Whether nothing was to be learned from the last WASTED trials, and none of them brought a better value. O(n).

    That is where f was known before, and where the value is the best one again: a plateau has more points than a run.
    Known is what the model is sure of, compared with the values so far or, on a box of numbers, with the noise. Values
    that break a constraint, or that were told under other given coordinates, are not to be had, and do not count. On a
    finite set no row is asked twice, so a run leaves a plateau when it is used up, and a point from elsewhere costs
    more there. docs/benchmarks/hills.md has the ablation.
    """
    if space.rows is not None or len(log) <= WASTED or not log.told:
        return False
    trials = [log[number] for number, row in log.rows.items() if space.has(row)]
    y = np.array(
        [orientation.value(trial.y) if trial.y is not None and trial.feasible else -np.inf for trial in trials]
    )
    if len(trials) <= WASTED or not np.isfinite(y).any():
        return False
    free = np.array([trial.origin != "policy" for trial in trials]) & np.isfinite(y)
    scale = float(y.max() - np.median(y[free])) if free.any() else 0.0
    little, gain = max(LITTLE * scale, BELOW_NOISE * noise_sd), max(GAIN * scale, LUCK * noise_sd)

    anywhere = has_options(space)

    def nothing(i: int) -> bool:
        trial, best = trials[i], float(y[:i].max())
        known = trial.sd is not None and trial.sd <= little
        if known and not anywhere:  # a point from elsewhere may be known, too, but that is no reason for the next one
            known = trial.mu is not None and orientation.value(trial.mu) >= best - NEAR_BEST * scale - gain
        as_good = y[i] > -np.inf and bool(y[i] >= best - GAIN * scale)  # on a plateau: accuracies are often equal
        asked = trial.origin == "policy" and trial.status in ("pending", "told")
        return asked and (known or as_good) and bool(y[i] <= best + gain)

    return all(nothing(i) for i in range(len(trials) - WASTED, len(trials)))


def has_options(space: Space) -> bool:
    """Whether a parameter has several coordinates: it is a choice, or it is there under a condition."""
    return len(set(space.groups)) < len(space.groups)


def is_small(space: Space) -> bool:
    """Whether so FEW parameters are not given that a point far from all others may well be on a hill."""
    return len(set(space.groups)) - len(space.pins) <= FEW
