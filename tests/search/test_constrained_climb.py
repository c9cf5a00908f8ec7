"""The climb inside constraints: its steps, and where it ends. More of it is in tests/space."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sample_objectives import PlainScore, assert_is_slope, hill

from gpmi import Int, Real, Space
from gpmi.search import constrained_climb
from gpmi.search.constrained_climb import (
    _Climber,
    _Expansion,
    _newton,
    _null_space,
    _orthonormal,
    _portions,
    _projected,
    _step,
    _steps,
    best_levels_inside,
    best_supports,
    climb_inside,
)
from gpmi.space import Polytope

SEEDS = st.integers(0, 10_000)
SHARES = st.floats(-0.5, 1.5)


def triangle() -> Any:
    return Space.of([(0.0, 1.0), (0.0, 1.0)]).constrained("x0 + x1 <= 1")


def nearest_in_triangle(point: np.ndarray) -> np.ndarray:
    """The point of {x >= 0, y >= 0, x + y <= 1} nearest to a point."""
    clipped = np.maximum(point, 0.0)
    if clipped.sum() <= 1.0:
        return clipped
    along = float(np.clip((point[0] - point[1] + 1.0) / 2.0, 0.0, 1.0))
    return np.array([along, 1.0 - along])


# Climbs


@given(SHARES, SHARES, st.floats(0.05, 0.9), st.floats(0.05, 0.9))
def test_a_hill_in_a_triangle_is_climbed_to_the_point_nearest_to_its_top(
    x: float, y: float, a: float, b: float
) -> None:
    start = np.array([[a, b * (1.0 - a)]])
    points, values = climb_inside(hill(np.array([x, y])), triangle(), start, 0.0)
    np.testing.assert_allclose(points[0], nearest_in_triangle(np.array([x, y])), atol=1e-5)
    np.testing.assert_array_equal(values, hill(np.array([x, y]))(points))


def test_a_climb_is_in_the_users_units_of_each_parameter() -> None:
    space: Any = Space.of([(-100.0, 300.0), (1e-3, 3e-3)]).constrained("x0 + 1e5 * x1 <= 300")
    unit = np.array([1.0, 1e-5])
    score = PlainScore(
        lambda z: -(((z - [200.0, 3e-3]) / unit) ** 2).sum(axis=1), lambda z: -2 * (z - [200.0, 3e-3]) / unit**2
    )
    points, _ = climb_inside(score, space, np.array([[0.0, 1.5e-3]]), 0.0)
    np.testing.assert_allclose(points[0], [100.0, 2e-3], rtol=1e-5)


def test_a_climb_does_not_enter_where_a_function_refuses() -> None:
    asked: list[bool] = []

    def outside_the_disc(point: Any) -> bool:
        asked.append(True)
        return bool((point[0] - 1.0) ** 2 + (point[1] - 1.0) ** 2 >= 0.25)

    space: Any = Space.of([(0.0, 1.0), (0.0, 1.0)]).constrained(outside_the_disc)
    points, values = climb_inside(hill(np.array([0.9, 0.9])), space, np.array([[0.1, 0.2], [0.3, 0.1]]), 0.0)
    assert np.all(((points - 1.0) ** 2).sum(axis=1) >= 0.25) and asked
    assert values.max() > hill(np.array([0.9, 0.9]))(np.array([[0.1, 0.2]]))[0] + 0.5
    np.testing.assert_array_equal(values, hill(np.array([0.9, 0.9]))(points))


def test_where_nothing_is_real_a_climb_returns_its_starts() -> None:
    space: Any = Space.of({"n": Int(0, 9), "m": Int(0, 9)}).constrained("n + m <= 9")
    starts, score = np.array([[1.0, 2.0], [4.0, 4.0]]), hill(np.array([3.0, 3.0]))
    points, values = climb_inside(score, space, starts, 0.0)
    assert points is not starts
    np.testing.assert_array_equal(points, starts)
    np.testing.assert_array_equal(values, score(starts))


def test_starts_that_differ_in_whole_numbers_climb_their_own_slices() -> None:
    space: Any = Space.of({"n": Int(0, 3), "x": (0.0, 1.0)}).constrained("n + 3 * x <= 4")
    top = lambda z: np.column_stack([z[:, 0], 0.2 * z[:, 0] + 0.1])  # noqa: E731
    score = PlainScore(lambda z: -((z - top(z)) ** 2).sum(axis=1), lambda z: -2.0 * (z - top(z)) * [0.0, 1.0])
    points, _ = climb_inside(score, space, np.array([[0.0, 0.9], [1.0, 0.1], [3.0, 0.0]]), 0.0)
    assert points[:, 0].tolist() == [0.0, 1.0, 3.0]
    leader = int(score(points).argmax())
    assert points[leader, 1] == pytest.approx(0.2 * points[leader, 0] + 0.1, abs=1e-5)
    assert points[2, 1] <= 1.0 / 3.0 + 1e-9


def climber_at(s: list[float], value: float, slope: list[float], numbers: float = 0.0) -> _Climber:
    cube = Polytope.of(np.empty((0, 2)), np.empty(0), np.empty(0))
    assert cube is not None
    return _Climber(cube, np.full(2, numbers), np.array(s), value, np.array(slope), -np.eye(2), np.ones(2))


def test_a_climber_that_comes_close_to_the_best_or_cannot_overtake_it_stops() -> None:
    best = climber_at([0.5, 0.5], 1.0, [1.0, 0.0])
    close = climber_at([0.51, 0.5], 0.99, [1.0, 0.0])
    close_elsewhere = climber_at([0.51, 0.5], 0.99, [1.0, 0.0], numbers=1.0)  # another setting of what is not real
    far = climber_at([0.1, 0.1], 0.99, [1.0, 0.0])
    hopeless = climber_at([0.1, 0.9], 0.0, [0.1, 0.0])
    flat = climber_at([0.9, 0.1], 2.0, [0.0, 0.0])
    climbers = [close, best, close_elsewhere, far, hopeless]
    assert sorted(_steps(climbers, 0.0, np.ones(2))) == [1, 2, 3]
    assert not close.moving and not hopeless.moving
    assert sorted(_steps(climbers, 0.0, np.ones(2))) == [1, 2, 3]
    assert not _steps([best, far], 0.5, np.ones(2))  # an eighth of the box, by a slope of 1, gains less
    assert not _steps([flat], 0.0, np.ones(2))


# Steps


@pytest.mark.parametrize("scale", [2.0**-300, 2.0**600, 2.0**1000])
def test_a_step_along_a_face_does_not_depend_on_the_unit_of_the_score(scale: float) -> None:
    """Newton's step would leave the cube, so it follows the gradient; the square of a large one would overflow."""
    cube = Polytope.of(np.empty((0, 2)), np.empty(0), np.empty(0))
    assert cube is not None
    slope, bend = np.array([-0.001, -0.01]), np.array([[-1.0, -0.9], [-0.9, -1.0]])

    def step(by: float) -> np.ndarray:
        return _step(_Climber(cube, np.zeros(2), np.array([1.0, 0.5]), 0.0, by * slope, by * bend, np.ones(2)))

    np.testing.assert_allclose(step(scale), step(1.0), rtol=1e-14)
    assert step(1.0)[0] < 0.0 and step(1.0)[1] < 0.0


