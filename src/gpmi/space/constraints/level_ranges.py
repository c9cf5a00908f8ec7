"""The level numbers of each parameter that linear constraints leave, one parameter at a time."""

from __future__ import annotations

import numpy as np

from gpmi._support.types import Array
from gpmi.space.constraints.constraints import FEASIBILITY_TOLERANCE, Constraints
from gpmi.space.integer import Int
from gpmi.space.layout import Layout

_PASSES = 10  # over all inequalities, at most: each makes the others tighter; our limit of the cost


def level_ranges(layout: Layout, constraints: Constraints) -> Array:
    """Return the first and last level number of each parameter that can satisfy every inequality, (p, 2).

    If none can, return all level numbers. By interval arithmetic: in a_1 v_1 + ... + a_p v_p <= u each term is at most
    u minus the smallest sum of the others. Numbers outside the ranges are infeasible; those inside may be. An
    inequality about a parameter under a condition is ignored, and only an Int loses levels. O(R p) for each pass.
    """
    counts = np.array([encoding.count or 1 for encoding in layout.encodings], dtype=float)
    every = np.stack([np.zeros(len(counts)), counts - 1.0], axis=1)
    ints = [j for j, parameter in enumerate(layout.parameters) if isinstance(parameter, Int)]
    conditional = [bool(conditions) for conditions in layout.conditions]
    usable = [r for r, used in enumerate(constraints.used) if not np.any(used & conditional)]
    if not ints or not usable:
        return every
    low, high = np.array([parameter.limits or (0.0, 0.0) for parameter in layout.parameters]).T
    least, ranges = low.copy(), every.copy()
    step = np.array([getattr(parameter, "step", 1) for parameter in layout.parameters], dtype=float)
    for _ in range(_PASSES):
        before = ranges.copy()
        for r in usable:
            a, slack = constraints.matrix[r], FEASIBILITY_TOLERANCE * constraints.sizes[r]
            for j in (j for j in ints if constraints.used[r, j]):
                others = np.delete(a * np.stack([low, high]), j, axis=1)  # (2, p - 1)
                below = constraints.lower[r] - others.max(axis=0).sum() - slack
                above = constraints.upper[r] - others.min(axis=0).sum() + slack
                first, last = sorted([below / a[j], above / a[j]])
                ranges[j, 0] = max(ranges[j, 0], np.ceil((first - least[j]) / step[j]))
                ranges[j, 1] = min(ranges[j, 1], np.floor((last - least[j]) / step[j]))
                if ranges[j, 0] > ranges[j, 1]:
                    return every
                low[j], high[j] = least[j] + step[j] * ranges[j]
        if np.array_equal(ranges, before):
            break
    return ranges
