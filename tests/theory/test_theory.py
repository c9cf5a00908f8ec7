"""gpmi.theory: information against determinants, gamma_T against brute force, bounds against the paper's formulas."""

from __future__ import annotations

import itertools
import math
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import KERNELS
from hypothesis import given, settings
from hypothesis import strategies as st

from gpmi import EI, GPMI, GPUCB, Optimizer, Policy, Posterior, State, VarianceBonus, kernels, theory
from gpmi.gp.kernels import Kernel

ROOT_OF_PROJECT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT_OF_PROJECT / "benchmarks"))

Array = np.ndarray


def log_determinant(kernel: Kernel, noise_var: float, x: Array) -> float:
    """1/2 log det(I + K / noise_var), without a factor of ours."""
    sign, value = np.linalg.slogdet(np.eye(len(x)) + kernel(x, x) / noise_var)
    assert sign > 0
    return 0.5 * float(value)


def largest_information(kernel: Kernel, noise_var: float, z: Array, size: int) -> float:
    """gamma_T over all multisets of `size` rows of z."""
    sets = itertools.combinations_with_replacement(range(len(z)), size)
    return max(log_determinant(kernel, noise_var, z[list(rows)]) for rows in sets)


def candidates(kernel: Kernel, m: int, seed: int) -> Array:
    return np.random.default_rng(seed).normal(size=(m, kernel.dim or 3))


# Information


