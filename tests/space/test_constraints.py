"""Known constraints: everything that is asked, screened, climbed, drawn and recommended keeps to them."""

from __future__ import annotations

import math
import os
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

import gpmi
from gpmi import Choice, Forbidden, Int, Optimizer, Real, Space, kernels
from gpmi._support.types import Array
from gpmi.analysis.ledger import maxima
from gpmi.gp.posterior import Posterior
from gpmi.policies import GPUCB, Mean, State
from gpmi.search.constrained_climb import climb_inside
from gpmi.search.initial_design import design_of
from gpmi.search.multistart import best_point
from gpmi.search.neighbours import neighbours
from gpmi.search.objective import Objective
from gpmi.search.screen import screen_of
from gpmi.space.constraints.expressions import parse
from gpmi.space.constraints.level_ranges import level_ranges
from gpmi.space.constraints.polytope import Polytope

GIVEN: dict[str, Any] = {"kernel": kernels.RBF(0.4), "noise_var": 1e-4}
POLYTOPES = int(os.environ.get("GPMI_POLYTOPES", "40"))  # `make fuzz`: 1,000


def refused(*words: str, **arguments: Any) -> None:
    """The constraints are refused in words that name them."""
    space = arguments.pop("space", {"a": (0.0, 1.0), "b": (0.0, 1.0), "k": ["x", "y"]})
    with pytest.raises((ValueError, TypeError)) as caught:
        Optimizer(space, **arguments)
    for word in words:
        assert word in str(caught.value)


# Reading texts


names = ("a", "b", "c")
coefficients = st.floats(-1e3, 1e3).map(lambda x: round(x, 3))


@given(st.lists(coefficients, min_size=6, max_size=6), st.sampled_from(["<=", ">=", "=="]))
def test_a_text_says_what_python_says(numbers: list[float], op: str) -> None:
    left = " + ".join(f"{c!r}*{name}" for c, name in zip(numbers[:3], names, strict=True))
    text = f"{left} - (a - {numbers[3]!r})/2 {op} {numbers[4]!r}*(b + -1) + {numbers[5]!r}"
    values = {"a": 0.3, "b": -0.7, "c": 2.0}
    left_side, right_side = (eval(side, {}, values) for side in text.split(op))
    try:
        (row,) = parse(text, names)
    except ValueError:
        return  # all parameters cancel
    total = float(row.coefficients @ np.array(list(values.values())))
    expected = left_side - right_side  # <= 0, >= 0 or == 0
    bound = row.upper if op != ">=" else row.lower
    assert total - bound == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert (row.lower == -math.inf) == (op == "<=") and (row.upper == math.inf) == (op == ">=")


def test_a_chain_is_a_row_for_each_comparison() -> None:
    first, second = parse("0 <= a + b <= 1", names)
    assert (first.lower, second.upper) == (0.0, 1.0) or (first.upper, second.upper) == (0.0, 1.0)
    space: Any = Space.of([(0.0, 1.0)] * 2).constrained("0.4 <= x0 + x1 <= 1")
    points = np.array([[0.1, 0.2], [0.3, 0.3], [0.9, 0.9]])
    np.testing.assert_array_equal(space.feasible_set.contains(points), [False, True, False])


@pytest.mark.parametrize(
    ("text", "word"),
    [
        *[("__import__('os').system('x') <= 1", "not understood"), ("a.__class__ <= 1", "not understood")],
        *[("[a for a in b] <= 1", "not understood"), ("a if b else 1 <= 1", "compares nothing")],
        *[("(lambda: a)() <= 1", "not understood"), ("a[0] <= 1", "not understood"), ("f'{a}' <= 1", "not understood")],
        *[("a ** 2 <= 1", "not understood"), ("a * b <= 1", "multiplies"), ("a / b <= 1", "divides")],
        *[("a / 0 <= 1", "divides"), ("a + b", "compares nothing")],
        *[("a <= 1 and b <= 1", "give two strings"), ("a <= 1 or b <= 1", "give a callable")],
        *[("a < b", "<="), ("a > b", ">="), ("a != b", "a comparison other than"), ("a <=", "cannot be read")],
        *[("", "cannot be read"), ("z <= 1", "'z'"), ("1 <= 2", "no parameter"), ("a - a <= 1", "no parameter")],
        *[("a <= 1e999", "finite"), ("a <= True", "not understood"), ("a <= 'x'", "not understood")],
        *[("k <= 1", "not numbers"), ("a <= 1\x00", "cannot be read")],
        *[("(" * 3000 + "a" + ")" * 3000 + "<=1", "cannot")],
        *[("a <= " + "+".join(["1"] * 9000), "longer"), ("1e308*1e10*a <= 1", "too large"), ("a := 1", "cannot")],
    ],
)  # fmt: skip
def test_a_text_is_read_and_never_run(text: str, word: str) -> None:
    refused(word, constraints=[text])


