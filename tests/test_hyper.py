"""The fit: its gradient, and what it finds."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest

from gpmi import Posterior, hyper, kernels


def draw(n: int, d: int, lengthscale: list[float], noise_var: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    f = Posterior.prior(kernels.Matern(nu=2.5, lengthscale=lengthscale), 0.0).sample(x, rng)[0]
    return x, f + np.sqrt(noise_var) * rng.standard_normal(n)


def test_the_loss_is_minus_evidence_and_prior_and_its_gradient_is_the_difference_quotient() -> None:
    x, y = draw(20, 3, [0.3, 0.5, 0.9], 0.01, 0)
    e = hyper._Evidence(x, y, np.array([0, 1, 1]), None)
    q = e.centre + 0.3
    _, gradient = e.loss(q)
    for j, step in enumerate(1e-6 * np.eye(len(q))):
        assert gradient[j] == pytest.approx((e.loss(q + step)[0] - e.loss(q - step)[0]) / 2e-6, rel=1e-5, abs=1e-6)
    variance, lengthscale, noise = e.unpack(q)
    mean = e.mean(q)
    p = Posterior.prior(kernels.Matern(nu=2.5, lengthscale=lengthscale, variance=variance), noise, mean).condition(x, y)
    off = (q - e.centre) / e.width
    want = -p.log_evidence - 10 * np.log(2 * np.pi) + 0.5 * (mean**2 + off @ off)
    assert e.loss(q)[0] == pytest.approx(want, rel=1e-9)
    around = [
        Posterior.prior(p.kernel, noise, m).condition(x, y).log_evidence - m * m / 2
        for m in mean + np.array([-1e-3, 0, 1e-3])
    ]
    assert around[1] == max(around)


def test_it_finds_lengthscales_and_noise_of_a_draw_in_the_users_units() -> None:
    x, y = draw(150, 2, [0.2, 0.8], 0.04, 1)
    prior = hyper.fit(100.0 * x, 5.0 * y + 1000.0, np.array([100.0, 100.0]), (0, 1))
    assert isinstance(prior.kernel, kernels.Matern) and isinstance(prior.kernel.lengthscale, tuple)
    l0, l1 = prior.kernel.lengthscale
    assert 12 < l0 < 33 and 40 < l1 < 200
    assert 0.5 < prior.noise_var / (25 * 0.04) < 2.0
    assert 990 < prior.mean < 1010


def test_a_fit_is_unchanged_when_x_and_y_change_their_units() -> None:
    x, y = draw(40, 2, [0.3, 0.5], 0.01, 2)
    a = hyper.fit(x, y, np.ones(2), (0, 1))
    b = hyper.fit(7.0 * x, 1e6 * y - 3e5, np.full(2, 7.0), (0, 1))
    assert isinstance(a.kernel, kernels.Matern) and isinstance(b.kernel, kernels.Matern)
    np.testing.assert_allclose(b.kernel.lengthscale, 7.0 * np.array(a.kernel.lengthscale), rtol=1e-3)
    assert b.noise_var == pytest.approx(1e12 * a.noise_var, rel=1e-2)


def test_coordinates_of_one_parameter_share_a_lengthscale() -> None:
    x, y = draw(30, 3, [0.3, 0.5, 0.5], 0.01, 3)
    prior = hyper.fit(x, y, np.ones(3), (0, 1, 1))
    assert isinstance(prior.kernel, kernels.Matern) and isinstance(prior.kernel.lengthscale, tuple)
    assert prior.kernel.lengthscale[1] == prior.kernel.lengthscale[2] != prior.kernel.lengthscale[0]


def test_a_given_noise_is_kept() -> None:
    x, y = draw(30, 1, [0.3], 0.01, 3)
    assert hyper.fit(x, y, np.ones(1), (0,), noise_var=0.123).noise_var == 0.123


def test_with_a_given_kernel_only_the_noise_is_learned() -> None:
    x, y = draw(200, 1, [0.3], 0.09, 4)
    k = kernels.Matern(nu=2.5, lengthscale=0.3)
    prior = hyper.fit_noise(x, y, k)
    assert prior.kernel is k and prior.mean == 0.0
    assert 0.06 < prior.noise_var < 0.13


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("kind", ["constant", "zero", "random", "huge", "outlier", "duplicate"])
def test_a_few_points_of_any_kind_give_a_usable_prior_without_warnings(n: int, kind: str) -> None:
    rng = np.random.default_rng(n)
    x = rng.random((n, 2)) if kind != "duplicate" else np.full((n, 2), 0.5)
    y = {
        "constant": np.full(n, 3.0),
        "zero": np.zeros(n),
        "huge": 1e9 * rng.standard_normal(n),
        "outlier": np.append(rng.standard_normal(n - 1), 1e6),
    }.get(kind, rng.standard_normal(n))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prior = hyper.fit(x, y, np.ones(2), (0, 1))
    mu, var = prior.posterior().condition(x, y)(rng.random((5, 2)))
    assert np.all(np.isfinite(mu)) and np.all(var > 0)
    assert isinstance(prior.kernel, kernels.Matern)
    assert np.all(np.array(prior.kernel.lengthscale) > 0.02)


def test_refits_are_a_function_of_n_and_rare_enough() -> None:
    points = [hyper.fit_point(n) for n in range(5000)]
    fits = sorted(set(points))
    assert points[:17] == list(range(17))
    assert all(p <= n < p + max(1, p / 4) for n, p in enumerate(points) if n)
    assert all(b - a >= a // 16 for a, b in pairwise(fits))
    for p in fits:
        chain, q = 0, hyper.warm_point(p)
        while q is not None:
            assert q in fits and q < p
            chain, q = chain + 1, hyper.warm_point(q)
        assert chain <= 4 + np.log2(p + 1)


def test_a_large_fit_looks_at_a_subset_with_the_extremes() -> None:
    x, y = np.arange(1000.0)[:, None], np.sin(np.arange(1000.0))
    xs, ys = hyper._subset(x, y)
    assert len(xs) <= hyper.FIT_POINTS and ys.max() == y.max() and ys.min() == y.min()
    assert xs[0] == 0 and xs[-1] == 999
