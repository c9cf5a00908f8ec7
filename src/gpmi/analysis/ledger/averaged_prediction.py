"""Predictions averaged over the prior: where the prior is learned, the interval of the regret is made of them.

A single prior, the most probable one, ignores the uncertainty of the prior. Averaging over draws gives calibrated
predictions if the model is right. If the model is wrong, the residuals of earlier predictions show it, and the
variances are raised to match them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gpmi._support.types import Array, Observations
from gpmi.gp.kernels import AffineKernel
from gpmi.gp.linalg import SINGULAR, whiten
from gpmi.gp.posterior import Posterior
from gpmi.gp.trend import Trend
from gpmi.model.fitting.data import merges, warped
from gpmi.model.fitting.fit import Prior
from gpmi.model.fitting.warp import Warp
from gpmi.model.model import ModelSetting, conditioned

FIRST = 4  # values before the first predicted one, at least: with fewer, draws are almost those of the hyper-prior
_LEAST_SHARE = 0.3  # effective share of the draws below which they are moved; our choice: 0.5 is usual but costs more
_AHEAD = 8  # values predicted together: draws are seldom reused for more before they are moved
# Beyond this many values, draws are reused longer: at least for an eighth as many values, and draws that have lasted
# long will probably last as long again. 1,000 values in ten dimensions then take 4 s instead of 22.
_MANY = 256
# Residuals of a long run, at least: ten times as many as a verdict needs. A residual sometimes costs O(n^3). For 1,000
# values in ten dimensions the whole second half would take 14 s; these take 5 s.
RECENT = 128
_BELIEF = 5  # prior weight of factor 1, in pseudo-residuals; chosen on separate draws
_MOST = 1e12  # the largest factor of a variance: a residual of 1e90 sd says no more than one of 1e6, and overflows
_MIXING = 7  # not a divisor of the number of draws: successive draws in this order differ much


@dataclass(frozen=True, eq=False)
class RunValues:
    """The values of a run, oriented and modelled as warp(y)."""

    setting: ModelSetting
    observed: Observations
    warp: Warp

    def __len__(self) -> int:
        return len(self.observed)

    @cached_property
    def _detrended(self) -> Observations:
        """The values from which the prior is learned."""
        return self.setting.detrended(self.observed)

    @property
    def _kind(self) -> dict[str, Any]:
        return {"known_mean": self.setting.trend is not None, "preloaded": self.setting.preloaded}

    def draw(self, n: int) -> tuple[Prior, ...]:
        """Draw the prior given the first n values, with equal weights."""
        return self.setting.priors.draw(n, self._detrended, self.warp, **self._kind)

    def move(self, n: int, before: tuple[Prior, ...]) -> tuple[Prior, ...]:
        """Return draws of the prior given the first n values, moved from draws of the same distribution."""
        return self.setting.priors.move(n, self._detrended, before, **self._kind)

    def one_step_residuals(self, drawn: tuple[Prior, ...], n: int) -> list[tuple[Array, Array]]:
        """Return the residual and the predictive sd of each of the first n values, (n,), under each draw."""
        first = warped(replace(self.observed, x=self._detrended.x).first(n), self.warp)
        if first.plain and self.setting.trend is None and not merges(first):
            return [_one_step_residuals(prior, first.x, first.y) for prior in drawn]
        return [(ahead.surprise, ahead.pivot) for ahead in (post.ahead for post in self.posteriors(drawn, n))]

    def posteriors(self, drawn: tuple[Prior, ...], n: int, factors: Array | None = None) -> tuple[Posterior, ...]:
        """Return the posterior given the first n values under each draw, its variances multiplied by its factor."""
        first = warped(replace(self.observed, x=self._detrended.x).first(n), self.warp)
        scales = np.ones(len(drawn)) if factors is None else factors
        pairs = zip(drawn, scales.tolist(), strict=True)
        return tuple(_inflated(prior, self.setting.trend, first, factor) for prior, factor in pairs)


class Particles(NamedTuple):
    """Draws of the prior given the first n values, with equal weights."""

    n: int
    drawn: tuple[Prior, ...]

    def ahead(self, values: RunValues, end: int) -> tuple[Array, Array]:
        """Predict values n + 1 to `end` by each draw: residuals and log densities, (draws, end - n). O(end^3) each.

        It is O(end m^2) if the values are merged at m different points. Each value is predicted from all before it,
        under a prior that knew only the first n.
        """
        residuals = values.one_step_residuals(self.drawn, end)
        z = np.array([surprise[self.n :] for surprise, _ in residuals])
        pivots = np.array([pivot[self.n :] for _, pivot in residuals])
        return z, -0.5 * z**2 - np.log(pivots)

    def moved(self, values: RunValues, n: int, log_weights: Array) -> Particles:
        """Return draws given the first n values: resampled by their weights, then moved."""
        weights = np.exp(log_weights - log_weights.max())
        shares = (np.arange(len(weights)) + 0.5) / len(weights) * float(weights.sum())
        picked = np.minimum(np.searchsorted(np.cumsum(weights), shares), len(weights) - 1)
        before = tuple(self.drawn[i] for i in picked)
        return Particles(n, values.move(n, before))


@dataclass(eq=False)
class AveragedResiduals:
    """Residuals of a run under the averaged prediction, cached so that the next value costs little."""

    particles: dict[tuple[Warp, int], Particles] = field(default_factory=dict)  # by the value at which they begin
    residuals: dict[tuple[Warp, int], list[float]] = field(default_factory=dict)
    last: dict[tuple[Warp, int], tuple[Prior, ...]] = field(default_factory=dict)  # by the number of values

    def __call__(self, values: RunValues) -> Array:
        """Return the one-step residuals of the second half of the values, or of a little more: from value `begin` on.

        Each value is predicted from all values before it, averaged over draws of the prior that did not know it. The
        draws are weighted by how well they predicted the values since they were made. When too few of them have weight,
        they are resampled and moved. A residual is the normal quantile of the probability of a smaller value. It is
        N(0, 1) if the averaged prediction is right, although that prediction is not normal.
        """
        n = len(values)
        if n <= FIRST:
            return np.empty(0)
        key = values.warp, begin(n)
        found = self.residuals.setdefault(key, [])
        while len(found) < n - key[1]:
            done, particles = key[1] + len(found), self.particles.get(key)
            if particles is None:
                particles = Particles(done, values.draw(done))
            self.particles[key] = self._advance(values, particles, done, found)
        return np.array(found[: n - key[1]])

    def _advance(self, values: RunValues, particles: Particles, done: int, found: list[float]) -> Particles:
        """Append residuals after value `done`, up to the last value or until the draws are worn out; then move the
        draws.
        """
        far = _AHEAD if particles.n < _MANY else max(particles.n // _AHEAD, done - particles.n)
        end = min(len(values), 2 * particles.n, done + far)
        z, densities = particles.ahead(values, end)
        for s in range(done, end):
            k = s - particles.n
            log_weights = densities[:, :k].sum(axis=1)
            found.append(_normal_quantile(z[:, k], log_weights))
            after = log_weights + densities[:, k]
            if _effective_share(after) < _LEAST_SHARE or s + 1 == 2 * particles.n:
                return particles.moved(values, s + 1, after)
        return particles

    def priors(self, values: RunValues) -> tuple[Prior, ...]:
        """Return draws of the prior given all values, equally weighted: those behind the residuals, moved once more."""
        key = values.warp, len(values)
        if key not in self.last:
            self.last[key] = self._priors(values)
        return self.last[key]

    def _priors(self, values: RunValues) -> tuple[Prior, ...]:
        n = len(values)
        if n <= FIRST:
            return values.draw(n)
        self(values)
        particles = self.particles[values.warp, begin(n)]
        if particles.n > n:  # the run has gone on since
            return AveragedResiduals().priors(values)
        if particles.n == n:
            return particles.drawn
        return particles.moved(values, n, particles.ahead(values, n)[1].sum(axis=1)).drawn


def _one_step_residuals(prior: Prior, x: Array, z: Array) -> tuple[Array, Array]:
    """Predict each z_s (n,) at x (n, d) from those before it: the residuals L^-1 (z - m) and the predictive sd L_ss.

    They equal those of the posterior, which is used only if C is close to singular and needs repair.
    """
    c = prior.kernel(x, x)
    least = SINGULAR * (c.diagonal() + prior.noise_var)
    c[np.diag_indices(len(c))] += prior.noise_var
    whitened = whiten(c, (z - prior.mean)[:, None])
    if whitened is None or np.any(whitened.diagonal**2 < least):
        posterior = prior.posterior().condition(x, z)
        return posterior.whitened, posterior.factor.diagonal
    return whitened.columns[:, 0], whitened.diagonal


def begin(n: int) -> int:
    """Return the number of values before the first predicted one, if there are n: the largest power of 2 up to n / 2.

    In a long run only the last values are predicted: at least RECENT and less than twice as many.
    """
    half = max(FIRST, 1 << (max(1, n // 2).bit_length() - 1))
    return half if n < 4 * RECENT else max(half, RECENT * (n // RECENT - 1))


def _effective_share(log_weights: Array) -> float:
    """Return the effective share of the draws: (sum w)^2 / sum w^2 divided by their number."""
    weights = np.exp(log_weights - log_weights.max())
    return float(weights.sum() ** 2 / (weights @ weights)) / len(weights)


def _normal_quantile(z: Array, log_weights: Array) -> float:
    """Return the normal quantile of sum_m w_m P(N(0, 1) < z_m); exact far out in both tails."""
    from scipy.special import log_ndtr, logsumexp, ndtri_exp

    total = logsumexp(log_weights)
    below, above = (float(logsumexp(log_weights + log_ndtr(sign * z)) - total) for sign in (1.0, -1.0))
    return float(ndtri_exp(below) if below < above else -ndtri_exp(above))


def inflation(z: Array, count: int) -> Array:
    """Return the factors of the variances that explain residuals z (n,): `count` draws of s^2.

    If z_i ~ N(0, s^2) and the prior of s^2 is the law of b / chi^2_b, its posterior is the law of (b + sum z^2) /
    chi^2_{b + n}. The draws are its equally spaced quantiles, in an order that mixes small and large. None is below 1,
    because doubt is not taken back, or above _MOST.
    """
    from scipy.special import chdtri

    share = ((_MIXING * np.arange(count)) % count + 0.5) / count
    factors: Array = (_BELIEF + float(z @ z)) / chdtri(_BELIEF + len(z), 1.0 - share)
    return np.clip(factors, 1.0, _MOST)


def _inflated(prior: Prior, trend: Trend | None, observed: Observations, factor: float) -> Posterior:
    """Return the posterior given these observations, with the variances of f and of the noise multiplied by a factor.

    Error bars are multiplied too: the residuals that the factor explains are those of values with error bars. A fixed
    kernel stays: where only the noise is learned, nothing is multiplied.
    """
    kernel = prior.kernel
    if not isinstance(kernel, AffineKernel):
        return conditioned(prior.posterior(trend), observed)
    kernel = AffineKernel(kernel.base, factor * kernel.factor, kernel.constant)
    return conditioned(Posterior.prior(kernel, factor * prior.noise_var, prior.mean, trend), observed, factor)
