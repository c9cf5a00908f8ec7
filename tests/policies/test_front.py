"""The front, the volume it dominates and the boxes above it: against definitions, and volumes that add up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpmi.policies.front import Boxes, boxes_above, hypervolume, non_dominated

Array = NDArray[np.float64]
CORNER = 5.0  # above all points of `fronts`


@st.composite
def fronts(draw: st.DrawFn, dimensions: tuple[int, ...] = (1, 2, 3, 4), most: int = 10) -> Array:
    """Points on an integer grid, with ties, duplicates and points that are not above the origin; or points of a box."""
    m, n = draw(st.sampled_from(dimensions)), draw(st.integers(0, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    levels = draw(st.sampled_from((1, 2, 4, None)))
    if levels is None:
        return rng.uniform(-0.5, CORNER, size=(n, m))
    return rng.integers(0, levels + 1, size=(n, m)).astype(float)


def sphere(n: int, m: int, seed: int = 0) -> Array:
    """n points, none of which dominates another."""
    z = np.abs(np.random.default_rng(seed).standard_normal((n, m)))
    return z / np.linalg.norm(z, axis=1, keepdims=True)


def dominated(y: Array, z: Array) -> NDArray[np.bool_]:
    """Whether a z_j >= y_i in all coordinates and > in one, from the definition."""
    return np.array([any(np.all(other >= one) and np.any(other > one) for other in z) for one in y], dtype=bool)


def clipped_volume(boxes: Boxes, corner: float) -> float:
    return float(np.prod(np.minimum(boxes.upper, corner) - boxes.lower, axis=1).sum())


# The front


@given(fronts())
def test_the_front_is_what_nothing_dominates_and_equal_rows_stay_together(z: Array) -> None:
    np.testing.assert_array_equal(non_dominated(z), ~dominated(z, z))


@given(fronts(most=40), st.integers(0, 2**32 - 1))
def test_the_front_does_not_depend_on_the_order_of_rows_or_coordinates(z: Array, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(z)), rng.permutation(z.shape[1])
    np.testing.assert_array_equal(non_dominated(z[rows][:, columns]), non_dominated(z)[rows])


@pytest.mark.parametrize("m", [1, 2, 3])
def test_a_value_of_minus_infinity_is_dominated_by_any_other_and_kept_alone(m: int) -> None:
    z = np.full((3, m), -np.inf)
    assert non_dominated(z).all()
    z[1] = 0.0
    np.testing.assert_array_equal(non_dominated(z), [False, True, False])


@pytest.mark.parametrize("m", [2, 3, 4])
def test_all_of_two_thousand_points_of_a_sphere_are_on_the_front(m: int) -> None:
    assert non_dominated(sphere(2000, m)).all()


# The hypervolume


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
def test_one_point_dominates_the_product_of_its_coordinates(m: int) -> None:
    z = np.arange(1.0, m + 1.0)
    assert hypervolume(z[None], np.full(m, -1.0)) == pytest.approx(np.prod(z + 1.0), rel=1e-14)
    assert hypervolume(np.empty((0, m)), np.zeros(m)) == 0.0
    z[-1] = -1.0  # on the edge of the region
    assert hypervolume(z[None], np.full(m, -1.0)) == 0.0


@given(fronts(most=7))
def test_the_hypervolume_is_the_sum_by_inclusion_and_exclusion(z: Array) -> None:
    total = 0.0
    for subset in range(1, 2 ** len(z)):
        chosen = z[[i for i in range(len(z)) if subset >> i & 1]]
        total -= (-1.0) ** len(chosen) * np.prod(np.maximum(chosen.min(axis=0), 0.0))
    np.testing.assert_allclose(hypervolume(z, np.zeros(z.shape[1])), total, rtol=1e-9, atol=1e-9)


@given(fronts(dimensions=(2, 3, 4, 5), most=20), st.integers(0, 2**32 - 1))
def test_the_hypervolume_does_not_depend_on_the_order_of_rows_or_coordinates(z: Array, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(z)), rng.permutation(z.shape[1])
    zero = np.zeros(z.shape[1])
    np.testing.assert_allclose(hypervolume(z[rows][:, columns], zero), hypervolume(z, zero), rtol=1e-12)


# The boxes


@given(fronts())
def test_the_boxes_and_what_the_front_dominates_fill_the_whole_box(z: Array) -> None:
    zero = np.zeros(z.shape[1])
    total = clipped_volume(boxes_above(z, zero), CORNER) + hypervolume(z, zero)
    np.testing.assert_allclose(total, CORNER ** z.shape[1], rtol=1e-12)


@given(fronts(dimensions=(1, 2, 3, 4, 5)), st.integers(0, 2**32 - 1))
def test_a_point_is_in_one_box_if_the_front_does_not_dominate_it_and_in_none_if_it_does(z: Array, seed: int) -> None:
    y = np.random.default_rng(seed).uniform(0.0, CORNER, size=(50, z.shape[1]))
    boxes = boxes_above(z, np.zeros(z.shape[1]))
    inside = np.all((boxes.lower <= y[:, None]) & (y[:, None] < boxes.upper), axis=2).sum(axis=1)
    np.testing.assert_array_equal(inside, ~dominated(y, z))


@given(fronts(dimensions=(1, 2, 3, 4, 5), most=20))
def test_no_box_is_empty_and_all_are_unbounded_in_the_first_coordinate(z: Array) -> None:
    boxes = boxes_above(z, np.zeros(z.shape[1]))
    assert np.all(boxes.lower < boxes.upper) and np.all(boxes.upper[:, 0] == np.inf)
    assert np.all(boxes.lower >= 0.0) and np.all(np.isfinite(boxes.lower)) and len(boxes) >= 1


@pytest.mark.parametrize("n", [0, 1, 30, 60])
def test_there_are_one_box_then_n_plus_one_then_2n_plus_one_boxes(n: int) -> None:
    assert len(boxes_above(np.arange(float(n))[:, None], np.full(1, -1.0))) == 1
    assert len(boxes_above(sphere(n, 2), np.zeros(2))) == n + 1
    assert len(boxes_above(sphere(n, 3), np.zeros(3))) == 2 * n + 1


def test_dominated_and_equal_points_and_points_below_the_reference_change_no_box() -> None:
    front, zero = sphere(12, 3), np.zeros(3)
    more = np.vstack([front, 0.9 * front, front, np.array([[2.0, 2.0, -1.0], [3.0, 3.0, 0.0]])])
    plain, again = boxes_above(front, zero), boxes_above(more, zero)
    np.testing.assert_array_equal(plain.lower, again.lower)
    np.testing.assert_array_equal(plain.upper, again.upper)
