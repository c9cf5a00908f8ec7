"""The Matern correlation M_nu(s) = 2^(1-nu) / Gamma(nu) s^nu K_nu(s), for every nu > 0."""

from __future__ import annotations

import math

import numpy as np

from gpmi._support.types import Array


def unit_matern(s: Array, nu: float) -> tuple[Array, Array]:
    """M_{nu-1}(s) and M_nu(s), with M(0) = 1; the first only for nu > 1.

    It uses the recurrence of K_nu: M_{a+1} = M_a + s^2 / (4 a (a-1)) M_{a-1}. All terms are positive and at most 1, so
    nothing cancels or overflows for large nu. It starts from the orders 1/2 and 3/2, which are elementary, or from the
    Bessel functions of order a and a + 1 with 0 < a <= 1.
    """
    a = nu if nu <= 1.0 else nu - math.ceil(nu) + 1.0  # in (0, 1], a whole number of steps below nu
    if a == 0.5:
        low = -s
        np.exp(low, out=low)
    else:
        low = _by_bessel(s, a)
    if nu == a:
        return low, low
    if a == 0.5:
        high = 1.0 + s
        high *= low
    else:
        high = _by_bessel(s, a + 1.0)
    order = a + 1.0
    while order < nu - 0.5:
        term = s * s
        term *= low
        term /= 4.0 * order * (order - 1.0)
        term += high
        low, high = high, term
        order += 1.0
    return low, high


def slope_below_one(s: Array, nu: float) -> Array:
    """d M_nu / d r^2 with s^2 = 2 nu r^2, for nu <= 1. At s = 0 it is infinite, and 0 is returned."""
    from scipy.special import gamma, kv

    away = s > 0.0
    s = np.where(away, s, 1.0)
    fall = nu * 2.0 ** (2.0 - nu) / gamma(nu) * s ** (nu - 1.0) * kv(1.0 - nu, s)
    return np.where(away, -0.5 * fall, 0.0)


def _by_bessel(s: Array, nu: float) -> Array:
    """M_nu(s) for 0 < nu <= 2 by the Bessel function; 1 at s = 0, where s^nu K_nu(s) is 0 times infinity."""
    from scipy.special import gamma, kv

    away = s > 1e-100
    s = np.where(away, s, 1.0)
    return np.where(away, 2.0 ** (1.0 - nu) / gamma(nu) * s**nu * kv(nu, s), 1.0)
