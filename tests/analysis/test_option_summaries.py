"""What is known of each option of a choice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpmi
from gpmi.analysis.ledger.facts import TRIED
from gpmi.analysis.ledger.options import FORGOTTEN, OptionSummary

HEIGHTS = {"a": 0.6, "b": 1.0, "c": 0.8}
PLACES = {"a": 0.2, "b": 0.5, "c": 0.8}


def hill(p: dict[str, Any]) -> float:
    """Each option has a hill of its own."""
    return HEIGHTS[p["o"]] * float(np.exp(-0.5 * ((p["x"] - PLACES[p["o"]]) / 0.15) ** 2))


@pytest.fixture(scope="module")
def run() -> gpmi.Optimizer:
    opt = gpmi.Optimizer({"x": (0.0, 1.0), "o": ["a", "b", "c"]}, seed=0)
    for x in np.linspace(0.0, 1.0, 11):
        for option in HEIGHTS:
            point = {"x": float(x), "o": option}
            opt.tell(point, hill(point))
    return opt


def test_an_option_is_judged_at_its_own_best_setting(run: gpmi.Optimizer) -> None:
    for summary in run.options:
        assert summary.x is not None and summary.best is not None
        assert summary.x["o"] == summary.option and abs(summary.x["x"] - PLACES[summary.option]) < 0.03
        assert summary.best == pytest.approx(HEIGHTS[summary.option], abs=0.03)
        assert summary.values == 11


def test_the_chances_to_hold_the_best_add_up(run: gpmi.Optimizer) -> None:
    chances = {summary.option: summary.chance for summary in run.options}
    assert sum(chance or 0.0 for chance in chances.values()) == pytest.approx(1.0)
    assert (chances["b"] or 0.0) > 0.95


def test_the_best_option_is_the_recommended_one(run: gpmi.Optimizer) -> None:
    best = max(run.options, key=lambda summary: summary.best or 0.0)
    assert best.x is not None and best.x["o"] == run.recommend()["o"]


def test_the_goal_min_has_the_smallest_value(run: gpmi.Optimizer) -> None:
    opt = gpmi.Optimizer({"x": (0.0, 1.0), "o": ["a", "b", "c"]}, seed=0, goal="min")
    for trial in run.trials:
        opt.tell(trial.x, -(trial.y or 0.0))
    for up, down in zip(run.options, opt.options, strict=True):
        assert down.best == pytest.approx(-(up.best or 0.0)) and down.chance == up.chance


def test_before_there_are_enough_values_only_their_number_is_known() -> None:
    opt = gpmi.Optimizer({"x": (0.0, 1.0), "o": ["a", "b"]}, seed=0)
    assert [summary.values for summary in opt.options] == [0, 0]
    opt.tell({"x": 0.5, "o": "a"}, 1.0)
    first, second = opt.options
    assert (first.values, first.idle, second.values, second.idle) == (1, 0, 0, 1)
    assert first.best is None and first.chance is None and str(first) == "a (1 value)"


def test_a_space_without_a_choice_has_no_options() -> None:
    opt = gpmi.Optimizer({"x": (0.0, 1.0), "o": gpmi.Choice([1, 2, 4], ordered=True), "k": ["only"]}, seed=0)
    opt.tell({"x": 0.5, "o": 1, "k": "only"}, 1.0)
    assert opt.options == () and opt.ledger.scarcest is None


def test_rows_of_a_table_have_options_too() -> None:
    import pandas as pd

    table = pd.DataFrame({"x": [0.0, 1.0] * 4, "o": list("aaaabbbc")})
    opt = gpmi.Optimizer(table, seed=0)
    for row in (0, 1, 4):
        opt.tell(dict(table.iloc[row]), float(row))
    assert {summary.option: summary.values for summary in opt.options} == {"a": 2, "b": 1, "c": 0}
    scarce = opt.ledger.scarcest
    assert scarce is not None and scarce.option == "c"
    opt.tell(dict(table.iloc[7]), 1.0)
    scarce = opt.ledger.scarcest
    assert scarce is not None and scarce.option == "b", "all rows with c were queried"


def test_an_option_that_constraints_exclude_never_holds_the_best() -> None:
    space = {"x": (0.0, 1.0), "o": ["a", "b"]}
    opt = gpmi.Optimizer(space, seed=0, constraints=[gpmi.Forbidden(o="b")])
    for x in np.linspace(0.0, 1.0, 20):
        opt.tell({"x": float(x), "o": "a"}, float(x))
    assert {summary.option: summary.chance for summary in opt.options} == {"a": 1.0, "b": 0.0}


def test_each_objective_has_its_own_best_setting() -> None:
    opt = gpmi.Optimizer({"x": (0.0, 1.0), "o": ["a", "b"]}, goals={"up": "max", "down": "min"}, seed=0)
    for x in np.linspace(0.0, 1.0, 10):
        for option in "ab":
            y = float(x) + (option == "a")
            opt.tell({"x": float(x), "o": option}, {"up": y, "down": y})
    best = {(summary.output, summary.option): summary.x for summary in opt.options}
    assert set(best) == {("up", "a"), ("up", "b"), ("down", "a"), ("down", "b")}
    up, down = best["up", "a"], best["down", "b"]
    assert up is not None and down is not None and up["x"] > 0.9 and down["x"] < 0.1


def test_an_objective_with_a_target_has_no_best_option() -> None:
    opt = gpmi.Optimizer(
        {"x": (0.0, 1.0), "o": ["a", "b"]}, goals={"up": "max", "size": gpmi.Match(0.5, within=0.1)}, seed=0
    )
    for x in np.linspace(0.0, 1.0, 10):
        for option in "ab":
            opt.tell({"x": float(x), "o": option}, {"up": float(x), "size": float(x)})
    assert {summary.output for summary in opt.options} == {"up"}


@pytest.mark.parametrize(
    ("chance", "idle", "is_forgotten"), [(0.2, FORGOTTEN, True), (0.2, FORGOTTEN - 1, False), (0.05, 99, False)]
)
def test_an_option_that_may_hold_the_best_is_not_forgotten(chance: float, idle: int, is_forgotten: bool) -> None:
    assert OptionSummary("o", "a", 3, idle, chance=chance).is_forgotten is is_forgotten


def test_an_option_with_few_values_may_still_be_the_best(run: gpmi.Optimizer) -> None:
    """So the answer is not yes, however sure the model is."""
    few = [trial for trial in run.trials if trial.x["o"] != "a" or trial.number < 3 * (TRIED - 1)]
    opt = gpmi.Optimizer(run.space, seed=0)
    for trial in few:
        opt.tell(trial.x, trial.y or 0.0)
    scarce = opt.ledger.scarcest
    assert scarce is not None and (scarce.option, scarce.values) == ("a", TRIED - 1)
    assert opt.ledger.can_stop.answer != "yes"
    assert "o: b" in str(opt.ledger)
