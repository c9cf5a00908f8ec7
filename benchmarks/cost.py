"""What a suggestion costs: CPU seconds of ask + tell against the number of observations, for every peer.

    python benchmarks/cost.py [--peers ...] [--sizes ...] [--turns 5] [--output FILE]   writes docs/benchmarks/cost.csv

n random points of Hartmann-6 are told and one round is made, untimed, because a run that got to n has fitted its past
before; then come 20 rounds of ask and tell, all of them timed, refits included. `cpu` is their mean, `median` their
median. Each measurement has its own process, one BLAS thread, and a small optimiser that has run before, so that
nothing is imported on the clock. The peers take turns at each n; with several turns a row is the measurement with the
median `cpu` of them, because other processes take the cache of a busy machine. Once 300 s of CPU are spent no further
round is begun (`rounds` says how many there were), and a peer whose rounds take more than 60 s, or that is not done
after 20 minutes, is not asked about larger n.
"""

# ruff: noqa: E402  (the threads must be set before NumPy is imported)
from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import csv
import json
import resource
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import peers
import problems
from compare import ROOT, one_thread, python

TABLE = ROOT / "docs" / "benchmarks" / "cost.csv"
SIZES = (20, 50, 100, 200, 500, 1000, 5000)
ROUNDS, ENOUGH, DEAR, LIMIT = 20, 300.0, 60.0, 1200.0  # rounds; CPU seconds in all, in a round; seconds
COLUMNS = ("peer", "version", "n", "status", "rounds", "cpu", "median", "memory")


def told(peer: str, n: int, seed: int) -> peers.Peer:
    """The peer after n random points of Hartmann-6."""
    problem = problems.make("hartmann-6", seed)
    x = np.random.default_rng([n, seed]).random((n, 6))
    optimizer = peers.make(peer, problem.space, seed)
    one_thread()
    optimizer.tell(list(x), [problem.f(point) for point in x])
    return optimizer


def rounds(optimizer: peers.Peer, count: int) -> list[float]:
    """The CPU seconds of each round of ask and tell, fewer rounds if they are dear."""
    seconds: list[float] = []
    while len(seconds) < count and sum(seconds) < ENOUGH:
        start = time.process_time()
        x = optimizer.ask()
        asked = time.process_time()
        y = problems.hartmann6(x)
        again = time.process_time()
        optimizer.tell([x], [y])
        seconds.append(time.process_time() - again + asked - start)
    return seconds


def measure(peer: str, n: int) -> dict[str, Any]:
    rounds(told(peer, 12, 1), 3)  # what is imported or compiled at first use
    optimizer = told(peer, n, 0)
    rounds(optimizer, 1)
    seconds = rounds(optimizer, ROUNDS)
    return {
        "version": peers.version(peer),
        "status": "done",
        "rounds": len(seconds),
        "cpu": f"{statistics.fmean(seconds):.4g}",
        "median": f"{statistics.median(seconds):.4g}",
        "memory": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def in_process(peer: str, n: int) -> dict[str, Any]:
    """The measurement in a process of its own; one that takes too long or fails says so in its status."""
    command = [str(python(peer)), __file__, "--measure", peer, str(n)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return {"status": f"failed: more than {LIMIT:.0f} s"}
    if done.returncode != 0:
        return {"status": f"failed: {(done.stderr.strip().splitlines() or ['no message'])[-1][:200]}"}
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def middle(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The measurement with the median CPU time, the lower one of an even number; or the first that failed."""
    failed = [row for row in rows if row["status"] != "done"]
    return failed[0] if failed else sorted(rows, key=lambda row: float(row["cpu"]))[(len(rows) - 1) // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", nargs="+", default=list(peers.PEERS), choices=list(peers.PEERS), metavar="PEER")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, metavar="N")
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--output", type=Path, default=TABLE)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure:
        print(json.dumps(measure(chosen.measure[0], int(chosen.measure[1]))))
        return
    left = list(chosen.peers)
    with chosen.output.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for n in chosen.sizes:
            turns = [[in_process(peer, n) for peer in left] for _ in range(chosen.turns)]
            for peer, found in zip(list(left), zip(*turns, strict=True), strict=True):
                row = {"peer": peer, "n": n, **middle(list(found))}
                writer.writerow(row)
                file.flush()
                print(f"n = {n}, {peer}: {row.get('cpu', row['status'])}", flush=True)
                if row["status"] != "done" or float(row["cpu"]) > DEAR:
                    left.remove(peer)


if __name__ == "__main__":
    main()
