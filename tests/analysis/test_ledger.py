"""The ledger reports what the model predicted at each moment, and reading it changes nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import gpmi
from gpmi import GPMI, Int, Optimizer, Real, kernels, maximize, minimize
from gpmi.analysis.ledger.calibration import ENOUGH, Calibration, judge, left_out
from gpmi.analysis.ledger.ledger import MISSED, REPEATS
from gpmi.analysis.ledger.maxima import draw_maxima, most_likely_better
from gpmi.analysis.ledger.regret import DRAWS, PATHS, Regret, credible_interval
from gpmi.analysis.ledger.run_warnings import UNTAKEN
from gpmi.gp.paths import PathSampler, random_features
from gpmi.space import Space

BOX = [(0.0, 1.0), (0.0, 2.0)]
GRID = np.linspace(0.0, 1.0, 41)[:, None]
MIXED = {"lr": Real(1e-4, 1.0, log=True), "n": Int(1, 8), "act": ["relu", "tanh"], "x": (0.0, 1.0)}
TABLE = pd.DataFrame({"n": [1, 2, 3, 4], "act": ["relu", "tanh", "relu", "tanh"]})
PRIOR = {"kernel": kernels.Matern(nu=2.5, lengthscale=0.3), "noise_var": 1e-2}


def hill(x):
    return -float((x[0] - 0.3) ** 2 + (x[1] - 1.2) ** 2 + 0.3 * np.sin(9.0 * x[0]))


def wave(x):
    return float(np.sin(7.0 * x[0]) + x[0])


def score(p):
    return float(np.log(p["lr"]) ** 2 / -20.0 + p["n"] / 8 + (p["act"] == "tanh") - (p["x"] - 0.4) ** 2)


def row_score(p):
    return p["n"] + (p["act"] == "tanh")


def steep(x):
    return -float(np.exp(9.0 * abs(x[0] - 0.3)) + np.exp(5.0 * abs(x[1] - 1.2)))


RUNS = [
    pytest.param(hill, BOX, {}, id="box, learned"),
    pytest.param(hill, BOX, PRIOR, id="box, given"),
    pytest.param(wave, GRID, {}, id="array, learned"),
    pytest.param(wave, GRID, {**PRIOR, "policy": GPMI()}, id="array, given"),
    pytest.param(score, MIXED, {}, id="dict, learned"),
    pytest.param(row_score, TABLE, PRIOR, id="frame, given"),
]


def driven(f, space, count, *, reading=False, **arguments):
    """An optimizer after `count` evaluations; with `reading`, everything in its ledger was read twice on the way."""
    opt = Optimizer(space, seed=3, **arguments)
    for t in range(count):
        x = opt.ask()
        opt.tell(x, f(x))
        if reading and t in (0, count - 4):
            read(opt.ledger)
    return opt


def read(ledger):
    str(ledger)
    return ledger.steps, ledger.regret().interval(), ledger.calibration.verdict, ledger.is_below(0.1)


def draw_of(kernel, z, seed):
    rng = np.random.default_rng(seed)
    return gpmi.Posterior.prior(kernel, 0.0).sample(z, rng)[0], rng


# The law of the maximum


def grid_2d(side=33):
    return np.stack(np.meshgrid(np.linspace(0, 1, side), np.linspace(0, 1, side)), -1).reshape(-1, 2)


def observed(n=14, d=2, seed=0, noise_var=1e-4):
    rng = np.random.default_rng(seed)
    prior = gpmi.Posterior.prior(kernels.Matern(nu=2.5, lengthscale=0.3), noise_var)
    x = rng.random((n, d))
    return prior.condition(x, prior.sample(x, rng)[0])


@pytest.mark.slow
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_on_a_finite_set_the_maximum_has_the_law_of_joint_draws_at_all_points(sign):
    """Leaving out the points that cannot hold the maximum changes nothing."""
    posterior, z = observed(), grid_2d(25)
    at = posterior.x[:2]
    mine = posterior if sign > 0.0 else posterior.mirrored()
    ours = draw_maxima(mine, Space.of(z), at, 4000, np.random.default_rng(1))
    brute = posterior.sample(np.concatenate([at, z]), np.random.default_rng(2), 4000)
    assert "25" not in ours.how  # fewer than 625 candidates
    assert stats.ks_2samp(ours.best, (sign * brute).max(axis=1)).pvalue > 1e-3
    gaps = ours.best - ours.at[:, 0], (sign * brute).max(axis=1) - sign * brute[:, 0]
    assert stats.ks_2samp(*gaps).pvalue > 1e-3
    assert np.all(gaps[0] >= 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_on_a_box_the_maximum_has_the_law_of_joint_draws_on_a_fine_grid(sign):
    posterior = observed()
    at = posterior.x[:1]
    mirrored = posterior if sign > 0.0 else posterior.mirrored()
    ours = draw_maxima(mirrored, Space.of([(0.0, 1.0)] * 2), at, 1000, np.random.default_rng(1))
    fine = posterior.sample(np.concatenate([at, grid_2d(35)]), np.random.default_rng(2), 2000)
    grid = (sign * fine).max(axis=1) - sign * fine[:, 0]
    mine = ours.best - ours.at[:, 0]
    # The grid misses about (spacing / lengthscale)^2 / 8 of a standard deviation at a maximum.
    np.testing.assert_allclose(
        np.quantile(mine, [0.25, 0.5, 0.75, 0.9]), np.quantile(grid, [0.25, 0.5, 0.75, 0.9]), atol=0.06
    )
    assert np.all(mine >= 0.0)


@pytest.mark.parametrize("rough", [False, True], ids=["mean", "features"])
@pytest.mark.parametrize("kernel", [kernels.RBF(0.4), kernels.RBF(0.5) + kernels.Linear(0.3)], ids=["rbf", "sum"])
def test_paths_pass_through_their_draws_and_have_the_law_of_the_posterior_elsewhere(kernel, rough):
    rng = np.random.default_rng(0)
    x = rng.random((6, 2))
    posterior = gpmi.Posterior.prior(kernel, 1e-2).condition(x, np.sin(5.0 * x[:, 0]))
    z, new, size = rng.random((10 if rough else 60, 2)), rng.random((3, 2)), 2000
    paths = PathSampler.of(posterior, z).paths(size, rng, rough=rough)
    every = np.arange(size)
    np.testing.assert_allclose(paths(np.repeat(z[:1], size, axis=0), every)[0], paths.values[0], atol=1e-3)
    mu, var = posterior(new)
    for i in range(3):
        value, _ = paths(np.repeat(new[i : i + 1], size, axis=0), every)
        assert value.mean() == pytest.approx(mu[i], abs=5 * np.sqrt(var[i] / size) + 1e-6)
        assert value.var() == pytest.approx(var[i], rel=0.2)


@pytest.mark.parametrize("rough", [False, True], ids=["mean", "features"])
def test_the_gradient_of_a_path_is_its_derivative(rough):
    rng = np.random.default_rng(5)
    x = rng.random((9, 2))
    kernel = kernels.Matern(nu=2.5, lengthscale=0.3) * (kernels.RBF(0.9) + kernels.Linear(0.5))
    posterior = gpmi.Posterior.prior(kernel, 1e-2).condition(x, np.sin(9.0 * x[:, 0]))
    paths = PathSampler.of(posterior, rng.random((20, 2))).paths(4, rng, rough=rough)
    assert (paths.features is not None) == rough
    z, which, h = rng.random((4, 2)), np.arange(4), 3e-4 if rough else 1e-6  # features are exact to 1e-7
    _, gradient = paths(z, which)
    for k in range(2):
        step = h * np.eye(2)[k]
        numeric = (paths(z + step, which)[0] - paths(z - step, which)[0]) / (2 * h)
        np.testing.assert_allclose(gradient[:, k], numeric, rtol=1e-4, atol=3e-3 if rough else 1e-4)


def test_random_features_have_the_covariance_of_the_kernel(kernel):
    """For every kernel of the library, sums and products included."""
    rng = np.random.default_rng(0)
    z = rng.random((5, 3))
    features = random_features(kernel, 3, 2**14, rng)
    assert features is not None
    phi, _ = features(z)
    assert kernel.diagonal(z).max() * 0.05 > np.abs(phi @ phi.T - kernel(z, z)).max()


def test_a_kernel_without_known_features_is_continued_by_the_conditional_mean():
    class Own(kernels.RBF):
        pass

    class Other(kernels.Stationary):
        kappa_and_slope = kernels.RBF.kappa_and_slope

    assert random_features(Own(0.3), 2, 8, np.random.default_rng(0)) is not None
    assert random_features(Other(0.3), 2, 8, np.random.default_rng(0)) is None
    posterior = gpmi.Posterior.prior(Other(0.05), 1e-2).condition(np.array([[0.5, 0.5]]), 1.0)
    drawn = draw_maxima(posterior, Space.of([(0.0, 1.0)] * 2), posterior.x, 16, np.random.default_rng(0))
    assert np.all(drawn.best > drawn.at[:, 0])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_most_likely_better_point_is_a_lower_bound_that_one_candidate_attains(sign):
    posterior, z = observed(noise_var=1e-2), grid_2d(9)
    posterior = posterior if sign > 0.0 else posterior.mirrored()
    row = z[int(np.argmax(posterior.mu(z)))]
    other = observed(noise_var=1e-2, seed=1)
    each = []
    for believed in (posterior, other):
        draws = believed.sample(np.concatenate([row[None], z]), np.random.default_rng(0), 20_000)
        each.append((draws[:, 1:] - draws[:, :1] > 0.05).mean(axis=0))
    assert most_likely_better([posterior], z, row, 0.05) == pytest.approx(each[0].max(), abs=0.015)
    assert most_likely_better([posterior, other], z, row, 0.05) == pytest.approx(np.mean(each, axis=0).max(), abs=0.015)
    assert most_likely_better([posterior], row[None], row, 0.0) == 0.0


# The interval


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
@pytest.mark.parametrize("law", [stats.expon(), stats.gamma(9.0), stats.norm(5.0)], ids=["expon", "gamma", "normal"])
def test_the_interval_holds_its_level_and_is_no_longer_than_the_equal_tailed_one(law, level):
    draws = law.rvs(size=200_000, random_state=0)
    low, high = credible_interval(draws, level)
    assert law.cdf(high) - law.cdf(low) == pytest.approx(level, abs=0.005)
    assert high - low <= np.ptp(law.ppf([(1 - level) / 2, (1 + level) / 2])) + 0.02
    if law.mean() == 1.0:
        assert low == 0.0  # a decreasing density
    else:
        assert low > 0.0


def test_the_interval_holds_the_zero_of_a_regret_that_is_often_zero():
    draws = np.concatenate([np.zeros(970), np.linspace(0.1, 1.0, 30)])
    assert credible_interval(draws, 0.95) == (0.0, 0.0)
    assert credible_interval(draws, 0.99)[0] == 0.0


@pytest.mark.parametrize("level", [0.0, 1.0, -1, "a", None])
def test_a_level_that_is_no_probability_is_refused(level):
    with pytest.raises((ValueError, TypeError), match="level is"):
        credible_interval(np.ones(3), level)


@pytest.mark.slow
def test_the_interval_covers_the_true_regret_of_draws_from_the_prior():
    kernel, covered = kernels.Matern(nu=2.5, lengthscale=0.2), []
    for seed in range(24):
        z = np.random.default_rng([seed, 1]).random((150, 2))
        f, rng = draw_of(kernel, z, seed)
        opt = Optimizer(z, kernel=kernel, noise_var=1e-2, seed=seed, budget=40)
        number = {row.tobytes(): i for i, row in enumerate(z)}
        for t in range(1, 26):
            x = opt.ask()
            opt.tell(x, f[number[x.tobytes()]] + 0.1 * rng.standard_normal())
            if t % 6 == 1:
                regret = opt.ledger.regret()
                low, high = regret.interval()
                covered.append(low <= f.max() - f[number[regret.recommended.tobytes()]] <= high)
    assert 0.87 <= np.mean(covered) <= 1.0  # 120 looks, about 50 of them independent: 0.95 less 2.6 sd


def test_the_regret_at_an_earlier_step_is_what_was_read_then():
    opt, then = Optimizer(BOX, seed=3), {}
    for t in range(1, 13):
        x = opt.ask()
        opt.tell(x, hill(x))
        if t in (4, 9):
            then[t] = opt.ledger.regret()
    opt._strategy._ledger_cache.regrets.clear()
    for t, regret in then.items():
        again = opt.ledger.regret(t)
        np.testing.assert_allclose(again.simple, regret.simple, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(again.cumulative, regret.cumulative, rtol=1e-6)
        assert np.array_equal(again.recommended, regret.recommended)


@pytest.mark.parametrize(("f", "space", "arguments"), RUNS)
def test_the_regret_is_that_of_the_recommended_point(f, space, arguments):
    r = maximize(f, space, budget=16, seed=0, **arguments)
    regret = r.ledger.regret()
    assert regret.t == 16
    recommended, again = (r.space.encode(x) for x in (r.recommended, regret.recommended))
    np.testing.assert_allclose(recommended, again, rtol=1e-6, atol=1e-6)
    assert len(regret.simple) == len(regret.cumulative) == (PATHS if r.space.rows is None else DRAWS)
    assert np.all(regret.simple >= 0.0)
    assert np.all(regret.cumulative >= 0.0)
    low, high = regret.interval()
    assert 0.0 <= low <= high
    assert regret.probability_below(high) >= 0.94


@pytest.mark.parametrize(("f", "space", "arguments"), RUNS)
def test_minimising_gives_the_same_ledger_as_maximising_minus_f(f, space, arguments):
    up = maximize(lambda x: -f(x), space, budget=16, seed=1, **arguments).ledger
    down = minimize(f, space, budget=16, seed=1, **arguments).ledger
    scale = float(np.ptp(up.y))
    quantiles = (np.quantile(ledger.regret().simple, [0.1, 0.5, 0.9]) for ledger in (up, down))
    np.testing.assert_allclose(*quantiles, atol=0.15 * scale)  # draws of their own
    np.testing.assert_allclose(up.calibration.ahead, -down.calibration.ahead, rtol=1e-6, atol=1e-9)
    assert [step.choice for step in up.steps] == [step.choice for step in down.steps]
    assert up.improvement == pytest.approx(down.improvement, rel=0.2, abs=0.01 * scale)  # of their own draws


def test_the_cumulative_regret_counts_what_the_policy_chose():
    opt = Optimizer(GRID, seed=0, **PRIOR)
    for x in GRID[[0, 20]]:
        opt.tell(x, wave(x))
    assert np.all(opt.ledger.regret().cumulative == 0.0)
    for _ in range(6):
        x = opt.ask()
        opt.tell(x, wave(x))
    ledger = opt.ledger
    posterior, rows = opt.posterior, ledger.rows[2:]
    draws = posterior.sample(np.concatenate([rows, GRID]), np.random.default_rng(0), 20_000)
    expected = (draws.max(axis=1)[:, None] - draws[:, : len(rows)]).sum(axis=1)
    assert np.median(ledger.regret().cumulative) == pytest.approx(np.median(expected), rel=0.1)


def test_where_y_is_transformed_the_regret_is_in_units_of_y():
    opt = driven(steep, BOX, 24)
    assert opt.warp.bends
    ledger = opt.ledger
    low, high = ledger.regret().interval()
    row = opt.space.encode(ledger.regret().recommended)
    best = float(opt.warp.inverse(opt.posterior.mu(row))[0])
    assert 0.0 <= low <= high <= abs(best) + 10.0  # f is at most 0, if the median at the best point is right
    assert high < np.ptp(ledger.y)
    assert 0.0 <= ledger.improvement <= high + 1.0
    assert ledger.noise_sd > 0.0
    assert ledger.regret().probability_below(high) >= 0.94


def test_under_draws_of_the_prior_the_regret_is_their_mixture():
    opt = driven(wave, GRID, 8, fit="mcmc")
    regret = opt.ledger.regret()
    assert len(regret.simple) == DRAWS
    assert "draws of the prior" in regret.how
    assert np.array_equal(regret.recommended, opt.recommend())


def test_failed_pending_and_forgotten_points_do_not_count():
    opt = Optimizer(BOX, seed=3)
    for i in range(10):
        x = opt.ask()
        opt.fail(x) if i == 6 else opt.tell(x, hill(x))
    before = opt.ledger.regret()
    opt.forget(opt.ask())
    opt.ask(2)
    opt._strategy._ledger_cache.regrets.clear()
    after = opt.ledger
    assert after.n == 9
    assert [trial.status for trial in after.trials] == ["told"] * 9
    np.testing.assert_array_equal(after.regret().simple, before.simple)


@pytest.mark.parametrize("t", [0, 6, -1])
def test_a_step_that_was_not_made_is_refused(t):
    ledger = driven(wave, GRID, 5, **PRIOR).ledger
    with pytest.raises(ValueError, match=f"t is {t}"):
        ledger.regret(t)


def test_the_ledger_of_nothing_says_so():
    ledger = Optimizer(BOX).ledger
    assert (ledger.n, ledger.steps, ledger.lock_in) == (0, (), None)
    assert str(ledger) == "no value has been told"
    assert ledger.calibration.verdict == "too early to say"
    with pytest.raises(ValueError, match="no value has been told"):
        ledger.regret()


# Reading changes nothing


@pytest.mark.parametrize(("f", "space", "arguments"), RUNS)
def test_reading_the_ledger_changes_no_suggestion(f, space, arguments):
    quiet, read_often = (driven(f, space, 9, reading=reading, **arguments) for reading in (False, True))
    for a, b in zip(quiet.trials, read_often.trials, strict=True):
        assert quiet.space.encode(a.x).tobytes() == quiet.space.encode(b.x).tobytes()
        assert (a.mu, a.sd, a.phi, a.gamma_hat, a.explored) == (b.mu, b.sd, b.phi, b.gamma_hat, b.explored)
    assert quiet.events == read_often.events


def test_a_ledger_stays_as_it_was_when_the_run_goes_on():
    opt = driven(hill, BOX, 8)
    ledger = opt.ledger
    steps, interval = ledger.steps, ledger.regret().interval()
    for _ in range(4):
        x = opt.ask()
        opt.tell(x, hill(x))
    assert ledger.n == 8
    assert ledger.regret().interval() == interval
    assert len(steps) == len(ledger.steps) == 8
    assert opt.ledger.n == 12


def test_the_ledger_of_a_replayed_run_is_the_same():
    opt = driven(hill, BOX, 14)
    again = Optimizer(BOX, seed=3).replay(opt.trials)
    for a, b in zip(opt.ledger.steps, again.ledger.steps, strict=True):
        assert vars(a) == {**vars(b), "x": a.x}
        assert np.array_equal(a.x, b.x)
    for t in (7, 14):
        assert opt.ledger.regret(t).interval() == pytest.approx(again.ledger.regret(t).interval(), rel=1e-6, abs=1e-9)


# What the steps say


def test_with_a_given_prior_every_step_says_what_the_equations_say():
    opt = Optimizer(GRID, GPMI(), seed=0, n_init=3, **PRIOR)
    rng = np.random.default_rng(0)
    opt.tell(GRID[7], 0.3)
    for _ in range(12):
        x = opt.ask()
        opt.tell(x, wave(x) + 0.1 * rng.standard_normal())
    posterior, gamma_hat = gpmi.Posterior.prior(PRIOR["kernel"], PRIOR["noise_var"]), 0.0
    information = 0.0
    for step in opt.ledger.steps:
        (mu,), (var,) = posterior(step.x)
        assert step.mu == pytest.approx(mu, abs=1e-9)
        assert step.sd == pytest.approx(np.sqrt(var), rel=1e-6)
        assert step.surprise == pytest.approx((step.y - mu) / np.sqrt(var + 1e-2), abs=1e-8)
        assert step.information == pytest.approx(0.5 * np.log1p(var / 1e-2), rel=1e-6)
        information += step.information
        if step.origin == "policy":
            assert step.gamma_hat == pytest.approx(gamma_hat, rel=1e-9)
            assert step.phi == pytest.approx(float(GPMI().phi(np.array([var]), _state(gamma_hat))[0]), rel=1e-6)
            best = posterior.mu_at_observed.max()
            assert step.choice == ("explored" if mu < best - 0.1 else "exploited")
            gamma_hat += var
        else:
            assert (step.phi, step.gamma_hat, step.choice) == (None, None, None)
        posterior = posterior.condition(step.x, step.y)
    assert information == pytest.approx(posterior.information, rel=1e-9)
    assert {step.choice for step in opt.ledger.steps} == {None, "explored", "exploited"}


def _state(gamma_hat):
    return gpmi.State(1, gamma_hat, 1e-2, 0.0, 0.0, 41, 0, None)


def test_with_a_learned_prior_a_step_was_foreseen_by_the_model_of_its_time():
    opt, expected = Optimizer(BOX, seed=3), []
    for _ in range(14):
        x = opt.ask()
        chosen = opt.trials[-1].origin == "policy"
        if chosen:
            posterior = opt.posterior  # before y is told, refits and all
            (mu,), (var,) = posterior(opt.space.encode(x))
            expected.append((hill(x) - mu) / np.sqrt(var + posterior.noise_var))
        opt.tell(x, hill(x))
        assert (opt.trials[-1].surprise is not None) == chosen
    steps = opt.ledger.steps
    assert [step.surprise for step in steps if step.surprise is not None] == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert [step.surprise is None for step in steps] == [step.origin == "design" for step in steps]


def test_values_told_together_are_foreseen_one_after_the_other():
    """In a batch each value is compared with what the ones before it in the batch left open."""
    opt = driven(hill, BOX, 9)
    batch = opt.ask(3)
    posterior = opt.posterior
    for x in batch:
        (mu,), (var,) = posterior(opt.space.encode(x))
        trial = opt.tell(x, hill(x))
        assert trial.surprise == pytest.approx((hill(x) - mu) / np.sqrt(var + posterior.noise_var), rel=1e-6)
        posterior = posterior.condition(opt.space.encode(x), hill(x))


def test_reading_between_two_values_changes_nothing_that_is_noted():
    """A value is compared with the model of the policy's last choice, extended by the values told since."""
    read, unread = driven(hill, BOX, 9), driven(hill, BOX, 9)
    for a, b in zip(read.ask(3), unread.ask(3), strict=True):
        read.recommend(), read.posterior, read.warp, read.ledger.regret()
        assert read.tell(a, hill(a)).surprise == unread.tell(b, hill(b)).surprise
    np.testing.assert_array_equal(read.ask(), unread.ask())


