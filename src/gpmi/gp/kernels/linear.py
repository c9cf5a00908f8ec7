"""The linear kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.kernels.base import Kernel, Pullback
from gpmi.gp.kernels.stationary import as_array, positive_or_none, variance_of


@dataclass(frozen=True)
class Linear(Kernel):
    """k(x, z) = v x . z: the functions f(x) = w . x with w ~ N(0, v I). If v is None it is learned."""

    variance: float | None = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", positive_or_none("variance", self.variance))

    @cached_property
    def known_variance(self) -> float:
        """The variance as a number. Raises ValueError if it is None."""
        return variance_of(self, self.variance)

    @property
    def dim(self) -> int | None:
        return None

    @property
    def theta(self) -> Array:
        theta: Array = np.log(np.atleast_1d(as_array(self.variance)))
        return theta

    def with_theta(self, theta: Array) -> Kernel:
        return replace(self, variance=float(np.exp(theta[0])))

    def filled(self, theta: Array) -> Kernel:
        return self.with_theta(theta) if self.variance is None else self

    def reach(self, d: int) -> Array:
        return np.full(d, np.inf)

    def __call__(self, x: Array, z: Array) -> Array:
        return self.known_variance * (x @ z.T)

    def diagonal(self, x: Array) -> Array:
        result: Array = self.known_variance * np.einsum("ij,ij->i", x, x)
        return result

    def diagonal_gradient(self, x: Array) -> Array:
        return 2.0 * self.known_variance * x

    def with_input_pullback(self, x: Array, z: Array) -> tuple[Array, Pullback]:
        return self(x, z), lambda w: self.known_variance * (w @ z)

    def with_theta_pullback(self, x: Array) -> tuple[Array, Pullback]:
        k = self(x, x)
        return k, lambda w: np.array([np.vdot(w, k)])
