"""The contract of ask and tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import direct
from hypothesis import given, settings
from hypothesis import strategies as st

from gpmi import EI, GPMI, GPUCB, Explore, Int, LogEI, Optimizer, Real, Reinvest, SpaceExhausted, Thompson, kernels
from gpmi.gp import tracking
from gpmi.model.model import objective
from gpmi.policies import Policy, State

KERNEL = kernels.RBF(0.2)
BOX = [(0.0, 1.0), (-5.0, 5.0)]
MIXED = {"r": Real(1e-4, 1.0, log=True), "i": Int(1, 9), "c": ["a", "b", "c"]}


def bowl(x: np.ndarray) -> float:
    return float(-((np.asarray(x) - 0.3) ** 2).sum())


def mixed(p: dict[str, float]) -> float:
    return -((np.log10(p["r"]) + 2) ** 2) - 0.1 * (p["i"] - 4) ** 2 + (p["c"] == "b")


def run(opt: Optimizer, f: object, steps: int) -> list[object]:
    asked = []
    for _ in range(steps):
        asked.append(opt.ask())
        opt.tell(asked[-1], f(asked[-1]))  # type: ignore[operator]
    return asked


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e-4])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("way", ["tracked", "lazy"])
def test_gpmi_makes_the_choices_of_algorithm_1(
    scale: float, seed: int, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Query by query, 100 of them, on 300 candidates; and unchanged under (f, k, noise) -> (c f, c^2 k, c^2 noise)."""
    if way == "lazy":
        monkeypatch.setattr(tracking, "TRACKED_BYTES", 0)
    rng = np.random.default_rng(seed)
    d = rng.random((300, 2))
    f = np.linalg.cholesky(KERNEL(d, d) + 1e-9 * np.eye(300)) @ rng.standard_normal(300)
    y = f + 0.1 * rng.standard_normal((100, 300))  # y[t, i]: what query t at candidate i would return
    # Algorithm 1, evaluated directly.
    queries, gamma_hat, alpha = list(range(10)), 0.0, np.log(2e6)
    values = [y[0, i] for i in queries]
    for t in range(100):
        mu, var = direct(KERNEL, 0.01, d[queries], np.array(values), d)
        i = int(np.argmax(mu + np.sqrt(alpha) * (np.sqrt(var + gamma_hat) - np.sqrt(gamma_hat))))
        gamma_hat += var[i]
        queries.append(i)
        values.append(y[t, i])
    # The library.
    k = kernels.RBF(0.2, variance=scale**2)
    opt = Optimizer(d, GPMI(), kernel=k, noise_var=0.01 * scale**2)
    for i in range(10):
        opt.tell(d[i], scale * y[0, i])
    for t in range(100):
        x = opt.ask()
        i = int(np.flatnonzero((d == x).all(axis=1))[0])
        assert i == queries[10 + t], f"query {t}"
        opt.tell(x, scale * y[t, i])
    assert opt.posterior is not None
    assert opt.posterior.gamma_hat(n0=10) == pytest.approx(gamma_hat * scale**2, rel=1e-8)


