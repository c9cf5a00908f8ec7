"""The score of several objectives as a function of the point."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sample_objectives import assert_is_slope, box, chance_in, posterior_in

from gpmi import EHVI, LogEI, Posterior, kernels
from gpmi.gp.ensemble import Ensemble
from gpmi.policies import State
from gpmi.policies.front import boxes_above
from gpmi.policies.hypervolume import HypervolumeImprovement
from gpmi.policies.objectives import WeightedScore
from gpmi.search.joint import JointObjective
from gpmi.search.objective import Objective

SPACE = box((-2.0, 3.0), (10.0, 400.0))
POINTS = SPACE.from_unit(np.random.default_rng(7).random((5, 2)))
STEPS = 1e-5 * SPACE.span


def joint(size: int = 3, *, with_chance: bool = False) -> JointObjective:
    """Two objectives; the first has draws of its values, the second is the same in all of them."""
    rng = np.random.default_rng(0)
    noisy, exact = posterior_in(SPACE, 0), posterior_in(SPACE, 1)
    draws = noisy.y + 0.1 * rng.standard_normal((size, noisy.n))
    fronts = [np.array([[0.2 + 0.1 * i, -0.1], [-0.3, 0.4]]) for i in range(size)]
    boxes = tuple(boxes_above(front, np.array([-1.5, -1.5])) for front in fronts)
    score = HypervolumeImprovement(boxes, (None, None))
    chance = chance_in(SPACE, 2, spread=0.5) if with_chance else None
    return JointObjective((Ensemble(noisy, draws), Ensemble(exact)), score, EHVI(), State(caution=1.0), chance)


@pytest.mark.parametrize("size", [1, 3])
def test_the_moments_are_those_of_each_objective_in_each_draw(size: int) -> None:
    o = joint(size)
    mu, var = o.moments(POINTS)
    assert mu.shape == (size, 2, 5) and var.shape == (1, 2, 5)
    noisy, exact = o.outputs
    for s in range(size):
        assert noisy.y is not None
        drawn = Posterior.prior(noisy.posterior.kernel, 1e-4).condition(noisy.posterior.x, noisy.y[s])
        np.testing.assert_allclose(mu[s, 0], drawn.mu(POINTS), rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(mu[s, 1], exact.posterior.mu(POINTS), rtol=1e-9)
    for i in range(2):
        np.testing.assert_allclose(var[0, i], o.outputs[i].posterior(POINTS)[1], rtol=1e-9)


@pytest.mark.parametrize("with_chance", [False, True])
@pytest.mark.parametrize("size", [1, 3])
def test_its_gradient_is_the_difference_quotient(size: int, with_chance: bool) -> None:
    o = joint(size, with_chance=with_chance)
    value, gradient = o.with_gradient(POINTS)
    np.testing.assert_allclose(value, o(POINTS), rtol=1e-9)
    assert_is_slope(o, gradient, POINTS, STEPS, rtol=1e-4)


def test_a_single_objective_of_weight_one_has_the_log_expected_improvement() -> None:
    posterior, chance, state = posterior_in(SPACE, 3), chance_in(SPACE, 4), State(best_mean=0.3, caution=0.5)
    score = WeightedScore(np.ones(1), (None,), 0.3)
    for success in (None, chance):
        o = JointObjective((Ensemble(posterior),), score, EHVI(), state, success)
        single = Objective(posterior, LogEI("mean"), state, chance=success)
        np.testing.assert_allclose(o(POINTS), single(POINTS), rtol=1e-9)
        for result, expected in zip(o.with_gradient(POINTS), single.with_gradient(POINTS), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-8)
        np.testing.assert_allclose(o.reach(2), single.reach(2))


def test_the_score_grows_by_the_log_of_the_chance_and_more_where_that_is_small() -> None:
    o = joint(with_chance=True)
    assert o.chance is not None
    log_p = o.chance.log(POINTS)
    short = np.minimum(log_p - o.state.log_enough, 0.0)
    assert np.any(short < 0.0)
    np.testing.assert_allclose(o(POINTS), replace(o, chance=None)(POINTS) + log_p + o.state.caution * short, rtol=1e-9)


def test_a_result_has_the_score_and_the_first_objectives_moments() -> None:
    o = joint(with_chance=True)
    result = o.result_at(POINTS[2], 17)
    mu, var = o.moments(POINTS[2:3])
    assert (result.mu, result.var, result.score) == (mu[0, 0, 0], var[0, 0, 0], o(POINTS[2:3])[0])
    assert result.number == 17 and result.events == () and result.row is not None
    assert o.posterior is o.outputs[0].posterior


def test_its_reach_is_the_shortest_of_the_objectives() -> None:
    long, short = (Posterior.prior(kernels.RBF(lengthscale), 1e-4) for lengthscale in ([9.0, 0.2], [0.3, 5.0]))
    o = JointObjective((Ensemble(long), Ensemble(short)), WeightedScore(np.ones(2), (None, None), 0.0), EHVI(), State())
    np.testing.assert_array_equal(o.reach(2), np.minimum(long.kernel.reach(2), short.kernel.reach(2)))
    assert o.reach(2)[0] == short.kernel.reach(2)[0] < long.kernel.reach(2)[0]
