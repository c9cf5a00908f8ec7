"""The parameters of a study for people: names, units, and values with as many digits as mean something."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gpmi._support.text import VALUE, shortened
from gpmi._support.types import Point
from gpmi.serve.numbers import number
from gpmi.space import Candidates, Choice, Constant, Int, Parameters, Real, Space

MISSING = "–"  # a parameter that is not there at this point
STEPS = 1000  # a number is shown to a thousandth of its range, or finer: our choice
FEW = 50  # options of a column are listed up to so many; our choice


@dataclass(frozen=True)
class Field:
    """One parameter, or one column of the candidates."""

    key: str | int  # as `ask(fixed=...)` names it
    name: str
    kind: Literal["number", "whole", "choice", "constant"]
    unit: str = ""
    options: tuple[Any, ...] = ()
    lo: float | None = None
    hi: float | None = None
    log: bool = False

    @property
    def title(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def of(self, x: Point) -> Any:
        """The value at a point; None where there is none."""
        return x.get(self.key) if isinstance(x, Mapping) else x[self.key]

    def shown(self, value: Any) -> str:
        """A value to read: what it is exactly is known to the study."""
        if value is None:
            return MISSING
        if isinstance(value, np.generic):
            value = value.item()
        if not isinstance(value, float):
            return shortened(str(value), VALUE)
        if self.log or self.lo is None or self.hi is None or not value:
            return f"{value:.4g}"
        decimals = max(0, math.ceil(math.log10(STEPS / (self.hi - self.lo))))
        return f"{value:.{decimals}f}" if decimals <= 9 and abs(value) < 1e9 else f"{value:.4g}"

    def read(self, typed: str) -> Any:
        """A value that somebody types; a ValueError if it cannot be one."""
        words = typed.strip()
        if self.kind == "choice":
            for option in self.options:
                if str(option) == words:
                    return option
            raise ValueError(f"{self.name} is {shortened(words, VALUE)!r}; choose one of its values")
        try:
            value, _ = number(words)
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from None
        if self.kind == "whole":
            if value != round(value):
                raise ValueError(f"{self.name} is {words}; give a whole number")
            return int(value)
        return value


def fields_of(space: Space) -> tuple[Field, ...]:
    """The parameters in their order."""
    if isinstance(space, Parameters):
        keys: list[str | int] = list(space.names or range(len(space.parameters)))
        return tuple(_field(key, part) for key, part in zip(keys, space.parameters, strict=True))
    assert isinstance(space, Candidates)
    keys = list(space.names or range(len(space.choices)))
    found = []
    for j, (key, choice) in enumerate(zip(keys, space.choices, strict=True)):
        if choice is not None:
            found.append(Field(key, _name(key), "choice", options=choice.options))
            continue
        column = [row[key] for row in space.table] if space.names else space.table[:, j].tolist()
        different = sorted(set(column))
        if len(different) <= FEW:
            found.append(Field(key, _name(key), "choice", options=tuple(different)))
        elif all(isinstance(one, int) for one in different):
            found.append(Field(key, _name(key), "whole", lo=different[0], hi=different[-1]))
        else:
            found.append(Field(key, _name(key), "number", lo=float(different[0]), hi=float(different[-1])))
    return tuple(found)


def _field(key: str | int, part: Any) -> Field:
    name = _name(key)
    match part:
        case Real():
            return Field(key, name, "number", part.unit, lo=part.lo, hi=part.hi, log=part.log)
        case Int():
            return Field(key, name, "whole", part.unit, lo=part.lo, hi=part.hi, log=part.log)
        case Choice():
            return Field(key, name, "choice", options=part.options)
        case Constant():
            return Field(key, name, "constant", options=(part.value,))
    raise TypeError(f"{part!r} is no parameter")


def _name(key: str | int) -> str:
    return key if isinstance(key, str) else f"x{key}"


def values_in_words(fields: tuple[Field, ...], x: Point) -> list[tuple[Field, str]]:
    """Each parameter with its value at a point; constants are left out."""
    return [(field, field.shown(field.of(x))) for field in fields if field.kind != "constant"]
