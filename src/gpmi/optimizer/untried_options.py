"""Options of choices that no trial has tried, on a finite set.

The model knows of such an option only what the others have in common, so a policy that trusts the model may ask for
good settings of the first options for long, and never see the best one.
"""

from __future__ import annotations

import numpy as np

from gpmi._support.types import Mask
from gpmi.space import Space
from gpmi.trials import Log


def rows_with_untried_options(space: Space, log: Log) -> Mask | None:
    """Return which rows have an option that no trial has, (m,); None if there is none, or if the set is not finite.

    Pending and failed trials have tried their options, rejected ones have not. O(m d).
    """
    if space.rows is None or not log.rows:
        return None
    binary = ((space.rows == 0.0) | (space.rows == 1.0)).all(axis=0)  # a number under a condition lies on an arc
    is_option = binary & (np.bincount(space.groups, binary)[list(space.groups)] > 1.0)
    tried = (np.array(list(log.rows.values())) > 0.0).any(axis=0)
    untried = np.flatnonzero(is_option & ~tried)
    inside: Mask = np.any(space.rows[:, untried] > 0.0, axis=1)
    return inside if inside.any() else None
