"""Hyper-parameters that are None are learned in any kernel: general and fast covariance, gradients, fits, runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import RationalQuadratic

import gpmi
from gpmi import kernels
from gpmi._support.types import Observations
from gpmi.gp.linalg import one_blas_thread
from gpmi.model.fitting.criterion import Criterion, FitSetting
from gpmi.model.fitting.fit import SAMPLES, fit
from gpmi.model.fitting.leave_one_out import LeaveOneOut
from gpmi.model.fitting.schedule import PriorSchedule
from gpmi.model.fitting.template_covariance import template_covariance
from gpmi.model.fitting.unknowns import DEFAULT

TEMPLATES: dict[str, kernels.Kernel] = {
    "matern-3/2": kernels.Matern(nu=1.5, lengthscale=None, variance=None),
    "variance given": kernels.Matern(nu=1.5, lengthscale=None, variance=2.0),
    "lengthscale given": kernels.RBF(lengthscale=[0.3, 0.9, 0.7], variance=None),
    "one lengthscale given": kernels.RBF(lengthscale=[0.3, None, None], variance=None),
    "linear": kernels.Linear(variance=None),
    "sum": kernels.RBF(lengthscale=None) + kernels.Linear(variance=None),
    "product": kernels.RBF(None, None) * kernels.Linear(None),
    "product with a given factor": kernels.RBF(None, 3.0) * kernels.Linear(None),
    "nested": (kernels.RBF(None, None) + kernels.Linear(0.2)) * kernels.Matern(None, None, nu=0.5),
    "own": RationalQuadratic(None, None, alpha=2.0),
}


@pytest.fixture(autouse=True)
def _as_in_the_optimizer() -> Iterator[None]:
    with one_blas_thread:
        yield


@pytest.fixture(params=TEMPLATES, ids=list(TEMPLATES))
def template(request: pytest.FixtureRequest) -> kernels.Kernel:
    return TEMPLATES[request.param]


def data(n: int = 18, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(1.0, 3.0, (n, 3))
    return x, 4.0 * np.sin(2.0 * x[:, 0]) + x[:, 1] + 0.1 * rng.standard_normal(n)


GROUPS = (0, 1, 1)


def setting(template: kernels.Kernel, noise_var: float | None = None, loo: bool = False) -> FitSetting:
    return FitSetting(template, noise_var, np.full(3, 2.0), GROUPS, LeaveOneOut if loo else Criterion)


def criterion(template: kernels.Kernel, x: np.ndarray, y: np.ndarray, **options: Any) -> Criterion:
    return setting(template, **options).criterion(x, (y - y.mean()) / y.std(), float(y.std()))


def direct(c: Criterion, x: np.ndarray, y: np.ndarray, q: np.ndarray, loo: bool) -> float:
    """The loss by inverses of numpy, in the user's units, with the filled kernel alone."""
    n, scale = len(y), y.std()
    r = y - y.mean()
    k = c.covariance.kernel(q)(x, x)
    cov = k + scale**2 * c.noise(q) * np.eye(n) + 1e-10 * np.trace(k) / n * np.eye(n)
    off = (q - c.unknowns.centre) / c.unknowns.width
    if loo:
        cov = cov + scale**2  # the mean is integrated out
        total = 0.0
        for i in range(n):
            rest = np.arange(n) != i
            w = np.linalg.solve(cov[np.ix_(rest, rest)], cov[rest, i])
            var = cov[i, i] - w @ cov[rest, i]
            total += 0.5 * ((r[i] - w @ r[rest]) ** 2 / var + np.log(var / scale**2))
        return float(total + 0.5 * off @ off)
    inverse = np.linalg.inv(cov)
    m = inverse.sum(axis=0) @ r / (inverse.sum() + scale**-2)
    logdet = np.linalg.slogdet(cov / scale**2)[1]
    return float(0.5 * ((r - m) @ inverse @ (r - m) + logdet + (m / scale) ** 2 + off @ off))


