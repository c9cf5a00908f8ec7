"""The initial design: what it shows, and which of its points comes next."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_spaces import SPACES

from gpmi import Choice, Int, Space
from gpmi.search.barriers import Barriers
from gpmi.search.initial_design import COVERING_ROWS, SMALL_CHOICE, InitialDesign, covering, design_of

SEEDS = st.integers(0, 1000)


def sample_space(name: str) -> Any:
    spec, constraints = SPACES[name]
    return Space.of(spec).constrained(constraints)


# Rows


@pytest.mark.parametrize("name", SPACES)
def test_a_larger_count_only_appends_rows_and_all_are_points_of_the_space(name: str) -> None:
    space = sample_space(name)
    for cover in (False, True):
        longest = design_of(space, 3, 70, cover=cover)
        for count in (1, 7, 40):
            rows = design_of(space, 3, count, cover=cover)
            assert len(rows) >= min(count, len(longest))
            np.testing.assert_array_equal(rows, longest[: len(rows)])
    for row in longest:
        np.testing.assert_allclose(space.encode(space.decode(row)), row, atol=1e-9)


@pytest.mark.parametrize("cover", [False, True])
def test_on_a_finite_set_each_row_comes_once_in_an_order_of_the_seed(cover: bool) -> None:
    space: Any = Space.of({"a": Int(1, 5), "b": ["x", "y", "z"], "c": Int(0, 3)})
    orders = [design_of(space, seed, 1, cover=cover) for seed in (0, 0, 1)]
    for rows in orders:
        np.testing.assert_array_equal(np.unique(rows, axis=0), np.unique(space.rows, axis=0))
        assert len(rows) == len(space.rows)
    np.testing.assert_array_equal(orders[0], orders[1])
    assert not np.array_equal(orders[0], orders[2])


@given(SEEDS, st.integers(2, 60), st.integers(2, 4))
def test_with_cover_each_block_of_k_points_shows_all_of_k_options(seed: int, k: int, other: int) -> None:
    space: Any = Space.of({"x": (0.0, 1.0), "c": list(range(k)), "d": [f"option {i}" for i in range(other)]})
    points = [space.decode(row) for row in design_of(space, seed, 4 * k * other, cover=True)]
    for name, count in (("c", k), ("d", other)):
        shown = [point[name] for point in points]
        for begin in range(0, len(shown) - count + 1, count):
            assert len(set(shown[begin : begin + count])) == count
    plain = design_of(space, seed, 4 * k * other)
    covered = design_of(space, seed, 4 * k * other, cover=True)
    np.testing.assert_array_equal(covered[:, 0], plain[:, 0])  # the reals are those of the Sobol points


def test_options_that_have_an_order_and_single_ones_do_not_take_turns() -> None:
    space: Any = Space.of({"x": (0.0, 1.0), "o": Choice([1, 2, 3], ordered=True), "k": ["only"]})
    np.testing.assert_array_equal(design_of(space, 5, 16, cover=True), design_of(space, 5, 16))


@given(SEEDS, st.integers(1, 30), st.lists(st.integers(2, SMALL_CHOICE + 2), min_size=1, max_size=3))
def test_covering_rows_begin_with_those_that_show_the_most_new_options(seed: int, m: int, sizes: list[int]) -> None:
    """Against the greedy choice itself; options of larger choices do not count."""
    rng = np.random.default_rng(seed)
    options = np.stack([rng.integers(size, size=m) for size in sizes], axis=1)
    one_hot = [np.eye(size)[options[:, j]] for j, size in enumerate(sizes)]
    rows = np.concatenate([rng.random((m, 1)), *one_hot], axis=1)
    groups = (0, *(j + 1 for j, size in enumerate(sizes) for _ in range(size)))
    result = covering(rows, groups)
    order = [int(np.flatnonzero((rows == row).all(axis=1))[0]) for row in result]
    assert sorted(order) == list(range(m))
    small = [j for j, size in enumerate(sizes) if size <= SMALL_CHOICE]
    shown: set[tuple[int, int]] = set()
    front = 0
    while any((j, options[i, j]) not in shown for i in range(m) for j in small):
        new = [sum((j, options[i, j]) not in shown for j in small) for i in range(m)]
        assert order[front] == new.index(max(new))
        shown |= {(j, int(options[order[front], j])) for j in small}
        front += 1
    assert order[front:] == [i for i in range(m) if i not in order[:front]]


def test_only_the_first_rows_are_looked_at_for_new_options() -> None:
    rows = np.zeros((COVERING_ROWS + 2, 3))
    rows[:, 0] = np.arange(len(rows))
    rows[:, 1] = 1.0
    rows[-2:, 1:] = [0.0, 1.0]
    np.testing.assert_array_equal(covering(rows, (0, 1, 1)), rows)
    rows[COVERING_ROWS - 1, 1:] = [0.0, 1.0]
    assert covering(rows, (0, 1, 1))[1, 0] == COVERING_ROWS - 1


def test_where_few_supports_are_left_the_design_begins_in_the_middle_of_each() -> None:
    space: Any = Space.of([(0.0, 1.0)] * 3).constrained("count(x0, x1, x2) == 1")
    for seed in range(3):
        first = design_of(space, seed, 5)[:3]
        assert sorted((row > 0.0).argmax() for row in first) == [0, 1, 2] and np.all((first > 0.0).sum(axis=1) == 1)
        np.testing.assert_allclose(first.max(axis=1), 0.5, atol=0.2)


# The next point


def taken_of(space: Any, points: list[Any]) -> dict[bytes, int]:
    return {space.encode(point).tobytes(): number for number, point in enumerate(points)}


@pytest.mark.parametrize("name", ["box", "whole numbers", "rows", "a table", "branches", "steps and ranks"])
def test_the_next_point_is_the_first_of_the_design_that_is_not_taken(name: str) -> None:
    space = sample_space(name)
    design, points = InitialDesign(space, 2, cover=True), []
    expected = []
    for row in design_of(space, 2, 60, cover=True):
        point = space.decode(row)
        if space.encode(point).tobytes() not in taken_of(space, expected):
            expected.append(point)
    for _ in range(12):
        points.append(design.first_free(taken_of(space, points)))
    rows = [space.encode(point).tolist() for point in points]
    assert rows == [space.encode(point).tolist() for point in expected[:12]]
    del points[4]  # given back
    again = design.first_free(taken_of(space, points))
    assert space.encode(again).tolist() == rows[4]
    fresh = InitialDesign(space, 2, cover=True).first_free(taken_of(space, points))
    assert space.encode(fresh).tolist() == rows[4]


@given(SEEDS, st.sets(st.integers(0, 11)))
def test_on_a_finite_set_there_is_a_next_point_until_all_are_taken(seed: int, gone: set[int]) -> None:
    space: Any = Space.of(np.arange(12.0)[:, None])
    order = design_of(space, seed, 1)[:, 0].tolist()
    taken = taken_of(space, [np.array([float(i)]) for i in gone])
    point = InitialDesign(space, seed).first_free(taken)
    assert (None if point is None else point.tolist()) == next(([i] for i in order if i not in gone), None)


@given(SEEDS, st.integers(0, 25), st.integers(0, 7))
def test_with_fixed_coordinates_the_search_begins_at_the_kth_point(seed: int, k: int, gone: int) -> None:
    """The k trials before had other fixed coordinates, and the free coordinates should differ from theirs."""
    part: Any = Space.of(np.array([[i, j] for i in range(2) for j in range(8)], dtype=float)).with_fixed({0: 1.0})
    order = design_of(part, seed, 8)
    taken = {order[(k + i) % 8].tobytes(): i for i in range(gone)}
    taken |= {bytes([i]): i for i in range(k - gone)}  # points elsewhere
    point = InitialDesign(part, seed).first_free(taken)
    begin = len(taken) % 8
    rolled = np.concatenate([order[begin:], order[:begin]])
    expected = next((row.tolist() for row in rolled if row.tobytes() not in taken), None)
    assert (None if point is None else np.asarray(point).tolist()) == expected


def test_barred_points_are_passed_over_however_many_there_are() -> None:
    space: Any = Space.of([(0.0, 1.0)])
    at, width = np.array([[0.0]]), np.array([[0.99]])
    point = InitialDesign(space, 0).first_free({}, Barriers(at, width, width))
    assert point is not None and point[0] > 0.99
    assert InitialDesign(space, 0).first_free({}, Barriers(at, width + 0.01, width)) is None
    rows = design_of(space, 0, 500)[:, 0]
    assert point[0] == rows[rows > 0.99][0]


def test_with_fixed_coordinates_barred_points_are_passed_over_too() -> None:
    part: Any = Space.of([(0.0, 1.0), (0.0, 1.0)]).with_fixed({0: 0.5})
    at, width = np.array([[0.5, 0.0]]), np.array([[1.0, 0.9]])
    point = InitialDesign(part, 0).first_free({}, Barriers(at, width, width))
    assert point is not None and point[0] == 0.5 and point[1] > 0.9
    assert InitialDesign(part, 0).first_free({}, Barriers(at, width + 0.1, width)) is None
