"""How much do the first 10 to 50 experiments gain over a random order, on tables of past experiments?

    python benchmarks/first_experiments.py [--cores N]          held-out tables; writes the page; ten minutes; resumes
    python benchmarks/first_experiments.py --part development   the experiments, on other tables
    python benchmarks/first_experiments.py --tools BayBE        hours, with --part development as well
    python benchmarks/first_experiments.py --report             writes the page from the table

The tables are those of `problems/laboratory_tables.py`, with labels only. The gain after k experiments is (best so far
- expected best of k random rows) / (best row - that); the expectation is exact. Experiments are made one at a time, 50
in all, in batches of 5, 20 in all, and of 10, 30 in all. gpmi knows how many there will be. Low seeds come first, so
that a partial table is balanced.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import harness
import numpy as np
from peers.table_tools import BayBE
from problems import laboratory_tables
from problems.functions import Array
from problems.laboratory_tables import DEVELOPMENT, HELD_OUT, LaboratoryTable

import gpmi
from gpmi.analysis.random_order import best_of_random
from gpmi.optimizer.selection import Selection

NEEDS = "peers"
AFTER = (10, 20, 30, 50)
COLUMNS = ("part", "table", "batch", "seed", "tool", "version", *(f"gain_{k}" for k in AFTER), "cpu")
RUNS = harness.Table(harness.DOCS / "first_experiments.csv", COLUMNS, COLUMNS[:5])
EXPERIMENTS = {1: 50, 5: 20, 10: 30}  # by the size of a batch
SEEDS, BAYBE_SEEDS = 24, 8
PARTS = ("reported", "development", "first look")
# Held-out tables on which the rule for options acts. The first look at them was with the design alone, seeds from 0.
LOOKED_AT = ("2-pyridyl", "3-pyridyl", "imagenet")


# Variants of gpmi


class NoOptions(Selection):
    """The searches of a suggestion, but none for untried options."""

    def try_option(self, policy: gpmi.Policy) -> None:
        return None


@dataclass(frozen=True, repr=False)
class NotTrying(gpmi.Find):
    """Find without the rule for untried options."""

    def choose(self, search: Any) -> Any:
        return super().choose(NoOptions(**{field.name: getattr(search, field.name) for field in fields(search)}))


def design_of(rows: int) -> Options:
    """Return the options of a design of so many rows, without the rule for untried options."""
    return lambda data: {"n_init": rows, "policy": NotTrying()}


def before(data: LaboratoryTable) -> dict[str, Any]:
    """Return the options of the version before: as many rows as there are parameters plus 3, at most ten."""
    return {"n_init": min(10, data.parameters.shape[1] + 3), "policy": NotTrying()}


Options = Callable[[LaboratoryTable], dict[str, Any]]  # of gpmi.Optimizer
VARIANTS: dict[str, Options] = {
    "gpmi": lambda data: {},
    "before": before,
    "5 rows": design_of(5),
    "4 rows": design_of(4),
}
REPORTED = ("gpmi", "before")  # and BayBE
TOOLS = (*VARIANTS, "BayBE")


# All runs

Run = tuple[str, str, int, int, str]  # part, table, batch, seed, tool
Row = harness.Row


class Gpmi:
    """An Optimizer on the rows of a table."""

    def __init__(self, data: LaboratoryTable, seed: int, budget: int, options: dict[str, Any]) -> None:
        self.data = data
        limit = {"n_init": min(options["n_init"], budget // 3)} if "n_init" in options else {}
        self.optimizer = gpmi.Optimizer(
            data.parameters, seed=seed, budget=budget, goal=data.goal, **{**options, **limit}
        )
        self.asked: list[Any] = []

    def ask_several(self, count: int) -> list[int]:
        self.asked = self.optimizer.ask(count)
        return [numbers(self.data.name)[tuple(x.values())] for x in self.asked]

    def tell_several(self, rows: list[int]) -> None:
        for x, number in zip(self.asked, rows, strict=True):
            self.optimizer.tell(x, float(self.data.y[number]))


@cache
def numbers(name: str) -> dict[tuple[Any, ...], int]:
    return laboratory_tables.load(name).table.number_of


@cache
def by_chance(name: str) -> Array:
    """Return the expected best of k random rows, k = 1, ..., 50."""
    return best_of_random(laboratory_tables.load(name).values, max(AFTER))[0]


def gain(name: str, rows: Sequence[int], k: int) -> float:
    """Return the gain of the first k rows over a random order."""
    values, chance = laboratory_tables.load(name).values, by_chance(name)[k - 1]
    return float((values[list(rows[:k])].max() - chance) / (values.max() - chance))


def play(part: str, name: str, batch: int, seed: int, tool: str) -> Row:
    """Play one run and return its row. cpu is the time of asking and telling, in seconds."""
    warnings.simplefilter("ignore")
    data, budget = laboratory_tables.load(name), EXPERIMENTS[batch]
    begin = time.process_time()
    player = BayBE(data.table, seed) if tool == "BayBE" else Gpmi(data, seed, budget, VARIANTS[tool](data))
    rows: list[int] = []
    while len(rows) < budget:
        asked = player.ask_several(batch)
        player.tell_several(asked)
        rows += asked
    cpu = time.process_time() - begin
    gains = {f"gain_{k}": f"{gain(name, rows, k):.4f}" for k in AFTER if k <= budget}
    version = harness.installed("baybe") if tool == "BayBE" else harness.commit()
    own = {"part": part, "table": name, "batch": str(batch), "seed": str(seed), "tool": tool}
    return {**own, "version": str(version), **gains, "cpu": f"{cpu:.4g}"}


def runs(part: str, names: Sequence[str], batches: Sequence[int], tools: Sequence[str], most: int) -> Iterable[Run]:
    """Yield the runs, low seeds first."""
    for number in range(most):
        for batch in batches:
            for tool in tools:
                if tool != "BayBE" or number < BAYBE_SEEDS:
                    yield from ((part, name, batch, first_seed(part, name) + number, tool) for name in names)


def first_seed(part: str, name: str) -> int:
    return 1000 if part == "development" else SEEDS if part == "reported" and name in LOOKED_AT else 0


# The page

Gains = dict[str, Array]  # by table: the gains of all runs, (seeds,)


def gains_of(rows: list[Row], part: str, batch: int, tool: str, k: int) -> Gains:
    found: dict[str, list[float]] = {}
    for row in rows:
        if (row["part"], row["batch"], row["tool"]) == (part, str(batch), tool):
            found.setdefault(row["table"], []).append(float(row[f"gain_{k}"]))
    return {name: np.array(values) for name, values in found.items()}


def mean_of(gains: Gains, names: Sequence[str]) -> str:
    """Return the mean over these tables with its standard error; empty if a table has no two runs."""
    if any(len(gains.get(name, ())) < 2 for name in names):
        return ""
    variance = sum(float(np.var(gains[name], ddof=1)) / len(gains[name]) for name in names)
    return f"{np.mean([gains[name].mean() for name in names]):.3f} ± {np.sqrt(variance) / len(names):.3f}"


# What the page has a column for: the size of a batch, and after how many experiments.
LOOKS = (*((1, k) for k in AFTER), (5, 20), (10, 30))
LOOK_HEADS = [f"after {k}" if batch == 1 else f"{k} in batches of {batch}" for batch, k in LOOKS]


def summary(rows: list[Row], part: str, tools: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return a line for each tool: its mean gains over the tables, and the seeds of the runs one at a time."""
    lines = []
    for tool in tools:
        cells = [mean_of(gains_of(rows, part, batch, tool, k), names) for batch, k in LOOKS]
        if any(cells):
            seeds = min(len(values) for values in gains_of(rows, part, 1, tool, AFTER[0]).values())
            lines.append([tool, seeds, *cells])
    return harness.table(["", "seeds", *LOOK_HEADS], lines)


