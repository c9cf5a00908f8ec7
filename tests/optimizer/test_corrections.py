"""Later words about trials: error bars, corrections, retractions, rejections; and what is known before a run."""

from __future__ import annotations

import logging
import pickle
from typing import Any

import numpy as np
import pytest

from gpmi import GPMI, Int, LogEI, Optimizer, Real, Result, SpaceExhausted, Thompson, Trial, kernels, maximize, minimize
from gpmi.analysis.ledger.ledger import SAME
from gpmi.optimizer.exclusions import AROUND, SOON
from gpmi.trials import Log, Outcome
from gpmi.trials.replay import take_over

BOX = [(0.0, 1.0), (0.0, 2.0)]
GIVEN = {"kernel": kernels.RBF(0.3), "noise_var": 0.01}
ROWS = np.linspace(0.0, 1.0, 7)[:, None]


def f(x: Any) -> float:
    return float(np.sin(5.0 * x[0]) + np.cos(3.0 * x[-1]))


def run(steps: int = 8, **options: Any) -> Optimizer:
    opt = Optimizer(BOX, **{"seed": 1, **options})
    for _ in range(steps):
        x = opt.ask()
        opt.tell(x, f(x))
    return opt


def same(a: Optimizer, b: Optimizer, steps: int = 3) -> None:
    """Both believe and ask the same, to the last bit."""
    z = np.random.default_rng(0).random((5, 2))
    assert a.posterior is not None and b.posterior is not None
    np.testing.assert_array_equal(a.posterior(z), b.posterior(z))
    for _ in range(steps):
        x, other = a.ask(), b.ask()
        np.testing.assert_array_equal(x, other)
        a.tell(x, f(x))
        b.tell(other, f(x))


# Error bars


def test_noise_var_is_the_square_of_an_error_bar_on_top_of_the_common_noise() -> None:
    opt = Optimizer(BOX, **GIVEN, seed=0)
    x = np.random.default_rng(0).random((6, 2))
    own, repeats = np.array([0.0, 0.5, 0.1, 0.0, 2.0, 0.3]), np.array([1, 1, 4, 9, 1, 2])
    for row, o, k in zip(x, own, repeats, strict=True):
        trial = opt.tell(row, f(row), noise_var=o, repeats=k)
        assert (trial.noise_var, trial.repeats) == (o, k)
    noise = 0.01 / repeats + own
    k = kernels.RBF(0.3)
    weights = np.linalg.solve(k(x, x) + np.diag(noise), [f(row) for row in x])
    z = np.random.default_rng(1).random((4, 2))
    assert opt.posterior is not None
    np.testing.assert_allclose(opt.posterior.mu(z), k(z, x) @ weights, rtol=1e-9)
    last = opt.trials[-1]
    assert last.sd is not None and last.information == pytest.approx(0.5 * np.log1p(last.sd**2 / noise[-1]))
    assert last.mu is not None and last.surprise == pytest.approx(
        (f(x[-1]) - last.mu) / np.sqrt(last.sd**2 + noise[-1])
    )


def test_a_mean_of_k_says_what_k_values_with_that_mean_say() -> None:
    one, many = (Optimizer(BOX, **GIVEN, seed=0) for _ in range(2))
    one.tell([0.2, 0.3], 1.0, repeats=4)
    for y in (0.7, 1.3, 1.1, 0.9):
        many.tell([0.2, 0.3], y)
    z = np.random.default_rng(1).random((4, 2))
    assert one.posterior is not None and many.posterior is not None
    np.testing.assert_allclose(one.posterior(z), many.posterior(z), rtol=1e-9)


@pytest.mark.parametrize("options", [GIVEN, {}, {"fit": "loo"}, {"fit": "mcmc"}, {"kernel": kernels.RBF(0.3)}])
def test_a_run_with_error_bars_replays(options: dict[str, Any]) -> None:
    rng, opt = np.random.default_rng(0), Optimizer(BOX, **options, seed=2)
    for i in range(12):
        x = opt.ask()
        opt.tell(x, f(x) + 0.1 * rng.standard_normal(), noise_var=0.1 * (i % 3), repeats=1 + i % 2)
    again = Optimizer(BOX, **options, seed=2).replay(opt.trials)
    assert [(t.noise_var, t.repeats) for t in again.trials] == [(t.noise_var, t.repeats) for t in opt.trials]
    same(opt, again)


