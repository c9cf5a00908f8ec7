"""The paper's tasks, and what breaks its policy: functions on finite sets, each with a known prior."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

import gpmi
from paper.simulate import Problem, triangular_root
from paper.tasks import TASKS

from .functions import Array


@dataclass(frozen=True)
class Scenario:
    """f on a finite set with its prior, in standard deviations; how many queries are random, and how many follow."""

    problem: Problem
    initial: int
    horizon: int


def arms(seed: int) -> Scenario:
    """Return 50 independent N(0, 1) arms, noise sd 0.1."""
    f = np.random.default_rng([seed, 50]).standard_normal(50)
    return Scenario(Problem.given(np.eye(50), f, 0.1, 0.01), initial=0, horizon=2000)


def line(lengthscale: float) -> Callable[[int], Scenario]:
    """Return a maker of draws of the squared-exponential process on 300 points of [0, 1], noise sd 0.1."""

    def make(seed: int) -> Scenario:
        covariance, root = _line(lengthscale)
        f = root @ np.random.default_rng([seed, 300]).standard_normal(300)
        return Scenario(Problem.given(covariance, f, 0.1, 0.01), initial=0, horizon=2000)

    return make


@lru_cache
def _line(lengthscale: float) -> tuple[Array, Array]:
    x = np.linspace(0.0, 1.0, 300)[:, None]
    covariance = gpmi.kernels.RBF(lengthscale=lengthscale)(x, x)
    return covariance, triangular_root(covariance)


def paper(name: str) -> Callable[[int], Scenario]:
    """Return a maker of one of the paper's tasks: ten random initial points, T = 200."""

    def make(seed: int) -> Scenario:
        return Scenario(_problem(name, seed if name.startswith("generated") else 0), initial=10, horizon=200)

    return make


@lru_cache(maxsize=4)
def _problem(name: str, seed: int) -> Problem:
    return Problem.of(TASKS[name].sample(np.random.default_rng([zlib.crc32(name.encode()), seed])))


HARD = {"50 arms": arms, **{f"line, lengthscale {v:g}": line(v) for v in (0.01, 0.05, 0.2)}}
SCENARIOS: dict[str, Callable[[int], Scenario]] = {**{name: paper(name) for name in TASKS}, **HARD}
