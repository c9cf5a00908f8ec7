"""A policy's score as a function of the point: its gradient, its mean over models, its weight by a chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sample_objectives import (
    assert_is_slope,
    box,
    chance_in,
    found_by,
    objective,
    posterior_in,
    score_of,
)

from gpmi import EI, GPMI, LogEI, Posterior, Reinvest, Space, Thompson
from gpmi.gp.tracking import Tracked
from gpmi.gp.trend import Trend
from gpmi.policies import Mean, Policy, State
from gpmi.search.objective import mean_of
from gpmi.space import Parameters

SPACE = box((-2.0, 3.0), (10.0, 400.0))
POINTS = SPACE.from_unit(np.random.default_rng(9).random((6, 2)))
STEPS = 1e-5 * SPACE.span


def test_the_objectives_gradient_is_the_difference_quotient() -> None:
    space = Space.of([(0.0, 1.0)] * 3)
    assert isinstance(space, Parameters)
    z, h = np.random.default_rng(5).random((6, 3)), 1e-6
    for policy in (GPMI(), LogEI(), Reinvest()):
        o = objective(space, policy, 0)
        value, gradient = o.with_gradient(z)
        np.testing.assert_allclose(value, o(z), rtol=1e-10)
        for j, e in enumerate(h * np.eye(3)):
            np.testing.assert_allclose(gradient[:, j], (o(z + e) - o(z - e)) / (2 * h), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("policy", [Mean(), GPMI(), EI(), LogEI()], ids=repr)
def test_weighed_by_a_chance_its_gradient_is_the_difference_quotient(policy: Policy) -> None:
    o = score_of(policy, posterior_in(SPACE, 2), SPACE, chance=chance_in(SPACE, 2, spread=0.5))
    o = replace(o, state=replace(o.state, caution=1.5))
    value, gradient = o.with_gradient(POINTS)
    np.testing.assert_allclose(value, o(POINTS), rtol=1e-9)
    assert_is_slope(o, gradient, POINTS, STEPS, rtol=1e-4)


@pytest.mark.parametrize("policy", [GPMI(), LogEI(), Reinvest()], ids=repr)
def test_gradients_beside_a_point_made_from_its_own_give_the_same_second_derivatives(policy: Policy) -> None:
    """In six dimensions, and with a known mean: one backward solve for each group of seven points."""
    space = Space.of([(0.0, 1.0)] * 6)
    assert isinstance(space, Parameters)
    o = objective(space, policy, 1, n=60)
    trend = Trend(lambda row: float(np.sin(row).sum()), space.lo, space.hi)
    start = Posterior.prior(o.posterior.kernel, 1e-4, 0.2, trend)
    o = replace(o, posterior=start.condition(o.posterior.x, o.posterior.y))
    h = np.where(np.arange(6) % 2, 1e-5, -1e-5)
    z = (np.random.default_rng(2).random((4, 1, 6)) + h * np.eye(7, 6, -1)).reshape(-1, 6)

    def expansion(value: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, ...]:
        groups = gradient.reshape(4, 7, 6)
        return value, groups[:, 0], (groups[:, 1:] - groups[:, :1]) / h[:, None]

    (value, slope, bend), (value_2, slope_2, bend_2) = expansion(*o.with_gradient(z)), expansion(*o.with_gradient(z, 7))
    np.testing.assert_allclose(value_2, value, rtol=1e-12)
    np.testing.assert_allclose(slope_2, slope, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(bend_2, bend, rtol=1e-3, atol=1e-3 * np.abs(bend).max())


def test_the_score_of_several_models_is_the_mean_of_theirs_and_so_is_its_gradient() -> None:
    space = Space.of([(-2.0, 3.0), (10.0, 400.0)])
    assert isinstance(space, Parameters)
    members = tuple(objective(space, Reinvest(), seed) for seed in range(3))
    o = replace(members[0], members=members)
    z = space.from_unit(np.random.default_rng(9).random((5, 2)))
    score, gradient = o.with_gradient(z)
    np.testing.assert_allclose(score, np.mean([m(z) for m in members], axis=0), rtol=1e-12)
    np.testing.assert_allclose(o(z), score, rtol=1e-12)
    for j, step in enumerate(1e-5 * np.diag(space.span)):
        quotient = (o(z + step) - o(z - step)) / (2.0 * step[j])
        np.testing.assert_allclose(gradient[:, j], quotient, rtol=1e-4, atol=1e-6 * np.abs(gradient[:, j]).max())
    found = o.result_at(z[0])
    mu, var = np.array([m.posterior(z[:1]) for m in members])[:, :, 0].T
    assert found.mu == pytest.approx(mu.mean()) and found.var == pytest.approx(var.mean() + mu.var())
    _, best = found_by(o, space)
    grid = space.from_unit(np.stack(np.meshgrid(*[np.linspace(0, 1, 101)] * 2), axis=-1).reshape(-1, 2))
    values = o(grid)
    assert best >= values.max() - 1e-3 * (values.max() - np.median(values))


def test_an_expected_gain_is_multiplied_by_the_chance_and_its_logarithm_grows_by_its_logarithm() -> None:
    chance = chance_in(SPACE, 1)
    for policy, change in ((EI(), lambda score, p: score * p), (LogEI(), lambda score, p: score + np.log(p))):
        plain = objective(SPACE, policy, 1)
        weighed = replace(plain, chance=chance)
        np.testing.assert_allclose(weighed(POINTS), change(plain(POINTS), chance(POINTS)), rtol=1e-8)
        result = weighed.result_at(POINTS[0])
        assert result.score == plain.result_at(POINTS[0]).score == pytest.approx(plain(POINTS[:1])[0])  # not weighed


@pytest.mark.parametrize("kind", ["plain", "weighed", "averaged"])
def test_the_score_at_tracked_points_is_the_score_there(kind: str) -> None:
    o = objective(SPACE, GPMI(), 3)
    if kind == "weighed":
        o = replace(o, chance=chance_in(SPACE, 3))
    if kind == "averaged":
        o = replace(o, members=tuple(objective(SPACE, GPMI(), seed) for seed in (3, 4)))
    np.testing.assert_allclose(o.at_tracked(Tracked.start(o.posterior, POINTS)), o(POINTS), rtol=1e-6, atol=1e-9)


def test_a_result_has_the_posteriors_moments_and_what_it_was_given() -> None:
    o = objective(SPACE, GPMI(), 3)
    result = o.result_at(POINTS[1], 5)
    mu, var = o.posterior(POINTS[1:2])
    assert (result.mu, result.var, result.number, result.events) == (mu[0], var[0], 5, ())
    assert result.row.tolist() == POINTS[1].tolist() and result.score == o(POINTS[1:2])[0]
    assert np.isnan(objective(SPACE, Thompson(), 3).result_at(POINTS[1]).score)  # a draw has no score


def test_a_policy_that_scores_nan_is_refused_with_the_moments() -> None:
    class Broken(Policy):
        def phi(self, var: np.ndarray, state: State) -> np.ndarray:
            return np.where(var < 0.5, np.nan, 0.0)

    o = replace(objective(SPACE, GPMI(), 0), policy=Broken())
    with pytest.raises(ValueError, match=r"score nan where mu is 2 and var is 0\.25; phi must be a number"):
        o.score(np.array([1.0, 2.0]), np.array([1.0, 0.25]))


def test_another_policy_is_that_of_all_members() -> None:
    members = tuple(objective(SPACE, GPMI(), seed) for seed in range(2))
    o, other = replace(members[0], members=members), Mean()
    assert o.with_policy(o.policy) is o
    changed = o.with_policy(other)
    np.testing.assert_allclose(changed(POINTS), mean_of([m.posterior.mu(POINTS) for m in members]), rtol=1e-12)
    assert changed.policy is other and o.policy == GPMI()


def test_a_random_member_is_each_of_them_as_often_and_without_members_the_objective_itself() -> None:
    members = tuple(objective(SPACE, GPMI(), seed) for seed in range(3))
    assert members[0].random_member(np.random.default_rng(0)) is members[0]
    o, rng = replace(members[0], members=members), np.random.default_rng(0)
    counts = np.zeros(3)
    for _ in range(900):
        member = o.random_member(rng)
        counts[[m is member for m in members].index(True)] += 1
    assert counts.min() > 250
