"""Tracked candidates and lazy variances against the direct way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpmi import EI, GPMI, GPUCB, Posterior, kernels
from gpmi.gp import tracking
from gpmi.gp.lazy_search import lazy_argmax, search_lazily
from gpmi.gp.tracking import Tracked, first_best, moments_in_chunks, next_row
from gpmi.policies import Policy, State

KERNEL = kernels.Matern(nu=2.5, lengthscale=0.3)


def state(**changes: float) -> State:
    values = dict(t=5, gamma_hat=0.7, noise_var=1e-3, best_observed=0.4, best_mean=0.3, size=500, dim=0, horizon=None)
    return State(**(values | changes))  # type: ignore[arg-type]


def setting(n: int, m: int, seed: int = 0) -> tuple[Posterior, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x, y, z = rng.random((n, 2)), rng.standard_normal(n), rng.random((m, 2))
    return Posterior.prior(KERNEL, 1e-3, mean=0.2), x, y, z


def test_tracked_moments_are_the_posteriors_after_every_observation() -> None:
    p, x, y, z = setting(90, 200)
    tracked = Tracked.start(p, z)
    for i in range(90):
        p = p.condition(x[i], y[i])
        tracked = tracked.follow(p)
        mu, var = p(z)
        np.testing.assert_allclose(tracked.mu, mu, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(tracked.var, var, rtol=1e-8, atol=1e-12)


@given(split=st.integers(0, 60))
@settings(max_examples=15)
def test_starting_late_and_following_several_at_once_gives_the_same(split: int) -> None:
    p, x, y, z = setting(60, 50)
    start = p.condition(x[:split], y[:split]) if split else p
    end = start.condition(x[split:], y[split:]) if split < 60 else start
    tracked = Tracked.start(start, z).follow(end)
    np.testing.assert_allclose(tracked.mu, end(z)[0], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(tracked.var, end(z)[1], rtol=1e-8, atol=1e-12)


def test_versions_that_part_do_not_disturb_each_other() -> None:
    p, x, y, z = setting(80, 40)
    for i in range(50):
        p = p.condition(x[i], y[i])
    base = Tracked.start(Posterior.prior(KERNEL, 1e-3, mean=0.2), z).follow(p)
    left, right = p, p
    tracked_left, tracked_right = base, base
    for i in range(50, 65):
        left, right = left.anticipate(x[i]), right.condition(x[i + 15], y[i])
        tracked_left, tracked_right = tracked_left.follow(left), tracked_right.follow(right)
    for tracked, q in ((base, p), (tracked_left, left), (tracked_right, right)):
        np.testing.assert_allclose(tracked.mu, q(z)[0], rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(tracked.var, q(z)[1], rtol=1e-8, atol=1e-12)


def test_the_row_of_a_pending_point_is_used_again_when_it_is_told() -> None:
    p, x, y, z = setting(10, 30)
    base = Tracked.start(p, z).follow(told := p.condition(x[:5], y[:5]))
    pending = base.follow(told.anticipate(x[5]))
    again = base.follow(told.condition(x[5], y[5]))
    assert again._blocks[-1] is pending._blocks[-1]
    np.testing.assert_array_equal(again.var, pending.var)


def test_following_needs_the_same_prior_and_the_same_beginning() -> None:
    p, x, y, z = setting(10, 30)
    tracked = Tracked.start(p.condition(x[:5], y[:5]), z)
    assert tracked.extends_to(p.condition(x, y))
    assert not tracked.extends_to(p.condition(x[:4], y[:4]))
    assert not tracked.extends_to(p.condition(x[1:], y[1:]))
    assert not tracked.extends_to(p.condition(x, y + 1.0))
    assert not tracked.extends_to(Posterior.prior(kernels.RBF(0.2), 1e-3, mean=0.2).condition(x, y))


@pytest.mark.parametrize("policy", [GPMI(), GPUCB(), EI()], ids=repr)
@pytest.mark.parametrize("chunk", [2**22, 300])
def test_the_lazy_argmax_is_the_direct_argmax_at_every_step(
    policy: Policy, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracking, "_CHUNK_VALUES", chunk)
    p, x, y, z = setting(60, 400)
    excluded = np.random.default_rng(1).random(400) < 0.2
    bound = None
    for i in range(60):
        s = state(gamma_hat=p.gamma_hat(), t=i + 1)
        score = policy.score(*p(z), s)
        number, bound = lazy_argmax(p, z, lambda mu, var, s=s: policy.score(mu, var, s), bound)
        assert number == first_best(score)
        fresh_bound, _ = lazy_argmax(p, z, lambda mu, var, s=s: policy.score(mu, var, s), None, excluded)
        assert fresh_bound == first_best(np.where(excluded, -np.inf, score))
        assert np.all(bound >= p(z)[1] - 1e-12)
        p = p.condition(z[number] if i % 2 else x[i], y[i])


def test_lazy_variances_are_few() -> None:
    p, x, y, z = setting(100, 20_000)
    p = p.condition(x, y)
    counted = []
    original = Posterior.__call__

    def counting(self: Posterior, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        counted.append(len(points))
        return original(self, points)

    s = state(gamma_hat=p.gamma_hat())
    _, bound = lazy_argmax(p, z, lambda mu, var: GPMI().score(mu, var, s))
    p = p.condition(z[7], 0.3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Posterior, "__call__", counting)
        lazy_argmax(p, z, lambda mu, var: GPMI().score(mu, var, s), bound)
    assert sum(counted) < 2_000


@given(seed=st.integers(0, 100), slack=st.floats(0.0, 3.0))
@settings(max_examples=30)
def test_a_lazy_search_finds_the_best_score_and_computes_none_whose_bound_is_below_it(seed: int, slack: float) -> None:
    rng = np.random.default_rng(seed)
    true = rng.standard_normal(500)
    bound = true + slack * rng.random(500)
    score, stale = bound.copy(), np.ones(500, dtype=bool)
    best = search_lazily(score, stale, lambda numbers: true[numbers], lambda best: best)
    assert best == true.max()
    np.testing.assert_array_equal(score, np.where(stale, bound, true))
    assert np.all(bound[stale] < best)
    assert np.sum(~stale) <= 32 + 2 * np.sum(bound >= best)  # portions of 32, 64, ...: the last may be too large


def test_a_lazy_search_leaves_alone_what_may_not_be_computed() -> None:
    true, stale = np.array([1.0, 5.0, 2.0]), np.array([True, False, True])
    score = np.full(3, 9.0)
    assert search_lazily(score, stale, lambda numbers: true[numbers], lambda best: best) == 2.0
    np.testing.assert_array_equal(score, [1.0, 9.0, 2.0])


def test_the_next_row_of_v_is_that_of_a_triangular_solve_however_the_rows_above_are_cut() -> None:
    p, x, y, z = setting(12, 30)
    p = p.condition(x, y)
    v, lower = p.whiten(z), p.factor.row(11)
    for above in ([v[:11]], [v[:4], v[4:4], v[4:11]]):
        covariance = p.kernel(x[11:], z)[0]
        np.testing.assert_allclose(next_row(covariance, lower, above), v[11], rtol=1e-9, atol=1e-12)


def test_moments_in_chunks_are_the_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking, "_CHUNK_VALUES", 100)
    p, x, y, z = setting(20, 57)
    p = p.condition(x, y)
    for got, want in zip(moments_in_chunks(p, z), p(z), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


def test_a_tie_goes_to_the_first_and_rounding_does_not_break_it() -> None:
    assert first_best(np.array([1.0, 3.0, 3.0])) == 1
    assert first_best(np.array([1.0, 3.0, np.nextafter(3.0, 4.0)])) == 1
    assert first_best(np.array([1.0, 3.0, 3.0 + 1e-6])) == 2
    assert first_best(np.array([-np.inf, -np.inf, -5.0])) == 2
    assert first_best(np.array([0.0, np.inf])) == 1


def test_an_excluded_row_is_never_the_best_even_if_all_others_are_minus_infinity() -> None:
    score, excluded = np.array([5.0, -np.inf, -np.inf]), np.array([True, False, False])
    assert first_best(score, excluded) == 1
    p, x, y, z = setting(5, 3)
    number, _ = lazy_argmax(p.condition(x, y), z, lambda mu, var: np.full(len(mu), -np.inf), None, excluded)
    assert number == 1


@given(offset=st.sampled_from([0.0, 1e3, -1e6, 1e9]))
def test_the_best_row_does_not_depend_on_an_offset(offset: float) -> None:
    score = np.random.default_rng(0).standard_normal(50)
    assert first_best(score + offset) == int(np.argmax(score))
