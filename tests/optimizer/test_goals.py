"""Runs with goals: an evaluation measures named outputs, at once or one by one, and each output has a goal."""

from __future__ import annotations

import copy
import itertools
import pickle
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gpmi
from gpmi import EHVI, AtLeast, AtMost, LogEI, Match, Max, Measured, Min, Optimizer, SpaceExhausted, kernels
from gpmi.model.model import objective
from gpmi.trials import Log
from gpmi.trials.named_goals import NamedGoals
from gpmi.trials.outputs import Outputs
from gpmi.trials.replay import take_over

BOX = [(0.0, 1.0), (0.0, 2.0)]
TWO: dict[str, Any] = {"yield": "max", "cost": "min"}
LIMITED: dict[str, Any] = {"yield": "max", "cost": "min", "purity": AtLeast(0.3), "ph": None}
SINGLE: dict[str, Any] = {"yield": "max", "purity": AtLeast(0.3), "ph": None}
PRIOR: dict[str, Any] = {"kernel": kernels.RBF(0.4), "noise_var": 0.01}


def numbers(x: Any) -> list[float]:
    values = x.values() if isinstance(x, Mapping) else x.tolist()
    return [float(v) if isinstance(v, int | float) else float(len(str(v))) for v in values]


def f(x: Any) -> dict[str, float]:
    """Four outputs of any point."""
    z = np.array(numbers(x))
    return {
        "yield": float(np.sin(5.0 * z[0]) + np.cos(3.0 * z[-1])),
        "cost": float((z**2).sum()),
        "purity": float(np.cos(2.0 * z[0]) - 0.2 * z[-1]),
        "ph": float(7.0 + z[0] - z[-1]),
    }


def measure(x: Any, goals: Mapping[str, Any]) -> dict[str, float]:
    return {name: value for name, value in f(x).items() if name in goals}


def run(goals: Mapping[str, Any] = TWO, steps: int = 9, space: Any = BOX, **options: Any) -> Optimizer:
    opt = Optimizer(space, goals=goals, **{"seed": 1, **options})
    for _ in range(steps):
        x = opt.ask()
        opt.tell(x, measure(x, goals))
    return opt


def fresh(opt: Optimizer, **options: Any) -> Optimizer:
    """An Optimizer with the same arguments and an empty log."""
    return Optimizer(BOX, goals=opt.goals, **{"seed": opt.seed, **options})


FIELDS = (
    *("number", "status", "origin", "y", "y_before", "noise_var", "repeats", "order", "why", "ended"),
    *("outputs", "output_noise_var", "output_repeats", "outputs_before", "unmet", "policy_notes"),
)


def same(a: Optimizer, b: Optimizer, steps: int = 2, *, fields: tuple[str, ...] = FIELDS) -> None:
    """Both have the same trials and ask the same next, to the last bit."""
    for name in fields:
        assert [getattr(t, name) for t in a.trials] == [getattr(t, name) for t in b.trials], name
    goals = a.goals
    for _ in range(steps):
        x, z = a.ask(), b.ask()
        assert a.space.encode(x).tobytes() == b.space.encode(z).tobytes()
        a.tell(x, measure(x, goals))
        b.tell(z, measure(x, goals))


def replays(opt: Optimizer, **options: Any) -> None:
    same(opt, fresh(opt, **options).replay(opt.trials))


# One objective


@pytest.mark.parametrize(("goal", "call"), [("max", gpmi.maximize), ("min", gpmi.minimize)])
@pytest.mark.parametrize("aim", ["find", "earn"])
def test_with_one_objective_optimize_asks_bit_for_bit_what_maximize_and_minimize_ask(
    goal: str, call: Callable[..., gpmi.Result], aim: str
) -> None:
    options: dict[str, Any] = {"budget": 14, "seed": 3, "aim": aim}
    one = call(lambda x: f(x)["yield"], BOX, **options)
    named = gpmi.optimize(lambda x: {"yield": f(x)["yield"]}, BOX, goals={"yield": goal}, **options)
    watched = gpmi.optimize(
        lambda x: measure(x, LIMITED), BOX, goals={**dict.fromkeys(LIMITED), "yield": goal}, **options
    )
    for other in (named, watched):
        for mine, its in zip(one.trials, other.trials, strict=True):
            assert mine.x.tobytes() == its.x.tobytes()
            assert (mine.y, mine.mu, mine.sd, mine.surprise) == (its.y, its.mu, its.sd, its.surprise)
        assert one.recommended is not None and one.recommended.tobytes() == other.recommended.tobytes()
        assert (one.y, one.goal, str(one.ledger)) == (other.y, other.goal, str(other.ledger))


@pytest.mark.parametrize("options", [{"fit": "mcmc"}, PRIOR, {"noise": "student"}, {"policy": LogEI()}], ids=str)
def test_the_options_of_one_objective_are_those_of_a_run_without_goals(options: dict[str, Any]) -> None:
    plain, named = Optimizer(BOX, seed=2, **options), Optimizer(BOX, seed=2, goals={"yield": "max"}, **options)
    for _ in range(9):
        x, z = plain.ask(), named.ask()
        assert x.tobytes() == z.tobytes()
        plain.tell(x, f(x)["yield"], noise_var=0.1)
        named.tell(z, {"yield": f(x)["yield"]}, noise_var=0.1)
    assert [t.surprise for t in plain.trials] == [t.surprise for t in named.trials]


@pytest.mark.parametrize(
    ("limit", "excess"), [(AtLeast(0.3), lambda purity: 0.3 - purity), (AtMost(0.3), lambda purity: purity - 0.3)]
)
@pytest.mark.parametrize("goal", ["max", "min"])
def test_a_limit_is_the_measured_constraint_under_a_name(limit: Any, excess: Any, goal: Any) -> None:
    plain = Optimizer(BOX, seed=0, goal=goal)
    named = Optimizer(BOX, seed=0, goals={"yield": goal, "purity": limit})
    for _ in range(12):
        x, z = plain.ask(), named.ask()
        assert x.tobytes() == z.tobytes()
        said = f(x)
        a = plain.tell(x, said["yield"], constraints=[excess(said["purity"])])
        b = named.tell(z, {name: said[name] for name in ("yield", "purity")})
        assert a.feasible == b.feasible and b.unmet == (() if a.feasible else ("purity",))
    assert plain.best is not None and named.best is not None and plain.best.number == named.best.number
    assert plain.recommend().tobytes() == named.recommend().tobytes()
    assert {a.feasible for a in plain.trials} == {True, False}


def test_a_limit_at_its_value_holds() -> None:
    opt = Optimizer(BOX, goals={"y": "max", "low": AtLeast(1.0), "high": AtMost(2.0)})
    assert opt.tell([0.1, 0.1], {"y": 1.0, "low": 1.0, "high": 2.0}).feasible
    below = opt.tell([0.2, 0.2], {"y": 1.0, "low": np.nextafter(1.0, 0.0), "high": np.nextafter(2.0, 3.0)})
    assert below.unmet == ("low", "high") and not below.feasible
    assert opt.tell([0.3, 0.3], {"y": 5.0}).unmet == ("low", "high")
    assert opt.best is not None and opt.best.number == 0


