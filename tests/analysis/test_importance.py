"""Sobol indices are those of functions drawn from the belief: compared with brute force, and with exact sums."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpmi
from gpmi import kernels
from gpmi._support.sobol import sobol
from gpmi.analysis import importance
from gpmi.analysis.importance import importances, index_interval, indices
from gpmi.gp.tracking import mean_in_chunks

WITHIN = 0.02  # what is promised


def ishigami(x):
    return float(np.sin(x[0]) + 7.0 * np.sin(x[1]) ** 2 + 0.1 * x[2] ** 4 * np.sin(x[0]))


def branin(x):
    a, b = x
    return float((b - 5.1 / (4 * np.pi**2) * a * a + 5 / np.pi * a - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a))


def smooth(x):
    return float(3.0 * x[0] * x[1] + np.exp(x[2]) + (x[3] - 0.3) ** 2 - x[4] * x[0])


def told(f, bounds, n, **options):
    """An optimizer that was told f at n Sobol points."""
    lo, hi = np.array(bounds, dtype=float).T
    opt = gpmi.Optimizer(bounds, seed=0, **options)
    for u in sobol(len(lo), int(np.ceil(np.log2(n))), (5,))[:n]:
        opt.tell(lo + u * (hi - lo), f(lo + u * (hi - lo)))
    return opt


def brute_force(f, bounds, log2):
    """First-order and total indices by pairs of points (Jansen 1999), (p,) each; f takes points (m, p)."""
    lo, hi = np.array(bounds, dtype=float).T
    a, b = np.split(sobol(2 * len(lo), log2, (1,)), 2, axis=1)
    fa, fb = (f(lo + u * (hi - lo)) for u in (a, b))
    variance, found = np.var(np.concatenate([fa, fb])), []
    for i in range(len(lo)):
        same, other = b.copy(), a.copy()
        same[:, i], other[:, i] = a[:, i], b[:, i]
        first, total = (0.5 * np.mean((fa - f(lo + u * (hi - lo))) ** 2) / variance for u in (same, other))
        found.append((1.0 - first, total))
    return np.array(found).T


def of(found):
    return np.array([[one.first for one in found], [one.total for one in found]])


@pytest.mark.parametrize(
    ("f", "bounds", "n", "log2"),
    [
        (ishigami, [(-np.pi, np.pi)] * 3, 150, 13),
        (branin, [(-5.0, 10.0), (0.0, 15.0)], 40, 14),
        (smooth, [(0.0, 1.0)] * 6, 150, 14),
    ],
    ids=["ishigami", "branin", "smooth"],
)
def test_where_nearly_nothing_is_unknown_indices_are_those_of_the_mean_by_brute_force(f, bounds, n, log2):
    scale = [(0.35 if len(bounds) < 6 else 1.5) * (hi - lo) for lo, hi in bounds]
    opt = told(f, bounds, n, kernel=kernels.RBF(scale, variance=100.0), noise_var=1e-4)
    mean = brute_force(lambda z: mean_in_chunks(opt.posterior, z), bounds, log2)
    np.testing.assert_allclose(of(importances(opt)), mean, atol=WITHIN)


GRID = np.stack(np.meshgrid(np.linspace(0.0, 1.0, 9), np.linspace(0.0, 1.0, 7), indexing="ij"), axis=-1)  # (9, 7, 2)


@pytest.mark.parametrize("goal", ["max", "min"])
@pytest.mark.parametrize("learned", [True, False])
def test_on_a_finite_set_indices_are_those_of_exact_draws_from_every_posterior(learned, goal, monkeypatch):
    """Brute force: tables drawn at all 63 points, equally many from each posterior, and plain sums over them."""
    monkeypatch.setattr(importance, "DRAWS", 4096)
    known = {} if learned else {"kernel": kernels.Matern(lengthscale=0.6), "noise_var": 0.01}
    opt = gpmi.Optimizer(GRID.reshape(-1, 2), seed=0, goal=goal, **known)
    for x in GRID.reshape(-1, 2)[::6]:
        opt.tell(x, np.sin(4.0 * x[0]) + x[0] * x[1])
    belief, rng = opt.ledger.belief, np.random.default_rng(1)
    assert len(belief.posteriors) == (16 if learned else 1)
    size = 32_768 // len(belief.posteriors)
    drawn = np.concatenate([one.sample(GRID.reshape(-1, 2), rng, size) for one in belief.posteriors])
    tables = opt.ledger.model.to_units_of_y(drawn).reshape(-1, 9, 7)
    variance = tables.var(axis=(1, 2))
    for one, others in zip(importances(opt), (2, 1), strict=True):
        first = tables.mean(axis=others).var(axis=1) / variance
        total = tables.var(axis=3 - others).mean(axis=1) / variance
        for draws, value, interval in (first, one.first, one.first_interval), (total, one.total, one.total_interval):
            assert value == pytest.approx(np.median(draws), abs=WITHIN)
            assert interval == pytest.approx(index_interval(draws, learned=learned), abs=2 * WITHIN)


def test_the_interval_of_an_index_that_may_be_0_begins_there_and_stays_within_0_and_1():
    """An index cannot be negative: an interval that cuts off 2.5 % at 0 would never hold an index of 0."""
    small = np.random.default_rng(0).exponential(0.05, 4000)
    assert index_interval(small, learned=False).lower == 0.0 and index_interval(small, learned=True).lower == 0.0
    likely = np.clip(np.random.default_rng(0).normal(0.8, 0.1, 4000), 0.0, 1.0)
    plain, wider = (index_interval(likely, learned=learned) for learned in (False, True))
    assert 0.0 < wider.lower < plain.lower < plain.upper < wider.upper == 1.0


def test_with_enough_values_they_are_those_of_the_function():
    """Ishigami's are known in closed form, with a = 7 and b = 0.1."""
    pi, a, b = np.pi, 7.0, 0.1
    one = 0.5 * (1.0 + b * pi**4 / 5.0) ** 2
    two, both = a**2 / 8.0, b**2 * pi**8 * (1.0 / 18.0 - 1.0 / 50.0)
    total = one + two + both
    exact = np.array([[one, two, 0.0], [one + both, two, both]]) / total
    opt = told(ishigami, [(-pi, pi)] * 3, 400)
    np.testing.assert_allclose(of(importances(opt)), exact, atol=WITHIN)


