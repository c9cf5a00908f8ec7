"""Tables with noise that nobody stated: each evaluation of a row is one of its replicates, drawn at random.

    python benchmarks/noisy_tables.py [--part development] [--seeds N]      goes on where it stopped
    python benchmarks/noisy_tables.py --report                              writes noisy_tables.md from its csv

The tables of benchmarks/tables.py that have replicates. What counts is the row that a tool recommends at the end: the
share of the rows whose mean over all replicates is better. Random search recommends the row with its best value.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"], "1"))

import argparse
import csv
import time
import warnings
from collections.abc import Callable, Sequence
from datetime import date
from functools import cache
from typing import Any

import numpy as np
import tables
from engine import machine
from find import commit
from numpy.typing import NDArray

import gpmi

Array = NDArray[np.float64]
CSV, PAGE = tables.FOLDER / "noisy_tables.csv", tables.FOLDER / "noisy_tables.md"
COLUMNS = ("part", "table", "seed", "tool", "version", "left_40", "left_100", "repeats_100", "noise_100")
BUDGETS = (tables.SHORT, tables.LONG)
CONFIRMED = 0.25  # the share of the budget that the second way spends on what it would recommend: not tuned
PARTS = {"development": tables.DEVELOPMENT, "reported": tables.HELD_OUT[:-1]}  # concrete has no replicates
SEEDS = {"development": 4, "reported": 3}
CHANCE = 500  # runs of random search
Row = dict[str, str]


@cache
def values_of(name: str) -> tuple[list[Array], Array]:
    """The replicates of each row, and their means."""
    values = tables.replicates(name)[1]
    return values, np.array([float(row.mean()) for row in values])


def left(name: str, number: int) -> float:
    """The share of the rows that are better than this one."""
    means = values_of(name)[1]
    return float(np.mean(means > means[number]))


@cache
def left_by_chance(name: str, budget: int) -> float:
    """What random search leaves, on average over CHANCE runs."""
    values, found = values_of(name)[0], []
    for seed in range(CHANCE):
        rng = np.random.default_rng([9, seed])
        rows = rng.permutation(len(values))[:budget]
        found.append(left(name, int(rows[np.argmax([rng.choice(values[row]) for row in rows])])))
    return float(np.mean(found))


class Find:
    """gpmi with nothing set but the budget and the seed; at the end it may evaluate what it would recommend."""

    def __init__(self, name: str, seed: int, budget: int, confirmed: float) -> None:
        self.data = tables.table(name)
        self.optimizer = gpmi.Optimizer(self.data.frame, budget=budget, seed=seed)
        self.explored = budget - round(confirmed * budget)
        self.x: Any = None

    def ask(self) -> int:
        opt = self.optimizer
        self.x = opt.ask() if len(opt.trials) < self.explored else opt.recommend()
        return self.number(self.x)

    def tell(self, value: float) -> None:
        self.optimizer.tell(self.x, value)

    def number(self, x: Any) -> int:
        return self.data.number_of[tuple(x.values())]

    def recommended(self) -> int:
        return self.number(self.optimizer.recommend())

    def noise(self) -> float:
        """The learned noise variance, in units of the variance of f."""
        prior = self.optimizer.model.prior
        return float(prior.noise_var / prior.kernel.diagonal(np.zeros((1, self.optimizer.space.dim)))[0])


class Tpe:
    """Optuna's TPE, which recommends the row of its best value."""

    def __init__(self, name: str, seed: int, budget: int) -> None:
        self.tool = tables.Optuna(tables.table(name), seed, budget, "TPESampler")
        self.told: list[tuple[float, int]] = []
        self.asked = -1

    def ask(self) -> int:
        self.asked = self.tool.ask()
        return self.asked

    def tell(self, value: float) -> None:
        self.tool.tell(self.asked, value)
        self.told.append((value, self.asked))

    def recommended(self) -> int:
        return max(self.told)[1]

    def noise(self) -> float:
        return float("nan")


TOOLS: dict[str, Callable[[str, int, int], Find | Tpe]] = {
    "find": lambda *a: Find(*a, confirmed=0.0),
    "find, the last quarter at recommend()": lambda *a: Find(*a, confirmed=CONFIRMED),
    "Optuna TPE": Tpe,
}


