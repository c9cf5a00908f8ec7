"""Whether a value fits the others: invariances, slips that are found, ordinary values that are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpmi import kernels
from gpmi._support.text import rounded
from gpmi._support.types import Observations
from gpmi.analysis.misfit import FEWEST, Misfit, misfit
from gpmi.model.fitting.schedule import PriorSchedule
from gpmi.model.model import ModelSetting
from gpmi.optimizer.doubts import judges
from gpmi.space import Space

SPACE = Space.of([(0.0, 1.0), (0.0, 1.0)])
FEW = settings(max_examples=8, deadline=None)


def schedule(**arguments):
    given = {"kernel": None, "noise_var": None, "fit": "map", **arguments}
    return PriorSchedule(**given, span=SPACE.span, groups=SPACE.groups, seed=3)


SETTING = ModelSetting(SPACE, schedule(), 3)


def told(n=16, seed=0, noise=0.3):
    """Values of a smooth function between 70 and 90, with noise."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 2))
    return Observations.of(x, 80.0 + 10.0 * np.sin(3.0 * x[:, 0]) * np.cos(2.0 * x[:, 1]) + noise * rng.normal(size=n))


def judged(observed, i, y=None, setting=SETTING, sign=1.0):
    """Judge value i of these, or y in its place."""
    rest = np.delete(np.arange(len(observed)), i)
    others = Observations.of(observed.x[rest], observed.y[rest], observed.noise_var[rest], observed.repeats[rest])
    value = replace(observed.part(i, i + 1), y=observed.y[i : i + 1] if y is None else np.array([y]))
    return misfit(setting, others, value, sign)


@given(st.integers(0, 99), st.integers(0, 15), st.sampled_from([10.0, 0.1]))
@FEW
def test_a_slip_of_the_decimal_point_is_found_and_the_question_names_what_was_meant(seed, i, factor):
    observed = told(seed=seed)
    found = judged(observed, i, factor * observed.y[i])
    assert found.is_doubtful and not found.fits
    assert found.meant == pytest.approx(observed.y[i])
    assert f"is it right? did you mean {rounded(found.meant)}?" in found.why


def test_few_ordinary_values_are_doubtful():
    assert sum(judged(told(seed=seed), i).is_doubtful for seed in range(10) for i in (1, 8, 14)) <= 1


@given(st.integers(0, 99), st.floats(1e-6, 1e6), st.floats(-1e3, 1e3))
@FEW
def test_how_far_a_value_is_does_not_depend_on_the_unit_or_the_origin_of_y(seed, scale, shift):
    observed = told(seed=seed)
    moved = replace(observed, y=scale * (observed.y + shift))
    for y in (observed.y[3], 71.0, 8.0):
        assert judged(moved, 3, scale * (y + shift)).z == pytest.approx(judged(observed, 3, y).z, rel=0.02, abs=0.02)


@given(st.integers(0, 99), st.permutations(range(16)))
@FEW
def test_a_slip_is_found_in_any_order_of_the_others(seed, order):
    observed = told(seed=seed)
    mixed = Observations.of(observed.x[order], observed.y[order])
    i = order.index(5)
    assert judged(mixed, i, 0.1 * observed.y[5]).is_doubtful


def test_goal_min_judges_the_same_with_the_other_sign():
    observed = told()
    mirrored = replace(observed, y=-observed.y)
    y = 0.1 * observed.y[4]
    plain, turned = judged(observed, 4, y), judged(mirrored, 4, -y, sign=-1.0)
    assert (turned.y, turned.meant) == (y, pytest.approx(10.0 * y))
    assert turned.is_doubtful and turned.z == pytest.approx(plain.z, rel=0.2)
    assert turned.expected == pytest.approx(plain.expected, abs=1.0)


def test_a_stated_error_bar_does_not_hide_a_slip_unless_it_explains_it():
    observed = told()
    exact = replace(observed.part(4, 5), y=np.array([8.57]), noise_var=np.array([1e-6]), plain=False)
    vague = replace(exact, noise_var=np.array([100.0**2]))
    others = Observations.of(np.delete(observed.x, 4, 0), np.delete(observed.y, 4))
    assert misfit(SETTING, others, exact).is_doubtful
    assert not misfit(SETTING, others, vague).is_doubtful


def test_few_values_and_equal_values_say_nothing():
    observed = told(FEWEST)
    assert judged(observed, 0, 1e6) is None
    assert judged(replace(told(), y=np.full(16, 2.0)), 0, 1e6) is None


def test_only_a_learned_kernel_with_normal_noise_is_judged():
    assert judges(schedule())
    assert judges(schedule(noise_var=0.1))
    assert not judges(schedule(kernel=kernels.RBF(lengthscale=0.3)))
    assert not judges(schedule(kernel=kernels.RBF(lengthscale=0.3), noise_var=0.1))
    assert not judges(schedule(noise="student"))


@pytest.mark.parametrize(
    ("z", "shifted", "doubtful"), [(8.1, False, True), (-8.1, False, True), (7.9, False, False), (3.1, True, True)]
)
def test_a_slip_needs_less_than_another_error(z, shifted, doubtful):
    assert Misfit(1.0, z, 9.0, 1.0, 10.0 if shifted else None, True, shifted).is_doubtful == doubtful
    assert not Misfit(1.0, z, 9.0, 1.0, None, False, False).is_doubtful


def test_the_question_has_the_value_what_was_expected_and_what_was_meant():
    why = Misfit(8.57, -20.0, 86.04, 3.13, 85.7, True, True).why
    assert why == "8.57 is far from what was expected, 86 \u00b1 3.1; is it right? did you mean 85.7?"
    assert Misfit(8.57, -20.0, 86.04, 3.13, None, True, False).why.endswith("is it right?")
