"""Runs every peer on every problem and keeps what happened in docs/benchmarks/compare/runs.csv.

    python benchmarks/compare.py [--peers ...] [--problems ...] [--seeds N] [--cores N] [--again]

A run is 60 evaluations: ten of a design common to all peers, then fifty of the peer's. Each run has its own process,
one BLAS thread and 15 minutes; one that takes longer, or raises, is a row with its reason in `status`. A run whose row
is in the table is not repeated, so the work can be stopped and taken up again. With --again, failed runs and runs of
another version of a peer are replaced. Low seeds come first, so that a partial table is balanced; slow peers take one
seed where the others take three.
"""

# ruff: noqa: E402  (the threads must be set before NumPy is imported)
from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import csv
import fcntl
import multiprocessing
import resource
import subprocess
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import peers
import problems

import gpmi
from gpmi.space import Parameters

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "benchmarks" / "compare" / "runs.csv"
INITIAL, BUDGET, LIMIT = 10, 60, 15 * 60  # evaluations, evaluations, seconds
COLUMNS = ("peer", "version", "problem", "seed", "status", "simple_regret", "mean_regret", "cpu", "memory", "values")
Row = dict[str, str]
Key = tuple[str, str, int]  # peer, problem, seed


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


def run(peer: str, name: str, seed: int) -> Row:
    """One run as a row of the table.

    values are the noise-free f(x_1) ... f(x_60); the simple regret is the gap of the best of them, mean_regret the mean
    gap of the fifty suggested ones, both empty where the maximum is not known; cpu is the time in ask and tell in
    seconds, memory the peak of the process in MB.
    """
    problem = problems.make(name, seed)
    optimizer = peers.make(peer, problem.space, seed, BUDGET)
    one_thread()
    values: list[float] = []
    cpu, status = 0.0, "done"

    def observe(x: Any) -> float:
        values.append(problem.f(x))
        return values[-1] + problem.noise(seed, len(values))

    points = design(problem, seed)
    told = points, [observe(x) for x in points]
    try:
        while True:
            start = time.process_time()
            optimizer.tell(*told)
            x = optimizer.ask() if len(values) < BUDGET else None
            cpu += time.process_time() - start
            if x is None:
                break
            told = [x], [observe(x)]
    except Exception as error:
        status = f"failed: {type(error).__name__}: {error}".replace("\n", " ")[:200]
    return row(peer, problem, seed, status, values, cpu)


def row(peer: str, problem: problems.Problem, seed: int, status: str, values: list[float], cpu: float) -> Row:
    known = problem.maximum is not None and status == "done"
    gaps = problem.maximum - np.array(values) if known else None
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "peer": peer,
        "version": peers.version(peer),
        "problem": problem.name,
        "seed": str(seed),
        "status": status,
        "simple_regret": "" if gaps is None else f"{gaps.min():.6g}",
        "mean_regret": "" if gaps is None else f"{gaps[INITIAL:].mean():.6g}",
        "cpu": f"{cpu:.4g}",
        "memory": f"{memory:.0f}",
        "values": " ".join(f"{value:.8g}" for value in values),
    }


def load() -> dict[Key, Row]:
    """All rows of the table."""
    if not TABLE.exists():
        return {}
    with TABLE.open(newline="") as file:
        return {(r["peer"], r["problem"], int(r["seed"])): r for r in csv.DictReader(file)}


def store(new: Row) -> None:
    """Put a row in the table, in place of an older one of the same run; safe with several writers."""
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    with TABLE.with_name(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rows = load()
        rows[new["peer"], new["problem"], int(new["seed"])] = new
        part = TABLE.with_name(".runs.part")
        with part.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows.values())
        part.replace(TABLE)


