"""Spaces people have: conditional parameters, ordered levels, steps, ranges, constants, labels, many options."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpmi
from gpmi import Choice, Int, Optimizer, Real, Space, kernels
from gpmi._support.types import Array
from gpmi.search.initial_design import design_of
from gpmi.search.screen import screen_of
from gpmi.space import Parameters

SVC: dict[str, Any] = {
    "C": Real(1e-3, 1e3, log=True),
    "kernel": ["linear", "rbf", "poly"],
    "gamma": Real(1e-5, 1e1, log=True, when={"kernel": ["rbf", "poly"]}),
    "degree": Int(2, 5, when={"kernel": "poly"}),
    "scale": Choice(["auto", "none"], when={"kernel": "poly"}),
    "shift": Real(-1.0, 1.0, when={"scale": "none"}),
}
GIVEN: dict[str, Any] = {"kernel": kernels.RBF(0.4), "noise_var": 1e-4}


def active(point: dict[str, Any]) -> set[str]:
    """The names that a point of SVC must have."""
    names = {"C", "kernel"}
    names |= {"gamma"} if point["kernel"] != "linear" else set()
    names |= {"degree", "scale"} if point["kernel"] == "poly" else set()
    return names | ({"shift"} if point["kernel"] == "poly" and point["scale"] == "none" else set())


def product(spec: Any) -> Parameters:
    space = Space.of(spec)
    assert isinstance(space, Parameters)
    return space


# Conditions


@given(st.integers(0, 2**32))
@settings(max_examples=50)
def test_a_point_has_its_active_parameters_and_no_others(seed: int) -> None:
    space = product(SVC)
    for row in space.from_unit(np.random.default_rng(seed).random((5, space.unit_dim))):
        point = space.decode(row)
        assert set(point) == active(point)
        np.testing.assert_allclose(space.encode(point), row, atol=1e-12)
        assert space.canonical(point) == point
        assert space.encode(space.canonical(point)).tobytes() == space.encode(point).tobytes()


@given(st.integers(0, 2**32))
@settings(max_examples=50)
def test_inactive_parameters_are_absent_from_the_distance(seed: int) -> None:
    """Whatever the value of an active one: its distance from a point without it is the same."""
    space, rng = product(SVC), np.random.default_rng(seed)

    def row(**changes: Any) -> Array:
        point = {"C": 1.0, "kernel": "poly", "gamma": 0.1, "degree": 3, "scale": "none", "shift": 0.0, **changes}
        return space.encode({name: point[name] for name in active(point)})

    linear, auto = row(kernel="linear"), row(scale="auto")
    gamma, degree, shift = float(10 ** rng.uniform(-5, 1)), int(rng.integers(2, 6)), float(rng.uniform(-1, 1))
    distances = [
        np.linalg.norm(linear - row(gamma=g, degree=k, shift=s)) for g, k, s in ((gamma, degree, shift), (1, 2, 1))
    ]
    assert distances[0] == pytest.approx(distances[1], rel=1e-12)
    assert np.linalg.norm(auto - row(shift=shift)) == pytest.approx(np.linalg.norm(auto - row(shift=-1.0)), rel=1e-12)
    # Among active values the distance grows, up to that of the ends, which is that to "inactive".
    ends = [row(shift=s) for s in (-1.0, -0.5, 0.0, 0.5, 1.0)]
    steps = [float(np.linalg.norm(ends[0] - end)) for end in ends]
    assert steps == sorted(steps) and steps[-1] == pytest.approx(1.0)


def test_a_conditional_parameter_has_one_lengthscale() -> None:
    space = product(SVC)
    assert len(set(space.groups)) == len(SVC)
    np.testing.assert_allclose(space.span[[i for i, g in enumerate(space.groups) if g in (2, 3, 5)]], 1.0)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        *[
            ({"gamma": 0.1}, "gamma"),
            ({"degree": 3}, "inactive unless kernel = 'poly'"),
            ({"kernel": "rbf"}, "missing"),
        ],
        *[({"z": 1}, "unknown"), ({"kernel": "sigmoid"}, "one of"), ({"C": 1e9}, "outside")],
    ],
)
def test_a_point_with_wrong_names_is_refused(change: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        Optimizer(SVC, seed=0).tell({"C": 1.0, "kernel": "linear", **change}, 1.0)


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ({"a": Real(0, 1, when={"b": 1})}, "names 'b'"),
        ({"a": Real(0, 1, when={"a": 1})}, "use a Choice"),
        ({"a": Choice([1, 2], when={"a": 1}), "b": (0, 1)}, "depends on itself"),
        ({"a": Choice([1, 2], when={"b": 1}), "b": Choice([1, 2], when={"a": 1})}, "depends on itself"),
        ({"a": Real(0, 1, when={"b": 3}), "b": ["x", "y"]}, "one of"),
        ({"a": Real(0, 1, when={"b": []}), "b": ["x", "y"]}, "at least one"),
        ({"a": Real(0, 1, when={"b": 0.5}), "b": (0, 1)}, "a Real"),
        ({"a": Real(0, 1, when={"b": 5}), "b": Int(1, 5000)}, "more than 1000"),
        ([Real(0, 1, when={"b": 0.5})], "give a dict"),
    ],
)
def test_a_condition_that_cannot_be_is_refused(spec: Any, word: str) -> None:
    with pytest.raises((ValueError, TypeError), match=word):
        Space.of(spec)


@pytest.mark.parametrize("when", ["kernel", {}, {1: 2}, [("a", 1)]])
def test_what_is_no_condition_is_refused(when: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="when of Real"):
        Real(0, 1, when=when)


def test_a_list_in_a_condition_is_any_of_its_values_or_the_option_itself() -> None:
    space = Space.of(
        {"shape": [[1, 2], [3]], "layers": Int(1, 4), "x": Real(0, 1, when={"shape": [3], "layers": [2, 3]})}
    )
    assert set(space.canonical({"shape": [3], "layers": 2, "x": 0.5})) == {"shape", "layers", "x"}
    assert set(space.canonical({"shape": [1, 2], "layers": 2})) == {"shape", "layers"}
    assert set(space.canonical({"shape": [3], "layers": 4})) == {"shape", "layers"}


def test_a_conditional_run_finds_the_best_branch_and_the_best_value_in_it() -> None:
    def f(p: dict[str, Any]) -> float:
        assert set(p) == active(p)
        if p["kernel"] == "linear":
            return -1.0
        if p["kernel"] == "rbf":
            return -0.1 * (math.log10(p["gamma"]) + 2.0) ** 2 - 0.01 * (math.log10(p["C"]) - 1.0) ** 2
        return -0.5 - 0.1 * abs(p["degree"] - 3)

    r = gpmi.maximize(f, SVC, budget=30, seed=0)
    assert r.recommended["kernel"] == "rbf" and abs(math.log10(r.recommended["gamma"]) + 2.0) < 0.3
    table = r.to_dataframe()
    assert table["gamma"].isna().sum() == (table["kernel"] == "linear").sum()
    assert r.ledger is not None and r.ledger.regret().interval().upper < 0.5
    gpmi.plots.slices(r)
    gpmi.plots.run(r)


def test_a_conditional_run_replays_and_is_pickled() -> None:
    first = Optimizer(SVC, seed=1)
    for _ in range(10):
        p = first.ask()
        first.tell(p, -(math.log10(p["C"]) ** 2) - len(p))
    again = Optimizer(SVC, seed=1).replay(first.trials)
    copied = pickle.loads(pickle.dumps(first))
    assert again.ask() == first.ask() == copied.ask()


def test_a_small_conditional_space_has_each_point_once() -> None:
    space = Space.of({"k": ["a", "b"], "n": Int(1, 3, when={"k": "a"})})
    assert space.rows is not None
    points = [space.decode(row) for row in space.rows]
    assert sorted(points, key=str) == [{"k": "a", "n": 1}, {"k": "a", "n": 2}, {"k": "a", "n": 3}, {"k": "b"}]
    assert space.extent == (4, 0)


def test_a_constraint_holds_where_its_parameters_are_active() -> None:
    opt = Optimizer(SVC, constraints=["100*gamma + C <= 10", "degree <= 3"], seed=0)
    kernels_seen = set()
    for _ in range(20):
        p = opt.ask()
        kernels_seen.add(p["kernel"])
        assert p["kernel"] == "linear" or 100 * p["gamma"] + p["C"] <= 10 + 1e-9
        assert p.get("degree", 2) <= 3
        opt.tell(p, math.log10(p["C"]))
    assert kernels_seen == {"linear", "rbf", "poly"}
    assert opt.recommend() == {"C": 1000.0, "kernel": "linear"} or opt.recommend()["C"] > 300


# Levels, steps, ranges, constants


def test_ordered_levels_are_one_coordinate_and_come_back_as_they_were() -> None:
    space = product({"batch": Choice([16, 32, 64, 128], ordered=True), "x": (0.0, 1.0)})
    assert space.dim == 2 and space.lo[0] == 0.0 and space.hi[0] == 3.0
    rows = [space.encode({"batch": b, "x": 0.5}) for b in (16, 32, 64, 128)]
    np.testing.assert_array_equal([row[0] for row in rows], [0.0, 1.0, 2.0, 3.0])
    assert [space.decode(row)["batch"] for row in rows] == [16, 32, 64, 128]
    words = product({"size": Choice(["s", "m", "l"], ordered=True), "x": (0, 1)})
    assert words.decode(words.encode({"size": "m", "x": 0.0})) == {"size": "m", "x": 0.0}
    r = gpmi.maximize(
        lambda p: -abs(p["batch"] - 64) - p["x"],
        {"batch": Choice([16, 32, 64, 128], ordered=True), "x": (0.0, 1.0)},
        budget=15,
        seed=0,
    )
    assert r.x["batch"] == 64


@given(st.integers(-1000, 1000), st.integers(1, 50), st.integers(2, 30), st.data())
@settings(max_examples=50)
def test_a_whole_number_with_a_step_is_on_its_grid(lo: int, step: int, count: int, data: Any) -> None:
    parameter = Int(lo, lo + step * (count - 1) + data.draw(st.integers(0, step - 1)), step=step)
    values = list(range(lo, lo + step * count, step))
    assert (parameter.count, parameter.hi) == (count, values[-1])
    space = product({"n": parameter})
    assert [space.decode(row)["n"] for row in space.rows] == values  # type: ignore[union-attr]
    assert {space.decode(row)["n"] for row in space.from_unit(np.linspace(0, 1, 400)[:, None])} == set(values)
    assert space.encode({"n": values[1]})[0] == values[1]
    assert parameter.decode(np.array([values[1] + 0.4 * step])) == values[1]
    if step > 1:
        with pytest.raises(ValueError, match="plus a multiple of"):
            space.encode({"n": values[0] + 1})


@pytest.mark.parametrize(("arguments", "word"), [((1, 5, 0), "step"), ((1, 5, 9), "step"), ((1, 5, 1.5), "step")])
def test_a_wrong_step_is_refused(arguments: Any, word: str) -> None:
    lo, hi, step = arguments
    with pytest.raises((ValueError, TypeError), match=word):
        Int(lo, hi, step=step)


def test_a_range_is_a_whole_number_with_its_step() -> None:
    space = product({"n": range(1, 10, 3), "m": range(9, 0, -4), "x": (0.0, 1.0), "one": range(5, 6)})
    assert space.parameters[0] == Int(1, 7, step=3) and space.parameters[1] == Int(1, 9, step=4)
    assert space.decode(space.lo)["one"] == 5
    with pytest.raises(ValueError, match=r"'n' is range\(0, 0\)"):
        Space.of({"n": range(0), "x": (0, 1)})


def test_a_constant_is_in_every_point_and_in_no_coordinate() -> None:
    spec = {"x": (0.0, 1.0), "solver": "adam", "seed": 7, "flag": None, "bias": True, "rate": 0.5, "n": Int(1, 300)}
    space = product(spec)
    assert space.dim == 2 and space.groups == (0, 1)
    opt = Optimizer(spec, seed=0)
    for _ in range(7):
        p = opt.ask()
        assert {k: p[k] for k in ("solver", "seed", "flag", "bias", "rate")} == {
            "solver": "adam",
            "seed": 7,
            "flag": None,
            "bias": True,
            "rate": 0.5,
        }
        assert list(p) == list(spec)
        opt.tell(p, -p["x"])
    with pytest.raises(ValueError, match="it is constant, 'adam'"):
        opt.tell({**p, "solver": "sgd"}, 1.0)
    with pytest.raises(ValueError, match="constants only"):
        Space.of({"a": 3, "b": "x"})
    gpmi.plots.slices(opt)


def test_a_whole_number_up_to_a_billion_is_searched_by_order_of_magnitude() -> None:
    space = product({"n": Int(1, 10**9, log=True)})
    u = (np.arange(9000) + 0.5) / 9000
    values = np.array([space.decode(row)["n"] for row in space.from_unit(u[:, None])])
    assert values.min() == 1 and values.max() > 9.9e8
    counts = np.histogram(np.log10(values), bins=[-0.1, 2.95, 5.95, 9.1])[0]
    np.testing.assert_allclose(counts, 3000, rtol=0.1)
    for value in (3, 98_765, 400_000_000):
        r = gpmi.maximize(
            lambda p, v=value: -((math.log10(p["n"] / v)) ** 2), {"n": Int(1, 10**9, log=True)}, budget=14, seed=0
        )
        assert abs(math.log10(r.x["n"] / value)) < 0.02
    assert r.ledger is not None and r.ledger.regret().interval().upper < 0.1


def test_a_whole_number_with_a_billion_values_takes_no_memory() -> None:
    parameter = Int(0, 10**9)
    assert parameter.count == 10**9 + 1 and len(parameter.levels_to_try(np.array([123_456_789.0]))) < 600
    near = set(parameter.levels_to_try(np.array([123_456_789.0]))[:, 0])
    assert {123_456_788.0, 123_456_789.0, 123_456_790.0, 0.0, 1e9} <= near


# Designs


@pytest.mark.parametrize("options", [2, 3, 5, 8, 40])
@pytest.mark.parametrize("seed", range(5))
def test_the_first_points_of_a_design_show_every_option_of_a_choice_in_turn(options: int, seed: int) -> None:
    words = [f"w{i}" for i in range(options)]
    space = product({"a": words, "x": (0.0, 1.0), "b": ["u", "v", "w"]})
    points = [space.decode(row) for row in design_of(space, seed, 60, cover=True)]
    for start in range(0, len(points) - options, options):
        assert {p["a"] for p in points[start : start + options]} == set(words)
    assert {p["b"] for p in points[:3]} == {"u", "v", "w"}
    pairs = {(p["a"], p["b"]) for p in points}
    assert len(pairs) > 0.6 * min(3 * options, len(points))  # choices do not go in step
    assert [space.decode(row) for row in design_of(space, seed, 8, cover=True)] == points[
        : len(design_of(space, seed, 8, cover=True))
    ]


def test_a_design_without_choices_is_the_sobol_sequence() -> None:
    from gpmi._support.sobol import sobol

    space = product({"x": (0.0, 1.0), "n": Int(1, 9), "o": Choice([1, 2, 3], ordered=True)})
    np.testing.assert_array_equal(design_of(space, 3, 10), space.from_unit(sobol(3, 4, (3, 0))))


def test_the_best_of_many_options_is_found_sooner_than_by_trying_all() -> None:
    """40 options whose values depend on another parameter, too; the best pair is rare."""
    value = dict(zip([f"w{i}" for i in range(40)], np.random.default_rng(0).standard_normal(40), strict=True))
    best = max(value, key=lambda word: value[word])
    found = []
    for seed in range(3):
        r = gpmi.maximize(
            lambda p: value[p["w"]] - (p["x"] - 0.4) ** 2, {"w": list(value), "x": (0.0, 1.0)}, budget=50, seed=seed
        )
        found.append(r.x["w"] == best)
    assert sum(found) >= 2


# Rows of a DataFrame, Series


def table() -> pd.DataFrame:
    return pd.DataFrame({"a": [1.0, 2.0, 3.0], "n": [4, 5, 6], "c": ["x", "y", "x"]}, index=["mol-1", "mol-2", "mol-3"])


def test_a_suggestion_has_the_label_of_its_row() -> None:
    frame, seen = table(), []

    def f(p: Any) -> float:
        seen.append(p.label)
        assert dict(p) == frame.loc[p.label].to_dict()
        return float(p["a"])

    r = gpmi.maximize(f, frame, budget=3, repeats=False, seed=0)
    assert sorted(seen) == sorted(frame.index) and [t.label for t in r.trials] == seen
    assert r.x.label == r.recommended.label == "mol-3"
    assert r.x == {"a": 3.0, "n": 6, "c": "x"} and copy.copy(r.trials[0].x).label == seen[0]
    assert pickle.loads(pickle.dumps(r.trials[0].x)).label == seen[0]
    assert Optimizer([(0.0, 1.0)], seed=0, **GIVEN).tell([0.5], 1.0).label is None


def test_a_told_row_gets_its_label() -> None:
    opt = Optimizer(table(), seed=0, **GIVEN)
    assert opt.tell({"a": 2.0, "n": 5, "c": "y"}, 1.0).label == "mol-2"
    assert Optimizer(table().reset_index(drop=True), seed=0, **GIVEN).tell({"a": 2.0, "n": 5, "c": "y"}, 1.0).label == 1


def test_a_series_is_a_point() -> None:
    opt = Optimizer(table(), seed=0, **GIVEN)
    assert opt.tell(table().loc["mol-2"], 1.0).label == "mol-2"
    opt = Optimizer({"x": (0.0, 1.0), "n": Int(1, 9), "c": ["u", "v"]}, seed=0, **GIVEN)
    assert opt.tell(pd.Series({"x": 0.25, "n": 3, "c": "v"}), 1.0).x == {"x": 0.25, "n": 3, "c": "v"}
    assert opt.tell(pd.DataFrame([{"x": 0.25, "n": 3, "c": "v"}]).iloc[0], 1.0).x == {"x": 0.25, "n": 3, "c": "v"}
    box = Optimizer([(0.0, 1.0)] * 2, seed=0, **GIVEN)
    np.testing.assert_array_equal(box.tell(pd.Series([0.25, 0.5]), 1.0).x, [0.25, 0.5])
    np.testing.assert_array_equal(box.tell(pd.Series([0.25, 0.5], index=["a", "b"]), 1.0).x, [0.25, 0.5])
    with pytest.raises(ValueError, match="wrong keys"):
        opt.tell(pd.Series({"x": 0.25}), 1.0)
    conditional = Optimizer(SVC, seed=0, **GIVEN)
    assert conditional.tell(pd.Series({"C": 1.0, "kernel": "linear"}), 1.0).x == {"C": 1.0, "kernel": "linear"}


def test_the_screen_of_a_conditional_space_has_all_branches() -> None:
    space = product(SVC)
    points = [space.decode(row) for row in screen_of(space, 0)]
    assert len(points) == 512 and all(set(p) == active(p) for p in points)
    assert {p["kernel"] for p in points} == {"linear", "rbf", "poly"}


def test_the_repr_shows_what_is_not_by_default() -> None:
    assert repr(Int(1, 8)) == "Int(lo=1, hi=8, log=False)"
    assert repr(Int(1, 9, step=2, when={"k": "a"})) == "Int(lo=1, hi=9, log=False, step=2, when={'k': 'a'})"
    assert repr(Choice(("a", "b"), ordered=True)) == "Choice(options=('a', 'b'), ordered=True)"