@pytest.mark.parametrize("loo", [False, True])
@pytest.mark.parametrize("noise_var", [None, 0.3])
def test_the_loss_is_the_direct_one_and_its_gradient_the_difference_quotient(
    template: kernels.Kernel, loo: bool, noise_var: float | None
) -> None:
    x, y = data()
    c = criterion(template, x, y, noise_var=noise_var, loo=loo)
    q = c.unknowns.centre + 0.3 * np.random.default_rng(1).standard_normal(len(c.unknowns.centre))
    q[-1] = np.log(0.03)
    value, gradient = c.loss(q)
    assert value == pytest.approx(direct(c, x, y, q, loo), rel=1e-7)
    quotient = [(c.loss(q + step)[0] - c.loss(q - step)[0]) / 2e-5 for step in 1e-5 * np.eye(len(q))]
    np.testing.assert_allclose(gradient, quotient, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(c.covariance.q_of(c.covariance.kernel(q), 0.03), q, atol=1e-12)


@pytest.mark.parametrize("loo", [False, True])
def test_a_fit_is_where_another_minimiser_of_the_direct_loss_ends(template: kernels.Kernel, loo: bool) -> None:
    """Leave-one-out has several local minima for some templates: there it is one of them."""
    from scipy.optimize import minimize

    x, y = data(30, seed=5)
    c = criterion(template, x, y, loo=loo)
    prior = fit(setting(template, loo=loo), x, y)
    ours = c.covariance.q_of(prior.kernel, prior.noise_var / y.var())
    bounds = list(zip(c.unknowns.lo, c.unknowns.hi, strict=True))
    best = minimize(lambda q: direct(c, x, y, q, loo), ours, method="L-BFGS-B", bounds=bounds)
    assert direct(c, x, y, ours, loo) < best.fun + 0.05
    for start in () if loo else (c.unknowns.centre, c.unknowns.noisy):
        other = minimize(lambda q: direct(c, x, y, q, loo), start, method="L-BFGS-B", bounds=bounds)
        assert best.fun < other.fun + 0.05


def test_the_general_way_is_the_fast_one_for_the_default() -> None:
    x, y = data()
    z, scale = (y - y.mean()) / y.std(), float(y.std())
    fast = setting(DEFAULT).criterion(x, z, scale)
    general = Criterion(template_covariance(DEFAULT.for_dim(3), x, np.full(3, 2.0), GROUPS, scale), z, None)
    for name in ("centre", "width", "lo", "hi", "curvature", "noisy"):
        np.testing.assert_array_equal(getattr(fast.unknowns, name), getattr(general.unknowns, name))
    q = fast.unknowns.noisy + 0.1
    np.testing.assert_allclose(fast.loss(q)[0], general.loss(q)[0], rtol=1e-8)
    np.testing.assert_allclose(fast.loss(q)[1], general.loss(q)[1], rtol=1e-6)
    np.testing.assert_allclose(fast.covariance.kernel(q).theta, general.covariance.kernel(q).theta, rtol=1e-12)


def test_none_is_the_default_template_bit_for_bit() -> None:
    def asked(kernel: kernels.Kernel | None, fit: Any) -> list[list[float]]:
        opt = gpmi.Optimizer([(0.0, 2.0), (-1.0, 1.0)], kernel=kernel, fit=fit, seed=4)
        for _ in range(12):
            x = opt.ask()
            opt.tell(x, float(np.sin(3.0 * x[0]) - x[1] ** 2))
        return [trial.x.tolist() for trial in opt.trials]

    for method in ("map", "loo", "mcmc"):
        assert asked(None, method) == asked(DEFAULT, method)
    assert asked(None, "map") == asked(kernels.Matern([None, None], None), "map")


def test_a_fit_is_unchanged_when_y_and_what_was_given_in_its_units_change_them() -> None:
    x, y = data(40)
    a = fit(setting(kernels.RBF(None, 4.0) + kernels.Linear(None)), x, y)
    b = fit(setting(kernels.RBF(None, 4e6) + kernels.Linear(None)), x, 1e3 * y - 7.0)
    assert a.kernel.theta[1:4] == pytest.approx(b.kernel.theta[1:4], abs=1e-3)
    assert b.kernel.theta[4] - a.kernel.theta[4] == pytest.approx(np.log(1e6), abs=1e-3)
    assert b.noise_var == pytest.approx(1e6 * a.noise_var, rel=1e-2) and b.kernel.first.variance == 4e6


def test_what_is_given_stays_to_the_last_bit_and_parameters_share_a_lengthscale() -> None:
    odd = 0.1 + 0.2
    x, y = data()
    prior = fit(setting(kernels.RBF([odd, None, None], None) + kernels.Linear(odd), 0.123), x, y, rng=_rng())
    assert len(prior.samples) == SAMPLES
    for one in (prior, *prior.samples):
        first, second = one.kernel.first, one.kernel.second
        assert first.lengthscale[0] == odd and second.variance == odd and one.noise_var == 0.123
        assert first.lengthscale[1] == first.lengthscale[2] != odd
    assert len({one.kernel.first.variance for one in prior.samples}) == SAMPLES


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_draws_of_a_template_lie_around_the_most_probable_one(template: kernels.Kernel) -> None:
    x, y = data()
    prior = fit(setting(template), x, y, rng=_rng())
    thetas = np.array([one.kernel.theta for one in prior.samples])
    assert np.all(np.abs(thetas - prior.kernel.theta).mean(axis=0) < 3.0)
    unknown = np.isnan(template.for_dim(3).theta)
    assert np.all(thetas[:, unknown].std(axis=0) > 0.01)


def test_a_true_variance_and_a_true_slope_are_found() -> None:
    rng = np.random.default_rng(3)
    x = rng.random((120, 2))
    true = kernels.RBF([0.2, 0.6], 9.0)
    y = gpmi.Posterior.prior(true, 0.0).sample(x, rng)[0] + 0.3 * rng.standard_normal(120)
    prior = fit(FitSetting(kernels.RBF(None, None), None, np.ones(2), (0, 1)), x, y)
    assert isinstance(prior.kernel, kernels.RBF)
    np.testing.assert_allclose(prior.kernel.lengthscale, [0.2, 0.6], rtol=0.35)
    assert 3.0 < prior.kernel.known_variance < 27.0 and 0.04 < prior.noise_var < 0.2


def test_in_a_product_two_unknown_variances_have_the_prior_of_one() -> None:
    x, y = data()
    one = criterion(kernels.RBF(0.5, None), x, y).unknowns
    two = criterion(kernels.RBF(0.5, None) * kernels.Matern(0.5, None), x, y).unknowns
    assert (two.width[:2] ** 2).sum() == pytest.approx(one.width[0] ** 2)
    c = criterion(kernels.RBF(0.5, None) * kernels.Linear(None), x, y)
    k = c.covariance.kernel(c.unknowns.centre)
    assert k.diagonal(x).mean() == pytest.approx(y.var())
    c = criterion(kernels.RBF(0.5, 7.0) * kernels.Linear(None), x, y)
    assert c.covariance.kernel(c.unknowns.centre).diagonal(x).mean() == pytest.approx(y.var())


@pytest.mark.parametrize("noise_var", [None, 1e-4])
def test_given_parts_that_cannot_explain_y_are_an_event(noise_var: float | None) -> None:
    x, y = data(30)
    template = kernels.Matern(nu=1.5, lengthscale=None)  # variance=1.0
    assert not fit(setting(template, noise_var), x, y / y.std()).events
    (event,) = fit(setting(template, noise_var), x, 1e3 * y).events
    assert event.kind == "clipped" and "None" in event.message
    assert not fit(setting(kernels.Matern(nu=1.5, lengthscale=None, variance=None), noise_var), x, 1e3 * y).events


@pytest.mark.parametrize("scale", [1e-100, 1e-30, 1e-6, 1e6, 1e90])
def test_values_of_any_size_can_be_learned_beside_what_is_given(template: kernels.Kernel, scale: float) -> None:
    import warnings

    x, y = data(12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for noise_var in (None, 0.0):
            prior = fit(setting(template, noise_var), x, scale * y)
            assert not [event for event in prior.events if event.kind == "fit"]
            mu, var = prior.posterior().condition(x, scale * y)(x)
            assert np.all(np.isfinite(mu)) and np.all(np.isfinite(var))


def test_a_transformation_is_considered_only_where_everything_is_unknown() -> None:
    x = np.random.default_rng(0).random((16, 1))
    y = np.exp(20.0 * x[:, 0])

    def warp(kernel: kernels.Kernel | None, noise_var: float | None = None) -> Any:
        return PriorSchedule(kernel, noise_var, "map", span=np.ones(1), groups=(0,), seed=0)(
            16, Observations.of(x, y)
        ).warp

    assert warp(None).bends and warp(kernels.Matern(None, None, nu=1.5)).bends
    assert warp(kernels.RBF(None, None) + kernels.Linear(None)).bends
    assert not warp(kernels.Matern(None, nu=1.5)).bends
    assert not warp(kernels.Matern(None, None, nu=1.5), 1e-2).bends
    assert not warp(kernels.RBF(0.3, None) + kernels.Linear(None)).bends


def test_the_schedule_validates_its_arguments() -> None:
    known = {"span": np.ones(2), "groups": (0, 1), "seed": 0}
    assert PriorSchedule(kernels.RBF(0.3), 0.1, "map", **known).is_fixed
    assert not PriorSchedule(kernels.RBF(None), 0.1, "map", **known).is_fixed
    with pytest.raises(ValueError, match=r"fit is .loo., but kernel is given"):
        PriorSchedule(kernels.RBF(0.3), None, "loo", **known)
    PriorSchedule(kernels.RBF(None), None, "loo", **known)
    with pytest.raises(ValueError, match="kernel has 3 lengthscales but the space has 2"):
        PriorSchedule(kernels.RBF([None, None, 1.0]), None, "map", **known)
    with pytest.raises(ValueError, match="noise_var is -1"):
        PriorSchedule(None, -1.0, "map", **known)


MIXED = {"x": (0.0, 1.0), "n": gpmi.Int(1, 8), "c": ["a", "b", "c"]}
CANDIDATES = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 15)] * 2), -1).reshape(-1, 2)


