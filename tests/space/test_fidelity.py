"""Fidelities: levels with costs, and steps; the target is the last one."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpmi import Fidelity, Int, Space

LEVELS = Fidelity({"coarse": 1, "medium": 8, "fine": 60})
STEPS = Fidelity(1, 52)


def test_the_last_level_and_the_last_step_are_the_target() -> None:
    assert LEVELS.labels == ("coarse", "medium", "fine") and LEVELS.target == "fine" and not LEVELS.has_steps
    assert STEPS.target == 52 and STEPS.has_steps


def test_a_level_costs_what_was_given_and_steps_cost_one_each() -> None:
    assert [LEVELS.cost_of(label) for label in LEVELS.labels] == [1.0, 8.0, 60.0]
    assert [STEPS.cost_of(step) for step in (1, 17, 52)] == [1.0, 17.0, 52.0]


def test_given_costs_of_steps_are_linear_between_them() -> None:
    fidelity = Fidelity(1, 52, cost={10: 15, 52: 57})
    assert [fidelity.cost_of(step) for step in (5, 10, 31, 52)] == [7.5, 15.0, 36.0, 57.0]


def test_levels_without_costs_learn_them() -> None:
    assert Fidelity(["coarse", "fine"]).learns_costs and not LEVELS.learns_costs and not STEPS.learns_costs


def test_a_curve_enters_at_an_eighth_a_quarter_half_and_the_end() -> None:
    assert STEPS.rungs == (6, 13, 26, 52)
    assert Fidelity(1, 4).rungs == (1, 2, 4) and Fidelity(30, 52).rungs == (30, 52)


@given(st.integers(1, 1000), st.data())
def test_a_step_comes_back_from_its_coordinate_and_coordinates_ascend(last: int, data: st.DataObject) -> None:
    fidelity = Fidelity(1, last + 1)
    step = data.draw(st.integers(1, last + 1))
    (at,) = fidelity.encode("epoch", step)
    assert fidelity.decode(np.array([at])) == step
    assert step == last + 1 or fidelity.encode("epoch", step + 1)[0] > at
    assert fidelity.ends[0, 0] <= at <= fidelity.ends[1, 0]


def test_a_space_has_its_target_and_counts_only_what_is_optimised() -> None:
    space = Space.of({"x": (0.0, 1.0), "mesh": LEVELS, "n": Int(1, 5)})
    found = space.fidelity
    assert found is not None and (found.name, found.column) == ("mesh", 1) and space.parameter_count == 2
    row = space.encode({"x": 0.5, "mesh": "coarse", "n": 3})
    assert not found.is_target(row) and found.is_target(found.at(row, "fine")) and found.of(row) == "coarse"
    assert space.target.decode(found.at(row, "fine")) == {"x": 0.5, "mesh": "fine", "n": 3}
    assert space.target.contains(found.at(row, "fine")) and not space.target.contains(row)


def test_a_space_without_a_fidelity_is_its_own_target() -> None:
    space = Space.of([(0.0, 1.0)])
    assert space.fidelity is None and space.target is space and space.parameter_count == 1


@pytest.mark.parametrize("fidelity", [LEVELS, STEPS, Fidelity({100: 1, 1000: 10}), Fidelity(1, 9, cost={9: 2.5})])
def test_a_fidelity_is_copied_and_printed(fidelity: Fidelity) -> None:
    again = pickle.loads(pickle.dumps(fidelity))
    assert again == fidelity and repr(again) == repr(fidelity) and repr(fidelity).startswith("Fidelity(")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Fidelity({"fine": 1}), "2 to 20"),
        (lambda: Fidelity({"coarse": -1, "fine": 2}), "cost of 'coarse' in Fidelity is -1"),
        (lambda: Fidelity({"coarse": 0, "fine": 2}), "above 0"),
        (lambda: Fidelity({"coarse": 5, "fine": 2}), "cheapest to the most expensive"),
        (lambda: Fidelity({"coarse": None, "fine": 2}), "of every level, or of none"),
        (lambda: Fidelity({"coarse": "a", "fine": 2}), "cost of 'coarse'"),
        (lambda: Fidelity(["coarse", "coarse"]), "twice"),
        (lambda: Fidelity([True, "fine"]), "strings or numbers"),
        (lambda: Fidelity("coarse"), "Fidelity\\(1, 52\\)"),
        (lambda: Fidelity(1), "first and the last step"),
        (lambda: Fidelity(5, 5), "the last larger"),
        (lambda: Fidelity(0, 5), "at least 1"),
        (lambda: Fidelity(1, 2.5), "last step"),
        (lambda: Fidelity(1, 9, cost={4: 1}), "step 9"),
        (lambda: Fidelity(1, 9, cost={4: 3, 9: 1}), "growing"),
        (lambda: Fidelity(1, 9, cost=3), "dict such as"),
        (lambda: Fidelity({"a": 1, "b": 2}, 5), "levels alone"),
        (lambda: Space.of({"x": (0, 1), "a": STEPS, "b": LEVELS}), "several fidelities"),
        (lambda: Space.of({"epoch": STEPS}), "a fidelity only"),
    ],
)
def test_a_wrong_fidelity_is_refused_with_its_remedy(make: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        make()