@pytest.mark.parametrize("goals", [TWO, SINGLE], ids=["two objectives", "one objective"])
@pytest.mark.parametrize("late", [False, True], ids=["at once", "late"])
def test_watched_outputs_change_no_suggestion(goals: dict[str, Any], late: bool) -> None:
    with_ph, without = {**goals, "ph": None}, {name: goal for name, goal in goals.items() if name != "ph"}
    a, b = Optimizer(BOX, goals=with_ph, seed=4), Optimizer(BOX, goals=without, seed=4)
    for _ in range(10):
        x, z = a.ask(), b.ask()
        assert x.tobytes() == z.tobytes()
        trial = a.tell(x, measure(x, without if late else with_ph))
        b.tell(z, measure(z, without))
        if late:
            told = a.tell(trial, {"ph": f(x)["ph"]})
            assert (told.surprise, told.mu, told.order) == (trial.surprise, trial.mu, trial.order)
    assert [t.surprise for t in a.trials] == [t.surprise for t in b.trials]
    assert "ph" in a.models and "ph" not in b.models
    (prediction,) = a.models["ph"].predict(np.array([[0.5, 1.0]]))
    assert prediction.mean == pytest.approx(6.5, abs=0.2)


# Outputs one by one


def one_by_one(opt: Optimizer, rng: random.Random, steps: int = 9) -> None:
    """Tell the outputs of each trial in random portions and a random order, some of them much later."""
    assert opt.goals is not None
    waiting: list[tuple[int, dict[str, float]]] = []
    for _ in range(steps):
        x = opt.ask()
        said, number = measure(x, opt.goals), opt.trials[-1].number
        waiting += [(number, {name: value}) for name, value in rng.sample(sorted(said.items()), len(said))]
        while waiting and rng.random() < 0.8:
            opt.tell(*waiting.pop(rng.randrange(len(waiting))))
    for number, said in waiting:
        opt.tell(number, said)


@pytest.mark.parametrize("goals", [TWO, LIMITED, SINGLE], ids=["two", "limited", "single"])
@pytest.mark.parametrize("seed", range(3))
def test_outputs_in_any_order_give_what_a_replay_gives(goals: dict[str, Any], seed: int) -> None:
    opt = Optimizer(BOX, goals=goals, seed=1)
    one_by_one(opt, random.Random(seed))
    assert all(set(t.outputs) == set(goals) for t in opt.trials if t.status == "told")
    assert all(list(t.outputs) == list(goals) for t in opt.trials)  # in the order of the goals
    replays(opt)


@pytest.mark.parametrize("goals", [TWO, SINGLE], ids=["two", "single"])
def test_outputs_told_at_once_or_one_by_one_ask_the_same(goals: dict[str, Any]) -> None:
    at_once, in_parts = Optimizer(BOX, goals=goals, seed=1), Optimizer(BOX, goals=goals, seed=1)
    for _ in range(9):
        x, z = at_once.ask(), in_parts.ask()
        assert x.tobytes() == z.tobytes()
        said = measure(x, goals)
        at_once.tell(x, said)
        for name in sorted(said, reverse=True):
            in_parts.tell(z, {name: said[name]})  # by the point: the trial there lacks this output
    assert len(in_parts.trials) == 9
    assert [t.outputs for t in at_once.trials] == [t.outputs for t in in_parts.trials]
    assert at_once.ask().tobytes() == in_parts.ask().tobytes()


@pytest.mark.parametrize("name", ["yield", "cost", "purity"])
def test_a_late_output_of_an_old_trial_counts_from_its_place(name: str) -> None:
    opt = Optimizer(BOX, goals=LIMITED, seed=1)
    for i in range(9):
        x = opt.ask()
        opt.tell(x, {key: value for key, value in f(x).items() if i != 2 or key != name})
    assert opt.models[name].numbers == (0, 1, 3, 4, 5, 6, 7, 8)
    before = opt.ask()
    late = opt.tell(2, {name: f(opt.trials[2].x)[name]})
    assert (late.number, late.order, late.status) == (2, 2, "told")
    assert opt.models[name].numbers == tuple(range(9))
    whole = Optimizer(BOX, goals=LIMITED, seed=1)
    for trial in opt.trials[:9]:
        whole._log.add(trial.x, opt.space.encode(trial.x), trial.origin, policy_notes=trial.policy_notes)
        whole._log.settle(trial.number, whole.goals.outcome(f(trial.x)))
    z = np.random.default_rng(0).random((5, 2))
    for key, model in whole.models.items():
        np.testing.assert_array_equal(opt.models[key].model.posterior(z), model.model.posterior(z))
    opt.forget(before)
    same(opt, whole, fields=tuple(name for name in FIELDS if name != "ended"))


def test_a_trial_that_waits_for_its_objective_counts_as_pending_for_the_next_suggestion() -> None:
    opt = run(SINGLE, 8)
    first = opt.ask()
    told = opt.tell(first, {"purity": 0.9, "ph": 7.0})
    assert (told.status, told.y, told.order) == ("told", None, 8) and len(opt.pending) == 0
    assert opt._log.awaiting == [8] and opt.ledger.n == 8 and opt.evaluated == 9
    assert opt.model is not None
    anticipated = objective(opt.model, opt.policy, opt._log, None).posterior
    row = opt.space.encode(first)[None]
    assert anticipated(row)[1][0] < 0.1 * opt.model.posterior(row)[1][0]
    second = opt.ask()
    assert np.abs(second - first).max() > 1e-3
    replays(opt)


def test_an_objective_that_comes_late_is_compared_with_no_prediction() -> None:
    """The model has learned from later values meanwhile."""
    opt = run(SINGLE, 8)
    first = opt.ask()
    opt.tell(first, {"purity": 0.9})
    x = opt.ask()
    assert opt.tell(x, measure(x, SINGLE)).surprise is not None
    late = opt.tell(8, {"yield": 5.0})
    assert late.surprise is None and late.mu == opt.trials[8].mu is not None
    replays(opt)


def test_a_limit_that_came_first_counts_before_the_objective_came() -> None:
    opt = run(SINGLE, 8)
    assert opt.model is not None and opt.model.chance is not None
    z = np.array([[0.9, 1.9]])
    before = opt.model.chance(z)
    opt.tell([0.9, 1.9], {"purity": 0.99})
    assert opt.model.chance(z)[0] > before[0] + 0.1
    assert opt.best is not None and opt.best.number < 8
    replays(opt)


def test_reading_a_ledger_changes_no_suggestion_while_outputs_are_missing() -> None:
    opt, reader = (Optimizer(BOX, goals=SINGLE, seed=1) for _ in range(2))
    for i, x in enumerate(np.random.default_rng(0).random((18, 2))):
        said = (
            {"purity": f(x)["purity"]} if i in (2, 3, 9) else {"yield": f(x)["yield"]} if i == 5 else measure(x, SINGLE)
        )
        opt.tell(x, said)
        reader.tell(x, said)
    for t in range(1, 16):
        model = reader.ledger.model_after(t)
        assert model.chance is not None and np.isfinite(model.chance(opt.space.encode(x)[None])).all()
    assert str(reader.ledger) and reader.ledger.regret(12).interval() is not None
    assert all(model.predict(x[None]) for model in reader.models.values())
    assert opt.ask().tobytes() == reader.ask().tobytes()


def test_the_regret_knows_a_limit_that_came_before_its_objective() -> None:
    opt = run(SINGLE, 11)
    before = opt.ledger.regret().interval()
    opt.confirm(opt.tell([0.05, 0.05], {"purity": -3.0}))  # nothing else is that impure
    after = opt.ledger.regret().interval()
    assert after != before and after == fresh(opt).replay(opt.trials).ledger.regret().interval()


def test_before_every_objective_has_a_value_points_are_spread_over_the_space() -> None:
    opt = Optimizer(BOX, goals=TWO, seed=1, n_init=4)
    for _ in range(8):
        x = opt.ask()
        opt.tell(x, {"yield": f(x)["yield"]})
    assert {t.origin for t in opt.trials} == {"design"}
    (event,) = [one for one in opt.events if one.kind == "no value"]
    assert event.message.startswith("cost has no value yet")
    assert opt.front == () and list(opt.models) == ["yield"]
    opt.tell(3, {"cost": 1.0})
    opt.ask()
    assert opt.trials[-1].origin == "policy"
    replays(opt, n_init=4)


