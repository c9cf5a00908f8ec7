"""What the pages about comparisons share: ranks, intervals, verdicts, and how each tool is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from problems.functions import Array

from . import optimisers

DRAWN = 2000  # bootstrap samples


@dataclass(frozen=True)
class Verdict:
    claim: str
    holds: bool | None  # None: not measured
    figures: str

    def __str__(self) -> str:
        word = {True: "holds", False: "**misses**", None: "not measured"}[self.holds]
        return f"- {self.claim}: {word}. {self.figures}"


def ranks(regret: Array) -> Array:
    """Return the rank of each peer, (peer, ...): 1 for the lowest regret, and the mean rank for ties."""
    lower = np.sum(regret[None] < regret[:, None], axis=1)
    equal = np.sum(regret[None] == regret[:, None], axis=1)
    return np.where(np.isnan(regret).any(axis=0), np.nan, lower + (equal + 1) / 2)


def ahead(ours: Array, theirs: Array) -> Array:
    """Return 1 where ours is lower, 1/2 for a tie, 0 where it is higher, NaN where one is missing."""
    result = np.where(ours < theirs, 1.0, np.where(ours == theirs, 0.5, 0.0))
    return np.where(np.isnan(ours) | np.isnan(theirs), np.nan, result)


def interval(table: Array) -> tuple[float, float, float]:
    """Return the mean of a table (problem, seed) with its 95 % bootstrap interval, over problems and seeds in each."""
    rng = np.random.default_rng(0)
    p, s = table.shape
    rows = rng.integers(p, size=(DRAWN, p, 1))
    columns = rng.integers(s, size=(DRAWN, p, s))
    drawn = table[rows, columns].reshape(DRAWN, -1)
    filled = ~np.isnan(drawn)
    means = np.where(filled, drawn, 0.0).sum(axis=1) / np.maximum(filled.sum(axis=1), 1)
    lo, hi = np.quantile(means[filled.any(axis=1)], [0.025, 0.975])
    return float(np.nanmean(table)), float(lo), float(hi)


def medians(regret: Array) -> Array:
    """Return the medians over the seeds, (peer, problem), with NaN where a peer has no run."""
    with np.errstate(all="ignore"):
        return np.array(
            [[np.median(r[~np.isnan(r)]) if (~np.isnan(r)).any() else np.nan for r in peer] for peer in regret]
        )


def slope(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Return the exponent of the growth between the first and the last size."""
    return float(np.log(seconds[-1] / seconds[0]) / np.log(sizes[-1] / sizes[0]))


def table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def with_interval(estimate: tuple[float, float, float], form: str) -> str:
    mean, lo, hi = (form.format(value) for value in estimate)
    return f"{mean} ({lo} to {hi})"


def colours(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return how each peer is drawn: gpmi in black and thick, the others in colours of their own."""
    import matplotlib

    palette = matplotlib.color_sequences["tab20"]
    styles: dict[str, dict[str, Any]] = {}
    for i, name in enumerate(optimisers.PEERS):
        styles[name] = {"color": palette[(2 * i) % 20 + (2 * i) // 20], "linewidth": 1.1, "zorder": 2}
    styles[optimisers.OURS[0]] = {"color": "black", "linewidth": 2.2, "zorder": 3}
    return {name: styles[name] for name in names}
