"""Does gpmi find better fronts than other tools, and what does it cost to name no reference point?

    python benchmarks/objectives.py                       all arms, noise and seeds; days, mostly BoTorch's; resumes
    python benchmarks/objectives.py --arms gpmi --noise 0 some arms, some noise, --problems NAME ..., --seeds 3
    python benchmarks/objectives.py --check               compare the problems with BoTorch's, at random points
    python benchmarks/objectives.py --rescore             measure all runs again, after fronts.json has changed
    python benchmarks/objectives.py --report              write the page; with --held-out also about those problems

A run has 10 initial points, the same for all arms, and 50 suggestions. Its gap is how much of the largest hypervolume
is missing, in %, at the problem's reference point: true values of all evaluated points that are truly feasible. The
judged gap is the same at the nadir of the true front plus 10 % of its range. Noise is a share of the standard deviation
that an output has over the space. The points of each run are kept in build/objectives.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import harness
import numpy as np
from peers.objectives import BoTorch, OptunaGp, OptunaTpe, Random, Tool
from problems.functions import Array
from problems.hypervolume import hypervolume
from problems.objectives import (
    DEVELOPMENT,
    FURTHER,
    HELD_OUT,
    PROBLEMS,
    REPORTED,
    Problem,
    best,
    judged_best,
    judged_reference,
)
from scipy.stats import qmc

import gpmi

NEEDS = "peers"
KEY = ("problem", "noise", "seed", "arm")
COLUMNS = (*KEY, "gap %", "judged gap %", "cpu s", "late cpu s", "feasible", "repairs")
TABLE = harness.Table(harness.DOCS / "objectives.csv", COLUMNS, KEY)
POINTS = harness.ROOT / "build" / "objectives"
INITIAL, SUGGESTIONS, BATCH, LATE = 10, 50, 4, 10
NOISES, SEEDS, SLOW_SEEDS = (0.0, 0.05), 10, 3
OURS, UNGUIDED, JUDGED, BATCHES = "gpmi", "gpmi, no reference", "gpmi, judged reference", "gpmi, batches of 4"
PEERS: dict[str, Callable[[Problem, int], Tool]] = {
    "BoTorch qLogNEHVI": BoTorch,
    "Optuna GP": OptunaGp,
    "Optuna TPE": OptunaTpe,
    "random": Random,
}
HEAVY = 3.0  # tails are heavy if the standard deviation is so many times what the quartiles say


@cache
def noise_scale(name: str) -> Array:
    """Return the standard deviations of all outputs over the space, from 2^14 Sobol' points.

    Stresses near a bound can be so large that they decide the deviation alone, and noise of that size would hide the
    whole front. Where it is more than 3 times what it would be by the quartiles of a Gaussian law, that is taken.
    """
    problem = PROBLEMS[name]
    outputs = np.hstack(problem.evaluate(problem.scaled(qmc.Sobol(problem.d, seed=0).random_base2(14))))
    deviation = outputs.std(axis=0)
    low, high = np.quantile(outputs, [0.25, 0.75], axis=0)
    robust = (high - low) / 1.349
    return np.where((deviation > HEAVY * robust) & (robust > 0), robust, deviation)


class Run:
    """The evaluations of one run, in points of the unit cube."""

    def __init__(self, name: str, noise: float, seed: int) -> None:
        self.problem, self.noise, self.seed = PROBLEMS[name], noise, seed
        self.initial = qmc.Sobol(self.problem.d, seed=seed).random(16)[:INITIAL]
        self.points: list[Array] = []
        self.spent = [0.0] * SUGGESTIONS  # CPU seconds of each suggestion

    @property
    def left(self) -> int:
        """Return how many suggestions are left."""
        return INITIAL + SUGGESTIONS - len(self.points)

    def evaluate(self, u: Array) -> tuple[Array, Array]:  # (n, d)
        """Return the objectives and constraints of points with their noise, the same for the i-th point of all arms."""
        objectives, constraints = self.problem.evaluate(self.problem.scaled(u))
        if self.noise:
            scale = self.noise * noise_scale(self.problem.name)
            draws = [np.random.default_rng([7, self.seed, len(self.points) + i]) for i in range(len(u))]
            noise = scale * np.array([rng.standard_normal(len(scale)) for rng in draws])
            objectives, constraints = objectives + noise[:, : self.problem.m], constraints + noise[:, self.problem.m :]
        self.points += list(u)
        return objectives, constraints

    @contextmanager
    def timed(self, suggestions: int = 1) -> Iterator[None]:
        """Add the CPU time of what is inside to the next suggestions. That of the last `tell` is left out."""
        begun = time.process_time()
        yield
        spent, at = time.process_time() - begun, max(0, len(self.points) - INITIAL)
        for i in range(at, min(at + suggestions, SUGGESTIONS)):
            self.spent[i] += spent / suggestions

    def row(self, arm: str, repairs: int) -> dict[str, Any]:
        """Store the points and return the row of the table."""
        POINTS.mkdir(parents=True, exist_ok=True)
        points = np.array(self.points[: INITIAL + SUGGESTIONS])
        np.save(POINTS / f"{stem(self.problem.name, f'{self.noise:g}', self.seed, arm)}.npy", points)
        cpu = {"cpu s": f"{np.mean(self.spent):.3g}", "late cpu s": f"{np.mean(self.spent[-LATE:]):.3g}"}
        names = dict(zip(KEY, (self.problem.name, f"{self.noise:g}", self.seed, arm), strict=True))
        return names | measured(self.problem, points) | cpu | {"repairs": repairs}


def stem(name: str, noise: str, seed: int | str, arm: str) -> str:
    """Return the name of the file with the points of a run."""
    return f"{arm} {name} {noise} {seed}".replace(",", "").replace(" ", "_")


def measured(problem: Problem, points: Array) -> dict[str, Any]:
    """Return the gaps of points and how many of them are feasible."""
    objectives, constraints = problem.evaluate(problem.scaled(points))
    feasible = (constraints <= 0).all(axis=1)
    given = hypervolume(objectives[feasible], problem.reference) / best(problem.name)
    judged = hypervolume(objectives[feasible], judged_reference(problem.name)) / judged_best(problem.name)
    gaps = {"gap %": f"{100 * (1 - given):.5g}", "judged gap %": f"{100 * (1 - judged):.5g}"}
    return gaps | {"feasible": int(feasible.sum())}


# Arms


def peer_run(run: Run, tool: Tool) -> int:
    """Play one run of a peer, point by point, and return how many suggestions were repaired."""
    outputs = run.evaluate(run.initial)
    with run.timed():
        tool.tell(run.initial, *outputs)
    while run.left:
        with run.timed():
            u = tool.ask()[None]
        outputs = run.evaluate(u)
        with run.timed():
            tool.tell(u, *outputs)
    return tool.repairs


def gpmi_run(run: Run, *, reference: str | None = "given", size: int = 1) -> int:
    """Play one run of gpmi. The reference is "given", "judged" or None; `size` points are asked together."""
    problem = run.problem
    chosen = {"given": problem.reference, "judged": judged_reference(problem.name), None: None}[reference]
    goals: dict[str, Any] = {
        f"f{i}": "min" if chosen is None else gpmi.Min(at_most=float(chosen[i])) for i in range(problem.m)
    }
    goals |= {f"c{i}": gpmi.AtMost(0.0) for i in range(problem.k)}
    opt = gpmi.Optimizer([(0.0, 1.0)] * problem.d, goals=goals, seed=run.seed, budget=INITIAL + SUGGESTIONS)

    def tell(u: Array, objectives: Array, constraints: Array) -> None:
        for x, *values in zip(u, *objectives.T.tolist(), *constraints.T.tolist(), strict=True):
            opt.tell(x, dict(zip(goals, values, strict=True)))

    outputs = run.evaluate(run.initial)
    with run.timed():
        tell(run.initial, *outputs)
    while run.left:
        n = min(size, run.left)
        with run.timed(n):
            u = np.array(opt.ask(n) if size > 1 else [opt.ask()])
        outputs = run.evaluate(u)
        with run.timed():
            tell(u, *outputs)
    return 0


GPMI: dict[str, Callable[[Run], int]] = {
    OURS: gpmi_run,
    UNGUIDED: partial(gpmi_run, reference=None),
    JUDGED: partial(gpmi_run, reference="judged"),
    BATCHES: partial(gpmi_run, size=BATCH),
}
ARMS = (*GPMI, *PEERS)
SLOW = "BoTorch qLogNEHVI"


def play(name: str, noise: str, seed: int, arm: str) -> dict[str, Any]:
    """Play one run and return its row."""
    run = Run(name, float(noise), seed)
    repairs = GPMI[arm](run) if arm in GPMI else peer_run(run, PEERS[arm](run.problem, seed))
    return run.row(arm, repairs)


def runs(
    names: Sequence[str], noises: Sequence[float], seeds: int | None, arms: Sequence[str]
) -> Iterator[tuple[str, str, int, str]]:
    """Yield the runs: without noise first, and one seed of all problems before the next."""
    for noise in noises:
        for seed in range(seeds or SEEDS):
            for name in names:
                for arm in arms:
                    if seed < (seeds or (SLOW_SEEDS if arm == SLOW else SEEDS)):
                        yield name, f"{noise:g}", seed, arm


def rescore() -> int:
    """Measure all runs of the table whose points are kept, and return how many there are."""
    rows = []
    for row in TABLE.latest().values():
        path = POINTS / f"{stem(row['problem'], row['noise'], row['seed'], row['arm'])}.npy"
        if path.exists():
            rows.append(row | measured(PROBLEMS[row["problem"]], np.load(path)))
    TABLE.append(*rows)
    tidy()
    return len(rows)


def tidy() -> None:
    """Sort the table by noise, problem, arm and seed."""
    places = {name: i for i, name in enumerate(PROBLEMS)}
    TABLE.tidy(lambda r: (float(r["noise"]), places[r["problem"]], ARMS.index(r["arm"]), int(r["seed"])), latest=True)


# The check against BoTorch


def check() -> None:
    """Compare all problems that BoTorch has at random points, and the hypervolume at random fronts."""
    import torch
    from botorch.test_functions import multi_objective as theirs
    from botorch.utils.multi_objective.hypervolume import Hypervolume

    twins: dict[str, Any] = {
        "BraninCurrin": theirs.BraninCurrin(),
        "ConstrainedBraninCurrin": theirs.ConstrainedBraninCurrin(),
        **{f"ZDT{i}-6": getattr(theirs, f"ZDT{i}")(6) for i in (1, 2, 3)},
        **{f"DTLZ{i}-6-{m}": getattr(theirs, f"DTLZ{i}")(6, m) for i in (2, 7) for m in (2, 3)},
        **{name: getattr(theirs, name)() for name in ("VehicleSafety", "Penicillin", "CarSideImpact")},
        **{name: getattr(theirs, name)() for name in ("WeldedBeam", "DiscBrake", "OSY")},
        "C2DTLZ2-6": theirs.C2DTLZ2(6, 2),
        "MW7-6": theirs.MW7(6),
    }
    rng = np.random.default_rng(0)
    for name, twin in twins.items():
        problem = PROBLEMS[name]
        x = problem.scaled(rng.random((1000, problem.d)))
        objectives, constraints = problem.evaluate(x)
        expected, note = twin.evaluate_true(torch.tensor(x)).numpy(), ""
        if name == "ZDT3-6":
            expected[:, 1] *= 1 + 9 * x[:, 1:].mean(axis=1)
            note = "; BoTorch leaves out the factor g of the second objective"
        errors = [apart(objectives, expected)]
        if problem.k:
            slack = twin.evaluate_slack_true(torch.tensor(x)).numpy()
            if apart(constraints, -slack) > apart(constraints, slack):
                slack, note = -slack, "; BoTorch has the other sign: feasible where ours is broken"
            errors.append(apart(constraints, -slack))
        errors.append(apart(problem.bounds, twin.bounds.T.numpy()))
        errors.append(apart(problem.reference, twin.ref_point.numpy()))
        if problem.best is not None:
            errors.append(apart(np.array(problem.best), np.array(twin.max_hv)))
        print(f"{name:25} largest difference {max(errors):.1e} {harness.yes(max(errors) < 1e-6)}{note}")
    for m in (2, 3, 4):
        reference, errors = np.full(m, 1.1), []
        for _ in range(20):
            front = np.abs(rng.standard_normal((40, m)))
            front /= np.linalg.norm(front, axis=1, keepdims=True)
            judge = Hypervolume(torch.tensor(-reference))
            errors.append(abs(hypervolume(front, reference) - judge.compute(torch.tensor(-front))))
        print(f"hypervolume, m = {m}: largest difference {max(errors):.1e} {harness.yes(max(errors) < 1e-9)}")


def apart(a: Array, b: Array) -> float:
    """Return the largest difference of two arrays, relative where values are above 1."""
    return float(np.max(np.abs(a - b) / np.maximum(1.0, np.abs(b))))


# The page


class Rows:
    """The rows of one noise level, by problem, arm and seed."""

    def __init__(self, rows: Iterable[harness.Row], noise: float) -> None:
        self.cells = {(r["problem"], r["arm"], int(r["seed"])): r for r in rows if float(r["noise"]) == noise}

    def seeds(self, name: str, arm: str) -> set[int]:
        return {seed for problem, other, seed in self.cells if (problem, other) == (name, arm)}

    def mean(self, name: str, arm: str, column: str = "gap %", seeds: Iterable[int] | None = None) -> float | None:
        """Return the mean of a column over some seeds, or None if there are no runs."""
        found = self.seeds(name, arm) if seeds is None else self.seeds(name, arm) & set(seeds)
        return float(np.mean([float(self.cells[name, arm, s][column]) for s in found])) if found else None

    def pair(self, name: str, arm: str, other: str, column: str) -> tuple[float, float] | None:
        """Return the means of two arms over the seeds that both have."""
        common = self.seeds(name, arm) & self.seeds(name, other)
        a, b = self.mean(name, arm, column, common), self.mean(name, other, column, common)
        return None if a is None or b is None else (a, b)


def cell(value: float | None, count: int | None = None) -> str:
    """Return a number for a table, with the number of seeds."""
    if value is None:
        return ""
    return f"{value:.3g}" + ("" if count is None else f" ({count})")


def gaps(rows: Rows, names: Sequence[str], arms: Sequence[str], column: str) -> list[str]:
    """Return the table of mean gaps, with the number of seeds."""
    return harness.table(
        ["", *arms],
        [[name, *(cell(rows.mean(name, arm, column), len(rows.seeds(name, arm))) for arm in arms)] for name in names],
    )


def ratios(rows: Rows, names: Sequence[str], arm: str, other: str, column: str, limit: float) -> list[str]:
    """Return the table of the ratio of two arms' mean gaps, and how many are within a limit."""
    lines, found = [], list[float]()
    for name in names:
        means = rows.pair(name, arm, other, column)
        if means is not None:
            found.append(means[0] / means[1] if means[1] > 0 else float("inf"))
            lines.append([name, cell(means[0]), cell(means[1]), f"{found[-1]:.2f}"])
    if not found:
        return []
    words = f"Within {limit:g} times: {sum(r <= limit for r in found)} of {len(found)}; largest {max(found):.2f}."
    return [*harness.table(["", arm, other, "ratio"], lines), "", words, ""]


