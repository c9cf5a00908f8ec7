"""Runs with a fidelity in Optuna: what did not reach the target is pruned, and everything comes back."""

from __future__ import annotations

from typing import Any

import pytest
from sample_fidelities import LEVELS, STEPS, levelwise, stepwise
from sample_runs import same

import gpmi

optuna = pytest.importorskip("optuna")

from gpmi.integrations.optuna import from_optuna, to_optuna  # noqa: E402


@pytest.mark.parametrize(("play", "space"), [(stepwise, STEPS), (levelwise, LEVELS)])
def test_what_did_not_reach_the_target_is_pruned_and_everything_comes_back(play: Any, space: Any) -> None:
    opt, study = play(), optuna.create_study(direction="maximize")
    to_optuna(opt, study)
    assert opt.best is not None and study.best_trial.number == opt.best.number
    for frozen, trial in zip(study.trials, opt.trials, strict=True):
        if frozen.state.name == "PRUNED":
            assert trial.status == "stopped" or trial.x["mesh"] != "1"
            assert list(frozen.intermediate_values.values()) == ([one.y for one in trial.curve] or [trial.y])
        elif trial.status != "pending":
            assert frozen.state.name == "COMPLETE" and frozen.value == trial.y
    assert {frozen.state.name for frozen in study.trials} == {"PRUNED", "COMPLETE", "WAITING"}
    found = from_optuna(study, space)
    assert not found.left_out and same(found.trials, opt.trials)


def test_a_trial_that_a_user_ends_earlier_is_pruned_with_its_curve() -> None:
    opt = gpmi.Optimizer(STEPS, seed=0)
    p = opt.ask(fixed={"epoch": 3})
    for step in (1, 2, 3):
        opt.report(p, step, float(step))
    study = optuna.create_study(direction="maximize")
    to_optuna(opt, study)
    (frozen,) = study.trials
    assert frozen.state.name == "PRUNED" and frozen.intermediate_values == {1: 1.0, 2: 2.0, 3: 3.0}
