"""Does gpmi find better points than other tools? Every peer on thirty problems, from two starts, with two budgets.

    python benchmarks/compare.py [--peers ...] [--problems ...] [--starts ...] [--budgets ...] [--seeds N] [--cores N]
    python benchmarks/compare.py --check N      plays N of gpmi's runs again, to see whether this version repeats them

A run starts from a design of ten points common to all peers ("common"), or as the peer does by itself ("own"). It has
60 or 200 evaluations, the design included. Each run has its own process, one BLAS thread and 15 minutes of CPU. A run
that takes longer, or raises, is a row with its reason in `status`. A run whose row is in
docs/benchmarks/compare/runs.csv is not repeated, so the work can be stopped and resumed. With --again, failed runs and
runs of another version of a peer are replaced. Low seeds come first, so that a partial table is balanced. `wanted`
says which runs belong to the comparison. All of it takes days; at the end `report.py` writes the pages.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import harness
import numpy as np
import problems
from peers import optimisers as peers
from peers import playing
from peers.comparison import BUDGETS, CHECKED, NAMES, RUNS, STARTS, Row, Run, load, place, tidy

import gpmi
from gpmi.space import Parameters

NEEDS = "peers and HEBO"
INITIAL = 10  # evaluations
KEPT = 60  # values of a run that are stored, for the curves
FLAT = tuple(n for n in NAMES if isinstance(problems.make(n, 0).space, list) and len(problems.make(n, 0).space) == 2)
TEN = (*FLAT[:4], "hartmann-6", "ackley-5", "rosenbrock-4", "hartmann-mixed", "shekel-4", "eggholder-2")


def wanted(run: Run) -> bool:
    """Return whether the run belongs to the comparison.

    Ax and HEBO, the slowest, have three seeds of the problems in two dimensions. The other slow peers have ten seeds
    with 60 evaluations from their own start, and three seeds elsewhere. bayesian-optimization would need more than a
    quarter of an hour in a hundred dimensions. With 200 evaluations there are the peers that take less than half a
    second of CPU for a suggestion, and BoTorch's LogEI on ten problems.
    """
    if run.peer in peers.SLOWEST and (run.problem not in FLAT or run.seed >= 3):
        return False
    if run.peer == "bayesian-optimization" and run.problem == "hartmann-6-in-100":
        return False
    if run.seed >= 3 and run.peer in peers.SLOW and (run.start, run.budget) != ("own", 60):
        return False
    if run.seed >= 3 and run.peer in peers.HALF_SLOW and run.budget > 60:
        return False
    if run.budget == 60:
        return True
    return run.peer in peers.CHEAP or (run.peer == "BoTorch LogEI" and run.problem in TEN)


def design(problem: problems.Problem, seed: int) -> list[Any]:
    """Return ten points of the problem's space, a Latin hypercube that depends on the problem and the seed only."""
    space = gpmi.Space.of(problem.space)
    assert isinstance(space, Parameters)
    rng = np.random.default_rng([zlib.crc32(problem.name.encode()), seed, INITIAL])
    strata = np.argsort(rng.random((INITIAL, space.unit_dim)), axis=0)
    rows = space.from_unit((strata + rng.random(strata.shape)) / INITIAL)
    return [space.decode(row) for row in rows]


def play(run: Run) -> Row:
    """Play one run and return its row.

    best is the best of all noise-free values f(x_1) ... f(x_T), mean the mean of those after the common design. cpu is
    the time in ask and tell in seconds, memory the peak of the process in MB, values the first sixty f(x_t).
    """
    problem = problems.make(run.problem, run.seed)
    optimizer = peers.make(run.peer, problem.space, run.seed, run.budget, alone=run.start == "own")
    peers.one_thread()
    values: list[float] = []

    def observe(x: Any) -> float:
        values.append(problem.f(x))
        return values[-1] + problem.noise(run.seed, len(values))

    points = design(problem, run.seed) if run.start == "common" else []
    told = points, [observe(x) for x in points]
    cpu, status = playing.play(optimizer, observe, run.budget - len(points), told)
    return row(run, status, values, cpu)


def row(run: Run, status: str, values: list[float], cpu: float) -> Row:
    """Return the row of a run."""
    done = status == "done"
    chosen = values[INITIAL if run.start == "common" else 0 :]
    return {
        "peer": run.peer,
        "version": peers.version(run.peer),
        "problem": run.problem,
        "start": run.start,
        "budget": str(run.budget),
        "seed": str(run.seed),
        "status": status,
        "best": f"{max(values):.10g}" if done else "",
        "mean": f"{np.mean(chosen):.8g}" if done else "",
        "cpu": f"{cpu:.4g}",
        "memory": f"{harness.peak_memory() / 1024:.0f}",
        "values": " ".join(f"{value:.8g}" for value in values[:KEPT]),
    }


