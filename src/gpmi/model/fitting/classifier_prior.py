"""The prior of the classifier of failures: how fast the probability of success changes with each parameter."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Mask, Numbers
from gpmi.gp.approximate.ep import Sites, expectation_propagation, probit
from gpmi.gp.kernels import Kernel
from gpmi.model.fitting.covariance import PairwiseMatern
from gpmi.model.fitting.descent import DescentPoint, minimum_in_box

# Our choices, not tuned.
FIT_OUTCOMES = 128  # outcomes of a fit, at most: expectation propagation costs 20 times as much as a regression
_ROUNDS = 12  # steps of its descent, at most
# The normal prior of the logarithm of the variance of the latent g, and its upper bound. g plus noise of variance 1
# decides what fails. A variance of 1e8 means that failures are not random, and that the edge is known to a
# ten-thousandth of a lengthscale between a success and a failure that close. Random failures, at points that succeeded
# before, are evidence for a small variance. With 1e6 runs stopped short of an edge by a thousandth of the box. With 10,
# where even a point that succeeded fails again with p = 0.14, no query came near the edge (benchmarks/failures.py
# --tuning).
_LOG_VARIANCE, _LARGEST = (math.log(1e8), 5.3), math.log(1e10)
# The lengthscales are expected to be this many times those of a regression: the edge of the feasible region has fewer
# bends than f. Chosen by how well it predicted the outcomes of queries in runs with plane and with curved edges; 4 and
# 6 did better on planes and worse on balls.
_SMOOTHER = 2.0


class ClassifierPrior(NamedTuple):
    """g ~ GP(mean, kernel); a point succeeds with probability cdf(g(x)), of the standard normal."""

    kernel: Kernel
    mean: float

    def sites(self, x: Array, success: Mask) -> Sites:
        """Return the sites of the outcomes at x (n, d), by expectation propagation. O(n^3) a round."""
        return expectation_propagation(self.kernel(x, x), np.full(len(x), self.mean), probit(success))


def fit_classifier(x: Array, success: Mask, span: Array, groups: tuple[int, ...]) -> ClassifierPrior:
    """Return the most probable kernel given which of the points x (n, d) succeeded, by the evidence.

    The kernel is Matern-5/2 with a lengthscale for each parameter, a priori _SMOOTHER times that of a regression. The
    mean of g is such that, far from all points, the probability of success is (successes + 1) / (n + 2).
    """
    rows = _spread(len(x), FIT_OUTCOMES)
    x, success = x[rows], success[rows]
    rate = (int(success.sum()) + 1) / (len(success) + 2)
    covariance = PairwiseMatern(x, span, groups, 1.0)
    usual = covariance.unknowns
    unknowns = replace(usual, centre=usual.centre.copy(), width=usual.width.copy(), hi=usual.hi.copy())
    unknowns.centre[0], unknowns.width[0], unknowns.hi[0] = *_LOG_VARIANCE, _LARGEST
    unknowns.centre[1:-1] += math.log(_SMOOTHER)
    last: list[tuple[Array, Array]] = []  # the sites at the last q: a good start for the next

    def loss(q: Array) -> tuple[float, Array]:
        values, pairs = covariance(q), covariance.pairs
        k = pairs.matrix(values.by_pair, np.full(len(x), values.diagonal))
        mean, slope = _mean(rate, math.exp(q[0]))
        sites = expectation_propagation(k, np.full(len(x), mean), probit(success), last[-1] if last else None)
        last[:] = [(sites.value, sites.noise)]
        off = (q - unknowns.centre) / unknowns.width
        gradient = off / unknowns.width
        values.pull(-sites.by_k.ravel()[pairs.at], -sites.by_k.diagonal(), gradient)
        gradient[0] -= slope * float(np.sum((sites.value - sites.mean) / sites.noise))  # d log Z / d mean
        return 0.5 * float(off @ off) - sites.log_evidence, gradient

    begin = DescentPoint(unknowns.centre, math.inf, np.diag(unknowns.width**-2 + len(x) * unknowns.curvature))
    q = minimum_in_box(loss, begin, unknowns.lo, unknowns.hi, _ROUNDS).q
    return ClassifierPrior(covariance.kernel(q), _mean(rate, math.exp(q[0]))[0])


def _mean(rate: float, variance: float) -> tuple[float, float]:
    """Return the mean of g with which cdf(g) averages `rate` over the prior, and its derivative by log variance."""
    from scipy.special import ndtri

    at, root = float(ndtri(rate)), math.sqrt(1.0 + variance)
    return at * root, 0.5 * at * variance / root


def _spread(n: int, size: int) -> Numbers:
    """Return the numbers of at most `size` of n outcomes, spread over the run."""
    return np.unique(np.linspace(0, n - 1, min(n, size)).round().astype(np.intp))
