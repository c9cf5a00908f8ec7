"""The kernel of several levels, against the chain of functions that it stands for and against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpmi.gp.kernels import Levels, Matern
from gpmi.gp.paths import random_features
from gpmi.model.fitting.criterion import FitSetting
from gpmi.model.fitting.level_covariance import LevelColumn
from gpmi.model.fitting.unknowns import DEFAULT

RNG = np.random.default_rng(0)
FAR = 1e30


def kernel(sizes: tuple[float, ...] = (0.7, 1.8), correlations: tuple[float, ...] = (-0.6, 0.9)) -> Levels:
    return Levels(Matern(nu=2.5, lengthscale=(0.4, 0.7, FAR), variance=1.3), 2, sizes, correlations, 0.5)


def points(n: int, levels: int = 3) -> np.ndarray:
    return np.column_stack([RNG.random((n, 2)), RNG.integers(0, levels, n)])


@given(st.lists(st.floats(-0.99, 0.99), min_size=1, max_size=3), st.data())
def test_the_kernel_is_that_of_a_chain_of_functions(correlations: list[float], data: st.DataObject) -> None:
    """f_l = a_l f_(l-1) + d_l with independent d_l of kernel k: B is the covariance of the weights on all d_j."""
    count = len(correlations) + 1
    sizes = [*data.draw(st.lists(st.floats(0.1, 5.0), min_size=count - 1, max_size=count - 1)), 1.0]
    weights = np.zeros((count, count))  # of f_l on the new functions d_j, each with variance 1
    weights[0, 0] = sizes[0]
    for level, r in enumerate(correlations, 1):
        weights[level] = r * sizes[level] / sizes[level - 1] * weights[level - 1]
        weights[level, level] = sizes[level] * np.sqrt(1.0 - r * r)
    own = kernel(tuple(sizes[:-1]), tuple(correlations))
    np.testing.assert_allclose(own.coupling, weights @ weights.T, rtol=1e-9, atol=1e-12)


def test_matrix_diagonal_and_constants() -> None:
    own, x = kernel(), points(12)
    level = x[:, 2].astype(int)
    constants = np.where((level[:, None] == level) & (level < 2), 0.5, 0.0)
    np.testing.assert_allclose(own(x, x), own.coupling[np.ix_(level, level)] * own.base(x, x) + constants)
    np.testing.assert_allclose(own.diagonal(x), own(x, x).diagonal())
    assert np.linalg.eigvalsh(own(x, x)).min() > -1e-12


def test_derivatives_by_points_and_by_theta() -> None:
    own, x, z, step = kernel(), points(6), points(5), 1e-6
    w = RNG.standard_normal((6, 5))
    _, pull = own.with_input_pullback(x, z)
    for k in (0, 1):
        shift = step * np.eye(3)[k]
        by_x = ((w * own(x + shift, z)).sum(axis=1) - (w * own(x - shift, z)).sum(axis=1)) / (2 * step)
        np.testing.assert_allclose(pull(w)[:, k], by_x, atol=1e-7)
    square = RNG.standard_normal((6, 6))
    square += square.T
    _, by_theta = own.with_theta_pullback(x)
    theta = own.theta
    numeric = [
        (
            (square * own.with_theta(theta + step * e)(x, x)).sum()
            - (square * own.with_theta(theta - step * e)(x, x)).sum()
        )
        / (2 * step)
        for e in np.eye(len(theta))
    ]
    np.testing.assert_allclose(by_theta(square), numeric, atol=1e-6)
    np.testing.assert_allclose(own.with_theta(theta).theta, theta, atol=1e-12)


def test_random_features_have_the_covariance_of_the_kernel() -> None:
    own, x = kernel(), points(8)
    features = random_features(own, 3, 4096, np.random.default_rng(1))
    assert features is not None
    phi, _ = features(x)
    np.testing.assert_allclose(phi @ phi.T, own(x, x), atol=0.05)


@pytest.mark.parametrize("levels", [2, 3])
def test_the_fast_covariance_is_that_of_the_kernel_and_its_loss_has_the_right_gradient(levels: int) -> None:
    x, y = points(20, levels), RNG.standard_normal(20)
    setting = FitSetting(DEFAULT, None, np.array([1.0, 1.0, 2.0]), (0, 1, 2), levels=LevelColumn(2, levels))
    criterion = setting.criterion(x, y, 1.7)
    q = criterion.unknowns.centre + 0.4 * RNG.standard_normal(len(criterion.unknowns.centre))
    q[-1] = -3.0
    loss, gradient = criterion.loss(q)
    step = 1e-5
    numeric = [(criterion.loss(q + step * e)[0] - criterion.loss(q - step * e)[0]) / (2 * step) for e in np.eye(len(q))]
    np.testing.assert_allclose(gradient, numeric, atol=1e-6)
    own, values = criterion.covariance.kernel(q), criterion.covariance(q)
    matrix = criterion.covariance.pairs.matrix(values.by_pair, values.diagonal)
    np.testing.assert_allclose(own(x, x) / 1.7**2, matrix, atol=1e-12)
    np.testing.assert_allclose(criterion.covariance.q_of(own, np.exp(-3.0)), q, atol=1e-9)
    direct = own(x, x) / 1.7**2 + np.exp(-3.0) * np.eye(20)
    inverse, one = np.linalg.inv(direct), np.ones(20)
    mean = (one @ inverse @ y) / (one @ inverse @ one + 1.0)
    off = (q - criterion.unknowns.centre) / criterion.unknowns.width
    expected = 0.5 * ((y - mean) @ inverse @ (y - mean) + np.linalg.slogdet(direct)[1] + mean**2 + off @ off)
    assert loss == pytest.approx(expected, rel=1e-9)


def test_a_fit_finds_that_a_level_is_reversed() -> None:
    x = np.column_stack([RNG.random(40), np.repeat([0.0, 1.0], 20)])
    f = np.sin(6.0 * x[:, 0])
    y = np.where(x[:, 1] == 0.0, 3.0 - 2.0 * f, f)
    from gpmi.model.fitting.fit import fit

    setting = FitSetting(DEFAULT, None, np.ones(2), (0, 1), levels=LevelColumn(1, 2))
    found = fit(setting, x, y).kernel
    assert isinstance(found, Levels) and found.correlations[0] < -0.9 and 1.0 < found.sizes[0] < 4.0
