"""What a trial may end with: a value with its noise and its constraints, or a failure with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpmi._support import checks
from gpmi._support.checks import LARGEST
from gpmi._support.text import shortened
from gpmi._support.types import Array, Mask
from gpmi.gp.replicates import places_of

REASON = 200  # characters of the reason of a failure that are kept: our choice, a line or two


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The points that were told or have failed, in the order of their outcomes, and the constraints measured there."""

    x: Array  # (n, d), coordinates
    failed: Mask  # (n,)
    constraints: Array  # (t, k), of the t points that were told, in their order; a point is feasible where all are <= 0

    @property
    def success(self) -> Mask:
        """Which of them were told a value, (n,)."""
        return ~self.failed

    @property
    def told(self) -> Array:
        """The coordinates of the points that were told, (t, d)."""
        return self.x[~self.failed]

    @property
    def feasible(self) -> Mask:
        """Which of the values told came with constraints that are all <= 0, (t,)."""
        feasible: Mask = np.all(self.constraints <= 0.0, axis=1)
        return feasible

    def after(self, t: int) -> Outcomes:
        """Those up to the t-th value told."""
        (told,) = np.nonzero(~self.failed)
        end = len(self.x) if t == len(told) else int(told[t - 1]) + 1
        return Outcomes(self.x[:end], self.failed[:end], self.constraints[:t])

    def feasible_at(self, x: Array) -> Mask:
        """At which of the told points x (m, d) the constraints were <= 0 in the mean over the values there. O(t + m)"""
        (m, k), told = (len(x), self.constraints.shape[1]), self.told
        place = places_of(np.concatenate([x.reshape(m, -1), told]))
        sums = np.zeros((int(place.max(initial=-1)) + 1, k))
        np.add.at(sums, place[m:], self.constraints)
        good: Mask = np.all(sums[place[:m]] <= 0.0, axis=1)
        return good


def checked_constraints(constraints: Any, count: int | None) -> tuple[float, ...]:
    """The values of the constraints measured beside y, as many as with the other values; None stands for none.

    `count` is how many those had; None before the first value.
    """
    remedy = "give a list of finite numbers, feasible where they are <= 0, the same number of them with every value"
    if constraints is None:
        values: tuple[float, ...] = ()
    else:
        shape = checks.shape(constraints)
        if shape is None or len(shape) != 1:
            raise TypeError(f"constraints is {checks.shown(constraints)}; {remedy}")
        values = tuple(checks.number(f"constraints[{i}]", value, remedy) for i, value in enumerate(constraints))
    if any(abs(value) > LARGEST for value in values):
        raise ValueError(f"constraints is {checks.shown(constraints)}; give values below {LARGEST:g}, in other units")
    if count is not None and len(values) != count:
        raise ValueError(
            f"constraints is {checks.shown(constraints)}, but {count} came with the values before; {remedy}"
        )
    return values


def checked_why(why: Any) -> str | None:
    """The reason of a failure in one line; None if there is none."""
    if why is None:
        return None
    if not isinstance(why, str):
        raise TypeError(f"why is {checks.shown(why)}; give the reason in words, or leave it out")
    return shortened(why, REASON)
