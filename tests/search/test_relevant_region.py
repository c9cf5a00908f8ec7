"""The region where the maximum may be, and scores that are confined to a region."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_objectives import box, chance_in, grid_in, objective, posterior_in

from gpmi import GPMI, Posterior, Space
from gpmi.gp.tracking import Tracked
from gpmi.search.relevant_region import RelevantRegion, confine
from gpmi.search.subspaces import search_of

SQUARE = box((0.0, 1.0), (0.0, 1.0))
TABLE: Any = Space.of(np.random.default_rng(3).random((80, 2)))
SEEDS = st.integers(0, 1000)


def relevant(space: Space, posterior: Posterior, weight: float, chance: Any = None) -> RelevantRegion:
    return search_of(space, 0, repeats=True).relevant(posterior, posterior, weight, np.random.default_rng(0), chance)


@given(SEEDS, st.floats(0.0, 3.0), st.booleans())
def test_of_rows_the_region_is_where_an_upper_bound_reaches_the_largest_lower_bound(
    seed: int, weight: float, has_chance: bool
) -> None:
    """mu + 2 w sd >= max(mu - w sd), the maximum over the rows that probably succeed."""
    posterior, chance = posterior_in(TABLE, seed, 12), chance_in(TABLE, seed, spread=0.1) if has_chance else None
    mu, var = posterior(TABLE.rows)
    lower = mu - weight * np.sqrt(var)
    if chance is not None and np.any(chance(TABLE.rows) >= 0.5):
        lower = np.where(chance(TABLE.rows) >= 0.5, lower, -np.inf)
    region = relevant(TABLE, posterior, weight, chance)
    assert region.level == pytest.approx(lower.max(), abs=1e-9) and region.width == 2.0 * weight
    np.testing.assert_array_equal(region.at, TABLE.rows[lower.argmax()])
    upper = mu + 2.0 * weight * np.sqrt(var)
    clear = np.abs(upper - region.level) > 1e-6
    assert region.rows is not None and region.chance is chance
    np.testing.assert_array_equal(region.rows[clear], (upper >= region.level)[clear])
    np.testing.assert_array_equal(region.holds(TABLE.rows)[clear], region.rows[clear])


@given(SEEDS)
def test_a_larger_weight_never_takes_a_row_from_the_region(seed: int) -> None:
    posterior = posterior_in(TABLE, seed, 12)
    regions = [relevant(TABLE, posterior, weight).rows for weight in (0.5, 1.0, 2.0)]
    for small, large in pairwise(regions):
        assert small is not None and large is not None and not np.any(small & ~large)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("has_chance", [False, True])
def test_on_a_box_no_grid_point_has_a_larger_lower_bound(seed: int, has_chance: bool) -> None:
    posterior, chance = posterior_in(SQUARE, seed), chance_in(SQUARE, seed, spread=0.1) if has_chance else None
    region, grid = relevant(SQUARE, posterior, 1.5, chance), grid_in(SQUARE, 61)
    mu, var = posterior(grid if chance is None else grid[chance(grid) >= 0.5])
    assert region.level >= (mu - 1.5 * np.sqrt(var)).max() - 0.02
    assert region.holds(region.at[None])[0] and region.rows is None
    mu, var = posterior(region.at[None])
    assert region.level == pytest.approx((mu - 1.5 * np.sqrt(var))[0])
    assert chance is None or chance(region.at[None])[0] >= 0.5 - 1e-12


@given(SEEDS, st.floats(-0.5, 1.5))
def test_a_confined_score_is_the_score_inside_and_minus_infinity_outside(seed: int, edge: float) -> None:
    o, z = objective(SQUARE, GPMI(), seed % 10), np.random.default_rng(seed).random((20, 2))
    confined = confine(o, lambda z: z[:, 0] <= edge)
    expected = np.where(z[:, 0] <= edge, o(z), -np.inf)
    np.testing.assert_array_equal(confined(z), expected)
    np.testing.assert_allclose(confined.at_tracked(Tracked.start(o.posterior, z)), expected, rtol=1e-6, atol=1e-9)
    value, gradient = confined.with_gradient(z)
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    np.testing.assert_array_equal(gradient, o.with_gradient(z)[1])


def test_a_confined_score_keeps_its_members_and_its_chance() -> None:
    members = tuple(objective(SQUARE, GPMI(), seed) for seed in range(2))
    o, z = replace(members[0], members=members), np.random.default_rng(0).random((5, 2))
    np.testing.assert_array_equal(confine(o, lambda z: np.ones(len(z), dtype=bool))(z), o(z))
    weighed = replace(members[0], chance=chance_in(SQUARE, 0))
    np.testing.assert_array_equal(confine(weighed, lambda z: np.ones(len(z), dtype=bool))(z), weighed(z))
    assert confine(o, lambda z: np.ones(0, dtype=bool))(z[:0]).shape == (0,)
