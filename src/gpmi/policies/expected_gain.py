"""The expected improvement of a standard normal variable, accurate far from 0."""

from __future__ import annotations

import numpy as np

from gpmi._support.types import Array
from gpmi.policies.normal import log_pdf, pdf


def log_h(z: Array) -> Array:
    """Return log(pdf(z) + z cdf(z)), accurate to 1e-11 for every z; -inf where z^2 overflows.

    For z < -1 it is log pdf(z) + log(1 - a r(a)) with a = -z and Mills' ratio r = sqrt(pi/2) erfcx(a / sqrt 2); for
    a > 50, where the difference cancels, 1 - a r(a) = a^-2 (1 - 3 a^-2 + 15 a^-4 - 105 a^-6 + ...).
    """
    from scipy.special import erfcx, ndtr

    near = np.maximum(z, -1.0)
    log: Array = np.log(pdf(near) + near * ndtr(near))
    if np.all(z >= -1.0):
        return log
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        a = np.maximum(-z, 1.0)
        middle = np.minimum(a, 50.0)
        tail = np.log(1.0 - middle * np.sqrt(np.pi / 2.0) * erfcx(middle / np.sqrt(2.0)))
        b = 1.0 / (a * a)
        far = np.log(b) + np.log1p(-3.0 * b + 15.0 * b**2 - 105.0 * b**3)
        log = np.where(z < -1.0, log_pdf(z) + np.where(a > 50.0, far, tail), log)
    return log
