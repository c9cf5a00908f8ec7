"""A kernel scaled and shifted by a constant."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.kernels.base import Kernel, Pullback


@dataclass(frozen=True)
class AffineKernel(Kernel):
    """factor * k + constant: sqrt(factor) times a draw of k, plus an unknown constant mean that is N(0, constant)."""

    base: Kernel
    factor: float = 1.0
    constant: float = 0.0

    def __call__(self, x: Array, z: Array) -> Array:
        return self.factor * self.base(x, z) + self.constant

    def diagonal(self, x: Array) -> Array:
        return self.factor * self.base.diagonal(x) + self.constant

    def diagonal_gradient(self, x: Array) -> Array:
        return self.factor * self.base.diagonal_gradient(x)

    def with_input_pullback(self, x: Array, z: Array) -> tuple[Array, Pullback]:
        k, pull = self.base.with_input_pullback(x, z)
        return self.factor * k + self.constant, lambda w: self.factor * pull(w)

    def with_theta_pullback(self, x: Array) -> tuple[Array, Pullback]:
        k, pull = self.base.with_theta_pullback(x)
        by_factor, by_constant = self.factor * k, np.full_like(k, self.constant)

        def pulled(w: Array) -> Array:
            slopes = [float((w * by_factor).sum()), float((w * by_constant).sum())]
            return np.concatenate([self.factor * pull(w), slopes])

        return by_factor + by_constant, pulled

    @property
    def theta(self) -> Array:
        with np.errstate(divide="ignore"):  # no constant at all
            return np.append(self.base.theta, np.log([self.factor, self.constant]))

    def with_theta(self, theta: Array) -> Kernel:
        factor, constant = np.exp(theta[-2:]).tolist()
        return replace(self, base=self.base.with_theta(theta[:-2]), factor=factor, constant=constant)

    @property
    def dim(self) -> int | None:
        return self.base.dim

    def reach(self, d: int) -> Array:
        return self.base.reach(d)
