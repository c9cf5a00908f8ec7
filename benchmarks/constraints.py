"""Does it handle known constraints and conditional parameters well, next to Optuna's TPE, BoTorch and random search?

    python benchmarks/constraints.py            writes docs/benchmarks/constraints.csv and .md; half an hour; resumes
    python benchmarks/constraints.py --report   writes the page from the table
    python benchmarks/constraints.py --problems gardner --arms gpmi --seeds 3     some runs only

Every run makes its own initial design. A constraint is known, so checking a point costs nothing: a point that a peer
proposes outside is told to it as a violation, and is no evaluation.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import harness
import numpy as np
from problems import pipeline
from problems.functions import Array, ackley

import gpmi

NEEDS = "peers"
COLUMNS = ("problem", "seed", "arm", "best", "gap", "outside", "seconds")
TABLE = harness.Table(harness.DOCS / "constraints.csv", COLUMNS, COLUMNS[:3])
SEEDS = 10
TRIES = 1000  # proposals outside that are rejected in a row, at most


# Problems


@dataclass(frozen=True)
class Problem:
    """Maximise f over the points of a box whose `excess` (k,) is at most 0."""

    bounds: list[tuple[float, float]]
    f: Callable[[Array], float]
    excess: Callable[[Array], Array]
    budget: int
    maximum: float
    linear: tuple[Array, Array] | None = None  # A x <= b, where the constraints are linear
    constraints: list[Any] = field(default_factory=list)  # as a user of gpmi writes them


def gardner(x: Array) -> float:
    """Return minus the objective of the first simulation of Gardner et al. 2014."""
    return -float(np.cos(2.0 * x[0]) * np.cos(x[1]) + np.sin(x[0]))


def allowed(x: Array) -> bool:
    """Return whether a point keeps its constraint."""
    return bool(np.cos(x[0]) * np.cos(x[1]) - np.sin(x[0]) * np.sin(x[1]) <= 0.5)


SLANTED = (np.array([[1.0, 1.0], [1.0, -1.0]]), np.array([9.0, 4.0]))
HALVES = (np.array([[1.0] * 10, [-1.0] * 5 + [0.0] * 5]), np.zeros(2))


@cache
def problems() -> dict[str, Problem]:
    """Return Gardner's function with its own constraint or two lines, and Ackley's with its maximum on two faces."""
    return {
        "gardner": Problem(
            [(0.0, 6.0)] * 2,
            gardner,
            lambda x: np.array([np.cos(x[0] + x[1]) - 0.5]),
            40,
            maximum=2.0,  # at (3 pi / 2, 0)
            constraints=[allowed],
        ),
        "gardner, lines": Problem(
            [(0.0, 6.0)] * 2,
            gardner,
            lambda x: SLANTED[0] @ x - SLANTED[1],
            40,
            maximum=1.7987111917984,  # on x0 - x1 = 4, from SLSQP with 300 starts
            linear=SLANTED,
            constraints=["x0 + x1 <= 9", "x0 - x1 <= 4"],
        ),
        "ackley-10": Problem(
            [(-5.0, 10.0)] * 10,
            ackley,
            lambda x: HALVES[0] @ x - HALVES[1],
            60,
            maximum=0.0,
            linear=HALVES,
            constraints=[" + ".join(f"x{i}" for i in range(10)) + " <= 0", "x0 + x1 + x2 + x3 + x4 >= 0"],
        ),
    }


# The tools: each returns the points that it evaluated


def by_gpmi(problem: Problem, seed: int) -> list[Array]:
    bounds = problem.bounds
    r = gpmi.maximize(problem.f, bounds, budget=problem.budget, constraints=problem.constraints, seed=seed)
    return [trial.x for trial in r.trials]


def at_random(problem: Problem, seed: int) -> list[Array]:
    rng, (lo, hi) = np.random.default_rng(seed), np.array(problem.bounds).T
    inside: list[Array] = []
    while len(inside) < problem.budget:
        x = lo + rng.random(len(lo)) * (hi - lo)
        if np.all(problem.excess(x) <= 0.0):
            inside.append(x)
    return inside


def by_tpe(problem: Problem, seed: int) -> list[Array]:
    """Use TPESampler with `constraints_func`."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    d = len(problem.bounds)

    def violations(trial: Any) -> list[float]:
        return list(problem.excess(np.array([trial.params[f"x{i}"] for i in range(d)])))

    sampler = optuna.samplers.TPESampler(seed=seed, constraints_func=violations)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    found: list[Array] = []
    rejected = 0
    while len(found) < problem.budget:
        trial = study.ask()
        x = np.array([trial.suggest_float(f"x{i}", *ends) for i, ends in enumerate(problem.bounds)])
        if np.all(problem.excess(x) <= 0.0) or rejected >= TRIES:
            found.append(x)
            rejected = 0
            study.tell(trial, problem.f(x))
        else:
            rejected += 1
            study.tell(trial, 0.0)  # the value does not count: infeasible trials are ranked by their violations
    return found


