"""Constraints that count: whatever is asked, recommended or screened keeps to them, and what is off is exactly 0."""

from __future__ import annotations

import copy
import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpmi
from gpmi import Choice, Int, Optimizer, Real, Space
from gpmi.search.initial_design import design_of
from gpmi.search.neighbours import neighbours
from gpmi.search.screen import screen_of
from gpmi.space import copied
from gpmi.space.constraints.counts import parse_count

NAMES = ("a", "b", "c", "d")
BOX = {name: (0.0, 1.0) for name in NAMES}


def on(point: Any, names: Any = NAMES) -> int:
    return sum(point[name] != 0 for name in names)


# Reading


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        *[("count(a, b, c > 0) <= 2", 0, 2), ("count(a, b, c) == 2", 2, 2), ("count(a, b, c > 0) >= 1", 1, 3)],
        *[("1 <= count(a, b, c) <= 2", 1, 2), ("2 >= count(a, b, c != 0)", 0, 2), ("1 == count(a, b, c)", 1, 1)],
        *[("count(a > 0, b > 0, c > 0) <= 9", 0, 3), ("2 >= count(a, b, c) >= 1", 1, 2)],
    ],
)
def test_a_text_says_how_many_may_be_on(text: str, lower: int, upper: int) -> None:
    count = parse_count(text, NAMES)
    assert count is not None and (count.members, count.lower, count.upper) == ((0, 1, 2), lower, upper)


def test_a_linear_text_counts_nothing() -> None:
    assert parse_count("count_a + b <= 1", ["count_a", "b"]) is None
    assert parse_count("count <= 1", ["count"]) is None


@pytest.mark.parametrize(
    ("text", "word"),
    [
        *[("count(a, b > 0) < 2", "<="), ("count(a, b > 1) <= 1", "> 0"), ("count(a, b >= 0) <= 1", "> 0")],
        *[("count(a, z > 0) <= 1", "'z'"), ("count(a, a > 0) <= 1", "twice"), ("count() <= 1", "no parameter")],
        *[("count(a, b > 0) <= 1.5", "whole number"), ("count(a, b) + a <= 1", "one count")],
        *[("count(a, b) <= c", "whole number"), ("count(a, b) >= 3", "cannot hold"), ("count(a+b, c) <= 1", "names")],
        *[("count(a, b) != 1", "other than"), ("2*count(a, b) <= 1", "one count"), ("count(a, b) <= -1", "whole")],
        *[("count(a, k > 0) <= 1", "not numbers"), ("count(a, t > 0) <= 1", "smallest value is 20")],
        *[("count(a, w > 0) <= 1", "condition"), ("count(a, b) <= 1 <= 2", "numbers with each other")],
    ],
)  # fmt: skip
def test_what_cannot_be_counted_is_refused_in_words(text: str, word: str) -> None:
    space = {**BOX, "k": ["x", "y"], "t": (20.0, 90.0), "w": Real(0.0, 1.0, when={"k": "x"})}
    with pytest.raises(ValueError, match=text.split("(")[0]) as caught:
        Optimizer(space, constraints=[text])
    assert word in str(caught.value)


@given(st.text(alphabet="count(ab,c >0)<=2!13.", max_size=30))
def test_any_text_is_a_count_or_none_or_refused(text: str) -> None:
    try:
        found = parse_count(text, NAMES)
    except ValueError as error:
        assert "constraint" in str(error)
    else:
        assert found is None or found.can_hold


def test_a_constant_counts_as_what_it_is() -> None:
    space: Any = Space.of({"a": (0.0, 1.0), "b": (0.0, 1.0), "c": 0.3}).constrained("count(a, b, c > 0) <= 2")
    assert (space.constraints.counts[0].upper, len(space.constraints.counts[0].members)) == (1, 2)
    with pytest.raises(ValueError, match="constants"):
        Space.of({"a": (0.0, 1.0), "c": 0.3}).constrained("count(a, c > 0) == 0")


# A point that is told


