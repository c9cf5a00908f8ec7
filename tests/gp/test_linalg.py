"""The growing factor, roots of singular covariances, and the thread setting."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from threading import Event

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from gpmi import Optimizer
from gpmi.gp.linalg import Factor, invert, one_blas_thread, semidefinite_root, solve_definite


def covariance(n: int, seed: int = 0) -> np.ndarray:
    a = np.random.default_rng(seed).standard_normal((n, n))
    return a @ a.T + n * np.eye(n)


@given(sizes=st.lists(st.integers(1, 300), min_size=1, max_size=5), right=st.integers(0, 3))
@settings(max_examples=settings.default.max_examples // 4)
def test_a_factor_grown_by_blocks_and_rows_is_the_cholesky_factor(sizes: list[int], right: int) -> None:
    n = sum(sizes)
    c = covariance(n)
    factor, begin = Factor.empty(), 0
    for size in sizes:
        end = begin + size
        if size == 1:
            factor, jitter = factor.append(c[:begin, begin], c[begin, begin])
        else:
            factor, jitter = factor.append_block(c[:begin, begin:end], c[begin:end, begin:end])
        assert not np.any(jitter)
        begin = end
    lower = np.linalg.cholesky(c)
    np.testing.assert_allclose(factor.rows(), lower, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(factor.diagonal, np.diagonal(lower), rtol=1e-10)
    for s in {0, n // 2, n - 1}:
        np.testing.assert_array_equal(factor.row(s), factor.rows(s)[0, : s + 1])
    b = np.random.default_rng(1).standard_normal((n, right) if right else n)
    np.testing.assert_allclose(factor.solve(b), np.linalg.solve(lower, b), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(factor.solve_transposed(b), np.linalg.solve(lower.T, b), rtol=1e-8, atol=1e-10)


def test_the_inverse_the_solution_and_the_determinant_from_the_lower_triangle_alone() -> None:
    c, b = covariance(40), np.random.default_rng(0).standard_normal((40, 2))
    lower = np.where(np.tri(40, dtype=bool), c, np.nan)
    solved = invert(lower, b)
    assert solved is not None
    inverse = np.linalg.inv(c)
    np.testing.assert_allclose(np.tril(solved.lower), np.tril(inverse), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(c @ solved.solution, b, atol=1e-9)
    assert solved.logdet == pytest.approx(np.linalg.slogdet(c)[1], rel=1e-13)
    assert invert(-np.eye(3), np.ones((3, 1))) is None


def test_a_small_definite_system() -> None:
    c = covariance(5)
    x = solve_definite(c, np.arange(5.0))
    assert x is not None
    np.testing.assert_allclose(c @ x, np.arange(5.0), atol=1e-12)
    assert solve_definite(-np.eye(2), np.ones(2)) is None


def test_a_root_of_a_singular_covariance_has_its_rank() -> None:
    a = np.random.default_rng(0).standard_normal((30, 4))
    root = semidefinite_root(a @ a.T)
    assert root.shape == (30, 4)
    np.testing.assert_allclose(root @ root.T, a @ a.T, atol=1e-12)


@pytest.mark.parametrize("n", [20, 600])
def test_whole_numbers_on_the_right_are_numbers(n: int) -> None:
    factor, _ = Factor.empty().append_block(np.empty((0, n // 2)), covariance(n)[: n // 2, : n // 2])
    factor, _ = factor.append_block(covariance(n)[: n // 2, n // 2 :], covariance(n)[n // 2 :, n // 2 :])
    b = np.arange(n)
    np.testing.assert_array_equal(factor.solve(b), factor.solve(b.astype(float)))
    np.testing.assert_array_equal(factor.solve_transposed(b), factor.solve_transposed(b.astype(float)))


def blas_threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_blas_threads_are_limited_inside_and_given_back() -> None:
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with one_blas_thread:
            assert set(blas_threads()) == {1}
            with one_blas_thread:
                pass
            assert set(blas_threads()) == {1}
        assert blas_threads() == before
        with pytest.raises(ZeroDivisionError), one_blas_thread:
            raise ZeroDivisionError
        assert blas_threads() == before
        Optimizer([(0.0, 1.0)], seed=0).ask()
        assert blas_threads() == before


def test_blas_threads_are_limited_in_every_thread_and_given_back_by_the_last_to_leave() -> None:
    def work(inside: Event, leave: Event) -> list[int]:
        with one_blas_thread:
            inside.set()
            leave.wait(600.0)
            return blas_threads()

    found = []
    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(1) as pool:  # the limit belongs to this thread
        before = blas_threads()
        for is_first in (True, False):  # whether the other thread enters first and leaves first
            inside, leave = Event(), Event()
            with nullcontext() if is_first else one_blas_thread:
                other = pool.submit(work, inside, leave)
                inside.wait(600.0)
            found.append(blas_threads())
            with one_blas_thread if is_first else nullcontext():
                leave.set()
                found.append(other.result())
                found.append(blas_threads() if is_first else [1])
            assert blas_threads() == before
        assert {number for numbers in found for number in numbers} == {1}
        with threadpool_limits(1, user_api="blas"):  # who had set the number can still do so
            assert set(blas_threads()) == {1}
        assert blas_threads() == before


@pytest.mark.slow
def test_blas_threads_are_given_back_by_the_last_of_many_to_leave() -> None:
    def work(seed: int) -> float:
        opt = Optimizer([(0.0, 1.0)], seed=seed)
        for _ in range(8):
            opt.tell(x := opt.ask(), float(x[0]))
        return float(opt.recommend()[0])

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        alone = [work(seed) for seed in range(4)]
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(work, range(4))) == alone
        assert blas_threads() == before
