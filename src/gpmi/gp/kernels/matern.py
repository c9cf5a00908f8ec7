"""The Matern kernel of any smoothness."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array
from gpmi.gp.kernels.stationary import Stationary


@dataclass(frozen=True)
class Matern(Stationary):
    """k(x, z) = v M_nu(s), s = sqrt(2 nu) r, M_nu(s) = 2^(1-nu) / Gamma(nu) s^nu K_nu(s).

    Samples are differentiable k times for every k < nu. M_nu is elementary where nu is half an odd number; otherwise it
    needs Bessel functions, which are slower. nu is never learned.
    """

    nu: float = 2.5

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "nu", checks.positive("nu", self.nu))

    def _s(self, r2: Array) -> Array:
        s: Array = 2.0 * self.nu * r2
        return np.sqrt(s, out=s)

    def kappa(self, r2: Array) -> Array:
        return _unit_matern(self._s(r2), self.nu)[1]

    def kappa_and_slope(self, r2: Array) -> tuple[Array, Array]:
        s = self._s(r2)
        below, kappa = _unit_matern(s, self.nu)
        if self.nu <= 1.0:
            return kappa, _slope_below_one(s, self.nu)
        below *= -0.5 * self.nu / (self.nu - 1.0)  # d/ds [s^nu K_nu(s)] = -s^nu K_{nu-1}(s)
        return kappa, below


def _unit_matern(s: Array, nu: float) -> tuple[Array, Array]:
    """Return M_{nu-1}(s) and M_nu(s), with M(0) = 1; the first only for nu > 1.

    It uses the recurrence of K_nu: M_{a+1} = M_a + s^2 / (4 a (a-1)) M_{a-1}. All terms are positive and at most 1, so
    nothing cancels or overflows for large nu. It starts from the orders 1/2 and 3/2, which are elementary, or from the
    Bessel functions of order a and a + 1 with 0 < a <= 1.
    """
    a = nu if nu <= 1.0 else nu - math.ceil(nu) + 1.0  # in (0, 1], a whole number of steps below nu
    if a == 0.5:
        low = -s
        np.exp(low, out=low)
    else:
        low = _matern_by_bessel(s, a)
    if nu == a:
        return low, low
    if a == 0.5:
        high = 1.0 + s
        high *= low
    else:
        high = _matern_by_bessel(s, a + 1.0)
    order = a + 1.0
    while order < nu - 0.5:
        term = s * s
        term *= low
        term /= 4.0 * order * (order - 1.0)
        term += high
        low, high = high, term
        order += 1.0
    return low, high


def _slope_below_one(s: Array, nu: float) -> Array:
    """Return d M_nu / d r^2 with s^2 = 2 nu r^2, for nu <= 1. At s = 0 it is infinite, and 0 is returned."""
    from scipy.special import gamma, kv

    away = s > 0.0
    s = np.where(away, s, 1.0)
    fall = nu * 2.0 ** (2.0 - nu) / gamma(nu) * s ** (nu - 1.0) * kv(1.0 - nu, s)
    return np.where(away, -0.5 * fall, 0.0)


def _matern_by_bessel(s: Array, nu: float) -> Array:
    """Return M_nu(s) for 0 < nu <= 2 by the Bessel function; 1 at s = 0, where s^nu K_nu(s) is 0 times infinity."""
    from scipy.special import gamma, kv

    away = s > 1e-100
    s = np.where(away, s, 1.0)
    return np.where(away, 2.0 ** (1.0 - nu) / gamma(nu) * s**nu * kv(nu, s), 1.0)
