"""The values of one output, as rows of its model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Observations


class OutputRow(NamedTuple):
    """One value of an output, as a model knows it."""

    order: int  # its place among all outcomes and reports
    number: int  # of the trial
    x: Array  # (d,)
    y: float
    noise_var: float = 0.0
    repeats: int = 1


def observed_of(rows: Iterable[OutputRow]) -> tuple[list[int], Observations]:
    """Return the trials behind values of an output, in their order, and these values."""
    ordered = sorted(rows, key=lambda row: row.order)
    x = np.array([row.x for row in ordered]) if ordered else np.empty((0, 0))
    y, noise_var, repeats = (
        np.array([getattr(row, name) for row in ordered], dtype=float) for name in ("y", "noise_var", "repeats")
    )
    return [row.number for row in ordered], Observations.of(x, y, noise_var, repeats)