def test_a_point_that_was_never_asked_is_foreseen_too():
    opt = driven(hill, BOX, 9)
    opt.forget(opt.ask())  # the last choice was made with all nine values
    x = np.array([0.9, 0.1])
    (mu,), (var,) = opt.posterior(x)
    trial = opt.tell(x, 0.0)
    assert trial.mu == pytest.approx(mu)
    assert trial.sd == pytest.approx(np.sqrt(var))
    assert trial.surprise == pytest.approx(-mu / np.sqrt(var + opt.posterior.noise_var), rel=1e-2)
    assert trial.explored is None


def test_exact_observations_tell_infinitely_much():
    opt = Optimizer(GRID, seed=0, kernel=PRIOR["kernel"], noise_var=0.0)
    opt.tell(GRID[3], 1.0)
    assert opt.ledger.steps[0].information == np.inf


def test_events_stand_at_the_step_where_they_happened():
    opt = Optimizer(GRID, seed=0, kernel=kernels.RBF(0.3), noise_var=0.0)
    for i in (3, 9, 9, 20):
        opt.tell(GRID[i], wave(GRID[i]))
        opt.posterior  # noqa: B018  notices the repair
    assert [[event.kind for event in step.events] for step in opt.ledger.steps] == [[], [], ["jitter"], []]


