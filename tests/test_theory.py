"""gpmi.theory: information against determinants, gamma_T against brute force, bounds against the paper's formulas."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from conftest import KERNELS
from hypothesis import given, settings
from hypothesis import strategies as st

from gpmi import Posterior, kernels, theory
from gpmi.kernels import Kernel

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


def test_theory_is_a_submodule_that_importing_gpmi_does_not_load() -> None:
    code = "import sys, gpmi; assert 'gpmi.theory' not in sys.modules; from gpmi import theory; theory.c1(0.1)"
    subprocess.run([sys.executable, "-c", code + "; assert 'scipy.stats' not in sys.modules"], check=True)
