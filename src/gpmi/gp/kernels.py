"""Covariance functions k(x, z) and their derivatives.

Derivatives are given as pullbacks: a kernel evaluates itself once and returns, with the values K, a function
that contracts any weights W of the shape of K with the derivatives of K. So no (m, n, d) array is ever built,
and sums and products of kernels need one line each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from gpmi import checks
from gpmi.types import Array

Pullback: TypeAlias = Callable[[Array], Array]


class Kernel(ABC):
    """A covariance function on R^d. Immutable; `+` and `*` combine kernels."""

    @abstractmethod
    def __call__(self, x: Array, z: Array) -> Array:
        """k(x_i, z_j) for x (m, d), z (n, d): an (m, n) matrix. O(m n d)."""

    @abstractmethod
    def diagonal(self, x: Array) -> Array:
        """k(x_i, x_i) for x (m, d): (m,). O(m d)."""

    @abstractmethod
    def diagonal_gradient(self, x: Array) -> Array:
        """d k(x_i, x_i) / d x_i for x (m, d): (m, d)."""

    @abstractmethod
    def with_input_pullback(self, x: Array, z: Array) -> tuple[Array, Pullback]:
        """K = k(x, z) and the map W (m, n) -> sum_j W_ij d k(x_i, z_j) / d x_i, (m, d). O(m n d)."""

    @abstractmethod
    def with_theta_pullback(self, x: Array) -> tuple[Array, Pullback]:
        """K = k(x, x) and the map W (n, n), symmetric -> sum_ij W_ij d K_ij / d theta, (p,). O(n^2 d)."""

    @property
    @abstractmethod
    def theta(self) -> Array:
        """The logarithms of the hyper-parameters, (p,)."""

    @abstractmethod
    def with_theta(self, theta: Array) -> Kernel:
        """The same kernel with other hyper-parameters."""

    @property
    @abstractmethod
    def dim(self) -> int | None:
        """The number of coordinates the kernel is made for; None where any will do."""

    @abstractmethod
    def reach(self, d: int) -> Array:
        """The distance along each of d coordinates over which k changes much; infinite where it never does."""

    def __add__(self, other: Kernel) -> Kernel:
        return Sum(self, other)

    def __mul__(self, other: Kernel) -> Kernel:
        return Product(self, other)


@dataclass(frozen=True)
class Stationary(Kernel):
    """v * kappa(r^2) with r^2 = sum_k (x_k - z_k)^2 / l_k^2.

    A subclass gives kappa and, with it, its fall h = -2 d kappa / d r^2, from which every derivative follows:
    dk/dx_k = -v h (x_k - z_k) / l_k^2 and dk/dlog l_k = v h (x_k - z_k)^2 / l_k^2. At distance zero, where
    h may be infinite, both are 0; h is returned as 0 there.
    """

    lengthscale: float | Sequence[float] | Array = 1.0
    variance: float = 1.0

    def __post_init__(self) -> None:
        given, shape = self.lengthscale, checks.shape(self.lengthscale)
        if isinstance(given, list | tuple | np.ndarray) and (shape is None or len(shape) > 1 or 0 in shape):
            raise ValueError(f"lengthscale is {given!r}; give one number, or one number per dimension")
        plain: float | tuple[float, ...]
        if not shape:
            plain = checks.positive("lengthscale", given)
        else:
            plain = tuple(checks.positive(f"lengthscale[{i}]", v) for i, v in enumerate(given))  # type: ignore[arg-type]
        object.__setattr__(self, "lengthscale", plain)
        object.__setattr__(self, "variance", checks.positive("variance", self.variance))

    @abstractmethod
    def _kappa(self, r2: Array) -> Array:
        """kappa(r^2), with kappa(0) = 1."""

    @abstractmethod
    def _kappa_and_fall(self, r2: Array) -> tuple[Array, Array]:
        """kappa(r^2) and h(r^2) = -2 d kappa / d r^2, which share their exponential."""

    @property
    def dim(self) -> int | None:
        return len(self.lengthscale) if isinstance(self.lengthscale, tuple) else None

    @property
    def theta(self) -> Array:
        theta: Array = np.log(np.append(self.variance, np.asarray(self.lengthscale)))
        return theta

    def with_theta(self, theta: Array) -> Kernel:
        values = np.exp(theta)
        scales = values[1:] if self.dim is not None else float(values[1])
        return replace(self, variance=float(values[0]), lengthscale=scales)

    def reach(self, d: int) -> Array:
        return np.full(d, self.lengthscale)

    @cached_property
    def _lengths(self) -> Array:
        return np.asarray(self.lengthscale)

    def _check(self, x: Array) -> None:
        if self._lengths.shape not in ((), x.shape[-1:]):
            raise ValueError(
                f"the kernel has {self.dim} lengthscales but the points have {x.shape[-1]} coordinates; "
                "give one lengthscale per coordinate, or a single number for all"
            )

    def _scaled(self, x: Array) -> Array:
        self._check(x)
        scaled: Array = x / self._lengths
        return scaled

    def __call__(self, x: Array, z: Array) -> Array:
        return self.variance * self._kappa(_squared_distances(self._scaled(x), self._scaled(z)))

    def diagonal(self, x: Array) -> Array:
        self._check(x)
        return np.full(len(x), self.variance)

    def diagonal_gradient(self, x: Array) -> Array:
        return np.zeros_like(x)

    def with_input_pullback(self, x: Array, z: Array) -> tuple[Array, Pullback]:
        xs, zs = self._scaled(x), self._scaled(z)
        kappa, fall = self._kappa_and_fall(_squared_distances(xs, zs))

        def pull(w: Array) -> Array:
            wh = w * fall
            # sum_j wh_ij (x_i - z_j) as two products; the common shift keeps them small.
            shift = zs[:1]
            gradient: Array = wh @ (zs - shift)
            gradient -= (xs - shift) * wh.sum(axis=1, keepdims=True)
            gradient *= self.variance / self._lengths
            return gradient

        return self.variance * kappa, pull

    def with_theta_pullback(self, x: Array) -> tuple[Array, Pullback]:
        xs = self._scaled(x)
        r2 = _squared_distances(xs, xs)
        kappa, fall = self._kappa_and_fall(r2)
        k = self.variance * kappa

        def pull(w: Array) -> Array:
            wh = w * fall
            by_variance = float(np.vdot(w, k))
            if self.dim is None:
                by_scale = np.array([self.variance * float(np.vdot(wh, r2))])
            else:  # sum_ij wh_ij (x_ik - x_jk)^2 = 2 sum_i x_ik^2 (wh 1)_i - 2 x_k^T wh x_k
                c = xs - xs.mean(axis=0)
                by_scale = 2.0 * self.variance * ((c * c).T @ wh.sum(axis=1) - ((wh @ c) * c).sum(axis=0))
            gradient: Array = np.append(by_variance, by_scale)
            return gradient

        return k, pull


@dataclass(frozen=True)
class RBF(Stationary):
    """k(x, z) = v exp(-r^2 / 2), the squared exponential: samples are smooth to every order."""

    def _kappa(self, r2: Array) -> Array:
        return np.exp(-0.5 * r2)

    def _kappa_and_fall(self, r2: Array) -> tuple[Array, Array]:
        kappa = self._kappa(r2)
        return kappa, kappa


@dataclass(frozen=True)
class Matern(Stationary):
    """k(x, z) = v M_nu(s), s = sqrt(2 nu) r, M_nu(s) = 2^(1-nu) / Gamma(nu) s^nu K_nu(s).

    Samples are differentiable k times for every k < nu. Elementary for nu half an odd number, by Bessel
    functions otherwise. nu is fixed: it is not among the hyper-parameters that are learned.
    """

    nu: float = 2.5

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "nu", checks.positive("nu", self.nu))

    def _kappa(self, r2: Array) -> Array:
        return _unit_matern(np.sqrt(2.0 * self.nu * r2), self.nu)[1]

    def _kappa_and_fall(self, r2: Array) -> tuple[Array, Array]:
        s = np.sqrt(2.0 * self.nu * r2)
        below, kappa = _unit_matern(s, self.nu)
        if self.nu > 1.0:  # d/ds [s^nu K_nu(s)] = -s^nu K_{nu-1}(s)
            below *= self.nu / (self.nu - 1.0)
            return kappa, below
        from scipy.special import gamma, kv

        away = s > 0.0
        s = np.where(away, s, 1.0)
        fall = self.nu * 2.0 ** (2.0 - self.nu) / gamma(self.nu) * s ** (self.nu - 1.0) * kv(1.0 - self.nu, s)
        return kappa, np.where(away, fall, 0.0)


@dataclass(frozen=True)
class Linear(Kernel):
    """k(x, z) = v x . z: the functions f(x) = w . x with w ~ N(0, v I)."""

    variance: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", checks.positive("variance", self.variance))

    @property
    def dim(self) -> int | None:
        return None

    @property
    def theta(self) -> Array:
        result: Array = np.log(np.array([self.variance]))
        return result

    def with_theta(self, theta: Array) -> Kernel:
        return replace(self, variance=float(np.exp(theta[0])))

    def reach(self, d: int) -> Array:
        return np.full(d, np.inf)

    def __call__(self, x: Array, z: Array) -> Array:
        return self.variance * (x @ z.T)

    def diagonal(self, x: Array) -> Array:
        result: Array = self.variance * np.einsum("ij,ij->i", x, x)
        return result

    def diagonal_gradient(self, x: Array) -> Array:
        return 2.0 * self.variance * x

    def with_input_pullback(self, x: Array, z: Array) -> tuple[Array, Pullback]:
        return self(x, z), lambda w: self.variance * (w @ z)

    def with_theta_pullback(self, x: Array) -> tuple[Array, Pullback]:
        k = self(x, x)
        return k, lambda w: np.array([np.vdot(w, k)])


@dataclass(frozen=True)
class _Pair(Kernel):
    """What sums and products have in common."""

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


def _squared_distances(x: Array, z: Array) -> Array:
    """|x_i - z_j|^2, exactly 0 for equal points: |x|^2 + |z|^2 - 2 x.z would leave 1e-8 in r."""
    from scipy.spatial.distance import cdist

    r2: Array = cdist(x, z, "sqeuclidean")
    return r2


def _unit_matern(s: Array, nu: float) -> tuple[Array, Array]:
    """M_{nu-1}(s) and M_nu(s) = 2^(1-nu) / Gamma(nu) s^nu K_nu(s), with M(0) = 1; the first only for nu > 1.

    From the recurrence of K_nu: M_{a+1} = M_a + s^2 / (4 a (a-1)) M_{a-1}. All terms are positive and bounded
    by 1, so it neither cancels nor overflows for large nu. It starts at 1/2 and 3/2, which are elementary, or at
    the Bessel functions of order a and a + 1 with 0 < a <= 1.
    """
    a = nu if nu <= 1.0 else nu - np.ceil(nu) + 1.0  # in (0, 1], a whole number of steps below nu
    low = np.exp(-s) if a == 0.5 else _bessel_matern(s, a)
    if nu == a:
        return low, low
    high = (1.0 + s) * low if a == 0.5 else _bessel_matern(s, a + 1.0)
    order = a + 1.0
    while order < nu - 0.5:
        term = s * s
        term *= low
        term /= 4.0 * order * (order - 1.0)
        term += high
        low, high = high, term
        order += 1.0
    return low, high


def _bessel_matern(s: Array, nu: float) -> Array:
    """M_nu(s) for 0 < nu <= 2 by the Bessel function; 1 at s = 0, where s^nu K_nu(s) is 0 times infinity."""
    from scipy.special import gamma, kv

    away = s > 1e-100
    s = np.where(away, s, 1.0)
    return np.where(away, 2.0 ** (1.0 - nu) / gamma(nu) * s**nu * kv(nu, s), 1.0)
