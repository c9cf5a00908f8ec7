"""Runs in which everything happens that can happen to a trial, for the tests that write and read trials."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd

import gpmi

HARD = ("relu", "1", "true", "", " x", "a,b", 'a"b', "a\nb", "null", "{", "é", 1, True, 2.5, None)
SPACES: dict[str, Any] = {
    "box": [(0.0, 1.0), (-1.0, 1.0)],
    "named": {
        "y": gpmi.Real(1e-5, 0.1, log=True),
        "x.y": gpmi.Int(1, 9, step=2),
        "kind": list(HARD),
        "depth": gpmi.Int(1, 4, when={"kind": "relu"}),
        "size": gpmi.Choice([16, 32, 64], ordered=True),
    },
    "rows": np.random.default_rng(0).random((30, 2)),
    "table": pd.DataFrame({"a": np.linspace(0.0, 1.0, 20), "b": ["u", "1"] * 10, "order": range(20)}),
}


def value_of(x: Any) -> float:
    if isinstance(x, dict):
        return float(x.get("a", x.get("y", 0.0))) / 3.0
    return float(np.sin(7.0 * x[0]) + x[1])


FIXED: dict[str, Any] = {"box": {1: 0.1}, "named": {"kind": "1", "y": 0.01}, "table": {"b": "1", "order": 3}}


def played(space: Any) -> gpmi.Optimizer:
    """A run in which everything happens that can happen to a trial."""
    names = [name for name, one in SPACES.items() if one is space]
    opt = gpmi.Optimizer(space, seed=1)
    for t in range(9):
        x = opt.ask()
        if t == 3:
            opt.fail(x, why='exit code 1: "no, space" left\n on device')
        elif t == 4:
            opt.reject(x)
        else:
            opt.tell(x, value_of(x), noise_var=0.1 * (t == 5), repeats=1 + (t == 6), constraints=[-0.1, t / 3.0])
    told = [trial for trial in opt.trials if trial.status == "told"]
    opt.correct(told[0], 1.0 / 3.0, constraints=[0.1, -0.2])
    opt.retract(told[1])
    opt.ask()
    fixed = {0: space[7, 0]} if names == ["rows"] else FIXED[names[0]]
    assert opt.ask(fixed=fixed) is not None
    return opt


def as_rows(trials: Any) -> list[list[Any]]:
    return [
        [x.tolist() if isinstance(x := getattr(trial, f.name), np.ndarray) else x for f in fields(gpmi.Trial)]
        for trial in trials
    ]


def same(a: Any, b: Any) -> bool:
    """Equal in value and type, bit for bit."""
    return repr(as_rows(a)) == repr(as_rows(b))
