"""How people see the parameters of a study: names, units, and values in as many digits as are meaningful."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal, assert_never

import numpy as np

from gpmi._support.text import VALUE, shortened
from gpmi._support.types import Point
from gpmi.serve.cell_parsing import parse_number
from gpmi.space import Candidates, Domain, NumberRange, Options, Parameters, Single, Space, Steps, mixtures_of
from gpmi.trials import Trial

INACTIVE = "–"  # shown for a parameter that does not exist at this point
RESOLUTION = 1000  # a number is shown to a thousandth of its range, or finer; our choice
MAX_DECIMALS = 6  # of the values of a mixture that are shown so that they add up; our choice
MAX_OPTIONS = 50  # a column of candidates with at most this many values becomes a list; our choice


@dataclass(frozen=True)
class ShownMixture:
    """Numbers whose sum is fixed. As they are shown, they add up to it, so that they can be typed again."""

    keys: tuple[str | int, ...]
    total: float
    decimals: int

    def texts(self, x: Point) -> dict[str | int, str]:
        """Return the values at a point by key, rounded up or down; nothing if they do not add up."""
        values = [x.get(key) if isinstance(x, Mapping) else x[key] for key in self.keys]
        if any(value is None for value in values):
            return {}
        scale = 10**self.decimals
        exact = np.array(values, dtype=float) * scale
        units = np.rint(exact).astype(int)
        missing = round(self.total * scale) - int(units.sum())
        errors = (exact - units) * (1 if missing > 0 else -1)  # the largest were rounded the wrong way most
        for j in np.argsort(-errors, kind="stable")[: abs(missing)]:
            if errors[j] < 1e-6:  # it was exact, such as a component that is left out
                return {}
            units[j] += 1 if missing > 0 else -1
        if int(units.sum()) != round(self.total * scale):
            return {}
        texts = [f"{unit / scale:.{self.decimals}f}" if unit else "0" for unit in units.tolist()]
        return dict(zip(self.keys, texts, strict=True))


@dataclass(frozen=True)
class ParameterField:
    """One parameter of the space, or one column of the candidates."""

    key: str | int  # as `ask(fixed=...)` names it
    name: str
    kind: Literal["number", "whole", "choice", "constant", "steps"]  # steps: of a fidelity, passed one after the other
    unit: str = ""
    options: tuple[Any, ...] = ()
    lo: float | None = None
    hi: float | None = None
    log: bool = False
    step: float | None = None  # of a number that an instrument sets
    mixture: ShownMixture | None = None  # the numbers of a fixed sum that it belongs to

    @property
    def varies(self) -> bool:
        """Whether somebody chooses its value: neither a constant nor the steps of a fidelity."""
        return self.kind not in ("constant", "steps")

    @property
    def title(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def of(self, x: Point) -> Any:
        """Return the value at a point; None if the parameter is inactive there."""
        return x.get(self.key) if isinstance(x, Mapping) else x[self.key]

    def shown(self, x: Point) -> str:
        """Return the value at a point as people read it; those of a mixture add up to its total."""
        plain = self.format(self.of(x))
        text = plain if self.mixture is None else self.mixture.texts(x).get(self.key, plain)
        return plain if text == plain or float(text) == float(plain) else text

    def format(self, value: Any) -> str:
        """Return a value as people read it. The study has the exact value."""
        if value is None:
            return INACTIVE
        if isinstance(value, np.generic):
            value = value.item()
        if not isinstance(value, float):
            return shortened(str(value), VALUE)
        if self.step is not None:
            ends = (Decimal(repr(number)) for number in (self.step, self.lo or 0.0))
            decimals = max(-end.as_tuple().exponent for end in ends)  # type: ignore[operator]
            if decimals <= 9 and round(value, max(decimals, 0)) == value:
                return f"{value:.{max(decimals, 0)}f}"
        if self.log or self.lo is None or self.hi is None or not value:
            return f"{value:.4g}"
        decimals = self.decimals
        text = f"{value:.{decimals}f}" if decimals <= 9 and abs(value) < 1e9 else f"{value:.4g}"
        return text if float(text) else "0"

    @property
    def decimals(self) -> int:
        """How many decimals of a number with a range are shown."""
        assert self.lo is not None and self.hi is not None
        return max(0, math.ceil(math.log10(RESOLUTION / (self.hi - self.lo))))

    def parse(self, typed: str) -> Any:
        """Read a value that somebody typed. Raise a ValueError if it is not a value of this parameter."""
        text = typed.strip()
        if self.kind == "choice":
            for option in self.options:
                if str(option) == text:
                    return option
            raise ValueError(f"{self.name} is {shortened(text, VALUE)!r}; choose one of the listed values")
        try:
            value, _ = parse_number(text, self.unit)
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from None
        if self.kind == "whole":
            if value != round(value):
                raise ValueError(f"{self.name} is {text}; give a whole number")
            return int(value)
        return value


def fields_of(space: Space) -> tuple[ParameterField, ...]:
    """Return the parameters of a space, in their order."""
    if isinstance(space, Parameters):
        keys: list[str | int] = list(space.names or range(len(space.parameters)))
        fields = tuple(_field(key, part.domain, part.unit) for key, part in zip(keys, space.parameters, strict=True))
        return _with_mixtures(fields, space)
    assert isinstance(space, Candidates)
    keys = list(space.names or range(len(space.choices)))
    columns = []
    for j, (key, choice) in enumerate(zip(keys, space.choices, strict=True)):
        if choice is not None:
            columns.append(ParameterField(key, _name(key), "choice", options=choice.options))
            continue
        column = [row[key] for row in space.table] if space.names else space.table[:, j].tolist()
        distinct = sorted(set(column))
        if len(distinct) <= MAX_OPTIONS:
            columns.append(ParameterField(key, _name(key), "choice", options=tuple(distinct)))
        elif all(isinstance(value, int) for value in distinct):
            columns.append(ParameterField(key, _name(key), "whole", lo=distinct[0], hi=distinct[-1]))
        else:
            columns.append(ParameterField(key, _name(key), "number", lo=float(distinct[0]), hi=float(distinct[-1])))
    return tuple(columns)


def _with_mixtures(fields: tuple[ParameterField, ...], space: Parameters) -> tuple[ParameterField, ...]:
    """Return the fields, those of a mixture with what makes their values add up as they are shown."""
    by_name = {field.name: field for field in fields}
    for mixture in mixtures_of(space):
        parts = [by_name[name] for name in mixture.names]
        if any(part.mixture is not None or part.kind != "number" for part in parts):
            continue
        ends = [end for part in parts for end in (part.lo, part.hi, part.step) if end is not None]
        decimals = max(*(part.decimals for part in parts), *map(_decimals, (*ends, mixture.total)))
        if decimals <= MAX_DECIMALS:
            whole = ShownMixture(tuple(part.key for part in parts), mixture.total, decimals)
            by_name |= {part.name: replace(part, mixture=whole) for part in parts}
    return tuple(by_name[field.name] for field in fields)


def _decimals(value: float) -> int:
    """Return how many decimals a number has."""
    return max(0, -int(Decimal(repr(float(value))).normalize().as_tuple().exponent))


def _field(key: str | int, domain: Domain, unit: str) -> ParameterField:
    name = _name(key)
    match domain:
        case NumberRange(whole=True):
            return ParameterField(key, name, "whole", unit, lo=domain.lo, hi=domain.hi, log=domain.log)
        case NumberRange():
            return ParameterField(
                key, name, "number", unit, lo=domain.lo, hi=domain.hi, log=domain.log, step=domain.step
            )
        case Options(values):
            return ParameterField(key, name, "choice", unit, options=values)
        case Steps(first, last):
            return ParameterField(key, name, "steps", unit, options=(last,), lo=first, hi=last)
        case Single(value):
            return ParameterField(key, name, "constant", unit, options=(value,))
        case _:
            assert_never(domain)


def _name(key: str | int) -> str:
    return key if isinstance(key, str) else f"x{key}"


def format_point(fields: tuple[ParameterField, ...], x: Point) -> list[tuple[ParameterField, str]]:
    """Return each parameter with its value at a point, as people read it. What does not vary is left out."""
    return [(field, field.shown(x)) for field in fields if field.varies]


def format_step(field: ParameterField, trial: Trial) -> str:
    """Return how far a trial has come on the steps of a fidelity."""
    return f"{trial.curve[-1].step} of {field.of(trial.x)}" if trial.curve else INACTIVE
