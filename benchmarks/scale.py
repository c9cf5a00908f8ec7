"""How far does it go? The growth of the cost, and up to a thousand workers on a virtual clock.

    python benchmarks/scale.py [--report]    writes the tables and the picture of docs/scale.md; 20 minutes, 3 GB

Growth: CPU seconds of one suggestion (`tell` + `ask`, the median of some rounds, a new fit left out) while one size
grows and the others stay, each in a fresh process.

Workers: the real Study, with its Optimizer and its log in SQLite, in one process. The workers and the clock are
simulated: an evaluation takes a minute on average, and the clock stands still unless somebody computes or evaluates. A
worker that is done hands in its value and gets the next point. One after the other is served, and the clock moves on by
the CPU seconds that this took. Evaluations in progress are pending points of the study.
"""

from __future__ import annotations

import heapq
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import harness
import numpy as np
from problems.functions import HARTMANN6_MAXIMUM, minus_hartmann6

import gpmi

GROWTH = harness.Table(harness.DOCS / "scale.csv", ("what", "size", "seconds", "memory"), ("what", "size"))
WORKERS = harness.Table(
    harness.DOCS / "scale_workers.csv",
    ("workers", "seed", "evaluations", "minutes", "busy", "seconds", "slowest", "regret", "bytes", "memory"),
    ("workers", "seed"),
)
SIZES = {
    "observations": (50, 200, 1_000, 3_000, 10_000),
    "candidates": (1_000, 10_000, 100_000, 1_000_000),
    "dimensions": (2, 6, 20, 50, 100),
    "objectives": (1, 2, 3, 4),
    "pending points": (1, 10, 100, 1_000),
    "trials of a study": (100, 1_000, 10_000),
}
AT = {  # what the others are while one size grows
    "observations": "6 dimensions",
    "candidates": "4 dimensions, 100 observations",
    "dimensions": "100 observations",
    "objectives": "4 dimensions, 60 observations",
    "pending points": "6 dimensions, 200 observations",
    "trials of a study": "rows of a table at random: the log alone",
}
ROUNDS = 7
FLEETS, SEEDS = (1, 10, 100, 1_000), (0,)
MINUTE, SPREAD = 60.0, 0.3  # the mean time of an evaluation, and the sd of its logarithm
EVALUATIONS = {1: 500, 10: 500, 100: 500, 1_000: 2_000}
NOISE = 0.1
PAGE = harness.ROOT / "docs" / "scale.md"
PICTURE = harness.ROOT / "docs" / "scale.png"


def f(x: Any) -> float:
    """Return Hartmann-6 in the first six coordinates; the mean of what is there in fewer."""
    full = np.full(6, 0.3)
    full[: min(6, len(x))] = x[:6]
    return -minus_hartmann6(full)


# Growth


def growth(what: str, size: int) -> dict[str, object]:
    """Measure one size in a fresh process."""
    found = harness.measure(__file__, "--one", what, size)
    seconds, memory = f"{found['seconds']:.4g}", found["memory"] // 1024
    return {"what": what, "size": size, "seconds": seconds, "memory": memory}


def one(what: str, size: int) -> dict[str, Any]:
    """Return the CPU seconds of a suggestion at a size, and the peak memory of this process in KiB."""
    rng = np.random.default_rng(0)
    if what == "trials of a study":
        return {"seconds": study_seconds(size), "memory": harness.peak_memory()}
    n = {"observations": size, "pending points": 200, "objectives": 60}.get(what, 100)
    d = {"dimensions": size, "candidates": 4, "objectives": 4}.get(what, 6)
    options: dict[str, Any] = {}
    if what == "objectives" and size > 1:
        options["goals"] = {f"y{k}": "max" for k in range(size)}
    space = rng.random((size, d)) if what == "candidates" else [(0.0, 1.0)] * d
    opt = gpmi.Optimizer(space, seed=0, **options)
    points = opt.space.rows[rng.choice(size, n, replace=False)] if what == "candidates" else rng.random((n, d))
    centres = rng.random((4, d))

    def values(x: Any) -> Any:
        if "goals" not in options:
            return f(x)
        return {f"y{k}": -float(np.sum((np.asarray(x) - centres[k]) ** 2)) for k in range(size)}

    opt.tell_all([(x, values(x)) for x in points])
    if what == "pending points":
        opt.ask(size - 1) if size > 1 else None
    seconds = []
    x = opt.ask()
    for _ in range(ROUNDS):
        y, begin = values(x), time.process_time()
        opt.tell(x, y)
        x = opt.ask()
        seconds.append(time.process_time() - begin)
    return {"seconds": statistics.median(seconds), "memory": harness.peak_memory()}


