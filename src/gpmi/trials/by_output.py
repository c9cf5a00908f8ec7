"""Arguments about values, such as bounds and units: one for the value, or a dict by output in a run with goals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from gpmi._support import checks
from gpmi.trials.goals import Goals
from gpmi.trials.outputs import Y

Value = TypeVar("Value")


def by_output(
    argument: str, given: Any, goals: Goals, checked: Callable[[str, Any], Value], *, form: str, example: str
) -> dict[str, Value]:
    """Return what was given, by output, each validated by checked(name, given); nothing for None.

    `form` says how the argument is given, and `example` is one, both for messages.
    """
    if given is None:
        return {}
    if not goals.named:
        if isinstance(given, Mapping):
            raise TypeError(f"{argument} is {checks.shown(given)}, by output, but the run has no goals; {form}")
        return {Y: checked(argument, given)}
    if not isinstance(given, Mapping):
        remedy = f"give {argument} by output, {{{next(iter(goals))!r}: {example}}}"
        raise TypeError(f"{argument} is {checks.shown(given)}, but the run has goals; {remedy}")
    values = {goals.checked_name(name): checked(f"{argument}[{name!r}]", value) for name, value in given.items()}
    return {name: values[name] for name in goals if name in values}
