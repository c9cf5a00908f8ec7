"""Where trials fail, the regret is against the best point that works, under joint draws of f and of what works."""

from __future__ import annotations

import numpy as np
import pytest

import gpmi
from gpmi import Optimizer, kernels
from gpmi.analysis.ledger.gain import draw_gain
from gpmi.analysis.ledger.maxima import draw_maxima, most_likely_better
from gpmi.analysis.ledger.region import Region
from gpmi.gp.approximate.ep import expectation_propagation, probit
from gpmi.gp.approximate.success import Requirement, SuccessProbability
from gpmi.space import Space

LEVELS = [0.25, 0.5, 0.75, 0.9, 0.95]


def line(count):
    return np.linspace(0.0, 1.0, count)[:, None]


def posterior_of_f():
    x = np.array([[0.05], [0.3], [0.5]])
    return gpmi.Posterior.prior(kernels.Matern(nu=2.5, lengthscale=0.25), 1e-4).condition(x, np.array([0.0, 0.8, 1.0]))


def chance_of_success():
    """Failures at the right end, and a measured constraint that is broken at the left end."""
    x, success = np.array([[0.05], [0.3], [0.5], [0.75], [0.97]]), np.array([True, True, True, False, False])
    kernel = kernels.Matern(nu=2.5, lengthscale=0.4, variance=25.0)
    sites = expectation_propagation(kernel(x, x), np.zeros(5), probit(success))
    measured = gpmi.Posterior.prior(kernels.RBF(0.3), 1e-2).condition(x[:3], np.array([0.3, -0.4, -0.6]))
    return SuccessProbability((Requirement(sites.posterior(kernel, x)), Requirement(measured, 0.0, -1.0, 0.0)))


def brute_force(posterior, chance, z, first, size):
    """Joint draws of max f over what works and of f at the first point, by numpy alone."""
    rng = np.random.default_rng(11)
    points = np.concatenate([first, z])

    def drawn(process):
        cov = process.covariance(points)
        return rng.multivariate_normal(process.mu(points), 0.5 * (cov + cov.T), size, method="eigh")

    classifier, limit = chance.requirements
    works = (drawn(classifier.posterior) >= 0.0) & (drawn(limit.posterior) <= 0.0)
    works[:, 0] = True
    f = drawn(posterior)
    return np.where(works, f, -np.inf).max(axis=1), f[:, 0]


def test_on_a_finite_set_the_maximum_over_what_works_has_the_law_of_joint_draws():
    posterior, chance, z = posterior_of_f(), chance_of_success(), line(15)
    first, size = np.array([[0.5]]), 20_000
    region = Region.drawn(chance, np.concatenate([first, z]), size, np.random.default_rng(1))
    ours = draw_maxima(posterior, Space.of(z), first, size, np.random.default_rng(2), region=region)
    best, value = brute_force(posterior, chance, z, first, size)
    assert ours.best.mean() == pytest.approx(best.mean(), abs=0.02)
    np.testing.assert_allclose(
        np.quantile(ours.best - ours.at[:, 0], LEVELS), np.quantile(best - value, LEVELS), atol=0.03
    )
    everywhere = draw_maxima(posterior, Space.of(z), first, size, np.random.default_rng(2))
    assert everywhere.best.mean() > ours.best.mean() + 0.1  # what fails matters here


def test_on_a_box_the_maximum_over_what_works_has_the_law_of_joint_draws_on_a_fine_grid():
    posterior, chance, first, size = posterior_of_f(), chance_of_success(), np.array([[0.5]]), 1024
    region = Region.drawn(chance, first, size, np.random.default_rng(1))
    ours = draw_maxima(posterior, Space.of([(0.0, 1.0)]), first, size, np.random.default_rng(2), region=region)
    best, value = brute_force(posterior, chance, line(201), first, 10_000)
    np.testing.assert_allclose(
        np.quantile(ours.best - ours.at[:, 0], LEVELS), np.quantile(best - value, LEVELS), atol=0.12
    )
    works = region(ours.where, np.arange(size))
    assert np.all(works | (ours.where == first).all(axis=1))  # each maximum works in its own draw
    assert np.all(ours.best >= ours.at[:, 0])