@given(st.text(max_size=30))
@settings(max_examples=300)
def test_any_text_is_a_constraint_or_refused(text: str) -> None:
    try:
        for row in parse(text, names):
            assert np.isfinite(row.coefficients).all()
    except ValueError as error:
        assert "constraint" in str(error)


@pytest.mark.parametrize(
    ("constraints", "word"),
    [
        *[(3, "constraints is 3"), ([3], "constraints has 3"), ([None], "constraints has None")],
        *[(({"k": "x"},), "Forbidden"), ([Forbidden(z=1)], "'z'"), ([Forbidden(k="w")], "one of")],
        *[([Forbidden(a=0.5)], "Real"), ([Forbidden(k=[])], "no value")],
        *[((np.ones((1, 2)), 0, 1), "shape (1, 2)"), ((np.ones(3), 1, 0), "above ub")],
        ((np.ones(3), math.nan, 1), "finite"),
        *[((np.array([[1.0, 0.0, 1.0]]), 0, 1), "not numbers"), ((np.zeros((1, 3)), 1, 2), "cannot hold")],
        *[((np.full((1, 3), math.inf), 0, 1), "finite"), (([["x", "y", "z"]], 0, 1), "not (A, lb, ub)")],
        ([lambda x: 1], "must return True or False"),
    ],
)  # fmt: skip
def test_what_is_no_constraint_is_refused(constraints: Any, word: str) -> None:
    refused(word, constraints=constraints)


def test_forbidden_forbids_something() -> None:
    with pytest.raises(ValueError, match="forbids nothing"):
        Forbidden()


@pytest.mark.parametrize(
    "constraints",
    [
        "x0 + 2*x1 <= 1",
        ["x0 + 2*x1 <= 1"],
        (np.array([[1.0, 2.0]]), -np.inf, 1.0),
        [([1.0, 2.0], -math.inf, [1.0])],
        LinearConstraint([[1.0, 2.0]], -np.inf, 1.0),
        [LinearConstraint([1.0, 2.0], ub=1.0)],
        lambda x: bool(x[0] + 2 * x[1] <= 1.0),
    ],
)
def test_all_forms_mean_the_same(constraints: Any) -> None:
    space: Any = Space.of([(0.0, 1.0)] * 2).constrained(constraints)
    z = np.random.default_rng(0).random((200, 2))
    np.testing.assert_array_equal(space.feasible_set.contains(z), z[:, 0] + 2 * z[:, 1] <= 1.0)


# Polytopes


def random_polytope(rng: np.random.Generator, thinnest: float = -7.0) -> tuple[Array, Array, Array]:
    """(A, lb, ub) of a polytope in the unit cube of up to 10 dimensions; thin ones and equalities among them."""
    q, r = int(rng.integers(1, 11)), int(rng.integers(1, 13))
    a, inside = rng.standard_normal((r, q)), rng.random(q)
    width = 10.0 ** rng.uniform(thinnest, 0.3, r)
    lower, upper = a @ inside - width * rng.random(r), a @ inside + width * rng.random(r)
    lower[rng.random(r) < 0.3] = -np.inf
    equal = rng.random(r) < 0.15
    if equal.sum() < q:
        lower[equal] = upper[equal] = (a @ inside)[equal]
    return a, lower, upper


def outside(z: Array, polytope: tuple[Array, Array, Array]) -> float:
    """How far the furthest of the points (m, q) is outside."""
    a, lower, upper = polytope
    total = np.atleast_2d(z) @ a.T
    return float(max(np.max(lower - total), np.max(total - upper), -np.min(z), np.max(z) - 1.0))


