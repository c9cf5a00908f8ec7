"""Every optimizer and every space can be pickled and deep-copied, in every state, and the copies go on alike."""

from __future__ import annotations

import copy
import itertools
import os
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from recorded_runs import Recipe, recipes

from gpmi import Choice, Forbidden, Int, Optimizer, Real
from gpmi._support.sobol import sobol
from gpmi.space import Parameters, Space

RECIPES = list(recipes())
LOGS = {"a": (0.0, 1.0), "b": (0.0, 1.0), "lr": Real(1e-4, 1.0, log=True)}
WHOLE = {"n": Int(1, 9), "m": Int(0, 8), "c": ["x", "y"], "lr": Real(1e-4, 1.0, log=True)}
BRANCHES = {
    "kind": ["svm", "tree"],
    "depth": Int(1, 9, when={"kind": "tree"}),
    "c": Real(1e-3, 1e3, log=True, when={"kind": "svm"}),
}
TABLE = pd.DataFrame({"a": np.linspace(0.0, 1.0, 12), "c": ["x", "y", "z"] * 4}, index=list("abcdefghijkl"))


def small_sum(point: Any) -> bool:
    return bool(point["a"] + point["b"] <= 1.2)


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
    "rows": (np.random.default_rng(0).random((40, 2)), None),
    "a table": (TABLE, None),
    "a table, some rows": (TABLE, [Forbidden(c="x")]),
}


def copies(thing: Any) -> Iterator[Any]:
    yield from (pickle.loads(pickle.dumps(thing, protocol)) for protocol in (2, pickle.HIGHEST_PROTOCOL))
    yield copy.deepcopy(thing)
    yield copy.copy(thing)


def use(space: Space) -> Iterator[object]:
    """Use a space in every way that may make it remember something, one after another."""
    yield repr(space)
    if isinstance(space, Parameters):
        rng = np.random.default_rng(0)
        yield space.feasible_set.spread(lambda log2: space.from_unit(sobol(space.unit_dim, log2, (1,))), 64, rng)
        yield space.feasible_set.contains(space.from_unit(sobol(space.unit_dim, 4, (2,))))
    else:
        yield space.rows
    yield space.groups, space.units, space.span


@pytest.mark.parametrize("name", SPACES)
def test_a_space_is_copied_after_any_use(name: str) -> None:
    made, constraints = SPACES[name]
    space = Space.of(made).constrained(constraints)
    for _ in itertools.chain([None], use(space)):
        assert [repr(one) for one in copies(space)] == [repr(space)] * 4
    for one in copies(space):
        for mine, its in zip(use(space), use(one), strict=True):
            np.testing.assert_equal(its, mine)


def states(opt: Optimizer, f: Callable[[Any], float], values: int) -> Iterator[str]:
    """Bring an optimizer into one state after another; yield the name of each."""
    yield "new"
    for i in range(values):
        x = opt.ask()
        opt.tell(x, f(x))
        if i in (0, values // 2):
            yield f"{i + 1} told"
    opt.fail(opt.ask())
    yield "failed"
    opt.ask(2)
    yield "pending"
    opt.recommend()
    yield "recommended"
    assert opt.ledger is not None
    opt.ledger.regret()
    str(opt.ledger.calibration)
    yield "with a ledger"
    opt.forget(opt.pending[0])
    opt.retract(next(t for t in opt.trials if t.status == "told"))
    yield "corrected"


def check(opt: Optimizer, f: Callable[[Any], float], values: int) -> None:
    for state in states(opt, f, values):
        for one in list(copies(opt))[:3]:
            assert repr(one) == repr(opt), state
            assert [repr(trial) for trial in one.trials] == [repr(trial) for trial in opt.trials], state
    again = list(copies(opt))[:3]
    mine = opt.space.encode(opt.ask())
    for one in again:
        np.testing.assert_array_equal(one.space.encode(one.ask()), mine)


def check_recipe(recipe: Recipe) -> None:
    space = recipe.space() if callable(recipe.space) else recipe.space
    check(Optimizer(space, **{"aim": "earn", **recipe.options}), recipe.f, 8)


@pytest.mark.parametrize("recipe", RECIPES[5::19], ids=lambda recipe: recipe.name)
def test_an_optimizer_is_copied_in_every_state(recipe: Recipe) -> None:
    check_recipe(recipe)


@pytest.mark.slow
@pytest.mark.skipif("GPMI_HISTORIES" not in os.environ, reason="minutes long; make fuzz runs it")
def test_all_optimizers_are_copied_in_every_state() -> None:
    for recipe in RECIPES:
        check_recipe(recipe)


@pytest.mark.parametrize("name", SPACES)
def test_an_optimizer_of_any_space_is_copied_in_every_state(name: str) -> None:
    space, constraints = SPACES[name]
    value = itertools.count()
    noise: Any = "student" if name in ("box", "a table") else "normal"
    opt = Optimizer(space, constraints=constraints, seed=1, noise=noise, budget=12)
    check(opt, lambda x: float(np.sin(next(value))), 6)
