"""How policies do on small problems with everything learned: why the default is what it is.

    python benchmarks/policies.py      writes docs/benchmarks/policies.md

Simple regret is the gap of the best value seen, R_T / T the mean gap of all queries, both in the problem's units;
a run is stuck when its best value is in the wrong basin: more than 1 % of the function's range below the maximum.
"""

# ruff: noqa: E402  (the threads must be set before NumPy is imported)
from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import statistics
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import gpmi
from gpmi.tasks.functions import HIMMELBLAU

BUDGET, SEEDS = 60, 20
REPORT = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "policies.md"
Point = NDArray[np.float64]


def branin(x: Point) -> float:
    a, b = x
    u = b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6
    return float(-(u**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10))


# name: (function to maximise, bounds, maximum, range)
Problem = tuple[Callable[[Point], float], list[tuple[float, float]], float, float]
PROBLEMS: dict[str, Problem] = {
    "tilted Himmelblau": (HIMMELBLAU.f, list(HIMMELBLAU.bounds), HIMMELBLAU.maximum, 900.0),
    "Branin": (branin, [(-5.0, 10.0), (0.0, 15.0)], -0.39788735772973816, 308.0),
}
POLICIES: dict[str, gpmi.Policy] = {
    **{f"Reinvest(c={c:g})": gpmi.Reinvest(c) for c in (0.3, 1.0, 3.0, 10.0, 30.0)},
    "GPMI()": gpmi.GPMI(),
    "GPUCB(scale=0.2)": gpmi.GPUCB(scale=0.2),
    'LogEI("mean")': gpmi.LogEI("mean"),
}


def run(problem: str, policy: str, seed: int) -> tuple[float, float]:
    """Simple regret and R_T / T of one run."""
    f, bounds, maximum, _ = PROBLEMS[problem]
    result = gpmi.maximize(f, bounds, budget=BUDGET, policy=POLICIES[policy], seed=seed)
    gaps = [maximum - trial.y for trial in result.trials if trial.y is not None]
    return min(gaps), statistics.fmean(gaps)


def main() -> None:
    lines = [
        "# Policies with a learned prior",
        "",
        f"Written by `benchmarks/policies.py` on {date.today().isoformat()}: {BUDGET} evaluations, {SEEDS} seeds, the "
        "library's own initial design. Stuck: the best value is more than 1 % of the range below the maximum.",
    ]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for problem, (*_, width) in PROBLEMS.items():
            lines += [
                "",
                f"## {problem}",
                "",
                "| policy | stuck | median simple regret | mean R_T / T |",
                "|---|---|---|---|",
            ]
            for policy in POLICIES:
                runs = list(pool.map(run, [problem] * SEEDS, [policy] * SEEDS, range(SEEDS)))
                simple, cumulative = zip(*runs, strict=True)
                stuck = sum(gap > 0.01 * width for gap in simple)
                regrets = f"{statistics.median(simple):.2g} | {statistics.fmean(cumulative):.3g}"
                lines.append(f"| `{policy}` | {stuck} of {SEEDS} | {regrets} |")
                print(problem, lines[-1], flush=True)
    REPORT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
