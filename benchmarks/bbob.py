"""Does gpmi find better points than other tools on functions that others chose? The BBOB suite, once.

    python benchmarks/bbob.py [--tools ...] [--dimensions ...]    plays what is missing and writes the page
    python benchmarks/bbob.py --report                            writes the page from the table

The 24 noise-free functions of BBOB (package ioh) in 2, 5 and 10 dimensions, instance 1 of each, on their box [-5, 5]^d.
A run has 100 evaluations from the tool's own start, seed 0, and each tool is configured as in `compare.py`. Each run
has its own process, one BLAS thread and 15 minutes of CPU. A run that takes longer, or raises, is a row with its reason
in `status`, and counts as the worst. BoTorch's LogEI takes a minute a run.

The functions, instance, seed, budget and targets were fixed before any run. gpmi runs once, after its last change, and
nothing is chosen by the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import harness
import numpy as np
from peers import optimisers as peers
from peers import playing
from problems.functions import Array

NEEDS = "peers"
FUNCTIONS, DIMENSIONS = range(1, 25), (2, 5, 10)
INSTANCE, BUDGET, SEED = 1, 100, 0
TOOLS = ("gpmi", "gpmi earn", "random", "CMA-ES", "Optuna TPE", "Emukit EI", "Optuna GP", "BoTorch LogEI")
COLUMNS = ("tool", "version", "function", "dimension", "status", "gap", "cpu", "improvements")
RUNS = harness.Table(harness.DOCS / "bbob.csv", COLUMNS, ("tool", "function", "dimension"))


class Run(NamedTuple):
    """A run: a key of the table."""

    tool: str
    function: int
    dimension: int


def gap_of(function: int, dimension: int) -> Callable[[Array], float]:
    """Return f minus its minimum."""
    import ioh

    problem: Any = ioh.get_problem(function, INSTANCE, dimension, ioh.ProblemClass.BBOB)
    return lambda x: max(problem(x) - problem.optimum.y, 0.0)


def play(run: Run, gap: Callable[[Array], float]) -> harness.Row:
    """Minimise the gap on [-5, 5]^d and return the row of the run.

    `gap` is the smallest gap, `cpu` the seconds in ask and tell, `improvements` each evaluation that was better than
    all before, with its gap.
    """
    tool = peers.make(run.tool, [(-5.0, 5.0)] * run.dimension, SEED, BUDGET, alone=True)
    peers.one_thread()
    gaps: list[float] = []

    def observe(x: Array) -> float:
        gaps.append(gap(x))
        return -gaps[-1]

    return row(run, gaps, *playing.play(tool, observe, BUDGET, ([], [])))


def row(run: Run, gaps: list[float], cpu: float, status: str) -> harness.Row:
    best = np.minimum.accumulate(gaps) if gaps else np.empty(0)
    better = [i for i in range(len(best)) if i == 0 or best[i] < best[i - 1]]
    return {
        "tool": run.tool,
        "version": peers.version(run.tool),
        "function": str(run.function),
        "dimension": str(run.dimension),
        "status": status,
        "gap": f"{best[-1]:.6g}" if status == "done" else "",
        "cpu": f"{cpu:.4g}",
        "improvements": " ".join(f"{i + 1}:{best[i]:.6g}" for i in better),
    }


def _play_and_store(run: Run) -> None:
    RUNS.append(play(run, gap_of(run.function, run.dimension)))


def place(found: harness.Row) -> tuple[int, int, int]:
    return TOOLS.index(found["tool"]), int(found["dimension"]), int(found["function"])


def main() -> None:
    parser = harness.parser(__doc__, report=True)
    parser.add_argument("--tools", nargs="+", default=list(TOOLS), choices=TOOLS, metavar="TOOL")
    parser.add_argument("--dimensions", nargs="+", type=int, default=list(DIMENSIONS), choices=DIMENSIONS)
    chosen = parser.parse_args()
    wanted = [Run(tool, f, d) for tool in chosen.tools for d in chosen.dimensions for f in FUNCTIONS]
    todo = [] if chosen.report else RUNS.missing(wanted)
    for run in todo:
        begin = time.monotonic()
        peers.make(run.tool, [(0.0, 1.0)], SEED)  # imports its library here, not in every process
        ended = playing.alone(_play_and_store, run)
        if ended != "done":
            RUNS.append(row(run, [], 0.0, ended))
        harness.say(
            f"{time.strftime('%H:%M:%S')} {', '.join(map(str, run))}: {ended}, {time.monotonic() - begin:.0f} s"
        )
    RUNS.tidy(place, latest=True)


if __name__ == "__main__":
    main()
