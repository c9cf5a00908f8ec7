"""A number in an interval: its coordinate is its value, or the natural logarithm of it with log=True.

Logarithms come from `math`. The last digit of numpy.log depends on the processor and on the memory layout of the array,
so the coordinate of a value at the end of the interval would not always be the end of the coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, Self

import numpy as np

from gpmi._support import checks
from gpmi._support.refusals import RefusedValue
from gpmi._support.types import Array, Numbers
from gpmi.space.domain import NumberRange
from gpmi.space.fields import FieldsOnly, check_interval, check_unit, check_when, checked_ends

_FINEST = 1e-9  # of the interval: a finer step is none; our choice
_SNAP = 1e-6  # of a step: a value closer to a setting is that setting, up to rounding; our choice
ON_STEP = 1e-9  # of a step: closer to a setting is on it; our choice


class Continuous(FieldsOnly):
    """A number with infinitely many values. Its level number is its coordinate."""

    step: float | None

    width, count, ordered, circular, choice = 1, None, True, False, None

    @property
    def domain(self) -> NumberRange:
        raise NotImplementedError

    @property
    def ends(self) -> Array:
        raise NotImplementedError

    def from_unit(self, u: Array) -> Array:
        lo, hi = self.ends
        result: Array = np.clip(lo + u[:, None] * (hi - lo), lo, hi)
        return result

    def from_levels(self, numbers: Array | Numbers) -> Array:
        return np.asarray(numbers, dtype=float)[:, None]

    def level_numbers(self, rows: Array) -> Array:
        return rows[:, 0]

    def levels_to_try(self, row: Array) -> Array:
        return row[None]

    def grid(self, points: int) -> Array:
        lo, hi = self.ends[:, 0]
        return np.linspace(lo, hi, points)[:, None]

    def place(self, value: float) -> float:
        """Return how many steps a value is above the smallest one."""
        assert self.step is not None
        return (value - self.domain.lo) / self.step

    def setting(self, number: int) -> float:
        """Return lo + number * step in decimal arithmetic: 0.3, and not 0.30000000000000004."""
        assert self.step is not None
        lo, hi = self.domain.lo, self.domain.hi
        value = float(Decimal(repr(lo)) + number * Decimal(repr(self.step)))
        return value if self.circular else min(max(value, lo), hi)

    def settings_near(self, value: float, sides: int) -> list[float]:
        """Return the settings around a value, at most `sides` below it and above it."""
        place, last = self.place(value), math.floor(self.place(self.domain.hi) + ON_STEP)
        near = round(place)
        below, above = (near, near) if abs(place - near) < ON_STEP else (math.floor(place), math.floor(place) + 1)
        first, end = below - sides + 1, above + sides
        numbers = range(first, end) if self.circular else range(max(0, min(first, last)), min(last + 1, end))
        return [self.setting(number) for number in numbers]

    def snapped(self, value: float) -> float:
        """Return the setting that a value is, up to rounding; otherwise the value."""
        if self.step is None or abs((place := self.place(value)) - round(place)) > _SNAP:
            return value
        return self.setting(round(place))  # exp(log(19)) may round to another number than 19

    def nearest(self, number: float) -> float:
        if self.step is None:
            return number
        return min(self.settings_near(number, 1), key=lambda setting: abs(setting - number))


@dataclass(frozen=True, repr=False)
class Real(Continuous):
    """A number in [lo, hi]. With log=True its order of magnitude matters, not its value.

    With a `step` it can be set to lo, lo + step, ... only, as by an instrument: what is suggested or recommended is one
    of these, and any other number in the interval may be told.

    With `when` it exists only under a condition: when={"kernel": "rbf"}, or with a list of values. `unit` is a label
    for people: pages and figures show it, and nothing is computed from it.
    """

    lo: float
    hi: float
    log: bool = False
    step: float | None = field(default=None, kw_only=True)
    when: Mapping[str, Any] | None = field(default=None, kw_only=True)
    unit: str = field(default="", kw_only=True, compare=False)

    kind_in_words = "number"

    def __post_init__(self) -> None:
        check_when(self)
        check_unit(self)
        check_interval(self, "a finite number")
        object.__setattr__(self, "lo", float(self.lo))
        object.__setattr__(self, "hi", float(self.hi))
        if self.step is not None:
            step = checks.positive("step of Real", self.step)
            if step > (width := self.hi - self.lo):
                sentence = f"step of Real is {step:g}, but hi - lo is {width:g}; give a smaller step"
                raise RefusedValue(sentence, "step-too-large", step=step, range=width)
            if step < _FINEST * (self.hi - self.lo):
                raise ValueError(f"step of Real is {step:g}, too fine for [{self.lo:g}, {self.hi:g}]; leave it out")
            object.__setattr__(self, "step", step)

    @property
    def domain(self) -> NumberRange:
        return NumberRange(self.lo, self.hi, self.log, self.step)

    @property
    def limits(self) -> tuple[float, float]:
        return self.lo, self.hi

    @cached_property
    def _ends(self) -> tuple[float, float]:
        return (math.log(self.lo), math.log(self.hi)) if self.log else (self.lo, self.hi)

    @property
    def ends(self) -> Array:
        return np.array(self._ends)[:, None]

    def values(self, numbers: Array) -> Array:
        return np.clip(np.exp(numbers), self.lo, self.hi) if self.log else numbers

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        number = checks.number(name, value)
        if not self.lo <= number <= self.hi:
            sentence = f"{name} is {checks.shown(value)}, outside [{self.lo}, {self.hi}]; give a value inside"
            raise RefusedValue(sentence, "outside", name=name, value=value, low=self.lo, high=self.hi)
        return (math.log(number) if self.log else number + 0.0,)

    def decode(self, row: Array) -> float:
        at, (lo, hi) = float(row[0]), self._ends
        if at <= lo or at >= hi:  # exp(log(hi)) may round to another number than hi
            return self.lo if at <= lo else self.hi
        return self.snapped(min(max(float(np.exp(row[0])) if self.log else at, self.lo), self.hi))

    def canonical(self, value: Any) -> float:
        return float(value) + 0.0  # -0.0 is 0.0

    def to_json(self) -> dict[str, Any]:
        values = super().to_json()
        if self.step is None:  # so that versions without steps read it
            del values["step"]
        return values

    @classmethod
    def from_plain(cls, label: str, value: Any, **others: Any) -> Self:
        return cls(*checked_ends(label, value), **others)
