"""Error bars, merged values, a known mean, later words, failures, with the averaged interval, guard and constraints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from gpmi import Int, Optimizer, Posterior, Real, Trial, kernels, maximize
from gpmi._support.types import Observations
from gpmi.analysis.ledger.belief import PriorDraws, believed, draw_priors_of
from gpmi.gp.paths import PathSampler
from gpmi.gp.trend import Trend
from gpmi.model.fitting import schedule
from gpmi.model.fitting.criterion import FitSetting
from gpmi.model.fitting.data import merges
from gpmi.model.fitting.prior_draws import DRAWS, DrawingProblem, draw_noise_priors
from gpmi.model.fitting.schedule import PriorSchedule
from gpmi.model.fitting.unknowns import DEFAULT
from gpmi.model.fitting.warp import IDENTITY, Warp
from gpmi.model.model import Model, ModelSetting
from gpmi.policies import guard
from gpmi.space import Space

BOX = [(0.0, 1.0), (0.0, 2.0)]
SPAN = np.array([1.0, 2.0])


def f(x):
    return float(np.sin(5.0 * x[0]) + 0.5 * x[1])


def told(n, places=None, *, own=True, seed=0):
    """Observations with error bars and means of several evaluations, `places` different points in turn."""
    rng = np.random.default_rng(seed)
    x = (rng.random((places or n, 2)) * SPAN)[np.arange(n) % (places or n)]
    noise_var = np.array([0.0, 0.02, 0.3])[np.arange(n) % 3] if own else np.zeros(n)
    repeats = 1.0 + np.arange(n) // (places or 2) % 2
    spread = np.sqrt(0.01 / repeats + noise_var)
    y = np.array([f(row) for row in x]) + spread * rng.standard_normal(n)
    return Observations.of(x, y, noise_var, repeats)


def model_of(observed, kernel=None, trend=None, warp=IDENTITY):
    space = Space.of(BOX)
    priors = PriorSchedule(kernel, None, "map", span=space.span, groups=space.groups, seed=3)
    model = Model.after(ModelSetting(space, priors, 3, trend), observed)
    return replace(model, prior=replace(model.prior, warp=warp))


def fill(opt, observed, mean=lambda x: 0.0):
    rows = zip(observed.x, observed.y, observed.noise_var, observed.repeats, strict=True)
    for row, y, noise_var, repeats in rows:
        opt.tell(row, y + mean(row), noise_var=float(noise_var), repeats=int(repeats))
    return opt


# The averaged interval


@pytest.mark.parametrize("n, places", [(14, None), (132, 12)], ids=["error bars", "merged"])
def test_the_surprisal_is_that_of_all_values(n, places):
    """Up to a constant -log N(y; 0, C + 1 1^T) - log p(q), where C has the noise of each value on its diagonal."""
    observed, rng = told(n, places), np.random.default_rng(1)
    assert merges(observed) == (places is not None)
    problem = DrawingProblem.of(FitSetting(DEFAULT, None, SPAN, (0, 1)), observed, IDENTITY)
    criterion, unknowns, scale = problem.criterion, problem.criterion.unknowns, problem.scale
    z, x = (observed.y - problem.location) / scale, observed.x
    gaps = []
    for _ in range(5):
        q = unknowns.centre + 0.5 * unknowns.width * rng.standard_normal(len(unknowns.centre))
        noise = np.exp(q[-1]) / observed.repeats + observed.noise_var / scale**2
        c = criterion.covariance.kernel(q)(x, x) / scale**2 + np.diag(noise) + 1.0
        density = stats.multivariate_normal(np.zeros(n), c).logpdf(z)
        gaps.append(criterion.surprisal(q) + density + stats.norm.logpdf(q, unknowns.centre, unknowns.width).sum())
    np.testing.assert_allclose(gaps, gaps[0], rtol=1e-5)  # the matrix has a condition number of 3e8


@pytest.mark.parametrize("n, places", [(20, None), (130, 10)], ids=["error bars", "merged"])
def test_the_noise_beside_error_bars_has_its_density(n, places):
    observed = told(n, places)
    kernel = kernels.Matern(nu=2.5, lengthscale=0.5)
    drawn = draw_noise_priors(FitSetting(kernel, None, SPAN, (0, 1)), observed)
    grid, x = np.linspace(np.log(1e-8), np.log(2.0), 600), observed.x
    loss = []
    for g in grid:
        c = kernel(x, x) + np.diag(np.exp(g) / observed.repeats + observed.noise_var + 1e-12)
        whitened = np.linalg.solve(chol := np.linalg.cholesky(c), observed.y)
        evidence = -0.5 * float(whitened @ whitened) - float(np.log(np.diag(chol)).sum())
        loss.append(0.5 * ((g - np.log(1e-5)) / 3.0) ** 2 - evidence)
    below = np.cumsum(weight := np.exp(np.min(loss) - np.array(loss))) / weight.sum()
    expected = [grid[np.searchsorted(below, (i + 0.5) / DRAWS)] for i in range(DRAWS)]
    np.testing.assert_allclose(np.log([prior.noise_var for prior in drawn]), expected, atol=0.1)


@pytest.mark.parametrize("warp", [IDENTITY, Warp(hi=0.5, s=0.7, o=0.5)], ids=["y", "warped"])
def test_merged_values_are_foreseen_one_by_one(warp):
    """Residuals of the values in their order, as without merging, with each one's own noise."""
    observed = told(140, 12)
    model = model_of(observed, warp=warp)
    draws = draw_priors_of(model, observed)
    z = []
    for prior in draws.priors:
        noise = prior.noise_var / observed.repeats + observed.noise_var * np.exp(2.0 * warp.log_slope(observed.y))
        posterior = prior.posterior().condition(observed.x, warp(observed.y), noise)
        assert posterior.n == 140
        z.append(stats.norm.cdf(posterior.whitened[1:]))
    np.testing.assert_allclose(stats.norm.cdf(draws.residuals), np.mean(z, axis=0), rtol=1e-4, atol=1e-5)
    merged = believed(model, observed, draws).posteriors[0]
    assert (merged.n, merged.count) == (12, 140)


