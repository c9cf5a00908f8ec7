"""Mixtures: moves along them keep the sum and the ratios; triangles are barycentric."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpmi
from gpmi.space.mixtures import Mixture, Triangle, grid_of, mixtures_of

SPACE = {"a": (0.0, 1.0), "b": (0.1, 1.0), "t": (20.0, 90.0), "c": (0.0, 1.0), "kind": ["x", "y"]}


def space(*constraints: str, **more: object) -> gpmi.Space:
    return gpmi.Space.of({**SPACE, **more}).constrained(list(constraints))


def test_a_sum_with_equal_weights_is_a_mixture() -> None:
    (one,) = mixtures_of(space("a + b + c == 1"))
    assert one == Mixture(("a", "b", "c"), (0, 1, 3), 1.0, (0.0, 0.1, 0.0))
    (double,) = mixtures_of(space("2*a + 2*b == 1.5"))
    assert (double.names, double.total) == (("a", "b"), 0.75)


@pytest.mark.parametrize("rule", ["a + b + c <= 1", "a + 2*b + c == 1", "a == 0.3"])
def test_other_constraints_are_none(rule: str) -> None:
    assert mixtures_of(space(rule)) == ()


def test_parameters_on_another_scale_are_no_components() -> None:
    assert mixtures_of(space("a + n == 1", n=gpmi.Int(0, 1))) == ()
    assert mixtures_of(space("a + g == 1", g=gpmi.Real(0.01, 1.0, log=True))) == ()
    assert mixtures_of(gpmi.Space.of(np.eye(3))) == ()


@given(st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3), st.floats(0.0, 1.0), st.integers(0, 2))
def test_a_move_keeps_the_sum_and_the_ratios(parts: list[float], value: float, k: int) -> None:
    if sum(parts) < 1e-6:
        parts = [1.0, 1.0, 1.0]
    a, b, c = (part / sum(parts) for part in parts)
    row, one = np.array([a, b, 55.0, c, 0.0, 1.0]), Mixture(("a", "b", "c"), (0, 1, 3), 1.0, (0.0, 0.0, 0.0))
    column = one.columns[k]
    (moved,) = one.moved(row, column, np.array([value]))
    assert moved[column] == value and moved[[0, 1, 3]].sum() == pytest.approx(1.0, abs=1e-9)
    i, j = (other for other in one.columns if other != column)
    if row[i] + row[j] > 1e-6:
        assert moved[i] * row[j] == pytest.approx(moved[j] * row[i], abs=1e-9)
    assert (moved[[2, 4, 5]] == row[[2, 4, 5]]).all()


def test_a_pure_component_shares_equally() -> None:
    one = Mixture(("a", "b", "c"), (0, 1, 2), 1.0, (0.0, 0.0, 0.0))
    np.testing.assert_allclose(one.moved(np.array([1.0, 0.0, 0.0]), 0, np.array([0.4])), [[0.4, 0.3, 0.3]])


@given(st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3).filter(lambda parts: sum(parts) > 1e-3))
def test_weights_are_the_inverse_of_rows(parts: list[float]) -> None:
    mixture = Mixture(("a", "b", "c", "d"), (0, 1, 3, 4), 1.0, (0.0, 0.1, 0.05, 0.0))
    triangle = Triangle(mixture, (0, 1, 2), 0.8)
    weights = np.array([parts]) / sum(parts)
    rows = triangle.rows(np.array([0.3, 0.3, 55.0, 0.2, 0.2]), weights)
    assert rows[0, [0, 1, 3]].sum() == pytest.approx(0.8) and rows[0, 4] == 0.2
    np.testing.assert_allclose(triangle.weights(rows), weights, atol=1e-9)
    corners = triangle.rows(np.zeros(5), np.eye(3))[:, [0, 1, 3]]
    np.testing.assert_allclose(np.diag(corners), triangle.highs)


@pytest.mark.parametrize("sides", [1, 2, 5])
def test_small_triangles_cover_the_large_one(sides: int) -> None:
    weights, small = grid_of(sides)
    assert len(small) == sides**2 and weights.sum(axis=1) == pytest.approx(1.0)
    plane = weights @ np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    a, b, c = (plane[small[:, k]] for k in range(3))
    areas = 0.5 * np.abs((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0])
    np.testing.assert_allclose(areas, 0.5 / sides**2)
