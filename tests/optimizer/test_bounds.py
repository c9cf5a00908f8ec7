"""Bounds of y: what is stated about f stays within them, whatever was told, and suggestions do not change."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpmi
from gpmi import AtLeast, Match, Max, Min, Optimizer, kernels
from gpmi.analysis.ledger.front_ledger import FrontLedger
from gpmi.analysis.ledger.gain import bounded_improvement
from gpmi.analysis.ledger.ledger import Ledger
from gpmi.trials.given_bounds import given_bounds
from gpmi.trials.value_bounds import ValueBounds
from gpmi.views.reading import view_of

pytestmark = pytest.mark.usefixtures("few_draws")
SLACK = 1e-9  # of the width of the bounds: rounding


def peak(x: Any, top: float, error: float, rng: np.random.Generator) -> float:
    away = float(np.sum((np.asarray(list(x.values()) if isinstance(x, dict) else x, dtype=float) - 0.4) ** 2))
    return top * math.exp(-6.0 * away) + error * float(rng.standard_normal())


def run(space: Any, n: int, top: float = 100.0, error: float = 0.0, seed: int = 0, **options: Any) -> Optimizer:
    opt, rng = Optimizer(space, seed=seed, **options), np.random.default_rng(seed)
    for _ in range(n):
        x = opt.ask()
        y = peak(x, top, error, rng)
        opt.tell(x, y if options.get("goal", "max") == "max" else top - y)
    return opt


def assert_within(bounds: ValueBounds, values: Any) -> None:
    slack = SLACK * (bounds.hi - bounds.lo if math.isfinite(bounds.hi - bounds.lo) else 1.0)
    array = np.asarray(values, dtype=float)
    assert np.all((array >= bounds.lo - slack) & (array <= bounds.hi + slack)), (bounds, array)


def assert_stated_within(opt: Optimizer) -> None:
    bounds = opt.bounds["y"]
    for trial in opt.trials:
        if trial.mu is not None and trial.sd is not None:
            assert_within(bounds, [trial.mu, trial.mu - trial.sd, trial.mu + trial.sd])
    ledger, width = opt.ledger, bounds.hi - bounds.lo
    assert isinstance(ledger, Ledger)
    if (regret := ledger.regret()).known:
        assert 0.0 <= regret.interval()[1] <= width * (1.0 + SLACK)
        assert regret.simple.max() <= width * (1.0 + SLACK)
        assert np.abs(ledger.gain(10).draws).max() <= width * (1.0 + SLACK)
        assert 0.0 <= ledger.improvement <= width * (1.0 + SLACK)
    view = view_of(opt)
    if view.believed is not None:
        assert_within(bounds, view.believed)
    rows = np.random.default_rng(0).random((50, opt.space.dim))
    assert_within(bounds, view.mean(rows))
    assert_within(bounds, view.bounds(rows, 3.0))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(0, 1000),
    st.sampled_from([(0.0, 100.0), (0.0, 60.0), (20.0, 70.0), (None, 90.0), (5.0, None)]),
    st.sampled_from([0.0, 3.0, 15.0]),
    st.sampled_from(["max", "min"]),
    st.integers(2, 14),
)
def test_no_statement_leaves_the_bounds(seed: int, bounds: Any, noise: float, goal: str, n: int) -> None:
    assert_stated_within(run([(0.0, 1.0)] * 2, n, error=noise, seed=seed, goal=goal, bounds=bounds))


@pytest.mark.parametrize("options", [{}, {"kernel": kernels.RBF(0.3, 900.0), "noise_var": 4.0}, {"noise": "student"}])
def test_none_leaves_them_with_other_models(options: dict[str, Any]) -> None:
    assert_stated_within(run([(0.0, 1.0)], 10, error=5.0, bounds=(0, 90), **options))


def test_none_leaves_them_on_a_finite_set_whose_values_are_transformed() -> None:
    rows = np.random.default_rng(0).random((40, 2))
    opt = Optimizer(rows, seed=1, bounds=(-50, 0))
    for _ in range(20):
        x = opt.ask()
        opt.tell(x, -float(np.exp(6.0 * np.sum((x - 0.4) ** 2))))
    assert_stated_within(opt)


@pytest.mark.parametrize("space", [[(0.0, 1.0)] * 2, {"a": (0.0, 1.0), "b": ["x", "y"]}, np.eye(5)])
def test_suggestions_are_the_same_with_and_without(space: Any) -> None:
    def asked(**options: Any) -> list[Any]:
        opt, rng, found = Optimizer(space, seed=3, **options), np.random.default_rng(0), []
        for _ in range(18):
            x = opt.ask()
            found.append(x if isinstance(x, dict) else x.tolist())
            y = 80.0 * math.exp(-((x["a"] - 0.3) ** 2)) if isinstance(x, dict) else peak(x, 80.0, 0.0, rng)
            opt.tell(x, min(y, 79.0))
        return found

    assert asked() == asked(bounds=(70, 79.5))


def test_what_is_left_is_at_most_the_distance_to_the_bound_where_values_are_exact() -> None:
    free = run([(0.0, 1.0)] * 2, 12, top=97.0, noise_var=1e-8)
    opt = run([(0.0, 1.0)] * 2, 12, top=97.0, noise_var=1e-8, bounds=(0, 97.5))
    assert opt.best is not None and opt.best.y is not None
    left = opt.ledger.regret()
    assert left.simple.max() <= 97.5 - 0.99 * opt.best.y
    at = float(opt.ledger.model.posterior.mu(opt.ledger.model.recommendation.row)[0])
    assert left.interval()[1] <= max(97.5 - at, 0.0) + 1.0
    assert left.interval()[1] <= free.ledger.regret().interval()[1] + SLACK


def test_the_improvement_is_that_of_clipped_draws() -> None:
    opt = run([(0.0, 1.0)] * 2, 8, error=4.0, kernel=kernels.RBF(0.3, 900.0), noise_var=16.0)
    posterior = opt.posterior
    assert posterior is not None
    rng = np.random.default_rng(0)
    z, row, bounds = rng.random((6, 2)), np.array([0.45, 0.4]), ValueBounds(10.0, 85.0)
    drawn = posterior.sample(np.concatenate([row[None], z]), rng, 200_000)
    expected = np.maximum(bounds.clip(drawn[:, 1:]) - bounds.clip(drawn[:, :1]), 0.0).mean(axis=0)
    np.testing.assert_allclose(bounded_improvement(posterior, z, row, bounds), expected, atol=0.15, rtol=0.02)


def test_a_value_outside_counts_and_is_an_event() -> None:
    opt = Optimizer([(0.0, 1.0)], seed=0, bounds=(0, 100))
    trial = opt.tell([0.5], 101.3)
    assert trial.y == 101.3 and opt.best is not None and opt.best.y == 101.3
    (event,) = [one for one in opt.events if one.kind == "outside the bounds"]
    assert event.message.startswith("y of trial 0 is 101.3, outside its bounds, 0 to 100; it counts as measured")
    opt.tell([0.1], 50.0)
    assert [one.kind for one in opt.events].count("outside the bounds") == 1


GOALS: dict[str, Any] = {"yield": "max", "cost": "min", "ph": None}
OUTPUT_BOUNDS: dict[str, Any] = {"yield": (0, 100), "cost": (0, 3), "ph": (6.5, None)}


def measured(x: Any) -> dict[str, float]:
    y = 99.0 * math.exp(-4.0 * float((x[0] - 0.7) ** 2))
    return {"yield": y, "cost": 3.0 * float(x[0] ** 2 + 0.1 * x[1]) / 1.1, "ph": 7.0 + float(x[1]) / 2}


def of_goals(n: int, goals: dict[str, Any], bounds: Any, seed: int = 0) -> Optimizer:
    opt = Optimizer([(0.0, 1.0)] * 2, goals=goals, bounds=bounds, seed=seed)
    for _ in range(n):
        x = opt.ask()
        opt.tell(x, {name: value for name, value in measured(x).items() if name in goals})
    return opt


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 100), st.integers(10, 13))
def test_no_statement_about_a_front_leaves_the_bounds(seed: int, n: int) -> None:
    opt = of_goals(n, GOALS, OUTPUT_BOUNDS, seed)
    ledger = opt.ledger
    assert isinstance(ledger, FrontLedger) and ledger.reference is not None
    for name, value in ledger.reference.items():
        assert_within(given_bounds(name, OUTPUT_BOUNDS[name]), value)
    bands = ledger.front_bands()
    assert bands is not None
    for drawn in (bands.low, bands.median, bands.high):
        assert_within(ValueBounds(0, 100), drawn[:, 0])
        assert_within(ValueBounds(0, 3), drawn[:, 1])
    room = (100 - ledger.reference["yield"]) * (ledger.reference["cost"] - 0)
    assert ledger.hypervolume + ledger.missing.interval()[1] <= room * (1.0 + SLACK)
    assert ledger.missing.possible.max() <= 1.02 * room  # a volume is a sum over rays
    rows = np.random.default_rng(0).random((20, 2))
    chosen = opt.choose(cost="min", where={"yield": ">= 50"})
    for name, output in opt.models.items():
        bounds = given_bounds(name, OUTPUT_BOUNDS[name])
        for one in (*output.predict(rows), chosen.outputs[name]):
            assert_within(bounds, [one.mean - one.sd, one.mean, one.mean + one.sd])
    for view in view_of(opt).each_output:
        assert_within(given_bounds("y", OUTPUT_BOUNDS[view.value_name]), view.bounds(rows, 3.0))


def test_a_front_without_bounds_may_leave_them() -> None:
    bands = of_goals(11, GOALS, None).ledger.front_bands()  # type: ignore[union-attr]
    assert bands is not None and (bands.high[:, 0].max() > 100.0 or bands.high[:, 1].min() < 0.0)


def test_what_the_bounds_imply_is_certain() -> None:
    opt = of_goals(10, {"yield": Match(95, within=5), "cost": "min"}, {"yield": (0, 100)})
    (range_,) = opt.front_analysis._conditions({"yield": (90.0, 100.0)}).ranges
    assert (range_.lo, range_.hi) == (90.0, math.inf)


def test_the_single_objective_of_goals_has_bounds() -> None:
    opt = of_goals(9, {"cost": "min", "ph": AtLeast(7.0)}, {"cost": (0.0, 1.0), "ph": (6.5, None)})
    view = view_of(opt)
    assert_within(ValueBounds(0.0, 1.0), view.bounds(np.random.default_rng(0).random((20, 2)), 3.0))
    assert any("cost of trial" in one.message for one in opt.events)


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        (5, "bounds is 5; give the smallest and the largest value"),
        ((0, 1, 2), r"bounds is \(0, 1, 2\); give the smallest"),
        ((1, 1), "which has no room"),
        ((100, 0), "which has no room"),
        ((None, None), "open on both sides"),
        ((math.nan, 1), "bounds is nan"),
        ((0, "1"), "bounds is .*; give the smallest"),
        ((0, 1e200), "too large to square"),
        ([(0, 1), (0, 2)], "the limits of the parameters are space="),
        ({"yield": (0, 1)}, "but the run has no goals"),
        ("ab", "give the smallest"),
    ],
)
def test_bad_bounds_are_refused(bounds: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        Optimizer([(0.0, 1.0)], bounds=bounds)


@pytest.mark.parametrize(
    ("goals", "bounds", "words"),
    [
        (GOALS, (0, 1), r"but the run has goals; give bounds by output, \{'yield': \(0, 100\)\}"),
        (GOALS, {"yeild": (0, 1)}, "did you mean 'yield'"),
        ({"a": Match(5, within=1)}, {"a": (0, 4)}, "its goal is match 5 within 1"),
        ({"a": Max(at_least=5)}, {"a": (0, 4)}, "its goal is max, at least 5"),
        ({"a": Min(at_most=-1)}, {"a": (0, 4)}, "its goal is min, at most -1"),
        ({"a": "max", "b": AtLeast(5)}, {"b": (0, 4)}, "its goal is at least 5"),
    ],
)
def test_bad_bounds_of_outputs_are_refused(goals: Any, bounds: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        Optimizer([(0.0, 1.0)], goals=goals, bounds=bounds)


@pytest.mark.parametrize(
    ("options", "bounds", "other"),
    [({}, (0, 100), (0, 99)), ({"goals": GOALS}, {"yield": (0, 100)}, {"yield": (0, None)})],
)
def test_a_study_keeps_its_bounds(tmp_path: Path, options: Any, bounds: Any, other: Any) -> None:
    path = tmp_path / "study.db"
    with gpmi.study(path, space=[(0.0, 1.0)], seed=0, bounds=bounds, **options) as study:
        x = study.ask()
        study.tell(x, 104.0 if not options else {"yield": 104.0, "cost": 1.0, "ph": 7.0})
    with gpmi.study(path) as study:
        assert study.optimizer.bounds == Optimizer([(0.0, 1.0)], bounds=bounds, **options).bounds
        assert [one.kind for one in study.optimizer.events] == ["outside the bounds"]
        assert study.verify()
    floats = {k: tuple(map(float, v)) for k, v in bounds.items()} if options else tuple(map(float, bounds))
    with gpmi.study(path, space=[(0.0, 1.0)], bounds=floats, **options):
        pass
    with pytest.raises(ValueError, match=r"bounds is .*, but that of the study is"):
        gpmi.study(path, space=[(0.0, 1.0)], bounds=other, **options)


def test_runs_take_bounds() -> None:
    result = gpmi.minimize(lambda x: float(x[0] ** 2), [(-1.0, 1.0)], budget=8, seed=0, bounds=(0, None))
    assert all(trial.mu is None or trial.mu - (trial.sd or 0.0) >= -SLACK for trial in result.trials)
    with pytest.raises(TypeError, match="bounds is 3"):
        gpmi.maximize(lambda x: 0.0, [(0.0, 1.0)], budget=3, bounds=3)
