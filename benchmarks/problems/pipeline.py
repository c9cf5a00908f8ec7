"""A pipeline with conditional parameters, a scaler and a support vector machine, and the tools that tune it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gpmi

SPACE = {
    "scaler": ["none", "standard", "minmax"],
    "kernel": ["linear", "rbf", "poly", "sigmoid"],
    "C": gpmi.Real(1e-3, 1e3, log=True),
    "gamma": gpmi.Real(1e-5, 1e1, log=True, when={"kernel": ["rbf", "poly", "sigmoid"]}),
    "degree": gpmi.Int(2, 5, when={"kernel": "poly"}),
    "coef0": gpmi.Real(-1.0, 1.0, when={"kernel": ["poly", "sigmoid"]}),
}
BUDGET = 40
Accuracy = Callable[[dict[str, Any]], float]


def by_gpmi(f: Accuracy, seed: int) -> list[float]:
    """Return the values of a run with nothing set but the budget."""
    return [t.y for t in gpmi.maximize(f, SPACE, budget=BUDGET, seed=seed).trials if t.y is not None]


def by_tpe(f: Accuracy, seed: int) -> list[float]:
    """Return the values of Optuna's TPE."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(lambda trial: f(_suggested(trial)), n_trials=BUDGET)
    return [trial.value for trial in study.trials]


def _suggested(trial: Any) -> dict[str, Any]:
    """Return a point of the space, by calls of Optuna's `suggest_*`."""
    p: dict[str, Any] = {"scaler": trial.suggest_categorical("scaler", SPACE["scaler"])}
    p["kernel"] = trial.suggest_categorical("kernel", SPACE["kernel"])
    p["C"] = trial.suggest_float("C", 1e-3, 1e3, log=True)
    if p["kernel"] != "linear":
        p["gamma"] = trial.suggest_float("gamma", 1e-5, 1e1, log=True)
    if p["kernel"] == "poly":
        p["degree"] = trial.suggest_int("degree", 2, 5)
    if p["kernel"] in ("poly", "sigmoid"):
        p["coef0"] = trial.suggest_float("coef0", -1.0, 1.0)
    return p


def at_random(f: Accuracy, seed: int) -> list[float]:
    """Return the values at random points."""
    space: Any = gpmi.Space.of(SPACE)
    u = np.random.default_rng(seed).random((BUDGET, space.unit_dim))
    return [f(space.decode(row)) for row in space.from_unit(u)]


TOOLS: dict[str, Callable[[Accuracy, int], list[float]]] = {
    "gpmi": by_gpmi,
    "Optuna TPE": by_tpe,
    "random": at_random,
}
