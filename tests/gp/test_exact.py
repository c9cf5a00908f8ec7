"""Exact and almost exact observations: the posterior against fifty digits, and optimisers that do not break."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpmi import EI, LogEI, Optimizer, Posterior, Thompson, kernels

KERNELS = {
    "rbf .3": kernels.RBF(0.3),
    "rbf 1": kernels.RBF(1.0, variance=4.0),
    "rbf 10": kernels.RBF(10.0),
    "matern 1/2": kernels.Matern(nu=0.5, lengthscale=0.5),
    "matern 3/2": kernels.Matern(nu=1.5, lengthscale=0.5),
    "matern 5/2": kernels.Matern(nu=2.5, lengthscale=1.0),
    "matern 7/2": kernels.Matern(nu=3.5, lengthscale=2.0),
    "matern 3": kernels.Matern(nu=3, lengthscale=1.0),
    "linear": kernels.Linear(variance=2.0),
    "sum": kernels.RBF(0.5) + kernels.Linear(0.3),
    "product": kernels.RBF(1.0) * kernels.Linear(2.0),
    "rbf + matern": kernels.RBF(1.0) + kernels.Matern(nu=2.5, lengthscale=0.1, variance=0.01),
}
LAYOUTS = ("random", "even", "clustered", "repeated")


def points(layout: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    if layout == "even":
        return np.linspace(0.0, 1.0, n)[:, None]
    if layout == "clustered":
        return 0.5 + 1e-4 * rng.standard_normal((n, 1))
    x = rng.random((n, 1))
    return x if layout == "random" else x[rng.integers(max(1, n // 3), size=n)]


def f(x: np.ndarray) -> np.ndarray:
    return np.sin(5.0 * x[:, 0]) + x[:, 0]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("noise_var", [0.0, 1e-16])
def test_exact_observations_never_break_a_posterior(name: str, layout: str, noise_var: float) -> None:
    """One by one and together, from 1 to 120 points; the mean is the same by both formulas; one event at most."""
    prior = Posterior.prior(KERNELS[name], noise_var)
    x = points(layout, 120)
    y = f(x)
    z = np.linspace(0.0, 1.0, 7)[:, None]
    together, one_by_one = prior.condition(x, y), prior
    for s in range(120):
        one_by_one = one_by_one.condition(x[s], y[s : s + 1])
    for posterior in (together, one_by_one):
        mu, var = posterior(z)
        assert np.all(np.isfinite(mu)) and np.all(var >= 0.0)
        scale = np.sqrt(KERNELS[name].diagonal(z).max()) + np.abs(y).max()
        np.testing.assert_allclose(posterior.mu(z), mu, atol=1e-6 * scale)
        assert len(posterior.events) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_five_hundred_exact_observations_never_break_a_posterior(layout: str) -> None:
    for kernel in KERNELS.values():
        x = points(layout, 500)
        posterior = Posterior.prior(kernel, 0.0).condition(x, f(x))
        assert np.all(np.isfinite(posterior(x[:5])[0]))


def in_fifty_digits(posterior: Posterior, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Equations 1 and 2 with the kernel values and the jitter of the posterior, solved in fifty digits."""
    import mpmath

    mpmath.mp.dps = 50
    x, y, kernel = posterior.x, posterior.y, posterior.kernel
    k = mpmath.matrix(kernel(x, x).tolist())
    for s, jitter in enumerate(posterior.jitter):
        k[s, s] += mpmath.mpf(posterior.noise_var) + mpmath.mpf(float(jitter))
    mu, var = [], []
    weights = mpmath.lu_solve(k, mpmath.matrix([mpmath.mpf(float(v)) for v in y]))
    for row, prior in zip(kernel(z, x), kernel.diagonal(z), strict=True):
        column = mpmath.matrix([mpmath.mpf(float(v)) for v in row])
        mu.append(float((column.T * weights)[0]))
        var.append(float(mpmath.mpf(float(prior)) - (column.T * mpmath.lu_solve(k, column))[0]))
    return np.array(mu), np.array(var)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", KERNELS)
