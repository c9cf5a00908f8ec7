"""Numbers that describe the options of a choice: what a user gives, and the columns that a model uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpmi._support import checks
from gpmi._support.refusals import RefusedValue
from gpmi._support.text import shortened
from gpmi._support.types import Array, Event
from gpmi.space.options import same_option

# The share of the variance of all descriptors that those of the model explain. The best mean of 0.8, 0.9, 0.95, 0.99
# and 0.999 on the development tables of docs/benchmarks/features.md, 24 seeds, with longer lengthscales than now. The
# differences are about two standard errors, so another number may be as good.
EXPLAINED = 0.99
MOST_FEATURES = 5000  # Mordred has 1,826; our choice


@dataclass(frozen=True)
class Features:
    """Descriptors of the options of a choice."""

    names: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]  # by option, then by descriptor

    @staticmethod
    def of(given: Any, options: Sequence[Any]) -> Features:
        """Read the descriptors of options. Rows of other options are ignored."""
        if isinstance(given, Features):
            read = [list(row) for row in given.values], list(given.names)
        elif hasattr(given, "columns") and hasattr(given, "iloc"):
            read = _of_frame(given, options)
        elif isinstance(given, Mapping):
            read = _of_rows([_own(given, option) for option in options], options)
        elif isinstance(given, list | tuple | np.ndarray):
            read = _of_rows(list(given), options)
        else:
            raise TypeError(f"features is {checks.shown(given)}; {_REMEDY}")
        rows, names = read
        if len(rows) != len(options):
            raise ValueError(f"features has {len(rows)} rows for {len(options)} options; give a row for each option")
        features = Features(tuple(names), tuple(map(tuple, rows)))
        if len(options) > 1 and not features.kept:
            raise ValueError("features has the same numbers for all options, so it tells nothing; leave it out")
        return features

    def to_json(self) -> dict[str, Any]:
        """Return the descriptors for a study."""
        return {"names": list(self.names), "rows": [list(row) for row in self.values]}

    @staticmethod
    def from_json(written: Mapping[str, Any]) -> Features:
        """Return the descriptors that `to_json` wrote."""
        rows = [[float(number) for number in row] for row in written["rows"]]
        return Features(tuple(written["names"]), tuple(map(tuple, rows)))

    def __repr__(self) -> str:
        shown = ", ".join(self.names[:3]) + (", ..." if len(self.names) > 3 else "")
        return f"<{len(self.names)} descriptors of {len(self.values)} options: {shown}>"

    @cached_property
    def table(self) -> Array:
        """The descriptors, (options, descriptors)."""
        return np.array(self.values, dtype=float)

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """The columns that a model uses, the most telling first.

        The next one is always that which explains the most of what is left of all descriptors, as a linear function:
        the largest sum of squared correlations. It goes on until EXPLAINED of their variance is explained, with at most
        k - 1 columns for k options, which place k points in any way. The order of the columns decides ties alone. O(k^3
        K) for K columns.
        """
        table = self.table
        low, high = table.min(axis=0), table.max(axis=0)
        varying = high / 2.0 - low / 2.0 > 1e-9 * np.maximum(np.abs(low), np.abs(high))  # smaller ones are rounding
        left = np.flatnonzero(varying)
        part = table[:, left] / np.maximum(np.abs(low), np.abs(high))[left]
        part = part - part.mean(axis=0)
        rest = part / np.sqrt((part * part).sum(axis=0))
        chosen: list[int] = []
        while len(chosen) < min(len(table) - 1, len(left)) and (rest * rest).sum() > (1.0 - EXPLAINED) * len(left):
            size = np.sqrt((rest * rest).sum(axis=0))
            unit = np.where(size > 1e-6, rest / np.maximum(size, 1e-6), 0.0)  # a column that is explained is no choice
            explained = ((rest @ rest.T @ unit) * unit).sum(axis=0)
            best = int(np.flatnonzero(explained >= (1.0 - 1e-9) * explained.max())[0])
            chosen.append(int(left[best]))
            rest = rest - np.outer(unit[:, best], unit[:, best] @ rest)
        return tuple(chosen)

    @property
    def kept(self) -> tuple[str, ...]:
        """The names of the descriptors that a model uses."""
        return tuple(self.names[j] for j in self.columns)

    def event(self, name: str) -> tuple[Event, ...]:
        """Say which descriptors of the parameter `name` a model does not use; nothing if it uses all."""
        if len(self.kept) == len(self.names):
            return ()
        used = f"{name!r} has {len(self.names)} descriptors, of which the model uses {len(self.kept)}"
        why = "the others are constant or say the same"
        return (Event("descriptors", f"{used}: {shortened(', '.join(self.kept), 200)}; {why}"),)

    @cached_property
    def matrix(self) -> Array:
        """The descriptors that a model uses, each scaled to [-1/2, 1/2], (options, K)."""
        part = self.table[:, list(self.columns)]
        low, high = part.min(axis=0), part.max(axis=0)
        return np.asarray((part - low) / (high - low) - 0.5)


_REMEDY = "give a DataFrame whose index has the options, or a dict such as {'THF': {'bp': 66}, 'DMF': {'bp': 153}}"


@dataclass(frozen=True, eq=False)
class FeatureColumns:
    """The descriptors of all choices of a space, as linear functions of its coordinates."""

    matrix: Array  # (d, K)
    owners: tuple[int, ...]  # (K,), the number of the parameter that each describes, as in `Space.groups`
    names: tuple[str, ...]  # (K,)

    def without(self, column: int, group: int) -> FeatureColumns:
        """Return the same descriptors without a coordinate of their space, that of the parameter `group`."""
        owners = tuple(owner - (owner > group) for owner in self.owners)
        return FeatureColumns(np.delete(self.matrix, column, axis=0), owners, self.names)

    def with_column(self) -> FeatureColumns:
        """Return the same descriptors with another coordinate at the end, on which they do not depend."""
        return FeatureColumns(
            np.append(self.matrix, np.zeros((1, self.matrix.shape[1])), axis=0), self.owners, self.names
        )

    @staticmethod
    def of(parts: Iterable[tuple[slice, Features | None]], groups: Sequence[int]) -> FeatureColumns | None:
        """Return the descriptors of choices, given their coordinates; None if there are none."""
        described = [(columns, features) for columns, features in parts if features is not None]
        if not described:
            return None
        width = sum(features.matrix.shape[1] for _, features in described)
        matrix = np.zeros((len(groups), width))
        owners: list[int] = []
        names: list[str] = []
        for columns, features in described:
            k = features.matrix.shape[1]
            matrix[columns, len(owners) : len(owners) + k] = features.matrix
            owners += [groups[columns.start]] * k
            names += features.kept
        return FeatureColumns(matrix, tuple(owners), tuple(names))


def _own(given: Mapping[Any, Any], option: Any) -> Any:
    """Return the row of an option in a dict by option."""
    for key, row in given.items():
        if same_option(key, option):
            return row
    sentence = f"features has no row for the option {checks.shown(option)}; {_REMEDY}"
    raise RefusedValue(sentence, "no-descriptors", option=option)


def _of_frame(frame: Any, options: Sequence[Any]) -> tuple[list[list[float]], list[str]]:
    """Read a DataFrame whose index has the options."""
    names = [str(name) for name in frame.columns]
    index = frame.index.tolist()
    rows = []
    for option in options:
        at = [i for i, label in enumerate(index) if same_option(label, option)]
        if len(at) != 1:
            what = "no row" if not at else f"{len(at)} rows"
            raise ValueError(
                f"features has {what} for the option {checks.shown(option)}; "
                "give a DataFrame with one row for each option, and the options as its index"
            )
        rows.append(_numbers(frame.iloc[at[0]].tolist(), names, option))
    return rows, _distinct(names)


def _of_rows(given: list[Any], options: Sequence[Any]) -> tuple[list[list[float]], list[str]]:
    """Read a row for each option: a dict of numbers by name, a list of numbers, or one number."""
    if len(given) != len(options):
        raise ValueError(f"features has {len(given)} rows for {len(options)} options; give a row for each option")
    if given and isinstance(given[0], Mapping):
        names, rows = list(given[0]), []
        for option, row in zip(options, given, strict=True):
            if not isinstance(row, Mapping) or set(row) != set(names):
                raise ValueError(
                    f"features of {checks.shown(option)} is {checks.shown(row)}; give the same descriptors for all "
                    f"options, here {', '.join(map(str, names))}"
                )
            rows.append(_numbers([row[name] for name in names], names, option))
        return rows, _distinct([str(name) for name in names])
    lists = [list(row) if isinstance(row, list | tuple | np.ndarray) and np.ndim(row) == 1 else [row] for row in given]
    width = len(lists[0]) if lists else 0
    names = [f"descriptor {j + 1}" for j in range(width)]
    for option, row in zip(options, lists, strict=True):
        if len(row) != width or not row:
            raise ValueError(
                f"features of {checks.shown(option)} has {len(row)} numbers, that of {checks.shown(options[0])} has "
                f"{width}; give the same descriptors for all options, at least one"
            )
    return [_numbers(row, names, option) for option, row in zip(options, lists, strict=True)], names


def _numbers(row: Sequence[Any], names: Sequence[Any], option: Any) -> list[float]:
    if not row or len(row) > MOST_FEATURES:
        raise ValueError(f"features has {len(row)} descriptors; give 1 to {MOST_FEATURES}")
    label = checks.shown(option)
    remedy = "give a finite number, or leave out the descriptor"
    return [
        checks.number(f"{name} of {label} in features", number, remedy) for name, number in zip(names, row, strict=True)
    ]


def _distinct(names: list[str]) -> list[str]:
    twice = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
    if twice:
        raise ValueError(f"features has the descriptor {min(twice)!r} twice; give each descriptor its own name")
    return names