@given(SEEDS, st.integers(1, 4), st.floats(1e-3, 2.0))
def test_a_step_stays_inside_and_leads_uphill(seed: int, q: int, radius: float) -> None:
    """From inside, from faces and from corners of random polytopes."""
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((3, q))
    polytope = Polytope.of(matrix, np.full(3, -np.inf), matrix @ np.full(q, 0.5) + rng.uniform(0.05, 0.5, 3))
    assert polytope is not None
    s = polytope.last_inside(np.full((1, q), 0.5), rng.uniform(-0.5, 1.5, (1, q)))[0]
    a, gradient = rng.standard_normal((q, q)), rng.standard_normal(q)
    step = _step(_Climber(polytope, np.zeros(q), s, 0.0, gradient, a + a.T, rng.uniform(0.2, 1.0, q), radius))
    assert np.all(polytope.rows @ (s + step) <= polytope.bounds + 1e-9)
    assert step @ gradient >= -1e-9 * np.linalg.norm(step)


@given(SEEDS, st.integers(1, 5), st.floats(1e-3, 1e3))
def test_newtons_step_is_that_of_each_eigenvector_or_the_radius(seed: int, k: int, radius: float) -> None:
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.standard_normal((k, k)))[0]
    curvature, slope = rng.uniform(0.1, 3.0, k) * np.sign(rng.standard_normal(k)), rng.standard_normal(k)
    step = _newton(slope, vectors @ np.diag(curvature) @ vectors.T, radius)
    along = vectors.T @ slope
    expected = np.sign(along) * np.minimum(np.abs(along / curvature), radius)
    np.testing.assert_allclose(vectors.T @ step, expected, rtol=1e-6, atol=1e-9)


