"""One trial of a run: its point, the prediction for it, and its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, TypeAlias, TypeGuard

import numpy as np

from gpmi._support.text import point, rounded, shortened, trial_line
from gpmi._support.types import Point
from gpmi.trials.outcomes import OUTPUTS, Outcome
from gpmi.trials.outputs import NONE, Y

# A trial is pending until it has an outcome: a value was told, it was stopped on the way to the target of its fidelity,
# it failed, or its point was rejected. A retracted trial counts for nothing.
Status: TypeAlias = Literal["pending", "told", "stopped", "failed", "rejected", "retracted"]
Origin: TypeAlias = Literal["design", "policy", "user"]

ENDED = ("told", "stopped", "failed")  # the statuses of trials that count in the budget
WHY = 40  # characters of the reason for a failure in the line of a trial; our choice


class Report(NamedTuple):
    """A value on the way to the target of a fidelity."""

    step: int
    y: float | Mapping[str, float]  # the value there, or the outputs of a run with goals
    order: int  # its place among all outcomes and reports

    @property
    def values(self) -> Mapping[str, float]:
        """What was reported, by output."""
        return self.y if isinstance(self.y, Mapping) else {Y: self.y}


@dataclass(frozen=True, eq=False, repr=False)
class Trial:
    """One point: where it came from, the prediction for it, and its outcome, with the fields of `Outcome`."""

    number: int
    x: Point
    y: float | None
    status: Status
    origin: Origin  # asked as part of the initial design, asked by the policy, or told without being asked
    order: int | None = None  # the place of its outcome among all outcomes, from 0; None while it is pending
    # The prediction of f(x) when the policy chose x, or when y was told if the policy did not choose x. In units of y:
    # where y was transformed, mu is the median and sd half the width of the central 68 %.
    mu: float | None = None
    sd: float | None = None
    # About the policy's choice, in units of the transformed y; None where the policy did not choose:
    phi: float | None = None  # phi_t(x_t), for policies of the form mu + phi
    gamma_hat: float | None = None  # the gamma_hat that phi_t was computed with
    explored: bool | None = None  # whether mu was more than one sd of the noise below the best mean at a told point
    policy_notes: Mapping[str, float] | None = None  # numbers that the policy keeps for its later choices, by name
    # Under the model of the policy's last choice, updated with the values told since:
    surprise: float | None = None  # (y - mu) / sqrt(var + noise_var)
    information: float | None = None  # how much y says about f, log(1 + var / noise_var) / 2, in nats
    # Where the fidelity has levels: log p(y) by the model of all levels minus that by the model of the target alone,
    # both before y was told; None below the target.
    trust: float | None = None
    asked: float | None = None  # the time of the ask, in seconds since 1970; None if it was told without being asked
    ended: float | None = None  # the time of its outcome
    noise_var: float = 0.0  # the known variance of y, in addition to the noise that all values have in common
    repeats: int = 1  # y is the mean of this many evaluations: their common noise is divided by it
    y_before: float | None = None  # its first value, if that was corrected or retracted
    constraints: tuple[float, ...] = ()  # measured together with y; the point is feasible where all are <= 0
    why: str | None = None  # why it failed, was stopped or was rejected
    fixed: Mapping[Any, Any] | None = None  # the fixed coordinates of the ask, by name or number
    # In a run with goals, where y is the output of a single objective:
    outputs: Mapping[str, float] = NONE  # what was measured so far, by output
    output_noise_var: Mapping[str, float] = NONE  # as noise_var, for outputs that have one
    output_repeats: Mapping[str, int] = NONE  # as repeats, for outputs that are means
    outputs_before: Mapping[str, float] | None = None  # its first outputs, if they were corrected or retracted
    unmet: tuple[str, ...] = ()  # the outputs that break their limit, or whose limit is not measured yet
    # Where the fidelity has steps: the values reported at them, in order. The last one is y if the target was reached.
    curve: tuple[Report, ...] = ()
    # Why a value does not fit the others, by output; empty once the user has said that it is right. None: nothing was
    # said about it.
    doubts: Mapping[str, str] | None = None

    @property
    def values(self) -> Mapping[str, float]:
        """What was measured so far, by output."""
        return self.outputs or ({} if self.y is None else {Y: self.y})

    def noise_of(self, output: str) -> tuple[float, int]:
        """Return the noise_var and the repeats of an output."""
        if not self.outputs:
            return self.noise_var, self.repeats
        return self.output_noise_var.get(output, 0.0), self.output_repeats.get(output, 1)

    @property
    def doubt(self) -> str | None:
        """Why its value does not fit the others, with the question whether it is right; None if nothing is doubtful."""
        open_doubts = ((name, why) for name, why in (self.doubts or {}).items() if why)
        return "; ".join(f"{name}: {why}" if self.outputs else why for name, why in open_doubts) or None

    @property
    def feasible(self) -> bool:
        """Whether it has a value that is not doubtful, and breaks neither a constraint nor a limit."""
        return self.status == "told" and not self.is_infeasible and self.doubt is None

    @property
    def is_infeasible(self) -> bool:
        """Whether a constraint measured with its value is above 0, or a limit does not hold or is not measured."""
        return self.status == "told" and (bool(self.unmet) or any(value > 0.0 for value in self.constraints))

    @property
    def label(self) -> Any:
        """The label of x in a DataFrame of candidates; None in other spaces."""
        return getattr(self.x, "label", None)

    def __repr__(self) -> str:
        notes = []
        if self.curve and self.status in ("pending", "stopped", "failed"):
            notes.append(f"at step {self.curve[-1].step}")
        if self.why is not None:
            notes.append(shortened(self.why, WHY))
        if self.doubt is not None:
            notes.append("doubtful")
        if self.is_infeasible:
            unknown = [name for name in self.unmet if name not in self.outputs]
            notes.append(f"{', '.join(unknown)} not measured" if unknown else "infeasible")
        if self.noise_var:
            notes.append(f"noise_var={rounded(self.noise_var)}")
        if self.repeats != 1:
            notes.append(f"mean of {self.repeats}")
        notes += [] if self.fixed is None else [f"fixed {point(self.fixed)}"]
        was = "corrected, first value" if self.status == "told" else "was"
        if self.outputs_before is not None:
            notes.append(f"{was} {point(self.outputs_before)}")
        elif self.y_before is not None:
            notes.append(f"{was} {rounded(self.y_before)}")
        return trial_line(self.number, self.x, self.y, self.status, self.origin, notes, self.outputs)


ABOUT_OUTPUTS = (*OUTPUTS, "outputs_before", "unmet")  # the fields of a run with goals
ABOUT_FIDELITY = ("trust", "curve")  # the fields of a run with a fidelity

# The fields that a model fills: the prediction for a point, and how its value compared with that.
PREDICTIONS = tuple(
    field.name
    for field in fields(Trial)
    if field.name not in {"number", "x", "origin", "order", "asked", "ended", "y_before", "fixed", "curve", "doubts"}
    and field.name not in ABOUT_OUTPUTS
    and field.name not in {other.name for other in fields(Outcome)}
)


def fields_of_type(*types: str) -> tuple[str, ...]:
    """Return the names of the fields of `Trial` with one of these types, optional ones included."""
    return tuple(field.name for field in fields(Trial) if str(field.type).removesuffix(" | None") in types)


def names_a_trial(x: Any) -> TypeGuard[Trial | int]:
    """Whether x is a trial or its number, and not a point."""
    return isinstance(x, Trial | int | np.integer) and not isinstance(x, bool | np.timedelta64)


def is_doubts(given: Any) -> TypeGuard[Mapping[str, str]]:
    """Whether something is a text for each of some outputs."""
    return isinstance(given, Mapping) and all(isinstance(text, str) for pair in given.items() for text in pair)


def value_of(outcome: Outcome) -> float | Mapping[str, float]:
    """Return the value of an outcome: its outputs, or y."""
    assert outcome.outputs or outcome.y is not None
    return outcome.outputs or outcome.y or 0.0
