"""Mixtures: parameters whose sum is fixed, such as the shares of three solvents. Moves along them, and triangles.

A parameter of a mixture cannot change alone. When it rises, the others fall in proportion, so that their ratios stay.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpmi._support.types import Array
from gpmi.space.conditions.arc import OnArc
from gpmi.space.product import Parameters
from gpmi.space.real import Real
from gpmi.space.space import Space


@dataclass(frozen=True)
class Mixture:
    """Parameters with the same weight in a sum that is fixed. Their coordinates are their values."""

    names: tuple[str, ...]
    columns: tuple[int, ...]
    total: float
    lows: tuple[float, ...]

    def moved(self, row: Array, column: int, values: Array) -> Array:
        """Return points (m, d) in which one component takes values (m,) and the others share the rest.

        They keep the proportions of row (d,); if all of them are 0 there, they share it equally. Points outside the
        ranges of the parameters are returned as well.
        """
        others = [component for component in self.columns if component != column]
        rest = row[others]
        shares = rest / rest.sum() if rest.sum() > 0.0 else np.full(len(others), 1.0 / len(others))
        rows = np.tile(row, (len(values), 1))
        rows[:, column] = values
        rows[:, others] = (row[column] + rest.sum() - values)[:, None] * shares
        return rows


@dataclass(frozen=True)
class Triangle:
    """Three components of a mixture while everything else stays: the corners have all of one component."""

    mixture: Mixture
    members: tuple[int, int, int]  # indices into the mixture
    total: float  # of the three

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.mixture.names[i] for i in self.members)

    @property
    def _columns(self) -> list[int]:
        return [self.mixture.columns[i] for i in self.members]

    @property
    def lows(self) -> Array:
        """The least value of each component, (3,): the corners are as far out as these allow."""
        return np.array([self.mixture.lows[i] for i in self.members])

    @property
    def highs(self) -> Array:
        """The value of each component at its corner, (3,)."""
        highs: Array = self.total - (self.lows.sum() - self.lows)
        return highs

    def rows(self, row: Array, weights: Array) -> Array:
        """Return the points with these barycentric weights (m, 3), everything else as in row (d,)."""
        rows = np.tile(row, (len(weights), 1))
        rows[:, self._columns] = self.lows + weights * (self.total - self.lows.sum())
        return rows

    def weights(self, rows: Array) -> Array:
        """Return the weights (m, 3) of points (m, d), which may have another total: then of their proportions."""
        parts = rows[:, self._columns]
        sums = parts.sum(axis=1, keepdims=True)
        scaled = np.where(sums > 0.0, parts * self.total / np.where(sums > 0.0, sums, 1.0), self.total / 3.0)
        weights: Array = (scaled - self.lows) / (self.total - self.lows.sum())
        return weights


def mixtures_of(space: Space) -> tuple[Mixture, ...]:
    """Return the mixtures of a space: equations between two parameters or more on a linear scale, weighted alike."""
    if not isinstance(space, Parameters):
        return ()
    names = space.names or tuple(f"x{i}" for i in range(len(space.parameters)))
    mixtures = []
    for inequality in space.constraints.linear:
        (members,) = np.nonzero(inequality.coefficients)
        parts = [(space.encodings[j], space.columns[j]) for j in members]
        weight = inequality.coefficients[members[0]] if len(members) else 0.0
        alike = (
            len(members) > 1
            and inequality.lower == inequality.upper
            and bool(np.all(inequality.coefficients[members] == weight))
        )
        if alike and all(isinstance(part, Real) and not part.log and not isinstance(part, OnArc) for part, _ in parts):
            columns = tuple(int(column.start) for _, column in parts)
            lows = tuple(float(part.lo) for part, _ in parts if isinstance(part, Real))
            total = float(inequality.lower / weight)
            if total > sum(lows):
                mixtures.append(Mixture(tuple(names[j] for j in members), columns, total, lows))
    return tuple(mixtures)


def grid_of(sides: int) -> tuple[Array, Array]:
    """Return the weights (m, 3) of a triangular grid, and its small triangles as indices (sides^2, 3)."""
    at, weights = dict[tuple[int, int], int](), list[tuple[float, float, float]]()
    for i in range(sides + 1):
        for j in range(sides + 1 - i):
            at[i, j] = len(weights)
            weights.append((i / sides, j / sides, (sides - i - j) / sides))
    small = []
    for i in range(sides):
        for j in range(sides - i):
            small.append((at[i, j], at[i + 1, j], at[i, j + 1]))
            if i + j < sides - 1:
                small.append((at[i + 1, j], at[i + 1, j + 1], at[i, j + 1]))
    return np.array(weights), np.array(small)