def test_error_bars_are_raised_with_the_other_variances():
    observed = told(12)
    model = model_of(observed)
    draws = draw_priors_of(model, observed)
    large = PriorDraws(draws.priors, np.full(11, 3.0))
    plain, raised = (
        believed(model, observed, some).posteriors for some in (PriorDraws(draws.priors, np.zeros(11)), large)
    )
    for prior, before, after in zip(draws.priors, plain, raised, strict=True):
        np.testing.assert_allclose(before.noise, prior.noise_var / observed.repeats + observed.noise_var)
        np.testing.assert_allclose(after.noise / before.noise, after.noise_var / before.noise_var)
        assert after.noise_var > 2.0 * before.noise_var


def test_a_known_mean_is_no_part_of_what_is_averaged_over():
    """Values with a known mean on top: the same residuals and draws, and predictions with the mean on top."""
    observed = told(11)

    def mean(x):
        return 7.0 + 3.0 * x[0] ** 2

    trend = Trend(mean, np.zeros(2), SPAN)
    on_top = Observations.of(observed.x, observed.y + trend(observed.x), observed.noise_var, observed.repeats)
    without, known = model_of(observed), model_of(on_top, trend=trend)
    draws, same = draw_priors_of(without, observed), draw_priors_of(known, on_top)
    np.testing.assert_allclose(same.residuals, draws.residuals, rtol=1e-5, atol=1e-7)
    z = np.random.default_rng(0).random((5, 2)) * SPAN
    pairs = (believed(without, observed, draws).posteriors, believed(known, on_top, draws).posteriors)
    for a, b in zip(*pairs, strict=True):
        np.testing.assert_allclose(b(z)[0], a(z)[0] + trend(z), rtol=1e-8)
        np.testing.assert_allclose(b(z)[1], a(z)[1])
    opt = fill(Optimizer(BOX, seed=3, mean=mean), observed, mean)
    np.testing.assert_allclose(opt.ledger.calibration.ahead, draws.residuals, rtol=1e-5, atol=1e-7)


def test_a_value_that_is_all_known_mean_says_nothing():
    opt = Optimizer(BOX, seed=0, mean=lambda x: 4.0 * x[0])
    for row in ([0.25, 0.5], [0.5, 1.0], [0.75, 0.5]):
        opt.tell(row, 4.0 * row[0])
    assert not opt.ledger.regret().known


@pytest.mark.parametrize("goal", ["max", "min"])
def test_the_ledger_of_corrected_and_retracted_trials_is_that_of_the_right_values(goal):
    observed = told(10)
    right = fill(Optimizer(BOX, seed=3, goal=goal), observed)
    wrong = Optimizer(BOX, seed=3, goal=goal)
    for i, row in enumerate(observed.x):
        y = observed.y[i] + 5.0 * (i == 6)
        wrong.tell(row, y, noise_var=float(observed.noise_var[i]), repeats=int(observed.repeats[i]))
        if i == 2:
            wrong.tell([0.5, 0.5], 30.0)
        if i in (4, 9):
            wrong.ledger.regret()  # what is read before must not stay
    wrong.correct(7, float(observed.y[6]))
    wrong.retract(3)
    np.testing.assert_array_equal(wrong.ledger.regret().simple, right.ledger.regret().simple)
    np.testing.assert_array_equal(wrong.ledger.calibration.ahead, right.ledger.calibration.ahead)
    assert wrong.ledger.regret().t == 10


