"""What a report costs: CPU seconds, by section, and bytes. The promise: 20 s, 2 MB for 1,000 trials in ten dimensions.

    python benchmarks/report_cost.py      writes docs/benchmarks/report.md; two minutes

The trials are those of a search that was made up, so that its cost is not that of the run: each policy query is the
best point so far, moved, or a random one, and the values are noisy. The report is made from the Optimizer that was
given these trials and has computed nothing yet. `gpmi report` is measured as a process of its own, on a study with as
many values, at random points. The exit code is 1 if the promise is broken.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"], "1"))

import resource
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import numpy as np
from engine import machine

import gpmi
from gpmi import report
from gpmi.views.html.subject import Subject

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "report.md"
SIZES = ((100, 2), (300, 5), (1000, 10))
PROMISED = (1000, 10, 20.0, 2e6)  # trials, dimensions, seconds, bytes


def f(x: np.ndarray, rng: np.random.Generator) -> float:
    """A noisy bowl with waves along the first coordinate, in which each coordinate matters less than the one before."""
    weights = 0.7 ** np.arange(len(x))
    return float(-(weights * (x - 0.3) ** 2).sum() + 0.1 * np.sin(9.0 * x[0]) + 0.02 * rng.standard_normal())


def made_up(n: int, d: int) -> gpmi.Optimizer:
    """An optimizer with the trials of a search of n evaluations."""
    rng = np.random.default_rng(0)
    trials: list[gpmi.Trial] = []
    best, value = np.full(d, 0.5), -np.inf
    for i in range(n):
        near = i >= 2 * d and i % 3
        x = np.clip(best + 0.1 * rng.standard_normal(d), 0.0, 1.0) if near else rng.uniform(size=d)
        y = f(x, rng)
        best, value = (x, y) if y > value else (best, value)
        origin = "design" if i < 2 * d else "policy"
        said = {"explored": not near} if origin == "policy" else {}
        trials.append(gpmi.Trial(i, x, y, "told", origin, order=i, **said))
    return gpmi.Optimizer([(0.0, 1.0)] * d, seed=0).replay(trials)


def measured(n: int, d: int) -> tuple[dict[str, float], float, int]:
    """CPU seconds of each section, of the whole page, and its bytes."""
    subject = Subject.of(made_up(n, d))
    seconds = {}
    for name in report.IDS:
        begin = time.process_time()
        report.sections(subject, only=[name])
        seconds[name] = time.process_time() - begin
    begin = time.process_time()
    page = report.page(made_up(n, d))
    return seconds, time.process_time() - begin, len(page.encode())


def by_command(n: int, d: int) -> float:
    """CPU seconds of `gpmi report` on a study with n values in d dimensions."""
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
    found = {size: measured(*size) for size in SIZES}
    command = by_command(*PROMISED[:2])
    n, d, limit, most = PROMISED
    kept = found[n, d][1] <= limit and command <= limit and found[n, d][2] <= most
    head = " | ".join(f"{n:,} trials, {d} dimensions" for n, d in SIZES)
    lines = [
        "# What a report costs",
        "",
        "Written by `python benchmarks/report_cost.py`. " + " ".join((__doc__ or "").split("\n\n")[2].split()),
        "",
        *(f"- {line}" for line in machine()),
        f"- {date.today()}, gpmi {gpmi.__version__}",
        "",
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
    PAGE.write_text("\n".join(lines), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
