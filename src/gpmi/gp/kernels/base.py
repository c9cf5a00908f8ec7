"""The base class of covariance functions, and their sums and products.

Derivatives are pullbacks. A kernel evaluates itself once and returns the values K together with a function. That
function contracts any weights W of the shape of K with the derivatives of K. So no (m, n, d) array is ever built, and
sums and products of kernels need one line each.

A hyper-parameter that is None is unknown, and `gpmi.Optimizer` learns it. A kernel with an unknown hyper-parameter is a
template: it can be evaluated only after numbers are filled in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from gpmi._support.types import Array

Pullback: TypeAlias = Callable[[Array], Array]


class Kernel(ABC):
    """A covariance function on R^d. Immutable; `+` and `*` combine kernels."""

    @abstractmethod
    def __call__(self, x: Array, z: Array) -> Array:
        """Return k(x_i, z_j) for x (m, d), z (n, d): an (m, n) matrix. O(m n d)."""

    @abstractmethod
    def diagonal(self, x: Array) -> Array:
        """Return k(x_i, x_i) for x (m, d): (m,). O(m d)."""

    @property
    def constant_variance(self) -> float | None:
        """k(x, x) if it is the same at every x; None if it may depend on x."""
        return None

    @abstractmethod
    def diagonal_gradient(self, x: Array) -> Array:
        """Return d k(x_i, x_i) / d x_i for x (m, d): (m, d)."""

    @abstractmethod
    def with_input_pullback(self, x: Array, z: Array) -> tuple[Array, Pullback]:
        """Return K = k(x, z) and the map W (m, n) -> sum_j W_ij d k(x_i, z_j) / d x_i, (m, d). O(m n d)."""

    @abstractmethod
    def with_theta_pullback(self, x: Array) -> tuple[Array, Pullback]:
        """Return K = k(x, x) and the map W (n, n), symmetric -> sum_ij W_ij d K_ij / d theta, (p,). O(n^2 d)."""

    @property
    @abstractmethod
    def theta(self) -> Array:
        """The logarithms of the hyper-parameters, (p,); nan where one is None."""

    @abstractmethod
    def with_theta(self, theta: Array) -> Kernel:
        """Return the same kernel with other hyper-parameters."""

    @property
    @abstractmethod
    def dim(self) -> int | None:
        """The number of coordinates that the kernel needs; None if it accepts any number."""

    @abstractmethod
    def reach(self, d: int) -> Array:
        """Return the distance along each of d coordinates over which k changes much, (d,); infinite for a linear
        kernel.
        """

    def for_dim(self, d: int) -> Kernel:
        """Return the same kernel, with one lengthscale to learn for each of d coordinates where lengthscale is None."""
        return self

    def filled(self, theta: Array) -> Kernel:
        """Return the kernel with exp(theta_i) in place of each hyper-parameter i that is None."""
        return self

    @property
    def unknown(self) -> bool:
        """Whether a hyper-parameter is None. Such a kernel cannot be evaluated until it is learned."""
        return bool(np.isnan(self.theta).any())

    def require_known(self) -> None:
        """Raise ValueError if a hyper-parameter is None."""
        if self.unknown:
            raise ValueError(
                f"the kernel {self!r} has hyper-parameters that are None, so it has no values yet; "
                "give numbers, or pass the kernel to gpmi.Optimizer or gpmi.maximize, which learn them"
            )

    def __add__(self, other: Kernel) -> Kernel:
        return Sum(self, other)

    def __mul__(self, other: Kernel) -> Kernel:
        return Product(self, other)


@dataclass(frozen=True)
class _Pair(Kernel):
    """The common part of sums and products."""

    first: Kernel
    second: Kernel

    def __post_init__(self) -> None:
        for kernel in (self.first, self.second):
            if not isinstance(kernel, Kernel):
                raise TypeError(f"cannot combine a kernel with {kernel!r}; both sides must be kernels")
        if None not in (self.first.dim, self.second.dim) and self.first.dim != self.second.dim:
            raise ValueError(f"cannot combine a kernel for {self.first.dim} coordinates with one for {self.second.dim}")

    @property
    def dim(self) -> int | None:
        return self.first.dim if self.first.dim is not None else self.second.dim

    def reach(self, d: int) -> Array:
        return np.minimum(self.first.reach(d), self.second.reach(d))

    @property
    def theta(self) -> Array:
        return np.concatenate([self.first.theta, self.second.theta])

    def with_theta(self, theta: Array) -> Kernel:
        p = len(self.first.theta)
        return replace(self, first=self.first.with_theta(theta[:p]), second=self.second.with_theta(theta[p:]))

    def for_dim(self, d: int) -> Kernel:
        return replace(self, first=self.first.for_dim(d), second=self.second.for_dim(d))

    def filled(self, theta: Array) -> Kernel:
        p = len(self.first.theta)
        return replace(self, first=self.first.filled(theta[:p]), second=self.second.filled(theta[p:]))


@dataclass(frozen=True)
class Sum(_Pair):
    """k1 + k2: the sum of two independent functions."""

    def __call__(self, x: Array, z: Array) -> Array:
        return self.first(x, z) + self.second(x, z)

    def diagonal(self, x: Array) -> Array:
        return self.first.diagonal(x) + self.second.diagonal(x)

    def diagonal_gradient(self, x: Array) -> Array:
        return self.first.diagonal_gradient(x) + self.second.diagonal_gradient(x)

    def with_input_pullback(self, x: Array, z: Array) -> tuple[Array, Pullback]:
        (a, pull_a), (b, pull_b) = self.first.with_input_pullback(x, z), self.second.with_input_pullback(x, z)
        return a + b, lambda w: pull_a(w) + pull_b(w)

    def with_theta_pullback(self, x: Array) -> tuple[Array, Pullback]:
        (a, pull_a), (b, pull_b) = self.first.with_theta_pullback(x), self.second.with_theta_pullback(x)
        return a + b, lambda w: np.concatenate([pull_a(w), pull_b(w)])


@dataclass(frozen=True)
class Product(_Pair):
    """k1 * k2."""

    def __call__(self, x: Array, z: Array) -> Array:
        return self.first(x, z) * self.second(x, z)

    def diagonal(self, x: Array) -> Array:
        return self.first.diagonal(x) * self.second.diagonal(x)

    def diagonal_gradient(self, x: Array) -> Array:
        a, b = self.first.diagonal(x)[:, None], self.second.diagonal(x)[:, None]
        return a * self.second.diagonal_gradient(x) + b * self.first.diagonal_gradient(x)

    def with_input_pullback(self, x: Array, z: Array) -> tuple[Array, Pullback]:
        (a, pull_a), (b, pull_b) = self.first.with_input_pullback(x, z), self.second.with_input_pullback(x, z)
        return a * b, lambda w: pull_a(w * b) + pull_b(w * a)

    def with_theta_pullback(self, x: Array) -> tuple[Array, Pullback]:
        (a, pull_a), (b, pull_b) = self.first.with_theta_pullback(x), self.second.with_theta_pullback(x)
        return a * b, lambda w: np.concatenate([pull_a(w * b), pull_b(w * a)])
