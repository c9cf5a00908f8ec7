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

from gpmi.integrations.optuna import from_optuna, to_optuna  # noqa: E402

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
    study.optimize(lambda t: t.suggest_float("x", 0.0, 2.0), n_trials=8)
    outside = [t.number for t in study.trials if t.value > 1.0]
    back = from_optuna(study, {"x": (0.0, 1.0)})
    assert outside and [int(words.split()[1][:-1]) for words in back.left_out] == outside
    assert "outside [0.0, 1.0]" in back.left_out[0]


def test_studies_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    run = gpmi.minimize(lambda x: x[0], [(0.0, 1.0)], budget=2, seed=0)
    with pytest.raises(ValueError, match="give one of direction MINIMIZE"):
        to_optuna(run, stored(tmp_path))
    with pytest.raises(ValueError, match="2 objectives"):
        from_optuna(optuna.create_study(directions=["minimize", "minimize"]))
    with pytest.raises(ValueError, match="give the space"):
        from_optuna(optuna.create_study())
    partly = optuna.create_study()
    partly.optimize(lambda t: t.suggest_float("a" if t.number else "b", 0.0, 1.0), n_trials=2)
    with pytest.raises(ValueError, match="in some trials only"):
        from_optuna(partly)
