"""The whole space and its parts with fixed coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpmi import Fidelity, Int, Space
from gpmi.search.subspaces import SUBSPACES, Subspaces

SPEC = {"x": (0.0, 1.0), "n": Int(0, 99), "y": (0.0, 1.0)}


def parts_of(spec: Any = SPEC) -> Subspaces:
    return Subspaces(Space.of(spec), 0, repeats=True, cover=False)


@pytest.mark.parametrize("fixed", [None, {}])
def test_without_fixed_coordinates_it_is_the_whole_space(fixed: Any) -> None:
    parts = parts_of()
    assert parts.with_fixed(fixed) is parts.whole and parts.whole.fixed is None


def test_constants_are_no_fixed_coordinates_of_a_part() -> None:
    parts = parts_of({"x": (0.0, 1.0), "k": 7})
    assert parts.with_fixed({"k": 7}).space.fixed_coordinates == parts.whole.space.fixed_coordinates


def test_a_part_has_its_fixed_values_and_a_search_and_a_design_in_it() -> None:
    parts = parts_of()
    part = parts.with_fixed({"n": 5, "x": 0.25})
    assert part.fixed == {"n": 5, "x": 0.25} and part is not parts.whole
    point: Any = part.design.first_free({})
    assert point["n"] == 5 and point["x"] == 0.25
    assert part.search is not parts.whole.search


def test_the_same_part_is_the_same_object_however_it_is_written() -> None:
    parts = parts_of()
    part = parts.with_fixed({"n": 5, "x": 0.25})
    assert parts.with_fixed({"x": 0.25, "n": 5}) is part
    assert parts.with_fixed({"x": np.float64(0.25), "n": np.int64(5)}) is part
    assert parts.with_fixed({"n": 5}) is not part and parts.with_fixed({"n": 6, "x": 0.25}) is not part


def test_the_parts_that_were_used_last_are_kept() -> None:
    parts = parts_of()
    kept = [parts.with_fixed({"n": n}) for n in range(SUBSPACES)]
    assert parts.with_fixed({"n": 0}) is kept[0]  # now the last one used
    parts.with_fixed({"n": 50})
    assert parts.with_fixed({"n": 0}) is kept[0]
    assert all(parts.with_fixed({"n": n}) is kept[n] for n in range(2, SUBSPACES))
    assert parts.with_fixed({"n": 1}) is not kept[1]


def test_points_are_searched_at_the_target_fidelity_only() -> None:
    parts = parts_of({"x": (0.0, 1.0), "y": (0.0, 1.0), "mesh": Fidelity({"coarse": 1, "fine": 60})})
    part = parts.with_fixed({"x": 0.5})
    for subspace in (parts.whole, part):
        rows = subspace.space.from_unit(np.random.default_rng(0).random((20, 3)))
        assert {subspace.space.decode(row)["mesh"] for row in rows} == {"fine"}
        point: Any = subspace.design.first_free({})
        assert point["mesh"] == "fine"
    assert part.fixed == {"x": 0.5}  # the user did not fix the fidelity
    assert parts.with_fixed({"x": 0.5}) is part


def test_with_cover_the_design_of_a_part_shows_the_options_in_turn() -> None:
    parts = Subspaces(Space.of({"x": (0.0, 1.0), "y": (0.0, 1.0), "c": list("abcde")}), 0, repeats=True, cover=True)
    part, taken = parts.with_fixed({"y": 0.5}), {}
    shown = []
    for number in range(5):
        point: Any = part.design.first_free(taken)
        taken[part.space.encode(point).tobytes()] = number
        shown.append(point["c"])
    assert sorted(shown) == list("abcde")