def work(peer: str, start: str, budget: int, seed: int, names: list[str]) -> None:
    """Play the runs of one peer with one seed, each in a process forked after the peer's library has been imported."""
    peers.make(peer, [(0.0, 1.0)], 0)
    peers.one_thread()
    for name in names:
        run, begin = Run(peer, name, start, budget, seed), time.monotonic()
        ended = playing.alone(_play_and_store, run)
        if ended != "done":
            RUNS.append(row(run, ended, [], float(playing.LIMIT) if "more than" in ended else 0.0))
        status, seconds = load()[run]["status"], time.monotonic() - begin
        harness.say(f"{time.strftime('%H:%M:%S')} {', '.join(map(str, run))}: {status}, {seconds:.0f} s")


def _play_and_store(run: Run) -> None:
    RUNS.append(play(run))


class Job(NamedTuple):
    """Runs that differ in the problem only."""

    peer: str
    start: str
    budget: int
    seed: int
    problems: list[str]


def check(count: int) -> None:
    """Play `count` of gpmi's runs again, spread over all of them, and store how many are the same in every digit."""
    table = load()
    ours = [run for run in sorted(table, key=place) if run.peer.startswith("gpmi") and table[run]["status"] == "done"]
    picked = [ours[i] for i in np.linspace(0, len(ours) - 1, min(count, len(ours))).astype(int)]
    same = 0
    for run in picked:
        new = play(run)
        equal = all(new[column] == table[run][column] for column in ("best", "mean", "values"))
        same += equal
        print(time.strftime("%H:%M:%S"), *run, "the same" if equal else "differs", flush=True)
    found = {"version": peers.version("gpmi"), "runs": len(picked), "same": same, "of": len(ours)}
    CHECKED.write_text(json.dumps(found) + "\n")


def jobs(chosen: argparse.Namespace) -> list[Job]:
    """Return the jobs that are left, in order."""
    table = load()

    def missing(run: Run) -> bool:
        old = table.get(run)
        if old is None or not chosen.again:
            return old is None
        newer = run.peer not in peers.OWN_ENVIRONMENT and old["version"] != peers.version(run.peer)
        return newer or old["status"] != "done"

    groups = itertools.product(range(chosen.seeds), chosen.budgets, chosen.starts, chosen.peers)
    todo = []
    for seed, budget, start, peer in groups:
        runs = [Run(peer, name, start, budget, seed) for name in chosen.problems]
        names = [run.problem for run in runs if wanted(run) and missing(run)]
        todo.append(Job(peer, start, budget, seed, names))
    return [job for job in todo if job.problems]


def estimate(todo: list[Job], cores: int) -> str:
    """Return the hours that are left, from the CPU seconds of each peer in the table."""
    cpu: dict[tuple[str, int], list[float]] = {}
    for run, old in load().items():
        cpu.setdefault((run.peer, run.budget), []).append(float(old["cpu"]))
    seconds = sum(len(job.problems) * float(np.mean(cpu.get((job.peer, job.budget), [30.0]))) for job in todo)
    return f"{sum(len(job.problems) for job in todo)} runs left, about {seconds / 3600 / cores:.1f} h"


def launch(job: Job) -> None:
    """Play the runs of a job in a process of the peer's environment."""
    arguments = [job.peer, job.start, str(job.budget), str(job.seed), *job.problems]
    subprocess.run([peers.python(job.peer), __file__, "--work", *arguments], check=False)


def main() -> None:
    parser = harness.parser(__doc__, cores=True)
    parser.add_argument("--peers", nargs="+", default=list(peers.PEERS), choices=list(peers.PEERS), metavar="PEER")
    parser.add_argument("--problems", nargs="+", default=list(NAMES), choices=NAMES, metavar="NAME")
    parser.add_argument("--starts", nargs="+", default=list(STARTS), choices=STARTS)
    parser.add_argument("--budgets", nargs="+", type=int, default=list(BUDGETS), choices=BUDGETS)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument(
        "--again", action="store_true", help="replace failed runs and runs of another version of a peer"
    )
    parser.add_argument("--check", type=int, metavar="N", help="play N of gpmi's runs again and compare")
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.work:
        peer, start, budget, seed, *names = chosen.work
        work(peer, start, int(budget), int(seed), names)
        return
    if chosen.check:
        check(chosen.check)
        return
    absent = [peer for peer in chosen.peers if not peers.python(peer).exists()]
    if absent:
        sys.exit(f"{', '.join(absent)}: not installed; run `make bench-setup`")
    todo = jobs(chosen)
    harness.say(estimate(todo, chosen.cores))
    with ThreadPoolExecutor(chosen.cores) as pool:
        for number, _ in enumerate(pool.map(launch, todo), start=1):
            harness.say(estimate(todo[number:], chosen.cores))
    tidy()
    import report  # it imports Matplotlib, which the runs do not need

    report.write(new=sum(len(job.problems) for job in todo))


if __name__ == "__main__":
    main()