# Calibration


def test_left_out_residuals_are_those_of_a_model_without_the_value():
    posterior = observed(n=9, noise_var=1e-2)
    for i, z in enumerate(left_out(posterior)):
        others = np.arange(9) != i
        rest = gpmi.Posterior.prior(posterior.kernel, 1e-2).condition(posterior.x[others], posterior.y[others])
        (mu,), (var,) = rest(posterior.x[i])
        assert z == pytest.approx((posterior.y[i] - mu) / np.sqrt(var + 1e-2), rel=1e-8)


def test_coverage_counts_the_residuals_inside_each_central_interval():
    z = np.array([0.0, 0.6, -0.7, 1.7, -1.9, 3.0])
    posterior = observed(n=9, noise_var=1e-2)
    calibration = Calibration(z, lambda: posterior)
    assert calibration.coverage == {0.5: 2 / 6, 0.9: 3 / 6, 0.95: 5 / 6}
    inside = np.mean(np.abs(left_out(posterior)) <= stats.norm.ppf(0.95))
    assert calibration.coverage_left_out[0.9] == pytest.approx(inside)
    assert all(np.isnan(share) for share in Calibration(z[:0], lambda: posterior).coverage.values())


@pytest.mark.parametrize("n", [ENOUGH, 40, 200])
def test_a_model_that_is_right_is_seldom_blamed(n):
    rng = np.random.default_rng(0)
    verdicts = [judge(rng.standard_normal(n))[0] for _ in range(1000)]
    assert verdicts.count("fine") >= 0.93 * len(verdicts)
    assert "too early to say" not in verdicts


