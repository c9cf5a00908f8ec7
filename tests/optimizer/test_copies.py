"""Every optimizer and every space can be pickled and deep-copied, in every state, and the copies go on alike."""

from __future__ import annotations

import copy
import itertools
import os
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from recorded_runs import Recipe, recipes
from sample_spaces import SPACES

from gpmi import Optimizer
from gpmi._support.sobol import sobol
from gpmi.analysis.ledger import Ledger
from gpmi.analysis.ledger.front_ledger import FrontLedger
from gpmi.space import Parameters, Space

RECIPES = list(recipes())


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
        y, limits = measured if isinstance(measured := f(x), tuple) else (measured, None)
        opt.tell(x, y, constraints=limits)
        if i in (0, values // 2):
            yield f"{i + 1} told"
    opt.fail(opt.ask())
    yield "failed"
    opt.ask(2)
    yield "pending"
    use_model(opt)
    yield "recommended"
    use_ledger(opt.ledger)
    yield "with a ledger"
    opt.forget(opt.pending[0])
    opt.retract(next(t for t in opt.trials if t.status == "told"))
    yield "corrected"


def use_model(opt: Optimizer) -> None:
    if opt.goals.single is None:
        assert opt.models
    else:
        opt.recommend()


def use_ledger(ledger: Ledger | FrontLedger) -> None:
    if isinstance(ledger, FrontLedger):
        assert ledger.missing.how
    else:
        ledger.regret()
        str(ledger.calibration)


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


@pytest.mark.fuzz
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
