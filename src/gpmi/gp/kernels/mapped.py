"""A kernel of points and of linear functions of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.kernels.base import Kernel, Pullback


@dataclass(frozen=True, eq=False)
class Mapped(Kernel):
    """k(x, z) = base((x, x A), (z, z A)) with a fixed matrix A: the base sees the coordinates and K functions of them.

    The descriptors of an option are such functions, because the coordinates of a choice are 1 for the option and 0 for
    the others.
    """

    base: Kernel  # of d + K coordinates
    matrix: Array  # A, (d, K)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapped) and self.base == other.base and np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash((self.base, self.matrix.tobytes()))

    def extended(self, x: Array) -> Array:
        """Return (x, x A), (m, d + K), of points x (m, d)."""
        return np.concatenate([x, x @ self.matrix], axis=1)

    def pulled(self, gradient: Array) -> Array:
        """Return the gradient (m, d) by x of a function whose gradient by (x, x A) is given, (m, d + K)."""
        d = len(self.matrix)
        pulled: Array = gradient[:, :d] + gradient[:, d:] @ self.matrix.T
        return pulled

    def __call__(self, x: Array, z: Array) -> Array:
        return self.base(self.extended(x), self.extended(z))

    def diagonal(self, x: Array) -> Array:
        return self.base.diagonal(self.extended(x))

    @property
    def constant_variance(self) -> float | None:
        return self.base.constant_variance

    def diagonal_gradient(self, x: Array) -> Array:
        return self.pulled(self.base.diagonal_gradient(self.extended(x)))

    def with_input_pullback(self, x: Array, z: Array) -> tuple[Array, Pullback]:
        k, pull = self.base.with_input_pullback(self.extended(x), self.extended(z))
        return k, lambda w: self.pulled(pull(w))

    def with_theta_pullback(self, x: Array) -> tuple[Array, Pullback]:
        return self.base.with_theta_pullback(self.extended(x))

    @property
    def theta(self) -> Array:
        return self.base.theta

    def with_theta(self, theta: Array) -> Kernel:
        return replace(self, base=self.base.with_theta(theta))

    @property
    def dim(self) -> int | None:
        return len(self.matrix)

    def reach(self, d: int) -> Array:
        """Along a coordinate of an option its descriptors move, too: the reach is the shortest of theirs."""
        reach = self.base.reach(d + self.matrix.shape[1])
        with np.errstate(divide="ignore"):
            moved = np.min(reach[d:] / np.abs(self.matrix), axis=1, initial=np.inf)
        result: Array = np.minimum(reach[:d], moved)
        return result