def by_table(rows: list[Row], part: str, tools: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return a line for each table: the mean gains of each tool, with a slash between tools."""
    lines = []
    for name in names:
        cells = []
        for batch, k in LOOKS:
            own = [gains_of(rows, part, batch, tool, k).get(name) for tool in tools]
            cells.append(" / ".join("–" if one is None else f"{one.mean():.2f}" for one in own))
        lines.append([name, f"{len(laboratory_tables.load(name)):,}", *cells])
    return harness.table(["", "rows", *LOOK_HEADS], lines)


def against_baybe(rows: list[Row], part: str, names: Sequence[str]) -> list[str]:
    """Return the gains and the cost of gpmi and of BayBE, for each kind of run on the tables that BayBE has played."""
    lines = []
    for batch, budget in EXPERIMENTS.items():
        own, other = (gains_of(rows, part, batch, tool, budget) for tool in ("gpmi", "BayBE"))
        played = [name for name in names if len(other.get(name, ())) > 1 and len(own.get(name, ())) > 1]
        if played:
            looks = [k for k in AFTER if k <= budget]
            for tool in ("gpmi", "BayBE"):
                here = [
                    row
                    for row in rows
                    if (row["part"], row["batch"], row["tool"]) == (part, str(batch), tool) and row["table"] in played
                ]
                cpu = 1000.0 * np.mean([float(row["cpu"]) for row in here]) / budget
                cells = [mean_of(gains_of(rows, part, batch, tool, k), played) for k in looks]
                cells += [""] * (len(AFTER) - len(cells))
                count = f"{len(here)} on {len(played)} tables"
                lines.append([batch, tool, count, *cells, f"{cpu:.0f}"])
    head = ["at a time", "", "runs", *(f"after {k}" for k in AFTER), "CPU ms an experiment"]
    return harness.table(head, lines)


TEXT = (
    "The gain after k experiments is the share of the way from a random order to the best row of a table of past "
    "experiments: (best so far - expected best of k random rows) / (best row - that). The expectation is exact. Labels "
    "have no features here. Means over tables; ± is the standard error over seeds."
)
NOTES = (
    "- `gpmi` is this version: on a finite set the initial design has at most 5 rows, and while an option is untried "
    "every third query is the best row by mu + sd with such an option. `before` has a design of three rows more than "
    f"there are parameters, and no rule for options. {SEEDS} seeds or more.",
    "- `5 rows` and `4 rows` are designs of these sizes without the rule for options.",
    f"- BayBE has its defaults: labels one-hot, a random first batch. {BAYBE_SEEDS} seeds at most, on fewer tables.",
    "- The held-out tables were first run with the short design alone. It lost after 50 experiments (0.929 against "
    "0.954). That prompted another look at the rule for options, which had been left out. It was taken by development "
    f"runs. Then the three tables on which it acts ({', '.join(LOOKED_AT)}) were run again with other seeds: these are "
    "reported, and the first look at the three is below. On the other tables both versions ask the same rows. So "
    "these tables were not looked at only once.",
    "- The development tables have more seeds than planned: 24 had shown a loss after 30 experiments, which 64 do not "
    "confirm. Three held-out tables (credit_g, slice_localization, cifar100) were dropped before the first run, "
    "because they take long.",
    "",
)


def page(rows: list[Row], new: int) -> None:
    """Write the page of both parts."""
    held_out, development = (laboratory_tables.available(names) for names in (HELD_OUT, DEVELOPMENT))
    body = [*NOTES, "## Held-out tables", ""]
    body += [*summary(rows, "reported", REPORTED, held_out), "", f"By table, {' / '.join(REPORTED)}:", ""]
    body += [*by_table(rows, "reported", REPORTED, held_out), "", "The first look at three of them, seeds from 0:", ""]
    body += [*summary(rows, "first look", ["5 rows", "before"], LOOKED_AT), "", "## Next to BayBE", ""]
    for part, names, title in (("reported", held_out, "held-out"), ("development", development, "development")):
        body += [f"On {title} tables:", "", *against_baybe(rows, part, names), ""]
    body += ["## What was tried", "", "On the development tables, seeds from 1000.", ""]
    body += [*summary(rows, "development", list(VARIANTS), development), "", f"By table, {' / '.join(REPORTED)}:", ""]
    body += by_table(rows, "development", REPORTED, development)
    harness.page(__file__, "The first experiments", TEXT, body, runs=len(rows), new=new, packages=("baybe",))


def main() -> None:
    parser = harness.parser(__doc__, cores=True, report=True)
    parser.add_argument("--part", default="reported", choices=PARTS)
    parser.add_argument("--tools", nargs="+", default=list(REPORTED), choices=TOOLS, metavar="TOOL")
    parser.add_argument("--tables", nargs="+", choices=(*DEVELOPMENT, *HELD_OUT), metavar="NAME")
    parser.add_argument("--batches", nargs="+", type=int, default=list(EXPERIMENTS), choices=EXPERIMENTS)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    args = parser.parse_args()
    allowed = DEVELOPMENT if args.part == "development" else HELD_OUT
    names = laboratory_tables.available(name for name in args.tables or allowed if name in allowed)
    wanted = () if args.report else runs(args.part, names, args.batches, args.tools, args.seeds)
    new = harness.resume(RUNS, wanted, play, args.cores)
    page(RUNS.rows(), new)


if __name__ == "__main__":
    main()
