"""The sweeper, in a Hydra application of its own."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpmi

pytest.importorskip("hydra")

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from gpmi.integrations.hydra import parameters_of, sweep

pytestmark = pytest.mark.filterwarnings("ignore")

APP = """
import hydra

@hydra.main(version_base=None, config_path=".", config_name="config")
def app(cfg):
    if cfg.x > 0.75:
        raise RuntimeError("too large")
    return (cfg.x - 0.3) ** 2 + (cfg.model.kind == "a") + cfg.base

app()
"""
CONFIG = """
defaults:
  - override hydra/sweeper: gpmi
x: 0.0
base: 0.0
model: {kind: a, depth: 1}
hydra:
  sweeper: {n_trials: 12, n_jobs: 2, seed: 0, params: {x: "interval(0.0,1.0)", model.depth: "range(1,4)"}}
"""


def test_overrides_are_parameters() -> None:
    texts = ["a=interval(0.0,1.0)", "b=int(interval(1,8))", "c=tag(log,interval(1e-4,1.0))", "d=range(1,9,2)", "e=u,v"]
    space, rest = parameters_of(OverridesParser.create().parse_overrides([*texts, "f=3", "g=range(0.0,1.0,0.5)"]))
    assert space == {
        "a": gpmi.Real(0.0, 1.0),
        "b": gpmi.Int(1, 8),
        "c": gpmi.Real(1e-4, 1.0, log=True),
        "d": gpmi.Int(1, 7, step=2),
        "e": gpmi.Choice(("u", "v")),
        "g": gpmi.Choice(("0.0", "0.5"), ordered=True),
    }
    assert rest == ["f=3"]


def run(folder: Path, *arguments: str) -> Any:
    (folder / "app.py").write_text(APP)
    (folder / "config.yaml").write_text(CONFIG)
    command = [sys.executable, "app.py", "--multirun", "hydra.sweep.dir=out", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_an_application_is_swept(tmp_path: Path) -> None:
    ended = run(tmp_path, "base=0.5", "model.kind=a,b")
    assert ended.returncode == 0, ended.stderr
    found = OmegaConf.load(tmp_path / "out" / "optimization_results.yaml")
    assert found.best_evaluated_params["model.kind"] == "b" and found.best_evaluated_result < 0.6
    assert (tmp_path / "out" / "11").is_dir() and (tmp_path / "out" / "multirun.yaml").exists()


class Done:
    """What a launcher says of a job."""

    def __init__(self, returned: Any) -> None:
        self.returned = returned

    @property
    def return_value(self) -> Any:
        if isinstance(self.returned, Exception):
            raise self.returned
        return self.returned


def test_values_of_any_kind_and_reasons() -> None:
    returned = [np.float32(0.5), 2, None, math.nan, "low", RuntimeError("no power"), 1e200, True]
    opt = gpmi.Optimizer({"x": (0.0, 1.0)}, seed=0, goal="min")
    sweep(opt, lambda jobs, first: [Done(returned[first])], [], len(returned), 1)  # type: ignore[list-item, return-value]
    assert [trial.y for trial in opt.trials] == [0.5, 2.0, *[None] * 6]
    reasons = [trial.why for trial in opt.trials if trial.why is not None]
    assert reasons[0] == "the job returned None" and reasons[3] == "RuntimeError: no power"


@pytest.mark.parametrize("n_trials", [0, 2, 9])
def test_a_sweep_without_a_value_says_so(n_trials: int) -> None:
    opt = gpmi.Optimizer({"x": ["a", "b"]}, seed=0, repeats=False)
    with pytest.raises(ValueError, match="task function must return"):
        sweep(opt, lambda jobs, first: [Done(None)], [], n_trials, 1)  # type: ignore[list-item, return-value]


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    assert "give minimize or maximize" in run(tmp_path, "hydra.sweeper.direction=up").stderr
    assert "nothing is swept" in run(tmp_path, "x=0.1", "model.depth=1").stderr


def test_goals_are_refused() -> None:
    opt = gpmi.Optimizer({"x": (0.0, 1.0)}, seed=0, goals={"loss": "min", "size": "min"})
    with pytest.raises(ValueError, match=r"goals loss \(min\), size \(min\), but a job of Hydra returns one number"):
        sweep(opt, lambda jobs, first: [Done(0.0)], [], 1, 1)  # type: ignore[list-item, return-value]
