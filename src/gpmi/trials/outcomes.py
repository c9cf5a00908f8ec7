"""How a trial ends: with a value, a failure or a rejection. `Outcome` has the fields and their checks.

To add a field to an outcome, add it to `Details` and `Outcome` here, to `Trial`, and to the signatures of
`Optimizer.tell` and `Optimizer.correct`. The log, studies, tables and files derive theirs from these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias, TypedDict, Unpack

from gpmi._support import checks
from gpmi._support.checks import LARGEST, checked_noise, checked_value
from gpmi._support.name_hints import name_hint
from gpmi._support.text import shortened
from gpmi.trials.outputs import NONE, Outputs, checked_outputs

Ending: TypeAlias = Literal["told", "stopped", "failed", "rejected"]  # the status of a trial with an outcome

REASON = 200  # characters of the reason for a failure that are kept: our choice, a line or two


class Details(TypedDict, total=False):
    """The keyword arguments of `tell`: what is known about a value besides the value itself."""

    noise_var: float | Mapping[str, float]  # by output in a run with goals, or one number
    repeats: int | Mapping[str, int]
    constraints: Sequence[float] | None


@dataclass(frozen=True)
class Outcome:
    """A value with its noise and its constraints, a stop or a failure with its reason, or a rejection.

    `Trial` has the same fields; its comments say what they mean.
    """

    status: Ending
    y: float | None = None
    noise_var: float = 0.0
    repeats: int = 1
    constraints: tuple[float, ...] = ()
    why: str | None = None
    outputs: Mapping[str, float] = NONE
    output_noise_var: Mapping[str, float] = NONE
    output_repeats: Mapping[str, int] = NONE

    @staticmethod
    def value(y: float, **details: Unpack[Details]) -> Outcome:
        """Return a value with its details, validated."""
        given: Any = checked_details(details)
        return Outcome("told", y, **given).checked()

    @staticmethod
    def failure(why: str | None = None) -> Outcome:
        """Return a failure with its reason, validated."""
        return Outcome("failed", why=why).checked()

    @staticmethod
    def stop(why: str | None = None) -> Outcome:
        """Return the end of an evaluation on the way to the target of its fidelity, with its reason, validated."""
        return Outcome("stopped", why=why).checked()

    @staticmethod
    def rejection(why: str | None = None) -> Outcome:
        """Return a rejection with its reason, validated: the point will not or cannot be evaluated."""
        return Outcome("rejected", why=why).checked()

    def checked(self) -> Outcome:
        """Return the outcome with every field validated and converted.

        The log derives y from outputs (`Log.settle`). It checks the number of constraints, which depends on the other
        values.
        """
        if self.outputs or not isinstance(self.outputs, Mapping):
            outputs = checked_outputs(self.status, self.outputs, self.output_noise_var, self.output_repeats)
            return Outcome(self.status, **outputs)
        y = checked_value(self.y) if self.status == "told" else None
        noise_var, repeats = checked_noise(self.noise_var, self.repeats)
        limits, why = checked_constraints(self.constraints), checked_why(self.why)
        return Outcome(self.status, y, noise_var, repeats, limits, why)

    def corrected(self, y: float | None = None, **details: Unpack[Details]) -> Outcome:
        """Return another value in its place; details that are None or left out stay as they are."""
        given: Any = {name: detail for name, detail in details.items() if detail is not None}
        return replace(self, status="told", y=y, why=None, **given).checked()

    def with_outputs(self, later: Outcome) -> Outcome:
        """Return the outcome with the outputs of another one added, in place of those that it has already."""
        values = {**self.outputs, **later.outputs}
        merged: dict[str, Any] = {"outputs": Outputs(values)}
        for name in ("output_noise_var", "output_repeats"):
            kept = {
                key: number for key, number in getattr(self, name).items() if key in values and key not in later.outputs
            }
            merged[name] = Outputs({**kept, **getattr(later, name)})
        return Outcome("told", **merged)


DEFAULTS: Mapping[str, Any] = {field.name: field.default for field in fields(Outcome) if field.name != "status"}
STORED = tuple(DEFAULTS)  # the fields besides the status, which is the kind of a stored entry
DETAILS = tuple(name for name in STORED if name != "y")
OUTPUTS = ("outputs", "output_noise_var", "output_repeats")


def details_of(source: Any) -> dict[str, Any]:
    """Return the fields of a trial or an outcome that are about its outcome, without the status and the value."""
    return {name: getattr(source, name) for name in DETAILS}


def checked_constraints(constraints: Any) -> tuple[float, ...]:
    """Return the constraints measured with a value as numbers; None stands for none."""
    if constraints is None:
        return ()
    shape = checks.shape(constraints)
    if shape is None or len(shape) != 1:
        raise TypeError(f"constraints is {checks.shown(constraints)}; {_REMEDY}")
    values = tuple(checks.number(f"constraints[{i}]", value, _REMEDY) for i, value in enumerate(constraints))
    if any(abs(value) > LARGEST for value in values):
        raise ValueError(f"constraints is {checks.shown(constraints)}; give values below {LARGEST:g}, in other units")
    return values


def check_count(constraints: Sequence[float], count: int | None) -> int:
    """Raise unless there are `count` constraints, as with earlier values (None: no earlier values)."""
    if count is not None and len(constraints) != count:
        shown = checks.shown(list(constraints) or None)  # no constraints are usually an argument left out
        raise ValueError(f"constraints is {shown}, but {count} came with the values before; {_REMEDY}")
    return len(constraints)


_REMEDY = "give a list of finite numbers, feasible where they are <= 0, the same number of them with every value"


def checked_details(details: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the keyword arguments of `tell`; refuse a name that is none of them."""
    if unknown := details.keys() - Details.__annotations__.keys():
        name = min(unknown)
        hint = name_hint(name, ("x", "y", *Details.__annotations__))
        raise TypeError(f"{name} is not an argument of tell; {hint}")
    return details


def checked_why(why: Any) -> str | None:
    """Return the reason for a failure, shortened to one line; None if there is none."""
    if why is None:
        return None
    if not isinstance(why, str):
        raise TypeError(f"why is {checks.shown(why)}; give the reason as a string, or leave it out")
    return shortened(why, REASON)
