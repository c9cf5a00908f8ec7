"""The best of finitely many points, against the scores of all of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_objectives import chance_in, objective
from scipy.special import ndtr

from gpmi import EI, GPMI, LogEI, Optimizer, Posterior, Reinvest, Space, Thompson, kernels
from gpmi.gp.tracking import Tracked
from gpmi.policies import Mean, Policy, State
from gpmi.policies.batch import UpperBound
from gpmi.search.finite import best_row, drawn_maximum, drawn_row
from gpmi.search.objective import Objective

TABLE = Space.of(np.random.default_rng(3).random((150, 2)))
POLICIES = [Mean(), GPMI(), UpperBound(), EI(), LogEI(), Reinvest()]
SEEDS = st.integers(0, 1000)


def rows_of(space: Space) -> np.ndarray:
    assert space.rows is not None
    return space.rows


# Scores


@given(st.sampled_from(POLICIES), SEEDS, st.none() | st.floats(0.0, 0.99), st.booleans())
def test_no_row_that_is_allowed_has_a_better_score(
    policy: Policy, seed: int, share: float | None, is_tracked: bool
) -> None:
    o, rows = objective(TABLE, policy, seed % 20), rows_of(TABLE)
    excluded = None if share is None else np.random.default_rng(seed).random(len(rows)) < share
    tracked = Tracked.start(o.posterior, rows) if is_tracked else None
    result, _ = best_row(o, rows, excluded, tracked, None)
    score = np.where(False if excluded is None else excluded, -np.inf, o(rows))
    assert result.number is not None and (excluded is None or not excluded[result.number])
    assert score[result.number] >= score.max() - 1e-9 * abs(score.max())
    np.testing.assert_array_equal(result.row, rows[result.number])
    mu, var = o.posterior(result.row[None])
    assert (result.mu, result.var) == (pytest.approx(mu[0], rel=1e-9), pytest.approx(var[0], rel=1e-6))
    assert result.score == pytest.approx(score.max(), rel=1e-6)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_tracked_lazy_and_bounded_searches_return_the_same_to_the_last_bit(policy: Policy) -> None:
    rows = rows_of(TABLE)
    for seed in range(5):
        later = objective(TABLE, policy, seed, n=30)
        earlier = later.posterior.kernel
        first = Posterior.prior(earlier, 1e-4).condition(later.posterior.x[:25], later.posterior.y[:25])
        _, bound = best_row(replace(later, posterior=first), rows, None, None, None)
        plain, after = best_row(later, rows, None, None, None)
        for other, _ in (
            best_row(later, rows, None, None, bound),
            best_row(later, rows, None, Tracked.start(later.posterior, rows), None),
            best_row(later, rows, None, Tracked.start(first, rows).follow(later.posterior), None),
        ):
            assert (other.number, other.mu, other.var, other.score) == (
                plain.number,
                plain.mu,
                plain.var,
                plain.score,
            )
        assert (after is None) == (not policy.grows_with_var)
        if after is not None:
            assert np.all(after >= later.posterior(rows)[1] - 1e-12)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_of_equal_rows_the_lowest_that_is_allowed_is_chosen(policy: Policy) -> None:
    """Ten equal copies of each row: whichever way the moments are computed, and however BLAS rounds them."""
    few = np.random.default_rng(0).random((20, 2))
    o = objective(Space.of(few), policy, 1, n=12)
    rows = np.tile(few, (10, 1))
    best, _ = best_row(o, few, None, None, None)
    assert best.number is not None
    for tracked in (None, Tracked.start(o.posterior, rows)):
        for gone in range(4):
            excluded = np.zeros(len(rows), dtype=bool)
            excluded[best.number : 20 * gone : 20] = True
            result, _ = best_row(o, rows, excluded, tracked, None)
            assert result.number == best.number + 20 * gone


@given(SEEDS, st.sampled_from([GPMI(), LogEI()]), st.booleans())
def test_with_members_or_a_chance_no_row_has_a_better_score(seed: int, policy: Policy, has_chance: bool) -> None:
    members = tuple(objective(TABLE, policy, seed % 10 + i) for i in range(3))
    o = replace(members[0], chance=chance_in(TABLE, seed % 10)) if has_chance else replace(members[0], members=members)
    rows, excluded = rows_of(TABLE), np.random.default_rng(seed).random(150) < 0.3
    result, bound = best_row(o, rows, excluded, None, None)
    score = np.where(excluded, -np.inf, o(rows))
    assert result.number == score.argmax() and bound is None


# Draws


def test_a_draw_chooses_a_row_as_often_as_f_is_largest_there() -> None:
    rows = np.array([[0.0], [1.0]])
    posterior = Posterior.prior(kernels.RBF(0.5), 0.1).condition(rows, np.array([0.3, 0.0]))
    o = Objective(posterior, Thompson(), State())
    rng, normals = np.random.default_rng(0), np.random.default_rng(1)
    chosen = [drawn_row(o, rows, None, rng, normals).number for _ in range(2000)]
    mu, cov = posterior.mu(rows), posterior.covariance(rows, rows)
    expected = ndtr((mu[1] - mu[0]) / np.sqrt(cov[0, 0] + cov[1, 1] - 2.0 * cov[0, 1]))
    assert np.mean(chosen) == pytest.approx(expected, abs=0.04) and 0.05 < expected < 0.95


@given(SEEDS, st.floats(0.0, 0.98))
def test_a_draw_is_of_rows_that_are_allowed_and_where_f_is_certain_of_the_largest(seed: int, share: float) -> None:
    rows = np.linspace(0.0, 1.0, 12)[:, None]
    f = np.random.default_rng(seed).permutation(12).astype(float)
    o = Objective(Posterior.prior(kernels.Matern(0.5, 0.3), 1e-8).condition(rows, f), Thompson(), State())
    excluded = np.random.default_rng(seed).random(12) < share
    excluded[seed % 12] = False
    result = drawn_row(o, rows, excluded, np.random.default_rng(seed), np.random.default_rng(seed + 1))
    assert result.number == np.where(excluded, -np.inf, f).argmax() and not result.events
    np.testing.assert_array_equal(result.row, rows[result.number])


def test_a_draw_avoids_what_fails() -> None:
    rows = np.linspace(0.0, 1.0, 12)[:, None]
    posterior = Posterior.prior(kernels.Matern(0.5, 0.3), 1e-8).condition(rows, np.arange(12.0))
    chance = chance_in(Space.of(rows), 0)
    o = Objective(posterior, Thompson(), State(best_mean=0.0), chance=chance)
    number = drawn_row(o, rows, None, np.random.default_rng(0), np.random.default_rng(1)).number
    assert number == (np.arange(12.0) * chance(rows)).argmax() != 11


def test_a_draw_under_several_priors_is_made_under_each_of_them_as_often() -> None:
    rows = np.array([[0.0], [1.0]])
    prior = Posterior.prior(kernels.Matern(0.5, 0.3), 1e-8)
    members = tuple(
        Objective(prior.condition(rows, np.array(y)), Thompson(), State()) for y in ([1.0, 0.0], [0.0, 1.0], [0.0, 2.0])
    )
    o, rng = replace(members[0], members=members), np.random.default_rng(0)
    chosen = [drawn_row(o, rows, None, rng, np.random.default_rng(1)).number for _ in range(600)]
    assert np.mean(chosen) == pytest.approx(2.0 / 3.0, abs=0.06)


def test_a_reduced_draw_is_made_at_rows_that_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpmi.search.finite.JOINT", 10)
    rows = np.linspace(0.0, 1.0, 100)[:, None]
    o = Objective(Posterior.prior(kernels.RBF(0.1), 1e-4), Thompson(), State())
    excluded = np.arange(100) % 2 == 0
    numbers = set()
    for seed in range(30):
        result = drawn_row(o, rows, excluded, np.random.default_rng(seed), np.random.default_rng(seed))
        assert [event.kind for event in result.events] == ["reduced search"]
        assert "10 random rows of 50" in result.events[0].message
        numbers.add(result.number)
    assert all(number % 2 for number in numbers) and len(numbers) > 10


def test_a_joint_draw_over_many_rows_says_that_it_was_reduced() -> None:
    opt = Optimizer(
        np.random.default_rng(0).random((3000, 2)), Thompson(), kernel=kernels.RBF(0.3), noise_var=0.1, seed=0
    )
    opt.tell(opt.ask(), 0.0)
    assert [e.kind for e in opt.events] == ["reduced search"]


@given(SEEDS)
def test_the_mean_of_the_drawn_maximum_of_two_values_is_the_closed_form(seed: int) -> None:
    """E max(a, b) = mu_a Phi(z) + mu_b Phi(-z) + s phi(z), z = (mu_a - mu_b) / s, s the sd of a - b (Clark 1961)."""
    rng = np.random.default_rng(seed)
    rows = np.array([[0.0], [rng.uniform(0.2, 2.0)], [50.0]])
    prior = Posterior.prior(kernels.RBF(0.7), 0.2).condition(rows, np.array([*rng.standard_normal(2), -30.0]))
    mu, var = prior(rows)
    cov = prior.covariance(rows, rows)
    s = np.sqrt(var[0] + var[1] - 2.0 * cov[0, 1])
    z = (mu[0] - mu[1]) / s
    expected = mu[0] * ndtr(z) + mu[1] * ndtr(-z) + s * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    drawn = drawn_maximum(prior, rows, mu, var, 4000, rng)
    assert drawn == pytest.approx(expected, abs=5.0 * np.sqrt(var.max() / 4000.0))


def test_rows_that_cannot_be_the_largest_are_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.linspace(0.0, 1.0, 20)[:, None]
    posterior = Posterior.prior(kernels.RBF(0.2), 1e-4).condition(rows, 3.0 * np.sin(3.0 * rows[:, 0]))
    mu, var = posterior(rows)
    near = int((mu + 6.0 * np.sqrt(var) >= (mu - 6.0 * np.sqrt(var)).max()).sum())
    assert 0 < near < 10
    monkeypatch.setattr("gpmi.search.finite.JOINT", near)
    reduced = drawn_maximum(posterior, rows, mu, var, 500, np.random.default_rng(0))
    assert reduced == pytest.approx(posterior.sample(rows, np.random.default_rng(1), 500).max(axis=1).mean(), abs=2e-3)
    monkeypatch.setattr("gpmi.search.finite.JOINT", near - 1)
    assert drawn_maximum(posterior, rows, mu, var, 500, np.random.default_rng(0)) is None
