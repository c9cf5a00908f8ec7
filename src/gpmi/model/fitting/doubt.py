"""Whether it is known that there is no noise: much of it may explain the values as well as a rougher f without any."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Observations
from gpmi.model.fitting.criterion import Criterion, Setting
from gpmi.model.fitting.draws import Posed
from gpmi.model.fitting.fit import Prior
from gpmi.model.fitting.search import ROUNDS, Peak, minimum_in_box, start
from gpmi.model.fitting.unknowns import LOG_NOISE

# Shares of the variance of y: noise below the first counts as none, the second is the least that is set against it.
# Our choices; docs/benchmarks/noise.md counts how often there is doubt, with noise and without.
LITTLE, MUCH = 0.01, 0.05


class Unseen(NamedTuple):
    """Noise that a fit does not see, although it may be there."""

    share: float  # of the variance of warp(y): that of the most probable noise of MUCH or more
    nats: float  # by which the evidence of next to none exceeds that of it


def unseen_noise(setting: Setting, observed: Observations, near: Prior) -> Unseen | None:
    """The noise that there may be although the fit `near` has next to none; None if that has some, or some is given.

    The largest evidence with noise of at least MUCH is compared with that of LITTLE noise or less, the prior of the
    noise apart, which holds exact values for the more likely by up to 6 nats: so a fit takes noisy values for exact
    ones as long as the evidence does not clearly say otherwise. Three descents, each some evaluations of O(n^3).
    """
    posed = Posed.of(setting, observed, near.warp)
    criterion, unknowns, q = posed.criterion, posed.criterion.unknowns, posed.q_of(near)
    if setting.noise_var is not None or observed.noise_var.any() or q[-1] > math.log(LITTLE):
        return None
    exact = _peak(criterion, [q], float(unknowns.lo[-1]), math.log(LITTLE))
    noisy = _peak(criterion, [unknowns.noisy, q], math.log(MUCH), float(unknowns.hi[-1]))
    nats = (noisy.loss - _penalty(noisy.q)) - (exact.loss - _penalty(exact.q))
    return Unseen(criterion.noise(noisy.q), nats)


def _peak(criterion: Criterion, starts: list[Array], low: float, high: float) -> Peak:
    """The smallest loss that descents find where the logarithm of the noise is between low and high."""
    lo, hi = criterion.unknowns.lo.copy(), criterion.unknowns.hi.copy()
    lo[-1], hi[-1] = low, high
    begins = [start(criterion, np.clip(q, lo, hi)) for q in starts]
    return min((minimum_in_box(criterion.loss, begin, lo, hi, ROUNDS) for begin in begins), key=lambda peak: peak.loss)


def _penalty(q: Array) -> float:
    """-log of the prior of the noise at q, without constants."""
    return 0.5 * float((q[-1] - LOG_NOISE[0]) / LOG_NOISE[1]) ** 2
