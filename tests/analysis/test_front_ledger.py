"""The ledger of several objectives: volumes and draws against brute force, and what it says when."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import gpmi
from gpmi import AtLeast, AtMost, Match, Max, Min, Optimizer, Posterior, kernels
from gpmi.analysis.ledger import Ledger
from gpmi.analysis.ledger.front_draws import FrontProblem, MeanFunctions, Rays, Sides, _step, climb
from gpmi.analysis.ledger.front_gain import draw_front_gain
from gpmi.analysis.ledger.front_ledger import FrontLedger
from gpmi.policies.front import hypervolume
from gpmi.run.stopping import (
    Budget,
    GainBelow,
    ImprovementBelow,
    PhiBelow,
    RegretBelow,
    RegretBelowNoise,
    Seconds,
    Stagnation,
    Target,
)
from gpmi.space import Space

GOALS = {"a": "max", "b": "min"}


def first(x):
    return float(np.sin(3.0 * x[0]) + 0.5 * x[1])


def second(x):
    return float((x[0] - 0.2) ** 2 + x[1] ** 2)


def told(n, goals=GOALS, noise=0.0, seed=0, space=None, **options):
    """An optimizer with n points of its own asking, except for some random ones."""
    opt = Optimizer([(0.0, 1.0)] * 2 if space is None else space, goals=goals, seed=seed, **options)
    rng = np.random.default_rng(seed)
    for x in rng.random((n, 2)):
        values = np.array([first(x), second(x), first(x) + second(x)]) + noise * rng.standard_normal(3)
        opt.tell(x, dict(zip(goals, values.tolist(), strict=False)))
    return opt


def problem_of(mixtures, space, own, reference, sides=None, span=1.0, seed=0):
    k = len(reference)
    rays = Rays.of(np.asarray(reference, dtype=float), np.full(k, span))
    default = Sides(np.arange(k), np.ones(k), -np.asarray(reference), np.full(k, span), np.arange(k))
    return FrontProblem(mixtures, tuple(one[0] for one in mixtures), sides or default, rays, space, own, seed)


def posterior(seed, n=5, d=2, lengthscale=0.3, noise=1e-6):
    rng = np.random.default_rng(seed)
    x, y = rng.random((n, d)), rng.standard_normal(n)
    return Posterior.prior(kernels.Matern(nu=2.5, lengthscale=lengthscale), noise).condition(x, y)


# Rays


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_the_volume_below_the_heights_of_a_front_is_its_hypervolume(seed, n):
    values = np.random.default_rng(seed).random((n, 2)) * [3.0, 0.5]
    rays = Rays.of(np.array([-0.2, -0.1]), np.array([3.0, 0.5]), 4000)
    assert float(rays.volume(rays.heights(values))) == pytest.approx(hypervolume(values, rays.reference), rel=2e-3)


@pytest.mark.parametrize("k", [1, 3, 4])
def test_with_other_numbers_of_objectives_it_is_the_hypervolume_too(k):
    values = np.random.default_rng(k).random((8, k))
    rays = Rays.of(np.zeros(k), np.ones(k), 2**14)
    assert float(rays.volume(rays.heights(values))) == pytest.approx(hypervolume(values, np.zeros(k)), rel=0.02)


def test_a_height_is_how_far_the_ray_is_dominated():
    values = np.random.default_rng(0).random((6, 2))
    rays = Rays.of(np.array([-0.1, 0.0]), np.array([2.0, 1.0]))
    for w, height in zip(rays.directions, rays.heights(values), strict=True):
        along = rays.reference + rays.span * w * np.linspace(0.0, 2.0, 4001)[:, None]
        dominated = np.any(np.all(values >= along[:, None], axis=2), axis=1)
        assert height == pytest.approx(np.linspace(0.0, 2.0, 4001)[dominated].max(initial=0.0), abs=1e-3)
    np.testing.assert_array_equal(rays.heights(values - 5.0), 0.0)
    np.testing.assert_array_equal(rays.heights(np.empty((0, 2))), 0.0)


# The climb


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_a_step_maximises_the_minimum_of_planes_minus_a_parabola(seed, count):
    rng = np.random.default_rng(seed)
    rows, slopes, bend = rng.standard_normal((1, count)), rng.standard_normal((1, count, 3)), rng.uniform(0.5, 3.0, 1)

    def value(p):
        return float(np.min(rows[0] + slopes[0] @ p) - 0.5 * bend[0] * p @ p)

    step, promised = _step(rows, slopes, bend)
    limits = [
        {"type": "ineq", "fun": lambda v, r=r: rows[0, r] + slopes[0, r] @ v[:3] - v[3]} for r in range(count)
    ]  # fmt: skip
    start = np.append(step[0], float(np.min(rows[0] + slopes[0] @ step[0])))
    best = minimize(lambda v: 0.5 * bend[0] * v[:3] @ v[:3] - v[3], start, constraints=limits, method="SLSQP")
    assert value(step[0]) >= -best.fun - (1e-6 if count == 2 else 0.2)
    assert promised[0] >= 0.0


def test_a_climb_of_the_smaller_of_two_functions_ends_at_its_maximum():
    space = Space.of([(0.0, 1.0)] * 2)
    problem = problem_of(((posterior(1),), (posterior(2),)), space, np.empty((0, 2)), (-4.0, -4.0))
    means, rays = MeanFunctions(problem.central), problem.rays
    axis = np.linspace(0.0, 1.0, 101)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    on_grid = problem.sides.heights(means.everywhere(grid)[..., 0], rays.directions)  # (m, W)
    coarse = grid[::97]
    start = coarse[on_grid[::97].argmax(axis=0)]
    weights = problem.sides.weights(rays.directions)
    ends, g = climb(means, problem.sides, space, problem.reach, start, np.arange(len(rays)), weights, 30)
    reached = np.diagonal(problem.sides.heights(g, rays.directions))
    assert np.all(ends >= 0.0) and np.all(ends <= 1.0)
    assert np.mean(reached >= on_grid.max(axis=0) - 1e-3) > 0.9


# Drawn fronts


def test_drawn_fronts_of_a_table_have_the_law_of_joint_draws():
    rows = np.random.default_rng(0).random((40, 2))
    mixtures = ((posterior(1),), (posterior(2),))
    own = rows[:4]
    problem = problem_of(mixtures, Space.of(rows), own, (-3.0, -3.0))
    drawn = problem.draw(600, np.random.default_rng(1))
    rng = np.random.default_rng(2)
    g = np.stack([one[0].sample(rows, rng, 600) for one in mixtures], axis=-1)  # (600, 40, 2)
    missing = [hypervolume(one, np.full(2, -3.0)) - hypervolume(one[:4], np.full(2, -3.0)) for one in g]
    assert drawn.missing.mean() == pytest.approx(np.mean(missing), rel=0.06)
    np.testing.assert_allclose(np.quantile(drawn.missing, [0.1, 0.9]), np.quantile(missing, [0.1, 0.9]), rtol=0.12)
    assert np.all(drawn.missing >= 0.0) and np.all(drawn.possible >= drawn.missing)


def test_drawn_fronts_of_a_box_are_as_high_as_those_of_many_points():
    space, mixtures = Space.of([(0.0, 1.0)] * 2), ((posterior(1),), (posterior(2),))
    problem = problem_of(mixtures, space, np.empty((0, 2)), (-3.0, -3.0))
    drawn = problem.draw(200, np.random.default_rng(1))
    rng = np.random.default_rng(2)
    z = rng.random((600, 2))
    g = np.stack([one[0].sample(z, rng, 200) for one in mixtures], axis=-1)
    heights = problem.rays.heights(g)
    assert np.all(drawn.heights.mean(axis=0) > heights.mean(axis=0) - 0.03)
    assert np.all(drawn.heights.mean(axis=0) < heights.mean(axis=0) + 0.15)  # 600 points miss a little
    inside = (drawn.where >= 0.0) & (drawn.where <= 1.0)
    assert inside.all()


def test_a_target_is_the_smaller_of_two_sides_and_a_limit_only_has_to_hold():
    rows = np.random.default_rng(0).random((30, 2))
    mixtures = ((posterior(1),), (posterior(2),), (posterior(3),))
    # maximise g0, bring g1 to 0.2 (at most 2 away), keep g2 >= 0.1
    sides = Sides(
        np.array([0, 1, 1, 2]),
        np.array([1.0, 1.0, -1.0, 1.0]),
        np.array([3.0, -0.2 + 2.0, 0.2 + 2.0, -0.1]),
        np.ones(4),
        np.array([0, 1, 1, -1]),
    )
    problem = problem_of(mixtures, Space.of(rows), np.empty((0, 2)), (-3.0, -2.0), sides)
    drawn = problem.draw(400, np.random.default_rng(1))
    rng = np.random.default_rng(2)
    g = [one[0].sample(rows, rng, 400) for one in mixtures]
    values = np.stack([g[0], -np.abs(g[1] - 0.2)], axis=-1)
    possible = [hypervolume(v[ok], np.array([-3.0, -2.0])) for v, ok in zip(values, g[2] >= 0.1, strict=True)]
    assert drawn.possible.mean() == pytest.approx(np.mean(possible), rel=0.06)


def test_the_gain_of_evaluating_a_small_exact_table_is_what_is_missing():
    rows = np.random.default_rng(0).random((8, 2))
    prior = Posterior.prior(kernels.Matern(nu=2.5, lengthscale=0.3), 1e-10)
    mixtures = ((prior.condition(rows[:2], np.array([0.3, 0.1])),), (prior.condition(rows[:2], np.array([0.1, 0.3])),))
    problem = problem_of(mixtures, Space.of(rows), rows[:2], (-3.0, -3.0))
    drawn = problem.draw(300, np.random.default_rng(1))
    gain = draw_front_gain(problem, drawn, 40, np.random.default_rng(3))
    assert gain.evaluations == 40 and np.all(gain.draws >= -1e-9)
    assert gain.mean == pytest.approx(drawn.missing.mean(), rel=0.15)
    few = draw_front_gain(problem, drawn, 1, np.random.default_rng(3))
    assert 0.2 * gain.mean < few.mean < 0.9 * gain.mean


# The ledger


def test_the_history_is_the_hypervolume_of_the_first_trials_against_a_reference_that_stays():
    opt, references, volumes = told(6), [], []
    rng = np.random.default_rng(7)
    for x in rng.random((10, 2)):
        opt.tell(x, {"a": first(x), "b": second(x)})
        references.append(opt.ledger.reference)
        volumes.append(opt.ledger.hypervolume)
    ledger = opt.ledger
    assert all(reference == references[0] for reference in references)
    start = np.array([[t.outputs["a"], -t.outputs["b"]] for t in opt.trials[:5]])  # n_init = 5 with two parameters
    low = start.min(axis=0) - 0.1 * np.ptp(start, axis=0)
    np.testing.assert_allclose([references[0]["a"], -references[0]["b"]], low)
    values = np.array([[t.outputs["a"], -t.outputs["b"]] for t in ledger.trials])
    by_hand = [hypervolume(values[: t + 1], low) for t in range(len(values))]
    np.testing.assert_allclose(ledger.history, by_hand, rtol=1e-3)  # almost exact values have posterior means
    np.testing.assert_allclose(volumes, by_hand[6:], rtol=1e-3)
    assert ledger.n == 16 and ledger.front == opt.front


def test_stated_values_are_the_reference_from_the_first_trial_on():
    opt = Optimizer(
        [(0.0, 1.0)] * 2, goals={"a": Max(at_least=0.5), "b": Min(at_most=1.0), "m": Match(3.0, within=2.0)}
    )
    opt.tell([0.1, 0.2], {"a": 1.0, "b": 0.25, "m": 4.0})
    assert isinstance(opt.ledger, FrontLedger)
    assert opt.ledger.reference == {"a": 0.5, "b": 1.0, "m": 2.0}
    assert opt.ledger.hypervolume == pytest.approx(0.5 * 0.75 * 1.0)
    assert opt.ledger.reference_words == "the reference is what the goals state as acceptable"
    half = Optimizer([(0.0, 1.0)], goals={"a": Max(at_least=0.5), "b": "min"})
    half.tell([0.1], {"a": 1.0, "b": 0.25})
    assert half.ledger.reference is None and np.isnan(half.ledger.hypervolume) and np.isnan(half.ledger.history).all()
    assert "gpmi.Min(at_most=...)" in half.ledger.reference_words and "b is 10 %" in half.ledger.reference_words


def test_infeasible_trials_add_nothing():
    goals = {"a": Max(at_least=0.0), "b": Min(at_most=2.0), "c": AtMost(1.0)}
    opt = Optimizer([(0.0, 1.0)], goals=goals)
    opt.tell([0.1], {"a": 1.0, "b": 1.0, "c": 0.5})
    opt.tell([0.2], {"a": 9.0, "b": 0.0, "c": 1.5})
    opt.tell([0.3], {"a": 9.0, "b": 0.0})
    np.testing.assert_allclose(opt.ledger.history, [1.0, 1.0, 1.0], rtol=1e-3)
    assert "2 infeasible" in repr(opt.ledger)


def test_nothing_is_claimed_before_enough_values():
    opt = told(8)
    ledger = opt.ledger
    assert ledger.needed == 9 and ledger.unknown is not None and "it takes 9 values" in ledger.unknown
    assert (
        not ledger.missing.known and ledger.missing.interval() == (0.0, np.inf) and ledger.missing.share() == (0.0, 1.0)
    )
    assert not ledger.gain().known and ledger.front_bands() is None and np.isnan(ledger.missing.median)
    assert ledger.advice.what == "go on" and "not known yet" in ledger.advice.why
    assert ledger.answer() == [("can I stop?", ledger.unknown)]
    assert "not known yet" in str(ledger) and "Missing(not known yet" in repr(ledger.missing)
    empty = Optimizer([(0.0, 1.0)], goals=GOALS).ledger
    assert str(empty) == "no trial has all objectives yet" and empty.advice.what == "go on"


@pytest.mark.slow
def test_with_enough_values_it_answers_first_and_has_three_numbers():
    opt = told(24, noise=0.02)
    ledger = opt.ledger
    lines = [line.split("  ")[0] for line in str(ledger).splitlines()]
    assert lines == ["values", "hypervolume", "can I stop?", "gain", "missing", "noise", "more"]
    assert ledger.missing.known and 0.0 <= ledger.missing.median <= ledger.missing.interval(0.9)[1]
    assert ledger.missing.interval(0.9)[1] <= ledger.missing.interval()[1] and 0.0 < ledger.missing.share()[1] < 1.0
    assert "calibration of b" in ledger.statistics and "drawn as" in ledger.statistics
    assert ledger.smallest_gain == pytest.approx(0.01 * ledger.hypervolume)
    again = opt.ledger
    assert again._draws is ledger._draws and again.gain() is ledger.gain()  # kept from look to look
    opt.tell([0.5, 0.5], {"a": first((0.5, 0.5)), "b": second((0.5, 0.5))})
    assert opt.ledger._draws is not ledger._draws
    copy = pickle.loads(pickle.dumps(opt))
    np.testing.assert_array_equal(copy.ask(), opt.ask())


def test_a_table_that_is_known_has_nothing_missing_and_the_advice_is_to_stop():
    table = np.random.default_rng(0).random((40, 2))
    opt = Optimizer(table, goals=GOALS, seed=0)
    for x in table:
        opt.tell(x, {"a": first(x), "b": second(x)})
    ledger = opt.ledger
    assert ledger.missing.share()[1] < 0.02
    assert ledger.gain().probability_above(ledger.smallest_gain) < 0.05
    assert ledger.advice.what in ("stop", "distrust")
    rule = GainBelow(0.01).stop(opt, 0.0)
    assert rule is None  # no point was chosen by the policy


def test_bands_are_curves_around_the_front_in_the_units_of_the_outputs():
    opt = told(20)
    bands = opt.ledger.front_bands()
    assert bands is not None and bands.names == ("a", "b") and bands.low.shape == bands.high.shape == (24, 2)
    assert np.all(bands.low[:, 0] <= bands.median[:, 0]) and np.all(bands.median[:, 0] <= bands.high[:, 0])
    assert np.all(bands.low[:, 1] >= bands.high[:, 1])  # b is minimised
    grid = np.random.default_rng(0).random((4000, 2))
    values = np.array([[first(x), second(x)] for x in grid])
    inside = 0
    for low, high in zip(bands.low, bands.high, strict=True):
        beaten = np.any((values[:, 0] >= low[0]) & (values[:, 1] <= low[1]))
        above = np.any((values[:, 0] > high[0] + 0.02) & (values[:, 1] < high[1] - 0.02))
        inside += beaten and not above
    assert inside >= 20
    turned = opt.ledger.front_bands("b")
    assert turned is not None and turned.names == ("b", "a")
    with pytest.raises(ValueError, match="first and second are both 'a'"):
        opt.ledger.front_bands("a", "a")
    with pytest.raises(ValueError, match="'z' is not an output"):
        opt.ledger.front_bands("z")


@pytest.mark.slow
@pytest.mark.parametrize(
    "goals",
    [
        {"a": "max", "b": "min", "c": "min"},
        {"a": Match(0.9, within=0.5), "b": "min"},
        {"a": Match(0.9, within=0.5)},
        {"a": "max", "b": "min", "c": AtLeast(0.9)},
        {"a": "max", "b": "min", "c": None},
    ],
)
def test_targets_limits_and_three_objectives_have_a_ledger_too(goals):
    opt = told(20, goals={**goals, **({"b": None} if "b" not in goals else {})}, noise=0.02)
    ledger = opt.ledger
    assert isinstance(ledger, FrontLedger) and ledger.hypervolume > 0.0
    assert ledger.missing.known and np.all(ledger.missing.draws >= 0.0)
    assert np.isfinite(ledger.gain().mean) and str(ledger)
    if len(opt.goals.objectives) > 1:
        bands = ledger.front_bands()
        assert bands is not None and np.isfinite(bands.high).all()
    else:
        with pytest.raises(ValueError, match="a is the only objective"):
            ledger.front_bands()
    if "c" in opt.goals.objectives:
        assert ledger.front_bands("c", "a").names == ("c", "a")
    if "c" in opt.goals.limits:
        with pytest.raises(ValueError, match="c is no objective"):
            ledger.front_bands("c")


@pytest.mark.slow
def test_failures_are_part_of_what_can_be_had():
    opt = Optimizer([(0.0, 1.0)] * 2, goals=GOALS, seed=0)
    for _ in range(24):
        x = opt.ask()
        if x[0] > 0.6:
            opt.fail(x)
        else:
            opt.tell(x, {"a": first(x), "b": second(x)})
    ledger = opt.ledger
    assert ledger.missing.known and "failed" in repr(ledger)
    where = ledger._draws.where.reshape(-1, 2)
    assert np.mean(where[:, 0] < 0.75) > 0.9


def test_the_ledger_of_one_objective_stays_the_ordinary_one():
    opt = Optimizer([(0.0, 1.0)], goals={"a": "max", "b": None}, seed=0)
    opt.tell([0.5], {"a": 1.0, "b": 2.0})
    assert isinstance(opt.ledger, Ledger)
    result = gpmi.optimize(
        lambda x: {"a": first(x), "b": second(x)}, [(0.0, 1.0)] * 2, goals=GOALS, budget=6, seed=0
    )  # fmt: skip
    assert isinstance(result.ledger, FrontLedger) and result.ledger.n == 6


# Rules


def test_rules_about_one_value_refuse_several_objectives():
    opt = told(3)
    for rule in (Target(1.0), PhiBelow(0.1), RegretBelow(0.1), RegretBelowNoise(), ImprovementBelow(0.1)):
        with pytest.raises(ValueError, match=r"which needs one objective, but the goals have a, b; give GainBelow"):
            rule.stop(opt, 0.0)
    assert Budget(3).stop(opt, 0.0) is not None and Seconds(1.0).stop(opt, 2.0) is not None


def test_stagnation_is_a_front_that_does_not_grow():
    opt = Optimizer([(0.0, 1.0)], goals={"a": Max(at_least=0.0), "b": Min(at_most=9.0)}, seed=0)
    for x, a in ((0.1, 1.0), (0.2, 2.0), (0.3, 1.5), (0.4, 1.0)):
        opt.tell([x], {"a": a, "b": 5.0})
    assert Stagnation(3).stop(opt, 0.0) is None
    stop = Stagnation(2).stop(opt, 0.0)
    assert stop is not None and stop.reason == "no improvement in 2 evaluations"


@pytest.mark.slow
def test_a_run_on_a_table_stops_when_more_evaluations_hardly_gain():
    table = np.random.default_rng(0).random((300, 2))
    result = gpmi.optimize(
        lambda x: {"a": first(x), "b": second(x)}, table, goals=GOALS, budget=120, seed=0, stop=GainBelow(0.05)
    )  # fmt: skip
    assert "will hardly gain 5 % of the hypervolume" in result.reason
    values = np.array([[first(x), -second(x)] for x in table])
    low = np.array([result.ledger.reference["a"], -result.ledger.reference["b"]])
    assert result.ledger.hypervolume > 0.9 * hypervolume(values, low)
