"""Values that an instrument can set: a Real with a step, such as a heater in steps of 0.5 °C.

The model and the search treat such a Real as any number, because f varies smoothly between its settings, and because
other values may be told: "it was 83.7". Only what is suggested or recommended is moved to the nearest settings that
keep the constraints.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from gpmi._support.types import Array
from gpmi.space.constraints.feasible_set import FeasibleSet
from gpmi.space.layout import Layout
from gpmi.space.real import ON_STEP, Continuous

# Our limits of the cost, not tuned.
_MOST = 4096  # combinations of settings that are tried at once
_FAR = 5  # with at most this many stepped parameters, two settings on each side are tried after one on each side
_FILLED = 32  # combinations for which the other parameters are moved, where a sum ties them


class Settable(NamedTuple):
    """A point whose stepped parameters are at their settings."""

    row: Array  # (d,)
    is_possible: bool  # False if no settings near the point keep the constraints: then it is the point itself


def stepped(layout: Layout) -> list[int]:
    """Return the numbers of the parameters that have a step and are not fixed."""
    return [j for j, part in enumerate(layout.parameters) if isinstance(part, Continuous) and part.step is not None]


# Fix parameters by name or number at values, and move a point (d,) to that part of the space; None if it is empty.
Fill = Callable[[Mapping[Any, Any], Array], Array | None]


def settable(feasible: FeasibleSet, fill: Fill, row: Array, taken: Container[bytes] = ()) -> Settable:
    """Return the nearest point with stepped parameters at their settings that keeps the constraints.

    One that is not `taken`, a container of rows as bytes, is preferred, unless the point itself is at settings.
    """
    layout = feasible.layout
    numbers = layout.level_numbers(row[None])
    active = layout.active(numbers)[0]
    with_step = [j for j in stepped(layout) if active[j]]
    if not with_step:
        return Settable(row, True)
    values = layout.values(numbers)[0]
    kept: Array | None = None
    for sides in (1, 2) if len(with_step) <= _FAR else (1,):
        rows, away = _combinations(layout, row, with_step, values, sides)
        if away[0] < ON_STEP:
            return Settable(rows[0], True)
        good = rows[feasible.contains(rows)]
        for candidate in (
            good if len(good) or not feasible.constraints.linear else _filled(feasible, fill, with_step, rows[:_FILLED])
        ):
            if candidate.tobytes() not in taken:
                return Settable(candidate, True)
            kept = candidate if kept is None else kept
    return Settable(row, False) if kept is None else Settable(kept, True)


def settings_around(feasible: FeasibleSet, fill: Fill, row: Array) -> Array:
    """Return points (m, d) around a point, with stepped parameters at settings that keep the constraints.

    The nearest comes first. They are those that `settable` tries.
    """
    layout = feasible.layout
    numbers = layout.level_numbers(row[None])
    active = layout.active(numbers)[0]
    with_step = [j for j in stepped(layout) if active[j]]
    if not with_step:
        return row[None]
    rows, _ = _combinations(layout, row, with_step, layout.values(numbers)[0], 2 if len(with_step) <= _FAR else 1)
    good = rows[feasible.contains(rows)]
    if len(good) or not feasible.constraints.linear:
        return good
    return np.array(list(_filled(feasible, fill, with_step, rows[:_FILLED]))).reshape(-1, len(row))


def _combinations(layout: Layout, row: Array, with_step: list[int], values: Array, sides: int) -> tuple[Array, Array]:
    """Return rows (m, d) with combinations of settings, the nearest first, and their squared distances (m,), in steps.

    Of more than _MOST combinations a selection is made, by random numbers that are a function of the row.
    """
    choices = [_continuous(layout, j).settings_near(float(values[j]), sides) for j in with_step]
    sizes = [len(settings) for settings in choices]
    if math.prod(sizes) <= _MOST:
        picks = np.indices(sizes).reshape(len(sizes), -1).T
    else:
        rng = np.random.default_rng(np.frombuffer(row.tobytes(), dtype=np.uint32))
        nearest = [
            int(np.argmin(np.abs(np.array(settings) - values[j])))
            for settings, j in zip(choices, with_step, strict=True)
        ]
        picks = np.unique(np.concatenate([[nearest], rng.integers(sizes, size=(_MOST, len(sizes)))]), axis=0)
    rows, away = np.repeat(row[None], len(picks), axis=0), np.zeros(len(picks))
    for k, j in enumerate(with_step):
        encoding, label = layout.encodings[j], layout.labels[j]
        coordinates = np.array([encoding.encode(label, value) for value in choices[k]])
        rows[:, layout.columns[j]] = coordinates[picks[:, k]]
        away += ((np.array(choices[k])[picks[:, k]] - values[j]) / _continuous(layout, j).step) ** 2
    order = np.argsort(away, kind="stable")
    return rows[order], away[order]


def _continuous(layout: Layout, j: int) -> Continuous:
    parameter = layout.parameters[j]
    assert isinstance(parameter, Continuous)
    return parameter


def _filled(feasible: FeasibleSet, fill: Fill, with_step: list[int], rows: Array) -> Iterator[Array]:
    """Yield those of the rows (m, d) that become feasible if the other parameters move a little, moved."""
    names = feasible.layout.names
    keys: list[Any] = [names[j] if names else j for j in with_step]
    for row in rows:
        point = feasible.layout.decode(row)
        moved = fill({key: point[key] for key in keys}, row)
        if moved is not None and feasible.contains(moved[None])[0]:
            yield moved
