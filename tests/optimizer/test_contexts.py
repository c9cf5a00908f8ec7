"""Given coordinates: the argmax over the others, replay, the ledger, and what is refused."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import gpmi
from gpmi import EI, GPMI, GPUCB, Choice, Forbidden, Int, LogEI, Optimizer, Real, Reinvest, SpaceExhausted, kernels
from gpmi.model.model import objective
from gpmi.optimizer.contexts import discounted, share_of_gain, with_best_here
from gpmi.policies import Mean, State

BOX = [(0.0, 1.0), (-2.0, 3.0)]
MIXED = {
    "rate": Real(1e-3, 1.0, log=True),
    "kind": ["a", "b", "c"],
    "gain": Real(0.0, 1.0, when={"kind": "a"}),
    "count": Int(1, 9),
}
KERNEL = kernels.RBF(lengthscale=(0.3, 1.2), variance=2.0)


def wave(x: Any) -> float:
    return float(np.sin(5.0 * x[0]) * np.cos(x[1]) - 0.3 * x[1] * (x[0] - 0.4))


def told(space: Any = BOX, n: int = 12, **options: Any) -> Optimizer:
    """An optimizer that was told n values at random points."""
    opt = Optimizer(space, kernel=KERNEL, noise_var=1e-4, seed=3, **options)
    rng = np.random.default_rng(0)
    for u in rng.random((n, 2)):
        x = np.array([u[0], -2.0 + 5.0 * u[1]])
        opt.tell(x, wave(x))
    return opt


def mixed_value(x: dict[str, Any]) -> float:
    return float(np.log(x["rate"]) / 7.0 - 0.1 * (x["count"] - 4) ** 2 + (x["kind"] == "b") + x.get("gain", 0.0))


def mixed(constraints: Any = None, seed: int = 0) -> Optimizer:
    opt = Optimizer(MIXED, seed=seed, constraints=constraints)
    for _ in range(10):
        x = opt.ask()
        opt.tell(x, mixed_value(x))
    return opt


@pytest.mark.parametrize("policy", [GPUCB(), GPMI(), EI(), LogEI("mean"), Reinvest(), Mean()], ids=repr)
@pytest.mark.parametrize("context", [-2.0, 0.3, 2.9])
def test_the_choice_is_the_best_of_a_dense_grid_of_the_other_coordinates(policy: gpmi.Policy, context: float) -> None:
    opt = told(policy=policy)
    part = opt.space.with_fixed({1: context})
    assert opt.model is not None
    grid = np.column_stack([np.linspace(0.0, 1.0, 20_001), np.full(20_001, context)])
    scored = with_best_here(objective(opt.model, policy, opt._log, None), opt.model, part)
    if isinstance(policy, Reinvest):
        scored = discounted(scored, opt.model, part, opt._log)
        assert scored.state.alike == share_of_gain(opt.model, part, opt._log) < 1.0
    best = np.max(scored.posterior.mu(grid))
    assert scored.state.best_mean == pytest.approx(best, abs=1e-6)  # of these coordinates alone
    x = opt.ask(fixed={1: context})
    assert x[1] == context
    scores = scored(grid)
    assert scored(x[None])[0] >= scores.max() - 1e-5 * np.ptp(scores)


def test_the_recommendation_is_the_best_mean_of_a_dense_grid() -> None:
    opt = told()
    assert opt.posterior is not None
    for context in (-1.5, 0.0, 2.2):
        grid = np.column_stack([np.linspace(0.0, 1.0, 20_001), np.full(20_001, context)])
        x = opt.recommend(fixed={1: context})
        assert x[1] == context
        assert opt.posterior.mu(x[None])[0] >= opt.posterior.mu(grid).max() - 1e-9


def test_a_table_is_searched_among_the_rows_with_the_value() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.random(60), "day": rng.integers(0, 3, 60), "kind": rng.choice(["x", "y"], 60)})
    opt = Optimizer(frame, policy=GPUCB(), seed=0, n_init=6)
    for _ in range(20):
        fixed = {"day": int(rng.integers(3)), "kind": str(rng.choice(["x", "y"]))}
        x = opt.ask(fixed=fixed)
        assert {name: x[name] for name in fixed} == fixed
        trial = opt.trials[-1]
        if trial.origin == "policy":
            assert opt.model is not None and opt.space.rows is not None
            part = opt.space.with_fixed(fixed)
            log = Optimizer(frame, policy=GPUCB(), seed=0, n_init=6).replay(opt.trials[:-1])._log
            scored = with_best_here(objective(opt.model, opt.policy, log, None), opt.model, part)
            assert part.rows is not None
            scores = scored(part.rows)
            assert scored(opt.space.encode(x)[None])[0] >= scores.max() - 1e-9 * abs(scores.max())
        opt.tell(x, x["a"] * (1 + x["day"]) + (x["kind"] == "x"))
    best = opt.recommend(fixed={"day": 2})
    assert best["day"] == 2 and opt.ask(2, fixed={"day": 1})[1]["day"] == 1
    with pytest.raises(ValueError, match=r"fixed: day is 1\.5, which no candidate has; the nearest value is"):
        opt.ask(fixed={"day": 1.5})
    with pytest.raises(ValueError, match="fixed: kind is 'z'"):
        opt.ask(fixed={"kind": "z"})
    lonely = pd.DataFrame({"a": [0.0, 1.0], "b": [0.0, 1.0]})
    with pytest.raises(ValueError, match="no candidate has these values together"):
        Optimizer(lonely, seed=0).ask(fixed={"a": 0.0, "b": 1.0})


def test_the_design_has_the_given_coordinates_and_differs_in_the_others() -> None:
    opt, rng = Optimizer(BOX, seed=0, n_init=8), np.random.default_rng(0)
    points = [opt.ask(fixed={1: float(c)}) for c in rng.uniform(-2.0, 3.0, 8)]
    assert all(trial.origin == "design" for trial in opt.trials)
    others = np.sort([x[0] for x in points])
    assert np.all(np.diff(others) > 0.02) and others[0] < 0.2 and others[-1] > 0.8
    assert [trial.fixed for trial in opt.trials] == [{1: x[1]} for x in points]


def test_a_starting_point_waits_for_its_coordinates() -> None:
    opt = Optimizer(BOX, seed=0, x0=[0.25, 1.0])
    assert opt.ask(fixed={1: 2.0})[1] == 2.0
    np.testing.assert_array_equal(opt.ask(fixed={1: 1.0}), [0.25, 1.0])


@pytest.mark.parametrize(
    "fixed", [{"rate": 0.0123}, {"kind": "a", "gain": 0.3}, {"count": 3, "kind": "b"}, {"kind": "a"}], ids=str
)
@pytest.mark.parametrize("constraints", [None, ["rate + 0.1*count <= 0.8", Forbidden(kind="c", count=[1, 2])]], ids=str)
def test_mixed_spaces_keep_to_everything(fixed: dict[str, Any], constraints: Any) -> None:
    opt = mixed(constraints)
    for x in [*opt.ask(3, fixed=fixed), opt.recommend(fixed=fixed)]:
        assert {name: x[name] for name in fixed} == fixed  # to the last digit
        opt.space.encode(x)  # refuses what is not a point, or breaks a constraint
        assert ("gain" in x) == (x["kind"] == "a")
        assert constraints is None or x["rate"] + 0.1 * x["count"] <= 0.8 + 1e-9


def test_mixtures_with_a_given_share() -> None:
    space = {name: (0.0, 1.0) for name in "abcd"}
    opt = Optimizer(space, constraints="a + b + c + d == 1", seed=0)
    for share in (0.2, 0.7, 0.2, 0.5, 0.999999, 1.0, 0.3, 0.4, 0.6, 0.1):
        x = opt.ask(fixed={"b": share})
        assert x["b"] == share and sum(x.values()) == pytest.approx(1.0, abs=1e-9)
        opt.tell(x, -((x["a"] - 0.3) ** 2) - x["b"] * x["c"])


def test_a_function_that_forbids_is_asked_about_the_whole_point() -> None:
    opt = Optimizer(BOX, seed=0, constraints=lambda x: x[0] + 0.3 * x[1] < 0.5)
    for c in (-1.0, 0.5, 1.2, -2.0, 0.0, 1.0, 0.7):
        x = opt.ask(fixed={1: c})
        assert x[1] == c and x[0] + 0.3 * c < 0.5
        opt.tell(x, wave(x))
    with pytest.raises(ValueError, match="leaves no point"):
        opt.ask(fixed={1: 2.5})


@pytest.mark.parametrize(
    ("fixed", "kind", "words"),
    [
        (3, TypeError, "give a dict"),
        ([("rate", 0.1)], TypeError, "give a dict"),
        ({"speed": 1}, ValueError, "not a parameter"),
        ({0: 1}, ValueError, "not a parameter"),
        ({"rate": 2.0}, ValueError, "outside"),
        ({"rate": "fast"}, TypeError, "rate"),
        ({"count": 2.5}, (TypeError, ValueError), "count"),
        ({"kind": "d"}, ValueError, "kind"),
        ({"gain": 0.5}, ValueError, "only where kind = 'a'"),
        ({"gain": 0.5, "kind": "b"}, ValueError, "only where kind = 'a'"),
        ({"count": 9}, ValueError, "leaves no point"),
        ({"count": 7, "rate": 0.5}, ValueError, "breaks the constraint"),
        ({"kind": "c", "count": 1}, ValueError, "Forbidden"),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(fixed: Any, kind: Any, words: str) -> None:
    opt = mixed(["rate + 0.1*count <= 0.8", Forbidden(kind="c", count=[1, 2])])
    before = opt.trials
    for call in (opt.ask, opt.recommend, opt.ledger.regret):
        with pytest.raises(kind, match=words):
            call(fixed=fixed)
    assert opt.trials == before


def test_the_keys_of_a_box_are_numbers() -> None:
    opt = told()
    for wrong in ({2: 0.5}, {-1: 0.5}, {"0": 0.5}, {True: 0.5}):
        with pytest.raises(ValueError, match="0 to 1"):
            opt.ask(fixed=wrong)
    assert opt.ask(fixed={np.int64(0): 0.5})[0] == 0.5


def test_nothing_given_is_as_if_nothing_was_said() -> None:
    np.testing.assert_array_equal(told().ask(fixed={}), told().ask())
    np.testing.assert_array_equal(told().recommend(fixed={}), told().recommend())
    assert told().ask(fixed={}) is not None and told().trials[-1].fixed is None


def test_everything_given_leaves_one_point() -> None:
    opt = Optimizer(BOX, seed=0, repeats=False)
    np.testing.assert_array_equal(opt.ask(fixed={0: 0.5, 1: 0.0}), [0.5, 0.0])
    opt.tell([0.5, 0.0], 1.0)
    np.testing.assert_array_equal(opt.recommend(fixed={0: 0.5, 1: 0.0}), [0.5, 0.0])


def test_a_row_is_offered_once_without_repeats() -> None:
    table = np.array([[a, b] for a in (0.0, 1.0, 2.0) for b in (0.0, 1.0)])
    opt = Optimizer(table, seed=0, repeats=False, n_init=1)
    for _ in range(3):
        x = opt.ask(fixed={1: 1.0})
        opt.tell(x, float(x[0]))
    with pytest.raises(SpaceExhausted):
        opt.ask(fixed={1: 1.0})
    assert len(opt.ask(5, fixed={1: 0.0})) == 3


@pytest.mark.parametrize("order", ["as asked", "backwards"])
def test_a_run_with_contexts_and_batches_replays_exactly(order: str) -> None:
    opt, rng = Optimizer(MIXED, seed=4), np.random.default_rng(2)
    for i in range(7):
        fixed = [{"rate": float(rng.uniform(0.01, 1.0))}, None, {"kind": "a", "gain": 0.5}][i % 3]
        points = opt.ask(3, fixed=fixed)
        for x in points if order == "as asked" else points[::-1]:
            opt.tell(x, mixed_value(x))
    opt.ask(2, fixed={"count": 5})
    again = Optimizer(MIXED, seed=4).replay(opt.trials)
    assert [trial.fixed for trial in again.trials] == [trial.fixed for trial in opt.trials]
    copy = pickle.loads(pickle.dumps(opt))
    for fixed in ({"rate": 0.07}, None, {"count": 5}):
        x = opt.ask(fixed=fixed)
        assert again.ask(fixed=fixed) == x and copy.ask(fixed=fixed) == x
    assert "fixed {'count': 5}" in repr(opt.trials[-1])


def test_a_wrong_context_in_a_replayed_trial_is_refused() -> None:
    from dataclasses import replace

    opt = told()
    opt.ask(fixed={1: 0.5})
    wrong = [*opt.trials[:-1], replace(opt.trials[-1], fixed={1: 9.0})]
    with pytest.raises(ValueError, match="outside"):
        Optimizer(BOX, seed=3).replay(wrong)


@pytest.mark.parametrize("value", [1.0, 1e-30])
def test_with_one_value_the_told_row_is_recommended_unless_another_mean_is_larger(value: float) -> None:
    """A mean that is larger by less than a rounding of the prior's standard deviation is not larger."""
    rows = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    opt = Optimizer(rows, kernel=kernels.RBF(0.3), goal="min", seed=0)
    opt.tell(rows[0], value)
    assert opt.recommend(fixed={0: 0.0}).tolist() == [0.0, 1.0 if value == 1.0 else 0.0]


