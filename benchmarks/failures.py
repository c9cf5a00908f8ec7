"""What happens when 40 % of the box crashes: how many queries fail, how good is the best point, what is recommended?

    python benchmarks/failures.py [--seeds 20] [--first 0] [--tools gpmi] [--problems Branin]    writes failures.csv and
                                                                                             .md; an hour
    python benchmarks/failures.py --tuning      the problems on which things were tuned, with other seeds; printed only
    python benchmarks/failures.py --report      writes the page from the table

Three problems (`PROBLEMS`), gpmi and Optuna's TPE, whose failed trials are pruned; gpmi also on the same functions
without failures. Each run is stored when it ends, in place of an earlier one. Runs that are in the table are played
again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import harness
import numpy as np
from problems.functions import hartmann3, hartmann6, levy, styblinski_tang

import gpmi
from paper.tasks.functions import branin

NEEDS = "peers"
T, FIRST, SHARE = 60, 20, 0.4
OFFERS = ((40, 4), (20, 3), (13, 3), (13, 2))  # queries, and how many may fail
TOOLS = ("gpmi", "gpmi, no failures", "Optuna TPE")
COLUMNS = ("problem", "tool", "seed", "gap", "late", "failed", "infeasible", "seconds")
TABLE = harness.Table(harness.DOCS / "failures.csv", COLUMNS, COLUMNS[:3])


@dataclass(frozen=True)
class Crashing:
    """f on a box, which crashes where `danger` is above its quantile 1 - SHARE. Both are functions of u in [0, 1]^d."""

    name: str
    dim: int
    f: Callable[[Any], float]
    danger: Callable[[Any], Any]  # (m, d) -> (m,)
    maximum: float  # of f where it does not crash, and of f on the whole box
    best: Any = None  # its place, if the edge of the region goes through it
    limit_at: float | None = None  # the level of danger at which it crashes, if that is known

    def limit(self) -> float:
        """Return the level of danger at which it crashes: that of the maximiser, or the quantile over the box."""
        if self.limit_at is not None:
            return self.limit_at
        if self.best is not None:
            return float(self.danger(np.asarray(self.best)[None])[0]) + 1e-9
        rng = np.random.default_rng(0)
        return float(np.quantile(self.danger(rng.random((200_000, self.dim))), 1.0 - SHARE))

    def share(self) -> float:
        """Return the share of the box that crashes."""
        u = np.random.default_rng(1).random((200_000, self.dim))
        return float(np.mean(self.danger(u) > self.limit()))


def _branin(u: Any) -> float:
    return float(branin(np.array([15.0 * u[0] - 5.0, 15.0 * u[1]])))


def _ball(centre: list[float]) -> Callable[[Any], Any]:
    return lambda u: -((u - np.array(centre)) ** 2).sum(axis=1)


def _slope(*weights: float) -> Callable[[Any], Any]:
    return lambda u: u @ np.array(weights)


H3 = (0.11458887, 0.55564884, 0.85254694)  # the maximiser of Hartmann-3
ST = (-2.903534 + 5.0) / 10.0  # a coordinate of the maximiser of Styblinski-Tang
PROBLEMS = (
    # One of the three maximisers of Branin lies in the ball; that of Hartmann-6 is far from the edge.
    Crashing("Branin", 2, _branin, _ball([0.85, 0.45]), -0.39788736),
    Crashing("Hartmann-6", 6, hartmann6, _slope(1.0, 1.0, 0.0, 1.0, 0.5, 0.0), 3.32236801),
    # The edge of the region goes through the maximiser of Hartmann-3.
    Crashing("Hartmann-3, edge", 3, hartmann3, _slope(1.0, 1.0, 1.33), 3.86278215, H3),
)
TUNING = (
    Crashing("Levy-2", 2, lambda u: levy(12.0 * u - 5.0), _ball([0.2, 0.8]), 0.0),
    Crashing("Styblinski-Tang-4", 4, lambda u: styblinski_tang(10.0 * u - 5.0), _slope(1.0, 0.5, 1.0, 0.0), 156.664663),
    Crashing(
        "Styblinski-Tang-3, edge", 3, lambda u: styblinski_tang(10.0 * u - 5.0), _slope(-1.0, 0.88, 0.0), 117.498497,
        (ST, ST, ST),
    ),
)  # fmt: skip


def hills(dim: int, seed: int) -> Crashing:
    """Return a sum of four hills, as in Hartmann's functions, with a random plane through its maximiser."""
    from scipy.optimize import minimize

    rng = np.random.default_rng([77, dim, seed, 0])
    while True:
        heights, steep = rng.permutation([1.0, 1.2, 3.0, 3.2]), 10.0 ** rng.uniform(0.3, 1.5, (4, dim))
        at = rng.uniform(0.1, 0.9, (4, dim))

        def f(u: Any, heights: Any = heights, steep: Any = steep, at: Any = at) -> float:
            return float(heights @ np.exp(-(steep * (np.asarray(u) - at) ** 2).sum(axis=1)))

        starts = np.concatenate([at, rng.random((4, dim))])
        options = {"ftol": 1e-15, "gtol": 1e-10}
        climbs = [minimize(lambda u, f=f: -f(u), x, bounds=[(0, 1)] * dim, options=options) for x in starts]
        top = min(climbs, key=lambda climb: float(climb.fun))
        if np.any((top.x < 0.05) | (top.x > 0.95)):
            continue
        normal = rng.standard_normal(dim)
        normal /= np.linalg.norm(normal)
        problem = Crashing(f"hills {seed}, edge", dim, f, _slope(*normal), -float(top.fun), tuple(top.x.tolist()))
        if 0.25 < np.mean(problem.danger(rng.random((20_000, dim))) > problem.limit()) < 0.55:
            return problem


