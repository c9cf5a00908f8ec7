"""The posterior against a direct solve and scikit-learn, and the identities of the paper."""

from __future__ import annotations

import re

import numpy as np
import pytest
from conftest import direct
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

from gpmi import Posterior, kernels
from gpmi.gp.linalg import Factor, NotPositiveDefinite
from gpmi.gp.paths import Draw, PathSampler


def data(n: int, seed: int = 0, duplicates: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 2.0, (n, 3))
    x[n - duplicates :] = x[rng.integers(0, max(1, n - duplicates), duplicates)]
    return x, rng.standard_normal(n)


Z = np.random.default_rng(99).uniform(-1.0, 2.0, (25, 3))


@pytest.mark.parametrize(("n", "duplicates"), [(1, 0), (10, 4), (300, 0), (300, 60)])
def test_mean_and_variance_are_the_direct_solve(kernel: kernels.Kernel, n: int, duplicates: int) -> None:
    x, y = data(n, duplicates=duplicates)
    z = np.concatenate([Z, x[-3:]])
    mu, var = Posterior.prior(kernel, 1e-2).condition(x, y)(z)
    mu_direct, var_direct = direct(kernel, 1e-2, x, y, z)
    np.testing.assert_allclose(mu, mu_direct, rtol=1e-8, atol=1e-8 * np.abs(y).max())
    np.testing.assert_allclose(var, var_direct, rtol=1e-8)


def test_what_is_kept_cannot_be_written_to() -> None:
    posterior = Posterior.prior(kernels.Matern(nu=2.5, lengthscale=0.7), 1e-2).condition(*data(5))
    for kept in (posterior.predictive_var, posterior.whiten(Z[:1])):
        with pytest.raises(ValueError, match="read-only"):
            kept[:] = 0.0


@pytest.mark.parametrize("n", [1, 20, 300])
def test_a_point_that_was_looked_at_is_observed_to_the_last_bit_as_one_that_was_not(n: int) -> None:
    x, y = data(n + 1)
    start = Posterior.prior(kernels.Matern(nu=2.5, lengthscale=0.7), 1e-2)
    looked, blind = start.condition(x[:n], y[:n]), start.condition(x[:n], y[:n])
    moments = looked(x[n:])
    after, expected = looked.condition(x[n], y[n:]), blind.condition(x[n], y[n:])
    assert np.array_equal(after.factor.rows(), expected.factor.rows())
    assert np.array_equal(after.whitened, expected.whitened)
    looked(Z[:1])  # another point since then
    assert np.array_equal(looked(x[n:]), moments) and np.array_equal(blind(x[n:]), moments)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, 3.0, np.inf])
