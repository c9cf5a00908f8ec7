"""The prior where the noise has heavy tails: its kernel, mean and scale, by expectation propagation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpmi._support.types import Array, Observations
from gpmi.gp.approximate.ep import Sites, expectation_propagation
from gpmi.gp.approximate.student import log_student, student
from gpmi.gp.trend import Trend
from gpmi.model.fitting.criterion import Setting
from gpmi.model.fitting.data import FIT_POINTS, Noises, is_spread, standardised, subset
from gpmi.model.fitting.fit import Prior, fit
from gpmi.model.fitting.unknowns import BOUNDS_NOISE, LOG_NOISE

ROUNDS = 6  # of sites, kernel and scale in turn, our choice: after six the scale moves by a few per cent at most
ENOUGH = 4  # values below which nothing can be told from a tail: the prior is then that of the start
MUTE = 100.0  # in units of k(x, x): a site with more noise, that of an outlier, says nothing of the kernel; our choice
START = 0.05  # the share of the variance of y that is noise at first: as in `unknowns`
_NODES = 20  # of Gauss and Hermite, for means over f(x_i)


def sites_of(prior: Prior, observed: Observations, trend: Trend | None) -> Sites:
    """What the values say of f if their noise is Student's t with the squared scale of the prior. O(n^3) a round.

    An error bar is added to the squared scale, and a mean of k evaluations has a k-th of it.
    """
    x = observed.x
    scale2 = prior.noise_var / observed.repeats + observed.noise_var
    mean = prior.posterior(trend).prior_mean(x)
    return expectation_propagation(prior.kernel(x, x), mean, student(observed.y, np.maximum(scale2, _least(prior, x))))


def fit_student(setting: Setting, observed: Observations) -> Prior:
    """The prior learned from these values, with noise_var the squared scale of the noise.

    In turn: the sites of expectation propagation under the prior so far; the kernel and the mean that are most probable
    given the sites, as given observations with their noise (at a fixed point the evidence of expectation propagation
    has the same derivative); the scale that maximises the expected log likelihood over f at the values, as in the EM
    algorithm. O(n^3), some fifty times.
    """
    rows = subset(observed.y, FIT_POINTS)
    some = Observations.of(observed.x[rows], observed.y[rows], observed.noise_var[rows], observed.repeats[rows])
    n, ones = len(some), np.ones(len(some))
    learns = setting.template.unknown
    prior = _start(setting, some)
    exact = replace(setting, noise_var=0.0)
    for _ in range(ROUNDS if n >= ENOUGH else 0):
        sites = sites_of(prior, some, None)
        says = sites.noise < MUTE * prior.kernel.diagonal(some.x)
        if learns and np.count_nonzero(says) >= ENOUGH:
            one = ones[says]
            noises = Noises(one, sites.noise[says], one, 0.0 * one)
            given = fit(exact, some.x[says], sites.value[says], noises=noises)
            prior = replace(prior, kernel=given.kernel, mean=given.mean)
        if setting.noise_var is None:
            prior = replace(prior, noise_var=_scale2(prior, some, sites))
    return prior


def _start(setting: Setting, observed: Observations) -> Prior:
    """A prior that outliers have not touched: the centre of the hyper-prior, in units of the median distance of y from
    its median, with noise of START of that variance.

    From the most probable prior under normal noise, short lengthscales that explain the outliers would be kept.
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


def _scale2(prior: Prior, observed: Observations, sites: Sites) -> float:
    """The squared scale of the noise with the largest sum_i E log t(y_i - f_i) + log of its prior, on a grid of 5 %."""
    log_noise = np.linspace(*BOUNDS_NOISE, 400)
    unit = float(prior.kernel.diagonal(observed.x).mean())
    node, weight = np.polynomial.hermite_e.hermegauss(_NODES)
    off = (observed.y - sites.mean)[:, None] - np.sqrt(sites.var)[:, None] * node  # (n, N)
    penalty = 0.5 * ((log_noise - LOG_NOISE[0]) / LOG_NOISE[1]) ** 2
    worth = []
    for s in (unit * np.exp(log_noise)).tolist():
        scale2 = (s / observed.repeats + observed.noise_var)[:, None]
        worth.append(float((log_student(off, scale2) @ weight).sum()) / float(weight.sum()))
    return unit * float(np.exp(log_noise[int(np.argmax(np.array(worth) - penalty))]))


def _least(prior: Prior, x: Array) -> float:
    """The smallest squared scale: with none at all every value would be exact, and no value an outlier."""
    return float(np.exp(BOUNDS_NOISE[0])) * float(prior.kernel.diagonal(x).mean() if len(x) else 1.0)
