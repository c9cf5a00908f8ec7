"""What the paper's withdrawn theorem and the one that stands say about the regret in the erratum's settings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpmi import theory
from gpmi._support.types import Array
from paper.experiment import DELTA, ERRATUM
from paper.simulate import Problem, Run


class Gamma(NamedTuple):
    """low <= gamma_T <= high; equal where gamma_T is known."""

    low: float
    high: float


class Bounds(NamedTuple):
    """Bounds on R_T in one setting of the erratum, with the upper end of gamma_T."""

    gamma: Gamma
    claimed: float  # on R_T of GP-MI with probability 1 - 1e-6: Theorem 2, withdrawn
    kept: float  # on the mean of R_T of gpmi's default: docs/proofs.md


def bounds_of(task: str, horizon: int) -> Bounds:
    """Both bounds after `horizon` queries."""
    source = ERRATUM[task]
    noise_var, size = source.noise_sd**2, len(source.x)
    gamma = largest_information(source.kernel(source.x, source.x), noise_var, horizon)
    return Bounds(
        gamma,
        theory.theorem_2(gamma.high, noise_var=noise_var, delta=DELTA).value,
        theory.reinvest(gamma.high, horizon, noise_var=noise_var, size=size).value,
    )


def largest_information(covariance: Array, noise_var: float, horizon: int) -> Gamma:
    """A bracket around gamma_T of points with this covariance (m, m), by the greedy choice. O(T^2 m).

    That of `theory.greedy`, whose last digit would depend on the processor. Where the points are independent the greedy
    choice is the best one: what a point adds depends only on how often it was taken, and falls with that.
    """
    m = len(covariance)
    problem = Problem.given(covariance, np.zeros(m), 0.0, noise_var)
    run = Run(problem, np.random.default_rng(0), 0, horizon)  # the values observed do not matter
    for _ in range(horizon):
        run.observe(int(np.argmax(run.var)))
    gains = 0.5 * np.log1p(run.queried_var / noise_var)
    information = np.add.accumulate(gains)
    total = float(information[-1])
    if np.all(covariance == np.diag(covariance.diagonal())):
        return Gamma(total, total)
    # After t points T others add at most T times the largest gain that is left.
    return Gamma(total, float(np.min(information - gains + horizon * gains)))
