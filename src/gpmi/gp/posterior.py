"""The Gaussian process posterior: Equations 1 and 2 of the paper, and what can be read off its factor.

Notation, with n observations, m query points and d coordinates:

    x (n, d), y (n,)      the observations, in the order in which they were made
    C = K + diag(noise)   (n, n), = L L^T; its pivots are L_ss^2 = sigma_s^2(x_s) + noise_s
    whitened (n,)         L^-1 (y - mean)
    weights (n,)          C^-1 (y - mean)
    z (m, d)              the points at which the posterior is evaluated

A row is one observation, with noise of variance noise_var unless it says otherwise. Where observations at equal points
are merged (`gpmi.gp.replicates`) the first rows stand for several of them each.
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
from gpmi.gp.linalg import Factor, NotPositiveDefinite, one_blas_thread, semidefinite_root
from gpmi.gp.replicates import Ahead, Replicates, Sequence, merge
from gpmi.gp.trend import Trend, with_prior_gradient

MomentPullback: TypeAlias = Callable[[Array, Array], Array]

# A pivot below SINGULAR times its diagonal entry has lost ten of sixteen digits, and C counts as singular. Then NUGGET
# of the prior variance is added to every observation's noise, ten times as much if that is not enough, and so on up to
# LARGEST_NUGGET: what needs more is no covariance. With 1e-9 the moments keep six digits (tests/gp/test_exact.py).
SINGULAR = 1e-10
NUGGET = 1e-9
LARGEST_NUGGET = 1e-6
_BLOCK = 1024  # largest number of observations added together: memory besides L is O(_BLOCK n); our choice, not tuned


class Moments(NamedTuple):
    """mu and var at m points with their gradients by the point."""

    mu: Array  # (m,)
    var: Array  # (m,)
    mu_gradient: Array  # (m, d)
    var_gradient: Array  # (m, d)


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """f | y for f ~ GP(mean, kernel) and y_i = f(x_i) + N(0, noise_i). Immutable: conditioning gives a new one.

    The mean is a number, plus the known function `trend` if there is one. noise_i is noise_var unless `condition` was
    told another variance.

    Start with `Posterior.prior(kernel, noise_var)`. `posterior(z)` gives the mean and the variance of the latent
    f at z; no noise is added to the variance.
    """

    kernel: Kernel
    noise_var: float
    mean: float
    x: Array  # (n, d)
    y: Array  # (n,)
    whitened: Array  # (n,)
    noise: Array  # (n,), the noise variance of each row
    jitter: Array  # (n,), what was added to it; 0 unless C was singular
    factor: Factor
    nugget: float = 0.0  # the jitter in units of k(x, x), the same in every row; 0 unless C was singular
    trend: Trend | None = None
    replicates: Replicates | None = None  # the observations behind the first rows, where these were merged

    @staticmethod
    def prior(kernel: Kernel, noise_var: float, mean: float = 0.0, trend: Trend | None = None) -> Posterior:
        """The process before any observation. Its mean at z is mean + trend(z)."""
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel is {kernel!r}; give a kernel such as gpmi.kernels.RBF(lengthscale=0.3)")
        kernel.require_known()
        noise_var, mean = checks.variance("noise_var", noise_var), checks.number("mean", mean)
        none, x = np.empty(0), np.empty((0, kernel.dim or 0))
        return Posterior(kernel, noise_var, mean, x, none, none, none, none, Factor.empty(), trend=trend)

    @property
    def n(self) -> int:
        """The number of rows: of observations, those that were merged counted as one."""
        return self.factor.n

    @property
    def count(self) -> int:
        """The number of observations."""
        return self.n if self.replicates is None else len(self.replicates.y) + self.n - self.replicates.rows

    @property
    def observed(self) -> Array:
        """The observations in their order, (count,): y unless some of them were merged."""
        merged = self.replicates
        return self.y if merged is None else np.concatenate([merged.y, self.y[merged.rows :]])

    def prior_mean(self, z: Array) -> Array:
        """The mean of f at z (m, d) before any observation, (m,)."""
        return np.full(len(z), self.mean) if self.trend is None else self.mean + self.trend(z)

    def _base(self, z: Array) -> Array | float:
        return self.mean if self.trend is None else self.prior_mean(z)

    @one_blas_thread
    def condition(self, x: Array, y: Array, noise_var: Array | float | None = None) -> Posterior:
        """The posterior after y (k,) was observed at x (k, d), or one y at one x (d,). O(k n^2 + k^2 n + k^3).

        `noise_var` is the variance of the noise of these observations, one number or (k,), in place of the common one.
        The factor is extended, not computed again, and the two posteriors share its memory.
        """
        x, y = self._observations(x, y)
        return self._extend(x, y, checks.variances("noise_var", noise_var, len(x), self.noise_var))

    @one_blas_thread
    def condition_merged(self, x: Array, y: Array, noise_var: Array | float | None = None) -> Posterior:
        """As `condition`, of a prior, with observations at equal points merged: the same law of f.

        With m different points it costs O(k + m^3), and mu, var and the evidence are those of `condition` up to
        rounding. So are `gamma_hat` and `ahead`, which follow the order of the observations, at O(k m^2) when they are
        first read.
        """
        if self.n:
            raise ValueError(f"the posterior has {self.n} observations; only a prior takes merged ones")
        x, y = self._observations(x, y)
        noise = checks.variances("noise_var", noise_var, len(x), self.noise_var)
        if len(x) == 0:
            return self
        rows = merge(x, y, noise)
        source = Sequence(self.kernel, self.prior_mean(rows.x), rows.x, rows.place, noise)
        replicates = Replicates(len(rows.x), y, noise, rows.log_within, source)
        return replace(self._extend(rows.x, rows.y, rows.noise), replicates=replicates)

    @one_blas_thread
    def compacted(self) -> Posterior:
        """The same law of f, with the rows at equal points merged. O(n^3)."""
        merged, before = merge(self.x, self.y, self.noise), self.replicates
        within = merged.log_within + (0.0 if before is None else before.log_within)
        replicates = Replicates(len(merged.x), self.observed, self.noise_of_observed, within, self.ahead)
        return replace(self._start()._extend(merged.x, merged.y, merged.noise), replicates=replicates)

    def _observations(self, x: Array, y: Array) -> tuple[Array, Array]:
        """x (k, d) and finite y (k,)."""
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
        """The posterior after x (k, d) was observed at exactly its own mean: mu stays, var falls. O(k n^2).

        This is how a point that is being evaluated is taken into account before its value is known.
        """
        x = self._points("x", x)
        return self._extend(x, None, np.full(len(x), self.noise_var))

    def _extend(self, x: Array, y: Array | None, noise: Array) -> Posterior:
        """The posterior with x added. If y is None the values are the posterior mean; their whitened values are 0."""
        old, k = self.n, len(x)
        if k == 0:
            return self
        if k > _BLOCK:
            first = self._extend(x[:_BLOCK], None if y is None else y[:_BLOCK], noise[:_BLOCK])
            return first._extend(x[_BLOCK:], None if y is None else y[_BLOCK:], noise[_BLOCK:])
        variance = self.kernel.diagonal(x)
        jitter = np.where(variance + noise == 0.0, 1.0, self.nugget * variance)  # where f is known 1 will do
        try:
            factor, added = self._factor_with(x, variance, noise, jitter)
            least = SINGULAR * (variance + noise) if self.nugget == 0.0 else 0.1 * self.nugget * variance
            singular = added or bool((factor.diagonal[old:] ** 2 < least).any())
        except NotPositiveDefinite:
            if self.nugget >= LARGEST_NUGGET:
                raise
            singular = True
        if singular and self.nugget < LARGEST_NUGGET:
            more = NUGGET if self.nugget == 0.0 else min(10.0 * self.nugget, LARGEST_NUGGET)
            return self._with_nugget(more)._extend(x, y, noise)
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
        """The factor with rows for x (k, d), where f has the variance (k,), and whether a pivot had to be lifted."""
        if len(x) == 1:
            own = float(variance[0]) + float(noise[0]) + float(jitter[0])
            factor, added = self.factor.append_solved(self.whiten(x)[:, 0] if self.n else np.empty(0), own)
            return factor, added > 0.0
        cross = self.kernel(x, self.x).T if self.n else np.empty((0, len(x)))
        block = np.array(self.kernel(x, x))
        block[np.diag_indices(len(x))] += noise
        block[np.diag_indices(len(x))] += jitter
        factor, lifted = self.factor.append_block(cross, block)
        return factor, bool(lifted.any())

    def _with_nugget(self, nugget: float) -> Posterior:
        """The posterior given the same values, with this much jitter in every row. O(n^3).

        C was singular. To lift single pivots as far as they need would leave pivots of very different sizes, whose
        rounding errors grow with every further row. The same jitter everywhere bounds all eigenvalues from below.
        """
        start = replace(self._start(), nugget=nugget, replicates=self.replicates)
        return start._extend(self.x, self.y, self.noise)

    def _start(self) -> Posterior:
        """The same process before any observation."""
        start = Posterior.prior(self.kernel, self.noise_var, self.mean, self.trend)
        return replace(start, x=self.x[:0], nugget=self.nugget)

    def __repr__(self) -> str:
        what = f"kernel={self.kernel!r}, noise_var={self.noise_var:.6g}, mean={self.mean:.6g}"
        return f"<Posterior given {self.n} observations, {shortened(what, 80)}>"

    def mirrored(self) -> Posterior:
        """The posterior of -f given -y. Exact, O(n)."""
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
        """V = L^-1 k(x, z), (n, m): a column v has mu = mean + v . whitened and var = k(z, z) - v . v. O(n^2 m)."""
        if len(z) != 1:
            return self.factor.solve(self.kernel(z, self.x).T)
        place, kept = z.tobytes(), vars(self).get("_looked_at")  # one point is looked at, and then often observed
        if kept is None or kept[0] != place:
            vars(self)["_looked_at"] = kept = place, read_only(self.factor.solve(self.kernel(z, self.x).T))
        v: Array = kept[1]
        return v

    @one_blas_thread
    def __call__(self, z: Array) -> tuple[Array, Array]:
        """mu and var at z (m, d): Equations 1 and 2 for the latent f. O(n^2 m)."""
        z = self._points("z", z)
        if self.n == 0:
            return self.prior_mean(z), self.kernel.diagonal(z)
        return self.moments_from(z, self.whiten(z))

    @one_blas_thread
    def mu(self, z: Array) -> Array:
        """The posterior mean alone at z (m, d): Equation 1. O(n m)."""
        z = self._points("z", z)
        if self.n == 0:
            return self.prior_mean(z)
        if self.nugget > 0.0:  # the weights are so large that k . weights cancels; O(n^2 m)
            return self._base(z) + self.whitened @ self.whiten(z)
        return self._base(z) + self.kernel(z, self.x) @ self.weights

    @one_blas_thread
    def with_pullback(self, z: Array) -> tuple[Array, Array, MomentPullback]:
        """mu and var at z (m, d), and the map (a, b) -> a_i d mu(z_i)/dz_i + b_i d var(z_i)/dz_i, (m, d).

        O(n^2 m): a triangular solve for all points together. The map takes another one and a contraction with the
        kernel, O(n^2 m + n m d). The points are not checked.
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
        """mu and var at z (m, d) from V = `whiten(z)`. O(n m)."""
        constant, told = self.kernel.constant_variance, np.einsum("ij,ij->j", v, v)
        var: Array = (self.kernel.diagonal(z) if constant is None else constant) - told
        return self._base(z) + self.whitened @ v, np.maximum(var, 0.0, out=var)

    @one_blas_thread
    def moments(self, z: Array) -> Moments:
        """mu and var at z (m, d) with their gradients by z. O(n^2 m + n m d)."""
        mu, var, gradient = self.with_pullback(self._points("z", z))
        one, zero = np.ones(len(mu)), np.zeros(len(mu))
        return Moments(mu, var, gradient(one, zero), gradient(zero, one))

    @one_blas_thread
    def covariance(self, z: Array, other: Array | None = None) -> Array:
        """cov[f(z_i), f(other_j)] given the observations, (m, m'); `other` defaults to z. O(n^2 (m + m') + n m m')."""
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
        """`size` independent draws of (f(z_1), ..., f(z_m)), exact, (size, m). O(n^2 m + n m^2 + m^3)."""
        z = self._points("z", z)
        root = semidefinite_root(self.covariance(z))
        draws: Array = self.mu(z) + rng.standard_normal((size, root.shape[1])) @ root.T  # ~ N(mu, A A^T)
        return draws

    @property
    def ahead(self) -> Ahead:
        """The prediction of each observation given those before it, in the order of the observations.

        O(n) where they are read off the factor; for observations that were merged see `condition_merged`.
        """
        pivot, surprise = self.factor.diagonal, self.whitened
        own = Ahead(self.y - pivot * surprise, self._var_of_rows, pivot, surprise)
        if self.replicates is None:
            return own
        return self.replicates.ahead.then(Ahead(*(part[self.replicates.rows :] for part in own)))

    @cached_property
    def _var_of_rows(self) -> Array:
        """sigma_s^2(x_s) for every row. (n,)"""
        var = np.maximum(self.factor.diagonal**2 - self.noise - self.jitter, 0.0)
        if self.nugget != 0.0:
            var[var <= 2.0 * self.jitter] = 0.0  # what the jitter left open
        return read_only(var)

    @property
    def predictive_var(self) -> Array:
        """sigma_s^2(x_s) for every observation: the variance of f there just before it was observed. (count,)."""
        return self._var_of_rows if self.replicates is None else self.ahead.var

    @property
    def noise_of_observed(self) -> Array:
        """The noise variance of each observation, (count,): `noise` unless some of them were merged."""
        merged = self.replicates
        return self.noise if merged is None else np.concatenate([merged.noise, self.noise[merged.rows :]])

    def gamma_hat(self, n0: int = 0) -> float:
        """sum of sigma_t^2(x_t) over t > n0, the paper's gamma_hat when the first n0 observations are given.

        It is that of the observations in their order, also where they were merged.
        """
        if not 0 <= n0 <= self.count:
            raise ValueError(f"n0 is {n0}; it counts initial observations, so it lies between 0 and n = {self.count}")
        return float(self.predictive_var[n0:].sum())

    @property
    def information(self) -> float:
        """I_T = 1/2 log det(I + N^-1 K), N = diag(noise), in nats; infinite for exact observations. O(n).

        It does not depend on the order, and merged rows have the information of what they stand for.
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
        """The repair that was needed to keep C positive definite, if any."""
        if self.nugget == 0.0:
            return ()
        more = f"{self.nugget:.0e} of the prior variance was added to the noise variance of every observation"
        return (Event("jitter", f"C was singular, as exact observations close to each other make it: {more}"),)

    def _points(self, name: str, points: Array) -> Array:
        """Points as a finite (m, d) array of the right d."""
        return checks.points(name, points, self.x.shape[1] if self.n else self.kernel.dim)
