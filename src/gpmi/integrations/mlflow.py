"""MLflow: log the trials of a run as nested MLflow runs. Needs MLflow.

gpmi.maximize(f, space, budget=30, on_trial=MLflowCallback("tuning"))
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

try:
    from mlflow.entities import Metric, Param, RunTag
    from mlflow.tracking import MlflowClient
except ImportError as error:
    raise ImportError("this needs MLflow: pip install mlflow") from error

from gpmi.optimizer import Optimizer
from gpmi.trials import Trial

PARENT = "mlflow.parentRunId"


class MLflowCallback:
    """Log each finished trial as a child run of one parent run.

    The child's parameters are those of the point; its metrics are the value (`metric`), the prediction and the
    constraints. The parent logs the best value so far, and the best point when it is closed: use the callback in a
    `with` block, or call `close`. MLflow allows only letters, digits and _ - . : / in names; other characters become _.
    """

    def __init__(self, experiment: str = "gpmi", *, metric: str = "y", tracking_uri: str | None = None) -> None:
        self._client, self._metric = MlflowClient(tracking_uri), _name(metric)
        known = self._client.get_experiment_by_name(experiment)
        self._experiment = self._client.create_experiment(experiment) if known is None else known.experiment_id
        self.run_id: str | None = None  # of the parent run, from the first trial on
        self._best: Trial | None = None

    def __call__(self, trial: Trial, optimizer: Optimizer) -> None:
        if self.run_id is None:
            tags = {"mlflow.runName": "gpmi", "goal": optimizer.goal, "policy": repr(optimizer.policy)}
            self.run_id = self._client.create_run(self._experiment, tags=tags).info.run_id
        now = int(1000 * time.time())
        tags = {PARENT: self.run_id, "mlflow.runName": f"trial {trial.number}", "origin": trial.origin}
        begun = now if trial.asked is None else int(1000 * trial.asked)
        run = self._client.create_run(self._experiment, start_time=begun, tags=tags).info.run_id
        said = {self._metric: trial.y, "mu": trial.mu, "sd": trial.sd}
        said |= {f"constraint {i}": value for i, value in enumerate(trial.constraints)}
        metrics = [Metric(name, value, now, trial.number) for name, value in said.items() if value is not None]
        why = [] if trial.why is None else [RunTag("why", trial.why)]
        self._client.log_batch(run, metrics=metrics, params=_params(trial.x), tags=why)  # before the state
        self._client.set_terminated(run, "FINISHED" if trial.status == "told" else "FAILED", _ended(trial, now))
        self._best = optimizer.best
        if self._best is not None and self._best.y is not None:
            self._client.log_metric(self.run_id, f"best {self._metric}", self._best.y, step=trial.number)

    def close(self, status: str = "FINISHED") -> None:
        """End the parent run, with the best point as its parameters."""
        if self.run_id is not None:
            if self._best is not None:
                self._client.log_batch(self.run_id, params=_params(self._best.x))
            self._client.set_terminated(self.run_id, status)
            self.run_id = None

    def __enter__(self) -> MLflowCallback:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self.close("FINISHED" if kind is None else "FAILED" if issubclass(kind, Exception) else "KILLED")


def _params(x: Any) -> list[Any]:
    named = x.items() if isinstance(x, Mapping) else ((f"x{i}", value) for i, value in enumerate(x))
    found: dict[str, str] = {}
    for key, value in named:
        name = _name(str(key))
        while name in found:  # names may collide once forbidden characters are replaced
            name += "_"
        found[name] = str(value)
    return [Param(name, value) for name, value in found.items()]


def _name(text: str) -> str:
    return re.sub(r"[^\w\-. :/]", "_", text)


def _ended(trial: Trial, now: int) -> int:
    return now if trial.ended is None else int(1000 * trial.ended)
