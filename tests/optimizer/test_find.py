"""The two aims: "find" spends no evaluation on what it knows, "earn" is Reinvest as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import gpmi
from gpmi import GPUCB, Find, Int, LogEI, Optimizer, Reinvest, kernels
from gpmi.cli.demo_function import HIMMELBLAU
from gpmi.optimizer import Defaults
from gpmi.search.initial_design import covering

SAME = 1e-3  # of the box: the distance below which a point is known


def asked(opt: Optimizer, f: Callable[[Any], float], count: int) -> np.ndarray:
    """The coordinates of the next `count` queries."""
    rows = []
    for _ in range(count):
        x = opt.ask()
        rows.append(opt.space.encode(x))
        opt.tell(x, f(x))
    return np.array(rows)


def hill(x: Any) -> float:
    return -float(np.sum((np.asarray(x, dtype=float) - 0.3) ** 2))


ROWS = np.random.default_rng(0).random((30, 2))
GIVEN: dict[str, Any] = {"kernel": kernels.RBF(0.3), "noise_var": 1e-4}


# Which policy an aim stands for


def test_the_default_aim_is_to_find() -> None:
    assert Optimizer([(0, 1)]).policy == Find() == Optimizer([(0, 1)], aim="find").policy
    assert Find() == Find(first=Reinvest(), then=LogEI("mean"))


MIXED = {"a": (0.0, 1.0), "b": ["u", "v", "w", "x", "y"]}


def table() -> Any:
    """Few different numbers in the first column, an option that is rare in the second."""
    rng = np.random.default_rng(0)
    columns = {"a": 10.0 ** -rng.integers(1, 6, 60), "b": rng.choice(["u", "v", "w"], 60, p=[0.6, 0.35, 0.05])}
    return pytest.importorskip("pandas").DataFrame(columns)


def of_parts(x: Any) -> float:
    return hill([x["a"]]) + {"u": 0.3, "v": -0.2}.get(x["b"], 0.0)


@pytest.mark.parametrize("options", [{}, {"kernel": kernels.RBF(0.3)}], ids=["learned", "kernel"])
@pytest.mark.parametrize("space", [MIXED, table], ids=["mixed", "table"])
def test_find_is_the_same_whether_the_aim_or_the_user_names_it(space: Any, options: dict[str, Any]) -> None:
    made = space() if callable(space) else space
    named, default = Optimizer(made, Find(), seed=2, **options), Optimizer(made, seed=2, **options)
    assert named.defaults == default.defaults == Defaults.of("find", options.get("kernel"))
    assert repr(named) == repr(default)
    np.testing.assert_array_equal(asked(named, of_parts, 14), asked(default, of_parts, 14))
    assert repr(named) == repr(default)


def test_the_defaults_are_a_value_that_an_optimizer_prints() -> None:
    assert Defaults.of("find") == Defaults(Find(), True, True, True, True, True) == Defaults.of(Find())
    assert Defaults.of("find", kernels.RBF(0.3)) == Defaults(Find(), show_options=True, short_design=True)
    assert Defaults.of(LogEI()) == Defaults(LogEI()) and Defaults.of("earn") == Defaults(Reinvest())
    assert "show options, short design, rank columns, widen choices, compress losses" in repr(Optimizer([(0, 1)]))
    assert re.search(r"defaults +none", repr(Optimizer([(0, 1)], LogEI())))


FOUR = np.random.default_rng(0).random((60, 4))  # candidates with four numbers


@pytest.mark.parametrize(
    ("space", "options", "size"),
    [
        (FOUR, {}, 5),
        (FOUR, {"noise_var": 0.01}, 5),
        (FOUR[:, :1], {}, 4),
        (FOUR, {"budget": 12}, 4),
        ({"a": Int(1, 3), "b": ["x", "y"], "c": Int(1, 3)}, {}, 5),  # a small product is a finite set
        (FOUR, {"kernel": kernels.RBF(0.3), "noise_var": 0.01}, 0),
        (FOUR, {"n_init": 8}, 8),
        (FOUR, {"aim": "earn"}, 7),
        (FOUR, {"policy": LogEI()}, 7),
        (FOUR, {"goals": {"yield": "max", "cost": "min"}}, 7),
        (FOUR, {"goals": {"yield": "max", "cost": None}}, 5),
        ([(0.0, 1.0)] * 4, {}, 7),
        ({"a": (0.0, 1.0), "b": ["x", "y"], "c": Int(1, 3)}, {}, 6),
    ],
)
def test_the_design_of_a_finite_set_is_short(space: Any, options: dict[str, Any], size: int) -> None:
    assert Optimizer(space, seed=0, **options).n_init == size


def test_after_five_rows_of_any_outcome_the_policy_chooses() -> None:
    """Failures and pending trials count as rows of the design; rejections do not."""
    opt = Optimizer(FOUR, seed=3)
    opt.reject(opt.ask())
    points = [opt.ask() for _ in range(5)]
    for x in points[:3]:
        opt.tell(x, hill(x))
    opt.fail(points[3])
    assert [t.origin for t in opt.trials if t.status != "rejected"] == ["design"] * 5
    opt.ask()
    assert opt.trials[-1].origin == "policy"


def test_to_earn_is_reinvest() -> None:
    assert Optimizer([(0, 1)], aim="earn").policy == Reinvest()
    one = asked(Optimizer([(0, 1)] * 2, aim="earn", budget=20, seed=1), hill, 20)
    np.testing.assert_array_equal(one, asked(Optimizer([(0, 1)] * 2, Reinvest(), budget=20, seed=1), hill, 20))


@pytest.mark.parametrize("aim", ["find", "earn"])
def test_a_policy_overrides_the_aim(aim: Any) -> None:
    assert Optimizer([(0, 1)], LogEI(), aim=aim).policy == LogEI()
    assert Optimizer([(0, 1)], LogEI(), aim=aim, seed=0).ask() == Optimizer([(0, 1)], LogEI(), seed=0).ask()


@pytest.mark.parametrize("run", [gpmi.maximize, gpmi.minimize])
def test_a_run_takes_an_aim(run: Any) -> None:
    trials = [run(hill, ROWS, budget=12, seed=0, aim=aim).trials for aim in ("find", "earn")]
    assert len({t.x.tobytes() for t in trials[0]}) == 12 > len({t.x.tobytes() for t in trials[1]})
    with pytest.raises(ValueError, match="aim is 'win'; give one of 'find', 'earn'"):
        run(hill, [(0, 1)], budget=2, aim="win")


def test_the_parts_of_find_must_be_policies() -> None:
    for wrong in ({"first": 3}, {"then": LogEI}):
        with pytest.raises(TypeError, match="policy is"):
            Find(**wrong)  # type: ignore[arg-type]


# The rule on a box


def known(x: np.ndarray, trials: Sequence[gpmi.Trial]) -> bool:
    return any(np.all(np.abs(x - trial.x) <= SAME) for trial in trials)


def test_a_known_point_gives_way_to_the_second_policy() -> None:
    """Step by step: the query is that of Reinvest, unless that is known. With a given prior there is no other rule."""
    opt, instead = Optimizer([(0, 1)] * 2, budget=25, seed=0, **GIVEN), 0
    for _ in range(25):
        first = Optimizer([(0, 1)] * 2, Reinvest(), budget=25, seed=0, **GIVEN).replay(opt.trials).ask()
        x = opt.ask()
        if known(first, opt.trials[:-1]):
            assert not np.array_equal(x, first)
            instead += 1
        else:
            np.testing.assert_array_equal(x, first)
        opt.tell(x, hill(x))
    assert instead > 3


def test_the_third_policy_of_earlier_versions_is_refused() -> None:
    with pytest.raises(TypeError, match=r"last is GPUCB.*Find has no third policy any more: leave it out"):
        Find(last=GPUCB(scale=0.2))  # type: ignore[arg-type]


def test_phi_is_that_of_the_policy_that_chose() -> None:
    opt = Optimizer([(0, 1)] * 2, budget=25, seed=0)
    asked(opt, hill, 25)
    chosen = [trial for trial in opt.trials if trial.origin == "policy"]
    assert {trial.phi is None for trial in chosen} == {True, False}


@pytest.mark.parametrize("space", [[(0, 1)] * 2, {"a": gpmi.Int(0, 200), "b": gpmi.Int(0, 200)}], ids=["box", "whole"])
def test_no_point_is_asked_twice_without_noise(space: Any) -> None:
    def f(x: Any) -> float:
        return hill(x if isinstance(x, np.ndarray) else [x["a"] / 200, x["b"] / 200])

    rows = asked(Optimizer(space, budget=40, seed=3), f, 40)
    assert len({row.tobytes() for row in rows}) == 40


def test_points_that_wait_together_differ() -> None:
    opt = Optimizer([(0, 1)] * 2, seed=0)
    asked(opt, hill, 15)
    assert len({x.tobytes() for x in opt.ask(5)}) == 5


# The rule on a finite set


@pytest.mark.parametrize("options", [{}, {"noise_var": 0.0}, {"kernel": kernels.RBF(0.3), "noise_var": 0.0}])
def test_no_row_is_asked_twice_without_noise_while_there_is_another(options: dict[str, Any]) -> None:
    opt = Optimizer(ROWS, budget=40, seed=0, **options)
    assert len({row.tobytes() for row in asked(opt, hill, 30)}) == 30
    assert len(asked(opt, hill, 3)) == 3  # all are told, so they may be asked again


def test_with_repeats_false_the_rows_run_out() -> None:
    opt = Optimizer(ROWS, repeats=False, seed=0)
    asked(opt, hill, 30)
    with pytest.raises(gpmi.SpaceExhausted):
        opt.ask()


def test_a_failed_row_is_not_asked_again_when_all_are_known() -> None:
    opt = Optimizer(ROWS[:5], seed=0)
    bad = opt.ask()
    opt.fail(bad)
    rows = asked(opt, hill, 12)
    assert not any(np.array_equal(row, bad) for row in rows)
    assert len({row.tobytes() for row in rows[:4]}) == 4


def test_rows_that_wait_together_differ() -> None:
    opt = Optimizer(ROWS, seed=0)
    asked(opt, hill, 12)
    assert len({x.tobytes() for x in opt.ask(6)}) == 6


def test_noise_that_is_given_allows_repeats() -> None:
    rng = np.random.default_rng(0)
    opt = Optimizer(ROWS, kernel=kernels.RBF(0.3), noise_var=0.25, seed=0)
    rows = asked(opt, lambda x: 3.0 * hill(x) + 0.5 * rng.standard_normal(), 60)
    assert len({row.tobytes() for row in rows[:25]}) < 25


def test_two_values_that_differ_at_one_row_are_noise() -> None:
    def rows(second: float) -> int:
        rng = np.random.default_rng(0)
        opt = Optimizer(ROWS, n_init=6, seed=0)
        opt.tell(ROWS[0], 0.0)
        opt.tell(ROWS[0], second)
        return len({row.tobytes() for row in asked(opt, lambda x: float(rng.standard_normal()), 28)})

    assert rows(0.0) == 28  # with row 0 told already and 29 others left
    assert rows(1.0) < 28


def test_the_best_of_the_rows_is_found() -> None:
    frame = pytest.importorskip("pandas").DataFrame(
        {"x": np.linspace(0, 1, 60), "kind": ["plain", "bent", "round"] * 20, "y": np.tile([0.0, 0.5, 1.0, 1.5], 15)}
    )
    r = gpmi.maximize(lambda p: -((p["x"] - 0.6) ** 2) + (p["kind"] == "round") - p["y"], frame, budget=25, seed=0)
    values = -((frame["x"] - 0.6) ** 2) + (frame["kind"] == "round") - frame["y"]
    assert r.y == values.max()


# The design


def test_every_option_of_a_small_choice_is_in_the_design() -> None:
    """On a table in which one option is rare. A design of random rows has it in few runs."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {"x": rng.random(300), "a": rng.choice(["u", "v", "w"], 300, p=[0.49, 0.49, 0.02]), "b": rng.choice(5, 300)}
    ).assign(b=lambda table: table["b"].astype(str))
    for seed in range(5):
        opt = Optimizer(frame, seed=seed)
        points = [opt.ask() for _ in range(opt.n_init)]
        assert {point["a"] for point in points} == {"u", "v", "w"}
        assert {point["b"] for point in points} == set("01234")


