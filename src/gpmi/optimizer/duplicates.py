"""Duplicates: whether a trial is at a point already."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpmi._support.types import Array
from gpmi.analysis.ledger.ledger import SAME
from gpmi.space import Space
from gpmi.trials import Log


def is_duplicate(row: Array, space: Space, log: Log) -> bool:
    """Whether a trial that counts is at these coordinates (d,), or on a box within SAME of them. O(n d)."""
    others = [log.rows[number] for number in (*log.pending, *log.stopped, *log.failed)]
    return is_near(row, space, log.observed.x) or is_near(row, space, others)


def is_near(row: Array, space: Space, rows: Sequence[Array] | Array) -> bool:
    """Whether one of the rows is at these coordinates (d,), or on a box within SAME of them."""
    if not len(rows):
        return False
    near = 0.0 if space.rows is not None else SAME * space.span
    return bool(np.any(np.all(np.abs(np.asarray(rows) - row) <= near, axis=1)))
