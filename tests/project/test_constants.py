"""What the constants of the library are there for: each test fails when the constants it names have wrong values.

`guards` lists the constants, by their full names, and wrong values. `make mutants` changes each constant to each of
them and checks that the test then fails. So no test here reads a constant: it states what a user or a caller would
miss. The limits in the tests leave room on both sides, because they are about behaviour and not about the value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from sample_ledgers import SampleLedger
from scipy import stats

import gpmi
from gpmi import GPMI, Int, LogEI, Optimizer, Posterior, Trial, kernels
from gpmi._support.types import Observations
from gpmi.analysis.ledger import untaken_chance, warning_events
from gpmi.analysis.ledger.calibration import judge
from gpmi.analysis.ledger.front_ledger import FrontLedger
from gpmi.analysis.ledger.gain import Gain
from gpmi.analysis.ledger.maxima import draw_maxima
from gpmi.analysis.ledger.options import OptionSummary
from gpmi.analysis.misfit import Misfit, misfit
from gpmi.gp.approximate.success import Requirement, SuccessProbability
from gpmi.gp.lazy_search import RoundingError, contenders
from gpmi.gp.linalg import Factor, NotPositiveDefinite
from gpmi.gp.paths import Draw, PathSampler
from gpmi.gp.tracking import Tracked, chunks, first_best
from gpmi.model.fitting.classifier_prior import fit_classifier
from gpmi.model.fitting.criterion import FitSetting
from gpmi.model.fitting.descent import DescentPoint
from gpmi.model.fitting.fit import fit
from gpmi.model.fitting.noise_fit import fit_noise
from gpmi.model.fitting.schedule import PriorSchedule
from gpmi.model.fitting.slice_sampling import sample
from gpmi.model.fitting.unknowns import DEFAULT
from gpmi.model.fitting.warp import Warp
from gpmi.model.fitting.warp_selection import choose_warp
from gpmi.model.model import ModelSetting, objective
from gpmi.model.orientation import Orientation
from gpmi.model.outputs import is_exact
from gpmi.optimizer.contexts import share_of_gain
from gpmi.optimizer.escape import is_escape_due, is_small, last_wasted, taught_nothing
from gpmi.optimizer.exclusions import around_rejected
from gpmi.optimizer.supports import promising_point
from gpmi.policies import Mean, State
from gpmi.policies.guard import Account
from gpmi.policies.promises import Promises, account
from gpmi.policies.risk import risk_of
from gpmi.search.climb import climb
from gpmi.search.drawn_point import drawn_point
from gpmi.search.multistart import best_point
from gpmi.search.neighbours import best_observed
from gpmi.search.objective import Objective
from gpmi.search.screen import farthest, screen_of
from gpmi.search.screened_search import ScreenedSearch
from gpmi.space import Parameters, Space

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


@guards("gpmi.analysis.misfit.MISFIT", 3.0, 1e3)
@guards("gpmi.analysis.misfit.LIKELIER", 0.0, 1e3)
@guards("gpmi.analysis.misfit.FITS", 0.1)
@guards("gpmi.analysis.misfit.FEWEST", 0, 99)
def test_a_value_far_from_the_others_is_doubtful_and_a_nearer_one_if_its_decimal_point_slipped() -> None:
    space, rng = Space.of([(0.0, 1.0)]), np.random.default_rng(1)
    priors = PriorSchedule(None, None, "map", span=space.span, groups=space.groups, seed=1)
    setting, x = ModelSetting(space, priors, 1), rng.random((16, 1))

    def judged(y: float, sd: float, n: int = 15) -> Misfit | None:
        values = Observations.of(x[:n], 10.0 + sd * rng.standard_normal(n))
        return misfit(setting, values, Observations.of(x[15:], np.array([y])))

    def doubtful(y: float, sd: float) -> bool:
        judgement = judged(y, sd)
        return judgement is not None and judgement.is_doubtful

    assert doubtful(30.0, 1.0) and not doubtful(15.0, 1.0)  # 20 and 5 sd away; neither is a tenth of anything
    assert doubtful(1.0, 1.5)  # 6 sd away, and 10 is in the middle
    assert not doubtful(1.65, 1.5)  # nearly 6 sd away, and 16.5 is more than 4 away
    assert not doubtful(2.2, 2.5)  # 3 sd away, and 22 is 5 away
    assert not doubtful(1.5, 3.0)  # neither is far
    assert not doubtful(9.0, 1.0)
    assert judged(30.0, 1.0, 3) is None and judged(30.0, 1.0, 8) is not None


@guards("gpmi.gp.tracking.TIE", 0.0, 1e3, 1e6)
def test_scores_that_differ_in_the_last_digits_are_a_tie_and_others_are_not() -> None:
    assert first_best(np.array([-1e299, 1.0, 1.0 + 4e-16])) == 1
    assert first_best(np.array([-1e299, 1.0, 1.0 + 1e-14])) == 2


@guards("gpmi.gp.lazy_search.CLOSE", 0.0, 1e-3)
def test_points_with_scores_close_to_the_best_are_compared_again() -> None:
    x = np.linspace(0.0, 1.0, 4)[:, None]
    blur = RoundingError.of(Posterior.prior(kernels.RBF(0.5), 0.1).condition(x[:1], np.array([1.0])), x)
    mu, var = np.array([0.0, 1.0, 1.0 - 1e-12, 1.0 - 1e-5]), np.ones(4)
    assert contenders(lambda mu, var: mu, mu, var, blur, None, True).tolist() == [1, 2]


@guards("gpmi.gp.linalg.NUGGET", 1e-6, 1e-4)
def test_exact_observations_of_a_smooth_function_keep_their_digits() -> None:
    x = np.linspace(0.0, 1.0, 40)[:, None]
    posterior = Posterior.prior(kernels.RBF(0.5), 0.0)
    for s in range(40):
        posterior = posterior.condition(x[s], np.sin(5.0 * x[s]))
    z = np.linspace(0.01, 0.99, 9)[:, None]
    np.testing.assert_allclose(posterior.mu(z), np.sin(5.0 * z[:, 0]), atol=3e-5)
    assert posterior.nugget > 0.0


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
    assert PathSampler.of(prior, 0.9 * ends).is_uncertain_at(0.9 * middle)
    assert 0.005 < unknown(0.25) < 0.015
    assert not PathSampler.of(prior, 0.25 * ends).is_uncertain_at(0.25 * middle)


@guards("gpmi.gp.paths.FEATURES", 1, 51)
def test_the_random_features_of_a_path_have_the_covariance_of_the_kernel() -> None:
    kernel = kernels.Matern(nu=2.5, lengthscale=0.3)
    rng = np.random.default_rng(0)
    z = rng.random((60, 2))
    errors = []
    for _ in range(4):
        features = PathSampler.of(Posterior.prior(kernel, 1e-4), z[:1]).paths(1, rng, rough=True).features
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
    paths = PathSampler.of(posterior, z).paths(500, np.random.default_rng(0), rough=False)
    assert spread_of_equal_points(paths.values) < 5e-5
    draws = [Draw(posterior, np.random.default_rng(seed))(z) for seed in range(100)]
    assert spread_of_equal_points(np.array(draws).T) < 5e-5


@guards("gpmi.analysis.ledger.maxima.REACH", 0.5, 50.0)
def test_max_f_is_drawn_at_all_candidates_that_may_hold_the_maximum_and_at_no_others() -> None:
    """200 points of mean 0 and sd 1 against one that is known to be 2, and one known to be 20 of its sd below that."""
    x = np.linspace(0.0, 1000.0, 202)[:, None]
    posterior = Posterior.prior(kernels.RBF(0.1), 1e-4).condition(x[[0, -1]], np.array([2.0, 1.8]))
    drawn = draw_maxima(posterior, Space.of(x), x[:1], 400, np.random.default_rng(0))
    assert np.median(drawn.best - drawn.at[:, 0]) > 0.5
    assert "the 201 candidates" in drawn.how


def grid(side: int) -> Array:
    """Points of the unit square."""
    coordinates = np.linspace(0.0, 1.0, side)
    return np.stack(np.meshgrid(coordinates, coordinates), -1).reshape(-1, 2)


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
@guards("gpmi.analysis.ledger.maxima._STARTS", 0)
def test_the_regret_of_a_rough_function_is_not_smaller_than_on_a_finer_set_of_points() -> None:
    posterior, space, at = rough_function()
    drawn = draw_maxima(posterior, space, at, 256, np.random.default_rng(1))
    finer = posterior.sample(grid(40), np.random.default_rng(2), 1000).max(axis=1)
    assert np.median(drawn.best) > np.median(finer) - 0.07  # without features or climbs it is 0.16 below, or more


@guards("gpmi.analysis.ledger.maxima._ROUNDS", 0, 1)
def test_where_f_is_known_the_draws_of_its_maximum_are_its_maximum() -> None:
    """f is a narrow ridge across the axes, on which short climbs end 4e-4 below the maximum."""
    x = grid(9)
    y = -30.0 * (x[:, 0] - x[:, 1] + 0.05) ** 2 - (x.sum(axis=1) - 0.93) ** 2
    posterior = Posterior.prior(kernels.RBF(0.5), 1e-8).condition(x, y)
    drawn = draw_maxima(posterior, Space.of([(0.0, 1.0)] * 2), x[:1], 64, np.random.default_rng(0))
    assert abs(np.median(drawn.best) - posterior.mu(grid(201)).max()) < 1e-4


def spread_of_probabilities(space: Any, x: Array) -> float:
    """The sd, over runs that differ in their seeds alone, of an estimated probability of 0.5."""
    draws = []
    for seed in range(16):
        opt = Optimizer(space, GPMI(), seed=seed, kernel=kernels.RBF(0.1), noise_var=1e-2)
        for row in x:
            opt.tell(row, float(np.sin(9.0 * row[0])))
        draws.append(opt.ledger.regret().simple)
    median = np.median(np.concatenate(draws))
    return float(np.std([np.mean(draw <= median) for draw in draws]))


@guards("gpmi.analysis.ledger.regret.DRAWS", 5, 51)
def test_on_a_finite_set_a_probability_is_estimated_to_a_few_percent() -> None:
    space = np.linspace(0.0, 1.0, 61)[:, None]
    assert spread_of_probabilities(space, space[::12]) < 0.04


@guards("gpmi.analysis.ledger.regret.PATHS", 5, 25)
def test_on_a_box_a_probability_is_estimated_to_a_few_percent() -> None:
    assert spread_of_probabilities([(0.0, 1.0)], np.linspace(0.0, 1.0, 6)[:, None]) < 0.06


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


@guards("gpmi.analysis.ledger.ledger.REPEATS", 1, 9, 11, 100)
def test_a_run_is_locked_in_when_it_asks_for_the_tenth_time_at_one_place() -> None:
    assert lock_in_at(0.1, 9) is None
    alarm = lock_in_at(0.1, 10)
    assert alarm is not None and alarm.since == 1


@guards("gpmi.analysis.ledger.run_warnings.DOUBTED", 10, 30)
@guards("gpmi.analysis.ledger.run_warnings.NATS", -8.0, 20.0)
@guards("gpmi.model.fitting.undetected_noise.LITTLE", 1e-9)
@guards("gpmi.model.fitting.undetected_noise.MUCH", 1.9)
def test_noise_is_in_doubt_where_it_explains_as_much_and_not_before_twenty_values() -> None:
    x, rng = np.random.default_rng(0).random((24, 2)), np.random.default_rng(1)
    smooth = np.sin(4.0 * x[:, 0]) + x[:, 1]
    noisy = smooth + 0.6 * rng.standard_normal(24)

    def warned(y: Array) -> bool:
        opt = Optimizer([(0.0, 1.0)] * 2, seed=0)
        opt.tell_all(list(zip(x, y, strict=False)))
        return bool(warning_events(opt.ledger))

    assert warned(noisy) and not warned(noisy[:18]) and not warned(np.sin(8.0 * x[:, 0]) + np.cos(8.0 * x[:, 1]))


@guards("gpmi.analysis.ledger.run_warnings.UNTAKEN", 0.0, 0.02, 0.5, 1.0)
def test_a_chance_was_not_taken_if_more_may_be_had_with_a_probability_of_a_fifth() -> None:
    def event(value: float) -> Any:
        return untaken_chance(replayed(TWO, [(TWO[0], value)] * 5, **GIVEN))

    assert stats.norm.sf(0.4) == pytest.approx(0.34, abs=0.01) and event(0.4).kind == "chance not taken"
    assert stats.norm.sf(1.5) == pytest.approx(0.07, abs=0.01) and event(1.5) is None


@guards("gpmi.analysis.ledger.facts.CLOSE", 0.0, 0.03, 0.3)
@guards("gpmi.analysis.ledger.facts.UNLIKELY", 0.0, 0.02, 0.1)
@guards("gpmi.analysis.ledger.facts.TRIED", 1, 3, 12)
def test_one_may_stop_if_more_gain_and_a_better_point_are_unlikely_and_every_option_was_tried() -> None:
    def answer(gain: float, missed: float = 0.0, tried: int | None = None) -> str:
        return SampleLedger(gain, missed=missed, tried=tried).can_stop.answer

    assert (answer(0.04), answer(0.07)) == ("yes", "not yet")
    assert (answer(0.01, missed=0.07), answer(0.01, missed=0.15)) == ("yes", "cannot tell")
    assert (answer(0.01, tried=8), answer(0.01, tried=4)) == ("yes", "cannot tell")


@guards("gpmi.analysis.ledger.gain.DAMPED", 0.3, 1.0)
@guards("gpmi.analysis.ledger.gain.POWER", 0.4, 1.5)
def test_under_noise_seven_of_ten_certain_gains_come_true() -> None:
    def chance(share: float) -> float:
        return Gain(10, np.arange(1000) < 1000.0 * share, is_damped=True).probability_above(0.5)

    assert chance(1.0) == pytest.approx(0.7, abs=0.1)
    assert chance(0.1) == pytest.approx(0.11, abs=0.03)


@guards("gpmi.analysis.ledger.ledger.NEAR", 0.0, 1.0)
def test_a_better_point_counts_from_a_quarter_of_the_noise() -> None:
    """Of two points one is known and the other is N(0, 1), and so is the noise."""
    ledger = replayed(TWO, [(TWO[0], 0.0)] * 20, kernel=kernels.RBF(1.0), noise_var=1.0)
    assert stats.norm.sf(0.25) == pytest.approx(0.40, abs=0.01)
    assert 0.35 < ledger.caveat().chance < 0.45


@guards("gpmi.analysis.ledger.options.FORGOTTEN", 5, 100)
@guards("gpmi.analysis.ledger.options.LIKELY", 0.0, 0.5)
def test_an_option_that_may_hold_the_best_is_forgotten_after_twenty_values() -> None:
    def is_forgotten(chance: float, idle: int) -> bool:
        return OptionSummary("solvent", "DMF", 6, idle, chance=chance).is_forgotten

    assert is_forgotten(0.2, 30) and not is_forgotten(0.2, 10) and not is_forgotten(0.05, 30)


@guards("gpmi.analysis.ledger.ledger.SAME", 0.0, 1e-4, 1e-2)
def test_queries_within_a_thousandth_of_the_space_are_at_one_place() -> None:
    def queries(width: float) -> list[tuple[Any, float]]:
        return [(np.array([5.0 + 10.0 * width * (i % 2)]), 0.1) for i in range(12)]

    prior = {"kernel": kernels.RBF(0.3), "noise_var": 1e-2}
    assert replayed([(0.0, 10.0)], queries(5e-4), **prior).lock_in is not None
    assert replayed([(0.0, 10.0)], queries(4e-3), **prior).lock_in is None


@guards("gpmi.analysis.ledger.ledger.MISSED", 0.0, 0.025, 0.5, 1.0)
def test_a_repetition_is_a_lock_in_if_more_may_be_had_with_a_probability_of_a_quarter() -> None:
    assert stats.norm.sf(0.4) == pytest.approx(0.34, abs=0.01)
    alarm = lock_in_at(0.4, 12)
    assert alarm is not None and 0.27 < alarm.probability < 0.41
    assert stats.norm.sf(1.0) == pytest.approx(0.16, abs=0.01)
    assert lock_in_at(1.0, 12) is None


@guards("gpmi.analysis.ledger.ledger.CERTAIN", 0.0, 2e-4, 0.02, 0.2)
def test_a_repetition_is_a_lock_in_if_the_model_is_over_confident_beyond_doubt() -> None:
    """The alarm is looked at after every query, so that it needs a clearer case than the verdict of the calibration."""

    def surprises(p: float) -> list[float]:
        return [float(np.sqrt(stats.chi2.isf(p, 30) / 30))] * 30  # residuals of which the chi-square test has this p

    assert lock_in_at(3.0, 30) is None
    assert lock_in_at(3.0, 30, surprises(2e-3)) is None
    assert judge(np.array(surprises(2e-3)))[0] == "over-confident"
    alarm = lock_in_at(3.0, 30, surprises(1e-4))
    assert alarm is not None and "over-confident" in alarm.reason


@guards("gpmi.analysis.ledger.ledger.RESOLVED", 0.0, 1e-5, 1e-3, 0.1)
def test_without_noise_a_regret_counts_if_it_is_more_than_the_error_of_the_draws() -> None:
    x = np.linspace(0.0, 1.0, 12)[:, None]
    prior = {"kernel": kernels.RBF(0.3, variance=4.0), "noise_var": 1e-14}
    ledger = replayed([(0.0, 1.0)], [(row, float(np.sin(7.0 * row[0]))) for row in x], **prior)
    assert ledger.is_below(ledger.floor)  # so that a run without noise ends when f is known
    assert ledger.floor < 5e-4 * 2.0


@guards("gpmi.analysis.ledger.calibration.ERROR", 0.0, 0.005, 0.5)
def test_a_model_that_is_right_is_blamed_in_about_one_case_of_twenty() -> None:
    z = np.random.default_rng(0).standard_normal((3000, 25))
    blamed = np.mean([judge(row)[0] != "fine" for row in z])
    assert 0.02 < blamed < 0.07


@guards("gpmi.analysis.ledger.calibration.ENOUGH", 1, 7, 140)
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
    none, one, three = (policy.share(State(promises=Promises(made, 0.0))) for made in (0.0, 1.0, 3.0))
    assert none == 1.0
    assert 0.15 < one < 0.5
    assert three == policy.floor


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


@guards("gpmi.policies.promises.CERTAIN", 0.0, 0.5, 50.0)
def test_a_gain_that_is_certain_does_not_outweigh_all_others() -> None:
    certain, likely = promises_of_last(1000.0, 1000.0), promises_of_last(3.0, 3.0)
    assert 20.0 < certain.promised < 30.0
    assert certain.kept == pytest.approx(certain.promised, rel=0.1)
    assert likely.promised > 5.0


@guards("gpmi.policies.normal.LARGEST_Z", 3.0, 1e160)
def test_log_ei_is_finite_and_right_however_far_below_the_incumbent_a_point_is() -> None:
    near, far = gpmi.LogEI().score(np.array([-20.0, -1e200]), np.ones(2), State())
    assert near == pytest.approx(stats.norm.logpdf(20.0) - 2.0 * np.log(20.0), abs=0.02)
    assert np.isfinite(far)


# search


def two_peaks() -> tuple[Objective, Array]:
    """A score with a broad peak of 0.93 and, a third of the box away, a narrow one of 1.5; the two tops."""
    tops = np.array([[0.25, 0.5], [0.25 + 0.3 * np.sqrt(2.0), 0.5]])
    around = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1], [2, 0], [-2, 0], [0, 2], [0, -2]])
    x = np.concatenate([grid(8), tops[1] + 0.03 * around])
    square = ((x[:, None] - tops) ** 2).sum(axis=2)
    y = np.exp(-0.5 * square[:, 0] / 0.2**2) + 1.4 * np.exp(-0.5 * square[:, 1] / 0.03**2)
    posterior = Posterior.prior(kernels.RBF(0.2) + kernels.RBF(0.03), 1e-6).condition(x, y)
    return Objective(posterior, Mean(), State()), tops


SQUARE = Parameters.box([(0.0, 1.0)] * 2)
NOTHING = np.empty((0, 2))  # no good point is known


@guards("gpmi.search.multistart.STARTS", 1)
@guards("gpmi.search.multistart.APART", 0.0, 0.005, 0.5)
@guards("gpmi.search.climb.SAME_PEAK", 1.0)
@guards("gpmi.search.climb.RADIUS", 1e-3, 0.0125)
def test_a_narrow_peak_is_climbed_although_many_points_on_a_broad_one_score_higher() -> None:
    objective, (broad, narrow) = two_peaks()
    rng = np.random.default_rng(0)
    screen = np.concatenate([broad + rng.uniform(-0.02, 0.02, (40, 2)), [narrow + np.array([0.0, 0.0365])]])
    score = objective(screen)
    assert score[-1] < np.sort(score[:-1])[-20]
    assert best_point(objective, SQUARE, screen, score, NOTHING, rng).score > 1.5


@guards("gpmi.search.screen.SCREEN", 8, 64)
def test_a_screen_sees_peaks_of_a_twentieth_of_the_box() -> None:
    objective, _ = two_peaks()
    found = 0
    for seed in range(12):
        screen = screen_of(SQUARE, seed)
        best = best_point(objective, SQUARE, screen, objective(screen), NOTHING, np.random.default_rng(seed))
        found += best.score > 1.5
    assert found >= 8


@guards("gpmi.search.multistart.TOLERANCE", 1e-3, 0.1)
def test_a_climb_of_a_score_ends_within_a_millionth_of_its_range() -> None:
    x = grid(7)
    posterior = Posterior.prior(kernels.RBF(0.5), 1e-6).condition(x, -np.square(x - 0.47).sum(axis=1))
    objective, rng = Objective(posterior, Mean(), State()), np.random.default_rng(0)
    scores = []
    for start in rng.random((12, 2)):
        screen = np.array([[1.0, 1.0], start])
        scores.append(best_point(objective, SQUARE, screen, objective(screen), NOTHING, rng).score)
    assert np.ptp(scores) < 1e-6


@guards("gpmi.search.multistart.RANGE", 1e9, 1e300)
def test_a_climb_goes_on_although_log_ei_is_minus_1e299_where_f_is_certain() -> None:
    x = grid(4)
    posterior = Posterior.prior(kernels.RBF(0.3), 0.0).condition(x, np.sin(5.0 * x[:, 0]) - x[:, 1])
    objective = Objective(posterior, gpmi.LogEI(), State(best_observed=1.0))
    screen = SQUARE.from_unit(np.random.default_rng(0).random((60, 2)))
    best = [
        best_point(objective, SQUARE, z, objective(z), NOTHING, np.random.default_rng(0)).score
        for z in (screen, np.concatenate([screen, x]))
    ]
    assert objective(x).min() < -1e290 and objective(screen).max() < best[0] - 1e-3
    assert best[1] >= best[0] - 1e-6


@guards("gpmi.search.climb.ROUNDS", 1, 6)
@guards("gpmi.search.climb.GIVE_UP", 0.0, 1e-3, 1e-2)
@guards("gpmi.search.climb.RADIUS", 0.0, 1e-3)
@guards("gpmi.search.climb.DIFFERENCE", 0.1)
def test_climbs_end_at_local_maxima_after_few_evaluations() -> None:
    rng, counted = np.random.default_rng(0), 0
    centres, weights = rng.random((12, 3)), rng.standard_normal(12)

    def f(u: Array, _: Any) -> tuple[Array, Array]:
        nonlocal counted
        counted += len(u)
        away = u[:, None] - centres
        bumps = weights * np.exp(-0.5 * (away**2).sum(axis=2) / 0.15**2)
        return bumps.sum(axis=1), -(bumps[:, :, None] * away).sum(axis=1) / 0.15**2

    ends = np.concatenate([climb(f, start, np.full(3, 0.15))[0] for start in rng.random((30, 1, 3))])
    assert counted < 1400  # 4 points a round, so that it is 12 rounds a climb
    inside = (ends > 0.0) & (ends < 1.0)
    assert np.abs(f(ends, None)[1][inside]).max() < 2e-3


@guards("gpmi.search.coordinate_ascent.MOST_LEVELS", 1, 51)
def test_every_one_of_five_hundred_levels_of_a_whole_number_is_tried() -> None:
    space = Parameters.named({"n": Int(0, 499), "x": (0.0, 1.0), "z": (0.0, 1.0)})
    x = np.array([[202.0, 0.5, 0.5], [302.0, 0.5, 0.5]])  # 202 is the only level that is better than the others
    kernel = kernels.RBF([1e4, 0.3, 0.3]) + kernels.RBF([0.1, 0.2, 0.2])
    posterior = Posterior.prior(kernel, 1e-4).condition(x, np.array([3.0, 1.0]))
    objective = Objective(posterior, Mean(), State())
    for seed in range(6):
        screen, rng = screen_of(space, seed), np.random.default_rng(seed)
        assert best_point(objective, space, screen, objective(screen), np.empty((0, 3)), rng).score > 2.5


def drawn_points(posterior: Posterior, space: Parameters, count: int) -> Array:
    """The argmax of each of `count` draws of f."""
    objective = Objective(posterior, gpmi.Thompson(), State())
    rows = []
    for seed in range(count):
        rng, normals = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
        rows.append(drawn_point(objective, space, screen_of(space, seed), best_observed(posterior), rng, normals).row)
    return np.array(rows)


@guards("gpmi.search.drawn_point.WIDTHS", (), (3e-2,))
@guards("gpmi.search.neighbours.NEIGHBOURS", 1, 6)
def test_where_f_is_known_the_maximum_of_a_draw_is_found_to_a_thousandth_of_the_box() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([np.clip(0.3 + 0.1 * rng.standard_normal((120, 2)), 0.0, 1.0), rng.random((60, 2))])
    prior = Posterior.prior(kernels.RBF(0.3, variance=4.0), 1e-6)
    rows = drawn_points(prior.condition(x, -20.0 * np.square(x - 0.31).sum(axis=1)), SQUARE, 12)
    assert np.median(np.linalg.norm(rows - 0.31, axis=1)) < 0.0018


@guards("gpmi.search.neighbours.BEST_OBSERVED", 0, 1)
def test_draws_of_f_are_maximised_around_all_of_the_best_observed_points() -> None:
    tops = np.array([[0.3] * 6, [0.7] * 6])
    posterior = Posterior.prior(kernels.RBF(0.3), 1e-2).condition(tops, np.array([8.0, 8.0]))
    rows = drawn_points(posterior, Parameters.box([(0.0, 1.0)] * 6), 16)
    near = np.abs(rows[:, None] - tops).max(axis=2) < 0.15
    assert near.any(axis=1).all()
    assert near.sum(axis=0).min() >= 3


@guards("gpmi.search.finite.JOINT", 204, 20_480)
def test_one_joint_draw_is_made_of_all_rows_up_to_what_can_be_waited_for() -> None:
    for m, kinds in ((1_200, []), (2_600, ["reduced search"])):
        opt = Optimizer(np.linspace(0.0, 1.0, m)[:, None], gpmi.Thompson(), seed=0, **GIVEN)
        opt.tell(np.array([0.0]), 1.0)
        opt.ask()
        assert [event.kind for event in opt.events] == kinds


# prior: what is learned


UNIT = FitSetting(DEFAULT, None, np.ones(2), (0, 1))
CENTRE = -1.5857864376269049  # of the logarithm of a lengthscale of one parameter: that of 0.2


def drawn_data(n: int, lengthscale: float, noise_var: float, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = rng.random((n, 2))
    f = Posterior.prior(kernels.Matern(nu=2.5, lengthscale=lengthscale), 0.0).sample(x, rng)[0]
    return x, f + np.sqrt(noise_var) * rng.standard_normal(n)


class Learned(NamedTuple):
    """A fit, the variance and the noise in units of the variance of y."""

    variance: float
    lengthscales: Array
    noise: float


def learned(x: Array, y: Array) -> Learned:
    prior = fit(UNIT, x, y)
    variance, *lengthscales = np.exp(prior.kernel.theta)
    return Learned(float(variance) / np.var(y), np.array(lengthscales), prior.noise_var / float(np.var(y)))


@guards("gpmi.model.fitting.unknowns._LOG_LENGTHSCALE", (CENTRE, 10.0), (CENTRE - 3.0, 1.0), (CENTRE + 3.0, 1.0))
@guards("gpmi.model.fitting.unknowns._LOG_VARIANCE", (-3.0, 1.0), (3.0, 1.0))
@guards("gpmi.model.fitting.unknowns.LOG_NOISE", (0.0, 3.0))
def test_five_observations_do_not_make_the_hyper_parameters_run_away() -> None:
    for seed in range(10):
        variance, lengthscales, noise = learned(*drawn_data(5, 0.5, 1e-6, seed))
        assert np.all((lengthscales > 0.07) & (lengthscales < 1.5))
        assert 0.62 < variance < 1.8
        assert noise < 1e-3


@guards("gpmi.model.fitting.unknowns._LOG_LENGTHSCALE", (CENTRE, 0.1))
@guards("gpmi.model.fitting.unknowns._LOG_VARIANCE", (0.0, 0.1))
@guards("gpmi.model.fitting.unknowns.LOG_NOISE", (-11.5, 0.3))
@guards("gpmi.model.fitting.unknowns._BOUNDS_LENGTHSCALE", (-0.53, 0.69), (-5.3, -0.7))
@guards("gpmi.model.fitting.unknowns._BOUNDS_VARIANCE", (-0.6, 0.6))
@guards("gpmi.model.fitting.unknowns.BOUNDS_NOISE", (-1.84, 0.07), (-18.4, -4.6))
@guards("gpmi.model.fitting.descent.ROUNDS", 1)
@guards("gpmi.model.fitting.descent._LONGEST", 0.02)
@guards("gpmi.model.fitting.descent._ENOUGH", 20.0)
def test_a_hundred_observations_decide_what_the_hyper_parameters_are() -> None:
    rough, smooth, noisy = (
        learned(*drawn_data(120, lengthscale, noise_var, 1))
        for lengthscale, noise_var in ((0.1, 1e-6), (1.0, 1e-6), (0.3, 0.3))
    )
    assert np.all(np.abs(np.log(rough.lengthscales / 0.1)) < 0.3)
    assert rough.noise < 1e-3
    assert np.all(smooth.lengthscales > 0.65)
    assert smooth.variance > 1.9
    assert 0.1 < noisy.noise < 0.3
    assert np.all(noisy.lengthscales > 0.2)


@guards("gpmi.model.fitting.unknowns._NOISY", -11.5, -8.0)
@guards("gpmi.model.fitting.fit._RACE_POINTS", 12)
def test_noise_is_told_from_a_rough_function() -> None:
    """Short lengthscales without noise are another local maximum, where a descent from little noise ends."""
    for seed in range(12):
        assert learned(*drawn_data(60, 0.3, 0.3, seed)).noise > 0.08


@guards("gpmi.model.fitting.covariance.EXACT", 0.0, 1e-3)
def test_exact_values_can_be_learned_from_also_where_they_repeat() -> None:
    setting = FitSetting(kernels.RBF(lengthscale=None, variance=None), 0.0, np.ones(1), (0,))
    x = np.repeat(np.linspace(0.0, 1.0, 6), 3)[:, None]
    assert fit(setting, x, np.sin(5.0 * x[:, 0])).events == ()
    x = np.random.default_rng(0).random((40, 1))
    assert fit(setting, x, np.sin(5.0 * x[:, 0])).kernel.theta[1] > np.log(0.33)  # the noise hides nothing


@guards("gpmi.model.fitting.data.FIT_POINTS", 25, 2_560)
def test_a_fit_looks_at_a_few_hundred_observations_and_says_so_when_there_are_more() -> None:
    x, y = drawn_data(400, 0.3, 0.1, 0)
    kernel = kernels.Matern(nu=2.5, lengthscale=0.3)
    assert fit_noise(x[:200], y[:200], kernel).events == ()
    assert [event.kind for event in fit_noise(x, y, kernel).events] == ["subset"]


@guards("gpmi.model.fitting.many_rows.JUDGE_POINTS", 100, 256)
def test_a_fit_on_some_of_the_values_does_not_forget_what_the_others_settled() -> None:
    """Of 512 values 64 are spread over the box; of the 256 that a fit looks at, 32."""
    lost = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x = np.concatenate([rng.random((64, 3)), np.clip(0.5 + 0.03 * rng.standard_normal((448, 3)), 0.0, 1.0)])
        y = -np.sin(6.0 * x + np.arange(3)).sum(axis=1) + 0.3 * rng.standard_normal(512)
        observed, scale = Observations.of(x, y, np.zeros(512), np.ones(512)), float(y.std())
        priors = PriorSchedule(None, None, "map", span=np.ones(3), groups=(0, 1, 2), seed=0)
        criterion = FitSetting(DEFAULT, None, np.ones(3), (0, 1, 2)).criterion(x, (y - y.mean()) / scale, scale)
        qs = (
            criterion.covariance.q_of(p.kernel, p.noise_var / scale**2)
            for p in (priors(512, observed), priors(256, observed))
        )
        after, before = (criterion.surprisal(q) for q in qs)
        lost.append(after - before)
    assert max(lost) < 0.01


@guards("gpmi.model.fitting.fit.SAMPLES", 0, 1)
def test_draws_of_the_prior_show_how_uncertain_it_is() -> None:
    x, y = drawn_data(8, 0.3, 1e-4, 0)
    samples = fit(UNIT, x, y, rng=np.random.default_rng(0)).samples
    thetas = np.array([prior.kernel.theta for prior in samples])
    assert 4 <= len(np.unique(thetas, axis=0)) <= 20
    assert thetas.std(axis=0).min() > 0.1


@guards("gpmi.model.fitting.slice_sampling._SLICE", 0.02, 0.2)
@guards("gpmi.model.fitting.slice_sampling._STEPS_OUT", 0, 1)
@guards("gpmi.model.fitting.slice_sampling._SHRINKS", 1)
def test_slices_find_the_scale_of_the_density_where_the_guess_is_wrong_by_a_factor_of_five() -> None:
    sd = np.array([1.0, 2.0, 0.5])

    def loss(q: Array) -> tuple[float, Array]:
        return 0.5 * float((q**2 / sd**2).sum()), q / sd**2

    unknowns = SimpleNamespace(width=np.full(3, 10.0), lo=np.full(3, -50.0), hi=np.full(3, 50.0))
    criterion: Any = SimpleNamespace(unknowns=unknowns, loss=loss)
    for wrong in (0.2, 1.0, 5.0):
        peak = DescentPoint(np.zeros(3), 0.0, np.diag((wrong / sd) ** 2))
        draws = np.array(sample(criterion, peak, 300, np.random.default_rng(0))) / sd
        np.testing.assert_allclose(draws.std(axis=0), 1.0, atol=0.3)
        assert len(np.unique(draws[:, 0])) == 300
        assert np.mean([np.corrcoef(draws[1:, i], draws[:-1, i])[0, 1] for i in range(3)]) < 0.75


# prior: whether y is transformed


def transformed(n: int, of: Callable[[Array], Array], *, noise_var: float = 1e-4, count: int = 20) -> int:
    """For how many of some draws of f the values of(f) are transformed."""
    data = (drawn_data(n, 0.5, noise_var, seed) for seed in range(count))
    return sum(choose_warp(UNIT, x, of(f)).bends for x, f in data)


def learned_with_warp(n: int, of: Callable[[Array], Array]) -> int:
    """For how many of some draws of f the prior learned from n values of(f) has a transformation."""
    priors = [PriorSchedule(None, None, "map", span=UNIT.span, groups=UNIT.groups, seed=0) for _ in range(8)]
    data = [drawn_data(n, 0.5, 1e-4, seed) for seed in range(len(priors))]
    return sum(prior(n, Observations.of(x, of(f))).warp.bends for prior, (x, f) in zip(priors, data, strict=True))


@guards("gpmi.model.fitting.warp_selection.WARP_FROM", 32, 80)
def test_sixteen_values_of_many_orders_of_magnitude_are_learned_with_a_transformation() -> None:
    assert learned_with_warp(16, lambda f: -np.exp(3.0 * f)) >= 4


@guards("gpmi.model.fitting.warp_selection.WARP_FROM", 0, 4)
def test_four_values_are_never_learned_with_a_transformation() -> None:
    assert learned_with_warp(4, lambda f: -np.exp(12.0 * f)) == 0


@guards("gpmi.model.fitting.warp_selection._CLEARLY", 60.0)
@guards("gpmi.model.fitting.warp_selection._CLEARLY_EACH", 5.0)
@guards("gpmi.model.fitting.warp_selection._WARP_POINTS", 6)
@guards("gpmi.model.fitting.warp_selection._WARP_APART", 0.5)
def test_sixteen_values_of_many_orders_of_magnitude_are_transformed() -> None:
    assert transformed(16, lambda f: -np.exp(3.0 * f)) >= 14


@guards("gpmi.model.fitting.warp_selection.WARP_PLACES", 0, 2)
def test_values_at_three_places_are_never_transformed() -> None:
    assert transformed(3, lambda f: -np.exp(12.0 * f)) == 0


@guards("gpmi.model.fitting.warp_selection.WARP_PLACES", 8, 16)
def test_values_at_seven_places_of_many_orders_of_magnitude_are_transformed() -> None:
    assert transformed(7, lambda f: -np.exp(6.0 * f)) >= 10


@guards("gpmi.model.fitting.warp_selection._CLEARLY_EACH", 0.0, 0.05)
def test_values_that_are_a_little_skewed_are_left_as_they_are() -> None:
    assert transformed(64, lambda f: -np.exp(0.7 * f), noise_var=0.1) <= 3


@guards("gpmi.model.fitting.warp_selection._CLEARLY_EACH_AT_BEST", 0.0, 0.15, 15.0)
def test_to_compress_the_best_values_takes_a_clearer_case_than_to_compress_the_worst() -> None:
    assert 3 <= transformed(16, lambda f: np.exp(3.0 * f)) <= 12


@guards("gpmi.model.fitting.warp._FAR", 4.5, 4500.0)
def test_a_transformation_can_be_undone_and_gives_numbers_however_far_away() -> None:
    warp = Warp(hi=0.0)
    assert warp.inverse(warp(np.array([1e5]))) == pytest.approx(1e5)
    assert np.isfinite(warp.inverse(np.array([1e4])))


# space and values


@guards("gpmi._support.checks.LARGEST", 1e10, 1e160)
def test_a_value_is_accepted_if_the_model_can_square_it() -> None:
    opt = Optimizer([(0.0, 1.0)], seed=0)
    for y in (1e99, -1e99, 5e98, 0.0, 1e98):
        opt.tell(opt.ask(), y)
    assert np.isfinite(opt.ask())
    with pytest.raises(ValueError, match="too large"):
        opt.tell(np.array([0.5]), 1e155)


@guards("gpmi.space.fields._WIDEST", 1e10, 1e160)
@guards("gpmi.space.fields._NARROWEST", 1e-10, 1e-170)
def test_a_box_is_accepted_if_a_kernel_can_square_its_width() -> None:
    for width in (1e-95, 1e95):
        assert np.square(Parameters.box([(0.0, width)]).span).item() > 0.0
    for width in (1e-165, 1e155):
        with pytest.raises(ValueError, match="too wide or too narrow"):
            Parameters.box([(0.0, width)])


@guards("gpmi.space.product.ENUMERATED", 0, 2_000, 200_000)
def test_ten_thousand_discrete_points_are_searched_one_by_one_and_a_hundred_thousand_are_not() -> None:
    small = Space.of({"a": Int(1, 100), "b": Int(1, 100)}).rows
    assert small is not None and len(small) == 10_000
    assert Space.of({"a": Int(1, 100), "b": Int(1, 1000)}).rows is None


@guards("gpmi.space.constraints.level_ranges._PASSES", 1, 3)
def test_ranges_follow_from_each_other_through_several_rows() -> None:
    numbers = {name: Int(0, 10**6) for name in "abcd"}
    space = Space.of(numbers).constrained(["d <= c", "c <= b", "b <= a", "a <= 4"])
    assert space.rows is not None and len(space.rows) == 70  # 4 >= a >= b >= c >= d >= 0


@guards("gpmi.space.integer._MOST_LEVELS", 10**6, 10**8)
def test_millions_of_values_of_a_whole_number_are_held_in_memory_and_of_more_a_few_are_tried() -> None:
    assert len(Int(1, 4 * 10**6).levels_to_try(np.array([5.0]))) == 4 * 10**6
    assert len(Int(1, 3 * 10**7).levels_to_try(np.array([5.0]))) < 1000


@guards("gpmi.space.fields.LARGEST", 2**50, 2**56)
@guards("gpmi.space.integer._LARGEST_LOG", 10**11, 10**17)
def test_every_whole_number_that_is_allowed_has_coordinates_of_its_own() -> None:
    for log, largest in ((False, 2**52), (True, 5 * 10**11)):
        numbers = Int(largest - 3, largest, log=log)
        assert len({numbers.encode("x", n) for n in range(largest - 3, largest + 1)}) == 4
    for log, too_large in ((False, 2**54), (True, 10**16)):
        with pytest.raises(ValueError, match="too large"):
            Int(too_large - 2, too_large, log=log)


# failures


@guards("gpmi.model.fitting.classifier_prior._LOG_VARIANCE", (2.3, 1.0))
def test_an_edge_between_a_success_and_a_failure_is_sharp_unless_failures_come_by_chance() -> None:
    def chance(x: Array, success: NDArray[np.bool_]) -> SuccessProbability:
        learned = fit_classifier(x, success, np.ones(1), (0,))
        return SuccessProbability((Requirement(learned.sites(x, success).posterior(learned.kernel, x, learned.mean)),))

    x = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.45, 0.49, 0.51, 0.6, 0.8, 1.0])[:, None]
    p = chance(x, x[:, 0] < 0.5)(np.array([[0.48], [0.5], [0.52]]))
    assert p[0] > 0.95 and 0.3 < p[1] < 0.7 and p[2] < 0.05
    again = np.repeat(np.linspace(0.0, 1.0, 6), 8)[:, None]  # at each of six points half of eight trials fail
    p = chance(again, np.arange(48) % 2 == 0)(again[::8])
    assert np.all((p > 0.4) & (p < 0.6))


@guards("gpmi.model.fitting.classifier_prior._SMOOTHER", 0.2, 10.0)
def test_an_edge_is_taken_for_smooth_but_not_for_a_plane() -> None:
    """Successes below and failures above a slope, told on one half of the box."""
    x = np.array([[a, b] for a in (0.0, 0.2, 0.4) for b in np.linspace(0.0, 1.0, 6)])
    success = x[:, 1] < 0.35 + 0.4 * x[:, 0]
    learned = fit_classifier(x, success, np.ones(2), (0, 1))
    chance = SuccessProbability((Requirement(learned.sites(x, success).posterior(learned.kernel, x, learned.mean)),))
    beside, far = chance(np.array([[0.6, 0.3], [1.0, 0.35]]))
    assert beside > 0.85 and far < 0.9


@guards("gpmi.policies.risk.ALLOWED", 0.02, 0.5)
@guards("gpmi.policies.risk.LATELY", 3, 300)
@guards("gpmi.policies.risk.SAFE_ONES", 0.2, 20.0)
@guards("gpmi.policies.risk.RISK", 0.02, 0.9)
@guards("gpmi.policies.risk.DEARER", 0.0, 0.5)
def test_a_risk_is_taken_while_few_queries_have_failed_and_none_after_five_failures_of_thirty() -> None:
    @cache
    def run(failures: int, then: int) -> Optimizer:
        opt = Optimizer([(0.0, 1.0)] * 2, GPMI(), kernel=kernels.RBF(0.5), noise_var=1e-4, seed=0, n_init=2)
        for i in range(2 + failures + then):
            x = opt.ask()
            opt.fail(x) if 2 <= i < 2 + failures else opt.tell(x, -float((x**2).sum()))
        return opt

    def weight(failures: int, then: int, p: float, left: int | None = None) -> float:
        """How much log EI loses where the probability of success is p, after failures and then successes."""
        opt = run(failures, then)
        assert opt.model is not None
        state = objective(opt.model, LogEI(), opt._log, None if left is None else failures + then + left).state
        return float(LogEI().weighed(np.zeros(1), np.log([p]), state)[0][0])

    assert weight(1, 5, 0.9) == pytest.approx(np.log(0.9))
    assert weight(1, 5, 0.86) < np.log(0.86) - 0.1 and weight(1, 5, 0.6) < 3.0 * np.log(0.6)
    assert weight(5, 20, 0.9) < np.log(0.9) - 1.0 and weight(5, 20, 0.96) == pytest.approx(np.log(0.96))
    assert weight(5, 40, 0.9) == pytest.approx(np.log(0.9))
    # What is left is spent on the last queries, within limits.
    assert weight(1, 20, 0.78, left=3) == pytest.approx(np.log(0.78)) and weight(1, 20, 0.6, left=3) < 3.0 * np.log(0.6)


@guards("gpmi.policies.risk.ESCAPE", 0.05, 0.9)
@guards("gpmi.policies.risk.PLENTY", 0.01, 1.0)
def test_a_point_far_from_all_others_may_well_fail_while_few_have() -> None:
    assert 0.3 < np.exp(risk_of(0, 20, None).log_far) < 0.7
    for failed, ended in ((3, 20), (9, 14), (0, 0)):
        assert np.exp(risk_of(failed, ended, None).log_far) == pytest.approx(0.95)


@guards("gpmi.policies.risk.ENOUGH", 1, 100)
def test_points_that_may_fail_are_left_alone_after_many_failures_of_many_queries() -> None:
    assert risk_of(9, 14, None).used_up and risk_of(5, 30, 10).used_up
    assert not risk_of(3, 4, None).used_up and not risk_of(0, 30, 10).used_up and not risk_of(1, 20, 1).used_up


@guards("gpmi.optimizer.escape.WASTED", 1, 3)
@guards("gpmi.optimizer.escape.LITTLE", 0.001, 0.1)
@guards("gpmi.optimizer.escape.BELOW_NOISE", 0.1, 1.0)
@guards("gpmi.optimizer.escape.LUCK", 0.5, 8.0)
@guards("gpmi.optimizer.escape.NEAR_BEST", 0.001, 1.0)
def test_nothing_is_learned_by_two_queries_at_the_top_where_f_is_known_up_to_a_hundredth_or_half_the_noise() -> None:
    """The best value is 1, the median of the design 0."""

    class Known(dict[int, Any]):
        told = True

        @property
        def rows(self) -> dict[int, Array]:
            return {number: np.array([0.1 * number]) for number in self}

    def nothing(sd: float, *, y: float = 0.95, mu: float = 0.95, noise_sd: float = 0.0, queries: int = 2) -> bool:
        design = [(value, None, None, "design") for value in (0.0, 0.0, 1.0, -1.0)]
        asked = [(y, mu, sd, "policy")] * queries
        names = ("y", "mu", "sd", "origin")
        trials = [
            SimpleNamespace(
                **dict(zip(names, trial, strict=True)),
                feasible=True,
                status="told",
                repeats=1,
                noise_var=0.0,
                policy_notes=None,
            )
            for trial in (*design, *asked)
        ]
        log: Any = Known(enumerate(trials))
        idle = taught_nothing(log, Space.of([(0.0, 1.0)]), Orientation("max"), noise_sd**2)
        assert is_escape_due(idle) == last_wasted(idle)
        return is_escape_due(idle)

    assert nothing(0.005) and not nothing(0.05) and not nothing(0.005, queries=1)
    assert nothing(0.04, noise_sd=0.1) and not nothing(0.08, noise_sd=0.1)
    assert nothing(0.005, y=1.1, noise_sd=0.1) and not nothing(0.005, y=1.4, noise_sd=0.1)
    assert not nothing(0.005, mu=0.5, y=0.5)


@guards("gpmi.search.screen.SAME_POINT", 0.0, 1e-3)
def test_a_point_is_taken_up_to_rounding_and_one_beside_it_is_not() -> None:
    space = Space.of([(0.0, 1.0)] * 3)
    screen = screen_of(space, 0)
    assert farthest(space, 0, screen) is None and farthest(space, 0, np.clip(screen + 1e-4, 0.0, 1.0)) is not None


@guards("gpmi.optimizer.escape.FEW_PARAMETERS", 1, 5)
def test_a_point_far_from_all_others_is_asked_up_to_three_dimensions() -> None:
    assert is_small(Space.of([(0.0, 1.0)] * 3)) and not is_small(Space.of([(0.0, 1.0)] * 5))
    assert is_small(Space.of([(0.0, 1.0)] * 5).with_fixed({0: 0.5, 1: 0.5}))


@guards("gpmi.policies.find.LATE", 0.0, 0.1, 0.4, 1.0)
def test_in_the_last_fifth_of_a_budget_a_batch_has_the_point_with_the_best_mean() -> None:
    def is_sure(budget: int) -> bool:
        opt = Optimizer([(0.0, 1.0)] * 2, kernel=kernels.RBF(0.25), noise_var=1e-6, seed=0, budget=budget)
        for x in np.random.default_rng(0).random((30, 2)):
            opt.tell(x, float(np.exp(-20.0 * np.sum((x - [0.3, 0.7]) ** 2))))
        opt.ask(2)
        return opt.pending[1].phi == 0.0

    assert is_sure(36) and not is_sure(44)  # 5 and 13 queries are left after the first of the batch


@guards("gpmi.optimizer.contexts.AWAY", 0.0, 1.0, 4.0)
def test_half_of_an_improvement_by_two_sd_is_left_under_coordinates_with_a_correlation_of_nine_tenths() -> None:
    opt = Optimizer([(0.0, 1.0)] * 2, kernel=kernels.RBF(1.0), noise_var=1e-4, seed=0)
    opt.tell([0.5, 0.5], 1.0)
    context = 0.5 + float(np.sqrt(-2.0 * np.log(0.9)))
    assert opt.model is not None
    assert 0.4 < share_of_gain(opt.model, opt.space.with_fixed({1: context}), opt._log) < 0.6


@guards("gpmi.optimizer.exclusions.AROUND", 0.01, 0.2)
@guards("gpmi.optimizer.exclusions.SOON", 1, 20)
def test_no_point_is_asked_near_a_rejected_one_before_five_more_values_are_told() -> None:
    opt = Optimizer([(0.0, 2.0)], kernel=kernels.RBF(1.0), noise_var=1e-4, seed=0)
    opt.reject([1.0])
    for told in range(6):
        barred = around_rejected(opt.space, opt._log)
        assert barred is not None and (0.08 < barred.within[0, 0] < 0.12) == (told < 5)
        opt.tell([0.3 * told], 0.0)


@guards("gpmi.policies.guard.KAPPA", 1.0, 4.0)
def test_the_guard_allows_twice_the_bound_of_its_own_policy() -> None:
    account = Account(charged=0.0, weight=3.0, learned=0.0, queries=1)
    assert account.allows(3.9, 1.0, 1.0) and not account.allows(4.1, 1.0, 1.0)  # sqrt(4 * 1) = 2


# Several objectives


@guards("gpmi.model.outputs.EXACT", 1e-6, 1.0)
def test_a_value_counts_as_exact_if_a_thousandth_of_its_range_is_known_and_not_if_a_tenth_is_noise() -> None:
    x = np.linspace(0.0, 1.0, 6)[:, None]
    sharp, blurred = (Posterior.prior(kernels.RBF(0.3, variance=100.0), s).condition(x, x[:, 0]) for s in (1e-6, 1.0))
    assert is_exact(sharp, x) and not is_exact(blurred, x)


class Asked(NamedTuple):
    """What a suggestion for several objectives looked for."""

    draws: int
    around: int


def asked_under_noise(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """How many draws were averaged, and around how many points of a front of thirty was looked."""
    found: list[Asked] = []
    search = ScreenedSearch.best_joint

    def noted(self: Any, objective: Any, good: Array, *more: Any) -> Any:
        found.append(Asked(objective.score.size, len(good)))
        return search(self, objective, good, *more)

    monkeypatch.setattr(ScreenedSearch, "best_joint", noted)
    goals = {"a": gpmi.Max(at_least=-1.0), "b": gpmi.Max(at_least=-1.0)}
    opt = Optimizer([(0.0, 1.0)], goals=goals, kernel=kernels.RBF(0.3), noise_var=1e-4, seed=0)
    for x in np.linspace(0.0, 1.0, 30):
        opt.tell([x], {"a": float(x), "b": float(1.0 - x**2)})
    opt.ask()
    return found[-1]


@guards("gpmi.optimizer.objectives.DRAWS", 1, 100)
def test_what_is_uncertain_is_averaged_over_several_draws_and_not_over_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """One draw is a guess, and the cost of a suggestion grows with their number."""
    assert 4 <= asked_under_noise(monkeypatch).draws <= 32


@guards("gpmi.optimizer.objectives.NEAR", 1, 100)
def test_the_search_looks_around_some_points_of_a_long_front_and_not_around_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert 4 <= asked_under_noise(monkeypatch).around <= 20


@guards("gpmi.analysis.front.CONFIDENCE", 0.5, 0.995)
def test_a_chosen_point_meets_its_conditions_in_nine_of_ten_cases() -> None:
    opt = Optimizer([(0.0, 1.0)], goals={"a": "max", "b": "min"}, kernel=kernels.RBF(0.4), noise_var=0.01, seed=0)
    rng = np.random.default_rng(0)
    for x in np.linspace(0.0, 1.0, 12):
        opt.tell([x], {"a": float(x + 0.1 * rng.standard_normal()), "b": float(x)})
    assert 0.8 < opt.choose(b="min", where={"a": ">= 0.5"}).probability < 0.97


@guards("gpmi.policies.objectives.MOST_EXACT", 1, 9)
def test_up_to_four_objectives_have_the_exact_improvement_and_more_have_not() -> None:
    """Its boxes grow as n^(k / 2): with six objectives a suggestion would take minutes."""

    def is_exact_for(k: int) -> bool:
        try:
            gpmi.EHVI().check([f"f{i}" for i in range(k)])
        except ValueError:
            return False
        return True

    assert is_exact_for(2) and is_exact_for(4) and not is_exact_for(6)


# What is known of a front


@cache
def noisy_front(seed: int = 1) -> Optimizer:
    """Twenty values of two outputs with noise of 0.2, everything learned."""
    opt = Optimizer([(0.0, 1.0)] * 3, goals={"a": "max", "b": "min"}, seed=0)
    rng = np.random.default_rng(seed)
    for x in rng.random((20, 3)):
        a, b = np.sin(4.0 * x[0]) + x[1] + 0.2 * rng.standard_normal(2)
        opt.tell(x, {"a": float(a), "b": float(b + x[2] ** 2)})
    return opt


@guards("gpmi.model.fitting.unknowns.LOG_OPEN_NOISE", (-11.5, 3.0), (-1.0, 0.1))
def test_noise_of_a_fifth_is_expected_where_twenty_values_cannot_show_it() -> None:
    for name, ledger in noisy_front().front_analysis.outputs.items():
        assert 0.05 < np.sqrt(ledger.belief.noise_var) < 0.5, name


@guards("gpmi.analysis.conditions.WIDER", 1.0, 2.0)
def test_where_priors_are_learned_a_prediction_is_less_certain_than_the_belief_and_not_much_less() -> None:
    opt = noisy_front()
    chosen = opt.choose(a="max")
    low, high = opt.front_analysis.outputs["a"].belief.quantiles(opt.space.encode(chosen.x), np.array([0.1587, 0.8413]))
    assert 1.1 < chosen.outputs["a"].sd / (0.5 * (high - low)) < 1.6


@guards("gpmi.analysis.conditions.BARRIERS", (1.0,), (1e-9,))
def test_where_a_condition_costs_something_the_chosen_point_is_at_its_border() -> None:
    prior = {"kernel": kernels.RBF(0.6), "noise_var": 0.01}
    opt = Optimizer([(0.0, 1.0)] * 3, goals={"a": "max", "b": "min"}, seed=0, **prior)
    for x in np.random.default_rng(0).random((30, 3)):
        opt.tell(x, {"a": float(np.sin(2.0 * x[0]) + x[1] * x[2]), "b": float(x @ x)})
    found = [opt.choose(a="max", where={"b": f"<= {most}"}).probability for most in (0.7, 1.0, 1.3)]
    assert all(0.9 <= probability < 0.91 for probability in found)


def front_ledger_of(opt: Optimizer) -> FrontLedger:
    ledger = opt.ledger
    assert isinstance(ledger, FrontLedger)
    return ledger


@guards("gpmi.analysis.ledger.front_ledger.MARGIN", 0.0, 1.0)
@guards("gpmi.analysis.ledger.front_ledger.FIRST", 1, 40)
def test_a_reference_that_was_not_stated_is_a_little_below_the_first_few_values() -> None:
    opt = Optimizer([(0.0, 1.0)], goals={"a": "max", "b": "max"}, kernel=kernels.RBF(0.3), noise_var=0.0, seed=0)
    for x, a in zip(np.linspace(0.0, 1.0, 8), (3.0, 2.0, 4.0, 3.5, 2.5, 9.0, -9.0, 5.0), strict=True):
        opt.tell([x], {"a": a, "b": -a})
    reference = front_ledger_of(opt).reference
    assert reference is not None and 1.5 < reference["a"] < 1.95 and -4.5 < reference["b"] < -4.05


@guards("gpmi.analysis.ledger.front_ledger.SMALLEST", 1e-4, 0.2)
def test_a_gain_of_a_few_percent_of_the_hypervolume_counts_and_a_thousandth_does_not() -> None:
    ledger = front_ledger_of(noisy_front())
    assert 0.002 < ledger.smallest_gain / ledger.hypervolume < 0.05


@guards("gpmi.analysis.ledger.front_ledger.LEVEL", 0.5, 0.999)
@guards("gpmi.analysis.ledger.front_draws.RAYS", 4, 400)
@guards("gpmi.analysis.ledger.front_draws.DRAWS", 16, 4096)
def test_a_front_is_drawn_by_some_rays_and_most_drawn_fronts_lie_in_its_bands() -> None:
    """A picture needs some points, and each of them costs a climb in every draw."""
    ledger = front_ledger_of(noisy_front())
    bands = ledger.front_bands()
    assert bands is not None and 12 <= len(bands.low) <= 100 and 64 <= len(ledger.missing.draws) <= 1024
    heights, rays = ledger._draws.heights, ledger._draws.rays
    signs = np.array([1.0, -1.0])
    unit = (rays.span * rays.directions)[:, 0]
    low, high = ((signs * one - rays.reference)[:, 0] / unit for one in (bands.low, bands.high))
    assert 0.85 < np.mean((heights >= low - 1e-9) & (heights <= high + 1e-9)) < 0.995


@guards("gpmi.space.constraints.nearest_setting.LEAST_ON", 1e-7, 0.2)
def test_a_component_that_must_be_on_is_no_trace_and_may_be_small() -> None:
    space: Any = Space.of([(0.0, 1.0)] * 3).constrained("count(x0, x1, x2) == 2")
    polytope = space.feasible_set.polytope(np.array([0.5, 0.5, 0.0]))
    at = polytope.last_inside(polytope.centre[None], np.zeros((1, 3)))[0]
    assert 1e-4 < at[:2].min() < 0.05 and at[2] == 0.0


@guards("gpmi.space.constraints.supports.FEW", 5, 100)
def test_a_design_shows_few_supports_and_not_many() -> None:
    def size(d: int, most: int) -> int:
        names = ", ".join(f"x{i}" for i in range(d))
        return Optimizer([(0.0, 1.0)] * d, constraints=[f"count({names} > 0) <= {most}"], seed=0).n_init

    assert size(5, 2) == 10 and size(6, 3) >= 15 and size(8, 4) == 10


@guards("gpmi.optimizer.supports.PATIENCE", 2, 30)
def test_a_support_without_a_gain_is_left_after_some_queries() -> None:
    constraint = "count(x0, x1, x2) == 1"
    for idle, left in ((3, False), (12, True)):
        opt = Optimizer([(0.0, 1.0)] * 3, constraints=[constraint], seed=0)
        opt.tell([0.5, 0.0, 0.0], 9.0)
        opt.tell([0.0, 0.5, 0.0], 5.0)
        opt.tell([0.0, 0.0, 0.5], 1.0)
        for k in range(idle):
            opt.tell([0.0, 0.6 + 0.01 * k, 0.0], 4.0)
        found = promising_point(opt._log, opt.space, Orientation("max"))
        assert found is not None and (found[1] == 1.0) == left
