"""Conditions between parameters: which parameters are active at a point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpmi._support import checks
from gpmi._support.refusals import RefusedType, RefusedValue
from gpmi._support.types import Array, Mask
from gpmi.space.choice import MOST_OPTIONS
from gpmi.space.encoding import Encoding
from gpmi.space.integer import Int


class ParentCondition(NamedTuple):
    """The condition that another parameter is active and has one of these values."""

    parent: int
    numbers: frozenset[int]  # level numbers


def conditions_of(
    names: Sequence[str] | None, parameters: Sequence[Encoding]
) -> tuple[tuple[ParentCondition, ...], ...]:
    """Return the conditions of each parameter. Raise if one names no parameter or no value, or if they form a cycle."""
    of_each: list[tuple[ParentCondition, ...]] = []
    for i, parameter in enumerate(parameters):
        if parameter.when is None:
            of_each.append(())
            continue
        if names is None:
            raise ValueError(f"bounds[{i}] has a condition, when={parameter.when}; give a dict of parameters instead")
        of_each.append(tuple(_condition(names, parameters, i, *item) for item in parameter.when.items()))
    for i, conditions in enumerate(of_each):
        above, seen = [c.parent for c in conditions], set()
        while above:
            j = above.pop()
            if j == i and names is not None:
                raise ValueError(f"parameter {names[i]!r} depends on itself, perhaps through others; change its when")
            if j not in seen:
                seen.add(j)
                above += [c.parent for c in of_each[j]]
    return tuple(of_each)


def _condition(
    names: Sequence[str], parameters: Sequence[Encoding], i: int, parent: str, value: Any
) -> ParentCondition:
    label = f"when of parameter {names[i]!r}"
    if parent not in names:
        sentence = f"{label} names {parent!r}, which is not a parameter of the space; it has {list(names)}"
        raise RefusedValue(sentence, "unknown-parameter", name=parent, names=names)
    j = names.index(parent)
    return ParentCondition(j, read_levels(label, parent, parameters[j], value))


def read_levels(label: str, name: str, parameter: Encoding, value: Any) -> frozenset[int]:
    """Return the level numbers of a value of a discrete parameter, or of several values in a list."""
    if parameter.count is None or (isinstance(parameter, Int) and parameter.count > MOST_OPTIONS):
        continuous = "an angle" if parameter.circular else "a Real"
        kind = continuous if parameter.count is None else f"an Int of more than {MOST_OPTIONS} values"
        sentence = f"{label} is about {name!r}, {kind}; use a Choice or a smaller Int"
        raise RefusedType(sentence, "not-discrete", name=name)
    several = isinstance(value, list | tuple | set | frozenset | range) and not _is_value(parameter, value)
    values = list(value) if several else [value]
    if not values:
        raise ValueError(f"{label} has no value for {name!r}; give at least one")
    numbers = set()
    for option in values:
        try:
            row = np.array([parameter.encode(name, option)])
        except (TypeError, ValueError) as error:
            raise RefusedValue(f"{label}: {error}").like(error) from None
        numbers.add(int(parameter.level_numbers(row)[0]))
    return frozenset(numbers)


def _is_value(parameter: Encoding, value: Any) -> bool:
    try:
        parameter.encode("value", value)
    except (TypeError, ValueError):
        return False
    return True


def active_parameters(conditions: tuple[tuple[ParentCondition, ...], ...], numbers: Array) -> Mask:
    """Return which parameters are active, (m, p), at level numbers (m, p)."""
    active = np.ones(numbers.shape, dtype=bool)
    done = [not of_parameter for of_parameter in conditions]
    while not all(done):
        for i, of_parameter in enumerate(conditions):
            if not done[i] and all(done[c.parent] for c in of_parameter):
                for c in of_parameter:
                    active[:, i] &= active[:, c.parent] & np.isin(numbers[:, c.parent], list(c.numbers))
                done[i] = True
    return active


def condition_text(when: Mapping[str, Any] | None) -> str:
    """Return a condition in words."""
    return " and ".join(f"{name} = {checks.shown(value)}" for name, value in (when or {}).items())
