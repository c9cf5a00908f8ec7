"""How often is the best point missed? The two aims, LogEI on the same model and random search, each out of the box.

    python benchmarks/find.py [--cores 2]   writes docs/benchmarks/find.csv and find.md; half an hour; resumes
    python benchmarks/find.py --report      writes the page from the table
    python benchmarks/find.py --part development --arms find "every second by LogEI"     some runs only

Every run has its own initial design. A run misses if its best value is more than 1 % of the spread of f below the
maximum. The spread is the maximum minus the mean of f over the box. Tables have 1,000 rows, new ones for each seed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import harness
import numpy as np
from numpy.typing import NDArray
from problems import functions
from problems.functions import Array, Bounds

import gpmi
from gpmi import Find, LogEI
from paper.tasks import HIMMELBLAU, branin

COLUMNS = ("part", "problem", "seed", "arm", "gap", "miss", "cumulative", "repeats", "seconds")
TABLE = harness.Table(harness.DOCS / "find.csv", COLUMNS, COLUMNS[:4])
ROWS, TABLE_BUDGET, BUDGET, MISS = 1000, 40, 60, 0.01


# Problems


@dataclass(frozen=True)
class Problem:
    """A function on a space, with its maximum and its spread. `values` has all values of a table."""

    space: Any
    f: Callable[[Any], float]
    maximum: float
    spread: float
    budget: int = BUDGET
    values: Array | None = None


def schwefel(x: Array) -> float:
    return float(np.sum(x * np.sin(np.sqrt(np.abs(x)))))


def camel(x: Array) -> float:
    a, b = float(x[0]), float(x[1])
    return -((4.0 - 2.1 * a**2 + a**4 / 3.0) * a**2 + a * b + (-4.0 + 4.0 * b**2) * b**2)


def rastrigin(x: Array) -> float:
    return float(-np.sum(x**2 - 10.0 * np.cos(2.0 * np.pi * x) + 10.0))


def bird(x: Array) -> float:
    a, b = float(x[0]), float(x[1])
    first = np.sin(a) * np.exp((1.0 - np.cos(b)) ** 2) + np.cos(b) * np.exp((1.0 - np.sin(a)) ** 2)
    return float(-first - (a - b) ** 2)


BOXES: dict[str, tuple[Bounds, Callable[[Array], float]]] = {
    "himmelblau": ([(-5.0, 5.0)] * 2, HIMMELBLAU.f),
    "schwefel-2": ([(-500.0, 500.0)] * 2, schwefel),
    "michalewicz-2": ([(0.0, float(np.pi))] * 2, functions.michalewicz),
    "camel": ([(-3.0, 3.0), (-2.0, 2.0)], camel),
    "branin": (functions.BRANIN, branin),
    "hartmann-6": ([(0.0, 1.0)] * 6, functions.hartmann6),
    "bird": ([(-6.0, 7.0)] * 2, bird),
    "rastrigin-2": ([(-1.5, 2.5)] * 2, rastrigin),
    "styblinski-tang-4": ([(-5.0, 5.0)] * 4, functions.styblinski_tang),
    "levy-4": (functions.LEVY, functions.levy),
}


@cache
def fixed(name: str) -> Problem:
    """Return the function of that name."""
    bounds, f = BOXES[name]
    lo, hi = np.array(bounds).T
    sample = lo + (hi - lo) * np.random.default_rng(0).random((20_000, len(bounds)))
    maximum = functions.search(f, bounds)
    return Problem(bounds, f, maximum, maximum - float(np.mean([f(x) for x in sample])))


def draw(seed: int) -> Problem:
    """Return a Matern-5/2 draw on the unit square, lengthscale 0.18."""
    f, bounds = functions.gp_draw(2, 7, seed), [(0.0, 1.0)] * 2
    maximum = functions.search(f, bounds, starts=10, screen=2048)
    return Problem(bounds, f, maximum, maximum)  # the mean of the prior is 0


def table(kind: str, seed: int) -> Problem:
    """Return the sum of 40 random trees of depth 3 at 1,000 random rows of numbers and categories.

    A tree splits on a number at a random place, or on a category into two random halves. Its leaves are standard
    normal. So the values are rough, and no column is more important than another.
    """
    import pandas as pd

    rng = np.random.default_rng([seed, {"numbers": 1, "categories": 2}[kind]])
    numbers, options = {"numbers": (4, (3, 5)), "categories": (2, (2, 3, 4, 6))}[kind]
    columns: dict[str, Any] = {f"n{j}": rng.integers(0, 12, ROWS) / 11.0 for j in range(numbers)}
    codes = [rng.integers(0, k, ROWS) for k in options]
    columns |= {f"c{j}": [f"option {code}" for code in column] for j, column in enumerate(codes)}
    plain = np.column_stack([*(columns[f"n{j}"] for j in range(numbers)), *codes])

    def tree(inside: NDArray[np.intp], depth: int, values: Array) -> None:
        if depth == 0 or len(inside) < 2:
            values[inside] += rng.standard_normal()
            return
        j = int(rng.integers(plain.shape[1]))
        if j < numbers:
            left = plain[inside, j] < rng.random()
        else:
            left = (rng.random(options[j - numbers]) < 0.5)[plain[inside, j].astype(int)]
        tree(inside[left], depth - 1, values)
        tree(inside[~left], depth - 1, values)

    values = np.zeros(ROWS)
    for _ in range(40):
        tree(np.arange(ROWS), 3, values)
    frame = pd.DataFrame(columns)
    frame, values = frame[~frame.duplicated()], values[~frame.duplicated().to_numpy()]
    known = {tuple(row): value for row, value in zip(frame.itertuples(index=False), values, strict=True)}
    return Problem(
        frame, lambda x: known[tuple(x.values())], float(values.max()), float(np.ptp(values)), TABLE_BUDGET, values
    )


def make(name: str, seed: int) -> Problem:
    """Return a problem by its name. Tables and draws depend on the seed."""
    if name.startswith("table"):
        return table(name.split()[1], seed)
    return draw(seed) if name == "gp-2" else fixed(name)


# Arms


@dataclass(frozen=True)
class Arm:
    """The arguments of an Optimizer, and the policy that replaces its own for the query with this number, if any."""

    options: dict[str, Any] = field(default_factory=dict)
    replaced: Callable[[int, int], gpmi.Policy | None] = lambda number, budget: None  # number told, budget -> policy


EI_MEAN = LogEI("mean")
EI_ONCE = Find(first=EI_MEAN)  # LogEI that repeats no point, if it can
ARMS = {
    "find": Arm(),
    "earn": Arm({"aim": "earn"}),
    "LogEI": Arm({"policy": EI_MEAN}),
    "random": Arm(),
    "earn, repeats=False": Arm({"aim": "earn", "repeats": False}),
    "LogEI, repeats=False": Arm({"policy": EI_MEAN, "repeats": False}),
    "last third by LogEI": Arm({}, lambda t, budget: EI_ONCE if 3 * t >= 2 * budget else None),
    "every second by LogEI": Arm({}, lambda t, budget: EI_ONCE if t % 2 else None),
    "n_init 10": Arm({"n_init": 10}),
    "no budget given": Arm({"budget": None}),
}


# Rows of the table that can no longer be run: Find had a third policy, and an explicit Find a design without `cover`.
FORMER = ("no third policy", "third: GPUCB()", "design as drawn")


def play(part: str, name: str, seed: int, arm: str) -> tuple[Any, ...]:
    """Play one run and return its row. The gap is in spreads; on a table it is the share of better rows."""
    problem, begin = make(name, seed), time.process_time()
    if arm == "random":
        values, points = random_search(problem, seed)
    else:
        values, points = optimise(problem, seed, ARMS[arm])
    seconds = time.process_time() - begin
    best = max(values)
    if problem.values is not None:
        gap = float(np.mean(problem.values > best))
    else:
        gap = max(0.0, problem.maximum - best) / problem.spread
    cumulative = float(np.mean([problem.maximum - value for value in values])) / problem.spread
    repeats = len(points) - len(set(points))
    return part, name, seed, arm, f"{gap:.3g}", int(gap > MISS), f"{cumulative:.3g}", repeats, f"{seconds:.2f}"


def optimise(problem: Problem, seed: int, arm: Arm) -> tuple[list[float], list[bytes]]:
    """Return the values and the points of a run of gpmi."""
    opt = gpmi.Optimizer(problem.space, **{"budget": problem.budget, "seed": seed, **arm.options})
    policy, values, points = opt.policy, [], []
    for t in range(problem.budget):
        opt.policy = arm.replaced(t, problem.budget) or policy
        x = opt.ask()
        values.append(problem.f(x))
        points.append(opt.space.encode(x).tobytes())
        opt.tell(x, values[-1])
    return values, points


def random_search(problem: Problem, seed: int) -> tuple[list[float], list[bytes]]:
    """Return the values and the points of random search."""
    rng = np.random.default_rng([seed, 99])
    if problem.values is not None:
        numbers = rng.permutation(len(problem.values))[: problem.budget]
        return problem.values[numbers].tolist(), [bytes([i]) for i in range(problem.budget)]
    lo, hi = np.array(problem.space).T
    x = lo + (hi - lo) * rng.random((problem.budget, len(lo)))
    return [problem.f(row) for row in x], [row.tobytes() for row in x]


# All runs

MAIN = ("find", "earn", "LogEI", "random")
REPORTED = ("himmelblau", "schwefel-2", "michalewicz-2", "camel", "branin", "hartmann-6")
TABLES = ("table numbers", "table categories")
DEVELOPED = ("himmelblau", "bird", "rastrigin-2", "gp-2", "styblinski-tang-4", "levy-4")
Run = tuple[str, str, int, str]


def runs() -> Iterable[Run]:
    """Yield the reported runs, with seeds from 0, and those of the development, with seeds from 1000."""
    for arm in MAIN:
        for name in (*REPORTED, *TABLES):
            for seed in range(100 if name == "himmelblau" and arm in ("find", "random") else 40):
                yield "reported", name, seed, arm
    for arm in ARMS:
        for name in (*DEVELOPED, *TABLES):
            for seed in range(1000, 1020 if arm in MAIN else 1010):
                yield "development", name, seed, arm


# The page


def page(rows: list[harness.Row], new: int) -> None:
    """Write the page of both parts."""
    reported, developed = (of_part(rows, part) for part in ("reported", "development"))
    text = (
        "A run gets the space, the budget and a seed and makes its own initial design; there is no noise. A run "
        f"*misses* if its best value is more than {MISS:.0%} of the spread of f below the maximum; the spread is the "
        "maximum minus the mean of f over the box. `find` and `earn` are the two aims, "
        '`LogEI` is `policy=LogEI("mean")` on the same model.'
    )
    lines = [
        f"## Functions, {BUDGET} evaluations, seeds from 0",
        "",
        "Misses of runs; the median gap in spreads; the mean of the regrets in spreads, R_T / T.",
        "",
        *lines_of(reported, REPORTED, MAIN),
        "",
        "`find` and `LogEI` seed by seed: how many runs of the same seed only one of them misses, and by how much more "
        "of its runs `find` misses, with a 95 % interval (Agresti and Min's for matched pairs: half a run "
        "is added to each of the four kinds of pairs).",
        "",
        *paired_lines(reported, "find", "LogEI"),
        "",
        f"## Tables, {TABLE_BUDGET} evaluations of about {ROWS} rows, seeds from 0",
        "",
        "The sum of 40 random trees of depth 3 at random rows: of four numbers and two categories, or of two numbers "
        "and four categories; another table for each seed. The mean share of the rows that are better than the best "
        "one evaluated, the same over that of random search, and how many evaluations were repeats, on average.",
        "",
        *table_lines(reported, MAIN),
        "",
        "How these numbers came about: the trees had depth 6 at first; that was changed to 3 when earn, LogEI and "
        "random search had been run, find not yet. In a first version of find a learned noise allowed repeats; two in "
        "3,200 queries of these tables were, so that part was taken out and find was run again on the tables. The runs "
        "on functions are from before that, those of LogEI from before find was written; 18 of them were run again at "
        "the end and were the same. For the rule for boxes of a few numbers, and again when its far points became "
        "rare, find was run again on the functions of two dimensions. Nothing else was decided after a look at the "
        "seeds from 0.",
        "",
        "## What was tried, on other seeds and functions",
        "",
        "Seeds from 1000; the Himmelblau function is the only one in both lists. The lines below the first four change "
        "one thing each: no repeats under the other policies; in `find` no third policy, or another; LogEI instead of "
        "Reinvest in the last third, or for every second query (known points are avoided as before); the design of a "
        "table in random order; the size of the design; no budget given. Misses of runs, and the median gap. "
        "These rows are of before the rule for boxes of a few numbers (docs/notes/escape.md), those above are of after "
        "it.",
        "",
        *lines_of(developed, DEVELOPED, (*ARMS, *FORMER), short=True),
        "",
        "The mean share of better rows left on tables. The first line is that of now; the others are from before "
        "columns of few numbers counted by rank and the worse half of y was compressed, as is LogEI's line above:",
        "",
        *table_lines(developed, (*ARMS, *FORMER)),
        "",
    ]
    harness.page(__file__, "Whether the best point is found", text, lines, runs=len(rows), new=new)


Cells = dict[tuple[str, str], list[harness.Row]]


def of_part(rows: list[harness.Row], part: str) -> Cells:
    cells: Cells = {}
    for row in rows:
        if row["part"] == part:
            cells.setdefault((row["problem"], row["arm"]), []).append(row)
    return cells


def column(rows: list[harness.Row], name: str) -> Array:
    return np.array([float(row[name]) for row in rows])


def lines_of(cells: Cells, names: Sequence[str], arms: Sequence[str], *, short: bool = False) -> list[str]:
    """Return a row for each arm, with a column for each function."""
    lines = [f"| | {' | '.join(names)} | all misses |", "|---" * (len(names) + 2) + "|"]
    for arm in arms:
        parts, misses, total = [], 0, 0
        for name in names:
            rows = cells.get((name, arm), [])
            if not rows:
                parts.append("")
                continue
            missed = int(column(rows, "miss").sum())
            misses, total = misses + missed, total + len(rows)
            numbers = f"{missed} of {len(rows)}; {np.median(column(rows, 'gap')):.1e}"
            parts.append(numbers if short else f"{numbers}; {np.mean(column(rows, 'cumulative')):.2f}")
        if total:
            lines.append(f"| {arm} | {' | '.join(parts)} | {misses} of {total} |")
    return lines


def paired_lines(cells: Cells, one: str, other: str) -> list[str]:
    """Return a row for each function: the difference of two arms' shares of misses, over the seeds that both have."""
    lines = [f"| | seeds | only {one} misses | only {other} misses | difference | 95 % interval |", "|---" * 6 + "|"]
    for name in REPORTED:
        misses = [{row["seed"]: int(row["miss"]) for row in cells.get((name, arm), [])} for arm in (one, other)]
        pairs = [(misses[0][seed], misses[1][seed]) for seed in misses[0] if seed in misses[1]]
        more, fewer = pairs.count((1, 0)), pairs.count((0, 1))
        if pairs:
            lo, hi = paired_interval(more, fewer, len(pairs))
            difference = (more - fewer) / len(pairs)
            lines.append(f"| {name} | {len(pairs)} | {more} | {fewer} | {difference:+.3f} | {lo:+.3f} to {hi:+.3f} |")
    return lines