@pytest.mark.parametrize(("factor", "verdict"), [(2.0, "over-confident"), (0.5, "under-confident")])
def test_a_deviation_that_is_wrong_by_a_factor_of_two_is_found_in_four_of_five_cases(factor, verdict):
    rng = np.random.default_rng(1)
    few, many = ([judge(factor * rng.standard_normal(n))[0] for _ in range(1000)] for n in (ENOUGH, 40))
    assert few.count(verdict) >= 790
    assert many.count(verdict) >= 995


def test_the_verdict_comes_with_its_reason():
    assert judge(np.array([9.0])) == ("over-confident", "the root mean square of 1 residuals is 9, and should be 1")
    assert judge(np.full(3, 0.7))[0] == "too early to say"
    assert judge(np.zeros(30))[0] == "under-confident"
    verdict, reason = judge(np.concatenate([np.full(9, 2.0), np.full(51, 0.7)]))
    assert (verdict, reason) == ("over-confident", "9 of 60 values fell outside the central 95 %")
    verdict, reason = judge(np.concatenate([np.full(45, 0.5), np.full(15, 1.7)]))
    assert (verdict, reason) == ("under-confident", "45 of 60 values fell inside the central 50 %")


def test_a_run_with_far_too_little_noise_is_over_confident():
    rng = np.random.default_rng(0)
    r = maximize(
        lambda x: wave(x) + 0.3 * rng.standard_normal(),
        GRID,
        budget=25,
        seed=0,
        kernel=kernels.RBF(0.3),
        noise_var=1e-4,
    )
    assert r.ledger.calibration.verdict == "over-confident"