def test_a_covering_order_has_all_rows_once() -> None:
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.random(50), np.eye(3)[rng.integers(3, size=50)], np.eye(7)[rng.integers(7, size=50)]])
    ordered = covering(rows, (0, 1, 1, 1, *(2,) * 7))
    assert sorted(map(bytes, ordered)) == sorted(map(bytes, rows))
    assert ordered[:3, 1:4].sum(axis=0).tolist() == [1.0, 1.0, 1.0]
    np.testing.assert_array_equal(covering(rows[:, :1], (0,)), rows[:, :1])  # numbers alone: as they were


@pytest.mark.parametrize("aim", ["find", "earn"])
@pytest.mark.parametrize("space", [[(0, 1)] * 2, ROWS], ids=["box", "rows"])
def test_a_run_replays(aim: Any, space: Any) -> None:
    opt = Optimizer(space, aim=aim, budget=25, seed=4)
    asked(opt, hill, 18)
    again = Optimizer(space, aim=aim, budget=25, seed=4).replay(opt.trials)
    np.testing.assert_array_equal(opt.ask(), again.ask())


@pytest.mark.parametrize("space", [[(0, 1)] * 2, ROWS], ids=["box", "rows"])
def test_a_minimum_is_found_as_the_maximum_of_the_mirror_image(space: Any) -> None:
    up = asked(Optimizer(space, seed=4), hill, 18)
    np.testing.assert_array_equal(up, asked(Optimizer(space, seed=4, goal="min"), lambda x: -hill(x), 18))