def test_a_table_whose_rows_are_all_pending_or_lack_an_objective_is_asked_again() -> None:
    table = np.linspace(0.0, 1.0, 5)[:, None]
    opt = Optimizer(table, goals=TWO, seed=0)
    assert len(opt.ask(7)) == 7
    for number in range(5):
        opt.tell(number, {"yield": float(number)})
    assert opt.ask() in table
    once = Optimizer(table, goals=TWO, seed=0, repeats=False)
    assert len(once.ask(7)) == 5
    with pytest.raises(SpaceExhausted, match="none is left to offer"):
        once.ask()


def test_an_output_that_is_told_already_is_refused_and_a_point_gets_a_new_trial() -> None:
    opt = Optimizer(BOX, goals=TWO, seed=1)
    trial = opt.tell([0.1, 0.2], {"yield": 1.0})
    for x in (trial, 0, np.int64(0)):
        with pytest.raises(ValueError, match="x is trial 0, which has its yield already; correct replaces a value"):
            opt.tell(x, {"yield": 2.0, "cost": 1.0})
    assert opt.trials == (trial,)
    again = opt.tell([0.1, 0.2], {"yield": 2.0, "cost": 1.0})  # another evaluation at the same point
    assert (again.number, again.outputs) == (1, {"yield": 2.0, "cost": 1.0})
    rounded = [0.1 + 1e-17, np.nextafter(0.2, 1.0)]
    assert opt.tell(rounded, {"cost": 3.0}).number == 0
    assert opt.tell([0.1, 0.2], {"cost": 3.0}).number == 2


def test_a_trial_with_a_limit_told_in_one_evaluation_of_a_point_is_feasible_there() -> None:
    """A second evaluation without the limit takes nothing back."""
    opt = run(LIMITED, 6)
    assert opt._log.outcomes is not None
    row = opt.space.encode(np.array([0.31, 0.41]))[None]
    opt.confirm(opt.tell([0.31, 0.41], {"yield": 1.0, "cost": 1.0}))
    assert not opt._log.outcomes.feasible_at(row)[0]
    opt.confirm(opt.tell([0.31, 0.41], {"yield": 1.1, "cost": 1.0, "purity": 0.9}))
    assert opt._log.outcomes.feasible_at(row)[0]
    opt.confirm(opt.tell([0.31, 0.41], {"yield": 1.1, "cost": 1.0, "purity": -0.9}))
    assert not opt._log.outcomes.feasible_at(row)[0]


@pytest.mark.parametrize("goals", [LIMITED, SINGLE], ids=["two", "single"])
def test_what_is_known_of_an_output_is_the_same_whether_it_came_late_or_not(goals: dict[str, Any]) -> None:
    late = run(goals, 5)
    late.tell([0.3, 0.7], {name: value for name, value in measure(np.array([0.3, 0.7]), goals).items() if name != "ph"})
    for x in np.random.default_rng(0).random((3, 2)):
        late.tell(x, measure(x, goals))
    before = [step.y for step in late.front_analysis.outputs["ph"].steps]
    late.tell(5, {"ph": 1.0})
    after = [step.y for step in late.front_analysis.outputs["ph"].steps]
    assert after == [*before[:5], 1.0, *before[5:]]


# What is said afterwards


def test_a_correction_replaces_some_outputs_and_keeps_the_others_and_their_error_bars() -> None:
    opt = run(LIMITED, 8)
    first = opt.trials[3].outputs
    opt.correct(3, {"cost": 9.0}, noise_var=0.5)
    trial = opt.correct(3, {"cost": 8.0, "purity": 0.1})
    assert trial.outputs == {**first, "cost": 8.0, "purity": 0.1}
    assert trial.output_noise_var == {"cost": 0.5} and trial.unmet == ("purity",)
    assert (trial.outputs_before, trial.order, trial.y) == (first, 3, None)
    assert opt.correct(3, {"cost": 8.0, "purity": 0.1}, repeats={"purity": 4}).output_repeats == {"purity": 4}
    replays(opt)


def test_the_first_value_of_every_output_is_kept() -> None:
    opt = run(SINGLE, 7)
    opt.tell([0.7, 0.7], {"purity": 0.5})
    opt.correct(7, {"purity": 0.6})
    opt.tell(7, {"yield": 1.0})
    trial = opt.correct(7, {"yield": 2.0})
    assert trial.outputs_before == {"yield": 1.0, "purity": 0.5} and trial.y_before == 1.0
    assert (trial.y, trial.outputs) == (2.0, {"yield": 2.0, "purity": 0.6})
    replays(opt)
    retracted = opt.retract(7)
    assert retracted.outputs_before == {"yield": 1.0, "purity": 0.5}
    assert (retracted.status, retracted.outputs, retracted.unmet, retracted.y) == ("retracted", {}, (), None)
    replays(opt)
    again = opt.correct(7, {"purity": 0.7})
    assert (again.status, again.outputs, again.y, again.y_before) == ("told", {"purity": 0.7}, None, 1.0)
    replays(opt)


def test_a_retracted_trial_takes_no_output_until_it_is_corrected() -> None:
    opt = run(TWO, 6)
    opt.tell([0.5, 0.5], {"yield": 1.0}, noise_var=0.3)
    opt.retract(6)
    with pytest.raises(ValueError, match="x is trial 6, which is not pending: it is retracted"):
        opt.tell(6, {"cost": 1.0})
    trial = opt.correct(6, {"yield": 2.0, "cost": 1.0})
    assert trial.output_noise_var == {"yield": 0.3} and trial.outputs_before == {"yield": 1.0}
    replays(opt)


@pytest.mark.parametrize("goals", [TWO, LIMITED, SINGLE], ids=["two", "limited", "single"])
def test_a_history_with_all_the_words_replays_bit_for_bit(goals: dict[str, Any]) -> None:
    opt = run(goals, 9)
    opt.correct(3, {"yield": 1.5}, noise_var={"yield": 0.1})
    opt.retract(6)
    opt.fail(opt.ask(), "no crystals")
    opt.reject(opt.ask())
    opt.reject([0.31, 0.4])
    opt.forget(opt.ask())
    opt.tell([0.2, 0.9], {"yield": 0.4})
    opt.tell(opt.ask(), {"yield": 0.7}, noise_var=0.2, repeats=3)
    opt.correct(opt._log.failed[0], {"yield": 0.1})
    opt.fail(opt.ask())
    opt.ask(2)
    copies = [pickle.loads(pickle.dumps(opt)), copy.deepcopy(opt)]
    again = fresh(opt).replay(opt.trials)
    for one in copies:
        same(copy.deepcopy(opt), one, 1)
    same(opt, again)


def test_trials_can_be_replayed_into_a_run_that_has_begun() -> None:
    opt = run(LIMITED, 4)
    opt.correct(0, {"yield": 2.0})
    opt.retract(1)
    opt.tell([0.9, 0.9], {"purity": 0.2})
    other = run(LIMITED, 2)
    other.replay(opt.trials)
    assert [t.outputs for t in other.trials[2:]] == [t.outputs for t in opt.trials]
    assert [t.outputs_before for t in other.trials[2:]] == [t.outputs_before for t in opt.trials]
    log = Log(goals=other.goals)
    take_over(log, other.trials, [opt.space.encode(t.x) for t in other.trials])
    assert [(t.order, t.outputs, t.unmet) for t in log.trials] == [(t.order, t.outputs, t.unmet) for t in other.trials]


# Trials of other runs


