"""A Real with a step: what is asked and recommended can be set, keeps the constraints, and any number may be told."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpmi
from gpmi import Optimizer, Real, Space
from gpmi.space import Parameters

pytestmark = pytest.mark.usefixtures("few_draws")

MIXTURE: dict[str, Any] = {
    **{name: Real(0, 1, step=0.01) for name in "abc"},
    "temperature": Real(20, 90, step=0.5, unit="°C"),
    "solvent": ["THF", "DMF", "water"],
}
SUM = ["a + b + c == 1"]


def f(x: Any) -> float:
    return -((x["a"] - 0.333) ** 2) - (x["b"] - 0.21) ** 2 - ((x["temperature"] - 61.3) / 50) ** 2


def is_setting(parameter: Real, value: float) -> bool:
    assert parameter.step is not None
    number = (value - parameter.lo) / parameter.step
    return abs(number - round(number)) < 1e-7 and value == round(value, 9)


def assert_settable(space: dict[str, Any], x: Any) -> None:
    for name, parameter in space.items():
        if isinstance(parameter, Real) and parameter.step is not None:
            assert is_setting(parameter, x[name]), (name, x)


def test_a_mixture_is_asked_at_settings_that_sum_to_one() -> None:
    opt = Optimizer(MIXTURE, constraints=SUM, seed=0)
    for _ in range(16):
        x = opt.ask()
        opt.tell(x, f(x))
    for point in [*(trial.x for trial in opt.trials), opt.recommend(), opt.ledger.regret().recommended]:
        assert_settable(MIXTURE, point)
        assert point["a"] + point["b"] + point["c"] == pytest.approx(1.0, abs=1e-12)
    assert len({tuple(trial.x.values()) for trial in opt.trials}) == 16
    assert opt.events == ()


def test_the_prediction_of_a_suggestion_is_at_its_settings() -> None:
    opt = Optimizer({"x": Real(0, 1, step=0.1)}, seed=0, kernel=gpmi.kernels.RBF(0.2), noise_var=1e-4)
    for y in (0.1, 0.7, 0.3):
        opt.tell(opt.ask(), y)
    posterior, x = opt.posterior, opt.ask()
    assert posterior is not None
    (mu,), (var,) = posterior(opt.space.encode(x)[None])
    assert (opt.trials[-1].mu, opt.trials[-1].sd) == pytest.approx((mu, var**0.5))


def test_any_number_may_be_told() -> None:
    opt = Optimizer(MIXTURE, constraints=SUM, seed=0)
    x = {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3, "temperature": 83.7, "solvent": "THF"}
    assert opt.tell(x, 1.0).x == x
    assert_settable(MIXTURE, opt.ask())


def test_what_is_fixed_is_not_moved() -> None:
    opt = Optimizer(MIXTURE, constraints=SUM, seed=0)
    for fixed in ({"temperature": 21.3}, {"a": 1 / 3, "b": 1 / 3}):
        x = opt.ask(fixed=fixed)
        assert {name: x[name] for name in fixed} == fixed


def test_parameters_without_a_step_fill_the_sum() -> None:
    space = {"a": Real(0, 1, step=0.05), "b": Real(0, 1, step=0.05), "c": Real(0, 1)}
    opt = Optimizer(space, constraints=["a + b + c == 1"], seed=0)
    for _ in range(8):
        x = opt.ask()
        assert_settable(space, x)
        assert sum(x.values()) == pytest.approx(1.0, abs=1e-9)
        opt.tell(x, -((x["a"] - 0.3) ** 2))


def test_counts_hold_at_settings() -> None:
    space = {name: Real(0, 1, step=0.05) for name in "abcd"}
    opt = Optimizer(space, constraints=["count(a, b, c, d > 0) <= 2", "a + b + c + d == 1"], seed=0)
    for _ in range(12):
        x = opt.ask()
        assert_settable(space, x)
        assert sum(value > 0 for value in x.values()) <= 2 and sum(x.values()) == pytest.approx(1.0)
        opt.tell(x, -((x["a"] - 0.3) ** 2))


def test_few_settings_are_repeated_with_an_event() -> None:
    opt = Optimizer({"x": Real(0, 1, step=0.5)}, seed=0)
    for _ in range(8):
        x = opt.ask()
        opt.tell(x, -((x["x"] - 0.4) ** 2))
    assert {trial.x["x"] for trial in opt.trials} == {0.0, 0.5, 1.0}
    assert "repeat" in [event.kind for event in opt.events]


def test_settings_that_no_constraint_allows_are_an_event() -> None:
    space = {"a": Real(0, 1, step=0.4), "b": Real(0, 1, step=0.4)}
    opt = Optimizer(space, constraints=["a + b == 0.9"], seed=0, kernel=gpmi.kernels.RBF(0.3), noise_var=0.1)
    x = opt.ask()
    assert x["a"] + x["b"] == pytest.approx(0.9)
    assert "no setting" in [event.kind for event in opt.events]


def test_batches_keep_their_rules_at_settings() -> None:
    opt = Optimizer(MIXTURE, constraints=SUM, seed=0)
    batch = opt.ask(6, same=["solvent"], apart={"temperature": 7.3})
    for x in batch:
        assert_settable(MIXTURE, x)
    temperatures = sorted(x["temperature"] for x in batch)
    assert min(b - a for a, b in itertools.pairwise(temperatures)) >= 7.3
    assert len({x["solvent"] for x in batch}) == 1


def test_a_front_and_a_condition() -> None:
    space = {"x": Real(0, 1, step=0.1), "kind": ["p", "q"], "y": Real(1, 100, log=True, step=1, when={"kind": "q"})}
    opt = Optimizer(space, goals={"u": "max", "v": "min"}, seed=0)
    for _ in range(10):
        x = opt.ask()
        assert_settable({name: space[name] for name in x}, x)
        opt.tell(x, {"u": x["x"], "v": x["x"] ** 2 + x.get("y", 3.0) / 100})


def test_a_study_and_its_file_keep_the_step(tmp_path: Path) -> None:
    from gpmi.cli.studyfile import open_study, read_study

    path = tmp_path / "study.toml"
    path.write_text("[parameters]\nx = { real = [0, 10], step = 0.5 }\ny = { real = [0, 1] }")
    with open_study(read_study(path)) as study:
        assert is_setting(Real(0, 10, step=0.5), study.ask().x["x"])
    with gpmi.study(tmp_path / "study.db") as study:
        assert study.space.parameters[0] == Real(0, 10, step=0.5)
        assert study.verify()
    with pytest.raises(ValueError, match=r"space is .*, but that of the study"):
        gpmi.study(tmp_path / "study.db", "study", space={"x": Real(0, 10, step=0.25), "y": (0.0, 1.0)})


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_it_is_the_nearest_of_all_settings(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 3))
    steps = [data.draw(st.sampled_from([0.1, 0.25, 0.3])) for _ in range(count)]
    space = Space.of([(0.0, 1.0)] * count)
    assert isinstance(space, Parameters)
    space = Parameters(tuple(Real(0, 1, step=step) for step in steps), None)
    row = np.array([data.draw(st.floats(0.0, 1.0)) for _ in range(count)])
    everything = itertools.product(*(np.arange(0.0, 1.0 + 1e-9, step) for step in steps))
    nearest = min((np.sum(((np.array(z) - row) / steps) ** 2), z) for z in everything)
    found = space.settable(row)
    assert found.is_possible and float(np.sum(((found.row - row) / steps) ** 2)) == pytest.approx(nearest[0], abs=1e-9)


@given(st.floats(-50, 50), st.sampled_from([0.1, 0.5, 2.5, 1e-3]), st.floats(0, 1))
def test_settings_are_decimals_around_the_value(lo: float, step: float, share: float) -> None:
    parameter = Real(round(lo, 3), round(lo, 3) + 30.0, step=step)
    value = parameter.lo + share * (parameter.hi - parameter.lo)
    near = parameter.settings_near(value, 1)
    assert 1 <= len(near) <= 2 and min(abs(one - value) for one in near) <= step * (1.0 + 1e-6)
    assert all(one == round(one, 6) and parameter.lo <= one <= parameter.hi for one in near)


@pytest.mark.parametrize("step", [0, -1, 2, "0.5", True, float("nan"), 1e-12])
def test_a_bad_step_is_refused(step: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="step of Real is"):
        Real(0, 1, step=step)


def test_rejected_settings_are_not_asked_again() -> None:
    opt, rejected = Optimizer({"t": Real(0, 1, step=0.25), "u": Real(0, 1, step=0.25)}, seed=0), set()
    for i in range(24):
        x = opt.ask()
        assert (x["t"], x["u"]) not in rejected
        if i % 3 == 2:
            opt.reject(x)
            rejected.add((x["t"], x["u"]))
        else:
            opt.tell(x, -((x["t"] - 0.5) ** 2) - (x["u"] - 0.5) ** 2)