def test_a_point_works_in_as_many_draws_as_its_probability_says():
    chance, z = chance_of_success(), line(9)
    region = Region.drawn(chance, z[:1], 4000, np.random.default_rng(0))
    works, many = region.everywhere(z), np.arange(4000)
    np.testing.assert_allclose(works.mean(axis=1), chance.works(z), atol=0.05)
    np.testing.assert_allclose(chance.draw(z, np.random.default_rng(0), 4000).mean(axis=0), chance.works(z), atol=0.03)
    for i in range(9):
        assert np.array_equal(region(np.repeat(z[i : i + 1], 4000, axis=0), many), works[i])
    assert np.array_equal(region.part(many[7:90]).everywhere(z), works[:, 7:90])


def test_the_most_likely_better_point_is_a_lower_bound_where_points_fail():
    posterior, chance, z, first = posterior_of_f(), chance_of_success(), line(15), np.array([[0.5]])
    best, value = brute_force(posterior, chance, z, first, 20_000)
    bound = most_likely_better([posterior], z, first[0], 0.1, chance.works(z))
    assert 0.0 < bound <= np.mean(best - value > 0.1) + 0.01
    assert bound < most_likely_better([posterior], z, first[0], 0.1)


# Ledgers


def crashing(edge, count=30, **arguments):
    """A run in which what lies beyond an edge fails; f grows towards it."""
    opt = Optimizer([(0.0, 1.0)] * 2, seed=0, **arguments)
    for _ in range(count):
        x = opt.ask()
        opt.fail(x) if x[0] + 0.3 * x[1] > edge else opt.tell(x, float(np.sin(3.0 * x[0]) - (x[1] - 0.4) ** 2))
    return opt


def test_beyond_the_edge_of_what_worked_a_better_point_may_work():
    ledger = crashing(0.45).ledger
    regret, chance = ledger.regret(), ledger.model.chance
    assert np.any(chance(regret.where) < 0.5)
    assert regret.how.endswith("under draws of what works")
    assert np.all(regret.simple >= 0.0)


def test_if_nothing_else_works_there_is_nothing_to_gain():
    ledger = crashing(0.45).ledger
    model, row, where = ledger.model, ledger.model.recommendation.row, ledger.regret().where

    class Nothing:
        def draw(self, z, rng, size):
            return np.zeros((size, len(z)), dtype=bool)

        def works(self, z):
            return np.zeros(len(z))

    model.__dict__["chance"] = Nothing()
    gain = draw_gain(model, ledger.belief, row, where, 10, np.random.default_rng(0))
    assert np.all(gain.draws == 0.0)
    assert ledger.improvement == 0.0


def test_reading_the_regret_where_trials_fail_changes_no_query_and_is_repeatable():
    read, unread = crashing(0.45), crashing(0.45)
    draws = read.ledger.regret().simple, read.ledger.gain().draws
    np.testing.assert_array_equal(read.ask(), unread.ask())
    np.testing.assert_array_equal(draws[0], unread.ledger.regret().simple)
    np.testing.assert_array_equal(draws[1], unread.ledger.gain().draws)


@pytest.mark.slow
def test_no_rule_stops_at_an_edge_while_a_hill_beyond_it_may_work():
    """It works in a small ball within the half that fails. Over points with p >= 1/2 alone the regret would be 1e-4."""
    low, high = np.array([0.25, 0.3]), np.array([0.8, 0.75])
    opt = Optimizer([(0.0, 1.0)] * 2, budget=40, seed=0)
    for _ in range(40):
        x = np.asarray(opt.ask())
        hills = [height * np.exp(-5.0 * ((x - at) ** 2).sum()) for height, at in ((2.0, low), (3.0, high))]
        beyond = (x - 0.5 * (low + high)) @ (high - low) > 0.0
        opt.fail(x) if beyond and np.linalg.norm(x - high) > 0.12 else opt.tell(x, sum(hills))
    ledger = opt.ledger
    assert np.linalg.norm(ledger.model.recommendation.row - high) > 0.12  # the higher hill was not found
    assert not ledger.is_below(0.05) and ledger.regret().interval().upper > 0.5