def test_the_posterior_of_exact_observations_has_six_digits(name: str, layout: str) -> None:
    """Next to the size of f, against fifty digits with the same jitter."""
    x = points(layout, 14)
    y, z = f(x), np.array([[0.03], [0.21], [0.5], [0.77]])
    prior = Posterior.prior(KERNELS[name], 0.0)
    posterior = prior
    for s in range(len(x)):
        posterior = posterior.condition(x[s], y[s : s + 1])
    mu, var = posterior(z)
    want_mu, want_var = in_fifty_digits(posterior, z)
    unit = KERNELS[name].diagonal(z)
    np.testing.assert_allclose(mu, want_mu, atol=1e-6 * max(1.0, float(np.abs(y).max())))
    np.testing.assert_allclose(var, np.maximum(want_var, 0.0), atol=1e-6 * float(unit.max()))


def test_contradictory_replicates_have_one_mean() -> None:
    posterior = Posterior.prior(kernels.RBF(0.5), 0.0)
    for value in (0.0, 1.0, 3.0):
        posterior = posterior.condition(np.array([[0.4]]), np.array([value]))
    np.testing.assert_allclose(posterior(np.array([[0.4]]))[0], 4.0 / 3.0, rtol=1e-6)
    np.testing.assert_allclose(posterior.mu(np.array([[0.4]])), 4.0 / 3.0, rtol=1e-6)
    np.testing.assert_allclose(posterior.mu_at_observed, 4.0 / 3.0, rtol=1e-5)


def test_twenty_even_points_told_exactly() -> None:
    opt = Optimizer([(0.0, 1.0)], kernel=kernels.RBF(0.5), noise_var=0.0)
    for x in np.linspace(0.0, 1.0, 20)[:, None]:
        opt.tell(x, float(f(x[None])[0]))
    x = opt.ask()
    assert 0.0 <= x[0] <= 1.0 and 0.0 <= opt.recommend()[0] <= 1.0
    assert [event.kind for event in opt.events] == ["jitter"]
    again = Optimizer([(0.0, 1.0)], kernel=kernels.RBF(0.5), noise_var=0.0, seed=opt.seed).replay(opt.trials[:20])
    np.testing.assert_array_equal(again.ask(), x)


@pytest.mark.parametrize("policy", [None, EI(), LogEI(), Thompson()], ids=repr)
@pytest.mark.parametrize("space", [[(0.0, 1.0)] * 2, np.random.default_rng(0).random((300, 2))], ids=["box", "rows"])
@pytest.mark.slow
def test_a_run_without_noise_goes_on_and_says_so_once(policy: Any, space: Any) -> None:
    opt = Optimizer(space, policy, kernel=kernels.RBF(0.5), noise_var=0.0, seed=0)
    for _ in range(40):
        x = opt.ask()
        opt.tell(x, float(np.sin(5.0 * x[0]) + x[1]))
    assert sum(event.kind == "jitter" for event in opt.events) <= 2  # a level, and perhaps the next
    again = Optimizer(space, policy, kernel=kernels.RBF(0.5), noise_var=0.0, seed=0).replay(opt.trials)
    np.testing.assert_array_equal(again.ask(), opt.ask())
    assert np.isfinite(opt.ledger.regret().interval()).all()


# Ties


def test_points_that_are_known_do_not_make_all_others_tie() -> None:
    rows = np.linspace(0.0, 1.0, 100)[:, None]
    opt = Optimizer(rows, LogEI(), kernel=kernels.RBF(0.3), noise_var=0.0, seed=0)
    asked = []
    for _ in range(12):
        x = opt.ask()
        asked.append(float(x[0]))
        opt.tell(x, float(-((x[0] - 0.7) ** 2)))
    assert len(set(asked)) >= 8 and min(abs(x - 0.7) for x in asked) < 0.01


