"""Expected hypervolume improvement against draws, exact volumes, EI and difference quotients."""

from __future__ import annotations

from math import gamma, pi

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpmi.policies import EI, LogEI, State
from gpmi.policies.front import Boxes, boxes_above, hypervolume
from gpmi.policies.hypervolume import HypervolumeImprovement, random_direction, scalarised

Array = NDArray[np.float64]
Targets = tuple[float | None, ...]


def objectives(y: Array, targets: Targets) -> Array:
    """Z of outputs y, (..., m)."""
    return np.stack([y[..., i] if t is None else -np.abs(y[..., i] - t) for i, t in enumerate(targets)], axis=-1)


class Case:
    """A random front for each of S draws, and moments at p points; about a `share` of the objectives have targets."""

    def __init__(self, seed: int, m: int, s: int = 1, *, n: int = 6, p: int = 4, share: float = 0.4) -> None:
        rng = np.random.default_rng(seed)
        aims = rng.normal(size=m)
        self.targets: Targets = tuple(float(aims[i]) if rng.random() < share else None for i in range(m))
        self.reference = np.array([-1.5 if t is None else -2.0 for t in self.targets])
        self.fronts = [objectives(rng.normal(size=(n, m)), self.targets) for _ in range(s)]
        self.boxes = tuple(boxes_above(front, self.reference) for front in self.fronts)
        self.improvement = HypervolumeImprovement(self.boxes, self.targets)
        self.mu, self.var = rng.normal(size=(s, m, p)), 10.0 ** rng.uniform(-2.0, 0.5, size=(s, m, p))


dimensions = st.sampled_from((2, 3, 4))
draws = st.sampled_from((1, 3))
seeds = st.integers(0, 2**32 - 1)


# The value


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_it_is_the_mean_improvement_of_many_draws(m: int, share: float) -> None:
    case, rng, many = Case(m, m, 2, share=share, p=2), np.random.default_rng(0), 100_000
    for point in range(2):
        gains = np.zeros((2, many))
        for s, boxes in enumerate(case.boxes):
            y = case.mu[s, :, point] + np.sqrt(case.var[s, :, point]) * rng.standard_normal((many, m))
            z = objectives(y, case.targets)
            for lower, upper in zip(boxes.lower, boxes.upper, strict=True):
                gains[s] += np.prod(np.maximum(np.minimum(z, upper) - lower, 0.0), axis=1)
        mean, error = gains.mean(), gains.std(axis=1).mean() / np.sqrt(2 * many)
        value = np.exp(case.improvement(case.mu, case.var)[point])
        assert abs(value - mean) < 5.0 * error


@given(seeds, st.sampled_from((1, 2, 3, 4)))
def test_a_certain_point_improves_by_the_exact_difference_of_hypervolumes(seed: int, m: int) -> None:
    case = Case(seed, m)
    case.mu *= 3.0
    log = case.improvement(case.mu, np.zeros_like(case.var))
    again, *slopes = case.improvement.with_derivatives(case.mu, np.zeros_like(case.var))
    before = hypervolume(case.fronts[0], case.reference)
    for point, y in enumerate(case.mu[0].T):
        both = np.vstack([case.fronts[0], objectives(y, case.targets)])
        exact = hypervolume(both, case.reference) - before
        np.testing.assert_allclose(np.exp([log[point], again[point]]), exact, rtol=1e-9, atol=1e-12)
    assert np.all(np.isfinite(log)) and np.all(np.isfinite(again)) and np.all(np.isfinite(slopes))


@given(seeds)
def test_with_one_objective_it_is_expected_improvement_over_the_best_value(seed: int) -> None:
    case = Case(seed, 1, share=0.0, p=20)
    mu, var = case.mu[0, 0], case.var[0, 0]
    state = State(best_observed=max(float(case.fronts[0].max()), float(case.reference[0])))
    np.testing.assert_allclose(np.exp(case.improvement(case.mu, case.var)), EI().score(mu, var, state), rtol=1e-9)
    for ours, theirs in zip(
        case.improvement.with_derivatives(case.mu, case.var), LogEI().with_derivatives(mu, var, state), strict=True
    ):
        np.testing.assert_allclose(ours.ravel(), theirs, rtol=1e-9)


