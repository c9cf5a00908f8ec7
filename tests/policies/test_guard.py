"""The guard of aim="earn": its bounds hold step by step, its account is in the log, and the regret keeps the bound."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

import gpmi
from gpmi import Event, Optimizer, Posterior, Reinvest, kernels, theory
from gpmi._support.types import Array
from gpmi.policies import Guarded, guard
from gpmi.policies.policy import PointSearch, Selected
from gpmi.search.finite import drawn_maximum
from gpmi.trials.files import trial_of

ARMS = np.arange(20.0)[:, None]
INDEPENDENT = kernels.RBF(0.01)  # points one unit apart know nothing of each other
NOISE_VAR = 0.01


def moments(seed: int, m: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=m), rng.exponential(size=m) * (rng.random(m) < 0.9)


# The parts


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 60))
def test_the_bound_of_the_maximum_is_above_it_and_about_that_of_the_best_level(seed: int, m: int) -> None:
    mu, var = moments(seed, m)
    bound = guard.mean_of_maximum(mu, var)
    sd, low, high = np.sqrt(var), float(np.max(mu - 8 * np.sqrt(var))), float(np.max(mu + 8 * np.sqrt(var)))
    # E[max f] of independent values, by integrating P(max f > u)
    from scipy.special import ndtr

    u = np.linspace(low, high, 20_001)
    with np.errstate(divide="ignore", invalid="ignore"):
        below = np.prod(np.where(sd > 0, ndtr((u[:, None] - mu) / sd), u[:, None] >= mu), axis=1)
    exact = low + float(np.trapezoid(1.0 - below, u)) if high > low else low
    assert bound >= exact - 1e-3 * (high - low)
    levels = np.linspace(low, high, 2001)
    draws_above = [c + float(np.sum(_mean_above(mu, sd, c))) for c in levels]
    assert bound <= min(draws_above) + 0.01 * (high - low) + 1e-9  # any level gives a bound; at most 0.002 were seen


def _mean_above(mu: Array, sd: Array, c: float) -> Array:
    """E[(f - c)^+]."""
    from scipy.special import ndtr

    sd = np.maximum(sd, 1e-150)
    z = (mu - c) / sd
    result: Array = sd * (np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi) + z * ndtr(z))
    return result


def test_one_value_or_one_that_is_far_above_is_its_own_maximum() -> None:
    assert guard.mean_of_maximum(np.array([0.3]), np.array([2.0])) == pytest.approx(0.3, abs=1e-12)
    assert guard.mean_of_maximum(np.array([0.3, -9.0]), np.array([0.01, 0.01])) == pytest.approx(0.3, abs=1e-12)
    assert guard.mean_of_maximum(np.array([0.3, 0.1]), np.zeros(2)) == pytest.approx(0.3, abs=1e-12)


@pytest.mark.parametrize("m", [2, 5, 50, 1000])
def test_beta_is_the_mean_of_zeta_and_zeta_s_bound_is_above_the_maximum(m: int) -> None:
    zetas = [guard.draw_zeta(m, np.random.default_rng(seed)) for seed in range(2000)]
    assert np.mean(zetas) == pytest.approx(guard.beta(m), abs=0.2)
    assert min(zetas) >= 2.0 * math.log(m / 2)
    mu, var = moments(m, m)
    start = 2.0 * math.log(m / 2)

    def optimism(excess: float) -> float:
        return float(np.max(mu + np.sqrt((start + excess) * var))) * 0.5 * math.exp(-0.5 * excess)

    draws = mu + np.sqrt(var) * np.random.default_rng(1).standard_normal((20_000, m))
    assert quad(optimism, 0.0, 80.0)[0] >= float(draws.max(axis=1).mean()) - 0.02


@settings(max_examples=30, deadline=None)
@given(st.floats(1e-4, 1.0), st.floats(1e-3, 10.0), st.integers(0, 10**6))
def test_what_is_learned_is_c1_times_the_information_and_at_least_the_variances(
    noise_var: float, variance: float, seed: int
) -> None:
    x = np.random.default_rng(seed).random((9, 2))
    posterior = Posterior.prior(kernels.Matern(nu=1.5, lengthscale=0.5, variance=variance), noise_var).anticipate(x)
    learned = guard.learned(posterior.predictive_var, noise_var, variance)
    assert learned.sum() == pytest.approx(theory.c1(noise_var, variance) * posterior.information, rel=1e-9)
    assert np.all(learned >= posterior.predictive_var - 1e-12 * (variance + noise_var))


def test_before_any_value_the_account_allows_the_point_of_largest_variance() -> None:
    for m in (2, 3, 10, 300, 100_000):
        charge = guard.mean_of_maximum(np.zeros(m), np.ones(m))
        assert charge <= math.sqrt(guard.beta(m))  # proved in docs/proofs.md
        assert guard.Account().allows(charge, guard.beta(m), 1.0)


def test_the_mean_of_draws_is_the_mean_of_the_maximum() -> None:
    x = np.linspace(0, 1, 40)[:, None]
    posterior = Posterior.prior(kernels.RBF(0.2), 0.01).condition(x[[3, 30]], np.array([0.5, -1.0]))
    mu, var = posterior(x)
    ours = drawn_maximum(posterior, x, mu, var, 4000, np.random.default_rng(0))
    draws = posterior.sample(x, np.random.default_rng(1), 4000).max(axis=1)
    assert ours == pytest.approx(draws.mean(), abs=5 * draws.std() * math.sqrt(2 / 4000))
    assert (
        drawn_maximum(posterior, np.zeros((2049, 1)), np.zeros(2049), np.ones(2049), 1, np.random.default_rng()) is None
    )


def test_the_mean_of_draws_plus_its_error_is_rarely_below() -> None:
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((200_000, 5)).max(axis=1).mean()
    means = rng.standard_normal((2000, guard.DRAWS, 5)).max(axis=2).mean(axis=1)
    for t in (1, 9):
        assert np.mean(means + guard.error_of_draws(1.0, t) < truth) <= 1.0 / (t + 1) ** 2


# Runs


def charge(trial: gpmi.Trial) -> float:
    assert trial.policy_notes is not None
    return trial.policy_notes["charge"]


def zeta(trial: gpmi.Trial) -> float | None:
    assert trial.policy_notes is not None
    return trial.policy_notes.get("zeta")


def run(f: Array, optimizer: Optimizer, steps: int, seed: int) -> Array:
    """Return R_1, ..., R_T on candidates that are their own numbers."""
    rng, regrets = np.random.default_rng(seed), []
    for _ in range(steps):
        x = optimizer.ask()
        row = int(x[0])
        optimizer.tell(x, f[row] + math.sqrt(NOISE_VAR) * rng.standard_normal())
        regrets.append(float(f.max() - f[row]))
    return np.cumsum(regrets)


def on_arms(policy: gpmi.Policy | None = None, seed: int = 0, m: int = 20) -> Optimizer:
    return Optimizer(ARMS[:m], policy, aim="earn", kernel=INDEPENDENT, noise_var=NOISE_VAR, seed=seed)


def bound(steps: int, m: int = 20) -> float:
    """max(1, kappa) sqrt(C_1 beta T gamma_T) + 0.02: on arms gamma_T is that of equally many queries of each."""
    gamma = m * 0.5 * math.log1p(steps / m / NOISE_VAR)
    total = theory.c1(NOISE_VAR) * guard.beta(m) * steps * gamma
    return max(1.0, guard.KAPPA) * math.sqrt(total) + 0.02


def test_the_guard_leaves_reinvest_s_queries_alone() -> None:
    f = np.random.default_rng(3).standard_normal(20)
    guarded, free = on_arms(), on_arms(Reinvest())
    run(f, guarded, 80, 0)
    run(f, free, 80, 0)
    assert guarded.policy == Guarded() and free.policy == Reinvest()
    assert [t.x.tolist() for t in guarded.trials] == [t.x.tolist() for t in free.trials]
    assert all(charge(t) >= 0.0 and zeta(t) is None for t in guarded.trials)
    assert all(t.policy_notes is None for t in free.trials)
    assert not guarded.events


@pytest.mark.parametrize("kappa", [0.0, 0.8, 1.0, 2.0])
def test_the_account_keeps_its_bound_at_every_step_whatever_is_played(
    kappa: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "KAPPA", kappa)
    optimizer = on_arms(Guarded(Worst()))
    run(np.random.default_rng(5).standard_normal(20), optimizer, 60, 1)
    posterior = optimizer.posterior
    assert posterior is not None
    learned = np.cumsum(guard.learned(posterior.predictive_var, NOISE_VAR, 1.0))
    charged = np.cumsum([charge(t) for t in optimizer.trials])
    weight = np.cumsum([zeta(t) or guard.beta(20) for t in optimizer.trials])
    assert np.all(charged <= max(1.0, kappa) * np.sqrt(weight * learned) * (1 + 1e-9))
    acted = sum(zeta(t) is not None for t in optimizer.trials)
    assert (acted == 60) == (kappa == 0.0) and acted > 0
    assert [event.kind for event in optimizer.events] == ["guard"]


class Worst(Reinvest):
    """Repeats what is far from the best it knows: a policy that no bound could hold for without a guard."""

    grows_with_var = False  # type: ignore[misc]

    def score(self, mu: Array, var: Array, state: gpmi.State) -> Array:
        return -mu


def test_even_the_worst_policy_keeps_the_bound_on_draws() -> None:
    steps, m, draws = 200, 5, [np.random.default_rng(seed).standard_normal(5) for seed in range(5)]
    guarded = [run(f, on_arms(Guarded(Worst()), seed, m), steps, seed)[-1] for seed, f in enumerate(draws)]
    limit = bound(steps, m)
    assert np.mean(guarded) <= limit
    free = [run(f, on_arms(Worst(), seed, m), steps, seed)[-1] for seed, f in enumerate(draws)]
    assert np.mean(free) > 1.5 * limit


@pytest.mark.slow
@pytest.mark.parametrize("kappa", [0.0, 1.0, 2.0])
def test_reinvest_and_the_guard_keep_the_bound_on_draws(kappa: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "KAPPA", kappa)
    regrets = [run(np.random.default_rng(s).standard_normal(20), on_arms(seed=s), 100, s) for s in range(8)]
    for steps in (1, 5, 30, 100):
        assert np.mean(regrets, axis=0)[steps - 1] <= bound(steps)


@pytest.mark.parametrize("goal", ["max", "min"])
def test_a_replay_asks_what_the_guard_would_have_asked(goal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "KAPPA", 0.8)
    options = {"aim": "earn", "kernel": INDEPENDENT, "noise_var": NOISE_VAR, "seed": 4, "goal": goal}
    first = Optimizer(ARMS, Guarded(Worst()), **options)  # type: ignore[arg-type]
    run(np.random.default_rng(2).standard_normal(20), first, 25, 0)
    second = Optimizer(ARMS, Guarded(Worst()), **options).replay(first.trials)  # type: ignore[arg-type]
    for _ in range(4):
        x = first.ask()
        assert np.array_equal(x, second.ask())
        first.tell(x, 0.1)
        second.tell(x, 0.1)
    assert [zeta(t) for t in first.trials] == [zeta(t) for t in second.trials]
    np.testing.assert_allclose([charge(t) for t in first.trials], [charge(t) for t in second.trials], rtol=1e-9)


def test_where_the_cheap_bound_does_not_decide_draws_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """300 values that are almost one: their maximum is almost any of them, which moments alone do not show."""
    x = np.linspace(0, 1, 300)[:, None]
    cheap = guard.mean_of_maximum(np.zeros(300), np.ones(300))
    monkeypatch.setattr(guard, "KAPPA", 0.5 * cheap / math.sqrt(guard.beta(300)))
    optimizer = Optimizer(x, aim="earn", kernel=kernels.RBF(10.0), noise_var=NOISE_VAR, seed=0)
    optimizer.ask()
    (trial,) = optimizer.trials
    assert zeta(trial) is None and charge(trial) < 0.3 < cheap


@pytest.mark.parametrize(
    "options",
    [
        {"space": [(0.0, 1.0)], "kernel": kernels.RBF(0.2), "noise_var": 0.01},
        {"space": ARMS, "n_init": 3},
        {"space": ARMS, "kernel": INDEPENDENT, "noise_var": 0.0},
        {"space": ARMS, "kernel": INDEPENDENT, "noise_var": 0.01, "repeats": False},
        {"space": ARMS, "kernel": INDEPENDENT, "noise_var": 0.01, "aim": "find"},
        {"space": ARMS[:1], "kernel": INDEPENDENT, "noise_var": 0.01},
    ],
    ids=["box", "learned", "no noise", "no repeats", "find", "one point"],
)
def test_where_the_theorem_says_nothing_there_is_no_guard(options: dict[str, object]) -> None:
    arguments = {"aim": "earn", "seed": 0, **options}
    space = arguments.pop("space")
    if arguments["aim"] == "earn":
        with pytest.raises(ValueError, match=r"policy is Guarded.*whose bound needs candidates.*give Reinvest"):
            Optimizer(space, Guarded(), **arguments)  # type: ignore[arg-type]
    optimizer = Optimizer(space, **arguments)  # type: ignore[arg-type]
    assert not isinstance(optimizer.policy, Guarded)
    for value in (0.3, 0.2, 0.5, 0.1):
        if arguments.get("repeats", True) or len(optimizer.trials) < 20:
            optimizer.tell(optimizer.ask(), value)
    assert all(trial.policy_notes is None for trial in optimizer.trials)


def test_too_many_candidates_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpmi.gp.tracking.TRACKED_BYTES", 8 * 20)
    optimizer = on_arms()
    for value in (0.1, 0.2):
        optimizer.tell(optimizer.ask(), value)
    optimizer.ask()
    assert [event.kind for event in optimizer.events] == ["no guard"]
    assert optimizer.trials[-1].policy_notes is None


def test_pending_and_failed_queries_are_charged_too() -> None:
    optimizer = on_arms()
    points = optimizer.ask(4)
    optimizer.fail(points[0])
    optimizer.tell(points[1], 0.4)
    optimizer.ask()
    assert all(charge(trial) > 0.0 for trial in optimizer.trials)


def test_a_study_stores_the_account_under_the_names_it_always_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each note is a number of the entry, next to mu and phi, as before notes were a field of their own."""
    monkeypatch.setattr(guard, "KAPPA", 0.5)
    options: dict[str, Any] = {"aim": "earn", "kernel": INDEPENDENT, "noise_var": NOISE_VAR, "seed": 0}
    with gpmi.study(tmp_path / "run.db", space=ARMS, **options) as study:
        for value in (0.1, -0.4, 0.3, 0.2, -0.1, 0.0):
            study.tell(study.ask(), value)
        stored = [entry.content["said"] for entry in study.log() if entry.kind == "asked"]
        notes = [trial.policy_notes for trial in study.trials]
    assert any("zeta" in said for said in stored) and all("charge" in said for said in stored)
    with gpmi.study(tmp_path / "run.db") as study:
        assert study.verify().agrees
        assert [trial.policy_notes for trial in study.trials] == notes
        file = tmp_path / "trials.csv"
        gpmi.exchange.write_trials(study, file)
        read = gpmi.exchange.read_trials(file, ARMS)
    assert [trial.policy_notes for trial in read] == notes
    former = {**{name: getattr(read[-1], name) for name in ("number", "y", "status", "origin")}, "x0": 3.0}
    assert trial_of({**former, "charge": 0.5}, gpmi.Space.of(ARMS), 0).policy_notes == {"charge": 0.5}


