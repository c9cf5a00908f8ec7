"""Runs every peer on every problem and keeps what happened in docs/benchmarks/compare/runs.csv.

    python benchmarks/compare.py [--peers ...] [--problems ...] [--starts ...] [--budgets ...] [--seeds N] [--cores N]
    python benchmarks/compare.py --check N      plays N of gpmi's runs again: are the rows those of this version, too?

A run starts from a design of ten points common to all peers ("common") or as the peer does by itself ("own"), and has
60 or 200 evaluations, the design included. Each run has its own process, one BLAS thread and 15 minutes; one that takes
longer, or raises, is a row with its reason in `status`. A run whose row is in the table is not repeated, so the work
can be stopped and taken up again. With --again, failed runs and runs of another version of a peer are replaced. Low
seeds come first, so that a partial table is balanced. Who is not run where is in `wanted`.
"""

# ruff: noqa: E402  (the threads must be set before NumPy is imported)
from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import csv
import fcntl
import itertools
import json
import multiprocessing
import resource
import subprocess
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import held_out
import numpy as np
import peers
import problems

import gpmi
from gpmi.space import Parameters

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "benchmarks" / "compare" / "runs.csv"
CHECKED = TABLE.with_name("checked.json")
INITIAL, LIMIT = 10, 15 * 60  # evaluations, seconds
STARTS, BUDGETS = ("own", "common"), (60, 200)
KEPT = 60  # values of a run that are kept, for the curves
NAMES = (*problems.NAMES, *held_out.NAMES)
COLUMNS = ("peer", "version", "problem", "start", "budget", "seed", "status", "best", "mean", "cpu", "memory", "values")
FLAT = tuple(n for n in NAMES if isinstance(problems.make(n, 0).space, list) and len(problems.make(n, 0).space) == 2)
TEN = (*FLAT[:4], "hartmann-6", "ackley-5", "rosenbrock-4", "hartmann-mixed", "shekel-4", "eggholder-2")
Row = dict[str, str]


class Run(NamedTuple):
    """What is played: a key of the table."""

    peer: str
    problem: str
    start: str
    budget: int
    seed: int


def wanted(run: Run) -> bool:
    """Whether the run belongs to the comparison.

    Slow peers have three seeds, Ax and HEBO only the problems in two dimensions; bayesian-optimization would need more
    than the quarter of an hour in a hundred. With 200 evaluations: the peers that
    take less than half a second of CPU for a suggestion there, and BoTorch's log EI on ten problems.
    """
    if run.peer in ("Ax", "HEBO") and run.problem not in FLAT:
        return False
    if run.peer == "bayesian-optimization" and run.problem == "hartmann-6-in-100":
        return False
    if run.seed >= 3 and (run.peer in peers.SLOW or (run.budget > 60 and run.peer in peers.HALF_SLOW)):
        return False
    if run.budget == 60:
        return True
    return run.peer in peers.CHEAP or (run.peer == "BoTorch LogEI" and run.problem in TEN)


def design(problem: problems.Problem, seed: int) -> list[Any]:
    """Ten points of the problem's space, a Latin hypercube that depends on the problem and the seed only."""
    space = gpmi.Space.of(problem.space)
    assert isinstance(space, Parameters)
    rng = np.random.default_rng([zlib.crc32(problem.name.encode()), seed, INITIAL])
    strata = np.argsort(rng.random((INITIAL, space.unit_dim)), axis=0)
    rows = space.from_unit((strata + rng.random(strata.shape)) / INITIAL)
    return [space.decode(row) for row in rows]