def work(peer: str, seed: int, names: list[str]) -> None:
    """The runs of one peer with one seed, each in a process forked after the peer's library has been imported."""
    peers.make(peer, [(0.0, 1.0)], 0)
    one_thread()
    context = multiprocessing.get_context("fork")
    for name in names:
        start = time.monotonic()
        process = context.Process(target=_run_and_store, args=(peer, name, seed))
        process.start()
        process.join(LIMIT)
        if process.is_alive():
            process.kill()
            process.join()
            status = f"failed: more than {LIMIT} s"
            store(row(peer, problems.make(name, seed), seed, status, [], float(LIMIT)))
        elif process.exitcode != 0:
            status = f"failed: exit code {process.exitcode}"
            store(row(peer, problems.make(name, seed), seed, status, [], 0.0))
        status = load()[peer, name, seed]["status"]
        print(
            f"{time.strftime('%H:%M:%S')} {peer}, {name}, {seed}: {status}, {time.monotonic() - start:.0f} s",
            flush=True,
        )


def _run_and_store(peer: str, name: str, seed: int) -> None:
    store(run(peer, name, seed))


def python(peer: str) -> Path:
    """The interpreter of the peer's environment; one outside the common environment is beside it."""
    if peer in peers.OWN_ENVIRONMENT:
        return ROOT / peers.OWN_ENVIRONMENT[peer] / "bin" / "python"
    return Path(sys.executable)


def jobs(chosen: list[str], names: list[str], seeds: int, again: bool) -> list[tuple[str, int, list[str]]]:
    """What is to be done, in order: (peer, seed, problems)."""
    table = load()

    def missing(peer: str, name: str, seed: int) -> bool:
        old = table.get((peer, name, seed))
        if old is None or not again:
            return old is None
        newer = peer not in peers.OWN_ENVIRONMENT and old["version"] != peers.version(peer)
        return newer or old["status"] != "done"

    order = sorted(
        ((peer, seed) for peer in chosen for seed in range(seeds)),
        key=lambda job: (3 * job[1] + 2 if job[0] in peers.SLOW else job[1], list(peers.PEERS).index(job[0])),
    )
    todo = [(peer, seed, [name for name in names if missing(peer, name, seed)]) for peer, seed in order]
    return [job for job in todo if job[2]]


def estimate(todo: list[tuple[str, int, list[str]]], cores: int) -> str:
    """Hours to go, from the CPU seconds of each peer in the table."""
    cpu: dict[str, list[float]] = {}
    for (peer, _, _), old in load().items():
        cpu.setdefault(peer, []).append(float(old["cpu"]))
    seconds = sum(len(names) * float(np.mean(cpu.get(peer, [30.0]))) for peer, _, names in todo)
    return f"{sum(len(names) for _, _, names in todo)} runs to go, about {seconds / 3600 / cores:.1f} h"


def launch(job: tuple[str, int, list[str]]) -> None:
    peer, seed, names = job
    subprocess.run([python(peer), __file__, "--work", peer, str(seed), *names], check=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", nargs="+", default=list(peers.PEERS), choices=list(peers.PEERS), metavar="PEER")
    parser.add_argument("--without", nargs="+", default=[], choices=list(peers.PEERS), metavar="PEER")
    parser.add_argument("--problems", nargs="+", default=list(problems.NAMES), choices=problems.NAMES, metavar="NAME")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument(
        "--again", action="store_true", help="replace failed runs and runs of another version of a peer"
    )
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.work:
        peer, seed, *names = chosen.work
        work(peer, int(seed), names)
        return
    wanted = [peer for peer in chosen.peers if peer not in chosen.without]
    absent = [peer for peer in wanted if not python(peer).exists()]
    if absent:
        sys.exit(f"{', '.join(absent)}: not installed; run `make bench-setup`")
    todo = jobs(wanted, chosen.problems, chosen.seeds, chosen.again)
    print(estimate(todo, chosen.cores), flush=True)
    with ThreadPoolExecutor(chosen.cores) as pool:
        for number, _ in enumerate(pool.map(launch, todo), start=1):
            print(estimate(todo[number:], chosen.cores), flush=True)


if __name__ == "__main__":
    main()
