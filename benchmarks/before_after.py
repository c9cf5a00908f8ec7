"""What does a change cost? Two source trees side by side: CPU time and memory in alternating processes.

    python benchmarks/before_after.py                     the working tree against BEFORE; writes the page; ten minutes
    python benchmarks/before_after.py --before HEAD~1     against another revision; printed only
    python benchmarks/before_after.py --only mcmc-20      one case; printed only

Each turn runs every case once in each tree, every run in a fresh process with one BLAS thread. The two trees take turns
in going first. A turn gives one ratio, after / before. The exit status is 1 if a case got worse. Only public names that
both trees have are used.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness

# This process stays small: a child's peak memory is at least that of the process that started it.

BEFORE = "5e154b9"  # the last commit before the modules were grouped into packages
TURNS = 7  # the smallest and the largest ratio bracket the median with probability 1 - 2^-6 = 98 %
TOLERANCE = 1.02  # a ratio up to this does not count as worse; our choice, not tuned
REPEATS = 5  # equal runs in one process. The fastest counts: other processes can only add to it


# Ratios


@dataclass(frozen=True)
class Comparison:
    """One quantity in both trees, turn by turn. Smaller is better."""

    before: Sequence[float]
    after: Sequence[float]

    @property
    def ratios(self) -> list[float]:
        return [after / before for before, after in zip(self.before, self.after, strict=True)]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def interval(self) -> tuple[float, float]:
        """Return an interval that has the true median of the ratios with probability 1 - 2^(1 - turns)."""
        return min(self.ratios), max(self.ratios)

    @property
    def worse(self) -> bool:
        """Return whether the whole interval lies above the tolerance."""
        return self.interval[0] > TOLERANCE

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.ratio:.2f} ({low:.2f} to {high:.2f})" + (" **worse**" if self.worse else "")


# The cases, each in a fresh process


def main_of_child(case: str) -> None:
    """Run one case and print CPU seconds, peak memory and the points that were asked."""
    import gpmi

    loaded = time.process_time()
    seconds, points = loaded, []
    if case != "import":
        CASES[case](1)  # first calls and late imports
        runs = [CASES[case](0) for _ in range(REPEATS)]
        seconds = min(run[0] for run in runs)
        points = runs[0][1]
    found = {"seconds": seconds, "peak": harness.peak_memory(), "points": points, "file": gpmi.__file__}
    print(json.dumps(found))


Case = Callable[[int], tuple[float, list[str]]]  # seed -> CPU seconds of one suggestion, the points asked


def f(x: Any) -> float:
    """Return a smooth function with several maxima. It is cheap, and left out of every time."""
    import numpy as np

    return float(np.sin(5.0 * x).sum() - ((x - 0.3) ** 2).sum())


def rounds(
    space: Any, n: int, count: int, seed: int, batch: int = 1, options: Mapping[str, Any] | None = None
) -> tuple[float, list[str]]:
    """Return the mean CPU seconds of `ask` + `tell`, fits included, over `count` suggestions after n points."""
    import numpy as np

    import gpmi

    rng = np.random.default_rng(seed)
    optimizer = gpmi.Optimizer(space, **{"policy": gpmi.Reinvest(), "seed": seed, **(options or {})})
    rows = isinstance(space, np.ndarray)
    for _ in range(n):
        x = space[rng.integers(len(space))] if rows else rng.random(len(space))
        optimizer.tell(x, f(x))
    total, points = 0.0, []
    for turn in range(1 + count // batch):
        begin = time.process_time()
        asked = optimizer.ask(batch) if batch > 1 else [optimizer.ask()]
        seconds = time.process_time() - begin
        for x in asked:
            y = f(x)
            begin = time.process_time()
            optimizer.tell(x, y)
            seconds += time.process_time() - begin
        if turn:  # the first round learns the prior from all n points
            total += seconds
        points += [x.tobytes().hex() for x in asked]
    return total / count, points


def learned(n: int) -> Case:
    return lambda seed: rounds([(0.0, 1.0)] * 6, n, 20, seed)


def batch(seed: int) -> tuple[float, list[str]]:
    return rounds([(0.0, 1.0)] * 6, 40, 16, seed, batch=8)


def mcmc(seed: int) -> tuple[float, list[str]]:
    return rounds([(0.0, 1.0)] * 6, 20, 5, seed, options={"fit": "mcmc"})


def finite(seed: int) -> tuple[float, list[str]]:
    import numpy as np

    import gpmi

    rows = np.random.default_rng(5).random((10_000, 4))
    given = {"policy": gpmi.GPMI(), "kernel": gpmi.kernels.RBF(lengthscale=0.3), "noise_var": 1e-2}
    return rounds(rows, 100, 20, seed, options=given)


def ledger(seed: int) -> tuple[float, list[str]]:
    """Return the CPU seconds of reading the whole ledger once, at n = 28, 29 and 30."""
    import gpmi

    optimizer = gpmi.Optimizer([(0.0, 1.0)] * 2, gpmi.Reinvest(), seed=seed)
    seconds, points = [], []
    for n in range(1, 31):
        x = optimizer.ask()
        points.append(x.tobytes().hex())
        optimizer.tell(x, f(x))
        if n >= 28:
            begin = time.process_time()
            account = optimizer.ledger
            _read = (str(account), account.regret().interval(), account.calibration.verdict, account.lock_in)
            seconds.append(time.process_time() - begin)
    return statistics.median(seconds), points


CASES: dict[str, Case] = {
    "learned-20": learned(20),
    "learned-60": learned(60),
    "learned-200": learned(200),
    "finite-100": finite,
    "batch-8": batch,
    "mcmc-20": mcmc,
    "ledger-30": ledger,
}
TITLES = {
    "learned-20": "a suggestion, prior learned, 6-d box, n = 20",
    "learned-60": "a suggestion, prior learned, 6-d box, n = 60",
    "learned-200": "a suggestion, prior learned, 6-d box, n = 200",
    "finite-100": "a suggestion, prior given, 10,000 rows, n = 100",
    "batch-8": "a suggestion of a batch of 8, prior learned, 6-d box, n = 40",
    "mcmc-20": 'a suggestion, fit="mcmc", 6-d box, n = 20',
    "ledger-30": "reading the ledger, 2-d box, n = 30",
    "import": "`import gpmi` in a fresh interpreter",
}


# Two trees in turns


def run(case: str, tree: Path) -> dict[str, Any]:
    """Run one case with the package of one tree, in a fresh process."""
    try:
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        result: dict[str, Any] = harness.measure(__file__, "--child", case, env=environment)
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"{case} fails with {tree}:\n{error.stderr}") from None
    assert Path(result["file"]).is_relative_to(tree), f"{result['file']} was imported in place of {tree}"
    return result


def compare(case: str, trees: Sequence[Path], turns: int) -> tuple[Comparison, Comparison, bool]:
    """Return CPU seconds and peak memory of one case in both trees, and whether both asked for the same points."""
    for tree in trees if case == "import" else ():
        run(case, tree)  # compiles, and reads from the disk
    results: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    for turn in range(turns):
        for side in (0, 1) if turn % 2 == 0 else (1, 0):
            results[side].append(run(case, trees[side]))
    seconds, peak = (Comparison(*([r[what] for r in side] for side in results)) for what in ("seconds", "peak"))
    return seconds, peak, all(a["points"] == b["points"] for a, b in zip(*results, strict=True))


# The report


def row(case: str, seconds: Comparison, peak: Comparison, same: bool) -> str:
    """Return a line of the table."""
    times = " | ".join(f"{1e3 * statistics.median(side):.3g} ms" for side in (seconds.before, seconds.after))
    sizes = " | ".join(f"{statistics.median(side) / 1024:.0f} MB" for side in (peak.before, peak.after))
    return f"| {TITLES[case]} | {times} | {seconds} | {sizes} | {peak} | {harness.yes(same)} |"


def table(rows: Sequence[str]) -> list[str]:
    """Return the lines of the table."""
    head = "| what | CPU before | after | ratio | memory before | after | ratio | same queries |"
    return [head, "|---|---|---|---|---|---|---|---|", *rows]


def introduction(turns: int) -> str:
    """Return what the page says of the measurement."""
    return (
        f"{BEFORE} against the working tree at {harness.commit()}, {turns} turns. CPU time with one BLAS thread, and "
        "the peak memory of the process; each run in a process of its own, the two trees in turns. A ratio is the "
        "median of after / before over the turns; the smallest and the largest, behind it, hold it between them with "
        f"probability {1 - 2 ** (1 - turns):.0%}. Worse means that even the smallest is above {TOLERANCE}. Trust the "
        "ratios, not the milliseconds."
    )


def main() -> int:
    parser = harness.parser(__doc__)
    parser.add_argument("--before", default=BEFORE, help="a git revision (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--only", choices=TITLES, help="run one case and write no page")
    parser.add_argument("--child", choices=TITLES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        main_of_child(arguments.child)
        return 0
    rows, worse = [], False
    with tempfile.TemporaryDirectory() as folder:
        trees = harness.extract(arguments.before, Path(folder)), harness.ROOT / "src"
        for case in [arguments.only] if arguments.only else TITLES:
            seconds, peak, same = compare(case, trees, arguments.turns)
            rows.append(row(case, seconds, peak, same))
            worse = worse or seconds.worse or peak.worse
            harness.say(f"{TITLES[case]}: CPU {seconds}, memory {peak}{'' if same else ', other queries'}")
    print("\n".join(["", *table(rows)]))
    if not arguments.only and arguments.before == BEFORE:
        harness.page(__file__, "Before and after, side by side", introduction(arguments.turns), table(rows))
    return int(worse)


if __name__ == "__main__":
    sys.exit(main())