def test_a_run_on_a_draw_of_the_prior_is_fine():
    f, rng = draw_of(PRIOR["kernel"], GRID, 4)
    r = maximize(lambda x: f[round(40 * x[0])] + 0.1 * rng.standard_normal(), GRID, budget=40, seed=0, **PRIOR)
    assert r.ledger.calibration.verdict == "fine"
    assert len(r.ledger.calibration.ahead) == len(r.ledger.calibration.left_out) == 40


# Lock-in


def arms(seed, policy, steps):
    """A run on 50 independent arms, and the values of the arms."""
    rng = np.random.default_rng([seed, 50])
    f = rng.standard_normal(50)
    space = np.arange(50.0)[:, None]
    opt = Optimizer(space, policy, kernel=kernels.RBF(1e-3), noise_var=1e-2, seed=seed)
    for _ in range(steps):
        x = opt.ask()
        opt.tell(x, f[int(x[0])] + 0.1 * rng.standard_normal())
    return opt, f


def test_gp_mi_s_lock_in_on_independent_arms_is_found_and_named():
    opt, f = arms(2, GPMI(), 80)
    queries = opt.ledger.rows[:, 0]
    assert len(np.unique(queries[-REPEATS:])) == 1
    assert f[int(queries[-1])] < f.max() - 0.1
    found = opt.ledger.lock_in
    assert found is not None
    assert found.since == np.flatnonzero(queries != queries[-1])[-1] + 2
    assert found.probability >= MISSED
    assert found.reason.startswith(
        f"the last {80 - found.since + 1} queries were at one point, but a gain above the noise"
    )


