"""Kernels against scikit-learn, against each other and against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import KERNELS, RationalQuadratic
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process import kernels as sk

from gpmi import Posterior, kernels

ALL = {
    **KERNELS,
    "own": RationalQuadratic(0.7, variance=1.3, alpha=0.8),
    "own-ard": RationalQuadratic([0.4, 0.8, 1.5]) * kernels.Matern(nu=0.5),
}


@pytest.fixture(params=ALL, ids=list(ALL))
def kernel(request: pytest.FixtureRequest) -> kernels.Kernel:
    """The kernels of the library, and one of a user; all for three coordinates."""
    return ALL[request.param]


def points(m: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1.0, 2.0, (m, 3))


@pytest.mark.parametrize("nu", [0.3, 0.5, 1.0, 1.3, 1.5, 2.0, 2.5, 3.0, 3.5, 4.7, 12.0])
@pytest.mark.parametrize("lengthscale", [0.7, (0.4, 0.9, 2.0)])
def test_matern_is_scikit_learns(nu: float, lengthscale: float | tuple[float, ...]) -> None:
    x, z = points(20), points(15, 1)
    ours = kernels.Matern(nu=nu, lengthscale=lengthscale, variance=1.7)(x, z)
    np.testing.assert_allclose(ours, 1.7 * sk.Matern(length_scale=lengthscale, nu=nu)(x, z), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("lengthscale", [0.7, (0.4, 0.9, 2.0)])
def test_rbf_is_scikit_learns(lengthscale: float | tuple[float, ...]) -> None:
    x, z = points(20), points(15, 1)
    np.testing.assert_allclose(kernels.RBF(lengthscale, 1.7)(x, z), 1.7 * sk.RBF(lengthscale)(x, z), rtol=1e-12)


def test_linear_is_scikit_learns() -> None:
    x, z = points(20), points(15, 1)
    np.testing.assert_allclose(kernels.Linear(0.5)(x, z), 0.5 * sk.DotProduct(sigma_0=0.0)(x, z), rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_a_kernel_of_one_method_is_scikit_learns(alpha: float) -> None:
    x, z = points(20), points(15, 1)
    ours = RationalQuadratic(0.7, 1.7, alpha)(x, z)
    np.testing.assert_allclose(ours, 1.7 * sk.RationalQuadratic(0.7, alpha)(x, z), rtol=1e-12)


def test_matern_tends_to_rbf_and_does_not_overflow() -> None:
    x = points(10)
    np.testing.assert_allclose(kernels.Matern(nu=2000.25, lengthscale=0.8)(x, x), kernels.RBF(0.8)(x, x), atol=1e-3)


def test_sums_and_products_act_on_values() -> None:
    x, z = points(5), points(4, 1)
    a, b = kernels.RBF(0.5), kernels.Linear(2.0)
    np.testing.assert_allclose((a + b)(x, z), a(x, z) + b(x, z))
    np.testing.assert_allclose((a * b)(x, z), a(x, z) * b(x, z))


def test_a_large_matrix_is_the_same_to_the_last_bit_as_its_rows_one_by_one() -> None:
    kernel, rng = kernels.Matern(nu=2.5, lengthscale=(0.4, 0.9), variance=1.7), np.random.default_rng(0)
    x, z = rng.random((150, 2)), rng.random((700, 2))
    np.testing.assert_array_equal(kernel(x, z), np.concatenate([kernel(row[None], z) for row in x]))


def test_the_diagonal_is_the_diagonal(kernel: kernels.Kernel) -> None:
    x = points(9)
    np.testing.assert_allclose(kernel.diagonal(x), np.diagonal(kernel(x, x)), rtol=1e-12)


def test_a_constant_variance_is_the_diagonal_and_its_gradient_is_zero(kernel: kernels.Kernel) -> None:
    if (constant := kernel.constant_variance) is not None:
        assert np.all(kernel.diagonal(points(7)) == constant)
        assert not kernel.diagonal_gradient(points(7)).any()
    assert (constant is not None) == isinstance(kernel, kernels.Stationary)


def test_the_matrix_is_a_covariance(kernel: kernels.Kernel) -> None:
    x = points(40)
    k = kernel(x, x)
    np.testing.assert_array_equal(k, k.T)
    assert np.linalg.eigvalsh(k).min() > -1e-10 * np.trace(k)


def test_input_gradient_is_the_difference_quotient(kernel: kernels.Kernel) -> None:
    x, z, w, h = points(6), points(8, 1), np.random.default_rng(2).standard_normal((6, 8)), 1e-6
    value, pull = kernel.with_input_pullback(x, z)
    np.testing.assert_allclose(value, kernel(x, z))
    gradient = pull(w)
    diagonal_gradient = kernel.diagonal_gradient(x)
    for j, e in enumerate(h * np.eye(3)):
        quotient = (kernel(x + e, z) - kernel(x - e, z)) / (2 * h)
        np.testing.assert_allclose(gradient[:, j], (w * quotient).sum(axis=1), rtol=1e-5, atol=1e-8)
        quotient = (kernel.diagonal(x + e) - kernel.diagonal(x - e)) / (2 * h)
        np.testing.assert_allclose(diagonal_gradient[:, j], quotient, rtol=1e-5, atol=1e-8)


def test_theta_gradient_is_the_difference_quotient_with_duplicate_points(kernel: kernels.Kernel) -> None:
    x = np.concatenate([points(6), points(3)])
    w = np.random.default_rng(2).standard_normal((9, 9))
    w, h = w + w.T, 1e-6
    value, pull = kernel.with_theta_pullback(x)
    np.testing.assert_allclose(value, kernel(x, x))
    gradient = pull(w)
    for j, e in enumerate(h * np.eye(len(kernel.theta))):
        up, down = kernel.with_theta(kernel.theta + e)(x, x), kernel.with_theta(kernel.theta - e)(x, x)
        np.testing.assert_allclose(gradient[j], ((up - down) * w).sum() / (2 * h), rtol=1e-5, atol=1e-7)


def test_gradients_are_finite_and_symmetric_at_zero_distance(kernel: kernels.Kernel) -> None:
    """A stationary kernel has gradient 0 there: the derivative, or for a kink the mean of the one-sided ones."""
    x = points(4)
    _, pull = kernel.with_input_pullback(x, x)
    gradient, h = pull(np.eye(4)), 1e-6
    assert np.all(np.isfinite(gradient))
    for j, e in enumerate(h * np.eye(3)):
        quotient = np.diagonal(kernel(x + e, x) - kernel(x - e, x)) / (2 * h)
        np.testing.assert_allclose(gradient[:, j], quotient, rtol=1e-5, atol=1e-7)
    _, pull_theta = kernel.with_theta_pullback(x)
    assert np.all(np.isfinite(pull_theta(np.ones((4, 4)))))


def test_theta_round_trips(kernel: kernels.Kernel) -> None:
    again = kernel.with_theta(kernel.theta)
    np.testing.assert_allclose(again(points(5), points(5)), kernel(points(5), points(5)), rtol=1e-12)


@given(nu=st.floats(0.05, 20.0), r=st.floats(0.0, 50.0))
def test_matern_lies_between_zero_and_its_variance(nu: float, r: float) -> None:
    k = kernels.Matern(nu=nu, variance=2.0)
    value = float(k(np.array([[0.0]]), np.array([[r]]))[0, 0])
    assert 0.0 <= value <= 2.0 * (1 + 1e-9)


def test_kernels_are_values() -> None:
    assert kernels.RBF([1.0, 2.0]) == kernels.RBF(np.array([1, 2]))
    assert hash(kernels.RBF(0.3) + kernels.Linear()) == hash(kernels.RBF(0.3) + kernels.Linear())


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, [], [1.0, -2.0], [[1.0]], "a"])
def test_bad_hyper_parameters_are_refused(bad: object) -> None:
    with pytest.raises((ValueError, TypeError), match="lengthscale"):
        kernels.RBF(bad)  # type: ignore[arg-type]
    for name in ("variance", "nu"):
        with pytest.raises((ValueError, TypeError), match=name):
            kernels.Matern(**{name: bad})  # type: ignore[arg-type]


def test_kernels_of_different_dimensions_do_not_combine() -> None:
    with pytest.raises(ValueError, match="2 coordinates with one for 3"):
        kernels.RBF([1.0, 1.0]) + kernels.RBF([1.0, 1.0, 1.0])
    with pytest.raises(TypeError, match="kernels"):
        kernels.RBF() + 1.0  # type: ignore[operator]
    with pytest.raises(ValueError, match="2 lengthscales but the points have 3"):
        kernels.RBF([1.0, 1.0])(points(2), points(2))


TEMPLATES = [
    kernels.RBF(None),
    kernels.RBF([0.3, None, 0.5]),
    kernels.Matern(nu=1.5, lengthscale=0.3, variance=None),
    kernels.Linear(None),
    kernels.RBF(0.3) + kernels.Linear(None),
    kernels.Linear() * kernels.RBF(None, variance=2.0),
    RationalQuadratic(None, None),
]


@pytest.mark.parametrize("template", TEMPLATES, ids=repr)
def test_a_kernel_with_none_has_no_values_and_says_what_to_do(template: kernels.Kernel) -> None:
    x = points(3)
    assert template.unknown
    for use in (
        lambda: template(x, x),
        lambda: template.diagonal(x),
        lambda: template.with_input_pullback(x, x),
        lambda: template.with_theta_pullback(x),
        lambda: Posterior.prior(template, 1e-2),
    ):
        with pytest.raises(ValueError, match=r"None.*give numbers.*Optimizer"):
            use()


@pytest.mark.parametrize("template", TEMPLATES, ids=repr)
def test_a_template_is_filled_where_it_is_none_and_nowhere_else(template: kernels.Kernel) -> None:
    wide = template.for_dim(3)
    unknown = np.isnan(wide.theta)
    full = wide.filled(np.full(len(unknown), np.log(0.37)))
    assert not full.unknown and hash(template) == hash(template)
    np.testing.assert_array_equal(full.theta[~unknown], wide.theta[~unknown])
    np.testing.assert_allclose(full.theta[unknown], np.log(0.37))
    assert full.filled(np.zeros(len(unknown))) == full


def test_what_is_given_survives_filling_to_the_last_bit() -> None:
    odd = 0.1 + 0.2  # exp(log(odd)) is another number
    template = kernels.RBF([odd, None], odd) * (kernels.Linear(odd) + kernels.Matern(None, odd, nu=1.5))
    full = template.for_dim(2).filled(np.ones(len(template.for_dim(2).theta)))
    assert full == kernels.RBF([odd, np.e], odd) * (kernels.Linear(odd) + kernels.Matern([np.e, np.e], odd, nu=1.5))