def test_the_same_numbers_on_every_call_and_reading_changes_no_suggestion():
    opt, other = (told(ishigami, [(-np.pi, np.pi)] * 3, 12) for _ in range(2))
    assert opt.ledger.needed == 12
    first, second = importances(opt), importances(opt)
    assert repr(first) == repr(second) == repr(importances(other))
    np.testing.assert_array_equal(of(first), of(second))
    for one, two in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.effect_interval, two.effect_interval)
    np.testing.assert_array_equal(opt.ask(), told(ishigami, [(-np.pi, np.pi)] * 3, 12).ask())


def test_a_minimum_has_the_indices_of_the_maximum_of_minus_f():
    up, down = (
        told(branin, [(-5.0, 10.0), (0.0, 15.0)], 20),
        told(lambda x: -branin(x), [(-5.0, 10.0), (0.0, 15.0)], 20),
    )
    least = told(branin, [(-5.0, 10.0), (0.0, 15.0)], 20, goal="min")
    np.testing.assert_allclose(of(importances(up)), of(importances(down)), atol=0.05)
    np.testing.assert_array_equal(of(importances(least)), of(importances(down)))
    np.testing.assert_array_equal(importances(least).each[0].effect, -importances(down).each[0].effect)


@given(st.integers(2, 5), st.integers(2, 5), st.integers(0, 10**6))
def test_on_a_full_grid_the_decomposition_is_that_of_a_table(m, q, seed):
    """For two parameters on a grid all parts are plain sums, and total_1 + first_2 = 1."""
    table = np.random.default_rng(seed).standard_normal((m, q))
    flat = np.full((m, q), 1.0 / q)
    first, total, effect = (part[..., 0] for part in indices(table[..., None], flat))
    other, _, _ = (part[..., 0] for part in indices(table.T[..., None], np.full((q, m), 1.0 / m)))
    assert first == pytest.approx(table.mean(axis=0).var() / table.var(), abs=1e-12)
    assert total == pytest.approx(1.0 - table.mean(axis=1).var() / table.var(), abs=1e-12)
    assert total + other == pytest.approx(1.0)
    assert 0.0 <= first <= total + 1e-12 <= 1.0 + 1e-9
    np.testing.assert_allclose(effect, table.mean(axis=0), atol=1e-12)


