"""What do cheap, coarse measurements save, and what do they cost where they say nothing?

    python benchmarks/fidelities.py                          all problems, costs, arms and seeds; hours; resumes
    python benchmarks/fidelities.py --arms gpmi              some arms, --problems branin-fair, --seeds 0 1 2
    python benchmarks/fidelities.py --check                  compare the problems with mf2's and BoTorch's
    python benchmarks/fidelities.py --extremes               search for the maxima and minima again
    python benchmarks/fidelities.py --report                 write the page, and run nothing

A run ends when a point has been evaluated at the fine level, and a point been recommended, whose fine values are within
1 % of the range (largest minus smallest value) of the maximum, or when the cost of 60 fine evaluations is used, for
Hartmann's function of 100. Costs are in units of a fine evaluation, and that of a run which never gets there is its
whole budget. Rules were tuned with seeds from 100 on, and with no other ones. Runs that see the fine level alone are
the same for all variants and costs, and have a dash there. BoTorch plays 8 suggestions, for their CPU time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

import harness
import numpy as np
from peers.fidelities import INITIAL, BoTorch
from problems.fidelities import COSTS, FUNCTIONS, PROBLEMS, Problem, find_extremes
from problems.functions import Array

import gpmi

NEEDS = "peers"
KEY = ("problem", "variant", "ratio", "seed", "arm")
FOUND = ("cost", "solved", "recommended cost", "recommended solved")
COLUMNS = (*KEY, *FOUND, "evaluations", "cpu s")
TABLE = harness.Table(harness.DOCS / "fidelities.csv", COLUMNS, KEY)
REPORTED, DEVELOPMENT = range(12), range(100, 106)
BUDGET, BUDGETS = 60, {"hartmann6": 100}  # fine evaluations
REGRET = 0.01  # of the range
OURS, FINE, PEER = "gpmi", "gpmi, fine only", "BoTorch qMFKG"
ARMS = (OURS, FINE, PEER)
ANY = "-"  # the variant and the costs of runs that see the fine level alone
PEER_PROBLEMS, PEER_RATIO, PEER_SEEDS, SUGGESTIONS = ("currin-fair", "hartmann6-fair"), "1:10", 3, 8
SAVED = {"1:10": 0.6, "1:60": 0.45}  # what the page promises: costs on Currin and Borehole, in those of fine only
WASTED, CPU, CPU_SHARE = 1.2, 0.1, 1 / 20
Names = tuple[str, str, str, int, str]  # a run: problem, variant, ratio, seed, arm


class Run:
    """The evaluations of one run, and when it got close to the maximum."""

    def __init__(self, problem: Problem, costs: Sequence[float], budget: float) -> None:
        self.problem, self.costs, self.budget = problem, [cost / costs[-1] for cost in costs], budget
        self.used, self.cpu = 0.0, 0.0
        self.counts = [0] * len(costs)
        self.reached: float | None = None  # the cost when a fine evaluation was close
        self.recommended: float | None = None  # the cost when a recommended point was

    @property
    def over(self) -> bool:
        """Return whether the budget is used, or all is found."""
        return self.used >= self.budget - 1e-9 or (self.reached is not None and self.recommended is not None)

    def evaluate(self, x: Array, level: int) -> float:
        """Return a value and count its cost. A value that the budget does not suffice for is not a find."""
        self.used += self.costs[level]
        self.counts[level] += 1
        fine = level == len(self.costs) - 1
        if fine and self.reached is None and self.close(x):
            self.reached = self.used
        return float(self.problem.evaluate(x, level if len(self.costs) > 1 else -1))

    def recommend(self, x: Array) -> None:
        """Note a point that is recommended now."""
        if self.recommended is None and self.close(x):
            self.recommended = self.used

    def close(self, x: Array) -> bool:
        return self.used <= self.budget + 1e-9 and float(self.problem.regret(x)) <= REGRET

    def row(self, names: Names) -> dict[str, Any]:
        """Return the row of the table."""
        found = [cell for cost in (self.reached, self.recommended) for cell in self._cells(cost)]
        counts = " ".join(map(str, self.counts))
        cpu = f"{self.cpu / max(1, sum(self.counts)):.3g}"
        return dict(zip(COLUMNS, (*names, *found, counts, cpu), strict=True))

    def _cells(self, cost: float | None) -> tuple[str, int]:
        return f"{self.budget if cost is None else cost:.5g}", int(cost is not None)


# Arms


def fine_run(run: Run, seed: int) -> None:
    """Let gpmi see the fine level alone."""
    opt = gpmi.Optimizer([tuple(pair) for pair in run.problem.bounds.tolist()], seed=seed)
    while not run.over:
        begin = time.process_time()
        x = opt.ask()
        run.cpu += time.process_time() - begin
        y = run.evaluate(x, 0)
        begin = time.process_time()
        opt.tell(x, y)
        run.cpu += time.process_time() - begin
        run.recommend(opt.recommend())


def gpmi_run(run: Run, seed: int, costs: tuple[float, ...]) -> None:
    """Let gpmi choose points and levels."""
    names = [f"x{i}" for i in range(run.problem.d)]
    levels = [f"level {i}" for i in range(len(costs))]
    space: dict[str, Any] = dict(zip(names, map(tuple, run.problem.bounds.tolist()), strict=True))
    space["level"] = gpmi.Fidelity(dict(zip(levels, costs, strict=True)))
    opt = gpmi.Optimizer(space, seed=seed)

    def point(p: dict[str, Any]) -> Array:
        return np.array([p[name] for name in names])

    while not run.over:
        begin = time.process_time()
        p = opt.ask()
        run.cpu += time.process_time() - begin
        y = run.evaluate(point(p), levels.index(p["level"]))
        begin = time.process_time()
        opt.tell(p, y)
        run.cpu += time.process_time() - begin
        run.recommend(point(opt.recommend()))


def peer_run(run: Run, seed: int, costs: tuple[float, ...]) -> None:
    """Let BoTorch make a few suggestions. Its time is counted for those alone, and it recommends no point."""
    tool, problem = BoTorch(run.problem, costs, seed), run.problem
    for number in range(INITIAL + SUGGESTIONS):
        begin = time.process_time()
        u, level = tool.ask()
        spent = time.process_time() - begin
        run.cpu += spent if number >= INITIAL else 0.0
        tool.tell(u, level, run.evaluate(problem.scaled(u), level))
    run.cpu *= (INITIAL + SUGGESTIONS) / SUGGESTIONS  # the row has the mean over all evaluations


def play(function: str, variant: str, ratio: str, seed: int, arm: str) -> dict[str, Any]:
    """Play one run and return its row."""
    budget = BUDGETS.get(function, BUDGET)
    if arm == FINE:
        run = Run(fine_problem(function), (1.0,), budget)
        fine_run(run, seed)
    else:
        costs = COSTS[ratio]
        run = Run(PROBLEMS[f"{function}-{variant}"], costs, budget)
        if arm == OURS:
            gpmi_run(run, seed, costs)
        else:
            peer_run(run, seed, costs)
    return run.row((function, variant, ratio, seed, arm))


def fine_problem(function: str) -> Problem:
    """Return any problem with a fine function."""
    return next(problem for problem in PROBLEMS.values() if problem.function == function)


def runs(names: Sequence[str], seeds: Sequence[int], arms: Sequence[str]) -> Iterator[Names]:
    """Yield the runs, one seed of all problems before the next."""
    for seed in seeds:
        problems = [PROBLEMS[name] for name in names]
        if FINE in arms:
            yield from ((function, ANY, ANY, seed, FINE) for function in dict.fromkeys(p.function for p in problems))
        for problem in problems:
            if OURS in arms:
                yield from ((problem.function, problem.variant, ratio, seed, OURS) for ratio in problem.ratios)
            if PEER in arms and problem.name in PEER_PROBLEMS and seed < PEER_SEEDS:
                yield problem.function, problem.variant, PEER_RATIO, seed, PEER


# The check against mf2 and BoTorch


def check() -> None:
    """Compare all levels of the literature at random points."""
    import torch
    from botorch.test_functions.multi_fidelity import AugmentedBranin, AugmentedHartmann

    mf2: Any = import_module("mf2")

    def augmented(twin: Any, fidelity: float, x: Array) -> Array:
        inputs = np.column_stack([x, np.full(len(x), fidelity)])
        values: Array = -twin.evaluate_true(torch.tensor(inputs)).numpy()
        return values

    def park(values: Array) -> Array:
        return -1.94 * values - 2.58

    bowl, humps = AugmentedBranin(), AugmentedHartmann()
    twins: dict[str, list[Any]] = {  # by problem: its levels
        "branin-three": [lambda x, s=s: augmented(bowl, s, x) for s in (0.0, 0.5, 1.0)],
        "branin-fair": [lambda x, s=s: augmented(bowl, s, x) for s in (0.5, 1.0)],
        "branin-poor": [lambda x, s=s: augmented(bowl, s, x) for s in (0.0, 1.0)],
        "dong-poor": [lambda x: -mf2.branin.low(x), lambda x: -mf2.branin.high(x)],
        "currin-fair": [mf2.currin.low, mf2.currin.high],
        "borehole-fair": [mf2.borehole.low, mf2.borehole.high],
        "hartmann6-fair": [lambda x: park(mf2.hartmann6.low(x)), lambda x: park(mf2.hartmann6.high(x))],
        "hartmann6-close": [lambda x, s=s: augmented(humps, s, x) for s in (0.0, 1.0)],
    }
    twins["hartmann6-three"] = [twins["hartmann6-fair"][0], *twins["hartmann6-close"]]
    boxes = {"dong": mf2.branin, "currin": mf2.currin, "borehole": mf2.borehole, "hartmann6": mf2.hartmann6}
    for name, problem in PROBLEMS.items():
        x = problem.scaled(np.random.default_rng(0).random((2000, problem.d)))
        values = [problem.evaluate(x, level) for level in range(len(problem.levels))]
        alike = [f"{np.corrcoef(coarse, values[-1])[0, 1]:.3f}" for coarse in values[:-1]]
        words = f"correlation with the fine level {', '.join(alike)}"
        if name in twins:
            pairs = zip(values, twins[name], strict=True)
            errors = [np.max(np.abs(ours - twin(x)) / np.maximum(1.0, np.abs(ours))) for ours, twin in pairs]
            if problem.function in boxes:
                box = boxes[problem.function]
                errors.append(np.max(np.abs(problem.bounds - np.column_stack([box.l_bound, box.u_bound]))))
            words += f"; largest difference {max(errors):.1e} {harness.yes(max(errors) < 1e-6)}"
        print(f"{name:20} {words}")


# The page


class Rows:
    """The rows of some seeds, by problem, variant, ratio and arm."""

    def __init__(self, rows: Iterable[harness.Row], seeds: Iterable[int]) -> None:
        self.cells: dict[tuple[str, str, str, str], list[harness.Row]] = {}
        for row in rows:
            if int(row["seed"]) in seeds:
                key = row["problem"], row["variant"], row["ratio"], row["arm"]
                self.cells.setdefault(key, []).append(row)

    def of(self, problem: Problem, ratio: str, arm: str) -> list[harness.Row]:
        """Return the rows of an arm. Those that see the fine level alone are the same for all."""
        variant, ratio = (ANY, ANY) if arm == FINE else (problem.variant, ratio)
        return self.cells.get((problem.function, variant, ratio, arm), [])

    def mean(self, problem: Problem, ratio: str, arm: str, column: str = "cost") -> float | None:
        """Return the mean of a column, or None if there are no runs."""
        found = [float(row[column]) for row in self.of(problem, ratio, arm)]
        return float(np.mean(found)) if found else None

    def share(self, problem: Problem, ratio: str, column: str = "cost") -> float | None:
        """Return the mean cost of gpmi in units of that with the fine level alone."""
        ours, fine = (self.mean(problem, ratio, arm, column) for arm in (OURS, FINE))
        return None if ours is None or fine is None else ours / fine

    def solved(self, problem: Problem, ratio: str, arm: str) -> tuple[int, int]:
        """Return how many runs got there, and how many there are."""
        found = self.of(problem, ratio, arm)
        return sum(int(row["solved"]) for row in found), len(found)


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def cost_lines(rows: Rows) -> list[str]:
    """Return the table of costs."""
    lines = []
    for problem in PROBLEMS.values():
        for ratio in problem.ratios:
            ours, fine = rows.of(problem, ratio, OURS), rows.of(problem, ratio, FINE)
            if not ours and not fine:
                continue
            levels = np.array([[*map(int, row["evaluations"].split())] for row in ours])
            cells = [problem.name, ratio]
            for arm in (FINE, OURS):
                solved, count = rows.solved(problem, ratio, arm)
                cells += [number(rows.mean(problem, ratio, arm)), f"{solved} of {count}" if count else ""]
            cells += [number(rows.share(problem, ratio)), number(rows.share(problem, ratio, "recommended cost"))]
            cells.append(", ".join(f"{mean:.1f}" for mean in levels.mean(axis=0)) if len(levels) else "")
            lines.append([*cells, number(rows.mean(problem, ratio, OURS, "cpu s"))])
    head = ["", "costs", "fine only", "solved", "gpmi", "solved", "ratio", "ratio, recommended", "evaluations", "CPU s"]
    return harness.table(head, lines)


def bars(rows: Rows) -> list[str]:
    """Return the promises, with what was measured."""
    lines = []

    def add(name: str, ratio: str, most: float, words: str) -> None:
        share = rows.share(PROBLEMS[name], ratio)
        if share is not None:
            promise = f"{words} {most:g} times the cost of fine only"
            lines.append([name, ratio, promise, f"{share:.2f}", harness.yes(share <= most)])

    for ratio, most in SAVED.items():
        for name in ("currin-fair", "borehole-fair"):
            add(name, ratio, most, "at most")
        add("branin-fair", ratio, 1.0, "below")
    for name, problem in PROBLEMS.items():
        if problem.variant in ("unrelated", "reversed"):
            for ratio in problem.ratios:
                add(name, ratio, WASTED, "at most")
    for name, problem in PROBLEMS.items():
        for ratio in problem.ratios:
            (ours, count), (fine, other) = (rows.solved(problem, ratio, arm) for arm in (OURS, FINE))
            if problem.function == "hartmann6" and count and other:
                words = f"solved at least as often as fine only, {fine} of {other}"
                lines.append([name, ratio, words, f"{ours} of {count}", harness.yes(ours / count >= fine / other)])
    pairs = [(problem, ratio) for problem in PROBLEMS.values() for ratio in problem.ratios]
    spent = [cpu for problem, ratio in pairs if (cpu := rows.mean(problem, ratio, OURS, "cpu s")) is not None]
    if spent:
        words = f"at most {CPU} CPU s a suggestion, the largest mean of a problem"
        lines.append(["all", "all", words, f"{max(spent):.3f}", harness.yes(max(spent) <= CPU)])
    for name in PEER_PROBLEMS:
        own, theirs = (rows.mean(PROBLEMS[name], PEER_RATIO, arm, "cpu s") for arm in (OURS, PEER))
        if own is not None and theirs is not None:
            words = f"at most 1/{1 / CPU_SHARE:.0f} of qMFKG's {theirs:.1f} CPU s a suggestion"
            lines.append([name, PEER_RATIO, words, f"1/{theirs / own:.0f}", harness.yes(own <= CPU_SHARE * theirs)])
    return [*harness.table(["", "costs", "promised", "measured", "holds"], lines), ""] if lines else []


def report(new: int) -> None:
    """Write the page."""
    table, body = list(TABLE.latest().values()), list[str]()
    for title, seeds in (("Seeds that chose nothing", REPORTED), ("Seeds for development", DEVELOPMENT)):
        rows = Rows(table, seeds)
        if rows.cells:
            body += [f"## {title}", "", *(bars(rows) if seeds == REPORTED else []), *cost_lines(rows), ""]
    peers = [row for row in table if row["arm"] == PEER]
    if peers:
        cells = [[f"{row['problem']}-{row['variant']}", row["seed"], row["evaluations"], row["cpu s"]] for row in peers]
        body += [f"## {PEER}", "", f"{INITIAL} random points and {SUGGESTIONS} suggestions.", ""]
        body += harness.table(["", "seed", "evaluations", "CPU s a suggestion"], cells)
    text = (
        f"Mean cost until a fine evaluation is within {100 * REGRET:g} % of the range of the maximum, in units of a "
        f"fine evaluation. A run that never gets there counts with its budget, {BUDGET}, for Hartmann's function "
        f"{BUDGETS['hartmann6']}. The ratio is that of the mean costs. Evaluations are means by level, coarse to fine, "
        "until a fine evaluation and a recommended point are there. Unrelated and reversed levels say nothing, or the "
        "opposite; the other coarse levels are those of the literature."
    )
    packages = ("botorch", "gpytorch", "mf2")
    harness.page(__file__, "Coarse and fine measurements", text, body, runs=len(table), new=new, packages=packages)


def order(row: harness.Row) -> Any:
    places = [*FUNCTIONS].index(row["problem"]), row["variant"], row["ratio"]
    return *places, ARMS.index(row["arm"]), int(row["seed"])


def main() -> None:
    parser = harness.parser(__doc__, cores=True, report=True)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=[*ARMS])
    parser.add_argument("--problems", nargs="+", choices=[*PROBLEMS], default=[*PROBLEMS])
    parser.add_argument("--seeds", nargs="+", type=int, default=[*DEVELOPMENT, *REPORTED])
    parser.add_argument("--check", action="store_true", help="compare the problems with mf2's and BoTorch's")
    parser.add_argument("--extremes", action="store_true", help="search for the maxima and minima again")
    arguments = parser.parse_args()
    if arguments.check:
        check()
        return
    if arguments.extremes:
        find_extremes()
        return
    new = 0
    if not arguments.report:
        jobs = runs(arguments.problems, arguments.seeds, arguments.arms)
        new = harness.resume(TABLE, jobs, play, arguments.cores)
        TABLE.tidy(order, latest=True)
    report(new)


if __name__ == "__main__":
    main()