def beaten(rows: Rows, names: Sequence[str]) -> list[str]:
    """Return on how many problems gpmi's mean gap is no larger than a peer's, on the seeds that both have."""
    lines = []
    for peer in PEERS:
        pairs = [pair for name in names if (pair := rows.pair(name, OURS, peer, "gap %"))]
        if pairs:
            lines.append(f"- {peer}: {sum(a <= b for a, b in pairs)} of {len(pairs)} problems")
    return (
        ["The mean gap of gpmi is no larger, on the seeds that both have, than that of", "", *lines, ""]
        if lines
        else []
    )


def report(held_out: bool, new: int) -> None:
    """Write the page."""
    table = TABLE.rows()
    shown = (*DEVELOPMENT, *REPORTED, *FURTHER, *(HELD_OUT if held_out else ()))
    table = [r for r in table if r["problem"] in shown]
    chose_nothing = tuple(name for name in shown if name not in DEVELOPMENT)
    body: list[str] = []
    for noise in NOISES:
        rows = Rows(table, noise)
        names = [name for name in shown if any(key[0] == name for key in rows.cells)]
        arms = [arm for arm in ARMS if any(key[1] == arm for key in rows.cells)]
        if not names:
            continue
        what = "exact values" if noise == 0 else f"noise of {100 * noise:g} %"
        body += [f"## The gap with {what}", "", "Mean gap in %, and the number of seeds.", ""]
        body += [*gaps(rows, names, arms, "gap %"), "", *beaten(rows, names)]
        body += ["The same at the nadir of the true front plus 10 % of its range:", ""]
        body += [*gaps(rows, names, arms, "judged gap %"), ""]
        guided = ratios(rows, chose_nothing, UNGUIDED, JUDGED, "judged gap %", 1.5)
        if guided:
            body += [
                f"### Without a reference, {what}",
                "",
                "Judged gaps, on problems that chose nothing.",
                "",
                *guided,
            ]
        together = ratios(rows, names, BATCHES, OURS, "gap %", 1.7)
        if together:
            body += [f"### Batches of {BATCH}, {what}", "", *together]
        body += [f"### CPU seconds a suggestion, {what}", "", f"The mean of the last {LATE} suggestions.", ""]
        body += [*harness.table(["", *arms], cpu_lines(rows, names, arms)), ""]
    text = (
        f"A run has {INITIAL} initial points, the same for all arms, and {SUGGESTIONS} suggestions. A gap is how much "
        "of the largest hypervolume is missing, in %: true values of all evaluated points that are truly feasible, at "
        f"the reference point of the problem. Rules were tuned on {', '.join(DEVELOPMENT)}, the one for a reference "
        f"that is not stated also on {', '.join(FURTHER)}, and on no other problem. "
        "Noise is a share of an output's standard deviation over the space. BoTorch and gpmi are given the reference, "
        "unless the name of the arm says otherwise; Optuna cannot be given one."
    )
    packages = ("botorch", "gpytorch")
    harness.page(__file__, "Several objectives", text, body, runs=len(table), new=new, packages=packages)


