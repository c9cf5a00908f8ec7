"""How much faster are two workers? The time of a run whose f waits for a second, one by one and two at a time.

    python benchmarks/parallel.py [--budget 20]     printed only; two minutes

Dask is measured where it is installed, with two worker processes on this machine. The exit code is 1 if two workers are
less than 1.8 times faster.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import harness

import gpmi

BOX = [(0.0, 1.0), (0.0, 1.0)]
PROMISED = 1.8


def f(x: Any) -> float:
    """Return minus a squared distance, after a second."""
    import time

    time.sleep(1.0)
    return -float((x[0] - 0.3) ** 2 + (x[1] - 0.6) ** 2)


def seconds(budget: int, **options: Any) -> float:
    """Return the time of a run, and check that it made all evaluations."""
    begin = time.perf_counter()
    result = gpmi.maximize(f, BOX, budget=budget, seed=0, **options)
    assert len(result.trials) == budget
    return time.perf_counter() - begin


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--budget", type=int, default=20)
    budget = parser.parse_args().budget
    gpmi.maximize(lambda x: -(x[0] ** 2), BOX, budget=12, seed=0)  # late imports happen now
    serial = seconds(budget)
    print(f"{'one by one':24} {serial:6.1f} s")
    times = {"workers=2": seconds(budget, workers=2)}
    with ThreadPoolExecutor(2) as pool:
        times["two threads"] = seconds(budget, executor=pool, in_flight=2)
    try:
        import distributed
    except ImportError:
        print("Dask is not installed")
    else:
        options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
            executor = client.get_executor(pure=False)
            times["Dask, two workers"] = seconds(budget, executor=executor, in_flight=2)
    for name, time_ in times.items():
        print(f"{name:24} {time_:6.1f} s, {serial / time_:.2f} times faster")
    sys.exit(min(serial / time_ for time_ in times.values()) < PROMISED)


if __name__ == "__main__":
    main()