@given(SEEDS, st.integers(1, 5), st.integers(0, 6))
def test_what_faces_leave_of_a_slope_is_its_projection(seed: int, k: int, count: int) -> None:
    """slope = projected + faces^T pressure, pressure >= 0; the projection leaves no face and is orthogonal to those
    that are pressed."""
    rng = np.random.default_rng(seed)
    slope, faces = rng.standard_normal(k), rng.standard_normal((count, k))
    projected, pressed = _projected(slope, faces)
    assert np.all(faces @ projected <= 1e-9)
    np.testing.assert_allclose(faces[pressed] @ projected, 0.0, atol=1e-9)
    gone = slope - projected
    assert gone @ projected == pytest.approx(0.0, abs=1e-9)
    if count:
        pressure = np.linalg.lstsq(faces[pressed].T, gone, rcond=None)[0] if len(pressed) else np.empty(0)
        np.testing.assert_allclose(faces[pressed].T @ pressure, gone, atol=1e-9)
        assert np.all(pressure >= -1e-9)
    else:
        assert not len(pressed) and not np.any(gone)


@given(SEEDS, st.integers(1, 5), st.integers(0, 6), st.integers(0, 5))
def test_a_null_space_is_orthonormal_orthogonal_to_the_rows_and_complete(
    seed: int, k: int, count: int, rank: int
) -> None:
    rng, rank = np.random.default_rng(seed), min(rank, k, count)
    rows = rng.standard_normal((count, rank)) @ rng.standard_normal((rank, k))
    basis = _null_space(rows, k)
    np.testing.assert_allclose(rows @ basis, 0.0, atol=1e-9 * max(1.0, np.abs(rows).max(initial=0.0)))
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
    assert basis.shape == (k, k - np.linalg.matrix_rank(rows)) if len(rows) else (k, k)


@given(SEEDS, st.integers(1, 5), st.integers(0, 5))
def test_a_basis_of_a_span_is_orthonormal_and_spans_it(seed: int, q: int, k: int) -> None:
    assume(k <= q)
    vectors = np.random.default_rng(seed).standard_normal((q, k))
    basis = _orthonormal(vectors)
    np.testing.assert_allclose(basis.T @ basis, np.eye(k), atol=1e-12)
    np.testing.assert_allclose(basis @ (basis.T @ vectors), vectors, atol=1e-9)


@given(SEEDS)
def test_the_expansion_by_the_variables_of_the_climb_is_that_of_the_score(seed: int) -> None:
    """x, log y under a linear constraint in y, and the whole number of the start each point belongs to."""
    space: Any = Space.of({"x": (-1.0, 3.0), "n": Int(0, 9), "y": Real(1e-3, 1.0, log=True)}).constrained("x + y <= 3")
    rng = np.random.default_rng(seed)
    weights, bends = rng.standard_normal(3), rng.standard_normal((3, 3))
    score: Any = PlainScore(
        lambda z: z @ weights + 0.5 * ((z @ bends) ** 2).sum(axis=1), lambda z: weights + z @ bends @ bends.T
    )
    numbers = space.layout.level_numbers(space.from_unit(rng.random((2, 3))))
    expansion = _Expansion(score, space, numbers, np.ones(3))
    s, which, feasible = rng.uniform(0.1, 0.8, (4, 2)), np.array([0, 1, 1, 0]), space.feasible_set

    def value_at(s: np.ndarray) -> np.ndarray:
        return score(space.layout.from_levels(feasible.with_s(numbers[which], s)))

    values, gradient, hessian, units = expansion(s, which)
    np.testing.assert_array_equal(values, value_at(s))
    np.testing.assert_array_equal(hessian, hessian.transpose(0, 2, 1))
    assert np.all((units > 0.0) & (units <= 1.0))
    assert_is_slope(value_at, gradient, s, np.full(2, 1e-5), rtol=1e-4)
    for j in range(2):
        assert_is_slope(lambda s: expansion(s, which)[1][:, j], hessian[:, :, j], s, np.full(2, 1e-4), 2e-3, 1e-4)  # noqa: B023


def test_the_value_where_a_function_refuses_is_minus_infinity() -> None:
    space: Any = Space.of([(0.0, 1.0), (0.0, 1.0)]).constrained(lambda point: bool(point[0] <= 0.5))
    expansion = _Expansion(hill(np.ones(2)), space, np.zeros((1, 2)), np.ones(2))
    values, gradient, _, _ = expansion(np.array([[0.4, 0.0], [0.6, 0.0]]), np.zeros(2, dtype=int))
    assert values[0] == pytest.approx(-1.36) and values[1] == -np.inf and np.all(np.isfinite(gradient))


# Discrete moves


