"""What the constants of the library are there for: each test fails when the constants it names have wrong values.

`guards` lists the constants, by their full names, and wrong values. `make mutants` changes each constant to each of
them and checks that the test then fails. So no test here reads a constant: it states what a user or a caller would
miss. The limits in the tests leave room on both sides, because they are about behaviour and not about the value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import gpmi
from gpmi import GPMI, Int, Optimizer, Posterior, Trial, kernels
from gpmi.gp.linalg import Factor, NotPositiveDefinite
from gpmi.gp.paths import Draw, Frame
from gpmi.gp.tracking import Tracked, chunks, first_best
from gpmi.ledger.calibration import judge
from gpmi.ledger.maxima import draw_maxima
from gpmi.policies import State
from gpmi.policies.promises import Promises, account
from gpmi.space import Space

Array = NDArray[np.float64]


class Guard(NamedTuple):
    """A test, a constant that it guards, and values of the constant with which it must fail."""

    test: str
    constant: str
    wrong: tuple[Any, ...]


GUARDS: list[Guard] = []


def guards(constant: str, *wrong: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The test fails if the constant has one of the wrong values, which are Python literals."""

    def noted(test: Callable[..., None]) -> Callable[..., None]:
        GUARDS.append(Guard(test.__name__, constant, wrong))
        return test

    return noted


def test_at_least_sixteen_constants_are_guarded_and_every_wrong_value_is_another_one() -> None:
    assert len({guard.constant for guard in GUARDS}) >= 16
    for guard in GUARDS:
        module, _, name = guard.constant.rpartition(".")
        assert guard.wrong and getattr(import_module(module), name) not in guard.wrong, guard
        assert callable(globals()[guard.test])


# gp: factors and moments


@guards("gpmi.gp.linalg.FLOOR", 0.0, 1e-13, 1e-11, 1e-6)
def test_a_pivot_that_has_a_correct_digit_is_kept_and_one_that_rounding_has_spoiled_is_lifted() -> None:
    def jitter(pivot: float) -> float:
        factor, _ = Factor.empty().append(np.empty(0), 1.0)
        return factor.append(np.array([np.sqrt(1.0 - pivot)]), 1.0)[1]

    assert jitter(4e-12) == 0.0
    assert jitter(3e-13) > 1e-13
    once = Posterior.prior(kernels.RBF(0.3), 0.0).condition(np.array([[0.2], [0.6]]), np.array([1.0, -1.0]))
    twice = once.condition(np.array([0.2]), 1.0)  # the same exact value again: C is singular
    np.testing.assert_allclose(twice(np.array([[0.2], [0.4]])), once(np.array([[0.2], [0.4]])), atol=1e-6)
    assert [event.kind for event in twice.events] == ["jitter"]


@guards("gpmi.gp.linalg.REFUSE", 0.0, 1e-7, 1e-5, 1.0)
def test_a_slightly_negative_pivot_is_repaired_and_a_clearly_negative_one_is_refused() -> None:
    factor, _ = Factor.empty().append(np.empty(0), 1.0)
    assert factor.append(np.array([1.0 + 1.5e-7]), 1.0)[1] > 0.0  # a pivot of -3e-7
    with pytest.raises(NotPositiveDefinite, match="not a covariance function"):
        factor.append(np.array([1.0 + 1.5e-6]), 1.0)


@guards("gpmi.gp.tracking.TIE", 0.0, 1e-11, 1e-9, 1e-3)
def test_scores_that_differ_by_rounding_are_a_tie_and_others_are_not() -> None:
    assert first_best(np.array([0.0, 1.0, 1.0 + 5e-11])) == 1
    assert first_best(np.array([0.0, 1.0, 1.0 + 4e-10])) == 2


@guards("gpmi.gp.tracking.TRACKED_BYTES", 0, 2**28, 2**34)
def test_moments_are_tracked_as_long_as_that_takes_about_two_gigabytes() -> None:
    assert Tracked.fits(200, 10**6)
    assert not Tracked.fits(400, 10**6)


@guards("gpmi.gp.tracking._CHUNK_VALUES", 2**19, 2**25)
def test_kernel_values_are_computed_in_few_pieces_of_moderate_size() -> None:
    sizes = [part.stop - part.start for part in chunks(10**6, 1000)]
    assert sum(sizes) == 10**6
    assert len(sizes) < 500
    assert 8 * 1000 * max(sizes) < 1e8  # bytes


# gp and ledger: draws of f


