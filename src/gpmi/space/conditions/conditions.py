"""Parameters that are not always there: constants, which never vary, and parameters under a condition.

Where a parameter is inactive it has no value, so two points must not differ by it, and an active value must be as far
from "inactive" as any other. Coordinates that do this: a number takes a place on an arc of 60 degrees around the
origin, and "inactive" is the origin. Then the ends of the interval are at distance 1 from each other, and every value
is at distance 1 from the origin. An option of a Choice is a unit vector as ever, and "inactive" is the origin, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array, Mask, Numbers
from gpmi.space.options import same
from gpmi.space.parameters import MOST_OPTIONS, Choice, Int, Parameter, Real

ARC = math.pi / 3.0  # the chord of this arc is as long as its radius


@dataclass(frozen=True)
class Constant:
    """A value that never varies: part of every point, no coordinate."""

    value: Any

    width, count, when = 0, 1, None

    @property
    def ends(self) -> Array:
        return np.empty((2, 0))

    def at(self, u: Array) -> Array:
        return np.empty((len(u), 0))

    def level(self, numbers: Array | Numbers) -> Array:
        return np.empty((len(numbers), 0))

    def number(self, rows: Array) -> Array:
        return np.zeros(len(rows))

    def tried(self, row: Array) -> Array:
        return row[None]

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        if not same(self.value, value):
            raise ValueError(f"{name} is {checks.shown(value)}; it is constant, {checks.shown(self.value)}")
        return ()

    def decode(self, row: Array) -> Any:
        return self.value

    def canonical(self, value: Any) -> Any:
        return self.value


@dataclass(frozen=True)
class OnArc:
    """A parameter of one coordinate c in [lo, hi] under a condition: the point of the arc at the angle of c."""

    inner: Real | Int | Choice

    width = 2

    @property
    def count(self) -> int | None:
        return self.inner.count

    @property
    def ends(self) -> Array:
        return np.array([[0.0, -0.5], [1.0, 0.5]])  # widths of 1 for both, so that distances are those of the plane

    @cached_property
    def _line(self) -> tuple[float, float]:
        """The middle of c, and its width over the arc."""
        lo, hi = self.inner.ends[:, 0].tolist()
        return 0.5 * lo + 0.5 * hi, (hi - lo) / ARC if hi > lo else 1.0

    def bent(self, rows: Array) -> Array:
        """The coordinates (m, 2) of c (m, 1)."""
        middle, scale = self._line
        angle = (rows[:, 0] - middle) / scale
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)

    def straight(self, rows: Array) -> Array:
        """c (m, 1) at coordinates (m, 2), those beside the arc included."""
        middle, scale = self._line
        lo, hi = self.inner.ends[:, 0]
        return np.clip(middle + scale * np.arctan2(rows[:, 1], rows[:, 0]), lo, hi)[:, None]

    @property
    def bend(self) -> float:
        """How far the point moves on the arc when c moves by 1."""
        return 1.0 / self._line[1]

    def at(self, u: Array) -> Array:
        return self.bent(self.inner.at(u))

    def level(self, numbers: Array | Numbers) -> Array:
        return self.bent(self.inner.level(numbers))

    def number(self, rows: Array) -> Array:
        return self.inner.number(self.straight(rows))

    def tried(self, row: Array) -> Array:
        return self.bent(self.inner.tried(self.straight(row[None])[0]))

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        middle, scale = self._line
        angle = (self.inner.encode(name, value)[0] - middle) / scale
        return math.cos(angle), math.sin(angle)

    def decode(self, row: Array) -> Any:
        return self.inner.decode(self.straight(row[None])[0])

    def canonical(self, value: Any) -> Any:
        return self.inner.canonical(value)


@dataclass(frozen=True, eq=False)
class Pinned:
    """A parameter whose value is given for a while: one point, with the coordinates that it has among all others.

    Level numbers are those of the parameter itself, so that conditions are about the same numbers as ever.
    """

    inner: Real | Int | Choice | OnArc
    value: Any  # as a point of the library has it
    row: Array  # (width,), its coordinates

    count = 1

    @property
    def width(self) -> int:
        return self.inner.width

    @property
    def when(self) -> Mapping[str, Any] | None:
        return self.inner.inner.when if isinstance(self.inner, OnArc) else self.inner.when

    @property
    def ends(self) -> Array:
        return self.inner.ends

    def at(self, u: Array) -> Array:
        return np.tile(self.row, (len(u), 1))

    def level(self, numbers: Array | Numbers) -> Array:
        return np.tile(self.row, (len(numbers), 1))

    def number(self, rows: Array) -> Array:
        return self.inner.number(rows)

    def tried(self, row: Array) -> Array:
        return self.row[None]

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        return self.inner.encode(name, value)

    def decode(self, row: Array) -> Any:
        return self.value

    def canonical(self, value: Any) -> Any:
        return self.inner.canonical(value)


Part: TypeAlias = Real | Int | Choice | Constant | OnArc | Pinned  # what the coordinates of a parameter are


def part_of(parameter: Parameter | Constant | Pinned) -> Part:
    """The coordinates of a parameter: those of its own, or of the arc where it is under a condition."""
    if isinstance(parameter, Constant | Pinned) or parameter.when is None or parameter.width != 1:
        return parameter
    if isinstance(parameter, Choice) and not parameter.ordered:  # one option
        return parameter
    return OnArc(parameter)


class Condition(NamedTuple):
    """That another parameter is active and has one of these values."""

    parent: int
    numbers: frozenset[int]  # level numbers


def conditions_of(
    names: Sequence[str] | None, parameters: Sequence[Parameter | Constant | Pinned]
) -> tuple[tuple[Condition, ...], ...]:
    """The conditions of each parameter; wrong ones are refused."""
    found: list[tuple[Condition, ...]] = []
    for i, parameter in enumerate(parameters):
        if parameter.when is None:
            found.append(())
            continue
        if names is None:
            raise ValueError(f"bounds[{i}] has a condition, when={parameter.when}; give a dict of parameters instead")
        found.append(tuple(_condition(names, parameters, i, *item) for item in parameter.when.items()))
    for i, conditions in enumerate(found):
        above, seen = [c.parent for c in conditions], set()
        while above:
            j = above.pop()
            if j == i and names is not None:
                raise ValueError(f"parameter {names[i]!r} depends on itself, perhaps by way of others; change its when")
            if j not in seen:
                seen.add(j)
                above += [c.parent for c in found[j]]
    return tuple(found)


def _condition(
    names: Sequence[str], parameters: Sequence[Parameter | Constant | Pinned], i: int, parent: str, value: Any
) -> Condition:
    label = f"when of parameter {names[i]!r}"
    if parent not in names:
        raise ValueError(f"{label} names {parent!r}, which is no parameter of the space; it has {list(names)}")
    j = names.index(parent)
    numbers = level_numbers(label, parent, parameters[j], value)
    return Condition(j, numbers)


def level_numbers(label: str, name: str, parameter: Parameter | Constant | Pinned, value: Any) -> frozenset[int]:
    """The level numbers of a value of a discrete parameter, or of several in a list."""
    if isinstance(parameter, Real) or (isinstance(parameter, Int) and parameter.count > MOST_OPTIONS):
        kind = "a Real" if isinstance(parameter, Real) else f"an Int of more than {MOST_OPTIONS} values"
        raise TypeError(f"{label} is about {name!r}, {kind}; only a Choice or a small Int will do")
    several = isinstance(value, list | tuple | set | frozenset | range) and not _is_value(parameter, value)
    values = list(value) if several else [value]
    if not values:
        raise ValueError(f"{label} has no value for {name!r}; give at least one")
    numbers = set()
    for one in values:
        try:
            row = np.array([parameter.encode(name, one)])
        except (TypeError, ValueError) as error:
            raise ValueError(f"{label}: {error}") from None
        numbers.add(int(parameter.number(row)[0]))
    return frozenset(numbers)


def _is_value(parameter: Parameter | Constant | Pinned, value: Any) -> bool:
    try:
        parameter.encode("value", value)
    except (TypeError, ValueError):
        return False
    return True


def activity(conditions: tuple[tuple[Condition, ...], ...], numbers: Array) -> Mask:
    """Which parameters are active, (m, p), where the parameters have the level numbers (m, p)."""
    active = np.ones(numbers.shape, dtype=bool)
    settled = [not own for own in conditions]
    while not all(settled):
        for i, own in enumerate(conditions):
            if not settled[i] and all(settled[c.parent] for c in own):
                for c in own:
                    active[:, i] &= active[:, c.parent] & np.isin(numbers[:, c.parent], list(c.numbers))
                settled[i] = True
    return active


def mentioned(when: Mapping[str, Any] | None) -> str:
    """A condition in words."""
    return " and ".join(f"{name} = {checks.shown(value)}" for name, value in (when or {}).items())
