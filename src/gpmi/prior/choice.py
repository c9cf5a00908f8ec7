"""Whether y needs a transformation, and which."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from gpmi.cube import far_apart
from gpmi.prior.criterion import Setting
from gpmi.prior.data import FIT_POINTS, standardised, subset
from gpmi.prior.search import descend, start
from gpmi.prior.warp import IDENTITY, Warp
from gpmi.types import Array

WARP_FROM = 8  # observations: with fewer the evidence for a transformation is never clear
_WARP_POINTS = 64  # observations looked at, at most: the gaps that count are of many nats, so these are enough
_WARP_APART = 0.05  # observations closer than this part of the cube's diagonal are thinned out; our choice, not tuned
_WARP_ROUNDS = 6  # steps of a descent: rough, for the same reason as _WARP_POINTS

# Nats by which a transformation must be better than none: in all (noise gains 1 to 4), and per observation, more where
# it would compress the differences between the best values, which costs cumulative regret (Hartmann-6 gains 0.3 to
# 1.4). Chosen on eight functions. With other seeds (T = 45, 8 runs each) it was taken in every run on Goldstein-Price,
# Zakharov-4 and Beale, always to the better (R_T / T times 0.3 to 0.6), and on seven other problems in 1 run of 56.
_CLEARLY, _CLEARLY_EACH, _CLEARLY_EACH_AT_BEST = 6.0, 0.5, 1.5


def choose_warp(setting: Setting, x: Array, y: Array) -> Warp:
    """The transformation of y under which y is clearly most probable, p(y) = p(z) dz/dy; usually none.

    Large y are good. The candidates are logarithms from the lowest value upwards, from the highest
    downwards, or beyond the quartiles: the kind is the one that makes y most normal, and of each kind there are a few
    widths, between which the evidence decides. Four rough fits on at most _WARP_POINTS observations, each but the
    first from where the one before has ended.
    """
    x, y = _thinned(setting, x, y)
    if len(y) < WARP_FROM:
        return IDENTITY
    normal, kind = max(
        ((max(_log_density(warp, y) for warp in kind), kind) for kind in _warps(y)),
        default=(-np.inf, []),
        key=lambda pair: pair[0],
    )
    # Where y is hardly more normal afterwards it is not clearly more probable either, and nothing need be fitted.
    if normal - _log_density(IDENTITY, y) < 0.5 * max(_CLEARLY, _CLEARLY_EACH * len(y)):
        return IDENTITY
    by_evidence = replace(setting, loo=False)
    best, value, peak = IDENTITY, -np.inf, None
    for warp in [IDENTITY, *kind]:
        _, scale, z = standardised(warp(y))
        criterion = by_evidence.criterion(x, z, scale)
        centre, noisy = criterion.unknowns.centre, criterion.unknowns.noisy
        starts = [peak] if peak else [start(criterion, q) for q in (centre, noisy)]
        peak = min((descend(criterion, begin, _WARP_ROUNDS) for begin in starts), key=lambda peak: peak.loss)
        evidence = float(warp.log_slope(y).sum()) - len(y) * math.log(scale) - peak.loss
        if warp.bends:
            at_best = warp.hi < np.inf
            evidence -= max(_CLEARLY, len(y) * (_CLEARLY_EACH_AT_BEST if at_best else _CLEARLY_EACH))
        if evidence > value:
            best, value = warp, evidence
    return best


def _thinned(setting: Setting, x: Array, y: Array) -> tuple[Array, Array]:
    """At most _WARP_POINTS observations, without those close to a more extreme one.

    A search piles up observations at its optimum, and there the differences between them become ever smaller, which
    says nothing of the shape of f. An outlier among them must be seen, though.
    """
    rows = subset(y, FIT_POINTS)
    x, y = x[rows], y[rows]
    extreme_first = np.argsort(-np.abs(y - np.median(y)), kind="stable")
    rows = np.sort(far_apart(x / setting.span, extreme_first, _WARP_APART))
    x, y = x[rows], y[rows]
    rows = subset(y, _WARP_POINTS)
    return x[rows], y[rows]


def _warps(y: Array) -> list[list[Warp]]:
    """Candidates by kind, each with a few widths at the scale of the data."""
    low, high = float(y.min()), float(y.max())
    q1, q3 = np.quantile(y, [0.25, 0.75])
    kinds: list[list[Warp]] = []
    for gaps, lo, hi in (
        (y - low, -np.inf, low),
        (high - y, high, np.inf),
        (np.maximum(q1 - y, y - q3), float(q1), float(q3)),
    ):
        gaps = np.sort(gaps[gaps > 1e-10 * gaps.max()])
        if len(gaps) > 1:
            ranks = sorted({len(gaps) // 2, len(gaps) // 4, len(gaps) // 8})
            least = 0.1 * (hi - lo) if np.isfinite(hi - lo) else 0.0  # between knees digits are kept only down to s
            origin = hi if hi < np.inf else lo
            kinds.append([Warp(lo, hi, max(float(gaps[k]), least), origin) for k in ranks])
    return kinds


def _log_density(warp: Warp, y: Array) -> float:
    """log p(y) for z normal with its own mean and variance, up to a constant."""
    return float(warp.log_slope(y).sum()) - len(y) * math.log(standardised(warp(y))[1])
