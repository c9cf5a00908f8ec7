"""What does a batch of four lose against one point at a time, how far apart are its points, and what does it cost?

    python benchmarks/batches.py                     writes docs/benchmarks/batches.csv and .md; an hour; resumes
    python benchmarks/batches.py --arms batches      some arms only; BoTorch's qLogEI takes a minute a run
    python benchmarks/batches.py --part development  other problems and seeds, printed: the defaults were chosen on them
    python benchmarks/batches.py --part late         the same for the share of a budget in which one point of a batch
                                                     has the best mean
    python benchmarks/batches.py --report            makes no run; measures the costs and writes the page

Every run has 60 evaluations and its own initial design. "asynchronous" has four workers whose evaluations take random
times; a worker that is free gets the next point. A batch is close if two of its points are within a thousandth of the
box in every coordinate, which the library takes for one place. Batches that are part of the initial design do not
count. Pairs that both repeat the best point so far do not count either.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterable, Iterator
from typing import Any

import harness
import numpy as np
import problems
from peers import comparison
from problems.batch_functions import family

import gpmi
from gpmi.policies import find

NEEDS = "peers"
COLUMNS = ("problem", "seed", "arm", "gap", "mean regret", "batches", "close", "seconds")
TABLE = harness.Table(harness.DOCS / "batches.csv", COLUMNS, COLUMNS[:3])
BUDGET, SIZE, SEEDS, PEER_SEEDS, SAME = 60, 4, range(10), range(3), 1e-3
REPORTED = ("branin", "hartmann-6", "ackley-5", "rosenbrock-4", "styblinski-tang-4", "gp-2")
DEVELOPMENT = ("himmelblau", "levy-4", "hartmann-3", "log-goldstein-price", "gp-4")
LATE = (  # problem and budget
    *(("hill-6", 60), ("hill-4", 32), ("hartmann-like-6", 60), ("hartmann-like-5", 60), ("hartmann-like-4", 40)),
    *(("hartmann-3", 32), ("himmelblau", 28), ("himmelblau", 60), ("log-goldstein-price", 28), ("levy-4", 60)),
)
PEER, SEQUENTIAL = "BoTorch qLogEI", "BoTorch LogEI, one by one"
OURS: dict[str, tuple[int, bool, dict[str, Any]]] = {  # points at the same time, whether in a batch, arguments
    "one by one": (1, True, {}),
    "batches": (SIZE, True, {}),
    "asynchronous": (SIZE, False, {}),
    "earn, one by one": (1, True, {"aim": "earn"}),
    "earn, batches": (SIZE, True, {"aim": "earn"}),
    "GP-UCB-PE, batches": (SIZE, True, {"policy": gpmi.GPUCBPE(scale=0.2)}),
}


class Run:
    """The evaluations of one run."""

    def __init__(self, name: str, seed: int) -> None:
        self.problem, self.seed = problems.make(name, seed), seed
        self.values: list[float] = []  # without noise
        self.batches = self.close = 0

    def evaluate(self, x: Any) -> float:
        self.values.append(self.problem.f(x))
        return self.values[-1] + self.problem.noise(self.seed, len(self.values) - 1)

    def row(self, arm: str, seconds: float) -> dict[str, Any]:
        maximum = self.problem.maximum
        assert maximum is not None
        spread, values = problems.spread(self.problem.name, maximum), np.array(self.values[:BUDGET])
        measured = (maximum - values.max()) / spread, np.mean(maximum - values) / spread
        cells = (self.problem.name, self.seed, arm, *(f"{x:.6g}" for x in measured), self.batches, self.close)
        return dict(zip(COLUMNS, (*cells, f"{seconds:.3g}"), strict=True))


def ours(name: str, seed: int, arm: str) -> dict[str, Any]:
    """Play one run of gpmi and return its row."""
    size, together, options = OURS[arm]
    run, begun = Run(name, seed), time.process_time()
    opt = gpmi.Optimizer(run.problem.space, seed=seed, budget=BUDGET, **options)
    for _ in in_batches(run, opt, size) if together else asynchronously(run, opt, size):
        pass
    return run.row(arm, time.process_time() - begun)


def in_batches(run: Run, opt: gpmi.Optimizer, size: int) -> Iterator[None]:
    """Ask and tell batches, one after the other."""
    while len(run.values) < BUDGET:
        points = opt.ask(size)
        count_close(run, opt)
        for x in points:
            opt.tell(x, run.evaluate(x))
        yield


def asynchronously(run: Run, opt: gpmi.Optimizer, workers: int) -> Iterator[None]:
    """Give the next point to each worker that is free. Evaluations take exponential times."""
    rng = np.random.default_rng([5, run.seed])
    busy = [(float(rng.exponential()), i, x) for i, x in enumerate(opt.ask(workers))]
    heapq.heapify(busy)
    asked = workers
    while len(run.values) < BUDGET:
        now, _, x = heapq.heappop(busy)
        opt.tell(x, run.evaluate(x))
        heapq.heappush(busy, (now + float(rng.exponential()), asked, opt.ask()))
        asked += 1
        count_close(run, opt)
        yield


def count_close(run: Run, opt: gpmi.Optimizer) -> None:
    """Count the pending points as a batch, and it as close if two of them are at one place that is not the best."""
    pending = [trial for trial in opt.pending if trial.origin == "policy"]
    if len(pending) < 2:
        return
    rows = np.array([opt.space.encode(trial.x) for trial in pending]) / opt.space.span
    near = np.abs(rows[:, None] - rows).max(axis=2) <= SAME
    exploits = np.array([trial.explored is False for trial in pending])
    near &= ~(exploits[:, None] & exploits)
    run.batches += 1
    run.close += bool(near[np.triu_indices(len(rows), 1)].any())


def peer(name: str, seed: int, arm: str) -> dict[str, Any]:
    """Play one run of BoTorch: SingleTaskGP and qLogEI with q = 4, after 2 (d + 1) Sobol points, at most 20."""
    import warnings

    import torch
    from botorch import fit_gpytorch_mll
    from botorch.acquisition import qLogExpectedImprovement
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Normalize, Standardize
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    warnings.simplefilter("ignore")
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    run, begun = Run(name, seed), time.process_time()
    (lo, hi), d = np.array(run.problem.space).T, len(run.problem.space)
    bounds = torch.tensor([[0.0] * d, [1.0] * d]).double()

    def evaluated(u: Any) -> Any:
        return torch.tensor([[run.evaluate(lo + row * (hi - lo))] for row in u.numpy()]).double()

    u = torch.quasirandom.SobolEngine(d, scramble=True, seed=seed).draw(min(20, 2 * (d + 1))).double()
    y = evaluated(u)
    while len(u) < BUDGET:
        model = SingleTaskGP(u, y, input_transform=Normalize(d, bounds=bounds), outcome_transform=Standardize(1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        score = qLogExpectedImprovement(model, best_f=y.max())
        new, _ = optimize_acqf(score, bounds, q=min(SIZE, BUDGET - len(u)), num_restarts=10, raw_samples=512)
        u, y = torch.cat([u, new.detach()]), torch.cat([y, evaluated(new.detach())])
    return run.row(arm, time.process_time() - begun)


# The last part of a budget, in which a batch has the point with the best mean


def late_gap(name: str, seed: int, budget: int, size: int) -> float:
    """Return the gap of a run in batches, in spreads of f."""
    known = name in problems.NAMES
    problem, spread = (problems.make(name, seed), 0.0) if known else family(name, seed)
    assert problem.maximum is not None
    spread = problems.spread(name, problem.maximum) if known else spread
    opt, values = gpmi.Optimizer(problem.space, seed=seed, budget=budget), list[float]()
    while len(values) < budget:
        for x in opt.ask(size):
            values.append(problem.f(x))
            opt.tell(x, values[-1])
    return max((problem.maximum - max(values[:budget])) / spread, 1e-9)


def late(seeds: range = range(120, 128)) -> None:
    """Print the mean of log10(gap / gap of batches without the rule), for one by one and for shares of the budget."""
    shares = (0.0, 0.1, 0.2, 0.35, 1.0)
    print("| | one by one |", " | ".join(f"{share:g}" for share in shares[1:]), "|")
    for name, budget in LATE:
        logs = [np.log10([late_gap(name, seed, budget, 1) for seed in seeds])]
        for share in shares:
            find.LATE = share
            logs.append(np.log10([late_gap(name, seed, budget, SIZE) for seed in seeds]))
        one, without, *others = (float(np.mean(log)) for log in logs)
        cells = " | ".join(f"{log - without:+.2f}" for log in (one, *others))
        print(f"| {name}, {budget} evaluations | {cells} |", flush=True)


# Costs

COSTS: dict[str, tuple[str, int, dict[str, Any]]] = {
    'Branin, 40 values, aim="find"': ("branin", 40, {}),
    'Hartmann-6, 40 values, aim="find"': ("hartmann-6", 40, {}),
    'Hartmann-6, 100 values, aim="find"': ("hartmann-6", 100, {}),
    'Hartmann-6, 40 values, aim="earn"': ("hartmann-6", 40, {"aim": "earn"}),
    "Hartmann-6, 40 values, GP-UCB-PE": ("hartmann-6", 40, {"policy": gpmi.GPUCBPE(scale=0.2)}),
}


def cost(name: str, n: int, options: dict[str, Any], seed: int) -> tuple[float, float]:
    """Return the CPU seconds of one point, as the mean of sixteen asked one by one, and of one batch of sixteen."""

    def begun() -> tuple[Run, gpmi.Optimizer]:
        run = Run(name, seed)
        opt = gpmi.Optimizer(run.problem.space, seed=seed, **options)
        while len(run.values) < n:
            for x in opt.ask(SIZE):
                opt.tell(x, run.evaluate(x))
        return run, opt

    run, opt = begun()
    since = time.process_time()
    for _ in range(16):
        x = opt.ask()
        opt.tell(x, run.evaluate(x))
    single = (time.process_time() - since) / 16
    run, opt = begun()
    since = time.process_time()
    for x in opt.ask(16):
        opt.tell(x, run.evaluate(x))
    return single, time.process_time() - since


# The page


def median(rows: list[harness.Row], problem: str, arm: str, seeds: range, column: str = "gap") -> float | None:
    """Return the median of a column over some seeds, or None if there are no runs."""
    found = [float(r[column]) for r in rows if r["problem"] == problem and r["arm"] == arm and int(r["seed"]) in seeds]
    return float(np.median(found)) if found else None


def compared() -> list[harness.Row]:
    """Return the runs of BoTorch's LogEI in the comparison, one point at a time, as rows of this table."""
    found = []
    for run, row in comparison.load().items():
        here = (run.peer, run.start, run.budget) == ("BoTorch LogEI", "own", 60) and run.problem in REPORTED
        if here and row["status"] == "done" and run.seed in PEER_SEEDS:
            maximum = problems.make(run.problem, run.seed).maximum
            assert maximum is not None
            spread = problems.spread(run.problem, maximum)
            cells = (run.problem, run.seed, SEQUENTIAL, (maximum - float(row["best"])) / spread)
            regret = (maximum - float(row["mean"])) / spread
            found.append(dict(zip(COLUMNS, map(str, (*cells, regret, 0, 0, row["cpu"])), strict=True)))
    return found