def test_a_pending_point_that_is_told_with_an_error_bar_counts_with_it() -> None:
    """What the search remembers of the pending point had the common noise."""
    for space in (BOX, np.random.default_rng(0).random((40, 2))):
        opt, again = (Optimizer(space, LogEI(), **GIVEN, seed=0) for _ in range(2))
        for _ in range(6):
            first, second = opt.ask(2)
            opt.tell(first, f(first), noise_var=5.0)
            opt.tell(second, f(second))
        again.replay(opt.trials)
        np.testing.assert_array_equal(opt.ask(), again.ask())


def test_under_find_a_row_with_an_error_bar_may_be_asked_again() -> None:
    opt = Optimizer(ROWS, seed=0, noise_var=0.0, kernel=kernels.RBF(0.3))
    for row in ROWS:
        opt.tell(row, float(row[0]), noise_var=0.5)
    assert opt.ask() is not None  # every row has a trial; none is known


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({"noise_var": -1.0}, "noise_var is -1.0"),
        ({"noise_var": np.nan}, "noise_var is nan"),
        ({"noise_var": "1"}, "noise_var is '1'"),
        ({"noise_var": 1e250}, "too large to compute with"),
        ({"repeats": 0}, "repeats is 0"),
        ({"repeats": 1.5}, "repeats is 1.5"),
        ({"repeats": True}, "repeats is True"),
    ],
)
def test_bad_error_bars_are_refused_and_nothing_is_told(words: dict[str, Any], match: str) -> None:
    opt = Optimizer(BOX, seed=0)
    with pytest.raises((ValueError, TypeError), match=match):
        opt.tell([0.1, 0.1], 1.0, **words)
    assert opt.trials == ()
    trial = opt.tell([0.1, 0.1], 1.0)
    with pytest.raises((ValueError, TypeError), match=match):
        opt.correct(trial, 1.0, **words)
    assert opt.trials == (trial,)


# Corrections


@pytest.mark.parametrize("goal", ["max", "min"])
@pytest.mark.parametrize("options", [GIVEN, {}, {"fit": "mcmc"}], ids=["given", "learned", "mcmc"])
def test_after_a_correction_everything_is_as_if_the_new_value_had_been_told(options: Any, goal: Any) -> None:
    opt = run(9, **options, goal=goal)
    assert opt.posterior is not None and opt.ledger.improvement >= 0.0 and opt.ledger.regret() is not None
    corrected = opt.correct(4, 3.25)
    assert (corrected.number, corrected.y, corrected.status, corrected.order) == (4, 3.25, "told", 4)
    fresh = Optimizer(BOX, **options, seed=1, goal=goal)
    for trial in opt.trials:
        fresh._log.add(trial.x, opt.space.encode(trial.x), trial.origin)
        fresh._log.settle(trial.number, Outcome.value(trial.y))
    assert opt.ledger.regret().interval() == fresh.ledger.regret().interval()
    same(opt, fresh)
    best = opt.best
    assert best is not None and best.y == (max if goal == "max" else min)(t.y for t in opt.trials)


def test_what_was_said_of_a_trial_stays_and_how_its_value_compared_goes() -> None:
    opt = run(9)
    before, pending = opt.trials[8], opt.ask(2)
    corrected = opt.correct(before, -1.0, noise_var=0.5)
    assert (corrected.mu, corrected.sd, corrected.gamma_hat) == (before.mu, before.sd, before.gamma_hat)
    assert (corrected.surprise, corrected.information, corrected.noise_var) == (None, None, 0.5)
    assert corrected.y_before == before.y and "corrected, first value" in repr(corrected)
    assert opt.correct(8, -2.0).y_before == before.y and opt.trials[8].noise_var == 0.5
    for trial, x in zip(opt.pending, pending, strict=True):
        np.testing.assert_array_equal(trial.x, x)
    entries = [(e.kind, e.number, e.outcome and e.outcome.y) for e in opt._log.entries[-2:]]
    assert entries == [("corrected", 8, -1.0), ("corrected", 8, -2.0)]


