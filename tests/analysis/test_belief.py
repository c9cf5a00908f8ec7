"""The belief and what is computed from it: draws of the prior against long chains, gains against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import gpmi
from gpmi import Optimizer, Posterior, kernels
from gpmi._support.types import Observations
from gpmi.analysis.ledger.belief import Belief, believed, draw_priors_of, inflation
from gpmi.analysis.ledger.facts import noise_in_words
from gpmi.analysis.ledger.gain import draw_gain, expected_improvement
from gpmi.gp.kernels import AffineKernel
from gpmi.model.fitting.criterion import FitSetting
from gpmi.model.fitting.fit import fit
from gpmi.model.fitting.prior_draws import DRAWS, DrawingProblem, draw_noise_priors, draw_priors, drawn_priors
from gpmi.model.fitting.schedule import PriorSchedule
from gpmi.model.fitting.slice_sampling import chain
from gpmi.model.fitting.unknowns import DEFAULT
from gpmi.model.fitting.warp import IDENTITY
from gpmi.model.model import Model, ModelSetting
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


def model_of(x, y, **arguments):
    space = Space.of(BOX)
    kernel, noise_var = arguments.get("kernel"), arguments.get("noise_var")
    priors = PriorSchedule(kernel, noise_var, arguments.get("fit", "map"), span=space.span, groups=space.groups, seed=3)
    return Model.after(ModelSetting(space, priors, 3), Observations.of(x, y))


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
    drawn = drawn_priors(model_of(x, y).setting.priors, len(y), Observations.of(x, y), IDENTITY)
    assert len(drawn) == DRAWS
    for prior in drawn:
        assert prior.mean == pytest.approx(y.mean())
        assert prior.kernel.constant == pytest.approx(y.var())
        assert 0.0 < prior.noise_var < 10.0 * y.var()
    again = drawn_priors(model_of(x, y).setting.priors, len(y), Observations.of(x, y), IDENTITY)
    assert [prior.noise_var for prior in again] == [prior.noise_var for prior in drawn]


@pytest.mark.slow
def test_the_draws_have_the_law_of_a_long_chain():
    x, y = told(10)
    problem = posed(10)
    (peak, *_) = problem.peaks(fit(problem.setting, x, y))
    criterion = problem.criterion
    long = np.array(chain(criterion.surprisal, criterion.unknowns, peak, 1500, 8, np.random.default_rng(1)))
    short = []
    for seed in range(20):
        space = Space.of(BOX)
        priors = PriorSchedule(None, None, "map", span=space.span, groups=space.groups, seed=seed)
        short += [problem.q_of(prior) for prior in drawn_priors(priors, 10, Observations.of(x, y), IDENTITY)]
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


def two_readings(n=60, noise=0.5):
    """Values that short lengthscales without noise explain, or long ones with noise: two peaks, far apart."""
    rng = np.random.default_rng(4)
    x = rng.random((n, 1))
    y = np.sin(5.0 * x[:, 0]) + noise * rng.standard_normal(n)
    return x, y, FitSetting(DEFAULT, None, np.ones(1), (0,))


def test_a_fit_that_is_lost_in_a_dead_mode_does_not_keep_the_draws_there():
    """The earlier fit has no noise and a short lengthscale; the values say otherwise by dozens of nats."""
    x, y, setting = two_readings()
    problem = DrawingProblem.of(setting, Observations.of(x, y), IDENTITY)
    lost = problem.prior(np.array([0.0, np.log(6e-3), np.log(1e-7)]))
    drawn = draw_priors(setting, Observations.of(x, y), lost, IDENTITY, np.random.default_rng(0))
    surprisals = [problem.criterion.surprisal(problem.q_of(prior)) for prior in drawn]
    (best, *_) = problem.peaks(lost)
    assert max(surprisals) < problem.criterion.surprisal(best.q) + 15.0
    assert all(0.1 < prior.noise_var < 0.6 for prior in drawn)


@pytest.mark.slow
def test_two_readings_share_the_draws_by_their_mass():
    """Few values leave both readings open. The share of noisy draws is that of a density on a grid."""
    x, y, setting = two_readings(n=7)
    problem = DrawingProblem.of(setting, Observations.of(x, y), IDENTITY)
    unknowns = problem.criterion.unknowns
    axes = [np.linspace(max(lo, c - 4 * w), min(hi, c + 4 * w), 25) for lo, hi, c, w in
            zip(unknowns.lo, unknowns.hi, unknowns.centre, unknowns.width, strict=True)]  # fmt: skip
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    loss = np.array([problem.criterion.surprisal(q) for q in grid])
    weight = np.exp(loss.min() - loss)
    noisy = float(weight[grid[:, 2] > np.log(0.01)].sum() / weight.sum())
    near, drawn = fit(setting, x, y), []
    for seed in range(12):
        drawn += draw_priors(setting, Observations.of(x, y), near, IDENTITY, np.random.default_rng(seed))
    share = np.mean([problem.q_of(prior)[-1] > np.log(0.01) for prior in drawn])
    assert share == pytest.approx(noisy, abs=0.2)


# The belief


def test_a_residual_is_the_normal_quantile_of_the_averaged_probability():
    x, y = told(13)
    model = model_of(x, y)
    draws = draw_priors_of(model, Observations.of(x, y))
    assert len(draws.residuals) == 12
    for s in (3, 11):
        below = []
        for prior in draws.priors:
            (mu,), (var,) = prior.posterior().condition(x[:s], y[:s])(x[s])
            below.append(stats.norm.cdf((y[s] - mu) / np.sqrt(var + prior.noise_var)))
        assert draws.residuals[s - 1] == pytest.approx(stats.norm.ppf(np.mean(below)), rel=1e-6)


@pytest.mark.slow
def test_on_draws_of_the_hyper_prior_the_residuals_are_nearly_standard_normal():
    """f, its lengthscales, variance, noise and mean are drawn from what the draws assume; these know the values."""
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
        residuals.append(draw_priors_of(model_of(x, y), Observations.of(x, y)).residuals)
    z = np.concatenate(residuals)
    assert np.mean(np.abs(z) <= 1.96) == pytest.approx(0.96, abs=0.04)
    assert 0.75 < np.sqrt(np.mean(z**2)) < 1.1


def test_quantiles_of_the_belief_are_those_of_the_mixture():
    x, y = told(12)
    model = model_of(x, y)
    belief = believed(model, Observations.of(x, y), draw_priors_of(model, Observations.of(x, y)))
    row, levels = np.array([0.4, 1.1]), np.array([0.05, 0.5, 0.95])
    for level, found in zip(levels, belief.quantiles(row, levels), strict=True):
        moments = [posterior(row[None]) for posterior in belief.posteriors]
        below = np.mean([stats.norm.cdf(found, mu[0], np.sqrt(var[0])) for mu, var in moments])
        assert below == pytest.approx(level, abs=0.005)


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
    model, observed = model_of(x, y), Observations.of(x, y)
    draws = draw_priors_of(model, observed)
    z, large = np.random.default_rng(0).random((6, 2)) * SPAN, 3.0 * np.ones(11)
    factors = inflation(large, DRAWS)
    plain, raised = (believed(model, observed, draws._replace(residuals=r)).posteriors for r in (0.0 * large, large))
    for before, after, factor in zip(plain, raised, factors, strict=True):
        assert after.noise_var == pytest.approx(factor * before.noise_var)
        constant = before.kernel.constant
        np.testing.assert_allclose(after.kernel(z, z) - constant, factor * (before.kernel(z, z) - constant))


def test_a_learned_interval_is_the_quantile_of_a_mixture_and_begins_at_0():
    x, y = told(12)
    opt = Optimizer(BOX, seed=3)
    for row, value in zip(x, y, strict=True):
        opt.tell(row, value)
    regret = opt.ledger.regret()
    assert regret.learned and "16 draws of the prior" in regret.how
    assert regret.interval(0.9) == (0.0, np.quantile(regret.simple, 0.9))
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 21), np.linspace(0, 2, 21)), -1).reshape(-1, 2)
    mixture = opt.ledger.belief.posteriors
    at = np.concatenate([opt.model.recommendation.row[None], grid])
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
    for row, value in zip(*told(9), strict=True):
        opt.tell(row, value)
    assert "peaks that no query came near" in opt.ledger.statistics
    assert "peaks that no query came near" in repr(opt.ledger.regret())
    given = gpmi.maximize(lambda x: x[0], BOX, budget=3, seed=0, kernel=kernels.RBF(0.4), noise_var=0.01)
    assert "no query came near" not in given.ledger.statistics


def test_a_value_far_beyond_everything_before_leaves_the_ledger_readable() -> None:
    opt = gpmi.Optimizer(np.array([[0.0], [1.0]]), fit="loo", seed=0)
    for y in (0.0, 0.0, 0.0, 0.0, 1e90):
        opt.tell(opt.ask(), y)
    assert np.all(np.isfinite(opt.ledger.regret().simple)) and str(opt.ledger)


def test_before_enough_values_nothing_is_claimed():
    opt = Optimizer(BOX, seed=3)
    for row, value in zip(*told(9), strict=True):
        opt.tell(row, value)
        ledger, known = opt.ledger, len(opt.trials) >= 9  # 3 (p + 1) values
        assert ledger.needed == 9
        assert ledger.regret().known == ledger.gain().known == known
        assert np.isfinite(ledger.improvement) == known
        assert known or "it takes 9 values to say, and there are" in str(ledger)
        assert known or ledger.calibration.verdict == "too early to say"
        assert known or np.isnan(ledger.gain().probability_above(1e9))
    few = Optimizer(np.arange(4.0)[:, None] ** 2, seed=0)
    assert few.ledger.needed == 4  # there are no more than four rows


# What more evaluations would bring


def test_the_gain_is_that_of_simulated_evaluations():
    """On three points of a known posterior, with every evaluation simulated one by one and solved directly."""
    z, noise = np.array([[0.0], [0.4], [1.0]]), 0.3
    posterior = Posterior.prior(kernels.RBF(lengthscale=0.5), noise**2).condition(z[[0, 2]], np.array([0.2, 0.1]))
    space = Space.of(z)
    priors = PriorSchedule(kernels.RBF(0.5), noise**2, "map", span=space.span, groups=space.groups, seed=0)
    model = Model.after(ModelSetting(space, priors, 0), Observations.of(z[[0, 2]], np.array([0.2, 0.1])))
    here = int(np.argmax(posterior.mu(z)))
    for count in (1, 4):
        gain = draw_gain(model, Belief((posterior,), np.empty(0)), z[here], z, count, np.random.default_rng(0))
        rng, brute = np.random.default_rng(1), []
        for _ in range(4000):
            f, after = posterior.sample(z, rng)[0], posterior
            for at in posterior.sample(z, rng, count).argmax(axis=1):
                after = after.condition(z[at], np.array([f[at] + noise * rng.standard_normal()]))
            brute.append(f[np.argmax(after.mu(z))] - f[here])
        assert gain.mean == pytest.approx(np.mean(brute), abs=0.06)
        for eps in (0.0, 0.2, 0.5):
            assert gain.probability_above(eps) == pytest.approx(np.mean(np.array(brute) > eps), abs=0.07)


def test_more_evaluations_gain_more_and_none_beyond_the_regret():
    x, y = told(14)
    opt = Optimizer(BOX, seed=3)
    for row, value in zip(x, y, strict=True):
        opt.tell(row, value)
    one, ten = opt.ledger.gain(1), opt.ledger.gain(10)
    assert one.mean < ten.mean < opt.ledger.regret().simple.mean() * 1.05
    assert ten.probability_above(0.0) >= ten.probability_above(1.0)
    assert np.array_equal(opt.ledger.gain(10).draws, ten.draws)


def test_the_improvement_is_the_largest_over_the_mixture():
    x, y = told(12)
    opt = Optimizer(BOX, seed=3)
    for row, value in zip(x, y, strict=True):
        opt.tell(row, value)
    ledger, rng = opt.ledger, np.random.default_rng(0)
    z = rng.random((40, 2)) * SPAN
    row = ledger.model.recommendation.row
    draws = np.concatenate([posterior.sample(np.vstack([row, z]), rng, 4000) for posterior in ledger.belief.posteriors])
    gains = np.maximum(draws[:, 1:] - draws[:, :1], 0.0).mean(axis=0)
    assert expected_improvement(ledger.model, ledger.belief, z) == pytest.approx(gains.max(), rel=0.1)


def test_a_transformation_is_continued_as_a_line_beyond_the_values():
    x = np.random.default_rng(0).random((40, 2)) * SPAN
    model = model_of(x, np.exp(6.0 * x[:, 0] + np.sin(4.0 * x[:, 1])))
    assert model.warp.bends
    low, high = model.posterior.y.min(), model.posterior.y.max()
    inside = np.linspace(low, high, 9)
    np.testing.assert_allclose(model.to_units_of_y(inside), model.warp.inverse(inside), rtol=1e-9)
    top, step = float(model.to_units_of_y(np.array([high]))[0]), 1e-6
    slope = (top - float(model.warp.inverse(np.array([high - step]))[0])) / step
    assert float(model.to_units_of_y(np.array([high + 50.0]))[0]) == pytest.approx(top + 50.0 * slope, rel=1e-3)


def test_noise_that_is_not_clear_is_given_as_a_range():
    x, y = told(9)
    opt = Optimizer(BOX, seed=3)
    for row, value in zip(x, y, strict=True):
        opt.tell(row, value)
    low, high = opt.ledger.belief.noise_vars
    variances = [posterior.noise_var for posterior in opt.ledger.belief.posteriors]
    assert (low, high) == pytest.approx(np.quantile(variances, [0.1, 0.9]))
    assert ("not clear yet" in str(opt.ledger)) == (high > 9.0 * low)
    assert "not clear yet" in noise_in_words(0.1, (0.01, 0.5)) and "not clear" not in noise_in_words(0.1, (0.08, 0.12))
    assert opt.ledger.advice.what == "go on" and "can I stop?  not yet" in str(opt.ledger)


@pytest.mark.parametrize("seed", [1, 6, 8, 9])
def test_every_peak_is_a_peak(seed):
    """The gradient is 0 there, up to the descent's precision, unless a bound holds it, and no neighbour is lower."""
    rng = np.random.default_rng(seed)
    x = rng.random((14, 1))
    y = np.sin(4.0 * x[:, 0]) + 0.5 * rng.standard_normal(14)
    setting = FitSetting(DEFAULT, None, np.ones(1), (0,))
    problem = DrawingProblem.of(setting, Observations.of(x, y), IDENTITY)
    unknowns = problem.criterion.unknowns
    for peak in problem.peaks(fit(setting, x, y)):
        free = (peak.q > unknowns.lo + 1e-6) & (peak.q < unknowns.hi - 1e-6)
        gradient = problem.criterion.loss(peak.q)[1]
        step = np.linalg.solve(peak.hessian[np.ix_(free, free)], gradient[free])
        assert float(gradient[free] @ step) < 0.1  # nats that a Newton step would gain, twice
        lower = [problem.criterion.loss(np.clip(peak.q + 0.3 * d, unknowns.lo, unknowns.hi))[0] for d in np.eye(3)]
        assert min(lower) > peak.loss - 0.1


