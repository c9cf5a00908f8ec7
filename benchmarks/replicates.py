"""What do repeats cost? 10,000 values at 50 points, against one value at each of them.

    python benchmarks/replicates.py       writes docs/benchmarks/replicates.md; about a minute

All times are CPU seconds on one BLAS thread, the median of a few runs.
"""

from __future__ import annotations

import statistics
from typing import Any

import harness
import numpy as np

import gpmi
from gpmi import kernels

PLACES = np.random.default_rng(0).random((50, 3))
PRIORS: dict[str, dict[str, Any]] = {
    "given": {"kernel": kernels.Matern(nu=2.5, lengthscale=0.5), "noise_var": 0.04},
    "learned": {},
}


def run(values: int, prior: dict[str, Any], seed: int) -> tuple[float, float, float, float, int]:
    """Return CPU seconds (all tells, the first model, the first ask, another tell and ask) and the model's rows."""
    rng = np.random.default_rng(seed)
    opt = gpmi.Optimizer([(0.0, 1.0)] * 3, gpmi.GPMI(), seed=seed, n_init=0, **prior)
    rows = PLACES[np.arange(values) % len(PLACES)]
    noisy = np.sin(4.0 * rows.sum(axis=1)) + 0.2 * rng.standard_normal(values)
    told = harness.cpu_seconds(lambda: opt.tell_all(zip(rows, noisy, strict=True)))
    model = harness.cpu_seconds(lambda: opt.model)
    first = harness.cpu_seconds(opt.ask)
    again = harness.cpu_seconds(lambda: (opt.tell(rows[0], noisy[0]), opt.ask()))
    assert opt.model is not None
    return told, model, first, again, opt.model.posterior.n


def main() -> None:
    harness.parser(__doc__).parse_args()
    rows = []
    for name, prior in PRIORS.items():
        run(50, prior, 9)  # late imports are not counted
        for values in (50, 1000, 10_000):
            runs = [run(values, prior, seed) for seed in range(3)]
            cells = [f"{statistics.median(part):.3g}" for part in list(zip(*runs, strict=True))[:4]]
            rows.append((name, f"{values:,}", *cells, runs[0][4]))
    head = ("prior", "values", "all told", "first model", "first ask", "one more value and ask", "rows")
    lines = [
        "Values at 50 points of a box in three dimensions; the policy is GP-MI, which reads gamma_hat. "
        "`rows` are those of the model after all of it.",
        "",
        *harness.table(head, rows),
    ]
    print("\n".join(lines))
    harness.page(__file__, "What repeats cost", "CPU seconds on one BLAS thread.", lines)


if __name__ == "__main__":
    main()
