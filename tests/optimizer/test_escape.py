"""A run does not spend its budget on a plateau or a hill that it knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpmi
from gpmi.model.orientation import Orientation
from gpmi.optimizer.escape import is_escape_due, last_wasted, taught_nothing
from gpmi.search.barriers import Barriers
from gpmi.search.initial_design import InitialDesign
from gpmi.search.screen import farthest, screen_of
from gpmi.space import Space

SPACE = {"kind": ["a", "b", "c"], "x": (0.0, 1.0)}


def plateau(p: Any) -> float:
    return 1.0 if p["kind"] == "a" else 0.2 * p["x"] - 1.0


def wasted(trials: list[gpmi.Trial], sign: float) -> bool:
    """The rule, evaluated by itself: the last two were the policy's, taught nothing and brought nothing."""
    return all(was_wasted(trials, i, sign) for i in (len(trials) - 2, len(trials) - 1))


def was_wasted(trials: list[gpmi.Trial], i: int, sign: float) -> bool:
    y = [sign * t.y for t in trials if t.y is not None]
    free = [sign * t.y for t in trials if t.y is not None and t.origin != "policy"]
    scale, t = max(y) - min(float(np.median(free)), float(np.median(y))), trials[i]
    if t.origin != "policy" or t.sd is None or t.y is None:
        return False
    gain = sign * t.y - max(y[:i])
    return gain <= 0.001 * scale and (t.sd <= 0.01 * scale or gain >= -0.001 * scale)


