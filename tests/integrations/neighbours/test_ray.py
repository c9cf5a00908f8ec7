"""The searcher, in Ray Tune."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import gpmi

pytest.importorskip("ray")

from ray import tune
from ray.tune.search import Searcher

from gpmi.integrations.ray import GPMISearch

pytestmark = pytest.mark.filterwarnings("ignore")
SPACE = {
    "x": tune.uniform(0.0, 1.0),
    "model": {"rate": tune.loguniform(1e-4, 1.0), "depth": tune.randint(1, 5), "kind": tune.choice(["a", "b"])},
    "q": tune.quniform(0.0, 1.0, 0.25),
    "n": tune.qrandint(0, 12, 4),
    "fixed": 3,
}


def test_the_space_is_that_of_the_tuner() -> None:
    search = GPMISearch(seed=0)
    assert search.set_search_properties("loss", "min", SPACE)
    assert search.optimizer is not None and search.optimizer.goal == "min"
    space = search.optimizer.space
    named = dict(zip(space.names, space.parameters, strict=True))  # type: ignore[attr-defined]
    assert named["model/rate"] == gpmi.Real(1e-4, 1.0, log=True) and named["model/depth"] == gpmi.Int(1, 4)
    assert named["q"] == gpmi.Int(0, 4)  # multiples of 0.25
    assert named["n"] == gpmi.Int(0, 12, step=4) and "fixed" not in named
    point: Any = search.suggest("a")
    assert set(point) == {"x", "model", "q", "n"} and set(point["model"]) == {"rate", "depth", "kind"}
    assert point["q"] in (0.0, 0.25, 0.5, 0.75, 1.0)
    assert not search.set_search_properties("loss", "min", SPACE)


def test_values_errors_and_missing_metrics() -> None:
    search = GPMISearch({"x": (0.0, 1.0)}, "loss", "min", seed=0)
    for i in range(6):
        search.suggest(str(i))
    search.on_trial_complete("0", {"loss": 1.0})
    search.on_trial_complete("1", error=True)
    search.on_trial_complete("2", {"loss": math.nan})
    search.on_trial_complete("3", {"other": 1.0})
    search.on_trial_complete("4", {"loss": "low"})
    search.on_trial_complete("unknown", {"loss": 1.0})
    statuses = [trial.status for trial in search.optimizer.trials]  # type: ignore[union-attr]
    assert statuses == ["told", "failed", "failed", "failed", "failed", "pending"]


def test_it_goes_on_from_what_was_saved(tmp_path: Path) -> None:
    search = GPMISearch({"x": (0.0, 1.0)}, "loss", "min", seed=0)
    for i in range(8):
        point: Any = search.suggest(str(i))
        if i < 7:
            search.on_trial_complete(str(i), {"loss": (point["x"] - 0.3) ** 2})
    search.save(str(tmp_path / "state"))
    other = GPMISearch({"x": (0.0, 1.0)}, "loss", "min")
    other.restore(str(tmp_path / "state"))
    for one in (search, other):
        one.on_trial_complete("7", {"loss": 0.5})
    assert search.suggest("8") == other.suggest("8")


def test_steps_options_and_keys_are_those_of_tune(tmp_path: Path) -> None:
    space = {
        "a/b": tune.uniform(0.0, 1.0),
        "fine": tune.quniform(0.0, 100.0, 0.01),
        "log": tune.qloguniform(1e-3, 1.0, 1e-3),
        "layers": tune.choice([[64, 64], [128]]),
    }
    search = GPMISearch(seed=0)
    search.set_search_properties("loss", "min", space)
    for i in range(3):
        point: Any = search.suggest(str(i))
        assert set(point) == set(space) and point["layers"] in ([64, 64], [128])
        assert point["fine"] == round(point["fine"], 2) and point["log"] == round(point["log"], 3) >= 1e-3
    search.on_trial_complete("0", {"loss": 1.0})
    search.save(str(tmp_path / "state"))
    other = GPMISearch()
    other.set_search_properties("loss", "min", space)
    other.restore(str(tmp_path / "state"))
    assert other.suggest("3") == search.suggest("3")


def test_no_space_a_grid_and_the_end() -> None:
    for begin in (lambda: GPMISearch().suggest("a"), lambda: GPMISearch().save("nowhere")):
        with pytest.raises(ValueError, match="no space"):
            begin()
    with pytest.raises(ValueError, match="grid_search"):
        GPMISearch().set_search_properties("y", "max", {"x": tune.grid_search([1, 2])})
    with pytest.raises(ValueError, match="upper end"):
        GPMISearch().set_search_properties("y", "max", {"x": tune.randn(0.0, 1.0)})
    search = GPMISearch({"x": [1, 2]}, "y", "max", seed=0, repeats=False)
    assert {search.suggest("a")["x"], search.suggest("b")["x"]} == {1, 2}  # type: ignore[index]
    assert search.suggest("c") == Searcher.FINISHED


def test_a_tuner_runs_with_it(tmp_path: Path) -> None:
    import ray

    def f(config: dict[str, Any]) -> dict[str, float]:
        if config["x"] > 0.9:
            raise RuntimeError("too large")
        return {"loss": (config["x"] - 0.3) ** 2 + (config["model"]["kind"] == "a")}

    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR")
    try:
        search = GPMISearch(seed=0)
        tuner = tune.Tuner(
            f,
            param_space=SPACE,
            tune_config=tune.TuneConfig(
                search_alg=search, metric="loss", mode="min", num_samples=10, max_concurrent_trials=2, reuse_actors=True
            ),
            run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0),
        )
        results = tuner.fit()
    finally:
        ray.shutdown()
    assert len(results) == 10 and results.get_best_result().metrics["loss"] < 0.2


def test_goals_are_refused() -> None:
    with pytest.raises(TypeError, match="goals is not an argument of GPMISearch, which optimises one value"):
        GPMISearch(goals={"loss": "min", "size": "min"})
    with pytest.raises(ValueError, match="for several objectives, but GPMISearch has one"):
        GPMISearch({"x": (0.0, 1.0)}, "loss", "min", policy=gpmi.EHVI())
