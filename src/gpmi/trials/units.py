"""Units of results: labels for people, from which nothing is computed."""

from __future__ import annotations

from typing import Any, TypeAlias

from gpmi._support import checks
from gpmi._support.text import shortened
from gpmi.space.fields import UNIT
from gpmi.trials.by_output import by_output
from gpmi.trials.goals import Goals

Units: TypeAlias = dict[str, str]  # by output

_FORM = "give a string such as '%', or leave it out"


def checked_unit(name: str, given: Any) -> str:
    """Return a unit, shortened; refuse anything that is not text."""
    if not isinstance(given, str) or not given.strip():
        raise TypeError(f"{name} is {checks.shown(given)}; {_FORM}")
    return shortened(given.strip(), UNIT)


def checked_units(given: Any, goals: Goals) -> Units:
    """Return the argument `units` of a run, validated, by output: it is one unit, or a dict in a run with goals."""
    return by_output("units", given, goals, checked_unit, form=_FORM, example="'%'")
