"""MLflow: log the trials of a run as nested MLflow runs. Needs MLflow.

gpmi.maximize(f, space, budget=30, on_trial=MLflowCallback("tuning"))
"""

from __future__ import annotations

import re
import time
from collections.abc import Container, Mapping
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

    In a run with goals the metrics are the outputs, by their names, and a child is tagged with the limits that it does
    not meet. With several objectives the parent logs how many trials are on the front, and their numbers as a tag when
    it is closed.
    """

    def __init__(self, experiment: str = "gpmi", *, metric: str = "y", tracking_uri: str | None = None) -> None:
        self._client, self._metric = MlflowClient(tracking_uri), metric
        stored = self._client.get_experiment_by_name(experiment)
        self._experiment = self._client.create_experiment(experiment) if stored is None else stored.experiment_id
        self.run_id: str | None = None  # of the parent run, from the first trial on
        self._best: Trial | None = None
        self._front: tuple[Trial, ...] = ()  # if there are several objectives

    def __call__(self, trial: Trial, optimizer: Optimizer) -> None:
        if self.run_id is None:
            tags = {"mlflow.runName": "gpmi", "goal": str(optimizer.goals), "policy": repr(optimizer.policy)}
            self.run_id = self._client.create_run(self._experiment, tags=tags).info.run_id
        now = int(1000 * time.time())
        tags = {PARENT: self.run_id, "mlflow.runName": f"trial {trial.number}", "origin": trial.origin}
        begun = now if trial.asked is None else int(1000 * trial.asked)
        run = self._client.create_run(self._experiment, start_time=begun, tags=tags).info.run_id
        titles = {output: _name(title) for output, title in optimizer.goals.titles(self._metric).items()}
        metrics = [Metric(name, value, now, trial.number) for name, value in _metrics(trial, titles).items()]
        about = {"why": trial.why, "unmet": ", ".join(trial.unmet)}
        notes = [RunTag(name, text) for name, text in about.items() if text]
        self._client.log_batch(run, metrics=metrics, params=_params(trial.x), tags=notes)  # before the state
        state = {"told": "FINISHED", "stopped": "KILLED"}.get(trial.status, "FAILED")
        self._client.set_terminated(run, state, _ended(trial, now))
        self._front = optimizer.ledger.front
        if self._front:
            self._client.log_metric(self.run_id, "trials on the front", len(self._front), step=trial.number)
        self._best = optimizer.best
        if self._best is not None and self._best.y is not None:
            name = titles[str(optimizer.goals.single)]
            self._client.log_metric(self.run_id, f"best {name}", self._best.y, step=trial.number)

    def close(self, status: str = "FINISHED") -> None:
        """End the parent run, with the best point as its parameters."""
        if self.run_id is not None:
            if self._best is not None:
                self._client.log_batch(self.run_id, params=_params(self._best.x))
            if self._front:
                self._client.set_tag(self.run_id, "front", ", ".join(str(trial.number) for trial in self._front))
            self._client.set_terminated(self.run_id, status)
            self.run_id = None

    def __enter__(self) -> MLflowCallback:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self.close("FINISHED" if kind is None else "FAILED" if issubclass(kind, Exception) else "KILLED")


def _metrics(trial: Trial, titles: Mapping[str, str]) -> dict[str, float]:
    """Return the numbers of a trial by the name of their metric; `titles` are those of the outputs."""
    metrics = {name: value for name, value in (("mu", trial.mu), ("sd", trial.sd)) if value is not None}
    metrics |= {f"constraint {i}": value for i, value in enumerate(trial.constraints)}
    for output, value in trial.values.items():
        metrics[_free(titles[output], metrics)] = value
    return metrics


def _params(x: Any) -> list[Any]:
    coordinates = x.items() if isinstance(x, Mapping) else ((f"x{i}", value) for i, value in enumerate(x))
    params: dict[str, str] = {}
    for key, value in coordinates:
        params[_free(_name(str(key)), params)] = str(value)
    return [Param(name, value) for name, value in params.items()]


def _free(name: str, taken: Container[str]) -> str:
    """Return a name that is not taken: names may collide once forbidden characters are replaced."""
    while name in taken:
        name += "_"
    return name


def _name(text: str) -> str:
    return re.sub(r"[^\w\-. :/]", "_", text)


def _ended(trial: Trial, now: int) -> int:
    return now if trial.ended is None else int(1000 * trial.ended)
