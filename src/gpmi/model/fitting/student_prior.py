"""The prior under heavy-tailed noise: its kernel, mean and noise scale, by expectation propagation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpmi._support.types import Observations
from gpmi.gp.approximate.ep import Sites, expectation_propagation
from gpmi.gp.approximate.student import log_student, student
from gpmi.gp.trend import Trend
from gpmi.model.fitting.criterion import FitSetting
from gpmi.model.fitting.data import FIT_POINTS, is_spread, standardised, subset
from gpmi.model.fitting.fit import Prior, fit
from gpmi.model.fitting.row_noise import MOST_OWN, RowNoise
from gpmi.model.fitting.unknowns import BOUNDS_NOISE, LOG_NOISE

ROUNDS = 6  # of sites, kernel and scale in turn, our choice: after six the scale moves by a few per cent at most
ENOUGH = 4  # values needed to tell anything from a tail: with fewer the prior is the start
MUTE = 100.0  # in units of k(x, x): a site with more noise, an outlier, tells nothing about the kernel; our choice
START = 0.05  # the share of noise in the variance of y at the start: as in `unknowns`
_NODES = 20  # of the Gauss-Hermite rule for means over f(x_i)


def student_sites(prior: Prior, observed: Observations, trend: Trend | None) -> Sites:
    """Return the sites of values whose noise is Student's t with the squared scale of the prior. O(n^3) a round.

    An error bar is added to the squared scale, and a mean of k evaluations has a k-th of it.
    """
    x = observed.x
    scale2 = prior.noise_var / observed.repeats + observed.noise_var
    mean = prior.posterior(trend).prior_mean(x)
    usual = _usual_variance(prior, observed)
    # The smallest scale: with none at all every value would be exact, and no value an outlier. A value with more than
    # the largest tells nothing, and its share of f would underflow.
    scale2 = np.clip(scale2, float(np.exp(BOUNDS_NOISE[0])) * usual, MOST_OWN * usual or np.inf)
    return expectation_propagation(prior.kernel(x, x), mean, student(observed.y, scale2))


def fit_student(setting: FitSetting, observed: Observations) -> Prior:
    """Learn the prior from these values; its noise_var is the squared scale of the noise.

    Three steps take turns. First, the sites of expectation propagation under the prior so far. Second, the kernel and
    the mean that are most probable given the sites as observations; at a fixed point the evidence of expectation
    propagation has the same derivative. Third, the scale that maximises the expected log likelihood over f at the
    values, as in the EM algorithm. O(n^3), some fifty times.
    """
    rows = subset(observed.y, FIT_POINTS)
    subsample = Observations.of(observed.x[rows], observed.y[rows], observed.noise_var[rows], observed.repeats[rows])
    n, ones = len(subsample), np.ones(len(subsample))
    learns = setting.template.unknown
    prior = _start(setting, subsample)
    exact = replace(setting, noise_var=0.0)
    for _ in range(ROUNDS if n >= ENOUGH else 0):
        sites = student_sites(prior, subsample, None)
        informative = sites.noise < MUTE * prior.kernel.diagonal(subsample.x)
        if learns and np.count_nonzero(informative) >= ENOUGH:
            repeats = ones[informative]
            noises = RowNoise(repeats, sites.noise[informative], repeats, 0.0 * repeats)
            fitted = fit(exact, subsample.x[informative], sites.value[informative], noises=noises)
            prior = replace(prior, kernel=fitted.kernel, mean=fitted.mean)
        if setting.noise_var is None:
            prior = replace(prior, noise_var=_scale2(prior, subsample, sites))
    return prior


def _start(setting: FitSetting, observed: Observations) -> Prior:
    """Return a prior that outliers have not influenced: the centre of the hyper-prior.

    Its unit is the median distance of y from its median, and its noise is START of that variance. A start at the most
    probable prior under normal noise would keep the short lengthscales that explain the outliers.
    """
    y = observed.y
    location = float(np.median(y)) if len(y) else 0.0
    scale = 1.4826 * float(np.median(np.abs(y - location))) if len(y) else 1.0  # the sd, if y is normal
    if not is_spread(scale, location):
        scale = standardised(y)[1]
    noise_var = START * scale**2 if setting.noise_var is None else setting.noise_var
    if not setting.template.unknown:
        return Prior(setting.template, noise_var)
    covariance = setting.criterion(observed.x, np.zeros(len(y)), scale).covariance
    return Prior(covariance.kernel(covariance.unknowns.centre), noise_var, location)


def _usual_variance(prior: Prior, observed: Observations) -> float:
    """Return the mean of k(x, x) over the values; where f is certain at all of them, the variance of y."""
    usual = float(prior.kernel.diagonal(observed.x).mean() if len(observed) else 1.0)
    return usual or standardised(observed.y)[1] ** 2


def _scale2(prior: Prior, observed: Observations, sites: Sites) -> float:
    """Return the squared scale of the noise with the largest sum_i E log t(y_i - f_i) + log prior, on a grid of 5 %."""
    log_noise = np.linspace(*BOUNDS_NOISE, 400)
    unit = _usual_variance(prior, observed)
    node, weight = np.polynomial.hermite_e.hermegauss(_NODES)
    off = (observed.y - sites.mean)[:, None] - np.sqrt(sites.var)[:, None] * node  # (n, N)
    penalty = 0.5 * ((log_noise - LOG_NOISE[0]) / LOG_NOISE[1]) ** 2
    worth = []
    for s in (unit * np.exp(log_noise)).tolist():
        scale2 = (s / observed.repeats + observed.noise_var)[:, None]
        worth.append(float((log_student(off, scale2) @ weight).sum()) / float(weight.sum()))
    return unit * float(np.exp(log_noise[int(np.argmax(np.array(worth) - penalty))]))
