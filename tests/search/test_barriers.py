"""Boxes in which nothing may be asked."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpmi.search.barriers import Barriers

EIGHTHS = st.tuples(st.integers(0, 8), st.integers(0, 8))  # so that many points lie on the border of a box
POINTS = st.lists(EIGHTHS, max_size=10)


def eighths(points: list[tuple[int, int]]) -> np.ndarray:
    return np.array(points, dtype=float).reshape(-1, 2) / 8.0


@given(POINTS, POINTS, st.lists(EIGHTHS, min_size=10, max_size=10))
def test_a_box_holds_the_points_within_its_half_widths_in_every_coordinate(
    points: list[tuple[int, int]], centres: list[tuple[int, int]], widths: list[tuple[int, int]]
) -> None:
    at, within, z = eighths(centres), eighths(widths)[: len(centres)], eighths(points)
    barriers = Barriers(at, within, within / 2.0)
    for core, half in ((False, within), (True, within / 2.0)):
        expected = [any(all(abs(p - c) <= h) for c, h in zip(at, half, strict=True)) for p in z]
        assert barriers.holds(z, core=core).tolist() == expected


@given(POINTS, POINTS, st.integers(1, 4))
def test_a_core_lies_inside_its_box_and_wider_boxes_hold_more(
    points: list[tuple[int, int]], centres: list[tuple[int, int]], most: int
) -> None:
    z, at = eighths(points), eighths(centres)
    held = [Barriers(at, np.full_like(at, w / 8.0), np.full_like(at, w / 16.0)) for w in range(most)]
    for barriers in held:
        assert not np.any(barriers.holds(z, core=True) & ~barriers.holds(z))
    for small, large in pairwise(held):
        assert not np.any(small.holds(z) & ~large.holds(z))


def test_unsafe_points_are_avoided_too_but_are_not_in_a_core() -> None:
    z, at, width = np.array([[0.1], [0.5], [0.9]]), np.array([[0.1]]), np.array([[0.05]])
    barriers = Barriers(at, width, width, lambda z: z[:, 0] > 0.8)
    assert barriers.holds(z).tolist() == [True, False, True]
    assert barriers.holds(z, core=True).tolist() == [True, False, False]


def test_without_boxes_only_unsafe_points_are_held() -> None:
    z, nothing = np.array([[0.1], [0.9]]), np.empty((0, 1))
    assert Barriers(nothing, nothing, nothing).holds(z).tolist() == [False, False]
    assert Barriers(nothing, nothing, nothing, lambda z: z[:, 0] > 0.8).holds(z).tolist() == [False, True]
