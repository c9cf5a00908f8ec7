"""How often a run takes noisy values for exact ones, and how often the event "noise uncertain" says so.

    python benchmarks/noise.py              writes docs/benchmarks/noise.csv and noise.md; goes on where it stopped
    python benchmarks/noise.py --report     writes the page from the tables

A run has 40 evaluations and nothing set. The noise has the standard deviation of f over its space, or there is none.
After 16, 20, 24, 32 and 40 values it is noted whether the model has learned less noise than 1 % of the variance of y,
and if so by how many nats the evidence is for that; below 0.5 nats, from 20 values on, is an alarm.

Then the upper end of the interval of the regret after 40 values, after 40 more, and after 40 more at the recommended
point instead, with the same noise.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"], "1"))

import argparse
import csv
import time
from collections.abc import Callable, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from engine import machine
from problems import make

import gpmi
from gpmi.analysis.ledger.run_warnings import DOUBTED, NATS, undetected_noise_of

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "benchmarks"
TABLE, NARROWING, PAGE = FOLDER / "noise.csv", FOLDER / "noise_narrowing.csv", FOLDER / "noise.md"
PROBLEMS = ("branin", "hartmann-3", "mixture", "hartmann-mixed", "hartmann-6", "ackley-5")
LOOKS = (16, 20, 24, 32, 40)
COLUMNS = ("problem", "noise", "seed", "t", "nats", "share", "asked", "looked")
NARROWED, MORE = ("branin", "hartmann-3"), ("problem", "seed", "after 40", "after 80", "after 40 repeats")


@cache
def spread(name: str) -> float:
    """The standard deviation of f over its space."""
    problem = make(name, 0)
    space = gpmi.Space.of(problem.space)
    rows = space.from_unit(np.random.default_rng(0).random((4000, space.unit_dim)))
    return float(np.std([problem.f(space.decode(row)) for row in rows]))


def play(name: str, noise: float, seed: int) -> list[list[object]]:
    """The rows of one run; nats and share are empty where the model has learned some noise."""
    problem, rng, noise_sd = make(name, seed), np.random.default_rng([seed, 7]), noise * spread(name)
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
            found = undetected_noise_of(ledger)
            looked = time.process_time() - begin
            nats, share = ("", "") if found is None else (f"{found.nats:.3f}", f"{found.share:.3f}")
            rows.append([name, noise, seed, t, nats, share, f"{asked:.3f}", f"{looked:.4f}"])
    return rows


def narrow(name: str, seed: int) -> list[object]:
    """The upper end of the interval after 40 values, after 40 more, and after 40 repeats of the recommended point."""
    problem, rng = make(name, seed), np.random.default_rng([seed, 7])

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
    return [name, seed, *(f"{end:.4g}" for end in ends)]


def rows_of(table: Path) -> list[dict[str, str]]:
    if not table.exists():
        return []
    with table.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def narrowing() -> str:
    """What the second table says, in a sentence."""
    ends = np.array([[float(row[name]) for name in MORE[2:]] for row in rows_of(NARROWING)])
    more, repeats = (ends[:, 1:] / ends[:, :1]).T
    median, growing = np.median([more, repeats], axis=1), np.sum([more > 1.0, repeats > 1.0], axis=1)
    return (
        f"With such noise the upper end of the interval of the regret changes by a factor of {median[0]:.2f} (median, "
        f"{len(ends)} runs on {' and '.join(NARROWED)}) with 40 evaluations after 40, and grows in {growing[0]}; "
        f"with 40 repeats of the recommended point instead by {median[1]:.2f}, and it grows in {growing[1]}."
    )


def report() -> None:
    """Write the page from the tables."""
    rows = rows_of(TABLE)
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
                lines.append(f"| {name} | {words} | {len(here)} | {' | '.join(cells)} |")
    last = [row for row in rows if row["t"] == str(LOOKS[-1])]
    asked, looked = (float(np.median([float(row[name]) for row in last])) for name in ("asked", "looked"))
    head = [
        "# Noise that is taken for none", "",
        "Written by `python benchmarks/noise.py`. " + " ".join((__doc__ or "").split("\n\n")[2].split()), "",
        *(f"- {line}" for line in machine()), f"- {date.today()}, gpmi {gpmi.__version__}", "",
        "A cell has the number of runs in which the model had learned next to no noise, and that of alarms, which "
        "are right with noise and false without.", "",
        f"| problem | noise | runs | {' | '.join(f't = {t}' for t in LOOKS)} |", "|---|---|---|" + "---|" * len(LOOKS),
    ]  # fmt: skip
    cost = f"The suggestions of a run take {asked:.2f} s of CPU, a look after {LOOKS[-1]} values {1e3 * looked:.0f} ms."
    PAGE.write_text("\n".join([*head, *lines, "", cost, "", narrowing(), ""]), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--runs", type=int, default=6, help="for the interval")
    given = parser.parse_args()
    if not given.report:
        for name in NARROWED:
            for seed in range(given.runs):
                append(NARROWING, MORE, (name, str(seed)), lambda name=name, seed=seed: [narrow(name, seed)])
        for name in PROBLEMS:
            for noise in (1.0, 0.0):
                for seed in range(given.seeds):
                    key = (name, str(noise), str(seed))
                    append(TABLE, COLUMNS, key, lambda name=name, noise=noise, seed=seed: play(name, noise, seed))
    report()


def append(table: Path, columns: tuple[str, ...], key: tuple[str, ...], make_rows: Callable[[], Sequence[Any]]) -> None:
    """Add rows to a table, unless it has rows that begin with this key."""
    known = rows_of(table)
    if any(tuple(row.values())[: len(key)] == key for row in known):
        return
    made = make_rows()
    with table.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows(made if known else [columns, *made])


if __name__ == "__main__":
    main()