def test_a_lock_in_is_an_event_of_the_result_and_the_last_line_of_the_display(capsys):
    f = np.random.default_rng(2).standard_normal(50)
    noise = np.random.default_rng(1)
    found = maximize(
        lambda x: f[int(x[0])] + 0.1 * noise.standard_normal(), np.arange(50.0)[:, None], budget=80, seed=0,
        policy=GPMI(), kernel=kernels.RBF(1e-3), noise_var=1e-2, progress=True,
    )  # fmt: skip
    assert found.ledger.lock_in is not None
    assert [event.message for event in found.events if event.kind == "lock-in"] == [found.ledger.lock_in.reason]
    shown = " ".join(capsys.readouterr().err.split())
    assert shown.endswith(f"lock-in: {found.ledger.lock_in.reason}")


def test_a_run_that_looks_around_or_knows_all_is_not_locked_in():
    opt, _ = arms(1, gpmi.GPUCB(), 80)
    assert opt.ledger.lock_in is None
    rng = np.random.default_rng(0)
    known = maximize(lambda x: x[0] + 0.1 * rng.standard_normal(), np.arange(4.0)[:, None], budget=40, seed=0,
                     kernel=kernels.RBF(1e-3, variance=4.0), noise_var=1e-2)  # fmt: skip
    assert len(np.unique(known.ledger.rows[-REPEATS:])) == 1
    assert known.ledger.lock_in is None