def test_a_failed_or_retracted_trial_can_get_a_value() -> None:
    opt = Optimizer(BOX, seed=0, **GIVEN)
    for i in range(3):
        x = opt.ask()
        opt.fail(x) if i == 1 else opt.tell(x, float(i))
    assert opt.correct(1, 7.0).status == "told" and [t.y for t in opt.trials] == [0.0, 7.0, 2.0]
    assert [opt._log[number].y for number in opt._log.told] == [0.0, 7.0, 2.0]
    opt.retract(1)
    assert opt.correct(1, 8.0).y_before == 7.0
    assert "corrected, first value 7)" in repr(opt.trials[1])  # neither was it told as 7, nor was 8 in its place
    same(opt, Optimizer(BOX, seed=0, **GIVEN).replay(opt.trials))


def test_a_retracted_trial_counts_for_nothing() -> None:
    opt = run(8)
    without = Optimizer(BOX, seed=1)
    for trial in opt.trials[:5] + opt.trials[6:]:
        without._log.add(trial.x, opt.space.encode(trial.x), trial.origin)
        without._log.settle(without._log.pending[0], Outcome.value(trial.y))
    retracted = opt.retract(5)
    assert (retracted.status, retracted.y) == ("retracted", None) and retracted.y_before is not None
    assert len(opt.trials) == 8 and len(opt._log) == 7 and "1 retracted" in repr(opt)
    np.testing.assert_array_equal(opt.ask(), without.ask())
    assert opt.trials[-1].number == 8
    opt.tell(8, 0.5)
    assert opt.trials[-1].order == 8  # the places of the outcomes are not given away again


def test_a_row_whose_value_was_retracted_may_be_asked_again() -> None:
    opt = Optimizer(ROWS, repeats=False, seed=0)
    for _ in range(7):
        x = opt.ask()
        last = opt.tell(x, float(x[0]))
    with pytest.raises(SpaceExhausted):
        opt.ask()
    opt.retract(last)
    np.testing.assert_array_equal(opt.ask(), last.x)


@pytest.mark.parametrize("options", [GIVEN, {}], ids=["given", "learned"])
def test_a_history_with_all_the_words_replays_bit_for_bit(options: Any) -> None:
    opt = run(10, **options)
    opt.correct(3, 1.5)
    opt.retract(6)
    opt.reject(opt.ask())
    opt.reject([0.31, 0.4])
    opt.fail(opt.ask())
    opt.retract(opt._log.failed[0])
    again = Optimizer(BOX, seed=1, **options).replay(opt.trials)
    fields = ("number", "y", "status", "order", "y_before", "noise_var", "repeats", "mu", "sd", "ended")
    for name in fields:
        assert [getattr(t, name) for t in again.trials] == [getattr(t, name) for t in opt.trials]
    copy = pickle.loads(pickle.dumps(opt))
    x = opt.ask()
    np.testing.assert_array_equal(x, again.ask())
    np.testing.assert_array_equal(x, copy.ask())
    opt.tell(x, 0.3)
    again.tell(x, 0.3)
    same(opt, again)


