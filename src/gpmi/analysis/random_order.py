"""What a random order of the rows of a table finds, exactly: nothing here is simulated.

k rows are drawn without replacement from n. With the values sorted, v_1 <= ... <= v_n, the best of them is at most v_i
with probability C(i, k) / C(n, k) = prod_{j < k} (i - j) / (n - j).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gpmi._support.types import Array


def best_of_random(values: Array, most: int, quantiles: Sequence[float] = ()) -> tuple[Array, Array]:
    """Return E[the largest of k values], (most,), and its quantiles, (len(quantiles), most), for k = 1, ..., most.

    The q-quantile is the smallest value that the largest one exceeds with probability 1 - q at most. O(n most).
    """
    v = np.sort(np.asarray(values, dtype=float))
    mean, levels = np.empty(most), np.empty((len(quantiles), most))
    for k, below in enumerate(_chance_below(len(v), most)):
        mean[k] = v[-1] - np.diff(v) @ below[:-1]  # v_n - sum of P(best <= v_i) (v_{i+1} - v_i), exact for k = n
        for i, q in enumerate(quantiles):
            levels[i, k] = v[min(int(np.searchsorted(below, q - 1e-12)), len(v) - 1)]  # 1e-12: rounding of `below`
    return mean, levels


def _chance_below(n: int, most: int) -> Iterator[Array]:
    """Yield P(the best of k is at most the i-th), i = 1, ..., n, for k = 1, ..., most."""
    below, i = np.ones(n), np.arange(1, n + 1)
    for k in range(most):
        if k < n:  # from then on all rows are drawn
            below = below * np.maximum(i - k, 0) / (n - k)
        yield below


def mean_until(n: int, good: int) -> float:
    """Return the expected number of rows until the first of `good` ones: (n + 1) / (good + 1)."""
    return (n + 1) / (good + 1)


def half_until(n: int, good: int) -> int:
    """Return the number of rows among which there is one of `good` ones with probability 1/2 or more, at least."""
    none, k = 1.0, 0
    while none > 0.5 * (1.0 + 1e-12):  # rounding must not ask for one more
        none *= (n - good - k) / (n - k)
        k += 1
    return k