def test_an_unlikely_context_is_not_recommended_where_it_fails() -> None:
    opt = Optimizer(BOX, seed=1)
    for _ in range(25):
        x = opt.ask()
        if x[0] > 0.6:
            opt.fail(x, why="too hot")
        else:
            opt.tell(x, 2.0 * float(x[0]) + 0.1 * float(x[1]))
    assert opt.model is not None
    for context in (-1.0, 0.5, 2.5):
        x = opt.recommend(fixed={1: context})
        assert x[1] == context and opt.model.allowed(x[None])[0] and x[0] < 0.7


def crashing(seed: int, space: Any, budget: int, *, measured: bool = False) -> Optimizer:
    """A run of something that grows with its last parameter and does not work where that is above 1.2."""
    opt = Optimizer(space, seed=seed)
    for _ in range(budget):
        p = opt.ask()
        if measured:
            opt.tell(p, p["damp"] + 0.1 * (p["solver"] == "rk4"), constraints=[p["damp"] - 1.2])
        elif p["damp"] > 1.2:
            opt.fail(p)
        else:
            opt.tell(p, p["damp"] + 0.1 * (p["solver"] == "rk4"))
    return opt


SOLVER = {"solver": ["euler", "rk4"], "cells": Int(10, 60), "dt": Real(1e-4, 0.1, log=True), "damp": (0.0, 2.0)}


