"""Coordinates that are given and not chosen: the part of a space that has them.

It has the coordinates of the whole space, so that the same kernel and posterior serve both. A parameter that is given
is one point there (`Pinned`), and what constraints say of it is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array
from gpmi.space.conditions.conditions import Condition, Constant, Part, Pinned, mentioned
from gpmi.space.constraints.constraints import TOLD, Combination, Rules
from gpmi.space.constraints.expressions import Row
from gpmi.space.conversion import labels_of
from gpmi.space.layout import Layout


def numbers_given(fixed: Any, names: Sequence[str] | None, count: int) -> dict[int, Any]:
    """The values of a user's `fixed` by the numbers of their parameters, in the order of the parameters."""
    if not isinstance(fixed, Mapping):
        example = {names[0]: "..."} if names else {0: "..."}
        raise TypeError(f"fixed is {checks.shown(fixed)}; give a dict of what is given, as in {example}")
    found = {}
    for key, value in fixed.items():
        if names is not None:
            if not isinstance(key, str) or key not in names:
                raise ValueError(f"fixed names {checks.shown(key)}, which is no parameter; there are {list(names)}")
            found[names.index(key)] = value
        else:
            whole = isinstance(key, int | np.integer) and not isinstance(key, bool)
            if not whole or not 0 <= key < count:
                raise ValueError(
                    f"fixed has the key {checks.shown(key)}; a point of this space is an array: give the numbers of "
                    f"its coordinates, 0 to {count - 1}"
                )
            found[int(key)] = value
    return dict(sorted(found.items()))


def pinned(layout: Layout, given: Mapping[int, Any]) -> dict[int, Pinned | Constant]:
    """The parameters that are given, each at its value; refused if it is no value of it, or if it is not always there.

    A parameter under a condition is there only if what it depends on is given as well, and makes it active.
    """
    labels = labels_of(layout.names, len(layout.parts))
    found: dict[int, Pinned | Constant] = {}
    for j, value in given.items():
        part = layout.parts[j]
        assert not isinstance(part, Pinned)
        try:
            row = np.array(part.encode(labels[j], value))
        except (TypeError, ValueError) as error:
            raise type(error)(f"fixed: {error}") from None
        found[j] = part if isinstance(part, Constant) else Pinned(part, part.canonical(value), row)
    for j in found:
        if not all(_makes_active(layout.parts[c.parent], found.get(c.parent), c) for c in layout.conditions[j]):
            condition = mentioned(layout.parameters[j].when)
            raise ValueError(f"fixed has {labels[j]!r}, which is there only where {condition}; fix that as well")
    return found


def _makes_active(part: Part, given: Pinned | Constant | None, condition: Condition) -> bool:
    if isinstance(part, Constant):
        return 0 in condition.numbers
    return isinstance(given, Pinned) and int(given.number(given.row[None])[0]) in condition.numbers


def rules_left(rules: Rules, layout: Layout, given: Mapping[int, Pinned | Constant]) -> Rules:
    """What constraints say of the other parameters; refused if what is given breaks one of them alone."""
    known = {j: one for j, one in given.items() if isinstance(one, Pinned)}
    rows, sizes = [], []
    for row, size in zip(rules.rows, rules.sizes, strict=True):
        used = [j for j in known if row.coefficients[j] != 0.0]
        left = row.coefficients.copy()
        left[used] = 0.0
        shift = sum(float(row.coefficients[j]) * float(known[j].value) for j in used)
        if np.any(left):
            rows.append(Row(row.text, left, row.lower - shift, row.upper - shift))
            sizes.append(size)
        elif used and max(row.lower - shift, shift - row.upper) > TOLD * size:
            raise ValueError(f"fixed breaks the constraint {row.text!r}; give values that keep to it")
    forbidden = []
    for combination in rules.forbidden:
        if any(j in known and _code(known[j]) not in codes for j, codes in combination.parts):
            continue
        parts = tuple((j, codes) for j, codes in combination.parts if j not in known)
        if not parts:
            raise ValueError(f"fixed has the values of {combination.text}; give values that are allowed")
        forbidden.append(Combination(combination.text, parts))
    return Rules(tuple(rows), np.array(sizes), tuple(forbidden), rules.feasible)


def _code(one: Pinned) -> float:
    return float(one.number(one.row[None])[0])


def moved_to(z: Array, layout: Layout) -> Array:
    """Points (m, d) of the whole space with what is given put in; parameters that it makes active in the middle."""
    z = z.copy()
    for part, column in zip(layout.parts, layout.columns, strict=True):
        if isinstance(part, Pinned):
            z[:, column] = part.row
    return layout.normal(z) if layout.conditional else z