def test_a_point_that_breaks_a_count_is_refused_in_a_sentence() -> None:
    space = Space.of(BOX).constrained("count(a, b, c, d > 0) <= 2")
    space.encode({"a": 0.5, "b": 0.5, "c": 0, "d": 0.0})
    with pytest.raises(ValueError, match=r"3 of 4 counted parameters are above 0.*at most 2"):
        space.encode({"a": 0.5, "b": 0.5, "c": 1e-12, "d": 0.0})


def test_no_point_left_names_the_constraints_that_do_not_hold_together() -> None:
    with pytest.raises(ValueError, match="count") as caught:
        Optimizer(BOX, constraints=["count(a, b, c, d > 0) <= 1", "a >= 0.1", "b >= 0.1", "c + d <= 1"])
    assert "c + d" not in str(caught.value) and "a >= 0.1" in str(caught.value)


# What is asked


@st.composite
def problems(draw: Any) -> tuple[dict[str, Any], list[Any], list[str]]:
    """Draw a space with counted parameters of all kinds, and constraints that hold together."""
    kinds = [
        Real(0.0, 2.0),
        Real(0.0, 1.0),
        Int(0, 30),
        Int(0, 6, step=2),
        Choice([0, 1, 5, 20], ordered=True),
        Real(0.0, 5.0),
    ]
    names = [f"p{i}" for i in range(draw(st.integers(2, 5)))]
    space: dict[str, Any] = {name: draw(st.sampled_from(kinds)) for name in names}
    if draw(st.booleans()):
        space["t"] = Real(20.0, 90.0)
    if draw(st.booleans()):
        space["solvent"] = ["water", "DMF"]
    k = draw(st.integers(1, len(names)))
    sign = draw(st.sampled_from(["<=", "==", ">="]))
    constraints: list[Any] = [f"count({', '.join(names)} > 0) {sign} {k}"]
    extra = draw(st.sampled_from(["none", "sum", "limit", "function"]))
    total = " + ".join(names)
    if extra == "sum" and all(isinstance(space[name], Real) for name in names) and not (sign == "<=" and k == 0):
        constraints.append(f"{total} == 1")
    elif extra == "limit":
        constraints.append(f"{total} <= {40 if k > 1 else 35}")
    elif extra == "function":
        constraints.append(lambda p: p[names[0]] <= 0.7 * 20)
    return space, constraints, names


@settings(max_examples=2 * settings.default.max_examples, deadline=None)  # type: ignore[attr-defined]
@given(problems(), st.integers(0, 1000))
def test_every_point_of_a_run_keeps_to_the_count(problem: Any, seed: int) -> None:
    space, constraints, names = problem
    opt = Optimizer(space, constraints=constraints, seed=seed, n_init=3, budget=20)
    made: Any = opt.space
    (count,) = made.constraints.counts
    for k in range(6):
        for x in [opt.ask()] if k != 4 else opt.ask(3):
            made.encode(x)
            assert count.lower <= on(x, names) <= count.upper
            opt.tell(x, -sum((float(x[name]) - 0.3) ** 2 for name in names))
    x = opt.recommend()
    assert count.lower <= on(x, names) <= count.upper
    if made.rows is None:
        rng = np.random.default_rng(seed)
        screen = screen_of(made, seed)
        for z in (screen, neighbours(made, screen[:2], rng), design_of(made, seed, 20)):
            assert made.feasible_set.contains(z).all()


@pytest.mark.parametrize("sign", ["<= 2", "== 2", ">= 3"])
@pytest.mark.parametrize("total", [[], ["a + b + c + d == 1"], ["a + b + c + d == 1", "a >= 0.1", "b <= 0.5"]])
def test_with_fixed_coordinates_the_others_keep_to_what_is_left(sign: str, total: list[str]) -> None:
    opt = Optimizer(BOX, constraints=[f"count(a, b, c, d > 0) {sign}", *total], seed=0, n_init=3)
    made: Any = opt.space
    count = made.constraints.counts[0]
    for fixed in ({"a": 0.4}, {"c": 0.0}, {"a": 0.5, "b": 0.5 if "2" in sign else 0.25}, {}):
        for x in opt.ask(3, fixed=fixed):
            assert all(x[name] == value for name, value in fixed.items())
            assert count.lower <= on(x) <= count.upper
            made.encode(x)
            opt.tell(x, x["a"] * x["b"] - x["c"])