@pytest.mark.parametrize("measured", [False, True], ids=["failures", "constraints"])
def test_what_is_recommended_with_given_coordinates_has_worked(measured: bool) -> None:
    opt = crashing(5, SOLVER, 25, measured=measured)
    best = opt.recommend()
    assert opt.recommend(fixed={name: best[name] for name in ("solver", "cells", "dt")}) == best
    told = [trial.x for trial in opt.trials if trial.feasible]
    for solver in SOLVER["solver"]:
        assert opt.recommend(fixed={"solver": solver}) in told


def test_where_no_told_point_has_the_coordinates_the_recommended_one_is_safe_or_the_safest() -> None:
    opt = crashing(5, SOLVER, 25)
    assert opt.model is not None and opt.model.chance is not None
    told = {trial.x["cells"] for trial in opt.trials if trial.status == "told"}
    lowest_failure = min(trial.x["damp"] for trial in opt.trials if trial.status == "failed")
    for cells in sorted(set(range(10, 60, 5)) - told):
        x = opt.recommend(fixed={"cells": cells})
        p = float(opt.model.chance(opt.space.encode(x)[None])[0])
        part = opt.space.with_fixed({"cells": cells})
        some = np.array(
            [part.encode(part.decode(part.from_unit(u)[0])) for u in np.random.default_rng(0).random((400, 1, 4))]
        )
        assert x["damp"] < lowest_failure and (p >= 0.95 or p >= opt.model.chance(some).max() - 0.01)


