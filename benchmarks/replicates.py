"""What repeats cost: 10,000 values at 50 points against one value at each of them.

    python benchmarks/replicates.py       writes docs/benchmarks/replicates.md; about a minute

All times are CPU seconds on one BLAS thread, the median of a few runs.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"], "1"))

import statistics
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from engine import machine

import gpmi
from gpmi import kernels

REPORT = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "replicates.md"
PLACES = np.random.default_rng(0).random((50, 3))
PRIORS: dict[str, dict[str, Any]] = {
    "given": {"kernel": kernels.Matern(nu=2.5, lengthscale=0.5), "noise_var": 0.04},
    "learned": {},
}


def run(values: int, prior: dict[str, Any], seed: int) -> tuple[float, float, float, float, int]:
    """CPU seconds: all values told, the first model, the first ask, one more value and ask; and the model's rows."""
    rng = np.random.default_rng(seed)
    opt = gpmi.Optimizer([(0.0, 1.0)] * 3, gpmi.GPMI(), seed=seed, n_init=0, **prior)
    rows = PLACES[np.arange(values) % len(PLACES)]
    noisy = np.sin(4.0 * rows.sum(axis=1)) + 0.2 * rng.standard_normal(values)

    def cpu(call: Callable[[], Any]) -> float:
        begin = time.process_time()
        call()
        return time.process_time() - begin

    told = cpu(lambda: opt.tell_all(zip(rows, noisy, strict=True)))
    model = cpu(lambda: opt.model)
    first = cpu(opt.ask)
    again = cpu(lambda: (opt.tell(rows[0], noisy[0]), opt.ask()))
    assert opt.model is not None
    return told, model, first, again, opt.model.posterior.n


def main() -> None:
    lines = [
        "# What repeats cost",
        "",
        f"Written by `python benchmarks/replicates.py` on {date.today()}. CPU seconds on one BLAS thread.",
        "",
        ". ".join(machine()) + ".",
        "",
        "Values at 50 points of a box in three dimensions; the policy is GP-MI, which reads gamma_hat. "
        "`rows` are those of the model after all of it.",
        "",
        "| prior | values | all told | first model | first ask | one more value and ask | rows |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, prior in PRIORS.items():
        run(50, prior, 9)  # what is imported late is not counted
        for values in (50, 1000, 10_000):
            runs = [run(values, prior, seed) for seed in range(3)]
            cells = [f"{statistics.median(part):.3g}" for part in list(zip(*runs, strict=True))[:4]]
            lines.append(f"| {name} | {values:,} | {' | '.join(cells)} | {runs[0][4]} |")
    REPORT.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
