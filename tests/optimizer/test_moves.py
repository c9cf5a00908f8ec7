"""A trial that was moved: the point that was suggested for it is not suggested again by the initial design."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from gpmi import Fidelity, Optimizer

BOX: dict[str, Any] = {"x": (0.0, 1.0), "z": (0.0, 1.0)}


@pytest.mark.parametrize(
    "options",
    [
        {"x0": [{"x": 0.5, "z": 0.5}]},
        {},
        {"earlier": {"a": [({"x": 0.2, "z": 0.3}, 1.0), ({"x": 0.7, "z": 0.1}, 2.0)]}},
    ],
)
def test_the_design_goes_on_after_a_move(options: dict[str, Any]) -> None:
    opt, asked = Optimizer(BOX, seed=0, **options), []
    for i in range(4):
        x = opt.ask()
        assert x not in asked
        asked.append(x)
        opt.tell(opt.move(opt.trials[-1], {"x": min(x["x"] + 0.05, 1.0), "z": x["z"]}), float(i))
    assert pickle.loads(pickle.dumps(opt)).ask() == opt.ask()


def test_on_a_finite_set_and_with_levels() -> None:
    rows = np.arange(12.0).reshape(6, 2)
    opt = Optimizer(rows, seed=0)
    first = opt.ask()
    other = next(row for row in rows if not np.array_equal(row, first))
    opt.tell(opt.move(opt.trials[0], other), 1.0)
    assert not np.array_equal(opt.ask(), first)
    fine = Optimizer({"x": (0.0, 1.0), "mesh": Fidelity({"coarse": 1, "fine": 9})}, seed=0)
    x = fine.ask()
    fine.tell(fine.move(fine.trials[0], {**x, "x": 1.0 - x["x"] / 3.0}), 1.0)
    assert fine.ask()["x"] != x["x"]


def test_a_forgotten_trial_was_never_asked() -> None:
    opt = Optimizer(BOX, seed=0)
    x = opt.ask()
    opt.forget(opt.move(opt.trials[0], {"x": 0.1, "z": 0.1}))
    assert opt.ask() == x