@pytest.mark.parametrize("policy", [LogEI(), LogEI("mean"), EI(), None], ids=repr)
def test_with_little_noise_every_choice_on_a_grid_is_the_argmax(policy: Any) -> None:
    from gpmi.cli.demo_function import HIMMELBLAU
    from gpmi.model.model import objective

    side = np.linspace(-5.0, 5.0, 32)
    grid = np.array([(a, b) for a in side for b in side])
    opt = Optimizer(grid, policy, kernel=kernels.RBF(2.0, variance=1e4), noise_var=1e-6, seed=0)
    for _ in range(25):
        model, log = opt._strategy.model(opt._log), opt._log
        scored = objective(model, opt.policy, log, None)
        score = scored(grid)
        x = opt.ask()
        number = int(np.flatnonzero((grid == x).all(axis=1))[0])
        mu, var = scored.posterior(grid[[int(np.argmax(score))]])
        rounding = 1e-8 * (abs(score.max()) + abs(mu[0]) + np.sqrt(var[0]))
        assert score[number] >= score.max() - rounding
        opt.tell(x, HIMMELBLAU.f(x))


def test_one_bad_value_does_not_hide_the_best_mean() -> None:
    rows = np.linspace(0.0, 1.0, 11)[:, None]
    opt = Optimizer(rows, kernel=kernels.RBF(0.01), noise_var=1e-6)
    for i, y in ((0, -1e12), (5, 0.0), (7, 5.0)):
        opt.tell(rows[i], y)
    assert opt.recommend()[0] == rows[7, 0]


@pytest.mark.slow
def test_on_a_box_with_little_noise_no_nats_of_improvement_are_missed() -> None:
    """Against 60 climbs by scipy on the same score."""
    from scipy.optimize import minimize

    from gpmi.model.model import objective

    missed = []
    for seed in range(6):
        opt = Optimizer(
            [(0.0, 1.0)] * 2, LogEI("mean"), kernel=kernels.Matern(lengthscale=0.4), noise_var=1e-8, seed=seed
        )
        for _ in range(14):
            x = opt.ask()
            opt.tell(x, float(np.sin(6.0 * x[0]) * np.cos(5.0 * x[1])))
        scored = objective(opt._strategy.model(opt._log), opt.policy, opt._log, None)
        row = opt.space.encode(opt.ask())

        def loss(u: np.ndarray, scored: Any = scored) -> tuple[float, np.ndarray]:
            value, gradient = scored.with_gradient(u[None])
            return -float(value[0]), -gradient[0]

        starts = np.random.default_rng(seed).random((60, 2))
        best = max(-minimize(loss, u, jac=True, bounds=[(0, 1)] * 2).fun for u in starts)
        missed.append(best - float(scored(row[None])[0]))
    assert max(missed) < 0.5, missed  # another peak, by chance; before it was up to 8 nats
    assert sorted(missed)[3] < 1e-2, missed


@pytest.mark.parametrize("policy", [None, LogEI(), Thompson()], ids=repr)
@pytest.mark.parametrize("space", [[(0.0, 1.0)] * 2, np.random.default_rng(0).random((60, 2))], ids=["box", "rows"])
def test_a_run_without_noise_replays_from_every_moment(policy: Any, space: Any) -> None:
    """Also where the search remembers what it computed before C became singular."""

    def make() -> Optimizer:
        return Optimizer(space, policy, kernel=kernels.RBF(0.7), noise_var=0.0, seed=1)

    opt = make()
    for i in range(18):
        again = make().replay(opt.trials)
        np.testing.assert_array_equal(opt.ask(), again.ask())
        if i % 3:
            first = opt.pending[0]
            opt.tell(first, float(np.sin(5.0 * first.x[0])))


def test_a_box_far_narrower_than_the_lengthscale_replays_too() -> None:
    kernel = kernels.Matern(nu=2.5, lengthscale=0.4) + kernels.Linear(0.3)

    def make() -> Optimizer:
        return Optimizer([(1e-8, 3e-8)], LogEI(), kernel=kernel, noise_var=1e-16, budget=1, repeats=False, seed=0)

    opt = make()
    for _ in range(8):
        again = make().replay(opt.trials)
        np.testing.assert_array_equal(opt.ask(), again.ask())
