"""The recommended point: the best posterior mean, or the best point that has worked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_objectives import box, chance_in, grid_in, posterior_in

from gpmi import Posterior, Space, kernels
from gpmi.gp.approximate.success import Requirement, SuccessProbability
from gpmi.policies.policy import SAFE
from gpmi.search.recommendation import best_mean, mean_at_told, recommended_row
from gpmi.search.screen import screen_of

SEEDS = st.integers(0, 1000)
TABLE: Any = Space.of(np.random.default_rng(3).random((80, 2)))
SQUARE = box((0.0, 1.0), (0.0, 1.0))
NONE = np.zeros(25, dtype=bool)


def never() -> SuccessProbability:
    """The probability that a function far below 0 is at least 0: largest, but small, in the corner (1, 1)."""
    latent = Posterior.prior(kernels.Linear(1.0), 1e-2).condition(np.eye(2), np.ones(2))
    return SuccessProbability((Requirement(latent, limit=12.0),))


# The best mean


@given(SEEDS, st.booleans())
def test_of_rows_the_one_with_the_best_mean_is_recommended(seed: int, has_members: bool) -> None:
    posterior = posterior_in(TABLE, seed)
    members = tuple(posterior_in(TABLE, seed + i) for i in range(3)) if has_members else ()
    means = np.mean([member.mu(TABLE.rows) for member in members or (posterior,)], axis=0)
    np.testing.assert_array_equal(best_mean(posterior, members, TABLE, 0), TABLE.rows[means.argmax()])
    recommended = recommended_row(posterior, members, TABLE, 0, None, NONE)
    np.testing.assert_array_equal(recommended, TABLE.rows[means.argmax()])


def test_of_equal_rows_the_lowest_is_recommended() -> None:
    few = np.random.default_rng(0).random((7, 2))
    space: Any = replace(Space.of(np.arange(21.0)[:, None]), encoded=np.tile(few, (3, 1)))
    posterior = posterior_in(Space.of(few), 0)
    row = best_mean(posterior, (), space, 0)
    np.testing.assert_array_equal(row, few[posterior.mu(few).argmax()])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("count", [0, 3])
def test_on_a_box_no_grid_point_has_a_better_mean(seed: int, count: int) -> None:
    posterior = posterior_in(SQUARE, seed)
    members = tuple(posterior_in(SQUARE, seed + i) for i in range(count))
    row = best_mean(posterior, members, SQUARE, seed)
    z = np.concatenate([row[None], grid_in(SQUARE, 61), posterior.x])
    means = np.mean([member.mu(z) for member in members or (posterior,)], axis=0)
    assert np.all((row >= 0.0) & (row <= 1.0)) and means[0] >= means.max() - 1e-4


# Points that succeed


@given(SEEDS, st.sampled_from([0.5, 0.9]))
def test_of_rows_only_those_that_probably_succeed_count(seed: int, least: float) -> None:
    posterior, chance = posterior_in(TABLE, seed), chance_in(TABLE, seed, spread=0.1)
    p, mu = chance(TABLE.rows), posterior.mu(TABLE.rows)
    best = np.where(p >= least, mu, -np.inf).argmax() if np.any(p >= least) else p.argmax()
    np.testing.assert_array_equal(best_mean(posterior, (), TABLE, 0, chance, least), TABLE.rows[best])


@pytest.mark.parametrize("seed", range(4))
def test_on_a_box_no_grid_point_that_probably_succeeds_has_a_better_mean(seed: int) -> None:
    posterior, chance = posterior_in(SQUARE, seed), chance_in(SQUARE, seed, spread=0.1)
    row, grid = best_mean(posterior, (), SQUARE, seed, chance, 0.7), grid_in(SQUARE, 61)
    likely = chance(grid) >= 0.7
    means = posterior.mu(grid[likely])
    assert chance(row[None])[0] >= 0.7 - 1e-12
    # A climb ends at the border of the region and does not follow it.
    assert posterior.mu(row[None])[0] >= means.max() - 0.05 * np.ptp(means)
    screen = screen_of(SQUARE, seed)
    assert posterior.mu(row[None])[0] >= posterior.mu(screen[chance(screen) >= 0.7]).max()


def test_if_no_point_probably_succeeds_it_is_the_one_most_likely_to() -> None:
    posterior = posterior_in(SQUARE, 0)
    chance = never()
    assert np.all(chance(grid_in(SQUARE, 21)) < 0.5)
    row, looked_at = best_mean(posterior, (), SQUARE, 0, chance), np.concatenate([screen_of(SQUARE, 0), posterior.x])
    assert chance(row[None])[0] == pytest.approx(chance(looked_at).max())


@given(SEEDS, st.sets(st.integers(0, 24)))
def test_with_a_chance_it_is_the_told_point_with_the_best_mean_that_has_worked(seed: int, worked: set[int]) -> None:
    posterior, chance, proven = posterior_in(SQUARE, seed), chance_in(SQUARE, seed), NONE.copy()
    proven[list(worked)] = True
    row = recommended_row(posterior, (), SQUARE, seed, chance, proven)
    value = np.where(proven, posterior.mu(posterior.x), -np.inf) if worked else chance.log(posterior.x)
    np.testing.assert_array_equal(row, posterior.x[value.argmax()])


def test_in_a_part_without_a_told_point_it_is_the_best_mean_among_safe_points() -> None:
    """It works up to x1 = 0.6, and f grows with x1."""
    x = grid_in(SQUARE, 6)
    edge = Posterior.prior(kernels.RBF(1.0), 1e-4).condition(x, 0.6 - x[:, 1])
    chance = SuccessProbability((Requirement(edge, spread=0.01),))
    posterior = Posterior.prior(kernels.RBF(1.0), 1e-4).condition(x, x.sum(axis=1))
    row = recommended_row(posterior, (), SQUARE.with_fixed({0: 0.35}), 0, chance, np.ones(36, dtype=bool))
    line = np.column_stack([np.full(401, 0.35), np.linspace(0.0, 1.0, 401)])
    safe = chance(line) >= SAFE
    assert safe.any() and not safe.all() and row[0] == 0.35 and chance(row[None])[0] >= SAFE - 1e-9
    assert posterior.mu(row[None])[0] >= posterior.mu(line[safe]).max() - 0.01


def test_in_a_part_only_its_own_told_points_count_as_proven() -> None:
    posterior, chance = posterior_in(SQUARE, 1), chance_in(SQUARE, 1, spread=0.1)
    x = posterior.x.copy()
    x[:4, 0] = 0.35
    posterior = Posterior.prior(posterior.kernel, 1e-4).condition(x, posterior.y)
    row = recommended_row(posterior, (), SQUARE.with_fixed({0: 0.35}), 0, chance, np.ones(25, dtype=bool))
    np.testing.assert_array_equal(row, x[posterior.mu(x[:4]).argmax()])


# Values that say nothing


@given(st.floats(-1e6, 1e6), st.integers(1, 6))
def test_where_all_values_are_equal_a_told_point_is_recommended(value: float, n: int) -> None:
    """With the mean at the values the posterior is flat, and any other point would be a guess."""
    x = np.random.default_rng(n).random((n, 2))
    flat = Posterior.prior(kernels.RBF(0.3), 1e-4, value).condition(x, np.full(n, value))
    row = recommended_row(flat, (), SQUARE, 0, None, NONE[:n])
    assert any(np.array_equal(row, told) for told in x)


def test_equal_values_do_not_hide_a_larger_mean_elsewhere() -> None:
    x = np.random.default_rng(0).random((4, 2))
    rising = Posterior.prior(kernels.RBF(0.3), 1e-4, 5.0).condition(x, np.zeros(4))  # its prior mean is above them
    row = recommended_row(rising, (), SQUARE, 0, None, NONE[:4])
    assert rising.mu(row[None])[0] > rising.mu(x).max() + 0.1


@given(SEEDS, st.integers(0, 3))
def test_the_mean_at_told_points_is_the_mean_there(seed: int, count: int) -> None:
    x = posterior_in(SQUARE, 0).x
    members = tuple(
        Posterior.prior(kernels.RBF(0.2 + 0.1 * i), 0.1).condition(x, np.sin(9.0 * x[:, i % 2])) for i in range(count)
    )
    posterior = Posterior.prior(kernels.RBF(0.5), 0.1).condition(x, np.random.default_rng(seed).standard_normal(25))
    expected = np.mean([member.mu(x) for member in members or (posterior,)], axis=0)
    np.testing.assert_allclose(mean_at_told(posterior, members), expected, rtol=1e-7, atol=1e-9)