# Whether it finds


@pytest.mark.slow
def test_the_maximum_of_the_tilted_himmelblau_function_is_found() -> None:
    found = [gpmi.maximize(HIMMELBLAU.f, HIMMELBLAU.bounds, budget=60, seed=seed).y for seed in range(200, 220)]
    assert sum(HIMMELBLAU.maximum - y > 1.7 for y in found if y is not None) <= 1  # 1 % of the spread


@pytest.mark.slow
def test_on_a_table_it_leaves_fewer_better_rows_than_random_search() -> None:
    """A random search of 40 of 500 rows leaves 11 of 500 better ones on average."""
    left = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        rows, weights = rng.integers(0, 6, (500, 4)) / 5.0, rng.standard_normal((6, 4))
        rows = np.unique(rows, axis=0)
        values = np.sin(3.0 * rows @ weights.T).sum(axis=1)
        of = {row.tobytes(): value for row, value in zip(rows, values, strict=True)}
        best = gpmi.maximize(lambda x, of=of: of[x.tobytes()], rows, budget=40, seed=seed).y
        left.append(int(np.sum(values > best)))
    assert np.mean(left) < 11 / 4


def test_a_logarithmic_parameter_is_not_asked_twice_for_the_rounding_of_its_logarithm() -> None:
    for arguments in ({}, {"repeats": False, "policy": gpmi.LogEI()}):
        r = gpmi.maximize(
            lambda x: float(np.log10(x["a"])), {"a": gpmi.Real(1e-4, 1.0, log=True)}, budget=30, seed=0, **arguments
        )
        assert len({trial.x["a"] for trial in r.trials}) == 30


def test_a_find_is_short_and_no_part_of_another() -> None:
    assert repr(gpmi.Find()) == "Find()"
    with pytest.raises(ValueError, match="first is a Find"):
        gpmi.Find(first=gpmi.Find())