def study_seconds(size: int) -> float:
    """Return the CPU seconds of `ask` + `tell` of a study with that many trials, without a model."""
    with tempfile.TemporaryDirectory() as folder:
        rows = np.arange(2.0 * size)[:, None]
        with gpmi.study(str(Path(folder) / "s.db"), space=rows, n_init=2 * size, seed=0) as s:
            for row in rows[:size]:
                s.tell(row, float(row[0] % 7))
            seconds = []
            for _ in range(10 * ROUNDS):
                begin = time.process_time()
                s.tell(s.ask(), 1.0)
                seconds.append(time.process_time() - begin)
    return statistics.median(seconds)


# Workers


def fleet(workers: int, seed: int) -> dict[str, object]:
    """Play a run with that many simulated workers, in a fresh process."""
    return {"workers": workers, "seed": seed, **harness.measure(__file__, "--fleet", workers, seed)}


def simulated(workers: int, seed: int) -> dict[str, Any]:
    """Return what happened: the minutes on the virtual clock, how busy the workers were, and what was found."""
    rng = np.random.default_rng([seed, workers])
    total = EVALUATIONS[workers]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.db"
        with gpmi.study(str(path), space=[(0.0, 1.0)] * 6, budget=total, seed=seed) as s:
            served: list[float] = []  # CPU seconds of each service
            free = worked = 0.0  # when the study is free, and the seconds of evaluations
            queue: list[tuple[float, int, Any]] = [(0.0, k, None) for k in range(workers)]  # who comes when
            asked = told = 0
            while queue:
                now, worker, trial = heapq.heappop(queue)
                begin = time.process_time()
                if trial is not None:
                    s.tell(trial, f(trial.x) + NOISE * rng.standard_normal())
                    told += 1
                more = asked < total
                if more:
                    trial = s.ask()
                    asked += 1
                served.append(time.process_time() - begin)
                free = max(now, free) + served[-1]
                if more:
                    took = MINUTE * float(np.exp(SPREAD * rng.standard_normal() - 0.5 * SPREAD**2))
                    worked += took
                    heapq.heappush(queue, (free + took, worker, trial))
            regret = HARTMANN6_MAXIMUM - f(s.recommend())
        size = sum(part.stat().st_size for part in path.parent.iterdir())
    later = sorted(served[workers:])  # after the first round
    return {
        "evaluations": told,
        "minutes": round(free / 60.0, 2),
        "busy": round(worked / (workers * free), 4),
        "seconds": round(statistics.mean(later), 5),
        "slowest": round(later[-1], 4),
        "regret": round(regret, 5),
        "bytes": size,
        "memory": harness.peak_memory() // 1024,
    }


# Page


def draw() -> None:
    import matplotlib.pyplot as plt

    rows = GROWTH.rows()
    figure, axis = plt.subplots(figsize=(8.0, 4.6), layout="constrained")
    for what, marker in zip(SIZES, "osD^vP", strict=True):
        points = sorted((int(row["size"]), float(row["seconds"])) for row in rows if row["what"] == what)
        axis.loglog(*zip(*points, strict=True), marker=marker, label=f"{what} ({AT[what]})")
    axis.axhline(1.0, color="#8C8C8C", linewidth=0.8, linestyle="--")
    axis.set(xlabel="how many", ylabel="seconds for one suggestion")
    axis.set_title("What a suggestion costs as one size grows and the others stay")
    axis.legend(frameon=False, fontsize=8)
    axis.grid(alpha=0.25)
    figure.savefig(PICTURE, dpi=110)


