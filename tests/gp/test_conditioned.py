"""f given values of related functions, against a direct solve of the joint Gaussian and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpmi.gp.conditioned import Conditioned
from gpmi.gp.kernels import AffineKernel, Kernel, Levels, Matern
from gpmi.gp.kernels.levels import star_correlations
from gpmi.gp.paths import PathSampler, has_features, random_features
from gpmi.gp.posterior import Posterior
from gpmi.model.fitting.criterion import Criterion, FitSetting
from gpmi.model.fitting.leave_one_out import LeaveOneOut, log_predictive
from gpmi.model.fitting.level_covariance import LevelColumn
from gpmi.model.fitting.source_rows import SourceRows
from gpmi.model.fitting.unknowns import DEFAULT

RNG = np.random.default_rng(3)
FAR = 1e30
NOISE, MEAN = 0.01, 0.4


def star(correlations: tuple[float, ...] = (-0.8, 0.95), sizes: tuple[float, ...] = (0.6, 1.7)) -> Levels:
    base = Matern(nu=2.5, lengthscale=(0.4, 0.7, FAR), variance=1.3)
    return Levels(base, 2, sizes, correlations, 0.5, star=True)


SOURCES = np.column_stack([RNG.random((9, 2)), RNG.integers(0, 2, 9)])
VALUES = RNG.standard_normal(9)
OWN_NOISE = RNG.uniform(0.001, 0.1, 9)
X, Y, Z = RNG.random((5, 2)), RNG.standard_normal(5), RNG.random((6, 2))


def conditioned(kernel: Kernel | None = None) -> Conditioned:
    start = Posterior.prior(kernel or star(), NOISE, MEAN)
    return Conditioned(start.condition(SOURCES, VALUES, OWN_NOISE), 2.0)


@given(st.lists(st.floats(-0.99, 0.99), min_size=1, max_size=4), st.data())
def test_a_star_is_the_covariance_of_functions_related_to_the_last_one(r: list[float], data: st.DataObject) -> None:
    """f_l = s_l (r_l f + sqrt(1 - r_l^2) d_l) with independent f and d_l."""
    count = len(r)
    sizes = data.draw(st.lists(st.floats(0.1, 5.0), min_size=count, max_size=count))
    weights = np.column_stack([np.diag(np.sqrt(1.0 - np.square(r))), r]) * np.array(sizes)[:, None]
    weights = np.vstack([weights, np.eye(count + 1)[-1]])
    own = Levels(Matern(), 2, tuple(sizes), tuple(r), 0.5, star=True)
    np.testing.assert_allclose(own.coupling, weights @ weights.T, rtol=1e-9, atol=1e-12)
    assert np.linalg.eigvalsh(star_correlations(np.array(r))).min() > -1e-12


def test_a_star_of_one_source_is_a_chain_of_two_levels() -> None:
    own = star((-0.8,), (0.6,))
    chain = Levels(own.base, 2, own.sizes, own.correlations, own.offset)
    x = np.column_stack([RNG.random((7, 2)), RNG.integers(0, 2, 7)])
    np.testing.assert_array_equal(own(x, x), chain(x, x))


def test_the_star_has_the_right_derivatives_by_theta() -> None:
    own, step = star(), 1e-6
    x = np.column_stack([RNG.random((8, 2)), RNG.integers(0, 3, 8)])
    w = RNG.standard_normal((8, 8))
    w += w.T
    _, pull = own.with_theta_pullback(x)

    def total(theta: np.ndarray) -> float:
        return float((w * own.with_theta(theta)(x, x)).sum())

    numeric = [(total(own.theta + step * e) - total(own.theta - step * e)) / (2 * step) for e in np.eye(len(own.theta))]
    np.testing.assert_allclose(pull(w), numeric, atol=1e-5)


def test_prior_and_posterior_are_those_of_the_joint_gaussian() -> None:
    """Condition on the sources first and on f later, or solve with all rows at once."""
    given, kernel = conditioned(), star()
    posterior = Posterior.prior(given.kernel, NOISE, 0.0, given.mean).condition(X, Y)
    rows = np.vstack([SOURCES, given.at(X)])
    c = kernel(rows, rows) + np.diag(np.r_[OWN_NOISE, np.full(5, NOISE)])
    cross = kernel(given.at(Z), rows)
    mu = MEAN + cross @ np.linalg.solve(c, np.r_[VALUES, Y] - MEAN)
    covariance = kernel(given.at(Z), given.at(Z)) - cross @ np.linalg.solve(c, cross.T)
    np.testing.assert_allclose(posterior.mu(Z), mu, atol=1e-10)
    np.testing.assert_allclose(posterior.covariance(Z), covariance, atol=1e-10)
    np.testing.assert_allclose(posterior(Z)[1], covariance.diagonal(), atol=1e-10)
    c_sources = c[:9, :9]
    alone = MEAN + cross[:, :9] @ np.linalg.solve(c_sources, VALUES - MEAN)
    np.testing.assert_allclose(given.mean(Z), alone, atol=1e-10)
    np.testing.assert_allclose(given.kernel.diagonal(Z), given.kernel(Z, Z).diagonal(), atol=1e-12)


def test_gradients_agree_with_differences() -> None:
    given, step = conditioned(), 1e-6
    posterior = Posterior.prior(given.kernel, NOISE, 0.0, given.mean).condition(X, Y)
    moments = posterior.moments(Z)
    w = RNG.standard_normal((6, 5))
    _, pull = given.kernel.with_input_pullback(Z, X)
    for k in range(2):
        e = step * np.eye(2)[k]
        (mu_up, var_up), (mu_down, var_down) = posterior(Z + e), posterior(Z - e)
        np.testing.assert_allclose(moments.mu_gradient[:, k], (mu_up - mu_down) / (2 * step), atol=1e-6)
        np.testing.assert_allclose(moments.var_gradient[:, k], (var_up - var_down) / (2 * step), atol=1e-6)
        means = (given.mean(Z + e) - given.mean(Z - e)) / (2 * step)
        np.testing.assert_allclose(given.mean.gradient(Z)[:, k], means, atol=1e-6)
        values = (w * (given.kernel(Z + e, X) - given.kernel(Z - e, X))).sum(axis=1) / (2 * step)
        np.testing.assert_allclose(pull(w)[:, k], values, atol=1e-6)


def test_the_mirrored_posterior_is_that_of_minus_f() -> None:
    given = conditioned()
    posterior = Posterior.prior(given.kernel, NOISE, 0.0, given.mean).condition(X, Y)
    np.testing.assert_allclose(posterior.mirrored().mu(Z), -posterior.mu(Z), atol=1e-12)


def test_random_features_have_the_covariance_of_f_given_the_sources() -> None:
    given = conditioned(AffineKernel(star(), 1.1, 0.3))
    assert has_features(given.kernel)
    features = random_features(given.kernel, 2, 8192, np.random.default_rng(1))
    assert features is not None
    phi, pull = features(Z)
    np.testing.assert_allclose(phi @ phi.T, given.kernel(Z, Z), atol=0.06)
    w, step = RNG.standard_normal(phi.shape), 1e-4  # features are computed in single precision
    for k in range(2):
        e = step * np.eye(2)[k]
        numeric = (w * (features(Z + e)[0] - features(Z - e)[0])).sum(axis=1) / (2 * step)
        np.testing.assert_allclose(pull(w)[:, k], numeric, atol=0.02 * np.abs(numeric).max())


def test_paths_have_the_mean_and_the_variance_of_the_posterior() -> None:
    given = conditioned()
    posterior = Posterior.prior(given.kernel, NOISE, 0.0, given.mean).condition(X, Y)
    paths = PathSampler.of(posterior, RNG.random((3, 2))).paths(4000, np.random.default_rng(0), rough=True, count=8192)
    values, (mu, var) = paths.everywhere(Z), posterior(Z)
    np.testing.assert_allclose(values.mean(axis=1), mu, atol=5.0 * np.sqrt(var.max() / 4000))
    np.testing.assert_allclose(values.var(axis=1), var, rtol=0.15, atol=1e-4)


@pytest.mark.parametrize("names", [("a",), ("a", "b")])
@pytest.mark.parametrize("loo", [False, True])
def test_the_loss_with_sources_has_the_right_gradient(names: tuple[str, ...], loo: bool) -> None:
    number = np.arange(9) % len(names)
    rows = SourceRows(SOURCES[:, :2], VALUES, OWN_NOISE, number, names)
    setting = FitSetting(DEFAULT, None, np.ones(2), (0, 1), LeaveOneOut if loo else Criterion, sources=rows)
    criterion = setting.criterion(X, Y, 2.0)
    q, step = criterion.unknowns.centre + 0.3 * RNG.standard_normal(len(criterion.unknowns.centre)), 1e-6
    _, gradient = criterion.loss(q)
    numeric = [(criterion.loss(q + step * e)[0] - criterion.loss(q - step * e)[0]) / (2 * step) for e in np.eye(len(q))]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-5)


def test_the_evidence_with_sources_is_that_of_all_rows() -> None:
    """A direct evaluation of the density of the source's and the study's values, with an unknown common mean."""
    rows = SourceRows(SOURCES[:, :2], VALUES, OWN_NOISE, np.zeros(9, dtype=int), ("a",))
    setting = FitSetting(DEFAULT, None, np.ones(2), (0, 1), sources=rows)
    criterion = setting.criterion(X, Y, 1.0)
    q = criterion.unknowns.centre
    kernel = criterion.covariance.kernel(q)
    both = np.vstack([np.column_stack([SOURCES[:, :2], np.zeros(9)]), np.column_stack([X, np.ones(5)])])
    c = kernel(both, both) + np.diag(np.r_[OWN_NOISE, np.full(5, criterion.noise(q))]) + 1.0  # the mean is N(0, 1)
    y = np.r_[VALUES, Y]
    direct = 0.5 * (y @ np.linalg.solve(c, y) + np.linalg.slogdet(c)[1])
    assert criterion.surprisal(q) == pytest.approx(direct, abs=1e-8)
    left_out = log_predictive(criterion, q)
    for i in (0, 10):  # a value of the source, and one of the study
        others = np.arange(14) != i
        k = c[i, others] @ np.linalg.inv(c[np.ix_(others, others)])
        mu, var = k @ y[others], c[i, i] - k @ c[others, i]
        assert left_out[i] == pytest.approx(-0.5 * (np.log(2 * np.pi * var) + (y[i] - mu) ** 2 / var), abs=1e-8)


def test_the_column_of_sources_is_a_star_with_the_study_last() -> None:
    rows = SourceRows(SOURCES[:, :2], VALUES, OWN_NOISE, np.arange(9) % 2, ("a", "b"))
    assert rows.column == LevelColumn(2, 3, star=True)
    q = np.array([0.1, 0.2, 1.5, -2.0, 0.3])
    assert [one[2:4].tolist() for one in rows.flipped(q)] == [[-1.5, 2.0], [-1.5, -2.0], [1.5, 2.0]]
