"""Functions on which the rules for batches were chosen. None of them is on a page, and each seed has its own function.

`family(name, seed)` takes "hartmann-like-5", "hill-6" and the like; the number is the dimension.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from .functions import A6, WEIGHTS, Array, Problem

Function: TypeAlias = Callable[[Array], float]


@lru_cache
def family(name: str, seed: int) -> tuple[Problem, float]:
    """Return the problem and its spread: the maximum minus the mean of f."""
    kind, _, d = name.rpartition("-")
    f, starts = {"hartmann-like": hartmann_like, "hill": hill}[kind](int(d), seed)
    box, rng = [(0.0, 1.0)] * int(d), np.random.default_rng(0)
    best = maximum(f, np.concatenate([starts, rng.random((6, int(d)))]), box)
    mean = float(np.mean([f(x) for x in rng.random((4_000, int(d)))]))
    return Problem(name, box, f, best), best - mean


def hartmann_like(d: int, seed: int) -> tuple[Function, Array]:
    """Return four bumps at random centres, with Hartmann's weights and shuffled widths."""
    rng = np.random.default_rng([77, seed, d])
    a = np.stack([row[rng.permutation(6)[:d]] for row in A6])
    centres = rng.random((4, d))
    return lambda x: float(WEIGHTS @ np.exp(-np.sum(a * (x - centres) ** 2, axis=1))), centres


def hill(d: int, seed: int) -> tuple[Function, Array]:
    """Return a hill with rotated axes of different widths, and a lower hill."""
    rng = np.random.default_rng([79, seed, d])
    top, other = 0.25 + 0.5 * rng.random(d), rng.random(d)
    axes, _ = np.linalg.qr(rng.standard_normal((d, d)))
    s = axes @ np.diag(np.exp(rng.uniform(0.0, 2.5, d))) @ axes.T

    def f(x: Array) -> float:
        return float(np.exp(-0.5 * (x - top) @ s @ (x - top)) + 0.3 * np.exp(-4.0 * np.sum((x - other) ** 2)))

    return f, top[None]


def maximum(f: Function, starts: Array, box: list[tuple[float, float]]) -> float:
    """Return the best value of climbs from all starts."""
    from scipy.optimize import minimize

    options = {"ftol": 1e-15, "gtol": 1e-12}
    return max(-float(minimize(lambda z: -f(z), z, bounds=box, options=options).fun) for z in starts)
