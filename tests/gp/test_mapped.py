"""The kernel of points and their descriptors, against the kernel of the descriptors and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from gpmi.gp.kernels import Levels, Mapped, Matern
from gpmi.gp.paths import has_features, random_features
from gpmi.model.fitting.criterion import FitSetting
from gpmi.model.fitting.fit import fit
from gpmi.model.fitting.level_covariance import LevelColumn
from gpmi.model.fitting.unknowns import DEFAULT
from gpmi.space.features import FeatureColumns

RNG = np.random.default_rng(0)
MATRIX = np.vstack([np.zeros((1, 2)), [[-0.5, 0.1], [0.5, -0.5], [0.2, 0.5]]])  # one number, then three options


def kernel() -> Mapped:
    return Mapped(Matern(nu=2.5, lengthscale=(0.4, 2.0, 2.0, 2.0, 0.7, 1.3), variance=1.3), MATRIX)


def points(n: int) -> np.ndarray:
    return np.column_stack([RNG.random(n), np.eye(3)[RNG.integers(0, 3, n)]])


def test_the_distance_of_two_options_is_that_of_their_descriptors_and_of_being_different() -> None:
    own = kernel()
    x = np.column_stack([np.zeros(3), np.eye(3)])
    k = own(x, x)
    for a in range(3):
        for b in range(3):
            f, g = MATRIX[1 + a], MATRIX[1 + b]
            r2 = (2.0 / 2.0**2 if a != b else 0.0) + (f[0] - g[0]) ** 2 / 0.7**2 + (f[1] - g[1]) ** 2 / 1.3**2
            s = np.sqrt(5.0 * r2)
            assert k[a, b] == pytest.approx(1.3 * (1.0 + s + s * s / 3.0) * np.exp(-s), rel=1e-12)


def test_derivatives_by_points_and_by_theta() -> None:
    own, x, z, step = kernel(), RNG.random((6, 4)), RNG.random((5, 4)), 1e-6
    w = RNG.standard_normal((6, 5))
    _, pull = own.with_input_pullback(x, z)
    for k, shift in enumerate(step * np.eye(4)):
        by_x = ((w * own(x + shift, z)).sum(axis=1) - (w * own(x - shift, z)).sum(axis=1)) / (2 * step)
        np.testing.assert_allclose(pull(w)[:, k], by_x, atol=1e-7)
    square = RNG.standard_normal((6, 6))
    square += square.T
    _, by_theta = own.with_theta_pullback(x)
    theta = own.theta
    numeric = [
        ((square * (own.with_theta(theta + e)(x, x) - own.with_theta(theta - e)(x, x))).sum()) / (2 * step)
        for e in step * np.eye(len(theta))
    ]
    np.testing.assert_allclose(by_theta(square), numeric, atol=1e-6)
    np.testing.assert_allclose(own.diagonal(x), own(x, x).diagonal())
    np.testing.assert_array_equal(own.diagonal_gradient(x), 0.0)
    assert own.constant_variance == 1.3 and own.dim == 4


def test_equal_kernels_are_equal_and_others_are_not() -> None:
    assert kernel() == kernel() and hash(kernel()) == hash(kernel())
    assert kernel() != Mapped(kernel().base, MATRIX + 0.1) and kernel() != kernel().base


def test_the_reach_of_an_option_is_the_shortest_of_its_own_and_its_descriptors() -> None:
    np.testing.assert_allclose(kernel().reach(4), [0.4, min(2.0, 0.7 / 0.5, 1.3 / 0.1), 0.7 / 0.5, 2.0])


def test_random_features_have_the_covariance_of_the_kernel() -> None:
    own, x = kernel(), points(8)
    assert has_features(own)
    features = random_features(own, 4, 4096, np.random.default_rng(1))
    assert features is not None
    phi, pull = features(x)
    np.testing.assert_allclose(phi @ phi.T, own(x, x), atol=0.06)
    w, step = RNG.standard_normal(phi.shape), 1e-3  # the features are in single precision
    for k, shift in enumerate(step * np.eye(4)):
        numeric = (w * (features(x + shift)[0] - features(x - shift)[0])).sum(axis=1) / (2 * step)
        np.testing.assert_allclose(pull(w)[:, k], numeric, atol=2e-3)


@pytest.mark.parametrize("levels", [None, 2])
def test_the_fast_covariance_is_that_of_the_kernel_and_its_loss_has_the_right_gradient(levels: int | None) -> None:
    x, y, groups, span = points(20), RNG.standard_normal(20), (0, 1, 1, 1), np.array([1.0, 4.0, 4.0, 4.0])
    matrix, column = MATRIX, None
    if levels is not None:  # the level comes first
        x, groups, span = np.column_stack([RNG.integers(0, 2, 20), x]), (0, 1, 2, 2, 2), np.append(1.0, span)
        matrix, column = np.vstack([np.zeros((1, 2)), MATRIX]), LevelColumn(0, levels)
    features = FeatureColumns(matrix, (groups[-1],) * 2, ("a", "b"))
    setting = FitSetting(DEFAULT, None, span, groups, levels=column, features=features)
    criterion = setting.criterion(x, y, 1.7)
    q = criterion.unknowns.centre + 0.4 * RNG.standard_normal(len(criterion.unknowns.centre))
    q[-1] = -3.0
    gradient = criterion.loss(q)[1]
    step = 1e-5
    numeric = [(criterion.loss(q + e)[0] - criterion.loss(q - e)[0]) / (2 * step) for e in step * np.eye(len(q))]
    np.testing.assert_allclose(gradient, numeric, atol=1e-6)
    own, values = criterion.covariance.kernel(q), criterion.covariance(q)
    assert isinstance(own.base if isinstance(own, Levels) else own, Mapped)
    direct = criterion.covariance.pairs.matrix(values.by_pair, values.diagonal)
    np.testing.assert_allclose(own(x, x) / 1.7**2, direct, atol=1e-12)
    np.testing.assert_allclose(criterion.covariance.q_of(own, np.exp(-3.0)), q, atol=1e-9)
    rows = np.arange(0, 20, 2)
    part = criterion.covariance.restricted(rows)(q)
    np.testing.assert_allclose(part.by_pair, direct[np.ix_(rows, rows)][np.tril_indices(10, -1)], atol=1e-12)


def test_a_fit_finds_which_descriptor_matters() -> None:
    table = RNG.random((20, 2)) - 0.5
    option = RNG.integers(0, 20, 60)
    x, features = np.eye(20)[option], FeatureColumns(table, (0, 0), ("matters", "does not"))
    y = np.sin(5.0 * table[option, 0])
    found = fit(FitSetting(DEFAULT, None, np.full(20, 4.0), (0,) * 20, features=features), x, y).kernel
    assert isinstance(found, Mapped)
    label, matters, other = np.asarray(found.base.lengthscale)[[0, 20, 21]]  # type: ignore[attr-defined]
    assert matters < 0.3 * other and matters < 0.1 * label
