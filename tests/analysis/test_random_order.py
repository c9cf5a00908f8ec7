"""What a random order finds is exact: brute force over all orders agrees."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations
from math import comb

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpmi.analysis.random_order import best_of_random, half_until, mean_until

VALUES = st.lists(st.integers(-20, 20).map(float), min_size=1, max_size=6)


@given(VALUES)
def test_the_expected_best_of_k_is_the_mean_over_all_orders(values: list[float]) -> None:
    orders = list(permutations(values))
    exact = np.mean([np.maximum.accumulate(order) for order in orders], axis=0)
    mean, _ = best_of_random(np.array(values), len(values))
    np.testing.assert_allclose(mean, exact, rtol=1e-12, atol=1e-12)
    assert np.all(np.diff(mean) >= -1e-12)


@given(VALUES, st.sampled_from([0.1, 0.25, 0.5, 0.9, 1.0]))
def test_a_quantile_is_the_smallest_value_that_is_not_exceeded_often(values: list[float], q: float) -> None:
    _, levels = best_of_random(np.array(values), len(values), [q])
    for k in range(1, len(values) + 1):
        best = sorted(max(some) for some in combinations(values, k))
        assert levels[0, k - 1] == next(v for i, v in enumerate(best, 1) if i / len(best) >= q - 1e-9)


@given(st.integers(1, 7), st.data())
def test_the_experiments_until_a_good_row_are_those_of_all_orders(n: int, data: st.DataObject) -> None:
    good = data.draw(st.integers(1, n))
    times = sorted(1 + order.index(1) for order in permutations([1] * good + [0] * (n - good)))
    assert mean_until(n, good) == sum(times) / len(times)
    assert half_until(n, good) == times[(len(times) + 1) // 2 - 1]


@given(st.integers(1, 2000), st.data())
def test_half_of_all_orders_have_a_good_row_by_then_and_not_before(n: int, data: st.DataObject) -> None:
    good = data.draw(st.integers(1, n))
    k = half_until(n, good)
    none = [Fraction(comb(n - good, j), comb(n, j)) for j in (k - 1, k)]
    assert none[0] > Fraction(1, 2) >= none[1]


def test_the_best_of_one_is_the_mean_and_the_best_of_all_the_maximum_in_a_large_table() -> None:
    values = np.random.default_rng(0).normal(size=5000) * 1e8
    mean, band = best_of_random(values, 5000, [0.1, 0.9])
    assert abs(mean[0] - values.mean()) < 1e-6 * values.std() and mean[-1] == values.max()
    assert band[0, -1] == band[1, -1] == values.max() and np.all(band[0] <= band[1])