def test_a_table_with_failures_recommends_a_row_that_worked_if_one_with_the_value_did() -> None:
    rows = [
        {"solver": s, "cells": 10, "dt": 0.01, "damp": d} for s in ("euler", "rk4") for d in np.linspace(0.0, 2.0, 21)
    ]
    opt = crashing(1, pd.DataFrame(rows), 9)
    told = [trial.x for trial in opt.trials if trial.status == "told"]
    assert any(trial.status == "failed" for trial in opt.trials)
    for solver in {x["solver"] for x in told}:
        assert opt.recommend(fixed={"solver": solver}) in told


# The ledger


def test_the_regret_of_a_query_is_that_of_its_context() -> None:
    """Whoever takes the best point of every context has no regret, although most contexts are worse than the best."""

    def f(x: Any) -> float:
        return float(-4.0 * (x[0] - 0.3) ** 2 - 0.5 * (x[1] + 2.0))  # the best x[0] is 0.3 in every context

    opt = Optimizer(BOX, kernel=kernels.RBF((0.5, 3.0), variance=9.0), noise_var=1e-6, policy=Mean(), seed=0)
    for a in np.linspace(0.0, 1.0, 6):
        for b in (-2.0, 0.5, 3.0):
            opt.tell([a, b], f([a, b]))
    for context in np.linspace(-2.0, 3.0, 12):
        x = opt.ask(fixed={1: float(context)})
        opt.tell(x, f(x))
    against_all = sum(f([0.3, -2.0]) - f(trial.x) for trial in opt.trials if trial.origin == "policy")
    own = sum(f([0.3, trial.x[1]]) - f(trial.x) for trial in opt.trials if trial.origin == "policy")
    cumulative = opt.ledger.regret().cumulative
    assert against_all > 10.0 and own < 0.01
    queries = [trial.x for trial in opt.trials if trial.origin == "policy"]
    z = np.array([*queries, *([a, x[1]] for x in queries for a in np.linspace(0.0, 1.0, 80))])
    assert opt.posterior is not None
    draws = opt.posterior.sample(z, np.random.default_rng(0), 2000)
    best = [np.maximum(draws[:, 12 + 80 * i : 92 + 80 * i].max(axis=1), draws[:, i]) for i in range(12)]
    exact = sum(top - draws[:, i] for i, top in enumerate(best))
    for q in (0.5, 0.9):
        assert np.quantile(cumulative, q) == pytest.approx(np.quantile(exact, q), rel=0.4)
    here = opt.ledger.regret(fixed={1: 0.5})
    assert here.recommended[1] == 0.5 and here.interval().upper < 0.01 and np.all(here.cumulative == 0.0)