def check_a_run(seed: int, monkeypatch: pytest.MonkeyPatch, *, ledger: bool) -> None:
    """Design, screen, neighbours, asks, recommendation and paths of a short run are inside."""
    rng = np.random.default_rng([seed, 1])
    polytope = random_polytope(rng)
    q = polytope[0].shape[1]
    opt = Optimizer([(0.0, 1.0)] * q, constraints=polytope, n_init=3, seed=seed, **GIVEN)
    best = rng.random(q)
    for _ in range(5):
        x = opt.ask()
        assert outside(x, polytope) <= 1e-9
        opt.tell(x, -float(((x - best) ** 2).sum()))
    assert outside(opt.recommend(), polytope) <= 1e-9
    space: Any = opt.space
    assert len(screen_of(space, seed)) == 512 and outside(screen_of(space, seed), polytope) <= 1e-9
    assert outside(neighbours(space, np.array([opt.space.encode(x)]), rng), polytope) <= 1e-9
    if ledger:
        climbed, climb = [], maxima._climb
        monkeypatch.setattr(maxima, "_climb", lambda *args: climbed.append(climb(*args)) or climbed[-1])
        opt.ledger.regret()
        monkeypatch.undo()
        assert climbed and all(outside(z, polytope) <= 1e-9 for z, _ in climbed)