def by_botorch(problem: Problem, seed: int) -> list[Array]:
    """Use SingleTaskGP and LogEI under the constraints, after 2 (d + 1) random points, at most 12.

    Linear constraints are given as such. Any other constraint is a function, and the climb starts at the best of 512
    random points inside, as BoTorch requires.
    """
    import torch
    from botorch import fit_gpytorch_mll
    from botorch.acquisition import LogExpectedImprovement
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Normalize, Standardize
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    (lo, hi), d = np.array(problem.bounds).T, len(problem.bounds)
    bounds = torch.tensor([[0.0] * d, [1.0] * d]).double()
    rng = np.random.default_rng(seed)

    def inside(count: int) -> Array:
        some = np.empty((0, d))
        while len(some) < count:
            u = rng.random((4096, d))
            some = np.concatenate([some, u[[bool(np.all(problem.excess(lo + v * (hi - lo)) <= 0.0)) for v in u]]])
        return some[:count]

    def constraint(u: Any) -> Any:  # >= 0 inside
        x = torch.tensor(lo) + u * torch.tensor(hi - lo)
        return 0.5 - torch.cos(x[..., 0] + x[..., 1])

    u = torch.tensor(inside(min(12, 2 * (d + 1))))
    y = torch.tensor([[problem.f(lo + v * (hi - lo))] for v in u.numpy()]).double()
    while len(u) < problem.budget:
        model = SingleTaskGP(u, y, input_transform=Normalize(d, bounds=bounds), outcome_transform=Standardize(1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        score = LogExpectedImprovement(model, best_f=y.max())
        options: dict[str, Any] = {"num_restarts": 10, "raw_samples": 512}
        if problem.linear is not None:
            a, b = problem.linear
            options["inequality_constraints"] = [  # sum of coefficients u_i >= bound
                (torch.arange(d), torch.tensor(-row * (hi - lo)), float(row @ lo - at))
                for row, at in zip(a, b, strict=True)
            ]
        else:
            starts = torch.tensor(inside(512))[:, None]
            best = score(starts).topk(5).indices
            options = {"num_restarts": 5, "nonlinear_inequality_constraints": [(constraint, True)]}
            options |= {"batch_initial_conditions": starts[best], "options": {"batch_limit": 1}}
        new, _ = optimize_acqf(score, bounds, q=1, **options)
        u = torch.cat([u, new.detach()])
        y = torch.cat([y, torch.tensor([[problem.f(lo + new[0].detach().numpy() * (hi - lo))]]).double()])
    return [lo + v * (hi - lo) for v in u.numpy()]


ARMS: dict[str, Callable[[Problem, int], list[Array]]] = {
    "gpmi": by_gpmi,
    "Optuna TPE": by_tpe,
    "BoTorch LogEI": by_botorch,
    "random": at_random,
}


# A pipeline with conditional parameters


@cache
def digits() -> tuple[Any, Any]:
    """Return the inputs and the labels of scikit-learn's digits."""
    from sklearn.datasets import load_digits

    data = load_digits()
    return data.data, data.target


def accuracy(p: dict[str, Any]) -> float:
    """Return the mean accuracy of a support vector machine on scikit-learn's digits, in three folds."""
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, StandardScaler
    from sklearn.svm import SVC

    steps = {"none": [], "standard": [StandardScaler()], "minmax": [MinMaxScaler()]}[p["scaler"]]
    own = {name: p[name] for name in ("kernel", "C", "gamma", "degree", "coef0") if name in p}
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    return float(np.mean(cross_val_score(make_pipeline(*steps, SVC(**own, max_iter=20_000)), *digits(), cv=folds)))


# Runs and their page


def play(name: str, seed: int, arm: str) -> tuple[Any, ...]:
    """Play one run and return its row."""
    begin = time.process_time()
    if name == "svc":
        best, gap, outside = max(pipeline.TOOLS[arm](accuracy, seed)), float("nan"), 0.0
    else:
        problem = problems()[name]
        points = ARMS[arm](problem, seed)
        excess = np.array([problem.excess(x).max() for x in points])
        best = max((problem.f(x) for x, by in zip(points, excess, strict=True) if by <= 1e-6), default=-np.inf)
        gap, outside = problem.maximum - best, float(excess.max())
    return (
        name,
        seed,
        arm,
        repr(float(best)),
        repr(float(gap)),
        repr(float(outside)),
        f"{time.process_time() - begin:.2f}",
    )


def runs() -> Iterable[tuple[str, int, str]]:
    """Yield all runs, low seeds first."""
    for seed in range(SEEDS):
        for name in problems():
            yield from ((name, seed, arm) for arm in ARMS)
        yield from (("svc", seed, arm) for arm in pipeline.TOOLS)


def page(rows: list[harness.Row], new: int) -> None:
    """Write the page."""
    text = (
        "A run gets the space, its constraints, the budget and a seed, and makes its own initial design; there is no "
        "noise. Constraints are known: a point that a peer proposes outside is told to it as a violation and costs no "
        "evaluation."
    )
    lines = [
        "`gardner` is the first simulation of Gardner et al. (2014) with its own constraint, as a function, in 40 "
        "evaluations; `gardner, lines` has two linear constraints instead. `ackley-10` is Ackley's function on "
        "[-5, 10]^10 with sum x <= 0 and x0 + ... + x4 >= 0 in 60 evaluations; its maximum is on both faces.",
        "",
        "The median gap, maximum minus the best value inside, with the quartiles; how far the furthest point was "
        "outside; CPU seconds of a run.",
        "",
        f"| | {' | '.join(problems())} |",
        "|---" * (len(problems()) + 1) + "|",
    ]
    for arm in ARMS:
        cells = []
        for name in problems():
            own = [row for row in rows if row["problem"] == name and row["arm"] == arm]
            if not own:
                cells.append("")
                continue
            low, middle, high = np.quantile([float(row["gap"]) for row in own], [0.25, 0.5, 0.75])
            outside = max(0.0, *(float(row["outside"]) for row in own))
            seconds = np.mean([float(row["seconds"]) for row in own])
            cells.append(f"{middle:.1e} ({low:.1e} to {high:.1e}); {outside:.0e}; {seconds:.0f} s; {len(own)} runs")
        lines.append(f"| {arm} | {' | '.join(cells)} |")
    lines += [
        "",
        "`svc` is a pipeline of a scaler and a support vector machine on scikit-learn's digits, whose gamma, degree "
        f"and coef0 depend on the kernel; {pipeline.BUDGET} evaluations. The mean best accuracy of three-fold "
        "cross-validation, with its standard error; in brackets what gpmi found beyond it, in pairs by seed.",
        "",
        "| | svc |",
        "|---|---|",
    ]
    for arm in pipeline.TOOLS:
        best = [float(row["best"]) for row in rows if row["problem"] == "svc" and row["arm"] == arm]
        if best:
            error = np.std(best, ddof=1) / len(best) ** 0.5 if len(best) > 1 else float("nan")
            lines.append(f"| {arm} | {np.mean(best):.4f} +- {error:.4f}{_in_pairs(rows, arm)}; {len(best)} runs |")
    harness.page(__file__, "Constraints and conditions", text, lines, runs=len(rows), new=new)


def _in_pairs(rows: list[harness.Row], arm: str) -> str:
    """Return the mean difference of gpmi's best accuracy from an arm's with the same seed, with its standard error."""
    best = {(row["arm"], row["seed"]): float(row["best"]) for row in rows if row["problem"] == "svc"}
    pairs = [best["gpmi", seed] - best[arm, seed] for a, seed in best if a == arm and ("gpmi", seed) in best]
    if arm == "gpmi" or len(pairs) < 2:
        return ""
    return f" ({np.mean(pairs):+.4f} +- {np.std(pairs, ddof=1) / len(pairs) ** 0.5:.4f})"


def main() -> None:
    parser = harness.parser(__doc__, cores=True, report=True)
    parser.add_argument("--problems", nargs="+", choices=[*problems(), "svc"])
    parser.add_argument("--arms", nargs="+", choices=list(ARMS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    args = parser.parse_args()
    wanted = (
        run
        for run in runs()
        if (args.problems is None or run[0] in args.problems)
        and (args.arms is None or run[2] in args.arms)
        and run[1] < args.seeds
    )
    new = 0 if args.report else harness.resume(TABLE, wanted, play, args.cores)
    page(TABLE.rows(), new)


if __name__ == "__main__":
    main()
