"""Whether a model's confidence is justified: a verdict on its standardised residuals.

If the model is right, the one-step-ahead residuals z_s = (y_s - mu_s) / sqrt(var_s + noise_var) are independent and
N(0, 1), however the points were chosen, because each was chosen before its value was known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from gpmi._support.text import aligned
from gpmi._support.types import Array
from gpmi.gp.posterior import Posterior

Verdict: TypeAlias = Literal["over-confident", "fine", "under-confident", "doubtful", "too early to say"]

LEVELS = (0.5, 0.9, 0.95)  # of the central intervals whose coverage is counted: our choice, not tuned
OVER_CONFIDENT: Verdict = "over-confident"
ERROR = 0.05  # false-alarm rate of one check; a convention. Five tests share it equally
# The smallest n for which `judge` detects an sd that is half or twice the true one in at least 4 of 5 cases, at ERROR.
# By simulation it is 0.79 with 13 residuals and 0.82 with 14 for an sd that is too large, and more for one that is too
# small.
ENOUGH = 14


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """The standardised residuals of a run, their coverage, and a verdict on them.

    `ahead` are one-step-ahead residuals. With a fixed prior they were recorded when each value came, before the model
    had seen it: a fair test. With a learned prior they are those of the belief, whose draws know all values (`belief`).
    `left_out` are leave-one-out residuals under the present model. Its prior may have
    been learned from the same values, so they decide nothing.
    """

    ahead: Array  # (n,)
    posterior: Callable[[], Posterior]  # returns the present posterior; called only if `left_out` is read
    question: str | None = None  # about a value that does not fit the others, and that nobody has confirmed yet

    @cached_property
    def left_out(self) -> Array:
        """The leave-one-out residuals under the present model, (n,). O(n^3)."""
        return left_out(self.posterior())

    @cached_property
    def coverage(self) -> dict[float, float]:
        """The share of the one-step-ahead residuals in the central interval of each level; nan if there are none."""
        return _coverage(self.ahead)

    @cached_property
    def coverage_left_out(self) -> dict[float, float]:
        """The same for the leave-one-out residuals."""
        return _coverage(self.left_out)

    @property
    def verdict(self) -> Verdict:
        """Whether the predictive standard deviations were too small, right or too large, or why that cannot be said.

        While a value is doubtful, the others alone cannot show that the model is right.
        """
        return self._judged[0]

    @property
    def reason(self) -> str:
        """The test behind the verdict, as text."""
        return self._judged[1]

    @property
    def is_over_confident(self) -> bool:
        """Whether the predictive standard deviations were too small: the dangerous verdict."""
        return self.verdict == "over-confident"

    @property
    def is_early(self) -> bool:
        """Whether there are too few values for a verdict."""
        return self.verdict == "too early to say"

    @property
    def doubt(self) -> str | None:
        """Why the model's confidence certifies nothing, as text; None if it may."""
        certifies = self.verdict in ("fine", "under-confident")
        return None if certifies else f"{self.verdict}: {self.reason}"

    @cached_property
    def _judged(self) -> tuple[Verdict, str]:
        verdict, reason = judge(self.ahead)
        if self.question is None or verdict not in ("fine", "under-confident"):
            return verdict, reason
        return "doubtful", self.question

    def __repr__(self) -> str:
        shares = [f"{share:.0%} within the central {level:.0%}" for level, share in self.coverage.items()]
        lines = [("verdict", self.verdict), ("reason", self.reason)]
        return aligned(lines + ([("coverage", ", ".join(shares))] if len(self.ahead) else []))


def judge(z: Array, error: float = ERROR) -> tuple[Verdict, str]:
    """Return the verdict on residuals z (n,), and its reason. They are independent and N(0, 1) if the model is right.

    Each of five tests gets a fifth of the error. The model is over-confident

    - if sum z^2 is too large for chi-square with n degrees of freedom,
    - if too many z lie outside the central 95 % (a binomial count), or
    - if the largest |z| is too large for n of them (Bonferroni): many repeats of a known point can hide one large
      residual from the other tests.

    It is under-confident if sum z^2 is too small, or if too many z lie inside the central 50 %. If both sides fail, the
    verdict is "over-confident", the dangerous one.
    """
    from scipy.special import bdtrc, chdtr, chdtrc, ndtr

    n = len(z)
    if n == 0:
        return "too early to say", "there are too few values"
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
    """Return (y_i - mu_i) / sd_i, both predicted from all values but y_i, (n,). O(n^3).

    It equals (C^-1 (y - m))_i / sqrt((C^-1)_ii).
    """
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
