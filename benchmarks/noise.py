"""How often is strong noise taken for none, and how often does the event "noise uncertain" say so?

    python benchmarks/noise.py              writes docs/benchmarks/noise.csv and noise.md; ten minutes; resumes
    python benchmarks/noise.py --report     writes the page from the tables

A run has 40 evaluations and nothing set. The noise has the standard deviation of f over its space, or there is none.
After 16, 20, 24, 32 and 40 values the run notes whether the model has learned less noise than 1 % of the variance of y.
If so, it notes by how many nats the evidence favours that. Below 0.5 nats, from 20 values on, is an alarm.

A second table has the upper end of the interval of the regret after 40 values, after 40 more, and after 40 more at the
recommended point instead, with the same noise.
"""

from __future__ import annotations

import time
from functools import cache
from itertools import product

import harness
import numpy as np
import problems

import gpmi
from gpmi.analysis.ledger.run_warnings import DOUBTED, NATS

PROBLEMS = ("branin", "hartmann-3", "mixture", "hartmann-mixed", "hartmann-6", "ackley-5")
LOOKS = (16, 20, 24, 32, 40)
COLUMNS = ("problem", "noise", "seed", "t", "nats", "share", "asked", "looked")
TABLE = harness.Table(harness.DOCS / "noise.csv", COLUMNS, COLUMNS[:3])
NARROWED, MORE = ("branin", "hartmann-3"), ("problem", "seed", "after 40", "after 80", "after 40 repeats")
NARROWING = harness.Table(harness.DOCS / "noise_narrowing.csv", MORE, MORE[:2])


@cache
def spread(name: str) -> float:
    """Return the standard deviation of f over its space."""
    return float(np.std(problems.values_at_random(problems.make(name, 0), 4000)))


def play(name: str, noise: float, seed: int) -> list[list[object]]:
    """Play one run and return its rows. nats and share are empty where the model has learned some noise."""
    problem, rng, noise_sd = problems.make(name, seed), np.random.default_rng([seed, 7]), noise * spread(name)
    opt, rows, asked = gpmi.Optimizer(problem.space, budget=LOOKS[-1], seed=seed), [], 0.0
    for t in range(1, LOOKS[-1] + 1):
        begin = time.process_time()
        x = opt.ask()
        asked += time.process_time() - begin
        opt.tell(x, problem.f(x) + noise_sd * float(rng.standard_normal()))
        if t in LOOKS:
            ledger = opt.ledger
            _ = ledger.model
            begin = time.process_time()
            found = ledger.undetected_noise()
            looked = time.process_time() - begin
            nats, share = ("", "") if found is None else (f"{found.nats:.3f}", f"{found.share:.3f}")
            rows.append([name, noise, seed, t, nats, share, f"{asked:.3f}", f"{looked:.4f}"])
    return rows


def narrow(name: str, seed: int) -> tuple[object, ...]:
    """Return the upper ends of the interval after 40 values, after 40 more, and after 40 repeats instead."""
    problem, rng = problems.make(name, seed), np.random.default_rng([seed, 7])

    def tell(optimizer: gpmi.Optimizer, x: object) -> None:
        optimizer.tell(x, problem.f(x) + spread(name) * float(rng.standard_normal()))

    opt = gpmi.Optimizer(problem.space, budget=80, seed=seed)
    for _ in range(40):
        tell(opt, opt.ask())
    repeated = gpmi.Optimizer(problem.space, budget=80, seed=seed).replay(opt.trials)
    ends, recommended = [opt.ledger.regret().interval()[1]], opt.recommend()
    for _ in range(40):
        tell(opt, opt.ask())
        tell(repeated, recommended)
    ends += [one.ledger.regret().interval()[1] for one in (opt, repeated)]
    return name, seed, *(f"{end:.4g}" for end in ends)


def narrowing() -> str:
    """Return the sentence about the second table."""
    ends = np.array([[float(row[name]) for name in MORE[2:]] for row in NARROWING.rows()])
    more, repeats = (ends[:, 1:] / ends[:, :1]).T
    median, growing = np.median([more, repeats], axis=1), np.sum([more > 1.0, repeats > 1.0], axis=1)
    return (
        f"With such noise the upper end of the interval of the regret changes by a factor of {median[0]:.2f} (median, "
        f"{len(ends)} runs on {' and '.join(NARROWED)}) with 40 evaluations after 40, and grows in {growing[0]}; "
        f"with 40 repeats of the recommended point instead by {median[1]:.2f}, and it grows in {growing[1]}."
    )


def report(new: int) -> None:
    """Write the page from the tables."""
    rows = TABLE.rows()
    lines = []
    for name in dict.fromkeys(row["problem"] for row in rows):
        for noise, words in (("1.0", "sd of f"), ("0.0", "none")):
            cells = []
            for t in LOOKS:
                here = [row for row in rows if (row["problem"], row["noise"], row["t"]) == (name, noise, str(t))]
                none = [float(row["nats"]) for row in here if row["nats"]]
                alarm = sum(nats < NATS for nats in none) if t >= DOUBTED else 0
                cells.append(f"{len(none)}, {alarm}")
            if here:
                lines.append((name, words, len(here), *cells))
    last = [row for row in rows if row["t"] == str(LOOKS[-1])]
    asked, looked = (float(np.median([float(row[name]) for row in last])) for name in ("asked", "looked"))
    text = (
        "A run has 40 evaluations and nothing set. The noise has the standard deviation of f over its space, or there "
        "is none. After 16, 20, 24, 32 and 40 values it is noted whether the model has learned less noise than 1 % of "
        "the variance of y, and if so by how many nats the evidence is for that; below 0.5 nats, from 20 values on, is "
        "an alarm."
    )
    body = [
        "A cell has the number of runs in which the model had learned next to no noise, and that of alarms, which "
        "are right with noise and false without.",
        "",
        *harness.table(("problem", "noise", "runs", *(f"t = {t}" for t in LOOKS)), lines),
        "",
        f"The suggestions of a run take {asked:.2f} s of CPU, a look after {LOOKS[-1]} values {1e3 * looked:.0f} ms.",
        "",
        narrowing(),
    ]
    runs = len(TABLE.keys()) + len(NARROWING.keys())
    harness.page(__file__, "Noise that is taken for none", text, body, runs=runs, new=new)


def main() -> None:
    parser = harness.parser(__doc__, cores=True, report=True)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--runs", type=int, default=6, help="of each problem in the second table")
    chosen = parser.parse_args()
    new = 0
    if not chosen.report:
        new += harness.resume(NARROWING, product(NARROWED, range(chosen.runs)), narrow, chosen.cores)
        runs = product(PROBLEMS, (1.0, 0.0), range(chosen.seeds))
        new += harness.resume(TABLE, runs, play, chosen.cores)
    report(new)


if __name__ == "__main__":
    main()
