"""Draw functions from a posterior: joint values at some points, and functions that continue them everywhere.

`Draw` is one function. Its values are drawn batch by batch, each given all earlier ones. `PathSampler` draws many
functions at once through the same points; the result, `Paths`, can be evaluated anywhere, with gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpmi._support.sobol import sobol
from gpmi._support.types import Array
from gpmi.gp.conditioned import Conditioned, ConditionedKernel
from gpmi.gp.kernels import RBF, AffineKernel, Kernel, Levels, Linear, Mapped, Matern, Product, Pullback, Sum
from gpmi.gp.linalg import Factor, NotPositiveDefinite, one_blas_thread
from gpmi.gp.posterior import LARGEST_NUGGET, Posterior

# Every drawn value has an independent error of this standard deviation, in prior standard deviations. Without it the
# covariance of almost equal points would be singular. Our choice: a variance of 1e-10 is a hundred times the smallest
# pivot that `linalg` accepts, and no regret is resolved more finely than 1e-5 prior sd. Where the covariance has larger
# rounding errors, because C is nearly singular, the variance is ten times larger until that is enough (`_blurred`).
_BLUR, _BLUR_VAR = 1e-5, 1e-10
_OPEN = 0.03  # the sd of f, in prior sd, that may remain between the points of a sampler: our choice, not tuned
FEATURES = 512  # random features of a path, our choice: the error of k is 1 / sqrt(512) = 4 %, less with Sobol points
_INSIDE = 1e-12  # uniform numbers stay this far from 0 and 1, where the normal quantile is infinite; our choice

Features: TypeAlias = Callable[[Array], tuple[Array, Pullback]]  # z (m, d) -> phi (m, F), and W -> W . d phi / dz


class Draw:
    """One draw of f from a posterior, evaluated batch by batch: each value is drawn given all values before it."""

    def __init__(self, posterior: Posterior, rng: np.random.Generator) -> None:
        self._posterior, self._rng = posterior, rng
        self._z: Array | None = None
        self._noise = np.empty(0)
        self._factor = Factor.empty()
        self._more = 1.0  # how many times _BLUR_VAR the variance of the error is

    @one_blas_thread
    def __call__(self, z: Array) -> Array:
        """Draw f(z) for z (k, d), each value with an independent error of 1e-5 prior standard deviations, usually.

        O(n^2 (m + k) + m^2 k + k^3) if m points were evaluated before.
        """
        posterior, k, prior = self._posterior, len(z), self._posterior.kernel.diagonal(z)
        block = posterior.covariance(z)
        block[np.diag_indices(k)] += self._more * _BLUR_VAR * prior
        cross = np.empty((0, k)) if self._z is None else posterior.covariance(self._z, z)
        self._z = z if self._z is None else np.concatenate([self._z, z])
        try:
            self._factor, _ = self._factor.append_block(cross, block, prior)
        except NotPositiveDefinite:  # the values drawn before are then known only up to the larger error
            prior = posterior.kernel.diagonal(self._z)
            self._factor, self._more = _blurred(
                posterior.covariance(self._z), _BLUR_VAR * prior, prior, least=self._more
            )
        self._noise = np.append(self._noise, self._rng.standard_normal(k))
        draw: Array = posterior.mu(z) + self._factor.rows(self._factor.n - k) @ self._noise  # ~ N(mu, L L^T)
        return draw


def _blurred(covariance: Array, blur_var: Array, prior: Array, least: float = 1.0) -> tuple[Factor, float]:
    """Return the factor of a covariance (k, k) with independent errors, and how many times blur_var (k,) these have.

    It is `least`, or ten times more until that is enough, up to LARGEST_NUGGET of the prior variance (k,). O(k^3).
    """
    times = least
    while True:
        block = covariance + np.diag(times * blur_var)
        try:
            return Factor.empty().append_block(np.empty((0, len(block))), block, prior)[0], times
        except NotPositiveDefinite:
            times *= 10.0
            if times * _BLUR_VAR > 2.0 * LARGEST_NUGGET:  # more than rounding above it
                raise


class PathSampler(NamedTuple):
    """Points z at which paths are drawn jointly, and the matrices that all these paths share."""

    posterior: Posterior
    z: Array  # (K, d)
    blur: Array  # (K,), the standard deviation of the independent error of each value drawn at z
    factor: Factor  # of cov(z, z) + blur^2
    v: Array  # (n, K), L^-1 k(x, z), L the factor of C

    @staticmethod
    def of(posterior: Posterior, z: Array) -> PathSampler:
        """Build the sampler of a posterior and points z (K, d). O(n^2 K + n K^2 + K^3)."""
        v = posterior.whiten(z) if posterior.n else np.empty((0, len(z)))
        blur = _BLUR * np.sqrt(posterior.kernel.diagonal(z))
        factor, times = _blurred(posterior.kernel(z, z) - v.T @ v, blur**2, posterior.kernel.diagonal(z))
        return PathSampler(posterior, z, blur * math.sqrt(times), factor, v)

    def is_uncertain_at(self, probes: Array) -> bool:
        """Return whether the sd of f at a probe of (m, d) exceeds _OPEN prior sd even with f known at z. O(K^2 m)."""
        if len(probes) == 0:
            return False
        var = self.posterior(probes)[1]
        given = self.factor.solve(self.posterior.covariance(self.z, probes))
        var = var - np.einsum("ij,ij->j", given, given)
        return bool(np.any(var > _OPEN**2 * self.posterior.kernel.diagonal(probes)))

    def paths(self, size: int, rng: np.random.Generator, *, rough: bool, count: int = FEATURES) -> Paths:
        """Draw `size` paths. O(size (n + K) (n + K + F)).

        If `rough`, `count` random features make a path vary between the points z as a draw of the posterior does.
        Otherwise, and if the kernel has no random features, a path is the conditional mean between the points.
        """
        posterior = self.posterior
        normal = rng.standard_normal((len(self.z), size))
        values = posterior.mu(self.z)[:, None] + self.factor.rows() @ normal  # ~ N(mu, L L^T)
        residual = posterior.y - posterior.prior_mean(posterior.x)
        off_z, off_x = values - posterior.prior_mean(self.z)[:, None], np.tile(residual[:, None], size)
        features, w = None, np.empty((0, size))
        if rough:
            features = random_features(posterior.kernel, self.z.shape[1], count, rng)
        if features is not None:
            w = rng.standard_normal((features(self.z[:1])[0].shape[1], size))
            off_z = off_z - features(self.z)[0] @ w - self.blur[:, None] * rng.standard_normal(values.shape)
            if posterior.n:
                noise = np.sqrt(posterior.noise + posterior.jitter)[:, None]
                off_x = off_x - features(posterior.x)[0] @ w - noise * rng.standard_normal(off_x.shape)
        # Solve with the joint covariance of (x, z) by block elimination: cov(z, z) is its Schur complement of C.
        whitened = posterior.factor.solve(off_x) if posterior.n else off_x
        by_z = self.factor.solve_transposed(self.factor.solve(off_z - self.v.T @ whitened))
        by_x = posterior.factor.solve_transposed(whitened - self.v @ by_z) if posterior.n else off_x
        centres = np.concatenate([posterior.x.reshape(-1, self.z.shape[1]), self.z])
        return Paths(posterior, self.z, values, centres, np.concatenate([by_x, by_z]), features, w)


class Paths(NamedTuple):
    """Draws of f that are exact and joint at z, continued to functions f_s = mean + phi . w_s + k(., centres) v_s.

    The weights v_s give f_s the values drawn at z. Without features, f_s is the conditional mean given these values and
    the observations. With features, phi . w_s ~ GP(0, k) up to the error of the features, and v_s corrects it: at an
    observed point f_s is the observation minus a draw of the noise. Then f_s varies between the points as a draw of the
    posterior does (Matheron's rule; Wilson et al. 2020).
    """

    posterior: Posterior
    z: Array  # (K, d)
    values: Array  # (K, size), f at z
    centres: Array  # (n + K, d), the observed points and z
    v: Array  # (n + K, size)
    features: Features | None
    w: Array  # (F, size)

    def __call__(self, z: Array, which: NDArray[np.intp]) -> tuple[Array, Array]:
        """Return path which[i] at z_i, (m,), and its gradient there, (m, d). O(m (n + K + F) d)."""
        k, pull_k = self.posterior.kernel.with_input_pullback(z, self.centres)
        v, trend = self.v.T[which], self.posterior.trend
        value, gradient = self.posterior.prior_mean(z) + np.einsum("ij,ij->i", k, v), pull_k(v)
        if trend is not None:
            gradient = gradient + trend.gradient(z)
        if self.features is not None:
            phi, pull_phi = self.features(z)
            w = self.w.T[which]
            value, gradient = value + np.einsum("ij,ij->i", phi, w), gradient + pull_phi(w)
        return value, gradient

    def part(self, numbers: NDArray[np.intp]) -> Paths:
        """Return the paths with these numbers."""
        return self._replace(values=self.values[:, numbers], v=self.v[:, numbers], w=self.w[:, numbers])

    def at(self, z: Array, which: NDArray[np.intp]) -> Array:
        """Return path which[i] at z_i, (m,), without its gradient. O(m (n + K + F) d)."""
        k = self.posterior.kernel(z, self.centres)
        values: Array = self.posterior.prior_mean(z) + np.einsum("ij,ij->i", k, self.v.T[which])
        return values if self.features is None else values + np.einsum("ij,ij->i", self.features(z)[0], self.w.T[which])

    def everywhere(self, z: Array) -> Array:
        """Return all paths at all points z (m, d): (m, size). O(m (n + K + F) (d + size))."""
        values: Array = self.posterior.prior_mean(z)[:, None] + self.posterior.kernel(z, self.centres) @ self.v
        return values if self.features is None else values + self.features(z)[0] @ self.w


def has_features(kernel: Kernel) -> bool:
    """Return whether `random_features` supports the kernel."""
    while isinstance(kernel, AffineKernel | Levels | Mapped | ConditionedKernel):
        kernel = kernel.given.posterior.kernel if isinstance(kernel, ConditionedKernel) else kernel.base
    return _terms(kernel) is not None


def random_features(kernel: Kernel, d: int, count: int, rng: np.random.Generator) -> Features | None:
    """Return phi with E[phi(x) . phi(z)] = k(x, z) (Rahimi and Recht 2007), or None for unsupported kernels.

    phi . w with w ~ N(0, I) is then a path of the prior. The kernel is expanded into a sum of products of RBF, Matern
    and Linear kernels, and each product gets `count` features. An `AffineKernel` adds one feature for its constant.
    """
    if isinstance(kernel, AffineKernel):
        base = random_features(kernel.base, d, count, rng)
        return None if base is None else _affine(base, math.sqrt(kernel.factor), math.sqrt(kernel.constant))
    if isinstance(kernel, Levels):
        base = random_features(kernel.base, d, count, rng)
        return None if base is None else _of_levels(base, kernel)
    if isinstance(kernel, Mapped):
        base = random_features(kernel.base, d + kernel.matrix.shape[1], count, rng)
        return None if base is None else _of_mapped(base, kernel)
    if isinstance(kernel, ConditionedKernel):
        base = random_features(kernel.given.posterior.kernel, d + 1, count, rng)
        return None if base is None else _conditioned(base, kernel.given)
    terms = _terms(kernel)
    if terms is None:
        return None
    parts = [[_elementary(leaf, d, count, rng) for leaf in term] for term in terms]
    scale = float(1.0 / np.sqrt(count))

    def features(z: Array) -> tuple[Array, Pullback]:
        products = [_product([part(z) for part in term]) for term in parts]

        def pull(weights: Array) -> Array:
            cut = np.split(weights, len(products), axis=1)
            gradient: Array = scale * np.sum([pull(w) for (_, pull), w in zip(products, cut, strict=True)], axis=0)
            return gradient

        phi = products[0][0] if len(products) == 1 else np.concatenate([value for value, _ in products], axis=1)
        phi *= scale
        return phi, pull

    return features


def _affine(base: Features, scale: float, constant: float) -> Features:
    """Return the features times a number, and one constant feature."""

    def features(z: Array) -> tuple[Array, Pullback]:
        phi, pull = base(z)
        scaled = np.empty((len(z), phi.shape[1] + 1))
        np.multiply(phi, scale, out=scaled[:, :-1])
        scaled[:, -1] = constant
        return scaled, lambda w: scale * pull(w[:, :-1])

    return features


def _of_mapped(base: Features, kernel: Mapped) -> Features:
    """Return the features at (x, x A)."""

    def features(z: Array) -> tuple[Array, Pullback]:
        phi, pull = base(kernel.extended(z))
        return phi, lambda w: kernel.pulled(pull(w))

    return features


def _of_levels(base: Features, kernel: Levels) -> Features:
    """Return features of a function at several levels: B = A A^T, so level l has the features A_lj phi, j = 1, ..., L.

    Each level but the last has one more feature, for its unknown constant.
    """
    root, count = np.linalg.cholesky(kernel.coupling + 1e-12 * np.eye(len(kernel.coupling))), len(kernel.coupling)
    constants = np.sqrt(kernel.offset) * np.eye(count)[:, : count - 1]

    def features(z: Array) -> tuple[Array, Pullback]:
        phi, pull = base(z)
        rows, levels = root[kernel.levels(z)], kernel.levels(z)
        products = (rows[:, :, None] * phi[:, None, :]).reshape(len(z), count * phi.shape[1])

        def pulled(w: Array) -> Array:
            parts = w[:, : products.shape[1]].reshape(len(z), count, phi.shape[1])
            return pull(np.einsum("ij,ijk->ik", rows, parts))

        return np.concatenate([products, constants[levels]], axis=1), pulled

    return features


def _conditioned(base: Features, given: Conditioned) -> Features:
    """Return features of f given values at X of other functions: phi(z) - A phi(X), and A noise^1/2 for their noise.

    A = k(z, X) C^-1, C = k(X, X) + noise. Their products add up to k(z, z') - A k(X, z') (Matheron's rule).
    """
    posterior = given.posterior
    noise = np.diag(np.sqrt(posterior.noise + posterior.jitter))
    right = np.concatenate([-base(posterior.x)[0], noise], axis=1)
    solved = posterior.factor.solve_transposed(posterior.factor.solve(right))  # (n, F + n)

    def features(z: Array) -> tuple[Array, Pullback]:
        k, pull_k = posterior.kernel.with_input_pullback(given.at(z), posterior.x)
        phi, pull = base(given.at(z))
        whole = k @ solved
        whole[:, : phi.shape[1]] += phi

        def pulled(w: Array) -> Array:
            return (pull(w[:, : phi.shape[1]]) + pull_k(w @ solved.T))[:, :-1]

        return whole, pulled

    return features


def _terms(kernel: Kernel) -> list[list[Kernel]] | None:
    """Return the kernel as a sum (outer list) of products (inner lists) of RBF, Matern and Linear kernels; None
    otherwise.
    """
    if isinstance(kernel, RBF | Matern | Linear):
        return [[kernel]]
    if not isinstance(kernel, Sum | Product):
        return None
    first, second = _terms(kernel.first), _terms(kernel.second)
    if first is None or second is None:
        return None
    return first + second if isinstance(kernel, Sum) else [a + b for a in first for b in second]


def _elementary(kernel: Kernel, d: int, count: int, rng: np.random.Generator) -> Features:
    """Return `count` random columns phi, each with E[phi(x) phi(z)] = k(x, z).

    A stationary kernel of variance v and lengthscale l has the columns sqrt(2 v) cos(omega . x + b) with b uniform on
    [0, 2 pi]. omega l is standard normal for RBF, and Student's t with 2 nu degrees of freedom for Matern. Linear has
    sqrt(v d) x_j with a random coordinate j.
    """
    if isinstance(kernel, Linear):
        picked = np.eye(d)[rng.integers(d, size=count)] * np.sqrt(kernel.known_variance * d)  # (count, d)
        return lambda z: (z @ picked.T, lambda weights: weights @ picked)
    from scipy.special import gammaincinv, ndtri

    assert isinstance(kernel, RBF | Matern)
    uniform = sobol(d + 2, (count - 1).bit_length(), tuple(rng.integers(2**32, size=2)))[:count]
    u = np.clip(uniform, _INSIDE, 1.0 - _INSIDE)
    omega = ndtri(u[:, :d]) / np.asarray(kernel.lengthscale)
    if isinstance(kernel, Matern):
        omega *= np.sqrt(kernel.nu / gammaincinv(kernel.nu, u[:, d : d + 1]))
    # Angles are in turns, not in radians. After whole turns are removed, float32 is enough: its error of 1e-7 is far
    # below _BLUR, and NumPy's float32 cosine is thirty times as fast.
    turns, phase, scale = omega.T / (2.0 * np.pi), u[:, d + 1], float(np.sqrt(2.0 * kernel.known_variance))

    def features(z: Array) -> tuple[Array, Pullback]:
        angle = z @ turns
        angle += phase
        angle -= np.rint(angle)
        short = np.empty(angle.shape, dtype=np.float32)
        np.multiply(angle, 2.0 * np.pi, out=short, casting="same_kind")
        np.multiply(np.cos(short), scale, out=angle, dtype=float)  # a large scale would overflow in float32
        return angle, lambda weights: (-scale * weights * np.sin(short)) @ omega

    return features


def _product(factors: list[tuple[Array, Pullback]]) -> tuple[Array, Pullback]:
    """Multiply several features column by column; return the products and their pullback to the points."""
    (value, pull), *rest = factors
    for other, pull_other in rest:
        value, pull = value * other, _product_rule(value, pull, other, pull_other)
    return value, pull


def _product_rule(a: Array, pull_a: Pullback, b: Array, pull_b: Pullback) -> Pullback:
    return lambda weights: pull_a(weights * b) + pull_b(weights * a)