@guards("gpmi.gp.paths._OPEN", 0.0, 0.003, 0.3, 10.0)
def test_a_frame_leaves_f_open_where_it_stays_uncertain_between_the_points() -> None:
    prior = Posterior.prior(kernels.RBF(1.0), 0.0)
    ends, middle = np.array([[0.0], [1.0]]), np.array([[0.5]])

    def unknown(width: float) -> float:
        return float(np.sqrt(prior.condition(width * ends, np.zeros(2))(width * middle)[1][0]))

    assert 0.05 < unknown(0.9) < 0.15
    assert Frame.of(prior, 0.9 * ends).leaves_open(0.9 * middle)
    assert 0.005 < unknown(0.25) < 0.015
    assert not Frame.of(prior, 0.25 * ends).leaves_open(0.25 * middle)


@guards("gpmi.gp.paths.FEATURES", 1, 51)
def test_the_random_features_of_a_path_have_the_covariance_of_the_kernel() -> None:
    kernel = kernels.Matern(nu=2.5, lengthscale=0.3)
    rng = np.random.default_rng(0)
    z = rng.random((60, 2))
    errors = []
    for _ in range(4):
        features = Frame.of(Posterior.prior(kernel, 1e-4), z[:1]).paths(1, rng, rough=True).features
        assert features is not None
        phi, _ = features(z)
        errors.append(phi @ phi.T - kernel(z, z))
    assert np.sqrt(np.mean(np.square(errors))) < 0.04


def spread_of_equal_points(values: Array) -> float:
    """The root mean square of the differences of two rows."""
    return float(np.sqrt(np.mean((values[0] - values[1]) ** 2)))


@guards("gpmi.gp.paths._BLUR", 1e-4, 1e-3)
@guards("gpmi.gp.paths._BLUR_VAR", 1e-8, 1e-6)
def test_two_values_of_one_draw_at_the_same_point_differ_by_much_less_than_a_regret_that_counts() -> None:
    posterior, z = Posterior.prior(kernels.RBF(0.3), 1e-4), np.array([[0.4], [0.4]])
    paths = Frame.of(posterior, z).paths(500, np.random.default_rng(0), rough=False)
    assert spread_of_equal_points(paths.values) < 5e-5
    draws = [Draw(posterior, np.random.default_rng(seed))(z) for seed in range(100)]
    assert spread_of_equal_points(np.array(draws).T) < 5e-5


@guards("gpmi.ledger.maxima.REACH", 0.5, 50.0)
def test_max_f_is_drawn_at_all_candidates_that_may_hold_the_maximum_and_at_no_others() -> None:
    """200 points of mean 0 and sd 1 against one that is known to be 2, and one known to be 20 of its sd below that."""
    x = np.linspace(0.0, 1000.0, 202)[:, None]
    posterior = Posterior.prior(kernels.RBF(0.1), 1e-4).condition(x[[0, -1]], np.array([2.0, 1.8]))
    drawn = draw_maxima(posterior, Space.of(x), x[:1], 400, np.random.default_rng(0))
    assert np.median(drawn.best - drawn.at[:, 0]) > 0.5
    assert "the 201 candidates" in drawn.how


class Rough(NamedTuple):
    """A posterior on a cube that 512 points do not resolve."""

    posterior: Posterior
    space: Space
    at: Array


def rough_function() -> Rough:
    x = np.random.default_rng(0).random((10, 2))
    posterior = Posterior.prior(kernels.RBF(0.025), 1e-4).condition(x, np.zeros(10))
    return Rough(posterior, Space.of([(0.0, 1.0)] * 2), x[:1])


@guards("gpmi.gp.paths._OPEN", 10.0)
@guards("gpmi.ledger.maxima._GROUPS", 1)
@guards("gpmi.ledger.maxima._STARTS", 0)
def test_the_regret_of_a_rough_function_is_not_smaller_than_on_a_finer_set_of_points() -> None:
    posterior, space, at = rough_function()
    drawn = draw_maxima(posterior, space, at, 256, np.random.default_rng(1))
    assert "random features" in drawn.how
    side = np.linspace(0.0, 1.0, 40)
    fine = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    finer = posterior.sample(fine, np.random.default_rng(2), 1000).max(axis=1)
    assert np.median(drawn.best) > np.median(finer) - 0.07


