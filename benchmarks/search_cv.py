"""How good is GPMISearchCV next to BayesSearchCV and RandomizedSearchCV: the best score, and the cost of searching?

    python benchmarks/search_cv.py [--seeds N] [--searches ...]    writes search_cv.csv and .md; an hour; resumes
    python benchmarks/search_cv.py --report                        writes the page from the table

Four estimators on four data sets of scikit-learn, 30 settings each, three folds, the same folds for all. The cost of
searching is the CPU time of `fit` without that of the estimators' fits and scores. Low seeds come first.
"""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from itertools import product
from typing import Any

import harness
import numpy as np
import sklearn.model_selection._search as searching
from scipy.stats import loguniform, randint, uniform
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import gpmi
from gpmi.integrations.sklearn import GPMISearchCV

NEEDS = "peers"
COLUMNS = ("problem", "seed", "search", "version", "score", "overhead", "cpu")
RUNS = harness.Table(harness.DOCS / "search_cv.csv", COLUMNS, COLUMNS[:3])
N_ITER, FOLDS, REFIT, SEEDS = 30, 3, False, 10


@dataclass(frozen=True)
class Problem:
    """An estimator on data, with its parameters by name: ("real" | "log" | "int", lo, hi), or a list of options."""

    estimator: Any
    load: Callable[[], tuple[Any, Any]]
    space: dict[str, Any]


def digits() -> tuple[Any, Any]:
    """Return the first 600 rows of scikit-learn's digits."""
    x, y = load_digits(return_X_y=True)
    return x[:600], y[:600]


PROBLEMS = {
    "SVC, breast cancer": Problem(
        make_pipeline(StandardScaler(), SVC()),
        lambda: load_breast_cancer(return_X_y=True),
        {"svc__C": ("log", 1e-3, 1e4), "svc__gamma": ("log", 1e-6, 1e1)},
    ),
    "SVR, diabetes": Problem(
        make_pipeline(StandardScaler(), SVR()),
        lambda: load_diabetes(return_X_y=True),
        {"svr__C": ("log", 1e-2, 1e4), "svr__gamma": ("log", 1e-5, 1e1), "svr__epsilon": ("log", 1e-2, 1e2)},
    ),
    "boosting, wine": Problem(
        GradientBoostingClassifier(random_state=0),
        lambda: load_wine(return_X_y=True),
        {
            "learning_rate": ("log", 1e-2, 1.0),
            "n_estimators": ("int", 5, 40),
            "max_depth": ("int", 1, 6),
            "subsample": ("real", 0.3, 1.0),
            "max_features": ("real", 0.1, 1.0),
        },
    ),
    "PCA and SVC, digits": Problem(
        # Without max_iter the fit of a setting that BayesSearchCV chose did not end in five minutes.
        make_pipeline(StandardScaler(), PCA(random_state=0), SVC(max_iter=100_000)),
        digits,
        {
            "pca__n_components": ("int", 2, 40),
            "svc__kernel": ["rbf", "poly", "sigmoid"],
            "svc__C": ("log", 1e-3, 1e4),
            "svc__gamma": ("log", 1e-6, 1e1),
        },
    ),
}


def ours(problem: Problem, seed: int) -> Any:
    kinds = {
        "real": lambda lo, hi: gpmi.Real(lo, hi),
        "log": lambda lo, hi: gpmi.Real(lo, hi, log=True),
        "int": lambda lo, hi: gpmi.Int(lo, hi),
    }
    space = {n: one if isinstance(one, list) else kinds[one[0]](*one[1:]) for n, one in problem.space.items()}
    return GPMISearchCV(problem.estimator, space, n_iter=N_ITER, cv=FOLDS, random_state=seed, refit=REFIT)


def bayes(problem: Problem, seed: int) -> Any:
    from skopt import BayesSearchCV
    from skopt.space import Categorical, Integer, Real

    kinds = {
        "real": lambda lo, hi: Real(lo, hi),
        "log": lambda lo, hi: Real(lo, hi, prior="log-uniform"),
        "int": lambda lo, hi: Integer(lo, hi),
    }
    space = {
        n: Categorical(one) if isinstance(one, list) else kinds[one[0]](*one[1:]) for n, one in problem.space.items()
    }
    return BayesSearchCV(problem.estimator, space, n_iter=N_ITER, cv=FOLDS, random_state=seed, refit=REFIT)


