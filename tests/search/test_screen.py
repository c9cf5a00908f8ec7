"""The points at which a search begins."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_objectives import box, posterior_in
from sample_spaces import SPACES

from gpmi import Int, Posterior, Real, Space, kernels
from gpmi._support.sobol import sobol
from gpmi.search.barriers import Barriers
from gpmi.search.neighbours import best_observed, best_observed_in, neighbours
from gpmi.search.screen import SCREEN, farthest, screen_of, spread_over
from gpmi.space import Parameters

SEEDS = st.integers(0, 1000)
SQUARE = box((-1.0, 1.0), (0.0, 10.0))
CONTINUOUS = [name for name, (spec, constraints) in SPACES.items() if Space.of(spec).rows is None]


@cache
def sample_space(name: str) -> Any:
    spec, constraints = SPACES[name]
    return Space.of(spec).constrained(constraints)


# The screen


def test_the_first_points_of_a_longer_sequence_are_the_shorter_sequence() -> None:
    np.testing.assert_array_equal(sobol(5, 4, (7, 0)), sobol(5, 8, (7, 0))[:16])
    assert not np.array_equal(sobol(5, 4, (7, 0)), sobol(5, 4, (7, 1)))


@pytest.mark.parametrize("name", CONTINUOUS)
def test_a_screen_has_points_of_the_space_the_same_for_the_same_seed(name: str) -> None:
    space = sample_space(name)
    screen = screen_of(space, 0)
    assert len(screen) == SCREEN and np.all(space.feasible_set.contains(screen))
    points, again, others = (spread_over(space, 4, seed) for seed in ((0, 1), (0, 1), (0, 2)))
    assert len(points) == 16 and np.all(space.feasible_set.contains(points))
    np.testing.assert_array_equal(points, again)
    assert not np.array_equal(points, others)


@given(SEEDS, st.integers(3, 9))
def test_a_screen_of_a_box_fills_each_half_of_each_parameter_evenly(seed: int, log2: int) -> None:
    screen = spread_over(SQUARE, log2, (seed,))
    assert len(screen) == 2**log2
    np.testing.assert_array_equal((screen > [0.0, 5.0]).sum(axis=0), 2 ** (log2 - 1))


def test_a_screen_inside_constraints_is_not_changed_by_those_who_get_it() -> None:
    screen = screen_of(sample_space("logs below a plane"), 0)
    with pytest.raises(ValueError, match="read-only"):
        screen[0] = 0.0


# The farthest point


@given(SEEDS, st.integers(1, 12), st.booleans())
def test_the_farthest_point_is_that_of_all_distances(seed: int, n: int, has_barriers: bool) -> None:
    rng = np.random.default_rng(seed)
    taken = SQUARE.from_unit(rng.random((n, 2)))
    at, half = SQUARE.from_unit(rng.random((2, 2))), 0.2 * np.tile(SQUARE.span, (2, 1))
    barriers = Barriers(at, half, half) if has_barriers else None
    screen = screen_of(SQUARE, seed % 5)
    if barriers is not None:
        screen = screen[~barriers.holds(screen)]
    unit = (screen - SQUARE.lo) / SQUARE.span
    apart = np.linalg.norm((screen[:, None] - taken) / SQUARE.span, axis=2).min(axis=1)
    walls = 2.0 * np.minimum(unit, 1.0 - unit).min(axis=1)
    result = farthest(SQUARE, seed % 5, taken, barriers)
    np.testing.assert_array_equal(result, screen[np.minimum(apart, walls).argmax()])


def test_fixed_coordinates_have_no_walls() -> None:
    """The fixed coordinate is on its wall, so every point would have distance 0, and the first would be taken."""
    part: Any = SQUARE.with_fixed({0: 1.0})
    row = farthest(part, 0, np.array([[1.0, 2.0]]))
    assert row is not None and row[0] == 1.0 and row[1] == pytest.approx(22.0 / 3.0, abs=0.1)  # 10 - x = (x - 2) / 2


def test_a_coordinate_that_constraints_fix_has_no_walls() -> None:
    space: Any = SQUARE.constrained("x0 == 1")
    row = farthest(space, 0, np.array([[1.0, 2.0]]))
    assert row is not None and row[0] == 1.0 and row[1] == pytest.approx(22.0 / 3.0, abs=0.03)


def test_where_every_point_is_barred_there_is_no_farthest() -> None:
    everywhere = np.array([[0.0, 5.0]]), np.array([[9.0, 9.0]]), np.array([[9.0, 9.0]])
    assert farthest(SQUARE, 0, np.array([[0.0, 5.0]]), Barriers(*everywhere)) is None


# The best observed points


@given(SEEDS, st.integers(0, 9))
def test_the_best_observed_are_three_in_the_order_of_their_means(seed: int, n: int) -> None:
    posterior = (
        posterior_in(SQUARE, seed, n, noise_var=0.1) if n else posterior_in(SQUARE, 0, 1).prior(kernels.RBF(), 0.1)
    )
    rows = best_observed_in(posterior, SQUARE)
    assert rows.shape == (min(n, 3), 2)
    if n:
        mu = posterior.mu(posterior.x)
        np.testing.assert_allclose(posterior.mu(rows), np.sort(mu)[::-1][:3], rtol=1e-7, atol=1e-9)
        np.testing.assert_array_equal(rows, best_observed(posterior))


def test_of_equal_means_the_first_told_is_the_best() -> None:
    x = np.array([[0.0], [50.0], [100.0], [150.0], [200.0]])
    posterior = Posterior.prior(kernels.RBF(0.1), 0.1).condition(x, np.array([0.0, 1.0, 1.0, 1.0, 1.0]))
    assert best_observed(posterior)[:, 0].tolist() == [50.0, 100.0, 150.0]


@given(SEEDS)
def test_in_a_part_they_are_the_observed_points_moved_there_with_the_best_means(seed: int) -> None:
    part: Any = SQUARE.with_fixed({0: 0.25})
    posterior = posterior_in(SQUARE, seed, 8)
    moved = np.column_stack([np.full(8, 0.25), posterior.x[:, 1]])
    order = np.argsort(-posterior.mu(moved), kind="stable")[:3]
    np.testing.assert_array_equal(best_observed_in(posterior, part), moved[order])


# Neighbours


@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.parametrize("width", [None, 0.01])
def test_neighbours_are_points_of_the_space(name: str, width: float | None) -> None:
    space = sample_space(name)
    centres = screen_of(space, 0)[:3]
    rows = neighbours(space, centres, np.random.default_rng(0), width)
    assert len(rows) == 64 and np.all(space.feasible_set.contains(rows))
    assert np.all((rows >= space.lo) & (rows <= space.hi))
    levels = space.layout.level_numbers(rows)
    np.testing.assert_allclose(space.layout.from_levels(levels), rows, atol=1e-9)
    assert neighbours(space, centres[:0], np.random.default_rng(0)).shape == (0, space.dim)


@given(SEEDS, st.floats(1e-6, 1e-3))
def test_neighbours_on_a_box_are_a_few_widths_around_a_centre_and_often_share_coordinates(
    seed: int, width: float
) -> None:
    space = box(*[(0.0, 10.0)] * 5)
    centres = np.random.default_rng(seed).uniform(2.0, 8.0, (3, 5))
    rows = neighbours(space, centres, np.random.default_rng(seed), width)
    away = (rows[:, None] - centres) / space.span
    nearest = np.take_along_axis(away, np.abs(away).max(axis=2).argmin(axis=1)[:, None, None], axis=1)[:, 0]
    assert np.abs(nearest).max() <= 6.0 * width
    moved = nearest != 0.0
    assert 0.4 < moved.mean() < 0.9  # at least two of five coordinates, on average
    assert 0.7 * width < np.sqrt((nearest[moved] ** 2).mean()) < 1.3 * width
    assert len(np.unique(np.abs(away).max(axis=2).argmin(axis=1))) == 3  # each centre has some


def test_neighbours_take_another_level_of_a_discrete_parameter_now_and_then() -> None:
    space: Any = Parameters.named(
        {"x": (0.0, 1.0), "n": Int(0, 1000), "lr": Real(1e-3, 1.0, log=True), "c": ["a", "b"]}
    )
    centre = space.from_unit(np.full((1, 4), 0.4))
    rows = np.concatenate([neighbours(space, centre, np.random.default_rng(seed)) for seed in range(20)])
    other = rows[:, 1] != centre[0, 1]
    assert 0.1 < other.mean() < 0.3 and np.ptp(rows[other, 1]) > 800  # of all levels, not only of near ones
    assert 0.05 < (rows[:, 3] != centre[0, 3]).mean() < 0.15  # of the two options one is its own
    assert np.all(rows[:, 1] == np.round(rows[:, 1]))


def test_a_parameter_that_becomes_active_takes_any_of_its_levels() -> None:
    space: Any = Space.of(SPACES["branches"][0])
    centre = space.encode({"kind": "svm", "c": 1.0})[None]
    rows = np.concatenate([neighbours(space, centre, np.random.default_rng(seed)) for seed in range(20)])
    depths = [point["depth"] for point in map(space.decode, rows) if point["kind"] == "tree"]
    assert len(depths) > 50 and set(depths) == set(range(1, 10))
    assert max(depths.count(depth) for depth in set(depths)) < 0.4 * len(depths)


def test_neighbours_in_a_part_have_its_fixed_coordinates() -> None:
    part: Any = Parameters.named({"x": (0.0, 1.0), "n": Int(0, 9), "y": (0.0, 1.0)}).with_fixed({"n": 4, "y": 0.25})
    rows = neighbours(part, np.array([[0.5, 4.0, 0.25]]), np.random.default_rng(0))
    assert len(rows) == 64 and np.all(rows[:, 1:] == [4.0, 0.25]) and len(np.unique(rows[:, 0])) > 20