@pytest.mark.parametrize("seed", range(12))
def test_a_run_in_a_random_polytope_stays_inside(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check_a_run(seed, monkeypatch, ledger=seed % 4 == 0)


@pytest.mark.slow
@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(12, 12 + POLYTOPES, 20))
def test_runs_in_many_random_polytopes_stay_inside(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(first, first + 20):
        check_a_run(seed, monkeypatch, ledger=seed % 10 == 0)


@given(st.integers(0, 2**32))
@settings(max_examples=40)
def test_a_polytope_with_a_point_is_not_empty_and_steps_end_inside(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = random_polytope(rng)
    polytope = Polytope.of(*rows)
    assert polytope is not None
    assert outside(polytope.centre, rows) <= 1e-9
    corners = rng.random((20, len(polytope.centre)))
    inside = polytope.pull_inside(corners)
    assert outside(inside, rows) <= 1e-9
    assert outside(polytope.last_inside(inside, inside[::-1]), rows) <= 1e-9
    np.testing.assert_allclose(polytope.pull_inside(inside), inside, atol=1e-12)


def test_hit_and_run_on_a_simplex_is_a_dirichlet_distribution() -> None:
    polytope = Polytope.of(np.ones((1, 8)), np.ones(1), np.ones(1))
    assert polytope is not None
    x = polytope.sample(4000, np.random.default_rng(0))
    np.testing.assert_allclose(x.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(x.mean(axis=0), 1 / 8, atol=0.01)
    np.testing.assert_allclose(x.var(axis=0), 7 / (64 * 9), rtol=0.15)


def test_hit_and_run_in_a_thin_box_fills_it() -> None:
    direction = np.array([[0.6, 0.8]])
    polytope = Polytope.of(direction, np.array([0.7]), np.array([0.7 + 1e-6]))
    assert polytope is not None
    x = polytope.sample(2000, np.random.default_rng(0))
    across = ((x @ direction.T)[:, 0] - 0.7) / 1e-6
    assert 0.0 <= across.min() < 0.05 and 0.95 < across.max() <= 1.0 + 1e-6
    assert across.mean() == pytest.approx(0.5, abs=0.05) and across.std() == pytest.approx(12**-0.5, abs=0.03)
    assert np.ptp(x[:, 0]) > 0.95  # and along


def test_an_empty_polytope_is_refused_with_the_rows_that_conflict_and_no_others() -> None:
    rng = np.random.default_rng(0)
    for _ in range(25):
        a, lower, upper = random_polytope(rng, thinnest=-3.0)
        q = a.shape[1]
        way = rng.standard_normal(q)
        middle = float(way @ np.full(q, 0.5))
        conflict = [(way, middle + 1e-3, np.inf), (way, -np.inf, middle - 1e-3)]
        rows = [(row, lo, hi) for row, lo, hi in zip(a, lower, upper, strict=True)] + conflict
        with pytest.raises(ValueError, match="hold") as caught:
            Space.of([(0.0, 1.0)] * q).constrained(
                [(np.vstack([r[0] for r in rows]), [r[1] for r in rows], [r[2] for r in rows])]
            )
        named = [int(i) for i in re.findall(r"row (\d+) of A", str(caught.value))]
        kept = [rows[i] for i in named]
        assert not feasible(kept, q)
        assert all(feasible(kept[:i] + kept[i + 1 :], q) for i in range(len(kept)))


def feasible(rows: list[tuple[Array, float, float]], q: int) -> bool:
    from scipy.optimize import linprog

    above, below = [r for r in rows if np.isfinite(r[2])], [r for r in rows if np.isfinite(r[1])]
    if not above + below:
        return True
    a = np.array([r[0] for r in above] + [-r[0] for r in below])
    b = np.array([r[2] for r in above] + [-r[1] for r in below])
    return bool(linprog(np.zeros(q), a, b, bounds=(0.0, 1.0), method="highs").status == 0)


@pytest.mark.parametrize(
    ("space", "constraints", "named", "others"),
    [
        ([(0.0, 1.0)] * 2, ["x0 + x1 >= 3", "x0 <= 0.5"], ["x0 + x1 >= 3"], ["x0 <= 0.5"]),
        ([(0, 1)] * 2, ["x0 >= 0.7", "x1 >= 0.6", "x0 + x1 <= 1.2", "x0 <= 0.9"], ["0.7", "0.6", "1.2"], ["0.9"]),
        ({"n": Int(1, 9), "x": (0.0, 0.4)}, ["n + x == 3.5", "x <= 0.3"], ["n + x == 3.5"], ["0.3"]),
        ({"n": Int(1, 9), "m": Int(1, 9)}, ["2*n + 2*m == 7", "n <= 4"], ["2*n + 2*m == 7"], ["n <= 4"]),
        ({"k": ["a", "b"], "x": (0, 1)}, [Forbidden(k="a"), Forbidden(k="b"), "x <= 0.5"], ["k='a'", "k='b'"], ["0.5"]),
        (np.eye(3), ["x0 + x1 + x2 >= 2"], ["x0 + x1 + x2 >= 2", "candidate"], []),
        ([(0.0, 1.0)] * 2, [lambda x: False, "x0 <= 0.5"], ["<lambda>"], ["0.5"]),
    ],
)  # fmt: skip
def test_constraints_that_leave_nothing_are_refused_by_name(
    space: Any, constraints: Any, named: Any, others: Any
) -> None:
    with pytest.raises(ValueError) as caught:
        gpmi.maximize(lambda x: 0.0, space, budget=3, constraints=constraints, seed=0)
    assert all(word in str(caught.value) for word in named)
    assert not any(word in str(caught.value) for word in others)


def test_a_mixture_of_eight_components_is_optimised_within_the_simplex() -> None:
    best = np.array([0.3, 0.0, 0.25, 0.05, 0.0, 0.1, 0.2, 0.1])
    components = [f"c{i}" for i in range(8)]

    def f(p: dict[str, float]) -> float:
        x = np.array([p[name] for name in components])
        assert abs(x.sum() - 1.0) <= 1e-9 and x.min() >= 0.0
        return -float(((x - best) ** 2).sum())

    space = dict.fromkeys(components, (0.0, 1.0))
    r = gpmi.maximize(f, space, budget=30, constraints=" + ".join(components) + " == 1", seed=0)
    assert sum(r.recommended.values()) == pytest.approx(1.0, abs=1e-9)
    assert f(r.recommended) > -0.004


# The climb


@pytest.mark.filterwarnings("ignore::scipy.optimize.OptimizeWarning")
def test_a_climb_ends_where_a_solver_of_such_problems_finds_nothing_better() -> None:
    """Maxima of posterior means over random polytopes; SLSQP starts where the climb ends."""
    for seed in range(15):
        rng = np.random.default_rng([seed, 2])
        rows = random_polytope(rng, thinnest=-2.0)
        q = rows[0].shape[1]
        space: Any = Space.of([(0.0, 1.0)] * q).constrained(rows)
        x = screen_of(space, seed)[:20]
        posterior = Posterior.prior(kernels.RBF(0.5 * q**0.5), 1e-4).condition(x, rng.standard_normal(20))
        objective = Objective(posterior, Mean(), State())

        def loss(z: Array, objective: Objective = objective) -> tuple[float, Array]:
            value, gradient = objective.with_gradient(z[None])
            return -float(value[0]), -gradient[0]

        for start in screen_of(space, seed + 1)[:2]:
            points, values = climb_inside(objective, space, start[None], 0.0)
            assert outside(points, rows) <= 1e-9
            found = minimize(
                loss, points[0], jac=True, method="SLSQP", bounds=[(0.0, 1.0)] * q,
                constraints=LinearConstraint(*rows), options={"ftol": 1e-12, "maxiter": 300},
            )  # fmt: skip
            assert values[0] >= objective(start[None])[0]
            assert -found.fun <= values[0] + 1e-5 or outside(found.x, rows) > 1e-9


def test_a_maximum_on_a_face_is_found_exactly() -> None:
    space: Any = Space.of([(0.0, 1.0)] * 3).constrained("x0 + x1 + x2 <= 1")
    target = np.array([0.8, 0.7, 0.3])
    x = np.random.default_rng(0).random((60, 3)) / 3
    posterior = Posterior.prior(kernels.RBF(1.0), 1e-6).condition(x, -((x - target) ** 2).sum(axis=1))
    objective = Objective(posterior, Mean(), State())
    screen = screen_of(space, 0)
    found = best_point(objective, space, screen, objective(screen), x[:1], np.random.default_rng(0))
    assert found.row.sum() == pytest.approx(1.0, abs=1e-9)
    face = np.random.default_rng(1).dirichlet(np.ones(3), 20_000)
    assert found.score >= objective(face).max() - 1e-9


def test_a_score_that_grows_outwards_is_climbed_to_a_corner() -> None:
    space: Any = Space.of([(0.0, 1.0)] * 2).constrained(["x0 + x1 <= 1.5", "x0 - x1 <= 0.2"])
    posterior = Posterior.prior(kernels.Linear(1.0), 1e-6).condition(np.eye(2), np.array([2.0, 1.0]))
    objective = Objective(posterior, Mean(), State())
    points, _ = climb_inside(objective, space, np.array([[0.2, 0.3]]), 0.0)
    np.testing.assert_allclose(points, [[0.85, 0.65]], atol=1e-9)


# Units, whole numbers, words, functions


def test_a_constraint_on_a_logarithmic_parameter_is_in_the_users_units() -> None:
    space = {"a": Real(1e-4, 1.0, log=True), "b": Real(1e-4, 1.0, log=True)}
    opt = Optimizer(space, constraints=["a + b == 0.5"], seed=0)
    smallest = []
    for row in design_of(opt.space, 0, 64):
        x = opt.space.decode(row)
        assert x["a"] + x["b"] == pytest.approx(0.5, abs=1e-9)
        smallest.append(min(x.values()))
    assert np.mean(np.array(smallest) < 0.01) > 0.4  # orders of magnitude count, not values
    for _ in range(10):
        x = opt.ask()
        assert x["a"] + x["b"] == pytest.approx(0.5, abs=1e-9)
        opt.tell(x, -abs(math.log10(x["a"] / 3e-3)))
    assert 1e-3 < opt.recommend()["a"] < 1e-2


def test_whole_numbers_and_reals_of_one_equality_vary_together() -> None:
    opt = Optimizer({"n": Int(1, 9), "x": (0.0, 2.0)}, constraints="n + x == 5.5", seed=0)
    seen = set()
    for _ in range(12):
        p = opt.ask()
        assert p["n"] + p["x"] == pytest.approx(5.5, abs=1e-9)
        seen.add(p["n"])
        opt.tell(p, -((p["n"] - 4) ** 2))
    assert seen == {4, 5} and opt.recommend()["n"] == 4


def test_whole_numbers_that_sum_to_a_number_are_found() -> None:
    names = [f"n{i}" for i in range(5)]
    opt = Optimizer(dict.fromkeys(names, Int(0, 30)), constraints=" + ".join(names) + " == 30", seed=0)
    for _ in range(14):
        p = opt.ask()
        assert sum(p.values()) == 30
        opt.tell(p, -sum((p[name] - target) ** 2 for name, target in zip(names, (10, 8, 6, 4, 2), strict=True)) / 100)
    best = opt.best
    assert best is not None and best.y is not None and best.y > -1.0


def test_the_numbers_of_a_choice_count_in_a_constraint() -> None:
    space = {"batch": Choice([16, 32, 64, 128], ordered=True), "width": [10, 100], "x": (0.0, 1.0), "limit": 200}
    opt = Optimizer(space, constraints=["batch + width + x <= limit"], seed=0)
    asked = [opt.ask() for _ in range(20)]
    assert all(p["batch"] + p["width"] + p["x"] <= 200 for p in asked)
    assert {(p["batch"], p["width"]) for p in asked} == {(b, w) for b in (16, 32, 64, 128) for w in (10, 100)} - {
        (128, 100)
    }


def test_forbidden_combinations_are_never_asked() -> None:
    space = {"kernel": ["rbf", "poly", "linear"], "degree": Int(2, 5), "x": (0.0, 1.0)}
    opt = Optimizer(space, constraints=[Forbidden(kernel=["rbf", "linear"], degree=[3, 4, 5])], seed=0)
    for _ in range(15):
        p = opt.ask()
        assert p["kernel"] == "poly" or p["degree"] == 2
        opt.tell(p, p["degree"] + p["x"] + (p["kernel"] == "rbf"))
    assert opt.recommend()["kernel"] == "poly"
    with pytest.raises(ValueError, match=r"Forbidden\(kernel"):
        opt.tell({"kernel": "rbf", "degree": 4, "x": 0.5}, 1.0)


def test_a_function_as_constraint_gets_points_it_may_change_and_is_obeyed() -> None:
    def ring(x: Array) -> bool:
        inside = 0.3 <= math.hypot(*x) <= 0.35
        x[:] = 7.0
        return inside

    opt = Optimizer([(-1.0, 1.0)] * 2, constraints=ring, seed=0)
    for _ in range(25):
        x = opt.ask()
        assert 0.3 <= math.hypot(*x) <= 0.35
        opt.tell(x, -float(((x - [0.3, 0.1]) ** 2).sum()))
    x = opt.recommend()
    assert 0.3 <= math.hypot(*x) <= 0.35 and math.hypot(x[0] - 0.3, x[1] - 0.1) < 0.03
    assert opt.ledger.regret().interval().upper < 1.0


def test_a_point_outside_is_refused_and_one_outside_by_rounding_is_not() -> None:
    opt = Optimizer({"a": (0.0, 1.0), "b": (0.0, 1.0)}, constraints=["a + b == 1", lambda p: p["a"] <= 0.8], seed=0)
    opt.tell({"a": 0.3, "b": 0.7 + 1e-12}, 1.0)
    with pytest.raises(ValueError, match=r"'a \+ b == 1' by 0.1"):
        opt.tell({"a": 0.3, "b": 0.6}, 1.0)
    with pytest.raises(ValueError, match="lambda"):
        opt.tell({"a": 0.9, "b": 0.1}, 1.0)


def test_an_exception_of_a_constraint_is_the_users_own() -> None:
    def broken(x: Array) -> bool:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        Optimizer([(0.0, 1.0)], constraints=[broken])


# Finite sets


def test_candidates_outside_are_dropped_and_counted() -> None:
    table = pd.DataFrame(
        {"a": [0.1, 0.5, 0.9, 0.3], "b": [0.1, 0.6, 0.9, 0.7], "c": ["x", "y", "x", "y"]}, index=list("pqrs")
    )
    opt = Optimizer(table, constraints=["a + b <= 1.2", Forbidden(c="y", a=0.3)], repeats=False, seed=0, **GIVEN)
    asked = [opt.ask() for _ in range(2)]
    assert sorted(p.label for p in asked) == ["p", "q"]
    assert [(e.kind, e.message) for e in opt.events] == [("dropped candidates", "2 of 4 candidates break a constraint")]
    assert "2 candidates, 2 more break a constraint" in repr(opt.space)
    with pytest.raises(gpmi.SpaceExhausted):
        opt.ask()
    with pytest.raises(ValueError, match=r"a \+ b <= 1.2"):
        opt.tell({"a": 0.9, "b": 0.9, "c": "x"}, 1.0)


def test_a_small_discrete_space_is_what_the_constraints_leave() -> None:
    space = Space.of({"n": Int(1, 6), "m": Int(1, 6)}).constrained(["n + m <= 4", lambda p: p["n"] != 2])
    points = [space.decode(row) for row in space.rows]  # type: ignore[union-attr]
    assert points == [{"n": 1, "m": 1}, {"n": 1, "m": 2}, {"n": 1, "m": 3}, {"n": 3, "m": 1}]


# Nothing else changes


@pytest.mark.parametrize(("numbers", "peak"), [(Int(0, 30_000), 3), (Int(0, 10_000), 3), (Int(10, 10**9, step=10), 40)])
def test_what_constraints_leave_of_a_wide_whole_number_is_asked_once_each_and_told_apart(
    numbers: Int, peak: int
) -> None:
    """A run knows its six points, and the best of them, however many the parameter alone would have."""
    opt = Optimizer({"n": numbers}, seed=0, constraints=[f"n <= {numbers.lo + 5 * numbers.step}"], repeats=False)
    asked = []
    for _ in range(6):
        x = opt.ask()
        asked.append(x["n"])
        opt.tell(x, -(((x["n"] - peak) / numbers.step) ** 2))
    assert sorted(asked) == [numbers.lo + i * numbers.step for i in range(6)]
    assert opt.recommend() == {"n": peak}
    with pytest.raises(gpmi.SpaceExhausted):
        opt.ask()


def test_a_wide_whole_number_beside_a_real_is_spread_over_what_constraints_leave() -> None:
    """Numbers far outside become one of those inside in proportion: the nearest would be the largest for all."""
    space = Space.of({"n": Int(0, 30_000), "x": (0.0, 1.0)}).constrained(["n <= 5"])
    for rows in (design_of(space, 0, 64)[:64], screen_of(space, 0)):
        assert np.bincount(rows[:, 0].astype(int), minlength=6).min() >= len(rows) // 12
    opt = Optimizer(space, seed=0, budget=25)
    for _ in range(25):
        p = opt.ask()
        opt.tell(p, -((p["n"] - 3) ** 2) - (p["x"] - 0.4) ** 2)
    best = opt.recommend()
    assert best["n"] == 3 and abs(best["x"] - 0.4) < 0.01


@settings(deadline=None)
@given(
    st.tuples(st.integers(2, 9), st.integers(2, 9)),
    st.tuples(st.sampled_from([-2, -1, 1, 2]), st.sampled_from([-2, -1, 1, 2])),
    st.lists(st.tuples(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9))), min_size=1, max_size=3),
    st.integers(0, 10**6),
)
def test_the_setting_that_is_found_is_the_nearest_one_allowed(ends: Any, ties: Any, forbidden: Any, pick: int) -> None:
    """Whole numbers that an equation ties, some of whose values may not occur together: against all points."""
    points = [(a, b) for a in range(ends[0] + 1) for b in range(ends[1] + 1)]
    total = ties[0] * points[pick % len(points)][0] + ties[1] * points[pick % len(points)][1]
    combinations = [(a & {*range(ends[0] + 1)}, b & {*range(ends[1] + 1)}) for a, b in forbidden]
    combinations = [(a, b) for a, b in combinations if a and b]
    allowed = [
        (a, b)
        for a, b in points
        if ties[0] * a + ties[1] * b == total and not any(a in c and b in d for c, d in combinations)
    ]
    if not allowed:
        return
    space = Space.of({"a": Int(0, ends[0]), "b": Int(0, ends[1]), "x": (0.0, 1.0)}).constrained(
        [f"{ties[0]} * a + {ties[1]} * b == {total}", *(Forbidden(a=sorted(c), b=sorted(d)) for c, d in combinations)]
    )
    program = space.feasible_set.nearest_setting  # type: ignore[attr-defined]
    start = points[(pick // 7) % len(points)]
    found = program.find(np.array([*start, 0.5]), np.array([0.5]))

    def distance(to: Any) -> float:
        return sum(abs(to[j] - start[j]) / (ends[j] + 1) for j in range(2))

    assert tuple(found[:2]) in allowed
    assert distance(found) == pytest.approx(min(map(distance, allowed)), abs=1e-6)


def test_a_program_about_single_values_of_a_wide_whole_number_is_small() -> None:
    """With a variable for each of 2,700 values an ask took minutes, with runs of values less than a second."""
    space = Space.of({name: Int(0, 900) for name in "abc"}).constrained(
        ["a + b + c == 900", Forbidden(a=3, b=[5, 6]), Forbidden(b=7, c=3)]
    )
    program = space.feasible_set.nearest_setting  # type: ignore[attr-defined]
    assert [variables.size for variables in program._variables.values()] == [4, 5, 4]
    points = Optimizer(space, seed=0).ask(8)
    assert all(p["a"] + p["b"] + p["c"] == 900 for p in points)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 12), st.integers(1, 3)), min_size=1, max_size=3),
    st.lists(
        st.tuples(st.lists(st.integers(-3, 3), min_size=4, max_size=4), st.integers(-20, 20)), min_size=1, max_size=3
    ),
)
def test_ranges_leave_out_no_point_that_keeps_to_the_rows(ints: Any, rows: Any) -> None:
    """All points by enumeration; where each row is about one number alone the ranges are exactly what is left."""
    parameters = {f"n{i}": Int(lo, lo + count * step, step=step) for i, (lo, count, step) in enumerate(ints)}
    plain = Space.of({**parameters, "x": (0.0, 2.0)})
    a = np.array([row[: len(ints)] + row[3:] for row, _ in rows], dtype=float)
    a, upper = a[a.any(axis=1)], np.array([bound for _, bound in rows], dtype=float)[a.any(axis=1)]
    grids = np.meshgrid(*[np.arange(p.count) for p in parameters.values()], indexing="ij")
    levels = np.stack([grid.ravel() for grid in grids], axis=1)
    values = levels * [p.step for p in parameters.values()] + [p.lo for p in parameters.values()]
    inside = np.all(values @ a[:, :-1].T + np.minimum(0.0, 2.0 * a[:, -1]) <= upper + 1e-9, axis=1)
    if not len(a) or not inside.any():
        return
    space = plain.constrained([(a, -np.inf, upper)])
    first, last = level_ranges(space.layout, space.constraints)[: len(ints)].T
    assert np.all(first <= levels[inside].min(axis=0)) and np.all(last >= levels[inside].max(axis=0))
    if np.all((a[:, :-1] != 0.0).sum(axis=1) <= 1):
        np.testing.assert_array_equal([first, last], [levels[inside].min(axis=0), levels[inside].max(axis=0)])


