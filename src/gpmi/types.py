"""The few types that every room shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.intp]
Point: TypeAlias = Any  # a point as the user writes it: an array (d,), or a dict; see gpmi.space


class LabelledPoint(dict[str, Any]):
    """A row of a DataFrame: a dict of its values, with the row's label in the attribute `label`."""

    def __init__(self, values: Any = (), label: Any = None) -> None:
        super().__init__(values)
        self.label = label

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any], Any]]:
        return type(self), (dict(self), self.label)


class FrozenPoint(LabelledPoint):
    """A point of a named space in the log: a dict that cannot be changed. `dict(point)` is one that can."""

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("a point of the log cannot be changed; change a copy, dict(x)")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse


@dataclass(frozen=True)
class Event:
    """Something the library did that the user did not ask for: a repair, a rejected fit, a reduced search."""

    kind: str
    message: str