@pytest.mark.parametrize("duplicates", [0, 60])
def test_mean_and_variance_are_scikit_learns(nu: float, duplicates: int) -> None:
    x, y = data(300, duplicates=duplicates)
    ours = kernels.RBF(0.8) if np.isinf(nu) else kernels.Matern(nu=nu, lengthscale=0.8)
    theirs = GaussianProcessRegressor(sk.Matern(0.8, nu=nu), alpha=1e-2, optimizer=None).fit(x, y)
    mu, sd = theirs.predict(Z, return_std=True)
    p = Posterior.prior(ours, 1e-2).condition(x, y)
    np.testing.assert_allclose(p(Z)[0], mu, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(p(Z)[1], sd**2, rtol=1e-8)
    np.testing.assert_allclose(p.log_evidence, theirs.log_marginal_likelihood(), rtol=1e-10)


@given(sizes=st.lists(st.integers(1, 150), min_size=1, max_size=6), noise_var=st.floats(1e-3, 1.0))
@settings(max_examples=40)
def test_conditioning_in_any_pieces_equals_conditioning_at_once(sizes: list[int], noise_var: float) -> None:
    x, y = data(sum(sizes), duplicates=sum(sizes) // 5)
    prior = Posterior.prior(kernels.Matern(nu=1.5, lengthscale=0.6), noise_var)
    pieces, begin = prior, 0
    for size in sizes:
        pieces = pieces.condition(x[begin : begin + size], y[begin : begin + size])
        begin += size
    whole = prior.condition(x, y)
    np.testing.assert_allclose(pieces(Z)[0], whole(Z)[0], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(pieces(Z)[1], whole(Z)[1], rtol=1e-8)
    np.testing.assert_allclose(pieces.factor.rows(), whole.factor.rows(), rtol=1e-8, atol=1e-10)


def test_conditioning_one_by_one_equals_conditioning_at_once(kernel: kernels.Kernel) -> None:
    x, y = data(80, duplicates=10)
    prior = one_by_one = Posterior.prior(kernel, 1e-2)
    for i in range(80):
        one_by_one = one_by_one.condition(x[i], y[i])
    at_once = prior.condition(x, y)
    np.testing.assert_allclose(one_by_one(Z)[0], at_once(Z)[0], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(one_by_one(Z)[1], at_once(Z)[1], rtol=1e-8)


def test_older_versions_keep_their_numbers_when_the_buffer_is_shared() -> None:
    x, y = data(60)
    prior = Posterior.prior(kernels.RBF(0.5), 1e-2)
    versions = [prior]
    for i in range(59):
        versions.append(versions[-1].condition(x[i], y[i]))
    before = [v(Z) for v in versions]
    for v in versions[::7]:  # branch off everywhere, with another point and with the same
        v.condition(x[59], 5.0).condition(x[58], -5.0)
        v.condition(x[v.n], 7.0)
    for v, (mu, var) in zip(versions, before, strict=True):
        np.testing.assert_array_equal(v(Z)[0], mu)
        np.testing.assert_array_equal(v(Z)[1], var)


def test_versions_that_part_copy_at_most_one_segment() -> None:
    x, y = data(900)
    p = Posterior.prior(kernels.RBF(0.5), 1e-2).condition(x[:300], y[:300])
    for i in range(300, 700):
        p = p.condition(x[i], y[i])
    ahead, aside = p.condition(x[800], y[800]), p.condition(x[700], y[700])
    assert len(p.factor._segments) == 3
    assert all(a is b for a, b in zip(ahead.factor._segments[:-1], aside.factor._segments[:-1], strict=True))
    for q, i in ((ahead, 800), (aside, 700)):
        mu, var = direct(p.kernel, 1e-2, np.append(x[:700], x[[i]], axis=0), np.append(y[:700], y[i]), Z)
        np.testing.assert_allclose(q(Z)[0], mu, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(q(Z)[1], var, rtol=1e-7)
        np.testing.assert_allclose(q.weights, q.factor.solve_transposed(q.whitened))
        np.testing.assert_allclose(q.factor.rows(600), q.factor.rows()[600:])


def test_appending_does_not_copy_the_factor() -> None:
    x, y = data(40)
    p = Posterior.prior(kernels.RBF(0.5), 1e-2).condition(x[:20], y[:20])
    assert p.condition(x[20], y[20]).factor._segments[-1] is p.factor._segments[-1]
    told = p.condition(x[20], y[20])
    assert told.factor._segments[-1] is p.factor._segments[-1]  # the row of a point that was pending is found again
    assert p.condition(x[30], y[30]).factor._segments[-1] is not p.factor._segments[-1]


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 25))
@settings(max_examples=30)
def test_variance_never_grows_with_data(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.random((n, 2)), rng.standard_normal(n)
    z = rng.random((10, 2))
    p = Posterior.prior(kernels.Matern(nu=2.5, lengthscale=0.3), 1e-3)
    var = p(z)[1]
    for i in range(n):
        p = p.condition(x[i], y[i])
        assert np.all(p(z)[1] <= var + 1e-12)
        var = p(z)[1]


def test_gamma_hat_is_the_paper_recursion(kernel: kernels.Kernel) -> None:
    x, y = data(50, duplicates=10)
    p = Posterior.prior(kernel, 1e-2)
    gamma_hat, history = 0.0, [0.0]
    for i in range(50):
        gamma_hat += float(p(x[i])[1][0])  # sigma_t^2(x_t), before y_t
        history.append(gamma_hat)
        p = p.condition(x[i], y[i])
        np.testing.assert_allclose(p.gamma_hat(), gamma_hat, rtol=1e-9)
    np.testing.assert_allclose(p.gamma_hat(n0=20), gamma_hat - history[20], rtol=1e-9)


def test_information_is_half_the_log_determinant(kernel: kernels.Kernel) -> None:
    x, y = data(50, duplicates=10)
    p = Posterior.prior(kernel, 0.05).condition(x, y)
    np.testing.assert_allclose(p.information, 0.5 * np.linalg.slogdet(np.eye(50) + kernel(x, x) / 0.05)[1], rtol=1e-10)
    assert Posterior.prior(kernel, 0.05).information == 0.0
    assert Posterior.prior(kernel, 0.0).condition(x[:3], y[:3]).information == np.inf


def test_gamma_hat_is_bounded_by_the_information() -> None:
    """Lemma 5.4 of Srinivas et al. with a general signal variance: gamma_hat <= 2 v / log(1 + v / noise) I."""
    x, y = data(100)
    for v, noise in [(1.0, 0.01), (3.0, 0.5), (0.2, 0.1)]:
        p = Posterior.prior(kernels.RBF(0.4, v), noise).condition(x, y)
        assert p.gamma_hat() <= 2 * v / np.log1p(v / noise) * p.information * (1 + 1e-12)


def test_moment_gradients_are_difference_quotients_also_at_observed_points(kernel: kernels.Kernel) -> None:
    x, y = data(20)
    smooth = not re.search(r"nu=(0\.3|0\.5|1\.0)", repr(kernel))  # rougher ones have a kink at observed points
    z, h = (np.concatenate([Z, x[:4]]) if smooth else Z), 1e-6
    for p in (Posterior.prior(kernel, 1e-2), Posterior.prior(kernel, 1e-2, mean=0.4).condition(x, y)):
        mu, var, mu_gradient, var_gradient = p.moments(z)
        np.testing.assert_allclose(mu, p(z)[0])
        np.testing.assert_allclose(var, p(z)[1])
        for j, e in enumerate(h * np.eye(3)):
            up, down = p(z + e), p(z - e)
            for k, gradient in ((0, mu_gradient), (1, var_gradient)):
                quotient = (up[k] - down[k]) / (2 * h)
                np.testing.assert_allclose(gradient[:, j], quotient, rtol=1e-5, atol=2e-7 * np.abs(gradient).max())


@pytest.mark.parametrize("nu", [0.3, 0.5, 1.0])
def test_moment_gradients_of_rough_kernels_are_finite_at_observed_points(nu: float) -> None:
    x, y = data(20)
    p = Posterior.prior(kernels.Matern(nu=nu), 1e-2).condition(x, y)
    assert all(np.all(np.isfinite(part)) for part in p.moments(x))


def test_covariance_has_the_variances_on_its_diagonal_and_is_the_direct_formula(kernel: kernels.Kernel) -> None:
    x, y = data(30)
    p = Posterior.prior(kernel, 1e-2).condition(x, y)
    c = kernel(x, x) + 1e-2 * np.eye(30)
    want = kernel(Z, Z[:5]) - kernel(Z, x) @ np.linalg.solve(c, kernel(x, Z[:5]))
    np.testing.assert_allclose(p.covariance(Z, Z[:5]), want, atol=1e-9)
    np.testing.assert_allclose(np.diagonal(p.covariance(Z)), p(Z)[1], rtol=1e-8)


def test_samples_have_the_posterior_mean_and_covariance() -> None:
    x, y = data(15)
    p = Posterior.prior(kernels.RBF(0.9), 1e-2, mean=2.0).condition(x, y)
    z = np.concatenate([Z[:6], Z[:2], x[:2]])  # duplicates: the covariance is singular
    draws = p.sample(z, np.random.default_rng(0), size=40_000)
    np.testing.assert_allclose(draws.mean(axis=0), p(z)[0], atol=0.02)
    np.testing.assert_allclose(np.cov(draws.T), p.covariance(z), atol=0.02)
    np.testing.assert_allclose(draws[:, :2], draws[:, 6:8], atol=1e-6)


@pytest.mark.slow
def test_a_draw_made_in_pieces_has_the_joint_distribution() -> None:
    x, y = data(8)
    p = Posterior.prior(kernels.Matern(nu=1.5, lengthscale=0.9), 1e-2).condition(x, y)
    z = np.concatenate([Z[:4], Z[:1]])
    rng = np.random.default_rng(1)
    draws = []
    for _ in range(6000):
        draw = Draw(p, rng)
        draws.append(np.concatenate([draw(z[:2]), draw(z[2:])]))
    np.testing.assert_allclose(np.mean(draws, axis=0), p(z)[0], atol=0.05)
    np.testing.assert_allclose(np.cov(np.array(draws).T), p.covariance(z), atol=0.05)
    np.testing.assert_allclose(np.array(draws)[:, 0], np.array(draws)[:, 4], atol=1e-3)


def test_functions_are_drawn_even_if_the_rounding_of_their_covariance_exceeds_the_usual_error() -> None:
    """Two exact values at almost the same point: the covariance is off by 1e-8 of the prior variance."""
    x = np.array([[-1.55e-5], [1.55e-5]])
    p = Posterior.prior(kernels.RBF(1.0), 0.0).condition(x, np.array([0.0, 1e-5]))
    z = np.concatenate([np.linspace(-3.0, 3.0, 40)[:, None], x, np.zeros((1, 1))])
    assert np.linalg.eigvalsh(p.covariance(z))[0] < -1e-10
    for cuts in ([], [5, 30], [42]):
        draw = Draw(p, np.random.default_rng(0))
        values = np.concatenate([draw(part) for part in np.split(z, cuts)])
        np.testing.assert_allclose(values[-3:], [0.0, 1e-5, 5e-6], atol=5e-3)
    paths = PathSampler.of(p, z).paths(50, np.random.default_rng(0), rough=False)
    np.testing.assert_allclose(paths.values[-3:].T, np.tile([0.0, 1e-5, 5e-6], (50, 1)), atol=5e-3)
    deviations = (paths.values - p.mu(z)[:, None]) / np.sqrt(p(z)[1] + 1e-6)[:, None]
    assert 0.8 < deviations[:40].std() < 1.2


def test_anticipating_a_point_keeps_the_mean_and_lowers_the_variance() -> None:
    x, y = data(20)
    p = Posterior.prior(kernels.RBF(0.6), 1e-2, mean=0.5).condition(x, y)
    anticipated, by_hand = p.anticipate(Z[:3]), p
    for z in Z[:3]:
        by_hand = by_hand.condition(z, by_hand(z)[0])
    np.testing.assert_allclose(anticipated(Z)[0], p(Z)[0], atol=1e-12)
    np.testing.assert_allclose(anticipated(Z)[0], by_hand(Z)[0], atol=1e-10)
    np.testing.assert_allclose(anticipated(Z)[1], by_hand(Z)[1], rtol=1e-9)
    assert np.all(anticipated(Z)[1] <= p(Z)[1])


def test_means_at_observed_points_are_read_off_the_weights(kernel: kernels.Kernel) -> None:
    x, y = data(40, duplicates=8)
    p = Posterior.prior(kernel, 1e-2, mean=-1.0).condition(x, y)
    np.testing.assert_allclose(p.mu_at_observed, p(x)[0], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(p.mu(Z), p(Z)[0], rtol=1e-8, atol=1e-9)


def test_a_singular_matrix_is_repaired_by_little_and_the_repair_is_recorded() -> None:
    x, y = data(10)
    p = Posterior.prior(kernels.RBF(0.5), 0.0).condition(x, y)
    assert p.events == ()
    for again in (p.condition(x[3], y[3]), p.condition(x[:3], y[:3])):
        assert [e.kind for e in again.events] == ["jitter"]
        assert np.all(again.jitter == again.nugget) and again.nugget <= 1e-8
        np.testing.assert_allclose(again(x)[0], y, atol=1e-6)
        np.testing.assert_allclose(again(Z)[1], p(Z)[1], atol=1e-8)


def test_exact_observations_of_a_smooth_function_stay_usable_for_very_many_points() -> None:
    x = np.linspace(0.0, 1.0, 400)[:, None]
    p = Posterior.prior(kernels.RBF(0.3), 0.0).condition(x, np.sin(5 * x[:, 0]))
    z = np.random.default_rng(0).random((50, 1))
    np.testing.assert_allclose(p(z)[0], np.sin(5 * z[:, 0]), atol=1e-4)
    assert np.all(p(z)[1] < 1e-6) and len(p.events) > 0


def test_a_function_that_is_no_covariance_is_refused() -> None:
    class Wrong(kernels.RBF):
        def __call__(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
            return 2.0 - super().__call__(x, z)

    x, y = data(10)
    with pytest.raises(NotPositiveDefinite, match="not a covariance"):
        Posterior.prior(Wrong(), 0.0).condition(x, y)
    with pytest.raises(NotPositiveDefinite):
        Factor.empty().append(np.empty(0), float("nan"))


def test_bad_arguments_are_refused_by_name() -> None:
    k = kernels.RBF([0.5, 0.5])
    with pytest.raises(ValueError, match=r"noise_var is -1.*give"):
        Posterior.prior(k, -1.0)
    with pytest.raises(ValueError, match=r"mean is nan.*give"):
        Posterior.prior(k, 1.0, mean=float("nan"))
    with pytest.raises(TypeError, match="kernel is 3"):
        Posterior.prior(3, 1.0)  # type: ignore[arg-type]
    p = Posterior.prior(k, 0.1)
    for x, y, words in [
        ([[0.0, 0.0]], [np.nan], r"y\[0\] is nan"),
        ([[0.0, 0.0]], [1.0, 2.0], "one value per point"),
        ([[0.0, 0.0, 0.0]], [1.0], r"shape \(1, 3\); give an array of shape \(m, 2\)"),
        ([[0.0, np.inf]], [1.0], "not finite"),
    ]:
        with pytest.raises(ValueError, match=words):
            p.condition(np.array(x), np.array(y))
    with pytest.raises(ValueError, match=r"n0 is 5"):
        p.gamma_hat(n0=5)


def test_a_posterior_cannot_be_changed_through_its_arrays() -> None:
    x, y = data(5)
    p = Posterior.prior(kernels.RBF(0.3), 1e-4).condition(x, y)
    for array in (p.x, p.y, p.whitened):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (kernels.Linear(0.6), 0.6 * sk.DotProduct(sigma_0=1e-300)),
        (kernels.Matern(nu=1.5, lengthscale=[0.4, 0.8, 1.5]), sk.Matern([0.4, 0.8, 1.5], nu=1.5)),
        (kernels.RBF([0.5, 1.0, 2.0]) + kernels.Linear(), sk.RBF([0.5, 1.0, 2.0]) + sk.DotProduct(sigma_0=1e-300)),
        (kernels.RBF(0.7) * kernels.Matern(nu=2.5), sk.RBF(0.7) * sk.Matern(nu=2.5)),
    ],
    ids=["linear", "ard", "sum", "product"],
)
def test_combined_kernels_give_scikit_learns_posterior(ours: kernels.Kernel, theirs: sk.Kernel) -> None:
    x, y = data(300, duplicates=60)
    regressor = GaussianProcessRegressor(theirs, alpha=1e-2, optimizer=None).fit(x, y)
    mu, sd = regressor.predict(Z, return_std=True)
    p = Posterior.prior(ours, 1e-2).condition(x, y)
    np.testing.assert_allclose(p(Z)[0], mu, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(p(Z)[1], sd**2, rtol=1e-8, atol=1e-12)