def test_known_outputs_are_told_together() -> None:
    opt = run(LIMITED, 5)
    pending = opt.ask()
    told = opt.tell_all(
        [
            (pending, {"yield": 1.0}),
            ([0.2, 0.2], {"yield": 1.0, "cost": 2.0}, 0.5),
            ([0.2, 0.2], {"purity": 0.5}, {"purity": 0.1}),  # a late output
            *opt.trials[:2],
        ],
        noise_var={"yield": 0.25},
    )
    assert [t.number for t in told] == [5, 6, 6, 7, 8]
    assert opt.trials[6].outputs == {"yield": 1.0, "cost": 2.0, "purity": 0.5}
    assert opt.trials[6].output_noise_var == {"yield": 0.75, "cost": 0.5, "purity": 0.1}
    assert opt.trials[7].outputs == opt.trials[0].outputs and opt.trials[7].output_noise_var == {"yield": 0.25}
    replays(opt)


def test_the_value_of_a_run_without_goals_is_that_of_a_single_objective() -> None:
    plain = Optimizer(BOX, seed=1)
    for i in range(6):
        x = plain.ask()
        plain.tell(x, f(x)["yield"], noise_var=0.1 * (i == 2), repeats=1 + (i == 3))
    plain.correct(4, 0.5)
    plain.retract(5)
    plain.fail(plain.ask(), "broken")
    named = Optimizer(BOX, seed=1, goals={"yield": "max", "ph": None})
    named.replay(plain.trials)
    assert [t.outputs for t in named.trials] == [{} if t.y is None else {"yield": t.y} for t in plain.trials]
    for name in ("y", "y_before", "noise_var", "repeats", "status", "why", "order"):
        assert [getattr(t, name) for t in named.trials] == [getattr(t, name) for t in plain.trials], name
    assert named.ask().tobytes() == plain.ask().tobytes()
    told = Optimizer(BOX, seed=1, goals={"yield": "max", "ph": None}).tell_all(plain, noise_var=0.5)
    assert [t.outputs for t in told] == [{"yield": t.y} for t in plain.trials if t.status == "told"]
    assert [t.noise_var for t in told] == [t.noise_var + 0.5 for t in plain.trials if t.status == "told"]
    back = Optimizer(BOX, seed=1).replay(named.trials[:6])
    assert [(t.y, t.outputs, t.outputs_before) for t in back.trials] == [(t.y, {}, None) for t in plain.trials[:6]]
    assert [t.y for t in Optimizer(BOX).tell_all(named)] == [t.y for t in plain.trials if t.status == "told"]


@pytest.mark.parametrize("how", ["tell_all", "replay"])
def test_trials_of_another_run_that_do_not_fit_are_refused(how: str) -> None:
    plain, two, limited = Optimizer(BOX), run(TWO, 2), Optimizer(BOX)
    plain.tell([0.1, 0.1], 1.0)
    limited.tell([0.1, 0.1], 1.0, constraints=[0.5])
    cases = [
        (plain, TWO, "trial 0 has one value y, but the run has goals; give .x, {'yield': ..., 'cost': ...}. instead"),
        (limited, {"y": "max"}, "trial 0 has constraints, but the run has goals"),
        (two, {"yield": "max", "mass": "min"}, "trial 0 has the output 'cost', which has no goal here; give it one"),
        (two, None, "trial 0 has the outputs yield, cost and no single y; for several outputs use goals="),
    ]
    for known, goals, words in cases:
        opt = Optimizer(BOX, goals=goals, seed=0)
        with pytest.raises(ValueError, match=words):
            getattr(opt, how)(known.trials)
        assert opt.trials == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"outputs": {"yield": np.nan}}, "yield is nan"),
        ({"outputs": {"bogus": 1.0}}, "the output 'bogus', which has no goal"),
        ({"outputs": "yield"}, "outputs is 'yield'; give numbers by output"),
        ({"outputs": 3}, "outputs is 3"),
        ({"outputs_before": {"yield": "1"}}, "yield is '1'"),
        ({"outputs_before": {"bogus": 1.0}}, "bogus"),
        ({"output_noise_var": {"yield": -1.0}}, "noise_var.'yield'. is -1.0"),
        ({"output_repeats": {"yield": 0}}, "repeats.'yield'. is 0"),
        ({"output_noise_var": 3.0}, "noise_var is 3.0"),
        ({"status": "failed"}, "outputs is .*, but the trial is failed; only a told trial has outputs"),
    ],
)
def test_a_bad_trial_is_refused_and_nothing_is_replayed(changes: dict[str, Any], words: str) -> None:
    trials = list(run(TWO, 3).trials)
    trials[1] = replace(trials[1], **changes)
    opt = Optimizer(BOX, goals=TWO, seed=1)
    with pytest.raises((ValueError, TypeError), match=words):
        opt.replay(trials)
    assert opt.trials == ()


# Noise


def test_error_bars_and_repeats_of_each_output_reach_its_model() -> None:
    kernel, noise_var = {"yield": kernels.RBF(0.4), "cost": kernels.RBF(0.7)}, {"yield": 0.01, "cost": 0.04}
    opt = Optimizer(BOX, goals=TWO, kernel=kernel, noise_var=noise_var, seed=0)
    x = np.random.default_rng(0).random((6, 2))
    own = {"yield": np.array([0.0, 0.5, 0.1, 0.0, 2.0, 0.3]), "cost": np.array([0.2, 0.0, 0.1, 0.0, 0.0, 0.7])}
    repeats = {"yield": np.array([1, 1, 4, 9, 1, 2]), "cost": np.array([2, 1, 1, 1, 5, 2])}
    for i, row in enumerate(x):
        bars = {name: float(bar[i]) for name, bar in own.items()}
        trial = opt.tell(
            row, measure(row, TWO), noise_var=bars, repeats={name: int(k[i]) for name, k in repeats.items()}
        )
        assert trial.output_noise_var == {name: bar for name, bar in bars.items() if bar}
    z = np.random.default_rng(1).random((4, 2))
    for name, k in kernel.items():
        noise = noise_var[name] / repeats[name] + own[name]
        weights = np.linalg.solve(k(x, x) + np.diag(noise), [f(row)[name] for row in x])
        predicted = [one.mean for one in opt.models[name].predict(opt.space.encode(z[0])[None])]
        np.testing.assert_allclose(predicted, (k(z, x) @ weights)[:1], rtol=1e-9)
        sign = -1.0 if name == "cost" else 1.0
        np.testing.assert_allclose(sign * opt.models[name].model.posterior.mu(z), k(z, x) @ weights, rtol=1e-9)
        var = k.diagonal(z) - np.einsum("ij,ij->i", k(z, x) @ np.linalg.inv(k(x, x) + np.diag(noise)), k(z, x))
        np.testing.assert_allclose(opt.models[name].model.posterior(z)[1], var, rtol=1e-9)


def test_error_bars_of_a_limit_reach_the_probability_that_it_holds() -> None:
    sharp, blurred = (Optimizer(BOX, goals=LIMITED, seed=0) for _ in range(2))
    for x in np.random.default_rng(0).random((9, 2)):
        sharp.tell(x, f(x))
        blurred.tell(x, f(x), noise_var={"purity": 4.0})
    rows = np.array([sharp.space.encode(t.x) for t in sharp.trials])
    chances = [opt.front_analysis.chance for opt in (sharp, blurred)]
    assert chances[0] is not None and chances[1] is not None
    kept = np.array([f(t.x)["purity"] >= 0.3 for t in sharp.trials])
    assert np.all((chances[0](rows) > 0.9) == kept) and not np.all((chances[1](rows) > 0.9) == kept)


