"""Stationary kernels; `gpmi.gp.kernels.base` defines their interface."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array
from gpmi.gp.kernels.base import Kernel, Pullback

TOGETHER = 2**15  # values of k computed together: intermediate arrays stay in the cache; measured, three times faster


@dataclass(frozen=True)
class Stationary(Kernel):
    """k(x, z) = v kappa(r^2), r^2 = sum_k (x_k - z_k)^2 / l_k^2, with v the variance and l the lengthscale.

    A number is a fixed value, the default 1.0 included; None means that it is learned. `lengthscale` may be one number
    for all coordinates, or a sequence with a number or None for each.

    A subclass defines `kappa_and_slope`, from which everything else follows: with h = d kappa / d r^2,
    dk/dx_k = 2 v h (x_k - z_k) / l_k^2 and dk/dlog l_k = -2 v h (x_k - z_k)^2 / l_k^2.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class RationalQuadratic(Stationary):
    ...     alpha: float = 1.0
    ...     def kappa_and_slope(self, r2):
    ...         base = 1.0 + r2 / (2.0 * self.alpha)
    ...         kappa = base**-self.alpha
    ...         return kappa, -0.5 * kappa / base
    >>> RationalQuadratic(lengthscale=0.5)(np.zeros((1, 1)), np.ones((1, 1))).item()
    0.3333333333333333
    """

    lengthscale: float | Sequence[float | None] | Array | None = 1.0
    variance: float | None = 1.0

    def __post_init__(self) -> None:
        given, shape = self.lengthscale, checks.shape(self.lengthscale)
        if isinstance(given, list | tuple | np.ndarray) and (shape is None or len(shape) > 1 or 0 in shape):
            raise ValueError(f"lengthscale is {given!r}; give one number, or one number per dimension")
        plain: float | tuple[float | None, ...] | None
        if not shape:
            plain = positive_or_none("lengthscale", given)
        else:
            plain = tuple(positive_or_none(f"lengthscale[{i}]", v) for i, v in enumerate(given))  # type: ignore[arg-type]
        object.__setattr__(self, "lengthscale", plain)
        object.__setattr__(self, "variance", positive_or_none("variance", self.variance))

    @abstractmethod
    def kappa_and_slope(self, r2: Array) -> tuple[Array, Array]:
        """Return kappa(r^2) with kappa(0) = 1, and its derivative by r^2.

        The derivative must be finite. Where it is infinite at r = 0, return any number there: it is multiplied by 0.
        """

    def kappa(self, r2: Array) -> Array:
        """Return kappa(r^2) alone. A subclass may override it with a faster version."""
        return self.kappa_and_slope(r2)[0]

    @property
    def dim(self) -> int | None:
        return len(self.lengthscale) if isinstance(self.lengthscale, tuple) else None

    @property
    def theta(self) -> Array:
        theta: Array = np.log(np.append(as_array(self.variance), as_array(self.lengthscale)))
        return theta

    def with_theta(self, theta: Array) -> Kernel:
        values = np.exp(theta)
        scales = values[1:] if self.dim is not None else float(values[1])
        return replace(self, variance=float(values[0]), lengthscale=scales)

    def for_dim(self, d: int) -> Kernel:
        return replace(self, lengthscale=(None,) * d) if self.lengthscale is None else self

    def filled(self, theta: Array) -> Kernel:
        variance, *scales = np.exp(theta).tolist()
        if isinstance(self.lengthscale, tuple):
            scales = [new if old is None else old for old, new in zip(self.lengthscale, scales, strict=True)]
        return replace(
            self,
            variance=variance if self.variance is None else self.variance,
            lengthscale=self.lengthscale if isinstance(self.lengthscale, float) else scales,
        )

    def reach(self, d: int) -> Array:
        return np.full(d, self._lengths)

    @cached_property
    def known_variance(self) -> float:
        """The variance as a number. Raises ValueError if a hyper-parameter is None."""
        return variance_of(self, self.variance)

    @cached_property
    def _lengths(self) -> Array:
        self.require_known()
        return as_array(self.lengthscale)

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
        xs, zs = self._scaled(x), self._scaled(z)
        if len(xs) * len(zs) <= 2 * TOGETHER:
            return self.known_variance * self.kappa(_squared_distances(xs, zs))
        k, rows = np.empty((len(xs), len(zs))), max(1, TOGETHER // len(zs))
        for begin in range(0, len(xs), rows):
            part = slice(begin, begin + rows)
            np.multiply(self.known_variance, self.kappa(_squared_distances(xs[part], zs)), out=k[part])
        return k

    def diagonal(self, x: Array) -> Array:
        self._check(x)
        return np.full(len(x), self.known_variance)

    @property
    def constant_variance(self) -> float:
        return self.known_variance

    def diagonal_gradient(self, x: Array) -> Array:
        return np.zeros_like(x)

    def with_input_pullback(self, x: Array, z: Array) -> tuple[Array, Pullback]:
        xs, zs = self._scaled(x), self._scaled(z)
        kappa, slope = self.kappa_and_slope(_squared_distances(xs, zs))

        def pull(w: Array) -> Array:
            wh = w * slope
            # sum_j wh_ij (x_i - z_j) as two products. Both are measured from z_0, so that less cancels between them.
            shift = zs[:1]
            gradient: Array = wh @ (zs - shift)
            gradient -= (xs - shift) * wh.sum(axis=1, keepdims=True)
            gradient *= -2.0 * self.known_variance / self._lengths
            return gradient

        return self.known_variance * kappa, pull

    def with_theta_pullback(self, x: Array) -> tuple[Array, Pullback]:
        xs = self._scaled(x)
        r2 = _squared_distances(xs, xs)
        kappa, slope = self.kappa_and_slope(r2)
        k = self.known_variance * kappa

        def pull(w: Array) -> Array:
            wh = w * slope
            by_variance = float(np.vdot(w, k))
            if self.dim is None:
                by_scale = np.array([-2.0 * self.known_variance * float(np.vdot(wh, r2))])
            else:  # sum_ij wh_ij (x_ik - x_jk)^2 = 2 sum_i x_ik^2 (wh 1)_i - 2 x_k^T wh x_k
                c = xs - xs.mean(axis=0)
                by_scale = -4.0 * self.known_variance * ((c * c).T @ wh.sum(axis=1) - ((wh @ c) * c).sum(axis=0))
            gradient: Array = np.append(by_variance, by_scale)
            return gradient

        return k, pull


def _squared_distances(x: Array, z: Array) -> Array:
    """Return |x_i - z_j|^2, (m, n), exactly 0 for equal points; |x|^2 + |z|^2 - 2 x.z would leave r at about 1e-8."""
    r2: Array = _cdist()(x, z, "sqeuclidean")
    return r2


@cache
def _cdist() -> Callable[..., Array]:
    from scipy.spatial.distance import cdist  # slow to import, so only when needed

    return cdist  # type: ignore[no-any-return]


def positive_or_none(name: str, value: object) -> float | None:
    """Return a number above 0, or None for one that is learned."""
    return None if value is None else checks.positive(name, value)


def variance_of(kernel: Kernel, variance: float | None) -> float:
    """Return the variance of a kernel whose hyper-parameters are all numbers."""
    kernel.require_known()
    assert variance is not None
    return variance


def as_array(value: object) -> Array:
    """Return hyper-parameters as an array, nan where they are None."""
    return np.asarray(value, dtype=float)
