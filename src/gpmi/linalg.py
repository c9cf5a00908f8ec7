"""Cholesky factors that grow by a row at a time. The only module that talks to LAPACK."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]

# A pivot below FLOOR * C_ss is lifted to it. The subtraction that makes a pivot is wrong by about
# sqrt(n) * 2e-16 * C_ss, so at 1e-12 a pivot still has a correct digit for every n we can store.
FLOOR = 1e-12
# A pivot below -REFUSE * C_ss is no rounding error: the function is not a covariance.
REFUSE = 1e-6


class NotPositiveDefinite(ValueError):
    """The matrix K + noise_var I has a clearly negative pivot, so no small jitter can repair it."""


@dataclass(slots=True)
class _Rows:
    """Storage for the rows of a factor: written once, in order, never changed."""

    data: Array  # (capacity, capacity), C order: row s of L is data[s, : s + 1]
    used: int


@dataclass(frozen=True, slots=True)
class Factor:
    """L, lower triangular with positive diagonal, such that L L^T = C.

    A value of n rows that looks into storage shared with the factors it was extended from. Extending
    writes row n behind the rows that older versions see, so nobody's numbers change and nothing is copied.
    """

    _rows: _Rows
    n: int

    @staticmethod
    def empty() -> Factor:
        """The factor of the empty matrix."""
        return Factor(_Rows(np.empty((0, 0)), 0), 0)

    @property
    def diagonal(self) -> Array:
        """L_ss for s = 1..n. A copy of n numbers."""
        return np.diagonal(self._rows.data)[: self.n].copy()

    @property
    def lower(self) -> Array:
        """L as an (n, n) matrix with zeros above the diagonal. A copy."""
        return np.tril(self._rows.data[: self.n, : self.n])

    def row(self, s: int) -> Array:
        """L_{s, 1..s+1}, the row that observation s added. A view, not to be written."""
        return self._rows.data[s, : s + 1]

    def solve(self, b: Array) -> Array:
        """L^-1 b for b (n,) or (n, m). O(n^2 m)."""
        return self._solve(b, transposed=False)

    def solve_transposed(self, b: Array) -> Array:
        """L^-T b for b (n,) or (n, m). O(n^2 m)."""
        return self._solve(b, transposed=True)

    def _solve(self, b: Array, transposed: bool) -> Array:
        if self.n == 0 or b.size == 0:
            return np.array(b, dtype=float)
        # In Fortran's eyes the C-ordered rows of L are the columns of U = L^T; lda is the capacity, so no copy.
        upper = self._rows.data[: self.n].T
        x, info = lapack.dtrtrs(upper, b, lower=0, trans=0 if transposed else 1)
        if info != 0:
            raise NotPositiveDefinite(f"triangular solve failed at row {info - 1}: the factor has a zero pivot")
        solution: Array = x.reshape(b.shape, order="F") if b.ndim == 1 else x
        return solution

    def append(self, column: Array, diagonal: float) -> tuple[Factor, float]:
        """The factor of [[C, column], [column^T, diagonal + jitter]] and jitter, usually 0. O(n^2)."""
        row = self.solve(column)
        pivot = diagonal - float(row @ row)
        jitter = _repair(pivot, diagonal)
        rows = self._room_for(1, np.append(row, np.sqrt(pivot + jitter)))
        return Factor(rows, self.n + 1), jitter

    def append_block(self, columns: Array, block: Array) -> tuple[Factor, Array]:
        """The factor of [[C, columns], [columns^T, block + diag(jitter)]] and jitter (k,).

        columns (n, k), block (k, k). One matrix factorisation, O(n^2 k + n k^2 + k^3); only if a pivot of it
        needs repair is the block taken row by row, so that each row gets the smallest jitter of its own.
        """
        k = len(block)
        left = self.solve(columns)  # (n, k)
        corner, info = lapack.dpotrf((block - left.T @ left).T, lower=0, clean=1, overwrite_a=1)
        if info == 0 and np.all(np.diagonal(corner) ** 2 >= FLOOR * np.diagonal(block)):
            rows = self._room_for(k)
            rows.data[self.n : self.n + k, : self.n] = left.T
            rows.data[self.n : self.n + k, self.n : self.n + k] = corner.T
            return Factor(rows, self.n + k), np.zeros(k)
        factor, jitter = self, np.zeros(k)
        for i in range(k):
            factor, jitter[i] = factor.append(np.concatenate([columns[:, i], block[:i, i]]), block[i, i])
        return factor, jitter

    def _room_for(self, k: int, row: Array | None = None) -> _Rows:
        """Storage whose rows n..n+k-1 are ours to write, with `row` (if given) already written."""
        rows, n = self._rows, self.n
        if row is not None and rows.used > n and np.array_equal(rows.data[n, : n + 1], row):
            return rows  # another version appended the very same row: a pending point that has been told
        if rows.used > n or n + k > len(rows.data):
            capacity = n + k + max(32, n // 4)  # geometric growth: the copies cost O(n) per row on average
            data = np.empty((capacity, capacity))
            data[:n, :n] = rows.data[:n, :n]
            rows = _Rows(data, n)
        if row is not None:
            rows.data[n, : n + 1] = row
        rows.used = n + k
        return rows


def _repair(pivot: float, diagonal: float) -> float:
    """The smallest jitter that lifts a pivot to FLOOR * diagonal; refuses what rounding cannot explain."""
    if not pivot >= -REFUSE * diagonal:  # also catches nan
        raise NotPositiveDefinite(
            f"K + noise_var I is not positive definite: a pivot is {pivot:.3g} where {diagonal:.3g} stands on the "
            "diagonal. The kernel is not a covariance function at these points, or its values are not finite; "
            "check the kernel, or give a larger noise_var"
        )
    return max(0.0, FLOOR * diagonal - pivot)


def inverse_and_logdet(c: Array) -> tuple[Array, float] | None:
    """C^-1 (full) and log det C, or None where C is not numerically positive definite. O(n^3)."""
    upper, info = lapack.dpotrf(c.T, lower=0, clean=1)
    if info != 0:
        return None
    logdet = 2.0 * float(np.log(np.diagonal(upper)).sum())
    inverse, _ = lapack.dpotri(upper, lower=0, overwrite_c=1)
    full: Array = np.triu(inverse) + np.triu(inverse, 1).T
    return full, logdet


def semidefinite_root(c: Array) -> Array:
    """A (m, r) with A A^T = C for a covariance C that may be singular, r its numerical rank. O(m^2 r).

    Cholesky with pivoting stops where only rounding is left, so nothing has to be added to the diagonal.
    """
    upper, pivots, rank, _ = lapack.dpstrf(c.T, lower=0, tol=-1.0)
    root = np.zeros((len(c), rank))
    root[pivots - 1] = np.triu(upper)[:rank].T
    return root


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # looks through the loaded libraries: once is enough

    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run BLAS on one thread inside, because at our sizes threads cost more than they give; restores the setting."""
    with _controller().limit(limits=1, user_api="blas"):
        yield
