"""The front of a run with goals and the choice of a point: against definitions, Monte Carlo, grids and differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import gpmi
from gpmi import AtLeast, AtMost, Int, Match, Max, Min, Optimizer, Posterior, kernels
from gpmi.analysis.conditions import Conditions, Range, best_under, score_of
from gpmi.gp.approximate.success import Requirement, SuccessProbability
from gpmi.space import Space


def told(goals, n=14, d=2, noise=0.0, seed=0, space=None, **options):
    """An optimizer with n random points of two smooth functions, and their values."""
    opt = Optimizer([(0.0, 1.0)] * d if space is None else space, goals=goals, seed=seed, **options)
    rng = np.random.default_rng(seed)
    for x in rng.random((n, d)):
        a, b = first(x) + noise * rng.standard_normal(), second(x) + noise * rng.standard_normal()
        opt.tell(x, dict(zip(goals, (a, b, first(x) + second(x)), strict=False)))
    return opt


def first(x):
    return float(np.sin(3.0 * x[0]) + 0.5 * x[1])


def second(x):
    return float((x[0] - 0.2) ** 2 + x[1] ** 2)


def mixture(count=3, n=6, d=2, seed=0):
    """Posteriors of the same values under several priors."""
    rng = np.random.default_rng(seed)
    x, y = rng.random((n, d)), rng.standard_normal(n)
    return tuple(
        Posterior.prior(kernels.Matern(nu=2.5, lengthscale=0.2 + 0.2 * k), 0.01 * (k + 1)).condition(x, y)
        for k in range(count)
    )


# The front


def test_the_front_is_what_no_other_trial_beats_in_every_objective():
    opt = told({"a": "max", "b": "min"})
    values = {trial.number: (trial.outputs["a"], -trial.outputs["b"]) for trial in opt.trials}
    beaten = {
        i
        for i, y in values.items()
        if any(z[0] >= y[0] and z[1] >= y[1] and z != y for z in values.values())
    }  # fmt: skip
    assert {trial.number for trial in opt.front} == set(values) - beaten


def test_only_feasible_and_acceptable_trials_with_all_objectives_are_on_the_front():
    goals = {"a": Max(at_least=0.5), "b": "min", "c": AtMost(1.5)}
    opt = told(goals)
    late = opt.tell([0.5, 0.0], {"a": 9.0})
    assert opt.front and late.number not in {trial.number for trial in opt.front}
    assert all(trial.outputs["a"] >= 0.5 and trial.outputs["c"] <= 1.5 for trial in opt.front)


def test_under_noise_the_front_is_that_of_the_means_and_a_lucky_value_is_not_on_it():
    opt = Optimizer([(0.0, 1.0)], goals={"a": "max", "b": "min"}, kernel=kernels.RBF(0.5), noise_var=0.25, seed=0)
    for x in np.linspace(0.0, 1.0, 9):
        for _ in range(4):
            opt.tell([x], {"a": float(x), "b": float(x)})
    lucky = opt.tell([0.55], {"a": 5.0, "b": -5.0})
    assert lucky.number not in {trial.number for trial in opt.front} or len(opt.front) > 1
    rows = [float(trial.x[0]) for trial in opt.front]
    assert len(set(rows)) == len(rows) > 3  # one for each point


# Conditions


@pytest.mark.parametrize(("lo", "hi"), [(-np.inf, 0.3), (0.1, np.inf), (-0.4, 0.3), (0.0, 0.001)])
def test_the_probability_of_a_range_is_the_mean_of_normal_probabilities(lo, hi):
    posteriors, z = mixture(), np.random.default_rng(1).random((7, 2))
    exact = []
    for posterior in posteriors:
        mu, var = posterior(z)
        exact.append(stats.norm.cdf(hi, mu, np.sqrt(var)) - stats.norm.cdf(lo, mu, np.sqrt(var)))
    np.testing.assert_allclose(np.exp(Range(posteriors, lo, hi).log(z)), np.mean(exact, axis=0), rtol=1e-9)


def test_the_probability_of_a_range_is_that_of_draws():
    posteriors, z = mixture(), np.array([[0.3, 0.4], [0.9, 0.1]])
    rng = np.random.default_rng(0)
    draws = np.concatenate([posterior.sample(z, rng, 20_000) for posterior in posteriors])
    share = np.mean((draws >= -0.2) & (draws <= 0.7), axis=0)
    np.testing.assert_allclose(np.exp(Range(posteriors, -0.2, 0.7).log(z)), share, atol=0.01)


@pytest.mark.parametrize(("lo", "hi"), [(-np.inf, 0.3), (0.1, np.inf), (-0.4, 0.3), (40.0, np.inf), (-90.0, -60.0)])
def test_log_probabilities_are_finite_far_out_and_their_gradients_are_differences(lo, hi):
    failures = SuccessProbability((Requirement(mixture(1, seed=5)[0]),))
    conditions = Conditions((Range(mixture(), lo, hi), Range(mixture(2, seed=3), -1.0, 1.0)), failures)
    z, h = np.random.default_rng(2).random((4, 2)), 1e-6
    log, gradient = conditions.log_with_gradient(z)
    assert np.isfinite(log).all() and np.isfinite(Range(mixture(), 1e6, np.inf).log(z)).all()
    np.testing.assert_allclose(log, conditions.log(z))
    for j in range(2):
        step = h * np.eye(2)[j]
        difference = (conditions.log(z + step) - conditions.log(z - step)) / (2.0 * h)
        np.testing.assert_allclose(gradient[:, j], difference, rtol=1e-4, atol=1e-5)


def test_the_score_of_a_target_is_minus_the_expected_distance_and_its_gradient_is_a_difference():
    posteriors, z, h = mixture(), np.random.default_rng(3).random((3, 2)), 1e-6
    score = score_of(posteriors, target=0.4)
    draws = np.concatenate([one.sample(z, np.random.default_rng(0), 20_000) for one in posteriors])
    np.testing.assert_allclose(score(z), -np.abs(draws - 0.4).mean(axis=0), atol=0.02)
    value, gradient = score.with_gradient(z)
    np.testing.assert_allclose(value, score(z))
    for j in range(2):
        step = h * np.eye(2)[j]
        np.testing.assert_allclose(
            gradient[:, j], (score(z + step) - score(z - step)) / (2.0 * h), rtol=1e-4, atol=1e-6
        )


# The best point under conditions


@pytest.mark.parametrize("limit", [-0.5, -0.2, 0.1])
def test_on_a_box_the_chosen_point_is_as_good_as_the_best_of_a_fine_grid(limit):
    space = Space.of([(0.0, 1.0)] * 2)
    score, conditions = score_of(mixture(seed=1)), Conditions((Range(mixture(seed=2), limit, np.inf),))
    row = best_under(score, conditions, space, 0, 0.8)
    axis = np.linspace(0.0, 1.0, 101)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    holds = np.exp(conditions.log(grid)) >= 0.8
    assert holds.any() and np.exp(conditions.log(row[None])[0]) >= 0.8
    values = score(grid)
    assert score(row[None])[0] >= values[holds].max() - 0.01 * np.ptp(values)


def test_if_no_point_reaches_the_confidence_it_is_the_most_likely_one():
    space = Space.of([(0.0, 1.0)] * 2)
    score, conditions = score_of(mixture(seed=1)), Conditions((Range(mixture(seed=2), 2.5, np.inf),))
    row = best_under(score, conditions, space, 0, 0.99)
    grid = np.random.default_rng(0).random((4000, 2))
    assert conditions.log(row[None])[0] >= conditions.log(grid).max() - 1e-3


def test_on_a_table_the_chosen_row_is_the_best_of_those_that_hold():
    rows = np.random.default_rng(4).random((3000, 2))
    space = Space.of(rows)
    score, conditions = score_of(mixture(seed=1)), Conditions((Range(mixture(seed=2), 0.4, np.inf),))
    holds = np.exp(conditions.log(rows)) >= 0.7
    best = np.flatnonzero(holds)[score(rows)[holds].argmax()]
    np.testing.assert_array_equal(best_under(score, conditions, space, 0, 0.7), rows[best])
    impossible = Conditions((Range(mixture(seed=2), 9.0, np.inf),))
    np.testing.assert_array_equal(best_under(score, impossible, space, 0, 0.7), rows[impossible.log(rows).argmax()])


# choose


def test_choose_meets_its_condition_on_a_known_function():
    opt = told({"a": "max", "b": "min"}, n=25)
    chosen = opt.choose(b="min", where={"a": ">= 0.9"})
    assert chosen.probability >= 0.9 and chosen.note is None
    assert first(chosen.x) >= 0.9 - 0.02
    grid = np.random.default_rng(0).random((20_000, 2))
    best = min(second(x) for x in grid[np.array([first(x) for x in grid]) >= 0.92])
    assert second(chosen.x) <= best + 0.02
    assert abs(chosen.outputs["a"].mean - first(chosen.x)) < 0.05


def test_a_pair_of_bounds_is_one_range_and_not_two_independent_conditions():
    opt = told({"a": "max", "b": "min"}, n=9, noise=0.2)
    both = opt.choose(b="min", where={"a": (0.4999, 0.5001)}, confidence=0.5)
    assert both.probability < 0.05 and "no point found reaches 50 %" in str(both.note)
    (wide,) = opt.front_analysis._conditions({"a": (0.4, 0.6)}).ranges
    z = opt.space.encode(both.x)[None]
    mu, var = np.array([[part[0] for part in one(z)] for one in wide.posteriors]).T
    sd = wide.wider * np.sqrt(var)
    exact = np.mean(stats.norm.cdf(0.6, mu, sd) - stats.norm.cdf(0.4, mu, sd))
    assert np.exp(wide.log(z)[0]) == pytest.approx(exact)


def test_where_no_point_is_sure_enough_the_answer_is_the_measured_one_that_falls_short_least():
    opt = told({"a": "max", "b": "min"}, n=16)
    best = max(opt.trials, key=lambda trial: trial.outputs["a"])
    limit = best.outputs["a"] + 2.0  # far above what f can be
    chosen = opt.choose({"a": (limit, limit + 1.0)}, b="min")
    assert chosen.trial == best and np.array_equal(chosen.x, best.x)
    assert f"trial {best.number} comes closest, with a" in str(chosen.note)
    assert chosen.untried is not None and chosen.untried.trial is None
    assert chosen.untried.probability >= chosen.probability
    assert "not tried yet" in repr(chosen)


def test_of_measured_points_that_meet_the_conditions_the_best_one_counts():
    """Of a little is known, so that no point is sure to meet its condition; its means meet it everywhere."""
    opt = told({"a": "max", "b": "min"}, n=16, noise_var={"a": 25.0, "b": 1e-6}, kernel=kernels.RBF(0.3))
    chosen = opt.choose({"a": (-0.9, 0.9)}, b="min")
    assert "comes closest" in str(chosen.note) and chosen.probability < 0.9
    assert chosen.trial == min(opt.trials, key=lambda trial: trial.outputs["b"])


def test_a_measured_point_outside_the_fixed_coordinates_is_no_answer():
    space = {"x": (0.0, 1.0), "o": ["p", "q"]}
    opt = Optimizer(space, goals={"a": "max", "b": "min"}, seed=0)
    for x in np.linspace(0.0, 1.0, 9):
        for option in "pq":
            y = float(np.sin(3.0 * x)) + (option == "p")
            opt.tell({"x": float(x), "o": option}, {"a": y, "b": float(x)})
    chosen = opt.choose({"a": ">= 5"}, fixed={"o": "q"}, b="min")
    assert chosen.trial is not None and chosen.trial.x["o"] == "q" and chosen.x["o"] == "q"
    rows = [trial for trial in opt.trials if trial.x["o"] == "q"]
    assert chosen.trial.outputs["a"] == pytest.approx(max(trial.outputs["a"] for trial in rows), abs=1e-6)


def test_limits_and_acceptable_values_are_conditions_too_and_where_replaces_the_latter():
    goals = {"a": Max(at_least=0.8), "b": "min", "c": AtLeast(0.3)}
    opt = told(goals, n=25)
    chosen, lower = opt.choose(b="min"), opt.choose(b="min", where={"a": ">= 0.2"})
    assert first(chosen.x) >= 0.78 and 0.2 <= first(lower.x) <= 0.7
    assert first(lower.x) + second(lower.x) >= 0.28
    with pytest.raises(ValueError, match=r"'c', but its goal is at least 0.3: no value meets both"):
        opt.choose(b="min", where={"c": "<= 0.1"})


def test_a_target_is_met_and_can_be_the_objective():
    goals = {"a": Match(0.9, within=0.2), "b": "min"}
    opt = told(goals, n=25)
    assert abs(first(opt.choose(a="match").x) - 0.9) < 0.02
    assert abs(first(opt.choose(b="min").x) - 0.9) <= 0.2
    with pytest.raises(ValueError, match="b is 'match', but its goal is min; give"):
        opt.choose(b="match")


def test_fixed_coordinates_constraints_and_conditions_are_respected():
    opt = told({"a": "max", "b": "min"}, n=20)
    chosen = opt.choose(a="max", where={"b": "<= 0.5"}, fixed={0: 0.25})
    assert float(chosen.x[0]) == 0.25
    space = {"u": (0.0, 1.0), "v": (0.0, 1.0), "k": Int(1, 3)}
    limited = Optimizer(space, goals={"a": "max", "b": "min"}, constraints="u + v <= 0.8", seed=0)
    rng = np.random.default_rng(0)
    for _ in range(15):
        x = limited.ask()
        limited.tell(x, {"a": first((x["u"], x["v"])) + 0.1 * x["k"], "b": second((x["u"], x["v"]))})
    for most in (0.2, 0.4):
        x = limited.choose(a="max", where={"b": f"<= {most}"}).x
        assert x["u"] + x["v"] <= 0.8 + 1e-9 and x["k"] in (1, 2, 3)
    table = rng.random((60, 2))
    finite = Optimizer(table, goals={"a": "max", "b": "min"}, seed=0)
    for x in table[:15]:
        finite.tell(x, {"a": first(x), "b": second(x)})
    chosen = finite.choose(a="max", where={"b": "<= 0.5"})
    assert any(np.array_equal(chosen.x, x) for x in table)


def test_a_point_that_was_evaluated_is_named_and_a_repr_says_what_is_known():
    table = np.random.default_rng(0).random((12, 2))
    opt = Optimizer(table, goals={"a": "max", "b": "min"}, seed=0)
    for x in table:
        opt.tell(x, {"a": first(x), "b": second(x)})
    chosen = opt.choose(a="max")
    assert chosen.trial is not None and chosen.trial.outputs["a"] == max(map(first, table))
    assert f"trial {chosen.trial.number}" in repr(chosen) and "note" not in repr(chosen)
    assert "no point found reaches 90 %" in repr(opt.choose(a="max", where={"b": "<= -9"}))
    few = told({"a": "max", "b": "min"}, n=4)
    assert "it takes 9 values to say, and there are 4" in repr(few.choose(a="max", where={"b": "<= 0.9"}))


def test_where_evaluations_fail_a_chosen_point_probably_succeeds():
    opt = Optimizer([(0.0, 1.0)] * 2, goals={"a": "max", "b": "min"}, seed=0)
    rng = np.random.default_rng(0)
    for x in rng.random((40, 2)):
        trial = opt.ask()
        opt.forget(trial)
        if x[0] > 0.5:
            opt.fail(_pending_at(opt, x))
        else:
            opt.tell(x, {"a": float(x[0]), "b": float(x[1])})
    chosen = opt.choose(a="max")
    assert chosen.x[0] < 0.55 and chosen.probability >= 0.9


def _pending_at(opt, x):
    """Make x a pending trial of the optimizer."""
    return opt._add(opt.space.canonical(x), "user")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, TypeError, "choose got nothing to optimise"),
        ({"a": "max", "b": "min"}, TypeError, "choose got a, b to optimise"),
        ({"z": "max"}, ValueError, "'z' is not an output"),
        ({"a": "most"}, ValueError, "a is 'most'; give one of 'max', 'min', 'match'"),
        ({"a": "max", "where": {"z": ">= 1"}}, ValueError, "'z' is not an output"),
        ({"a": "max", "where": {"b": "about 1"}}, ValueError, "where has 'b': 'about 1'; give where="),
        ({"a": "max", "where": {"b": ">= 1e999"}}, ValueError, "where has 'b'"),
        ({"a": "max", "where": {"b": (2.0, 1.0)}}, ValueError, "where has 'b'"),
        ({"a": "max", "where": ["b >= 1"]}, TypeError, "where is"),
        ({"a": "max", "confidence": 1.0}, ValueError, "confidence is 1.0"),
        ({"a": "max", "fixed": {7: 1.0}}, ValueError, "7"),
        ({"c": "max"}, ValueError, "c has no value yet"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments, error, message):
    opt = Optimizer([(0.0, 1.0)] * 2, goals={"a": "max", "b": "min", "c": None}, seed=0)
    opt.tell([0.1, 0.2], {"a": 1.0, "b": 2.0})
    opt.tell([0.6, 0.2], {"a": 1.5, "b": 2.5})
    with pytest.raises(error, match=message):
        opt.choose(**arguments)


def test_before_the_first_value_nothing_can_be_chosen():
    with pytest.raises(ValueError, match="nothing has been told yet"):
        Optimizer([(0.0, 1.0)], goals={"a": "max", "b": "min"}).choose(a="max")


def test_results_and_studies_choose_what_their_optimizer_chooses(tmp_path):
    def f(x):
        return {"a": first(x), "b": second(x)}

    result = gpmi.optimize(f, [(0.0, 1.0)] * 2, goals={"a": "max", "b": "min"}, budget=12, seed=0)
    with gpmi.study(tmp_path / "s.db", space=[(0.0, 1.0)] * 2, goals={"a": "max", "b": "min"}, seed=0) as study:
        for trial in result.trials:
            study.tell(trial.x, dict(trial.outputs))
        mine = study.choose(a="max", where={"b": "<= 0.5"}, fixed={1: 0.1})
        assert float(mine.x[1]) == 0.1 and mine.probability > 0.5
    assert float(result.choose(a="max", where={"b": "<= 0.5"}, fixed={1: 0.1}).x[1]) == 0.1


# Each output by itself


def test_the_ledger_of_an_output_is_the_ledger_of_a_run_with_that_output_alone():
    goals = {"a": Max(at_least=0.0), "b": Min(), "c": None}
    opt = told(goals, n=15, kernel=kernels.RBF(0.4), noise_var=0.01)
    alone = Optimizer([(0.0, 1.0)] * 2, kernel=kernels.RBF(0.4), noise_var=0.01, goal="min", seed=0)
    for trial in opt.trials:
        alone.tell(trial.x, trial.outputs["b"])
    mine, other = opt.front_analysis.outputs["b"], alone.ledger
    np.testing.assert_allclose(mine.calibration.ahead, other.calibration.ahead, atol=1e-9)
    assert mine.noise_sd == pytest.approx(other.noise_sd)
    assert list(opt.front_analysis.outputs) == ["a", "b", "c"]


def test_importances_are_those_of_one_output():
    opt = Optimizer([(0.0, 1.0)] * 2, goals={"a": "max", "b": "min", "c": None}, seed=0)
    for x in np.random.default_rng(0).random((20, 2)):
        opt.tell(x, {"a": float(np.sin(5 * x[0])), "b": float(x[1] ** 2), "c": float(x[0] * x[1])})
    by_a, by_b = (gpmi.importances(opt, output=name) for name in "ab")
    assert by_a.ranked[0].name == "x0" and by_b.ranked[0].name == "x1"
    assert by_a.ranked[0].total > 0.8 and by_b.ranked[0].total > 0.8
    with pytest.raises(ValueError, match=r"there are several objectives; give output=.*'a', 'b', 'c'"):
        gpmi.importances(opt)
    with pytest.raises(ValueError, match="'z' is not an output"):
        gpmi.importances(opt, output="z")
    single = gpmi.optimize(lambda x: {"a": x[0], "w": x[0]}, [(0.0, 1.0)], goals={"a": "max", "w": None}, budget=9)
    assert gpmi.importances(single).each[0].total > 0.9 < gpmi.importances(single, output="w").each[0].total
    plain = gpmi.maximize(lambda x: x[0], [(0.0, 1.0)], budget=9)
    with pytest.raises(ValueError, match="output is 'a', but the run has no goals"):
        gpmi.importances(plain, output="a")


def test_reading_changes_no_suggestion():
    runs = [told({"a": "max", "b": "min"}, n=12, noise=0.1) for _ in range(2)]
    runs[0].choose(a="max", where={"b": "<= 0.5"})
    assert str(runs[0].ledger)
    np.testing.assert_array_equal(runs[0].ask(), runs[1].ask())


@pytest.mark.parametrize("where", [None, {"yield": ">= 60"}])
@pytest.mark.parametrize("constraints", [(), ("a + b + c == 1", "hot + 40 * a <= 90")])
def test_the_chosen_point_can_be_set(where: Any, constraints: tuple[str, ...]) -> None:
    space = {**{name: (0.0, 1.0) for name in "abc"}, "hot": gpmi.Real(20.0, 90.0, step=5.0)}
    opt = gpmi.Optimizer(space, goals={"yield": "max", "cost": "min"}, constraints=constraints, seed=0)
    for x in opt.ask(12):
        good = 40.0 + 50.0 * math.exp(-(((x["hot"] - 63.3) / 20.0) ** 2) - (x["a"] - 0.5) ** 2)
        opt.tell(x, {"yield": good, "cost": 1.0 + 8.0 * x["b"] + 0.02 * x["hot"]})
    for goal in ({"yield": "max"}, {"cost": "min"}):
        found = opt.choose(where, 0.8, **goal)
        assert found.x["hot"] % 5.0 == 0.0
        opt.space.encode(found.x)  # refuses a point that breaks a constraint
        if where and found.note is None:
            assert found.probability >= 0.8
