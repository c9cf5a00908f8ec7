"""Points that are evaluated at the same time: GP-UCB-PE, and batches that do not clump."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpmi import GPUCB, GPUCBPE, Int, Optimizer, kernels
from gpmi.analysis.ledger.ledger import SAME
from gpmi.gp.posterior import Posterior
from gpmi.policies import State
from gpmi.search.subspaces import Subspaces

KERNEL = kernels.RBF(lengthscale=0.25, variance=1.5)
BOX = [(0.0, 1.0), (0.0, 1.0)]
PE = GPUCBPE(delta=0.1, scale=0.3)


def bumps(x: Any) -> float:
    return float(np.exp(-20.0 * ((x[0] - 0.3) ** 2 + (x[1] - 0.7) ** 2)) + 0.5 * np.sin(4.0 * x[0] + x[1]))


def table(size: int = 80) -> Any:
    return np.random.default_rng(7).random((size, 2))


def direct_batches(rows: Any, values: list[float], numbers: list[int], size: int) -> list[int]:
    """A batch of GP-UCB-PE from the values at some rows, by formulas and a dense solve, nothing shared but beta."""
    covariance = 1.5 * np.exp(-((rows[:, None] - rows) ** 2).sum(axis=2) / (2.0 * 0.25**2))

    def moments(at: list[int]) -> tuple[Any, Any]:
        c = covariance[np.ix_(at, at)] + 1e-3 * np.eye(len(at))
        k = covariance[at]
        mu = k.T @ np.linalg.solve(c, np.array(values)) if len(at) == len(values) else None
        return mu, np.maximum(1.5 - np.einsum("ij,ij->j", k, np.linalg.solve(c, k)), 0.0)

    mu, var = moments(numbers)
    w = np.sqrt(PE.scale * PE.beta(State(t=len(values) + 1, size=len(rows))))
    chosen = [int(np.argmax(mu + w * np.sqrt(var)))]
    inside = mu + 2.0 * w * np.sqrt(var) >= np.max(mu - w * np.sqrt(var))
    assert 0 < inside.sum() < len(rows), "the region must matter"
    while len(chosen) < size:
        variances = moments([*numbers, *chosen])[1]
        chosen.append(int(np.argmax(np.where(inside, variances, -np.inf))))
    return chosen


def test_gp_ucb_pe_is_what_its_formulas_say() -> None:
    rows = table()
    opt = Optimizer(rows, policy=PE, kernel=KERNEL, noise_var=1e-3, seed=0)
    numbers: list[int] = []
    values: list[float] = []
    first = opt.ask(6)
    for x in first:
        numbers.append(int(np.flatnonzero((rows == x).all(axis=1))[0]))
        values.append(bumps(x))
        opt.tell(x, values[-1])
    for _ in range(4):
        batch = opt.ask(5)
        asked = [int(np.flatnonzero((rows == x).all(axis=1))[0]) for x in batch]
        assert asked == direct_batches(rows, values, numbers, 5)
        for number, x in zip(asked, batch, strict=True):
            numbers.append(number)
            values.append(bumps(x))
            opt.tell(x, values[-1])


def test_on_a_box_the_others_explore_the_relevant_region() -> None:
    opt = Optimizer(BOX, policy=PE, kernel=KERNEL, noise_var=1e-3, seed=0)
    for x in np.random.default_rng(0).random((25, 2)):
        opt.tell(x, bumps(x))
    model = opt.model
    assert model is not None
    side = np.linspace(0.0, 1.0, 201)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    mu, var = model.posterior(grid)
    w = np.sqrt(PE.scale * PE.beta(State(t=1, size=1, dim=2)))
    level = np.max(mu - w * np.sqrt(var))
    inside = mu + 2.0 * w * np.sqrt(var) >= level
    assert 0.02 < inside.mean() < 0.9, "the region must matter"
    posterior: Posterior = model.posterior
    first, *others = opt.ask(5)
    np.testing.assert_array_less(
        np.max(mu + w * np.sqrt(var)), (lambda m, v: m + w * np.sqrt(v) + 1e-4)(*posterior(first[None]))[0]
    )
    posterior = posterior.anticipate(first)
    for x in others:
        there, spread = model.posterior(x[None])
        assert there[0] + 2.0 * w * np.sqrt(spread[0]) >= level - 1e-6
        best = np.sqrt(posterior(grid[inside])[1].max())
        assert np.sqrt(posterior(x[None])[1][0]) >= 0.97 * best  # the climb ends at the edge of the region
        posterior = posterior.anticipate(x)


def test_one_query_of_four_workers_is_that_of_gp_ucb() -> None:
    opt = Optimizer(table(), policy=PE, kernel=KERNEL, noise_var=1e-3, seed=0)
    rng = np.random.default_rng(1)
    waiting = list(opt.ask(4))
    assert [trial.phi is not None for trial in opt.pending] == [True, False, False, False]
    leaders = 0
    for _ in range(40):
        x = waiting.pop(int(rng.integers(4)))
        opt.tell(x, bumps(x))
        waiting.append(opt.ask())
        leaders += opt.trials[-1].phi is not None
        assert sum(trial.phi is not None for trial in opt.pending) == 1  # one at a time, and always one
    assert 5 <= leaders <= 20


def test_alone_it_is_gp_ucb() -> None:
    ours = Optimizer(BOX, policy=PE, kernel=KERNEL, noise_var=1e-3, seed=0)
    other = Optimizer(BOX, policy=GPUCB(delta=0.1, scale=0.3), kernel=KERNEL, noise_var=1e-3, seed=0)
    for _ in range(6):
        x, z = ours.ask(), other.ask()
        np.testing.assert_array_equal(x, z)
        ours.tell(x, bumps(x))
        other.tell(z, bumps(z))


@pytest.mark.parametrize("policy", [None, PE], ids=repr)
@pytest.mark.parametrize("space", ["box", "table"])
def test_without_noise_a_batch_has_no_two_equal_points(policy: Any, space: str) -> None:
    opt = Optimizer(BOX if space == "box" else table(40), policy=policy, seed=2, noise_var=0.0)
    for _ in range(7):
        batch = opt.ask(5)
        assert len({x.tobytes() for x in batch}) == 5
        for x in batch:
            opt.tell(x, bumps(x))


def test_find_does_not_clump() -> None:
    """No two pending points are at one place, also when the optimum is known to many digits."""
    opt = Optimizer(BOX, seed=0)
    for i in range(12):
        batch = np.array(opt.ask(4))
        apart = np.abs(batch[:, None] - batch).max(axis=2)[np.triu_indices(4, 1)]
        assert i < 2 or apart.min() > SAME
        for x in batch:
            opt.tell(x, -((x[0] - 0.3) ** 2) - (x[1] - 0.6) ** 2)
    best = opt.best
    assert best is not None and best.y is not None and best.y > -1e-6


@pytest.mark.parametrize("size", [4, 8])
def test_find_does_not_clump_on_one_number(size: int) -> None:
    """Where the region that is left is no larger than a place, a batch goes on elsewhere."""
    opt = Optimizer([(0.0, 1.0)], seed=0, budget=48)
    batches = 0
    while len(opt.trials) < 48:
        batch = opt.ask(size)
        numbers = np.sort([trial.x[0] for trial in opt.pending if trial.origin == "policy"])
        assert np.all(np.diff(numbers) > SAME)
        batches += len(numbers) > 1
        if batches == 3:
            opt.reject(batch.pop())  # its place and those of pending points are left alone together
        for x in batch:
            opt.tell(x, -((x[0] - 0.37) ** 2))
    assert batches >= 4


def test_a_batch_where_constraints_leave_few_points() -> None:
    """No two points are equal while there are others, even where all of the space is one place."""
    opt = Optimizer(
        {"a": (0.0, 1.0), "n": Int(0, 9)}, constraints=["a >= 0.4", "a <= 0.4005", "n >= 3", "n <= 5"], seed=0
    )
    for _ in range(6):
        batch = opt.ask(4)
        assert len({(x["a"], x["n"]) for x in batch}) == 4
        for x in batch:
            opt.tell(x, -((x["a"] - 0.4002) ** 2) - (x["n"] - 4) ** 2)
    few = Optimizer({"n": Int(1, 3), "m": Int(0, 9)}, constraints=["m <= 0"], seed=0)
    for _ in range(3):
        for x in few.ask(5):  # three points are all there is
            few.tell(x, float(x["n"]))


def late(size: int = 30, budget: int | None = 34) -> Optimizer:
    opt = Optimizer(BOX, kernel=KERNEL, noise_var=1e-6, seed=0, budget=budget)
    for x in np.random.default_rng(0).random((size, 2)):
        opt.tell(x, bumps(x))
    return opt


def test_near_the_end_one_point_of_a_batch_has_the_best_mean() -> None:
    opt, alone = late(), late()
    model = opt.model
    assert model is not None
    side = np.linspace(0.0, 1.0, 201)
    best = model.posterior.mu(np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)).max()
    batch = opt.ask(4)
    means = model.posterior.mu(np.array(batch))
    assert means[1] >= best - 1e-9 and [trial.phi == 0.0 for trial in opt.pending] == [False, True, False, False]
    np.testing.assert_array_equal(batch[0], alone.ask())  # the first point is what would be asked alone
    open_end = late(budget=None)
    assert all(trial.phi != 0.0 for trial in (open_end.ask(4), open_end.pending)[1])


def test_the_point_with_the_best_mean_may_be_close_to_a_told_one() -> None:
    """The last digits are found beside a point that is known; where all is known, the mean has no better point."""
    opt = late(budget=42)
    for _ in range(7):
        x = opt.recommend() + 3e-4
        opt.tell(x, bumps(x))
    x = opt.ask(2)[1]
    told = np.array([trial.x for trial in opt.trials if trial.status == "told"])
    assert opt.pending[1].phi == 0.0 and 0.0 < np.abs(told - x).max(axis=1).min() < SAME


def test_the_point_with_the_best_mean_is_not_asked_again_nor_where_it_was_rejected() -> None:
    opt = late()
    best = opt.ask(2)[1]
    opt.reject(best)
    for _ in range(3):
        x = opt.ask()
        assert np.abs(x - best).max() > SAME and opt.pending[-1].phi != 0.0
    workers = late(budget=38)  # of four workers one is at the best mean at a time
    running = list(workers.ask(4))
    for _ in range(4):
        x = running.pop(0)
        workers.tell(x, bumps(x))
        running.append(workers.ask())
        assert sum(trial.phi == 0.0 for trial in workers.pending) <= 1
    assert any(trial.phi == 0.0 for trial in workers.trials)


def test_the_point_with_the_best_mean_is_as_safe_as_other_queries() -> None:
    """At an edge the best mean is where a query succeeds with p = 1/2: that is no point for the end of a budget."""
    opt = Optimizer(BOX, kernel=KERNEL, noise_var=1e-6, seed=0, budget=40)
    for x in np.random.default_rng(0).random((36, 2)):
        opt.tell(x, float(x[0]), constraints=[x[0] - 0.6 + 0.1 * np.sin(9.0 * x[1])])
    opt.ask(4)
    assert opt.model is not None and opt.model.chance is not None
    best = opt.model.recommendation.best_mean_in(opt.space)
    assert opt.model.chance.log(best[None])[0] < np.log(0.75)
    assert all(trial.phi != 0.0 for trial in opt.pending)


def test_where_coordinates_are_given_the_best_mean_is_compared_with_points_that_have_them() -> None:
    opt = late(budget=60)
    for _ in range(22):
        opt.tell(x := opt.ask(fixed={1: 0.25}), bumps(x))
    batch, model = opt.ask(4, fixed={1: 0.75}), opt.model
    assert model is not None  # nothing was told with 0.75, so the point with the best mean is asked
    best = model.recommendation.best_mean_in(opt.space.with_fixed({1: 0.75}))
    assert sum(trial.phi == 0.0 for trial in opt.pending) == 1
    assert min(np.abs(best - x).max() for x in batch) == 0.0


@pytest.mark.parametrize("policy", [None, PE], ids=repr)
def test_batches_replay_whatever_the_order_of_their_values(policy: Any) -> None:
    opt, rng = Optimizer(BOX, policy=policy, seed=5), np.random.default_rng(3)
    for _ in range(5):
        batch = opt.ask(4)
        for i in rng.permutation(4)[:3]:  # one of them stays pending
            opt.tell(batch[i], bumps(batch[i]))
        again = Optimizer(BOX, policy=policy, seed=5).replay(opt.trials)
        np.testing.assert_array_equal(again.ask(3), Optimizer(BOX, policy=policy, seed=5).replay(opt.trials).ask(3))
        np.testing.assert_array_equal(again.trials[len(opt.trials)].x, opt.ask())


def test_a_leader_of_another_context_does_not_count() -> None:
    opt = Optimizer(BOX, policy=PE, kernel=KERNEL, noise_var=1e-3, seed=0)
    opt.tell([0.5, 0.5], 1.0)
    opt.ask(2, fixed={0: 0.25})
    opt.ask(2, fixed={0: 0.75})
    assert [trial.phi is not None for trial in opt.pending] == [True, False, True, False]


def test_the_cache_of_subspaces_changes_nothing() -> None:
    subspaces = Subspaces(Optimizer(BOX).space, 0, repeats=True, cover=False)
    first = subspaces.with_fixed({0: 0.5})
    assert subspaces.with_fixed({0: 0.5}) is first and subspaces.with_fixed(None) is subspaces.whole
    for value in np.linspace(0.0, 1.0, 20):
        subspaces.with_fixed({0: float(value)})
    assert subspaces.with_fixed({0: 0.5}) is not first and len(subspaces._parts) == 8


def test_the_region_in_which_a_batch_explores_is_not_that_of_what_is_forbidden() -> None:
    grid = np.arange(41)[:, None] / 40

    def told(x: Any) -> tuple[float, list[float]]:
        return (4.0, [1.0]) if x[0] > 0.5 else (0.3 * float(np.sin(8 * x[0])), [-1.0])

    opt = Optimizer(grid, GPUCBPE(scale=0.2), kernel=kernels.RBF(0.1), noise_var=1e-4, seed=0)
    for x in grid[::5]:
        opt.tell(x, told(x)[0], constraints=told(x)[1])
    broken = 0
    for _ in range(6):
        for x in opt.ask(4):
            y, constraints = told(x)
            broken += constraints[0] > 0
            opt.tell(x, y, constraints=constraints)
    assert broken <= 8  # 19 of 24 when the best lower bound was that of a forbidden point


def test_a_region_with_nothing_that_is_likely_to_succeed_is_that_of_all_points() -> None:
    opt = Optimizer([(0.0, 1.0)], GPUCBPE(), seed=0, n_init=3)
    for x in (0.1, 0.5, 0.9):
        opt.tell([x], x, constraints=[1.0 + x])
    assert len(opt.ask(3)) == 3


@pytest.mark.parametrize("space", [[(0.0, 1.0)], {"x": (0.0, 1.0), "n": Int(1, 9)}, np.linspace(0.0, 1.0, 40)[:, None]])
def test_a_whole_budget_can_be_asked_before_the_first_value(space: Any) -> None:
    """Near the end of a budget a best mean is asked, and with a given kernel there is a model without any value."""
    opt = Optimizer(space, kernel=kernels.RBF(0.3), noise_var=0.0, budget=20, seed=0)
    points = opt.ask(22)
    assert len({opt.space.encode(x).tobytes() for x in points}) > 15
