"""A number that begins again after its period: an angle, the hour of a day, the phase of a wave.

Its level number is the number itself, in [0, period]. What makes a circle of it is `OnArc`: the kernel's coordinates
are cosine and sine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from gpmi._support import checks
from gpmi._support.refusals import RefusedValue
from gpmi._support.types import Array
from gpmi.space.domain import NumberRange
from gpmi.space.fields import check_unit, check_when, checked_ends
from gpmi.space.real import ON_STEP, Continuous


@dataclass(frozen=True, repr=False)
class Angle(Continuous):
    """A number on a circle, in [0, period): Angle(360) for degrees, Angle(24) for the hour of a day.

    A value is taken modulo the period wherever it is told or fixed: of 360 degrees, -90 is 270, and 360 is 0. The
    distance of two values is that of the shorter way round, and a search goes on past the end. `step`, which goes into
    the period a whole number of times, `when` and `unit` are as for `Real`.
    """

    period: float
    step: float | None = field(default=None, kw_only=True)
    when: Mapping[str, Any] | None = field(default=None, kw_only=True)
    unit: str = field(default="", kw_only=True, compare=False)

    circular, kind_in_words = True, "angle, begins again at “To”"

    def __post_init__(self) -> None:
        check_when(self)
        check_unit(self)
        object.__setattr__(self, "period", checks.positive("period of Angle", self.period))
        if self.step is not None:
            step = checks.positive("step of Angle", self.step)
            if abs(self.period / step - round(self.period / step)) > ON_STEP or round(self.period / step) < 2:
                way = f"step of Angle is {step:g}, which does not go round: {self.period:g} is no multiple of it"
                raise ValueError(f"{way}; give a part of the period, such as {self.period / 12:g}")
            object.__setattr__(self, "step", step)

    @property
    def domain(self) -> NumberRange:
        return NumberRange(0.0, self.period, step=self.step)

    @property
    def limits(self) -> tuple[float, float]:
        return 0.0, self.period

    @property
    def ends(self) -> Array:
        return np.array([[0.0], [self.period]])

    def values(self, numbers: Array) -> Array:
        return numbers

    def canonical(self, value: Any) -> float:
        rest = float(value) % self.period
        return rest if rest < self.period else 0.0  # the rest of -1e-20 rounds to the period

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        return (self.canonical(checks.number(name, value)),)

    def decode(self, row: Array) -> float:
        return self.canonical(self.snapped(float(row[0])))

    def nearest(self, number: float) -> float:
        return self.canonical(super().nearest(number))

    @classmethod
    def from_plain(cls, label: str, value: Any, **others: Any) -> Self:
        """Return the angle of a period, or of [0, period]."""
        if not isinstance(value, list):
            return cls(value, **others)
        lo, period = checked_ends(label, value)
        if checks.number(label, lo) != 0:
            raise ValueError(f"a circle begins at 0, and not at {checks.shown(lo)}; give 0 and the period")
        if checks.number(label, period) <= 0:
            sentence = f"{label} is {checks.shown(value)}; the period must be above 0"
            raise RefusedValue(sentence, "ends-in-wrong-order", low=lo, high=period)
        return cls(period, **others)
