"""What the table says: means over repetitions with their 95 % intervals, and who was better than whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from gpmi.linalg import Array
from gpmi.paper.table import Row

STUCK = 0.1  # a run has not arrived if its last 50 queries have a larger mean regret, in sd of f


@dataclass(frozen=True, eq=False)
class Summary:
    """All repetitions of one algorithm on one task, in the order of their numbers."""

    rows: tuple[Row, ...]

    @cached_property
    def curves(self) -> Array:
        """R_t / t, (repetitions, T)."""
        return np.array([row.mean_regrets for row in self.rows])

    @property
    def final(self) -> Array:
        """R_T / T of each repetition."""
        return self.curves[:, -1]

    @property
    def last(self) -> Array:
        """The mean regret of the last 50 queries of each repetition."""
        return np.array([row.last_regret for row in self.rows])

    @property
    def mean(self) -> float:
        """The mean of R_T / T."""
        return float(self.final.mean())

    @property
    def half(self) -> float:
        """Half of its 95 % interval."""
        return float(half_interval(self.final))

    @property
    def never(self) -> float:
        """The share of repetitions that never queried the maximiser."""
        return float(np.mean([not row.found for row in self.rows]))

    @property
    def stuck(self) -> float:
        """The share of repetitions whose last 50 queries have a mean regret above 0.1."""
        return float(np.mean(self.last > STUCK))


Summaries: TypeAlias = Mapping[tuple[str, str], Summary]  # by task and algorithm


def summarise(rows: Iterable[Row]) -> Summaries:
    """The rows by task and algorithm."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.key):
        groups.setdefault((row.task, row.algorithm), []).append(row)
    return {name: Summary(tuple(group)) for name, group in groups.items()}


def half_interval(values: Array) -> Array:
    """Half of the 95 % interval of the mean over the first axis: 1.96 standard errors; infinite for one repetition."""
    n = len(values)
    if n == 1:
        return np.full(values.shape[1:], np.inf)
    half: Array = 1.96 * values.std(axis=0, ddof=1) / np.sqrt(n)
    return half


def compare(one: Summary, other: Summary) -> int:
    """-1 if `one` has the lower R_T / T, 1 if the higher, 0 if the 95 % interval of the difference contains 0.

    The difference is taken repetition by repetition: both met the same draw, initial observations and noise.
    """
    difference = one.final - other.final
    half = float(half_interval(difference))
    return 0 if abs(float(difference.mean())) <= half else int(np.sign(difference.mean()))
