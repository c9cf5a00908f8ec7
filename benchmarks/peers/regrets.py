"""The regrets and the costs of the comparison, read from its tables; `report.py` writes them down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import problems
from numpy.typing import NDArray
from problems.functions import Array

from . import comparison
from . import optimisers as peers
from .statistics import ranks

US, EARN = peers.OURS
GP_PEERS = tuple(name for name in peers.PEERS if name not in (US, EARN, "random", "CMA-ES", "Optuna TPE"))
MISS = 0.01  # a run misses if its gap is above this share of the spread of f
KINDS = {"simple": "simple regret", "mean": "R_T/T"}
STARTS = {"own": "each tool's own start", "common": "ten common points"}


@dataclass(frozen=True)
class Runs:
    """The runs of one setting, as tables (peer, problem, seed) with NaN where there was no run."""

    start: str
    budget: int
    peers: tuple[str, ...]
    problems: tuple[str, ...]
    rows: dict[comparison.Run, comparison.Row]  # of this setting
    best: dict[tuple[str, int], float]  # the best value of all settings, by problem and seed

    @staticmethod
    def of(rows: dict[comparison.Run, comparison.Row], start: str, budget: int, names: Sequence[str]) -> Runs:
        mine = {run: row for run, row in rows.items() if (run.start, run.budget) == (start, budget)}
        mine = {run: row for run, row in mine.items() if run.problem in names}
        found, named = {run.peer for run in mine}, {run.problem for run in mine}
        in_order = tuple(p for p in peers.PEERS if p in found), tuple(p for p in names if p in named)
        return Runs(start, budget, *in_order, mine, best_values(rows))

    @property
    def title(self) -> str:
        return f"{STARTS[self.start]}, T = {self.budget}"

    @property
    def seeds(self) -> int:
        return 1 + max((run.seed for run in self.rows), default=0)

    def maximum(self, problem: str, seed: int) -> float:
        """Return the maximum, or the best value of all runs where it is unknown or a run has exceeded it."""
        maximum, best = problems.make(problem, seed).maximum, self.best[problem, seed]
        return best if maximum is None or best > maximum + 1e-6 * abs(maximum) else maximum

    @cached_property
    def curves(self) -> dict[comparison.Run, Array]:
        """Return the noise-free regret of the first sixty evaluations of each finished run."""
        return {
            run: np.maximum(self.maximum(run.problem, run.seed) - np.array(row["values"].split(), dtype=float), 0.0)
            for run, row in self.rows.items()
            if row["status"] == "done"
        }

    @cached_property
    def regrets(self) -> dict[str, Array]:
        """Return simple regret, R_T/T and whether the run missed (1 or 0). A failed run has infinite regret."""
        shape = len(self.peers), len(self.problems), self.seeds
        tables = {kind: np.full(shape, np.nan) for kind in (*KINDS, "miss")}
        for run, row in self.rows.items():
            at = self.peers.index(run.peer), self.problems.index(run.problem), run.seed
            maximum, done = self.maximum(run.problem, run.seed), row["status"] == "done"
            simple = max(maximum - float(row["best"]), 0.0) if done else np.inf
            tables["simple"][at] = simple
            tables["mean"][at] = maximum - float(row["mean"]) if done else np.inf
            tables["miss"][at] = float(simple > MISS * problems.spread(run.problem, maximum))
        return tables

    def without(self, *names: str) -> Runs:
        """Return the same runs without these peers."""
        left = tuple(peer for peer in self.peers if peer not in names)
        rows = {run: row for run, row in self.rows.items() if run.peer in left}
        return Runs(self.start, self.budget, left, self.problems, rows, self.best)

    @cached_property
    def covering(self) -> list[int]:
        """Return the peers with a run on every problem, which can be ranked."""
        seen = {peer: {run.problem for run in self.rows if run.peer == peer} for peer in self.peers}
        return [i for i, peer in enumerate(self.peers) if len(seen[peer]) == len(self.problems)]

    @cached_property
    def shared(self) -> NDArray[np.bool_]:
        """Return the pairs (problem, seed) that all covering peers have."""
        shared: NDArray[np.bool_] = ~np.isnan(self.regrets["simple"][self.covering]).any(axis=0)
        return shared

    def ranks(self, kind: str) -> dict[str, Array]:
        """Return the ranks (problem, seed) of the covering peers on the pairs they share, NaN on others."""
        scored = ranks(self.regrets[kind][self.covering])
        return {self.peers[i]: scored[k] for k, i in enumerate(self.covering)}

    def misses(self) -> dict[str, Array]:
        """Return which of the shared pairs (problem, seed) the covering peers missed, NaN on others."""
        return {self.peers[i]: np.where(self.shared, self.regrets["miss"][i], np.nan) for i in self.covering}


def best_values(rows: dict[comparison.Run, comparison.Row]) -> dict[tuple[str, int], float]:
    """Return the best value of all runs, by problem and seed. The seed matters for the GP draws only."""
    best: dict[tuple[str, int], float] = {}
    seeds = range(1 + max(run.seed for run in rows))
    for run, row in rows.items():
        if row["status"] == "done":
            for seed in [run.seed] if run.problem in problems.DRAWS else seeds:
                key = run.problem, seed
                best[key] = max(float(row["best"]), best.get(key, -np.inf))
    return best


@dataclass(frozen=True)
class Costs:
    """CPU seconds per suggestion by peer and n, from the table of cost.py."""

    rows: list[dict[str, str]]

    @cached_property
    def seconds(self) -> dict[str, dict[int, float]]:
        found: dict[str, dict[int, float]] = {}
        for row in self.rows:
            if row["status"] == "done":
                found.setdefault(row["peer"], {})[int(row["n"])] = float(row["cpu"])
        return found

    def cheapest(self, n: int) -> tuple[str, float] | None:
        """Return the GP peer with the lowest cost at n."""
        at = {peer: self.seconds[peer][n] for peer in GP_PEERS if n in self.seconds.get(peer, {})}
        return min(at.items(), key=lambda item: item[1]) if at else None
