"""Runs with a fidelity, for the tests that write, read and draw trials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import gpmi

STEPS: dict[str, Any] = {"rate": (0.0, 1.0), "width": (0.0, 1.0), "epoch": gpmi.Fidelity(1, 52)}
LEVELS: dict[str, Any] = {
    "a": (0.0, 1.0),
    "b": (0.0, 1.0),
    "mesh": gpmi.Fidelity({"coarse": 1, "medium": 10, "1": 60}),
}


def accuracy(p: Mapping[str, Any], step: int) -> float:
    """A curve that rises towards its limit, which is largest at rate 0.3 and width 0.6."""
    top = 1.0 - (p["rate"] - 0.3) ** 2 - 0.3 * (p["width"] - 0.6) ** 2
    return float(top * (1.0 - 0.6 * np.exp(-step / 12.0)))


def drag(p: Mapping[str, Any]) -> float:
    """A simulation that is wrong on coarse meshes; on the coarsest one its values are the largest."""
    f = 1.0 - (p["a"] - 0.3) ** 2 - 0.3 * (p["b"] - 0.6) ** 2
    return float(f + {"coarse": 0.5 + 0.1 * p["a"], "medium": 0.2, "1": 0.0}[p["mesh"]])


def stepwise(count: int = 12, seed: int = 0, **options: Any) -> gpmi.Optimizer:
    """Trials over epochs: some reach the target, some are stopped, one is still running."""
    opt = gpmi.Optimizer(STEPS, seed=seed, **options)
    sign = -1.0 if opt.goal == "min" else 1.0
    for _ in range(count):
        p = opt.ask()
        trial = opt.pending[-1]
        for step in range(1, 53):
            y = sign * accuracy(p, step)
            answer = opt.report(trial, step, {"accuracy": y, "seconds": float(step)} if opt.goals.named else y)
            if answer == "stop":
                break
    p = opt.ask()
    for step in (1, 2, 3):
        y = sign * accuracy(p, step)
        opt.report(opt.pending[-1], step, {"accuracy": y, "seconds": float(step)} if opt.goals.named else y)
    return opt


def levelwise(count: int = 20, seed: int = 0) -> gpmi.Optimizer:
    """Trials at three meshes, and one that is pending."""
    opt = gpmi.Optimizer(LEVELS, seed=seed)
    for _ in range(count):
        p = opt.ask()
        opt.tell(p, drag(p))
    opt.ask()
    return opt