def one_thread() -> None:
    """PyTorch has threads of its own."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def play(run: Run) -> Row:
    """One run as a row of the table.

    best is the best of all noise-free values f(x_1) ... f(x_T), mean the mean of those after the common design; cpu is
    the time in ask and tell in seconds, memory the peak of the process in MB, values the first sixty f(x_t).
    """
    problem = problems.make(run.problem, run.seed)
    optimizer = peers.make(run.peer, problem.space, run.seed, run.budget, alone=run.start == "own")
    one_thread()
    values: list[float] = []
    cpu, status = 0.0, "done"

    def observe(x: Any) -> float:
        values.append(problem.f(x))
        return values[-1] + problem.noise(run.seed, len(values))

    told: tuple[list[Any], list[float]] = [], []
    if run.start == "common":
        points = design(problem, run.seed)
        told = points, [observe(x) for x in points]
    try:
        while True:
            start = time.process_time()
            if told[0]:
                optimizer.tell(*told)
            x = optimizer.ask() if len(values) < run.budget else None
            cpu += time.process_time() - start
            if x is None:
                break
            told = [x], [observe(x)]
    except Exception as error:
        status = f"failed: {type(error).__name__}: {error}".replace("\n", " ")[:200]
    return row(run, status, values, cpu)


def row(run: Run, status: str, values: list[float], cpu: float) -> Row:
    done = status == "done"
    chosen = values[INITIAL if run.start == "common" else 0 :]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
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
        "memory": f"{memory:.0f}",
        "values": " ".join(f"{value:.8g}" for value in values[:KEPT]),
    }


def key(row: Row) -> Run:
    return Run(row["peer"], row["problem"], row["start"], int(row["budget"]), int(row["seed"]))


def load() -> dict[Run, Row]:
    """All rows of the table; of two rows of a run the later one counts."""
    if not TABLE.exists():
        return {}
    with TABLE.open(newline="") as file:
        return {key(r): r for r in csv.DictReader(file)}


def store(new: Row) -> None:
    """Append a row; safe with several writers."""
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    with TABLE.open("a", newline="") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if file.tell() == 0:
            writer.writeheader()
        writer.writerow(new)


def tidy() -> None:
    """The table in order, without the rows that others replaced."""
    rows = load()
    part = TABLE.with_name(".runs.part")
    with part.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[run] for run in sorted(rows, key=_place))
    part.replace(TABLE)


def _place(run: Run) -> tuple[int, ...]:
    peer, problem = list(peers.PEERS).index(run.peer), NAMES.index(run.problem)
    return STARTS.index(run.start), run.budget, peer, problem, run.seed


def work(peer: str, start: str, budget: int, seed: int, names: list[str]) -> None:
    """The runs of one peer with one seed, each in a process forked after the peer's library has been imported."""
    peers.make(peer, [(0.0, 1.0)], 0)
    one_thread()
    context = multiprocessing.get_context("fork")
    for name in names:
        run, begin = Run(peer, name, start, budget, seed), time.monotonic()
        process = context.Process(target=_play_and_store, args=(run,))
        process.start()
        process.join(LIMIT)
        if process.is_alive():
            process.kill()
            process.join()
            store(row(run, f"failed: more than {LIMIT} s", [], float(LIMIT)))
        elif process.exitcode != 0:
            store(row(run, f"failed: exit code {process.exitcode}", [], 0.0))
        status, seconds = load()[run]["status"], time.monotonic() - begin
        told = f"{peer}, {name}, {start}, {budget}, {seed}: {status}, {seconds:.0f} s"
        print(time.strftime("%H:%M:%S"), told, flush=True)


def _play_and_store(run: Run) -> None:
    store(play(run))


def python(peer: str) -> Path:
    """The interpreter of the peer's environment; one outside the common environment is beside it."""
    if peer in peers.OWN_ENVIRONMENT:
        return ROOT / peers.OWN_ENVIRONMENT[peer] / "bin" / "python"
    return Path(sys.executable)


class Job(NamedTuple):
    """Runs that differ in the problem only."""

    peer: str
    start: str
    budget: int
    seed: int
    problems: list[str]


def check(count: int) -> None:
    """Play `count` of gpmi's runs again, spread over all of them, and keep how many are the same in every digit."""
    table = load()
    ours = [run for run in sorted(table, key=_place) if run.peer.startswith("gpmi") and table[run]["status"] == "done"]
    picked = [ours[i] for i in np.linspace(0, len(ours) - 1, min(count, len(ours))).astype(int)]
    same = 0
    for run in picked:
        new = play(run)
        equal = all(new[column] == table[run][column] for column in ("best", "mean", "values"))
        same += equal
        print(time.strftime("%H:%M:%S"), *run, "the same" if equal else "another", flush=True)
    found = {"version": peers.version("gpmi"), "runs": len(picked), "same": same, "of": len(ours)}
    CHECKED.write_text(json.dumps(found) + "\n")


def jobs(chosen: argparse.Namespace) -> list[Job]:
    """What is to be done, in order."""
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
    """Hours to go, from the CPU seconds of each peer in the table."""
    cpu: dict[tuple[str, int], list[float]] = {}
    for run, old in load().items():
        cpu.setdefault((run.peer, run.budget), []).append(float(old["cpu"]))
    seconds = sum(len(job.problems) * float(np.mean(cpu.get((job.peer, job.budget), [30.0]))) for job in todo)
    return f"{sum(len(job.problems) for job in todo)} runs to go, about {seconds / 3600 / cores:.1f} h"


def launch(job: Job) -> None:
    arguments = [job.peer, job.start, str(job.budget), str(job.seed), *job.problems]
    subprocess.run([python(job.peer), __file__, "--work", *arguments], check=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", nargs="+", default=list(peers.PEERS), choices=list(peers.PEERS), metavar="PEER")
    parser.add_argument("--problems", nargs="+", default=list(NAMES), choices=NAMES, metavar="NAME")
    parser.add_argument("--starts", nargs="+", default=list(STARTS), choices=STARTS)
    parser.add_argument("--budgets", nargs="+", type=int, default=list(BUDGETS), choices=BUDGETS)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--cores", type=int, default=1)
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
    absent = [peer for peer in chosen.peers if not python(peer).exists()]
    if absent:
        sys.exit(f"{', '.join(absent)}: not installed; run `make bench-setup`")
    todo = jobs(chosen)
    print(estimate(todo, chosen.cores), flush=True)
    with ThreadPoolExecutor(chosen.cores) as pool:
        for number, _ in enumerate(pool.map(launch, todo), start=1):
            print(estimate(todo[number:], chosen.cores), flush=True)
    tidy()


if __name__ == "__main__":
    main()
