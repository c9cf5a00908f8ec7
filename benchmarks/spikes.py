"""Do single calls grow in proportion to what they are given? Many points asked, told, failed or pending at once.

    python benchmarks/spikes.py           writes docs/benchmarks/spikes.md; about a minute

All times are CPU seconds on one BLAS thread. A promise is about the growth between the smallest and the largest size,
as a power of the size, or about a ratio in the same run. The exit status is 1 if one does not hold.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import harness
import numpy as np

import gpmi
from gpmi import kernels

GIVEN: dict[str, Any] = {"kernel": kernels.RBF(0.3), "noise_var": 1e-3}
STEEPEST = 1.35  # the largest power that counts as linear: caches and noise add a little


class Growth(NamedTuple):
    """The CPU seconds of one call at several sizes."""

    what: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def power(self) -> float:
        """Return log(t_last / t_first) / log(size_last / size_first)."""
        return math.log(self.seconds[-1] / self.seconds[0]) / math.log(self.sizes[-1] / self.sizes[0])


def cpu(call: Callable[[], Any]) -> float:
    """Return the CPU seconds of a call, at least a microsecond."""
    return max(harness.cpu_seconds(call), 1e-6)


def asked_at_once(n: int) -> float:
    """ask(n) with nothing told."""
    opt = gpmi.Optimizer([(0.0, 1.0)] * 3, seed=0)
    return cpu(lambda: opt.ask(n))


def told_while_pending(n: int) -> float:
    """All of n pending points told, in reverse."""
    opt = gpmi.Optimizer([(0.0, 1.0)] * 3, seed=0)
    points = opt.ask(n)
    return cpu(lambda: [opt.tell(x, float(x.sum())) for x in reversed(points)])


def after_failures(n: int) -> float:
    """One ask on 20,000 rows after n failures and a new value."""
    rows = np.random.default_rng(0).random((20_000, 3))
    opt = gpmi.Optimizer(rows, seed=0, **GIVEN)
    for row in rows[:31]:
        opt.tell(row, float(row.sum()))
    for _ in range(n):
        opt.fail(opt.ask())
    opt.tell(rows[50], 1.0)
    return cpu(opt.ask)


def next_pending(n: int) -> float:
    """One more ask while n points are pending, chosen by the policy one after the other."""
    opt = gpmi.Optimizer([(0.0, 1.0)] * 3, gpmi.GPUCB(), seed=0, **GIVEN)
    opt.tell(np.full(3, 0.5), 0.0)
    opt.ask(n)
    return cpu(lambda: opt.ask(5)) / 5


def words(n: int) -> float:
    """A DataFrame of 8,000 rows with n different words in one column, made a space."""
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.random(8000), "w": [f"word {i % n}" for i in range(8000)]})
    return cpu(lambda: gpmi.Space.of(frame))


def loaded() -> tuple[float, float, float]:
    """Return the seconds of the first ask, the second, and all variances afresh, after 1,000 values on 1e5 rows."""
    from gpmi.gp.tracking import moments_in_chunks

    rows = np.random.default_rng(0).random((100_000, 3))
    opt = gpmi.Optimizer(rows, seed=0)
    for row in rows[:1000]:
        opt.tell(row, float(np.sin(5.0 * row).sum()))
    posterior = opt.posterior
    assert posterior is not None
    first, second = cpu(opt.ask), cpu(opt.ask)
    return first, second, cpu(lambda: moments_in_chunks(posterior, rows))


MEASURED: tuple[tuple[Callable[[int], float], tuple[int, ...], float], ...] = (
    (asked_at_once, (500, 1000, 2000), STEEPEST),
    (told_while_pending, (500, 1000, 2000), STEEPEST),
    (after_failures, (50, 100, 200), STEEPEST),
    (next_pending, (50, 100, 200), 2.0),  # O(n^2) a point, as a told value
    (words, (100, 300, 900), STEEPEST),
)


def main() -> int:
    harness.parser(__doc__).parse_args()
    asked_at_once(20)  # imports
    rows, holds = [], True
    for call, sizes, limit in MEASURED:
        growth = Growth(str(call.__doc__).rstrip("."), sizes, tuple(call(size) for size in sizes))
        fine = growth.power <= limit
        holds &= fine
        seconds, where = ", ".join(f"{s:.3g}" for s in growth.seconds), ", ".join(f"{size:,}" for size in sizes)
        rows.append((growth.what, where, seconds, f"n^{growth.power:.2f}", f"{limit:g}", harness.yes(fine)))
        print(*rows[-1], sep=" | ", flush=True)
    first, second, afresh = loaded()
    fine = first <= 0.5 * afresh
    lines = [
        *harness.table(("call", "n", "seconds", "growth", "at most", "holds"), rows),
        "",
        f"After 1,000 values on 100,000 rows the first ask takes {first:.3g} s and the second {second:.3g} s; all "
        f"variances afresh would take {afresh:.3g} s. Promise: the first ask at most half of that: "
        f"{harness.yes(fine)}.",
        "",
        "Refused with a sentence instead: a choice between more than 1,000 options, and a column of candidates with "
        "more than 1,000 different words (tests/space/test_space.py).",
    ]
    harness.page(
        __file__, "What waits together", "CPU seconds on one BLAS thread: trust the growth, not the seconds.", lines
    )
    return 0 if holds and fine else 1


if __name__ == "__main__":
    sys.exit(main())
