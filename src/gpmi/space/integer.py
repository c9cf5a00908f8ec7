"""A whole number in a range: its coordinate is its value, or the natural logarithm of it with log=True."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any, Self

import numpy as np

from gpmi._support import checks
from gpmi._support.refusals import RefusedValue
from gpmi._support.types import Array, Numbers
from gpmi.space.domain import NumberRange
from gpmi.space.fields import LARGEST, FieldsOnly, check_interval, check_unit, check_when, checked_ends

# The logarithms of neighbours must differ, too: those of 10^12 and 10^12 + 1 are 280 floats apart. Our choice.
_LARGEST_LOG = 10**12
_MOST_LEVELS = 10**7  # an Int with up to this many levels holds them in one array, here of 80 MB; our choice
_SPREAD = 256  # evenly spread levels that are tried of an Int with more, besides some near the present one; not tuned


@dataclass(frozen=True, repr=False)
class Int(FieldsOnly):
    """A whole number in lo, lo + step, ..., up to hi. `log`, `when` and `unit` are as for `Real`."""

    lo: int
    hi: int
    log: bool = False
    step: int = field(default=1, kw_only=True)
    when: Mapping[str, Any] | None = field(default=None, kw_only=True)
    unit: str = field(default="", kw_only=True, compare=False)

    def __post_init__(self) -> None:
        for end in ("lo", "hi"):
            if not isinstance(getattr(self, end), Integral):
                raise TypeError(f"{end} of Int is {checks.shown(getattr(self, end))}; give a whole number")
        check_when(self)
        check_unit(self)
        check_interval(self, "a whole number")
        object.__setattr__(self, "step", checks.whole("step of Int", self.step, 1))
        object.__setattr__(self, "lo", int(self.lo))
        object.__setattr__(self, "hi", int(self.hi))
        if self.step > (width := self.hi - self.lo):
            sentence = f"step of Int is {self.step}, but hi - lo is {width}; give a smaller step"
            raise RefusedValue(sentence, "step-too-large", step=self.step, range=width)
        object.__setattr__(self, "hi", self.lo + (self.count - 1) * self.step)
        if max(-self.lo, self.hi) > (_LARGEST_LOG if self.log else LARGEST):
            raise ValueError(f"Int({self.lo}, {self.hi}) has too large values; use Real and round in f")

    width, ordered, circular, choice = 1, True, False, None
    kind_in_words = "whole number"

    @property
    def domain(self) -> NumberRange:
        return NumberRange(self.lo, self.hi, self.log, self.step, whole=True)

    @property
    def limits(self) -> tuple[float, float]:
        return float(self.lo), float(self.hi)

    @property
    def count(self) -> int:
        return (self.hi - self.lo) // self.step + 1

    @cached_property
    def levels(self) -> Array:
        """All values as coordinates, (count, 1)."""
        levels = np.arange(self.lo, self.hi + 1, self.step, dtype=float)
        if self.log:
            levels = np.fromiter(map(math.log, range(self.lo, self.hi + 1, self.step)), float, len(levels))
        levels.flags.writeable = False
        return levels[:, None]

    @property
    def ends(self) -> Array:
        return np.array([[math.log(end) if self.log else float(end)] for end in (self.lo, self.hi)])

    def from_unit(self, u: Array) -> Array:
        if not self.log:
            return self.from_levels(np.minimum((u * self.count).astype(np.intp), self.count - 1))
        half = 0.5 * self.step  # a value stands for the interval around it, so equal parts of log x have equal weight
        lo, hi = math.log(max(self.lo - half, 0.5 * self.lo)), math.log(self.hi + half)
        return self.from_levels(self._number_of(np.exp(lo + u * (hi - lo))))

    def from_levels(self, numbers: Array | Numbers) -> Array:
        values = self.lo + self.step * np.asarray(numbers, dtype=float)
        return np.array([math.log(v) for v in values])[:, None] if self.log else values[:, None]

    def level_numbers(self, rows: Array) -> Array:
        return self._number_of(np.exp(rows[:, 0]) if self.log else rows[:, 0])

    def values(self, numbers: Array) -> Array:
        return self.lo + self.step * numbers

    def _number_of(self, values: Array) -> Array:
        return np.clip(np.round((values - self.lo) / self.step), 0, self.count - 1)

    def levels_to_try(self, row: Array) -> Array:
        if self.count <= _MOST_LEVELS:
            return self.levels
        here, jumps = self.level_numbers(row[None]), 2.0 ** np.arange(int(math.log2(self.count)) + 1)
        spread = self.level_numbers(self.from_unit(np.linspace(0.0, 1.0, _SPREAD)))
        numbers = np.concatenate([spread, here, here + jumps, here - jumps])
        return self.from_levels(np.unique(np.clip(numbers, 0, self.count - 1)))

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        number = checks.number(name, value, "give a whole number")
        if number != round(number):
            sentence = f"{name} is {checks.shown(value)}; it must be a whole number"
            raise RefusedValue(sentence, "not-whole", name=name, value=value)
        exact = int(value) if isinstance(value, Integral) else int(number)
        if not self.lo <= exact <= self.hi:
            sentence = f"{name} is {checks.shown(value)}, outside {self.lo}..{self.hi}; give a value inside"
            raise RefusedValue(sentence, "outside", name=name, value=value, low=self.lo, high=self.hi)
        if (exact - self.lo) % self.step:
            wanted = f"{self.lo} plus a multiple of {self.step}"
            sentence = f"{name} is {checks.shown(value)}, not {wanted}; tell points of the space"
            raise RefusedValue(sentence, "between-steps", name=name, value=value, low=self.lo, step=self.step)
        return (math.log(number) if self.log else number + 0.0,)

    def decode(self, row: Array) -> int:
        value = math.exp(row[0]) if self.log else row[0]
        if self.step > 1:
            value = self.lo + round((value - self.lo) / self.step) * self.step
        return min(max(round(value), self.lo), self.hi)

    def canonical(self, value: Any) -> int:
        return int(value)

    def nearest(self, number: float) -> int:
        return round(number)

    def grid(self, points: int) -> Array:
        values = np.unique(self.levels_to_try(self.ends[0]), axis=0)
        return thinned(values, points)

    @classmethod
    def from_plain(cls, label: str, value: Any, **others: Any) -> Self:
        return cls(*checked_ends(label, value), **others)


def thinned(values: Array, most: int) -> Array:
    """Return at most `most` of the ascending values (k, 1), evenly spread, with both ends."""
    if len(values) <= most:
        return values
    wanted = np.linspace(values[0, 0], values[-1, 0], most)
    return np.take(values, np.unique(np.searchsorted(values[:, 0], wanted).clip(0, len(values) - 1)), axis=0)