@given(seeds, dimensions, draws)
def test_the_order_of_objectives_boxes_and_draws_does_not_matter(seed: int, m: int, s: int) -> None:
    case, rng = Case(seed, m, s), np.random.default_rng(seed)
    axes, order = rng.permutation(m), rng.permutation(s)
    boxes = []
    for number in order:
        mixed = rng.permutation(len(case.boxes[number]))
        boxes.append(Boxes(*(each[mixed][:, axes] for each in (case.boxes[number].lower, case.boxes[number].upper))))
    other = HypervolumeImprovement(tuple(boxes), tuple(case.targets[i] for i in axes))
    again = HypervolumeImprovement(
        tuple(boxes_above(case.fronts[number][:, axes], case.reference[axes]) for number in order), other.targets
    )
    mu, var = case.mu[order][:, axes], case.var[order][:, axes]
    expected = case.improvement.with_derivatives(case.mu, case.var)
    for log, by_mu, by_var in (other.with_derivatives(mu, var), again.with_derivatives(mu, var)):
        np.testing.assert_allclose(log, expected[0], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(by_mu, expected[1][order][:, axes], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(by_var, expected[2][order][:, axes], rtol=1e-6, atol=1e-8)


@given(seeds, dimensions, draws)
def test_many_points_at_once_are_the_same_points_one_by_one(seed: int, m: int, s: int) -> None:
    case = Case(seed, m, s, n=20, p=600)
    case.mu[:, :, ::3] -= 40.0  # some underflow
    log, by_mu, _ = case.improvement.with_derivatives(case.mu, case.var)
    np.testing.assert_allclose(case.improvement(case.mu, case.var), log, rtol=1e-8, atol=1e-8)
    for point in (0, 1, 300, 599):
        at = slice(point, point + 1)
        one, slope, _ = case.improvement.with_derivatives(case.mu[..., at], case.var[..., at])
        np.testing.assert_allclose(one, log[at], rtol=1e-10)
        np.testing.assert_allclose(slope, by_mu[..., at], rtol=1e-8, atol=1e-10)


def test_a_common_variance_is_that_of_every_draw() -> None:
    case = Case(5, 3, 3)
    common = case.var[:1]
    whole = np.broadcast_to(common, case.var.shape)
    np.testing.assert_allclose(case.improvement(case.mu, common), case.improvement(case.mu, whole), rtol=1e-13)
    pairs = zip(
        case.improvement.with_derivatives(case.mu, common),
        case.improvement.with_derivatives(case.mu, whole),
        strict=True,
    )
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-12)


# The derivatives


@given(seeds, dimensions, draws, st.sampled_from((0.0, 30.0)))
def test_derivatives_are_difference_quotients(seed: int, m: int, s: int, away: float) -> None:
    case = Case(seed, m, s)
    mu, var = case.mu - away, case.var  # 30 away, EHVI underflows for most variances
    log, by_mu, by_var = case.improvement.with_derivatives(mu, var)
    np.testing.assert_allclose(case.improvement(mu, var), log, rtol=1e-8, atol=1e-8)
    for number in range(s):
        for i in range(m):
            for at, derivative, unit in ((0, by_mu, np.sqrt(var[number, i])), (1, by_var, var[number, i])):
                step = 1e-6 * unit
                low, high = [mu.copy(), var.copy()], [mu.copy(), var.copy()]
                low[at][number, i] -= step
                high[at][number, i] += step
                ends = [case.improvement.with_derivatives(*each)[0] for each in (high, low)]
                quotient = (ends[0] - ends[1]) / 2e-6
                allowed = 1e-5 * np.abs(quotient) + 1e-8 * np.abs(log) + 1e-7
                assert np.all(np.abs(derivative[number, i] * unit - quotient) < allowed)


# Far from the front, and at the edge of what numbers can hold


@given(seeds, dimensions, draws)
def test_far_below_the_front_the_logarithm_falls_and_its_gradient_points_to_the_front(
    seed: int, m: int, s: int
) -> None:
    case = Case(seed, m, s, share=0.0, p=1)
    away = np.geomspace(10.0, 1e6, 12)
    mu = case.mu - away
    var = np.broadcast_to(case.var, mu.shape)
    log, by_mu, by_var = case.improvement.with_derivatives(mu, var)
    np.testing.assert_allclose(case.improvement(mu, var), log, rtol=1e-9)
    assert np.all(np.isfinite(log)) and np.all(np.diff(log) < 0.0)
    total = by_mu.sum(axis=0)  # of all draws: that of a draw which does not count may be 0
    assert np.all(np.isfinite(by_mu)) and np.all(total > 0.0) and np.all(np.isfinite(by_var))


@given(st.sampled_from((-1.0, 1.0)))
def test_far_from_a_target_the_gradient_points_to_it(side: float) -> None:
    boxes = boxes_above(np.array([[-0.5, 0.2], [-0.1, -0.3]]), np.array([-1.0, -1.0]))
    improvement = HypervolumeImprovement((boxes,), (2.0, None))
    off = np.geomspace(3.0, 1e6, 15)
    mu = np.stack([2.0 + side * off, np.zeros(15)])[None]
    log, by_mu, _ = improvement.with_derivatives(mu, np.full((1, 2, 15), 0.04))
    assert np.all(np.isfinite(log)) and np.all(np.diff(log) < 0.0)
    assert np.all(side * by_mu[0, 0] < 0.0)


@given(seeds, st.sampled_from((1, 2, 3, 4)), draws)
@settings(max_examples=2 * settings.default.max_examples)
def test_all_numbers_are_finite_for_extreme_moments(seed: int, m: int, s: int) -> None:
    case, rng = Case(seed, m, s, p=30), np.random.default_rng(seed)
    mu = rng.choice([0.0, 1e-300, 1e-8, 1.0, 1e8, 1e100], size=case.mu.shape) * rng.choice(
        [-1.0, 1.0], size=case.mu.shape
    )
    var = rng.choice([0.0, 1e-300, 1e-30, 1e-8, 1.0, 1e8], size=case.var.shape)
    for result in (case.improvement(mu, var), *case.improvement.with_derivatives(mu, var)):
        assert np.all(np.isfinite(result))


def test_where_every_target_is_hit_nothing_can_be_gained() -> None:
    boxes = boxes_above(np.zeros((1, 2)), np.full(2, -1.0))
    improvement = HypervolumeImprovement((boxes,), (1.0, 2.0))
    mu = np.random.default_rng(0).normal(size=(1, 2, 5))
    log, by_mu, by_var = improvement.with_derivatives(mu, np.ones_like(mu))
    assert np.all(log < -600.0) and not by_mu.any() and not by_var.any()
    np.testing.assert_array_equal(improvement(mu, np.ones_like(mu)), log)


@given(st.floats(-3.0, 2.0), st.floats(-5.0, 1.0), st.sampled_from((-1.0, 1.0)), st.floats(-2.0, 1.0))
def test_the_gain_of_a_target_is_exact_to_ten_digits_also_where_its_formula_cancels(
    log_off: float, log_c: float, side: float, log_sd: float
) -> None:
    off, sd, c = side * 10.0 ** min(log_off, log_sd + 1.8), 10.0**log_sd, 10.0**log_c
    one = HypervolumeImprovement((Boxes(np.array([[-c]]), np.array([[np.inf]])),), (0.0,))
    moments = np.full((1, 1, 1), off), np.full((1, 1, 1), sd * sd)
    log, by_mu, by_var = (float(each.squeeze()) for each in one.with_derivatives(*moments))
    with mpmath.workdps(60 + int((off / sd) ** 2 / 4.0)):
        sigma = mpmath.sqrt(mpmath.mpf(sd * sd))
        b, k = -abs(mpmath.mpf(off)) / sigma, mpmath.mpf(c) / sigma

        def bend(f: object) -> mpmath.mpf:
            return f(b + k) - 2 * f(b) + f(b - k)  # type: ignore[operator]

        gain = sigma * bend(lambda x: mpmath.npdf(x) + x * mpmath.ncdf(x))
        exact = float(mpmath.log(gain))
        exact_by_mu = -side * float(bend(mpmath.ncdf) / gain)
        exact_by_var = float(bend(mpmath.npdf) / (2 * sigma * gain))
    assert log == pytest.approx(exact, rel=1e-10, abs=1e-10)
    assert by_mu == pytest.approx(exact_by_mu, rel=1e-8, abs=1e-10 / sd)
    assert by_var == pytest.approx(exact_by_var, rel=1e-8, abs=1e-9 / sd**2)
    np.testing.assert_allclose(one(*moments), exact, rtol=1e-10, atol=1e-10)


# Random scalarisations


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_the_mean_of_the_largest_scalarisation_to_the_power_m_is_the_hypervolume(m: int) -> None:
    rng = np.random.default_rng(m)
    z, reference = rng.uniform(0.0, 2.0, size=(8, m)), np.full(m, 0.3)
    powers = [scalarised(z, reference, random_direction(m, rng)).max() ** m for _ in range(20_000)]
    constant = pi ** (m / 2.0) / (2.0**m * gamma(m / 2.0 + 1.0))
    error = constant * np.std(powers) / np.sqrt(len(powers))
    assert abs(constant * np.mean(powers) - hypervolume(z, reference)) < 5.0 * error + 1e-12


def test_a_random_direction_has_length_one_and_positive_coordinates() -> None:
    rng = np.random.default_rng(0)
    directions = np.array([random_direction(3, rng) for _ in range(2_000)])
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1.0)
    assert np.all(directions > 0.0)
    np.testing.assert_allclose(
        directions.mean(axis=0), 0.5, atol=0.03
    )  # uniform: every coordinate has mean 1/2 for m = 3


def test_a_point_below_the_reference_has_scalarisation_zero() -> None:
    z = np.array([[1.0, -1.0], [1.0, 2.0]])
    np.testing.assert_allclose(scalarised(z, np.zeros(2), np.array([0.6, 0.8])), [0.0, 1.0 / 0.6])
