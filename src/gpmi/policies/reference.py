"""The reference point where the user stated none: what counts as acceptable decides which parts of a front count.

Most queries look inside the box of the front that is known: its nadir, the worst value of each objective on the front,
and a margin. What lies outside of the box is found by wide queries, whose reference is far away. A wide query that
finds a part of the front outside of the box is followed by another one soon. After k in a row that do not, k queries
look inside: among t queries there are then about sqrt(2 t) wide ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpmi._support.types import Array, Mask
from gpmi.policies.front import non_dominated

MARGIN = 0.1  # of the range, beyond the nadir: the field's usual margin
SLIGHT = 0.01  # of the range: a gain that does not count, where the tails of a front are trimmed


def inner_reference(values: Array) -> Array:
    """Return the nadir of the trimmed front of values (n, k), less MARGIN of its range. (k,)"""
    front = trimmed(values[non_dominated(values)])
    nadir = front.min(axis=0)
    span = np.maximum(front.max(axis=0) - nadir, 1e-9 * np.ptp(values, axis=0))
    reference: Array = nadir - MARGIN * span
    return reference


def wide_reference(values: Array, inner: Array, turn: int) -> Array:
    """Return a reference (k,) far below all values (n, k), or below all but one objective, in turn.

    In the first of k + 1 turns it is the worst of all values, less MARGIN of their range. In the others one objective
    keeps its `inner` reference (k,) and the others are worse by another range, so that the end of the front where that
    objective is best is searched. Values that broke a limit count as well: if one point alone works, its values have no
    range.
    """
    worst, span = values.min(axis=0), np.ptp(values, axis=0)
    reference: Array = worst - MARGIN * span
    i = turn % (values.shape[1] + 1) - 1
    if i >= 0:
        reference = reference - span
        reference[i] = inner[i]
    return reference


def wide_is_due(values: Array, works: Mask, queries: Sequence[tuple[int, bool]]) -> bool:
    """Whether the next query is a wide one. `queries` are the rows of values (n, k) that the policy asked, in order,
    each with whether it was wide.
    """
    inside, in_vain, last = 0, 0, -1
    for row, is_wide in queries:
        is_new, last = row > last, max(row, last)  # the row of a repeat is that of the first query there
        if not is_wide:
            inside += 1
            continue
        before = values[:row][works[:row]]
        reached = is_new and works[row] and (len(before) == 0 or is_outside(values[row], before))
        inside, in_vain = 0, 0 if reached else in_vain + 1
    return inside >= max(1, in_vain) or not queries


def is_outside(value: Array, before: Array) -> bool:
    """Whether a value (k,) is a part of the front outside of the box of the values before it, (n, k)."""
    if np.all(value >= inner_reference(before)):
        return False
    both = np.concatenate([before, value[None]])
    front = trimmed(both[non_dominated(both)])
    return bool(np.any(np.all(front == value, axis=1)))


def trimmed(front: Array) -> Array:
    """Return the front (n, k) without its tails: points that gain at most SLIGHT on another one, and lose more."""
    span = np.maximum(np.ptp(front, axis=0), 1e-300)  # of equal values 0, and so is what they differ by
    gain = (front[:, None] - front) / span  # (n, n, k) of each point over each other one
    slight = np.all(gain <= SLIGHT, axis=2) & np.any(gain < -SLIGHT, axis=2)
    keep = ~slight.any(axis=1)
    return front[keep] if keep.any() else front
