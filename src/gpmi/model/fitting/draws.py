"""Draws of what the prior may be, given the observations: what an honest interval is averaged over.

They differ from the draws of fit="mcmc", which a policy averages its score over: the constant mean is integrated out
and not the most probable one, the evidence decides whatever the policy's fit is, and the chain has forgotten its start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Observations
from gpmi.gp.kernels import AffineKernel
from gpmi.model.fitting.criterion import NO_FIT, Criterion, Setting
from gpmi.model.fitting.data import FIT_POINTS, Data, warped
from gpmi.model.fitting.fit import Prior, noise_density
from gpmi.model.fitting.search import ROUNDS, Peak, chain, chain_along, descend, directions, start
from gpmi.model.fitting.warp import Warp

# Draws of the prior; what depends on them costs in proportion. The smallest number that covers well (issue 13 of the
# project's log; docs/benchmarks/ledger.md has the coverage).
DRAWS = 16
_EVERY = 4  # unknowns for each slice of a move: a quarter of the way between two draws of a chain; our choice
_BURN_IN = 4  # draws that are left out, because the chain starts at the peak; our choice


class Posed(NamedTuple):
    """The problem of drawing the prior of warp(y), in standardised units."""

    setting: Setting
    criterion: Criterion
    location: float
    scale: float
    warp: Warp

    @staticmethod
    def of(setting: Setting, observed: Observations, warp: Warp) -> Posed:
        """Given these observations of y."""
        location, scale, data = Data.of(warped(observed, warp)).at_most(FIT_POINTS).standardised()
        evidence = Setting(setting.template, setting.noise_var, setting.span, setting.groups)
        return Posed(setting, evidence.criterion(data.x, data.y, scale, data.noises), location, scale, warp)

    def peak(self, near: Prior) -> Peak:
        """The most probable q, found from an earlier fit, or from the centres where that was of another warp(y)."""
        criterion, hessian = self.criterion, None if self.setting.loo else near.hessian
        if near.warp == self.warp:
            starts = [start(criterion, self.q_of(near), hessian)]
        else:
            starts = [start(criterion, q) for q in (criterion.unknowns.centre, criterion.unknowns.noisy)]
        return min((descend(criterion, begin, ROUNDS) for begin in starts), key=lambda peak: peak.loss)

    def q_of(self, prior: Prior) -> Array:
        """The q of a prior, within the bounds."""
        kernel = prior.kernel.base if isinstance(prior.kernel, AffineKernel) else prior.kernel
        q = self.criterion.covariance.q_of(kernel, prior.noise_var / self.scale**2)
        clipped: Array = np.clip(q, self.criterion.unknowns.lo, self.criterion.unknowns.hi)
        return clipped

    def prior(self, q: Array) -> Prior:
        """The prior at q, in the user's units: its mean is N(mean of y, variance of y)."""
        given = self.setting.noise_var
        noise_var = self.criterion.noise(q) * self.scale**2 if given is None else given
        kernel = AffineKernel(self.criterion.covariance.kernel(q), constant=self.scale**2)
        return Prior(kernel, noise_var, self.location, warp=self.warp)


def draws(
    setting: Setting, observed: Observations, near: Prior, warp: Warp, rng: np.random.Generator
) -> tuple[Prior, ...]:
    """DRAWS draws of the prior of warp(y) given observations of y, by slice sampling of exp(-surprisal).

    The chain starts at the most probable values, which are looked for from `near`, a fit. A draw takes about five
    evaluations for each unknown, each O(n^3).
    """
    posed = Posed.of(setting, observed, warp)
    peak, unknowns = posed.peak(near), posed.criterion.unknowns
    if peak.loss == NO_FIT:
        return (posed.prior(peak.q),)
    sampled = chain(posed.criterion.surprisal, unknowns, peak, _BURN_IN + DRAWS, len(peak.q), rng)
    return tuple(posed.prior(q) for q in sampled[_BURN_IN:])


def moved(
    setting: Setting,
    observed: Observations,
    before: tuple[Prior, ...],
    hessian: Array | None,
    rng: np.random.Generator,
) -> tuple[Prior, ...]:
    """Draws of the prior given observations, each moved from a draw by one slice for every fourth unknown.

    If `before` has the right law already, as draws have that were resampled by their weights, the moves keep it and
    make equal draws differ. `hessian` is that of a fit nearby; it gives the slices their directions and scales.
    """
    posed = Posed.of(setting, observed, before[0].warp)
    unknowns, surprisal = posed.criterion.unknowns, posed.criterion.surprisal
    scales = directions(start(posed.criterion, unknowns.centre, hessian).hessian, unknowns)
    slices, after = -(-len(scales) // _EVERY), []
    for prior in before:
        after += chain_along(surprisal, unknowns, posed.q_of(prior), scales, 1, slices, rng)
    return tuple(posed.prior(q) for q in after)


def draws_of_noise(setting: Setting, observed: Observations) -> tuple[Prior, ...]:
    """DRAWS priors with the given kernel and mean 0: noise_var at the middle of as many equal shares of its density."""
    data = Data.of(observed)
    density = noise_density(data.x, data.y, setting.template, data.noises)
    weight = np.exp(density.loss.min() - density.loss)
    below = np.cumsum(weight) - 0.5 * weight
    shares = (np.arange(DRAWS) + 0.5) / DRAWS * float(weight.sum())
    log_noise = np.interp(shares, below, density.log_noise)
    return tuple(Prior(setting.template, density.unit * float(np.exp(value))) for value in log_noise)
