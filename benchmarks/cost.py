"""What does a suggestion cost? CPU seconds of ask + tell against the number of observations, for every peer.

    python benchmarks/cost.py [--peers ...] [--sizes ...] [--turns 5] [--out FILE]      writes docs/benchmarks/cost.csv

n random points of Hartmann-6 are told and one round is made, untimed: a run that got to n has fitted its past before.
Then 20 rounds of ask and tell are timed, refits included. `cpu` is their mean, `median` their median. Each measurement
has its own process, one BLAS thread, and a small optimiser that has run before, so that nothing is imported on the
clock. The peers take turns at each n. With several turns a row is the measurement with the median `cpu`, because other
processes take the cache of a busy machine. Once 300 s of CPU are spent no further round begins; `rounds` says how many
there were. A peer whose rounds take more than 60 s, or that is not done after 20 minutes, is not measured at larger n.
It takes some hours; at the end `report.py` writes the page.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

import harness
import numpy as np
import problems
from peers import optimisers as peers
from peers.comparison import COSTS, ROUNDS
from problems.functions import hartmann6

NEEDS = "peers and HEBO"
SIZES = (20, 50, 100, 200, 500, 1000, 5000)
ENOUGH, DEAR, LIMIT = 300.0, 60.0, 1200.0  # CPU seconds in all, in a round; seconds


def told(peer: str, n: int, seed: int) -> peers.Peer:
    """Return the peer after n random points of Hartmann-6."""
    problem = problems.make("hartmann-6", seed)
    x = np.random.default_rng([n, seed]).random((n, 6))
    optimizer = peers.make(peer, problem.space, seed)
    peers.one_thread()
    optimizer.tell(list(x), [problem.f(point) for point in x])
    return optimizer


def rounds(optimizer: peers.Peer, count: int) -> list[float]:
    """Return the CPU seconds of each round of ask and tell. There are fewer rounds if they are expensive."""
    seconds: list[float] = []
    while len(seconds) < count and sum(seconds) < ENOUGH:
        start = time.process_time()
        x = optimizer.ask()
        asked = time.process_time()
        y = hartmann6(x)
        again = time.process_time()
        optimizer.tell([x], [y])
        seconds.append(time.process_time() - again + asked - start)
    return seconds


def measure(peer: str, n: int) -> dict[str, Any]:
    """Return the measurement of one peer at one n, made in this process."""
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
        "memory": round(harness.peak_memory() / 1024),
    }


def in_process(peer: str, n: int) -> dict[str, Any]:
    """Return the measurement, made in a fresh process. One that takes too long or fails says so in its status."""
    try:
        result: dict[str, Any] = harness.measure(
            __file__, "--measure", peer, n, python=peers.python(peer), timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return {"status": f"failed: more than {LIMIT:.0f} s"}
    except subprocess.CalledProcessError as error:
        return {"status": f"failed: {(error.stderr.strip().splitlines() or ['no message'])[-1][:200]}"}
    return result


def middle(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the measurement with the median CPU time, the lower one of an even number, or the first that failed."""
    failed = [row for row in rows if row["status"] != "done"]
    return failed[0] if failed else sorted(rows, key=lambda row: float(row["cpu"]))[(len(rows) - 1) // 2]


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--peers", nargs="+", default=list(peers.PEERS), choices=list(peers.PEERS), metavar="PEER")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, metavar="N")
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--out", type=Path, default=COSTS.path, help="another table; the page is not written then")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure:
        print(json.dumps(measure(chosen.measure[0], int(chosen.measure[1]))))
        return
    left, table = list(chosen.peers), harness.Table(chosen.out, COSTS.columns, COSTS.key)
    table.path.unlink(missing_ok=True)
    for n in chosen.sizes:
        turns = [[in_process(peer, n) for peer in left] for _ in range(chosen.turns)]
        for peer, found in zip(list(left), zip(*turns, strict=True), strict=True):
            row = {"peer": peer, "n": n, **middle(list(found))}
            table.append(row)
            harness.say(f"n = {n}, {peer}: {row.get('cpu', row['status'])}")
            if row["status"] != "done" or float(row["cpu"]) > DEAR:
                left.remove(peer)
    if chosen.out == COSTS.path:
        import report  # it imports Matplotlib, which the measurements do not need

        report.write(new=len(table.rows()))


if __name__ == "__main__":
    main()
