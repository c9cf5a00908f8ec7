"""One fit: the prior that is most probable given some observations, or predicts them best, and draws around it.

The noise variance is learned here: together with the kernel in `fit`, alone in `fit_noise`. The unknowns are learned in
units in which the space is the unit cube and y has mean 0 and variance 1. They are returned in the user's units.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Event
from gpmi.gp.conditioned import Conditioned
from gpmi.gp.kernels import Kernel
from gpmi.gp.linalg import eigen, invert
from gpmi.gp.posterior import Posterior
from gpmi.gp.trend import PriorMean
from gpmi.model.fitting.criterion import NO_FIT, Criterion, FitSetting
from gpmi.model.fitting.data import FIT_POINTS, FitData, RowNoise
from gpmi.model.fitting.descent import ROUNDS, DescentPoint, descend, start
from gpmi.model.fitting.slice_sampling import sample
from gpmi.model.fitting.source_rows import SourceRows
from gpmi.model.fitting.theta_units import has_free_variance
from gpmi.model.fitting.unknowns import BOUNDS_NOISE, LOG_NOISE
from gpmi.model.fitting.warp import IDENTITY, Warp

# Our choices, not tuned.
SAMPLES = 8  # draws of the prior over which a score is averaged; the cost of a score is proportional to it
_RACE_ROUNDS = 6  # steps after which the starts of a fit are compared: about as many as a whole descent takes
_RACE_POINTS = 128  # observations in this comparison, at most: an eighth of the cost with FIT_POINTS
_JUDGE_POINTS = 1024  # observations on which the minima of a fit on FIT_POINTS of them are compared, at most
_FAR = 16.0  # skip noise variances this many nats (a factor of 1e7) less probable than the best
_RACE_TO_THE_END = 16  # up to this many observations a fit is cheap, and every start is followed to its minimum

EARLIER_STAYS = Event(
    "subset", "an earlier prior explains all values better than one learned from others of them, and stays"
)


class SourceUnits(NamedTuple):
    """The values of earlier studies in the units of this one: location + scale * standardised value."""

    rows: SourceRows
    location: float
    scale: float
    noise_factor: float = 1.0  # of the noise variances

    def condition(self, kernel: Kernel, noise_var: float, mean: float) -> Conditioned:
        """Return f given the values of the sources."""
        return self.rows.condition(kernel, noise_var, mean, self.location, self.scale, self.noise_factor)


@dataclass(frozen=True)
class Prior:
    """f ~ GP(mean, kernel), observed with noise of variance noise_var; both in units of warp(y)."""

    kernel: Kernel
    noise_var: float
    mean: float = 0.0
    events: tuple[Event, ...] = ()
    hessian: Array | None = field(default=None, repr=False, compare=False)  # of the loss; warm start of the next fit
    warp: Warp = IDENTITY
    samples: tuple[Prior, ...] = field(default=(), repr=False)  # draws of the prior given y, with fit="mcmc"
    sources: SourceUnits | None = field(default=None, repr=False)  # of earlier studies, to which f is related
    # log p(y_i | the other y), (n,), and the fit with earlier studies, or without, that lost against this one:
    log_predictive: Array | None = field(default=None, repr=False, compare=False)
    rival: Prior | None = field(default=None, repr=False, compare=False)

    def posterior(self, trend: PriorMean | None = None) -> Posterior:
        """Return the posterior without observations; a known mean function adds to the mean.

        Values of earlier studies change its mean and its kernel. O(n^3) for n of them.
        """
        if self.sources is not None:
            given = self.sources.condition(self.kernel, self.noise_var, self.mean)
            return Posterior.prior(given.kernel, self.noise_var, 0.0, given.mean)
        return Posterior.prior(self.kernel, self.noise_var, self.mean, trend)


def fit(
    setting: FitSetting,
    x: Array,  # (n, d)
    y: Array,  # (n,)
    *,
    warp: Warp = IDENTITY,
    warm: Prior | None = None,
    wide: bool = True,
    many: bool = False,
    rng: np.random.Generator | None = None,
    noises: RowNoise | None = None,
    predictive: bool = False,
) -> Prior:
    """Return the most probable prior of warp(y) given y at x, or the one that predicts y best.

    With `noises` the rows have their own noise or are means (`gpmi.model.fitting.data`), in units of warp(y).

    An evaluation of the loss, with analytic gradients, costs O(n^3); a descent takes about five. Short lengthscales
    without noise and long lengthscales with noise can both explain rough data. So a `wide` search compares three
    starts: the centre of the hyper-prior, the same with much noise, and `warm`, an earlier fit. A search that is not
    wide starts from `warm` alone. With `rng` the result also has SAMPLES draws of the prior given y, and with
    `predictive` how well it predicts each y from the others.

    With `many` observations, more than FIT_POINTS, every start is followed to its minimum on the rows of the fit. The
    minima and `warm` as it is are then compared by their evidence on all rows, _JUDGE_POINTS of them: some hundred rows
    may be explained by short lengthscales without noise, or say nothing of a parameter, where the others know better.
    """
    events = _subset_event(y)
    whole = FitData(x, y, noises)
    subsample = whole.at_most(FIT_POINTS)
    location, scale, data = replace(subsample, y=warp(subsample.y)).standardised()
    z = data.y
    criterion = setting.criterion(data.x, z, scale, data.noises)
    starts = _starts(criterion, scale, warm, wide, many, setting.sources)
    if many:
        minima = [descend(criterion, begin, ROUNDS) for begin in starts]
        if warm is not None:
            minima.append(descend(criterion, starts[-1], 0))  # the earlier fit as it is
        minimum = min(minima, key=_surprisal_of_all(setting, whole, warp, criterion, scale))
        if warm is not None and minimum is minima[-1]:
            events = (*events, EARLIER_STAYS)
    else:
        minimum = _best_minimum(criterion, starts)
    if minimum.loss == NO_FIT and len(z):
        failure = f"the fit on {len(z)} observations failed; the centre of the hyper-prior is used"
        minimum, events = start(criterion, criterion.unknowns.centre), (*events, Event("fit", failure))
    events = (*events, *_unexplained(setting, criterion, minimum.q))

    def prior_at(q: Array, hessian: Array | None = None) -> Prior:
        """Return the prior at q, in the user's units."""
        noise_var = criterion.noise(q) * scale**2 if setting.noise_var is None else setting.noise_var
        mean = location + scale * criterion.mean(q)
        units = None if setting.sources is None else SourceUnits(setting.sources, location, scale)
        return Prior(criterion.covariance.kernel(q), noise_var, mean, events, hessian, warp, sources=units)

    best = prior_at(minimum.q, minimum.hessian)
    if predictive:
        log_predictive = criterion.log_predictive(minimum.q)[len(criterion.y) - len(z) :]
        best = replace(best, log_predictive=log_predictive + warp.log_slope(subsample.y) - math.log(scale))
    if rng is None or minimum.loss == NO_FIT:
        return best
    return replace(best, samples=tuple(prior_at(q) for q in sample(criterion, minimum, SAMPLES, rng)))


