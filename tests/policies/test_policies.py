"""Policies against their formulas, quadrature and finite differences."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad, trapezoid
from scipy.stats import norm

from gpmi import (
    EI,
    GPMI,
    GPUCB,
    Explore,
    LogEI,
    Optimizer,
    Policy,
    Posterior,
    Reinvest,
    State,
    Thompson,
    VarianceBonus,
    kernels,
)
from gpmi.optimizer import selection, suggestion
from gpmi.policies import Find, Guarded, Mean, PointSearch, Selected
from gpmi.policies.expected_gain import log_h
from gpmi.policies.promises import Promises

STATE = State(t=7, gamma_hat=2.5, noise_var=0.01, best_observed=0.8, best_mean=0.6, size=100, dim=0, horizon=40)
MU = np.linspace(-3.0, 3.0, 25)
VAR = np.geomspace(1e-4, 2.0, 25)
POLICIES = [
    GPMI(),
    GPMI(alpha=2.0),
    GPUCB(),
    GPUCB(delta=0.1, scale=0.2),
    VarianceBonus(),
    EI(),
    EI("mean"),
    LogEI(),
    LogEI("mean"),
    Reinvest(),
    Explore(),
    Mean(),
]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_derivatives_are_difference_quotients(policy: Policy) -> None:
    score, by_mu, by_var = policy.with_derivatives(MU, VAR, STATE)
    np.testing.assert_allclose(score, policy.score(MU, VAR, STATE), rtol=1e-12)
    h = 1e-6
    quotient = (policy.score(MU + h, VAR, STATE) - policy.score(MU - h, VAR, STATE)) / (2 * h)
    np.testing.assert_allclose(by_mu, quotient, rtol=1e-5, atol=1e-8)
    h = 1e-5 * VAR
    quotient = (policy.score(MU, VAR + h, STATE) - policy.score(MU, VAR - h, STATE)) / (2 * h)
    np.testing.assert_allclose(by_var, quotient, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("policy", [p for p in POLICIES if p.grows_with_var], ids=repr)
@given(mu=st.floats(-5, 5), var=st.floats(0, 4), more=st.floats(0, 4))
def test_scores_grow_with_the_variance(policy: Policy, mu: float, var: float, more: float) -> None:
    low, high = policy.score(np.array([mu, mu]), np.array([var, var + more]), STATE)
    assert high >= low or np.isclose(low, high, rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_scores_and_derivatives_are_finite_or_minus_infinity_without_variance(policy: Policy) -> None:
    zero = np.zeros(3)
    mu = np.array([-1.0, 0.7, 2.0])
    score = policy.score(mu, zero, STATE)
    assert not np.any(np.isnan(score)) and not np.any(score == np.inf)
    assert all(np.all(np.isfinite(part)) for part in policy.with_derivatives(mu, zero, STATE)[1:])


@given(var=st.floats(0, 1e3), gamma_hat=st.floats(0, 1e6), alpha=st.floats(0.01, 100))
def test_gpmi_is_the_formula_of_algorithm_1(var: float, gamma_hat: float, alpha: float) -> None:
    state = State(1, gamma_hat, 0.1, 0.0, 0.0, 1, 0, None)
    want = np.sqrt(alpha) * (np.sqrt(var + gamma_hat) - np.sqrt(gamma_hat))
    got = GPMI(alpha=alpha).phi(np.array([var]), state)[0]
    assert got == pytest.approx(want, rel=1e-6, abs=1e-9 * np.sqrt(alpha * (gamma_hat + 1)))


def test_gpmi_does_not_cancel() -> None:
    state = State(1, 1e10, 0.1, 0.0, 0.0, 1, 0, None)
    assert GPMI(alpha=1.0).phi(np.array([1e-8]), state)[0] == pytest.approx(1e-8 / 2e5, rel=1e-12)


def test_the_sum_of_phi_is_the_root_of_alpha_gamma_hat() -> None:
    """Section 4.2: the inductive phi equals that of Algorithm 1."""
    rng = np.random.default_rng(0)
    opt = Optimizer(rng.random((300, 2)), GPMI(), kernel=kernels.RBF(0.3), noise_var=0.01, seed=0)
    for _ in range(60):
        opt.tell(opt.ask(), rng.standard_normal())
    assert opt.posterior is not None
    total = sum(trial.phi for trial in opt.trials if trial.phi is not None)
    assert total == pytest.approx(np.sqrt(np.log(2e6) * opt.posterior.gamma_hat()), rel=1e-9)


def test_gpucb_has_the_beta_of_srinivas() -> None:
    want = 2 * np.log(100 * 49 * np.pi**2 / (6 * 1e-6))
    np.testing.assert_allclose(GPUCB().phi(VAR, STATE), np.sqrt(want * VAR))
    np.testing.assert_allclose(GPUCB(scale=0.2).phi(VAR, STATE), np.sqrt(want * VAR / 5))
    box = State(t=7, gamma_hat=0, noise_var=0, best_observed=0, best_mean=0, size=1, dim=2, horizon=None)
    want = 2 * np.log(49 * 2 * np.pi**2 / (3 * 1e-6)) + 4 * np.log(2 * 49 * np.sqrt(np.log(8e6)))
    assert GPUCB().beta(box) == pytest.approx(want)


def test_variance_bonus_is_corollary_1() -> None:
    np.testing.assert_allclose(VarianceBonus(delta=0.1).phi(VAR, STATE), np.sqrt(np.log(20)) / 2 * VAR)


@pytest.mark.parametrize("mu", [-2.0, 0.5, 0.9])
@pytest.mark.parametrize("var", [0.01, 1.0])
def test_expected_improvement_is_the_integral(mu: float, var: float) -> None:
    sd = np.sqrt(var)
    for policy, best in ((EI(), 0.8), (EI("mean"), 0.6)):
        gain = np.linspace(0.0, max(0.0, mu - best) + 12 * sd, 200_001)
        want = trapezoid(gain * norm.pdf(best + gain, mu, sd), gain)
        got = policy.score(np.array([mu]), np.array([var]), STATE)[0]
        assert got == pytest.approx(want, rel=1e-6, abs=1e-12)
        log_got = LogEI(policy.incumbent).score(np.array([mu]), np.array([var]), STATE)[0]
        assert log_got == pytest.approx(np.log(got), abs=1e-9)


def test_log_h_is_accurate_far_out_and_smooth_at_its_seams() -> None:
    """h(z) = pdf(z) int_0^inf u exp(-u^2 / 2 + z u) du, by quadrature in v = |z| u."""
    for z in [-1e4, -300.0, -50.001, -49.999, -20.0, -5.0, -1.001, -0.999, -0.1]:
        integral, _ = quad(lambda v: v * np.exp(-0.5 * (v / z) ** 2 - v), 0.0, 60.0, epsabs=0, epsrel=1e-12)  # noqa: B023
        want = norm.logpdf(z) + np.log(integral) - 2 * np.log(-z)
        assert float(log_h(np.array([z]))[0]) == pytest.approx(want, rel=1e-11, abs=1e-10)
    assert np.exp(log_h(np.array([4.0])))[0] == pytest.approx(norm.pdf(4) + 4 * norm.cdf(4), rel=1e-14)


def test_reinvest_is_its_formula() -> None:
    """k min(sqrt(log(2 t^2 / delta)) sd, c H EI), with k = (1/4 + kept) / (1/4 + promised) between its floor and 1."""
    ei, sd = EI("mean").score(MU, VAR, STATE), np.sqrt(VAR)

    def want(k: float, c: float, left: float, t: int) -> np.ndarray:
        return MU + k * np.minimum(np.sqrt(np.log(2 * t**2 / 0.1)) * sd, c * left * ei)

    np.testing.assert_allclose(Reinvest().score(MU, VAR, STATE), want(1.0, 10.0, 34, 7))
    failing = replace(STATE, promises=Promises(promised=2.25, kept=1.0))
    np.testing.assert_allclose(Reinvest(c=0.3).score(MU, VAR, failing), want(0.5, 0.3, 34, 7))
    hopeless = replace(STATE, promises=Promises(promised=1e4, kept=0.0))
    np.testing.assert_allclose(Reinvest().score(MU, VAR, hopeless), want(0.1, 10.0, 34, 7))
    lucky = replace(STATE, promises=Promises(promised=1.0, kept=50.0))
    np.testing.assert_allclose(Reinvest().score(MU, VAR, lucky), want(1.0, 10.0, 34, 7))
    elsewhere = replace(STATE, alike=0.25)  # a gain serves this query, and a quarter of the 33 after it
    np.testing.assert_allclose(Reinvest().score(MU, VAR, elsewhere), want(1.0, 10.0, 1.0 + 33 / 4, 7))
    for horizon in (None, 20):  # none, and one that is over: as long again
        np.testing.assert_allclose(
            Reinvest().score(MU, VAR, replace(STATE, t=38, horizon=horizon)), want(1.0, 10.0, 38, 38)
        )


def test_every_policy_says_what_is_proven_for_it() -> None:
    for policy in [*POLICIES, Thompson()]:
        g = type(policy).guarantee
        assert g.statement and g.assumptions and g.reference and str(g)
    assert (
        not GPMI.guarantee.proven and "withdrawn" in GPMI.guarantee.statement and "erratum" in GPMI.guarantee.reference
    )
    assert not VarianceBonus.guarantee.proven
    assert GPUCB.guarantee.proven and Thompson.guarantee.proven


def test_a_phi_of_ones_own_takes_three_lines() -> None:
    class Optimism(Policy):
        def phi(self, var: np.ndarray, state: State) -> np.ndarray:
            return 2.0 * np.sqrt(var)

    np.testing.assert_allclose(Optimism().score(MU, VAR, STATE), MU + 2 * np.sqrt(VAR))
    np.testing.assert_allclose(Optimism().with_derivatives(MU, VAR, STATE)[2], 1 / np.sqrt(VAR), rtol=1e-6)
    assert np.all(np.isfinite(Optimism().slope(np.zeros(2), STATE)))
    assert "does not say" in Optimism.guarantee.statement
    for space in ([(0.0, 1.0)], np.random.default_rng(0).random((40, 1))):
        opt = Optimizer(space, Optimism(), kernel=kernels.RBF(0.2), noise_var=1e-4, seed=0)
        for _ in range(20):
            x = opt.ask()
            opt.tell(x, np.sin(5 * x[0]))
        assert opt.best is not None and opt.best.y is not None and opt.best.y > 0.9


def test_bad_parameters_are_refused_by_name() -> None:
    for make, words in [
        (lambda: GPMI(delta=0.0), "delta is 0.0"),
        (lambda: GPMI(delta=1.5), "delta is 1.5"),
        (lambda: GPMI(alpha=-1.0), "alpha is -1.0"),
        (lambda: GPUCB(scale=0.0), "scale is 0.0"),
        (lambda: EI("best"), "incumbent is 'best'"),  # type: ignore[arg-type]
        (lambda: VarianceBonus(delta=float("nan")), "delta is nan"),
        (lambda: Reinvest(c=0.0), "c is 0.0"),
    ]:
        with pytest.raises(ValueError, match=words):
            make()


@pytest.mark.slow
def test_thompson_sampling_follows_the_posterior_probability_of_the_maximum() -> None:
    """On three points the frequencies of its choices are the probabilities that each is the best."""
    x = np.array([[0.0], [0.5], [1.0]])
    posterior = Posterior.prior(kernels.RBF(0.4), 0.05).condition(x[:2], np.array([0.3, 0.1]))
    draws = posterior.sample(x, np.random.default_rng(0), 40_000)
    want = np.bincount(draws.argmax(axis=1), minlength=3) / 40_000
    counts = np.zeros(3)
    for seed in range(600):
        opt = Optimizer(x, Thompson(), kernel=kernels.RBF(0.4), noise_var=0.05, seed=seed)
        opt.tell(x[0], 0.3)
        opt.tell(x[1], 0.1)
        counts[int(2 * opt.ask()[0])] += 1
    np.testing.assert_allclose(counts / 600, want, atol=0.08)


def test_reinvest_explores_again_when_the_budget_turns_out_to_be_a_hint_only() -> None:
    """60 independent arms, a good one known: beyond the budget the weight grows until better arms are found."""
    arms = np.arange(60.0)[:, None]
    f = np.random.default_rng(3).standard_normal(60)
    f[0] = 1.0
    opt = Optimizer(arms, kernel=kernels.RBF(1e-3), noise_var=1e-2, budget=20, seed=0)
    opt.tell([0.0], 1.0)
    for _ in range(200):
        x = opt.ask()
        opt.tell(x, f[int(x[0])])
    assert opt.best is not None and opt.best.y == f.max() > 1.5


def test_ei_does_not_overflow_where_the_variance_vanishes() -> None:
    mu, zero = np.array([-1e9, 0.0, 1e9]), np.zeros(3)
    for policy in (EI(), LogEI(), Reinvest()):
        assert not np.any(np.isnan(policy.score(mu, zero, STATE)))
        assert all(np.all(np.isfinite(part)) for part in policy.with_derivatives(mu, zero, STATE)[1:])


def test_gpucb_takes_sets_too_large_to_count_in_floats() -> None:
    huge = State(t=1, gamma_hat=0, noise_var=0, best_observed=0, best_mean=0, size=10**400, dim=0, horizon=None)
    assert GPUCB().beta(huge) == pytest.approx(2 * (400 * np.log(10) + np.log(np.pi**2 / 6e-6)))


def test_a_phi_that_is_not_a_number_is_refused_with_the_place() -> None:
    class Wrong(Policy):
        def phi(self, var: np.ndarray, state: State) -> np.ndarray:
            with np.errstate(all="ignore"):
                return var * np.log(var)

    opt = Optimizer(np.eye(3), Wrong(), kernel=kernels.RBF(0.2), noise_var=0.0)
    opt.tell([1.0, 0.0, 0.0], 1.0)
    with pytest.raises(ValueError, match=r"Wrong.* gave the score nan where .*var is 0; phi must"):
        opt.ask()


@pytest.mark.parametrize("policy", [p for p in POLICIES if p.additive], ids=repr)
def test_a_policy_of_the_form_mu_plus_phi_has_a_phi_that_can_be_called(policy: Policy) -> None:
    phi = policy.phi(VAR, STATE)
    assert phi.shape == VAR.shape and np.all(phi >= 0.0)
    at_best = np.full_like(VAR, STATE.best_mean)
    np.testing.assert_allclose(policy.score(at_best, VAR, STATE), at_best + phi, rtol=1e-14)


def test_the_default_policys_phi_depends_on_the_mean_too() -> None:
    phi = Reinvest().phi(VAR, STATE, MU)
    np.testing.assert_allclose(Reinvest().score(MU, VAR, STATE), MU + phi, rtol=1e-14)
    assert np.all(np.diff(Reinvest().phi(np.full(5, 0.1), STATE, np.linspace(-3.0, 0.6, 5))) >= 0.0)


@pytest.mark.parametrize("scorer", [Reinvest(), EI(), LogEI(), Thompson()])
@pytest.mark.parametrize("outer", [Find, Guarded])
def test_a_delegating_policy_weighs_failures_like_its_scorer(outer: type[Find | Guarded], scorer: Policy) -> None:
    policy, state = outer(scorer), State(best_mean=0.5, caution=2.0)
    score, log_p = np.array([-1.0, 0.2, 3.0]), np.log([0.1, 0.9, 0.5])
    np.testing.assert_array_equal(policy.weighed(score, log_p, state), scorer.weighed(score, log_p, state))


def test_a_state_can_be_made_from_nothing() -> None:
    assert State() == State(1, 0.0, 0.0, 0.0, 0.0, 1, 0, None)
    assert GPMI().phi(np.array([4.0]), State())[0] == pytest.approx(2.0 * np.sqrt(np.log(2e6)))


# Rules of their own


class ExploreFirst(LogEI):
    """Explores for three queries."""

    def choose(self, search: PointSearch) -> Selected:
        return search.best(Explore()) if search.state.t <= 3 else search.best(self)


def test_a_policy_may_choose_by_a_rule_of_its_own() -> None:
    runs = {}
    for policy in (ExploreFirst(), Explore(), LogEI()):
        opt = Optimizer([(0.0, 1.0)] * 2, policy, kernel=kernels.RBF(0.3), noise_var=1e-4, seed=0)
        for _ in range(5):
            x = opt.ask()
            opt.tell(x, float(np.sin(5.0 * x[0]) + x[1]))
        runs[type(policy)] = opt
    first = [trial.x.tolist() for trial in runs[ExploreFirst].trials]
    assert first[:3] == [trial.x.tolist() for trial in runs[Explore].trials[:3]]
    replayed = Optimizer([(0.0, 1.0)] * 2, LogEI(), kernel=kernels.RBF(0.3), noise_var=1e-4, seed=0)
    assert replayed.replay(runs[ExploreFirst].trials[:3]).ask().tolist() == first[3]


def test_the_optimizer_asks_no_policy_what_it_is() -> None:
    for module in (suggestion, selection):
        assert "isinstance(policy" not in inspect.getsource(module)