@given(
    name=st.sampled_from(sorted(KERNELS)),
    n=st.integers(1, 12),
    noise_var=st.floats(1e-3, 10.0),
    seed=st.integers(0, 10**6),
)
def test_the_information_is_a_log_determinant_after_every_point(name: str, n: int, noise_var: float, seed: int) -> None:
    kernel = KERNELS[name]
    x = candidates(kernel, n, seed)
    x[n // 2] = x[0]  # a repeat is informative too
    wanted = [log_determinant(kernel, noise_var, x[: t + 1]) for t in range(n)]
    np.testing.assert_allclose(theory.information_at(kernel, noise_var, x), wanted, rtol=1e-10, atol=1e-10)

    posterior = Posterior.prior(kernel, noise_var)
    for t in range(n):  # one by one, whatever is observed
        posterior = posterior.condition(x[t], float(np.cos(t)))
        assert posterior.information == pytest.approx(wanted[t], rel=1e-10, abs=1e-10)
        assert theory.information(posterior)[-1] == pytest.approx(posterior.information, rel=1e-13)
    np.testing.assert_allclose(theory.information(posterior), wanted, rtol=1e-10, atol=1e-10)


def test_the_order_of_the_points_changes_the_steps_and_not_the_sum(kernel: Kernel) -> None:
    x = candidates(kernel, 9, 1)
    forward, back = theory.information_at(kernel, 0.1, x), theory.information_at(kernel, 0.1, x[::-1])
    assert forward[-1] == pytest.approx(back[-1], rel=1e-10)
    assert not np.allclose(forward[:-1], back[:-1], rtol=1e-6)
    assert np.all(np.diff(forward) > 0.0)


def test_information_of_exact_observations_is_infinite_and_of_none_is_none() -> None:
    x = np.array([[0.0], [1.0]])
    np.testing.assert_array_equal(theory.information_at(kernels.RBF(0.3), 0.0, x), [np.inf, np.inf])
    assert theory.information(Posterior.prior(kernels.RBF(0.3), 0.1)).shape == (0,)


def test_information_has_no_units(kernel: Kernel) -> None:
    x = candidates(kernel, 7, 2)
    scaled = kernel * kernels.RBF(1e9, variance=25.0)  # 25 k, up to rounding
    np.testing.assert_allclose(
        theory.information_at(scaled, 2.5, x), theory.information_at(kernel, 0.1, x), rtol=1e-9, atol=1e-12
    )


def test_gamma_hat_is_the_paper_recursion(kernel: Kernel) -> None:
    x, noise_var = candidates(kernel, 8, 3), 0.05
    posterior = Posterior.prior(kernel, noise_var)
    sums, total = [], 0.0
    for t, point in enumerate(x):
        if t >= 3:  # the first three are given
            total += float(posterior(point[None])[1][0])
            sums.append(total)
        posterior = posterior.condition(point, 0.3 * t)
    np.testing.assert_allclose(theory.gamma_hat(posterior, 3), sums, rtol=1e-9)
    assert theory.gamma_hat(posterior, 3)[-1] == pytest.approx(posterior.gamma_hat(3), rel=1e-12)
    assert theory.gamma_hat(posterior, 8).shape == (0,)
    with pytest.raises(ValueError, match="n0 is 9"):
        theory.gamma_hat(posterior, 9)


@given(
    name=st.sampled_from(sorted(KERNELS)),
    n=st.integers(1, 12),
    noise_var=st.floats(1e-3, 100.0),
    seed=st.integers(0, 10**6),
)
def test_the_sum_of_variances_is_at_most_c1_times_the_information(
    name: str, n: int, noise_var: float, seed: int
) -> None:
    kernel = KERNELS[name]
    x = candidates(kernel, n, seed)
    variance = float(kernel.diagonal(x).max())
    posterior = Posterior.prior(kernel, noise_var).anticipate(x)
    bound = theory.c1(noise_var, variance) * theory.information(posterior)
    assert np.all(theory.gamma_hat(posterior) <= bound * (1.0 + 1e-9))


def test_c1_is_attained_by_one_point_and_is_the_papers_for_unit_variance() -> None:
    for noise_var, variance in ((0.01, 1.0), (0.3, 4.0), (2.0, 0.5)):
        p = Posterior.prior(kernels.RBF(1.0, variance=variance), noise_var).anticipate(np.zeros((1, 1)))
        assert theory.c1(noise_var, variance) * p.information == pytest.approx(p.gamma_hat(), rel=1e-12)
    assert theory.c1(0.01) == pytest.approx(2.0 / math.log(1.0 + 100.0), rel=1e-14)
    assert theory.c1(7.0 * 0.01, 7.0) == pytest.approx(7.0 * theory.c1(0.01), rel=1e-12)  # units of y squared
    with pytest.raises(ValueError, match="noise_var is 0"):
        theory.c1(0.0)


# gamma_T


@given(
    name=st.sampled_from(sorted(KERNELS)),
    m=st.integers(1, 6),
    horizon=st.integers(1, 4),
    noise_var=st.floats(1e-2, 10.0),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=60)
def test_greedy_brackets_gamma_for_every_size(name: str, m: int, horizon: int, noise_var: float, seed: int) -> None:
    kernel = KERNELS[name]
    z = candidates(kernel, m, seed)
    found = theory.greedy(kernel, noise_var, z, horizon)
    for t in range(1, horizon + 1):
        best = largest_information(kernel, noise_var, z, t)
        got = found.information[t - 1]
        assert got == pytest.approx(log_determinant(kernel, noise_var, z[found.rows[:t]]), rel=1e-10, abs=1e-10)
        assert (1.0 - 1.0 / math.e) * best <= got <= best * (1.0 + 1e-10)
        assert best <= found.certificate[t - 1] * (1.0 + 1e-10)
        assert found.certificate[t - 1] <= found.upper[t - 1] * (1.0 + 1e-10)
    assert found.certificate[0] == pytest.approx(found.information[0], rel=1e-9)  # one point: greedy is the best


def test_greedy_is_not_always_the_best_so_the_certificate_has_something_to_certify() -> None:
    shortfall = 1.0
    for seed in range(40):
        z = np.random.default_rng(seed).random((6, 1))
        found = theory.greedy(kernels.RBF(0.5), 0.01, z, 3)
        best = largest_information(kernels.RBF(0.5), 0.01, z, 3)
        assert found.information[-1] <= best * (1.0 + 1e-12) and best <= found.certificate[-1]
        shortfall = min(shortfall, found.information[-1] / best)
    assert 1.0 - 1.0 / math.e < shortfall < 0.999


def every_variance(kernel: Kernel, noise_var: float, z: Array, horizon: int) -> list[int]:
    """The greedy choice with all variances computed afresh, by a general solver."""
    rows: list[int] = []
    for _ in range(horizon):
        k, c = kernel(z[rows], z), kernel(z[rows], z[rows]) + noise_var * np.eye(len(rows))
        var = kernel.diagonal(z) - (np.einsum("ij,ij->j", k, np.linalg.solve(c, k)) if rows else 0.0)
        rows.append(int(np.argmax(var >= var.max() * (1.0 - 1e-10) - 1e-13)))
    return rows


def test_lazy_choices_are_those_of_all_variances_and_need_fewer(kernel: Kernel) -> None:
    z = np.random.default_rng(5).normal(size=(400, 3))
    found = theory.greedy(kernel, 0.01, z, 30)
    assert list(found.rows) == every_variance(kernel, 0.01, z, 30)
    assert found.evaluated < 0.6 * 30 * 400  # 400 of them are the prior's
    assert found.size == 400


def test_a_tie_goes_to_the_lowest_row_and_repeats_are_allowed() -> None:
    z = np.array([[0.0], [100.0], [200.0]])
    found = theory.greedy(kernels.RBF(1.0), 0.1, z, 7)
    assert list(found.rows) == [0, 1, 2, 0, 1, 2, 0]
    # Independent arms pulled in turn are the best there is: 1/2 sum_i log(1 + n_i / noise_var).
    wanted = [0.5 * sum(math.log1p(((t + 2 - i) // 3) / 0.1) for i in range(3)) for t in range(1, 8)]
    np.testing.assert_allclose(found.information, wanted, rtol=1e-10)


def test_gamma_has_no_units_and_grows_with_the_set_and_with_less_noise() -> None:
    rng = np.random.default_rng(0)
    z = rng.random((60, 2))
    one = theory.greedy(kernels.Matern(nu=1.5, lengthscale=0.3), 0.1, z, 12)
    scaled = theory.greedy(kernels.Matern(nu=1.5, lengthscale=3.0, variance=9.0), 0.9, 10.0 * z, 12)
    np.testing.assert_array_equal(one.rows, scaled.rows)
    np.testing.assert_allclose(one.certificate, scaled.certificate, rtol=1e-9)
    quiet = theory.greedy(kernels.Matern(nu=1.5, lengthscale=0.3), 0.01, z, 12)
    assert np.all(quiet.information > one.information)
    fewer = theory.greedy(kernels.Matern(nu=1.5, lengthscale=0.3), 0.1, z[:20], 12)
    assert np.all(fewer.information <= one.certificate)


def test_the_certificate_on_a_box_holds_for_designs_off_the_grid() -> None:
    kernel, box, noise_var = kernels.RBF([0.3, 0.6], variance=2.0), [(0.0, 1.0), (-1.0, 1.0)], 0.5
    coarse = theory.greedy_on_box(kernel, noise_var, box, 8, per_axis=4)
    fine = theory.greedy_on_box(kernel, noise_var, box, 8, per_axis=40)
    assert (coarse.size, fine.size) == (16, 1600)
    rng = np.random.default_rng(1)
    for found in (coarse, fine):
        for _ in range(200):
            x = np.column_stack([rng.random(8), rng.uniform(-1.0, 1.0, 8)])
            assert np.all(theory.information_at(kernel, noise_var, x) <= found.certificate * (1.0 + 1e-10))
        assert np.all(fine.information <= found.certificate * (1.0 + 1e-10))
    assert fine.certificate[-1] < coarse.certificate[-1]
    # The distance between a point and its nearest grid point, in the process's own metric.
    points = theory.grid(box, 4)
    x = np.column_stack([rng.random(500), rng.uniform(-1.0, 1.0, 500)])
    apart = np.sqrt(2.0 * (2.0 - kernel(x, points).max(axis=1)))
    assert apart.max() <= coarse.between < 1.5 * apart.max()


def test_the_grid_is_regular_and_has_the_corners() -> None:
    points = theory.grid([(0.0, 1.0), (2.0, 4.0)], 3)
    assert points.shape == (9, 2)
    np.testing.assert_allclose(points[[0, 1, -1]], [[0.0, 2.0], [0.0, 3.0], [1.0, 4.0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.greedy(kernels.RBF(), 0.0, np.zeros((2, 1)), 3), "noise_var is 0.0"),
        (lambda: theory.greedy(kernels.RBF(), 0.1, np.zeros((2, 1)), 0), "horizon is 0"),
        (lambda: theory.greedy(kernels.RBF(), 0.1, np.zeros((0, 1)), 3), "candidates has no rows"),
        (lambda: theory.greedy(kernels.RBF(), 0.1, np.full((2, 1), np.nan), 3), "candidates has a coordinate"),
        (lambda: theory.greedy(kernels.RBF([1.0, 2.0]), 0.1, np.zeros((2, 3)), 3), "candidates has shape"),
        (lambda: theory.greedy(kernels.RBF(), 0.1, np.zeros((2, 1)), 3, between=-1.0), "between is -1.0"),
        (lambda: theory.grid([(0.0, 1.0)], 1), "per_axis is 1"),
        (lambda: theory.grid([(1.0, 1.0)], 3), r"side \(1.0, 1.0\)"),
        (lambda: theory.grid([0.0, 1.0], 3), "give one pair"),  # type: ignore[list-item]
        (lambda: theory.grid([(0.0, 1.0)] * 5, 100), "100"),
        (lambda: theory.greedy_on_box(kernels.Linear(), 0.1, [(0.0, 1.0)], 3, per_axis=9), "RBF and Matern"),
        (lambda: theory.growth(kernels.Linear() + kernels.RBF(), 2), "growth rates are known"),
        (lambda: theory.growth(kernels.Matern(nu=0.5), 2), "growth rates are known"),
        (lambda: theory.growth(kernels.RBF(), 0), "d is 0"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(call, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        call()


def test_growth_rates_are_the_published_ones() -> None:
    assert theory.growth(kernels.RBF(0.2), 3).rate(1000.0) == pytest.approx(math.log(1000.0) ** 4)
    assert theory.growth(kernels.Linear(), 3).rate(1000.0) == pytest.approx(3.0 * math.log(1000.0))
    matern = theory.growth(kernels.Matern(nu=2.5), 2)
    assert matern.rate(1000.0) == pytest.approx(1000.0 ** (2 / 7) * math.log(1000.0) ** (5 / 7))
    assert matern.formula == "T^0.2857 (log T)^0.7143"
    assert theory.growth(kernels.RBF(0.2), 3).formula == "(log T)^4"


@pytest.mark.parametrize(
    ("kernel", "d"), [(kernels.RBF(0.2), 1), (kernels.Matern(nu=1.5, lengthscale=0.2), 1), (kernels.Linear(), 2)]
)
def test_gamma_grows_no_faster_than_its_rate(kernel: Kernel, d: int) -> None:
    z = theory.grid([(0.0, 1.0)] * d, 201 if d == 1 else 15)
    found = theory.greedy(kernel, 0.1, z, 256)
    ratio = [found.certificate[t - 1] / theory.growth(kernel, d).rate(t) for t in (16, 64, 256)]
    assert ratio[0] > ratio[1] > ratio[2]


# Bounds

ROOT = math.sqrt(math.log(2.0 / 0.05))  # sqrt(alpha) for delta = 0.05
ALL = {
    "theorem 1": lambda **c: theory.theorem_1(7.0, noise_var=0.04, delta=0.05, phi_gap=1.5, var_star=3.0, **c),
    "theorem 2": lambda **c: theory.theorem_2(7.0, noise_var=0.04, delta=0.05, **c),
    "corollary 1": lambda: theory.corollary_1(7.0, noise_var=0.04, delta=0.05),
    "corollary 2": lambda: theory.corollary_2(100, 3),
    "gp-ucb": lambda **c: theory.gp_ucb(7.0, 100, noise_var=0.04, delta=0.05, size=250, **c),
}


def test_the_values_are_the_papers_formulas() -> None:
    total = 2.0 / math.log(1.0 + 1.0 / 0.04) * 7.0  # C_1 gamma_T
    y = 8.0 * (total + 1.0)  # of Lemma 2: Theorem 1 is Lemma 3 with it
    lemma_3 = 1.5 + math.sqrt(2.0) * ROOT * math.sqrt(y) + math.sqrt(2.0) * ROOT / math.sqrt(y) * 3.0
    assert ALL["theorem 1"]().value == pytest.approx(lemma_3, rel=1e-12)
    assert ALL["theorem 2"]().value == pytest.approx(5.0 * ROOT * math.sqrt(total) + 4.0 * ROOT, rel=1e-12)
    wanted = ROOT / 2.0 * total + 4.0 * ROOT * math.sqrt(total + 1.0)
    assert ALL["corollary 1"]().value == pytest.approx(wanted, rel=1e-12)
    assert ALL["corollary 2"]().value == pytest.approx(math.log(100.0) ** 2, rel=1e-12)
    beta = 2.0 * math.log(250 * 100**2 * math.pi**2 / (6.0 * 0.05))
    wanted = math.sqrt(8.0 / math.log(1.0 + 1.0 / 0.04) * 100 * beta * 7.0)
    assert ALL["gp-ucb"]().value == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_every_bound_says_whether_it_stands(name: str) -> None:
    bound = ALL[name]()
    if name == "gp-ucb":
        assert bound.status == "stands" and str(bound).startswith("GP-UCB, stands: R_T <= ")
    else:
        assert bound.status == "withdrawn" and f"{bound.name}, WITHDRAWN by the erratum, no bound" in str(bound)
        assert "martingale" in bound.why and "covariance" in bound.why and "observes r_t" in bound.stands_when
    if name.startswith("corollary"):
        assert "Scarlett" in bound.why
    assert bound.up_to_constant == (name == "corollary 2")
    assert ("O(21.21)" in str(bound)) == (name == "corollary 2")
    assert bound.formula in str(bound) and bound.stands_when in str(bound)


@given(c=st.floats(0.01, 100.0), gamma=st.floats(0.0, 1e3), noise_var=st.floats(1e-4, 10.0), var=st.floats(0.1, 10.0))
def test_bounds_have_the_units_of_f(c: float, gamma: float, noise_var: float, var: float) -> None:
    old, new = dict(noise_var=noise_var, variance=var), dict(noise_var=c * c * noise_var, variance=c * c * var)
    one = theory.theorem_1(gamma, delta=0.1, phi_gap=2.0, var_star=3.0, **old).value
    two = theory.theorem_1(gamma, delta=0.1, phi_gap=2.0 * c, var_star=3.0 * c * c, **new).value
    assert two == pytest.approx(c * one, rel=1e-9)
    one, two = (theory.theorem_2(gamma, delta=0.1, **units).value for units in (old, new))
    assert two == pytest.approx(c * one, rel=1e-9)
    one, two = (theory.gp_ucb(gamma, 50, delta=0.1, size=9, **units).value for units in (old, new))
    assert two == pytest.approx(c * one, rel=1e-9)


@given(
    gamma=st.floats(0.0, 1e3), share=st.floats(0.0, 1.0), var_star=st.floats(0.0, 1e3), noise_var=st.floats(1e-4, 10.0)
)
def test_theorem_2_and_corollary_1_follow_from_theorem_1_as_the_paper_says(
    gamma: float, share: float, var_star: float, noise_var: float
) -> None:
    total = theory.c1(noise_var) * gamma
    gamma_hat = share * total  # Eq. 3
    given_ = dict(noise_var=noise_var, delta=0.05)
    lemma_4 = ROOT * math.sqrt(gamma_hat) - 0.5 * ROOT * var_star / math.sqrt(gamma_hat + 1.0)
    first = theory.theorem_1(gamma, phi_gap=lemma_4, var_star=var_star, **given_).value
    assert first <= theory.theorem_2(gamma, **given_).value + 1e-9
    bonus = 0.5 * ROOT * (gamma_hat - var_star)
    first = theory.theorem_1(gamma, phi_gap=bonus, var_star=var_star, **given_).value
    assert first <= theory.corollary_1(gamma, **given_).value + 1e-9


def test_gp_ucb_keeps_its_bound_on_noisy_draws() -> None:
    kernel, noise_var, delta, horizon = kernels.RBF(0.1), 0.04, 0.1, 60
    z = np.linspace(0.0, 1.0, 50)[:, None]
    gamma = theory.greedy(kernel, noise_var, z, horizon).certificate[-1]
    for seed in range(10):
        rng = np.random.default_rng(seed)
        posterior = Posterior.prior(kernel, noise_var)
        f = posterior.sample(z, rng)[0]
        regret = 0.0
        for t in range(1, horizon + 1):
            mu, var = posterior(z)
            row = int(np.argmax(mu + np.sqrt(2.0 * math.log(50 * t**2 * math.pi**2 / (6.0 * delta)) * var)))
            regret += float(f.max() - f[row])
            posterior = posterior.condition(z[row], f[row] + 0.2 * rng.standard_normal())
        own = dict(noise_var=noise_var, delta=delta, size=50)
        sharp = theory.gp_ucb(posterior.information, horizon, **own).value  # with I_T of the run
        assert regret <= sharp <= theory.gp_ucb(gamma, horizon, **own).value


# The setting of the erratum


def regret_moments(kernel: Kernel, z: Array, f: Array, star: int, rows: list[int], knows: str) -> tuple[Array, Array]:
    """E[f | observed] (m,) and cov[f | observed] (m, m), by one general least-squares solve."""
    k, mixing = kernel(z, z), np.zeros((len(rows), len(z)))
    for i, row in enumerate(rows):
        mixing[i, row] += -1.0 if knows == "place" else 1.0
        mixing[i, star] += 1.0 if knows == "place" else 0.0
    gain = k @ mixing.T @ np.linalg.pinv(mixing @ k @ mixing.T, rcond=1e-11)
    return gain @ (mixing @ f), k - gain @ mixing @ k


def paper_phi(alpha: float, var: Array, gamma_hat: float) -> Array:
    return math.sqrt(alpha) * (np.sqrt(np.maximum(var, 0.0) + gamma_hat) - math.sqrt(gamma_hat))


@pytest.mark.parametrize("knows", ["place", "value"])
@pytest.mark.parametrize("star", [None, 4])
def test_a_run_with_observed_regret_is_algorithm_1_on_the_conditional_moments(knows: str, star: int | None) -> None:
    kernel = kernels.Matern(nu=1.5, lengthscale=0.3)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        z = rng.random((15, 2))
        f = Posterior.prior(kernel, 0.0).sample(z, rng)[0]
        found = theory.observe_regret(kernel, z, f, 12, policy=GPMI(delta=0.1), knows=knows, star=star, initial=[3, 7])
        place = int(np.argmax(f)) if star is None else star
        rows, gamma_hat, alpha = [3, 7], 0.0, math.log(20.0)
        for t in range(12):
            mu, cov = regret_moments(kernel, z, f, place, rows, knows)
            var, row = np.diag(cov), found.rows[t]
            score = mu + paper_phi(alpha, var, gamma_hat)
            assert score[row] >= score.max() - 1e-8
            assert found.regret[t] == f[place] - f[row]
            assert found.expected[t] == pytest.approx(mu[place] - mu[row], abs=1e-7)
            assert found.spread[t] == pytest.approx(var[place] + var[row] - 2.0 * cov[place, row], abs=1e-7)
            assert found.var[t] == pytest.approx(var[row], abs=1e-7)
            assert found.var_star[t] == pytest.approx(var[place], abs=1e-7)
            gap = paper_phi(alpha, var[[row, place]], gamma_hat)
            assert found.phi_gap[t] == pytest.approx(gap[0] - gap[1], abs=1e-4)  # the paper's form cancels
            gamma_hat += float(found.var[t])
            rows.append(int(row))
        assert found.gamma_hat[-1] == pytest.approx(gamma_hat, rel=1e-12)
        assert found.repaired == 0


def test_knowing_the_value_is_optimising_without_noise() -> None:
    kernel = kernels.Matern(nu=1.5, lengthscale=0.2)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        z = rng.random((40, 2))
        f = Posterior.prior(kernel, 0.0).sample(z, rng)[0]
        optimizer = Optimizer(z, GPMI(delta=0.1), kernel=kernel, noise_var=0.0, n_init=1, seed=0)
        optimizer.tell(z[5], f[5])
        rows = []
        for _ in range(15):
            x = optimizer.ask()
            rows.append(int(np.flatnonzero((z == x).all(axis=1))[0]))
            optimizer.tell(x, f[rows[-1]])
        found = theory.observe_regret(kernel, z, f, 15, policy=GPMI(delta=0.1), knows="value", initial=[5])
        assert list(found.rows) == rows


@cache
def many_runs(fixed: bool, knows: str) -> list[theory.RegretRun]:
    kernel, z = kernels.Matern(nu=2.5, lengthscale=0.2), np.linspace(0.0, 1.0, 30)[:, None]
    rng, prior = np.random.default_rng(0), Posterior.prior(kernel, 0.0)
    runs = []
    for f in prior.sample(z, rng, size=300):
        star = int(rng.integers(30)) if fixed else None
        runs.append(theory.observe_regret(kernel, z, f, 15, policy=GPMI(delta=0.1), knows=knows, star=star))
    return runs


def standard_errors(values: list[float]) -> float:
    """The mean in units of its standard error."""
    return float(np.mean(values) / np.std(values) * math.sqrt(len(values)))


@pytest.mark.slow
def test_lemma_1_holds_for_an_x_star_fixed_before_f_is_drawn() -> None:
    runs = many_runs(True, "place")
    assert abs(standard_errors([run.martingale[-1] for run in runs])) < 4.0
    surplus = [run.martingale[-1] ** 2 - run.spread.sum() for run in runs]  # E[M_T^2] = E[sum ell_t^2]
    assert abs(standard_errors(surplus)) < 4.0
    assert np.mean([run.spread.sum() for run in runs]) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("knows", ["place", "value"])
def test_lemma_1_fails_for_the_maximiser_even_where_regrets_are_observed(knows: str) -> None:
    runs = many_runs(False, knows)
    assert standard_errors([run.martingale[-1] for run in runs]) > 8.0


def test_lemma_4_holds_in_both_readings() -> None:
    alpha = math.log(20.0)
    for run in many_runs(False, "place")[:50] + many_runs(False, "value")[:50]:
        total, var_star = run.gamma_hat[-1], run.var_star.sum()
        bound = math.sqrt(alpha * total) - 0.5 * math.sqrt(alpha) * var_star / math.sqrt(total + 1.0)
        assert run.phi_gap.sum() <= bound + 1e-9


def test_the_sum_of_ell_is_bounded_by_the_information_on_the_regret_function() -> None:
    kernel, z, star = kernels.Matern(nu=2.5, lengthscale=0.2), np.linspace(0.0, 1.0, 30)[:, None], 11
    k = kernel(z, z)
    about = k[star, star] - k[star][:, None] - k[star][None, :] + k  # cov[f(x*) - f(x), f(x*) - f(z)]
    for f in Posterior.prior(kernel, 0.0).sample(z, np.random.default_rng(3), size=10):
        run = theory.observe_regret(kernel, z, f, 25, policy=GPMI(delta=0.1), star=star)
        for noise_var in (1e-3, 0.1, 10.0):
            matrix = np.eye(25) + about[np.ix_(run.rows, run.rows)] / noise_var
            known = 0.5 * np.linalg.slogdet(matrix)[1]
            assert run.spread.sum() <= theory.c1(noise_var, float(about.diagonal().max())) * known + 1e-9


def arms(seed: int, m: int) -> tuple[Kernel, Array, Array]:
    return kernels.RBF(1.0), 100.0 * np.arange(m)[:, None], np.random.default_rng(seed).standard_normal(m)


def test_a_learner_that_knows_the_place_goes_there_and_equation_3_fails() -> None:
    for seed in range(5):
        kernel, z, f = arms(seed, 50)
        run = theory.observe_regret(kernel, z, f, 80, policy=GPMI(delta=0.1))
        assert np.all(run.rows[1:] == np.argmax(f))
        assert run.spread[1:].max() < 1e-12  # nothing is left to learn about the regret
        assert run.gamma_hat[-1] > 0.49 * 80  # var[f(x*)] stays 1/2 however often x* is queried
        more = theory.observe_regret(kernel, z, f, 400, policy=GPMI(delta=0.1))
        gamma = 0.5 * 50 * math.log1p(8 / 0.01)  # 400 pulls of 50 arms, in turn
        assert more.gamma_hat[-1] > 2.0 * theory.c1(0.01) * gamma


def test_theorem_2_is_false_where_the_place_is_unknown_although_regrets_are_observed() -> None:
    bound = theory.theorem_2(100 * 0.5 * math.log1p(1 / 0.01), noise_var=0.01, delta=0.1).value  # C_1 gamma_T = T
    assert bound == pytest.approx(5.0 * math.sqrt(math.log(20.0) * 100) + 4.0 * math.sqrt(math.log(20.0)))
    above = 0
    for seed in range(20):
        kernel, z, f = arms(seed, 500)
        above += theory.observe_regret(kernel, z, f, 100, policy=GPMI(delta=0.1), knows="value").regret.sum() > bound
    assert above >= 15  # at most a tenth should be


def test_observed_regret_does_not_depend_on_the_units_of_f() -> None:
    rng = np.random.default_rng(2)
    z = rng.random((30, 2))
    f = Posterior.prior(kernels.RBF(0.3), 0.0).sample(z, rng)[0]
    for knows in ("place", "value"):
        one = theory.observe_regret(kernels.RBF(0.3), z, f, 20, knows=knows)
        two = theory.observe_regret(kernels.RBF(0.3, variance=49.0), z, 7.0 * f, 20, knows=knows)
        np.testing.assert_array_equal(one.rows, two.rows)
        np.testing.assert_allclose(7.0 * one.martingale, two.martingale, rtol=1e-6, atol=1e-6)


def test_other_policies_of_the_scheme_run_and_those_without_a_phi_are_refused() -> None:
    kernel, z, f = arms(0, 10)
    for policy in (GPUCB(delta=0.1), VarianceBonus(delta=0.1)):
        assert theory.observe_regret(kernel, z, f, 30, policy=policy, knows="value").regret[-1] >= 0.0
    with pytest.raises(ValueError, match="defines phi"):
        theory.observe_regret(kernel, z, f, 5, policy=EI())


class Curious(Policy):
    def phi(self, var: Array, state: State) -> Array:
        return np.sqrt(var) * state.best_mean


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(f=np.zeros(3)), r"f has shape \(3,\)"),
        (dict(f=np.full(10, np.inf)), "f has shape"),
        (dict(star=10), "star is 10"),
        (dict(initial=[2, 11]), r"initial is \[2, 11\]"),
        (dict(knows="nothing"), "knows is 'nothing'"),
        (dict(horizon=0), "horizon is 0"),
        (dict(policy=Curious()), "not finite"),
    ],
)
def test_wrong_arguments_of_a_run_are_named(changes: dict[str, object], message: str) -> None:
    kernel, z, f = arms(0, 10)
    arguments: dict[str, object] = dict(kernel=kernel, candidates=z, f=f, horizon=5) | changes
    with pytest.raises(ValueError, match=message):
        theory.observe_regret(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.theorem_2(-1.0, noise_var=0.1, delta=0.1), "gamma is -1.0"),
        (lambda: theory.theorem_2(1.0, noise_var=0.0, delta=0.1), "noise_var is 0.0"),
        (lambda: theory.theorem_2(1.0, noise_var=0.1, delta=1.0), "delta is 1.0"),
        (lambda: theory.corollary_2(1, 2), "horizon is 1"),
        (lambda: theory.gp_ucb(1.0, 10, noise_var=0.1, delta=0.1, size=0), "size is 0"),
        (lambda: theory.theorem_1(1.0, noise_var=0.1, delta=0.1, phi_gap=0.0, var_star=-1.0), "var_star is -1.0"),
    ],
)
def test_wrong_arguments_of_a_bound_are_named(call, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        call()


def test_a_posterior_covariance_can_be_negative_where_the_prior_is_positive() -> None:
    posterior = Posterior.prior(kernels.RBF(1.0), 0.0).condition(np.array([[0.0]]), np.array([0.4]))
    ends = np.array([[-1.0], [1.0]])
    covariance = posterior.covariance(ends)
    assert kernels.RBF(1.0)(ends, ends)[0, 1] == pytest.approx(0.14, abs=0.005)
    assert covariance[0, 1] == pytest.approx(-0.23, abs=0.005)
    ell2 = covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1]
    assert ell2 > covariance[0, 0] + covariance[1, 1]  # what Lemma 2 says it cannot be


def test_the_page_on_theory_runs_and_its_table_of_gamma_is_what_is_computed() -> None:
    text = (ROOT_OF_PROJECT / "docs" / "theory.md").read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(block, "theory.md", "exec"), {})
    printed = re.search(r"<!-- gamma -->\n(.*?)\n<!-- end -->", text, flags=re.DOTALL)
    assert printed is not None and printed[1] == pytest.importorskip("information").gamma_table()


def test_theory_is_a_submodule_that_importing_gpmi_does_not_load() -> None:
    code = "import sys, gpmi; assert 'gpmi.theory' not in sys.modules; from gpmi import theory; theory.c1(0.1)"
    subprocess.run([sys.executable, "-c", code + "; assert 'scipy.stats' not in sys.modules"], check=True)


def test_the_bound_of_reinvest_is_on_the_mean_and_its_number_is_the_formula_s() -> None:
    bound = theory.reinvest(12.0, 100, noise_var=0.02, size=40, variance=3.0)
    c1 = 6.0 / np.log1p(150.0)
    assert bound.value == pytest.approx(2 * np.sqrt(c1 * (2 + 2 * np.log(20)) * 100 * 12.0) + 0.02 * np.sqrt(3.0))
    assert bound.status == "stands" and str(bound).startswith("Reinvest with its guard, stands: E[R_T] <= ")
    with pytest.raises(ValueError, match="size is 1"):
        theory.reinvest(1.0, 1, noise_var=0.1, size=1)
