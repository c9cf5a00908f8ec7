"""The few types that all packages share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.intp]
Point: TypeAlias = Any  # a point in the form of the space: an array (d,) or a dict; see gpmi.space


def read_only(array: Array) -> Array:
    """Make an array read-only, in place, and return it."""
    array.flags.writeable = False
    return array


class LabelledPoint(dict[str, Any]):
    """A row of a DataFrame: a dict of its values, with the row's label in the attribute `label`."""

    def __init__(self, values: Any = (), label: Any = None) -> None:
        super().__init__(values)
        self.label = label

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any], Any]]:
        return type(self), (dict(self), self.label)


class FrozenPoint(LabelledPoint):
    """A point of a named space in the log: a read-only dict. `dict(point)` is a copy that can be changed."""

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("a point of the log cannot be changed; change a copy, dict(x)")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse


@dataclass(frozen=True)
class Event:
    """Something the library did unasked: a repair, a rejected fit, a reduced search."""

    kind: str
    message: str


@dataclass(frozen=True, eq=False)
class Observations:
    """Values in the order in which they were told: y_i = f(x_i) + N(0, s / repeats_i + noise_var_i).

    s is the noise variance that all values share, given or learned. It is not stored here.
    """

    x: Array  # (n, d), coordinates
    y: Array  # (n,)
    noise_var: Array  # (n,), known variance of each value, on top of the common noise; 0 for a plain value
    repeats: Array  # (n,), the number of evaluations that each value is the mean of; 1 for a plain value
    places: Numbers  # (n,), the number of distinct points among the first 1, 2, ..., n values
    plain: bool = False  # whether every value is known to be one evaluation with the common noise alone

    @staticmethod
    def of(x: Array, y: Array, noise_var: Array | None = None, repeats: Array | None = None) -> Observations:
        """Build observations from values y (n,) at x (n, d). O(n)."""
        n, seen = len(y), set[bytes]()
        places = np.empty(n, dtype=np.intp)
        for i, row in enumerate(np.ascontiguousarray(x)):
            seen.add(row.tobytes())
            places[i] = len(seen)
        variances = np.zeros(n) if noise_var is None else np.asarray(noise_var, dtype=float)
        means = np.ones(n) if repeats is None else np.asarray(repeats, dtype=float)
        return Observations(x, y, variances, means, places, not variances.any() and bool(np.all(means == 1.0)))

    def __len__(self) -> int:
        return len(self.y)

    def first(self, n: int) -> Observations:
        """Return the first n, as views."""
        return self if n == len(self) else self.part(0, n)

    def part(self, begin: int, end: int) -> Observations:
        """Return those from `begin` to before `end`, as views. `places` still counts all values before."""
        at = slice(begin, end)
        noise_var, repeats = self.noise_var[at], self.repeats[at]
        # Later values do not change a part, so a fit of it is the same whenever it is made.
        plain = self.plain or not (noise_var.any() or (repeats != 1).any())
        return Observations(self.x[at], self.y[at], noise_var, repeats, self.places[at], plain)


class GrowingObservations:
    """Observations that grow by one at a time. Views that were read before do not change."""

    def __init__(self) -> None:
        self._x, self._numbers = np.empty((0, 0)), np.empty((3, 0))  # the numbers are y, noise_var and repeats
        self._places = np.empty(0, dtype=np.intp)
        self._seen: set[bytes] = set()
        self._n, self._plain = 0, True
        self._all: Observations | None = None

    def append(self, row: Array, y: float, noise_var: float, repeats: int) -> None:
        """Append a value. O(d) on average."""
        n = self._n
        if n == len(self._places):
            size = max(16, 2 * n)
            x, numbers, places = np.empty((size, len(row))), np.empty((3, size)), np.empty(size, dtype=np.intp)
            if n:
                x[:n], numbers[:, :n], places[:n] = self._x, self._numbers, self._places
            self._x, self._numbers, self._places = x, numbers, places
        self._seen.add(row.tobytes())
        self._x[n], self._numbers[:, n], self._places[n] = row, (y, noise_var, repeats), len(self._seen)
        self._n, self._all = n + 1, None
        self._plain = self._plain and noise_var == 0.0 and repeats == 1

    @property
    def all(self) -> Observations:
        """All values, as views. O(1)."""
        if self._all is None:
            y, noise_var, repeats = self._numbers[:, : self._n]
            at = slice(self._n)
            self._all = Observations(self._x[at], y, noise_var, repeats, self._places[at], self._plain)
        return self._all