def _starts(
    criterion: Criterion, scale: float, warm: Prior | None, wide: bool, many: bool, sources: SourceRows | None
) -> list[DescentPoint]:
    """Return the starts of the search, the earlier fit last. From many rows the centre leads nowhere else."""
    unknowns = criterion.unknowns
    starts = [unknowns.centre, unknowns.noisy] if wide or warm is None else []
    if many and warm is not None:
        starts = starts[1:]
    if sources is not None and starts:
        starts += sources.flipped(unknowns.centre)
    if warm is not None:
        starts.append(criterion.covariance.q_of(warm.kernel, warm.noise_var / scale**2))
    return [start(criterion, q, None if warm is None else warm.hessian) for q in starts]


def _best_minimum(criterion: Criterion, starts: list[DescentPoint]) -> DescentPoint:
    """Return a minimum of the loss: all starts descend for a few steps, and the best of them goes on."""
    n = len(criterion.y)
    if n == 0:
        return starts[0]
    if len(starts) > 1:
        rough = criterion.on_at_most(_RACE_POINTS)
        rounds = ROUNDS if n <= _RACE_TO_THE_END else _RACE_ROUNDS
        starts = [min((descend(rough, begin, rounds) for begin in starts), key=lambda minimum: minimum.loss)]
    return descend(criterion, starts[0], ROUNDS)


def _surprisal_of_all(
    setting: FitSetting, whole: FitData, warp: Warp, criterion: Criterion, scale: float
) -> Callable[[DescentPoint], float]:
    """Return -log p(y, q) at a point in the units of `criterion`, for y of up to _JUDGE_POINTS rows of `whole`.

    Each call costs a factorisation, O(n^3).
    """
    rows = whole.at_most(_JUDGE_POINTS)
    _, unit, data = replace(rows, y=warp(rows.y)).standardised()
    judge = setting.criterion(data.x, data.y, unit, data.noises)

    def surprisal(point: DescentPoint) -> float:
        noise = criterion.noise(point.q) * (scale / unit) ** 2
        return judge.surprisal(judge.covariance.q_of(criterion.covariance.kernel(point.q), noise))

    return surprisal