@pytest.mark.parametrize("policy", [GPMI(), GPUCB(), EI(), LogEI(), Explore(), Reinvest()], ids=repr)
@pytest.mark.parametrize("memory", [2**31, 0])
def test_with_everything_learned_the_choice_on_a_finite_set_is_the_direct_argmax(
    policy: Policy | None, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tracked, lazy, right after a refit or between two, with pending points or not: always the same argmax."""
    monkeypatch.setattr(tracking, "TRACKED_BYTES", memory)
    rng = np.random.default_rng(0)
    d = rng.random((150, 2))
    f = np.sin(7 * d[:, 0]) * np.cos(5 * d[:, 1])
    opt = Optimizer(d, policy, seed=1, budget=60)
    for step in range(30):
        x = opt.ask()
        if opt.trials[-1].origin == "policy":
            told = [t for t in opt.trials if t.status == "told"]
            others = [t.x for t in opt.pending[:-1]]
            posterior = opt.posterior
            assert posterior is not None
            full = posterior.anticipate(np.array(others)) if others else posterior
            rows = [t for t in sorted(told, key=lambda t: t.order or 0)] + list(opt.pending[:-1])
            chosen = np.array([t.origin == "policy" for t in rows])
            state = State(
                t=int(chosen.sum()) + 1,
                gamma_hat=float(full.predictive_var[chosen].sum()),
                noise_var=full.noise_var,
                best_observed=max(t.y for t in told),  # type: ignore[type-var]
                best_mean=float(posterior(posterior.x)[0].max()),
                size=150,
                dim=0,
                horizon=60 - int((~chosen).sum()),
            )
            score = opt.policy.score(*full(d), state)
            i = int(np.flatnonzero((d == x).all(axis=1))[0])
            assert score[i] >= score.max() - 1e-7 * np.ptp(score), f"step {step}"
        if step % 3:  # leave some pending for a while
            for trial in opt.pending:
                opt.tell(trial.x, f[int(np.flatnonzero((d == trial.x).all(axis=1))[0])])


@pytest.mark.parametrize("policy", [None, GPMI(), LogEI(), Thompson()], ids=repr)
@pytest.mark.parametrize(
    ("space", "f"), [(BOX, bowl), (MIXED, mixed), (np.random.default_rng(3).random((60, 2)), bowl)]
)
def test_any_run_replays_from_its_log(policy: Policy | None, space: object, f: object) -> None:
    """From every prefix of the log, the next point is the one the run asked: bit by bit."""
    opt = Optimizer(space, policy, seed=5)
    run(opt, f, 24)
    for k in (0, 1, 5, 9, 17, 23):
        again = Optimizer(space, policy, seed=5).replay(opt.trials[:k])
        np.testing.assert_equal(again.ask(), opt.trials[k].x)


def test_a_parallel_run_replays_too() -> None:
    rng = np.random.default_rng(0)
    opt = Optimizer(BOX, seed=3)
    snapshots = []
    for _ in range(25):
        if len(opt.pending) < 4 and rng.random() < 0.6:
            before = opt.trials
            snapshots.append((before, opt.ask()))
        elif opt.pending:
            trial = opt.pending[rng.integers(len(opt.pending))]
            opt.tell(trial.x, bowl(trial.x))
    for trials, asked in snapshots[::3]:
        np.testing.assert_array_equal(Optimizer(BOX, seed=3).replay(trials).ask(), asked)


def test_a_suggestion_depends_on_what_is_told_and_pending_and_on_nothing_else() -> None:
    a, b = Optimizer(BOX, LogEI(), seed=0), Optimizer(BOX, LogEI(), seed=0)
    points = [np.array([u, 10 * u - 5]) for u in np.linspace(0, 1, 12)]
    for x in points:
        a.tell(x, bowl(x))
        b.tell(x, bowl(x))
        b.forget(b.ask())  # asking and giving back leaves no trace
        b.recommend()
    np.testing.assert_array_equal(a.ask(), b.ask())
    np.testing.assert_array_equal(a.ask(), b.ask())
    a.forget(a.ask())
    np.testing.assert_array_equal(a.ask(), b.ask())


def test_points_told_before_the_first_ask_are_the_initial_design() -> None:
    d = np.random.default_rng(0).random((50, 2))
    opt = Optimizer(d, GPMI(), kernel=KERNEL, noise_var=0.01, n_init=5, seed=0)
    for i in range(3):
        opt.tell(d[i], bowl(d[i]))
    origins = []
    for _ in range(4):
        opt.tell(x := opt.ask(), bowl(x))
        origins.append(opt.trials[-1].origin)
    assert origins == ["design", "design", "policy", "policy"]
    assert [t.gamma_hat for t in opt.trials[:5]] == [None] * 5
    assert opt.trials[5].gamma_hat == 0.0
    assert opt.posterior is not None
    assert opt.trials[6].gamma_hat == pytest.approx(opt.posterior.gamma_hat(n0=5) - opt.posterior.predictive_var[6])


def test_if_enough_was_told_the_first_ask_is_the_policys() -> None:
    for n_init in (None, 5):
        opt = Optimizer(BOX, n_init=n_init, seed=0)
        for u in np.linspace(0, 1, 10):
            opt.tell([u, 5 * u], bowl(np.array([u, 5 * u])))
        opt.ask()
        assert opt.trials[-1].origin == "policy"


def test_gamma_hat_counts_only_what_the_policy_chose() -> None:
    d = np.random.default_rng(0).random((50, 2))
    opt = Optimizer(d, GPMI(), kernel=KERNEL, noise_var=0.01, seed=0)
    opt.tell(d[0], 0.0)
    opt.tell(opt.ask(), 0.1)
    opt.tell(d[7], 0.2)  # told, never asked
    opt.ask()
    assert opt.posterior is not None
    assert opt.trials[-1].gamma_hat == pytest.approx(opt.posterior.predictive_var[1])


def test_with_a_given_prior_the_model_is_exactly_the_papers() -> None:
    opt = Optimizer(BOX, GPMI(), kernel=KERNEL, noise_var=0.04)
    assert opt.posterior is None
    opt.tell([0.5, 1.0], 100.0)
    p = opt.posterior
    assert p is not None
    assert (p.kernel, p.noise_var, p.mean) == (KERNEL, 0.04, 0.0)
    np.testing.assert_array_equal(p.x, [[0.5, 1.0]])
    np.testing.assert_array_equal(p.y, [100.0])
    run(opt, bowl, 20)
    assert opt.posterior is not None and opt.posterior.kernel is KERNEL


def test_pending_points_push_later_asks_apart() -> None:
    for space in (BOX, np.random.default_rng(0).random((200, 2))):
        opt = Optimizer(space, GPUCB(), kernel=kernels.RBF(0.3), noise_var=1e-4, seed=0)
        opt.tell(opt.ask(), 0.0)
        batch = np.array(opt.ask(5))
        distances = np.linalg.norm(batch[:, None] - batch, axis=2)[np.triu_indices(5, 1)]
        assert distances.min() > 0.2
        assert len(opt.pending) == 5


def test_the_order_of_tell_is_free() -> None:
    opt = Optimizer(BOX, seed=0)
    run(opt, bowl, 12)
    batch = opt.ask(4)
    for x in reversed(batch):
        opt.tell(x, bowl(x))
    assert not opt.pending
    assert [t.status for t in opt.trials] == ["told"] * 16
    assert [t.order for t in opt.trials[12:]] == [15, 14, 13, 12]
    assert opt.posterior is not None
    np.testing.assert_array_equal(opt.posterior.x[12:], batch[::-1])


def test_replicates_are_observations_of_their_own() -> None:
    opt = Optimizer(BOX, kernel=KERNEL, noise_var=1.0)
    for y in (1.0, 2.0, 3.0):
        opt.tell([0.5, 0.5], y)
    assert opt.posterior is not None and opt.posterior.n == 3
    assert opt.posterior([[0.5, 0.5]])[0][0] == pytest.approx(6.0 / 4.0)
    assert opt.best is not None and opt.best.y == 3.0


def test_forgotten_points_are_offered_again_and_failed_ones_are_not() -> None:
    d = np.random.default_rng(0).random((30, 2))
    opt = Optimizer(d, GPMI(), kernel=KERNEL, noise_var=1e-4, seed=0)
    opt.tell(d[0], 1.0)
    x = opt.ask()
    opt.forget(x)
    np.testing.assert_array_equal(opt.ask(), x)
    opt.fail(x)
    assert opt.trials[-1].status == "failed" and opt.trials[-1].y is None
    assert all(not np.array_equal(opt.ask(), x) for _ in range(40))


def test_after_a_failure_on_a_box_the_next_point_is_elsewhere() -> None:
    opt = Optimizer(BOX, seed=0)
    run(opt, bowl, 15)
    x = opt.ask()
    opt.fail(x)
    assert np.linalg.norm(opt.ask() - x) > 1e-3


def test_without_repeats_each_row_is_offered_once_and_then_the_space_is_exhausted() -> None:
    d = np.random.default_rng(0).random((20, 2))
    d = np.concatenate([d, d[:3]])  # equal rows are one point
    opt = Optimizer(d, repeats=False, seed=0)
    asked = run(opt, bowl, 20)
    assert len({np.asarray(x).tobytes() for x in asked}) == 20
    with pytest.raises(SpaceExhausted, match="23 candidates"):
        opt.ask()


def test_with_repeats_a_row_may_be_asked_again_and_the_tie_goes_to_the_lowest_row() -> None:
    d = np.array([[0.0], [1.0], [2.0], [0.0]])
    opt = Optimizer(d, GPMI(), kernel=kernels.RBF(1e-3), noise_var=1e-2)
    assert opt.ask() == [0.0]
    opt.tell([0.0], 5.0)
    assert [float(x[0]) for x in run(opt, lambda x: 5.0, 5)] == [0.0] * 5
    opt = Optimizer(d, Explore(), kernel=kernels.RBF(1e-3), noise_var=1e-2)
    assert [float(x[0]) for x in opt.ask(3)] == [0.0, 1.0, 2.0]


def test_minimising_mirrors_maximising() -> None:
    for space, f in ((BOX, bowl), (MIXED, mixed)):
        up, down = Optimizer(space, seed=2), Optimizer(space, seed=2, goal="min")
        for _ in range(20):
            a, b = up.ask(), down.ask()
            np.testing.assert_equal(a, b)
            up.tell(a, f(a))  # type: ignore[operator]
            down.tell(b, -f(b))  # type: ignore[operator]
        assert up.best is not None and down.best is not None and up.best.number == down.best.number
        np.testing.assert_equal(up.recommend(), down.recommend())


def test_candidates_from_a_frame_with_mixed_columns() -> None:
    frame = pd.DataFrame(
        {"size": np.tile([1, 2, 3, 4], 6), "kind": np.repeat(["a", "b", "c"], 8), "on": [True, False] * 12}
    ).drop_duplicates()
    opt = Optimizer(frame, seed=0, repeats=False)

    def f(p: dict[str, object]) -> float:
        return float(p["size"] == 3) + float(p["kind"] == "b") + 0.5 * float(p["on"] is True)

    asked = run(opt, f, 10)
    assert all(type(p["size"]) is int and type(p["kind"]) is str and type(p["on"]) is bool for p in asked)  # type: ignore[index]
    assert opt.best is not None and opt.best.y is not None and opt.best.y >= 2.0


def test_the_best_and_the_recommended_point_differ_when_y_is_noisy() -> None:
    opt = Optimizer([(0.0, 1.0)], kernel=kernels.RBF(0.3), noise_var=1.0)
    for u in np.linspace(0.0, 1.0, 40):
        opt.tell([u], -10 * (u - 0.6) ** 2)
    opt.tell([0.1], 3.0)  # an outlier
    assert opt.best is not None and opt.best.x[0] == 0.1
    assert abs(opt.recommend()[0] - 0.6) < 0.1


def test_the_recommended_row_of_a_finite_set_has_the_largest_mean() -> None:
    d = np.random.default_rng(0).random((80, 2))
    opt = Optimizer(d, seed=0)
    run(opt, bowl, 15)
    assert opt.posterior is not None
    np.testing.assert_array_equal(opt.recommend(), d[np.argmax(opt.posterior(d)[0])])


def test_repairs_are_events() -> None:
    opt = Optimizer(np.linspace(0, 1, 5)[:, None], Explore(), kernel=kernels.RBF(0.5), noise_var=0.0)
    assert opt.events == ()
    run(opt, lambda x: 1.0, 8)
    assert {e.kind for e in opt.events} == {"jitter"}


def test_a_seed_that_was_not_given_is_recorded() -> None:
    first = Optimizer(BOX)
    second = Optimizer(BOX, seed=first.seed)
    for a, b in zip(run(first, bowl, 10), run(second, bowl, 10), strict=True):
        np.testing.assert_array_equal(a, b)


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_any_sequence_of_calls_keeps_the_books_straight(data: st.DataObject) -> None:
    d = np.random.default_rng(0).random((12, 2))
    opt = Optimizer(d, kernel=KERNEL, noise_var=0.01, seed=0)
    told = pending = failed = 0
    for _ in range(data.draw(st.integers(1, 25))):
        action = data.draw(st.sampled_from(["ask", "tell", "tell new", "fail", "forget"]))
        if action == "ask":
            try:
                opt.ask()
            except SpaceExhausted:
                assert failed > 0
                continue
            pending += 1
        elif action == "tell new":
            row = d[data.draw(st.integers(0, 11))]
            was_pending = any(np.array_equal(t.x, row) for t in opt.pending)
            opt.tell(row, data.draw(st.floats(-10, 10)))
            told, pending = told + 1, pending - was_pending
        elif opt.pending:
            x = data.draw(st.sampled_from(opt.pending)).x
            pending -= 1
            if action == "tell":
                opt.tell(x, 1.0)
                told += 1
            elif action == "fail":
                opt.fail(x)
                failed += 1
            else:
                opt.forget(x)
        statuses = [t.status for t in opt.trials]
        assert (statuses.count("told"), statuses.count("pending"), statuses.count("failed")) == (told, pending, failed)
        assert (opt.posterior is None) == (told == 0)
        assert opt.posterior is None or opt.posterior.n == told


def test_a_batch_may_be_larger_than_what_is_told_or_left() -> None:
    d = np.array([[0.0], [1.0], [2.0]])
    assert len(Optimizer(d, seed=0).ask(5)) == 5
    assert len(Optimizer(d, seed=0, kernel=KERNEL).ask(5)) == 5
    opt = Optimizer(d, seed=0, repeats=False)
    assert len(opt.ask(5)) == 3
    with pytest.raises(SpaceExhausted):
        opt.ask(5)


def test_the_user_may_change_the_point_he_was_given() -> None:
    for space in (BOX, MIXED, np.eye(3)):
        opt = Optimizer(space, seed=0)
        x = opt.ask()
        kept = x.copy()
        if isinstance(x, dict):
            x.clear()
        else:
            x[:] = 99.0
        opt.tell(kept, 1.0)
        assert not opt.pending


def test_the_recommended_point_may_be_a_told_one_also_without_repeats() -> None:
    space = {"i": Int(0, 300), "j": Int(0, 300)}
    for repeats in (True, False):
        opt = Optimizer(space, kernel=kernels.RBF(60.0), noise_var=1e-4, repeats=repeats, seed=0)
        for i in range(0, 301, 50):
            for j in range(0, 301, 50):
                opt.tell({"i": i, "j": j}, -((i - 150) ** 2 + (j - 150) ** 2) / 1e4)
        assert opt.recommend() == {"i": 150, "j": 150}


def test_repairs_on_behalf_of_pending_points_are_events_too() -> None:
    opt = Optimizer(np.array([[0.0], [1.0]]), Explore(), kernel=kernels.RBF(0.5), noise_var=0.0)
    opt.ask(5)
    assert {e.kind for e in opt.events} == {"jitter"}


def test_what_a_fit_leaves_out_or_clips_is_an_event() -> None:
    rng = np.random.default_rng(0)
    opt = Optimizer([(0.0, 1.0)], kernel=kernels.RBF(0.3), seed=0)
    for _ in range(20):
        opt.tell([rng.random()], 30 * rng.standard_normal())
    assert opt.posterior is not None and [e.kind for e in opt.events] == ["clipped"]
    opt = Optimizer([(0.0, 1.0)], kernel=kernels.RBF(0.3), seed=0)
    for _ in range(450):
        opt.tell([u := rng.random()], np.sin(5 * u))
    assert opt.posterior is not None and [e.kind for e in opt.events] == ["subset"]


def test_an_exact_value_where_the_prior_knows_it_already_does_no_harm() -> None:
    opt = Optimizer([(-1.0, 1.0)], GPMI(), kernel=kernels.Linear(), noise_var=0.0, seed=0)
    opt.tell([0.0], 0.0)
    opt.tell(opt.ask(), 1.0)
    assert abs(opt.recommend()[0]) == 1.0


def test_a_pending_point_is_recognised_in_spite_of_its_last_digit_and_not_of_more() -> None:
    opt = Optimizer(BOX, seed=0)
    x = opt.ask()
    trial = opt.tell(np.nextafter(x, 9.0), 1.0)
    assert trial.origin == "design" and not opt.pending
    np.testing.assert_array_equal(trial.x, x)
    x = opt.ask()
    trial = opt.tell(x.astype(np.float32), 1.0)
    assert trial.origin == "user" and len(opt.pending) == 1
    np.testing.assert_array_equal(trial.x, x.astype(np.float32))


@pytest.mark.parametrize("space", [BOX, np.random.default_rng(3).random((25, 2))], ids=["box", "set"])
@pytest.mark.parametrize("policy", [None, GPMI(), Thompson()], ids=repr)
@pytest.mark.parametrize("seed", range(2))
def test_whatever_happened_before_the_next_point_follows_from_the_log(
    space: object, policy: Policy | None, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    opt = Optimizer(space, policy, seed=seed)
    for _ in range(30):
        action = rng.choice(["ask", "tell", "fail", "forget", "recommend"], p=[0.45, 0.35, 0.05, 0.1, 0.05])
        if action == "ask" and len(opt.pending) < 4:
            log = opt.trials
            np.testing.assert_array_equal(opt.ask(), Optimizer(space, policy, seed=seed).replay(log).ask())
        elif action == "recommend" and opt.best is not None:
            opt.recommend()
        elif opt.pending and action in ("tell", "fail", "forget"):
            x = opt.pending[rng.integers(len(opt.pending))].x
            if action == "tell":
                opt.tell(x, bowl(x))
            else:
                getattr(opt, action)(x)


def test_thompson_sampling_does_not_repeat_itself_on_a_large_discrete_space() -> None:
    opt = Optimizer(
        {"i": Int(0, 300), "j": Int(0, 300)},
        Thompson(),
        kernel=kernels.RBF(400.0),
        noise_var=1e-4,
        seed=0,
        repeats=False,
    )
    for _ in range(12):
        x = opt.ask()
        opt.tell(x, -float(x["i"] + x["j"]) / 100)
    assert len({(t.x["i"], t.x["j"]) for t in opt.trials}) == 12


@pytest.mark.slow
@pytest.mark.parametrize("fit", ["loo", "mcmc"])
@pytest.mark.parametrize("policy", [None, Thompson()], ids=["default", "thompson"])
@pytest.mark.parametrize("finite", [False, True])
def test_other_ways_to_learn_the_prior_find_the_optimum_and_replay(fit: str, policy: Any, finite: bool) -> None:
    def f(x: np.ndarray) -> float:
        return float(-((x[0] - 0.3) ** 2) - (x[1] - 0.6) ** 2)

    def make() -> Optimizer:
        grid = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 11)] * 2), axis=-1).reshape(-1, 2)
        return Optimizer(grid if finite else [(0.0, 1.0)] * 2, policy, fit=fit, seed=3)

    opt = make()
    for i in range(16):
        x = opt.ask()
        if i == 9:
            opt.fail(x)
        else:
            opt.tell(x, f(x))
    pending = opt.ask(2)
    np.testing.assert_allclose(opt.recommend(), [0.3, 0.6], atol=0.1)
    again = make().replay(opt.trials[:17])
    np.testing.assert_array_equal(again.ask(), pending[1])
    last = opt.trials[-1]
    assert last.mu is not None and last.sd is not None and np.isfinite(last.mu) and last.sd >= 0.0


def test_how_to_learn_a_prior_that_is_given_is_a_contradiction() -> None:
    with pytest.raises(ValueError, match=r"fit is .mcmc., but kernel is given.*leave out"):
        Optimizer([(0.0, 1.0)], kernel=kernels.RBF(0.3), fit="mcmc")
    with pytest.raises(ValueError, match="fit is 'bayes'; give one of 'map', 'loo', 'mcmc'"):
        Optimizer([(0.0, 1.0)], fit="bayes")  # type: ignore[arg-type]


def test_a_suggestion_under_draws_of_the_prior_has_the_best_mean_score_of_a_finite_set() -> None:
    rng = np.random.default_rng(0)
    rows = rng.random((40, 2))
    opt = Optimizer(rows, GPUCB(), fit="mcmc", n_init=0, seed=0)
    for row in rows[:10]:
        opt.tell(row, float(np.sin(5.0 * row[0]) + row[1]))
    x = opt.ask()
    opt.forget(x)
    model = opt.model
    assert model is not None and len(model.members) == 8
    o = objective(model, opt.policy, opt._log, None)
    np.testing.assert_array_equal(x, rows[np.argmax(np.mean([m(rows) for m in o.members], axis=0))])


def test_a_failure_counts_as_the_worst_value_also_when_f_is_minimised() -> None:
    """Minimising f and maximising -f ask for the same points after the same failure."""
    rows = np.random.default_rng(0).random((40, 2))
    asked: dict[str, list[list[float]]] = {}
    for goal, sign in (("max", 1.0), ("min", -1.0)):
        opt = Optimizer(rows, kernel=kernels.RBF(lengthscale=0.4), noise_var=1e-3, n_init=3, seed=0, goal=goal)
        asked[goal] = []
        for i in range(12):
            x = opt.ask()
            asked[goal].append(x.tolist())
            if i == 5:
                opt.fail(x)
            else:
                opt.tell(x, sign * float(np.sin(5 * x[0]) + x[1] - 3.0))
    assert asked["max"] == asked["min"]