def paired_interval(more: int, fewer: int, pairs: int) -> tuple[float, float]:
    """Return a 95 % interval for P(only the first misses) - P(only the second does), from the counts of such pairs.

    It is Wald's for matched pairs with 1/2 added to each cell of the 2 x 2 table (Agresti and Min 2005).
    """
    b, c, n = more + 0.5, fewer + 0.5, pairs + 2.0
    middle, half = (b - c) / n, 1.96 * np.sqrt(b + c - (b - c) ** 2 / n) / n
    return float(middle - half), float(middle + half)


def table_lines(cells: Cells, arms: Sequence[str]) -> list[str]:
    lines = [f"| | {' | '.join(TABLES)} |", "|---" * (len(TABLES) + 1) + "|"]
    for arm in arms:
        parts = []
        for name in TABLES:
            rows, random = cells.get((name, arm), []), cells.get((name, "random"), [])
            if rows and random:
                left, by_random = np.mean(column(rows, "gap")), np.mean(column(random, "gap"))
                repeats = np.mean(column(rows, "repeats"))
                parts.append(f"{left:.2%} of the rows, {left / by_random:.2f} of random; {repeats:.1f} repeats")
        if len(parts) == len(TABLES):
            lines.append(f"| {arm} | {' | '.join(parts)} |")
    return lines


def main() -> None:
    parser = harness.parser(__doc__, cores=True, report=True)
    parser.add_argument("--part", choices=("reported", "development"))
    parser.add_argument("--arms", nargs="+", choices=list(ARMS))
    parser.add_argument("--problems", nargs="+")
    args = parser.parse_args()
    wanted = (
        run
        for run in runs()
        if (args.part is None or run[0] == args.part)
        and (args.arms is None or run[3] in args.arms)
        and (args.problems is None or run[1] in args.problems)
    )
    new = 0 if args.report else harness.resume(TABLE, wanted, play, args.cores)
    page(TABLE.rows(), new)


if __name__ == "__main__":
    main()
