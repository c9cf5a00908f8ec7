"""Learn the priors of the fixed tasks and write them down: python -m paper.tasks.priors."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.kernels import RBF
from gpmi.gp.linalg import invert, one_blas_thread
from gpmi.model.fitting.covariance import Pairs
from gpmi.model.fitting.leave_one_out import leave_one_out
from paper.tasks.fixed import FIXED, by_coordinate
from paper.tasks.task import Task

NOISE_FLOOR = 1e-6  # of the values' variance: keeps K + noise_var I invertible where there is no noise
SEED = 0
# Variance, lengthscale and noise_var. With a variance of 1e4 and the noise at its floor the condition of C is
# 5e12 and P has three digits left: the limit is our choice, and it decides the priors of himmelblau
# and goldstein-price. They are polynomials, limits of ever longer lengthscales with ever larger variances, and the
# likelihood grows without end along that path.
_LIMITS = ((1e-2, 1e4), (1e-2, 1e1), (NOISE_FLOOR, 1.0))
_STARTS = tuple(product((1.0, 100.0), (0.05, 0.2, 1.0), (1e-4,)))


def bounds(scales: int) -> list[tuple[float, float]]:
    """The limits of theta = log(variance, lengthscales, noise_var)."""
    variance, scale, noise_var = ((math.log(lo), math.log(hi)) for lo, hi in _LIMITS)
    return [variance, *[scale] * scales, noise_var]


def half(task: Task) -> tuple[Array, Array]:
    """Half of the rows at random, with observations as noisy as the task's: x (n // 2, d), y (n // 2,)."""
    rng = np.random.default_rng(SEED)
    rows = rng.permutation(len(task.values))[: len(task.values) // 2]
    return task.candidates[rows], np.array([task.observe(row, rng) for row in rows])


@one_blas_thread
def _leave_one_out(theta: Array, x: Array, y: Array) -> tuple[float, Array]:
    """sum_i log N(y_i; mu_-i, var_-i) and its gradient at theta = log(variance, lengthscales, noise_var). O(n^3).

    There is one lengthscale, or one for each coordinate. The mean is 0, as in the paper; see
    `gpmi.model.fitting.leave_one_out.leave_one_out`.
    """
    noise_var = math.exp(theta[-1])
    kernel = RBF() if len(theta) == 3 else RBF(lengthscale=np.ones(len(theta) - 2))
    k, pull = kernel.with_theta(theta[:-1]).with_theta_pullback(x)
    solved = invert(k + noise_var * np.eye(len(x)), y)
    if solved is None:
        return -math.inf, np.zeros(len(theta))
    pairs = Pairs(len(x))
    loss, by_c = leave_one_out(pairs.matrix(solved.lower.ravel()[pairs.at], solved.lower.diagonal()), y)
    value = -loss - 0.5 * len(y) * math.log(2.0 * math.pi)
    return value, -0.5 * np.append(pull(by_c), noise_var * np.trace(by_c))


Learned = dict[str, float | list[float]]


def learn(x: Array, y: Array) -> Learned:
    """The squared exponential, of one lengthscale, and the noise with the largest leave-one-out likelihood.

    Leave-one-out as the cross-validation is our choice. The best of several climbs.
    """
    return _climbed(_STARTS, x, y)


def learn_by_coordinate(x: Array, y: Array, isotropic: Learned) -> Learned:
    """The same with one lengthscale for each coordinate, by climbs from `isotropic` and from two other priors."""
    best = (isotropic["variance"], isotropic["lengthscale"], isotropic["noise_var"])
    starts = (best, (1.0, 0.2, 1e-4), (100.0, 1.0, 1e-4))
    return _climbed([(variance, *[scale] * x.shape[1], noise) for variance, scale, noise in starts], x, y)


@one_blas_thread
def _climbed(starts: Sequence[Sequence[Any]], x: Array, y: Array) -> Learned:
    """The best of the climbs from these variances, lengthscales and noise variances."""
    from scipy.optimize import minimize

    scales = len(starts[0]) - 2

    def loss(theta: Array) -> tuple[float, Array]:
        value, gradient = _leave_one_out(theta, x, y)
        return (-value / len(y), -gradient / len(y)) if math.isfinite(value) else (1e10, np.zeros(len(theta)))

    climbs = [minimize(loss, np.log(start), jac=True, method="L-BFGS-B", bounds=bounds(scales)) for start in starts]
    best = min(climbs, key=lambda climb: float(climb.fun))
    variance, *lengthscale, noise_var = (float(f"{value:.6g}") for value in np.exp(best.x))
    return {
        "variance": variance,
        "lengthscale": lengthscale if scales > 1 else lengthscale[0],
        "noise_var": noise_var,
        "log_likelihood_per_row": float(f"{-best.fun:.6g}"),
    }


def main() -> None:
    """Learn all of them and replace priors.json."""
    learned: dict[str, Learned] = {}
    for source in FIXED:
        x, y = half(source.sample(np.random.default_rng()))
        learned[source.name] = learn(x, y)
        learned[by_coordinate(source).name] = learn_by_coordinate(x, y, learned[source.name])
    Path(__file__).with_name("priors.json").write_text(json.dumps(learned, indent=2) + "\n")


if __name__ == "__main__":
    main()
