"""Trials as runs of MLflow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gpmi

pytest.importorskip("mlflow")

from mlflow.tracking import MlflowClient

from gpmi.integrations.mlflow import PARENT, MLflowCallback

pytestmark = pytest.mark.filterwarnings("ignore")


def test_each_trial_is_a_nested_run(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"

    def f(p: Any) -> float:
        if p["x"] > 0.5:
            raise RuntimeError("too large")
        return float(-((p["x"] - 0.3) ** 2))

    with MLflowCallback("tuning", metric="score", tracking_uri=uri) as callback:
        r = gpmi.maximize(f, {"x": (0.0, 1.0)}, budget=8, seed=0, on_failure="learn", on_trial=callback)
        parent = callback.run_id
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("tuning")
    runs = client.search_runs([experiment.experiment_id], filter_string=f"tags.`{PARENT}` = '{parent}'")
    assert len(runs) == 8
    told = {run.data.params["x"]: run.data.metrics["score"] for run in runs if run.info.status == "FINISHED"}
    assert told == {str(t.x["x"]): pytest.approx(t.y) for t in r.trials if t.y is not None}
    failed = [run for run in runs if run.info.status == "FAILED"]
    assert len(failed) == sum(t.status == "failed" for t in r.trials) > 0
    assert all("too large" in run.data.tags["why"] for run in failed)
    whole = client.get_run(parent)
    assert whole.info.status == "FINISHED" and whole.data.metrics["best score"] == pytest.approx(r.y)
    assert whole.data.params["x"] == str(r.x["x"])
    assert len(client.get_metric_history(parent, "best score")) >= 1


def test_any_name_of_a_parameter_is_logged(tmp_path: Path) -> None:
    uri, space = f"sqlite:///{tmp_path / 'mlflow.db'}", {"rate (1/s)": (0.0, 1.0), "rate [1/s]": (1.0, 2.0)}
    with MLflowCallback("names", metric="gain (%)", tracking_uri=uri) as callback:
        r = gpmi.maximize(lambda p: p["rate (1/s)"], space, budget=2, seed=0, on_trial=callback)
        parent = callback.run_id
    whole = MlflowClient(uri).get_run(parent).data
    assert sorted(whole.params.values()) == sorted(str(value) for value in r.x.values())
    assert set(whole.params) == {"rate _1/s_", "rate _1/s__"} and whole.metrics["best gain ___"] == r.y


@pytest.mark.parametrize(("raised", "status"), [(RuntimeError, "FAILED"), (KeyboardInterrupt, "KILLED")])
def test_what_ends_with_an_error_is_not_finished(tmp_path: Path, raised: type[BaseException], status: str) -> None:
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    with pytest.raises(raised), MLflowCallback("errors", tracking_uri=uri) as callback:
        gpmi.maximize(lambda x: float(x[0]), [(0.0, 1.0)], budget=1, seed=0, on_trial=callback)
        parent = callback.run_id
        raise raised
    assert MlflowClient(uri).get_run(parent).info.status == status


def test_arrays_and_an_experiment_that_exists(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    for _ in range(2):
        with MLflowCallback("again", tracking_uri=uri) as callback:
            gpmi.minimize(lambda x: float(x[0]), [(0.0, 1.0)], budget=2, seed=0, on_trial=callback)
    client = MlflowClient(uri)
    runs = client.search_runs([client.get_experiment_by_name("again").experiment_id])
    assert len(runs) == 6 and all("x0" in run.data.params for run in runs)


def outputs_of(p: Any) -> dict[str, float]:
    return {"yield (%)": p["x"], "cost": p["x"] ** 2 + p["y"], "purity": p["y"], "mu": p["x"] + p["y"]}


def test_outputs_are_metrics_by_their_names(tmp_path: Path) -> None:
    uri, space = f"sqlite:///{tmp_path / 'mlflow.db'}", {"x": (0.0, 1.0), "y": (0.0, 1.0)}
    goals = {"yield (%)": "max", "cost": "min", "purity": gpmi.AtLeast(0.5), "mu": None}
    with MLflowCallback("goals", tracking_uri=uri) as callback:
        r = gpmi.optimize(outputs_of, space, goals=goals, budget=10, seed=0, on_trial=callback)
        parent = callback.run_id
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("goals")
    runs = client.search_runs([experiment.experiment_id], filter_string=f"tags.`{PARENT}` = '{parent}'")
    logged = {run.data.tags["mlflow.runName"]: run.data for run in runs}
    for trial in r.trials:
        data, names = logged[f"trial {trial.number}"], ("yield ___", "cost", "purity", "mu_")
        assert [data.metrics[name] for name in names] == pytest.approx(list(trial.outputs.values()))
        assert "y" not in data.metrics and data.tags.get("unmet") == (None if trial.feasible else "purity")
    whole = client.get_run(parent).data
    assert whole.tags["goal"] == "yield (%) (max), cost (min), purity (at least 0.5), mu (watched)"
    assert whole.metrics["trials on the front"] == len(r.front)
    assert whole.tags["front"] == ", ".join(str(trial.number) for trial in r.front)


def test_a_single_objective_with_goals_has_a_best_value(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    goals, space = {"gain": "max", "size": gpmi.AtMost(0.5)}, {"x": (0.0, 1.0)}
    with MLflowCallback("one", tracking_uri=uri) as callback:
        r = gpmi.optimize(
            lambda p: {"gain": p["x"], "size": p["x"]}, space, goals=goals, budget=6, seed=0, on_trial=callback
        )
        parent = callback.run_id
    whole = MlflowClient(uri).get_run(parent).data
    assert whole.metrics == {"best gain": pytest.approx(r.y)} and whole.params == {"x": str(r.x["x"])}
