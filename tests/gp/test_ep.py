"""Expectation propagation: against long MCMC, quadrature, brute force and finite differences."""

from __future__ import annotations

import json

import numpy as np
import pytest
from ep_reference import FILE, DataSet, with_failures, with_outliers
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import multivariate_normal, t

from gpmi.gp.approximate.ep import Sites, expectation_propagation, probit
from gpmi.gp.approximate.student import NU, log_student, normal_score, student
from gpmi.gp.approximate.success import Requirement, SuccessProbability
from gpmi.gp.kernels import RBF, Linear, Matern
from gpmi.gp.posterior import Posterior
from gpmi.model.fitting.classifier_prior import fit_classifier

LONG = json.loads(FILE.read_text())


def sites_of(data: DataSet) -> Sites:
    k, zero = data.kernel(data.x, data.x), np.zeros(len(data.x))
    seen = student(data.seen, np.full(len(data.x), data.scale2)) if data.scale2 else probit(data.seen)
    return expectation_propagation(k, zero, seen)


@pytest.mark.parametrize("i", range(10))
def test_probabilities_of_success_are_those_of_long_mcmc(i: int) -> None:
    data, long = with_failures()[i], LONG["failures"][i]
    sites = sites_of(data)
    posterior = sites.posterior(data.kernel, data.x)
    p = SuccessProbability((Requirement(posterior),))(data.z)
    mu, var = posterior(data.z)
    assert sites.converged and sites.events == ()
    np.testing.assert_allclose(p, long["p"], rtol=0.0, atol=0.02)
    # 2 % of the prior sd for the means
    np.testing.assert_allclose(mu, long["mean"], rtol=0.02, atol=0.02 * np.sqrt(data.kernel.variance))
    np.testing.assert_allclose(var, long["var"], rtol=0.1, atol=0.02 * data.kernel.variance)


@pytest.mark.parametrize("i", range(10))
def test_means_under_heavy_tails_are_those_of_long_mcmc(i: int) -> None:
    data, long = with_outliers()[i], LONG["outliers"][i]
    sites = sites_of(data)
    mu, var = sites.posterior(data.kernel, data.x)(data.z)
    # On one of the sets it has no fixed point, a cavity with a negative variance: then it says so, and is close still.
    assert sites.converged == (i != 1) and len(sites.events) == (i == 1)
    np.testing.assert_allclose(mu, long["mean"], rtol=0.02, atol=0.02 * np.sqrt(data.kernel.variance))
    np.testing.assert_allclose(var, long["var"], rtol=0.3, atol=0.1 * data.kernel.variance)


def test_one_observation_is_exact() -> None:
    """With one site the moments are those of the true posterior, which quadrature knows."""
    for success in (True, False):
        sites = expectation_propagation(np.array([[3.0]]), np.array([0.7]), probit(np.array([success])))

        def density(f: float, success: bool = success) -> float:
            return float(ndtr(f if success else -f) * np.exp(-0.5 * (f - 0.7) ** 2 / 3.0) / np.sqrt(6.0 * np.pi))

        z = quad(density, -20, 20)[0]
        mean = quad(lambda f: f * density(f), -20, 20)[0] / z
        var = quad(lambda f: f**2 * density(f), -20, 20)[0] / z - mean**2
        np.testing.assert_allclose([sites.log_evidence, sites.mean[0], sites.var[0]], [np.log(z), mean, var], rtol=1e-5)


def test_the_evidence_of_two_signs_is_that_of_an_orthant() -> None:
    """P(y_1, y_2) under a probit is the probability of an orthant of N(0, K + I)."""
    k = np.array([[4.0, 3.0], [3.0, 4.0]])
    sites = expectation_propagation(k, np.zeros(2), probit(np.array([True, True])))
    exact = multivariate_normal(np.zeros(2), k + np.eye(2)).cdf(np.zeros(2))
    assert sites.log_evidence == pytest.approx(np.log(exact), abs=5e-3)