def test_a_row_about_a_parameter_under_a_condition_leaves_every_range() -> None:
    numbers = {"a": Int(0, 99), "b": Int(0, 99, when={"kind": "b"}), "kind": ["a", "b"]}
    space = Space.of(numbers).constrained(["a + b <= 5"])
    np.testing.assert_array_equal(level_ranges(space.layout, space.constraints), [[0, 99], [0, 99], [0, 1]])


def test_without_constraints_nothing_is_asked_that_was_not_asked_before() -> None:
    for space in ([(0.0, 1.0)] * 2, {"a": (0.0, 1.0), "n": Int(1, 50), "m": Int(1, 1000)}, np.eye(5)):
        assert Space.of(space).constrained(None) is not None
        runs = [Optimizer(space, seed=3, **extra) for extra in ({}, {"constraints": None}, {"constraints": []})]
        for _ in range(6):
            points = [opt.ask() for opt in runs]
            rows = [opt.space.encode(p) for opt, p in zip(runs, points, strict=True)]
            assert all(np.array_equal(rows[0], row) for row in rows)
            for opt, p in zip(runs, points, strict=True):
                opt.tell(p, float(rows[0].sum()))


def test_a_constrained_run_replays() -> None:
    space = {"a": (0.0, 1.0), "b": (0.0, 1.0), "n": Int(1, 9)}
    arguments: dict[str, Any] = {"constraints": ["a + b == 0.7", "n - 5*a <= 4"], "seed": 1}
    first = Optimizer(space, **arguments)
    for _ in range(9):
        p = first.ask()
        first.tell(p, p["n"] - p["a"])
    again = Optimizer(space, **arguments).replay(first.trials)
    assert again.ask() == first.ask() and again.recommend() == first.recommend()