@pytest.mark.parametrize("goal", ["max", "min"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_two_wasted_queries_are_followed_by_one_of_the_design(goal: Any, seed: int) -> None:
    sign = 1.0 if goal == "max" else -1.0
    opt, design = (
        gpmi.Optimizer(SPACE, seed=seed, budget=30, goal=goal),
        InitialDesign(Space.of(SPACE), seed, cover=True),
    )
    elsewhere = 0
    for _ in range(30):
        before = list(opt.trials)
        x = opt.ask()
        if len(before) > 2 and wasted(before, sign):
            taken = {opt.space.encode(t.x).tobytes(): t.number for t in before}
            assert x == design.first_free(taken)
            assert opt.pending[-1].phi is None and opt.pending[-1].sd is not None
            elsewhere += 1
        opt.tell(x, sign * plateau(x))
    assert elsewhere >= 4
    assert gpmi.Optimizer(SPACE, seed=seed, budget=30, goal=goal).replay(opt.trials).ask() == opt.ask()


def test_on_numbers_two_wasted_queries_are_followed_by_the_point_farthest_from_all_trials() -> None:
    opt = gpmi.Optimizer([(0.0, 2.0), (0.0, 1.0)], seed=0, budget=25)
    elsewhere, last = 0, 0
    for _ in range(25):
        before = list(opt.trials)
        x = opt.ask()
        if len(before) - last > 2 and wasted(before, 1.0):
            last = len(before)
            screen = screen_of(opt.space, 0) / [2.0, 1.0]
            points = np.array([t.x for t in before]) / [2.0, 1.0]
            mirrored = np.concatenate([screen * [-1, 1], screen * [1, -1], [2, 0] + screen * [-1, 1]])
            walls = np.concatenate([mirrored, [0, 2] + screen * [1, -1]]).reshape(4, -1, 2)
            apart = np.minimum(
                np.linalg.norm(screen[:, None] - points, axis=2).min(axis=1),
                np.linalg.norm(walls - screen, axis=2).min(axis=0),
            )
            np.testing.assert_allclose(x / [2.0, 1.0], screen[np.argmax(apart)])
            elsewhere += 1
        opt.tell(x, hills(x / [2.0, 1.0]))
    assert elsewhere >= 2
    np.testing.assert_array_equal(gpmi.Optimizer(opt.space, seed=0, budget=25).replay(opt.trials).ask(), opt.ask())


def hills(x: Any) -> float:
    """A smooth hill, and a higher one in a corner."""
    return float(0.8 * np.exp(-5.0 * np.sum((x - [0.7, 0.3]) ** 2)) + np.exp(-30.0 * np.sum((x - [0.2, 0.8]) ** 2)))


@pytest.mark.parametrize("space", [{"n": gpmi.Int(0, 9), "x": (0.0, 1.0)}, {"n": gpmi.Int(0, 1), "m": gpmi.Int(0, 30)}])
def test_the_farthest_point_is_one_of_the_space_and_new(space: Any) -> None:
    space = Space.of(space).constrained(None)
    taken = screen_of(space, 0)[:5]
    for _ in range(10):
        row = farthest(space, 0, taken)
        assert row is not None and not np.any(np.all(taken == row, axis=1))
        np.testing.assert_array_equal(space.encode(space.decode(row)), row)
        taken = np.vstack([taken, row])


def test_a_point_that_is_barred_is_not_the_farthest_one() -> None:
    space = Space.of([(0.0, 1.0)] * 2)
    taken, half = np.zeros((1, 2)), np.array([[0.5, 0.5]])
    row = farthest(space, 0, taken, Barriers(np.array([[0.75, 0.5]]), half / [2, 1], half))
    assert row is not None and row[0] < 0.5
    assert farthest(space, 0, taken, Barriers(half, half, half)) is None


def test_a_point_that_is_taken_is_not_the_farthest_one() -> None:
    """Where constraints leave a handful of points, also those at the walls, each is asked once, and then none."""
    space = Space.of({"n": gpmi.Int(0, 400), "m": gpmi.Int(0, 400)}).constrained([lambda p: max(p.values()) <= 20])
    assert space.rows is None
    screen = np.unique(screen_of(space, 0), axis=0)
    taken = screen[:1]
    for _ in range(len(screen) - 1):
        row = farthest(space, 0, taken)
        assert row is not None and not np.any(np.all(taken == row, axis=1))
        taken = np.vstack([taken, row])
    assert farthest(space, 0, taken) is None


def test_points_from_elsewhere_become_rare_and_never_end() -> None:
    """Where no trial teaches anything, the k-th comes after 2, 2, 2, 3, 4, 5, ... trials."""
    idle: list[bool] = []
    far: list[int] = []
    for t in range(2000):
        if is_escape_due(np.array(idle, dtype=bool)):
            far.append(t)
        idle.append(t not in far)
    np.testing.assert_array_equal(np.diff([-1, *far]) - 1, np.maximum(2, np.arange(len(far))))
    assert 55 < len(far) < np.sqrt(2 * 2000) + 1
    assert is_escape_due(np.array([True, False, True, True])) and not is_escape_due(np.array([True, True, False, True]))
    assert is_escape_due(
        np.array([True] * 9 + [False] + [True] * 2)
    )  # what was not asked when it seems due now does not count


def test_a_value_with_a_noise_of_its_own_may_teach_nothing() -> None:
    """Values of noise that is told with them are followed by far points as are those of noise that is learned."""
    far = []
    for told in (False, True):
        opt, rng = gpmi.Optimizer([(0.0, 1.0)], seed=0, budget=30), np.random.default_rng(0)
        with pytest.MonkeyPatch.context() as patch:
            asked: list[int] = []
            patch.setattr(
                "gpmi.optimizer.escape.farthest", lambda *given, asked=asked: asked.append(1) or farthest(*given)
            )
            for _ in range(30):
                x = opt.ask()
                y = float(np.sin(3.0 * x[0]) + 0.1 * rng.standard_normal())
                opt.tell(x, y, noise_var=0.01) if told else opt.tell(x, y)
        far.append(len(asked))
    assert min(far) >= 2


def test_after_a_start_at_the_top_the_values_of_the_policy_tell_how_f_varies() -> None:
    """Six values told are all equal: without those of the policy everything would be larger than nothing."""
    opt = gpmi.Optimizer([(0.0, 1.0)], seed=0, budget=30)
    for x in np.linspace(0.48, 0.52, 6):
        opt.tell([x], 1.0)
    for y in (0.0, 0.1, -0.2, 0.2, 0.1, 0.3, -0.1, 0.1):
        opt.confirm(opt.tell(opt.ask(), y))
    last = opt.ask()
    opt.confirm(opt.tell(last, 1.0005))
    assert not opt._log[14].sd <= 0.001
    assert taught_nothing(opt._log, opt.space, Orientation("max"), 0.0)[-1]


def test_with_noise_a_point_is_known_if_its_sd_is_below_half_of_that_of_the_noise() -> None:
    opt = gpmi.Optimizer([(0.0, 1.0)], seed=0, n_init=0)
    for x, y in ((0.0, 0.0), (0.3, 0.1), (0.6, 1.0), (1.0, 0.2)):
        opt.tell([x], y)
    for _ in range(2):
        opt.tell(opt.ask(), 0.9)
    sd = max(t.sd for t in opt.trials if t.sd is not None)
    assert sd > 0.015
    assert not taught_nothing(opt._log, opt.space, Orientation("max"), (1.9 * sd) ** 2)[-2:].all()
    assert taught_nothing(opt._log, opt.space, Orientation("max"), (2.1 * sd) ** 2)[-2:].all()


@pytest.mark.parametrize(
    ("dim", "options", "left"),
    [(1, {}, False), (3, {}, False), (4, {}, True), (1, {"kernel": gpmi.kernels.RBF(0.3), "noise_var": 1e-6}, True)],
)
def test_a_given_prior_and_many_numbers_are_left_to_the_policy(
    dim: int, options: dict[str, Any], left: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("gpmi.optimizer.escape.farthest", lambda *given: asked.append(given))
    opt = gpmi.Optimizer([(0.0, 1.0)] * dim, seed=0, n_init=4, budget=30, **options)
    for _ in range(30):
        x = opt.ask()
        opt.tell(x, float(np.sin(3.0 * x).sum()))
    assert (asked == []) == left


def test_a_point_from_elsewhere_is_no_reason_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Although f is known at that point: it is beside one that was told."""
    asked: list[int] = []
    opt = gpmi.Optimizer([(0.0, 1.0)], seed=0, budget=30)
    opt.tell([0.0], 0.0)
    monkeypatch.setattr(
        "gpmi.optimizer.escape.farthest", lambda *given: asked.append(len(opt.trials)) or np.full(1, 1e-4)
    )
    for _ in range(30):
        x = opt.ask()
        opt.tell(x, float(np.sin(3.0 * x[0])))
    assert len(asked) > 3 and min(np.diff(asked)) > 2


def test_a_batch_has_one_point_of_the_design_at_a_time() -> None:
    opt = gpmi.Optimizer(SPACE, seed=0, budget=60)
    design = InitialDesign(Space.of(SPACE), 0, cover=True)
    while not (len(opt.trials) > 12 and wasted(list(opt.trials), 1.0)):
        x = opt.ask()
        opt.tell(x, plateau(x))
    taken = {opt.space.encode(t.x).tobytes(): t.number for t in opt.trials}
    points = opt.ask(4)
    assert points[0] == design.first_free(taken)
    assert sum(p == design.first_free(taken) for p in points) == 1


def test_lengthscales_of_choices_have_larger_units_under_find_alone() -> None:
    space = Space.of({"kind": ["a", "b", "c"], "x": (0.0, 2.0), "level": gpmi.Choice([1, 2, 4], ordered=True)})
    np.testing.assert_array_equal(space.units, [4.0, 4.0, 4.0, 2.0, 2.0])
    np.testing.assert_array_equal(space.span, [1.0, 1.0, 1.0, 2.0, 2.0])
    number = Space.of({"kind": ["a", "b"], "x": gpmi.Real(0.0, 2.0, when={"kind": "a"})})
    np.testing.assert_array_equal(number.units, [4.0, 4.0, 1.0, 1.0])  # two coordinates, but values like any number's
    lengths = {}
    for aim in ("find", "earn"):
        opt = gpmi.Optimizer({"kind": ["a", "b"], "x": (0.0, 1.0)}, aim=aim, seed=0)
        for kind, x in [("a", 0.1), ("b", 0.9), ("a", 0.7)]:
            opt.tell({"kind": kind, "x": x}, x)
        lengths[aim] = opt.posterior.kernel.lengthscale
    assert lengths["find"][0] > 2.0 * lengths["earn"][0]


@pytest.mark.parametrize("seed", [0, 1])
def test_a_point_of_the_design_is_asked_once_also_where_parameters_are_under_a_condition(seed: int) -> None:
    there = {"kind": ["b", "c"]}
    log_scaled, plain = gpmi.Real(1e-5, 1e1, log=True, when=there), gpmi.Real(-1, 1, when=there)
    opt = gpmi.Optimizer({"kind": ["a", "b", "c"], "x": log_scaled, "y": plain}, seed=seed, budget=40)
    for _ in range(40):
        x = opt.ask()
        opt.tell(x, 1.0 if x["kind"] == "b" else 0.0)
    asked = [tuple(t.x.values()) for t in opt.trials if t.x["kind"] != "a"]
    assert len(set(asked)) == len(asked)


def test_values_that_are_the_best_again_teach_nothing_however_unsure_the_model_was() -> None:
    told: list[tuple[float, list[float] | None]] = [(y, None) for y in (0.0, 0.1, 1.0, 0.2)]
    for last, learned in ([1.0, 1.0], False), ([1.0, 0.9], True), ([1.0, 1.1], True):
        opt = trials_of(told, last)
        assert all(t.sd is not None and t.sd > 0.015 for t in opt.trials[-2:])
        assert last_wasted(taught_nothing(opt._log, opt.space, Orientation("max"))) != learned


def trials_of(values: list[tuple[float, list[float] | None]], last: list[float]) -> gpmi.Optimizer:
    """Values with constraints told at the start, then two queries of the policy that bring these values."""
    opt = gpmi.Optimizer(SPACE, seed=0, n_init=0)
    for i, (y, constraints) in enumerate(values):
        opt.tell({"kind": "abc"[i % 3], "x": i / 10}, y, constraints=constraints)
    for y in last:
        opt.tell(opt.ask(), y, constraints=None if values[0][1] is None else [-1.0])
    return opt


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_value_that_breaks_a_constraint_is_not_what_is_compared_with(sign: float) -> None:
    inside = [(sign * y, [-1.0]) for y in (0.0, 0.1, 0.2, 0.0)]
    opt = trials_of([*inside, (sign * 100.0, [5.0])], [sign * 0.6, sign * 0.9])
    assert not last_wasted(taught_nothing(opt._log, opt.space, Orientation("max" if sign > 0 else "min")))


def test_what_was_told_under_other_given_coordinates_is_not_compared_with() -> None:
    def f(p: Any) -> float:
        return (1000.0 if p["kind"] == "a" else 0.0) - (p["x"] - 0.3) ** 2

    opt, asked = gpmi.Optimizer({**SPACE, "z": (0.0, 1.0)}, seed=0), []
    for t in range(24):
        p = opt.ask(fixed={"kind": "ab"[t % 2]})
        asked.append(opt.pending[-1])
        opt.tell(p, f(p))
    wasted_in_b = [t for t in asked[1::2] if t.origin == "policy" and t.phi is None]
    assert len(wasted_in_b) <= 4
    assert max(f(t.x) for t in asked[1::2]) > -0.01


@pytest.mark.parametrize("seed", range(2))
def test_no_point_from_elsewhere_breaks_a_constraint_that_is_known(seed: int) -> None:
    opt = gpmi.Optimizer([(0.0, 1.0), (0.0, 1.0)], seed=seed)
    broken = []
    for _ in range(36):
        x = opt.ask()
        broken.append(bool(x[0] > 0.3))
        opt.tell(x, -((x[0] - 0.15) ** 2) - (x[1] - 0.3) ** 2, constraints=[x[0] - 0.3])
    assert not any(broken[15:])


def test_walls_of_a_constraint_are_walls() -> None:
    """The box [0.8, 0.9] x [0, 1], given by its bounds and by a constraint: both keep away from its edge."""
    given = [gpmi.Real(0.8, 0.9), gpmi.Real(0.0, 1.0)]
    least = []
    for space in (
        Space.of({"x": given[0], "y": given[1]}),
        Space.of({"x": gpmi.Real(0.0, 1.0), "y": given[1]}).constrained(["0.8 <= x <= 0.9"]),
    ):
        taken, edges = screen_of(space, 0)[:4], []
        for _ in range(6):
            row = farthest(space, 0, taken)
            assert row is not None
            taken = np.vstack([taken, row])
            unit = (row - [0.8, 0.0]) / [0.1, 1.0]
            edges.append(np.minimum(unit, 1.0 - unit).min())
        least.append(min(edges))
    assert min(least) > 0.1