def test_given_priors_are_those_of_every_objective_or_of_the_outputs_named() -> None:
    opt = run(LIMITED, 6, **PRIOR)
    for name in ("yield", "cost"):
        assert opt.models[name].model.prior.kernel == PRIOR["kernel"]
        assert opt.models[name].model.prior.noise_var == PRIOR["noise_var"]
    assert opt.models["purity"].model.prior.kernel != PRIOR["kernel"]
    own = run(LIMITED, 6, kernel={"purity": kernels.RBF(0.9)}, noise_var={"purity": 0.5, "yield": None})
    assert own.models["purity"].model.prior.kernel == kernels.RBF(0.9)
    assert own.models["purity"].model.prior.noise_var == 0.5
    assert own.models["yield"].model.prior.noise_var != 0.5
    single = run(SINGLE, 6, kernel={"yield": PRIOR["kernel"]}, noise_var={"yield": PRIOR["noise_var"]})
    plain = Optimizer(BOX, seed=1, **PRIOR)
    assert single.n_init == plain.n_init == 0 and single.model is not None
    assert single.model.prior.kernel == PRIOR["kernel"]


# Spaces and situations

OPTIONS: dict[str, dict[str, Any]] = {
    "earn": {"aim": "earn"},
    "student": {"noise": "student"},
    "loo": {"fit": "loo"},
    "given": PRIOR,
    "no design": {"n_init": 0},
    "budget": {"budget": 12},
    "x0": {"x0": [[0.5, 0.5], [0.2, 0.4]]},
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("noisy", [False, True], ids=["exact", "noisy"])
def test_every_option_runs_and_replays(name: str, noisy: bool) -> None:
    rng, opt = np.random.default_rng(0), Optimizer(BOX, goals=LIMITED, seed=1, **OPTIONS[name])
    for _ in range(9):
        x = opt.ask()
        opt.tell(x, {key: value + 0.3 * noisy * rng.standard_normal() for key, value in f(x).items()})
    opt.ask(2)
    replays(opt, **OPTIONS[name])


SPACES: dict[str, tuple[Any, Any]] = {
    "named": ({"a": (0.0, 1.0), "b": gpmi.Real(1e-3, 1.0, log=True), "n": gpmi.Int(1, 9), "c": ["x", "yy"]}, None),
    "conditions": ({"kind": ["svm", "tree"], "depth": gpmi.Int(1, 9, when={"kind": "tree"}), "c": (0.0, 1.0)}, None),
    "constraints": ({"a": (0.0, 1.0), "b": (0.0, 1.0)}, ["a + b <= 1"]),
    "rows": (np.random.default_rng(0).random((40, 2)), None),
    "table": (pd.DataFrame({"a": np.linspace(0.0, 1.0, 30), "c": ["x", "yy", "zzz"] * 10}), None),
}


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("noisy", [False, True], ids=["exact", "noisy"])
def test_goals_in_every_space(name: str, noisy: bool) -> None:
    (space, constraints), rng = SPACES[name], np.random.default_rng(0)
    opt = Optimizer(space, goals=LIMITED, constraints=constraints, seed=1)
    for i in range(12):
        x = opt.ask()
        opt.fail(x) if i == 7 else opt.tell(x, {k: v + 0.1 * noisy * rng.standard_normal() for k, v in f(x).items()})
    again = Optimizer(space, goals=LIMITED, constraints=constraints, seed=1).replay(opt.trials)
    batch = opt.ask(3)
    assert [opt.space.encode(x).tobytes() for x in batch] == [opt.space.encode(x).tobytes() for x in again.ask(3)]
    for x in batch:
        assert opt.space.contains(opt.space.encode(x))
    key = 0 if isinstance(x, np.ndarray) else next(iter(x))
    fixed = {key: (dict(x) if isinstance(x, Mapping) else x)[key]}
    assert opt.ask(fixed=fixed)[key] == fixed[key] and opt.trials[-1].fixed is not None
    for trial in opt.front:
        assert trial.feasible and all(name in trial.outputs for name in ("yield", "cost"))


@pytest.mark.parametrize("frame", [False, True], ids=["array", "DataFrame"])
def test_a_table_without_repeats_is_asked_row_by_row_until_it_ends(frame: bool) -> None:
    rows = np.random.default_rng(0).random((12, 2))
    opt = Optimizer(pd.DataFrame(rows, columns=["a", "b"]) if frame else rows, goals=TWO, repeats=False, seed=0)
    asked = set()
    for _ in range(6):
        for x in opt.ask(2):
            asked.add(opt.space.encode(x).tobytes())
            opt.tell(x, measure(x, TWO))
    assert len(asked) == 12
    with pytest.raises(SpaceExhausted):
        opt.ask()
    opt.retract(4)
    assert opt.space.encode(opt.ask()).tobytes() == opt.space.encode(opt.trials[4].x).tobytes()


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("options", [{}, {"aim": "earn"}, {"fixed": {0: 0.25}}], ids=["find", "earn", "context"])
def test_no_two_points_of_a_batch_are_equal(noise: float, options: dict[str, Any]) -> None:
    fixed, rng = options.get("fixed"), np.random.default_rng(0)
    opt = Optimizer(BOX, goals=TWO, seed=1, **{key: value for key, value in options.items() if key != "fixed"})
    for _ in range(3):
        points = opt.ask(4, fixed=fixed)
        assert len({x.tobytes() for x in points}) == 4
        assert fixed is None or all(x[0] == 0.25 for x in points)
        for x in points:
            opt.tell(x, {name: value + noise * rng.standard_normal() for name, value in measure(x, TWO).items()})


@pytest.mark.parametrize("count", [3, 4, 5, 7])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_many_objectives(count: int, noise: float) -> None:
    goals: dict[str, Any] = {f"f{i}": "max" if i % 2 else Min(at_most=2.0) for i in range(count)}
    rng, opt = np.random.default_rng(0), Optimizer(BOX, goals=goals, seed=0)
    for _ in range(8):
        x = opt.ask()
        values = (np.sin(i + 3.0 * x[0]) + x[1] * np.cos(i) + noise * rng.standard_normal() for i in range(count))
        opt.tell(x, dict(zip(goals, map(float, values), strict=True)))
    assert len({x.tobytes() for x in opt.ask(3)}) == 3 and len(opt.front) > 0
    same_next = Optimizer(BOX, goals=goals, seed=0).replay(opt.trials)
    assert same_next.ask().tobytes() == opt.ask().tobytes()


@pytest.mark.parametrize("scales", [(1.0, 1.0), (1e90, 1e-90), (1e-90, 1e-90), (1e90, 1e90), (1e-30, 1e12)], ids=str)
@pytest.mark.parametrize("stated", [False, True], ids=["no reference", "reference"])
def test_values_of_any_size(scales: tuple[float, float], stated: bool) -> None:
    big, small = scales
    goals = {"yield": Max(at_least=-2.0 * big), "cost": Min(at_most=6.0 * small)} if stated else TWO
    opt = Optimizer(BOX, goals=goals, seed=1)
    for _ in range(9):
        x = opt.ask()
        said = f(x)
        opt.tell(x, {"yield": big * said["yield"], "cost": small * said["cost"]})
    assert opt.front and len({x.tobytes() for x in opt.ask(2)}) == 2
    assert opt.choose(cost="min").probability > 0.5


@pytest.mark.parametrize("count", [3, 4, 5])
@pytest.mark.parametrize("scale", [1e90, 1e-90])
def test_many_objectives_of_any_size(count: int, scale: float) -> None:
    goals = {f"f{i}": "max" for i in range(count)}
    opt = Optimizer(BOX, goals=goals, seed=0)
    for _ in range(8):
        x = opt.ask()
        opt.tell(x, {f"f{i}": scale * float(np.sin(i + 3.0 * x[0]) + x[1] * np.cos(i)) for i in range(count)})
    assert len({x.tobytes() for x in opt.ask(2)}) == 2 and len(opt.front) > 0


@pytest.mark.parametrize("goals", [TWO, LIMITED, {"size": Match(3.0, within=1.0)}], ids=["two", "limited", "match"])
@pytest.mark.parametrize("values", [1, 2, 7])
def test_equal_values_and_few_values(goals: dict[str, Any], values: int) -> None:
    opt = Optimizer(BOX, goals=goals, seed=0, n_init=1)
    for _ in range(values):
        opt.tell(opt.ask(), dict.fromkeys(goals, 1.0))
    assert len({x.tobytes() for x in opt.ask(3)}) == 3
    assert len(opt.front) == (0 if "size" in goals else values)  # equals do not beat each other; 1 is not within 3 +- 1


def test_where_nothing_is_feasible_the_run_goes_on() -> None:
    opt = run({**LIMITED, "purity": AtLeast(50.0)}, 10)
    assert opt.front == () and opt.best is None and not any(t.feasible for t in opt.trials)
    chosen = opt.choose(cost="min")
    assert (chosen.probability < 0.5 and chosen.trial is None) or chosen.trial is not None
    assert len({x.tobytes() for x in opt.ask(3)}) == 3
    single = run({**SINGLE, "purity": AtLeast(50.0)}, 10)
    assert single.best is None and single.front == ()
    single.recommend()
    assert any(event.kind == "nothing feasible" for event in single.events)


def test_all_trials_may_fail_or_be_rejected() -> None:
    opt = Optimizer(BOX, goals=LIMITED, seed=0, n_init=2)
    for _ in range(4):
        opt.fail(opt.ask())
        opt.reject(opt.ask())
    assert opt.front == () and opt.models == {}
    x = opt.ask()
    opt.tell(x, f(x))
    assert opt.ask() is not None and opt.trials[-1].origin == "policy"
    replays(opt, n_init=2)


# Copies and threads


def states(opt: Optimizer) -> Iterator[str]:
    yield "new"
    for i in range(7):
        x = opt.ask()
        opt.tell(x, f(x) if i % 2 else {"yield": f(x)["yield"]})
        if i in (0, 6):
            yield f"{i + 1} told"
    opt.tell(2, {"cost": 1.0, "purity": 0.5})
    yield "a late output"
    opt.fail(opt.ask())
    opt.ask(2)
    yield "failed and pending"
    assert opt.models and isinstance(opt.front, tuple) and opt.choose(cost="min") and str(opt.ledger)
    yield "read"
    opt.correct(1, {"yield": 0.0})
    opt.retract(3)
    yield "corrected"


@pytest.mark.parametrize("goals", [LIMITED, {**SINGLE, "cost": None}], ids=["two", "single"])
def test_an_optimizer_with_goals_is_copied_in_every_state(goals: dict[str, Any]) -> None:
    opt = Optimizer(BOX, goals=goals, seed=0)
    for state in states(opt):
        copies = [
            pickle.loads(pickle.dumps(opt, 2)),
            pickle.loads(pickle.dumps(opt)),
            copy.deepcopy(opt),
            copy.copy(opt),
        ]
        reference = copy.deepcopy(opt).ask().tobytes()
        for one in copies[:3]:
            assert repr(one) == repr(opt) and one.goals == opt.goals, state
            assert [repr(trial) for trial in one.trials] == [repr(trial) for trial in opt.trials], state
            assert one.ask().tobytes() == reference, state
        for trial in opt.trials:
            again = pickle.loads(pickle.dumps(trial))
            assert (again.outputs, again.unmet) == (trial.outputs, trial.unmet)
            assert isinstance(again.outputs, Outputs)


def test_the_outputs_of_a_trial_cannot_be_changed() -> None:
    trial = run(TWO, 1).trials[0]
    for change in (
        lambda: trial.outputs.__setitem__("cost", 3.0),  # type: ignore[attr-defined]
        lambda: trial.outputs.update(cost=3.0),  # type: ignore[attr-defined]
        lambda: trial.outputs.pop("cost"),  # type: ignore[attr-defined]
    ):
        with pytest.raises(TypeError, match=r"cannot be changed; correct the trial, or change a copy, dict\(outputs\)"):
            change()
    assert dict(trial.outputs) == measure(trial.x, TWO)


def test_threads_share_a_run_with_goals() -> None:
    opt = Optimizer(BOX, goals=LIMITED, seed=0, **PRIOR)
    errors: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for _ in range(6):
                x = opt.ask()
                trial = opt.tell(x, {name: f(x)[name]})
                opt.tell(trial, {key: value for key, value in f(x).items() if key != name})
                assert opt.front is not None and opt.models
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in LIMITED]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(opt.trials) == 24
    assert all(trial.outputs == f(trial.x) for trial in opt.trials)
    replays(opt, **PRIOR)