@pytest.mark.parametrize("policy", [GPUCB(), gpmi.Thompson(), gpmi.LogEI(), None])
@pytest.mark.parametrize("fit", ["map", "mcmc"])
def test_every_policy_keeps_to_constraints(policy: Any, fit: Any) -> None:
    opt = Optimizer([(0.0, 1.0)] * 3, policy, fit=fit, constraints="x0 + x1 + x2 == 1", seed=0)
    for _ in range(9):
        x = opt.ask()
        assert abs(x.sum() - 1.0) <= 1e-9
        opt.tell(x, float(x @ [1.0, 2.0, -1.0]))


def test_what_constraints_leave_is_searched_however_small_it_is() -> None:
    """A square of 1e-4 in a box of 1: distances that count as none in the box count in it."""
    best = np.array([0.30003, 0.70006])
    corner = ["0.3 <= x0 <= 0.3001", "0.7 <= x1 <= 0.7001"]
    r = gpmi.maximize(
        lambda x: -float((((x - best) / 1e-4) ** 2).sum()), [(0.0, 1.0)] * 2, budget=20, constraints=corner, seed=0
    )
    assert sum(trial.origin == "policy" for trial in r.trials) > 10
    assert r.y > -1e-3
    np.testing.assert_allclose(r.recommended, best, atol=3e-6)
