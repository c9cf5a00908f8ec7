"""Newton's method in a trust region, on functions whose maxima are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, rosen, rosen_der

from gpmi.search.climb import _expansion, _newton_step, climb

SEEDS = st.integers(0, 10_000)


def quadratic(hessian: np.ndarray, top: np.ndarray):
    """(u - top)^T H (u - top) / 2 and its gradient, as a climb asks for them."""

    def f(u: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        slope = (u - top) @ hessian
        return 0.5 * (slope * (u - top)).sum(axis=1), slope

    return f


def concave(rng: np.random.Generator, d: int) -> np.ndarray:
    a = rng.standard_normal((d, d))
    return -(a @ a.T + 0.1 * np.eye(d))


# Climbs


def test_climbing_reaches_rosenbrocks_maximum_from_everywhere_inside_the_bounds() -> None:
    def f(u: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z = 4 * u - 2
        return -np.array([rosen(p) for p in z]), -4 * np.array([rosen_der(p) for p in z])

    u, value = climb(f, np.random.default_rng(0).random((20, 2)), np.ones(2))
    assert np.all((u >= 0) & (u <= 1))
    assert value.max() > -1e-9
    np.testing.assert_allclose(value, f(u, np.arange(20))[0])


def test_climbing_stops_at_the_bound_when_the_maximum_lies_outside() -> None:
    centre = np.array([1.7, 0.3, -0.4])

    def f(u: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return -((u - centre) ** 2).sum(axis=1), -2 * (u - centre)

    u, value = climb(f, np.random.default_rng(0).random((5, 3)), np.ones(3))
    np.testing.assert_allclose(u[np.argmax(value)], [1.0, 0.3, 0.0], atol=1e-6)


def test_climbing_goes_on_where_a_start_has_no_finite_gradient() -> None:
    def f(u: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradient = np.where(np.abs(u - 0.2) < 1e-4, np.inf, -2 * (u - 0.7))
        return -((u - 0.7) ** 2).sum(axis=1), gradient

    u, value = climb(f, np.array([[0.2, 0.9], [0.4, 0.5]]), np.ones(2))
    np.testing.assert_allclose(u[1], 0.7, atol=1e-6)
    assert u[0, 0] == 0.2 and value[0] == pytest.approx(f(u, np.arange(2))[0][0])


def test_climbing_leaves_a_saddle_and_a_region_without_curvature() -> None:
    """f = a^2 / 2 - b^2 with a, b counted from the middle: Newton's step would end on the saddle at the middle."""

    def f(u: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        a, b = u.T - 0.5
        return 0.5 * a**2 - b**2, np.stack([a, -2 * b], axis=1)

    u, _ = climb(f, np.array([[0.51, 0.9]]), np.ones(2))
    np.testing.assert_allclose(u[0], [1.0, 0.5], atol=1e-6)
    u, _ = climb(lambda u, which: (u.sum(axis=1), np.ones_like(u)), np.array([[0.1, 0.2]]), np.ones(2))
    np.testing.assert_array_equal(u[0], 1.0)


def test_climbing_finds_every_peak_it_starts_near() -> None:
    """sin has maxima 1 at 1/10, 5/10 and 9/10; starts on the same peak are dropped, but no peak is lost."""

    def f(u: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.sin(5 * np.pi * u[:, 0]), 5 * np.pi * np.cos(5 * np.pi * u)

    u, value = climb(f, np.linspace(0.0, 1.0, 11)[:, None], np.ones(1))
    for peak in (0.1, 0.5, 0.9):
        assert np.abs(u[:, 0] - peak).min() < 1e-4
    assert value.max() == pytest.approx(1.0)


@given(SEEDS, st.integers(1, 4))
def test_the_maximum_of_a_concave_quadratic_in_the_cube_is_that_of_scipy(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    f = quadratic(concave(rng, d), rng.uniform(-0.5, 1.5, d))
    u, value = climb(f, rng.random((1, d)), np.ones(d))

    def loss(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = f(u[None], np.zeros(1))
        return -float(value[0]), -slope[0]

    best = -minimize(loss, np.full(d, 0.5), jac=True, bounds=[(0, 1)] * d, options={"ftol": 1e-14, "gtol": 1e-10}).fun
    assert np.all((u >= 0.0) & (u <= 1.0))
    assert value[0] >= best - 1e-8 * max(1.0, abs(best))


@given(SEEDS)
def test_no_climb_ends_below_its_start_and_the_values_are_those_of_the_points(seed: int) -> None:
    rng = np.random.default_rng(seed)
    phase, slope = rng.uniform(0.0, 6.0, 3), rng.uniform(2.0, 20.0, 3)

    def f(u: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.sin(slope * u + phase).sum(axis=1), slope * np.cos(slope * u + phase)

    starts = rng.uniform(-0.2, 1.2, (4, 3))
    u, value = climb(f, starts, 1.0 / slope)
    assert np.all(value >= f(np.clip(starts, 0.0, 1.0), np.arange(4))[0])
    np.testing.assert_allclose(value, f(u, np.arange(4))[0], rtol=1e-12)


def test_each_start_climbs_its_own_function() -> None:
    """The starts may differ in coordinates that are not climbed, so f is told which start a group of points is of."""
    tops, heights = np.array([[0.2, 0.2], [0.5, 0.9], [0.8, 0.4]]), np.array([0.0, 5.0, 0.0])

    def f(u: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        number = which.repeat(len(u) // len(which))
        away = u - tops[number]
        return heights[number] - (away**2).sum(axis=1), -2.0 * away

    u, value = climb(f, np.array([[0.5, 0.5], [0.4, 0.4], [0.6, 0.6]]), np.ones(2))
    np.testing.assert_allclose(u[1], tops[1], atol=1e-6)
    assert value[1] == pytest.approx(5.0)


def test_a_round_asks_for_d_plus_one_points_of_each_start_that_moves_and_never_outside_the_cube() -> None:
    """Start 1 is on the peak of start 0, and lower. Start 2 is on another peak, and may overtake start 0."""
    asked, tops = [], np.array([[0.0, 1.0], [1.0, 0.0]])

    def f(u: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        assert len(u) == 3 * len(which) and np.all((u >= 0.0) & (u <= 1.0))
        asked.append(which.tolist())
        away = u - tops[(u[:, 0] > 0.5).astype(int)]
        return -(away**2).sum(axis=1), -2.0 * away

    climb(f, np.array([[0.1, 1.0], [0.105, 1.0], [0.88, 0.0]]), np.ones(2))
    assert asked[:2] == [[0, 1, 2], [0, 2]]


def test_a_climb_ends_where_no_step_promises_more_than_the_tolerance() -> None:
    f, start = quadratic(-np.eye(2), np.array([0.5, 0.5])), np.array([[0.1, 0.9]])
    assert climb(f, start, np.ones(2), tolerance=10.0)[0].tolist() == start.tolist()
    gains = [climb(f, start, np.ones(2), tolerance)[1][0] for tolerance in (0.09, 1e-3, 0.0)]
    assert gains == sorted(gains) and -0.16 < gains[0] < gains[1] and gains[2] == pytest.approx(0.0, abs=1e-12)


def test_a_step_to_where_the_value_is_nan_is_not_taken() -> None:
    def f(u: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.where(u[:, 0] > 0.5, np.nan, u[:, 0]), np.ones_like(u)

    u, value = climb(f, np.array([[0.1]]), np.ones(1))
    assert 0.4 < u[0, 0] <= 0.5 and value[0] == u[0, 0]


# One round


@given(SEEDS, st.integers(1, 4), st.integers(1, 3))
def test_the_expansion_of_a_quadratic_is_the_quadratic(seed: int, d: int, s: int) -> None:
    """Its corners are included: the differences are taken towards the middle."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((d, d))
    hessian, top = 0.5 * (a + a.T), rng.random(d)
    u = np.where(rng.random((s, d)) < 0.3, rng.integers(0, 2, (s, d)).astype(float), rng.random((s, d)))
    f = quadratic(hessian, top)
    value, gradient, bend = _expansion(f, u, np.arange(s))
    np.testing.assert_allclose(value, f(u, np.arange(s))[0], rtol=1e-12)
    np.testing.assert_allclose(gradient, f(u, np.arange(s))[1], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(bend, np.broadcast_to(hessian, bend.shape), atol=1e-9)
    np.testing.assert_array_equal(bend, bend.transpose(0, 2, 1))


@given(SEEDS, st.integers(1, 4), st.floats(1e-3, 10.0))
def test_a_step_leads_uphill_stays_in_the_cube_and_in_the_trust_region(seed: int, d: int, radius: float) -> None:
    rng = np.random.default_rng(seed)
    u = np.where(rng.random((6, d)) < 0.3, rng.integers(0, 2, (6, d)).astype(float), rng.random((6, d)))
    a = rng.standard_normal((6, d, d))
    reach, gradient = rng.uniform(0.1, 1.0, d), rng.standard_normal((6, d))
    step = _newton_step(u, gradient, a + a.transpose(0, 2, 1), reach, np.full(6, radius))
    assert np.all((u + step >= 0.0) & (u + step <= 1.0))
    pressed = ((u == 0.0) & (gradient < 0.0)) | ((u == 1.0) & (gradient > 0.0))
    assert np.all(step[pressed] == 0.0)
    assert np.all(np.linalg.norm(step / reach, axis=1) <= np.sqrt(d) * radius * (1.0 + 1e-9))
    inside = np.all((u + step > 0.0) & (u + step < 1.0), axis=1)  # a step that was cut may lead downhill
    assert np.all((step * gradient).sum(axis=1)[inside] >= 0.0)


@given(SEEDS, st.integers(1, 4))
def test_in_a_large_trust_region_the_step_on_a_concave_quadratic_ends_at_its_maximum(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    hessian, top, u = concave(rng, d), rng.uniform(0.4, 0.6, d), rng.uniform(0.4, 0.6, (1, d))
    _, gradient, bend = _expansion(quadratic(hessian, top), u, np.zeros(1, dtype=int))
    step = _newton_step(u, gradient, bend, rng.uniform(0.1, 1.0, d), np.full(1, 1e6))
    np.testing.assert_allclose(u[0] + step[0], top, atol=1e-6)


@given(SEEDS, st.integers(1, 4), st.floats(1e-3, 0.1))
def test_a_step_goes_uphill_along_each_eigenvector_by_slope_over_curvature_or_the_radius(
    seed: int, d: int, radius: float
) -> None:
    """In units of reach, whatever the sign of the curvature; no bound is near."""
    rng = np.random.default_rng(seed)
    vectors, reach = np.linalg.qr(rng.standard_normal((d, d)))[0], rng.uniform(0.1, 1.0, d)
    curvature, slope = rng.uniform(5.0, 50.0, d) * np.sign(rng.standard_normal(d)), rng.standard_normal(d)
    hessian = vectors @ np.diag(curvature) @ vectors.T / np.outer(reach, reach)
    gradient = (vectors @ slope) / reach
    step = _newton_step(np.full((1, d), 0.5), gradient[None], hessian[None], reach, np.full(1, radius))
    expected = np.sign(slope) * np.minimum(np.abs(slope / curvature), radius)
    np.testing.assert_allclose(vectors.T @ (step[0] / reach), expected, rtol=1e-6, atol=1e-9)
