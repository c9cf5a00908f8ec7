"""The parameters of a space as axes of a figure: which values are drawn, and at which positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpmi._support.types import Array
from gpmi.space.candidates import Candidates
from gpmi.space.conditions.arc import OnArc
from gpmi.space.domain import NumberRange, Options
from gpmi.space.encoding import Encoding
from gpmi.space.integer import thinned
from gpmi.space.product import Parameters
from gpmi.space.space import Space

# Our choices, not tuned.
CURVE = 401  # points of a curve
FEW_VALUES = 30  # a numeric parameter with at most this many values is drawn value by value, otherwise as a curve


@dataclass(frozen=True)
class Axis:
    """One parameter as an axis of a figure."""

    name: str
    columns: slice  # its coordinates
    settings: Array  # (k, width), the coordinates of the values that are drawn
    discrete: bool = False
    log: bool = False
    labels: tuple[str, ...] | None = None  # of the options of a Choice, or of the numbers of a grid
    options: tuple[Any, ...] = ()  # of a Choice
    arc: OnArc | None = None  # of the values, if the parameter has a condition
    unit: str = ""

    @property
    def title(self) -> str:
        """The name, with its unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @staticmethod
    def of(parameter: Encoding, name: str, columns: slice, points: int = CURVE) -> Axis:
        """Return the axis of a parameter that varies, with at most `points` settings unless it is a Choice."""
        arc, settings = parameter if isinstance(parameter, OnArc) else None, parameter.grid(points)
        if isinstance(parameter.domain, Options):
            options = tuple(parameter.domain.values)
            labels = tuple(map(str, options))
            return Axis(name, columns, settings, discrete=True, labels=labels, options=options, arc=arc)
        assert isinstance(parameter.domain, NumberRange)
        few = parameter.count is not None and parameter.count <= FEW_VALUES
        return Axis(name, columns, settings, few, parameter.domain.log, arc=arc, unit=parameter.unit)

    def positions(self, rows: Array) -> Array:
        """Return the positions (m,) on this axis of points with coordinates (m, d); nan where it is inactive."""
        part = rows[:, self.columns]
        if self.labels is not None and part.shape[1] == len(self.labels) > 1:
            return np.where(part.any(axis=1), np.argmax(part, axis=1), np.nan)
        values: Array = np.exp(self._line(part)) if self.log else self._line(part)
        return values

    def _line(self, part: Array) -> Array:
        """Return the values, or their logarithms, at coordinates (m, width); nan where the parameter is inactive."""
        if self.arc is None:
            return part[:, 0]
        return np.where(part.any(axis=1), self.arc.straighten(part)[:, 0], np.nan)

    def along(self, row: Array) -> Array:
        """Return points (k, d) in which this parameter takes each of its settings and the others are as in row (d,)."""
        rows = np.tile(row, (len(self.settings), 1))
        rows[:, self.columns] = self.settings
        return rows

    @property
    def limits(self) -> tuple[float, float]:
        """The ends of the axis. Discrete values are the centres of cells, so half a mean step is added at each end."""
        if self.labels is not None:
            return -0.5, len(self.labels) - 0.5
        line = self._line(self.settings)
        step = (line[-1] - line[0]) / (len(line) - 1) if line[-1] > line[0] else 1.0
        margin = 0.5 * step if self.discrete else 0.0
        ends = np.array([line[0] - margin, line[-1] + margin])
        lo, hi = np.exp(ends) if self.log else ends
        return float(lo), float(hi)

    @property
    def places(self) -> Array:
        """The positions of the settings, (k,)."""
        at = np.arange(float(len(self.settings))) if self.labels is not None else self._line(self.settings)
        return np.exp(at) if self.log else at

    @property
    def edges(self) -> Array:
        """The borders between the settings, ends included, (k + 1,)."""
        at = self.places
        lo, hi = self.limits
        return np.concatenate([[lo], (at[1:] + at[:-1]) / 2.0, [hi]])

    @property
    def whole(self) -> bool:
        """Whether all values are whole numbers."""
        line = self._line(self.settings)
        return self.labels is None and bool(np.all(line == np.round(line)))


def axes_of(space: Space, points: int = CURVE, *, names: Sequence[str] | None = None) -> list[Axis]:
    """Return an axis for each parameter that varies, without a fidelity. A numeric one has at most `points` settings.

    `names` are for all parameters, constants included. By default they are the parameters' own, or x0, x1, ...
    """
    assert isinstance(space, Parameters | Candidates)
    count = len(space.parameters if isinstance(space, Parameters) else space.choices)
    names = names or space.names or [f"x{i}" for i in range(count)]
    if isinstance(space, Parameters):
        named = zip(space.encodings, names, space.columns, strict=True)
        at = None if space.fidelity is None else space.fidelity.column
        return [
            Axis.of(encoding, name, columns, points)
            for encoding, name, columns in named
            if encoding.width and columns.start != at
        ]
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
            axes.append(Axis(name, columns, thinned(values, points), discrete=len(values) <= FEW_VALUES))
    return [axis for axis in axes if len(axis.settings) > 1] or axes  # a table of one row has axes, too


def contains_slices(space: Space) -> bool:
    """Whether a point stays in the space when one parameter changes.

    With several columns of candidates, constraints or conditions it does not.
    """
    return space.plain if isinstance(space, Parameters) else len(axes_of(space, 2)) == 1
