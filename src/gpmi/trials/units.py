"""Units of results: labels for people, from which nothing is computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from gpmi._support import checks
from gpmi._support.text import shortened
from gpmi.space.fields import UNIT
from gpmi.trials.goals import Goals
from gpmi.trials.outputs import Y

Units: TypeAlias = dict[str, str]  # by output


def checked_unit(name: str, given: Any) -> str:
    """Return a unit, shortened; refuse anything that is not text."""
    if not isinstance(given, str) or not given.strip():
        raise TypeError(f"{name} is {checks.shown(given)}; give a string such as '%', or leave it out")
    return shortened(given.strip(), UNIT)


def checked_units(given: Any, goals: Goals) -> Units:
    """Return the argument `units` of a run, validated, by output: it is one unit, or a dict in a run with goals."""
    if given is None:
        return {}
    if not goals.named:
        return {Y: checked_unit("units", given)}
    if not isinstance(given, Mapping):
        name = next(iter(goals))
        raise TypeError(
            f"units is {checks.shown(given)}, but the run has goals; give units by output, {{{name!r}: '%'}}"
        )
    checked = {goals.checked_name(name): checked_unit(f"units[{name!r}]", unit) for name, unit in given.items()}
    return {name: checked[name] for name in goals if name in checked}
