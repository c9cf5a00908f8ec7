"""Draws of what the prior may be, given the observations: what an honest interval is averaged over.

They differ from the draws of fit="mcmc", which a policy averages its score over: the constant mean is integrated out and
not the most probable one, the evidence decides whatever the policy's fit is, and the chain has forgotten its start.
"""

from __future__ import annotations

import numpy as np

from gpmi.gp.lifted import Lifted
from gpmi.prior.criterion import NO_FIT, Criterion, Setting
from gpmi.prior.data import FIT_POINTS, standardised, subset
from gpmi.prior.fit import Prior, noise_density
from gpmi.prior.search import ROUNDS, chain, descend, start
from gpmi.prior.warp import Warp
from gpmi.types import Array

# Draws of the prior. A mixture of 16 covers as well as one of 64 (docs/benchmarks/ledger.md), and its cost is
# proportional to it.
DRAWS = 16
_BURN_IN = 4  # draws that are left out, because the chain starts at the peak; our choice


def draws(
    setting: Setting,
    x: Array,  # (n, d)
    y: Array,  # (n,)
    near: Prior,  # a fit, where the chain starts
    warp: Warp,
    rng: np.random.Generator,
) -> tuple[Prior, ...]:
    """DRAWS draws of the prior of warp(y) given y at x. Each has an unknown mean: N(mean of y, variance of y).

    Slice sampling of exp(-surprisal) that starts at the most probable values. A draw takes about six evaluations for
    every second unknown, each O(n^3).
    """
    rows = subset(y, FIT_POINTS)
    location, scale, z = standardised(warp(y[rows]))
    criterion = Setting(setting.template, setting.noise_var, setting.span, setting.groups).criterion(x[rows], z, scale)
    unknowns = criterion.unknowns
    starts = [unknowns.centre, unknowns.noisy]
    if near.warp == warp:
        starts = [criterion.covariance.q_of(near.kernel, near.noise_var / scale**2)]
    hessian = near.hessian if near.warp == warp and not setting.loo else None
    peaks = [descend(criterion, start(criterion, q, hessian), ROUNDS) for q in starts]
    peak = min(peaks, key=lambda peak: peak.loss)
    if peak.loss == NO_FIT:
        return (_prior(setting, criterion, peak.q, location, scale, warp),)
    apart = -(-len(peak.q) // 2)
    sampled = chain(criterion.surprisal, unknowns, peak, _BURN_IN + DRAWS, apart, rng)
    return tuple(_prior(setting, criterion, q, location, scale, warp) for q in sampled[_BURN_IN:])


def _prior(setting: Setting, criterion: Criterion, q: Array, location: float, scale: float, warp: Warp) -> Prior:
    """The prior at q, in the user's units."""
    noise_var = criterion.noise(q) * scale**2 if setting.noise_var is None else setting.noise_var
    kernel = Lifted(criterion.covariance.kernel(q), constant=scale**2)
    return Prior(kernel, noise_var, location, warp=warp)


def draws_of_noise(setting: Setting, x: Array, y: Array) -> tuple[Prior, ...]:
    """DRAWS priors with the given kernel and mean 0: noise_var at the middle of as many equal shares of its density."""
    density = noise_density(x, y, setting.template)
    weight = np.exp(density.loss.min() - density.loss)
    below = np.cumsum(weight) - 0.5 * weight
    shares = (np.arange(DRAWS) + 0.5) / DRAWS * float(weight.sum())
    log_noise = np.interp(shares, below, density.log_noise)
    return tuple(Prior(setting.template, density.unit * float(np.exp(value))) for value in log_noise)
