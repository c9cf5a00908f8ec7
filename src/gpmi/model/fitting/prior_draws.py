"""Draws of the prior given the observations: the ledger's intervals are averaged over them.

They differ in three ways from the draws of fit="mcmc", over which a policy averages its score. The constant mean is
integrated out instead of set to its most probable value. The evidence decides, whatever the policy's fit is. The chain
has forgotten its start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Observations
from gpmi.gp.kernels import AffineKernel
from gpmi.model.fitting.criterion import NO_FIT, Criterion, FitSetting
from gpmi.model.fitting.data import FIT_POINTS, FitData, warped
from gpmi.model.fitting.descent import ROUNDS, DescentPoint, descend, start
from gpmi.model.fitting.fit import Prior, noise_density
from gpmi.model.fitting.slice_sampling import chain, chain_along, directions
from gpmi.model.fitting.warp import Warp

# Draws of the prior; everything that depends on them costs in proportion. The smallest number that covers well
# (docs/benchmarks/ledger.md has the coverage).
DRAWS = 16
_EVERY = 4  # unknowns per slice of a move: a quarter of the slices between two draws of a chain; our choice
_BURN_IN = 4  # draws discarded because the chain starts at the peak; our choice


class DrawingProblem(NamedTuple):
    """The problem of drawing the prior of warp(y), in standardised units."""

    setting: FitSetting
    criterion: Criterion
    location: float
    scale: float
    warp: Warp

    @staticmethod
    def of(setting: FitSetting, observed: Observations, warp: Warp) -> DrawingProblem:
        """Return the problem given these observations of y."""
        location, scale, data = FitData.of(warped(observed, warp)).at_most(FIT_POINTS).standardised()
        evidence = FitSetting(setting.template, setting.noise_var, setting.span, setting.groups)
        return DrawingProblem(setting, evidence.criterion(data.x, data.y, scale, data.noises), location, scale, warp)

    def peak(self, near: Prior) -> DescentPoint:
        """Return the most probable q, found from an earlier fit, or from the centres if that fit had another warp."""
        criterion, hessian = self.criterion, None if self.setting.loo else near.hessian
        if near.warp == self.warp:
            starts = [start(criterion, self.q_of(near), hessian)]
        else:
            starts = [start(criterion, q) for q in (criterion.unknowns.centre, criterion.unknowns.noisy)]
        return min((descend(criterion, begin, ROUNDS) for begin in starts), key=lambda peak: peak.loss)

    def q_of(self, prior: Prior) -> Array:
        """Return the q of a prior, within the bounds."""
        kernel = prior.kernel.base if isinstance(prior.kernel, AffineKernel) else prior.kernel
        q = self.criterion.covariance.q_of(kernel, prior.noise_var / self.scale**2)
        clipped: Array = np.clip(q, self.criterion.unknowns.lo, self.criterion.unknowns.hi)
        return clipped

    def prior(self, q: Array) -> Prior:
        """Return the prior at q, in the user's units: its mean is N(mean of y, variance of y)."""
        fixed = self.setting.noise_var
        noise_var = self.criterion.noise(q) * self.scale**2 if fixed is None else fixed
        kernel = AffineKernel(self.criterion.covariance.kernel(q), constant=self.scale**2)
        return Prior(kernel, noise_var, self.location, warp=self.warp)


def draw_priors(
    setting: FitSetting, observed: Observations, near: Prior, warp: Warp, rng: np.random.Generator
) -> tuple[Prior, ...]:
    """Return DRAWS draws of the prior of warp(y) given observations of y, by slice sampling of exp(-surprisal).

    The chain starts at the most probable values, searched from `near`, a fit. A draw takes about five evaluations for
    each unknown, each O(n^3).
    """
    problem = DrawingProblem.of(setting, observed, warp)
    peak, unknowns = problem.peak(near), problem.criterion.unknowns
    if peak.loss == NO_FIT:
        return (problem.prior(peak.q),)
    sampled = chain(problem.criterion.surprisal, unknowns, peak, _BURN_IN + DRAWS, len(peak.q), rng)
    return tuple(problem.prior(q) for q in sampled[_BURN_IN:])


def move_priors(
    setting: FitSetting,
    observed: Observations,
    before: tuple[Prior, ...],
    hessian: Array | None,
    rng: np.random.Generator,
) -> tuple[Prior, ...]:
    """Move each draw of the prior by one slice for every fourth unknown, given the observations.

    If `before` already has the right distribution, as draws resampled by their weights have, the moves preserve it and
    make equal draws differ. `hessian`, from a fit nearby, gives the slices their directions and scales.
    """
    problem = DrawingProblem.of(setting, observed, before[0].warp)
    unknowns, surprisal = problem.criterion.unknowns, problem.criterion.surprisal
    scales = directions(start(problem.criterion, unknowns.centre, hessian).hessian, unknowns)
    slices, after = -(-len(scales) // _EVERY), []
    for prior in before:
        after += chain_along(surprisal, unknowns, problem.q_of(prior), scales, 1, slices, rng)
    return tuple(problem.prior(q) for q in after)


def draw_noise_priors(setting: FitSetting, observed: Observations) -> tuple[Prior, ...]:
    """Return DRAWS priors with the fixed kernel and mean 0: noise_var at equally spaced quantiles of its density."""
    data = FitData.of(observed)
    density = noise_density(data.x, data.y, setting.template, data.noises)
    weight = np.exp(density.loss.min() - density.loss)
    below = np.cumsum(weight) - 0.5 * weight
    shares = (np.arange(DRAWS) + 0.5) / DRAWS * float(weight.sum())
    log_noise = np.interp(shares, below, density.log_noise)
    return tuple(Prior(setting.template, density.unit * float(np.exp(value))) for value in log_noise)
