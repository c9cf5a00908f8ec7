"""What does a report cost, in CPU seconds by section and in bytes?

    python benchmarks/report_cost.py      writes docs/benchmarks/report.md; two minutes

The trials are those of a search that was made up, so that its cost is not that of the run: each policy query is the
best point so far, moved, or a random one, and the values are noisy. The report is made from the Optimizer that was
given these trials and has computed nothing yet. `gpmi report` is measured as a process of its own, on a study with as
many values, at random points. The exit code is 1 if the promise is broken.

The promise is 20 s and 2 MB for 1,000 trials in ten dimensions.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time

import harness
import numpy as np

import gpmi
from gpmi import report
from gpmi.views.reading import view_of

SIZES = ((100, 2), (300, 5), (1000, 10))
PROMISED = (1000, 10, 20.0, 2e6)  # trials, dimensions, seconds, bytes


def f(x: np.ndarray, rng: np.random.Generator) -> float:
    """Return a noisy bowl with waves along the first coordinate. Each coordinate matters less than the one before."""
    weights = 0.7 ** np.arange(len(x))
    return float(-(weights * (x - 0.3) ** 2).sum() + 0.1 * np.sin(9.0 * x[0]) + 0.02 * rng.standard_normal())


def made_up(n: int, d: int) -> gpmi.Optimizer:
    """Return an optimizer with the trials of a search of n evaluations."""
    rng = np.random.default_rng(0)
    trials: list[gpmi.Trial] = []
    best, value = np.full(d, 0.5), -np.inf
    for i in range(n):
        near = i >= 2 * d and i % 3
        x = np.clip(best + 0.1 * rng.standard_normal(d), 0.0, 1.0) if near else rng.uniform(size=d)
        y = f(x, rng)
        best, value = (x, y) if y > value else (best, value)
        origin = "design" if i < 2 * d else "policy"
        more = {"explored": not near} if origin == "policy" else {}
        trials.append(gpmi.Trial(i, x, y, "told", origin, order=i, **more))
    return gpmi.Optimizer([(0.0, 1.0)] * d, seed=0).replay(trials)


def measured(n: int, d: int) -> tuple[dict[str, float], float, int]:
    """Return the CPU seconds of each section and of the whole report, and its bytes."""
    run = view_of(made_up(n, d))
    seconds = {}
    for name in report.IDS:
        begin = time.process_time()
        report.sections(run, only=[name])
        seconds[name] = time.process_time() - begin
    begin = time.process_time()
    page = report.page(made_up(n, d))
    return seconds, time.process_time() - begin, len(page.encode())


def by_command(n: int, d: int) -> float:
    """Return the CPU seconds of `gpmi report` on a study with n values in d dimensions."""
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(0)
        with gpmi.study(f"{folder}/study.db", space=[(0.0, 1.0)] * d, seed=0) as study:
            xs = rng.uniform(size=(n, d))
            study.optimizer.tell_all([(x, f(x, rng)) for x in xs])
        command = [sys.executable, "-c", "from gpmi.cli import main; main()", "report", f"{folder}/study.db"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*command, "--out", f"{folder}/report.html"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    harness.parser(__doc__).parse_args()
    found = {size: measured(*size) for size in SIZES}
    command = by_command(*PROMISED[:2])
    n, d, limit, most = PROMISED
    kept = found[n, d][1] <= limit and command <= limit and found[n, d][2] <= most
    head = " | ".join(f"{n:,} trials, {d} dimensions" for n, d in SIZES)
    lines = [
        f"| CPU seconds | {head} |",
        "|---|" + "---|" * len(SIZES),
        *(f"| {name} | " + " | ".join(f"{found[size][0][name]:.2f}" for size in SIZES) + " |" for name in report.IDS),
        "| **the page** | " + " | ".join(f"**{found[size][1]:.1f}**" for size in SIZES) + " |",
        "| bytes | " + " | ".join(f"{found[size][2]:,}" for size in SIZES) + " |",
        "",
        "A section that needs what another one has computed is cheap after it: what to do next needs the draws of the "
        "regret and the residuals, how it went those at earlier moments, which parameters matter the lines along each.",
        "",
        f"`gpmi report study.db` of {n:,} values in {d} dimensions, the start of Python and the reading of the study "
        f"included: {command:.1f} s of CPU. The promise, {limit:g} s of CPU and {most / 1e6:g} MB for {n:,} trials in "
        f"{d} dimensions, is {'kept' if kept else '**broken**'}.",
        "",
    ]
    print("\n".join(lines))
    text = " ".join((__doc__ or "").split("\n\n")[2].split())
    harness.page(__file__, "What a report costs", text, lines, name="report")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
