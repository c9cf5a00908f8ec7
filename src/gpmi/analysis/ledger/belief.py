"""The belief: what is known about f after n values. Every statement of the ledger is computed from it.

It is a mixture of posteriors with equal weights. If the prior is fixed, it is the model's own posterior. If the prior
is learned, a single prior, the most probable one, ignores how uncertain the prior is. The belief averages over draws of
the prior given all values. If the model is wrong, its one-step residuals show it, and the variances are raised to match
them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gpmi._support.types import Array, Observations
from gpmi.gp.kernels import AffineKernel
from gpmi.gp.posterior import Posterior
from gpmi.gp.trend import Trend
from gpmi.model.fitting.data import warped
from gpmi.model.fitting.fit import Prior
from gpmi.model.fitting.prior_draws import drawn_priors
from gpmi.model.model import Model, conditioned

_BELIEF = 5  # prior weight of factor 1, in pseudo-residuals; chosen on separate draws
_MOST = 1e12  # the largest factor of a variance: a residual of 1e90 sd says no more than one of 1e6, and overflows
_MIXING = 7  # not a divisor of the number of draws: successive draws in this order differ much
_QUANTILES = 64  # of each posterior, behind a quantile of the mixture: its error is below 2 % of an sd


class PriorDraws(NamedTuple):
    """Draws of the prior given n values, with equal weights, and the residuals of the values under them."""

    priors: tuple[Prior, ...]
    residuals: Array  # (n - 1,), N(0, 1) if the averaged prediction is right


class Belief(NamedTuple):
    """A mixture of posteriors of warp(y) with equal weights, and the one-step residuals that it explains."""

    posteriors: tuple[Posterior, ...]
    residuals: Array

    @property
    def noise_var(self) -> float:
        """The variance of the noise: the median over the posteriors."""
        return float(np.median([posterior.noise_var for posterior in self.posteriors]))

    @property
    def noise_vars(self) -> tuple[float, float]:
        """The 10 % and 90 % quantiles of the variance of the noise over the posteriors."""
        low, high = np.quantile([posterior.noise_var for posterior in self.posteriors], [0.1, 0.9]).tolist()
        return low, high

    def quantiles(self, row: Array, levels: Array) -> Array:
        """Return quantiles of f at a point (d,), in units of warp(y)."""
        from scipy.special import ndtri

        normal = ndtri((np.arange(_QUANTILES) + 0.5) / _QUANTILES)
        moments = [posterior(row[None]) for posterior in self.posteriors]
        values = np.concatenate([mu + np.sqrt(var) * normal for mu, var in moments])
        quantiles: Array = np.quantile(values, levels)
        return quantiles


def averages(model: Model) -> bool:
    """Return whether the belief averages over the prior: it is learned, and the noise is normal."""
    return not (model.setting.priors.is_fixed or model.setting.priors.student_noise)


def draw_priors_of(model: Model, observed: Observations, *, open_noise: bool = False) -> PriorDraws:
    """Draw the prior given the oriented values of a model. O(n^3) for each draw, and O(256^3) for each step of a chain.

    Each value is predicted from those before it, under every draw. A residual is the normal quantile of the averaged
    probability of a smaller value. It is N(0, 1) if that prediction is right, although the mixture is not normal. The
    draws know all values, so the residuals are slightly too small. In return they are those of the belief of today:
    residuals recorded while the model still took noise for signal would call it too sure of itself for ever.
    """
    setting = model.setting
    detrended = setting.detrended(observed)
    options: dict[str, Any] = {"known_mean": setting.trend is not None, "preloaded": setting.preloaded}
    priors = drawn_priors(setting.priors, model.n, detrended, model.warp, **options, open_noise=open_noise)
    ahead = [posterior.ahead.surprise[1:] for posterior in _posteriors(model, observed, priors, np.ones(len(priors)))]
    return PriorDraws(priors, normal_quantiles(np.array(ahead)))


def believed(model: Model, observed: Observations, draws: PriorDraws) -> Belief:
    """Return the belief after the oriented values of a model, given draws of its prior. O(n^3) for each draw."""
    factors = inflation(draws.residuals, len(draws.priors))
    return Belief(_posteriors(model, observed, draws.priors, factors), draws.residuals)


def _posteriors(
    model: Model, observed: Observations, priors: tuple[Prior, ...], factors: Array
) -> tuple[Posterior, ...]:
    """Return the posterior under each draw of the prior, its variances multiplied by its factor."""
    setting = model.setting
    values = warped(replace(observed, x=setting.detrended(observed).x), model.warp)
    pairs = zip(priors, factors.tolist(), strict=True)
    return tuple(_inflated(prior, setting.trend, values, factor) for prior, factor in pairs)


def normal_quantiles(z: Array) -> Array:
    """Return the normal quantiles of the mean over rows m of P(N(0, 1) < z_ms), (n,); exact far out in both tails."""
    from scipy.special import log_ndtr, logsumexp, ndtri_exp

    below, above = (logsumexp(log_ndtr(sign * z), axis=0) - np.log(len(z)) for sign in (1.0, -1.0))
    quantiles: Array = np.where(
        below < above, ndtri_exp(np.minimum(below, above)), -ndtri_exp(np.minimum(below, above))
    )
    return quantiles


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
    sources = None if prior.sources is None else prior.sources._replace(noise_factor=factor)
    inflated = replace(prior, kernel=kernel, noise_var=factor * prior.noise_var, sources=sources)
    return conditioned(inflated.posterior(trend), observed, factor)