@guards("gpmi.ledger.maxima._ROUNDS", 0, 1)
def test_where_f_is_known_the_draws_of_its_maximum_are_its_maximum() -> None:
    x = np.linspace(0.0, 1.0, 12)[:, None]
    posterior = Posterior.prior(kernels.RBF(0.3), 1e-8).condition(x, np.sin(7.0 * x[:, 0]))
    drawn = draw_maxima(posterior, Space.of([(0.0, 1.0)]), x[:1], 64, np.random.default_rng(0))
    top = posterior.mu(np.linspace(0.0, 1.0, 20_001)[:, None]).max()
    assert abs(np.median(drawn.best) - top) < 2e-4


# ledger: the account


def told(x: Any, y: float, number: int, **said: Any) -> Trial:
    return Trial(number, x, y, "told", "policy", number, **said)


def replayed(space: Any, queries: list[tuple[Any, float]], *, said: list[float] | None = None, **arguments: Any) -> Any:
    """The ledger after these queries of a policy; `said` are their surprises."""
    surprises = [0.0] * len(queries) if said is None else said
    trials = [told(x, y, i, surprise=z) for i, ((x, y), z) in enumerate(zip(queries, surprises, strict=True))]
    return Optimizer(space, GPMI(), seed=0, **arguments).replay(trials).ledger


TWO = np.array([[0.0], [100.0]])  # far apart: what is known of one says nothing of the other
GIVEN = {"kernel": kernels.RBF(1.0), "noise_var": 1e-4}


def lock_in_at(value: float, count: int, surprises: list[float] | None = None) -> Any:
    """The alarm after `count` queries at the first of two points, of which the other is N(0, 1)."""
    return replayed(TWO, [(TWO[0], value)] * count, said=surprises, **GIVEN).lock_in


@guards("gpmi.ledger.account.REPEATS", 1, 9, 11, 100)
def test_a_run_is_locked_in_when_it_asks_for_the_tenth_time_at_one_place() -> None:
    assert lock_in_at(0.1, 9) is None
    alarm = lock_in_at(0.1, 10)
    assert alarm is not None and alarm.since == 1


@guards("gpmi.ledger.account.SAME", 0.0, 1e-4, 1e-2)
def test_queries_within_a_thousandth_of_the_space_are_at_one_place() -> None:
    def queries(width: float) -> list[tuple[Any, float]]:
        return [(np.array([5.0 + 10.0 * width * (i % 2)]), 0.1) for i in range(12)]

    prior = {"kernel": kernels.RBF(0.3), "noise_var": 1e-2}
    assert replayed([(0.0, 10.0)], queries(5e-4), **prior).lock_in is not None
    assert replayed([(0.0, 10.0)], queries(4e-3), **prior).lock_in is None


@guards("gpmi.ledger.account.MISSED", 0.0, 0.025, 0.5, 1.0)
def test_a_repetition_is_a_lock_in_if_more_may_be_had_with_a_probability_of_a_quarter() -> None:
    assert stats.norm.sf(0.4) == pytest.approx(0.34, abs=0.01)
    alarm = lock_in_at(0.4, 12)
    assert alarm is not None and 0.27 < alarm.probability < 0.41
    assert stats.norm.sf(1.0) == pytest.approx(0.16, abs=0.01)
    assert lock_in_at(1.0, 12) is None


@guards("gpmi.ledger.account.CERTAIN", 0.0, 2e-4, 0.02, 0.2)
def test_a_repetition_is_a_lock_in_if_the_model_is_over_confident_beyond_doubt() -> None:
    """The alarm is looked at after every query, so that it needs a clearer case than the verdict of the calibration."""

    def surprises(p: float) -> list[float]:
        return [float(np.sqrt(stats.chi2.isf(p, 30) / 30))] * 30  # residuals of which the chi-square test has this p

    assert lock_in_at(3.0, 30) is None
    assert lock_in_at(3.0, 30, surprises(2e-3)) is None
    assert judge(np.array(surprises(2e-3)))[0] == "over-confident"
    alarm = lock_in_at(3.0, 30, surprises(1e-4))
    assert alarm is not None and "over-confident" in alarm.reason


@guards("gpmi.ledger.account.RESOLVED", 0.0, 1e-5, 1e-3, 0.1)
def test_without_noise_a_regret_counts_if_it_is_more_than_the_error_of_the_draws() -> None:
    x = np.linspace(0.0, 1.0, 12)[:, None]
    prior = {"kernel": kernels.RBF(0.3, variance=4.0), "noise_var": 1e-14}
    ledger = replayed([(0.0, 1.0)], [(row, float(np.sin(7.0 * row[0]))) for row in x], **prior)
    assert ledger.is_below(ledger.floor)  # so that a run without noise ends when f is known
    assert ledger.floor < 5e-4 * 2.0