def share_close(rows: list[harness.Row], arm: str) -> str:
    """Return how many batches of an arm are close."""
    some = [r for r in rows if r["arm"] == arm and r["problem"] in REPORTED]
    total = sum(int(r["batches"]) for r in some)
    return f"{sum(int(r['close']) for r in some)} of {total}" if total else ""


def cell(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"


def report(rows: list[harness.Row], costs: dict[str, tuple[float, float]], new: int) -> None:
    """Write the page."""
    arms = [arm for arm in (*OURS, PEER, SEQUENTIAL) if any(r["arm"] == arm for r in rows)]
    head = f"| | {' | '.join(REPORTED)} |\n|---|{'---|' * len(REPORTED)}\n"

    def table(column: str, seeds: range) -> str:
        lines = [
            f"| {arm} | {' | '.join(cell(median(rows, p, arm, seeds, column)) for p in REPORTED)} |" for arm in arms
        ]
        return head + "\n".join(lines)

    pairs = [(median(rows, p, "batches", SEEDS), median(rows, p, "one by one", SEEDS)) for p in REPORTED]
    ratios = [a / b for a, b in pairs if a is not None and b is not None]
    words = "; ".join(f"{p} {ratio:.2g}" for p, ratio in zip(REPORTED, ratios, strict=False))
    theirs = {(r["problem"], r["seed"]) for r in rows if r["arm"] == PEER}
    met = [r for r in rows if (r["problem"], r["seed"]) in theirs]
    few = [(median(met, p, "batches", PEER_SEEDS), median(met, p, PEER, PEER_SEEDS)) for p in REPORTED]
    below = [a < b for a, b in few if a is not None and b is not None]
    one = [(median(rows, p, "batches", PEER_SEEDS), median(rows, p, SEQUENTIAL, PEER_SEEDS)) for p in REPORTED]
    lower = [a < b for a, b in one if a is not None and b is not None]
    peer_runs = f"{sum(r['arm'] == PEER for r in rows)} runs, seeds from 0"
    against = (
        f"On seeds 0 to {len(PEER_SEEDS) - 1}, as far as {PEER} has them, the median gap of our batches is below its "
        f"own on {sum(below)} of {len(below)} problems; below that of {SEQUENTIAL} on {sum(lower)} of {len(lower)}."
    )
    spent = "\n".join(
        f"| {what} | {1e3 * a:.1f} ms | {1e3 * b:.0f} ms | {b / a:.0f} |" for what, (a, b) in costs.items()
    )
    close = "\n".join(
        f"| {arm} | {share_close(rows, arm)} |" for arm in arms if "one by one" not in arm and arm != PEER
    )
    introduction = (
        f"A run has {BUDGET} evaluations, gets the space, the budget and a "
        f"seed, and makes its own initial design. Batches have {SIZE} points, asked by `ask({SIZE})`, told together; "
        f'"asynchronous" has {SIZE} workers whose evaluations take random times. Gaps and regrets are in spreads of f: '
        'the maximum minus the mean of f over its box. What `aim="find"` does while points are pending was chosen on '
        f"{', '.join(DEVELOPMENT)}, which are not shown, and for the last fifth of a budget on those of "
        f"`--part late`. {PEER} is `qLogExpectedImprovement` with q = {SIZE} on a "
        "`SingleTaskGP`, 10 restarts, after 2 (d + 1) Sobol points; it is slow, and has few seeds. "
        f"{SEQUENTIAL} is from [the comparison](compare.md), seeds 0 to {len(PEER_SEEDS) - 1}, with sixty rounds "
        "instead of fifteen."
    )
    clumps = (
        f"How many of the batches have two points at one place, within {SAME:g} of the box in every coordinate; pairs "
        "of exploiting queries, which repeat the best point on purpose, are not counted. Asynchronous: of the moments "
        "after a point was asked."
    )
    prices = (
        "CPU time of one point asked and told, the mean of sixteen in a row, and of one batch of sixteen, asked and "
        "told. The median of 5 seeds; other programs were running."
    )
    body = [
        f"## The gap after {BUDGET} evaluations",
        f'The median of {len(SEEDS)} seeds; of {PEER} {peer_runs}. `aim="find"` where nothing is said.',
        table("gap", SEEDS),
        f"The gap of batches over that of one by one: {words}. {against} The same with those seeds alone:",
        table("gap", PEER_SEEDS),
        *("## The mean regret", "The median of the mean over a run, R_T / T.", table("mean regret", SEEDS)),
        *("## Whether points clump", clumps, f"| | close |\n|---|---|\n{close}"),
        *("## What a batch of sixteen costs", prices),
        f"| | one point | sixteen | ratio |\n|---|---|---|---|\n{spent}",
    ]
    own = sum(r["arm"] != SEQUENTIAL for r in rows)
    harness.page(__file__, "Batches", introduction, ["\n\n".join(body)], runs=own, new=new)


def play(name: str, seed: int, arm: str) -> dict[str, Any]:
    """Play one run and return its row."""
    return (peer if arm == PEER else ours)(name, seed, arm)


def runs(arms: Iterable[str]) -> Iterator[tuple[str, int, str]]:
    """Yield the runs of some arms, low seeds first, and BoTorch's at the end."""
    yield from ((name, seed, arm) for seed in SEEDS for name in REPORTED for arm in arms if arm != PEER)
    yield from ((name, seed, PEER) for seed in PEER_SEEDS for name in REPORTED if PEER in arms)


def main() -> None:
    parser = harness.parser(__doc__, cores=True, report=True)
    parser.add_argument("--part", choices=["reported", "development", "late"], default="reported")
    parser.add_argument("--arms", nargs="+", choices=[*OURS, PEER], default=[*OURS, PEER])
    arguments = parser.parse_args()
    if arguments.part == "development":
        for name in DEVELOPMENT:
            for arm in OURS:
                print(*[ours(name, seed, arm) for seed in range(10, 15)], sep="\n", flush=True)
        return
    if arguments.part == "late":
        late()
        return
    new = 0 if arguments.report else harness.resume(TABLE, runs(arguments.arms), play, arguments.cores)
    costs = {}
    for what, (name, n, options) in COSTS.items():
        measured = np.array([cost(name, n, options, seed) for seed in range(5)])
        costs[what] = (float(np.median(measured[:, 0])), float(np.median(measured[:, 1])))
    report([*TABLE.rows(), *compared()], costs, new + len(costs))


if __name__ == "__main__":
    main()
