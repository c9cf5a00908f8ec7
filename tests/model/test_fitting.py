"""The prior of the default kernel: the criterion, its gradient, what a fit finds and when it is made."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpmi import Posterior, kernels, maximize
from gpmi._support.types import Observations
from gpmi.model.fitting import descent, schedule, slice_sampling
from gpmi.model.fitting.criterion import Criterion, FitSetting
from gpmi.model.fitting.data import FIT_POINTS, subset
from gpmi.model.fitting.fit import SAMPLES, fit
from gpmi.model.fitting.leave_one_out import LeaveOneOut
from gpmi.model.fitting.many_rows import EARLIER_STAYS
from gpmi.model.fitting.noise_fit import fit_noise, noise_density
from gpmi.model.fitting.unknowns import DEFAULT


def draw(n: int, d: int, lengthscale: list[float], noise_var: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    f = Posterior.prior(kernels.Matern(nu=2.5, lengthscale=lengthscale), 0.0).sample(x, rng)[0]
    return x, f + np.sqrt(noise_var) * rng.standard_normal(n)


def setting(groups: tuple[int, ...], noise: float | None = None, loo: bool = False, span: float = 1.0) -> FitSetting:
    return FitSetting(DEFAULT, noise, np.full(len(groups), span), groups, LeaveOneOut if loo else Criterion)


def criterion(
    x: np.ndarray, y: np.ndarray, groups: tuple[int, ...], noise: float | None = None, loo: bool = False
) -> Criterion:
    return setting(groups, noise, loo).criterion(x, y, 1.0)


def test_the_loss_is_minus_evidence_and_prior_and_its_gradient_is_the_difference_quotient() -> None:
    x, y = draw(20, 3, [0.3, 0.5, 0.9], 0.01, 0)
    e = criterion(x, y, (0, 1, 1))
    q = e.unknowns.centre + 0.3
    _, gradient = e.loss(q)
    for j, step in enumerate(1e-6 * np.eye(len(q))):
        assert gradient[j] == pytest.approx((e.loss(q + step)[0] - e.loss(q - step)[0]) / 2e-6, rel=1e-5, abs=1e-6)
    noise, mean = e.noise(q), e.mean(q)
    p = Posterior.prior(e.covariance.kernel(q), noise, mean).condition(x, y)
    off = (q - e.unknowns.centre) / e.unknowns.width
    want = -p.log_evidence - 10 * np.log(2 * np.pi) + 0.5 * (mean**2 + off @ off)
    assert e.loss(q)[0] == pytest.approx(want, rel=1e-9)
    around = [
        Posterior.prior(p.kernel, noise, m).condition(x, y).log_evidence - m * m / 2
        for m in mean + np.array([-1e-3, 0, 1e-3])
    ]
    assert around[1] == max(around)


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(1, 12),
    d=st.integers(1, 3),
    seed=st.integers(0, 1000),
    loo=st.booleans(),
    shift=st.floats(-1.0, 1.0),
    noise=st.one_of(st.none(), st.just(0.01)),
)
def test_both_criteria_have_the_gradient_of_the_difference_quotient(
    n: int, d: int, seed: int, loo: bool, shift: float, noise: float | None
) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.random((n, d)), rng.standard_normal(n)
    e = criterion(x, y, tuple(range(d)), noise, loo)
    q = e.unknowns.centre + shift * rng.random(len(e.unknowns.centre))
    q[-1] = max(q[-1], np.log(1e-3))  # where the difference quotient has digits
    _, gradient = e.loss(q)
    quotient = [(e.loss(q + step)[0] - e.loss(q - step)[0]) / 2e-5 for step in 1e-5 * np.eye(len(q))]
    np.testing.assert_allclose(gradient, quotient, rtol=1e-4, atol=1e-4)


@given(
    loo=st.booleans(),
    asked=st.lists(st.tuples(st.sampled_from(["loss", "mean", "misfit", "surprisal"]), st.integers(0, 2)), min_size=2),
)
def test_what_a_criterion_says_does_not_depend_on_what_it_was_asked_before(
    loo: bool, asked: list[tuple[str, int]]
) -> None:
    x, y = draw(9, 2, [0.3, 0.5], 0.01, 5)
    e = criterion(x, y, (0, 1), loo=loo)
    for what, shift in asked:
        q = e.unknowns.centre + 0.1 * shift
        said, anew = (getattr(one, what)(q) for one in (e, criterion(x, y, (0, 1), loo=loo)))
        parts = zip(said, anew, strict=True) if what == "loss" else [(said, anew)]
        for part, other in parts:  # a loss comes with its gradient
            np.testing.assert_array_equal(part, other)


def test_the_leave_one_out_likelihood_is_that_of_as_many_refits() -> None:
    x, y = draw(12, 2, [0.3, 0.5], 0.01, 5)
    e = criterion(x, y, (0, 1), loo=True)
    q = e.unknowns.centre + 0.2
    noise = e.noise(q)
    # The constant mean is N(0, 1): one more term of the covariance.
    c = e.covariance.kernel(q)(x, x) + 1.0
    total = 0.0
    for i in range(12):
        rest = np.arange(12) != i
        k = np.linalg.solve(c[np.ix_(rest, rest)] + noise * np.eye(11), c[rest, i])
        var = c[i, i] + noise - k @ c[rest, i]
        total += -0.5 * ((y[i] - k @ y[rest]) ** 2 / var + np.log(var))
    off = (q - e.unknowns.centre) / e.unknowns.width
    assert e.loss(q)[0] == pytest.approx(-total + 0.5 * off @ off, rel=1e-9)


@pytest.mark.slow
def test_leave_one_out_finds_lengthscales_and_noise_too() -> None:
    x, y = draw(150, 2, [0.2, 0.8], 0.04, 1)
    prior = fit(setting((0, 1), loo=True), x, y)
    assert isinstance(prior.kernel, kernels.Matern) and isinstance(prior.kernel.lengthscale, tuple)
    assert 0.1 < prior.kernel.lengthscale[0] < 0.4 < prior.kernel.lengthscale[1]
    assert 0.02 < prior.noise_var < 0.08


@pytest.mark.parametrize("loo", [False, True])
def test_the_search_ends_where_another_minimiser_ends_and_is_warm_once_it_has_been_there(loo: bool) -> None:
    from scipy.optimize import minimize

    x, y = draw(60, 4, [0.3, 0.5, 0.9, 2.0], 0.0, 6)
    e = criterion(x, (y - y.mean()) / y.std(), (0, 1, 2, 3), loo=loo)
    peak = descent.descend(e, descent.start(e, e.unknowns.centre), 60)
    bounds = list(zip(e.unknowns.lo, e.unknowns.hi, strict=True))
    want = minimize(e.loss, peak.q, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-13, "gtol": 1e-7})
    assert peak.loss < want.fun + 0.05
    again = descent.descend(e, peak, 60)
    assert again.loss == pytest.approx(peak.loss, abs=0.02)
    assert np.all(peak.q >= e.unknowns.lo) and np.all(peak.q <= e.unknowns.hi)


def test_a_minimum_on_the_bounds_is_found() -> None:
    a = np.array([[2.0, 1.9], [1.9, 2.0]])  # so coupled that the free minimum's path leaves the box

    def f(q: np.ndarray) -> tuple[float, np.ndarray]:
        return float(0.5 * q @ a @ q - 100.0 * q[0]), a @ q - np.array([100.0, 0.0])

    lo, hi = np.array([-1.0, -3.0]), np.array([1.0, 3.0])
    peak = descent.minimum_in_box(f, descent.DescentPoint(np.zeros(2), 0.0, np.eye(2)), lo, hi, 50)
    np.testing.assert_allclose(peak.q, [1.0, -0.95], atol=0.1)


@pytest.mark.parametrize("d", [1, 2, 6, 30])
@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_few_points_of_a_smooth_function_collapse_neither_a_lengthscale_nor_the_noise(n: int, d: int) -> None:
    for seed in range(10):
        rng = np.random.default_rng([n, d, seed])
        x = rng.random((n, d))
        y = np.sin(3.0 * x @ rng.standard_normal(d) / np.sqrt(d))
        prior = fit(setting(tuple(range(d))), x, y)
        assert isinstance(prior.kernel, kernels.Matern)
        assert np.all(np.array(prior.kernel.lengthscale) > 0.05)
        assert np.all(np.array(prior.kernel.lengthscale) < 20.0 * np.sqrt(d))
        assert prior.noise_var < 0.1 * y.var()


def test_it_finds_lengthscales_and_noise_of_a_draw_in_the_users_units() -> None:
    x, y = draw(150, 2, [0.2, 0.8], 0.04, 1)
    prior = fit(setting((0, 1), span=100.0), 100.0 * x, 5.0 * y + 1000.0)
    assert isinstance(prior.kernel, kernels.Matern) and isinstance(prior.kernel.lengthscale, tuple)
    l0, l1 = prior.kernel.lengthscale
    assert 12 < l0 < 33 and 40 < l1 < 200
    assert 0.5 < prior.noise_var / (25 * 0.04) < 2.0
    assert 990 < prior.mean < 1010


def test_a_fit_is_unchanged_when_x_and_y_change_their_units() -> None:
    x, y = draw(40, 2, [0.3, 0.5], 0.01, 2)
    a = fit(setting((0, 1)), x, y)
    b = fit(setting((0, 1), span=7.0), 7.0 * x, 1e6 * y - 3e5)
    assert isinstance(a.kernel, kernels.Matern) and isinstance(b.kernel, kernels.Matern)
    np.testing.assert_allclose(b.kernel.lengthscale, 7.0 * np.array(a.kernel.lengthscale), rtol=1e-3)
    assert b.noise_var == pytest.approx(1e12 * a.noise_var, rel=1e-2)


def test_coordinates_of_one_parameter_share_a_lengthscale() -> None:
    x, y = draw(30, 3, [0.3, 0.5, 0.5], 0.01, 3)
    prior = fit(setting((0, 1, 1)), x, y)
    assert isinstance(prior.kernel, kernels.Matern) and isinstance(prior.kernel.lengthscale, tuple)
    assert prior.kernel.lengthscale[1] == prior.kernel.lengthscale[2] != prior.kernel.lengthscale[0]


def test_a_given_noise_is_kept() -> None:
    x, y = draw(30, 1, [0.3], 0.01, 3)
    assert fit(setting((0,), noise=0.123), x, y).noise_var == 0.123


def test_with_a_given_kernel_only_the_noise_is_learned() -> None:
    x, y = draw(200, 1, [0.3], 0.09, 4)
    k = kernels.Matern(nu=2.5, lengthscale=0.3)
    prior = fit_noise(x, y, k)
    assert prior.kernel is k and prior.mean == 0.0
    assert 0.06 < prior.noise_var < 0.13


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("kind", ["constant", "zero", "random", "huge", "outlier", "duplicate"])
def test_a_few_points_of_any_kind_give_a_usable_prior_without_warnings(n: int, kind: str) -> None:
    rng = np.random.default_rng(n)
    x = rng.random((n, 2)) if kind != "duplicate" else np.full((n, 2), 0.5)
    y = {
        "constant": np.full(n, 3.0),
        "zero": np.zeros(n),
        "huge": 1e9 * rng.standard_normal(n),
        "outlier": np.append(rng.standard_normal(n - 1), 1e6),
    }.get(kind, rng.standard_normal(n))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prior = fit(setting((0, 1)), x, y)
    mu, var = prior.posterior().condition(x, y)(rng.random((5, 2)))
    assert np.all(np.isfinite(mu)) and np.all(var > 0)
    assert isinstance(prior.kernel, kernels.Matern)
    assert np.all(np.array(prior.kernel.lengthscale) > 0.02)


def test_refits_are_a_function_of_n_and_rare_enough() -> None:
    points = [schedule.fit_size(n) for n in range(5000)]
    fits = sorted(set(points))
    assert points[:17] == list(range(17))
    assert all(p <= n < p + max(1, p / 4) for n, p in enumerate(points) if n)
    assert all(b - a >= a // 16 for a, b in pairwise(fits))
    for p in fits:
        chain, q = 0, schedule.warm_size(p)
        while q is not None:
            assert q in fits and q < p
            chain, q = chain + 1, schedule.warm_size(q)
        assert chain <= 4 + np.log2(p + 1)


def test_a_large_fit_looks_at_a_subset_with_the_extremes() -> None:
    x, y = np.arange(1000.0)[:, None], np.sin(np.arange(1000.0))
    rows = subset(y, FIT_POINTS)
    xs, ys = x[rows], y[rows]
    assert len(xs) <= FIT_POINTS and ys.max() == y.max() and ys.min() == y.min()
    assert xs[0] == 0 and xs[-1] == 999


def clustered(seed: int, n: int) -> Observations:
    """Values in twelve clusters of six dimensions, with noise of sd 0.3."""
    rng = np.random.default_rng(seed)
    x = np.clip(rng.random((12, 6))[rng.integers(12, size=n)] + 0.1 * rng.standard_normal((n, 6)), 0.0, 1.0)
    y = -np.sin(6.0 * x + np.arange(6)).sum(axis=1) + 0.3 * rng.standard_normal(n)
    return Observations.of(x, y, np.zeros(n), np.ones(n))


def learned_priors() -> schedule.PriorSchedule:
    return schedule.PriorSchedule(None, None, "map", span=np.ones(6), groups=tuple(range(6)), seed=0)


@pytest.mark.parametrize("seed", [0, 7, 8, 12])
@pytest.mark.parametrize("preloaded", [0, 320])
def test_beyond_256_values_short_lengthscales_without_noise_are_left_again(seed: int, preloaded: int) -> None:
    """A fit on 256 values of a cluster takes noise for a rough f; more values say otherwise."""
    prior = learned_priors()(320, clustered(seed, 320), preloaded=preloaded)
    assert 0.2 < np.sqrt(prior.noise_var) < 0.4
    assert np.exp(prior.kernel.theta[1:]).min() > 0.2


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 1000), n=st.sampled_from([320, 384, 512]))
def test_beyond_256_values_no_fit_explains_all_values_worse_than_the_fit_before(seed: int, n: int) -> None:
    observed, priors = clustered(seed, n), learned_priors()
    scale = float(observed.y.std())
    e = setting(tuple(range(6))).criterion(observed.x, (observed.y - observed.y.mean()) / scale, scale)

    def surprisal(p: int) -> float:
        prior = priors(p, observed)
        return e.surprisal(e.covariance.q_of(prior.kernel, prior.noise_var / scale**2))

    before = schedule.warm_size(n)
    assert before is not None and surprisal(n) <= surprisal(before) + 1e-6
    if EARLIER_STAYS in priors(n, observed).events:
        assert surprisal(n) == pytest.approx(surprisal(before), abs=1e-6)


def test_slice_sampling_leaves_a_normal_density_invariant(monkeypatch: pytest.MonkeyPatch) -> None:
    e = criterion(np.zeros((1, 2)), np.zeros(1), (0, 1))
    chol = np.array([[0.3, 0.0, 0.0, 0.0], [0.2, 0.2, 0.0, 0.0], [0.0, 0.1, 0.4, 0.0], [-0.5, 0.0, 0.3, 0.6]])

    def loss(q: np.ndarray) -> tuple[float, np.ndarray]:
        off = np.linalg.solve(chol, q - e.unknowns.centre)
        return 0.5 * float(off @ off), np.zeros(4)

    monkeypatch.setattr(e, "loss", loss)
    guess = np.diag([4.0, 30.0, 4.0, 1.0])  # rough scales will do
    draws = np.array(
        slice_sampling.sample(e, descent.DescentPoint(e.unknowns.centre, 0.0, guess), 1500, np.random.default_rng(0))
    )
    np.testing.assert_allclose(draws.mean(axis=0), e.unknowns.centre, atol=0.08)
    np.testing.assert_allclose(np.cov(draws.T), chol @ chol.T, atol=0.06)


def test_draws_of_the_prior_lie_around_the_most_probable_one_and_are_seeded() -> None:
    x, y = draw(60, 2, [0.3, 0.6], 0.01, 7)
    a, b = (fit(setting((0, 1)), x, y, rng=np.random.default_rng(1)) for _ in range(2))
    assert len(a.samples) == SAMPLES
    thetas = np.array([one.kernel.theta for one in a.samples])
    np.testing.assert_array_equal(thetas, [one.kernel.theta for one in b.samples])
    assert np.all(np.abs(thetas - a.kernel.theta).mean(axis=0) < 2.0)
    assert len({one.noise_var for one in a.samples}) == SAMPLES
    few = fit(setting((0, 1)), x[:1], y[:1], rng=np.random.default_rng(1))
    assert len(few.samples) == SAMPLES and not fit(setting((0, 1)), x, y).samples


def test_exact_observations_that_repeat_do_not_lose_the_fit() -> None:
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 11)] * 2), -1).reshape(-1, 2)
    result = maximize(lambda x: -((x[0] - 0.3) ** 2) - (x[1] - 0.6) ** 2, grid, budget=30, noise_var=0.0, seed=0)
    assert not [event for event in result.events if event.kind == "fit"]


@pytest.mark.parametrize("x", [0.0, 6e-161, 1e-155, 1e-150])
def test_noise_is_learned_where_the_kernel_nearly_vanishes(x: float) -> None:
    """A variance of the kernel below the normal numbers is as good as none."""
    kernel = kernels.RBF(1.0) * kernels.Linear(2.0)
    rows, y = np.array([[0.0], [x]]), np.zeros(2)
    assert fit_noise(rows, y, kernel).noise_var > 0.0 and np.all(np.isfinite(noise_density(rows, y, kernel).loss))
