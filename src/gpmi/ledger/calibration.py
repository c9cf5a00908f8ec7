"""Whether a model's confidence was deserved: what its standardised residuals say.

If the model is right the one-step-ahead residuals z_s = (y_s - mu_s) / sqrt(var_s + noise_var) are independent and
N(0, 1), however the points were chosen, because each was chosen before its value was known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from gpmi.gp.posterior import Posterior
from gpmi.text import aligned
from gpmi.types import Array

Verdict: TypeAlias = Literal["over-confident", "fine", "under-confident", "too early to say"]

LEVELS = (0.5, 0.9, 0.95)  # of the central intervals whose coverage is counted
ERROR = 0.05  # the probability of blaming a model that is right, at one look: shared equally by five tests
ENOUGH = 14  # with so many residuals an sd that is wrong by a factor of 2 is found in 4 of 5 cases, either way


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """Residuals of a run, their coverage, and what follows from them.

    `ahead` were noted when each value was told, under the model of that moment: they are a fair test. `left_out` are
    those of each value given all the others, under the present model, whose prior may have been learned from them.
    """

    ahead: Array
    posterior: Callable[[], Posterior]  # the present one, asked for when needed

    @cached_property
    def left_out(self) -> Array:
        """The leave-one-out residuals under the present model, (n,). O(n^3)."""
        return left_out(self.posterior())

    @cached_property
    def coverage(self) -> dict[float, float]:
        """The share of the one-step-ahead residuals in the central interval of each level; nan without any."""
        return _coverage(self.ahead)

    @cached_property
    def coverage_left_out(self) -> dict[float, float]:
        """The same for the leave-one-out residuals."""
        return _coverage(self.left_out)

    @property
    def verdict(self) -> Verdict:
        """Whether the predictive deviations were too small, right, too large, or too few to tell."""
        return self._judged[0]

    @property
    def reason(self) -> str:
        """The test behind the verdict, in words."""
        return self._judged[1]

    @cached_property
    def _judged(self) -> tuple[Verdict, str]:
        return judge(self.ahead)

    def __repr__(self) -> str:
        shares = [f"{share:.0%} within the central {level:.0%}" for level, share in self.coverage.items()]
        lines = [("verdict", self.verdict), ("reason", self.reason)]
        return aligned(lines + ([("coverage", ", ".join(shares))] if len(self.ahead) else []))


def judge(z: Array, error: float = ERROR) -> tuple[Verdict, str]:
    """The verdict on residuals (n,) that are independent and N(0, 1) for a model that is right, and its reason.

    Over-confident: sum z^2 too large for chi-square with n degrees of freedom, too many z outside the central 95 %
    for a binomial count, or the largest |z| too large for n of them (Bonferroni), which repeats of a known point cannot
    dilute. Under-confident: sum z^2 too small, or too many z inside the central 50 %. Each of the five tests has a
    fifth of the error. Where both sides are found the dangerous one is named.
    """
    from scipy.special import bdtrc, chdtr, chdtrc, ndtr

    n = len(z)
    if n == 0:
        return "too early to say", "no value has been foreseen yet"
    size, largest, each = float(z @ z), float(np.abs(z).max()), error / 5.0
    outside, inside = n - _inside(z, 0.95), _inside(z, 0.5)
    spread = f"the root mean square of {n} residuals is {np.sqrt(size / n):.3g}, and should be 1"
    if chdtrc(n, size) < each:
        return "over-confident", spread
    if outside and bdtrc(outside - 1, n, 0.05) < each:
        return "over-confident", f"{outside} of {n} values fell outside the central 95 %"
    if 2.0 * n * ndtr(-largest) < each:
        return "over-confident", f"the largest of {n} residuals is {largest:.3g}"
    if chdtr(n, size) < each:
        return "under-confident", spread
    if inside and bdtrc(inside - 1, n, 0.5) < each:
        return "under-confident", f"{inside} of {n} values fell inside the central 50 %"
    if n < ENOUGH:
        return "too early to say", f"{n} residuals are too few to find an sd that is wrong by a factor of 2"
    return "fine", spread


def left_out(posterior: Posterior) -> Array:
    """(y_i - mu_-i) / sd_-i with i left out: (C^-1 y)_i / sqrt((C^-1)_ii), y counted from the mean, (n,). O(n^3)."""
    if posterior.n == 0:
        return np.empty(0)
    inverse = posterior.factor.solve(np.eye(posterior.n))  # L^-1
    residuals: Array = posterior.weights / np.sqrt(np.einsum("ri,ri->i", inverse, inverse))
    return residuals


def _inside(z: Array, level: float) -> int:
    from scipy.special import ndtri

    return int(np.count_nonzero(np.abs(z) <= ndtri(0.5 + 0.5 * level)))


def _coverage(z: Array) -> dict[float, float]:
    return {level: _inside(z, level) / len(z) if len(z) else float("nan") for level in LEVELS}