def play(part: str, name: str, seed: int, tool: str) -> Row:
    warnings.simplefilter("ignore")
    values, shares = values_of(name)[0], {}
    for budget in BUDGETS:
        player, rng, rows = TOOLS[tool](name, seed, budget), np.random.default_rng([7, seed]), []
        for _ in range(budget):
            rows.append(player.ask())
            player.tell(float(rng.choice(values[rows[-1]])))
        shares[budget] = left(name, player.recommended())
    return {
        "part": part,
        "table": name,
        "seed": str(seed),
        "tool": tool,
        "version": tables.version(tool) if tool in tables.TOOLS else commit(),
        "left_40": f"{shares[tables.SHORT]:.4g}",
        "left_100": f"{shares[tables.LONG]:.4g}",
        "repeats_100": str(len(rows) - len(set(rows))),
        "noise_100": f"{player.noise():.2g}",
    }


def stored() -> list[Row]:
    if not CSV.exists():
        return []
    with CSV.open(newline="") as file:
        return list(csv.DictReader(file))


def lines_of(rows: list[Row], part: str, budget: int) -> list[str]:
    """A row for each table, a column for each tool: the mean share of better rows, over that of random search."""
    tools = [tool for tool in TOOLS if any(row["part"] == part and row["tool"] == tool for row in rows)]
    lines = [f"| | random leaves | {' | '.join(tools)} |", "|---" * (len(tools) + 2) + "|"]
    ratios: dict[str, list[float]] = {tool: [] for tool in tools}
    for name in [name for name in PARTS[part] if any((row["part"], row["table"]) == (part, name) for row in rows)]:
        chance, cells = left_by_chance(name, budget), []
        for tool in tools:
            found = [
                float(row[f"left_{budget}"])
                for row in rows
                if (row["part"], row["table"], row["tool"]) == (part, name, tool)
            ]
            if found:
                ratios[tool].append(float(np.mean(found)) / chance)
            cells.append(f"{ratios[tool][-1]:.2f} ({len(found)})" if found else "")
        lines.append(f"| {name} | {chance:.2%} | {' | '.join(cells)} |")
    means = [f"**{np.mean(found):.2f}** of {len(found)}" for found in ratios.values()]
    return [*lines, f"| **mean** | | {' | '.join(means)} |"]


def page(rows: list[Row]) -> str:
    noises = [float(row["noise_100"]) for row in rows if row["tool"] == "find"]
    lines = [
        "# Tables with noise that nobody stated",
        "",
        "Written by `python benchmarks/noisy_tables.py`. Each evaluation of a row is one of its replicates, drawn at "
        "random, and no tool is told of it. What counts is the row recommended at the end: the share of the rows whose "
        "mean over all replicates is better, divided by what random search leaves, which recommends its best value "
        f"({CHANCE} runs). Smaller is better; in brackets the number of runs.",
        "",
        "- `find` has nothing set but the budget and the seed, asks no row twice and recommends the best posterior "
        "mean. The second way evaluates `opt.recommend()` in place of `opt.ask()` for the last quarter of the budget.",
        "- TPE recommends the row of its best value.",
        f"- The learned noise is above a hundredth of the variance of f in {np.mean(np.array(noises) > 0.01):.0%} of "
        "the runs of 100. That is no sign of noise: on the exact tables of [tables.md](tables.md) the fit takes the "
        "roughness of some for noise, too (docs/policy.md), and only a repeat would tell.",
        *(f"- {line}" for line in machine()),
        f"- {date.today().isoformat()}, page written at commit {commit()}",
        "",
    ]
    titles = {"reported": "Tables that no experiment looked at", "development": "Tables on which things were tried"}
    for part, title in titles.items():
        for budget in BUDGETS if any(row["part"] == part for row in rows) else ():
            lines += [f"## {title}, {budget} evaluations", "", *lines_of(rows, part, budget), ""]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default="reported", choices=list(PARTS))
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args(arguments)
    begin = tables.FIRST_OF_DEVELOPMENT if args.part == "development" else 0
    known = {tuple(row[column] for column in COLUMNS[:4]) for row in stored()}
    for seed in range(begin, begin + (args.seeds or SEEDS[args.part])) if not args.report else ():
        for name in PARTS[args.part]:
            for tool in TOOLS:
                if (args.part, name, str(seed), tool) in known:
                    continue
                row = play(args.part, name, seed, tool)
                new = not CSV.exists()
                with CSV.open("a", newline="") as file:
                    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                    if new:
                        writer.writeheader()
                    writer.writerow(row)
                print(time.strftime("%H:%M:%S"), *row.values(), flush=True)
    PAGE.write_text(page(stored()))


if __name__ == "__main__":
    main()
