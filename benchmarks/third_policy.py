"""Does a third policy help `Find` where `then` repeats itself? Until 2026-11 GP-UCB had every second such query.

python benchmarks/third_policy.py [--seeds 50]     prints the table of docs/benchmarks/third_policy.md; 10 minutes
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import harness  # first: it sets the number of threads
import numpy as np
from problems.functions import Array

import gpmi
from gpmi.optimizer.duplicates import is_near
from gpmi.policies.find import IN_BATCH

BUDGET, FIRST_SEED, EQUAL = 60, 2000, 1e-5
CENTRES = np.array([[3.0, 5.0], [5.0, 2.0], [2.0, 1.0], [1.0, 4.0], [7.0, 9.0]])
HEIGHTS = np.array([1.0, 2.0, 5.0, 2.0, 3.0])


def eggholder(x: Array) -> float:
    a, b = x[0], x[1] + 47.0
    return float(b * np.sin(np.sqrt(abs(a / 2 + b))) + a * np.sin(np.sqrt(abs(a - b))))


def schwefel(x: Array) -> float:
    return float(np.sum(x * np.sin(np.sqrt(np.abs(x)))))


def langermann(x: Array) -> float:
    r = ((CENTRES - x) ** 2).sum(axis=1)
    return float(-np.sum(HEIGHTS * np.exp(-r / np.pi) * np.cos(np.pi * r)))


def rastrigin(x: Array) -> float:
    return float(-np.sum(x**2 - 10 * np.cos(2 * np.pi * x) + 10))


def griewank(x: Array) -> float:
    return float(np.prod(np.cos(x / np.sqrt(np.arange(1, len(x) + 1)))) - 1 - np.sum(x**2) / 4000)


def shubert(x: Array) -> float:
    j = np.arange(1.0, 6.0)
    return float(-np.prod([np.sum(j * np.cos((j + 1) * c + j)) for c in x]))


def with_choice(p: dict[str, Any]) -> float:
    return rastrigin(np.array([p["a"], p["b"]])) - {"u": 0.0, "v": 3.0, "w": 6.0}[p["c"]]


def smooth(p: dict[str, Any]) -> float:
    """Return the value of the recorded runs on a mixed space."""
    return float(-((np.log10(p["lr"]) + 3) ** 2) - 0.1 * (p["layers"] - 5) ** 2 + (p["act"] == "tanh") - p["drop"])


MIXED = {"lr": gpmi.Real(1e-5, 1e-1, log=True), "layers": gpmi.Int(1, 8)}
MIXED |= {"act": ["relu", "tanh", "elu"], "drop": (0.0, 0.5)}
PROBLEMS: dict[str, tuple[Any, Callable[[Any], float]]] = {
    "eggholder": ([(-512.0, 512.0)] * 2, eggholder),
    "schwefel-2": ([(-500.0, 500.0)] * 2, schwefel),
    "langermann": ([(0.0, 10.0)] * 2, langermann),
    "rastrigin-2": ([(-5.12, 5.12)] * 2, rastrigin),
    "griewank-2": ([(-20.0, 20.0)] * 2, griewank),
    "shubert": ([(-10.0, 10.0)] * 2, shubert),
    "mixed": (MIXED, smooth),
    "rastrigin-2 with a choice": ({"a": (-1.5, 2.5), "b": (-1.5, 2.5), "c": ["u", "v", "w"]}, with_choice),
}


@dataclass(frozen=True, repr=False)
class WithThird(gpmi.Find):
    """Find as it was: after two duplicates in a row the point of GP-UCB, also while nothing is pending."""

    acted: ClassVar[list[int]] = []

    def _choose_by_score(self, search: Any) -> Any:
        point = super()._choose_by_score(search)
        *before, last = search.log.rows.values()
        space = search.subspace.space
        if search.log.pending or not (search.is_duplicate(point) and is_near(last, space, before)):
            return point
        self.acted.append(1)
        return search.best_new(IN_BATCH)


def best(problem: str, seed: int, policy: gpmi.Policy) -> float:
    space, f = PROBLEMS[problem]
    best = gpmi.maximize(f, space, budget=BUDGET, seed=seed, policy=policy).y
    assert best is not None
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=50)
    rows = []
    for problem in PROBLEMS:
        acted = better = worse = 0
        for seed in range(FIRST_SEED, FIRST_SEED + parser.parse_args().seeds):
            WithThird.acted.clear()
            one = best(problem, seed, WithThird())
            if WithThird.acted:  # otherwise both are the same run
                acted += 1
                change = (one - best(problem, seed, gpmi.Find())) / max(1.0, abs(one))
                better, worse = better + (change > EQUAL), worse + (change < -EQUAL)
        rows.append([problem, acted, better, worse])
    print("\n".join(harness.table(["problem", "acted in runs", "better with it", "worse with it"], rows)))


if __name__ == "__main__":
    main()
