"""Which row is recommended when a table is noisy and nobody says so? Each evaluation is a random replicate of a row.

    python benchmarks/noisy_tables.py [--part ...] [--seeds N]    writes noisy_tables.csv and .md; hours; resumes
    python benchmarks/noisy_tables.py --report                    writes the page from the table

The tables are those of `problems/real_tables.py` that have replicates. The result is the row that a tool recommends at
the end: the share of the rows whose mean over all replicates is better. Random search recommends the row with its best
value.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import harness
import numpy as np
from peers import table_tools
from problems import real_tables
from problems.functions import Array

import gpmi

NEEDS = "peers"
COLUMNS = ("part", "table", "seed", "tool", "version", "left_40", "left_100", "repeats_100", "noise_100")
RUNS = harness.Table(harness.DOCS / "noisy_tables.csv", COLUMNS, COLUMNS[:4])
SHORT, LONG = BUDGETS = (40, 100)
CONFIRMED = 0.25  # the share of the budget that the second arm spends on its recommended row: not tuned
PARTS = {"development": real_tables.DEVELOPMENT, "reported": real_tables.HELD_OUT[:-1]}  # concrete has no replicates
FIRST, SEEDS = {"development": 1000, "reported": 0}, {"development": 4, "reported": 3}
CHANCE = 500  # runs of random search
Row = harness.Row


@cache
def values_of(name: str) -> tuple[list[Array], Array]:
    """Return the replicates of each row, and their means."""
    values = real_tables.replicates(name)[1]
    return values, np.array([float(row.mean()) for row in values])


def left(name: str, number: int) -> float:
    """Return the share of the rows that are better than this one."""
    means = values_of(name)[1]
    return float(np.mean(means > means[number]))


@cache
def left_by_chance(name: str, budget: int) -> float:
    """Return what random search leaves, on average over CHANCE runs."""
    values, found = values_of(name)[0], []
    for seed in range(CHANCE):
        rng = np.random.default_rng([9, seed])
        rows = rng.permutation(len(values))[:budget]
        found.append(left(name, int(rows[np.argmax([rng.choice(values[row]) for row in rows])])))
    return float(np.mean(found))


class Find:
    """gpmi with nothing set but the budget and the seed. At the end it may evaluate the row that it would recommend."""

    def __init__(self, name: str, seed: int, budget: int, confirmed: float) -> None:
        self.data = real_tables.load(name)
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
        """Return the learned noise variance, in units of the variance of f."""
        prior = self.optimizer.model.prior
        return float(prior.noise_var / prior.kernel.diagonal(np.zeros((1, self.optimizer.space.dim)))[0])


class Tpe:
    """Optuna's TPE, which recommends the row of its best value."""

    def __init__(self, name: str, seed: int, budget: int) -> None:
        self.tool = table_tools.Optuna(real_tables.load(name), seed, budget, "TPESampler")
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
    """Play one run of each budget and return their row."""
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
        "version": table_tools.version(tool) if tool in table_tools.TOOLS else harness.commit(),
        "left_40": f"{shares[SHORT]:.4g}",
        "left_100": f"{shares[LONG]:.4g}",
        "repeats_100": str(len(rows) - len(set(rows))),
        "noise_100": f"{player.noise():.2g}",
    }


def lines_of(rows: list[Row], part: str, budget: int) -> list[str]:
    """Return a row for each table, a column for each tool: the mean share of better rows, over random search's."""
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


def page(rows: list[Row], new: int) -> None:
    """Write the page of both parts."""
    noises = [float(row["noise_100"]) for row in rows if row["tool"] == "find"]
    text = (
        "Each evaluation of a row is one of its replicates, drawn at random, and no tool is told of it. What counts is "
        "the row recommended at the end: the share of the rows whose mean over all replicates is better, divided by "
        "what random search leaves, which recommends its best value "
        f"({CHANCE} runs). Smaller is better; in brackets the number of runs."
    )
    lines = [
        "- `find` has nothing set but the budget and the seed, asks no row twice and recommends the best posterior "
        "mean. The second way evaluates `opt.recommend()` in place of `opt.ask()` for the last quarter of the budget.",
        "- TPE recommends the row of its best value.",
        f"- The learned noise is above a hundredth of the variance of f in {np.mean(np.array(noises) > 0.01):.0%} of "
        "the runs of 100. That is no sign of noise: on the exact tables of [tables.md](tables.md) the fit takes the "
        "roughness of some for noise, too (docs/policy.md), and only a repeat would tell.",
        "",
    ]
    titles = {"reported": "Tables that no experiment looked at", "development": "Tables on which things were tried"}
    for part, title in titles.items():
        for budget in BUDGETS if any(row["part"] == part for row in rows) else ():
            lines += [f"## {title}, {budget} evaluations", "", *lines_of(rows, part, budget), ""]
    harness.page(__file__, "Tables with noise that nobody stated", text, lines, runs=len(rows), new=new)


def runs(parts: Iterable[str], seeds: int | None) -> Iterable[tuple[str, str, int, str]]:
    """Yield the runs of some parts, low seeds first."""
    for part in parts:
        for seed in range(FIRST[part], FIRST[part] + (seeds or SEEDS[part])):
            for name in PARTS[part]:
                yield from ((part, name, seed, tool) for tool in TOOLS)


def main() -> None:
    parser = harness.parser(__doc__, cores=True, report=True)
    parser.add_argument("--part", choices=list(PARTS), help="one part only")
    parser.add_argument("--seeds", type=int, help=f"of each part (default: {SEEDS})")
    args = parser.parse_args()
    wanted = () if args.report else runs([args.part] if args.part else PARTS, args.seeds)
    new = harness.resume(RUNS, wanted, play, args.cores)
    page(RUNS.rows(), new)


if __name__ == "__main__":
    main()