def at_random(problem: Problem, seed: int) -> Any:
    kinds = {
        "real": lambda lo, hi: uniform(lo, hi - lo),
        "log": lambda lo, hi: loguniform(lo, hi),
        "int": lambda lo, hi: randint(lo, hi + 1),
    }
    space = {n: one if isinstance(one, list) else kinds[one[0]](*one[1:]) for n, one in problem.space.items()}
    return RandomizedSearchCV(problem.estimator, space, n_iter=N_ITER, cv=FOLDS, random_state=seed, refit=REFIT)


SEARCHES = {"GPMISearchCV": ours, "BayesSearchCV": bayes, "RandomizedSearchCV": at_random}


def version(name: str) -> str:
    """Return the version of a search."""
    packages = {"BayesSearchCV": "scikit-optimize", "RandomizedSearchCV": "scikit-learn"}
    return metadata.version(packages[name]) if name in packages else harness.commit()


def run(name: str, search: str, seed: int) -> tuple[float, float, float]:
    """Return the best score, the CPU seconds of searching, and those of everything."""
    problem, inside, fit_and_score = PROBLEMS[name], 0.0, searching._fit_and_score

    def timed(*args: Any, **kwargs: Any) -> Any:
        nonlocal inside
        begun = time.process_time()
        try:
            return fit_and_score(*args, **kwargs)
        finally:
            inside += time.process_time() - begun

    made, data = SEARCHES[search](problem, seed), problem.load()
    searching._fit_and_score = timed
    try:
        begun = time.process_time()
        made.fit(*data)
        cpu = time.process_time() - begun
    finally:
        searching._fit_and_score = fit_and_score
    return float(np.nanmax(made.cv_results_["mean_test_score"])), cpu - inside, cpu


def play(name: str, seed: int, search: str) -> tuple[Any, ...]:
    """Play one run and return its row."""
    warnings.simplefilter("ignore")
    score, overhead, cpu = run(name, search, seed)
    return name, seed, search, version(search), f"{score:.6f}", f"{overhead:.3f}", f"{cpu:.3f}"


def report(new: int) -> None:
    """Write the page."""
    scores: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    costs: dict[tuple[str, str], list[float]] = defaultdict(list)
    versions: dict[str, set[str]] = defaultdict(set)
    rows = RUNS.rows()
    for row in rows:
        key = row["problem"], row["search"]
        scores[key][row["seed"]] = float(row["score"])
        costs[key].append(float(row["overhead"]))
        versions[row["search"]].add(row["version"])
    lines = [f"Versions: {', '.join(f'{one} {chr(44).join(sorted(versions[one]))}' for one in SEARCHES)}.", ""]
    text = f"Mean over the seeds, of {SEEDS} that are wanted, ± its standard error. The SVC of the digits stops after "
    text += (
        "100,000 iterations: without that, a setting that BayesSearchCV chose with seed 4 was still being fitted after "
    )
    text += "five minutes of CPU, and was ended."
    lines += ["## The best score", "", text, ""]
    lines += [f"| | seeds | {' | '.join(SEARCHES)} |", "|---|---|---|---|---|"]
    costly = []
    for name in PROBLEMS:
        shared = sorted(set.intersection(*(set(scores[name, one]) for one in SEARCHES)), key=int)
        if not shared:
            continue
        cells = []
        for one in SEARCHES:
            values = np.array([scores[name, one][seed] for seed in shared])
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            cells.append(f"{values.mean():.4f} ± {error:.4f}")
        lines.append(f"| {name} | {len(shared)} | {' | '.join(cells)} |")
        means = [float(np.mean(costs[name, one])) for one in SEARCHES]
        ratio = means[1] / means[0]
        costly.append(f"| {name} | {' | '.join(f'{one:.2f} s' for one in means)} | 1/{ratio:.0f} |")
    lines += ["", "## What searching costs", "", "CPU time of a whole search without that of the estimators, mean.", ""]
    lines += [f"| | {' | '.join(SEARCHES)} | the first over the second |", "|---|---|---|---|---|", *costly]
    text = f"Its rows are in `docs/benchmarks/search_cv.csv`. {N_ITER} settings, {FOLDS} folds."
    harness.page(__file__, "GPMISearchCV next to other searches", text, lines, runs=len(rows), new=new)


def main() -> None:
    parser = harness.parser(__doc__, cores=True, report=True)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--searches", nargs="+", choices=list(SEARCHES), default=list(SEARCHES))
    arguments = parser.parse_args()
    runs = ((name, seed, one) for seed, name, one in product(range(arguments.seeds), PROBLEMS, arguments.searches))
    report(0 if arguments.report else harness.resume(RUNS, runs, play, arguments.cores))


if __name__ == "__main__":
    main()