def test_the_ledger_of_merged_values_counts_values_and_not_rows():
    observed = told(132, 12, own=False)
    opt = fill(Optimizer(BOX, seed=3), observed)
    assert opt.model.posterior.n < opt.model.posterior.count == 132
    regret = opt.ledger.regret()
    assert regret.t == 132 and "16 draws of the prior" in regret.how
    assert opt.ledger.calibration.ahead.shape == (131,)
    assert abs(opt.ledger.calibration.ahead).max() < 5.0


def test_paths_have_the_known_mean_everywhere():
    trend = Trend(lambda x: 100.0 * x[0], np.zeros(2), SPAN)
    prior = Posterior.prior(kernels.RBF(0.4), 0.01, trend=trend)
    rng = np.random.default_rng(0)
    z = rng.random((9, 2)) * SPAN
    paths = PathSampler.of(prior.condition(z[:4], trend(z[:4])), z[:6]).paths(3, rng, rough=True)
    for s in range(3):
        np.testing.assert_allclose(paths.everywhere(z)[:, s], paths(z, np.full(9, s))[0], rtol=1e-5, atol=1e-4)


# The guard


def test_the_account_of_the_guard_has_the_noise_of_each_value():
    """C_1 I of values with different noise is the sum of what each has, and at least the variances."""
    var, noise = np.array([0.5, 0.2, 0.9]), np.array([0.01, 0.3, 2.0])
    each = [guard.learned(var[i : i + 1], float(noise[i]), 1.0)[0] for i in range(3)]
    np.testing.assert_allclose(guard.learned(var, noise, 1.0), each)
    assert np.all(guard.learned(var, noise, 1.0) >= var)


def test_the_guard_goes_on_with_merged_rejected_and_retracted_trials():
    rng = np.random.default_rng(0)
    rows = rng.random((30, 2))
    kernel = kernels.Matern(nu=2.5, lengthscale=0.4)
    opt = Optimizer(rows, aim="earn", kernel=kernel, noise_var=0.01, seed=0, mean=lambda x: 0.5 * f(x))
    for i in range(140):
        x = opt.ask()
        if i == 5:
            rejected = opt.reject(x)
            continue
        opt.tell(x, f(x) + 0.1 * rng.standard_normal(), noise_var=0.02 * (i % 2), repeats=1 + i % 3)
    opt.retract(3)
    opt.ask()
    assert opt.model.posterior.n < opt.model.posterior.count == 138
    assert opt.trials[-1].policy_notes is not None
    assert not any(np.array_equal(trial.x, rejected.x) for trial in opt.trials[rejected.number + 1 :])


# Constraints, conditions and ranks


def test_starting_points_keep_to_the_constraints_and_rejected_ones_do_not_come_back():
    opt = Optimizer(BOX, seed=1, constraints="x0 + x1 <= 0.8", x0=[[0.1, 0.1], [0.2, 0.5]], mean=f)
    np.testing.assert_array_equal(opt.ask(2), [[0.1, 0.1], [0.2, 0.5]])
    opt.reject(1)
    opt.tell(0, f([0.1, 0.1]), noise_var=0.01)
    for _ in range(9):
        x = opt.ask()
        assert x.sum() <= 0.8 + 1e-9
        assert np.any(np.abs(x - [0.2, 0.5]) > 1e-3 * SPAN)
        opt.tell(x, f(x))
    with pytest.raises(ValueError, match=r"x0.*constraint"):
        Optimizer(BOX, constraints="x0 + x1 <= 0.8", x0=[0.9, 0.9])
    with pytest.raises(ValueError, match="constraint"):
        opt.reject([0.9, 0.9])


