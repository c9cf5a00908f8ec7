"""The package for OptunaHub, loaded as OptunaHub does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

optunahub = pytest.importorskip("optunahub")

import optuna  # noqa: E402

ROOT = Path(__file__).parents[3] / "integrations" / "optunahub" / "package"
pytestmark = pytest.mark.filterwarnings("ignore")


def test_the_registry_can_load_it_and_its_example_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    module = optunahub.load_local_module("samplers/gpmi", registry_root=str(ROOT))
    names: dict[str, Any] = {"__name__": "example"}
    exec((ROOT / "samplers" / "gpmi" / "example.py").read_text(encoding="utf-8"), names)
    study = optuna.create_study(sampler=module.GPMISampler(seed=0))
    study.optimize(names["objective"], n_trials=30)
    assert study.best_value < 1.0
