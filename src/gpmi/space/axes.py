"""The parameters of a space as axes of a picture: which values are drawn, and where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpmi._support.types import Array
from gpmi.space import Candidates, Choice, Constant, Int, OnArc, Parameters, Part, Pinned, Space

# Our choices, not tuned.
CURVE = 401  # points of a curve
FEW = 30  # a numeric parameter with at most this many values is drawn value by value, otherwise as a curve


@dataclass(frozen=True)
class Axis:
    """One parameter as an axis of a picture."""

    name: str
    columns: slice  # its coordinates
    settings: Array  # (k, width), the values that are drawn, in the kernel's coordinates
    discrete: bool = False
    log: bool = False
    labels: tuple[str, ...] | None = None  # of the options of a Choice, or of the numbers of a grid
    arc: OnArc | None = None  # on which the values lie, if the parameter has a condition
    unit: str = ""  # of a number, for people

    @property
    def title(self) -> str:
        """The name, with its unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @staticmethod
    def of(parameter: Part, name: str, columns: slice, points: int = CURVE) -> Axis:
        """The axis of a parameter, with at most `points` settings unless it is a Choice."""
        assert not isinstance(parameter, Constant | Pinned)
        if isinstance(parameter, OnArc):
            straight = Axis.of(parameter.inner, name, columns, points)
            return replace(straight, settings=parameter.bent(straight.settings), arc=parameter)
        if isinstance(parameter, Choice):
            labels = tuple(str(option) for option in parameter.options)
            return Axis(name, columns, parameter.levels, discrete=True, labels=labels)
        if isinstance(parameter, Int):
            settings = _thinned(np.unique(parameter.tried(parameter.ends[0]), axis=0), points)
            return Axis(name, columns, settings, parameter.count <= FEW, parameter.log, unit=parameter.unit)
        lo, hi = parameter.ends[:, 0]
        return Axis(name, columns, np.linspace(lo, hi, points)[:, None], log=parameter.log, unit=parameter.unit)

    def positions(self, rows: Array) -> Array:
        """Where points with coordinates (m, d) lie on this axis, (m,)."""
        part = rows[:, self.columns]
        if self.labels is not None and part.shape[1] == len(self.labels) > 1:
            return np.where(part.any(axis=1), np.argmax(part, axis=1), np.nan)
        values: Array = np.exp(self._line(part)) if self.log else self._line(part)
        return values

    def _line(self, part: Array) -> Array:
        """The values, or their logarithms, at coordinates (m, width); nan where the parameter is inactive."""
        if self.arc is None:
            return part[:, 0]
        return np.where(part.any(axis=1), self.arc.straight(part)[:, 0], np.nan)

    def along(self, row: Array) -> Array:
        """The points (k, d) in which this parameter takes each of its settings and the others stay as in row (d,)."""
        rows = np.tile(row, (len(self.settings), 1))
        rows[:, self.columns] = self.settings
        return rows

    @property
    def limits(self) -> tuple[float, float]:
        """The ends of the axis. Discrete values are centres of cells, so half a mean step is added at each end."""
        if self.labels is not None:
            return -0.5, len(self.labels) - 0.5
        line = self._line(self.settings)
        step = (line[-1] - line[0]) / (len(line) - 1) if line[-1] > line[0] else 1.0
        margin = 0.5 * step if self.discrete else 0.0
        ends = np.array([line[0] - margin, line[-1] + margin])
        lo, hi = np.exp(ends) if self.log else ends
        return float(lo), float(hi)

    @property
    def edges(self) -> Array:
        """The borders between the settings, (k + 1,), ends included."""
        at = np.arange(float(len(self.settings))) if self.labels is not None else self._line(self.settings)
        at = np.exp(at) if self.log else at
        lo, hi = self.limits
        return np.concatenate([[lo], (at[1:] + at[:-1]) / 2.0, [hi]])

    @property
    def whole(self) -> bool:
        """Whether all values are whole numbers."""
        line = self._line(self.settings)
        return self.labels is None and bool(np.all(line == np.round(line)))


def axes_of(space: Space, points: int = CURVE, *, names: Sequence[str] | None = None) -> list[Axis]:
    """An axis for each parameter that varies; one whose values are numbers has at most `points` settings.

    `names` are those of all parameters, constants included; by default their own, or x0, x1, ...
    """
    assert isinstance(space, Parameters | Candidates)
    count = len(space.parameters if isinstance(space, Parameters) else space.choices)
    names = names or space.names or [f"x{i}" for i in range(count)]
    if isinstance(space, Parameters):
        parts = zip(space.parts, names, space.columns, strict=True)
        return [Axis.of(part, name, columns, points) for part, name, columns in parts if part.width]
    axes, start = [], 0
    for choice, grid, name in zip(space.choices, space.grids, names, strict=True):
        columns = slice(start, start + (1 if choice is None else choice.width))
        start = columns.stop
        if choice is not None:
            axes.append(Axis.of(choice, name, columns))
        elif grid is not None:
            ranks = np.arange(float(len(grid)))[:, None]
            axes.append(Axis(name, columns, ranks, discrete=True, labels=tuple(f"{number:g}" for number in grid)))
        else:
            values = np.unique(space.encoded[:, columns])[:, None]
            axes.append(Axis(name, columns, _thinned(values, points), discrete=len(values) <= FEW))
    return [axis for axis in axes if len(axis.settings) > 1] or axes  # a table of one row has its columns, too


def contains_slices(space: Space) -> bool:
    """Whether changing one parameter of a point stays in the space.

    Of several columns of candidates it does not, nor where there are constraints or conditions.
    """
    return space.plain if isinstance(space, Parameters) else len(axes_of(space, 2)) == 1


def _thinned(values: Array, most: int) -> Array:
    """At most `most` of the ascending values (k, 1), evenly spread, with both ends."""
    if len(values) <= most:
        return values
    wanted = np.linspace(values[0, 0], values[-1, 0], most)
    return np.take(values, np.unique(np.searchsorted(values[:, 0], wanted).clip(0, len(values) - 1)), axis=0)