def test_candidates_by_rank_take_starting_points_a_mean_and_rejections():
    table = pd.DataFrame([(a, b) for a in (1, 2, 1000) for b in np.linspace(0.0, 1.0, 9)], columns=["a", "b"])

    def value(x):
        return -((x["b"] - 0.4) ** 2) + 0.1 * np.log(x["a"])

    seen = []

    def mean(x):
        seen.append(x["a"])
        return 0.5 * value(x)

    first = [dict(table.iloc[5]), dict(table.iloc[20])]
    opt = Optimizer(table, seed=0, x0=first, mean=mean, constraints="a + b <= 1000.5")
    assert [dict(x) for x in opt.ask(2)] == first
    rejected = []
    for trial in opt.pending:
        opt.tell(trial, value(trial.x))
    for i in range(12):
        x = opt.ask()
        assert x not in rejected and x["a"] + x["b"] <= 1000.5
        if i in (1, 6):
            opt.reject(x)
            rejected.append(x)
        else:
            opt.tell(x, value(x), noise_var=1e-4)
    assert set(seen) <= {1, 2, 1000}
    assert opt.ledger.regret().known


# Failures, constraints measured beside y, heavy tails


def works(x):
    return bool(x[0] + 0.3 * x[1] <= 0.7)


@pytest.mark.parametrize("noise", ["normal", "student"])
def test_failures_inside_known_constraints(noise):
    """Queries and the recommendation keep to what is known, failures are learned, and later words change both."""
    options = {"seed": 2, "constraints": ["x0 + x1 <= 1.5", lambda x: x[1] >= 0.1], "noise": noise, "x0": [0.9, 0.5]}
    opt = Optimizer(BOX, **options)
    for i in range(16):
        x = opt.ask()
        assert x.sum() <= 1.5 + 1e-9 and x[1] >= 0.1
        if i in (4, 9):
            opt.reject(x)
        elif works(x):
            opt.tell(x, f(x), noise_var=0.01 * (i % 2), constraints=[x[1] - 1.2])
        else:
            opt.fail(x, why="diverged")
    failed = [trial for trial in opt.trials if trial.status == "failed"]
    assert failed and failed[0].number == 0
    recommended = opt.recommend()
    assert works(recommended) and recommended[1] <= 1.2 and recommended.sum() <= 1.5 + 1e-9
    opt.correct(failed[0], 0.3, constraints=[-1.0])
    opt.retract(next(trial for trial in opt.trials if trial.status == "told" and trial.number))
    regret = opt.ledger.regret()
    assert regret.known and np.all(regret.simple >= 0.0)
    np.testing.assert_array_equal(Optimizer(BOX, **options).replay(opt.trials).ask(), opt.ask())


def test_failures_and_constraints_of_conditional_parameters():
    space = {"kind": ["line", "bump"], "at": (0.0, 1.0), "width": Real(0.1, 1.0, when={"kind": "bump"}), "n": Int(1, 5)}

    def value(x):
        return x["at"] if x["kind"] == "line" else 2.0 * x["width"] - (x["at"] - 0.3) ** 2

    opt = Optimizer(space, seed=1, constraints="at <= 0.9")
    for _ in range(18):
        x = opt.ask()
        assert x["at"] <= 0.9 and ("width" in x) == (x["kind"] == "bump")
        if x["kind"] == "bump" and x["width"] > 0.6:
            opt.fail(x)
        else:
            opt.tell(x, value(x), constraints=[x["n"] - 3.0])
    best = opt.recommend()
    assert best["n"] <= 3 and not ("width" in best and best["width"] > 0.6)
    assert "infeasible" in opt.ledger.statistics and "failed" in opt.ledger.statistics
    assert Optimizer(space, seed=1, constraints="at <= 0.9").replay(opt.trials).ask() == opt.ask()


def test_failures_among_candidates_by_rank_with_a_known_mean():
    table = pd.DataFrame([(a, b) for a in (1, 2, 1000) for b in np.linspace(0.0, 1.0, 9)], columns=["a", "b"])

    def value(x):
        return -((x["b"] - 0.4) ** 2) + 0.1 * np.log(x["a"])

    options = {"seed": 0, "mean": lambda x: 0.5 * value(x), "constraints": "a + b <= 1000.8"}
    opt = Optimizer(table, **options)
    gone = []
    for i in range(20):
        x = opt.ask()
        assert x not in gone and x["a"] + x["b"] <= 1000.8
        if x["a"] == 1000:
            opt.fail(x)
            gone.append(x)
        elif i == 7:
            opt.reject(x)
            gone.append(x)
        else:
            opt.tell(x, value(x))
    assert opt.recommend()["a"] == 2
    assert opt.ledger.regret().known
    assert Optimizer(table, **options).replay(opt.trials).ask() == opt.ask()


