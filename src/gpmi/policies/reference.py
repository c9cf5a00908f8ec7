"""The reference point where the user stated none: what counts as acceptable decides which parts of a front count."""

from __future__ import annotations

import numpy as np

from gpmi._support.types import Array
from gpmi.policies.front import non_dominated

MARGIN = 0.1  # of the range, beyond the nadir: the field's usual margin
SLIGHT = 0.01  # of the range: a loss that does not count as one, where a tail is trimmed


def inferred_reference(values: Array, stated: Array, turn: int) -> Array:
    """Return a reference (k,) below the front of values (n, k), larger is better; three rules take turns."""
    if len(values) == 0:
        return np.zeros(values.shape[1])
    k = values.shape[1]
    worst, best = values.min(axis=0), values.max(axis=0)
    front = trimmed(values[non_dominated(values)])
    nadir = front.min(axis=0)
    near = nadir - MARGIN * np.maximum(front.max(axis=0) - nadir, 1e-9 * np.maximum(best - worst, 1e-300))
    far = worst - MARGIN * (best - worst)
    if turn % 3 == 2:
        i, near_end = (turn // 3) % k, near[(turn // 3) % k]
        far = far - (best - worst)
        far[i] = near_end
    reference: Array = near if turn % 3 == 0 else far
    return reference


def trimmed(front: Array) -> Array:
    """Return the front (n, k) without its weakly dominated tails: points that gain only SLIGHT on another one."""
    span = np.maximum(np.ptp(front, axis=0), 1e-300)
    unit = front / span
    keep = np.ones(len(front), dtype=bool)
    for i in range(len(front)):
        gain = unit[i] - unit  # over each other point
        slight = np.all(gain <= SLIGHT, axis=1) & np.any(gain < -SLIGHT, axis=1)
        keep[i] = not slight.any()
    return front[keep] if keep.any() else front
