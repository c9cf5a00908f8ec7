"""One trial of a run: its point, what was predicted for it, and its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeGuard

import numpy as np

from gpmi._support.text import point, rounded, shortened, trial_line
from gpmi._support.types import Point

# A trial is pending, or it has an outcome: a value was told, it failed, or the point was rejected. An outcome that was
# retracted counts for nothing.
Status: TypeAlias = Literal["pending", "told", "failed", "rejected", "retracted"]
Outcome: TypeAlias = Literal["told", "failed", "rejected"]
Origin: TypeAlias = Literal["design", "policy", "user"]

WHY = 40  # characters of the reason of a failure in the line of a trial; our choice


@dataclass(frozen=True, eq=False, repr=False)
class Trial:
    """One point: where it came from, what was predicted for it, and its outcome."""

    number: int
    x: Point
    y: float | None
    status: Status
    origin: Origin  # asked as part of the initial design, asked by the policy, or told without being asked
    order: int | None = None  # the place of its outcome among all outcomes, from 0; None while it is pending
    # f(x) as predicted when the policy chose x, or when y was told if the policy did not choose it. In units of y:
    # where y was transformed mu is the median, and sd half the width of the central 68 %.
    mu: float | None = None
    sd: float | None = None
    # Of the policy's choice, in units of the transformed y; None where the policy did not choose:
    phi: float | None = None  # phi_t(x_t), for policies of the form mu + phi
    gamma_hat: float | None = None  # the gamma_hat that phi_t was computed with
    explored: bool | None = None  # whether mu was more than one sd of the noise below the best mean at a told point
    # Of the guard of aim="earn" (`gpmi.policies.guard`), in units of y; None where there is no guard:
    charge: float | None = None  # what the account was charged for this query
    zeta: float | None = None  # the weight with which the guard chose it; None where it let the policy choose
    # Under the model of the policy's last choice, extended by the values told since:
    surprise: float | None = None  # (y - mu) / sqrt(var + noise_var)
    information: float | None = None  # what y tells about f, log(1 + var / noise_var) / 2, in nats
    asked: float | None = None  # the time when it was asked, in seconds since 1970; None if it was told without asking
    ended: float | None = None  # the time when its outcome came in
    noise_var: float = 0.0  # the known variance of y, besides the noise that all values have in common
    repeats: int = 1  # of how many evaluations y is the mean: their common noise is divided by it
    y_before: float | None = None  # the first value that it had, where that was corrected or retracted since
    constraints: tuple[float, ...] = ()  # what was measured beside y; the point is feasible where all are <= 0
    why: str | None = None  # why it failed
    fixed: Mapping[Any, Any] | None = None  # the coordinates that were given when it was asked, by name or number

    @property
    def feasible(self) -> bool:
        """Whether a value was told, and every constraint measured beside it is at most 0."""
        return self.status == "told" and all(value <= 0.0 for value in self.constraints)

    @property
    def label(self) -> Any:
        """The label of the row of the DataFrame of candidates that x is; None in other spaces."""
        return getattr(self.x, "label", None)

    def __repr__(self) -> str:
        notes = []
        if self.why is not None:
            notes.append(shortened(self.why, WHY))
        if self.status == "told" and not self.feasible:
            notes.append("infeasible")
        if self.noise_var:
            notes.append(f"noise_var={rounded(self.noise_var)}")
        if self.repeats != 1:
            notes.append(f"mean of {self.repeats}")
        notes += [] if self.fixed is None else [f"given {point(self.fixed)}"]
        if self.y_before is not None:
            notes.append(f"{'corrected, first value' if self.status == 'told' else 'was'} {rounded(self.y_before)}")
        return trial_line(self.number, self.x, self.y, self.status, self.origin, notes)


def names_a_trial(x: Any) -> TypeGuard[Trial | int]:
    """Whether x is a trial or the number of one, and not a point."""
    return isinstance(x, Trial | int | np.integer) and not isinstance(x, bool | np.timedelta64)