def test_the_drawn_regret_agrees_with_a_joint_draw_at_all_rows() -> None:
    table = np.array([[a, b] for a in np.linspace(0.0, 1.0, 15) for b in (-1.0, 0.5, 2.0)])
    opt = Optimizer(table, kernel=KERNEL, noise_var=1e-2, policy=GPUCB(), seed=0)
    for i in range(15):
        x = opt.ask(fixed={1: (-1.0, 0.5, 2.0)[i % 3]})
        opt.tell(x, wave(x))
    assert opt.posterior is not None
    draws = opt.posterior.sample(table, np.random.default_rng(5), 20_000)
    numbers = [int(np.flatnonzero((table == trial.x).all(axis=1))[0]) for trial in opt.trials]
    exact = np.zeros(len(draws))
    for number in numbers:
        exact += draws[:, table[:, 1] == table[number, 1]].max(axis=1) - draws[:, number]
    ours = opt.ledger.regret().cumulative
    for q in (0.1, 0.5, 0.9):  # the error of a quantile of 512 draws is about 0.08 sd at the ends
        assert np.quantile(ours, q) == pytest.approx(np.quantile(exact, q), abs=0.25 * exact.std())
    one = opt.ledger.regret(fixed={1: 0.5})
    mine = [n for n in numbers if table[n, 1] == 0.5]
    rows = table[:, 1] == 0.5
    exact_one = sum(draws[:, rows].max(axis=1) - draws[:, n] for n in mine)
    assert np.median(one.cumulative) == pytest.approx(np.median(exact_one), abs=0.2 * exact_one.std())


def test_a_policy_that_knows_the_context_has_less_than_half_the_regret() -> None:
    """The best x depends on a context that nobody controls; a policy that ignores it can only hedge."""

    def f(a: float, c: float) -> float:
        return float(np.exp(-8.0 * (a - 0.2 - 0.6 * c) ** 2))

    contexts = np.random.default_rng(0).random(40)
    knows, ignores = Optimizer([(0.0, 1.0)] * 2, aim="earn", seed=0), Optimizer([(0.0, 1.0)], aim="earn", seed=0)
    with_context = without = 0.0
    for c in contexts.tolist():
        x = knows.ask(fixed={1: c})
        knows.tell(x, f(x[0], c))
        with_context += 1.0 - f(x[0], c)
        z = ignores.ask()
        ignores.tell(z, f(z[0], c))
        without += 1.0 - f(z[0], c)
    assert with_context < 0.5 * without


