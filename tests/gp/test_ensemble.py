"""An ensemble is S posteriors of one process that differ in their values alone."""

import numpy as np
import pytest

from gpmi import kernels
from gpmi.gp.ensemble import Ensemble
from gpmi.gp.posterior import Posterior

KERNELS = (kernels.Matern(nu=2.5, lengthscale=0.4), kernels.RBF(lengthscale=0.5) + kernels.Linear(variance=0.3))


def _case(kernel, n=7, size=4):
    rng = np.random.default_rng(n)
    x, y, z = rng.random((n, 2)), rng.standard_normal((size, n)), rng.random((5, 2))
    return Ensemble(Posterior.prior(kernel, 0.01, mean=0.3).condition(x, y[0]), y), x, y, z


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_member_is_the_posterior_given_its_values(kernel):
    ensemble, x, y, z = _case(kernel)
    mu, var = ensemble(z)
    for s, values in enumerate(y):
        own_mu, own_var = Posterior.prior(kernel, 0.01, mean=0.3).condition(x, values)(z)
        np.testing.assert_allclose(mu[s], own_mu, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(var, own_var, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_pullback_is_the_gradient_of_a_sum(kernel):
    ensemble, _, _, z = _case(kernel)
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((ensemble.size, len(z))), rng.standard_normal(len(z))
    mu, var, pull = ensemble.with_pullback(z)
    np.testing.assert_allclose(mu, ensemble(z)[0], rtol=1e-12)
    gradient = pull(a, b)
    for j in range(z.shape[1]):
        step = np.zeros_like(z)
        step[:, j] = 1e-6
        (high_mu, high_var), (low_mu, low_var) = ensemble(z + step), ensemble(z - step)
        expected = (a * (high_mu - low_mu)).sum(axis=0) + b * (high_var - low_var)
        np.testing.assert_allclose(gradient[:, j], expected / 2e-6, rtol=1e-5, atol=1e-6)
    assert var.shape == (len(z),)


def test_without_other_values_it_is_the_posterior_itself():
    ensemble, _, _, z = _case(KERNELS[0])
    alone = Ensemble(ensemble.posterior)
    assert alone.size == 1
    np.testing.assert_array_equal(alone(z)[1], ensemble.posterior(z)[1])
    np.testing.assert_allclose(alone(z)[0][0], ensemble.posterior(z)[0], rtol=1e-12)


def test_before_the_first_observation_it_is_the_prior():
    ensemble = Ensemble(Posterior.prior(KERNELS[0], 0.01, mean=0.3))
    z = np.random.default_rng(0).random((3, 2))
    mu, var, pull = ensemble.with_pullback(z)
    assert (mu == 0.3).all() and (var == 1.0).all()
    assert not pull(np.ones((1, 3)), np.ones(3)).any()