def test_replaying_into_a_run_that_has_begun_gives_new_numbers() -> None:
    opt = run(4, **GIVEN)
    opt.correct(0, 2.0)
    opt.retract(1)
    opt.reject([0.9, 0.9])
    other = run(2, **GIVEN)
    other.replay(opt.trials)
    assert [t.status for t in other.trials[2:]] == [t.status for t in opt.trials]
    assert [t.number for t in other.trials] == list(range(7))
    log = Log()
    take_over(log, other.trials, [opt.space.encode(t.x) for t in other.trials])
    assert [t.order for t in log.trials] == [t.order for t in other.trials]


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda opt: opt.correct(99, 1.0), "trial is 99: there is no such trial"),
        (lambda opt: opt.correct(2, 1.0), "trial is 2: it is pending"),
        (lambda opt: opt.correct(0, np.nan), "y is nan"),
        (lambda opt: opt.correct([0.1, 0.1], 1.0), "give a Trial or its number"),
        (lambda opt: opt.correct(True, 1.0), "give a Trial or its number"),
        (lambda opt: opt.correct(3, 1.0), "trial is 3: it is rejected"),
        (lambda opt: opt.retract(2), "trial is 2: it is pending"),
        (lambda opt: opt.retract("x"), "give a Trial or its number"),
        (lambda opt: opt.reject(0), "x is trial 0, which is not pending: it is told"),
        (lambda opt: opt.reject([7.0, 7.0]), "x"),
        (lambda opt: opt.retract(run(3, seed=9).trials[0]), "is at another point"),
    ],
)
def test_wrong_words_are_refused_and_change_nothing(call: Any, match: str) -> None:
    opt = run(2, **GIVEN)
    opt.ask()
    opt.reject([0.5, 0.5])
    before = opt.trials, opt._log.entries
    with pytest.raises((ValueError, TypeError), match=match):
        call(opt)
    assert before == (opt.trials, opt._log.entries)


# Rejection


@pytest.mark.parametrize("policy", [None, GPMI(), LogEI("mean"), Thompson()])
@pytest.mark.parametrize("options", [GIVEN, {}], ids=["given", "learned"])
def test_nothing_near_a_rejected_point_is_asked_until_more_is_known(policy: Any, options: Any) -> None:
    opt = run(9, policy=policy, **options)
    span = opt.space.span
    rejected = []
    for _ in range(4):  # without the rule it would be the same point for ever
        x = opt.ask()
        assert not any(np.all(np.abs(x - other) <= AROUND * span) for other in rejected)
        assert opt.reject(x).status == "rejected"
        rejected.append(x)
    told = len(opt._log.told)
    for _ in range(SOON + 3):
        x = opt.ask()
        near = AROUND if len(opt._log.told) - told < SOON else SAME
        assert not any(np.all(np.abs(x - other) <= near * span) for other in rejected)
        opt.tell(x, f(x))
    model = opt.model
    assert model is not None and model.n == told + SOON + 3  # a rejection is no value


def test_a_rejected_row_is_never_asked_again_and_a_retracted_rejection_is_undone() -> None:
    opt = Optimizer(ROWS, seed=0, **GIVEN)
    for i in range(7):
        opt.reject(ROWS[i])
    with pytest.raises(SpaceExhausted):
        opt.ask()
    opt.retract(3)
    np.testing.assert_array_equal(opt.ask(), ROWS[3])
    assert [t.status for t in opt.trials].count("rejected") == 6 and "6 rejected, 1 retracted" in repr(opt)


def test_the_initial_design_goes_around_rejected_points() -> None:
    for space in (BOX, {"lr": Real(1e-4, 1.0, log=True), "n": Int(1, 9), "a": ["x", "y"]}, ROWS):
        opt = Optimizer(space, seed=0)
        plain = opt.ask()
        opt.reject(plain)
        rows = [opt.space.encode(opt.ask()) for _ in range(4)]
        away = np.abs(np.array(rows) - opt.space.encode(plain)).max(axis=1)
        assert np.all(away > 0.0) and len({row.tobytes() for row in rows}) == 4
        assert all(trial.origin == "design" for trial in opt.trials)


def test_where_all_is_near_a_rejected_point_the_point_itself_is_still_avoided() -> None:
    opt = Optimizer([(0.0, 1.0)], seed=0, **GIVEN)
    opt.tell([0.5], 1.0)
    centres = np.linspace(0.0, 1.0, 11)
    for centre in centres:
        opt.reject([centre])
    x = opt.ask()
    assert np.abs(x[0] - centres).min() > SAME


# What is known before