def two_humps(x):
    """The lower hump, at (0.2, 0.8, 0.2), is easier to find."""
    a, b, c = x
    high = 3.0 * np.exp(-((a - 0.7) ** 2 / 0.08 + (b - 0.3 - 0.3 * (a - 0.7)) ** 2 / 0.05 + (c - 0.55) ** 2 / 0.15))
    low = 2.0 * np.exp(-((a - 0.2) ** 2 / 0.05 + (b - 0.8) ** 2 / 0.05 + (c - 0.2) ** 2 / 0.3))
    return float(high + low - c / 2)


def test_a_run_that_earns_on_the_lower_of_two_humps_says_that_it_took_no_chance():
    rng = np.random.default_rng(0)
    found = maximize(
        lambda x: two_humps(x) + 0.06 * rng.standard_normal(), [(0.0, 1.0)] * 3, aim="earn", budget=40, seed=0
    )
    assert np.abs(found.recommended - [0.2, 0.8, 0.2]).max() < 0.15  # a better point exists, and the run is not near it
    assert found.ledger.lock_in is None
    (event,) = (event for event in found.events if event.kind == "chance not taken")
    missed = 1.0 - found.ledger.regret().probability_below(found.ledger.smallest_gain)
    assert missed >= UNTAKEN and f"with probability {100 * missed:.0f} %" in event.message