def test_notes_of_another_policy_are_not_charged() -> None:
    opt = Optimizer(ARMS, aim="earn", kernel=INDEPENDENT, noise_var=NOISE_VAR, seed=0)
    noted = gpmi.Trial(0, ARMS[3], 1.0, "told", "policy", order=0, policy_notes={"mine": 1.0})
    opt.replay([noted]).ask()
    assert set(opt.pending[0].policy_notes or {}) == {"charge"}


@dataclass(frozen=True)
class Noting(Reinvest):
    """A policy with a note and an event of its own."""

    def choose(self, search: PointSearch) -> Selected:
        point = super().choose(search)
        return replace(point, notes={"mine": 0.25}, events=(Event("mine", "said so"),))


@pytest.mark.parametrize("kappa", [0.5, 2.0])
def test_the_notes_of_the_guarded_policy_are_kept(monkeypatch: pytest.MonkeyPatch, kappa: float) -> None:
    monkeypatch.setattr(guard, "KAPPA", kappa)
    opt = Optimizer(ARMS, Guarded(Noting()), kernel=INDEPENDENT, noise_var=NOISE_VAR, seed=0)
    for value in (0.1, -0.4, 0.3, 0.2, -0.1, 0.0):
        opt.tell(opt.ask(), value)
    assert any(zeta(trial) is not None for trial in opt.trials) == (kappa < 1.0)
    assert all(trial.policy_notes is not None and trial.policy_notes["mine"] == 0.25 for trial in opt.trials)
    assert all(charge(trial) >= 0.0 for trial in opt.trials) and Event("mine", "said so") in opt.events


def test_a_query_whose_value_is_still_to_come_counts_like_a_pending_one() -> None:
    """A trial that was told another output: the next point is that of a run in which it was told nothing yet."""
    rows = np.linspace(0.0, 1.0, 30)[:, None]
    options: dict[str, Any] = {"kernel": kernels.RBF(0.2), "noise_var": 1e-2, "aim": "earn", "n_init": 2, "seed": 0}
    partly, pending = (Optimizer(rows, goals={"f": "max", "ph": None}, **options) for _ in range(2))
    for i in range(8):
        x = partly.ask()
        assert np.array_equal(x, pending.ask())
        if i % 3 == 2:
            partly.tell(x, {"ph": 7.0})
        else:
            for opt in (partly, pending):
                opt.tell(x, {"f": float(np.sin(6.0 * x[0]))})
    assert isinstance(partly.policy, Guarded) and [len(opt.pending) for opt in (partly, pending)] == [0, 2]