@pytest.mark.parametrize("goal", ["max", "min"])
def test_a_known_mean_is_the_posterior_s_mean_far_from_all_values(goal: Any) -> None:
    def mean(x: Any) -> float:
        return 10.0 + 3.0 * float(x[0])

    opt = Optimizer(BOX, kernel=kernels.RBF(0.05), noise_var=1e-4, seed=0, mean=mean, goal=goal)
    opt.tell([0.1, 0.1], 12.0)
    posterior = opt.posterior
    assert posterior is not None
    mu, var = posterior(np.array([[0.9, 1.9], [0.1, 0.1]]))
    assert mu[0] == pytest.approx(12.7) and mu[1] == pytest.approx(12.0, abs=1e-3) and var[0] == pytest.approx(1.0)
    if goal == "max":
        assert opt.recommend()[0] == pytest.approx(1.0, abs=1e-3)  # 13 at the far end, against 12
    else:
        assert opt.recommend()[0] == pytest.approx(0.0, abs=1e-3)


def test_with_a_known_mean_the_model_is_that_of_the_rest() -> None:
    """The posterior of y with mean m is m plus that of y - m, in moments, gradients, joint draws and maxima."""

    def mean(x: Any) -> float:
        return float(np.sin(3.0 * x[0]) + x[1] ** 2)

    rng, z = np.random.default_rng(0), np.random.default_rng(1).random((6, 2))
    with_mean = Optimizer(BOX, **GIVEN, seed=0, mean=mean)
    rest = Optimizer(BOX, **GIVEN, seed=0)
    for x in rng.random((8, 2)):
        with_mean.tell(x, f(x))
        rest.tell(x, f(x) - mean(x))
    ours, theirs = with_mean.posterior, rest.posterior
    assert ours is not None and theirs is not None
    m = np.array([mean(row) for row in z])
    slope = np.stack([3.0 * np.cos(3.0 * z[:, 0]), 2.0 * z[:, 1]], axis=1)
    a, b = ours.moments(z), theirs.moments(z)
    np.testing.assert_allclose(a.mu, b.mu + m, rtol=1e-10)
    np.testing.assert_allclose(a.mu_gradient, b.mu_gradient + slope, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(a.var, b.var)
    np.testing.assert_allclose(
        ours.sample(z, np.random.default_rng(3)), theirs.sample(z, np.random.default_rng(3)) + m, rtol=1e-9
    )
    np.testing.assert_allclose(ours.mu_at_observed, ours.mu(ours.x), rtol=1e-8)
    assert with_mean.ledger.regret().simple.min() >= 0.0


@pytest.mark.parametrize("space", [BOX, np.random.default_rng(0).random((50, 2))], ids=["box", "rows"])
@pytest.mark.parametrize("policy", [None, LogEI(), Thompson()])
def test_a_good_mean_finds_at_once_and_replays(space: Any, policy: Any) -> None:
    opt = Optimizer(space, policy, seed=0, n_init=2, mean=f)
    for _ in range(6):
        x = opt.ask()
        opt.tell(x, f(x) + 0.3)
    again = Optimizer(space, policy, seed=0, n_init=2, mean=f).replay(opt.trials)
    np.testing.assert_array_equal(opt.ask(), again.ask())
    values = [t.y for t in opt.trials if t.y is not None]
    best = max(f(row) for row in (space if isinstance(space, np.ndarray) else np.array([[0.314, 2.0], [0.314, 0.0]])))
    assert max(values) > best + 0.3 - 0.1
    assert opt.warp.bends is False


def test_a_mean_that_is_no_function_of_a_point_is_refused() -> None:
    with pytest.raises(TypeError, match="mean is 3; give a function"):
        Optimizer(BOX, mean=3)  # type: ignore[arg-type]
    opt = Optimizer(BOX, **GIVEN, mean=lambda x: float("nan"))
    with pytest.raises(ValueError, match=r"mean\(x\) is nan; mean must return one finite number"):
        opt.ask()


@pytest.mark.parametrize(
    ("space", "x0", "rows"),
    [
        (BOX, [0.2, 1.0], [[0.2, 1.0]]),
        (BOX, [[0.2, 1.0], (0.3, 0.1)], [[0.2, 1.0], [0.3, 0.1]]),
        (BOX, np.array([[0.2, 1.0], [0.2, 1.0]]), [[0.2, 1.0]]),
        ([(0.0, 1.0)], [[0.2], [0.7]], [[0.2], [0.7]]),
        (ROWS, [ROWS[3], ROWS[1]], [ROWS[3], ROWS[1]]),
        ({"a": Real(0.0, 1.0)}, {"a": 0.5}, [[0.5]]),
        ({"a": Real(0.0, 1.0)}, [{"a": 0.5}, {"a": 0.25}], [[0.5], [0.25]]),
    ],
)
def test_starting_points_are_asked_first(space: Any, x0: Any, rows: Any) -> None:
    opt = Optimizer(space, seed=0, x0=x0)
    asked = [opt.space.encode(opt.ask()) for _ in range(len(rows) + 1)]
    np.testing.assert_array_equal(asked[:-1], rows)
    assert all(trial.origin == "design" for trial in opt.trials)
    assert asked[-1].tobytes() not in {row.tobytes() for row in asked[:-1]}
    again = Optimizer(space, seed=0, x0=x0).replay(opt.trials[:1])
    np.testing.assert_array_equal(again.space.encode(again.ask()), asked[1])


@pytest.mark.parametrize("x0", [3, "ab", [], [[0.5, 9.0]], [0.5], [None], {"a": 1}])
def test_bad_starting_points_are_refused(x0: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="x0"):
        Optimizer(BOX, x0=x0)


def test_values_of_an_earlier_run_come_with_their_own_noise() -> None:
    earlier = run(6, **GIVEN)
    earlier.ask()
    earlier.retract(2)
    opt = Optimizer(BOX, **GIVEN, seed=0)
    told = opt.tell_all(earlier.trials, noise_var=0.25)
    assert len(told) == 5 and all(t.origin == "user" and t.noise_var == 0.25 for t in told)
    assert opt.tell_all([([0.1, 0.2], 1.0), ([0.3, 0.2], 2.0, 0.5)])[1].noise_var == 0.5
    for bad in ([([0.1, 0.2], 1.0), ([0.1, 0.2],)], [([9.0, 0.2], 1.0)], [([0.1, 0.2], np.inf)], [3], 3):
        with pytest.raises((ValueError, TypeError)):
            opt.tell_all(bad)  # type: ignore[arg-type]
        assert len(opt.trials) == 7
    opt.ask()
    assert opt.trials[-1].origin == "policy" and opt.trials[-1].gamma_hat == 0.0


# maximize


def test_maximize_tells_what_is_known_and_calls_back() -> None:
    seen: list[int] = []

    def on_trial(trial: Trial, optimizer: Optimizer) -> None:
        seen.append(trial.number)
        assert trial.y is not None and optimizer.trials[-1].number == trial.number

    first = maximize(f, BOX, budget=6, seed=0)
    options: dict[str, Any] = {"earlier": first, "on_trial": on_trial, "x0": [0.5, 0.5], "mean": lambda x: 0.0}
    r = maximize(f, BOX, budget=4, seed=0, **options)
    assert seen == [6, 7, 8, 9] and r.reason == "budget" and len(r.trials) == 10
    np.testing.assert_array_equal(r.trials[6].x, [0.5, 0.5])
    assert r.y is not None and first.y is not None and r.y >= first.y
    low = minimize(f, BOX, budget=3, seed=0, earlier=[([0.1, 0.1], -5.0)], on_trial=on_trial)
    assert low.y == -5.0 and len(low.trials) == 4


def test_what_a_callback_raises_ends_the_run_and_keeps_it() -> None:
    def on_trial(trial: Trial, optimizer: Optimizer) -> None:
        if trial.number == 2:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough") as raised:
        maximize(f, BOX, budget=9, seed=0, on_trial=on_trial)
    result = raised.value.result  # type: ignore[attr-defined]
    assert isinstance(result, Result) and len(result.trials) == 3
    for name, bad in (("on_trial", 3), ("earlier", 3), ("earlier", [3]), ("x0", 3), ("mean", 3)):
        with pytest.raises(TypeError, match=name if name != "earlier" else "earlier|observations"):
            maximize(f, BOX, budget=2, **{name: bad})


def test_a_callback_may_correct_and_the_result_shows_it() -> None:
    def on_trial(trial: Trial, optimizer: Optimizer) -> None:
        if trial.number == 1:
            optimizer.correct(trial, 100.0)
        if trial.number == 2:
            optimizer.retract(trial)
            optimizer.reject([0.5, 0.5])

    r = maximize(f, BOX, budget=5, seed=0, on_trial=on_trial)
    assert r.y == 100.0 and "1 rejected, 1 retracted" in repr(r) and "evaluations  5" in repr(r)
    table = r.to_dataframe()
    assert table["status"].tolist().count("retracted") == 1
    assert table["y_before"].notna().sum() == 2 and table["repeats"].tolist() == [1] * 6


# Logging


def test_the_log_has_a_line_for_each_outcome_and_each_event(caplog: Any) -> None:
    with caplog.at_level(logging.INFO, logger="gpmi"):
        opt = Optimizer([(0.0, 1.0)], kernel=kernels.RBF(0.3), noise_var=0.0, seed=0)
        opt.tell([0.5], 1.0)
        opt.tell([0.5], 1.0 + 1e-3, noise_var=0.0)
        opt.correct(0, 2.0)
        opt.fail(opt.ask())
    lines = [(record.levelname, record.getMessage()) for record in caplog.records]
    trials = [text for level, text in lines if level == "INFO"]
    assert len(trials) == 4 and trials[0] == "Trial(0, x=[0.5], y=1, told, user)"
    assert trials[2] == "Trial(0, x=[0.5], y=2, told, user, corrected, first value 1)"
    assert next(text for level, text in lines if level == "WARNING").startswith("jitter: C was singular")
    assert sum(level == "WARNING" for level, _ in lines) == len(opt.events)


def test_nothing_is_printed_without_a_handler(capfd: Any) -> None:
    opt = Optimizer([(0.0, 1.0)], kernel=kernels.RBF(0.3), noise_var=0.0, seed=0)
    for _ in range(2):
        opt.tell([0.5], 1.0)
    assert opt.posterior is not None and opt.events and capfd.readouterr() == ("", "")
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("gpmi").handlers)


