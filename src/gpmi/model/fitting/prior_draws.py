"""Draws of the prior given the observations: the ledger's intervals are averaged over them.

They differ in three ways from the draws of fit="mcmc", over which a policy averages its score. The constant mean is
integrated out instead of set to its most probable value. The evidence decides, whatever the policy's fit is. The chain
has forgotten its start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Observations
from gpmi.gp.kernels import AffineKernel
from gpmi.gp.linalg import eigen
from gpmi.model.fitting.criterion import NO_FIT, Criterion, FitSetting
from gpmi.model.fitting.data import FIT_POINTS, FitData, warped
from gpmi.model.fitting.descent import ROUNDS, DescentPoint, descend, start
from gpmi.model.fitting.fit import Prior
from gpmi.model.fitting.noise_fit import noise_density
from gpmi.model.fitting.schedule import PriorSchedule, fit_size
from gpmi.model.fitting.slice_sampling import chain
from gpmi.model.fitting.source_rows import SourceUnits
from gpmi.model.fitting.warp import Warp

# Draws of the prior; everything that depends on them costs in proportion. The smallest number that covers well
# (docs/benchmarks/belief.md has the coverage).
DRAWS = 16
_SAME = 1.0  # sd: two peaks that are closer are one; our choice
_REPEATS, _NOTHING = 4, 0.02  # descents that are repeated from their end, at most, and the gain that is none, in nats
_DIFFERENCE = 0.02  # step of the differences behind a Hessian, in logarithms; rounding and curvature are far below 1 %
_STREAM = 3  # stream id of these draws; 1 and 2 in its place belong to the ledger
_BURN_IN = 4  # draws discarded because the chain starts at the peak; our choice


def drawn_priors(
    priors: PriorSchedule,
    p: int,
    observed: Observations,
    warp: Warp,
    *,
    known_mean: bool = False,
    preloaded: int = 0,
    open_noise: bool = False,
) -> tuple[Prior, ...]:
    """Draw the prior of warp(y) given the first p of the observations, several times with equal weights.

    No suggestion uses these draws. Only for a prior that is learned. With `open_noise` the noise has the prior
    LOG_OPEN_NOISE, if the kernel is learned, too.
    """
    first = observed.first(p)
    if not priors.learns_kernel:
        return draw_noise_priors(priors.setting, first)
    near = priors(fit_size(p), observed, known_mean=known_mean, preloaded=preloaded)
    rng = np.random.default_rng([priors.seed, p, 0, _STREAM])
    return draw_priors(priors.setting_of(near), first, near, warp, rng, open_noise=open_noise)


class DrawingProblem(NamedTuple):
    """The problem of drawing the prior of warp(y), in standardised units."""

    setting: FitSetting
    criterion: Criterion
    location: float
    scale: float
    warp: Warp

    @staticmethod
    def of(setting: FitSetting, observed: Observations, warp: Warp, *, open_noise: bool = False) -> DrawingProblem:
        """Return the problem given these observations of y; with `open_noise`, under the prior LOG_OPEN_NOISE."""
        location, scale, data = FitData.of(warped(observed, warp)).at_most(FIT_POINTS).standardised()
        criterion = setting.by_evidence.criterion(data.x, data.y, scale, data.noises)
        if open_noise:
            criterion.unknowns = criterion.unknowns.with_open_noise()
        return DrawingProblem(setting, criterion, location, scale, warp)

    def peaks(self, near: Prior) -> list[DescentPoint]:
        """Return the different local maxima of the density of q that descents find.

        They start from an earlier fit, if it had the same warp, from the centre of the hyper-prior and from much noise:
        rough data are explained by short lengthscales without noise or by long ones with noise, and between the two
        lies a valley that no chain crosses.
        """
        criterion, hessian = self.criterion, near.hessian if self.setting.kind is Criterion else None
        starts = [start(criterion, q) for q in (criterion.unknowns.centre, criterion.unknowns.noisy)]
        if near.warp == self.warp:
            starts.append(start(criterion, self.q_of(near), hessian))
        peaks: list[DescentPoint] = []
        for peak in sorted((_polished(criterion, begin) for begin in starts), key=lambda peak: peak.loss):
            if all(_apart(peak.q, other) for other in peaks):
                peaks.append(peak)
        return peaks

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
        sources = self.setting.sources
        units = None if sources is None else SourceUnits(sources, self.location, self.scale)
        return Prior(kernel, noise_var, self.location, warp=self.warp, sources=units)


def draw_priors(
    setting: FitSetting,
    observed: Observations,
    near: Prior,
    warp: Warp,
    rng: np.random.Generator,
    *,
    open_noise: bool = False,
) -> tuple[Prior, ...]:
    """Return DRAWS draws of the prior of warp(y) given observations of y, by slice sampling of exp(-surprisal).

    The chain starts at the most probable values, searched from `near`, a fit. A draw takes about five evaluations for
    each unknown, each O(n^3).
    """
    problem = DrawingProblem.of(setting, observed, warp, open_noise=open_noise)
    peaks, surprisal = problem.peaks(near), problem.criterion.surprisal
    if peaks[0].loss == NO_FIT:
        return (problem.prior(peaks[0].q),)
    unknowns = problem.criterion.unknowns
    drawn: list[Array] = []
    for peak, count in zip(peaks, _shares(peaks, surprisal), strict=True):
        if count:
            drawn += chain(surprisal, unknowns, peak, _BURN_IN + count, len(peak.q), rng)[_BURN_IN:]
    return tuple(problem.prior(q) for q in drawn)


def _polished(criterion: Criterion, begin: DescentPoint) -> DescentPoint:
    """Return the local minimum of the loss below a start, with the Hessian of the loss there.

    A start far up has gradients so large that the Hessian learned on the way is useless and the descent ends early: it
    is repeated from its end with a fresh one until that gains nothing. The Hessian takes two gradients an unknown.
    """
    peak = descend(criterion, begin, ROUNDS)
    for _ in range(_REPEATS):
        again = descend(criterion, start(criterion, peak.q), ROUNDS)
        if not again.loss < peak.loss - _NOTHING:
            break
        peak = again
    unknowns, hessian = criterion.unknowns, np.empty_like(peak.hessian)
    for k in range(len(peak.q)):
        ends = np.tile(peak.q, (2, 1))
        ends[:, k] = np.clip(peak.q[k] + np.array([-_DIFFERENCE, _DIFFERENCE]), unknowns.lo[k], unknowns.hi[k])
        below, above = (criterion.loss(q)[1] for q in ends)
        hessian[k] = (above - below) / (ends[1, k] - ends[0, k])
    values, vectors = eigen(0.5 * (hessian + hessian.T))
    if not np.isfinite(values).all():
        return peak
    curved = np.maximum(values, unknowns.width.max() ** -2)  # no wider than the prior
    return DescentPoint(peak.q, peak.loss, (vectors * curved) @ vectors.T)


def _apart(q: Array, peak: DescentPoint) -> bool:
    """Return whether q is another peak: more than _SAME sd away from this one, by its Hessian."""
    off = q - peak.q
    return float(off @ peak.hessian @ off) > _SAME**2


def _shares(peaks: list[DescentPoint], surprisal: Callable[[Array], float]) -> list[int]:
    """Return how many of the DRAWS belong to each peak: in proportion to its mass, by Laplace's approximation."""
    log_mass = np.array([-surprisal(peak.q) - 0.5 * np.linalg.slogdet(peak.hessian)[1] for peak in peaks])
    log_mass = np.where(np.isfinite(log_mass), log_mass, -NO_FIT)
    mass = np.exp(log_mass - log_mass.max())
    ends = np.round(np.cumsum(mass) / mass.sum() * DRAWS).astype(int)
    return [int(count) for count in np.diff(ends, prepend=0)]


def draw_noise_priors(setting: FitSetting, observed: Observations) -> tuple[Prior, ...]:
    """Return DRAWS priors with the fixed kernel and mean 0: noise_var at equally spaced quantiles of its density."""
    data = FitData.of(observed)
    density = noise_density(data.x, data.y, setting.template, data.noises)
    weight = np.exp(density.loss.min() - density.loss)
    below = np.cumsum(weight) - 0.5 * weight
    shares = (np.arange(DRAWS) + 0.5) / DRAWS * float(weight.sum())
    log_noise = np.interp(shares, below, density.log_noise)
    return tuple(Prior(setting.template, density.unit * float(np.exp(value))) for value in log_noise)
