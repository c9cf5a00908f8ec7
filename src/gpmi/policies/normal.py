"""The standard normal density."""

from __future__ import annotations

import numpy as np

from gpmi._support.types import Array

LARGEST_Z = 1e150  # |z| is limited to this: the square of a z above 1e154 would overflow
_LOG_ROOT_2PI = 0.5 * float(np.log(2.0 * np.pi))


def log_pdf(z: Array) -> Array:
    """Return the logarithm of the standard normal density."""
    result: Array = -0.5 * z * z - _LOG_ROOT_2PI
    return result


def pdf(z: Array) -> Array:
    """Return the standard normal density."""
    return np.exp(log_pdf(z))
