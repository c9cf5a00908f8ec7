"""How good is the point that a tool recommends when values are noisy?

    python benchmarks/recommended.py [--tools ...] [--seeds N] [--again]    plays what is missing and writes the page
    python benchmarks/recommended.py --report                               writes the page from the table

Six problems with normal noise of 0.1, 0.3 and 1 standard deviation of f over its box. A run has 60 evaluations from the
tool's own start. Nobody tells a tool how large the noise is. At the end the tool recommends a point (see
`peers/recommendations.py`), which is judged by its noise-free value: the regret is its gap to the maximum, in units of
the spread of f, its maximum minus its mean over the box. The noise of evaluation n is the same for all tools.

Each run has its own process, one BLAS thread and 15 minutes of CPU. There are ten seeds, low ones first; a tool is
compared on the seeds that it has. With --again, failed runs and runs of another version of a tool are replaced.
Problems, levels, seeds and tools were listed before the first run. Four of the problems are of the twenty on which gpmi
was developed, griewank-3 and shekel-4 are of the ten held out.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import harness
import problems
from peers import optimisers as peers
from peers import playing
from peers.recommendations import CHOICES, recommended
from problems.functions import Problem

NEEDS = "peers"
PROBLEMS = ("branin", "gp-2", "hartmann-3", "griewank-3", "shekel-4", "hartmann-6")
LEVELS = ("0.1", "0.3", "1")
TOOLS = ("gpmi", "gpmi earn", "random", "CMA-ES", "Optuna TPE", "Emukit EI", "Optuna GP", "BoTorch LogEI")
SEEDS = 10
BUDGET, SAMPLE = 60, 4096  # evaluations; points for the standard deviation of f
COLUMNS = ("tool", "version", "problem", "noise", "seed", "status", *CHOICES, "cpu")
RUNS = harness.Table(harness.DOCS / "recommended.csv", COLUMNS, ("tool", "problem", "noise", "seed"))


class Run(NamedTuple):
    """A run: a key of the table."""

    tool: str
    problem: str
    noise: str
    seed: int


@cache
def problem_of(name: str, noise: str, seed: int) -> Problem:
    """Return the problem with noise in units of the standard deviation of f."""
    exact = problems.make(name, seed)
    return replace(exact, noise_sd=float(noise) * float(problems.values_at_random(exact, SAMPLE).std()))


def play(run: Run) -> harness.Row:
    """Play one run and return its row, with the regret of each choice that the tool has."""
    problem = problem_of(run.problem, run.noise, run.seed)
    tool = peers.make(run.tool, problem.space, run.seed, BUDGET, alone=True)
    peers.one_thread()
    x: list[Any] = []
    y: list[float] = []

    def observe(point: Any) -> float:
        x.append(point)
        y.append(problem.observe(point, run.seed, len(x)))
        return y[-1]

    cpu, status = playing.play(tool, observe, BUDGET, ([], []))
    maximum = problem.maximum
    assert maximum is not None
    found = recommended(tool, problem.space, x, y) if status == "done" else {}
    spread = problems.spread(run.problem, maximum)
    regrets = {choice: f"{max(maximum - problem.f(point), 0.0) / spread:.6g}" for choice, point in found.items()}
    return {**row(run, status, cpu), **regrets}


def row(run: Run, status: str, cpu: float) -> harness.Row:
    named = {name: str(value) for name, value in run._asdict().items()}
    return {**named, "version": peers.version(run.tool), "status": status, "cpu": f"{cpu:.4g}"}


def _play_and_store(run: Run) -> None:
    RUNS.append(play(run))


def place(found: harness.Row) -> tuple[int, ...]:
    at = TOOLS.index(found["tool"]), PROBLEMS.index(found["problem"]), LEVELS.index(found["noise"])
    return *at, int(found["seed"])


def missing(chosen: Any) -> list[Run]:
    """Return the runs that are left, low seeds first, so that a partial table is balanced."""
    table = RUNS.latest()

    def left(run: Run) -> bool:
        old = table.get(tuple(map(str, run)))
        if old is None or not chosen.again:
            return old is None
        return old["status"] != "done" or old["version"] != peers.version(run.tool)

    every = itertools.product(range(chosen.seeds), chosen.tools, PROBLEMS, LEVELS)
    return [run for seed, tool, name, noise in every if left(run := Run(tool, name, noise, seed))]


def main() -> None:
    parser = harness.parser(__doc__, report=True)
    parser.add_argument("--tools", nargs="+", default=list(TOOLS), choices=TOOLS, metavar="TOOL")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--again", action="store_true", help="replace failed runs and runs of another version")
    chosen = parser.parse_args()
    todo = [] if chosen.report else missing(chosen)
    for run in todo:
        begin = time.monotonic()
        peers.make(run.tool, [(0.0, 1.0)], 0)  # imports its library here, not in every process
        ended = playing.alone(_play_and_store, run)
        if ended != "done":
            RUNS.append(row(run, ended, 0.0))
        harness.say(
            f"{time.strftime('%H:%M:%S')} {', '.join(map(str, run))}: {ended}, {time.monotonic() - begin:.0f} s"
        )
    RUNS.tidy(place, latest=True)


if __name__ == "__main__":
    main()
