"""Cholesky factors that grow by one row at a time. The only module that calls LAPACK."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from threading import Lock, local
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar

import numpy as np
from scipy.linalg import lapack

from gpmi._support.types import Array

# A pivot below FLOOR * C_ss is lifted to that. The subtraction behind a pivot has an error of about
# sqrt(n) * 2e-16 * C_ss, so at 1e-12 a pivot still has a correct digit for every n that fits in memory.
FLOOR = 1e-12
# A pivot below -REFUSE * C_ss is not a rounding error: the kernel is not a covariance function. Our choice, far above
# any rounding error.
REFUSE = 1e-6
# A pivot below SINGULAR * C_ss has lost ten of its sixteen digits, so C counts as singular. A posterior then adds
# NUGGET of the prior variance to every observation's noise, and ten times more until that is enough. With 1e-9 the
# moments keep six digits (tests/gp/test_exact.py).
SINGULAR = 1e-10
NUGGET = 1e-9

Returned = TypeVar("Returned")
Arguments = ParamSpec("Arguments")

_SEGMENT = 256  # rows of a factor allocated together; our choice, not tuned


class NotPositiveDefinite(ValueError):
    """The matrix K + noise_var I has a clearly negative pivot, which no small jitter can repair."""


@dataclass(slots=True)
class _Segment:
    """Consecutive rows of a factor, each written once, in order. Row i is (left[i], corner[i, : i + 1])."""

    left: Array  # (capacity, start), C order: the columns of all rows before the segment
    corner: Array  # (capacity, capacity), C order, lower triangular
    used: int

    @staticmethod
    def empty(start: int) -> _Segment:
        return _Segment(np.empty((_SEGMENT, start)), np.empty((_SEGMENT, _SEGMENT)), 0)


@dataclass(frozen=True, slots=True)
class Factor:
    """L, lower triangular with positive diagonal, such that L L^T = C.

    An immutable value. Its n rows lie in segments shared with the factors it was extended from. `append` writes row n
    after the rows of older factors, so these do not change. If another row is already there, the last segment is
    copied. So neither growing nor branching copies more than one segment.
    """

    _segments: tuple[_Segment, ...]
    n: int

    @staticmethod
    def empty() -> Factor:
        """Return the factor of the empty matrix."""
        return Factor((), 0)

    def _parts(self) -> Iterator[tuple[int, int, _Segment]]:
        """Yield (first row, number of our rows, segment) for each segment."""
        start = 0
        for segment in self._segments:
            rows = min(len(segment.corner), self.n - start)
            yield start, rows, segment
            start += rows

    @property
    def diagonal(self) -> Array:
        """L_ss for s = 1..n. A copy of n numbers."""
        if len(self._segments) == 1:
            return self._segments[0].corner.diagonal()[: self.n].copy()
        parts = [segment.corner.diagonal()[:rows] for _, rows, segment in self._parts()]
        return np.concatenate(parts) if parts else np.empty(0)

    def rows(self, begin: int = 0) -> Array:
        """Return rows begin..n-1 of L, an (n - begin, n) matrix with zeros above the diagonal. A copy."""
        lower = np.zeros((self.n - begin, self.n))
        for start, rows, segment in self._parts():
            skip = max(0, begin - start)
            if skip < rows:
                at = slice(start + skip - begin, start + rows - begin)
                lower[at, :start] = segment.left[skip:rows]
                lower[at, start : start + rows] = np.tril(segment.corner[:rows, :rows])[skip:]
        return lower

    def row(self, s: int) -> Array:
        """Return L_{s, 1..s+1}, the row of observation s. It may be a view: do not write to it."""
        if len(self._segments) == 1:
            return self._segments[0].corner[s, : s + 1]
        start, _, segment = next(part for part in self._parts() if s < part[0] + part[1])
        i = s - start
        tail = segment.corner[i, : i + 1]
        return np.concatenate([segment.left[i], tail]) if start else tail

    def solve(self, b: Array) -> Array:
        """Return L^-1 b for b (n,) or (n, m). O(n^2 m)."""
        if len(self._segments) == 1:
            return _triangular(self._segments[0], self.n, b, transposed=False)
        x = np.empty_like(b, dtype=float)
        for start, rows, segment in self._parts():
            at = slice(start, start + rows)
            right = b[at] - segment.left[:rows] @ x[:start] if start else b[at]
            x[at] = _triangular(segment, rows, right, transposed=False)
        return x

    def solve_transposed(self, b: Array) -> Array:
        """Return L^-T b for b (n,) or (n, m). O(n^2 m)."""
        if len(self._segments) == 1:
            return _triangular(self._segments[0], self.n, b, transposed=True)
        x = np.array(b, dtype=float)
        for start, rows, segment in reversed(list(self._parts())):
            at = slice(start, start + rows)
            x[at] = _triangular(segment, rows, x[at], transposed=True)
            x[:start] -= segment.left[:rows].T @ x[at]
        return x

    def append(self, column: Array, diagonal: float, unit: float | None = None) -> tuple[Factor, float]:
        """Return the factor of [[C, column], [column^T, diagonal + jitter]] and the jitter, usually 0. O(n^2).

        `unit` is the magnitude of the numbers behind the diagonal, if that is not the diagonal itself.
        """
        return self.append_solved(self.solve(column), diagonal, unit)

    def append_solved(self, row: Array, diagonal: float, unit: float | None = None) -> tuple[Factor, float]:
        """Do the same where row = L^-1 column is already solved. O(n)."""
        pivot = diagonal - float(row @ row)
        jitter = _repair(pivot, diagonal if unit is None else unit)
        row = np.concatenate([row, [math.sqrt(pivot + jitter)]])
        return Factor(self._with_row(row), self.n + 1), jitter

    def append_block(self, columns: Array, block: Array, units: Array | None = None) -> tuple[Factor, Array]:
        """Return the factor of [[C, columns], [columns^T, block + diag(jitter)]] and the jitter (k,).

        columns (n, k), block (k, k), units (k,) as in `append`. One matrix factorisation, O(n^2 k + n k^2 + k^3). If a
        pivot needs repair, the rows are appended one by one, and each gets the smallest jitter it needs.
        """
        k = len(block)
        units = np.diagonal(block) if units is None else units
        left = self.solve(columns)  # (n, k)
        rest = block - left.T @ left if self.n else block.copy()
        corner, info = lapack.dpotrf(rest.T, lower=0, clean=0, overwrite_a=1)
        factor, jitter = self, np.zeros(k)
        if info == 0 and np.all(np.diagonal(corner) ** 2 >= FLOOR * units):
            if k >= _SEGMENT:
                segment = _Segment(np.ascontiguousarray(left.T), corner.T, k)
                return Factor((*self._full_segments(), segment), self.n + k), jitter
            if self.n == 0:
                segment = _Segment.empty(0)
                segment.corner[:k, :k], segment.used = corner.T, k
                return Factor((segment,), k), jitter
            for i in range(k):  # no separate segment for few rows: many small segments slow `solve` down
                row = np.concatenate([left[:, i], corner[: i + 1, i]])
                factor = Factor(factor._with_row(row), factor.n + 1)
            return factor, jitter
        for i in range(k):
            column = np.concatenate([columns[:, i], block[:i, i]])
            factor, jitter[i] = factor.append(column, block[i, i], float(units[i]))
        return factor, jitter

    def _full_segments(self) -> tuple[_Segment, ...]:
        """Return our segments, the last one cut after our rows, so that another segment can follow."""
        if not self._segments:
            return ()
        *before, (_, rows, last) = self._parts()
        if rows < len(last.corner):
            last = _Segment(last.left[:rows].copy(), last.corner[:rows, :rows].copy(), rows)
        return (*(segment for _, _, segment in before), last)

    def _with_row(self, row: Array) -> tuple[_Segment, ...]:
        """Return our segments with row n added."""
        *before, last = self._segments or (_Segment.empty(0),)
        start = sum(len(segment.corner) for segment in before)
        rows = self.n - start  # our rows in the last segment
        if rows == len(last.corner):
            before, last, start, rows = [*before, last], _Segment.empty(self.n), self.n, 0
        if last.used > rows:  # another version of the factor has written here
            same = np.array_equal(last.left[rows], row[:start])
            if same and np.array_equal(last.corner[rows, : rows + 1], row[start:]):
                return (*before, last)  # the same row, for instance of a pending point whose value has arrived
            fork = _Segment.empty(start)
            fork.left[:rows], fork.corner[:rows, :rows] = last.left[:rows], last.corner[:rows, :rows]
            last = fork
        last.left[rows], last.corner[rows, : rows + 1] = row[:start], row[start:]
        last.used = rows + 1
        return (*before, last)


def _triangular(segment: _Segment, rows: int, b: Array, transposed: bool) -> Array:
    """Solve with the corner of a segment, or its transpose, for b (rows,) or (rows, m)."""
    if rows == 0 or b.size == 0:
        return np.array(b, dtype=float)
    # LAPACK is column-major: it sees the C-ordered rows of L as the columns of U = L^T, so nothing is copied.
    x, info = lapack.dtrtrs(segment.corner[:rows].T, b, lower=0, trans=0 if transposed else 1)
    if info != 0:
        raise NotPositiveDefinite(f"triangular solve failed at row {info - 1}: the factor has a zero pivot")
    solution: Array = x[:, 0] if b.ndim == 1 and x.ndim == 2 else x
    return solution


def _repair(pivot: float, unit: float) -> float:
    """Return the smallest jitter that lifts a pivot to FLOOR * unit, or raise if rounding cannot explain the pivot.

    If the unit itself is 0, f is known exactly and has no covariance with anything, so any jitter will do.
    """
    if unit == 0.0 and pivot == 0.0:
        return FLOOR
    if not pivot >= -REFUSE * unit:  # also catches nan
        raise NotPositiveDefinite(
            f"K + noise_var I is not positive definite: a pivot is {pivot:.3g} where the variance is {unit:.3g}. The "
            "kernel is not a covariance function at these points, or its values are not finite; check the kernel, or "
            "give a larger noise_var"
        )
    return max(0.0, FLOOR * unit - pivot)


class Inverted(NamedTuple):
    """The results of `invert`."""

    lower: Array  # C^-1, (n, n), of which only the lower triangle is filled
    solution: Array  # C^-1 b
    logdet: float  # log det C


def invert(lower: Array, b: Array) -> Inverted | None:
    """Return C^-1, C^-1 b for b (n, m) and log det C, or None where C is not numerically positive definite. O(n^3).

    Only the lower triangle of C is read; it is overwritten.
    """
    # LAPACK is column-major: it sees the lower triangle of a C-ordered matrix as the upper one. No copy is made.
    upper, info = lapack.dpotrf(lower.T, lower=0, clean=0, overwrite_a=1)
    if info != 0:
        return None
    logdet = 2.0 * float(np.log(upper.diagonal()).sum())
    solution, _ = lapack.dpotrs(upper, b, lower=0)
    inverse, _ = lapack.dpotri(upper, lower=0, overwrite_c=1)
    return Inverted(inverse.T, solution, logdet)


class Whitened(NamedTuple):
    """The results of `whiten`."""

    columns: Array  # L^-1 b with L L^T = C
    diagonal: Array  # of L
    logdet: float  # log det C


def whiten(lower: Array, b: Array) -> Whitened | None:
    """Return L^-1 b for b (n, m), the diagonal of L and log det C, L L^T = C. O(n^3).

    None where C is not positive definite. It costs a third of `invert`. Only the lower triangle of C is read; it is
    overwritten.
    """
    upper, info = lapack.dpotrf(lower.T, lower=0, clean=0, overwrite_a=1)
    if info != 0:
        return None
    columns, _ = lapack.dtrtrs(upper, b, lower=0, trans=1)
    diagonal = upper.diagonal().copy()
    return Whitened(columns, diagonal, 2.0 * float(np.log(diagonal).sum()))


def solve_definite(c: Array, b: Array) -> Array | None:
    """Return C^-1 b for b (n,), or None where C is not numerically positive definite. O(n^3)."""
    _, x, info = lapack.dposv(c, b)
    solution: Array | None = x if info == 0 else None
    return solution


def solve_lower(lower: Array, b: Array) -> Array:
    """Return L^-1 b for a lower triangular L (n, n) and b (n, m). O(n^2 m)."""
    solution, _ = lapack.dtrtrs(lower.T, b, lower=0, trans=1)
    return np.asarray(solution)


def eigen(c: Array) -> tuple[Array, Array]:
    """Return eigenvalues (..., n) and eigenvectors (..., n, n), in columns, of symmetric matrices (..., n, n). O(n^3)
    each.
    """
    values, vectors = np.linalg.eigh(c)
    return values, vectors


def semidefinite_root(c: Array) -> Array:
    """Return A (m, r) with A A^T = C for a covariance C that may be singular, r its numerical rank. O(m^2 r).

    Cholesky with pivoting stops where only rounding is left, so nothing has to be added to the diagonal.
    """
    upper, pivots, rank, _ = lapack.dpstrf(c.T, lower=0, tol=-1.0)
    root = np.zeros((len(c), rank))
    root[pivots - 1] = np.triu(upper)[:rank].T
    return root


class _ThreadState(local):
    """The state of one thread: how often it has entered, and its NumPy error state while it is inside."""

    depth = 0
    errors: Any = None


class _OneBlasThread:
    """Run the library's arithmetic with one BLAS thread and its own NumPy error state, whatever the user has set.

    At our sizes more BLAS threads make it slower. That setting belongs to the process: the first thread to enter
    changes it and the last to leave restores it. The error state (`numpy.seterr`) belongs to each thread. With the
    user's under="raise", a kernel could not be evaluated at two points far apart, where it vanishes. A thread that is
    already inside changes nothing, so an `errstate` inside the library also holds in the functions called from there.

    Values of very different sizes may overflow on the way, for instance in a loss that is then infinite. Users can do
    nothing about it, so NumPy does not warn. The tests set `warns`, where each warning is an error.
    """

    warns = False

    def __init__(self) -> None:
        self._lock, self._threads, self._state = Lock(), 0, _ThreadState()
        self._libraries: list[Any] | None = None  # the BLAS libraries that threadpoolctl finds
        self._before: list[int] = []  # the user's number of threads for each of them

    def __call__(self, function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
        """Wrap a function so that it runs inside. A call from inside costs nothing more."""

        @wraps(function)
        def inside(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
            if self._state.depth:
                return function(*args, **kwargs)
            with self:
                return function(*args, **kwargs)

        return inside

    # Ctrl-C may come between any two lines. Increment the counter after setting, and decrement it before restoring. At
    # worst the user's setting is not restored; the library never runs without its own.

    def __enter__(self) -> None:
        state = self._state
        if state.depth == 0:
            self._limit_blas()
            how: Literal["warn", "ignore"] = "warn" if self.warns else "ignore"
            state.errors = np.errstate(divide=how, over=how, under="ignore", invalid=how)
            state.errors.__enter__()
        state.depth += 1

    def __exit__(self, *exception: object) -> None:
        state = self._state
        state.depth -= 1
        if state.depth == 0:
            state.errors.__exit__(None, None, None)
            self._restore_blas()

    def _limit_blas(self) -> None:
        with self._lock:
            if self._threads == 0:
                if self._libraries is None:  # searching the loaded libraries is slow: once is enough
                    from threadpoolctl import ThreadpoolController

                    self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
                self._before = [library.num_threads for library in self._libraries]
                for library, before in zip(self._libraries, self._before, strict=True):
                    if before != 1:
                        _set_blas_threads(library, 1)
            self._threads += 1

    def _restore_blas(self) -> None:
        with self._lock:
            self._threads -= 1
            if self._threads == 0:
                for library, before in zip(self._libraries or [], self._before, strict=True):
                    if before != 1:
                        _set_blas_threads(library, before)


def _set_blas_threads(library: Any, number: int) -> None:
    """Set the number of threads of a BLAS library, from any thread.

    Since threadpoolctl 3.8 the first thread that sets the number for OpenBLAS controls it, and calls from other threads
    do nothing. Take control, and leave it to the next caller.
    """
    clear = getattr(library, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)
    library.set_num_threads(number)
    if clear is not None:
        clear(force=True)


one_blas_thread = _OneBlasThread()