def test_what_does_not_vary_accounts_for_nothing():
    first, total, effect = indices(np.full((4, 3, 1), 7.0), np.full((4, 3), 1.0 / 3.0))
    assert (first[0], total[0]) == (0.0, 0.0)
    np.testing.assert_array_equal(effect, 7.0)


def test_levels_of_choices_and_whole_numbers_count_the_same():
    space = {"kind": ["a", "b", "c"], "layers": gpmi.Int(1, 4), "rate": gpmi.Real(1e-3, 1.0, log=True), "fixed": 3.0}
    worth = {"a": 0.0, "b": 3.0, "c": 6.0}
    opt = gpmi.Optimizer(space, seed=0)
    for kind in worth:
        for layers in (1, 2, 3, 4):
            for rate in (1e-3, 0.03, 1.0):
                opt.tell({"kind": kind, "layers": layers, "rate": rate, "fixed": 3.0}, worth[kind] + layers)
    found = {one.name: one for one in importances(opt)}
    assert list(found) == ["kind", "layers", "rate"]
    assert found["kind"].first == pytest.approx(6.0 / 7.25, abs=WITHIN)  # variances 6 and 1.25
    assert found["layers"].total == pytest.approx(1.25 / 7.25, abs=WITHIN)
    assert found["rate"].total < WITHIN
    np.testing.assert_allclose(found["kind"].effect, [2.5, 5.5, 8.5], atol=0.1)


def test_a_parameter_under_a_condition_counts_where_it_is_there():
    space = {"kind": ["plain", "tuned"], "knob": gpmi.Real(0.0, 1.0, when={"kind": "tuned"})}
    opt = gpmi.Optimizer(space, seed=0)
    for knob in np.linspace(0.0, 1.0, 9):
        opt.tell({"kind": "tuned", "knob": float(knob)}, 2.0 * float(knob))
    opt.tell({"kind": "plain"}, 1.0)
    found = {one.name: one for one in importances(opt)}
    # f is 1, or 2 knob with probability 1/2: kind alone explains nothing, the knob and both together share the rest.
    assert found["kind"].first < WITHIN and found["kind"].total == pytest.approx(0.5, abs=0.05)
    assert found["knob"].total == pytest.approx(1.0, abs=0.05)


def test_with_constraints_only_the_feasible_part_counts():
    opt = gpmi.Optimizer([(0.0, 1.0)] * 2, seed=0, constraints="x0 + x1 <= 1", kernel=kernels.RBF(1.0), noise_var=1e-6)
    for u in sobol(2, 6, (3,)):
        if u.sum() <= 1.0:
            opt.tell(u, u[0])
    one, other = importances(opt)
    # f = x0: knowing x0 explains all; knowing x1 explains (1 - x1) / 2, a quarter of the variance 1/18 = 1/72 / (1/18).
    assert one.first == pytest.approx(1.0, abs=WITHIN) and one.total == pytest.approx(0.75, abs=0.03)
    assert other.first == pytest.approx(0.25, abs=0.03) and other.total == pytest.approx(0.0, abs=WITHIN)
    assert "feasible part" in importances(opt).note


@pytest.mark.parametrize(
    ("constraints", "inside"),
    [
        (["x0 >= 0.49", "x0 <= 0.5"], lambda u: (u[:, 0] >= 0.49) & (u[:, 0] <= 0.5)),
        (["x0 + x1 >= 0.5", "x0 + x1 <= 0.51"], lambda u: np.abs(u[:, 0] + u[:, 1] - 0.505) <= 0.005),
        ("x0 + x1 + x2 <= 0.3", lambda u: u.sum(axis=1) <= 0.3),
    ],
    ids=["pinned", "band", "corner"],
)
def test_inside_thin_constraints_first_order_indices_are_those_of_brute_force(constraints, inside):
    """Brute force: many points inside, in bins of one coordinate; f is told so often that the mean is f."""
    opt = gpmi.Optimizer([(0.0, 1.0)] * 3, seed=0, constraints=constraints, kernel=kernels.RBF(0.7), noise_var=1e-6)
    u = np.random.default_rng(0).random((2**21, 3))
    u = u[inside(u)]
    f = u[:, 0] * u[:, 1] + u[:, 2]
    for x, y in zip(u[:60], f[:60], strict=True):
        opt.tell(x, float(y))
    for i, one in enumerate(importances(opt)):
        order = np.argsort(u[:, i])
        means = np.array([part.mean() for part in np.array_split(f[order], 30)])
        assert one.first == pytest.approx(means.var() / f.var(), abs=WITHIN)


