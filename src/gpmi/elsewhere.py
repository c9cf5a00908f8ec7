"""When a run has nothing left to learn where it looks.

A model that was learned from a few points may be sure of what is wrong: that every support vector machine with an rbf
kernel is bad, because the three that were tried had a bad gamma. Such a model asks one point after the other of a
plateau, and no index computed from it looks elsewhere. The next point of the initial design does.
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


def nothing_learned(log: Log, space: Space, orientation: Orientation) -> bool:
    """Whether nothing was to be learned from the last WASTED trials, and none of them brought a better value. O(n).

    That is where f was known before, and where the value is the best one again: a plateau has more points than a run.
    Values that break a constraint, or that were told under other given coordinates, are not to be had, and do not
    count. Only where a parameter is a choice or is there under a condition: on a box of numbers it would change
    nothing, of 120 runs on ten families of functions 54 missed the maximum with it and without it (docs/policy.md). On
    a finite set no row is asked twice, so a run leaves a plateau when it is used up, and a point of the design costs
    more there.
    """
    if space.rows is not None or not _has_options(space) or len(log) <= WASTED or not log.told:
        return False
    trials = [log[number] for number, row in log.rows.items() if space.has(row)]
    y = np.array(
        [orientation.value(trial.y) if trial.y is not None and trial.feasible else -np.inf for trial in trials]
    )
    if len(trials) <= WASTED or not np.isfinite(y).any():
        return False
    free = np.array([trial.origin != "policy" for trial in trials]) & np.isfinite(y)
    scale = float(y.max() - np.median(y[free])) if free.any() else 0.0

    def nothing(i: int) -> bool:
        trial, best = trials[i], float(y[:i].max())
        known = trial.sd is not None and trial.sd <= LITTLE * scale
        as_good = y[i] > -np.inf and bool(y[i] >= best - GAIN * scale)  # on a plateau: accuracies are often equal
        asked = trial.origin == "policy" and trial.status in ("pending", "told")
        return asked and (known or as_good) and bool(y[i] <= best + GAIN * scale)

    return all(nothing(i) for i in range(len(trials) - WASTED, len(trials)))


def _has_options(space: Space) -> bool:
    """Whether a parameter has several coordinates: it is a choice, or it is there under a condition."""
    return len(set(space.groups)) < len(space.groups)
