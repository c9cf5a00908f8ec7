"""Which trial is at a point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gpmi._support.types import Array


def find_trial(numbers: Sequence[int], rows: Mapping[int, Array], row: Array, rounding: Array) -> int | None:
    """Return the first of the trials at these coordinates, or else the only one within `rounding` (d,) of them."""
    at = row.tobytes()
    exact = next((number for number in numbers if rows[number].tobytes() == at), None)
    if exact is not None or not numbers or not rounding.any():
        return exact
    apart = np.abs(np.array([rows[number] for number in numbers]) - row)
    close = np.flatnonzero(np.all(apart <= rounding, axis=1))
    return numbers[int(close[0])] if len(close) == 1 else None
