"""Values at equal points merged into one row: the same posterior, evidence, fit and account as of all values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpmi.model.model
from gpmi import GPMI, Optimizer, Posterior, Reinvest, Thompson, kernels
from gpmi._support.types import Array, Observations
from gpmi.gp.merging import compacted, condition_merged
from gpmi.gp.replicates import merge
from gpmi.model.fitting import data as prior_data
from gpmi.model.fitting.criterion import Criterion, FitSetting
from gpmi.model.fitting.data import FitData, merges
from gpmi.model.fitting.fit import fit
from gpmi.model.fitting.leave_one_out import LeaveOneOut
from gpmi.model.fitting.noise_fit import fit_noise
from gpmi.model.fitting.schedule import PriorSchedule
from gpmi.model.fitting.unknowns import DEFAULT
from gpmi.model.model import Model, ModelSetting, promises
from gpmi.space import Space
from gpmi.theory import gamma

KERNEL = kernels.Matern(nu=2.5, lengthscale=0.4, variance=2.0)


def repeated(n: int, places: int, seed: int, *, own: bool = True, d: int = 2) -> Observations:
    """n noisy values at a few places in random order, some of them means and some with error bars."""
    rng = np.random.default_rng(seed)
    x = rng.random((places, d))[rng.integers(places, size=n)]
    noise_var = rng.choice([0.0, 0.01, 0.3], n) if own else np.zeros(n)
    repeats = rng.choice([1, 1, 4], n).astype(float) if own else np.ones(n)
    y = np.sin(5.0 * x.sum(axis=1)) + rng.standard_normal(n) * np.sqrt(0.04 / repeats + noise_var)
    return Observations.of(x, y, noise_var, repeats)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 40),
    places=st.integers(1, 8),
    seed=st.integers(0, 10**6),
    common=st.sampled_from([1e-3, 0.04, 1.0]),
)
def test_the_merged_posterior_is_that_of_all_values(n: int, places: int, seed: int, common: float) -> None:
    values, z = repeated(n, places, seed), np.random.default_rng(1).random((5, 2))
    noise = common / values.repeats + values.noise_var
    prior = Posterior.prior(KERNEL, common, mean=0.3)
    every, merged = prior.condition(values.x, values.y, noise), condition_merged(prior, values.x, values.y, noise)
    assert merged.n == len(np.unique(values.x, axis=0)) and merged.count == every.count == n
    for ours, theirs in zip(merged.moments(z), every.moments(z), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(merged.covariance(z), every.covariance(z), atol=1e-8)
    for name in ("log_evidence", "information"):
        np.testing.assert_allclose(getattr(merged, name), getattr(every, name), rtol=1e-8, atol=1e-8)
    for ours, theirs in zip(merged.ahead, every.ahead, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)
    assert merged.gamma_hat(n // 2) == pytest.approx(every.gamma_hat(n // 2), rel=1e-8, abs=1e-12)
    np.testing.assert_allclose(gamma.information(merged), gamma.information(every), rtol=1e-8)
    np.testing.assert_array_equal(merged.observed, values.y)
    mirrored = merged.mirrored()
    np.testing.assert_allclose(mirrored.ahead.mu, -every.ahead.mu, atol=1e-8)
    np.testing.assert_array_equal(mirrored.mu(z), -merged.mu(z))


@settings(max_examples=25, deadline=None)
@given(n=st.integers(2, 30), seed=st.integers(0, 10**6))
def test_rows_that_came_one_by_one_are_merged_with_the_others(n: int, seed: int) -> None:
    values, z = repeated(n + 10, 5, seed), np.random.default_rng(1).random((5, 2))
    noise = 0.04 / values.repeats + values.noise_var
    prior = Posterior.prior(KERNEL, 0.04)
    every = prior.condition(values.x, values.y, noise)
    merged = condition_merged(prior, values.x[:n], values.y[:n], noise[:n])
    for s in range(n, n + 10):
        merged = merged.condition(values.x[s], values.y[s], noise[s])
        if s % 4 == 0:
            merged = compacted(merged)
    for posterior in (merged, compacted(merged)):
        assert posterior.count == n + 10
        np.testing.assert_allclose(posterior(z), every(z), rtol=1e-8, atol=1e-8)
        assert posterior.log_evidence == pytest.approx(every.log_evidence, rel=1e-8)
        assert posterior.information == pytest.approx(every.information, rel=1e-8)
        np.testing.assert_allclose(posterior.predictive_var, every.predictive_var, rtol=1e-8, atol=1e-10)
        np.testing.assert_array_equal(posterior.noise_of_observed, noise)
    assert compacted(merged).n == len(np.unique(values.x, axis=0))


def test_the_noise_of_each_row_is_that_of_a_direct_solve() -> None:
    rng = np.random.default_rng(0)
    x, y, noise, z = rng.random((8, 2)), rng.standard_normal(8), rng.random(8), rng.random((4, 2))
    one_by_one = Posterior.prior(KERNEL, 0.1, mean=0.5)
    for s in range(8):
        one_by_one = one_by_one.condition(x[s], y[s], noise[s])
    together = Posterior.prior(KERNEL, 0.1, mean=0.5).condition(x, y, noise)
    c, k = KERNEL(x, x) + np.diag(noise), KERNEL(z, x)
    mu = 0.5 + k @ np.linalg.solve(c, y - 0.5)
    var = 2.0 - np.einsum("ij,ji->i", k, np.linalg.solve(c, k.T))
    _, logdet = np.linalg.slogdet(c)
    evidence = -0.5 * ((y - 0.5) @ np.linalg.solve(c, y - 0.5) + logdet + 8 * np.log(2.0 * np.pi))
    for posterior in (one_by_one, together):
        np.testing.assert_allclose(posterior(z), (mu, var), rtol=1e-10)
        assert posterior.log_evidence == pytest.approx(evidence)
        np.testing.assert_allclose(posterior.mu_at_observed, posterior.mu(x), rtol=1e-9)
        info = 0.5 * np.linalg.slogdet(np.eye(8) + KERNEL(x, x) / noise[:, None])[1]
        assert posterior.information == pytest.approx(info)


def test_exact_values_count_alone_and_are_averaged() -> None:
    x = np.array([[0.0], [0.0], [0.0], [1.0]])
    rows = merge(x, np.array([1.0, 9.0, 3.0, 5.0]), np.array([0.0, 2.0, 0.0, 2.0]))
    np.testing.assert_array_equal(rows.y, [2.0, 5.0])
    np.testing.assert_array_equal(rows.noise, [0.0, 2.0])
    same = merge(x[:3], np.full(3, 0.1), np.array([0.3, 0.2, 0.7]))
    assert same.y[0] == 0.1
    posterior = condition_merged(Posterior.prior(kernels.RBF(0.3), 0.0), x, np.array([1.0, 1.0, 1.0, 2.0]))
    assert posterior.nugget == 0.0 and np.all(np.isfinite(posterior.ahead.surprise))
    np.testing.assert_allclose(posterior.predictive_var[1:3], 0.0)


def test_what_cannot_be_merged_or_is_no_variance_is_refused() -> None:
    prior = Posterior.prior(KERNEL, 0.1)
    one = prior.condition(np.zeros((1, 2)), np.zeros(1))
    with pytest.raises(ValueError, match="only a prior takes merged ones"):
        condition_merged(one, np.zeros((1, 2)), np.zeros(1))
    for bad in (-1.0, np.nan, [0.1, 0.2], np.inf):
        with pytest.raises(ValueError, match="noise_var is"):
            prior.condition(np.zeros((1, 2)), np.zeros(1), bad)
    with pytest.raises(ValueError, match="lies between 0 and n = 3"):
        condition_merged(prior, np.zeros((3, 2)), np.zeros(3)).gamma_hat(4)


# The fit


def losses(values: Observations, loo: bool, monkeypatch: Any, noise: float | None = None) -> tuple[Any, Any]:
    """The criterion of the fit on the rows merged, and on all values."""
    setting = FitSetting(DEFAULT, noise, np.ones(2), (0, 1), LeaveOneOut if loo else Criterion)
    made = []
    for least in (1, 10**9):
        monkeypatch.setattr(prior_data, "MERGE_FROM", least)
        location, scale, rows = FitData.of(values).standardised()
        made.append((location, scale, setting.criterion(rows.x, rows.y, scale, rows.noises)))
    (location, scale, merged), (other, width, every) = made
    assert location == pytest.approx(other, rel=1e-10) and scale == pytest.approx(width, rel=1e-10)
    return merged, every


@pytest.mark.parametrize("loo", [False, True])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("noise", [None, 0.05])
def test_the_loss_of_the_merged_rows_and_its_gradient_are_those_of_all_values(
    loo: bool, own: bool, noise: float | None, monkeypatch: Any
) -> None:
    values = repeated(48, 6, 3, own=own)
    merged, every = losses(values, loo, monkeypatch, noise)
    assert len(merged.y) <= 30 and len(every.y) == merged.values == every.values == 48
    rng = np.random.default_rng(0)
    offsets = []
    for _ in range(5):
        q = merged.unknowns.noisy + 0.5 * rng.standard_normal(4)
        (value, gradient), (theirs, their_gradient) = merged.loss(q), every.loss(q)
        offsets.append(value - theirs)
        np.testing.assert_allclose(gradient, their_gradient, rtol=1e-8, atol=1e-8)
        assert merged.misfit(q) == pytest.approx(every.misfit(q), rel=1e-8)
        assert merged.mean(q) == pytest.approx(every.mean(q), rel=1e-8)
        for j in range(4):  # and the gradient is the derivative
            step = 1e-5 * np.eye(4)[j]
            slope = (merged.loss(q + step)[0] - merged.loss(q - step)[0]) / 2e-5
            if not (j == 3 and noise is not None):
                assert gradient[j] == pytest.approx(slope, rel=1e-5, abs=1e-5)
    assert np.ptp(offsets) < 1e-8  # a constant does not matter
    assert loo is False or abs(offsets[0]) < 1e-8


def test_a_fit_on_merged_rows_finds_what_a_fit_on_all_values_finds(monkeypatch: Any) -> None:
    values = repeated(200, 12, 1, own=False)
    setting = FitSetting(DEFAULT, None, np.ones(2), (0, 1))
    priors, noises = [], []
    for least in (1, 10**9):
        monkeypatch.setattr(prior_data, "MERGE_FROM", least)
        rows = FitData.of(values)
        priors.append(fit(setting, rows.x, rows.y, noises=rows.noises))
        noises.append(fit_noise(rows.x, rows.y, KERNEL, rows.noises).noise_var)
    merged, every = priors
    np.testing.assert_allclose(merged.kernel.theta, every.kernel.theta, atol=0.3)  # a descent ends near the peak
    assert merged.noise_var == pytest.approx(every.noise_var, rel=0.1)
    assert merged.noise_var == pytest.approx(0.04, rel=0.35)
    assert noises[0] == noises[1]


def test_the_common_noise_is_learned_beside_error_bars() -> None:
    """Error bars that explain everything leave little common noise; ones of 0 leave it all to the common noise."""
    rng = np.random.default_rng(4)
    x = rng.random((60, 1))
    y = np.sin(6.0 * x[:, 0]) + 0.3 * rng.standard_normal(60)
    setting = FitSetting(DEFAULT, None, np.ones(1), (0,))
    for own, low, high in ((0.0, 0.05, 0.15), (0.09, 0.0, 0.03)):
        values = FitData.of(Observations.of(x, y, np.full(60, own)))
        assert low < fit(setting, values.x, values.y, noises=values.noises).noise_var < high
        assert low < fit_noise(values.x, values.y, kernels.RBF(0.3), values.noises).noise_var < high


def test_a_value_that_says_nothing_does_not_set_the_units() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((20, 1))
    y = np.sin(6.0 * x[:, 0])
    own = np.zeros(20)
    y[3], own[3] = 1e6, 1e12
    without = fit(FitSetting(DEFAULT, None, np.ones(1), (0,)), np.delete(x, 3, 0), np.delete(y, 3))
    values = FitData.of(Observations.of(x, y, own))
    wild = fit(FitSetting(DEFAULT, None, np.ones(1), (0,)), x, y, noises=values.noises)
    np.testing.assert_allclose(wild.kernel.theta, without.kernel.theta, atol=0.5)


# The run


def where(policy_prior: dict[str, Any]) -> ModelSetting:
    space = Space.of([(0.0, 1.0)] * 2)
    given = {"kernel": None, "noise_var": None, "fit": "map", **policy_prior}
    return ModelSetting(space, PriorSchedule(**given, span=space.span, groups=space.groups, seed=0), 0)


GIVEN = {"kernel": KERNEL, "noise_var": 0.04}


@pytest.mark.parametrize("prior", [GIVEN, {}], ids=["given", "learned"])
@pytest.mark.parametrize("own", [False, True])
def test_a_model_of_many_repeats_is_the_same_one_by_one_and_at_once(prior: dict[str, Any], own: bool) -> None:
    values, z = repeated(200, 9, 0, own=own), np.random.default_rng(1).random((7, 2))
    setting, model = where(prior), None
    for n in range(1, 201):
        model = Model.after(setting, values.first(n), model)
        assert model.n == n
    assert model is not None and model.posterior.n <= 9 + 20
    again = Model.after(where(prior), values)
    assert model.anchor.n == again.anchor.n and model.begin == again.begin
    np.testing.assert_array_equal(model.posterior(z), again.posterior(z))
    for ours, theirs in zip(model.posterior.ahead, again.posterior.ahead, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("own", [False, True])
def test_merging_changes_what_a_policy_sees_by_rounding_only(own: bool, monkeypatch: Any) -> None:
    values, z = repeated(300, 9, 2, own=own), np.random.default_rng(1).random((7, 2))
    merged = Model.after(where(GIVEN), values)
    monkeypatch.setattr(prior_data, "MERGE_FROM", 10**9)
    every = Model.after(where(GIVEN), values)
    assert merged.posterior.n < 40 and every.posterior.n == every.n == merged.n == 300
    np.testing.assert_allclose(merged.posterior(z), every.posterior(z), rtol=1e-8, atol=1e-8)
    assert merged.posterior.gamma_hat(3) == pytest.approx(every.posterior.gamma_hat(3), rel=1e-8)
    assert merged.posterior.log_evidence == pytest.approx(every.posterior.log_evidence, rel=1e-8)
    counted = np.arange(300) >= 3
    ours, theirs = promises(merged.posterior, counted), promises(every.posterior, counted)
    assert ours.promised == pytest.approx(theirs.promised, rel=1e-6) and ours.kept == pytest.approx(
        theirs.kept, rel=1e-6
    )


@pytest.mark.parametrize("policy", [None, GPMI(), Reinvest()])
def test_a_run_that_repeats_itself_is_the_same_with_and_without_merging(policy: Any, monkeypatch: Any) -> None:
    arms = np.linspace(0.0, 1.0, 6)[:, None]
    asked: list[list[int]] = []
    for least in (128, 10**9):
        monkeypatch.setattr(prior_data, "MERGE_FROM", least)
        rng = np.random.default_rng(0)
        opt = Optimizer(arms, policy, kernel=kernels.RBF(0.2), noise_var=0.1, seed=0)
        rows: list[int] = []
        for _ in range(150):
            x = opt.ask()
            rows.append(round(5 * float(x[0])))
            opt.tell(x, float(np.sin(4.0 * x[0]) + 0.3 * rng.standard_normal()))
        asked.append(rows)
        assert opt.model is not None and (opt.model.posterior.n < 60) == (least == 128)
        again = Optimizer(arms, policy, kernel=kernels.RBF(0.2), noise_var=0.1, seed=0).replay(opt.trials)
        assert again.ask() == opt.ask()
    assert asked[0] == asked[1]


def test_values_that_come_without_a_question_are_merged_as_well() -> None:
    values = repeated(300, 6, 0)
    opt = Optimizer([(0.0, 1.0)] * 2, **GIVEN, seed=0)
    for x, y in zip(values.x, values.y, strict=True):
        opt.tell(x, y)
    model = opt._strategy._at_choice
    assert model is not None and model.n == 300 and model.posterior.n < 30


@pytest.mark.parametrize("prior", [GIVEN, {}, {"noise_var": 0.0}], ids=["given", "learned", "exact"])
@pytest.mark.parametrize(("policy", "goal"), [(None, "max"), (GPMI(), "min"), (Thompson(), "min")])
@pytest.mark.parametrize("space", [np.linspace(0.0, 1.0, 5)[:, None], [(0.0, 1.0)]], ids=["rows", "box"])
def test_a_run_with_merged_rows_replays_from_any_moment(
    space: Any, policy: Any, prior: dict[str, Any], goal: Any, monkeypatch: Any
) -> None:
    """With merging from 8 values on, replicates told beside what is asked, points pending, corrected and failed."""
    monkeypatch.setattr(prior_data, "MERGE_FROM", 8)
    monkeypatch.setattr(gpmi.model.model, "MERGE_FROM", 8)
    monkeypatch.setattr(gpmi.model.model, "UNMERGED", 3)
    options: dict[str, Any] = {"policy": policy, "goal": goal, "seed": 1, "n_init": 2, **prior}
    rng, opt = np.random.default_rng(0), Optimizer(space, **options)
    for step in range(12):
        again = Optimizer(space, **options).replay(opt.trials) if step in (1, 2, 3, 6, 8, 9, 11) else None
        x = opt.ask()
        if again is not None:
            np.testing.assert_array_equal(x, again.ask(), str(step))
        opt.tell(x, float(np.sin(5.0 * x[0]) + 0.1 * rng.standard_normal()), repeats=1 + step % 2)
        for place in (0.25, 0.75):
            opt.tell([place], float(np.sin(5.0 * place) + 0.1 * rng.standard_normal()), noise_var=0.1 * (step % 3))
        if step == 8:
            opt.correct(5, 0.3)
            opt.fail(opt.ask())
    assert opt.model is not None and opt.model.posterior.replicates is not None
    assert opt.model.posterior.n < opt.model.n == 36


def test_only_runs_that_repeat_themselves_are_merged() -> None:
    few = repeated(130, 5, 0)
    assert not merges(few.first(127)) and merges(few.first(128)) and merges(few)
    many = repeated(130, 5000, 0)
    assert not merges(many)
    both = Observations.of(np.concatenate([few.x, many.x]), np.concatenate([few.y, many.y]))
    assert merges(both)  # once merged, it stays so


def exact(x: Array) -> Array:
    return np.sin(5.0 * x.sum(axis=1))


def test_ten_thousand_repeats_of_fifty_points_are_fifty_rows() -> None:
    values = repeated(10_000, 50, 0, own=False)
    model = Model.after(where({}), values)
    assert model.n == 10_000 and model.posterior.n <= 50 + 16 + 1
    mu, var = model.posterior(np.unique(values.x, axis=0))
    sd = np.sqrt(0.04 / 200)
    assert np.abs(mu - exact(np.unique(values.x, axis=0))).max() < 5.0 * sd
    assert np.sqrt(var).max() < 2.0 * sd
    assert model.prior.noise_var == pytest.approx(0.04, rel=0.1)