def test_constraints_that_leave_nothing_to_vary_are_ignored():
    opt = gpmi.Optimizer([(0.0, 1.0)] * 2, seed=0, constraints="x0 + x1 == 1")
    for a in np.linspace(0.1, 0.9, 9):
        opt.tell([a, 1.0 - a], a)
    assert "ignoring the constraints" in importances(opt).note


def test_the_columns_of_candidates_count_by_how_often_a_value_occurs():
    frame = pd.DataFrame([{"size": s, "kind": k} for s in (1, 2, 3) for k in "uv"] + [{"size": 9, "kind": "u"}] * 1)
    opt = gpmi.Optimizer(frame, seed=0)
    for _, row in frame.iterrows():
        opt.tell(dict(row), 2.0 * (row["kind"] == "v"))
    kind = importances(opt).ranked[0]
    assert kind.name == "kind" and kind.first > 0.9
    many = gpmi.Optimizer(np.random.default_rng(0).uniform(size=(300, 2)), seed=0)
    for x in many.space.encoded[:40]:
        many.tell(x, x[0])
    assert importances(many).each[0].first > 0.9 and len(importances(many).each[0].settings) == 20


@pytest.mark.parametrize("candidates", [True, False])
def test_where_much_is_known_the_intervals_hold_the_indices(candidates):
    """f = (x0 - 1/2) (x1 - 1/5): x1 explains nothing alone. The drawn functions see fewer lines, but not other ones."""
    table = sobol(2, 9, (4,))
    space = table if candidates else [(0.0, 1.0)] * 2
    opt = gpmi.Optimizer(space, seed=0, kernel=kernels.RBF(0.6), noise_var=1e-6)
    for x in table[::8]:
        opt.tell(x, 6.0 * (x[0] - 0.5) * (x[1] - 0.2))
    for one in importances(opt):
        assert one.first_interval.lower - 0.005 < one.first < one.first_interval.upper + 0.005
        assert one.total_interval.lower - 0.005 < one.total < one.total_interval.upper + 0.005
        assert np.all(one.effect_interval[:, 0] - 0.05 < one.effect)
        assert np.all(one.effect < one.effect_interval[:, 1] + 0.05)


def ignores_the_last(x):
    return float(np.exp(2.0 * x[0]) + np.sin(6.0 * x[1]))


@pytest.mark.parametrize("n", [15, 30])
@pytest.mark.parametrize("f", [ishigami, ignores_the_last])
def test_an_index_belongs_to_its_interval(f, n):
    for one in importances(told(f, [(-np.pi, np.pi)] * 4, n)):
        assert one.first_interval.lower <= one.first <= one.first_interval.upper
        assert one.total_interval.lower <= one.total <= one.total_interval.upper


def test_a_kernel_without_random_features_has_intervals_too():
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Rational(kernels.Stationary):
        def kappa_and_slope(self, r2):
            kappa = 1.0 / (1.0 + r2)
            return kappa, -(kappa**2)

    opt = told(branin, [(-5.0, 10.0), (0.0, 15.0)], 8, kernel=Rational(lengthscale=3.0, variance=2500.0), noise_var=1.0)
    for one in importances(opt):
        assert one.total_interval.upper > one.total_interval.lower


def test_before_there_are_enough_values_nothing_is_claimed():
    opt = told(branin, [(-5.0, 10.0), (0.0, 15.0)], 8)
    assert opt.ledger.needed == 9
    with pytest.raises(ValueError, match="not known yet: it takes 9 values to say, and there are 8"):
        importances(opt)
    opt.tell([1.0, 2.0], branin([1.0, 2.0]))
    assert len(importances(opt)) == 2


def test_what_has_no_values_is_refused():
    with pytest.raises(ValueError, match="no value"):
        importances(gpmi.Optimizer([(0.0, 1.0)], seed=0))
    with pytest.raises(TypeError, match="source is 3"):
        importances(3)
    nothing = gpmi.maximize(lambda x: 1 / 0, [(0.0, 1.0)], budget=2, seed=0, on_failure="learn")
    with pytest.raises(ValueError, match="no model"):
        importances(nothing)
