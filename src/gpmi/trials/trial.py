"""One trial of a run: its point, the prediction for it, and its outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple, TypeAlias, TypeGuard, get_args

import numpy as np

from gpmi._support import checks
from gpmi._support.checks import checked_value
from gpmi._support.text import point, rounded, shortened, trial_line
from gpmi._support.types import Point
from gpmi.trials.goals import Goals
from gpmi.trials.outcomes import OUTPUTS, Ending, Outcome, check_count, details_of
from gpmi.trials.outputs import NONE, Outputs, Y, checked_output

# A trial is pending until it has an outcome: a value was told, it was stopped on the way to the target of its fidelity,
# it failed, or its point was rejected. A retracted trial counts for nothing.
Status: TypeAlias = Literal["pending", "told", "stopped", "failed", "rejected", "retracted"]
Origin: TypeAlias = Literal["design", "policy", "user"]

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
    def feasible(self) -> bool:
        """Whether it has a value, every constraint measured with it is at most 0, and every limit holds."""
        return self.status == "told" and not self.unmet and all(value <= 0.0 for value in self.constraints)

    def with_goals(self, goals: Goals) -> Trial:
        """Return the trial for a run with these goals, where y is the output of a single objective.

        Refuse outputs without a goal, and y where there are several objectives.
        """
        if self.outputs or self.outputs_before:
            for name in {**self.outputs, **(self.outputs_before or {})}:
                if name not in goals:
                    remedy = f"give it one, such as goals={{..., {name!r}: None}} to watch it"
                    raise ValueError(f"trial {self.number} has the output {name!r}, which has no goal here; {remedy}")
            return self
        if self.y is None and self.y_before is None:
            return self
        single = goals.single
        if single is None or self.constraints:
            has = "constraints" if self.constraints else "one value y"
            raise ValueError(f"trial {self.number} has {has}, but the run has goals; give (x, {goals.example}) instead")
        return replace(
            self,
            outputs=NONE if self.y is None else Outputs({single: self.y}),
            output_noise_var=Outputs({single: self.noise_var}) if self.noise_var else NONE,
            output_repeats=Outputs({single: self.repeats}) if self.repeats != 1 else NONE,
            outputs_before=None if self.y_before is None else Outputs({single: self.y_before}),
        )

    def adopted(self, goals: Goals, *, has_steps: bool) -> Trial:
        """Return the trial as another run has it: with the outputs of its goals, or with one value y.

        Where one of the two runs has goals, y stands for the output of a single objective. Refuse anything else.
        """
        if self.curve and not has_steps:
            remedy = "give it a fidelity with steps, gpmi.Fidelity(1, 52)"
            raise ValueError(f"trial {self.number} has a curve, but this space has no steps; {remedy}")
        if goals.named:
            return self.with_goals(goals)
        if self.status == "told" and self.y is None:
            names = ", ".join(self.outputs)
            raise ValueError(f"trial {self.number} has the outputs {names} and no single y; {checks.SEVERAL}")
        nothing: Any = {**dict.fromkeys(OUTPUTS, NONE), "outputs_before": None, "unmet": ()}
        return replace(self, **nothing)

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
        if self.status == "told" and not self.feasible:
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
    if field.name not in {"number", "x", "origin", "order", "asked", "ended", "y_before", "fixed", "curve"}
    and field.name not in ABOUT_OUTPUTS
    and field.name not in {other.name for other in fields(Outcome)}
)


def fields_of_type(*types: str) -> tuple[str, ...]:
    """Return the names of the fields of `Trial` with one of these types, optional ones included."""
    return tuple(field.name for field in fields(Trial) if str(field.type).removesuffix(" | None") in types)


def names_a_trial(x: Any) -> TypeGuard[Trial | int]:
    """Whether x is a trial or its number, and not a point."""
    return isinstance(x, Trial | int | np.integer) and not isinstance(x, bool | np.timedelta64)


def checked_trials(trials: Iterable[Any], count: int | None) -> list[Trial]:
    """Validate the trials of another run; every value has `count` constraints, or as many as the first of them."""
    checked = [_checked(trial) for trial in trials]
    for trial in checked:
        if trial.status == "told":
            count = check_count(trial.constraints, count)
    return checked


def _checked(trial: Any) -> Trial:
    """Validate what the log needs of a trial, except its point; predictions are taken as they are."""
    if not isinstance(trial, Trial):
        raise TypeError(f"trials has {trial!r}; give the trials of a Result or an Optimizer")
    checks.whole("number", trial.number, 0)
    checks.one_of("status", trial.status, get_args(Status))
    checks.one_of("origin", trial.origin, get_args(Origin))
    if trial.order is not None:
        checks.whole("order", trial.order, 0)
    outcome = Outcome("told" if trial.status == "told" else "failed", trial.y, **details_of(trial)).checked()
    curve = _checked_curve(trial)
    first = trial.outputs_before if trial.status in ("told", "retracted") and trial.outputs_before else None
    if outcome.outputs or first is not None:  # y and the fields about it follow from the outputs
        earliest = first_outcome(trial)
        kept = outcome if outcome.outputs else replace(earliest, outputs=NONE)  # a retracted one keeps its error bars
        own = {name: getattr(kept, name) for name in OUTPUTS}
        return replace(trial, outputs_before=None if first is None else earliest.outputs, curve=curve, **own)
    before = None if trial.y_before is None else checked_value(trial.y_before)
    return replace(trial, y=outcome.y, y_before=before, outputs_before=None, curve=curve, **details_of(outcome))


def _checked_curve(trial: Trial) -> tuple[Report, ...]:
    remedy = "give a list of [step, value, place among all outcomes]"
    if not isinstance(trial.curve, list | tuple):
        raise TypeError(f"curve is {checks.shown(trial.curve)}; {remedy}")
    found: list[Report] = []
    for one in trial.curve:
        if not isinstance(one, list | tuple) or len(one) != 3:
            raise TypeError(f"curve has {checks.shown(one)}; {remedy}")
        step, order = checks.whole("step", one[0], 1), checks.whole("order", one[2], 0)
        if found and step <= found[-1].step:
            raise ValueError(f"curve has step {step} after {found[-1].step}; give its steps in order")
        found.append(Report(step, _checked_report(one[1]), order))
    return tuple(found)


def _checked_report(y: Any) -> float | Mapping[str, float]:
    """Validate a value of a curve: a number, or outputs by name."""
    if not isinstance(y, Mapping):
        return checked_value(y)
    return Outputs({name: checked_output(name, value) for name, value in y.items()})


def value_of(outcome: Outcome) -> float | Mapping[str, float]:
    """Return the value of an outcome: its outputs, or y."""
    assert outcome.outputs or outcome.y is not None
    return outcome.outputs or outcome.y or 0.0


def in_order(trials: Sequence[Trial], last_step: Callable[[int], int]) -> list[tuple[int, Report | None]]:
    """Return the outcomes of trials and the values of their curves in their order, by the index of the trial.

    None stands for the outcome, which has the value at last_step(index).
    """
    changes: list[tuple[bool, int, bool, int, Report | None]] = []
    for i, trial in enumerate(trials):
        changes += [(False, one.order, False, i, one) for one in trial.curve if one.step != last_step(i)]
        if trial.status != "pending":
            changes.append((trial.order is None, trial.order or 0, True, i, None))
    return [(i, report) for *_, i, report in sorted(changes, key=lambda change: change[:4])]


def reported_outcome(report: Report) -> Outcome:
    """Return the value of a curve as an outcome."""
    return Outcome("told", outputs=Outputs(report.y)) if isinstance(report.y, Mapping) else Outcome("told", report.y)


def first_outcome(trial: Trial) -> Outcome:
    """Return the outcome of a trial as it was before it was corrected or retracted, validated."""
    if outputs := trial.outputs if trial.outputs_before is None else trial.outputs_before:
        return Outcome("told", **{**details_of(trial), "outputs": outputs}).checked()
    y = trial.y if trial.y_before is None else trial.y_before
    ending: Ending = "failed" if trial.status not in ("rejected", "stopped") else trial.status
    return Outcome("told" if y is not None else ending, y, **details_of(trial))
