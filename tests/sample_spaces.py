"""Spaces of every kind with their constraints, for tests of what must hold in all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from gpmi import Angle, Choice, Forbidden, Int, Real

LOGS = {"a": (0.0, 1.0), "b": (0.0, 1.0), "lr": Real(1e-4, 1.0, log=True)}
WHOLE = {"n": Int(1, 9), "m": Int(0, 8), "c": ["x", "y"], "lr": Real(1e-4, 1.0, log=True)}
BRANCHES = {
    "kind": ["svm", "tree"],
    "depth": Int(1, 9, when={"kind": "tree"}),
    "c": Real(1e-3, 1e3, log=True, when={"kind": "svm"}),
}
CIRCLES = {
    "course": Angle(360),
    "dial": Angle(24, step=0.5),
    "kind": ["fixed", "swept"],
    "phase": Angle(1, when={"kind": "swept"}),
    "x": (0.0, 1.0),
    "y": (0.0, 1.0),
}
TABLE = pd.DataFrame({"a": np.linspace(0.0, 1.0, 12), "c": ["x", "y", "z"] * 4}, index=list("abcdefghijkl"))


def small_sum(point: Any) -> bool:
    return bool(point["a"] + point["b"] <= 1.2)


def sector(point: Any) -> bool:
    return bool(point["course"] + 360.0 * point["x"] <= 400.0)


SPACES: dict[str, tuple[Any, Any]] = {
    "box": ([(0.0, 1.0), (-5.0, 5.0)], None),
    "box in half-spaces": ([(0.0, 1.0), (-5.0, 5.0)], (np.array([[1.0, 1.0]]), -np.inf, 2.0)),
    "logs on a plane": (LOGS, ["a + b + lr == 1"]),
    "logs below a plane": (LOGS, ["a + b + lr <= 0.01"]),
    "logs and a function": (LOGS, ["a + lr <= 0.5", small_sum]),
    "whole numbers": (WHOLE, ["n + m == 9", "lr + 0.01 * n <= 0.05"]),
    "combinations": (WHOLE, [Forbidden(c="x", n=[1, 2, 3]), "n >= m"]),
    "branches": (BRANCHES, ["depth <= 5"]),
    "steps and ranks": ({"s": Int(0, 20, step=4), "r": range(3), "o": Choice([1, 2, 8], ordered=True), "k": 7}, None),
    "many levels": ({"n": Int(1, 10**9), "x": (0.0, 1.0)}, None),
    "circles": ({"course": Angle(360), "x": (0.0, 1.0)}, None),
    "circles and a plane": (CIRCLES, ["x + y == 1"]),
    "circles and a function": (CIRCLES, [sector]),
    "rows": (np.random.default_rng(0).random((40, 2)), None),
    "a table": (TABLE, None),
    "a table, some rows": (TABLE, [Forbidden(c="x")]),
}