# The best that can be attained at an edge


def attainable(problem: Crashing, queries: int, failures: int) -> float:
    """Return the median gap of the best strategy that knows f and the direction of the edge, but not its place.

    The strategy searches the line through the box along the edge's normal w. With n queries of which at most k fail
    there are m = sum_{i <= k} (n choose i) histories, so it distinguishes m parts of that line. In the median it is
    half a part away from the edge, a distance of r. There the best point has the gap r^2 / (2 w^T H^-1 w), where H is
    minus the Hessian of f at the maximiser.
    """
    x, d = np.asarray(problem.best), problem.dim
    step = 1e-4
    moves = step * np.eye(d)
    danger = [float(np.diff(problem.danger(np.array([x - move, x + move])))[0]) for move in moves]
    normal = np.array(danger) / np.linalg.norm(danger)
    signs = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    bend = np.array(
        [[sum(a * b * problem.f(x + a * u + b * v) for a, b in signs) / (-4 * step**2) for u in moves] for v in moves]
    )
    ends = np.where(normal > 0.0, [1.0 - x, x], [x, 1.0 - x]) / np.abs(normal)  # to the walls, both ways
    parts = sum(math.comb(queries, i) for i in range(failures + 1))
    away = 0.5 * float(ends.min(axis=1).sum()) / parts
    return 0.5 * away**2 / float(normal @ np.linalg.solve(bend, normal))


@dataclass(frozen=True)
class Run:
    """One run: a row of the table."""

    problem: str
    tool: str
    seed: int
    gap: float  # of the best value
    late: float  # share of the queries after the first FIRST that failed
    failed: int
    infeasible: int | None  # whether the recommended point crashes; None if nothing crashes or is recommended
    seconds: float


def run(problem: Crashing, tool: str, seed: int) -> Run:
    """Make one run of T queries."""
    limit = problem.limit()
    crashes: list[bool] = []
    values: list[float] = []

    def evaluate(u: Any) -> float | None:
        crash = tool != "gpmi, no failures" and bool(problem.danger(np.asarray(u)[None])[0] > limit)
        crashes.append(crash)
        if crash:
            return None
        values.append(problem.f(np.asarray(u)))
        return values[-1]

    begin = time.perf_counter()
    recommended = _optuna(problem, seed, evaluate) if tool == "Optuna TPE" else _gpmi(problem, seed, evaluate)
    bad = None if tool != "gpmi" else int(problem.danger(recommended[None])[0] > limit)
    late = float(np.mean(crashes[FIRST:]))
    gap = problem.maximum - max(values, default=-np.inf)
    return Run(problem.name, tool, seed, gap, late, sum(crashes), bad, time.perf_counter() - begin)


def _gpmi(problem: Crashing, seed: int, evaluate: Callable[[Any], float | None]) -> Any:
    opt = gpmi.Optimizer([(0.0, 1.0)] * problem.dim, budget=T, seed=seed)
    for _ in range(T):
        x = opt.ask()
        y = evaluate(x)
        opt.fail(x, why="crash") if y is None else opt.tell(x, y)
    return opt.recommend()


def _optuna(problem: Crashing, seed: int, evaluate: Callable[[Any], float | None]) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial: Any) -> float:
        y = evaluate(np.array([trial.suggest_float(f"x{j}", 0.0, 1.0) for j in range(problem.dim)]))
        if y is None:
            raise optuna.TrialPruned
        return y

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(objective, n_trials=T)


