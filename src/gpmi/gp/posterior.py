"""The Gaussian process posterior: Equations 1 and 2 of the paper, and the quantities that its factor contains.

Notation, with n observations, m query points and d coordinates:

    x (n, d), y (n,)      the observations, in the order in which they were made
    C = K + diag(noise)   (n, n), = L L^T; its pivots are L_ss^2 = sigma_s^2(x_s) + noise_s
    whitened (n,)         L^-1 (y - mean)
    weights (n,)          C^-1 (y - mean)
    z (m, d)              the points at which the posterior is evaluated

A row is one observation. Its noise has variance noise_var unless `condition` was given another one. Where observations
at equal points are merged (`gpmi.gp.replicates`), each of the first rows stands for several observations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple, TypeAlias

import numpy as np

from gpmi._support import checks
from gpmi._support.text import shortened
from gpmi._support.types import Array, Event, read_only
from gpmi.gp.kernels import Kernel
from gpmi.gp.linalg import NUGGET, SINGULAR, Factor, NotPositiveDefinite, one_blas_thread, semidefinite_root
from gpmi.gp.prior_gradient import with_prior_gradient
from gpmi.gp.replicates import OneStepAhead, Replicates
from gpmi.gp.trend import PriorMean

MomentPullback: TypeAlias = Callable[[Array, Array], Array]

LARGEST_NUGGET = 1e-6  # a matrix that needs a larger nugget (`linalg.NUGGET`) is not a covariance matrix
_BLOCK = 1024  # observations added together, at most: memory besides L is O(_BLOCK n); our choice, not tuned


class Moments(NamedTuple):
    """mu and var at m points, and their gradients with respect to the point."""

    mu: Array  # (m,)
    var: Array  # (m,)
    mu_gradient: Array  # (m, d)
    var_gradient: Array  # (m, d)


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """f | y for f ~ GP(mean, kernel) and y_i = f(x_i) + N(0, noise_i). Immutable: conditioning gives a new one.

    The mean is a number, plus the known function `trend` if there is one. noise_i is noise_var unless `condition` was
    given another variance.

    Start with `Posterior.prior(kernel, noise_var)`. `posterior(z)` returns the mean and the variance of the latent f at
    z; no noise is added to the variance.
    """

    kernel: Kernel
    noise_var: float
    mean: float
    x: Array  # (n, d)
    y: Array  # (n,)
    whitened: Array  # (n,)
    noise: Array  # (n,), the noise variance of each row
    jitter: Array  # (n,), added to that variance; 0 unless C was singular
    factor: Factor
    nugget: float = 0.0  # the jitter in units of k(x, x), the same for every row; 0 unless C was singular
    trend: PriorMean | None = None
    replicates: Replicates | None = None  # the observations behind the merged rows, which come first

    @staticmethod
    def prior(kernel: Kernel, noise_var: float, mean: float = 0.0, trend: PriorMean | None = None) -> Posterior:
        """Return the process before any observation. Its mean at z is mean + trend(z)."""
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel is {kernel!r}; give a kernel such as gpmi.kernels.RBF(lengthscale=0.3)")
        kernel.require_known()
        noise_var, mean = checks.variance("noise_var", noise_var), checks.number("mean", mean)
        none, x = np.empty(0), np.empty((0, kernel.dim or 0))
        return Posterior(kernel, noise_var, mean, x, none, none, none, none, Factor.empty(), trend=trend)

    @property
    def n(self) -> int:
        """The number of rows: the number of observations, where merged ones count once."""
        return self.factor.n

    @property
    def count(self) -> int:
        """The number of observations."""
        return self.n if self.replicates is None else len(self.replicates.y) + self.n - self.replicates.rows

    @property
    def observed(self) -> Array:
        """The observations in their order, (count,): y, unless some of them were merged."""
        merged = self.replicates
        return self.y if merged is None else np.concatenate([merged.y, self.y[merged.rows :]])

    def prior_mean(self, z: Array) -> Array:
        """The mean of f at z (m, d) before any observation, (m,)."""
        return np.full(len(z), self.mean) if self.trend is None else self.mean + self.trend(z)

    def _base(self, z: Array) -> Array | float:
        return self.mean if self.trend is None else self.prior_mean(z)

    @one_blas_thread
    def condition(self, x: Array, y: Array, noise_var: Array | float | None = None) -> Posterior:
        """Return the posterior after observing y (k,) at x (k, d), or one y at one x (d,). O(k n^2 + k^2 n + k^3).

        `noise_var` is the noise variance of these observations, one number or (k,); the default is the common one. The
        factor is extended, not recomputed, and the two posteriors share its memory.
        """
        x, y = self._observations(x, y)
        return self._extend(x, y, checks.variances("noise_var", noise_var, len(x), self.noise_var))

    def _observations(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Return x as (k, d) and y as finite numbers (k,)."""
        x = self._points("x", x)
        y = np.asarray(y, dtype=float)
        y = y[None] if y.ndim == 0 else y
        if y.shape != (len(x),):
            raise ValueError(f"y has shape {y.shape} but x has {len(x)} points; give one value per point")
        if not np.isfinite(y).all():
            bad = int(np.flatnonzero(~np.isfinite(y))[0])
            raise ValueError(f"y[{bad}] is {y[bad]}; leave out observations that are not finite")
        return x, y

    @one_blas_thread
    def anticipate(self, x: Array) -> Posterior:
        """Return the posterior after observing at x (k, d) exactly its own mean: mu stays, var falls. O(k n^2).

        This accounts for a pending point before its value is known.
        """
        x = self._points("x", x)
        return self._extend(x, None, np.full(len(x), self.noise_var))

    def _extend(self, x: Array, y: Array | None, noise: Array) -> Posterior:
        """Return the posterior with x added. If y is None the values are the posterior mean, and their whitened values
        are 0.
        """
        old, k = self.n, len(x)
        if k == 0:
            return self
        if k > _BLOCK:
            first = self._extend(x[:_BLOCK], None if y is None else y[:_BLOCK], noise[:_BLOCK])
            return first._extend(x[_BLOCK:], None if y is None else y[_BLOCK:], noise[_BLOCK:])
        variance = self.kernel.diagonal(x)
        jitter = np.where(variance + noise == 0.0, 1.0, self.nugget * variance)  # any jitter will do where f is certain
        try:
            factor, added = self._factor_with(x, variance, noise, jitter)
            least = SINGULAR * (variance + noise) if self.nugget == 0.0 else 0.1 * self.nugget * variance
            singular = added or bool((factor.diagonal[old:] ** 2 < least).any())
        except NotPositiveDefinite:
            if self.nugget >= LARGEST_NUGGET:
                raise
            singular = True
        if singular and self.nugget < LARGEST_NUGGET:
            nugget = NUGGET if self.nugget == 0.0 else min(10.0 * self.nugget, LARGEST_NUGGET)
            return self._with_nugget(nugget)._extend(x, y, noise)
        whitened, values = np.concatenate([self.whitened, np.zeros(k)]), np.concatenate([self.y, np.zeros(k)])
        means = self.prior_mean(x).tolist()
        for s in range(old, old + k):  # whitened_s = (y_s - mean - L_s,<s . whitened_<s) / L_ss
            row = factor.row(s)
            predicted = means[s - old] + float(row[:s] @ whitened[:s])
            values[s] = predicted if y is None else y[s - old]
            whitened[s] = 0.0 if y is None else (values[s] - predicted) / row[s]
        points = read_only(np.concatenate([self.x.reshape(old, x.shape[1]), x]))
        values, whitened = read_only(values), read_only(whitened)
        noise, jitter = np.concatenate([self.noise, noise]), np.concatenate([self.jitter, jitter])
        return replace(self, x=points, y=values, whitened=whitened, noise=noise, jitter=jitter, factor=factor)

    def _factor_with(self, x: Array, variance: Array, noise: Array, jitter: Array) -> tuple[Factor, bool]:
        """Return the factor with rows for x (k, d), where f has variance (k,), and whether a pivot had to be lifted."""
        if len(x) == 1:
            pivot = float(variance[0]) + float(noise[0]) + float(jitter[0])
            factor, added = self.factor.append_solved(self.whiten(x)[:, 0] if self.n else np.empty(0), pivot)
            return factor, added > 0.0
        cross = self.kernel(x, self.x).T if self.n else np.empty((0, len(x)))
        block = np.array(self.kernel(x, x))
        block[np.diag_indices(len(x))] += noise
        block[np.diag_indices(len(x))] += jitter
        factor, lifted = self.factor.append_block(cross, block)
        return factor, bool(lifted.any())

    def _with_nugget(self, nugget: float) -> Posterior:
        """Return the posterior given the same values, with this much jitter in every row. O(n^3).

        C was singular. Lifting single pivots only as far as each needs would leave pivots of very different sizes.
        Their rounding errors would grow with every further row. The same jitter in every row bounds all eigenvalues
        from below.
        """
        start = replace(self._start(), nugget=nugget, replicates=self.replicates)
        return start._extend(self.x, self.y, self.noise)

    def _start(self) -> Posterior:
        """Return the same process before any observation."""
        start = Posterior.prior(self.kernel, self.noise_var, self.mean, self.trend)
        return replace(start, x=self.x[:0], nugget=self.nugget)

    def __repr__(self) -> str:
        what = f"kernel={self.kernel!r}, noise_var={self.noise_var:.6g}, mean={self.mean:.6g}"
        return f"<Posterior given {self.n} observations, {shortened(what, 80)}>"

    def mirrored(self) -> Posterior:
        """Return the posterior of -f given -y. Exact, O(n)."""
        trend, merged = self.trend and self.trend.mirrored(), self.replicates and self.replicates.mirrored()
        return replace(self, mean=-self.mean, y=-self.y, whitened=-self.whitened, trend=trend, replicates=merged)

    @cached_property
    def weights(self) -> Array:
        """C^-1 (y - mean). O(n^2), once."""
        with one_blas_thread:
            return self.factor.solve_transposed(self.whitened)

    @cached_property
    def mu_at_observed(self) -> Array:
        """mu(x_s) for s = 1..n, from K weights = y - mean - (C - K) weights. O(n) after `weights`."""
        return self.y - (self.noise + self.jitter) * self.weights

    @one_blas_thread
    def whiten(self, z: Array) -> Array:
        """Return V = L^-1 k(x, z), (n, m). O(n^2 m).

        A column v of it gives mu = mean + v . whitened and var = k(z, z) - v . v.
        """
        if len(z) != 1:
            return self.factor.solve(self.kernel(z, self.x).T)
        key, cached = z.tobytes(), vars(self).get("_last_column")  # a point is often evaluated, then observed
        if cached is None or cached[0] != key:
            vars(self)["_last_column"] = cached = key, read_only(self.factor.solve(self.kernel(z, self.x).T))
        v: Array = cached[1]
        return v

    @one_blas_thread
    def __call__(self, z: Array) -> tuple[Array, Array]:
        """Return mu and var at z (m, d): Equations 1 and 2 for the latent f. O(n^2 m)."""
        z = self._points("z", z)
        if self.n == 0:
            return self.prior_mean(z), self.kernel.diagonal(z)
        return self.moments_from(z, self.whiten(z))

    @one_blas_thread
    def mu(self, z: Array) -> Array:
        """Return the posterior mean at z (m, d): Equation 1. O(n m)."""
        z = self._points("z", z)
        if self.n == 0:
            return self.prior_mean(z)
        if self.nugget > 0.0:  # the weights are too large: k . weights would cancel; O(n^2 m)
            return self._base(z) + self.whitened @ self.whiten(z)
        return self._base(z) + self.kernel(z, self.x) @ self.weights

    @one_blas_thread
    def with_pullback(self, z: Array) -> tuple[Array, Array, MomentPullback]:
        """Return mu and var at z (m, d), and the map (a, b) -> a_i d mu(z_i)/dz_i + b_i d var(z_i)/dz_i, (m, d).

        O(n^2 m): one triangular solve for all points together. The map takes another solve and a contraction with the
        kernel, O(n^2 m + n m d). The points are not validated.
        """
        steeper = partial(with_prior_gradient, self.kernel, self.trend, z)
        if self.n == 0:
            return self.prior_mean(z), self.kernel.diagonal(z), partial(steeper, np.zeros_like(z))
        k, pull = self.kernel.with_input_pullback(z, self.x)  # (m, n)
        v = self.factor.solve(k.T)

        def gradient(by_mu: Array, by_var: Array) -> Array:
            # Row i of the smoother is C^-1 k(x, z_i), so d var = d k(z, z) - 2 smoother . d k.
            smoother = self.factor.solve_transposed(v).T
            weights = by_mu[:, None] * self.weights
            weights -= (2.0 * by_var)[:, None] * smoother
            return steeper(pull(weights), by_mu, by_var)

        return *self.moments_from(z, v), gradient

    def moments_from(self, z: Array, v: Array) -> tuple[Array, Array]:
        """Return mu and var at z (m, d), given V = `whiten(z)`. O(n m)."""
        constant, explained = self.kernel.constant_variance, np.einsum("ij,ij->j", v, v)
        var: Array = (self.kernel.diagonal(z) if constant is None else constant) - explained
        return self._base(z) + self.whitened @ v, np.maximum(var, 0.0, out=var)

    @one_blas_thread
    def moments(self, z: Array) -> Moments:
        """Return mu and var at z (m, d) with their gradients by z. O(n^2 m + n m d)."""
        mu, var, gradient = self.with_pullback(self._points("z", z))
        ones, zeros = np.ones(len(mu)), np.zeros(len(mu))
        return Moments(mu, var, gradient(ones, zeros), gradient(zeros, ones))

    @one_blas_thread
    def covariance(self, z: Array, other: Array | None = None) -> Array:
        """Return cov[f(z_i), f(other_j)] given the observations, (m, m'). `other` defaults to z. O(n^2 (m + m') + n m
        m').
        """
        z = self._points("z", z)
        other = z if other is None else self._points("other", other)
        prior = self.kernel(z, other)
        if self.n == 0:
            return prior
        v = self.whiten(z)
        w = v if other is z else self.whiten(other)
        return prior - v.T @ w

    @one_blas_thread
    def sample(self, z: Array, rng: np.random.Generator, size: int = 1) -> Array:
        """Draw (f(z_1), ..., f(z_m)) `size` times, independently and exactly, (size, m). O(n^2 m + n m^2 + m^3)."""
        z = self._points("z", z)
        root = semidefinite_root(self.covariance(z))
        draws: Array = self.mu(z) + rng.standard_normal((size, root.shape[1])) @ root.T  # ~ N(mu, A A^T)
        return draws

    @property
    def ahead(self) -> OneStepAhead:
        """The prediction of each observation given those before it, in the order of the observations.

        O(n) where it is read off the factor. For merged observations see `merging.condition_merged`.
        """
        pivot, surprise = self.factor.diagonal, self.whitened
        rows = OneStepAhead(self.y - pivot * surprise, self._var_of_rows, pivot, surprise)
        if self.replicates is None:
            return rows
        return self.replicates.ahead.then(OneStepAhead(*(part[self.replicates.rows :] for part in rows)))

    @cached_property
    def _var_of_rows(self) -> Array:
        """sigma_s^2(x_s) for every row. (n,)"""
        var = np.maximum(self.factor.diagonal**2 - self.noise - self.jitter, 0.0)
        if self.nugget != 0.0:
            var[var <= 2.0 * self.jitter] = 0.0  # an artefact of the jitter
        return read_only(var)

    @property
    def predictive_var(self) -> Array:
        """sigma_s^2(x_s) for every observation: the variance of f there just before it was observed. (count,)."""
        return self._var_of_rows if self.replicates is None else self.ahead.var

    @property
    def noise_of_observed(self) -> Array:
        """The noise variance of each observation, (count,): `noise`, unless some of them were merged."""
        merged = self.replicates
        return self.noise if merged is None else np.concatenate([merged.noise, self.noise[merged.rows :]])

    def gamma_hat(self, n0: int = 0) -> float:
        """Return the sum of sigma_t^2(x_t) over t > n0: the paper's gamma_hat, where the first n0 observations are
        initial.

        It follows the order of the observations, even where they were merged.
        """
        if not 0 <= n0 <= self.count:
            raise ValueError(f"n0 is {n0}; it counts initial observations, so it lies between 0 and n = {self.count}")
        return float(self.predictive_var[n0:].sum())

    @property
    def information(self) -> float:
        """I_T = 1/2 log det(I + N^-1 K), N = diag(noise), in nats; infinite for exact observations. O(n).

        It does not depend on the order. A merged row has the information of the observations behind it.
        """
        if self.n == 0:
            return 0.0
        if np.any(self.noise == 0.0):
            return float("inf")
        return 0.5 * float(np.log1p(self._var_of_rows / self.noise).sum())

    @property
    def log_evidence(self) -> float:
        """log p(y) = -1/2 |whitened|^2 - sum log L_ss - n/2 log 2 pi, plus log W of merged rows. O(n)."""
        logdet = 2.0 * np.log(self.factor.diagonal).sum()
        rows = -0.5 * float(self.whitened @ self.whitened + logdet + self.n * np.log(2.0 * np.pi))
        return rows if self.replicates is None else rows + self.replicates.log_within

    @property
    def events(self) -> tuple[Event, ...]:
        """The repair that kept C positive definite, if one was needed."""
        if self.nugget == 0.0:
            return ()
        repair = f"{self.nugget:.0e} of the prior variance was added to the noise variance of every observation"
        return (Event("jitter", f"C was singular because exact observations lie close to each other: {repair}"),)

    def _points(self, name: str, points: Array) -> Array:
        """Return the points as a finite (m, d) array of the right d."""
        return checks.points(name, points, self.x.shape[1] if self.n else self.kernel.dim)