def test_the_sites_are_observations_of_a_posterior() -> None:
    data = with_failures()[5]
    sites = sites_of(data)
    mu, var = sites.posterior(data.kernel, data.x)(data.x)
    np.testing.assert_allclose(mu, sites.mean, atol=1e-7)
    np.testing.assert_allclose(var, sites.var, atol=1e-7)


@pytest.mark.parametrize(("mean", "var", "y", "scale"), [(0.0, 1.0, 0.3, 0.1), (1.0, 0.5, -4.0, 0.1), (0, 2, 50, 0.3)])
def test_the_moments_under_a_t_are_those_of_quadrature(mean: float, var: float, y: float, scale: float) -> None:
    def density(f: float) -> float:
        return float(
            t.pdf((y - f) / scale, NU) / scale * np.exp(-0.5 * (f - mean) ** 2 / var) / np.sqrt(2 * np.pi * var)
        )

    points = sorted({mean, min(max(y, mean - 12), mean + 12)})
    lo, hi = mean - 15 * np.sqrt(var), mean + 15 * np.sqrt(var)
    z = quad(density, lo, hi, points=points, limit=500)[0]
    first = quad(lambda f: f * density(f), lo, hi, points=points, limit=500)[0] / z
    second = quad(lambda f: (f - first) ** 2 * density(f), lo, hi, points=points, limit=500)[0] / z
    got = student(np.array([y]), np.array([scale**2]))(np.array([mean]), np.array([var]))
    np.testing.assert_allclose([got.log_z[0], got.mean[0], got.var[0]], [np.log(z), first, second], rtol=1e-6)


def test_a_residual_in_normal_units_is_a_quantile() -> None:
    """Without variance of f it is the quantile of t; with it the law is that of a sum, drawn here."""
    from scipy.stats import norm

    for off in (-30.0, -1.0, 0.0, 0.4, 5.0):
        assert normal_score(off, 0.0, 4.0) == pytest.approx(norm.ppf(t.cdf(off / 2.0, NU)), abs=1e-6)
    rng = np.random.default_rng(0)
    draws = rng.standard_normal(400_000) * 1.5 + 0.5 * rng.standard_t(NU, 400_000)
    scores = [normal_score(off, 1.5**2, 0.25) for off in (-3.0, 0.5, 2.0)]
    np.testing.assert_allclose(ndtr(scores), [np.mean(draws <= off) for off in (-3.0, 0.5, 2.0)], atol=3e-3)


def test_the_density_of_a_t() -> None:
    off = np.array([-3.0, 0.0, 1e3])
    np.testing.assert_allclose(log_student(off, np.full(3, 4.0)), t.logpdf(off / 2, NU) - np.log(2))


def test_an_outlier_pulls_the_less_the_farther_it_is() -> None:
    x = np.linspace(0, 1, 9)[:, None]
    k = RBF(lengthscale=0.5)(x, x)
    pulls = []
    for far in (0.1, 1.0, 100.0, 1e6):
        y = np.zeros(9)
        y[4] = far
        sites = expectation_propagation(k, np.zeros(9), student(y, np.full(9, 0.01)))
        assert sites.converged
        pulls.append(sites.mean[4])
    assert pulls[0] > pulls[1] > pulls[2] > pulls[3] >= 0.0
    assert pulls[3] < 1e-3


def test_sharp_edges_converge_also_after_a_step_that_was_too_long() -> None:
    """A function of variance 1e7 that changes its sign between points ever closer to each other."""
    rng = np.random.default_rng(45)
    far, near = rng.random((30, 3)), 0.5 + rng.standard_normal((20, 3)) * 0.1 * 0.7 ** np.arange(20)[:, None]
    x = np.concatenate([far, near])
    k = Matern(lengthscale=0.6, variance=1e7)(x, x)
    sites = expectation_propagation(k, np.full(50, 1e3), probit(x.sum(axis=1) < 1.5))
    assert sites.converged and sites.rounds < 100