def test_values_that_broke_a_constraint_set_no_scale():
    opt = Optimizer([(0.0, 1.0)], seed=0)
    for i, x in enumerate(np.linspace(0.0, 1.0, 20)):
        opt.tell([x], 1000.0 if i == 7 else -((x - 0.3) ** 2), constraints=[1.0 if i == 7 else -1.0])
    assert opt.ledger.smallest_gain < 0.1


def test_the_number_of_further_evaluations_is_limited():
    opt = Optimizer([(0.0, 1.0)], seed=0)
    opt.tell([0.5], 1.0)
    with pytest.raises(ValueError, match="evaluations is 1000; give a whole number of at most 100"):
        opt.ledger.gain(1000)


def test_the_advice_to_stop_names_a_better_point_only_if_one_may_exist() -> None:
    """Otherwise it would be "better by more than 0.9, by up to 0.4"."""
    found = []
    for f in (lambda x: -((x[0] - 0.3) ** 2), lambda x: float(np.exp(-200.0 * (x[0] - 0.9) ** 2)) + x[0]):
        opt = gpmi.Optimizer([(0.0, 1.0)], seed=0, budget=24)
        for _ in range(24):
            x = opt.ask()
            opt.tell(x, f(x))
        ledger = opt.ledger
        missed = 1.0 - ledger.regret().probability_below(ledger.smallest_gain)
        if ledger.advice.what == "stop":
            found.append(missed <= 0.05)
            assert ("better by up to" in ledger.advice.why) == (missed > 0.05)
    assert found
