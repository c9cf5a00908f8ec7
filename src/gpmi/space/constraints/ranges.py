"""The whole numbers that linear constraints leave of each parameter, one parameter at a time."""

from __future__ import annotations

import numpy as np

from gpmi._support.types import Array
from gpmi.space.conditions.conditions import Constant, Pinned
from gpmi.space.constraints.constraints import EXACT, Rules
from gpmi.space.layout import Layout, numeric
from gpmi.space.parameters import Choice, Int, Parameter

_ROUNDS = 10  # times that all rows are looked at, at most: each makes the others tighter; our limit of the cost


def level_ranges(layout: Layout, rules: Rules) -> Array:
    """The first and the last level number of each parameter that can keep to every row, (p, 2); all if none can.

    By interval arithmetic: in a_1 v_1 + ... + a_p v_p <= u each term is at most u minus the least that the others can
    be. What is left out is outside; what is kept may be. A row about a parameter under a condition says nothing, and a
    parameter that is no Int keeps all its levels. O(R p) for each round.
    """
    counts = np.array([part.count or 1 for part in layout.parts], dtype=float)
    every = np.stack([np.zeros(len(counts)), counts - 1.0], axis=1)
    ints = [j for j, parameter in enumerate(layout.parameters) if isinstance(parameter, Int)]
    rows = [r for r, used in enumerate(rules.used) if not any(layout.conditions[j] for j in np.flatnonzero(used))]
    if not ints or not rows:
        return every
    low, high = np.array([_ends(parameter) for parameter in layout.parameters]).T
    least, ranges = low.copy(), every.copy()
    step = np.array([getattr(parameter, "step", 1) for parameter in layout.parameters], dtype=float)
    for _ in range(_ROUNDS):
        before = ranges.copy()
        for r in rows:
            a, slack = rules.matrix[r], EXACT * rules.sizes[r]
            for j in (j for j in ints if rules.used[r, j]):
                others = np.delete(a * np.stack([low, high]), j, axis=1)  # (2, p - 1)
                below = rules.lower[r] - others.max(axis=0).sum() - slack
                above = rules.upper[r] - others.min(axis=0).sum() + slack
                first, last = sorted([below / a[j], above / a[j]])
                ranges[j, 0] = max(ranges[j, 0], np.ceil((first - least[j]) / step[j]))
                ranges[j, 1] = min(ranges[j, 1], np.floor((last - least[j]) / step[j]))
                if ranges[j, 0] > ranges[j, 1]:
                    return every
                low[j], high[j] = least[j] + step[j] * ranges[j]
        if np.array_equal(ranges, before):
            break
    return ranges


def _ends(parameter: Parameter | Constant | Pinned) -> tuple[float, float]:
    """The least and the largest value in the user's units; 0 for what is no number, or no part of a row."""
    if isinstance(parameter, Pinned) or not numeric(parameter):
        return 0.0, 0.0
    match parameter:
        case Choice():
            return float(min(parameter.options)), float(max(parameter.options))
        case Constant():
            return float(parameter.value), float(parameter.value)
    return float(parameter.lo), float(parameter.hi)
