"""Whether a value fits the others: it is predicted from all of them, with everything learned again without it.

A model that has learned from a wrong value bends to it and finds nothing wrong. So neither the prior nor the
transformation of y may know the value. One fit without it is too sure of itself, so the prediction is averaged over the
belief's draws of the prior, whose variances explain the residuals of the others (`belief`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpmi._support.text import rough, rounded
from gpmi._support.types import Array, Observations
from gpmi.analysis.ledger.belief import believed, draw_priors_of, normal_quantiles
from gpmi.gp.linalg import one_blas_thread
from gpmi.gp.posterior import Posterior
from gpmi.model.fitting.data import warped
from gpmi.model.model import Model, ModelSetting, noise_variances

# The rule. Chosen on the seeds below 100 of docs/benchmarks/doubts.md, and judged there on others.
FEWEST = 6  # other values, at least: from fewer nothing is predicted that a value could miss
SUSPECT = 3.5  # sd: a value that misses its prediction by less is not looked at, because looking costs a fit
LATER = 3  # how many later values may still make a suspect a doubt: its neighbours may come after it
MISFIT = 8.0  # sd: a value this far from what the others predict is a doubt, whatever was meant
# So is a nearer one, if a slip of the decimal point makes it this much likelier, in nats, and what was meant fits.
LIKELIER, FITS = 4.0, 3.0
# A value that is off by less than this share of the standard deviation of the others bends no model, and is no doubt:
# without noise a model may be far too sure of small differences.
GROSS = 0.5
BACK = 2.5  # sd: a doubt that is nearer than this to what later values predict is none

SLIPS = (10.0, 0.1, -1.0, 100.0, 0.01)  # factors that undo the slips which the question names


@dataclass(frozen=True, eq=False)
class Expected:
    """What other values predict for a value: a mixture of normal distributions of warp(y) with equal weights."""

    model: Model  # of the other values; it has the warp
    mu: Array  # (m,)
    sd: Array  # (m,), with the noise of the value

    def z(self, y: float) -> float:
        """Return the normal quantile of the probability of a smaller value: N(0, 1) if the prediction is right."""
        (at,) = self.model.warp(np.array([y])) if self.model.warp.bends else (y,)
        return float(normal_quantiles(((at - self.mu) / self.sd)[:, None])[0])

    @cached_property
    def central(self) -> tuple[float, float]:
        """The median and half the width of the central 68 %, in units of y."""
        from scipy.special import ndtri

        normal = ndtri((np.arange(64) + 0.5) / 64)  # the error of a quantile is below 2 % of an sd
        values = (self.mu[:, None] + self.sd[:, None] * normal).ravel()
        low, mid, high = self.model.to_units_of_y(np.quantile(values, [0.16, 0.5, 0.84])).tolist()
        return mid, 0.5 * (high - low)


class Misfit(NamedTuple):
    """How far a value is from what the others predict, in units of y as the user has it."""

    y: float
    z: float  # how far, as a normal quantile
    expected: float
    sd: float
    meant: float | None  # what a slip of the pen or of the decimal point would explain, if that fits
    is_gross: bool  # whether it is off by enough to bend a model
    shifted: bool  # whether a slip of the decimal point is the likelier explanation

    @property
    def is_doubtful(self) -> bool:
        """Whether to ask if the value is right."""
        return self.is_gross and (abs(self.z) > MISFIT or self.shifted)

    @property
    def fits(self) -> bool:
        """Whether a value that was doubtful fits now."""
        return abs(self.z) < BACK

    @property
    def why(self) -> str:
        """Why it is doubtful, and the question, as text."""
        asked = "" if self.meant is None else f" did you mean {rounded(self.meant)}?"
        expected = f"{rough(self.expected, 3)} \u00b1 {rough(self.sd, 2)}"
        return f"{rounded(self.y)} is far from what was expected, {expected}; is it right?{asked}"


def predicted(setting: ModelSetting, others: Observations, value: Observations) -> Expected:
    """Return what others (n,) predict for a value (1,) at its point, y oriented. Some fits and draws, O(n^3) each."""
    model = Model.after(setting.cleared(), others)
    belief, at = believed(model, others, draw_priors_of(model, others)), warped(value, model.warp)
    moments = np.array([_moments(posterior, at) for posterior in belief.posteriors])
    return Expected(model, moments[:, 0], np.sqrt(np.maximum(moments[:, 1], np.finfo(float).tiny)))


def _moments(posterior: Posterior, value: Observations) -> tuple[float, float]:
    """Return the mean and the variance of a value (1,) under a posterior of f, with its noise."""
    (mu,), (var,) = posterior(value.x)
    noise_var = noise_variances(value, posterior.noise_var)
    return float(mu), float(var) + float(posterior.noise_var if noise_var is None else noise_var[0])


@one_blas_thread
def misfit(setting: ModelSetting, others: Observations, value: Observations, sign: float = 1.0) -> Misfit | None:
    """Return how far a value (1,) is from what others (n,) predict; None if they say too little. y is oriented.

    `sign` is -1 if the user's y is the opposite.
    """
    if len(others) < FEWEST or not np.ptp(others.y):  # equal values do not show how much f varies
        return None
    expected, y = predicted(setting, others, value), float(value.y[0])
    z, (mid, sd), far = expected.z(y), expected.central, {slip: abs(expected.z(slip * y)) for slip in SLIPS}
    nearest = min(far, key=lambda slip: far[slip])
    meant = sign * nearest * y if far[nearest] < FITS else None
    tenth = far[10.0] < FITS and 0.5 * (z**2 - far[10.0] ** 2) > LIKELIER
    tenfold = far[0.1] < FITS < abs(mid) / sd and abs(z) > MISFIT  # near 0 ten times as much is nothing special
    is_gross = abs(y - mid) > GROSS * float(others.y.std())
    return Misfit(sign * y, sign * z, sign * mid, sd, meant, is_gross, is_gross and (tenth or tenfold))
