"""Numbers by output: what one evaluation measured, and how such numbers are validated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from gpmi._support import checks
from gpmi._support.checks import LARGEST, checked_noise
from gpmi._support.types import FrozenPoint

Y = "y"  # the output that its user does not name


class Outputs(FrozenPoint):
    """Numbers by output, such as what one evaluation measured: a read-only dict."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("the outputs of a trial cannot be changed; correct the trial, or change a copy, dict(outputs)")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse


NONE = Outputs()  # no outputs


def checked_output(name: str, value: Any) -> float:
    """Return one measured output as a finite number that is small enough to square."""
    return small_number(
        name, value, "give one finite number, leave out an output that was not measured, or call fail(x)"
    )


def small_number(name: str, value: Any, remedy: str = "give one finite number") -> float:
    """Return a finite number that is small enough to square."""
    result = checks.number(str(name), value, remedy)
    if abs(result) > LARGEST:
        raise ValueError(f"{name} is {value!r}, too large to square; give values below {LARGEST:g}, in other units")
    return result


def checked_outputs(status: str, outputs: Any, noise_var: Any, repeats: Any) -> dict[str, Any]:
    """Return the fields of an outcome that has outputs, validated: the outputs, and what differs from a plain value."""
    for name, given in (("outputs", outputs), ("noise_var", noise_var), ("repeats", repeats)):
        if not isinstance(given, Mapping):
            raise TypeError(f"{name} is {checks.shown(given)}; give numbers by output")
    if status != "told":
        shown = checks.shown(dict(outputs))
        raise ValueError(f"outputs is {shown}, but the trial is {status}; only a told trial has outputs")
    values = {name: checked_output(name, value) for name, value in outputs.items()}
    variances, means = dict[str, float](), dict[str, int]()
    for name in values:
        given_noise, given_repeats = noise_var.get(name, 0.0), repeats.get(name, 1)
        variances[name], means[name] = checked_noise(given_noise, given_repeats, output=name)
    return {
        "outputs": Outputs(values),
        "output_noise_var": Outputs({name: variance for name, variance in variances.items() if variance != 0.0}),
        "output_repeats": Outputs({name: count for name, count in means.items() if count != 1}),
    }


def by_output(argument: str, given: Any, outputs: Mapping[str, float]) -> Outputs:
    """Return a number for each output, given as one for all or as a dict; refuse an output that has no value."""
    if not isinstance(given, Mapping):
        return Outputs(dict.fromkeys(outputs, given))
    for name in given:
        if name not in outputs:
            measured = ", ".join(map(repr, outputs))
            raise ValueError(f"{argument} has {checks.shown(name)}, which y has not; give it for {measured} alone")
    return Outputs(given)
