"""The pruner for Optuna: what it prunes, what it learns from, and what it does with anything unusual."""

from __future__ import annotations

import logging
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpmi

optuna = pytest.importorskip("optuna")
if int(optuna.__version__.split(".")[0]) < 5:
    pytest.skip("Optuna 5 is needed", allow_module_level=True)

from optuna.trial import TrialState  # noqa: E402

from gpmi.integrations.optuna import GPMIPruner, GPMISampler, curve_follower  # noqa: E402
from gpmi.integrations.optuna.reports import reports_of  # noqa: E402
from gpmi.trials import Trial  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
    pytest.mark.usefixtures("storages_are_closed"),
]
optuna.logging.disable_default_handler()

LAST = 31


def study_of(pruner: Any, direction: str = "minimize", **more: Any) -> Any:
    return optuna.create_study(
        sampler=optuna.samplers.RandomSampler(seed=0), pruner=pruner, direction=direction, **more
    )


def curve(x: float, step: int) -> float:
    return (x - 0.3) ** 2 + 0.5 / (step + 1.0)


def training(sign: float = 1.0, first: int = 0, last: int = LAST) -> Callable[[Any], float]:
    def f(trial: Any) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        for step in range(first, last + 1):
            trial.report(sign * curve(x, step), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return sign * curve(x, last)

    return f


def steps_of(study: Any) -> int:
    return sum(len(reports_of(trial)) for trial in study.trials)


def pruned(study: Any) -> list[Any]:
    return study.get_trials(states=[TrialState.PRUNED])


# What is pruned


@pytest.mark.parametrize("direction, sign", [("minimize", 1.0), ("maximize", -1.0)])
@pytest.mark.parametrize("max_step", [LAST, None])
def test_it_saves_most_steps_and_keeps_the_best_trial(direction: str, sign: float, max_step: int | None) -> None:
    study = study_of(GPMIPruner(max_step), direction)
    study.optimize(training(sign), n_trials=40)
    plain = study_of(optuna.pruners.NopPruner(), direction)
    plain.optimize(training(sign), n_trials=40)
    assert study.best_params == plain.best_params
    assert steps_of(study) < 0.4 * steps_of(plain)
    assert study.trials[0].state == TrialState.COMPLETE  # nothing to beat yet


def test_the_answers_are_those_of_an_optimizer() -> None:
    pruner = GPMIPruner(LAST)
    study = study_of(pruner)
    study.optimize(training(), n_trials=25)
    opt = gpmi.Optimizer({"x": (0.0, 1.0), "step": gpmi.Fidelity(1, LAST + 1)}, goal="min", seed=0)
    for trial in study.trials:
        point = {"x": trial.params["x"], "step": LAST + 1}
        origin: Any = "design" if trial.number else "user"
        opt.replay([Trial(trial.number, point, None, "pending", origin)])
        number = opt.pending[-1].number
        answers = []
        for step, value in trial.intermediate_values.items():
            answers.append(opt.report(number, step + 1, value))
        assert answers[:-1] == ["continue"] * (len(answers) - 1)
        assert answers[-1] == "stop"
        assert opt.trials[-1].status == ("told" if trial.state == TrialState.COMPLETE else "stopped")


def test_steps_from_1_are_as_good_as_steps_from_0() -> None:
    study = study_of(GPMIPruner(LAST))
    study.optimize(training(first=1), n_trials=30)
    assert len(pruned(study)) > 15 and study.best_value < curve(0.3, LAST) + 0.02


def test_before_the_last_step_is_known_nothing_is_pruned() -> None:
    study = study_of(GPMIPruner())
    for x in np.linspace(0.0, 1.0, 8):
        trial = study.ask(fixed_distributions={"x": optuna.distributions.FloatDistribution(0.0, 1.0)})
        for step in range(10):
            trial.report(curve(x, step), step)
            assert not trial.should_prune()


def test_the_last_step_grows_with_the_longest_completed_trial() -> None:
    pruner = GPMIPruner()
    study = study_of(pruner)
    study.optimize(training(last=10), n_trials=3)
    study.optimize(training(last=LAST), n_trials=20)
    assert pruner._memory is not None and pruner._memory.follower.max_step in (10, LAST)
    assert not any(trial.last_step >= 11 for trial in pruned(study) if pruner._memory.follower.max_step == 10)


def test_asking_again_gives_the_same_answer_and_asking_rarely_misses_nothing() -> None:
    study = study_of(GPMIPruner(LAST))
    study.optimize(training(), n_trials=10)
    for x in (0.97, 0.96):  # where one was stopped, another would go to its end
        study.enqueue_trial({"x": x})
    often, rare = (study.ask({"x": optuna.distributions.FloatDistribution(0.0, 1.0)}) for _ in range(2))
    answers = []
    for step in range(LAST):
        often.report(curve(0.97, step), step)
        answers.append([often.should_prune() for _ in range(3)])
    assert [True] * 3 in answers and all(len(set(some)) == 1 for some in answers)
    assert answers[answers.index([True] * 3) + 1] == [True] * 3  # between two rungs the last answer stands
    for step in range(LAST - 1):
        rare.report(curve(0.96, step), step)
    assert rare.should_prune()


def test_values_that_are_not_finite() -> None:
    study = study_of(GPMIPruner(LAST))
    study.optimize(training(), n_trials=5)
    for value, answer in ((math.nan, True), (math.inf, True), (-math.inf, False), (1e300, True)):
        trial = study.ask()
        trial.suggest_float("x", 0.0, 1.0)
        trial.report(value, 0)
        assert trial.should_prune() is answer
        study.tell(trial, state=TrialState.PRUNED)
    study.optimize(training(), n_trials=15)
    assert len(pruned(study)) > 8


def test_failed_trials_infeasible_trials_and_trials_without_reports_do_no_harm() -> None:
    def f(trial: Any) -> float:
        if trial.number % 5 == 1:
            trial.suggest_float("x", 0.0, 1.0)
            raise RuntimeError("crashed")
        if trial.number % 5 == 2:
            trial.suggest_float("x", 0.0, 1.0)
            return math.nan
        if trial.number % 5 == 3:
            trial.set_constraint("c", 1.0)
            trial.suggest_float("x", 0.0, 1.0)
            return -100.0  # would beat everything if it were feasible
        return training()(trial)

    study = study_of(GPMIPruner(LAST))
    study.optimize(f, n_trials=40, catch=(RuntimeError,))
    best = min(t.value for t in study.get_trials(states=[TrialState.COMPLETE]) if not t.constraints)
    assert len(pruned(study)) >= 5 and best < curve(0.3, LAST) + 0.02


# Parameters


def test_conditions_are_learned() -> None:
    def f(trial: Any) -> float:
        kind = trial.suggest_categorical("kind", ["a", "b"])
        x = trial.suggest_float("x" if kind == "a" else "y", 0.0, 1.0)
        for step in range(LAST + 1):
            trial.report(curve(x, step) + (kind == "b"), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return curve(x, LAST) + (kind == "b")

    study = study_of(GPMIPruner(LAST))
    study.optimize(f, n_trials=40)
    assert len(pruned(study)) > 20 and study.best_params["kind"] == "a"


def test_parameters_that_do_not_fit_are_not_pruned_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    study = study_of(GPMIPruner(LAST))
    study.optimize(training(), n_trials=8)
    trial = study.ask()
    trial.suggest_float("x", 5.0, 6.0)
    with caplog.at_level(logging.WARNING, "gpmi"):
        for step in range(LAST):
            trial.report(100.0, step)
            assert not trial.should_prune()
    assert caplog.text.count(f"trial {trial.number} is not pruned: its parameters do not fit") == 1


def test_a_step_past_the_last_one_is_not_pruned_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    study = study_of(GPMIPruner(5))
    with caplog.at_level(logging.WARNING, "gpmi"):
        study.optimize(training(last=6), n_trials=2)
    assert "it reports step 6, but max_step is 5" in caplog.text


def test_a_new_range_starts_a_new_model() -> None:
    study = study_of(GPMIPruner(LAST))
    study.optimize(training(), n_trials=8)

    def wider(trial: Any) -> float:
        x = trial.suggest_float("x", 0.0, 2.0)
        for step in range(LAST + 1):
            trial.report(curve(x, step), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return curve(x, LAST)

    study.optimize(wider, n_trials=30)
    assert len([trial for trial in pruned(study) if trial.params["x"] > 1.0]) > 5


def test_without_parameters_and_without_reports_nothing_is_pruned() -> None:
    study = study_of(GPMIPruner(3))

    def f(trial: Any) -> float:
        assert not trial.should_prune()
        for step in range(4):
            trial.report(float(trial.number), step)
            assert not trial.should_prune()
        return float(trial.number)

    study.optimize(f, n_trials=4)


# Many trials, many workers


def test_the_model_has_the_best_and_the_latest_of_many_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MOST", 20), ("BEST", 4), ("LATEST", 8)):
        monkeypatch.setattr(curve_follower, name, value)
    pruner = GPMIPruner(LAST)
    study = study_of(pruner)
    study.optimize(training(), n_trials=70)
    assert pruner._memory is not None
    trials = pruner._memory.follower._optimizer.trials
    assert len(trials) <= 21
    assert study.best_trial.params["x"] in [trial.x["x"] for trial in trials]
    assert len(pruned(study)) > 50


def test_threads_share_it() -> None:
    study = study_of(GPMIPruner(LAST))
    study.optimize(training(), n_trials=40, n_jobs=4)
    states = {trial.state for trial in study.trials}
    assert states == {TrialState.COMPLETE, TrialState.PRUNED} and len(pruned(study)) > 20


def test_a_copy_that_starts_later_answers_alike(tmp_path: Path) -> None:
    """A worker that follows a study on a disk knows the curves of all finished trials."""
    address = f"sqlite:///{tmp_path}/a.db"
    pruner = GPMIPruner(LAST)
    study = study_of(pruner, storage=address, study_name="a")
    study.optimize(training(), n_trials=15)
    copied = pickle.loads(pickle.dumps(pruner))
    later = optuna.load_study(study_name="a", storage=address, pruner=copied)
    for x in (0.05, 0.3, 0.6, 0.95):
        trial = later.ask(fixed_distributions={"x": optuna.distributions.FloatDistribution(0.0, 1.0)})
        for step in range(LAST):
            trial.report(curve(x, step), step)
        assert copied.prune(later, trial._get_latest_trial()) == pruner.prune(study, trial._get_latest_trial())


def test_inside_a_pruner_of_optuna() -> None:
    study = study_of(optuna.pruners.PatientPruner(GPMIPruner(LAST), patience=1))
    study.optimize(training(), n_trials=10)


# Several objectives


def two(pruner: GPMIPruner) -> Callable[[Any], tuple[float, float]]:
    def f(trial: Any) -> tuple[float, float]:
        x, z = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("z", 0.0, 1.0)
        for step in range(LAST + 1):
            values = x + z + 0.5 / (step + 1.0), x - z - 0.5 / (step + 1.0)
            pruner.report(trial, step, values)
            if pruner.should_prune(trial):
                raise optuna.TrialPruned
        return values

    return f


@pytest.mark.parametrize("storage", ["memory", "sqlite"])
def test_several_objectives_report_through_the_pruner(tmp_path: Path, storage: str) -> None:
    address = None if storage == "memory" else f"sqlite:///{tmp_path}/a.db"
    pruner = GPMIPruner(LAST)
    study = optuna.create_study(
        directions=["minimize", "maximize"], sampler=optuna.samplers.RandomSampler(seed=0), storage=address
    )
    study.optimize(two(pruner), n_trials=12 if address else 30)
    first = study.trials[0]
    assert first.state == TrialState.COMPLETE and list(reports_of(first)) == list(range(LAST + 1))
    assert reports_of(first)[LAST] == tuple(first.values)
    assert {trial.state for trial in study.trials} == {TrialState.COMPLETE, TrialState.PRUNED}


def test_the_sampler_learns_the_last_values_of_a_pruned_trial_with_several_objectives() -> None:
    pruner = GPMIPruner(LAST)
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=GPMISampler(seed=0))
    study.optimize(two(pruner), n_trials=3)
    trial = study.ask()
    trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("z", 0.0, 1.0)
    pruner.report(trial, 3, (9.0, -9.0))
    study.tell(trial, state=TrialState.PRUNED)
    last = study.sampler.optimizer(study).trials[-1]
    assert last.status == "told"  # clipped to the worst values so far
    assert dict(last.outputs) == {
        "0": max(t.values[0] for t in study.trials[:3]),
        "1": min(t.values[1] for t in study.trials[:3]),
    }


def test_reports_are_checked_and_the_first_of_a_step_counts() -> None:
    pruner = GPMIPruner(LAST)
    study = optuna.create_study(directions=["minimize", "maximize"])
    trial = study.ask()
    for values, error in (((1.0,), ValueError), (1.0, ValueError), (("a", 2.0), TypeError)):
        with pytest.raises(error, match="give 2 numbers, in the order of the directions"):
            pruner.report(trial, 0, values)
    with pytest.raises(ValueError, match="step is -1"):
        pruner.report(trial, -1, (1.0, 2.0))
    pruner.report(trial, 0, np.array([1.0, math.nan]))
    with pytest.warns(UserWarning, match="the first values count"):
        pruner.report(trial, 0, (1.0, 2.0))
    assert pruner.should_prune(trial)  # not a number


def test_with_one_objective_a_report_through_the_pruner_is_a_report_of_optuna() -> None:
    study = optuna.create_study()
    trial = study.ask()
    GPMIPruner().report(trial, 2, 0.5)
    assert study.trials[0].intermediate_values == {2: 0.5}


def test_a_fixed_trial_reports_nothing() -> None:
    pruner, trial = GPMIPruner(3), optuna.trial.FixedTrial({"x": 0.5})
    pruner.report(trial, 0, (1.0, 2.0))
    assert not pruner.should_prune(trial)


@pytest.mark.parametrize("given", [0, -3, 2.5, True, "52"])
def test_max_step_is_checked(given: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="max_step is"):
        GPMIPruner(given)
