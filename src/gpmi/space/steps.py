"""Values that an instrument can set: a Real with a step, such as a heater in steps of 0.5 °C.

The model and the search treat such a Real as any number, because f varies smoothly between its settings, and because
other values may be told: "it was 83.7". Only what is suggested or recommended is moved to the nearest settings that
keep the constraints.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpmi._support.types import Array
from gpmi.space.parameters import Real

if TYPE_CHECKING:
    from gpmi.space.product import Parameters

# Our limits of the cost, not tuned.
_MOST = 4096  # combinations of settings that are tried at once
_FAR = 5  # with at most this many stepped parameters, two settings on each side are tried after one on each side
_FILLED = 32  # combinations for which the other parameters are moved, where a sum ties them
_ON_STEP = 1e-9  # of a step: closer to a setting is on it


class Settable(NamedTuple):
    """A point whose stepped parameters are at their settings."""

    row: Array  # (d,)
    found: bool  # False if no settings near the point keep the constraints: then it is the point itself


def stepped(space: Parameters) -> list[int]:
    """Return the numbers of the parameters that have a step and are not fixed."""
    return [j for j, one in enumerate(space.parameters) if isinstance(one, Real) and one.step is not None]


def settable(space: Parameters, row: Array, taken: Container[bytes] = ()) -> Settable:
    """Return the nearest point with stepped parameters at their settings that keeps the constraints.

    One that is not `taken`, a container of rows as bytes, is preferred, unless the point itself is at settings.
    """
    numbers = space.layout.level_numbers(row[None])
    active = space.layout.active(numbers)[0]
    own = [j for j in stepped(space) if active[j]]
    if not own:
        return Settable(row, True)
    values = space.layout.values(numbers)[0]
    kept: Array | None = None
    for sides in (1, 2) if len(own) <= _FAR else (1,):
        rows, away = _combinations(space, row, own, values, sides)
        if away[0] < _ON_STEP:
            return Settable(rows[0], True)
        good = rows[space.feasible_set.contains(rows)]
        for one in good if len(good) or not space.constraints.linear else _filled(space, rows[:_FILLED]):
            if one.tobytes() not in taken:
                return Settable(one, True)
            kept = one if kept is None else kept
    return Settable(row, False) if kept is None else Settable(kept, True)


def settings_near(parameter: Real, value: float, sides: int) -> list[float]:
    """Return the settings around a value, at most `sides` below it and above it."""
    place, last = parameter.place(value), math.floor(parameter.place(parameter.hi) + _ON_STEP)
    near = round(place)
    below, above = (near, near) if abs(place - near) < _ON_STEP else (math.floor(place), math.floor(place) + 1)
    numbers = range(max(0, min(below - sides + 1, last)), min(last, above + sides - 1) + 1)
    return [parameter.setting(number) for number in numbers]


def _combinations(space: Parameters, row: Array, own: list[int], values: Array, sides: int) -> tuple[Array, Array]:
    """Return rows (m, d) with combinations of settings, the nearest first, and their squared distances (m,), in steps.

    Of more than _MOST combinations a selection is made, by random numbers that are a function of the row.
    """
    choices = [settings_near(_real(space, j), float(values[j]), sides) for j in own]
    sizes = [len(one) for one in choices]
    if math.prod(sizes) <= _MOST:
        picks = np.indices(sizes).reshape(len(sizes), -1).T
    else:
        rng = np.random.default_rng(np.frombuffer(row.tobytes(), dtype=np.uint32))
        nearest = [int(np.argmin(np.abs(np.array(one) - values[j]))) for one, j in zip(choices, own, strict=True)]
        picks = np.unique(np.concatenate([[nearest], rng.integers(sizes, size=(_MOST, len(sizes)))]), axis=0)
    rows, away = np.repeat(row[None], len(picks), axis=0), np.zeros(len(picks))
    for k, j in enumerate(own):
        encoding, label = space.encodings[j], space.layout.labels[j]
        coordinates = np.array([encoding.encode(label, value) for value in choices[k]])
        rows[:, space.columns[j]] = coordinates[picks[:, k]]
        away += ((np.array(choices[k])[picks[:, k]] - values[j]) / _real(space, j).step) ** 2
    order = np.argsort(away, kind="stable")
    return rows[order], away[order]


def _real(space: Parameters, j: int) -> Real:
    parameter = space.parameters[j]
    assert isinstance(parameter, Real)
    return parameter


def _filled(space: Parameters, rows: Array) -> Iterator[Array]:
    """Yield those of the rows (m, d) that become feasible if the other parameters move a little, moved."""
    keys: list[Any] = [space.names[j] if space.names else j for j in stepped(space)]
    for one in rows:
        point = space.decode(one)
        try:
            part = space.with_fixed({key: point[key] for key in keys if space.names is None or key in point})
        except ValueError:
            continue
        moved = part.last_inside(one[None], one[None])
        if space.feasible_set.contains(moved)[0]:
            yield moved[0]