def test_the_guard_counts_what_works():
    """Failed queries are charged and say nothing of f; the maximum that the charge is about is that of what works."""
    rows = np.random.default_rng(0).random((30, 2))
    kernel = kernels.Matern(nu=2.5, lengthscale=0.4)
    opt, rng = Optimizer(rows, aim="earn", kernel=kernel, noise_var=0.01, seed=0), np.random.default_rng(1)
    for _ in range(40):
        x = opt.ask()
        opt.fail(x) if x[0] > 0.6 else opt.tell(x, f(x) + 0.1 * rng.standard_normal())
    assert any(trial.status == "failed" and trial.policy_notes for trial in opt.trials)
    assert all(np.isfinite(trial.policy_notes["charge"]) for trial in opt.trials)
    assert opt.recommend()[0] <= 0.6


def test_a_bulk_load_with_constraints_costs_one_fit_of_each(monkeypatch):
    observed, fits = told(140, own=False), []
    opt = Optimizer(BOX, seed=0)
    trials = [
        Trial(i, row, float(y), "told", "user", i, constraints=(float(row[0]) - 0.6,))
        for i, (row, y) in enumerate(zip(observed.x, observed.y, strict=True))
    ]
    opt.tell_all(trials)
    real = schedule.fit
    monkeypatch.setattr(schedule, "fit", lambda *args, **more: fits.append(1) or real(*args, **more))
    x = opt.ask()
    assert len(fits) == 2  # of y, and of the constraint
    opt.fail(x, why="late")
    opt.ask()
    assert len(fits) == 2
    assert opt.recommend()[0] <= 0.6


def test_earlier_values_and_constraints():
    with pytest.raises(ValueError, match="1 came with the values before"):
        maximize(f, BOX, budget=3, earlier=[Trial(0, np.array([0.1, 0.1]), 1.0, "told", "user", 0, constraints=(1.0,))])
    opt = Optimizer(BOX, seed=0)
    mixed = [Trial(0, np.array([0.1, 0.1]), 1.0, "told", "user", 0, constraints=(1.0,)), ([0.2, 0.3], 2.0)]
    with pytest.raises(ValueError, match="1 came with the values before"):
        opt.tell_all(mixed)
    with pytest.raises(ValueError, match="1 came with the values before"):
        opt.replay([mixed[0], Trial(1, np.array([0.2, 0.3]), 2.0, "told", "user", 1)])
    assert not opt.trials
    crashed = Trial(1, np.array([0.9, 0.9]), None, "failed", "policy", 1, why="diverged")
    r = maximize(f, BOX, budget=3, seed=0, earlier=[([0.1, 0.1], f([0.1, 0.1])), crashed])  # a failure is not told
    assert len(r.trials) == 4


def test_heavy_tails_with_repeated_points_and_a_known_mean():
    """Values at equal points are not merged under heavy tails: each of them may be the outlier."""
    rng, points = np.random.default_rng(0), np.random.default_rng(1).random((8, 2)) * SPAN
    opt = Optimizer(BOX, seed=0, noise="student", mean=lambda x: 2.0 * x[1])
    for i in range(40):
        x = points[i % 8]
        opt.tell(x, f(x) + 2.0 * x[1] + 0.05 * rng.standard_normal() + 30.0 * (i % 9 == 0), repeats=1 + i % 2)
    assert opt.model.posterior.n == 40
    mu = opt.model.posterior.mu(points)
    np.testing.assert_allclose(mu, [f(x) + 2.0 * x[1] for x in points], atol=0.25)
    assert np.isfinite(opt.ledger.regret().simple).all()
    assert opt.ledger.calibration.ahead.shape == (0,)  # no policy has chosen yet


def test_a_regret_that_was_read_knows_later_failures():
    grid, given = np.linspace(0.0, 1.0, 21)[:, None], {"seed": 0, "kernel": kernels.RBF(0.3), "noise_var": 1e-4}
    opt = Optimizer(grid, **given)
    for row in grid[[4, 6, 8]]:
        opt.tell(row, float(row[0]))
    before = opt.ledger.regret().simple
    for _ in range(4):
        opt.fail(opt.ask())
    after = opt.ledger.regret().simple
    assert not np.array_equal(before, after)
    np.testing.assert_array_equal(Optimizer(grid, **given).replay(opt.trials).ledger.regret().simple, after)


def test_a_part_of_observations_does_not_know_of_noise_that_came_later() -> None:
    from gpmi._support.types import GrowingObservations

    growing = GrowingObservations()
    for i in range(4):
        growing.append(np.array([float(i)]), float(i), 0.1 if i == 3 else 0.0, 1)
    everything = growing.all
    assert not everything.plain and everything.first(3).plain and not everything.part(2, 4).plain
