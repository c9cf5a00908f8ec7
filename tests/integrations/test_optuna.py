"""Trials to and from Optuna: both ways, through a storage."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import gpmi

optuna = pytest.importorskip("optuna")
if int(optuna.__version__.split(".")[0]) < 5:
    pytest.skip("Optuna 5 is needed", allow_module_level=True)

from sample_runs import SPACES, played, same  # noqa: E402

from gpmi.integrations.optuna import from_optuna, from_storage, goals_of, to_optuna, to_storage  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
    pytest.mark.usefixtures("storages_are_closed"),
]
optuna.logging.disable_default_handler()


def stored(folder: Path, direction: str = "maximize") -> Any:
    return optuna.create_study(storage=f"sqlite:///{folder / 'optuna.db'}", study_name="s", direction=direction)


def opened(folder: Path) -> Any:
    return optuna.load_study(storage=f"sqlite:///{folder / 'optuna.db'}", study_name="s")


@pytest.mark.parametrize("kind", SPACES)
def test_a_run_comes_back_from_a_storage_to_the_last_bit(kind: str, tmp_path: Path) -> None:
    opt = played(SPACES[kind])
    to_optuna(opt, stored(tmp_path))
    back = from_optuna(opened(tmp_path), SPACES[kind])
    assert back.left_out == () and same(back.trials, opt.trials)
    assert repr(gpmi.Optimizer(SPACES[kind], seed=1).replay(back.trials).ask()) == repr(opt.ask())


def test_optuna_knows_values_constraints_failures_and_what_is_pending(tmp_path: Path) -> None:
    opt = played(SPACES["box"])
    study = stored(tmp_path)
    to_optuna(opt, study)
    for trial, frozen in zip(opt.trials, study.trials, strict=True):
        expected = {"told": "COMPLETE", "pending": "WAITING"}.get(trial.status, "FAIL")
        assert frozen.state.name == expected
        if trial.status == "told":
            assert frozen.value == trial.y and tuple(frozen.constraints.values()) == trial.constraints
            assert frozen.params == {"x0": trial.x[0], "x1": trial.x[1]}
    pending = opt.pending[0]
    study.optimize(lambda t: t.suggest_float("x0", 0.0, 1.0) + t.suggest_float("x1", -1.0, 1.0), n_trials=1)
    told = next(t for t in from_optuna(study, SPACES["box"]).trials if t.x.tolist() == pending.x.tolist())
    assert told.status == "told" and told.y == pending.x.sum()


def test_a_study_of_optuna_can_be_taken_up(tmp_path: Path) -> None:
    def f(trial: Any) -> float:
        x = trial.suggest_float("x", 1e-3, 1.0, log=True)
        n = trial.suggest_int("n", 1, 9, step=2)
        q = trial.suggest_float("q", 0.0, 1.0, step=0.25)
        kind = trial.suggest_categorical("kind", ["a", "b", None])
        if trial.number == 2:
            raise OSError("no luck")
        if trial.number == 3:
            raise optuna.TrialPruned
        return math.inf if trial.number == 4 else x + n + q + (kind == "a")

    study = stored(tmp_path, "minimize")
    study.optimize(f, n_trials=9, catch=OSError)
    study.ask()
    back = from_optuna(opened(tmp_path))
    assert back.left_out == ("trial 3: it is PRUNED", "trial 9: it is RUNNING")
    assert [t.status for t in back.trials] == ["told", "told", "failed", "failed", *["told"] * 4]
    assert [t.y for t in back.trials if t.y is not None] == [
        t.value for t in study.trials if t.number not in (2, 3, 4, 9)
    ]
    opt = gpmi.Optimizer(back.space, goal="min", seed=0).replay(back.trials)
    assert set(opt.ask()) == {"x", "n", "q", "kind"}
    assert opt.best is not None and opt.best.y == study.best_value


def test_what_has_no_place_is_said(tmp_path: Path) -> None:
    study = stored(tmp_path)
    study.sampler = optuna.samplers.RandomSampler(seed=0)
    study.optimize(lambda t: t.suggest_float("x", 0.0, 2.0), n_trials=8)
    outside = [t.number for t in study.trials if t.value > 1.0]
    back = from_optuna(study, {"x": (0.0, 1.0)})
    assert outside and [int(words.split()[1][:-1]) for words in back.left_out] == outside
    assert "outside [0.0, 1.0]" in back.left_out[0]


def test_studies_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    run = gpmi.minimize(lambda x: x[0], [(0.0, 1.0)], budget=2, seed=0)
    with pytest.raises(ValueError, match="give one of direction MINIMIZE"):
        to_optuna(run, stored(tmp_path))
    with pytest.raises(ValueError, match="give the space"):
        from_optuna(optuna.create_study())
    partly = optuna.create_study()
    partly.optimize(lambda t: t.suggest_float("a" if t.number else "b", 0.0, 1.0), n_trials=2)
    with pytest.raises(ValueError, match="in some trials only"):
        from_optuna(partly)


# Runs with goals

GOALS: dict[str, Any] = {
    "yield": gpmi.Max(at_least=0.1),
    "purity": gpmi.AtLeast(0.2),
    "cost": "min",
    "size": gpmi.Match(0.5, within=0.1),
    "weight": gpmi.AtMost(1.5),
    "smell": None,
}
UNIT = {"a": (0.0, 1.0), "b": (0.0, 1.0)}


def measured(x: Any) -> dict[str, float]:
    a, b = x["a"], x["b"]
    return {"yield": a, "purity": b, "cost": a**2 + b, "size": a - b, "weight": a + b, "smell": a * b}


def played_with_goals() -> gpmi.Optimizer:
    """A run with goals in which everything happens that can happen to a trial."""
    opt = gpmi.Optimizer(UNIT, goals=GOALS, seed=1)
    for t in range(10):
        x = opt.ask()
        outputs = measured(x)
        if t == 3:
            opt.fail(x, why="no power")
        elif t == 4:
            opt.reject(x)
        elif t == 5:
            opt.tell(x, {"yield": outputs["yield"], "smell": outputs["smell"]})  # the others are still to come
        elif t == 6:
            opt.tell(x, {name: one for name, one in outputs.items() if name != "purity"})  # a limit is
        else:
            opt.tell(x, outputs, noise_var={"cost": 0.1 * (t == 7)}, repeats=1 + (t == 8))
    opt.correct(0, {"yield": 1.0 / 3.0})
    opt.retract(1)
    opt.ask()
    return opt


def test_a_run_with_goals_comes_back_from_a_storage_to_the_last_bit(tmp_path: Path) -> None:
    opt, storage = played_with_goals(), f"sqlite:///{tmp_path / 'optuna.db'}"
    to_storage(opt, storage, "s")
    study = opened(tmp_path)
    assert goals_of(study) == opt.goals
    back = from_storage(storage, "s", UNIT)
    assert back.left_out == () and same(back.trials, opt.trials)
    again = gpmi.Optimizer(UNIT, goals=goals_of(study), seed=1).replay(back.trials)
    assert repr(again.ask()) == repr(opt.ask())


def test_optuna_knows_objectives_and_limits_of_a_run_with_goals() -> None:
    opt = played_with_goals()
    study = optuna.create_study(directions=["maximize", "minimize", "minimize"])
    to_optuna(opt, study)
    assert study.metric_names == ["yield", "cost", "|size - 0.5|"]
    for trial, frozen in zip(opt.trials, study.trials, strict=True):
        expected = {"told": "COMPLETE", "pending": "WAITING"}.get(trial.status, "FAIL")
        assert frozen.state.name == ("RUNNING" if trial.number == 5 else expected)
        if frozen.state.name == "COMPLETE":
            values = [trial.outputs["yield"], trial.outputs["cost"], abs(trial.outputs["size"] - 0.5)]
            assert frozen.values == values and (frozen.constraints["weight"] <= 0) == (trial.outputs["weight"] <= 1.5)
            assert all(value <= 0.0 for value in frozen.constraints.values()) == (
                not set(trial.unmet) & set(trial.outputs)
            )
    assert study.trials[6].constraints.keys() == {"weight"}


def test_optuna_may_finish_what_a_run_with_goals_began() -> None:
    goals = {"yield": "max", "cost": "min", "weight": gpmi.AtMost(1.5), "purity": gpmi.AtLeast(0.2), "smell": None}
    opt = gpmi.Optimizer(UNIT, goals=goals, seed=1)
    for _ in range(3):
        x = opt.ask()
        opt.tell(x, {name: one for name, one in measured(x).items() if name in goals})
    opt.tell(opt.ask(), {"yield": 0.5, "smell": 0.1})
    opt.ask()
    study = optuna.create_study(directions=["maximize", "minimize"])
    to_optuna(opt, study)
    study.tell(3, [0.5, 0.25])

    def f(trial: Any) -> tuple[float, float]:
        x = {name: trial.suggest_float(name, 0.0, 1.0) for name in "ab"}
        outputs = measured(x)
        trial.set_constraint("weight", outputs["weight"] - 1.5)
        trial.set_constraint("purity", 0.2 - outputs["purity"])
        return outputs["yield"], outputs["cost"]

    study.optimize(f, n_trials=2)
    space, trials, left_out = from_optuna(study)
    assert left_out == () and [trial.status for trial in trials] == ["told"] * 6
    assert dict(trials[3].outputs) == {"yield": 0.5, "cost": 0.25, "smell": 0.1}
    for trial in trials[4:]:
        expected = {name: one for name, one in measured(trial.x).items() if name in goals and name != "smell"}
        assert dict(trial.outputs) == pytest.approx(expected) and trial.unmet == opt.goals.unmet(expected)  # type: ignore[union-attr]
    assert trials[4].x == opt.pending[0].x
    assert len(gpmi.Optimizer(space, goals=goals_of(study), seed=1).replay(trials).front) >= 1


def test_a_distance_from_a_target_is_not_its_output() -> None:
    opt = gpmi.Optimizer(UNIT, goals={"yield": "max", "size": gpmi.Match(0.5, within=0.1)}, seed=1)
    opt.tell(opt.ask(), {"yield": 1.0, "size": 0.25})
    study = optuna.create_study(directions=["maximize", "minimize"])
    to_optuna(opt, study)
    study.optimize(lambda t: (t.suggest_float("a", 0.0, 1.0), t.suggest_float("b", 0.0, 1.0)), n_trials=1)
    back = from_optuna(study, UNIT)
    assert dict(back.trials[0].outputs) == {"yield": 1.0, "size": 0.25}
    assert len(back.left_out) == 1 and "trial 1: its size is not known" in back.left_out[0]


def test_a_study_of_optuna_with_several_objectives_can_be_taken_up(tmp_path: Path) -> None:
    def f(trial: Any) -> tuple[float, float]:
        x, kind = trial.suggest_float("x", 1e-3, 1.0, log=True), trial.suggest_categorical("kind", ["a", None])
        if trial.number == 2:
            raise OSError("no luck")
        if trial.number == 3:
            raise optuna.TrialPruned
        if trial.number != 5:
            trial.set_constraint("limit", x - 0.5)
        return math.inf if trial.number == 4 else x, x**2 - (kind == "a")

    storage = f"sqlite:///{tmp_path / 'optuna.db'}"
    study = optuna.create_study(storage=storage, study_name="s", directions=["minimize", "maximize"])
    study.optimize(f, n_trials=9, catch=OSError)
    study.ask()
    space, trials, left_out = from_optuna(opened(tmp_path))
    assert left_out == ("trial 3: it is PRUNED", "trial 9: it is RUNNING")
    assert [t.status for t in trials] == ["told", "told", "failed", "failed", *["told"] * 4]
    assert trials[3].why == f"its values are {study.trials[4].values}" and trials[4].unmet == ("limit",)
    goals = goals_of(study)
    assert str(goals) == "0 (min), 1 (max), limit (at most 0)"
    opt = gpmi.Optimizer(space, goals=goals, seed=0).replay(trials)
    assert {trial.number for trial in opt.front} <= {trial.number for trial in study.best_trials}
    assert set(opt.ask()) == {"x", "kind"}
    named = {"loss": "min", "speed": "max", "limit": gpmi.AtLeast(2.0)}
    renamed = from_storage(storage, None, space, named).trials
    for trial, again in zip(trials, renamed, strict=True):
        assert list(trial.outputs.values())[:2] == list(again.outputs.values())[:2]
        if "limit" in trial.outputs:  # feasible where it is at most 0 there, and at least 2 here
            assert again.outputs["limit"] == pytest.approx(2.0 - trial.outputs["limit"])
    told = [trial for trial in renamed if trial.status == "told"]
    assert len(gpmi.Optimizer(space, goals=named, seed=0).tell_all(told)) == 6


def test_a_single_objective_with_goals_goes_both_ways() -> None:
    opt = gpmi.Optimizer(UNIT, goals={"cost": "min", "weight": gpmi.AtMost(1.5)}, seed=1)
    for _ in range(4):
        x = opt.ask()
        opt.tell(x, {name: measured(x)[name] for name in ("cost", "weight")})
    opt.tell(opt.ask(), {"weight": 1.0})
    study = optuna.create_study()
    to_optuna(opt, study)
    assert [t.state.name for t in study.trials] == [*["COMPLETE"] * 4, "RUNNING"]
    assert [t.value for t in study.trials[:4]] == [t.y for t in opt.trials[:4]]
    back = from_optuna(study, UNIT)
    assert same(back.trials, opt.trials) and goals_of(study) == opt.goals


def test_values_without_goals_may_get_them() -> None:
    run = played(SPACES["box"])
    study = optuna.create_study(direction="maximize")
    to_optuna(run, study)
    assert goals_of(study) is None
    goals = {"gain": "max", "0": gpmi.AtMost(0.0), "1": gpmi.AtMost(0.0)}
    back = from_optuna(study, SPACES["box"], goals)
    told = [trial for trial in run.trials if trial.status == "told"]
    assert [tuple(t.outputs.values()) for t in back.trials if t.status == "told"] == [
        (t.y, *t.constraints) for t in told
    ]


def test_goals_that_do_not_fit_are_refused() -> None:
    opt = played_with_goals()
    with pytest.raises(ValueError, match="give one of directions MAXIMIZE, MINIMIZE, MINIMIZE"):
        to_optuna(opt, optuna.create_study(directions=["maximize", "minimize"]))
    study = optuna.create_study(directions=["minimize", "maximize"])
    trial = study.ask({"x": optuna.distributions.FloatDistribution(0.0, 1.0)})
    trial.set_constraint("limit", 1.0)
    study.tell(trial, [1.0, 2.0])
    for goals, words in (
        ({"a": "max", "b": "min", "limit": gpmi.AtMost(0.0)}, "has the directions MINIMIZE, MAXIMIZE"),
        ({"a": "min", "limit": gpmi.AtMost(0.0)}, "give a goal for each, in their order"),
        ({"a": "min", "b": "max"}, "has the constraint 'limit', which goals does not limit"),
    ):
        with pytest.raises(ValueError, match=words):
            from_optuna(study, None, goals)
    other = gpmi.Optimizer(UNIT, goals={"a1": "min", "a2": "max"}, seed=0)
    to_optuna(other, again := optuna.create_study(directions=["minimize", "maximize"]))
    to_optuna(other, again)  # more trials of the same goals
    with pytest.raises(ValueError, match="study has the goals a1"):
        to_optuna(gpmi.Optimizer(UNIT, goals={"b1": "min", "b2": "max"}, seed=0), again)


def test_the_goal_of_one_value_may_be_given_for_a_study_with_constraints() -> None:
    opt = gpmi.Optimizer(UNIT, goal="min", seed=0)
    opt.tell({"a": 0.5, "b": 0.5}, 1.0, constraints=[-1.0, 2.0])
    study = optuna.create_study(direction="minimize")
    to_optuna(opt, study)
    (trial,) = from_optuna(study, UNIT, opt.goals).trials
    assert (trial.y, trial.constraints) == (1.0, (-1.0, 2.0))