# Results


@pytest.mark.parametrize("options", [{}, {"timeout": 60.0}, {"workers": 2}], ids=str)
def test_a_run_takes_outputs_error_bars_and_missing_outputs(options: dict[str, Any]) -> None:
    def g(x: Any) -> Any:
        said = measure(x, TWO)
        if x[0] < 0.3:
            return {"yield": said["yield"]}
        return Measured(said, {"cost": 0.25}) if x[0] < 0.6 else said

    r = gpmi.optimize(g, BOX, goals=TWO, budget=8, seed=0, **options)
    assert len(r.trials) == 8 and r.goals == NamedGoals.of(TWO)
    for trial in r.trials:
        said = measure(trial.x, TWO)
        assert trial.outputs == ({"yield": said["yield"]} if trial.x[0] < 0.3 else said)
        assert trial.output_noise_var == ({"cost": 0.25} if 0.3 <= trial.x[0] < 0.6 else {})


@pytest.mark.parametrize("options", [{}, {"timeout": 60.0}, {"workers": 2}], ids=str)
def test_an_output_that_is_not_finite_is_a_failure_to_learn_from(options: dict[str, Any]) -> None:
    def g(x: Any) -> Any:
        return {**measure(x, TWO), **({"cost": float("nan")} if x[0] < 0.5 else {})}

    r = gpmi.optimize(g, BOX, goals=TWO, budget=6, seed=0, on_failure="learn", **options)
    for trial in r.trials:
        assert (trial.status, trial.why) == (
            ("failed", "f returned nan for cost") if trial.x[0] < 0.5 else ("told", None)
        )
        assert trial.outputs == ({} if trial.x[0] < 0.5 else measure(trial.x, TWO))
    assert {trial.status for trial in r.trials} == {"told", "failed"}


def test_numbers_of_any_kind_are_outputs_bit_for_bit() -> None:
    kinds = [1, np.float32(0.1), np.int64(3), np.array(0.25), 1e-300, 0.1 + 0.2]
    for value, timeout in itertools.product(kinds, (None, 60.0)):
        r = gpmi.optimize(lambda x, v=value: {"y": v}, BOX, goals={"y": "max"}, budget=1, seed=0, timeout=timeout)
        assert type(r.trials[0].y) is float and r.trials[0].y == float(value)


# Bad input: the name, the value and the remedy


class NotAPoint:
    pass


