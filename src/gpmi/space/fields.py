"""The dataclass fields of parameters: how they are shown, stored and checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from gpmi._support import checks
from gpmi._support.refusals import RefusedValue
from gpmi._support.text import shortened

LARGEST = 2**53  # floating point distinguishes all whole numbers up to this one
UNIT = 20  # the longest unit, in characters, because it stands beside every value; our choice
_NARROWEST, _WIDEST = 1e-100, 1e100  # kernels square distances; such squares do not under- or overflow


@dataclass(frozen=True, repr=False)
class FieldsOnly:
    """Pickle, copy and show the dataclass fields only. Cached arrays can be large and are rebuilt on demand."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __repr__(self) -> str:
        """Show the fields, without keyword-only ones that have their default value."""
        shown = [f for f in fields(self) if not f.kw_only or getattr(self, f.name) != f.default]
        return f"{type(self).__name__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in shown)})"

    def to_json(self) -> dict[str, Any]:
        """Return the fields for a study. What is shown only (compare=False) is left out at its default."""
        values = {field.name: (getattr(self, field.name), field) for field in fields(self)}
        return {name: value for name, (value, field) in values.items() if field.compare or value != field.default}

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Self:
        """Return the parameter whose fields `to_json` wrote."""
        return cls(**written)


def checked_list(label: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{label} is {checks.shown(value)}; give a list")
    return value


def checked_ends(label: str, value: Any) -> list[Any]:
    if len(checked_list(label, value)) != 2:
        raise ValueError(f"{label} is {checks.shown(value)}; give the smallest and the largest value, [lo, hi]")
    return list(value)


def check_when(p: Any) -> None:
    """Raise unless the condition is a dict of names and values."""
    if p.when is None:
        return
    name = type(p).__name__
    if not isinstance(p.when, Mapping) or not all(isinstance(parent, str) for parent in p.when):
        remedy = "give a dict such as {'kernel': 'rbf'} or {'kernel': ['a', 'b']}"
        raise TypeError(f"when of {name} is {checks.shown(p.when)}; {remedy}")
    if not p.when:
        raise ValueError(f"when of {name} is empty; leave it out, or name a parameter and its values")
    object.__setattr__(p, "when", dict(p.when))


def check_unit(p: Any) -> None:
    """Raise unless the unit is a string. Shorten it."""
    if not isinstance(p.unit, str):
        raise TypeError(
            f"unit of {type(p).__name__} is {checks.shown(p.unit)}; give a string such as '°C', or leave it out"
        )
    object.__setattr__(p, "unit", shortened(p.unit, UNIT))


def check_interval(p: Any, words: str) -> None:
    """Raise if the bounds are not finite, not in order, or too wide or narrow for the kernel. Make log a bool."""
    name = type(p).__name__
    lo, hi = (checks.number(f"{end} of {name}", getattr(p, end), f"give {words}") for end in ("lo", "hi"))
    object.__setattr__(p, "log", checks.flag(f"log of {name}", p.log))
    if not lo < hi:
        sentence = f"{name} has lo = {p.lo} and hi = {p.hi}; lo must be smaller than hi"
        raise RefusedValue(sentence, "ends-in-wrong-order", low=p.lo, high=p.hi)
    if not (p.log or _NARROWEST < hi - lo < _WIDEST):
        sentence = f"{name}({p.lo}, {p.hi}) is too wide or too narrow to be squared; give other units"
        raise RefusedValue(sentence, "extreme-range", low=p.lo, high=p.hi)
    if p.log and lo <= 0:
        sentence = f"{name} has log=True and lo = {p.lo}; a logarithmic parameter needs lo > 0"
        raise RefusedValue(sentence, "log-of-nonpositive", low=p.lo)
    if p.log and not math.log(lo) < math.log(hi):
        raise ValueError(f"{name} has log=True and lo = {p.lo}, hi = {p.hi} with equal logarithms; widen the bounds")