def test_a_starting_point_beside_a_rejected_one_is_not_offered() -> None:
    """Within a thousandth of the width it is the same point to whoever rejected it."""
    opt = Optimizer([(0.0, 1.0)], x0=[[1e-100], [0.7]], seed=0)
    opt.reject(np.array([0.0]))
    assert opt.ask() == [0.7]


# What is taken and refused


def test_a_result_or_an_optimizer_stands_for_its_trials() -> None:
    result = maximize(lambda x: float(x[0]), BOX, budget=4, seed=0)
    assert [t.y for t in Optimizer(BOX, seed=0).replay(result).trials] == [t.y for t in result.trials]
    told = Optimizer(BOX, seed=0)
    assert [t.y for t in told.tell_all(result)] == [t.y for t in result.trials]
    assert len(Optimizer(BOX, seed=0).tell_all(told)) == 4
    for call in (told.replay, told.tell_all):
        with pytest.raises(TypeError, match=r"is 3; give a list, or the trials of a run, result\.trials"):
            call(3)  # type: ignore[arg-type]


def test_before_the_first_value_the_ledger_says_so() -> None:
    with pytest.raises(ValueError, match="no value has been told"):
        Optimizer(BOX, seed=0).ledger.regret()


def test_a_given_value_outside_is_refused_without_a_word_of_telling() -> None:
    for space, key in ((BOX, 0), ({"a": Int(0, 4), "b": (0.0, 1.0)}, "a")):
        with pytest.raises(ValueError, match=r"7, outside .*; give a value inside"):
            Optimizer(space, seed=0).ask(fixed={key: 7})


def test_an_exhausted_set_may_have_been_rejected() -> None:
    opt = Optimizer(np.array([[0.0], [1.0]]), seed=0)
    opt.reject([0.0])
    opt.reject([1.0])
    with pytest.raises(SpaceExhausted, match="asked, told, failed or rejected"):
        opt.ask()