@guards("gpmi.ledger.calibration.ERROR", 0.0, 0.005, 0.5)
def test_a_model_that_is_right_is_blamed_in_about_one_case_of_twenty() -> None:
    z = np.random.default_rng(0).standard_normal((3000, 25))
    blamed = np.mean([judge(row)[0] != "fine" for row in z])
    assert 0.02 < blamed < 0.07


@guards("gpmi.ledger.calibration.ENOUGH", 1, 7, 140)
def test_a_model_is_called_fine_when_an_sd_wrong_by_a_factor_of_two_would_have_been_found() -> None:
    ordinary = np.array([0.3, -0.8, 1.2, -1.6] * 50)
    first = next(n for n in range(4, 200) if judge(ordinary[:n])[0] == "fine")
    z = np.random.default_rng(0).standard_normal((1000, first))
    found = [np.mean([judge(factor * row)[0] == verdict for row in z]) for factor, verdict in WRONG_BY_TWO]
    assert 0.75 < min(found) < 0.95


WRONG_BY_TWO = ((2.0, "over-confident"), (0.5, "under-confident"))


# policies


@guards("gpmi.policies.reinvest.TRUST", 0.0, 0.025, 2.5)
def test_one_broken_promise_lowers_exploration_and_three_end_it() -> None:
    policy = gpmi.Reinvest()
    shares = [policy.share(State(promises=Promises(made, 0.0))) for made in (0.0, 1.0, 3.0)]
    assert shares[0] == 1.0
    assert 2.0 * policy.floor > shares[1] > 1.5 * policy.floor or shares[1] == pytest.approx(2.0 * policy.floor)
    assert shares[2] == policy.floor


def promises_of_last(z: float, gain: float) -> Promises:
    """The account of one query whose mean was z sd from the best mean, and that raised it by `gain` sd.

    Its sd is 1, and the noise so small that the value told is the posterior mean.
    """
    mu, var, pivot = np.array([0.0, z]), np.array([1.0, 1.0]), np.ones(2)
    return account(mu, var, pivot, np.array([0.0, gain - z]), np.array([False, True]))


@guards("gpmi.policies.promises.HOPELESS", -50.0, -0.5, 0.0)
def test_a_query_from_which_nothing_was_to_be_expected_is_not_counted() -> None:
    assert promises_of_last(-7.0, 1.0) == Promises()
    assert promises_of_last(-3.0, 1.0).kept > 0.0


@guards("gpmi.policies.promises.SURE", 0.0, 0.5, 50.0)
def test_a_gain_that_is_certain_does_not_outweigh_all_others() -> None:
    certain, likely = promises_of_last(1000.0, 1000.0), promises_of_last(3.0, 3.0)
    assert 20.0 < certain.made < 30.0
    assert certain.kept == pytest.approx(certain.made, rel=0.1)
    assert likely.made > 5.0


# space


@guards("gpmi.space.space.ENUMERATED", 0, 2_000, 200_000)
def test_a_discrete_space_of_ten_thousand_points_is_searched_point_by_point_and_one_of_a_hundred_thousand_is_not() -> (
    None
):
    small = Space.of({"a": Int(1, 100), "b": Int(1, 100)}).rows
    assert small is not None and len(small) == 10_000
    assert Space.of({"a": Int(1, 100), "b": Int(1, 1000)}).rows is None


@guards("gpmi.space.parameters._MOST_LEVELS", 10**6, 10**8)
def test_a_whole_number_may_have_millions_of_values_but_not_so_many_that_they_fill_the_memory() -> None:
    assert Int(1, 4 * 10**6).levels.nbytes < 5e7
    with pytest.raises(ValueError, match="too many"):
        Int(1, 3 * 10**7)


@guards("gpmi.space.parameters.LARGEST", 2**50, 2**56)
@guards("gpmi.space.parameters._LARGEST_LOG", 10**11, 10**17)
def test_every_whole_number_that_is_allowed_has_coordinates_of_its_own() -> None:
    for log, largest in ((False, 2**52), (True, 5 * 10**11)):
        numbers = Int(largest - 3, largest, log=log)
        assert len({numbers.encode("x", n) for n in range(largest - 3, largest + 1)}) == 4
    for log, too_large in ((False, 2**54), (True, 10**16)):
        with pytest.raises(ValueError, match="too large"):
            Int(too_large - 2, too_large, log=log)
