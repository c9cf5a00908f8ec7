"""One fit: the prior that is most probable given some observations, or predicts them best, and draws around it.

The noise variance is learned together with the kernel; `noise_fit` learns it alone. The unknowns are learned in units
in which the space is the unit cube and y has mean 0 and variance 1. They are returned in the user's units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from gpmi._support.types import Array, Event
from gpmi.gp.kernels import Kernel
from gpmi.gp.posterior import Posterior
from gpmi.gp.trend import PriorMean
from gpmi.model.fitting.criterion import NO_FIT, Criterion, FitSetting
from gpmi.model.fitting.data import FIT_POINTS, FitData
from gpmi.model.fitting.descent import ROUNDS, DescentPoint, descend, start
from gpmi.model.fitting.leave_one_out import log_predictive
from gpmi.model.fitting.many_rows import best_of_all, surprisal_of_all
from gpmi.model.fitting.row_noise import RowNoise
from gpmi.model.fitting.slice_sampling import sample
from gpmi.model.fitting.source_rows import SourceRows, SourceUnits
from gpmi.model.fitting.theta_units import has_free_variance
from gpmi.model.fitting.warp import IDENTITY, Warp

# Our choices, not tuned.
SAMPLES = 8  # draws of the prior over which a score is averaged; the cost of a score is proportional to it
_RACE_ROUNDS = 6  # steps after which the starts of a fit are compared: about as many as a whole descent takes
_RACE_POINTS = 128  # observations in this comparison, at most: an eighth of the cost with FIT_POINTS
_RACE_TO_THE_END = 16  # up to this many observations a fit is cheap, and every start is followed to its minimum


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
    minima and `warm` as it is are then compared by their evidence on all rows, JUDGE_POINTS of them: some hundred rows
    may be explained by short lengthscales without noise, or say nothing of a parameter, where the others know better.
    """
    events = subset_event(y)
    whole = FitData(x, y, noises)
    subsample = whole.at_most(FIT_POINTS)
    location, scale, data = replace(subsample, y=warp(subsample.y)).standardised()
    z = data.y
    criterion = setting.criterion(data.x, z, scale, data.noises)
    starts = _starts(criterion, scale, warm, wide, many, setting.sources)
    if many:
        judged = surprisal_of_all(setting, whole, warp, criterion, scale)
        minimum, repeated = best_of_all(criterion, starts, judged, None if warm is None else starts[-1])
        events = (*events, *repeated)
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
        by_row = log_predictive(criterion, minimum.q)[len(criterion.y) - len(z) :]
        best = replace(best, log_predictive=by_row + warp.log_slope(subsample.y) - math.log(scale))
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


def subset_event(y: Array) -> tuple[Event, ...]:
    """Return an event if not all observations are used."""
    if len(y) <= FIT_POINTS:
        return ()
    return (Event("subset", f"the prior was learned from at most {FIT_POINTS} of the observations"),)