@given(st.lists(st.integers(1, 20), max_size=12))
def test_portions_are_all_points_in_order_and_none_has_too_many_levels(sizes: list[int]) -> None:
    levels = {3 * i: np.zeros((size, 1)) for i, size in enumerate(sizes)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constrained_climb, "LEVELS_TOGETHER", 16)
        portions = _portions(levels)
    assert [i for portion in portions for i in portion] == list(levels)
    totals = [sum(len(levels[i]) for i in portion) for portion in portions]
    assert all(total <= 16 or len(portion) == 1 for total, portion in zip(totals, portions, strict=True))
    assert all(a + len(levels[b[0]]) > 16 for a, b in zip(totals[:-1], portions[1:], strict=True))  # none too early


@given(SEEDS, st.sampled_from(["n + m <= 8", lambda point: point["n"] + point["m"] <= 8]))
def test_each_whole_number_is_set_to_its_best_feasible_level_in_turn(seed: int, constraint: Any) -> None:
    space: Any = Space.of({"n": Int(0, 6), "m": Int(0, 6)}).constrained(constraint)
    rng = np.random.default_rng(seed)
    table = rng.random((7, 7))
    f = lambda z, _: table[z[:, 0].astype(int), z[:, 1].astype(int)]  # noqa: E731
    starts = space.rows[rng.integers(len(space.rows), size=4)]
    before = starts.copy()
    points, values = best_levels_inside(f, space, starts, f(starts, None), lambda levels, _: levels)
    np.testing.assert_array_equal(starts, before)
    for (n, m), point, value in zip(starts.astype(int), points.astype(int), values, strict=True):
        n = max(range(0, 9 - m if m > 2 else 7), key=lambda n: table[n, m])
        m = max(range(0, 9 - n if n > 2 else 7), key=lambda m: table[n, m])
        assert point.tolist() == [n, m] and value == table[n, m]


def test_a_parameter_under_a_condition_is_changed_only_where_it_is_active() -> None:
    space: Any = Space.of({"kind": ["svm", "tree"], "depth": Int(1, 5, when={"kind": "tree"}), "x": (0.0, 1.0)})
    svm = space.encode({"kind": "svm", "x": 0.5})
    tree = space.encode({"kind": "tree", "depth": 2, "x": 0.5})
    depths: dict[int, set[int]] = {0: set(), 1: set()}

    def f(z: np.ndarray, which: np.ndarray) -> np.ndarray:
        points = [space.decode(row) for row in z]
        for number, point in zip(which, points, strict=True):
            depths[int(number)] |= {point["depth"]} if point["kind"] == "tree" else set()
        return np.array([point["depth"] if point["kind"] == "tree" else 3.5 for point in points], dtype=float)

    starts = np.stack([svm, tree])
    points, values = best_levels_inside(f, space, starts, np.array([3.5, 4.0]), lambda levels, _: levels)
    assert [space.decode(row) for row in points] == [
        {"kind": "svm", "x": 0.5},
        {"kind": "tree", "depth": 5, "x": 0.5},
    ]
    assert values.tolist() == [3.5, 5.0]
    assert len(depths[0]) == 1 and depths[1] == {1, 2, 3, 4, 5}  # as a tree the first has one depth, the default


@given(SEEDS)
def test_the_best_move_of_the_support_is_that_of_all_moves(seed: int) -> None:
    space: Any = Space.of({"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)}).constrained(
        "1 <= count(a, b, c > 0) <= 2"
    )
    rng = np.random.default_rng(seed)
    target = rng.random(3) * (rng.random(3) < 0.7)
    f = lambda z, _: -((z - target) ** 2).sum(axis=1)  # noqa: E731
    starts = np.array([[0.4, 0.0, 0.0], [0.0, 0.3, 0.8]])
    points, values = best_supports(f, space, starts, f(starts, None))
    for start, point, value in zip(starts, points, values, strict=True):
        on = start > 0.0
        moves = [start]
        for after in product([False, True], repeat=3):
            new, gone = np.array(after) & ~on, on & ~np.array(after)
            if 1 <= sum(after) <= 2 and new.sum() + gone.sum() > 0 and max(new.sum(), gone.sum()) <= 1:
                for share in [0.25, 0.5, 0.75, *start[gone]] if new.any() else [0.0]:
                    moves.append(np.where(new, share, np.where(gone, 0.0, start)))
        assert value == pytest.approx(max(f(np.array(moves), None)))
        assert 1 <= (point > 0.0).sum() <= 2 and value == f(point[None], None)[0]
    assert starts.tolist() == [[0.4, 0.0, 0.0], [0.0, 0.3, 0.8]]
