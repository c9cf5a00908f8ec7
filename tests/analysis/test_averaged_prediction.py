"""Draws of the prior and the prediction averaged over them: laws against long chains and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import gpmi
from gpmi import Optimizer, Posterior, kernels
from gpmi._support.types import Observations
from gpmi.analysis.ledger.averaged_prediction import RECENT, AveragedResiduals, Particles, RunValues, begin, inflation
from gpmi.gp.kernels import AffineKernel
from gpmi.model.fitting.criterion import FitSetting
from gpmi.model.fitting.fit import fit
from gpmi.model.fitting.prior_draws import DRAWS, DrawingProblem, draw_noise_priors, move_priors
from gpmi.model.fitting.schedule import PriorSchedule
from gpmi.model.fitting.slice_sampling import chain
from gpmi.model.fitting.unknowns import DEFAULT
from gpmi.model.fitting.warp import IDENTITY
from gpmi.model.model import ModelSetting
from gpmi.space import Space

BOX = [(0.0, 1.0), (0.0, 2.0)]
SPAN = np.array([1.0, 2.0])


def told(n=14, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random((n, 2)) * SPAN
    f = Posterior.prior(kernels.Matern(nu=2.5, lengthscale=(0.4, 0.9)), 0.0).sample(x, rng)[0]
    return x, 3.0 + 2.0 * (f + noise * rng.standard_normal(n))


def posed(n=14, seed=0):
    x, y = told(n, seed=seed)
    return DrawingProblem.of(FitSetting(DEFAULT, None, SPAN, (0, 1)), Observations.of(x, y), IDENTITY)


def values_of(x, y, **arguments):
    space = Space.of(BOX)
    kernel, noise_var = arguments.get("kernel"), arguments.get("noise_var")
    priors = PriorSchedule(kernel, noise_var, arguments.get("fit", "map"), span=space.span, groups=space.groups, seed=3)
    return RunValues(ModelSetting(space, priors, 3), Observations.of(x, y), IDENTITY)


# The kernel


def test_an_affine_kernel_is_a_number_times_a_kernel_plus_a_constant():
    base, z = kernels.Matern(nu=1.5, lengthscale=0.4) + kernels.Linear(0.3), np.random.default_rng(0).random((5, 2))
    affine = AffineKernel(base, 2.5, 0.7)
    np.testing.assert_allclose(affine(z, z), 2.5 * base(z, z) + 0.7)
    np.testing.assert_allclose(affine.diagonal(z), np.diag(affine(z, z)))
    weights, h = np.random.default_rng(1).random((5, 5)), 1e-6
    weights = weights + weights.T

    def weighed(theta):
        return float((affine.with_theta(theta)(z, z) * weights).sum())

    steps = h * np.eye(len(affine.theta))
    numeric = [(weighed(affine.theta + step) - weighed(affine.theta - step)) / (2 * h) for step in steps]
    np.testing.assert_allclose(affine.with_theta_pullback(z)[1](weights), numeric, rtol=1e-5, atol=1e-7)
    for k in range(2):
        step = h * np.eye(2)[k]
        rise = ((affine(z + step, z) - affine(z - step, z)) * weights).sum(axis=1) / (2 * h)
        np.testing.assert_allclose(affine.with_input_pullback(z, z)[1](weights)[:, k], rise, rtol=1e-5, atol=1e-6)
        diagonal = (affine.diagonal(z + step) - affine.diagonal(z - step)) / (2 * h)
        np.testing.assert_allclose(affine.diagonal_gradient(z)[:, k], diagonal, atol=1e-6)


# Draws of the prior


def test_the_surprisal_integrates_the_mean_out():
    """Up to a constant it is -log N(y; 0, C + 1 1^T) - log p(q), with C the covariance in standardised units."""
    problem, rng = posed(), np.random.default_rng(0)
    criterion, unknowns = problem.criterion, problem.criterion.unknowns
    x, y = told()
    z = (y - y.mean()) / y.std()
    gaps = []
    for _ in range(5):
        q = unknowns.centre + 0.7 * unknowns.width * rng.standard_normal(len(unknowns.centre))
        k = problem.criterion.covariance.kernel(q)(x, x) / y.var() + np.exp(q[-1]) * np.eye(len(y)) + 1.0
        density = stats.multivariate_normal(np.zeros(len(y)), k).logpdf(z)
        prior = stats.norm.logpdf(q, unknowns.centre, unknowns.width).sum()
        gaps.append(criterion.surprisal(q) + density + prior)
    np.testing.assert_allclose(gaps, gaps[0], rtol=1e-9)


def test_a_draw_of_the_prior_has_the_mean_and_the_units_of_y():
    x, y = told()
    drawn = values_of(x, y).setting.priors.draw(len(y), Observations.of(x, y), IDENTITY)
    assert len(drawn) == DRAWS
    for prior in drawn:
        assert prior.mean == pytest.approx(y.mean())
        assert prior.kernel.constant == pytest.approx(y.var())
        assert 0.0 < prior.noise_var < 10.0 * y.var()
    again = values_of(x, y).setting.priors.draw(len(y), Observations.of(x, y), IDENTITY)
    assert [prior.noise_var for prior in again] == [prior.noise_var for prior in drawn]


@pytest.mark.slow
def test_moves_keep_the_law_of_the_draws():
    """Draws of a long chain, each moved once, have the law they had."""
    problem, rng = posed(8), np.random.default_rng(0)
    x, y = told(8)
    near = fit(problem.setting, x, y)
    peak = problem.peak(near)
    long = chain(problem.criterion.surprisal, problem.criterion.unknowns, peak, 600, 8, rng)
    before = tuple(problem.prior(q) for q in long)
    after = move_priors(problem.setting, Observations.of(x, y), before, near.hessian, rng)
    was, now = (np.array([problem.q_of(prior) for prior in some]) for some in (before, after))
    for k in range(was.shape[1]):
        assert stats.ks_2samp(was[:, k], now[:, k]).pvalue > 1e-3
        assert np.mean(was[:, k] == now[:, k]) < 0.05


@pytest.mark.slow
def test_the_draws_have_the_law_of_a_long_chain():
    x, y = told(10)
    problem = posed(10)
    peak = problem.peak(fit(problem.setting, x, y))
    criterion = problem.criterion
    long = np.array(chain(criterion.surprisal, criterion.unknowns, peak, 1500, 8, np.random.default_rng(1)))
    short = []
    for seed in range(20):
        space = Space.of(BOX)
        priors = PriorSchedule(None, None, "map", span=space.span, groups=space.groups, seed=seed)
        short += [problem.q_of(prior) for prior in priors.draw(10, Observations.of(x, y), IDENTITY)]
    spread = long.std(axis=0)
    np.testing.assert_allclose(np.mean(short, axis=0), long.mean(axis=0), atol=0.25 * spread.max())
    np.testing.assert_allclose(np.std(short, axis=0) / spread, 1.0, atol=0.25)


def test_under_a_given_kernel_the_noise_has_its_density():
    x, y = told(20, noise=0.3)
    kernel, y = kernels.Matern(nu=2.5, lengthscale=0.5), (y - 3.0) / 2.0
    drawn = draw_noise_priors(FitSetting(kernel, None, SPAN, (0, 1)), Observations.of(x, y))
    grid = np.linspace(np.log(1e-8), np.log(2.0), 2000)
    loss = [
        -stats.multivariate_normal(np.zeros(20), kernel(x, x) + np.exp(g) * np.eye(20)).logpdf(y)
        + 0.5 * ((g - np.log(1e-5)) / 3.0) ** 2
        for g in grid
    ]
    weight = np.exp(np.min(loss) - np.array(loss))
    below = np.cumsum(weight) / weight.sum()
    expected = [grid[np.searchsorted(below, (i + 0.5) / DRAWS)] for i in range(DRAWS)]
    np.testing.assert_allclose(np.log([prior.noise_var for prior in drawn]), expected, atol=0.05)
    assert all(prior.kernel == kernel and prior.mean == 0.0 for prior in drawn)


# The averaged prediction


def test_a_residual_is_the_normal_quantile_of_the_averaged_probability():
    x, y = told(13)
    values = values_of(x, y)
    z = AveragedResiduals()(values)
    start = begin(13)
    assert (start, len(z)) == (4, 9)
    drawn = values.setting.priors.draw(start, Observations.of(x, y), IDENTITY)
    below = []
    for prior in drawn:
        posterior = prior.posterior().condition(x[:start], y[:start])
        (mu,), (var,) = posterior(x[start])
        below.append(stats.norm.cdf((y[start] - mu) / np.sqrt(var + prior.noise_var)))
    assert z[0] == pytest.approx(stats.norm.ppf(np.mean(below)), rel=1e-6)


def test_draws_that_predicted_better_count_more():
    """The second residual: the draws are weighted by the density of the first value, if they are not moved."""
    x, y = told(6)
    values = values_of(x, y)
    particles = Particles(4, values.setting.priors.draw(4, Observations.of(x, y), IDENTITY))
    z, density = particles.ahead(values, 6)
    for i, prior in enumerate(particles.drawn):
        posterior = prior.posterior().condition(x[:5], y[:5])
        (mu,), (var,) = posterior(x[5])
        assert z[i, 1] == pytest.approx((y[5] - mu) / np.sqrt(var + prior.noise_var), rel=1e-6)
        ahead = stats.norm.logpdf(y[5], mu, np.sqrt(var + prior.noise_var)) + 0.5 * np.log(2 * np.pi)
        assert density[i, 1] == pytest.approx(ahead, rel=1e-6, abs=1e-9)
    weights = density[:, 0]
    alive = np.exp(2 * logsumexp(weights) - logsumexp(2 * weights)) / DRAWS
    found = AveragedResiduals()(values)
    if alive >= 0.5:
        below = np.exp(logsumexp(weights + stats.norm.logcdf(z[:, 1])) - logsumexp(weights))
        assert found[1] == pytest.approx(stats.norm.ppf(below), rel=1e-6)
    else:
        assert found[1] != 0.0


@pytest.mark.slow
def test_on_draws_of_the_hyper_prior_the_residuals_are_standard_normal():
    """f, its lengthscales, its variance, its noise and its mean are drawn from what the draws assume."""
    residuals, rng = [], np.random.default_rng(0)
    for _ in range(40):
        x = rng.random((26, 2)) * SPAN
        unknowns = DrawingProblem.of(
            FitSetting(DEFAULT, None, SPAN, (0, 1)), Observations.of(x, np.arange(26.0)), IDENTITY
        ).criterion.unknowns
        q = np.clip(unknowns.centre + unknowns.width * rng.standard_normal(4), unknowns.lo, unknowns.hi)
        kernel = kernels.Matern(nu=2.5, lengthscale=np.exp(q[1:3]) * SPAN, variance=float(np.exp(q[0])))
        f = Posterior.prior(AffineKernel(kernel, constant=1.0), 0.0).sample(x, rng)[0]
        y = f + np.exp(0.5 * q[-1]) * rng.standard_normal(26)
        residuals.append(AveragedResiduals()(values_of(x, y)))
    z = np.concatenate(residuals)
    assert np.mean(np.abs(z) <= 1.96) == pytest.approx(0.95, abs=0.04)
    assert np.sqrt(np.mean(z**2)) == pytest.approx(1.0, abs=0.2)


def test_residuals_do_not_depend_on_when_they_are_read():
    x, y = told(21)
    late, often = AveragedResiduals(), AveragedResiduals()
    for n in range(1, 22):
        read = often(values_of(x[:n], y[:n]))
    np.testing.assert_allclose(late(values_of(x, y)), read, rtol=1e-6, atol=1e-9)
    drawn = [foreseen.priors(values_of(x, y)) for foreseen in (late, often)]
    np.testing.assert_allclose(*[[prior.noise_var for prior in some] for some in drawn], rtol=1e-6)
    for n in (9, 15):
        np.testing.assert_allclose(
            often(values_of(x[:n], y[:n])), AveragedResiduals()(values_of(x[:n], y[:n])), rtol=1e-6
        )


def test_the_residuals_begin_in_the_first_half():
    assert [begin(n) for n in (5, 8, 15, 16, 31, 32, 63, 64)] == [4, 4, 4, 8, 8, 16, 16, 32]
    assert [begin(n) for n in (511, 512, 1000, 5000)] == [128, 384, 768, 4864]
    assert all(RECENT <= n - begin(n) < 2 * RECENT for n in range(512, 3000))
    for n in range(8, 200):
        assert n / 4 < begin(n) <= n / 2


def test_large_residuals_raise_the_variances_and_small_ones_do_not_lower_them():
    """s^2 = (5 + sum z^2) / chi^2_{5 + n}, in equal shares, and at least 1."""
    for z in (np.full(20, 2.0), np.full(6, 1.0), np.empty(0)):
        factors = np.sort(inflation(z, 16))
        law = (5 + z @ z) / stats.chi2(5 + len(z)).ppf((np.arange(16) + 0.5) / 16)
        np.testing.assert_allclose(factors, np.sort(np.maximum(law, 1.0)))
    assert np.all(inflation(np.full(40, 0.1), 16) == 1.0)
    assert np.median(inflation(np.full(40, 2.0), 16)) == pytest.approx(165 / 45, rel=0.05)
    order = inflation(np.full(20, 2.0), 16)
    assert not np.all(np.diff(order) < 0.0)
    x, y = told(12)
    values = values_of(x, y)
    drawn = values.setting.priors.draw(12, Observations.of(x, y), IDENTITY)[:2]
    for plain, raised in zip(values.posteriors(drawn, 12), values.posteriors(drawn, 12, np.full(2, 4.0)), strict=True):
        assert raised.noise_var == pytest.approx(4.0 * plain.noise_var)
        z = np.random.default_rng(0).random((6, 2)) * SPAN
        constant = plain.kernel.constant
        np.testing.assert_allclose(raised.kernel(z, z) - constant, 4.0 * (plain.kernel(z, z) - constant))


def test_a_learned_interval_is_the_quantile_of_a_mixture_and_begins_at_0():
    x, y = told(12)
    opt = Optimizer(BOX, seed=3)
    for row, value in zip(x, y, strict=True):
        opt.tell(row, value)
    regret = opt.ledger.regret()
    assert regret.learned and "16 draws of the prior" in regret.how
    assert regret.interval(0.9) == (0.0, np.quantile(regret.simple, 0.9))
    values = values_of(x, y)
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 21), np.linspace(0, 2, 21)), -1).reshape(-1, 2)
    foreseen = AveragedResiduals()
    mixture = values.posteriors(foreseen.priors(values), 12, inflation(foreseen(values), DRAWS))
    at = np.concatenate([opt.model.recommended[None], grid])
    brute = np.concatenate([posterior.sample(at, np.random.default_rng(0), 200) for posterior in mixture])
    gaps = brute.max(axis=1) - brute[:, 0]
    scale = np.quantile(gaps, 0.95)
    expected = np.quantile(gaps, [0.25, 0.5, 0.75, 0.9])
    np.testing.assert_allclose(np.quantile(regret.simple, [0.25, 0.5, 0.75, 0.9]), expected, atol=0.2 * scale)


@pytest.mark.parametrize("arguments", [{"fit": "loo"}, {"fit": "mcmc"}, {"noise_var": 0.01}], ids=str)
def test_whatever_is_learned_and_however_it_is_averaged_over(arguments):
    x, y = told(9)
    opt = Optimizer(BOX, seed=3, **arguments)
    for row, value in zip(x, y, strict=True):
        opt.tell(row, value)
    assert "16 draws of the prior" in opt.ledger.regret().how
    assert 0.0 < opt.ledger.regret().interval()[1] < 100.0 * np.ptp(y)


def test_one_value_or_equal_values_give_no_interval():
    for count in (1, 3):
        opt = Optimizer(BOX, seed=3)
        for row in told()[0][:count]:
            opt.tell(row, 2.0)
        regret = opt.ledger.regret()
        assert not regret.known
        assert regret.interval() == (0.0, np.inf)
        assert regret.probability_below(1e300) == 0.0
        assert not opt.ledger.is_below(1e300)
        assert "not known" in str(opt.ledger)
    given = Optimizer(BOX, seed=3, kernel=kernels.RBF(0.4), noise_var=0.01)
    given.tell([0.5, 0.5], 2.0)
    assert given.ledger.regret().known


def test_the_printed_interval_says_what_it_does_not_cover():
    opt = Optimizer(BOX, seed=3)
    for row, value in zip(*told(6), strict=True):
        opt.tell(row, value)
    assert "peaks that no query came near" in str(opt.ledger)
    assert "peaks that no query came near" in repr(opt.ledger.regret())
    given = gpmi.maximize(lambda x: x[0], BOX, budget=3, seed=0, kernel=kernels.RBF(0.4), noise_var=0.01)
    assert "no query came near" not in str(given.ledger)


def test_a_value_far_beyond_everything_before_leaves_the_ledger_readable() -> None:
    opt = gpmi.Optimizer(np.array([[0.0], [1.0]]), fit="loo", seed=0)
    for y in (0.0, 0.0, 0.0, 0.0, 1e90):
        opt.tell(opt.ask(), y)
    assert np.all(np.isfinite(opt.ledger.regret().simple)) and str(opt.ledger)