def test_fixed_values_that_break_a_count_are_refused() -> None:
    opt = Optimizer(BOX, constraints=["count(a, b, c, d > 0) <= 1"], seed=0)
    with pytest.raises(ValueError, match=r"fixed breaks the constraint 'count"):
        opt.ask(fixed={"a": 0.4, "b": 0.2})
    assert on(opt.ask(fixed={"a": 0.4})) == 1


def test_counts_that_share_parameters_hold_together() -> None:
    constraints = ["count(a, b, c > 0) <= 1", "count(b, c, d > 0) == 2"]
    opt = Optimizer(BOX, constraints=constraints, seed=1, n_init=4)
    for _ in range(10):
        x = opt.ask()
        assert on(x, "abc") <= 1 and on(x, "bcd") == 2
        opt.tell(x, sum(x.values()))


def test_several_objectives_keep_to_the_count() -> None:
    opt = Optimizer(
        BOX, constraints=["count(a, b, c, d > 0) <= 2", "a + b + c + d <= 1"], goals={"u": "max", "v": "min"},
        seed=0, n_init=4,
    )  # fmt: skip
    for _ in range(9):
        for x in opt.ask(2):
            assert on(x) <= 2
            opt.tell(x, {"u": x["a"] + x["b"], "v": x["a"] ** 2 + x["c"]})


def test_a_needed_component_is_no_trace() -> None:
    opt = Optimizer(BOX, constraints=["count(a, b, c, d > 0) == 2"], seed=0, n_init=3)
    for _ in range(12):
        x = opt.ask()
        assert all(value == 0.0 or value >= 1e-4 for value in x.values())
        opt.tell(x, -sum(x.values()))  # best at 0


def test_candidates_that_break_a_count_are_dropped() -> None:
    table = pd.DataFrame(list(itertools.product([0.0, -1.0, 2.0], repeat=3)), columns=["u", "v", "w"])
    for text, is_on in (("count(u, v, w > 0) <= 1", lambda x: x > 0), ("count(u, v, w) <= 1", lambda x: x != 0)):
        space: Any = Space.of(table).constrained(text)
        expected = [row for row in table.to_numpy() if is_on(row).sum() <= 1]
        assert len(space.rows) == len(expected)
        with pytest.raises(ValueError, match="counted parameters"):
            space.encode({"u": 2.0, "v": 2.0, "w": 2.0})


def test_the_search_finds_the_best_support() -> None:
    best = {"b": 0.6, "d": 0.3}
    opt = Optimizer(BOX, constraints=["count(a, b, c, d > 0) <= 2"], seed=3, budget=30)
    for _ in range(30):
        x = opt.ask()
        opt.tell(x, -sum((x[name] - best.get(name, 0.4)) ** 2 * (4.0 if name in best else 0.1) for name in NAMES))
    assert opt.best is not None and {name for name in NAMES if opt.best.x[name] > 0} == set(best)


# Where it is kept


def test_copies_and_pickles_ask_the_same() -> None:
    opt = Optimizer(BOX, constraints=["1 <= count(a, b, c, d > 0) <= 2"], seed=0, n_init=4)
    for _ in range(6):
        opt.tell(opt.ask(), 1.0)
    others = [pickle.loads(pickle.dumps(opt)), copy.deepcopy(opt)]
    assert all(other.ask() == copied(x) for x in [opt.ask()] for other in others)


def test_a_study_stores_the_text_and_verifies(tmp_path: Path) -> None:
    constraints = ["count(a, b, c, d > 0) <= 2", "a + b + c + d == 1"]
    with gpmi.study(tmp_path / "s.db", space=BOX, constraints=constraints, seed=0, n_init=4) as s:
        for trial in s.ask(3):
            s.tell(trial, trial.x["a"])
    with gpmi.study(tmp_path / "s.db") as s:
        for _ in range(5):
            trial = s.ask()
            assert on(trial.x) <= 2
            s.tell(trial, trial.x["a"] - trial.x["b"] ** 2)
        assert s.verify().verdict == "equal"