def exponent(points: list[tuple[int, float]]) -> float:
    """Return the slope of log seconds against log size between the last two points."""
    (a, s), (b, t) = points[-2:]
    return float(np.log(t / s) / np.log(b / a))


def lines() -> list[str]:
    """Return what the script writes into the page."""
    body = ["![Seconds for one suggestion against observations, candidates, dimensions and others](scale.png)", ""]
    grown = []
    for what in SIZES:
        mine = sorted((int(row["size"]), row) for row in GROWTH.rows() if row["what"] == what)
        points = [(size, float(row["seconds"])) for size, row in mine]
        cells = ", ".join(f"{size:,}: {1e3 * seconds:.3g} ms" for size, seconds in points)
        memory = max(int(row["memory"]) for _, row in mine)
        grown.append([what, AT[what], cells, f"{exponent(points):.1f}", f"{memory:,} MB"])
    body += harness.table(["what grows", "with", "a suggestion costs", "exponent at the end", "memory"], grown)
    fleets = []
    for workers in FLEETS:
        mine = [row for row in WORKERS.rows() if int(row["workers"]) == workers]
        if not mine:
            continue

        def mean(name: str, mine: list[harness.Row] = mine) -> float:
            return statistics.mean(float(row[name]) for row in mine)

        count = int(mine[0]["evaluations"])
        fleets.append(
            [
                f"{workers:,}",
                f"{count:,}",
                f"{workers / MINUTE:.2g}",
                f"{1.0 / mean('seconds'):.3g}",
                f"{100.0 * mean('busy'):.0f} %",
                f"{mean('minutes'):,.0f}",
                f"{mean('slowest'):.2g} s",
                f"{mean('regret'):.3f}",
                f"{mean('bytes') / count / 1e3:.2g} kB",
            ]
        )
    head = ["workers", "evaluations", "needed a second", "delivered a second", "workers busy", "minutes"]
    head += ["slowest service", "regret at the end", "database, an evaluation"]
    return [
        *body,
        "",
        f"Simulated workers, one minute an evaluation, Hartmann-6 with noise {NOISE}, one run each:",
        "",
        *harness.table(head, fleets),
        "",
        f"Written by `make bench NAME=scale` on {time.strftime('%Y-%m-%d')}, commit {harness.commit()}, "
        f"{len(GROWTH.rows())} sizes and {len(WORKERS.rows())} simulated runs; {harness.machine('sqlalchemy')}.",
    ]


def write() -> None:
    import re

    draw()
    text = PAGE.read_text(encoding="utf-8")
    block = re.compile(r"(<!-- written by benchmarks/scale.py -->\n).*?(<!-- end -->)", flags=re.DOTALL)
    PAGE.write_text(block.sub(lambda m: m[1] + "\n".join(lines()) + "\n" + m[2], text), encoding="utf-8")
    harness.say(f"wrote {PAGE.relative_to(harness.ROOT)}")


def main() -> None:
    if sys.argv[1:2] in (["--one"], ["--fleet"]):
        play = one(sys.argv[2], int(sys.argv[3])) if sys.argv[1] == "--one" else simulated(*map(int, sys.argv[2:4]))
        print(json.dumps(play))
        return
    arguments = harness.parser(__doc__, report=True).parse_args()
    if not arguments.report:
        harness.resume(GROWTH, [(what, size) for what, sizes in SIZES.items() for size in sizes], growth)
        harness.resume(WORKERS, [(workers, seed) for seed in SEEDS for workers in FLEETS], fleet)
    write()


if __name__ == "__main__":
    main()
