"""Duplicates: whether a trial is at a point already, and whether another value there could differ."""

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


def is_noisy(given: float | None, log: Log) -> bool:
    """Whether another value at the same point may differ: a noise_var says so, or two told values do. O(n).

    A learned noise_var does not count: on rough tables the fit sometimes takes a part of f for noise.
    """
    if not log.observed.plain and log.observed.noise_var.any():
        return True
    if given is not None:
        return given > 0.0
    if len(log.places) == len(log):
        return False
    first: dict[bytes, float] = {}
    return any(
        first.setdefault(row.tobytes(), value) != value
        for row, value in zip(log.observed.x, log.observed.y.tolist(), strict=True)
    )
