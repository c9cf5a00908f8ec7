"""The greedy choice of points of which no two are close."""

from __future__ import annotations

import numpy as np
import pytest

from gpmi._support.sobol import far_apart


@pytest.mark.parametrize("d", [1, 3])
def test_kept_points_are_apart_and_every_other_is_close_to_an_earlier_one(d: int) -> None:
    rng = np.random.default_rng(d)
    unit, order = rng.random((200, d)), rng.permutation(200)[:150]
    kept = far_apart(unit, order, 0.1)
    limit = 0.1 * np.sqrt(d)
    place = {row: i for i, row in enumerate(order.tolist())}
    assert kept[0] == order[0] and [place[row] for row in kept] == sorted(place[row] for row in kept)
    for row in order.tolist():
        before = [k for k in kept if place[k] < place[row]]
        close = bool(len(before)) and np.linalg.norm(unit[before] - unit[row], axis=1).min() <= limit
        assert close != (row in kept)


def test_no_more_than_asked_for_and_none_of_none() -> None:
    unit = np.linspace(0.0, 1.0, 11)[:, None]
    np.testing.assert_array_equal(far_apart(unit, np.arange(11), 0.15, most=3), [0, 2, 4])
    assert len(far_apart(unit, np.arange(0), 0.1)) == 0