def test_a_run_that_earns_at_the_top_or_looks_for_it_has_no_chance_to_name():
    def top(x):
        return -float((x[0] - 0.3) ** 2)

    for aim in ("earn", "find"):
        found = maximize(top, [(0.0, 1.0)], aim=aim, budget=20, seed=0)
        assert "chance not taken" not in [event.kind for event in found.events]
    looks = maximize(wave, [(0.0, 3.0)], aim="find", budget=9, seed=0)
    assert "chance not taken" not in [event.kind for event in looks.events]
    few = maximize(wave, [(0.0, 3.0)], aim="earn", budget=4, seed=0)
    assert not few.ledger.regret().known
    assert "chance not taken" not in [event.kind for event in few.events]


def test_a_repetition_under_an_over_confident_model_is_a_lock_in():
    """A long lengthscale and little noise leave nothing to be had, in the eyes of a model that is wrong."""
    opt = Optimizer(GRID, GPMI(), kernel=kernels.RBF(2.0), noise_var=1e-4, seed=0)
    for x in GRID[::4]:
        opt.tell(x, wave(x))
    for _ in range(30):
        x = opt.ask()
        opt.tell(x, wave(x))
    found = opt.ledger.lock_in
    assert found is not None
    assert "over-confident" in found.reason
    assert found.probability < MISSED


def test_a_model_that_fails_loses_no_value():
    class Broken(kernels.RBF):
        def __call__(self, x, z):
            if len(x) and len(z) and float(np.max(x)) > 0.9:
                raise RuntimeError("the kernel fails here")
            return super().__call__(x, z)

    opt = Optimizer(GRID, kernel=Broken(0.3), noise_var=1e-2, seed=0)
    opt.tell(GRID[0], 0.0)
    trial = opt.tell(GRID[40], 1.0)
    assert (trial.status, trial.y, trial.surprise) == ("told", 1.0, None)
    assert opt.pending == ()
    with pytest.raises(RuntimeError, match="fails here"):
        opt.ask()


@pytest.mark.parametrize("learned", [False, True])
def test_the_printed_interval_is_that_of_the_method(learned: bool) -> None:
    """Far from 0 the shorter interval is two-sided; with a learned prior it begins at 0 all the same."""
    draws = np.linspace(1.0, 1.1, 201)
    regret = Regret(3, np.array([0.5]), draws, draws, np.full((201, 1), 0.5), "by hand", learned)
    low, high = regret.interval()
    assert (low == 0.0) == learned
    assert regret.in_words[0].startswith(f"{low:.3g} to {high:.3g} with") and regret.in_words[0] in repr(regret)
    assert regret.in_words[1].startswith("1 to 1.1 with")