def test_failed_convergence_is_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpmi.gp.approximate.ep.ROUNDS", 2)
    (event,) = sites_of(with_failures()[4]).events
    assert event.kind == "not converged" and "2 rounds" in event.message


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_the_gradient_of_a_chance_is_that_of_finite_differences(spread: float) -> None:
    rng = np.random.default_rng(3)
    x, z = rng.random((12, 2)), rng.random((7, 2))
    posteriors = [
        Posterior.prior(Matern(lengthscale=0.4), 0.01).condition(x, np.sin(5 * x).sum(axis=1) - shift)
        for shift in (0.0, 0.5)
    ]
    chance = SuccessProbability(
        (Requirement(posteriors[0], 0.1, 1.0, spread), Requirement(posteriors[1], -0.3, -1.0, spread))
    )
    log, gradient = chance.log_with_gradient(z)
    np.testing.assert_allclose(log, np.log(chance(z)), atol=1e-12)
    for j in range(2):
        step = np.zeros(2)
        step[j] = 1e-6
        slope = (chance.log(z + step) - chance.log(z - step)) / 2e-6
        np.testing.assert_allclose(gradient[:, j], slope, rtol=1e-4, atol=1e-5)


def test_the_fit_of_a_classifier_descends_by_the_right_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {}

    def noted(f, begin, *rest):
        seen["f"], seen["q"] = f, begin.q
        return begin

    monkeypatch.setattr("gpmi.model.fitting.classifier_prior.minimum_in_box", noted)
    rng = np.random.default_rng(1)
    x = rng.random((25, 3))
    fit_classifier(x, x[:, 0] + 0.3 * x[:, 1] < 0.8, np.ones(3), (0, 1, 1))
    f, q = seen["f"], seen["q"] + 0.2
    _, gradient = f(q)
    slopes = [(f(q + 1e-4 * e)[0] - f(q - 1e-4 * e)[0]) / 2e-4 for e in np.eye(len(q))]
    np.testing.assert_allclose(gradient, slopes, atol=1e-4)


def test_a_classifier_learns_which_parameter_matters() -> None:
    rng = np.random.default_rng(2)
    x = rng.random((40, 3))
    success = x[:, 1] < 0.55
    classes = fit_classifier(x, success, np.ones(3), (0, 1, 2))
    lengths = np.exp(classes.kernel.theta[1:])
    assert lengths[1] < 0.5 * min(lengths[0], lengths[2])
    posterior = classes.sites(x, success).posterior(classes.kernel, x, classes.mean)
    z = rng.random((500, 3))
    right = SuccessProbability((Requirement(posterior),)).likely(z) == (z[:, 1] < 0.55)
    assert right.mean() > 0.93


def test_a_point_at_which_the_kernel_is_zero_is_known_and_teaches_nothing() -> None:
    """A linear kernel at the origin: f is 0 there, whatever was told."""
    x = np.array([[0.0], [1.0], [0.5]])
    kernel = RBF(1.0, 1.0) * Linear(variance=2.0)
    likelihood = student(np.array([5.0, 1.0, 0.7]), np.full(3, 0.01))
    sites = expectation_propagation(kernel(x, x), np.zeros(3), likelihood)
    others = expectation_propagation(kernel(x[1:], x[1:]), np.zeros(2), student(np.array([1.0, 0.7]), np.full(2, 0.01)))
    assert sites.converged and np.all(sites.noise > 0.0)
    z = np.array([[0.0], [0.3], [1.0]])
    mu, var = sites.posterior(kernel, x)(z)
    expected = others.posterior(kernel, x[1:])(z)
    assert mu[0] == 0.0 and var[0] == 0.0
    np.testing.assert_allclose((mu, var), expected, rtol=1e-5, atol=1e-9)
