"""The stationary kernels RBF and Matern, and the linear kernel; `gpmi.gp.kernels.base` defines their interface."""

from __future__ import annotations

import math
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
            plain = _positive_or_none("lengthscale", given)
        else:
            plain = tuple(_positive_or_none(f"lengthscale[{i}]", v) for i, v in enumerate(given))  # type: ignore[arg-type]
        object.__setattr__(self, "lengthscale", plain)
        object.__setattr__(self, "variance", _positive_or_none("variance", self.variance))

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
        theta: Array = np.log(np.append(_number(self.variance), _number(self.lengthscale)))
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
        return _known_variance(self, self.variance)

    @cached_property
    def _lengths(self) -> Array:
        self.require_known()
        return _number(self.lengthscale)

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


@dataclass(frozen=True)
class RBF(Stationary):
    """k(x, z) = v exp(-r^2 / 2), the squared exponential: samples are smooth to every order."""

    def kappa(self, r2: Array) -> Array:
        return np.exp(-0.5 * r2)

    def kappa_and_slope(self, r2: Array) -> tuple[Array, Array]:
        kappa = np.exp(-0.5 * r2)
        return kappa, -0.5 * kappa


@dataclass(frozen=True)
class Matern(Stationary):
    """k(x, z) = v M_nu(s), s = sqrt(2 nu) r, M_nu(s) = 2^(1-nu) / Gamma(nu) s^nu K_nu(s).

    Samples are differentiable k times for every k < nu. M_nu is elementary where nu is half an odd number; otherwise it
    needs Bessel functions, which are slower. nu is never learned.
    """

    nu: float = 2.5

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "nu", checks.positive("nu", self.nu))

    def _s(self, r2: Array) -> Array:
        s: Array = 2.0 * self.nu * r2
        return np.sqrt(s, out=s)

    def kappa(self, r2: Array) -> Array:
        return _unit_matern(self._s(r2), self.nu)[1]

    def kappa_and_slope(self, r2: Array) -> tuple[Array, Array]:
        s = self._s(r2)
        below, kappa = _unit_matern(s, self.nu)
        if self.nu <= 1.0:
            return kappa, _slope_below_one(s, self.nu)
        below *= -0.5 * self.nu / (self.nu - 1.0)  # d/ds [s^nu K_nu(s)] = -s^nu K_{nu-1}(s)
        return kappa, below


def _unit_matern(s: Array, nu: float) -> tuple[Array, Array]:
    """Return M_{nu-1}(s) and M_nu(s), with M(0) = 1; the first only for nu > 1.

    It uses the recurrence of K_nu: M_{a+1} = M_a + s^2 / (4 a (a-1)) M_{a-1}. All terms are positive and at most 1, so
    nothing cancels or overflows for large nu. It starts from the orders 1/2 and 3/2, which are elementary, or from the
    Bessel functions of order a and a + 1 with 0 < a <= 1.
    """
    a = nu if nu <= 1.0 else nu - math.ceil(nu) + 1.0  # in (0, 1], a whole number of steps below nu
    if a == 0.5:
        low = -s
        np.exp(low, out=low)
    else:
        low = _matern_by_bessel(s, a)
    if nu == a:
        return low, low
    if a == 0.5:
        high = 1.0 + s
        high *= low
    else:
        high = _matern_by_bessel(s, a + 1.0)
    order = a + 1.0
    while order < nu - 0.5:
        term = s * s
        term *= low
        term /= 4.0 * order * (order - 1.0)
        term += high
        low, high = high, term
        order += 1.0
    return low, high


def _slope_below_one(s: Array, nu: float) -> Array:
    """Return d M_nu / d r^2 with s^2 = 2 nu r^2, for nu <= 1. At s = 0 it is infinite, and 0 is returned."""
    from scipy.special import gamma, kv

    away = s > 0.0
    s = np.where(away, s, 1.0)
    fall = nu * 2.0 ** (2.0 - nu) / gamma(nu) * s ** (nu - 1.0) * kv(1.0 - nu, s)
    return np.where(away, -0.5 * fall, 0.0)


def _matern_by_bessel(s: Array, nu: float) -> Array:
    """Return M_nu(s) for 0 < nu <= 2 by the Bessel function; 1 at s = 0, where s^nu K_nu(s) is 0 times infinity."""
    from scipy.special import gamma, kv

    away = s > 1e-100
    s = np.where(away, s, 1.0)
    return np.where(away, 2.0 ** (1.0 - nu) / gamma(nu) * s**nu * kv(nu, s), 1.0)


@dataclass(frozen=True)
class Linear(Kernel):
    """k(x, z) = v x . z: the functions f(x) = w . x with w ~ N(0, v I). If v is None it is learned."""

    variance: float | None = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", _positive_or_none("variance", self.variance))

    @cached_property
    def known_variance(self) -> float:
        """The variance as a number. Raises ValueError if it is None."""
        return _known_variance(self, self.variance)

    @property
    def dim(self) -> int | None:
        return None

    @property
    def theta(self) -> Array:
        theta: Array = np.log(np.atleast_1d(_number(self.variance)))
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


def _squared_distances(x: Array, z: Array) -> Array:
    """Return |x_i - z_j|^2, (m, n), exactly 0 for equal points; |x|^2 + |z|^2 - 2 x.z would leave r at about 1e-8."""
    r2: Array = _cdist()(x, z, "sqeuclidean")
    return r2


@cache
def _cdist() -> Callable[..., Array]:
    from scipy.spatial.distance import cdist  # slow to import, so only when needed

    return cdist  # type: ignore[no-any-return]


def _positive_or_none(name: str, value: object) -> float | None:
    """Return a number above 0, or None for one that is learned."""
    return None if value is None else checks.positive(name, value)


def _known_variance(kernel: Kernel, variance: float | None) -> float:
    """Return the variance of a kernel whose hyper-parameters are all numbers."""
    kernel.require_known()
    assert variance is not None
    return variance


def _number(value: object) -> Array:
    """Return hyper-parameters as an array, nan where they are None."""
    return np.asarray(value, dtype=float)
