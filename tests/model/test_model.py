"""The model after n values is the same, however the values arrived and whoever reads it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpmi import GPMI, LogEI, Optimizer, Reinvest, kernels
from gpmi._support.types import Observations
from gpmi.model.fitting import schedule
from gpmi.model.fitting.schedule import PriorSchedule
from gpmi.model.model import Model, ModelSetting
from gpmi.model.orientation import MirroredNormals, Orientation
from gpmi.space import Space

BOX = [(0.0, 1.0), (-5.0, 5.0)]
GIVEN = {"kernel": kernels.RBF(0.4), "noise_var": 1e-3}


def hill(x: Any) -> float:
    return float(-((x[0] - 0.3) ** 2) - 0.01 * (x[1] - 1.0) ** 2)


def setting(seed: int = 0, **arguments: Any) -> ModelSetting:
    space = Space.of(BOX)
    given = {"kernel": None, "noise_var": None, "fit": "map", **arguments}
    return ModelSetting(space, PriorSchedule(**given, span=space.span, groups=space.groups, seed=seed), seed)


def data(n: int) -> tuple[list[np.ndarray], np.ndarray]:
    rows = [np.array([u, 10.0 * v - 5.0]) for u, v in np.random.default_rng(0).random((n, 2))]
    return rows, np.array([hill(row) for row in rows])


@pytest.mark.parametrize("arguments", [{}, GIVEN, {"fit": "mcmc"}], ids=["learned", "given", "mcmc"])
@pytest.mark.parametrize("n", [1, 9, 21])
def test_a_model_made_at_once_equals_one_extended_value_by_value(arguments: dict[str, Any], n: int) -> None:
    """To the last bit, whatever was known before."""
    where = setting(**arguments)
    rows, y = data(n)
    model: Model | None = None
    for t in range(1, n + 1):
        model = Model.after(where, Observations.of(np.array(rows[:t]), y[:t]), model)
    assert model is not None
    at_once = Model.after(setting(**arguments), Observations.of(np.array(rows), y))
    z = np.random.default_rng(1).random((7, 2))
    for ours, theirs in zip(model.mixture, at_once.mixture, strict=True):
        np.testing.assert_array_equal(ours(z), theirs(z))
    np.testing.assert_array_equal(model.recommendation.row, at_once.recommendation.row)


def test_extending_keeps_the_prior_and_learning_changes_it() -> None:
    where, (rows, y) = setting(), data(12)
    every = Observations.of(np.array(rows), y)
    ten = Model.after(where, every.first(10))
    assert ten.extended(every).prior is ten.prior and ten.extended(every).n == 12
    assert Model.after(where, every, ten).prior is not ten.prior
    assert ten.extended(every.first(10)) is ten


@pytest.mark.parametrize("goal", ["max", "min"])
def test_the_optimizer_and_its_ledger_hold_the_same_model(goal: Any) -> None:
    opt = Optimizer(BOX, seed=0, goal=goal)
    for _ in range(12):
        x = opt.ask()
        opt.tell(x, hill(x) if goal == "max" else -hill(x))
    model = opt.model
    assert model is not None and opt.ledger.model.posterior is model.posterior
    np.testing.assert_array_equal(opt.ledger.regret().recommended, opt.recommend())


def test_reading_twice_computes_once() -> None:
    opt = Optimizer(BOX, seed=0)
    for _ in range(8):
        x = opt.ask()
        opt.tell(x, hill(x))
    assert opt.model is opt.model
    assert opt.ledger.model is opt.model


@pytest.mark.parametrize("policy", [None, GPMI(), LogEI("mean"), Reinvest(c=2.0)], ids=repr)
@pytest.mark.parametrize("arguments", [{}, GIVEN, {"fit": "loo"}], ids=["learned", "given", "loo"])
def test_minimising_minus_f_is_maximising_f(policy: Any, arguments: dict[str, Any]) -> None:
    """Query by query and number by number: the sign changes where values enter and leave, and nowhere else."""
    up, down = Optimizer(BOX, policy, seed=1, **arguments), Optimizer(BOX, policy, seed=1, goal="min", **arguments)
    for _ in range(12):
        x, z = up.ask(), down.ask()
        np.testing.assert_array_equal(x, z)
        a, b = up.tell(x, hill(x)), down.tell(z, -hill(z))
        assert (a.sd, a.phi, a.gamma_hat, a.explored) == (b.sd, b.phi, b.gamma_hat, b.explored)
        if a.mu is not None and b.mu is not None:
            assert a.mu == -b.mu
        if a.surprise is not None and b.surprise is not None:
            assert a.surprise == -b.surprise
    assert up.posterior is not None and down.posterior is not None
    at = np.random.default_rng(0).random((5, 2))
    np.testing.assert_array_equal(up.posterior.mu(at), -down.posterior.mu(at))
    np.testing.assert_array_equal(up.recommend(), down.recommend())
    gains = [opt.ledger.improvement for opt in (up, down)]  # each at the maxima of its own draws
    assert gains[0] == pytest.approx(gains[1], rel=0.1, abs=0.01 * float(np.ptp(up.ledger.y)))


def test_a_transformed_y_is_told_in_the_users_orientation() -> None:
    """Both goals name the same knee, on their own side of 0."""
    events: dict[str, str] = {}
    for goal, sign in (("max", 1.0), ("min", -1.0)):
        opt = Optimizer(BOX, seed=0, goal=goal)  # type: ignore[arg-type]
        for row in data(16)[0]:
            opt.tell(row, -sign * float(np.exp(8.0 * row[0])))
        warp = opt.warp
        assert warp.bends
        y = np.array([trial.y for trial in opt.trials], dtype=float)
        np.testing.assert_allclose(warp.inverse(warp(y)), y, rtol=1e-9)
        assert opt.posterior is not None
        np.testing.assert_array_equal(opt.posterior.y, warp(y))
        events[goal] = next(event.message for event in opt.events if event.kind == "transformed")
    assert "below -" in events["max"] and "above " in events["min"]


def test_turning_twice_changes_nothing_and_zero_has_no_sign() -> None:
    turn = Orientation("min")
    for y in (1.5, -2.0, 0.0):
        assert turn.value(turn.value(y)) == y
    assert np.copysign(1.0, turn.value(0.0)) == 1.0
    assert Orientation("max").value(3.0) == 3.0


def test_mirrored_normals_are_the_negatives_of_the_same_numbers() -> None:
    plain, mirrored = np.random.default_rng(5), Orientation("min").normals(np.random.default_rng(5))
    assert isinstance(mirrored, MirroredNormals)
    np.testing.assert_array_equal(plain.standard_normal((3, 2)), -mirrored.standard_normal((3, 2)))
    np.testing.assert_array_equal(plain.integers(10, size=4), mirrored.integers(10, size=4))


@pytest.mark.parametrize("n", [0, 5])
def test_a_mirrored_posterior_is_that_of_minus_f(n: int) -> None:
    from gpmi import Posterior

    rows, y = data(n)
    prior = Posterior.prior(kernels.RBF(0.4), 1e-3, mean=0.7)
    posterior = prior.condition(np.array(rows), y) if n else prior
    z = np.random.default_rng(1).random((4, 2))
    mu, var = posterior(z)
    mirrored_mu, mirrored_var = posterior.mirrored()(z)
    np.testing.assert_array_equal(mirrored_mu, -mu)
    np.testing.assert_array_equal(mirrored_var, var)


def test_a_bulk_load_costs_one_fit_and_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    """128 values and more that are there before the first question are fitted at once, with a warp of their own."""
    fits: list[int] = []
    once = schedule.fit

    def counted(setting: Any, x: Any, *given: Any, **named: Any) -> Any:
        fits.append(len(x))
        return once(setting, x, *given, **named)

    monkeypatch.setattr(schedule, "fit", counted)
    x = np.random.default_rng(0).random((200, 2))
    opt = Optimizer([(0.0, 1.0)] * 2, seed=0)

    def f(row: Any) -> float:
        return float(np.exp(np.sin(5.0 * row[0]) + row[1]))

    for row in x:
        opt.tell(row, f(row))
    first = opt.ask()
    assert fits == [192]
    again = Optimizer([(0.0, 1.0)] * 2, seed=0)
    again.replay(opt.trials[:-1])
    np.testing.assert_array_equal(again.ask(), first)
    opt.tell(first, f(first))
    for _ in range(56):
        opt.tell(row := opt.ask(), f(row))
    assert fits == [192, 192, 224, 256]  # the second is that of the replay; those after start from the one before
