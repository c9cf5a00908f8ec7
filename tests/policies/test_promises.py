"""What queries promise and keep: against sequential conditioning, quadrature, and the martingale it must be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from gpmi import GPMI, Optimizer, Posterior, Reinvest, State, kernels
from gpmi.model.model import promises
from gpmi.policies.promises import NONE


def by_hand(prior: Posterior, x: np.ndarray, y: np.ndarray, counted: np.ndarray) -> tuple[float, float]:
    """made and kept, one observation at a time, the moments of the gain by quadrature."""
    posterior, best, made, kept = prior, -np.inf, 0.0, 0.0
    age = np.cumsum(counted) / max(counted.sum(), 1)
    for s in range(len(y)):
        (mu,), (var,) = posterior(x[s])
        posterior = posterior.condition(x[s], y[s])
        (after,), _ = posterior(x[s])
        sd = var / np.sqrt(var + prior.noise_var)
        known, best = best, max(best, mu - 5 * sd)
        if s and counted[s] and (mu - best) / sd > -5:
            start, end = max((best - mu) / sd, -9.0), max((best - mu) / sd, 0.0) + 9.0
            mean, _ = quad(lambda u: (mu + sd * u - best) * norm.pdf(u), start, end, epsabs=0)  # noqa: B023
            square, _ = quad(lambda u: (mu + sd * u - best) ** 2 * norm.pdf(u), start, end, epsabs=0)  # noqa: B023
            weight = age[s] * var / (var + prior.noise_var)
            made += weight * mean**2 / (square - mean**2)
            kept += weight * max(after - best, 0.0) * mean / (square - mean**2)
        best = max(known, after)
    return made, kept


@given(seed=st.integers(0, 2**32), n=st.integers(1, 12), sign=st.sampled_from([1.0, -1.0]))
def test_promises_are_those_of_sequential_conditioning(seed: int, n: int, sign: float) -> None:
    rng = np.random.default_rng(seed)
    x, y, counted = rng.random((n, 2)), rng.standard_normal(n), rng.random(n) < 0.7
    prior = Posterior.prior(kernels.Matern(nu=2.5, lengthscale=0.4), 0.05, mean=0.1)
    posterior = prior.condition(x, y)
    got = promises(posterior if sign > 0.0 else posterior.mirrored(), counted)
    mirrored = Posterior.prior(prior.kernel, prior.noise_var, mean=sign * 0.1)
    made, kept = by_hand(mirrored, x, sign * y, counted)
    assert got.promised == pytest.approx(made, rel=1e-6, abs=1e-9)
    assert got.kept == pytest.approx(kept, rel=1e-6, abs=1e-9)


@pytest.mark.slow
def test_a_right_prior_keeps_its_promises_on_average_whatever_is_queried() -> None:
    """E[kept - promised] = 0 and E[(kept - promised)^2] <= E[promised], whatever is queried."""
    x, k = np.linspace(0.0, 1.0, 12)[:, None], kernels.RBF(lengthscale=0.15)
    prior, root = Posterior.prior(k, 0.01), np.linalg.cholesky(k(x, x) + 1e-10 * np.eye(12))
    excess, made = [], []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        f = root @ rng.standard_normal(12)
        posterior = prior
        for _ in range(15):
            mu, var = posterior(x)
            i = int(np.argmax(mu + np.sqrt(var)))
            posterior = posterior.condition(x[i], f[i] + 0.1 * rng.standard_normal())
        account = promises(posterior, np.ones(15, dtype=bool))
        excess.append(account.kept - account.promised)
        made.append(account.promised)
    assert abs(np.mean(excess)) < 3.5 * np.std(excess) / 20
    assert 0.2 * np.mean(made) < np.mean(np.square(excess)) < 1.1 * np.mean(made)


def test_nothing_is_promised_without_a_past_or_by_exact_repeats() -> None:
    prior = Posterior.prior(kernels.RBF(lengthscale=0.3), 0.0)
    assert promises(prior, np.zeros(0, dtype=bool)) == NONE
    assert promises(prior.condition(np.array([[0.5]]), np.array([1.0])), np.ones(1, dtype=bool)) == NONE
    twice = prior.condition(np.array([[0.5], [0.5]]), np.array([1.0, 1.0]))
    account = promises(twice, np.array([False, True]))
    assert account.promised == pytest.approx(0.0, abs=1e-9) and account.kept == pytest.approx(0.0, abs=1e-9)


def test_reinvest_trusts_a_model_less_whose_promises_fail() -> None:
    """A prior far too wide promises gains everywhere; on a flat function none is kept."""
    rows = np.linspace(0.0, 1.0, 60)[:, None]
    policy = Reinvest()
    opt = Optimizer(rows, policy, kernel=kernels.RBF(lengthscale=0.02), noise_var=1e-4, n_init=2, seed=0)
    for _ in range(20):
        opt.tell(opt.ask(), 0.0)
    told = opt.posterior
    assert told is not None
    account = promises(told, np.arange(20) >= 2)
    assert account.promised > 2.0 and account.kept < 0.3 * account.promised
    state = State(t=19, gamma_hat=0, noise_var=0, best_observed=0, best_mean=0, size=60, dim=0, horizon=None)
    assert policy.share(replace(state, promises=account)) < 0.4 < policy.share(state) == 1.0


@pytest.mark.slow
def test_reinvest_does_not_lock_in_where_gpmi_does() -> None:
    """Independent arms, noise sd 0.1: the mean regret of the last 50 of 300 queries is below 0.1, in every run."""

    def is_stuck(policy: GPMI | Reinvest, seed: int) -> bool:
        rng = np.random.default_rng([seed, 11])
        f, arms = rng.standard_normal(30), np.arange(30.0)[:, None]
        opt = Optimizer(arms, policy, kernel=kernels.RBF(lengthscale=1e-3), noise_var=0.01, n_init=1, seed=seed)
        regrets = []
        for _ in range(300):
            x = opt.ask()
            i = int(x[0])
            regrets.append(f.max() - f[i])
            opt.tell(x, f[i] + 0.1 * rng.standard_normal())
        return float(np.mean(regrets[-50:])) > 0.1

    assert not any(is_stuck(Reinvest(), seed) for seed in range(4))
    assert any(is_stuck(GPMI(), seed) for seed in range(6))
