"""Any few observations give a finite suggestion inside the space, without an exception and without a warning."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import gpmi
from gpmi import Optimizer, kernels
from gpmi.search.initial_design import design_of

TEMPLATES = {  # by the seed modulo 20; the default otherwise
    1: kernels.Matern(nu=1.5, lengthscale=None, variance=None),
    3: kernels.RBF(lengthscale=None) + kernels.Linear(variance=None),
    7: kernels.RBF(None, None) * kernels.Linear(None),
    9: kernels.RBF(lengthscale=None),
}


def a_space(rng: np.random.Generator) -> Any:
    """A box, named parameters of all kinds, or candidates, of any dimension from 1 to 30."""
    d = int(rng.choice([1, 1, 2, 3, 6, 12, 30]))
    kind = rng.choice(["box", "mixed", "candidates"], p=[0.5, 0.3, 0.2])
    if kind == "candidates":
        return rng.standard_normal((int(rng.integers(1, 60)), d)) * 10.0 ** rng.integers(-6, 7)
    if kind == "mixed":
        kinds: list[Any] = [
            (0.0, 1.0),
            gpmi.Real(1e-6, 1e2, log=True),
            gpmi.Int(1, 8),
            gpmi.Int(1, 1000, log=True),
            ["a", "b", "c"],
            [True, False],
        ]
        return {f"p{j}": kinds[int(rng.integers(len(kinds)))] for j in range(d)}
    lo = rng.standard_normal(d) * 10.0 ** rng.integers(-6, 7)
    return [(float(a), float(a + w)) for a, w in zip(lo, 10.0 ** rng.uniform(-3.0, 6.0, d), strict=True)]


def values(n: int, rng: np.random.Generator) -> np.ndarray:
    """n observations of a nasty kind."""
    y = rng.standard_normal(n)
    kind = rng.choice(["plain", "constant", "zero", "low outlier", "high outlier", "orders", "ties", "offset", "tiny"])
    if kind == "constant":
        y = np.full(n, float(rng.standard_normal() * 10.0 ** rng.integers(-8, 9)))
    elif kind == "zero":
        y = np.zeros(n)
    elif kind == "low outlier":
        y[0] = -1e6
    elif kind == "high outlier":
        y[-1] = 1e6
    elif kind == "orders":
        y = np.sign(y) * 10.0 ** rng.uniform(-5.0, 5.0, n)
    elif kind == "ties":
        y = np.round(y)
    elif kind == "offset":
        y = 1e9 + y
    elif kind == "tiny":
        y = 1e-12 * y
    return np.asarray(y * 10.0 ** rng.choice([0, 0, 0, -30, 30]))


@pytest.mark.parametrize("seed", [*range(20), *(pytest.param(s, marks=pytest.mark.slow) for s in range(20, 100))])
def test_a_few_observations_of_any_kind_give_a_finite_suggestion_in_the_space(seed: int) -> None:
    rng = np.random.default_rng([2014, seed])
    n = int(rng.integers(1, 9))
    goal: Any = rng.choice(["max", "min"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit: Any = "loo" if seed % 10 == 3 else "mcmc" if seed % 10 == 7 else "map"
        kernel = TEMPLATES.get(seed % 20)
        opt = gpmi.Optimizer(a_space(rng), kernel=kernel, fit=fit, n_init=0, seed=seed, goal=str(goal))
        # Points of the space's own design, some of them twice.
        points = [opt.space.decode(row) for row in design_of(opt.space, opt.seed, n)[:n]]
        points += [points[int(rng.integers(len(points)))] for _ in range(n - len(points))]
        if n > 1 and rng.random() < 0.4:
            points[-1] = points[0]
        for x, y in zip(points, values(n, rng), strict=True):
            opt.tell(x, float(y))
        suggestions = [*opt.ask(2), opt.recommend()]
    posterior = opt.posterior
    assert posterior is not None
    for x in suggestions:
        row = opt.space.encode(x)  # refuses what is not in the space
        assert np.all(np.isfinite(row))
        mu, var = posterior(row)
        assert np.isfinite(mu[0]) and np.isfinite(var[0]) and var[0] >= 0.0
    assert [trial.origin for trial in opt.pending] == ["policy"] * 2


@pytest.mark.parametrize(
    "options", [{}, {"goal": "min"}, {"noise": "student"}, {"noise_var": 0.01}, {"fit": "mcmc"}], ids=repr
)
@pytest.mark.parametrize("y", [0.0, 1e6, -3e-7])
def test_while_all_values_are_equal_a_told_point_is_recommended(options: dict[str, Any], y: float) -> None:
    opt = Optimizer([(0.0, 1.0), (0.0, 1.0)], seed=0, **options)
    for _ in range(5):
        opt.tell(opt.ask(), y)
        assert any(np.array_equal(opt.recommend(), trial.x) for trial in opt.trials)
    first = opt.trials[0].x
    assert np.array_equal(opt.recommend(fixed={0: first[0]}), first)


def test_values_that_are_equal_to_the_model_are_equal() -> None:
    """Under heavy-tailed noise 5e-324 underflows to 0: the first of the told points is recommended."""
    opt = Optimizer({"p": ["a", "b", "c"]}, kernel=kernels.RBF(3.0, 100.0), noise="student", noise_var=0.0, seed=0)
    opt.tell({"p": "b"}, 0.0, noise_var=1.0)
    opt.tell({"p": "a"}, 5e-324)
    assert opt.recommend() == {"p": "b"}


def test_a_mean_that_is_larger_elsewhere_is_still_recommended() -> None:
    """The prior mean is 0, and the one value is below it; with a known mean another point may be better, too."""
    opt = Optimizer([(0.0, 1.0)], kernel=kernels.RBF(0.1), noise_var=0.01, seed=0)
    opt.tell([0.2], -1.0)
    assert abs(opt.recommend()[0] - 0.2) > 0.1
    known = Optimizer([(0.0, 1.0)], mean=lambda x: float(x[0]), seed=0)
    known.tell([0.2], 5.0)
    assert known.recommend()[0] == 1.0


@pytest.mark.parametrize("noise", ["normal", "student"])
@pytest.mark.parametrize("noise_var", [None, 0.0, 1e-4])
@pytest.mark.parametrize("values", [[0.0] * 4, [1.0, 1.0, 1.0, 1.5], [1e6, -1e6, 1e6, 2e6]], ids=repr)
def test_values_where_the_kernel_makes_f_certain(noise: Any, noise_var: float | None, values: list[float]) -> None:
    """A linear kernel has the variance 0 at the origin, so that k(x, x) is no unit for the noise."""
    opt = Optimizer(
        [(0.0, 1.0)], kernel=kernels.RBF(1.0) * kernels.Linear(2.0), noise=noise, noise_var=noise_var, seed=0
    )
    for y in values:
        opt.tell([0.0], y)
    assert opt.posterior is not None and np.isfinite(opt.posterior(np.array([[0.0], [0.5]]))).all()
    assert all(trial.surprise is None or np.isfinite(trial.surprise) for trial in opt.trials)
    assert 0.0 <= opt.ask()[0] <= 1.0
