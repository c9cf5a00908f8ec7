"""Escapes where constraints count parameters: when a query taught nothing, another support is looked at.

Each support, the parameters that are on, has maxima of its own, and a model that has seen one of them well knows little
of the others. The initial design has shown the middles of the supports, if they are few. So the next points are chosen
in the support with the next best value, as if it were the whole space, until it gains no more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Mask
from gpmi.model.orientation import Orientation
from gpmi.optimizer.escape import taught_nothing
from gpmi.search.barriers import Barriers
from gpmi.space import Parameters, Space
from gpmi.trials import Log

# Chosen among (4, 3), (4, 5), (6, 5), (4, 7), (6, 7) and (8, 9) on 20 development seeds of
# benchmarks/count_constraint.py: mean regrets from 0.06 to 1.1.
SHARE = 4  # every fourth query is left to the policy
PATIENCE = 7  # queries without a gain, after which a support is left


class OtherSupport(NamedTuple):
    """A support to look at: its best value, and where nothing may be asked, which includes all other supports."""

    best: float
    barred: Barriers


def other_support(log: Log, space: Space, orientation: Orientation, barred: Barriers | None) -> OtherSupport | None:
    """Return another support to look at, if one is due and promising."""
    promising = promising_point(log, space, orientation) if is_support_due(log, space, orientation) else None
    return None if promising is None else OtherSupport(promising[1], outside_of(promising[0], space, barred))


def is_support_due(log: Log, space: Space, orientation: Orientation) -> bool:
    """Whether to look at another support: one of the last trials taught nothing, and none since is better. O(n)."""
    idle = taught_nothing(log, space, orientation)
    values = [
        log[number].y if log[number].feasible else None for number, row in log.rows.items() if space.contains(row)
    ]
    y = np.array([-np.inf if value is None else orientation.value(value) for value in values])
    after = np.arange(len(y)) > (np.argmax(y) if len(y) else 0)
    return bool(np.any((idle & after)[-(SHARE - 1) :]))


def promising_point(log: Log, space: Space, orientation: Orientation) -> tuple[Array, float] | None:
    """Return the best point (d,) of the support to look at, and its value; None if there is none.

    The support is that with the best value among those that have not the best value of all, and in which fewer than
    PATIENCE queries in a row have not gained. O(n).
    """
    assert isinstance(space, Parameters)
    supports, layout = space.feasible_set.supports, space.layout
    numbers = [number for number, row in log.rows.items() if space.contains(row)]
    told = [n for n in numbers if log[n].y is not None and log[n].feasible]
    if not told:
        return None
    best: dict[bytes, float] = {}
    at: dict[bytes, Array] = {}
    idle: dict[bytes, int] = {}
    for n, support in zip(told, supports.on(layout.level_numbers(np.array([log.rows[n] for n in told]))), strict=True):
        key, y = support.tobytes(), orientation.value(log[n].y or 0.0)
        idle[key] = 0 if y > best.get(key, -np.inf) else idle[key] + 1
        if not idle[key]:
            best[key], at[key] = y, log.rows[n]
    first = max(best, key=lambda key: best[key])
    left = [key for key in best if key != first and idle[key] < PATIENCE]
    if not left:
        return None
    chosen = max(left, key=lambda key: best[key])
    return at[chosen], best[chosen]


def outside_of(row: Array, space: Space, barred: Barriers | None) -> Barriers:
    """Bar also the points with another support than a point (d,)."""
    assert isinstance(space, Parameters)
    supports, layout = space.feasible_set.supports, space.layout
    support = supports.on(layout.level_numbers(row[None]))[0]
    none = np.empty((0, space.dim))
    before = None if barred is None else barred.unsafe

    def unsafe(z: Array) -> Mask:
        other: Mask = np.any(supports.on(layout.level_numbers(z)) != support, axis=1)
        return other if before is None else other | before(z)

    return (barred or Barriers(none, none, none))._replace(unsafe=unsafe)
