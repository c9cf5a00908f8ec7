"""The few types that every room shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.intp]
Point: TypeAlias = Any  # a point as the user writes it: an array (d,), or a dict; see gpmi.space


@dataclass(frozen=True)
class Event:
    """Something the library did that the user did not ask for: a repair, a rejected fit, a reduced search."""

    kind: str
    message: str