def table(runs: list[Run]) -> str:
    """Return the table of medians by problem and tool."""
    lines = [
        "| problem | tool | runs | median gap | quartiles | failed after the first 20 | failed in all | "
        "recommended crashes |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for problem, tool in dict.fromkeys((run.problem, run.tool) for run in runs):
        some = [run for run in runs if (run.problem, run.tool) == (problem, tool)]
        low, middle, high = np.quantile([run.gap for run in some], [0.25, 0.5, 0.75])
        late, failed = np.mean([run.late for run in some]), np.mean([run.failed for run in some])
        bad = [run.infeasible for run in some if run.infeasible is not None]
        lines.append(
            f"| {problem} | {tool} | {len(some)} | {middle:.3g} | {low:.3g} to {high:.3g} | {late:.1%} | "
            f"{failed:.1f} | {f'{sum(bad)} of {len(bad)}' if bad else '-'} |"
        )
    return "\n".join(lines)


def _ratios(runs: list[Run]) -> str:
    """Return the ratio of the median gaps with failures and without, for each problem."""

    def median(problem: str, tool: str) -> float:
        return float(np.median([run.gap for run in runs if (run.problem, run.tool) == (problem, tool)]))

    names = dict.fromkeys(run.problem for run in runs)
    each = [f"{median(name, TOOLS[0]) / median(name, TOOLS[1]):.2g} times ({name})" for name in names]
    return ", ".join(each[:-1]) + " and " + each[-1]


def _attainable() -> str:
    """Return the gap of the best strategy at the edge, for several numbers of queries and failures."""
    edge = next(problem for problem in PROBLEMS if problem.best is not None)
    each = [f"{attainable(edge, n, k):.1e} with {n} queries of which {k} fail" for n, k in OFFERS]
    return ", ".join(each[:-1]) + " and " + each[-1]


def _far(runs: list[Run]) -> str:
    """Return how many runs at the edge have not reached the maximum."""
    edge = next(problem.name for problem in PROBLEMS if problem.best is not None)
    gaps = [run.gap for run in runs if (run.problem, run.tool) == (edge, TOOLS[0])]
    late, lost = sum(1e-4 < gap <= 0.1 for gap in gaps), sum(gap > 0.1 for gap in gaps)
    return f"Of the {len(gaps)} runs at the edge {lost} end on another maximum, and {late} have found the right one so late that the gap is above 0.0001"  # noqa: E501


def page(runs: list[Run], new: int) -> None:
    """Write the page about these runs."""
    text = f"""The runs are in [failures.csv](failures.csv): {T} queries, {FIRST} of which are the time to learn, seeds 0 to {max(run.seed for run in runs)}, exact values. In "Hartmann-3, edge" the edge of what works goes through the maximiser. gpmi is told of each crash with `fail`, Optuna's TPE prunes the trial. "No failures" is gpmi on the same function with nothing crashing. The gap is that of the best value told. What was tuned was tuned on other problems and seeds (`--tuning`: edges through the maximisers of random hills), but that 30 queries count as lately, and not 20, was decided after a look at seeds 0 to 4 of this page; that a run takes a risk at all, and that a far point may fail with probability 1/2, on edges through the maximiser of Hartmann-3 with seeds from 100, too."""  # noqa: E501
    body = f"""{table(runs)}

The median gap is {_ratios(runs)} that of the same function without failures; at most twice was hoped for. {_far(runs)}: as long as little is known of the edge, half of the hill seems to be where nothing works, and queries of which one in ten may fail do not go there.

**What can be attained at an edge.** A query that goes a share s of the way on which the edge may lie fails with probability s. So n queries of which at most k fail tell 1 + n + ... + (n choose k) parts of that way from each other, and no strategy tells more, even if it knows f and the direction of the edge. For "Hartmann-3, edge" it is half a part away from the edge in the median, and its gap is {_attainable()} (`attainable`). So what was hoped for can be attained, by a strategy that knows f and spends half of the queries after the first {FIRST} on the edge. gpmi has to find the hill and its shape, too: on the problems of `--tuning` half of its queries after the first {FIRST} were beside the maximiser. They failed about as often as the model had said."""  # noqa: E501
    harness.page(__file__, "Runs in which 40 % of the box crashes", text, [body], runs=len(runs), new=new)


def main() -> None:
    parser = harness.parser(__doc__, report=True)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--tuning", action="store_true", help="other problems; nothing is written")
    parser.add_argument("--tools", nargs="+", default=list(TOOLS), choices=TOOLS, help="rows of the others stay")
    parser.add_argument("--problems", nargs="+", help="some of them, by their names")
    arguments = parser.parse_args()
    new = 0
    problems = (*TUNING, *(hills(3, seed) for seed in range(8))) if arguments.tuning else PROBLEMS
    for problem in () if arguments.report else problems:
        if arguments.problems is not None and problem.name not in arguments.problems:
            continue
        harness.say(f"{problem.name}: {problem.share():.1%} of the box crashes")
        for tool in arguments.tools:
            runs = []
            for seed in range(arguments.first, arguments.first + arguments.seeds):
                runs.append(run(problem, tool, seed))
                if not arguments.tuning:
                    TABLE.append(["" if value is None else value for value in runs[-1].__dict__.values()])
                    new += 1
            harness.say(table(runs).splitlines()[-1])
    if not arguments.tuning:
        names = [problem.name for problem in PROBLEMS]
        order = lambda row: (names.index(row["problem"]), TOOLS.index(row["tool"]), int(row["seed"]))  # noqa: E731
        TABLE.tidy(order, latest=True)
        page(load(), new)


def load() -> list[Run]:
    """Return the runs in the table."""
    kinds: dict[str, Callable[[str], Any]] = {"seed": int, "failed": int, "infeasible": lambda text: int(text or 0)}
    kinds |= {"gap": float, "late": float, "seconds": float}
    runs = [Run(**{name: kinds.get(name, str)(text) for name, text in row.items()}) for row in TABLE.rows()]
    return [run if run.tool == "gpmi" else replace(run, infeasible=None) for run in runs]


if __name__ == "__main__":
    main()