@pytest.mark.parametrize(
    ("goals", "words"),
    [
        (["max", "min"], r"goals is \['max', 'min'\]; give a dict of outputs, such as"),
        ("max", "goals is 'max'; give a dict"),
        ({}, r"goals is \{\}, without an output; give a dict"),
        ({"purity": AtLeast(1.0), "ph": None}, "goals is .*purity.*, without an objective; give at least one"),
        (
            {"yield": ["max", AtLeast(1.0)]},
            r"goals has 'yield': \['max', .*\], but an output has one goal: give gpmi.Max",
        ),
        ({"yield": AtLeast}, "goals has 'yield': <class .*AtLeast'>, a class; give an instance, gpmi.AtLeast"),
        ({"yield": Match}, "give an instance, gpmi.Match"),
        ({"yield": "maximise"}, "goals has 'yield': 'maximise'; did you mean 'max'?"),
        ({"yield": "large"}, "goals has 'yield': 'large'; give \"max\", \"min\", gpmi.Max"),
        ({"yield": 0.95}, "goals has 'yield': 0.95; give"),
        ({3: "max"}, "goals has the output 3; give its name"),
        ({" ": "max"}, "goals has the output ' '; give its name"),
    ],
)
def test_bad_goals_are_refused(goals: Any, words: str) -> None:
    for call in (Optimizer, lambda space, goals: gpmi.optimize(f, space, goals=goals, budget=3)):
        with pytest.raises((TypeError, ValueError), match=words):
            call(BOX, goals=goals)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Match(42), r"within is None; give the distance from the target .* gpmi.Match\(42, within=1\)"),
        (lambda: Match(42, within=0.0), "within is 0.0; give one positive"),
        (lambda: Match(42, within=-1), "within is -1"),
        (lambda: Match("42", within=1), "target is '42'; give one finite number"),  # type: ignore[arg-type]
        (lambda: AtLeast(float("nan")), "value is nan; give one finite number"),
        (lambda: AtMost(None), "value is None; give one finite number"),  # type: ignore[arg-type]
        (lambda: Max(at_least="70"), "at_least is '70'; give one finite number"),  # type: ignore[arg-type]
        (lambda: Min(at_most=1e200), "at_most is 1e.200, too large to square; give values below"),
    ],
)
def test_a_bad_goal_is_refused(make: Callable[[], Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        make()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"goal": "min"}, "goal is 'min', but goals names the outputs; leave out goal"),
        (
            {"policy": LogEI()},
            r"policy is LogEI\(.*\), for one objective, but the goals have yield, cost; give gpmi.EHVI",
        ),
        (
            {"goals": {"yield": "max"}, "policy": EHVI()},
            r"policy is EHVI\(\), but yield is the only objective; leave out",
        ),
        ({"goals": None, "policy": EHVI()}, r"policy is EHVI\(\), but y is the only objective; .*goals="),
        ({"fit": "mcmc"}, "fit is 'mcmc', but there are several objectives; give 'map' or 'loo'"),
        ({"mean": f}, "mean is <function f.*, but there are several objectives; leave it out"),
        (
            {"space": {"yield": (0.0, 1.0)}},
            "goals has 'yield', which is also a parameter; give one of them another name",
        ),
        ({"kernel": {"mass": None}}, "kernel has 'mass', which is not an output; give one of 'yield', 'cost'"),
        ({"kernel": {"cost": 3.0}}, r"kernel\['cost'\] is 3.0; give a kernel such as"),
        ({"noise_var": {"cost": -1.0}}, r"noise_var\['cost'\] is -1.0; it is a variance"),
        ({"noise_var": {"cost": "1"}}, r"noise_var\['cost'\] is '1'"),
        ({"noise_var": -1.0}, "noise_var is -1.0"),
        ({"kernel": 3}, "kernel is 3; give a kernel"),
        ({"goals": None, "kernel": {"y": kernels.RBF(1.0)}}, "kernel is .*; give a kernel such as"),
        ({"goals": None, "noise_var": {"y": 1.0}}, "noise_var is {'y': 1.0}; it is a variance"),
    ],
)
def test_arguments_that_do_not_fit_the_goals_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        Optimizer(**{"space": BOX, "goals": TWO, **options})


@pytest.mark.parametrize(
    ("y", "details", "words"),
    [
        ({"yeld": 1.0}, {}, "'yeld' is not an output of this run; did you mean 'yield'?"),
        (
            {"mass": 1.0},
            {},
            "'mass' is not an output of this run; give one of 'yield', 'cost'; an output that is only w",
        ),
        ({3: 1.0}, {}, "3 is not an output of this run; give one of 'yield', 'cost'$"),
        ({"yield": "1"}, {}, "yield is '1'; give one finite number, leave out an output that was not measured"),
        ({"yield": float("nan")}, {}, "yield is nan; give one finite number"),
        ({"yield": None}, {}, "yield is None; give one finite number, leave out"),
        ({"yield": True}, {}, "yield is True"),
        ({"yield": [1.0]}, {}, r"yield is \[1.0\]"),
        ({"yield": 1e101}, {}, "yield is 1e.101, too large to square"),
        ({}, {}, r"y is \{\}, without an output; give at least one of 'yield', 'cost'"),
        (1.0, {}, r"y is 1.0, but the run has goals; give a dict of outputs, \{'yield': ..., 'cost': ...\}"),
        ([1.0, 2.0], {}, r"y is \[1.0, 2.0\], but the run has goals; give a dict"),
        (None, {}, "y is None, but the run has goals"),
        (
            {"yield": 1.0},
            {"noise_var": {"cost": 1.0}},
            "noise_var has 'cost', which y has not; give it for 'yield' alone",
        ),
        ({"yield": 1.0}, {"noise_var": {"mass": 1.0}}, "noise_var has 'mass', which y has not"),
        ({"yield": 1.0}, {"noise_var": -1.0}, r"noise_var\['yield'\] is -1.0; it is a variance"),
        ({"yield": 1.0}, {"noise_var": {"yield": "1"}}, r"noise_var\['yield'\] is '1'"),
        ({"yield": 1.0}, {"repeats": 0}, r"repeats\['yield'\] is 0; give a whole number of at least 1"),
        ({"yield": 1.0}, {"repeats": {"cost": 2}}, "repeats has 'cost', which y has not"),
        ({"yield": 1.0}, {"constraints": [0.5]}, "constraints is .*, but the run has goals; give the output a limit"),
        ({"yield": 1.0}, {"constraints": 0.5}, "constraints is 0.5, but the run has goals"),
    ],
)
def test_bad_outputs_are_refused_and_nothing_changes(y: Any, details: dict[str, Any], words: str) -> None:
    opt = run(TWO, 3)
    opt.tell([0.3, 0.3], {"cost": 1.0})
    before = opt.trials
    x = opt.ask()
    for call in (
        lambda: opt.tell(x, y, **details),
        lambda: opt.tell([0.11, 0.12], y, **details),
        lambda: opt.correct(0, y, **details),
        lambda: (
            opt.tell_all([([0.1, 0.1], {"yield": 1.0}), ([0.2, 0.2], y)]) if not details else opt.tell(3, y, **details)
        ),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            call()
    opt.forget(x)
    assert all(a is b for a, b in zip(before, opt.trials, strict=True))


@pytest.mark.parametrize("options", [{}, {"on_failure": "learn"}, {"timeout": 60.0}, {"workers": 2}], ids=str)
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (1.0, r"f returned 1.0 at x = .*; it must return a dict of outputs, \{'yield': ..., 'cost': ...\}\ngpmi"),
        ([1.0, 2.0], r"f returned \[1.0, 2.0\] at x = .*; it must return a dict of outputs"),
        (None, "f returned None at x = .*; it must return a dict of outputs"),
        ({}, r"f returned \{\} at x = .*without an output; give at least one of"),
        (
            {"yeld": 1.0},
            r"f returned \{'yeld': 1.0\} at x = .*; 'yeld' is not an output of this run; did you mean 'yield'",
        ),
        ({"yield": "1"}, r"f returned \{'yield': '1'\} at x = .*; yield is '1'; give one finite number"),
        ({"yield": np.ones(2)}, r"f returned .* at x = .*; yield is array\(\[1., 1.\]\); give one finite number"),
        (Measured({"yield": 1.0}, {"cost": 1.0}), "f returned Measured.* noise_var has 'cost', which y has not"),
        (
            Measured({"yield": 1.0}, constraints=(1.0,)),
            "f returned Measured.* constraints is .1.0,., but the run has goals",
        ),
    ],
    ids=str,
)
def test_a_wrong_answer_of_f_is_refused(answer: Any, words: str, options: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError), match=words) as caught:
        gpmi.optimize(lambda x: answer, BOX, goals=TWO, budget=3, seed=0, **options)
    assert isinstance(caught.value.result, gpmi.Result)  # type: ignore[attr-defined]