def cpu_lines(rows: Rows, names: Sequence[str], arms: Sequence[str]) -> list[list[str]]:
    """Return the rows of the table of costs."""
    return [[name, *(cell(rows.mean(name, arm, "late cpu s")) for arm in arms)] for name in names]


def main() -> None:
    parser = harness.parser(__doc__, cores=True, report=True)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=[*ARMS])
    parser.add_argument("--problems", nargs="+", choices=[*PROBLEMS], default=[*DEVELOPMENT, *REPORTED, *HELD_OUT])
    parser.add_argument("--noise", nargs="+", type=float, default=[*NOISES])
    parser.add_argument("--seeds", type=int, help=f"seeds from 0 on (default: {SEEDS}, of BoTorch {SLOW_SEEDS})")
    parser.add_argument("--check", action="store_true", help="compare the problems with BoTorch's, and run nothing")
    parser.add_argument("--rescore", action="store_true", help="measure all runs again, and run nothing")
    parser.add_argument("--held-out", action="store_true", help="report the held-out problems, too")
    arguments = parser.parse_args()
    if arguments.check:
        check()
        return
    if arguments.rescore:
        harness.say(f"measured {rescore()} runs")
        return
    new = 0
    if not arguments.report:
        jobs = runs(arguments.problems, arguments.noise, arguments.seeds, arguments.arms)
        new = harness.resume(TABLE, jobs, play, arguments.cores)
    report(arguments.held_out, new)


if __name__ == "__main__":
    main()
