"""What an output may be for: to be optimised (`Max`, `Min`, `Match`), or limited (`AtLeast`, `AtMost`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from gpmi._support import checks
from gpmi._support.text import rounded
from gpmi._support.types import Array
from gpmi.trials.outputs import small_number


@dataclass(frozen=True)
class Max:
    """Make the output as large as possible; `at_least` is the worst value you would still accept."""

    at_least: float | None = None
    larger_is_better: ClassVar[bool] = True  # of the values as they are shown

    def __post_init__(self) -> None:
        _check_optional(self, "at_least")

    def oriented(self, y: Array) -> Array:
        """Return the values so that larger is better."""
        return y

    @property
    def reference(self) -> float | None:
        """The worst acceptable value, oriented so that larger is better; None if none was stated."""
        return self.at_least

    def __str__(self) -> str:
        return "max" if self.at_least is None else f"max, at least {rounded(self.at_least)}"


@dataclass(frozen=True)
class Min:
    """Make the output as small as possible; `at_most` is the worst value you would still accept."""

    at_most: float | None = None
    larger_is_better: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_optional(self, "at_most")

    def oriented(self, y: Array) -> Array:
        """Return the values so that larger is better."""
        result: Array = 0.0 - y
        return result

    @property
    def reference(self) -> float | None:
        """The worst acceptable value, oriented so that larger is better; None if none was stated."""
        return None if self.at_most is None else 0.0 - self.at_most

    def __str__(self) -> str:
        return "min" if self.at_most is None else f"min, at most {rounded(self.at_most)}"


@dataclass(frozen=True)
class Match:
    """Bring the output close to `target`: minimise |y - target|. More than `within` away is not acceptable.

    The model is the one of y, and the policy uses the distribution of |y - target| that follows from it.
    """

    target: float
    within: float | None = None  # required; None only to explain that
    larger_is_better: ClassVar[bool] = False  # of the distances that are shown

    def __post_init__(self) -> None:
        _check(self, "target")
        if self.within is None:
            raise TypeError(
                f"within is None; give the distance from the target that you accept, as in "
                f"gpmi.Match({rounded(self.target)}, within=1)"
            )
        object.__setattr__(self, "within", checks.positive("within", self.within))

    def oriented(self, y: Array) -> Array:
        """Return minus the distance from the target: larger is better."""
        result: Array = -np.abs(y - self.target)
        return result

    @property
    def reference(self) -> float:
        """The worst acceptable value, oriented so that larger is better."""
        assert self.within is not None
        return -self.within

    def __str__(self) -> str:
        return f"match {rounded(self.target)} within {rounded(self.reference * -1.0)}"


@dataclass(frozen=True)
class AtLeast:
    """The output must be at least `value`: a limit, not an objective."""

    value: float
    sign: ClassVar[float] = -1.0

    def __post_init__(self) -> None:
        _check(self, "value")

    def excess(self, y: Array) -> Array:
        """Return by how much the limit is broken; it holds where this is <= 0."""
        result: Array = self.value - y
        return result

    @property
    def reference(self) -> float:
        """The worst acceptable value, oriented so that larger is better."""
        return self.value

    def __str__(self) -> str:
        return f"at least {rounded(self.value)}"


@dataclass(frozen=True)
class AtMost:
    """The output must be at most `value`: a limit, not an objective."""

    value: float
    sign: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        _check(self, "value")

    def excess(self, y: Array) -> Array:
        """Return by how much the limit is broken; it holds where this is <= 0."""
        result: Array = y - self.value
        return result

    @property
    def reference(self) -> float:
        """The worst acceptable value, oriented so that larger is better."""
        return -self.value

    def __str__(self) -> str:
        return f"at most {rounded(self.value)}"


Objective: TypeAlias = Max | Min | Match
Limit: TypeAlias = AtLeast | AtMost
Goal: TypeAlias = Objective | Limit | None
KINDS = {kind.__name__: kind for kind in (Max, Min, Match, AtLeast, AtMost)}


def _check(goal: Any, field: str) -> None:
    object.__setattr__(goal, field, small_number(field, getattr(goal, field)))


def _check_optional(goal: Any, field: str) -> None:
    if getattr(goal, field) is not None:
        _check(goal, field)
