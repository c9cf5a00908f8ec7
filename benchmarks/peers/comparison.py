"""The tables of the comparison with the peers: the runs that `compare.py` makes, and the costs that `cost.py` measures.

`report.py` writes their pages.
"""

from __future__ import annotations

from typing import NamedTuple

import harness
import problems
from problems import held_out

from . import optimisers

STARTS, BUDGETS = ("own", "common"), (60, 200)
NAMES = (*problems.NAMES, *held_out.NAMES)
COLUMNS = ("peer", "version", "problem", "start", "budget", "seed", "status", "best", "mean", "cpu", "memory", "values")
KEY = ("peer", "problem", "start", "budget", "seed")
RUNS = harness.Table(harness.DOCS / "compare" / "runs.csv", COLUMNS, KEY)
CHECKED = RUNS.path.with_name("checked.json")
ROUNDS = 20  # of ask and tell, in a measurement of the cost
COSTS = harness.Table(
    harness.DOCS / "cost.csv",
    ("peer", "version", "n", "status", "rounds", "cpu", "median", "memory"),
    ("peer", "n"),
)
Row = harness.Row


class Run(NamedTuple):
    """A run of the comparison: a key of its table."""

    peer: str
    problem: str
    start: str
    budget: int
    seed: int


def run_of(row: Row) -> Run:
    """Return the run that a row is about."""
    return Run(row["peer"], row["problem"], row["start"], int(row["budget"]), int(row["seed"]))


def load() -> dict[Run, Row]:
    """Return the rows of all runs. Of two rows of a run the later one counts."""
    return {run_of(row): row for row in RUNS.rows()}


def place(run: Run) -> tuple[int, ...]:
    """Return the place of a run in the order of the table."""
    peer, problem = list(optimisers.PEERS).index(run.peer), NAMES.index(run.problem)
    return STARTS.index(run.start), run.budget, peer, problem, run.seed


def tidy() -> None:
    """Sort the table, and drop rows that later ones replaced."""
    RUNS.tidy(lambda row: place(run_of(row)), latest=True)
