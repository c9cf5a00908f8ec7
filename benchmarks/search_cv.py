"""GPMISearchCV next to BayesSearchCV of scikit-optimize and RandomizedSearchCV: the best score, and what it costs.

    python benchmarks/search_cv.py [--seeds N] [--searches ...]    goes on where it stopped, low seeds first
    python benchmarks/search_cv.py --report                        writes docs/benchmarks/search_cv.md

Four estimators on four data sets of scikit-learn, 30 settings each, three folds, the same folds for all. What searching
costs is the CPU time of `fit` without that of the fits and scores of the estimators.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"], "1"))

import argparse
import csv
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from importlib import metadata
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.model_selection._search as searching
from engine import machine
from find import commit
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

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "benchmarks"
CSV, PAGE = FOLDER / "search_cv.csv", FOLDER / "search_cv.md"
COLUMNS = ("problem", "seed", "search", "version", "score", "overhead", "cpu")
N_ITER, FOLDS, REFIT, SEEDS = 30, 3, False, 10


@dataclass(frozen=True)
class Problem:
    """An estimator on data, and its parameters: name -> ("real" | "log" | "int", lo, hi), or a list of options."""

    estimator: Any
    load: Callable[[], tuple[Any, Any]]
    space: dict[str, Any]


def digits() -> tuple[Any, Any]:
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
        # Without max_iter a setting that BayesSearchCV chose was still being fitted after five minutes.
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


def by_chance(problem: Problem, seed: int) -> Any:
    kinds = {
        "real": lambda lo, hi: uniform(lo, hi - lo),
        "log": lambda lo, hi: loguniform(lo, hi),
        "int": lambda lo, hi: randint(lo, hi + 1),
    }
    space = {n: one if isinstance(one, list) else kinds[one[0]](*one[1:]) for n, one in problem.space.items()}
    return RandomizedSearchCV(problem.estimator, space, n_iter=N_ITER, cv=FOLDS, random_state=seed, refit=REFIT)


SEARCHES = {"GPMISearchCV": ours, "BayesSearchCV": bayes, "RandomizedSearchCV": by_chance}


def version(name: str) -> str:
    packages = {"BayesSearchCV": "scikit-optimize", "RandomizedSearchCV": "scikit-learn"}
    return metadata.version(packages[name]) if name in packages else commit()


def run(name: str, search: str, seed: int) -> tuple[float, float, float]:
    """The best score, the CPU seconds of searching, and those of everything."""
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


def kept() -> list[dict[str, str]]:
    if not CSV.exists():
        return []
    with CSV.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def play(searches: list[str], seeds: int) -> None:
    done = {(row["problem"], row["seed"], row["search"]) for row in kept()}
    for seed, name, search in product(range(seeds), PROBLEMS, searches):
        if (name, str(seed), search) in done:
            continue
        score, overhead, cpu = run(name, search, seed)
        fresh = not CSV.exists()
        with CSV.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            if fresh:
                writer.writerow(COLUMNS)
            writer.writerow((name, seed, search, version(search), f"{score:.6f}", f"{overhead:.3f}", f"{cpu:.3f}"))
        print(name, seed, search, f"{score:.4f}", f"{overhead:.2f} s", flush=True)


def report() -> None:
    scores: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    costs: dict[tuple[str, str], list[float]] = defaultdict(list)
    versions: dict[str, set[str]] = defaultdict(set)
    for row in kept():
        key = row["problem"], row["search"]
        scores[key][row["seed"]] = float(row["score"])
        costs[key].append(float(row["overhead"]))
        versions[row["search"]].add(row["version"])
    lines = ["# GPMISearchCV next to other searches", "", "Written by `benchmarks/search_cv.py`, its rows in"]
    lines[-1] += f" `docs/benchmarks/search_cv.csv`. {N_ITER} settings, {FOLDS} folds. The page is of {date.today()}."
    lines += ["", *(f"{line}  " for line in machine())]
    lines += [f"Versions: {', '.join(f'{one} {chr(44).join(sorted(versions[one]))}' for one in SEARCHES)}.", ""]
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
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare GPMISearchCV with other searches.")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--searches", nargs="+", choices=list(SEARCHES), default=list(SEARCHES))
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if not arguments.report:
        play(arguments.searches, arguments.seeds)
    report()


if __name__ == "__main__":
    main()
