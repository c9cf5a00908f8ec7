"""The fidelity of a measurement: how exact and how expensive it is. The goal is the value at the last one, the target.

There are two kinds. Levels are separate evaluations, such as meshes of a simulation, each with a cost. Steps are passed
one after the other in a single evaluation, such as the epochs of a training, which may be stopped on the way.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from gpmi._support import checks
from gpmi._support.refusals import RefusedValue
from gpmi._support.types import Array, Numbers
from gpmi.space.choice import Choice
from gpmi.space.domain import Domain, Options, Steps
from gpmi.space.fields import FieldsOnly, check_unit
from gpmi.space.integer import Int

MOST_LEVELS = 20  # each level has hyper-parameters of its own; our choice
# A curve enters the model at its end and at these shares of it. Our choice: on the development tasks of
# docs/benchmarks/curves.md one rung more, at 1/16, or one less was no clear gain.
RUNGS = (1 / 8, 1 / 4, 1 / 2, 1)
# The coordinate of a step s is -s^-POWER. Of 0 (the logarithm), 1/4, 1/2, 3/4 and 1, the powers 1/4 and 1/2 predict
# curves best on development tasks, with little between them: docs/benchmarks/curves.md.
POWER = 0.25


@dataclass(frozen=True, repr=False)
class Fidelity(FieldsOnly):
    """The levels or steps at which f can be measured, from the cheapest to the target.

    `Fidelity({"coarse": 1, "fine": 60})` has levels with their costs; the last is the target. With a list,
    `Fidelity(["coarse", "fine"])`, costs are the times that the evaluations take. `Fidelity(1, 52)` has the steps 1 to
    52, reported by a generator or by `Optimizer.report`. A step costs 1, unless `cost` says what the steps up to some
    cost in all, as in cost={10: 15, 52: 60}; between these the cost is linear.

    A space has at most one fidelity. `unit` is a label for people.
    """

    levels: Any  # (label, cost) of each level, or the first step
    last: int | None = None  # the last step
    cost: Mapping[int, float] | None = field(default=None, kw_only=True)
    unit: str = field(default="", kw_only=True, compare=False)

    when, ordered, circular = None, True, False

    def __post_init__(self) -> None:
        check_unit(self)
        if isinstance(self.levels, Integral) and not isinstance(self.levels, bool):
            object.__setattr__(self, "levels", int(self.levels))
            self._check_steps()
        else:
            self._check_levels()

    def _check_steps(self) -> None:
        if self.last is None:
            raise TypeError(f"Fidelity has {self.levels} alone; give the first and the last step, Fidelity(1, 52)")
        object.__setattr__(self, "last", checks.whole("the last step of Fidelity", self.last, 1))
        if not 1 <= self.levels < self.last:
            sentence = f"Fidelity has the steps {self.levels} to {self.last}; the first is at least 1, the last larger"
            raise RefusedValue(sentence, "steps-in-wrong-order", low=self.levels, high=self.last)
        if self.cost is None:
            return
        if not isinstance(self.cost, Mapping) or not self.cost:
            raise TypeError(f"cost of Fidelity is {checks.shown(self.cost)}; give a dict such as {{10: 15, 52: 60}}")
        costs = {
            checks.whole(
                "a step in the cost of Fidelity", int(step) if _is_digits(step) else step, self.levels, self.last
            ): _checked_cost(step, cost)
            for step, cost in self.cost.items()
        }
        costs = dict(sorted(costs.items()))
        if self.last not in costs or sorted(costs.values()) != list(costs.values()):
            remedy = f"give growing costs, the last of them for step {self.last}"
            raise ValueError(f"cost of Fidelity is {checks.shown(dict(self.cost))}; {remedy}")
        object.__setattr__(self, "cost", costs)

    def _check_levels(self) -> None:
        example = 'Fidelity({"coarse": 1, "fine": 60})'
        if self.last is not None or self.cost is not None:
            raise TypeError(f"Fidelity has {checks.shown(self.levels)} and more; give the levels alone, {example}")
        given = list(self.levels.items()) if isinstance(self.levels, Mapping) else self.levels
        if not isinstance(given, list | tuple):
            raise TypeError(f"levels of Fidelity is {checks.shown(self.levels)}; give {example}, or Fidelity(1, 52)")
        pairs = [
            tuple(level) if isinstance(level, list | tuple) and len(level) == 2 else (level, None) for level in given
        ]
        if not 2 <= len(pairs) <= MOST_LEVELS:
            raise ValueError(f"Fidelity has {len(pairs)} levels; give 2 to {MOST_LEVELS}, the target last")
        for label, _ in pairs:
            if not isinstance(label, str | int | float) or isinstance(label, bool) or label != label:
                raise TypeError(f"Fidelity has the level {checks.shown(label)}; name levels by strings or numbers")
        is_priced = [cost is not None for _, cost in pairs]
        if any(is_priced) != all(is_priced):
            raise ValueError(f"Fidelity has {checks.shown(self.levels)}; give the cost of every level, or of none")
        checked = tuple((label, None if cost is None else _checked_cost(label, cost)) for label, cost in pairs)
        costs = [cost for _, cost in checked if cost is not None]
        if costs != sorted(costs):
            raise ValueError(f"Fidelity has the costs {costs}; give levels from the cheapest to the most expensive")
        object.__setattr__(self, "levels", checked)
        _ = self._inner  # refuses duplicates

    # What it means

    @property
    def has_steps(self) -> bool:
        """Whether it has steps; otherwise it has levels."""
        return isinstance(self.levels, int)

    @property
    def labels(self) -> tuple[Any, ...]:
        """The levels, the target last; for steps the first and the last one."""
        return (self.levels, self.last) if self.has_steps else tuple(label for label, _ in self.levels)

    @property
    def target(self) -> Any:
        """The level or step whose value counts."""
        return self.labels[-1]

    @property
    def choice(self) -> Choice | None:
        """The levels as options; None if it has steps."""
        return self._inner.choice

    @property
    def domain(self) -> Domain:
        return Steps(*self.labels) if self.has_steps else Options(self.labels)

    def to_json(self) -> dict[str, Any]:
        values = super().to_json()
        return values if self.cost is None else {**values, "cost": {str(step): c for step, c in self.cost.items()}}

    @property
    def learns_costs(self) -> bool:
        """Whether the costs of its levels are the times that evaluations take."""
        return not self.has_steps and self.levels[0][1] is None

    def cost_of(self, value: Any) -> float:
        """Return the cost of a measurement at a level, or of all steps up to one; 0 if costs are learned."""
        if not self.has_steps:
            return float(dict(self.levels)[self._inner.canonical(value)] or 0.0)
        if self.cost is None:
            return float(value)
        return float(np.interp(value, [0, *self.cost], [0.0, *self.cost.values()]))

    @cached_property
    def rungs(self) -> tuple[int, ...]:
        """The steps at which a curve enters the model, ascending; the last one is the target."""
        assert self.last is not None
        return tuple(sorted({max(self.levels, round(share * self.last)) for share in RUNGS}))

    # Coordinates: the position of a level, or a power of a step, since curves change ever more slowly

    @cached_property
    def _inner(self) -> Int | Choice:
        return Int(self.levels, self.last or 0) if self.has_steps else Choice(self.labels, ordered=True)

    width = 1

    @property
    def count(self) -> int:
        return self._inner.count

    @property
    def limits(self) -> tuple[float, float] | None:
        return self._inner.limits

    def _bent(self, rows: Array) -> Array:
        return -(rows**-POWER) if self.has_steps else rows

    def _straight(self, rows: Array) -> Array:
        return (-rows) ** (-1.0 / POWER) if self.has_steps else rows

    @property
    def ends(self) -> Array:
        return self._bent(self._inner.ends)

    def from_unit(self, u: Array) -> Array:
        return self._bent(self._inner.from_unit(u))

    def from_levels(self, numbers: Array | Numbers) -> Array:
        return self._bent(self._inner.from_levels(numbers))

    def level_numbers(self, rows: Array) -> Array:
        return self._inner.level_numbers(self._straight(rows))

    def values(self, numbers: Array) -> Array:
        return self._inner.values(numbers)

    def levels_to_try(self, row: Array) -> Array:
        return self._bent(self._inner.levels_to_try(self._straight(row)))

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        return tuple(self._bent(np.array(self._inner.encode(name, value))).tolist())

    def decode(self, row: Array) -> Any:
        return self._inner.decode(self._straight(row))

    def canonical(self, value: Any) -> Any:
        return self._inner.canonical(value)

    def nearest(self, number: float) -> Any:
        return self._inner.nearest(number)

    def grid(self, points: int) -> Array:
        return self._bent(self._inner.grid(points))


def _is_digits(step: Any) -> bool:
    """Whether a step is text, as a study stores it."""
    return isinstance(step, str) and step.isascii() and step.isdigit()


def _checked_cost(label: Any, cost: Any) -> float:
    number = checks.number(f"the cost of {checks.shown(label)} in Fidelity", cost, "give a number above 0")
    if number <= 0.0:
        raise ValueError(f"the cost of {checks.shown(label)} in Fidelity is {number:g}; give a number above 0")
    return number


class FidelityColumn(NamedTuple):
    """The fidelity of a space, and where it is."""

    fidelity: Fidelity
    name: str
    column: int  # its coordinate

    def at(self, row: Array, value: Any) -> Array:
        """Return the coordinates (d,) of the same point at another level or step."""
        moved = row.copy()
        moved[self.column] = self.fidelity.encode(self.name, value)[0]
        return moved

    def of(self, row: Array) -> Any:
        """Return the level or step at coordinates (d,)."""
        return self.fidelity.decode(row[self.column : self.column + 1])

    def check_conditions(self, columns: Collection[int]) -> None:
        """Refuse conditions on parameters at these coordinates, if the fidelity is among them."""
        if self.column in columns:
            raise ValueError(f"a parameter is active by {self.name!r}, a fidelity; give it another condition")

    def is_target(self, row: Array) -> bool:
        """Whether coordinates (d,) are at the target."""
        return bool(row[self.column] == self.fidelity.ends[1, 0])

    @property
    def levels(self) -> Array:
        """The coordinates of all levels, (count,)."""
        return self.fidelity.from_levels(np.arange(self.fidelity.count))[:, 0]


def find_fidelity(
    parameters: Sequence[Any], names: Sequence[str] | None, columns: Sequence[slice]
) -> FidelityColumn | None:
    """Return the fidelity among the parameters of a space; None if it has none. Refuse several."""
    inner = [getattr(parameter, "inner", parameter) for parameter in parameters]  # of one that is fixed
    numbers = [j for j, parameter in enumerate(inner) if isinstance(parameter, Fidelity)]
    if not numbers:
        return None
    if len(numbers) > 1:
        several = ", ".join(repr(names[j] if names else j) for j in numbers)
        raise ValueError(f"space has several fidelities, {several}; give one")
    j = numbers[0]
    assert names is not None
    return FidelityColumn(inner[j], names[j], columns[j].start)
