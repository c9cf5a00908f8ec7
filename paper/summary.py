"""What the table says: means over repetitions with their 95 % intervals, and who was better than whom."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from scipy.special import stdtrit

from gpmi._support.types import Array, Mask
from paper.table import Row

MISSED = 0.1  # sd of f: a run with a larger mean regret in its last 50 queries has missed the maximum; our choice
FEW = 3  # a run with no more different points among its last 50 queries repeats itself; our choice


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

    def until(self, horizon: int) -> Summary:
        """What it would have been after the first `horizon` queries."""
        return Summary(tuple(row.until(horizon) for row in self.rows))

    @property
    def last(self) -> Array:
        """The mean regret of the last 50 queries, or of the last quarter, of each repetition."""
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
    def stuck(self) -> Mask:
        """Which repetitions end by repeating a wrong point: the last queries are at most three different points, and
        their mean regret is above 0.1. An algorithm that still explores is not stuck."""
        repeats = np.array([len(set(row.queries[row.last])) <= FEW for row in self.rows])
        stuck: Mask = repeats & (self.last > MISSED)
        return stuck

    @property
    def stuck_share(self) -> float:
        """The share of the repetitions that are stuck."""
        return float(self.stuck.mean())

    def __format__(self, _: str) -> str:
        """The mean of R_T / T and half its interval."""
        return f"{self.mean:.3f} ± {self.half:.3f}" if len(self.rows) > 1 else f"{self.mean:.3f}"


Summaries: TypeAlias = Mapping[tuple[str, str], Summary]  # by task and algorithm


def summarise(rows: Iterable[Row]) -> Summaries:
    """The rows by task and algorithm."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.key):
        groups.setdefault((row.task, row.algorithm), []).append(row)
    return {name: Summary(tuple(group)) for name, group in groups.items()}


def at_horizon(summaries: Summaries, tasks: Collection[str], horizon: int) -> Summaries:
    """The summaries of these tasks after `horizon` queries; those of the others as they are."""
    return {
        (task, name): summary.until(horizon) if task in tasks else summary
        for (task, name), summary in summaries.items()
    }


def half_interval(values: Array) -> Array:
    """Half of the 95 % interval of the mean over the first axis, by Student's t; infinite for one repetition."""
    n = len(values)
    if n == 1:
        return np.full(values.shape[1:], np.inf)
    half: Array = stdtrit(n - 1, 0.975) * values.std(axis=0, ddof=1) / np.sqrt(n)
    return half


def compare(one: Summary, other: Summary) -> int:
    """-1 if `one` has the lower R_T / T, 1 if the higher, 0 if the 95 % interval of the difference contains 0."""
    return sign_of_difference(one.final, other.final)


def sign_of_difference(one: Array | Mask, other: Array | Mask) -> int:
    """The sign of the mean difference of two quantities, 0 if its 95 % interval contains 0.

    The difference is taken repetition by repetition: both met the same draw, initial observations and noise.
    """
    difference = one.astype(float) - other.astype(float)
    half = float(half_interval(difference))
    return 0 if abs(float(difference.mean())) <= half else int(np.sign(difference.mean()))
