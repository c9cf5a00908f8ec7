"""The prediction averaged over what the prior may be: what the interval is made of where the prior is learned.

A single prior, the most probable one, takes for certain what is only likely. Averaged over draws of the prior the
prediction is honest if the model is right. Where it is not, the residuals of earlier predictions say so, and the
variances are raised to what they show.
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

FIRST = 4  # values before the first that is foreseen, at least: with fewer a draw is one of the hyper-prior
_ALIVE = 0.3  # effective share of the draws below which they are moved; our choice: half is usual, and costs more
_AHEAD = 8  # values that are looked at together: draws seldom serve for more before they are moved
# Draws of so many values serve for longer, an eighth of them at least, and those that have served for long probably
# serve as long again: 1,000 values in ten dimensions then take 4 s and not 22.
_MANY = 256
# Residuals of a long run, at least: ten times as many as a verdict needs. Each costs O(n^3) now and then, so all of the
# latter half would take 14 s for 1,000 values in ten dimensions, and these take 5.
RECENT = 128
_BELIEF = 5  # the variances count as confirmed by this many residuals of mean square 1: chosen on other draws
_MOST = 1e12  # times that variances are multiplied: a residual of 1e90 sd says no more than one of 1e6, and overflows
_MIXING = 7  # no divisor of the number of draws: the draws that follow one another in this order differ much


@dataclass(frozen=True, eq=False)
class Values:
    """The values told, oriented, modelled as warp(y)."""

    setting: ModelSetting
    observed: Observations
    warp: Warp

    def __len__(self) -> int:
        return len(self.observed)

    @cached_property
    def _known(self) -> Observations:
        """What the prior is learned from."""
        return self.setting.detrended(self.observed)

    @property
    def _kind(self) -> dict[str, Any]:
        return {"known_mean": self.setting.trend is not None, "preloaded": self.setting.preloaded}

    def drawn(self, n: int) -> tuple[Prior, ...]:
        """Draws of the prior given the first n values, with equal weights."""
        return self.setting.priors.draw(n, self._known, self.warp, **self._kind)

    def moved(self, n: int, before: tuple[Prior, ...]) -> tuple[Prior, ...]:
        """Draws of the prior given the first n values, moved from draws that have their law."""
        return self.setting.priors.move(n, self._known, before, **self._kind)

    def foreseen(self, drawn: tuple[Prior, ...], n: int) -> list[tuple[Array, Array]]:
        """The residual and the predictive sd of each of the first n values, (n,), under each draw."""
        first = warped(replace(self.observed, x=self._known.x).first(n), self.warp)
        if first.plain and self.setting.trend is None and not merges(first):
            return [_foreseen(prior, first.x, first.y) for prior in drawn]
        return [(ahead.surprise, ahead.pivot) for ahead in (post.ahead for post in self.posteriors(drawn, n))]

    def posteriors(self, drawn: tuple[Prior, ...], n: int, factors: Array | None = None) -> tuple[Posterior, ...]:
        """The posterior given the first n values under each draw, its variances multiplied by its factor."""
        first = warped(replace(self.observed, x=self._known.x).first(n), self.warp)
        scales = np.ones(len(drawn)) if factors is None else factors
        pairs = zip(drawn, scales.tolist(), strict=True)
        return tuple(_inflated(prior, self.setting.trend, first, factor) for prior, factor in pairs)


class Particles(NamedTuple):
    """Draws of the prior given the first n values, with equal weights."""

    n: int
    drawn: tuple[Prior, ...]

    def ahead(self, values: Values, end: int) -> tuple[Array, Array]:
        """How the draws foresaw values n + 1 to `end`: residuals and log densities, (draws, end - n). O(end^3) each.

        It is O(end m^2) where the values are merged, which are at m different points.
        Each value is predicted from all before it, under a prior that knew only the first n.
        """
        foreseen = values.foreseen(self.drawn, end)
        z = np.array([surprise[self.n :] for surprise, _ in foreseen])
        pivots = np.array([pivot[self.n :] for _, pivot in foreseen])
        return z, -0.5 * z**2 - np.log(pivots)

    def moved(self, values: Values, n: int, log_weights: Array) -> Particles:
        """Draws given the first n values: resampled by their weights, then moved."""
        weights = np.exp(log_weights - log_weights.max())
        shares = (np.arange(len(weights)) + 0.5) / len(weights) * float(weights.sum())
        picked = np.minimum(np.searchsorted(np.cumsum(weights), shares), len(weights) - 1)
        before = tuple(self.drawn[i] for i in picked)
        return Particles(n, values.moved(n, before))


@dataclass(eq=False)
class Foreseen:
    """Residuals of a run under the averaged prediction, kept so that the next value costs little."""

    particles: dict[tuple[Warp, int], Particles] = field(default_factory=dict)  # by the value at which they began
    residuals: dict[tuple[Warp, int], list[float]] = field(default_factory=dict)
    last: dict[tuple[Warp, int], tuple[Prior, ...]] = field(default_factory=dict)  # by the number of values

    def __call__(self, values: Values) -> Array:
        """The one-step residuals of the latter half of the values, or of a little more: from value `begin` on.

        Each is predicted from all values before it, averaged over draws of the prior that did not know it. The draws
        are weighted by how well they foresaw the values since they were made. When too few of them count, they
        are resampled and moved. A residual is the normal quantile of the probability of a smaller value: N(0, 1) if
        the averaged prediction is right, which itself is not normal.
        """
        n = len(values)
        if n <= FIRST:
            return np.empty(0)
        key = values.warp, begin(n)
        found = self.residuals.setdefault(key, [])
        while len(found) < n - key[1]:
            done, particles = key[1] + len(found), self.particles.get(key)
            if particles is None:
                particles = Particles(done, values.drawn(done))
            self.particles[key] = self._advance(values, particles, done, found)
        return np.array(found[: n - key[1]])

    def _advance(self, values: Values, particles: Particles, done: int, found: list[float]) -> Particles:
        """Append residuals after value `done`, up to the last value or to where the draws are worn out; move these."""
        far = _AHEAD if particles.n < _MANY else max(particles.n // _AHEAD, done - particles.n)
        end = min(len(values), 2 * particles.n, done + far)
        z, densities = particles.ahead(values, end)
        for s in range(done, end):
            k = s - particles.n
            log_weights = densities[:, :k].sum(axis=1)
            found.append(_normal_quantile(z[:, k], log_weights))
            after = log_weights + densities[:, k]
            if _alive(after) < _ALIVE or s + 1 == 2 * particles.n:
                return particles.moved(values, s + 1, after)
        return particles

    def drawn(self, values: Values) -> tuple[Prior, ...]:
        """Draws of the prior given all values, with equal weights: those behind the residuals, moved once more."""
        key = values.warp, len(values)
        if key not in self.last:
            self.last[key] = self._drawn(values)
        return self.last[key]

    def _drawn(self, values: Values) -> tuple[Prior, ...]:
        n = len(values)
        if n <= FIRST:
            return values.drawn(n)
        self(values)
        particles = self.particles[values.warp, begin(n)]
        if particles.n > n:  # the run went on since
            return Foreseen().drawn(values)
        if particles.n == n:
            return particles.drawn
        return particles.moved(values, n, particles.ahead(values, n)[1].sum(axis=1)).drawn


def _foreseen(prior: Prior, x: Array, z: Array) -> tuple[Array, Array]:
    """The residual and the predictive sd of each z_s (n,) at x (n, d), given those before it: L^-1 (z - m) and L_ss.

    They are those of the posterior. Where C is not far from singular that is asked, and repairs it.
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
    """The number of values before the first that is foreseen, if there are n: the largest power of 2 up to n / 2.

    Of many values at least RECENT and less than twice as many are foreseen, the last of them.
    """
    half = max(FIRST, 1 << (max(1, n // 2).bit_length() - 1))
    return half if n < 4 * RECENT else max(half, RECENT * (n // RECENT - 1))


def _alive(log_weights: Array) -> float:
    """The effective share of the draws: (sum w)^2 / sum w^2 by their number."""
    weights = np.exp(log_weights - log_weights.max())
    return float(weights.sum() ** 2 / (weights @ weights)) / len(weights)


def _normal_quantile(z: Array, log_weights: Array) -> float:
    """The normal quantile of sum_m w_m P(N(0, 1) < z_m); exact far out in both tails."""
    from scipy.special import log_ndtr, logsumexp, ndtri_exp

    total = logsumexp(log_weights)
    below, above = (float(logsumexp(log_weights + log_ndtr(sign * z)) - total) for sign in (1.0, -1.0))
    return float(ndtri_exp(below) if below < above else -ndtri_exp(above))


def inflation(z: Array, count: int) -> Array:
    """By how much the variances must be multiplied to explain residuals z (n,): `count` draws of s^2.

    If z_i ~ N(0, s^2) and the law of s^2 before is that of b / chi^2_b, it is that of (b + sum z^2) / chi^2_{b + n}
    given z. The draws are its quantiles at the middle of as many equal shares, in an order that mixes small and large.
    None is below 1, because doubt is not taken back, or above _MOST.
    """
    from scipy.special import chdtri

    share = ((_MIXING * np.arange(count)) % count + 0.5) / count
    factors: Array = (_BELIEF + float(z @ z)) / chdtri(_BELIEF + len(z), 1.0 - share)
    return np.clip(factors, 1.0, _MOST)


def _inflated(prior: Prior, trend: Trend | None, observed: Observations, factor: float) -> Posterior:
    """The posterior given these observations, the variances of f and of the noise multiplied by a factor.

    Error bars are multiplied, too: the residuals that the factor explains are those of values with error bars. What is
    given stays: where only the noise is learned, nothing is multiplied.
    """
    kernel = prior.kernel
    if not isinstance(kernel, AffineKernel):
        return conditioned(prior.posterior(trend), observed)
    kernel = AffineKernel(kernel.base, factor * kernel.factor, kernel.constant)
    return conditioned(Posterior.prior(kernel, factor * prior.noise_var, prior.mean, trend), observed, factor)
