"""What is unknown in a prior, the noise variance included: units, prior and bounds of each unknown.

The unknowns are q = (one logarithm for each hyper-parameter that is None, the logarithm of the noise variance), in
units of the space and of the standard deviation of y. Each has a normal prior and is limited to an interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.kernels import Matern

DEFAULT = Matern(nu=2.5, lengthscale=None, variance=None)  # the meaning of kernel=None

# Normal priors of the logarithms, (mean, sd).
# For p parameters log(p) / 2 is added to the mean of a lengthscale. So lengthscales grow with sqrt(p), like the
# distance between two typical points of the cube. The mean is the mode of LogNormal(sqrt 2 + log(p) / 2, sqrt 3) of
# Hvarfner et al. 2024. Their sd is sqrt 3; 1 is our choice, not tuned: with ten observations a single lengthscale then
# does not move far from the others.
_LOG_LENGTHSCALE = (np.sqrt(2.0) - 3.0, 1.0)
# The variance of f equals the variance of y, up to a factor of about e. Our choice, not tuned.
_LOG_VARIANCE = (0.0, 1.0)
# The noise may be anything from rounding (1e-8 is 2.3 sd below the mean) to all of y. Our choice, not tuned.
LOG_NOISE = (np.log(1e-5), 3.0)
# The same for statements about several outputs. They are about told points and points close to them, where noise that
# is taken for none makes them too certain. Noise of 10 % of the sd of y or more is as likely as less. Chosen among
# (1e-5, 3), (1e-4, 5), (1e-3, 4), (1e-2, 3) and (3e-2, 2) on development draws with noise of 0, 5 and 20 %, where 90 %
# statements held in 96, 93 and 86 % of cases, with (1e-3, 4) in 96, 90 and 77 % (docs/benchmarks/front_knowledge.md).
LOG_OPEN_NOISE = (np.log(1e-2), 3.0)

# Bounds of the logarithms. Our choice, not tuned: wide enough to leave the decision to the priors and the data, narrow
# enough to keep C invertible.
_BOUNDS_VARIANCE = (-6.0, 6.0)
_BOUNDS_LENGTHSCALE = (np.log(5e-3), np.log(1e3))
BOUNDS_NOISE = (np.log(1e-8), np.log(2.0))

# The contribution of one observation to the second derivatives of the loss by the logarithms of the variances, of the
# lengthscales (all together) and of the noise. Our guess: the search starts with this Hessian and corrects it.
_CURVATURE = (0.3, 0.3, 0.03)

_NOISY = math.log(0.05)  # the second start of a fit has noise of 5 % of the variance of y; our choice, not tuned


@dataclass(frozen=True, eq=False)
class Unknowns:
    """q (p + 1,), the noise last: its prior N(centre, diag(width^2)), its bounds, and a guess of the curvature."""

    centre: Array
    width: Array
    lo: Array
    hi: Array
    curvature: Array  # the rough contribution of one observation to the second derivatives of the loss

    @staticmethod
    def of(shares: list[float | None], parameters: int) -> Unknowns:
        """Return the unknowns of a kernel on a space with this number of parameters.

        `shares` has an entry for each unknown: None for a lengthscale, and for a variance its share. The share is 1
        unless the variance belongs to a factor of a product (see `theta_units`).
        """
        lengthscales = max(1, shares.count(None))
        variances = max(1, len(shares) - shares.count(None))
        log_l = (_LOG_LENGTHSCALE[0] + 0.5 * np.log(parameters), _LOG_LENGTHSCALE[1])
        rows = [
            (*log_l, *_BOUNDS_LENGTHSCALE, _CURVATURE[1] / lengthscales)
            if share is None
            else (
                _LOG_VARIANCE[0],
                _LOG_VARIANCE[1] * share,
                _BOUNDS_VARIANCE[0] * share,
                _BOUNDS_VARIANCE[1] * share,
                _CURVATURE[0] / variances,
            )
            for share in shares
        ]
        columns = np.array([*rows, (*LOG_NOISE, *BOUNDS_NOISE, _CURVATURE[2])]).T
        return Unknowns(*(np.ascontiguousarray(column) for column in columns))

    def with_open_noise(self) -> Unknowns:
        """Return the same unknowns with the prior LOG_OPEN_NOISE of the noise."""
        centre, width = self.centre.copy(), self.width.copy()
        centre[-1], width[-1] = LOG_OPEN_NOISE
        return replace(self, centre=centre, width=width)

    @property
    def noisy(self) -> Array:
        """The centre of the prior, but with much noise."""
        q = self.centre.copy()
        q[-1] = _NOISY
        return q
