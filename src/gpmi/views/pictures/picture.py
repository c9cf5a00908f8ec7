"""A picture as data: two axes, marks in the order in which they are painted, and words.

A look is a class of report.css and a style of `figures.style`. A mark with a label has an entry in the legend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from gpmi._support.types import Array
from gpmi.space import Axis
from gpmi.trials import Trial

Side: TypeAlias = Literal["x", "y"]


@dataclass(frozen=True)
class Ruler:
    """An axis of a picture. `named` are its ticks as (value, label), if they are no plain numbers."""

    title: str
    lo: float
    hi: float
    log: bool = False
    named: tuple[tuple[float, str], ...] = ()
    whole: bool = False  # whether all values are whole numbers
    least: float = -np.inf  # below it there are no numbers: something else is drawn there

    @staticmethod
    def of(axis: Axis) -> Ruler:
        """Return the axis of a parameter."""
        named = tuple((float(i), label) for i, label in enumerate(axis.labels or ()))
        return Ruler(axis.title, *axis.limits, axis.log, named, axis.discrete and axis.whole)

    @staticmethod
    def counting(title: str, last: int) -> Ruler:
        """Return an axis of 1, 2, ..., last."""
        return Ruler(title, 0.5, max(2, last) + 0.5, whole=True)

    @staticmethod
    def fitted(title: str, values: Array, *, zero: bool = False, wide: float = np.inf) -> Ruler:
        """Return an axis that covers all values; logarithmic if all are positive and span a factor of `wide`."""
        finite = values[np.isfinite(values)]
        lo, hi = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
        if lo > 0.0 and hi > wide * lo:
            return Ruler(title, lo / 1.3, hi * 1.3, log=True)
        lo = min(lo, 0.0) if zero else lo
        margin = 0.06 * (hi - lo) if hi > lo else 0.5 * abs(hi) or 1.0
        return Ruler(title, lo if zero and lo == 0.0 else lo - margin, hi + margin)

    def is_near(self, value: float) -> bool:
        """Whether a value is not farther away from this axis than it is long."""
        return 2.0 * self.lo - self.hi <= value <= 2.0 * self.hi - self.lo


@dataclass(frozen=True)
class Line:
    """A line through places (m,), with a gap where one is not finite. With `steps` each y stays until the next x."""

    x: Array
    y: Array
    look: str = "mean"
    label: str = ""
    steps: bool = False


@dataclass(frozen=True)
class Bundle:
    """Lines (m, k) through the same places (k,), each with a gap where it is not finite."""

    x: Array
    y: Array
    look: str = "thin"
    label: str = ""


@dataclass(frozen=True)
class Band:
    """The area between two lines (m,), with a gap where one is not finite."""

    x: Array
    low: Array
    high: Array
    look: str = "area"
    label: str = ""
    steps: bool = False


@dataclass(frozen=True)
class Outline:
    """The area within a closed line through places (m,)."""

    x: Array
    y: Array
    look: str = "area"
    label: str = ""


@dataclass(frozen=True)
class Points:
    """Marks at places (m,). A page may link them to the trials behind them."""

    x: Array
    y: Array
    look: str = "observed"
    label: str = ""
    trials: tuple[Trial, ...] = ()


@dataclass(frozen=True)
class Spans:
    """Intervals (m,) at places (m,): bars if they have a width, otherwise as the look is. They stand upright or lie."""

    at: Array
    low: Array
    high: Array
    look: str = "area"
    label: str = ""
    width: float = 0.0
    lie: bool = False


@dataclass(frozen=True)
class Level:
    """A straight line across the picture at a value of one axis."""

    at: float
    side: Side = "y"
    look: str = "reference"
    label: str = ""


@dataclass(frozen=True)
class Stripe:
    """The background between two values of one axis."""

    low: float
    high: float
    side: Side = "y"
    look: str = "area"
    label: str = ""


@dataclass(frozen=True)
class Texts:
    """Texts to the right of places (m,)."""

    x: Array
    y: Array
    texts: tuple[str, ...]
    look: str = "small halo"
    label: str = ""


@dataclass(frozen=True)
class Map:
    """Values (a, b) over both axes in the colours of their levels, with a gap where one is not finite.

    They lie at places x (a,) and y (b,), and are interpolated between these; or in cells, between borders x (a + 1,)
    and y (b + 1,).
    """

    x: Array
    y: Array
    values: Array
    levels: Array  # (k + 1,) borders of the levels
    colours: Sequence[str]  # (k,)
    look: str = "map"
    label: str = ""

    @property
    def has_cells(self) -> bool:
        """Whether the values lie in cells."""
        return len(self.x) > len(self.values)


@dataclass(frozen=True)
class Hints:
    """Texts about whole numbers (m,) on the x axis, for those who point at the picture there. A page shows them."""

    x: Array
    texts: tuple[str, ...]
    look: str = "hint"
    label: str = ""


@dataclass(frozen=True)
class Note:
    """A sentence in the middle of a picture that has nothing else."""

    text: str
    look: str = "tick"
    label: str = ""


Mark: TypeAlias = Line | Bundle | Band | Outline | Points | Spans | Level | Stripe | Texts | Map | Hints | Note


@dataclass(frozen=True)
class Picture:
    """What is drawn, and what is said about it: `words` to those who cannot see it, `caption` to all."""

    title: str
    words: str
    x: Ruler
    y: Ruler
    marks: Sequence[Mark]
    caption: str = ""
    bare: bool = False  # whether only the names of the x axis are drawn
