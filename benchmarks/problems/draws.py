"""Draws of Gaussian processes whose hyper-parameters are drawn as well, for tests of a learned prior.

`make(seed)` returns a function on the unit cube. The dimension, the smoothness and whether there is one lengthscale or
one for each coordinate follow from the seed. Lengthscales and noise are random. f has variance 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .functions import Array

FEATURES = 2048  # cosines in a draw
SCREEN, STARTS = 14, 32  # log2 of the points that are screened for the maximum, and how many of them are climbed from
SMOOTHNESS = (1.5, 2.5, np.inf)


@dataclass(frozen=True, eq=False)
class Draw:
    """f(x) = sqrt(2 / m) sum_j w_j cos(omega_j . x + b_j), a draw of a Matern or, for nu = infinity, an RBF kernel."""

    d: int
    nu: float
    lengthscale: Array  # (d,)
    noise_sd: float
    omega: Array  # (m, d)
    phase: Array  # (m,)
    weights: Array  # (m,)

    def __call__(self, x: Array) -> float:
        return float(self.weights @ np.cos(self.omega @ x + self.phase))

    def gradient(self, x: Array) -> Array:
        return -(self.weights * np.sin(self.omega @ x + self.phase)) @ self.omega

    @cached_property
    def maximum(self) -> float:
        """Return the largest value found by L-BFGS from the best of many quasi-random points."""
        from scipy.optimize import minimize
        from scipy.stats import qmc

        points = qmc.Sobol(self.d, seed=0).random(2**SCREEN)
        short = (points @ self.omega.T + self.phase).astype(np.float32)  # only to choose starts
        best = points[np.argsort(-(np.cos(short) @ self.weights.astype(np.float32)))[:STARTS]]
        ends = [
            minimize(lambda x: -self(x), x, jac=lambda x: -self.gradient(x), bounds=[(0.0, 1.0)] * self.d,
                     method="L-BFGS-B", options={"ftol": 1e-14})
            for x in best
        ]  # fmt: skip
        return max(-float(end.fun) for end in ends)

    @property
    def name(self) -> str:
        shape = "one lengthscale" if np.ptp(self.lengthscale) == 0.0 else "lengthscales"
        return f"d = {self.d}, nu = {self.nu:g}, {shape}"


def random_draw(d: int, seed: int, stream: int) -> Draw:
    """Return a draw in d dimensions without noise. The seed decides the kernel and whether it has one lengthscale."""
    rng = np.random.default_rng([seed, stream, d])
    return _drawn(d, SMOOTHNESS[seed % 3], bool(seed // 3 % 2), rng, noisy=False)


def make(seed: int) -> Draw:
    """Return the draw of a seed. 30 settings take turns: d = 2 to 6, three kernels, one lengthscale or several."""
    rng = np.random.default_rng([seed, 13])
    return _drawn(2 + seed % 5, SMOOTHNESS[seed // 5 % 3], bool(seed // 15 % 2), rng, noisy=True)


def _drawn(d: int, nu: float, several: bool, rng: np.random.Generator, *, noisy: bool) -> Draw:
    # Lengthscales grow with sqrt(d), as the distance between two points does. Our choices.
    scale = np.sqrt(d / 2.0) * np.exp(rng.uniform(np.log(0.15), np.log(0.6)))
    lengthscale = scale * np.exp(0.5 * rng.standard_normal(d) if several else np.zeros(d))
    noise_sd = float(np.exp(rng.uniform(np.log(1e-3), np.log(0.1)))) if noisy else 0.0
    omega = rng.standard_normal((FEATURES, d)) / lengthscale
    if np.isfinite(nu):
        omega *= np.sqrt(nu / rng.standard_gamma(nu, FEATURES))[:, None]
    phase = rng.uniform(0.0, 2.0 * np.pi, FEATURES)
    weights = rng.standard_normal(FEATURES) * np.sqrt(2.0 / FEATURES)
    return Draw(d, nu, lengthscale, noise_sd, omega, phase, weights)