def bowl(p: Any) -> float:
    if isinstance(p, dict):
        return float(-((p["x"] - 0.3) ** 2) - 0.02 * (p["n"] - 5) ** 2 - 0.2 * (p["c"] != "b"))
    return float(-((p[0] - 0.3) ** 2) - (p[1] - 0.6) ** 2)


@pytest.mark.parametrize("method", ["map", "loo", "mcmc"])
@pytest.mark.parametrize("space", [[(0.0, 1.0)] * 2, MIXED, CANDIDATES], ids=["box", "mixed", "candidates"])
@pytest.mark.parametrize(
    "kernel",
    [
        kernels.Matern(nu=1.5, lengthscale=None, variance=None),
        kernels.RBF(lengthscale=None) + kernels.Linear(variance=None),
        RationalQuadratic(None, None),
    ],
    ids=["matern-3/2", "sum", "own"],
)
@pytest.mark.slow
def test_a_small_function_is_optimised_with_a_template(kernel: kernels.Kernel, space: Any, method: Any) -> None:
    budget = 14 if method == "mcmc" else 18
    r = gpmi.maximize(bowl, space, budget=budget, aim="earn", kernel=kernel, fit=method, seed=1)
    assert bowl(r.recommended) > -0.02
    assert not [event for event in r.events if event.kind in ("fit", "clipped")]
    assert r.posterior is not None and not r.posterior.kernel.unknown
    again = gpmi.Optimizer(space, aim="earn", kernel=kernel, fit=method, seed=1, budget=budget)
    again.replay(r.trials[:-1])
    np.testing.assert_array_equal(again.space.encode(again.ask()), again.space.encode(r.trials[-1].x))
