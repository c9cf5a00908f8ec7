"""The squared exponential kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.kernels.stationary import Stationary


@dataclass(frozen=True)
class RBF(Stationary):
    """k(x, z) = v exp(-r^2 / 2), the squared exponential: samples are smooth to every order."""

    def kappa(self, r2: Array) -> Array:
        return np.exp(-0.5 * r2)

    def kappa_and_slope(self, r2: Array) -> tuple[Array, Array]:
        kappa = np.exp(-0.5 * r2)
        return kappa, -0.5 * kappa