def test_a_choice_with_order_may_be_given() -> None:
    opt = Optimizer({"size": Choice([16, 32, 64], ordered=True), "x": (0.0, 1.0)}, seed=0)
    for size in (16, 64, 32, 32, 16, 64, 32):
        x = opt.ask(fixed={"size": size})
        assert x["size"] == size
        opt.tell(x, x["x"] * size)


def test_earn_counts_a_gain_as_often_as_it_serves_under_other_coordinates() -> None:
    """At a correlation r there is r h(2 / r) / h(2) left of an improvement by two sd."""
    earn, find = told(aim="earn", budget=30), told(budget=30)
    part, model = earn.space.with_fixed({1: 1.0}), earn.model
    assert model is not None
    r = np.exp(-((np.array([trial.x[1] for trial in earn.trials]) - 1.0) ** 2) / (2.0 * 1.2**2))

    def h(z: Any) -> Any:
        return norm.pdf(z) - z * norm.sf(z)

    alike = float(np.mean(r * h(2.0 / r) / h(2.0)))
    assert 0.05 < alike < 0.5
    assert share_of_gain(model, part, earn._log) == pytest.approx(alike, rel=1e-9)
    x, other = earn.ask(fixed={1: 1.0}), find.ask(fixed={1: 1.0})
    best = float(model.posterior.mu(model.recommendation.best_mean_in(part)[None])[0])
    for opt, share in ((earn, alike), (find, 1.0)):  # with aim="find" what is learned counts, whatever it serves
        point = (x if opt is earn else other)[None]
        mu, var = model.posterior(point)
        state = State(t=1, best_mean=best, horizon=18, alike=share)
        assert opt.pending[0].phi == pytest.approx(float(Reinvest().phi(var, state, mu)[0]), rel=1e-6)


def test_all_of_a_gain_is_left_where_the_coordinates_are_always_the_same() -> None:
    opt = Optimizer(BOX, kernel=KERNEL, noise_var=1e-4, seed=3, aim="earn")
    for x in (0.1, 0.5, 0.8):
        opt.tell([x, 1.0], wave([x, 1.0]))
    assert opt.model is not None
    assert share_of_gain(opt.model, opt.space.with_fixed({1: 1.0}), opt._log) == 1.0


@pytest.mark.parametrize("names", [("k", "x", "c"), ("k", "c", "x"), ("x", "c", "k")])
def test_a_constant_does_not_shift_what_is_given(names: tuple[str, ...]) -> None:
    """The share of a gain that serves elsewhere is that of the space without the constant."""
    sides: dict[str, Any] = {"k": 7, "x": (0.0, 1.0), "c": (0.0, 1.0)}
    shares = []
    for kept in (names, tuple(name for name in names if name != "k")):
        opt = Optimizer({name: sides[name] for name in kept}, seed=0, aim="earn", budget=20)
        for x, c in np.random.default_rng(5).random((8, 2)):
            point = {"k": 7, "x": x, "c": c}
            opt.tell({name: point[name] for name in kept}, wave([x, 3.0 * c]))
        assert opt.model is not None
        shares.append(share_of_gain(opt.model, opt.space.with_fixed({"c": 0.5}), opt._log))
    assert shares[0] == pytest.approx(shares[1], rel=1e-9) and shares[0] < 0.999


def test_values_of_any_size_carry_over_to_other_contexts() -> None:
    """The variance of a kernel that was fitted to 1e90 has a square that is too large for a number."""
    shares = []
    for size in (1.0, 1e90):
        opt = Optimizer(np.array([[0.0], [1.0]]), aim="earn", fit="loo", seed=0)
        opt.tell(opt.ask(fixed={0: 0.0}), 0.0)
        opt.tell([0.0], size)
        x = opt.ask(fixed={0: 0.0})
        assert x[0] == 0.0 and opt.model is not None
        shares.append(share_of_gain(opt.model, opt.space.with_fixed({0: 0.0}), opt._log))
    assert shares[0] > 0.5 and abs(shares[0] - shares[1]) < 1e-6, shares