def _unexplained(setting: FitSetting, criterion: Criterion, q: Array) -> tuple[Event, ...]:
    """Return an event if the fixed parts of the kernel cannot explain y.

    There are two signs. Either y lies farther from the predictions than the model allows: under the model n times the
    misfit is chi^2_n, and 4 standard deviations above its mean is too much. Or the fitted
    noise exceeds twice f's fixed variance, the limit of `fit_noise`.
    """
    n, template = criterion.values, setting.template
    if n == 0 or not np.isfinite(template.theta).any():
        return ()
    limit = 2.0 * float(np.mean(criterion.covariance(q).diagonal))
    if setting.noise_var is None and not has_free_variance(template) and criterion.noise(q) > limit:
        how = "so most of it is taken for noise"
    elif criterion.misfit(q) > 1.0 + 4.0 * math.sqrt(2.0 / n):
        how = "and it lies too far from the predictions"
    else:
        return ()
    message = (
        f"y varies more than the fixed parts of this kernel explain, {how}; scale y or k, or make these parts None"
    )
    return (Event("clipped", message),)


class NoiseDensity(NamedTuple):
    """-log p(noise_var | y) without constants, at noise_var = unit * exp(log_noise)."""

    log_noise: Array  # (400,)
    loss: Array  # (400,), infinite where it was skipped because it is far above the smallest
    unit: float


def noise_density(x: Array, y: Array, kernel: Kernel, noises: RowNoise | None = None) -> NoiseDensity:
    """Return the density of noise_var given y, under a fixed kernel with mean 0. O(n^3): one eigendecomposition.

    If rows have their own error bars, it takes one factorisation for each noise_var tried.
    """
    data = FitData(x, y, noises).at_most(FIT_POINTS)
    x, y, noises = data.x, data.y, data.noises
    mean = float(kernel.diagonal(x).mean()) if len(y) else 0.0
    unit = mean if mean * np.exp(BOUNDS_NOISE[0]) >= np.finfo(float).tiny else 1.0  # a smaller noise_var divides to nan
    log_noise = np.linspace(*BOUNDS_NOISE, 400)  # steps of 5 %
    penalty = 0.5 * ((log_noise - LOG_NOISE[0]) / LOG_NOISE[1]) ** 2
    s = unit * np.exp(log_noise)
    if noises is not None and noises.error.any():
        return NoiseDensity(log_noise, _loss_with_error_bars(kernel(x, x), y, noises, s, penalty), unit)
    # With rows of noise s / w_i, K is scaled by w: sqrt(w) K sqrt(w) = Q diag(values) Q^T, so each s costs O(n).
    root = np.ones(len(y)) if noises is None else np.sqrt(noises.repeats * noises.values)
    values, vectors = eigen(kernel(x, x) * root * root[:, None])
    rotated = (vectors.T @ (y * root)) ** 2
    total = np.maximum(values, 0.0)[:, None] + s  # an eigenvalue below 0 is rounding
    loss = 0.5 * (rotated[:, None] / total + np.log(total)).sum(axis=0) + penalty
    if noises is not None:
        loss += [noises.minus_log_within(each)[0] for each in s.tolist()]
    return NoiseDensity(log_noise, loss, unit)


def fit_noise(x: Array, y: Array, kernel: Kernel, noises: RowNoise | None = None) -> Prior:
    """Learn the most probable noise_var under a fixed kernel, with mean 0. The cost is that of `noise_density`."""
    events = _subset_event(y)
    log_noise, loss, unit = noise_density(x, y, kernel, noises)
    best = int(np.argmin(loss))
    noise_var = unit * float(np.exp(log_noise[best]))
    if best == len(log_noise) - 1 and len(y):
        clipped = f"noise_var was limited to {noise_var:.3g}: y varies more than this kernel can explain; scale y or k"
        events = (*events, Event("clipped", clipped))
    return Prior(kernel, noise_var, events=events)


def _loss_with_error_bars(k: Array, y: Array, noises: RowNoise, s: Array, penalty: Array) -> Array:
    """Return the loss at the noise variances s for rows with error bars: first at every tenth, then where it is small.

    Grid cells whose two ends are both _FAR above the minimum are skipped (inf).
    """

    def loss(number: int) -> float:
        c = k + np.diag(noises.of_rows(float(s[number])))
        solved = invert(c, y[:, None])
        if solved is None:
            return math.inf
        fitted = 0.5 * (float(y @ solved.solution[:, 0]) + solved.logdet)
        return fitted + noises.minus_log_within(float(s[number]))[0] + float(penalty[number])

    losses = np.full(len(s), np.inf)
    rough = [*range(0, len(s) - 1, 10), len(s) - 1]
    losses[rough] = [loss(number) for number in rough]
    near = losses[rough] <= losses.min() + _FAR
    for i in np.flatnonzero(near[:-1] | near[1:]).tolist():
        between = range(rough[i] + 1, rough[i + 1])
        losses[between] = [loss(number) for number in between]
    return losses


def _subset_event(y: Array) -> tuple[Event, ...]:
    """Return an event if not all observations are used."""
    if len(y) <= FIT_POINTS:
        return ()
    return (Event("subset", f"the prior was learned from at most {FIT_POINTS} of the observations"),)