@pytest.mark.parametrize("options", [{}, {"timeout": 60.0}, {"workers": 2}], ids=str)
@pytest.mark.parametrize("answer", [float("nan"), {"yield": 1.0, "cost": float("inf")}], ids=str)
def test_without_learning_what_is_not_finite_ends_the_run_with_the_remedy(answer: Any, options: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        gpmi.optimize(lambda x: answer, BOX, goals=TWO, budget=3, seed=0, **options)
    assert str(caught.value).endswith('pass on_failure="learn" to record failures and continue')


def test_outputs_in_a_run_without_goals_are_refused_with_the_way_to_goals() -> None:
    words = r"for several outputs use goals=\{.*\} of gpmi.optimize, gpmi.Optimizer and gpmi.study"
    for y in ({"yield": 1.0}, {"yield": 1.0, "cost": 2.0}):
        with pytest.raises(TypeError, match=f"y is .*{words}"):
            Optimizer(BOX).tell([0.1, 0.1], y)
        with pytest.raises(TypeError, match=f"f returned .*{words}"):
            gpmi.maximize(lambda x, y=y: y, BOX, budget=2)
    for what in ("front", "models", "front_analysis"):
        with pytest.raises(ValueError, match=r"the run has no goals, so .*give goals="):
            getattr(Optimizer(BOX), what)
    with pytest.raises(TypeError, match="goals is None; give a dict of outputs"):
        gpmi.optimize(f, BOX, goals=None, budget=2)  # type: ignore[arg-type]


def test_what_several_objectives_have_not_is_said() -> None:
    opt = run(TWO, 5)
    assert (opt.best, opt.model, opt.posterior) == (None, None, None)
    with pytest.raises(ValueError, match="objectives yield, cost there is no single point to recommend; read front"):
        opt.recommend()


def test_a_trial_prints_its_outputs() -> None:
    opt = Optimizer(BOX, goals=LIMITED, seed=0)
    opt.tell([0.5, 0.5], {"yield": 71.25})
    assert repr(opt.trials[0]) == "Trial(0, x=[0.5, 0.5], yield=71.25, told, user, purity not measured)"
    opt.tell(0, {"purity": 0.1, "cost": 3.0})
    opt.correct(0, {"cost": 4.0})
    assert "yield=71.25, cost=4, purity=0.1, told, user, infeasible, corrected, first value" in repr(opt.trials[0])
    assert "was" in repr(opt.retract(0))


def test_the_goals_of_a_run_are_a_dict_in_their_order() -> None:
    goals = NamedGoals.of({"a": "max", "b": Min(at_most=3), "c": Match(1, within=2), "d": AtLeast(0), "e": None})
    assert list(goals) == list("abcde") and goals["b"] == Min(3.0) and len(goals) == 5
    assert list(goals.objectives) == ["a", "b", "c"] and list(goals.limits) == ["d"]
    assert NamedGoals.from_json(goals.to_json()) == goals == pickle.loads(pickle.dumps(goals)) == copy.deepcopy(goals)
    assert str(goals) == "a (max), b (min, at most 3), c (match 1 within 2), d (at least 0), e (watched)"
    assert (
        goals.single,
        NamedGoals.of({"a": "min", "b": AtMost(1)}).single,
        NamedGoals.of({"c": goals["c"]}).single,
    ) == (
        None,
        "a",
        None,
    )
    with pytest.raises(ValueError, match="goals has the output 'a' twice"):
        NamedGoals.from_json([*goals.to_json(), {"output": "a"}])
    assert goals.accepts({"a": 1.0, "b": 3.0, "c": 3.0}) and not goals.accepts({"a": 1.0, "b": 3.1, "c": 3.0})
    assert not goals.accepts({"a": 1.0}) and goals.unmet({"d": 0.0}) == () and goals.unmet({}) == ("d",)


# Contexts


def test_points_of_another_context_are_not_offered_in_this_one() -> None:
    """Neither told nor pending ones, whatever is good about them."""
    space = {"kind": ["svm", "tree"], "depth": gpmi.Int(1, 9, when={"kind": "tree"}), "c": (0.0, 1.0)}
    opt = Optimizer(space, goals=TWO, constraints=["depth <= 5"], seed=1)
    for _ in range(6):
        x = opt.ask(fixed={"kind": "svm"})
        opt.tell(x, {"yield": 100.0 + x["c"], "cost": 1.0 - x["c"]})
    assert all(x["kind"] == "svm" for x in opt.ask(2, fixed={"kind": "svm"}))
    for x in opt.ask(4, fixed={"kind": "tree"}):
        assert x["kind"] == "tree" and x["depth"] <= 5
        opt.tell(x, {"yield": x["c"], "cost": float(x["depth"])})
    assert all(x["kind"] == "tree" and x["depth"] <= 5 for x in opt.ask(3, fixed={"kind": "tree"}))


def test_a_context_that_no_told_point_can_be_moved_to_is_asked_all_the_same() -> None:
    space = {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)}
    for goals in (
        TWO,
        {"yield": Max(at_least=0.0), "cost": Min(at_most=2.0)},
        {**TWO, "yield": Match(1.0, within=1.0)},
    ):
        opt = Optimizer(space, goals=goals, constraints=["a + b + c == 1"], seed=1, n_init=2)
        for a in (0.7, 0.8, 0.9):
            opt.tell({"a": a, "b": 0.0, "c": 1.0 - a}, {"yield": a, "cost": a**2})
        for _ in range(2):
            x = opt.ask(fixed={"a": 0.05})  # with b = 0 and c < 0.4 there is none
            assert x["a"] == 0.05 and x["a"] + x["b"] + x["c"] == pytest.approx(1.0)


# Points that wait for a limit, and runs in which one point alone works


def _apart(points: list[Any]) -> float:
    """Return the smallest distance between two of the points."""
    rows = np.array(points)
    return min(float(np.linalg.norm(a - b)) for i, a in enumerate(rows) for b in rows[:i])


@pytest.mark.parametrize("seed", range(3))
def test_a_point_that_waits_for_a_limit_is_not_asked_again(seed: int) -> None:
    goals = {"u": gpmi.Max(at_least=0.0), "v": gpmi.Max(at_least=0.0), "purity": gpmi.AtLeast(0.2)}

    def outputs(x: Any) -> dict[str, float]:
        return {"u": float(x[0]), "v": float(1.0 - x[0] ** 2 - 0.3 * x[1]), "purity": float(1.0 - 0.5 * x[1])}

    opt = gpmi.Optimizer([(0.0, 1.0), (0.0, 1.0)], goals=goals, seed=seed)
    for _ in range(12):
        x = opt.ask()
        opt.tell(x, outputs(x))
    asked = []
    for _ in range(5):
        asked.append(opt.ask())
        opt.tell(asked[-1], {name: value for name, value in outputs(asked[-1]).items() if name != "purity"})
    assert _apart(asked) > 0.02


@pytest.mark.parametrize("seed", range(4))
def test_one_point_that_works_does_not_hide_the_rest_of_the_front(seed: int) -> None:
    goals = {"u": "max", "c": "min", "size": gpmi.AtMost(0.6)}

    def f(p: Any) -> dict[str, float]:
        return {"u": p["a"] + p["b"] ** 2, "c": p["b"], "size": 10.0 * p["a"]}

    r = gpmi.optimize(f, {"a": (0.0, 1.0), "b": (0.0, 1.0)}, goals=goals, budget=20, seed=seed)
    costs = [trial.outputs["c"] for trial in r.front]
    assert len(costs) >= 4 and max(costs) - min(costs) > 0.5
